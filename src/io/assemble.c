/*
  Compressed rows out of pieces, by threads.

  Triplets: each thread has a range of rows, and looks through the row indices of all pieces for those in its range; so no two threads write to one place,
  and entries of a row stay in the order of the file whatever the number of threads. A piece without a row of the range is passed over.
*/
#include "gpucsrio.h"
#include <stdlib.h>
#include <string.h>

static int IsRows(const GPUCSRAssembly *A)
{
  for (size_t k = 0; k < A->npieces; k++)
    if (A->piece[k].length) return 1;
  return 0;
}

/* Calls body(row, column, value) for entries and mirrored entries in rows lo to hi, from 0, of a piece */
#define ForEntries(A, piece, lo, hi, body) \
  do { \
    const GPUCSRPiece   *p_    = (piece); \
    const GPUCSRSymmetry kind_ = (A)->symmetry; \
    const int64_t        a_    = (A)->rstart + (lo); \
    const uint64_t       n_    = (uint64_t)((hi) - (lo)); \
    if (kind_ == GPUCSR_GENERAL && (!p_->nz || (int64_t)p_->high < a_ || (int64_t)p_->low >= a_ + (int64_t)n_)) break; \
    for (size_t e_ = 0; e_ < p_->nz; e_++) { \
      const int64_t r_ = (int64_t)p_->i[e_] - a_, c_ = (int64_t)p_->j[e_] - a_; \
      if ((uint64_t)r_ < n_) { \
        body(r_ + (lo), p_->j[e_], p_->v ? p_->v[e_] : (PetscScalar)1); \
      } \
      if (kind_ != GPUCSR_GENERAL && (uint64_t)c_ < n_ && p_->i[e_] != p_->j[e_]) { \
        body(c_ + (lo), p_->i[e_], GPUCSRMirror(kind_, p_->v ? p_->v[e_] : (PetscScalar)1)); \
      } \
    } \
  } while (0)

void GPUCSRAssemblyCount(const GPUCSRAssembly *A, int64_t row[])
{
  const int64_t m = A->rend - A->rstart;

  if (IsRows(A)) {
    int64_t r = 0;

    row[0] = 0;
    for (size_t k = 0; k < A->npieces; k++)
      for (size_t e = 0; e < A->piece[k].rows; e++, r++) row[r + 1] = row[r] + A->piece[k].length[e];
    return;
  }
#pragma omp parallel for num_threads(A->threads) schedule(static, 1)
  for (int t = 0; t < A->threads; t++) {
    const int64_t lo = m * t / A->threads, hi = m * (t + 1) / A->threads;
    int64_t      *count = row + 1;

    memset(count + lo, 0, (size_t)(hi - lo) * sizeof(*count));
#define COUNT(r, c, x) count[r]++
    for (size_t k = 0; k < A->npieces; k++) ForEntries(A, &A->piece[k], lo, hi, COUNT);
  }
  row[0] = 0;
  for (int64_t r = 0; r < m; r++) row[r + 1] += row[r];
}

typedef struct {
  PetscInt    j;
  PetscScalar v;
  PetscInt    order; /* stable, so that equal places add up in the order of the file */
} Entry;

