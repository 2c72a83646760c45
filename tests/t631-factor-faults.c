//TEST name="pivots" args="-what pivots -mat_gpucsr_solve_kernel {}" loop="ranges syncfree auto"
//TEST name="changes" args="-what changes -mat_gpucsr_solve_kernel syncfree"
//TEST name="bus" args="-what bus -mat_gpucsr_solve_kernel {} -mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate" loop="ranges syncfree"
//TEST name="bus.icc" args="-what bus -mat_gpucsr_solve_kernel ranges -mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate -ksp_type cg -pc_type icc"
//TEST name="bus.bjacobi" args="-what bus -mat_gpucsr_solve_kernel ranges -mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate -pc_type bjacobi -sub_mat_gpucsr_solve_kernel ranges"
//TEST name="bus.blocks" args="-what bus -mat_gpucsr_solve_kernel ranges -mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate -pc_bjacobi_blocks 6 -pc_asm_blocks 6 -sub_mat_gpucsr_solve_kernel ranges -pc_type {}" loop="bjacobi asm"
//TEST name="bus.others" args="-what bus -mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate -mat_block_size 2 -fieldsplit_pc_type jacobi -pc_type {}" loop="pbjacobi fieldsplit"
//TEST name="bus.fields" args="-what bus -mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate -mat_block_size 3 -pc_type fieldsplit -fieldsplit_pc_type jacobi -pc_fieldsplit_type {}" loop="additive symmetric_multiplicative"
//TEST name="memory" gpu=0 args="-what solve -mat_gpucsr_solve_kernel ranges -mat_gpucsr_memory_limit {}" loop="3000 20000 60000 90000 120000 150000" warns="go on with PETSc's on the host, because backend host failed: host device 0:"
//TEST name="standin" args="-what {} -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda" loop="pivots changes solve" gpu=0
//TEST name="standin.bus" args="-what bus -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -pc_type {}" loop="ilu bjacobi" gpu=0
//TEST name="standin.ranks" nsize=2 args="-what bus -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda" gpu=0
//TEST name="fault" args="-what solve -gpucsr_debug_standin 1 -gpucsr_debug_fault {}" loop="launch:3 launch:8 launch:30:on copy:12 memory:15 memory:25 memory:40:on" gpu=0
//TEST name="word" args="-what solve -mat_gpucsr_solve_kernel sideways" fails="for -mat_gpucsr_solve_kernel. Available options"

/*
  Factors of solver type gpucsr fail as PETSc's do: zero pivots give the same error messages, or the same shifts; a missing diagonal entry gives
  the same error. A change of the matrix does not change its factor; a new factorization has the new values and pattern. Applications of ILU and ICC move no vector over the bus.
  If memory runs out anywhere in a set-up, PETSc's factor solves, with one message.
*/
#include "testing.h"

static char said[512];

static PetscErrorCode Keep(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && mess) PetscCall(PetscStrncpy(said, mess, sizeof(said)));
  return n;
}

typedef struct {
  PetscErrorCode ierr;
  char           said[512];
  MatFactorError error;
  PetscReal      norm; /* of the solution */
} Outcome;

