#pragma once

/*
  Orders of the points of a mesh: a permutation old[], the point that gets each number.

  Points come along Hilbert's curve, as mesh.h makes them; the other orders start from there.

  Papers: E. Cuthill, J. McKee, ACM 1969 (reversed after A. George, 1971); A. George, Nested dissection of a regular finite element mesh, SIAM J. Numer. Anal. 10, 1973; J. Skilling,
  Programming the Hilbert curve, AIP Conf. Proc. 707, 2004.
*/
#include <math.h>
#include <petscsys.h>
#include <stdint.h>

typedef enum {
  MESH_HILBERT,
  MESH_RANDOM,
  MESH_RCM,
  MESH_DISSECTION,
  MESH_SWEEP /* by the first coordinate, as a front goes over a mesh */
} MeshOrder;

/* Neighbours of each point, itself among them, and where the points are */
typedef struct {
  int            n, d;
  const double  *x; /* d numbers a point */
  const int64_t *begin;
  const int32_t *to;
} MeshGraph;

/* The place of a cell along the curve, from its d coordinates of `bits` bits: Skilling's transpose, then its bits interleaved */
static inline uint64_t MeshHilbert(const uint32_t cell[], int d, int bits)
{
  uint32_t x[3], t = 0;
  uint64_t key = 0;

  for (int i = 0; i < d; i++) x[i] = cell[i];
  for (uint32_t q = 1u << (bits - 1); q > 1; q >>= 1)
    for (int i = 0; i < d; i++) {
      const uint32_t low = x[i] & q ? q - 1 : (x[0] ^ x[i]) & (q - 1);

      x[0] ^= low;
      if (!(x[i] & q)) x[i] ^= low;
    }
  for (int i = 1; i < d; i++) x[i] ^= x[i - 1];
  for (uint32_t q = 1u << (bits - 1); q > 1; q >>= 1)
    if (x[d - 1] & q) t ^= q - 1;
  for (int i = 0; i < d; i++) x[i] ^= t;
  for (int b = bits; b-- > 0;)
    for (int i = 0; i < d; i++) key = key << 1 | (x[i] >> b & 1);
  return key;
}

/* order[]: 0 .. n - 1 by rising key of at most `bits` bits; equal keys stay in their order */
static inline PetscErrorCode MeshSort(int n, const uint64_t key[], int bits, int32_t order[])
{
  const int digit = 11, places = 1 << digit;
  int32_t  *other, *from       = order, *to;
  int64_t  *start;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(n, &other, places + 1, &start));
  to = other;
  for (int k = 0; k < n; k++) order[k] = k;
  for (int shift = 0; shift < bits; shift += digit) {
    int32_t *t = from;

    PetscCall(PetscArrayzero(start, places + 1));
    for (int k = 0; k < n; k++) start[(key[k] >> shift & (uint64_t)(places - 1)) + 1]++;
    for (int q = 0; q < places; q++) start[q + 1] += start[q];
    for (int k = 0; k < n; k++) to[start[key[from[k]] >> shift & (uint64_t)(places - 1)]++] = from[k];
    from = to;
    to   = t;
  }
  if (from != order) PetscCall(PetscArraycpy(order, from, n));
  PetscCall(PetscFree2(other, start));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the point nearest to a corner, which lies as far out as any; neighbours by rising degree; all reversed */
