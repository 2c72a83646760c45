/*
  A matrix as a solver sees it (operator.h): made ready once, then used by way of its plan, until the solve ends.
*/
#include "../type/gpucsrimpl.h"
#include "../blackbox/spgemm/spgemm.h"

static PetscErrorCode Get(Mat A, GPUCSRSide side, GPUCSROperator *o, char why[], size_t len)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool      ready;

  PetscFunctionBegin;
  *o = (GPUCSROperator){.A = A, .plan = &g->plan[side], .request = &g->base.config.request, .required = (PetscBool)(MatGPUCSRBackendOf(A) == MAT_GPUCSR_BACKEND_CUDA)};
  PetscCall(MatGPUCSRReady_Private(A, side, &ready));
  if (ready) {
    o->dev     = g->dev;
    o->version = g->version;
  } else PetscCall(PetscStrncpy(why, g->whynot, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A: a MATSEQAIJGPUCSR. It is made ready for products; where it is on no device, why says why not */
PetscErrorCode MatGPUCSROperatorGet_Private(Mat A, GPUCSROperator *o, char why[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(Get(A, GPUCSR_FORWARD, o, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for products with the transpose */
PetscErrorCode MatGPUCSROperatorTransposeGet_Private(Mat A, GPUCSROperator *o, char why[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(Get(A, GPUCSR_TRANSPOSE, o, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of a matrix that becomes a MATSEQAIJ, and is then a matrix as the operator's: of its type, where it is and as it was asked for */
PetscErrorCode MatGPUCSROperatorLike_Private(const GPUCSROperator *o, Mat A, Mat *B)
{
  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, B));
  PetscCall(MatConvert(*B, MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, B));
  PetscCall(MatGPUCSRConfigure_Private(*B, &((Mat_GPUCSR *)o->A->spptr)->config));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's CSR, for another format of the same matrix */
PetscErrorCode MatGPUCSROperatorSource_Private(const GPUCSROperator *o, GPUCSRSource *s)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRSource_Private(o->A, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operator in CSR on its device, double. A transpose is made in own, which the caller destroys; what is not belongs to the matrix */
PetscErrorCode MatGPUCSROperatorCSR_Private(const GPUCSROperator *o, GPUCSRStorage *own, const GPUCSRStorage **csr)
{
  GPUCSRStorage *A;
  int32_t       *map;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRMirror_Private(o->A, o->dev, PETSC_TRUE, &A));
  *csr = A;
  if (o->plan == &((Mat_SeqGPUCSR *)o->A->spptr)->plan[GPUCSR_FORWARD]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRTransposeStorage(A, own, &map));
  PetscCall(GPUCSRFree(A->dev, sizeof(int32_t) * (size_t)A->nnz, (void **)&map));
  *csr = own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve begins, on the device's own stream. A kernel's work is shared by all products of this matrix: one stream at a time */
PetscErrorCode MatGPUCSROperatorBegin_Private(const GPUCSROperator *o)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)o->A->spptr;

  PetscFunctionBegin;
  PetscCall(o->dev->ops->activate(o->dev->id));
  if (g->last && g->last != o->dev->stream) PetscCall(GPUCSRDeviceSynchronize(o->dev));
  g->last = o->dev->stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(const GPUCSROperator *o, GPUCSRProduct *p)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)o->A->spptr;

  PetscFunctionBegin;
  p->last    = o->plan->A.m;
  p->doubles = PETSC_TRUE;
  PetscCall(GPUCSRPlanProduct(o->plan, p, o->dev->stream));
  if (o->plan == &g->plan[GPUCSR_FORWARD]) g->info.products++;
  else g->info.transpose_products++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = alpha A x + beta y between Begin and End, of arrays of the device; with the transpose where the operator is that */
PetscErrorCode MatGPUCSROperatorMultiply_Private(const GPUCSROperator *o, double alpha, const double *x, double beta, const double *y, double *z)
{
  GPUCSRProduct p = {.alpha = alpha, .beta = beta, .x = x, .y = y, .z = z};

  PetscFunctionBegin;
  PetscCall(Product(o, &p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A step from x with v = b - A x, the new x in z, where GPUCSRPlanSteps() says so. sums: of z, or NULL */
PetscErrorCode MatGPUCSROperatorStep_Private(const GPUCSROperator *o, const double *b, const double *x, const GPUCSRStep *step, const GPUCSRSums *sums, double *z)
{
  GPUCSRProduct p = {.alpha = -1, .beta = 1, .x = x, .y = b, .z = z, .step = *step};

  PetscFunctionBegin;
  if (sums) p.sums = *sums;
  PetscCall(Product(o, &p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x and its sums, where GPUCSRPlanSums() says so */
PetscErrorCode MatGPUCSROperatorSums_Private(const GPUCSROperator *o, const double *x, const GPUCSRSums *sums, double *z)
{
  GPUCSRProduct p = {.alpha = 1, .x = x, .z = z, .sums = *sums};

  PetscFunctionBegin;
  PetscCall(Product(o, &p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x */
PetscErrorCode MatGPUCSROperatorProduct_Private(const GPUCSROperator *o, const double *x, double *z)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorMultiply_Private(o, 1, x, 0, NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solve has ended. products: those that MatGPUCSROperatorProduct_Private() has not seen */
PetscErrorCode MatGPUCSROperatorEnd_Private(const GPUCSROperator *o, PetscInt products)
{
  PetscFunctionBegin;
  ((Mat_SeqGPUCSR *)o->A->spptr)->info.products += products;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the matrix has left the device since the solve began, since a product failed or a preconditioner made a factor of it, the host's array */
PetscErrorCode MatGPUCSROperatorVecGet_Private(const GPUCSROperator *o, Vec v, PetscBool read, PetscBool write, GPUCSROperand *a)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)o->A->spptr;

  PetscFunctionBegin;
  if (g && g->dev == o->dev) PetscCall(MatGPUCSRVecGet_Private(g->dev, v, read, write, a));
  else {
    *a = (GPUCSROperand){.place = GPUCSR_HOST};
    if (!write) PetscCall(VecGetArrayRead(v, (const PetscScalar **)&a->p));
    else if (read) PetscCall(VecGetArray(v, (PetscScalar **)&a->p));
    else PetscCall(VecGetArrayWrite(v, (PetscScalar **)&a->p));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSROperatorVecRestore_Private(const GPUCSROperator *o, Vec v, PetscBool read, PetscBool write, GPUCSROperand *a)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRVecRestore_Private(o->dev, v, read, write, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
