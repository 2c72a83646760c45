#pragma once

/*
  The halo of a parallel product: entries of x that other ranks own, and, for the transpose, sums for entries of z that they own. Who needs what (halo.c) is one
  thing, how it gets there (exchangelist.h) another.
*/
#include "../type/gpucsrimpl.h"
#include "../../../../sys/peer/peer.h"

typedef struct _n_GPUCSRHalo *GPUCSRHalo;

/*
  A way of exchanging. begin() and end() are called in pairs by all ranks that have neighbours, whatever has happened to one of them: a rank that has met an error
  sends NaN, so that nobody waits for it and nobody takes what it sends for numbers. What else fails here fails before anything is sent or written. The stream may be NULL where
  vectors are on the host.
*/
typedef struct {
  const char *name;
  /* who can exchange so: ranks of one host, whose devices address each other's memory (h->peers) */
  PetscBool peers;
  /* set-up is collective, and its errors are those of all; a rank whose device has failed takes part no more */
  PetscBool together;
  /* of this rank alone: why it cannot exchange so, or nothing; NULL: every rank can */
  PetscErrorCode (*able)(GPUCSRHalo h, char why[], size_t len);
  /* buffers and what goes with them; sets h->halo and h->host */
  PetscErrorCode (*setup)(GPUCSRHalo h);
  PetscErrorCode (*destroy)(GPUCSRHalo h);
  /* does it still work? NULL: always */
  PetscErrorCode (*check)(GPUCSRHalo h);
  /* what the exchange needs on the device of x, or (reverse) of z; NULL: it has it */
  PetscErrorCode (*reserve)(GPUCSRHalo h, PetscBool reverse, GPUCSRStream s);
  /* forward: h->halo, or (host) h->host = the entries of x, behind what s was given; x NULL: NaN */
  PetscErrorCode (*forwardbegin)(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s);
  PetscErrorCode (*forwardend)(GPUCSRHalo h, PetscBool host, GPUCSRStream s);
  /* z += Ao times the entries, both where h->halo is, which then need not be there; ready: what that needs, and whether it pays. NULL: forwardend() and a product */
  PetscErrorCode (*addready)(GPUCSRHalo h, Mat Ao, PetscBool *pays);
  PetscErrorCode (*forwardadd)(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s);
  /* reverse: h->halo, or (host) h->host goes to its owners, each of which adds what it gets to z, in the order of ranks; not valid: NaN; z NULL: nothing is added */
  PetscErrorCode (*reversebegin)(GPUCSRHalo h, PetscBool valid, PetscBool host, GPUCSRStream s);
  PetscErrorCode (*reverseend)(GPUCSRHalo h);
  PetscErrorCode (*reverseadd)(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s);
  /* for solves without MPI in an iteration (mpioperator.c): all = n <= GPUCSR_PEER_GATHER numbers of each rank, where products are; NULL: there are none such by this exchange */
  PetscErrorCode (*gather)(GPUCSRHalo h, const double *mine, int n, double *all, GPUCSRStream s);
  /* where the ranks gather them, for a kernel that does it itself; NULL: it cannot */
  GPUCSRPeerSlots (*slots)(GPUCSRHalo h);
  /* what is given from here on is recorded, or no more; and what was recorded has been given to s again. NULL: it need not know */
  PetscErrorCode (*record)(GPUCSRHalo h, PetscBool begins);
  PetscErrorCode (*played)(GPUCSRHalo h, GPUCSRStream s);
  /* a solve begins, or has ended: meanwhile ranks are at most -gpucsr_peer_timeout apart */
  PetscErrorCode (*solving)(GPUCSRHalo h, PetscBool begins);
  /* this rank has failed in the middle of it: the others give up */
  PetscErrorCode (*fail)(GPUCSRHalo h, const char message[]);
} GPUCSRExchange;

#define GPUCSR_EXCHANGE(name) GPUCSR_INTERN const GPUCSRExchange GPUCSRExchange_##name;
#include "exchangelist.h"
#undef GPUCSR_EXCHANGE

/* Neighbours and what is theirs: entries offset[k] to offset[k + 1] - 1, ranks in order */
typedef struct {
  PetscMPIInt  n;
  PetscMPIInt *rank;
  PetscInt    *offset;
} GPUCSRNeighbours;

struct _n_GPUCSRHalo {
  const GPUCSRExchange *exchange;
  void                 *data; /* of the exchange */
  MPI_Comm              comm;
  PetscMPIInt           tag;
  GPUCSRDevice          dev;      /* of the products; NULL: the host's memory is all there is */
  GPUCSRNeighbours      to, from; /* who needs entries of ours, and whose we need, the order of garray */
  PetscInt              nsend, nrecv, nunique;
  PetscInt             *index;  /* local entry of x behind each sent one */
  PetscInt             *unique; /* each of those once: an entry that several ranks need is summed once on the way back */
  PetscInt             *slot;   /* place in unique of each sent entry */
  GPUCSRHalo            next;   /* living halos: their device may go before them */
  GPUCSRHalo           *previous;
  GPUCSRPeers           peers;    /* NULL: the exchange has no use for them */
  PetscInt64            made;     /* a number that no other choice of an exchange in this process has: launches that were recorded belong to one */
  char                  why[704]; /* this exchange and not another, for who looks */
  PetscScalar          *host;     /* the halo for products of the host */
  GPUCSROperand         halo;     /* what the off-diagonal block multiplies, or what its transpose results in; where it is the exchange says */
};

GPUCSR_INTERN PetscErrorCode GPUCSRHaloCreate(Mat, GPUCSRHalo *);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloChoose(GPUCSRHalo, GPUCSRDevice, const char[]);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloSetUp(GPUCSRHalo, GPUCSRDevice);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloDestroy(GPUCSRHalo *);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloBroken(GPUCSRHalo, PetscBool *);
/* For exchanges: n numbers of the host and one more, page-locked if the halo has a device */
GPUCSR_INTERN PetscErrorCode GPUCSRHaloHostBuffer(GPUCSRHalo, PetscInt n, PetscScalar **);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloHostBufferFree(GPUCSRHalo, PetscScalar **);
