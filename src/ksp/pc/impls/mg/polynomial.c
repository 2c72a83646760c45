/*
  The steps of a smoother. PETSc hides the bounds of KSPCHEBYSHEV and the scale of KSPRICHARDSON, in a different place in each release. So this file runs the method's own loop on three numbers,
  A = diag(0, -t, -2t) and M = 1, for one step, two, and so on. (Smoothers do not damp negative eigenvalues, so the numbers grow and lose no digits.) If a step is d = ca d + cb M (b - A x), x += d,
  the first two rows determine its ca and cb. The third row checks the result. The check fails for other methods, and for Richardson with its own scale.
*/
#include "../petscprivate.h"
#include "cycle.h"

#define ROWS 3

/* Relative tolerance for the third row: the equations lose some digits with each step; another method differs in the first digit */
#define ALIKE 1e-8

/* The solve for the method's loop */
typedef struct {
  PC                 pc;
  Vec                x, b, *work;
  PetscInt           its, maxit;
  PetscReal          rnorm, *hist;
  PetscBool          guesszero;
  KSPConvergedReason reason;
} Solve;

static Solve Exchange(KSP ksp, Solve s)
{
  const Solve old = {ksp->pc, ksp->vec_sol, ksp->vec_rhs, ksp->work, ksp->its, ksp->max_it, ksp->rnorm, ksp->res_hist, ksp->guess_zero, ksp->reason};

  ksp->pc         = s.pc;
  ksp->vec_sol    = s.x;
  ksp->vec_rhs    = s.b;
  ksp->work       = s.work;
  ksp->its        = s.its;
  ksp->max_it     = s.maxit;
  ksp->rnorm      = s.rnorm;
  ksp->res_hist   = s.hist;
  ksp->guess_zero = s.guesszero;
  ksp->reason     = s.reason;
  return old;
}

/* x after 1, 2, ... steps from 0 with b = 1 */
static PetscErrorCode After(KSP ksp, PetscInt steps, const Solve *small, PetscScalar x[])
{
  Solve              s = *small;
  const PetscScalar *a;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  s.maxit = steps;
  PetscCall(VecSet(s.x, 0.0));
  s    = Exchange(ksp, s);
  ierr = (*ksp->ops->solve)(ksp);
  (void)Exchange(ksp, s);
  PetscCall(ierr);
  PetscCall(VecGetArrayRead(small->x, &a));
  PetscCall(PetscArraycpy(x, a, ROWS));
  PetscCall(VecRestoreArrayRead(small->x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Steps(KSP ksp, Mat A, const Solve *small, GPUMGSmoother *m, PetscBool *good)
{
  PetscScalar x[ROWS], next[ROWS], lambda[ROWS] = {0, 0, 0}, d[ROWS] = {0, 0, 0};
  double      ca, cb;

  PetscFunctionBegin;
  PetscCall(After(ksp, 1, small, x));
  *good = (PetscBool)(x[0] != 0.0 && PetscIsNormalScalar(x[0]));
  if (!*good) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt i = 1; i < ROWS; i++) {
    lambda[i] = -(PetscReal)i / (2.0 * x[0]);
    PetscCall(MatSetValue(A, i, i, lambda[i], INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscArrayzero(x, ROWS));
  for (int k = 0; k < m->steps && *good; k++) {
    PetscScalar r[ROWS];

    PetscCall(After(ksp, k + 1, small, next));
    for (int i = 0; i < ROWS; i++) r[i] = 1.0 - lambda[i] * x[i];
    if (k) {
      const PetscScalar det = d[0] * r[1] - d[1] * r[0];

      ca = (double)PetscRealPart(((next[0] - x[0]) * r[1] - (next[1] - x[1]) * r[0]) / det);
      cb = (double)PetscRealPart((d[0] * (next[1] - x[1]) - d[1] * (next[0] - x[0])) / det);
    } else {
      ca = 0;
      cb = (double)PetscRealPart(next[0]);
    }
    for (int i = 0; i < ROWS; i++) {
      d[i] = ca * d[i] + cb * r[i];
      if (!(PetscAbsScalar(x[i] + d[i] - next[i]) <= ALIKE * PetscAbsScalar(next[0]))) *good = PETSC_FALSE;
      d[i] = next[i] - x[i];
      x[i] = next[i];
    }
    m->step[k] = (GPUMGStep){ca, cb};
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads the steps of a KSP after its set-up; good: at most GPUMG_STEPS polynomial steps */
PetscErrorCode GPUMGPolynomial(KSP ksp, GPUMGSmoother *m, PetscBool *good)
{
  Mat            A;
  Solve          small;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *good = (PetscBool)(ksp->max_it >= 0 && ksp->max_it <= GPUMG_STEPS);
  if (!*good) PetscFunctionReturn(PETSC_SUCCESS);
  m->steps    = (int)ksp->max_it;
  m->fromzero = ksp->guess_zero;
  if (!m->steps) PetscFunctionReturn(PETSC_SUCCESS);
  /* a small solve for a method with so many work vectors */
  PetscCall(PetscMemzero(&small, sizeof(small)));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, ROWS, ROWS, NULL, &A));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(PCCreate(PETSC_COMM_SELF, &small.pc));
  PetscCall(PCSetType(small.pc, PCNONE));
  PetscCall(PCSetOperators(small.pc, A, A));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, ROWS, &small.x));
  PetscCall(VecDuplicate(small.x, &small.b));
  PetscCall(VecSet(small.b, 1.0));
  PetscCall(VecDuplicateVecs(small.x, PetscMax(1, ksp->nwork), &small.work));
  small.guesszero = PETSC_TRUE;
  ierr            = Steps(ksp, A, &small, m, good);
  PetscCall(VecDestroyVecs(PetscMax(1, ksp->nwork), &small.work));
  PetscCall(VecDestroy(&small.x));
  PetscCall(VecDestroy(&small.b));
  PetscCall(PCDestroy(&small.pc));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(ierr);
}
