#pragma once

/* PCGAMG for its wrapper (../mg/pcmg.c) */
#include "../gpuamg/gpuamg.h"

/* A hierarchy, shared by the matrices of its levels */
typedef struct {
  GPUAMG           h;  /* of one rank, or */
  PC               of; /* of several ranks: a PC of type gpuamg with the levels */
  int              references;
  GPUCSRLiving     living;
  Mat              A;       /* the finest matrix, not counted, */
  PetscObjectState pattern; /* and its pattern */
} PCGAMGHierarchy;

/* A level of it; 0 is the finest */
typedef struct {
  PetscInt            n, ns; /* rows of this rank, near null vectors, */
  const GPUCSRBuffer *basis; /* and these */
  double              lambda;
} PCGAMGLevel;

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
  PetscBool         whole;      /* prolongator and coarse matrix come from the hierarchy */
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
GPUCSR_INTERN GPUCSRDevice   PCGAMGHierarchyDevice_Private(const PCGAMGHierarchy *);
GPUCSR_INTERN int            PCGAMGHierarchyLevels_Private(const PCGAMGHierarchy *);
GPUCSR_INTERN PCGAMGLevel    PCGAMGHierarchyLevel_Private(const PCGAMGHierarchy *, int l);
GPUCSR_INTERN PetscErrorCode PCGAMGKept_Private(PC, PetscBool *);
GPUCSR_INTERN PetscErrorCode PCGAMGKeepP_Private(PC, PCGAMGData *, int l, Mat *);
GPUCSR_INTERN PetscErrorCode PCGAMGKeepA_Private(PC, PCGAMGData *, int l, Mat *);
GPUCSR_INTERN PetscErrorCode PCGAMGRefresh_Private(PC, PetscBool *done);

/* ranks.c */
GPUCSR_INTERN PetscErrorCode PCGAMGRanksMake_Private(PC, Mat, const GPUAMGOptions *, const double *near, PCGAMGData *);
GPUCSR_INTERN PetscErrorCode PCGAMGRanksRenew_Private(PC, PCGAMGHierarchy *);
