/*
  Factors of many blocks as one: the factor of the block diagonal matrix, with the blocks' orderings one after the other. Equal levels of all blocks become one level. So a solve with 64 blocks is one launch, which
  takes no longer than the solve with the deepest block. The factor of a block diagonal matrix has the blocks' factors on its diagonal, with any levels of fill. The exception is a shift: one block's pivots would shift
  all blocks. That case is left to PETSc.

  The factors of the blocks are deferred before (MatGPUCSRFactorPutOff_Private()), and keep the requests from which this one is made.
*/
#include "factorimpl.h"

/* The key of a block: numbers that change whenever the block does */
#define KEYS 6
static void KeyOf(const Mat_GPUCSRFactor *f, const GPUCSROverlap *o, PetscInt k, PetscInt64 key[])
{
  key[0] = (PetscInt64)((PetscObject)f->A)->id;
  key[1] = (PetscInt64)f->A->nonzerostate;
  key[2] = f->natural ? 0 : (PetscInt64)((PetscObject)f->row)->id;
  key[3] = f->natural ? 0 : (PetscInt64)((PetscObject)f->col)->id;
  key[4] = o ? (PetscInt64)((PetscObject)o->is[k])->id : 0;
  key[5] = o && o->counted ? (PetscInt64)((PetscObject)o->counted[k])->id : 0;
}

