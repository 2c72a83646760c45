//TEST name="cuda" args="-asked cuda" fails="-mat_gpucsr_backend cuda is not possible here: " gpu=0
//TEST name="cuda_ranks" nsize=2 args="-asked cuda" fails="-mat_gpucsr_backend cuda is not possible here: " gpu=0
//TEST name="host" args="-asked host -mat_gpucsr_format csr"
//TEST name="host_ranks" nsize=3 args="-asked host -mat_gpucsr_format csr"
//TEST name="auto" args="-asked auto" gpu=1
//TEST name="auto_ranks" nsize=2 args="-asked auto" gpu=1
//TEST name="gpu" args="-asked cuda" gpu=1
//TEST name="gpu_ranks" nsize=3 args="-asked cuda" gpu=1

/*
  MatBindToCPU() moves the products to the host, and back to the requested backend. Without a GPU, a matrix of backend cuda can be multiplied while it
  is bound; unbound, its product is an error.

    build/tests/t408-bind -asked auto|cuda|host      (linked with the library, for MatGPUCSRGetInfo()); a PETSc without devices binds nothing
*/
#include "testing.h"
#include <petscgpucsr.h>

static PetscErrorCode Backend(Mat A, const char expected[], const char when[])
{
  MatGPUCSRInfo info;
  PetscBool     same;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRGetInfo(A, &info));
  PetscCall(PetscStrcmp(info.backend, expected, &same));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: products were computed by backend %s, not %s", when, info.backend, expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat       A, R;
  char      asked[16] = "auto";
  PetscBool host, bound, automatic;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
#if !PetscDefined(HAVE_DEVICE)
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "skipped: this PETSc knows of no devices\n"));
  PetscCall(PetscOptionsClear(NULL));
  PetscCall(PetscFinalize());
  return 0;
#endif
  PetscCall(PetscOptionsGetString(NULL, NULL, "-asked", asked, sizeof(asked), NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_backend", asked));
  PetscCall(PetscStrcmp(asked, "host", &host));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(TestConvection(PETSC_COMM_WORLD, 12, 0.5, PETSC_FALSE, &A));
  PetscCall(TestConvection(PETSC_COMM_WORLD, 12, 0.5, PETSC_TRUE, &R));
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCheck(!bound, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A new matrix is bound to the CPU");
  PetscCall(PetscStrcmp(asked, "auto", &automatic));
  if (host || automatic) {
    PetscCall(TestProducts(A, R, PETSC_FALSE, "as made"));
    PetscCall(Backend(A, host ? "host" : "cuda", "as made"));
  }
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(MatBindToCPU(A, PETSC_TRUE));
    PetscCall(TestProducts(A, R, PETSC_FALSE, "bound"));
    PetscCall(Backend(A, "host", "bound"));
    PetscCall(MatScale(A, 1.5));
    PetscCall(MatScale(R, 1.5));
    PetscCall(MatBindToCPU(A, PETSC_FALSE));
    PetscCall(TestProducts(A, R, PETSC_FALSE, "no longer bound"));
    PetscCall(Backend(A, host ? "host" : "cuda", "no longer bound"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}
