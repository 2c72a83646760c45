/* Builds a plan: inspect, choose, upload, convert. The source is the host's CSR, which is uploaded once if the device can fill the formats */
#include "plan.h"

GPUCSRPlanOptions GPUCSRPlanSettings = {.sample = 0.01};

/* Options of the process; collective on PETSC_COMM_WORLD */
PetscErrorCode GPUCSRPlanInitialize(void)
{
  char      profile[PETSC_MAX_PATH_LEN] = "";
  PetscReal sample                      = (PetscReal)GPUCSRPlanSettings.sample;

  PetscFunctionBegin;
  PetscCall(GPUCSRRegisterFinalize(GPUCSR_FINAL_PLAN, GPUCSRProfileFinalize));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "GPU sparse matrix: how formats and kernels are chosen", "MATGPUCSR");
  PetscCall(PetscOptionsString("-mat_gpucsr_profile", "What products cost on this machine, as make tune writes it", "MATGPUCSR", profile, profile, sizeof(profile), NULL));
  PetscCall(PetscOptionsReal("-mat_gpucsr_sample", "Fraction of the rows that block structure is estimated from", "MATGPUCSR", sample, &sample, NULL));
  PetscOptionsEnd();
  PetscCheck(sample >= 0 && sample <= 1, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_sample %g: must be a fraction from 0 to 1", (double)sample);
  GPUCSRPlanSettings.sample = (double)sample;
  PetscCall(GPUCSRProfileLoad(profile));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Adds the seconds since the last mark to *to. Waits for the device only if times will be reported. Work on the device's stream is in order; other
  streams wait for P->changed.
*/
static PetscErrorCode Mark(GPUCSRDevice dev, double *last, double *to)
{
  const double before = *last;

  PetscFunctionBegin;
  if (GPUCSRSettingsGlobal.report) PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  *last = GPUCSRNow();
  *to += *last - before;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Sent(const GPUCSRSource *s, const GPUCSRStorage *csr, PetscBool valuesonly, GPUCSRCosts *costs)
{
  const double values = (double)GPUCSRTypeSize(csr->array[CSR_VAL].type) * (double)s->nnz;

  if (s->resident && csr->array[CSR_VAL].type == GPUCSR_DOUBLE) return;
  costs->values += values;
  costs->uploaded += valuesonly ? values : values + 4.0 * (double)s->nnz + 4.0 * (s->m + 1.0);
}

/* h: the arrays of A in host memory, which this function allocates */
static PetscErrorCode FillAndSend(const GPUCSRSource *s, GPUCSRStorage *h, GPUCSRStorage *A, PetscBool valuesonly, double *rounding)
{
  PetscFunctionBegin;
  for (int k = 0; k < A->narrays; k++) PetscCall(PetscMalloc(A->array[k].count * GPUCSRTypeSize(A->array[k].type) + 1, &h->array[k].data));
  if (valuesonly) { /* the place of a value depends on the pattern, and absent entries keep their marks */
    for (int k = 0; k < A->narrays; k++) PetscCall(GPUCSRDownload(A->dev, h->array[k].data, A->array[k].type, A->array[k].data, A->array[k].type, A->array[k].count, PETSC_FALSE, A->dev->stream));
  }
  PetscCall((*A->format->ops->fill)(s, h, valuesonly, rounding));
  A->outdated = h->outdated;
  for (int k = 0; k < A->narrays; k++)
    if (!valuesonly || A->array[k].values) PetscCall(GPUCSRUpload(A->dev, A->array[k].data, A->array[k].type, h->array[k].data, A->array[k].type, A->array[k].count, PETSC_FALSE, A->dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host fills the arrays: CSR's wherever they are, others where it can, or through host arrays */
static PetscErrorCode Fill(const GPUCSRSource *s, GPUCSRStorage *A, PetscBool valuesonly, double *rounding)
{
  GPUCSRStorage  h = *A;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!A->dev->ops->separate || GPUCSRIsCSR(A->format)) {
    PetscCall((*A->format->ops->fill)(s, A, valuesonly, rounding));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < A->narrays; k++) h.array[k].data = NULL;
  ierr = FillAndSend(s, &h, A, valuesonly, rounding);
  for (int k = 0; k < A->narrays; k++) PetscCall(PetscFree(h.array[k].data));
  PetscFunctionReturn(ierr);
}

/* Refuses a format that would store far more entries than the matrix has, before memory is allocated */
static PetscErrorCode CheckExtent(const GPUCSRFormat *format, const GPUCSRFeatures *f, const GPUCSRExtent *e)
{
  PetscFunctionBegin;
  PetscCheck((double)e->stored <= GPUCSR_MOST_STORED(f) && e->stored <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR format %s cannot take this matrix of %d rows, %d columns, %.0f nonzeros: it would store %.0f entries", format->name, f->m, f->n,
             (double)f->nnz, (double)e->stored);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A from host CSR */
static PetscErrorCode FromSource(GPUCSRDevice dev, const GPUCSRSource *s, const GPUCSRFeatures *f, const GPUCSRFormat *format, GPUCSRPrecision precision, GPUCSRStorage *A, double *rounding)
{
  GPUCSRExtent e = {0};

  PetscFunctionBegin;
  if (format->ops->measure) PetscCall((*format->ops->measure)(s, format->variant, &e));
  else (*format->ops->estimate)(f, format->variant, &e);
  PetscCall(CheckExtent(format, f, &e));
  PetscCall(GPUCSRStorageCreate(dev, format, f, &e, precision, A));
  PetscCall(GPUCSRStorageAllocate(A, PETSC_FALSE));
  PetscCall(Fill(s, A, PETSC_FALSE, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host fills the format, from a copy of the device's CSR; f is NULL for new values of an unchanged pattern */
static PetscErrorCode ByHost(const GPUCSRStorage *csr, const GPUCSRFeatures *f, const GPUCSRFormat *format, GPUCSRStorage *A)
{
  const GPUCSRArray *from = csr->array;
  const size_t       nnz = (size_t)csr->nnz, m = (size_t)csr->m;
  GPUCSRDevice       dev = csr->dev;
  GPUCSRSource       s   = {.m = csr->m, .n = csr->n, .nnz = csr->nnz};
  int32_t           *i;
  PetscInt          *j;
  PetscScalar       *a;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(m + 1, &i, nnz, &j, nnz, &a));
  s.i  = i;
  s.j  = j;
  s.a  = a;
  ierr = GPUCSRDownload(dev, i, GPUCSR_INT32, from[CSR_ROWPTR].data, GPUCSR_INT32, m + 1, PETSC_FALSE, dev->stream);
  if (!ierr) ierr = GPUCSRDownload(dev, j, GPUCSR_PETSCINT, from[CSR_COL].data, GPUCSR_INT32, nnz, PETSC_FALSE, dev->stream);
  if (!ierr) ierr = GPUCSRDownload(dev, a, GPUCSR_DOUBLE, from[CSR_VAL].data, from[CSR_VAL].type, nnz, PETSC_FALSE, dev->stream);
  if (!ierr) ierr = f ? FromSource(dev, &s, f, format, csr->precision, A, NULL) : Fill(&s, A, PETSC_TRUE, NULL);
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode ByDevice(GPUCSRStorage *csr, const GPUCSRFeatures *f, const GPUCSRFormat *format, const GPUCSRDeviceFormat *df, GPUCSRStorage *A)
{
  GPUCSRExtent e = {0};

  PetscFunctionBegin;
  (*format->ops->estimate)(f, format->variant, &e);
  if (df->measure) PetscCall((*df->measure)(csr, format->variant, &e, csr->dev->stream));
  PetscCall(CheckExtent(format, f, &e));
  PetscCall(GPUCSRStorageCreate(csr->dev, format, f, &e, csr->precision, A));
  PetscCall(GPUCSRStorageAllocate(A, PETSC_FALSE));
  PetscCall((*df->fill)(csr, A, PETSC_FALSE, csr->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Converts CSR on the device to another format. The CSR's work array belongs to a kernel, so measure() and fill() share a temporary one */
PetscErrorCode GPUCSRStorageFromCSR(const GPUCSRStorage *from, const GPUCSRFeatures *f, const GPUCSRFormat *format, GPUCSRStorage *A)
{
  const GPUCSRDeviceFormat *df  = GPUCSRDeviceFormatOf(format);
  GPUCSRStorage             csr = *from;
  PetscErrorCode            ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&csr.work, sizeof(csr.work)));
  ierr = df && csr.dev->ops->kernels ? ByDevice(&csr, f, format, df, A) : ByHost(&csr, f, format, A);
  PetscCall(GPUCSRFree(csr.dev, csr.work.count * GPUCSRTypeSize(csr.work.type), &csr.work.data));
  PetscFunctionReturn(ierr);
}

/* A from CSR on the device; a CSR plan takes over its arrays, or copies lent ones */
static PetscErrorCode FromCSR(GPUCSRStorage *csr, GPUCSRPlan *P)
{
  const GPUCSRSource s = {.m = csr->m, .n = csr->n, .nnz = csr->nnz, .resident = csr};

  PetscFunctionBegin;
  if (GPUCSRIsCSR(P->choice.format) && csr->lent) {
    PetscCall(GPUCSRStorageCreate(csr->dev, P->choice.format, &P->features, &csr->extent, csr->precision, &P->A));
    PetscCall(GPUCSRStorageAllocate(&P->A, PETSC_FALSE));
    PetscCall((*P->A.format->ops->fill)(&s, &P->A, PETSC_FALSE, NULL));
  } else if (GPUCSRIsCSR(P->choice.format)) {
    P->A = *csr;
    PetscCall(PetscMemzero(csr, sizeof(*csr)));
  } else PetscCall(GPUCSRStorageFromCSR(csr, &P->features, P->choice.format, &P->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the pattern place new values? */
static PetscBool NeedsPattern(const GPUCSRFormat *format)
{
  const GPUCSRDeviceFormat *df = GPUCSRDeviceFormatOf(format);

  return (PetscBool)(!df || df->pattern);
}

/* Keeps the pattern on the device if the format needs it for new values: no second upload, and no second sort for a transpose. A lent one is there already */
PetscErrorCode GPUCSRPlanKeepPattern(GPUCSRStorage *csr, GPUCSRPlan *P)
{
  PetscFunctionBegin;
  if (!P->A.dev->ops->kernels || GPUCSRIsCSR(P->A.format) || !NeedsPattern(P->A.format) || csr->lent || P->pattern.format) PetscFunctionReturn(PETSC_SUCCESS);
  P->pattern           = *csr;
  P->pattern.work.data = NULL;
  if (csr->piece) PetscCall(PetscMemzero(csr, sizeof(*csr))); /* the pattern and the values */
  else {
    P->pattern.array[CSR_VAL].data = NULL;
    for (int k = 0; k < CSR_VAL; k++) csr->array[k].data = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lends the kept pattern, if any, to the CSR of new values. The caller takes the pattern back before freeing the CSR */
static void LendPattern(const GPUCSRPlan *P, PetscBool lend, GPUCSRStorage *csr)
{
  for (int k = 0; k < CSR_VAL && P->pattern.format && !csr->lent; k++) csr->array[k].data = lend ? P->pattern.array[k].data : NULL;
}

/* The kernel's analysis of the pattern */
PetscErrorCode GPUCSRPlanPrepare(GPUCSRPlan *P)
{
  const GPUCSRKernel *k = P->choice.kernel;

  PetscFunctionBegin;
  if (!k || P->A.work.data) PetscFunctionReturn(PETSC_SUCCESS);
  if (P->A.dev->ops->kernels && k->family->prepare) PetscCall((*k->family->prepare)(&P->A, k->variant));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Format and kernel of the plan: by the model, or by measuring */
static PetscErrorCode Choose(GPUCSRDevice dev, GPUCSRPrecision precision, const GPUCSRRequest *q, GPUCSRStorage *csr, GPUCSRPlan *P)
{
  const PetscBool list = (PetscBool)(GPUCSRSettingsGlobal.report || q->select != GPUCSR_SELECT_ESTIMATE); /* are all candidates wanted? */

  PetscFunctionBegin;
  PetscCall(GPUCSRChoose(&P->features, precision, dev, q, &P->choice, list ? &P->candidate : NULL, list ? &P->ncandidates : NULL));
  if (GPUCSRRequestOpen(q) && q->select == GPUCSR_SELECT_MEASURE && dev->ops->kernels) PetscCall(GPUCSRPlanMeasure(dev, q, csr, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CSR of the source on the device: lent where it is there */
static PetscErrorCode SendCSR(GPUCSRDevice dev, const GPUCSRSource *s, GPUCSRPrecision precision, PetscBool valuesonly, GPUCSRPlan *P, GPUCSRStorage *csr)
{
  const GPUCSRStorage *resident = (const GPUCSRStorage *)s->resident;

  PetscFunctionBegin;
  if (resident && resident->dev == dev && precision == resident->precision) {
    PetscCall(GPUCSRStorageLend(resident, csr));
    P->rounding = 0;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUCSRStorageCSR(dev, s->m, s->n, s->nnz, precision, valuesonly, csr));
  PetscCall((*csr->format->ops->fill)(s, csr, valuesonly, &P->rounding));
  Sent(s, csr, valuesonly, &P->costs);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays have been written, in the order of the device's stream. An event is recorded when another stream first uses them */
static void Changed(GPUCSRPlan *P)
{
  P->waited   = P->A.dev->stream;
  P->recorded = PETSC_FALSE;
  P->built    = PETSC_TRUE;
}

/* Later work of s may read the arrays */
static PetscErrorCode WaitFor(GPUCSRPlan *P, GPUCSRStream s)
{
  GPUCSRDevice dev = P->A.dev;

  PetscFunctionBegin;
  if (s == dev->stream || s == P->waited) PetscFunctionReturn(PETSC_SUCCESS);
  if (!P->changed) PetscCall(dev->ops->eventcreate(dev->id, PETSC_FALSE, &P->changed));
  if (!P->recorded) PetscCall(dev->ops->eventrecord(dev->id, P->changed, dev->stream));
  PetscCall(dev->ops->streamwait(dev->id, s, P->changed));
  P->recorded = PETSC_TRUE;
  P->waited   = s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MATAIJ accepts a damaged file's columns beyond the last one; a GPU would then read beyond x */
static PetscErrorCode CheckColumn(const GPUCSRSource *s, int64_t bad)
{
  int r = 0;

  PetscFunctionBegin;
  if (bad < 0) PetscFunctionReturn(PETSC_SUCCESS);
  while (s->i[r + 1] <= bad) r++;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %d holds column %" PetscInt_FMT " of a matrix with %d columns: was it read from a damaged file?", r, s->j[bad], s->n);
}

/* The features for the choice, from the host's arrays */
PetscErrorCode GPUCSRSourceInspect(const GPUCSRSource *s, GPUCSRPrecision precision, int threads, GPUCSRFeatures *f)
{
  const PetscInt   n    = s->n;
  const GPUCSRType type = GPUCSRValueType(precision);
  int64_t          bad  = -1;
  void            *val;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  for (int64_t k = s->nnz; k-- > 0;)
    if (s->j[k] < 0 || s->j[k] >= n) bad = k;
  PetscCall(CheckColumn(s, bad));
  PetscCall(GPUCSRInspect(s->m, s->n, s->i, sizeof(PetscInt) == sizeof(int32_t) ? (const int32_t *)s->j : NULL, GPUCSRPlanSettings.sample, threads, f));
  PetscCall(PetscMalloc((size_t)s->nnz * GPUCSRTypeSize(type) + 1, &val)); /* rows count as alike in the stored precision */
  ierr = GPUCSRConvert(val, type, s->a, GPUCSR_DOUBLE, (size_t)s->nnz, threads, NULL);
  if (!ierr) ierr = GPUCSRStencils(s->m, s->i, s->j, GPUCSR_PETSCINT, val, type, f);
  PetscCall(PetscFree(val));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode BuildSteps(GPUCSRDevice dev, const GPUCSRSource *s, GPUCSRPrecision precision, const GPUCSRRequest *q, GPUCSRPlan *P, GPUCSRStorage *csr)
{
  int64_t bad;
  double  t = GPUCSRNow();

  PetscFunctionBegin;
  if (dev->ops->kernels) { /* uploads CSR once; the rest happens on the device */
    PetscCall(SendCSR(dev, s, precision, PETSC_FALSE, P, csr));
    PetscCall(Mark(dev, &t, &P->costs.upload));
    PetscCall((*GPUCSRHelpers(dev)->inspect)(csr, GPUCSRPlanSettings.sample, &P->features, &bad, dev->stream));
    PetscCall(CheckColumn(s, bad));
    csr->extent.width = P->features.max;
  } else PetscCall(GPUCSRSourceInspect(s, precision, dev->threads, &P->features));
  PetscCall(Mark(dev, &t, &P->costs.inspect));
  PetscCall(Choose(dev, precision, q, csr, P));
  PetscCall(Mark(dev, &t, &P->costs.choose));
  if (P->A.format) { /* measuring has built it */
  } else if (dev->ops->kernels) PetscCall(FromCSR(csr, P));
  else PetscCall(FromSource(dev, s, &P->features, P->choice.format, precision, &P->A, &P->rounding));
  PetscCall(GPUCSRPlanKeepPattern(csr, P));
  PetscCall(GPUCSRPlanPrepare(P));
  PetscCall(Mark(dev, &t, &P->costs.convert));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After an error P is unchanged but for its costs */
PetscErrorCode GPUCSRPlanBuild(GPUCSRDevice dev, const GPUCSRSource *s, GPUCSRPrecision precision, const GPUCSRRequest *q, GPUCSRPlan *P)
{
  GPUCSRStorage  csr = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanDestroy(P));
  P->A.dev = dev;
  PetscCall(dev->ops->activate(dev->id));
  ierr = BuildSteps(dev, s, precision, q, P, &csr);
  PetscCall(GPUCSRStorageDestroy(&csr));
  PetscCall(ierr);
  Changed(P);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeSteps(GPUCSRDevice dev, const GPUCSRSource *s, const GPUCSRStorage *from, GPUCSRPrecision precision, const GPUCSRRequest *q, GPUCSRPlan *P, GPUCSRStorage *csr)
{
  int64_t bad;
  double  t = GPUCSRNow();

  PetscFunctionBegin;
  P->features = (GPUCSRFeatures){.m = s->n, .n = s->m, .nnz = s->nnz}; /* an error below frees the map at its size */
  PetscCall(GPUCSRStorageCSR(dev, s->n, s->m, s->nnz, precision, PETSC_FALSE, csr));
  PetscCall(GPUCSRMalloc(dev, sizeof(int32_t) * (size_t)s->nnz, "the transpose's value map", (void **)&P->map));
  PetscCall((*GPUCSRHelpers(dev)->transpose)(from, csr, P->map, dev->stream));
  PetscCall(Mark(dev, &t, &P->costs.transpose));
  PetscCall((*GPUCSRHelpers(dev)->inspect)(csr, GPUCSRPlanSettings.sample, &P->features, &bad, dev->stream));
  csr->extent.width = P->features.max;
  PetscCall(Mark(dev, &t, &P->costs.inspect));
  PetscCall(Choose(dev, precision, q, csr, P));
  PetscCall(Mark(dev, &t, &P->costs.choose));
  if (!P->A.format) PetscCall(FromCSR(csr, P)); /* measuring may have built it */
  PetscCall(GPUCSRPlanKeepPattern(csr, P));
  PetscCall(GPUCSRPlanPrepare(P));
  PetscCall(Mark(dev, &t, &P->costs.convert));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The transpose of s as a plan of its own. If D, the plan of s itself, holds CSR, the matrix is not uploaded again. */
PetscErrorCode GPUCSRPlanBuildTranspose(GPUCSRDevice dev, const GPUCSRSource *s, const GPUCSRPlan *D, GPUCSRPrecision precision, const GPUCSRRequest *q, GPUCSRPlan *P)
{
  GPUCSRStorage        csr = {0}, sent = {0};
  const GPUCSRStorage *from = &sent;
  PetscErrorCode       ierr = PETSC_SUCCESS;
  int64_t              bad  = -1;
  double               t;

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanDestroy(P));
  P->A.dev = dev;
  PetscCall(dev->ops->activate(dev->id));
  t = GPUCSRNow();
  if (D && D->built && GPUCSRIsCSR(D->A.format)) from = &D->A;
  else {
    ierr = SendCSR(dev, s, precision, PETSC_FALSE, P, &sent);
    if (!ierr) ierr = Mark(dev, &t, &P->costs.upload);
    if (!ierr && (!D || !D->built)) ierr = (*GPUCSRHelpers(dev)->inspect)(&sent, 0, NULL, &bad, dev->stream); /* not inspected yet */
    if (!ierr) ierr = CheckColumn(s, bad);
  }
  if (!ierr) ierr = TransposeSteps(dev, s, from, precision, q, P, &csr);
  PetscCall(GPUCSRStorageDestroy(&sent));
  PetscCall(GPUCSRStorageDestroy(&csr));
  PetscCall(ierr);
  Changed(P);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* csr: values of the plan's own CSR, on the device */
static PetscErrorCode RefreshFrom(GPUCSRPlan *P, GPUCSRStorage *csr)
{
  const GPUCSRDeviceFormat *df = GPUCSRDeviceFormatOf(P->A.format);
  PetscErrorCode            ierr;

  PetscFunctionBegin;
  LendPattern(P, PETSC_TRUE, csr);
  ierr = df ? (*df->fill)(csr, &P->A, PETSC_TRUE, P->A.dev->stream) : ByHost(csr, NULL, P->A.format, &P->A);
  LendPattern(P, PETSC_FALSE, csr);
  PetscFunctionReturn(ierr);
}

static PetscErrorCode RefreshSteps(GPUCSRPlan *P, const GPUCSRSource *s, const GPUCSRPlan *D, GPUCSRStorage *sent, GPUCSRStorage *csr)
{
  GPUCSRDevice          dev       = P->A.dev;
  const GPUCSRFormat   *format    = P->A.format;
  const GPUCSRPrecision precision = P->A.precision;
  const void           *values;
  double                t = GPUCSRNow();

  PetscFunctionBegin;
  P->rounding = 0;
  if (!P->map && (GPUCSRIsCSR(format) || !dev->ops->kernels)) {
    PetscCall(Fill(s, &P->A, PETSC_TRUE, &P->rounding));
    if (GPUCSRIsCSR(format)) Sent(s, &P->A, PETSC_TRUE, &P->costs);
    PetscCall(Mark(dev, &t, &P->costs.upload));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!P->map) {
    PetscCall(SendCSR(dev, s, precision, (PetscBool)(!NeedsPattern(format) || P->pattern.format), P, sent));
    PetscCall(Mark(dev, &t, &P->costs.upload));
    PetscCall(RefreshFrom(P, sent));
    PetscCall(GPUCSRPlanKeepPattern(sent, P));
    PetscCall(Mark(dev, &t, &P->costs.convert));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* A transpose: the new values of A in CSR order, placed by the map */
  if (D && D->built && GPUCSRIsCSR(D->A.format)) values = D->A.array[CSR_VAL].data;
  else {
    PetscCall(SendCSR(dev, s, precision, PETSC_TRUE, P, sent));
    values = sent->array[CSR_VAL].data;
    PetscCall(Mark(dev, &t, &P->costs.upload));
  }
  if (GPUCSRIsCSR(format)) PetscCall((*GPUCSRHelpers(dev)->gather)(dev, (int)s->nnz, P->A.array[CSR_VAL].type, P->map, values, P->A.array[CSR_VAL].data, dev->stream));
  else {
    PetscCall(GPUCSRStorageCSR(dev, P->A.m, P->A.n, s->nnz, precision, PETSC_TRUE, csr));
    PetscCall((*GPUCSRHelpers(dev)->gather)(dev, (int)s->nnz, csr->array[CSR_VAL].type, P->map, values, csr->array[CSR_VAL].data, dev->stream));
    PetscCall(RefreshFrom(P, csr));
  }
  PetscCall(Mark(dev, &t, &P->costs.convert));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  New values for an unchanged pattern; D as in GPUCSRPlanBuildTranspose(), up to date. held: the format holds the new values. Otherwise
  the plan is invalid, and the caller builds it again.
*/
PetscErrorCode GPUCSRPlanRefresh(GPUCSRPlan *P, const GPUCSRSource *s, const GPUCSRPlan *D, PetscBool *held)
{
  GPUCSRStorage  sent = {0}, csr = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(P->A.dev->ops->activate(P->A.dev->id));
  ierr = RefreshSteps(P, s, D, &sent, &csr);
  PetscCall(GPUCSRStorageDestroy(&sent));
  PetscCall(GPUCSRStorageDestroy(&csr));
  PetscCall(ierr);
  *held = (PetscBool)!P->A.outdated;
  if (*held) Changed(P);
  else P->built = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can new values follow without a build? Without kernels, none can place them in a transpose of another format than CSR */
PetscBool GPUCSRPlanCanRefresh(const GPUCSRPlan *P)
{
  return (PetscBool)(!P->map || GPUCSRIsCSR(P->A.format) || P->A.dev->ops->kernels);
}

/* Are all values floats, so that single precision is exact? */
PetscBool GPUCSRValuesAreFloats(const GPUCSRSource *s, int threads)
{
  int lossy = 0;

  if ((double)s->nnz < GPUCSRMachineShared.threaded_entries) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(| : lossy)
  for (int64_t k = 0; k < s->nnz; k++) {
    const double a = (double)PetscRealPart(s->a[k]);

    lossy |= (double)(float)a != a && a == a;
  }
  return lossy ? PETSC_FALSE : PETSC_TRUE;
}

/* A product by the format's reference */
typedef struct {
  GPUCSRStorage A;
  GPUCSRProduct product;
} Reference;

/* The step at the end of a product in z, for vectors of X; `old` is z before the product, if the step needs it */
#define REFERENCE_STEP(X) \
  static void ReferenceStep_##X(const GPUCSRProduct *p, const void *old) \
  { \
    const X *x = (const X *)p->x, *M = (const X *)p->step.M, *before = (const X *)(old ? old : p->step.before); \
    X       *z = (X *)p->z; \
\
    for (int i = p->first; i < p->last; i++) { \
      double next = p->step.cb * (M ? M[i] * z[i] : z[i]); \
\
      if (p->step.ca != 0) next += p->step.ca * (before ? x[i] - before[i] : x[i]); \
      z[i] = (X)(x[i] + next); \
    } \
  }
REFERENCE_STEP(double)
REFERENCE_STEP(float)

/* One part of each sum, for a product in z; with a diagonal z is scaled first, unless a step has set it */
void GPUCSRReferenceSums(const GPUCSRProduct *p)
{
  const double *q = p->sums.q, *u = p->sums.u, *M = p->step.taken ? NULL : p->sums.M;
  double       *z = (double *)p->z, sum[GPUCSR_INNER] = {0, 0, 0, 0, 0};

  for (int i = p->first; i < p->last; i++) {
    if (M) z[i] *= M[i];
    sum[0] += q[i] * z[i];
    sum[1] += z[i] * z[i];
    sum[2] += q[i] * q[i];
    if (u) {
      sum[3] += u[i] * z[i];
      sum[4] += u[i] * q[i];
    }
  }
  for (int k = 0; k < (p->sums.all ? GPUCSR_INNER : 1); k++) p->sums.part[(size_t)k * GPUCSR_MOST_PARTS(p->last)] = sum[k];
}

static PetscErrorCode ReferenceProduct(void *arg)
{
  const Reference     *r     = (const Reference *)arg;
  const GPUCSRProduct *p     = &r->product;
  const GPUCSRType     type  = GPUCSRVectorType(r->A.precision);
  const size_t         bytes = (size_t)p->last * GPUCSRTypeSize(type);
  void                *old   = NULL;

  PetscFunctionBegin;
  if (p->step.taken && p->step.before == p->z) {
    old = malloc(bytes); /* not PetscMalloc(): a simulated device has a thread of its own */
    PetscCheck(old, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a vector of %d numbers", p->last);
    memcpy(old, p->z, bytes);
  }
  PetscCall((*r->A.format->ops->mult)(&r->A, p));
  if (p->step.taken && type == GPUCSR_FLOAT) ReferenceStep_float(p, old);
  else if (p->step.taken) ReferenceStep_double(p, old);
  if (p->sums.q) GPUCSRReferenceSums(p);
  free(old);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can a product of the plan end with a step? */
PetscBool GPUCSRPlanSteps(const GPUCSRPlan *P)
{
  return (PetscBool)(!P->A.dev->ops->kernels || P->choice.kernel->family->steps);
}

/* Can a product compute sums, if its vectors are doubles? */
PetscBool GPUCSRPlanSums(const GPUCSRPlan *P)
{
  return (PetscBool)(GPUCSRPlanSteps(P) && !GPUCSRThreads);
}

PetscErrorCode GPUCSRPlanProduct(GPUCSRPlan *P, const GPUCSRProduct *p, GPUCSRStream s)
{
  const GPUCSRKernel *k = P->choice.kernel;
  Reference           r = {P->A, *p};

  PetscFunctionBegin;
  if (p->first >= p->last) PetscFunctionReturn(PETSC_SUCCESS);
  if (P->built) PetscCall(WaitFor(P, s));
  if (p->doubles && r.A.precision == GPUCSR_PRECISION_SINGLE) r.A.precision = GPUCSR_PRECISION_MIXED; /* both have the same arrays */
  if (P->A.dev->ops->kernels) PetscCall((*k->family->launch)(&r.A, p, k->variant, s));
  else {
    if (p->sums.q) *p->sums.parts = 1;
    PetscCall(GPUCSRRunOnHost(P->A.dev, ReferenceProduct, &r, sizeof(r), s, P->A.format->name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRPlanDiagonal(GPUCSRPlan *P, void *d, GPUCSRStream s)
{
  const GPUCSRDeviceFormat *df = GPUCSRDeviceFormatOf(P->A.format);

  PetscFunctionBegin;
  if (P->built) PetscCall(WaitFor(P, s));
  if (P->A.dev->ops->kernels) {
    PetscCheck(df, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR format %s has no diagonal on the device", P->A.format->name);
    PetscCall((*df->diagonal)(&P->A, d, s));
  } else {
    PetscCall(GPUCSRWaitStreamOnHost(s));
    PetscCall((*P->A.format->ops->diagonal)(&P->A, d));
    PetscCall(GPUCSRLaunched(P->A.dev, "a diagonal"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees the memory; the costs stay */
PetscErrorCode GPUCSRPlanDestroy(GPUCSRPlan *P)
{
  const GPUCSRCosts costs = P->costs;

  PetscFunctionBegin;
  PetscCall(PetscFree(P->candidate));
  if (P->A.dev) {
    GPUCSRDevice dev = P->A.dev;

    if (P->changed && !dev->failed[0]) PetscCall(dev->ops->eventdestroy(dev->id, P->changed));
    if (P->map) PetscCall(GPUCSRFree(dev, sizeof(int32_t) * (size_t)P->features.nnz, (void **)&P->map));
    PetscCall(GPUCSRStorageDestroy(&P->A));
    if (P->pattern.format) PetscCall(GPUCSRStorageDestroy(&P->pattern));
  }
  PetscCall(PetscMemzero(P, sizeof(*P)));
  P->costs = costs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

double GPUCSRPlanBytes(const GPUCSRPlan *P)
{
  return P->built ? GPUCSRStorageBytes(&P->A) + GPUCSRStorageBytes(&P->pattern) + (P->map ? 4.0 * (double)P->features.nnz : 0) : 0;
}
