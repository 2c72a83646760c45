/*
  Steps of smoothed aggregation on the host: where the host is the device, or plays one.
*/
#include "rows.h"

const GPUAMGOps *GPUAMGOf(GPUCSRDevice d)
{
  return GPUCSREither(d, &GPUAMG_cuda, &GPUAMG_host);
}

static PetscErrorCode Rows_Host(GPUCSRDevice dev, GPUAMGStep step, int n, const GPUAMGWork *w)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
  for (int i = 0; i < n; i++) GPUAMGRow(step, w, i);
  PetscCall(GPUCSRLaunched(dev, "a step of smoothed aggregation"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static double Inverse(double norm)
{
  return norm > 0 ? 1 / norm : 0;
}

static PetscErrorCode Orthogonalize_Host(GPUCSRDevice dev, const GPUAMGArnoldi *a, int k)
{
  double *w = a->V + (size_t)k * a->ld, sum = 0;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
  for (int i = 0; i < a->n && k; i++) w[i] = (a->dinv ? a->dinv[i] * a->z[i] : a->z[i]) * Inverse(a->norm[k - 1]);
  for (int j = 0; j < k; j++) {
    a->h[j] = 0;
    for (int i = 0; i < a->n; i++) a->h[j] += a->V[(size_t)j * a->ld + (size_t)i] * w[i];
    a->h[j] *= Inverse(a->norm[j]);
  }
  for (int i = 0; i < a->n; i++) {
    for (int j = 0; j < k; j++) w[i] -= a->h[j] * Inverse(a->norm[j]) * a->V[(size_t)j * a->ld + (size_t)i];
    sum += w[i] * w[i];
  }
  a->norm[k] = sqrt(sum);
  if (k) a->h[k] = a->norm[k];
  PetscCall(GPUCSRLaunched(dev, "an eigenvalue estimate"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Invert_Host(GPUCSRDevice dev, const GPUAMGRows *A, const double *scale, double *D, double *work)
{
  const int n    = A->m;
  double   *was  = work + n;
  int      *done = (int *)(work + 2 * n);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
  PetscCall(PetscArrayzero(D, (size_t)n * (size_t)n));
  for (int i = 0; i < n; i++) {
    done[i] = 0;
    for (int k = A->i[i]; k < A->i[i + 1]; k++) D[(size_t)i * (size_t)n + (size_t)A->j[k]] += A->a[k];
    was[i] = fmax(fabs(D[(size_t)i * (size_t)n + (size_t)i]), scale ? scale[i] : 0);
  }
  for (int q = 0; q < n; q++) {
    int    best = -1;
    double most = GPUAMG_LEAST(n), p, *mine;

    for (int i = 0; i < n; i++) {
      const double share = GPUAMGShare(D[(size_t)i * (size_t)n + (size_t)i], was[i]);

      if (!done[i] && share > most) {
        best = i;
        most = share;
      }
    }
    if (best < 0) break;
    done[best] = 1;
    /* one pivot of all: the inverse in place, by rows */
    p    = D[(size_t)best * (size_t)n + (size_t)best];
    mine = D + (size_t)best * (size_t)n;
    for (int j = 0; j < n; j++) work[j] = mine[j] / p;
    work[best] = 1 / p;
    for (int i = 0; i < n; i++) {
      double      *d = D + (size_t)i * (size_t)n;
      const double c = d[best];

      if (i == best || c == 0) continue;
      d[best] = 0;
      for (int j = 0; j < n; j++) d[j] -= c * work[j];
    }
    for (int j = 0; j < n; j++) mine[j] = work[j];
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (!done[i] || !done[j]) D[(size_t)i * (size_t)n + (size_t)j] = 0;
  PetscCall(GPUCSRLaunched(dev, "the inverse of a coarse operator"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose_Host(GPUCSRDevice dev, int n, double *D)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) {
      const double d = D[(size_t)i * (size_t)n + (size_t)j];

      D[(size_t)i * (size_t)n + (size_t)j] = D[(size_t)j * (size_t)n + (size_t)i];
      D[(size_t)j * (size_t)n + (size_t)i] = d;
    }
  PetscCall(GPUCSRLaunched(dev, "the transpose of an inverse"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUAMGOps GPUAMG_host = {Rows_Host, Orthogonalize_Host, Invert_Host, Transpose_Host};
