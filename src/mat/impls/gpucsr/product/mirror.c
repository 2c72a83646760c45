/*
  The mirror: a matrix in CSR on its device, beside the format of its products. Whoever reads the CSR there asks for it: sparse products, factorizations, assembly in place, the set-up of PCGPUAMG. The
  bus is crossed once for the mirror and the plans.
*/
#include "../type/gpucsrimpl.h"

PetscErrorCode MatGPUCSRMirrorDestroy_Private(GPUCSRMirror *m)
{
  PetscFunctionBegin;
  if (m->place.p) PetscCall(GPUCSRBufferFree(m->csr.dev, &m->place));
  PetscCall(GPUCSRStorageDestroy(&m->csr));
  m->values     = -1;
  m->diagonalat = 0;
  m->columns    = NULL;
  m->ahead = m->spare = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The matrix in CSR on its device, kept until its plans are made anew. Uploads a new pattern or new values; values always if changes may be uncounted
  (changes.c). values: are they needed?
*/
PetscErrorCode MatGPUCSRMirror_Private(Mat A, GPUCSRDevice dev, PetscBool values, GPUCSRStorage **csr)
{
  Mat_SeqGPUCSR   *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRMirror    *m = &g->mirror;
  GPUCSRSource     s;
  PetscObjectState state;
  PetscBool        same;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRHeaderReplaced_Private(A));
  state = GPUCSRStateOf(A);
  PetscCall((*dev->ops->activate)(dev->id));
  same = (PetscBool)(m->csr.format && m->csr.dev == dev && m->pattern == A->nonzerostate && m->csr.m == A->rmap->n && m->csr.n == A->cmap->n);
  if (!same) PetscCall(PetscFree(g->rowptr));
  PetscCall(MatGPUCSRSource_Private(A, &s));
  if (same) same = (PetscBool)(m->columns == (const void *)s.j && m->csr.nnz == s.nnz);
  if (!same) {
    PetscCheck(s.nnz <= INT32_MAX - 1024, PETSC_COMM_SELF, PETSC_ERR_SUP, "A matrix of %" PetscInt64_FMT " nonzeros does not fit the 32-bit indices of the device formats", (PetscInt64)s.nnz);
    PetscCall(MatGPUCSRMirrorDestroy_Private(m)); /* a new pattern has the host's values */
    PetscCall(GPUCSRCSRCreate(dev, s.m, s.n, s.nnz, &m->csr));
    if (dev->ops->separate) g->info.uploaded += 4.0 * ((double)s.m + 1 + (double)s.nnz);
    PetscCall(GPUCSRUpload(dev, m->csr.array[CSR_ROWPTR].data, GPUCSR_INT32, s.i, GPUCSR_INT32, (size_t)s.m + 1, PETSC_FALSE, dev->stream, NULL));
    PetscCall(GPUCSRUpload(dev, m->csr.array[CSR_COL].data, GPUCSR_INT32, s.j, GPUCSR_PETSCINT, (size_t)s.nnz, PETSC_FALSE, dev->stream, NULL));
    m->pattern = A->nonzerostate;
    m->columns = s.j;
  }
  if (values && (m->values != state || g->firstvalues || g->copy)) {
    m->values = -1;
    PetscCall(GPUCSRUpload(dev, m->csr.array[CSR_VAL].data, GPUCSR_DOUBLE, s.a, GPUCSR_DOUBLE, (size_t)s.nnz, PETSC_FALSE, dev->stream, NULL));
    if (dev->ops->separate) MatGPUCSRValuesSent(g, 8.0 * (double)s.nnz);
    m->values = state;
  }
  m->spare = PETSC_FALSE;
  *csr     = &m->csr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Before a plan is built or gets new values: sends the values to the mirror, from which the plan then is made. Without a mirror, a plan to be built (whole) gets a spare mirror: programs set up a solver
  after their first product, and KSPSetUp() prepares the operator before the preconditioner.
*/
PetscErrorCode MatGPUCSRShare_Private(Mat A, PetscBool whole)
{
  Mat_SeqGPUCSR  *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRMirror   *m = &g->mirror;
  const PetscInt *i;
  GPUCSRAttempt   attempt;
  PetscBool       spare;
  double          nnz, begin;
  GPUCSRStorage  *csr;

  PetscFunctionBegin;
  if (!g->dev->ops->separate || g->base.config.precision != MAT_GPUCSR_DOUBLE || g->firstvalues || g->copy) PetscFunctionReturn(PETSC_SUCCESS);
  if (m->spare && whole) PetscCall(MatGPUCSRMirrorDestroy_Private(m));
  if (!m->csr.format) {
    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
    nnz = (double)i[A->rmap->n];
    /* if there is room for it and then for the plan */
    m->spare = (PetscBool)(whole && nnz >= GPUCSRMachineShared.spare_entries && !g->dev->limit && (double)g->dev->allocated + 36 * nnz + 4 * (double)A->rmap->n <= GPUCSRMachineShared.spare_share * (double)g->dev->props.memory);
    m->until = g->info.products + (PetscInt64)GPUCSRMachineShared.spare_products;
    if (!m->spare) PetscFunctionReturn(PETSC_SUCCESS);
  }
  spare = m->spare;
  begin = GPUCSRNow();
  GPUCSRTry(&attempt, MatGPUCSRMirror_Private(A, g->dev, PETSC_TRUE, &csr));
  if (GPUCSRSettingsGlobal.report) GPUCSRThen(&attempt, g->dev->ops->streamsynchronize(g->dev->id, g->dev->stream));
  g->plan[GPUCSR_FORWARD].costs.upload += GPUCSRNow() - begin;
  PetscCheck(!attempt.error || attempt.error == PETSC_ERR_MEM, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  if (attempt.error && !m->ahead) PetscCall(MatGPUCSRMirrorDestroy_Private(m)); /* without memory the plan is made without it */
  m->spare = (PetscBool)(spare && m->csr.format);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A spare mirror is freed after so many products, unless the format needs the pattern for new values */
PetscErrorCode MatGPUCSRUnspare_Private(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRMirror  *m = &g->mirror;
  GPUCSRPlan    *P = &g->plan[GPUCSR_FORWARD];

  PetscFunctionBegin;
  if (!m->spare || g->info.products < m->until) PetscFunctionReturn(PETSC_SUCCESS);
  m->spare = PETSC_FALSE;
  if (!m->csr.format) PetscFunctionReturn(PETSC_SUCCESS);
  if (P->built && g->pattern[GPUCSR_FORWARD] == m->pattern) PetscCall(GPUCSRPlanKeepPattern(&m->csr, P));
  PetscCall(MatGPUCSRMirrorDestroy_Private(m));
  PetscFunctionReturn(PETSC_SUCCESS);
}
