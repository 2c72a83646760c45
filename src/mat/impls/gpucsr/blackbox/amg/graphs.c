/*
  Patterns of a level's products. Rows and columns of the level come in blocks, and a graph has one entry a block: between two vertices, or a vertex and an aggregate. The product of two graphs is
  the pattern of the product by blocks. Its search takes as many times less as a block has entries.
*/
#include "amg.h"

#define HOLES 2 /* blocks of the matrix have at least one entry of so many */

PetscErrorCode GPUAMGGraphsDestroy(GPUAMGGraphs *g)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRStorageDestroy(&g->A));
  PetscCall(GPUCSRStorageDestroy(&g->P));
  PetscCall(GPUCSRStorageDestroy(&g->R));
  g->on = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The graph of a level's matrix, unless the finer level has left it. on: the level has blocks, which are full enough */
PetscErrorCode GPUAMGGraphsBegin(GPUAMG *h, int l, GPUAMGGraphs *g)
{
  GPUAMGLevel     *L   = &h->level[l];
  const GPUAMGOps *ops = GPUAMGOf(h->dev);
  const int        n   = L->n / L->bs;
  GPUAMGWork       w   = {.A = GPUAMGRowsOf(&L->A), .bs = L->bs, .theta = -1};
  int64_t          nnz;

  PetscFunctionBegin;
  if (g->on || (L->bs == 1 && L->ns == 1)) PetscFunctionReturn(PETSC_SUCCESS);
  g->on = PETSC_TRUE;
  if (L->bs == 1) {
    PetscCall(GPUCSRStorageLend(&L->A, &g->A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUAMGLengths(h, n, &w));
  PetscCall((*ops->rows)(h->dev, GPUAMG_COUNT, n, &w));
  PetscCall((*GPUCSRSpGEMMOf(h->dev)->shape)(n, w.length, w.number, &nnz, NULL, h->dev));
  g->on = (GPUCSRBool)(nnz * L->bs * L->bs <= HOLES * L->A.nnz);
  if (!g->on) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRCSRCreate(h->dev, n, n, nnz, &g->A));
  w.to = GPUAMGRowsOf(&g->A);
  PetscCall(h->dev->ops->copy(h->dev->id, w.to.i, w.number, sizeof(int32_t) * ((size_t)n + 1), GPUCSR_ON_DEVICE, h->dev->stream));
  PetscCall((*ops->rows)(h->dev, GPUAMG_GRAPH, n, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = the pattern of bs rows and ns columns for each entry of a graph. from and number as in GPUAMGWork, with map in place of out; or NULL */
static PetscErrorCode Blocks(GPUAMG *h, const GPUCSRStorage *graph, int bs, int ns, const GPUCSRStorage *from, int32_t *number, int32_t *map, GPUCSRStorage *C)
{
  const int64_t nnz = graph->nnz * bs * ns;
  GPUAMGWork    w   = {.A = GPUAMGRowsOf(graph), .bs = bs, .ns = ns, .number = number, .out = map};

  PetscFunctionBegin;
  PetscCheck(nnz <= INT32_MAX - 1024, PETSC_COMM_SELF, PETSC_ERR_SUP, "A level's product of %" PetscInt64_FMT " nonzeros does not fit the 32-bit indices of the device formats", (PetscInt64)nnz);
  PetscCall(GPUCSRCSRCreate(h->dev, graph->m * bs, graph->n * ns, nnz, C));
  w.to = GPUAMGRowsOf(C);
  if (from) w.from = GPUAMGRowsOf(from);
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_BLOCKS_OF, graph->m, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The graph AB of a product, and its pattern and classes of rows */
static PetscErrorCode Product(GPUAMG *h, const GPUCSRStorage *A, const GPUCSRStorage *B, int bs, int ns, GPUCSRStorage *AB, GPUCSRStorage *C, GPUCSRRowClasses *rows)
{
  GPUCSRRowClasses classes;

  PetscFunctionBegin;
  PetscCall(GPUCSRSpGEMMSymbolic(A, B, AB, &classes));
  PetscCall(GPUCSRRowClassesDestroy(h->dev, &classes));
  PetscCall(Blocks(h, AB, bs, ns, NULL, NULL, NULL, C));
  PetscCall(GPUCSRRowClassesOf(C, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The prolongator's pattern after k steps of its smoother */
PetscErrorCode GPUAMGGraphsSmoothed(GPUAMG *h, int l, int k, GPUAMGGraphs *g)
{
  GPUAMGLevel   *L  = &h->level[l];
  GPUCSRStorage  AP = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = Product(h, &g->A, &g->P, L->bs, L->ns, &AP, &L->P[k], &L->prows[k]);
  PetscCall(GPUCSRStorageDestroy(&g->P));
  g->P = AP;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The transpose of the prolongator */
PetscErrorCode GPUAMGGraphsTranspose(GPUAMG *h, int l, GPUAMGGraphs *g)
{
  GPUAMGLevel   *L   = &h->level[l];
  const int64_t  nnz = g->P.nnz;
  int32_t       *map = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(h->dev->ops->zero(h->dev->id, g->P.array[CSR_VAL].data, sizeof(double) * (size_t)nnz, h->dev->stream)); /* a transpose reads the values, too */
  PetscCall(GPUCSRTransposeStorage(&g->P, &g->R, &map));
  L->R.dev = h->dev;
  ierr     = GPUCSRMalloc(h->dev, sizeof(int32_t) * (size_t)L->P[h->o.nsmooths].nnz, "a transpose's map", (void **)&L->map);
  if (!ierr) {
    ierr = Blocks(h, &g->R, L->ns, L->bs, &g->P, map, L->map, &L->R);
    if (ierr) PetscCall(GPUCSRFree(h->dev, sizeof(int32_t) * (size_t)L->P[h->o.nsmooths].nnz, (void **)&L->map));
  }
  PetscCall(GPUCSRFree(h->dev, sizeof(int32_t) * (size_t)nnz, (void **)&map));
  PetscCall(ierr);
  PetscCall(GPUCSRTransposeValues(&L->P[h->o.nsmooths], L->map, &L->R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The two patterns of the Galerkin product. The graph of the next level's matrix remains */
PetscErrorCode GPUAMGGraphsGalerkin(GPUAMG *h, int l, GPUAMGGraphs *g)
{
  GPUAMGLevel   *L = &h->level[l], *C = &h->level[l + 1];
  GPUCSRStorage  AP = {0}, RAP = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = Product(h, &g->A, &g->P, L->bs, L->ns, &AP, &L->AP, &L->aprows);
  if (!ierr) ierr = Product(h, &g->R, &AP, L->ns, L->ns, &RAP, &C->A, &L->crows);
  PetscCall(GPUCSRStorageDestroy(&AP));
  PetscCall(GPUAMGGraphsDestroy(g));
  g->A  = RAP;
  g->on = (GPUCSRBool)!ierr;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
