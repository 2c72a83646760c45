/* A list of coordinates becomes a pattern and sums, on any device; the host's twins of assemble.cu */
#include "rows.h"

const GPUCSRAssembleOps *GPUCSRAssembleOf(GPUCSRDevice d)
{
  return GPUCSREither(d, &GPUCSRAssemble_cuda, &GPUCSRAssemble_host);
}

/* What only sorting needs */
static PetscErrorCode Release(GPUCSRSum *s)
{
  const size_t n = (size_t)s->n;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRFree(s->dev, sizeof(uint64_t) * n, (void **)&s->key[k]));
  PetscCall(GPUCSRFree(s->dev, sizeof(int32_t) * n, (void **)&s->order[1]));
  PetscCall(GPUCSRFree(s->dev, sizeof(int32_t) * n, (void **)&s->entry));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRSumDestroy(GPUCSRSum *s)
{
  PetscFunctionBegin;
  if (!s->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Release(s));
  PetscCall(GPUCSRFree(s->dev, sizeof(int32_t) * (size_t)s->n, (void **)&s->order[0]));
  PetscCall(GPUCSRFree(s->dev, sizeof(int32_t) * ((size_t)s->nnz + 1), (void **)&s->first));
  s->dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first step: counts entries. The caller destroys s, even after an error */
PetscErrorCode GPUCSRSumSort(GPUCSRDevice dev, const GPUCSRCoordinates *list, int m, int n, GPUCSRSum *s)
{
  const size_t len = (size_t)list->n;

  PetscFunctionBegin;
  PetscCheck(list->n <= INT32_MAX - 4096, PETSC_COMM_SELF, PETSC_ERR_SUP, "A list of %lld contributions does not fit the 32-bit indices of the device", (long long)list->n);
  PetscCall(PetscMemzero(s, sizeof(*s)));
  s->dev = dev;
  s->n   = list->n;
  s->bad = -1;
  for (int k = 0; k < 2; k++) {
    PetscCall(GPUCSRMalloc(dev, sizeof(uint64_t) * len, "the sort of coordinates", (void **)&s->key[k]));
    PetscCall(GPUCSRMalloc(dev, sizeof(int32_t) * len, "the order of contributions", (void **)&s->order[k]));
  }
  PetscCall(GPUCSRMalloc(dev, sizeof(int32_t) * len, "the sort of coordinates", (void **)&s->entry));
  PetscCall((*GPUCSRAssembleOf(dev)->sort)(list, m, n, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The second: A has room for s->nnz entries. Afterwards s makes sums */
PetscErrorCode GPUCSRSumPattern(GPUCSRSum *s, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(s->dev, sizeof(int32_t) * ((size_t)s->nnz + 1), "the entries' contributions", (void **)&s->first));
  PetscCall((*GPUCSRAssembleOf(s->dev)->pattern)(s, A));
  PetscCall(Release(s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int64_t At(GPUCSRType type, const void *list, int64_t k)
{
  return type == GPUCSR_INT32 ? ((const int32_t *)list)[k] : ((const int64_t *)list)[k];
}

/* The index in the matrix; -1: skipped, n: out of range */
static int64_t Index(const GPUCSRCoordinates *c, const void *list, const void *table, int length, int n, int64_t k)
{
  int64_t i = At(c->type, list, k);

  if (i >= 0 && table) i = i < length ? At(c->type, table, i) : n;
  return i < 0 ? -1 : GPUCSRMin(i, n);
}

/* Stable, by counting: to[] = the contributions of from[] in ascending order of of[] */
static void Count(int64_t n, const int32_t *from, const int32_t *of, int classes, int32_t *count, int32_t *to)
{
  for (int c = 0; c <= classes; c++) count[c] = 0;
  for (int64_t k = 0; k < n; k++) count[of[from[k]] + 1]++;
  for (int c = 0; c < classes; c++) count[c + 1] += count[c];
  for (int64_t k = 0; k < n; k++) to[count[of[from[k]]]++] = from[k];
}

static PetscErrorCode Sort_Host(const GPUCSRCoordinates *c, int m, int n, GPUCSRSum *s)
{
  int32_t *i, *j, *count;
  int64_t  kept = 0;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s->dev->stream));
  PetscCall(PetscMalloc3((size_t)c->n, &i, (size_t)c->n, &j, (size_t)GPUCSRMax(m, n) + 2, &count));
  for (int64_t k = 0; k < c->n; k++) {
    const int64_t r = Index(c, c->i, c->row, c->rows, m, k), q = Index(c, c->j, c->col, c->cols, n, k);

    i[k] = (int32_t)r;
    j[k] = (int32_t)q;
    if (r < 0 || q < 0) continue;
    if (s->bad < 0 && (r == m || q == n)) s->bad = k;
    s->order[0][kept++] = (int32_t)k;
  }
  s->kept = kept;
  s->nnz  = 0;
  if (s->bad < 0) {
    Count(kept, s->order[0], j, n, count, s->order[1]);
    Count(kept, s->order[1], i, m, count, s->order[0]);
    for (int64_t k = 0; k < kept; k++) {
      s->key[0][k] = (uint64_t)i[s->order[0][k]] << 32 | (uint32_t)j[s->order[0][k]];
      if (!k || s->key[0][k] != s->key[0][k - 1]) s->nnz++;
      s->entry[k] = (int32_t)s->nnz;
    }
  }
  PetscCall(PetscFree3(i, j, count));
  PetscCall(GPUCSRLaunched(s->dev, "assemble (sort)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Pattern_Host(GPUCSRSum *s, GPUCSRStorage *A)
{
  int32_t *i = (int32_t *)A->array[CSR_ROWPTR].data, *j = (int32_t *)A->array[CSR_COL].data;
  int      r = 0;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s->dev->stream));
  for (int64_t k = 0; k < s->kept; k++) {
    const int32_t e = s->entry[k] - 1;

    if (k && s->key[0][k] == s->key[0][k - 1]) continue;
    s->first[e] = (int32_t)k;
    j[e]        = (int32_t)(uint32_t)s->key[0][k];
    while (r <= (int)(s->key[0][k] >> 32)) i[r++] = e;
  }
  while (r <= A->m) i[r++] = (int32_t)s->nnz;
  s->first[s->nnz] = (int32_t)s->kept;
  PetscCall(GPUCSRLaunched(s->dev, "assemble (pattern)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sum_Host(const GPUCSRSum *s, const double *v, int64_t there, const double *more, GPUCSRBool add, GPUCSRStorage *A)
{
  double *a = (double *)A->array[CSR_VAL].data;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s->dev->stream));
  for (int64_t e = 0; e < s->nnz; e++) {
    double t = 0;

    for (int32_t k = s->first[e]; k < s->first[e + 1]; k++) t += s->order[0][k] < there ? v[s->order[0][k]] : more[s->order[0][k] - there];
    a[e] = add ? a[e] + t : t;
  }
  PetscCall(GPUCSRLaunched(s->dev, "assemble (sum)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_ASSEMBLE_STEPS(GPUCSR_EACH)

const GPUCSRAssembleOps GPUCSRAssemble_host = {GPUCSR_ASSEMBLE_STEPS(GPUCSR_EACH_ENTRY) Sort_Host, Pattern_Host, Sum_Host};
