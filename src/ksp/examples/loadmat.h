#pragma once

/*
  LoadMat() and LoadVec(): read a matrix or a vector from a file, on any number of ranks.

  PETSc's programs read PETSc binary (MatView() and VecView() write this format). If a loaded library (-dll_append libpetscgpucsr.so) has a function for further files, the function reads and checks the
  matrix: Matrix Market, Harwell-Boeing, LIBSVM, compressed files and pipes. Without the library, gpucsr-convert converts such files to PETSc binary.
*/
#include <petscksp.h>

/* The type of MatGPUCSRLoadFile(), because the programs do not include petscgpucsr.h */
typedef PetscErrorCode (*LoadFileFn)(Mat, const char *, const void *, Vec *, Vec *, void *);

/* Opens PETSc binary that begins with an object of class classid; NULL if the file does not */
static inline PetscErrorCode OpenBinary(MPI_Comm comm, const char name[], PetscInt classid, PetscViewer *viewer)
{
  PetscInt first = 0, count = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerBinaryOpen(comm, name, FILE_MODE_READ, viewer));
  PetscCall(PetscViewerBinaryRead(*viewer, &first, 1, &count, PETSC_INT));
  PetscCall(PetscViewerDestroy(viewer));
  if (count == 1 && first == classid) PetscCall(PetscViewerBinaryOpen(comm, name, FILE_MODE_READ, viewer)); /* from its beginning */
  PetscFunctionReturn(0);
}

/* Fills a matrix with a type (MatSetFromOptions()); unset sizes come from the file. labels: the vector behind it, unless it is NULL; queries and info, if the library reads the file: as in MatGPUCSRLoadFile() */
static inline PetscErrorCode LoadMat(Mat A, const char name[], Vec *labels, Vec *queries, void *info)
{
  MPI_Comm    comm = PetscObjectComm((PetscObject)A);
  LoadFileFn  load = NULL;
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(PetscDLSym(NULL, "MatGPUCSRLoadFile", (void **)&load));
  if (load) {
    PetscCall((*load)(A, name, NULL, labels, queries, info));
    PetscFunctionReturn(0);
  }
  PetscCall(OpenBinary(comm, name, MAT_FILE_CLASSID, &viewer));
  PetscCheck(viewer, comm, PETSC_ERR_FILE_UNEXPECTED, "%s: is not a matrix in PETSc binary of this PETSc: convert it by gpucsr-convert, or read it with -dll_append libpetscgpucsr.so", name);
  PetscCall(MatLoad(A, viewer));
  if (labels) {
    PetscCall(MatCreateVecs(A, NULL, labels));
    PetscCall(VecLoad(*labels, viewer));
  }
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(0);
}

/* Fills a vector of known type and size from PETSc binary, or from a file that LoadMat() reads as a matrix with one column */
static inline PetscErrorCode LoadVec(Vec x, const char name[])
{
  MPI_Comm    comm = PetscObjectComm((PetscObject)x);
  Mat         A;
  PetscViewer viewer;
  PetscInt    M, m, n, N;

  PetscFunctionBeginUser;
  PetscCall(OpenBinary(comm, name, VEC_FILE_CLASSID, &viewer));
  if (viewer) {
    PetscCall(VecLoad(x, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscFunctionReturn(0);
  }
  PetscCall(VecGetSize(x, &N));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(MatCreate(comm, &A));
  PetscCall(MatSetType(A, MATAIJ));
  PetscCall(LoadMat(A, name, NULL, NULL, NULL));
  PetscCall(MatGetSize(A, &M, &m));
  PetscCheck(M == N && m == 1, comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " rows and %" PetscInt_FMT " columns where a vector of %" PetscInt_FMT " rows, in 1 column, is needed", name, M, m, N);
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCheck(m == n, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "%s: its rows are distributed differently than the vector", name);
  PetscCall(MatGetColumnVector(A, x, 0));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(0);
}
