static char help[] = "Assembly by coordinates, and changes of values in place.\n\n";

/*
    coo -mat_type TYPE [-vec_type TYPE] [-parts assembly,inplace] [-points 100] [-grid 128] [-variable] [-cells 32] [-element staggered|taylorhood] [-rounds 10] [-patterns 2] [-steps 4] [-o FILE]

  Knows only PETSc, so that -mat_type aijcusparse of a PETSc with CUDA runs it, too. For P1 elements on the tetrahedra of -points^3 points (six a cube), and Q1 elements on -grid^3 points (the 27-point
  grid), and for Stokes' equations on -cells^3 cells, which alone know ranks, lines are added to FILE:
    coo      assembly; problem, type, entries, contributions; pattern_ms: MatSetPreallocationCOO(), the best of -patterns; host_ms and device_ms: MatSetValuesCOO() of values there, the best of the rounds; right: row sums
             are those that the elements have
    inplace  inplace; problem, type, entries, operation, ms; gbs: bytes that the device's memory has to move (Bytes()), a second; copy_gbs: of VecCopy() with as many numbers as entries; share: of that
    newton   see newton.c; with -variable each element has its own coefficient
    stokes   see stokes.c
  With -mat_gpucsr_master device values stay on the GPU. A round ends when an inner product of a small vector has come back, in the order of the matrix' stream.
*/
#include "coo.h"
#include "../../ksp/examples/newton.h"
#include <dlfcn.h>

/* The corners of element e: of a tetrahedron or of a cube */
static void Corners(const Problem *p, PetscInt e, PetscInt corner[])
{
  const PetscInt m = p->n - 1, x = e % m, y = e / m % m, z = e / m / m;

  for (PetscInt k = 0; k < p->corners; k++) corner[k] = p->corners == 4 ? NewtonCorner((int)p->n, (int)e, (int)k) : x + k % 2 + p->n * (y + k / 2 % 2 + p->n * (z + k / 4));
}

