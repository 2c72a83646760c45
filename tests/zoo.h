#pragma once

/*
  The zoo: small matrices, each with a shape that has broken some sparse product before.

  Host CSR arrays alone, so the tests of formats and kernels need no Mat; testing.h makes Mats of the zoo.

    Zoo z;
    for (PetscInt which = 0; which < ZOO_COUNT; which++) {
      PetscCall(ZooCreate(which, PETSC_FALSE, &z));
      ...                                   z.name, z.m, z.n, z.i[m+1], z.j[nnz], z.a[nnz]
      PetscCall(ZooDestroy(&z));
    }

  Every number follows from (matrix, row, position) alone: the same on every machine, in every order of calls.
  Columns ascend and are distinct in all but "unsorted" (distinct, any order) and "duplicates" (an entry may come in several parts, to be added).
*/
#include <petscsys.h>
#include <stdlib.h>

typedef struct {
  const char  *name;
  PetscInt     m, n; /* rows, columns */
  PetscInt    *i, *j;
  PetscScalar *a;
} Zoo;

typedef enum {
  ZOO_EMPTY,
  ZOO_NO_ROWS,
  ZOO_NO_COLUMNS,
  ZOO_ONE,
  ZOO_NO_ENTRIES,
  ZOO_EMPTY_ROWS,
  ZOO_DENSE_ROW,
  ZOO_DENSE_COLUMN,
  ZOO_WIDE,
  ZOO_TALL,
  ZOO_LENGTHS,
  ZOO_ONE_ROW,
  ZOO_ONE_COLUMN,
  ZOO_UNSORTED,
  ZOO_DUPLICATES,
  ZOO_POWER_LAW,
  ZOO_BANDED,
  ZOO_BLOCK,
  ZOO_NEARLY_DENSE,
  ZOO_DENSE,
  ZOO_RANDOM,
  ZOO_DIAGONAL,
  ZOO_POISSON,
  ZOO_ALIKE,
  ZOO_ALIKE_TALL,
  ZOO_COUNT
} ZooWhich;

static const struct {
  const char *name;
  PetscInt    m, n;
} ZooTable[ZOO_COUNT] = {
  {"empty",        0,    0   },
  {"no rows",      0,    7   },
  {"no columns",   7,    0   },
  {"one",          1,    1   },
  {"no entries",   5,    9   },
  {"empty rows",   301,  80  }, /* stretches of empty rows longer than a slice, at the start and the end too */
  {"dense row",    1000, 1500},
  {"dense column", 1500, 1000},
  {"wide",         37,   2000},
  {"tall",         2000, 37  },
  {"lengths",      63,   1100}, /* numbers of rows one below, at and one above every power of two up to 1024 */
  {"one row",      1,    5000},
  {"one column",   5000, 1   },
  {"unsorted",     257,  263 },
  {"duplicates",   129,  127 },
  {"power law",    3000, 3000},
  {"banded",       1025, 1025},
  {"block",        300,  300 }, /* full blocks of 3 by 3 */
  {"nearly dense", 130,  110 },
  {"dense",        33,   65  },
  {"random",       777,  777 },
  {"diagonal",     1000, 1000},
  {"Poisson",      1600, 1600}, /* 40 by 40 grid, 5 points: values that are exactly floats */
  {"alike",        700,  770 }, /* few rows differ, in values or in places, counted from the diagonal; one in seven is empty */
  {"alike, tall",  2100, 1900}  /* the same, more rows than the inspector looks at at first */
};

/* A hash of three words (the finaliser of SplitMix64, Steele, Lea and Flood 2014): the zoo's only source of chance */
static inline PetscInt64 ZooHash(PetscInt64 a, PetscInt64 b, PetscInt64 c)
{
  unsigned long long h = (unsigned long long)a * 0x9E3779B97F4A7C15ULL + (unsigned long long)b * 0xD1B54A32D192ED03ULL + (unsigned long long)c * 0x8CB92BA72F3D8DD7ULL;

  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ULL;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBULL;
  return (PetscInt64)((h ^ (h >> 31)) >> 1);
}

/* Of either sign, 1/8 <= |value| < 1: nothing cancels by design and nothing is lost in a sum by scale */
static inline PetscReal ZooReal(PetscInt64 a, PetscInt64 b, PetscInt64 c)
{
  const PetscInt64 h = ZooHash(a, b, c);
  const PetscReal  v = (PetscReal)0.125 + (PetscReal)0.875 * (PetscReal)((double)(h >> 11) / 4503599627370496.0);

  return (h & 1) ? v : -v;
}

static inline PetscScalar ZooScalar(PetscInt64 a, PetscInt64 b, PetscInt64 c)
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(ZooReal(a, b, c), ZooReal(a, b, c + 1000003));
#else
  return ZooReal(a, b, c);
