#pragma once

/* Products of two sparse matrices, and their comparison with MATAIJ's. Include it after testing.h */

static inline PetscErrorCode Product(MatProductType t, Mat A, Mat B, MatReuse reuse, Mat *C)
{
  PetscFunctionBegin;
  switch (t) {
  case MATPRODUCT_AB:
    PetscCall(MatMatMult(A, B, reuse, PETSC_DEFAULT, C));
    break;
  case MATPRODUCT_AtB:
    PetscCall(MatTransposeMatMult(A, B, reuse, PETSC_DEFAULT, C));
    break;
  case MATPRODUCT_ABt:
    PetscCall(MatMatTransposeMult(A, B, reuse, PETSC_DEFAULT, C));
    break;
  case MATPRODUCT_PtAP:
    PetscCall(MatPtAP(A, B, reuse, PETSC_DEFAULT, C));
    break;
  default:
    PetscCall(MatRARt(A, B, reuse, PETSC_DEFAULT, C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same product of absolute values */
static inline PetscErrorCode Bound(MatProductType t, Mat RA, Mat RB, Mat *b)
{
  Mat absa, absb;

  PetscFunctionBegin;
  PetscCall(TestAbs(RA, &absa));
  PetscCall(TestAbs(RB, &absb));
  PetscCall(Product(t, absa, absb, MAT_INITIAL_MATRIX, b));
  PetscCall(MatDestroy(&absa));
  PetscCall(MatDestroy(&absb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entry by entry; bound: the same product of absolute values */
static inline PetscErrorCode Compare(Mat C, Mat R, Mat bound, const char what[], const char where[])
{
  PetscInt     n, nr, rs, re, rsr, rer;
  PetscReal    eps = 0, *b;
  PetscScalar *v;
  PetscBool   *has;

  PetscFunctionBegin;
  PetscCall(TestEps(&eps));
  PetscCall(MatGetSize(C, NULL, &n));
  PetscCall(MatGetSize(R, NULL, &nr));
  PetscCall(MatGetOwnershipRange(C, &rs, &re));
  PetscCall(MatGetOwnershipRange(R, &rsr, &rer));
  PetscCheck(n == nr && rs == rsr && re == rer, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: rows %" PetscInt_FMT " to %" PetscInt_FMT " of %" PetscInt_FMT ", should be %" PetscInt_FMT " to %" PetscInt_FMT " of %" PetscInt_FMT, where, what, rs, re, n, rsr, rer, nr);
  PetscCall(PetscCalloc3(n, &b, n, &v, n, &has));
  for (PetscInt r = rs; r < re; r++) {
    PetscInt           nc, nref, nb;
    const PetscInt    *cols;
    const PetscScalar *a;

    PetscCall(MatGetRow(R, r, &nref, &cols, &a));
    for (PetscInt k = 0; k < nref; k++) {
      has[cols[k]] = PETSC_TRUE;
      v[cols[k]]   = a[k];
    }
    PetscCall(MatRestoreRow(R, r, NULL, &cols, &a));
    PetscCall(MatGetRow(bound, r, &nb, &cols, &a));
    for (PetscInt k = 0; k < nb; k++) b[cols[k]] = PetscRealPart(a[k]);
    PetscCall(MatRestoreRow(bound, r, NULL, &cols, &a));
    PetscCall(MatGetRow(C, r, &nc, &cols, &a));
    PetscCheck(nc == nref, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: row %" PetscInt_FMT " has %" PetscInt_FMT " entries, should have %" PetscInt_FMT, where, what, r, nc, nref);
    for (PetscInt k = 0; k < nc; k++) {
      const PetscInt c = cols[k];

      PetscCheck(has[c], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: row %" PetscInt_FMT " has column %" PetscInt_FMT, where, what, r, c);
      PetscCheck(TestSame(a[k], v[c], TEST_C * eps * b[c]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: (%" PetscInt_FMT ", %" PetscInt_FMT ") is %.17g, should be %.17g, may differ by %g", where, what, r, c, (double)PetscRealPart(a[k]), (double)PetscRealPart(v[c]), (double)(TEST_C * eps * b[c]));
      has[c] = PETSC_FALSE;
    }
    PetscCall(MatRestoreRow(C, r, &nc, &cols, &a));
  }
  PetscCall(PetscFree3(b, v, has));
  PetscFunctionReturn(PETSC_SUCCESS);
}
