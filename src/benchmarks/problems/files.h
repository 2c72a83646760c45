#pragma once

/* Matrices in files: PETSc binary, as real matrices come to the benchmarks */
#include <petscmat.h>
#include <petscversion.h>
#include <dirent.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

/* The matrix of a file, as a sequential MATAIJ */
static inline PetscErrorCode BenchLoad(const char file[], Mat *A)
{
  PetscViewer viewer;
  PetscBool   isaij;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, file, FILE_MODE_READ, &viewer));
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetType(*A, MATSEQAIJ));
  PetscCall(MatLoad(*A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)*A, MATSEQAIJ, &isaij));
  PetscCheck(isaij, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: does not hold a sparse matrix", file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline int BenchIsMatrix(const struct dirent *e)
{
  const char *end = strrchr(e->d_name, '.');

  return end && end > e->d_name && !strcmp(end, ".petsc");
}

/* Calls visit for each *.petsc of a folder, in alphabetical order */
static inline PetscErrorCode BenchFolder(const char folder[], PetscErrorCode (*visit)(void *ctx, const char file[], const char name[]), void *ctx)
{
  struct dirent **e = NULL;
  const int       n = scandir(folder, &e, BenchIsMatrix, alphasort);
  char            file[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCheck(n >= 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-dir %s: cannot be read", folder);
  for (int k = 0; k < n; k++) {
    PetscCall(PetscSNPrintf(file, sizeof(file), "%s/%s", folder, e[k]->d_name));
    PetscCall((*visit)(ctx, file, e[k]->d_name));
    free(e[k]);
  }
  free(e);
  PetscFunctionReturn(PETSC_SUCCESS);
}
