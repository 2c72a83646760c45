#pragma once

/* Between the part of a persistent kernel that is of any format (persistent.cu) and those that are of one: persistent_FORMAT.cu, a file each, whose code is loaded when it is first needed */
#include "../../../mat/impls/gpucsr/kernels/device.cuh"
#include "persistent.h"

#define MOST_THREADS 1024 /* of a block; a power of two, as many as the shape says */
#define MOST_WARPS   (MOST_THREADS / 32)

/* Blocks of a cluster, which write each other's shared memory: at most that many */
#define CLUSTER 16

/* Rows of a chunk (windows.cuh): so many of each thread */
#define WINDOW_THREADS 512
#define WINDOW_ROWS    2

/* Rows of a thread of CG with halo recomputation in blocks of 512 threads; in those of 1024, one */
#define HALO_ROWS 4

/* Bytes of shared memory beyond which the product's gathers would miss the first-level cache more than vectors gain; measured on an H200 */
#define SHARED_MOST (150 * 1024)

typedef struct {
  /* the solve; or, where possible is given, the most bytes of shared memory that its blocks may have, -1: it cannot be had */
  PetscErrorCode (*run)(const GPUKSPPersistent *, int *possible, GPUCSRStream);
  /* L->reach, of L->bounds */
  PetscErrorCode (*reach)(const GPUKSPPersistent *, GPUCSRStream);
  /* bytes of shared memory that the matrix takes */
  PetscErrorCode (*shared)(const GPUKSPPersistent *, size_t *);
} GPUKSPPersistentProduct;

#define GPUKSP_FORMAT(name, sharing, before, moved, offsets, needs) GPUCSR_INTERN const GPUKSPPersistentProduct GPUKSPPersistent_##name;
#include "persistentlist.h"
#undef GPUKSP_FORMAT
