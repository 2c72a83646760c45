/*
  The cycles of a PCGPUAMG of several ranks. Exchanges between devices make a graph of a solver's iteration possible. Exchanges through the host, and sums of K-cycles, do not.
*/
#include "gpuamgimpl.h"

static GPUMGMatrix MatrixOf(const GPUAMGRanksMatrix *A, PetscBool transposed)
{
  const GPUMGMatrix m = {.A = A->o.A, .o = A->o, .r = A->r, .transposed = transposed};

  return m;
}

/* Level k of the hierarchy, in a cycle of A or of its transpose */
static PetscErrorCode Level(const PC_GPUAMG *a, int k, PetscBool transposed, GPUMGCycle *c)
{
  GPUAMGRanks      *r = a->ranks;
  GPUAMGRanksLevel *G = &r->level[k];
  GPUMGLevel       *L = &c->level[r->levels - 1 - k];

  PetscFunctionBegin;
  L->n      = (int)G->n;
  L->cycles = (int)PetscMin(a->used.cycles, 2);
  L->two    = PETSC_FALSE;
  L->A      = MatrixOf(transposed ? &G->T : &G->A, transposed);
  if (k + 1 < r->levels) {
    L->P = MatrixOf(&G->P[a->used.o.nsmooths], PETSC_FALSE);
    L->R = MatrixOf(&G->R, PETSC_TRUE);
  }
  PCGPUAMGSmoother_Private(a, &G->dinv, &G->smooth, (int)G->bs, G->factor, G->bound, (PetscBool)(k + 1 == r->levels), &L->down);
  L->down.transposed = transposed;
  PetscCall(GPUCSRBufferGrow(c->dev, GPUMGCycleVectorBytes(c, r->levels - 1 - k), "vectors of a multigrid level", &L->memory));
  GPUMGCycleVectors(c, r->levels - 1 - k);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solve of the small level on each rank */
static PetscErrorCode Small(GPUAMGRanks *r, PetscBool transposed, GPUMGCycle *c)
{
  const GPUAMGRanksLevel *G = &r->level[r->levels - 1];
  PetscInt                version;

  PetscFunctionBegin;
  if (!r->small) PetscFunctionReturn(PETSC_SUCCESS);
  if (transposed) PetscCall(PCGPUAMGTransposedCycle_Private(r->one, &c->small));
  else PetscCall(PCGPUAMGCycleGet_Private(r->one, &c->small, &version));
  PetscCheck(c->small && c->small->dev == c->dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "The small levels of PC type gpuamg are not on the device of its matrix");
  c->lent        = PETSC_TRUE;
  c->gather      = MatrixOf(&r->gather, PETSC_FALSE);
  c->coarserows  = (int)G->N;
  c->coarsefirst = (int)G->rows->rstart;
  PetscCall(GPUCSRBufferGrow(c->dev, 2 * sizeof(double) * (size_t)G->N, "vectors of a coarse operator", &c->coarsevectors));
  if (!c->krylov) c->level[0].x = (double *)c->coarsevectors.p + c->coarserows + c->coarsefirst;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill(PC pc, PetscBool transposed, GPUMGCycle *c)
{
  const PC_GPUAMG  *a = (const PC_GPUAMG *)pc->data;
  GPUAMGRanks      *r = a->ranks;
  GPUMGKrylovMethod krylov;

  PetscFunctionBegin;
  if (c->dev) PetscCall(GPUMGCycleForget(c));
  c->dev    = r->level[0].A.o.dev;
  c->type   = PC_MG_MULTIPLICATIVE;
  c->levels = r->levels;
  c->cycles = 1;
  c->comm   = PetscObjectComm((PetscObject)pc);
  PetscCallMPI(MPI_Comm_size(c->comm, &c->size));
  PetscCall(PCGPUAMGKrylovMethod_Private(a, a->matrix.A, &krylov));
  c->krylov = krylov;
  for (int k = 0; k < r->levels; k++) PetscCall(Level(a, k, transposed, c));
  PetscCall(Small(r, transposed, c));
  PetscCall(GPUMGCycleKrylov(c, krylov));
  c->host = (PetscBool)(krylov || (r->small && !MatGPUCSRRanksRecordable_Private(&r->gather.r)));
  for (int k = 0; k < r->levels; k++) { /* where peers are not asked for, one exchange may have them and another none */
    const GPUMGLevel *L = &c->level[r->levels - 1 - k];

    if (!MatGPUCSRRanksRecordable_Private(&L->A.r) || (L->P.r.halo && !MatGPUCSRRanksRecordable_Private(&L->P.r))) c->host = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
PetscErrorCode PCGPUAMGRanksCycles_Private(PC pc)
{
  PC_GPUAMG    *a = (PC_GPUAMG *)pc->data;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, Fill(pc, PETSC_FALSE, &a->cycle));
  PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the transpose ---- */

static PetscErrorCode TransposeBlocks(GPUAMGRanksLevel *L)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    if (L->tmap[k]) PetscCall(GPUCSRTransposeValues(L->A.m.block[k], L->tmap[k], &L->T.own[k]));
    else PetscCall(GPUCSRTransposeStorage(L->A.m.block[k], &L->T.own[k], &L->tmap[k]));
  }
  PetscCall(PCGPUAMGRanksTransposed_Private((GPUCSRStorage *const[]){&L->T.own[0], &L->T.own[1]}, &L->A, &L->T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeLevels(PC pc)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  for (int l = 1; l < a->ranks->levels; l++) PetscCall(TransposeBlocks(&a->ranks->level[l]));
  PetscCall(Fill(pc, PETSC_TRUE, &a->transposed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the cycle of the transposed levels */
static PetscErrorCode Transpose(PC pc)
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

/* Collective: levels are there, and up to date */
PetscErrorCode PCGPUAMGRanksApply_Private(PC pc, PetscBool transposed, Vec b, Vec x)
{
  PC_GPUAMG    *a = (PC_GPUAMG *)pc->data;
  GPUMGCycle   *c = transposed ? &a->transposed : &a->cycle;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  if (transposed) PetscCall(Transpose(pc));
  GPUCSRTry(&attempt, GPUMGCycleApplyVecs(c, &a->event, b, x));
  if (c->host) PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUMGRanksFail(c, attempt.message)); /* the other ranks are inside the cycle */
  SETERRQ(PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
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
