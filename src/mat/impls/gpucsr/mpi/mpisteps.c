/*
  The steps of one rank in a product of sparse matrices of several ranks (mpisparse.c): columns numbered, matrices stacked on its device, patterns,
  values.
*/
#include "../sparse/mpisparse.h"

/* The first rows of A as a matrix that does not own its arrays */
static GPUCSRStorage Top(const GPUCSRStorage *A, int m, int64_t nnz)
{
  GPUCSRStorage top = *A;

  top.m   = m;
  top.nnz = nnz;
  return top;
}

/* Frees the device's data: a product that is asked for again is the host's */
PetscErrorCode GPUCSRRanksProductForget(void *product)
{
  RanksProduct *const     p      = (RanksProduct *)product;
  GPUCSRStorage *const    all[]  = {&p->K, &p->B, &p->T[0], &p->T[1], &p->O, &p->S, &p->L, &p->R, &p->C, &p->E};
  GPUCSRRowClasses *const rows[] = {&p->mrows, &p->orows, &p->crows};

  PetscFunctionBegin;
  if (!p->dev) PetscFunctionReturn(PETSC_SUCCESS);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) PetscCall(GPUCSRStorageDestroy(all[k]));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(rows); k++) PetscCall(GPUCSRRowClassesDestroy(p->dev, rows[k]));
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRFree(p->dev, p->mapbytes[k], (void **)&p->map[k]));
  PetscCall(GPUCSRFree(p->dev, p->columnbytes, (void **)&p->column));
  p->dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- columns ---- */

/* The ghost columns: from X's off-diagonal block (more) and from rows of other ranks (j) */
PetscErrorCode GPUCSRRanksProductGhosts(RanksProduct *p, PetscInt nmore, const PetscInt more[], PetscInt nrows, const PetscInt j[], PetscLayout cmap)
{
  PetscInt *all, n = nmore;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(nmore + nrows, &all));
  PetscCall(PetscArraycpy(all, more, nmore));
  for (PetscInt k = 0; k < nrows; k++)
    if (j[k] < cmap->rstart || j[k] >= cmap->rend) all[n++] = j[k];
  PetscCall(PetscSortRemoveDupsInt(&n, all));
  PetscCall(PetscFree(p->ghost));
  p->ghost  = all;
  p->nghost = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The local number of a global column */
