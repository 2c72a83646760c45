#pragma once

/*
  The halo among peers (sys/peer/peer.h): each rank writes what its neighbours need straight into their memory, and a flag behind it. No host is in it, and no number that
  changes is an argument, so that launches may be recorded and played again.

  An exchange has the next number, s. Send() writes into the buffers of s mod 2 and then shows s to all neighbours, those that get nothing, too; one of the other three functions waits
  until all neighbours have shown s, uses what came, and counts. Two buffers do, without a word back: a rank writes s + 2 after it has seen s + 1 of each neighbour, which
  that one showed after it had used s. So every Send() is followed by one of the others, all in one order on all ranks.
*/
#include "../kernels/kernels.h"
#include "../../../../../sys/peer/peerslots.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Forward: entries of x; backward: sums */
typedef enum {
  GPUCSR_ENTRIES,
  GPUCSR_SUMS
} GPUCSRPeerWay;

/* A neighbour */
typedef struct {
  double         *to[2][2];          /* by way and by s mod 2: where in its memory what is for it begins, */
  int             first[2], last[2]; /* and which of what is sent that is */
  uint64_t       *flag;              /* its word for us, */
  const uint64_t *shown;             /* and ours for it */
} GPUCSRPeerLink;

typedef struct {
  GPUCSRDevice    dev; /* NULL: the host's memory is all there is */
  GPUCSRPeers     peers;
  GPUCSRPeerLink *link; /* where the products are, as all that follows */
  int             n;
  double         *in[2][2];  /* by way and by s mod 2: what comes */
  int             coming[2]; /* numbers of it */
  uint64_t       *count;     /* exchanges done; behind it, blocks of a launch that are, and gathers done */
  void          **slots;     /* by rank: where in its memory gathered numbers go, the same place on all */
} GPUCSRPeerHalo;

/* Rows of a matrix that are not empty: CSR, and which rows they are */
typedef struct {
  int      n, group; /* threads a row */
  int32_t *row, *ptr, *col;
  double  *val;
} GPUCSRPeerRows;

/* Places of z, each once, and which of the numbers that came are added there, in order */
typedef struct {
  int      n;
  int32_t *place, *ptr, *from;
} GPUCSRPeerSums;

/* count numbers, from[index[k]] or, index NULL, from[k]; from NULL: NaN, for a rank that has met an error. from may be page-locked memory of the host */
GPUCSR_INTERN GPUCSRError GPUCSRPeerSend(const GPUCSRPeerHalo *, GPUCSRPeerWay, int count, const int32_t *index, const double *from, GPUCSRStream);
/* what came; to may be page-locked memory of the host, or NULL: it is dropped */
GPUCSR_INTERN GPUCSRError GPUCSRPeerReceive(const GPUCSRPeerHalo *, GPUCSRPeerWay, double *to, GPUCSRStream);
/* z += A x, x being the entries that came */
GPUCSR_INTERN GPUCSRError GPUCSRPeerMultiply(const GPUCSRPeerHalo *, const GPUCSRPeerRows *, double *z, GPUCSRStream);
/* z += the sums that came */
GPUCSR_INTERN GPUCSRError GPUCSRPeerAdd(const GPUCSRPeerHalo *, const GPUCSRPeerSums *, double *z, GPUCSRStream);

/* all = n numbers of each rank, in the order of ranks; gathers are counted for themselves */
GPUCSR_INTERN GPUCSRPeerSlots GPUCSRPeerSlotsOf(const GPUCSRPeerHalo *);
GPUCSR_INTERN GPUCSRError     GPUCSRPeerGather(const GPUCSRPeerHalo *, const double *mine, int n, double *all, GPUCSRStream);

/* The same on the device */
GPUCSR_INTERN GPUCSRError GPUCSRPeerSend_CUDA(const GPUCSRPeerHalo *, GPUCSRPeerWay, int, const int32_t *, const double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRPeerReceive_CUDA(const GPUCSRPeerHalo *, GPUCSRPeerWay, double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRPeerMultiply_CUDA(const GPUCSRPeerHalo *, const GPUCSRPeerRows *, double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRPeerAdd_CUDA(const GPUCSRPeerHalo *, const GPUCSRPeerSums *, double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRPeerGather_CUDA(const GPUCSRPeerHalo *, const double *, int, double *, GPUCSRStream);

#if defined(__cplusplus)
}
#endif
