/*
  Passes of a cycle on the host, for the host as device and for its stand-ins.
*/
#include "cycle.h"

PetscErrorCode GPUMGPassRun(GPUCSRDevice dev, const GPUMGPass *p, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGPassDevice(p, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int i = 0; i < p->n * (1 + p->more); i++) GPUMGPassRow(p, i);
  PetscCall(GPUCSRLaunched(dev, "a step of a smoother"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define DENSE(X) \
  for (int i = 0; i < n; i++) \
    for (int c = 0; c < k; c++) { \
      double sum = 0; \
\
      for (int j = 0; j < n; j++) sum += ((const X *)A)[(int64_t)i * n + j] * ((const X *)x)[(int64_t)j * k + c]; \
      ((X *)z)[(int64_t)i * k + c] = (X)sum; \
    }

PetscErrorCode GPUMGDense(GPUCSRDevice dev, GPUCSRBool floats, int n, int k, const void *A, const void *x, void *z, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGDenseDevice(floats, n, k, A, x, z, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  if (floats) DENSE(float)
  else DENSE(double)
  PetscCall(GPUCSRLaunched(dev, "a coarse solve"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGFirst(GPUCSRDevice dev, const GPUMGEnds *e, const GPUMGPass *p, GPUCSRStream s)
{
  const double *from = (const double *)e->from;
  double        most = 0;

  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGFirstDevice(e, p, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int i = 0; i < e->n; i++) most = fmax(most, fabs(from[i]));
  e->work[0] = GPUMGScale(most);
  for (int i = 0; i < e->n; i++) GPUMGFirstRow(e, p, e->work[0], i);
  PetscCall(GPUCSRLaunched(dev, "the start of a cycle in floats"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGWiden(GPUCSRDevice dev, const GPUMGEnds *e, const GPUCSRSums *sums, GPUCSRStream s)
{
  GPUCSRProduct p = {.z = e->to, .last = e->n};

  PetscFunctionBegin;
  if (sums) p.sums = *sums;
  GPUCSRByKernels(dev, GPUMGWidenDevice(e, &p, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int i = 0; i < e->n; i++) ((double *)e->to)[i] = ((const float *)e->from)[i] * (1 / e->work[0]);
  if (sums) GPUCSRReferenceSums(&p);
  if (sums) *sums->parts = 1;
  PetscCall(GPUCSRLaunched(dev, "the end of a cycle in floats"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KrylovSums(GPUCSRDevice dev, const GPUMGKrylov *k, int step, GPUCSRStream s)
{
  double sum[3] = {0, 0, 0};

  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGKrylovSumsDevice(k, step, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int i = 0; i < k->n; i++) GPUMGKrylovSum(k, step, i, sum);
  for (int q = 0; q < 2 + step; q++) k->part[(2 * step + q) * GPUMG_KRYLOV_PARTS] = sum[q];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KrylovRows(GPUCSRDevice dev, const GPUMGKrylov *k, int step, GPUCSRStream s)
{
  double sum[GPUMG_KRYLOV_SUMS], f[2];

  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGKrylovRowsDevice(k, step, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int q = 0; q < 2 + 3 * step; q++) sum[q] = k->part[q * GPUMG_KRYLOV_PARTS];
  GPUMGKrylovFactors(sum, step, f);
  for (int i = 0; i < k->n; i++) GPUMGKrylovRow(k, step, f, i);
  PetscCall(GPUCSRLaunched(dev, "a step of a K-cycle"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGKrylovStep(GPUCSRDevice dev, const GPUMGKrylov *k, int step, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(KrylovSums(dev, k, step, s));
  PetscCall(KrylovRows(dev, k, step, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SumsOfRank(GPUCSRDevice dev, const GPUMGKrylov *k, int step, double sum[], GPUCSRStream s)
{
  const size_t n = (size_t)(2 + step) * GPUMG_KRYLOV_PARTS;
  double      *part;

  PetscFunctionBegin;
  PetscCall(dev->ops->zero(dev->id, k->part + (size_t)(2 * step) * GPUMG_KRYLOV_PARTS, sizeof(double) * n, s));
  PetscCall(KrylovSums(dev, k, step, s));
  PetscCall(PetscMalloc1(n, &part));
  PetscCall(GPUCSRRead(dev, part, k->part + (size_t)(2 * step) * GPUMG_KRYLOV_PARTS, sizeof(double) * n));
  for (int q = 0; q < 2 + step; q++) {
    sum[q] = 0;
    for (int b = 0; b < GPUMG_KRYLOV_PARTS; b++) sum[q] += part[q * GPUMG_KRYLOV_PARTS + b];
  }
  PetscCall(PetscFree(part));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RowsOfRank(GPUCSRDevice dev, const GPUMGKrylov *k, int step, const double sum[], GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(dev->ops->zero(dev->id, k->part + (size_t)(2 * step) * GPUMG_KRYLOV_PARTS, sizeof(double) * (size_t)(2 + step) * GPUMG_KRYLOV_PARTS, s));
  for (int q = 0; q < 2 + step; q++) PetscCall(GPUCSRUpload(dev, k->part + (size_t)(2 * step + q) * GPUMG_KRYLOV_PARTS, GPUCSR_DOUBLE, &sum[q], GPUCSR_DOUBLE, 1, PETSC_FALSE, s, NULL));
  PetscCall(KrylovRows(dev, k, step, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGKrylovStepOfRanks(GPUCSRDevice dev, const GPUMGKrylov *k, int step, MPI_Comm comm, PetscErrorCode *error, GPUCSRStream s)
{
  double sum[3] = {NAN, NAN, NAN};

  PetscFunctionBegin;
  GPUCSRKeep(error, SumsOfRank(dev, k, step, sum, s));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2 + step, MPI_DOUBLE, MPI_SUM, comm));
  GPUCSRKeep(error, RowsOfRank(dev, k, step, sum, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGIdentity(GPUCSRDevice dev, int n, double *D, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGIdentityDevice(n, D, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int64_t k = 0; k < (int64_t)n * n; k++) D[k] = k % (n + 1) == 0;
  PetscCall(GPUCSRLaunched(dev, "an identity"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
