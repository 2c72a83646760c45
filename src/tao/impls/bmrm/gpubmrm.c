/*
  TAOGPUBMRM: the bundle method for regularised risks, with the bundle on the device of the products. The planes are vectors, of type gpu or on the host.

  In an iteration with m planes of n weights, a plane is added to the bundle and multiplied with all planes (m n). Rank 0 solves the dual problem of m variables. The new weights are a sum of planes (n for
  each nonzero multiplier). TAO's bmrm does all of this on rank 0, where it gathers each subgradient.

  Some programs can compute the risk along a line without a product. They compose a function with the Tao. The method is then Franc's and Sonnenburg's (OCAS): see the manual page below.
*/
#include "../../../vec/impls/gpu/vecgpu.h"
#include <petsc/private/taoimpl.h> /* the operations of a Tao */
#include <petsctime.h>
#include "gpubmrm.h"
#include "simplexqp.h"

#if GPUCSR_SCALAR_IS_DOUBLE

enum {
  BACKEND_AUTO,
  BACKEND_CUDA,
  BACKEND_HOST
};
static const char *const Backends[] = {"auto", "cuda", "host"};

  /* Name of the function that a program composes: see the manual page */
  #define SEARCH "TaoGPUBMRMSearch_C"
  #define SPARE  100 /* planes without a multiplier to keep: a search needs few of them */
typedef PetscErrorCode Search(Tao, Vec, Vec, Vec, PetscReal *, PetscReal *);

typedef struct {
  PetscReal      lambda;
  PetscInt       backend, most; /* most: limit of planes */
  Vec           *column;        /* this rank's rows of the weights, then of each plane */
  Vec            in;
  PetscInt       columns, made; /* with the weights; vectors, of which some wait for new planes */
  GPUCSRDevice   dev;           /* of the planes; NULL: the host, and why */
  char           why[512];
  SimplexQP      qp; /* rank 0 */
  double        *dots, *sums, *x;
  PetscInt       room; /* numbers in these, and vectors in column */
  PetscLogDouble planes_time, qp_time, step_time;
} TAO_GPUBMRM;

static PetscErrorCode Reset(TAO_GPUBMRM *g)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < g->made; k++) PetscCall(VecDestroy(&g->column[k]));
  PetscCall(VecDestroy(&g->in));
  PetscCall(PetscFree(g->column));
  PetscCall(SimplexQPDestroy(&g->qp));
  PetscCall(PetscFree3(g->dots, g->sums, g->x));
  g->columns = g->made = g->room = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Appends the entries of v on this rank. g->in takes them from the host, so that columns on a device have no copies there */
