/*
  Products of MATMPIAIJGPUCSR: the halo of x (halo.h) travels while the diagonal block is multiplied. A rank that fails never makes another rank wait.
*/
#include "../type/mpigpucsr.h"

static PetscErrorCode PatternGet(Mat A, Pattern *p)
{
  Mat b[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  p->state = A->nonzerostate;
  for (int k = 0; k < 2; k++) PetscCall(PetscObjectGetId((PetscObject)b[k], &p->block[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool PatternIs(const Pattern *p, const Pattern *q)
{
  return (PetscBool)(p->state == q->state && p->block[0] == q->block[0] && p->block[1] == q->block[1]);
}

/* One product on this rank: the data of all its steps */
typedef struct {
  Mat            A, Ad, Ao;
  GPUCSRHalo     h;
  Vec            lvec;
  GPUCSRDevice   dev;   /* NULL: the parent's products of the blocks */
  PetscBool      quiet; /* errors of the device lead to the host's products */
  PetscBool      wrote; /* z may hold part of the result */
  PetscBool      adds;  /* the exchange multiplies by the off-diagonal block */
  GPUCSRVectors  v;
  GPUCSROperand  partial;
  PetscErrorCode error; /* of this rank, which still takes part in the exchange */
} Step;

/*
  Device work of a step, with the arrays of x, y and z. If it fails and backend is auto, this rank goes on with the host's products: communication is
  the same either way, so neighbours do not notice.
*/
static PetscErrorCode Try(Step *t, PetscErrorCode (*work)(Step *))
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  if (!t->dev) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTryIf(t->quiet, &attempt, (*work)(t));
  if (attempt.error) {
    /* the host's product needs x and y intact: memory is allocated before anything is written, and a device without memory still returns vectors */
    PetscCheck(attempt.error == PETSC_ERR_MEM || (t->v.ox.place == GPUCSR_HOST && t->v.oz.place == GPUCSR_HOST), PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    PetscCheck(!t->wrote || !t->v.y || t->v.y != t->v.z, PETSC_COMM_SELF, attempt.error, "The device failed while the sum was on its way back into the vector that held a summand: %s", attempt.message);
    PetscCall(MatGPUCSRFailed_Private(t->Ad, t->Ao, &attempt));
    PetscCall(MatGPUCSRWarn_Private(t->Ad, 0, 0, 0));
    t->dev = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRHaloForget_Private(Mat A)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall(VecDestroy(&g->lvec));
  PetscCall(GPUCSRHaloDestroy(&g->halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the halo's graph for A's pattern */
PetscErrorCode MatGPUCSRHaloGraph_Private(Mat A)
{
  Mat_MPIGPUCSR  *g    = (Mat_MPIGPUCSR *)A->spptr;
  const MPI_Comm  comm = PetscObjectComm((PetscObject)A);
  const PetscInt *garray;
  PetscMPIInt     size;
  Pattern         now;
  Mat             b[2];
  double         *share, sum;
  MatInfo         info[2];

  PetscFunctionBegin;
  PetscCall(PatternGet(A, &now));
  if (g->halo && PatternIs(&g->exchanged, &now)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], &garray));
  PetscCall(MatGPUCSRHaloForget_Private(A));
  PetscCall(GPUCSRHaloCreate(comm, A->cmap, b[1]->cmap->n, garray, &g->halo));
  /* the share of each rank in the entries of a new pattern, for the report */
  share = ((Mat_SeqGPUCSR *)b[0]->spptr)->share;
  PetscCall(MatGetInfo(b[0], MAT_LOCAL, &info[0]));
  PetscCall(MatGetInfo(b[1], MAT_LOCAL, &info[1]));
  share[0] = (double)(info[0].nz_used + info[1].nz_used);
  PetscCallMPI(MPI_Allreduce(&share[0], &sum, 1, MPI_DOUBLE, MPI_SUM, comm));
  PetscCallMPI(MPI_Allreduce(&share[0], &share[2], 1, MPI_DOUBLE, MPI_MAX, comm));
  share[1]     = sum / (double)size;
  g->exchanged = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The place of the halo: a device with memory of its own, else the host (NULL) */
static GPUCSRDevice SeparateDevice(Mat Ad)
{
  GPUCSRDevice dev = ((Mat_SeqGPUCSR *)Ad->spptr)->dev;

  return dev && dev->ops->separate ? dev : NULL;
}

/* Memory of the halo on this rank, on the device of the blocks; if that has too little, both blocks leave the device */
static PetscErrorCode HaloReady(Mat A, Mat Ad, Mat Ao, PetscBool *ready)
{
  Mat_MPIGPUCSR *g   = (Mat_MPIGPUCSR *)A->spptr;
  GPUCSRDevice   dev = *ready ? SeparateDevice(Ad) : NULL;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  if (g->lvec && g->halo->data) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecDestroy(&g->lvec));
  GPUCSRTry(&attempt, GPUCSRHaloSetUp(g->halo, dev));
  if (attempt.error && dev) {
    PetscCheck(MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    PetscCall(MatGPUCSRFailed_Private(Ad, Ao, &attempt));
    *ready = PETSC_FALSE;
    PetscCall(GPUCSRHaloSetUp(g->halo, NULL));
  } else PetscCheck(!attempt.error, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, g->halo->nrecv, g->halo->host, &g->lvec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The blocks and the halo, collectively: a warning or error of several ranks is printed once, and no rank waits for a failed one. Ranks agree at the first product of
  each side with a new pattern or new values, to which all come: PETSc counts changes of a parallel matrix on all ranks. The halo is made then, too. After
  a later event on one rank (its device fails, a program changes one block) only the rank itself reports it.
*/
PetscErrorCode MatGPUCSRReadyAllreduce_Private(Mat A, GPUCSRSide side, PetscBool *ready, PetscBool *alone)
{
  Mat_MPIGPUCSR   *g    = (Mat_MPIGPUCSR *)A->spptr;
  const MPI_Comm   comm = PetscObjectComm((PetscObject)A);
  Mat              b[2], speaker;
  PetscMPIInt      rank, size, have[2], all[2], first, stale;
  PetscBool        mine;
  GPUCSRDevice     dev;
  GPUCSRHalo       h;
  GPUCSRAttempt    attempt;
  Pattern          now;
  PetscObjectState state;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  PetscCall(PatternGet(A, &now));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  *alone = (PetscBool)(g->halo && g->halo->data && PatternIs(&g->agreed[side], &now) && g->values[side] == state); /* no data: the devices have gone since */
  if (*alone) {
    PetscCall(MatGPUCSRBlocksReady_Private(b[0], b[1], side, PETSC_TRUE, ready));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(MatGPUCSRHaloGraph_Private(A));
  GPUCSRTry(&attempt, MatGPUCSRBlocksReady_Private(b[0], b[1], side, PETSC_FALSE, ready));
  /* chooses the exchange if a rank needs a new exchange. A rank with an error counts as a rank on the host. When products return to the host the exchange stays, unless it connects devices and a device has failed */
  h    = g->halo;
  dev  = !attempt.error && *ready ? SeparateDevice(b[0]) : NULL;
  mine = (PetscBool)(!h->data || (dev && h->dev != dev) || (h->exchange->connect && h->dev && h->dev->failed[0]));
  if (!mine) PetscCall(GPUCSRHaloBroken(h, &mine));
  stale = mine;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &stale, 1, MPI_INT, MPI_MAX, comm));
  if (stale) {
    PetscCall(VecDestroy(&g->lvec));
    PetscCall(GPUCSRHaloChoose(h, dev, g->base.config.halo));
  }
  GPUCSRThen(&attempt, HaloReady(A, b[0], b[1], ready));
  speaker = b[((Mat_SeqGPUCSR *)b[0]->spptr)->warning[0] ? 0 : 1];
  have[0] = attempt.error ? 1 : 0;
  have[1] = ((Mat_SeqGPUCSR *)speaker->spptr)->warning[0] ? 1 : 0;
  PetscCallMPI(MPI_Allreduce(have, all, 2, MPI_INT, MPI_SUM, comm));
  if (all[0] || all[1]) {
    PetscCall(GPUCSRAgree(comm, &have[0], &attempt.error, attempt.message, sizeof(attempt.message), &first));
    PetscCheck(!all[0] || size == 1, comm, attempt.error, "%s (met by rank %d, on %d of %d ranks in all)", attempt.message, (int)first, (int)all[0], (int)size);
    PetscCheck(!all[0], comm, attempt.error, "%s", attempt.message);
    PetscCall(GPUCSRAgree(comm, &have[1], NULL, NULL, 0, &first));
    if (rank == first) PetscCall(MatGPUCSRWarn_Private(speaker, rank, all[1], size));
    for (int k = 0; k < 2; k++) ((Mat_SeqGPUCSR *)b[k]->spptr)->warning[0] = 0;
  }
  g->agreed[side] = now;
  g->values[side] = state;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes the arrays of x, y and z, where the blocks are */
static PetscErrorCode Take(Step *t)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRVectorsGet_Private(t->dev, &t->v));
  if (t->v.ox.place == GPUCSR_DEVICE || t->v.oz.place == GPUCSR_DEVICE) PetscCheck(t->h->dev, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Device vectors meet a halo of the host");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Give(Step *t)
{
  return MatGPUCSRVectorsRestore_Private(((Mat_SeqGPUCSR *)t->Ad->spptr)->dev, &t->v);
}

static PetscErrorCode Pack(Step *t)
{
  return (*t->h->exchange->forwardbegin)(t->h, &t->v.ox, t->v.stream);
}

/* Launches partial = Ad x + y, which stays on the device in the type of the plan's vectors; or z = Ad x + y if the halo's part can be added to z */
static PetscErrorCode DiagonalProduct(Step *t)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)t->Ad->spptr;
  PetscBool      wrote;

  PetscFunctionBegin;
  if (t->h->exchange->addready && t->v.oz.place == t->h->halo.place) PetscCall((*t->h->exchange->addready)(t->h, t->Ao, &t->adds));
  if (t->adds) {
    PetscCall(MatGPUCSRApply_Private(t->Ad, GPUCSR_FORWARD, &t->v.ox, t->v.y ? &t->v.oy : NULL, &t->v.oz, t->v.stream, &t->wrote));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  t->partial = (GPUCSROperand){.place = GPUCSR_NATIVE};
  PetscCall(MatGPUCSRBuffer_Private(g->dev, &g->z, (size_t)t->Ad->rmap->n * GPUCSRTypeSize(GPUCSRVectorType(g->precision)), &t->partial.p));
  PetscCall(MatGPUCSRApply_Private(t->Ad, GPUCSR_FORWARD, &t->v.ox, t->v.y ? &t->v.oy : NULL, &t->partial, t->v.stream, &wrote));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z += Ao halo */
static PetscErrorCode OffDiagonalAdd(Step *t)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)t->Ao->spptr;

  PetscFunctionBegin;
  PetscCall((*t->h->exchange->forwardadd)(t->h, &t->v.oz, t->v.stream));
  g->info.products++;
  PetscCall(PetscLogFlops(2.0 * (double)g->plan[GPUCSR_FORWARD].A.nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = Ao halo + partial */
static PetscErrorCode OffDiagonalProduct(Step *t)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRApply_Private(t->Ao, GPUCSR_FORWARD, &t->h->halo, &t->partial, &t->v.oz, t->v.stream, &t->wrote));
  /* host arrays are complete; the halo's upload must end before its buffer is written again */
  if (t->v.oz.place == GPUCSR_DEVICE && t->h->halo.place == GPUCSR_HOST) PetscCall(t->dev->ops->streamsynchronize(t->dev->id, t->v.stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x or z as an array of the host, for the exchange */
static PetscErrorCode ExchangeOnHost(Step *t, PetscBool reverse)
{
  const Vec     v = reverse ? t->v.z : t->v.x;
  GPUCSROperand o;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRVecGet_Private(NULL, v, PETSC_TRUE, reverse, &o));
  PetscCall((reverse ? t->h->exchange->reverseadd : t->h->exchange->forwardbegin)(t->h, &o, NULL));
  PetscCall(MatGPUCSRVecRestore_Private(NULL, v, PETSC_TRUE, reverse, &o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* halo = Ao^T x, complete for the exchange */
static PetscErrorCode OffDiagonalTranspose(Step *t)
{
  PetscBool wrote;

  return MatGPUCSRApply_Private(t->Ao, GPUCSR_TRANSPOSE, &t->v.ox, NULL, &t->h->halo, t->v.stream, &wrote);
}

/* z = Ad^T x + y */
static PetscErrorCode DiagonalTranspose(Step *t)
{
  return MatGPUCSRApply_Private(t->Ad, GPUCSR_TRANSPOSE, &t->v.ox, t->v.y ? &t->v.oy : NULL, &t->v.oz, t->v.stream, &t->wrote);
}

static PetscErrorCode Add(Step *t)
{
  return (*t->h->exchange->reverseadd)(t->h, &t->v.oz, t->v.stream);
}

/* z = A x + y, or z = A^T x + y, where the halo's sums travel while the diagonal block is multiplied. y may be NULL, may be z */
PetscErrorCode MatProduct_MPIAIJGPUCSR(Mat A, GPUCSRSide side, Vec x, Vec y, Vec z)
{
  Mat_MPIGPUCSR        *g = (Mat_MPIGPUCSR *)A->spptr;
  const GPUCSRExchange *way;
  GPUCSRDevice          dev;
  PetscErrorCode        ierr;
  PetscBool             ready = PETSC_FALSE, alone = PETSC_FALSE; /* alone: the other ranks do not know of an error */
  Step                  t = {
                     .A = A, .v = {.x = x, .y = y, .z = z, .ox.place = GPUCSR_HOST, .oz.place = GPUCSR_HOST},
                          .quiet = (PetscBool)(MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA)
  };

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &t.Ad, &t.Ao, NULL));
  t.error = MatGPUCSRReadyAllreduce_Private(A, side, &ready, &alone);
  if (!alone) PetscCall(t.error); /* an error on all ranks */
  t.h    = g->halo;
  t.lvec = g->lvec;
  way    = t.h->exchange;
  if (!t.error && way->check) t.error = (*way->check)(t.h);
  if (!t.error && ready) t.dev = ((Mat_SeqGPUCSR *)t.Ad->spptr)->dev;
  dev = t.dev;
  PetscCall(GPUCSRLogBegin(&MAT_GPUCSR_Halo, dev, A));
  GPUCSRKeep(&t.error, Try(&t, Take));
  if (side == GPUCSR_FORWARD) {
    GPUCSRKeep(&t.error, Try(&t, Pack));
    if (!t.dev) GPUCSRKeep(&t.error, Give(&t));
    if (!t.dev) GPUCSRKeep(&t.error, ExchangeOnHost(&t, PETSC_FALSE));
    if (t.error) PetscCall((*way->forwardbegin)(t.h, NULL, NULL));
    GPUCSRKeep(&t.error, Try(&t, DiagonalProduct));
    if (t.adds) GPUCSRKeep(&t.error, Try(&t, OffDiagonalAdd));
    ierr = (*way->forwardend)(t.h, (PetscBool)!t.dev, t.v.stream); /* after an error, too: neighbours go on */
    GPUCSRKeep(&t.error, ierr);
    if (!t.adds) GPUCSRKeep(&t.error, Try(&t, OffDiagonalProduct));
  } else {
    GPUCSRKeep(&t.error, Try(&t, OffDiagonalTranspose));
    if (!t.dev) GPUCSRKeep(&t.error, Give(&t));
    if (!t.dev) GPUCSRKeep(&t.error, MatGPUCSRParentProduct_Private(t.Ao, GPUCSR_TRANSPOSE, x, NULL, t.lvec));
    ierr = (*way->reversebegin)(t.h, (PetscBool)!t.error, (PetscBool)!t.dev, t.v.stream);
    GPUCSRKeep(&t.error, ierr);
    GPUCSRKeep(&t.error, Try(&t, DiagonalTranspose));
    if (!t.dev) GPUCSRKeep(&t.error, Give(&t));
    if (!t.dev) GPUCSRKeep(&t.error, MatGPUCSRParentProduct_Private(t.Ad, GPUCSR_TRANSPOSE, x, y, z));
    t.quiet = PETSC_FALSE; /* z holds part of the result */
    if (t.dev) GPUCSRKeep(&t.error, Try(&t, Add));
    else GPUCSRKeep(&t.error, ExchangeOnHost(&t, PETSC_TRUE));
    if (t.error) (void)(*way->reverseadd)(t.h, NULL, t.v.stream);
  }
  PetscCall(GPUCSRLogEnd(&MAT_GPUCSR_Halo, dev, A));
  PetscCall(Give(&t));
  PetscCall(t.error);
  if (!t.dev && side == GPUCSR_FORWARD) {
    PetscCall(MatGPUCSRParentProduct_Private(t.Ad, GPUCSR_FORWARD, x, y, z));
    PetscCall(PetscObjectStateIncrease((PetscObject)t.lvec));
    PetscCall(MatGPUCSRParentProduct_Private(t.Ao, GPUCSR_FORWARD, t.lvec, z, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
