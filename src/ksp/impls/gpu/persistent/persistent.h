#pragma once

/* The device side of the solvers, for the host side: persistent kernels, which are whole solves, and kernels of single steps */
#include "../../../../mat/impls/gpucsr/blackbox/format/bcsr.h"
#include "../../../../sys/peer/peerslots.h"
#include "../common/steps.h"

typedef enum {
  GPUKSP_BY_LANES,
  GPUKSP_BY_WARPS
} GPUKSPSharing;

typedef enum {
  GPUKSP_NEEDS_NOTHING,
  GPUKSP_NEEDS_SAMPLE,
  GPUKSP_NEEDS_STENCILS
} GPUKSPNeeds;

/* A row of persistentlist.h, with the same fields */
typedef struct {
  const char               *name;
  const GPUCSRFormatFamily *family;
  GPUKSPSharing             sharing;
  int                       before, moved, offsets;
  GPUKSPNeeds               needs;
} GPUKSPFormat;

GPUCSR_INTERN const GPUKSPFormat  GPUKSPFormats[]; /* the last has no name */
GPUCSR_INTERN const GPUKSPFormat *GPUKSPFormatOf(const GPUCSRFormat *);
GPUCSR_INTERN GPUCSRBool          GPUKSPFormatIsTable(const GPUCSRFormat *);
GPUCSR_INTERN GPUCSRBool          GPUKSPPersistentTakes(const GPUCSRStorage *);

/* A diagonal with the same number in all rows of a stencil; table NULL: none */
typedef struct {
  const uint16_t *id; /* of each row, its stencil */
  const double   *table;
  int             count;
} GPUKSPDiagonals;

/*
  Windows of a vector for the rows of a chunk, if each column is its row plus one of a few offsets: one window for each group of offsets. lo: first element, counted from the chunk's first row. wide:
  number of elements. place: position in shared memory. All numbers are multiples of 16. If the lengths of the grid's lines are too, a warp reads the elements in line with its rows from two rows of banks, not
  three. count is 0 without windows
*/
#define GPUKSP_WINDOWS 5
#define GPUKSP_ALIGN   16
typedef struct {
  int count, lo[GPUKSP_WINDOWS], wide[GPUKSP_WINDOWS], place[GPUKSP_WINDOWS];
  int length; /* of all */
  int own;    /* position of the chunk's own rows */
#if defined(__CUDACC__)
  /* The place of column row + offset, counted from the row in the chunk */
  __host__ __device__ int at(int offset) const
  {
    int a = 0;

    for (int q = 0; q < GPUKSP_WINDOWS; q++)
      if (q < count && offset >= lo[q]) a = place[q] + offset - lo[q];
    return a;
  }
#endif
} GPUKSPWindows;

/* The stencil that most rows have, whole or in part; entries beyond its count are 0 */
#define GPUKSP_COMMON 28
typedef struct {
  double value[GPUKSP_COMMON];
  int    offset[GPUKSP_COMMON], at[GPUKSP_COMMON], count;
} GPUKSPCommon;

/*
  A rank's part in a solve by several ranks, each on its own device: reductions over all ranks, exchanges of vector entries, and the off-diagonal block. Sliced ELL stores the nonempty rows of the block.
  The halo of a vector follows its own entries, from `tail` on. The memory of each rank has slots of sums and an inbox.
*/
#define GPUKSP_PEERS 8 /* ranks at most */
typedef struct {
  int             rank, size;           /* size 0: one rank alone */
  int             before, all;          /* blocks of the ranks before this rank, and of all */
  void           *memory[GPUKSP_PEERS]; /* memory of each rank, at this device's addresses */
  size_t          inbox;                /* its offset in this rank's memory, in bytes */
  int             apart;                /* distance of its two sets of entries, the same on all ranks */
  int             halo, tail;           /* number of halo entries, and their place */
  int             nsend;                /* entries to send, */
  const int      *sendrow;              /* sorted by row, */
  void *const    *sendto;               /* and the destination of each */
  int             rows;                 /* nonempty rows of the off-diagonal block: */
  const int      *row, *slice, *col;    /* their numbers; columns of slices before each; places in a vector, -1: padding */
  const double   *val;
  double         *sums;   /* for each row, to be added by the row's block */
  int             weight; /* cost of a row of the block, in entries */
  GPUCSRPeerWatch watch;
} GPUKSPPeers;

