/*
  The hierarchy of a PCMG as a cycle on the device: which levels qualify, their matrices, their smoothers and the coarse solver. PETSc's objects define the computation; the cycle copies their
  numbers and keeps no reference.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "../../../wrap.h"
#include "cycle.h"
#include "../blocks/pcblocks.h"

/* The largest blocks in a step */
#define LARGEST_BLOCK 16

/* Why PETSc applies the hierarchy, level by level */
typedef struct {
  char       *text;
  size_t      len;
  MPI_Comm    comm;
  PetscMPIInt size;
} Why;

static PetscErrorCode Not(Why *w, const char what[], PetscInt level, const char have[], const char option[], const char prefix[])
{
  size_t used;

  PetscFunctionBegin;
  PetscCall(PetscStrlen(w->text, &used));
  PetscCall(PetscSNPrintf(w->text + used, w->len - used, "%slevel %" PetscInt_FMT " has %s %s", used ? ", " : "", level, what, have));
  PetscCall(PetscStrlen(w->text, &used));
  if (option) PetscCall(PetscSNPrintf(w->text + used, w->len - used, " (-%s%s would be)", prefix ? prefix : "", option));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: a reason on one rank, or the error of its work alone, is the reason on all. a: that work, or NULL */
static PetscErrorCode Settle(Why *w, const GPUCSRAttempt *a)
{
  int         mine;
  PetscMPIInt first;

  PetscFunctionBegin;
  if (a && a->error && !w->text[0]) PetscCall(PetscStrncpy(w->text, a->message, w->len));
  mine = w->text[0] ? 1 : 0;
  if (w->size > 1) PetscCall(GPUCSRAgree(w->comm, &mine, NULL, w->text, w->len, &first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: device memory */
static PetscErrorCode Reserve(Why *w, GPUCSRDevice dev, size_t bytes, const char what[], GPUCSRBuffer *m)
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTryIf(w->size > 1, &attempt, GPUCSRBufferGrow(dev, bytes, what, m));
  PetscCall(Settle(w, &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- numbers to the device ---- */

/* Copies a vector of PETSc to the device, from the host or from a device */
static PetscErrorCode Fetch(const GPUCSROperator *o, Vec v, double *to)
{
  GPUCSRDevice   dev = o->dev;
  GPUCSROperand  a;
  GPUCSRStream   s    = dev->stream;
  PetscErrorCode ierr = PETSC_SUCCESS;
  PetscInt       n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(MatGPUCSROperatorVecGet_Private(o, v, PETSC_TRUE, PETSC_FALSE, &a));
  if (a.place == GPUCSR_DEVICE) {
    ierr = MatGPUCSRStream_Private(dev, &a, NULL, NULL, &s);
    if (!ierr && s != dev->stream) ierr = dev->ops->streamsynchronize(dev->id, s);
    if (!ierr) ierr = dev->ops->copy(dev->id, to, a.p, sizeof(double) * (size_t)n, GPUCSR_ON_DEVICE, dev->stream);
    if (!ierr && s != dev->stream) ierr = dev->ops->streamsynchronize(dev->id, dev->stream);
  } else {
    ierr = GPUCSRUpload(dev, to, GPUCSR_DOUBLE, a.p, GPUCSR_DOUBLE, (size_t)n, a.pinned, dev->stream, NULL);
    if (dev->ops->separate) VecGPUCrossed(PETSC_TRUE, (size_t)n);
  }
  PetscCall(MatGPUCSROperatorVecRestore_Private(o, v, PETSC_TRUE, PETSC_FALSE, &a));
  PetscFunctionReturn(ierr);
}

/* Makes the solver set up its preconditioner from the start at its next application */
static PetscErrorCode Renew(KSP ksp)
{
  Mat A, P;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, &P));
  PetscCall(PetscObjectReference((PetscObject)A));
  PetscCall(PetscObjectReference((PetscObject)P));
  PetscCall(PCReset(ksp->pc)); /* drops its operators too */
  PetscCall(KSPSetOperators(ksp, A, P));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PCApply() of a solver's PC, to read its numbers. Renews a PC after a failed set-up: PETSc would apply the incomplete PC (Jacobi's diagonal, say, exists but is empty)
*/
PetscErrorCode GPUMGPCApply(void *solver, Vec x, Vec y)
{
  KSP            ksp = (KSP)solver;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = PCApply(ksp->pc, x, y);
  if (ierr) PetscCall(Renew(ksp));
  PetscFunctionReturn(ierr);
}

/* Columns of a PC's operator, from applications to vectors on the host. The matrix of the PC, or of a solver inside, is marked meanwhile */
PetscErrorCode GPUMGPCProbe(KSP ksp, PetscInt n, PetscInt first, PetscInt count, double rows[])
{
  KSP            inner;
  PC             pc = ksp->pc;
  PetscBool      redundant, set;
  Mat            P = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCREDUNDANT, &redundant));
  if (redundant && pc->setupcalled) {
    PetscCall(PCRedundantGetKSP(pc, &inner));
    PetscCall(KSPGetPC(inner, &pc));
  }
  PetscCall(PCGetOperatorsSet(pc, NULL, &set));
  if (set) {
    PetscCall(PCGetOperators(pc, NULL, &P));
    PetscCall(PetscObjectReference((PetscObject)P));
    PetscCall(MatGPUCSRFactorProbed_Private(P, PETSC_TRUE));
  }
  ierr = GPUCSRProbe(PetscObjectComm((PetscObject)ksp), GPUMGPCApply, ksp, n, first, count, NULL, rows);
  if (P) PetscCall(MatGPUCSRFactorProbed_Private(P, PETSC_FALSE));
  PetscCall(MatDestroy(&P));
  PetscFunctionReturn(ierr);
}

/* The diagonal of a PC's operator, by an application to ones */
PetscErrorCode GPUMGPCDiagonal(const GPUCSROperator *o, KSP ksp, double *to)
{
  Vec            unit, diagonal;
  PetscErrorCode ierr;
  PetscMPIInt    size;
  Mat            P;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  PetscCall(PCGetOperators(ksp->pc, NULL, &P));
  PetscCall(MatCreateVecs(size > 1 || !o->A ? P : o->A, &unit, &diagonal));
  ierr = VecSet(unit, 1.0);
  if (!ierr) ierr = GPUMGPCApply(ksp, unit, diagonal);
  if (!ierr) ierr = Fetch(o, diagonal, to);
  PetscCall(VecDestroy(&unit));
  PetscCall(VecDestroy(&diagonal));
  PetscFunctionReturn(ierr);
}

/* Columns 0 to count - 1 of a PC's operator, by rows. Unit vectors repeat with the period count, so one application gives a column of each diagonal block */
PetscErrorCode GPUMGPCColumns(GPUCSRDevice dev, KSP ksp, PetscInt n, PetscInt count, double *to)
{
  double        *rows;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)n * (size_t)count, &rows));
  ierr = GPUMGPCProbe(ksp, n, 0, count, rows);
  if (!ierr) ierr = GPUCSRUpload(dev, to, GPUCSR_DOUBLE, rows, GPUCSR_DOUBLE, (size_t)n * (size_t)count, PETSC_FALSE, dev->stream, NULL);
  PetscCall(PetscFree(rows));
  PetscFunctionReturn(ierr);
}

