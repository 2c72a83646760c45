#pragma once

/* Vector operations of multigrid cycles and other preconditioners: a kernel each on the device, with its reference loop on the host, both in stream order */
#include "../../../../mat/impls/gpucsr/blackbox/kernels/kernels.h"

/* d = ca d + cb M r, z = x + d. x NULL: 0; d NULL: ca is 0 and d is not stored; z may be x */
typedef struct {
  int         n, bs; /* M: 1 (bs 0), a diagonal (1), or blocks of size bs by rows */
  double      ca, cb;
  const void *M, *r, *x;
  void       *d, *z;
  int         more;   /* further vectors besides the first: each row of r, x, d and z has 1 + more numbers side by side */
  GPUCSRBool  floats; /* M and vectors; otherwise doubles */
} GPUMGPass;

/*
  The ends of a cycle in floats: GPUMGFirst() makes floats of doubles times a scale, with the first step of the smoother from 0, and GPUMGWiden() makes doubles of floats over the same scale. The scale is a power of two: 1 if the largest number is from
  2^-GPUMG_RANGE to 2^GPUMG_RANGE, or is 0 or no number, otherwise the one that makes the largest number from 1 to 2. So no cycle overflows, or loses its numbers, by the size of its right-hand side alone.
*/
typedef struct {
  int         n;
  const void *from;
  void       *to;
  double     *work; /* GPUMG_ROUND_WORK numbers, for both functions: the scale, and the largest number of each block */
} GPUMGEnds;

#define GPUMG_RANGE        32
#define GPUMG_ROUND_BLOCKS 512
#define GPUMG_ROUND_WORK   (1 + GPUMG_ROUND_BLOCKS)
GPUCSR_INTERN GPUCSRError GPUMGFirst(GPUCSRDevice, const GPUMGEnds *, const GPUMGPass *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGWiden(GPUCSRDevice, const GPUMGEnds *, const GPUCSRSums *, GPUCSRStream); /* sums: of the doubles, or NULL */
GPUCSR_INTERN GPUCSRError GPUMGFirstDevice(const GPUMGEnds *, const GPUMGPass *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGWidenDevice(const GPUMGEnds *, const GPUCSRProduct *, GPUCSRStream);

GPUCSR_INTERN GPUCSRError GPUMGPassRun(GPUCSRDevice, const GPUMGPass *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGDense(GPUCSRDevice, GPUCSRBool floats, int n, int k, const void *A, const void *x, void *z, GPUCSRStream); /* Z = A X, with A, X and Z stored by rows, k columns */
GPUCSR_INTERN GPUCSRError GPUMGIdentity(GPUCSRDevice, int n, double *D, GPUCSRStream);                                                    /* n rows of n numbers */

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
GPUCSR_INTERN GPUCSRError GPUMGDenseDevice(GPUCSRBool floats, int n, int k, const void *, const void *, void *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUMGIdentityDevice(int n, double *, GPUCSRStream);

/* Number i of M r, and of the pass */
#define GPUMG_PASS_ROW(X) \
  GPUCSR_HOST_DEVICE X GPUMGTimesM_##X(const GPUMGPass *p, int i) \
  { \
    const int side = 1 + p->more, row = p->more ? i / side : i; \
    const X  *M = (const X *)p->M, *r = (const X *)p->r; \
    X         z = 0; \
\
    if (p->bs < 2) return p->bs ? M[row] * r[i] : r[i]; \
    for (int j = 0; j < p->bs; j++) z += M[(int64_t)row * p->bs + j] * r[i - (row % p->bs - j) * side]; \
    return z; \
  } \
\
  GPUCSR_HOST_DEVICE void GPUMGPassRow_##X(const GPUMGPass *p, int i) \
  { \
    X d = (X)p->cb * GPUMGTimesM_##X(p, i); \
\
    if (p->ca != 0) d += (X)p->ca * ((const X *)p->d)[i]; \
    if (p->d) ((X *)p->d)[i] = d; \
    ((X *)p->z)[i] = p->x ? ((const X *)p->x)[i] + d : d; \
  }
GPUMG_PASS_ROW(double)
GPUMG_PASS_ROW(float)

GPUCSR_HOST_DEVICE void GPUMGPassRow(const GPUMGPass *p, int i)
{
  if (p->floats) GPUMGPassRow_float(p, i);
  else GPUMGPassRow_double(p, i);
}

/* Number i of the right-hand side, and of the step */
GPUCSR_HOST_DEVICE void GPUMGFirstRow(const GPUMGEnds *e, const GPUMGPass *p, double scale, int i)
{
  const double *from = (const double *)e->from;
  const float  *M    = (const float *)p->M;
  const float   b    = (float)(from[i] * scale);
  float         d    = 0;

  if (p->bs < 2) d = p->bs ? M[i] * b : b;
  else
    for (int j = 0; j < p->bs; j++) d += M[(int64_t)i * p->bs + j] * (float)(from[i - i % p->bs + j] * scale);
  d *= (float)p->cb;
  ((float *)e->to)[i] = b;
  if (p->d) ((float *)p->d)[i] = d;
  ((float *)p->z)[i] = d;
}

/* The scale of a vector whose largest number is `most`; it and its inverse are normal doubles */
GPUCSR_HOST_DEVICE double GPUMGScale(double most)
{
  if (!(most > 0 && most < INFINITY) || fabs(log2(most)) <= GPUMG_RANGE) return 1;
  return ldexp(1.0, -GPUCSRMax(-1022, GPUCSRMin(1022, ilogb(most))));
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
