#pragma once

/*
  A directed graph whose rows and columns have a power law both: R-MAT by D. Chakrabarti, Y. Zhan and C. Faloutsos, 2004. Each edge falls into one of four quadrants of the matrix, then of the quadrant, and so
  on. Equal edges count once. Edges are drawn by their numbers, so that the graph is the same for any number of threads.
*/
#include "random.h"
#include <petscsys.h>
#include <stdint.h>
#include <stdlib.h>

static int RMATLess(const void *a, const void *b)
{
  return *(const int32_t *)a < *(const int32_t *)b ? -1 : *(const int32_t *)a > *(const int32_t *)b;
}

static inline void RMATEdge(uint64_t seed, int64_t edge, int levels, int32_t *row, int32_t *column)
{
  *row = *column = 0;
  for (int l = 0; l < levels; l++) {
    const double u = SyntheticUniform(seed, (uint64_t)edge, (uint64_t)l);

    *row    = 2 * *row + (u >= 0.76); /* quadrants of 0.57 and 0.19 above, of 0.19 and 0.05 below */
    *column = 2 * *column + (u >= 0.57 && u < 0.76) + (u >= 0.95);
  }
}

/* 2^levels rows of random values, as host CSR for SyntheticDestroy() */
static inline PetscErrorCode RMATCreate(int levels, int64_t edges, uint64_t seed, int *m, int32_t **i, PetscInt **j, PetscScalar **a)
{
  const int rows = 1 << levels;
  int32_t  *at, *col, *drawn;

  PetscFunctionBeginUser;
  PetscCheck(levels < 31 && edges <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "A graph of 2^%d points and more than 2^31 edges", levels);
  PetscCall(PetscCalloc1(rows + 1, &drawn));
  PetscCall(PetscMalloc1(edges, &col));
  PetscCall(PetscMalloc1(rows, &at));
#pragma omp parallel for
  for (int64_t e = 0; e < edges; e++) {
    int32_t r, c;

    RMATEdge(seed, e, levels, &r, &c);
#pragma omp atomic
    drawn[r + 1]++;
  }
  for (int r = 0; r < rows; r++) {
    drawn[r + 1] += drawn[r];
    at[r] = drawn[r];
  }
#pragma omp parallel for
  for (int64_t e = 0; e < edges; e++) {
    int32_t r, c, to;

    RMATEdge(seed, e, levels, &r, &c);
#pragma omp atomic capture
    to      = at[r]++;
    col[to] = c;
  }
  PetscCall(PetscMalloc1(rows + 1, i));
  (*i)[0] = 0;
#pragma omp parallel for schedule(dynamic, 64)
  for (int r = 0; r < rows; r++) {
    int32_t *mine = col + drawn[r], n = 0;

    qsort(mine, (size_t)(drawn[r + 1] - drawn[r]), sizeof(*mine), RMATLess);
    for (int k = 0; k < drawn[r + 1] - drawn[r]; k++)
      if (!n || mine[k] != mine[n - 1]) mine[n++] = mine[k];
    (*i)[r + 1] = n;
  }
  for (int r = 0; r < rows; r++) (*i)[r + 1] += (*i)[r];
  PetscCall(PetscMalloc2((*i)[rows], j, (*i)[rows], a));
#pragma omp parallel for schedule(dynamic, 64)
  for (int r = 0; r < rows; r++)
    for (int k = 0; k < (*i)[r + 1] - (*i)[r]; k++) {
      (*j)[(*i)[r] + k] = col[drawn[r] + k];
      (*a)[(*i)[r] + k] = SyntheticUniform(seed + 100, (uint64_t)r, (uint64_t)k) - 0.3;
    }
  PetscCall(PetscFree(at));
  PetscCall(PetscFree(col));
  PetscCall(PetscFree(drawn));
  *m = rows;
  PetscFunctionReturn(PETSC_SUCCESS);
}
