//TEST name="default"
//TEST name="ranks" nsize=2
//TEST name="malloc" args="-mat_gpucsr_format csr -malloc_debug -malloc_dump"

/*
  PETSc initialised and finalised three times in one process, the library loaded anew each time, as a coupled code does it.

    build/tests/t404-again -dll_append build/lib/libpetscgpucsr.so
*/
#include "testing.h"

int main(int argc, char **argv)
{
  PetscErrorCode ierr = MPI_Init(&argc, &argv) ? PETSC_ERR_MPI : PETSC_SUCCESS;

  if (ierr) return 1;
  for (PetscInt k = 0; k < 3; k++) {
    Mat A, R;

    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(TestZoo(PETSC_COMM_WORLD, ZOO_RANDOM, PETSC_FALSE, PETSC_FALSE, &A));
    PetscCall(TestZoo(PETSC_COMM_WORLD, ZOO_RANDOM, PETSC_FALSE, PETSC_TRUE, &R));
    PetscCall(TestProducts(A, R, PETSC_FALSE, "random"));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
    PetscCall(PetscFinalize());
  }
  return MPI_Finalize();
}
