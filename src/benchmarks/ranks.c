static char help[] = "Products and Jacobi CG over ranks, on the matrix type of your choice.\n\n";

/*
    mpiexec -n 2 ranks -mat_type gpucsr -vec_type gpu -dll_append libpetscgpucsr.so
    mpiexec -n 2 ranks -mat_type aijcusparse -vec_type cuda -use_gpu_aware_mpi 0                in a PETSc built with CUDA
    ranks [-cases lognormal27_64,...] [-file NAME,...] [-file_balance entries|rows] [-ksp gpucg,cg] [-o FILE] [-id TEXT] [-repeats 5].

  A plain PETSc program without calls of the library. The cases lognormal7_N, lognormal27_N and elastic_N (spd.h) have N points an edge, divided into slabs. convection7_N is lognormal7_N plus a flow
  along all three axes (upwind, unsymmetric). mesh_N is a Delaunay mesh (mesh.h) of N thousand random points in a cube, ordered by Hilbert's curve, 15 entries a row. A case ending in x
  (lognormal27_128x) is for weak scaling: each rank has a cube of N points an edge, and the name gets the number of ranks. Files are PETSc binary, divided by entries, for products only. gram:FILE is X^T X of the X in the file.
  A product: the mean time of many in succession, on the slowest rank, result on the device; the first is compared with MATAIJ's. An inner product: the same. An iteration: the time of KSPSolve() to
  1e-8 over its iterations, b all ones, x starts at 0. Medians.

  -o FILE gets one JSON object a line, times in microseconds:
    ranks   matrix, rows, nnz, ranks, mat_type, vec_type, petsc, id, setup_us (conversion and first product), imbalance (entries of a rank, most over mean), product_us, transpose_us, dot_us, error (of both, over its bound).
            For each method of -ksp also ksp, iterations, iteration_us, solve_us, reason.
*/
#include <petscksp.h>
#include <petsctime.h>
#include "problems/spd.h"

#include "problems/mesh.h"

static PetscMPIInt rank, size;

