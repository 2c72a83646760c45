#pragma once

/*
  Peers: ranks of one host that can address memory of each other's devices (CUDA IPC) or, if the host computes, shared memory. After the set-up peers exchange without MPI and without the host.

    GPUCSRPeersCreate(comm, dev, &p)              collective on comm. p->all: all of comm's ranks are peers; otherwise p->why names a rank, its device and the reason, and only
                                                  GPUCSRPeersDestroy() may follow. dev NULL: memory of the host.
    GPUCSRPeersMalloc(p, bytes, what, theirs)     collective on p->comm. theirs[r]: address of rank r's memory on this rank. The memory is zeroed.
                                                  bytes may differ between ranks. theirs has p->size + 1 entries. Errors are common to all ranks.
    GPUCSRPeersFree(p, theirs)                    collective without waiting: a rank frees its memory some time after the calls of all ranks.
    GPUCSRPeersCheck(p)                           an error once any rank has raised p->control->dead. Cheap: before each use.
    GPUCSRPeersDead(p, message)                   raises p->control->dead: all waits give up, in launches and on the host.
    GPUCSRPeerPublish(), GPUCSRPeerAwait()        flags of the host's twin. peer.cuh has the flags of kernels, and sums with flags.

  A wait ends at a sequence number: flags only grow. A writer writes data before the flag (release), and a reader reads data after the flag (acquire), both with system scope. All waits end: to give up,
  a thread raises `dead`, a word for all ranks and devices of the host. All waits read `dead`. A launch then finishes with the data in memory, and all memory stays addressable. The next
  GPUCSRPeersCheck() on each rank is an error.

  Waits have two limits. In a common operation of all ranks (a solve), ranks are at most p->timeout seconds apart (-gpucsr_peer_timeout): GPUCSRPeersWatch(p) for a kernel, GPUCSRPeerAwait(). In
  operations of one rank (a product, a sum over vectors), a rank may be p->patience seconds late (-gpucsr_peer_patience): GPUCSRPeersWatchLate(p), GPUCSRPeerAwaitLate(). If functions serve both, p->together selects the first limit. A rank never comes after its process has ended: all waits notice within a tenth of a second (alive.h).
*/
#include "alive.h"
#include "peerslots.h"
#include <sched.h>

struct _n_GPUCSRPeers {
  MPI_Comm                comm; /* ranks of this host, in the order of the communicator given */
  PetscMPIInt             rank, size;
  PetscBool               all;
  PetscBool               shared; /* two ranks have the same device */
  char                    why[640];
  GPUCSRDevice            dev;
  const GPUCSRBackendOps *ops; /* of the shared memory: the device's, or the host's */
  int                     id;
  double                  timeout, patience; /* seconds */
  PetscBool               together;          /* inside an operation that all ranks have begun: no rank comes late */
  unsigned                looks;             /* polls of a flag by the host before it yields its processor: about a millisecond's, or few if there are more ranks than processors */
  GPUCSRPeerControl      *control;
  GPUCSRBool              locked; /* the control words are page-locked */
  GPUCSRAlive             alive;
  uint64_t               *token;   /* of each rank's process */
  int64_t                 pieces;  /* made so far */
  int                     waiting; /* pieces freed here, and still addressed by other ranks */
  PetscBool               gone;    /* destroyed except for these pieces */
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

/* The host's twin: a reader of the flag sees all earlier writes */
static inline void GPUCSRPeerPublish(uint64_t *flag, uint64_t sequence)
{
  __atomic_store_n(flag, sequence, __ATOMIC_RELEASE);
}

/* Waits until the flag reaches this number; otherwise an error on this rank and, at their next check, on all */
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
