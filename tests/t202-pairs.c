/*
  Pairs of diagonals whose mirrored entries have the same bits. The kernel reads the upper diagonal of a pair alone. Products agree with those of a plan without pairs. Values are symmetric, differ in a bit or in the
  sign of a zero, or have NaN. An entry has no mirrored one, and new values end pairs or bring them back. On a GPU the test counts the pairs; the host has none.

  //TEST name="host" args="-backend host"
  //TEST name="cuda" args="-backend cuda" gpu=1
*/
static char help[] = "Tests pairs of diagonals that are read in one place.\n";

#include "../src/mat/impls/gpucsr/blackbox/format/dia.h"
#include "../src/mat/impls/gpucsr/blackbox/plan/plan.h"
#include "testing.h"
#include <math.h>

#define SIDE 11

typedef enum {
  SYMMETRIC,
  A_BIT,
  AN_ENTRY,
  NAN_AND_ZEROS,
  A_ZERO,
  WIDE,
  TALL,
  KINDS
} Kind;
static const char *const kinds[KINDS] = {"symmetric", "but a bit", "but an entry", "with NaN and zeros", "but the sign of a zero", "wide", "tall"};
static const int         pairs[KINDS] = {4, 3, 3, 4, 3, 0, 0};

static const int offset[9] = {-SIDE * SIDE, -SIDE, -2, -1, 0, 1, 2, SIDE, SIDE *SIDE};

