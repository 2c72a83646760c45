#pragma once

/* What a cycle of multigrid, and other preconditioners, compute besides products with their matrices: on the device a kernel each, on the host the loop that is its reference. Both work in the order of a stream */
#include "../../../../mat/impls/gpucsr/kernels/kernels.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* d = ca d + cb M r, z = x + d. x NULL: 0; d NULL: nobody needs it, and ca is 0; z may be x */
typedef struct {
  int           n, bs; /* bs: M is 1 (0), a diagonal (1), or blocks of this size by rows */
  double        ca, cb;
  const double *M, *r, *x;
  double       *d, *z;
} GPUMGPass;

GPUCSR_INTERN PetscErrorCode GPUMGPassRun(GPUCSRDevice, const GPUMGPass *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUMGDense(GPUCSRDevice, int n, const double *A, const double *x, double *z, GPUCSRStream); /* z = A x, A by rows */
/* z[i] = x[index[i]], less w[index[i]] unless w is NULL; z[index[i]] += x[i], each index once */
GPUCSR_INTERN PetscErrorCode GPUMGGather(GPUCSRDevice, int n, const int *index, const double *x, const double *w, double *z, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUMGScatter(GPUCSRDevice, int n, const int *index, const double *x, double *z, GPUCSRStream);

GPUCSR_INTERN PetscErrorCode GPUMGPassDevice(const GPUMGPass *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUMGDenseDevice(int n, const double *, const double *, double *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUMGGatherDevice(int n, const int *, const double *, const double *, double *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUMGScatterDevice(int n, const int *, const double *, double *, GPUCSRStream);

/* Entry i of M r */
GPUCSR_HOST_DEVICE double GPUMGTimesM(const GPUMGPass *p, int i)
{
  double z = 0;

  if (p->bs < 2) return p->bs ? p->M[i] * p->r[i] : p->r[i];
  for (int j = 0; j < p->bs; j++) z += p->M[(int64_t)i * p->bs + j] * p->r[i - i % p->bs + j];
  return z;
}

GPUCSR_HOST_DEVICE void GPUMGPassRow(const GPUMGPass *p, int i)
{
  double d = p->cb * GPUMGTimesM(p, i);

  if (p->ca != 0) d += p->ca * p->d[i];
  if (p->d) p->d[i] = d;
  p->z[i] = p->x ? p->x[i] + d : d;
}

#if defined(__cplusplus)
}
#endif
