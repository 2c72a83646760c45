/*
  Predicts the time of a product, or of an iteration of conjugate gradients with Jacobi, on the CPU and on GPUs.

  The model follows M. Verschoor and A. C. Jalba (Parallel Computing 2012, section 5). Each part of an iteration takes a start, and its bytes over a
  rate. Each of n GPUs takes the time of an n-th part of the rows, of its exchange and of the reductions. The profile predicts the product; the other
  constants are in sys/machine.h. Errors: docs/results/advise.md.
*/
#include "report.h"

/* Time of vector operations on the device: so many passes over n numbers, a part of which stays in the cache beside the matrix */
static double Passes(double passes, double n, double matrix, double cache, double cached, double memory)
{
  const double bytes = 8 * n, room = PetscMax(0, cache - matrix), kept = PetscMin(1, room / (5 * bytes + 1));

  return passes * bytes * (kept / cached + (1 - kept) / memory);
}

/* An iteration of the persistent kernel, from the profile's time of a product. One cluster multiplies a small matrix (persistent.cu) */
static double Persistent(const GPUCSRMachine *t, const GPUCSRCandidate *c, double n, double mean, double cache)
{
  const char  *format   = c->format->name;
  const double multiple = !strncmp(format, "dia", 3) || !strncmp(format, "stencil", 7) ? t->product_diagonals : !strncmp(format, "tile", 4) || !strncmp(format, "narrow", 6) ? t->product_csr : t->product_gathered, entries = mean * n;
  const double product = entries < t->cluster_entries ? t->cluster_entry * entries / PetscMin(t->cluster_blocks, ceil(n / GPUCSR_SLICE)) : t->meeting_all + multiple * PetscMax(0, c->predicted - t->product_launch);

  return t->meeting + t->persistent_entry * mean + product + Passes(t->persistent_passes, n, c->bytes, cache, t->persistent_cached_rate, t->persistent_rate);
}

/*
  MatMult() of host vectors on the device. number: bytes of a vector's number there; reach: the part of x within a row's reach of the diagonal. Long
  vectors are copied piece by piece, and rows are computed when their columns have arrived. Rows with columns anywhere wait for all of x.
*/
static double HostVectorsTime(double m, double n, double kernel, size_t number, double reach)
{
  const GPUCSRMachine *t  = &GPUCSRMachineShared;
  const double         up = (double)number * n, down = (double)number * m;

  if (8 * PetscMin(m, n) >= t->pinned_least) {
    const double one = up / t->pinned_rate + kernel + down / t->pinned_rate, overlapped = PetscMax(kernel, (up + down) / t->duplex_rate);

    return t->pieces_call + reach * PetscMax(one, overlapped) + (1 - reach) * overlapped;
  }
  return t->host_call + kernel + up / (8 * n >= t->pinned_least ? t->pinned_rate : t->staged_rate) + down / (8 * m >= t->pinned_least ? t->pinned_rate : t->staged_rate);
}

/* The features of one of n parts of the rows */
static GPUCSRFeatures Part(const GPUCSRFeatures *f, int n)
{
  GPUCSRFeatures p = *f;

  p.m = (f->m + n - 1) / n;
  p.n = f->m == f->n ? p.m : f->n;
  p.nnz /= n;
  p.sell_stored /= n;
  for (int b = 0; b < GPUCSR_NCLASSES; b++) {
    p.rows[b] = f->rows[b] ? (f->rows[b] + n - 1) / n : 0;
    p.entries[b] /= n;
  }
  for (int b = 0; b < GPUCSR_NBLOCKSIZES; b++) p.blocks[b] /= n;
  for (int q = 0; q < 4; q++) p.sectors[q / 2][q % 2] /= n;
  p.listed /= n;
  p.spread    = PetscMin(f->spread, p.n);
  p.bandwidth = PetscMin(f->bandwidth, PetscMax(p.m, p.n));
  return p;
}

