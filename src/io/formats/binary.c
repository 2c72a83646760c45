/*
  PETSc binary, as MatView() writes it: big-endian; class id, rows, columns, entries; the length of each row; columns; values. A vector may follow, as VecView() writes it: class id, size, values.
  Integers have 4 bytes, or 8 as PETSc's.
*/
#include "../gpucsrio.h"
#include <string.h>

enum {
  CHUNK = 8192 /* numbers that stay in the caches between being read and being turned */
};

static int64_t Integer(const void *p, size_t width)
{
  uint32_t w;
  uint64_t x;

  if (width == 4) {
    memcpy(&w, p, 4);
    return (int32_t)__builtin_bswap32(w);
  }
  memcpy(&x, p, 8);
  return (int64_t)__builtin_bswap64(x);
}

/* Is there an object of PETSc at this place? */
static int ClassId(const GPUCSRBinary *b, size_t at, int64_t *classid, GPUCSRFault *f)
{
  char head[8];

  *classid = 0;
  if (b->length - at < 2 * b->width) return 0;
  if (GPUCSRInputRead(b->source, at, b->width, head, f)) return 1;
  *classid = Integer(head, b->width);
  return 0;
}

/* After the matrix: nothing, or objects of PETSc; a vector holds the labels */
static int Behind(GPUCSRBinary *b, size_t end, GPUCSRFault *f)
{
  char    size[8];
  int64_t classid, n;

  if (end == b->length) return 0;
  if (ClassId(b, end, &classid, f)) return 1;
  if (classid < 1211211 || classid > 1211999) return GPUCSRFaultSet(f, 0, 0, "has %zu bytes more than its header asks for, which are no object of PETSc: was it written with another type of scalars?", b->length - end);
  if (classid != GPUCSR_BINARY_VEC) return 0;
  if (GPUCSRInputRead(b->source, end + b->width, b->width, size, f)) return 1;
  n   = Integer(size, b->width);
  end = end + 2 * b->width;
  if (n != b->M) return GPUCSRFaultSet(f, 0, 0, "has a vector of %lld numbers after a matrix of %lld rows, which cannot be its labels", (long long)n, (long long)b->M);
  if (b->length - end < (size_t)b->M * sizeof(PetscScalar)) return GPUCSRFaultSet(f, 0, 0, "the file ends in the vector after the matrix");
  b->labels = end;
  end += (size_t)b->M * sizeof(PetscScalar);
  if (end == b->length) return 0;
  if (ClassId(b, end, &classid, f)) return 1;
  if (classid < 1211211 || classid > 1211999) return GPUCSRFaultSet(f, 0, 0, "has %zu bytes after the vector that follows the matrix, which are not an object of PETSc", b->length - end);
  return 0;
}

/* The file must be as long as its header says, and only an object of PETSc may follow */
int GPUCSRBinaryHeader(const GPUCSRInput *s, GPUCSRBinary *b, GPUCSRFault *f)
{
  const size_t length = GPUCSRInputSize(s);
  char         head[32];
  double       needed;
  size_t       width = 4;

  memset(b, 0, sizeof(*b));
  b->source = s;
  b->length = length;
  if (length < 4 * width) return GPUCSRFaultSet(f, 0, 0, "the file ends in its header");
  if (GPUCSRInputRead(s, 0, PetscMin(length, sizeof(head)), head, f)) return 1;
  if (!Integer(head, 4)) width = 8;
  b->width = width;
  if (length < 4 * width) return GPUCSRFaultSet(f, 0, 0, "the file ends in its header");
  if (Integer(head, width) != GPUCSR_BINARY_MAT) return GPUCSRFaultSet(f, 0, 0, "holds no matrix: class id %lld", (long long)Integer(head, width));
  b->M  = Integer(head + width, width);
  b->N  = Integer(head + 2 * width, width);
  b->nz = Integer(head + 3 * width, width);
  if (b->M < 0 || b->N < 0 || b->nz < -1) return GPUCSRFaultSet(f, 0, 0, "negative size in the header: %lld rows, %lld columns, %lld entries", (long long)b->M, (long long)b->N, (long long)b->nz);
  if (b->M > PETSC_MAX_INT || b->N > PETSC_MAX_INT) return GPUCSRFaultSet(f, 0, 0, "%lld by %lld: more than this PETSc can count", (long long)b->M, (long long)b->N);
  if (b->nz < 0) return 0; /* all values, row by row */
  needed = (double)width * (4. + (double)b->M + (double)b->nz) + (double)sizeof(PetscScalar) * (double)b->nz;
  if (needed > (double)length) return GPUCSRFaultSet(f, 0, 0, "has %zu bytes where its header asks for %.0f", length, needed);
  b->lengths = 4 * width;
  b->columns = b->lengths + (size_t)b->M * width;
  b->values  = b->columns + (size_t)b->nz * width;
  return Behind(b, b->values + (size_t)b->nz * sizeof(PetscScalar), f);
}

