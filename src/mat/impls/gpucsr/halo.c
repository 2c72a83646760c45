/*
  Who needs which entries of a parallel vector: the graph of MATMPIAIJ's columns, as PetscSF finds it, without a table of all ranks.
*/
#include "halo.h"
#include <petscsf.h>

static PetscErrorCode NeighboursCreate(PetscMPIInt n, const PetscMPIInt ranks[], const PetscInt offset[], GPUCSRNeighbours *b, PetscInt **order)
{
  PetscFunctionBegin;
  b->n = n;
  PetscCall(PetscMalloc2(n, &b->rank, n + 1, &b->offset));
  PetscCall(PetscMalloc1(n, order));
  for (PetscInt k = 0; k < n; k++) {
    b->rank[k]  = ranks[k];
    (*order)[k] = k;
  }
  PetscCall(PetscSortMPIIntWithIntArray(n, b->rank, *order)); /* sums are made in the order of ranks */
  b->offset[0] = 0;
  for (PetscInt k = 0; k < n; k++) b->offset[k + 1] = b->offset[k] + offset[(*order)[k] + 1] - offset[(*order)[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graph(GPUCSRHalo h, PetscSF sf)
{
  PetscMPIInt        n;
  const PetscMPIInt *ranks;
  const PetscInt    *offset, *mine, *root;
  PetscInt          *order, *sorted;

  PetscFunctionBegin;
  PetscCall(PetscSFGetRootRanks(sf, &n, &ranks, &offset, &mine, NULL));
  PetscCall(NeighboursCreate(n, ranks, offset, &h->from, &order));
  h->nrecv = h->from.offset[n];
  for (PetscInt k = 0; k < n; k++)
    for (PetscInt e = 0; e < offset[order[k] + 1] - offset[order[k]]; e++) PetscCheck(mine[offset[order[k]] + e] == h->from.offset[k] + e, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The entries of x that rank %d owns are not together", (int)h->from.rank[k]);
  PetscCall(PetscFree(order));
  PetscCall(PetscSFGetLeafRanks(sf, &n, &ranks, &offset, &root));
  PetscCall(NeighboursCreate(n, ranks, offset, &h->to, &order));
  h->nsend = h->to.offset[n];
  PetscCall(PetscMalloc3(h->nsend, &h->index, h->nsend, &h->unique, h->nsend, &h->slot));
  for (PetscInt k = 0; k < n; k++) PetscCall(PetscArraycpy(h->index + h->to.offset[k], root + offset[order[k]], h->to.offset[k + 1] - h->to.offset[k]));
  PetscCall(PetscFree(order));
  PetscCall(PetscMalloc1(h->nsend, &sorted));
  PetscCall(PetscArraycpy(sorted, h->index, h->nsend));
  h->nunique = h->nsend;
  PetscCall(PetscSortRemoveDupsInt(&h->nunique, sorted));
  PetscCall(PetscArraycpy(h->unique, sorted, h->nunique));
  PetscCall(PetscFree(sorted));
  for (PetscInt k = 0; k < h->nsend; k++) PetscCall(PetscFindInt(h->index[k], h->nunique, h->unique, &h->slot[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRHalo living;

/* The devices go next: no halo keeps memory there, or an exchange. The next product sets them up again */
PetscErrorCode GPUCSRHalosForget(void)
{
  PetscFunctionBegin;
  for (GPUCSRHalo h = living; h; h = h->next) {
    if (h->data) PetscCall((*h->exchange->destroy)(h));
    h->dev = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the graph of A's columns. What follows, GPUCSRHaloSetUp(), is each rank's own */
PetscErrorCode GPUCSRHaloCreate(Mat A, GPUCSRHalo *halo)
{
  const PetscInt *garray;
  GPUCSRHalo      h;
  PetscSF         sf;
  Mat             Ao;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *halo       = h;
  h->next     = living;
  h->previous = &living;
  if (living) living->previous = &h->next;
  living      = h;
  h->exchange = &GPUCSRExchange_staged;
  PetscCall(PetscObjectGetComm((PetscObject)A, &h->comm));
  PetscCall(PetscObjectGetNewTag((PetscObject)A, &h->tag));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &Ao, &garray));
  PetscCall(PetscSFCreate(h->comm, &sf));
  PetscCall(PetscSFSetGraphLayout(sf, A->cmap, Ao->cmap->n, NULL, PETSC_COPY_VALUES, garray));
  PetscCall(PetscSFSetUp(sf));
  PetscCall(Graph(h, sf));
  PetscCall(PetscSFDestroy(&sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Buffers where the products of this rank are: a device with memory of its own, or NULL, which the host has */
PetscErrorCode GPUCSRHaloSetUp(GPUCSRHalo h, GPUCSRDevice dev)
{
  PetscFunctionBegin;
  if (h->data) PetscCall((*h->exchange->destroy)(h));
  h->dev = dev;
  PetscCall((*h->exchange->setup)(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRHaloDestroy(GPUCSRHalo *halo)
{
  GPUCSRHalo h = *halo;

  PetscFunctionBegin;
  if (!h) PetscFunctionReturn(PETSC_SUCCESS);
  *h->previous = h->next;
  if (h->next) h->next->previous = h->previous;
  if (h->data) PetscCall((*h->exchange->destroy)(h));
  PetscCall(PetscFree2(h->to.rank, h->to.offset));
  PetscCall(PetscFree2(h->from.rank, h->from.offset));
  PetscCall(PetscFree3(h->index, h->unique, h->slot));
  PetscCall(PetscFree(*halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}
