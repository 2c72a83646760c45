/*
  A matrix of several ranks as a solver sees it (operator.h): products and gathers of sums in the order of the device's stream, with neither MPI nor the host in them, so that an iteration may be
  recorded and played again. The exchange is the matrix' own (halo.h).
*/
#include "mpigpucsr.h"

/* Collective: an exchange that some rank has given up is made anew */
static PetscErrorCode Renew(Mat A)
{
  Mat_MPIGPUCSR *g      = (Mat_MPIGPUCSR *)A->spptr;
  GPUCSRHalo     h      = g->halo;
  int            broken = 0;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  if (h && h->data && h->exchange->check) {
    PetscCall(GPUCSRAttemptBegin(&attempt));
    broken = (*h->exchange->check)(h) != PETSC_SUCCESS;
    PetscCall(GPUCSRAttemptEnd(&attempt));
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &broken, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  if (broken) PetscCall(PetscMemzero(g->agreed, sizeof(g->agreed)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: all ranks call it. A is made ready for products; why: where this rank cannot take part, otherwise empty */
PetscErrorCode MatGPUCSRRanksGet_Private(Mat A, GPUCSRRanks *r, char why[], size_t len)
{
  PetscBool ready, alone;
  Mat       Ao;

  PetscFunctionBegin;
  why[0] = 0;
  PetscCall(PetscMemzero(r, sizeof(*r)));
  PetscCall(Renew(A));
  PetscCall(MatGPUCSRReadyTogether_Private(A, GPUCSR_FORWARD, &ready, &alone));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &Ao, NULL));
  if (ready) PetscCall(MatGPUCSROperatorGet_Private(Ao, &r->off, why, len));
  r->halo = ((Mat_MPIGPUCSR *)A->spptr)->halo;
  r->made = r->halo->made;
  if (!ready && !why[0]) PetscCall(PetscStrncpy(why, "the matrix is on no device", len));
  else if (!why[0] && !r->halo->exchange->gather) PetscCall(PetscSNPrintf(why, len, "exchange %s needs the host", r->halo->exchange->name));
  else if (!why[0] && r->off.plan->A.precision == GPUCSR_PRECISION_SINGLE) PetscCall(PetscStrncpy(why, "products are in single precision", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x, arrays of the device, of a matrix whose diagonal block is o */
PetscErrorCode MatGPUCSRRanksProduct_Private(const GPUCSROperator *o, const GPUCSRRanks *r, const double *x, double *z)
{
  GPUCSRHalo            h   = r->halo;
  const GPUCSRExchange *way = h->exchange;
  const GPUCSRStream    s   = o->dev->stream;
  GPUCSROperand         ox = {.p = (void *)x, .place = h->halo.place, .ours = PETSC_TRUE}, oz = {.p = z, .place = h->halo.place, .ours = PETSC_TRUE};
  PetscBool             adds = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall((*way->forwardbegin)(h, &ox, s));
  if (way->addready) PetscCall((*way->addready)(h, r->off.A, &adds));
  PetscCall(MatGPUCSROperatorProduct_Private(o, x, z));
  if (adds) PetscCall((*way->forwardadd)(h, &oz, s));
  else {
    PetscCall((*way->forwardend)(h, PETSC_FALSE, s));
    if (h->nrecv) PetscCall(MatGPUCSROperatorMultiply_Private(&r->off, 1, (const double *)h->halo.p, 1, z, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all = n numbers of each rank, in the order of ranks; both where the products are */
PetscErrorCode MatGPUCSRRanksGather_Private(const GPUCSROperator *o, const GPUCSRRanks *r, const double *mine, int n, double *all)
{
  PetscFunctionBegin;
  PetscCall((*r->halo->exchange->gather)(r->halo, mine, n, all, o->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where they are gathered, if the kernel that needs them may do that itself; size 0: it may not */
GPUCSRPeerSlots MatGPUCSRRanksSlots_Private(const GPUCSRRanks *r)
{
  const GPUCSRPeerSlots none = {.size = 0};

  return r->halo->exchange->slots ? (*r->halo->exchange->slots)(r->halo) : none;
}

/* A solve begins, or has ended: in between all ranks take part */
PetscErrorCode MatGPUCSRRanksSolving_Private(const GPUCSRRanks *r, PetscBool begins)
{
  PetscFunctionBegin;
  PetscCall((*r->halo->exchange->solving)(r->halo, begins));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Work is recorded from here on, or no more */
PetscErrorCode MatGPUCSRRanksRecord_Private(const GPUCSRRanks *r, PetscBool begins)
{
  PetscFunctionBegin;
  if (r->halo->exchange->record) PetscCall((*r->halo->exchange->record)(r->halo, begins));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was recorded has been given to the stream; an error once another rank has given up */
PetscErrorCode MatGPUCSRRanksPlayed_Private(const GPUCSROperator *o, const GPUCSRRanks *r)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRRanksCheck_Private(r));
  if (r->halo->exchange->played) PetscCall((*r->halo->exchange->played)(r->halo, o->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRRanksCheck_Private(const GPUCSRRanks *r)
{
  PetscFunctionBegin;
  if (r->halo->exchange->check) PetscCall((*r->halo->exchange->check)(r->halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank goes no further: the others are told, as far as the exchange can */
PetscErrorCode MatGPUCSRRanksFail_Private(const GPUCSRRanks *r, const char message[])
{
  PetscFunctionBegin;
  PetscCall((*r->halo->exchange->fail)(r->halo, message));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The word of the exchange */
const char *MatGPUCSRRanksExchange_Private(const GPUCSRRanks *r)
{
  return r->halo->exchange->name;
}
