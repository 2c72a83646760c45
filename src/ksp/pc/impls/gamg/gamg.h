#pragma once

/* PCGAMG for its wrapper (../mg/pcmg.c) */
#include "../gpuamg/gpuamg.h"

/* A hierarchy of one rank, shared by the matrices of its levels */
typedef struct {
  GPUAMG           h;
  int              references;
  GPUCSRLiving     living;
  Mat              A;       /* the finest matrix, not counted, */
  PetscObjectState pattern; /* and its pattern */
} PCGAMGHierarchy;

/* Of a PC. The first four are private data of PETSc's type agg, read from the same options and functions */
typedef struct {
  PetscInt          nsmooths;   /* steps of the prolongator's smoother */
  PetscInt          aggressive; /* number of levels with larger aggregates */
  PetscInt          distance;   /* on these levels the roots of aggregates are further apart than `distance`, */
  PetscBool         squared;    /* or, if true, than 2 */
  const char       *special;    /* the last called function with PETSc's aggregates only */
  PetscBool         fresh;      /* no level has been made since the set-up began */
  PetscBool         ondevice;   /* the device aggregates the next level */
  PetscInt          levels;     /* so many have been aggregated there */
  char              why[320];   /* reason for PETSc's aggregates; empty: no reason, or a matrix of another type */
  PCGPUAMGTentative t;          /* tentative prolongator of the present level; without rows: PETSc makes a prolongator, or whole is true */
  PetscBool         whole;      /* prolongator and coarse matrix come from h, the hierarchy of one rank */
  PetscBool         kept;       /* levels stay on the device alone */
  PCGAMGHierarchy  *shared;
  struct {
    Mat     P, C;
    double *near;
  } next[GPUAMG_LEVELS]; /* with whole, of each level until PETSc takes them: the prolongator, the coarser matrix and the near null space of that */
} PCGAMGData;

GPUCSR_INTERN PetscErrorCode PCGAMGDataOf_Private(PC, PCGAMGData **); /* pcmg.c */
GPUCSR_INTERN PetscErrorCode PCGAMGIntercept_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGSetFromOptions_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGAggregates_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGRelease_Private(PCGAMGData *, PetscBool all);

/* kept.c */
GPUCSR_INTERN PetscErrorCode PCGAMGHierarchyCreate_Private(PCGAMGData *);
GPUCSR_INTERN PetscErrorCode PCGAMGHierarchyRelease_Private(PCGAMGData *);
GPUCSR_INTERN PetscErrorCode PCGAMGKept_Private(PC, PetscBool *);
GPUCSR_INTERN PetscErrorCode PCGAMGKeepP_Private(PC, PCGAMGData *, int l, Mat *);
GPUCSR_INTERN PetscErrorCode PCGAMGKeepA_Private(PC, PCGAMGData *, int l, Mat *);
GPUCSR_INTERN PetscErrorCode PCGAMGRefresh_Private(PC, PetscBool *done);
