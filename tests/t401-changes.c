//TEST name="default"
//TEST name="format" args="-mat_gpucsr_format {}" loop="aij sell bitdense sell_256 coo hyb jad"
//TEST name="single" args="-mat_gpucsr_format {} -mat_gpucsr_precision single" loop="csr sell bitdense"
//TEST name="auto" args="-mat_gpucsr_format {} -mat_gpucsr_precision auto" loop="csr sell"
//TEST name="assembly" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_at_assembly"
//TEST name="ranks" nsize=3 args="-mat_gpucsr_format {}" loop="aij sell"
//TEST name="ranks2" nsize=2 args="-mat_gpucsr_format csr"
//TEST name="ranks4" nsize=4 args="-mat_gpucsr_format sell -mat_gpucsr_transpose_format csr"
//TEST name="kernel" args="-mat_gpucsr_kernel {}" loop="{kernels}" gpu=1
//TEST name="standin" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format {}" loop="csr sell coo"
//TEST name="large" gpu=0 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -large -mat_gpucsr_format {}" loop="auto csr sell"
//TEST name="large" args="-large -mat_gpucsr_format {}" loop="auto csr sell bcsr2x2" gpu=1
//TEST name="aij" nsize=2 args="-mat_type aij" load=0
//TEST name="malloc" args="-mat_gpucsr_format csr -malloc_debug -malloc_dump"
//TEST name="vecgpu" nsize=3 args="-vec_type gpu -vec_gpu_separate -mat_gpucsr_format csr"

/*
  A matrix that changes between products: each product uses the changed values. The resident copy is
  rebuilt if the pattern changed, refreshed if only values changed, and kept if nothing changed.

    build/tests/t401-changes [-mat_type gpucsr] [-mat_gpucsr_...]      (linked with the library, for MatGPUCSRGetInfo())
*/
#include "testing.h"
#include <petscgpucsr.h>

/* On both resident copies, of A and of its transpose */
typedef enum {
  NOTHING, /* it stays as it is */
  VALUES,  /* one refresh, no build */
  PATTERN, /* one build, no refresh */
  EITHER   /* the one or the other, as MATAIJ makes of it; or none */
} Effect;

/* Another matrix of A's type: the same pattern for shift 0, else an entry in each row moved to another column; MATAIJ where A is */
static PetscErrorCode Another(Mat A, PetscInt shift, Mat *B)
{
  PetscInt  n, rs, re;
  PetscBool ref;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &ref, MATSEQAIJ, MATMPIAIJ, ""));
  if (!shift) {
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
    PetscCall(MatScale(*B, 0.5));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(TestMatCreate(PetscObjectComm((PetscObject)A), n, n, ref, B));
  PetscCall(MatSetUp(*B));
  PetscCall(MatGetOwnershipRange(*B, &rs, &re));
  for (PetscInt r = rs; r < re; r++) PetscCall(MatSetValue(*B, r, (r * 7 + shift) % n, ZooScalar(shift, r, 0), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalVector(Mat A, PetscInt seed, Vec *d)
{
  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, NULL, d));
  PetscCall(TestFill(*d, seed, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nothing(Mat A)
{
  (void)A;
  return PETSC_SUCCESS;
}

static PetscErrorCode Read(Mat A)
{
  PetscReal norm;
  Vec       d;

  PetscFunctionBegin;
  PetscCall(MatNorm(A, NORM_FROBENIUS, &norm));
  PetscCall(DiagonalVector(A, 1, &d));
  PetscCall(MatGetDiagonal(A, d));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assemble(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetDiagonalEntries(Mat A, InsertMode mode)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) PetscCall(MatSetValue(A, r, r, ZooScalar(99, r, mode), mode));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetValuesInsert(Mat A)
{
  return SetDiagonalEntries(A, INSERT_VALUES);
}

static PetscErrorCode SetValuesAdd(Mat A)
{
  return SetDiagonalEntries(A, ADD_VALUES);
}

static PetscErrorCode SetValuesElsewhere(Mat A) /* on the first rank into the last one's rows */
{
  const PetscInt zero = 0;
  PetscInt       n, last;
  PetscScalar    v = 2.25;
  PetscMPIInt    rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)A), &rank));
  PetscCall(MatGetSize(A, &n, NULL));
  last = n - 1;
  if (!rank) PetscCall(MatSetValues(A, 1, &last, 1, &last, &v, ADD_VALUES));
  if (!rank) PetscCall(MatSetValues(A, 1, &zero, 1, &zero, &v, ADD_VALUES));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewEntry(Mat A)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetValue(A, 0, n - 1, 3.5, ADD_VALUES));
  PetscCall(MatSetValue(A, n - 1, 0, -1.5, ADD_VALUES));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scale(Mat A)
{
  return MatScale(A, -1.75);
}

static PetscErrorCode Shift(Mat A)
{
  return MatShift(A, 0.625);
}

static PetscErrorCode Axpy(Mat A, PetscInt shift, MatStructure structure)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Another(A, shift, &B));
  PetscCall(MatAXPY(A, 1.25, B, structure));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AxpySame(Mat A)
{
  return Axpy(A, 0, SAME_NONZERO_PATTERN);
}