int GPUCSRBinaryRows(const GPUCSRBinary *b, int64_t rstart, int64_t m, int64_t row[], GPUCSRFault *f)
{
  char buffer[8 * 1024];

  row[0] = 0;
  for (int64_t at = 0; at < m; at += 1024) {
    const int64_t n = PetscMin(m - at, 1024);

    if (GPUCSRInputRead(b->source, b->lengths + (size_t)(rstart + at) * b->width, (size_t)n * b->width, buffer, f)) return 1;
    for (int64_t r = 0; r < n; r++) {
      const int64_t length = Integer(buffer + (size_t)r * b->width, b->width);

      if (length < 0) return GPUCSRFaultSet(f, 0, 0, "row %lld has %lld entries", (long long)(rstart + at + r), (long long)length);
      if (length > b->N) return GPUCSRFaultSet(f, 0, 0, "row %lld has %lld entries in a matrix of %lld columns", (long long)(rstart + at + r), (long long)length, (long long)b->N);
      if (__builtin_add_overflow(row[at + r], length, &row[at + r + 1])) return GPUCSRFaultSet(f, 0, 0, "the rows up to %lld have more entries together than can be counted", (long long)(rstart + at + r));
    }
  }
  if (row[m] > b->nz || (m == b->M && row[m] != b->nz)) return GPUCSRFaultSet(f, 0, 0, "the rows have %lld entries together, the header says %lld", (long long)row[m], (long long)b->nz);
  return 0;
}

/* As src/sys/gpucsrwide.h, which this layer does not include */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
  #define WIDE __attribute__((target_clones("avx2", "default")))
#else
  #define WIDE
#endif

/* n integers, and the largest, with negative integers as large; returns how many are not above their predecessor, starting with before */
WIDE static int64_t TakeIntegers4(const unsigned char *p, int64_t n, PetscInt before, PetscInt to[], uint64_t *high)
{
  uint32_t most = 0;
  int      down = 0;

  for (int64_t k = 0; k < n; k++) {
    uint32_t x;

    memcpy(&x, p + 4 * k, 4);
    x     = __builtin_bswap32(x);
    to[k] = (PetscInt)(int32_t)x;
    most  = PetscMax(most, x);
  }
  for (int64_t k = 1; k < n; k++) down += to[k] <= to[k - 1];
  *high = PetscMax(*high, (uint64_t)most);
  return down + (n > 0 && to[0] <= before);
}

static int64_t TakeIntegers8(const unsigned char *p, int64_t n, PetscInt before, PetscInt to[], uint64_t *high)
{
  int64_t down = 0;

  for (int64_t k = 0; k < n; k++) {
    const int64_t x = Integer(p + 8 * k, 8);

    to[k] = (PetscInt)(x < 0 || x > PETSC_MAX_INT ? -1 : x);
    down += to[k] <= before;
    before = to[k];
    *high  = PetscMax(*high, (uint64_t)x);
  }
  return down;
}

WIDE static void TakeReals(const unsigned char *p, int64_t n, unsigned char *to)
{
  for (int64_t k = 0; k < n; k++) {
    uint64_t x;

    memcpy(&x, p + 8 * k, 8);
    x = __builtin_bswap64(x);
    memcpy(to + 8 * k, &x, 8);
  }
}

/* The first row that ends beyond entry k */
static int64_t RowOfEntry(int64_t m, const int64_t row[], int64_t k)
{
  int64_t low = 0, high = m;

  while (low < high) {
    const int64_t mid = (low + high) / 2;

    if (row[mid + 1] > k) high = mid;
    else low = mid + 1;
  }
  return low;
}

/* Counts of a chunk: its largest column, its columns that are not above their predecessor, and its rows whose first entry is not */
typedef struct {
  uint64_t high;
  int64_t  down, begin;
} Columns;

