#pragma once

/*
  What the files of KSPGPUGMRES and KSPGPUFGMRES share; what they have in common with the other solvers is gpukspimpl.h's:

    gpugmres.c    the types, their options and pages
    gmres.c       a solve: cycles, the Hessenberg matrix and its rotations, tests
    gmressteps.c  the device's side of a cycle: products, preconditioners, passes (gmres.h)
*/
#include "gpukspimpl.h"
#include "gmres.h"

/* Vectors besides x, b and the bases: what a product is with, what it makes, and what the preconditioner makes */
enum {
  GMRES_DIRECTION,
  GMRES_PRODUCT,
  GMRES_RESULT,
  GMRES_SLOTS
};

typedef struct {
  KSP_GPU k; /* first: what all solvers have */
  /* what was asked for */
  PetscBool                 flexible;
  PetscInt                  restart;
  PetscReal                 haptol, breakdowntol;
  KSPGMRESCGSRefinementType refinement;
  PetscBool                 preallocate;
  PetscErrorCode (*orthogonalize)(KSP, PetscInt);                       /* another than the classical one: not ours to do */
  PetscErrorCode (*modify)(KSP, PetscInt, PetscInt, PetscReal, void *); /* nor are changes of the preconditioner */
  void *modifyctx;
  void (*modifydestroy)(void);

  /* the device's side. n rows, columns for m directions */
  int            m;
  PetscBool      several; /* processes: sums are the host's */
  size_t         stride;
  double        *basis, *flexiblebasis, *x, *b;
  GPUKSPMemory   statememory, partial;
  GPUGMRESState *state, *mirror; /* the latter page-locked, and so are */
  double        *seen, *sums, *y;
  void          *locked;
  int            lockedm; /* columns that there is page-locked memory for */
  int            most;    /* blocks of a pass */
  struct {
    Vec       vec; /* NULL: memory of our own */
    double   *p;
    PetscBool out; /* its array is */
  } slot[GMRES_SLOTS];
  PetscInt launched, replayed; /* iterations by their kernels, and by a graph */

  /* the Hessenberg matrix, rotated: columns of m + 2; rotations; right-hand side; norms of basis vectors */
  PetscReal *hessenberg, *cosine, *sine, *rhs, *norm;
  int        room;   /* columns that there is memory for */
  PetscInt   it;     /* columns of which x is to be made; 0: x is complete */
  PetscReal  rnorm0; /* at the start of the cycle */
  Vec        built;  /* x, for somebody who has no vector for it */
} KSP_GPUGMRES;

/* gpugmres.c */
GPUCSR_INTERN PetscErrorCode KSPCreate_GPUGMRES(KSP);
GPUCSR_INTERN PetscErrorCode KSPCreate_GPUFGMRES(KSP);

/* gmres.c */
GPUCSR_INTERN PetscErrorCode KSPSolve_GPUGMRES(KSP);
GPUCSR_INTERN PetscErrorCode KSPBuildSolution_GPUGMRES(KSP, Vec, Vec *);

/* gmressteps.c */
GPUCSR_INTERN PetscErrorCode GPUGMRESMemory(KSP, KSP_GPUGMRES *);
GPUCSR_INTERN PetscErrorCode GPUGMRESSlots(KSP, KSP_GPUGMRES *);
GPUCSR_INTERN PetscErrorCode GPUGMRESSlotsThere(KSP_GPUGMRES *);
GPUCSR_INTERN PetscErrorCode GPUGMRESRelease(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUGMRESStart(KSP, KSP_GPUGMRES *, PetscBool zero);
GPUCSR_INTERN PetscErrorCode GPUGMRESLaunch(KSP, KSP_GPUGMRES *, PetscInt it);
GPUCSR_INTERN PetscErrorCode GPUGMRESWait(KSP_GPUGMRES *, PetscInt it, const double **column);
GPUCSR_INTERN PetscErrorCode GPUGMRESCombine(KSP, KSP_GPUGMRES *, PetscInt it, double *out);
GPUCSR_INTERN PetscErrorCode GPUGMRESBuild(KSP, KSP_GPUGMRES *, PetscInt it, Vec);
