#pragma once

/*
  The halo of a parallel product: entries of x that other ranks own, and, for the transpose, sums for entries of z that other ranks own. halo.c finds
  which rank needs which entries; halo.c (staged) and exchange_NAME.c are the ways of exchanging them.
*/
#include "../type/gpucsrimpl.h"
#include "../../../../sys/peer/peer.h"
#include <petscsf.h>

typedef struct _n_GPUCSRHalo *GPUCSRHalo;

/*
  A way of exchanging. All ranks with neighbours call begin() and end() in pairs, even after an error: a failed rank sends NaN, so that no neighbour
  waits or computes with wrong numbers. Any other error comes before anything is sent or written. The stream may be NULL for vectors on the host.
*/
typedef struct {
  const char *name;
  /* only for ranks of one host that address each other's device memory (h->peers) */
  PetscBool peers;
  /* makes this rank's buffers; sets h->halo and h->host */
  PetscErrorCode (*local)(GPUCSRHalo h);
  /* then, collective, with errors on all ranks: connects the ranks. A rank whose device has failed no longer takes part. NULL: there is nothing to connect */
  PetscErrorCode (*connect)(GPUCSRHalo h);
  /* before h->data is freed; NULL: it holds nothing to be freed */
  PetscErrorCode (*destroy)(GPUCSRHalo h);
  /* an error if the exchange no longer works; NULL: it always works */
  PetscErrorCode (*check)(GPUCSRHalo h);
  /* forward: h->halo, or (host) h->host = the entries of x, behind the work of s; x NULL: NaN */
  PetscErrorCode (*forwardbegin)(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s);
  PetscErrorCode (*forwardend)(GPUCSRHalo h, PetscBool host, GPUCSRStream s);
  /* z += Ao times the halo, without a copy of the halo; addready() prepares it, and decides whether it pays. NULL: forwardend() and a product */
  PetscErrorCode (*addready)(GPUCSRHalo h, Mat Ao, PetscBool *pays);
  PetscErrorCode (*forwardadd)(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s);
  /* reverse: sends h->halo, or (host) h->host to the owners, which wait for the numbers and add them to z in the order of ranks; not valid: NaN; z NULL: adds nothing */
  PetscErrorCode (*reversebegin)(GPUCSRHalo h, PetscBool valid, PetscBool host, GPUCSRStream s);
  PetscErrorCode (*reverseadd)(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s);
  /* for solves without MPI in an iteration (mpioperator.c): all = n <= GPUCSR_PEER_GATHER numbers of each rank, all where the products are; NULL: this
     exchange has no gather */
  PetscErrorCode (*gather)(GPUCSRHalo h, const double *mine, int n, double *all, GPUCSRStream s);
  /* where the ranks gather, for a kernel that gathers by itself; NULL: a kernel cannot */
  GPUCSRPeerSlots (*slots)(GPUCSRHalo h);
  /* recording of work begins or ends; played(): recorded work has been launched on s again. NULL: the exchange need not know */
  PetscErrorCode (*record)(GPUCSRHalo h, PetscBool begins);
  PetscErrorCode (*played)(GPUCSRHalo h, GPUCSRStream s);
  /* a solve begins or ends: during it ranks are at most -gpucsr_peer_timeout apart */
  PetscErrorCode (*solving)(GPUCSRHalo h, PetscBool begins);
  /* this rank has failed during a solve: the other ranks give up */
  PetscErrorCode (*fail)(GPUCSRHalo h, const char message[]);
} GPUCSRExchange;

GPUCSR_INTERN const GPUCSRExchange GPUCSRExchange_peer, GPUCSRExchange_nccl, GPUCSRExchange_staged;

/* Neighbours, in the order of ranks, and their entries, offset[k] to offset[k + 1] - 1 */
typedef struct {
  PetscMPIInt        n;
  const PetscMPIInt *rank;
  const PetscInt    *offset;
} GPUCSRNeighbours;

typedef struct {
  void     *p;
  size_t    bytes;
  PetscBool locked; /* memory of the host */
} GPUCSRHaloBuffer;

struct _n_GPUCSRHalo {
  const GPUCSRExchange *exchange;
  void                 *data; /* of the exchange, */
  int                   nbuffers;
  GPUCSRHaloBuffer      buffer[12]; /* and its memory */
  MPI_Comm              comm;
  PetscSF               sf;       /* from the unique entries to the halo */
  GPUCSRDevice          dev;      /* of the products; NULL: host memory */
  GPUCSRNeighbours      to, from; /* ranks that need this rank's entries, and owners of the halo, in the order of garray */
  PetscInt              nsend, nrecv, nunique;
  PetscInt             *index;  /* local entry of x for each sent entry */
  PetscInt             *unique; /* each of those once, ascending: an entry that several ranks need is summed once on the way back */
  PetscInt             *first;  /* the sent entries of unique[u], in the order of ranks, are sent[first[u]] to sent[first[u + 1] - 1] */
  PetscInt             *sent;
  GPUCSRLiving          living;
  GPUCSRPeers           peers;    /* NULL: the exchange has no use for them */
  PetscInt64            made;     /* number of this choice in the process: recorded launches are valid for one choice */
  char                  why[704]; /* the reason for this exchange, for MatView() */
  PetscScalar          *host;     /* the halo for products of the host */
  double               *there;    /* a copy of a halo of the host on the device; NULL: none yet */
  GPUCSROperand         halo;     /* factor of the off-diagonal block, or result of its transpose; the exchange decides where it lies */
};

GPUCSR_INTERN PetscErrorCode GPUCSRHaloCreate(MPI_Comm, PetscLayout, PetscInt n, const PetscInt ghost[], GPUCSRHalo *);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloChoose(GPUCSRHalo, GPUCSRDevice, GPUCSRHaloWay);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloSetUp(GPUCSRHalo, GPUCSRDevice);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloDestroy(GPUCSRHalo *);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloBroken(GPUCSRHalo, PetscBool *);
/* Collective: where this rank's numbers begin among those that rank r receives: entries in where[r][0], sums in where[r][1] */
GPUCSR_INTERN PetscErrorCode GPUCSRHaloPlaces(GPUCSRHalo, PetscInt64 (**where)[2]);
/* For exchanges: n numbers of the host and one more, page-locked if the halo has a device; and memory where the products are. Freed with the exchange, or before */
GPUCSR_INTERN PetscErrorCode GPUCSRHaloHostBuffer(GPUCSRHalo, PetscInt n, PetscScalar **);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloMalloc(GPUCSRHalo, size_t, void *);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloFree(GPUCSRHalo, void *);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloFill(GPUCSRHalo, void *to, GPUCSRType, const void *from, GPUCSRType, PetscInt n);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloIndices(GPUCSRHalo, const PetscInt from[], PetscInt n, int32_t **to);
/* The entries that are sent, of x on the host; and what comes back, added in the order of ranks */
GPUCSR_INTERN void GPUCSRHaloPack(GPUCSRHalo, const PetscScalar *x, PetscScalar *to);
GPUCSR_INTERN void GPUCSRHaloAdd(GPUCSRHalo, const PetscScalar *from, PetscScalar *z);
