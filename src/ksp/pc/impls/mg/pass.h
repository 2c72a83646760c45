#pragma once

/* Vector operations of multigrid cycles and other preconditioners: a kernel each on the device, with its reference loop on the host, both in stream order */
#include "../../../../mat/impls/gpucsr/blackbox/kernels/kernels.h"

/* d = ca d + cb M r, z = x + d. x NULL: 0; d NULL: ca is 0 and d is not stored; z may be x */
typedef struct {
  int           n, bs; /* M: 1 (bs 0), a diagonal (1), or blocks of size bs by rows */
  double        ca, cb;
  const double *M, *r, *x;
  double       *d, *z;
  int           more; /* further vectors besides the first: each row of r, x, d and z has 1 + more numbers side by side */
} GPUMGPass;

GPUCSR_INTERN GPUCSRError GPUMGPassRun(GPUCSRDevice, const GPUMGPass *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGDense(GPUCSRDevice, int n, int k, const double *A, const double *x, double *z, GPUCSRStream); /* Z = A X, with A, X and Z stored by rows, k columns */
GPUCSR_INTERN GPUCSRError GPUMGIdentity(GPUCSRDevice, int n, double *D, GPUCSRStream);                                       /* n rows of n numbers */
/* z[i] = x[index[i]], less w[index[i]] unless w is NULL; z[index[i]] += x[i], no index twice */
GPUCSR_INTERN GPUCSRError GPUMGGather(GPUCSRDevice, int n, const int *index, const double *x, const double *w, double *z, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGScatter(GPUCSRDevice, int n, const int *index, const double *x, double *z, GPUCSRStream);

GPUCSR_INTERN GPUCSRError GPUMGPassDevice(const GPUMGPass *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGDenseDevice(int n, int k, const double *, const double *, double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGIdentityDevice(int n, double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGGatherDevice(int n, const int *, const double *, const double *, double *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGScatterDevice(int n, const int *, const double *, double *, GPUCSRStream);

/* Number i of M r */
GPUCSR_HOST_DEVICE double GPUMGTimesM(const GPUMGPass *p, int i)
{
  const int side = 1 + p->more, row = p->more ? i / side : i;
  double    z = 0;

  if (p->bs < 2) return p->bs ? p->M[row] * p->r[i] : p->r[i];
  for (int j = 0; j < p->bs; j++) z += p->M[(int64_t)row * p->bs + j] * p->r[i - (row % p->bs - j) * side];
  return z;
}

/* Number i of the pass */
GPUCSR_HOST_DEVICE void GPUMGPassRow(const GPUMGPass *p, int i)
{
  double d = p->cb * GPUMGTimesM(p, i);

  if (p->ca != 0) d += p->ca * p->d[i];
  if (p->d) p->d[i] = d;
  p->z[i] = p->x ? p->x[i] + d : d;
}
