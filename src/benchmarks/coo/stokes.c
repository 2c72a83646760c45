/*
  Stokes' equations in a cube, divided into slabs: GMRES with PCFIELDSPLIT by a Schur complement. By -element staggered, by finite differences on a staggered grid (velocities on faces, pressures in cells) with
  walls all around, and the identity in place of the Schur complement; or taylorhood.c. Of each rank all velocities come before all pressures, or with -interlaced the unknowns of a cell or point are
  neighbours; with -nest the matrix is a MATNEST. Options of the solver have the prefix stokes_. A line has
    stokes  type, element, ranks, unknowns, interlaced, nest, assembly_ms, setup_ms, solve_ms, iterations, residual, copies.
  solve_ms is the best of -rounds solves. copies counts copies of vectors over the bus in one solve.
*/
#include "coo.h"

static PetscInt FirstPlane(const StokesGrid *g, PetscMPIInt rank)
{
  return rank * (g->n / g->size) + PetscMin(rank, g->n % g->size);
}

/* The slab that a plane of cells is in */
void StokesOwner(const StokesGrid *g, PetscInt plane, PetscInt *first, PetscInt *planes)
{
  PetscMPIInt r = (PetscMPIInt)PetscMin(g->size - 1, plane / PetscMax(1, g->n / g->size));

  while (FirstPlane(g, r) > plane) r--;
  *first  = FirstPlane(g, r);
  *planes = FirstPlane(g, r + 1) - *first;
}

/* The number of unknown c of a cell: the velocity on its far face in direction c, or its pressure (3) */
static PetscInt Number(const StokesGrid *g, const PetscInt at[3], PetscInt c)
{
  const PetscInt plane = g->n * g->n;
  PetscInt       first, planes, cell, cells;

  StokesOwner(g, at[2], &first, &planes);
  cell  = (at[2] - first) * plane + at[1] * g->n + at[0];
  cells = planes * plane;
  return 4 * first * plane + (g->interlaced ? 4 * cell + c : c == 3 ? 3 * cells + cell : 3 * cell + c);
}

/* Is the face a wall, with velocity 0? */
static PetscBool IsWall(const StokesGrid *g, const PetscInt at[3], PetscInt c)
{
  return (PetscBool)(at[c] < 0 || at[c] == g->n - 1);
}

