static char help[] = "Which preconditioner: time to solution of hard problems, set-up and solve.\n\n";

/*
    precond -mat_type gpucsr -dll_append libpetscgpucsr.so
    precond -mat_type aijcusparse -use_gpu_aware_mpi 0             in a PETSc built with CUDA
    mpiexec -n 16 precond -mat_type aij
    precond [-cases easy_100,layers_100,aniso_100,conv_100,plate_300] [-pcs jacobi,ilu,gamg] [-methods petsc,gpu,gmres] [-vec_type cuda] [-repeats 3] [-o FILE] [-id TEXT] [-ksp_max_it 3000 ...].

  A plain PETSc program without calls of the library. Cases, by the number of points an edge:

    easy    7 points of a cube, all coefficients 1
    layers  the same; layers of 5 points across z are 1e6 times as conducting as those between
    aniso   the same; the coefficient across z is 1e-3 of the others
    conv    7 points, convection upwind, as strong as diffusion on the scale of 10 points, in a direction that turns
    plate   springs of a thin plate, N by N by 3 points, three displacements a point, held at two opposite edges; its near null space (rigid motions) goes with the matrix

  CG, or BiCGStab (conv), to a true relative residual of 1e-8 of the unpreconditioned norm; -methods petsc names these two, gpu the library's gpucg and gpubcgs; any other word is a
  type of KSP. -vec_type changes the vectors, which are the matrix' own without it. ilu on several processes is PETSc's block Jacobi with it. Each preconditioner of a case begins anew. A set-up is KSPSetUp() and
  KSPSetUpOnBlocks(). setup_ms is the first set-up, again_ms the best set-up after new values, solve_ms the best solve. A small case runs first, so the times do not include a library's first call.

  -o FILE gets one JSON object a line, times in milliseconds:
    precond   case, rows, mat_type, ranks, method, pc, petsc, id, iterations, reason, residual (true, relative), setup_ms, again_ms, solve_ms, total_ms = setup_ms + solve_ms.
*/
#include <petscksp.h>
#include <petsctime.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

typedef enum {
  EASY,
  LAYERS,
  ANISO,
  CONV,
  PLATE,
  KINDS
} Kind;

static const char *const kinds[] = {"easy", "layers", "aniso", "conv", "plate"};

/* Coefficient of the flux from a point of the cube to its neighbour in a direction (0: x) and sense, as far as it is diffusion */
static PetscReal Flux(Kind kind, PetscInt direction, PetscInt z, PetscInt other)
{
  const PetscReal a = kind == LAYERS && z / 5 % 2 ? 1e6 : 1, b = kind == LAYERS && other / 5 % 2 ? 1e6 : 1;

  if (kind == ANISO && direction == 2) return 1e-3;
  return direction == 2 ? 2 * a * b / (a + b) : a;
}

/* Velocity in a direction, a curl in the plane of x and y that goes up as well, where the middle of the cube is 0 */
static PetscReal Wind(PetscInt direction, const PetscInt p[], PetscInt m)
{
  const PetscReal x = (PetscReal)p[0] / (PetscReal)m - 0.5, y = (PetscReal)p[1] / (PetscReal)m - 0.5;

  return 0.1 * (direction == 0 ? -2 * y : direction == 1 ? 2 * x : 0.5);
}

static PetscInt CubeRow(Kind kind, PetscInt m, PetscInt r, PetscInt col[], PetscScalar val[])
{
  const PetscInt p[3] = {r % m, r / m % m, r / m / m}, stride[3] = {1, m, m * m};
  PetscInt       n   = 1;
  PetscReal      sum = 0;

  for (PetscInt d = 0; d < 3; d++)
    for (PetscInt s = -1; s <= 1; s += 2) {
      PetscReal f = Flux(kind, d, p[2], d == 2 ? PetscMax(0, p[2] + s) : p[2]);

      if (kind == CONV) f += PetscMax(0, -(PetscReal)s * Wind(d, p, m));
      sum += f;
      if (p[d] + s < 0 || p[d] + s >= m) continue; /* held at 0 beyond */
      col[n]   = r + s * stride[d];
      val[n++] = -f;
    }
  col[0] = r;
  val[0] = sum;
  return n;
}

