#pragma once

/*
  What the benchmarks linked with the library share: timing between two events of the device, the pageable copy as
  yardstick, medians, and lines of JSON.
*/
#include "../mat/impls/gpucsr/blackbox/plan/plan.h"
#include <cuda_runtime_api.h>
#include <math.h>
#include <petsctime.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_BATCH 100e-6 /* seconds that a batch of launches lasts at least: the events resolve half a microsecond, and better */

static int BenchLess(const void *a, const void *b)
{
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* Sorts t */
static inline double BenchMedian(double *t, int n)
{
  if (!n) return NAN;
  qsort(t, (size_t)n, sizeof(*t), BenchLess);
  return n % 2 ? t[n / 2] : 0.5 * (t[n / 2 - 1] + t[n / 2]);
}

typedef struct {
  GPUCSRDevice dev;
  GPUCSREvent  e[2]; /* before and after the timed work */
} BenchClock;

static inline PetscErrorCode BenchClockCreate(GPUCSRDevice dev, BenchClock *c)
{
  PetscFunctionBeginUser;
  c->dev = dev;
  PetscCall(dev->ops->eventcreate(dev->id, PETSC_TRUE, &c->e[0]));
  PetscCall(dev->ops->eventcreate(dev->id, PETSC_TRUE, &c->e[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode BenchClockDestroy(BenchClock *c)
{
  PetscFunctionBeginUser;
  PetscCall(c->dev->ops->eventdestroy(c->dev->id, c->e[0]));
  PetscCall(c->dev->ops->eventdestroy(c->dev->id, c->e[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef PetscErrorCode (*BenchLaunch)(void *ctx);

/* A call of device code of a benchmark, which returns NULL or what went wrong */
#define BenchTry(call) \
  do { \
    const char *failed_ = (call); \
    PetscCheck(!failed_, PETSC_COMM_SELF, PETSC_ERR_GPU, "%s: %s", #call, failed_); \
  } while (0)

typedef struct {
  GPUCSRPlan    plan;
  GPUCSRProduct product;
} BenchPlanned;

static inline PetscErrorCode BenchLaunchPlanned(void *ctx)
{
  BenchPlanned *p = (BenchPlanned *)ctx;

  return GPUCSRPlanProduct(&p->plan, &p->product, p->plan.A.dev->stream);
}

#define BENCH_QUEUED 200 /* launches that a device queues without running them: of three kernels each */

/* Seconds a launch, of n back to back */
static inline PetscErrorCode BenchBatch(const BenchClock *c, BenchLaunch launch, void *ctx, int n, double *seconds)
{
  PetscFunctionBeginUser;
  PetscCall(GPUCSRDeviceClock(c->dev, c->e, launch, ctx, n, seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline int BenchBatchSize(double seconds)
{
  return (int)PetscMin(BENCH_QUEUED, PetscMax(1, ceil(BENCH_BATCH / PetscMax(seconds, 1e-7))));
}

/* How many launches a batch needs, and a first time; also the warm-up */
static inline PetscErrorCode BenchCalibrate(const BenchClock *c, BenchLaunch launch, void *ctx, int *n, double *seconds)
{
  PetscFunctionBeginUser;
  PetscCall((*launch)(ctx));
  PetscCall(BenchBatch(c, launch, ctx, 1, seconds)); /* the time has the events' resolution: a second batch improves it */
  PetscCall(BenchBatch(c, launch, ctx, BenchBatchSize(*seconds), seconds));
  *n = BenchBatchSize(*seconds);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Median seconds of one copy of pageable host memory to the device, or back (kind) */
static inline PetscErrorCode BenchPageable(GPUCSRDevice dev, size_t bytes, enum cudaMemcpyKind kind, int repeats, double *seconds)
{
  void          *d = NULL, *h;
  double         t[16];
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  h = malloc(bytes + 1);
  PetscCheck(h, PETSC_COMM_SELF, PETSC_ERR_MEM, "%zu bytes for the pageable copy", bytes);
  memset(h, 1, bytes); /* so that its pages are there */
  PetscCall(GPUCSRMalloc(dev, bytes, "the pageable copy", &d));
  PetscCall(GPUCSRDeviceSynchronize(dev));
  repeats = PetscMin(repeats, 15);
  for (int k = 0; k <= repeats; k++) {
    PetscCall(PetscTime(&t0));
    if (dev->ops->separate) {
      cudaError_t err = kind == cudaMemcpyHostToDevice ? cudaMemcpy(d, h, bytes, kind) : cudaMemcpy(h, d, bytes, kind);

      if (!err) err = cudaStreamSynchronize(NULL); /* a small copy may return before its data arrive */
      PetscCheck(!err, PETSC_COMM_SELF, PETSC_ERR_GPU, "cudaMemcpy() of %zu bytes failed with %s", bytes, cudaGetErrorName(err));
    } else memcpy(d, h, bytes);
    PetscCall(PetscTime(&t1));
    t[k] = t1 - t0;
  }
  *seconds = BenchMedian(t + 1, repeats);
  PetscCall(GPUCSRFree(dev, bytes, &d));
  free(h);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device asked for by -backend auto|cuda|host */
static inline PetscErrorCode BenchDevice(GPUCSRDevice *dev)
{
  char      word[16] = "auto", why[256] = "";
  PetscBool autoword;

  PetscFunctionBeginUser;
  PetscCheck(GPUCSR_SCALAR_IS_DOUBLE && sizeof(PetscInt) == 4, PETSC_COMM_SELF, PETSC_ERR_SUP, "The benchmarks need a PETSc of real double scalars and 32-bit indices");
  PetscCall(GPUCSRSysInitialize());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", word, sizeof(word), NULL));
  PetscCall(PetscStrcmp(word, "auto", &autoword));
  PetscCall(GPUCSRDeviceOpen(autoword ? "cuda" : word, dev, why, sizeof(why)));
  if (!*dev && autoword) PetscCall(GPUCSRDeviceOpen("host", dev, why, sizeof(why)));
  PetscCheck(*dev, PETSC_COMM_SELF, PETSC_ERR_SUP, "-backend %s: %s", word, why);
  PetscCall((*dev)->ops->activate((*dev)->id));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- one JSON object a line; f may be NULL: nothing is written ---- */

static inline void JsonText(FILE *f, const char *key, const char *value)
{
  if (!f) return;
  fprintf(f, ", \"%s\": \"", key);
  for (; *value; value++)
    if (*value == '"' || *value == '\\') fprintf(f, "\\%c", *value);
    else if ((unsigned char)*value >= ' ') fputc(*value, f);
  fputc('"', f);
}

static inline void JsonNumber(FILE *f, const char *key, double value)
{
  if (!f) return;
  if (isfinite(value)) fprintf(f, ", \"%s\": %.10g", key, value);
  else fprintf(f, ", \"%s\": null", key);
}

static inline void JsonBegin(FILE *f, const char *record)
{
  if (f) fprintf(f, "{\"record\": \"%s\"", record);
}

static inline void JsonEnd(FILE *f)
{
  if (!f) return;
  fprintf(f, "}\n");
  fflush(f);
}

#if !defined(GPUCSR_GIT)
  #define GPUCSR_GIT "unknown"
#endif

/* -o FILE (added to), and the line that says what ran where. *f is NULL without -o. */
static inline PetscErrorCode BenchOutput(const char program[], GPUCSRDevice dev, FILE **f)
{
  char   name[PETSC_MAX_PATH_LEN] = "", id[64] = GPUCSR_GIT, version[128], date[64];
  int    runtime = 0;
  double copy;

  PetscFunctionBeginUser;
  *f = NULL;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", name, sizeof(name), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-id", id, sizeof(id), NULL));
  if (name[0]) {
    *f = fopen(name, "a");
    PetscCheck(*f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-o %s: cannot be written", name);
  }
  PetscCall(PetscGetVersion(version, sizeof(version)));
  PetscCall(PetscGetDate(date, sizeof(date)));
  (void)cudaRuntimeGetVersion(&runtime);
  PetscCall(GPUCSRDeviceBandwidth(dev, &copy));
  JsonBegin(*f, "run");
  JsonText(*f, "program", program);
  JsonText(*f, "id", id);
  JsonText(*f, "date", date);
  JsonText(*f, "petsc", version);
  JsonNumber(*f, "cuda", runtime);
  JsonText(*f, "backend", dev->ops->name);
  JsonText(*f, "device", dev->props.name);
  JsonNumber(*f, "processors", dev->props.processors);
  JsonNumber(*f, "threads", dev->threads);
  JsonNumber(*f, "copy_gbs", 1e-9 * copy);
  JsonEnd(*f);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s on %s, device copy %.0f GB/s\n", program, dev->props.name, 1e-9 * copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}
