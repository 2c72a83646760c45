/*
  Triangles in the order of their levels: what is computed is the backend's, what is counted is here.
*/
#include "triangle.h"

const char *const GPUCSRSolveMethods[] = {"syncfree", "levels", NULL};

int GPUCSRSolveBlocks = 2;

/* A herald is a place of so many levels before: early enough to be there when a row's turn is near, late enough that few ask at a time */
int GPUCSRHeraldLevels = 3;

/* Seconds, on one H200: a step from level to level when rows wait for each other; a meeting of all blocks; a level inside a block; and bytes a second */
#define STEP_SYNCFREE 0.55e-6
#define STEP_MEETING  1.6e-6
#define STEP_NARROW   0.45e-6
#define BYTES_SECOND  3e12

const GPUCSRTriangleOps *GPUCSRTriangleOpsGet(GPUCSRDevice dev)
{
#if defined(GPUCSR_HAVE_CUDA)
  if (dev->ops->separate) return &GPUCSRTriangleOps_CUDA;
#else
  (void)dev;
#endif
  return &GPUCSRTriangleOps_Host;
}

PetscErrorCode GPUCSRFactorCSRCreate(GPUCSRDevice dev, int n, int64_t nnz, GPUCSRFactorCSR *F)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(F, sizeof(*F)));
  F->n   = n;
  F->nnz = nnz;
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (size_t)(n + 1), "rows of a factor", (void **)&F->i));
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (size_t)nnz, "columns of a factor", (void **)&F->j));
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (size_t)n, "the diagonal of a factor", (void **)&F->diag));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * (size_t)nnz, "values of a factor", (void **)&F->a));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * (size_t)n, "the diagonal of a factor", (void **)&F->dinv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRFactorCSRDestroy(GPUCSRDevice dev, GPUCSRFactorCSR *F)
{
  const size_t n = (size_t)F->n, nnz = (size_t)F->nnz;

  PetscFunctionBegin;
  PetscCall(GPUCSRFree(dev, sizeof(int) * (n + 1), (void **)&F->i));
  PetscCall(GPUCSRFree(dev, sizeof(int) * nnz, (void **)&F->j));
  PetscCall(GPUCSRFree(dev, sizeof(int) * n, (void **)&F->diag));
  PetscCall(GPUCSRFree(dev, sizeof(double) * nnz, (void **)&F->a));
  PetscCall(GPUCSRFree(dev, sizeof(double) * n, (void **)&F->dinv));
  PetscCall(PetscMemzero(F, sizeof(*F)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRTriangleDestroy(GPUCSRDevice dev, GPUCSRTriangle *T)
{
  const size_t n = (size_t)T->n, stored = (size_t)T->stored;

  PetscFunctionBegin;
  PetscCall(GPUCSRFree(dev, sizeof(int) * n, (void **)&T->order));
  PetscCall(GPUCSRFree(dev, sizeof(int) * n, (void **)&T->place));
  PetscCall(GPUCSRFree(dev, sizeof(int) * n, (void **)&T->key));
  PetscCall(GPUCSRFree(dev, sizeof(GPUCSRSlice) * (size_t)T->nslices, (void **)&T->slice));
  PetscCall(GPUCSRFree(dev, sizeof(int) * (size_t)(T->nlevels + 1), (void **)&T->level));
  PetscCall(GPUCSRFree(dev, sizeof(GPUCSRStep) * (size_t)T->nsteps, (void **)&T->step));
  PetscCall(GPUCSRFree(dev, sizeof(int) * stored, (void **)&T->col));
  PetscCall(GPUCSRFree(dev, sizeof(double) * stored, (void **)&T->val));
  PetscCall(GPUCSRFree(dev, sizeof(double) * n, (void **)&T->scale));
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRFree(dev, sizeof(double) * (n + 1), (void **)&T->x[k]));
  PetscCall(PetscMemzero(T, sizeof(*T)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

double GPUCSRTriangleBytes(const GPUCSRTriangle *T)
{
  return 12.0 * (double)T->stored + 32.0 * (double)T->n + 16.0 * (double)T->nslices;
}

/* Seconds that one solve is predicted to take */
double GPUCSRTriangleTime(const GPUCSRTriangle *T, GPUCSRSolveMethod method)
{
  const double stream = (GPUCSRTriangleBytes(T) + 16.0 * (double)T->n) / BYTES_SECOND;
  int          levels = 0;

  if (method == GPUCSR_SOLVE_SYNCFREE) return STEP_SYNCFREE * T->nlevels + stream;
  levels = T->nlevels - T->nsteps; /* that need no meeting of their own */
  return STEP_MEETING * T->nsteps + STEP_NARROW * levels + stream;
}

/* Rows in the order of levels */
PetscErrorCode GPUCSRTriangleLevels(GPUCSRDevice dev, const GPUCSRFactorCSR *F, PetscBool upper, GPUCSRTriangle *T, GPUCSRStream s)
{
  const size_t n = (size_t)F->n;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(T, sizeof(*T)));
  T->n     = F->n;
  T->upper = upper;
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * n, "the order of levels", (void **)&T->order));
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * n, "the order of levels", (void **)&T->place));
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * n, "the order of levels", (void **)&T->key));
  PetscCall((*GPUCSRTriangleOpsGet(dev)->levels)(dev, F, T, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The slices of all runs (of equal level and lanes), and the first slice of each level */
static PetscErrorCode Cut(GPUCSRTriangle *T, int nruns, const int key[], const int rows[], GPUCSRSlice slice[], int level[])
{
  int place = 0, k = 0, l = 0;

  PetscFunctionBegin;
  for (int r = 0; r < nruns; r++) {
    const int lanes = key[r] & 7, height = GPUCSR_SLICE >> lanes;

    for (; l <= key[r] >> 3; l++) level[l] = k;
    for (int done = 0; done < rows[r]; done += height, k++) slice[k] = (GPUCSRSlice){place + done, GPUCSRSliceShape(PetscMin(height, rows[r] - done), lanes, 0), 0, -1};
    place += rows[r];
  }
  level[l] = k;
  PetscCheck(k == T->nslices && place == T->n && l == T->nlevels, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Levels do not add up to the matrix");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is done between two meetings: a wide level, or narrow ones in a row */
static int Steps(const GPUCSRTriangle *T, const int level[], GPUCSRStep step[])
{
  int n = 0;

  for (int l = 0, last; l < T->nlevels; l = last, n++) {
    const int narrow = level[l + 1] - level[l] <= GPUCSR_NARROW_SLICES;

    for (last = l + 1; narrow && last < T->nlevels && level[last + 1] - level[last] <= GPUCSR_NARROW_SLICES;) last++;
    step[n] = (GPUCSRStep){l, last, narrow};
  }
  return n;
}

static PetscErrorCode Allocate(GPUCSRDevice dev, GPUCSRTriangle *T)
{
  const size_t n = (size_t)T->n, stored = (size_t)T->stored;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * stored, "columns of a triangle", (void **)&T->col));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * stored, "values of a triangle", (void **)&T->val));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * n, "the diagonal of a triangle", (void **)&T->scale));
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRMalloc(dev, sizeof(double) * (n + 1), "results of a triangle", (void **)&T->x[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A place of the level that begins at level[0], as far into it as slice k of n is into its own */
static int Herald(const GPUCSRSlice slice[], const int level[], int k, int n)
{
  return slice[level[0] + (int)((int64_t)k * (level[1] - level[0]) / n)].first;
}

/* slice[] with widths, offsets and heralds, and what is as long as they say, on the device */
static PetscErrorCode Lay(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, GPUCSRSlice slice[], const int level[], int width[], GPUCSRStep step[], GPUCSRStream s)
{
  const size_t slices = 4 * (size_t)T->nslices;
  int64_t      at     = 0;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(dev, sizeof(GPUCSRSlice) * (size_t)T->nslices, "slices of a triangle", (void **)&T->slice));
  PetscCall(GPUCSRUpload(dev, T->slice, GPUCSR_INT32, slice, GPUCSR_INT32, slices, PETSC_FALSE, s, NULL));
  PetscCall((*GPUCSRTriangleOpsGet(dev)->widths)(dev, F, T, width, s));
  for (int l = 0; l < T->nlevels; l++) {
    T->widest = PetscMax(T->widest, level[l + 1] - level[l]);
    for (int k = level[l]; k < level[l + 1]; k++) {
      PetscCheck(width[k] < GPUCSR_SLICE_WIDTH_MAX && at < INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_MEM, "A triangle of %d rows has too many entries for its slices", T->n);
      slice[k].shape |= GPUCSRSliceShape(0, 0, width[k]);
      slice[k].offset = (int)at;
      if (GPUCSRHeraldLevels && l > GPUCSRHeraldLevels) slice[k].herald = Herald(slice, level + l - GPUCSRHeraldLevels, k - level[l], level[l + 1] - level[l]);
      at += width[k];
    }
  }
  PetscCall(GPUCSRUpload(dev, T->slice, GPUCSR_INT32, slice, GPUCSR_INT32, slices, PETSC_FALSE, s, NULL));
  T->stored = GPUCSR_SLICE * at;
  T->nsteps = Steps(T, level, step);
  PetscCall(GPUCSRMalloc(dev, sizeof(GPUCSRStep) * (size_t)T->nsteps, "steps of a triangle", (void **)&T->step));
  PetscCall(GPUCSRUpload(dev, T->step, GPUCSR_INT32, step, GPUCSR_INT32, 3 * (size_t)T->nsteps, PETSC_FALSE, s, NULL));
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (size_t)(T->nlevels + 1), "levels of a triangle", (void **)&T->level));
  PetscCall(GPUCSRUpload(dev, T->level, GPUCSR_INT32, level, GPUCSR_INT32, (size_t)T->nlevels + 1, PETSC_FALSE, s, NULL));
  PetscCall(Allocate(dev, T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All else of a triangle whose rows are in the order of levels; values come with fill() */
PetscErrorCode GPUCSRTriangleSlices(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, GPUCSRStream s)
{
  const GPUCSRTriangleOps *ops = GPUCSRTriangleOpsGet(dev);
  int                      nruns, *key = NULL, *rows = NULL, *level, *width;
  GPUCSRSlice             *slice;
  GPUCSRStep              *step;
  PetscErrorCode           ierr;

  PetscFunctionBegin;
  PetscCall((*ops->runs)(dev, T, &nruns, &key, &rows, s));
  PetscCall(GPUCSRFree(dev, sizeof(int) * (size_t)T->n, (void **)&T->key));
  T->nlevels = nruns ? 1 + (key[nruns - 1] >> 3) : 0;
  for (int r = 0; r < nruns; r++) {
    const int height = GPUCSR_SLICE >> (key[r] & 7);

    T->nslices += (rows[r] + height - 1) / height;
  }
  PetscCall(PetscMalloc4(T->nslices, &slice, T->nlevels + 1, &level, T->nslices, &width, T->nlevels, &step));
  ierr = Cut(T, nruns, key, rows, slice, level);
  if (!ierr) ierr = Lay(dev, F, T, slice, level, width, step, s);
  PetscCall(PetscFree4(slice, level, width, step));
  PetscCall(PetscFree2(key, rows));
  PetscCall(ierr);
  PetscCall((*ops->fill)(dev, F, T, PETSC_TRUE, s));
  PetscCall((*ops->reset)(T, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRTriangleBuild(GPUCSRDevice dev, const GPUCSRFactorCSR *F, PetscBool upper, GPUCSRTriangle *T, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRTriangleLevels(dev, F, upper, T, s));
  PetscCall(GPUCSRTriangleSlices(dev, F, T, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}
