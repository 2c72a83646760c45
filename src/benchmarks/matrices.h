#pragma once

/* Matrices one after another, for programs that measure many: generated ones, and the *.petsc of folders */
#include <petscmat.h>
#include "../mat/impls/gpucsr/plan/plan.h"
#include "synthetic.h"
#include <dirent.h>

typedef PetscErrorCode (*BenchVisit)(void *ctx, const char name[], PetscBool real, const GPUCSRSource *);

static inline PetscErrorCode BenchVisitGenerated(const Synthetic *s, int shrink, BenchVisit visit, void *ctx)
{
  int          m = 0, n = 0;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(SyntheticCreate(s, shrink, &m, &n, &i, &j, &a));
  PetscCall((*visit)(ctx, s->name, PETSC_FALSE, &(GPUCSRSource){m, n, i[m], i, j, a}));
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode BenchVisitFile(const char file[], const char name[], BenchVisit visit, void *ctx)
{
  Mat             A;
  PetscViewer     v;
  PetscInt        n, columns;
  const PetscInt *i, *j;
  PetscScalar    *a;
  PetscBool       done;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, file, FILE_MODE_READ, &v));
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetType(A, MATSEQAIJ));
  PetscCall(MatLoad(A, v));
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(MatGetSize(A, NULL, &columns));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  PetscCall(MatSeqAIJGetArray(A, &a));
  PetscCall((*visit)(ctx, name, PETSC_TRUE, &(GPUCSRSource){(int)n, (int)columns, i[n], i, j, a}));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int BenchIsMatrix(const struct dirent *e)
{
  const char *end = strrchr(e->d_name, '.');

  return end && !strcmp(end, ".petsc");
}

/* The matrices of the folders of -dir FOLDER,... */
static inline PetscErrorCode BenchVisitFolders(BenchVisit visit, void *ctx)
{
  char    *dir[16], file[PETSC_MAX_PATH_LEN];
  PetscInt ndirs = 16;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-dir", dir, &ndirs, NULL));
  for (int d = 0; d < ndirs && ndirs < 16; d++) {
    struct dirent **e = NULL;
    const int       n = scandir(dir[d], &e, BenchIsMatrix, alphasort);

    PetscCheck(n >= 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-dir %s: cannot be read", dir[d]);
    for (int k = 0; k < n; k++) {
      PetscCall(PetscSNPrintf(file, sizeof(file), "%s/%s", dir[d], e[k]->d_name));
      PetscCall(BenchVisitFile(file, e[k]->d_name, visit, ctx));
      free(e[k]);
    }
    free(e);
    PetscCall(PetscFree(dir[d]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