/* The chunk of columns from entry `at` on */
static int TakeColumns(const GPUCSRBinary *b, int64_t m, const int64_t row[], int64_t first, int64_t at, PetscInt j[], Columns *found, GPUCSRFault *f)
{
  const int64_t n = PetscMin(row[m] - at, (int64_t)CHUNK);
  unsigned char buffer[8 * (CHUNK + 1)], *const p = buffer + 8;
  const size_t one  = at ? b->width : 0; /* with the entry before */
  PetscInt     last = -1;

  if (GPUCSRInputRead(b->source, b->columns + (size_t)(first + at) * b->width - one, (size_t)n * b->width + one, p - one, f)) return 1;
  if (at) {
    const int64_t before = Integer(p - one, b->width);

    if (before >= 0 && before <= PETSC_MAX_INT) last = (PetscInt)before;
  }
  found->down = b->width == 4 ? TakeIntegers4(p, n, last, j + at, &found->high) : TakeIntegers8(p, n, last, j + at, &found->high);
  for (int64_t r = RowOfEntry(m, row, at); r < m && row[r] < at + n; r++) {
    const int64_t k = row[r];

    if (k >= at && row[r + 1] > k) found->begin += j[k] <= (k > at ? j[k - 1] : last);
  }
  return 0;
}

/* The error of the first bad row from `first` on */
static int BadRow(const GPUCSRBinary *b, int64_t rstart, int64_t m, const int64_t row[], int64_t first, const PetscInt j[], GPUCSRFault *f)
{
  for (int64_t r = 0; r < m; r++)
    for (int64_t k = row[r]; k < row[r + 1]; k++) {
      if (j[k] < 0 || (int64_t)j[k] >= b->N) {
        char column[8];

        if (GPUCSRInputRead(b->source, b->columns + (size_t)(first + k) * b->width, b->width, column, f)) return 1;
        return GPUCSRFaultSet(f, 0, 0, "row %lld has an entry in column %lld of %lld", (long long)(rstart + r), (long long)Integer(column, b->width), (long long)b->N);
      }
      if (k > row[r] && j[k] <= j[k - 1]) return GPUCSRFaultSet(f, 0, 0, "the columns of row %lld do not increase", (long long)(rstart + r));
    }
  return GPUCSRFaultSet(f, 0, 0, "was changed while it was read");
}

/*
  Within rows columns increase, so a row begins wherever a column is not above its predecessor. Both are counted separately, without a loop over each row; only if the counts differ is the bad row
  searched.
*/
int GPUCSRBinaryColumns(const GPUCSRBinary *b, int64_t rstart, int64_t m, const int64_t row[], int64_t first, PetscInt j[], int threads, GPUCSRFault *f)
{
  const int64_t nz = row[m], chunks = (nz + CHUNK - 1) / CHUNK;
  uint64_t      high = 0;
  int64_t       down = 0, begin = 0;
  int           failed = 0;

#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : high) reduction(+ : down, begin)
  for (int64_t c = 0; c < chunks; c++) {
    Columns     found = {0, 0, 0};
    GPUCSRFault bad;

    if (TakeColumns(b, m, row, first, c * CHUNK, j, &found, &bad)) {
#pragma omp critical
      {
        failed = 1;
        *f     = bad;
      }
    }
    high = PetscMax(high, found.high);
    down += found.down;
    begin += found.begin;
  }
  if (failed || (down == begin && (!nz || high < (uint64_t)b->N))) return failed;
  return BadRow(b, rstart, m, row, first, j, f);
}

int GPUCSRBinaryReals(const GPUCSRBinary *b, size_t at, int64_t n, PetscScalar to[], int threads, GPUCSRFault *f)
{
  const int64_t words = n * (int64_t)(sizeof(*to) / 8), chunks = (words + CHUNK - 1) / CHUNK;
  int           failed = 0;

#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t c = 0; c < chunks; c++) {
    const int64_t many = PetscMin(words - c * CHUNK, (int64_t)CHUNK);
    unsigned char buffer[8 * CHUNK];
    GPUCSRFault   bad;

    if (GPUCSRInputRead(b->source, at + 8 * (size_t)c * CHUNK, 8 * (size_t)many, buffer, &bad)) {
#pragma omp critical
      {
        failed = 1;
        *f     = bad;
      }
    } else TakeReals(buffer, many, (unsigned char *)to + 8 * CHUNK * c);
  }
  return failed;
}
