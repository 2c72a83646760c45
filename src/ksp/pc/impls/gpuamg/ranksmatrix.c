/*
  Matrices of all ranks in a PCGPUAMG: their blocks, plans and exchanges, and products with them in an eigenvalue estimate.
*/
#include "gpuamgimpl.h"

/* A matrix without entries */
PetscErrorCode PCGPUAMGRanksEmpty_Private(GPUCSRDevice dev, PetscInt m, PetscInt n, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRCSRCreate(dev, (int)m, (int)n, 0, A));
  PetscCall(dev->ops->zero(dev->id, A->array[CSR_ROWPTR].data, sizeof(int32_t) * ((size_t)m + 1), dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FinestBlocks(Mat A, PetscBool transposed, const char alone[], GPUAMGRanksMatrix *M)
{
  char                 why[256] = "";
  const GPUCSRStorage *csr;
  Mat                  b[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], &M->m.ghost));
  PetscCall(MatGPUCSROperatorGet_Private(b[0], transposed, &M->o, why, sizeof(why)));
  PetscCall(PCGPUAMGOnDevice_Private(&M->o, why));
  PetscCheck(M->r.off.dev == M->o.dev, PETSC_COMM_SELF, PETSC_ERR_SUP, "PC type gpuamg needs its matrix on a device, but %s: take -pc_type gamg (PCGAMG)", alone);
  PetscCall(MatGPUCSROperatorBegin_Private(&M->o));
  if (transposed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSROperatorCSR_Private(&M->o, NULL, &csr));
  M->m.block[0] = (GPUCSRStorage *)csr;
  PetscCall(MatGPUCSROperatorCSR_Private(&M->r.off, NULL, &csr));
  M->m.block[1] = (GPUCSRStorage *)csr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the blocks, plans and exchange of the finest matrix */
PetscErrorCode PCGPUAMGRanksFinest_Private(Mat A, PetscBool transposed, GPUAMGRanksMatrix *M)
{
  const MPI_Comm comm       = PetscObjectComm((PetscObject)A);
  char           alone[256] = "";
  Mat            b[2];
  GPUCSRAttempt  attempt, second;

  PetscFunctionBegin;
  *M = (GPUAMGRanksMatrix){
    .m = {.comm = comm, .rmap = A->rmap, .cmap = A->cmap}
  };
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  GPUCSRTry(&attempt, transposed ? PETSC_SUCCESS : MatGPUCSROperatorSend_Private(b[0]));
  GPUCSRThen(&attempt, transposed ? PETSC_SUCCESS : MatGPUCSROperatorSend_Private(b[1]));
  GPUCSRTry(&second, MatGPUCSRRanksGet_Private(A, transposed, &M->r, alone, sizeof(alone)));
  if (!attempt.error) attempt = second;
  GPUCSRThen(&attempt, FinestBlocks(A, transposed, alone, M));
  PetscCall(PCGPUAMGSettle_Private(comm, &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Plans(int longest, GPUAMGRanksMatrix *A)
{
  GPUCSROperator *const o[] = {&A->o, &A->r.off};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(GPUCSRPlanLend(A->m.block[k], longest, &A->plan[k]));
    *o[k] = (GPUCSROperator){.dev = A->m.block[k]->dev, .plan = &A->plan[k], .csr = A->m.block[k]};
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: plans and an exchange for a matrix with blocks. longest: entries of a row at most, or 0. The configuration of `like` names the exchange */
PetscErrorCode PCGPUAMGRanksPlan_Private(Mat like, int longest, GPUAMGRanksMatrix *A)
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, Plans(longest, A));
  PetscCall(MatGPUCSRRanksExchangeCreate_Private(like, A->m.cmap, A->m.block[1]->n, A->m.ghost, A->m.block[0]->dev, &A->r.halo));
  A->exchanges = PETSC_TRUE;
  GPUCSRThen(&attempt, MatGPUCSRRanksExchangeSetUp_Private(A->r.halo));
  PetscCall(PCGPUAMGSettle_Private(A->m.comm, &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operators of A transposed, from its transposed blocks; its products take the exchange of A in reverse */
PetscErrorCode PCGPUAMGRanksTransposed_Private(GPUCSRStorage *const block[2], const GPUAMGRanksMatrix *A, GPUAMGRanksMatrix *T)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) T->m.block[k] = block[k];
  PetscCall(Plans(0, T));
  T->r.halo = A->r.halo;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGRanksMatrixDestroy_Private(GPUAMGRanksMatrix *A)
{
  PetscFunctionBegin;
  if (A->exchanges) PetscCall(MatGPUCSRRanksExchangeDestroy_Private(&A->r.halo));
  for (int k = 0; k < 2; k++) {
    PetscCall(GPUCSRPlanReturn(&A->plan[k]));
    if (A->own[k].dev) PetscCall(GPUCSRStorageDestroy(&A->own[k]));
  }
  PetscCall(PetscMemzero(A, sizeof(*A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the largest eigenvalue ---- */

typedef PetscErrorCode (*Inverse)(const GPUAMGRanksLevel *, const double *, double *);

/* y = M^-1 A x by way of z. A rank with an error takes part to the end */
static PetscErrorCode Apply(const GPUAMGRanksLevel *L, Inverse inverse, Vec x, Vec y, double *z)
{
  GPUCSRDevice   dev = L->A.o.dev;
  GPUCSRStream   s   = dev->stream; /* of the vectors */
  GPUCSROperand  ox = {.p = NULL}, oy = {.p = NULL};
  PetscErrorCode error, ierr;

  PetscFunctionBegin;
  error = MatGPUCSRVecGet_Private(dev, x, PETSC_TRUE, PETSC_FALSE, &ox);
  GPUCSRKeep(&error, MatGPUCSRVecGet_Private(dev, y, PETSC_FALSE, PETSC_TRUE, &oy));
  GPUCSRKeep(&error, MatGPUCSRStream_Private(dev, &ox, &oy, NULL, &s));
  if (s != dev->stream) GPUCSRKeep(&error, dev->ops->streamsynchronize(dev->id, s));
  ierr = MatGPUCSRRanksMultiply_Private(&L->A.o, &L->A.r, PETSC_FALSE, 1, error ? NULL : (const double *)ox.p, 0, NULL, z);
  GPUCSRKeep(&error, ierr);
  GPUCSRKeep(&error, (*inverse)(L, z, (double *)oy.p));
  if (s != dev->stream) GPUCSRKeep(&error, dev->ops->streamsynchronize(dev->id, dev->stream));
  if (oy.p) PetscCall(MatGPUCSRVecRestore_Private(dev, y, PETSC_FALSE, PETSC_TRUE, &oy));
  if (ox.p) PetscCall(MatGPUCSRVecRestore_Private(dev, x, PETSC_TRUE, PETSC_FALSE, &ox));
  PetscFunctionReturn(error);
}

/* Vectors on the device of the level, and memory for a product */
static PetscErrorCode Begin(const GPUAMGRanksLevel *L, int n, Vec V[], GPUCSRBuffer *z)
{
  GPUAMGWork   w = {.first = (uint32_t)L->rows->rstart};
  GPUCSRDevice dev;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) {
    double *p;

    PetscCall(VecGPUGetDevice(V[k], &dev)); /* allocates */
    PetscCheck(!L->n || dev == L->A.o.dev, PETSC_COMM_SELF, PETSC_ERR_SUP, "Vectors of type %s are not on the device of the matrix", VECGPU);
    PetscCall(VecGPUGetArrayWrite(V[k], &p));
    if (!k && L->n) {
      w.basis = p;
      PetscCall((*GPUAMGOf(dev)->rows)(dev, GPUAMG_START, (int)L->n, &w));
      PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream)); /* vectors of PETSc have another stream */
    }
    PetscCall(VecGPURestoreArray(V[k], &p));
  }
  PetscCall(GPUCSRBufferGrow(L->A.o.dev, sizeof(double) * (size_t)PetscMax(1, L->n), "vectors of an eigenvalue estimate", z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A rank with an error takes part to the end */
#define KEEP(call) \
  do { \
    GPUCSRTry(&attempt, call); \
    if (!first.error) first = attempt; \
  } while (0)

/* Arnoldi's method as on one device, from the same numbers */
static PetscErrorCode Arnoldi(const GPUAMGRanksLevel *L, int steps, Inverse inverse, Vec V[], double *z, double H[])
{
  PetscScalar   h[GPUAMG_STEPS + 1] = {0};
  PetscReal     norm                = 1;
  GPUCSRAttempt attempt, first = {0};

  PetscFunctionBegin;
  KEEP(VecNormalize(V[0], NULL));
  for (int k = 0; k < steps && norm > 0; k++) {
    KEEP(Apply(L, inverse, V[k], V[k + 1], z));
    KEEP(VecMDot(V[k + 1], k + 1, V, h));
    for (int j = 0; j <= k; j++) {
      H[k * (GPUAMG_STEPS + 1) + j] = (double)PetscRealPart(h[j]);
      h[j]                          = -h[j];
    }
    KEEP(VecMAXPY(V[k + 1], k + 1, h, V));
    KEEP(VecNorm(V[k + 1], NORM_2, &norm));
    if (attempt.error) norm = NAN; /* as on the other ranks */
    H[k * (GPUAMG_STEPS + 1) + k + 1] = (double)norm;
    if (norm > 0) KEEP(VecScale(V[k + 1], 1 / norm));
  }
  PetscCall(PCGPUAMGSettle_Private(L->A.m.comm, &first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: an estimate of the largest eigenvalue of M^-1 A */
PetscErrorCode PCGPUAMGRanksLargest_Private(const GPUAMGRanksLevel *L, int most, Inverse inverse, double *radius)
{
  const int      steps                                = (int)PetscMin(most, L->N);
  double         H[GPUAMG_STEPS * (GPUAMG_STEPS + 1)] = {0};
  GPUCSRBuffer   z                                    = {NULL, 0};
  PetscErrorCode ierr;
  GPUCSRAttempt  attempt;
  Vec            v, *V;

  PetscFunctionBegin;
  PetscCall(VecCreate(L->A.m.comm, &v));
  PetscCall(VecSetSizes(v, L->n, L->N));
  PetscCall(VecSetType(v, VECGPU));
  PetscCall(VecDuplicateVecs(v, steps + 1, &V));
  GPUCSRTry(&attempt, Begin(L, steps + 1, V, &z));
  ierr = PCGPUAMGSettle_Private(L->A.m.comm, &attempt);
  if (!ierr) ierr = Arnoldi(L, steps, inverse, V, (double *)z.p, H);
  PetscCall(VecDestroyVecs(steps + 1, &V));
  PetscCall(GPUCSRBufferFree(L->A.o.dev, &z));
  PetscCall(VecDestroy(&v));
  PetscCall(ierr);
  *radius = GPUAMGRadius(steps, H, GPUAMG_STEPS + 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}