/* Values 1 beside the diagonal, so that row sums are numbers of elements */
static PetscErrorCode ProblemMake(const char name[], PetscInt n, PetscInt corners, Problem *p)
{
  PetscFunctionBeginUser;
  p->name     = name;
  p->n        = n;
  p->corners  = corners;
  p->elements = (n - 1) * (n - 1) * (n - 1) * (corners == 4 ? 6 : 1);
  p->len      = (PetscCount)p->elements * corners * corners;
  PetscCall(PetscMalloc3((size_t)p->len, &p->i, (size_t)p->len, &p->j, (size_t)p->len, &p->v));
#pragma omp parallel for
  for (PetscInt e = 0; e < p->elements; e++) {
    PetscInt   corner[8];
    PetscCount k = (PetscCount)e * corners * corners;

    Corners(p, e, corner);
    for (PetscInt a = 0; a < corners; a++)
      for (PetscInt b = 0; b < corners; b++, k++) {
        p->i[k] = corner[a];
        p->j[k] = corner[b];
        p->v[k] = a == b ? 2.0 : 1.0;
      }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Wait(const Bench *b)
{
  PetscScalar dot;

  PetscFunctionBeginUser;
  PetscCall(VecDot(b->small, b->small, &dot)); /* PETSc remembers a norm, but no inner product */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The array of a vector of the device; a VECGPU's by a function of its library, which may not be there */
PetscErrorCode ArrayGet(Vec x, const PetscScalar **a)
{
  PetscErrorCode (*get)(Vec, const double **);
  PetscMemType type;
  PetscBool    gpu;

  PetscFunctionBeginUser;
  *(void **)&get = dlsym(RTLD_DEFAULT, "VecGPUGetArrayRead");
  PetscCall(PetscObjectTypeCompare((PetscObject)x, "seqgpu", &gpu));
  if (get && gpu) PetscCall((*get)(x, (const double **)a));
  else PetscCall(VecGetArrayReadAndMemType(x, a, &type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ArrayRestore(Vec x, const PetscScalar **a)
{
  PetscErrorCode (*restore)(Vec, const double **);
  PetscBool gpu;

  PetscFunctionBeginUser;
  *(void **)&restore = dlsym(RTLD_DEFAULT, "VecGPURestoreArrayRead");
  PetscCall(PetscObjectTypeCompare((PetscObject)x, "seqgpu", &gpu));
  if (restore && gpu) PetscCall((*restore)(x, (const double **)a));
  else PetscCall(VecRestoreArrayReadAndMemType(x, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Values(const Bench *b, Mat A, const PetscScalar v[], double *ms)
{
  PetscFunctionBeginUser;
  *ms = 1e30;
  for (PetscInt r = 0; r < b->rounds; r++) {
    double t = MPI_Wtime();

    PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
    PetscCall(Wait(b));
    t   = 1e3 * (MPI_Wtime() - t);
    *ms = PetscMin(*ms, t);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row sums: corners + 1 for each element of a point, all together */
static PetscErrorCode Right(const Problem *p, Mat A, PetscBool *right)
{
  Vec         x, y;
  PetscScalar sum;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecSum(y, &sum));
  *right = (PetscBool)(PetscRealPart(sum) == (double)p->elements * (double)p->corners * (double)(p->corners + 1));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PatternMake(const Bench *b, const Problem *p, Mat *A, double *ms)
{
  const PetscInt m = p->n * p->n * p->n;
  PetscInt      *i, *j;
  double         t;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2((size_t)p->len, &i, (size_t)p->len, &j)); /* PETSc may change them */
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, m, m, m));
  PetscCall(MatSetType(*A, b->type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(PetscArraycpy(i, p->i, (size_t)p->len));
  PetscCall(PetscArraycpy(j, p->j, (size_t)p->len));
  t = MPI_Wtime();
  PetscCall(MatSetPreallocationCOO(*A, p->len, i, j));
  PetscCall(Wait(b));
  *ms = 1e3 * (MPI_Wtime() - t);
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assembly(const Bench *b, const Problem *p, double pattern, Mat A)
{
  double             ms[2];
  const PetscScalar *d;
  PetscScalar       *a;
  PetscBool          right = PETSC_FALSE;
  MatInfo            info;
  Vec                v;

  PetscFunctionBeginUser;
  PetscCall(Values(b, A, p->v, &ms[0]));
  PetscCall(VecCreate(PETSC_COMM_SELF, &v));
  PetscCall(VecSetSizes(v, (PetscInt)p->len, PETSC_DECIDE));
  PetscCall(VecSetFromOptions(v));
  PetscCall(VecGetArrayWrite(v, &a));
  PetscCall(PetscArraycpy(a, p->v, (size_t)p->len));
  PetscCall(VecRestoreArrayWrite(v, &a));
  PetscCall(ArrayGet(v, &d));
  PetscCall(Values(b, A, d, &ms[1]));
  PetscCall(ArrayRestore(v, &d));
  PetscCall(VecDestroy(&v));
  PetscCall(Right(p, A, &right));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  fprintf(b->out, "{\"record\": \"coo\", \"problem\": \"%s\", \"type\": \"%s\", \"entries\": %.0f, \"contributions\": %lld, \"pattern_ms\": %.3f, \"host_ms\": %.3f, \"device_ms\": %.3f, \"right\": %s}\n", p->name, b->type, info.nz_used, (long long)p->len, pattern, ms[0], ms[1], right ? "true" : "false");
  fflush(b->out);
  PetscFunctionReturn(PETSC_SUCCESS);
}

enum {
  SCALE,
  SHIFT,
  DIAGONALSCALE,
  AXPY,
  ZEROBOUNDARY, /* the rows of points on the boundary */
  ZEROROWS,     /* all rows */
  ZERO,
  NORM,
  OPERATIONS
};
static const char *const operation[OPERATIONS] = {"scale", "shift", "diagonalscale", "axpy", "zeroboundary", "zerorows", "zero", "norm"};

/* Rows, and their entries */
typedef struct {
  PetscInt  n, *row;
  PetscReal entries;
} Rows;

/*
  What the memory of the device has to move, for values of 8 bytes and indices of 4: each value that is read or written; for the diagonal, which no neighbours share, sectors of 32 bytes, the smallest
  that memory moves, read and written, and their places; for MatDiagonalScale() columns, lengths of rows and both vectors; for MatZeroRows() lengths of rows and places of the diagonal, and a list of rows.
  Lists also cross the bus, which is not counted.
*/
static double Bytes(int op, const Rows *all, const Rows *boundary)
{
  const double rows = (double)all->n;

  switch (op) {
  case SCALE:
    return 16 * all->entries;
  case SHIFT:
    return 68 * rows;
  case DIAGONALSCALE:
    return 20 * all->entries + 20 * rows;
  case AXPY:
    return 24 * all->entries;
  case ZEROBOUNDARY:
    return 8 * boundary->entries + 12 * (double)boundary->n;
  case ZEROROWS:
    return 8 * all->entries + 8 * rows;
  default:
    return 8 * all->entries;
  }
}

static PetscErrorCode Apply(int op, Mat A, Mat B, Vec l, Vec r, const Rows *all, const Rows *boundary)
{
  PetscReal norm;

  PetscFunctionBeginUser;
  switch (op) {
  case SCALE:
    PetscCall(MatScale(A, 0.5));
    break;
  case SHIFT:
    PetscCall(MatShift(A, 1.0));
    break;
  case DIAGONALSCALE:
    PetscCall(MatDiagonalScale(A, l, r));
    break;
  case AXPY:
    PetscCall(MatAXPY(A, 0.5, B, SAME_NONZERO_PATTERN));
    break;
  case ZEROBOUNDARY:
    PetscCall(MatZeroRows(A, boundary->n, boundary->row, 1.0, NULL, NULL));
    break;
  case ZEROROWS:
    PetscCall(MatZeroRows(A, all->n, all->row, 1.0, NULL, NULL));
    break;
  case ZERO:
    PetscCall(MatZeroEntries(A));
    break;
  default:
    PetscCall(MatNorm(A, NORM_FROBENIUS, &norm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As many numbers as the matrix has entries */
static PetscErrorCode CopyRate(const Bench *b, double entries, double *rate)
{
  Vec    x, y;
  double best = 1e30;

  PetscFunctionBeginUser;
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, (PetscInt)entries, PETSC_DECIDE));
  PetscCall(VecSetFromOptions(x));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecSet(x, 1.0));
  for (PetscInt r = 0; r <= b->rounds; r++) {
    double t;

    PetscCall(Wait(b));
    t = MPI_Wtime();
    for (int k = 0; k < 10; k++) PetscCall(VecCopy(k % 2 ? y : x, k % 2 ? x : y));
    PetscCall(Wait(b));
    t    = (MPI_Wtime() - t) / 10;
    best = PetscMin(best, t);
  }
  *rate = 1e-9 * 16 * entries / best;
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All rows, or the rows of the boundary */
static PetscErrorCode RowsMake(const Problem *p, Mat A, PetscBool boundary, Rows *rows)
{
  const PetscInt n = p->n, *i;
  PetscInt       m;
  PetscBool      done;

  PetscFunctionBeginUser;
  rows->n       = 0;
  rows->entries = 0;
  PetscCall(PetscMalloc1((size_t)(n * n * n), &rows->row));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, NULL, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "A matrix of this type shows no pattern");
  for (PetscInt k = 0; k < m; k++) {
    const PetscInt x = k % n, y = k / n % n, z = k / n / n;

    if (boundary && x && x < n - 1 && y && y < n - 1 && z && z < n - 1) continue;
    rows->row[rows->n++] = k;
    rows->entries += (PetscReal)(i[k + 1] - i[k]);
  }
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, NULL, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InPlace(const Bench *b, const Problem *p, Mat A)
{
  Mat    B;
  Vec    l, r;
  Rows   all, boundary;
  double rate = 0;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatCreateVecs(A, &r, &l));
  PetscCall(VecSet(l, 1.0));
  PetscCall(VecSet(r, 1.0));
  PetscCall(RowsMake(p, A, PETSC_FALSE, &all));
  PetscCall(RowsMake(p, A, PETSC_TRUE, &boundary));
  PetscCall(CopyRate(b, all.entries, &rate));
  for (int op = 0; op < OPERATIONS; op++) {
    double best = 1e30, gbs;

    PetscCall(Apply(op, A, B, l, r, &all, &boundary));
    for (PetscInt q = 0; q < b->rounds; q++) {
      double t;

      PetscCall(Wait(b));
      t = MPI_Wtime();
      for (int k = 0; k < 10; k++) PetscCall(Apply(op, A, B, l, r, &all, &boundary));
      PetscCall(Wait(b));
      t    = (MPI_Wtime() - t) / 10;
      best = PetscMin(best, t);
    }
    gbs = 1e-9 * Bytes(op, &all, &boundary) / best;
    fprintf(b->out, "{\"record\": \"inplace\", \"problem\": \"%s\", \"type\": \"%s\", \"entries\": %.0f, \"operation\": \"%s\", \"ms\": %.4f, \"gbs\": %.1f, \"copy_gbs\": %.1f, \"share\": %.3f}\n", p->name, b->type, (double)all.entries, operation[op], 1e3 * best, gbs, rate, gbs / rate);
    fflush(b->out);
  }
  PetscCall(PetscFree(all.row));
  PetscCall(PetscFree(boundary.row));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Copies(PetscLogStage stage, double *copies)
{
  static const char *const names[] = {"VecGPUCopyTo", "VecGPUCopyFrom", "VecCUDACopyTo", "VecCUDACopyFrom"};
  PetscEventPerfInfo       info;
  PetscLogEvent            event;

  PetscFunctionBeginUser;
  *copies = 0;
  for (int k = 0; k < 4; k++) {
    PetscCall(PetscLogEventGetId(names[k], &event));
    if (event < 0) continue;
    PetscCall(PetscLogEventGetPerfInfo(stage, event, &info));
    *copies += info.count;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Elements(const Bench *b, const char parts[], const char name[], PetscInt n, PetscInt corners)
{
  Problem p;
  Mat     A       = NULL;
  double  pattern = 1e30;

  PetscFunctionBeginUser;
  PetscCall(ProblemMake(name, n, corners, &p));
  for (PetscInt k = 0; k < b->patterns; k++) { /* the first loads kernels */
    double t = 0;

    PetscCall(MatDestroy(&A));
    PetscCall(PatternMake(b, &p, &A, &t));
    pattern = PetscMin(pattern, t);
  }
  if (strstr(parts, "assembly")) PetscCall(Assembly(b, &p, pattern, A));
  else if (strstr(parts, "inplace")) PetscCall(MatSetValuesCOO(A, p.v, INSERT_VALUES));
  if (strstr(parts, "inplace")) PetscCall(InPlace(b, &p, A));
  if (strstr(parts, "newton")) PetscCall(Newton(b, &p, A));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree3(p.i, p.j, p.v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Bench       b        = {.out = stdout, .rounds = 10, .patterns = 2, .steps = 4};
  char        type[64] = "gpucsr", master[16] = "host", parts[64] = "assembly,inplace", file[PETSC_MAX_PATH_LEN] = "";
  PetscInt    n[2] = {100, 128}, cells = 32;
  PetscBool   set;
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin()); /* counts copies */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_master", master, sizeof(master), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-parts", parts, sizeof(parts), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-points", &n[0], NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-grid", &n[1], NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-cells", &cells, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &b.rounds, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-patterns", &b.patterns, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &b.steps, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-variable", &b.variable, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", file, sizeof(file), &set));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (set && !rank) b.out = fopen(file, "a");
  PetscCheck(b.out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot write %s", file);
  b.type   = type;
  b.master = master;
  PetscCall(VecCreate(PETSC_COMM_SELF, &b.small));
  PetscCall(VecSetSizes(b.small, 256, PETSC_DECIDE));
  PetscCall(VecSetFromOptions(b.small));
  PetscCall(VecSet(b.small, 1.0));
  for (int k = 0; k < 2; k++)
    if (n[k] > 1) PetscCall(Elements(&b, parts, k ? "grid27" : "p1", n[k], k ? 8 : 4));
  if (strstr(parts, "stokes")) PetscCall(Stokes(&b, cells));
  PetscCall(VecDestroy(&b.small));
  if (set && !rank) fclose(b.out);
  PetscCall(PetscFinalize());
  return 0;
}
