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
#include "grid.h"

/* Weights for minus the Laplacian */
static PetscScalar Weight(const PetscInt step[3], const void *ctx)
{
  const PetscScalar weight7[]  = {6.0, -1.0, 0.0, 0.0};
  const PetscScalar weight27[] = {128.0 / 30.0, -14.0 / 30.0, -3.0 / 30.0, -1.0 / 30.0};
  const PetscInt    directions = (step[0] != 0) + (step[1] != 0) + (step[2] != 0); /* 0 the point itself, 1 across a face, 2 an edge, 3 a corner */

  return *(const PetscInt *)ctx == 7 ? weight7[directions] : weight27[directions];
}

int main(int argc, char **argv)
{
  DM        da;
  Mat       A;
  PetscInt  n = 20, points = 7, size[3];
  PetscReal h        = 0.0;
  double    nonzeros = 0.0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of poisson3d", NULL);
  PetscCall(PetscOptionsInt("-n", "unknowns in each direction; -da_grid_x and so on set one", "poisson3d.c", n, &n, NULL));
  PetscCall(PetscOptionsInt("-stencil", "points of the stencil: 7 or 27", "poisson3d.c", points, &points, NULL));
  PetscOptionsEnd();
  PetscCheck(points == 7 || points == 27, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-stencil has to be 7 or 27, not %" PetscInt_FMT, points);

  PetscCall(GridCreate(n, points == 7 ? DMDA_STENCIL_STAR : DMDA_STENCIL_BOX, &da, size, &h));
  PetscCall(GridMatrix(da, Weight, &points, &A, &nonzeros));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "grid      %" PetscInt_FMT " x %" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt_FMT "-point stencil, %.0f nonzeros\n", size[0], size[1], size[2], points, nonzeros));
  PetscCall(GridSolve(&da, &A, KSPCG, h));
  PetscCall(PetscFinalize());
  return 0;
}
