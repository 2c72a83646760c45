//TEST name="backend" args="-mat_gpucsr_backend gpu" fails="-mat_gpucsr_backend. Available options: auto cuda host"
//TEST name="precision" args="-mat_gpucsr_precision half" fails="-mat_gpucsr_precision. Available options: double single mixed auto"
//TEST name="format" args="-mat_gpucsr_format elle" fails="-mat_gpucsr_format elle: must be one of auto, aij, csr, sell, bcsr2x2"
//TEST name="kernel" args="-mat_gpucsr_kernel csr_warp" fails="-mat_gpucsr_kernel csr_warp: must be one of auto, csr_scalar, csr_vector2"
//TEST name="transpose_format" args="-mat_gpucsr_transpose_format elle" fails="-mat_gpucsr_transpose_format elle: must be one of auto, csr, sell, bcsr2x2"
//TEST name="transpose_aij" args="-mat_gpucsr_transpose_format aij" fails="-mat_gpucsr_transpose_format aij: a transpose is kept on the device or not at all"
//TEST name="transpose_kernel" args="-mat_gpucsr_transpose_kernel csr_warp" fails="-mat_gpucsr_transpose_kernel csr_warp: must be one of auto, csr_scalar, csr_vector2"
//TEST name="mismatch" args="-mat_gpucsr_format csr -mat_gpucsr_kernel sell_row" fails="kernel sell_row works on format sell, not on csr: leave the format to it, or take one of auto, csr_scalar"
//TEST name="transpose_mismatch" args="-mat_gpucsr_transpose_format csr -mat_gpucsr_transpose_kernel sell_row" fails="-mat_gpucsr_transpose_kernel: MATGPUCSR kernel sell_row works on format sell, not on csr"
//TEST name="prefix" args="-case prefix -p_mat_gpucsr_transpose_kernel csr_warp" fails="-p_mat_gpucsr_transpose_kernel csr_warp: must be one of auto"
//TEST name="ranks_backend" nsize=4 args="-mat_gpucsr_backend gpu" fails="-mat_gpucsr_backend. Available options: auto cuda host"
//TEST name="ranks_format" nsize=2 args="-mat_gpucsr_format elle" fails="-mat_gpucsr_format elle: must be one of auto, aij, csr, sell, bcsr2x2"
//TEST name="ranks_kernel" nsize=4 args="-mat_gpucsr_transpose_kernel csr_warp" fails="-mat_gpucsr_transpose_kernel csr_warp: must be one of auto"
//TEST name="ranks_flag" nsize=2 args="-mat_gpucsr_transpose_at_assembly maybe" fails="Unknown logical value: maybe"
//TEST name="ranks_unfit" nsize=2 args="-mat_gpucsr_format bitdense -n 4000 -real" fails="(met by rank 0, on 2 of 2 ranks in all)"
//TEST name="unfit" args="-mat_gpucsr_format bitdense -n 2000 -real" fails="format bitdense cannot take this matrix of 2000 rows, 2000 columns, 4000 nonzeros"
//TEST name="device_map" args="-mat_gpucsr_device_map -1" fails="-mat_gpucsr_device_map: entry 0 is -1; devices count from 0"
//TEST name="no_device" args="-mat_gpucsr_device_map 4711 -real" fails="-mat_gpucsr_device_map: this machine has no device 4711 for local rank 0" gpu=1
//TEST name="threads" args="-mat_gpucsr_threads 0" fails="-mat_gpucsr_threads 0: must be from 1 to 1024"
//TEST name="limit" args="-mat_gpucsr_memory_limit -5" fails="-mat_gpucsr_memory_limit -5.: must be a number of bytes, or 0 for no limit"
//TEST name="flag" args="-mat_gpucsr_transpose_at_assembly maybe" fails="Unknown logical value: maybe"
//TEST name="no_gpu" args="-mat_gpucsr_backend cuda -real" fails="-mat_gpucsr_backend cuda is not possible here: " gpu=0
//TEST name="ranks_no_gpu" nsize=2 args="-mat_gpucsr_backend cuda -real" fails="-mat_gpucsr_backend cuda is not possible here: " gpu=0
//TEST name="ranks4_no_gpu" nsize=4 args="-mat_gpucsr_backend cuda -real" fails="(met by rank 0, on 4 of 4 ranks in all)" gpu=0
//TEST name="ranks_self_no_gpu" nsize=3 args="-case self -mat_gpucsr_backend cuda -real" fails="-mat_gpucsr_backend cuda is not possible here: " gpu=0
//TEST name="ranks_auto_no_gpu" nsize=4 args="-mat_gpucsr_backend auto" gpu=0
//TEST name="auto_no_gpu" args="-mat_gpucsr_backend auto" gpu=0
//TEST name="open" args="-gpucsr_debug_standin 1 -gpucsr_debug_fault {} -mat_gpucsr_backend auto -mat_gpucsr_format csr -real" loop="properties:1 pagelock:2 event:2 device:1:on" warns="MATGPUCSR warning: backend cuda is not used: device 0 cannot be opened: "
//TEST name="ranks_open" nsize=2 args="-gpucsr_debug_standin 1 -gpucsr_debug_fault properties:1:rank=1 -mat_gpucsr_backend auto -mat_gpucsr_format csr -real" warns="MATGPUCSR warning: backend cuda is not used: device 0 cannot be opened: "
//TEST name="open_cuda" args="-gpucsr_debug_standin 1 -gpucsr_debug_fault pagelock:1 -mat_gpucsr_backend cuda -real" fails="-mat_gpucsr_backend cuda is not possible here: device 0 cannot be opened: "
//TEST name="ranks_open_cuda" nsize=2 args="-gpucsr_debug_standin 1 -gpucsr_debug_fault properties:1:rank=1 -mat_gpucsr_backend cuda -real" fails="(met by rank 1, on 1 of 2 ranks in all)"
//TEST name="memory" args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_memory_limit 1000 -real" warns="MATGPUCSR warning: a matrix of 100 rows and 100 columns goes on with the products of MATSEQAIJ on the host"
//TEST name="memory_transpose" args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_memory_limit 5000 -twice -real -standard_vectors" warns="-mat_gpucsr_memory_limit is 5000"
//TEST name="memory_vectors" args="-mat_gpucsr_backend auto -vec_type gpu -vec_gpu_separate -mat_gpucsr_memory_limit 100 -real" warns="VECGPU warning: a vector of 100 entries, and later vectors, stay on the host"
//TEST name="memory_cuda" args="-mat_gpucsr_backend cuda -mat_gpucsr_format csr -mat_gpucsr_memory_limit 1000 -real -standard_vectors" fails="-mat_gpucsr_memory_limit is 1000" gpu=1
//TEST name="tolerance" args="-mat_gpucsr_format csr -mat_gpucsr_precision single -ksp_rtol 1e-12 -real" warns="MATGPUCSR warning: -ksp_rtol 1e-12 asks for more than -mat_gpucsr_precision single keeps"
//TEST name="ranks_memory" nsize=4 args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_memory_limit 1000 -real" warns="MATGPUCSR warning: "
//TEST name="ranks_memory_transpose" nsize=2 args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_memory_limit 5500 -twice -real -standard_vectors" warns="MATGPUCSR warning: "
//TEST name="ranks_memory_halo" nsize=2 args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_memory_limit 5500 -twice -real" warns="MATGPUCSR warning: " gpu=1
//TEST name="ranks_memory_cuda" nsize=2 args="-mat_gpucsr_backend cuda -mat_gpucsr_format csr -mat_gpucsr_memory_limit 1000 -real -standard_vectors" fails="-mat_gpucsr_memory_limit is 1000" gpu=1
//TEST name="ranks_tolerance" nsize=4 args="-mat_gpucsr_format csr -mat_gpucsr_precision single -ksp_rtol 1e-12 -real" warns="MATGPUCSR warning: -ksp_rtol 1e-12 asks for more than -mat_gpucsr_precision single keeps"
//TEST name="size" args="-case size" fails="Nonconforming object sizes"
//TEST name="alias" args="-case alias" fails="x and y must be different vectors"
//TEST name="alias_transpose" args="-case alias_transpose" fails="x and y must be different vectors"
//TEST name="unassembled" args="-case unassembled" fails="Not for unassembled matrix"
//TEST name="not_set_up" args="-case not_set_up" fails="has no room for values yet: call MatSetUp() or preallocate it"
//TEST name="not_set_up_type" args="-case not_set_up -mat_type aij -mat_seqaij_type seqaijgpucsr" fails="has no room for values yet: call MatSetUp() or preallocate it"
//TEST name="ranks_column" nsize=3 args="-case entry -mat_gpucsr_format csr -real" fails="(met by rank 2, on 1 of 3 ranks in all)"
//TEST name="column" args="-case column -mat_gpucsr_format {} -real" fails="700000000" loop="csr sell bitdense"
//TEST name="below" args="-case below -mat_gpucsr_format {} -real" fails="column -1" loop="csr sell bitdense"
//TEST name="unknown_type" args="-mat_type gpucs" fails="Unknown Mat type given: gpucs"