/* The chosen pair, its time and its bytes */
static PetscErrorCode Chosen(GPUCSRDevice dev, const GPUCSRFeatures *f, GPUCSRPrecision p, const GPUCSRRequest *q, GPUCSRCandidate *c)
{
  GPUCSRCandidate *list = NULL;
  GPUCSRChoice     choice;
  GPUCSRRequest    estimate = *q;
  int              n        = 0;

  PetscFunctionBegin;
  if (estimate.select == GPUCSR_SELECT_MEASURE) estimate.select = GPUCSR_SELECT_ESTIMATE; /* measuring begins with the predicted pair */
  PetscCall(GPUCSRChoose(f, p, dev, &estimate, &choice, &list, &n));
  if (n) *c = list[0];
  else *c = (GPUCSRCandidate){.format = choice.format};
  PetscCall(PetscFree(list));
  PetscCheck(c->known, PETSC_COMM_SELF, PETSC_ERR_SUP, "The profile has no line for format %s with kernel %s, so their products cannot be predicted: leave both to be chosen, or `make tune`", c->format->name, c->kernel ? c->kernel->name : "none");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The GPU of the built-in profile, if there is none */
static struct _n_GPUCSRDevice absent = {
  .ops = &GPUCSRBackend_host, .props = {.name = "NVIDIA H200", .l2 = 62914560, .memory = (size_t)141 << 30}
};

/* dev: NULL predicts for the profile's GPU. host: seconds of a product by MATSEQAIJ */
PetscErrorCode MatGPUCSRForetell_Private(GPUCSRDevice dev, const GPUCSRFeatures *f, GPUCSRPrecision p, const GPUCSRRequest *q, double host, MatGPUCSRAdvice *a)
{
  const GPUCSRDevice   d      = dev && dev->ops->kernels ? dev : &absent;
  const double         cache  = (double)d->props.l2;
  const GPUCSRMachine *tuned  = GPUCSRMachineOf(d);
  const size_t         number = GPUCSRTypeSize(GPUCSRVectorType(p));
  const double         m = f->m, n = f->n, longest = PetscMax(m, n);
  const PetscBool      square = (PetscBool)(f->m == f->n);
  GPUCSRCandidate      c;

  PetscFunctionBegin;
  PetscCheck(f->m > 0 && f->n > 0 && f->nnz > 0, PETSC_COMM_SELF, PETSC_ERR_SUP, "A matrix of %d rows, %d columns and %.0f nonzeros: no model covers one without entries", f->m, f->n, (double)f->nnz);
  PetscCall(Chosen(d, f, p, q, &c));
  a->format         = c.format->name;
  a->kernel         = c.kernel ? c.kernel->name : "none";
  a->kernel_product = c.predicted;

  a->product[MAT_GPUCSR_PLACE_CPU]            = host;
  a->product[MAT_GPUCSR_PLACE_HOST_VECTORS]   = HostVectorsTime(m, n, c.predicted, number, f->sampled ? PetscMin(1, f->bandwidth / longest) : 1);
  a->product[MAT_GPUCSR_PLACE_DEVICE_VECTORS] = PetscMax(tuned->device_call, c.predicted);
  a->bytes[MAT_GPUCSR_PLACE_CPU]              = 12.0 * (double)f->nnz + 4 * (m + 1) + 8 * (m + n);
  a->bytes[MAT_GPUCSR_PLACE_HOST_VECTORS]     = c.bytes + (double)number * (m + n);
  a->bytes[MAT_GPUCSR_PLACE_DEVICE_VECTORS]   = c.bytes + 8 * (m + n);
  if (square) {
    a->iteration[MAT_GPUCSR_PLACE_CPU]            = host + tuned->host_iteration + tuned->host_passes * n * tuned->host_number;
    a->iteration[MAT_GPUCSR_PLACE_HOST_VECTORS]   = a->product[MAT_GPUCSR_PLACE_HOST_VECTORS] + tuned->host_passes * n * tuned->host_number;
    a->iteration[MAT_GPUCSR_PLACE_DEVICE_VECTORS] = tuned->loop_iteration + c.predicted + Passes(tuned->loop_passes, n, c.bytes, cache, tuned->vector_cached_rate, tuned->vector_rate);
    a->iteration[MAT_GPUCSR_PLACE_SOLVER]         = Persistent(tuned, &c, n, f->mean, cache);
    a->bytes[MAT_GPUCSR_PLACE_SOLVER]             = c.bytes + 8 * 8 * n;
  }
  for (int k = 0; k < 4; k++) {
    const int      gpus   = 1 << k;
    GPUCSRFeatures part   = Part(f, gpus);
    const double   others = k ? tuned->exchange + 8 * PetscMin(f->spread, n - n / gpus) / tuned->link_rate : 0;

    if (k && (m < 64 * gpus || part.nnz < 1)) break;
    if (k) PetscCall(Chosen(d, &part, p, q, &c));
    a->products[k] = PetscMax(tuned->device_call, c.predicted) + others;
    a->each[k]     = c.bytes + 8.0 * (square ? 8 : 2) * longest / gpus;
    if (square) a->iterations[k] = k ? tuned->meeting_ranks + Persistent(tuned, &c, part.m, f->mean, cache) + others - tuned->exchange : a->iteration[MAT_GPUCSR_PLACE_SOLVER];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Backend auto and small matrices: for host vectors the CPU computes a product of a few thousand entries before the GPU could begin. Decided at each
  product, since vectors and pattern may change. Nothing is moved: the host's MATSEQAIJ is the master copy, and device vectors and solvers still use
  the plan.

  Predictions decide, not measurements: the same program computes the same bits in every run. A growing or shrinking matrix stays in its place until the other place is better by a margin.
*/

/* Should the parent compute this product of x and y (or NULL) to z, although there is a device? */
PetscErrorCode MatGPUCSRHostIsFaster_Private(Mat A, Vec x, Vec y, Vec z, PetscBool *yes)
{
  Mat_SeqGPUCSR         *g    = (Mat_SeqGPUCSR *)A->spptr;
  const MatGPUCSRConfig *c    = &g->base.config;
  Vec                    v[3] = {x, z, y};
  PetscBool              isvecgpu;
  const PetscInt        *i;

  PetscFunctionBegin;
  *yes = PETSC_FALSE;
  PetscCall(MatGPUCSRDecide_Private(A));
  /* only options that the host can serve */
  if (g->block || !g->dev || !g->dev->ops->separate || MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_AUTO) PetscFunctionReturn(PETSC_SUCCESS);
  if (c->smallonhost == 0 || (c->smallonhost < 0 && !g->dev->ops->kernels)) PetscFunctionReturn(PETSC_SUCCESS);
  if (c->precision != MAT_GPUCSR_DOUBLE || c->transposeatassembly || c->request.select != GPUCSR_SELECT_ESTIMATE) PetscFunctionReturn(PETSC_SUCCESS);
  if (!GPUCSRRequestOpen(&c->request) || !GPUCSRRequestOpen(&c->trequest)) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->smallat != 1 + (double)A->nonzerostate) { /* once for each pattern */
    const GPUCSRMachine *t = GPUCSRMachineOf(g->dev), *host = &GPUCSRMachineShared;
    const PetscBool      before = g->small;
    double               entries;

    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
    entries        = (double)i[A->rmap->n];
    g->foretold[0] = host->host_launch + host->host_row * (double)A->rmap->n + host->host_entry * entries;                                       /* a typical core */
    g->foretold[1] = HostVectorsTime((double)A->rmap->n, (double)A->cmap->n, t->small_launch + 12 * entries / t->small_rate, sizeof(double), 1); /* launch, and the bytes of a small matrix, which the cache holds */
    g->small       = (PetscBool)(g->foretold[0] * (before ? 1 / t->small_margin : t->small_margin) < g->foretold[1]);
    if (g->small != before || !g->smallat) PetscCall(PetscInfo(A, "Products of host vectors run on the %s: predicted %g us there, %g on the device\n", g->small ? "host" : "device", 1e6 * g->foretold[0], 1e6 * g->foretold[1]));
    g->smallat = 1 + (double)A->nonzerostate;
  }
  *yes = g->small;
  for (int k = 0; k < 3 && *yes; k++) { /* vectors of PETSc's own on the host: no VECGPU, and no device vector of PETSc's */
    if (!v[k]) continue;
    PetscCall(VecGPUCheck(v[k], &isvecgpu));
    *yes = (PetscBool)(GPUCSRIsType(v[k], VECSEQ) && !isvecgpu);
  }
  if (*yes) PetscCall(MatGPUCSRAdviseFirst_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For the report */
PetscErrorCode MatGPUCSRHostIsFasterWhy_Private(const Mat_SeqGPUCSR *g, char why[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(why, len, "the matrix is small and its vectors are on the host: %.1f us predicted there, %.1f on the device; -mat_gpucsr_backend cuda, or -vec_type gpu, takes the device", 1e6 * g->foretold[0], 1e6 * g->foretold[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