static int CompareEntries(const void *a, const void *b)
{
  const Entry *x = (const Entry *)a, *y = (const Entry *)b;

  if (x->j != y->j) return x->j < y->j ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

/* Sort one row by columns where it is not; returns how many entries have the place of the one before, or -1 */
static int64_t SortRow(int64_t n, PetscInt j[], PetscScalar v[])
{
  int64_t equal = 0, k;

  for (k = 1; k < n && j[k] >= j[k - 1]; k++) equal += j[k] == j[k - 1];
  if (k < n && n <= 24) { /* insertion: short rows are most */
    for (equal = 0, k = 1; k < n; k++) {
      const PetscInt    c  = j[k];
      const PetscScalar x  = v[k];
      int64_t           at = k;

      for (; at > 0 && j[at - 1] > c; at--) {
        j[at] = j[at - 1];
        v[at] = v[at - 1];
      }
      j[at] = c;
      v[at] = x;
      equal += at > 0 && j[at - 1] == c;
    }
  } else if (k < n) {
    Entry *entry = (Entry *)malloc((size_t)n * sizeof(*entry));

    if (!entry) return -1;
    for (k = 0; k < n; k++) {
      entry[k].j     = j[k];
      entry[k].v     = v[k];
      entry[k].order = (PetscInt)k;
    }
    qsort(entry, (size_t)n, sizeof(*entry), CompareEntries);
    for (equal = k = 0; k < n; k++) {
      j[k] = entry[k].j;
      v[k] = entry[k].v;
      equal += k && j[k] == j[k - 1];
    }
    free(entry);
  }
  return equal;
}

int GPUCSRAssemblyFill(const GPUCSRAssembly *A, PetscInt base, const int64_t row[], PetscInt j[], PetscScalar v[], int64_t *equal, GPUCSRFault *f)
{
  const int64_t m      = A->rend - A->rstart;
  int64_t       total  = 0, *at;
  int           failed = 0;

  *equal = 0;
  if (IsRows(A)) {
    size_t *first = (size_t *)malloc((A->npieces + 1) * sizeof(*first));

    if (!first) return GPUCSRFaultSet(f, 0, 0, "no memory for %zu pieces", A->npieces);
    first[0] = 0;
    for (size_t k = 0; k < A->npieces; k++) first[k + 1] = first[k] + A->piece[k].nz;
#pragma omp parallel for num_threads(A->threads) schedule(dynamic)
    for (size_t k = 0; k < A->npieces; k++) {
      const GPUCSRPiece *p = &A->piece[k];

      for (size_t e = 0; e < p->nz; e++) j[first[k] + e] = p->j[e] - base;
      if (p->nz) memcpy(v + first[k], p->v, p->nz * sizeof(*v));
    }
    free(first);
    return 0;
  }
  at = (int64_t *)malloc((size_t)(m + 1) * sizeof(*at));
  if (!at) return GPUCSRFaultSet(f, 0, 0, "no memory for %lld rows", (long long)m);
#pragma omp parallel for num_threads(A->threads) schedule(static, 1) reduction(+ : total) reduction(| : failed)
  for (int t = 0; t < A->threads; t++) {
    int64_t lo = 0, hi = m, c;

    /* as many entries a thread */
    for (int64_t end = m; t && end - lo > 0;) {
      c = lo + (end - lo) / 2;
      if (row[c] < row[m] / A->threads * t) lo = c + 1;
      else end = c;
    }
    if (t + 1 < A->threads) {
      hi = lo;
      for (int64_t end = m; end - hi > 0;) {
        c = hi + (end - hi) / 2;
        if (row[c] < row[m] / A->threads * (t + 1)) hi = c + 1;
        else end = c;
      }
    }
    memcpy(at + lo, row + lo, (size_t)(hi - lo) * sizeof(*at));
#define PLACE(r, column, x) \
  const int64_t to = at[r]++; \
  j[to]            = column; \
  v[to]            = x
    for (size_t k = 0; k < A->npieces; k++) ForEntries(A, &A->piece[k], lo, hi, PLACE);
    for (int64_t r = lo; r < hi; r++) {
                 c = SortRow(row[r + 1] - row[r], j + row[r], v + row[r]);
                 if (c < 0) failed = 1;
      else total += c;
    }
  }
  free(at);
  *equal = total;
  return failed ? GPUCSRFaultSet(f, 0, 0, "no memory to sort a row") : 0;
}

void GPUCSRAssemblyCompact(int64_t m, int64_t row[], PetscInt j[], PetscScalar v[])
{
  int64_t to = 0, from = 0;

  for (int64_t r = 0; r < m; r++) {
    const int64_t begin = to;

    for (; from < row[r + 1]; from++) {
      if (to > begin && j[to - 1] == j[from]) v[to - 1] += v[from];
      else {
        j[to] = j[from];
        v[to] = v[from];
        to++;
      }
    }
    row[r + 1] = to;
  }
}
