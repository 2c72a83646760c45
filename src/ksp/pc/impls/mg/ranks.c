/*
  Cycles of several ranks. Products exchange halos from device to device (mpioperator.c), and each rank solves the coarsest level completely. This file has the exchanges of all levels together, the
  solution of the coarsest level, and the small levels. Each rank holds the small levels completely, as a dense matrix (densecoarse.c) or as a cycle of one process.
*/
#include <limits.h>
#include "../../../wrap.h"
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

/* Collective: all columns of a PC's operator, by rows, on each rank. A: the PC's matrix */
PetscErrorCode GPUMGRanksColumns(KSP ksp, Mat A, double *all)
{
  PetscInt       n, first, end;
  double        *own;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  PetscCall(PetscMalloc1((size_t)(end - first) * (size_t)n, &own));
  ierr = GPUMGPCProbe(ksp, end - first, first, n, own);
  PetscCall(GPUMGRanksAllgather(PetscObjectComm((PetscObject)A), (end - first) * n, MPI_DOUBLE, own, all)); /* also after an error on this rank, because all ranks make this call */
  PetscCall(PetscFree(own));
  PetscFunctionReturn(ierr);
}

/* ---- small levels ---- */

/* The gathered parts of a level: matrices, and numbers of the smoothers */
typedef struct {
  Mat     A, P, R; /* R: NULL if made from P's matrix */
  double *M[2];
} Gathered;

/* Collective: the whole matrix A on the host of each rank */
static PetscErrorCode AllRows(Mat A, Mat *all)
{
  IS       rows, cols;
  Mat     *sub;
  PetscInt m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, m, 0, 1, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, n, 0, 1, &cols));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &cols, MAT_INITIAL_MATRIX, &sub));
  PetscCall(MatConvert(sub[0], MATSEQAIJ, MAT_INITIAL_MATRIX, all));
  PetscCall(MatDestroySubMatrices(1, &sub));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective to its end even after an error: a smoother's numbers from all ranks, bs for each row of A */
static PetscErrorCode AllNumbers(GPUCSRDevice dev, Mat A, const GPUMGSmoother *m, double **all)
{
  double        *own;
  PetscInt       n, rows;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *all = NULL;
  if (!m->bs) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetLocalSize(A, &rows, NULL));
  PetscCall(PetscMalloc1((size_t)n * (size_t)m->bs, all));
  PetscCall(PetscMalloc1((size_t)rows * (size_t)m->bs, &own));
  if (rows) ierr = GPUCSRDownload(dev, own, GPUCSR_DOUBLE, m->M.p, GPUCSR_DOUBLE, (size_t)rows * (size_t)m->bs, PETSC_FALSE, dev->stream);
  if (!ierr) ierr = dev->ops->streamsynchronize(dev->id, dev->stream);
  PetscCall(GPUMGRanksAllgather(PetscObjectComm((PetscObject)A), rows * m->bs, MPI_DOUBLE, own, *all));
  PetscCall(PetscFree(own));
  PetscFunctionReturn(ierr);
}

