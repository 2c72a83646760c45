/*
  Rows into a matrix: into the arrays of MATSEQAIJ if the type has them, otherwise by MatSetValues().
*/
#include "loadfile.h"
#include <string.h>
#include <sys/mman.h>

/* Requests large pages for large arrays, for fewer page faults when they are filled, and later when products read them */
static void AdviseHuge(void *p, size_t bytes)
{
  const size_t huge  = (size_t)1 << 21;
  char        *begin = (char *)(((uintptr_t)p + huge - 1) & ~(uintptr_t)(huge - 1)), *end = (char *)(((uintptr_t)p + bytes) & ~(uintptr_t)(huge - 1));

  if (end > begin) madvise(begin, (size_t)(end - begin), MADV_HUGEPAGE);
}

/* The arrays of a MATSEQAIJ that is preallocated for nz entries; NULL if the type has no arrays */
PetscErrorCode GPUCSRSeqArrays(Mat A, size_t nz, PetscInt **j, PetscScalar **v)
{
  PetscBool       mine;
  const PetscInt *columns;

  PetscFunctionBegin;
  *j = NULL;
  *v = NULL;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &mine, MATSEQAIJ, MATSEQAIJGPUCSR, ""));
  if (!mine) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, NULL, &columns, v, NULL));
  *j = (PetscInt *)columns;
  AdviseHuge(*j, nz * sizeof(**j));
  AdviseHuge(*v, nz * sizeof(**v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

enum {
  INODE_SAMPLES = 4096
};

/* After entries were written into the arrays of a MATSEQAIJ */
static PetscErrorCode Filled(Mat A, const int64_t row[], PetscInt j[])
{
  const PetscInt m     = A->rmap->n;
  uint64_t       state = 0;
  int            equal = 0;

  PetscFunctionBegin;
  /*
    Assembly compares each row with the row before, in one thread, and gives up inodes if fewer than a fifth are equal. A sample predicts the result for a matrix of many rows: if fewer than a tenth are
    equal, the search is skipped. Sampled rows are scattered, as blocks repeat
  */
  if (m > 4 * INODE_SAMPLES) {
    for (int k = 0; k < INODE_SAMPLES; k++) {
      const PetscInt r = 1 + (PetscInt)((state >> 32) * (uint64_t)(m - 1) >> 32);

      equal += row[r + 1] - row[r] == row[r] - row[r - 1] && !memcmp(j + row[r], j + row[r - 1], (size_t)(row[r + 1] - row[r]) * sizeof(*j));
      state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's multiplier for a congruential generator of 64 bits */
    }
    if (equal < INODE_SAMPLES / 10) PetscCall(MatSetOption(A, MAT_USE_INODES, PETSC_FALSE));
  }
  PetscCall(MatSeqAIJSetColumnIndices(A, j)); /* the columns are in place; this call makes A aware of them */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both blocks of a MATMPIAIJ; done: their types have arrays, which have the entries now */
static PetscErrorCode FillBlocks(Mat A, const int64_t row[], const PetscInt j[], const PetscScalar v[], int threads, PetscBool *done)
{
  const PetscInt m = A->rmap->n, cstart = A->cmap->rstart, cend = A->cmap->rend;
  Mat            block[2];
  PetscInt      *nnz[2], *bj[2];
  PetscScalar   *bv[2];
  int64_t       *at[2];

  PetscFunctionBegin;
  PetscCall(PetscCalloc4((size_t)m, &nnz[0], (size_t)m, &nnz[1], (size_t)m + 1, &at[0], (size_t)m + 1, &at[1]));
#pragma omp parallel for num_threads(threads)
  for (PetscInt r = 0; r < m; r++)
    for (int64_t k = row[r]; k < row[r + 1]; k++) nnz[j[k] < cstart || j[k] >= cend][r]++;
  PetscCall(MatMPIAIJSetPreallocation(A, 0, nnz[0], 0, nnz[1]));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int b = 0; b < 2; b++) {
    for (PetscInt r = 0; r < m; r++) at[b][r + 1] = at[b][r] + nnz[b][r];
    PetscCall(GPUCSRSeqArrays(block[b], (size_t)at[b][m], &bj[b], &bv[b]));
  }
  *done = (PetscBool)(bj[0] && bj[1]);
#pragma omp parallel for num_threads(threads)
  for (PetscInt r = 0; r < (*done ? m : 0); r++) {
    int64_t to[2] = {at[0][r], at[1][r]};

    for (int64_t k = row[r]; k < row[r + 1]; k++) {
      const int off = j[k] < cstart || j[k] >= cend;

      bj[off][to[off]]   = off ? j[k] : j[k] - cstart; /* the block off the diagonal gets its own numbers of columns at assembly */
      bv[off][to[off]++] = v[k];
    }
  }
  for (int b = 0; b < 2 && *done; b++) PetscCall(Filled(block[b], at[b], bj[b]));
  PetscCall(PetscFree4(nnz[0], nnz[1], at[0], at[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Counts the entries of rows or, where a type has blocks, the blocks of rows of blocks: in the diagonal block, outside it; the same in the upper triangle */
static PetscErrorCode Preallocate(Mat A, const int64_t row[], const PetscInt j[])
{
  PetscInt  bs, cbs, *nnz, *last; /* row of blocks that had a block in this column last */
  size_t    rows;
  PetscBool sell;

  PetscFunctionBegin;
  PetscCall(MatGetBlockSizes(A, &bs, &cbs));
  PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &sell, MATSEQSELL, MATMPISELL, ""));
  if (bs != cbs || sell) bs = 1;
  rows = (size_t)(A->rmap->n / bs);
  PetscCall(PetscCalloc1(4 * rows + 1, &nnz));
  PetscCall(PetscMalloc1(A->cmap->N / bs + 1, &last));
  for (PetscInt c = 0; c <= A->cmap->N / bs; c++) last[c] = -1;
  for (PetscInt r = 0; r < A->rmap->n; r++)
    for (int64_t k = row[r]; k < row[r + 1]; k++) {
      const PetscInt b = r / bs, c = j[k] / bs;
      const size_t   off = j[k] < A->cmap->rstart || j[k] >= A->cmap->rend;

      if (last[c] == b) continue;
      last[c] = b;
      nnz[off * rows + (size_t)b]++;
      if (c >= A->rmap->rstart / bs + b) nnz[(2 + off) * rows + (size_t)b]++;
    }
  PetscCall(PetscFree(last));
  if (sell) { /* these do nothing for other types */
    PetscCall(MatSeqSELLSetPreallocation(A, 0, nnz));
    PetscCall(MatMPISELLSetPreallocation(A, 0, nnz, 0, nnz + rows));
  } else PetscCall(MatXAIJSetPreallocation(A, bs > 1 ? PETSC_DECIDE : 1, nnz, nnz + rows, nnz + 2 * rows, nnz + 3 * rows));
  PetscCall(PetscFree(nnz));
  PetscCall(MatSetUp(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Local rows, columns global and ascending, into a matrix of any type, which is then assembled; filled: its arrays have them */
PetscErrorCode GPUCSRSetRows(Mat A, PetscBool filled, const int64_t row[], PetscInt j[], const PetscScalar v[], int threads)
{
  PetscBool is;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &is, MATMPIAIJ, MATMPIAIJGPUCSR, ""));
  if (is) PetscCall(FillBlocks(A, row, j, v, threads, &filled));
  else if (filled) PetscCall(Filled(A, row, j));
  else PetscCall(Preallocate(A, row, j));
  PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &is, MATSEQSBAIJ, MATMPISBAIJ, ""));
  if (is) PetscCall(MatSetOption(A, MAT_IGNORE_LOWER_TRIANGULAR, PETSC_TRUE));
  for (PetscInt r = 0; r < (filled ? 0 : A->rmap->n); r++) {
    const PetscInt g = A->rmap->rstart + r;

    PetscCall(MatSetValues(A, 1, &g, (PetscInt)(row[r + 1] - row[r]), j + row[r], v + row[r], INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}
