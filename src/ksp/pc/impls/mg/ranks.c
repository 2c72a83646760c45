/*
  Cycles of several ranks. Products exchange halos from device to device (mpioperator.c), and each rank solves the coarsest level completely. This file has the exchanges of all levels together.
*/
#include "cycle.h"

/* For every matrix of every level with an exchange */
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
    if ((c)->gather.r.halo) { \
      const GPUCSRRanks *r = &(c)->gather.r; \
\
      PetscCall(call); \
    } \
  } while (0)

/* A solve begins or has ended; all ranks take part in between */
PetscErrorCode GPUMGRanksSolving(const GPUMGCycle *c, PetscBool begins)
{
  PetscFunctionBegin;
  FOR_ALL(c, MatGPUCSRRanksSolving_Private(r, begins));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Recording of a cycle begins or ends */
PetscErrorCode GPUMGRanksRecord(const GPUMGCycle *c, PetscBool begins)
{
  PetscFunctionBegin;
  FOR_ALL(c, MatGPUCSRRanksRecord_Private(r, begins));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error if any rank has given up */
PetscErrorCode GPUMGRanksCheck(const GPUMGCycle *c)
{
  PetscFunctionBegin;
  FOR_ALL(c, MatGPUCSRRanksCheck_Private(r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank stops and tells the other ranks */
PetscErrorCode GPUMGRanksFail(const GPUMGCycle *c, const char message[])
{
  PetscFunctionBegin;
  FOR_ALL(c, MatGPUCSRRanksFail_Private(r, message));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: pieces of all ranks, in the order of ranks, on each rank */
PetscErrorCode GPUMGRanksAllgather(MPI_Comm comm, PetscInt own, MPI_Datatype type, const void *mine, void *all)
{
  PetscMPIInt size, n, *counts, *at;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscMalloc2(size, &counts, size, &at));
  PetscCall(PetscMPIIntCast(own, &n));
  PetscCallMPI(MPI_Allgather(&n, 1, MPI_INT, counts, 1, MPI_INT, comm));
  at[0] = 0;
  for (PetscMPIInt q = 1; q < size; q++) at[q] = at[q - 1] + counts[q - 1];
  PetscCallMPI(MPI_Allgatherv(mine, n, type, all, counts, at, type, comm));
  PetscCall(PetscFree2(counts, at));
  PetscFunctionReturn(PETSC_SUCCESS);
}
