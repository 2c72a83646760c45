/*
  A choice by measuring: products of the matrix itself.
*/
#include "plan.h"

/* Frees a measured candidate's storage; CSR's arrays belong to the caller */
static PetscErrorCode Forget(GPUCSRStorage *A)
{
  PetscFunctionBegin;
  if (!A->format) PetscFunctionReturn(PETSC_SUCCESS);
  if (GPUCSRIsCSR(A->format)) PetscCall(GPUCSRFree(A->dev, A->work.count * GPUCSRTypeSize(A->work.type), &A->work.data));
  else PetscCall(GPUCSRStorageDestroy(A));
  PetscCall(PetscMemzero(A, sizeof(*A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  GPUCSRPlan   *plan;
  GPUCSRProduct product;
} Timed;

static PetscErrorCode LaunchTimed(void *ctx)
{
  const Timed *t = (const Timed *)ctx;

  return GPUCSRPlanProduct(t->plan, &t->product, t->plan->A.dev->stream);
}

/* What all candidates are measured with */
typedef struct {
  GPUCSREvent   e[2];
  GPUCSRProduct product;
} Clock;

/* A measured candidate, -1: none, and its storage */
typedef struct {
  int           candidate;
  GPUCSRStorage A;
} Runner;

static PetscErrorCode Measure(GPUCSRPlan *T, int products, Clock *clock, double *seconds)
{
  Timed timed = {T, clock->product};

  return GPUCSRDeviceClock(T->A.dev, clock->e, LaunchTimed, &timed, products, seconds);
}

/* The number of candidates to measure: those with predictions near the best */
static int Candidates(const GPUCSRPlan *P, int budget)
{
  const GPUCSRMachine *t = &GPUCSRMachineShared;
  int                  n = 0;

  while (n < P->ncandidates && n < (int)t->measure_most && n < budget / (int)t->measure_each && P->candidate[n].usable && P->candidate[n].known && (n < 2 || P->candidate[n].predicted <= t->measure_within * P->candidate[0].predicted)) n++;
  return n;
}

/* Measures a few products of candidate c, and keeps its storage if it is among the two fastest so far */
static PetscErrorCode Try(GPUCSRStorage *csr, GPUCSRPlan *P, int c, int few, Clock *clock, Runner best[2])
{
  GPUCSRCandidate *k = &P->candidate[c];
  GPUCSRPlan       T = {
          .choice = {k->format, k->kernel, ""}
  };
  Runner        mine    = {.candidate = c};
  GPUCSRAttempt attempt = {0};

  PetscFunctionBegin;
  if (GPUCSRIsCSR(k->format)) {
    T.A           = *csr;
    T.A.work.data = NULL;
  } else GPUCSRTry(&attempt, GPUCSRStorageFromCSR(csr, &P->features, k->format, &T.A));
  GPUCSRThen(&attempt, GPUCSRPlanPrepare(&T));
  if (attempt.error) { /* too large after all, for instance; after a failure of the device all would fail */
    k->usable = PETSC_FALSE;
    PetscCall(PetscStrncpy(k->why, attempt.message, sizeof(k->why)));
    PetscCall(Forget(&T.A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUCSRPlanProduct(&T, &clock->product, csr->dev->stream)); /* the first product may wait for its code to be loaded */
  PetscCall(Measure(&T, few, clock, &k->measured));
  mine.A = T.A;
  for (int place = 0; place < 2 && mine.candidate >= 0; place++) {
    const Runner other = best[place];

    if (other.candidate >= 0 && P->candidate[other.candidate].measured <= P->candidate[mine.candidate].measured) continue;
    best[place] = mine;
    mine        = other;
  }
  PetscCall(Forget(&mine.A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Times the candidates with the best predictions on the matrix itself: a few products for each, then the rest of the budget for the two fastest.
  Leaves the storage of the fastest candidate in P->A, unless that is CSR.
*/
PetscErrorCode GPUCSRPlanMeasure(GPUCSRDevice dev, const GPUCSRRequest *q, GPUCSRStorage *csr, GPUCSRPlan *P)
{
  const size_t vector = GPUCSRTypeSize(GPUCSRVectorType(csr->precision));
  const int    budget = q->budget ? q->budget : 50, n = Candidates(P, budget);
  void        *x = NULL, *z = NULL;
  Runner       best[2] = {{.candidate = -1}, {.candidate = -1}};
  Clock        clock;
  double       t0;

  PetscFunctionBegin;
  if (n < 2) PetscFunctionReturn(PETSC_SUCCESS);
  const int few = PetscMax(2, 6 * budget / 10 / n - 2), many = PetscMax(1, (budget - n * (few + 2)) / 2 - 1);

  t0 = GPUCSRNow();
  PetscCall(GPUCSRMalloc(dev, vector * (size_t)csr->n, "x of measured products", &x));
  PetscCall(GPUCSRMalloc(dev, vector * (size_t)csr->m, "z of measured products", &z));
  PetscCall(dev->ops->zero(dev->id, x, vector * (size_t)csr->n, dev->stream));
  for (int k = 0; k < 2; k++) PetscCall(dev->ops->eventcreate(dev->id, PETSC_TRUE, &clock.e[k]));
  clock.product = (GPUCSRProduct){.alpha = 1, .last = csr->m, .x = x, .z = z};
  for (int c = 0; c < n; c++) PetscCall(Try(csr, P, c, few, &clock, best));
  /* measures the two fastest again, and puts the faster one first */
  if (best[1].candidate >= 0) {
    for (int place = 0; place < 2; place++) {
      GPUCSRCandidate *k = &P->candidate[best[place].candidate];
      GPUCSRPlan       T = {
              .choice = {k->format, k->kernel, ""},
                .A = best[place].A
      };

      PetscCall(Measure(&T, many, &clock, &k->measured));
    }
    if (P->candidate[best[1].candidate].measured < P->candidate[best[0].candidate].measured) {
      const Runner first = best[0];

      best[0] = best[1];
      best[1] = first;
    }
  }
  for (int k = 0; k < 2; k++) PetscCall(dev->ops->eventdestroy(dev->id, clock.e[k]));
  PetscCall(GPUCSRFree(dev, vector * (size_t)csr->n, &x));
  PetscCall(GPUCSRFree(dev, vector * (size_t)csr->m, &z));
  PetscCall(Forget(&best[1].A));
  PetscCheck(best[0].candidate >= 0, PETSC_COMM_SELF, PETSC_ERR_SUP, "No candidate could be measured: %s", P->candidate[0].why);
  GPUCSRCandidatesPromote(P->candidate, best[0].candidate);
  P->choice.format = P->candidate[0].format;
  P->choice.kernel = P->candidate[0].kernel;
  PetscCall(PetscSNPrintf(P->choice.why, sizeof(P->choice.why), "it was the fastest of %d that were measured: %.1f us", n, 1e6 * P->candidate[0].measured));
  if (GPUCSRIsCSR(P->choice.format)) PetscCall(Forget(&best[0].A));
  else P->A = best[0].A;
  P->costs.measure += GPUCSRNow() - t0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
