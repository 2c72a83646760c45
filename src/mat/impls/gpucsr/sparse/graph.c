/*
  The graph of a matrix of type seqaijgpucsr, for PCGAMG: MatCreateGraph() on the device.
*/
#include "../type/gpucsrimpl.h"

/* The graph of the vertices on the device, as a matrix of the type that A has; a vertex is a block of bs rows */
static PetscErrorCode GraphOnDevice(Mat A, int bs, PetscBool symmetrize, PetscBool scale, Mat *G)
{
  GPUCSRStorage *csr, graph = {0}, blocks = {0};
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *G = NULL;
  PetscCall(MatGPUCSRMirror_Private(A, ((Mat_SeqGPUCSR *)A->spptr)->dev, PETSC_TRUE, &csr));
  if (bs > 1) ierr = GPUCSRCollapse(csr, bs, &blocks);
  if (!ierr) ierr = GPUCSRGraph(bs > 1 ? &blocks : csr, symmetrize, scale, &graph);
  if (blocks.dev) PetscCall(GPUCSRStorageDestroy(&blocks));
  if (!ierr) ierr = MatCreate(PETSC_COMM_SELF, G);
  if (!ierr) ierr = MatSetSizes(*G, A->rmap->n / bs, A->cmap->n / bs, A->rmap->n / bs, A->cmap->n / bs);
  if (!ierr) ierr = MatSetType(*G, ((PetscObject)A)->type_name);
  if (!ierr) ierr = MatGPUCSRFromDevice_Private(*G, &graph, PETSC_TRUE);
  if (graph.dev) PetscCall(GPUCSRStorageDestroy(&graph));
  if (ierr) PetscCall(MatDestroy(G));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* done: *graph is there; otherwise it is for PETSc's function, which has filters and picks entries of blocks too */
static PetscErrorCode Graph(Mat A, PetscBool symmetrize, PetscBool scale, PetscReal filter, Mat *graph, PetscBool *done)
{
  Mat_SeqGPUCSR  *g = (Mat_SeqGPUCSR *)A->spptr;
  const PetscInt *i;
  PetscBool       set, symmetric;
  GPUCSRAttempt   attempt;
  PetscInt        bs;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatGetBlockSize(A, &bs));
  if (filter >= 0 || A->rmap->n != A->cmap->n || A->rmap->n % bs) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatIsSymmetricKnown(A, &set, &symmetric));
  symmetric = (PetscBool)(set && symmetric);
  if (MatGPUCSRGraphIsPattern_Private()) scale = PETSC_FALSE;
  if (bs == 1 && !scale && (symmetric || !symmetrize)) { /* it is its own graph */
    PetscCall(PetscObjectReference((PetscObject)A));
    *graph = A;
    *done  = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  if (!i || i[A->rmap->n] < g->base.config.productleast) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRDecide_Private(A));
  if (!g->dev) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTry(&attempt, GraphOnDevice(A, (int)bs, (PetscBool)(symmetrize && !symmetric), scale, graph));
  if (attempt.error) {
    PetscCheck(MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA && (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU || attempt.error == PETSC_ERR_SUP), PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    PetscCall(PetscInfo(A, "The graph is made on the host, because %s\n", attempt.message));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (symmetrize) PetscCall(MatSetOption(*graph, MAT_SYMMETRIC, PETSC_TRUE));
  else PetscCall(MatPropagateSymmetryOptions(A, *graph));
  PetscCall(MatViewFromOptions(*graph, NULL, "-mat_graph_view"));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if GPUCSR_GRAPH_TAKES_INDICES
PetscErrorCode MatCreateGraph_SeqAIJGPUCSR(Mat A, PetscBool symmetrize, PetscBool scale, PetscReal filter, PetscInt n, PetscInt index[], Mat *graph)
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (!n) PetscCall(Graph(A, symmetrize, scale, filter, graph, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.creategraph)(A, symmetrize, scale, filter, n, index, graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
PetscErrorCode MatCreateGraph_SeqAIJGPUCSR(Mat A, PetscBool symmetrize, PetscBool scale, PetscReal filter, Mat *graph)
{
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(Graph(A, symmetrize, scale, filter, graph, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.creategraph)(A, symmetrize, scale, filter, graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
