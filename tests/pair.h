#pragma once

/* Two small matrices with the same entries, one of the type under test and one of MATAIJ. All numbers are small integers, so results are equal to the bit */
#include "testing.h"

#define N 23

typedef struct {
  Mat m[2]; /* under test, reference */
  Vec x[2], y[2];
} Pair;

static PetscScalar Small(PetscInt i, PetscInt j, PetscInt salt)
{
  return (PetscScalar)((i * 7 + j * 5 + salt * 3) % 9 - 4);
}

/* A band, and entries far from it, with the whole diagonal */
static PetscErrorCode Fill(Mat A, PetscInt salt)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt i = rs; i < re; i++)
    for (PetscInt j = 0; j < N; j++)
      if (i - j < 3 && j - i < 2 ? PETSC_TRUE : (PetscBool)((i * 3 + j) % 11 == 0)) PetscCall(MatSetValue(A, i, j, Small(i, j, salt), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(PetscBool ref, PetscInt salt, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, N, N, ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 12, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 12, NULL, 12, NULL));
  PetscCall(Fill(*A, salt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode FillVec(Vec x, PetscInt salt)
{
  PetscScalar *a;
  PetscInt     rs, re;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(VecGetArrayWrite(x, &a));
  for (PetscInt i = rs; i < re; i++) a[i - rs] = Small(i, salt, 2);
  PetscCall(VecRestoreArrayWrite(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SameVec(Vec a, Vec b, const char what[])
{
  const PetscScalar *p, *q;
  PetscInt           rs, re;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(a, &rs, &re));
  PetscCall(VecGetArrayRead(a, &p));
  PetscCall(VecGetArrayRead(b, &q));
  for (PetscInt i = 0; i < re - rs; i++) PetscCheck(p[i] == q[i], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: entry %" PetscInt_FMT " is %g, not %g", what, rs + i, (double)PetscRealPart(p[i]), (double)PetscRealPart(q[i]));
  PetscCall(VecRestoreArrayRead(a, &p));
  PetscCall(VecRestoreArrayRead(b, &q));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By products alone, which fetch no value */
static inline PetscErrorCode Products(Pair *p, const char what[])
{
  PetscFunctionBegin;
  for (int t = 0; t < 2; t++) {
    for (int k = 0; k < 2; k++) PetscCall(t ? MatMultTranspose(p->m[k], p->x[k], p->y[k]) : MatMult(p->m[k], p->x[k], p->y[k]));
    PetscCall(SameVec(p->y[0], p->y[1], what));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SameRows(Mat A, Mat B, const char what[])
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    const PetscInt    *c[2];
    const PetscScalar *v[2];
    PetscInt           n[2];

    PetscCall(MatGetRow(A, i, &n[0], &c[0], &v[0]));
    PetscCall(MatGetRow(B, i, &n[1], &c[1], &v[1]));
    PetscCheck(n[0] == n[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " has %" PetscInt_FMT " entries, not %" PetscInt_FMT, what, i, n[0], n[1]);
    for (PetscInt k = 0; k < n[0]; k++)
      PetscCheck(c[0][k] == c[1][k] && v[0][k] == v[1][k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: entry %" PetscInt_FMT " of row %" PetscInt_FMT " is %g in column %" PetscInt_FMT ", not %g in %" PetscInt_FMT, what, k, i, (double)PetscRealPart(v[0][k]), c[0][k], (double)PetscRealPart(v[1][k]), c[1][k]);
    PetscCall(MatRestoreRow(B, i, &n[1], &c[1], &v[1]));
    PetscCall(MatRestoreRow(A, i, &n[0], &c[0], &v[0]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device has the values of p->m[0], where it is the master; both plans are made */
static inline PetscErrorCode Ahead(Pair *p)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(MatScale(p->m[k], 2.0));
  PetscCall(Products(p, "scaled"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairCreate(Pair *p)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(Make((PetscBool)k, 1, &p->m[k]));
    PetscCall(MatCreateVecs(p->m[k], &p->x[k], &p->y[k]));
    PetscCall(FillVec(p->x[k], 1));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairDestroy(Pair *p)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&p->m[k]));
    PetscCall(VecDestroy(&p->x[k]));
    PetscCall(VecDestroy(&p->y[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
