/*
  Triangles in the order of their levels. The backends compute; this file counts, predicts and allocates.
*/
#include "triangle.h"

const char *const GPUCSRSolveMethods[] = {"ranges", "syncfree", NULL};

const GPUCSRTriangleOps *GPUCSRTriangleOpsGet(GPUCSRDevice dev)
{
  return GPUCSREither(dev, &GPUCSRTriangleOps_CUDA, &GPUCSRTriangleOps_Host);
}

PetscErrorCode GPUCSRFactorCSRCreate(GPUCSRDevice dev, int n, int64_t nnz, GPUCSRFactorCSR *F)
{
  PetscFunctionBegin;
  *F = (GPUCSRFactorCSR){.n = n, .nnz = nnz};
  PetscCall(PetscNew(&F->csr));
  PetscCall(GPUCSRStorageCSR(dev, n, n, nnz, GPUCSR_PRECISION_DOUBLE, PETSC_FALSE, F->csr));
  F->i = GPUCSRCSROf(F->csr).i;
  F->j = GPUCSRCSROf(F->csr).j;
  F->a = GPUCSRCSROf(F->csr).a;
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (size_t)n, "the diagonal of a factor", (void **)&F->diag));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * (size_t)n, "the diagonal of a factor", (void **)&F->dinv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRFactorCSRDestroy(GPUCSRDevice dev, GPUCSRFactorCSR *F)
{
  const size_t n = (size_t)F->n;

  PetscFunctionBegin;
  if (F->csr) PetscCall(GPUCSRStorageDestroy(F->csr));
  PetscCall(PetscFree(F->csr));
  PetscCall(GPUCSRFree(dev, sizeof(int) * n, (void **)&F->diag));
  PetscCall(GPUCSRFree(dev, sizeof(double) * n, (void **)&F->dinv));
  PetscCall(PetscMemzero(F, sizeof(*F)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Finds the diagonal of each row. bad: a row's columns do not ascend, or its diagonal is not stored */
PetscErrorCode GPUCSRFactorCSRInspect(GPUCSRDevice dev, const GPUCSRFactorCSR *F, int *bad)
{
  int           *flag;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRFlagCreate(dev, &flag));
  ierr = (*GPUCSRTriangleOpsGet(dev)->inspect)(dev, F->n, *F, flag, dev->stream);
  PetscCall(GPUCSRFlagRead(dev, ierr, &flag, bad));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRTriangleDestroy(GPUCSRDevice dev, GPUCSRTriangle *T)
{
  const size_t n = (size_t)T->n, stored = (size_t)T->stored;

  PetscFunctionBegin;
  PetscCall(GPUCSRFree(dev, sizeof(int) * n, (void **)&T->order));
  PetscCall(GPUCSRFree(dev, sizeof(int) * n, (void **)&T->place));
  PetscCall(GPUCSRFree(dev, sizeof(int) * n, (void **)&T->depth));
  PetscCall(GPUCSRFree(dev, sizeof(int64_t) * n, (void **)&T->key));
  PetscCall(GPUCSRFree(dev, sizeof(int) * (size_t)(T->nranges + 1), (void **)&T->range));
  PetscCall(GPUCSRFree(dev, sizeof(GPUCSRSlice) * (size_t)T->nslices, (void **)&T->slice));
  PetscCall(GPUCSRFree(dev, sizeof(int) * stored, (void **)&T->col));
  PetscCall(GPUCSRFree(dev, sizeof(double) * stored, (void **)&T->val));
  PetscCall(GPUCSRFree(dev, sizeof(double) * n, (void **)&T->scale));
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRFree(dev, sizeof(double) * n, (void **)&T->x[k]));
  PetscCall(PetscMemzero(T, sizeof(*T)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Predicted bytes, before the triangle is built */
double GPUCSRTriangleBytes(const GPUCSRTriangle *T)
{
  return 12.0 * (T->stored ? (double)T->stored : 1.3 * (double)T->nnz) + 48.0 * (double)T->n + 16.0 * (double)T->nslices;
}

/* Predicted seconds of a solve. If ranges depend on each other as in a band matrix, a path crosses each border once */
double GPUCSRTriangleTime(const GPUCSRTriangle *T, GPUCSRDevice dev, GPUCSRSolveMethod method, int ranges)
{
  const GPUCSRMachine *t      = GPUCSRMachineOf(dev);
  const double         stream = GPUCSRTriangleBytes(T) / t->triangle_rate, length = (double)T->nnz / PetscMax(1, T->n), slices = PetscMax(T->n / 32.0, 1.3 * (double)T->nnz / (32 * GPUCSR_LANE_ENTRIES));

  if (method == GPUCSR_SOLVE_RANGES) return t->level_shared * T->nlevels + t->range_step * PetscMin(T->nlevels, ranges - 1) + PetscMax(stream, t->slice_entry * length * slices / ranges);
  return t->level_cache * T->nlevels + stream;
}

/* The number of ranges with the fastest predicted solve */
int GPUCSRTriangleRanges(const GPUCSRTriangle *T, GPUCSRDevice dev)
{
  const int least = (T->n + GPUCSR_RANGE_ROWS - 1) / GPUCSR_RANGE_ROWS, most = PetscMax(least, dev->ops->kernels ? dev->props.processors : 4);
  int       best = least;

  for (int k = least; k <= most; k++)
    if (GPUCSRTriangleTime(T, dev, GPUCSR_SOLVE_RANGES, k) < GPUCSRTriangleTime(T, dev, GPUCSR_SOLVE_RANGES, best)) best = k;
  while (GPUCSRRangeRows(T->n, best) > GPUCSR_RANGE_ROWS) best++; /* whole slices */
  return best;
}

/* The level of each row */
PetscErrorCode GPUCSRTriangleLevels(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRBool upper, GPUCSRTriangle *T, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(T, sizeof(*T)));
  T->n     = F->n;
  T->upper = upper;
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (size_t)T->n, "the levels of rows", (void **)&T->depth));
  PetscCall((*GPUCSRTriangleOpsGet(dev)->levels)(dev, F, T, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts rows by level, within ranges of `rows` rows */
PetscErrorCode GPUCSRTriangleOrder(GPUCSRDevice dev, const GPUCSRFactorCSR *F, int rows, GPUCSRTriangle *T, GPUCSRStream s)
{
  const size_t n = (size_t)T->n;

  PetscFunctionBegin;
  if (T->order && T->rows == rows) PetscFunctionReturn(PETSC_SUCCESS);
  T->rows    = rows;
  T->nranges = (T->n + rows - 1) / rows;
  if (!T->order) PetscCall(GPUCSRMalloc(dev, sizeof(int) * n, "the order of levels", (void **)&T->order));
  if (!T->place) PetscCall(GPUCSRMalloc(dev, sizeof(int) * n, "the order of levels", (void **)&T->place));
  if (!T->key) PetscCall(GPUCSRMalloc(dev, sizeof(int64_t) * n, "the order of levels", (void **)&T->key));
  PetscCall((*GPUCSRTriangleOpsGet(dev)->order)(dev, F, T, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Data on the host while a triangle is built */
typedef struct {
  GPUCSRSlice *slice;
  int         *range, *width;
} Laid;

#define RANGE(key) ((int)((key) >> 32))

/* Cuts runs of rows (of equal range, level and lanes) into slices, and finds the first slice of each range */
static PetscErrorCode Cut(GPUCSRTriangle *T, int nruns, const int64_t key[], const int rows[], Laid *a)
{
  int place = 0, k = 0, g = 0;

  PetscFunctionBegin;
  for (int r = 0; r < nruns; r++) {
    const int lanes = (int)(key[r] & 7), height = GPUCSR_SLICE >> lanes;

    for (; g <= RANGE(key[r]); g++) a->range[g] = k;
    for (int done = 0; done < rows[r]; done += height, k++) a->slice[k] = (GPUCSRSlice){place + done, GPUCSRSliceShape(PetscMin(height, rows[r] - done), lanes, 0), 0, 0};
    place += rows[r];
  }
  a->range[g] = k;
  PetscCheck(k == T->nslices && place == T->n && g == T->nranges, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Ranges do not add up to the matrix");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies integers from the host to the device */
static PetscErrorCode Send(GPUCSRDevice dev, const void *from, size_t n, const char what[], void *to, GPUCSRStream s)
{
  void **p = (void **)to;

  PetscFunctionBegin;
  if (!*p) PetscCall(GPUCSRMalloc(dev, sizeof(int) * n, what, p));
  PetscCall(GPUCSRUpload(dev, *p, GPUCSR_INT32, from, GPUCSR_INT32, n, PETSC_FALSE, s, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Computes widths and offsets of slices, and allocates the device arrays that depend on them */
static PetscErrorCode Lay(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, Laid *a, GPUCSRStream s)
{
  const size_t   slices = sizeof(GPUCSRSlice) / sizeof(int) * (size_t)T->nslices, bytes = sizeof(int) * (size_t)T->nslices, n = (size_t)T->n;
  int64_t        at = 0;
  int           *d  = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Send(dev, a->slice, slices, "slices of a triangle", &T->slice, s));
  /* the width of each slice, on the host */
  PetscCall(GPUCSRMalloc(dev, bytes, "widths of a triangle", (void **)&d));
  ierr = (*GPUCSRTriangleOpsGet(dev)->widths)(dev, T->nslices, *F, *T, d, s);
  if (!ierr) ierr = GPUCSRDownload(dev, a->width, GPUCSR_INT32, d, GPUCSR_INT32, (size_t)T->nslices, PETSC_FALSE, s);
  PetscCall(GPUCSRFree(dev, bytes, (void **)&d));
  PetscCall(ierr);
  for (int g = 0; g < T->nranges; g++)
    for (int k = a->range[g]; k < a->range[g + 1]; k++) {
      PetscCheck(a->width[k] < GPUCSR_SLICE_WIDTH_MAX && at < INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_MEM, "A triangle of %d rows has too many entries for its slices", T->n);
      a->slice[k].shape |= GPUCSRSliceShape(0, 0, a->width[k]);
      a->slice[k].offset = (int)at;
      at += a->width[k];
    }
  T->stored = GPUCSR_SLICE * at;
  PetscCall(Send(dev, a->slice, slices, "slices of a triangle", &T->slice, s));
  PetscCall(Send(dev, a->range, (size_t)T->nranges + 1, "ranges of a triangle", &T->range, s));
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (size_t)T->stored, "columns of a triangle", (void **)&T->col));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * (size_t)T->stored, "values of a triangle", (void **)&T->val));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * n, "the diagonal of a triangle", (void **)&T->scale));
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRMalloc(dev, sizeof(double) * n, "results of a triangle", (void **)&T->x[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Builds the rest of a triangle, after its rows are in the order of levels */
PetscErrorCode GPUCSRTriangleSlices(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, GPUCSRStream s)
{
  const GPUCSRTriangleOps *ops = GPUCSRTriangleOpsGet(dev);
  int                      nruns, *rows = NULL;
  int64_t                 *key = NULL;
  Laid                     a;
  PetscErrorCode           ierr;

  PetscFunctionBegin;
  PetscCall((*ops->runs)(dev, T, &nruns, &key, &rows, s));
  for (int r = 0; r < nruns; r++) {
    const int height = GPUCSR_SLICE >> (key[r] & 7);

    T->nslices += (rows[r] + height - 1) / height;
  }
  ierr = PetscMalloc3(T->nslices, &a.slice, T->nslices, &a.width, T->nranges + 1, &a.range);
  if (ierr) {
    GPUCSRHostFree((void **)&key);
    GPUCSRHostFree((void **)&rows);
  }
  PetscCall(ierr);
  ierr = Cut(T, nruns, key, rows, &a);
  if (!ierr) ierr = Lay(dev, F, T, &a, s);
  PetscCall(PetscFree3(a.slice, a.width, a.range));
  GPUCSRHostFree((void **)&key);
  GPUCSRHostFree((void **)&rows);
  PetscCall(ierr);
  PetscCall(GPUCSRFree(dev, sizeof(int) * (size_t)T->n, (void **)&T->depth));
  PetscCall(GPUCSRFree(dev, sizeof(int64_t) * (size_t)T->n, (void **)&T->key));
  PetscCall((*ops->fill)(dev, T->nslices, *F, *T, PETSC_TRUE, s));
  for (int k = 0; k < 2; k++) PetscCall((*ops->reset)(T, k, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}
