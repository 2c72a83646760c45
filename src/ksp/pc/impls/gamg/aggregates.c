/*
  Aggregates of PCGAMG's type agg, on one process, with the same numbers as PETSc's: the random order of vertices and the aggregates from it, without PETSc's loops and lists and without a
  square of the graph on the host. Only PETSc knows the options, so PETSc's own function runs on a graph of three vertices, and the coarsener there (coarsen.h) reports the options.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "../mg/aggregates.h"

extern PetscErrorCode PetscCDClearMat(PetscCoarsenData *) __attribute__((weak)); /* not in all versions */

static PetscErrorCode (*petscs)(PC, Mat *, PetscCoarsenData **) = NULL;

/* Found but not yet taken; lists are PETSc's, empty */
static struct {
  PetscCoarsenData *lists;
  GPUCSRAggregates  a;
} found = {NULL, {0}};

PetscErrorCode PCGAMGAggregatesForget_Private(void)
{
  PetscFunctionBegin;
  found.lists = NULL;
  PetscCall(GPUCSRAggregatesDestroy(&found.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* have: *a has the aggregates of these lists, and belongs to the caller */
PetscErrorCode PCGAMGAggregatesTake_Private(PetscCoarsenData *lists, GPUCSRAggregates *a, PetscBool *have)
{
  PetscFunctionBegin;
  *have = (PetscBool)(lists && lists == found.lists);
  if (*have) {
    *a          = found.a;
    found.lists = NULL;
    PetscCall(PetscMemzero(&found.a, sizeof(found.a)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the order ---- */

/* Numbers of a new PetscRandom. If drand48() (POSIX) makes them, as by default, its recurrence replaces the calls, which would take longer than all else */
typedef struct {
  PetscRandom random; /* NULL: by the recurrence */
  uint64_t    x;
} Numbers;

#define MODULUS_BITS 48
static uint64_t NextState(uint64_t x)
{
  return (x * UINT64_C(0x5DEECE66D) + 0xB) & ((UINT64_C(1) << MODULUS_BITS) - 1);
}

static double ValueOf(uint64_t x)
{
  return (double)x / (double)(UINT64_C(1) << MODULUS_BITS);
}

static PetscErrorCode NumbersCreate(Numbers *s)
{
  PetscReal value[4];
  uint64_t  x;

  PetscFunctionBegin;
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &s->random));
  for (int k = 0; k < 4; k++) PetscCall(PetscRandomGetValueReal(s->random, &value[k]));
  PetscCall(PetscRandomDestroy(&s->random));
  s->x = x = value[0] >= 0 && value[0] < 1 ? (uint64_t)((double)value[0] * (double)(UINT64_C(1) << MODULUS_BITS)) : 0;
  for (int k = 0; k < 4; k++, x = NextState(x)) {
    if (ValueOf(x) == value[k]) continue;
    PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &s->random));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first number is in x at the request */
static PetscErrorCode NumbersGet(Numbers *s, PetscReal *value)
{
  PetscFunctionBegin;
  if (s->random) PetscCall(PetscRandomGetValueReal(s->random, value));
  else {
    *value = ValueOf(s->x);
    s->x   = NextState(s->x);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The order of n vertices: each changes places with a random vertex, unless that place has been drawn before. Places are drawn ahead to prefetch memory;
  ~v: v is at a place that has been drawn.
*/
#define AHEAD 512
static PetscErrorCode Shuffle(PetscInt n, PetscInt order[])
{
  PetscInt place[AHEAD];
  Numbers  s;

  PetscFunctionBegin;
  PetscCall(NumbersCreate(&s));
  for (PetscInt v = 0; v < n; v++) order[v] = v;
  for (PetscInt begin = 0; begin < n; begin += AHEAD) {
    const PetscInt count = PetscMin(AHEAD, n - begin);

    for (PetscInt k = 0; k < count; k++) {
      PetscReal value;

      PetscCall(NumbersGet(&s, &value));
      place[k] = (PetscInt)(value * n) % n;
      __builtin_prefetch(&order[place[k]], 1);
    }
    for (PetscInt k = 0; k < count; k++) {
      const PetscInt at = begin + k, chosen = order[place[k]], here = order[at];

      if (chosen < 0 || place[k] == at) continue;
      order[place[k]] = here < 0 ? here : ~here;
      order[at]       = here < 0 ? ~chosen : chosen;
    }
  }
  for (PetscInt v = 0; v < n; v++)
    if (order[v] < 0) order[v] = ~order[v];
  PetscCall(PetscRandomDestroy(&s.random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By PETSc's own sort, which decides ties */
static PetscErrorCode SortByDegree(Mat G, PetscInt n, PetscInt order[])
{
  const PetscInt *i;
  PetscInt       *degree;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(G, &i, NULL, NULL, NULL));
  PetscCall(PetscMalloc1(n, &degree));
  for (PetscInt k = 0; k < n; k++) degree[k] = i[order[k] + 1] - i[order[k]];
  PetscCall(PetscSortIntWithArray(n, degree, order));
  PetscCall(PetscFree(degree));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what PETSc would do ---- */

/* A path of three vertices around `middle`; the end vertices have fewer neighbours */
static PetscErrorCode Path(PetscInt middle, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 3, 3, 3, NULL, A));
  for (PetscInt v = 0; v < 3; v++) {
    PetscCall(MatSetValue(*A, v, v, 2.0, INSERT_VALUES));
    if (v == middle) continue;
    PetscCall(MatSetValue(*A, v, middle, -1.0, INSERT_VALUES));
    PetscCall(MatSetValue(*A, middle, v, -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* bydegree: vertices with few neighbours come first */
static PetscErrorCode Ask(PC pc, GPUCSRQuestion *q, PetscBool *bydegree)
{
  PetscCoarsenData *lists = NULL;
  PetscInt          order[3];
  Mat               G, mat = NULL;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(Shuffle(3, order));
  PetscCall(Path(order[0], &G));
  q->graph = G;
  PetscCall(MatGPUCSRCoarsenAsk_Private(q));
  ierr = (*petscs)(pc, &G, &lists);
  PetscCall(MatGPUCSRCoarsenAsk_Private(NULL));
  PetscCall(ierr);
  *bydegree = (PetscBool)(q->first != order[0]);
  if (PetscCDClearMat) { /* as PCGAMG destroys its graph */
    PetscCall(PetscCDGetMat(lists, &mat));
    if (mat == G) PetscCall(PetscCDClearMat(lists));
  }
  PetscCall(MatDestroy(&G));
  PetscCall(PetscCDDestroy(lists));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's coarsener has finished; a new graph resets the coarsener */
static PetscErrorCode Recover(PC pc)
{
  PC_GAMG *g = (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
  Mat      A, G;

  PetscFunctionBegin;
  PetscCall(Path(0, &A));
  PetscCall((*g->ops->creategraph)(pc, A, &G));
  PetscCall(MatDestroy(&G));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do options name a coarsener that is not MIS or MISk? */
PetscErrorCode PCGAMGCoarsenerOfOthers_Private(PC pc, PetscBool *others)
{
  static const char *const types[] = {"-mat_coarsen_type", "-pc_gamg_mat_coarsen_type"};

  PetscFunctionBegin;
  *others = PETSC_FALSE;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types) && !*others; k++) {
    char      type[64];
    PetscBool set, mis, misk;

    PetscCall(PetscOptionsGetString(((PetscObject)pc)->options, ((PetscObject)pc)->prefix, types[k], type, sizeof(type), &set));
    if (!set) continue;
    PetscCall(PetscStrcmp(type, MATCOARSENMIS, &mis));
    PetscCall(PetscStrcmp(type, "misk", &misk)); /* a name that not all versions define */
    *others = (PetscBool)(!mis && !misk);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do options need more than lists, or a foreign coarsener, which may refuse a graph of three vertices? */
static PetscErrorCode Special(PC pc, PetscBool *special)
{
  static const char *const words[] = {"-pc_gamg_asm_hem_aggs", "-pc_gamg_asm_use_agg", "-mat_coarsen_view", "-pc_gamg_mat_coarsen_view", "-mat_coarsen_strength_index", "-pc_gamg_mat_coarsen_strength_index"};
  PC_GAMG                 *g       = (PC_GAMG *)((PC_MG *)pc->data)->innerctx;

  PetscFunctionBegin;
  *special = g->use_aggs_in_asm;
#if GPUCSR_GAMG_HAS_HEM_AGGS
  if (g->asm_hem_aggs) *special = PETSC_TRUE;
#endif
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(words) && !*special; k++) PetscCall(PetscOptionsHasName(((PetscObject)pc)->options, ((PetscObject)pc)->prefix, words[k], special));
  if (!*special) PetscCall(PCGAMGCoarsenerOfOthers_Private(pc, special));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Find(PC pc, Mat G, PetscBool *done)
{
  GPUCSRQuestion q = {
    NULL, PETSC_FALSE, {0, PETSC_FALSE},
      0
  };
  const PetscInt n = G->rmap->n;
  PetscInt      *order;
  PetscBool      bydegree = PETSC_FALSE;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(Ask(pc, &q, &bydegree));
  if (q.answered) {
    PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_COARSEN], 0, 0, 0, 0));
    PetscCall(PetscMalloc1(n, &order));
    PetscCall(Shuffle(n, order));
    if (bydegree) PetscCall(SortByDegree(G, n, order));
    PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_MIS], 0, 0, 0, 0));
    PetscCall(MatGPUCSRAggregates_Private(G, &q.how, order, &found.a, done));
    PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_MIS], 0, 0, 0, 0));
    PetscCall(PetscFree(order));
    PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_COARSEN], 0, 0, 0, 0));
  }
  if (!*done) PetscCall(Recover(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coarsen(PC pc, Mat *G, PetscCoarsenData **lists)
{
  PetscBool      may, special, done = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PCGAMGAggregatesForget_Private());
  PetscCall(MatGPUCSRCoarsens_Private(*G, &may));
  PetscCall(Special(pc, &special));
  if (may && !special) PetscCall(Find(pc, *G, &done));
  if (!done) {
    PetscCall(MatGPUCSRCoarsenLeave_Private(special));
    ierr = (*petscs)(pc, G, lists);
    PetscCall(MatGPUCSRCoarsenLeave_Private(PETSC_FALSE));
    PetscCall(ierr);
  } else {
    PetscCall(PetscCDCreate((*G)->rmap->n, lists));
    found.lists = *lists;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces PETSc's function. The type is agg */
PetscErrorCode PCGAMGCoarsen_Private(PC pc)
{
  PC_GAMG *g = (PC_GAMG *)((PC_MG *)pc->data)->innerctx;

  PetscFunctionBegin;
  if (!g->ops->coarsen || !g->ops->creategraph || g->ops->coarsen == Coarsen) PetscFunctionReturn(PETSC_SUCCESS);
  petscs          = g->ops->coarsen;
  g->ops->coarsen = Coarsen;
  PetscFunctionReturn(PETSC_SUCCESS);
}
