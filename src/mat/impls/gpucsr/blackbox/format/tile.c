/*
  Tiles: 128 or 256 neighbouring rows form a tile (the variant). A list has the different columns of a tile once, ascending, and an entry's column is
  its number in that list, in 16 bits. A kernel loads the entries of x in the list into shared memory, once for each tile, and gathers from there.

  Rows of a tile are sorted by falling length. 32 rows form a slice, stored column by column as in sliced ELL, but without padding: column k of a
  slice has entries only of its first rows, the rows longer than k. So the lengths alone determine the reads of a warp.

  Bytes: (2 + v) nnz + 4 units + 8 m + 4 slices + 4 tiles, of which 4 m are read only when values change. Extent: units are the columns listed, the
  width is the longest list that is staged. Wins if neighbouring rows share columns, but too few for blocks: meshes in an order that keeps neighbours
  together. Loses if they share none: the list then takes the bytes that the short columns save. The list of a tile with more than TILE_STAGED
  different columns has the column of each entry, one by one, and x is gathered as from CSR. Nothing is padded, so Inf and NaN in x act as with CSR.

  Paper: C. Chen, Explicit caching HYB: a new high-performance SpMV framework on GPGPU, arXiv 2204.06666, 2022 (x of a part in shared memory, columns
  of 16 bits). Different: a tile lists all its columns, so no entry is left over, and the order of the rows is the caller's, without a partition of a
  graph.
*/
#include "tile.h"
#include "reference.h"
#include <math.h>
#include <stdlib.h>

/* Columns listed, from the sample's count for tiles of 128 rows. The estimate assumes that larger tiles gain over 128 rows as 128 rows gain over four */
static void Estimate_Tile(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  const double four   = f->blocks[GPUCSRBlockIndex(GPUCSR_BLOCK(4, 1))];
  double       listed = (double)f->nnz;

  if (f->listed > 0 && four > 0) listed = f->listed * pow(PetscMin(1, f->listed / four), log2(variant / 128.0) / log2(128 / 4.0));
  e->stored = f->nnz;
  e->units  = (int64_t)PetscMin(listed, (double)f->nnz);
  e->width  = TILE_STAGED;
}

static GPUCSRBool Applicable_Tile(const GPUCSRFeatures *f, int variant, char why[], size_t len)
{
  if (f->max <= TILE_ENTRIES / variant - 1) return PETSC_TRUE;
  (void)snprintf(why, len, "a row of %d entries is too long for tiles of %d rows, whose rows have %d at most", f->max, variant, TILE_ENTRIES / variant - 1);
  return PETSC_FALSE;
}

static int Compare(const void *a, const void *b)
{
  return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

/* The list of tile t, TILE_ENTRIES at most; returns its length */
static int List(const GPUCSRSource *s, int rows, int t, int32_t list[])
{
  const int32_t begin = s->i[t * rows], end = s->i[PetscMin(s->m, (t + 1) * rows)];
  int           n = 0;

  for (int32_t k = begin; k < end; k++) list[k - begin] = (int32_t)s->j[k];
  qsort(list, (size_t)(end - begin), sizeof(*list), Compare);
  for (int32_t k = 0; k < end - begin; k++)
    if (!k || list[k] != list[k - 1]) n++;
  if (n > TILE_STAGED) {
    for (int32_t k = begin; k < end; k++) list[k - begin] = (int32_t)s->j[k];
    return end - begin;
  }
  n = 0;
  for (int32_t k = 0; k < end - begin; k++)
    if (!n || list[k] != list[n - 1]) list[n++] = list[k];
  return n;
}

static PetscErrorCode Measure_Tile(const GPUCSRSource *s, int variant, GPUCSRExtent *e)
{
  int32_t *list;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(TILE_ENTRIES, &list));
  e->stored = s->nnz;
  for (int t = 0; t < TileCount(s->m, variant); t++) {
    const int n = List(s, variant, t, list);

    e->units += n;
    if (n <= TILE_STAGED) e->width = PetscMax(e->width, n);
  }
  PetscCall(PetscFree(list));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Layout_Tile(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  const int variant = A->format->variant;

  A->stored             = e->stored;
  A->narrays            = 7;
  A->array[TILE_BEGIN]  = (GPUCSRArray){"begin", GPUCSR_INT32, PETSC_FALSE, (size_t)TileCount(f->m, variant) + 1, NULL};
  A->array[TILE_LIST]   = (GPUCSRArray){"list", GPUCSR_INT32, PETSC_FALSE, (size_t)e->units, NULL};
  A->array[TILE_PLACE]  = (GPUCSRArray){"place", GPUCSR_INT32, PETSC_FALSE, (size_t)f->m, NULL};
  A->array[TILE_SLICE]  = (GPUCSRArray){"slice", GPUCSR_INT32, PETSC_FALSE, (size_t)TileSlices(f->m), NULL};
  A->array[TILE_ROWPTR] = (GPUCSRArray){"rowptr", GPUCSR_INT32, PETSC_FALSE, (size_t)f->m + 1, NULL};
  A->array[TILE_COL]    = (GPUCSRArray){"col", GPUCSR_UINT16, PETSC_FALSE, (size_t)f->nnz, NULL};
  A->array[TILE_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)f->nnz, NULL};
}

