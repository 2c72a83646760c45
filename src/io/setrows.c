/*
  Rows into a matrix: into the arrays of MATSEQAIJ if the type has them, otherwise by MatSetValues().
*/
#include "loadfile.h"
#include <string.h>
#include <sys/mman.h>

/* Requests large pages for large arrays, for fewer page faults when they are filled, and later when products read them */
static void AdviseHuge(void *p, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
  const size_t huge  = (size_t)1 << 21;
  char        *begin = (char *)(((uintptr_t)p + huge - 1) & ~(uintptr_t)(huge - 1)), *end = (char *)(((uintptr_t)p + bytes) & ~(uintptr_t)(huge - 1));

  if (end > begin) madvise(begin, (size_t)(end - begin), MADV_HUGEPAGE);
#endif
}

/* The arrays of a MATSEQAIJ with rows of these lengths, to fill before GPUCSRSeqArraysDone(); NULL if the type has no arrays */
PetscErrorCode GPUCSRSeqArrays(Mat A, PetscBool preallocate, const PetscInt nnz[], PetscInt **j, PetscScalar **v)
{
  PetscBool       mine;
  const PetscInt *columns;

  PetscFunctionBegin;
  *j = NULL;
  *v = NULL;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &mine, MATSEQAIJ, MATSEQAIJGPUCSR, ""));
  if (!mine) PetscFunctionReturn(PETSC_SUCCESS);
  if (preallocate) PetscCall(MatSeqAIJSetPreallocation(A, 0, nnz));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, NULL, &columns, v, NULL));
  *j = (PetscInt *)columns;
  if (preallocate && nnz) {
    PetscInt m;
    int64_t  nz = 0;

    PetscCall(MatGetLocalSize(A, &m, NULL));
    for (PetscInt r = 0; r < m; r++) nz += nnz[r];
    AdviseHuge(*j, (size_t)nz * sizeof(**j));
    AdviseHuge(*v, (size_t)nz * sizeof(**v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

enum {
  INODE_SAMPLES = 4096
};

/*
  Assembly compares each row with the row before, in one thread, and gives up inodes if fewer than a fifth are equal. A sample predicts the result for a matrix of many rows: if fewer than a tenth are equal,
  the search is skipped. Sampled rows are scattered, as blocks repeat
*/
PetscErrorCode GPUCSRSpareInodes(Mat A, PetscInt m, const int64_t row[], const PetscInt j[])
{
  uint64_t state = 0;
  int      equal = 0;

  PetscFunctionBegin;
  if (m <= 4 * INODE_SAMPLES) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < INODE_SAMPLES; k++) {
    const PetscInt r = 1 + (PetscInt)((state >> 32) * (uint64_t)(m - 1) >> 32);

    equal += row[r + 1] - row[r] == row[r] - row[r - 1] && !memcmp(j + row[r], j + row[r - 1], (size_t)(row[r + 1] - row[r]) * sizeof(*j));
    state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's multiplier for a congruential generator of 64 bits */
  }
  if (equal < INODE_SAMPLES / 10) PetscCall(MatSetOption(A, MAT_USE_INODES, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRSeqArraysDone(Mat A, const int64_t row[], PetscInt j[])
{
  PetscInt m;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(GPUCSRSpareInodes(A, m, row, j));
  PetscCall(MatSeqAIJSetColumnIndices(A, j)); /* the columns are in place; this call makes A aware of them */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRAssemble(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks in place of entries: four counts for each row of blocks, as in GPUCSRSetRows() */
static PetscErrorCode CountBlocks(Mat A, PetscInt bs, const int64_t row[], const PetscInt j[], size_t rows, PetscInt *nnz)
{
  PetscInt N, m, rstart, cstart, cend, *last; /* row of blocks that had a block in this column last */

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, NULL, &N));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  PetscCall(MatGetOwnershipRangeColumn(A, &cstart, &cend));
  PetscCall(PetscMalloc1(N / bs + 1, &last));
  for (PetscInt c = 0; c <= N / bs; c++) last[c] = -1;
  PetscCall(PetscArrayzero(nnz, 4 * rows));
  for (PetscInt r = 0; r < m; r++)
    for (int64_t k = row[r]; k < row[r + 1]; k++) {
      const PetscInt b = r / bs, c = j[k] / bs;
      const size_t   off = j[k] < cstart || j[k] >= cend;

      if (last[c] == b) continue;
      last[c] = b;
      nnz[off * rows + (size_t)b]++;
      if (c >= rstart / bs + b) nnz[(2 + off) * rows + (size_t)b]++;
    }
  PetscCall(PetscFree(last));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Local rows, columns global and ascending, into a matrix of any type */
PetscErrorCode GPUCSRSetRows(Mat A, const int64_t row[], const PetscInt j[], const PetscScalar v[], int threads)
{
  static const char *const counted[] = {"MatSeqAIJSetPreallocation_C", "MatMPIAIJSetPreallocation_C", "MatSeqBAIJSetPreallocation_C", "MatMPIBAIJSetPreallocation_C", "MatSeqSBAIJSetPreallocation_C", "MatMPISBAIJSetPreallocation_C"};
  PetscInt                 m, rstart, cstart, cend, bs, cbs, *nnz;
  size_t                   rows;
  PetscBool                mpi, preallocated = PETSC_FALSE;
  Mat                      block[2];
  PetscInt                *bj[2];
  PetscScalar             *bv[2];

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  PetscCall(MatGetOwnershipRangeColumn(A, &cstart, &cend));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &mpi, MATMPIAIJ, MATMPIAIJGPUCSR, ""));
  rows = (size_t)m;
  PetscCall(PetscCalloc1(4 * rows + 1, &nnz)); /* in the diagonal block, outside it; the same in the upper triangle */
#pragma omp parallel for num_threads(threads)
  for (PetscInt r = 0; r < m; r++)
    for (int64_t k = row[r]; k < row[r + 1]; k++) {
      const size_t off = j[k] < cstart || j[k] >= cend;

      nnz[off * rows + (size_t)r]++;
      if (j[k] >= rstart + r) nnz[(2 + off) * rows + (size_t)r]++;
    }
  if (mpi) {
    PetscCall(MatMPIAIJSetPreallocation(A, 0, nnz, 0, nnz + m));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    for (int b = 0; b < 2; b++) PetscCall(GPUCSRSeqArrays(block[b], PETSC_FALSE, NULL, &bj[b], &bv[b]));
    preallocated = PETSC_TRUE;
    mpi          = (PetscBool)(bj[0] && bj[1]);
  }
  if (mpi) {
    int64_t *at[2];

    PetscCall(PetscMalloc2((size_t)m + 1, &at[0], (size_t)m + 1, &at[1]));
    for (int b = 0; b < 2; b++) {
      at[b][0] = 0;
      for (PetscInt r = 0; r < m; r++) at[b][r + 1] = at[b][r] + nnz[(size_t)b * rows + (size_t)r];
    }
#pragma omp parallel for num_threads(threads)
    for (PetscInt r = 0; r < m; r++) {
      int64_t to[2] = {at[0][r], at[1][r]};

      for (int64_t k = row[r]; k < row[r + 1]; k++) {
        const int off = j[k] < cstart || j[k] >= cend;

        bj[off][to[off]]   = off ? j[k] : j[k] - cstart; /* the block off the diagonal gets its own numbers of columns at assembly */
        bv[off][to[off]++] = v[k];
      }
    }
    for (int b = 0; b < 2; b++) PetscCall(GPUCSRSeqArraysDone(block[b], at[b], bj[b]));
    PetscCall(PetscFree2(at[0], at[1]));
  } else {
    for (size_t k = 0; k < sizeof(counted) / sizeof(counted[0]) && !preallocated; k++) {
      void (*found)(void);

      PetscCall(PetscObjectQueryFunction((PetscObject)A, counted[k], &found));
      if (!found) continue;
      PetscCall(MatGetBlockSizes(A, &bs, &cbs));
      if (bs > 1 && bs == cbs) PetscCall(CountBlocks(A, bs, row, j, rows, nnz));
      PetscCall(MatXAIJSetPreallocation(A, bs > 1 && bs == cbs ? PETSC_DECIDE : 1, nnz, nnz + rows, nnz + 2 * rows, nnz + 3 * rows));
      preallocated = PETSC_TRUE;
    }
    if (!preallocated) { /* no effect on other types */
      PetscCall(MatSeqSELLSetPreallocation(A, 0, nnz));
      PetscCall(MatMPISELLSetPreallocation(A, 0, nnz, 0, nnz + m));
      PetscCall(MatSetUp(A));
    }
    PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &mpi, MATSEQSBAIJ, MATMPISBAIJ, ""));
    if (mpi) PetscCall(MatSetOption(A, MAT_IGNORE_LOWER_TRIANGULAR, PETSC_TRUE));
    for (PetscInt r = 0; r < m; r++) {
      const PetscInt g = rstart + r;

      PetscCall(MatSetValues(A, 1, &g, (PetscInt)(row[r + 1] - row[r]), j + row[r], v + row[r], INSERT_VALUES));
    }
  }
  PetscCall(PetscFree(nnz));
  PetscCall(GPUCSRAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
