//TEST name="default"
//TEST name="format" args="-mat_gpucsr_format {}" loop="aij csr sell bitdense sell_256 sell_sorted coo hyb jad"
//TEST name="transpose" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format {}" loop="csr sell bitdense coo hyb jad"
//TEST name="assembly" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_at_assembly"
//TEST name="kernel" args="-mat_gpucsr_kernel {} -mat_gpucsr_transpose_kernel {}" loop="{kernels}" gpu=1
//TEST name="single" args="-mat_gpucsr_precision single -mat_gpucsr_format {}" loop="csr sell bitdense"
//TEST name="mixed" args="-mat_gpucsr_precision mixed -mat_gpucsr_format {}" loop="csr sell"
//TEST name="auto" args="-mat_gpucsr_precision auto -mat_gpucsr_format {}" loop="csr sell bitdense"
//TEST name="ranks" nsize=2 args="-mat_gpucsr_format {}" loop="aij bitdense"
//TEST name="ranks3" nsize=3 args="-mat_gpucsr_format sell"
//TEST name="ranks4" nsize=4 args="-mat_gpucsr_format csr -mat_gpucsr_precision single"
//TEST name="ranks5" nsize=5 args="-mat_gpucsr_format csr -mat_gpucsr_transpose_at_assembly"
//TEST name="ranks8" nsize=8 args="-mat_gpucsr_format csr"
//TEST name="standard" args="-mat_gpucsr_format csr -standard_vectors"
//TEST name="unpinned" args="-mat_gpucsr_pin_vectors 0 -mat_gpucsr_threads 1"
//TEST name="standin" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format {}" loop="auto csr sell bcsr2x2 block4x64 bitdense dia hyb jad stencil"
//TEST name="standin_ranks" nsize=3 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format sell -mat_gpucsr_transpose_format csr -mat_gpucsr_precision mixed"
//TEST name="aij" nsize=2 args="-mat_type aij" load=0
//TEST name="perm" args="-mat_type aijperm" load=0
//TEST name="malloc" nsize=2 args="-mat_gpucsr_format {} -malloc_dump" loop="csr sell"
//TEST name="vecgpu" nsize=3 args="-vec_type gpu -vec_gpu_separate -mat_gpucsr_format {}" loop="aij sell"
//TEST name="vecgpu" args="-vec_type gpu -mat_gpucsr_format csr -mat_gpucsr_precision {}" loop="double single"

/*
  Every product of every matrix of the zoo against MATAIJ, with finite values and with infinities and NaN among them.

    build/tests/t400-matmult -dll_append build/lib/libpetscgpucsr.so [-mat_type gpucsr] [-mat_gpucsr_...]
*/
#include "testing.h"

int main(int argc, char **argv)
{
  PetscBool takes = PETSC_TRUE;
  PetscInt  taken = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (PetscInt which = 0; which < ZOO_COUNT; which++) {
    for (PetscInt special = 0; special < 3; special++) { /* all finite, not so the matrix, not so the vectors */
      Mat  A, R;
      char where[64];

      PetscCall(PetscSNPrintf(where, sizeof(where), "%s%s", ZooTable[which].name, special == 0 ? "" : special == 1 ? " with NaN" : " times NaN"));
      PetscCall(TestZoo(PETSC_COMM_WORLD, which, (PetscBool)(special == 1), PETSC_FALSE, &A));
      PetscCall(TestZoo(PETSC_COMM_WORLD, which, (PetscBool)(special == 1), PETSC_TRUE, &R));
      if (!special) PetscCall(TestTakes(A, &takes));
      if (takes) PetscCall(TestProducts(A, R, (PetscBool)(special == 2), where));
      taken += takes;
      PetscCall(MatDestroy(&A));
      PetscCall(MatDestroy(&R));
    }
  }
  PetscCheck(taken, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "No matrix of the zoo was taken");
  PetscCall(PetscFinalize());
  return 0;
}
