/*
    hypre [-only WORD] lognormal7_128 lognormal27_96 elastic_56 ...

  CG of hypre, preconditioned by BoomerAMG in device memory: peer.h describes the times. The settings follow hypre's manual for GPUs. Coarsening is PMIS, with 0 or 1 aggressive level.
  Interpolation is extended+i or extended+e in matrix-matrix form, with at most 4 entries a row and stored transposes. Smoothers are l1-Jacobi or Chebyshev. For elastic_N a further run
  tells hypre the three unknowns of a point.
*/
#include "peer.h"
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <HYPRE_utilities.h>

#ifdef HYPRE_SEQUENTIAL /* hypre without MPI */
  #define MPI_COMM_WORLD       0
  #define MPI_Init(argc, argv) ((void)0)
  #define MPI_Finalize()       ((void)0)
#endif

/* All combinations, the first row varies slowest */
typedef struct {
  const char *name;
  int         value;
} Choice;
#define MOST 3
static const struct {
  int    count;
  Choice of[MOST];
} choices[] = {
  {2, {{"ext+i", 6}, {"MM-ext+e", 18}, {NULL, 0}}                                   },
  {3, {{"", 0}, {", 1 aggressive (multipass)", 4}, {", 1 aggressive (MM-ext+e)", 7}}},
  {2, {{", l1-Jacobi", 18}, {", Chebyshev", 16}, {NULL, 0}}                         },
  {2, {{"", 25}, {", strong 0.5", 50}, {NULL, 0}}                                   }, /* hundredths */
  {2, {{"", 1}, {", 3 functions", 3}, {NULL, 0}}                                    }
};
#define NSETTINGS 48

enum {
  INTERPOLATION,
  AGGRESSIVE,
  SMOOTHER,
  STRENGTH,
  FUNCTIONS,
  NCHOICES
};

static const Choice *Chosen(int k, int which)
{
  for (int c = NCHOICES - 1; c > which; c--) k /= choices[c].count;
  return &choices[which].of[k % choices[which].count];
}

typedef struct {
  HYPRE_IJMatrix     ijA;
  HYPRE_IJVector     ijb, ijx;
  HYPRE_ParCSRMatrix A;
  HYPRE_ParVector    b, x;
  HYPRE_Solver       krylov, amg;
  double            *device; /* n numbers, which are the vectors' way to and from the host */
  int                n;
} Hypre;

static const char *Failed(void)
{
  static char     text[256];
  const HYPRE_Int error = HYPRE_GetError();

  if (!error) return NULL;
  HYPRE_DescribeError(error, text);
  HYPRE_ClearAllErrors();
  for (char *c = text; *c; c++)
    if (*c == '\n' || *c == '|') *c = ' ';
  return text;
}

static const char *SetUp(void *ctx)
{
  const Hypre *h = (const Hypre *)ctx;

  HYPRE_ParCSRPCGSetup(h->krylov, h->A, h->b, h->x);
  return Failed();
}

/* A solve that ends without the tolerance is no failure: the residual tells */
static const char *Solve(void *ctx, int *its)
{
  const Hypre *h = (const Hypre *)ctx;
  HYPRE_Int    count;

  HYPRE_ParVectorSetConstantValues(h->x, 0);
  HYPRE_ParCSRPCGSolve(h->krylov, h->A, h->b, h->x);
  HYPRE_ParCSRPCGGetNumIterations(h->krylov, &count);
  *its = (int)count;
  HYPRE_ClearError(HYPRE_ERROR_CONV);
  return Failed();
}

static const char *Fetch(void *ctx, double *x)
{
  const Hypre *h = (const Hypre *)ctx;

  HYPRE_IJVectorGetValues(h->ijx, h->n, NULL, h->device);
  if (cudaMemcpy(x, h->device, sizeof(*x) * (size_t)h->n, cudaMemcpyDeviceToHost) != cudaSuccess) return "copy of the solution";
  return Failed();
}

static void *Upload(const void *host, size_t bytes)
{
  void *device = NULL;

  if (cudaMalloc(&device, bytes ? bytes : 1) == cudaSuccess && cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice) == cudaSuccess) return device;
  fprintf(stderr, "hypre: no device memory for %zu bytes\n", bytes);
  exit(1);
}

static void CreateVector(const Hypre *h, HYPRE_IJVector *ij, HYPRE_ParVector *v)
{
  HYPRE_IJVectorCreate(MPI_COMM_WORLD, 0, h->n - 1, ij);
  HYPRE_IJVectorSetObjectType(*ij, HYPRE_PARCSR);
  HYPRE_IJVectorInitialize_v2(*ij, HYPRE_MEMORY_DEVICE);
  HYPRE_IJVectorSetValues(*ij, h->n, NULL, h->device);
  HYPRE_IJVectorAssemble(*ij);
  HYPRE_IJVectorGetObject(*ij, (void **)v);
}

