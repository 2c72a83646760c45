/*
  Assembles pieces into compressed rows, by threads.

  Triplets: each thread has a range of rows, and searches the row indices of all pieces for its range. So no two threads write to one place, and entries of a row stay in file order whatever the number
  of threads. Pieces without a row of the range are skipped.
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

/* ---- Rows sorted by columns, stable, so that equal places add up in file order */

enum {
  RUN = 24 /* entries that are sorted by insertion */
};

typedef struct {
  PetscInt    j;
  PetscScalar v;
} Entry;

/* Merges the sorted entries from low to mid and from mid to high */
static void Merge(const Entry from[], int64_t low, int64_t mid, int64_t high, Entry to[])
{
  for (int64_t a = low, b = mid, k = low; k < high; k++) to[k] = a < mid && (b == high || from[a].j <= from[b].j) ? from[a++] : from[b++];
}

/* Merges runs of RUN sorted entries; 1 without memory */
static int MergeSort(int64_t n, PetscInt j[], PetscScalar v[])
{
  Entry *const both = (Entry *)malloc(2 * (size_t)n * sizeof(*both));
  Entry       *from = both, *to = both + n;

  if (!both) return 1;
  for (int64_t k = 0; k < n; k++) {
    from[k].j = j[k];
    from[k].v = v[k];
  }
  for (int64_t run = RUN; run < n; run *= 2) {
    Entry *const sorted = to;

    for (int64_t k = 0; k < n; k += 2 * run) Merge(from, k, PetscMin(k + run, n), PetscMin(k + 2 * run, n), to);
    to   = from;
    from = sorted;
  }
  for (int64_t k = 0; k < n; k++) {
    j[k] = from[k].j;
    v[k] = from[k].v;
  }
  free(both);
  return 0;
}

int64_t GPUCSRSortRow(int64_t n, PetscInt j[], PetscScalar v[])
{
  int64_t equal = 0;
  int     down  = 0;

  for (int64_t k = 1; k < n; k++) down |= j[k] < j[k - 1];
  for (int64_t begin = 0; down && begin < n; begin += RUN)
    for (int64_t k = begin + 1; k < PetscMin(begin + RUN, n); k++) {
      const PetscInt    column = j[k];
      const PetscScalar value  = v[k];
      int64_t           at     = k;

      for (; at > begin && j[at - 1] > column; at--) {
        j[at] = j[at - 1];
        v[at] = v[at - 1];
      }
      j[at] = column;
      v[at] = value;
    }
  if (down && n > RUN && MergeSort(n, j, v)) return -1;
  for (int64_t k = 1; k < n; k++) equal += j[k] == j[k - 1];
  return equal;
}

/* ---- Filling */

/* The rows of the pieces one after the other, already sorted */
static int FillRows(const GPUCSRAssembly *A, PetscInt base, PetscInt j[], PetscScalar v[], GPUCSRFault *f)
{
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

/* The first row of thread t, for equally many entries a thread */
static int64_t RowOfThread(const GPUCSRAssembly *A, const int64_t row[], int t)
{
  const int64_t m  = A->rend - A->rstart;
  int64_t       lo = t < A->threads ? 0 : m;

  for (int64_t end = m; t && end - lo > 0;) {
    const int64_t c = lo + (end - lo) / 2;

    if (row[c] < row[m] / A->threads * t) lo = c + 1;
    else end = c;
  }
  return lo;
}

/* Rows lo to hi: distributes entries to their rows, then sorts rows. Adds to equal; at has room for the current end of each row */
static int FillRange(const GPUCSRAssembly *A, int64_t lo, int64_t hi, const int64_t row[], int64_t at[], PetscInt j[], PetscScalar v[], int64_t *equal)
{
  int failed = 0;

  memcpy(at + lo, row + lo, (size_t)(hi - lo) * sizeof(*at));
#define PLACE(r, column, x) \
  const int64_t to = at[r]++; \
  j[to]            = column; \
  v[to]            = x
  for (size_t k = 0; k < A->npieces; k++) ForEntries(A, &A->piece[k], lo, hi, PLACE);
  for (int64_t r = lo; r < hi && !failed; r++) {
    const int64_t c = GPUCSRSortRow(row[r + 1] - row[r], j + row[r], v + row[r]);

    failed = c < 0;
    *equal += PetscMax(c, 0);
  }
  return failed;
}

int GPUCSRAssemblyFill(const GPUCSRAssembly *A, PetscInt base, const int64_t row[], PetscInt j[], PetscScalar v[], int64_t *equal, GPUCSRFault *f)
{
  const int64_t m      = A->rend - A->rstart;
  int64_t       total  = 0, *at;
  int           failed = 0;

  *equal = 0;
  if (IsRows(A)) return FillRows(A, base, j, v, f);
  at = (int64_t *)malloc((size_t)(m + 1) * sizeof(*at));
  if (!at) return GPUCSRFaultSet(f, 0, 0, "no memory for %lld rows", (long long)m);
#pragma omp parallel for num_threads(A->threads) schedule(static, 1) reduction(+ : total) reduction(| : failed)
  for (int t = 0; t < A->threads; t++) failed |= FillRange(A, RowOfThread(A, row, t), RowOfThread(A, row, t + 1), row, at, j, v, &total);
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
