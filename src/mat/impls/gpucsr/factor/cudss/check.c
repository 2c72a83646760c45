/* The check of solutions, by the host where it stands in for the device */
#include "check.h"
#include "../../../../../sys/gpucsrsys.h"
#include <math.h>
#include <string.h>

static void Most(double v, uint64_t *most)
{
  uint64_t bits;

  v = fabs(v);
  memcpy(&bits, &v, sizeof(bits));
  if (bits > *most) *most = bits;
}

static void CheckOnHost(const DirectCheck *c)
{
  const int32_t *i = (const int32_t *)c->A->array[CSR_ROWPTR].data, *j = (const int32_t *)c->A->array[CSR_COL].data;
  const double  *a = (const double *)c->A->array[CSR_VAL].data;
  const int      n = c->A->m;

  for (int q = 0; q < c->k; q++) {
    const double *b = c->b + (size_t)q * c->ldb, *x = c->x + (size_t)q * c->ldx;
    double       *r    = c->r + (size_t)q * (size_t)n;
    uint64_t     *most = c->most + CHECK_NUMBERS * q;

    for (int row = 0; row < n; row++) {
      double sum = 0, size = 0;

      for (int e = i[row]; e < i[row + 1]; e++) {
        sum += a[e] * x[j[e]];
        size += fabs(a[e]);
      }
      r[row] = b[row] - sum;
      Most(r[row], &most[CHECK_R]);
      Most(x[row], &most[CHECK_X]);
      Most(b[row], &most[CHECK_B]);
      Most(size, &most[CHECK_A]);
      if (size == 0) most[CHECK_ZERO] = 1;
    }
  }
}

PetscErrorCode DirectCheckColumns(const DirectCheck *c, GPUCSRStream s)
{
  PetscFunctionBegin;
#if defined(GPUCSR_HAVE_CUDA)
  if (c->A->dev->ops->kernels) {
    PetscCall(DirectCheck_CUDA(c, s));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(GPUCSRWaitStreamOnHost(s));
  CheckOnHost(c);
  PetscCall(GPUCSRLaunched(c->A->dev, "the check of a solution"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode DirectAdd(GPUCSRDevice dev, int n, int k, double a, const double *d, double *x, size_t ldx, GPUCSRStream s)
{
  PetscFunctionBegin;
#if defined(GPUCSR_HAVE_CUDA)
  if (dev->ops->kernels) {
    PetscCall(DirectAdd_CUDA(n, k, a, d, x, ldx, s));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(GPUCSRWaitStreamOnHost(s));
  for (int q = 0; q < k; q++)
    for (int row = 0; row < n; row++) x[(size_t)q * ldx + (size_t)row] += a * d[(size_t)q * (size_t)n + (size_t)row];
  PetscCall(GPUCSRLaunched(dev, "a correction of a solution"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
