/*
  The inspector on the host, and what follows from its counts wherever they were made. Its device side is kernels/build/inspect.cu.
*/
#include "inspect.h"
#include <math.h>

/* The class of a row's length: 0, 1, 2..3, 4..7, ... */
static int Class(int length)
{
  int b = 0;

  for (; length; length >>= 1) b++;
  return b;
}

/* The exact part of the features, from the row pointers on the host */
PetscErrorCode GPUCSRFeaturesOfRows(int m, int n, const int32_t *rowptr, int threads, GPUCSRFeatures *f)
{
  const int nslices = (int)(((int64_t)m + GPUCSR_SLICE - 1) / GPUCSR_SLICE);
  int       lo = INT32_MAX, hi = 0, rows[GPUCSR_NCLASSES] = {0};
  int64_t   stored = 0, squares = 0, heaviest = 0, entries[GPUCSR_NCLASSES] = {0};

  PetscFunctionBegin;
  if (m < GPUCSRMachineShared.threaded_rows) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(+ : stored, squares, rows[:GPUCSR_NCLASSES], entries[:GPUCSR_NCLASSES]) reduction(min : lo) reduction(max : hi, heaviest)
  for (int q = 0; q < nslices; q++) {
    const int last  = m - q * GPUCSR_SLICE < GPUCSR_SLICE ? m : (q + 1) * GPUCSR_SLICE;
    int       width = 0;

    for (int r = q * GPUCSR_SLICE; r < last; r++) {
      const int len = rowptr[r + 1] - rowptr[r], b = Class(len);

      width = len > width ? len : width;
      lo    = len < lo ? len : lo;
      rows[b]++;
      entries[b] += len;
      squares += (int64_t)len * len;
    }
    hi       = width > hi ? width : hi;
    heaviest = PetscMax(heaviest, rowptr[last] - rowptr[q * GPUCSR_SLICE]);
    stored += (int64_t)width * GPUCSR_SLICE;
  }
  PetscCall(PetscMemzero(f, sizeof(*f))); /* features are hashed as memory */
  f->m           = m;
  f->n           = n;
  f->nnz         = m ? rowptr[m] : 0;
  f->min         = m ? lo : 0;
  f->max         = hi;
  f->sell_stored = stored;
  f->heaviest    = heaviest;
  PetscCall(PetscArraycpy(f->rows, rows, GPUCSR_NCLASSES));
  PetscCall(PetscArraycpy(f->entries, entries, GPUCSR_NCLASSES));
  GPUCSRFeaturesDerive((double)squares, f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Features derived from the counts of rows and the sum of the squared row lengths */
void GPUCSRFeaturesDerive(double squares, GPUCSRFeatures *f)
{
  f->mean      = f->m ? (double)f->nnz / f->m : 0;
  f->deviation = f->m ? sqrt(PetscMax(0, squares / f->m - f->mean * f->mean)) : 0;
}

/* Features derived from the counts of a sample: ratios to its entries, assumed for the whole matrix */
void GPUCSRFeaturesOfSample(const GPUCSRSample *s, GPUCSRFeatures *f)
{
  const double entries = (double)s->entries;

  f->sampled   = (int)s->rows;
  f->spread    = s->filled ? (double)s->spread / (double)s->filled : 0;
  f->bandwidth = s->bandwidth;
  f->diagonals = (int)s->diagonals;
  for (int q = 0; q < GPUCSR_NBLOCKSIZES; q++) f->blocks[q] = entries > 0 ? (double)s->blocks[q] / entries * (double)f->nnz : 0;
  if (s->tiled) {
    const double all = (double)f->nnz / (double)s->tiled;

    f->listed = PetscMin((double)f->nnz, all * (double)s->listed);
    for (int q = 0; q < 4; q++) f->sectors[q / 2][q % 2] = PetscMin((double)f->nnz, all * (double)s->sectors[q / 2][q % 2]);
  }
}

/* All features from CSR on the host; without columns only the exact part */
PetscErrorCode GPUCSRInspect(int m, int n, const int32_t *rowptr, const int32_t *col, double fraction, int threads, GPUCSRFeatures *f)
{
  const int      windows = GPUCSRSampledWindows(m, fraction);
  GPUCSRSample   s;
  unsigned char *met;
  const int      tiles = GPUCSRSampledTiles(m);

  PetscFunctionBegin;
  PetscCall(GPUCSRFeaturesOfRows(m, n, rowptr, threads, f));
  if (!col || !f->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(&s, sizeof(s)));
  PetscCall(PetscCalloc1((size_t)m + (size_t)n, &met));
  for (int w = 0; w < windows; w++) {
    const int first = GPUCSRWindowStart(m, windows, w), last = m - first < GPUCSR_WINDOW ? m : first + GPUCSR_WINDOW;

    for (int r = first; r < last; r++) {
      const int32_t begin = rowptr[r], len = PetscMin(rowptr[r + 1] - begin, GPUCSR_SAMPLE_LENGTH);

      s.rows++;
      s.entries += (unsigned long long)len;
      if (len) {
        s.filled++;
        s.spread += (unsigned long long)(col[rowptr[r + 1] - 1] - col[begin] + 1);
      }
      for (int32_t k = begin; k < begin + len; k++) {
        int blocks[GPUCSR_NBLOCKSIZES] = {0};

        SampleBlocks(rowptr, rowptr + 1, col, r, k, blocks);
        for (int q = 0; q < GPUCSR_NBLOCKSIZES; q++) s.blocks[q] += (unsigned long long)blocks[q];
        s.bandwidth = PetscMax(s.bandwidth, PetscAbs(col[k] - r));
        s.diagonals += !met[(int64_t)col[k] - r + m - 1];
        met[(int64_t)col[k] - r + m - 1] = 1;
      }
    }
  }
  PetscCall(PetscFree(met));
  /* the sample of tiles */
  for (int t = 0; t < tiles; t++) {
    const int first = GPUCSRTileStart(m, tiles, t), last = PetscMin(m - first, GPUCSR_TILE) + first;
    uint32_t  bits[GPUCSR_ALL_WORDS]    = {0};
    int       set[GPUCSR_TILE_SECTIONS] = {0};

    for (int r = first; r < last; r++) {
      const int len = PetscMin(rowptr[r + 1] - rowptr[r], GPUCSR_SAMPLE_LENGTH);

      for (int32_t k = rowptr[r]; k < rowptr[r] + len; k++) {
        for (int q = 0; q < GPUCSR_TILE_SETS; q++) {
          const uint32_t b = GPUCSRTileBit(q, r - first, col[k]);

          set[GPUCSRSectionOfWord((int)(b / 32))] += !(bits[b / 32] >> b % 32 & 1);
          bits[b / 32] |= 1u << b % 32;
        }
      }
      s.tiled += (unsigned long long)len;
    }
    for (int q = 0; q < GPUCSR_TILE_SECTIONS; q++) *GPUCSRSectionCount(&s, q) += (unsigned long long)GPUCSRDifferent(GPUCSRSectionBits(q), GPUCSRSectionBits(q) - set[q]);
  }
  GPUCSRFeaturesOfSample(&s, f);
  PetscFunctionReturn(PETSC_SUCCESS);
}
