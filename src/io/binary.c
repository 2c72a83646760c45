/*
  PETSc binary, as MatView() writes it: big-endian; class id, rows, columns, entries; the length of each row; columns; values. A vector may follow, as
  VecView() writes it: class id, size, values. Integers are of 4 bytes, or of 8 where PETSc's are.
*/
#include "gpucsrio.h"
#include <string.h>

enum {
  MAT_ID = 1211216, /* MAT_FILE_CLASSID, and VEC_FILE_CLASSID */
  VEC_ID = 1211214
};

int64_t GPUCSRBinaryInteger(const unsigned char *p, size_t width)
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

/* The file must be as long as its header says, and nothing but an object of PETSc may follow */
int GPUCSRBinaryHeader(const char *text, size_t length, GPUCSRBinary *b, GPUCSRFault *f)
{
  const unsigned char *p     = (const unsigned char *)text;
  const size_t         width = length >= 4 && GPUCSRBinaryInteger(p, 4) == 0 ? 8 : 4;
  double               needed;
  size_t               end;

  memset(b, 0, sizeof(*b));
  b->at     = p;
  b->length = length;
  b->width  = width;
  if (length < 4 * width) return GPUCSRFaultSet(f, 0, 0, "the file ends in its header");
  if (GPUCSRBinaryInteger(p, width) != MAT_ID) return GPUCSRFaultSet(f, 0, 0, "holds no matrix: class id %lld", (long long)GPUCSRBinaryInteger(p, width));
  b->M  = GPUCSRBinaryInteger(p + width, width);
  b->N  = GPUCSRBinaryInteger(p + 2 * width, width);
  b->nz = GPUCSRBinaryInteger(p + 3 * width, width);
  if (b->M < 0 || b->N < 0 || b->nz < -1) return GPUCSRFaultSet(f, 0, 0, "negative size in the header: %lld rows, %lld columns, %lld entries", (long long)b->M, (long long)b->N, (long long)b->nz);
  if (b->M > PETSC_MAX_INT || b->N > PETSC_MAX_INT) return GPUCSRFaultSet(f, 0, 0, "%lld by %lld: more than this PETSc can count", (long long)b->M, (long long)b->N);
  if (b->nz < 0) return 0; /* all values, row by row */
  needed = (double)width * (4. + (double)b->M + (double)b->nz) + (double)sizeof(PetscScalar) * (double)b->nz;
  if (needed > (double)length) return GPUCSRFaultSet(f, 0, 0, "has %zu bytes where its header asks for %.0f", length, needed);
  b->lengths = 4 * width;
  b->columns = b->lengths + (size_t)b->M * width;
  b->values  = b->columns + (size_t)b->nz * width;
  end        = b->values + (size_t)b->nz * sizeof(PetscScalar);
  if (end < length) {
    const int64_t classid = length - end < 2 * width ? 0 : GPUCSRBinaryInteger(p + end, width);

    if (classid < 1211211 || classid > 1211999) return GPUCSRFaultSet(f, 0, 0, "has %zu bytes more than its header asks for, which are no object of PETSc: was it written with another type of scalars?", length - end);
    if (classid == VEC_ID && GPUCSRBinaryInteger(p + end + width, width) == b->M) {
      b->labels = end + 2 * width;
      if (length - b->labels < (size_t)b->M * sizeof(PetscScalar)) return GPUCSRFaultSet(f, 0, 0, "the file ends in the vector behind the matrix");
    }
  }
  return 0;
}

/* As src/sys/gpucsrwide.h, of which this layer knows nothing */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
  #define WIDE __attribute__((target_clones("avx2", "default")))
#else
  #define WIDE
#endif

enum {
  CHUNK = 4096 /* numbers that stay in the first cache between two loops */
};

/* n integers, and the largest, where a negative one counts as large; how many of them are not above the one before, the first of which is before */
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
    const int64_t x = GPUCSRBinaryInteger(p + 8 * k, 8);

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

/*
  Within rows columns increase: so wherever a column is not above the one before, a row begins. The two are counted apart, as that needs no loop over each row; only if
  the counts differ is the row looked for.
*/
int64_t GPUCSRBinaryColumns(const GPUCSRBinary *b, int64_t m, const int64_t row[], int64_t first, PetscInt j[], int threads)
{
  const unsigned char *p  = b->at + b->columns + (size_t)first * b->width;
  const int64_t        nz = row[m], chunks = (nz + CHUNK - 1) / CHUNK;
  uint64_t             high = 0;
  int64_t              down = 0, begin = 0, bad = m;

#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : high) reduction(+ : down, begin)
  for (int64_t c = 0; c < chunks; c++) {
    const int64_t  at = c * CHUNK, n = PetscMin(nz - at, (int64_t)CHUNK), before = at ? GPUCSRBinaryInteger(p + (size_t)(at - 1) * b->width, b->width) : -1;
    const PetscInt last = (PetscInt)(before < 0 || before > PETSC_MAX_INT ? -1 : before);

    down += b->width == 4 ? TakeIntegers4(p + 4 * at, n, last, j + at, &high) : TakeIntegers8(p + 8 * at, n, last, j + at, &high);
    for (int64_t r = RowOfEntry(m, row, at); r < m && row[r] < at + n; r++) {
      const int64_t k = row[r];

      if (k >= at && row[r + 1] > k) begin += j[k] <= (k > at ? j[k - 1] : last);
    }
  }
  if (down == begin && (!nz || high < (uint64_t)b->N)) return -1;
  for (int64_t r = m - 1; r >= 0; r--)
    for (int64_t k = row[r]; k < row[r + 1]; k++)
      if (j[k] < 0 || (int64_t)j[k] >= b->N || (k > row[r] && j[k] <= j[k - 1])) bad = r;
  return bad < m ? bad : -1;
}

void GPUCSRBinaryReals(const unsigned char *p, int64_t n, PetscScalar to[], int threads)
{
  const int64_t chunks = (n + CHUNK - 1) / CHUNK;

#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t c = 0; c < chunks; c++) TakeReals(p + 8 * CHUNK * c, PetscMin(n - c * CHUNK, (int64_t)CHUNK), (unsigned char *)to + 8 * CHUNK * c);
}
