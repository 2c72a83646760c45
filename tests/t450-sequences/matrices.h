/* Operations on matrices, and solvers, of t450-sequences.c */
static PetscErrorCode Op_mult(World *w, const int p[4], double *result)
{
  PRODUCT;
  return (void)result, MatMult(w->m[k], w->v[c][a], w->v[r][b]);
}

static PetscErrorCode Op_transposed(World *w, const int p[4], double *result)
{
  PRODUCT;
  return (void)result, MatMultTranspose(w->m[k], w->v[r][b], w->v[c][a]);
}

static PetscErrorCode Op_multadd(World *w, const int p[4], double *result)
{
  PRODUCT;
  const int z = r == c ? (p[3] % 2 ? b : 3 - a - b) : p[3] % VECS;

  return (void)result, MatMultAdd(w->m[k], w->v[c][a], w->v[r][b], w->v[r][z]);
}

static PetscErrorCode Op_transposedadd(World *w, const int p[4], double *result)
{
  PRODUCT;
  const int z = r == c ? (p[3] % 2 ? b : 3 - a - b) : p[3] % VECS;

  return (void)result, MatMultTransposeAdd(w->m[k], w->v[r][a], w->v[c][b], w->v[c][z]);
}

static PetscErrorCode Op_diagonal(World *w, const int p[4], double *result)
{
  PRODUCT;
  (void)a;
  if (r != c) return PETSC_SUCCESS;
  return (void)result, MatGetDiagonal(w->m[k], w->v[r][b]);
}

static PetscErrorCode Op_values(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);

  return (void)result, FillMat(w->m[k], k, (uint32_t)(p[1] % 3)); /* sometimes the places it has */
}

static PetscErrorCode Op_scalemat(World *w, const int p[4], double *result)
{
  return (void)result, MatScale(w->m[p[0] % MATS], p[0] % MATS == SPD ? 2.0 : (PetscScalar)(p[1] % 4 - 2));
}

