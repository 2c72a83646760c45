/*
  Triangular solves and ILU(0) on a device, against the host's loops (right?) and cuSPARSE (faster?): set-up by part, factorization, one application (L, then U).

    build/bench/trisolve [-cases lognormal7_128,lognormal27_96,lap7_64,FILE.petsc,...] [-repeats 20] [-small] [-tune]

  lognormal7_N and lognormal27_N: N points an edge of a cube, coefficients of lognormal contrast. -small: no peer, few repeats, for the sanitizer. -tune: by several numbers
  of ranges. A line a case and kernel.
*/
static char help[] = "Triangular solves and ILU(0) against the host and cuSPARSE.\n";

#include "../mat/impls/gpucsr/blackbox/triangles/triangle.h"
#include "bench.h"
#include "problems/files.h"
#include "problems/spd.h"
#include "problems/synthetic.h"
#define DISABLE_CUSPARSE_DEPRECATED /* the peer uses csrilu02 */
#include <cusparse.h>
#include <petscmat.h>

typedef struct {
  int       n;
  int32_t  *i;
  PetscInt *j;
  double   *a;
  Mat       A; /* where it was loaded */
} Matrix;

typedef struct {
  GPUCSRDevice      dev;
  GPUCSRFactorCSR   F;
  GPUCSRTriangle    T[2];
  int              *mid;
  double           *b, *x;
  void             *trouble;
  GPUCSRSolveMethod method;
  int               ranges;
} Solver;

