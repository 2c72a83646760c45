/*
  Types gpucsrlevel and mpigpucsrlevel: a level's matrix or a prolongator of a hierarchy on one process or on several. Its entries are on the devices alone, in arrays of the hierarchy. Cycles on the device use
  the plans of the hierarchy, and the device gives the diagonal. Before any other operation the matrix becomes a MATSEQAIJGPUCSR or MATMPIAIJGPUCSR in place, with entries on the host and on the device, and it
  stays one. Operations of several ranks cannot become another type if one rank alone calls them.
*/
#include "../sparse/mpirows.h"
#include "readers.h"

/* A->spptr */
typedef struct {
  Mat_GPUCSR            base;    /* the configuration of the later matrix */
  GPUCSROperator        side[2]; /* the matrix and its transpose; no device: there is no plan */
  GPUCSRRanks           ranks[2];
  const GPUCSRRanksCSR *rows;  /* of several ranks; NULL: of one process */
  void                 *owner; /* of the arrays and plans */
  PetscErrorCode (*release)(void *owner);
  PetscInt        *i, *j; /* of several ranks: this rank's rows on the host, */
  PetscScalar     *a;
  PetscObjectState at, blockat; /* with the values of this state; the same for the diagonal block */
} Mat_GPUCSRLevel;

static Mat_GPUCSRLevel *Of(Mat A)
{
  return (Mat_GPUCSRLevel *)A->spptr;
}

/* NULL: A has another type */
static Mat_GPUCSRLevel *LevelOf(Mat A)
{
  return GPUCSRIsType(A, MATGPUCSRLEVEL) || GPUCSRIsType(A, MATMPIGPUCSRLEVEL) ? (Mat_GPUCSRLevel *)A->spptr : NULL;
}

