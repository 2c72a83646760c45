/*
  Common to both types: a matrix becomes this type and leaves the type, and keeps its configuration when PETSc makes a matrix from another. Each type keeps a copy of
  its parent's table of operations, and replaces some of them.
*/
#include "gpucsrimpl.h"
#include <string.h>

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

/* ---- conversions ---- */

/* From an unrelated type that converts to MATAIJ. As ops->convertfrom it would call itself for ever: -mat_seqaij_type makes each MATAIJ a gpucsr */
static PetscErrorCode MatConvert_ByWayOfAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  if (reuse == MAT_INPLACE_MATRIX) PetscCall(MatHeaderReplace(A, &B));
  else if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(B, *newmat, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&B));
  } else *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To a type that MATAIJ converts to by itself, from the host's values */
static PetscErrorCode MatConvert_ToStranger(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  const char *seq = ((Mat_GPUCSR *)A->spptr)->kind->seq, *prefix[] = {seq, ""};
  PetscErrorCode (*f)(Mat, MatType, MatReuse, Mat *) = NULL;
  char name[256];

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  for (int k = 0; k < 2 && !f; k++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saij_%s%s_C", seq, prefix[k], type));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &f));
  }
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_SUP, "No conversion to type %s", type);
  PetscCall((*f)(A, type, reuse, newmat));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Between two names of the same type: all settings stay */
static PetscErrorCode MatConvert_Same(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  PetscFunctionBegin;
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, newmat));
  else if (reuse == MAT_REUSE_MATRIX) PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Composes (or, with install false, removes) the functions for conversions from and to this type, which PETSc finds by the names of both types. MATAIJ's conversions to
  unrelated types are composed, too. Only few names: every block has them all.
*/
static PetscErrorCode ComposeConverters(Mat A, const MatGPUCSRKind *kind, PetscBool install)
{
  char         name[256], from[64], own[32];
  const char  *seq = kind->seq, *words[] = {"gpucsr", "aijgpucsr", own}, *strangers[] = {"dense", "baij", "sbaij", "sell"};
  const char **list;
  char       **known_as;
  int          n, known = 0;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(own, sizeof(own), "%saijgpucsr", seq));
  PetscCall(PetscSNPrintf(from, sizeof(from), "MatConvert_%saij_", seq));
  PetscCall(PetscFunctionListGet(((PetscObject)A)->qlist, &list, &n));
  PetscCall(PetscMalloc1(n, &known_as));
  for (int k = 0; k < n; k++) {
    const char *to;

    if (!list[k] || strncmp(list[k], from, strlen(from))) continue; /* NULL: removed */
    to = list[k] + strlen(from);
    if (!strncmp(to, "gpucsr", strlen("gpucsr"))) continue;
    if (!strncmp(to, seq, strlen(seq)) && !strncmp(to + strlen(seq), "aij", strlen("aij"))) continue; /* MATAIJ's other subclasses would overwrite this type's data */
    PetscCall(PetscStrallocpy(list[k], &known_as[known++]));                                          /* composing below changes the list */
  }
  PetscCall(PetscFree(list));
  for (int k = 0; k < known; k++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s_%s", own, known_as[k] + strlen(from)));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatConvert_ToStranger : NULL));
    PetscCall(PetscFree(known_as[k]));
  }
  PetscCall(PetscFree(known_as));
  PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s_%saij_C", own, seq));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? kind->toaij : NULL));
  for (size_t w = 0; w < PETSC_STATIC_ARRAY_LENGTH(words); w++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saij_%s_C", seq, words[w]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? kind->fromaij : NULL));
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s_%s_C", own, words[w]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatConvert_Same : NULL));
    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(strangers); q++) {
      PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s%s_%s_C", seq, strangers[q], words[w]));
      PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatConvert_ByWayOfAIJ : NULL));
    }
  }
  PetscCall(MatGPUCSRComposeProducts_Private(A, seq, install));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the type ---- */

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
  PetscCall(ComposeConverters(A, k, install));
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
  PetscCall(PetscMemzero(&c, sizeof(c))); /* configurations are compared as memory */
  c.backend             = MAT_GPUCSR_BACKEND_AUTO;
  c.precision           = MAT_GPUCSR_DOUBLE;
  c.transposeatassembly = PETSC_FALSE;
  c.smallonhost         = -1;
  c.productleast        = (PetscInt)GPUCSRMachineShared.sparse_least;
  PetscCall(PetscStrncpy(c.request.format, "auto", GPUCSR_WORD));
  PetscCall(PetscStrncpy(c.request.kernel, "auto", GPUCSR_WORD));
  c.trequest = c.request;
  PetscObjectOptionsBegin((PetscObject)B);
  PetscCall(MatGPUCSRConfigOptions_Private(B, &c, &changed, PetscOptionsObject));
  PetscOptionsEnd();
  PetscCall(MatGPUCSRConfigure_Private(B, &c));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}
