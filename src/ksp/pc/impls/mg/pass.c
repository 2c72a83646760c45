/*
  Passes of a cycle on the host, for the host as device and for its stand-ins.
*/
#include "pass.h"

PetscErrorCode GPUMGPassRun(GPUCSRDevice dev, const GPUMGPass *p, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGPassDevice(p, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int i = 0; i < p->n * (1 + p->more); i++) GPUMGPassRow(p, i);
  PetscCall(GPUCSRLaunched(dev, "a step of a smoother"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGDense(GPUCSRDevice dev, int n, int k, const double *A, const double *x, double *z, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGDenseDevice(n, k, A, x, z, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int i = 0; i < n; i++)
    for (int c = 0; c < k; c++) {
      double sum = 0;

      for (int j = 0; j < n; j++) sum += A[(int64_t)i * n + j] * x[(int64_t)j * k + c];
      z[(int64_t)i * k + c] = sum;
    }
  PetscCall(GPUCSRLaunched(dev, "a coarse solve"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGKrylovStep(GPUCSRDevice dev, const GPUMGKrylov *k, int step, GPUCSRStream s)
{
  double sum[GPUMG_KRYLOV_SUMS] = {0, 0, 0, 0, 0}, f[2];

  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGKrylovStepDevice(k, step, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  if (step) PetscCall(PetscArraycpy(sum, k->part, 2));
  for (int i = 0; i < k->n; i++) GPUMGKrylovSum(k, step, i, sum + 2 * step);
  GPUMGKrylovFactors(sum, step, f);
  for (int i = 0; i < k->n; i++) GPUMGKrylovRow(k, step, f, i);
  PetscCall(PetscArraycpy(k->part, sum, 2));
  PetscCall(GPUCSRLaunched(dev, "a step of a K-cycle"));
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

PetscErrorCode GPUMGGather(GPUCSRDevice dev, int n, const int *index, const double *x, const double *w, double *z, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGGatherDevice(n, index, x, w, z, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int i = 0; i < n; i++) z[i] = w ? x[index[i]] - w[index[i]] : x[index[i]];
  PetscCall(GPUCSRLaunched(dev, "the entries of a field"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGScatter(GPUCSRDevice dev, int n, const int *index, const double *x, double *z, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUMGScatterDevice(n, index, x, z, s));
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int i = 0; i < n; i++) z[index[i]] += x[i];
  PetscCall(GPUCSRLaunched(dev, "the sum of fields"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