/* A tridiagonal matrix with something wrong in row 5: a zero pivot, a pivot that becomes zero, or a negative one, or no diagonal at all */
static PetscErrorCode Wrong(PetscInt which, PetscBool ref, Mat *A)
{
  const PetscInt n = 40;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_SELF, n, n, ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 3, NULL));
  for (PetscInt r = 0; r < n; r++)
    for (PetscInt c = PetscMax(0, r - 1); c <= PetscMin(n - 1, r + 1); c++) {
      PetscScalar v = r == c ? 4 : -1;

      if (which == 0 && (r == 5 || c == 5 || r == 4 || c == 4) && r != c) continue;
      if (which == 0 && r == 5 && c == 5) v = 0;
      if (which == 1 && r <= 1 && c <= 1) v = 2; /* [2 2; 2 2] */
      if (which == 2 && r == 5 && c == 5) v = -4;
      if (which == 3 && r == 5 && c == 5) continue;
      PetscCall(MatSetValue(*A, r, c, v, INSERT_VALUES));
    }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FactorAndSolve(Mat A, PetscBool icc, const MatFactorInfo *info, IS is, Mat F, PetscReal *norm)
{
  Vec x, b;

  PetscFunctionBegin;
  if (icc) PetscCall(MatICCFactorSymbolic(F, A, is, info));
  else PetscCall(MatILUFactorSymbolic(F, A, is, is, info));
  if (icc) PetscCall(MatCholeskyFactorNumeric(F, A, info));
  else PetscCall(MatLUFactorNumeric(F, A, info));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(MatSolve(F, b, x));
  PetscCall(VecNorm(x, NORM_2, norm));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Try(PetscInt which, PetscBool icc, MatFactorShiftType shift, PetscReal amount, PetscBool fatal, PetscBool ref, Outcome *o)
{
  Mat           A, F;
  IS            is;
  MatFactorInfo info;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, sizeof(*o)));
  PetscCall(Wrong(which, ref, &A));
  PetscCall(MatSetErrorIfFailure(A, fatal));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 40, 0, 1, &is));
  PetscCall(ISSetIdentity(is));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill        = 1.0;
  info.zeropivot   = 100 * PETSC_MACHINE_EPSILON;
  info.shifttype   = (PetscReal)shift;
  info.shiftamount = amount;
  PetscCall(MatGetFactor(A, NULL, icc ? MAT_FACTOR_ICC : MAT_FACTOR_ILU, &F));
  said[0] = 0;
  PetscCall(PetscPushErrorHandler(Keep, NULL));
  o->ierr = FactorAndSolve(A, icc, &info, is, F, &o->norm);
  PetscCall(PetscPopErrorHandler());
  PetscCall(PetscStrncpy(o->said, said, sizeof(o->said)));
  PetscCall(MatFactorGetError(F, &o->error));
  PetscCall(ISDestroy(&is));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A shift of a pivot that became zero leaves a pivot of the size of the shift: elimination with it makes numbers larger by max |a| / shift, most of which cancels again, so two ways of rounding (a GPU contracts a product and a sum to one operation) differ as much. After PETSc's own shift, 100 eps, two digits are left: the larger one shows whether the factor is right.
