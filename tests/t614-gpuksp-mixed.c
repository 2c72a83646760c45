//TEST name="format" args="-mat_gpucsr_format {} -ksp_gpucg_path graph" loop="csr bcsr2x2"

/*
  gpucg in mixed precision where single precision lacks range or digits: matrices and right-hand sides of all magnitudes, condition numbers up to 1e10, tolerances near the limit of
  rounding. A solve that reports convergence has a true residual within the tolerance, computed here with MATAIJ; gpucg converges if KSPCG's true residual does; and x is finite if KSPCG's is.

    build/tests/t614-gpuksp-mixed -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format csr -ksp_gpucg_path graph
*/
#include "testing.h"

#define ROWS 64

typedef enum {
  SECOND,    /* differences */
  FOURTH,    /* differences: condition 1e7 */
  DIAGONALS, /* second differences, and diagonals from 1 to 1e10 */
  NEGATIVE,  /* definite */
  KINDS
} Kind;

static PetscReal Entry(Kind kind, PetscInt far, PetscInt r)
{
  static const PetscReal fourth[] = {6, -4, 1}, second[] = {2, -1, 0};

  if (kind == FOURTH) return fourth[far];
  if (kind == DIAGONALS && !far) return second[0] + PetscPowReal(10, 10 * (PetscReal)r / ROWS);
  return kind == NEGATIVE ? -second[far] : second[far];
}

static PetscErrorCode Fill(Mat A, Kind kind, PetscReal factor)
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < ROWS; r++)
    for (PetscInt c = PetscMax(r - 2, 0); c <= PetscMin(r + 2, ROWS - 1); c++) PetscCall(MatSetValue(A, r, c, factor * Entry(kind, PetscAbsInt(r - c), r), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a vector in the norm of the test */
static PetscErrorCode Norm(PC pc, KSPNormType type, Vec r, PetscReal *norm)
{
  Vec         z;
  PetscScalar rz;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(r, &z));
  PetscCall(PCApply(pc, r, z));
  PetscCall(VecDot(r, z, &rz));
  PetscCall(VecNorm(type == KSP_NORM_PRECONDITIONED ? z : r, NORM_2, norm));
  if (type == KSP_NORM_NATURAL) *norm = PetscSqrtReal(PetscAbsScalar(rz));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  KSPConvergedReason reason;
  PetscInt           its;
  PetscReal          residual; /* true, */
  PetscReal          rhs;      /* and of the right-hand side */
  PetscBool          finite;
} Outcome;

static PetscErrorCode Solve(Mat A, Mat R, KSPType type, const char pctype[], KSPNormType norm, PetscReal rtol, PetscReal factor, Outcome *o)
{
  KSP                ksp;
  PC                 pc;
  Vec                x, b, y, r;
  const PetscScalar *v;
  PetscScalar       *w;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(MatCreateVecs(R, &y, &r));
  PetscCall(TestFill(r, 1, PETSC_FALSE));
  PetscCall(VecScale(r, factor));
  PetscCall(VecCopy(r, b));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  if (A == R) PetscCall(KSPSetOptionsPrefix(ksp, "ref_"));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetNormType(ksp, norm));
  PetscCall(KSPSetTolerances(ksp, rtol, 1e-300, 1e8, 5000));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &o->reason));
  PetscCall(KSPGetIterationNumber(ksp, &o->its));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(PCCreate(PETSC_COMM_SELF, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(PCSetOperators(pc, R, R));
  PetscCall(Norm(pc, norm, r, &o->rhs));
  PetscCall(VecGetArrayRead(x, &v));
  PetscCall(VecGetArrayWrite(y, &w));
  o->finite = PETSC_TRUE;
  for (PetscInt k = 0; k < ROWS; k++) {
    w[k] = v[k];
    if (PetscIsInfOrNanScalar(v[k])) o->finite = PETSC_FALSE;
  }
  PetscCall(VecRestoreArrayRead(x, &v));
  PetscCall(VecRestoreArrayWrite(y, &w));
  PetscCall(VecCopy(b, r));
  PetscCall(VecScale(y, -1.0));
  PetscCall(MatMultAdd(R, y, r, r));
  PetscCall(Norm(pc, norm, r, &o->residual));
  PetscCall(PCDestroy(&pc));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscReal factors[][2] = {
    {1,     1    },
    {1e-45, 1    },
    {1e30,  1e30 },
    {1e100, 1    },
    {1,     1e-60},
    {1,     1e120}
  }; /* of the matrix, and of the right-hand side */
  static const PetscReal   rtols[]  = {1e-8, 2e-14};
  static const KSPNormType norms[]  = {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL};
  static const char *const pcs[]    = {PCNONE, PCJACOBI};
  PetscInt                 believed = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsInsertString(NULL, "-ksp_gpucg_precision residual_replacement"));
  for (int kind = 0; kind < KINDS; kind++)
    for (size_t f = 0; f < PETSC_STATIC_ARRAY_LENGTH(factors); f++) {
      Mat A, R;

      PetscCall(TestMatCreate(PETSC_COMM_SELF, ROWS, ROWS, PETSC_FALSE, &A));
      PetscCall(TestMatCreate(PETSC_COMM_SELF, ROWS, ROWS, PETSC_TRUE, &R));
      PetscCall(MatSetUp(A));
      PetscCall(MatSetUp(R));
      PetscCall(Fill(A, (Kind)kind, factors[f][0]));
      PetscCall(Fill(R, (Kind)kind, factors[f][0]));
      for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(rtols); t++)
        for (size_t n = 0; n < PETSC_STATIC_ARRAY_LENGTH(norms); n++)
          for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(pcs); p++) {
            Outcome   ref, o;
            PetscReal bound;
            char      what[256];

            PetscCall(Solve(R, R, KSPCG, pcs[p], norms[n], rtols[t], factors[f][1], &ref));
            PetscCall(Solve(A, R, "gpucg", pcs[p], norms[n], rtols[t], factors[f][1], &o));
            /* both residuals are computed, each to within rounding */
            bound = 1.01 * rtols[t] * ref.rhs + 4 * PETSC_MACHINE_EPSILON * ref.rhs;
            PetscCall(PetscSNPrintf(what, sizeof(what), "kind %d, matrix %g, right-hand side %g, rtol %g, %s, %s: %s after %" PetscInt_FMT ", true residual %g of %g; KSPCG %s after %" PetscInt_FMT ", %g", kind, (double)factors[f][0], (double)factors[f][1], (double)rtols[t], pcs[p], KSPNormTypes[norms[n]], KSPConvergedReasons[o.reason], o.its,
                                    (double)o.residual, (double)o.rhs, KSPConvergedReasons[ref.reason], ref.its, (double)ref.residual));
            PetscCheck(o.finite || !ref.finite, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: x is not finite", what);
            PetscCheck(o.reason < 0 || o.residual <= bound, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: not converged", what);
            PetscCheck(o.reason > 0 || ref.reason < 0 || ref.residual > 0.5 * bound, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: has not converged", what);
            believed += o.reason > 0;
          }
      PetscCall(MatDestroy(&A));
      PetscCall(MatDestroy(&R));
    }
  PetscCheck(believed > 50, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No test: %" PetscInt_FMT " solves converged", believed);
  PetscCall(PetscFinalize());
  return 0;
}
