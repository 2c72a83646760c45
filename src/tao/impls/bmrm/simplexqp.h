#pragma once

/*
  Minimises  x'Qx/2 + f'x  over the simplex, x >= 0 and sum x = 1, for a problem that grows by one variable at a time: the dual of the bundle's problem. Each
  solution starts from the previous one.
*/
#include "../../../sys/gpucsrsys.h"

typedef struct {
  PetscInt   n, alloc;  /* variables, and variables allocated */
  PetscReal *Q;         /* symmetric, rows of length alloc */
  PetscReal *f, *x, *g; /* linear term, solution, gradient Qx + f */
  PetscReal  value;     /* at x */
  PetscReal *u, *v;     /* work */
  PetscInt   changes;   /* steps, in all */
  PetscInt   nfree;
  PetscInt  *free;  /* variables that may be positive, in the order of the factor */
  PetscReal *L;     /* Cholesky factor of Q + shift on them, rows of length alloc */
  PetscReal  shift; /* since sum x is fixed it does not change the solution, but makes the matrix definite more often */
} SimplexQP;

GPUCSR_INTERN PetscErrorCode SimplexQPAppend(SimplexQP *, const PetscReal[], PetscReal);
GPUCSR_INTERN PetscErrorCode SimplexQPSolve(SimplexQP *, PetscReal);
GPUCSR_INTERN PetscErrorCode SimplexQPChoose(const SimplexQP *, PetscInt, PetscInt *, PetscInt[], PetscReal[], PetscReal *, PetscBool *);
GPUCSR_INTERN PetscErrorCode SimplexQPKeep(SimplexQP *, PetscInt, const PetscInt[]);
GPUCSR_INTERN PetscErrorCode SimplexQPDestroy(SimplexQP *);
