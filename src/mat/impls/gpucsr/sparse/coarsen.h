#pragma once

/*
  Aggregates of the vertices of a graph that is a matrix of type seqaijgpucsr, and what a caller asks of a coarsener. Found by coarsen.c; PCGAMG's hook (src/ksp/pc/impls/gamg/aggregates.c) uses them
  without PETSc's lists.
*/
#include <petscgpucsr.h>
#include "../../../../sys/gpucsrsys.h"

/* The members of aggregate q are member[first[q]] to member[first[q + 1] - 1]; the first of them is the root where PETSc lists them at the root's place (atroot), else the lists are at 0, 1, ... */
typedef struct {
  int       n, count;
  int32_t  *first, *member;
  PetscBool atroot;
} GPUCSRAggregates;

/* What is asked of a coarsener */
typedef struct {
  PetscInt  k;       /* of MATCOARSENMISK, 0: MATCOARSENMIS */
  PetscBool squared; /* the set is independent in the square of the graph, whose aggregates become those of the graph */
} GPUCSRCoarsening;

/* Filled in by our coarseners when they are applied next, while they leave the graph to PETSc's: who applied them is PETSc, and only it knows what it asks */
typedef struct {
  Mat              graph; /* that was handed to PETSc; another one arrives squared */
  PetscBool        answered;
  GPUCSRCoarsening how;
  PetscInt         first; /* vertex of the order */
} GPUCSRQuestion;

GPUCSR_INTERN PetscErrorCode MatGPUCSRGraphValues_Private(PetscBool read);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCoarsenAsk_Private(GPUCSRQuestion *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCoarsenLeave_Private(PetscBool leave);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCoarsens_Private(Mat, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRAggregates_Private(Mat, const GPUCSRCoarsening *, const PetscInt order[], GPUCSRAggregates *, PetscBool *done);
GPUCSR_INTERN PetscErrorCode GPUCSRAggregatesList(const GPUCSRAggregates *, PetscCoarsenData *);
GPUCSR_INTERN PetscErrorCode GPUCSRAggregatesDestroy(GPUCSRAggregates *);
