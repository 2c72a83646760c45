/*
  Narrow: CSR with columns of 16 bits. 32 rows form a slice, and the columns of a slice lie in up to seven windows of 8192 columns each. An entry's
  column is the number of its window, in 3 bits, and the place in the window, in 13. The first window begins at the least column of the slice, each
  other window at the least column beyond the windows before. A slice that would need an eighth is wide: its columns take 32 bits, in an array of
  their own.

  Rows and values have the order of CSR. In place of a pointer a row has its length, in a byte, and a slice its first entry.

  Bytes: (2 + v) nnz + 4 units + 2 m. Extent: units are the entries of wide slices. Wins if CSR's bytes take the time: large matrices of short rows,
  in an order that keeps neighbours together. Loses if slices are wide.

  Paper: K. Kourtis, G. Goumas, N. Koziris, Optimizing sparse matrix-vector multiplication using index and value compression, Computing Frontiers 2008
  (relative columns in fewer bytes). Different: a slice has windows, so that any entry can be read alone, and rows may reach distant places.
*/
#include "narrow.h"
#include "reference.h"

/* Wide slices: none where rows do not reach far. Otherwise none where tiles of 128 rows list few of the entries (neighbours share columns), and all where tiles list most entries */
#define NEAR (NARROW_WINDOWS / 2 * NARROW_REACH) /* columns from the first to the last of a row */

static void Estimate_Narrow(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  double wide = 0;

  if (f->spread > NEAR && f->n > NARROW_WINDOWS * NARROW_REACH) wide = PetscMax(0, PetscMin(1, (f->listed / (double)f->nnz - GPUCSRMachineShared.narrow_shared) / (GPUCSRMachineShared.narrow_apart - GPUCSRMachineShared.narrow_shared)));
  e->stored = f->nnz;
  e->units  = (int64_t)(wide * (double)f->nnz);
}

static GPUCSRBool Applicable_Narrow(const GPUCSRFeatures *f, int variant, char why[], size_t len)
{
  if (f->max <= NARROW_LONGEST) return PETSC_TRUE;
  (void)snprintf(why, len, "a row of %d entries is too long: rows have %d at most", f->max, NARROW_LONGEST);
  return PETSC_FALSE;
}

/* The windows of slice t; returns their number, or -1 for a wide slice */
static int Windows(const GPUCSRSource *s, int t, int32_t first[])
{
  const int32_t begin = s->i[t * GPUCSR_SLICE], end = s->i[PetscMin(s->m, (t + 1) * GPUCSR_SLICE)];
  int64_t       reached = -1; /* the last column in the windows so far */

  for (int w = 0;; w++) {
    int64_t least = INT64_MAX;

    for (int32_t k = begin; k < end; k++)
      if (s->j[k] > reached) least = PetscMin(least, (int64_t)s->j[k]);
    if (least == INT64_MAX) return w;
    if (w == NARROW_WINDOWS) return -1;
    first[w] = (int32_t)least;
    reached  = least + NARROW_REACH - 1;
  }
}

static int32_t Entries(const GPUCSRSource *s, int t)
{
  return s->i[PetscMin(s->m, (t + 1) * GPUCSR_SLICE)] - s->i[t * GPUCSR_SLICE];
}

static PetscErrorCode Measure_Narrow(const GPUCSRSource *s, int variant, GPUCSRExtent *e)
{
  int32_t first[NARROW_WINDOWS];

  PetscFunctionBegin;
  e->stored = s->nnz;
  for (int t = 0; t < NarrowSlices(s->m); t++)
    if (Windows(s, t, first) < 0) e->units += Entries(s, t);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Layout_Narrow(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  A->stored               = e->stored;
  A->narrays              = 5;
  A->array[NARROW_HEAD]   = (GPUCSRArray){"head", GPUCSR_INT32, PETSC_FALSE, (size_t)NARROW_WORDS * NarrowSlices(f->m), NULL};
  A->array[NARROW_LENGTH] = (GPUCSRArray){"length", GPUCSR_INT32, PETSC_FALSE, (size_t)NarrowSlices(f->m) * GPUCSR_SLICE / sizeof(int32_t), NULL};
  A->array[NARROW_COL]    = (GPUCSRArray){"col", GPUCSR_UINT16, PETSC_FALSE, (size_t)f->nnz, NULL};
  A->array[NARROW_WIDE]   = (GPUCSRArray){"wide", GPUCSR_INT32, PETSC_FALSE, (size_t)e->units, NULL};
  A->array[NARROW_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)f->nnz, NULL};
}

