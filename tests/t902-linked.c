//TEST name="unassembled" args="-case unassembled" fails="The matrix must be assembled first: call MatAssemblyBegin() and MatAssemblyEnd()"
//TEST name="format" args="-case format" fails="format elle: must be one of auto, aij, csr, sell, bcsr2x2"
//TEST name="transpose_format" args="-case transpose_format" fails="-mat_gpucsr_transpose_format elle: must be one of auto, csr, sell, bcsr2x2"
//TEST name="kernel" args="-case kernel" fails="kernel csr_warp: must be one of auto, csr_scalar, csr_vector2"
//TEST name="transpose_kernel" args="-case transpose_kernel" fails="kernel csr_warp: must be one of auto, csr_scalar, csr_vector2"
//TEST name="all_kernels" args="-case kernel" fails=", csr_scan, oblong_twostep"
//TEST name="backend" args="-case backend" fails="SetBackend 77: must be one of MAT_GPUCSR_BACKEND_AUTO"
//TEST name="precision" args="-case precision" fails="SetPrecision 77: must be one of MAT_GPUCSR_DOUBLE"
//TEST name="select" args="-case select" fails="SetSelect -1: must be one of MAT_GPUCSR_SELECT_ESTIMATE"
//TEST name="perm" args="-mat_seqaij_type seqaijgpucsr -case perm" fails="type seqaijperm cannot be made with -mat_seqaij_type seqaijgpucsr"
//TEST name="info" args="-case info" fails="MatGPUCSRGetInfo_C"

/*
  Wrong calls of the public C functions, and their errors.

    build/tests/t902-linked -case format
*/
#include "testing.h"
#include <petscgpucsr.h>

int main(int argc, char **argv)
{
  Mat           A, R;
  PetscBool     is;
  char          what[64] = "";
  MatGPUCSRInfo info;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-case", what, sizeof(what), NULL));
  PetscCall(MatCreateSeqAIJGPUCSR(PETSC_COMM_SELF, 5, 5, 1, NULL, &A));
  PetscCall(PetscStrcmp(what, "unassembled", &is));
  if (is) PetscCall(MatGPUCSRSetUp(A, PETSC_FALSE));
  PetscCall(PetscStrcmp(what, "format", &is));
  if (is) PetscCall(MatGPUCSRSetFormat(A, "elle"));
  PetscCall(PetscStrcmp(what, "transpose_format", &is));
  if (is) PetscCall(MatGPUCSRSetTransposeFormat(A, "elle"));
  PetscCall(PetscStrcmp(what, "kernel", &is));
  if (is) PetscCall(MatGPUCSRSetKernel(A, "csr_warp"));
  PetscCall(PetscStrcmp(what, "transpose_kernel", &is));
  if (is) PetscCall(MatGPUCSRSetTransposeKernel(A, "csr_warp"));
  PetscCall(PetscStrcmp(what, "backend", &is));
  if (is) PetscCall(MatGPUCSRSetBackend(A, (MatGPUCSRBackend)77));
  PetscCall(PetscStrcmp(what, "precision", &is));
  if (is) PetscCall(MatGPUCSRSetPrecision(A, (MatGPUCSRPrecision)77));
  PetscCall(PetscStrcmp(what, "select", &is));
  if (is) PetscCall(MatGPUCSRSetSelect(A, (MatGPUCSRSelect)-1));
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 5, 5, 1, NULL, &R));
  PetscCall(PetscStrcmp(what, "perm", &is));
  if (is) {
    PetscCall(MatSetType(R, MATSEQAIJPERM));
    PetscCall(MatSetFromOptions(R));
  }
  PetscCall(PetscStrcmp(what, "info", &is));
  if (is) PetscCall(MatGPUCSRGetInfo(R, &info));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}
