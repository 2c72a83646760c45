/* Inverses of small blocks on a diagonal: an application is one product with dense blocks, in which no row waits for another (rows.h) */
#include "triangle.h"

PetscErrorCode GPUCSRInversesDestroy(GPUCSRDevice dev, GPUCSRInverses *V)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRFree(dev, sizeof(int) * (size_t)(V->nblocks + 1), (void **)&V->begin));
  PetscCall(GPUCSRFree(dev, sizeof(int) * (size_t)V->n, (void **)&V->block));
  PetscCall(GPUCSRFree(dev, sizeof(int64_t) * (size_t)(V->nblocks + 1), (void **)&V->at));
  PetscCall(GPUCSRFree(dev, sizeof(double) * (size_t)V->stored, (void **)&V->value));
  PetscCall(PetscMemzero(V, sizeof(*V)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Uploads the host's data */
static PetscErrorCode Send(GPUCSRDevice dev, const int begin[], const int block[], const int64_t at[], GPUCSRInverses *V)
{
  const size_t n = (size_t)V->n, blocks = (size_t)V->nblocks;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (blocks + 1), "inverses of blocks", (void **)&V->begin));
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * n, "inverses of blocks", (void **)&V->block));
  PetscCall(GPUCSRMalloc(dev, sizeof(int64_t) * (blocks + 1), "inverses of blocks", (void **)&V->at));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * (size_t)V->stored, "inverses of blocks", (void **)&V->value));
  PetscCall(GPUCSRUpload(dev, V->begin, GPUCSR_INT32, begin, GPUCSR_INT32, blocks + 1, PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRUpload(dev, V->block, GPUCSR_INT32, block, GPUCSR_INT32, n, PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRUpload(dev, V->at, GPUCSR_INT64, at, GPUCSR_INT64, blocks + 1, PETSC_FALSE, dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All but the values. begin[nblocks + 1] is on the host; blocks may be empty */
PetscErrorCode GPUCSRInversesCreate(GPUCSRDevice dev, int nblocks, const int begin[], GPUCSRInverses *V)
{
  int           *block;
  int64_t       *at;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRInversesDestroy(dev, V));
  *V = (GPUCSRInverses){.n = begin[nblocks], .nblocks = nblocks};
  PetscCall(PetscMalloc2(V->n, &block, nblocks + 1, &at));
  at[0] = 0;
  for (int k = 0; k < nblocks; k++) {
    const int m = begin[k + 1] - begin[k];

    for (int r = begin[k]; r < begin[k + 1]; r++) block[r] = k;
    at[k + 1]  = at[k] + (int64_t)m * m;
    V->largest = PetscMax(V->largest, m);
  }
  V->stored = at[nblocks];
  ierr      = Send(dev, begin, block, at, V);
  PetscCall(PetscFree2(block, at));
  if (ierr) PetscCall(GPUCSRInversesDestroy(dev, V));
  PetscFunctionReturn(ierr);
}

/* Predicted time of a product on an H200 */
double GPUCSRInversesTime(GPUCSRDevice dev, int nblocks, const int begin[])
{
  const GPUCSRMachine *t       = GPUCSRMachineOf(dev);
  double               entries = 0;

  for (int k = 0; k < nblocks; k++) entries += (double)(begin[k + 1] - begin[k]) * (begin[k + 1] - begin[k]);
  return t->inverses_launch + (8 * entries + 28.0 * begin[nblocks]) / t->triangle_rate;
}
