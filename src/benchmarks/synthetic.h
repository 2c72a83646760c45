#pragma once

/*
  The synthetic matrices of the benchmarks, as host CSR, the same on every machine and for any number of threads: each random
  number is a hash of the seed and its place (SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
*/
#include <math.h>
#include <omp.h>
#include <petscsys.h>
#include <petscversion.h>
#include <stdint.h>
#include <stdlib.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

typedef enum {
  STENCIL7,
  STENCIL27,
  UNIFORM, /* every row the same number of random columns */
  POWERLAW,
  TEXT, /* few columns hold most entries */
  FULL  /* every entry is there */
} SyntheticKind;

typedef struct {
  const char   *name;
  SyntheticKind kind;
  int           m, n; /* of a stencil: points an edge of the cube, unknowns a point */
  double        mean; /* entries asked for a row; those that meet in one column are one */
  uint64_t      seed;
} Synthetic;

static const Synthetic synthetics[] = {
  {"lap7_50",    STENCIL7,  50,      1,       7,    0},
  {"lap7_200",   STENCIL7,  200,     1,       7,    0},
  {"st27_90",    STENCIL27, 90,      1,       27,   0},
  {"st27_50_b3", STENCIL27, 50,      3,       81,   5},
  {"powerlaw3",  POWERLAW,  1000005, 1000005, 3.1,  1},
  {"uniform40",  UNIFORM,   500000,  500000,  40,   2},
  {"text_like",  TEXT,      781265,  47236,   76,   3},
  {"tall_thin",  UNIFORM,   100000,  54,      12,   4},
  {"full",       FULL,      4000,    4000,    4000, 5},
};
#define NSYNTHETICS ((int)(sizeof(synthetics) / sizeof(synthetics[0])))

/* In [0, 1): the k-th number of stream r */
static inline double SyntheticUniform(uint64_t seed, uint64_t r, uint64_t k)
{
  uint64_t h = (seed * 0x9E3779B97F4A7C15ULL) ^ (r * 0xD1B54A32D192ED03ULL);

  h += k * 0x9E3779B97F4A7C15ULL;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ULL;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBULL;
  h ^= h >> 31;
  return (double)(h >> 11) * 0x1p-53;
}

static inline int SyntheticRandomLength(const Synthetic *s, int r)
{
  const double u = SyntheticUniform(s->seed, (uint64_t)r, 0);

  if (s->kind == FULL) return s->n;
  if (s->kind == UNIFORM) return (int)s->mean;
  if (s->kind == TEXT) return (int)PetscMax(1, s->mean * (0.3 + 1.4 * u));
  return (int)PetscMax(1, PetscMin(s->n / 4.0, 0.5 * s->mean / pow(1 - u, 1 / 1.6)));
}

static int SyntheticLess(const void *a, const void *b)
{
  return *(const int32_t *)a < *(const int32_t *)b ? -1 : *(const int32_t *)a > *(const int32_t *)b;
}

/* Columns of row r, increasing; returns their number */
static inline int SyntheticRow(const Synthetic *s, int r, int32_t *col)
{
  int count = 0;

  if (s->kind == STENCIL7 || s->kind == STENCIL27) {
    const int k = s->m, b = s->n, p = r / b, x = p % k, y = p / k % k, z = p / k / k;

    for (int dz = -1; dz <= 1; dz++)
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
          if (s->kind == STENCIL7 && abs(dx) + abs(dy) + abs(dz) > 1) continue;
          if (x + dx < 0 || y + dy < 0 || z + dz < 0 || x + dx >= k || y + dy >= k || z + dz >= k) continue;
          for (int q = 0; q < b; q++) col[count++] = (((z + dz) * k + y + dy) * k + x + dx) * b + q;
        }
  } else if (s->kind == FULL) {
    for (; count < s->n; count++) col[count] = count;
  } else {
    const int length = SyntheticRandomLength(s, r);
    int       last   = -1;

    for (int q = 0; q < length; q++) {
      const double u = SyntheticUniform(s->seed, (uint64_t)r, (uint64_t)q + 1);

      col[q] = PetscMin(s->n - 1, (int32_t)(s->n * (s->kind == TEXT ? u * u * u : u)));
    }
    qsort(col, (size_t)length, sizeof(*col), SyntheticLess);
    for (int q = 0; q < length; q++)
      if (col[q] != last) last = col[count++] = col[q];
  }
  return count;
}

/* Stencils have the values of the discrete Laplacian, all others and stencils of blocks random ones */
static inline double SyntheticValue(const Synthetic *s, int r, int k, int32_t col)
{
  if (s->seed) return SyntheticUniform(s->seed + 100, (uint64_t)r, (uint64_t)k) - 0.3;
  if (col != r) return -1;
  return s->kind == STENCIL7 ? 6 : 26;
}

/* shrink divides the edges of cubes, and its square the rows (and most columns) of the others: for trying the program */
static inline PetscErrorCode SyntheticCreate(const Synthetic *which, int shrink, int *m, int *n, int32_t **i, PetscInt **j, PetscScalar **a)
{
  Synthetic       t = *which, *s = &t;
  const PetscBool stencil = (PetscBool)(s->kind == STENCIL7 || s->kind == STENCIL27);
  int             longest = stencil ? 27 * s->n : 0;
  int64_t         nnz     = 0;

  PetscFunctionBeginUser;
  if (shrink > 1) {
    s->m = PetscMax(3, s->m / (stencil ? shrink : shrink * shrink));
    if (!stencil && s->n > 1000) s->n = PetscMax(100, s->n / (shrink * shrink));
  }
  *m = stencil ? s->m * s->m * s->m * s->n : s->m;
  *n = stencil ? *m : s->n;
  if (!stencil)
    for (int r = 0; r < *m; r++) longest = PetscMax(longest, SyntheticRandomLength(s, r));
  PetscCall(PetscMalloc1(*m + 1, i));
  (*i)[0] = 0;
#pragma omp parallel
  {
    int32_t *col = (int32_t *)malloc(sizeof(int32_t) * (size_t)longest);

#pragma omp for schedule(dynamic, 1024)
    for (int r = 0; r < *m; r++) (*i)[r + 1] = SyntheticRow(s, r, col);
    free(col);
  }
  for (int r = 0; r < *m; r++) nnz += (*i)[r + 1];
  for (int r = 0; r < *m; r++) (*i)[r + 1] += (*i)[r];
  PetscCall(PetscMalloc2(nnz, j, nnz, a));
#pragma omp parallel
  {
    int32_t *col = (int32_t *)malloc(sizeof(int32_t) * (size_t)longest);

#pragma omp for schedule(dynamic, 1024)
    for (int r = 0; r < *m; r++) {
      const int length = SyntheticRow(s, r, col);

      for (int k = 0; k < length; k++) {
        (*j)[(*i)[r] + k] = col[k];
        (*a)[(*i)[r] + k] = SyntheticValue(s, r, k, col[k]);
      }
    }
    free(col);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SyntheticDestroy(int32_t **i, PetscInt **j, PetscScalar **a)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree(*i));
  PetscCall(PetscFree2(*j, *a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