/* The matrix, or its transpose, for products on the device; o->dev NULL: A is no such matrix, or has no transpose. r: of several ranks, or NULL */
PetscErrorCode MatGPUCSRLevelGet_Private(Mat A, PetscBool transposed, GPUCSROperator *o, GPUCSRRanks *r)
{
  const Mat_GPUCSRLevel *g = LevelOf(A);

  PetscFunctionBegin;
  *o = g ? g->side[transposed] : (GPUCSROperator){.dev = NULL};
  if (r) *r = g ? g->ranks[transposed] : (GPUCSRRanks){.halo = NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the matrix on the host ---- */

static PetscErrorCode Rows(Mat A)
{
  Mat_GPUCSRLevel *g = Of(A);

  PetscFunctionBegin;
  if (g->i && g->at == GPUCSRStateOf(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscFree3(g->i, g->j, g->a));
  PetscCall(GPUCSRRanksRows(g->rows, &g->i, &g->j, &g->a));
  g->at = GPUCSRStateOf(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix, or a rank's diagonal block, on the host */
static PetscErrorCode OnHost(Mat A, PetscBool block, Mat *C)
{
  const Mat_GPUCSRLevel *g = Of(A);
  PetscInt               rbs, cbs;

  PetscFunctionBegin;
  PetscCall(MatCreate(block ? PETSC_COMM_SELF : PetscObjectComm((PetscObject)A), C));
  PetscCall(MatSetSizes(*C, A->rmap->n, A->cmap->n, block ? A->rmap->n : A->rmap->N, block ? A->cmap->n : A->cmap->N));
  PetscCall(MatGetBlockSizes(A, &rbs, &cbs));
  PetscCall(MatSetBlockSizes(*C, rbs, cbs));
  if (g->rows && !block) {
    PetscCall(MatSetType(*C, MATMPIAIJ));
    PetscCall(MatMPIAIJSetPreallocationCSR(*C, g->i, g->j, g->a));
    PetscCall(MatSetOption(*C, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE)); /* as after MATAIJ's products */
    PetscCall(MatConvert(*C, MATMPIAIJGPUCSR, MAT_INPLACE_MATRIX, C));
  } else PetscCall(MatSetType(*C, MATSEQAIJGPUCSR));
  PetscCall(MatGPUCSRConfigure_Private(*C, &g->base.config));
  if (!g->rows || block) PetscCall(MatGPUCSREntriesOf_Private(*C, g->side[GPUCSR_FORWARD].csr, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective on several ranks. No effect on a matrix of another type */
PetscErrorCode MatGPUCSRLevelBecome_Private(Mat A)
{
  const MPI_Comm   comm = PetscObjectComm((PetscObject)A);
  Mat_GPUCSRLevel *g    = LevelOf(A);
  GPUCSRAttempt    attempt;
  const char      *prefix;
  Mat              C = NULL;
  int              weight;
  PetscMPIInt      rank;

  PetscFunctionBegin;
  if (!g) PetscFunctionReturn(PETSC_SUCCESS);
  attempt.error = PETSC_SUCCESS;
  if (g->rows) { /* on all ranks, or an error on all */
    GPUCSRTry(&attempt, Rows(A));
    weight = attempt.error ? 1 : 0;
    PetscCall(GPUCSRAgree(comm, &weight, &attempt.error, attempt.message, sizeof(attempt.message), &rank));
  }
  GPUCSRThen(&attempt, OnHost(A, PETSC_FALSE, &C));
  if (attempt.error) PetscCall(MatDestroy(&C));
  PetscCheck(!attempt.error, comm, attempt.error, "A level of a multigrid hierarchy that only the device has does not come to the host: %s", attempt.message);
  PetscCall(MatGetOptionsPrefix(A, &prefix));
  PetscCall(MatSetOptionsPrefix(C, prefix));
  PetscCall(MatPropagateSymmetryOptions(A, C));
  /* exchanges the members of the headers that a program sets: names, attached objects, layouts with their maps, null spaces, sizes of blocks */
#define EXCHANGE(member) \
  do { \
    char kept[sizeof(A->member)]; \
\
    memcpy(kept, &A->member, sizeof(kept)); \
    memcpy(&A->member, &C->member, sizeof(kept)); \
    memcpy(&C->member, kept, sizeof(kept)); \
  } while (0)
  EXCHANGE(hdr.name);
  EXCHANGE(hdr.options);
  EXCHANGE(hdr.olist);
  EXCHANGE(factorprefix);
  EXCHANGE(hdr.python_context);
  EXCHANGE(hdr.python_destroy);
  EXCHANGE(rmap);
  EXCHANGE(cmap);
  EXCHANGE(nullsp);
  EXCHANGE(transnullsp);
  EXCHANGE(nearnullsp);
  EXCHANGE(nblocks);
  EXCHANGE(bsizes);
#undef EXCHANGE
  PetscCall(MatHeaderReplace(A, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- operations ---- */

#define BECOMES(op, formal, actual) \
  static PetscErrorCode op##_Becomes formal \
  { \
    PetscFunctionBegin; \
    PetscCall(MatGPUCSRLevelBecome_Private(A)); \
    PetscCall((*A->ops->op)actual); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

/* The other matrix may be a level, too */
#define BOTH_BECOME(op, formal, actual) \
  static PetscErrorCode op##_Becomes formal \
  { \
    PetscFunctionBegin; \
    PetscCall(MatGPUCSRLevelBecome_Private(A)); \
    PetscCall(MatGPUCSRLevelBecome_Private(B)); \
    PetscCall((*A->ops->op)actual); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

#define OF_TWO(R) \
  R(equal, (Mat A, Mat B, PetscBool * yes), (A, B, yes)) \
  R(axpy, (Mat A, PetscScalar a, Mat B, MatStructure str), (A, a, B, str)) \
  R(copy, (Mat A, Mat B, MatStructure str), (A, B, str))

#define OTHERS(R) \
  R(mult, (Mat A, Vec x, Vec y), (A, x, y)) \
  R(multadd, (Mat A, Vec x, Vec y, Vec z), (A, x, y, z)) \
  R(multtranspose, (Mat A, Vec x, Vec y), (A, x, y)) \
  R(multtransposeadd, (Mat A, Vec x, Vec y, Vec z), (A, x, y, z)) \
  R(multhermitiantranspose, (Mat A, Vec x, Vec y), (A, x, y)) \
  R(multhermitiantransposeadd, (Mat A, Vec x, Vec y, Vec z), (A, x, y, z)) \
  R(diagonalscale, (Mat A, Vec l, Vec r), (A, l, r)) \
  R(norm, (Mat A, NormType type, PetscReal * norm), (A, type, norm)) \
  R(zeroentries, (Mat A), (A)) \
  R(zerorows, (Mat A, PetscInt n, const PetscInt rows[], PetscScalar d, Vec x, Vec b), (A, n, rows, d, x, b)) \
  R(zerorowscolumns, (Mat A, PetscInt n, const PetscInt rows[], PetscScalar d, Vec x, Vec b), (A, n, rows, d, x, b)) \
  R(duplicate, (Mat A, MatDuplicateOption op, Mat * B), (A, op, B)) \
  R(increaseoverlap, (Mat A, PetscInt n, IS is[], PetscInt overlap), (A, n, is, overlap)) \
  R(scale, (Mat A, PetscScalar s), (A, s)) \
  R(shift, (Mat A, PetscScalar s), (A, s)) \
  R(diagonalset, (Mat A, Vec d, InsertMode mode), (A, d, mode)) \
  R(getrowij, (Mat A, PetscInt shift, PetscBool symmetric, PetscBool inodes, PetscInt * n, const PetscInt *i[], const PetscInt *j[], PetscBool *done), (A, shift, symmetric, inodes, n, i, j, done)) \
  R(getcolumnij, (Mat A, PetscInt shift, PetscBool symmetric, PetscBool inodes, PetscInt * n, const PetscInt *i[], const PetscInt *j[], PetscBool *done), (A, shift, symmetric, inodes, n, i, j, done)) \
  R(fdcoloringcreate, (Mat A, ISColoring colors, MatFDColoring coloring), (A, colors, coloring)) \
  R(getseqnonzerostructure, (Mat A, Mat * B), (A, B)) \
  R(findoffblockdiagonalentries, (Mat A, IS * is), (A, is)) \
  R(getrowmaxabs, (Mat A, Vec v, PetscInt at[]), (A, v, at)) \
  R(transposesymbolic, (Mat A, Mat * B), (A, B)) \
  R(conjugate, (Mat A), (A)) \
  R(realpart, (Mat A), (A)) \
  R(missingdiagonal, (Mat A, PetscBool * missing, PetscInt * first), (A, missing, first)) \
  R(lufactor, (Mat A, IS rows, IS columns, const MatFactorInfo *info), (A, rows, columns, info)) \
  R(ilufactor, (Mat A, IS rows, IS columns, const MatFactorInfo *info), (A, rows, columns, info)) \
  R(choleskyfactor, (Mat A, IS rows, const MatFactorInfo *info), (A, rows, info)) \
  R(iccfactor, (Mat A, IS rows, const MatFactorInfo *info), (A, rows, info))

GPUCSR_MAT_READERS(BECOMES)
OTHERS(BECOMES)
OF_TWO(BOTH_BECOME)

/* Functions that MATAIJ composes with its objects. PETSc ignores some of them silently for a type without them */
#define COMPOSED(R) \
  R(MatSeqAIJSetPreallocation, (Mat A, PetscInt most, const PetscInt each[]), (A, most, each)) \
  R(MatSeqAIJSetPreallocationCSR, (Mat A, const PetscInt i[], const PetscInt j[], const PetscScalar v[]), (A, i, j, v)) \
  R(MatSetPreallocationCOO, (Mat A, PetscCount n, PetscInt i[], PetscInt j[]), (A, n, i, j)) \
  R(MatResetPreallocation, (Mat A), (A)) \
  R(MatMPIAIJSetPreallocation, (Mat A, PetscInt d, const PetscInt dn[], PetscInt o, const PetscInt on[]), (A, d, dn, o, on)) \
  R(MatMPIAIJSetPreallocationCSR, (Mat A, const PetscInt i[], const PetscInt j[], const PetscScalar v[]), (A, i, j, v)) \
  R(MatStoreValues, (Mat A), (A))

#define CALLS_AGAIN(function, formal, actual) \
  static PetscErrorCode function##_Becomes formal \
  { \
    PetscFunctionBegin; \
    PetscCall(MatGPUCSRLevelBecome_Private(A)); \
    PetscCall(function actual); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
COMPOSED(CALLS_AGAIN)
CALLS_AGAIN(MatConvert, (Mat A, MatType type, MatReuse reuse, Mat *B), (A, type, reuse, B))

static PetscErrorCode productsetfromoptions_Becomes(Mat C)
{
  Mat const factor[] = {C->product->A, C->product->B, C->product->C};

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++)
    if (factor[k]) PetscCall(MatGPUCSRLevelBecome_Private(factor[k]));
  PetscCall(MatProductSetFromOptions(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc keeps these options in the header */
static PetscErrorCode setoption_Becomes(Mat A, MatOption option, PetscBool flag)
{
  PetscFunctionBegin;
  if (option == MAT_FORM_EXPLICIT_TRANSPOSE || option == MAT_SYMMETRIC || option == MAT_STRUCTURALLY_SYMMETRIC || option == MAT_HERMITIAN || option == MAT_SPD) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRLevelBecome_Private(A));
  PetscCall((*A->ops->setoption)(A, option, flag));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- operations of several ranks. PETSc does not call those that read entries on all ranks together: they read a copy of this rank's rows on the host, or of its diagonal block, and the matrix stays as it is */

/* z = A x + y, or with the transpose; y may be NULL, may be z. A rank with an error takes part to the end */
static PetscErrorCode Product(Mat A, PetscBool transposed, Vec x, Vec y, Vec z)
{
  const GPUCSROperator *o   = &Of(A)->side[transposed];
  const GPUCSRRanks    *r   = &Of(A)->ranks[transposed];
  GPUCSRDevice          dev = o->dev;
  GPUCSRVecArray        ax = {.v = NULL}, az = {.v = NULL};
  PetscErrorCode        error = PETSC_SUCCESS, ierr;

  PetscFunctionBegin;
  if (y && y != z) error = VecCopy(y, z);
  GPUCSRKeep(&error, dev->ops->activate(dev->id));
  GPUCSRKeep(&error, MatGPUCSRRanksCheck_Private(r));
  GPUCSRKeep(&error, MatGPUCSRArrayGet_Private(dev, x, PETSC_TRUE, PETSC_FALSE, &ax));
  GPUCSRKeep(&error, MatGPUCSRArrayGet_Private(dev, z, (PetscBool)(y != NULL), PETSC_TRUE, &az));
  az.partly = PETSC_TRUE;
  ierr      = MatGPUCSRRanksMultiply_Private(o, r, transposed, 1, error ? NULL : ax.p, y ? 1 : 0, y ? az.p : NULL, az.p);
  GPUCSRKeep(&error, ierr);
  error = MatGPUCSRArrayRestore_Private(dev, &ax, error);
  PetscCall(MatGPUCSRArrayRestore_Private(dev, &az, error));
  PetscCall(PetscLogFlops(2.0 * (double)(o->csr->nnz + r->off.csr->nnz)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_MPIGPUCSRLevel(Mat A, Vec x, Vec y)
{
  return Product(A, PETSC_FALSE, x, NULL, y);
}

static PetscErrorCode MatMultAdd_MPIGPUCSRLevel(Mat A, Vec x, Vec y, Vec z)
{
  return Product(A, PETSC_FALSE, x, y, z);
}

static PetscErrorCode MatMultTranspose_MPIGPUCSRLevel(Mat A, Vec x, Vec y)
{
  return Product(A, PETSC_TRUE, x, NULL, y);
}

static PetscErrorCode MatMultTransposeAdd_MPIGPUCSRLevel(Mat A, Vec x, Vec y, Vec z)
{
  return Product(A, PETSC_TRUE, x, y, z);
}

/* The place of a row of this rank */
static PetscErrorCode Row(Mat A, PetscInt row, PetscInt *r)
{
  PetscFunctionBegin;
  *r = row - A->rmap->rstart;
  PetscCheck(*r >= 0 && *r < A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %" PetscInt_FMT " is not of this rank, which has %" PetscInt_FMT " to %" PetscInt_FMT, row, A->rmap->rstart, A->rmap->rend - 1);
  PetscCall(Rows(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRow_MPIGPUCSRLevel(Mat A, PetscInt row, PetscInt *n, PetscInt **j, PetscScalar **v)
{
  const Mat_GPUCSRLevel *g = Of(A);
  PetscInt               r;

  PetscFunctionBegin;
  PetscCall(Row(A, row, &r));
  *n = g->i[r + 1] - g->i[r];
  if (j) *j = *n ? g->j + g->i[r] : NULL;
  if (v) *v = *n ? g->a + g->i[r] : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetValues_MPIGPUCSRLevel(Mat A, PetscInt m, const PetscInt i[], PetscInt n, const PetscInt j[], PetscScalar v[])
{
  const Mat_GPUCSRLevel *g = Of(A);
  PetscInt               r, at;

  PetscFunctionBegin;
  for (PetscInt p = 0; p < m; p++) {
    if (i[p] < 0) continue;
    PetscCall(Row(A, i[p], &r));
    for (PetscInt q = 0; q < n; q++) {
      if (j[q] < 0) continue;
      PetscCall(PetscFindInt(j[q], g->i[r + 1] - g->i[r], g->j + g->i[r], &at));
      v[p * n + q] = at < 0 ? 0 : g->a[g->i[r] + at];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc has noted the change already */
static PetscErrorCode MatSetValues_MPIGPUCSRLevel(Mat A, PetscInt m, const PetscInt i[], PetscInt n, const PetscInt j[], const PetscScalar v[], InsertMode mode)
{
  PetscFunctionBegin;
  A->assembled  = PETSC_TRUE;
  A->insertmode = NOT_SET_VALUES;
  PetscCheck(!m || !n, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Entries of a matrix of type %s are on devices alone: call MatConvert(A, %s, MAT_INPLACE_MATRIX, &A) on all ranks before MatSetValues()", MATMPIGPUCSRLEVEL, MATMPIAIJGPUCSR);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetGhosts_MPIGPUCSRLevel(Mat A, PetscInt *n, const PetscInt *ghosts[])
{
  const GPUCSRRanksCSR *rows = Of(A)->rows;

  PetscFunctionBegin;
  if (n) *n = rows->block[1]->n;
  if (ghosts) *ghosts = rows->ghost;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Attached to A: a program may have it without a reference, also when A becomes another type */
static PetscErrorCode MatGetDiagonalBlock_MPIGPUCSRLevel(Mat A, Mat *D)
{
  Mat_GPUCSRLevel *g = Of(A);

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)A, "gpucsr_diagonal_block", (PetscObject *)D));
  if (!*D) {
    PetscCall(OnHost(A, PETSC_TRUE, D));
    PetscCall(PetscObjectCompose((PetscObject)A, "gpucsr_diagonal_block", (PetscObject)*D));
    PetscCall(PetscObjectDereference((PetscObject)*D));
  } else if (g->blockat != GPUCSRStateOf(A)) {
    const GPUCSRStorage *csr = Of(A)->side[GPUCSR_FORWARD].csr;
    GPUCSRDevice         dev = csr->dev;
    PetscScalar         *a;
    PetscErrorCode       ierr = PETSC_SUCCESS;

    PetscCall(MatSeqAIJGetArrayWrite(*D, &a));
    if (csr->nnz) ierr = GPUCSRDownload(dev, a, GPUCSR_DOUBLE, csr->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)csr->nnz, PETSC_FALSE, dev->stream);
    if (!ierr) ierr = dev->ops->streamsynchronize(dev->id, dev->stream);
    PetscCall(MatSeqAIJRestoreArrayWrite(*D, &a));
    PetscCall(ierr);
  }
  g->blockat = GPUCSRStateOf(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatInvertBlockDiagonal_MPIGPUCSRLevel(Mat A, const PetscScalar **v)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock_MPIGPUCSRLevel(A, &D));
  PetscCall(MatInvertBlockDiagonal(D, v));
  A->factorerrortype = D->factorerrortype;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatInvertVariableBlockDiagonal_MPIGPUCSRLevel(Mat A, PetscInt n, const PetscInt *sizes, PetscScalar *v)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock_MPIGPUCSRLevel(A, &D));
  PetscCall(MatInvertVariableBlockDiagonal(D, n, sizes, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMissingDiagonal_MPIGPUCSRLevel(Mat A, PetscBool *missing, PetscInt *first)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock_MPIGPUCSRLevel(A, &D));
  PetscCall(MatMissingDiagonal(D, missing, first));
  if (first) *first += A->rmap->rstart;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the type ---- */

static PetscErrorCode MatGetDiagonal_GPUCSRLevel(Mat A, Vec d)
{
  const Mat_GPUCSRLevel *g = Of(A);
  const GPUCSROperator  *o = &g->side[GPUCSR_FORWARD];
  GPUCSRStream           s;
  PetscBool              done;
  PetscScalar           *v;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRPlanDiagonal_Private(o->dev, o->plan, d, &s, &done));
  if (done && s != o->dev->stream) PetscCall(o->dev->ops->streamsynchronize(o->dev->id, s)); /* the hierarchy's next work is on its own stream */
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  if (!g->rows) {
    PetscCall(MatGPUCSRLevelBecome_Private(A));
    PetscCall((*A->ops->getdiagonal)(A, d));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetArrayWrite(d, &v));
  for (PetscInt r = 0; r < A->rmap->n; r++) {
    const PetscInt row = A->rmap->rstart + r;

    PetscCall(MatGetValues_MPIGPUCSRLevel(A, 1, &row, 1, &row, v + r));
  }
  PetscCall(VecRestoreArrayWrite(d, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetInfo_GPUCSRLevel(Mat A, MatInfoType type, MatInfo *info)
{
  const Mat_GPUCSRLevel *g   = (const Mat_GPUCSRLevel *)A->spptr;
  PetscLogDouble         nnz = (PetscLogDouble)g->side[GPUCSR_FORWARD].csr->nnz;

  PetscFunctionBegin;
  if (g->rows) nnz += (PetscLogDouble)g->rows->block[1]->nnz;
  if (type != MAT_LOCAL) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &nnz, 1, MPI_DOUBLE, type == MAT_GLOBAL_SUM ? MPI_SUM : MPI_MAX, PetscObjectComm((PetscObject)A)));
  PetscCall(PetscMemzero(info, sizeof(*info)));
  info->block_size = 1;
  info->nz_used = info->nz_allocated = nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_GPUCSRLevel(Mat A, PetscViewer viewer)
{
  const GPUCSROperator *o = &((Mat_GPUCSRLevel *)A->spptr)->side[GPUCSR_FORWARD];

  PetscFunctionBegin;
  if (GPUCSRViewsInfo(viewer)) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "on backend %s alone: it becomes %s before an operation on the host\n", o->dev->ops->name, GPUCSRIsType(A, MATGPUCSRLEVEL) ? MATSEQAIJGPUCSR : MATMPIAIJGPUCSR));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRLevelBecome_Private(A));
  PetscCall((*A->ops->view)(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssembly_GPUCSRLevel(Mat A, MatAssemblyType type)
{
  return PETSC_SUCCESS;
}

static PetscErrorCode MatDestroy_GPUCSRLevel(Mat A)
{
  Mat_GPUCSRLevel *g = (Mat_GPUCSRLevel *)A->spptr;

  PetscFunctionBegin;
  PetscCall(PetscFree3(g->i, g->j, g->a));
  PetscCall((*g->release)(g->owner));
  PetscCall(PetscFree(A->spptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of arrays and plans of the owner, whose destruction releases the owner. side: the matrix and its transpose (dev NULL: none), on several ranks with ranks and rows. like: a matrix with the configuration */
PetscErrorCode MatGPUCSRLevelCreate_Private(Mat like, const GPUCSROperator side[2], const GPUCSRRanks ranks[2], const struct _n_GPUCSRRanksCSR *rows, PetscInt rbs, PetscInt cbs, void *owner, PetscErrorCode (*release)(void *), Mat *C)
{
  const GPUCSRStorage *csr = side[GPUCSR_FORWARD].csr;
  Mat_GPUCSRLevel     *g;
  struct _MatOps      *o; /* the operations of `like` alone: PETSc tests for each one */

  PetscFunctionBegin;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)like), C));
  PetscCall(MatSetSizes(*C, csr->m, csr->n, rows ? rows->rmap->N : csr->m, rows ? rows->cmap->N : csr->n));
  PetscCall(MatSetBlockSizes(*C, rbs, cbs));
  PetscCall(PetscLayoutSetUp((*C)->rmap));
  PetscCall(PetscLayoutSetUp((*C)->cmap));
  PetscCall(PetscObjectChangeTypeName((PetscObject)*C, rows ? MATMPIGPUCSRLEVEL : MATGPUCSRLEVEL));
  PetscCall(PetscNew(&g));
  g->base.config        = ((Mat_GPUCSR *)like->spptr)->config;
  g->base.devicevectors = ((Mat_GPUCSR *)like->spptr)->devicevectors;
  g->owner              = owner;
  g->release            = release;
  for (int s = 0; s < 2; s++) g->side[s] = side[s];
  for (int s = 0; s < 2 && rows; s++) g->ranks[s] = ranks[s];
  g->rows     = rows;
  (*C)->spptr = g;
  PetscCall(PetscFree((*C)->defaultvectype));
  PetscCall(PetscStrallocpy(like->defaultvectype, &(*C)->defaultvectype));
  (*C)->preallocated = (*C)->assembled = PETSC_TRUE;
#if PetscDefined(HAVE_DEVICE)
  (*C)->boundtocpu = PETSC_FALSE; /* PETSc creates every matrix bound */
#endif
  o = (*C)->ops;
#define INSTALL(op, formal, actual) \
  if (like->ops->op) o->op = op##_Becomes;
  GPUCSR_MAT_READERS(INSTALL)
  OTHERS(INSTALL)
  OF_TWO(INSTALL)
#undef INSTALL
  o->convert               = MatConvert_Becomes;
  o->productsetfromoptions = productsetfromoptions_Becomes;
  o->setoption             = setoption_Becomes;
  o->getdiagonal           = MatGetDiagonal_GPUCSRLevel;
  o->getinfo               = MatGetInfo_GPUCSRLevel;
  o->view                  = MatView_GPUCSRLevel;
  o->assemblybegin         = MatAssembly_GPUCSRLevel;
  o->assemblyend           = MatAssembly_GPUCSRLevel;
  o->getvecs               = MatCreateVecs_GPUCSR;
  o->destroy               = MatDestroy_GPUCSRLevel;
#define COMPOSE(function, formal, actual) PetscCall(PetscObjectComposeFunction((PetscObject)*C, #function "_C", function##_Becomes));
  COMPOSED(COMPOSE)
#undef COMPOSE
  PetscCall(PetscObjectComposeFunction((PetscObject)*C, "MatProductSetFromOptions_anytype_C", productsetfromoptions_Becomes)); /* products with other types */
  if (rows) {
    o->mult                        = MatMult_MPIGPUCSRLevel;
    o->multadd                     = MatMultAdd_MPIGPUCSRLevel;
    o->getrow                      = MatGetRow_MPIGPUCSRLevel;
    o->getvalues                   = MatGetValues_MPIGPUCSRLevel;
    o->setvalues                   = MatSetValues_MPIGPUCSRLevel;
    o->getghosts                   = MatGetGhosts_MPIGPUCSRLevel;
    o->getdiagonalblock            = MatGetDiagonalBlock_MPIGPUCSRLevel;
    o->invertblockdiagonal         = MatInvertBlockDiagonal_MPIGPUCSRLevel;
    o->invertvariableblockdiagonal = MatInvertVariableBlockDiagonal_MPIGPUCSRLevel;
    o->missingdiagonal             = MatMissingDiagonal_MPIGPUCSRLevel;
  }
  if (rows && side[GPUCSR_TRANSPOSE].dev) {
    o->multtranspose    = MatMultTranspose_MPIGPUCSRLevel;
    o->multtransposeadd = MatMultTransposeAdd_MPIGPUCSRLevel;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- factors ---- */

/* Packages for a MATSEQAIJGPUCSR; the first is PETSc's choice for a program without a choice */
#define PACKAGES(R) R(GPUCSR) R(CUDSS) R(PETSC) R(MUMPS) R(SUPERLU) R(SUPERLU_DIST) R(UMFPACK) R(CHOLMOD) R(KLU) R(SPQR) R(STRUMPACK) R(PASTIX) R(MKL_PARDISO) R(MKL_CPARDISO)

#define GETS_FACTOR(package) \
  static PetscErrorCode package##_Becomes(Mat A, MatFactorType type, Mat *F) \
  { \
    PetscFunctionBegin; \
    PetscCall(MatGPUCSRLevelBecome_Private(A)); \
    PetscCall(MatGetFactor(A, MATSOLVER##package, type, F)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
PACKAGES(GETS_FACTOR)

/* The packages of this PETSc, with their types of factors */
static PetscErrorCode Register(MatSolverType package, PetscErrorCode (*becomes)(Mat, MatFactorType, Mat *))
{
  static const MatFactorType types[]  = {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC, MAT_FACTOR_ILUDT, MAT_FACTOR_QR};
  static const MatType       of[2][2] = {
          {MATSEQAIJGPUCSR, MATGPUCSRLEVEL   },
          {MATMPIAIJGPUCSR, MATMPIGPUCSRLEVEL}
  };

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++)
    for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++) {
      PetscErrorCode (*make)(Mat, MatFactorType, Mat *) = NULL;

      PetscCall(MatSolverTypeGet(package, of[k][0], types[t], NULL, NULL, &make));
      if (make) PetscCall(MatSolverTypeRegister(package, of[k][1], types[t], becomes));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRLevelRegister_Private(void)
{
  PetscFunctionBegin;
#define REGISTER(package) PetscCall(Register(MATSOLVER##package, package##_Becomes));
  PACKAGES(REGISTER)
#undef REGISTER
  PetscFunctionReturn(PETSC_SUCCESS);
}