static inline PetscErrorCode MeshRCM(const MeshGraph *g, int32_t old[])
{
  char  *seen;
  int    first = 0, n = 0;
  double least = HUGE_VAL;

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1(g->n, &seen));
  for (int p = 0; p < g->n; p++) {
    double s = 0;

    for (int i = 0; i < g->d; i++) s += g->x[(int64_t)p * g->d + i];
    if (s < least) {
      least = s;
      first = p;
    }
  }
  for (int root = -1; n < g->n; root++) { /* a second root only where the mesh has another part */
    const int p = root < 0 ? first : root;

    if (seen[p]) continue;
    seen[p]  = 1;
    old[n++] = p;
    for (int q = n - 1; q < n; q++) {
      const int at = n;

      for (int64_t k = g->begin[old[q]]; k < g->begin[old[q] + 1]; k++) {
        const int32_t v = g->to[k];
        int           w = n;

        if (seen[v]) continue;
        seen[v] = 1;
        for (; w > at && g->begin[old[w - 1] + 1] - g->begin[old[w - 1]] > g->begin[v + 1] - g->begin[v]; w--) old[w] = old[w - 1];
        old[w] = v;
        n++;
      }
    }
  }
  for (int q = 0; q < g->n / 2; q++) {
    const int32_t t = old[q];

    old[q]            = old[g->n - 1 - q];
    old[g->n - 1 - q] = t;
  }
  PetscCall(PetscFree(seen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Orders part[0 .. n - 1]: halves by a plane through the middle of the box; points of the first half that touch the second half come last. side: the
  halves of all points, by their cut; cut counts the cuts
*/
static inline void MeshDissect(const MeshGraph *g, int32_t part[], int n, int32_t side[], int32_t *cut, int32_t buffer[])
{
  double        low[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL}, high[3] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
  const int32_t right = ++*cut;
  int           axis = 0, nl = 0, nr = 0, ns = 0;

  if (n <= 64) return;
  for (int q = 0; q < n; q++)
    for (int i = 0; i < g->d; i++) {
      low[i]  = PetscMin(low[i], g->x[(int64_t)part[q] * g->d + i]);
      high[i] = PetscMax(high[i], g->x[(int64_t)part[q] * g->d + i]);
    }
  for (int i = 1; i < g->d; i++)
    if (high[i] - low[i] > high[axis] - low[axis]) axis = i;
  for (int q = 0; q < n; q++)
    if (g->x[(int64_t)part[q] * g->d + axis] > 0.5 * (low[axis] + high[axis])) side[part[q]] = right;
  for (int q = 0; q < n; q++) {
    const int32_t p       = part[q];
    int           touches = 0;

    for (int64_t k = g->begin[p]; k < g->begin[p + 1]; k++) touches |= side[g->to[k]] == right;
    if (side[p] == right) buffer[n - 1 - nr++] = p;
    else if (touches) buffer[ns++] = p;
    else part[nl++] = p;
  }
  if (nl + nr == 0 || nr == n) return;
  for (int q = 0; q < nr; q++) part[nl + q] = buffer[n - 1 - q];
  for (int q = 0; q < ns; q++) part[nl + nr + q] = buffer[q];
  MeshDissect(g, part, nl, side, cut, buffer);
  MeshDissect(g, part + nl, nr, side, cut, buffer);
}

/* drawn: the number that chance has given to each point */
static inline PetscErrorCode MeshOrderGet(const MeshGraph *g, MeshOrder order, const int32_t drawn[], int32_t old[])
{
  PetscFunctionBeginUser;
  for (int p = 0; p < g->n; p++) old[p] = p;
  if (order == MESH_RANDOM) {
    for (int p = 0; p < g->n; p++) old[drawn[p]] = p;
  } else if (order == MESH_RCM) {
    PetscCall(MeshRCM(g, old));
  } else if (order == MESH_SWEEP) {
    uint64_t *key;

    PetscCall(PetscMalloc1(g->n, &key));
    for (int p = 0; p < g->n; p++) key[p] = (uint64_t)(0x1p33 * g->x[(int64_t)p * g->d]);
    PetscCall(MeshSort(g->n, key, 33, old));
    PetscCall(PetscFree(key));
  } else if (order == MESH_DISSECTION) {
    int32_t *side, *buffer, cut = 0;

    PetscCall(PetscCalloc2(g->n, &side, g->n, &buffer));
    MeshDissect(g, old, g->n, side, &cut, buffer);
    PetscCall(PetscFree2(side, buffer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
