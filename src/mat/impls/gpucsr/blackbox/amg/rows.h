#pragma once

/* The step of a row: host and device share the source, so both make the same aggregates */
#include "amg.h"
#include <math.h>

/* The state of a vertex: bits 30 and 31 of a key. The lower bits are its priority */
#define GPUAMG_OUT         0u
#define GPUAMG_WAITING     1u
#define GPUAMG_ROOT        2u
#define GPUAMG_STATUS(key) ((key) >> 30)
#define GPUAMG_PRIORITIES  (1u << 30)
#define GPUAMG_CLASSES     16

/* The remaining share of a pivot */
GPUCSR_HOST_DEVICE double GPUAMGShare(double pivot, double was)
{
  return was > 0 ? fabs(pivot) / was : pivot != 0;
}

/* A permutation of the numbers below 2^30 */
GPUCSR_HOST_DEVICE uint32_t GPUAMGHash(uint32_t v)
{
  const uint32_t mask = GPUAMG_PRIORITIES - 1;

  v = (v * 0x2c1b3c6du + 0x297a2d39u) & mask;
  v ^= v >> 15;
  v = (v * 0x3d4d51cbu) & mask;
  v ^= v >> 13;
  v = (v * 0x2545f491u) & mask;
  return v ^ (v >> 16);
}

/* A number by chance for each vertex */
GPUCSR_HOST_DEVICE double GPUAMGStart(uint32_t v)
{
  const double x = 0.5 + GPUAMGHash(v) / 1073741824.0;

  return GPUAMGHash(v ^ 0x15555u) & 1 ? -x : x;
}

/* Flags are only ever set, so their order does not matter. A flag already set is not written again */
GPUCSR_HOST_DEVICE void GPUAMGRaise(int32_t *flag, int bit)
{
#if defined(__CUDA_ARCH__)
  if (!(*(volatile int32_t *)flag & bit)) atomicOr(flag, bit);
#else
  *flag |= bit;
#endif
}

GPUCSR_HOST_DEVICE void GPUAMGDiagonalRow(const GPUAMGWork *w, int i)
{
  double d = 0, most = 0, off[2] = {0, 0}; /* the largest entries off the diagonal, below 0 and above */
  int    flag = 0;

  for (int k = w->A.i[i]; k < w->A.i[i + 1]; k++) {
    const double a = w->A.a[k];

    if (w->A.j[k] == i) d = a;
    else if (fabs(a) > off[a > 0]) off[a > 0] = fabs(a);
    if (fabs(a) > most) most = fabs(a);
    if (!(fabs(a) <= 1.7976931348623157e308)) flag = GPUAMG_NAN;
  }
  if (d == 0 && most > 0) flag |= GPUAMG_ZERO;
  if (d < 0) flag |= GPUAMG_NEGATIVE;
  if (flag) GPUAMGRaise(w->flag, flag);
  w->dinv[i] = d == 0 ? 1 : 1 / d;
  if (w->norm) w->norm[i] = sqrt(fmax(off[d < 0], off[!(d < 0)] / 16)); /* as GPUAMGNormsRow() */
}

/* The weight of an entry off the diagonal. Relative: an entry with the diagonal's sign counts a sixteenth, because it does not make errors alike */
GPUCSR_HOST_DEVICE double GPUAMGSize(const GPUAMGWork *w, int v, double a)
{
  return w->relative && a * w->dinv[v] > 0 ? fabs(a) / 16 : fabs(a);
}

GPUCSR_HOST_DEVICE void GPUAMGNormsRow(const GPUAMGWork *w, int v)
{
  double most = w->beyond ? w->beyond[v] : 0;

  for (int r = v * w->bs; r < (v + 1) * w->bs; r++)
    for (int k = w->A.i[r]; k < w->A.i[r + 1]; k++)
      if ((w->A.j[k] / w->bs == v) == !w->relative && GPUAMGSize(w, v, w->A.a[k]) > most) most = GPUAMGSize(w, v, w->A.a[k]);
  w->norm[v] = sqrt(most);
}

