/*
  Triangles on the host backend: the loops that the kernels are tested against.
*/
#include "rows.h"

GPUCSR_TRIANGLE_STEPS(GPUCSR_EACH)

static PetscErrorCode Levels(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, GPUCSRStream s)
{
  const int n = F->n;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s));
  T->nnz     = 0;
  T->nlevels = 0;
  for (int k = 0; k < n; k++) {
    const int r = T->upper ? n - 1 - k : k;

    T->depth[r] = 0;
    T->nnz += GPUCSRTriangleEnd(F, T->upper, r) - GPUCSRTriangleBegin(F, T->upper, r);
    for (int e = GPUCSRTriangleBegin(F, T->upper, r); e < GPUCSRTriangleEnd(F, T->upper, r); e++) T->depth[r] = PetscMax(T->depth[r], T->depth[F->j[e]] + 1);
    T->nlevels = PetscMax(T->nlevels, T->depth[r] + 1);
  }
  PetscCall(GPUCSRLaunched(dev, "levels of a triangle"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A stable counting sort, range by range */
static PetscErrorCode Order(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, GPUCSRStream s)
{
  const int keys = 8 * T->nlevels;
  int      *first;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s));
  PetscCall(PetscMalloc1(keys + 1, &first));
  for (int64_t g = 0; g < T->nranges; g++) {
    const int begin = (int)(g * T->rows), end = (int)PetscMin((g + 1) * T->rows, T->n), low = T->upper ? T->n - end : begin;

    PetscCall(PetscArrayzero(first, keys + 1));
    for (int r = low; r < low + end - begin; r++) first[8 * T->depth[r] + GPUCSRLaneClass(GPUCSRTriangleEnd(F, T->upper, r) - GPUCSRTriangleBegin(F, T->upper, r)) + 1]++;
    for (int k = 0; k < keys; k++) first[k + 1] += first[k];
    for (int r = low; r < low + end - begin; r++) {
      const int key = 8 * T->depth[r] + GPUCSRLaneClass(GPUCSRTriangleEnd(F, T->upper, r) - GPUCSRTriangleBegin(F, T->upper, r)), p = begin + first[key]++;

      T->order[p] = r;
      T->key[p]   = g << 32 | key;
      T->place[r] = p;
    }
  }
  PetscCall(PetscFree(first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Runs(GPUCSRDevice dev, const GPUCSRTriangle *T, int *n, int64_t **key, int **rows, GPUCSRStream s)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s));
  *n = 0;
  for (int p = 0; p < T->n; p++) *n += !p || T->key[p] != T->key[p - 1];
  PetscCall(GPUCSRHostMalloc(sizeof(**key) * (size_t)*n, (void **)key));
  ierr = GPUCSRHostMalloc(sizeof(**rows) * (size_t)*n, (void **)rows);
  if (ierr) GPUCSRHostFree((void **)key);
  PetscCall(ierr);
  for (int p = 0, k = -1; p < T->n; p++) {
    if (!p || T->key[p] != T->key[p - 1]) {
      (*key)[++k] = T->key[p];
      (*rows)[k]  = 0;
    }
    (*rows)[k]++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the pivot good? */
static inline GPUCSRBool Good(double pivot, double sum, GPUCSRPivotRule rule, double tolerance)
{
  const double least = rule == GPUCSR_PIVOT_ABSOLUTE ? tolerance : tolerance * sum;

  return (GPUCSRBool)((rule == GPUCSR_PIVOT_POSITIVE ? pivot : fabs(pivot)) > least);
}

static PetscErrorCode Factor(GPUCSRDevice dev, GPUCSRFactorCSR *F, GPUCSRBool symmetric, const int *order, GPUCSRPivotRule rule, double tolerance, GPUCSRPivots *pivots, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s));
  pivots->row         = F->n;
  pivots->unsymmetric = 0;
  for (int p = 0; p < F->n; p++) {
    const int r   = order[p];
    double    sum = 0;

    for (int e = F->i[r]; e < F->diag[r]; e++) {
      const int k = F->j[e];
      double    m = F->a[e];

      if (symmetric) { /* from the row above only */
        const int at = GPUCSRColumnFind(F->j, F->diag[k] + 1, F->i[k + 1], r);

        if (at < 0) pivots->unsymmetric = 1;
        m = at < 0 ? 0 : F->a[at];
      }
      m *= F->dinv[k];
      F->a[e] = m;
      if (m == 0.0) continue;
      for (int q = F->diag[k] + 1; q < F->i[k + 1]; q++) {
        const int at = GPUCSRColumnFind(F->j, symmetric ? F->diag[r] : e + 1, F->i[r + 1], F->j[q]);

        if (at >= 0) F->a[at] -= m * F->a[q];
      }
    }
    for (int e = symmetric ? F->diag[r] + 1 : F->i[r]; e < F->i[r + 1]; e++)
      if (e != F->diag[r]) sum += fabs(F->a[e]);
    if (!Good(F->a[F->diag[r]], sum, rule, tolerance)) pivots->row = PetscMin(pivots->row, r);
    F->dinv[r] = 1.0 / F->a[F->diag[r]];
  }
  PetscCall(GPUCSRLaunched(dev, "a factorization"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One pass over all rows */
static void Pass(const GPUCSRSweep *w, const double *b, double *x, double *out)
{
  const GPUCSRTriangle *T = w->T;

  for (int k = 0; k < T->nslices; k++) {
    const GPUCSRSlice *S   = &T->slice[k];
    const int          log = GPUCSRSliceLanes(S->shape);
    double             sum[GPUCSR_SLICE];

    /* the sums of the rows of slice k: each lane's share, then the sum over lanes, in the order of a warp */
    for (int lane = 0; lane < GPUCSR_SLICE; lane++) {
      const int64_t base = (int64_t)GPUCSR_SLICE * S->offset + lane;

      sum[lane] = 0;
      for (int e = 0; e < GPUCSRSliceWidth(S->shape); e++) {
        const int c = T->col[base + (int64_t)GPUCSR_SLICE * e];

        if (c != -1) sum[lane] += T->val[base + (int64_t)GPUCSR_SLICE * e] * x[c >= 0 ? c : S->first / T->rows * T->rows + GPUCSR_NEAR_OF(c)];
      }
    }
    for (int o = (1 << log) / 2; o; o /= 2)
      for (int lane = 0; lane + o < GPUCSR_SLICE; lane++) sum[lane] += sum[lane + o];
    for (int q = 0; q < GPUCSRSliceRows(S->shape); q++) {
      const int p = S->first + q;

      x[p] = GPUCSRScaled(w->scaling, b[w->from[p]], sum[q << log], T->scale[p]);
      if (w->to) out[w->to[p]] = x[p];
    }
  }
}

static PetscErrorCode Solve(GPUCSRDevice dev, GPUCSRSolveMethod method, const GPUCSRSweep sweep[2], const double *b, double *x, volatile int *trouble, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int k = 0; k < 2; k++) {
    GPUCSRTriangle *T = sweep[k].T;

    Pass(&sweep[k], k ? sweep[k - 1].T->x[sweep[k - 1].T->turn] : b, T->x[T->turn], x);
  }
  PetscCall(GPUCSRLaunched(dev, "a triangular solve"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reset(GPUCSRTriangle *T, int turn, GPUCSRStream s)
{
  return PETSC_SUCCESS;
}

const GPUCSRTriangleOps GPUCSRTriangleOps_Host = {GPUCSR_TRIANGLE_STEPS(GPUCSR_EACH_ENTRY) Levels, Order, Runs, Factor, Solve, Reset};
