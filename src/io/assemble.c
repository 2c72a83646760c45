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
  SHORT = 32 /* longest row that is sorted by insertion */
};

/* A thread's workspace for sorting, for the longest row so far */
typedef struct {
  size_t       room;
  uint64_t    *key; /* two of that length */
  PetscScalar *v;
} Scratch;

static void ScratchDestroy(Scratch *s)
{
  free(s->key);
  free(s->v);
}

static int ScratchGrow(Scratch *s, size_t n)
{
  if (n <= s->room) return 0;
  ScratchDestroy(s);
  s->room = 2 * n;
  s->key  = (uint64_t *)malloc(2 * s->room * sizeof(*s->key));
  s->v    = (PetscScalar *)malloc(s->room * sizeof(*s->v));
  if (s->key && s->v) return 0;
  ScratchDestroy(s);
  memset(s, 0, sizeof(*s));
  return 1;
}

static void InsertionSort(int64_t n, uint64_t key[])
{
  for (int64_t k = 1; k < n; k++) {
    const uint64_t x  = key[k];
    int64_t        at = k;

    for (; at > 0 && key[at - 1] > x; at--) key[at] = key[at - 1];
    key[at] = x;
  }
}

/* Sorts by digits, the lowest first, using the differing bits from 32 on; lower bits are sorted already. Returns key or other, whichever has the result */
static uint64_t *RadixSort(int64_t n, uint64_t key[], uint64_t other[], uint64_t largest)
{
  const int digit = n < 2048 ? 8 : 11;

  for (int shift = 32; shift < 64 && largest >> shift; shift += digit) {
    int64_t  at[2048] = {0}, sum = 0;
    uint64_t mask = ((uint64_t)1 << digit) - 1, *turn;

    for (int64_t k = 0; k < n; k++) at[key[k] >> shift & mask]++;
    for (uint64_t d = 0; d <= mask; d++) {
      const int64_t c = at[d];

      at[d] = sum;
      sum += c;
    }
    for (int64_t k = 0; k < n; k++) other[at[key[k] >> shift & mask]++] = key[k];
    turn  = key;
    key   = other;
    other = turn;
  }
  return key;
}

typedef struct {
  PetscInt    j;
  PetscScalar v;
  PetscInt    order;
} Entry;

static int CompareEntries(const void *a, const void *b)
{
  const Entry *x = (const Entry *)a, *y = (const Entry *)b;

  if (x->j != y->j) return x->j < y->j ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

/* For columns or lengths beyond half a key */
static int SortWide(int64_t n, PetscInt j[], PetscScalar v[])
{
  Entry *entry = (Entry *)malloc((size_t)n * sizeof(*entry));

  if (!entry) return 1;
  for (int64_t k = 0; k < n; k++) {
    entry[k].j     = j[k];
    entry[k].v     = v[k];
    entry[k].order = (PetscInt)k;
  }
  qsort(entry, (size_t)n, sizeof(*entry), CompareEntries);
  for (int64_t k = 0; k < n; k++) {
    j[k] = entry[k].j;
    v[k] = entry[k].v;
  }
  free(entry);
  return 0;
}

/* One key for column minus the least column and place, so that sorting moves nothing else */
static int SortKeys(Scratch *s, int64_t n, PetscInt j[], PetscScalar v[])
{
  PetscInt  low = j[0], high = j[0];
  uint64_t *key;

  for (int64_t k = 1; k < n; k++) {
    low  = PetscMin(low, j[k]);
    high = PetscMax(high, j[k]);
  }
  if ((uint64_t)high - (uint64_t)low > UINT32_MAX || n > (int64_t)UINT32_MAX) return SortWide(n, j, v);
  if (ScratchGrow(s, (size_t)n)) return 1;
  key = s->key;
  for (int64_t k = 0; k < n; k++) key[k] = (uint64_t)(j[k] - low) << 32 | (uint64_t)k;
  if (n <= SHORT) InsertionSort(n, key);
  else key = RadixSort(n, key, key + s->room, (uint64_t)(high - low) << 32);
  memcpy(s->v, v, (size_t)n * sizeof(*v));
  for (int64_t k = 0; k < n; k++) {
    j[k] = low + (PetscInt)(key[k] >> 32);
    v[k] = s->v[key[k] & UINT32_MAX];
  }
  return 0;
}

/* Sorts a row by columns if necessary; returns the number of entries with the place of the entry before, or -1 */
static int64_t SortRow(Scratch *s, int64_t n, PetscInt j[], PetscScalar v[])
{
  int64_t equal = 0;
  int     down  = 0;

  for (int64_t k = 1; k < n; k++) {
    down |= j[k] < j[k - 1];
    equal += j[k] == j[k - 1];
  }
  if (!down) return equal;
  if (SortKeys(s, n, j, v)) return -1;
  equal = 0;
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

/* Are all values 1, in both halves? */
static int IsPattern(const GPUCSRAssembly *A)
{
  for (size_t k = 0; k < A->npieces; k++)
    if (A->piece[k].v) return 0;
  return A->symmetry != GPUCSR_SKEW;
}

/* Rows lo to hi: distributes entries to their rows, then sorts rows. Adds to equal; at has room for the current end of each row */
static int FillRange(const GPUCSRAssembly *A, int64_t lo, int64_t hi, const int64_t row[], int64_t at[], PetscInt j[], PetscScalar v[], int64_t *equal)
{
  Scratch scratch = {0, NULL, NULL};
  int     failed  = 0;

  memcpy(at + lo, row + lo, (size_t)(hi - lo) * sizeof(*at));
#define PLACE_COLUMN(r, column, x) j[at[r]++] = column
#define PLACE(r, column, x) \
  const int64_t to = at[r]++; \
  j[to]            = column; \
  v[to]            = x
  if (IsPattern(A)) {
    for (size_t k = 0; k < A->npieces; k++) ForEntries(A, &A->piece[k], lo, hi, PLACE_COLUMN);
    for (int64_t k = row[lo]; k < row[hi]; k++) v[k] = 1;
  } else
    for (size_t k = 0; k < A->npieces; k++) ForEntries(A, &A->piece[k], lo, hi, PLACE);
  for (int64_t r = lo; r < hi && !failed; r++) {
    const int64_t c = SortRow(&scratch, row[r + 1] - row[r], j + row[r], v + row[r]);

    failed = c < 0;
    *equal += PetscMax(c, 0);
  }
  ScratchDestroy(&scratch);
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
