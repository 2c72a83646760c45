//TEST name="default"
//TEST name="ranks" nsize=2
//TEST name="twice" args="-dll_append {lib}"

/*
  The public C functions, in a program linked with the library. The program initialises the library by a call, and then loads it too.

    build/tests/t405-linked
*/
#include "testing.h"
#include <petscgpucsr.h>

static PetscErrorCode Fill(Mat A)
{
  PetscInt rs, re, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(A, r, r, 2.5 + r, INSERT_VALUES));
    PetscCall(MatSetValue(A, r, (r + 7) % n, -1.25, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define CheckWord(have, want, what) \
  do { \
    PetscBool same_; \
    PetscCall(PetscStrcmp(have, want, &same_)); \
    PetscCheck(same_, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The %s is %s, should be %s", what, have, want); \
  } while (0)

/* What was set by call holds when PETSc makes the new pattern in another matrix and lets that take A's place */
static PetscErrorCode SettingsStay(void)
{
  Mat           A, T;
  MatGPUCSRInfo info;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, 6, 0.5, PETSC_FALSE, &A));
  PetscCall(MatGPUCSRSetFormat(A, "sell"));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatAXPY(A, 2.0, T, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatGPUCSRSetUp(A, PETSC_FALSE));
  PetscCall(MatGPUCSRGetInfo(A, &info));
  CheckWord(info.format, "sell", "format after MatAXPY()");
  PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatGPUCSRSetUp(A, PETSC_FALSE));
  PetscCall(MatGPUCSRGetInfo(A, &info));
  CheckWord(info.format, "sell", "format after MatTranspose() in place");
  PetscCall(MatDestroy(&T));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat           A, B, R;
  Vec           x, y;
  PetscMPIInt   size;
  const char   *formats[] = {"csr", "sell", "bitdense"};
  MatGPUCSRInfo info;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(MatGPUCSRInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));

  if (size == 1) PetscCall(MatCreateSeqAIJGPUCSR(PETSC_COMM_SELF, 50, 50, 2, NULL, &A));
  else PetscCall(MatCreateAIJGPUCSR(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, 50, 50, 2, NULL, 2, NULL, &A));
  PetscCall(Fill(A));
  PetscCall(SettingsStay());
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, 50, 50, 2, NULL, 2, NULL, &R));
  PetscCall(Fill(R));
  for (size_t f = 0; f < PETSC_STATIC_ARRAY_LENGTH(formats); f++) {
    for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(formats); t++) { /* changed between products, in every combination */
      PetscCall(MatGPUCSRSetFormat(A, formats[f]));
      PetscCall(MatGPUCSRSetTransposeFormat(A, formats[t]));
      PetscCall(TestProducts(A, R, PETSC_FALSE, formats[f]));
      PetscCall(MatGPUCSRGetInfo(A, &info));
      CheckWord(info.format, formats[f], "format");
      CheckWord(info.transpose_format, formats[t], "transpose's format");
      PetscCheck(info.products > 0 && info.transpose_products > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The products were not counted");
    }
  }
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B)); /* takes its settings along, but not its counts */
  PetscCall(TestProducts(B, R, PETSC_FALSE, "duplicate"));
  PetscCall(MatGPUCSRGetInfo(B, &info));
  CheckWord(info.format, "bitdense", "duplicate's format");
  PetscCall(MatDestroy(&B));

  PetscCall(MatGPUCSRSetFormat(A, "csr"));
  PetscCall(MatGPUCSRSetTransposeFormat(A, "csr"));
  PetscCall(MatGPUCSRSetPrecision(A, MAT_GPUCSR_MIXED)); /* every value is exactly a float, so double's bound holds */
  PetscCall(TestProducts(A, R, PETSC_FALSE, "mixed"));
  PetscCall(MatGPUCSRGetInfo(A, &info));
  PetscCheck(info.rounding == 0.0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Values that are floats were rounded by %g", info.rounding);
  PetscCall(MatScale(A, 1.0 / 3.0));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatGPUCSRGetInfo(A, &info));
  PetscCheck(info.rounding > 0.0 && info.rounding <= FLT_EPSILON, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Thirds rounded to floats: %g is not the largest relative rounding", info.rounding);
  PetscCall(MatScale(A, 3.0));
  PetscCall(MatGPUCSRSetPrecision(A, MAT_GPUCSR_DOUBLE));
  PetscCall(MatGPUCSRSetTransposeAtAssembly(A, PETSC_TRUE));
  PetscCall(MatGPUCSRSetBackend(A, MAT_GPUCSR_BACKEND_HOST));
  PetscCall(MatGPUCSRSetKernel(A, "auto"));
  PetscCall(MatGPUCSRSetTransposeKernel(A, "auto"));
  PetscCall(MatShift(A, 1.0));
  PetscCall(MatShift(R, 1.0));
  PetscCall(MatGPUCSRSetUp(A, PETSC_TRUE));
  PetscCall(TestProducts(A, R, PETSC_FALSE, "set up"));
  PetscCall(MatGPUCSRGetInfo(A, &info));
  CheckWord(info.backend, "host", "backend");
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));

  /* on a matrix of another type the setters do nothing */
  PetscCall(MatGPUCSRSetFormat(R, "csr"));
  PetscCall(MatGPUCSRSetPrecision(R, MAT_GPUCSR_SINGLE));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}