/* ---- what levels have ---- */

/*
  Converts a MATAIJ or MATMAIJ to gpucsr: DMDA's interpolations have PETSc's own types for operators of all types, and products with interpolations may have PETSc's types too. like: the finest operator
*/
static PetscErrorCode ToGPUCSR(const GPUMGMatrix *like, Mat *A, GPUMGCopy *copy)
{
  const PetscInt64 id = (PetscInt64)((PetscObject)*A)->id;
  PetscObjectState state;
  PetscBool        aij, ranks;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)*A, &aij, MATSEQAIJ, MATSEQMAIJ, ""));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)*A, &ranks, MATMPIAIJ, MATMPIMAIJ, ""));
  PetscCall(PetscObjectStateGet((PetscObject)*A, &state));
  if (!(aij || ranks) || !copy->A || copy->id != id || copy->state != (PetscInt64)state) PetscCall(MatDestroy(&copy->A));
  if (!(aij || ranks) || !like->o.dev) PetscFunctionReturn(PETSC_SUCCESS);
  if (!copy->A) PetscCall(MatGPUCSRLike_Private(ranks ? like->A : like->o.A, *A, &copy->A));
  copy->id    = id;
  copy->state = (PetscInt64)state;
  *A          = copy->A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do cycles support the exchange of several ranks? */
