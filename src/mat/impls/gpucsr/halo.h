#pragma once

/*
  The halo of a parallel product: entries of x that other ranks own, and, for the transpose, sums for entries of z that they own. Who needs what (halo.c) is one
  thing, how it gets there (exchangelist.h) another.
*/
#include "gpucsrimpl.h"

typedef struct _n_GPUCSRHalo *GPUCSRHalo;

/*
  A way of exchanging. begin() and end() are called in pairs by all ranks that have neighbours, whatever has happened to one of them: a rank that has met an error
  sends NaN, so that nobody waits for it and nobody takes what it sends for numbers. What else fails here fails before anything is sent or written.
*/
typedef struct {
  const char *name;
  /* buffers and what goes with them, of this rank alone; sets h->halo */
  PetscErrorCode (*setup)(GPUCSRHalo h);
  PetscErrorCode (*destroy)(GPUCSRHalo h);
  /* what the exchange needs on the device of x, or (reverse) of z */
  PetscErrorCode (*reserve)(GPUCSRHalo h, PetscBool reverse, GPUCSRStream s);
  /* forward: h->halo = the entries of x, behind what s was given; x NULL: NaN */
  PetscErrorCode (*forwardbegin)(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s);
  PetscErrorCode (*forwardend)(GPUCSRHalo h);
  /* reverse: h->halo goes to its owners, each of which adds what it gets to z, in the order of ranks; not valid: NaN */
  PetscErrorCode (*reversebegin)(GPUCSRHalo h, PetscBool valid);
  PetscErrorCode (*reverseend)(GPUCSRHalo h);
  PetscErrorCode (*reverseadd)(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s);
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
  GPUCSROperand         halo; /* what the off-diagonal block multiplies, or what its transpose results in; where it is the exchange says */
};

GPUCSR_INTERN PetscErrorCode GPUCSRHaloCreate(Mat, GPUCSRHalo *);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloSetUp(GPUCSRHalo, GPUCSRDevice);
GPUCSR_INTERN PetscErrorCode GPUCSRHaloDestroy(GPUCSRHalo *);
GPUCSR_INTERN PetscErrorCode GPUCSRHalosForget(void);
