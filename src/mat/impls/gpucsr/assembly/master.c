/*
  The master copy of the values. By default the host has the master copy: an operation copies the device's results to the host before it
  returns. With -mat_gpucsr_master device the device has the master copy, and the host's values are NaN until an operation wrapped here
  fetches the values.
*/
#include "assembly.h"
#include "../type/readers.h"
#include <string.h>

/* The values of the mirror, into the host's array */
static PetscErrorCode Home(Mat_SeqGPUCSR *g, PetscScalar *a)
{
  const GPUCSRStorage *csr = &g->mirror.csr;
  GPUCSRDevice         dev = csr->dev;

  PetscFunctionBegin;
  PetscCall((*dev->ops->activate)(dev->id));
  PetscCall(GPUCSRDownload(dev, a, GPUCSR_DOUBLE, csr->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)csr->nnz, PETSC_FALSE, dev->stream));
  MatGPUCSRValuesBack(g, sizeof(PetscScalar) * (double)csr->nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before the device is closed: the values, if it has the only copy. The matrix itself may not be known here */
PetscErrorCode MatGPUCSRKeep_Private(Mat_SeqGPUCSR *g)
{
  const GPUCSRMirror *m = &g->mirror;
  GPUCSRAttempt       attempt;

  PetscFunctionBegin;
  if (!m->ahead) PetscFunctionReturn(PETSC_SUCCESS);
  g->keptcolumns = m->columns;
  g->nkept       = m->csr.nnz;
  PetscCall(PetscMalloc1((size_t)g->nkept + 1, &g->kept));
  GPUCSRTry(&attempt, Home(g, g->kept));
  if (attempt.error) PetscCall(PetscFree(g->kept)); /* the host's values stay NaN */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host has the values of one block again; nothing counts as changed */
static PetscErrorCode FetchBlock(Mat A, PetscBool yes)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRMirror  *m = &g->mirror;
  PetscScalar   *a;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  if (m->ahead || g->kept) PetscCall(MatGPUCSRHeaderReplaced_Private(A));
  if (!m->ahead) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, NULL, NULL, &a, NULL));
  if (A->assembled || A->was_assembled) { /* else the program has preallocated anew, and dropped the values */
    GPUCSRTry(&attempt, Home(g, a));
    PetscCheck(!attempt.error, PETSC_COMM_SELF, attempt.error, "The device failed while it held the only copy of the values (-mat_gpucsr_master device): %s", attempt.message);
  }
  m->ahead  = PETSC_FALSE;
  m->values = GPUCSRStateOf(A);
  PetscCall(MatGPUCSRSample_Private(A, GPUCSR_SAMPLES, g->sample));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls f for a block, or for both blocks of a parallel matrix. A matrix of another type has no block here */
