//TEST name="host" args="-vec_gpu_separate -solvers 2"
//TEST name="standin" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="ranks" nsize=2 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0

/*
  Bad input of a preconditioner: zero pivots, indefinite matrices, no diagonal, NaN, empty rows, a matrix that is not square, options and types that do not apply, levels and vectors that do not fit. The type
  gpucsr ends as MATAIJ does: PETSc's error, or the same end of the solve. The next solve, in the same KSP with good values or in another one after an error, works.
*/
static char help[] = "Tests what bad input of a preconditioner gets.\n";

#include "testing.h"

typedef enum {
  GOOD,
  ZEROPIVOT,  /* a pivot that becomes zero */
  ZERODIAG,   /* a zero on the diagonal */
  NEGATIVE,   /* a negative entry on the diagonal */
  NODIAGONAL, /* none in one row */
  NOTANUMBER,
  EMPTYROW,
  TALL
} Kind;
static const char *const kinds[] = {"good", "zero pivot", "zero diagonal", "indefinite", "no diagonal", "not a number", "an empty row", "tall"};

#define N    24
#define RTOL 1e-8

static PetscErrorCode Values(Mat A, Kind kind, PetscBool first)
{
  PetscInt rs, re, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, NULL, &n));
  if (first) {
    PetscCall(MatSeqAIJSetPreallocation(A, 5, NULL));
    PetscCall(MatMPIAIJSetPreallocation(A, 5, NULL, 4, NULL));
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  }
  PetscCall(MatZeroEntries(A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < PetscMin(re, n); r++) {
    PetscScalar d = 4;

    if (kind == EMPTYROW && r == 7) continue;
    if (kind == ZEROPIVOT && (r == 0 || r == 1)) d = 1;
    if (kind == ZERODIAG && r == 7) d = 0;
    if (kind == NEGATIVE && r == 7) d = -4;
    if (kind == NOTANUMBER && r == 7) d = NAN;
    if (kind != NODIAGONAL || r != 7) PetscCall(MatSetValue(A, r, r, d, INSERT_VALUES));
    if (r > 0) PetscCall(MatSetValue(A, r, r - 1, -1, INSERT_VALUES));
    if (r < n - 1) PetscCall(MatSetValue(A, r, r + 1, -1, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  int                ierr[2];
  KSPConvergedReason reason[2];
  PetscInt           its[2];
  PetscReal          norm[2];
} Outcome;

static PetscErrorCode Try(Mat A, KSP ksp, int k, Outcome *o)
{
  Vec            x, b;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = KSPSetFromOptions(ksp);
  if (!ierr) ierr = KSPSolve(ksp, b, x);
  PetscCall(PetscPopErrorHandler());
  o->ierr[k] = (int)ierr;
  if (!ierr) {
    PetscCall(KSPGetConvergedReason(ksp, &o->reason[k]));
    PetscCall(KSPGetIterationNumber(ksp, &o->its[k]));
    PetscCall(MatMult(A, x, b));
    PetscCall(VecShift(b, -1));
    PetscCall(VecNorm(b, NORM_2, &o->norm[k]));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewKSP(Mat A, const char prefix[], const char type[], KSP *ksp)
{
  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, prefix));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, RTOL, PETSC_DEFAULT, PETSC_DEFAULT, 40));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode One(PetscBool ref, Kind kind, const char ksptype[], const char options[], Outcome *o)
{
  Mat  A;
  KSP  ksp;
  char all[512], *p = all;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, sizeof(*o)));
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, kind == TALL ? N + 3 : N, N, ref, &A));
  PetscCall(Values(A, kind, PETSC_TRUE));
  PetscCall(NewKSP(A, ref ? "ref_" : "our_", ksptype, &ksp));
  for (const char *q = options; *q; q++) { /* the prefix, behind each "-" */
    *p++ = *q;
    if (*q == '-' && (q == options || q[-1] == ' ')) {
      strcpy(p, ref ? "ref_" : "our_");
      p += 4;
    }
  }
  *p = 0;
  PetscCall(PetscOptionsInsertString(NULL, all));
  PetscCall(Try(A, ksp, 0, o));
  if (kind != TALL) {
    PetscCall(Values(A, GOOD, PETSC_FALSE));
    if (o->ierr[0]) { /* PETSc's object is undefined after an error */
      PetscCall(KSPDestroy(&ksp));
      PetscCall(NewKSP(A, ref ? "next_ref_" : "next_our_", ksptype, &ksp));
    }
    PetscCall(Try(A, ksp, 1, o));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  for (char *q = strtok(all, " "); q; q = strtok(NULL, " "))
    if (*q == '-') PetscCall(PetscOptionsClearValue(NULL, q));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const solvers[][2] = {
  {"gmres", "gmres"   },
  {"cg",    "cg"      },
  {"cg",    "gpucg"   },
  {"gmres", "gpugmres"},
  {"bcgs",  "gpubcgs" },
};

/* Preconditioners of the device come first, with every solver; the rest with gmres alone */
static const char *const options[] = {
  "-pc_type ilu",
  "-pc_type icc",
  "-pc_type lu",
  "-pc_type cholesky",
  "-pc_type ilu -pc_factor_shift_type nonzero",
  "-pc_type ilu -pc_factor_shift_type inblocks",
  "-pc_type icc -pc_factor_shift_type positive_definite",
  "-pc_type icc -pc_factor_shift_type none",
  "-pc_type ilu -pc_factor_levels 2",
  "-pc_type ilu -pc_factor_nonzeros_along_diagonal",
  "-pc_type ilu -pc_factor_diagonal_fill",
  "-pc_type ilu -pc_factor_reuse_ordering -pc_factor_reuse_fill",
  "-pc_type bjacobi -pc_bjacobi_blocks 4",
  "-pc_type bjacobi -pc_bjacobi_blocks 4 -sub_pc_type icc",
  "-pc_type bjacobi -pc_bjacobi_blocks 4 -sub_pc_type sor",
  "-pc_type asm -pc_asm_blocks 3",
  "-pc_type pbjacobi",
  "-pc_type fieldsplit -pc_fieldsplit_block_size 2",
  "-pc_type fieldsplit -pc_fieldsplit_block_size 2 -pc_fieldsplit_type schur",
  "-pc_type gamg",
  "-pc_type gamg -mg_levels_pc_type jacobi",
  "-pc_type gamg -pc_gamg_gpucsr false -pc_gamg_agg_nsmooths 0 -mg_levels_ksp_type richardson -mg_levels_pc_type none",
  "-pc_type gamg -mg_levels_pc_type ilu",
  "-pc_type mg -mg_levels_pc_type jacobi",
  "-pc_type jacobi",
  "-pc_type ksp",
  "-pc_type none",
  "-pc_type ilu -pc_factor_mat_ordering_type nosuch",
  "-pc_type ilu -pc_factor_mat_solver_type nosuch",
  "-pc_type lu -pc_factor_mat_solver_type nosuch",
  "-pc_type bjacobi -pc_bjacobi_blocks 40",
  "-pc_type bjacobi -pc_bjacobi_blocks 4 -sub_pc_type lu",
  "-pc_type asm -pc_asm_blocks 40",
  "-pc_type asm -pc_asm_overlap -3",
  "-pc_type gasm",
  "-pc_type vpbjacobi",
  "-pc_type fieldsplit",
  "-pc_type fieldsplit -pc_fieldsplit_block_size 5",
  "-pc_type gamg -pc_gamg_type nosuch",
  "-pc_type sor",
  "-pc_type kaczmarz",
  "-pc_type jacobi -pc_jacobi_type rowmax",
  "-pc_type jacobi -pc_jacobi_type nosuch",
  "-pc_type svd",
  "-pc_type redundant",
  "-pc_type nosuch",
  "-pc_type bddc",
  "-pc_type composite",
  "-pc_type composite -pc_composite_pcs jacobi,ilu",
  "-pc_type deflation",
  "-pc_type lsc",
  "-pc_type galerkin",
  "-pc_type tfs",
  "-pc_type hmg",
  "-pc_type telescope",
  "-pc_type shell",
  "-pc_type mat",
};
#define SERVED 27

/* One input for both types: the same error, or an end of the same kind. If the solve converges with the bad matrix, it converges with MATAIJ. With
   the good matrix both take as many iterations, but for one with the device's methods or aggregates, and end as near */
static PetscErrorCode Compare(size_t s, size_t k, Kind kind, PetscInt *wrong)
{
  const PetscReal rtol = RTOL * PetscSqrtReal((PetscReal)N), cond = 3; /* eigenvalues of the good matrix are from 2 to 6 */
  Outcome         o[2];

  PetscFunctionBegin;
  PetscCall(One(PETSC_TRUE, kind, solvers[s][0], options[k], &o[1]));
  PetscCall(One(PETSC_FALSE, kind, solvers[s][1], options[k], &o[0]));
  for (int t = 0; t < 2; t++) {
    const PetscBool good = (PetscBool)(o[1].reason[t] > 0 && (t || kind == GOOD));
    PetscBool       same = (PetscBool)(o[0].ierr[t] == o[1].ierr[t] && (o[0].reason[t] > 0) == (o[1].reason[t] > 0));

    if (!t && kind == NEGATIVE && !strcmp(solvers[s][0], "bcgs")) same = (PetscBool)(o[0].ierr[t] == o[1].ierr[t]); /* BiCGStab grows rounding with it */
    /* after a failure PETSc's may stay failed; the library's goes on */
    if (t && o[0].ierr[t] == o[1].ierr[t] && o[1].reason[t] < 0 && o[0].reason[t] > 0) same = (PetscBool)(o[0].norm[t] <= cond * rtol);
    if (good) same = (PetscBool)(same && PetscAbsInt(o[0].its[t] - o[1].its[t]) <= (s > 1 || strstr(options[k], "gamg")) && o[0].norm[t] <= cond * PetscMax(rtol, o[1].norm[t]));
    if (same) continue;
    (*wrong)++;
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, stderr, "%s, %s, %s, %s: error %d, reason %d, %d iterations, |r| %g; with aij error %d, reason %d, %d iterations, |r| %g\n", solvers[s][1], options[k], kinds[kind], t ? "then good" : "first", o[0].ierr[t],
                           (int)o[0].reason[t], (int)o[0].its[t], (double)o[0].norm[t], o[1].ierr[t], (int)o[1].reason[t], (int)o[1].its[t], (double)o[1].norm[t]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCMG's coarse level with an operator that is not square, or a prolongator that fits no level: PETSc's error, and another KSP works */
static PetscErrorCode Levels(PetscInt *wrong)
{
  PetscFunctionBegin;
  for (int tall = 0; tall < 2; tall++) {
    Outcome o[2];

    for (int ref = 0; ref < 2; ref++) {
      Mat A, P, C;
      KSP ksp, coarse;
      PC  pc;

      PetscCall(PetscMemzero(&o[ref], sizeof(o[ref])));
      PetscCall(TestMatCreate(PETSC_COMM_WORLD, N, N, (PetscBool)ref, &A));
      PetscCall(TestMatCreate(PETSC_COMM_WORLD, tall ? N : N + 2, N / 2, (PetscBool)ref, &P));
      PetscCall(TestMatCreate(PETSC_COMM_WORLD, N / 2 + tall, N / 2, (PetscBool)ref, &C));
      PetscCall(Values(A, GOOD, PETSC_TRUE));
      PetscCall(Values(P, GOOD, PETSC_TRUE));
      PetscCall(Values(C, GOOD, PETSC_TRUE));
      PetscCall(NewKSP(A, ref ? "ref_" : "our_", KSPCG, &ksp));
      PetscCall(KSPGetPC(ksp, &pc));
      PetscCall(PCSetType(pc, PCMG));
      PetscCall(PCMGSetLevels(pc, 2, NULL));
      PetscCall(PCMGSetInterpolation(pc, 1, P));
      PetscCall(PCMGGetCoarseSolve(pc, &coarse));
      PetscCall(KSPSetOperators(coarse, C, C));
      PetscCall(Try(A, ksp, 0, &o[ref]));
      PetscCall(NewKSP(A, ref ? "next_ref_" : "next_our_", KSPCG, &ksp));
      PetscCall(Try(A, ksp, 1, &o[ref]));
      PetscCall(KSPDestroy(&ksp));
      PetscCall(MatDestroy(&A));
      PetscCall(MatDestroy(&P));
      PetscCall(MatDestroy(&C));
    }
    for (int t = 0; t < 2; t++) {
      if (o[0].ierr[t] == o[1].ierr[t] && o[0].reason[t] == o[1].reason[t] && (t ? o[0].reason[t] > 0 : o[0].ierr[t] || o[0].reason[t] < 0)) continue;
      (*wrong)++;
      PetscCall(PetscFPrintf(PETSC_COMM_WORLD, stderr, "%s, %s: error %d, reason %d; with aij error %d, reason %d\n", tall ? "a coarse level that is not square" : "a prolongator that does not fit", t ? "then another" : "first", o[0].ierr[t],
                             (int)o[0].reason[t], o[1].ierr[t], (int)o[1].reason[t]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A right-hand side or a solution of another size is an error of all ranks, before it is read */
static PetscErrorCode Sizes(PetscInt *wrong)
{
  static const char *const types[] = {"gpucg", "gpubcgs", "gpugmres", "gpufgmres"};

  PetscFunctionBegin;
  for (int t = 0; t < 4; t++)
    for (int k = 0; k < 2; k++) {
      Mat            A;
      KSP            ksp;
      Vec            v[2], other;
      PetscErrorCode ierr;

      PetscCall(TestMatCreate(PETSC_COMM_WORLD, N, N, PETSC_FALSE, &A));
      PetscCall(Values(A, GOOD, PETSC_TRUE));
      PetscCall(NewKSP(A, "size_", types[t], &ksp));
      PetscCall(MatCreateVecs(A, &v[1], &v[0]));
      PetscCall(VecSet(v[0], 1));
      PetscCall(KSPSolve(ksp, v[0], v[1]));
      PetscCall(VecCreateMPI(PETSC_COMM_WORLD, PETSC_DECIDE, N / 2, &other));
      PetscCall(VecSet(other, 1));
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = KSPSolve(ksp, k ? v[0] : other, k ? other : v[1]);
      PetscCall(PetscPopErrorHandler());
      if (!ierr) PetscCall(PetscFPrintf(PETSC_COMM_WORLD, stderr, "%s: a short %s is no error\n", types[t], k ? "solution" : "right-hand side"));
      if (!ierr) (*wrong)++;
      PetscCall(KSPDestroy(&ksp));
      PetscCall(MatDestroy(&A));
      PetscCall(VecDestroy(&v[0]));
      PetscCall(VecDestroy(&v[1]));
      PetscCall(VecDestroy(&other));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt    most = (PetscInt)PETSC_STATIC_ARRAY_LENGTH(solvers), wrong = 0;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(32));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-solvers", &most, NULL));
  for (PetscInt s = 0; s < most; s++)
    for (size_t k = 0; k < (s ? SERVED : PETSC_STATIC_ARRAY_LENGTH(options)); k++)
      for (Kind kind = GOOD; kind <= TALL; kind++) {
        if (size > 1 && (kind == ZERODIAG || kind == NODIAGONAL || kind >= EMPTYROW || k >= SERVED || strstr(options[k], "sor"))) continue; /* an error of PETSc on one rank alone */
        if (kind == TALL && k && strncmp(options[k], "-pc_type jacobi", 15) && strcmp(options[k], "-pc_type gamg")) continue;               /* other methods of PETSc 3.18 crash after the error */
        PetscCall(Compare((size_t)s, k, kind, &wrong));
      }
  if (size == 1) PetscCall(Levels(&wrong));
  PetscCall(Sizes(&wrong));
  PetscCheck(!wrong, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " outcomes differ", wrong);
  PetscCall(PetscFinalize());
  return 0;
}
