#pragma once

/*
  The vector passes of GMRES and the scalars from their sums, shared by the loops on the host (gmressteps.c) and the kernels (gmres.cu).

  Y. Saad, M. H. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), orthogonalized by classical Gram-Schmidt. Basis vectors are stored unnormalised, which saves a pass: readers multiply by the inverse
  norm. An iteration is a product and two passes over the basis:

    project   h = V'w: reads the columns and w
    update    v = w - V h, and its norm: reads the columns again, writes v, and a second copy where the next product reads it

  w is the product of the previous direction, preconditioned if the preconditioner is on the left. The norm comes from v as it is written, without traffic.
*/
#include "../common/rules.h"
#include "../../../../sys/device.h"

/* KSPGMRESCGSRefinementType; gmres.c asserts the numbers */
enum {
  GPUGMRES_REFINE_NEVER,
  GPUGMRES_REFINE_IFNEEDED,
  GPUGMRES_REFINE_ALWAYS
};

/* On the device, followed by: 1/norm of each basis vector; the coefficients that update subtracts; the current column of the Hessenberg matrix; coefficients of a solution */
typedef struct {
  int m;          /* columns allocated */
  int k;          /* columns done; -1 before the first basis vector */
  int refinement; /* KSPGMRESCGSRefinementType */
  int again;      /* orthogonalize the current column a second time */
} GPUGMRESState;

GPUKSP_RULE double *GPUGMRESInverse(GPUGMRESState *s)
{
  return (double *)(s + 1);
}
GPUKSP_RULE double *GPUGMRESCoefficients(GPUGMRESState *s)
{
  return GPUGMRESInverse(s) + s->m + 1;
}
GPUKSP_RULE double *GPUGMRESColumn(GPUGMRESState *s)
{
  return GPUGMRESCoefficients(s) + s->m + 1;
}
GPUKSP_RULE double *GPUGMRESSolution(GPUGMRESState *s)
{
  return GPUGMRESColumn(s) + s->m + 2;
}
/* The last of a solution's numbers is 1 */
static inline size_t GPUGMRESStateBytes(int m)
{
  return sizeof(GPUGMRESState) + sizeof(double) * (size_t)(4 * m + 5);
}

/* Columns for the host: of two successive iterations, and the norm of a first residual */
#define GPUGMRES_SEEN 3
GPUKSP_RULE int GPUGMRESSeen(int k)
{
  return k < 0 ? 2 : k % 2;
}

/* sum: dot product of basis vector j, unnormalised, with the vector to be orthogonalized */
GPUKSP_RULE void GPUGMRESProjected(GPUGMRESState *s, int j, double sum, int again)
{
  const double inverse = GPUGMRESInverse(s)[j], h = sum * inverse;
  double      *column = GPUGMRESColumn(s) + j;

  GPUGMRESCoefficients(s)[j] = h * inverse;
  *column                    = again ? *column + h : h;
}

/* squares: the squared norm of the new basis vector. Is the column done? If not, it is orthogonalized again: always, or after losing more than half of its squared norm (KSPGMRES' test) */
GPUKSP_RULE int GPUGMRESUpdated(GPUGMRESState *s, double squares, int again)
{
  const double norm   = sqrt(squares);
  double      *column = GPUGMRESColumn(s), h = 0;

  if (!again && s->k >= 0 && s->refinement != GPUGMRES_REFINE_NEVER) {
    if (s->refinement == GPUGMRES_REFINE_IFNEEDED)
      for (int j = 0; j <= s->k; j++) h += column[j] * column[j];
    s->again = s->refinement == GPUGMRES_REFINE_ALWAYS || norm < sqrt(h);
    if (s->again) return 0;
  }
  s->again                     = 0;
  column[s->k + 1]             = norm;
  GPUGMRESInverse(s)[s->k + 1] = norm > 0 ? 1 / norm : norm; /* NaN stays NaN */
  s->k++;
  return 1;
}

/* A pass of the orthogonalization */
typedef struct {
  int            n, first, again; /* first: the residual that starts a cycle and needs no orthogonalization */
  int            scaled;          /* the product's input was normalised */
  size_t         stride;          /* of the basis */
  double        *basis;
  double        *direction;    /* copy of the new vector for the next product; NULL: none yet */
  const double  *w;            /* the vector to be orthogonalized, */
  const double  *left, *right; /* left: the product is multiplied by this diagonal; right: the direction is */
  GPUGMRESState *state;
  double        *seen;    /* page-locked: columns of m + 2; NULL: the host reduces the sums, */
  double        *sums;    /* page-locked too */
  double        *partial; /* partial sums of blocks, */
  int            most;    /* at most so many blocks, */
  unsigned      *ended;   /* and the number that have finished: 0 before and after each pass */
} GPUGMRESPass;

/* out = x + diagonal . (sum of coefficient[j] times vector j); x and diagonal may be NULL */
typedef struct {
  int           n, count;
  size_t        stride;
  const double *vectors, *coefficients, *diagonal, *x;
  double       *out;
} GPUGMRESSum;

/* Row i of the vector to be orthogonalized, and of the new vector */
GPUKSP_RULE double GPUGMRESEntry(const GPUGMRESPass *a, double factor, const double *w, int i)
{
  return a->left && !a->again ? factor * a->left[i] * w[i] : factor * w[i];
}

GPUCSR_INTERN GPUCSRError GPUGMRESDeviceBlocks(GPUCSRDevice, int *);
GPUCSR_INTERN GPUCSRError GPUGMRESDeviceProject(const GPUGMRESPass *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUGMRESDeviceUpdate(const GPUGMRESPass *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUGMRESDeviceSum(const GPUGMRESSum *, GPUCSRStream);
