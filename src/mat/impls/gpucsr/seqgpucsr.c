/*
  MATSEQAIJGPUCSR: MATSEQAIJ whose products run where a plan says. The parent's operations are kept in a copy of its table;
  we replace the products, the diagonal, and what must know of us when a matrix is made, viewed or destroyed. Everything
  else, and everything that changes the matrix, works on the host's CSR, which the plan follows when it is next used.
*/
#include "gpucsrimpl.h"

static PetscErrorCode MatConvert_SeqAIJGPUCSR_SeqAIJ(Mat, MatType, MatReuse, Mat *);

/* What is on the device goes; the next product would make it again */
PetscErrorCode MatGPUCSRPlansDestroy_Private(Mat_SeqGPUCSR *g)
{
  PetscFunctionBegin;
  if (g->dev) {
    const GPUCSRBackendOps *ops  = g->dev->ops;
    const PetscBool         live = (PetscBool)!g->dev->failed[0];

    if (live) {
      PetscCall(ops->activate(g->dev->id));
      PetscCall(GPUCSRDeviceSynchronize(g->dev));
      PetscCall(MatGPUCSRTimersRead_Private(g, 0));
    }
    for (int side = 0; side < 2; side++) PetscCall(GPUCSRPlanDestroy(&g->plan[side]));
    PetscCall(GPUCSRFree(g->dev, g->xbytes, &g->x));
    PetscCall(GPUCSRFree(g->dev, g->zbytes, &g->z));
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
  }
  g->xbytes = g->zbytes = 0;
  g->last               = NULL;
  g->events             = PETSC_FALSE;
  g->lastcolset         = PETSC_FALSE;
  PetscCall(PetscMemzero(&g->timers, sizeof(g->timers)));
  PetscCall(PetscFree(g->rowptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Start over with the next product */
static PetscErrorCode Reset(Mat_SeqGPUCSR *g)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  g->dev       = NULL;
  g->decided   = PETSC_FALSE;
  g->whynot[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device failed this matrix: from now on products are the host's, said once */
PetscErrorCode MatGPUCSRFailed_Private(Mat A, const char message[])
{
  Mat_SeqGPUCSR *g    = (Mat_SeqGPUCSR *)A->spptr;
  const char    *name = g->dev ? g->dev->ops->name : "cuda";

  PetscFunctionBegin;
  PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: a matrix of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns goes on with the products of MATSEQAIJ on the host, because backend %s failed: %s\n", A->rmap->n, A->cmap->n, name, message));
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  g->dev     = NULL;
  g->decided = PETSC_TRUE;
  g->info.fallbacks++;
  PetscCall(PetscSNPrintf(g->whynot, sizeof(g->whynot), "backend %s failed: %s", name, message));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which device, or none and why; once for each configuration */
static PetscErrorCode Decide(Mat A, Mat_SeqGPUCSR *g)
{
  const MatGPUCSRConfig *c = &g->config;
  const PetscInt        *i;
  PetscBool              aij, anyformat, anykernel, tanyformat, tanykernel;

  PetscFunctionBegin;
  if (g->decided) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(c->request.format, "aij", &aij));
  PetscCall(PetscStrcmp(c->request.format, "auto", &anyformat));
  PetscCall(PetscStrcmp(c->request.kernel, "auto", &anykernel));
  PetscCall(PetscStrcmp(c->trequest.format, "auto", &tanyformat));
  PetscCall(PetscStrcmp(c->trequest.kernel, "auto", &tanykernel));
  g->dev = NULL;
  if (aij) {
    PetscCall(PetscStrncpy(g->whynot, "format aij was asked for", sizeof(g->whynot)));
  } else if (!GPUCSR_SCALAR_IS_DOUBLE) {
    PetscCheck(c->backend != MAT_GPUCSR_BACKEND_CUDA, PETSC_COMM_SELF, PETSC_ERR_SUP, "-mat_gpucsr_backend cuda: this PETSc computes with %s, which only the host backend does so far: leave the option out", PetscDefined(USE_COMPLEX) ? "complex numbers" : "another precision than double");
    PetscCall(PetscSNPrintf(g->whynot, sizeof(g->whynot), "this PETSc computes with %s, which only the host does so far", PetscDefined(USE_COMPLEX) ? "complex numbers" : "another precision than double"));
  } else {
    if (c->backend != MAT_GPUCSR_BACKEND_HOST) {
      PetscCall(GPUCSRDeviceOpen("cuda", &g->dev, g->whynot, sizeof(g->whynot)));
      PetscCheck(g->dev || c->backend != MAT_GPUCSR_BACKEND_CUDA, PETSC_COMM_SELF, PETSC_ERR_GPU, "-mat_gpucsr_backend cuda cannot be had: %s; auto would compute on the host", g->whynot);
    } else PetscCall(PetscStrncpy(g->whynot, "backend host was asked for", sizeof(g->whynot)));
    if (!g->dev && (!anyformat || !anykernel || !tanyformat || !tanykernel || c->precision != MAT_GPUCSR_DOUBLE)) {
      char unused[128];

      PetscCall(GPUCSRDeviceOpen("host", &g->dev, unused, sizeof(unused)));
    }
    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
    if (g->dev && (A->rmap->n > INT32_MAX - 1024 || A->cmap->n > INT32_MAX - 1024 || i[A->rmap->n] > INT32_MAX - 1024)) {
      PetscCheck(c->backend != MAT_GPUCSR_BACKEND_CUDA, PETSC_COMM_SELF, PETSC_ERR_SUP, "A block of %" PetscInt_FMT " rows, %" PetscInt_FMT " columns and %" PetscInt_FMT " nonzeros does not fit the 32-bit indices of the device formats: use more ranks",
                 A->rmap->n, A->cmap->n, i[A->rmap->n]);
      g->dev = NULL;
      PetscCall(PetscStrncpy(g->whynot, "its block of this rank does not fit 32-bit indices", sizeof(g->whynot)));
    }
  }
  g->decided = PETSC_TRUE;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  PetscCall(PetscSNPrintf(g->name, sizeof(g->name), "%s%s%s%s%" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt_FMT " nonzeros", ((PetscObject)A)->prefix ? ((PetscObject)A)->prefix : "", ((PetscObject)A)->prefix ? ": " : "",
                          ((PetscObject)A)->name ? ((PetscObject)A)->name : "", ((PetscObject)A)->name ? ", " : "", A->rmap->n, A->cmap->n, i[A->rmap->n]));
  if (!g->dev) PetscCall(PetscInfo(A, "Products are MATSEQAIJ's: %s\n", g->whynot));
  else PetscCall(PetscInfo(A, "Products run on %s device %d\n", g->dev->ops->name, g->dev->id));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Source(Mat A, Mat_SeqGPUCSR *g, GPUCSRSource *s)
{
  const PetscInt *i;
  PetscScalar    *a;

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
  (void)g;
  s->i = i;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A tolerance given as an option that the precision cannot reach is mentioned once */
static PetscErrorCode WarnOfTolerance(Mat A, Mat_SeqGPUCSR *g)
{
  const PetscReal reach = 100 * 6e-8; /* single precision's epsilon, and what a solver loses on top */
  PetscReal       rtol;
  PetscBool       set;

  PetscFunctionBegin;
  if (g->warned || g->precision == GPUCSR_PRECISION_DOUBLE || g->plan[GPUCSR_FORWARD].rounding == 0) PetscFunctionReturn(PETSC_SUCCESS);
  g->warned = PETSC_TRUE;
  PetscCall(PetscOptionsGetReal(NULL, ((PetscObject)A)->prefix, "-ksp_rtol", &rtol, &set));
  if (set && rtol < reach)
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: -ksp_rtol %g asks for more than -mat_gpucsr_precision %s keeps: values are rounded by up to %.1e; what converges solves that rounded system\n", (double)rtol,
                           MatGPUCSRPrecisions[g->config.precision], g->plan[GPUCSR_FORWARD].rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Precision of the plans; that of auto depends on the values */
static PetscErrorCode Precision(Mat A, Mat_SeqGPUCSR *g, const GPUCSRSource *s, GPUCSRPrecision *p)
{
  PetscBool floats;

  PetscFunctionBegin;
  (void)A;
  switch (g->config.precision) {
  case MAT_GPUCSR_SINGLE:
    *p = GPUCSR_PRECISION_SINGLE;
    break;
  case MAT_GPUCSR_MIXED:
    *p = GPUCSR_PRECISION_MIXED;
    break;
  case MAT_GPUCSR_AUTO:
    PetscCall(GPUCSRValuesAreFloats(s, g->dev->threads, &floats));
    if (floats) PetscCall(GPUCSRRequestTakes(&g->config.request, GPUCSR_PRECISION_MIXED, &floats));
    if (floats) PetscCall(GPUCSRRequestTakes(&g->config.trequest, GPUCSR_PRECISION_MIXED, &floats));
    *p = floats ? GPUCSR_PRECISION_MIXED : GPUCSR_PRECISION_DOUBLE;
    break;
  default:
    *p = GPUCSR_PRECISION_DOUBLE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A few values of the host, spread over all of them */
static PetscErrorCode Sample(Mat A, PetscScalar sample[])
{
  const PetscInt *i;
  PetscScalar    *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, &a, NULL));
  for (int k = 0; k < GPUCSR_SAMPLES; k++) {
    const PetscInt n = i[A->rmap->n];

    sample[k] = n ? a[(PetscInt)((double)(n - 1) * k / (GPUCSR_SAMPLES - 1))] : 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The plan of one side made to hold the matrix as it is now */
static PetscErrorCode Update(Mat A, Mat_SeqGPUCSR *g, GPUCSRSide side)
{
  GPUCSRPlan      *P = &g->plan[side], *D = &g->plan[GPUCSR_FORWARD];
  const PetscBool  stale     = (PetscBool)(!P->built || g->pattern[side] != A->nonzerostate);
  GPUCSRPrecision  precision = g->precision;
  PetscObjectState state;
  PetscBool        can = PETSC_TRUE, same;
  PetscScalar      sample[GPUCSR_SAMPLES];
  GPUCSRSource     s;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  /* what was sent at the end of the assembly holds if that assembly is all that was counted since */
  if (g->early && state == g->values[0] + 1 && A->num_ass == g->assemblies + 1) g->values[0] = g->values[1] = state;
  g->early = PETSC_FALSE;
  PetscCall(Sample(A, sample));
  PetscCall(PetscMemcmp(sample, g->sample, sizeof(sample), &same));
  if (!same) g->values[0] = g->values[1] = -1;
  if (!stale && g->values[side] == state) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->foreign) PetscCall(GPUCSRDeviceSynchronize(g->dev)); /* what they read is about to change */
  g->foreign = PETSC_FALSE;
  if (stale) PetscCall(PetscFree(g->rowptr));
  PetscCall(Source(A, g, &s));
  /* judged again when values change: what was exactly a float may not be any more */
  if (side == GPUCSR_FORWARD || !D->built || g->values[GPUCSR_FORWARD] != state) PetscCall(Precision(A, g, &s, &precision));
  if (precision != g->precision) {
    for (int k = 0; k < 2; k++) PetscCall(GPUCSRPlanDestroy(&g->plan[k]));
    g->precision = precision;
  }
  /* the forward plan helps with the transpose only if it is up to date */
  if (D->built && (g->pattern[GPUCSR_FORWARD] != A->nonzerostate || g->values[GPUCSR_FORWARD] != state)) D = NULL;
  if (P->built && !stale) PetscCall(GPUCSRPlanCanRefresh(P, &can));
  if (P->built && !stale && can) {
    PetscCall(PetscLogEventBegin(MAT_GPUCSR_Refresh, A, 0, 0, 0));
    PetscCall(GPUCSRPlanRefresh(P, &s, D));
    PetscCall(PetscLogEventEnd(MAT_GPUCSR_Refresh, A, 0, 0, 0));
    g->info.refreshes++;
  } else if (side == GPUCSR_FORWARD) {
    PetscCall(PetscLogEventBegin(MAT_GPUCSR_Build, A, 0, 0, 0));
    PetscCall(GPUCSRPlanBuild(g->dev, &s, precision, &g->config.request, P));
    PetscCall(PetscLogEventEnd(MAT_GPUCSR_Build, A, 0, 0, 0));
    g->lastcolset = PETSC_FALSE;
    g->info.builds++;
  } else {
    PetscCall(PetscLogEventBegin(MAT_GPUCSR_Transpose, A, 0, 0, 0));
    PetscCall(GPUCSRPlanBuildTranspose(g->dev, &s, D, precision, &g->config.trequest, P));
    PetscCall(PetscLogEventEnd(MAT_GPUCSR_Transpose, A, 0, 0, 0));
    g->info.transpose_builds++;
  }
  g->pattern[side] = A->nonzerostate;
  g->values[side]  = state;
  PetscCall(PetscArraycpy(g->sample, sample, GPUCSR_SAMPLES));
  PetscCall(PetscInfo(A, "%s: format %s, kernel %s, because %s; %.0f bytes on the device\n", side == GPUCSR_FORWARD ? "A" : "Transpose of A", P->A.format->name, P->choice.kernel ? P->choice.kernel->name : "host reference", P->choice.why, GPUCSRPlanBytes(P)));
  PetscCall(WarnOfTolerance(A, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ready: the plan of this side is up to date; otherwise the product is the parent's */
PetscErrorCode MatGPUCSRReady_Private(Mat A, GPUCSRSide side, PetscBool *ready)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Decide(A, g));
  *ready = g->dev ? PETSC_TRUE : PETSC_FALSE;
  if (!g->dev) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->config.backend == MAT_GPUCSR_BACKEND_CUDA) {
    PetscCall(Update(A, g, side));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = Update(A, g, side);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  if (ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU) {
    *ready = PETSC_FALSE;
    if (ierr == PETSC_ERR_GPU) PetscCall(PetscStrncpy(g->dev->failed, attempt.message, sizeof(g->dev->failed)));
    PetscCall(MatGPUCSRFailed_Private(A, attempt.message));
  } else PetscCheck(!ierr, PETSC_COMM_SELF, ierr, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnDevice(Mat A, GPUCSRSide side, Vec x, Vec y, Vec z, PetscBool *wrote)
{
  Mat_SeqGPUCSR *g   = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool      inz = (PetscBool)(y == z), separate = (PetscBool)(y && y != z);
  GPUCSROperand  ox, oy, oz;
  GPUCSRStream   s;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRVecGet_Private(g, x, PETSC_TRUE, PETSC_FALSE, &ox));
  if (separate) PetscCall(MatGPUCSRVecGet_Private(g, y, PETSC_TRUE, PETSC_FALSE, &oy));
  PetscCall(MatGPUCSRVecGet_Private(g, z, inz, PETSC_TRUE, &oz));
  if (inz) oy = oz;
  PetscCall(MatGPUCSRStream_Private(g->dev, &ox, separate ? &oy : NULL, &oz, &s));
  /* the arrays go back to their vectors whether it worked or not */
  ierr = MatGPUCSRApply_Private(A, side, &ox, y ? &oy : NULL, &oz, s, wrote);
  PetscCall(MatGPUCSRVecRestore_Private(g, x, PETSC_TRUE, PETSC_FALSE, &ox));
  if (separate) PetscCall(MatGPUCSRVecRestore_Private(g, y, PETSC_TRUE, PETSC_FALSE, &oy));
  PetscCall(MatGPUCSRVecRestore_Private(g, z, inz, PETSC_TRUE, &oz));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x, z = A x + y, or those with the transpose; y may be NULL, may be z */
static PetscErrorCode Apply(Mat A, GPUCSRSide side, Vec x, Vec y, Vec z)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool      ready, wrote = PETSC_FALSE;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRReady_Private(A, side, &ready));
  if (ready && g->config.backend == MAT_GPUCSR_BACKEND_CUDA) PetscCall(OnDevice(A, side, x, y, z, &wrote));
  else if (ready) {
    PetscCall(GPUCSRAttemptBegin(&attempt));
    ierr = OnDevice(A, side, x, y, z, &wrote);
    PetscCall(GPUCSRAttemptEnd(&attempt));
    if (ierr) {
      ready = PETSC_FALSE;
      if (ierr == PETSC_ERR_GPU) PetscCall(PetscStrncpy(g->dev->failed, attempt.message, sizeof(g->dev->failed)));
      PetscCheck(!wrote || !y || y != z, PETSC_COMM_SELF, ierr, "The device failed while the sum was on its way back into the vector that held a summand: %s", attempt.message);
      PetscCall(MatGPUCSRFailed_Private(A, attempt.message));
    }
  }
  if (!ready) {
    const struct _MatOps *p = &g->parent;

    if (side == GPUCSR_FORWARD) {
      if (y) PetscCall((*p->multadd)(A, x, y, z));
      else PetscCall((*p->mult)(A, x, z));
    } else {
      if (y) PetscCall((*p->multtransposeadd)(A, x, y, z));
      else PetscCall((*p->multtranspose)(A, x, z));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_SeqAIJGPUCSR(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(Apply(A, GPUCSR_FORWARD, x, NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultAdd_SeqAIJGPUCSR(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(Apply(A, GPUCSR_FORWARD, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTranspose_SeqAIJGPUCSR(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(Apply(A, GPUCSR_TRANSPOSE, x, NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTransposeAdd_SeqAIJGPUCSR(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(Apply(A, GPUCSR_TRANSPOSE, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On the device when the vector is there and the plan is double; the host's master copy serves as well otherwise */
static PetscErrorCode MatGetDiagonal_SeqAIJGPUCSR(Mat A, Vec d)
{
  Mat_SeqGPUCSR *g     = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool      ready = PETSC_FALSE, ondevice = PETSC_FALSE;
  GPUCSRDevice   dev;
  GPUCSROperand  o;
  GPUCSRStream   s;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(VecGPUGetDevice(d, &dev));
  ondevice = dev && dev->ops->separate ? PETSC_TRUE : PETSC_FALSE;
#if PetscDefined(HAVE_CUDA)
  {
    PetscBool cuda, kokkos;

    PetscCall(PetscObjectTypeCompareAny((PetscObject)d, &cuda, VECSEQCUDA, VECMPICUDA, VECCUDA, ""));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)d, &kokkos, VECSEQKOKKOS, VECMPIKOKKOS, VECKOKKOS, ""));
    ondevice = (PetscBool)(ondevice || ((cuda || kokkos) && !d->boundtocpu));
  }
#endif
  if (ondevice) PetscCall(MatGPUCSRReady_Private(A, GPUCSR_FORWARD, &ready));
  if (ready && g->dev->ops->separate && g->precision == GPUCSR_PRECISION_DOUBLE) {
    const GPUCSRDeviceFormat *df;

    PetscCall(GPUCSRDeviceFormatGet(g->plan[GPUCSR_FORWARD].A.format, &df));
    if (df) {
      PetscCall(VecSet(d, 0));
      PetscCall(MatGPUCSRVecGet_Private(g, d, PETSC_TRUE, PETSC_TRUE, &o));
      if (o.place == GPUCSR_DEVICE) {
        PetscCall(MatGPUCSRStream_Private(g->dev, &o, NULL, NULL, &s));
        ierr = GPUCSRPlanDiagonal(&g->plan[GPUCSR_FORWARD], o.p, s);
      }
      PetscCall(MatGPUCSRVecRestore_Private(g, d, PETSC_TRUE, PETSC_TRUE, &o));
      PetscCall(ierr);
      if (o.place == GPUCSR_DEVICE) PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscCall((*g->parent.getdiagonal)(A, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_SeqAIJGPUCSR(Mat A, MatAssemblyType type)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool      ready;

  PetscFunctionBegin;
  PetscCall((*g->parent.assemblyend)(A, type));
  if (type == MAT_FINAL_ASSEMBLY && g->config.transposeatassembly && !A->factortype) {
    g->values[0] = g->values[1] = -1; /* PETSc counts the change after us */
    PetscCall(MatGPUCSRReady_Private(A, GPUCSR_FORWARD, &ready));
    if (ready) PetscCall(MatGPUCSRReady_Private(A, GPUCSR_TRANSPOSE, &ready));
    g->assemblies = A->num_ass;
    g->early      = ready;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_SeqAIJGPUCSR(Mat A, MatDuplicateOption op, Mat *B)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall((*g->parent.duplicate)(A, op, B));
  if (!(*B)->spptr) PetscCall(MatConvert_SeqAIJ_SeqAIJGPUCSR(*B, MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, B));
  PetscCall(MatGPUCSRConfigure_Private(*B, &g->config));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* These may put another matrix in place of this one, which would lose what was set */
static PetscErrorCode MatAXPY_SeqAIJGPUCSR(Mat A, PetscScalar a, Mat X, MatStructure str)
{
  const MatGPUCSRConfig c = ((Mat_SeqGPUCSR *)A->spptr)->config;

  PetscFunctionBegin;
  PetscCall((*((Mat_SeqGPUCSR *)A->spptr)->parent.axpy)(A, a, X, str));
  PetscCall(MatGPUCSRReconfigure_Private(A, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTranspose_SeqAIJGPUCSR(Mat A, MatReuse reuse, Mat *B)
{
  const MatGPUCSRConfig c = ((Mat_SeqGPUCSR *)A->spptr)->config;

  PetscFunctionBegin;
  PetscCall((*((Mat_SeqGPUCSR *)A->spptr)->parent.transpose)(A, reuse, B));
  if (reuse != MAT_REUSE_MATRIX) PetscCall(MatGPUCSRReconfigure_Private(*B, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_SeqAIJGPUCSR(Mat A, PetscViewer viewer)
{
  Mat_SeqGPUCSR    *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool         ascii;
  PetscViewerFormat format;

  PetscFunctionBegin;
  PetscCall((*g->parent.view)(A, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (format == PETSC_VIEWER_ASCII_INFO || format == PETSC_VIEWER_ASCII_INFO_DETAIL) PetscCall(MatGPUCSRViewBlock_Private(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetFromOptions_SeqAIJGPUCSR(Mat A, GPUCSROptionItems PetscOptionsObject)
{
  Mat_SeqGPUCSR  *g = (Mat_SeqGPUCSR *)A->spptr;
  MatGPUCSRConfig c = g->config;
  PetscBool       changed;

  PetscFunctionBegin;
  if (g->parent.setfromoptions) PetscCall((*g->parent.setfromoptions)(A, PetscOptionsObject));
  PetscCall(MatGPUCSRConfigOptions_Private(A, &c, &changed, PetscOptionsObject));
  if (changed) PetscCall(MatGPUCSRReconfigure_Private(A, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGPUCSRConfigure_SeqAIJGPUCSR(Mat A, const MatGPUCSRConfig *c)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRConfigCheck_Private(c));
  g->config = *c;
  PetscCall(Reset(g));
  PetscCall(MatGPUCSRVecType_Private(A, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGPUCSRGetConfig_SeqAIJGPUCSR(Mat A, MatGPUCSRConfig *c)
{
  PetscFunctionBegin;
  *c = ((Mat_SeqGPUCSR *)A->spptr)->config;
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

#if PetscDefined(HAVE_DEVICE)
static PetscErrorCode MatBindToCPU_SeqAIJGPUCSR(Mat A, PetscBool cpu)
{
  MatGPUCSRConfig c = ((Mat_SeqGPUCSR *)A->spptr)->config;

  PetscFunctionBegin;
  c.backend     = cpu ? MAT_GPUCSR_BACKEND_HOST : MAT_GPUCSR_BACKEND_AUTO;
  A->boundtocpu = cpu;
  PetscCall(MatGPUCSRConfigure_Private(A, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* Install our operations over the parent's, or take them away: the one place that knows which */
static PetscErrorCode Operations(Mat A, Mat_SeqGPUCSR *g, PetscBool install)
{
  struct _MatOps *o = A->ops, *p = &g->parent;

  PetscFunctionBegin;
  if (install) *p = *o;
#define REPLACE(op, fn) o->op = install ? fn : p->op
  REPLACE(mult, MatMult_SeqAIJGPUCSR);
  REPLACE(multadd, MatMultAdd_SeqAIJGPUCSR);
  REPLACE(multtranspose, MatMultTranspose_SeqAIJGPUCSR);
  REPLACE(multtransposeadd, MatMultTransposeAdd_SeqAIJGPUCSR);
  if (!PetscDefined(USE_COMPLEX)) {
    REPLACE(multhermitiantranspose, MatMultTranspose_SeqAIJGPUCSR);
    REPLACE(multhermitiantransposeadd, MatMultTransposeAdd_SeqAIJGPUCSR);
  }
  REPLACE(getdiagonal, MatGetDiagonal_SeqAIJGPUCSR);
  REPLACE(assemblyend, MatAssemblyEnd_SeqAIJGPUCSR);
  REPLACE(duplicate, MatDuplicate_SeqAIJGPUCSR);
  REPLACE(axpy, MatAXPY_SeqAIJGPUCSR);
  REPLACE(transpose, MatTranspose_SeqAIJGPUCSR);
  REPLACE(view, MatView_SeqAIJGPUCSR);
  REPLACE(setfromoptions, MatSetFromOptions_SeqAIJGPUCSR);
#if PetscDefined(HAVE_DEVICE)
  REPLACE(bindtocpu, MatBindToCPU_SeqAIJGPUCSR);
#endif
#undef REPLACE
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatGPUCSRConfigure_C", install ? MatGPUCSRConfigure_SeqAIJGPUCSR : NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatGPUCSRGetConfig_C", install ? MatGPUCSRGetConfig_SeqAIJGPUCSR : NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatGPUCSRSetUp_C", install ? MatGPUCSRSetUp_SeqAIJGPUCSR : NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatGPUCSRGetInfo_C", install ? MatGPUCSRInfoGet_Private : NULL));
  PetscCall(MatGPUCSRComposeConverters_Private(A, "seq", MatConvert_SeqAIJGPUCSR_SeqAIJ, MatConvert_SeqAIJ_SeqAIJGPUCSR, install));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_SeqAIJGPUCSR(Mat);

static PetscErrorCode Release(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRReportRemove_Private(g)); /* reads timers of living plans */
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  PetscCall(Operations(A, g, PETSC_FALSE));
  A->ops->destroy = g->parent.destroy;
  PetscCall(PetscFree(A->spptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_SeqAIJGPUCSR(Mat A)
{
  PetscFunctionBegin;
  /* after MatHeaderMerge() another matrix has what was here */
  if (A->spptr) PetscCall(Release(A));
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, MATSEQAIJ));
  PetscCall((*A->ops->destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvert_SeqAIJGPUCSR_SeqAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat B = *newmat;

  PetscFunctionBegin;
  (void)type;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(Release(B));
  PetscCall(PetscFree(B->defaultvectype));
  PetscCall(PetscStrallocpy(VECSTANDARD, &B->defaultvectype));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATSEQAIJ));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_SeqAIJ_SeqAIJGPUCSR(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat             B = *newmat;
  Mat_SeqGPUCSR  *g;
  MatGPUCSRConfig c;
  PetscBool       changed;

  PetscFunctionBegin;
  (void)type;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(PetscNew(&g));
  B->spptr = g;
  PetscCall(Operations(B, g, PETSC_TRUE));
  B->ops->destroy = MatDestroy_SeqAIJGPUCSR;
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATSEQAIJGPUCSR));
  PetscCall(MatGPUCSRReportAdd_Private(g));
  PetscCall(MatGPUCSRConfigDefault_Private(&c));
  PetscObjectOptionsBegin((PetscObject)B);
  PetscCall(MatGPUCSRConfigOptions_Private(B, &c, &changed, PetscOptionsObject));
  PetscOptionsEnd();
  PetscCall(MatGPUCSRConfigure_Private(B, &c));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
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
  /* -mat_seqaij_type may have made it ours already */
  if (!A->spptr) PetscCall(MatConvert_SeqAIJ_SeqAIJGPUCSR(A, MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
