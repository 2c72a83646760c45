/*
  A small level of several ranks in a PCGPUAMG: each rank takes all rows and makes a hierarchy of one process.
*/
#include "gpuamgimpl.h"

/* Collective: the near null space of all rows */
static PetscErrorCode NearOfAll(const GPUAMGRanksLevel *L, double **all)
{
  const MPI_Comm  comm = PetscObjectComm((PetscObject)L->A);
  const PetscInt *ranges;
  PetscMPIInt     size, *counts, *at;

  PetscFunctionBegin;
  *all = NULL;
  if (!L->near) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(MatGetOwnershipRanges(L->A, &ranges));
  PetscCall(PetscMalloc1((size_t)L->N * (size_t)L->ns, all));
  PetscCall(PetscMalloc2(size, &counts, size, &at));
  for (PetscMPIInt q = 0; q < size; q++) {
    counts[q] = (PetscMPIInt)((ranges[q + 1] - ranges[q]) * L->ns);
    at[q]     = (PetscMPIInt)(ranges[q] * L->ns);
  }
  PetscCallMPI(MPI_Allgatherv(L->near, (PetscMPIInt)(L->n * L->ns), MPI_DOUBLE, *all, counts, at, MPI_DOUBLE, comm));
  PetscCall(PetscFree2(counts, at));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values of the same pattern; all takes the place of r->all otherwise */
static PetscErrorCode TakeAll(GPUAMGRanks *r, Mat all)
{
  GPUCSROperator o;
  PetscInt       bs;

  PetscFunctionBegin;
  if (r->all) PetscCall(MatCopy(all, r->all, SAME_NONZERO_PATTERN));
  else {
    PetscCall(PCGPUAMGBlock_Private(r->level[0].A, &o, NULL));
    PetscCall(MatGPUCSRLike_Private(o.A, all, &r->all));
    PetscCall(MatGetBlockSize(r->level[0].A, &bs));
    PetscCall(MatSetBlockSize(r->all, bs));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solve of one rank with all rows. near goes to the PC */
static PetscErrorCode OneSetUp(const PC_GPUAMG *a, Mat all, const double *near)
{
  GPUAMGRanks *r     = a->ranks;
  PetscBool    known = PETSC_FALSE, symmetric = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TakeAll(r, all));
  PetscCall(MatIsSymmetricKnown(r->level[0].A, &known, &symmetric));
  if (known && symmetric) PetscCall(MatSetOption(r->all, MAT_SYMMETRIC, PETSC_TRUE));
  if (!r->one) {
    PetscCall(PCCreate(PETSC_COMM_SELF, &r->one));
    PetscCall(PCSetType(r->one, PCGPUAMG));
    PetscCall(PCSetOperators(r->one, r->all, r->all));
    PetscCall(PCGPUAMGInherit_Private(a, 0, r->level[0].ns, near, r->one));
  } else PetscCall(PCSetOperators(r->one, r->all, r->all));
  ((PC_GPUAMG *)r->one->data)->reuse = a->reuse;
  PetscCall(PCSetUp(r->one));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
PetscErrorCode PCGPUAMGGather_Private(PC pc)
{
  PC_GPUAMG     *a    = (PC_GPUAMG *)pc->data;
  GPUAMGRanks   *r    = a->ranks;
  const MPI_Comm comm = PetscObjectComm((PetscObject)pc);
  double        *near = NULL;
  Mat            all;
  Vec            v;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  PetscCall(MatGetSize(pc->pmat, &r->level[0].N, NULL));
  if (!r->one) PetscCall(NearOfAll(&r->level[0], &near));
  PetscCall(GPUMGRanksAllRows(pc->pmat, &all));
  GPUCSRTry(&attempt, OneSetUp(a, all, near));
  PetscCall(PetscFree(near));
  PetscCall(MatDestroy(&all));
  PetscCall(PCGPUAMGSettle_Private(comm, &attempt));
  pc->failedreason = r->one->failedreason;
  if (r->scatter) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateVecs(pc->pmat, &v, NULL));
  PetscCall(VecScatterCreateToAll(v, &r->scatter, &r->b));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDuplicate(r->b, &r->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGGatheredApply_Private(const GPUAMGRanks *r, PetscBool transposed, Vec b, Vec x)
{
  const PetscScalar *from;
  PetscScalar       *to;
  PetscInt           first, n;
  GPUCSRAttempt      attempt;

  PetscFunctionBegin;
  PetscCall(VecScatterBegin(r->scatter, b, r->b, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(r->scatter, b, r->b, INSERT_VALUES, SCATTER_FORWARD));
  GPUCSRTry(&attempt, transposed ? PCApplyTranspose(r->one, r->b, r->x) : PCApply(r->one, r->b, r->x));
  PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)x), &attempt));
  PetscCall(VecGetOwnershipRange(x, &first, NULL));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(r->x, &from));
  PetscCall(VecGetArrayWrite(x, &to));
  PetscCall(PetscArraycpy(to, from + first, n));
  PetscCall(VecRestoreArrayWrite(x, &to));
  PetscCall(VecRestoreArrayRead(r->x, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}
