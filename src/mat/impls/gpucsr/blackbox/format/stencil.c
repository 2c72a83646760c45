/*
  Stencils: a row is a list of pairs (column - row, value) in its own order; rows with equal lists share a stencil. A dictionary stores each stencil once; a row is the number of its stencil.
  Stencils are numbered in the order of their first rows.

  Bytes: 2 m + (4 + v) stored, where stored are the dictionary's entries, a few hundred. Wins on operators with constant coefficients on regular grids: only x and y are moved. The format is exact: values are compared bit by bit as stored. If new values need another dictionary, fill() sets A->outdated, and the matrix is built anew. Extent: units are the stencils.

  Whether a matrix has few enough is known exactly before the choice (GPUCSRStencils(), kernels/product/stencil.cuh). Rows are found by a hash and
  compared entry by entry with the first of their stencil; the hash is never trusted.

  Papers: M. Belgin, G. Back, C. J. Ribbens, Pattern-based sparse matrix representation for memory-efficient SMVM kernels, ICS 2009;
  K. Kourtis, G. Goumas, N. Koziris, Optimizing sparse matrix-vector multiplication using index and value compression, CF 2008.
*/
#include "stencil.h"
#include "reference.h"
#include <string.h>

#define SLOTS (2 * (STENCIL_MOST + 1)) /* of the hash table, a power of two */

/* Rows as lists of offsets and values, from any format */
typedef struct {
  int            m;
  const int32_t *rowptr;
  const void    *col, *val;
  GPUCSRType     coltype;
  size_t         size; /* of a value */
} Rows;

/* The different rows among them */
typedef struct {
  int stencils, entries;
  int slot[SLOTS];             /* 1 + number of a stencil, 0: free */
  int row[STENCIL_MOST];       /* its first row */
  int begin[STENCIL_MOST + 1]; /* of its entries */
} Dictionary;

static inline int64_t Offset(const Rows *a, int r, int32_t k)
{
  return (a->coltype == GPUCSR_INT32 ? ((const int32_t *)a->col)[k] : ((const int64_t *)a->col)[k]) - r;
}

