#pragma once

/*
  GMRES' work on vectors and the scalars that follow from its sums, for both sides: loops on the host (gmressteps.c) and kernels (gmres.cu).

  Y. Saad, M. H. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), orthogonalized by classical Gram-Schmidt. Basis vectors are stored as they leave the orthogonalization, not divided by their
  norms: what reads one multiplies by the inverse of its norm instead, which saves a pass. So an iteration is a product and two passes over the basis:

    project   h = V'w: reads the columns and w
    update    v = w - V h, and its norm: reads them again, writes v, and once more where the next product reads it

  w is what the product (and the preconditioner after it) has made of the direction before. The norm is that of the vector itself; it costs nothing where it is written.
*/
#include "rules.h"
#include "../../../sys/gpucsrsys.h"

/* On the device, with numbers behind it: 1/norm of each basis vector; what update subtracts of each; the column of the Hessenberg matrix that is being made; coefficients of a solution */
typedef struct {
  int m;          /* columns that there is room for */
  int k;          /* that are done; -1 before the first basis vector */
  int refinement; /* KSPGMRESCGSRefinementType */
  int again;      /* the column at hand is to be orthogonalized a second time */
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

/* Columns that the host may look at: two that are one iteration apart, and the norm of a first residual */
#define GPUGMRES_SEEN 3
GPUKSP_RULE int GPUGMRESSeen(int k)
{
  return k < 0 ? 2 : k % 2;
}

/* sum: of basis vector j, as stored, times what is orthogonalized */
GPUKSP_RULE void GPUGMRESProjected(GPUGMRESState *s, int j, double sum, int again)
{
  const double inverse = GPUGMRESInverse(s)[j], h = sum * inverse;
  double      *column = GPUGMRESColumn(s) + j;

  GPUGMRESCoefficients(s)[j] = h * inverse;
  *column                    = again ? *column + h : h;
}

/* squares: of the new basis vector. Is the column done? Otherwise it is orthogonalized again: always, or where more than half of its square was taken away (the test of KSPGMRES) */
GPUKSP_RULE int GPUGMRESUpdated(GPUGMRESState *s, double squares, int again)
{
  const double norm   = sqrt(squares);
  double      *column = GPUGMRESColumn(s), h = 0;

  if (!again && s->k >= 0 && s->refinement != KSP_GMRES_CGS_REFINE_NEVER) {
    if (s->refinement == KSP_GMRES_CGS_REFINE_IFNEEDED)
      for (int j = 0; j <= s->k; j++) h += column[j] * column[j];
    s->again = s->refinement == KSP_GMRES_CGS_REFINE_ALWAYS || norm < sqrt(h);
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
  int            n, first, again; /* first: of the residual that a cycle starts from, which there is nothing to make orthogonal to */
  int            scaled;          /* the product was with a direction of norm 1 */
  size_t         stride;          /* of the basis */
  double        *basis;
  double        *direction;    /* where the new vector is written, for the product; NULL: not yet */
  const double  *w;            /* what is orthogonalized, */
  const double  *left, *right; /* multiplied by a diagonal on the way; and the direction by another */
  GPUGMRESState *state;
  double        *seen;    /* page-locked: columns of m + 2; NULL: sums are the host's, */
  double        *sums;    /* page-locked too */
  double        *partial; /* of sums, by blocks, */
  int            most;    /* of these at most, */
  unsigned      *ended;   /* and how many have ended: 0 before and after each pass */
} GPUGMRESPass;

/* out = x + diagonal . (sum of coefficient[j] times vector j), without x or the diagonal where they are NULL */
typedef struct {
  int           n, count;
  size_t        stride;
  const double *vectors, *coefficients, *diagonal, *x;
  double       *out;
} GPUGMRESSum;

/* Row i of what is orthogonalized, and of the new vector */
GPUKSP_RULE double GPUGMRESEntry(const GPUGMRESPass *a, double factor, const double *w, int i)
{
  return a->left && !a->again ? factor * a->left[i] * w[i] : factor * w[i];
}

#if defined(__cplusplus)
extern "C" {
#endif
GPUCSR_INTERN PetscErrorCode GPUGMRESDeviceBlocks(GPUCSRDevice, int *);
GPUCSR_INTERN PetscErrorCode GPUGMRESDeviceProject(const GPUGMRESPass *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUGMRESDeviceUpdate(const GPUGMRESPass *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUGMRESDeviceSum(const GPUGMRESSum *, GPUCSRStream);
#if defined(__cplusplus)
}
#endif