/* The arrays as the host functions use them, and the state of the walk along a slice */
typedef struct {
  int32_t  *begin, *list, *place, *slice, *rowptr;
  uint16_t *col;
  int       rows;
} Arrays;

static Arrays ArraysOf(const GPUCSRStorage *A)
{
  Arrays a;

  a.begin  = (int32_t *)A->array[TILE_BEGIN].data;
  a.list   = (int32_t *)A->array[TILE_LIST].data;
  a.place  = (int32_t *)A->array[TILE_PLACE].data;
  a.slice  = (int32_t *)A->array[TILE_SLICE].data;
  a.rowptr = (int32_t *)A->array[TILE_ROWPTR].data;
  a.col    = (uint16_t *)A->array[TILE_COL].data;
  a.rows   = A->format->variant;
  return a;
}

/* The place of entry k of the row at place q: `before` (the place of entry k - 1) plus the number of the slice's rows with an entry k - 1. With k 0:
   the number of rows before */
static int32_t Next(const Arrays *a, int m, int q, int k, int32_t before)
{
  const int first  = q / GPUCSR_SLICE * GPUCSR_SLICE;
  int       longer = 0;

  if (!k) return a->slice[q / GPUCSR_SLICE] + q - first;
  for (int w = first; w < PetscMin(m, first + GPUCSR_SLICE); w++) longer += TilePlaceLength(a->place[w]) >= k;
  return before + longer;
}

static int RowAt(const Arrays *a, int q)
{
  return q / a->rows * a->rows + TilePlaceRow(a->place[q]);
}

/* The order of a tile's rows, and its slices */
static void Places(const GPUCSRSource *s, const Arrays *a, int t)
{
  const int first = t * a->rows, n = PetscMin(s->m - first, a->rows);
  int32_t   at = s->i[first];

  for (int q = 0; q < n; q++) {
    const int length = s->i[first + q + 1] - s->i[first + q];
    int       w      = q;

    for (; w > 0 && TilePlaceLength(a->place[first + w - 1]) < length; w--) a->place[first + w] = a->place[first + w - 1];
    a->place[first + w] = TilePlace(q, length);
  }
  for (int q = 0; q < n; q++) {
    if (q % GPUCSR_SLICE == 0) a->slice[(first + q) / GPUCSR_SLICE] = at;
    at += TilePlaceLength(a->place[first + q]);
  }
}

static PetscErrorCode Fill_Tile(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  const Arrays     a    = ArraysOf(A);
  const GPUCSRType type = A->array[TILE_VAL].type;

  PetscFunctionBegin;
  if (!valuesonly) {
    int32_t *list;

    PetscCall(PetscMalloc1(TILE_ENTRIES, &list));
    PetscCall(PetscArraycpy(a.rowptr, s->i, s->m + 1));
    a.begin[0] = 0;
    for (int t = 0; t < TileCount(s->m, a.rows); t++) {
      const int32_t first = s->i[t * a.rows];
      const int     n     = List(s, a.rows, t, list);

      PetscCall(PetscArraycpy(a.list + a.begin[t], list, n));
      a.begin[t + 1] = a.begin[t] + n;
      Places(s, &a, t);
      for (int q = t * a.rows; q < PetscMin(s->m, (t + 1) * a.rows); q++) {
        int32_t e = 0;

        for (int k = 0; k < TilePlaceLength(a.place[q]); k++) {
          const int32_t from = s->i[RowAt(&a, q)] + k, c = (int32_t)s->j[from];

          e        = Next(&a, s->m, q, k, e);
          a.col[e] = (uint16_t)(n > TILE_STAGED ? from - first : (int32_t *)bsearch(&c, list, (size_t)n, sizeof(c), Compare) - list);
        }
      }
    }
    PetscCall(PetscFree(list));
  }
  for (int q = 0; q < s->m; q++) {
    int32_t e = 0;

    for (int k = 0; k < TilePlaceLength(a.place[q]); k++) {
      e = Next(&a, s->m, q, k, e);
      /* one at a time, since GPUCSRConvert() alone judges the rounding */
      PetscCall(GPUCSRConvert((char *)A->array[TILE_VAL].data + (size_t)e * GPUCSRTypeSize(type), type, s->a + s->i[RowAt(&a, q)] + k, GPUCSR_DOUBLE, 1, 1, rounding));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r, the q-th in the order of the format */
#define ROW(V, ENTRY) \
  for (int k = 0, e = 0; k < TilePlaceLength(a.place[q]); k++) { \
    e = Next(&a, A->m, q, k, e); \
    ENTRY(a.list[a.begin[q / a.rows] + a.col[e]], ((const V *)A->array[TILE_VAL].data)[e]); \
  }
#define LOCALS const Arrays a = ArraysOf(A)
GPUCSR_REFERENCE(Tile, 1, RowAt(&a, q))
#undef LOCALS
#undef ROW

const GPUCSRFormatFamily GPUCSRFormat_tile = {Applicable_Tile, Estimate_Tile, Measure_Tile, Layout_Tile, Fill_Tile, Mult_Tile, Diagonal_Tile};