/* first: the first error of the rank's device */
static PetscErrorCode Gather(const GPUMGCycle *c, int bottom, Gathered g[], GPUCSRAttempt *first)
{
  PetscFunctionBegin;
  first->error = PETSC_SUCCESS;
  for (int l = 0; l <= bottom; l++) {
    const GPUMGLevel *L = &c->level[l];

    PetscCall(AllRows(L->A.A, &g[l].A));
    if (l) PetscCall(AllRows(L->P.A, &g[l].P));
    if (l && L->R.A != L->P.A) PetscCall(AllRows(L->R.A, &g[l].R));
    for (int up = 0; up < 2; up++) {
      GPUCSRAttempt a = {0};

      if (up ? L->two : l || !c->exact) GPUCSRTry(&a, AllNumbers(c->dev, L->A.A, up ? &L->up : &L->down, &g[l].M[up]));
      if (!first->error) *first = a;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Uploads a gathered matrix; copy NULL: already there */
static PetscErrorCode ToDevice(const GPUMGMatrix *like, Mat A, Mat *copy, GPUMGMatrix *m)
{
  char why[256] = "";

  PetscFunctionBegin;
  if (!*copy) PetscCall(MatGPUCSRLike_Private(like->o.A, A, copy));
  m->A          = *copy;
  m->transposed = like->transposed;
  PetscCall(MatGPUCSROperatorGet_Private(*copy, m->transposed, &m->o, why, sizeof(why)));
  PetscCheck(m->o.dev == like->o.dev, PETSC_COMM_SELF, PETSC_ERR_MEM, "a level's matrix is not on the device: %s", why);
  PetscCall(MatGPUCSROperatorBegin_Private(&m->o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NumbersToDevice(GPUCSRDevice dev, int n, const GPUMGSmoother *of, const double *all, GPUMGSmoother *m)
{
  const size_t count = (size_t)n * (size_t)of->bs;

  PetscFunctionBegin;
  *m   = *of;
  m->M = (GPUCSRBuffer){NULL, 0};
  if (!all) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRBufferGrow(dev, sizeof(double) * count, "the preconditioner of a smoother", &m->M));
  PetscCall(GPUCSRUpload(dev, m->M.p, GPUCSR_DOUBLE, all, GPUCSR_DOUBLE, count, PETSC_FALSE, dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The levels up to bottom as a cycle t of one process. dense: the caller needs only the dense matrix of t, otherwise the complete cycle */
static PetscErrorCode Small(const GPUMGCycle *c, int bottom, int most, PetscBool dense, const Gathered g[], GPUMGCycle *t)
{
  PetscFunctionBegin;
  t->dev     = c->dev;
  t->type    = c->type;
  t->size    = 1;
  t->levels  = bottom + (dense ? 2 : 1);
  t->cycles  = c->level[bottom + 1].cycles;
  t->exact   = c->exact;
  t->inverse = c->inverse;
  if (dense) t->level[bottom + 1].cycles = t->cycles;
  for (int l = 0; l <= bottom; l++) {
    const GPUMGLevel *F = &c->level[l];
    GPUMGLevel       *L = &t->level[l];

    PetscCall(ToDevice(&F->A, g[l].A, &L->copy[0].A, &L->A));
    L->n      = L->A.o.plan->A.m;
    L->cycles = F->cycles;
    L->two    = F->two;
    PetscCall(NumbersToDevice(c->dev, L->n, &F->down, g[l].M[0], &L->down));
    if (F->two) PetscCall(NumbersToDevice(c->dev, L->n, &F->up, g[l].M[1], &L->up));
    if (!dense) PetscCall(GPUCSRBufferGrow(c->dev, GPUMGCycleVectorBytes(t, l), "vectors of a multigrid level", &L->memory));
    if (!dense) GPUMGCycleVectors(t, l);
    if (!l) continue;
    PetscCall(ToDevice(&F->P, g[l].P, &L->copy[1].A, &L->P));
    PetscCall(ToDevice(&F->R, g[l].R, g[l].R ? &L->copy[2].A : &L->copy[1].A, &L->R));
  }
  PetscCall(GPUMGTailMake(t, dense ? INT_MAX : most));
  PetscCheck(!dense || t->bottom == bottom, PETSC_COMM_SELF, PETSC_ERR_MEM, "there is no memory for the matrix of the small levels");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GatheredDestroy(int bottom, Gathered g[])
{
  PetscFunctionBegin;
  for (int l = 0; l <= bottom; l++) {
    PetscCall(MatDestroy(&g[l].A));
    PetscCall(MatDestroy(&g[l].P));
    PetscCall(MatDestroy(&g[l].R));
    for (int k = 0; k < 2; k++) PetscCall(PetscFree(g[l].M[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The finest level of at most so many rows, except the finest of all; n: its rows */
static PetscErrorCode Bottom(const GPUMGCycle *c, PetscInt small, int *bottom, PetscInt *n)
{
  PetscInt rows;

  PetscFunctionBegin;
  *bottom = 0;
  *n      = 0;
  for (int l = 1; l < c->levels - 1; l++) {
    PetscCall(MatGetSize(c->level[l].A.A, &rows, NULL));
    if (rows > small || GPUMGFactored(&c->level[l]) || (!c->exact && GPUMGFactored(&c->level[0]))) break; /* a factor is of a rank's own rows */
    *bottom = l;
    *n      = rows;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: levels of at most `small` rows become a cycle on each rank; or levels of at most `most` rows a dense matrix. If a rank's device lacks memory, cycles go over all levels */
PetscErrorCode GPUMGRanksSmall(GPUMGCycle *c, MPI_Comm comm, PetscInt small, PetscInt most)
{
  Gathered      g[GPUMG_LEVELS];
  GPUMGCycle   *t;
  PetscInt      n;
  PetscBool     dense;
  int           bottom, failed;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  c->bottom = 0;
  if (c->type != PC_MG_MULTIPLICATIVE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Bottom(c, PetscMax(small, most), &bottom, &n));
  if (!bottom) PetscFunctionReturn(PETSC_SUCCESS);
  dense = (PetscBool)(n <= most);
  PetscCall(PetscMemzero(g, sizeof(g)));
  PetscCall(PetscNew(&t));
  PetscCall(Gather(c, bottom, g, &attempt));
  GPUCSRThen(&attempt, Small(c, bottom, (int)most, dense, g, t));
  PetscCall(GatheredDestroy(bottom, g));
  failed = attempt.error != PETSC_SUCCESS;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, comm));
  if (!failed) c->bottom = bottom;
  else PetscCall(PetscInfo(NULL, "Small levels of a cycle of several ranks stay where they are%s%s\n", attempt.error ? ": " : "", attempt.error ? attempt.message : ""));
  if (!failed && !dense) { /* it keeps the inverse */
    c->inverse = (GPUCSRBuffer){NULL, 0};
    c->small   = t;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!failed) {
    PetscCall(GPUCSRBufferFree(c->dev, &c->tail));
    c->tail = t->tail;
    t->tail = (GPUCSRBuffer){NULL, 0};
  }
  t->inverse = (GPUCSRBuffer){NULL, 0};
  PetscCall(GPUMGCycleDestroy(t));
  PetscCall(PetscFree(t));
  PetscFunctionReturn(PETSC_SUCCESS);
}
