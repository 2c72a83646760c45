#pragma once

/*
  The halo among peers (sys/peer/peer.h): each rank writes the entries for a neighbour into the neighbour's memory, and then a flag. The host takes no
  part, and no argument changes, so that a graph can repeat the launches.

  Exchanges are numbered. Send() writes into the buffers of s mod 2, s being the number, and then shows s to all neighbours, even those that receive
  nothing. Each of the other three functions waits until all neighbours have shown s, uses the entries, and counts. Two buffers suffice without an
  answer: a rank writes s + 2 after each neighbour has shown s + 1, which the neighbour does after it has used s. So each Send() is followed by one
  of the three functions, in the same order on all ranks.
*/
#include "../kernels/kernels.h"
#include "../../../../../sys/peer/peerslots.h"

/* Forward: entries of x; backward: sums */
typedef enum {
  GPUCSR_ENTRIES,
  GPUCSR_SUMS
} GPUCSRPeerWay;

/* A neighbour */
typedef struct {
  double         *to[2][2];          /* by way and by s mod 2: where this rank's numbers begin in its memory, */
  int             first[2], last[2]; /* and their range among the numbers sent */
  uint64_t       *flag;              /* this rank's flag for the neighbour, */
  const uint64_t *shown;             /* and the neighbour's flag for this rank */
} GPUCSRPeerLink;

typedef struct {
  GPUCSRDevice    dev; /* NULL: products use host memory */
  GPUCSRPeers     peers;
  GPUCSRPeerLink *link; /* this and all pointers below: where the products are */
  int             n;
  double         *in[2][2];  /* by way and by s mod 2: the numbers received */
  int             coming[2]; /* numbers of it */
  uint64_t       *count;     /* exchanges done; behind it, finished blocks of a launch, and gathers done */
  void          **slots;     /* by rank: the place of gathered numbers in its memory, the same on all */
} GPUCSRPeerHalo;

/* The rows of a matrix that have entries: CSR, and their row numbers */
typedef struct {
  int      n, group; /* threads a row */
  int32_t *row, *ptr, *col;
  double  *val;
} GPUCSRPeerRows;

/* Places of z, each once, and the received numbers to add there, in order */
typedef struct {
  int      n;
  int32_t *place, *ptr, *from;
} GPUCSRPeerSums;

/* sends count numbers, from[index[k]] or, index NULL, from[k]; from NULL: NaN, after an error on this rank. from may be page-locked host memory */
GPUCSR_INTERN GPUCSRError GPUCSRPeerSend(const GPUCSRPeerHalo *, GPUCSRPeerWay, int count, const int32_t *index, const double *from, GPUCSRStream);
/* copies the received numbers to device memory or page-locked host memory; to NULL: drops them */
GPUCSR_INTERN GPUCSRError GPUCSRPeerReceive(const GPUCSRPeerHalo *, GPUCSRPeerWay, double *to, GPUCSRStream);
/* z += A x, x being the received entries */
GPUCSR_INTERN GPUCSRError GPUCSRPeerMultiply(const GPUCSRPeerHalo *, const GPUCSRPeerRows *, double *z, GPUCSRStream);
/* z += the received sums */
GPUCSR_INTERN GPUCSRError GPUCSRPeerAdd(const GPUCSRPeerHalo *, const GPUCSRPeerSums *, double *z, GPUCSRStream);

/* all = n numbers of each rank, in the order of ranks; gathers have a count of their own */
GPUCSR_INTERN GPUCSRPeerSlots GPUCSRPeerSlotsOf(const GPUCSRPeerHalo *);
GPUCSR_INTERN GPUCSRError     GPUCSRPeerGather(const GPUCSRPeerHalo *, const double *mine, int n, double *all, GPUCSRStream);

/* The same on the device */
GPUCSR_INTERN GPUCSRError GPUCSRPeerSend_CUDA(const GPUCSRPeerHalo *, GPUCSRPeerWay, int, const int32_t *, const double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRPeerReceive_CUDA(const GPUCSRPeerHalo *, GPUCSRPeerWay, double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRPeerMultiply_CUDA(const GPUCSRPeerHalo *, const GPUCSRPeerRows *, double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRPeerAdd_CUDA(const GPUCSRPeerHalo *, const GPUCSRPeerSums *, double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRPeerGather_CUDA(const GPUCSRPeerHalo *, const double *, int, double *, GPUCSRStream);