#endif
}

static inline PetscReal ZooInfinity(void)
{
  return (PetscReal)HUGE_VAL;
}

static inline PetscReal ZooNaN(void)
{
  return ZooInfinity() - ZooInfinity();
}

/*
  ZooFill - Fill a vector with reproducible values

  Input Parameters:
+ n       - its length
. seed    - another seed, other values
- special - put an infinity first, a NaN in the middle and -infinity last: a kernel that pads with a zero times x[0] or x[n-1] is caught
*/
static inline PetscErrorCode ZooFill(PetscInt n, PetscInt seed, PetscBool special, PetscScalar x[])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) x[k] = ZooScalar(-1 - seed, k, 0);
  if (special && n) {
    x[n / 2] = ZooNaN();
    x[n - 1] = -ZooInfinity();
    x[0]     = ZooInfinity();
  }
  PetscFunctionReturn((PetscErrorCode)0);
}

/* How many distinct columns row r has, where the columns are drawn at random */
static inline PetscInt ZooRowLength(PetscInt which, PetscInt r)
{
  const PetscInt   n = ZooTable[which].n;
  const PetscInt64 h = ZooHash(which, r, -7);
  PetscInt         k = 0;

  switch (which) {
  case ZOO_ONE:
  case ZOO_ONE_ROW:
  case ZOO_DENSE:
    k = n;
    break;
  case ZOO_EMPTY_ROWS:
    k = (r < 70 || r > 230 || r % 3 == 0) ? 0 : (PetscInt)(h % 9);
    break;
  case ZOO_DENSE_ROW:
    k = r == 613 ? n : 1 + (PetscInt)(h % 3);
    break;
  case ZOO_WIDE:
    k = 20 + (PetscInt)(h % 60);
    break;
  case ZOO_TALL:
    k = 5 + (PetscInt)(h % 9);
    break;
  case ZOO_LENGTHS:
    if (r < 33) k = (((PetscInt)1) << (r / 3)) - 1 + r % 3; /* 0 1 2 | 1 2 3 | 3 4 5 | ... | 1023 1024 1025 */
    else k = (PetscInt)(h % 40);
    break;
  case ZOO_ONE_COLUMN:
    k = (PetscInt)(h % 2);
    break;
  case ZOO_UNSORTED:
  case ZOO_DUPLICATES:
    k = (PetscInt)(h % 20);
    break;
  case ZOO_POWER_LAW: /* length about 1/u for u uniform in (0,1): three out of four rows under 4, a few in the hundreds */
    k = (PetscInt)(1.0 / (((double)(h >> 11) + 1.0) / 4503599627370496.0));
    k = PetscMin(k, n);
    break;
  case ZOO_NEARLY_DENSE:
    k = n - (PetscInt)(h % 6);
    break;
  case ZOO_RANDOM:
    k = 12 + (PetscInt)(h % 17);
    break;
  default:
    break;
  }
  return k;
}

/* The columns of row r, in the order in which they are stored; their number */
static inline PetscInt ZooRow(PetscInt which, PetscInt r, PetscInt cols[])
{
  const PetscInt n = ZooTable[which].n;
  PetscInt       k = 0, length;

#define ZooPut(c) cols[k++] = (c)
  switch (which) {
  case ZOO_DENSE_COLUMN:
    for (PetscInt c = 0; c < n; c++)
      if (c == 377 || ZooHash(which, r, c) % n < 2) ZooPut(c);
    break;
  case ZOO_BANDED: /* a full band of 11, and two lone diagonals far out */
    for (PetscInt c = 0; c < n; c++)
      if (PetscAbsInt(r - c) <= 5 || PetscAbsInt(r - c) == 400) ZooPut(c);
    break;
  case ZOO_BLOCK:
    for (PetscInt b = 0; b < n / 3; b++) {
      if (b != r / 3 && ZooHash(which, r / 3, b) % (n / 3) >= 6) continue;
      for (PetscInt c = 0; c < 3; c++) ZooPut(3 * b + c);
    }
    break;
  case ZOO_DIAGONAL:
    ZooPut(r);
    break;
  case ZOO_POISSON:
    if (r >= 40) ZooPut(r - 40);
    if (r % 40) ZooPut(r - 1);
    ZooPut(r);
    if ((r + 1) % 40) ZooPut(r + 1);
    if (r + 40 < n) ZooPut(r + 40);
    break;
  case ZOO_ALIKE:
  case ZOO_ALIKE_TALL:
    for (PetscInt l = 0; l < 12 && r % 7 != 3; l++) {
      const PetscInt c = r + l * l * l / 2 + l - 90 + (l > 9 ? r % 2 : 0);

      if (c >= 0 && c < n) ZooPut(c);
    }
    break;
  case ZOO_DUPLICATES: /* any column any number of times */
    length = ZooRowLength(which, r);
    for (PetscInt l = 0; l < length; l++) ZooPut((PetscInt)(ZooHash(which, r, l) % 11) * 11);
    break;
  default: /* draw exactly `length` distinct columns out of n, ascending */
    length = ZooRowLength(which, r);
    for (PetscInt c = 0; c < n && k < length; c++)
      if (ZooHash(which, r, c) % (n - c) < length - k) ZooPut(c);
  }
#undef ZooPut
  if (which == ZOO_UNSORTED) { /* shuffle */
    for (PetscInt l = k - 1; l > 0; l--) {
      const PetscInt o = (PetscInt)(ZooHash(which, -r, l) % (l + 1)), c = cols[l];

      cols[l] = cols[o];
      cols[o] = c;
    }
  }
  return k;
}

