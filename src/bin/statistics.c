/*
  Statistics of a matrix, row by row.

  The checksum is a sum over the entries, modulo 2^64, of a hash of row, column and value, and does not depend on their order. The same sum with row and column exchanged tells, except for a chance of
  2^-64, whether the matrix is symmetric.
*/
#include "convert.h"
#include <math.h>
#include <stdlib.h>
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

/* Counters for more columns. Pages of zeros that are only read take no memory: an index far beyond all other indices costs one page */
static void Widen(Statistics *s, int64_t room)
{
  int64_t *c = s->uncounted ? NULL : (int64_t *)calloc((size_t)room, sizeof(*c));

  for (int64_t j = 0; c && j < s->room; j++)
    if (s->column[j]) c[j] = s->column[j];
  free(s->column);
  s->column    = c;
  s->room      = room;
  s->uncounted = !c;
}

void StatisticsAdd(Statistics *s, const Rows *rows, int threads)
{
  uint64_t sum = 0, turned = 0, pattern = 0, patternturned = 0;
  int64_t  zeros = 0, diagonal = 0, bandwidth = s->bandwidth, integers = 0, n = s->n, nz = rows->row[rows->m] - rows->row[0];
  double   least = s->nz ? s->least : INFINITY, most = s->nz ? s->most : -INFINITY, smallest = s->nz ? s->smallest : INFINITY;

#pragma omp parallel for num_threads(threads) reduction(+ : sum, turned, pattern, patternturned, zeros, diagonal, integers) reduction(max : bandwidth, most, n) reduction(min : least, smallest)
  for (int64_t r = 0; r < rows->m; r++) {
    const int64_t i = rows->first + r;

    for (int64_t k = rows->row[r]; k < rows->row[r + 1]; k++) {
      const int64_t  j     = rows->j[k];
      const uint64_t place = Place(i, j), other = Place(j, i), value = Value(rows->v[k]);
      const double   x = PetscRealPart(rows->v[k]), size = fabs(x) + fabs(PetscImaginaryPart(rows->v[k]));

      pattern += place;
      patternturned += other;
      sum += Mix(place + value);
      turned += Mix(other + value);
      zeros += size == 0;
      diagonal += i == j;
      integers += size == floor(size);
      bandwidth = PetscMax(bandwidth, i > j ? i - j : j - i);
      n         = PetscMax(n, j + 1);
      least     = PetscMin(least, x);
      most      = PetscMax(most, x);
      if (size > 0) smallest = PetscMin(smallest, size);
    }
  }
  s->sum += sum;
  s->turned += turned;
  s->pattern += pattern;
  s->patternturned += patternturned;
  s->zeros += zeros;
  s->diagonal += diagonal;
  s->integers += integers;
  s->bandwidth = bandwidth;
  s->least     = least;
  s->most      = most;
  s->smallest  = smallest;
  s->n         = n;
  if (n > s->room) Widen(s, PetscMax(n, 2 * s->room));
  for (int64_t k = rows->row[0]; !s->uncounted && k < rows->row[rows->m]; k++) s->column[rows->j[k]]++;
  for (int64_t r = 0; r < rows->m; r++) {
    const int64_t length = rows->row[r + 1] - rows->row[r];

    s->empty += !length;
    s->shortest = s->m + r ? PetscMin(s->shortest, length) : length;
    s->longest  = PetscMax(s->longest, length);
    s->squares += (double)length * (double)length;
    if (rows->label) {
      int k = 0;

      s->labels++;
      s->labelsum += Mix(Place(rows->first + r, -1) + Value(rows->label[r]));
      while (k < s->nlabels && k < 8 && s->label[k] != rows->label[r]) k++;
      if (k == s->nlabels && k < 8) s->label[k] = rows->label[r];
      if (k == s->nlabels && k < 9) s->nlabels++;
    }
  }
  s->m += rows->m;
  s->nz += nz;
}

void StatisticsPrint(const Statistics *s, FILE *out)
{
  const double mean   = s->m ? (double)s->nz / (double)s->m : 0;
  int64_t      unused = s->n, popular = 0;
  const int    symmetric = s->m == s->n && s->sum == s->turned, pattern = s->m == s->n && s->pattern == s->patternturned;

  for (int64_t j = 0; !s->uncounted && j < s->n && j < s->room; j++) {
    unused -= s->column[j] > 0;
    popular = PetscMax(popular, s->column[j]);
  }
  fprintf(out, "rows        %lld, %lld of them empty\n", (long long)s->m, (long long)s->empty);
  fprintf(out, "columns     %lld", (long long)s->n);
  if (s->uncounted) fprintf(out, ", no memory to count their entries\n");
  else fprintf(out, ", %lld of them empty\n", (long long)unused);
  fprintf(out, "entries     %lld, %.4g%% of the matrix", (long long)s->nz, s->m && s->n ? 100. * (double)s->nz / (double)s->m / (double)s->n : 0.);
  if (s->zeros) fprintf(out, "; %lld are zero", (long long)s->zeros);
  fprintf(out, "\nrow length  %lld to %lld, %.4g on average, deviation %.4g\n", (long long)s->shortest, (long long)s->longest, mean, s->m ? sqrt(fmax(0, s->squares / (double)s->m - mean * mean)) : 0.);
  if (!s->uncounted) fprintf(out, "column      at most %lld entries\n", (long long)popular);
  if (s->nz) fprintf(out, "values      %.6g to %.6g, least size %.6g%s\n", s->least + 0., s->most + 0., isfinite(s->smallest) ? s->smallest : 0., s->integers == s->nz ? ", whole numbers" : "");
  if (s->m == s->n) fprintf(out, "square      %s, %lld on the diagonal, bandwidth %lld\n", symmetric ? "symmetric" : pattern ? "symmetric pattern" : "unsymmetric", (long long)s->diagonal, (long long)s->bandwidth);
  if (s->labels) {
    fprintf(out, "labels      ");
    if (s->nlabels > 8) fprintf(out, "more than 8 different ones");
    else
      for (int k = 0; k < s->nlabels; k++) fprintf(out, "%s%.6g", k ? ", " : "", s->label[k]);
    fprintf(out, "; checksum %016llx\n", (unsigned long long)Mix(s->labelsum));
  }
  fprintf(out, "checksum    %016llx\n", (unsigned long long)Mix(s->sum + Place(s->m, s->n)));
}

void StatisticsDestroy(Statistics *s)
{
  free(s->column);
}
