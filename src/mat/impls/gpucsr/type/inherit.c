/*
  Common to both types: a matrix becomes this type and leaves the type, and keeps its configuration when PETSc makes a matrix from another. Each type keeps a copy of
  its parent's table of operations, and replaces some of them.
*/
#include "gpucsrimpl.h"

static PetscErrorCode MatMult_GPUCSR(Mat A, Vec x, Vec z)
{
  return (*((Mat_GPUCSR *)A->spptr)->kind->product)(A, GPUCSR_FORWARD, x, NULL, z);
}

static PetscErrorCode MatMultAdd_GPUCSR(Mat A, Vec x, Vec y, Vec z)
{
  return (*((Mat_GPUCSR *)A->spptr)->kind->product)(A, GPUCSR_FORWARD, x, y, z);
}

static PetscErrorCode MatMultTranspose_GPUCSR(Mat A, Vec x, Vec z)
{
  return (*((Mat_GPUCSR *)A->spptr)->kind->product)(A, GPUCSR_TRANSPOSE, x, NULL, z);
}

static PetscErrorCode MatMultTransposeAdd_GPUCSR(Mat A, Vec x, Vec y, Vec z)
{
  return (*((Mat_GPUCSR *)A->spptr)->kind->product)(A, GPUCSR_TRANSPOSE, x, y, z);
}

