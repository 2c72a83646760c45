/*
  The graph that PCGAMG's type agg coarsens. Since PETSc 3.21 it is a scaled copy of the matrix on each level, for a filter of small entries. Where nothing is filtered nobody reads its
  values but heavy edge matching, and it need not be made: PETSc's function then gets the matrix, where that is its own graph, or a pattern.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "../mg/aggregates.h"

#if GPUCSR_GRAPH_TAKES_INDICES
static PetscErrorCode (*petscs)(PC, Mat, Mat *) = NULL;

static PetscErrorCode CreateGraph(PC pc, Mat A, Mat *G)
{
  const PC_GAMG *g = (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
  PetscBool      others;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PCGAMGCoarsenerOfOthers_Private(pc, &others));
  PetscCall(MatGPUCSRGraphValues_Private((PetscBool)(others || g->threshold[g->current_level] >= 0 || g->asm_hem_aggs)));
  ierr = (*petscs)(pc, A, G);
  PetscCall(MatGPUCSRGraphValues_Private(PETSC_TRUE));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* Puts ours in place of PETSc's, as PCGAMGProlongator_Private() does */
PetscErrorCode PCGAMGCreateGraph_Private(PC pc)
{
  PetscFunctionBegin;
#if GPUCSR_GRAPH_TAKES_INDICES
  {
    PC_GAMG *g = (PC_GAMG *)((PC_MG *)pc->data)->innerctx;

    if (!g->ops->creategraph || g->ops->creategraph == CreateGraph) PetscFunctionReturn(PETSC_SUCCESS);
    petscs              = g->ops->creategraph;
    g->ops->creategraph = CreateGraph;
  }
#else
  (void)pc;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
