#pragma once

/*
  Peers: ranks of one host, each of which can address memory of the others' devices (CUDA IPC), or, where the host computes, memory that they share. No MPI and no host is
  needed between them once that is set up.

    GPUCSRPeersCreate(comm, dev, &p)              collective on comm. p->all: all of comm's ranks are peers; otherwise p->why says which rank is not, its device, and the
                                                  reason, and nothing below but GPUCSRPeersDestroy() may be called. dev NULL: the host's memory is all there is
    GPUCSRPeersMalloc(p, bytes, what, theirs)     collective on p->comm; theirs[r] is memory of rank r, zeroed, as this rank's device (or the host) addresses it, r = p->rank its
                                                  own; bytes may differ from rank to rank. theirs has room for p->size + 1. An error is one on all ranks
    GPUCSRPeersFree(p, theirs)                    collective, but nobody waits: a rank's memory goes when all others have called this, which is looked at now and then
    GPUCSRPeersCheck(p)                           an error once any rank has raised p->control->dead. Cheap: before each use
    GPUCSRPeersDead(p, message)                   raises it: all who wait give up, in a launch and on the host
    GPUCSRPeerPublish(), GPUCSRPeerAwait()        flags of the host's twin; those of kernels, with the sums that carry their flag, are in peer.cuh

  Who waits for whom is by sequence numbers: flags only grow, data are written before the flag (release) and read after it (acquire), both with the scope of the system.
  No wait is without an end: who gives up raises `dead`, which is one word in memory that all ranks and all devices of the host see, and which all waits look at. What a launch does then
  it does with whatever is in memory (all of it stays addressable), and the next GPUCSRPeersCheck() on each rank is an error.

  There are two waits. In what all ranks have begun together (a solve) they are at most p->timeout seconds apart (-gpucsr_peer_timeout): GPUCSRPeersWatch(p) for a kernel, GPUCSRPeerAwait().
  To what each rank comes when its program does (a product, a sum over vectors) one may come late, by p->patience seconds (-gpucsr_peer_patience): GPUCSRPeersWatchLate(p),
  GPUCSRPeerAwaitLate(). Where both use the same functions, p->together says that it is the first. A rank whose process has ended never comes: the others hear of that in a tenth of a second, whatever they wait for (alive.h).
*/
#include "alive.h"
#include "peerslots.h"
#include <sched.h>

#if defined(__cplusplus)
extern "C" {
#endif

struct _n_GPUCSRPeers {
  MPI_Comm           comm; /* ranks of this host, in the order of the communicator given */
  PetscMPIInt        rank, size;
  PetscBool          all;
  PetscBool          shared; /* two ranks have the same device */
  char               why[640];
  GPUCSRDevice       dev;
  double             timeout, patience; /* seconds */
  PetscBool          together;          /* all have begun something together: nobody comes late */
  unsigned           looks;             /* of the host at a flag, before it lends its processor to others: a millisecond's, or few where there are more ranks than processors */
  GPUCSRPeerControl *control;
  GPUCSRBool         locked; /* the control words are page-locked */
  GPUCSRAlive        alive;
  uint64_t          *token;   /* of each rank's process */
  int64_t            pieces;  /* made so far */
  int                waiting; /* of them given up here, and still addressed by others */
  PetscBool          gone;    /* destroyed but for these */
};

GPUCSR_INTERN PetscErrorCode GPUCSRPeersCreate(MPI_Comm, GPUCSRDevice, GPUCSRPeers *);
GPUCSR_INTERN PetscErrorCode GPUCSRPeersDestroy(GPUCSRPeers *);
GPUCSR_INTERN PetscErrorCode GPUCSRPeersMalloc(GPUCSRPeers, size_t bytes, const char what[], void *theirs[]);
GPUCSR_INTERN PetscErrorCode GPUCSRPeersFree(GPUCSRPeers, void *theirs[]);
GPUCSR_INTERN PetscErrorCode GPUCSRPeersSweep(double);
GPUCSR_INTERN PetscErrorCode GPUCSRPeerTimeout(PetscReal *);
GPUCSR_INTERN PetscErrorCode GPUCSRPeersDead(GPUCSRPeers, const char message[]);
GPUCSR_INTERN void           GPUCSRPeersRaise(GPUCSRPeerControl *, int, const char message[]);
GPUCSR_INTERN PetscErrorCode GPUCSRPeersSay(GPUCSRPeers);
GPUCSR_INTERN double         GPUCSRPeerSeconds(void);

static inline PetscErrorCode GPUCSRPeersCheck(GPUCSRPeers p)
{
  return PetscUnlikely(__atomic_load_n(&p->control->dead, __ATOMIC_ACQUIRE)) ? GPUCSRPeersSay(p) : PETSC_SUCCESS;
}

static inline GPUCSRPeerWatch GPUCSRPeersWatch(GPUCSRPeers p)
{
  const GPUCSRPeerWatch w = {&p->control->dead, (unsigned long long)(1e9 * p->timeout), 1 + (int)p->rank};

  return w;
}

static inline GPUCSRPeerWatch GPUCSRPeersWatchLate(GPUCSRPeers p)
{
  const GPUCSRPeerWatch w = {&p->control->dead, (unsigned long long)(1e9 * p->patience), (1 + (int)p->rank) | GPUCSR_PEER_LATE};

  return p->together ? GPUCSRPeersWatch(p) : w;
}

/* The host's twin: what was written before is there for whoever sees the flag */
static inline void GPUCSRPeerPublish(uint64_t *flag, uint64_t sequence)
{
  __atomic_store_n(flag, sequence, __ATOMIC_RELEASE);
}

/* Until the flag has come to this number; an error where it does not, on this rank and, as soon as they look, on all */
static inline PetscErrorCode GPUCSRPeerAwaitAs(GPUCSRPeers p, GPUCSRPeerWatch w, const uint64_t *flag, uint64_t sequence)
{
  double since = 0;

  for (unsigned looks = 1; __atomic_load_n(flag, __ATOMIC_ACQUIRE) < sequence; looks++) {
    if (__atomic_load_n(&p->control->dead, __ATOMIC_ACQUIRE)) return GPUCSRPeersSay(p);
    if (looks % 64) continue;
    if (!since) since = GPUCSRPeerSeconds();
    else if (GPUCSRPeerSeconds() - since > 1e-9 * (double)w.patience) {
      GPUCSRPeersRaise(p->control, w.says, "");
      return GPUCSRPeersSay(p);
    }
    if (looks >= p->looks) (void)sched_yield();
  }
  return PETSC_SUCCESS;
}

static inline PetscErrorCode GPUCSRPeerAwait(GPUCSRPeers p, const uint64_t *flag, uint64_t sequence)
{
  return GPUCSRPeerAwaitAs(p, GPUCSRPeersWatch(p), flag, sequence);
}

static inline PetscErrorCode GPUCSRPeerAwaitLate(GPUCSRPeers p, const uint64_t *flag, uint64_t sequence)
{
  return GPUCSRPeerAwaitAs(p, GPUCSRPeersWatchLate(p), flag, sequence);
}

#if defined(__cplusplus)
}
#endif
