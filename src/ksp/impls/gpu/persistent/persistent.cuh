#pragma once

/* Between the format-independent part of a persistent kernel (persistent.cu) and the files of the formats (persistent_FORMAT.cu), whose code is loaded on first use */
#include "../../../../mat/impls/gpucsr/blackbox/kernels/device.cuh"
#include "persistent.h"

#define MOST_THREADS 1024 /* of a block; a power of two */
#define MOST_WARPS   (MOST_THREADS / 32)

/* Most blocks of a cluster, which write each other's shared memory */
#define CLUSTER 16

/* Rows of a chunk (windows.cuh): this many a thread */
#define WINDOW_THREADS 512
#define WINDOW_ROWS    2

/* Most rows of a thread with halo recomputation: in blocks of 512 threads; in blocks of 1024, a single row, without instructions for further rows */
#define HALO_ROWS 4
#define HALO_LONG 8 /* entries a row, of one rank: see GPUKSPPersistentHalo() */

/* and most pieces of 32 entries of a block */
#define HALO_WORDS  GPUKSP_HALO_WORDS
#define HALO_PIECES (32 * HALO_WORDS)

/* With more bytes of shared memory, first-level cache misses cost the product's gathers more than the vectors gain */
#define SHARED_MOST (150 * 1024)

typedef struct {
  /* runs the solve; or, if possible is given, returns there the most bytes of shared memory for its blocks, -1: the kernel cannot run */
  GPUCSRError (*run)(const GPUKSPPersistent *, int *possible, GPUCSRStream);
  /* fills in L->reach from L->bounds */
  GPUCSRError (*reach)(const GPUKSPPersistent *, GPUCSRStream);
  /* bytes of shared memory for the matrix */
  GPUCSRError (*shared)(const GPUKSPPersistent *, size_t *);
} GPUKSPPersistentProduct;

#define GPUKSP_FORMAT(name, sharing, before, moved, offsets, needs) GPUCSR_INTERN const GPUKSPPersistentProduct GPUKSPPersistent_##name;
#include "persistentlist.h"
#undef GPUKSP_FORMAT