/* The arrays as the host functions use them */
typedef struct {
  int32_t  *head, *wide;
  uint8_t  *length; /* whole slices: missing rows have length 0 */
  uint16_t *col;
} Arrays;

static Arrays ArraysOf(const GPUCSRStorage *A)
{
  Arrays a;

  a.head   = (int32_t *)A->array[NARROW_HEAD].data;
  a.length = (uint8_t *)A->array[NARROW_LENGTH].data;
  a.col    = (uint16_t *)A->array[NARROW_COL].data;
  a.wide   = (int32_t *)A->array[NARROW_WIDE].data;
  return a;
}

/* The first entry of row r */
static int32_t First(const Arrays *a, int r)
{
  const int first = r / GPUCSR_SLICE * GPUCSR_SLICE;
  int32_t   at    = a->head[NARROW_WORDS * (r / GPUCSR_SLICE)];

  for (int w = first; w < r; w++) at += a->length[w];
  return at;
}

/* The column of an entry of row r */
static int32_t Column(const Arrays *a, int r, int32_t entry)
{
  const int32_t *head = a->head + NARROW_WORDS * (r / GPUCSR_SLICE);

  if (head[1] == NARROW_WIDE_SLICE) return a->wide[head[2] + entry - head[0]];
  return head[1 + NarrowWindow(a->col[entry])] + NarrowWithin(a->col[entry]);
}

static PetscErrorCode Fill_Narrow(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  const Arrays a = ArraysOf(A);

  PetscFunctionBegin;
  if (!valuesonly) {
    int32_t wide = 0;

    for (int r = 0; r < NarrowSlices(s->m) * GPUCSR_SLICE; r++) a.length[r] = (uint8_t)(r < s->m ? s->i[r + 1] - s->i[r] : 0);
    for (int t = 0; t < NarrowSlices(s->m); t++) {
      int32_t      *head                  = a.head + (size_t)NARROW_WORDS * t;
      int32_t       first[NARROW_WINDOWS] = {0};
      const int     n                     = Windows(s, t, first);
      const int32_t begin = s->i[t * GPUCSR_SLICE], end = begin + Entries(s, t);

      head[0] = begin;
      for (int w = 0; w < NARROW_WINDOWS; w++) head[1 + w] = n < 0 ? 0 : first[w];
      if (n < 0) {
        head[1] = NARROW_WIDE_SLICE;
        head[2] = wide;
      }
      for (int32_t k = begin; k < end; k++) {
        const int32_t c = (int32_t)s->j[k];
        int           w = PetscMax(0, n - 1);

        while (n > 0 && first[w] > c) w--;
        a.col[k] = n < 0 ? 0 : NarrowColumn(w, c - first[w]);
        if (n < 0) a.wide[wide++] = c;
      }
    }
  }
  PetscCall(GPUCSRConvert(A->array[NARROW_VAL].data, A->array[NARROW_VAL].type, s->a, GPUCSR_DOUBLE, (size_t)s->nnz, A->dev->threads, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r */
#define ROW(V, ENTRY) \
  for (int32_t k = 0, first = First(&a, r); k < a.length[r]; k++) ENTRY(Column(&a, r, first + k), ((const V *)A->array[NARROW_VAL].data)[first + k])
#define LOCALS const Arrays a = ArraysOf(A)
GPUCSR_REFERENCE(Narrow, 0, q)
#undef LOCALS
#undef ROW

const GPUCSRFormatFamily GPUCSRFormat_narrow = {Applicable_Narrow, Estimate_Narrow, Measure_Narrow, Layout_Narrow, Fill_Narrow, Mult_Narrow, Diagonal_Narrow};
