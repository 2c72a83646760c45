/* Changes of a hierarchy, of t464-multigrid.c: of the whole, of the level in the middle, of the coarsest */
static PetscErrorCode Smoother(PC pc, PetscInt l, KSP *ksp, PC *smoother)
{
  PetscFunctionBegin;
  PetscCall(PCMGGetSmoother(pc, l, ksp));
  if (smoother) PetscCall(KSPGetPC(*ksp, smoother));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConstantNullSpace(Mat A, PetscBool transposed)
{
  MatNullSpace null;

  PetscFunctionBegin;
  PetscCall(MatNullSpaceCreate(PetscObjectComm((PetscObject)A), PETSC_TRUE, 0, NULL, &null));
  if (transposed) PetscCall(MatSetTransposeNullSpace(A, null));
  else PetscCall(MatSetNullSpace(A, null));
  PetscCall(MatNullSpaceDestroy(&null));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same matrix times a number, of the same type */
static PetscErrorCode Scaled(Mat A, PetscScalar by, Mat *B)
{
  PetscFunctionBegin;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
  PetscCall(MatScale(*B, by));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PC  pc, mpc, cpc; /* of the whole, of the level in the middle, of the coarsest */
  KSP mid, coarse;
  Mat A, middle, coarsest, P;
} Parts;

#define CHANGE(name) static PetscErrorCode Change_##name(Parts *p)
#define DO(name, call) \
  CHANGE(name) \
  { \
    PetscFunctionBegin; \
    PetscCall(call); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

DO(nothing, KSPSetErrorIfNotConverged(p->mid, PETSC_FALSE))
DO(w, PCMGSetCycleType(p->pc, PC_MG_CYCLE_W))
DO(v, PCMGSetCycleType(p->pc, PC_MG_CYCLE_V))
DO(additive, PCMGSetType(p->pc, PC_MG_ADDITIVE))
DO(full, PCMGSetType(p->pc, PC_MG_FULL))
DO(cycles, PCMGMultiplicativeSetCycles(p->pc, 2))
DO(smooths, PCMGSetNumberSmooth(p->pc, 3))
DO(residual, PCMGSetResidual(p->pc, 1, HalfResidual, p->middle))
DO(nulltop, ConstantNullSpace(p->A, PETSC_FALSE))
DO(nullmiddle, ConstantNullSpace(p->middle, PETSC_FALSE))
DO(nullcoarsest, ConstantNullSpace(p->coarsest, PETSC_FALSE))
DO(nulltransposed, ConstantNullSpace(p->middle, PETSC_TRUE))
DO(nulltransposed0, ConstantNullSpace(p->coarsest, PETSC_TRUE))
DO(test, KSPSetConvergenceTest(p->mid, AfterOne, NULL, NULL))
DO(norm, KSPSetNormType(p->mid, KSP_NORM_UNPRECONDITIONED))
DO(scale, KSPRichardsonSetScale(p->mid, 0.5))
DO(eigenvalues, KSPChebyshevSetEigenvalues(p->mid, 1.75, 0.25))
DO(transform, KSPChebyshevEstEigSet(p->mid, 0, 0.3, 0, 1.4))
DO(fromzero, KSPSetInitialGuessNonzero(p->mid, PETSC_FALSE))
DO(fromguess, KSPSetInitialGuessNonzero(p->mid, PETSC_TRUE))
DO(steps, KSPSetTolerances(p->mid, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 5))
DO(monitor, KSPMonitorSet(p->mid, Count, NULL, NULL))
DO(cancel, KSPMonitorCancel(p->mid))
DO(monitor0, KSPMonitorSet(p->coarse, Count, NULL, NULL))
DO(before, KSPSetPreSolve(p->mid, Shrink, NULL))
DO(after, KSPSetPostSolve(p->mid, Shrink, NULL))
DO(after0, KSPSetPostSolve(p->coarse, Shrink, NULL))
DO(side, KSPSetPCSide(p->mid, PC_RIGHT))
DO(history, KSPSetResidualHistory(p->mid, NULL, 9, PETSC_TRUE))
DO(method, KSPSetType(p->mid, KSPRICHARDSON))
DO(gmres, KSPSetType(p->mid, KSPGMRES))
DO(rowmax, PCJacobiSetType(p->mpc, PC_JACOBI_ROWMAX))
DO(absolute, PCJacobiSetUseAbs(p->mpc, PETSC_TRUE))
DO(fixed, PCJacobiSetFixDiagonal(p->mpc, PETSC_FALSE))
DO(none, PCSetType(p->mpc, PCNONE))
DO(sor, PCSetType(p->mpc, PCSOR))
DO(coarsejacobi, PCSetType(p->cpc, PCJACOBI))
DO(coarsesteps, KSPSetTolerances(p->coarse, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 2))
DO(omega, PCSORSetOmega(p->cpc, 1.25))
DO(sweeps, PCSORSetIterations(p->cpc, 2, 1))
DO(direction, PCSORSetSymmetric(p->cpc, SOR_LOCAL_BACKWARD_SWEEP))
DO(values, MatScale(p->middle, 1.25))
DO(coarsevalues, MatScale(p->coarsest, 1.25))
DO(topvalues, MatScale(p->A, 1.25))
DO(interpolated, MatScale(p->P, 0.75))

CHANGE(reused)
{
  PetscFunctionBegin;
  PetscCall(PCSetReusePreconditioner(p->mpc, PETSC_TRUE));
  PetscCall(MatScale(p->middle, 1.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

CHANGE(operators)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Scaled(p->middle, 1.5, &B));
  PetscCall(KSPSetOperators(p->mid, B, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

CHANGE(preconditioned)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Scaled(p->middle, 1.5, &B));
  PetscCall(KSPSetOperators(p->mid, p->middle, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

CHANGE(interpolation)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Scaled(p->P, 0.75, &B));
  PetscCall(PCMGSetInterpolation(p->pc, 1, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

CHANGE(restriction)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Scaled(p->P, 0.75, &B));
  PetscCall(PCMGSetRestriction(p->pc, 1, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

CHANGE(rscale)
{
  Vec v;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(p->coarsest, &v, NULL));
  PetscCall(VecSet(v, 0.5));
  PetscCall(PCMGSetRScale(p->pc, 1, v));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

CHANGE(block)
{
  KSP *sub;
  PC   pc;

  PetscFunctionBegin;
  PetscCall(PCBJacobiGetSubKSP(p->cpc, NULL, NULL, &sub));
  PetscCall(KSPGetPC(sub[0], &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

CHANGE(again)
{
  Mat A, P;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(p->cpc, &A, &P));
  PetscCall(PetscObjectReference((PetscObject)A));
  PetscCall(PetscObjectReference((PetscObject)P));
  PetscCall(PCReset(p->cpc));
  PetscCall(PCSetType(p->cpc, PCJACOBI));
  PetscCall(PCSetType(p->cpc, PCSOR));
  PetscCall(KSPSetOperators(p->coarse, A, P));
  PetscCall(KSPSetUp(p->coarse));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* needs: options of the hierarchy at the start; walks: a program may make several of the changes in a row */
typedef struct {
  const char *name;
  PetscErrorCode (*change)(Parts *);
  const char *needs;
  PetscBool   walks;
} Change;

#define RICHARDSON "-mg_levels_ksp_type richardson -mg_levels_ksp_richardson_scale 0.75"
#define BLOCKS     "-mg_coarse_pc_type bjacobi -mg_coarse_sub_pc_type lu"
#define SWEEPS     "-mg_coarse_pc_type sor"
#define NEEDS(name, needs, walks) \
  { \
    #name, Change_##name, needs, walks \
  }
#define EASY(name) NEEDS(name, "", PETSC_TRUE)

static const Change changes[] = {
  EASY(nothing),
  EASY(w),
  EASY(v),
  EASY(additive),
  EASY(full),
  EASY(cycles),
  EASY(smooths),
  EASY(residual),
  EASY(nullmiddle),
  EASY(nullcoarsest),
  EASY(nulltransposed),
  EASY(nulltransposed0),
  EASY(test),
  EASY(norm),
  EASY(fromzero),
  EASY(fromguess),
  EASY(steps),
  EASY(monitor),
  EASY(cancel),
  EASY(monitor0),
  EASY(before),
  EASY(after),
  EASY(after0),
  EASY(history),
  EASY(values),
  EASY(coarsevalues),
  EASY(topvalues),
  EASY(interpolated),
  NEEDS(operators, "", PETSC_FALSE),
  NEEDS(preconditioned, "", PETSC_FALSE),
  NEEDS(interpolation, "", PETSC_FALSE),
  NEEDS(restriction, "", PETSC_FALSE),
  EASY(rscale),
  EASY(reused),
  EASY(coarsesteps),
  NEEDS(side, "", PETSC_FALSE),
  NEEDS(nulltop, "", PETSC_TRUE),
  NEEDS(eigenvalues, "", PETSC_FALSE),
  NEEDS(transform, "", PETSC_FALSE),
  NEEDS(method, "", PETSC_FALSE),
  NEEDS(gmres, "", PETSC_FALSE),
  NEEDS(rowmax, "", PETSC_FALSE),
  NEEDS(absolute, "", PETSC_FALSE),
  NEEDS(fixed, "", PETSC_FALSE),
  NEEDS(none, RICHARDSON, PETSC_FALSE),
  NEEDS(sor, "", PETSC_FALSE),
  NEEDS(coarsejacobi, "", PETSC_FALSE),
  NEEDS(test, RICHARDSON, PETSC_FALSE),
  NEEDS(scale, RICHARDSON, PETSC_FALSE),
  NEEDS(history, RICHARDSON, PETSC_FALSE),
  NEEDS(before, RICHARDSON, PETSC_FALSE),
  NEEDS(rowmax, RICHARDSON, PETSC_FALSE),
  NEEDS(block, BLOCKS, PETSC_FALSE),
  NEEDS(omega, SWEEPS, PETSC_FALSE),
  NEEDS(sweeps, SWEEPS, PETSC_FALSE),
  NEEDS(direction, SWEEPS, PETSC_FALSE),
  NEEDS(again, "", PETSC_FALSE),
};
