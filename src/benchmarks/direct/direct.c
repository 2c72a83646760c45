static char help[] = "Direct solvers of PETSc on generated matrices: analysis, factorization, refactorization, solve.\n\n";

/*
    direct -cases lap7_50,st27_40,elastic_30,conv2_1000,stokes_256 -solver cudss,gpucsr -mat_type gpucsr -vec_type gpu -dll_append libpetscgpucsr.so
    mpiexec -n 16 direct -cases lap7_50 -solver mumps,superlu_dist
    direct -cases lap7_50 -solver petsc

  A plain PETSc program without calls of the library. A case NAME_N: a cube with N points an edge of the 7-point (lap7_) or 27-point (st27_) Laplacian, 7 or 27 points with lognormal
  coefficients (lognormal7_, lognormal27_), or three displacements a point (elastic_); a cube of N cells an edge with three displacements at each of the 27 points of a cell, quadratic elements
  (quadratic_); a square with N points an edge of upwind convection and diffusion (conv2_) or with N by N cells of the
  Stokes equations, velocities on edges and a little compressible (stokes_); or a file in PETSc binary, on one process. -cholesky factors symmetric matrices as symmetric. With -spd PETSc knows
  which matrices are definite. b is random.

  A short row each, times in seconds of the slowest rank, medians of -repeats:
    case, rows, nonzeros, solver, ranks: analysis, factorization, refactorization (new values, same pattern; 0 with -repeats 0), solve, |b - A x| / (|A| |x| + |b|) in the maximum norm, nonzeros of the
    factors, gigabytes of the solver on all ranks: as it estimates them on the device (cudss), as used for the factorization (mumps), 0 where it does not say
*/
#include <petscksp.h>
#include <petsctime.h>
#include <string.h>
#include "../problems/files.h"
#include "../problems/spd.h"

typedef struct {
  PetscInt     n;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;
  PetscBool    symmetric, definite;
} CSR;

static void Put(CSR *c, int64_t *at, PetscInt column, PetscScalar v)
{
  c->j[*at]     = column;
  c->a[(*at)++] = v;
}

