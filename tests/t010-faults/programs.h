/* The programs of t010-faults.c, which meet a fault at each of their calls */
/* ---- shared by the programs ---- */

#define ROWS 90

/* Tridiagonal, symmetric and positive definite, with a few entries far away; other: with other values */
static PetscErrorCode Matrix(PetscBool ref, PetscInt n, PetscBool other, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 5, NULL, 5, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(*A, r, r, 5 + (other ? 1 : 0) + (PetscReal)(r % 7) / 3, INSERT_VALUES));
    if (r > 0) PetscCall(MatSetValue(*A, r, r - 1, -1, INSERT_VALUES));
    if (r < n - 1) PetscCall(MatSetValue(*A, r, r + 1, -1, INSERT_VALUES));
    if (r >= n / 2) PetscCall(MatSetValue(*A, r, r - n / 2, -0.5, INSERT_VALUES));
    if (r < n - n / 2) PetscCall(MatSetValue(*A, r, r + n / 2, -0.5, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the programs ---- */

/* Products with A and its transpose, before and after new values and a new pattern */
static PetscErrorCode Products(void)
{
  Mat A, R;

  PetscFunctionBegin;
  PetscCall(TestZoo(PETSC_COMM_WORLD, ZOO_RANDOM, PETSC_FALSE, PETSC_FALSE, &A));
  PetscCall(TestZoo(PETSC_COMM_WORLD, ZOO_RANDOM, PETSC_FALSE, PETSC_TRUE, &R));
  PetscCall(TestProducts(A, R, PETSC_FALSE, "at first"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(TestProducts(A, R, PETSC_FALSE, "with other values"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix in each format, and its transpose */
static PetscErrorCode Formats(void)
{
  static const char *const formats[] = {"csr", "sell", "sell_sorted", "ell", "bitdense", "dia", "coo", "hyb", "jad", "stencil", "bcsr2x2", "block4x64"};
  Mat                      A, R, B;

  PetscFunctionBegin;
  PetscCall(Matrix(PETSC_TRUE, ROWS, PETSC_FALSE, &R));
  PetscCall(TestAbs(R, &B));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(formats); k++) {
    Vec x, y, z, u, v;

    PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_format", formats[k]));
    PetscCall(Matrix(PETSC_FALSE, ROWS, PETSC_FALSE, &A));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecDuplicate(y, &z));
    PetscCall(TestFill(x, 3, PETSC_FALSE));
    PetscCall(VecDuplicate(x, &u));
    PetscCall(VecCopy(x, u));
    PetscCall(VecAbs(u));
    PetscCall(VecDuplicate(z, &v));
    PetscCall(MatMult(B, u, v));
    for (int values = 0; values < 2; values++) {
      if (values) {
        PetscCall(MatScale(A, 2.0));
        PetscCall(VecScale(v, 2.0));
      }
      for (int t = 0; t < 2; t++) { /* of a symmetric matrix both are the same */
        if (t) PetscCall(MatMultTranspose(A, x, y));
        else PetscCall(MatMult(A, x, y));
        PetscCall(MatMult(R, x, z));
        if (values) PetscCall(VecScale(z, 2.0));
        PetscCall(TestClose(y, z, v, "product", formats[k]));
      }
    }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    PetscCall(VecDestroy(&u));
    PetscCall(VecDestroy(&v));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_format", o.format));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with the host's vectors, long enough to be cut into pieces; with two entries a row the result is known */
static PetscErrorCode Pieces(void)
{
  const PetscInt     n = 530000;
  Mat                A;
  Vec                x, y;
  PetscLayout        rows;
  PetscInt           rs, re, *i, *j;
  PetscScalar       *a;
  const PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_FALSE, &A));
  PetscCall(MatGetLayouts(A, &rows, NULL));
  PetscCall(PetscLayoutSetUp(rows));
  PetscCall(PetscLayoutGetRange(rows, &rs, &re));
  PetscCall(PetscMalloc3(re - rs + 1, &i, 2 * (re - rs), &j, 2 * (re - rs), &a));
  for (PetscInt r = rs, k = 0; r < re; r++) {
    i[r - rs] = k;
    if (r > 0) {
      j[k]   = r - 1;
      a[k++] = -1;
    }
    j[k]          = r;
    a[k++]        = 2 + r % 7;
    i[r - rs + 1] = k;
  }
  PetscCall(MatSeqAIJSetPreallocationCSR(A, i, j, a));
  PetscCall(MatMPIAIJSetPreallocationCSR(A, i, j, a));
  PetscCall(PetscFree3(i, j, a));
  PetscCall(MatCreateVecs(A, &x, &y));
  for (PetscInt pass = 1; pass < 4; pass++) { /* x is pass * (r % 5), and all sums are small integers */
    PetscScalar *w;

    PetscCall(VecGetArrayWrite(x, &w));
    for (PetscInt r = rs; r < re; r++) w[r - rs] = pass * (r % 5);
    PetscCall(VecRestoreArrayWrite(x, &w));
    for (PetscInt times = 1; times < 3; times++) { /* the product, and the product added to it */
      if (times == 1) PetscCall(MatMult(A, x, y));
      else PetscCall(MatMultAdd(A, x, y, y));
      PetscCall(VecGetArrayRead(y, &v));
      for (PetscInt r = rs; r < re; r++) {
        const PetscInt z = times * pass * ((2 + r % 7) * (r % 5) - (r ? (r - 1) % 5 : 0));

        PetscCheck(PetscRealPart(v[r - rs]) == z, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Product in pieces: entry %" PetscInt_FMT " is %g, should be %" PetscInt_FMT, r, (double)PetscRealPart(v[r - rs]), z);
      }
      PetscCall(VecRestoreArrayRead(y, &v));
    }
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same operations with vectors of one type; sum: of all resulting numbers */
static PetscErrorCode Operations(VecType type, Vec result, PetscReal *sum)
{
  const PetscInt     n = 40;
  Vec                x, y, v[5];
  PetscScalar        dots[5], a[5] = {1, -2, 0.5, 3, 0.25}, *array;
  PetscReal          norm, max;
  PetscInt           at;
  const PetscScalar *read;
  PetscScalar       *write;
  PetscInt           nl;

  PetscFunctionBegin;
  *sum = 0;
  PetscCall(VecCreate(PETSC_COMM_WORLD, &x));
  PetscCall(VecSetSizes(x, PETSC_DECIDE, n));
  PetscCall(VecSetType(x, type));
  PetscCall(VecDuplicate(x, &y));
  for (int k = 0; k < 5; k++) {
    PetscCall(VecDuplicate(x, &v[k]));
    PetscCall(TestFill(v[k], k + 2, PETSC_FALSE));
  }
  PetscCall(VecSet(x, 1.5));
  PetscCall(VecCopy(v[0], y));
  PetscCall(VecAXPY(y, 2.0, x));
  PetscCall(VecAYPX(x, -1.0, y));
  PetscCall(VecMAXPY(x, 5, a, v));
  PetscCall(VecMDot(x, 5, v, dots));
  for (int k = 0; k < 5; k++) *sum += PetscRealPart(dots[k]);
  PetscCall(VecPointwiseMult(y, x, v[1]));
  PetscCall(VecNorm(y, NORM_2, &norm));
  PetscCall(VecMax(y, &at, &max));
  *sum += norm + max + at;
  PetscCall(VecGetArray(y, &array));
  PetscCall(VecGetLocalSize(y, &nl));
  for (PetscInt k = 0; k < nl; k++) array[k] += 1;
  PetscCall(VecRestoreArray(y, &array));
  PetscCall(VecWAXPY(v[4], 1.0, y, x));
  PetscCall(VecSwap(v[4], v[3]));
  PetscCall(VecScale(v[3], 0.5));
  PetscCall(VecAXPBYPCZ(x, 1.0, 2.0, 3.0, v[3], v[2]));
  PetscCall(VecDot(x, v[3], dots));
  PetscCall(VecSum(x, dots + 1));
  *sum += PetscRealPart(dots[0]) + PetscRealPart(dots[1]);
  PetscCall(VecGetArrayRead(x, &read));
  PetscCall(VecGetArrayWrite(result, &write));
  for (PetscInt k = 0; k < nl; k++) write[k] = read[k];
  PetscCall(VecRestoreArrayWrite(result, &write));
  PetscCall(VecRestoreArrayRead(x, &read));
  for (int k = 0; k < 5; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Vectors(void)
{
  Vec       result[2];
  PetscReal sum[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(VecCreate(PETSC_COMM_WORLD, &result[k]));
    PetscCall(VecSetSizes(result[k], PETSC_DECIDE, 40));
    PetscCall(VecSetType(result[k], VECSTANDARD));
    PetscCall(Operations(k ? "gpu" : VECSTANDARD, result[k], &sum[k]));
  }
  PetscCheck(PetscAbsReal(sum[0] - sum[1]) <= 1e4 * PETSC_MACHINE_EPSILON * PetscAbsReal(sum[0]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Numbers of vectors add up to %g, not %g", (double)sum[1], (double)sum[0]);
  PetscCall(TestCloseVec(result[1], result[0], "vector", "operations"));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&result[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with a dense matrix */
static PetscErrorCode Columns(void)
{
  Mat         A, R, B, C = NULL, D, E;
  PetscReal   norm, error;
  PetscRandom random;

  PetscFunctionBegin;
  PetscCall(Matrix(PETSC_FALSE, ROWS, PETSC_FALSE, &A));
  PetscCall(Matrix(PETSC_TRUE, ROWS, PETSC_FALSE, &R));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, ROWS, 6, NULL, &B));
  PetscCall(PetscRandomCreate(PETSC_COMM_WORLD, &random));
  PetscCall(MatSetRandom(B, random));
  PetscCall(MatMatMult(R, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatMatMult(A, B, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatDuplicate(C, MAT_COPY_VALUES, &E));
    PetscCall(MatNorm(D, NORM_FROBENIUS, &norm));
    PetscCall(MatAXPY(E, -1.0, D, SAME_NONZERO_PATTERN));
    PetscCall(MatNorm(E, NORM_FROBENIUS, &error));
    PetscCheck(error <= 100 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Product with a dense matrix is off by %g of %g", (double)error, (double)norm);
    PetscCall(MatDestroy(&E));
  }
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each solver by each path, twice, the second time with other values; the residual is taken by MATAIJ */
static PetscErrorCode Solvers(void)
{
  static const struct {
    const char *type, *pc, *path, *precision;
  } how[] = {
    {"gpucg",   "none",    "auto",      "double"              },
    {"gpucg",   "jacobi",  "graph",     "double"              },
    {"gpucg",   "jacobi",  "host_loop", "double"              },
    {"gpucg",   "jacobi",  "auto",      "residual_replacement"},
    {"gpucg",   "bjacobi", "auto",      "double"              },
    {"gpubcgs", "none",    "auto",      "double"              },
    {"gpubcgs", "jacobi",  "host_loop", "double"              },
    {"cg",      "jacobi",  "auto",      "double"              },
  };
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(how); k++) {
    Mat                A, R;
    Vec                x, b, r;
    KSP                ksp;
    PC                 pc;
    PetscBool          graph;
    PetscReal          norm, error;
    KSPConvergedReason reason;
    char               option[64];

    PetscCall(PetscStrcmp(how[k].path, "graph", &graph));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetType(ksp, how[k].type));
    PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_path", how[k].type));
    PetscCall(PetscOptionsSetValue(NULL, option, size > 1 && graph ? "auto" : how[k].path));
    PetscCall(PetscOptionsSetValue(NULL, "-ksp_gpucg_precision", how[k].precision));
    PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, how[k].pc));
    PetscCall(KSPSetFromOptions(ksp));
    for (int values = 0; values < 2; values++) {
      PetscCall(Matrix(PETSC_FALSE, ROWS, (PetscBool)values, &A));
      PetscCall(Matrix(PETSC_TRUE, ROWS, (PetscBool)values, &R));
      PetscCall(MatCreateVecs(A, &x, &b));
      PetscCall(VecDuplicate(b, &r));
      PetscCall(TestFill(b, 5, PETSC_FALSE));
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with %s by %s: %s", how[k].type, how[k].pc, how[k].path, KSPConvergedReasons[reason]);
      PetscCall(MatMult(R, x, r));
      PetscCall(VecAYPX(r, -1.0, b));
      PetscCall(VecNorm(r, NORM_2, &error));
      PetscCall(VecNorm(b, NORM_2, &norm));
      PetscCheck(error <= 1e-6 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with %s by %s leaves a residual of %g of %g", how[k].type, how[k].pc, how[k].path, (double)error, (double)norm);
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&b));
      PetscCall(VecDestroy(&r));
      PetscCall(MatDestroy(&A));
      PetscCall(MatDestroy(&R));
    }
    PetscCall(KSPDestroy(&ksp));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of sparse matrices on the device, for new values too */
static PetscErrorCode Sparse(void)
{
  Mat       A, R, C[2] = {NULL, NULL}, D;
  PetscReal norm, error;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_product_least", "0"));
  PetscCall(Matrix(PETSC_FALSE, ROWS, PETSC_FALSE, &A));
  PetscCall(Matrix(PETSC_TRUE, ROWS, PETSC_FALSE, &R));
  for (int k = 0; k < 2; k++) {
    const MatReuse reuse = k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    PetscCall(MatMatMult(A, A, reuse, PETSC_DEFAULT, &C[0]));
    PetscCall(MatPtAP(A, A, reuse, PETSC_DEFAULT, &C[1]));
    for (int q = 0; q < 2; q++) {
      if (q) PetscCall(MatPtAP(R, R, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
      else PetscCall(MatMatMult(R, R, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
      PetscCall(MatNorm(D, NORM_FROBENIUS, &norm));
      PetscCall(MatAXPY(D, -1.0, C[q], DIFFERENT_NONZERO_PATTERN));
      PetscCall(MatNorm(D, NORM_FROBENIUS, &error));
      PetscCheck(error <= 100 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is off by %g of %g", q ? "PtAP" : "A A", (double)error, (double)norm);
      PetscCall(MatDestroy(&D));
    }
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  for (int q = 0; q < 2; q++) PetscCall(MatDestroy(&C[q]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factorizations and their solves, again after new values; of several processes, of the block that each has */
static PetscErrorCode Factors(void)
{
  static const char *const types[] = {PCILU, PCICC, PCLU};
  PetscMPIInt              size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat M[2];
    Vec b, z[2];
    PC  pc[2];

    for (int q = 0; q < 2; q++) {
      PetscCall(Matrix((PetscBool)q, ROWS, PETSC_FALSE, &M[q]));
      PetscCall(PCCreate(PETSC_COMM_WORLD, &pc[q]));
      PetscCall(PCSetOperators(pc[q], M[q], M[q]));
      PetscCall(PCSetType(pc[q], size > 1 ? PCBJACOBI : types[k]));
    }
    PetscCall(MatCreateVecs(M[0], &z[0], &b));
    PetscCall(VecDuplicate(z[0], &z[1]));
    PetscCall(TestFill(b, 5, PETSC_FALSE));
    for (int values = 0; values < 2; values++) {
      for (int q = 0; q < 2; q++) {
        if (values) PetscCall(MatScale(M[q], 2.0));
        PetscCall(PCApply(pc[q], b, z[q]));
      }
      PetscCall(TestCloseVec(z[0], z[1], "solve", types[k]));
      if (size > 1) continue;
      for (int q = 0; q < 2; q++) PetscCall(PCApplyTranspose(pc[q], b, z[q]));
      PetscCall(TestCloseVec(z[0], z[1], "transposed solve", types[k]));
    }
    for (int q = 0; q < 2; q++) {
      PetscCall(VecDestroy(&z[q]));
      PetscCall(PCDestroy(&pc[q]));
      PetscCall(MatDestroy(&M[q]));
    }
    PetscCall(VecDestroy(&b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A multigrid made ready, and made ready again for other values */
static PetscErrorCode Multigrid(const char type[])
{
  char      limit[64];
  KSP       ksp;
  PC        pc;
  Mat       A, R;
  Vec       x, b, r;
  PetscReal norm, error;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(limit, sizeof(limit), "-pc_%s_coarse_eq_limit", type));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_product_least", "0"));
  PetscCall(PetscOptionsSetValue(NULL, limit, "10"));
  PetscCall(PetscOptionsSetValue(NULL, "-pc_gpuamg_gather_limit", "10"));
  PetscCall(PetscOptionsSetValue(NULL, "-pc_gpuamg_process_eq_limit", "5"));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, type));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(Matrix(PETSC_FALSE, ROWS, PETSC_FALSE, &A));
  PetscCall(Matrix(PETSC_TRUE, ROWS, PETSC_FALSE, &R));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(TestFill(b, 5, PETSC_FALSE));
  PetscCall(KSPSetOperators(ksp, A, A));
  for (int values = 0; values < 2; values++) {
    if (values) PetscCall(MatScale(A, 2.0));
    if (values) PetscCall(MatScale(R, 2.0));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(MatMult(R, x, r));
    PetscCall(VecAYPX(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &error));
    PetscCall(VecNorm(b, NORM_2, &norm));
    PetscCheck(error <= 1e-6 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "cg with %s leaves a residual of %g of %g", type, (double)error, (double)norm);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GAMG(void)
{
  return Multigrid(PCGAMG);
}

static PetscErrorCode GPUAMG(void)
{
  return Multigrid(PCGPUAMG);
}

/* The hinge loss of two classes, as a program of TAO's bmrm has it */
typedef struct {
  Mat X;
  Vec margin;
} Learner;

static PetscErrorCode Loss(Tao tao, Vec w, PetscReal *f, Vec g, void *ctx)
{
  Learner     *l = (Learner *)ctx;
  PetscScalar *m;
  PetscReal    sum = 0;
  PetscInt     rs, re, rows;

  PetscFunctionBegin;
  (void)tao;
  PetscCall(MatMult(l->X, w, l->margin));
  PetscCall(MatGetSize(l->X, &rows, NULL));
  PetscCall(VecGetOwnershipRange(l->margin, &rs, &re));
  PetscCall(VecGetArray(l->margin, &m));
  for (PetscInt r = rs; r < re; r++) {
    const PetscReal y = r % 2 ? 1 : -1, t = 1 - y * PetscRealPart(m[r - rs]);

    sum += PetscMax(t, 0);
    m[r - rs] = t > 0 ? -y / rows : 0;
  }
  PetscCall(VecRestoreArray(l->margin, &m));
  PetscCallMPI(MPI_Allreduce(&sum, f, 1, MPIU_REAL, MPIU_SUM, PETSC_COMM_WORLD));
  *f /= rows;
  PetscCall(MatMultTranspose(l->X, l->margin, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Learn(void)
{
  PetscReal f[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Learner l;
    Tao     tao;
    Vec     w;

    PetscCall(Matrix(k ? PETSC_FALSE : PETSC_TRUE, ROWS, PETSC_FALSE, &l.X));
    PetscCall(MatCreateVecs(l.X, &w, &l.margin));
    PetscCall(VecSet(w, 0.0));
    PetscCall(TaoCreate(PETSC_COMM_WORLD, &tao));
    PetscCall(TaoSetType(tao, "gpubmrm")); /* PETSc forgets TAOBMRM when it is initialised again */
    PetscCall(TaoSetSolution(tao, w));
    PetscCall(TaoSetObjectiveAndGradient(tao, NULL, Loss, &l));
    PetscCall(TaoSetTolerances(tao, 0, 0, 1e-4));
    PetscCall(TaoSetFromOptions(tao));
    PetscCall(TaoSolve(tao));
    PetscCall(TaoGetSolutionStatus(tao, NULL, &f[k], NULL, NULL, NULL, NULL));
    PetscCall(TaoDestroy(&tao));
    PetscCall(VecDestroy(&w));
    PetscCall(VecDestroy(&l.margin));
    PetscCall(MatDestroy(&l.X));
  }
  PetscCheck(PetscAbsReal(f[0] - f[1]) <= 2e-3 * PetscAbsReal(f[0]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "gpubmrm ends with %.8g, with MATAIJ with %.8g", (double)f[1], (double)f[0]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*run)(void);
} programs[] = {
  {"products", Products },
  {"formats",  Formats  },
  {"vectors",  Vectors  },
  {"columns",  Columns  },
  {"solvers",  Solvers  },
  {"learn",    Learn    },
  {"pieces",   Pieces   },
  {"sparse",   Sparse   },
  {"factors",  Factors  },
  {"gamg",     GAMG     },
  {"gpuamg",   GPUAMG   },
};
