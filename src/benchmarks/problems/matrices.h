#pragma once

/* Calls a function for each of many matrices: generated ones, and the *.petsc of folders */
#include <petscmat.h>
#include "../../mat/impls/gpucsr/blackbox/plan/plan.h"
#include "files.h"
#include "synthetic.h"

typedef PetscErrorCode (*BenchVisit)(void *ctx, const char name[], PetscBool real, const GPUCSRSource *);

static inline PetscErrorCode BenchVisitGenerated(const Synthetic *s, int shrink, BenchVisit visit, void *ctx)
{
  int          m = 0, n = 0;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(SyntheticCreate(s, shrink, &m, &n, &i, &j, &a));
  PetscCall((*visit)(ctx, s->name, PETSC_FALSE, &(GPUCSRSource){m, n, i[m], i, j, a, NULL}));
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What visits the files */
typedef struct {
  BenchVisit visit;
  void      *ctx;
} BenchVisitor;

static inline PetscErrorCode BenchVisitFile(void *visitor, const char file[], const char name[])
{
  const BenchVisitor *b = (const BenchVisitor *)visitor;
  Mat                 A;
  PetscInt            n, columns;
  const PetscInt     *i, *j;
  PetscScalar        *a;
  PetscBool           done;

  PetscFunctionBeginUser;
  PetscCall(BenchLoad(file, &A));
  PetscCall(MatGetSize(A, NULL, &columns));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  PetscCall(MatSeqAIJGetArray(A, &a));
  PetscCall((*b->visit)(b->ctx, name, PETSC_TRUE, &(GPUCSRSource){(int)n, (int)columns, i[n], i, j, a, NULL}));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrices of the folders of -dir FOLDER,... */
static inline PetscErrorCode BenchVisitFolders(BenchVisit visit, void *ctx)
{
  BenchVisitor b = {visit, ctx};
  char        *dir[16];
  PetscInt     ndirs = 16;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-dir", dir, &ndirs, NULL));
  for (PetscInt d = 0; d < ndirs; d++) {
    PetscCall(BenchFolder(dir[d], BenchVisitFile, &b));
    PetscCall(PetscFree(dir[d]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
