#pragma once

/* PCGAMG as its wrapper sees it (../mg/pcmg.c) */
#include "../gpuamg/gpuamg.h"

/* Of a PC. The first four are private data of PETSc's type agg, read from the same options and functions */
typedef struct {
  PetscInt          nsmooths;   /* steps of the prolongator's smoother */
  PetscInt          aggressive; /* levels with larger aggregates, */
  PetscInt          distance;   /* whose roots are further apart than this, */
  PetscBool         squared;    /* or than 2 */
  const char       *special;    /* the last function called that needs PETSc's aggregates */
  PetscBool         fresh;      /* no level has been made since the set-up began */
  PetscBool         ours;       /* the device aggregates the next level */
  PetscInt          levels;     /* so many have been aggregated there */
  char              why[320];   /* reason for PETSc's aggregates; empty: there is none, or the matrix has another type */
  PCGPUAMGTentative t;          /* tentative prolongator of the present level; without rows: PETSc makes one, or */
  PetscBool         whole;      /* prolongator and coarse matrix come from this hierarchy of one rank */
  GPUAMG            h;
} PCGAMGData;

GPUCSR_INTERN PetscErrorCode PCGAMGDataOf_Private(PC, PCGAMGData **); /* pcmg.c */
GPUCSR_INTERN PetscErrorCode PCGAMGIntercept_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGSetFromOptions_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGAggregates_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGRelease_Private(PCGAMGData *);