static PetscErrorCode MatDuplicate_GPUCSR(Mat A, MatDuplicateOption op, Mat *B)
{
  Mat_GPUCSR *g = (Mat_GPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall((*g->parent.duplicate)(A, op, B));
  if (!(*B)->spptr) PetscCall((*g->kind->fromaij)(*B, g->kind->name, MAT_INPLACE_MATRIX, B));
  PetscCall(MatGPUCSRConfigure_Private(*B, &g->config));
  PetscCall(MatGPUCSRCOOShare_Private(A, *B));
  ((Mat_GPUCSR *)(*B)->spptr)->keeppattern = g->keeppattern;
#if PetscDefined(HAVE_DEVICE)
  if (A->boundtocpu && A->bindingpropagates) PetscCall(MatBindToCPU(*B, PETSC_TRUE));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* These operations may replace the matrix by another, which would lose the settings */
static PetscErrorCode MatAXPY_GPUCSR(Mat A, PetscScalar a, Mat X, MatStructure str)
{
  const MatGPUCSRConfig c    = ((Mat_GPUCSR *)A->spptr)->config;
  const MatGPUCSRKind  *k    = ((Mat_GPUCSR *)A->spptr)->kind;
  PetscBool             done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall((*k->axpy)(A, a, X, str, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->inplace || str != SAME_NONZERO_PATTERN) { /* else MATMPIAIJ adds block by block */
    PetscCall(MatGPUCSRFetch_Private(A));
    PetscCall(MatGPUCSRFetch_Private(X));
  }
  PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.axpy)(A, a, X, str));
  PetscCall(MatGPUCSRReconfigure_Private(A, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTranspose_GPUCSR(Mat A, MatReuse reuse, Mat *B)
{
  const MatGPUCSRConfig c = ((Mat_GPUCSR *)A->spptr)->config;

  PetscFunctionBegin;
  PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.transpose)(A, reuse, B));
  if (reuse != MAT_REUSE_MATRIX) PetscCall(MatGPUCSRReconfigure_Private(*B, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_GPUCSR(Mat A, PetscViewer viewer)
{
  Mat_GPUCSR *g = (Mat_GPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall((*g->parent.view)(A, viewer));
  if (GPUCSRViewsInfo(viewer)) PetscCall((*g->kind->view)(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetFromOptions_GPUCSR(Mat A, GPUCSROptionItems PetscOptionsObject)
{
  Mat_GPUCSR     *g = (Mat_GPUCSR *)A->spptr;
  MatGPUCSRConfig c;
  PetscBool       changed;

  PetscFunctionBegin;
  /* with -mat_seqaij_type the MATSEQAIJ that MATSEQAIJPERM and its like build on is already a gpucsr */
  PetscCheck(MatGPUCSRIs(A), PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "A matrix of type %s cannot be made with -mat_seqaij_type %s: use one of the two", ((PetscObject)A)->type_name, MATSEQAIJGPUCSR);
  c = g->config;
  if (g->parent.setfromoptions) PetscCall((*g->parent.setfromoptions)(A, PetscOptionsObject));
  PetscCall(MatGPUCSRConfigOptions_Private(A, &c, &changed, PetscOptionsObject));
  if (changed) PetscCall(MatGPUCSRReconfigure_Private(A, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_DEVICE)
/* Only the place of the products changes, not the setting */
static PetscErrorCode MatBindToCPU_GPUCSR(Mat A, PetscBool cpu)
{
  Mat_GPUCSR *g = (Mat_GPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  A->boundtocpu = cpu;
  PetscCall((*g->kind->configured)(A));
  PetscCall(MatGPUCSRVecType_Private(A, &g->config));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode MatGPUCSRConfigure_Private(Mat A, const MatGPUCSRConfig *c)
{
  Mat_GPUCSR *g = (Mat_GPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRConfigCheck_Private(A, c));
  PetscCall(MatGPUCSRFetch_Private(A));
  g->config = *c;
  PetscCall((*g->kind->configured)(A));
  PetscCall(MatGPUCSRWatch_Private(A));
  PetscCall(MatGPUCSRVecType_Private(A, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc does not count this change */
static PetscErrorCode MatRetrieveValues_GPUCSR(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->retrieve)(A));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before MatSetUp() or preallocation, when MATAIJ of a PETSc without debugging would write through NULL; and the first time after that */
static PetscErrorCode MatSetValues_First(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], const PetscScalar v[], InsertMode mode)
{
  PetscFunctionBegin;
  PetscCheck(A->preallocated, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "A matrix of type %s has no room for values yet: call MatSetUp() or preallocate it before MatSetValues() (setUp() before A[i, j] in petsc4py)", ((PetscObject)A)->type_name);
  A->ops->setvalues = ((Mat_GPUCSR *)A->spptr)->parent.setvalues;
  PetscCall(MatGPUCSRWatch_Private(A));
  PetscCall((*A->ops->setvalues)(A, m, rows, n, cols, v, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: MATAIJ would read and write beside vectors of other sizes */
PetscErrorCode MatGPUCSRFits_Private(Mat A, Vec x, Vec b)
{
  PetscMPIInt wrong = x && b && (x->map->n != A->cmap->n || b->map->n != A->rmap->n);

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  PetscCheck(!wrong, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_SIZ, "Solution or right-hand side has not the local sizes of the matrix");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRows_MPIAIJGPUCSR(Mat A, PetscInt n, const PetscInt rows[], PetscScalar d, Vec x, Vec b)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFits_Private(A, x, b));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zerorows)(A, n, rows, d, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRowsColumns_MPIAIJGPUCSR(Mat A, PetscInt n, const PetscInt rows[], PetscScalar d, Vec x, Vec b)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFits_Private(A, x, b));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zerorowscolumns)(A, n, rows, d, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_GPUCSR(Mat);

/* The factor replaces the matrix: MatHeaderMerge() would leave gpucsr operations on PETSc's factor. So the matrix becomes its parent type first */
static PetscErrorCode MatLUFactor_GPUCSR(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRToAIJ_Private(A, NULL, MAT_INPLACE_MATRIX, &A));
  PetscCall((*A->ops->lufactor)(A, row, col, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatILUFactor_GPUCSR(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRToAIJ_Private(A, NULL, MAT_INPLACE_MATRIX, &A));
  PetscCall((*A->ops->ilufactor)(A, row, col, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The list of replaced operations: replaces the parent's operations, or restores the parent's */
static PetscErrorCode Install(Mat A, PetscBool install)
{
  Mat_GPUCSR          *g = (Mat_GPUCSR *)A->spptr;
  const MatGPUCSRKind *k = g->kind;
  struct _MatOps      *o = A->ops, *p = &g->parent;

  PetscFunctionBegin;
  if (install) *p = *o;
#define REPLACE(op, fn) o->op = install ? (fn) : p->op
  REPLACE(mult, MatMult_GPUCSR);
  REPLACE(multadd, MatMultAdd_GPUCSR);
  REPLACE(multtranspose, MatMultTranspose_GPUCSR);
  REPLACE(multtransposeadd, MatMultTransposeAdd_GPUCSR);
  if (!PetscDefined(USE_COMPLEX)) {
    REPLACE(multhermitiantranspose, MatMultTranspose_GPUCSR);
    REPLACE(multhermitiantransposeadd, MatMultTransposeAdd_GPUCSR);
  }
  if (k->getdiagonal) REPLACE(getdiagonal, k->getdiagonal);
  REPLACE(productsetfromoptions, MatProductSetFromOptions_AIJGPUCSR);
  if (p->lufactor) REPLACE(lufactor, MatLUFactor_GPUCSR);
  if (p->ilufactor) REPLACE(ilufactor, MatILUFactor_GPUCSR);
  if (k->inplace) PetscCall((*k->inplace)(A, install));
  else {
    REPLACE(zerorows, MatZeroRows_MPIAIJGPUCSR);
    REPLACE(zerorowscolumns, MatZeroRowsColumns_MPIAIJGPUCSR);
  }
  if (k->createsubmatrices) REPLACE(createsubmatrices, k->createsubmatrices);
  REPLACE(assemblyend, k->assemblyend);
  REPLACE(view, MatView_GPUCSR);
  REPLACE(duplicate, MatDuplicate_GPUCSR);
  REPLACE(axpy, MatAXPY_GPUCSR);
  REPLACE(transpose, MatTranspose_GPUCSR);
  REPLACE(setfromoptions, MatSetFromOptions_GPUCSR);
  REPLACE(destroy, MatDestroy_GPUCSR);
  REPLACE(getvecs, MatCreateVecs_GPUCSR);
  if (install ? !A->preallocated : o->setvalues == MatSetValues_First) REPLACE(setvalues, MatSetValues_First);
#if PetscDefined(HAVE_DEVICE)
  REPLACE(bindtocpu, MatBindToCPU_GPUCSR);
#endif
#undef REPLACE
  /* In MatDestroy() composed functions go with the object. After MatHeaderMerge() the list is empty: removing a name would make PETSc 3.24 allocate another, a leak */
  if (!install && (!((PetscObject)A)->refct || !((PetscObject)A)->qlist)) PetscFunctionReturn(PETSC_SUCCESS);
  if (install) {
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatRetrieveValues_C", &g->retrieve));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatStoreValues_C", &g->store));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatIsTranspose_C", &g->istranspose));
  }
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatRetrieveValues_C", install ? MatRetrieveValues_GPUCSR : g->retrieve));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatGPUCSRSetUp_C", install ? k->setup : NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatGPUCSRGetInfo_C", install ? k->getinfo : NULL));
  PetscCall(MatGPUCSRCOOCompose_Private(A, install));
  PetscCall(MatGPUCSRComposeConverters_Private(A, k->seq, k->toaij, k->fromaij, install));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReleaseData(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRUnwatch_Private(A));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->kind->release)(A));
  PetscCall(Install(A, PETSC_FALSE));
  PetscCall(PetscFree(A->spptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_GPUCSR(Mat A)
{
  PetscBool seq;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATSEQAIJ, &seq));
  /* after MatHeaderMerge() another matrix has this data */
  if (A->spptr) PetscCall(ReleaseData(A));
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, seq ? MATSEQAIJ : MATMPIAIJ));
  PetscCall((*A->ops->destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The beginning of every conversion between related types: B is the matrix to convert, NULL if nothing is left to do */
static PetscErrorCode ConvertBegin(Mat A, MatReuse reuse, Mat *newmat, Mat *B)
{
  PetscFunctionBegin;
  *B = NULL;
  if (reuse == MAT_REUSE_MATRIX) PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
  else if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
  else *B = *newmat;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRToAIJ_Private(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  const MatGPUCSRKind *kind = ((Mat_GPUCSR *)A->spptr)->kind;
  Mat                  B;

  PetscFunctionBegin;
  PetscCall(ConvertBegin(A, reuse, newmat, &B));
  if (!B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ReleaseData(B));
  PetscCall(PetscFree(B->defaultvectype));
  PetscCall(PetscStrallocpy(VECSTANDARD, &B->defaultvectype));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, kind->parent));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRFromAIJ_Private(Mat A, const MatGPUCSRKind *kind, MatReuse reuse, Mat *newmat)
{
  Mat             B;
  MatGPUCSRConfig c;
  PetscBool       changed;

  PetscFunctionBegin;
  PetscCall(ConvertBegin(A, reuse, newmat, &B));
  if (!B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscCalloc(kind->size, &B->spptr));
  ((Mat_GPUCSR *)B->spptr)->kind = kind;
  PetscCall(Install(B, PETSC_TRUE));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, kind->name));
#if PetscDefined(HAVE_DEVICE)
  B->boundtocpu = PETSC_FALSE; /* PETSc creates every matrix bound; a type with devices must unbind it */
#endif
  if (kind->created) PetscCall((*kind->created)(B));
  PetscCall(MatGPUCSRConfigDefault_Private(&c));
  PetscObjectOptionsBegin((PetscObject)B);
  PetscCall(MatGPUCSRConfigOptions_Private(B, &c, &changed, PetscOptionsObject));
  PetscOptionsEnd();
  PetscCall(MatGPUCSRConfigure_Private(B, &c));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}