PetscErrorCode GPUCSRFactorsDestroy(GPUCSRFactors *t)
{
  PetscFunctionBegin;
  PetscCall(MatDestroy(&t->F));
  PetscCall(PetscFree(t->key));
  PetscCall(PetscFree(t->i));
  PetscCall(PetscFree(t->j));
  PetscCall(PetscFree(t->a));
  PetscCall(PetscMemzero(t, sizeof(*t)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRFactorWasPutOff_Private(Mat F, PetscBool *later)
{
  Mat_GPUCSRFactor *f;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorFind_Private(F, &f));
  *later = (PetscBool)(f && f->later);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fills in the values, and the pattern if t->i does not exist yet */
static PetscErrorCode FillBatch(PetscInt n, Mat_GPUCSRFactor *const f[], PetscInt rows, PetscInt nnz, GPUCSRFactors *t)
{
  const PetscBool pattern = (PetscBool)!t->i;
  PetscInt        row = 0, at = 0;

  PetscFunctionBegin;
  if (pattern) {
    PetscCall(PetscMalloc1(rows + 1, &t->i));
    PetscCall(PetscMalloc1(nnz, &t->j));
    PetscCall(PetscMalloc1(nnz, &t->a));
    t->i[0] = 0;
  }
  for (PetscInt k = 0; k < n; k++) {
    const PetscInt *i, *j, m = f[k]->A->rmap->n;
    PetscScalar    *a;

    PetscCall(MatGPUCSRFetch_Private(f[k]->A));
    PetscCall(MatSeqAIJGetCSRAndMemType(f[k]->A, &i, &j, &a, NULL));
    PetscCall(PetscArraycpy(t->a + at, a, i[m]));
    for (PetscInt e = 0; pattern && e < i[m]; e++) t->j[at + e] = row + j[e];
    for (PetscInt r = 0; pattern && r < m; r++) t->i[row + r + 1] = at + i[r + 1];
    row += m;
    at += i[m];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The orderings of all blocks as one */
static PetscErrorCode Ordering(PetscInt n, Mat_GPUCSRFactor *const f[], PetscInt rows, PetscBool columns, IS *is)
{
  PetscBool natural = PETSC_TRUE;
  PetscInt *index, at = 0;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) natural = (PetscBool)(natural && f[k]->natural);
  if (natural) {
    PetscCall(ISCreateStride(PETSC_COMM_SELF, rows, 0, 1, is));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc1(rows, &index));
  for (PetscInt k = 0; k < n; k++) {
    const PetscInt  m = f[k]->A->rmap->n;
    const PetscInt *one;

    PetscCall(ISGetIndices(columns ? f[k]->col : f[k]->row, &one));
    for (PetscInt r = 0; r < m; r++) index[at + r] = at + one[r];
    PetscCall(ISRestoreIndices(columns ? f[k]->col : f[k]->row, &one));
    at += m;
  }
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, rows, index, PETSC_OWN_POINTER, is));
  PetscCall(ISSetPermutation(*is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called if there is no factor yet, or if it is for other blocks */
static PetscErrorCode CreateBatch(PetscInt n, Mat_GPUCSRFactor *const f[], const GPUCSROverlap *overlap, PetscInt rows, PetscInt nnz, GPUCSRFactors *t)
{
  Mat            A   = NULL;
  IS             row = NULL, col = NULL;
  const char    *prefix;
  PetscBool      known, symmetric;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRFactorsDestroy(t));
  t->n    = n;
  t->type = f[0]->type;
  t->info = f[0]->info;
  PetscCall(PetscMalloc1(KEYS * n, &t->key));
  for (PetscInt k = 0; k < n; k++) KeyOf(f[k], overlap, k, t->key + KEYS * k);
  PetscCall(FillBatch(n, f, rows, nnz, t));
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, rows, rows, t->i, t->j, t->a, &A));
  ierr = MatConvert(A, MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, &A); /* with the options of the first block's */
  if (!ierr) ierr = MatGPUCSRConfigure_Private(A, &((Mat_GPUCSR *)f[0]->A->spptr)->config);
  if (!ierr) ierr = MatGetOptionsPrefix(f[0]->A, &prefix);
  if (!ierr) ierr = MatSetOptionsPrefix(A, prefix);
  if (!ierr) ierr = MatIsSymmetricKnown(f[0]->A, &known, &symmetric);
  if (!ierr && known && symmetric) ierr = MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE);
  if (!ierr) ierr = Ordering(n, f, rows, PETSC_FALSE, &row);
  if (!ierr) ierr = Ordering(n, f, rows, PETSC_TRUE, &col);
  if (!ierr) ierr = MatGPUCSRFactorCreate_Private(A, f[0]->type, f[0]->direct, &t->F); /* never cuDSS, because no block is */
  if (!ierr) ierr = MatGPUCSRFactorSymbolic_Private(t->F, A, row, f[0]->symmetric ? row : col, &f[0]->info);
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(ierr);
}

/* For each entry of a vector the list of the blocks' rows in its sum, in the order of blocks */
static PetscErrorCode Lists(PetscInt blocks, const GPUCSROverlap *o, const PetscInt from[], const PetscInt begin[], int ptr[], int index[])
{
  PetscInt *place; /* of an entry in its block; -1: not in the block */

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(o->n, &place));
  for (PetscInt v = 0; v < o->n; v++) place[v] = -1;
  PetscCall(PetscArrayzero(ptr, o->n + 2));
  for (int fill = 0; fill < 2; fill++) { /* count, then fill: ptr[v + 1] is the next free place of entry v */
    for (PetscInt k = 0; k < blocks; k++) {
      const PetscInt *mine = from + begin[k], *counted = mine;
      PetscInt        m = begin[k + 1] - begin[k], n = m;

      for (PetscInt r = 0; r < m; r++) place[mine[r]] = r;
      if (o->counted) {
        PetscCall(ISGetLocalSize(o->counted[k], &n));
        PetscCall(ISGetIndices(o->counted[k], &counted));
      }
      for (PetscInt r = 0; r < n; r++) {
        if (place[counted[r]] < 0) continue;
        if (fill) index[ptr[counted[r] + 1]++] = (int)(begin[k] + place[counted[r]]);
        else ptr[counted[r] + 2]++;
      }
      if (o->counted) PetscCall(ISRestoreIndices(o->counted[k], &counted));
      for (PetscInt r = 0; r < m; r++) place[mine[r]] = -1;
    }
    for (PetscInt v = 0; v < o->n && !fill; v++) ptr[v + 2] += ptr[v + 1];
  }
  PetscCall(PetscFree(place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Maps between the program's vectors and the factor's */
static PetscErrorCode ScatterOverlap(PetscInt blocks, const GPUCSROverlap *o, PetscInt rows, Mat_GPUCSRFactor *f)
{
  PetscInt      *from, *begin, entries = 0;
  int           *ptr, *index;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(rows, &from, blocks + 1, &begin));
  begin[0] = 0;
  for (PetscInt k = 0; k < blocks; k++) {
    const PetscInt *is;
    PetscInt        m;

    PetscCall(ISGetLocalSize(o->is[k], &m));
    PetscCall(ISGetIndices(o->is[k], &is));
    PetscCall(PetscArraycpy(from + begin[k], is, m));
    PetscCall(ISRestoreIndices(o->is[k], &is));
    begin[k + 1] = begin[k] + m;
    if (o->counted) PetscCall(ISGetLocalSize(o->counted[k], &m));
    entries += m;
  }
  PetscCall(PetscMalloc2(o->n + 2, &ptr, PetscMax(1, entries), &index));
  ierr = Lists(blocks, o, from, begin, ptr, index);
  if (!ierr) ierr = GPUCSROverlapScatterCreate(f->dev, (int)o->n, (int)rows, from, ptr, index, &f->scatter);
  PetscCall(PetscFree2(ptr, index));
  PetscCall(PetscFree2(from, begin));
  PetscFunctionReturn(ierr);
}

/* Does the common factor equal the factors that the blocks would have had? */
static PetscErrorCode Good(const GPUCSRFactors *t, const Mat_GPUCSRFactor *f, char why[], size_t len)
{
  const PetscBool shifted = (PetscBool)(f->info.shifttype == (PetscReal)MAT_SHIFT_NONZERO || f->info.shifttype == (PetscReal)MAT_SHIFT_POSITIVE_DEFINITE);

  PetscFunctionBegin;
  if (t->F->factorerrortype) PetscCall(PetscStrncpy(why, "a block has a bad pivot", len));
  else if (f->numeric && shifted) PetscCall(PetscStrncpy(why, "a block may need its pivots shifted", len));
  else if (!f->ondevice) PetscCall(PetscStrncpy(why, f->whynot, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakeBatch(PetscInt n, const Mat F[], const GPUCSROverlap *overlap, GPUCSRFactors *t, Mat_GPUCSRFactor *f[], char why[], size_t len)
{
  PetscInt          rows = 0, nnz = 0;
  PetscInt64        key[KEYS];
  PetscBool         same = (PetscBool)(t->F && t->n == n);
  Mat_GPUCSRFactor *all;
  GPUCSRAttempt     attempt;
  const PetscInt   *i;
  PetscInt64        entries = 0, sum = 0;

  PetscFunctionBegin;
  why[0] = 0; /* they must all be deferred and of the same kind */
  for (PetscInt k = 0; k < n && !why[0]; k++) {
    PetscBool later = PETSC_FALSE;

    PetscCall(MatGPUCSRFactorFind_Private(F[k], &f[k]));
    if (f[k]) PetscCall(MatGPUCSRFactorTakeBack_Private(F[k], f[k], &later));
    if (!later) PetscCall(PetscSNPrintf(why, len, "the factor of block %" PetscInt_FMT " is not one of the device", k));
    else if (f[k]->type != f[0]->type || memcmp(&f[k]->info, &f[0]->info, sizeof(f[0]->info)) || f[k]->method != f[0]->method) PetscCall(PetscStrncpy(why, "the factors of blocks are not of one kind", len));
    else {
      PetscCall(MatSeqAIJGetCSRAndMemType(f[k]->A, &i, NULL, NULL, NULL));
      sum += f[k]->A->rmap->n;
      entries += i[f[k]->A->rmap->n];
    }
  }
  if (!why[0] && entries > INT32_MAX - 1024) PetscCall(PetscStrncpy(why, "the blocks have too many entries for 32-bit indices", len));
  rows = (PetscInt)sum;
  nnz  = (PetscInt)entries;
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  same = (PetscBool)(same && t->type == f[0]->type && !memcmp(&t->info, &f[0]->info, sizeof(t->info))); /* all blocks have the settings of the first */
  for (PetscInt k = 0; k < n && same; k++) {
    KeyOf(f[k], overlap, k, key);
    same = (PetscBool)!memcmp(key, t->key + KEYS * k, sizeof(key));
  }
  if (same) {
    PetscCall(MatGPUCSRFactorGet_Private(t->F, &all));
    PetscCall(FillBatch(n, f, rows, nnz, t));
    PetscCall(PetscObjectStateIncrease((PetscObject)all->A));
  } else {
    PetscCall(CreateBatch(n, f, overlap, rows, nnz, t));
    PetscCall(MatGPUCSRFactorGet_Private(t->F, &all));
    PetscCall(PetscMalloc1(n + 1, &all->begin)); /* where its blocks begin */
    all->begin[0] = 0;
    for (PetscInt k = 0; k < n; k++) all->begin[k + 1] = all->begin[k] + (int)f[k]->A->rmap->n;
    all->nblocks = (int)n;
  }
  if (all->symmetric) PetscCall(MatCholeskyFactorNumeric(t->F, all->A, &f[0]->info));
  else PetscCall(MatLUFactorNumeric(t->F, all->A, &f[0]->info));
  PetscCall(Good(t, all, why, len));
  if (!why[0] && overlap && !all->scatter.n) {
    GPUCSRTry(&attempt, ScatterOverlap(n, overlap, rows, all));
    PetscCall(MatGPUCSRFactorMet_Private(t->F, all, &attempt));
    PetscCall(Good(t, all, why, len));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Computes one factor for all blocks, in place of the deferred factors. It takes their current values, and is made anew if their patterns have changed. Not ok: the blocks must be factored one by one, for the reason in why
*/
PetscErrorCode MatGPUCSRFactorsBatch_Private(PetscInt n, const Mat F[], const GPUCSROverlap *overlap, GPUCSRFactors *t, PetscBool *ok, char why[], size_t len)
{
  Mat_GPUCSRFactor **f;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n, &f));
  ierr = MakeBatch(n, F, overlap, t, f, why, len);
  *ok  = (PetscBool)(!ierr && !why[0]);
  PetscCall(PetscFree(f));
  if (!*ok) PetscCall(GPUCSRFactorsDestroy(t));
  PetscFunctionReturn(ierr);
}
