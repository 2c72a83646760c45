/*
  The exchange that works with every MPI: PetscSF sends and sums entries in page-locked host memory. The device packs the entries of a device vector, and adds the
  sums.
*/
#include "halo.h"

typedef struct {
  PetscScalar *border, *recv;    /* unique entries of x, or their sums; and the halo. Page-locked where that means something */
  int32_t     *place;            /* of the unique entries, on the device, */
  double      *there;            /* and room for them, for device vectors */
  PetscBool    forward, reverse; /* under way: a caller ends, or begins again, what an error has interrupted */
} Staged;

static PetscErrorCode Local_Staged(GPUCSRHalo h)
{
  Staged *g;

  PetscFunctionBegin;
  PetscCall(PetscNew(&g));
  h->data = g;
  PetscCall(GPUCSRHaloHostBuffer(h, h->nunique, &g->border));
  PetscCall(GPUCSRHaloHostBuffer(h, h->nrecv, &g->recv));
  if (h->dev) {
    PetscCall(GPUCSRHaloIndices(h, h->unique, h->nunique, &g->place));
    PetscCall(GPUCSRHaloMalloc(h, sizeof(double) * (size_t)h->nunique, &g->there));
  }
  h->host = g->recv;
  h->halo = (GPUCSROperand){.p = g->recv, .place = GPUCSR_HOST, .pinned = (PetscBool)(h->dev != NULL)};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardBegin_Staged(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  if (g->forward) PetscFunctionReturn(PETSC_SUCCESS);
  if (!x || x->place == GPUCSR_HOST) {
    for (PetscInt u = 0; u < h->nunique; u++) g->border[u] = x ? ((const PetscScalar *)x->p)[h->unique[u]] : (PetscScalar)NAN;
  } else if (h->nunique) {
    PetscCall((*GPUCSRHelpers(h->dev)->gather)(h->dev, (int)h->nunique, GPUCSR_DOUBLE, g->place, x->p, g->there, s));
    PetscCall(GPUCSRDownload(h->dev, g->border, GPUCSR_DOUBLE, g->there, GPUCSR_DOUBLE, (size_t)h->nunique, PETSC_TRUE, s));
    PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s));
  }
  PetscCall(PetscSFBcastBegin(h->sf, MPIU_SCALAR, g->border, g->recv, MPI_REPLACE));
  g->forward = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardEnd_Staged(GPUCSRHalo h, PetscBool host, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  (void)host; /* on the host either way */
  if (!g->forward) PetscFunctionReturn(PETSC_SUCCESS);
  g->forward = PETSC_FALSE;
  PetscCall(PetscSFBcastEnd(h->sf, MPIU_SCALAR, g->border, g->recv, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseBegin_Staged(GPUCSRHalo h, PetscBool valid, PetscBool host, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  if (g->reverse) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < (valid ? 0 : h->nrecv); k++) g->recv[k] = (PetscScalar)NAN;
  PetscCall(PetscArrayzero(g->border, h->nunique));
  PetscCall(PetscSFReduceBegin(h->sf, MPIU_SCALAR, g->recv, g->border, MPIU_SUM));
  g->reverse = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseAdd_Staged(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  if (!g->reverse) PetscFunctionReturn(PETSC_SUCCESS);
  g->reverse = PETSC_FALSE;
  PetscCall(PetscSFReduceEnd(h->sf, MPIU_SCALAR, g->recv, g->border, MPIU_SUM));
  if (!z) PetscFunctionReturn(PETSC_SUCCESS);
  if (z->place == GPUCSR_HOST) {
    for (PetscInt u = 0; u < h->nunique; u++) ((PetscScalar *)z->p)[h->unique[u]] += g->border[u];
  } else if (h->nunique) {
    PetscCall(GPUCSRUpload(h->dev, g->there, GPUCSR_DOUBLE, g->border, GPUCSR_DOUBLE, (size_t)h->nunique, PETSC_TRUE, s, NULL));
    PetscCall((*GPUCSRHelpers(h->dev)->scatteradd)(h->dev, (int)h->nunique, g->place, g->there, z->p, s));
    PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s)); /* the next product writes the border again */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRExchange GPUCSRExchange_staged = {
  .name         = "staged",
  .local        = Local_Staged,
  .forwardbegin = ForwardBegin_Staged,
  .forwardend   = ForwardEnd_Staged,
  .reversebegin = ReverseBegin_Staged,
  .reverseadd   = ReverseAdd_Staged,
};
