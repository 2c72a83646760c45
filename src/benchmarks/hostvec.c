static char help[] = "Products of MATGPUCSR with the host vectors of an ordinary PETSc program, against the bus and the kernel.\n\n";

/*
    hostvec [-n 100,126,159,200] [-threads 1,4,8] [-precisions double,single] [-o FILE]

  For the 7-point matrix of each cube, this times MatMult() with VECSEQ vectors in the steady state. The vectors are page-locked in
  place (-mat_gpucsr_pin_vectors true), or several numbers of host threads (-mat_gpucsr_threads) fill staging buffers. The program
  changes the settings itself, so one run compares all settings with the same bandwidths. The allowed time is 1.5 times the larger
  of two times: the kernel's time, and the time of 8 (m + n) bytes at the pinned bandwidth, up and down added. Other options:
  -repeats k (15), -budget s (the program starts no cube later), -backend host (to try the program), -id TEXT.

  -o FILE gets one JSON object a line, microseconds and 1e9/s: run as spmv writes it, and
    bandwidth  pinned_up_gbs, pinned_down_gbs, duplex_gbs (both ways at once, added), pageable_up_gbs, pageable_down_gbs
    hostvec    rows, nnz, precision, pin (true|false), threads; first_us (with the set-up of the matrix), second_us (with the
               page-locking), product_us (median), kernel_us, transfer_us, allowed_us, ratio = product_us / allowed_us
*/
#include <petscgpucsr.h>
#include "bench.h"
#include "problems/synthetic.h"

#define MAX_REPEATS 101
#define COPY_BYTES  ((size_t)256 << 20)

typedef struct {
  GPUCSRDevice dev;
  FILE        *out;
  int          repeats;
  double       up, down; /* pinned, bytes/s */
} Bench;

typedef struct {
  GPUCSRPlan    plan;
  GPUCSRProduct product;
} Kernel;

static PetscErrorCode Launch(void *ctx)
{
  Kernel *k = (Kernel *)ctx;

  return GPUCSRPlanProduct(&k->plan, &k->product, k->plan.A.dev->stream);
}

