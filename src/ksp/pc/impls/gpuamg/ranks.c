/*
  PCGPUAMG of several ranks: a hierarchy on the devices of all ranks. Each device aggregates the diagonal block of its rank (blackbox/amg), so the tentative prolongator is block diagonal. Its smoothing steps and
  the Galerkin product are products of matrices of all ranks (sparse/mpisparse.c): border rows pass through the host. So does the first small level, which each rank holds whole, with a hierarchy
  of one process (gather.c).
*/
#include "gpuamgimpl.h"

typedef GPUAMGRanksLevel Level;

/* Collective: the first error of any rank is an error on all */
PetscErrorCode PCGPUAMGSettle_Private(MPI_Comm comm, GPUCSRAttempt *a)
{
  char        text[sizeof(a->message) + 32];
  int         weight = a->error ? 1 : 0;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s (met by rank %d)", a->error ? a->message : "", (int)rank));
  PetscCall(GPUCSRAgree(comm, &weight, &a->error, text, sizeof(text), &rank));
  PetscCheck(!a->error, comm, a->error, "%s", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for the steps of a product */
static PetscErrorCode Agree(void *comm, const GPUCSRAttempt *a, PetscBool *ok)
{
  GPUCSRAttempt attempt = *a;

  PetscFunctionBegin;
  PetscCall(PCGPUAMGSettle_Private(*(MPI_Comm *)comm, &attempt));
  *ok = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does each rank take all of level l, of N rows? */
static PetscBool Gathers(PC pc, int l, PetscInt N)
{
  const PC_GPUAMG *a    = (const PC_GPUAMG *)pc->data;
  PetscMPIInt      size = 1;

  if (N <= a->used.o.limit || (l && N <= a->used.gather)) return PETSC_TRUE;
  return (PetscBool)(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size) || (double)N < (double)a->used.least * size);
}

/* ---- values of a level ---- */

static PetscErrorCode Times(const Level *L, PetscInt bs, const GPUCSRBuffer *M, const double *from, double *to)
{
  const GPUAMGWork w = {.bs = (int)bs, .coarse = (double *)M->p, .norm = (double *)from, .basis = to};

  return (*GPUAMGOf(L->A.o.dev)->rows)(L->A.o.dev, GPUAMG_TIMES, (int)L->n, &w);
}

static PetscErrorCode Diagonal(const Level *L, const double *from, double *to)
{
  return Times(L, 1, &L->dinv, from, to);
}

static PetscErrorCode Blocks(const Level *L, const double *from, double *to)
{
  return Times(L, L->bs, &L->smooth, from, to);
}

static PetscErrorCode Factor(const Level *L, const double *from, double *to)
{
  return L->n ? GPUCSRFactorSolve(L->factor, PETSC_FALSE, from, to) : PETSC_SUCCESS;
}

/* The diagonal's inverse, another smoother's, and flags of GPUAMGFlag */
static PetscErrorCode Inverses(const GPUAMGOptions *o, Level *L, GPUCSRStorage *K, int *flags)
{
  GPUCSRDevice     dev  = L->A.o.dev;
  const GPUAMGOps *ops  = GPUAMGOf(dev);
  const int        n    = (int)L->n;
  GPUCSRBuffer     flag = {NULL, 0};
  int32_t          raised;
  GPUAMGWork       w;

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(dev, sizeof(double) * (size_t)PetscMax(1, n), "the diagonal of a level", &L->dinv));
  PetscCall(GPUCSRBufferGrow(dev, sizeof(int32_t), "flags of a level", &flag));
  PetscCall(dev->ops->zero(dev->id, flag.p, sizeof(int32_t), dev->stream));
  w = (GPUAMGWork){.A = GPUAMGRowsOf(K), .bs = (int)L->bs, .dinv = (double *)L->dinv.p, .flag = (int32_t *)flag.p};
  PetscCall((*ops->rows)(dev, GPUAMG_DIAGONAL, n, &w));
  PetscCall(GPUCSRRead(dev, &raised, flag.p, sizeof(raised)));
  PetscCall(GPUCSRBufferFree(dev, &flag));
  *flags = raised;
  if (o->smoother == GPUAMG_BY_SIZES) {
    PetscCall(GPUCSRBufferGrow(dev, sizeof(double) * (size_t)PetscMax(1, n), "the smoother of a level", &L->smooth));
    w.dinv = (double *)L->smooth.p;
    PetscCall((*ops->rows)(dev, GPUAMG_SIZES, n, &w));
  } else if (o->smoother == GPUAMG_BY_BLOCKS && L->bs > 1) {
    PetscCall(GPUCSRBufferGrow(dev, sizeof(double) * (size_t)PetscMax(1, n) * (size_t)L->bs, "the smoother of a level", &L->smooth));
    w.A      = GPUAMGRowsOf(L->A.m.block[0]);
    w.coarse = (double *)L->smooth.p;
    PetscCall((*ops->rows)(dev, GPUAMG_INVERSES, n / (int)L->bs, &w));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ValuesOfRank(const GPUAMGOptions *o, Level *L, int *flags)
{
  GPUCSRStorage  K = {.dev = L->A.o.dev};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRRanksBeside(L->A.m.block, &K));
  ierr = Inverses(o, L, &K, flags);
  PetscCall(GPUCSRStorageDestroy(&K));
  PetscCall(ierr);
  if (o->smoother == GPUAMG_BY_FACTOR) { /* a zero pivot is a problem, not an error */
    PetscBool good = PETSC_TRUE;

    if (L->n) PetscCall(GPUCSRFactorMake(L->A.m.block[0], 0, &L->factor, &good));
    if (!good) *flags |= GPUAMG_PIVOT;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Eigenvalue(PC_GPUAMG *a, const Level *L, PetscErrorCode (*inverse)(const Level *, const double *, double *), double *lambda)
{
  PetscFunctionBegin;
  if (!a->used.o.steps) PetscFunctionReturn(PETSC_SUCCESS); /* the old one */
  PetscCall(PCGPUAMGRanksLargest_Private(L, a->used.o.steps, inverse, lambda));
  if (!(*lambda >= 0 && *lambda < 1e300)) a->h.problem = GPUAMG_NAN;
  if (!(*lambda > 0)) *lambda = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: what smooths level l, and its largest eigenvalues */
static PetscErrorCode Values(PC_GPUAMG *a, int l)
{
  Level               *L     = &a->ranks->level[l];
  const GPUAMGSmoother by    = (GPUAMGSmoother)a->used.o.smoother;
  int                  flags = 0;
  GPUCSRAttempt        attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, ValuesOfRank(&a->used.o, L, &flags));
  PetscCall(PCGPUAMGSettle_Private(L->A.m.comm, &attempt));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &flags, 1, MPI_INT, MPI_BOR, L->A.m.comm));
  a->h.at      = l;
  a->h.problem = flags & GPUAMG_NAN ? GPUAMG_NAN : flags & ~(GPUAMG_NEGATIVE | (l ? GPUAMG_ZERO : 0)); /* the smoother takes 1 for a zero on the diagonal of a coarse level */
  if (!l) a->h.negative = (GPUCSRBool)((flags & GPUAMG_NEGATIVE) != 0);
  if (a->h.problem) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Eigenvalue(a, L, Diagonal, &L->lambda));
  L->bound = by == GPUAMG_BY_SIZES ? 1 : L->lambda;
  if (a->h.problem || a->used.smoother.richardson || a->used.smoother.given) PetscFunctionReturn(PETSC_SUCCESS);
  if (by == GPUAMG_BY_FACTOR) PetscCall(Eigenvalue(a, L, Factor, &L->bound));
  if (by == GPUAMG_BY_BLOCKS && L->bs > 1) PetscCall(Eigenvalue(a, L, Blocks, &L->bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the next level ---- */

/* P = from - omega D^-1 P, block by block. from: the prolongator of the step before, where P = F from */
static PetscErrorCode SmoothBlocks(const GPUAMGOptions *o, const Level *L, const GPUAMGRanksMatrix *from, const GPUAMGRanksMatrix *P)
{
  GPUCSRDevice   dev   = L->A.o.dev;
  const int      n     = (int)from->m.block[1]->n;
  const size_t   bytes = sizeof(int32_t) * (size_t)from->m.block[1]->nnz;
  GPUAMGWork     w     = {.dinv = (double *)L->dinv.p, .omega = o->damping / L->lambda};
  int32_t       *table;
  void          *there = NULL;
  PetscErrorCode ierr  = PETSC_SUCCESS;

  PetscFunctionBegin;
  w.from = GPUAMGRowsOf(from->m.block[0]);
  w.to   = GPUAMGRowsOf(P->m.block[0]);
  PetscCall((*GPUAMGOf(dev)->rows)(dev, GPUAMG_SMOOTH, (int)L->n, &w));
  w.from = GPUAMGRowsOf(from->m.block[1]);
  w.to   = GPUAMGRowsOf(P->m.block[1]);
  if (bytes) { /* P has all ghost columns of `from` */
    PetscCall(PetscMalloc1(n, &table));
    for (int k = 0; k < n; k++) {
      PetscInt at;

      PetscCall(PetscFindInt(from->m.ghost[k], P->m.block[1]->n, P->m.ghost, &at));
      table[k] = (int32_t)at;
    }
    ierr = GPUCSRMalloc(dev, bytes, "columns of a prolongator", &there);
    if (!ierr) ierr = dev->ops->copy(dev->id, there, w.from.j, bytes, GPUCSR_ON_DEVICE, dev->stream);
    if (!ierr) ierr = GPUCSRRanksRenumber(dev, n, table, from->m.block[1]->nnz, (int32_t *)there);
    w.from.j = (int32_t *)there;
    PetscCall(PetscFree(table));
  }
  if (!ierr) ierr = (*GPUAMGOf(dev)->rows)(dev, GPUAMG_SMOOTH, (int)L->n, &w);
  if (there) PetscCall(GPUCSRFree(dev, bytes, &there));
  PetscFunctionReturn(ierr);
}

/* Collective: C = A B or B^T A B, or its new values */
static PetscErrorCode Product(MatProductType type, const GPUAMGRanksMatrix *A, const GPUAMGRanksMatrix *B, PetscLayout rows, RanksProduct **p, GPUAMGRanksMatrix *C)
{
  PetscBool ok;

  PetscFunctionBegin;
  if (!*p) {
    PetscCall(GPUCSRRanksProductCreate(type, A->o.dev, Agree, &C->m.comm, p));
    C->m = (GPUCSRRanksCSR){
      .comm = A->m.comm, .rmap = rows, .cmap = B->m.cmap, .block = {&C->own[0], &(*p)->E}
    };
    C->o.csr = &C->own[0];
    PetscCall(GPUCSRRanksProductSymbolic(*p, &A->m, &B->m, &C->own[0], &ok));
    C->m.ghost = (*p)->ghost;
  }
  PetscCall(GPUCSRRanksProductNumeric(*p, &A->m, &B->m, &C->own[0], &ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the steps P = (I - omega D^-1 F) P of the prolongator. F: the level's matrix, or without its small entries */
static PetscErrorCode Smoothed(const GPUAMGOptions *o, Level *L, const GPUAMGRanksMatrix *F)
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  for (int k = 1; k <= o->nsmooths; k++) {
    PetscCall(Product(MATPRODUCT_AB, F, &L->P[k - 1], L->rows, &L->smoothed[k], &L->P[k]));
    GPUCSRTry(&attempt, SmoothBlocks(o, L, &L->P[k - 1], &L->P[k]));
    PetscCall(PCGPUAMGSettle_Private(L->A.m.comm, &attempt));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: prolongator, Galerkin product and plans; again: new values. keep: the prolongator; or, if another PC makes the next level, the prolongator alone */
static PetscErrorCode Coarse(PC pc, Level *L, PetscBool again, PetscBool keep)
{
  const PC_GPUAMG     *a = (const PC_GPUAMG *)pc->data;
  const GPUAMGOptions *o = &a->used.o;
  GPUAMGRanksMatrix   *P = &L->P[o->nsmooths], *C = &L[1].A, F = {.exchanges = PETSC_FALSE};
  const PetscBool      filtered = (PetscBool)(!again && a->ranks->weak && o->nsmooths);
  GPUCSRAttempt        attempt;
  GPUAMGWork           w;
  PetscErrorCode       ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (filtered) PetscCall(PCGPUAMGFilter_Private(L, &F));
  F.o.dev = L->A.o.dev;
  if (!again || !keep) ierr = Smoothed(o, L, filtered ? &F : &L->A);
  PetscCall(PCGPUAMGRanksMatrixDestroy_Private(&F));
  PetscCall(ierr);
  if (a->ranks->beyond && !again) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Product(MATPRODUCT_PtAP, &L->A, P, L[1].rows, &L->galerkin, C));
  w = (GPUAMGWork){.to = GPUAMGRowsOf(C->m.block[0]), .dead = (unsigned char *)L[1].dead.p};
  GPUCSRTry(&attempt, L[1].ns > 1 ? (*GPUAMGOf(C->o.dev)->rows)(C->o.dev, GPUAMG_DEAD, (int)L[1].n, &w) : PETSC_SUCCESS);
  PetscCall(PCGPUAMGSettle_Private(C->m.comm, &attempt));
  if (again) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGPUAMGRanksPlan_Private(pc->pmat, 0, P));
  PetscCall(PCGPUAMGRanksPlan_Private(pc->pmat, L->galerkin->crows.longest, C));
  GPUCSRTry(&attempt, PCGPUAMGRanksTransposed_Private((GPUCSRStorage *const[]){&L->galerkin->T[0], &L->galerkin->T[1]}, P, &L->R));
  PetscCall(PCGPUAMGSettle_Private(C->m.comm, &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the set-up look for weak entries? */
static PetscBool Asks(const PC_GPUAMG *a)
{
  return (PetscBool)(a->used.o.drop == GPUAMG_ASK && a->ranks->level[0].bs == 1 && a->ranks->level[0].ns == 1);
}

/* The aggregates of this rank, with the tentative prolongator and the near null space of its columns */
static PetscErrorCode Aggregates(const GPUAMGOptions *o, Level *L)
{
  GPUCSRDevice   dev    = L->A.o.dev;
  Level         *C      = &L[1];
  GPUCSRBuffer   beyond = {NULL, 0};
  GPUAMG         h      = {.dev = dev};
  PetscErrorCode ierr   = PETSC_SUCCESS;

  PetscFunctionBegin;
  C->A.o.dev = dev; /* of its memory */
  if (L->n && o->drop == GPUAMG_ALWAYS) ierr = PCGPUAMGBeyond_Private(L, &beyond);
  if (L->n && !ierr) ierr = GPUAMGOneLevel(&h, o, L->A.m.block[0], (int)L->bs, (int)L->ns, (const double *)L->basis.p, (const double *)beyond.p);
  if (!ierr && h.level[1].n) {
    C->n             = h.level[1].n;
    C->basis         = h.level[1].basis;
    C->dead          = h.level[1].dead;
    L->P[0].own[0]   = h.level[0].P[0];
    h.level[1].basis = h.level[1].dead = (GPUCSRBuffer){NULL, 0};
    PetscCall(PetscMemzero(&h.level[0].P[0], sizeof(h.level[0].P[0])));
  }
  if (L->n) PetscCall(GPUAMGDestroy(&h));
  PetscCall(GPUCSRBufferFree(dev, &beyond));
  PetscCall(ierr);
  if (!L->P[0].own[0].dev) PetscCall(PCGPUAMGRanksEmpty_Private(dev, L->n, 0, &L->P[0].own[0]));
  PetscCall(PCGPUAMGRanksEmpty_Private(dev, L->n, 0, &L->P[0].own[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: do the diagonal blocks of all ranks have enough weak entries for dropping? */
static PetscErrorCode Weak(const Level *L, PetscBool *weak)
{
  int64_t       counts[2] = {0, L->A.m.block[0]->nnz};
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, L->n ? GPUAMGOneWeak(L->A.m.block[0], &counts[0]) : PETSC_SUCCESS);
  PetscCall(PCGPUAMGSettle_Private(L->A.m.comm, &attempt));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, counts, 2, MPI_INT64_T, MPI_SUM, L->A.m.comm));
  *weak = (PetscBool)GPUAMGEnoughWeak(counts[0], counts[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: makes levels until a small level, or until coarsening stops */
static PetscErrorCode Build(PC pc)
{
  PC_GPUAMG   *a    = (PC_GPUAMG *)pc->data;
  GPUAMGRanks *r    = a->ranks;
  PetscBool    more = PETSC_TRUE;

  PetscFunctionBegin;
  for (int l = 0; more && !r->beyond; l++) {
    const PetscBool last = (PetscBool)(l + 1 >= a->used.o.levels);
    Level          *L = &r->level[l], *C = &L[1];
    GPUAMGOptions   options = a->used.o;
    GPUCSRAttempt   attempt;

    r->levels = l + 1;
    r->small  = Gathers(pc, l, L->N);
    L->nnz    = L->A.m.block[0]->nnz + L->A.m.block[1]->nnz;
    if (r->small) break;
    PetscCall(Values(a, l));
    if (a->h.problem || (last && !a->part)) break;
    if (!l && Asks(a)) PetscCall(Weak(L, &r->weak));
    PCGPUAMGOptionsAt_Private(a, l, &options);
    options.drop = r->weak ? GPUAMG_ALWAYS : GPUAMG_NEVER;
    GPUCSRTry(&attempt, Aggregates(&options, L));
    PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
    /* the rows of the next level, and the tentative prolongator */
    C->bs = C->ns = L->ns;
    PetscCallMPI(MPI_Allreduce(&C->n, &C->N, 1, MPIU_INT, MPI_SUM, L->A.m.comm));
    more = (PetscBool)(C->N && (double)C->N < 0.9 * (double)L->N);
    if (more) {
      PetscCall(PetscLayoutCreateFromSizes(L->A.m.comm, C->n, C->N, 1, &C->rows));
      L->P[0].o = (GPUCSROperator){.dev = L->A.o.dev, .csr = &L->P[0].own[0]};
      L->P[0].m = (GPUCSRRanksCSR){
        .comm = L->A.m.comm, .rmap = L->rows, .cmap = C->rows, .block = {&L->P[0].own[0], &L->P[0].own[1]}
      };
    }
    r->beyond = (PetscBool)(more && a->part && (last || Gathers(pc, l + 1, C->N)));
    if (more) PetscCall(Coarse(pc, L, PETSC_FALSE, PETSC_FALSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: new values of the same pattern */
static PetscErrorCode Refresh(PC pc)
{
  PC_GPUAMG   *a = (PC_GPUAMG *)pc->data;
  GPUAMGRanks *r = a->ranks;

  PetscFunctionBegin;
  for (int l = 0; l < r->levels && !a->h.problem; l++) {
    const PetscBool last = (PetscBool)(l + 1 == r->levels);

    if (r->level[l].factor) PetscCall(GPUCSRFactorDestroy(&r->level[l].factor));
    if (!last || !r->small) PetscCall(Values(a, l));
    if (!a->h.problem && !last) PetscCall(Coarse(pc, &r->level[l], PETSC_TRUE, a->reuse));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what gpuamg.c calls ---- */

PetscErrorCode PCGPUAMGRanksDestroy_Private(GPUAMGRanks **ranks)
{
  GPUAMGRanks *r = *ranks;

  PetscFunctionBegin;
  if (!r) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCDestroy(&r->one));
  PetscCall(MatDestroy(&r->all));
  PetscCall(MatDestroy(&r->everything));
  for (int l = 0; l < GPUAMG_LEVELS; l++) {
    Level        *L     = &r->level[l];
    GPUCSRDevice  dev   = L->A.o.dev;
    GPUCSRBuffer *all[] = {&L->dinv, &L->smooth, &L->basis, &L->dead};

    for (size_t k = 0; dev && k < PETSC_STATIC_ARRAY_LENGTH(all); k++) PetscCall(GPUCSRBufferFree(dev, all[k]));
    for (int k = 0; k < 2; k++)
      if (L->tmap[k]) PetscCall(GPUCSRFree(dev, sizeof(int32_t) * (size_t)L->T.own[k].nnz, (void **)&L->tmap[k]));
    PetscCall(GPUCSRFactorDestroy(&L->factor));
    PetscCall(PCGPUAMGRanksMatrixDestroy_Private(&L->T));
    PetscCall(PCGPUAMGRanksMatrixDestroy_Private(&L->R));
    for (int k = 0; k <= GPUAMG_SMOOTHS; k++) {
      PetscCall(PCGPUAMGRanksMatrixDestroy_Private(&L->P[k]));
      if (L->smoothed[k]) PetscCall(GPUCSRRanksProductDestroy(&L->smoothed[k]));
    }
    PetscCall(PCGPUAMGRanksMatrixDestroy_Private(&L->A));
    if (L->galerkin) PetscCall(GPUCSRRanksProductDestroy(&L->galerkin));
    PetscCall(PetscLayoutDestroy(&L->rows));
  }
  PetscCall(PetscFree(*ranks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the first level */
static PetscErrorCode Begin(PC pc)
{
  PC_GPUAMG    *a = (PC_GPUAMG *)pc->data;
  Level        *L;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  PetscCall(PetscNew(&a->ranks));
  PetscCall(PetscObjectReference((PetscObject)pc->pmat));
  a->matrix.A = pc->pmat;
  L           = &a->ranks->level[0];
  PetscCall(PetscLayoutReference(pc->pmat->rmap, &L->rows));
  L->n = pc->pmat->rmap->n;
  L->N = pc->pmat->rmap->N;
  PetscCall(PCGPUAMGRanksFinest_Private(pc->pmat, PETSC_FALSE, &L->A));
  PetscCall(PetscObjectGetId((PetscObject)pc->pmat, &a->ranks->id));
  a->pattern = (PetscInt64)pc->pmat->nonzerostate;
  GPUCSRTry(&attempt, PCGPUAMGNear_Private(pc, L->A.o.dev, &L->bs, &L->ns, &L->basis));
  PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the finest level has the matrix as it is now; here: on the devices that the levels are on, otherwise and after an error nothing changes */
PetscErrorCode PCGPUAMGRanksRenew_Private(Mat A, GPUAMGRanks *r, PetscBool *here)
{
  GPUAMGRanksMatrix now;
  int               all;

  PetscFunctionBegin;
  PetscCall(PCGPUAMGRanksFinest_Private(A, PETSC_FALSE, &now));
  all = now.o.dev == r->level[0].A.o.dev;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, now.m.comm));
  if (all) r->level[0].A = now;
  *here = (PetscBool)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the levels alone, for another PC; a problem of theirs is in h.problem */
PetscErrorCode PCGPUAMGRanksLevels_Private(PC pc)
{
  PetscFunctionBegin;
  PetscCall(Begin(pc));
  PetscCall(Build(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: their new values with old prolongators. good: on the devices that the levels are on */
PetscErrorCode PCGPUAMGRanksRefresh_Private(PC pc, PetscBool *good)
{
  PetscFunctionBegin;
  PetscCall(PCGPUAMGRanksRenew_Private(pc->pmat, ((PC_GPUAMG *)pc->data)->ranks, good));
  if (*good) PetscCall(Refresh(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. same: options are unchanged, and aggregates do not depend on values */
PetscErrorCode PCGPUAMGRanksSetUp_Private(PC pc, PetscBool same)
{
  PC_GPUAMG    *a    = (PC_GPUAMG *)pc->data;
  PetscBool     weak = PETSC_FALSE;
  PetscObjectId id;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)pc->pmat, &id));
  same = (PetscBool)(same && a->taken && a->ranks && a->ranks->id == id && a->pattern == (PetscInt64)pc->pmat->nonzerostate && (a->reuse || !a->ranks->weak));
  if (same) PetscCall(PCGPUAMGRanksRenew_Private(pc->pmat, a->ranks, &same));
  if (same && a->ranks->levels > 1 && !a->reuse && Asks(a)) PetscCall(Weak(&a->ranks->level[0], &weak));
  same     = (PetscBool)(same && !weak);
  a->taken = a->takent = PETSC_FALSE;
  a->h.problem         = 0;
  if (same) {
    a->refreshed++;
    PetscCall(Refresh(pc));
  } else {
    PetscCall(PCGPUAMGForget_Private(a));
    a->built++;
    if (!pc->pmat->rmap->N) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(Begin(pc));
    PetscCall(Build(pc));
  }
  if (!a->h.problem && a->ranks->small) PetscCall(PCGPUAMGGather_Private(pc));
  if (!a->h.problem && !pc->failedreason) PetscCall(PCGPUAMGRanksCycles_Private(pc));
  a->taken = (PetscBool)(!a->h.problem && !pc->failedreason);
  PetscFunctionReturn(PETSC_SUCCESS);
}
