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

/* Rows of this rank: columns, and checks. Returns the first row that is wrong, or -1 */
int64_t GPUCSRBinaryColumns(const GPUCSRBinary *b, int64_t m, const int64_t row[], int64_t first, PetscInt j[], int threads)
{
  const unsigned char *p   = b->at + b->columns + (size_t)first * b->width;
  const size_t         w   = b->width;
  const int64_t        N   = b->N;
  int64_t              bad = m;

#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : bad)
  for (int64_t r = 0; r < m; r++) {
    int64_t last = -1, wrong = 0;

    for (int64_t k = row[r]; k < row[r + 1]; k++) {
      const int64_t x = GPUCSRBinaryInteger(p + (size_t)k * w, w);

      wrong |= (x <= last) | (x >= N);
      last = x;
      j[k] = (PetscInt)x;
    }
    if (wrong && r < bad) bad = r;
  }
  return bad < m ? bad : -1;
}

void GPUCSRBinaryReals(const unsigned char *p, int64_t n, PetscScalar to[], int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t k = 0; k < n; k++) {
    uint64_t x;

    memcpy(&x, p + 8 * k, 8);
    x = __builtin_bswap64(x);
    memcpy((char *)to + 8 * k, &x, 8);
  }
}
