/* Set-up and refresh of a matrix, in parts */
#include "spmv.h"

enum {
  BUILD,
  REFRESH,
  TBUILD,
  TREFRESH,
  PRODUCT,
  TPRODUCT,
  INSPECT,
  CHOOSE,
  UPLOAD,
  CONVERT,
  NSTEPS
};

#define MAX_REPEATS 7
#define MAX_TURNS   5

typedef struct {
  const Bench    *b;
  const Problem  *p;
  GPUCSRPrecision precision;
  GPUCSRProduct   product;
  int             repeats, turns; /* turns: of a product, and of a refresh with one, which differ by little */
  PetscBool       can;            /* the transpose takes new values */
  char            format[GPUCSR_WORD], kernel[GPUCSR_WORD];
  double          t[NSTEPS][MAX_TURNS * MAX_REPEATS], us[NSTEPS];
  double          csr, values, held, heldvalues; /* bytes, as they are sent and in PETSc's hands */
  double          copy, vcopy, hcopy, hvcopy;    /* seconds of one copy of these bytes */
  double          device, peak, transposed;      /* bytes */
} Parts;

static const GPUCSRRequest anything = {.format = "auto", .kernel = "auto"};

static PetscErrorCode Build(const Parts *s, GPUCSRPlan *P)
{
  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(P, sizeof(*P)));
  PetscCall(GPUCSRPlanBuild(s->b->dev, &s->p->src, s->precision, &anything, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The cost of a refresh: the time that it adds to the next product, because only the product waits for the refresh */
static PetscErrorCode RefreshAndProduct(GPUCSRPlan *P, const GPUCSRSource *s, const GPUCSRPlan *D, const GPUCSRProduct *p)
{
  PetscBool held;

  PetscFunctionBeginUser;
  PetscCall(GPUCSRPlanRefresh(P, s, D, &held));
  PetscCheck(held, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The same values again do not fit format %s", P->A.format->name);
  PetscCall(GPUCSRPlanProduct(P, p, P->A.dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Seconds of a call, the device waited for before and after it */
#define TIMED(seconds, call) \
  do { \
    PetscLogDouble t0_, t1_; \
\
    PetscCall(GPUCSRDeviceSynchronize(s->b->dev)); \
    PetscCall(PetscTime(&t0_)); \
    PetscCall(call); \
    PetscCall(GPUCSRDeviceSynchronize(s->b->dev)); \
    PetscCall(PetscTime(&t1_)); \
    seconds = t1_ - t0_; \
  } while (0)

/* Every step once, as time number k of repeats */
static PetscErrorCode Steps(Parts *s, int k)
{
  GPUCSRDevice  dev    = s->b->dev;
  const size_t  before = dev->allocated;
  GPUCSRProduct pr     = s->product;
  GPUCSRPlan    P = {0}, T = {0};

  PetscFunctionBeginUser;
  dev->peak = before;
  TIMED(s->t[BUILD][k], Build(s, &P));
  s->peak   = (double)(dev->peak - before);
  s->device = GPUCSRPlanBytes(&P);
  PetscCall(PetscStrncpy(s->format, P.A.format->name, sizeof(s->format)));
  PetscCall(PetscStrncpy(s->kernel, P.choice.kernel ? P.choice.kernel->name : "none", sizeof(s->kernel)));
  pr.last = P.A.m;
  for (int turn = 0; turn < s->turns; turn++) {
    TIMED(s->t[PRODUCT][k + turn * s->repeats], GPUCSRPlanProduct(&P, &pr, dev->stream));
    TIMED(s->t[REFRESH][k + turn * s->repeats], RefreshAndProduct(&P, &s->p->src, NULL, &pr));
  }
  TIMED(s->t[TBUILD][k], GPUCSRPlanBuildTranspose(dev, &s->p->src, &P, s->precision, &anything, &T));
  s->transposed = GPUCSRPlanBytes(&T);
  s->can        = GPUCSRPlanCanRefresh(&T);
  pr.last       = T.A.m;
  TIMED(s->t[TPRODUCT][k], GPUCSRPlanProduct(&T, &pr, dev->stream));
  if (s->can) TIMED(s->t[TREFRESH][k], RefreshAndProduct(&T, &s->p->src, &P, &pr));
  s->t[CHOOSE][k] = P.costs.choose; /* on the host, after the inspector was waited for */
  PetscCall(GPUCSRPlanDestroy(&T));
  PetscCall(GPUCSRPlanDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Set-up once more, with the device's work waited for after each part */
static PetscErrorCode Waited(Parts *s, int k)
{
  GPUCSRPlan P;

  PetscFunctionBeginUser;
  GPUCSRSettingsGlobal.report = PETSC_TRUE;
  PetscCall(Build(s, &P));
  GPUCSRSettingsGlobal.report = PETSC_FALSE;
  s->t[INSPECT][k]            = P.costs.inspect;
  s->t[UPLOAD][k]             = P.costs.upload;
  s->t[CONVERT][k]            = P.costs.convert;
  PetscCall(GPUCSRPlanDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Medians(Parts *s)
{
  PetscFunctionBeginUser;
  for (int k = -1; k < s->repeats; k++) { /* the first fills the memory pools; the second writes over its times */
    PetscCall(Steps(s, PetscMax(0, k)));
    PetscCall(Waited(s, PetscMax(0, k)));
  }
  for (int q = 0; q < NSTEPS; q++) s->us[q] = 1e6 * (q == TREFRESH && !s->can ? NAN : BenchMedian(s->t[q], q == PRODUCT || q == REFRESH ? s->turns * s->repeats : s->repeats));
  s->us[REFRESH] = PetscMax(0, s->us[REFRESH] - s->us[PRODUCT]);
  s->us[TREFRESH] -= s->us[TPRODUCT];
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  GPUCSRPlan    *plan;
  GPUCSRProduct *product;
} Single;

static PetscErrorCode LaunchSingle(void *ctx)
{
  const Single *one = (const Single *)ctx;

  return GPUCSRPlanProduct(one->plan, one->product, one->plan->A.dev->stream);
}

/* Seconds of the chosen kernel, where no other part of the program has timed it */
static PetscErrorCode TimeProduct(Parts *s, double *seconds)
{
  GPUCSRPlan    P;
  GPUCSRProduct pr  = s->product;
  Single        one = {&P, &pr};
  int           n;

  PetscFunctionBeginUser;
  PetscCall(Build(s, &P));
  pr.last = P.A.m;
  PetscCall(BenchCalibrate(&s->b->clock, LaunchSingle, &one, &n, seconds));
  PetscCall(GPUCSRPlanDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SayCalls(const Parts *s)
{
  GPUCSRDevice   dev = s->b->dev;
  GPUCSRProduct  pr  = s->product;
  GPUCSRPlan     P;
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s %s, %s %s, inspect %.1f choose %.1f upload %.1f convert %.1f us\n", s->p->name, precisionwords[s->precision], s->format, s->kernel, s->us[INSPECT], s->us[CHOOSE], s->us[UPLOAD], s->us[CONVERT]));
  PetscCall(SpmvCallsBegin(dev));
  PetscCall(PetscTime(&t0));
  PetscCall(Build(s, &P));
  PetscCall(PetscTime(&t1));
  PetscCall(SpmvCallsEnd(dev, "set-up", t1 - t0));
  pr.last = P.A.m;
  PetscCall(SpmvCallsBegin(dev));
  PetscCall(PetscTime(&t0));
  PetscCall(RefreshAndProduct(&P, &s->p->src, NULL, &pr));
  PetscCall(PetscTime(&t1));
  PetscCall(SpmvCallsEnd(dev, "refresh and product", t1 - t0));
  PetscCall(GPUCSRPlanDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copies(Parts *s)
{
  GPUCSRDevice dev = s->b->dev;

  PetscFunctionBeginUser;
  PetscCall(BenchPageable(dev, (size_t)s->csr, cudaMemcpyHostToDevice, s->repeats, &s->copy));
  PetscCall(BenchPageable(dev, (size_t)s->values, cudaMemcpyHostToDevice, s->repeats, &s->vcopy));
  s->hcopy  = s->copy;
  s->hvcopy = s->vcopy;
  if (s->held > s->csr) {
    PetscCall(BenchPageable(dev, (size_t)s->held, cudaMemcpyHostToDevice, s->repeats, &s->hcopy));
    PetscCall(BenchPageable(dev, (size_t)s->heldvalues, cudaMemcpyHostToDevice, s->repeats, &s->hvcopy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Report(const Parts *s, double product)
{
  const double *us = s->us;
  FILE         *o  = s->b->out;
  SetUpResult  *r;

  PetscFunctionBeginUser;
  PetscCall(SpmvSetUpResultAdd(&r));
  PetscCall(PetscStrncpy(r->name, s->p->name, sizeof(r->name)));
  r->precision = s->precision;
  r->ratio[0]  = 1e-6 * (us[UPLOAD] + us[CONVERT]) / (0.7 * s->hcopy + 30 * product);
  r->ratio[1]  = 1e-6 * us[REFRESH] / (0.7 * s->hvcopy + 2 * product);
  r->ratio[2]  = 1e-6 * us[BUILD] / (0.7 * s->copy + 30 * product);
  r->ratio[3]  = 1e-6 * us[REFRESH] / (0.7 * s->vcopy + 2 * product);
  r->memory    = s->device / s->csr;
  JsonBegin(o, "setup");
  SpmvJsonMatrix(o, s->p, s->precision);
  JsonText(o, "format", s->format);
  JsonText(o, "kernel", s->kernel);
  JsonNumber(o, "setup_us", us[BUILD]);
  JsonNumber(o, "inspect_us", us[INSPECT]);
  JsonNumber(o, "choose_us", us[CHOOSE]);
  JsonNumber(o, "upload_us", us[UPLOAD]);
  JsonNumber(o, "convert_us", us[CONVERT]);
  JsonNumber(o, "copy_us", 1e6 * s->copy);
  JsonNumber(o, "held_copy_us", 1e6 * s->hcopy);
  JsonNumber(o, "held_value_copy_us", 1e6 * s->hvcopy);
  JsonNumber(o, "held_setup_ratio", r->ratio[0]);
  JsonNumber(o, "held_refresh_ratio", r->ratio[1]);
  JsonNumber(o, "setup_ratio", r->ratio[2]);
  JsonNumber(o, "refresh_us", us[REFRESH]);
  JsonNumber(o, "value_copy_us", 1e6 * s->vcopy);
  JsonNumber(o, "refresh_ratio", r->ratio[3]);
  JsonNumber(o, "product_us", 1e6 * product);
  JsonNumber(o, "transpose_us", us[TBUILD]);
  JsonNumber(o, "transpose_refresh_us", us[TREFRESH]);
  JsonNumber(o, "csr_bytes", s->csr);
  JsonNumber(o, "device_bytes", s->device);
  JsonNumber(o, "peak_bytes", s->peak);
  JsonNumber(o, "transpose_bytes", s->transposed);
  JsonEnd(o);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* product: seconds of the chosen kernel; NaN: not timed yet */
PetscErrorCode SpmvSetUp(const Bench *b, const Problem *p, GPUCSRPrecision precision, double product)
{
  const size_t vbytes = 8 * (size_t)PetscMax(p->src.m, p->src.n);
  Parts        s      = {.b = b, .p = p, .precision = precision};
  void        *x = NULL, *z = NULL;

  PetscFunctionBeginUser;
  s.repeats    = p->f.nnz < 2000000 ? MAX_REPEATS : p->f.nnz < 20000000 ? 3 : 1;
  s.turns      = p->f.nnz < 2000000 ? MAX_TURNS : 1;
  s.csr        = GPUCSRCSRBytes(&p->f, precision);
  s.values     = (double)GPUCSRTypeSize(GPUCSRValueType(precision)) * (double)p->f.nnz;
  s.held       = GPUCSRCSRBytes(&p->f, GPUCSR_PRECISION_DOUBLE);
  s.heldvalues = 8.0 * (double)p->f.nnz;
  PetscCall(GPUCSRMalloc(b->dev, vbytes, "x", &x));
  PetscCall(GPUCSRMalloc(b->dev, vbytes, "z", &z));
  s.product = (GPUCSRProduct){.alpha = 1, .x = x, .z = z};
  PetscCall(Medians(&s));
  if (!isfinite(product)) PetscCall(TimeProduct(&s, &product));
  if (b->calls) PetscCall(SayCalls(&s));
  PetscCall(GPUCSRFree(b->dev, vbytes, &x));
  PetscCall(GPUCSRFree(b->dev, vbytes, &z));
  PetscCall(Copies(&s));
  PetscCall(Report(&s, product));
  PetscFunctionReturn(PETSC_SUCCESS);
}
