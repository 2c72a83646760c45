/*
  PETSc binary, as MatView() writes it: big-endian; class id, rows, columns, entries; the length of each row; columns; values. A vector may follow, as VecView() writes it: class id, size, values.
  Integers have 4 bytes, or 8 as PETSc's.
*/
#include "../gpucsrio.h"
#include <string.h>

enum {
  CHUNK   = 8192,    /* numbers that stay in the caches between being read and being turned */
  CLASS_M = 1211216, /* MAT_FILE_CLASSID and VEC_FILE_CLASSID of PETSc's headers, which this layer does not include */
  CLASS_V = 1211214
};

/* Compiles a function also for wide registers; the loader picks the version */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
  #define GPUCSR_WIDE __attribute__((target_clones("avx2", "default")))
#else
  #define GPUCSR_WIDE
#endif

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

/* The class id and the size of an object of PETSc at this place, 0 and 0 if there is none */
static int ObjectAt(const GPUCSRBinary *b, size_t at, int64_t *classid, int64_t *size, GPUCSRFault *f)
{
  char head[16];

  *classid = *size = 0;
  if (b->length - at < 2 * b->width) return 0;
  if (GPUCSRInputRead(b->source, at, 2 * b->width, head, f)) return 1;
  *classid = Integer(head, b->width);
  if (*classid < 1211211 || *classid > 1211999) *classid = 0;
  *size = Integer(head + b->width, b->width);
  return 0;
}

/* After the matrix: nothing, or objects of PETSc; a vector holds the labels */
static int Behind(GPUCSRBinary *b, size_t end, GPUCSRFault *f)
{
  int64_t classid, n;

  if (end == b->length) return 0;
  if (ObjectAt(b, end, &classid, &n, f)) return 1;
  if (!classid) return GPUCSRFaultSet(f, 0, 0, "has %zu bytes more than its header asks for, which are no object of PETSc: was it written with another type of scalars?", b->length - end);
  if (classid != CLASS_V) return 0;
  end += 2 * b->width;
  if (n != b->M) return GPUCSRFaultSet(f, 0, 0, "has a vector of %lld numbers after a matrix of %lld rows, which cannot be its labels", (long long)n, (long long)b->M);
  if (b->length - end < (size_t)b->M * sizeof(PetscScalar)) return GPUCSRFaultSet(f, 0, 0, "the file ends in the vector after the matrix");
  b->labels = end;
  end += (size_t)b->M * sizeof(PetscScalar);
  if (end == b->length) return 0;
  if (ObjectAt(b, end, &classid, &n, f)) return 1;
  if (!classid) return GPUCSRFaultSet(f, 0, 0, "has %zu bytes after the vector that follows the matrix, which are not an object of PETSc", b->length - end);
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
  if (Integer(head, width) != CLASS_M) return GPUCSRFaultSet(f, 0, 0, "holds no matrix: class id %lld", (long long)Integer(head, width));
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

GPUCSR_WIDE static void TakeIntegers4(const unsigned char *p, int64_t n, PetscInt to[])
{
  for (int64_t k = 0; k < n; k++) {
    uint32_t x;

    memcpy(&x, p + 4 * k, 4);
    to[k] = (PetscInt)(int32_t)__builtin_bswap32(x);
  }
}

/* Integers beyond PetscInt become -1 */
static void TakeIntegers8(const unsigned char *p, int64_t n, PetscInt to[])
{
  for (int64_t k = 0; k < n; k++) {
    const int64_t x = Integer(p + 8 * k, 8);

    to[k] = (PetscInt)(x < 0 || x > PETSC_MAX_INT ? -1 : x);
  }
}

GPUCSR_WIDE static void TakeReals(const unsigned char *p, int64_t n, unsigned char *to)
{
  for (int64_t k = 0; k < n; k++) {
    uint64_t x;

    memcpy(&x, p + 8 * k, 8);
    x = __builtin_bswap64(x);
    memcpy(to + 8 * k, &x, 8);
  }
}

/* The error of a row whose columns are outside the matrix or do not increase; its first entry is number k */
static int BadRow(const GPUCSRBinary *b, int64_t row, int64_t k, const PetscInt j[], int64_t first, GPUCSRFault *f)
{
  char column[8];

  while (j[k] >= 0 && j[k] < b->N && j[k] < j[k + 1]) k++;
  if (j[k] >= 0 && j[k] < b->N && j[k + 1] >= 0 && j[k + 1] < b->N) return GPUCSRFaultSet(f, 0, 0, "the columns of row %lld do not increase", (long long)row);
  k += j[k] >= 0 && j[k] < b->N;
  if (GPUCSRInputRead(b->source, b->columns + (size_t)(first + k) * b->width, b->width, column, f)) return 1;
  return GPUCSRFaultSet(f, 0, 0, "row %lld has an entry in column %lld of %lld", (long long)row, (long long)Integer(column, b->width), (long long)b->N);
}

/* The fault of a thread, for all */
static void Share(GPUCSRFault *f, int *failed, const GPUCSRFault *of)
{
#pragma omp critical
  {
    *failed = 1;
    *f      = *of;
  }
}

int GPUCSRBinaryColumns(const GPUCSRBinary *b, int64_t rstart, int64_t m, const int64_t row[], int64_t first, PetscInt j[], int threads, GPUCSRFault *f)
{
  const int64_t nz     = row[m];
  int64_t       bad    = m;
  int           failed = 0;

#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t at = 0; at < nz; at += CHUNK) {
    const int64_t n = PetscMin(nz - at, (int64_t)CHUNK);
    unsigned char buffer[8 * CHUNK];
    GPUCSRFault   fault;

    if (GPUCSRInputRead(b->source, b->columns + (size_t)(first + at) * b->width, (size_t)n * b->width, buffer, &fault)) Share(f, &failed, &fault);
    else if (b->width == 4) TakeIntegers4(buffer, n, j + at);
    else TakeIntegers8(buffer, n, j + at);
  }
  if (failed) return 1;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : bad)
  for (int64_t r = 0; r < m; r++) {
    PetscInt last = -1;
    int      up   = 1;

    for (int64_t k = row[r]; k < row[r + 1]; k++) {
      up &= j[k] > last;
      last = j[k];
    }
    if (!up || last >= b->N) bad = PetscMin(bad, r);
  }
  return bad < m ? BadRow(b, rstart + bad, row[bad], j, first, f) : 0;
}

int GPUCSRBinaryReals(const GPUCSRBinary *b, size_t at, int64_t n, PetscScalar to[], int threads, GPUCSRFault *f)
{
  const int64_t words  = n * (int64_t)(sizeof(*to) / 8);
  int           failed = 0;

#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t k = 0; k < words; k += CHUNK) {
    const int64_t many = PetscMin(words - k, (int64_t)CHUNK);
    unsigned char buffer[8 * CHUNK];
    GPUCSRFault   fault;

    if (GPUCSRInputRead(b->source, at + 8 * (size_t)k, 8 * (size_t)many, buffer, &fault)) Share(f, &failed, &fault);
    else TakeReals(buffer, many, (unsigned char *)to + 8 * k);
  }
  return failed;
}
