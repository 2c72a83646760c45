/*
  Systems for t660-gpuamg.c: a grid with coefficients, convection and layers, and plane elasticity (elastic.h)
*/
#pragma once
#include "elastic.h"

/* Points of a grid (last 1: in a plane); coefficients of contrast e^c, times a factor for each axis, and times later in the second pass; upwinded convection */
typedef struct {
  const char *name;
  PetscInt    n[3];
  PetscReal   contrast, along[3], convection;
  const char *ksp, *gpuksp;
  PetscReal   later[3]; /* zeros: as before */
} Grid;

static PetscErrorCode GridCreate(const Grid *g, PetscInt pass, PetscBool ref, Mat *A)
{
  const PetscInt m = g->n[0] * g->n[1] * g->n[2], step[3] = {1, g->n[0], g->n[0] * g->n[1]};

  PetscFunctionBegin;
  if (!*A) {
    PetscCall(TestMatCreate(PETSC_COMM_SELF, m, m, ref, A));
    PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
  }
  for (PetscInt v = 0; v < m; v++) {
    const PetscInt x[3]     = {v % g->n[0], v / step[1] % g->n[1], v / step[2]};
    PetscScalar    diagonal = 0;

    for (int d = 0; d < 3; d++)
      for (PetscInt side = -1; side <= 1 && g->n[d] > 1; side += 2) {
        const PetscInt    u   = v + side * step[d];
        const PetscReal   w   = g->along[d] * (pass == 1 && g->later[d] > 0 ? g->later[d] : 1.0) * PetscExpReal(g->contrast * (ZooReal(PetscMin(u, v), 3 * PetscMax(u, v) + d, 17 + pass) - 0.5)) + (side < 0 ? g->convection : 0.0);
        const PetscScalar off = -w;

        diagonal += w;
        if (x[d] + side < 0 || x[d] + side >= g->n[d]) continue;
        PetscCall(MatSetValues(*A, 1, &v, 1, &u, &off, INSERT_VALUES));
      }
    PetscCall(MatSetValues(*A, 1, &v, 1, &v, &diagonal, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  if (g->convection == 0) PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
