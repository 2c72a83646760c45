/*
  Measuring: on a GPU a plan of A, and one of its transpose, take the fastest of the candidates that were timed, and a budget too small for two of
  them leaves the predicted one. A request by name measures nothing. The host measures nothing.

  //TEST name="host" args="-backend host"
  //TEST name="cuda" args="-backend cuda" gpu=1
*/
static char help[] = "Tests choices by measuring.\n";

#include "../src/mat/impls/gpucsr/blackbox/plan/plan.h"
#include "zoo.h"
#include <string.h>

/* A plan built with this request, and its measurements */
static PetscErrorCode Plan(GPUCSRDevice d, const GPUCSRSource *s, const GPUCSRRequest *q, PetscBool trans, int *measured, GPUCSRPlan *P)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(P, sizeof(*P)));
  if (trans) PetscCall(GPUCSRPlanBuildTranspose(d, s, NULL, GPUCSR_PRECISION_DOUBLE, q, P));
  else PetscCall(GPUCSRPlanBuild(d, s, GPUCSR_PRECISION_DOUBLE, q, P));
  *measured = 0;
  for (int k = 0; k < P->ncandidates; k++) *measured += P->candidate[k].measured > 0;
  PetscCheck(!P->ncandidates || P->candidate[0].kernel == P->choice.kernel, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The first candidate, %s, is not the one taken, %s", P->candidate[0].kernel->name, P->choice.kernel->name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestPlan(GPUCSRDevice d, const GPUCSRSource *s)
{
  GPUCSRRequest q = {.format = "auto", .kernel = "auto", .select = GPUCSR_SELECT_MEASURE};
  GPUCSRPlan    P;
  int           n;

  PetscFunctionBegin;
  for (int trans = 0; trans < 2; trans++) {
    PetscCall(Plan(d, s, &q, (PetscBool)trans, &n, &P));
    if (d->ops->separate) {
      double best = P.candidate[0].measured;

      PetscCheck(n >= 2 && n <= 6 && strstr(P.choice.why, "measured"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d candidates measured, because %s", n, P.choice.why);
      for (int k = 0; k < P.ncandidates; k++) PetscCheck(!(P.candidate[k].measured > 0) || P.candidate[k].measured >= 0.7 * best, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s was faster than what was taken", P.candidate[k].kernel->name);
      PetscCheck(P.costs.measure > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Measuring took no time");
    } else PetscCheck(n == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The host measured %d candidates", n);
    PetscCall(GPUCSRPlanDestroy(&P));
    PetscCall(PetscStrncpy(q.kernel, "csr_scalar", sizeof(q.kernel)));
    PetscCall(Plan(d, s, &q, (PetscBool)trans, &n, &P));
    PetscCheck(n == 0 && !strcmp(P.choice.kernel->name, "csr_scalar"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "csr_scalar was asked for, %s taken after %d measurements", P.choice.kernel->name, n);
    PetscCall(GPUCSRPlanDestroy(&P));
    PetscCall(PetscStrncpy(q.kernel, "auto", sizeof(q.kernel)));
  }

  q.budget = 4; /* not enough for two candidates: predicted instead */
  PetscCall(Plan(d, s, &q, PETSC_FALSE, &n, &P));
  PetscCheck(n == 0 && strstr(P.choice.why, "predicted"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d measured with a budget of 4 products, because %s", n, P.choice.why);
  PetscCall(GPUCSRPlanDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char         backend[32] = "host", why[512];
  GPUCSRDevice d;
  GPUCSRSource s;
  Zoo          z;
  int32_t     *i;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &d, why, sizeof(why)));
  PetscCheck(d, PETSC_COMM_SELF, PETSC_ERR_SUP, "-backend %s: %s", backend, why);
  PetscCall(ZooCreate(ZOO_RANDOM, PETSC_FALSE, &z));
  PetscCall(PetscMalloc1(z.m + 1, &i));
  for (PetscInt r = 0; r <= z.m; r++) i[r] = (int32_t)z.i[r];
  s = (GPUCSRSource){(int)z.m, (int)z.n, i[z.m], i, z.j, z.a, NULL};
  PetscCall(TestPlan(d, &s));
  PetscCall(PetscFree(i));
  PetscCall(ZooDestroy(&z));
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
