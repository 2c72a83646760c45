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

/*
  Two steps of a flexible Krylov method for A x = b in a K-cycle: c[k] = M b, v[k] = A c[k], b less its part along v[0]. The second step ends with x in c[1]. Conjugate gradients, or with residuals the
  generalized conjugate residual method: Y. Notay, P. S. Vassilevski, Recursive Krylov-based multigrid cycles, Numer. Linear Algebra Appl. 15 (2008)
*/
typedef struct {
  int        n;
  GPUCSRBool residuals;
  double    *c[2], *v[2], *b;
  double    *part; /* GPUMG_KRYLOV_SUMS GPUMG_KRYLOV_PARTS: of each sum from each block */
} GPUMGKrylov;

#define GPUMG_KRYLOV_SUMS  5 /* (w0, v0), (w0, b) of the first step, (w1, v0), (w1, v1), (w1, b) of the second; w: c, or v with residuals */
#define GPUMG_KRYLOV_PARTS 256
GPUCSR_INTERN GPUCSRError GPUMGKrylovStep(GPUCSRDevice, const GPUMGKrylov *, int step, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGKrylovSumsDevice(const GPUMGKrylov *, int step, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGKrylovRowsDevice(const GPUMGKrylov *, int step, GPUCSRStream);

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

/* Adds the products of row i to the sums of a step */
GPUCSR_HOST_DEVICE void GPUMGKrylovSum(const GPUMGKrylov *k, int step, int64_t i, double sum[])
{
  const double w = (k->residuals ? k->v : k->c)[step][i];

  for (int j = 0; j <= step; j++) sum[j] += w * k->v[j][i];
  sum[step + 1] += w * k->b[i];
}

/* A second direction of less than this share is rounding */
#define GPUMG_KRYLOV_LEAST 1e-12

/*
  Factors of both steps; after the first step alone f[0] is the factor of v[0] in b. If the first step is impossible (b is zero, the curvature is not positive, or a number is infinite), x is c[0]: the
  correction of a V-cycle. If the second step is impossible, the first one is all
*/
GPUCSR_HOST_DEVICE void GPUMGKrylovFactors(const double sum[], int step, double f[2])
{
  const double first = sum[1] / sum[0], along = step ? sum[2] / sum[0] : 0, rest = step ? sum[3] - along * sum[2] : 0, second = step ? sum[4] / rest : 0;

  f[0] = step;
  f[1] = 0;
  if (!(sum[0] > 0 && fabs(first) < 1e300)) return;
  f[0] = first;
  if (!step || !(rest > GPUMG_KRYLOV_LEAST * sum[3] && fabs(second) < 1e300 && fabs(along * second) < 1e300)) return;
  f[0] = first - along * second;
  f[1] = second;
}

/* Row i of a step's result */
GPUCSR_HOST_DEVICE void GPUMGKrylovRow(const GPUMGKrylov *k, int step, const double f[2], int64_t i)
{
  if (step) k->c[1][i] = f[0] * k->c[0][i] + (f[1] != 0 ? f[1] * k->c[1][i] : 0);
  else if (f[0] != 0) k->b[i] -= f[0] * k->v[0][i];
}
