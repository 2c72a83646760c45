//TEST name="diagonal" nsize=2 args="-diagonal 90" warns="goes on with the products of MATSEQAIJ on the host"
//TEST name="diagonal4" nsize=4 args="-diagonal 90" warns="(said by rank 0, the same on 4 of 4 ranks)"
//TEST name="off" nsize=2 args="-off 90" warns="(said by rank 0, the same on 2 of 2 ranks)"
//TEST name="off4" nsize=4 args="-off 90" warns="goes on with the products of MATSEQAIJ on the host"
//TEST name="one4" nsize=4 args="-off 90 -heavy 2" warns="(said by rank 2, the same on 1 of 4 ranks)"
//TEST name="fits" nsize=4 args="-heavy 4"
//TEST name="transpose" nsize=4 args="-off 90 -transpose -heavy 3" warns="(said by rank 3, the same on 1 of 4 ranks)"
//TEST name="at_assembly" nsize=4 args="-diagonal 90 -mat_gpucsr_transpose_at_assembly" warns="(said by rank 0, the same on 4 of 4 ranks)"
//TEST name="view" nsize=4 args="-off 90 -view" warns="(said by rank 0, the same on 4 of 4 ranks)"
//TEST name="malloc" nsize=2 args="-diagonal 90 -heavy 1 -malloc_debug -malloc_dump" warns="(said by rank 1, the same on 1 of 2 ranks)"
//TEST name="plain" nsize=2 args="-plain -diagonal 90" warns="a matrix of 100 rows and 100 columns goes on"
//TEST name="plain4" nsize=4 args="-plain -diagonal 90" warns="once for all of this node"
//TEST name="plain_one" nsize=4 args="-plain -diagonal 90 -heavy 2" warns="(said by rank 2, once for all of this node)"

/*
  One of a rank's two blocks is too large for the device: both leave the device, other ranks stay, products continue, and there is one message.
  In a plain MATMPIAIJ with blocks of our type each block decides alone, and a message of all ranks is printed once.

    build/tests/t406-blocks [-diagonal ENTRIES] [-off ENTRIES] [-heavy RANK] [-transpose] [-view] [-plain]      (linked with the library, for MatGPUCSRGetInfo())
*/
#include "testing.h"
#include <petscgpucsr.h>

#define ROWS 100 /* of each rank: a block of one entry a row takes about 2.4 kB, a block of 90 entries 109 kB, and the inspector 34 kB for a time */

static PetscErrorCode Create(PetscBool ref, PetscInt diagonal, PetscInt off, PetscInt heavy, Mat *A)
{
  PetscMPIInt rank, size;
  PetscInt    rs, re, d, o;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, ROWS * size, ROWS * size, ref, A));
  PetscCall(MatMPIAIJSetPreallocation(*A, 90, NULL, 90, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  d = heavy < 0 || heavy == rank ? diagonal : 1;
  o = heavy < 0 || heavy == rank ? off : 1;
  for (PetscInt r = 0; r < ROWS; r++) {
    for (PetscInt k = 0; k < d; k++) PetscCall(MatSetValue(*A, rs + r, rs + (r + k) % ROWS, ZooScalar(1, r, k), INSERT_VALUES));
    for (PetscInt k = 0; k < o; k++) PetscCall(MatSetValue(*A, rs + r, (re + (r + k) % ROWS) % (ROWS * size), ZooScalar(2, r, k), INSERT_VALUES)); /* the next rank's columns */
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat           A, R;
  Vec           x, y;
  PetscInt      diagonal = 1, off = 1, heavy = -1;
  PetscBool     transpose = PETSC_FALSE, view = PETSC_FALSE, plain = PETSC_FALSE, aij, left;
  PetscMPIInt   rank;
  MatGPUCSRInfo info;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_memory_limit", "80000"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_backend", "auto"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_format", "csr"));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-diagonal", &diagonal, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-off", &off, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-heavy", &heavy, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-transpose", &transpose, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-view", &view, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-plain", &plain, NULL));
  PetscCall(MatGPUCSRInitializePackage());
  if (plain) PetscCall(PetscOptionsInsertString(NULL, "-mat_type mpiaij -mat_seqaij_type seqaijgpucsr"));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(Create(PETSC_FALSE, diagonal, off, heavy, &A));
  if (plain) PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  PetscCall(Create(PETSC_TRUE, diagonal, off, heavy, &R));
  if (view) {
    FILE       *null = fopen("/dev/null", "w");
    PetscViewer viewer;

    PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_WORLD, null, &viewer));
    PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO));
    PetscCall(MatView(A, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    fclose(null);
  }
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(TestFill(x, 1, PETSC_FALSE));
  if (transpose) PetscCall(MatMultTranspose(A, x, y));
  else PetscCall(MatMult(A, x, y));
  if (plain) {
    PetscCall(TestProducts(A, R, PETSC_FALSE, "of a plain matrix"));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
    PetscCall(PetscFinalize());
    return 0;
  }
  left = (PetscBool)(heavy < 0 || heavy == rank);
  PetscCall(MatGPUCSRGetInfo(A, &info));
  PetscCall(PetscStrcmp(info.format, "aij", &aij));
  PetscCheck(left == aij, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rank %d: format %s is not what fits", (int)rank, info.format);
  PetscCheck(left == (PetscBool)(info.bytes + info.transpose_bytes == 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rank %d: its blocks hold %g bytes of the device", (int)rank, info.bytes + info.transpose_bytes);
  PetscCheck(info.fallbacks == (left ? 1 : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rank %d: %" PetscInt_FMT " fallbacks", (int)rank, info.fallbacks);
  /* a product of each block, by whom it may be */
  PetscCheck((transpose ? info.aij_transpose_products : info.aij_products) == (left ? 2 : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rank %d: %" PetscInt_FMT " products were MATAIJ's", (int)rank, info.aij_products);
  PetscCheck((transpose ? info.transpose_products : info.products) == (left ? 0 : 2), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rank %d: %" PetscInt_FMT " products were a plan's", (int)rank, info.products);
  PetscCall(TestProducts(A, R, PETSC_FALSE, "after that"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}
