/*
  PCGAMG of type agg over gpucsr matrices with levels made on the device, by the functions of PCGPUAMG. PETSc asks for each level through five functions of the PC. On one rank the device makes the
  whole hierarchy, on several ranks all levels for which PETSc does not take fewer ranks. For such small levels, and for options of its own, PETSc smooths, multiplies and reduces processes: the device makes
  aggregates and tentative prolongators. PETSc owns matrices, smoothers and the coarse solver in all cases, so all options and functions of PCGAMG and PCMG hold.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "gamg.h"

/* PETSc's functions of all PCs of type agg, with an empty place for each before the first set-up */
static struct _PCGAMGOps parent;

static PC_GAMG *GAMGOf(PC pc)
{
  return (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
}

/* ---- functions of the program ---- */

/* Functions that call PETSc's of the same name, and what follows */
#define SETTERS(S) \
  S(PCGAMG, SetType, PCGAMGType, PetscCall(PCGAMGIntercept_Private(pc))) \
  S(PCGAMG, SetNSmooths, PetscInt, d->nsmooths = value) \
  S(PCGAMG, SetAggressiveLevels, PetscInt, d->aggressive = value) \
  S(PCGAMG, SetAggressiveSquareGraph, PetscBool, d->squared = value) \
  S(PCGAMGMISk, SetAggressive, PetscInt, d->distance = value) \
  S(PCGAMGMISk, SetMinDegreeOrdering, PetscBool, d->special = "PCGAMGMISkSetMinDegreeOrdering()") \
  S(PCGAMG, SetLowMemoryFilter, PetscBool, d->special = "PCGAMGSetLowMemoryFilter()") \
  S(PCGAMG, SetGraphSymmetrize, PetscBool, d->special = "PCGAMGSetGraphSymmetrize()")

#define SETTER(prefix, Name, type, after) \
  static void (*petsc_##Name)(void); \
  static PetscErrorCode Name(PC pc, type value) \
  { \
    PCGAMGData *d; \
\
    PetscFunctionBegin; \
    PetscCall((*(PetscErrorCode(*)(PC, type))petsc_##Name)(pc, value)); \
    PetscCall(PCGAMGDataOf_Private(pc, &d)); \
    after; \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
SETTERS(SETTER)

#define ROW(prefix, Name, type, after) {#prefix #Name "_C", (void (*)(void))Name, &petsc_##Name},
static const struct {
  const char *name;
  void (*wrapped)(void);
  void (**petsc)(void);
} setters[] = {SETTERS(ROW)};

/* After PETSc has made its type: the defaults, and functions that call PETSc's functions of the same names */
PetscErrorCode PCGAMGIntercept_Private(PC pc)
{
  PCGAMGData *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  d->nsmooths   = 1;
  d->aggressive = 1;
  d->distance   = 2;
  d->squared    = PETSC_TRUE;
  d->special    = NULL;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(setters); k++) {
    void (*f)(void);

    PetscCall(PetscObjectQueryFunction((PetscObject)pc, setters[k].name, &f));
    if (!f || f == setters[k].wrapped) continue;
    *setters[k].petsc = f;
    PetscCall(PetscObjectComposeFunction((PetscObject)pc, setters[k].name, setters[k].wrapped));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- options ---- */

/* Reads again the options that PETSc keeps in private data. PETSc has read its options before, and may have changed the type */
PetscErrorCode PCGAMGSetFromOptions_Private(PC pc)
{
  PetscOptions options = ((PetscObject)pc)->options;
  const char  *prefix  = ((PetscObject)pc)->prefix;
  PetscBool    levels, squares, squared;
  PetscInt     old = 0;
  PCGAMGData  *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  PetscCall(PetscOptionsGetInt(options, prefix, "-pc_gamg_agg_nsmooths", &d->nsmooths, NULL));
  PetscCall(PetscOptionsGetInt(options, prefix, "-pc_gamg_aggressive_coarsening", &d->aggressive, &levels));
  PetscCall(PetscOptionsGetInt(options, prefix, "-pc_gamg_square_graph", &old, &squares));
  PetscCall(PetscOptionsGetBool(options, prefix, "-pc_gamg_aggressive_square_graph", &d->squared, &squared));
  PetscCall(PetscOptionsGetInt(options, prefix, "-pc_gamg_aggressive_mis_k", &d->distance, NULL));
  if (!squares || levels || squared) PetscFunctionReturn(PETSC_SUCCESS);
  d->aggressive = old;
  d->squared    = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options with PETSc's aggregates only, or the beginnings of their names */
static const char *const parentonly[] = {"mat_coarsen_", "pc_gamg_mat_coarsen_", "pc_gamg_mis_k_minimum_degree_ordering", "pc_gamg_low_memory_threshold_filter", "pc_gamg_graph_symmetrize", NULL};

/* The reason for PETSc's aggregates; "" if the device may aggregate */
static PetscErrorCode Reason(PC pc, const PCGAMGData *d, char why[], size_t len)
{
  const PC_GAMG *g      = GAMGOf(pc);
  const char    *prefix = ((PetscObject)pc)->prefix ? ((PetscObject)pc)->prefix : "";
  PetscBool      wanted = PETSC_TRUE;
  char          *all;

  PetscFunctionBegin;
  why[0] = 0;
  PetscCall(PetscOptionsGetBool(((PetscObject)pc)->options, prefix, "-pc_gamg_gpucsr", &wanted, NULL));
  if (!wanted) PetscCall(PetscStrncpy(why, "-pc_gamg_gpucsr false was asked for", len));
  if (g->use_aggs_in_asm) PetscCall(PetscStrncpy(why, "-pc_gamg_asm_use_agg makes smoothers of them", len));
#if GPUCSR_GAMG_HAS_HEM_AGGS
  if (g->asm_hem_aggs) PetscCall(PetscStrncpy(why, "-pc_gamg_asm_hem_aggs makes smoothers of others", len));
#endif
  if (d->special) PetscCall(PetscSNPrintf(why, len, "%s asks for a property of PETSc's", d->special));
  if (!d->squared && (d->distance < 1 || d->distance > 4)) PetscCall(PetscSNPrintf(why, len, "-pc_gamg_aggressive_mis_k %" PetscInt_FMT " is not from 1 to 4", d->distance));
  PetscCall(PetscOptionsGetAll(((PetscObject)pc)->options, &all));
  for (int k = 0; parentonly[k] && !why[0]; k++) {
    char  option[256];
    char *at;

    PetscCall(PetscSNPrintf(option, sizeof(option), "-%s%s", prefix, parentonly[k]));
    at = strstr(all, option);
    if (at) PetscCall(PetscSNPrintf(why, len, "%.*s was asked for", (int)strcspn(at, " "), at));
  }
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: an error if options differ between ranks, because the ranks would wait for each other for ever */
static PetscErrorCode Same(PC pc, const PCGAMGData *d)
{
  const PC_GAMG *g                            = GAMGOf(pc);
  int64_t        mine[9 + PETSC_MG_MAXLEVELS] = {(int64_t)d->ondevice, d->aggressive, d->distance, (int64_t)d->squared, d->nsmooths, g->min_eq_proc, g->coarse_eq_limit, g->Nlevels, g->data_cell_cols};
  int            differs;

  PetscFunctionBegin;
  for (int l = 0; l < PETSC_MG_MAXLEVELS; l++) mine[9 + l] = GPUCSRBits((double)g->threshold[l]);
  PetscCall(GPUCSRSameOnAllRanks(PetscObjectComm((PetscObject)pc), PETSC_STATIC_ARRAY_LENGTH(mine), mine, &differs));
  PetscCheck(differs == PETSC_STATIC_ARRAY_LENGTH(mine), PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_INCOMP, "Options -pc_gamg_... are not the same on all ranks: they must be");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- levels ---- */

/* PETSc keeps the near null space by columns. NULL: a constant of each component */
static PetscErrorCode Near(const PC_GAMG *g, Mat A, double **near)
{
  const PetscInt n = A->rmap->n, ns = g->data_cell_cols;
  PetscBool      constant;
  PetscInt       bs;

  PetscFunctionBegin;
  *near = NULL;
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCheck(bs <= GPUAMG_VECTORS && ns <= GPUAMG_VECTORS, PETSC_COMM_SELF, PETSC_ERR_SUP, "blocks of %" PetscInt_FMT " rows have %" PetscInt_FMT " near null vectors, at most %d of which the device takes", bs, ns, GPUAMG_VECTORS);
  PetscCheck((g->data || !n) && g->data_sz == n * ns, PETSC_COMM_SELF, PETSC_ERR_SUP, "the near null space does not have the rows of the matrix");
  constant = (PetscBool)(ns == bs);
  for (PetscInt c = 0; c < ns && constant; c++)
    for (PetscInt i = 0; i < n && constant; i++) constant = (PetscBool)(g->data[c * n + i] == (i % bs == c));
  if (constant) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1((size_t)n * (size_t)ns + 1, near));
  for (PetscInt c = 0; c < ns; c++)
    for (PetscInt i = 0; i < n; i++) (*near)[i * ns + c] = (double)g->data[c * n + i];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can the device's hierarchy follow the options of prolongators and products? PETSc makes both otherwise. More than one step of the prolongator's smoother needs PETSc's eigenvalue estimate for unsymmetric matrices */
static PetscErrorCode Whole(PC pc, const PCGAMGData *d, Mat A, int *steps, PetscBool *whole)
{
  static const char *const products[] = {"matptap", "matmatmult", "mat_product", "pc_gamg_esteig_", NULL};
  const PC_GAMG           *g          = GAMGOf(pc);
  char                    *all;
  const char              *at;
  PetscInt                 n = 10;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, whole, MATSEQAIJGPUCSR, MATMPIAIJGPUCSR, ""));
  if (g->current_level || g->emax > 0 || d->nsmooths < 0 || d->nsmooths > 1) *whole = PETSC_FALSE;
  PetscCall(PetscOptionsGetInt(((PetscObject)pc)->options, ((PetscObject)pc)->prefix, "-pc_gamg_esteig_ksp_max_it", &n, NULL));
  if (n < 1 || n > GPUAMG_STEPS) *whole = PETSC_FALSE;
  for (int l = 0; l < PETSC_MG_MAXLEVELS; l++) *whole = (PetscBool)(*whole && g->level_reduction_factors[l] <= 1);
  *steps = (int)n;
  PetscCall(PetscOptionsGetAll(((PetscObject)pc)->options, &all));
  for (int k = 0; products[k]; k++)
    for (at = strstr(all, products[k]); at && *whole; at = strstr(at + 1, products[k])) *whole = (PetscBool)!strncmp(at, "pc_gamg_esteig_ksp_max_it ", 26);
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The near null spaces of all levels */
static PetscErrorCode Bases(PCGAMGData *d)
{
  GPUCSRDevice dev = PCGAMGHierarchyDevice_Private(d->shared);

  PetscFunctionBegin;
  PetscCheck(!dev->failed[0], PETSC_COMM_SELF, PETSC_ERR_GPU, "%s", dev->failed);
  for (int l = 0; l + 1 < PCGAMGHierarchyLevels_Private(d->shared); l++) {
    const PCGAMGLevel C    = PCGAMGHierarchyLevel_Private(d->shared, l + 1);
    const size_t      size = (size_t)C.n * (size_t)C.ns;

    PetscCall(PetscMalloc1(size + 1, &d->next[l].near));
    if (size) PetscCall(GPUCSRDownload(dev, d->next[l].near, GPUCSR_DOUBLE, C.basis->p, GPUCSR_DOUBLE, size, PETSC_FALSE, dev->stream));
    PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. All levels, as PETSc leaves its own part allocated if a function of a level fails */
static PetscErrorCode Levels(PC pc, Mat A, PCGAMGData *d)
{
  GPUAMG *h = &d->shared->h;

  PetscFunctionBegin;
  for (int l = 0; l + 1 < PCGAMGHierarchyLevels_Private(d->shared); l++) {
    GPUAMGLevel *L = &h->level[l], *C = L + 1;

    if (d->kept || d->shared->of) {
      PetscCall(PCGAMGKeepP_Private(pc, d, l, &d->next[l].P));
      PetscCall(PCGAMGKeepA_Private(pc, d, l + 1, &d->next[l].C));
    } else {
      PetscCall(MatGPUCSROperatorFromCSR_Private(A, &L->P[h->o.nsmooths], L->bs, C->bs, &d->next[l].P));
      PetscCall(MatGPUCSROperatorFromCSR_Private(A, &C->A, C->bs, C->bs, &d->next[l].C));
    }
    if (d->kept) continue;
    PetscCall(MatGPUCSRLevelBecome_Private(d->next[l].P));
    PetscCall(MatGPUCSRLevelBecome_Private(d->next[l].C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Forgets the hierarchy. Levels that PETSc has taken stay */
static PetscErrorCode Drop(PCGAMGData *d, PetscBool all)
{
  PetscFunctionBegin;
  for (int l = 0; l < GPUAMG_LEVELS; l++) {
    PetscCall(MatDestroy(&d->next[l].P));
    PetscCall(MatDestroy(&d->next[l].C));
    PetscCall(PetscFree(d->next[l].near));
  }
  if (all) PetscCall(PCGAMGHierarchyRelease_Private(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The options of a hierarchy from the present level on */
static void Asked(const PC_GAMG *g, const PCGAMGData *d, int steps, GPUAMGOptions *o)
{
  const PetscInt l = g->current_level;

  *o = (GPUAMGOptions){
    .nsmooths = (int)d->nsmooths, .aggressive = (int)PetscMin(PetscMax(d->aggressive - l, 0), GPUAMG_LEVELS), .distance = {1, d->squared ? 2 : (int)d->distance},
                .limit = (int)PetscMin(g->coarse_eq_limit, INT32_MAX), .levels = (int)PetscMin(g->Nlevels, GPUAMG_LEVELS), .steps = steps, .damping = 1.4
  };
  for (int k = 0; k < GPUAMG_LEVELS; k++) o->threshold[k] = (double)g->threshold[PetscMin(l + k, PETSC_MG_MAXLEVELS - 1)];
}

/* Not collective. all: the whole hierarchy of one rank, if it is possible */
static PetscErrorCode Aggregate(PC pc, Mat A, PCGAMGData *d, PetscBool all, const GPUAMGOptions *o)
{
  const PC_GAMG *g = GAMGOf(pc);
  double        *near;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(Near(g, A, &near));
  if (all && A->rmap->n) ierr = PCGPUAMGHierarchy_Private(A, o, g->data_cell_cols, near, PETSC_TRUE, &d->shared->h);
  d->whole = (PetscBool)(all && d->shared->h.levels > 1 && !d->shared->h.problem);
  if (!ierr && !d->whole) ierr = PCGPUAMGTentativeMake_Private(A, o, g->data_cell_cols, near, &d->t);
  PetscCall(PetscFree(near));
  PetscCall(ierr);
  if (!d->whole) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Bases(d));
  PetscCall(Levels(pc, A, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: after an error of any rank PETSc makes this level and all coarser levels, unless the device is required */
static PetscErrorCode Settle(Mat A, PCGAMGData *d, GPUCSRAttempt *a)
{
  const MPI_Comm comm   = PetscObjectComm((PetscObject)A);
  int            weight = a->error ? 1 : 0;
  PetscMPIInt    rank;

  PetscFunctionBegin;
  PetscCall(GPUCSRAgree(comm, &weight, &a->error, a->message, sizeof(a->message), &rank));
  if (!a->error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGPUAMGTentativeDestroy_Private(&d->t));
  PetscCall(Drop(d, (PetscBool)!d->levels)); /* PETSc has taken the finer levels of the hierarchy */
  d->whole = PETSC_FALSE;
  PetscCheck(a->error == PETSC_ERR_SUP || (!MatGPUCSROperatorRequired_Private(A) && (a->error == PETSC_ERR_MEM || a->error == PETSC_ERR_GPU)), comm, a->error, "%s", a->message);
  d->ondevice = PETSC_FALSE;
  PetscCall(PetscSNPrintf(d->why, sizeof(d->why), "%s%s", a->message, d->levels ? " (from the next level on)" : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the levels of several ranks, if it is possible */
static PetscErrorCode AggregateAll(PC pc, Mat A, PCGAMGData *d, GPUAMGOptions o)
{
  const PC_GAMG *g    = GAMGOf(pc);
  double        *near = NULL;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  o.levels--; /* PETSc makes the coarsest level */
  GPUCSRTry(&attempt, Near(g, A, &near));
  PetscCall(Settle(A, d, &attempt));
  if (!d->ondevice) PetscFunctionReturn(PetscFree(near));
  GPUCSRTry(&attempt, PCGAMGRanksMake_Private(pc, A, &o, near, d));
  PetscCall(PetscFree(near));
  if (d->whole) GPUCSRThen(&attempt, Bases(d));
  PetscCall(Settle(A, d, &attempt));
  if (!d->whole) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTry(&attempt, Levels(pc, A, d));
  PetscCall(Settle(A, d, &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the present level, and all others of a new hierarchy */
static PetscErrorCode Present(PC pc, Mat A, PCGAMGData *d)
{
  const PC_GAMG *g = GAMGOf(pc);
  GPUAMGOptions  o;
  GPUCSRAttempt  attempt;
  PetscBool      kept, whole;
  PetscMPIInt    size;
  int            steps = 0, all[4];

  PetscFunctionBegin;
  if (g->current_level && d->next[g->current_level].P) {
    d->whole = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRLevelBecome_Private(A));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(Whole(pc, d, A, &steps, &whole));
  PetscCall(PCGAMGKept_Private(pc, &kept));
  all[0] = whole && (size == 1 || GPUCSR_SCALAR_IS_DOUBLE);
  all[1] = kept;
  all[2] = steps;
  all[3] = -steps;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, all, 4, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  Asked(g, d, steps, &o);
  if (!d->levels) {
    PetscCall(Drop(d, PETSC_TRUE));
    PetscCall(PCGAMGHierarchyCreate_Private(d));
    d->kept = (PetscBool)all[1];
  }
  if (all[0] && size > 1 && all[2] == -all[3]) PetscCall(AggregateAll(pc, A, d, o));
  if (d->whole || !d->ondevice) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTry(&attempt, Aggregate(pc, A, d, (PetscBool)(all[0] && size == 1), &o));
  PetscCall(Settle(A, d, &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first level of a new hierarchy */
static PetscErrorCode Begin(PC pc, PCGAMGData *d)
{
  PetscFunctionBegin;
  d->fresh  = PETSC_FALSE;
  d->levels = 0;
  PetscCall(Reason(pc, d, d->why, sizeof(d->why)));
  d->ondevice = (PetscBool)!d->why[0];
  PetscCall(Same(pc, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graph(PC pc, Mat A, Mat *G)
{
  PCGAMGData *d;
  PetscBool   isgpucsr;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  PetscCall(PCGPUAMGTentativeDestroy_Private(&d->t));
  d->whole = PETSC_FALSE;
  if (d->fresh) PetscCall(Begin(pc, d));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &isgpucsr, MATSEQAIJGPUCSR, MATMPIAIJGPUCSR, MATGPUCSRLEVEL, MATMPIGPUCSRLEVEL, ""));
  if (isgpucsr && d->ondevice) {
    PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_COARSEN], 0, 0, 0, 0));
    PetscCall(Present(pc, A, d));
    PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_COARSEN], 0, 0, 0, 0));
  }
  if (d->whole || d->t.i) {
    PetscCall(PetscObjectReference((PetscObject)A));
    *G = A;
    d->levels++;
  } else {
    PetscCall(MatGPUCSRLevelBecome_Private(A));
    PetscCall((*parent.creategraph)(pc, A, G));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No lists: the prolongator is there */
static PetscErrorCode Coarsen(PC pc, Mat *G, PetscCoarsenData **lists)
{
  PCGAMGData *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  if (d->whole || d->t.i) PetscCall(PetscCDCreate(0, lists));
  else PetscCall((*parent.coarsen)(pc, G, lists));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The near null space of the next level, by rows */
static PetscErrorCode Next(PC_GAMG *g, PetscInt n, const double *near)
{
  const PetscInt ns = g->data_cell_cols;

  PetscFunctionBegin;
  PetscCall(PetscFree(g->data));
  g->data_cell_rows = ns;
  g->data_sz        = n * ns;
  PetscCall(PetscMalloc1(g->data_sz, &g->data));
  for (PetscInt c = 0; c < ns; c++)
    for (PetscInt i = 0; i < n; i++) g->data[c * n + i] = (PetscReal)near[i * ns + c];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. P NULL: there is no coarser level */
static PetscErrorCode Take(PC pc, Mat A, PCGPUAMGTentative *t, Mat *P)
{
  PC_GAMG       *g  = GAMGOf(pc);
  const PetscInt ns = g->data_cell_cols;
  PetscInt       bs, columns;

  PetscFunctionBegin;
  *P = NULL;
  PetscCall(PCGPUAMGTentativeColumns_Private(A, t, &columns));
  if (!columns) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGPUAMGTentativeMatrix_Private(A, t, P));
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(MatSetBlockSizes(*P, bs, ns));
  PetscCall(Next(g, t->columns, t->near));
  PetscCall(MatViewFromOptions(*P, NULL, "-pc_gamg_agg_view_initial_prolongation"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* done: the level was aggregated on the device */
static PetscErrorCode Given(PC pc, Mat A, Mat *P, PetscBool *done)
{
  PCGAMGData *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  *done = (PetscBool)(d->whole || d->t.i);
  if (d->whole) {
    const PetscInt l = GAMGOf(pc)->current_level;

    *P           = d->next[l].P;
    d->next[l].P = NULL;
    PetscCall(Next(GAMGOf(pc), PCGAMGHierarchyLevel_Private(d->shared, (int)l + 1).n, d->next[l].near));
  } else if (*done) PetscCall(Take(pc, A, &d->t, P));
  PetscCall(PCGPUAMGTentativeDestroy_Private(&d->t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Older versions of PETSc also pass the graph */
typedef PetscErrorCode Without(PC, Mat, PetscCoarsenData *, Mat *);
typedef PetscErrorCode With(PC, Mat, Mat, PetscCoarsenData *, Mat *);

PETSC_UNUSED static PetscErrorCode ProlongatorWithout(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(Given(pc, A, P, &done));
  if (!done) PetscCall((*(Without *)(void (*)(void))parent.prolongator)(pc, A, lists, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_UNUSED static PetscErrorCode ProlongatorWith(PC pc, Mat A, Mat G, PetscCoarsenData *lists, Mat *P)
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(Given(pc, A, P, &done));
  if (!done) PetscCall((*(With *)(void (*)(void))parent.prolongator)(pc, A, G, lists, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hierarchy's largest eigenvalue gives Chebyshev's bounds. Options may need the smallest as well: PETSc then makes an estimate of both */
static PetscErrorCode Smooth(PC pc, Mat A, Mat *P)
{
  PC_MG         *mg    = (PC_MG *)pc->data;
  const PC_GAMG *g     = GAMGOf(pc);
  const PetscInt l     = g->current_level;
  PetscBool      bound = g->use_sa_esteig;
  PCGAMGData    *d;
  char          *all;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  if (!d->whole) PetscFunctionReturn((*parent.optprolongator)(pc, A, P));
  PetscCall(PetscOptionsGetAll(((PetscObject)pc)->options, &all));
  if (strstr(all, "ksp_chebyshev_esteig") || !d->nsmooths) bound = PETSC_FALSE;
  PetscCall(PetscFree(all));
  mg->max_eigen_DinvA[l] = bound ? (PetscReal)PCGAMGHierarchyLevel_Private(d->shared, (int)l).lambda : 0;
  mg->min_eigen_DinvA[l] = 0.1 * mg->max_eigen_DinvA[l];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Level(PC pc, Mat A, PetscInt bs, Mat *P, Mat *C, PetscMPIInt *active, IS *permutation, PetscBool last)
{
  const PetscInt l = GAMGOf(pc)->current_level;
  PCGAMGData    *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  if (d->whole) {
    *C           = d->next[l].C;
    d->next[l].C = NULL;
    PetscCall(MatPropagateSymmetryOptions(A, *C));
  } else PetscCall((*parent.createlevel)(pc, A, bs, P, C, active, permutation, last));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After PETSc's set-up; all: and its levels are no longer needed */
PetscErrorCode PCGAMGRelease_Private(PCGAMGData *d, PetscBool all)
{
  PetscFunctionBegin;
  PetscCall(PCGPUAMGTentativeDestroy_Private(&d->t));
  PetscCall(Drop(d, (PetscBool)(!d->kept || all)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before PETSc's set-up: puts the functions above in place of PETSc's */
PetscErrorCode PCGAMGAggregates_Private(PC pc)
{
  struct _PCGAMGOps *ops = GAMGOf(pc)->ops;
  PetscBool          isgpucsr, agg;
  PCGAMGData        *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  PetscCall(MatGPUCSRLevelBecome_Private(pc->pmat)); /* of another PC */
  PetscCall(PetscObjectTypeCompareAny((PetscObject)pc->pmat, &isgpucsr, MATSEQAIJGPUCSR, MATMPIAIJGPUCSR, ""));
  PetscCall(PetscStrcmp(GAMGOf(pc)->gamg_type_name, PCGAMGAGG, &agg));
  d->fresh = PETSC_TRUE;
  if (!isgpucsr) d->why[0] = 0;
  if (isgpucsr && !agg) PetscCall(PetscSNPrintf(d->why, sizeof(d->why), "the type is %s", GAMGOf(pc)->gamg_type_name));
  if (!isgpucsr || !agg || ops->creategraph == Graph) PetscFunctionReturn(PETSC_SUCCESS);
  parent           = *ops;
  ops->creategraph = Graph;
  ops->coarsen     = Coarsen;
  ops->createlevel = Level;
  if (ops->optprolongator) ops->optprolongator = Smooth;
  ops->prolongator = _Generic(ops->prolongator, With * : ProlongatorWith, Without * : ProlongatorWithout);
  PetscFunctionReturn(PETSC_SUCCESS);
}