static PetscErrorCode Room(CSR *c, PetscInt n, PetscInt each)
{
  PetscFunctionBeginUser;
  c->n = n;
  PetscCall(PetscMalloc1(n + 1, &c->i));
  PetscCall(PetscMalloc2((size_t)n * (size_t)each, &c->j, (size_t)n * (size_t)each, &c->a));
  c->i[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -div(grad u) + w . grad u, upwind, on m by m points, with a wind that turns and is as strong as 20 diffusions of the mesh */
static PetscErrorCode Convection2(PetscInt m, CSR *c)
{
  int64_t at = 0;

  PetscFunctionBeginUser;
  PetscCall(Room(c, m * m, 5));
  for (PetscInt r = 0; r < m * m; r++) {
    const PetscReal x = (PetscReal)(r % m) / (PetscReal)m - 0.5, y = (PetscReal)(r / m) / (PetscReal)m - 0.5, u = 40 * y, v = -40 * x;
    const PetscReal w[4] = {-1 - PetscMax(v, 0), -1 - PetscMax(u, 0), -1 + PetscMin(u, 0), -1 + PetscMin(v, 0)}; /* below, left, right, above */

    if (r >= m) Put(c, &at, r - m, w[0]);
    if (r % m) Put(c, &at, r - 1, w[1]);
    Put(c, &at, r, -(w[0] + w[1] + w[2] + w[3]));
    if ((r + 1) % m) Put(c, &at, r + 1, w[2]);
    if (r + m < m * m) Put(c, &at, r + m, w[3]);
    c->i[r + 1] = (int32_t)at;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* [L B^T; B -1e-8] of m by m cells: u on inner vertical edges, v on inner horizontal ones, p in cells. Columns ascend because u, v and p follow each other */
static PetscErrorCode Stokes(PetscInt m, CSR *c)
{
  const PetscInt nu = (m - 1) * m, nv = nu, wide[2] = {m - 1, m}, high[2] = {m, m - 1};
  int64_t        at = 0;

  PetscFunctionBeginUser;
  PetscCall(Room(c, nu + nv + m * m, 7));
  for (PetscInt f = 0; f < 2; f++)
    for (PetscInt y = 0; y < high[f]; y++)
      for (PetscInt x = 0; x < wide[f]; x++) {
        const PetscInt r = (f ? nu : 0) + y * wide[f] + x, p = nu + nv + y * m + x;

        if (y) Put(c, &at, r - wide[f], -1);
        if (x) Put(c, &at, r - 1, -1);
        Put(c, &at, r, 4);
        if (x + 1 < wide[f]) Put(c, &at, r + 1, -1);
        if (y + 1 < high[f]) Put(c, &at, r + wide[f], -1);
        Put(c, &at, p, -1);
        Put(c, &at, f ? p + m : p + 1, 1);
        c->i[r + 1] = (int32_t)at;
      }
  for (PetscInt y = 0; y < m; y++)
    for (PetscInt x = 0; x < m; x++) {
      const PetscInt u = y * (m - 1) + x, v = nu + y * m + x, r = nu + nv + y * m + x;

      if (x) Put(c, &at, u - 1, 1);
      if (x + 1 < m) Put(c, &at, u, -1);
      if (y) Put(c, &at, v - m, 1);
      if (y + 1 < m) Put(c, &at, v, -1);
      Put(c, &at, r, -1e-8);
      c->i[r + 1] = (int32_t)at;
    }
  c->symmetric = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Integrals over one edge of length 1 of a quadratic element: products of functions, of derivatives, and of the row's derivative with the column's function */
typedef enum {
  MASS,
  STIFFNESS,
  MIXED
} Integral;

/* An integral for points p and q of a line of m elements, of which each has points 2 k, 2 k + 1 and 2 k + 2 */
static PetscReal Line(Integral what, PetscInt m, PetscInt p, PetscInt q)
{
  static const PetscReal element[3][3][3] = {
    {{4. / 30, 2. / 30, -1. / 30}, {2. / 30, 16. / 30, 2. / 30}, {-1. / 30, 2. / 30, 4. / 30}},
    {{7. / 3, -8. / 3, 1. / 3},    {-8. / 3, 16. / 3, -8. / 3},  {1. / 3, -8. / 3, 7. / 3}   },
    {{-3. / 6, -4. / 6, 1. / 6},   {4. / 6, 0, -4. / 6},         {-1. / 6, 4. / 6, 3. / 6}   }
  };
  PetscReal sum = 0;

  for (PetscInt e = PetscMax(0, (PetscMax(p, q) - 1) / 2); e < m && 2 * e <= PetscMin(p, q); e++) sum += element[what][p - 2 * e][q - 2 * e];
  return sum;
}

/* Linear elasticity, Poisson's ratio 0.3 and shear modulus 1, on m cells an edge; the side z = 0 is held */
static PetscErrorCode Quadratic(PetscInt m, CSR *c)
{
  const PetscInt  n      = 2 * m + 1;
  const PetscReal lambda = 1.5;
  int64_t         at     = 0;

  PetscFunctionBeginUser;
  PetscCall(Room(c, 3 * n * n * (n - 1), 375));
  for (PetscInt r = 0; r < c->n; r++) {
    const PetscInt a = r % 3, p[3] = {r / 3 % n, r / 3 / n % n, r / 3 / n / n + 1};

    for (PetscInt z = PetscMax(1, p[2] - 2); z <= PetscMin(n - 1, p[2] + 2); z++)
      for (PetscInt y = PetscMax(0, p[1] - 2); y <= PetscMin(n - 1, p[1] + 2); y++)
        for (PetscInt x = PetscMax(0, p[0] - 2); x <= PetscMin(n - 1, p[0] + 2); x++) {
          const PetscInt q[3] = {x, y, z};
          PetscReal      line[3][4], D[3][3], diagonal; /* D: integrals of derivatives by the row's and the column's direction */

          for (int d = 0; d < 3; d++) {
            for (int k = 0; k < 3; k++) line[d][k] = Line((Integral)k, m, p[d], q[d]);
            line[d][3] = Line(MIXED, m, q[d], p[d]);
          }
          if (PetscAbsReal(line[0][MASS] * line[1][MASS] * line[2][MASS]) < 1e-6) continue; /* no element has both */
          for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
              D[i][j] = 1;
              for (int d = 0; d < 3; d++) D[i][j] *= line[d][d == i ? (i == j ? STIFFNESS : MIXED) : d == j ? 3 : MASS];
            }
          diagonal = D[0][0] + D[1][1] + D[2][2];
          for (int b = 0; b < 3; b++) Put(c, &at, 3 * ((z - 1) * n * n + y * n + x) + b, lambda * D[a][b] + D[b][a] + (a == b ? diagonal : 0));
        }
    PetscCheck(at <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-cases quadratic_%" PetscInt_FMT ": more than 2147483647 entries", m);
    c->i[r + 1] = (int32_t)at;
  }
  c->symmetric = c->definite = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Generate(const char name[], CSR *c)
{
  static const char *const varying[] = {"lognormal7_%d", "lognormal27_%d", "elastic_%d"}; /* in the order of SPDKind */
  Synthetic                s         = {name, STENCIL7, 0, 1, 0, 0, 0, 0, 0, 0};
  SPD                      spd       = {LOGNORMAL7, 0, 0, 0, NULL};
  int                      m = 0, n = 0;

  PetscFunctionBeginUser;
  *c = (CSR){0};
  if (sscanf(name, "conv2_%d", &m) == 1) {
    PetscCall(Convection2(m, c));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (sscanf(name, "stokes_%d", &m) == 1) {
    PetscCall(Stokes(m, c));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (sscanf(name, "quadratic_%d", &m) == 1) {
    PetscCall(Quadratic(m, c));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  c->symmetric = c->definite = PETSC_TRUE;
  for (int k = 0; k < 3; k++) {
    if (sscanf(name, varying[k], &spd.m) != 1) continue;
    spd.kind = (SPDKind)k;
    PetscCall(SPDCreate(&spd, &m, &c->i, &c->j, &c->a));
    c->n = m;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (sscanf(name, "lap7_%d", &s.m) != 1) {
    s.kind = STENCIL27;
    PetscCheck(sscanf(name, "st27_%d", &s.m) == 1, PETSC_COMM_WORLD, PETSC_ERR_ARG_UNKNOWN_TYPE, "-cases %s: must be lap7_N, st27_N, lognormal7_N, lognormal27_N, elastic_N, quadratic_N, conv2_N, stokes_N, or a file .petsc", name);
  }
  PetscCall(SyntheticCreate(&s, 1, &m, &n, &c->i, &c->j, &c->a));
  c->n = m;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each rank generates all and keeps its rows */
static PetscErrorCode Create(const char name[], Mat *A, PetscBool *symmetric, PetscBool *definite)
{
  CSR         c;
  PetscMPIInt size;
  PetscInt    rows, begin, *i;
  PetscBool   file;

  PetscFunctionBeginUser;
  *symmetric = *definite = PETSC_FALSE;
  PetscCall(PetscStrendswith(name, ".petsc", &file));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(!file || size == 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "-cases %s: files are for one process", name);
  if (file) {
    PetscCall(BenchLoad(name, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Generate(name, &c));
  *symmetric = c.symmetric;
  *definite  = c.definite;
  rows       = PETSC_DECIDE;
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &rows, &c.n));
  PetscCallMPI(MPI_Scan(&rows, &begin, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  begin -= rows;
  PetscCall(PetscMalloc1(rows + 1, &i));
  for (PetscInt r = 0; r <= rows; r++) i[r] = c.i[begin + r] - c.i[begin];
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, rows, rows, c.n, c.n));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, i, c.j + c.i[begin], c.a + c.i[begin]));
  PetscCall(MatMPIAIJSetPreallocationCSR(*A, i, c.j + c.i[begin], c.a + c.i[begin]));
  PetscCall(PetscFree(i));
  PetscCall(SyntheticDestroy(&c.i, &c.j, &c.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the slowest rank, once all have arrived */
static PetscErrorCode Lap(PetscLogDouble *last, double *seconds)
{
  PetscLogDouble now;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&now));
  *seconds = now - *last;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, seconds, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
  PetscCall(PetscTime(last));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Less(const void *a, const void *b)
{
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static double Median(PetscInt n, double t[])
{
  qsort(t, (size_t)n, sizeof(t[0]), Less);
  return t[n / 2];
}

static PetscErrorCode Symbolic(Mat A, Mat F, PetscBool cholesky, const char solver[], const MatFactorInfo *info)
{
  IS        row = NULL, col = NULL;
  PetscBool own;

  PetscFunctionBeginUser;
  PetscCall(MatFactorGetCanUseOrdering(F, &own));
  PetscCall(MatGetOrdering(A, own && (!strcmp(solver, "petsc") || !strcmp(solver, "gpucsr")) ? MATORDERINGND : MATORDERINGEXTERNAL, &row, &col));
  if (cholesky) PetscCall(MatCholeskyFactorSymbolic(F, A, row, info));
  else PetscCall(MatLUFactorSymbolic(F, A, row, col, info));
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(Mat A, Mat F, PetscBool cholesky, const MatFactorInfo *info)
{
  PetscFunctionBeginUser;
  if (cholesky) PetscCall(MatCholeskyFactorNumeric(F, A, info));
  else PetscCall(MatLUFactorNumeric(F, A, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The backward error of x */
static PetscErrorCode Error(Mat A, Vec b, Vec x, double *error)
{
  Vec       r;
  PetscReal n[4];

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_INFINITY, &n[0]));
  PetscCall(VecNorm(x, NORM_INFINITY, &n[1]));
  PetscCall(VecNorm(b, NORM_INFINITY, &n[2]));
  PetscCall(MatNorm(A, NORM_INFINITY, &n[3]));
  *error = n[0] / (n[3] * n[1] + n[2]);
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Gigabytes(Mat F, const char solver[], const MatInfo *info, double *gigabytes)
{
  PetscFunctionBeginUser;
  *gigabytes = info->memory / 1e9;
#if defined(PETSC_HAVE_MUMPS)
  if (!strcmp(solver, MATSOLVERMUMPS)) {
    PetscInt megabytes;

    PetscCall(MatMumpsGetInfog(F, 22, &megabytes));
    *gigabytes = (double)megabytes / 1e3;
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(const char name[], Mat A, const char solver[], PetscBool cholesky, PetscInt repeats)
{
  Mat            F;
  Vec            x, b;
  MatFactorInfo  info;
  MatFactorError failed = MAT_FACTOR_NOERROR;
  MatInfo        minfo, finfo;
  PetscRandom    random;
  PetscLogDouble last;
  PetscReal      norm;
  PetscInt       n;
  PetscMPIInt    size;
  double         analysis, factor = 0, again[32] = {0}, solve[32] = {0}, error = 1, gigabytes;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(PetscRandomCreate(PETSC_COMM_WORLD, &random));
  PetscCall(VecSetRandom(b, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(MatMult(A, b, x)); /* the matrix is on its device */
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill      = 5;
  info.zeropivot = 100 * PETSC_MACHINE_EPSILON;
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&last));
  PetscCall(MatGetFactor(A, solver, cholesky ? MAT_FACTOR_CHOLESKY : MAT_FACTOR_LU, &F));
  PetscCall(Symbolic(A, F, cholesky, solver, &info));
  PetscCall(Lap(&last, &analysis));
  PetscCall(MatFactorGetError(F, &failed));
  if (!failed) PetscCall(Numeric(A, F, cholesky, &info));
  PetscCall(Lap(&last, &factor));
  PetscCall(MatFactorGetError(F, &failed));
  for (PetscInt k = 0; k < repeats && !failed; k++) {
    PetscCall(MatScale(A, 1.0 + 1e-3 * (PetscReal)(k % 2 ? -1 : 1)));
    PetscCall(MatMult(A, b, x));
    PetscCall(VecNorm(x, NORM_2, &norm)); /* the new values are on the device */
    PetscCall(PetscTime(&last));
    PetscCall(Numeric(A, F, cholesky, &info));
    PetscCall(Lap(&last, &again[k]));
    PetscCall(MatFactorGetError(F, &failed));
  }
  for (PetscInt k = 0; k <= PetscMax(1, repeats) && !failed; k++) {
    PetscCall(MatSolve(F, b, x));
    PetscCall(VecNorm(x, NORM_INFINITY, &norm));
    PetscCall(Lap(&last, &solve[PetscMax(0, k - 1)])); /* the first one warms up */
  }
  if (!failed) PetscCall(Error(A, b, x, &error));
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &minfo));
  PetscCall(MatGetInfo(F, MAT_GLOBAL_SUM, &finfo));
  PetscCall(Gigabytes(F, solver, &finfo, &gigabytes));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-18s %9" PetscInt_FMT " %10.0f %-12s %2d: ", name, n, minfo.nz_used, solver, (int)size));
  if (failed) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "factor error %d\n", (int)failed));
  else PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%9.4f %9.4f %9.4f %9.5f %.1e %.3e %.3f\n", analysis, factor, Median(repeats, again), Median(PetscMax(1, repeats), solve), error, (double)finfo.nz_used, gigabytes));
  PetscCall(MatDestroy(&F));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char     *cases[64], *solvers[8], type[64] = MATAIJ, vtype[64] = "";
  PetscInt  ncases = 64, nsolvers = 8, repeats = 3;
  PetscBool set, given, cholesky = PETSC_FALSE, spd = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", cases, &ncases, &set));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-solver", solvers, &nsolvers, &given));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", vtype, sizeof(vtype), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-cholesky", &cholesky, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-spd", &spd, NULL));
  PetscCheck(set && given && repeats >= 0 && repeats <= 31, PETSC_COMM_WORLD, PETSC_ERR_USER, "-cases NAME_N,... and -solver WORD,... are needed, and -repeats of 0 to 31");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "# case rows nonzeros solver ranks: analysis factorization refactorization solve error factor_nonzeros gigabytes\n"));
  for (PetscInt k = 0; k < ncases; k++) {
    for (PetscInt q = 0; q < nsolvers; q++) {
      Mat       A;
      PetscBool symmetric, definite;

      PetscCall(Create(cases[k], &A, &symmetric, &definite));
      if (symmetric) PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
      if (definite && spd) PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
      PetscCall(MatConvert(A, type, MAT_INPLACE_MATRIX, &A));
      if (vtype[0]) PetscCall(MatSetVecType(A, vtype));
      PetscCall(Measure(cases[k], A, solvers[q], (PetscBool)(cholesky && symmetric), repeats));
      PetscCall(MatDestroy(&A));
    }
    PetscCall(PetscFree(cases[k]));
  }
  for (PetscInt q = 0; q < nsolvers; q++) PetscCall(PetscFree(solvers[q]));
  PetscCall(PetscFinalize());
  return 0;
}
