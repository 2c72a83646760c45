#pragma once

/*
  Shared by the files of KSPGPUGMRES and KSPGPUFGMRES. All solvers share gpukspimpl.h. The files:

    gpugmres.c    the types, their options and pages
    gmres.c       a solve: cycles, the Hessenberg matrix and its rotations, tests
    gmressteps.c  the device's side of a cycle: products, preconditioners, passes (gmres.h)
*/
#include "../common/gpukspimpl.h"
#include "gmres.h"

/* Slots, vectors besides x, b and the bases: the input of a product, its result, and the preconditioner's result */
enum {
  GMRES_DIRECTION = VEC_P,
  GMRES_PRODUCT   = VEC_W,
  GMRES_RESULT    = VEC_Z
};

typedef struct {
  KSP_GPU k; /* must be first: common to all solvers */
  /* options */
  PetscBool                 flexible;
  PetscInt                  restart;
  PetscReal                 haptol, breakdowntol;
  KSPGMRESCGSRefinementType refinement;
  PetscBool                 preallocate;
  PetscErrorCode (*orthogonalize)(KSP, PetscInt);                       /* unless classical Gram-Schmidt, PETSc's type solves */
  PetscErrorCode (*modify)(KSP, PetscInt, PetscInt, PetscReal, void *); /* KSPFGMRESSetModifyPC() is not supported */
  void *modifyctx;
  void (*modifydestroy)(void);

  /* the device's side. n rows, columns for m directions */
  int            m;
  size_t         stride;
  double        *basis, *flexiblebasis, *x, *b;
  GPUCSRBuffer   statememory, partial;
  GPUGMRESState *state, *mirror; /* mirror: page-locked, as are */
  double        *seen, *sums;
  void          *locked;
  int            most;               /* blocks of a pass */
  PetscInt       column;             /* of the iteration that is launched */
  PetscInt       launched, replayed; /* iterations launched kernel by kernel, and as a graph */

  /* the Hessenberg matrix, rotated: columns of m + 2; rotations; right-hand side; norms of basis vectors. y: coefficients of a solution; pageable, so a copy call reads y before it returns, and y may be overwritten */
  PetscReal *hessenberg, *cosine, *sine, *rhs, *norm, *y;
  int        room;   /* columns allocated, here and in page-locked memory */
  PetscInt   it;     /* columns not yet added to x; 0: x is complete */
  PetscReal  rnorm0; /* at the start of the cycle */
  Vec        built;  /* x, for a KSPBuildSolution() without a vector */
} KSP_GPUGMRES;

/* gpugmres.c */
GPUCSR_INTERN PetscErrorCode KSPCreate_GPUGMRES(KSP);
GPUCSR_INTERN PetscErrorCode KSPCreate_GPUFGMRES(KSP);

/* gmres.c */
GPUCSR_INTERN PetscErrorCode GPUGMRESPrepare(KSP, KSP_GPU *, char why[]);
GPUCSR_INTERN PetscErrorCode KSPSolve_GPUGMRES(KSP, KSP_GPU *, char why[]);
GPUCSR_INTERN PetscErrorCode KSPBuildSolution_GPUGMRES(KSP, Vec, Vec *);

/* gmressteps.c */
GPUCSR_INTERN PetscErrorCode GPUGMRESMemory(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUGMRESRelease(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUGMRESStart(KSP, KSP_GPUGMRES *, PetscBool zero);
GPUCSR_INTERN PetscErrorCode GPUGMRESLaunch(KSP, KSP_GPUGMRES *, PetscInt it);
GPUCSR_INTERN PetscErrorCode GPUGMRESWait(KSP_GPUGMRES *, PetscInt it, const double **column);
GPUCSR_INTERN PetscErrorCode GPUGMRESCombine(KSP, KSP_GPUGMRES *, PetscInt it, double *out);
