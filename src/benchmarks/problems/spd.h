#pragma once

/* The matrices of spdrows.h as host CSR in memory of PETSc */
#include "synthetic.h"
#include "spdrows.h"

/* The table for rows rs to re - 1: 27 rows use a point, and a point costs as much as the rest of a row. The caller frees the table */
static inline PetscErrorCode SPDTable(SPD *s, int rs, int re, double **table)
{
  const int dofs = s->kind == ELASTIC ? 3 : 1, plane = s->m * s->m, all = plane * SPDDepth(s), reach = plane + s->m + 1;
  const int first = PetscMax(0, rs / dofs - reach), last = PetscMin(all, (re - 1) / dofs + 1 + reach);

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(PetscMax(1, last - first), table));
#pragma omp parallel for
  for (int p = first; p < last; p++) (*table)[p - first] = SPDCoefficient(p);
  s->first = first;
  s->table = *table;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SPDCreate(const SPD *s, int *m, int32_t **i, PetscInt **j, PetscScalar **a)
{
  PetscFunctionBeginUser;
  *m = s->m * s->m * SPDDepth(s) * (s->kind == ELASTIC ? 3 : 1);
  PetscCall(PetscMalloc1(*m + 1, i));
  (*i)[0] = 0;
#pragma omp parallel for schedule(dynamic, 1024)
  for (int r = 0; r < *m; r++) {
    int32_t col[SPD_LONGEST];
    double  val[SPD_LONGEST];

    (*i)[r + 1] = SPDRow(s, r, col, val);
  }
  for (int r = 0; r < *m; r++) (*i)[r + 1] += (*i)[r];
  PetscCall(PetscMalloc2((*i)[*m], j, (*i)[*m], a));
#pragma omp parallel for schedule(dynamic, 1024)
  for (int r = 0; r < *m; r++) {
    int32_t   col[SPD_LONGEST];
    double    val[SPD_LONGEST];
    const int length = SPDRow(s, r, col, val);

    for (int k = 0; k < length; k++) {
      (*j)[(*i)[r] + k] = col[k];
      (*a)[(*i)[r] + k] = val[k];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
