/*
  Statistics of a matrix.

  The checksum is a sum over the entries, modulo 2^64, of a hash of row, column and value, and does not depend on their order. The same sum with row and column exchanged tells, except for a chance of
  2^-64, whether the matrix is symmetric.
*/
#include "convert.h"
#include <math.h>
#include <string.h>

/* A bijection of 64 bits in which each bit of x changes half of the result's bits: rounds of multiply and xor with shift */
static inline uint64_t Mix(uint64_t x)
{
  x ^= x >> 31;
  x *= 0x7fb5d329728ea185u;
  x ^= x >> 27;
  x *= 0x81dadef4bc2dd44du;
  return x ^ x >> 33;
}

static inline uint64_t Place(int64_t i, int64_t j)
{
  return Mix((uint64_t)i * 0x9e3779b97f4a7c15u + Mix((uint64_t)j + 0x632be59bd9b4e019u));
}

static inline uint64_t Value(PetscScalar v)
{
  double   x[2] = {PetscRealPart(v) + 0., PetscImaginaryPart(v) + 0.}; /* -0 becomes 0 */
  uint64_t bits[2];

  memcpy(bits, x, sizeof(bits));
  return Mix(bits[0] + Mix(bits[1]));
}

/* Of all entries; returns the sum of the checksum */
static uint64_t PrintEntries(const Contents *c, int threads, FILE *out)
{
  const PetscInt m = c->m, nz = c->i[m];
  uint64_t       sum = 0, turned = 0, pattern = 0, patternturned = 0;
  int64_t        diagonal = 0, bandwidth = 0, integers = 0;
  double         least = INFINITY, most = -INFINITY, smallest = INFINITY;

#pragma omp parallel for num_threads(threads) reduction(+ : sum, turned, pattern, patternturned, diagonal, integers) reduction(max : bandwidth, most) reduction(min : least, smallest)
  for (PetscInt i = 0; i < m; i++)
    for (PetscInt k = c->i[i]; k < c->i[i + 1]; k++) {
      const int64_t  j     = c->j[k];
      const uint64_t place = Place(i, j), other = Place(j, i), value = Value(c->a[k]);
      const double   x = PetscRealPart(c->a[k]), size = fabs(x) + fabs(PetscImaginaryPart(c->a[k]));

      pattern += place;
      patternturned += other;
      sum += Mix(place + value);
      turned += Mix(other + value);
      diagonal += i == j;
      integers += size == floor(size);
      bandwidth = PetscMax(bandwidth, PetscAbs(i - j));
      least     = PetscMin(least, x);
      most      = PetscMax(most, x);
      if (size > 0) smallest = PetscMin(smallest, size);
    }
  if (nz) fprintf(out, "values      %.6g to %.6g, least size %.6g%s\n", least + 0., most + 0., isfinite(smallest) ? smallest : 0., integers == nz ? ", whole numbers" : "");
  if (m == c->n) fprintf(out, "square      %s, %lld on the diagonal, bandwidth %lld\n", sum == turned ? "symmetric" : pattern == patternturned ? "symmetric pattern" : "unsymmetric", (long long)diagonal, (long long)bandwidth);
  return sum;
}

PetscErrorCode StatisticsPrint(const Contents *c, int threads, FILE *out)
{
  uint64_t     sum;
  const double nz = (double)c->i[c->m], mean = c->m ? nz / (double)c->m : 0;
  PetscInt     empty = 0, zeros = 0, unused = c->n, shortest = c->m ? PETSC_MAX_INT : 0, longest = 0, popular = 0, *column;
  double       squares = 0;

  PetscFunctionBegin;
  for (PetscInt i = 0; i < c->m; i++) {
    const PetscInt length = c->i[i + 1] - c->i[i];

    empty += !length;
    shortest = PetscMin(shortest, length);
    longest  = PetscMax(longest, length);
    squares += (double)length * (double)length;
  }
  PetscCall(PetscCalloc1(c->n, &column));
  for (PetscInt k = 0; k < c->i[c->m]; k++) {
    zeros += c->a[k] == (PetscScalar)0;
    unused -= !column[c->j[k]]++;
    popular = PetscMax(popular, column[c->j[k]]);
  }
  PetscCall(PetscFree(column));
  fprintf(out, "rows        %" PetscInt_FMT ", %" PetscInt_FMT " of them empty\n", c->m, empty);
  fprintf(out, "columns     %" PetscInt_FMT ", %" PetscInt_FMT " of them empty\n", c->n, unused);
  fprintf(out, "entries     %" PetscInt_FMT ", %.4g%% of the matrix", c->i[c->m], c->m && c->n ? 100. * mean / (double)c->n : 0.);
  if (zeros) fprintf(out, "; %" PetscInt_FMT " are zero", zeros);
  fprintf(out, "\nrow length  %" PetscInt_FMT " to %" PetscInt_FMT ", %.4g on average, deviation %.4g\n", shortest, longest, mean, c->m ? sqrt(fmax(0, squares / (double)c->m - mean * mean)) : 0.);
  fprintf(out, "column      at most %" PetscInt_FMT " entries\n", popular);
  sum = PrintEntries(c, threads, out);
  if (c->label && c->m) {
    double   label[8]; /* different ones */
    int      n      = 0;
    uint64_t labels = 0;

    for (PetscInt i = 0; i < c->m; i++) {
      const double y = PetscRealPart(c->label[i]);
      int          k = 0;

      labels += Mix(Place(i, -1) + Value(y));
      while (k < PetscMin(n, 8) && label[k] != y) k++;
      if (k == n && n < 8) label[n] = y;
      if (k == n && n < 9) n++;
    }
    fprintf(out, "labels      ");
    if (n > 8) fprintf(out, "more than 8 different ones");
    else
      for (int k = 0; k < n; k++) fprintf(out, "%s%.6g", k ? ", " : "", label[k]);
    fprintf(out, "; checksum %016llx\n", (unsigned long long)Mix(labels));
  }
  fprintf(out, "checksum    %016llx\n", (unsigned long long)Mix(sum + Place(c->m, c->n)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
