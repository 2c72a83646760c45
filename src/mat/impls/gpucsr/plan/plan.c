/*
  Building a plan: inspect, choose, send, convert. Everything comes from the host's CSR; on a device that formats can be
  filled on, CSR crosses the bus once and the rest happens there.
*/
#include "plan.h"
#include <petsctime.h>

/* Adds the seconds since the last mark to *to, with the device's work done */
static PetscErrorCode Mark(GPUCSRDevice dev, PetscLogDouble *last, double *to)
{
  PetscLogDouble now;

  PetscFunctionBegin;
  PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  PetscCall(PetscTime(&now));
  if (to) *to += now - *last;
  *last = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static double SourceBytes(const GPUCSRSource *s, const GPUCSRStorage *csr, PetscBool valuesonly)
{
  const double values = (double)GPUCSRTypeSize(csr->array[CSR_VAL].type) * (double)s->nnz;

  return valuesonly ? values : values + 4.0 * (double)s->nnz + 4.0 * (s->m + 1.0);
}

/* On the host, into arrays of the host, then sent: for a format that the device cannot fill itself */
static PetscErrorCode FillOnHost(const GPUCSRSource *s, GPUCSRStorage *A, PetscBool valuesonly, double *rounding)
{
  GPUCSRStorage h = *A; /* the same arrays in host memory */

  PetscFunctionBegin;
  for (int k = 0; k < A->narrays; k++) PetscCall(PetscMalloc(A->array[k].count * GPUCSRTypeSize(A->array[k].type) + 1, &h.array[k].data));
  if (valuesonly) { /* where a value goes depends on the pattern */
    for (int k = 0; k < A->narrays; k++)
      if (!A->array[k].values) PetscCall(GPUCSRDownload(A->dev, h.array[k].data, A->array[k].type, A->array[k].data, A->array[k].type, A->array[k].count, PETSC_FALSE, A->dev->stream));
  }
  PetscCall((*A->format->ops->fill)(s, &h, valuesonly, rounding));
  for (int k = 0; k < A->narrays; k++) {
    if (!valuesonly || A->array[k].values) PetscCall(GPUCSRUpload(A->dev, A->array[k].data, A->array[k].type, h.array[k].data, A->array[k].type, A->array[k].count, PETSC_FALSE, A->dev->stream, NULL));
    PetscCall(PetscFree(h.array[k].data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Formats that would store far more than the matrix has are refused before the memory is asked for */
static PetscErrorCode CheckExtent(const GPUCSRFormat *format, const GPUCSRFeatures *f, const GPUCSRExtent *e)
{
  PetscFunctionBegin;
  PetscCheck((double)e->stored <= GPUCSR_MOST_STORED(f) && e->stored <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR format %s cannot take this matrix of %d rows, %d columns, %.0f nonzeros: it would store %.0f entries", format->name, f->m, f->n,
             (double)f->nnz, (double)e->stored);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A from host CSR, straight into its arrays where they are the host's, by way of host arrays where not */
static PetscErrorCode FromSource(GPUCSRDevice dev, const GPUCSRSource *s, GPUCSRPrecision precision, GPUCSRPlan *P)
{
  const GPUCSRFormat *format = P->choice.format;
  GPUCSRExtent        e      = {0};

  PetscFunctionBegin;
  if (format->ops->measure) PetscCall((*format->ops->measure)(s, format->variant, &e));
  else PetscCall((*format->ops->estimate)(&P->features, format->variant, &e));
  PetscCall(CheckExtent(format, &P->features, &e));
  PetscCall(GPUCSRStorageCreate(dev, format, &P->features, &e, precision, &P->A));
  PetscCall(GPUCSRStorageAllocate(&P->A, PETSC_FALSE));
  if (dev->ops->separate) PetscCall(FillOnHost(s, &P->A, PETSC_FALSE, &P->rounding));
  else PetscCall((*format->ops->fill)(s, &P->A, PETSC_FALSE, &P->rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A in another format, from CSR on the device */
static PetscErrorCode Convert(const GPUCSRStorage *csr, const GPUCSRFeatures *f, const GPUCSRFormat *format, GPUCSRStorage *A)
{
  const GPUCSRDeviceFormat *df;
  GPUCSRExtent              e = {0};

  PetscFunctionBegin;
  PetscCall(GPUCSRDeviceFormatGet(format, &df));
  if (df->measure) PetscCall((*df->measure)(csr, format->variant, &e, csr->dev->stream));
  else PetscCall((*format->ops->estimate)(f, format->variant, &e));
  PetscCall(CheckExtent(format, f, &e));
  PetscCall(GPUCSRStorageCreate(csr->dev, format, f, &e, csr->precision, A));
  PetscCall(GPUCSRStorageAllocate(A, PETSC_FALSE));
  PetscCall((*df->fill)(csr, A, PETSC_FALSE, csr->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A from CSR on the device; a CSR plan takes over its arrays */
static PetscErrorCode FromCSR(GPUCSRStorage *csr, GPUCSRPlan *P)
{
  PetscFunctionBegin;
  if (GPUCSRIsCSR(P->choice.format)) {
    P->A = *csr;
    PetscCall(PetscMemzero(csr, sizeof(*csr)));
  } else PetscCall(Convert(csr, &P->features, P->choice.format, &P->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Prepare(GPUCSRPlan *P)
{
  const GPUCSRKernel *k = P->choice.kernel;

  PetscFunctionBegin;
  if (P->A.dev->ops->separate && k->family->prepare) PetscCall((*k->family->prepare)(&P->A, k->variant));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CSR of the source on the device */
static PetscErrorCode SendCSR(GPUCSRDevice dev, const GPUCSRSource *s, const GPUCSRFeatures *f, GPUCSRPrecision precision, PetscBool valuesonly, GPUCSRStorage *csr, double *rounding, GPUCSRCosts *costs)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRStorageCreate(dev, GPUCSRFormatCSR(), f, NULL, precision, csr));
  PetscCall(GPUCSRStorageAllocate(csr, valuesonly));
  PetscCall((*csr->format->ops->fill)(s, csr, valuesonly, rounding));
  costs->uploaded += SourceBytes(s, csr, valuesonly);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The temporary CSR of a step goes whether the step succeeded or not */
#define FinishStep(csr, call) \
  do { \
    const PetscErrorCode ierr_ = (call); \
    PetscCall(GPUCSRStorageDestroy(csr)); \
    PetscCall(ierr_); \
  } while (0)

static PetscErrorCode BuildSteps(GPUCSRDevice dev, const GPUCSRSource *s, GPUCSRPrecision precision, GPUCSRPlan *P, GPUCSRStorage *csr)
{
  const GPUCSRDeviceFormat *df;
  PetscLogDouble            t;

  PetscFunctionBegin;
  PetscCall(PetscTime(&t));
  PetscCall(GPUCSRDeviceFormatGet(P->choice.format, &df));
  if (!dev->ops->separate || !df) {
    PetscCall(FromSource(dev, s, precision, P));
    P->costs.uploaded += GPUCSRStorageBytes(&P->A);
    PetscCall(Mark(dev, &t, &P->costs.upload));
  } else {
    PetscCall(SendCSR(dev, s, &P->features, precision, PETSC_FALSE, csr, &P->rounding, &P->costs));
    PetscCall(Mark(dev, &t, &P->costs.upload));
    PetscCall(FromCSR(csr, P));
  }
  if (P->choice.kernel) PetscCall(Prepare(P));
  PetscCall(Mark(dev, &t, &P->costs.convert));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A damaged file makes a MATAIJ with columns that do not exist, without a word; a GPU would read memory that is not x's */
static PetscErrorCode CheckColumns(const GPUCSRSource *s, int threads)
{
  const PetscInt n   = s->n;
  int64_t        bad = 0;

  PetscFunctionBegin;
  if (s->nnz < 100000) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(+ : bad)
  for (int64_t k = 0; k < s->nnz; k++) bad += s->j[k] < 0 || s->j[k] >= n;
  for (int r = 0; r < (bad ? s->m : 0); r++)
    for (int32_t k = s->i[r]; k < s->i[r + 1]; k++)
      PetscCheck(s->j[k] >= 0 && s->j[k] < n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %d holds column %" PetscInt_FMT " of a matrix with %" PetscInt_FMT " columns: was it read from a damaged file?", r, s->j[k], n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Leaves P as it was but for its costs when it fails */
PetscErrorCode GPUCSRPlanBuild(GPUCSRDevice dev, const GPUCSRSource *s, GPUCSRPrecision precision, const GPUCSRRequest *q, GPUCSRPlan *P)
{
  GPUCSRStorage  csr = {0};
  PetscLogDouble t;

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanDestroy(P));
  P->A.dev = dev;
  PetscCall(dev->ops->activate(dev->id));
  PetscCall(PetscTime(&t));
  PetscCall(CheckColumns(s, dev->threads));
  PetscCall(GPUCSRFeaturesOfRows(s->m, s->n, s->i, dev->threads, &P->features));
  PetscCall(GPUCSRChoose(&P->features, precision, dev, q, &P->choice, &P->candidate, &P->ncandidates));
  PetscCall(Mark(dev, &t, &P->costs.inspect));
  FinishStep(&csr, BuildSteps(dev, s, precision, P, &csr));
  P->built = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeSteps(GPUCSRDevice dev, const GPUCSRSource *s, const GPUCSRStorage *from, GPUCSRPrecision precision, const GPUCSRRequest *q, GPUCSRPlan *P, GPUCSRStorage *csr, int32_t **rowptr)
{
  const GPUCSRDeviceFormat *df;
  GPUCSRFeatures            f = {0};
  PetscLogDouble            t;

  PetscFunctionBegin;
  PetscCall(PetscTime(&t));
  f.m         = s->n;
  f.n         = s->m;
  f.nnz       = s->nnz;
  P->features = f; /* so that a failure below frees the map at its size */
  PetscCall(GPUCSRStorageCreate(dev, GPUCSRFormatCSR(), &f, NULL, precision, csr));
  PetscCall(GPUCSRStorageAllocate(csr, PETSC_FALSE));
  PetscCall(GPUCSRMalloc(dev, sizeof(int32_t) * (size_t)s->nnz, "the transpose's value map", (void **)&P->map));
  PetscCall((*GPUCSRHelpers(dev)->transpose)(from, csr, P->map, dev->stream));
  PetscCall(PetscMalloc1(s->n + 1, rowptr));
  PetscCall(GPUCSRDownload(dev, *rowptr, GPUCSR_INT32, csr->array[CSR_ROWPTR].data, GPUCSR_INT32, (size_t)s->n + 1, PETSC_FALSE, dev->stream));
  PetscCall(Mark(dev, &t, &P->costs.transpose));
  PetscCall(GPUCSRFeaturesOfRows(s->n, s->m, *rowptr, dev->threads, &P->features));
  PetscCall(GPUCSRChoose(&P->features, precision, dev, q, &P->choice, &P->candidate, &P->ncandidates));
  PetscCall(Mark(dev, &t, &P->costs.inspect));
  PetscCall(GPUCSRDeviceFormatGet(P->choice.format, &df));
  if (dev->ops->separate && df) PetscCall(FromCSR(csr, P));
  else if (GPUCSRIsCSR(P->choice.format)) PetscCall(FromCSR(csr, P));
  else { /* a format filled on the host: bring the transposed CSR there */ GPUCSRSource h = {s->n, s->m, s->nnz, *rowptr, NULL, NULL};
    int32_t                                                                            *j;
    PetscInt                                                                           *jj;
    PetscScalar                                                                        *a;
    double                                                                             *v;
    PetscErrorCode                                                                      ierr;

    PetscCall(PetscMalloc4(s->nnz, &j, s->nnz, &jj, s->nnz, &a, s->nnz, &v));
    PetscCall(GPUCSRDownload(dev, j, GPUCSR_INT32, csr->array[CSR_COL].data, GPUCSR_INT32, (size_t)s->nnz, PETSC_FALSE, dev->stream));
    PetscCall(GPUCSRDownload(dev, v, GPUCSR_DOUBLE, csr->array[CSR_VAL].data, csr->array[CSR_VAL].type, (size_t)s->nnz, PETSC_FALSE, dev->stream));
    for (int64_t k = 0; k < s->nnz; k++) {
      jj[k] = j[k];
      a[k]  = v[k];
    }
    h.j  = jj;
    h.a  = a;
    ierr = FromSource(dev, &h, precision, P);
    PetscCall(PetscFree4(j, jj, a, v));
    PetscCall(ierr);
  }
  if (P->choice.kernel) PetscCall(Prepare(P));
  PetscCall(Mark(dev, &t, &P->costs.convert));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The transpose of s as a plan of its own. D, the plan of s itself, spares sending the matrix again where it holds CSR. */
PetscErrorCode GPUCSRPlanBuildTranspose(GPUCSRDevice dev, const GPUCSRSource *s, const GPUCSRPlan *D, GPUCSRPrecision precision, const GPUCSRRequest *q, GPUCSRPlan *P)
{
  GPUCSRStorage        csr = {0}, sent = {0};
  const GPUCSRStorage *from   = &sent;
  int32_t             *rowptr = NULL;
  PetscErrorCode       ierr   = PETSC_SUCCESS;
  PetscLogDouble       t;

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanDestroy(P));
  P->A.dev = dev;
  PetscCall(dev->ops->activate(dev->id));
  PetscCall(PetscTime(&t));
  if (D && D->built && GPUCSRIsCSR(D->A.format)) from = &D->A;
  else {
    GPUCSRFeatures f = {0};

    if (!D || !D->built) PetscCall(CheckColumns(s, dev->threads));
    f.m   = s->m;
    f.n   = s->n;
    f.nnz = s->nnz;
    ierr  = SendCSR(dev, s, &f, precision, PETSC_FALSE, &sent, &P->rounding, &P->costs);
    if (!ierr) ierr = Mark(dev, &t, &P->costs.upload);
  }
  if (!ierr) ierr = TransposeSteps(dev, s, from, precision, q, P, &csr, &rowptr);
  PetscCall(PetscFree(rowptr));
  PetscCall(GPUCSRStorageDestroy(&sent));
  PetscCall(GPUCSRStorageDestroy(&csr));
  PetscCall(ierr);
  P->built = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* csr: values of the plan's own CSR, on the device */
static PetscErrorCode RefreshFrom(GPUCSRPlan *P, GPUCSRStorage *csr)
{
  const GPUCSRDeviceFormat *df;

  PetscFunctionBegin;
  PetscCall(GPUCSRDeviceFormatGet(P->A.format, &df));
  PetscCall((*df->fill)(csr, &P->A, PETSC_TRUE, P->A.dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RefreshSteps(GPUCSRPlan *P, const GPUCSRSource *s, const GPUCSRPlan *D, GPUCSRStorage *sent, GPUCSRStorage *csr)
{
  GPUCSRDevice              dev       = P->A.dev;
  const GPUCSRFormat       *format    = P->A.format;
  const GPUCSRPrecision     precision = P->A.precision;
  const GPUCSRDeviceFormat *df;
  const void               *values;
  GPUCSRFeatures            f = {0};
  PetscLogDouble            t;

  PetscFunctionBegin;
  PetscCall(PetscTime(&t));
  P->rounding = 0;
  PetscCall(GPUCSRDeviceFormatGet(format, &df));
  if (!P->map) {
    if (GPUCSRIsCSR(format)) {
      PetscCall((*format->ops->fill)(s, &P->A, PETSC_TRUE, &P->rounding));
      P->costs.uploaded += SourceBytes(s, &P->A, PETSC_TRUE);
    } else if (!dev->ops->separate) PetscCall((*format->ops->fill)(s, &P->A, PETSC_TRUE, &P->rounding));
    else if (!df) PetscCall(FillOnHost(s, &P->A, PETSC_TRUE, &P->rounding));
    else {
      PetscCall(SendCSR(dev, s, &P->features, precision, (PetscBool)!df->pattern, sent, &P->rounding, &P->costs));
      PetscCall(Mark(dev, &t, &P->costs.upload));
      PetscCall(RefreshFrom(P, sent));
      PetscCall(Mark(dev, &t, &P->costs.convert));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(Mark(dev, &t, &P->costs.upload));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* A transpose: new values of A in CSR order, then by the map */
  if (D && D->built && GPUCSRIsCSR(D->A.format)) values = D->A.array[CSR_VAL].data;
  else {
    f.m   = s->m;
    f.n   = s->n;
    f.nnz = s->nnz;
    PetscCall(SendCSR(dev, s, &f, precision, PETSC_TRUE, sent, &P->rounding, &P->costs));
    values = sent->array[CSR_VAL].data;
    PetscCall(Mark(dev, &t, &P->costs.upload));
  }
  if (GPUCSRIsCSR(format)) PetscCall((*GPUCSRHelpers(dev)->gather)(P->A.array[CSR_VAL].type, (size_t)s->nnz, P->map, values, P->A.array[CSR_VAL].data, dev->stream));
  else {
    PetscCall(GPUCSRStorageCreate(dev, GPUCSRFormatCSR(), &P->features, NULL, precision, csr));
    PetscCall(GPUCSRStorageAllocate(csr, PETSC_TRUE));
    PetscCall((*GPUCSRHelpers(dev)->gather)(csr->array[CSR_VAL].type, (size_t)s->nnz, P->map, values, csr->array[CSR_VAL].data, dev->stream));
    PetscCall(RefreshFrom(P, csr));
  }
  PetscCall(Mark(dev, &t, &P->costs.convert));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values for an unchanged pattern; D as in GPUCSRPlanBuildTranspose(), fresh */
PetscErrorCode GPUCSRPlanRefresh(GPUCSRPlan *P, const GPUCSRSource *s, const GPUCSRPlan *D)
{
  GPUCSRStorage  sent = {0}, csr = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(P->A.dev->ops->activate(P->A.dev->id));
  ierr = RefreshSteps(P, s, D, &sent, &csr);
  PetscCall(GPUCSRStorageDestroy(&sent));
  PetscCall(GPUCSRStorageDestroy(&csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can new values follow without a build? Not into a transpose whose format needs its pattern for that */
PetscErrorCode GPUCSRPlanCanRefresh(const GPUCSRPlan *P, PetscBool *can)
{
  const GPUCSRDeviceFormat *df;

  PetscFunctionBegin;
  PetscCall(GPUCSRDeviceFormatGet(P->A.format, &df));
  *can = (PetscBool)(!P->map || GPUCSRIsCSR(P->A.format) || (P->A.dev->ops->separate && df && !df->pattern));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are they all floats already, so that single holds them without loss */
PetscErrorCode GPUCSRValuesAreFloats(const GPUCSRSource *s, int threads, PetscBool *yes)
{
  int lossy = 0;

  PetscFunctionBegin;
  if (s->nnz < 100000) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(| : lossy)
  for (int64_t k = 0; k < s->nnz; k++) {
    const double a = (double)PetscRealPart(s->a[k]);

    lossy |= (double)(float)a != a && a == a;
  }
  *yes = lossy ? PETSC_FALSE : PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRPlanProduct(const GPUCSRPlan *P, const GPUCSRProduct *p, GPUCSRStream s)
{
  const GPUCSRKernel *k = P->choice.kernel;

  PetscFunctionBegin;
  if (p->first >= p->last) PetscFunctionReturn(PETSC_SUCCESS);
  if (P->A.dev->ops->separate) PetscCall((*k->family->launch)(&P->A, p, k->variant, s));
  else PetscCall((*P->A.format->ops->mult)(&P->A, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can the diagonal be had where the products are? Not of a format that is filled on the host for a device */
PetscErrorCode GPUCSRPlanHasDiagonal(const GPUCSRPlan *P, PetscBool *has)
{
  const GPUCSRDeviceFormat *df;

  PetscFunctionBegin;
  PetscCall(GPUCSRDeviceFormatGet(P->A.format, &df));
  *has = (PetscBool)(!P->A.dev->ops->separate || df);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRPlanDiagonal(const GPUCSRPlan *P, void *d, GPUCSRStream s)
{
  const GPUCSRDeviceFormat *df;

  PetscFunctionBegin;
  if (P->A.dev->ops->separate) {
    PetscCall(GPUCSRDeviceFormatGet(P->A.format, &df));
    PetscCheck(df, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR format %s has no diagonal on the device", P->A.format->name);
    PetscCall((*df->diagonal)(&P->A, d, s));
  } else PetscCall((*P->A.format->ops->diagonal)(&P->A, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives the memory back; the costs stay */
PetscErrorCode GPUCSRPlanDestroy(GPUCSRPlan *P)
{
  const GPUCSRCosts costs = P->costs;

  PetscFunctionBegin;
  PetscCall(PetscFree(P->candidate));
  if (P->A.dev) {
    GPUCSRDevice dev = P->A.dev;

    if (P->map) PetscCall(GPUCSRFree(dev, sizeof(int32_t) * (size_t)P->features.nnz, (void **)&P->map));
    PetscCall(GPUCSRStorageDestroy(&P->A));
  }
  PetscCall(PetscMemzero(P, sizeof(*P)));
  P->costs = costs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

double GPUCSRPlanBytes(const GPUCSRPlan *P)
{
  return P->built ? GPUCSRStorageBytes(&P->A) + (P->map ? 4.0 * (double)P->features.nnz : 0) : 0;
}
