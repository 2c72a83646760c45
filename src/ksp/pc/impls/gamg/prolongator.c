/*
  The tentative prolongator of PCGAMG's type agg, for one unknown a point and one near-null vector, on one process: PETSc's numbers in PETSc's order, written directly into the matrix' arrays. PETSc
  takes longer with lists, a MatSetValues() and two calls of LAPACK for each aggregate. PETSc does the rest.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "../mg/cycle.h"
#include "../mg/aggregates.h"
#include <math.h>

/* Older versions of PETSc also pass the graph */
typedef PetscErrorCode Without(PC, Mat, PetscCoarsenData *, Mat *);
typedef PetscErrorCode With(PC, Mat, Mat, PetscCoarsenData *, Mat *);

static void (*petscs)(void) = NULL; /* PETSc's function, with either signature */

static PC_GAMG *GAMGOf(PC pc)
{
  return (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
}

/* The column x[m] = q r, by one Householder reflection with LAPACK's sign: r is negative if x is positive */
static double Column(PetscInt m, double x[])
{
  const double alpha = x[0];
  double       norm = 0, most = 0, beta, tau;

  for (PetscInt k = 1; k < m; k++) most = PetscMax(most, fabs(x[k]));
  for (PetscInt k = 1; k < m && most > 0; k++) norm += x[k] / most * (x[k] / most);
  norm = most * sqrt(norm);
  if (norm == 0) {
    x[0] = 1;
    return alpha;
  }
  beta = alpha > 0 ? -hypot(alpha, norm) : hypot(alpha, norm);
  tau  = (beta - alpha) / beta;
  x[0] = 1 - tau;
  for (PetscInt k = 1; k < m; k++) x[k] *= -tau / (alpha - beta);
  return beta;
}

/* The aggregates in PETSc's lists */
static PetscErrorCode OfLists(PetscCoarsenData *lists, PetscInt n, GPUCSRAggregates *a)
{
  PetscInt members = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n + 1, &a->first));
  PetscCall(PetscMalloc1(n, &a->member));
  a->n        = (int)n;
  a->first[0] = 0;
  for (PetscInt p = 0; p < n; p++) {
    PetscCDIntNd *node;
    PetscInt      id;

    PetscCall(PetscCDGetHeadPos(lists, p, &node));
    if (!node) continue;
    while (node) {
      PetscCall(PetscCDIntNdGetID(node, &id));
      PetscCall(PetscCDGetNextPos(lists, p, &node));
      a->member[members++] = (int32_t)id;
    }
    a->first[++a->count] = (int32_t)members;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Aggregates as columns of P, which has a place for each member; the coarse data are the factors R */
static PetscErrorCode Fill(const GPUCSRAggregates *a, const PetscReal data[], const PetscInt i[], PetscInt j[], PetscScalar value[], PetscReal coarse[])
{
  int     longest = 0;
  double *x;

  PetscFunctionBegin;
  for (int q = 0; q < a->count; q++) longest = PetscMax(longest, a->first[q + 1] - a->first[q]);
  PetscCall(PetscMalloc1(longest, &x));
  for (int q = 0; q < a->count; q++) {
    const int32_t *member = &a->member[a->first[q]];
    const PetscInt m      = a->first[q + 1] - a->first[q];

    for (PetscInt k = 0; k < m; k++) x[k] = data[member[k]];
    coarse[q] = Column(m, x);
    for (PetscInt k = 0; k < m; k++) {
      j[i[member[k]]]     = q;
      value[i[member[k]]] = x[k];
    }
  }
  PetscCall(PetscFree(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P of this type, written into its arrays. A row has at most one entry */
static PetscErrorCode Matrix(MatType type, const GPUCSRAggregates *a, const PetscReal data[], PetscReal coarse[], Mat *P)
{
  const PetscInt *i, *columns;
  PetscInt       *length;
  PetscScalar    *value;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, P));
  PetscCall(MatSetSizes(*P, a->n, a->count, a->n, a->count));
  PetscCall(MatSetBlockSizes(*P, 1, 1));
  PetscCall(MatSetType(*P, type));
  PetscCall(PetscCalloc1(a->n, &length));
  for (int32_t k = 0; k < a->first[a->count]; k++) length[a->member[k]] = 1;
  PetscCall(MatSeqAIJSetPreallocation(*P, 0, length));
  PetscCall(PetscFree(length));
  PetscCall(MatSetOption(*P, MAT_USE_INODES, PETSC_FALSE));
  PetscCall(MatSeqAIJGetCSRAndMemType(*P, &i, &columns, &value, NULL));
  PetscCall(Fill(a, data, i, (PetscInt *)columns, value, coarse));
  PetscCall(MatSeqAIJSetColumnIndices(*P, (PetscInt *)columns)); /* records the direct writes */
  PetscCall(MatAssemblyBegin(*P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*P, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can this file make the prolongator? */
static PetscErrorCode Ours(PC pc, Mat A, PetscBool *ours)
{
  PC_GAMG *g = GAMGOf(pc);
  PetscInt n, bs;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, ours));
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  if (bs != 1 || g->data_cell_cols != 1 || g->data_cell_rows != 1 || !g->data || g->data_sz != n || !n || n >= INT32_MAX) *ours = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P NULL: PETSc makes P from the lists */
static PetscErrorCode Make(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  PC_GAMG         *g = GAMGOf(pc);
  GPUCSRAggregates a = {0};
  PetscReal       *coarse;
  PetscBool        ours, found;

  PetscFunctionBegin;
  *P = NULL;
  PetscCall(PCGAMGAggregatesTake_Private(lists, &a, &found));
  PetscCall(Ours(pc, A, &ours));
  if (!ours) {
    if (found) PetscCall(GPUCSRAggregatesList(&a, lists));
    PetscCall(GPUCSRAggregatesDestroy(&a));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_PROL], 0, 0, 0, 0));
  if (!found) PetscCall(OfLists(lists, A->rmap->n, &a));
  if (a.count) {
    PetscCall(PetscMalloc1(a.count, &coarse));
    PetscCall(Matrix(((PetscObject)A)->type_name, &a, g->data, coarse, P));
    PetscCall(PetscInfo(pc, "New grid %d nodes\n", a.count));
    PetscCall(PetscFree(g->data));
    g->data           = coarse;
    g->data_cell_rows = 1;
    g->data_sz        = a.count;
  }
  PetscCall(GPUCSRAggregatesDestroy(&a));
  PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_PROL], 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_UNUSED static PetscErrorCode ProlongatorWithout(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  PetscFunctionBegin;
  PetscCall(Make(pc, A, lists, P));
  if (!*P) PetscCall((*(Without *)petscs)(pc, A, lists, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PETSC_UNUSED static PetscErrorCode ProlongatorWith(PC pc, Mat A, Mat graph, PetscCoarsenData *lists, Mat *P)
{
  PetscFunctionBegin;
  PetscCall(Make(pc, A, lists, P));
  if (!*P) PetscCall((*(With *)petscs)(pc, A, graph, lists, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces PETSc's function if the type is agg. Called before each set-up, because the type may change */
PetscErrorCode PCGAMGProlongator_Private(PC pc)
{
  PC_GAMG  *g = GAMGOf(pc);
  PetscBool agg;

  PetscFunctionBegin;
  if (!g || !g->ops || !g->ops->prolongator || !g->gamg_type_name) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(g->gamg_type_name, PCGAMGAGG, &agg));
#define OURS _Generic(g->ops->prolongator, With * : ProlongatorWith, Without * : ProlongatorWithout)
  if (!agg) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->ops->prolongator != OURS) {
    petscs              = (void (*)(void))g->ops->prolongator;
    g->ops->prolongator = OURS;
  }
#undef OURS
  PetscCall(PCGAMGCreateGraph_Private(pc));
  PetscCall(PCGAMGCoarsen_Private(pc)); /* this function fills lists that PCGAMGCoarsen_Private() leaves empty */
  PetscFunctionReturn(PETSC_SUCCESS);
}
