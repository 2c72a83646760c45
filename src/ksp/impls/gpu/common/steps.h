#pragma once

/* The steps of the solvers, and their vectors, in double and in single precision */
#include <stdint.h>
#include "rules.h"

/*
  The vectors of a solve; no method uses all vectors. Most names come from the papers' algorithms. Further vectors:

    rp, ph, sh   BiCGStab: the shadow residual, and M p and M s with right preconditioning
    p2, v2       in a persistent kernel: p and v of the previous iteration
*/
#define GPUKSP_EACH_VECTOR(each) each(X, x) each(B, b) each(R, r) each(P, p) each(W, w) each(Z, z) each(S, s) each(T, t) each(V, v) each(RP, rp) each(PH, ph) each(SH, sh) each(P2, p2) each(V2, v2)

typedef enum {
#define GPUKSP_ENUMERATOR(NAME, name) VEC_##NAME,
  GPUKSP_EACH_VECTOR(GPUKSP_ENUMERATOR)
#undef GPUKSP_ENUMERATOR
  GPUKSP_VECTORS
} GPUKSPVectorName;

typedef enum {
#define GPUKSP_STEP(name, ...) GPUKSP_##name,
#include "steplist.h"
#undef GPUKSP_STEP
  GPUKSP_STEPS
} GPUKSPStep;

/* Columns of steplist.h */
typedef enum {
  GPUKSP_FORWARDS,
  GPUKSP_BACKWARDS,
  GPUKSP_FUSED,
  GPUKSP_APART
} GPUKSPOrder;

typedef struct {
  int         sums, reads, gathers;
  GPUKSPOrder order;
} GPUKSPStepKind;

#define GPUKSP_STEP(name, with_double, with_single, sums, reads, gathers, order) {sums, reads, gathers, GPUKSP_##order},
#if defined(__CUDACC__)
constexpr
#else
static const
#endif
  GPUKSPStepKind GPUKSPStepKinds[] = {
#include "steplist.h"
};
#undef GPUKSP_STEP

/* A product may take the sums of the next step: (q, z), (z, z), (q, q), (u, z) and (u, q) of its result z with vectors q and u. Returns the place of sum k among these */
GPUKSP_RULE int GPUKSPStepPart(GPUKSPStep s, int k)
{
  return s == GPUKSP_NORMS ? 2 - k : k;
}

GPUKSP_RULE void GPUKSPNorms(double r, double z, double sum[])
{
  sum[SUM_RR] += r * r;
  sum[SUM_ZZ] += z * z;
  sum[SUM_RZ] += r * z;
}

#define GPUKSP_NUMBER      double
#define GPUKSP_NAMED(name) name
#include "stepvectors.h"
#undef GPUKSP_NUMBER
#undef GPUKSP_NAMED
#define GPUKSP_NUMBER      float
#define GPUKSP_NAMED(name) name##Single
#include "stepvectors.h"
#undef GPUKSP_NUMBER
#undef GPUKSP_NAMED

/* Does the solve rest, for good or until the residual has been replaced? */
GPUKSP_RULE int GPUKSPRests(const volatile GPUKSPState *s)
{
  return s->reason || s->replace || s->giveup;
}

/* Applies the rule of a step's sums, if there is one: on the host after the step, on the device in the same launch */
GPUKSP_RULE void GPUKSPStepRule(GPUKSPStep step, GPUKSPState *s, const double sum[], int first)
{
  switch (step) {
  case GPUKSP_BNORM:
    s->bnorm = GPUKSPNorm(s, sum);
    break;
  case GPUKSP_NORMS:
  case GPUKSP_FLEXIBLE_NORMS:
  case GPUKSP_CG_RESIDUAL:
  case GPUKSP_CG1_NORMS:
    if (first) CGInit(s, sum);
    else CGResidual(s, sum);
    if (s->refined) CGReplace(s, sum);
    break;
  case GPUKSP_REPLACEMENT_NORMS:
    CGTrueResidual(s, sum, first);
    break;
  case GPUKSP_CG_CURVATURE:
    CGCurvature(s, sum[0]);
    break;
  case GPUKSP_BCGS_START:
    BCGSInit(s, sum[0]);
    break;
  case GPUKSP_BCGS_V:
    BCGSDirection(s, sum[0]);
    break;
  case GPUKSP_BCGS_T:
    BCGSStabilize(s, sum[0], sum[1], sum[2]);
    BCGSPredict(s, sum[3], sum[4]);
    break;
  case GPUKSP_BCGS_ADVANCE:
    BCGSResidual(s, sum[0], s->delta);
    break;
  default:
    break;
  }
}

/* The rule after the convergence test of a rule or the host; nothing until a pending replacement of the residual is done */
GPUKSP_RULE void GPUKSPNext(GPUKSPMethod m, GPUKSPState *s, int first)
{
  if (s->replace || s->giveup) return;
  switch (m) {
  case GPUKSP_CG:
    if (first || CGGoesOn(s)) CGBegin(s);
    break;
  case GPUKSP_CG_SINGLE_REDUCTION:
    if (first || CGGoesOn(s)) CGBeginSingle(s);
    break;
  case GPUKSP_BCGS:
    if (first) BCGSBegin(s);
    else BCGSNext(s);
    break;
  }
}
