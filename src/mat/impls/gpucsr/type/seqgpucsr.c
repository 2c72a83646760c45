/*
  MATSEQAIJGPUCSR: a MATSEQAIJ with products on a device. A copy of the parent's table keeps its operations; this type replaces the
  products, the diagonal, and the creation, view and destruction of a matrix. All other operations work on the host's CSR; the next product updates
  the plan.
*/
#include "gpucsrimpl.h"

/* Frees the device's data; the next product makes it again */
PetscErrorCode MatGPUCSRPlansDestroy_Private(Mat_SeqGPUCSR *g)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRMirrorDestroy_Private(&g->mirror));
  if (g->dev) {
    const GPUCSRBackendOps *ops = g->dev->ops;
    PetscBool               live;

    if (!g->dev->failed[0]) {
      GPUCSRAttempt attempt;

      GPUCSRTry(&attempt, ops->activate(g->dev->id)); /* waits for this matrix's work */
      GPUCSRThen(&attempt, GPUCSRDeviceSynchronize(g->dev));
      GPUCSRThen(&attempt, MatGPUCSRTimersRead_Private(g, 0));
      if (attempt.error) PetscCall(PetscStrncpy(g->dev->failed, attempt.message, sizeof(g->dev->failed))); /* an error here loses nothing */
    }
    live = (PetscBool)!g->dev->failed[0];
    for (int side = 0; side < 2; side++) PetscCall(GPUCSRPlanDestroy(&g->plan[side]));
    PetscCall(GPUCSRBufferFree(g->dev, &g->x));
    PetscCall(GPUCSRBufferFree(g->dev, &g->z));
    for (int k = 0; k < GPUCSR_TIMERS; k++) {
      if (g->timers.begin[k] && live) {
        PetscCall(ops->eventdestroy(g->dev->id, g->timers.begin[k]));
        PetscCall(ops->eventdestroy(g->dev->id, g->timers.end[k]));
      }
    }
    for (int k = 0; k < GPUCSR_PIECES && g->events && live; k++) {
      PetscCall(ops->eventdestroy(g->dev->id, g->sent[k]));
      PetscCall(ops->eventdestroy(g->dev->id, g->computed[k]));
    }
    if (g->read && live) PetscCall(ops->eventdestroy(g->dev->id, g->read));
  }
  g->last       = NULL;
  g->read       = NULL;
  g->events     = PETSC_FALSE;
  g->lastcolset = PETSC_FALSE;
  PetscCall(PetscMemzero(&g->timers, sizeof(g->timers)));
  PetscCall(PetscFree(g->rowptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next product starts over */
static PetscErrorCode Configured(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  g->dev        = NULL;
  g->decided    = PETSC_FALSE;
  g->small      = PETSC_FALSE;
  g->smallat    = 0;
  g->whynot[0]  = 0;
  g->warning[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix leaves its device, which is closed next */
static PetscErrorCode MatRelease(void *matrix)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)matrix;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRKeep_Private(g));
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  g->dev     = NULL;
  g->decided = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSRLivingList MatGPUCSRLiving = {GPUCSR_FINAL_MAT, MatRelease, NULL};

/* For the report */
static PetscErrorCode Name(Mat A, Mat_SeqGPUCSR *g)
{
  const PetscInt *i;
  const char     *prefix = ((PetscObject)A)->prefix, *name = ((PetscObject)A)->name;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  g->nonzeros = i ? (double)i[A->rmap->n] : 0;
  if (g->block && name) PetscCall(PetscStrncpy(g->name, name, sizeof(g->name)));
  else PetscCall(PetscSNPrintf(g->name, sizeof(g->name), "%s%s%s%s%" PetscInt_FMT " x %" PetscInt_FMT, prefix ? prefix : "", prefix ? ": " : "", name ? name : "", name ? ", " : "", A->rmap->n, A->cmap->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees the device's data; products are the parent's until the matrix is configured again */
PetscErrorCode MatGPUCSRLeave_Private(Mat A, const char why[])
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;

  PetscFunctionBegin;
  if (g->decided && !g->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRFetch_Private(A));
  if (!g->decided) PetscCall(Name(A, g));
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  g->dev     = NULL;
  g->decided = PETSC_TRUE;
  PetscCall(PetscStrncpy(g->whynot, why, sizeof(g->whynot)));
  g->warning[0] = 0; /* of a plan that is gone */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prints the warning of this matrix. After ranks agreed: rank prints, and have ranks of size have the same warning; all 0 otherwise */
PetscErrorCode MatGPUCSRWarn_Private(Mat A, PetscMPIInt rank, PetscMPIInt have, PetscMPIInt size)
{
  Mat_SeqGPUCSR *g         = (Mat_SeqGPUCSR *)A->spptr;
  char           where[96] = "";

  PetscFunctionBegin;
  if (!g->warning[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (size > 1) PetscCall(PetscSNPrintf(where, sizeof(where), " (said by rank %d, the same on %d of %d ranks)", (int)rank, (int)have, (int)size));
  else if (!size && GPUCSRSettingsGlobal.localsize > 1) PetscCall(PetscSNPrintf(where, sizeof(where), " (said by rank %d, once for all of this node)", (int)PetscGlobalRank));
  if (size || GPUCSROnceMine(g->warning)) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: %s%s\n", g->warning, where));
  else PetscCall(PetscInfo(A, "Said by another rank: %s\n", g->warning));
  g->warning[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device failed for A: the host computes later products of A, and of the other block of a parallel matrix (NULL: there is none) */
PetscErrorCode MatGPUCSRFailed_Private(Mat A, Mat other, const GPUCSRAttempt *attempt)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  char           why[512];

  PetscFunctionBegin;
  if (attempt->error == PETSC_ERR_GPU && g->dev) PetscCall(PetscStrncpy(g->dev->failed, attempt->message, sizeof(g->dev->failed)));
  PetscCall(PetscSNPrintf(why, sizeof(why), "backend %s failed: %s", g->dev ? g->dev->ops->name : "cuda", attempt->message));
  PetscCall(MatGPUCSRLeave_Private(A, why));
  if (other) PetscCall(MatGPUCSRLeave_Private(other, why));
  g->info.fallbacks++;
  PetscCall(PetscSNPrintf(g->warning, sizeof(g->warning), "a matrix of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns goes on with the products of MATSEQAIJ on the host, because %s", A->rmap->n, A->cmap->n, why));
  if (!g->block) PetscCall(MatGPUCSRWarn_Private(A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device, or none and the reason; once for each configuration */
PetscErrorCode MatGPUCSRDecide_Private(Mat A)
{
  Mat_SeqGPUCSR         *g       = (Mat_SeqGPUCSR *)A->spptr;
  const MatGPUCSRConfig *c       = &g->base.config;
  const MatGPUCSRBackend backend = MatGPUCSRBackendOf(A);
  const PetscInt        *i;

  PetscFunctionBegin;
  if (g->decided) PetscFunctionReturn(PETSC_SUCCESS);
  g->dev = NULL;
  if (!strcmp(c->request.format, "aij")) {
    PetscCall(PetscStrncpy(g->whynot, "format aij was asked for", sizeof(g->whynot)));
  } else if (!GPUCSR_SCALAR_IS_DOUBLE) {
    PetscCheck(backend != MAT_GPUCSR_BACKEND_CUDA, PETSC_COMM_SELF, PETSC_ERR_SUP, "-mat_gpucsr_backend cuda: this PETSc computes with %s, which only the host backend does so far: leave the option out", PetscDefined(USE_COMPLEX) ? "complex numbers" : "another precision than double");
    PetscCall(PetscSNPrintf(g->whynot, sizeof(g->whynot), "this PETSc computes with %s, which only the host does so far", PetscDefined(USE_COMPLEX) ? "complex numbers" : "another precision than double"));
  } else {
    if (backend != MAT_GPUCSR_BACKEND_HOST) {
      PetscCall(GPUCSRDeviceOpen("cuda", &g->dev, g->whynot, sizeof(g->whynot)));
      PetscCheck(g->dev || backend != MAT_GPUCSR_BACKEND_CUDA, PETSC_COMM_SELF, PETSC_ERR_GPU, "-mat_gpucsr_backend cuda is not possible here: %s; auto would compute on the host", g->whynot);
    } else PetscCall(PetscStrncpy(g->whynot, c->backend == backend ? "backend host was asked for" : "MatBindToCPU() bound it to the CPU", sizeof(g->whynot)));
    if (!g->dev && (!GPUCSRRequestOpen(&c->request) || !GPUCSRRequestOpen(&c->trequest) || c->precision != MAT_GPUCSR_DOUBLE)) {
      char unused[128];

      PetscCall(GPUCSRDeviceOpen("host", &g->dev, unused, sizeof(unused)));
    }
    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
    if (g->dev && (A->rmap->n > INT32_MAX - 1024 || A->cmap->n > INT32_MAX - 1024 || i[A->rmap->n] > INT32_MAX - 1024)) {
      PetscCheck(backend != MAT_GPUCSR_BACKEND_CUDA, PETSC_COMM_SELF, PETSC_ERR_SUP, "A block of %" PetscInt_FMT " rows, %" PetscInt_FMT " columns and %" PetscInt_FMT " nonzeros does not fit the 32-bit indices of the device formats: use more ranks",
                 A->rmap->n, A->cmap->n, i[A->rmap->n]);
      g->dev = NULL;
      PetscCall(PetscStrncpy(g->whynot, "its block of this rank does not fit 32-bit indices", sizeof(g->whynot)));
    }
  }
  g->decided = PETSC_TRUE;
  PetscCall(Name(A, g));
  if (!g->dev) PetscCall(PetscInfo(A, "Products are MATSEQAIJ's: %s\n", g->whynot));
  else PetscCall(PetscInfo(A, "Products run on %s device %d\n", g->dev->ops->name, g->dev->id));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's CSR, the source of every format */
PetscErrorCode MatGPUCSRSource_Private(Mat A, GPUCSRSource *s)
{
  Mat_SeqGPUCSR      *g = (Mat_SeqGPUCSR *)A->spptr;
  const GPUCSRMirror *m = &g->mirror;
  const PetscInt     *i;
  PetscScalar        *a;
  PetscBool           current;

  PetscFunctionBegin;
  s->m = (int)A->rmap->n;
  s->n = (int)A->cmap->n;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &s->j, &a, NULL));
  s->a   = a;
  s->nnz = (int64_t)i[s->m];
#if defined(PETSC_USE_64BIT_INDICES)
  if (!g->rowptr) {
    PetscCall(PetscMalloc1(s->m + 1, &g->rowptr));
    for (int r = 0; r <= s->m; r++) g->rowptr[r] = (int32_t)i[r];
  }
  s->i = g->rowptr;
#else
  s->i = i;
#endif
  current     = (PetscBool)(m->csr.format && m->pattern == A->nonzerostate && m->columns == (const void *)s->j && m->csr.m == s->m && m->csr.n == s->n && m->csr.nnz == s->nnz && m->values == GPUCSRStateOf(A) && !g->firstvalues && !g->copy);
  s->resident = current ? &m->csr : NULL;
  if (m->ahead && !m->csr.dev->ops->kernels) { /* the host computes in place of a device */
    PetscCall(GPUCSRWaitStreamOnHost(m->csr.dev->stream));
    s->a = (const PetscScalar *)m->csr.array[CSR_VAL].data;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Warns once if a tolerance given as an option is below the precision */
static PetscErrorCode WarnOfTolerance(Mat A, Mat_SeqGPUCSR *g)
{
  const PetscReal reach = 100 * 6e-8; /* single precision's epsilon, and a solver's loss */
  PetscReal       rtol;
  PetscBool       set;

  PetscFunctionBegin;
  if (g->warned || g->precision == GPUCSR_PRECISION_DOUBLE || g->plan[GPUCSR_FORWARD].rounding == 0) PetscFunctionReturn(PETSC_SUCCESS);
  g->warned = PETSC_TRUE;
  PetscCall(PetscOptionsGetReal(NULL, ((PetscObject)A)->prefix, "-ksp_rtol", &rtol, &set));
  if (!set || rtol >= reach) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(g->warning, sizeof(g->warning), "-ksp_rtol %g asks for more than -mat_gpucsr_precision %s keeps: values are rounded by up to %.1e; what converges solves that rounded system", (double)rtol, MatGPUCSRPrecisions[g->base.config.precision],
                          g->plan[GPUCSR_FORWARD].rounding));
  if (!g->block) PetscCall(MatGPUCSRWarn_Private(A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the host has counted or not: values that changed since the last update are no longer those of the plans and the mirror. sample: of the values now */
static PetscErrorCode Notice(Mat A, Mat_SeqGPUCSR *g, PetscObjectState state, PetscScalar sample[])
{
  PetscBool same, changed;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRHeaderReplaced_Private(A));
  /* an upload at the end of an assembly stays valid if only that assembly was counted since */
  if (g->early && state == g->values[0] + 1 && A->num_ass == g->assemblies + 1) {
    if (g->mirror.values == g->values[0]) g->mirror.values = state;
    g->values[0] = g->values[1] = state;
  }
  g->early = PETSC_FALSE;
  if (g->base.config.precision != MAT_GPUCSR_DOUBLE) PetscCall(MatGPUCSRFetch_Private(A)); /* the host rounds */
  PetscCall(MatGPUCSRUncountedChange_Private(A, g, state, &changed));
  PetscCall(MatGPUCSRSample_Private(A, GPUCSR_SAMPLES, sample));
  PetscCall(PetscMemcmp(sample, g->sample, sizeof(g->sample), &same));
  if ((!same && !g->mirror.ahead) || changed) g->values[0] = g->values[1] = g->mirror.values = -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Updates the plan of one side to the matrix' state */
static PetscErrorCode Update(Mat A, Mat_SeqGPUCSR *g, GPUCSRSide side)
{
  GPUCSRPlan              *P = &g->plan[side], *D = &g->plan[GPUCSR_FORWARD];
  const PetscBool          stale     = (PetscBool)(!P->built || g->pattern[side] != A->nonzerostate);
  const MatGPUCSRPrecision asked     = g->base.config.precision;
  GPUCSRPrecision          precision = g->precision;
  PetscBool                fresh     = PETSC_FALSE;
  PetscScalar              sample[GPUCSR_SAMPLES];
  const GPUCSRCosts        before = P->costs;
  GPUCSRSource             s;
  const PetscObjectState   state = GPUCSRStateOf(A);
  double                   filled, convert;

  PetscFunctionBegin;
  PetscCall(Notice(A, g, state, sample));
  PetscCall(MatGPUCSRUnspare_Private(A));
  if (!stale && g->values[side] == state) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->foreign) PetscCall(GPUCSRDeviceSynchronize(g->dev)); /* their input is about to change */
  g->foreign = PETSC_FALSE;
  if (stale) PetscCall(PetscFree(g->rowptr));
  PetscCall(MatGPUCSRShare_Private(A, (PetscBool)(stale && side == GPUCSR_FORWARD)));
  PetscCall(MatGPUCSRSource_Private(A, &s));
  /* decided anew when values change: auto looks at the values, which may no longer be exact floats */
  if (side == GPUCSR_FORWARD || !D->built || g->values[GPUCSR_FORWARD] != state) {
    if (asked == MAT_GPUCSR_SINGLE) precision = GPUCSR_PRECISION_SINGLE;
    else precision = asked == MAT_GPUCSR_MIXED || (asked == MAT_GPUCSR_AUTO && GPUCSRValuesAreFloats(&s, g->dev->threads)) ? GPUCSR_PRECISION_MIXED : GPUCSR_PRECISION_DOUBLE;
  }
  if (precision != g->precision) {
    for (int k = 0; k < 2; k++) PetscCall(GPUCSRPlanDestroy(&g->plan[k]));
    g->precision = precision;
  }
  /* only a current forward plan helps with the transpose */
  if (D->built && (g->pattern[GPUCSR_FORWARD] != A->nonzerostate || g->values[GPUCSR_FORWARD] != state)) D = NULL;
  if (P->built && !stale) fresh = GPUCSRPlanCanRefresh(P);
  if (fresh) {
    PetscCall(GPUCSRLogBegin(&MAT_GPUCSR_Refresh, g->dev, A));
    PetscCall(GPUCSRPlanRefresh(P, &s, D, &fresh));
    PetscCall(GPUCSRLogEnd(&MAT_GPUCSR_Refresh, g->dev, A));
  }
  if (fresh) g->info.refreshes++;
  else if (side == GPUCSR_FORWARD) {
    PetscCall(GPUCSRLogBegin(&MAT_GPUCSR_Build, g->dev, A));
    PetscCall(GPUCSRPlanBuild(g->dev, &s, precision, &g->base.config.request, P));
    PetscCall(GPUCSRLogEnd(&MAT_GPUCSR_Build, g->dev, A));
    g->lastcolset = PETSC_FALSE;
    g->info.builds++;
  } else {
    PetscCall(GPUCSRLogBegin(&MAT_GPUCSR_Transpose, g->dev, A));
    PetscCall(GPUCSRPlanBuildTranspose(g->dev, &s, D, precision, &g->base.config.trequest, P));
    PetscCall(GPUCSRLogEnd(&MAT_GPUCSR_Transpose, g->dev, A));
    g->info.transpose_builds++;
  }
  if (side == GPUCSR_FORWARD) {
    static PetscInt64 last = 0; /* of all matrices */

    g->version.values = ++last;
    if (stale) g->version.pattern = last;
  }
  g->pattern[side] = A->nonzerostate;
  g->values[side]  = state;
  filled           = g->dev->ops->kernels ? 0 : P->costs.upload - before.upload;
  convert          = P->costs.convert - before.convert + filled;
  g->filled += filled;
  /* one pass writes entries and padding: the time is divided by their shares */
  if (P->A.stored > P->A.nnz) g->info.pad_time += convert * (double)(P->A.stored - P->A.nnz) / (double)P->A.stored;
  PetscCall(PetscArraycpy(g->sample, sample, GPUCSR_SAMPLES));
  PetscCall(PetscInfo(A, "%s: format %s, kernel %s, because %s; %.0f bytes on the device\n", side == GPUCSR_FORWARD ? "A" : "Transpose of A", P->A.format->name, P->choice.kernel ? P->choice.kernel->name : "host reference", P->choice.why, GPUCSRPlanBytes(P)));
  PetscCall(WarnOfTolerance(A, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ready: the plan of this side is up to date, so the product is not the parent's */
PetscErrorCode MatGPUCSRReady_Private(Mat A, GPUCSRSide side, PetscBool *ready)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRDecide_Private(A));
  PetscCall(MatGPUCSRAdviseFirst_Private(A));
  *ready = g->dev ? PETSC_TRUE : PETSC_FALSE;
  if (!g->dev) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTryIf(MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA, &attempt, Update(A, g, side));
  if (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU) {
    *ready = PETSC_FALSE;
    PetscCall(MatGPUCSRFailed_Private(A, NULL, &attempt));
  } else PetscCheck(!attempt.error, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prepares both blocks of a parallel matrix, or none: a single block on the device is of no use. Ao NULL: there is one block. warns: prints their warnings */
PetscErrorCode MatGPUCSRBlocksReady_Private(Mat Ad, Mat Ao, GPUCSRSide side, PetscBool warns, PetscBool *ready)
{
  Mat const b[2] = {Ad, Ao};

  PetscFunctionBegin;
  *ready = PETSC_TRUE;
  for (int k = 0; k < 2 && b[k] && *ready; k++) {
    PetscCall(MatGPUCSRReady_Private(b[k], side, ready));
    if (!*ready && b[1 - k]) PetscCall(MatGPUCSRLeave_Private(b[1 - k], ((Mat_SeqGPUCSR *)b[k]->spptr)->whynot));
  }
  for (int k = 0; k < 2 && b[k] && warns; k++) PetscCall(MatGPUCSRWarn_Private(b[k], 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnDevice(Mat A, GPUCSRSide side, Vec x, Vec y, Vec z, PetscBool *wrote)
{
  const GPUCSRDevice dev = ((Mat_SeqGPUCSR *)A->spptr)->dev;
  GPUCSRVectors      v   = {.x = x, .y = y, .z = z};
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  ierr = MatGPUCSRVectorsGet_Private(dev, &v);
  if (!ierr) ierr = MatGPUCSRApply_Private(A, side, &v.ox, y ? &v.oy : NULL, &v.oz, v.stream, wrote);
  PetscCall(MatGPUCSRVectorsRestore_Private(dev, &v)); /* after an error, too */
  PetscFunctionReturn(ierr);
}

/* MatProduct_SeqAIJGPUCSR() by MATSEQAIJ */
PetscErrorCode MatGPUCSRParentProduct_Private(Mat A, GPUCSRSide side, Vec x, Vec y, Vec z)
{
  Mat_SeqGPUCSR        *g = (Mat_SeqGPUCSR *)A->spptr;
  const struct _MatOps *p = &g->base.parent;
  double                begin;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  begin = GPUCSRNow();
  if (side == GPUCSR_FORWARD) {
    if (y) PetscCall((*p->multadd)(A, x, y, z));
    else PetscCall((*p->mult)(A, x, z));
    g->info.aij_products++;
  } else {
    if (y) PetscCall((*p->multtransposeadd)(A, x, y, z));
    else PetscCall((*p->multtranspose)(A, x, z));
    g->info.aij_transpose_products++;
  }
  g->info.aij_time += GPUCSRNow() - begin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x, z = A x + y, or those with the transpose; y may be NULL, may be z */
static PetscErrorCode MatProduct_SeqAIJGPUCSR(Mat A, GPUCSRSide side, Vec x, Vec y, Vec z)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool      ready, wrote = PETSC_FALSE;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRHostIsFaster_Private(A, x, y, z, &ready));
  if (ready) {
    PetscCall(MatGPUCSRParentProduct_Private(A, side, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRReady_Private(A, side, &ready));
  PetscCall(MatGPUCSRWarn_Private(A, 0, 0, 0)); /* a block multiplied by itself prints its own warnings */
  if (ready) {
    GPUCSRTryIf(MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA, &attempt, OnDevice(A, side, x, y, z, &wrote));
    if (attempt.error) {
      ready = PETSC_FALSE;
      if (attempt.error == PETSC_ERR_GPU) PetscCall(PetscStrncpy(g->dev->failed, attempt.message, sizeof(g->dev->failed)));
      PetscCheck(!wrote || !y || y != z, PETSC_COMM_SELF, attempt.error, "The device failed while the sum was on its way back into the vector that held a summand: %s", attempt.message);
      PetscCall(MatGPUCSRFailed_Private(A, NULL, &attempt));
      PetscCall(MatGPUCSRWarn_Private(A, 0, 0, 0));
    }
  }
  if (!ready) PetscCall(MatGPUCSRParentProduct_Private(A, side, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal by way of the device's memory; d: zeros on the host */
static PetscErrorCode DiagonalToHost(GPUCSRDevice dev, GPUCSRPlan *P, GPUCSROperand *d)
{
  const size_t   n = (size_t)P->A.m;
  GPUCSRBuffer   m = {NULL, 0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(dev, sizeof(double) * n, "a diagonal", &m));
  ierr = GPUCSRUpload(dev, m.p, GPUCSR_DOUBLE, d->p, GPUCSR_DOUBLE, n, d->pinned, dev->stream, NULL);
  GPUCSRKeep(&ierr, GPUCSRPlanDiagonal(P, m.p, dev->stream));
  GPUCSRKeep(&ierr, GPUCSRDownload(dev, d->p, GPUCSR_DOUBLE, m.p, GPUCSR_DOUBLE, n, d->pinned, dev->stream));
  GPUCSRKeep(&ierr, dev->ops->streamsynchronize(dev->id, dev->stream));
  PetscCall(GPUCSRBufferFree(dev, &m));
  PetscFunctionReturn(ierr);
}

/* The diagonal of a double plan on dev. done: the format gives a diagonal, and s is the stream of its work */
PetscErrorCode MatGPUCSRPlanDiagonal_Private(GPUCSRDevice dev, GPUCSRPlan *P, Vec d, GPUCSRStream *s, PetscBool *done)
{
  GPUCSROperand  o;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr = PETSC_SUCCESS;
  const PetscInt n    = d->map->n;

  PetscFunctionBegin;
  *done = (PetscBool)(n == P->A.m && (GPUCSRDeviceFormatOf(P->A.format) || !dev->ops->kernels)); /* other vectors: the parent raises the error */
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecSet(d, 0));
  PetscCall(MatGPUCSRVecGet_Private(dev, d, PETSC_TRUE, PETSC_TRUE, &o));
  *s = dev->stream;
  if (o.place == GPUCSR_DEVICE) ierr = MatGPUCSRStream_Private(dev, &o, NULL, NULL, s);
  if (!ierr && (o.place == GPUCSR_DEVICE || !dev->ops->separate)) ierr = GPUCSRPlanDiagonal(P, o.p, *s);
  else if (!ierr) {
    GPUCSRTry(&attempt, DiagonalToHost(dev, P, &o)); /* after an error the caller has another way */
    *done = (PetscBool)!attempt.error;
  }
  PetscCall(MatGPUCSRVecRestore_Private(dev, d, PETSC_TRUE, PETSC_TRUE, &o));
  PetscFunctionReturn(ierr);
}

/* Runs on the device if the vector and a double plan are there, else on the host's master copy */
static PetscErrorCode MatGetDiagonal_SeqAIJGPUCSR(Mat A, Vec d)
{
  Mat_SeqGPUCSR *g     = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool      ready = PETSC_FALSE, ondevice = PETSC_FALSE;
  GPUCSRDevice   dev;
  GPUCSRStream   s;

  PetscFunctionBegin;
  PetscCall(VecGPUGetDevice(d, &dev));
  ondevice = dev && dev->ops->separate ? PETSC_TRUE : PETSC_FALSE;
  if (ondevice && g->mirror.ahead && g->base.config.precision != MAT_GPUCSR_DOUBLE) ondevice = PETSC_FALSE; /* the host would round the values */
  if (ondevice) PetscCall(MatGPUCSRReady_Private(A, GPUCSR_FORWARD, &ready));
  if (ready && g->precision == GPUCSR_PRECISION_DOUBLE) {
    PetscCall(MatGPUCSRPlanDiagonal_Private(g->dev, &g->plan[GPUCSR_FORWARD], d, &s, &ready));
    if (ready && s != g->dev->stream) g->foreign = PETSC_TRUE;
    if (ready) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRDiagonal_Private(A, d, &ready));
  if (!ready) PetscCall((*g->base.parent.getdiagonal)(A, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_SeqAIJGPUCSR(Mat A, MatAssemblyType type)
{
  Mat_SeqGPUCSR         *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscScalar           *values;
  const PetscObjectState before = GPUCSRStateOf(A);
  PetscBool              ready;

  PetscFunctionBegin;
  PetscCall((*g->base.parent.assemblyend)(A, type));
  PetscCall(MatGPUCSRWatch_Private(A));
  if (g->mirror.assembling && g->mirror.values == before && A->insertmode == NOT_SET_VALUES) g->mirror.values = GPUCSRStateOf(A) + 1; /* PETSc counts the assembly after this function */
  g->mirror.assembling = PETSC_FALSE;
  if (type == MAT_FINAL_ASSEMBLY && !A->num_ass && A->insertmode == NOT_SET_VALUES) { /* a first assembly without MatSetValues(): the values are written uncounted */
    if (!g->firstvalues) PetscCall(PetscMalloc1(GPUCSR_FIRST_SAMPLES, &g->firstvalues));
    PetscCall(MatGPUCSRSample_Private(A, GPUCSR_FIRST_SAMPLES, g->firstvalues));
    g->firststate = GPUCSRStateOf(A) + 1; /* PETSc counts the assembly after this function */
  }
  PetscCall(MatSeqAIJGetCSRAndMemType(A, NULL, NULL, &values, NULL));
  if (type == MAT_FINAL_ASSEMBLY && g->base.config.transposeatassembly && !A->factortype && values) {
    g->values[0] = g->values[1] = -1; /* PETSc counts the change after this function */
    PetscCall(MatGPUCSRReady_Private(A, GPUCSR_FORWARD, &ready));
    if (ready) PetscCall(MatGPUCSRReady_Private(A, GPUCSR_TRANSPOSE, &ready));
    g->assemblies = A->num_ass;
    g->early      = ready;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGPUCSRSetUp_SeqAIJGPUCSR(Mat A, PetscBool transpose)
{
  PetscBool ready;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRReady_Private(A, GPUCSR_FORWARD, &ready));
  if (ready && transpose) PetscCall(MatGPUCSRReady_Private(A, GPUCSR_TRANSPOSE, &ready));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRViewBlock_Private(Mat A, PetscViewer viewer)
{
  PetscBool ready;

  PetscFunctionBegin;
  if (A->assembled) PetscCall(MatGPUCSRReady_Private(A, GPUCSR_FORWARD, &ready)); /* a view shows the choice, so it must be made */
  PetscCall(MatGPUCSRDescribe_Private(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReleaseSeq(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRReportRemove_Private(g)); /* reads timers of living plans */
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  PetscCall(PetscFree(g->firstvalues));
  PetscCall(PetscFree(g->copy));
  PetscCall(PetscFree(g->kept));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each matrix numbers its patterns from another number on: PETSc keeps the number of a matrix that takes the place of another (MatHeaderMerge(), in MatAXPY()), and its data would pass for that of an old pattern. A later pattern has a larger number: some versions set up a PC for a new pattern only then */
static PetscErrorCode Created(Mat A)
{
  static PetscObjectState created = 0;

  PetscFunctionBegin;
  created         = 1 + PetscMax(created, A->nonzerostate >> 28); /* PETSc counts up to each entry as a change */
  A->nonzerostate = created << 28;
  PetscCall(MatGPUCSRReportAdd_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const MatGPUCSRKind kind = {
  .name        = MATSEQAIJGPUCSR,
  .parent      = MATSEQAIJ,
  .seq         = "seq",
  .size        = sizeof(Mat_SeqGPUCSR),
  .created     = Created,
  .release     = ReleaseSeq,
  .configured  = Configured,
  .product     = MatProduct_SeqAIJGPUCSR,
  .getdiagonal = MatGetDiagonal_SeqAIJGPUCSR,
  .axpy        = MatAXPY_SeqAIJGPUCSR,
  .inplace     = MatGPUCSRInPlace_Private,
  .assemblyend = MatAssemblyEnd_SeqAIJGPUCSR,
  .view        = MatGPUCSRViewBlock_Private,
  .setup       = MatGPUCSRSetUp_SeqAIJGPUCSR,
  .getinfo     = MatGPUCSRInfoGet_Private,
  .toaij       = MatGPUCSRToAIJ_Private,
  .fromaij     = MatConvert_SeqAIJ_SeqAIJGPUCSR,
};

PetscErrorCode MatConvert_SeqAIJ_SeqAIJGPUCSR(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  return MatGPUCSRFromAIJ_Private(A, &kind, reuse, newmat);
}

/*MC
  MATSEQAIJGPUCSR - "seqaijgpucsr", the one-process form of `MATGPUCSR`

  Level: beginner

.seealso: `MATGPUCSR`, `MATMPIAIJGPUCSR`, `MatCreateSeqAIJGPUCSR()`
M*/
PetscErrorCode MatCreate_SeqAIJGPUCSR(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSetType(A, MATSEQAIJ));
  /* -mat_seqaij_type may have converted it already */
  if (!A->spptr) PetscCall(MatConvert_SeqAIJ_SeqAIJGPUCSR(A, MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
