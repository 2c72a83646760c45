/*
  The halo among peers that compute on the host, in shared memory: plain loops, the twin of peerhalo.cu, with its flags and its order.
*/
#include "peerhalo.h"
#include "../../../../../sys/peer/peer.h"
#include <math.h>

/* A refused launch has done nothing */
static PetscErrorCode Turn(const GPUCSRPeerHalo *h, const char what[], GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s));
  if (h->dev) PetscCall(GPUCSRLaunched(h->dev, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The received numbers, once all neighbours have shown the number of this exchange */
static PetscErrorCode Await(const GPUCSRPeerHalo *h, GPUCSRPeerWay way, const double **in)
{
  const uint64_t s = *h->count + 1;

  for (int k = 0; k < h->n; k++) {
    PetscErrorCode ierr = GPUCSRPeerAwaitLate(h->peers, h->link[k].shown, s);

    if (ierr) return ierr;
  }
  *in = h->in[way][s % 2];
  return PETSC_SUCCESS;
}

PetscErrorCode GPUCSRPeerSend(const GPUCSRPeerHalo *h, GPUCSRPeerWay way, int count, const int32_t *index, const double *from, GPUCSRStream stream)
{
  PetscFunctionBegin;
  GPUCSRByKernels(h->dev, GPUCSRPeerSend_CUDA(h, way, count, index, from, stream));
  PetscCall(Turn(h, "peer_send", stream));
  const uint64_t s = *h->count + 1;
  for (int l = 0; l < h->n; l++) {
    const GPUCSRPeerLink *link = &h->link[l];

    for (int k = link->first[way]; k < link->last[way]; k++) link->to[way][s % 2][k - link->first[way]] = !from ? NAN : index ? from[index[k]] : from[k];
  }
  for (int l = 0; l < h->n; l++) GPUCSRPeerPublish(h->link[l].flag, s);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRPeerReceive(const GPUCSRPeerHalo *h, GPUCSRPeerWay way, double *to, GPUCSRStream stream)
{
  const double *in;

  PetscFunctionBegin;
  GPUCSRByKernels(h->dev, GPUCSRPeerReceive_CUDA(h, way, to, stream));
  PetscCall(Turn(h, "peer_receive", stream));
  PetscCall(Await(h, way, &in));
  for (int k = 0; k < h->coming[way] && to; k++) to[k] = in[k];
  ++*h->count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRPeerMultiply(const GPUCSRPeerHalo *h, const GPUCSRPeerRows *r, double *z, GPUCSRStream stream)
{
  const double *in;

  PetscFunctionBegin;
  GPUCSRByKernels(h->dev, GPUCSRPeerMultiply_CUDA(h, r, z, stream));
  PetscCall(Turn(h, "peer_multiply", stream));
  PetscCall(Await(h, GPUCSR_ENTRIES, &in));
  for (int k = 0; k < r->n; k++) {
    double sum = 0;

    for (int32_t q = r->ptr[k]; q < r->ptr[k + 1]; q++) sum += r->val[q] * in[r->col[q]];
    z[r->row[k]] += sum;
  }
  ++*h->count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRPeerAdd(const GPUCSRPeerHalo *h, const GPUCSRPeerSums *a, double *z, GPUCSRStream stream)
{
  const double *in;

  PetscFunctionBegin;
  GPUCSRByKernels(h->dev, GPUCSRPeerAdd_CUDA(h, a, z, stream));
  PetscCall(Turn(h, "peer_add", stream));
  PetscCall(Await(h, GPUCSR_SUMS, &in));
  for (int k = 0; k < a->n; k++) {
    double sum = 0;

    for (int32_t q = a->ptr[k]; q < a->ptr[k + 1]; q++) sum += in[a->from[q]];
    z[a->place[k]] += sum;
  }
  ++*h->count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSRPeerSlots GPUCSRPeerSlotsOf(const GPUCSRPeerHalo *h)
{
  const GPUCSRPeerSlots s = {GPUCSRPeersWatchLate(h->peers), h->slots, (int)h->peers->rank, (int)h->peers->size, h->count + 2};

  return s;
}

/* A number, followed by its flag */
typedef struct {
  uint64_t flag;
  double   number;
} Slot;

PetscErrorCode GPUCSRPeerGather(const GPUCSRPeerHalo *h, const double *mine, int n, double *all, GPUCSRStream stream)
{
  const int size = (int)h->peers->size, rank = (int)h->peers->rank;

  PetscFunctionBegin;
  GPUCSRByKernels(h->dev, GPUCSRPeerGather_CUDA(h, mine, n, all, stream));
  PetscCall(Turn(h, "peer_gather", stream));
  const uint64_t s   = h->count[2] + 1;
  const size_t   set = (size_t)(s % 2) * (size_t)size;

  for (int r = 0; r < size; r++)
    for (int k = 0; k < n; k++) {
      Slot *to = (Slot *)h->slots[r] + (set + (size_t)rank) * GPUCSR_PEER_GATHER + k;

      to->number = mine[k];
      GPUCSRPeerPublish(&to->flag, s);
    }
  for (int r = 0; r < size; r++)
    for (int k = 0; k < n; k++) {
      const Slot *from = (const Slot *)h->slots[rank] + (set + (size_t)r) * GPUCSR_PEER_GATHER + k;

      PetscCall(GPUCSRPeerAwaitLate(h->peers, &from->flag, s));
      all[r * n + k] = from->number;
    }
  h->count[2] = s;
  PetscFunctionReturn(PETSC_SUCCESS);
}
