/*
  PETSc binary into a matrix. Every rank reads its part of a plain file; the first rank passes a stream on to all.
*/
#include "loadfile.h"
#include <stdlib.h>

/* PETSc's viewer loads dense matrices and scalars that are not double */
static PetscErrorCode LoadViewer(GPUCSRReader *R, Mat A, const GPUCSRBinary *b, Vec *labels)
{
  PetscViewer viewer;
  PetscInt    M, N;
  int         follows = b->nz >= 0 && b->labels;

  PetscFunctionBegin;
  if (!((PetscObject)A)->type_name) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(PetscViewerBinaryOpen(R->comm, R->file, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(A, viewer));
  PetscCall(MatGetSize(A, &M, &N));
  R->info.entries = b->nz < 0 ? (int64_t)M * N : b->nz; /* of a dense matrix only after loading: the sizes of a header may be arbitrary */
  PetscCallMPI(MPI_Bcast(&follows, 1, MPI_INT, 0, R->comm));
  if (follows && labels) {
    PetscCall(MatCreateVecs(A, NULL, labels));
    PetscCall(VecLoad(*labels, viewer));
  }
  PetscCall(PetscViewerDestroy(&viewer));
  R->parsed = MPI_Wtime();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first rank sends the contents of a stream to all */
static PetscErrorCode Share(GPUCSRReader *R)
{
  int64_t bytes = 0;
  char   *all   = NULL;

  PetscFunctionBegin;
  if (R->rank == 0) {
    all       = (char *)GPUCSRInputWhole(R->source, &R->fault);
    R->failed = !all;
    bytes     = (int64_t)GPUCSRInputSize(R->source);
  }
  PetscCall(GPUCSRReaderAgree(R));
  PetscCallMPI(MPI_Bcast(&bytes, 1, MPIU_INT64, 0, R->comm));
  if (R->rank) R->all = all = (char *)malloc((size_t)bytes + 1);
  if (!all) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "no memory for the contents of the file");
  PetscCall(GPUCSRReaderAgree(R));
  for (int64_t at = 0; at < bytes; at += 1 << 30) PetscCallMPI(MPI_Bcast(all + at, (PetscMPIInt)PetscMin(bytes - at, 1 << 30), MPI_BYTE, 0, R->comm));
  if (R->rank) R->failed = GPUCSRInputMemory(all, (size_t)bytes, &R->source, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The lengths of rows, equally many on each rank */
static PetscErrorCode Count(GPUCSRReader *R, const void *ctx)
{
  const GPUCSRBinary *b     = (const GPUCSRBinary *)ctx;
  const int64_t       first = b->M / R->size * R->rank, m = R->rank + 1 == R->size ? b->M - first : b->M / R->size;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)m + 1, &R->first));
  R->failed = GPUCSRBinaryRows(b, first, m, R->first, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  for (int64_t r = 0; r < m; r++) GPUCSRReaderCount(R, first + r, R->first[r + 1] - R->first[r]);
  PetscCall(PetscFree(R->first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRLoadBinary(GPUCSRReader *R, Mat A, Vec *labels)
{
  GPUCSRBinary b;
  int64_t      first, end;
  PetscInt     m, rstart, *j;
  PetscScalar *y, *v;
  PetscBool    direct;

  PetscFunctionBegin;
  if (R->stream) PetscCall(Share(R));
  R->failed = GPUCSRBinaryHeader(R->source, &b, &R->fault);
  if (!R->failed && R->stream && (b.nz < 0 || !GPUCSR_SCALAR_IS_DOUBLE)) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "is a dense matrix, or has other scalars than doubles, inside a compressed file or a pipe: make it a plain file first");
  PetscCall(GPUCSRReaderAgree(R));
  R->info.text = (int64_t)b.length;
  if (b.nz < 0 || !GPUCSR_SCALAR_IS_DOUBLE) {
    PetscCall(LoadViewer(R, A, &b, labels));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  R->info.entries = b.nz;
  PetscCall(GPUCSRReaderLayout(R, A, (PetscInt)b.M, (PetscInt)b.N, Count, &b));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  /* the start of each of this rank's rows, and the number of their first entry in the file; the rows of all ranks must have as many entries as the header announces */
  PetscCall(PetscMalloc2((size_t)m + 1, &R->row, (size_t)m, &R->nnz));
  R->failed = GPUCSRBinaryRows(&b, rstart, m, R->row, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  PetscCallMPI(MPI_Scan(&R->row[m], &end, 1, MPIU_INT64, MPI_SUM, R->comm));
  first = end - R->row[m];
  PetscCallMPI(MPI_Bcast(&end, 1, MPIU_INT64, R->size - 1, R->comm));
  if (end != b.nz) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "the rows have %lld entries together, the header says %lld", (long long)end, (long long)b.nz);
  PetscCall(GPUCSRReaderAgree(R));
  /* columns and values of this rank's rows, into the arrays of the matrix if its type has them */

  PetscCall(GPUCSRReaderArrays(R, A, &j, &v, &direct));
  R->failed = GPUCSRBinaryColumns(&b, rstart, m, R->row, first, j, R->threads, &R->fault) || GPUCSRBinaryReals(&b, b.values + 8 * (size_t)first, R->row[m], v, R->threads, &R->fault);
  if (R->failed && direct) PetscCall(MatSeqAIJSetPreallocation(A, 0, R->nnz)); /* its rows are empty again */
  PetscCall(GPUCSRReaderAgree(R));
  R->parsed = MPI_Wtime();
  PetscCall(GPUCSRSetRows(A, direct, R->row, j, v, R->threads));
  if (b.labels && labels) {
    PetscCall(MatCreateVecs(A, NULL, labels));
    PetscCall(VecGetArrayWrite(*labels, &y));
    R->failed = GPUCSRBinaryReals(&b, b.labels + 8 * (size_t)rstart, m, y, R->threads, &R->fault);
    PetscCall(VecRestoreArrayWrite(*labels, &y));
    if (R->failed) PetscCall(VecDestroy(labels));
    PetscCall(GPUCSRReaderAgree(R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
