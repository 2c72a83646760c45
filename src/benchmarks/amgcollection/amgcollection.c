static char help[] = "Iterations of PCGPUAMG beside those of PCGAMG on a collection of problems.\n\n";

/*
    amgcollection -dll_append libpetscgpucsr.so [-only NAME,...] [-scale 0.5] [-datasets share/datasets]
    amgcollection ... -mat_gpucsr_backend cuda -gpucsr_debug_standin 1        without a GPU
    amgcollection ... -our_pc_gpuamg_mis_k 2 -gamg_pc_gamg_threshold 0.02     options of either preconditioner
    amgcollection ... -our_pc_type gamg                                       PCGAMG over both matrices
    amgcollection ... -write FOLDER                                           only writes matrices and right-hand sides, for drivers of ../peers

  A plain PETSc program without calls of the library. PCGAMG has the matrix as MATAIJ and PETSc's defaults. Both preconditioners have the same smoother, degree and cycle: two steps of Chebyshev's
  iteration with Jacobi, V cycles. CG solves symmetric problems, GMRES(30) unsymmetric problems, to 1e-8 of the preconditioned norm. The program prints a table by lines: name, rows, iterations of both,
  their ratio, operator complexities, the greater of both true residuals.
*/
#include <petscksp.h>
#include "../problems/files.h"
#include "../problems/spd.h"
#include <unistd.h>

typedef struct {
  PetscInt    n;     /* points an edge, or rows that are wanted */
  double      p[3];  /* what the maker takes */
  Mat         A;     /* the result, MATSEQAIJ, and */
  PetscBool   rough; /* it is unsymmetric */
  const char *file;
} Problem;

