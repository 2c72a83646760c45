/*
  The tentative prolongator of a level of a PCGAMG. Each rank aggregates its diagonal block on its device (blackbox/amg), so no
  aggregate crosses ranks.
*/
#include "gpuamgimpl.h"

/* The rank's diagonal block on its device */
static PetscErrorCode Block(Mat A, GPUCSROperator *o, const GPUCSRStorage **csr)
{
  char      why[256] = "";
  Mat       D        = A;
  PetscBool several;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJGPUCSR, &several));
  if (several) PetscCall(MatMPIAIJGetSeqAIJ(A, &D, NULL, NULL));
  PetscCall(MatGPUCSROperatorSend_Private(D));
  PetscCall(MatGPUCSROperatorGet_Private(D, PETSC_FALSE, o, why, sizeof(why)));
  PetscCall(PCGPUAMGOnDevice_Private(o, why));
  PetscCall(MatGPUCSROperatorBegin_Private(o));
  if (csr) PetscCall(MatGPUCSROperatorCSR_Private(o, NULL, csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGTentativeDestroy_Private(PCGPUAMGTentative *t)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(t->i));
  PetscCall(PetscFree(t->j));
  PetscCall(PetscFree(t->a));
  PetscCall(PetscFree(t->near));
  PetscCall(PetscFree(t->dead));
  PetscCall(PetscMemzero(t, sizeof(*t)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fetch(const GPUAMG *h, PetscInt m, PetscInt ns, PCGPUAMGTentative *t)
{
  const GPUCSRStorage *P   = &h->level[0].P[0];
  const GPUAMGLevel   *C   = &h->level[1];
  GPUCSRDevice         dev = h->dev;
  const size_t         n = (size_t)C->n, nnz = n ? (size_t)P->nnz : 0;

  PetscFunctionBegin;
  t->columns = C->n;
  PetscCall(PetscCalloc1((size_t)m + 1, &t->i));
  PetscCall(PetscMalloc1(nnz, &t->j));
  PetscCall(PetscMalloc1(nnz, &t->a));
  PetscCall(PetscMalloc1(n * (size_t)ns + 1, &t->near)); /* not NULL, which stands for constants, on a rank without columns */
  PetscCall(PetscMalloc1(n, &t->dead));
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRDownload(dev, t->i, GPUCSR_PETSCINT, P->array[CSR_ROWPTR].data, GPUCSR_INT32, (size_t)m + 1, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDownload(dev, t->j, GPUCSR_PETSCINT, P->array[CSR_COL].data, GPUCSR_INT32, nnz, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDownload(dev, t->a, GPUCSR_DOUBLE, P->array[CSR_VAL].data, GPUCSR_DOUBLE, nnz, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDownload(dev, t->near, GPUCSR_DOUBLE, C->basis.p, GPUCSR_DOUBLE, n * (size_t)ns, PETSC_FALSE, dev->stream));
  PetscCall(dev->ops->copy(dev->id, t->dead, C->dead.p, n, GPUCSR_TO_HOST, dev->stream));
  PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Not collective: a hierarchy of the diagonal block of A, or (whole false) one level. near: the near null space by rows of ns numbers; NULL: a constant of each component
*/
PetscErrorCode PCGPUAMGHierarchy_Private(Mat A, const GPUAMGOptions *o, PetscInt ns, const double *near, PetscBool whole, GPUAMG *h)
{
  GPUCSRBuffer         basis = {NULL, 0};
  GPUCSROperator       op    = {0};
  const GPUCSRStorage *csr;
  PetscErrorCode       ierr = PETSC_SUCCESS;
  PetscInt             bs;

  PetscFunctionBegin;
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(Block(A, &op, &csr));
  if (near) ierr = PCGPUAMGUpload_Private(op.dev, (size_t)csr->m * (size_t)ns, near, &basis);
  if (!ierr && whole) ierr = GPUAMGSetUp(h, o, csr, op.plan, (int)bs, (int)ns, (const double *)basis.p);
  if (!ierr && !whole) ierr = GPUAMGOneLevel(h, o, csr, (int)bs, (int)ns, (const double *)basis.p, NULL);
  PetscCall(GPUCSRBufferFree(op.dev, &basis));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: aggregates by options of a finest level */
PetscErrorCode PCGPUAMGTentativeMake_Private(Mat A, const GPUAMGOptions *o, PetscInt ns, const double *near, PCGPUAMGTentative *t)
{
  const PetscInt n    = A->rmap->n;
  GPUAMG         h    = {0};
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (n) ierr = PCGPUAMGHierarchy_Private(A, o, ns, near, PETSC_FALSE, &h);
  if (!ierr) ierr = Fetch(&h, n, ns, t);
  PetscCall(GPUAMGDestroy(&h));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the number of columns on all ranks; 0 if it is too large for another level */
PetscErrorCode PCGPUAMGTentativeColumns_Private(Mat A, const PCGPUAMGTentative *t, PetscInt *columns)
{
  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(&t->columns, columns, 1, MPIU_INT, MPI_SUM, PetscObjectComm((PetscObject)A)));
  if ((double)*columns >= 0.9 * (double)A->rmap->N) *columns = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the prolongator as a matrix of the type and configuration of A */
PetscErrorCode PCGPUAMGTentativeMatrix_Private(Mat A, PCGPUAMGTentative *t, Mat *like)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  const PetscInt n    = A->rmap->n;
  PetscInt       first;
  PetscBool      several;
  Mat            P;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJGPUCSR, &several));
  PetscCallMPI(MPI_Scan(&t->columns, &first, 1, MPIU_INT, MPI_SUM, comm));
  first -= t->columns;
  for (PetscInt k = 0; k < t->i[n]; k++) t->j[k] += first;
  if (several) PetscCall(MatCreateMPIAIJWithArrays(comm, n, t->columns, PETSC_DETERMINE, PETSC_DETERMINE, t->i, t->j, t->a, &P));
  else PetscCall(MatCreateSeqAIJWithArrays(comm, n, t->columns, t->i, t->j, t->a, &P));
  PetscCall(MatGPUCSRLike_Private(A, P, like));
  PetscCall(MatDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}
