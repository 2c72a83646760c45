#pragma once

/*
  A scalar equation inside a box, u = 0 on its surface, by finite differences: the programs give the weights of a point's neighbours.
*/
#include "report.h"
#include <petscdmda.h>

/* Weight of a neighbour, from its steps -1, 0 or 1 in each direction, for h^2 times the operator */
typedef PetscScalar (*WeightFn)(const PetscInt step[3], const void *ctx);

/* n unknowns in each direction, unless -da_grid_x, ... say otherwise; h: the step of a box with unit length in x */
static PetscErrorCode GridCreate(PetscInt n, DMDAStencilType stencil, DM *da, PetscInt size[3], PetscReal *h)
{
  PetscFunctionBeginUser;
  PetscCheck(n > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-n has to be positive, not %" PetscInt_FMT, n);
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, stencil, n, n, n, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, da));
  PetscCall(DMSetFromOptions(*da));
  PetscCall(DMSetUp(*da));
  PetscCall(DMDAGetInfo(*da, NULL, &size[0], &size[1], &size[2], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  *h = 1.0 / (PetscReal)(size[0] + 1);
  PetscFunctionReturn(0);
}

/* The row of a point: the neighbours of the stencil that are inside the box */
static PetscErrorCode GridRow(const PetscInt at[3], const PetscInt size[3], DMDAStencilType stencil, WeightFn weight, const void *ctx, Mat A)
{
  MatStencil  row = {at[2], at[1], at[0], 0}, col[27];
  PetscScalar v[27];
  PetscInt    n = 0;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < 27; k++) {
    const PetscInt step[3]    = {k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1};
    const PetscInt directions = (step[0] != 0) + (step[1] != 0) + (step[2] != 0);
    PetscBool      inside     = (PetscBool)(stencil == DMDA_STENCIL_BOX || directions <= 1);

    for (PetscInt d = 0; d < 3; d++) inside = (PetscBool)(inside && at[d] + step[d] >= 0 && at[d] + step[d] < size[d]);
    if (!inside) continue;
    col[n].i = at[0] + step[0];
    col[n].j = at[1] + step[1];
    col[n].k = at[2] + step[2];
    col[n].c = 0;
    v[n++]   = (*weight)(step, ctx);
  }
  PetscCall(MatSetValuesStencil(A, 1, &row, n, col, v, INSERT_VALUES));
  PetscFunctionReturn(0);
}

static PetscErrorCode GridMatrix(DM da, WeightFn weight, const void *ctx, Mat *A, double *nonzeros)
{
  DMDAStencilType stencil;
  MatInfo         info;
  PetscInt        size[3], xs, ys, zs, xm, ym, zm;

  PetscFunctionBeginUser;
  PetscCall(DMCreateMatrix(da, A));
  PetscCall(DMDAGetInfo(da, NULL, &size[0], &size[1], &size[2], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &stencil));
  PetscCall(DMDAGetCorners(da, &xs, &ys, &zs, &xm, &ym, &zm));
  for (PetscInt k = zs; k < zs + zm; k++) {
    for (PetscInt j = ys; j < ys + ym; j++) {
      for (PetscInt i = xs; i < xs + xm; i++) {
        const PetscInt at[3] = {i, j, k};

        PetscCall(GridRow(at, size, stencil, weight, ctx, *A));
      }
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatGetInfo(*A, MAT_GLOBAL_SUM, &info));
  *nonzeros = info.nz_used;
  PetscFunctionReturn(0);
}

/* Solves for the right-hand side 1 by the options of KSP, and destroys the grid and the matrix */
static PetscErrorCode GridSolve(DM *da, Mat *A, KSPType type, PetscReal h)
{
  Vec       x, b;
  KSP       ksp;
  PC        pc;
  PetscReal max;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(*A, &x, &b));
  PetscCall(VecSet(b, h * h));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetDM(ksp, *da)); /* multigrid takes its coarser grids from here, but not the matrix */
#if PETSC_VERSION_LT(3, 25, 0)
  PetscCall(KSPSetDMActive(ksp, PETSC_FALSE));
#else
  PetscCall(KSPSetDMActive(ksp, KSP_DMACTIVE_ALL, PETSC_FALSE));
#endif
  PetscCall(KSPSetOperators(ksp, *A, *A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPReport(ksp, *A, b, x));
  PetscCall(VecMax(x, NULL, &max));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solution  largest value %.5f\n", (double)max));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(A));
  PetscCall(DMDestroy(da));
  PetscFunctionReturn(0);
}
