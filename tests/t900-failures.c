//TEST name="backend" args="-mat_gpucsr_backend gpu" fails="-mat_gpucsr_backend. Available options: auto cuda host"
//TEST name="precision" args="-mat_gpucsr_precision half" fails="-mat_gpucsr_precision. Available options: double single mixed auto"
//TEST name="format" args="-mat_gpucsr_format ell" fails="format ell: must be one of auto, aij, csr, sell, dense"
//TEST name="kernel" args="-mat_gpucsr_kernel csr_warp" fails="kernel csr_warp: must be one of auto, csr_scalar, csr_vector2"
//TEST name="transpose_format" args="-mat_gpucsr_transpose_format ell" fails="format ell: must be one of auto, aij, csr, sell, dense"
//TEST name="transpose_kernel" args="-mat_gpucsr_transpose_kernel csr_warp" fails="kernel csr_warp: must be one of auto, csr_scalar, csr_vector2"
//TEST name="mismatch" args="-mat_gpucsr_format csr -mat_gpucsr_kernel sell_row" fails="kernel sell_row works on format sell, not on csr: leave the format to it, or take one of auto, csr_scalar"
//TEST name="unfit" args="-mat_gpucsr_format dense -n 2000 -real" fails="format dense cannot take this matrix of 2000 rows, 2000 columns, 4000 nonzeros"
//TEST name="dense_mixed" args="-mat_gpucsr_format dense -mat_gpucsr_precision mixed -real" fails="format dense cannot take this matrix"
//TEST name="device_map" args="-mat_gpucsr_device_map -1" fails="-mat_gpucsr_device_map: entry 0 is -1; devices count from 0"
//TEST name="no_device" args="-mat_gpucsr_device_map 4711 -real" fails="-mat_gpucsr_device_map asks for device 4711 on local rank 0, which this machine does not have" gpu=1
//TEST name="threads" args="-mat_gpucsr_threads 0" fails="-mat_gpucsr_threads 0: must be from 1 to 1024"
//TEST name="limit" args="-mat_gpucsr_memory_limit -5" fails="-mat_gpucsr_memory_limit -5.: must be a number of bytes, or 0 for no limit"
//TEST name="flag" args="-mat_gpucsr_transpose_at_assembly maybe" fails="Unknown logical value: maybe"
//TEST name="no_gpu" args="-mat_gpucsr_backend cuda -real" fails="-mat_gpucsr_backend cuda cannot be had: " gpu=0
//TEST name="auto_no_gpu" args="-mat_gpucsr_backend auto" gpu=0
//TEST name="memory" args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_memory_limit 1000 -real" warns="MATGPUCSR warning: a matrix of 100 rows and 100 columns goes on with the products of MATSEQAIJ on the host"
//TEST name="memory_transpose" args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_memory_limit 5000 -twice -real -standard_vectors" warns="-mat_gpucsr_memory_limit is 5000"
//TEST name="memory_vectors" args="-mat_gpucsr_backend auto -vec_type gpu -vec_gpu_separate -mat_gpucsr_memory_limit 100 -real" warns="VECGPU warning: a vector of 100 entries, and others after it, stays on the host"
//TEST name="memory_cuda" args="-mat_gpucsr_backend cuda -mat_gpucsr_format csr -mat_gpucsr_memory_limit 1000 -real" fails="-mat_gpucsr_memory_limit is 1000" gpu=1
//TEST name="tolerance" args="-mat_gpucsr_format csr -mat_gpucsr_precision single -ksp_rtol 1e-12 -real" warns="MATGPUCSR warning: -ksp_rtol 1e-12 asks for more than -mat_gpucsr_precision single keeps"
//TEST name="size" args="-case size" fails="Nonconforming object sizes"
//TEST name="alias" args="-case alias" fails="x and y must be different vectors"
//TEST name="alias_transpose" args="-case alias_transpose" fails="x and y must be different vectors"
//TEST name="unassembled" args="-case unassembled" fails="Not for unassembled matrix"
//TEST name="column" args="-case column -mat_gpucsr_format {} -real" fails="700000000" loop="csr sell dense"
//TEST name="below" args="-case below -mat_gpucsr_format {} -real" fails="column -1" loop="csr sell dense"
//TEST name="unknown_type" args="-mat_type gpucs" fails="Unknown Mat type given: gpucs"

/*
  What bad options and bad calls get: one clear error each, or one warning where the products can go on. The library's own words are
  compared here, so that nobody changes them in passing.

    build/tests/t900-failures -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format ell
*/
#include "testing.h"

static PetscErrorCode Fill(Mat A, PetscInt n)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(A, r, r, 1.0 / 3.0 + r, INSERT_VALUES)); /* not a float */
    PetscCall(MatSetValue(A, r, (r + 3) % n, -1.0 / 7.0, INSERT_VALUES));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix with an index out of range, as MatLoad() makes of a damaged file without a word */
static PetscErrorCode OutOfRange(PetscInt column)
{
  Mat         A, B;
  Vec         x, y;
  PetscInt    i[] = {0, 1, 3, 4}, j[] = {0, 1, column, 2};
  PetscScalar a[] = {1.0, 1.0, 1.0, 1.0};
  char        type[64];

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 3, 3, i, j, a, &A));
  PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatCreateVecs(B, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(B, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat       A, R;
  Vec       x, y, z;
  PetscInt  n     = 100;
  PetscBool twice = PETSC_FALSE, real = PETSC_FALSE, is;
  char      what[64] = "";

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-real", &real, NULL));
  if (real) PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-twice", &twice, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-case", what, sizeof(what), NULL));

  PetscCall(PetscStrcmp(what, "column", &is));
  if (is) PetscCall(OutOfRange(700000000));
  PetscCall(PetscStrcmp(what, "below", &is));
  if (is) PetscCall(OutOfRange(-1));
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_FALSE, &A));
  PetscCall(MatSetUp(A));
  PetscCall(Fill(A, n));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(PetscStrcmp(what, "unassembled", &is));
  if (is) PetscCall(MatMult(A, x, y));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscStrcmp(what, "size", &is));
  if (is) {
    PetscCall(VecCreate(PETSC_COMM_WORLD, &z));
    PetscCall(VecSetSizes(z, PETSC_DECIDE, n + 1));
    PetscCall(VecSetFromOptions(z));
    PetscCall(MatMult(A, z, y));
  }
  PetscCall(PetscStrcmp(what, "alias", &is));
  if (is) PetscCall(MatMult(A, x, x));
  PetscCall(PetscStrcmp(what, "alias_transpose", &is));
  if (is) PetscCall(MatMultTranspose(A, x, x));

  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_TRUE, &R));
  PetscCall(MatSetUp(R));
  PetscCall(Fill(R, n));
  PetscCall(MatAssemblyBegin(R, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(R, MAT_FINAL_ASSEMBLY));
  PetscCall(TestProducts(A, R, PETSC_FALSE, "after what went wrong")); /* nothing is lost where products go on */
  if (twice) {
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
    PetscCall(TestProducts(A, R, PETSC_FALSE, "with other values"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(PetscFinalize());
  return 0;
}