static uint64_t Hash(const Rows *a, int r)
{
  uint64_t h = (uint64_t)(a->rowptr[r + 1] - a->rowptr[r]);

  for (int32_t k = a->rowptr[r]; k < a->rowptr[r + 1]; k++) {
    uint64_t bits = 0;

    memcpy(&bits, (const char *)a->val + (size_t)k * a->size, a->size);
    h = (h ^ bits ^ ((uint64_t)Offset(a, r, k) << 17)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h;
}

static GPUCSRBool Same(const Rows *a, int r, int q)
{
  const int32_t length = a->rowptr[r + 1] - a->rowptr[r], br = a->rowptr[r], bq = a->rowptr[q];

  if (a->rowptr[q + 1] - bq != length || (length && memcmp((const char *)a->val + (size_t)br * a->size, (const char *)a->val + (size_t)bq * a->size, (size_t)length * a->size))) return PETSC_FALSE;
  for (int32_t k = 0; k < length; k++)
    if (Offset(a, r, br + k) != Offset(a, q, bq + k)) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* The number of each row's stencil; id may be NULL. Too many: d->stencils is -1, and the rows from there on are skipped. */
static void Find(const Rows *a, Dictionary *d, uint16_t *id)
{
  int last = -1;

  for (int r = 0; r < a->m; r++) {
    const int length = a->rowptr[r + 1] - a->rowptr[r];

    if (last < 0 || !Same(a, r, d->row[last])) { /* neighbours are mostly equal */
      uint64_t at = Hash(a, r) % SLOTS;

      while (d->slot[at] && !Same(a, r, d->row[d->slot[at] - 1])) at = (at + 1) % SLOTS;
      if (!d->slot[at]) {
        if (length > STENCIL_MOST || d->entries + length + d->stencils + 1 > STENCIL_MOST) {
          d->stencils = -1;
          return;
        }
        d->row[d->stencils] = r;
        d->entries += length;
        d->slot[at]           = ++d->stencils;
        d->begin[d->stencils] = d->entries;
      }
      last = d->slot[at] - 1;
    }
    if (id) id[r] = (uint16_t)last;
  }
}

/* Writes the number of stencils and of their entries into the features, from CSR on the host */
PetscErrorCode GPUCSRStencils(int m, const int32_t *rowptr, const void *col, GPUCSRType coltype, const void *val, GPUCSRType type, GPUCSRFeatures *f)
{
  const Rows  a = {m, rowptr, col, val, coltype, GPUCSRTypeSize(type)};
  Dictionary *d;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(1, &d));
  Find(&a, d, NULL);
  f->stencils       = d->stencils;
  f->stencilentries = d->stencils < 0 ? 0 : d->entries;
  PetscCall(PetscFree(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Exact if counted; else the largest possible number */
static void Estimate_Stencil(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  e->units  = f->stencils ? f->stencils : PetscMin(f->m, STENCIL_MOST);
  e->stored = f->stencils ? f->stencilentries : PetscMin(f->nnz, STENCIL_MOST);
}

static GPUCSRBool Applicable_Stencil(const GPUCSRFeatures *f, int variant, char why[], size_t len)
{
  if (f->stencils > 0 || (!f->stencils && f->m + f->nnz <= STENCIL_MOST)) return PETSC_TRUE; /* uncounted stencils of a small matrix fit in any case */
  (void)snprintf(why, len, "its rows are not alike: more than %d different ones, their entries counted", STENCIL_MOST);
  return PETSC_FALSE;
}

static void Layout_Stencil(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  A->stored                = e->stored;
  A->narrays               = 5;
  A->array[STENCIL_ID]     = (GPUCSRArray){"id", GPUCSR_UINT16, PETSC_FALSE, (size_t)f->m, NULL};
  A->array[STENCIL_BEGIN]  = (GPUCSRArray){"begin", GPUCSR_INT32, PETSC_FALSE, (size_t)e->units + 1, NULL};
  A->array[STENCIL_OFFSET] = (GPUCSRArray){"offset", GPUCSR_INT32, PETSC_FALSE, (size_t)e->stored, NULL};
  A->array[STENCIL_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)e->stored, NULL};
  A->array[STENCIL_ROW]    = (GPUCSRArray){"row", GPUCSR_INT32, PETSC_FALSE, (size_t)e->units, NULL};
}

static PetscErrorCode FillPattern(const Rows *a, GPUCSRStorage *A)
{
  int32_t    *begin = (int32_t *)A->array[STENCIL_BEGIN].data, *offset = (int32_t *)A->array[STENCIL_OFFSET].data, *row = (int32_t *)A->array[STENCIL_ROW].data;
  Dictionary *d;
  GPUCSRBool  fits;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(1, &d));
  Find(a, d, (uint16_t *)A->array[STENCIL_ID].data);
  fits = (GPUCSRBool)(d->stencils >= 0 && d->stencils <= A->extent.units && d->entries <= A->stored);
  if (!fits) PetscCall(PetscFree(d));
  PetscCheck(fits, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR format stencil cannot take this matrix of %d rows: they are not alike", a->m);
  for (int u = 0; u < A->extent.units; u++) {
    row[u]       = d->row[PetscMin(u, PetscMax(0, d->stencils - 1))]; /* stencils beyond those found have no entries */
    begin[u + 1] = d->begin[PetscMin(u + 1, d->stencils)];
    for (int k = 0; k < begin[u + 1] - (u ? begin[u] : 0); k++) offset[d->begin[u] + k] = (int32_t)Offset(a, row[u], a->rowptr[row[u]] + k);
  }
  begin[0] = 0;
  PetscCall(PetscFree(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill_Stencil(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  const GPUCSRType type = A->array[STENCIL_VAL].type;
  const size_t     size = GPUCSRTypeSize(type);
  const uint16_t  *id   = (const uint16_t *)A->array[STENCIL_ID].data;
  const int32_t   *row = (const int32_t *)A->array[STENCIL_ROW].data, *begin = (const int32_t *)A->array[STENCIL_BEGIN].data;
  char            *dictionary = (char *)A->array[STENCIL_VAL].data, *val; /* of all rows, as stored */
  Rows             a          = {s->m, s->i, s->j, NULL, GPUCSR_PETSCINT, size};
  PetscErrorCode   ierr       = PETSC_SUCCESS;

  PetscFunctionBegin;
  A->outdated = PETSC_FALSE;
  PetscCall(PetscMalloc((size_t)s->nnz * size + 1, &val));
  PetscCall(GPUCSRConvert(val, type, s->a, GPUCSR_DOUBLE, (size_t)s->nnz, 1, rounding));
  a.val = val;
  if (!valuesonly) ierr = FillPattern(&a, A);
  if (ierr) PetscCall(PetscFree(val));
  PetscCall(ierr);
  for (int u = 0; u < A->extent.units; u++) memcpy(dictionary + (size_t)begin[u] * size, val + (size_t)s->i[row[u]] * size, (size_t)(begin[u + 1] - begin[u]) * size);
  for (int r = 0; r < s->m && valuesonly && !A->outdated; r++)
    if (memcmp(dictionary + (size_t)begin[id[r]] * size, val + (size_t)s->i[r] * size, (size_t)(s->i[r + 1] - s->i[r]) * size)) A->outdated = PETSC_TRUE;
  PetscCall(PetscFree(val));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r */
#define ROW(V, ENTRY) \
  for (int32_t k = begin[id[r]]; k < begin[id[r] + 1]; k++) ENTRY(r + offset[k], ((const V *)A->array[STENCIL_VAL].data)[k]);
#define LOCALS \
  const uint16_t *id    = (const uint16_t *)A->array[STENCIL_ID].data; \
  const int32_t  *begin = (const int32_t *)A->array[STENCIL_BEGIN].data, *offset = (const int32_t *)A->array[STENCIL_OFFSET].data
GPUCSR_REFERENCE(Stencil, 0, q)
#undef LOCALS
#undef ROW

const GPUCSRFormatFamily GPUCSRFormat_stencil = {Applicable_Stencil, Estimate_Stencil, NULL, Layout_Stencil, Fill_Stencil, Mult_Stencil, Diagonal_Stencil};