/* A matrix of SIDE^3 rows has nine diagonals with symmetric holes */
static PetscErrorCode Values(Kind kind, PetscInt seed, GPUCSRSource *s, int32_t *i, PetscInt *j, PetscScalar *a)
{
  const PetscInt n = SIDE * SIDE * SIDE;

  PetscFunctionBegin;
  *s   = (GPUCSRSource){.m = (int)n, .n = (int)n, .i = i, .j = j, .a = a};
  i[0] = 0;
  if (kind == WIDE) s->n++;
  if (kind == TALL) s->m++;
  for (PetscInt r = 0; r < s->m; r++) {
    for (int q = 0; q < 9; q++) {
      const PetscInt c = r + offset[q], lo = PetscMin(r, c), hi = PetscMax(r, c);

      if (c < 0 || c >= s->n || (lo != hi && (lo * 31 + hi) % 5 == 0)) continue;
      if (kind == AN_ENTRY && r == 700 && c == 700 - SIDE) continue;
      j[s->nnz] = c;
      a[s->nnz] = ZooReal(lo, hi, seed);
      if (kind == A_BIT && r == 901 && q == 3) a[s->nnz] = (double)nextafterf((float)a[s->nnz], 2);
      if (kind == A_BIT && r == 900 && q == 5) a[s->nnz] = (double)(float)a[s->nnz];
      if ((kind == NAN_AND_ZEROS || kind == A_ZERO) && lo == 300) a[s->nnz] = hi == 300 ? NAN : kind == A_ZERO && r > c && q == 0 ? -0.0 : 0;
      s->nnz++;
    }
    i[r + 1] = (int32_t)s->nnz;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* So many pairs, and each diagonal once */
static PetscErrorCode CheckOrder(GPUCSRPlan *P, int most, const char where[])
{
  const int      n       = (int)P->A.extent.units;
  int            seen[9] = {0}, found = 0, count;
  GPUCSRDiagonal order[10];

  PetscFunctionBegin;
  PetscCheck(n == 9, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d diagonals", where, n);
  PetscCall(GPUCSRDownload(P->A.dev, order, GPUCSR_INT32, P->A.array[DIA_ORDER].data, GPUCSR_INT32, 20, PETSC_FALSE, P->A.dev->stream));
  PetscCall(P->A.dev->ops->streamsynchronize(P->A.dev->id, P->A.dev->stream));
  count = order[n].offset;
  PetscCheck(count == n - most, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d in the order, not %d", where, count, n - most);
  for (int k = 0; k < count; k++) {
    const PetscBool pair = (PetscBool)(order[k].number >= 0);
    const int       d    = pair ? order[k].number : -1 - order[k].number;

    PetscCheck(d >= (pair ? 5 : 0) && d < n && order[k].offset == offset[d], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: diagonal %d of offset %d is at %d", where, d, (int)order[k].offset, k);
    seen[d]++;
    if (pair) seen[8 - d]++;
    found += pair;
  }
  PetscCheck(found == most, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d pairs, not %d", where, found, most);
  for (int d = 0; d < n; d++) PetscCheck(seen[d] == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: diagonal %d is read %d times", where, d, seen[d]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x + y of the plan, for rows from first on; the rows before have zeros */
static PetscErrorCode Product(GPUCSRPlan *P, void *const v[3], PetscInt first, double *z)
{
  GPUCSRDevice     dev = P->A.dev;
  const size_t     m   = (size_t)P->A.m;
  const GPUCSRType vt  = GPUCSRVectorType(P->A.precision);
  GPUCSRProduct    p   = {.alpha = 1, .beta = 1, .x = v[0], .y = v[1], .z = v[2], .first = (int)first, .last = (int)m, .doubles = (GPUCSRBool)(vt == GPUCSR_DOUBLE)};

  PetscFunctionBegin;
  PetscCall(dev->ops->zero(dev->id, v[2], GPUCSRTypeSize(vt) * m, dev->stream));
  PetscCall(GPUCSRPlanProduct(P, &p, dev->stream));
  PetscCall(GPUCSRDownload(dev, z, GPUCSR_DOUBLE, v[2], vt, m, PETSC_FALSE, dev->stream));
  PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums of the plan with pairs differ by their order alone; without pairs they are the same */
static PetscErrorCode Check(GPUCSRPlan *P, GPUCSRPlan *whole, const GPUCSRSource *s, void *const v[3], Kind kind, const char where[], int *count)
{
  const PetscBool paired = (PetscBool)(P->A.dev->ops->kernels && P->A.precision == GPUCSR_PRECISION_DOUBLE);
  double         *a, *b;

  PetscFunctionBegin;
  PetscCall(CheckOrder(P, paired ? pairs[kind] : 0, where));
  PetscCall(CheckOrder(whole, 0, where));
  PetscCall(PetscMalloc2(s->m, &a, s->m, &b));
  for (PetscInt first = 0; first < 41; first += 40) {
    PetscCall(Product(P, v, first, a));
    PetscCall(Product(whole, v, first, b));
    for (int r = 0; r < s->m; r++) {
      double bound = PetscAbsReal(ZooReal(r, 1, 7));

      for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) bound += PetscAbsReal(s->a[k] * ZooReal(s->j[k], 0, 7));
      PetscCheck((isnan(a[r]) && isnan(b[r])) || a[r] == b[r] || (paired && PetscAbsReal(a[r] - b[r]) <= 10 * PETSC_MACHINE_EPSILON * bound), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %d is %.17g with pairs, %.17g without", where, r, a[r], b[r]);
    }
    ++*count;
  }
  PetscCall(PetscFree2(a, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Plans of one matrix, with `then` as new values if it has the same pattern */
static PetscErrorCode One(GPUCSRDevice dev, Kind kind, GPUCSRPrecision precision, void *const v[3], int *count)
{
  static const Kind   then[]  = {A_BIT, SYMMETRIC, A_ZERO, NAN_AND_ZEROS};
  const GPUCSRRequest q       = {"dia", "dia_row", GPUCSR_SELECT_ESTIMATE, 0, 0};
  const size_t        n       = SIDE * SIDE * SIDE + 1;
  GPUCSRMachine      *machine = (GPUCSRMachine *)GPUCSRMachineOf(dev);
  const double        least   = machine->pairs_least;
  GPUCSRSource        s;
  GPUCSRPlan          P = {.built = PETSC_FALSE}, whole = {.built = PETSC_FALSE};
  char                where[96];
  int32_t            *i;
  PetscInt           *j;
  PetscScalar        *a;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(n + 1, &i, 9 * n, &j, 9 * n, &a));
  for (int k = -1; k < (kind == SYMMETRIC ? (int)PETSC_STATIC_ARRAY_LENGTH(then) : 0); k++) {
    const Kind now  = k < 0 ? kind : then[k];
    PetscBool  done = PETSC_FALSE;

    PetscCall(Values(now, k, &s, i, j, a));
    for (int with = 0; with < 2; with++) { /* both plans take the kernel of the last one */
      GPUCSRPlan *plan = with ? &P : &whole;

      machine->pairs_least = with ? 0 : PETSC_MAX_REAL;
      if (k >= 0) PetscCall(GPUCSRPlanRefresh(plan, &s, NULL, &done));
      else PetscCall(GPUCSRPlanBuild(dev, &s, precision, &q, plan));
      PetscCheck(k < 0 || done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No new values");
    }
    PetscCall(PetscSNPrintf(where, sizeof(where), "%s%s, precision %d", k < 0 ? "" : "new values, ", kinds[now], (int)precision));
    PetscCall(Check(&P, &whole, &s, v, now, where, count));
  }
  machine->pairs_least = least;
  PetscCall(GPUCSRPlanDestroy(&P));
  PetscCall(GPUCSRPlanDestroy(&whole));
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const size_t n           = SIDE * SIDE * SIDE + 1;
  char         backend[32] = "host", why[512];
  GPUCSRDevice dev;
  double      *x;
  int          count = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &dev, why, sizeof(why)));
  PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "Backend %s: %s", backend, why);
  PetscCall(PetscMalloc1(n, &x));
  for (int precision = 0; precision < 3; precision++) {
    void *v[3];

    for (int k = 0; k < 3; k++) {
      PetscCall(GPUCSRMalloc(dev, sizeof(double) * n, "a vector", &v[k]));
      for (size_t r = 0; r < n; r++) x[r] = ZooReal((PetscInt)r, k, 7);
      PetscCall(GPUCSRUpload(dev, v[k], GPUCSRVectorType((GPUCSRPrecision)precision), x, GPUCSR_DOUBLE, n, PETSC_FALSE, dev->stream, NULL));
    }
    for (int kind = 0; kind < KINDS; kind++) PetscCall(One(dev, (Kind)kind, (GPUCSRPrecision)precision, v, &count));
    for (int k = 0; k < 3; k++) PetscCall(GPUCSRFree(dev, sizeof(double) * n, &v[k]));
  }
  PetscCall(PetscFree(x));
  PetscCheck(count == 3 * 2 * (KINDS + 4), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d products were compared", count);
  PetscCheck(!dev->allocated, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu bytes of device memory were not given back", dev->allocated);
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
