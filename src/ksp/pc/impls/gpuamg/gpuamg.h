#pragma once

/* PCGPUAMG for solvers, PCGAMG and the registration */
#include <petscpc.h>
#include "../../../../mat/impls/gpucsr/blackbox/amg/amg.h"
#include "../mg/cycle.h"

/* Levels on the devices: how many matrices, and prolongators of these. dev NULL: the device has gone, and the levels with it */
typedef struct {
  GPUCSRDevice dev;
  int          levels, prolongators;
} PCGPUAMGLevels;

/* A level; 0 is the finest */
typedef struct {
  PetscInt            n, ns; /* rows of this rank, near null vectors, */
  const GPUCSRBuffer *basis; /* and these */
  double              lambda;
} PCGPUAMGLevel;

/* levels.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGLevelsCreate_Private(Mat, const GPUAMGOptions *, PetscInt least, PetscInt ns, double *near, PC *);
GPUCSR_INTERN PCGPUAMGLevels PCGPUAMGLevelsOf_Private(PC);
GPUCSR_INTERN PCGPUAMGLevel  PCGPUAMGLevelOf_Private(PC, int l);
GPUCSR_INTERN PetscErrorCode PCGPUAMGLevelsRefresh_Private(PC, PetscBool estimates, PetscBool *good);
GPUCSR_INTERN PetscErrorCode PCGPUAMGLevelMat_Private(PC, int l, PetscBool prolongator, Mat *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGLevelIs_Private(PC, int l, PetscBool prolongator, Mat, PetscBool *);

GPUCSR_INTERN PetscErrorCode PCGPUAMGCycleGet_Private(PC, GPUMGCycle **, PetscInt *version);
GPUCSR_INTERN PetscErrorCode PCGPUAMGFlexible_Private(PC, PetscBool *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGInitialize_Private(void);