/* Three rows of a point of the plate; springs to its neighbours along the line between both */
#define THICK 3
static PetscInt PlateRows(PetscInt m, PetscInt p, PetscInt col[], PetscScalar val[3][81])
{
  const PetscInt x[3] = {p % m, p / m % m, p / m / m};
  PetscInt       n    = 3;

  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 81; j++) val[i][j] = 0;
  for (int k = 0; k < 3; k++) col[k] = 3 * p + k;
  for (PetscInt dz = -1; dz <= 1; dz++)
    for (PetscInt dy = -1; dy <= 1; dy++)
      for (PetscInt dx = -1; dx <= 1; dx++) {
        const PetscInt  d[3] = {dx, dy, dz}, q[3] = {x[0] + dx, x[1] + dy, x[2] + dz};
        const PetscReal length = (PetscReal)(dx * dx + dy * dy + dz * dz);
        const PetscBool in     = (PetscBool)(q[0] >= 0 && q[0] < m);

        if (length == 0 || q[1] < 0 || q[1] >= m || q[2] < 0 || q[2] >= THICK) continue; /* free there; held beyond the ends of x */
        for (int i = 0; i < 3; i++)
          for (int j = 0; j < 3; j++) {
            const PetscReal w = (PetscReal)(d[i] * d[j]) / length;

            val[i][j] += w;
            if (in) val[i][n + j] = -w;
          }
        for (int j = 0; j < 3 && in; j++) col[n + j] = 3 * ((q[2] * m + q[1]) * m + q[0]) + j;
        if (in) n += 3;
      }
  return n;
}

