/*
  Applications of a PCGPUAMG of several ranks.
*/
#include "gpuamgimpl.h"

/* Collective */
PetscErrorCode PCGPUAMGRanksCycles_Private(PC pc)
{
  PC_GPUAMG    *a = (PC_GPUAMG *)pc->data;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, PCGPUAMGCycleFill_Private(pc, NULL, PETSC_FALSE, &a->cycle));
  PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the transpose ---- */

static PetscErrorCode TransposeLevels(PC pc)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  for (int l = 1; l < a->ranks->levels; l++) {
    GPUAMGRanksLevel *L = &a->ranks->level[l];

    for (int k = 0; k < 2; k++) {
      if (L->tmap[k]) PetscCall(GPUCSRTransposeValues(L->A.m.block[k], L->tmap[k], &L->T.own[k]));
      else PetscCall(GPUCSRTransposeStorage(L->A.m.block[k], &L->T.own[k], &L->tmap[k]));
    }
    PetscCall(PCGPUAMGRanksTransposed_Private((GPUCSRStorage *const[]){&L->T.own[0], &L->T.own[1]}, &L->A, &L->T));
  }
  PetscCall(PCGPUAMGCycleFill_Private(pc, NULL, PETSC_TRUE, &a->transposed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the cycle of the transposed levels */
PetscErrorCode PCGPUAMGRanksTranspose_Private(PC pc)
{
  PC_GPUAMG    *a = (PC_GPUAMG *)pc->data;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  if (a->takent) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGPUAMGRanksFinest_Private(a->matrix.A, PETSC_TRUE, &a->ranks->level[0].T));
  GPUCSRTry(&attempt, TransposeLevels(pc));
  PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
  a->takent = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- applications ---- */

static PetscErrorCode Moved(const GPUAMGRanksMatrix *A, Mat finest, PetscBool *moved)
{
  GPUCSROperator o;
  char           why[256];
  Mat            D;

  PetscFunctionBegin;
  *moved = PETSC_TRUE;
  if (!GPUCSRIsType(finest, MATMPIAIJGPUCSR)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(finest, &D, NULL, NULL));
  if (D != A->o.A) PetscFunctionReturn(PETSC_SUCCESS); /* the matrix has other blocks, and A's may be gone */
  PetscCall(MatGPUCSROperatorGet_Private(D, PETSC_FALSE, &o, why, sizeof(why)));
  if (o.dev != A->o.dev || memcmp(&o.version, &A->o.version, sizeof(o.version))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRRanksMoved_Private(finest, &A->r, PETSC_FALSE, moved));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: renews the finest level of the cycles if the matrix has moved or has new values */
PetscErrorCode PCGPUAMGRanksCurrent_Private(PC pc)
{
  PC_GPUAMG        *a = (PC_GPUAMG *)pc->data;
  GPUAMGRanksLevel *L = &a->ranks->level[0];
  PetscBool         mine, here;
  int               moved;
  GPUCSRAttempt     attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, Moved(&L->A, a->matrix.A, &mine));
  moved = attempt.error || mine;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &moved, 1, MPI_INT, MPI_MAX, L->A.m.comm));
  if (!moved) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGPUAMGStays_Private(pc));
  a->takent = PETSC_FALSE;
  a->version++;
  PetscCall(PCGPUAMGRanksRenew_Private(a->matrix.A, a->ranks, &here));
  if (!here) {
    PetscCall(PCGPUAMGForget_Private(a));
    PetscCall((*pc->ops->setup)(pc));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PCGPUAMGRanksCycles_Private(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGRanksView_Private(PC pc, PetscViewer viewer)
{
  const PC_GPUAMG   *a = (const PC_GPUAMG *)pc->data;
  const GPUAMGRanks *r = a->ranks;
  double             nnz[GPUAMG_LEVELS], all = 0;
  PetscViewer        sub;
  PetscMPIInt        rank;

  PetscFunctionBegin;
  for (int l = 0; l < r->levels; l++) nnz[l] = (double)r->level[l].nnz;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, nnz, r->levels, MPI_DOUBLE, MPI_SUM, PetscObjectComm((PetscObject)pc)));
  for (int l = 0; l < r->levels; l++) all += nnz[l];
  PetscCall(PetscViewerASCIIPrintf(viewer, "  %d levels of all ranks, operator complexity %.3f, built %" PetscInt_FMT " times, refreshed %" PetscInt_FMT "\n", r->levels, all / nnz[0], a->built, a->refreshed));
  PetscCall(PetscViewerASCIIPrintf(viewer, "  Cycles run on backend %s%s\n", a->cycle.dev->ops->name, a->cycle.krylov ? ", and sums of K-cycles pass through the host" : a->cycle.host ? ", and exchanges pass through the host" : ""));
  if (a->used.precision) PetscCall(PetscViewerASCIIPrintf(viewer, "  precision %s is of levels of which each rank has all rows; levels of all ranks are in doubles\n", PCGPUAMGPrecisions[a->used.precision]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "  level       rows    nonzeros  a row  block  eigenvalue\n"));
  for (int l = 0; l < r->levels; l++)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  %5d %10" PetscInt_FMT " %11.0f %6.1f %6" PetscInt_FMT " %11.4f\n", l, r->level[l].N, nnz[l], nnz[l] / PetscMax(1.0, (double)r->level[l].N), r->level[l].bs, r->level[l].lambda));
  if (!r->small) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  Each rank has all rows of level %d, with\n", r->levels - 1));
  PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)pc), &rank));
  PetscCall(PetscViewerGetSubViewer(viewer, PETSC_COMM_SELF, &sub));
  if (!rank) PetscCall(PCView(r->one, sub));
  PetscCall(PetscViewerRestoreSubViewer(viewer, PETSC_COMM_SELF, &sub));
  PetscFunctionReturn(PETSC_SUCCESS);
}
