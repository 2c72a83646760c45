/*
  Products of two or three matrices of type mpiaijgpucsr on the devices of their ranks: A B, A^T B and P^T A P, by products of local rows and received rows (spgemm/).

    M = A B        [A_d A_o] times [this rank's rows of B; fetched rows of B]. Other ranks own the fetched rows: one for each column of A_o
    C = T^T M      T is A, or P. The rows of T_o^T M go to their owners. S has a 1 for each received row: C = [T_d^T S] [M; received rows]. Received rows are added in the order of
                   ranks, so every run has the same bits

  A_d and A_o are the diagonal and the off-diagonal block. Columns have local numbers: the rank's own, then the ghost columns, both ascending. PetscSF exchanges rows at the border
  between host arrays. All ranks compute on their devices, or all leave the product to another implementation: they agree after each step that can fail.

  Products of GPUCSRRanksCSR come first. Those of Mats are their callers.
*/
#include "mpisparse.h"
#include "sparseproduct.h"

static const Recipe recipes[] = {
  {MATPRODUCT_AB,   PETSC_TRUE,  PETSC_FALSE},
  {MATPRODUCT_AtB,  PETSC_FALSE, PETSC_TRUE },
  {MATPRODUCT_PtAP, PETSC_TRUE,  PETSC_TRUE }
};

static const Recipe *RecipeOf(MatProductType type)
{
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(recipes); k++)
    if (recipes[k].type == type) return &recipes[k];
  return NULL;
}

/* Frees the device's data: a product that is asked for again is the host's */
static PetscErrorCode RanksProductForget(void *product)
{
  RanksProduct *const     p      = (RanksProduct *)product;
  GPUCSRStorage *const    all[]  = {&p->Q, &p->W[0], &p->W[1], &p->F, &p->K, &p->B, &p->T[0], &p->T[1], &p->O, &p->S, &p->L, &p->R, &p->C, &p->E};
  GPUCSRRowClasses *const rows[] = {&p->wrows[0], &p->wrows[1], &p->mrows, &p->orows, &p->crows};

  PetscFunctionBegin;
  if (!p->dev) PetscFunctionReturn(PETSC_SUCCESS);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) PetscCall(GPUCSRStorageDestroy(all[k]));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(rows); k++) PetscCall(GPUCSRRowClassesDestroy(p->dev, rows[k]));
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRFree(p->dev, p->mapbytes[k], (void **)&p->map[k]));
  PetscCall(GPUCSRFree(p->dev, p->columnbytes, (void **)&p->column));
  p->dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList products = {GPUCSR_FINAL_PRODUCT, RanksProductForget, NULL};