static void Create(const PeerSystem *A, Hypre *h)
{
  const size_t  n = (size_t)A->n, nnz = (size_t)A->i[A->n];
  HYPRE_Int    *length = (HYPRE_Int *)PeerAlloc(n, sizeof(*length)), *dlength;
  HYPRE_BigInt *row = (HYPRE_BigInt *)PeerAlloc(n, sizeof(*row)), *col = (HYPRE_BigInt *)PeerAlloc(nnz, sizeof(*col)), *drow, *dcol;
  double       *da;

  for (int r = 0; r < A->n; r++) {
    length[r] = A->i[r + 1] - A->i[r];
    row[r]    = r;
  }
  for (size_t k = 0; k < nnz; k++) col[k] = A->j[k];
  dlength   = (HYPRE_Int *)Upload(length, n * sizeof(*length));
  drow      = (HYPRE_BigInt *)Upload(row, n * sizeof(*row));
  dcol      = (HYPRE_BigInt *)Upload(col, nnz * sizeof(*col));
  da        = (double *)Upload(A->a, nnz * sizeof(*da));
  h->device = (double *)Upload(A->b, n * sizeof(*A->b));
  h->n      = A->n;
  HYPRE_IJMatrixCreate(MPI_COMM_WORLD, 0, A->n - 1, 0, A->n - 1, &h->ijA);
  HYPRE_IJMatrixSetObjectType(h->ijA, HYPRE_PARCSR);
  HYPRE_IJMatrixInitialize_v2(h->ijA, HYPRE_MEMORY_DEVICE);
  HYPRE_IJMatrixSetValues(h->ijA, A->n, dlength, drow, dcol, da);
  HYPRE_IJMatrixAssemble(h->ijA);
  HYPRE_IJMatrixGetObject(h->ijA, (void **)&h->A);
  CreateVector(h, &h->ijb, &h->b);
  CreateVector(h, &h->ijx, &h->x);
  (void)cudaDeviceSynchronize();
  (void)cudaFree(dlength);
  (void)cudaFree(drow);
  (void)cudaFree(dcol);
  (void)cudaFree(da);
  free(length);
  free(row);
  free(col);
}

static void Forget(PeerSystem *A)
{
  Hypre *h = (Hypre *)A->device;

  if (!h) return;
  HYPRE_IJMatrixDestroy(h->ijA);
  HYPRE_IJVectorDestroy(h->ijb);
  HYPRE_IJVectorDestroy(h->ijx);
  (void)cudaFree(h->device);
  free(h);
}

static void CreateSolver(int k, Hypre *h)
{
  const int aggressive = Chosen(k, AGGRESSIVE)->value;

  HYPRE_BoomerAMGCreate(&h->amg);
  HYPRE_BoomerAMGSetTol(h->amg, 0);
  HYPRE_BoomerAMGSetMaxIter(h->amg, 1);
  HYPRE_BoomerAMGSetPrintLevel(h->amg, 0);
  HYPRE_BoomerAMGSetCoarsenType(h->amg, 8);
  HYPRE_BoomerAMGSetInterpType(h->amg, Chosen(k, INTERPOLATION)->value);
  HYPRE_BoomerAMGSetPMaxElmts(h->amg, 4);
  HYPRE_BoomerAMGSetAggNumLevels(h->amg, aggressive > 0);
  if (aggressive) HYPRE_BoomerAMGSetAggInterpType(h->amg, aggressive);
  HYPRE_BoomerAMGSetRelaxType(h->amg, Chosen(k, SMOOTHER)->value);
  HYPRE_BoomerAMGSetRelaxOrder(h->amg, 0);
  HYPRE_BoomerAMGSetNumSweeps(h->amg, 1);
  HYPRE_BoomerAMGSetStrongThreshold(h->amg, 0.01 * Chosen(k, STRENGTH)->value);
  HYPRE_BoomerAMGSetNumFunctions(h->amg, Chosen(k, FUNCTIONS)->value);
  HYPRE_BoomerAMGSetKeepTranspose(h->amg, 1);
  HYPRE_ParCSRPCGCreate(MPI_COMM_WORLD, &h->krylov);
  HYPRE_PCGSetTwoNorm(h->krylov, 1);
  HYPRE_PCGSetTol(h->krylov, PEER_RTOL);
  HYPRE_PCGSetMaxIter(h->krylov, PEER_MOST);
  HYPRE_PCGSetPrintLevel(h->krylov, 0);
  HYPRE_PCGSetLogging(h->krylov, 0);
  HYPRE_ParCSRPCGSetPrecond(h->krylov, HYPRE_BoomerAMGSolve, HYPRE_BoomerAMGSetup, h->amg);
}

static void Run(int k, PeerSystem *A, PeerRow *row)
{
  PeerSolver s = {NULL, SetUp, Solve, Fetch, NULL};
  Hypre     *h;

  *row = (PeerRow){0, 0, 0, 0, 1, 0, NULL};
  if (Chosen(k, FUNCTIONS)->value > A->bs) {
    row->failed = PeerSkipped;
    return;
  }
  if (!A->device) Create(A, A->device = PeerAlloc(1, sizeof(*h)));
  s.ctx = h = (Hypre *)A->device;
  CreateSolver(k, h);
  if (!(row->failed = Failed())) PeerRun(&s, A, row);
  HYPRE_ParCSRPCGDestroy(h->krylov);
  HYPRE_BoomerAMGDestroy(h->amg);
}

int main(int argc, char **argv)
{
  static char text[NSETTINGS][128];
  const char *names[NSETTINGS];
  int         code;

  for (int k = 0; k < NSETTINGS; k++) {
    text[k][0] = 0;
    for (int c = 0; c < NCHOICES; c++) strncat(text[k], Chosen(k, c)->name, sizeof(text[k]) - strlen(text[k]) - 1);
    names[k] = text[k];
  }
  MPI_Init(&argc, &argv);
  HYPRE_Initialize();
  HYPRE_DeviceInitialize();
  HYPRE_SetMemoryLocation(HYPRE_MEMORY_DEVICE);
  HYPRE_SetExecutionPolicy(HYPRE_EXEC_DEVICE);
  HYPRE_SetSpGemmUseVendor(0);
  HYPRE_SetUseGpuRand(1);
  code = PeerMain(argc, argv, names, NSETTINGS, Run, Forget);
  HYPRE_Finalize();
  MPI_Finalize();
  return code;
}