/*
  Strong connections of vertex v, from its rows merged by columns; a connection is as strong as the largest entry of its block. Directed: a vertex of small entries depends on a neighbour of
  large entries, and not the reverse. to NULL: how many
*/
GPUCSR_HOST_DEVICE int GPUAMGGraphRow(const GPUAMGWork *w, int v, int32_t *to)
{
  const int bs = w->bs;
  int       at[GPUAMG_VECTORS], count = 0;

  for (int r = 0; r < bs; r++) at[r] = w->A.i[v * bs + r];
  for (;;) {
    int    u    = INT32_MAX;
    double most = 0;

    for (int r = 0; r < bs; r++)
      if (at[r] < w->A.i[v * bs + r + 1] && w->A.j[at[r]] / bs < u) u = w->A.j[at[r]] / bs;
    if (u == INT32_MAX) return count;
    for (int r = 0; r < bs; r++)
      for (; at[r] < w->A.i[v * bs + r + 1] && w->A.j[at[r]] / bs == u; at[r]++)
        if (w->theta >= 0 && GPUAMGSize(w, v, w->A.a[at[r]]) > most) most = GPUAMGSize(w, v, w->A.a[at[r]]);
    if (u != v && w->theta >= 0 && !(most > w->theta * (w->norm[w->directed ? v : u] * w->norm[v]))) continue;
    if (to) to[count] = u;
    count++;
  }
}

/*
  Row i without its small entries, which go to the diagonal: the product of the row and the near null vector stays the same. The row is scaled to its old diagonal, for dinv. Small is relative to the
  row's largest entry, as strong is. to NULL: count the entries
*/
GPUCSR_HOST_DEVICE int GPUAMGFilterRow(const GPUAMGWork *w, int i, int32_t *to, double *a)
{
  const double least = GPUAMG_SMALL * (w->norm[i] * w->norm[i]), per = w->basis[i] != 0 ? w->dinv[i] / w->basis[i] : 0;
  double       scale = 1;
  int          count = 0;

  for (int k = w->A.i[i]; k < w->A.i[i + 1]; k++)
    if (w->A.j[k] != i && !(GPUAMGSize(w, i, w->A.a[k]) > least)) scale += w->A.a[k] * w->basis[w->A.j[k]] * per;
  if (!(scale > 0.05)) scale = 0.05; /* the diagonal keeps its sign, and a twentieth of its size */
  for (int k = w->A.i[i]; k < w->A.i[i + 1]; k++) {
    if (w->A.j[k] != i && !(GPUAMGSize(w, i, w->A.a[k]) > least)) continue;
    if (to) to[count] = w->A.j[k];
    if (to) a[count] = w->A.j[k] == i ? w->A.a[k] : w->A.a[k] / scale;
    count++;
  }
  return count;
}

/*
  The priority of a vertex, by chance. Directed: the class comes before chance. The class falls with the ratio of the vertex' largest entry to the largest entries of the vertices that it depends on, so aggregates
  grow from large entries to small ones. Within a class, vertices with equal upper bits of their hash are both roots
*/
GPUCSR_HOST_DEVICE uint32_t GPUAMGPriority(const GPUAMGWork *w, int v)
{
  const uint32_t hash = GPUAMGHash((uint32_t)v);
  double         most = 0;
  int            rank = GPUAMG_CLASSES - 1;

  if (!w->directed) return hash;
  for (int k = w->A.i[v]; k < w->A.i[v + 1]; k++) most = fmax(most, w->norm[w->A.j[k]]);
  if (most > w->norm[v]) rank += ilogb(w->norm[v] / most);
  return (rank > 0 ? (uint32_t)rank * (GPUAMG_PRIORITIES / GPUAMG_CLASSES) : 0) + hash / GPUAMG_CLASSES;
}

/* A vertex without neighbours has no part in coarser levels. One that depends on vertices beyond the matrix is an aggregate by itself */
GPUCSR_HOST_DEVICE void GPUAMGBeginRow(const GPUAMGWork *w, int v)
{
  int any = w->beyond && w->beyond[v] > w->theta * (w->norm[v] * w->norm[v]);

  for (int k = w->A.i[v]; k < w->A.i[v + 1]; k++) any |= w->A.j[k] != v;
  w->key[v] = any ? (GPUAMG_WAITING << 30) | GPUAMGPriority(w, v) : GPUAMG_OUT;
}

/* The largest of key over neighbours of v, from the first on every so many, and 0 where there are none */
GPUCSR_HOST_DEVICE uint32_t GPUAMGMost(const GPUAMGWork *w, int v, int first, int every)
{
  uint32_t most = 0;

  for (int k = w->A.i[v] + first; k < w->A.i[v + 1]; k += every) {
    const uint32_t key = w->keys[w->A.j[k]];

    if (key > most) most = key;
  }
  return most;
}

