/*
  New values of a PCGAMG whose levels stay on the devices alone: with old prolongators they are numeric phases of the devices' levels, and PETSc's products below these.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "gamg.h"

/* Level l of the hierarchy in PETSc's order */
static PC_MG_Levels *LevelOf(PC pc, int l)
{
  const PC_MG *mg = (const PC_MG *)pc->data;

  return mg->levels[mg->nlevels - 1 - l];
}

/* Does PETSc estimate eigenvalues of new values? Not before it had the function. The option is the only way that tells its answer */
static PetscErrorCode Estimates(PC pc, PetscBool *yes)
{
  PetscErrorCode (*set)(PC, PetscBool) = NULL;

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)pc, "PCGAMGSetRecomputeEstEig_C", &set));
  *yes = (PetscBool)(set != NULL);
  PetscCall(PetscOptionsGetBool(((PetscObject)pc)->options, ((PetscObject)pc)->prefix, "-pc_gamg_recompute_esteig", yes, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do Chebyshev's bounds stay for the new eigenvalue? Bounds allow for an eigenvalue that is a tenth larger. old 0: PETSc makes new bounds */
static PetscBool Bounded(double lambda, double old)
{
  return (PetscBool)(!(old > 0) || (lambda < 1.05 * old && lambda > 0.8 * old));
}

/* The levels of the new values. good false (a zero on the diagonal, no numbers, other eigenvalues): PETSc makes new products of old prolongators */
static PetscErrorCode Numeric(PC pc, PCGAMGData *d, PetscBool *good)
{
  const PC_MG *mg = (const PC_MG *)pc->data;
  PetscBool    estimates;

  PetscFunctionBegin;
  PetscCall(Estimates(pc, &estimates));
  PetscCall(PCGPUAMGLevelsRefresh_Private(d->levels, estimates, good));
  for (int l = 0; l + 1 < PCGPUAMGLevelsOf_Private(d->levels).levels && estimates; l++) *good = (PetscBool)(*good && Bounded(PCGPUAMGLevelOf_Private(d->levels, l).lambda, (double)mg->max_eigen_DinvA[l]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: tells PETSc of the new values, and makes its products with old prolongators below the devices' levels */
static PetscErrorCode Renew(PC pc, PC levels)
{
  const PC_MG *mg   = (const PC_MG *)pc->data;
  const int    last = PCGPUAMGLevelsOf_Private(levels).levels - 1;
  Mat          A, P;

  PetscFunctionBegin;
  for (int l = 0; l <= last; l++) {
    PetscCall(KSPGetOperators(LevelOf(pc, l)->smoothd, &A, &P));
    if (l == last) { /* which PETSc has on the host */
      PetscErrorCode ierr;
      Mat            now;

      PetscCall(PCGPUAMGLevelMat_Private(levels, PCGPUAMGLevelsOf_Private(levels).levels - 1, PETSC_FALSE, &now));
      ierr = MatGPUCSRLevelBecome_Private(now);
      GPUCSRKeep(&ierr, MatCopy(now, P, SAME_NONZERO_PATTERN));
      PetscCall(MatDestroy(&now));
      PetscCall(ierr);
    } else if (l) PetscCall(PetscObjectStateIncrease((PetscObject)P));
    if (l) PetscCall(MatPropagateSymmetryOptions(pc->pmat, P));
    PetscCall(KSPSetOperators(LevelOf(pc, l)->smoothd, A, P));
  }
  for (int l = last; l + 1 < mg->nlevels; l++) {
    const Mat     interpolate = LevelOf(pc, l)->interpolate;
    PC_MG_Levels *coarse      = LevelOf(pc, l + 1);
    PetscBool     same;

    PetscCall(KSPGetOperators(LevelOf(pc, l)->smoothd, NULL, &A));
    PetscCall(KSPGetOperators(coarse->smoothd, NULL, &P));
    same = (PetscBool)(P->product && P->product->A == A && P->product->B == interpolate);
    if (!same) PetscCall(MatDestroy(&coarse->A));
    PetscCall(MatPtAP(A, interpolate, same ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &P));
    if (!same) coarse->A = P;
    PetscCall(KSPSetOperators(coarse->smoothd, P, P));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do Chebyshev's bounds of levels below the devices' stay for the new values? */
static PetscErrorCode Below(PC pc, PetscBool *good)
{
  const PC_MG *mg = (const PC_MG *)pc->data;
  PCGAMGData  *d;
  PetscBool    estimates;
  PetscReal    lambda;
  Mat          A;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  PetscCall(Estimates(pc, &estimates));
  for (int l = PCGPUAMGLevelsOf_Private(d->levels).levels - 1; l + 1 < mg->nlevels && estimates && *good; l++) {
    PetscBool known, spd;
    PetscReal least;
    Vec       b, x;
    KSP       ksp;
    PC        jacobi;

    if (!(mg->max_eigen_DinvA[l] > 0)) continue;
    PetscCall(KSPGetOperators(LevelOf(pc, l)->smoothd, NULL, &A));
    /* the largest eigenvalue of a level that PETSc has made, by the method of its set-up */
    PetscCall(MatIsSPDKnown(pc->pmat, &known, &spd));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecSetRandom(b, NULL));
    PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
    PetscCall(KSPSetType(ksp, known && spd ? KSPCG : KSPGMRES));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPGetPC(ksp, &jacobi));
    PetscCall(PCSetType(jacobi, PCJACOBI));
    PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
    PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 10));
    PetscCall(KSPSetComputeSingularValues(ksp, PETSC_TRUE));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPComputeExtremeSingularValues(ksp, &lambda, &least));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    *good = Bounded((double)lambda, (double)mg->max_eigen_DinvA[l]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Levels come to the host before PETSc's products of old prolongators, inside which an error would leave memory allocated */
static PetscErrorCode Become(PC pc)
{
  const PC_MG *mg = (const PC_MG *)pc->data;
  Mat          A;

  PetscFunctionBegin;
  for (int l = 0; l + 1 < mg->nlevels; l++) {
    PetscCall(MatGPUCSRLevelBecome_Private(LevelOf(pc, l)->interpolate));
    PetscCall(KSPGetOperators(LevelOf(pc, l + 1)->smoothd, NULL, &A));
    PetscCall(MatGPUCSRLevelBecome_Private(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before PETSc's set-up. done: levels have new values. After an error PETSc's set-up makes a new hierarchy */
PetscErrorCode PCGAMGRefresh_Private(PC pc, PetscBool *done)
{
  PCGAMGData    *d;
  GPUCSRAttempt  attempt = {0};
  const PC_MG   *mg      = (const PC_MG *)pc->data;
  const PC_GAMG *g       = (const PC_GAMG *)mg->innerctx;
  PCGPUAMGLevels of;
  int            all;
  Mat            A;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  /* does PETSc have the matrices of the devices, does it keep prolongators, and has only their finest matrix new values? */
  of    = d->levels ? PCGPUAMGLevelsOf_Private(d->levels) : (PCGPUAMGLevels){.dev = NULL};
  *done = (PetscBool)(d->kept && of.dev && pc->setupcalled && g->reuse_prol && pc->flag != DIFFERENT_NONZERO_PATTERN);
  if (*done) {
    *done = (PetscBool)(d->levels->pmat == pc->pmat && d->pattern == pc->pmat->nonzerostate && mg->nlevels >= of.levels);
    for (int l = 0; l < of.levels && *done; l++) {
      if (l + 1 < of.levels) PetscCall(PCGPUAMGLevelIs_Private(d->levels, l, PETSC_TRUE, LevelOf(pc, l)->interpolate, done));
      PetscCall(KSPGetOperators(LevelOf(pc, l)->smoothd, NULL, &A));
      if (*done && l && l + 1 < of.levels) PetscCall(PCGPUAMGLevelIs_Private(d->levels, l, PETSC_FALSE, A, done));
      else *done = (PetscBool)(*done && (GPUCSRIsType(A, MATSEQAIJGPUCSR) || GPUCSRIsType(A, MATMPIAIJGPUCSR)));
    }
    all = *done;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)pc)));
    *done = (PetscBool)all;
  }
  if (*done) GPUCSRTry(&attempt, Numeric(pc, d, done));
  if (!attempt.error && *done) GPUCSRTry(&attempt, Renew(pc, d->levels));
  if (!attempt.error && *done) GPUCSRTry(&attempt, Below(pc, done));
  if (!attempt.error && !*done && d->levels && pc->setupcalled && g->reuse_prol && pc->flag != DIFFERENT_NONZERO_PATTERN) {
    GPUCSRTry(&attempt, Become(pc));
    d->kept = PETSC_FALSE; /* the hierarchy goes after PETSc's set-up */
  }
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(!MatGPUCSROperatorRequired_Private(pc->pmat) && (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU || attempt.error == PETSC_ERR_SUP), PetscObjectComm((PetscObject)pc), attempt.error, "%s", attempt.message);
  *done    = PETSC_FALSE;
  pc->flag = DIFFERENT_NONZERO_PATTERN;
  PetscFunctionReturn(PETSC_SUCCESS);
}
