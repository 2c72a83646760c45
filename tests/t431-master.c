//TEST name="default" args=""
//TEST name="standin" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu" gpu=0
//TEST name="master" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_master device" gpu=0
//TEST name="late" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -gpucsr_debug_defer {} -mat_gpucsr_master device" loop="0 1" gpu=0
//TEST name="precision" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device -mat_gpucsr_precision {}" loop="mixed single auto" gpu=0
//TEST name="gpu" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -vec_type gpu -mat_gpucsr_master device" gpu=1
//TEST name="ranks" nsize={} args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" loop="2 3" gpu=0
//TEST name="ranks_gpu" nsize=2 args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -vec_type gpu -mat_gpucsr_master device" gpu=1
//TEST name="faults" args="-case {} -standard_vectors -mat_gpucsr_product_least 0 -mat_gpucsr_backend auto -gpucsr_debug_standin 1 -mat_gpucsr_master device -gpucsr_debug_fault copy:4" loop="rows axpy copies" warns="" gpu=0
//TEST name="ranks_host" nsize=2 args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1" gpu=0

/*
  Changes in place and readers of values, with the master copy on the device: each case does the same with the type under test and with MATAIJ. All numbers are small integers, so results are equal to
  the bit.
*/
static char help[] = "Tests changes in place, and readers of values that the device has.\n";

#include "pair.h"
#include <petscgpucsr.h>

typedef PetscErrorCode Case(Pair *);