static PetscErrorCode ForBlocks(Mat A, PetscErrorCode (*f)(Mat, PetscBool), PetscBool yes)
{
  const char *type = A ? ((PetscObject)A)->type_name : NULL;
  Mat         block[2];

  PetscFunctionBegin;
  if (!type || !A->spptr || !A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  if (!strcmp(type, MATSEQAIJGPUCSR)) PetscCall((*f)(A, yes));
  else if (!strcmp(type, MATMPIAIJGPUCSR)) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    for (int b = 0; b < 2; b++) PetscCall(ForBlocks(block[b], f, yes));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before the host reads or writes values. A matrix of another type has its values */
PetscErrorCode MatGPUCSRFetch_Private(Mat A)
{
  return ForBlocks(A, FetchBlock, PETSC_TRUE);
}

static PetscErrorCode HostWorks(Mat A, PetscBool yes)
{
  ((Mat_GPUCSR *)A->spptr)->hostworks = yes;
  return PETSC_SUCCESS;
}

/* MATAIJ begins or ends a computation of this matrix, which may be NULL */
PetscErrorCode MatGPUCSRHostWorks_Private(Mat A, PetscBool begins)
{
  return ForBlocks(A, HostWorks, begins);
}

/* The device has changed the values of the mirror */
PetscErrorCode MatGPUCSRWritten_Private(Mat A)
{
  Mat_SeqGPUCSR  *g      = (Mat_SeqGPUCSR *)A->spptr;
  const PetscBool master = (PetscBool)(g->base.config.masterdevice && !g->base.hostworks);
  PetscScalar    *a;
  PetscErrorCode  ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArray(A, &a));
  if (!master) ierr = Home(g, a);
  else if (!g->mirror.ahead) MatGPUCSRVoid_Private(a, g->mirror.csr.nnz);
  PetscCall(MatSeqAIJRestoreArray(A, &a)); /* counts the change, and voids what PETSc has computed of older values */
  PetscCall(ierr);
  g->mirror.ahead = master;
  PetscCall(PetscFree(g->firstvalues));
  PetscCall(PetscFree(g->copy));
  if (!master) PetscCall(MatGPUCSRSample_Private(A, GPUCSR_SAMPLES, g->sample));
  g->mirror.values = GPUCSRStateOf(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operations that are wrapped. After MatHeaderMerge() a matrix has wraps, and data of another without: the last unwrapped operations of a matrix of the same type serve it */
static struct _MatOps *Behind(const Mat_GPUCSR *g)
{
  static struct _MatOps last[2];

  return g->behind ? g->behind : &last[g->kind->inplace != NULL];
}

#define FETCHED(op, formal, actual) \
  static PetscErrorCode op##_Fetched formal \
  { \
    PetscFunctionBegin; \
    PetscCall(MatGPUCSRFetch_Private(A)); \
    PetscCall((*Behind((const Mat_GPUCSR *)A->spptr)->op)actual); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
GPUCSR_MAT_READERS(FETCHED)

/* A summary has no values */
static PetscErrorCode view_Fetched(Mat A, PetscViewer viewer)
{
  PetscFunctionBegin;
  if (!GPUCSRViewsInfo(viewer)) PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall((*Behind((const Mat_GPUCSR *)A->spptr)->view)(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode duplicate_Fetched(Mat A, MatDuplicateOption op, Mat *B)
{
  PetscFunctionBegin;
  if (op == MAT_COPY_VALUES) PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall((*Behind((const Mat_GPUCSR *)A->spptr)->duplicate)(A, op, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode equal_Fetched(Mat A, Mat B, PetscBool *yes)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall(MatGPUCSRFetch_Private(B));
  PetscCall((*Behind((const Mat_GPUCSR *)A->spptr)->equal)(A, B, yes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MATMPIAIJ copies blocks or rows, by operations that fetch */
static PetscErrorCode copy_Fetched(Mat A, Mat B, MatStructure str)
{
  const PetscBool alone = ((Mat_GPUCSR *)A->spptr)->kind->inplace ? PETSC_TRUE : PETSC_FALSE;
  PetscBool       done  = PETSC_FALSE;

  PetscFunctionBegin;
  if (alone) {
    PetscCall(MatGPUCSRCopySame_Private(A, B, str, &done));
    if (done) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatGPUCSRFetch_Private(A));
    PetscCall(MatGPUCSRFetch_Private(B));
  }
  PetscCall((*Behind((const Mat_GPUCSR *)A->spptr)->copy)(A, B, str));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Its blocks zero their rows. Only where diagonals of ranks differ, values are set, too */
static PetscErrorCode zerorows_Fetched(Mat A, PetscInt n, const PetscInt rows[], PetscScalar d, Vec x, Vec b)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;
  PetscBool      same;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatHasCongruentLayouts(A, &same));
  g->quiet = (PetscBool)(d == 0.0 || same);
  ierr     = (*Behind(&g->base)->zerorows)(A, n, rows, d, x, b);
  if (ierr) g->quiet = PETSC_FALSE; /* no assembly has followed */
  PetscFunctionReturn(ierr);
}

/* The diagonal block's operation, and a loop of MATMPIAIJ over the values of the other block */
static PetscErrorCode zerorowscolumns_Fetched(Mat A, PetscInt n, const PetscInt rows[], PetscScalar d, Vec x, Vec b)
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(MatGPUCSRFetch_Private(block[1]));
  PetscCall((*Behind((const Mat_GPUCSR *)A->spptr)->zerorowscolumns)(A, n, rows, d, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode norm_Fetched(Mat A, NormType type, PetscReal *norm)
{
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRNormOfRanks_Private(A, type, norm, &done));
  if (!done) PetscCall((*Behind((const Mat_GPUCSR *)A->spptr)->norm)(A, type, norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal block's, if all ranks have a whole diagonal on their devices */
static PetscErrorCode shift_Fetched(Mat A, PetscScalar s)
{
  Mat         block[2];
  PetscBool   whole;
  PetscMPIInt all;

  PetscFunctionBegin;
  PetscCall(MatHasCongruentLayouts(A, &whole));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  if (whole && A->assembled) PetscCall(MatGPUCSRWholeDiagonal_Private(block[0], &whole));
  all = whole && A->assembled;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  if (all) PetscCall(MatShift(block[0], s));
  else {
    PetscCall(MatGPUCSRFetch_Private(A));
    PetscCall((*Behind((const Mat_GPUCSR *)A->spptr)->shift)(A, s));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Functions that PETSc finds by name. MatIsTranspose() wants the same function of both matrices */
static PetscErrorCode MatStoreValues_Fetched(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->store)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatIsTranspose_Fetched(Mat A, Mat B, PetscReal tol, PetscBool *yes)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall(MatGPUCSRFetch_Private(B));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->istranspose)(A, B, tol, yes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Wraps them while the device's copy is the master. PETSc replaces some at each assembly, so this is done again then */
PetscErrorCode MatGPUCSRWatch_Private(Mat A)
{
  Mat_GPUCSR     *g      = (Mat_GPUCSR *)A->spptr;
  const PetscBool master = g->config.masterdevice, first = (PetscBool)(master && !g->behind);
  struct _MatOps *o = A->ops, *last = Behind(g), *b;

  PetscFunctionBegin;
  if (!master && !g->behind && o->view != view_Fetched) PetscFunctionReturn(PETSC_SUCCESS);
  if (first) {
    PetscCall(PetscNew(&g->behind));
    if (o->view == view_Fetched) *g->behind = *last;
  }
  b = Behind(g);
#define WRAP(op, formal, actual) \
  if (master && o->op && o->op != op##_Fetched) { \
    b->op = o->op; \
    o->op = op##_Fetched; \
  } else if (!master && o->op == op##_Fetched) o->op = b->op;
  GPUCSR_MAT_READERS(WRAP)
  WRAP(view, , )
  WRAP(duplicate, , )
  WRAP(equal, , )
  WRAP(copy, , )
  if (!g->kind->inplace) {
    WRAP(zerorows, , )
    WRAP(zerorowscolumns, , )
    WRAP(norm, , )
    WRAP(shift, , )
  }
#undef WRAP
  if (g->kind->inplace && (first || (!master && ((PetscObject)A)->refct && ((PetscObject)A)->qlist))) { /* in MatDestroy() composed functions go with the object; MatHeaderMerge() has taken them */
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatStoreValues_C", master ? MatStoreValues_Fetched : g->store));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatIsTranspose_C", master ? MatIsTranspose_Fetched : g->istranspose));
  }
  if (!master) {
    const struct _MatOps unwrapped = *b;

    PetscCall(PetscFree(g->behind));
    *Behind(g) = unwrapped;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix leaves its type, with its values */
PetscErrorCode MatGPUCSRUnwatch_Private(Mat A)
{
  PetscFunctionBegin;
  if (((PetscObject)A)->refct) PetscCall(MatGPUCSRFetch_Private(A));
  ((Mat_GPUCSR *)A->spptr)->config.masterdevice = PETSC_FALSE;
  PetscCall(MatGPUCSRWatch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRGetDevice - Get the GPU on which this process has its matrices and vectors

  Not Collective; No Fortran Support

  Output Parameter:
. device - its number as CUDA counts, -1: no GPU can be used

  Level: advanced

.seealso: `MATGPUCSR`, `VECGPU`, `MatGPUCSRGetDeviceCSR()`, `VecGPUPlaceArray()`
@*/
PetscErrorCode MatGPUCSRGetDevice(PetscInt *device)
{
  GPUCSRDevice dev = NULL;
  char         why[512];

  PetscFunctionBegin;
  if (GPUCSR_SCALAR_IS_DOUBLE) PetscCall(GPUCSRDeviceOpen("cuda", &dev, why, sizeof(why)));
  *device = dev ? dev->id : -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(Mat A)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCheck(GPUCSRIsType(A, MATSEQAIJGPUCSR), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "A matrix of type %s has no arrays on a device; of several processes, each block of MatMPIAIJGetSeqAIJ() has", ((PetscObject)A)->type_name ? ((PetscObject)A)->type_name : "(none)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRGetDeviceCSR - Get the arrays of a `MATSEQAIJGPUCSR` on its device, to read the pattern and to read and change the values

  Not Collective; No Fortran Support

  Input Parameter:
. A - the matrix, assembled

  Output Parameters:
+ i - row pointers, 1 more than rows
. j - columns, ascending in each row
- a - values

  Level: advanced

  Notes:
  All three are in the memory of the GPU. This function waits for the device, so the program may use them in any stream. `MatGPUCSRRestoreDeviceCSR()` waits for the program's work.

  Between the two calls the matrix must not be used otherwise. The pattern must not change.

  An error if the matrix is not on a GPU. Of a matrix of several processes, get the arrays of each block, `MatMPIAIJGetSeqAIJ()`, and assemble the matrix after they are restored.

.seealso: `MATGPUCSR`, `MatGPUCSRRestoreDeviceCSR()`, `MatGPUCSRSetMaster()`, `MatSetValuesCOO()`, `VecGPUGetArray()`
@*/
PetscErrorCode MatGPUCSRGetDeviceCSR(Mat A, const int **i, const int **j, double **a)
{
  Mat_SeqGPUCSR *g;
  GPUCSRStorage *csr;

  PetscFunctionBegin;
  PetscCall(Check(A));
  PetscCheck(A->assembled, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Not for unassembled matrix");
  g = (Mat_SeqGPUCSR *)A->spptr;
  PetscCall(MatGPUCSRDecide_Private(A));
  PetscCheck(g->dev && g->dev->ops->separate, PETSC_COMM_SELF, PETSC_ERR_GPU, "The matrix is not on a GPU: %s", g->dev ? "its device is the host" : g->whynot);
  PetscCall(MatGPUCSRMirror_Private(A, g->dev, PETSC_TRUE, &csr));
  PetscCall(GPUCSRDeviceSynchronize(g->dev));
  *i = (const int *)csr->array[CSR_ROWPTR].data;
  *j = (const int *)csr->array[CSR_COL].data;
  *a = (double *)csr->array[CSR_VAL].data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRRestoreDeviceCSR - Restore arrays from `MatGPUCSRGetDeviceCSR()`, with new values

  Not Collective; No Fortran Support

  Input Parameters:
+ A - the matrix
. i - row pointers
. j - columns
- a - values; all three are `NULL` afterwards

  Level: advanced

  Note:
  Values count as changed. They are copied to the host, unless the master copy is the device's (`MatGPUCSRSetMaster()`).

.seealso: `MATGPUCSR`, `MatGPUCSRGetDeviceCSR()`, `MatGPUCSRSetMaster()`
@*/
PetscErrorCode MatGPUCSRRestoreDeviceCSR(Mat A, const int **i, const int **j, double **a)
{
  GPUCSRMirror *m;

  PetscFunctionBegin;
  PetscCall(Check(A));
  m = &((Mat_SeqGPUCSR *)A->spptr)->mirror;
  PetscCheck(*a && m->csr.format && *a == (double *)m->csr.array[CSR_VAL].data, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The array is not one of MatGPUCSRGetDeviceCSR(), or the matrix has changed since");
  PetscCall(GPUCSRDeviceSynchronize(m->csr.dev));
  m->values = -1;
  PetscCall(MatGPUCSRWritten_Private(A));
  *i = *j = NULL;
  *a      = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
