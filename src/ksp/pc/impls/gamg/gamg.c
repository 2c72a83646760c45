/*
  PCGAMG of type agg over gpucsr matrices with levels made on the device, by a PC of type gpuamg that no program sees. PETSc asks for each level through five functions of the PC. The device makes all levels for
  which PETSc does not take fewer ranks; PETSc makes smaller levels, and all levels for options of its own. PETSc owns matrices, smoothers and the coarse solver in all cases, so all options and functions of
  PCGAMG and PCMG hold.
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

/* Options with PETSc's aggregates only, or the beginnings of their names */
static const char *const parentonly[] = {"mat_coarsen_", "pc_gamg_mat_coarsen_", "pc_gamg_mis_k_minimum_degree_ordering", "pc_gamg_low_memory_threshold_filter", "pc_gamg_graph_symmetrize", "pc_gamg_agg_view_initial_prolongation", NULL};

/* Parts of the names of options that choose an algorithm of products, of any object */
static const char *const products[] = {"matptap", "matmatmult", "mat_product", NULL};

/* The options that begin with such a name after `before`, as a reason */
static PetscErrorCode AskedFor(const char all[], const char before[], const char *const names[], char why[], size_t len)
{
  PetscFunctionBegin;
  for (int k = 0; names[k] && !why[0]; k++) {
    char        option[256];
    const char *at;

    PetscCall(PetscSNPrintf(option, sizeof(option), "%s%s", before, names[k]));
    at = strstr(all, option);
    if (at) PetscCall(PetscSNPrintf(why, len, "%.*s was asked for", (int)strcspn(at, " "), at));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The reason for PETSc's aggregates, prolongators and products; "" if the device may make levels */
static PetscErrorCode Reason(PC pc, const PCGAMGData *d, char why[], size_t len)
{
  const PC_GAMG *g      = GAMGOf(pc);
  const char    *prefix = ((PetscObject)pc)->prefix ? ((PetscObject)pc)->prefix : "";
  PetscBool      wanted = PETSC_TRUE, known = PETSC_FALSE, symmetric = PETSC_FALSE;
  char          *all, before[256];

  PetscFunctionBegin;
  why[0] = 0;
  PetscCall(MatIsSymmetricKnown(pc->pmat, &known, &symmetric));
  PetscCall(PetscOptionsGetBool(((PetscObject)pc)->options, prefix, "-pc_gamg_gpucsr", &wanted, NULL));
  if (!wanted) PetscCall(PetscStrncpy(why, "-pc_gamg_gpucsr false was asked for", len));
  if (g->use_aggs_in_asm) PetscCall(PetscStrncpy(why, "-pc_gamg_asm_use_agg makes smoothers of them", len));
#if GPUCSR_GAMG_HAS_HEM_AGGS
  if (g->asm_hem_aggs) PetscCall(PetscStrncpy(why, "-pc_gamg_asm_hem_aggs makes smoothers of others", len));
#endif
  if (d->special) PetscCall(PetscSNPrintf(why, len, "%s asks for a property of PETSc's", d->special));
  if (!d->squared && (d->distance < 1 || d->distance > 4)) PetscCall(PetscSNPrintf(why, len, "-pc_gamg_aggressive_mis_k %" PetscInt_FMT " is not from 1 to 4", d->distance));
  if (d->nsmooths < 0 || d->nsmooths > GPUAMG_SMOOTHS) PetscCall(PetscSNPrintf(why, len, "-pc_gamg_agg_nsmooths %" PetscInt_FMT " is not from 0 to %d", d->nsmooths, GPUAMG_SMOOTHS));
  if (d->nsmooths > 1 && !(known && symmetric)) PetscCall(PetscSNPrintf(why, len, "-pc_gamg_agg_nsmooths %" PetscInt_FMT " needs PETSc's estimates of a matrix that is not known to be symmetric", d->nsmooths));
  if (g->emax > 0) PetscCall(PetscStrncpy(why, "-pc_gamg_eigenvalues gives the largest eigenvalue", len));
  if (g->current_level) PetscCall(PetscStrncpy(why, "the first prolongator is an injection", len));
  if (!GPUCSR_SCALAR_IS_DOUBLE) PetscCall(PetscStrncpy(why, "numbers are not real double", len));
  PetscCall(PetscOptionsGetAll(((PetscObject)pc)->options, &all));
  PetscCall(PetscSNPrintf(before, sizeof(before), "-%s", prefix));
  PetscCall(AskedFor(all, before, parentonly, why, len));
  PetscCall(AskedFor(all, "", products, why, len));
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: an error if options differ between ranks, because the ranks would wait for each other for ever */
static PetscErrorCode Same(PC pc, const PCGAMGData *d)
{
  const PC_GAMG *g                             = GAMGOf(pc);
  int64_t        mine[11 + PETSC_MG_MAXLEVELS] = {!d->why[0], (int64_t)d->kept, d->aggressive, d->distance, (int64_t)d->squared, d->nsmooths, d->steps, g->min_eq_proc, g->coarse_eq_limit, g->Nlevels, g->data_cell_cols};
  int            differs;

  PetscFunctionBegin;
  for (int l = 0; l < PETSC_MG_MAXLEVELS; l++) mine[11 + l] = GPUCSRBits((double)g->threshold[l]);
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

/* Forgets what PETSc has not taken; all: the levels, too */
static PetscErrorCode Drop(PCGAMGData *d, PetscBool all)
{
  PetscFunctionBegin;
  for (int l = 0; l < GPUAMG_LEVELS; l++) {
    PetscCall(MatDestroy(&d->next[l].P));
    PetscCall(MatDestroy(&d->next[l].C));
  }
  PetscCall(PetscFree(d->near));
  if (all) PetscCall(PCDestroy(&d->levels));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, and so are its errors, but of the near null space at the end: all levels, as PETSc leaves its own part allocated if a function of a level fails. PETSc needs entries of the coarsest matrix. near goes to the levels */
static PetscErrorCode Levels(PC pc, PCGAMGData *d, double *near)
{
  const PC_GAMG *g = GAMGOf(pc);
  Mat            A = pc->pmat;
  GPUAMGOptions  o;
  PCGPUAMGLevels of;
  PCGPUAMGLevel  last;
  size_t         size;
  PetscBool      several = GPUCSRIsType(A, MATMPIAIJGPUCSR);
  PetscInt       levels  = g->Nlevels - (PetscInt)several;

  PetscFunctionBegin;
  /* the device's options. On several ranks PETSc makes the coarsest level, and the first one that it takes fewer ranks for */
  for (PetscInt l = PETSC_MG_MAXLEVELS - 1; l >= 0 && several; l--)
    if (g->level_reduction_factors[l] > 1) levels = PetscMin(levels, l + 1);
  o = (GPUAMGOptions){
    .nsmooths   = (int)d->nsmooths,
    .aggressive = (int)PetscMin(PetscMax(d->aggressive, 0), GPUAMG_LEVELS),
    .distance   = {1, d->squared ? 2 : (int)d->distance},
    .limit      = (int)PetscMin(g->coarse_eq_limit, INT32_MAX),
    .levels     = (int)PetscMin(levels, GPUAMG_LEVELS - 1),
    .steps      = (int)d->steps,
    .damping    = 1.4
  };
  for (int l = 0; l < GPUAMG_LEVELS; l++) o.threshold[l] = (double)g->threshold[PetscMin(l, PETSC_MG_MAXLEVELS - 1)];
  PetscCall(PCGPUAMGLevelsCreate_Private(A, &o, g->min_eq_proc, g->data_cell_cols, near, &d->levels));
  of = PCGPUAMGLevelsOf_Private(d->levels);
  if (of.levels < 2) d->kept = PETSC_FALSE;
  for (int l = 0; l < of.prolongators; l++) {
    const PetscBool more = (PetscBool)(l + 1 < of.levels);

    PetscCall(PCGPUAMGLevelMat_Private(d->levels, l, PETSC_TRUE, &d->next[l].P));
    if (more) PetscCall(PCGPUAMGLevelMat_Private(d->levels, l + 1, PETSC_FALSE, &d->next[l].C));
    if (!d->kept || !more) PetscCall(MatGPUCSRLevelBecome_Private(d->next[l].P));
    if (more && (!d->kept || l + 2 == of.levels)) PetscCall(MatGPUCSRLevelBecome_Private(d->next[l].C));
  }
  if (!of.prolongators) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(!of.dev->failed[0], PETSC_COMM_SELF, PETSC_ERR_GPU, "%s", of.dev->failed);
  last = PCGPUAMGLevelOf_Private(d->levels, of.prolongators);
  size = (size_t)last.n * (size_t)last.ns;
  PetscCall(PetscMalloc1(size + 1, &d->near));
  if (size) PetscCall(GPUCSRRead(of.dev, d->near, last.basis->p, sizeof(double) * size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: after an error of any rank PETSc makes all levels, unless the device is required */
static PetscErrorCode Settle(PC pc, PCGAMGData *d, GPUCSRAttempt *a)
{
  const MPI_Comm comm   = PetscObjectComm((PetscObject)pc);
  int            weight = a->error ? 1 : 0;
  PetscMPIInt    rank;

  PetscFunctionBegin;
  PetscCall(GPUCSRAgree(comm, &weight, &a->error, a->message, sizeof(a->message), &rank));
  if (!a->error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Drop(d, PETSC_TRUE));
  PetscCheck(a->error == PETSC_ERR_SUP || (!MatGPUCSROperatorRequired_Private(pc->pmat) && (a->error == PETSC_ERR_MEM || a->error == PETSC_ERR_GPU)), comm, a->error, "%s", a->message);
  PetscCall(PetscStrncpy(d->why, a->message, sizeof(d->why)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: before the first level of a new hierarchy */
static PetscErrorCode Begin(PC pc, PCGAMGData *d)
{
  double       *near = NULL;
  GPUCSRAttempt attempt;
  char         *all;

  PetscFunctionBegin;
  d->fresh = PETSC_FALSE;
  d->steps = 10;
  PetscCall(PetscOptionsGetInt(((PetscObject)pc)->options, ((PetscObject)pc)->prefix, "-pc_gamg_esteig_ksp_max_it", &d->steps, NULL));
  d->steps = PetscMax(1, PetscMin(d->steps, GPUAMG_STEPS));
  d->made  = 0;
  PetscCall(Drop(d, PETSC_TRUE));
  PetscCall(Reason(pc, d, d->why, sizeof(d->why)));
  /* do levels stay on the device alone? PETSc reads entries on the host for other smoothers than Jacobi, and for options of prolongators */
  d->kept = PETSC_TRUE;
  PetscCall(PetscOptionsGetAll(((PetscObject)pc)->options, &all));
  for (const char *at = strstr(all, "mg_levels_"); at && d->kept; at = strstr(at + 1, "mg_levels_")) {
    const char *type = strstr(at, "pc_type "), *end = strchr(at, ' ');

    if (type && end && type < end) d->kept = (PetscBool)!strncmp(end + 1, PCJACOBI, strlen(PCJACOBI));
  }
  if (strstr(all, "pc_gamg_prolongator_")) d->kept = PETSC_FALSE;
  PetscCall(PetscFree(all));
  PetscCall(Same(pc, d));
  if (d->why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTry(&attempt, Near(GAMGOf(pc), pc->pmat, &near));
  PetscCall(Settle(pc, d, &attempt));
  if (d->why[0]) PetscFunctionReturn(PetscFree(near));
  GPUCSRTry(&attempt, Levels(pc, d, near));
  PetscCall(Settle(pc, d, &attempt));
  if (d->why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  d->pattern = pc->pmat->nonzerostate;
  d->made    = PCGPUAMGLevelsOf_Private(d->levels).prolongators;
  if (!d->made) PetscCall(PetscStrncpy(d->why, "the device makes no coarser level of the matrix", sizeof(d->why)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the prolongator of the present level the device's? */
static PetscErrorCode Made(PC pc, PCGAMGData **d, PetscBool *made)
{
  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, d));
  *made = (PetscBool)(GAMGOf(pc)->current_level < (*d)->made);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graph(PC pc, Mat A, Mat *G)
{
  PCGAMGData *d;
  PetscBool   made;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  if (d->fresh) {
    PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_COARSEN], 0, 0, 0, 0));
    PetscCall(Begin(pc, d));
    PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_COARSEN], 0, 0, 0, 0));
  }
  PetscCall(Made(pc, &d, &made));
  if (made) {
    PetscCall(PetscObjectReference((PetscObject)A));
    *G = A;
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
  PetscBool   made;

  PetscFunctionBegin;
  PetscCall(Made(pc, &d, &made));
  if (made) PetscCall(PetscCDCreate(0, lists));
  else PetscCall((*parent.coarsen)(pc, G, lists));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Given(PC pc, Mat *P, PetscBool *made)
{
  PC_GAMG       *g = GAMGOf(pc);
  const PetscInt l = g->current_level;
  PCGAMGData    *d;

  PetscFunctionBegin;
  PetscCall(Made(pc, &d, made));
  if (!*made) PetscFunctionReturn(PETSC_SUCCESS);
  *P           = d->next[l].P;
  d->next[l].P = NULL;
  if (l + 1 == d->made) { /* the near null space for PETSc, which may make further levels */
    const PetscInt ns = g->data_cell_cols, n = PCGPUAMGLevelOf_Private(d->levels, (int)l + 1).n;

    PetscCall(PetscFree(g->data));
    g->data_cell_rows = ns;
    g->data_sz        = n * ns;
    PetscCall(PetscMalloc1(g->data_sz, &g->data));
    for (PetscInt c = 0; c < ns; c++)
      for (PetscInt i = 0; i < n; i++) g->data[c * n + i] = (PetscReal)d->near[i * ns + c];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Older versions of PETSc also pass the graph */
typedef PetscErrorCode Without(PC, Mat, PetscCoarsenData *, Mat *);
typedef PetscErrorCode With(PC, Mat, Mat, PetscCoarsenData *, Mat *);

PETSC_UNUSED static PetscErrorCode ProlongatorWithout(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  PetscBool made;

  PetscFunctionBegin;
  PetscCall(Given(pc, P, &made));
  if (!made) PetscCall((*(Without *)(void (*)(void))parent.prolongator)(pc, A, lists, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_UNUSED static PetscErrorCode ProlongatorWith(PC pc, Mat A, Mat G, PetscCoarsenData *lists, Mat *P)
{
  PetscBool made;

  PetscFunctionBegin;
  PetscCall(Given(pc, P, &made));
  if (!made) PetscCall((*(With *)(void (*)(void))parent.prolongator)(pc, A, G, lists, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hierarchy's largest eigenvalue gives Chebyshev's bounds. Options may need the smallest as well: PETSc then makes an estimate of both */
static PetscErrorCode Smooth(PC pc, Mat A, Mat *P)
{
  PC_MG         *mg    = (PC_MG *)pc->data;
  const PC_GAMG *g     = GAMGOf(pc);
  const PetscInt l     = g->current_level;
  PetscBool      bound = g->use_sa_esteig, made;
  PCGAMGData    *d;
  char          *all;

  PetscFunctionBegin;
  PetscCall(Made(pc, &d, &made));
  if (!made) PetscFunctionReturn((*parent.optprolongator)(pc, A, P));
  PetscCall(PetscOptionsGetAll(((PetscObject)pc)->options, &all));
  if (strstr(all, "ksp_chebyshev_esteig") || !d->nsmooths) bound = PETSC_FALSE;
  PetscCall(PetscFree(all));
  mg->max_eigen_DinvA[l] = bound ? (PetscReal)PCGPUAMGLevelOf_Private(d->levels, (int)l).lambda : 0;
  mg->min_eigen_DinvA[l] = 0.1 * mg->max_eigen_DinvA[l];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Level(PC pc, Mat A, PetscInt bs, Mat *P, Mat *C, PetscMPIInt *active, IS *permutation, PetscBool last)
{
  const PetscInt l = GAMGOf(pc)->current_level;
  PCGAMGData    *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  if (d->next[l].C) {
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
  d->fresh = (PetscBool)(isgpucsr && agg);
  if (!d->fresh) d->made = 0;
  PetscCall(Drop(d, (PetscBool)!d->fresh));
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
