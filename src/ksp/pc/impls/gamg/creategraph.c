/*
  The graph that PCGAMG's type agg coarsens. Since PETSc 3.21 each level gets a scaled copy of the matrix, for a filter of small entries. Without a filter only heavy edge matching reads the copy's
  values, so PETSc's function gets the matrix itself, if that is its own graph, or a pattern.
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

/* Replaces PETSc's function, as in PCGAMGProlongator_Private() */
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
