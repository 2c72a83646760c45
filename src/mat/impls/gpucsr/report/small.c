/*
  Backend auto and small matrices: for host vectors the CPU computes a product of a few thousand entries before the GPU could begin. Decided at each
  product, since vectors and pattern may change. Nothing is moved: the host's MATSEQAIJ is the master copy, and device vectors and solvers still use
  the plan.

  Predictions decide, not measurements: the same program computes the same bits in every run. A growing or shrinking matrix stays in its place until the other place is better by a margin.
*/
#include "report.h"

/* Were only options set that the host can serve? */
static PetscBool Free(Mat A, const Mat_SeqGPUCSR *g)
{
  const MatGPUCSRConfig *c = &g->base.config;

  if (g->block || !g->dev || !g->dev->ops->separate || MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_AUTO) return PETSC_FALSE;
  if (c->smallonhost == 0 || (c->smallonhost < 0 && !g->dev->ops->kernels)) return PETSC_FALSE;
  if (c->precision != MAT_GPUCSR_DOUBLE || c->transposeatassembly || c->request.select != GPUCSR_SELECT_ESTIMATE) return PETSC_FALSE;
  return (PetscBool)(GPUCSRRequestOpen(&c->request) && GPUCSRRequestOpen(&c->trequest));
}

/* Should the parent compute this product of x and y (or NULL) to z, although there is a device? */
PetscErrorCode MatGPUCSRHostIsFaster_Private(Mat A, Vec x, Vec y, Vec z, PetscBool *yes)
{
  Mat_SeqGPUCSR  *g    = (Mat_SeqGPUCSR *)A->spptr;
  Vec             v[3] = {x, z, y};
  PetscBool       isvecgpu;
  const PetscInt *i;

  PetscFunctionBegin;
  *yes = PETSC_FALSE;
  PetscCall(MatGPUCSRDecide_Private(A));
  if (!Free(A, g)) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->smallat != 1 + (double)A->nonzerostate) { /* once for each pattern */
    const GPUCSRMachine *t      = GPUCSRMachineOf(g->dev);
    const PetscBool      before = g->small;
    double               entries;

    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
    entries        = (double)i[A->rmap->n];
    g->foretold[0] = MatGPUCSRHostProductTime((double)A->rmap->n, entries);
    g->foretold[1] = MatGPUCSRHostVectorsTime((double)A->rmap->n, (double)A->cmap->n, t->small_launch + 12 * entries / t->small_rate, sizeof(double), 1); /* launch, and the bytes of a small matrix, which the cache holds */
    g->small       = (PetscBool)(g->foretold[0] * (before ? 1 / t->small_margin : t->small_margin) < g->foretold[1]);
    if (g->small != before || !g->smallat) PetscCall(PetscInfo(A, "Products of host vectors run on the %s: predicted %g us there, %g on the device\n", g->small ? "host" : "device", 1e6 * g->foretold[0], 1e6 * g->foretold[1]));
    g->smallat = 1 + (double)A->nonzerostate;
  }
  *yes = g->small;
  for (int k = 0; k < 3 && *yes; k++) { /* vectors of PETSc's own on the host: no VECGPU, and no device vector of PETSc's */
    if (!v[k]) continue;
    PetscCall(VecGPUCheck(v[k], &isvecgpu));
    *yes = (PetscBool)(GPUCSRIsType(v[k], VECSEQ) && !isvecgpu);
  }
  if (*yes) PetscCall(MatGPUCSRAdviseFirst_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For the report */
PetscErrorCode MatGPUCSRHostIsFasterWhy_Private(const Mat_SeqGPUCSR *g, char why[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(why, len, "the matrix is small and its vectors are on the host: %.1f us predicted there, %.1f on the device; -mat_gpucsr_backend cuda, or -vec_type gpu, takes the device", 1e6 * g->foretold[0], 1e6 * g->foretold[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