/* Is the next number of v open? Roots stay roots, and where all are out all stay out */
GPUCSR_HOST_DEVICE int GPUAMGOpen(const GPUAMGWork *w, GPUAMGStep step, int v)
{
  return GPUAMG_STATUS(step == GPUAMG_SPREAD ? w->next[v] : w->key[v]) == GPUAMG_WAITING;
}

GPUCSR_HOST_DEVICE void GPUAMGSpreadRow(const GPUAMGWork *w, int v, uint32_t most)
{
  const uint32_t key = w->keys[v];

  w->next[v] = key > most ? key : most;
}

GPUCSR_HOST_DEVICE void GPUAMGDecideRow(const GPUAMGWork *w, int v, uint32_t most)
{
  const uint32_t key = w->key[v], from = w->keys[v];

  if (from > most) most = from;
  w->next[v] = key;
  if (key == most) w->next[v] = (GPUAMG_ROOT << 30) | (key & (GPUAMG_PRIORITIES - 1));
  else if (GPUAMG_STATUS(most) == GPUAMG_ROOT) w->next[v] = GPUAMG_OUT;
  else GPUAMGRaise(w->flag, GPUAMG_UNDECIDED);
}

/* Rows in which neighbours are compared with each other */
#define GPUAMG_COMPARED 48

/* How many neighbours of v have aggregate a */
GPUCSR_HOST_DEVICE int GPUAMGVotes(const GPUAMGWork *w, int v, int a)
{
  int count = 0;

  for (int k = w->A.i[v]; k < w->A.i[v + 1]; k++) count += w->agg[w->A.j[k]] == a;
  return count;
}

/* The aggregate of most neighbours; at equal numbers the higher priority decides. The neighbours of most vertices belong to a single aggregate and need no votes */
GPUCSR_HOST_DEVICE void GPUAMGJoinRow(const GPUAMGWork *w, int v)
{
  const int begin = w->A.i[v], end = w->A.i[v + 1];
  int       best = w->agg[v], have = 0;

  w->out[v] = best;
  if (best >= 0) return;
  for (int k = begin; k < end; k++) {
    const int a = w->agg[w->A.j[k]];
    int       count;

    if (a < 0 || a == best) continue;
    if (best < 0) {
      best = a;
      continue;
    }
    if (!have && end - begin <= GPUAMG_COMPARED) have = GPUAMGVotes(w, v, best);
    count = end - begin <= GPUAMG_COMPARED ? GPUAMGVotes(w, v, a) : 0;
    if (count > have || (count == have && GPUAMGHash((uint32_t)a) > GPUAMGHash((uint32_t)best))) {
      best = a;
      have = count;
    }
  }
  w->out[v] = best;
}

GPUCSR_HOST_DEVICE void GPUAMGPatternRow(const GPUAMGWork *w, int i)
{
  const int v = i / w->bs, in = w->agg[v] >= 0, first = w->ns * (w->bs * w->number[v] + (in ? i % w->bs : 0));

  w->to.i[i] = first;
  if (i == w->to.m - 1) w->to.i[i + 1] = first + in * w->ns;
  for (int c = 0; c < in * w->ns; c++) w->to.j[first + c] = w->agg[v] * w->ns + c;
}

/*
  Row v of graph A as bs rows of blocks with ns columns, shared by `lanes` lanes. With out, A is the transpose of graph `from` by the map `number`, and out is the map of the transpose of blocks
*/
GPUCSR_HOST_DEVICE void GPUAMGBlocksOfRow(const GPUAMGWork *w, int v, int lane, int lanes)
{
  const int bs = w->bs, ns = w->ns, begin = w->A.i[v], length = w->A.i[v + 1] - begin;

  for (int b = 0; b < bs; b++) {
    const int first = ns * (bs * begin + b * length);

    if (lane == 0) w->to.i[v * bs + b] = first;
    if (lane == 0 && v * bs + b == w->to.m - 1) w->to.i[w->to.m] = first + ns * length;
    for (int t = lane; t < ns * length; t += lanes) {
      const int u = w->A.j[begin + t / ns], c = t % ns;

      w->to.j[first + t] = u * ns + c;
      if (w->out) {
        const int start = w->from.i[u];

        w->out[first + t] = bs * (ns * start + c * (w->from.i[u + 1] - start) + w->number[begin + t / ns] - start) + b;
      }
    }
  }
}

