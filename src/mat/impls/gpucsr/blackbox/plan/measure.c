/*
  A choice by measuring: products of the matrix itself.
*/
#include "plan.h"
#include <petsctime.h>

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

/*
  Times the candidates with the best predictions on the matrix itself: a few products for each, then the rest of the budget for the two fastest.
  Leaves the storage of the fastest candidate in P->A, unless that is CSR.
*/
PetscErrorCode GPUCSRPlanMeasure(GPUCSRDevice dev, const GPUCSRRequest *q, GPUCSRStorage *csr, GPUCSRPlan *P)
{
  const size_t   vector = GPUCSRTypeSize(GPUCSRVectorType(csr->precision));
  const int      budget = q->budget ? q->budget : 50;
  int            n = 0, best[2] = {-1, -1}, few, many;
  GPUCSREvent    e[2];
  void          *x = NULL, *z = NULL;
  GPUCSRStorage  kept[2] = {{0}};
  GPUCSRProduct  p       = {.alpha = 1, .last = csr->m};
  PetscLogDouble t0, t1;

  PetscFunctionBegin;
  PetscCall(PetscTime(&t0));
  while (n < P->ncandidates && n < (int)GPUCSRMachineShared.measure_most && n < budget / (int)GPUCSRMachineShared.measure_each && P->candidate[n].usable && P->candidate[n].known &&
         (n < 2 || P->candidate[n].predicted <= GPUCSRMachineShared.measure_within * P->candidate[0].predicted))
    n++;
  if (n < 2) PetscFunctionReturn(PETSC_SUCCESS);
  few  = PetscMax(2, 6 * budget / 10 / n - 2);
  many = PetscMax(1, (budget - n * (few + 2)) / 2 - 1);
  PetscCall(GPUCSRMalloc(dev, vector * (size_t)csr->n, "x of measured products", &x));
  PetscCall(GPUCSRMalloc(dev, vector * (size_t)csr->m, "z of measured products", &z));
  PetscCall(dev->ops->zero(dev->id, x, vector * (size_t)csr->n, dev->stream));
  for (int k = 0; k < 2; k++) PetscCall(dev->ops->eventcreate(dev->id, PETSC_TRUE, &e[k]));
  p.x = x;
  p.z = z;
  for (int c = 0; c < n; c++) {
    GPUCSRCandidate *k = &P->candidate[c];
    GPUCSRPlan       T = {
            .choice = {k->format, k->kernel, ""}
    };
    Timed         timed   = {&T, p};
    GPUCSRAttempt attempt = {0};

    if (GPUCSRIsCSR(k->format)) {
      T.A           = *csr;
      T.A.work.data = NULL;
    } else GPUCSRTry(&attempt, GPUCSRStorageFromCSR(csr, &P->features, k->format, &T.A));
    GPUCSRThen(&attempt, GPUCSRPlanPrepare(&T));
    if (attempt.error) { /* too large after all, for instance; after a failure of the device all would fail */
      k->usable = PETSC_FALSE;
      PetscCall(PetscStrncpy(k->why, attempt.message, sizeof(k->why)));
      PetscCall(Forget(&T.A));
      continue;
    }
    PetscCall(GPUCSRPlanProduct(&T, &p, dev->stream)); /* the first product may wait for its code to be loaded */
    PetscCall(GPUCSRDeviceClock(dev, e, LaunchTimed, &timed, few, &k->measured));
    for (int place = 0, mine = c; place < 2 && mine >= 0; place++) { /* among the two fastest so far? */
      const int           other = best[place];
      const GPUCSRStorage A     = kept[place];

      if (other >= 0 && P->candidate[other].measured <= P->candidate[mine].measured) continue;
      best[place] = mine;
      kept[place] = T.A;
      mine        = other;
      T.A         = A;
    }
    PetscCall(Forget(&T.A));
  }
  for (int place = 0; place < 2 && best[1] >= 0; place++) {
    GPUCSRCandidate *k = &P->candidate[best[place]];
    GPUCSRPlan       T = {
            .choice = {k->format, k->kernel, ""},
              .A = kept[place]
    };
    Timed timed = {&T, p};

    PetscCall(GPUCSRDeviceClock(dev, e, LaunchTimed, &timed, many, &k->measured));
  }
  if (best[1] >= 0 && P->candidate[best[1]].measured < P->candidate[best[0]].measured) {
    const GPUCSRStorage A = kept[0];

    best[0] = best[1];
    kept[0] = kept[1];
    kept[1] = A;
  }
  for (int k = 0; k < 2; k++) PetscCall(dev->ops->eventdestroy(dev->id, e[k]));
  PetscCall(GPUCSRFree(dev, vector * (size_t)csr->n, &x));
  PetscCall(GPUCSRFree(dev, vector * (size_t)csr->m, &z));
  PetscCall(Forget(&kept[1]));
  PetscCheck(best[0] >= 0, PETSC_COMM_SELF, PETSC_ERR_SUP, "No candidate could be measured: %s", P->candidate[0].why);
  PetscCall(GPUCSRCandidatesPromote(P->candidate, best[0]));
  P->choice.format = P->candidate[0].format;
  P->choice.kernel = P->candidate[0].kernel;
  PetscCall(PetscSNPrintf(P->choice.why, sizeof(P->choice.why), "it was the fastest of %d that were measured: %.1f us", n, 1e6 * P->candidate[0].measured));
  if (GPUCSRIsCSR(P->choice.format)) PetscCall(Forget(&kept[0]));
  else P->A = kept[0];
  PetscCall(PetscTime(&t1));
  P->costs.measure += t1 - t0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