static int Less(const void *a, const void *b)
{
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* Of so many random points, each rank as many rows */
static PetscErrorCode AssembleMesh(PetscInt n, Mat *A)
{
  const double edge[3] = {1, 1, 1};
  PetscInt     rs, re, m = PETSC_DECIDE, *inside, *outside, at[MESH_PLANES];
  int64_t     *begin;
  int32_t     *col;
  double      *val;
  Mesh         mesh;

  PetscFunctionBeginUser;
  PetscCall(MeshCreate(3, (int)n, edge, 1, &mesh));
  PetscCall(MeshAssemble(&mesh, &begin, &col, &val));
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &m, &n));
  PetscCallMPI(MPI_Scan(&m, &re, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  rs = re - m;
  PetscCall(PetscCalloc2(m, &inside, m, &outside));
  for (PetscInt r = rs; r < re; r++)
    for (int64_t e = begin[r]; e < begin[r + 1]; e++) ++*(col[e] >= rs && col[e] < re ? &inside[r - rs] : &outside[r - rs]);
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, m, m, n, n));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*A, 0, inside));
  PetscCall(MatMPIAIJSetPreallocation(*A, 0, inside, 0, outside));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt count = (PetscInt)(begin[r + 1] - begin[r]);

    for (PetscInt e = 0; e < count; e++) at[e] = col[begin[r] + e];
    PetscCall(MatSetValues(*A, 1, &r, count, at, val + begin[r], INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscCall(PetscFree2(inside, outside));
  free(begin);
  free(col);
  free(val);
  PetscCall(MeshDestroy(&mesh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds to a row of lognormal7 a flow of unit speed along all axes, towards larger numbers: a point has what comes from the one before it */
static void Convect(PetscInt r, PetscInt count, const int32_t col[], double val[])
{
  for (PetscInt k = 0; k < count; k++) val[k] += col[k] == r ? 3 : col[k] < r ? -1 : 0;
}

/* name becomes the record's */
static PetscErrorCode Assemble(char name[], size_t len, Mat *A)
{
  static const char *const words[] = {"lognormal7_%d%c", "lognormal27_%d%c", "elastic_%d%c", "convection7_%d%c"};
  SPD                      s       = {LOGNORMAL7, 0, 0, 0, NULL};
  PetscInt                 n, rs, re;
  int32_t                  col[SPD_LONGEST];
  double                   val[SPD_LONGEST], *table;
  char                     weak = 0;
  PetscBool                flow = PETSC_FALSE;

  PetscFunctionBeginUser;
  if (sscanf(name, "mesh_%d", &s.m) == 1 && s.m >= 1 && s.m <= 10000) {
    PetscCall(AssembleMesh(1000 * s.m, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 4; k++)
    if (sscanf(name, words[k], &s.m, &weak) >= 1) {
      flow   = (PetscBool)(k == 3);
      s.kind = flow ? LOGNORMAL7 : (SPDKind)k;
    }
  PetscCheck(s.m >= 2 && s.m <= 400 && (!weak || weak == 'x'), PETSC_COMM_WORLD, PETSC_ERR_ARG_UNKNOWN_TYPE, "-cases %s: must be lognormal7_N, lognormal27_N, elastic_N or convection7_N, N points an edge from 2 to 400, or one of these and an x, or mesh_N, N thousand points", name);
  if (weak) {
    char ranks[16];

    s.depth = s.m * size;
    PetscCall(PetscSNPrintf(ranks, sizeof(ranks), "%d", (int)size));
    PetscCall(PetscStrlcat(name, ranks, len));
  }
  n = s.m * s.m * SPDDepth(&s) * (s.kind == ELASTIC ? 3 : 1);
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, MATAIJ));
  n = s.kind == LOGNORMAL7 ? 7 : s.kind == LOGNORMAL27 ? 27 : 81;
  PetscCall(MatSeqAIJSetPreallocation(*A, n, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, n, NULL, n * 2 / 3, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  PetscCall(SPDTable(&s, (int)rs, (int)re, &table));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt count = SPDRow(&s, (int)r, col, val);

    if (flow) Convect(r, count, col, val);
    PetscCall(MatSetValues(*A, 1, &r, count, col, val, INSERT_VALUES));
  }
  PetscCall(PetscFree(table));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  if (!flow) PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The number of this rank's rows: ranks share entries equally, and a row counts as one entry more. Lengths follow four numbers at the beginning of a PETSc binary file */
static PetscErrorCode Share(PetscViewer viewer, PetscInt *mine, PetscInt *n)
{
  PetscInt head[4], *length, first = -1, last = -1;
  double   all = 0, sum = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerBinaryRead(viewer, head, 4, NULL, PETSC_INT));
  PetscCall(PetscMalloc1(head[1], &length));
  PetscCall(PetscViewerBinaryRead(viewer, length, head[1], NULL, PETSC_INT));
  for (PetscInt r = 0; r < head[1]; r++) all += 1 + length[r];
  for (PetscInt r = 0; r <= head[1]; r++) { /* the first row behind which there is the share of the ranks before */
    if (first < 0 && sum >= all / size * rank) first = r;
    if (last < 0 && (sum >= all / size * (rank + 1) || r == head[1])) last = r;
    if (r < head[1]) sum += 1 + length[r];
  }
  if (rank == size - 1) last = head[1];
  PetscCall(PetscFree(length));
  *mine = last - first;
  *n    = head[1] == head[2] ? *mine : PETSC_DECIDE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* X^T X of the matrix X in a file: which columns have entries in common, and how many. Every rank computes all of it, and keeps rows with its share of the entries */
static PetscErrorCode LoadGram(const char name[], Mat *A)
{
  Mat             X, G, mine;
  IS              rows, columns;
  PetscViewer     viewer;
  PetscInt        n, from[2];
  const PetscInt *begin, *col;
  PetscBool       done;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, name, FILE_MODE_READ, &viewer));
  PetscCall(MatCreate(PETSC_COMM_SELF, &X));
  PetscCall(MatSetType(X, MATSEQAIJ));
  PetscCall(MatLoad(X, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(MatTransposeMatMult(X, X, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &G));
  PetscCall(MatDestroy(&X));
  PetscCall(MatGetRowIJ(G, 0, PETSC_FALSE, PETSC_FALSE, &n, &begin, &col, &done));
  for (int k = 0; k < 2; k++)
    for (from[k] = 0; from[k] < n && (double)begin[from[k]] < (double)begin[n] / size * (rank + k); from[k]++) {
    }
  PetscCall(MatRestoreRowIJ(G, 0, PETSC_FALSE, PETSC_FALSE, &n, &begin, &col, &done));
  PetscCall(MatGetSize(G, &n, NULL));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, from[1] - from[0], from[0], 1, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, n, 0, 1, &columns));
  PetscCall(MatCreateSubMatrix(G, rows, columns, MAT_INITIAL_MATRIX, &mine));
  PetscCall(MatDestroy(&G));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&columns));
  PetscCall(MatCreateMPIMatConcatenateSeqMat(PETSC_COMM_WORLD, mine, from[1] - from[0], MAT_INITIAL_MATRIX, A));
  PetscCall(MatDestroy(&mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* name becomes what follows the last slash */
static PetscErrorCode Load(char name[], size_t len, Mat *A)
{
  PetscInt    m = PETSC_DECIDE, n = PETSC_DECIDE;
  char        balance[16] = "entries", *slash;
  PetscBool   rows, gram;
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncmp(name, "gram:", 5, &gram));
  if (gram) {
    PetscCall(LoadGram(name + 5, A));
    PetscCall(PetscStrrchr(name, '/', &slash));
    if (slash != name) PetscCall(PetscMemmove(name + 5, slash, strlen(slash) + 1));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-file_balance", balance, sizeof(balance), NULL));
  PetscCall(PetscStrcmp(balance, "rows", &rows));
  if (!rows) {
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_READ, &viewer));
    PetscCall(Share(viewer, &m, &n));
    PetscCall(PetscViewerDestroy(&viewer));
  }
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSetSizes(*A, m, n, PETSC_DECIDE, PETSC_DECIDE));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(*A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscStrrchr(name, '/', &slash));
  if (slash != name) PetscCall(PetscMemmove(name, slash, strlen(slash) + 1));
  (void)len;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of all ranks the slowest */
static PetscErrorCode Seconds(PetscLogDouble t0, double *t)
{
  PetscLogDouble t1;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&t1));
  *t = t1 - t0;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, t, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(Mat A, PetscBool transpose, Vec x, Vec y)
{
  PetscFunctionBeginUser;
  if (transpose) PetscCall(MatMultTranspose(A, x, y));
  else PetscCall(MatMult(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Microseconds of a product */
static PetscErrorCode Time(Mat A, PetscBool transpose, int repeats, Vec x, Vec y, double *us)
{
  double         t[64] = {0};
  PetscReal      norm;
  PetscLogDouble t0;
  int            many = 10;

  PetscFunctionBeginUser;
  for (int k = -2; k < repeats; k++) {
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    PetscCall(PetscTime(&t0));
    for (int q = 0; q < many; q++) PetscCall(Product(A, transpose, x, y));
    PetscCall(VecNorm(y, NORM_INFINITY, &norm)); /* waits for the device */
    PetscCall(Seconds(t0, &t[PetscMax(k, 0)]));
    if (k == -2) continue; /* the first product's set-up */
    if (k == -1) many = (int)PetscMin(2000, PetscMax(20, 0.1 / t[0] * many));
    else t[k] *= 1e6 / many;
  }
  qsort(t, (size_t)repeats, sizeof(*t), Less);
  *us = t[repeats / 2];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Microseconds of an inner product, whose result the host has each time */
static PetscErrorCode TimeDot(int repeats, Vec x, double *us)
{
  const int      many  = 200;
  double         t[64] = {0};
  PetscScalar    dot;
  PetscLogDouble t0;
  Vec            y;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecSet(y, 1.0));
  for (int k = -1; k < repeats; k++) {
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    PetscCall(PetscTime(&t0));
    for (int q = 0; q < many; q++) PetscCall(VecDot(x, y, &dot));
    PetscCall(Seconds(t0, &t[PetscMax(k, 0)]));
  }
  qsort(t, (size_t)repeats, sizeof(*t), Less);
  *us = 1e6 * t[repeats / 2] / many;
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers from 1 to 2 */
static PetscErrorCode Fill(Vec x)
{
  PetscScalar *a;
  PetscInt     rs, re;

  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(VecGetArray(x, &a));
  for (PetscInt r = rs; r < re; r++) a[r - rs] = 1 + (double)(r % 1013) / 1013;
  PetscCall(VecRestoreArray(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of the longest row or column */
static PetscErrorCode Longest(Mat R, PetscInt *longest)
{
  PetscInt        M, N, rs, re, count, *column;
  const PetscInt *col;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(R, &M, &N));
  PetscCall(MatGetOwnershipRange(R, &rs, &re));
  PetscCall(PetscCalloc1(N + 1, &column));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatGetRow(R, r, &count, &col, NULL));
    column[N] = PetscMax(column[N], count);
    for (PetscInt k = 0; k < count; k++) column[col[k]]++;
    PetscCall(MatRestoreRow(R, r, &count, &col, NULL));
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, column, N, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  for (PetscInt c = 0; c < N; c++) column[N] = PetscMax(column[N], column[c]);
  PetscCallMPI(MPI_Allreduce(&column[N], longest, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  PetscCall(PetscFree(column));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The largest difference to MATAIJ's products, over c eps times the largest sum of absolute products in a row, or in a column. c is 32, or the root of the longest row or column. MATAIJ adds half a million entries of a column one after the other, with a random growth of the rounding error. y has the rows' size, x the columns'
*/
static PetscErrorCode Compare(Mat A, Mat R, PetscInt longest, Vec x, Vec y, double *error)
{
  Vec       rx, ry;
  PetscReal norm, bound, columns;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(R, &rx, &ry));
  PetscCall(MatNorm(R, NORM_INFINITY, &bound));
  PetscCall(MatNorm(R, NORM_1, &columns));
  bound  = PetscMax(bound, columns);
  *error = 0;

  for (int k = 0; k < 2; k++) {
    const Vec          ours = k ? x : y, theirs = k ? rx : ry;
    PetscScalar       *to;
    const PetscScalar *from;
    PetscInt           n;

    PetscCall(Fill(k ? y : x));
    PetscCall(Fill(k ? ry : rx));
    PetscCall(Product(A, (PetscBool)k, k ? y : x, ours));
    PetscCall(Product(R, (PetscBool)k, k ? ry : rx, theirs));
    PetscCall(VecGetLocalSize(ours, &n));
    PetscCall(VecGetArrayRead(ours, &from));
    PetscCall(VecGetArray(theirs, &to));
    for (PetscInt r = 0; r < n; r++) to[r] -= from[r];
    PetscCall(VecRestoreArray(theirs, &to));
    PetscCall(VecRestoreArrayRead(ours, &from));
    PetscCall(VecNorm(theirs, NORM_INFINITY, &norm));
    *error = PetscMax(*error, (double)(norm / (PetscMax(32, PetscSqrtReal((PetscReal)longest)) * PETSC_MACHINE_EPSILON * 2 * bound))); /* entries of x are below 2 */
  }
  PetscCall(VecDestroy(&rx));
  PetscCall(VecDestroy(&ry));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Mat A, const char type[], int repeats, Vec x, Vec b, FILE *out)
{
  KSP                ksp;
  PC                 pc;
  PetscInt           its;
  KSPConvergedReason reason;
  PetscLogDouble     t0;
  PetscReal          norm;
  double             t[64] = {0};

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 20000));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(VecSet(b, 1.0));
  for (int k = -1; k < repeats; k++) {
    PetscCall(VecSet(x, 0.0));
    PetscCall(VecNorm(x, NORM_2, &norm));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    PetscCall(PetscTime(&t0));
    PetscCall(KSPSolve(ksp, b, x)); /* ends with a norm, so the device is done */
    PetscCall(Seconds(t0, &t[PetscMax(k, 0)]));
  }
  qsort(t, (size_t)repeats, sizeof(*t), Less);
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  %s %8.2f (%d, %s)", type, 1e6 * t[repeats / 2] / PetscMax(1, its), (int)its, KSPConvergedReasons[reason]));
  if (out) fprintf(out, ", \"ksp\": \"%s\", \"iterations\": %d, \"iteration_us\": %.10g, \"solve_us\": %.10g, \"reason\": \"%s\"", type, (int)its, 1e6 * t[repeats / 2] / PetscMax(1, its), 1e6 * t[repeats / 2], KSPConvergedReasons[reason]);
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(const char which[], PetscBool file, const char type[], const char vtype[], char *ksp[], PetscInt nksp, int repeats, FILE *out, const char id[])
{
  Mat            R, A;
  Vec            x, y;
  MatInfo        info, most;
  double         us[2], dot = 0, error = 0, setup, imbalance;
  PetscReal      norm;
  PetscLogDouble t0;
  PetscInt       m, longest = 0;
  MatType        mattype;
  VecType        vectype;
  char           version[128], name[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(name, which, sizeof(name)));
  if (file) {
    PetscCall(Load(name, sizeof(name), &R));
    nksp = 0;
  } else PetscCall(Assemble(name, sizeof(name), &R));
  PetscCall(MatGetInfo(R, MAT_GLOBAL_SUM, &info));
  PetscCall(MatGetInfo(R, MAT_GLOBAL_MAX, &most));
  imbalance = (double)most.nz_used * size / PetscMax(1, (double)info.nz_used);
  PetscCall(MatGetSize(R, &m, NULL));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&t0));
  PetscCall(MatConvert(R, type, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatSetOptionsPrefix(A, NULL));
  PetscCall(MatSetFromOptions(A));
  if (vtype[0]) PetscCall(MatSetVecType(A, vtype));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecNorm(y, NORM_2, &norm)); /* waits for the device */
  PetscCall(Seconds(t0, &setup));
  if (file) PetscCall(Longest(R, &longest));
  PetscCall(Compare(A, R, longest, x, y, &error));
  PetscCheck(error <= 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: products differ from MATAIJ's by %g times the bound", name, error);
  for (int k = 0; k < 2; k++) PetscCall(Time(A, (PetscBool)k, repeats, k ? y : x, k ? x : y, &us[k]));
  PetscCall(TimeDot(repeats, x, &dot));
  PetscCall(MatGetType(A, &mattype));
  PetscCall(VecGetType(x, &vectype));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-16s %d ranks  %-14s %-9s  set-up %9.0f us  A x %8.2f us  A^T x %8.2f us  x'y %6.2f us  an iteration, us:", name, (int)size, mattype, vectype, 1e6 * setup, us[0], us[1], dot));
  PetscCall(PetscGetVersion(version, sizeof(version)));
  for (PetscInt k = 0; k < PetscMax(1, nksp); k++) {
    if (out)
      fprintf(out, "{\"record\": \"ranks\", \"matrix\": \"%s\", \"rows\": %d, \"nnz\": %.0f, \"ranks\": %d, \"mat_type\": \"%s\", \"vec_type\": \"%s\", \"petsc\": \"%.60s\", \"id\": \"%s\", \"setup_us\": %.10g, \"imbalance\": %.4g, \"product_us\": %.10g, \"transpose_us\": %.10g, \"dot_us\": %.10g, \"error\": %.3g", name, (int)m,
              info.nz_used, (int)size, mattype, vectype, version, id, 1e6 * setup, imbalance, us[0], us[1], dot, error);
    if (nksp) PetscCall(Solve(A, ksp[k], repeats, x, y, out));
    if (out) fprintf(out, "}\n");
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char       *cases[16], *files[16], *ksp[4], type[64] = MATAIJ, vtype[64] = "", name[PETSC_MAX_PATH_LEN] = "", id[64] = "unknown";
  const char *usual[] = {"lognormal27_64", "lognormal27_128", "lognormal27_200", "lognormal27_256", "lognormal7_200", "elastic_64", "mesh_700", "lognormal27_128x"};
  PetscInt    n = 16, nfiles = 16, nksp = 4, repeats = 5;
  PetscBool   set, fileset, kspset;
  FILE       *out = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCheck(sizeof(PetscInt) == sizeof(int32_t), PETSC_COMM_WORLD, PETSC_ERR_SUP, "This program needs a PETSc of 32-bit indices");
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", vtype, sizeof(vtype), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", name, sizeof(name), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-id", id, sizeof(id), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", cases, &n, &set));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-file", files, &nfiles, &fileset));
  if (!fileset) nfiles = 0;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-ksp", ksp, &nksp, &kspset));
  PetscCheck(repeats >= 1 && repeats <= 64, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-repeats must be from 1 to 64");
  if (!set)
    for (n = 0; n < (fileset ? 0 : (PetscInt)PETSC_STATIC_ARRAY_LENGTH(usual)); n++) PetscCall(PetscStrallocpy(usual[n], &cases[n]));
  if (!kspset) nksp = 0;
  if (name[0] && !rank) {
    out = fopen(name, "a");
    PetscCheck(out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-o %s: cannot be written", name);
  }
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(Case(cases[k], PETSC_FALSE, type, vtype, ksp, nksp, (int)repeats, out, id));
    PetscCall(PetscFree(cases[k]));
  }
  for (PetscInt k = 0; k < nfiles; k++) {
    PetscCall(Case(files[k], PETSC_TRUE, type, vtype, ksp, nksp, (int)repeats, out, id));
    PetscCall(PetscFree(files[k]));
  }
  for (PetscInt k = 0; k < nksp; k++) PetscCall(PetscFree(ksp[k]));
  if (out) fclose(out);
  PetscCall(PetscFinalize());
  return 0;
}