static PetscErrorCode Create(PetscInt n, PetscInt bs, PetscInt row, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, n, n, row, NULL, A));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assemble(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromCSR(int m, PetscInt bs, int32_t *i, PetscInt *j, PetscScalar *a, Mat *A)
{
  PetscInt *rows;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(m + 1, &rows));
  for (int r = 0; r <= m; r++) rows[r] = i[r];
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, m, m, m));
  PetscCall(MatSetType(*A, MATSEQAIJ));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, rows, j, a));
  PetscCall(PetscFree(rows));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree2(j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- scalar problems of a square or a cube, fluxes between cells ---- */

typedef enum {
  SMOOTH,
  LOGNORMAL, /* p[0]: the deviation of logarithms */
  LAYERS,    /* p[0]: coefficient of every other four planes; the planes between have 1 */
  JUMPS,     /* p[0]: in every other block of 8 cells an edge */
  INCLUSIONS /* p[0]: in a tenth of the cells, by chance */
} Coefficients;

static double Coefficient(Coefficients kind, double p, PetscInt cell, const PetscInt x[3])
{
  switch (kind) {
  case LOGNORMAL:
    return PetscExpReal(p * PetscLogReal(SPDCoefficient((int)cell)));
  case LAYERS:
    return x[2] / 4 % 2 ? p : 1;
  case JUMPS:
    return (x[0] / 8 + x[1] / 8 + x[2] / 8) % 2 ? p : 1;
  case INCLUSIONS:
    return SyntheticUniform(61, (uint64_t)cell, 0) < 0.1 ? p : 1;
  default:
    return 1;
  }
}

/* n cells an edge in d dimensions, flux along an axis times along[], upwinded flow of this speed: turning in each plane where turns is set, else towards a corner */
static PetscErrorCode Cells(PetscInt d, Problem *q, Coefficients kind, const double along[3], double speed, PetscBool turns)
{
  const PetscInt n = q->n, m = d == 2 ? n * n : n * n * n, step[3] = {1, n, n * n};

  PetscFunctionBeginUser;
  PetscCall(Create(m, 1, 2 * d + 1, &q->A));
  q->rough = (PetscBool)(speed > 0);
  for (PetscInt v = 0; v < m; v++) {
    const PetscInt x[3] = {v % n, v / n % n, v / n / n};
    const double   c = Coefficient(kind, q->p[0], v, x), flow[3] = {turns ? -2.0 * x[1] / n + 1 : 1, turns ? 2.0 * x[0] / n - 1 : 0.7, turns ? 0 : 0.4};
    double         sum = 0;

    for (int k = 0; k < d; k++)
      for (int side = -1; side <= 1; side += 2) {
        const PetscInt  u = v + side * step[k], y[3] = {x[0] + (k == 0 ? side : 0), x[1] + (k == 1 ? side : 0), x[2] + (k == 2 ? side : 0)};
        const PetscBool in = (PetscBool)(y[k] >= 0 && y[k] < n);
        const double    e = in ? Coefficient(kind, q->p[0], u, y) : c, w = along[k] * 2 * c * e / (c + e) + speed * PetscMax(0.0, -side * flow[k]);

        sum += w;
        if (in) PetscCall(MatSetValue(q->A, v, u, -w, INSERT_VALUES));
      }
    PetscCall(MatSetValue(q->A, v, v, sum, INSERT_VALUES));
  }
  PetscCall(Assemble(q->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const double even[3] = {1, 1, 1};

static PetscErrorCode Plane(Problem *q)
{
  return Cells(2, q, SMOOTH, even, 0, PETSC_FALSE);
}
static PetscErrorCode Cube(Problem *q)
{
  return Cells(3, q, SMOOTH, even, 0, PETSC_FALSE);
}
static PetscErrorCode Lognormal(Problem *q)
{
  return Cells(3, q, LOGNORMAL, even, 0, PETSC_FALSE);
}
static PetscErrorCode LognormalPlane(Problem *q)
{
  return Cells(2, q, LOGNORMAL, even, 0, PETSC_FALSE);
}
static PetscErrorCode Layers(Problem *q)
{
  return Cells(3, q, LAYERS, even, 0, PETSC_FALSE);
}
static PetscErrorCode Jumps(Problem *q)
{
  return Cells(2, q, JUMPS, even, 0, PETSC_FALSE);
}
static PetscErrorCode Inclusions(Problem *q)
{
  return Cells(3, q, INCLUSIONS, even, 0, PETSC_FALSE);
}
static PetscErrorCode Aligned(Problem *q)
{
  return Cells(2, q, SMOOTH, q->p, 0, PETSC_FALSE);
}
static PetscErrorCode AlignedCube(Problem *q)
{
  return Cells(3, q, SMOOTH, q->p, 0, PETSC_FALSE);
}
static PetscErrorCode Turning(Problem *q)
{
  return Cells(2, q, SMOOTH, even, q->p[0], PETSC_TRUE);
}
static PetscErrorCode Flow(Problem *q)
{
  return Cells(3, q, SMOOTH, even, q->p[0], PETSC_FALSE);
}

/* ---- finite elements of rectangles and bricks ---- */

/* Gradients of the 2^d linear shape functions at a Gauss point of a brick of these edges */
static void Gradients(int d, int point, const double h[3], double g[8][3])
{
  for (int a = 0; a < 1 << d; a++)
    for (int k = 0; k < d; k++) {
      g[a][k] = 1 / h[k];
      for (int l = 0; l < d; l++) {
        const double t = 0.5 + ((point >> l) & 1 ? 0.5 : -0.5) / PetscSqrtReal(3.0);

        if (l == k) g[a][k] *= (a >> l) & 1 ? 1 : -1;
        else g[a][k] *= (a >> l) & 1 ? t : 1 - t;
      }
    }
}

/* A plane, conductivity 1 along a direction of p[1] degrees and p[0] across, held at its edges */
static PetscErrorCode Oblique(Problem *q)
{
  const PetscInt n = q->n;
  const double   t = q->p[1] * PETSC_PI / 180, c = PetscCosReal(t), s = PetscSinReal(t), e = q->p[0],
               h[3] =
                 {
                   1, 1, 1
  },
               D[2][2] = {{c * c + e * s * s, (1 - e) * c * s}, {(1 - e) * c * s, s * s + e * c * c}};
  PetscScalar K[4][4]  = {{0}};

  PetscFunctionBeginUser;
  PetscCall(Create(n * n, 1, 9, &q->A));
  for (int point = 0; point < 4; point++) {
    double g[8][3];

    Gradients(2, point, h, g);
    for (int a = 0; a < 4; a++)
      for (int b = 0; b < 4; b++)
        for (int k = 0; k < 2; k++)
          for (int l = 0; l < 2; l++) K[a][b] += 0.25 * g[a][k] * D[k][l] * g[b][l];
  }
  for (PetscInt y = 0; y <= n; y++)
    for (PetscInt x = 0; x <= n; x++) {
      PetscInt dof[4];

      for (int a = 0; a < 4; a++) {
        const PetscInt u = x - 1 + (a & 1), v = y - 1 + (a >> 1);

        dof[a] = u < 0 || v < 0 || u >= n || v >= n ? -1 : v * n + u;
      }
      PetscCall(MatSetValues(q->A, 4, dof, 4, dof, &K[0][0], ADD_VALUES));
    }
  PetscCall(Assemble(q->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rigid motions of points at x, so many numbers a point, become the near null space */
static PetscErrorCode Motions(Mat A, PetscInt d, const double *x)
{
  PetscInt     n;
  Vec          c;
  MatNullSpace near;
  PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &c));
  PetscCall(VecSetBlockSize(c, d));
  PetscCall(VecGetArray(c, &v));
  for (PetscInt k = 0; k < n; k++) v[k] = x[k];
  PetscCall(VecRestoreArray(c, &v));
  PetscCall(MatNullSpaceCreateRigidBody(c, &near));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(MatNullSpaceDestroy(&near));
  PetscCall(VecDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n by across by deep elements of edges 1, of a material of Poisson's ratio p[0], held at one end; deep 0: plane strain */
static PetscErrorCode Elastic(Problem *q, PetscInt across, PetscInt deep)
{
  const int      d = deep ? 3 : 2, corners = 1 << d;
  const PetscInt n = q->n, rows = across + 1, planes = deep ? deep + 1 : 1, points = n * rows * planes; /* points of the held end are left out */
  const double   nu = q->p[0], lame = nu / ((1 + nu) * (1 - 2 * nu)), shear = 0.5 / (1 + nu), h[3] = {1, 1, 1};
  PetscScalar   *K;
  double        *x;

  PetscFunctionBeginUser;
  PetscCall(Create(points * d, d, d == 2 ? 18 : 81, &q->A));
  PetscCall(PetscCalloc2(corners * d * corners * d, &K, points * d, &x));
  for (int point = 0; point < corners; point++) {
    double g[8][3];

    Gradients(d, point, h, g);
    for (int a = 0; a < corners; a++)
      for (int b = 0; b < corners; b++)
        for (int k = 0; k < d; k++)
          for (int l = 0; l < d; l++) {
            double sum = lame * g[a][k] * g[b][l] + shear * g[a][l] * g[b][k];

            for (int r = 0; r < d && k == l; r++) sum += shear * g[a][r] * g[b][r];
            K[(a * d + k) * corners * d + b * d + l] += sum / corners;
          }
  }
  for (PetscInt z = 0; z < PetscMax(1, deep); z++)
    for (PetscInt y = 0; y < across; y++)
      for (PetscInt e = 0; e < n; e++) {
        PetscInt dof[24];

        for (int a = 0; a < corners; a++) {
          const PetscInt u = e - 1 + (a & 1), p = ((z + (a >> 2)) * rows + y + (a >> 1 & 1)) * n + u;

          for (int k = 0; k < d; k++) dof[a * d + k] = u < 0 ? -1 : p * d + k;
        }
        PetscCall(MatSetValues(q->A, corners * d, dof, corners * d, dof, K, ADD_VALUES));
      }
  for (PetscInt p = 0; p < points; p++) {
    const double at[3] = {(double)(p % n + 1), (double)(p / n % rows), (double)(p / n / rows)};

    for (int k = 0; k < d; k++) x[p * d + k] = at[k];
  }
  PetscCall(Assemble(q->A));
  PetscCall(Motions(q->A, d, x));
  PetscCall(PetscFree2(K, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Block(Problem *q)
{
  return Elastic(q, q->n, 0);
}
static PetscErrorCode Beam(Problem *q)
{
  return Elastic(q, q->n / 10, 0);
}
static PetscErrorCode Bar(Problem *q)
{
  return Elastic(q, q->n / 5, q->n / 5);
}
static PetscErrorCode PlateOfBricks(Problem *q)
{
  return Elastic(q, q->n, 2);
}

/* ---- springs, graphs, meshes, files ---- */

/* depth planes of n by n points, 0: a cube */
static PetscErrorCode OfSPD(Problem *q, SPDKind kind, int depth, PetscBool motions)
{
  SPD          s = {kind, (int)q->n, depth, 0, NULL};
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;
  double      *x;
  int          m;

  PetscFunctionBeginUser;
  PetscCall(SPDCreate(&s, &m, &i, &j, &a));
  PetscCall(FromCSR(m, kind == ELASTIC ? 3 : 1, i, j, a, &q->A));
  if (!motions) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(m, &x));
  for (int r = 0; r < m; r++) x[r] = r % 3 == 0 ? r / 3 % s.m : r % 3 == 1 ? r / 3 / s.m % s.m : r / 3 / s.m / s.m;
  PetscCall(Motions(q->A, 3, x));
  PetscCall(PetscFree(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Points27(Problem *q)
{
  return OfSPD(q, LOGNORMAL27, 0, PETSC_FALSE);
}
static PetscErrorCode Springs(Problem *q)
{
  return OfSPD(q, ELASTIC, 0, PETSC_TRUE);
}
static PetscErrorCode Shell(Problem *q)
{
  return OfSPD(q, ELASTIC, 2, PETSC_TRUE);
}
static PetscErrorCode Near(Problem *q)
{
  return OfSPD(q, GRAPH, 0, PETSC_FALSE);
}

/* p[0]: dimension; p[1]: the last edge of the box */
static PetscErrorCode Unstructured(Problem *q)
{
  const double edge[3] = {1, q->p[0] < 3 ? q->p[1] : 1, q->p[1]};
  Mesh         M;
  int          m = 0;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MeshCreate((int)q->p[0], (int)q->n, edge, 7, &M));
  PetscCall(MeshMatrix(&M, (MeshOrder)0, 1, &m, &i, &j, &a));
  PetscCall(MeshDestroy(&M));
  PetscCall(FromCSR(m, 1, i, j, a, &q->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Laplacian of a graph, and a hundredth of each degree on the diagonal: vertex v has p[0] neighbours, by chance, the sooner the lower their number */
static PetscErrorCode Attached(Problem *q)
{
  PetscFunctionBeginUser;
  PetscCall(Create(q->n, 1, 16, &q->A));
  for (PetscInt v = 1; v < q->n; v++)
    for (int k = 0; k < (int)q->p[0]; k++) {
      const double      t = SyntheticUniform(71, (uint64_t)v, (uint64_t)k);
      const PetscInt    u = (PetscInt)(t * t * (double)v), e[2] = {u, v};
      const PetscScalar w[4] = {1.01, -1, -1, 1.01};

      PetscCall(MatSetValues(q->A, 2, e, 2, e, w, ADD_VALUES));
    }
  PetscCall(Assemble(q->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static char folder[PETSC_MAX_PATH_LEN] = "share/datasets";

static PetscErrorCode File(Problem *q)
{
  char path[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s.petsc", folder, q->file));
  PetscCall(BenchLoad(path, &q->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Laplacian of a weighted graph in a file */
static PetscErrorCode FileLaplacian(Problem *q)
{
  Vec one, sum;

  PetscFunctionBeginUser;
  PetscCall(File(q));
  PetscCall(MatCreateVecs(q->A, &one, &sum));
  PetscCall(VecSet(one, 1.01));
  PetscCall(MatScale(q->A, -1.0));
  PetscCall(MatMult(q->A, one, sum));
  PetscCall(VecScale(sum, -1.0));
  PetscCall(VecShift(sum, 1e-2)); /* of a vertex without edges */
  PetscCall(MatSetOption(q->A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(q->A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatDiagonalSet(q->A, sum, INSERT_VALUES));
  PetscCall(VecDestroy(&one));
  PetscCall(VecDestroy(&sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*make)(Problem *);
  PetscInt    n;
  double      p[3];
  const char *file;
} problems[] = {
  {"poisson2",       Plane,          200,   {0},             NULL            },
  {"poisson3",       Cube,           36,    {0},             NULL            },
  {"lognormal_e3",   Lognormal,      36,    {1},             NULL            },
  {"lognormal_e6",   Lognormal,      36,    {2},             NULL            },
  {"lognormal_e9",   Lognormal,      36,    {3},             NULL            },
  {"lognormal2_e6",  LognormalPlane, 200,   {2},             NULL            },
  {"lognormal27",    Points27,       28,    {0},             NULL            },
  {"aligned2_0.1",   Aligned,        200,   {1, 0.1, 0},     NULL            },
  {"aligned2_0.001", Aligned,        200,   {1, 0.001, 0},   NULL            },
  {"aligned3_flat",  AlignedCube,    36,    {1, 1, 0.01},    NULL            },
  {"aligned3_long",  AlignedCube,    36,    {1, 0.01, 0.01}, NULL            },
  {"oblique_30",     Oblique,        180,   {0.01, 30},      NULL            },
  {"oblique_45",     Oblique,        180,   {0.001, 45},     NULL            },
  {"layers",         Layers,         36,    {1e4},           NULL            },
  {"jumps",          Jumps,          200,   {1e4},           NULL            },
  {"inclusions",     Inclusions,     36,    {1e-4},          NULL            },
  {"turning_flow",   Turning,        200,   {0.05},          NULL            },
  {"flow",           Flow,           36,    {0.2},           NULL            },
  {"mesh2",          Unstructured,   40000, {2, 1},          NULL            },
  {"mesh3",          Unstructured,   40000, {3, 1},          NULL            },
  {"mesh3_thin",     Unstructured,   30000, {3, 0.05},       NULL            },
  {"elastic2_block", Block,          120,   {0.3},           NULL            },
  {"elastic2_beam",  Beam,           400,   {0.3},           NULL            },
  {"elastic2_stiff", Block,          120,   {0.45},          NULL            },
  {"elastic3_bar",   Bar,            60,    {0.3},           NULL            },
  {"elastic3_plate", PlateOfBricks,  50,    {0.3},           NULL            },
  {"springs",        Springs,        20,    {0},             NULL            },
  {"springs_shell",  Shell,          80,    {0},             NULL            },
  {"graph_near",     Near,           24,    {0},             NULL            },
  {"graph_attached", Attached,       20000, {3},             NULL            },
  {"graph_de2010",   FileLaplacian,  0,     {0},             "de2010"        },
  {"bcsstk16",       File,           0,     {0},             "bcsstk16"      },
  {"bcsstk27",       File,           0,     {0},             "bcsstk27"      },
  {"trefethen",      File,           0,     {0},             "Trefethen_2000"}
};

/* ---- solves ---- */

typedef struct {
  PetscInt  its;
  PetscBool solved;
  double    complexity, residual;
} Result;

/* From the view of PCGPUAMG, or the levels of PCGAMG */
static PetscErrorCode Complexity(PC pc, double *c)
{
  PetscBool   gamg;
  char        path[] = "/tmp/amgcollectionXXXXXX", line[512];
  PetscViewer viewer;
  PetscInt    levels;
  MatInfo     info;
  FILE       *f;

  PetscFunctionBeginUser;
  *c = 0;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCGAMG, &gamg));
  if (gamg) {
    PetscCall(PCMGGetLevels(pc, &levels));
    for (PetscInt l = 0; l < levels; l++) {
      KSP smoother;
      Mat A;

      PetscCall(PCMGGetSmoother(pc, l, &smoother));
      PetscCall(KSPGetOperators(smoother, &A, NULL));
      PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
      *c += info.nz_used;
    }
    *c /= info.nz_used;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(close(mkstemp(path)) == 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "No file %s", path);
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_SELF, path, &viewer));
  PetscCall(PCView(pc, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  f = fopen(path, "r");
  while (f && fgets(line, sizeof(line), f)) {
    const char *at = strstr(line, "operator complexity ");

    if (at) *c = atof(at + 20);
  }
  if (f) (void)fclose(f);
  (void)remove(path);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RightHandSide(Mat A, Vec *b)
{
  PetscRandom random;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, NULL, b));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  PetscCall(VecSetRandom(*b, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Write(Mat A, const char into[], const char name[])
{
  char        path[PETSC_MAX_PATH_LEN];
  PetscViewer viewer;
  Vec         b;

  PetscFunctionBeginUser;
  PetscCall(RightHandSide(A, &b));
  PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s", into, name));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, path, FILE_MODE_WRITE, &viewer));
  PetscCall(MatView(A, viewer));
  PetscCall(VecView(b, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Mat A, Problem *q, PetscBool gamg, Result *r)
{
  KSP                ksp;
  PC                 pc;
  Vec                b, x, t;
  KSPConvergedReason reason;
  PetscReal          norm, all;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, gamg ? "gamg_" : "our_"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, q->rough ? KSPGMRES : KSPCG));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, gamg ? PCGAMG : "gpuamg"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(RightHandSide(A, &b));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &t));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, &r->its));
  PetscCall(MatMult(A, x, t));
  PetscCall(VecAYPX(t, -1.0, b));
  PetscCall(VecNorm(t, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &all));
  r->residual = norm / all;
  r->solved   = (PetscBool)(reason > 0);
  PetscCall(Complexity(pc, &r->complexity));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&t));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Defaults(void)
{
  static const char *const set[][2] = {
    {"-gamg_mg_levels_ksp_type",   "chebyshev"},
    {"-gamg_mg_levels_pc_type",    "jacobi"   },
    {"-gamg_mg_levels_ksp_max_it", "2"        },
    {"-our_mg_levels_ksp_type",    "chebyshev"},
    {"-our_mg_levels_pc_type",     "jacobi"   },
    {"-our_mg_levels_ksp_max_it",  "2"        }
  };

  PetscFunctionBeginUser;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(set); k++) {
    PetscBool there;

    PetscCall(PetscOptionsHasName(NULL, NULL, set[k][0], &there));
    if (!there) PetscCall(PetscOptionsSetValue(NULL, set[k][0], set[k][1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode One(size_t k, double scale, const char into[], double *logs, int *count, int *lost)
{
  Problem q = {
    .n = problems[k].n, .p = {problems[k].p[0], problems[k].p[1], problems[k].p[2]},
         .file = problems[k].file
  };
  Result   gamg, ours;
  Mat      A;
  PetscInt n;
  double   ratio;
  char     its[2][32];

  PetscFunctionBeginUser;
  if (q.n > 1000) q.n = (PetscInt)((double)q.n * scale);
  else q.n = (PetscInt)((double)q.n * PetscSqrtReal(scale)) / 10 * 10 + q.n % 10;
  PetscCall((*problems[k].make)(&q));
  if (!q.rough) PetscCall(MatSetOption(q.A, MAT_SPD, PETSC_TRUE));
  if (*into) {
    PetscCall(Write(q.A, into, problems[k].name));
    PetscCall(MatDestroy(&q.A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetSize(q.A, &n, NULL));
  PetscCall(Solve(q.A, &q, PETSC_TRUE, &gamg));
  PetscCall(MatConvert(q.A, "gpucsr", MAT_INITIAL_MATRIX, &A));
  {
    MatNullSpace near;

    PetscCall(MatGetNearNullSpace(q.A, &near));
    PetscCall(MatSetNearNullSpace(A, near));
    if (!q.rough) PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  }
  PetscCall(Solve(A, &q, PETSC_FALSE, &ours));
  ratio = (double)ours.its / PetscMax(1, gamg.its);
  if (gamg.solved && ours.solved) {
    *logs += PetscLogReal(ratio);
    (*count)++;
  }
  if (gamg.solved && !ours.solved) (*lost)++;
  for (int s = 0; s < 2; s++) PetscCall(PetscSNPrintf(its[s], sizeof(its[s]), "%s%" PetscInt_FMT, (s ? &ours : &gamg)->solved ? "" : "not in ", (s ? &ours : &gamg)->its));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "| %s | %" PetscInt_FMT " | %s | %s | %.2f | %.2f | %.2f | %.0e |\n", problems[k].name, n, its[0], its[1], ratio, gamg.complexity, ours.complexity, PetscMax(gamg.residual, ours.residual)));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&q.A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char     *only[64], into[PETSC_MAX_PATH_LEN] = "";
  PetscInt  n = 64;
  PetscBool set;
  PetscReal scale = 1;
  double    logs  = 0;
  int       count = 0, lost = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(Defaults());
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-only", only, &n, &set));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-scale", &scale, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-datasets", folder, sizeof(folder), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-write", into, sizeof(into), NULL));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "| problem | rows | PCGAMG | PCGPUAMG | ratio | complexity of PCGAMG | of PCGPUAMG | residual |\n|---|--:|--:|--:|--:|--:|--:|--:|\n"));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(problems); k++) {
    PetscBool wanted = (PetscBool)!set;

    for (PetscInt o = 0; o < n && set; o++) wanted = (PetscBool)(wanted || !strcmp(only[o], problems[k].name));
    if (wanted) PetscCall(One(k, scale, into, &logs, &count, &lost));
  }
  for (PetscInt o = 0; o < n && set; o++) PetscCall(PetscFree(only[o]));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\nGeometric mean of %d ratios: %.3f; solved by PCGAMG alone: %d\n", count, PetscExpReal(logs / PetscMax(1, count)), lost));
  PetscCall(PetscFinalize());
  return 0;
}
