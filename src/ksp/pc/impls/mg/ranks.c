/*
  Cycles of several ranks: their products exchange what they need with those of others, device to device (mpioperator.c), and each rank solves the coarsest level for all. Here are the exchanges of
  all levels together, and the solution of the coarsest level.
*/
#include "cycle.h"

/* For the matrices that exchange anything, of all levels */
#define FOR_ALL(c, call) \
  do { \
    for (int l_ = 0; l_ < (c)->levels; l_++) { \
      const GPUMGMatrix *all_[] = {&(c)->level[l_].A, &(c)->level[l_].P, &(c)->level[l_].R}; \
\
      for (int k_ = 0; k_ < (l_ ? 3 : 1); k_++) { \
        const GPUCSRRanks *r = &all_[k_]->r; \
\
        if (r->halo) PetscCall(call); \
      } \
    } \
    if ((c)->all.r.halo) { \
      const GPUCSRRanks *r = &(c)->all.r; \
\
      PetscCall(call); \
    } \
  } while (0)

/* A solve begins, or has ended: in between all ranks take part */
PetscErrorCode GPUMGRanksSolving(const GPUMGCycle *c, PetscBool begins)
{
  PetscFunctionBegin;
  FOR_ALL(c, MatGPUCSRRanksSolving_Private(r, begins));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error once a rank has given up */
PetscErrorCode GPUMGRanksCheck(const GPUMGCycle *c)
{
  PetscFunctionBegin;
  FOR_ALL(c, MatGPUCSRRanksCheck_Private(r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank goes no further: the others are told */
PetscErrorCode GPUMGRanksFail(const GPUMGCycle *c, const char message[])
{
  PetscFunctionBegin;
  FOR_ALL(c, MatGPUCSRRanksFail_Private(r, message));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank's rows of what a PC does to the unit vectors of all ranks */
static PetscErrorCode OwnRows(KSP ksp, PetscInt n, PetscInt first, PetscInt rows, Vec unit, Vec column, double *own)
{
  const PetscScalar *c;

  PetscFunctionBegin;
  for (PetscInt j = 0; j < n; j++) {
    PetscCall(VecSet(unit, 0.0));
    if (j >= first && j < first + rows) PetscCall(VecSetValue(unit, j, 1.0, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(unit));
    PetscCall(VecAssemblyEnd(unit));
    PetscCall(GPUMGPCApply(ksp, unit, column));
    PetscCall(VecGetArrayRead(column, &c));
    for (PetscInt i = 0; i < rows; i++) own[(size_t)i * (size_t)n + (size_t)j] = (double)PetscRealPart(c[i]);
    PetscCall(VecRestoreArrayRead(column, &c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: all columns of what a PC does, by rows, on each rank; A is its operator */
PetscErrorCode GPUMGRanksColumns(KSP ksp, Mat A, double *all)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)ksp);
  Vec            unit, column;
  PetscInt       n, first, end;
  PetscMPIInt    size, *counts, *at;
  double        *own;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  PetscCall(PetscMalloc3((size_t)(end - first) * (size_t)n, &own, size, &counts, size, &at));
  PetscCall(VecCreateMPI(comm, end - first, n, &unit));
  PetscCall(VecDuplicate(unit, &column));
  ierr = OwnRows(ksp, n, first, end - first, unit, column, own);
  PetscCall(VecDestroy(&unit));
  PetscCall(VecDestroy(&column));
  if (!ierr) {
    const PetscInt *ranges;

    PetscCall(MatGetOwnershipRanges(A, &ranges));
    for (PetscMPIInt r = 0; r < size; r++) {
      counts[r] = (PetscMPIInt)((ranges[r + 1] - ranges[r]) * n);
      at[r]     = (PetscMPIInt)(ranges[r] * n);
    }
    PetscCallMPI(MPI_Allgatherv(own, (PetscMPIInt)((end - first) * n), MPI_DOUBLE, all, counts, at, MPI_DOUBLE, comm));
  }
  PetscCall(PetscFree3(own, counts, at));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
