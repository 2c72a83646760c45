/*
  Sparse products of two matrices in CSR on one device, pattern and values, against sums in long double. Covered are rows of every class of
  lengths, empty and full rows, columns in any order, stored zeros, no rows, no columns, values changed afterwards, the same bits in two runs,
  and an entry outside the pattern. The transpose of the result.

  //TEST name="host" args="-backend host"
  //TEST name="cuda" args="-backend cuda" gpu=1
*/
static char help[] = "Tests sparse products.\n";

#include "../src/mat/impls/gpucsr/blackbox/spgemm/spgemm.h"
#include "testing.h"
#include <math.h>

static PetscInt failures = 0;

typedef struct {
  int      m, n;
  int32_t *i, *j;
  double  *a;
} CSR;

/* Rows of length len(r), columns anywhere, not ascending, and every tenth value a stored zero */
static PetscErrorCode Make(int m, int n, int (*len)(int r, int n), int seed, CSR *M)
{
  PetscFunctionBegin;
  M->m = m;
  M->n = n;
  PetscCall(PetscMalloc1(m + 1, &M->i));
  M->i[0] = 0;
  for (int r = 0; r < m; r++) M->i[r + 1] = M->i[r] + PetscMin(n, len(r, n));
  PetscCall(PetscMalloc2(M->i[m] + 1, &M->j, M->i[m] + 1, &M->a));
  for (int r = 0; r < m; r++) {
    const int l = M->i[r + 1] - M->i[r], from = (int)(ZooHash(seed, r, 1) % PetscMax(1, n));
    int       step = l ? n / l : 1;

    for (int k = 0; k < l; k++) {
      M->j[M->i[r] + k] = (int)((from + (int64_t)k * step) % n); /* l steps stay within n: all different */
      M->a[M->i[r] + k] = ZooHash(seed, r, k) % 10 ? PetscRealPart(ZooScalar(seed, r, k)) : 0.0;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Free(CSR *M)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(M->i));
  PetscCall(PetscFree2(M->j, M->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Send(GPUCSRDevice dev, const CSR *M, GPUCSRStorage *S)
{
  const GPUCSRTransfer all[] = {
    {NULL, GPUCSR_INT32,  M->i, GPUCSR_INT32,  (size_t)M->m + 1  },
    {NULL, GPUCSR_INT32,  M->j, GPUCSR_INT32,  (size_t)M->i[M->m]},
    {NULL, GPUCSR_DOUBLE, M->a, GPUCSR_DOUBLE, (size_t)M->i[M->m]}
  };

  PetscFunctionBegin;
  PetscCall(GPUCSRCSRCreate(dev, M->m, M->n, M->i[M->m], S));
  for (int k = 0; k < 3; k++) PetscCall(GPUCSRUpload(dev, S->array[k].data, all[k].to, all[k].src, all[k].from, all[k].n, PETSC_FALSE, dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fetch(const GPUCSRStorage *S, CSR *M)
{
  GPUCSRDevice dev = S->dev;

  PetscFunctionBegin;
  M->m = S->m;
  M->n = S->n;
  PetscCall(PetscMalloc1(S->m + 1, &M->i));
  PetscCall(PetscMalloc2((size_t)S->nnz + 1, &M->j, (size_t)S->nnz + 1, &M->a));
  PetscCall(GPUCSRDownload(dev, M->i, GPUCSR_INT32, S->array[CSR_ROWPTR].data, GPUCSR_INT32, (size_t)S->m + 1, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDownload(dev, M->j, GPUCSR_INT32, S->array[CSR_COL].data, GPUCSR_INT32, (size_t)S->nnz, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDownload(dev, M->a, GPUCSR_DOUBLE, S->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)S->nnz, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDeviceSynchronize(dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Fail(const char name[], const char what[], int r, int c)
{
  if (++failures < 20) (void)PetscPrintf(PETSC_COMM_SELF, "%s: %s in row %d, column %d\n", name, what, r, c);
}

/* C against A B in long double: the same entries, ascending, and values within what n rounded sums may differ by */
static PetscErrorCode Compare(const char name[], const CSR *A, const CSR *B, const CSR *C)
{
  long double *sum, *size;
  int         *terms;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(B->n + 1, &sum, B->n + 1, &size, B->n + 1, &terms));
  PetscCall(PetscMemzero(terms, sizeof(*terms) * (size_t)(B->n + 1)));
  for (int r = 0; r < A->m; r++) {
    for (int k = A->i[r]; k < A->i[r + 1]; k++) {
      for (int q = B->i[A->j[k]]; q < B->i[A->j[k] + 1]; q++) {
        const int c = B->j[q];

        if (!terms[c]++) sum[c] = size[c] = 0;
        sum[c] += (long double)A->a[k] * B->a[q];
        size[c] += fabsl((long double)A->a[k] * B->a[q]);
      }
    }
    for (int k = C->i[r]; k < C->i[r + 1]; k++) {
      const int c = C->j[k];

      if (k > C->i[r] && c <= C->j[k - 1]) Fail(name, "columns do not ascend", r, c);
      if (c < 0 || c >= B->n || !terms[c]) {
        Fail(name, "an entry that the product has not", r, c);
        continue;
      }
      if (!(fabsl(sum[c] - C->a[k]) <= 2 * DBL_EPSILON * (long double)terms[c] * size[c])) Fail(name, "a wrong value", r, c);
      terms[c] = 0;
    }
    for (int k = A->i[r]; k < A->i[r + 1]; k++) {
      for (int q = B->i[A->j[k]]; q < B->i[A->j[k] + 1]; q++) {
        if (terms[B->j[q]]) Fail(name, "an entry is missing", r, B->j[q]);
        terms[B->j[q]] = 0;
      }
    }
  }
  PetscCall(PetscFree3(sum, size, terms));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposed(const char name[], const GPUCSRStorage *S, const CSR *C)
{
  GPUCSRStorage T;
  int32_t      *map;
  CSR           t;
  int          *next;

  PetscFunctionBegin;
  PetscCall(GPUCSRTransposeStorage(S, &T, &map));
  PetscCall(GPUCSRTransposeValues(S, map, &T));
  PetscCall(Fetch(&T, &t));
  PetscCall(PetscMalloc1(t.m + 1, &next));
  PetscCall(PetscArraycpy(next, t.i, t.m + 1));
  for (int r = 0; r < C->m; r++) {
    for (int k = C->i[r]; k < C->i[r + 1]; k++) {
      const int q = next[C->j[k]]++;

      if (t.j[q] != r || t.a[q] != C->a[k]) Fail(name, "the transpose is wrong", r, C->j[k]);
    }
  }
  PetscCall(PetscFree(next));
  PetscCall(Free(&t));
  PetscCall(GPUCSRFree(S->dev, sizeof(int32_t) * (size_t)S->nnz, (void **)&map));
  PetscCall(GPUCSRStorageDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(GPUCSRDevice dev, const char name[], CSR *A, CSR *B)
{
  GPUCSRStorage    SA, SB, SC;
  GPUCSRRowClasses classes;
  CSR              C, again;
  PetscErrorCode   ierr;
  GPUCSRAttempt    attempt;
  PetscBool        same;

  PetscFunctionBegin;
  PetscCall(Send(dev, A, &SA));
  PetscCall(Send(dev, B, &SB));
  PetscCall(GPUCSRSpGEMMSymbolic(&SA, &SB, &SC, &classes));
  PetscCall(GPUCSRSpGEMMNumeric(&SA, &SB, &classes, &SC));
  PetscCall(Fetch(&SC, &C));
  PetscCall(Compare(name, A, B, &C));
  PetscCall(Transposed(name, &SC, &C));
  PetscCall(GPUCSRSpGEMMNumeric(&SA, &SB, &classes, &SC));
  PetscCall(Fetch(&SC, &again));
  PetscCall(PetscMemcmp(C.a, again.a, sizeof(double) * (size_t)C.i[C.m], &same));
  if (!same) Fail(name, "other bits the second time", -1, -1);
  PetscCall(Free(&again));
  PetscCall(Free(&C));
  for (int k = 0; k < A->i[A->m]; k++) A->a[k] = 1.5 - A->a[k]; /* new values alone */
  PetscCall(GPUCSRUpload(dev, SA.array[CSR_VAL].data, GPUCSR_DOUBLE, A->a, GPUCSR_DOUBLE, (size_t)A->i[A->m], PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRSpGEMMNumeric(&SA, &SB, &classes, &SC));
  PetscCall(Fetch(&SC, &C));
  PetscCall(Compare(name, A, B, &C));
  if (C.i[C.m] > 0) { /* a pattern that misses entries is found out */
    GPUCSRStorage    part;
    GPUCSRRowClasses few;
    CSR              less = *A;

    PetscCall(PetscMalloc1(A->m + 1, &less.i));
    PetscCall(PetscMemzero(less.i, sizeof(int32_t) * (size_t)(A->m + 1)));
    PetscCall(Send(dev, &less, &part)); /* no entries */
    PetscCall(GPUCSRStorageDestroy(&SC));
    PetscCall(GPUCSRRowClassesDestroy(dev, &classes));
    PetscCall(GPUCSRSpGEMMSymbolic(&part, &SB, &SC, &few));
    PetscCall(GPUCSRAttemptBegin(&attempt));
    ierr = GPUCSRSpGEMMNumeric(&SA, &SB, &few, &SC);
    PetscCall(GPUCSRAttemptEnd(&attempt));
    classes = few;
    if (ierr != PETSC_ERR_ARG_WRONGSTATE) Fail(name, "lost entries are not told", -1, -1);
    PetscCall(PetscFree(less.i));
    PetscCall(GPUCSRStorageDestroy(&part));
  }
  PetscCall(Free(&C));
  PetscCall(GPUCSRRowClassesDestroy(dev, &classes));
  PetscCall(GPUCSRStorageDestroy(&SC));
  PetscCall(GPUCSRStorageDestroy(&SB));
  PetscCall(GPUCSRStorageDestroy(&SA));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int None(int r, int n)
{
  (void)n;
  return r < 0;
}
static int One(int r, int n)
{
  (void)n;
  return r >= 0;
}
static int Few(int r, int n)
{
  (void)n;
  return r % 5;
}
static int Seven(int r, int n)
{
  (void)n;
  return r % 11 ? 7 : 0;
}
static int Many(int r, int n)
{
  return r % 64 == 3 ? n / 2 : r % 40;
}
static int OneLong(int r, int n)
{
  return r == 1 ? n : r % 3;
}
static int All(int r, int n)
{
  (void)r;
  return n;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    int         m, k, n;
    int (*a)(int, int), (*b)(int, int);
  } cases[] = {
    {"no rows",           0,    10,   10,   None,    Few    },
    {"no columns",        10,   10,   0,    Few,     None   },
    {"nothing between",   10,   0,    10,   None,    None   },
    {"no entries",        50,   40,   30,   None,    Few    },
    {"one a row",         300,  200,  100,  One,     One    },
    {"short",             3001, 2000, 500,  Seven,   Few    },
    {"tall and narrow",   5000, 300,  3,    Few,     One    },
    {"short and wide",    3,    700,  9000, Many,    Many   },
    {"all classes",       700,  900,  6000, Many,    Many   },
    {"one long row",      200,  5000, 5000, OneLong, Few    },
    {"long rows of both", 130,  300,  9001, OneLong, OneLong},
    {"full",              60,   50,   70,   All,     All    },
    {"full, wide",        5,    20,   5000, All,     All    },
    {"full rows of B",    90,   64,   3000, Few,     All    },
  };
  GPUCSRDevice dev;
  char         backend[16] = "host", why[256];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &dev, why, sizeof(why)));
  PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "%s: %s", backend, why);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    CSR A, B;

    PetscCall(Make(cases[k].m, cases[k].k, cases[k].a, 1, &A));
    PetscCall(Make(cases[k].k, cases[k].n, cases[k].b, 2, &B));
    PetscCall(Product(dev, cases[k].name, &A, &B));
    PetscCall(Free(&A));
    PetscCall(Free(&B));
  }
  PetscCheck(dev->allocated == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu bytes of device memory were not given back", dev->allocated);
  PetscCheck(!failures, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " failures", failures);
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