static PetscErrorCode Op_shiftmat(World *w, const int p[4], double *result)
{
  const int k = p[0] % MATS;

  PetscFunctionBegin;
  (void)result;
  if (rowspace[k] != colspace[k]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatShift(w->m[k], 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_diagonalscale(World *w, const int p[4], double *result)
{
  PRODUCT;

  PetscFunctionBegin;
  (void)result;
  g.grown = PETSC_TRUE;
  if (k != SPD && g.finite[r][b] && g.finite[c][a]) PetscCall(MatDiagonalScale(w->m[k], p[3] % 3 ? w->v[r][b] : NULL, p[3] % 3 == 1 ? NULL : w->v[c][a]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_zerorows(World *w, const int p[4], double *result)
{
  const int      k = p[0] % (MATS - 1), r = rowspace[k];
  const PetscInt row = g.start[r] + (g.local[r] ? p[1] % g.local[r] : 0);

  PetscFunctionBegin;
  (void)result;
  PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  if (g.ranks == 1) {
    PetscCall(MatSetOption(w->m[k], MAT_KEEP_NONZERO_PATTERN, (PetscBool)(p[3] % 2)));
    if (p[3] % 2 && r == colspace[k]) PetscCall(MatShift(w->m[k], 1.0)); /* or entries of the diagonal are missing */
  }
  PetscCall(MatZeroRows(w->m[k], g.local[r] ? 1 : 0, &row, r == colspace[k] ? (PetscScalar)(p[2] % 3) : 0.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_zerorowscolumns(World *w, const int p[4], double *result)
{
  const int      k = p[0] % (MATS - 1), r = rowspace[k], v = p[1] % VECS, u = (v + 1) % VECS;
  const PetscInt row[2] = {g.start[r] + (g.local[r] ? p[2] % g.local[r] : 0), g.start[r] + (g.local[r] ? p[3] % g.local[r] : 0)};

  PetscFunctionBegin;
  (void)result;
  if (r != colspace[k] || (g.ranks == 1 && (!g.local[r] || row[0] == row[1])) || w->out[0][r][v] || w->out[0][r][u] || w->out[1][r][u] || !g.small[r][v] || !g.small[r][u]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  if (g.ranks > 1) PetscCall(MatShift(w->m[k], 1.0)); /* or entries of the diagonal are missing on some rank */
  PetscCall(MatZeroRowsColumns(w->m[k], !g.local[r] ? 0 : row[0] == row[1] ? 1 : 2, row, (PetscScalar)(p[2] % 3), p[0] % 2 ? w->v[r][v] : NULL, p[0] % 2 ? w->v[r][u] : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_diagonalset(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1), r = rowspace[k], v = p[1] % VECS;

  PetscFunctionBegin;
  (void)result;
  if (r != colspace[k] || !g.small[r][v] || w->out[0][r][v]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  if (g.ranks > 1) PetscCall(MatShift(w->m[k], 1.0)); /* or entries of the diagonal are missing on some rank, and MatGetRow() of MATMPIAIJ has too little space for its row */
  g.grown = PETSC_TRUE;
  PetscCall(MatDiagonalSet(w->m[k], w->v[r][v], p[2] % 2 ? ADD_VALUES : INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_rowmaxabs(World *w, const int p[4], double *result)
{
  const int k = p[0] % MATS, r = rowspace[k], v = p[1] % VECS;
  PetscInt  at[SIZE], sum = 0;

  PetscFunctionBegin;
  if (w->out[0][r][v] || w->out[1][r][v]) PetscFunctionReturn(PETSC_SUCCESS);
  for (int q = 0; q < SIZE; q++) at[q] = 0;
  PetscCall(MatGetRowMaxAbs(w->m[k], w->v[r][v], g.ranks > 1 ? NULL : at));
  for (int q = 0; q < SIZE; q++) sum += (q + 1) * at[q];
  *result = (double)sum;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_normmat(World *w, const int p[4], double *result)
{
  static const NormType type[] = {NORM_FROBENIUS, NORM_INFINITY, NORM_1};
  PetscReal             norm;

  PetscFunctionBegin;
  PetscCall(MatNorm(w->m[p[0] % MATS], type[p[1] % 3], &norm));
  *result = (double)norm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's products of several processes cannot take new values once a factor is another matrix */
static PetscErrorCode Another(World *w)
{
  PetscFunctionBegin;
  for (int k = 0; k < PRODUCTS && g.ranks > 1; k++) PetscCall(MatDestroy(&w->kept[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A change between two rounds of values */
static PetscErrorCode ChangeBetween(World *w, Mat B, int k, int which, uint32_t salt)
{
  const PetscInt r0 = g.start[rowspace[k]];
  Vec            x, y;
  Mat            D;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(B, &x, &y));
  PetscCall(VecSet(x, 2.0));
  switch (which % 8) {
  case 0:
    PetscCall(MatMult(B, x, y));
    break;
  case 1:
    PetscCall(MatScale(B, 2.0));
    break;
  case 2:
    PetscCall(MatDiagonalScale(B, NULL, x));
    break;
  case 3: /* the program goes on with a duplicate */
    PetscCall(MatDuplicate(B, salt % 2 ? MAT_COPY_VALUES : MAT_DO_NOT_COPY_VALUES, &D));
    PetscCall(MatAXPY(D, 2.0, B, SAME_NONZERO_PATTERN));
    PetscCall(MatCopy(D, B, SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&D));
    break;
  case 4:
    PetscCall(MatZeroEntries(B));
    break;
  case 5: { /* an entry, by the host */
    const PetscInt *c;
    PetscInt        n = 0, column = 0;

    if (g.local[rowspace[k]]) {
      PetscCall(MatGetRow(B, r0, &n, &c, NULL));
      if (n) column = c[salt % (uint32_t)n];
      PetscCall(MatRestoreRow(B, r0, &n, &c, NULL));
    }
    if (n) PetscCall(MatSetValue(B, r0, column, 3.0, ADD_VALUES));
    PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  } break;
  case 6:
    PetscCall(MatAXPY(B, 1.0, B, SAME_NONZERO_PATTERN));
    PetscCall(MatMultTranspose(B, y, x));
    break;
  default:
    (void)w;
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Summed from coordinates, some of them repeated, skipped or of other ranks, several times, and in place of another matrix */
static PetscErrorCode Op_coo(World *w, const int p[4], double *result)
{
  const int      k = p[0] % (MATS - 1), r = rowspace[k], c = colspace[k], len = p[2] % 7 ? 64 : g.rank;
  const PetscInt m = g.size[r], n = g.size[c];
  PetscInt       i[64], j[64];
  PetscScalar    v[64];
  char           type[64];
  Mat            B;

  PetscFunctionBegin;
  (void)result;
  if (!m || !n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Another(w));
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(MatCreate(g.comm, &B));
  PetscCall(MatSetSizes(B, g.local[r], g.local[c], m, n));
  if (w->ref) PetscCall(MatSetOptionsPrefix(B, "ref_"));
  PetscCall(MatSetType(B, w->ref ? MATAIJ : type));
  if (!w->ref) PetscCall(MatSetFromOptions(B));
  for (int q = 0; q < len; q++) {
    const uint32_t h = Hash(g.seed + (uint32_t)g.rank, (uint32_t)p[1], (uint32_t)q);

    i[q] = h % 11 ? (PetscInt)(h % (uint32_t)m) : -1;
    j[q] = h % 13 ? (PetscInt)(h / 64 % (uint32_t)n) : -1;
  }
  PetscCall(MatSetPreallocationCOO(B, len, i, j));
  for (int round = 0; round <= p[2] % 4; round++) {
    for (int q = 0; q < len; q++) v[q] = Small((uint32_t)p[3], (uint32_t)(round + 10 * g.rank), (uint32_t)q);
    PetscCall(MatSetValuesCOO(B, v, round && p[3] % 2 ? ADD_VALUES : INSERT_VALUES));
    PetscCall(ChangeBetween(w, B, k, p[1] + 3 * round, (uint32_t)p[3]));
  }
  if (g.ranks == 1) PetscCall(MatHeaderReplace(w->m[k], &B));
  else { /* PETSc 3.18 loses memory of a pattern by coordinates that gets new columns */ PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatCopy(B, w->m[k], DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One rank adds entries of all ranks' rows */
static PetscErrorCode Op_stash(World *w, const int p[4], double *result)
{
  const int      k = p[0] % (MATS - 1);
  const PetscInt m = g.size[rowspace[k]], n = g.size[colspace[k]];

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (int q = 0; q < 4 && m && n && g.rank == p[1] % g.ranks; q++) PetscCall(MatSetValue(w->m[k], (PetscInt)(Hash((uint32_t)p[2], (uint32_t)q, 1) % (uint32_t)m), (PetscInt)(Hash((uint32_t)p[3], (uint32_t)q, 2) % (uint32_t)n), 1.0 + q, ADD_VALUES));
  PetscCall(MatAssemblyBegin(w->m[k], MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(w->m[k], MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values put aside and taken back, in a duplicate: PETSc's room for them does not grow with the matrix */
static PetscErrorCode Op_store(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);
  Mat       D;

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  PetscCall(MatDuplicate(w->m[k], MAT_COPY_VALUES, &D));
  PetscCall(MatScale(D, 2.0));
  PetscCall(MatSetOption(D, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatStoreValues(D));
  if (p[1] % 3) PetscCall(MatScale(D, 3.0));
  if (p[1] % 2) PetscCall(MatZeroEntries(D));
  PetscCall(MatRetrieveValues(D));
  PetscCall(MatCopy(D, w->m[k], SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program drops the pattern and makes another */
static PetscErrorCode Op_preallocate(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1), room = p[2] % 3;

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  PetscCall(MatSeqAIJSetPreallocation(w->m[k], room, NULL));
  PetscCall(MatMPIAIJSetPreallocation(w->m[k], room, NULL, room, NULL));
  PetscCall(FillMat(w->m[k], k, (uint32_t)p[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_zeromat(World *w, const int p[4], double *result)
{
  return (void)result, MatZeroEntries(w->m[p[0] % (MATS - 1)]);
}

/* Past PETSc's count of changes, but for the last line */
static PetscErrorCode Op_array(World *w, const int p[4], double *result)
{
  const int    k     = p[0] % (MATS - 1);
  Mat          block = w->m[k];
  PetscScalar *a;
  MatInfo      info;

  PetscFunctionBegin;
  (void)result;
  if (g.promised) PetscFunctionReturn(PETSC_SUCCESS);
  if (g.ranks > 1) PetscCall(MatMPIAIJGetSeqAIJ(w->m[k], &block, NULL, NULL));
  PetscCall(MatGetInfo(block, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArray(block, &a));
  for (PetscInt q = 0; q < (PetscInt)info.nz_used; q++) a[q] = Small((uint32_t)p[1], (uint32_t)q, 3);
  PetscCall(MatSeqAIJRestoreArray(block, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One entry, where there is one: most of the matrix is as it was */
static PetscErrorCode Op_one(World *w, const int p[4], double *result)
{
  const int      k = p[0] % (MATS - 1), r = rowspace[k];
  const PetscInt row = g.start[r] + (g.local[r] ? p[1] % g.local[r] : 0);
  PetscInt       n = 0, column = 0;

  PetscFunctionBegin;
  (void)result;
  if (g.local[r]) {
    const PetscInt *c;

    PetscCall(MatGetRow(w->m[k], row, &n, &c, NULL));
    if (n) column = c[p[2] % n];
    PetscCall(MatRestoreRow(w->m[k], row, &n, &c, NULL));
  }
  if (n) PetscCall(MatSetValue(w->m[k], row, column, (PetscScalar)(p[3] % 7 - 3), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(w->m[k], MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(w->m[k], MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_axpymat(World *w, const int p[4], double *result)
{
  const int k = p[0] % 2 ? 1 : 0;
  Mat       B;

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  if (p[1] % 4) PetscCall(MatDuplicate(w->m[k], MAT_COPY_VALUES, &B));
  else PetscCall(MakeMat(w, k, (uint32_t)p[2], &B));
  if (p[1] % 4 == 1) PetscCall(MatAYPX(w->m[k], (PetscScalar)(p[3] % 3 - 1), B, SAME_NONZERO_PATTERN));
  else PetscCall(MatAXPY(w->m[k], (PetscScalar)(p[3] % 3 - 1), B, p[1] % 4 == 0 ? DIFFERENT_NONZERO_PATTERN : p[1] % 4 == 2 ? SAME_NONZERO_PATTERN : SUBSET_NONZERO_PATTERN));
  if (p[1] % 4 == 2 && p[2] % 2) PetscCall(MatAXPY(w->m[k], 1.0, B, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_copymat(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);
  Mat       B;

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  PetscCall(MakeMat(w, k, (uint32_t)p[2], &B));
  if (p[1] % 2) {
    Mat D;

    PetscCall(MatDuplicate(w->m[k], p[3] % 2 ? MAT_COPY_VALUES : MAT_DO_NOT_COPY_VALUES, &D));
    PetscCall(MatScale(D, 2.0));
    PetscCall(MatCopy(D, w->m[k], SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&D));
  } else PetscCall(MatCopy(B, w->m[k], DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_replacemat(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);
  Mat       B;

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  if (p[1] % 2) PetscCall(MakeMat(w, k, (uint32_t)p[2], &B));
  else {
    PetscCall(MatDuplicate(w->m[k], MAT_COPY_VALUES, &B));
    PetscCall(MatScale(B, 3.0));
  }
  if (p[3] % 2) { /* with a plan of its own */
    Vec x, y;

    PetscCall(MatCreateVecs(B, &x, &y));
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(B, x, y));
    PetscCall(MatMultTranspose(B, y, x));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  }
  PetscCall(MatHeaderReplace(w->m[k], &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To MATAIJ and back, or to its own type */
static PetscErrorCode Op_convert(World *w, const int p[4], double *result)
{
  const int k = p[0] % MATS;
  char      type[64];

  PetscFunctionBegin;
  (void)result;
  PetscCall(TestType(type, sizeof(type)));
  if (g.seqtype[0]) PetscFunctionReturn(PETSC_SUCCESS); /* PETSc cannot transpose a plain MATSEQAIJ when -mat_seqaij_type names another type */
  if (p[1] % 2) PetscCall(MatConvert(w->m[k], MATAIJ, MAT_INPLACE_MATRIX, &w->m[k]));
  PetscCall(MatConvert(w->m[k], w->ref ? MATAIJ : type, MAT_INPLACE_MATRIX, &w->m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_transpose(World *w, const int p[4], double *result)
{
  PetscFunctionBegin;
  (void)result;
  if (p[0] % 3 == 0) {
    PetscCall(MatTranspose(w->m[0], MAT_INPLACE_MATRIX, &w->m[0]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatDestroy(&w->m[2]));
  PetscCall(MatTranspose(w->m[1], MAT_INITIAL_MATRIX, &w->m[2]));
  for (int k = 0; k < PRODUCTS; k++) PetscCall(MatDestroy(&w->kept[k])); /* they had that matrix */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do two matrices still have the patterns from which the kept matrix was made? The reference comes first, and both worlds follow its answer */
static PetscErrorCode SamePatterns(World *w, int a, int b, int which)
{
  const int at[2] = {a, b};
  uint64_t  h     = 1469598103934665603u;

  PetscFunctionBegin;
  if (!w->ref) PetscFunctionReturn(PETSC_SUCCESS);
  for (int q = 0; q < 2; q++)
    for (PetscInt r = g.start[rowspace[at[q]]]; r < g.start[rowspace[at[q]]] + g.local[rowspace[at[q]]]; r++) {
      const PetscInt *c;
      PetscInt        n;

      PetscCall(MatGetRow(w->m[at[q]], r, &n, &c, NULL));
      h = (h ^ (uint64_t)(n + 1)) * 1099511628211u;
      for (PetscInt k = 0; k < n; k++) h = (h ^ (uint64_t)(c[k] + 1)) * 1099511628211u;
      PetscCall(MatRestoreRow(w->m[at[q]], r, &n, &c, NULL));
    }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &h, 1, MPI_UINT64_T, MPI_BXOR, g.comm));
  g.again[which]   = (PetscBool)(h == g.factors[which]);
  g.factors[which] = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product that was made before, of new values */
static PetscErrorCode Op_keep(World *w, const int p[4], double *result)
{
  static const int a[PRODUCTS] = {1, 0, 2}, b[PRODUCTS] = {2, 1, 2}, space[PRODUCTS] = {0, 1, 0};
  const int        k = p[0] % PRODUCTS, x = p[1] % VECS, y = (x + 1) % VECS;
  MatReuse         reuse;

  PetscFunctionBegin;
  (void)result;
  PetscCall(SamePatterns(w, a[k], b[k], k));
  if (!g.again[k]) PetscCall(MatDestroy(&w->kept[k]));
  reuse = w->kept[k] ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;
  if (k == 0) PetscCall(MatMatMult(w->m[1], w->m[2], reuse, PETSC_DEFAULT, &w->kept[k]));
  else if (k == 1) PetscCall(MatPtAP(w->m[0], w->m[1], reuse, PETSC_DEFAULT, &w->kept[k]));
  else PetscCall(MatTransposeMatMult(w->m[2], w->m[2], reuse, PETSC_DEFAULT, &w->kept[k]));
  if (p[2] % 2) PetscCall(MatMult(w->kept[k], w->v[space[k]][x], w->v[space[k]][y]));
  else PetscCall(MatMultTranspose(w->kept[k], w->v[space[k]][x], w->v[space[k]][y]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The whole of a matrix on each rank, which PETSc fills again without counting the change: its product is the sum that its rows say */
static PetscErrorCode Op_gather(World *w, const int p[4], double *result)
{
  const PetscInt m = g.size[1];
  Vec            x, y;
  PetscScalar   *sum;
  IS             is;
  Mat            S;

  PetscFunctionBegin;
  PetscCall(SamePatterns(w, 3, 3, PRODUCTS));
  if (!g.again[PRODUCTS] && w->gathered) PetscCall(MatDestroySubMatrices(1, &w->gathered));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, m, 0, 1, &is));
  PetscCall(MatCreateSubMatrices(w->m[3], 1, &is, &is, w->gathered ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &w->gathered));
  PetscCall(ISDestroy(&is));
  S = w->gathered[0];
  PetscCall(MatCreateVecs(S, &x, &y));
  for (PetscInt k = 0; k < m; k++) PetscCall(VecSetValue(x, k, Small((uint32_t)p[1], (uint32_t)k, 13), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  if (p[2] % 2) PetscCall(MatMult(S, x, y));
  else PetscCall(MatMultTranspose(S, x, y));
  PetscCall(PetscCalloc1(m + 1, &sum));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt    *c;
    const PetscScalar *a;
    PetscInt           n;

    PetscCall(MatGetRow(S, r, &n, &c, &a));
    for (PetscInt k = 0; k < n; k++) sum[p[2] % 2 ? r : c[k]] += a[k] * Small((uint32_t)p[1], (uint32_t)(p[2] % 2 ? c[k] : r), 13);
    PetscCall(MatRestoreRow(S, r, &n, &c, &a));
  }
  *result = 1;
  for (PetscInt k = 0; k < m; k++) {
    PetscScalar v;

    PetscCall(VecGetValues(y, 1, &k, &v));
    if (!Same(v, sum[k])) *result = 0;
  }
  PetscCall(PetscFree(sum));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sparse products become the matrices of the program */
static PetscErrorCode Op_matmat(World *w, const int p[4], double *result)
{
  Mat C;

  PetscFunctionBegin;
  (void)result;
  if (p[0] % 3 == 0) PetscCall(MatMatMult(w->m[1], w->m[2], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C)); /* 0 by 0 */
  else if (p[0] % 3 == 1) PetscCall(MatPtAP(w->m[3], w->m[2], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  else PetscCall(MatTransposeMatMult(w->m[2], w->m[2], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMult(C, w->v[0][0], w->v[0][1]));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A result that was changed in between gets new values: PETSc writes its array and calls none of its operations */
static PetscErrorCode Op_again(World *w, const int p[4], double *result)
{
  const PetscBool transpose = (PetscBool)(p[0] % 2);
  Mat             B;

  PetscFunctionBegin;
  (void)result;
  for (int k = 0; k < 2; k++) {
    const MatReuse reuse = k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    if (transpose) PetscCall(MatTranspose(w->m[1], reuse, &B));
    else PetscCall(MatMatMult(w->m[1], w->m[2], reuse, PETSC_DEFAULT, &B));
    if (p[1] % 2) PetscCall(MatMult(B, w->v[0][0], w->v[transpose][1]));
    PetscCall(MatScale(B, 2.0));
    if (!k) PetscCall(MatScale(w->m[1], -1.0));
    if (k || p[2] % 2) PetscCall(MatMult(B, w->v[0][0], w->v[transpose][2]));
  }
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_dense(World *w, const int p[4], double *result)
{
  PRODUCT;
  Mat          D, C;
  PetscScalar *d;
  PetscInt     lda, columns = 1 + p[3] % 3;

  PetscFunctionBegin;
  (void)a, (void)b;
  PetscCall(MatCreateDense(g.comm, g.local[c], PETSC_DECIDE, g.size[c], columns, NULL, &D));
  PetscCall(MatDenseGetLDA(D, &lda));
  PetscCall(MatDenseGetArray(D, &d));
  for (PetscInt j = 0; j < columns; j++)
    for (PetscInt i = 0; i < g.local[c]; i++) d[i + j * lda] = Small((uint32_t)p[3], (uint32_t)(g.start[c] + i), (uint32_t)j);
  PetscCall(MatDenseRestoreArray(D, &d));
  PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatMatMult(w->m[k], D, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatScale(w->m[k], k == SPD ? 1.0 : -1.0));
  PetscCall(MatMatMult(w->m[k], D, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatDenseGetLDA(C, &lda));
  PetscCall(MatDenseGetArray(C, &d));
  for (PetscInt j = 0; j < columns; j++)
    for (PetscInt i = 0; i < g.local[r]; i++) *result += (double)PetscRealPart(d[i + j * lda]) * (double)(i + 3 * j + 1);
  PetscCall(MatDenseRestoreArray(C, &d));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An edge more in the graph, so that the pattern may change, and stays positive definite */
static PetscErrorCode Op_edge(World *w, const int p[4], double *result)
{
  const PetscInt    at[2]     = {g.size[0] ? p[0] % g.size[0] : 0, g.size[0] ? p[1] % g.size[0] : 0};
  const PetscScalar number[4] = {1.0, -1.0, -1.0, 1.0};

  PetscFunctionBegin;
  (void)result;
  if (!g.rank && at[0] != at[1]) PetscCall(MatSetValues(w->m[SPD], 2, at, 2, at, number, ADD_VALUES));
  PetscCall(MatAssemblyBegin(w->m[SPD], MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(w->m[SPD], MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A x = b with known x. The known x replaces the computed solution if both are near enough. The least eigenvalue of A is at least 1: the error is not larger than the residual */
static PetscErrorCode Op_solve(World *w, const int p[4], double *result)
{
  const int          a = p[0] % VECS, b = (a + 1) % VECS, c = (a + 2) % VECS, kind = p[1] % 4;
  const char        *pc[] = {PCJACOBI, PCNONE, PCJACOBI, PCBJACOBI};
  const PetscReal    rtol = g.single ? 1e-5 : 1e-11; /* a product in single precision rounds at 6e-8 of |A| |x|, and |A| is below 100 */
  PetscReal          norm, error;
  KSPConvergedReason reason;
  PC                 prec;
  PetscBool          ours;
  char               type[64];
  const char        *set;

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(PetscStrendswith(type, "gpucsr", &ours));
  if (!g.finite[0][a] || !g.size[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (!w->ksp) {
    PetscCall(KSPCreate(g.comm, &w->ksp));
    PetscCall(KSPSetOptionsPrefix(w->ksp, w->ref ? "ref_" : "fuzz_"));
    PetscCall(KSPSetOperators(w->ksp, w->m[SPD], w->m[SPD]));
    PetscCall(KSPSetTolerances(w->ksp, rtol, 1e-300, 1e30, 10000));
  }
  if (p[2] % 2) PetscCall(KSPSetType(w->ksp, w->ref || !ours ? KSPCG : p[2] % 4 == 1 ? "gpucg" : "gpubcgs"));
  PetscCall(KSPGetType(w->ksp, &set));
  if (!set) PetscCall(KSPSetType(w->ksp, KSPCG));
  PetscCall(KSPGetPC(w->ksp, &prec));
  if (p[3] % 2) PetscCall(PCSetType(prec, pc[kind]));
  PetscCall(PCGetType(prec, &set));
  if (!set) PetscCall(PCSetType(prec, PCJACOBI));
  if (p[3] % 3 == 0) PetscCall(KSPSetOperators(w->ksp, w->m[SPD], w->m[SPD]));
  PetscCall(KSPSetInitialGuessNonzero(w->ksp, (PetscBool)(p[3] % 5 == 1)));
  if (!g.finite[0][c]) PetscCall(VecSet(w->v[0][c], 0.0));
  PetscCall(MatMult(w->m[SPD], w->v[0][a], w->v[0][b]));
  PetscCall(VecNorm(w->v[0][b], NORM_INFINITY, &norm));
  PetscCall(VecNorm(w->v[0][c], NORM_INFINITY, &error));
  if (error > 16 * norm) PetscCall(VecSet(w->v[0][c], 1.0)); /* rounding of such a guess is more than the tolerance */
  PetscCall(VecNorm(w->v[0][b], NORM_2, &norm));
  PetscCall(KSPSolve(w->ksp, w->v[0][b], w->v[0][c]));
  PetscCall(KSPGetConvergedReason(w->ksp, &reason));
  PetscCall(VecAXPY(w->v[0][c], -1.0, w->v[0][a]));
  PetscCall(VecNorm(w->v[0][c], NORM_2, &error));
  PetscCall(VecCopy(w->v[0][a], w->v[0][c]));
  /* BiCGStab's residual is a recurrence; rounding is far below the factor */
  *result = norm == 0.0 || (reason > 0 && error <= 100 * rtol * norm) || (reason < 0 && p[2] % 2 && p[2] % 4 != 1) ? 1 : 0; /* BiCGStab may break down */ /* without a right-hand side the first residual is what counts */
  if (w->ref) *result = 1;                                                                                                                                /* nothing is asked of PETSc */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factorization and its solve, of values that may be new, beside the reference's. The matrix is an M-matrix whose row sums are at least 1, so both inverses are at most 1 */
static PetscErrorCode Op_factor(World *w, const int p[4], double *result)
{
  const char        *type[] = {PCILU, PCICC, PCLU};
  const int          a      = p[0] % VECS;
  Vec                z;
  PetscReal          norm, size;
  const PetscScalar *read;
  PCType             now;

  PetscFunctionBegin;
  if (!g.finite[0][a] || g.ranks > 1) PetscFunctionReturn(PETSC_SUCCESS);
  if (!w->pc) {
    PetscCall(PCCreate(g.comm, &w->pc));
    PetscCall(PCSetOptionsPrefix(w->pc, w->ref ? "ref_" : "fuzz_"));
  }
  PetscCall(PCGetType(w->pc, &now));
  if (!now || p[2] % 2) PetscCall(PCSetType(w->pc, type[p[1] % 3]));
  PetscCall(PCFactorSetLevels(w->pc, p[2] / 2 % 2));
  PetscCall(PCSetOperators(w->pc, w->m[SPD], w->m[SPD]));
  PetscCall(VecDuplicate(w->v[0][a], &z));
  if (p[3] % 3 == 0) PetscCall(PCApplyTranspose(w->pc, w->v[0][a], z));
  else PetscCall(PCApply(w->pc, w->v[0][a], z));
  PetscCall(VecGetArrayRead(z, &read));
  if (w->ref) PetscCall(PetscArraycpy(g.solved, read, g.local[0]));
  else {
    PetscCall(MatNorm(w->m[SPD], NORM_INFINITY, &size));
    PetscCall(VecNorm(w->v[0][a], NORM_INFINITY, &norm));
    for (PetscInt k = 0; k < g.local[0]; k++)
      if (!(PetscAbsScalar(read[k] - g.solved[k]) <= TEST_C * PETSC_MACHINE_EPSILON * (PetscReal)g.local[0] * size * norm)) *result = 1;
  }
  PetscCall(VecRestoreArrayRead(z, &read));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}