static PetscErrorCode Number(const RanksProduct *p, PetscLayout cmap, PetscInt column, int32_t *here)
{
  PetscInt at;

  PetscFunctionBegin;
  if (column >= cmap->rstart && column < cmap->rend) *here = (int32_t)(column - cmap->rstart);
  else {
    PetscCall(PetscFindInt(column, p->nghost, p->ghost, &at));
    PetscCheck(at >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Column %" PetscInt_FMT " has no number on this rank", column);
    *here = (int32_t)(p->own + at);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* j[k] = table[j[k]] on the device, the table from the host */
static PetscErrorCode Renumber(GPUCSRDevice dev, PetscInt n, const int32_t table[], int64_t nnz, int32_t *j)
{
  const size_t   bytes = sizeof(int32_t) * (size_t)n;
  void          *there = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRMalloc(dev, bytes, "numbers of columns", &there));
  ierr = GPUCSRUpload(dev, there, GPUCSR_INT32, table, GPUCSR_INT32, (size_t)n, PETSC_FALSE, dev->stream, NULL);
  if (!ierr) ierr = (*GPUCSRSpGEMMOf(dev)->renumber)(dev, (int)nnz, (const int32_t *)there, j, dev->stream);
  PetscCall(GPUCSRFree(dev, bytes, &there));
  PetscFunctionReturn(ierr);
}

/* ---- matrices on the device ---- */

static PetscErrorCode CreateCSR(RanksProduct *p, int m, PetscInt n, int64_t nnz, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  PetscCheck(nnz <= INT32_MAX - 1024 && n <= INT32_MAX - 1024, PETSC_COMM_SELF, PETSC_ERR_SUP, "A product of %d rows, %" PetscInt_FMT " columns and %" PetscInt64_FMT " nonzeros of this rank does not fit the 32-bit indices of the device formats", m, n, (PetscInt64)nnz);
  PetscCall(GPUCSRCSRCreate(p->dev, m, (int)n, nnz, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Room for a matrix of m rows and nnz entries, and behind it the pattern of rows from other ranks */
static PetscErrorCode Stack(RanksProduct *p, int m, int64_t nnz, const GPUCSRRows *rows, PetscLayout cmap, GPUCSRStorage *A)
{
  GPUCSRDevice   dev = p->dev;
  const PetscInt n   = rows->n ? rows->i[rows->n] : 0;
  int32_t       *i, *j;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(CreateCSR(p, m + (int)rows->n, p->own + p->nghost, nnz + n, A));
  if (!rows->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc2(rows->n + 1, &i, n, &j));
  for (PetscInt k = 0; k <= rows->n; k++) i[k] = (int32_t)(nnz + rows->i[k]);
  for (PetscInt k = 0; k < n; k++) PetscCall(Number(p, cmap, rows->j[k], &j[k]));
  ierr = GPUCSRUpload(dev, (int32_t *)A->array[CSR_ROWPTR].data + m, GPUCSR_INT32, i, GPUCSR_INT32, (size_t)rows->n + 1, PETSC_FALSE, dev->stream, NULL);
  if (!ierr && n) ierr = GPUCSRUpload(dev, (int32_t *)A->array[CSR_COL].data + nnz, GPUCSR_INT32, j, GPUCSR_INT32, (size_t)n, PETSC_FALSE, dev->stream, NULL);
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(ierr);
}

/* Values of the rows from other ranks */
static PetscErrorCode StackValues(RanksProduct *p, int64_t nnz, const GPUCSRRows *rows, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  if (rows->n && rows->i[rows->n]) PetscCall(GPUCSRUpload(p->dev, (double *)A->array[CSR_VAL].data + nnz, GPUCSR_DOUBLE, rows->a, GPUCSR_DOUBLE, (size_t)rows->i[rows->n], PETSC_FALSE, p->dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The two blocks of X on the device */
static PetscErrorCode Mirrors(RanksProduct *p, Mat X, PetscBool values, GPUCSRStorage *b[2])
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(X, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) PetscCall(MatGPUCSRMirror_Private(block[k], p->dev, values, &b[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* X, or its first rows, = B's two blocks side by side, in local column numbers */
static PetscErrorCode BesideB(RanksProduct *p, GPUCSRStorage *const b[2], GPUCSRStorage *X)
{
  GPUCSRStorage off = *b[1], top = Top(X, b[0]->m, b[0]->nnz + b[1]->nnz);

  PetscFunctionBegin;
  off.array[CSR_COL].data = p->column;
  PetscCall(GPUCSRBeside(b[0], &off, &top));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Local numbers of the columns of B's off-diagonal block */
static PetscErrorCode ColumnsOfB(Mat B, RanksProduct *p, const GPUCSRStorage *off)
{
  const PetscInt *garray;
  int32_t        *table;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(B, NULL, NULL, &garray));
  p->columnbytes = sizeof(int32_t) * (size_t)off->nnz;
  PetscCall(GPUCSRMalloc(p->dev, p->columnbytes, "columns of a factor", (void **)&p->column));
  if (!off->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(p->dev->ops->copy(p->dev->id, p->column, off->array[CSR_COL].data, p->columnbytes, GPUCSR_ON_DEVICE, p->dev->stream));
  PetscCall(PetscMalloc1(off->n, &table));
  for (int k = 0; k < off->n; k++) {
    PetscCall(Number(p, B->cmap, garray[k], &table[k]));
    table[k] -= (int32_t)p->own; /* each block's columns follow the columns of the block before */
  }
  ierr = Renumber(p->dev, off->n, table, off->nnz, p->column);
  PetscCall(PetscFree(table));
  PetscFunctionReturn(ierr);
}

/* ---- the pattern ---- */

/* O's pattern on the host, with global columns */
static PetscErrorCode DownloadO(RanksProduct *p, PetscLayout cmap)
{
  GPUCSRDevice dev = p->dev;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(p->O.m + 1, &p->oi));
  PetscCall(PetscMalloc1(p->O.nnz, &p->oj));
  PetscCall(PetscMalloc1(p->O.nnz, &p->oa));
  PetscCall(GPUCSRDownload(dev, p->oi, GPUCSR_PETSCINT, p->O.array[CSR_ROWPTR].data, GPUCSR_INT32, (size_t)p->O.m + 1, PETSC_FALSE, dev->stream));
  if (p->O.nnz) PetscCall(GPUCSRDownload(dev, p->oj, GPUCSR_PETSCINT, p->O.array[CSR_COL].data, GPUCSR_INT32, (size_t)p->O.nnz, PETSC_FALSE, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  for (int64_t k = 0; k < p->O.nnz; k++) p->oj[k] = p->oj[k] < p->own ? cmap->rstart + p->oj[k] : p->ghost[p->oj[k] - p->own];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* M, and T_o^T M, from the rows of this rank and the rows fetched */
PetscErrorCode GPUCSRRanksProductFirst(Mat C, RanksProduct *p)
{
  const Recipe  *r = p->recipe;
  Mat            A = C->product->A, B = C->product->B;
  GPUCSRStorage *a[2], *b[2], *M = r->transposed ? &p->R : &p->C;
  GPUCSRStorage  from;

  PetscFunctionBegin;
  PetscCall(Mirrors(p, A, PETSC_FALSE, a));
  PetscCall(Mirrors(p, B, PETSC_FALSE, b));
  PetscCall(ColumnsOfB(B, p, b[1]));
  if (r->multiplied) {
    PetscCall(CreateCSR(p, a[0]->m, a[0]->n + a[1]->n, a[0]->nnz + a[1]->nnz, &p->K));
    PetscCall(GPUCSRBeside(a[0], a[1], &p->K));
    PetscCall(Stack(p, b[0]->m, b[0]->nnz + b[1]->nnz, &p->theirs, B->cmap, &p->B));
    PetscCall(BesideB(p, b, &p->B));
    PetscCall(GPUCSRSpGEMMSymbolic(&p->K, &p->B, M, &p->mrows));
  } else {
    PetscCall(CreateCSR(p, b[0]->m, p->own + p->nghost, b[0]->nnz + b[1]->nnz, M));
    PetscCall(BesideB(p, b, M));
  }
  p->nnz = M->nnz;
  for (int k = 0; k < (r->transposed ? 2 : 0); k++) {
    from                     = *(C->product->type == MATPRODUCT_AtB ? a : b)[k];
    from.array[CSR_VAL].data = NULL; /* not written yet */
    PetscCall(GPUCSRTransposeStorage(&from, &p->T[k], &p->map[k]));
    p->mapbytes[k] = sizeof(int32_t) * (size_t)from.nnz;
  }
  if (r->transposed) {
    PetscCall(GPUCSRSpGEMMSymbolic(&p->T[1], M, &p->O, &p->orows));
    PetscCall(DownloadO(p, B->cmap));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows from other ranks may have new ghost columns: all ghosts are numbered again, in the same order. table: the new number of each old ghost */
static PetscErrorCode NewNumbers(RanksProduct *p, PetscInt before, const int32_t table[])
{
  GPUCSRStorage *const all[] = {&p->B, &p->R, &p->O};
  int32_t             *full;
  PetscErrorCode       ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(p->own + before, &full));
  for (PetscInt k = 0; k < p->own + before; k++) full[k] = (int32_t)(k < p->own ? k : p->own + table[k - p->own]);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all) && !ierr; k++) {
    if (!all[k]->format) continue;
    all[k]->n = (int)(p->own + p->nghost);
    ierr      = Renumber(p->dev, p->own + before, full, all[k]->nnz, (int32_t *)all[k]->array[CSR_COL].data);
  }
  if (!ierr) ierr = Renumber(p->dev, before, table, (int64_t)(p->columnbytes / sizeof(int32_t)), p->column);
  PetscCall(PetscFree(full));
  PetscFunctionReturn(ierr);
}

/* S: row r has a one for each row given for it */
static PetscErrorCode Given(RanksProduct *p, int m)
{
  const PetscInt n   = p->given.n;
  GPUCSRDevice   dev = p->dev;
  int32_t       *i, *j;
  double        *one;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(CreateCSR(p, m, n, n, &p->S));
  PetscCall(PetscMalloc3(m + 1, &i, n, &j, n, &one));
  for (int r = 0; r <= m; r++) i[r] = (int32_t)p->given.first[r];
  for (PetscInt k = 0; k < n; k++) {
    j[k]   = (int32_t)k;
    one[k] = 1;
  }
  ierr = GPUCSRUpload(dev, p->S.array[CSR_ROWPTR].data, GPUCSR_INT32, i, GPUCSR_INT32, (size_t)m + 1, PETSC_FALSE, dev->stream, NULL);
  if (!ierr && n) ierr = GPUCSRUpload(dev, p->S.array[CSR_COL].data, GPUCSR_INT32, j, GPUCSR_INT32, (size_t)n, PETSC_FALSE, dev->stream, NULL);
  if (!ierr && n) ierr = GPUCSRUpload(dev, p->S.array[CSR_VAL].data, GPUCSR_DOUBLE, one, GPUCSR_DOUBLE, (size_t)n, PETSC_FALSE, dev->stream, NULL);
  PetscCall(PetscFree3(i, j, one));
  PetscFunctionReturn(ierr);
}

/* R = [M; rows given] in place of M */
static PetscErrorCode Extend(RanksProduct *p, PetscLayout cmap)
{
  GPUCSRDevice   dev = p->dev;
  GPUCSRStorage  M   = p->R;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&p->R, sizeof(p->R)));
  p->R.dev = dev;
  ierr     = Stack(p, M.m, M.nnz, &p->given, cmap, &p->R);
  if (!ierr) ierr = dev->ops->copy(dev->id, p->R.array[CSR_ROWPTR].data, M.array[CSR_ROWPTR].data, sizeof(int32_t) * ((size_t)M.m + 1), GPUCSR_ON_DEVICE, dev->stream);
  if (!ierr && M.nnz) ierr = dev->ops->copy(dev->id, p->R.array[CSR_COL].data, M.array[CSR_COL].data, sizeof(int32_t) * (size_t)M.nnz, GPUCSR_ON_DEVICE, dev->stream);
  PetscCall(GPUCSRStorageDestroy(&M));
  PetscFunctionReturn(ierr);
}

/* C from M and the rows given, split into D, the entries in this rank's columns, and E */
PetscErrorCode GPUCSRRanksProductLast(Mat C, RanksProduct *p, PetscInt before, const int32_t table[], GPUCSRStorage *D)
{
  PetscLayout cmap = C->product->B->cmap;

  PetscFunctionBegin;
  if (p->recipe->transposed) {
    const int m = p->T[0].m;

    if (p->nghost != before) PetscCall(NewNumbers(p, before, table));
    PetscCall(Extend(p, cmap));
    PetscCall(Given(p, m));
    PetscCall(CreateCSR(p, m, p->T[0].n + p->S.n, p->T[0].nnz + p->S.nnz, &p->L));
    PetscCall(GPUCSRBeside(&p->T[0], &p->S, &p->L));
    PetscCall(GPUCSRSpGEMMSymbolic(&p->L, &p->R, &p->C, &p->crows));
  }
  PetscCall(GPUCSRPartColumns(&p->C, (int)p->own, D, &p->E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- values ---- */

PetscErrorCode GPUCSRRanksProductFirstValues(Mat C, RanksProduct *p)
{
  GPUCSRDevice   dev = p->dev;
  GPUCSRStorage *a[2], *b[2], M;

  PetscFunctionBegin;
  PetscCall(Mirrors(p, C->product->A, PETSC_TRUE, a));
  PetscCall(Mirrors(p, C->product->B, PETSC_TRUE, b));
  M = Top(p->recipe->transposed ? &p->R : &p->C, b[0]->m, p->nnz);
  if (p->recipe->multiplied) {
    M.m = a[0]->m;
    PetscCall(GPUCSRBeside(a[0], a[1], &p->K));
    PetscCall(BesideB(p, b, &p->B));
    PetscCall(StackValues(p, b[0]->nnz + b[1]->nnz, &p->theirs, &p->B));
    PetscCall(GPUCSRSpGEMMNumeric(&p->K, &p->B, &p->mrows, &M));
  } else PetscCall(BesideB(p, b, &M));
  if (!p->recipe->transposed) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRTransposeValues((C->product->type == MATPRODUCT_AtB ? a : b)[k], p->map[k], &p->T[k]));
  PetscCall(GPUCSRSpGEMMNumeric(&p->T[1], &M, &p->orows, &p->O));
  if (p->O.nnz) PetscCall(GPUCSRDownload(dev, p->oa, GPUCSR_DOUBLE, p->O.array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)p->O.nnz, PETSC_FALSE, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Into the host's values of a block */
static PetscErrorCode ToBlock(Mat block, const GPUCSRStorage *A)
{
  GPUCSRDevice   dev = A->dev;
  PetscScalar   *a;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(block));
  PetscCall(MatSeqAIJGetArrayWrite(block, &a));
  if (A->nnz) ierr = GPUCSRDownload(dev, a, GPUCSR_DOUBLE, A->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)A->nnz, PETSC_FALSE, dev->stream);
  if (!ierr) ierr = (*dev->ops->streamsynchronize)(dev->id, dev->stream);
  MatGPUCSRValuesBack((Mat_SeqGPUCSR *)block->spptr, 8.0 * (double)A->nnz);
  PetscCall(MatSeqAIJRestoreArrayWrite(block, &a));
  PetscFunctionReturn(ierr);
}

PetscErrorCode GPUCSRRanksProductLastValues(Mat C, RanksProduct *p)
{
  Mat            b[2];
  GPUCSRStorage *D;

  PetscFunctionBegin;
  if (p->recipe->transposed) {
    PetscCall(StackValues(p, p->nnz, &p->given, &p->R));
    PetscCall(GPUCSRBeside(&p->T[0], &p->S, &p->L));
    PetscCall(GPUCSRSpGEMMNumeric(&p->L, &p->R, &p->crows, &p->C));
  }
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], &b[1], NULL));
  PetscCall(MatGPUCSRMirror_Private(b[0], p->dev, PETSC_FALSE, &D));
  ((Mat_SeqGPUCSR *)b[0]->spptr)->mirror.values = -1;
  PetscCall(GPUCSRPartEntries(&p->C, (int)p->own, D, &p->E));
  PetscCall(ToBlock(b[0], D));
  PetscCall(ToBlock(b[1], &p->E));
  ((Mat_SeqGPUCSR *)b[0]->spptr)->info.sparse_products++;
  PetscFunctionReturn(PETSC_SUCCESS);
}
