/*
  Single precision with residual replacement: CG iterates on its own vectors in single precision, and computes b - A x in double from time to time. rules.h has the rules and papers.
*/
#include "gpukspimpl.h"
#include "../../../../mat/impls/gpucsr/blackbox/format/absent.h"
#include "../../../../mat/impls/gpucsr/blackbox/format/bcsr.h"

/* Numbers of the matrix, and not what a format derives from them */
static PetscBool Rounds(const GPUCSRArray *a)
{
  return (PetscBool)(a->values && a->type == GPUCSR_DOUBLE);
}

/* Bytes of a matrix by its layout; single: with values in single precision */
double GPUKSPBytes(const GPUCSRStorage *A, PetscBool single)
{
  double bytes = 0;

  for (int q = 0; q < A->narrays; q++) bytes += (double)A->array[q].count * (double)GPUCSRTypeSize(single && Rounds(&A->array[q]) ? GPUCSR_FLOAT : A->array[q].type);
  return bytes;
}

/* Should the solve run in single precision? If the user asked for single precision and the answer is no, whydouble has the reason */
PetscErrorCode GPUKSPRefineChoose(KSP_GPU *k)
{
  const GPUCSRPlan    *P      = k->op.plan;
  const GPUCSRFormat  *format = P->A.format;
  const GPUCSRMachine *t      = GPUCSRMachineOf(k->op.dev);
  const double         more = GPUKSPBytes(&P->A, PETSC_FALSE) + t->persistent_row * k->n, less = t->single_iterations * (GPUKSPBytes(&P->A, PETSC_TRUE) + t->single_row * k->n);
  const PetscBool      kernels = k->op.dev->ops->kernels;
  const char          *why     = NULL;
  GPUCSRBool           can;
  char                 whynot[128] = "";

  PetscFunctionBegin;
  if (k->precision != KSP_GPU_RESIDUAL_REPLACEMENT) PetscFunctionReturn(PETSC_SUCCESS);
  can = GPUCSRFormatHolds(format, &P->features, whynot, sizeof(whynot));
  PetscCall(PetscStrlcat(whynot, " in single", sizeof(whynot)));
  if (P->A.precision != GPUCSR_PRECISION_DOUBLE) why = "the matrix is not in double";
  else if (k->method != GPUKSP_CG) why = "residual replacement requires the standard conjugate gradients";
  else if (k->live) why = "a monitor or test looks at every iteration";
  else if (k->pc.kind == GPUKSP_PC_BY_PCAPPLY) why = "the preconditioner is PCApply()'s";
  else if (!k->pc.row->rows) why = "the preconditioner is in double";
  else if (k->path != KSP_GPU_PATH_GRAPH && GPUKSPFormatIsTable(format)) why = "stencils have no values to halve, and with equal rows single precision takes many more iterations";
  else if (!can) why = whynot;
  else if (kernels && k->path == KSP_GPU_PATH_PERSISTENT) why = "a persistent kernel was asked for";
  else if (kernels && k->path == KSP_GPU_PATH_AUTO && more - less < t->single_spared) why = "a persistent kernel in double takes less time";
  if (why) PetscCall(PetscStrncpy(k->whydouble, why, sizeof(k->whydouble)));
  else k->refined = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* lane: values of a lane of bcsr, else 0 */
static PetscErrorCode Round(KSP_GPU *k, size_t n, int lane, const double *from, float *to)
{
  PetscFunctionBegin;
  GPUCSRByKernels(k->dev, GPUKSPRound(n, lane, from, to, k->dev->stream));
  PetscCall(GPUCSRWaitStreamOnHost(k->dev->stream));
  for (size_t i = 0; i < n; i++) {
    const double *f = from + GPUKSPPlace(i, lane, sizeof(*from));
    float        *t = to + GPUKSPPlace(i, lane, sizeof(*to));

    if (GPUCSRIsAbsent(f, sizeof(*f))) memset(t, 255, sizeof(*t));
    else *t = (float)*f;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SINGLE_BYTES(n) GPUCSRAlignUp((n) * sizeof(float))

/* A's values, the preconditioner's numbers and the vectors of the iteration, in single precision. The vectors in double exist already */
PetscErrorCode GPUKSPRefineMake(KSP_GPU *k)
{
  static const GPUKSPVectorName has[] = {VEC_X, VEC_R, VEC_P, VEC_W, VEC_Z}; /* the last only if M r is stored */
  const GPUKSPVectors          *v     = &k->persistent.v;
  const GPUCSRStorage          *S     = &k->op.plan->A;
  const size_t                  n = (size_t)k->n, numbers = v->pc ? n : v->block ? n * (size_t)v->bs : 0;
  GPUKSPVectorsSingle          *f     = &k->single.v;
  const int                     nhas  = (int)PETSC_STATIC_ARRAY_LENGTH(has) - (v->explicitpc ? 0 : 1);
  size_t                        bytes = SINGLE_BYTES(numbers) + (size_t)nhas * SINGLE_BYTES(n);
  char                         *p;

  PetscFunctionBegin;
  for (int q = 0; q < S->narrays; q++)
    if (Rounds(&S->array[q])) bytes += SINGLE_BYTES(S->array[q].count);
  PetscCall(GPUCSRBufferGrow(k->dev, bytes, "rounded values and vectors of a solver", &k->single.memory));
  p                           = (char *)k->single.memory.p;
  k->single.rounded           = *S;
  k->single.rounded.precision = GPUCSR_PRECISION_SINGLE;
  for (int q = 0; q < S->narrays; q++) {
    if (!Rounds(&S->array[q])) continue;
    k->single.rounded.array[q].data = p;
    k->single.rounded.array[q].type = GPUCSR_FLOAT;
    PetscCall(Round(k, S->array[q].count, BCSRLane(S->format), (const double *)S->array[q].data, (float *)p));
    p += SINGLE_BYTES(S->array[q].count);
  }
  PetscCall(PetscMemzero(f, sizeof(*f)));
  for (int q = 0; q < nhas; q++, p += SINGLE_BYTES(n)) f->at[has[q]] = (float *)p;
  if (numbers) PetscCall(Round(k, numbers, 0, v->pc ? v->pc : v->block, (float *)p));
  if (v->pc) f->pc = (float *)p;
  if (v->block) f->block = (float *)p;
  f->bs           = v->bs;
  f->from         = f->r;
  f->to           = f->z;
  f->explicitpc   = v->explicitpc;
  f->truex        = v->x;
  f->trueresidual = v->w;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* w = A p in single precision */
PetscErrorCode GPUKSPRefineProduct(KSP_GPU *k)
{
  GPUCSRProduct p = {.alpha = 1, .x = k->single.v.p, .z = k->single.v.w, .last = k->n};

  PetscFunctionBegin;
  GPUCSRByKernels(k->dev, (*k->op.plan->choice.kernel->family->launch)(&k->single.rounded, &p, k->op.plan->choice.kernel->variant, k->dev->stream));
  PetscCall(GPUCSRWaitStreamOnHost(k->dev->stream));
  PetscCall((*k->single.rounded.format->ops->mult)(&k->single.rounded, &p));
  PetscCall(GPUCSRLaunched(k->dev, k->single.rounded.format->name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes the norms of the true residual, which is in w, and continues the iteration from w, in units of its norm */
static PetscErrorCode Residual(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, PetscBool first)
{
  PetscFunctionBegin;
  if (v->explicitpc) PetscCall((*k->pc.row->apply)(k, v->w, v->z, PETSC_FALSE));
  PetscCall(GPUKSPStepRun(ksp, k, GPUKSP_REPLACEMENT_NORMS, v, GPUKSP_STEP_RULE | (first ? GPUKSP_STEP_FIRST : 0) | GPUKSP_STEP_LAST));
  if (k->graph.rulehere) GPUKSPNext(k->method, k->state, first);
  PetscCall(GPUKSPStepRun(ksp, k, GPUKSP_REPLACEMENT_RESIDUAL, NULL, GPUKSP_STEP_ALWAYS));
  if (v->explicitpc) PetscCall(GPUKSPStepRun(ksp, k, GPUKSP_PRECONDITION, NULL, GPUKSP_STEP_ALWAYS));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs the solve that k->state describes, with x and b in place; leaves the outcome in k->state. If single precision gives up, x is the iterate that the last replacement confirmed */
PetscErrorCode GPUKSPRefine(KSP ksp, KSP_GPU *k)
{
  GPUKSPVectors v = k->persistent.v;

  PetscFunctionBegin;
  PetscCall(GPUKSPIterateBegin(ksp, k));
  PetscCall(GPUKSPStart(ksp, k, &v, PETSC_TRUE));
  if (k->state->guesszero) PetscCall(GPUKSPStepRun(ksp, k, GPUKSP_REPLACEMENT_START, &v, GPUKSP_STEP_ALWAYS));
  PetscCall(Residual(ksp, k, &v, PETSC_TRUE));
  PetscCall(GPUKSPLoop(ksp, k, NULL, GPUKSPIterateCG));
  while (k->state->replace && !k->state->giveup) {
    k->seen->replace = k->seen->reason = 0;
    PetscCall(GPUKSPStepRun(ksp, k, GPUKSP_REPLACEMENT_UPDATE, NULL, GPUKSP_STEP_ALWAYS));
    PetscCall(GPUKSPProduct(ksp, k, VEC_X, VEC_W));
    PetscCall(GPUKSPStepRun(ksp, k, GPUKSP_SUBTRACT, &v, GPUKSP_STEP_ALWAYS));
    PetscCall(Residual(ksp, k, &v, PETSC_FALSE));
    PetscCall(GPUKSPLoop(ksp, k, NULL, GPUKSPIterateCG));
  }
  PetscCall(GPUKSPIterateEnd(k));
  if (CGGivenUp(k->state)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUKSPStepRun(ksp, k, GPUKSP_REPLACEMENT_UPDATE, NULL, GPUKSP_STEP_ALWAYS)); /* the steps since the last replacement */
  k->state->scale = 1;
  if (k->trueresidual) PetscCall(GPUKSPTrueNorm(ksp, k, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}
