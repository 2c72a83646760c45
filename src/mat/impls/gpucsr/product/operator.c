/* A matrix for solvers (operator.h): prepared once, then used through its plan until the solve ends. */
#include "../type/gpucsrimpl.h"
#include "../blackbox/spgemm/spgemm.h"

/* Is a failure of the device an error? */
PetscBool MatGPUCSROperatorRequired_Private(Mat A)
{
  return (PetscBool)(MatGPUCSRBackendOf(A) == MAT_GPUCSR_BACKEND_CUDA);
}

/* Prepares A, a MATSEQAIJGPUCSR, for products, or for products with its transpose; if it is on no device, why has the reason */
PetscErrorCode MatGPUCSROperatorGet_Private(Mat A, PetscBool transposed, GPUCSROperator *o, char why[], size_t len)
{
  const GPUCSRSide side = transposed ? GPUCSR_TRANSPOSE : GPUCSR_FORWARD;
  Mat_SeqGPUCSR   *g    = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool        ready;

  PetscFunctionBegin;
  *o = (GPUCSROperator){.A = A, .plan = &g->plan[side], .request = &g->base.config.request, .required = MatGPUCSROperatorRequired_Private(A)};
  PetscCall(MatGPUCSRReady_Private(A, side, &ready));
  if (ready) {
    o->dev     = g->dev;
    o->version = g->version;
  } else PetscCall(PetscStrncpy(why, g->whynot, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, a MATAIJ copy of A, converted to the type and options of like */
PetscErrorCode MatGPUCSRLike_Private(Mat like, Mat A, Mat *B)
{
  const Mat_GPUCSR *g = (const Mat_GPUCSR *)like->spptr;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, g->kind->parent, MAT_INITIAL_MATRIX, B));
  PetscCall(MatConvert(*B, g->kind->name, MAT_INPLACE_MATRIX, B));
  PetscCall(MatGPUCSRConfigure_Private(*B, &g->config));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Uploads the CSR, from which the plan is made afterwards: the matrix crosses the bus once */
PetscErrorCode MatGPUCSROperatorSend_Private(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRStorage *csr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRDecide_Private(A));
  if (g->dev && !g->dev->failed[0]) PetscCall(MatGPUCSRMirror_Private(A, g->dev, PETSC_TRUE, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's CSR, for another format of the same matrix */
PetscErrorCode MatGPUCSROperatorSource_Private(const GPUCSROperator *o, GPUCSRSource *s)
{
  return MatGPUCSRSource_Private(o->A, s);
}

/* The operator in CSR on its device, double. A transpose is made in own, which the caller destroys; any other csr belongs to the matrix */
PetscErrorCode MatGPUCSROperatorCSR_Private(const GPUCSROperator *o, GPUCSRStorage *own, const GPUCSRStorage **csr)
{
  GPUCSRStorage *A;
  int32_t       *map;

  PetscFunctionBegin;
  if (!o->A) {
    *csr = o->csr;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRMirror_Private(o->A, o->dev, PETSC_TRUE, &A));
  *csr = A;
  if (o->plan != &((Mat_SeqGPUCSR *)o->A->spptr)->plan[GPUCSR_TRANSPOSE]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRTransposeStorage(A, own, &map));
  PetscCall(GPUCSRFree(A->dev, sizeof(int32_t) * (size_t)A->nnz, (void **)&map));
  *csr = own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve begins, on the device's own stream: all products of this matrix share a kernel's work arrays, so one stream at a time */
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
  Mat_SeqGPUCSR *g = o->A ? (Mat_SeqGPUCSR *)o->A->spptr : NULL;

  PetscFunctionBegin;
  p->last    = o->plan->A.m;
  p->doubles = (GPUCSRBool)!o->floats;
  PetscCall(GPUCSRPlanProduct(o->plan, p, o->dev->stream));
  if (!g) PetscFunctionReturn(PETSC_SUCCESS);
  if (o->plan != &g->plan[GPUCSR_TRANSPOSE]) {
    g->info.products++;
    g->info.solver_products++;
  } else {
    g->info.transpose_products++;
    g->info.solver_transpose_products++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = alpha A x + beta y between Begin and End, for device arrays; with the transpose if the operator is one */
PetscErrorCode MatGPUCSROperatorMultiply_Private(const GPUCSROperator *o, double alpha, const void *x, double beta, const void *y, void *z)
{
  GPUCSRProduct p = {.alpha = alpha, .beta = beta, .x = x, .y = y, .z = z};

  return Product(o, &p);
}

/* A step from x with v = b - A x, the new x in z, if GPUCSRPlanSteps() allows it. sums: of z, or NULL */
PetscErrorCode MatGPUCSROperatorStep_Private(const GPUCSROperator *o, const void *b, const void *x, const GPUCSRStep *step, const GPUCSRSums *sums, void *z)
{
  GPUCSRProduct p = {.alpha = -1, .beta = 1, .x = x, .y = b, .z = z, .step = *step};

  PetscFunctionBegin;
  if (sums) p.sums = *sums;
  PetscCall(Product(o, &p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x and its sums, if GPUCSRPlanSums() allows it */
PetscErrorCode MatGPUCSROperatorSums_Private(const GPUCSROperator *o, const double *x, const GPUCSRSums *sums, double *z)
{
  GPUCSRProduct p = {.alpha = 1, .x = x, .z = z, .sums = *sums};

  return Product(o, &p);
}

/* The solve has ended. products: made without MatGPUCSROperatorMultiply_Private() */
PetscErrorCode MatGPUCSROperatorEnd_Private(const GPUCSROperator *o, PetscInt products)
{
  MatGPUCSRInfo *info = &((Mat_SeqGPUCSR *)o->A->spptr)->info;

  PetscFunctionBegin;
  info->products += products;
  info->solver_products += products;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's array if the matrix has left the device during the solve: a product failed, or a preconditioner replaced it by a factor */
PetscErrorCode MatGPUCSROperatorVecGet_Private(const GPUCSROperator *o, Vec v, PetscBool read, PetscBool write, GPUCSROperand *a)
{
  const Mat_SeqGPUCSR *g = o->A ? (const Mat_SeqGPUCSR *)o->A->spptr : NULL;

  return MatGPUCSRVecGet_Private(!o->A || (g && g->dev == o->dev) ? o->dev : NULL, v, read, write, a);
}

PetscErrorCode MatGPUCSROperatorVecRestore_Private(const GPUCSROperator *o, Vec v, PetscBool read, PetscBool write, GPUCSROperand *a)
{
  return MatGPUCSRVecRestore_Private(o->dev, v, read, write, a);
}
