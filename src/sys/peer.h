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
  No wait is without an end: after p->timeout seconds (-gpucsr_peer_timeout) the one that waits raises `dead`, which is one word in memory that all ranks and all devices of
  the host see, and which all waits look at. What a launch does then it does with whatever is in memory (all of it stays addressable), and the next GPUCSRPeersCheck() on each rank is an
  error. A kernel gets GPUCSRPeersWatch(p).
*/
#include "gpucsrsys.h"
#include <sched.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define GPUCSR_PEER_PIECES 64

/* In memory of the host that all ranks have mapped, and their devices */
typedef struct {
  uint64_t token;        /* of rank 0's process: what was mapped is what was meant */
  int      dead;         /* 1 + the rank that gave up, 0: all is well */
  int      said;         /* message is complete */
  char     message[400]; /* empty: it waited too long */
  int64_t  left[];       /* by piece, modulo GPUCSR_PEER_PIECES, and rank: 1 + the piece that this rank addresses no more */
} GPUCSRPeerControl;

/* What a wait in a kernel needs; an argument of the launch */
typedef struct {
  volatile int      *dead;
  unsigned long long patience; /* nanoseconds */
  int                rank;
} GPUCSRPeerWatch;

typedef struct _n_GPUCSRPeers *GPUCSRPeers;
struct _n_GPUCSRPeers {
  MPI_Comm           comm; /* ranks of this host, in the order of the communicator given */
  PetscMPIInt        rank, size;
  PetscBool          all;
  PetscBool          shared; /* two ranks have the same device */
  char               why[640];
  GPUCSRDevice       dev;
  double             timeout; /* seconds */
  GPUCSRPeerControl *control;
  PetscBool          locked;  /* the control words are page-locked */
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
GPUCSR_INTERN PetscErrorCode GPUCSRPeersDead(GPUCSRPeers, const char message[]);
GPUCSR_INTERN PetscErrorCode GPUCSRPeersSay(GPUCSRPeers);
GPUCSR_INTERN PetscErrorCode GPUCSRPeersAgree(GPUCSRPeers, PetscErrorCode, char message[], size_t);
GPUCSR_INTERN double         GPUCSRPeerSeconds(void);

static inline PetscErrorCode GPUCSRPeersCheck(GPUCSRPeers p)
{
  return PetscUnlikely(__atomic_load_n(&p->control->dead, __ATOMIC_ACQUIRE)) ? GPUCSRPeersSay(p) : PETSC_SUCCESS;
}

static inline GPUCSRPeerWatch GPUCSRPeersWatch(GPUCSRPeers p)
{
  const GPUCSRPeerWatch w = {&p->control->dead, (unsigned long long)(1e9 * p->timeout), (int)p->rank};

  return w;
}

/* The host's twin: what was written before is there for whoever sees the flag */
static inline void GPUCSRPeerPublish(uint64_t *flag, uint64_t sequence)
{
  __atomic_store_n(flag, sequence, __ATOMIC_RELEASE);
}

/* Until the flag has come to this number; an error where it does not, on this rank and, as soon as they look, on all */
static inline PetscErrorCode GPUCSRPeerAwait(GPUCSRPeers p, const uint64_t *flag, uint64_t sequence)
{
  double since = 0;

  for (unsigned looks = 1; __atomic_load_n(flag, __ATOMIC_ACQUIRE) < sequence; looks++) {
    if (__atomic_load_n(&p->control->dead, __ATOMIC_ACQUIRE)) return GPUCSRPeersSay(p);
    if (looks % 64) continue;
    if (!since) since = GPUCSRPeerSeconds();
    else if (GPUCSRPeerSeconds() - since > p->timeout) {
      PetscErrorCode ierr = GPUCSRPeersDead(p, NULL);

      return ierr ? ierr : GPUCSRPeersSay(p);
    }
    (void)sched_yield(); /* there may be more ranks than processors */
  }
  return PETSC_SUCCESS;
}

#if defined(__cplusplus)
}
#endif
