/*
  Plans of CSR matrices on the device. The arrays stay their owner's.
*/
#include "plan.h"

/* Entries of the longest row, above so many times the mean, for which threads that share rows wait */
#define UNEVEN 32

#define RESIDENT 2048 /* threads of a processor */

/*
  Threads a row by its mean length, two entries a load, in floats four; more threads where the rows do not fill the device. All threads of a row wait for its pointers, so a long row has few. An inspection takes
  longer than it would save on the matrices that come here
*/
static const char *KernelOf(const GPUCSRStorage *csr, double mean, int longest, PetscBool floats)
{
  int threads = mean <= 4 ? 2 : mean <= 8 ? 4 : 8;

  if (longest > UNEVEN * (mean + 8)) return "csr_adaptive";
  while (threads < 32 && mean > 2 * threads && (double)csr->m * threads < RESIDENT * (double)csr->dev->props.processors) threads *= 2;
  switch (threads) {
  case 2:
    return "csr_vector2";
  case 4:
    return "csr_vector4";
  case 8:
    return floats ? "csr_vector8_wide4" : "csr_vector8";
  case 16:
    return "csr_vector16";
  default:
    return "csr_vector32";
  }
}

/* All of a plan of csr but its arrays */
static void Describe(const GPUCSRStorage *csr, int longest, PetscBool floats, GPUCSRPlan *P)
{
  const double mean = (double)csr->nnz / PetscMax(1, csr->m);

  P->features      = (GPUCSRFeatures){.m = csr->m, .n = csr->n, .nnz = csr->nnz, .mean = mean, .max = longest};
  P->choice.format = csr->format;
  P->choice.kernel = GPUCSRKernelFind(KernelOf(csr, mean, longest, floats));
  P->waited        = csr->dev->stream;
  P->built         = PETSC_TRUE;
}

/* A plan of csr, in CSR. longest: the longest row, or 0 if it is unknown. New values in the arrays are new values of the plan */
PetscErrorCode GPUCSRPlanLend(const GPUCSRStorage *csr, int longest, GPUCSRPlan *P)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRPlanReturn(P));
  Describe(csr, longest, PETSC_FALSE, P);
  PetscCall(GPUCSRStorageLend(csr, &P->A));
  P->A.extent.width = longest;
  PetscCall(GPUCSRPlanPrepare(P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RoundSteps(const GPUCSRPlan *like, GPUCSRPlan *P)
{
  const GPUCSRRequest any = {.format = "auto", .kernel = "auto"};
  GPUCSRChoice        c   = P->choice;
  GPUCSRStorage       csr = P->A;

  PetscFunctionBegin;
  if (like && csr.dev->ops->kernels) {
    P->features = like->features;
    PetscCall(GPUCSRChoose(&P->features, csr.precision, csr.dev, &any, &c, NULL, NULL));
    if (GPUCSRIsCSR(c.format)) {
      P->choice         = c;
      P->A.extent.width = P->features.max;
    } else {
      PetscCall(PetscMemzero(&P->A, sizeof(P->A)));
      P->A.dev   = csr.dev;
      P->pattern = csr; /* goes with the plan after an error */
      PetscCall(GPUCSRStorageFromCSR(&csr, &P->features, c.format, &P->A));
      P->choice = c;
      PetscCall(GPUCSRStorageDestroy(&P->pattern));
    }
  }
  PetscCall(GPUCSRPlanPrepare(P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A plan of csr in single precision. The features of `like`, a plan of csr, decide the format; without it the format is CSR, with the pattern of csr. New values in csr do not change the plan
*/
PetscErrorCode GPUCSRPlanRound(const GPUCSRStorage *csr, const GPUCSRPlan *like, int longest, GPUCSRPlan *P)
{
  const size_t   n = (size_t)csr->nnz;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanReturn(P));
  Describe(csr, longest, PETSC_TRUE, P);
  ierr                = GPUCSRStorageLend(csr, &P->A);
  P->A.lent           = CSR_VAL;
  P->A.precision      = GPUCSR_PRECISION_SINGLE;
  P->A.array[CSR_VAL] = (GPUCSRArray){"val", GPUCSR_FLOAT, PETSC_TRUE, n, NULL};
  if (!ierr) ierr = GPUCSRMalloc(csr->dev, sizeof(float) * n, "float values", &P->A.array[CSR_VAL].data);
  if (!ierr) ierr = (*GPUCSRHelpers(csr->dev)->convert)(csr->dev, (int)n, csr->array[CSR_VAL].data, GPUCSR_FLOAT, P->A.array[CSR_VAL].data, csr->dev->stream);
  P->A.extent.width = longest;
  if (!ierr) ierr = RoundSteps(like, P);
  if (ierr) PetscCall(GPUCSRPlanReturn(P));
  PetscFunctionReturn(ierr);
}

/* Destroys the plan, not the lent arrays. A plan of zeros is allowed */
PetscErrorCode GPUCSRPlanReturn(GPUCSRPlan *P)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRPlanDestroy(P));
  PetscCall(PetscMemzero(P, sizeof(*P)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