/*
  Each bad option or call gets one clear error, or one warning if the products can go on. The comparison of the library's words makes each change of a message deliberate.

    build/tests/t900-failures -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format elle
*/
#include "testing.h"

/* One entry of the last rank alone is damaged in memory */
static PetscErrorCode Damage(Mat A)
{
  Mat             Ad;
  const PetscInt *i, *j;
  PetscMPIInt     rank, size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, NULL, NULL));
  PetscCall(MatSeqAIJGetCSRAndMemType(Ad, &i, &j, NULL, NULL));
  if (rank == size - 1) ((PetscInt *)j)[i[1]] = 700000000;
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  PetscCall(PetscStrcmp(what, "self", &is));
  if (is) PetscCall(OutOfRange(1)); /* it is not: a matrix of each rank by itself */
  PetscCall(PetscStrcmp(what, "below", &is));
  if (is) PetscCall(OutOfRange(-1));
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_FALSE, &A));
  PetscCall(PetscStrcmp(what, "prefix", &is));
  if (is) {
    PetscCall(MatSetOptionsPrefix(A, "p_"));
    PetscCall(MatSetFromOptions(A));
  }
  PetscCall(PetscStrcmp(what, "not_set_up", &is));
  if (is && PETSC_VERSION_GE(3, 20, 0)) { /* MatSetValues() calls MatSetUp() */
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "skipped: this PETSc sets the matrix up\n"));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscFinalize());
    return 0;
  }
  if (is) PetscCall(MatSetValue(A, 0, 0, 1.0, INSERT_VALUES));
  PetscCall(MatSetUp(A));
  PetscCall(Fill(A, n));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(PetscStrcmp(what, "unassembled", &is));
  if (is) PetscCall(MatMult(A, x, y));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscStrcmp(what, "entry", &is));
  if (is) PetscCall(Damage(A));
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