static PetscErrorCode Append(TAO_GPUBMRM *g, Vec v)
{
  Vec own;

  PetscFunctionBegin;
  /* room for one more column, and two more numbers */
  if (g->columns + 2 > g->room) {
    PetscCall(PetscFree3(g->dots, g->sums, g->x));
    g->room = 2 * (g->columns + 2);
    PetscCall(PetscMalloc3(g->room, &g->dots, g->room, &g->sums, g->room, &g->x));
    PetscCall(PetscRealloc(sizeof(*g->column) * (size_t)g->room, &g->column));
  }
  if (g->columns == g->made) {
    PetscCall(VecDuplicate(g->in, &g->column[g->made]));
    g->made++;
  }
  PetscCall(VecCreateLocalVector(v, &own));
  PetscCall(VecGetLocalVectorRead(v, own));
  PetscCall(VecCopy(own, g->in));
  PetscCall(VecRestoreLocalVectorRead(v, own));
  PetscCall(VecDestroy(&own));
  PetscCall(VecCopy(g->in, g->column[g->columns]));
  if (g->dev) {
    PetscCall(VecGPUGetDevice(g->column[g->columns], &g->dev));
    if (!g->dev) PetscCall(PetscStrncpy(g->why, "the device has too little memory", sizeof(g->why)));
  }
  g->columns++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* w = sum of factor[k] times plane k */
static PetscErrorCode Sum(TAO_GPUBMRM *g, const double factor[], Vec w)
{
  PetscScalar *a;
  Vec         *plane;
  PetscInt     n = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(g->columns, &plane, g->columns, &a));
  for (PetscInt k = 0; k < g->columns - 1; k++) {
    if (factor[k] == 0) continue;
    plane[n] = g->column[k + 1];
    a[n++]   = factor[k];
  }
  PetscCall(VecSet(w, 0.0));
  if (g->dev) PetscCall(VecMAXPY(w, n, a, plane));
  else
    for (PetscInt k = 0; k < n; k++) PetscCall(VecAXPY(w, a[k], plane[k])); /* as in AddPlane() */
  PetscCall(PetscFree2(plane, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps only these planes, ascending, from 0 */
static void Keep(TAO_GPUBMRM *g, PetscInt nkept, const PetscInt kept[])
{
  for (PetscInt k = 0; k < nkept; k++) {
    const Vec other = g->column[k + 1];

    g->column[k + 1]       = g->column[kept[k] + 1];
    g->column[kept[k] + 1] = other;
  }
  g->columns = nkept + 1;
}

/* Adds the plane with subgradient G. f: its value at zero weights or, if `at` is set, the risk at the bundle's current weights */
static PetscErrorCode AddPlane(Tao tao, Vec G, PetscBool at, PetscReal f)
{
  TAO_GPUBMRM   *g    = (TAO_GPUBMRM *)tao->data;
  const PetscInt n    = g->columns; /* planes with this one */
  MPI_Comm       comm = PetscObjectComm((PetscObject)tao);
  PetscMPIInt    rank, count;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(Append(g, G));
  if (g->dev) PetscCall(VecMDot(g->column[n], n + 1, g->column, g->dots));
  else
    for (PetscInt k = 0; k <= n; k++) PetscCall(VecDot(g->column[n], g->column[k], &g->dots[k])); /* the bits of PETSc's VecMDot() depend on the vectors' addresses from 3.20 on */
  PetscCall(PetscMPIIntCast(n + 1, &count));
  PetscCallMPI(MPI_Reduce(g->dots, g->sums, count, MPI_DOUBLE, MPI_SUM, 0, comm));
  if (!rank) {
    const double offset = at ? f - g->sums[0] : f;

    for (PetscInt k = 1; k <= n; k++) g->sums[k] /= g->lambda;
    PetscCall(SimplexQPAppend(&g->qp, g->sums + 1, -offset));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Minimises lambda/2 |w|^2 + max of the planes: the weights go to W, the quadratic part and the value to all ranks. gap, size: of the objective; the tolerance allows for rounding, and does not save time */
static PetscErrorCode MinimisePlanes(Tao tao, PetscReal gap, PetscReal size, Vec W, PetscReal *square, PetscReal *value)
{
  TAO_GPUBMRM    *g    = (TAO_GPUBMRM *)tao->data;
  const PetscReal tol  = PetscMax(5e-5 * gap, 1e-17 * PetscAbsReal(size));
  const PetscInt  n    = g->columns - 1;
  MPI_Comm        comm = PetscObjectComm((PetscObject)tao);
  Vec             own;
  PetscMPIInt     rank, count;
  PetscLogDouble  t[3];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscTime(&t[0]));
  if (!rank) {
    PetscReal linear = 0;

    PetscCall(SimplexQPSolve(&g->qp, tol));
    for (PetscInt k = 0; k < n; k++) {
      g->x[k] = -g->qp.x[k] / g->lambda;
      linear += g->qp.x[k] * g->qp.f[k];
    }
    g->x[n]     = g->qp.value - linear; /* x'Qx/2 is lambda/2 |w|^2 */
    g->x[n + 1] = -g->qp.value;
  }
  PetscCall(PetscMPIIntCast(n + 2, &count));
  PetscCallMPI(MPI_Bcast(g->x, count, MPI_DOUBLE, 0, comm));
  *square = g->x[n];
  *value  = g->x[n + 1];
  PetscCall(PetscTime(&t[1]));
  PetscCall(Sum(g, g->x, g->column[0]));
  PetscCall(VecCreateLocalVector(W, &own));
  PetscCall(VecGetLocalVector(W, own));
  PetscCall(VecCopy(g->column[0], own));
  PetscCall(VecRestoreLocalVector(W, own));
  PetscCall(VecDestroy(&own));
  PetscCall(PetscTime(&t[2]));
  g->qp_time += t[1] - t[0];
  g->step_time += t[2] - t[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Reduces the bundle to at most `goal` planes. The oldest planes without a multiplier are dropped. If too many remain, the planes with the smallest multipliers are replaced by their mean, weighted by
  multipliers, which is a lower bound of the risk too. The mean preserves the planes' bound at their minimum. The dual problem is then solved anew.
*/
static PetscErrorCode Compress(Tao tao, PetscInt goal)
{
  TAO_GPUBMRM   *g    = (TAO_GPUBMRM *)tao->data;
  const PetscInt n    = g->columns - 1;
  MPI_Comm       comm = PetscObjectComm((PetscObject)tao);
  PetscMPIInt    rank, count;
  PetscInt      *kept;
  PetscBool      mean = PETSC_FALSE;
  Vec            sum  = NULL;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscMalloc1(n + 2, &kept)); /* number of kept planes, whether there is a mean, and the kept planes */
  if (!rank) {
    PetscCall(SimplexQPChoose(&g->qp, goal - 1, &kept[0], kept + 2, g->x, &g->x[n], &mean));
    kept[1] = mean;
  }
  PetscCall(PetscMPIIntCast(n + 2, &count));
  PetscCallMPI(MPI_Bcast(kept, count, MPIU_INT, 0, comm));
  PetscCallMPI(MPI_Bcast(g->x, count - 1, MPI_DOUBLE, 0, comm));
  PetscCall(PetscInfo(tao, "%" PetscInt_FMT " planes become %" PetscInt_FMT "%s\n", n, kept[0], kept[1] ? " and their mean" : ""));
  if (kept[1]) {
    PetscCall(VecDuplicate(g->in, &sum));
    PetscCall(Sum(g, g->x, sum));
  }
  Keep(g, kept[0], kept + 2);
  if (!rank) PetscCall(SimplexQPKeep(&g->qp, kept[0], kept + 2));
  if (sum) PetscCall(AddPlane(tao, sum, PETSC_FALSE, g->x[n]));
  PetscCall(VecDestroy(&sum));
  PetscCall(PetscFree(kept));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Number of planes with a multiplier, the same on all ranks */
static PetscInt Active(const TAO_GPUBMRM *g)
{
  PetscInt active = 0;

  for (PetscInt k = 0; k < g->columns - 1; k++) active += g->x[k] != 0;
  return active;
}

/*
  The plain method takes each plane at the minimum of the previous planes, which is the solution in the end. With a search, the program searches the line from the best weights so far to that minimum, and
  returns a plane near the best weights
*/
static PetscErrorCode TaoSolve_GPUBMRM(Tao tao)
{
  TAO_GPUBMRM   *g      = (TAO_GPUBMRM *)tao->data;
  Search        *search = NULL;
  Vec            w = tao->solution, G = tao->gradient, point = w;
  PetscReal      best = PETSC_MAX_REAL, f, value, lower = -PETSC_MAX_REAL, gap, square, bound; /* f: the risk, or with a search the plane's value at zero weights */
  PetscLogDouble begin, end;
  PetscInt       n;
  PetscBool      host;

  PetscFunctionBegin;
  PetscCall(Reset(g));
  g->planes_time = g->qp_time = g->step_time = 0;
  /* an empty bundle, and the initial weights */
  PetscCall(VecGetLocalSize(w, &n));
  host      = (PetscBool)(g->backend == BACKEND_HOST || (g->backend == BACKEND_AUTO && n < GPUCSRMachineShared.bundle_rows));
  g->why[0] = 0;
  if (g->backend == BACKEND_HOST) PetscCall(PetscStrncpy(g->why, "it was asked for", sizeof(g->why)));
  else if (host) PetscCall(PetscSNPrintf(g->why, sizeof(g->why), "%" PetscInt_FMT " rows are too few for a device", n));
  else PetscCall(GPUCSRDeviceOpen("cuda", &g->dev, g->why, sizeof(g->why)));
  PetscCall(VecCreate(PETSC_COMM_SELF, &g->in));
  PetscCall(VecSetSizes(g->in, n, n));
  PetscCall(VecSetType(g->in, host ? VECSEQ : VECSEQGPU));
  PetscCall(VecGPUGetDevice(g->in, &g->dev));
  if (g->dev && !g->dev->ops->separate) g->dev = NULL;
  if (!g->dev && !g->why[0]) PetscCall(PetscStrncpy(g->why, "vectors are on the host", sizeof(g->why)));
  PetscCheck(g->dev || g->backend != BACKEND_CUDA, PETSC_COMM_SELF, PETSC_ERR_SUP, "The bundle cannot be kept on the device: %s", g->why);
  PetscCall(Append(g, w));
  tao->step   = 1.0;
  tao->reason = TAO_CONTINUE_ITERATING;
  PetscCall(PetscObjectQueryFunction((PetscObject)tao, SEARCH, &search));
  if (search) {
    PetscCall(VecDuplicate(w, &point));
    PetscCall((*search)(tao, w, w, G, &best, &f));
  } else PetscCall(TaoComputeObjectiveAndGradient(tao, w, &f, G));
  value = search ? best : f;
  gap   = search ? best : 1.0;
  for (;; tao->niter++) {
    PetscCall(TaoLogConvergenceHistory(tao, value, gap, 0.0, tao->ksp_its));
    PetscCall(TaoMonitor(tao, tao->niter, value, gap, 0.0, tao->step));
    if (!search || lower > -PETSC_MAX_REAL) PetscUseTypeMethod(tao, convergencetest, tao->cnvP);
    if (tao->reason != TAO_CONTINUE_ITERATING) break;
    PetscTryTypeMethod(tao, update, tao->niter, tao->user_update);
    PetscCall(PetscTime(&begin));
    if (g->columns > g->most) PetscCall(Compress(tao, 3 * g->most / 4));
    else if (search && g->columns > SPARE + 2 * Active(g)) PetscCall(Compress(tao, SPARE / 2 + Active(g)));
    PetscCall(AddPlane(tao, G, (PetscBool)!search, f));
    PetscCall(PetscTime(&end));
    g->planes_time += end - begin;
    PetscCall(MinimisePlanes(tao, gap, value, point, &square, &bound));
    lower = PetscMax(lower, bound);
    if (search) PetscCall((*search)(tao, point, w, G, &best, &f));
    else {
      PetscCall(TaoComputeObjectiveAndGradient(tao, w, &f, G));
      best = PetscMin(best, square + f);
    }
    value = best;
    gap   = PetscMax(best - lower, 0);
  }
  if (search) PetscCall(VecDestroy(&point));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TaoSetUp_GPUBMRM(Tao tao)
{
  PetscFunctionBegin;
  if (!tao->gradient) PetscCall(VecDuplicate(tao->solution, &tao->gradient));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TaoDestroy_GPUBMRM(Tao tao)
{
  PetscFunctionBegin;
  PetscCall(Reset((TAO_GPUBMRM *)tao->data));
  PetscCall(PetscFree(tao->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TaoSetFromOptions_GPUBMRM(Tao tao, GPUCSROptionItems PetscOptionsObject)
{
  TAO_GPUBMRM *g = (TAO_GPUBMRM *)tao->data;

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "TAOGPUBMRM options");
  PetscCall(PetscOptionsReal("-tao_bmrm_lambda", "Weight of half the square of the weights", "TAOGPUBMRM", g->lambda, &g->lambda, NULL));
  PetscCall(PetscOptionsEList("-tao_gpubmrm_backend", "Where the bundle is kept", "TAOGPUBMRM", Backends, PETSC_STATIC_ARRAY_LENGTH(Backends), Backends[g->backend], &g->backend, NULL));
  PetscCall(PetscOptionsInt("-tao_gpubmrm_planes", "Largest number of planes: then planes with small multipliers are merged", "TAOGPUBMRM", g->most, &g->most, NULL));
  PetscOptionsHeadEnd();
  PetscCheck(g->most >= 4, PetscObjectComm((PetscObject)tao), PETSC_ERR_USER_INPUT, "-tao_gpubmrm_planes has to be at least 4, not %" PetscInt_FMT, g->most);
  PetscCheck(g->lambda > 0 && !PetscIsInfOrNanReal(g->lambda), PetscObjectComm((PetscObject)tao), PETSC_ERR_USER_INPUT, "-tao_bmrm_lambda has to be positive and finite, not %g", (double)g->lambda);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TaoView_GPUBMRM(Tao tao, PetscViewer viewer)
{
  const TAO_GPUBMRM *g = (const TAO_GPUBMRM *)tao->data;
  PetscBool          ascii;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  lambda %g\n", (double)g->lambda));
  if (g->columns) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  %" PetscInt_FMT " planes, on the %s%s%s\n", g->columns - 1, g->dev ? "device" : "host", g->dev ? "" : ", because ", g->dev ? "" : g->why));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  dual problem on rank 0: %" PetscInt_FMT " multipliers are not zero, %" PetscInt_FMT " steps in all\n", Active(g), g->qp.changes));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  milliseconds: planes and their dot products %.3f, dual problem %.3f, weights %.3f\n", 1e3 * g->planes_time, 1e3 * g->qp_time, 1e3 * g->step_time));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  TAOGPUBMRM - "gpubmrm", bundle method for regularised risk minimisation with a distributed bundle on the GPU

  Options Database Keys:
+ -tao_bmrm_lambda lambda               - factor of the regularisation |w|^2 / 2, 1 by default; an option of `TAOBMRM`
. -tao_gpubmrm_planes n                 - largest number of planes, 1000 by default; then planes with the smallest multipliers are merged
- -tao_gpubmrm_backend (auto|cuda|host) - place of the bundle; auto takes the host for few weights, without a device, or with too little memory

  Level: beginner

  Notes:
  Minimises lambda/2 |w|^2 + R(w). The objective and gradient of the `Tao` are for the convex risk R alone, as with `TAOBMRM`. The residual for monitors and for
  the tolerance -tao_gatol is the gap between the smallest value so far and the largest lower bound. With -tao_grtol 0 there is no other test.

  The dual problem is solved exactly, up to rounding, so the number of iterations is the same for all types and numbers of ranks. `TAOBMRM` solves it inexactly and takes about as many.
  The solution is the last iterate, which need not have the smallest value.

  A program that can compute its risk along a line without new products composes a function with the Tao

.vb
   PetscErrorCode Search(Tao tao, Vec point, Vec best, Vec G, PetscReal *value, PetscReal *offset);
   PetscObjectComposeFunction((PetscObject)tao, "TaoGPUBMRMSearch_C", Search);
.ve

  which moves `best` along the line towards `point`, the minimum of the planes, to the minimum of lambda/2 |w|^2 + R(w), and sets `value` to this minimum. It also gives
  a plane of R near there, as a subgradient `G` and the plane's value at zero weights, `offset`. In the first call `point` is `best`, the start. The objective
  given to Tao is then not called, values descend, and the solution is the best one. The method is then V. Franc's and S. Sonnenburg's, Optimized cutting plane
  algorithm for large-scale risk minimization, JMLR 10, 2009.

  The plain method: C. H. Teo, S. V. N. Vishwanathan, A. Smola and Q. V. Le, Bundle methods for regularized risk minimization, JMLR 11, 2010.

.seealso: `TAOBMRM`, `TaoSetType()`, `MatGPUCSRInitializePackage()`, `MATGPUCSR`
M*/
static PetscErrorCode TaoCreate_GPUBMRM(Tao tao)
{
  TAO_GPUBMRM *g;

  PetscFunctionBegin;
  tao->ops->setup          = TaoSetUp_GPUBMRM;
  tao->ops->solve          = TaoSolve_GPUBMRM;
  tao->ops->view           = TaoView_GPUBMRM;
  tao->ops->setfromoptions = TaoSetFromOptions_GPUBMRM;
  tao->ops->destroy        = TaoDestroy_GPUBMRM;
  PetscCall(PetscNew(&g));
  g->lambda = 1.0;
  g->most   = 1000;
  tao->data = (void *)g;

  /* the defaults of TAOBMRM */
  #if !GPUCSR_HAS_PARAMETERS
  if (!tao->max_it_changed) tao->max_it = 2000;
  if (!tao->max_funcs_changed) tao->max_funcs = 4000;
  if (!tao->gatol_changed) tao->gatol = 1e-12;
  if (!tao->grtol_changed) tao->grtol = 1e-12;
  #else
  PetscCall(TaoParametersInitialize(tao));
  PetscObjectParameterSetDefault(tao, max_it, 2000);
  PetscObjectParameterSetDefault(tao, max_funcs, 4000);
  PetscObjectParameterSetDefault(tao, gatol, 1e-12);
  PetscObjectParameterSetDefault(tao, grtol, 1e-12);
  #endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode TaoGPUBMRMRegister(void)
{
  PetscFunctionBegin;
#if GPUCSR_SCALAR_IS_DOUBLE
  PetscCall(TaoRegister(TAOGPUBMRM, TaoCreate_GPUBMRM));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