static PetscErrorCode NearNull(Mat A, PetscInt m)
{
  Vec          x;
  PetscInt     rs, re;
  PetscScalar *v;
  MatNullSpace near;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(VecSetBlockSize(x, 3));
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(VecGetArrayWrite(x, &v));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt p = r / 3, at[3] = {p % m, p / m % m, p / m / m};

    v[r - rs] = (PetscReal)at[r % 3];
  }
  PetscCall(VecRestoreArrayWrite(x, &v));
  PetscCall(MatNullSpaceCreateRigidBody(x, &near));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(MatNullSpaceDestroy(&near));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assemble(Kind kind, PetscInt m, MatType type, Mat *A)
{
  const PetscInt bs = kind == PLATE ? 3 : 1, points = kind == PLATE ? m * m * THICK : m * m * m;
  PetscInt       rs, re;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, bs * points, bs * points));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, bs == 3 ? 81 : 7, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, bs == 3 ? 81 : 7, NULL, bs == 3 ? 81 : 4, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt p = rs / bs; p < re / bs; p++) {
    PetscInt    col[81], n;
    PetscScalar val[3][81];

    n = kind == PLATE ? PlateRows(m, p, col, val) : CubeRow(kind, m, p, col, val[0]);
    for (PetscInt k = 0; k < bs; k++) {
      const PetscInt row = bs * p + k;

      PetscCall(MatSetValues(*A, 1, &row, n, col, val[k], INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  if (kind == PLATE) PetscCall(NearNull(*A, m));
  if (kind != CONV) PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Since all ranks have come here, until the last is done */
static PetscErrorCode Now(double *seconds)
{
  PetscLogDouble t;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&t));
  *seconds = t;
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  double             setup, again, solve, residual;
  PetscInt           its;
  KSPConvergedReason reason;
} Result;

static PetscErrorCode SetUp(KSP ksp, Vec x, double *seconds)
{
  double    begin, end;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(Now(&begin));
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPSetUpOnBlocks(ksp));
  PetscCall(VecNorm(x, NORM_2, &norm)); /* waits for the device */
  PetscCall(Now(&end));
  *seconds = end - begin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(KSP ksp, Vec b, Vec x, double *seconds)
{
  double    begin, end;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(VecSet(x, 0.0));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(Now(&begin));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(Now(&end));
  *seconds = PetscMin(*seconds, end - begin);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(Mat A, KSPType method, const char name[], PetscInt repeats, Result *t)
{
  KSP         ksp;
  PC          pc;
  Vec         b, x, r;
  PetscReal   norm, all;
  PetscMPIInt size;
  PetscBool   ilu;

  PetscFunctionBeginUser;
  *t = (Result){0, 1e9, 1e9, 0, 0, KSP_CONVERGED_ITERATING};
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSetFromOptions(x));
  PetscCall(VecSetFromOptions(b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(b, 1.0));
  PetscCall(VecSet(x, 0.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, method));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(PetscStrcmp(method, KSPBCGS, &ilu));
  if (!ilu) PetscCall(PetscStrcmp(method, "gpubcgs", &ilu));
  if (ilu) PetscCall(KSPSetPCSide(ksp, PC_RIGHT));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 5000));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PetscStrcmp(name, PCILU, &ilu));
  PetscCall(PCSetType(pc, ilu && size > 1 ? PCBJACOBI : name));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(SetUp(ksp, x, &t->setup));
  for (PetscInt k = 0; k < repeats; k++) PetscCall(Solve(ksp, b, x, &t->solve));
  PetscCall(KSPGetIterationNumber(ksp, &t->its));
  PetscCall(KSPGetConvergedReason(ksp, &t->reason));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &all));
  t->residual = norm / all;
  for (PetscInt k = 0; k < 2; k++) {
    double once;

    PetscCall(MatScale(A, 1.0009765625));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(SetUp(ksp, x, &once));
    t->again = PetscMin(t->again, once);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The type of KSP that a word of -methods means for a case */
static const char *Method(const char word[], Kind kind)
{
  if (!strcmp(word, "petsc")) return kind == CONV ? KSPBCGS : KSPCG;
  if (!strcmp(word, "gpu")) return kind == CONV ? "gpubcgs" : "gpucg";
  return word;
}

static PetscErrorCode Case(const char name[], MatType type, char *pcs[], PetscInt npcs, const char word[], PetscInt repeats, const char id[], FILE *out)
{
  Kind        kind = EASY;
  PetscInt    m    = 0, rows;
  PetscMPIInt size;
  Mat         A;

  PetscFunctionBeginUser;
  for (int k = 0; k < KINDS; k++) {
    size_t length;

    PetscCall(PetscStrlen(kinds[k], &length));
    if (strncmp(name, kinds[k], length) || name[length] != '_') continue;
    kind = (Kind)k;
    m    = (PetscInt)atoi(name + length + 1);
  }
  PetscCheck(m >= 4 && m <= (kind == PLATE ? 2000 : 400), PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-cases %s: must be easy_N, layers_N, aniso_N, conv_N or plate_N, N points an edge", name);
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Assemble(kind, m, type, &A));
  PetscCall(MatGetSize(A, &rows, NULL));
  for (PetscInt k = 0; k < npcs; k++) {
    const char *method = Method(word, kind);
    Result      t;

    PetscCall(Run(A, method, pcs[k], repeats, &t));
    if (!out && !id) continue; /* nobody wants to know */
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "| %s | %s | %s | %.1f | %.1f | %.1f | %.1f | %" PetscInt_FMT "%s | %.1e |\n", name, pcs[k], method, 1e3 * t.setup, 1e3 * t.again, 1e3 * t.solve, 1e3 * (t.setup + t.solve), t.its, t.reason > 0 ? "" : " (not converged)", t.residual));
    if (out)
      PetscCall(PetscFPrintf(PETSC_COMM_WORLD, out, "{\"kind\": \"precond\", \"case\": \"%s\", \"rows\": %" PetscInt_FMT ", \"mat_type\": \"%s\", \"ranks\": %d, \"method\": \"%s\", \"pc\": \"%s\", \"petsc\": \"%d.%d.%d\", \"id\": \"%s\", \"iterations\": %" PetscInt_FMT ", \"reason\": \"%s\", \"residual\": %.3e, \"setup_ms\": %.3f, \"again_ms\": %.3f, \"solve_ms\": %.3f, \"total_ms\": %.3f}\n", name, rows, type, size, method, pcs[k], PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR, id, t.its, KSPConvergedReasons[t.reason], t.residual, 1e3 * t.setup, 1e3 * t.again, 1e3 * t.solve, 1e3 * (t.setup + t.solve)));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The words of an option, or the default words without the option */
static PetscErrorCode Words(const char option[], const char *const meant[], PetscInt nmeant, char *words[], PetscInt *n)
{
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, option, words, n, &set));
  if (set) PetscFunctionReturn(PETSC_SUCCESS);
  *n = nmeant;
  for (PetscInt k = 0; k < nmeant; k++) PetscCall(PetscStrallocpy(meant[k], &words[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const allcases[] = {"easy_100", "layers_100", "aniso_100", "conv_100", "plate_300"}, *const allpcs[] = {PCJACOBI, PCILU, PCGAMG}, *const allmethods[] = {"petsc"};
  char     *cases[32], *pcs[16], *methods[16], file[PETSC_MAX_PATH_LEN] = "", id[64] = "", type[64] = MATAIJ;
  PetscInt  ncases = 32, npcs = 16, nmethods = 16, repeats = 3;
  PetscBool set;
  FILE     *out = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(Words("-cases", allcases, 5, cases, &ncases));
  PetscCall(Words("-pcs", allpcs, 3, pcs, &npcs));
  PetscCall(Words("-methods", allmethods, 1, methods, &nmethods));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-id", id, sizeof(id), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", file, sizeof(file), &set));
  if (set) PetscCall(PetscFOpen(PETSC_COMM_WORLD, file, "a", &out));
  for (PetscInt q = 0; q < nmethods; q++) {
    PetscCall(Case("easy_24", type, pcs, npcs, methods[q], 1, NULL, NULL));
    if (!q) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "| case | preconditioner | method | set-up | again | solve | set-up and solve | iterations | residual |\n| :-- | :-- | :-- | --: | --: | --: | --: | --: | --: |\n"));
    for (PetscInt k = 0; k < ncases; k++) PetscCall(Case(cases[k], type, pcs, npcs, methods[q], repeats, id, out));
  }
  if (out) PetscCall(PetscFClose(PETSC_COMM_WORLD, out));
  for (PetscInt k = 0; k < ncases; k++) PetscCall(PetscFree(cases[k]));
  for (PetscInt k = 0; k < npcs; k++) PetscCall(PetscFree(pcs[k]));
  for (PetscInt k = 0; k < nmethods; k++) PetscCall(PetscFree(methods[k]));
  PetscCall(PetscFinalize());
  return 0;
}
