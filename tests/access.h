#pragma once

/* Vectors of two types with the same numbers, for tests of access to entries */
#include "testing.h"

static inline PetscErrorCode Create(const char type[], PetscInt n, PetscInt bs, Vec *v)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_WORLD, v));
  PetscCall(VecSetSizes(*v, n, PETSC_DETERMINE));
  PetscCall(VecSetBlockSize(*v, bs));
  PetscCall(VecSetType(*v, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same numbers, to the last digits */
static inline PetscErrorCode Same(Vec g, Vec s, const char what[])
{
  const PetscScalar *a, *b;
  PetscInt           n, m;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(s, &n));
  PetscCall(VecGetLocalSize(g, &m));
  PetscCheck(n == m, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " entries, should be %" PetscInt_FMT, what, m, n);
  PetscCall(VecGetArrayRead(g, &a));
  PetscCall(VecGetArrayRead(s, &b));
  for (PetscInt k = 0; k < n; k++)
    PetscCheck(TestSame(a[k], b[k], 1e-12 * (1.0 + PetscAbsScalar(b[k]))), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: entry %" PetscInt_FMT " is %.17g, should be %.17g", what, k, (double)PetscRealPart(a[k]), (double)PetscRealPart(b[k]));
  PetscCall(VecRestoreArrayRead(g, &a));
  PetscCall(VecRestoreArrayRead(s, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}