static PetscErrorCode Exchange(const GPUCSRRanks *r, char why[], size_t len)
{
  PetscBool peer;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(MatGPUCSRRanksExchange_Private(r), "peer", &peer));
  if (!peer) PetscCall(PetscSNPrintf(why, len, "exchange %s, which cycles do not support", MatGPUCSRRanksExchange_Private(r)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device data of a matrix of the cycle */
static PetscErrorCode Operator(Mat A, PetscBool transposed, const char what[], PetscInt level, GPUMGMatrix *m, Why *w)
{
  char            whynot[256] = "", alone[256] = "";
  GPUCSROperator *o = &m->o;
  PetscBool       isgpucsr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(m, sizeof(*m)));
  m->A          = A;
  m->transposed = transposed;
  PetscCall(MatGPUCSRLevelGet_Private(A, transposed, o, &m->r));
  if (o->dev) {
    m->data = o->plan->A.array[0].data;
    if (m->r.halo) PetscCall(Exchange(&m->r, alone, sizeof(alone)));
    if (alone[0]) PetscCall(Not(w, what, level, alone, NULL, NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRLevelBecome_Private(A)); /* it has no transpose on the device */
  PetscCall(PetscObjectTypeCompare((PetscObject)A, w->size > 1 ? MATMPIAIJGPUCSR : MATSEQAIJGPUCSR, &isgpucsr));
  if (!isgpucsr) PetscFunctionReturn(Not(w, what, level, ((PetscObject)A)->type_name, NULL, NULL));
  if (w->size > 1) { /* the whole matrix in r, and its diagonal block for the rest of this file */
    PetscCall(MatGPUCSRRanksGet_Private(A, transposed, &m->r, alone, sizeof(alone)));
    if (!alone[0]) PetscCall(Exchange(&m->r, alone, sizeof(alone)));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &A, NULL, NULL));
  }
  PetscCall(MatGPUCSROperatorGet_Private(A, transposed, o, whynot, sizeof(whynot)));
  if (!o->dev) PetscCall(Not(w, what, level, whynot, NULL, NULL));
  else if (alone[0]) PetscCall(Not(w, what, level, alone, NULL, NULL));
  else if (GPUCSRVectorType(o->plan->A.precision) != GPUCSR_DOUBLE) PetscCall(Not(w, what, level, "in single precision", NULL, NULL));
  else {
    m->data = o->plan->A.array[0].data;
    PetscCall(MatGPUCSROperatorBegin_Private(o));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has a matrix of an unchanged hierarchy moved on the device? */
static PetscErrorCode Moved(const GPUMGMatrix *m, PetscBool *moved)
{
  GPUCSROperator o;
  GPUCSRRanks    r;
  GPUCSRAttempt  attempt = {0};
  char           why[256];

  PetscFunctionBegin;
  if (m->o.A) PetscCall(MatGPUCSROperatorGet_Private(m->o.A, m->transposed, &o, why, sizeof(why)));
  else PetscCall(MatGPUCSRLevelGet_Private(m->A, m->transposed, &o, &r));
  *moved = (PetscBool)(o.dev != m->o.dev || !o.dev || memcmp(&o.version, &m->o.version, sizeof(o.version)) || o.plan->A.array[0].data != m->data);
  if (!*moved && m->r.halo && !m->o.A) {
    GPUCSRTry(&attempt, MatGPUCSRRanksCheck_Private(&r));
    *moved = (PetscBool)(r.halo != m->r.halo || attempt.error);
  } else if (!*moved && m->r.halo) PetscCall(MatGPUCSRRanksMoved_Private(m->A, &m->r, m->transposed, moved));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGLevelsMoved(const GPUMGCycle *c, PetscBool *moved)
{
  PetscFunctionBegin;
  *moved = PETSC_FALSE;
  for (int l = 0; l < c->levels; l++) {
    const GPUMGMatrix *all[] = {&c->level[l].A, &c->level[l].P, &c->level[l].R};

    for (int k = 0; k < (l ? 3 : 1) && !*moved; k++) PetscCall(Moved(all[k], moved));
  }
  if (!*moved && c->gather.r.halo) PetscCall(Moved(&c->gather, moved));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ksp: set up. Reads its steps, if the device can run them */
static PetscErrorCode Smoother(KSP ksp, Mat residual, const GPUCSROperator *o, PetscInt level, GPUMGSmoother *m, Why *w)
{
  const char   *prefix = ((PetscObject)ksp)->prefix;
  PetscBool     method, known, plain = PETSC_FALSE, none, diagonal, blocks, good;
  PetscInt      bs = 1, n;
  Mat           A, P;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &method, KSPCHEBYSHEV, KSPRICHARDSON, ""));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp->pc, &known, PCNONE, PCJACOBI, PCPBJACOBI, PCILU, PCICC, PCBJACOBI, ""));
  if (!method) PetscCall(Not(w, "smoother", level, ((PetscObject)ksp)->type_name, "ksp_type chebyshev", prefix));
  if (!known) PetscCall(Not(w, "preconditioner", level, ((PetscObject)ksp->pc)->type_name, "pc_type jacobi", prefix));
  if (!method || !known) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUMGPlain(ksp, &plain));
  PetscCall(PCGetOperators(ksp->pc, &A, &P));
  if (plain && A == residual) PetscCall(GPUMGPolynomial(ksp, m, &good));
  else good = PETSC_FALSE;
  if (!good) PetscFunctionReturn(Not(w, "a smoother", level, "that takes norms, is monitored, has a null space or finds its own steps", NULL, NULL));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCNONE, &none));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &diagonal));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCPBJACOBI, &blocks));
  PetscCall(MatGetLocalSize(P, &n, NULL));
  if (!none && !diagonal && !blocks) { /* the factor of a smoother's PC, if it is on the device of the level */
    Mat          F;
    GPUCSRDevice on = NULL;

    m->bs      = 0;
    m->factors = PETSC_TRUE;
    PetscCall(PCFactorOf_Private(ksp->pc, &F));
    if (F) PetscCall(MatGPUCSRFactorDevice_Private(F, &on));
    if (n && on == o->dev) PetscCall(MatGPUCSRFactorFind_Private(F, &m->factor));
    else if (n) PetscCall(Not(w, "a factor", level, "that is not on the device of its matrix, or has failed", NULL, NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (blocks) PetscCall(MatGetBlockSize(P, &bs));
  if (bs > LARGEST_BLOCK) PetscFunctionReturn(Not(w, "preconditioner", level, "pbjacobi of blocks that are too large", NULL, NULL));
  m->bs = none ? 0 : (int)bs;
  if (none) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Reserve(w, o->dev, sizeof(double) * (size_t)n * (size_t)bs, "the preconditioner of a smoother", &m->M));
  if (w->size > 1 && w->text[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (bs > 1) GPUCSRTryIf(w->size > 1, &attempt, GPUMGPCColumns(o->dev, ksp, n, bs, (double *)m->M.p));
  else GPUCSRTryIf(w->size > 1, &attempt, GPUMGPCDiagonal(o, ksp, (double *)m->M.p));
  PetscCall(Settle(w, &attempt));
  if (w->size > 1 && w->text[0]) PetscCall(Renew(ksp)); /* on all ranks, or tags of PETSc's later messages differ */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the solver only apply its preconditioner? */
static PetscErrorCode OnlyAppliesPC(KSP ksp, PetscBool *only)
{
  PetscBool plain;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPPREONLY, only));
  if (!*only) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUMGPlain(ksp, &plain));
  *only = (PetscBool)(plain && ksp->guess_zero);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the PC linear? A PC with a solver inside may not be */
static PetscErrorCode Linear(PC pc, PetscBool *linear)
{
  KSP      *sub, one;
  PetscInt  count;
  PetscBool blocks, redundant;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)pc, linear, PCLU, PCCHOLESKY, PCILU, PCICC, PCSVD, PCNONE, PCJACOBI, PCPBJACOBI, PCSOR, ""));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCBJACOBI, &blocks));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCREDUNDANT, &redundant));
  if (!blocks && !redundant) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUMGInside(pc, &count, &sub, &one));
  *linear = PETSC_TRUE;
  for (PetscInt k = 0; k < count && *linear; k++) {
    PetscCall(OnlyAppliesPC(sub[k], linear));
    if (*linear) PetscCall(Linear(sub[k]->pc, linear));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the inverse of a coarse operator of several ranks, complete on each; A is the operator, n its rows */
static PetscErrorCode CoarseAllgather(GPUMGCycle *c, KSP ksp, Mat A, int n, Why *w)
{
  const size_t  count = (size_t)n * (size_t)n;
  const int     rows  = c->level[0].n;
  PetscInt      first;
  double       *own, *all;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  PetscCall(Reserve(w, c->dev, sizeof(double) * count, "the inverse of a coarse operator", &c->inverse));
  if (w->text[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetOwnershipRange(A, &first, NULL));
  PetscCall(PetscMalloc2((size_t)rows * (size_t)n, &own, count, &all));
  GPUCSRTry(&attempt, GPUMGPCProbe(ksp, rows, first, n, own));
  PetscCall(GPUMGRanksAllgather(w->comm, rows * n, MPI_DOUBLE, own, all)); /* also after an error on this rank, because all ranks make this call */
  PetscCall(Settle(w, &attempt));
  if (w->text[0]) PetscCall(Renew(ksp));
  else {
    GPUCSRTry(&attempt, GPUCSRUpload(c->dev, c->inverse.p, GPUCSR_DOUBLE, all, GPUCSR_DOUBLE, count, PETSC_FALSE, c->dev->stream, NULL));
    PetscCall(Settle(w, &attempt));
  }
  PetscCall(PetscFree2(own, all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CoarseSolver(GPUMGCycle *c, KSP ksp, Why *w)
{
  GPUMGLevel *L = &c->level[0];
  Mat         A;
  PetscBool   only, linear, method;
  char        have[160];
  PetscInt    n;

  PetscFunctionBegin;
  PetscCall(OnlyAppliesPC(ksp, &only));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &method, KSPCHEBYSHEV, KSPRICHARDSON, ""));
  c->exact = only;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  if (method) PetscFunctionReturn(Smoother(ksp, A, &L->A.o, 0, &L->down, w));
  if (w->size > 1 && w->text[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Linear(ksp->pc, &linear));
  if (!only || !linear) {
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPPREONLY, &only));
    PetscCall(PetscSNPrintf(have, sizeof(have), "%s with %s%s", ((PetscObject)ksp)->type_name, ((PetscObject)ksp->pc)->type_name, only ? " that is monitored, fails, has a null space or other solvers" : ""));
    PetscCall(Not(w, "coarse solver", 0, have, only ? NULL : "ksp_type preonly", ((PetscObject)ksp)->prefix));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetSize(A, &n, NULL));
  if (n > GPUCSRMachineShared.inverse_rows) {
    PetscCall(PetscSNPrintf(have, sizeof(have), "of %" PetscInt_FMT " rows, more than %g", n, GPUCSRMachineShared.inverse_rows));
    PetscCall(Not(w, "an operator", 0, have, NULL, NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (w->text[0]) PetscFunctionReturn(PETSC_SUCCESS); /* for nothing */
  if (w->size > 1) PetscCall(CoarseAllgather(c, ksp, A, (int)n, w));
  else {
    PetscCall(GPUCSRBufferGrow(c->dev, sizeof(double) * (size_t)L->n * (size_t)L->n, "the inverse of a coarse operator", &c->inverse));
    PetscCall(GPUMGPCColumns(c->dev, ksp, L->n, L->n, (double *)c->inverse.p));
  }
  /* a direct solver may have refused a column of the inverse. PETSc's cycle then tells of a failure. The column was a solve, whose failure ends with the solver's next one */
  if (!w->text[0]) {
    GPUCSRWrap    *wrap;
    PCFailedReason why;

    PetscCall(PCGetFailedReason(ksp->pc, &why));
    if (why) {
      PetscCall(GPUCSRWrapGet((PetscObject)ksp, &wrap));
      if (wrap) wrap->failed = PETSC_TRUE;
      PetscCall(Not(w, "a coarse solver", 0, "that has refused a solution", NULL, NULL));
    }
    PetscCall(Settle(w, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Transfers between level l and the level below. Like MatInterpolate() and MatRestrict(), the function chooses between a matrix and its transpose by the number of rows */
static PetscErrorCode Transfers(PC_MG_Levels *p, PetscInt l, GPUMGLevel *L, Why *w)
{
  Mat      P = p->interpolate, R = p->restrct;
  PetscInt rows[2], fine, coarse;

  PetscFunctionBegin;
  PetscCall(MatGetSize(P, &rows[0], NULL)); /* global sizes: a rank may have no rows of either level */
  PetscCall(MatGetSize(R, &rows[1], NULL));
  PetscCall(MatGetSize(L[0].A.A, &fine, NULL));
  PetscCall(MatGetSize(L[-1].A.A, &coarse, NULL));
  PetscCall(ToGPUCSR(&L->A, &P, &L->copy[1]));
  if (p->restrct == p->interpolate) R = P;
  else PetscCall(ToGPUCSR(&L->A, &R, &L->copy[2]));
  PetscCall(Operator(P, (PetscBool)(rows[0] != fine), "an interpolation", l, &L->P, w));
  PetscCall(Operator(R, (PetscBool)(rows[1] != coarse), "a restriction", l, &L->R, w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Preconditioners other than Jacobi need entries on the host */
static PetscErrorCode Unkept(KSP ksp)
{
  PetscBool jacobi, set;
  Mat       A, P;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp->pc, &jacobi, PCJACOBI, PCNONE, ""));
  PetscCall(PCGetOperatorsSet(ksp->pc, NULL, &set));
  if (jacobi || !set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, &A, &P));
  PetscCall(MatGPUCSRLevelBecome_Private(A));
  PetscCall(MatGPUCSRLevelBecome_Private(P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A level's matrix and smoothers; set up again if its matrices have changed, as in KSPSolve() */
static PetscErrorCode Level(PC_MG_Levels **p, PetscInt l, GPUMGCycle *c, Why *w)
{
  GPUMGLevel *L  = &c->level[l];
  KSP         up = p[l]->smoothu, down = p[l]->smoothd;
  PetscBool   other;
  PetscInt    n;
  Mat         A, B;

  PetscFunctionBegin;
  PetscCall(Unkept(down));
  PetscCall(Unkept(up));
  PetscCall(KSPSetUp(down));
  if (l && up != down) PetscCall(KSPSetUp(up));
  L->down.factor = L->up.factor = NULL; /* of an earlier hierarchy */
  L->down.factors = L->up.factors = PETSC_FALSE;
  PetscCall(PCGetOperators(down->pc, &A, NULL));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  L->n = (int)n; /* no device holds a matrix with more rows */
  B    = A;
  PetscCall(ToGPUCSR(&c->level[c->levels - 1].A, &B, &L->copy[0]));
  PetscCall(Operator(B, PETSC_FALSE, "a matrix", l, &L->A, w));
  L->cycles = (int)p[l]->cycles;
  L->two    = (PetscBool)(l && up != down);
  other     = (PetscBool)(L->A.o.dev && c->dev && c->dev != L->A.o.dev);
  if (other) PetscCall(Not(w, "a matrix", l, "on another device", NULL, NULL));
  else if (L->A.o.dev) c->dev = L->A.o.dev;
  PetscCall(Settle(w, NULL));
  if (!L->A.o.dev || other || (w->size > 1 && w->text[0])) PetscFunctionReturn(PETSC_SUCCESS);
  if (!l) PetscFunctionReturn(PETSC_SUCCESS);
  if (p[l]->residual != PCMGResidualDefault || (p[l]->A && p[l]->A != A) || p[l]->cr) PetscCall(Not(w, "a residual", l, "or relaxation of the program's", NULL, NULL));
  PetscCall(Smoother(down, A, &L->A.o, l, &L->down, w));
  if (L->two) PetscCall(Smoother(up, A, &L->A.o, l, &L->up, w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads the hierarchy of a PC after its set-up. ok: the hierarchy is completely on one device; otherwise why gives the reason. Sets c->dev if the finest matrix is on a device */
PetscErrorCode GPUMGLevelsTake(PC pc, GPUMGCycle *c, PetscBool *ok, char why[], size_t len)
{
  PC_MG         *mg = (PC_MG *)pc->data;
  PC_MG_Levels **p  = mg->levels;
  Why            w  = {why, len, PetscObjectComm((PetscObject)pc), 1};
  GPUMGOptions   o;

  PetscFunctionBegin;
  why[0] = 0;
  *ok    = PETSC_FALSE;
  PetscCallMPI(MPI_Comm_size(w.comm, &w.size));
  c->comm = w.comm;
  c->size = w.size;
  if (!GPUCSR_SCALAR_IS_DOUBLE) PetscFunctionReturn(PetscStrncpy(why, "numbers are not real double", len));
  PetscCall(GPUMGAsked(pc, &o));
  if (!o.wanted) PetscFunctionReturn(PetscStrncpy(why, o.asked ? "-pc_mg_gpucsr false was asked for" : "there are several processes, and -pc_mg_gpucsr was not asked for", len));
  if (!p || mg->nlevels < 2 || mg->nlevels > GPUMG_LEVELS) PetscFunctionReturn(PetscStrncpy(why, "there is one level, or there are very many", len));
  c->levels = (int)mg->nlevels;
  c->type   = mg->am;
  c->cycles = (int)mg->cyclesperpcapply;
  PetscCall(MatDestroy(&c->gathermatrix));
  PetscCall(PetscMemzero(&c->gather, sizeof(c->gather)));
  PetscCall(PetscMemzero(&c->level[c->levels - 1].A, sizeof(c->level[0].A))); /* the model for copies */
  for (PetscInt l = c->levels - 1; l >= 0; l--) {
    PetscCall(Level(p, l, c, &w));
    if (!c->dev || (w.size > 1 && why[0])) PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt l = 1; l < c->levels; l++) PetscCall(Transfers(p[l], l, &c->level[l], &w));
  PetscCall(Settle(&w, NULL));
  if (c->level[0].A.o.dev) PetscCall(CoarseSolver(c, p[0]->smoothd, &w));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  for (int l = 0; l < c->levels; l++) {
    PetscCall(Reserve(&w, c->dev, GPUMGCycleVectorBytes(c, l), "vectors of a multigrid level", &c->level[l].memory));
    GPUMGCycleVectors(c, l);
  }
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (w.size == 1) PetscCall(GPUMGTailMake(c, (int)o.tail));
  else if (c->exact) {
    Mat      A = c->level[0].A.A;
    PetscInt n, first;

    /* cycles of several ranks end in a dense matrix, which multiplies the gathered right-hand side. The level's x is then a part of the gathered solution */
    PetscCall(MatGetSize(A, &n, NULL));
    PetscCall(MatGetOwnershipRange(A, &first, NULL));
    PetscCall(Reserve(&w, c->dev, 2 * sizeof(double) * (size_t)n, "vectors of a coarse operator", &c->coarsevectors));
    if (!w.text[0]) {
      PetscCall(MatGPUCSRRanksEverything_Private(A, A->rmap, &c->gathermatrix));
      PetscCall(Operator(c->gathermatrix, PETSC_FALSE, "all of a right-hand side", 0, &c->gather, &w));
      PetscCall(Settle(&w, NULL));
      c->coarserows  = (int)n;
      c->coarsefirst = (int)first;
      c->level[0].x  = (double *)c->coarsevectors.p + n + first;
    }
  }
  *ok = (PetscBool)!why[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}