/* A sum over the threads of a row; a single thread's sum is its value */
GPUCSR_HOST_DEVICE double GPUAMGSum(double v, int lanes)
{
#if defined(__CUDA_ARCH__)
  for (int o = lanes / 2; o; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
#endif
  (void)lanes;
  return v;
}

/*
  Makes an aggregate's rows of the near null space orthonormal: the results are the values of its tentative prolongator, and the factors are its coarse near null space. Each of `lanes` lanes has
  some members, and reads no other lane's rows
*/
GPUCSR_HOST_DEVICE void GPUAMGOrthogonalRow(const GPUAMGWork *w, int q, int lane, int lanes)
{
  const int bs = w->bs, ns = w->ns;

#define GPUAMG_EACH(row) \
  for (int k_ = w->A.i[q] + lane; k_ < w->A.i[q + 1]; k_ += lanes) \
    for (int row = w->A.j[k_] * bs; row < (w->A.j[k_] + 1) * bs; row++)
  for (int c = 0; c < ns; c++) {
    double was = 0, sum = 0;
    int    dead;

    GPUAMG_EACH(r)
    {
      const double b = w->basis[(int64_t)r * ns + c];

      w->to.a[w->to.i[r] + c] = b;
      was += b * b;
    }
    was = sum = GPUAMGSum(was, lanes);
    for (int p = 0; p < ns && lane == 0; p++) w->coarse[((int64_t)q * ns + p) * ns + c] = 0;
    for (int again = 0; again < 2; again++)
      for (int p = 0; p < c; p++) {
        double dot = 0;

        GPUAMG_EACH(r) dot += w->to.a[w->to.i[r] + p] * w->to.a[w->to.i[r] + c];
        dot = GPUAMGSum(dot, lanes);
        GPUAMG_EACH(r) w->to.a[w->to.i[r] + c] -= dot * w->to.a[w->to.i[r] + p];
        if (lane == 0) w->coarse[((int64_t)q * ns + p) * ns + c] += dot;
      }
    if (c) {
      sum = 0;
      GPUAMG_EACH(r) sum += w->to.a[w->to.i[r] + c] * w->to.a[w->to.i[r] + c];
      sum = GPUAMGSum(sum, lanes);
    }
    dead                                   = !(sum > 1e-16 * was);
    sum                                    = dead ? 0 : sqrt(sum);
    GPUAMG_EACH(r) w->to.a[w->to.i[r] + c] = sum > 0 ? w->to.a[w->to.i[r] + c] / sum : 0;
    if (lane) continue;
    w->dead[q * ns + c]                       = (unsigned char)dead;
    w->coarse[((int64_t)q * ns + c) * ns + c] = sum;
  }
#undef GPUAMG_EACH
}

GPUCSR_HOST_DEVICE void GPUAMGSmoothRow(const GPUAMGWork *w, int i)
{
  const double d = w->omega * w->dinv[i];
  int          q = w->from.i[i];

  for (int k = w->to.i[i]; k < w->to.i[i + 1]; k++) {
    double v = -d * w->to.a[k];

    while (q < w->from.i[i + 1] && w->from.j[q] < w->to.j[k]) q++;
    if (q < w->from.i[i + 1] && w->from.j[q] == w->to.j[k]) v += w->from.a[q];
    w->to.a[k] = v;
  }
}

/* How many columns row i of the product A from has; of more than GPUAMG_REACHES a flag is raised */
GPUCSR_HOST_DEVICE int GPUAMGReachRow(const GPUAMGWork *w, int i)
{
  int column[GPUAMG_REACHES], count = 0;

  for (int k = w->A.i[i]; k < w->A.i[i + 1]; k++)
    for (int p = w->from.i[w->A.j[k]]; p < w->from.i[w->A.j[k] + 1]; p++) {
      const int c = w->from.j[p];
      int       q = 0;

      while (q < count && column[q] != c) q++;
      if (q < count) continue;
      if (count == GPUAMG_REACHES) {
        GPUAMGRaise(w->flag, GPUAMG_UNDECIDED);
        return count;
      }
      column[count++] = c;
    }
  return count;
}

/* Row i of the product A from; sums follow the order of the row of A. With dinv, a step as in GPUAMGSmoothRow(), for a `from` with at most one entry a row */
GPUCSR_HOST_DEVICE void GPUAMGReachedRow(const GPUAMGWork *w, int i)
{
  const double d = w->dinv ? w->omega * w->dinv[i] : 0;
  int          column[GPUAMG_REACHES], count = 0;
  double       sum[GPUAMG_REACHES];

  for (int k = w->A.i[i]; k < w->A.i[i + 1]; k++)
    for (int p = w->from.i[w->A.j[k]]; p < w->from.i[w->A.j[k] + 1]; p++) {
      const int c = w->from.j[p];
      int       q = count;

      while (q && column[q - 1] >= c) q--;
      if (q == count || column[q] != c) {
        for (int r = count++; r > q; r--) {
          column[r] = column[r - 1];
          sum[r]    = sum[r - 1];
        }
        column[q] = c;
        sum[q]    = 0;
      }
      sum[q] += w->A.a[k] * w->from.a[p];
    }
  for (int q = 0; q < count; q++) {
    double v = w->dinv ? -d * sum[q] : sum[q];

    if (w->dinv && w->from.i[i] < w->from.i[i + 1] && w->from.j[w->from.i[i]] == column[q]) v += w->from.a[w->from.i[i]];
    w->to.j[w->to.i[i] + q] = column[q];
    w->to.a[w->to.i[i] + q] = v;
  }
}

GPUCSR_HOST_DEVICE void GPUAMGDeadRow(const GPUAMGWork *w, int i)
{
  if (!w->dead[i]) return;
  for (int k = w->to.i[i]; k < w->to.i[i + 1]; k++)
    if (w->to.j[k] == i) w->to.a[k] = 1;
}

GPUCSR_HOST_DEVICE void GPUAMGSizesRow(const GPUAMGWork *w, int i)
{
  double sum = 0, sign = 1;

  for (int k = w->A.i[i]; k < w->A.i[i + 1]; k++) {
    sum += fabs(w->A.a[k]);
    if (w->A.j[k] == i && w->A.a[k] < 0) sign = -1;
  }
  w->dinv[i] = sum > 0 ? sign / sum : 1;
}

/* By elimination in place; pivots from the diagonal */
GPUCSR_HOST_DEVICE void GPUAMGBlocksRow(const GPUAMGWork *w, int v)
{
  const int bs  = w->bs;
  double   *B   = w->coarse + (int64_t)v * bs * bs;
  int       bad = 0;

  for (int k = 0; k < bs * bs; k++) B[k] = 0;
  for (int r = 0; r < bs; r++)
    for (int k = w->A.i[v * bs + r]; k < w->A.i[v * bs + r + 1]; k++)
      if (w->A.j[k] / bs == v) B[r * bs + w->A.j[k] % bs] += w->A.a[k];
  for (int k = 0; k < bs && !bad; k++) {
    const double d = B[k * bs + k];

    bad = !(fabs(d * w->dinv[v * bs + k]) > 1e-14); /* all that is left of the pivot is rounding */
    if (bad) break;
    B[k * bs + k] = 1;
    for (int j = 0; j < bs; j++) B[k * bs + j] /= d;
    for (int i = 0; i < bs; i++) {
      const double f = B[i * bs + k];

      if (i == k) continue;
      B[i * bs + k] = 0;
      for (int j = 0; j < bs; j++) B[i * bs + j] -= f * B[k * bs + j];
    }
  }
  for (int k = 0; k < bs * bs && bad; k++) B[k] = k % bs == k / bs ? w->dinv[v * bs + k / bs] : 0;
}

GPUCSR_HOST_DEVICE void GPUAMGTimesRow(const GPUAMGWork *w, int i)
{
  const int first = i - i % w->bs;
  double    sum   = 0;

  for (int j = 0; j < w->bs; j++) sum += w->coarse[(int64_t)i * w->bs + j] * w->norm[first + j];
  w->basis[i] = sum;
}

/* Four sums, because a row is long and a thread waits for its loads */
GPUCSR_HOST_DEVICE void GPUAMGEnergyRow(const GPUAMGWork *w, int i)
{
  double sum[4] = {0, 0, 0, 0};

  for (int k = w->from.i[i]; k < w->from.i[i + 1]; k += 4)
    for (int q = 0; q < 4; q++)
      if (k + q < w->from.i[i + 1]) sum[q] += w->from.a[k + q] * w->from.a[k + q] / fabs(w->dinv[w->from.j[k + q]]);
  w->norm[i] = sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* A zero row of the inverse has a zero column, which neighbouring threads read together */
GPUCSR_HOST_DEVICE void GPUAMGFillRow(const GPUAMGWork *w, int i)
{
  double a = 0;

  w->basis[i] = 0;
  for (int r = 0; r < w->bs; r++)
    if (w->coarse[(int64_t)r * w->bs + i] != 0) return;
  w->basis[i] = 1;
  for (int k = w->A.i[i]; k < w->A.i[i + 1]; k++)
    if (w->A.j[k] == i) a += w->A.a[k];
  w->coarse[(int64_t)i * w->bs + i] = a != 0 ? 1 / a : 1;
}

GPUCSR_HOST_DEVICE void GPUAMGRow(GPUAMGStep step, const GPUAMGWork *w, int i)
{
  switch (step) {
  case GPUAMG_DIAGONAL:
    GPUAMGDiagonalRow(w, i);
    break;
  case GPUAMG_NORMS:
    GPUAMGNormsRow(w, i);
    break;
  case GPUAMG_COUNT:
    w->length[i] = GPUAMGGraphRow(w, i, NULL);
    break;
  case GPUAMG_GRAPH:
    (void)GPUAMGGraphRow(w, i, w->to.j + w->to.i[i]);
    break;
  case GPUAMG_BEGIN:
    GPUAMGBeginRow(w, i);
    break;
  case GPUAMG_SPREAD:
    if (w->fresh || GPUAMGOpen(w, step, i)) GPUAMGSpreadRow(w, i, GPUAMGMost(w, i, 0, 1));
    break;
  case GPUAMG_DECIDE:
    if (GPUAMGOpen(w, step, i)) GPUAMGDecideRow(w, i, GPUAMGMost(w, i, 0, 1));
    else w->next[i] = w->key[i];
    break;
  case GPUAMG_ROOTS:
    w->length[i] = GPUAMG_STATUS(w->key[i]) == GPUAMG_ROOT;
    break;
  case GPUAMG_OWN:
    w->agg[i] = w->length[i] ? w->number[i] : -1;
    break;
  case GPUAMG_JOIN:
    GPUAMGJoinRow(w, i);
    break;
  case GPUAMG_BELONGS:
    w->length[i] = w->agg[i] >= 0;
    break;
  case GPUAMG_MEMBERS:
    if (w->agg[i] >= 0) w->to.j[w->to.i[i]] = w->agg[i];
    break;
  case GPUAMG_PATTERN:
    GPUAMGPatternRow(w, i);
    break;
  case GPUAMG_ORTHOGONAL:
    GPUAMGOrthogonalRow(w, i, 0, 1);
    break;
  case GPUAMG_BLOCKS_OF:
    GPUAMGBlocksOfRow(w, i, 0, 1);
    break;
  case GPUAMG_SMOOTH:
    GPUAMGSmoothRow(w, i);
    break;
  case GPUAMG_DEAD:
    GPUAMGDeadRow(w, i);
    break;
  case GPUAMG_ONES:
    for (int c = 0; c < w->bs; c++) w->basis[(int64_t)i * w->bs + c] = i % w->bs == c;
    break;
  case GPUAMG_START:
    w->basis[i] = GPUAMGStart(w->first + (uint32_t)i);
    break;
  case GPUAMG_SIZES:
    GPUAMGSizesRow(w, i);
    break;
  case GPUAMG_INVERSES:
    GPUAMGBlocksRow(w, i);
    break;
  case GPUAMG_TIMES:
    GPUAMGTimesRow(w, i);
    break;
  case GPUAMG_KEPT:
    w->length[i] = GPUAMGFilterRow(w, i, NULL, NULL);
    break;
  case GPUAMG_FILTER:
    (void)GPUAMGFilterRow(w, i, w->to.j + w->to.i[i], w->to.a + w->to.i[i]);
    break;
  case GPUAMG_REACH:
    w->length[i] = GPUAMGReachRow(w, i);
    break;
  case GPUAMG_REACHED:
    GPUAMGReachedRow(w, i);
    break;
  case GPUAMG_ENERGY:
    GPUAMGEnergyRow(w, i);
    break;
  case GPUAMG_FILL:
    GPUAMGFillRow(w, i);
    break;
  }
}