PetscErrorCode GPUCSRRanksProductCreate(MatProductType type, GPUCSRDevice dev, GPUCSRRanksAgree agree, void *context, RanksProduct **product)
{
  RanksProduct *p;

  PetscFunctionBegin;
  PetscCall(PetscNew(&p));
  p->recipe  = RecipeOf(type);
  p->dev     = dev;
  p->agree   = agree;
  p->context = context;
  *product   = p;
  PetscCall(GPUCSRLivingAdd(&products, &p->living, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRRanksProductDestroy(RanksProduct **product)
{
  RanksProduct *p = *product;

  PetscFunctionBegin;
  if (!p) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(RanksProductForget(p));
  PetscCall(GPUCSRRowsDestroy(&p->theirs));
  PetscCall(GPUCSRRowsDestroy(&p->given));
  PetscCall(PetscFree(p->ghost));
  PetscCall(PetscFree(p->moved));
  PetscCall(PetscFree(p->place));
  PetscCall(GPUCSRLivingRemove(&p->living));
  PetscCall(PetscFree(*product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the steps of one rank ---- */

/* The first rows of A as a matrix that does not own its arrays */
static GPUCSRStorage Top(const GPUCSRStorage *A, int m, int64_t nnz)
{
  GPUCSRStorage top = *A;

  top.m   = m;
  top.nnz = nnz;
  return top;
}

/* ---- columns ---- */

/* Sorts the ghost columns and removes duplicates: by a table from the first column to the last, unless these are far apart */
static PetscErrorCode Ascend(RanksProduct *p)
{
  PetscInt first = PETSC_MAX_INT, last = -1, n = 0;

  PetscFunctionBegin;
  PetscCall(PetscFree(p->place));
  for (PetscInt k = 0; k < p->nghost; k++) {
    first = PetscMin(first, p->ghost[k]);
    last  = PetscMax(last, p->ghost[k]);
  }
  if ((double)last - (double)first >= 16.0 * (double)p->nghost) PetscFunctionReturn(PetscSortRemoveDupsInt(&p->nghost, p->ghost));
  p->first  = first;
  p->places = p->nghost ? last - first + 1 : 0;
  PetscCall(PetscCalloc1(p->places + 1, &p->place));
  for (PetscInt k = 0; k < p->nghost; k++) p->place[p->ghost[k] - first] = 1;
  for (PetscInt c = 0; c < p->places; c++)
    if (p->place[c]) {
      p->ghost[n] = first + c;
      p->place[c] = (int32_t)++n;
    }
  p->nghost = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The place of a column among the ghost columns; negative: it is none */
static PetscErrorCode Find(const RanksProduct *p, PetscInt column, PetscInt *at)
{
  PetscFunctionBegin;
  if (!p->place) PetscCall(PetscFindInt(column, p->nghost, p->ghost, at));
  else *at = column >= p->first && column - p->first < p->places ? p->place[column - p->first] - 1 : -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The ghost columns: from X's off-diagonal block (more) and from rows of other ranks. moved: the places of the columns in more */
static PetscErrorCode RanksProductGhosts(RanksProduct *p, PetscInt nmore, const PetscInt more[], const GPUCSRHostRows *rows, PetscLayout cmap)
{
  const PetscInt nrows = rows->n ? rows->i[rows->n] : 0;
  PetscInt      *all, *old = p->ghost, at, n = nmore;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(nmore + nrows, &all));
  PetscCall(PetscArraycpy(all, more, nmore));
  for (PetscInt k = 0; k < nrows; k++)
    if (rows->j[k] < cmap->rstart || rows->j[k] >= cmap->rend) all[n++] = rows->j[k];
  p->ghost  = all;
  p->nghost = n;
  PetscCall(Ascend(p));
  PetscCall(PetscFree(p->moved));
  PetscCall(PetscMalloc1(nmore, &p->moved));
  for (PetscInt k = 0; k < nmore; k++) {
    PetscCall(Find(p, more[k], &at));
    p->moved[k] = (int32_t)at;
  }
  PetscCall(PetscFree(old)); /* which may be more */
  p->nmoved = nmore;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The local number of a global column */
static PetscErrorCode Number(const RanksProduct *p, PetscLayout cmap, PetscInt column, int32_t *here)
{
  PetscInt at;

  PetscFunctionBegin;
  if (column >= cmap->rstart && column < cmap->rend) *here = (int32_t)(column - cmap->rstart);
  else {
    PetscCall(Find(p, column, &at));
    PetscCheck(at >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Column %" PetscInt_FMT " has no number on this rank", column);
    *here = (int32_t)(p->own + at);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* j[k] = table[j[k]] on the device, the table from the host */
PetscErrorCode GPUCSRRanksRenumber(GPUCSRDevice dev, PetscInt n, const int32_t table[], int64_t nnz, int32_t *j)
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

static PetscErrorCode CreateCSR(GPUCSRDevice dev, int m, PetscInt n, int64_t nnz, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  PetscCheck(nnz <= INT32_MAX - 1024 && n <= INT32_MAX - 1024, PETSC_COMM_SELF, PETSC_ERR_SUP, "A product of %d rows, %" PetscInt_FMT " columns and %" PetscInt64_FMT " nonzeros of this rank does not fit the 32-bit indices of the device formats", m, n, (PetscInt64)nnz);
  PetscCall(GPUCSRCSRCreate(dev, m, (int)n, nnz, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Room for a matrix of m rows and nnz entries, and behind it the pattern of rows from other ranks */
static PetscErrorCode Stack(RanksProduct *p, int m, int64_t nnz, const GPUCSRHostRows *rows, PetscLayout cmap, GPUCSRStorage *A)
{
  GPUCSRDevice   dev = p->dev;
  const PetscInt n   = rows->n ? rows->i[rows->n] : 0;
  int32_t       *i, *j;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(CreateCSR(p->dev, m + (int)rows->n, p->own + p->nghost, nnz + n, A));
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
static PetscErrorCode StackValues(RanksProduct *p, int64_t nnz, const GPUCSRHostRows *rows, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  if (rows->n && rows->i[rows->n]) PetscCall(GPUCSRUpload(p->dev, (double *)A->array[CSR_VAL].data + nnz, GPUCSR_DOUBLE, rows->a, GPUCSR_DOUBLE, (size_t)rows->i[rows->n], PETSC_FALSE, p->dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* K = [A_d A_o], as large as A; the caller destroys it */
PetscErrorCode GPUCSRRanksBeside(GPUCSRStorage *const a[2], GPUCSRStorage *K)
{
  PetscFunctionBegin;
  PetscCall(CreateCSR(a[0]->dev, a[0]->m, a[0]->n + a[1]->n, a[0]->nnz + a[1]->nnz, K));
  PetscCall(GPUCSRBeside(a[0], a[1], K));
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

/* A matrix of ones: row r has the entries first[r] to first[r + 1] - 1, and entry k is in column[k]; NULL stands for 0, 1, 2 ... */
static PetscErrorCode Ones(RanksProduct *p, PetscInt m, PetscInt n, const PetscInt first[], const PetscInt column[], GPUCSRStorage *A)
{
  const PetscInt nnz = first ? first[m] : m;
  GPUCSRDevice   dev = p->dev;
  int32_t       *i, *j;
  double        *one;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(CreateCSR(p->dev, (int)m, n, nnz, A));
  PetscCall(PetscMalloc3(m + 1, &i, nnz, &j, nnz, &one));
  for (PetscInt r = 0; r <= m; r++) i[r] = (int32_t)(first ? first[r] : r);
  for (PetscInt k = 0; k < nnz; k++) {
    j[k]   = (int32_t)(column ? column[k] : k);
    one[k] = 1;
  }
  ierr = GPUCSRUpload(dev, A->array[CSR_ROWPTR].data, GPUCSR_INT32, i, GPUCSR_INT32, (size_t)m + 1, PETSC_FALSE, dev->stream, NULL);
  if (!ierr && nnz) ierr = GPUCSRUpload(dev, A->array[CSR_COL].data, GPUCSR_INT32, j, GPUCSR_INT32, (size_t)nnz, PETSC_FALSE, dev->stream, NULL);
  if (!ierr && nnz) ierr = GPUCSRUpload(dev, A->array[CSR_VAL].data, GPUCSR_DOUBLE, one, GPUCSR_DOUBLE, (size_t)nnz, PETSC_FALSE, dev->stream, NULL);
  PetscCall(PetscFree3(i, j, one));
  PetscFunctionReturn(ierr);
}

/* ---- the pattern ---- */

/* The pattern of X on the host, with global columns */
static PetscErrorCode Download(RanksProduct *p, const GPUCSRStorage *X, PetscLayout cmap, const PetscInt ghost[], GPUCSRHostRows *x)
{
  PetscFunctionBegin;
  x->n = X->m;
  PetscCall(PetscMalloc1(X->m + 1, &x->i));
  PetscCall(PetscMalloc1(X->nnz, &x->j));
  PetscCall(PetscMalloc1(X->nnz, &x->a));
  PetscCall(GPUCSRCSRDownload(X, x->i, x->j, NULL));
  for (int64_t k = 0; k < X->nnz; k++) x->j[k] = x->j[k] < p->own ? cmap->rstart + x->j[k] : ghost[x->j[k] - p->own];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows of B that other ranks fetch */
static PetscErrorCode RanksProductBorder(RanksProduct *p, const GPUCSRRanksCSR *b)
{
  PetscFunctionBegin;
  PetscCall(Ones(p, p->theirs.sent.n, b->block[0]->m, NULL, p->theirs.number, &p->Q));
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRSpGEMMSymbolic(&p->Q, b->block[k], &p->W[k], &p->wrows[k]));
  PetscCall(CreateCSR(p->dev, p->Q.m, (PetscInt)p->W[0].n + p->W[1].n, p->W[0].nnz + p->W[1].nnz, &p->F));
  PetscCall(GPUCSRBeside(&p->W[0], &p->W[1], &p->F));
  PetscCall(Download(p, &p->F, b->cmap, b->ghost, &p->theirs.sent));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* M, and T_o^T M, from the rows of this rank and the rows fetched */
static PetscErrorCode RanksProductFirst(RanksProduct *p, const GPUCSRRanksCSR *A, const GPUCSRRanksCSR *B)
{
  const Recipe         *r = p->recipe;
  GPUCSRStorage *const *a = A->block, *const *b = B->block;
  GPUCSRStorage        *M = r->transposed ? &p->R : &p->C, from;

  PetscFunctionBegin;
  /* local numbers of the columns of B's off-diagonal block; each block's columns follow the columns of the block before */
  p->columnbytes = sizeof(int32_t) * (size_t)b[1]->nnz;
  PetscCall(GPUCSRMalloc(p->dev, p->columnbytes, "columns of a factor", (void **)&p->column));
  if (b[1]->nnz) PetscCall(p->dev->ops->copy(p->dev->id, p->column, b[1]->array[CSR_COL].data, p->columnbytes, GPUCSR_ON_DEVICE, p->dev->stream));
  PetscCall(GPUCSRRanksRenumber(p->dev, p->nmoved, p->moved, b[1]->nnz, p->column));
  if (r->multiplied) {
    PetscCall(GPUCSRRanksBeside(a, &p->K));
    PetscCall(Stack(p, b[0]->m, b[0]->nnz + b[1]->nnz, &p->theirs.here, B->cmap, &p->B));
    PetscCall(BesideB(p, b, &p->B));
    PetscCall(GPUCSRSpGEMMSymbolic(&p->K, &p->B, M, &p->mrows));
    PetscCall(GPUCSRStorageDestroy(&p->K));
  } else {
    PetscCall(CreateCSR(p->dev, b[0]->m, p->own + p->nghost, b[0]->nnz + b[1]->nnz, M));
    PetscCall(BesideB(p, b, M));
  }
  p->nnz = M->nnz;
  for (int k = 0; k < (r->transposed ? 2 : 0); k++) {
    from                     = *(r->multiplied ? b : a)[k];
    from.array[CSR_VAL].data = NULL; /* not written yet */
    PetscCall(GPUCSRTransposeStorage(&from, &p->T[k], &p->map[k]));
    p->mapbytes[k] = sizeof(int32_t) * (size_t)from.nnz;
  }
  if (r->transposed) {
    PetscCall(GPUCSRSpGEMMSymbolic(&p->T[1], M, &p->O, &p->orows));
    PetscCall(Download(p, &p->O, B->cmap, p->ghost, &p->given.sent));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C from M and the rows given, split into D, the entries in this rank's columns, and E */
static PetscErrorCode RanksProductLast(RanksProduct *p, PetscLayout cmap, GPUCSRStorage *D)
{
  PetscFunctionBegin;
  if (p->recipe->transposed) {
    const int      m   = p->T[0].m;
    GPUCSRDevice   dev = p->dev;
    GPUCSRStorage  M;
    PetscErrorCode ierr = PETSC_SUCCESS;

    if (p->nghost != p->nmoved) {
      GPUCSRStorage *const all[] = {&p->B, &p->R, &p->O};
      int32_t             *full;

      /* Rows from other ranks may have new ghost columns: all ghosts are numbered again, in the same order */
      PetscCall(PetscMalloc1(p->own + p->nmoved, &full));
      for (PetscInt k = 0; k < p->own + p->nmoved; k++) full[k] = (int32_t)(k < p->own ? k : p->own + p->moved[k - p->own]);
      for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all) && !ierr; k++) {
        if (!all[k]->format) continue;
        all[k]->n = (int)(p->own + p->nghost);
        ierr      = GPUCSRRanksRenumber(p->dev, p->own + p->nmoved, full, all[k]->nnz, (int32_t *)all[k]->array[CSR_COL].data);
      }
      if (!ierr) ierr = GPUCSRRanksRenumber(p->dev, p->nmoved, p->moved, (int64_t)(p->columnbytes / sizeof(int32_t)), p->column);
      PetscCall(PetscFree(full));
      PetscCall(ierr);
    }
    M = p->R; /* R = [M; rows given] in place of M */
    PetscCall(PetscMemzero(&p->R, sizeof(p->R)));
    p->R.dev = dev;
    ierr     = Stack(p, M.m, M.nnz, &p->given.here, cmap, &p->R);
    if (!ierr) ierr = dev->ops->copy(dev->id, p->R.array[CSR_ROWPTR].data, M.array[CSR_ROWPTR].data, sizeof(int32_t) * ((size_t)M.m + 1), GPUCSR_ON_DEVICE, dev->stream);
    if (!ierr && M.nnz) ierr = dev->ops->copy(dev->id, p->R.array[CSR_COL].data, M.array[CSR_COL].data, sizeof(int32_t) * (size_t)M.nnz, GPUCSR_ON_DEVICE, dev->stream);
    PetscCall(GPUCSRStorageDestroy(&M));
    PetscCall(ierr);
    PetscCall(Ones(p, m, p->given.here.n, p->given.first, NULL, &p->S)); /* row r has a one for each row given for it */
    PetscCall(CreateCSR(p->dev, m, p->T[0].n + p->S.n, p->T[0].nnz + p->S.nnz, &p->L));
    PetscCall(GPUCSRBeside(&p->T[0], &p->S, &p->L));
    PetscCall(GPUCSRSpGEMMSymbolic(&p->L, &p->R, &p->C, &p->crows));
  }
  PetscCall(GPUCSRPartColumns(&p->C, (int)p->own, D, &p->E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- values ---- */

static PetscErrorCode RanksProductBorderValues(RanksProduct *p, const GPUCSRRanksCSR *b)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRSpGEMMValues(&p->Q, b->block[k], &p->wrows[k], &p->W[k]));
  PetscCall(GPUCSRBeside(&p->W[0], &p->W[1], &p->F));
  PetscCall(GPUCSRCSRDownload(&p->F, NULL, NULL, p->theirs.sent.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RanksProductFirstValues(RanksProduct *p, const GPUCSRRanksCSR *A, const GPUCSRRanksCSR *B)
{
  const Recipe         *r = p->recipe;
  GPUCSRStorage *const *a = A->block, *const *b = B->block;
  GPUCSRStorage         M = Top(r->transposed ? &p->R : &p->C, (r->multiplied ? a : b)[0]->m, p->nnz);

  PetscFunctionBegin;
  if (r->multiplied) {
    PetscCall(GPUCSRRanksBeside(a, &p->K));
    PetscCall(BesideB(p, b, &p->B));
    PetscCall(StackValues(p, b[0]->nnz + b[1]->nnz, &p->theirs.here, &p->B));
    PetscCall(GPUCSRSpGEMMNumeric(&p->K, &p->B, &p->mrows, &M));
    PetscCall(GPUCSRStorageDestroy(&p->K));
  } else PetscCall(BesideB(p, b, &M));
  if (!r->transposed) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRTransposeValues((r->multiplied ? b : a)[k], p->map[k], &p->T[k]));
  PetscCall(GPUCSRSpGEMMNumeric(&p->T[1], &M, &p->orows, &p->O));
  PetscCall(GPUCSRCSRDownload(&p->O, NULL, NULL, p->given.sent.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RanksProductLastValues(RanksProduct *p, GPUCSRStorage *D)
{
  PetscFunctionBegin;
  if (p->recipe->transposed) {
    PetscCall(StackValues(p, p->nnz, &p->given.here, &p->R));
    PetscCall(GPUCSRBeside(&p->T[0], &p->S, &p->L));
    PetscCall(GPUCSRSpGEMMNumeric(&p->L, &p->R, &p->crows, &p->C));
  }
  PetscCall(GPUCSRPartEntries(&p->C, (int)p->own, D, &p->E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products of matrices on devices ---- */

/* Collective, if ok: a step that may fail on one rank alone */
#define Step(p, call, ok) \
  do { \
    GPUCSRAttempt attempt; \
\
    if (!*(ok)) break; \
    GPUCSRTry(&attempt, (*(p)->dev->ops->activate)((p)->dev->id)); \
    GPUCSRThen(&attempt, call); \
    PetscCall((*(p)->agree)((p)->context, &attempt, ok)); \
  } while (0)

/* Collective: the pattern of C = A B, A^T B or P^T A P (b = P), and the data for the numeric phase. D, the block of this rank's columns, is the caller's, also after an error; p keeps E, the block of
   ghost columns. Once for each p. If not ok, destroy p */
PetscErrorCode GPUCSRRanksProductSymbolic(RanksProduct *p, const GPUCSRRanksCSR *a, const GPUCSRRanksCSR *b, GPUCSRStorage *D, PetscBool *ok)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(D, sizeof(*D)));
  *ok    = PETSC_TRUE;
  p->own = b->cmap->n;
  if (p->recipe->multiplied) {
    PetscCall(GPUCSRRowsAsk(a, &p->theirs));
    Step(p, RanksProductBorder(p, b), ok);
    if (*ok) PetscCall(GPUCSRRowsFetch(&p->theirs));
  }
  if (*ok) PetscCall(RanksProductGhosts(p, b->block[1]->n, b->ghost, &p->theirs.here, b->cmap));
  Step(p, RanksProductFirst(p, a, b), ok);
  if (*ok && p->recipe->transposed) {
    PetscCall(GPUCSRRowsGive(p->recipe->multiplied ? b : a, &p->given));
    PetscCall(RanksProductGhosts(p, p->nghost, p->ghost, &p->given.here, b->cmap));
  }
  Step(p, RanksProductLast(p, b->cmap, D), ok);
  if (!*ok) PetscCall(RanksProductForget(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the values of D and E from new values of the factors, whose patterns are the same. If not ok, destroy p */
PetscErrorCode GPUCSRRanksProductNumeric(RanksProduct *p, const GPUCSRRanksCSR *a, const GPUCSRRanksCSR *b, GPUCSRStorage *D, PetscBool *ok)
{
  PetscFunctionBegin;
  *ok = PETSC_TRUE;
  if (p->recipe->multiplied) {
    Step(p, RanksProductBorderValues(p, b), ok);
    if (*ok) PetscCall(GPUCSRRowsValues(&p->theirs));
  }
  Step(p, RanksProductFirstValues(p, a, b), ok);
  if (*ok && p->recipe->transposed) PetscCall(GPUCSRRowsValues(&p->given));
  Step(p, RanksProductLastValues(p, D), ok);
  if (!*ok) PetscCall(RanksProductForget(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DestroyData(void *data)
{
  RanksProduct *p = (RanksProduct *)GPUCSRProductData(data);

  PetscFunctionBegin;
  PetscCall(GPUCSRRanksProductDestroy(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- of Mats: the result ---- */

/* Was the product made for these patterns on this device? */
static PetscErrorCode Current(Mat C, const Mat b[], GPUCSRDevice dev, PetscBool *yes)
{
  const RanksProduct *p = (const RanksProduct *)C->product->data;

  PetscFunctionBegin;
  *yes = (PetscBool)(p->dev == dev);
  for (int k = 0; k < 6 && *yes; k++) {
    PetscCall(MatGPUCSRDecide_Private(b[k]));
    *yes = (PetscBool)(((Mat_SeqGPUCSR *)b[k]->spptr)->dev == dev && p->key[k].id == ((PetscObject)b[k])->id && p->key[k].pattern == b[k]->nonzerostate);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BothColumns(Mat C, RanksProduct *p, const GPUCSRStorage *D)
{
  Mat b[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], &b[1], NULL));
  PetscCall(MatGPUCSRProductEntries_Private(b[0], D, NULL, PETSC_FALSE));
  PetscCall(MatGPUCSRProductEntries_Private(b[1], &p->E, p->ghost, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, if ok: C with the pattern of D and E, and zeros; D becomes the mirror of its diagonal block */
static PetscErrorCode Fill(Mat C, RanksProduct *p, GPUCSRStorage *D, PetscBool *ok)
{
  PetscInt      *length[2] = {NULL, NULL};
  PetscErrorCode ierr      = PETSC_SUCCESS;
  Mat            b[2], all[6];
  int            n;

  PetscFunctionBegin;
  Step(p, MatGPUCSRProductLengths_Private(D, &length[0]), ok);
  Step(p, MatGPUCSRProductLengths_Private(&p->E, &length[1]), ok);
  if (*ok) {
    PetscCall(MatGPUCSRProductShape_Private(C));
    PetscCall(MatSetType(C, ((PetscObject)C->product->A)->type_name));
    ierr = MatMPIAIJSetPreallocation(C, 0, length[0], 0, length[1]);
  }
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(length[k]));
  PetscCall(ierr);
  Step(p, BothColumns(C, p, D), ok);
  if (!*ok) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE));
  PetscCall(MatSetOption(C, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE)); /* as after MATAIJ's products */
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(((Mat_SeqGPUCSR *)b[k]->spptr)->firstvalues)); /* the numeric phase computes and counts values */
  PetscCall(MatGPUCSRProductMirror_Private(b[0], D));
  PetscCall(MatGPUCSRProductBlocks_Private(C, PETSC_TRUE, all, &n));
  for (int k = 0; k < n; k++) p->key[k] = (BlockKey){((PetscObject)all[k])->id, all[k]->nonzerostate};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the factors ---- */

/* Both factors on the device; and, for new values, D, the mirror of C's diagonal block */
static PetscErrorCode Mirrors(Mat C, GPUCSRDevice dev, GPUCSRRanksCSR f[2], GPUCSRStorage **D)
{
  const Mat x[2] = {C->product->A, C->product->B};
  Mat       b[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    f[k] = (GPUCSRRanksCSR){.comm = PetscObjectComm((PetscObject)x[k]), .rmap = x[k]->rmap, .cmap = x[k]->cmap};
    PetscCall(MatMPIAIJGetSeqAIJ(x[k], &b[0], &b[1], &f[k].ghost));
    for (int q = 0; q < 2; q++) PetscCall(MatGPUCSRMirror_Private(b[q], dev, (PetscBool)(D != NULL), &f[k].block[q]));
  }
  if (!D) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], NULL, NULL));
  PetscCall(MatGPUCSRMirror_Private(b[0], dev, PETSC_FALSE, D));
  ((Mat_SeqGPUCSR *)b[0]->spptr)->mirror.values = -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, if ok: C, and the data for the numeric phase */
static PetscErrorCode SymbolicSteps(Mat C, RanksProduct *p, PetscBool *ok)
{
  GPUCSRRanksCSR f[2];
  GPUCSRStorage  D = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  Step(p, Mirrors(C, p->dev, f, NULL), ok);
  if (!*ok) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = GPUCSRRanksProductSymbolic(p, &f[0], &f[1], &D, ok);
  if (!ierr && *ok) ierr = Fill(C, p, &D, ok);
  PetscCall(GPUCSRStorageDestroy(&D)); /* nothing, if it is the mirror */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D and E into the host's values of C's blocks */
static PetscErrorCode ToBlocks(Mat C, const RanksProduct *p, const GPUCSRStorage *D)
{
  PetscScalar   *a;
  PetscErrorCode ierr;
  Mat            b[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) {
    const GPUCSRStorage *X = k ? &p->E : D;

    PetscCall(MatGPUCSRFetch_Private(b[k]));
    PetscCall(MatSeqAIJGetArrayWrite(b[k], &a));
    ierr = GPUCSRCSRDownload(X, NULL, NULL, a);
    MatGPUCSRValuesBack((Mat_SeqGPUCSR *)b[k]->spptr, 8.0 * (double)X->nnz);
    PetscCall(MatSeqAIJRestoreArrayWrite(b[k], &a));
    PetscCall(ierr);
  }
  ((Mat_SeqGPUCSR *)b[0]->spptr)->info.sparse_products++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Symbolic(Mat C, GPUCSRDevice dev, PetscBool *ok)
{
  RanksProduct  *p;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRRanksProductCreate(C->product->type, dev, MatGPUCSRProductAgree_Private, C, &p));
  ierr = SymbolicSteps(C, p, ok);
  if (!ierr && *ok) {
    C->product->data    = p;
    C->product->destroy = DestroyData;
  } else PetscCall(GPUCSRRanksProductDestroy(&p));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode Numeric(Mat C, GPUCSRDevice dev, PetscBool *ok)
{
  RanksProduct  *p = (RanksProduct *)C->product->data;
  GPUCSRRanksCSR f[2];
  GPUCSRStorage *D;

  PetscFunctionBegin;
  p->context = C; /* MatHeaderReplace() may have given the product to another Mat */
  Step(p, Mirrors(C, dev, f, &D), ok);
  if (*ok) PetscCall(GPUCSRRanksProductNumeric(p, &f[0], &f[1], D, ok));
  Step(p, ToBlocks(C, p, D), ok);
  if (!*ok) PetscCall(RanksProductForget(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool SameRange(PetscLayout a, PetscLayout b)
{
  return (PetscBool)(a->rstart == b->rstart && a->rend == b->rend);
}

/* If local sizes do not fit, MATAIJ reports the error */
static PetscBool Computes(Mat C)
{
  const Mat     A = C->product->A, B = C->product->B;
  const Recipe *r = RecipeOf(C->product->type);

  if (!r || GPUCSRSizeOf(PetscObjectComm((PetscObject)A)) == 1 || (r->multiplied && !SameRange(A->cmap, B->rmap))) return PETSC_FALSE;
  return (PetscBool)(r->type == MATPRODUCT_AB || SameRange(A->rmap, B->rmap));
}

const GPUCSRProductWay GPUCSRProductWay_mpi = {MATMPIAIJGPUCSR, Computes, Symbolic, Current, Numeric};
