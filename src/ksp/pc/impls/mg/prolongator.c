/*
  The tentative prolongator of PCGAMG's type agg, for one unknown a point and one vector in the near null space, on one process: PETSc's numbers in its order, but written into the arrays of the matrix, which
  takes a fraction of the time of a MatSetValues() and two calls of LAPACK for each aggregate. All else is PETSc's.
*/
#include <petsc/private/pcgamgimpl.h>
#include "../../../../sys/gpucsrsys.h"
#include "cycle.h"
#include <math.h>

/* PETSc had the graph among the arguments at first */
typedef PetscErrorCode Without(PC, Mat, PetscCoarsenData *, Mat *);
typedef PetscErrorCode With(PC, Mat, Mat, PetscCoarsenData *, Mat *);

static void (*petscs)(void) = NULL; /* PETSc's function, one of these */

static PC_GAMG *GAMGOf(PC pc)
{
  return (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
}

/* The column x[m] = q r, by one Householder reflection, as LAPACK has it: r is negative where x is positive */
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

/* Aggregates as columns: column (-1: none) and value of each row, and the coarse data, of which there are ncoarse */
static PetscErrorCode Fill(PetscCoarsenData *lists, PetscInt n, const PetscReal data[], PetscInt column[], PetscScalar value[], PetscInt *ncoarse, PetscReal coarse[])
{
  PetscInt *id;
  double   *x;

  PetscFunctionBegin;
  *ncoarse = 0;
  for (PetscInt r = 0; r < n; r++) column[r] = -1;
  PetscCall(PetscMalloc2(n, &id, n, &x));
  for (PetscInt p = 0; p < n; p++) {
    PetscCDIntNd *node;
    PetscInt      m = 0;

    PetscCall(PetscCDGetHeadPos(lists, p, &node));
    if (!node) continue;
    while (node) {
      PetscCall(PetscCDIntNdGetID(node, &id[m]));
      PetscCall(PetscCDGetNextPos(lists, p, &node));
      x[m] = data[id[m]];
      m++;
    }
    coarse[*ncoarse] = Column(m, x);
    for (PetscInt k = 0; k < m; k++) {
      column[id[k]] = *ncoarse;
      value[id[k]]  = x[k];
    }
    (*ncoarse)++;
  }
  PetscCall(PetscFree2(id, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P NULL: it is PETSc's to make */
static PetscErrorCode Make(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  PC_GAMG     *g = GAMGOf(pc);
  PetscInt     n, bs, ncoarse, *i, *column, nnz = 0;
  PetscScalar *value;
  PetscReal   *coarse;
  PetscBool    ours;
  MatType      type;

  PetscFunctionBegin;
  *P = NULL;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &ours));
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  if (!ours || bs != 1 || g->data_cell_cols != 1 || g->data_cell_rows != 1 || !g->data || g->data_sz != n || !n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_PROL], 0, 0, 0, 0));
  PetscCall(PetscMalloc1(n, &coarse));
  PetscCall(PetscMalloc3(n + 1, &i, n, &column, n, &value));
  PetscCall(Fill(lists, n, g->data, column, value, &ncoarse, coarse));
  for (PetscInt r = 0; r < n; r++) { /* nnz <= r: in place */
    i[r] = nnz;
    if (column[r] < 0) continue;
    column[nnz] = column[r];
    value[nnz]  = value[r];
    nnz++;
  }
  i[n] = nnz;
  if (ncoarse) {
    PetscCall(MatGetType(A, &type));
    PetscCall(MatCreate(PetscObjectComm((PetscObject)A), P));
    PetscCall(MatSetSizes(*P, n, ncoarse, n, ncoarse));
    PetscCall(MatSetBlockSizes(*P, 1, 1));
    PetscCall(MatSetType(*P, type));
    PetscCall(MatSeqAIJSetPreallocationCSR(*P, i, column, value));
    PetscCall(PetscInfo(pc, "New grid %" PetscInt_FMT " nodes\n", ncoarse));
    PetscCall(PetscFree(g->data));
    g->data           = coarse;
    g->data_cell_rows = 1;
    g->data_sz        = ncoarse;
  } else PetscCall(PetscFree(coarse));
  PetscCall(PetscFree3(i, column, value));
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

/* Puts ours in place of PETSc's, where the type is agg. Called before each set-up, as the type may be another one */
PetscErrorCode PCGAMGProlongator_Private(PC pc)
{
  PC_GAMG  *g = GAMGOf(pc);
  PetscBool agg;

  PetscFunctionBegin;
  if (!g || !g->ops || !g->ops->prolongator || !g->gamg_type_name) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(g->gamg_type_name, PCGAMGAGG, &agg));
#define OURS _Generic(g->ops->prolongator, With * : ProlongatorWith, Without * : ProlongatorWithout)
  if (!agg || g->ops->prolongator == OURS) PetscFunctionReturn(PETSC_SUCCESS);
  petscs              = (void (*)(void))g->ops->prolongator;
  g->ops->prolongator = OURS;
#undef OURS
  PetscFunctionReturn(PETSC_SUCCESS);
}
