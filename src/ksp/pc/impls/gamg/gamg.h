#pragma once

/* PCGAMG as its wrapper sees it (../mg/pcmg.c) */
#include "../gpuamg/gpuamg.h"

/* Of a PC. The first four are private data of PETSc's type agg, read from the same options and functions */
typedef struct {
  PetscInt          nsmooths;   /* steps of the prolongator's smoother */
  PetscInt          aggressive; /* levels with larger aggregates, */
  PetscInt          distance;   /* whose roots are further apart than this, */
  PetscBool         squared;    /* or than 2 */
  const char       *special;    /* a function that only PETSc's aggregates serve, and that has been called */
  PetscBool         fresh;      /* no level has been made since the set-up began */
  PetscBool         ours;       /* the device aggregates the next level */
  PetscInt          levels;     /* so many have been aggregated there */
  char              why[320];   /* aggregates are PETSc's; empty: they are not, or the matrix is of another type */
  PCGPUAMGTentative t;          /* tentative prolongator of the level that is being made; without rows: PETSc makes one, or */
  PetscBool         whole;      /* its prolongator and coarse matrix are in this hierarchy of one rank */
  GPUAMG            h;
} PCGAMGData;

GPUCSR_INTERN PetscErrorCode PCGAMGDataOf_Private(PC, PCGAMGData **); /* pcmg.c */
GPUCSR_INTERN PetscErrorCode PCGAMGIntercept_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGSetFromOptions_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGAggregates_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGRelease_Private(PCGAMGData *);
