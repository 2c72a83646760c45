#pragma once

/* What the device side of the solvers offers to the host side: persistent kernels, which are whole solves, and kernels of single steps */
#include "../../../mat/impls/gpucsr/format/bcsr.h"
#include "../../../sys/peer.h"
#include "vectors.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum {
  GPUKSP_BY_LANES,
  GPUKSP_BY_WARPS
} GPUKSPSharing;

typedef enum {
  GPUKSP_NEEDS_NOTHING,
  GPUKSP_NEEDS_SAMPLE,
  GPUKSP_NEEDS_STENCILS
} GPUKSPNeeds;

/* A row of persistentlist.h, which explains it */
typedef struct {
  const char               *name;
  const GPUCSRFormatFamily *family;
  GPUKSPSharing             sharing;
  int                       before, moved, offsets;
  GPUKSPNeeds               needs;
} GPUKSPFormat;

GPUCSR_INTERN const GPUKSPFormat  GPUKSPFormats[]; /* the last has no name */
GPUCSR_INTERN const GPUKSPFormat *GPUKSPFormatOf(const GPUCSRFormat *);
GPUCSR_INTERN PetscBool           GPUKSPFormatIsTable(const GPUCSRFormat *);
GPUCSR_INTERN PetscBool           GPUKSPPersistentTakes(const GPUCSRStorage *);

/* A diagonal that is the same in all rows of a stencil; table is NULL where it is not */
typedef struct {
  const uint16_t *id; /* of each row, its stencil */
  const double   *table;
  int             count;
} GPUKSPDiagonals;

/*
  What the rows of a chunk need of a vector, where columns are rows and a few offsets: windows, each of a group of offsets. lo: its first element counted from the chunk's first row, wide: how many,
  place: where it is in shared memory, all multiples of 16: where the lines of a grid are, too, a warp then reads what is in line with its rows from two rows of banks, not three, which an iteration on
  grids of 27 points feels by 8 %. count is 0 where there are none
*/
#define GPUKSP_WINDOWS 5
#define GPUKSP_ALIGN   16
typedef struct {
  int count, lo[GPUKSP_WINDOWS], wide[GPUKSP_WINDOWS], place[GPUKSP_WINDOWS];
  int length; /* of all */
  int own;    /* where the chunk's own rows are */
#if defined(__CUDACC__)
  /* The place of the column that is row + offset, counted from the row in the chunk */
  __host__ __device__ int at(int offset) const
  {
    int a = 0;

    for (int q = 0; q < GPUKSP_WINDOWS; q++)
      if (q < count && offset >= lo[q]) a = place[q] + offset - lo[q];
    return a;
  }
#endif
} GPUKSPWindows;

/* The stencil that most rows have whole or in part; entries beyond its count are 0 */
#define GPUKSP_COMMON 28
typedef struct {
  double value[GPUKSP_COMMON];
  int    offset[GPUKSP_COMMON], at[GPUKSP_COMMON], count;
} GPUKSPCommon;

/*
  What a rank has to do with those that solve with it, each on its own device: reductions over all of them, entries of vectors that cross, and the off-diagonal block of its rows, of which those that have
  entries there are stored, as sliced ELL. A vector has others' entries behind its own, from `tail` on. In the memory of each rank are slots of sums, and an inbox.
*/
#define GPUKSP_PEERS 8 /* ranks at most */
typedef struct {
  int             rank, size;           /* size 0: there are no others */
  int             before, all;          /* blocks of the ranks before this one, and of all */
  void           *theirs[GPUKSP_PEERS]; /* their memory, as this device addresses it */
  size_t          inbox;                /* where it begins in this rank's, in bytes */
  int             halo, tail;           /* entries that are others', and their place */
  int             nsend;                /* entries that others need, */
  const int      *sendrow;              /* by row, */
  void *const    *sendto;               /* and where each goes */
  int             rows;                 /* of the off-diagonal block that have entries: */
  const int      *row, *slice, *col;    /* which they are; columns of slices before each; places in a vector, -1: nothing */
  const double   *val;
  int             weight; /* of such a row, in entries */
  GPUCSRPeerWatch watch;
} GPUKSPPeers;

