/*
  Random programs with factors of solver type cudss. t634-cudss-random.sh runs them with tests/fake/cudss.c; on a GPU the library itself runs, without faults. The programs draw kinds of matrices and factors, new values, new patterns, other matrices in the
  place of the first, several factors, solves of each sort, and failures of the library. The truth is a dense array here. A solution has the backward error of a stable solver for the values that were
  factored, or it is Inf and the factor says so. 
*/
#include "testing.h"

#define STABLE (4 * TEST_C * PETSC_MACHINE_EPSILON)

enum {
  UNSYMMETRIC,
  POSITIVE,
  INDEFINITE,
  ZERO_DIAGONAL,
  KINDS
};

/* v, is: values and pattern of the matrix, row by row; factored: the values in F */
typedef struct {
  PetscInt     n;
  int          kind;
  PetscBool    cholesky, ready;
  PetscScalar *v, *factored;
  char        *is;
  Mat          A, F;
} World;

static uint64_t state;

static PetscInt Draw(PetscInt n)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (PetscInt)((state >> 33) % (uint64_t)n);
}

static PetscReal Number(void)
{
  return (PetscReal)(Draw(2001) - 1000) / 1000;
}

/* A matrix of this type with the world's values */
static PetscErrorCode Build(const World *w, PetscBool ref, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_SELF, w->n, w->n, ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, w->n, NULL));
  for (PetscInt r = 0; r < w->n; r++)
    for (PetscInt c = 0; c < w->n; c++)
      if (w->is[r * w->n + c]) PetscCall(MatSetValue(*A, r, c, w->v[r * w->n + c], INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  if (w->kind == POSITIVE) PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  if (w->kind == INDEFINITE) PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values, and a new pattern if asked for: the largest entry of each row outweighs the others */
static PetscErrorCode Values(World *w, PetscBool pattern)
{
  const PetscInt  n = w->n, shift = w->kind == ZERO_DIAGONAL && n > 1 ? 1 + Draw(n - 1) : 0;
  const PetscBool symmetric = (PetscBool)(w->kind == POSITIVE || w->kind == INDEFINITE);

  PetscFunctionBegin;
  if (pattern) {
    const PetscInt each = 1 + Draw(6);

    for (PetscInt k = 0; k < n * n; k++) w->is[k] = (char)(Draw(n) < each);
    for (PetscInt r = 0; r < n; r++) {
      w->is[r * n + r] = (char)!shift;
      if (shift) w->is[r * n + (r + shift) % n] = 2;
      for (PetscInt c = 0; c < r && symmetric; c++) w->is[r * n + c] = w->is[c * n + r];
    }
  }
  for (PetscInt r = 0; r < n; r++) {
    PetscReal sum = 1;

    for (PetscInt c = 0; c < n; c++) w->v[r * n + c] = !w->is[r * n + c] ? 0 : symmetric && c < r ? w->v[c * n + r] : Number();
    for (PetscInt c = 0; c < n; c++) sum += PetscAbsScalar(w->v[r * n + c]);
    for (PetscInt c = 0; c < n; c++)
      if (w->kind == ZERO_DIAGONAL && n > 1 ? w->is[r * n + c] == 2 : c == r) w->v[r * n + c] = w->kind == INDEFINITE && Draw(2) ? -2 * sum : 2 * sum;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix changes: its values in place, its pattern in place, or another matrix takes its place */
static PetscErrorCode Change(World *w)
{
  const PetscInt n = w->n, what = Draw(6);
  PetscInt       r = Draw(n), c = Draw(n);

  PetscFunctionBegin;
  if (what == 0) {
    PetscCall(MatScale(w->A, -1.5));
    for (PetscInt k = 0; k < n * n; k++) w->v[k] *= -1.5;
    if (w->kind == POSITIVE) w->kind = INDEFINITE;
  } else if (what == 1) { /* row r is a row of the identity: no longer symmetric */
    PetscCall(MatSetOption(w->A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
    if (w->kind == ZERO_DIAGONAL || w->cholesky) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatZeroRows(w->A, 1, &r, 2.0, NULL, NULL));
    for (PetscInt k = 0; k < n; k++) w->v[r * n + k] = k == r ? 2 : 0;
    w->kind = UNSYMMETRIC;
  } else if (what == 2 && !w->cholesky) { /* an entry more, perhaps a new one: no longer symmetric */
    PetscCall(MatSetValue(w->A, r, c, 0.125, ADD_VALUES));
    PetscCall(MatAssemblyBegin(w->A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(w->A, MAT_FINAL_ASSEMBLY));
    w->v[r * n + c] += 0.125;
    w->is[r * n + c] = (char)PetscMax(w->is[r * n + c], 1);
    if (w->kind != ZERO_DIAGONAL) w->kind = UNSYMMETRIC;
  } else { /* another matrix, most often with the same number for its pattern */
    PetscCall(Values(w, (PetscBool)(what < 5)));
    PetscCall(MatDestroy(&w->A));
    PetscCall(Build(w, PETSC_FALSE, &w->A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FactorSteps(World *w, PetscBool symbolic, PetscBool numeric)
{
  MatFactorInfo info;

  PetscFunctionBegin;
  PetscCall(MatFactorInfoInitialize(&info));
  info.zeropivot = 100 * PETSC_MACHINE_EPSILON;
  info.fill      = 5;
  if (symbolic) {
    if (w->cholesky) PetscCall(MatCholeskyFactorSymbolic(w->F, w->A, NULL, &info));
    else PetscCall(MatLUFactorSymbolic(w->F, w->A, NULL, NULL, &info));
  }
  if (numeric) {
    if (w->cholesky) PetscCall(MatCholeskyFactorNumeric(w->F, w->A, &info));
    else PetscCall(MatLUFactorNumeric(w->F, w->A, &info));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factors, with a fault of the library now and then, after which the same must work */
static PetscErrorCode Factor(World *w)
{
  static const char *const faults[] = {"config:1:2",          "set:1:3",   "data:1:2", "get:1:6", "get:2:6", "get:3:5", "csr:1:2", "dense:1:2", "dense:2:2", "analysis:1:2", "analysis:1:5", "factorization:1:5", "factorization:1:2",
                                       "refactorization:1:6", "stream:1:1"};
  const PetscBool          fresh    = (PetscBool)(!w->F || !Draw(4));
  MatFactorError           error    = MAT_FACTOR_NOERROR;
  PetscBool                fault    = (PetscBool)!Draw(4);

  PetscFunctionBegin;
  if (fresh) {
    PetscCall(MatDestroy(&w->F));
    w->cholesky = (PetscBool)((w->kind == POSITIVE || w->kind == INDEFINITE) && Draw(2));
    PetscCall(MatGetFactor(w->A, "cudss", w->cholesky ? MAT_FACTOR_CHOLESKY : MAT_FACTOR_LU, &w->F));
  }
  if (fault) {
    PetscCall(TestEnv("FAKE_CUDSS_FAIL", faults[Draw(PETSC_STATIC_ARRAY_LENGTH(faults))]));
    PetscCall(FactorSteps(w, fresh, PETSC_FALSE));
    PetscCall(MatFactorGetError(w->F, &error));
    if (!error) PetscCall(FactorSteps(w, PETSC_FALSE, PETSC_TRUE));
    PetscCall(TestEnv("FAKE_CUDSS_FAIL", NULL));
    PetscCall(MatFactorGetError(w->F, &error));
  }
  if (!fault || error) PetscCall(FactorSteps(w, (PetscBool)((fresh && !fault) || !Draw(3)), PETSC_TRUE));
  PetscCall(MatFactorGetError(w->F, &error));
  PetscCheck(!error, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A matrix of kind %d and %" PetscInt_FMT " rows: factor error %d", w->kind, w->n, (int)error);
  PetscCall(PetscArraycpy(w->factored, w->v, w->n * w->n));
  w->ready = PETSC_TRUE;
  if (w->cholesky && (w->kind == POSITIVE || w->kind == INDEFINITE)) {
    PetscInt got[3], negative = 0;

    for (PetscInt r = 0; r < w->n; r++) negative += PetscRealPart(w->v[r * w->n + r]) < 0;
    PetscCall(MatGetInertia(w->F, &got[0], &got[1], &got[2]));
    PetscCheck(got[0] == negative && !got[1] && got[2] == w->n - negative, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Inertia %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT ", of %" PetscInt_FMT " negative eigenvalues", got[0], got[1], got[2], negative);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The backward error of a column for the factored values; refused: it is Inf */
static PetscErrorCode Right(const World *w, PetscBool transposed, const PetscScalar b[], const PetscScalar x[], PetscReal more, PetscBool *refused, const char what[])
{
  const PetscInt n    = w->n;
  PetscReal      most = 0, xs = 0, bs = 0, as = 0;

  PetscFunctionBegin;
  *refused = PETSC_TRUE;
  for (PetscInt r = 0; r < n; r++) *refused = (PetscBool)(*refused && PetscIsInfOrNanScalar(x[r]));
  if (*refused) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt r = 0; r < n; r++) {
    long double sum = (long double)PetscRealPart(b[r]), size = 0;

    for (PetscInt c = 0; c < n; c++) {
      const PetscReal a = PetscRealPart(w->factored[transposed ? c * n + r : r * n + c]);

      sum -= (long double)a * (long double)PetscRealPart(x[c]);
      size += PetscAbsReal(a);
    }
    most = PetscMax(most, PetscAbsReal((PetscReal)sum));
    as   = PetscMax(as, (PetscReal)size);
    xs   = PetscMax(xs, PetscAbsScalar(x[r]));
    bs   = PetscMax(bs, PetscAbsScalar(b[r]));
  }
  PetscCheck(most <= STABLE * (as * xs + bs + more), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s of kind %d, %" PetscInt_FMT " rows: a residual of %g, of at most %g", what, w->kind, n, (double)most, (double)(STABLE * (as * xs + bs + more)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewVec(const World *w, Vec *v)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_SELF, v));
  PetscCall(VecSetSizes(*v, w->n, w->n));
  PetscCall(VecSetType(*v, Draw(2) ? "gpu" : VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solve with vectors; two of them may be the same memory */
static PetscErrorCode SolveVec(const World *w, PetscBool *refused)
{
  const PetscInt     what       = Draw(5);
  const PetscBool    transposed = (PetscBool)(what == 1 || what == 3);
  const PetscScalar *xa;
  PetscScalar       *ba, *za, most = 0;
  Vec                b, x, z, whole;
  IS                 is;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(w->n, &ba, w->n, &za));
  PetscCall(NewVec(w, &b));
  PetscCall(NewVec(w, &x));
  PetscCall(NewVec(w, &z));
  PetscCall(TestFill(b, Draw(100), PETSC_FALSE));
  PetscCall(TestFill(z, Draw(100), PETSC_FALSE));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecGetArrayRead(k ? z : b, &xa));
    PetscCall(PetscArraycpy(k ? za : ba, xa, w->n));
    PetscCall(VecRestoreArrayRead(k ? z : b, &xa));
  }
  if (what == 0) PetscCall(MatSolve(w->F, b, x));
  if (what == 1) PetscCall(MatSolveTranspose(w->F, b, x));
  if (what == 2) PetscCall(MatSolveAdd(w->F, b, z, x));
  if (what == 3) PetscCall(MatSolveTransposeAdd(w->F, b, z, x));
  if (what == 4) { /* two parts of one vector with the same entries */
    PetscCall(VecDuplicate(b, &whole));
    PetscCall(VecCopy(b, whole));
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&x));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, w->n, 0, 1, &is));
    PetscCall(VecGetSubVector(whole, is, &b));
    PetscCall(VecGetSubVector(whole, is, &x));
    PetscCall(MatSolve(w->F, b, x));
  }
  PetscCall(VecGetArrayRead(x, &xa));
  for (PetscInt r = 0; r < w->n; r++) {
    za[r] = what == 2 || what == 3 ? xa[r] - za[r] : xa[r];
    most  = PetscMax(PetscAbsScalar(most), PetscAbsScalar(xa[r]));
  }
  PetscCall(VecRestoreArrayRead(x, &xa));
  {
    PetscReal as = 0;

    for (PetscInt k = 0; k < w->n * w->n; k++) as += PetscAbsScalar(w->factored[k]);
    PetscCall(Right(w, transposed, ba, za, what == 2 || what == 3 ? as * PetscRealPart(most) : 0, refused, what == 4 ? "A solve in place" : what > 1 ? "A sum" : "A solve"));
  }
  if (what == 4) {
    PetscCall(VecRestoreSubVector(whole, is, &b));
    PetscCall(VecRestoreSubVector(whole, is, &x));
    PetscCall(VecDestroy(&whole));
    PetscCall(ISDestroy(&is));
  }
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(PetscFree2(ba, za));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Dense columns, with gaps between them */
static PetscErrorCode SolveMat(const World *w, PetscBool *refused)
{
  static const PetscInt most[] = {0, 1, 2, 3, 63, 64, 65, 130};
  const PetscInt        k = most[Draw(8)], ldb = w->n + Draw(3), ldx = w->n + Draw(3);
  const PetscBool       transposed = (PetscBool)Draw(2);
  PetscScalar          *b, *x;
  Mat                   B, X;
  PetscBool             one;

  PetscFunctionBegin;
  *refused = PETSC_FALSE;
  PetscCall(PetscMalloc2(ldb * k + 1, &b, ldx * k + 1, &x));
  for (PetscInt e = 0; e < ldb * k; e++) b[e] = e % ldb < w->n ? Number() : (PetscScalar)INFINITY;
  for (PetscInt e = 0; e < ldx * k; e++) x[e] = 12345;
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, w->n, k, b, &B));
  PetscCall(MatDenseSetLDA(B, ldb));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, w->n, k, x, &X));
  PetscCall(MatDenseSetLDA(X, ldx));
  if (transposed) PetscCall(MatMatSolveTranspose(w->F, B, X));
  else PetscCall(MatMatSolve(w->F, B, X));
  for (PetscInt q = 0; q < k; q++) {
    PetscCall(Right(w, transposed, b + q * ldb, x + q * ldx, 0, &one, "Columns"));
    PetscCheck(!q || one == *refused, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Column %" PetscInt_FMT " is refused alone", q);
    *refused = one;
    for (PetscInt e = w->n; e < ldx; e++) PetscCheck(x[q * ldx + e] == 12345, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Columns: the gap after column %" PetscInt_FMT " was written", q);
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscCall(PetscFree2(b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveAny(const World *w)
{
  const PetscBool fault   = (PetscBool)!Draw(6);
  PetscBool       refused = PETSC_FALSE;

  PetscFunctionBegin;
  for (int again = 0; again < (fault ? 2 : 1); again++) {
    if (fault && !again) PetscCall(TestEnv("FAKE_CUDSS_FAIL", Draw(3) ? "solve:1:5" : "dense:1:2"));
    if (Draw(3)) PetscCall(SolveVec(w, &refused));
    else PetscCall(SolveMat(w, &refused));
    PetscCall(TestEnv("FAKE_CUDSS_FAIL", NULL));
    PetscCheck(!refused || (fault && !again), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A solution of kind %d and %" PetscInt_FMT " rows is refused", w->kind, w->n);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A bad matrix takes the place of a good one and must fail. The good one is factored again afterwards */
static PetscErrorCode Bad(World *w)
{
  const PetscInt n = w->n, r = Draw(n), what = Draw(4);
  World          bad = *w;
  MatFactorError error;
  PetscBool      refused;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(n * n, &bad.v, n * n, &bad.is));
  PetscCall(PetscArraycpy(bad.v, w->v, n * n));
  PetscCall(PetscArraycpy(bad.is, w->is, n * n));
  for (PetscInt c = 0; c < n; c++) {
    if (what == 0) bad.is[r * n + c] = 0;                                                           /* a row without entries */
    if (what == 1) bad.v[r * n + c] = 0;                                                            /* a row of zeros, */
    if (what == 1 && (w->cholesky || w->kind == POSITIVE)) bad.v[c * n + r] = 0;                    /* and a column */
    if (what >= 2 && bad.is[r * n + c]) bad.v[r * n + c] = what == 2 ? NAN : (PetscScalar)INFINITY; /* numbers that are not finite */
  }
  PetscCall(Build(&bad, PETSC_FALSE, &bad.A));
  PetscCall(FactorSteps(&bad, PETSC_TRUE, PETSC_FALSE));
  PetscCall(MatFactorGetError(w->F, &error));
  if (!error) PetscCall(FactorSteps(&bad, PETSC_FALSE, PETSC_TRUE));
  PetscCall(MatFactorGetError(w->F, &error));
  PetscCheck(error == (what == 0   ? MAT_FACTOR_STRUCT_ZEROPIVOT
                       : what == 1 ? MAT_FACTOR_NUMERIC_ZEROPIVOT
                                   : MAT_FACTOR_OTHER),
             PETSC_COMM_SELF, PETSC_ERR_PLIB, "Bad matrix %" PetscInt_FMT " of kind %d, %" PetscInt_FMT " rows: factor error %d", what, w->kind, n, (int)error);
  if (Draw(2)) PetscCall(SolveVec(&bad, &refused));
  else PetscCall(SolveMat(&bad, &refused));
  PetscCall(MatDestroy(&bad.A));
  PetscCall(PetscFree2(bad.v, bad.is));
  PetscCall(FactorSteps(w, PETSC_FALSE, PETSC_TRUE));
  PetscCall(MatFactorGetError(w->F, &error));
  PetscCheck(!error, PETSC_COMM_SELF, PETSC_ERR_PLIB, "After bad matrix %" PetscInt_FMT ": factor error %d", what, (int)error);
  PetscCall(PetscArraycpy(w->factored, w->v, n * n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Program(PetscInt seed)
{
  World w = {0};

  PetscFunctionBegin;
  state  = 77777 * (uint64_t)seed + 1;
  w.n    = Draw(5) ? 1 + Draw(30) : 1 + Draw(3);
  w.kind = (int)Draw(w.n > 1 ? KINDS : KINDS - 1);
  PetscCall(PetscMalloc3(w.n * w.n, &w.v, w.n * w.n, &w.factored, w.n * w.n, &w.is));
  PetscCall(Values(&w, PETSC_TRUE));
  PetscCall(Build(&w, PETSC_FALSE, &w.A));
  for (PetscInt step = 0; step < 12; step++) {
    const PetscInt what = w.ready ? Draw(10) : 0;

    if (what == 0) PetscCall(Factor(&w));
    else if (what == 1) {
      PetscCall(Change(&w));
      if (Draw(3)) PetscCall(Factor(&w));
    } else if (what == 2 && w.cholesky == (PetscBool)(w.cholesky && (w.kind == POSITIVE || w.kind == INDEFINITE))) PetscCall(Bad(&w));
    else PetscCall(SolveAny(&w));
  }
  PetscCall(MatDestroy(&w.F));
  PetscCall(MatDestroy(&w.A));
  PetscCall(PetscFree3(w.v, w.factored, w.is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt first = 0, programs = 100, failures = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-programs", &programs, NULL));
  for (PetscInt k = first; k < first + programs && failures < 10; k++) {
    if (!Program(k)) continue;
    (void)PetscFPrintf(PETSC_COMM_SELF, stderr, "random program: -first %" PetscInt_FMT " -programs 1\n", k);
    failures++;
  }
  PetscCheck(!failures, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " programs have failed", failures);
  PetscCall(PetscFinalize());
  return 0;
}