static PetscErrorCode AxpyDifferent(Mat A)
{
  return Axpy(A, 3, DIFFERENT_NONZERO_PATTERN);
}

static PetscErrorCode AxpySubset(Mat A) /* once more the pattern that AxpyDifferent() brought in */
{
  return Axpy(A, 3, SUBSET_NONZERO_PATTERN);
}

static PetscErrorCode Aypx(Mat A)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Another(A, 0, &B));
  PetscCall(MatAYPX(A, -0.5, B, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalScale(Mat A)
{
  Vec l, r;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &r, NULL));
  PetscCall(TestFill(r, 12, PETSC_FALSE));
  PetscCall(DiagonalVector(A, 11, &l));
  PetscCall(MatDiagonalScale(A, l, r));
  PetscCall(MatDiagonalScale(A, l, NULL));
  PetscCall(MatDiagonalScale(A, NULL, r));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalSet(Mat A)
{
  Vec d;

  PetscFunctionBegin;
  PetscCall(DiagonalVector(A, 13, &d));
  PetscCall(MatDiagonalSet(A, d, INSERT_VALUES));
  PetscCall(MatDiagonalSet(A, d, ADD_VALUES));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroEntries(Mat A)
{
  return MatZeroEntries(A);
}

static PetscErrorCode FillAgain(Mat A)
{
  PetscFunctionBegin;
  PetscCall(SetDiagonalEntries(A, INSERT_VALUES));
  PetscCall(AxpyDifferent(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroSomeRows(Mat A, PetscBool columns, PetscBool keep)
{
  PetscInt rs, re, rows[2];

  PetscFunctionBegin;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, keep));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  rows[0] = rs;
  rows[1] = (rs + re) / 2;
  if (columns) PetscCall(MatZeroRowsColumns(A, 2, rows, 1.5, NULL, NULL));
  else PetscCall(MatZeroRows(A, 2, rows, 1.5, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsKeep(Mat A)
{
  return ZeroSomeRows(A, PETSC_FALSE, PETSC_TRUE);
}

static PetscErrorCode ZeroRows(Mat A)
{
  return ZeroSomeRows(A, PETSC_FALSE, PETSC_FALSE);
}

static PetscErrorCode ZeroRowsColumns(Mat A)
{
  return ZeroSomeRows(A, PETSC_TRUE, PETSC_TRUE);
}

static PetscErrorCode CopySame(Mat A)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Another(A, 0, &B));
  PetscCall(MatCopy(B, A, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyDifferent(Mat A)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Another(A, 5, &B));
  PetscCall(MatCopy(B, A, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReplaceHeader(Mat A)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Another(A, 6, &B));
  PetscCall(MatHeaderReplace(A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The local block's array, if there is one: written through each door that PETSc has */
static PetscErrorCode WriteArray(Mat A)
{
  Mat          local = A;
  PetscBool    mpi;
  PetscInt     m;
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &local, NULL, NULL));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatSeqAIJGetArray(local, &v));
  if (m) v[0] += 4.0;
  PetscCall(MatSeqAIJRestoreArray(local, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RealPart(Mat A) /* in a real PETSc nothing happens to the values; a refresh is allowed */
{
  PetscFunctionBegin;
  PetscCall(MatConjugate(A));
  PetscCall(MatRealPart(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Chop(Mat A)
{
  PetscFunctionBegin;
#if PETSC_VERSION_LT(3, 20, 0)
  PetscCall(MatChop(A, 0.3));
#else
  PetscCall(MatFilter(A, 0.3, PETSC_FALSE, PETSC_FALSE));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of one entry, which a look at some of the values would miss */
static PetscErrorCode Store(Mat A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatStoreValues(A));
  if (re > rs) PetscCall(MatSetValue(A, rs + (re - rs) / 3, rs + (re - rs) / 3, 17.0, INSERT_VALUES));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Retrieve(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatRetrieveValues(A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeInPlace(Mat A)
{
  return MatTranspose(A, MAT_INPLACE_MATRIX, &A);
}

static PetscErrorCode Bind(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(MatScale(A, 1.5));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConvertThereAndBack(Mat A)
{
  MatType name;
  char    type[64], parent[64];

  PetscFunctionBegin;
  PetscCall(MatGetType(A, &name));
  PetscCall(PetscStrncpy(type, name, sizeof(type)));
  PetscCall(PetscStrncpy(parent, type, sizeof(parent)));
  parent[6] = 0; /* seqaij or mpiaij */
  PetscCall(MatConvert(A, parent, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatScale(A, 0.75));
  PetscCall(MatConvert(A, type, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* COO: a new pattern, the third of which is of as many entries as the first; or new values for the last */
static PetscErrorCode Coo(Mat A, PetscBool pattern, PetscInt stride)
{
  PetscInt     rs, re, n, k = 0, *i, *j;
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(PetscMalloc3(4 * (re - rs), &i, 4 * (re - rs), &j, 4 * (re - rs), &v));
  for (PetscInt r = rs; r < re; r++) {
    for (PetscInt l = 0; l < 4; l++, k++) { /* the last repeats the first: to be added */
      i[k] = (r + re) % n;                  /* rows of other ranks too */
      j[k] = l == 3 ? i[k] : (i[k] + stride * l) % n;
      v[k] = ZooScalar(77 + (pattern ? 1 : 0), r, l);
    }
  }
  if (pattern) PetscCall(MatSetPreallocationCOO(A, k, i, j));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  if (!pattern) PetscCall(MatSetValuesCOO(A, v, ADD_VALUES));
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CooPattern(Mat A)
{
  return Coo(A, PETSC_TRUE, 13);
}

static PetscErrorCode CooValues(Mat A)
{
  return Coo(A, PETSC_FALSE, 13);
}

static PetscErrorCode CooOther(Mat A)
{
  return Coo(A, PETSC_TRUE, 11);
}

/* Preallocated and filled again, as an application does whose mesh has changed */
static PetscErrorCode PreallocateWith(Mat A, PetscInt stride)
{
  PetscInt rs, re, n;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(MatSeqAIJSetPreallocation(A, 3, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 3, NULL, 3, NULL));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt    cols[] = {r, (r + 1) % n, (r + n / 2 + stride) % n};
    const PetscScalar v[]    = {4.0, -1.5, ZooScalar(55, r, 0)};

    PetscCall(MatSetValues(A, 1, &r, 3, cols, v, ADD_VALUES));
  }
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocate(Mat A)
{
  return PreallocateWith(A, 0);
}

static PetscErrorCode PreallocateOther(Mat A)
{
  return PreallocateWith(A, 3);
}

/* In this order, each on the result of the one before */
static const struct {
  const char *name;
  PetscErrorCode (*change)(Mat);
  Effect effect;
} changes[] = {
  {"nothing",                         Nothing,             NOTHING},
  {"reading",                         Read,                NOTHING},
  {"MatSetValues",                    SetValuesInsert,     VALUES },
  {"MatSetValues, added",             SetValuesAdd,        VALUES },
  {"MatSetValues for another rank",   SetValuesElsewhere,  EITHER },
  {"MatSetValues, new entries",       NewEntry,            PATTERN},
  {"MatScale",                        Scale,               VALUES },
  {"MatShift",                        Shift,               VALUES },
  {"MatAXPY, same pattern",           AxpySame,            VALUES },
  {"MatAXPY, different pattern",      AxpyDifferent,       PATTERN},
  {"MatAXPY, subset pattern",         AxpySubset,          VALUES },
  {"MatAYPX",                         Aypx,                VALUES },
  {"MatDiagonalScale",                DiagonalScale,       VALUES },
  {"MatDiagonalSet",                  DiagonalSet,         VALUES },
  {"MatSeqAIJGetArray",               WriteArray,          VALUES },
  {"MatZeroRows, pattern kept",       ZeroRowsKeep,        VALUES },
  {"MatZeroRows",                     ZeroRows,            EITHER },
  {"MatZeroRowsColumns",              ZeroRowsColumns,     EITHER },
  {"MatZeroEntries",                  ZeroEntries,         VALUES },
  {"MatZeroEntries, then values",     FillAgain,           EITHER },
  {"MatCopy, same pattern",           CopySame,            VALUES },
  {"MatCopy, different pattern",      CopyDifferent,       EITHER },
  {"MatHeaderReplace",                ReplaceHeader,       EITHER },
  {"MatConjugate and MatRealPart",    RealPart,            EITHER },
  {"MatStoreValues, then one set",    Store,               VALUES },
  {"MatRetrieveValues",               Retrieve,            VALUES },
  {"MatBindToCPU",                    Bind,                EITHER },
  {"MatConvert in place, both ways",  ConvertThereAndBack, EITHER },
  {"MatTranspose in place",           TransposeInPlace,    EITHER },
  {"MatFilter",                       Chop,                EITHER },
  {"MatSetPreallocationCOO",          CooPattern,          EITHER },
  {"MatSetValuesCOO",                 CooValues,           VALUES },
  {"MatSetPreallocationCOO, another", CooOther,            EITHER },
  {"COO as at first",                 CooPattern,          EITHER },
  {"preallocated anew",               Preallocate,         EITHER },
  {"preallocated for another",        PreallocateOther,    EITHER },
  {"preallocated as at first",        Preallocate,         EITHER },
  {"MatSetValues after that",         SetValuesAdd,        VALUES },
};

/*
  What a change cost, by the counters. PETSc makes some new patterns in another matrix, whose inside then replaces A's, or replaces A's
  off-diagonal block. The new counters start at 0, and the sums over two blocks say nothing. With the transpose made at assembly, a
  change that assembles on its way is followed more than once. A transpose is built again if its format follows new values only with the
  pattern at hand; in CSR the transpose is never rebuilt. A stencil is rebuilt too, when its rows are no longer alike.
*/
static PetscErrorCode CheckCounters(MatGPUCSRInfo before, MatGPUCSRInfo after, Effect effect, PetscMPIInt size, PetscBool early, const char name[])
{
  PetscInt  builds, transposes, refreshes;
  PetscBool right      = PETSC_TRUE, csr, was, alike;
  char      format[32] = "";

  PetscFunctionBegin;
  if (after.products <= before.products) before.builds = before.transpose_builds = before.refreshes = 0;
  builds     = after.builds - before.builds;
  transposes = after.transpose_builds - before.transpose_builds;
  refreshes  = after.refreshes - before.refreshes;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_transpose_format", format, sizeof(format), NULL));
  PetscCall(PetscStrcmp(size > 1 ? format : after.transpose_format, "csr", &csr)); /* with several blocks, only the request is known */
  PetscCall(PetscStrcmp(size > 1 ? format : before.transpose_format, "csr", &was));
  PetscCall(PetscStrcmp(before.format, "stencil", &alike));
  if (effect == NOTHING) right = (PetscBool)(!builds && !transposes && !refreshes);
  else if (effect == VALUES) right = (PetscBool)((!builds || alike) && (!transposes || !csr || !was) && builds + refreshes + transposes >= 2 && (builds + refreshes + transposes <= (size > 1 ? 4 : 2) || early));
  else if (size == 1 && !early) {
    right = (PetscBool)(builds <= 1 && transposes <= 1 && builds + transposes + refreshes == 2 && (transposes >= builds || alike) && (transposes <= builds || !csr || !was));
    if (effect == PATTERN) right = (PetscBool)(right && builds);
  }
  PetscCheck(right, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, then nine products: %" PetscInt_FMT " builds of A, %" PetscInt_FMT " of its transpose and %" PetscInt_FMT " refreshes are not what this should cost", name, builds, transposes, refreshes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat           A, R;
  PetscBool     ours, chosen, early = PETSC_FALSE, large = PETSC_FALSE;
  PetscMPIInt   size;
  char          precision[32] = "";
  MatGPUCSRInfo before, after;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-large", &large, NULL)); /* the matrix in CSR stays beside the plan for some products */
  PetscCall(TestConvection(PETSC_COMM_WORLD, large ? 150 : 12, 0.5, PETSC_FALSE, &A));
  PetscCall(TestConvection(PETSC_COMM_WORLD, large ? 150 : 12, 0.5, PETSC_TRUE, &R));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_gpucsr_transpose_at_assembly", &early, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_precision", precision, sizeof(precision), NULL));
  PetscCall(PetscStrcmp(precision, "auto", &chosen)); /* by the values, so that other values may need another plan */
  PetscCall(TestProducts(A, R, PETSC_FALSE, "as it was made"));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(changes); k++) {
    PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &ours, MATSEQAIJGPUCSR, MATMPIAIJGPUCSR, ""));
    if (ours) PetscCall(MatGPUCSRGetInfo(A, &before));
    PetscCall(changes[k].change(A));
    PetscCall(changes[k].change(R));
    PetscCall(TestProducts(A, R, PETSC_FALSE, changes[k].name));
    /* products that are MATAIJ's own have nothing to build */
    if (ours) PetscCall(MatGPUCSRGetInfo(A, &after));
    if (ours && strcmp(after.format, "aij")) PetscCall(CheckCounters(before, after, chosen && changes[k].effect ? EITHER : changes[k].effect, size, early, changes[k].name));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}