/* Seconds of the kernel alone, vectors on the device */
static PetscErrorCode KernelTime(const Bench *b, const GPUCSRSource *s, GPUCSRPrecision precision, double *seconds)
{
  static const GPUCSRRequest anything = {.format = "auto", .kernel = "auto"};
  const size_t               bytes    = GPUCSRTypeSize(GPUCSRVectorType(precision)) * (size_t)PetscMax(s->m, s->n);
  BenchClock                 clock;
  Kernel                     k = {0};
  void                      *x = NULL, *z = NULL;
  double                    *zero, t[9];
  int                        batch = 1;

  PetscFunctionBeginUser;
  PetscCall(GPUCSRPlanBuild(b->dev, s, precision, &anything, &k.plan));
  PetscCall(GPUCSRMalloc(b->dev, bytes, "x", &x));
  PetscCall(GPUCSRMalloc(b->dev, bytes, "z", &z));
  PetscCall(PetscCalloc1(PetscMax(s->m, s->n), &zero));
  PetscCall(GPUCSRUpload(b->dev, x, GPUCSRVectorType(precision), zero, GPUCSR_DOUBLE, (size_t)s->n, PETSC_FALSE, b->dev->stream, NULL));
  k.product = (GPUCSRProduct){.alpha = 1, .x = x, .z = z, .last = s->m};
  PetscCall(BenchClockCreate(b->dev, &clock));
  PetscCall(BenchCalibrate(&clock, Launch, &k, &batch, seconds));
  for (int q = 0; q < 9; q++) PetscCall(BenchBatch(&clock, Launch, &k, batch, &t[q]));
  *seconds = BenchMedian(t, 9);
  PetscCall(BenchClockDestroy(&clock));
  PetscCall(PetscFree(zero));
  PetscCall(GPUCSRFree(b->dev, bytes, &x));
  PetscCall(GPUCSRFree(b->dev, bytes, &z));
  PetscCall(GPUCSRPlanDestroy(&k.plan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ways: 1 up, 2 down, 3 both at once; bytes/s, both ways added */
static PetscErrorCode Pinned(GPUCSRDevice dev, int ways, double *rate)
{
  const GPUCSRBackendOps *ops  = dev->ops;
  void                   *h[2] = {NULL, NULL}, *d[2] = {NULL, NULL};
  double                  t[7];
  PetscLogDouble          t0, t1;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(ops->hostmalloc(dev->id, COPY_BYTES, &h[k]));
    memset(h[k], 1, COPY_BYTES);
    PetscCall(GPUCSRMalloc(dev, COPY_BYTES, "the pinned copy", &d[k]));
  }
  for (int k = 0; k < 7; k++) {
    PetscCall(GPUCSRDeviceSynchronize(dev));
    PetscCall(PetscTime(&t0));
    if (ways & 1) PetscCall(ops->copy(dev->id, d[0], h[0], COPY_BYTES, GPUCSR_TO_DEVICE, dev->up));
    if (ways & 2) PetscCall(ops->copy(dev->id, h[1], d[1], COPY_BYTES, GPUCSR_TO_HOST, dev->down));
    PetscCall(GPUCSRDeviceSynchronize(dev));
    PetscCall(PetscTime(&t1));
    t[k] = t1 - t0;
  }
  *rate = (ways == 3 ? 2 : 1) * (double)COPY_BYTES / BenchMedian(t + 1, 6);
  for (int k = 0; k < 2; k++) {
    PetscCall(GPUCSRFree(dev, COPY_BYTES, &d[k]));
    PetscCall(ops->hostfree(dev->id, h[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Bandwidths(Bench *b)
{
  double duplex, up, down;

  PetscFunctionBeginUser;
  PetscCall(Pinned(b->dev, 1, &b->up));
  PetscCall(Pinned(b->dev, 2, &b->down));
  PetscCall(Pinned(b->dev, 3, &duplex));
  PetscCall(BenchPageable(b->dev, COPY_BYTES, cudaMemcpyHostToDevice, 5, &up));
  PetscCall(BenchPageable(b->dev, COPY_BYTES, cudaMemcpyDeviceToHost, 5, &down));
  up   = (double)COPY_BYTES / up;
  down = (double)COPY_BYTES / down;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "pinned %.1f GB/s up, %.1f down, %.1f both at once; pageable %.1f up, %.1f down\n\n", 1e-9 * b->up, 1e-9 * b->down, 1e-9 * duplex, 1e-9 * up, 1e-9 * down));
  JsonBegin(b->out, "bandwidth");
  JsonNumber(b->out, "pinned_up_gbs", 1e-9 * b->up);
  JsonNumber(b->out, "pinned_down_gbs", 1e-9 * b->down);
  JsonNumber(b->out, "duplex_gbs", 1e-9 * duplex);
  JsonNumber(b->out, "pageable_up_gbs", 1e-9 * up);
  JsonNumber(b->out, "pageable_down_gbs", 1e-9 * down);
  JsonEnd(b->out);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatMult() with vectors of their own; t: the first, the second, then the steady state */
static PetscErrorCode Products(const Bench *b, Mat A, double *first, double *second, double *steady)
{
  Vec            x, y;
  double         t[MAX_REPEATS];
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSetType(x, VECSEQ)); /* also where PETSc has device vectors */
  PetscCall(VecSetType(y, VECSEQ));
  PetscCall(VecSet(x, 1));
  PetscCall(VecSet(y, 0));
  for (int k = -4; k < b->repeats; k++) {
    PetscCall(PetscTime(&t0));
    PetscCall(MatMult(A, x, y));
    PetscCall(PetscTime(&t1));
    if (k == -4) *first = t1 - t0;
    else if (k == -3) *second = t1 - t0;
    else if (k >= 0) t[k] = t1 - t0;
  }
  *steady = BenchMedian(t, b->repeats);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(const Bench *b, int edge, GPUCSRPrecision precision, const PetscInt threads[], PetscInt nthreads)
{
  const Synthetic s   = {.name = "lap7", .kind = STENCIL7, .m = edge, .n = 1, .mean = 7};
  const int       all = b->dev->threads;
  Mat             A;
  int             m, n;
  int32_t        *i;
  PetscInt       *j;
  PetscScalar    *a;
  GPUCSRSource    src;
  double          kernel = NAN, transfer, allowed;

  PetscFunctionBeginUser;
  PetscCall(SyntheticCreate(&s, 1, &m, &n, &i, &j, &a));
  src = (GPUCSRSource){m, n, i[m], i, j, a, NULL};
  PetscCall(KernelTime(b, &src, precision, &kernel));
  transfer = 8.0 * n / b->up + 8.0 * m / b->down;
  allowed  = 1.5 * PetscMax(kernel, transfer);
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, n, (PetscInt *)i, j, a, &A));
  PetscCall(MatConvert(A, MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatGPUCSRSetPrecision(A, precision == GPUCSR_PRECISION_DOUBLE ? MAT_GPUCSR_DOUBLE : MAT_GPUCSR_SINGLE));
  if (b->dev->ops->separate) PetscCall(MatGPUCSRSetBackend(A, MAT_GPUCSR_BACKEND_CUDA));
  for (int pin = 1; pin >= 0; pin--)
    for (PetscInt k = 0; k < nthreads; k++) {
      double first = NAN, second = NAN, steady = NAN;

      GPUCSRSettingsGlobal.pinvectors = (PetscBool)pin;
      b->dev->threads                 = (int)threads[k];
      PetscCall(Products(b, A, &first, &second, &steady));
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%9d rows  %-6s  pinned %-5s  %2" PetscInt_FMT " threads  %9.1f us  kernel %8.1f  transfer %8.1f  of allowed %5.2f%s\n", m, precision ? "single" : "double", pin ? "true" : "false", threads[k], 1e6 * steady, 1e6 * kernel, 1e6 * transfer, steady / allowed, steady <= allowed ? "" : "  ABOVE"));
      JsonBegin(b->out, "hostvec");
      JsonNumber(b->out, "rows", m);
      JsonNumber(b->out, "nnz", i[m]);
      JsonText(b->out, "precision", precision ? "single" : "double");
      JsonText(b->out, "pin", pin ? "true" : "false");
      JsonNumber(b->out, "threads", (double)threads[k]);
      JsonNumber(b->out, "first_us", 1e6 * first);
      JsonNumber(b->out, "second_us", 1e6 * second);
      JsonNumber(b->out, "product_us", 1e6 * steady);
      JsonNumber(b->out, "kernel_us", 1e6 * kernel);
      JsonNumber(b->out, "transfer_us", 1e6 * transfer);
      JsonNumber(b->out, "allowed_us", 1e6 * allowed);
      JsonNumber(b->out, "ratio", steady / allowed);
      JsonEnd(b->out);
      if (pin && precision == GPUCSR_PRECISION_DOUBLE) break; /* page-locked vectors cross the bus as they are: no thread touches them */
    }
  b->dev->threads = all;
  PetscCall(MatDestroy(&A));
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Bench          b         = {0};
  PetscInt       edges[16] = {100, 126, 159, 200}, nedges = 16, threads[16] = {1, 2, 4, 8, 16}, nthreads = 16, repeats = 15, given = 2;
  char          *words[2];
  PetscBool      set, single, precisions[2] = {PETSC_TRUE, PETSC_TRUE};
  PetscReal      budget = 0;
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscTime(&t0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-n", edges, &nedges, &set));
  if (!set) nedges = 4;
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-threads", threads, &nthreads, &set));
  if (!set)
    for (nthreads = 1; nthreads < 5 && threads[nthreads] <= omp_get_num_procs();) nthreads++;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-budget", &budget, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-precisions", words, &given, &set));
  if (set) precisions[0] = precisions[1] = PETSC_FALSE;
  for (PetscInt k = 0; set && k < given; k++) {
    PetscCall(PetscStrcmp(words[k], "single", &single));
    precisions[single] = PETSC_TRUE;
    PetscCall(PetscFree(words[k]));
  }
  PetscCheck(repeats >= 1 && repeats <= MAX_REPEATS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-repeats must be from 1 to %d", MAX_REPEATS);
  b.repeats = (int)repeats;
  PetscCall(BenchDevice(&b.dev));
  PetscCall(BenchOutput("hostvec", b.dev, &b.out));
  PetscCall(Bandwidths(&b));
  for (PetscInt k = 0; k < nedges; k++)
    for (int q = 0; q < 2; q++) {
      PetscCall(PetscTime(&t1));
      if (!precisions[q]) continue;
      if (budget > 0 && t1 - t0 > budget) PetscCall(PetscPrintf(PETSC_COMM_SELF, "edge %" PetscInt_FMT " LEFT OUT, the budget of %g s was spent\n", edges[k], (double)budget));
      else PetscCall(Measure(&b, (int)edges[k], (GPUCSRPrecision)q, threads, nthreads));
    }
  if (b.out) fclose(b.out);
  PetscCall(PetscFinalize());
  return 0;
}
