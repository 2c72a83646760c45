static char help[] = "The set-up of PETSc's algebraic multigrid, GAMG, on the matrix type of your choice and on any number of processes.\n\n";

/*
    gamg -mat_type aij -log_view
    gamg -mat_type gpucsr -dll_append libpetscgpucsr.so
    gamg -mat_type aijcusparse                             in a PETSc built with CUDA
    gamg -cases lognormal7_128,lognormal27_96 [-spd 0] [-repeats 3] [-kept 0] [-uploaded 1] [-o FILE] [-id TEXT] [-ksp_rtol 1e-8 -pc_gamg_threshold 0.02 ...]
    gamg -mat_type gpucsr -pc_type gpuamg -pc_view
    mpiexec -n 2 gamg ...

  A plain PETSc program without calls of the library. Processes have equally many rows.

  For each case (see ksp.c) the program times set-ups and solves with CG:

    setup   the first set-up, without the first call of a library, for which a small case runs before
    first   the first solve
    solve   the second solve, the best of -repeats, as the two set-ups below; -repeats is 1 where the first set-up or solve takes more than half a second, as in peers/peer.h
    again   a set-up with new values and new interpolation
    kept    a set-up with new values and old interpolation; -kept 0 leaves this set-up out

  Each time is the slowest process' time; with -log_view each timed part is a stage. -uploaded 1 multiplies once before the first set-up, so the set-up does not include the upload of the matrix.
  -spd 0 does not tell PETSc that the matrix is symmetric. The case mesh_N is a Delaunay mesh of N thousand random points in a cube.

  The program prints milliseconds, levels and operator complexity of GAMG and gpuamg, and iterations and true relative residual of the second solve. -o FILE appends a JSON object a line.
  Its members:

    amg, matrix, rows, nnz, ranks, mat_type, ksp, pc, petsc, id, upload_ms (the product of -uploaded), setup_ms, first_ms, solve_ms, again_ms, kept_ms, iterations, levels, complexity, degree (of the smoother), residual
*/
#include <petscksp.h>
#include <petsctime.h>
#include <stdlib.h>
#include <string.h>
#include "problems/spd.h"
#include "problems/synthetic.h"

#define LONG 0.5 /* seconds */

static PetscLogStage stage[5];

typedef struct {
  double   upload, setup, first, solve, again, kept, residual, complexity, rows, nnz;
  PetscInt its, levels, degree;
} Times;

static PetscErrorCode Clock(PetscErrorCode (*what)(void *), void *ctx, PetscLogStage s, double *seconds)
{
  PetscLogDouble begin, end;

  PetscFunctionBeginUser;
  PetscCall(PetscLogStagePush(s));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&begin));
  PetscCall((*what)(ctx));
  PetscCall(PetscTime(&end));
  PetscCall(PetscLogStagePop());
  end -= begin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
  *seconds = PetscMin(*seconds, end);
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  KSP ksp;
  Vec b, x;
} Problem;