/* A solve in one persistent kernel, launched cooperatively. Vectors are whole, in device memory; vectors that the method does not use are NULL */
typedef struct {
  GPUKSPMethod         method;
  GPUCSRBool           right;        /* side of the preconditioner, BiCGStab */
  GPUCSRBool           trueresidual; /* compute the true residual at the end */
  const GPUCSRStorage *A;
  GPUKSPVectors        v;
  GPUKSPDiagonals      same;
  GPUKSPCommon         common;
  GPUKSPWindows        windows;
  GPUCSRBool           written; /* the direction is written to a vector before the product */
  int                 *bounds;  /* first row of each block, then the end; blocks + 1 */
  int                 *reach;   /* first column of each block, and one past the last; then the same of halo entries, with several ranks; then GPUKSP_HALO_WORDS words of each block */
  GPUCSRBool           halo;    /* halo recomputation: blocks keep their rows and halo in shared memory */
  int                  blocks;  /* set by GPUKSPPersistentShape() */
  GPUCSRBool           cluster; /* the blocks are one cluster, and need no slots */
  size_t               shared;  /* bytes of shared memory of each block, */
  int                  size;    /* and its threads, */
  int                  each;    /* and with halo recomputation the most rows of a block */
  int                  threads; /* that share a row of CSR, or warps that share a slice of 32 rows */
  void                *slots;   /* GPUKSP_SLOT_BYTES for each block, zero before the first kernel */
  unsigned             epoch;   /* of the first reduction, never 0: larger than in all earlier kernels with these slots; */
  unsigned             here;    /* with several ranks: of the first barrier of this rank's blocks alone */
  GPUKSPPeers          peers;
  GPUKSPState         *state; /* page-locked: the initial and then the final state */
} GPUKSPPersistent;

#define GPUKSP_HALO_WORDS  16 /* bit sets of 32 pieces each: the pieces of its range that a block needs (halo.cuh) */
#define GPUKSP_GRID_SUMS   5  /* most sums of a grid-wide reduction */
#define GPUKSP_SLOT_BYTES  (2 * GPUKSP_GRID_SUMS * 16)
#define GPUKSP_STENCILS    1024 /* most stencils with tabulated diagonals */
#define GPUKSP_BLOCKS      1024 /* most blocks of a persistent kernel */
#define GPUKSP_PARTIALS    2048 /* most blocks of a step */
#define GPUKSP_SLOTS_BYTES ((size_t)GPUKSP_SLOT_BYTES * GPUKSP_BLOCKS)

GPUCSR_INTERN GPUCSRError GPUKSPPersistentShape(GPUCSRDevice, GPUKSPPersistent *, GPUCSRBool *possible, char why[], size_t len);
GPUCSR_INTERN GPUCSRError GPUKSPPersistentPartition(const GPUCSRStorage *, int align, int blocks, const GPUKSPPeers *, int *bounds, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUKSPPersistentCommon(const GPUCSRStorage *, GPUKSPCommon *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUKSPPersistentDiagonals(const GPUCSRStorage *, const double *d, double *table, GPUKSPDiagonals *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUKSPPersistentHalo(GPUKSPPersistent *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUKSPPersistentSolve(const GPUKSPPersistent *, GPUCSRStream);

/*
  One step for all rows. partial: GPUKSP_SUMS * GPUKSP_PARTIALS doubles and a counter that starts at 0, in device memory. With a rule, the step applies the rule to the state in device memory, and
  copies the state to *seen once the solve rests. Without a rule the sums go to sums. seen and sums are page-locked.
*/
typedef struct {
  GPUKSPMethod  method;
  int           n;
  double       *partial;
  double       *sums;
  GPUKSPState  *state;
  GPUKSPState  *seen;
  int           blocks;            /* from GPUKSPStepBlocks() */
  GPUCSRBool    rule, first, next; /* apply the rule; the start's rule; the next iteration follows */
  double       *mine;              /* several ranks: sums go here and GPUKSPStepRuleDevice() applies the rule; NULL: one rank */
  int           parts, most;       /* parts of each sum that the product has taken, at every most-th place; 0: the product has not taken the sums */
  const double *part;
  GPUCSRBool    back;  /* from the last row to the first */
  GPUCSRBool    norms; /* tell the host each norm */
} GPUKSPStepArgs;
GPUCSR_INTERN GPUCSRError GPUKSPStepBlocks(GPUCSRDevice, int *);
GPUCSR_INTERN GPUCSRError GPUKSPStepDevice(GPUKSPStep, const GPUKSPVectors *, const GPUKSPStepArgs *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUKSPStepRuleDevice(GPUKSPStep, const GPUCSRPeerSlots *, double *all, int ranks, const GPUKSPStepArgs *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUKSPStepDeviceSingle(GPUKSPStep, const GPUKSPVectorsSingle *, const GPUKSPStepArgs *, GPUCSRStream);

/* Position of value k, of `bytes` each: contiguous, except in bcsr, which interleaves the lanes in pieces of 16 bytes */
GPUCSR_HOST_DEVICE size_t GPUKSPPlace(size_t k, int lane, size_t bytes)
{
  return lane ? (size_t)BCSRPlace((int64_t)(k / lane), (int)(k % lane), lane, BCSR_WIDE(bytes)) : k;
}
GPUCSR_INTERN GPUCSRError GPUKSPRound(size_t, int lane, const double *, float *, GPUCSRStream);
