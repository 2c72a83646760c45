//TEST name="aij" args="-mat_gpucsr_backend host"
//TEST name="aij_ranks" nsize=3 args="-mat_gpucsr_backend host"
//TEST name="csr" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format csr"
//TEST name="sell" args="-mat_gpucsr_format sell"
//TEST name="sell_ranks" nsize=3 args="-mat_gpucsr_format sell"
//TEST name="sell_single" args="-mat_gpucsr_format sell -mat_gpucsr_precision single"
//TEST name="csr_single" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -mat_gpucsr_precision single"
//TEST name="pieces" args="-n 700000 -mat_gpucsr_format csr -mat_gpucsr_transpose_format csr" gpu=1
//TEST name="pieces_single" args="-n 1400000 -mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -mat_gpucsr_precision single" gpu=1
//TEST name="pieces_unpinned" args="-n 700000 -mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -mat_gpucsr_pin_vectors 0" gpu=1
//TEST name="vecgpu" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -vectors gpu"
//TEST name="unmeasured" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -measured 0"

/*
  MatGPUCSRGetInfo(): products count for the side that computes them. Padding and copies of vectors, in pieces or not, are timed
  where they occur.

    build/tests/t409-info [-n ROWS] [-measured 0] [-vectors gpu] [-mat_gpucsr_...]      (linked with the library, for MatGPUCSRGetInfo())
*/
#include "testing.h"
#include <petscgpucsr.h>

#define N 3 /* products with A, */
#define T 2 /* and with its transpose */

#define MUST(condition) PetscCheck(condition, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, format %s: it is wrong that " #condition, info.backend, info.format)

int main(int argc, char **argv)
{
  Mat           A;
  Vec           x, y;
  PetscInt      n = 3000, rs, re, blocks;
  PetscMPIInt   size;
  PetscBool     aij, csr, cuda, measured = PETSC_TRUE, single = PETSC_FALSE, vecgpu;
  char          word[32] = "", vectors[32] = "";
  double        bytes;
  MatGPUCSRInfo info;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-measured", &measured, NULL));
  if (measured) PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_report", NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_precision", word, sizeof(word), NULL));
  PetscCall(PetscStrcmp(word, "single", &single));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  blocks = size > 1 ? 2 : 1;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_FALSE, &A));
  PetscCall(MatSeqAIJSetPreallocation(A, 9, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 9, NULL, 9, NULL));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) /* of 1 and of 9 entries: slices are nearly half padding */
    for (PetscInt k = 0; k < (r % 16 ? 1 : 9); k++) PetscCall(MatSetValue(A, r, (r + 11 * k) % n, 1.0 + (double)(k % 4), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vectors", vectors, sizeof(vectors), &vecgpu));
  PetscCall(MatSetVecType(A, vecgpu ? vectors : size > 1 ? VECMPI : VECSEQ));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  for (PetscInt k = 0; k < N; k++) PetscCall(MatMult(A, x, y));
  for (PetscInt k = 0; k < T; k++) PetscCall(MatMultTranspose(A, x, y));

  PetscCall(MatGPUCSRGetInfo(A, &info));
  PetscCall(PetscStrcmp(info.format, "aij", &aij));
  PetscCall(PetscStrcmp(info.format, "csr", &csr));
  PetscCall(PetscStrcmp(info.backend, "cuda", &cuda));
  MUST(info.products == (aij ? 0 : N * blocks) && info.aij_products == (aij ? N * blocks : 0));
  MUST(info.transpose_products == (aij ? 0 : T * blocks) && info.aij_transpose_products == (aij ? T * blocks : 0));
  MUST((aij != (info.aij_time == 0)) && (aij || !measured) == (info.product_time == 0));
  MUST((aij || csr) == (info.pad_time == 0));
  if (!aij && !csr) MUST(info.pad_time > 0.2 * info.convert_time && info.convert_time > 0);
  MUST(info.convert_time >= 0 && info.upload_time >= 0 && (cuda || info.upload_time == 0));
  MUST(PetscAbs(info.build_time - info.inspect_time - info.convert_time - info.pad_time - info.upload_time - info.transpose_time) <= 1e-9 * (1 + info.build_time));
  bytes = (double)(single ? 4 : 8) * (double)n * (N + T);
  if (size == 1 && !aij) {
    const PetscBool copied = (PetscBool)((cuda || single) && !(vecgpu && cuda));

    MUST(info.downloaded == (copied ? bytes : 0));
    MUST((info.download_time > 0) == (copied && measured));
    MUST((info.vector_upload_time > 0) == (copied && measured));
    if (copied && measured) MUST(info.downloaded < 200e9 * info.download_time); /* the time of a copy, not of its launch */
    if (copied) MUST(info.download_time < 1 && info.vector_upload_time < 1);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PETSC_STDOUT = fopen("/dev/null", "w"); /* the report */
  PetscCall(PetscFinalize());
  return 0;
}