/* A solve in one persistent kernel, launched cooperatively. Vectors are whole, in device memory; those that the method has no use for are NULL */
typedef struct {
  GPUKSPMethod         method;
  PetscBool            right; /* side of the preconditioner, BiCGStab */
  PetscBool            guard; /* take the true residual at the end */
  const GPUCSRStorage *A;
  GPUKSPVectors        v;
  GPUKSPDiagonals      same;
  GPUKSPCommon         common;
  GPUKSPWindows        windows;
  PetscBool            written; /* the direction is a vector that is written before it is multiplied with */
  int                 *bounds;  /* first row of each block, and the end; blocks + 1 */
  int                 *reach;   /* first column of each block, and the end */
  PetscBool            halo;    /* blocks keep all that their rows need in shared memory, and recompute what is not theirs */
  int                  blocks;  /* as GPUKSPPersistentShape() said */
  PetscBool            cluster; /* they are one cluster, and need no slots */
  size_t               shared;  /* bytes of each block, */
  int                  size;    /* and threads */
  int                  threads; /* that share a row of CSR, or warps that share a slice of 32 rows */
  void                *slots;   /* GPUKSP_SLOT_BYTES for each block, zero before the first kernel */
  unsigned             epoch;   /* of its first reduction, never 0: beyond those of all kernels before with these slots; */
  unsigned             here;    /* where there are peers, of the first reduction of this rank's blocks alone */
  GPUKSPPeers          peers;
  GPUKSPState         *state; /* page-locked: what to start from, and what it ended with */
} GPUKSPPersistent;

#define GPUKSP_GRID_SUMS   5 /* sums of a grid-wide reduction at most */
#define GPUKSP_SLOT_BYTES  (2 * GPUKSP_GRID_SUMS * 16)
#define GPUKSP_STENCILS    1024 /* whose diagonals are kept apart, at most */
#define GPUKSP_BLOCKS      1024 /* of a persistent kernel at most */
#define GPUKSP_PARTIALS    2048 /* blocks of a step at most */
#define GPUKSP_SLOTS_BYTES ((size_t)GPUKSP_SLOT_BYTES * GPUKSP_BLOCKS)

GPUCSR_INTERN PetscErrorCode GPUKSPPersistentShape(GPUCSRDevice, GPUKSPPersistent *, PetscBool *possible, char why[], size_t len);
GPUCSR_INTERN PetscErrorCode GPUKSPPersistentPartition(const GPUCSRStorage *, int align, int blocks, const GPUKSPPeers *, int *bounds, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUKSPPersistentCommon(const GPUCSRStorage *, GPUKSPCommon *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUKSPPersistentDiagonals(const GPUCSRStorage *, const double *d, double *table, GPUKSPDiagonals *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUKSPPersistentHalo(GPUKSPPersistent *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUKSPPersistentClear(void *, size_t, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUKSPPersistentSolve(const GPUKSPPersistent *, GPUCSRStream);

/*
  One step for all rows. partial: GPUKSP_SUMS * GPUKSP_PARTIALS doubles and a counter that starts at 0, of device memory. With a rule the state, in
  device memory then, goes through it, and *seen gets a copy of it once the solve rests; without, the sums go to sums. Both are page-locked.
*/
typedef struct {
  GPUKSPMethod method;
  int          n;
  double      *partial;
  double      *sums;
  GPUKSPState *state;
  GPUKSPState *seen;
  int          blocks;            /* as GPUKSPStepBlocks() said */
  PetscBool    rule, first, next; /* apply the rule; it is that of the start; the next iteration follows from it */
} GPUKSPStepArgs;
GPUCSR_INTERN PetscErrorCode GPUKSPStepBlocks(GPUCSRDevice, int *);
GPUCSR_INTERN PetscErrorCode GPUKSPStepDevice(GPUKSPStep, const GPUKSPVectors *, const GPUKSPStepArgs *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUKSPStepDeviceSingle(GPUKSPStep, const GPUKSPVectorsSingle *, const GPUKSPStepArgs *, GPUCSRStream);

/* Where value k lies, of bytes each: one behind the other, but in bcsr, whose lanes have theirs in pieces of 16 bytes */
GPUCSR_HOST_DEVICE size_t GPUKSPPlace(size_t k, int lane, size_t bytes)
{
  return lane ? (size_t)BCSRPlace((int64_t)(k / lane), (int)(k % lane), lane, BCSR_WIDE(bytes)) : k;
}
GPUCSR_INTERN PetscErrorCode GPUKSPRound(size_t, int lane, const double *, float *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUKSPStepReset(double *partial, GPUCSRStream);

typedef void                *GPUKSPGraph;
GPUCSR_INTERN PetscErrorCode GPUKSPGraphBegin(GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUKSPGraphEnd(GPUCSRStream, GPUKSPGraph *);
GPUCSR_INTERN PetscErrorCode GPUKSPGraphLaunch(GPUKSPGraph, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUKSPGraphDestroy(GPUKSPGraph *);

#if defined(__cplusplus)
}
#endif
