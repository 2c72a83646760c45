/*
  A small level of several ranks in a PCGPUAMG: each rank takes all rows and makes a hierarchy of one process.
*/
#include "gpuamgimpl.h"

/* Collective: the level's matrix on the host of each rank. The caller frees its arrays after the matrix */
static PetscErrorCode AllRows(const GPUAMGRanksLevel *L, GPUCSRHostRows *b, Mat *all)
{
  const MPI_Comm comm = L->A.m.comm;
  PetscInt      *i, *j, n = 0;
  PetscScalar   *a;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, GPUCSRRanksRows(&L->A.m, &i, &j, &a));
  if (!attempt.error) n = i[L->n];
  for (PetscInt r = L->n; r > 0 && !attempt.error; r--) i[r] -= i[r - 1]; /* lengths */
  PetscCall(PCGPUAMGSettle_Private(comm, &attempt));
  PetscCall(PetscMalloc1(L->N + 1, &b->i));
  b->i[0] = 0;
  PetscCall(GPUMGRanksAllgather(comm, L->n, MPIU_INT, i + 1, b->i + 1));
  for (PetscInt r = 0; r < L->N; r++) b->i[r + 1] += b->i[r];
  PetscCall(PetscMalloc2(b->i[L->N], &b->j, b->i[L->N], &b->a));
  PetscCall(GPUMGRanksAllgather(comm, n, MPIU_INT, j, b->j));
  PetscCall(GPUMGRanksAllgather(comm, n, MPIU_SCALAR, a, b->a));
  PetscCall(PetscFree3(i, j, a));
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, L->N, L->N, b->i, b->j, b->a, all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solve of one rank with all rows. near goes to the PC */
static PetscErrorCode OneSetUp(const PC_GPUAMG *a, Mat all, const double *near)
{
  GPUAMGRanks            *r = a->ranks;
  const GPUAMGRanksLevel *L = &r->level[r->levels - 1];
  PC_GPUAMG              *c;
  PetscBool               known = PETSC_FALSE, symmetric = PETSC_FALSE;

  PetscFunctionBegin;
  if (r->all) PetscCall(MatCopy(all, r->all, SAME_NONZERO_PATTERN));
  else {
    PetscCall(MatGPUCSRLike_Private(r->level[0].A.o.A, all, &r->all));
    PetscCall(MatSetBlockSize(r->all, L->bs));
  }
  PetscCall(MatIsSymmetricKnown(a->matrix.A, &known, &symmetric));
  if (known && symmetric) PetscCall(MatSetOption(r->all, MAT_SYMMETRIC, PETSC_TRUE));
  if (!r->one) {
    PetscCall(PCCreate(PETSC_COMM_SELF, &r->one));
    PetscCall(PCSetType(r->one, PCGPUAMG));
    PetscCall(PCSetOperators(r->one, r->all, r->all));
    c        = (PC_GPUAMG *)r->one->data; /* has the options and the near null space of this level */
    c->asked = a->used;
    PCGPUAMGOptionsAt_Private(a, r->levels - 1, &c->asked.o);
    if (r->levels > 1) c->asked.o.drop = r->weak ? GPUAMG_ALWAYS : GPUAMG_NEVER;
    c->asked.nthreshold = GPUAMG_LEVELS;
    c->inner            = PETSC_TRUE;
    if (near) {
      PetscCall(PetscMalloc1((size_t)L->N * (size_t)L->ns + 1, &c->given));
      PetscCall(PetscArraycpy(c->given, near, (size_t)L->N * (size_t)L->ns));
      c->ngiven = L->ns;
    }
  } else PetscCall(PCSetOperators(r->one, r->all, r->all));
  ((PC_GPUAMG *)r->one->data)->reuse = a->reuse;
  PetscCall(PCSetUp(r->one));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the coarsest level goes to each rank */
PetscErrorCode PCGPUAMGGather_Private(PC pc)
{
  PC_GPUAMG              *a    = (PC_GPUAMG *)pc->data;
  GPUAMGRanks            *r    = a->ranks;
  const GPUAMGRanksLevel *L    = &r->level[r->levels - 1];
  double                 *near = NULL;
  GPUCSRAttempt           attempt;
  GPUCSRHostRows          b;
  Mat                     all;

  PetscFunctionBegin;
  if (!r->one) { /* the near null space of all rows; NULL: constants */
    GPUCSRDevice  dev = L->A.o.dev;
    double       *own;
    int           has = L->basis.p != NULL; /* of a rank with rows */
    GPUCSRAttempt reading;

    near = NULL;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &has, 1, MPI_INT, MPI_MAX, L->A.m.comm));
    if (has) {
      PetscCall(PetscMalloc1(L->n * L->ns, &own));
      GPUCSRTry(&reading, L->n ? GPUCSRDownload(dev, own, GPUCSR_DOUBLE, L->basis.p, GPUCSR_DOUBLE, (size_t)(L->n * L->ns), PETSC_FALSE, dev->stream) : PETSC_SUCCESS);
      GPUCSRThen(&reading, dev->ops->streamsynchronize(dev->id, dev->stream));
      PetscCall(PCGPUAMGSettle_Private(L->A.m.comm, &reading));
      PetscCall(PetscMalloc1((size_t)L->N * (size_t)L->ns, &near));
      PetscCall(GPUMGRanksAllgather(L->A.m.comm, L->n * L->ns, MPI_DOUBLE, own, near));
      PetscCall(PetscFree(own));
    }
  }
  PetscCall(AllRows(L, &b, &all));
  GPUCSRTry(&attempt, OneSetUp(a, all, near));
  PetscCall(PetscFree(near));
  PetscCall(MatDestroy(&all));
  PetscCall(PetscFree2(b.j, b.a));
  PetscCall(PetscFree(b.i));
  PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
  pc->failedreason = r->one->failedreason;
  if (!pc->failedreason && !r->everything) { /* a matrix whose product gives each rank the whole vector of the level */
    PetscCall(MatGPUCSRRanksEverything_Private(a->matrix.A, r->level[r->levels - 1].rows, &r->everything));
    PetscCall(PCGPUAMGRanksFinest_Private(r->everything, PETSC_FALSE, &r->gather));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