static PetscErrorCode Scale(Pair *p)
{
  PetscFunctionBegin;
  for (int r = 0; r < 3; r++) {
    for (int k = 0; k < 2; k++) PetscCall(MatScale(p->m[k], 2.0));
    PetscCall(Products(p, "MatScale()"));
  }
  for (int k = 0; k < 2; k++) PetscCall(MatScale(p->m[k], 0.0));
  PetscCall(Products(p, "MatScale() by 0"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AXPY(Pair *p)
{
  Mat B[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(Make((PetscBool)k, 5, &B[k]));
  for (int r = 0; r < 6; r++) {
    for (int k = 0; k < 2; k++) {
      if (r == 3) PetscCall(MatScale(B[k], -1.0));
      PetscCall(MatAXPY(p->m[k], 1.0 + r, B[k], r == 4 ? SUBSET_NONZERO_PATTERN : SAME_NONZERO_PATTERN));
    }
    PetscCall(Products(p, "MatAXPY()"));
  }
  for (int k = 0; k < 2; k++) PetscCall(MatAYPX(p->m[k], -2.0, B[k], SAME_NONZERO_PATTERN));
  PetscCall(Products(p, "MatAYPX()"));
  for (int k = 0; k < 2; k++) PetscCall(MatAXPY(p->m[k], 2.0, B[k], DIFFERENT_NONZERO_PATTERN));
  PetscCall(Products(p, "MatAXPY() of another pattern"));
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&B[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalScale(Pair *p)
{
  PetscFunctionBegin;
  for (int r = 0; r < 5; r++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(VecSet(p->y[k], r % 2 ? 2.0 : -1.0));
      PetscCall(MatDiagonalScale(p->m[k], r % 3 ? p->y[k] : NULL, r % 3 == 1 ? NULL : p->x[k]));
    }
    PetscCall(Products(p, "MatDiagonalScale()"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(Pair *p)
{
  PetscFunctionBegin;
  for (int r = 0; r < 4; r++) {
    for (int k = 0; k < 2; k++) {
      if (r % 2) PetscCall(MatShift(p->m[k], 3.0));
      else PetscCall(MatDiagonalSet(p->m[k], p->x[k], r ? ADD_VALUES : INSERT_VALUES));
    }
    PetscCall(Products(p, "MatDiagonalSet() and MatShift()"));
    for (int k = 0; k < 2; k++) PetscCall(MatGetDiagonal(p->m[k], p->y[k]));
    PetscCall(SameVec(p->y[0], p->y[1], "MatGetDiagonal()"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Rows(Pair *p)
{
  const PetscInt rows[3] = {2, 17, 2};
  PetscMPIInt    rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  for (int r = 0; r < 6; r++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatSetOption(p->m[k], MAT_KEEP_NONZERO_PATTERN, (PetscBool)(r < 4)));
      PetscCall(MatSetOption(p->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      PetscCall(FillVec(p->y[k], 3));
      if (r % 2) PetscCall(MatZeroRows(p->m[k], rank ? 0 : 3, rows, 2.0, r % 3 ? p->x[k] : NULL, r % 3 ? p->y[k] : NULL));
      else PetscCall(MatZeroRowsColumns(p->m[k], rank ? 0 : 2, rows, 3.0, r < 4 ? p->x[k] : NULL, r < 4 ? p->y[k] : NULL));
    }
    PetscCall(SameVec(p->y[0], p->y[1], "the right-hand side of MatZeroRows()"));
    PetscCall(Products(p, "MatZeroRows() and MatZeroRowsColumns()"));
    for (int k = 0; k < 2; k++) PetscCall(MatScale(p->m[k], -1.0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of the next rank's rows: a rank that sets none receives some */
static PetscErrorCode OffProcess(Pair *p)
{
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(Ahead(p));
  for (int k = 0; k < 2; k++) {
    for (PetscInt i = 0; i < N && !rank; i++) PetscCall(MatSetValue(p->m[k], i, i, 5.0, ADD_VALUES));
    for (PetscInt i = 2; i < N && !rank; i++) PetscCall(MatSetValue(p->m[k], i, i - 2, 7.0, ADD_VALUES));
    PetscCall(MatAssemblyBegin(p->m[k], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(p->m[k], MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another pattern for the same matrix, with fewer and with more entries */
static PetscErrorCode Preallocated(Pair *p)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  for (int r = 0; r < 2; r++) {
    PetscCall(Ahead(p));
    for (int k = 0; k < 2; k++) {
      PetscCall(MatSeqAIJSetPreallocation(p->m[k], r ? 40 : 1, NULL));
      PetscCall(MatMPIAIJSetPreallocation(p->m[k], r ? 40 : 1, NULL, 1, NULL));
      PetscCall(MatGetOwnershipRange(p->m[k], &rs, &re));
      for (PetscInt i = rs; i < re; i++) PetscCall(MatSetValue(p->m[k], i, i, (PetscScalar)i, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(p->m[k], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(p->m[k], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(Products(p, "another pattern"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Stored(Pair *p)
{
  PetscFunctionBegin;
  PetscCall(Ahead(p));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetOption(p->m[k], MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
    PetscCall(MatStoreValues(p->m[k]));
    PetscCall(MatScale(p->m[k], 3.0));
  }
  PetscCall(Products(p, "scaled after MatStoreValues()"));
  for (int k = 0; k < 2; k++) PetscCall(MatRetrieveValues(p->m[k]));
  PetscCall(Products(p, "MatRetrieveValues()"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another matrix takes the place of one whose master copy was chosen by a call, which PETSc's new matrix does not know. Of MATAIJ as a summand the library does not learn, and the choice is lost */
static PetscErrorCode Merged(Pair *p)
{
  Mat         B[2];
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatGPUCSRSetMaster(p->m[0], MAT_GPUCSR_MASTER_DEVICE));
  PetscCall(Ahead(p));
  for (int r = 0; r < 6; r++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(Make((PetscBool)(k || r % 3 == 1), 5, &B[k]));
      if (r % 3 == 2) PetscCall(MatTranspose(p->m[k], MAT_INPLACE_MATRIX, &p->m[k]));
      else PetscCall(MatAXPY(p->m[k], 2.0, B[k], DIFFERENT_NONZERO_PATTERN));
      PetscCall(MatDestroy(&B[k]));
    }
    PetscCall(Ahead(p));
    for (int k = 0; k < 2; k++) {
      if (!rank) PetscCall(MatSetValue(p->m[k], 0, 0, 3, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(p->m[k], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(p->m[k], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(Products(p, "MatSetValues() after a merge"));
    PetscCall(Stored(p));
    for (int k = 0; k < 2; k++) PetscCall(MatSetOption(p->m[k], MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
    PetscCall(SameRows(p->m[0], p->m[1], "after a merge"));
    if (r == 3) PetscCall(MatConvert(p->m[0], MATAIJ, MAT_INPLACE_MATRIX, &p->m[0]));
    if (r == 3) PetscCall(MatConvert(p->m[0], MATGPUCSR, MAT_INPLACE_MATRIX, &p->m[0]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copies(Pair *p)
{
  Mat B[2], C[2];

  PetscFunctionBegin;
  PetscCall(Ahead(p));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &B[k]));
    PetscCall(MatDuplicate(p->m[k], MAT_DO_NOT_COPY_VALUES, &C[k]));
    PetscCall(MatShift(B[k], 1.0));
    PetscCall(MatCopy(B[k], C[k], SAME_NONZERO_PATTERN));
    PetscCall(MatScale(C[k], 2.0));
  }
  PetscCall(Products(p, "the source of duplicates"));
  for (int k = 0; k < 2; k++) PetscCall(MatCopy(C[k], p->m[k], SAME_NONZERO_PATTERN));
  PetscCall(Products(p, "MatCopy()"));
  for (int k = 0; k < 2; k++) PetscCall(MatCopy(B[k], p->m[k], DIFFERENT_NONZERO_PATTERN));
  PetscCall(Products(p, "MatCopy() of another pattern"));
  PetscCall(SameRows(B[0], B[1], "a duplicate"));
  PetscCall(SameRows(C[0], C[1], "a copy"));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&B[k]));
    PetscCall(MatDestroy(&C[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameNorms(const Mat m[2])
{
  static const NormType type[] = {NORM_1, NORM_FROBENIUS, NORM_INFINITY};
  PetscReal             norm[2];

  PetscFunctionBegin;
  for (int q = 0; q < 3; q++) {
    for (int k = 0; k < 2; k++) PetscCall(MatNorm(m[k], type[q], &norm[k]));
    PetscCheck(norm[0] == norm[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Norm %d is %g, not %g", (int)type[q], (double)norm[0], (double)norm[1]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices whose ranks have no rows, no columns or no entries */
static PetscErrorCode Norms(Pair *p)
{
  Mat      m[2];
  PetscInt rs, re;

  PetscFunctionBegin;
  (void)p;
  for (PetscInt q = 0; q < 6; q++) {
    const PetscInt rows = q % 3 ? N : 2, cols = q % 3 == 1 ? 2 : N;

    for (int k = 0; k < 2; k++) {
      PetscCall(TestMatCreate(PETSC_COMM_WORLD, rows, cols, (PetscBool)k, &m[k]));
      PetscCall(MatSetUp(m[k]));
      PetscCall(MatGetOwnershipRange(m[k], &rs, &re));
      for (PetscInt i = rs; i < re; i++)
        for (PetscInt j = 0; j < cols; j++)
          if (q < 3 ? (i + j) % 3 : i == j && i % 2) PetscCall(MatSetValue(m[k], i, j, Small(i, j, q), INSERT_VALUES));
      PetscCall(MatAssemblyBegin(m[k], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(m[k], MAT_FINAL_ASSEMBLY));
      PetscCall(MatScale(m[k], -2.0));
    }
    PetscCall(SameNorms(m));
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&m[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Answers that NaN would make wrong, not NaN */
static PetscErrorCode Answers(Pair *p)
{
  PetscBool   yes[2];
  PetscMPIInt size;
  PetscInt    at[2][N], mine;
  Mat         T[2];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatGetLocalSize(p->m[0], &mine, NULL));
  PetscCall(Ahead(p));
  PetscCall(SameNorms(p->m));
  for (int q = 0; q < 4; q++) {
    PetscCall(Ahead(p));
    for (int k = 0; k < 2; k++) {
      if (q == 0) PetscCall(MatGetRowMaxAbs(p->m[k], p->y[k], at[k]));
      if (q == 1) PetscCall(MatGetRowMax(p->m[k], p->y[k], at[k]));
      if (q == 2) PetscCall(MatGetRowMin(p->m[k], p->y[k], at[k]));
      if (q > 1) PetscCall(MatGetRowSum(p->m[k], p->y[k]));
    }
    PetscCall(SameVec(p->y[0], p->y[1], "values of rows"));
    for (PetscInt i = 0; i < mine && q < 3; i++) PetscCheck(at[0][i] == at[1][i], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Place %d of row %" PetscInt_FMT " is %" PetscInt_FMT ", not %" PetscInt_FMT, q, i, at[0][i], at[1][i]);
  }
  PetscCall(Ahead(p));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTranspose(p->m[k], MAT_INITIAL_MATRIX, &T[k]));
    PetscCall(MatScale(T[k], 2.0));
    PetscCall(MatEqual(p->m[k], T[k], &yes[k]));
  }
  PetscCheck(yes[0] == yes[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatEqual()");
  PetscCall(Ahead(p));
  for (int k = 0; k < 2 && size == 1; k++) PetscCall(MatIsTranspose(p->m[k], T[k], 0.0, &yes[k]));
  PetscCheck(yes[0] == yes[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatIsTranspose() of the transpose");
  PetscCall(Ahead(p));
  for (int k = 0; k < 2 && size == 1; k++) PetscCall(MatIsTranspose(T[k], p->m[k], 0.0, &yes[k]));
  PetscCheck(yes[0] == yes[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatIsTranspose() of another matrix");
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&T[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Imaginary(Pair *p)
{
  PetscFunctionBegin;
  PetscCall(Ahead(p));
  for (int k = 0; k < 2; k++) PetscCall(MatConjugate(p->m[k]));
  PetscCall(Products(p, "MatConjugate()"));
  for (int k = 0; k < 2; k++) PetscCall(MatRealPart(p->m[k]));
  PetscCall(Products(p, "MatRealPart()"));
  for (int k = 0; k < 2; k++) PetscCall(MatImaginaryPart(p->m[k]));
  PetscCall(Products(p, "MatImaginaryPart()"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other matrices made of this one */
static PetscErrorCode Made(Pair *p)
{
  PetscMPIInt size;
  Mat         B[2];
  IS          is;
  PetscInt    rs, re;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatGetOwnershipRange(p->m[0], &rs, &re));
  for (int q = 0; q < 6; q++) {
    PetscCall(Ahead(p));
    PetscCall(ISCreateStride(PETSC_COMM_WORLD, (re - rs) / 2, rs, 2, &is));
    for (int k = 0; k < 2; k++) {
      if (q == 0) PetscCall(MatCreateSubMatrix(p->m[k], is, is, MAT_INITIAL_MATRIX, &B[k]));
      if (q == 1) PetscCall(MatConvert(p->m[k], MATDENSE, MAT_INITIAL_MATRIX, &B[k]));
      if (q == 2) PetscCall(MatConvert(p->m[k], MATAIJ, MAT_INITIAL_MATRIX, &B[k]));
      if (q == 3) PetscCall(MatTranspose(p->m[k], MAT_INITIAL_MATRIX, &B[k]));
      if (q == 4) PetscCall(MatMatMult(p->m[k], p->m[k], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B[k]));
      if (q == 5) PetscCall(MatCreateRedundantMatrix(p->m[k], size, MPI_COMM_NULL, MAT_INITIAL_MATRIX, &B[k]));
    }
    PetscCall(ISDestroy(&is));
    PetscCall(SameRows(B[0], B[1], "a matrix made of this one"));
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&B[k]));
  }
  PetscCall(Ahead(p));
#if PETSC_VERSION_LT(3, 20, 0)
  for (int k = 0; k < 2; k++) PetscCall(MatChop(p->m[k], 5.0));
#else
  for (int k = 0; k < 2; k++) PetscCall(MatFilter(p->m[k], 5.0, PETSC_FALSE, PETSC_FALSE));
#endif
  PetscCall(Products(p, "MatFilter()"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factors, blocks and diagonals of solvers follow */
static PetscErrorCode Solves(Pair *p)
{
  static const char *const pc[] = {PCJACOBI, PCILU, PCSOR, PCBJACOBI, PCPBJACOBI, PCASM};
  PetscMPIInt              size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int k = 0; k < 2; k++) PetscCall(MatShift(p->m[k], 64.0));
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(pc); q++) {
    KSP       ksp[2];
    PetscReal most, differ;

    if (size > 1 && q == 1) continue;
    for (int k = 0; k < 2; k++) {
      PC solver;

      PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp[k]));
      PetscCall(KSPSetType(ksp[k], KSPGMRES));
      PetscCall(KSPGetPC(ksp[k], &solver));
      PetscCall(PCSetType(solver, pc[q]));
      PetscCall(KSPSetTolerances(ksp[k], 1e-30, 1e-60, PETSC_DEFAULT, 3)); /* three steps: another preconditioner gives another vector */
      PetscCall(KSPSetNormType(ksp[k], KSP_NORM_PRECONDITIONED));
    }
    for (int r = 0; r < 4; r++) {
      for (int k = 0; k < 2; k++) {
        PetscCall(VecSet(p->y[k], r % 2 ? 0.5 : 2.0));
        if (r) PetscCall(MatDiagonalScale(p->m[k], p->y[k], NULL));
        if (r == 2) PetscCall(MatAXPY(p->m[k], 1.0, p->m[k], SAME_NONZERO_PATTERN));
        PetscCall(KSPSetOperators(ksp[k], p->m[k], p->m[k]));
        PetscCall(KSPSolve(ksp[k], p->x[k], p->y[k]));
      }
      PetscCall(VecNorm(p->y[1], NORM_INFINITY, &most));
      {
        Vec d;

        PetscCall(VecDuplicate(p->y[1], &d));
        PetscCall(VecCopy(p->y[0], d));
        PetscCall(VecAXPY(d, -1.0, p->y[1]));
        PetscCall(VecNorm(d, NORM_INFINITY, &differ));
        PetscCall(VecDestroy(&d));
      }
      PetscReal eps = 0;

      PetscCall(TestEps(&eps));
      PetscCheck(differ <= 1000 * eps * most, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "pc %s, round %d: solutions of size %g differ by %g", pc[q], r, (double)most, (double)differ);
    }
    for (int k = 0; k < 2; k++) PetscCall(KSPDestroy(&ksp[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program changes values in the device's memory, which the stand-in has on the host */
static PetscErrorCode Device(Pair *p)
{
  PetscMPIInt size;
  PetscBool   standin;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-gpucsr_debug_standin", &standin));
  for (int r = 0; r < 3 && standin; r++) {
    const int *i, *j;
    double    *a;
    Mat        block[2] = {p->m[0], NULL};

    if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(p->m[0], &block[0], &block[1], NULL));
    if (r) PetscCall(Ahead(p));
    for (int b = 0; b < (size > 1 ? 2 : 1); b++) {
      PetscInt m;

      PetscCall(MatGetLocalSize(block[b], &m, NULL));
      PetscCall(MatGPUCSRGetDeviceCSR(block[b], &i, &j, &a));
      for (int k = 0; k < i[m]; k++) a[k] *= -1.0;
      PetscCall(MatGPUCSRRestoreDeviceCSR(block[b], &i, &j, &a));
      PetscCheck(!i && !j && !a, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Pointers stay");
    }
    if (size > 1) {
      PetscCall(MatAssemblyBegin(p->m[0], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(p->m[0], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(MatScale(p->m[1], -1.0));
    PetscCall(Products(p, "values changed on the device"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No value crosses the bus, if the master copy is the device's. Of several ranks the exchange of products reads the host's values of the off-diagonal block */
static PetscErrorCode Bytes(Pair *p)
{
  PetscMPIInt    size;
  const PetscInt rows[2]     = {3, 9};
  char           word[3][32] = {"host", "double", ""};
  MatGPUCSRInfo  before, after;
  Mat            B[2];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_master", word[0], sizeof(word[0]), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_precision", word[1], sizeof(word[1]), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", word[2], sizeof(word[2]), NULL));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &B[k]));
    PetscCall(MatScale(B[k], 2.0));
    PetscCall(MatSetOption(p->m[k], MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  }
  PetscCall(Ahead(p));
  if (!strcmp(word[0], "device")) PetscCall(MatGPUCSRGetInfo(p->m[0], &before));
  for (int r = 0; r < 2; r++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatDiagonalScale(p->m[k], p->x[k], NULL));
      PetscCall(MatAXPY(p->m[k], 2.0, B[k], SAME_NONZERO_PATTERN));
      PetscCall(MatDiagonalSet(p->m[k], p->x[k], ADD_VALUES));
      PetscCall(MatZeroRows(p->m[k], 2, rows, 1.0, NULL, NULL));
      if (r) PetscCall(MatCopy(B[k], p->m[k], SAME_NONZERO_PATTERN));
    }
    PetscCall(Products(p, "without the bus"));
  }
  if (!strcmp(word[0], "device") && !strcmp(word[1], "double") && !strcmp(word[2], "gpu") && size == 1) {
    PetscCall(MatGPUCSRGetInfo(p->m[0], &after));
    PetscCheck(after.uploaded == before.uploaded && after.downloaded == before.downloaded, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g bytes were sent and %g brought back", after.uploaded - before.uploaded, after.downloaded - before.downloaded);
  }
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&B[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values are counted apart from vectors: contributions of the host are sent, sums come back only where the host is the master, and products send vectors alone */
static PetscErrorCode Counted(Pair *p)
{
  const PetscInt n = 4000;
  PetscInt      *i, *j;
  PetscScalar   *v;
  char           master[32] = "host", precision[32] = "double"; /* in another, the host rounds values for products */
  MatGPUCSRInfo  info[3];
  PetscBool      standin = PETSC_FALSE;
  PetscMPIInt    size;
  Mat            A;
  Vec            x, y;

  PetscFunctionBegin;
  (void)p;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_master", master, sizeof(master), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_precision", precision, sizeof(precision), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-gpucsr_debug_standin", &standin, NULL));
  if (size > 1 || !standin || strcmp(precision, "double")) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc3(2 * n, &i, 2 * n, &j, 2 * n, &v));
  for (PetscInt k = 0; k < 2 * n; k++) {
    i[k] = k / 2;
    j[k] = (k / 2 + k % 2) % n;
    v[k] = k + 1;
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, n, n, n, n));
  PetscCall(MatSetType(A, MATSEQAIJGPUCSR));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetPreallocationCOO(A, 2 * n, i, j));
  PetscCall(MatGPUCSRGetInfo(A, &info[0]));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscCall(MatGPUCSRGetInfo(A, &info[1]));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &x));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatGPUCSRGetInfo(A, &info[2]));
  if (info[2].products) { /* the device had memory for them */
    PetscCheck(info[0].values_uploaded == 0 && info[0].values_downloaded == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A pattern has %g bytes of values sent and %g brought back", info[0].values_uploaded, info[0].values_downloaded);
    PetscCheck(info[1].values_uploaded == 16.0 * n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Of %d contributions %g bytes were sent", (int)(2 * n), info[1].values_uploaded);
    PetscCheck(info[1].values_downloaded == (strcmp(master, "device") ? 16.0 * n : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g bytes of values were brought back", info[1].values_downloaded);
    PetscCheck(info[2].values_uploaded == info[1].values_uploaded && info[2].values_downloaded == info[1].values_downloaded, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A product has moved %g bytes of values", info[2].values_uploaded - info[1].values_uploaded);
    PetscCheck(info[2].uploaded > info[1].uploaded, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A product has sent no vector");
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On any number of ranks, operations of blocks move no value, except that MatZeroRowsColumns() moves the off-diagonal block's */
static PetscErrorCode Blocks(Pair *p)
{
  const PetscInt rows[2]    = {3, 9};
  char           master[32] = "host";
  double         most       = 0;
  PetscMPIInt    size;
  MatGPUCSRInfo  before, after;
  MatInfo        info;
  Mat            block;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_master", master, sizeof(master), NULL));
  PetscCall(Ahead(p));
  if (!strcmp(master, "device")) PetscCall(MatGPUCSRGetInfo(p->m[0], &before));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatShift(p->m[k], 3.0));
    PetscCall(MatGetDiagonal(p->m[k], p->y[k]));
    PetscCall(MatConjugate(p->m[k]));
  }
  PetscCall(SameNorms(p->m));
  PetscCall(SameVec(p->y[0], p->y[1], "the diagonal"));
  for (int k = 0; k < 2; k++) PetscCall(MatGetRowMaxAbs(p->m[k], p->y[k], NULL));
  PetscCall(SameVec(p->y[0], p->y[1], "row maxima"));
  if (!strcmp(master, "device")) {
    PetscCall(MatGPUCSRGetInfo(p->m[0], &after));
    PetscCheck(after.values_downloaded == before.values_downloaded, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g bytes of values were brought back", after.values_downloaded - before.values_downloaded);
  }
  for (int k = 0; k < 2; k++) PetscCall(MatZeroRowsColumns(p->m[k], 2, rows, 5.0, NULL, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(p->m[1], NULL, &block, NULL));
  if (size > 1) PetscCall(MatGetInfo(block, MAT_LOCAL, &info));
  if (size > 1) most = 8 * info.nz_used;
  if (!strcmp(master, "device")) {
    PetscCall(MatGPUCSRGetInfo(p->m[0], &before));
    PetscCheck(before.values_downloaded - after.values_downloaded <= most, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g bytes of values were brought back, of at most %g", before.values_downloaded - after.values_downloaded, most);
  }
  PetscCall(Products(p, "operations of blocks"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  Case       *run;
} cases[] = {
  {"scale",         Scale        },
  {"axpy",          AXPY         },
  {"diagonalscale", DiagonalScale},
  {"diagonal",      Diagonal     },
  {"rows",          Rows         },
  {"offprocess",    OffProcess   },
  {"preallocated",  Preallocated },
  {"stored",        Stored       },
  {"merged",        Merged       },
  {"copies",        Copies       },
  {"answers",       Answers      },
  {"imaginary",     Imaginary    },
  {"made",          Made         },
  {"solves",        Solves       },
  {"device",        Device       },
  {"bytes",         Bytes        },
  {"counted",       Counted      },
  {"blocks",        Blocks       },
  {"norms",         Norms        },
};

int main(int argc, char **argv)
{
  char only[32] = "";

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-case", only, sizeof(only), NULL));
  for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(cases); c++) {
    Pair p;

    if (only[0] && strcmp(only, cases[c].name)) continue;
    PetscCall(PetscInfo(NULL, "case %s\n", cases[c].name));
    PetscCall(PairCreate(&p));
    PetscCall((*cases[c].run)(&p));
    PetscCall(Products(&p, cases[c].name));
    PetscCall(SameRows(p.m[0], p.m[1], cases[c].name));
    PetscCall(PairDestroy(&p));
  }
  PetscCall(PetscFinalize());
  return 0;
}
