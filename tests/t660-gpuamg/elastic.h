/*
  Plane elasticity, and matrices of one rank on several ranks
*/
#pragma once
#include "../testing.h"

/* A solve without iterations: cycles of the PC are then the ones of conjugate gradients, in floats where these are asked for */
PETSC_UNUSED static PetscErrorCode ForCG(PC pc)
{
  KSP ksp;
  Mat A;
  Vec b, x;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)pc), &ksp));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetPC(ksp, pc));
  PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Plane strain of k by k bilinear elements, held at its left side; modes: with rigid motions as its near null space */
static inline PetscErrorCode ElasticCreate(PetscInt k, PetscReal poisson, PetscBool modes, PetscBool ref, Mat *A)
{
  const PetscInt  side = k + 1, n = 2 * side * k; /* nodes at the left side are not there */
  const PetscReal at[2] = {0.5 - 0.5 / PetscSqrtReal(3.0), 0.5 + 0.5 / PetscSqrtReal(3.0)}, lame = poisson / ((1 + poisson) * (1 - 2 * poisson)), shear = 0.5 / (1 + poisson);
  PetscScalar     K[8][8];
  Vec             x;
  PetscScalar    *c;
  MatNullSpace    near;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(K, sizeof(K)));
  for (int q = 0; q < 4; q++) {
    const PetscReal s = at[q % 2], t = at[q / 2];
    const PetscReal d[4][2] = {
      {t - 1, s - 1},
      {1 - t, -s   },
      {t,     s    },
      {-t,    1 - s}
    };

    for (int a = 0; a < 4; a++)
      for (int b = 0; b < 4; b++)
        for (int i = 0; i < 2; i++)
          for (int j = 0; j < 2; j++) K[2 * a + i][2 * b + j] += 0.25 * (lame * d[a][i] * d[b][j] + shear * d[a][j] * d[b][i] + (i == j ? shear * (d[a][0] * d[b][0] + d[a][1] * d[b][1]) : 0));
  }
  PetscCall(TestMatCreate(PETSC_COMM_SELF, n, n, ref, A));
  PetscCall(MatSetBlockSize(*A, 2));
  PetscCall(MatSeqAIJSetPreallocation(*A, 18, NULL));
  for (PetscInt e = 0; e < k * k; e++) {
    const PetscInt ex = e % k, ey = e / k,
                   node[4][2] = {
                     {ex,     ey    },
                     {ex + 1, ey    },
                     {ex + 1, ey + 1},
                     {ex,     ey + 1}
    };
    PetscInt dof[8];

    for (int a = 0; a < 4; a++)
      for (int i = 0; i < 2; i++) dof[2 * a + i] = node[a][0] ? 2 * (node[a][1] * k + node[a][0] - 1) + i : -1;
    PetscCall(MatSetValues(*A, 8, dof, 8, dof, &K[0][0], ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  if (!modes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &x));
  PetscCall(VecSetBlockSize(x, 2));
  PetscCall(VecGetArray(x, &c));
  for (PetscInt v = 0; v < n / 2; v++) {
    c[2 * v]     = (PetscReal)(v % k + 1);
    c[2 * v + 1] = (PetscReal)(v / k);
  }
  PetscCall(VecRestoreArray(x, &c));
  PetscCall(MatNullSpaceCreateRigidBody(x, &near));
  PetscCall(MatSetNearNullSpace(*A, near));
  PetscCall(MatNullSpaceDestroy(&near));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A symmetric positive definite matrix of this rank by rows over the ranks of comm, of the type under test */
static inline PetscErrorCode Spread(MPI_Comm comm, Mat R, Mat *A)
{
  PetscInt n, bs, first, end;

  PetscFunctionBegin;
  PetscCall(MatGetSize(R, &n, NULL));
  PetscCall(MatGetBlockSize(R, &bs));
  PetscCall(TestMatCreate(comm, n, n, PETSC_FALSE, A));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSeqAIJSetPreallocation(*A, 27, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 27, NULL, 27, NULL));
  PetscCall(MatGetOwnershipRange(*A, &first, &end));
  for (PetscInt i = first; i < end; i++) {
    const PetscInt    *j;
    const PetscScalar *a;

    PetscCall(MatGetRow(R, i, &n, &j, &a));
    PetscCall(MatSetValues(*A, 1, &i, n, j, a, INSERT_VALUES));
    PetscCall(MatRestoreRow(R, i, &n, &j, &a));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