/* Patterns take longer to draw than most tests: each is drawn once in a process, and kept outside PETSc's memory, whose leaks tests look for */
static inline PetscErrorCode ZooPattern(PetscInt which, const PetscInt **i, const PetscInt **j)
{
  static PetscInt *kept[ZOO_COUNT][2];
  const PetscInt   m = ZooTable[which].m, n = ZooTable[which].n;

  PetscFunctionBegin;
  if (!kept[which][0]) {
    PetscInt *p = (PetscInt *)malloc(((size_t)m + 1) * sizeof(PetscInt)), *cols = NULL;
    size_t    room = 0;

    PetscCheck(p, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a matrix of the zoo");
    p[0] = 0;
    for (PetscInt r = 0; r < m; r++) {
      if (room < (size_t)p[r] + (size_t)n + 20) { /* duplicates may be more than the columns */
        PetscInt *more;

        room = 2 * room + (size_t)n + 20;
        more = (PetscInt *)realloc(cols, room * sizeof(PetscInt));
        PetscCheck(more, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a matrix of the zoo");
        cols = more;
      }
      p[r + 1] = p[r] + ZooRow(which, r, cols + p[r]);
    }
    kept[which][0] = p;
    kept[which][1] = cols;
  }
  *i = kept[which][0];
  *j = kept[which][1];
  PetscFunctionReturn((PetscErrorCode)0);
}

/*
  ZooCreate - Make one matrix of the zoo

  Input Parameters:
+ which   - 0 <= which < ZOO_COUNT
- special - put infinities, NaN and stored zeros among the values

  Output Parameter:
. z - the matrix; free with ZooDestroy()
*/
static inline PetscErrorCode ZooCreate(PetscInt which, PetscBool special, Zoo *z)
{
  PetscInt        nz;
  const PetscInt *i, *j;

  PetscFunctionBegin;
  z->name = ZooTable[which].name;
  z->m    = ZooTable[which].m;
  z->n    = ZooTable[which].n;
  PetscCall(ZooPattern(which, &i, &j));
  PetscCall(PetscMalloc1(z->m + 1, &z->i));
  PetscCall(PetscArraycpy(z->i, i, z->m + 1));
  nz = z->i[z->m];
  PetscCall(PetscMalloc1(nz + 1, &z->j)); /* a spare place, so the address is valid without entries too */
  PetscCall(PetscMalloc1(nz + 1, &z->a));
  PetscCall(PetscArraycpy(z->j, j, nz));
  z->j[nz] = 0;
  z->a[nz] = 0.0;
  for (PetscInt r = 0; r < z->m; r++) {
    for (PetscInt k = z->i[r]; k < z->i[r + 1]; k++) {
      z->a[k] = ZooScalar(which, r, k - z->i[r]);
      if (which == ZOO_POISSON) z->a[k] = z->j[k] == r ? 4.0 : -1.0;
      if (which == ZOO_ALIKE || which == ZOO_ALIKE_TALL) z->a[k] = ZooScalar(which, r % 5, z->j[k] - r);
    }
  }
  if (special && nz) { /* in separate rows where there are so many, so that most rows stay finite */
    z->a[nz / 4]     = ZooNaN();
    z->a[nz / 3]     = 0.0;
    z->a[nz / 2]     = -ZooInfinity();
    z->a[3 * nz / 4] = 0.0;
    z->a[nz - 1]     = ZooInfinity();
  }
  PetscFunctionReturn((PetscErrorCode)0);
}

static inline PetscErrorCode ZooDestroy(Zoo *z)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(z->i));
  PetscCall(PetscFree(z->j));
  PetscCall(PetscFree(z->a));
  z->m = z->n = 0;
  PetscFunctionReturn((PetscErrorCode)0);
}
