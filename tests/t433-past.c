//TEST name="default" args=""
//TEST name="standin" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu" gpu=0
//TEST name="master" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" gpu=0
//TEST name="late" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer {} -mat_gpucsr_master device" loop="0 1" gpu=0
//TEST name="mixed" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_master device -mat_gpucsr_precision mixed" gpu=0
//TEST name="gpu" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -vec_type gpu -mat_gpucsr_master device" gpu=1
//TEST name="ranks" nsize={} args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" loop="2 3" gpu=0

/* With the master copy on the device: PETSc writes values on the host past the operations of the matrix, or the library ends */
static char help[] = "Tests values that are written past the device that has them.\n";

#include "pair.h"
#include <petscgpucsr.h>

/* Matrices that the device has, and PETSc writes again on the host: the new values count */
static PetscErrorCode Reused(Pair *p)
{
  static const char *const what[] = {"MatTranspose()", "MatCreateSubMatrices()", "MatMatMatMult()", "MatMatMult() with a MATAIJ"};
  Mat                      B[2], F[2], *sub[2];
  IS                       is;

  PetscFunctionBegin;
  PetscCall(ISCreateStride(PETSC_COMM_SELF, N / 2, 0, 2, &is));
  for (int q = 0; q < 4; q++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(Make(PETSC_TRUE, 3, &F[k]));
      for (int r = 0; r < 2; r++) {
        const MatReuse reuse = r ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

        if (q == 0) PetscCall(MatTranspose(p->m[k], reuse, &B[k]));
        if (q == 1) PetscCall(MatCreateSubMatrices(p->m[k], 1, &is, &is, reuse, &sub[k]));
        if (q == 2) PetscCall(MatMatMatMult(p->m[k], p->m[k], p->m[k], reuse, PETSC_DEFAULT, &B[k]));
        if (q == 3) PetscCall(MatMatMult(p->m[k], F[k], reuse, PETSC_DEFAULT, &B[k]));
        if (q == 1) B[k] = sub[k][0];
        if (r) continue;
        PetscCall(MatScale(B[k], 2.0));
        PetscCall(MatScale(p->m[k], -1.0));
      }
    }
    for (int t = 0; t < 2 && q != 1; t++) {
      for (int k = 0; k < 2; k++) PetscCall(MatMult(B[k], p->x[k], p->y[k]));
      PetscCall(SameVec(p->y[0], p->y[1], what[q]));
      for (int k = 0; k < 2; k++) PetscCall(MatScale(B[k], 3.0));
    }
    PetscCall(SameRows(B[0], B[1], what[q]));
    for (int k = 0; k < 2; k++) {
      if (q == 1) PetscCall(MatDestroySubMatrices(1, &sub[k]));
      else PetscCall(MatDestroy(&B[k]));
      PetscCall(MatDestroy(&F[k]));
    }
  }
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The library ends, and begins again, while the device has the values */
static PetscErrorCode Ended(Pair *p)
{
  Mat B[2];

  PetscFunctionBegin;
  for (int r = 0; r < 3; r++) {
    PetscCall(Ahead(p));
    for (int k = 0; k < 2; k++) PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &B[k]));
    for (int k = 0; k < 2; k++) PetscCall(MatScale(B[k], 3.0));
    PetscCall(MatGPUCSRFinalizePackage());
    PetscCall(MatGPUCSRInitializePackage());
    for (int k = 0; k < 2; k++) PetscCall(r ? MatScale(p->m[k], -1.0) : MatZeroEntries(p->m[k]));
    if (r < 2) PetscCall(Products(p, "after the library's end"));
    for (int k = 0; k < 2; k++) PetscCall(MatAXPY(p->m[k], 1.0, B[k], SAME_NONZERO_PATTERN));
    PetscCall(SameRows(p->m[0], p->m[1], "after the library's end"));
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&B[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Pair p;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  for (int end = 0; end < 2; end++) {
    PetscCall(PairCreate(&p));
    PetscCall(end ? Ended(&p) : Reused(&p));
    PetscCall(Products(&p, end ? "the end" : "matrices of the host"));
    PetscCall(SameRows(p.m[0], p.m[1], end ? "the end" : "matrices of the host"));
    PetscCall(PairDestroy(&p));
  }
  PetscCall(PetscFinalize());
  return 0;
}