*/
static PetscErrorCode Pivots(PetscReal amount)
{
  PetscFunctionBegin;
  for (PetscInt which = 0; which < 4; which++)
    for (PetscInt icc = 0; icc < 2; icc++)
      for (PetscInt shift = 0; shift < 4; shift++)
        for (PetscInt fatal = 0; fatal < 2; fatal++) {
          Outcome   o[2];
          PetscBool same;
          char      where[128];
          PetscReal growth = shift == MAT_SHIFT_NONZERO || shift == MAT_SHIFT_INBLOCKS ? 4 / amount : 0;

          for (PetscInt ref = 0; ref < 2; ref++) PetscCall(Try(which, (PetscBool)icc, (MatFactorShiftType)shift, amount, (PetscBool)fatal, (PetscBool)ref, &o[ref]));
          PetscCall(PetscSNPrintf(where, sizeof(where), "fault %" PetscInt_FMT ", %s, shift %s by %g, %s", which, icc ? "ICC" : "ILU", MatFactorShiftTypes[shift], (double)amount, fatal ? "fatal" : "not fatal"));
          PetscCheck(o[0].ierr == o[1].ierr && o[0].error == o[1].error, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: error %d, factor error %d; with aij %d, %d", where, (int)o[0].ierr, (int)o[0].error, (int)o[1].ierr, (int)o[1].error);
          PetscCall(PetscStrcmp(o[0].said, o[1].said, &same));
          PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: says '%s', aij '%s'", where, o[0].said, o[1].said);
          PetscCheck(o[0].norm == o[1].norm || PetscAbsReal(o[0].norm - o[1].norm) <= (40 * TEST_C + growth) * PETSC_MACHINE_EPSILON * o[1].norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: solution of norm %.17g, with aij %.17g", where, (double)o[0].norm,
                     (double)o[1].norm);
        }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solve with the PC as it is, and with AIJ set up for A as it was then; the same up to rounding */
static PetscErrorCode Compare(PC pc, Mat R, Vec b, const char what[])
{
  PC        ref;
  Vec       x, y, c;
  PetscReal norm, most;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(b, &x));
  PetscCall(PCApply(pc, b, x));
  PetscCall(MatCreateVecs(R, &y, &c));
  PetscCall(VecCopy(b, c));
  PetscCall(PCCreate(PETSC_COMM_SELF, &ref));
  PetscCall(PCSetType(ref, PCILU));
  PetscCall(PCSetOperators(ref, R, R));
  PetscCall(PCApply(ref, c, y));
  PetscCall(VecNorm(y, NORM_2, &most));
  PetscCall(VecCopy(x, c));
  PetscCall(VecAXPY(y, -1.0, c));
  PetscCall(VecNorm(y, NORM_2, &norm));
  PetscCheck(norm <= TEST_C * PETSC_MACHINE_EPSILON * most, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %g from aij's of norm %g", what, (double)norm, (double)most);
  PetscCall(PCDestroy(&ref));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Changes(void)
{
  Mat            A, R, Old;
  Vec            b, d;
  PC             pc;
  const PetscInt n = 30 * 30;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_SELF, 30, 0.5, PETSC_FALSE, &A));
  PetscCall(TestConvection(PETSC_COMM_SELF, 30, 0.5, PETSC_TRUE, &R));
  PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &Old));
  PetscCall(MatCreateVecs(A, &b, &d));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(PCCreate(PETSC_COMM_SELF, &pc));
  PetscCall(PCSetType(pc, PCILU));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(Compare(pc, R, b, "first"));
  PetscCall(MatShift(A, 1.0));
  PetscCall(MatShift(R, 1.0));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_TRUE));
  PetscCall(Compare(pc, Old, b, "values changed, not factored again"));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_FALSE));
  PetscCall(Compare(pc, R, b, "values changed"));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(R, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt k = 0; k < n; k += 7) {
    PetscCall(MatSetValue(A, k, (k * 31) % n, 0.5, ADD_VALUES));
    PetscCall(MatSetValue(R, k, (k * 31) % n, 0.5, ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyBegin(R, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(R, MAT_FINAL_ASSEMBLY));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCSetUp(pc));
  PetscCall(Compare(pc, R, b, "pattern changed"));
  { /* what needs the host's factor gets it */
    Mat       F;
    PetscReal norm;

    PetscCall(PCFactorGetMatrix(pc, &F));
    PetscCall(MatGetDiagonal(F, d));
    PetscCall(VecNorm(d, NORM_2, &norm));
    PetscCheck(norm > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the diagonal of the factor is zero");
    PetscCall(Compare(pc, R, b, "after the host's factor was needed"));
  }
  PetscCall(PCDestroy(&pc));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&Old));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Crossings(PetscInt *n)
{
  static const char *const events[] = {"VecGPUCopyTo", "VecGPUCopyFrom"};

  PetscFunctionBegin;
  *n = 0;
  for (PetscInt k = 0; k < 2; k++) {
    PetscLogEvent      event;
    PetscEventPerfInfo info;

    PetscCall(PetscLogEventGetId(events[k], &event));
    PetscCall(PetscLogEventGetPerfInfo(0, event, &info));
    *n += (PetscInt)info.count;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As many copies of vectors in a solve of 40 iterations as in one of 10 */
static PetscErrorCode Bus(void)
{
  Mat      A;
  Vec      x, b;
  KSP      ksp;
  PetscInt n[3], its;

  PetscFunctionBegin;
  PetscCall(PetscLogDefaultBegin());
  PetscCall(TestConvection(PETSC_COMM_WORLD, 60, 0.0, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetTolerances(ksp, 1e-30, 1e-300, 1e30, 5));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Crossings(&n[0]));
  for (PetscInt k = 1; k < 3; k++) {
    PetscCall(KSPSetTolerances(ksp, 1e-30, 1e-300, 1e30, k == 1 ? 10 : 40));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCheck(its == (k == 1 ? 10 : 40), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "not a test: %" PetscInt_FMT " iterations", its);
    PetscCall(Crossings(&n[k]));
  }
  PetscCheck(n[2] - n[1] == n[1] - n[0], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " copies of vectors over the bus in 10 iterations, %" PetscInt_FMT " in 40", n[1] - n[0], n[2] - n[1]);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The default: GMRES with ILU(0) */
static PetscErrorCode Solve(void)
{
  Mat                A;
  Vec                x, b;
  KSP                ksp;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, 30, 0.5, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "it ended with %s", KSPConvergedReasons[reason]);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char      what[32] = "";
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-what", what, sizeof(what), NULL));
  PetscCall(PetscStrcmp(what, "pivots", &same));
  if (same) {
    PetscCall(Pivots(100 * PETSC_MACHINE_EPSILON));
    PetscCall(Pivots(1e-2));
  }
  PetscCall(PetscStrcmp(what, "changes", &same));
  if (same) PetscCall(Changes());
  PetscCall(PetscStrcmp(what, "bus", &same));
  if (same) PetscCall(Bus());
  PetscCall(PetscStrcmp(what, "solve", &same));
  if (same) PetscCall(Solve());
  PetscCall(PetscFinalize());
  return 0;
}