static PetscErrorCode Get(const char name[], Matrix *M)
{
  SPD             spd = {LOGNORMAL7, 0, 0, 0, NULL};
  Synthetic       s   = {name, STENCIL7, 0, 1, 0, 0, 0, 0, 0, 0};
  const PetscInt *i, *j;
  PetscInt        n;
  PetscScalar    *a;
  PetscBool       file, done;
  int             columns;

  PetscFunctionBeginUser;
  M->A = NULL;
  PetscCall(PetscStrendswith(name, ".petsc", &file));
  if (file) {
    PetscCall(BenchLoad(name, &M->A));
    PetscCall(MatGetRowIJ(M->A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
    PetscCall(MatSeqAIJGetArray(M->A, &a));
    M->n = (int)n;
    M->i = (int32_t *)i;
    M->j = (PetscInt *)j;
    M->a = a;
  } else if (sscanf(name, "lognormal7_%d", &spd.m) == 1 || sscanf(name, "lognormal27_%d", &spd.m) == 1) {
    spd.kind = (SPDKind)(name[9] == '7' ? 0 : 1);
    PetscCall(SPDCreate(&spd, &M->n, &M->i, &M->j, &M->a));
  } else {
    PetscCheck(sscanf(name, "lap7_%d", &s.m) == 1, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "-cases %s: must be lognormal7_N, lognormal27_N, lap7_N or a file .petsc", name);
    PetscCall(SyntheticCreate(&s, 1, &M->n, &columns, &M->i, &M->j, &M->a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Lap(GPUCSRDevice dev, PetscLogDouble *last, double *part)
{
  PetscLogDouble now;

  PetscFunctionBeginUser;
  PetscCall(GPUCSRDeviceSynchronize(dev));
  PetscCall(PetscTime(&now));
  *part = now - *last;
  *last = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

enum {
  PART_PATTERN,
  PART_LEVELS,
  PART_VALUES,
  PART_FACTOR,
  PART_TRIANGLES,
  PART_REFILL,
  PARTS
};
static const char *const parts[] = {"pattern", "levels", "values", "factor", "triangles", "new values: fill"};

static PetscErrorCode SetUp(GPUCSRDevice dev, const Matrix *M, GPUCSRSolveMethod method, int ranges, Solver *S, double part[])
{
  const GPUCSRTriangleOps *ops = GPUCSRTriangleOpsGet(dev);
  const size_t             n   = (size_t)M->n;
  GPUCSRPivots             pivots;
  PetscLogDouble           last;
  int                      bad;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(S, sizeof(*S)));
  S->dev    = dev;
  S->method = method;
  S->ranges = ranges;
  PetscCall(GPUCSRDeviceSynchronize(dev));
  PetscCall(PetscTime(&last));
  PetscCall(GPUCSRFactorCSRCreate(dev, M->n, M->i[M->n], &S->F));
  for (int r = 0; r < M->n; r++) S->F.longest = PetscMax(S->F.longest, M->i[r + 1] - M->i[r]);
  PetscCall(GPUCSRUpload(dev, S->F.i, GPUCSR_INT32, M->i, GPUCSR_INT32, n + 1, PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRUpload(dev, S->F.j, GPUCSR_INT32, M->j, GPUCSR_PETSCINT, (size_t)S->F.nnz, PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRFactorCSRInspect(dev, &S->F, &bad));
  PetscCheck(!bad, PETSC_COMM_SELF, PETSC_ERR_SUP, "The rows do not ascend, or the diagonal is not whole");
  PetscCall(Lap(dev, &last, &part[PART_PATTERN]));
  PetscCall(GPUCSRTriangleLevels(dev, &S->F, PETSC_FALSE, &S->T[0], dev->stream));
  PetscCall(GPUCSRTriangleOrder(dev, &S->F, M->n, &S->T[0], dev->stream));
  PetscCall(Lap(dev, &last, &part[PART_LEVELS]));
  PetscCall(GPUCSRUpload(dev, S->F.a, GPUCSR_DOUBLE, M->a, GPUCSR_DOUBLE, (size_t)S->F.nnz, PETSC_FALSE, dev->stream, NULL));
  PetscCall(Lap(dev, &last, &part[PART_VALUES]));
  PetscCall((*ops->factor)(dev, &S->F, PETSC_FALSE, S->T[0].order, GPUCSR_PIVOT_ABSOLUTE, 1e-14, &pivots, dev->stream));
  PetscCheck(pivots.row == M->n, PETSC_COMM_SELF, PETSC_ERR_SUP, "Row %d has no good pivot", pivots.row);
  PetscCall(Lap(dev, &last, &part[PART_FACTOR]));
  PetscCall(GPUCSRTriangleLevels(dev, &S->F, PETSC_TRUE, &S->T[1], dev->stream));
  for (int k = 0; k < 2; k++) {
    const int nranges = S->method != GPUCSR_SOLVE_RANGES ? 1 : S->ranges ? S->ranges : GPUCSRTriangleRanges(&S->T[k], dev);

    S->T[k].near = (PetscBool)(S->method == GPUCSR_SOLVE_RANGES);
    PetscCall(GPUCSRTriangleOrder(dev, &S->F, GPUCSRRangeRows(M->n, nranges), &S->T[k], dev->stream));
    PetscCall(GPUCSRTriangleSlices(dev, &S->F, &S->T[k], dev->stream));
  }
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * n, "an ordering", (void **)&S->mid));
  PetscCall((*ops->compose)(dev, M->n, S->T[1].order, S->T[0].place, S->mid, dev->stream));
  PetscCall(Lap(dev, &last, &part[PART_TRIANGLES]));
  for (int k = 0; k < 2; k++) PetscCall((*ops->fill)(dev, S->T[k].nslices, S->F, S->T[k], PETSC_FALSE, dev->stream));
  PetscCall(Lap(dev, &last, &part[PART_REFILL]));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * n, "a vector", (void **)&S->b));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * n, "a vector", (void **)&S->x));
  PetscCall(dev->ops->hostmalloc(dev->id, sizeof(int), &S->trouble));
  *(int *)S->trouble = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TearDown(Solver *S)
{
  const size_t n = (size_t)S->F.n;

  PetscFunctionBeginUser;
  PetscCall(GPUCSRFree(S->dev, sizeof(double) * n, (void **)&S->b));
  PetscCall(GPUCSRFree(S->dev, sizeof(double) * n, (void **)&S->x));
  PetscCall(GPUCSRFree(S->dev, sizeof(int) * n, (void **)&S->mid));
  PetscCall(S->dev->ops->hostfree(S->dev->id, S->trouble));
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRTriangleDestroy(S->dev, &S->T[k]));
  PetscCall(GPUCSRFactorCSRDestroy(S->dev, &S->F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(void *ctx)
{
  Solver                  *S   = (Solver *)ctx;
  const GPUCSRTriangleOps *ops = GPUCSRTriangleOpsGet(S->dev);
  const GPUCSRSweep        w[] = {
           {&S->T[0], GPUCSR_UNIT,      S->T[0].order, NULL         },
           {&S->T[1], GPUCSR_SCALE_ROW, S->mid,        S->T[1].order}
  };

  PetscFunctionBeginUser;
  PetscCall((*ops->solve)(S->dev, S->method, w, S->b, S->x, (volatile int *)S->trouble, S->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static double Distance(const double *x, const double *y, size_t n)
{
  double d = 0, s = 0;

  for (size_t k = 0; k < n; k++) {
    d += (x[k] - y[k]) * (x[k] - y[k]);
    s += y[k] * y[k];
  }
  return sqrt(d / PetscMax(s, 1e-300));
}

/* Median of repeated solves, with the same bits each time, equal to the reference up to rounding */
static PetscErrorCode Time(Solver *S, const char name[], const char what[], const double *reference, int repeats)
{
  const size_t n     = (size_t)S->F.n;
  double       t[64] = {0}, *x[2], seconds;
  int          batch = 1, different = 0;
  BenchClock   c;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++)
    for (int turn = 0; turn < 2; turn++) PetscCall((*GPUCSRTriangleOpsGet(S->dev)->reset)(&S->T[k], turn, S->dev->stream));
  PetscCall(PetscMalloc2(n, &x[0], n, &x[1]));
  for (int k = 0; k < 3; k++) {
    PetscCall(S->dev->ops->zero(S->dev->id, S->x, sizeof(double) * n, S->dev->stream));
    PetscCall(Solve(S));
    PetscCall(GPUCSRDownload(S->dev, x[k > 0], GPUCSR_DOUBLE, S->x, GPUCSR_DOUBLE, n, PETSC_FALSE, S->dev->stream));
    if (k) different += memcmp(x[0], x[1], sizeof(double) * n) != 0;
  }
  PetscCall(BenchClockCreate(S->dev, &c));
  PetscCall(BenchCalibrate(&c, Solve, S, &batch, &seconds));
  batch = PetscMin(batch, 20);
  for (int k = 0; k < repeats; k++) PetscCall(BenchBatch(&c, Solve, S, batch, &t[k]));
  PetscCall(BenchClockDestroy(&c));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-16s %-24s %9.1f us   off by %.1e%s%s\n", name, what, 1e6 * BenchMedian(t, repeats), reference ? Distance(x[0], reference, n) : 0.0, different ? "   DIFFERENT BITS" : "", *(volatile int *)S->trouble ? "   TROUBLE" : ""));
  PetscCall(PetscFree2(x[0], x[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define CUSPARSE(call) PetscCheck((call) == CUSPARSE_STATUS_SUCCESS, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s failed", #call)
#define CUDA(call)     PetscCheck((call) == cudaSuccess, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s failed", #call)

typedef struct {
  cusparseHandle_t     handle;
  cusparseSpMatDescr_t m[2];
  cusparseDnVecDescr_t v[3];
  cusparseSpSVDescr_t  d[2];
} Peer;

static PetscErrorCode PeerSolve(void *ctx)
{
  Peer        *p   = (Peer *)ctx;
  const double one = 1;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) CUSPARSE(cusparseSpSV_solve(p->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, p->m[k], p->v[k], p->v[k + 1], CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, p->d[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* cuSPARSE: csrilu02, then SpSV of both triangles */
static PetscErrorCode PeerTime(Solver *S, const Matrix *M, const char name[], const double *reference, int repeats)
{
  const int          n = M->n, nnz = (int)S->F.nnz;
  const double       one = 1;
  Peer               p;
  double            *a, *y, t[64], seconds, *x, analysis = 0, factor = 0;
  void              *work, *buffer[2];
  size_t             bytes;
  int                size = 0, batch = 1;
  csrilu02Info_t     info;
  cusparseMatDescr_t d;
  PetscLogDouble     last;
  BenchClock         c;

  PetscFunctionBeginUser;
  CUDA(cudaMalloc((void **)&a, sizeof(double) * (size_t)nnz));
  CUDA(cudaMalloc((void **)&y, sizeof(double) * (size_t)n));
  CUDA(cudaMemcpy(a, M->a, sizeof(double) * (size_t)nnz, cudaMemcpyHostToDevice));
  CUSPARSE(cusparseCreate(&p.handle));
  CUSPARSE(cusparseSetStream(p.handle, (cudaStream_t)S->dev->stream));
  CUSPARSE(cusparseCreateMatDescr(&d));
  CUSPARSE(cusparseCreateCsrilu02Info(&info));
  CUSPARSE(cusparseDcsrilu02_bufferSize(p.handle, n, nnz, d, a, S->F.i, S->F.j, info, &size));
  CUDA(cudaMalloc(&work, (size_t)size));
  PetscCall(GPUCSRDeviceSynchronize(S->dev));
  PetscCall(PetscTime(&last));
  CUSPARSE(cusparseDcsrilu02_analysis(p.handle, n, nnz, d, a, S->F.i, S->F.j, info, CUSPARSE_SOLVE_POLICY_USE_LEVEL, work));
  PetscCall(Lap(S->dev, &last, &analysis));
  CUSPARSE(cusparseDcsrilu02(p.handle, n, nnz, d, a, S->F.i, S->F.j, info, CUSPARSE_SOLVE_POLICY_USE_LEVEL, work));
  PetscCall(Lap(S->dev, &last, &factor));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-16s cusparse csrilu02: analysis %.2f ms, numeric %.2f ms", name, 1e3 * analysis, 1e3 * factor));
  for (int k = 0; k < 3; k++) CUSPARSE(cusparseCreateDnVec(&p.v[k], n, k == 0 ? S->b : k == 1 ? y : S->x, CUDA_R_64F));
  for (int k = 0; k < 2; k++) {
    cusparseFillMode_t fill = k ? CUSPARSE_FILL_MODE_UPPER : CUSPARSE_FILL_MODE_LOWER;
    cusparseDiagType_t diag = k ? CUSPARSE_DIAG_TYPE_NON_UNIT : CUSPARSE_DIAG_TYPE_UNIT;

    CUSPARSE(cusparseCreateCsr(&p.m[k], n, n, nnz, S->F.i, S->F.j, a, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    CUSPARSE(cusparseSpMatSetAttribute(p.m[k], CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
    CUSPARSE(cusparseSpMatSetAttribute(p.m[k], CUSPARSE_SPMAT_DIAG_TYPE, &diag, sizeof(diag)));
    CUSPARSE(cusparseSpSV_createDescr(&p.d[k]));
    CUSPARSE(cusparseSpSV_bufferSize(p.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, p.m[k], p.v[k], p.v[k + 1], CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, p.d[k], &bytes));
    CUDA(cudaMalloc(&buffer[k], bytes));
    CUSPARSE(cusparseSpSV_analysis(p.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, p.m[k], p.v[k], p.v[k + 1], CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, p.d[k], buffer[k]));
  }
  PetscCall(Lap(S->dev, &last, &analysis));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, ", SpSV analysis %.2f ms\n", 1e3 * analysis));
  PetscCall(BenchClockCreate(S->dev, &c));
  PetscCall(BenchCalibrate(&c, PeerSolve, &p, &batch, &seconds));
  batch = PetscMin(batch, 20);
  for (int k = 0; k < repeats; k++) PetscCall(BenchBatch(&c, PeerSolve, &p, batch, &t[k]));
  PetscCall(BenchClockDestroy(&c));
  PetscCall(PetscMalloc1(n, &x));
  PetscCall(GPUCSRDownload(S->dev, x, GPUCSR_DOUBLE, S->x, GPUCSR_DOUBLE, (size_t)n, PETSC_FALSE, S->dev->stream));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-16s %-24s %9.1f us   off by %.1e\n", name, "cusparse SpSV", 1e6 * BenchMedian(t, repeats), reference ? Distance(x, reference, (size_t)n) : 0.0));
  PetscCall(PetscFree(x));
  for (int k = 0; k < 2; k++) {
    CUSPARSE(cusparseSpSV_destroyDescr(p.d[k]));
    CUSPARSE(cusparseDestroySpMat(p.m[k]));
    CUDA(cudaFree(buffer[k]));
  }
  for (int k = 0; k < 3; k++) CUSPARSE(cusparseDestroyDnVec(p.v[k]));
  CUSPARSE(cusparseDestroyCsrilu02Info(info));
  CUSPARSE(cusparseDestroyMatDescr(d));
  CUSPARSE(cusparseDestroy(p.handle));
  CUDA(cudaFree(work));
  CUDA(cudaFree(a));
  CUDA(cudaFree(y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One method, warm; its set-up is S */
static PetscErrorCode Method(GPUCSRDevice dev, const Matrix *M, const char name[], GPUCSRSolveMethod method, int ranges, const Solver *H, int repeats, Solver *S, double part[])
{
  char what[64];

  PetscFunctionBeginUser;
  PetscCall(SetUp(dev, M, method, ranges, S, part));
  PetscCall(GPUCSRUpload(dev, S->b, GPUCSR_DOUBLE, H->b, GPUCSR_DOUBLE, (size_t)M->n, PETSC_FALSE, dev->stream, NULL));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s %d,%d", GPUCSRSolveMethods[method], S->T[0].nranges, S->T[1].nranges));
  PetscCall(Time(S, name, what, H->x, repeats));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Several numbers of ranges */
static PetscErrorCode Tune(GPUCSRDevice dev, const Matrix *M, const char name[], const Solver *H)
{
  const int least = (M->n + GPUCSR_RANGE_ROWS - 1) / GPUCSR_RANGE_ROWS + 1, most = PetscMax(least, dev->props.processors);
  double    part[PARTS];
  Solver    S;

  PetscFunctionBeginUser;
  for (int ranges = most; ranges >= least; ranges = ranges == least ? 0 : PetscMax(least, ranges / 2)) {
    PetscCall(Method(dev, M, name, GPUCSR_SOLVE_RANGES, ranges, H, 3, &S, part));
    PetscCall(TearDown(&S));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(GPUCSRDevice dev, GPUCSRDevice host, const char name[], int repeats, PetscBool small, PetscBool tune)
{
  Matrix M;
  Solver S, H;
  double part[PARTS], *a;

  PetscFunctionBeginUser;
  PetscCall(Get(name, &M));
  if (strrchr(name, '/')) name = strrchr(name, '/') + 1;
  PetscCall(SetUp(host, &M, GPUCSR_SOLVE_SYNCFREE, 0, &H, part));
  for (int r = 0; r < M.n; r++) H.b[r] = 1 + (double)((uint32_t)r * 2654435761u) / 4294967296.0;
  PetscCall(Solve(&H));
  for (int k = 0; k < GPUCSR_SOLVE_METHODS; k++) {
    static const GPUCSRSolveMethod order[] = {GPUCSR_SOLVE_RANGES, GPUCSR_SOLVE_SYNCFREE};

    PetscCall(Method(dev, &M, name, order[k], order[k] == GPUCSR_SOLVE_RANGES && small ? 3 : 0, &H, repeats, &S, part));
    if (k < GPUCSR_SOLVE_METHODS - 1) PetscCall(TearDown(&S));
  }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-16s %d rows, %d nonzeros, %d and %d levels, stored %.2f of L, %.2f of U; ms:", name, M.n, M.i[M.n], S.T[0].nlevels, S.T[1].nlevels, (double)S.T[0].stored / PetscMax(1, S.T[0].nnz),
                        (double)S.T[1].stored / PetscMax(1, S.T[1].nnz)));
  for (int k = 0; k < PARTS; k++) PetscCall(PetscPrintf(PETSC_COMM_SELF, " %s %.2f%s", parts[k], 1e3 * part[k], k < PARTS - 1 ? "," : "\n"));
  PetscCall(PetscMalloc1((size_t)S.F.nnz, &a));
  PetscCall(GPUCSRDownload(dev, a, GPUCSR_DOUBLE, S.F.a, GPUCSR_DOUBLE, (size_t)S.F.nnz, PETSC_FALSE, dev->stream));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-16s factor off by %.1e\n", name, Distance(a, H.F.a, (size_t)S.F.nnz)));
  PetscCall(PetscFree(a));
  if (tune) PetscCall(Tune(dev, &M, name, &H));
  if (!small) PetscCall(PeerTime(&S, &M, name, H.x, repeats));
  PetscCall(TearDown(&S));
  PetscCall(TearDown(&H));
  if (M.A) PetscCall(MatDestroy(&M.A));
  else {
    PetscCall(PetscFree(M.i));
    PetscCall(PetscFree2(M.j, M.a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char        *cases[32], why[256];
  PetscInt     n = 32, repeats = 20;
  PetscBool    set, small, tune;
  GPUCSRDevice dev, host;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(BenchDevice(&dev));
  PetscCall(GPUCSRDeviceOpen("host", &host, why, sizeof(why)));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", cases, &n, &set));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-small", &small));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-tune", &tune));
  if (small) repeats = 1;
  if (!set) {
    static const char *const usual[] = {"lognormal7_128", "lognormal27_96", "lap7_64"};

    for (n = 0; n < 3; n++) PetscCall(PetscStrallocpy(usual[n], &cases[n]));
  }
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(Case(dev, host, cases[k], (int)PetscMin(60, repeats), small, tune));
    PetscCall(PetscFree(cases[k]));
  }
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
