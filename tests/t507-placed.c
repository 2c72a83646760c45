/* Arrays of the program on the device in place of a VECGPU's (VecGPUPlaceArray()), each compared with VECSTANDARD. */
//TEST
//TEST name=malloc args="-vec_gpu_separate -malloc_debug -malloc_dump"
//TEST name=ranks2 nsize=2
//TEST name=standin args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1" gpu=0
//TEST name=late args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 1" gpu=0
//TEST name=ranks3.separate nsize=3 args="-vec_gpu_separate"
#include "testing.h"
#include "access.h"
#include <petscgpucsr.h>
#include <petsc/private/petscimpl.h> /* PetscObjectStateIncrease() */

/* The array of w on the device, as any program's: after each operation it has the result, and changes of it count */
static PetscErrorCode TestPlaceDevice(void)
{
  Vec          w, v, s;
  PetscInt     rs;
  PetscScalar *a;
  PetscBool    standin = PETSC_FALSE;
  double      *d;

  PetscFunctionBegin;
  PetscCall(Create(VECGPU, 3000, 1, &w));
  PetscCall(Create(VECSTANDARD, 3000, 1, &s));
  PetscCall(VecDuplicate(w, &v));
  PetscCall(VecSet(v, -1.0));
  PetscCall(VecSet(w, 1.5));
  PetscCall(VecSet(s, 1.5));
  PetscCall(VecGetOwnershipRange(v, &rs, NULL));
  PetscCall(VecGPUGetArray(w, &d));
  PetscCall(VecGPUPlaceArray(v, d));
  for (int q = 0; q < 10; q++) {
    char what[64];

    for (int k = 0; k < 2; k++) {
      Vec x = k ? s : v;

      if (q == 0) PetscCall(VecScale(x, 2.0));
      if (q == 1) PetscCall(VecSet(x, 3.0));
      if (q == 2) PetscCall(VecSetValue(x, rs + 7, 5.0, INSERT_VALUES));
      PetscCall(VecAssemblyBegin(x));
      PetscCall(VecAssemblyEnd(x));
      if (q == 3 || q == 6) {
        PetscCall(VecGetArray(x, &a));
        a[8] += 4.0;
        PetscCall(VecRestoreArray(x, &a));
      }
      if (q == 4) PetscCall(VecGetArrayWrite(x, &a));
      for (int i = 0; i < 3000 && q == 4; i++) a[i] = 0.25 * i;
      if (q == 4) PetscCall(VecRestoreArrayWrite(x, &a));
      if (q == 5) PetscCall(VecShift(x, 3.0));
      if (q == 7) PetscCall(VecPointwiseDivide(x, x, x));
      if (q == 8) PetscCall(VecShift(x, -1.0));
      if (q == 9) PetscCall(VecReciprocal(x));
    }
    PetscCall(PetscSNPrintf(what, sizeof(what), "Operation %d in an array of the device", q));
    PetscCall(Same(v, s, what));
    PetscCall(VecGPUSynchronize(v));
    PetscCall(VecGPURestoreArray(w, &d));
    PetscCall(Same(w, s, what));
    PetscCall(VecScale(w, -1.0)); /* the program changes its array, and says so */
    PetscCall(VecScale(s, -1.0));
    PetscCall(VecGPUGetArray(w, &d));
    PetscCall(PetscObjectStateIncrease((PetscObject)v));
    PetscCall(Same(v, s, "After a change of the array"));
  }
  PetscCall(VecResetArray(v));
  PetscCall(VecGPURestoreArray(w, &d));
  PetscCall(Same(w, s, "After the array is reset"));
  PetscCall(VecSet(s, -1.0));
  PetscCall(Same(v, s, "The vector's own array"));
  PetscCall(VecDestroy(&v));
  PetscCall(Create(VECGPU, 3000, 1, &v));
  PetscCall(VecGPUGetArray(w, &d));
  PetscCall(VecGPUPlaceArray(v, d)); /* and is destroyed so, without an array of its own on the device */
  PetscCall(VecSet(v, -2.5));
  PetscCall(VecSet(s, -2.5));
  PetscCall(VecDestroy(&v));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-gpucsr_debug_standin", &standin, NULL));
  PetscCheck(!standin || d[2999] == -2.5, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The array of a destroyed vector has %g, should be -2.5: work on it goes on", d[2999]);
  PetscCall(VecGPURestoreArray(w, &d));
  PetscCall(Same(w, s, "After the vector is destroyed"));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPIBCGS keeps arrays after it has restored them: its solution is in the placed array after the solve */
static PetscErrorCode TestPlaceSolution(void)
{
  Vec      w, v, b, s;
  Mat      A;
  KSP      ksp;
  PC       pc;
  PetscInt rs, re;
  double  *d;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 500, 500, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(A, MATGPUCSR));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt k = rs; k < re; k++) PetscCall(MatSetValue(A, k, k, 1.0 + k % 37, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(Create(VECGPU, 500, 1, &w));
  PetscCall(VecDuplicate(w, &v));
  PetscCall(VecDuplicate(w, &b));
  PetscCall(VecDuplicate(w, &s));
  PetscCall(VecSet(b, 3.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPIBCGS));
  PetscCall(KSPSetTolerances(ksp, 1e-12, PETSC_DEFAULT, PETSC_DEFAULT, 6));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(KSPSolve(ksp, b, s));
  PetscCall(VecGPUGetArray(w, &d));
  PetscCall(VecGPUPlaceArray(v, d));
  PetscCall(KSPSolve(ksp, b, v));
  PetscCall(VecGPURestoreArray(w, &d));
  PetscCall(Same(w, s, "The solution of KSPIBCGS in an array of the device"));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&s));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(TestPlaceDevice());
  PetscCall(TestPlaceSolution());
  PetscCall(PetscFinalize());
  return 0;
}