static PetscErrorCode Upload(void *ctx)
{
  Problem  *p = (Problem *)ctx;
  Mat       A;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(KSPGetOperators(p->ksp, &A, NULL));
  PetscCall(MatMult(A, p->b, p->x));
  PetscCall(VecNorm(p->x, NORM_2, &norm)); /* waits for the device */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUp(void *ctx)
{
  Problem    *p = (Problem *)ctx;
  PetscScalar dot;

  PetscFunctionBeginUser;
  PetscCall(KSPSetUp(p->ksp));
  PetscCall(VecDot(p->x, p->x, &dot)); /* waits for the device */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(void *ctx)
{
  Problem  *p = (Problem *)ctx;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(VecSet(p->x, 0.0));
  PetscCall(KSPSolve(p->ksp, p->b, p->x));
  PetscCall(VecNorm(p->x, NORM_2, &norm)); /* waits for the device */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Levels, complexity and degree as the view of PCGPUAMG has them */
static PetscErrorCode Viewed(PC pc, Times *t)
{
  PetscViewer viewer;
  char       *text = NULL, *at;
  size_t      n;
  FILE       *to = open_memstream(&text, &n);

  PetscFunctionBeginUser;
  PetscCheck(to, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a view");
  PetscCall(PetscViewerASCIIOpenWithFILE(PetscObjectComm((PetscObject)pc), to, &viewer));
  PetscCall(PCView(pc, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(to);
  if ((at = strstr(text, "operator complexity "))) {
    t->complexity = atof(at + 20);
    while (at > text && at[-1] != '\n') at--;
    t->levels = atoi(at);
  }
  if ((at = strstr(text, "of degree "))) t->degree = atoi(at + 10);
  free(text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Hierarchy(PC pc, Times *t)
{
  double    all = 0, fine = 0;
  PetscBool gamg, gpuamg;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCGAMG, &gamg));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, "gpuamg", &gpuamg));
  if (gpuamg) PetscCall(Viewed(pc, t));
  if (!gamg) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCMGGetLevels(pc, &t->levels));
  for (PetscInt l = 0; l < t->levels; l++) {
    KSP     smoother;
    Mat     A;
    MatInfo info;

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, &A, NULL));
    PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
    if (l) PetscCall(KSPGetTolerances(smoother, NULL, NULL, NULL, &t->degree));
    fine = info.nz_used;
    all += fine;
  }
  t->complexity = all / fine;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This process' rows of a matrix; each process has the whole matrix */
static PetscErrorCode Matrix(const char type[], PetscInt bs, int m, int32_t i[], PetscInt j[], PetscScalar a[], Mat *A)
{
  PetscInt    first, end, *row;
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  first = (PetscInt)((int64_t)(m / bs) * rank / size) * bs;
  end   = (PetscInt)((int64_t)(m / bs) * (rank + 1) / size) * bs;
  PetscCall(PetscMalloc1(end - first + 1, &row));
  for (PetscInt r = first; r <= end; r++) row[r - first] = i[r] - i[first];
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, end - first, end - first, m, m));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, row, j + i[first], a + i[first]));
  PetscCall(MatMPIAIJSetPreallocationCSR(*A, row, j + i[first], a + i[first]));
  PetscCall(PetscFree(row));
  PetscCall(MatConvert(*A, type, MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The CSR of a case, and the unknowns of a point */
static PetscErrorCode System(const char name[], PetscInt *bs, int *m, int32_t **i, PetscInt **j, PetscScalar **a)
{
  SPD       s    = {LOGNORMAL7, 0, 0, 0, NULL};
  Synthetic mesh = {name, MESH3, 0, 1, 0, 60, MESH_HILBERT, 0, 0, 0};
  int       n;

  PetscFunctionBeginUser;
  if (sscanf(name, "mesh_%d", &n) == 1 && n >= 1 && n <= 10000) {
    *bs    = 1;
    mesh.m = 1000 * n;
    PetscCall(SyntheticCreate(&mesh, 1, m, &n, i, j, a));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(SPDNamed(name, &s) && s.m >= 2 && s.m <= 200, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-cases %s: must be lognormal7_N, lognormal27_N, elastic_N or graph_N, N points an edge, or mesh_N, N thousand points", name);
  *bs = s.kind == ELASTIC ? 3 : 1;
  PetscCall(SPDCreate(&s, m, i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Json(FILE *out, const char name[], Mat A, const Problem *p, const Times *t)
{
  MatType     type;
  KSPType     ksp;
  PCType      pc;
  PC          of;
  PetscMPIInt size;
  char        version[128], id[64] = "unknown";

  PetscFunctionBeginUser;
  if (!out) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetString(NULL, NULL, "-id", id, sizeof(id), NULL));
  PetscCall(PetscGetVersion(version, sizeof(version)));
  PetscCall(MatGetType(A, &type));
  PetscCall(KSPGetType(p->ksp, &ksp));
  PetscCall(KSPGetPC(p->ksp, &of));
  PetscCall(PCGetType(of, &pc));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  fprintf(out, "{\"record\": \"amg\", \"matrix\": \"%s\", \"rows\": %.0f, \"nnz\": %.0f, \"ranks\": %d, \"mat_type\": \"%s\", \"ksp\": \"%s\", \"pc\": \"%s\", \"petsc\": \"%.60s\", \"id\": \"%s\"", name, t->rows, t->nnz, (int)size, type, ksp, pc, version, id);
  fprintf(out, ", \"setup_ms\": %.6g, \"first_ms\": %.6g, \"solve_ms\": %.6g, \"again_ms\": %.6g", 1e3 * t->setup, 1e3 * t->first, 1e3 * t->solve, 1e3 * t->again);
  if (t->upload < 1e9) fprintf(out, ", \"upload_ms\": %.6g", 1e3 * t->upload);
  if (isfinite(t->kept)) fprintf(out, ", \"kept_ms\": %.6g", 1e3 * t->kept);
  fprintf(out, ", \"iterations\": %d, \"levels\": %d, \"complexity\": %.4g, \"degree\": %d, \"residual\": %.3g}\n", (int)t->its, (int)t->levels, t->complexity, (int)t->degree, t->residual);
  fflush(out);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(const char name[], PetscBool spd, PetscInt repeats, PetscBool kept, FILE *out, Times *t)
{
  int32_t     *i;
  PetscInt    *j, bs;
  PetscScalar *a;
  int          m;
  char         type[64] = MATAIJ;
  Mat          A;
  Vec          r;
  PetscReal    norm, all;
  Problem      p;
  PC           pc;
  PetscBool    uploaded = PETSC_FALSE;

  PetscFunctionBeginUser;
  *t = (Times){1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 0, 0, 0, 0, 0, 0, 0};
  PetscCall(System(name, &bs, &m, &i, &j, &a));
  t->rows = m;
  t->nnz  = i[m];
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(Matrix(type, bs, m, i, j, a, &A));
  if (spd) PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(MatCreateVecs(A, &p.x, &p.b));
  PetscCall(VecDuplicate(p.b, &r));
  PetscCall(VecSet(p.b, 1.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &p.ksp));
  PetscCall(KSPSetOperators(p.ksp, A, A));
  PetscCall(KSPSetType(p.ksp, KSPCG));
  PetscCall(KSPSetTolerances(p.ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPGetPC(p.ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(p.ksp));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-uploaded", &uploaded, NULL));
  if (uploaded) PetscCall(Clock(Upload, &p, stage[0], &t->upload));
  PetscCall(Clock(SetUp, &p, stage[0], &t->setup));
  PetscCall(Clock(Solve, &p, stage[1], &t->first));
  for (PetscInt k = 0; k < (t->first > LONG ? 1 : repeats); k++) PetscCall(Clock(Solve, &p, stage[2], &t->solve));
  PetscCall(KSPGetIterationNumber(p.ksp, &t->its));
  PetscCall(MatMult(A, p.x, r));
  PetscCall(VecAYPX(r, -1.0, p.b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(p.b, NORM_2, &all));
  t->residual = norm / all;
  PetscCall(Hierarchy(pc, t));
  for (int keep = 0; keep <= (int)kept; keep++) {
    PetscCall(PCGAMGSetReuseInterpolation(pc, (PetscBool)keep));
    for (PetscInt k = 0; k < (t->setup > LONG ? 1 : repeats) + keep; k++) { /* the first set-up with old interpolation stores its data */
      PetscCall(MatScale(A, 1.0009765625));
      PetscCall(KSPSetOperators(p.ksp, A, A));
      PetscCall(Clock(SetUp, &p, stage[3 + keep], keep ? &t->kept : &t->again));
    }
  }
  if (!kept) t->kept = NAN;
  PetscCall(Json(out, name, A, &p, t));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&p.x));
  PetscCall(VecDestroy(&p.b));
  PetscCall(KSPDestroy(&p.ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree2(j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const stages[] = {"first set-up", "first solve", "solves", "set-up again", "kept"};
  char                    *cases[16];
  PetscInt                 n = 16, repeats = 3;
  PetscBool                spd = PETSC_TRUE, kept = PETSC_TRUE, set;
  char                     file[PETSC_MAX_PATH_LEN] = "";
  FILE                    *out                      = NULL;
  PetscMPIInt              rank;
  Times                    t;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", cases, &n, &set));
  if (!set) {
    n = 1;
    PetscCall(PetscStrallocpy("lognormal7_64", &cases[0]));
  }
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-spd", &spd, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-kept", &kept, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", file, sizeof(file), NULL));
  for (int k = 0; k < 5; k++) stage[k] = 0;
  PetscCall(Run("lognormal7_32", spd, 1, kept, NULL, &t));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (file[0] && !rank) {
    out = fopen(file, "a");
    PetscCheck(out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-o %s: cannot be written", file);
  }
  for (int k = 0; k < 5; k++) PetscCall(PetscLogStageRegister(stages[k], &stage[k]));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "| case | first set-up | again | interpolation kept | first solve | solve | iterations | levels | complexity | residual |\n| :-- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n"));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(Run(cases[k], spd, repeats, kept, out, &t));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %" PetscInt_FMT " | %" PetscInt_FMT " | %.3f | %.1e |\n", cases[k], 1e3 * t.setup, 1e3 * t.again, 1e3 * t.kept, 1e3 * t.first, 1e3 * t.solve, t.its, t.levels, t.complexity, t.residual));
    PetscCall(PetscFree(cases[k]));
  }
  if (out) fclose(out);
  PetscCall(PetscFinalize());
  return 0;
}
