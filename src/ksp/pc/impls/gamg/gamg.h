#pragma once

/* PCGAMG for its wrapper (../mg/pcmg.c) */
#include "../gpuamg/gpuamg.h"

/* Of a PC. The first four are private data of PETSc's type agg, read from the same options and functions */
typedef struct {
  PetscInt         nsmooths;   /* steps of the prolongator's smoother */
  PetscInt         aggressive; /* number of levels with larger aggregates */
  PetscInt         distance;   /* on these levels the roots of aggregates are further apart than `distance`, */
  PetscBool        squared;    /* or, if true, than 2 */
  PetscInt         steps;      /* of the device's eigenvalue estimates */
  const char      *special;    /* the last called function with PETSc's aggregates only */
  PetscBool        fresh;      /* no level has been made since the set-up began */
  char             why[320];   /* reason for PETSc's aggregates; empty: no reason, or a matrix of another type */
  PC               levels;     /* of type gpuamg: levels on the devices; NULL: none */
  PetscInt         made;       /* so many prolongators are from there */
  PetscObjectState pattern;    /* of the finest matrix */
  PetscBool        kept;       /* levels stay on the devices alone */
  double          *near;       /* the near null space of the level below the last prolongator, by rows */
  struct {
    Mat P, C;
  } next[GPUAMG_LEVELS]; /* of each level until PETSc takes them: the prolongator, and the coarser matrix unless PETSc makes it */
} PCGAMGData;

GPUCSR_INTERN PetscErrorCode PCGAMGDataOf_Private(PC, PCGAMGData **); /* pcmg.c */
GPUCSR_INTERN PetscErrorCode PCGAMGIntercept_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGAggregates_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGRelease_Private(PCGAMGData *, PetscBool all);
GPUCSR_INTERN PetscErrorCode PCGAMGRefresh_Private(PC, PetscBool *done); /* values.c */
