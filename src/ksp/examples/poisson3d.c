static char help[] = "Solves Poisson's equation in three dimensions by finite differences on a regular grid.\n\n";

/*
  -(u_xx + u_yy + u_zz) = 1 inside a box, u = 0 on its surface; the unknowns are the points inside. The box has unit length in x, and
  in y and z as many steps of the same size h as the grid.

    poisson3d -n 40
    poisson3d -n 40 -stencil 27 -ksp_monitor
    mpiexec -n 2 poisson3d -da_grid_x 60 -da_grid_y 30 -da_grid_z 20 -pc_type gamg
    poisson3d -n 33 -pc_type mg -pc_mg_levels 3 -pc_mg_galerkin both.

  The first command has 40 x 40 x 40 unknowns and the 7-point stencil. -mat_type gpucsr or -dm_mat_type gpucsr sets the type of the matrix.

  The 7-point stencil is the sum of three second differences, with an error of order h^2. The 27-point stencil also takes the points across
  edges and corners. Its weights make the leading error h^2/12 times the Laplacian of the Laplacian of u. Here the Laplacian is
  constant, so the leading error is zero, and order h^4 remains.
*/
#include "report.h"
#include <petscdmda.h>

/* The row of a point, for h^2 times minus the Laplacian: the neighbours of the stencil that are inside the box */
static PetscErrorCode Row(const PetscInt at[3], const PetscInt size[3], PetscInt points, Mat A)
{
  const PetscScalar weight7[]  = {6.0, -1.0};
  const PetscScalar weight27[] = {128.0 / 30.0, -14.0 / 30.0, -3.0 / 30.0, -1.0 / 30.0};
  MatStencil        row        = {at[2], at[1], at[0], 0}, col[27];
  PetscScalar       v[27];
  PetscInt          n = 0;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < 27; k++) {
    const PetscInt step[3]    = {k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1};
    const PetscInt directions = (step[0] != 0) + (step[1] != 0) + (step[2] != 0); /* 0 the point itself, 1 across a face, 2 an edge, 3 a corner */
    PetscBool      inside     = (PetscBool)(points == 27 || directions <= 1);

    for (PetscInt d = 0; d < 3; d++) inside = (PetscBool)(inside && at[d] + step[d] >= 0 && at[d] + step[d] < size[d]);
    if (!inside) continue;
    col[n].i = at[0] + step[0];
    col[n].j = at[1] + step[1];
    col[n].k = at[2] + step[2];
    col[n].c = 0;
    v[n++]   = points == 7 ? weight7[directions] : weight27[directions];
  }
  PetscCall(MatSetValuesStencil(A, 1, &row, n, col, v, INSERT_VALUES));
  PetscFunctionReturn(0);
}

static PetscErrorCode Matrix(DM da, const PetscInt size[3], PetscInt points, Mat *A)
{
  PetscInt begin[3], many[3], at[3];

  PetscFunctionBeginUser;
  PetscCall(DMCreateMatrix(da, A));
  PetscCall(DMDAGetCorners(da, &begin[0], &begin[1], &begin[2], &many[0], &many[1], &many[2]));
  for (at[2] = begin[2]; at[2] < begin[2] + many[2]; at[2]++)
    for (at[1] = begin[1]; at[1] < begin[1] + many[1]; at[1]++)
      for (at[0] = begin[0]; at[0] < begin[0] + many[0]; at[0]++) PetscCall(Row(at, size, points, *A));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  DM        da;
  Mat       A;
  Vec       x, b;
  KSP       ksp;
  PC        pc;
  MatInfo   info;
  PetscInt  n = 20, points = 7, size[3];
  PetscReal h, max;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of poisson3d", NULL);
  PetscCall(PetscOptionsInt("-n", "unknowns in each direction; -da_grid_x and so on set one", "poisson3d.c", n, &n, NULL));
  PetscCall(PetscOptionsInt("-stencil", "points of the stencil: 7 or 27", "poisson3d.c", points, &points, NULL));
  PetscOptionsEnd();
  PetscCheck(points == 7 || points == 27, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-stencil has to be 7 or 27, not %" PetscInt_FMT, points);
  PetscCheck(n > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-n has to be positive, not %" PetscInt_FMT, n);

  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, points == 7 ? DMDA_STENCIL_STAR : DMDA_STENCIL_BOX, n, n, n, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &da));
  PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  PetscCall(DMDAGetInfo(da, NULL, &size[0], &size[1], &size[2], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  h = 1.0 / (PetscReal)(size[0] + 1);
  PetscCall(Matrix(da, size, points, &A));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "grid      %" PetscInt_FMT " x %" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt_FMT "-point stencil, %.0f nonzeros\n", size[0], size[1], size[2], points, info.nz_used));

  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, h * h));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetDM(ksp, da)); /* multigrid takes its coarser grids from here, but not the matrix */
#if PETSC_VERSION_LT(3, 25, 0)
  PetscCall(KSPSetDMActive(ksp, PETSC_FALSE));
#else
  PetscCall(KSPSetDMActive(ksp, KSP_DMACTIVE_ALL, PETSC_FALSE));
#endif
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPReport(ksp, A, b, x));
  PetscCall(VecMax(x, NULL, &max));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solution  largest value %.5f\n", (double)max));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(DMDestroy(&da));
  PetscCall(PetscFinalize());
  return 0;
}