static PetscErrorCode VelocityRow(const StokesGrid *g, const PetscInt at[3], PetscInt c, Mat A)
{
  const PetscInt row = Number(g, at, c);
  PetscInt       col[9], n = 1, to[3];
  PetscScalar    v[9];

  PetscFunctionBeginUser;
  col[0] = row;
  v[0]   = 6;
  for (PetscInt k = 0; k < 6 && !IsWall(g, at, c); k++) {
    for (int d = 0; d < 3; d++) to[d] = at[d] + (d == k / 2 ? 2 * (k % 2) - 1 : 0);
    if (k / 2 != c && (to[k / 2] < 0 || to[k / 2] == g->n)) v[0] += 1; /* a wall half a cell away */
    else if (!IsWall(g, to, c)) {
      col[n] = Number(g, to, c);
      v[n++] = -1;
    }
  }
  for (int k = 0; k < 2 && !IsWall(g, at, c); k++) {
    for (int d = 0; d < 3; d++) to[d] = at[d] + (d == c ? k : 0);
    col[n] = Number(g, to, 3);
    v[n++] = 2 * k - 1;
  }
  PetscCall(MatSetValues(A, 1, &row, n, col, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PressureRow(const StokesGrid *g, const PetscInt at[3], Mat A)
{
  const PetscInt row = Number(g, at, 3);
  PetscInt       col[6], n = 0, to[3];
  PetscScalar    v[6];

  PetscFunctionBeginUser;
  for (int k = 0; k < 6; k++) { /* the face in direction k / 2 of the cell, or of the cell before it */
    for (int d = 0; d < 3; d++) to[d] = at[d] - (d == k / 2 ? k % 2 : 0);
    if (IsWall(g, to, k / 2)) continue;
    col[n] = Number(g, to, k / 2);
    v[n++] = 2 * (k % 2) - 1;
  }
  PetscCall(MatSetValues(A, 1, &row, n, col, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix, and a force that is 0 on walls */
static PetscErrorCode Assemble(const Bench *b, const StokesGrid *g, Mat *A, Vec *f)
{
  const PetscInt cells = g->planes * g->n * g->n;
  PetscInt       at[3];

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, 4 * cells, 4 * cells, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, b->type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 9, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 9, NULL, 9, NULL));
  PetscCall(MatCreateVecs(*A, NULL, f));
  for (at[2] = g->first; at[2] < g->first + g->planes; at[2]++)
    for (at[1] = 0; at[1] < g->n; at[1]++)
      for (at[0] = 0; at[0] < g->n; at[0]++) {
        for (PetscInt c = 0; c < 3; c++) {
          PetscCall(VelocityRow(g, at, c, *A));
          if (!IsWall(g, at, c)) PetscCall(VecSetValue(*f, Number(g, at, c), PetscSinReal((PetscReal)(at[0] + 2 * at[1] + 3 * at[2] + c)), INSERT_VALUES));
        }
        PetscCall(PressureRow(g, at, *A));
      }
  PetscCall(VecAssemblyBegin(*f));
  PetscCall(VecAssemblyEnd(*f));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The fields */
static PetscErrorCode Split(const StokesGrid *g, IS is[2])
{
  const PetscInt plane = g->n * g->n, cells = g->planes * plane, begin = 4 * g->first * plane;
  PetscInt      *v;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(3 * cells, &v));
  for (PetscInt k = 0; k < 3 * cells; k++) v[k] = begin + (g->interlaced ? k / 3 * 4 + k % 3 : k);
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, 3 * cells, v, PETSC_OWN_POINTER, &is[0]));
  PetscCall(ISSetBlockSize(is[0], 3));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, cells, begin + 3 * (g->interlaced ? 1 : cells), g->interlaced ? 4 : 1, &is[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In place of A, its blocks */
static PetscErrorCode Nest(IS is[2], Mat *A)
{
  Mat block[4];

  PetscFunctionBeginUser;
  for (int k = 0; k < 4; k++) PetscCall(MatCreateSubMatrix(*A, is[k / 2], is[k % 2], MAT_INITIAL_MATRIX, &block[k]));
  PetscCall(MatDestroy(A));
  PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, is, 2, is, block, A));
  for (int k = 0; k < 4; k++) PetscCall(MatDestroy(&block[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -1 for the Schur complement */
static PetscErrorCode Schur(const Bench *b, const StokesGrid *g, Mat *S)
{
  const PetscInt plane = g->n * g->n, cells = g->planes * plane;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, S));
  PetscCall(MatSetSizes(*S, cells, cells, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*S, b->type));
  PetscCall(MatSeqAIJSetPreallocation(*S, 1, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*S, 1, NULL, 0, NULL));
  for (PetscInt k = 0; k < cells; k++) PetscCall(MatSetValue(*S, g->first * plane + k, g->first * plane + k, -1.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*S, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*S, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Staggered(const Bench *b, const StokesGrid *g, StokesSystem *s)
{
  PetscFunctionBeginUser;
  PetscCall(Assemble(b, g, &s->A, &s->f));
  PetscCall(Split(g, s->is));
  PetscCall(Schur(b, g, &s->S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the slowest rank, in milliseconds */
static PetscErrorCode Timed(KSP ksp, Vec f, Vec x, double *ms)
{
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  *ms = MPI_Wtime();
  if (x) {
    PetscCall(KSPSolve(ksp, f, x));
    PetscCall(VecNorm(x, NORM_1, &norm)); /* waits */
  } else PetscCall(KSPSetUp(ksp));
  *ms = 1e3 * (MPI_Wtime() - *ms);
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, ms, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Precondition(StokesSystem *s, PC pc)
{
  PetscFunctionBeginUser;
  PetscCall(PCSetType(pc, PCFIELDSPLIT));
  PetscCall(PCFieldSplitSetIS(pc, "u", s->is[0]));
  PetscCall(PCFieldSplitSetIS(pc, "p", s->is[1]));
  PetscCall(PCFieldSplitSetType(pc, PC_COMPOSITE_SCHUR));
  PetscCall(PCFieldSplitSetSchurPre(pc, PC_FIELDSPLIT_SCHUR_PRE_USER, s->S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* setup, and the best solve, in milliseconds */
static PetscErrorCode Solves(const Bench *b, KSP ksp, Vec f, Vec x, double *setup, double *best, double *copies)
{
  PetscLogStage stage;

  PetscFunctionBeginUser;
  PetscCall(Timed(ksp, f, NULL, setup));
  PetscCall(PetscLogStageRegister("solve", &stage));
  *best = 1e30;
  for (PetscInt k = 0; k <= b->rounds; k++) { /* the first also sets up what PETSc leaves until then */
    double ms;

    if (k == b->rounds) PetscCall(PetscLogStagePush(stage));
    PetscCall(Timed(ksp, f, x, &ms));
    if (k == b->rounds) PetscCall(PetscLogStagePop());
    if (k) *best = PetscMin(*best, ms);
    else *setup += ms;
  }
  *setup -= *best;
  PetscCall(Copies(stage, copies));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Stokes(const Bench *b, PetscInt n)
{
  static const char *const elements[] = {"staggered", "taylorhood"};
  StokesGrid               g          = {.n = n};
  StokesSystem             s;
  Vec                      x, r;
  PetscBool                nest = PETSC_FALSE;
  KSP                      ksp;
  PC                       pc;
  PetscInt                 iterations, unknowns, element = 0;
  PetscReal                norm[2];
  double                   assembly, setup, best = 0, copies;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &g.rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &g.size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-interlaced", &g.interlaced, NULL));
  PetscCall(PetscOptionsGetEList(NULL, NULL, "-element", elements, 2, &element, NULL));
  g.first  = FirstPlane(&g, g.rank);
  g.planes = FirstPlane(&g, g.rank + 1) - g.first;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-nest", &nest, NULL));
  assembly = MPI_Wtime();
  PetscCall(element ? TaylorHood(b, &g, &s) : Staggered(b, &g, &s));
  assembly = 1e3 * (MPI_Wtime() - assembly);
  if (nest) PetscCall(Nest(s.is, &s.A));
  PetscCall(VecDuplicate(s.f, &x));
  PetscCall(VecDuplicate(s.f, &r));
  PetscCall(VecGetSize(s.f, &unknowns));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, "stokes_"));
  PetscCall(KSPSetOperators(ksp, s.A, s.A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(Precondition(&s, pc));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(Solves(b, ksp, s.f, x, &setup, &best, &copies));
  PetscCall(KSPGetIterationNumber(ksp, &iterations));
  PetscCall(MatMult(s.A, x, r));
  PetscCall(VecAXPY(r, -1.0, s.f));
  PetscCall(VecNorm(r, NORM_2, &norm[0]));
  PetscCall(VecNorm(s.f, NORM_2, &norm[1]));
  if (!g.rank) {
    fprintf(b->out, "{\"record\": \"stokes\", \"type\": \"%s\", \"element\": \"%s\", \"ranks\": %d, \"unknowns\": %d, \"interlaced\": %s, \"nest\": %s, \"assembly_ms\": %.3f, \"setup_ms\": %.3f, \"solve_ms\": %.3f, \"iterations\": %d, \"residual\": %.2e, \"copies\": %.0f}\n", b->type, elements[element],
            (int)g.size, (int)unknowns, g.interlaced ? "true" : "false", nest ? "true" : "false", assembly, setup, best, (int)iterations, (double)(norm[0] / norm[1]), copies);
    fflush(b->out);
  }
  for (int k = 0; k < 2; k++) PetscCall(ISDestroy(&s.is[k]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&s.A));
  PetscCall(MatDestroy(&s.S));
  PetscCall(VecDestroy(&s.f));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}
