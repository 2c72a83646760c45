/* Operations that make matrices from a matrix, of t450-sequences.c: parts, sums, wrappers, copies of other types, files */
#include <petsc/private/petscimpl.h>
#include <unistd.h>

/* A number that depends on every entry of A, by its products with small integers */
static PetscErrorCode Weigh(Mat A, uint32_t salt, double *result)
{
  Vec                x, y;
  const PetscScalar *read;
  PetscInt           n, first;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  for (int side = 0; side < 2; side++) {
    const Vec in = side ? y : x, out = side ? x : y;

    PetscCall(VecGetLocalSize(in, &n));
    PetscCall(VecGetOwnershipRange(in, &first, NULL));
    for (PetscInt k = first; k < first + n; k++) PetscCall(VecSetValue(in, k, Small(salt, (uint32_t)k, 17), INSERT_VALUES));
    PetscCall(VecAssemblyBegin(in));
    PetscCall(VecAssemblyEnd(in));
    PetscCall(side ? MatMultTranspose(A, in, out) : MatMult(A, in, out));
    PetscCall(VecGetLocalSize(out, &n));
    PetscCall(VecGetArrayRead(out, &read));
    for (PetscInt k = 0; k < n; k++) *result += (double)PetscRealPart(read[k]) * (double)((5 * k) % 11 - 3);
    PetscCall(VecRestoreArrayRead(out, &read));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some of a rank's rows of a space: a stride, or with one process in any order */
static PetscErrorCode Some(MPI_Comm comm, int s, uint32_t salt, IS *is)
{
  const PetscInt step = 1 + (PetscInt)(salt % 3), n = (g.local[s] + step - 1) / step;
  PetscInt       at[SIZE];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) at[k] = g.start[s] + k * step;
  if (g.ranks == 1 && salt % 2)
    for (PetscInt k = n - 1; k > 0; k--) {
      const PetscInt q = (PetscInt)(Hash(salt, (uint32_t)k, 5) % (uint32_t)(k + 1)), t = at[k];

      at[k] = at[q];
      at[q] = t;
    }
  PetscCall(ISCreateGeneral(comm, n, at, PETSC_COPY_VALUES, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A part, again after changes of the whole and of the part */
static PetscErrorCode Op_part(World *w, const int p[4], double *result)
{
  const int k = p[0] % MATS;
  IS        row, col;
  Mat       S, M = w->m[k];

  PetscFunctionBegin;
  g.grown = PETSC_TRUE;
  PetscCall(Some(g.comm, rowspace[k], (uint32_t)p[1], &row));
  PetscCall(Some(g.comm, colspace[k], (uint32_t)p[1] / 7, &col));
  for (int round = 0; round < 3; round++) {
    PetscCall(MatCreateSubMatrix(M, row, col, round ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &S));
    if ((p[2] + round) % 2) PetscCall(Weigh(S, (uint32_t)p[3], result));
    if (p[2] % 3) PetscCall(MatScale(S, 2.0));
    if (p[2] % 5 == 0) PetscCall(Weigh(S, (uint32_t)p[3], result));
    if (k != SPD) PetscCall(ChangeBetween(w, M, k, p[3] + 3 * round, (uint32_t)p[2]));
  }
  PetscCall(Weigh(S, (uint32_t)p[2], result));
  PetscCall(MatDestroy(&S));
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two parts on each rank, likewise */
static PetscErrorCode Op_parts(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);
  IS        row[2], col[2];
  Mat      *S;

  PetscFunctionBegin;
  g.grown = PETSC_TRUE;
  for (int q = 0; q < 2; q++) {
    const int      other = (p[1] + q) % 3 == 0;
    const PetscInt m     = g.size[rowspace[k]];

    if (other) PetscCall(ISCreateStride(PETSC_COMM_SELF, (m + 1) / 2, 0, m > 1 ? 2 - m % 2 : 1, &row[q]));
    else PetscCall(Some(PETSC_COMM_SELF, rowspace[k], 2 * (uint32_t)p[1], &row[q]));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, g.size[colspace[k]], 0, 1, &col[q]));
  }
  for (int round = 0; round < 2; round++) {
    PetscCall(MatCreateSubMatrices(w->m[k], 2, row, col, round ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &S));
    for (int q = 0; q < 2; q++) {
      PetscCall(Weigh(S[q], (uint32_t)p[3], result));
      if (p[2] % 3) PetscCall(MatScale(S[q], 2.0));
    }
    PetscCall(ChangeBetween(w, w->m[k], k, p[3] + 3 * round, (uint32_t)p[2]));
  }
  for (int q = 0; q < 2; q++) {
    PetscCall(Weigh(S[q], (uint32_t)p[2], result));
    PetscCall(ISDestroy(&row[q]));
    PetscCall(ISDestroy(&col[q]));
  }
  PetscCall(MatDestroySubMatrices(2, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_permute(World *w, const int p[4], double *result)
{
  const int k = p[0] % MATS;
  IS        is[2];
  Mat       B;

  PetscFunctionBegin;
  for (int q = 0; q < 2; q++) {
    const int s = q ? colspace[k] : rowspace[k];

    PetscCall(ISCreateStride(g.comm, g.local[s], g.start[s] + (g.local[s] ? g.local[s] - 1 : 0), -1, &is[q]));
    PetscCall(ISSetPermutation(is[q]));
  }
  PetscCall(MatPermute(w->m[k], is[0], is[1], &B));
  PetscCall(Weigh(B, (uint32_t)p[1], result));
  for (int q = 0; q < 2; q++) PetscCall(ISDestroy(&is[q]));
  if (k != SPD && p[2] % 2) {
    PetscCall(Another(w));
    PetscCall(MatHeaderReplace(w->m[k], &B));
  } else PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another matrix in place of one: it may share the pattern, and outlives it */
static PetscErrorCode Op_outlive(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);
  Mat       B;

  PetscFunctionBegin;
  PetscCall(Another(w));
  if (p[1] % 2) PetscCall(Weigh(w->m[k], (uint32_t)p[2], result));
  if (p[1] % 3 == 0) PetscCall(MakeMat(w, k, (uint32_t)p[2], &B));
  else PetscCall(MatDuplicate(w->m[k], p[1] % 3 == 1 ? MAT_SHARE_NONZERO_PATTERN : MAT_COPY_VALUES, &B));
  if (p[1] % 3) PetscCall(MatAXPY(B, 3.0, w->m[k], SAME_NONZERO_PATTERN));
  if (p[1] % 5 < 2) PetscCall(Weigh(B, (uint32_t)p[2], result));
  PetscCall(MatDestroy(&w->m[k]));
  w->m[k] = B;
  for (int q = 0; q < PRODUCTS; q++) PetscCall(MatDestroy(&w->kept[q])); /* they had that matrix */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of three, and with a transpose, again after a change */
static PetscErrorCode Op_three(World *w, const int p[4], double *result)
{
  const int kind = p[0] % 4;
  Mat       C;

  PetscFunctionBegin;
  if (g.single || (g.ranks > 1 && kind)) PetscFunctionReturn(PETSC_SUCCESS);
  g.grown = PETSC_TRUE;
  for (int round = 0; round < 2; round++) {
    const MatReuse reuse = round ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    if (kind == 0) PetscCall(MatMatMatMult(w->m[2], w->m[0], w->m[1], reuse, PETSC_DEFAULT, &C));
    else if (kind == 1) PetscCall(MatRARt(w->m[0], w->m[2], reuse, PETSC_DEFAULT, &C));
    else if (kind == 2) PetscCall(MatMatTransposeMult(w->m[1], w->m[1], reuse, PETSC_DEFAULT, &C));
    else PetscCall(MatMatTransposeMult(w->m[0], w->m[2], reuse, PETSC_DEFAULT, &C));
    PetscCall(Weigh(C, (uint32_t)p[1], result));
    PetscCall(MatScale(C, 2.0));
    PetscCall(Weigh(C, (uint32_t)p[1], result));
    if (!round) {
      const int k = p[2] % 3;

      PetscCall(MatScale(w->m[k], -1.0));
      PetscCall(ChangeBetween(w, w->m[k], k, p[3], (uint32_t)p[2]));
    }
  }
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product by its steps, with other factors of the same patterns in between */
static PetscErrorCode Op_steps(World *w, const int p[4], double *result)
{
  const int kind = p[0] % 3;
  Mat       C, A = w->m[kind == 0 ? 1 : 0], B = w->m[kind == 0 ? 2 : 1], D = NULL;

  PetscFunctionBegin;
  if (g.single) PetscFunctionReturn(PETSC_SUCCESS);
  if (kind == 2) A = w->m[1], B = w->m[0]; /* A^T B */
  PetscCall(MatProductCreate(A, B, NULL, &C));
  PetscCall(MatProductSetType(C, kind == 0 ? MATPRODUCT_AB : kind == 1 ? MATPRODUCT_PtAP : MATPRODUCT_AtB));
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(MatProductSymbolic(C));
  if (p[1] % 2) PetscCall(MatProductNumeric(C));
  if (p[1] % 3 && g.ranks == 1) {
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &D));
    PetscCall(MatScale(D, -2.0));
    PetscCall(MatProductReplaceMats(D, p[1] % 5 == 0 ? B : NULL, NULL, C));
  }
  PetscCall(MatProductNumeric(C));
  PetscCall(Weigh(C, (uint32_t)p[2], result));
  if (p[3] % 3 == 0) PetscCall(MatProductClear(C));
  PetscCall(MatScale(C, 2.0));
  PetscCall(Weigh(C, (uint32_t)p[2], result));
  if (p[3] % 3) {
    PetscCall(MatProductNumeric(C));
    PetscCall(Weigh(C, (uint32_t)p[2], result));
  }
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Questions */
static PetscErrorCode Op_ask(World *w, const int p[4], double *result)
{
  const int   k = p[0] % MATS, r = rowspace[k], c = colspace[k];
  PetscBool   yes = PETSC_FALSE;
  PetscInt    at  = -1, n;
  PetscReal   norms[8 * SIZE];
  PetscScalar sum;
  Vec         x, y;
  Mat         B;
  IS          is;

  PetscFunctionBegin;
  switch (p[1] % 9) {
  case 0:
    if (r == c) PetscCall(MatIsSymmetric(w->m[k], 0.0, &yes));
    break;
  case 1:
    PetscCall(MatDuplicate(w->m[k], MAT_COPY_VALUES, &B));
    if (p[2] % 2) PetscCall(MatScale(B, -1.0));
    if (p[2] % 3) PetscCall(MatScale(w->m[k], k == SPD ? 1.0 : -1.0));
    PetscCall(MatEqual(w->m[k], B, &yes));
    PetscCall(MatDestroy(&B));
    break;
  case 2:
    if (r == c && g.ranks == 1) PetscCall(MatMissingDiagonal(w->m[k], &yes, &at));
    break;
  case 3:
    PetscCall(MatGetColumnReductions(w->m[k], p[2] % 2 ? REDUCTION_SUM_REALPART : NORM_INFINITY, norms));
    for (PetscInt q = 0; q < g.size[c] && q < 8 * SIZE; q++) *result += (double)norms[q] * (double)(q % 7 + 1);
    break;
  case 4:
    if (r != c) break;
    PetscCall(MatGetTrace(w->m[k], &sum));
    *result = (double)PetscRealPart(sum);
    break;
  case 5:
    if (r != c) break;
    PetscCall(MatFindZeroDiagonals(w->m[k], &is));
    PetscCall(ISGetLocalSize(is, &n));
    PetscCall(ISDestroy(&is));
    at = n;
    break;
  default:
    PetscCall(MatCreateVecs(w->m[k], &x, &y));
    if (p[1] % 9 == 6) PetscCall(MatGetRowSum(w->m[k], y));
    else if (p[1] % 9 == 7 && g.ranks == 1) PetscCall(MatGetRowMax(w->m[k], y, NULL));
    else if (g.ranks == 1) PetscCall(MatGetRowMinAbs(w->m[k], y, NULL));
    PetscCall(VecSum(y, &sum));
    *result = (double)PetscRealPart(sum);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  }
  *result += 1000.0 * yes + (double)at;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sweeps, by the same code in both worlds. With a guess, several processes multiply off-diagonal blocks by numbers that are no integers */
static PetscErrorCode Op_sor(World *w, const int p[4], double *result)
{
  Vec                x, b;
  const PetscScalar *read;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(w->m[SPD], &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(VecSet(x, 2.0));
  for (int round = 0; round < 2; round++) {
    PetscCall(MatSOR(w->m[SPD], b, 1.0, (MatSORType)((p[1] % 2 ? SOR_LOCAL_SYMMETRIC_SWEEP : SOR_LOCAL_FORWARD_SWEEP) | (g.ranks > 1 ? SOR_ZERO_INITIAL_GUESS : 0)), 0.0, 1, 1, x));
    PetscCall(MatScale(w->m[SPD], 2.0));
    if (p[2] % 2) PetscCall(MatMult(w->m[SPD], b, x));
  }
  PetscCall(VecGetArrayRead(x, &read));
  for (PetscInt k = 0; k < g.local[0]; k++) *result += (double)PetscRealPart(read[k]);
  PetscCall(VecRestoreArrayRead(x, &read));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices of matrices, which multiply before and after a change of a part */
static PetscErrorCode Op_wrap(World *w, const int p[4], double *result)
{
  Mat       N, C = NULL, four[4] = {w->m[0], w->m[1], w->m[2], w->m[3]};
  const int kind = p[0] % 6, k = p[2] % 4;
  char      type[64];
  KSP       ksp;
  PC        pc;

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  g.grown = PETSC_TRUE;
  switch (kind) {
  case 0:
    PetscCall(MatCreateNest(g.comm, 2, NULL, 2, NULL, four, &N));
    break;
  case 1:
    four[1] = w->m[SPD];
    PetscCall(MatCreateComposite(g.comm, 2, four, &N));
    break;
  case 2:
    four[0] = w->m[2];
    four[1] = w->m[1];
    PetscCall(MatCreateComposite(g.comm, 2, four, &N));
    PetscCall(MatCompositeSetType(N, MAT_COMPOSITE_MULTIPLICATIVE));
    break;
  case 3:
    PetscCall(MatCreateTranspose(w->m[k], &N));
    break;
  case 4:
    PetscCall(MatCreateNormal(w->m[k], &N));
    break;
  default:
    PetscCall(MatCreateSchurComplement(w->m[0], w->m[0], w->m[1], w->m[2], w->m[3], &N));
    PetscCall(MatSchurComplementGetKSP(N, &ksp));
    PetscCall(KSPSetType(ksp, KSPPREONLY));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCNONE));
  }
  if (g.single && kind > 1) {
    PetscCall(MatDestroy(&N));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int round = 0; round < 2; round++) {
    PetscCall(Weigh(N, (uint32_t)p[1], result));
    if (kind == 0 || (kind == 3 && g.ranks == 1)) {
      PetscCall(MatConvert(N, w->ref || p[3] % 2 ? MATAIJ : type, round ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &C));
      PetscCall(Weigh(C, (uint32_t)p[1], result));
    }
    PetscCall(MatScale(w->m[k], -1.0));
    PetscCall(ChangeBetween(w, w->m[k], k, p[3], (uint32_t)p[2]));
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&N));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Hermitian transpose of real numbers */
static PetscErrorCode Op_hermitian(World *w, const int p[4], double *result)
{
  PRODUCT;
  const int z = r == c ? 3 - a - b : p[3] % VECS;

  PetscFunctionBegin;
  (void)result;
  if (p[3] % 2) PetscCall(MatMultHermitianTranspose(w->m[k], w->v[r][a], w->v[c][b]));
  else PetscCall(MatMultHermitianTransposeAdd(w->m[k], w->v[r][a], w->v[c][b], w->v[c][z]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Into a file and back */
static PetscErrorCode Op_file(World *w, const int p[4], double *result)
{
  const int   k = p[0] % (MATS - 1);
  PetscViewer viewer;
  char        name[64];

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  PetscCall(PetscSNPrintf(name, sizeof(name), "/tmp/t450.%d.%d", (int)getpid(), (int)w->ref));
  PetscCallMPI(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, g.comm));
  PetscCall(PetscViewerBinaryOpen(g.comm, name, FILE_MODE_WRITE, &viewer));
  PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
  PetscCall(MatView(w->m[k], viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  if (p[1] % 2) PetscCall(MatScale(w->m[k], 2.0));
  PetscCall(PetscViewerBinaryOpen(g.comm, name, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(w->m[k], viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCallMPI(MPI_Barrier(g.comm));
  if (!g.rank) unlink(name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To another type and back. PETSc 3.24 takes some conversions of several processes to MATSELL for an error on one of them */
static PetscErrorCode Op_foreign(World *w, const int p[4], double *result)
{
  const int         k      = p[0] % (MATS - 1);
  const char *const type[] = {MATDENSE, MATSELL};
  char              back[64];
  Mat               B, C;

  PetscFunctionBegin;
  PetscCall(TestType(back, sizeof(back)));
  if (g.seqtype[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Another(w));
  PetscCall(MatConvert(w->m[k], type[g.ranks > 1 ? 0 : p[1] % 2], MAT_INITIAL_MATRIX, &B));
  if (p[2] % 2) {
    Vec x, y;

    PetscCall(MatCreateVecs(B, &x, &y));
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(B, x, y));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  }
  PetscCall(MatConvert(B, w->ref ? MATAIJ : back, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatDestroy(&B));
  PetscCall(Weigh(C, (uint32_t)p[3], result));
  if (p[2] % 3) {
    PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatCopy(C, w->m[k], DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&C));
  } else PetscCall(MatHeaderReplace(w->m[k], &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Beside a MATAIJ in the same operation */
static PetscErrorCode Op_beside(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);
  char      type[64];
  Mat       B, C;

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  if (g.seqtype[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Another(w));
  g.grown = PETSC_TRUE;
  PetscCall(MatConvert(w->m[k], MATAIJ, MAT_INITIAL_MATRIX, &B));
  switch (p[1] % 6) {
  case 0:
    PetscCall(MatAXPY(w->m[k], 2.0, B, p[2] % 2 ? SAME_NONZERO_PATTERN : SUBSET_NONZERO_PATTERN));
    break;
  case 1:
    PetscCall(MatScale(w->m[k], 3.0));
    PetscCall(MatAXPY(B, 2.0, w->m[k], p[2] % 2 ? SAME_NONZERO_PATTERN : SUBSET_NONZERO_PATTERN));
    break;
  case 2:
    PetscCall(MatScale(w->m[k], 3.0));
    PetscCall(MatCopy(w->m[k], B, p[2] % 2 ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
    break;
  case 3:
    PetscCall(MatScale(B, 3.0));
    PetscCall(MatCopy(B, w->m[k], p[2] % 2 ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
    break;
  case 4:
    if (g.single || rowspace[k] != colspace[k]) break;
    PetscCall(p[2] % 2 ? MatMatMult(w->m[k], B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C) : MatMatMult(B, w->m[k], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(Weigh(C, (uint32_t)p[3], result));
    PetscCall(MatDestroy(&C));
    break;
  default:
    PetscCall(MatConvert(B, w->ref ? MATAIJ : type, MAT_INPLACE_MATRIX, &B));
    PetscCall(MatScale(B, -1.0));
    PetscCall(MatConvert(B, w->ref ? MATAIJ : type, MAT_REUSE_MATRIX, &w->m[k]));
  }
  PetscCall(Weigh(B, (uint32_t)p[3], result));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From rows in arrays of the program, with other values later */
static PetscErrorCode Op_rows(World *w, const int p[4], double *result)
{
  const int   k = p[0] % (MATS - 1), r = rowspace[k], c = colspace[k];
  PetscInt    i[SIZE + 1], j[4 * SIZE], m               = g.local[r];
  PetscScalar a[4 * SIZE];
  char        type[64];
  Mat         B;

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  if (!g.size[c] || g.seqtype[0]) PetscFunctionReturn(PETSC_SUCCESS);
  i[0] = 0;
  for (PetscInt q = 0; q < m; q++) {
    i[q + 1] = i[q];
    for (PetscInt t = 0; t < g.size[c] && i[q + 1] < i[q] + 4; t++)
      if (Hash((uint32_t)p[1], (uint32_t)(g.start[r] + q), (uint32_t)t) % 5 == 0) j[i[q + 1]++] = t;
  }
  for (PetscInt q = 0; q < i[m]; q++) a[q] = Small((uint32_t)p[2], (uint32_t)q, 3);
  if (g.ranks == 1 && p[3] % 2) {
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, g.local[c], i, j, a, &B));
    if (!w->ref) PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  } else if (g.ranks > 1 && p[3] % 4 == 0) {
    PetscCall(MatCreateMPIAIJWithArrays(g.comm, m, g.local[c], g.size[r], g.size[c], i, j, a, &B));
    if (!w->ref) PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  } else {
    PetscCall(MatCreate(g.comm, &B));
    PetscCall(MatSetSizes(B, m, g.local[c], g.size[r], g.size[c]));
    PetscCall(MatSetType(B, w->ref ? MATAIJ : type));
    PetscCall(MatSeqAIJSetPreallocationCSR(B, i, j, a));
    PetscCall(MatMPIAIJSetPreallocationCSR(B, i, j, a));
  }
  for (int round = 0; round < 3; round++) {
    PetscCall(Weigh(B, (uint32_t)p[3], result));
    for (PetscInt q = 0; q < i[m] && !(g.promised && g.ranks == 1 && p[3] % 2); q++) a[q] = Small((uint32_t)(p[2] + round), (uint32_t)q, 4);
    if (g.ranks > 1) {
      if (p[3] % 4 == 0 || p[3] % 2) PetscCall(MatUpdateMPIAIJWithArrays(B, m, g.local[c], g.size[r], g.size[c], i, j, a));
      else PetscCall(MatMPIAIJSetPreallocationCSR(B, i, j, a));
    } else if (p[3] % 2 == 0) PetscCall(MatSeqAIJSetPreallocationCSR(B, i, j, a));
    else if (g.promised) PetscCall(MatScale(B, 2.0));
    else PetscCall(PetscObjectStateIncrease((PetscObject)B));
    if ((p[2] + round) % 2) PetscCall(ChangeBetween(w, B, k, p[1] + round, (uint32_t)p[2]));
  }
  PetscCall(Weigh(B, (uint32_t)p[3], result));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A rank's diagonal block is a matrix of its own, which the program changes */
static PetscErrorCode Op_block(World *w, const int p[4], double *result)
{
  const int k = p[0] % 2 ? 3 : 0;
  Mat       D;

  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock(w->m[k], &D));
  PetscCall(Weigh(D, (uint32_t)p[1], result));
  if (p[2] % 2) PetscCall(MatScale(D, -1.0));
  if (p[2] % 3 == 0) PetscCall(MatZeroEntries(D));
  if (p[2] % 5 == 0) PetscCall(Weigh(D, (uint32_t)p[1], result));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program asks for another place or format from here on */
static PetscErrorCode Op_settings(World *w, const int p[4], double *result)
{
  static const char *const format[] = {"auto", "csr", "sell", "coo", "aij"};
  const int                k        = p[0] % MATS;
  char                     was[64]  = "";
  PetscBool                set;

  PetscFunctionBegin;
  (void)result;
  if (w->ref || g.seqtype[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_format", was, sizeof(was), &set));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_format", format[p[1] % 5]));
  if (g.promised) PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_master", p[2] % 3 ? "device" : "host"));
  PetscCall(MatSetFromOptions(w->m[k]));
  PetscCall(set ? PetscOptionsSetValue(NULL, "-mat_gpucsr_format", was) : PetscOptionsClearValue(NULL, "-mat_gpucsr_format"));
  if (g.promised) PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_master", "device"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries by the numbers of a rank, after a part of an assembly, and rows zeroed by them */
static PetscErrorCode Op_local(World *w, const int p[4], double *result)
{
  const int              k = p[0] % (MATS - 1), r = rowspace[k], c = colspace[k];
  ISLocalToGlobalMapping map[2];
  IS                     is;
  PetscInt               row = 0, col = 0;

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  for (int q = 0; q < 2; q++) {
    const int s = q ? c : r;

    PetscCall(ISCreateStride(g.comm, g.local[s], g.start[s], 1, &is));
    PetscCall(ISLocalToGlobalMappingCreateIS(is, &map[q]));
    PetscCall(ISDestroy(&is));
  }
  PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetLocalToGlobalMapping(w->m[k], map[0], map[1]));
  if (g.local[r] && g.local[c]) {
    const PetscScalar two = 2;

    row = p[1] % g.local[r];
    col = p[2] % g.local[c];
    PetscCall(MatSetValuesLocal(w->m[k], 1, &row, 1, &col, &two, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(w->m[k], MAT_FLUSH_ASSEMBLY));
  PetscCall(MatAssemblyEnd(w->m[k], MAT_FLUSH_ASSEMBLY));
  if (g.local[r] && g.local[c]) {
    const PetscScalar three = 3;

    PetscCall(MatSetValuesLocal(w->m[k], 1, &row, 1, &col, &three, ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(w->m[k], MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(w->m[k], MAT_FINAL_ASSEMBLY));
  if (p[3] % 2 && r == c) {
    PetscCall(MatShift(w->m[k], 1.0));
    PetscCall(MatZeroRowsLocal(w->m[k], g.local[r] ? 1 : 0, &row, 1.0, NULL, NULL));
  }
  for (int q = 0; q < 2; q++) PetscCall(ISLocalToGlobalMappingDestroy(&map[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Coordinates, then the matrix goes other ways before it gets new values */
static PetscErrorCode Op_coolater(World *w, const int p[4], double *result)
{
  const int      k = p[0] % (MATS - 1), r = rowspace[k], c = colspace[k];
  const PetscInt m = g.size[r], n = g.size[c];
  PetscInt       i[32], j[32];
  PetscScalar    v[32];
  char           type[64];
  PetscObject    sums;
  PetscBool      plain; /* MATAIJ's coordinates: a duplicate has none in releases before 3.20 */
  Mat            B, D;

  PetscFunctionBegin;
  if (!m || !n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(MatCreate(g.comm, &B));
  PetscCall(MatSetSizes(B, g.local[r], g.local[c], m, n));
  if (w->ref) PetscCall(MatSetOptionsPrefix(B, "ref_"));
  PetscCall(MatSetType(B, w->ref ? MATAIJ : type));
  if (!w->ref) PetscCall(MatSetFromOptions(B));
  for (int again = 0; again <= p[3] % 2; again++) { /* a second list in place of the first */
    for (int q = 0; q < 32; q++) {
      const uint32_t h = Hash(g.seed + (uint32_t)g.rank, (uint32_t)(p[1] + again), (uint32_t)q);

      i[q] = h % 11 ? (PetscInt)(h % (uint32_t)m) : -1;
      j[q] = h % 13 ? (PetscInt)(h / 64 % (uint32_t)n) : -1;
    }
    PetscCall(MatSetPreallocationCOO(B, 32 - p[2] % 3, i, j));
    for (int round = 0; round < 4; round++) {
      for (int q = 0; q < 32; q++) v[q] = Small((uint32_t)p[3], (uint32_t)(round + 10 * g.rank), (uint32_t)q);
      PetscCall(MatSetValuesCOO(B, v, round && (p[3] + round) % 3 ? ADD_VALUES : INSERT_VALUES));
      if (p[3] % 5) PetscCall(Weigh(B, (uint32_t)p[2], result));
      PetscCall(PetscObjectTypeCompareAny((PetscObject)B, &plain, MATSEQAIJ, MATMPIAIJ, ""));
      PetscCall(PetscObjectQuery((PetscObject)B, "GPUCSRCOO", &sums));
      plain = (PetscBool)(plain || !sums);
      switch ((p[2] + 5 * round + p[1]) % 8) {
      case 0:
        if (g.seqtype[0]) break;
        PetscCall(MatConvert(B, MATAIJ, MAT_INPLACE_MATRIX, &B));
        break;
      case 1:
        if (g.seqtype[0]) break;
        PetscCall(MatConvert(B, w->ref ? MATAIJ : type, MAT_INPLACE_MATRIX, &B));
        break;
      case 2:
        if (plain && p[1] % 2 == 0) PetscCall(MatZeroEntries(B));
        if (plain) break;
        PetscCall(MatDuplicate(B, p[1] % 2 ? MAT_COPY_VALUES : MAT_DO_NOT_COPY_VALUES, &D));
        if (p[3] % 7) PetscCall(MatHeaderReplace(B, &D));
        else {
          PetscCall(MatDestroy(&B));
          B = D;
        }
        break;
      case 3:
        PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &D));
        PetscCall(MatSetValuesCOO(plain ? B : D, v, ADD_VALUES));
        PetscCall(Weigh(plain ? B : D, (uint32_t)p[2], result));
        if (plain) PetscCall(MatCopy(D, B, SAME_NONZERO_PATTERN));
        PetscCall(MatDestroy(&D));
        break;
      case 4:
        PetscCall(MatTranspose(B, MAT_INITIAL_MATRIX, &D));
        PetscCall(MatScale(B, 2.0));
        PetscCall(MatTranspose(B, MAT_REUSE_MATRIX, &D));
        PetscCall(Weigh(D, (uint32_t)p[2], result));
        PetscCall(MatDestroy(&D));
        break;
      default:
        PetscCall(ChangeBetween(w, B, k, p[1] + 3 * round, (uint32_t)p[3]));
      }
    }
  }
  PetscCall(Weigh(B, (uint32_t)p[2], result));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}
