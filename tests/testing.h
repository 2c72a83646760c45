#pragma once

/*
  What the tests of the Mat share: the type under test, the zoo as Mats, and the one rule by which two results are equal.

  A test compares a matrix of the type under test, A (-mat_type, gpucsr unless told otherwise), with the same matrix as MATAIJ, R.
  R has the options prefix ref_, so options for A do not reach R.
*/
#include <petscksp.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "zoo.h"

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/*
  Of any two orders of summing n products a*x, the results differ by less than n*eps*sum|a||x|, and for rounding errors of random sign by about
  sqrt(n)*eps times that sum at the worst. The zoo's longest row has 5000 entries; 32 leaves room for such a row, and a single
  missing entry would change the sum by far more.
*/
#define TEST_C 32.0

/* The unit of rounding of the product under test, from the precision it was asked to have */
static inline PetscErrorCode TestEps(PetscReal *eps)
{
  char      word[32] = "double";
  PetscBool single, mixed;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_precision", word, sizeof(word), NULL));
  PetscCall(PetscStrcmp(word, "single", &single));
  PetscCall(PetscStrcmp(word, "mixed", &mixed));
  *eps = PETSC_MACHINE_EPSILON;
  if (single || mixed) *eps = PetscMax(*eps, (PetscReal)FLT_EPSILON);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ends here, counted as skipped by run.sh */
static inline PetscErrorCode TestSkip(const char why[])
{
  PetscFunctionBegin;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "skipped: %s\n", why));
  PetscCall(PetscOptionsClear(NULL));
  PetscCall(PetscFinalize());
  exit(0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A name of the environment, for libraries that stand in for others; value NULL: without it */
static inline PetscErrorCode TestEnv(const char name[], const char value[])
{
  PetscFunctionBegin;
  PetscCheck(!(value ? setenv(name, value, 1) : unsetenv(name)), PETSC_COMM_SELF, PETSC_ERR_SYS, "The environment takes no %s", name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Skips unless PETSc has real double numbers (and, for 32, 32-bit indices): the formats need both so far */
static inline PetscErrorCode TestRequireReal(PetscInt bits)
{
  PetscFunctionBegin;
  if (PetscDefined(USE_COMPLEX) || !PetscDefined(USE_REAL_DOUBLE) || (bits == 32 && PetscDefined(USE_64BIT_INDICES))) PetscCall(TestSkip("not for numbers or indices of this PETSc"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Skips in a PETSc with CUDA from 3.20 on, where VECCUDA is the type gpu */
static inline PetscErrorCode TestRequireVecGPU(void)
{
  Vec       v;
  PetscBool cuda;

  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_WORLD, &v));
  PetscCall(VecSetSizes(v, 1, PETSC_DECIDE));
  PetscCall(VecSetType(v, "gpu"));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, &cuda, VECSEQCUDA, VECMPICUDA, ""));
  PetscCall(VecDestroy(&v));
  if (cuda) PetscCall(TestSkip("the type gpu is VECCUDA in this PETSc"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -share R,M takes every M-th case, from R on: a slow tool takes a test in parts */
static inline PetscErrorCode TestShare(PetscInt number, PetscBool *mine)
{
  PetscInt  share[2] = {0, 1}, n = 2;
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-share", share, &n, &set));
  PetscCheck(!set || (n == 2 && share[1] > 0), PETSC_COMM_SELF, PETSC_ERR_USER, "-share wants R,M");
  *mine = (PetscBool)(number % share[1] == share[0]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the format or kernel that was asked for take the matrix, and its transpose? Some are for matrices of one kind, and say so */
static inline PetscErrorCode TestTakes(Mat A, PetscBool *takes)
{
  Vec            x[2], y[2];
  PetscErrorCode ierr[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreateVecs(A, k ? &y[k] : &x[k], k ? &x[k] : &y[k]));
    PetscCall(VecSet(x[k], 1.0));
  }
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr[0] = MatMult(A, x[0], y[0]);
  ierr[1] = MatMultTranspose(A, x[1], y[1]);
  PetscCall(PetscPopErrorHandler());
  *takes = PETSC_TRUE;
  for (int k = 0; k < 2; k++) {
    if (ierr[k] == PETSC_ERR_SUP) *takes = PETSC_FALSE;
    else PetscCall(ierr[k]);
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&y[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The type under test; an error if it is gpucsr and the library is not loaded */
static inline PetscErrorCode TestType(char type[], size_t length)
{
  PetscBool ours;
  PetscErrorCode (*create)(Mat) = NULL;

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(type, "gpucsr", length));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, length, NULL));
  PetscCall(PetscStrendswith(type, "gpucsr", &ours));
  if (ours) PetscCall(PetscFunctionListFind(MatList, "seqaijgpucsr", &create));
  PetscCheck(!ours || create, PETSC_COMM_WORLD, PETSC_ERR_ARG_UNKNOWN_TYPE, "Matrix type %s is not known: run with -dll_append build/lib/libpetscgpucsr.so", type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v is of this type and of no other */
static inline PetscErrorCode TestVecType(Vec v, VecType type, const char what[])
{
  PetscBool same;
  VecType   t;

  PetscFunctionBegin;
  PetscCall(VecGetType(v, &t));
  PetscCall(PetscStrcmp(t, type, &same));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is of type %s, should be %s", what, t, type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An m by n matrix without values: of the type under test, or (ref) MATAIJ for comparison; -standard_vectors: with host vectors */
static inline PetscErrorCode TestMatCreate(MPI_Comm comm, PetscInt m, PetscInt n, PetscBool ref, Mat *A)
{
  char      type[64];
  PetscBool standard = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-standard_vectors", &standard, NULL));
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, m, n));
  if (ref) {
    PetscCall(MatSetOptionsPrefix(*A, "ref_"));
    PetscCall(MatSetType(*A, MATAIJ));
  } else {
    PetscCall(TestType(type, sizeof(type)));
    PetscCall(MatSetType(*A, type));
  }
  PetscCall(MatSetFromOptions(*A));
  if (standard) {
    PetscMPIInt size;

    PetscCallMPI(MPI_Comm_size(comm, &size));
    PetscCall(MatSetVecType(*A, size > 1 ? VECMPI : VECSEQ)); /* VECSTANDARD is also the answer for vectors on the device */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of the zoo, by rows over the ranks; every rank adds its own rows as the zoo has them, unsorted and in parts too */
static inline PetscErrorCode TestZoo(MPI_Comm comm, PetscInt which, PetscBool special, PetscBool ref, Mat *A)
{
  Zoo         z;
  PetscLayout rows, cols;
  PetscInt    rs, re, nl, *dnz, *onz;

  PetscFunctionBegin;
  PetscCall(ZooCreate(which, special, &z));
  PetscCall(TestMatCreate(comm, z.m, z.n, ref, A));
  PetscCall(MatGetLayouts(*A, &rows, &cols));
  PetscCall(PetscLayoutSetUp(rows));
  PetscCall(PetscLayoutSetUp(cols));
  PetscCall(PetscLayoutGetRange(rows, &rs, &re));
  PetscCall(PetscLayoutGetLocalSize(cols, &nl));
  PetscCall(PetscMalloc2(re - rs, &dnz, re - rs, &onz));
  for (PetscInt r = rs; r < re; r++) {
    dnz[r - rs] = PetscMin(z.i[r + 1] - z.i[r], nl);
    onz[r - rs] = PetscMin(z.i[r + 1] - z.i[r], z.n - nl);
  }
  PetscCall(MatXAIJSetPreallocation(*A, 1, dnz, onz, NULL, NULL));
  PetscCall(PetscFree2(dnz, onz));
  for (PetscInt r = rs; r < re; r++) PetscCall(MatSetValues(*A, 1, &r, z.i[r + 1] - z.i[r], z.j + z.i[r], z.a + z.i[r], ADD_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(ZooDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The 5-point matrix of -laplace(u) + 2c du/dx + c du/dy on the k by k grid, upwind: symmetric and definite for c = 0 */
static inline PetscErrorCode TestConvection(MPI_Comm comm, PetscInt k, PetscReal c, PetscBool ref, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(comm, k * k, k * k, ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 5, NULL, 4, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt    col[5] = {r >= k ? r - k : -1, r % k ? r - 1 : -1, r, (r + 1) % k ? r + 1 : -1, r + k < k * k ? r + k : -1}; /* those below 0 are left out */
    const PetscScalar v[5]   = {-1.0 - c, -1.0 - 2.0 * c, 4.0 + 3.0 * c, -1.0, -1.0};

    PetscCall(MatSetValues(*A, 1, &r, 5, col, v, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  if (c == 0.0) PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B = |R|, entry by entry, for the bounds */
static inline PetscErrorCode TestAbs(Mat R, Mat *B)
{
  PetscInt           rs, re, n, length = 0;
  const PetscInt    *cols;
  const PetscScalar *v;
  PetscScalar       *w;

  PetscFunctionBegin;
  PetscCall(MatGetSize(R, NULL, &n));
  PetscCall(PetscMalloc1(n, &w));
  PetscCall(MatDuplicate(R, MAT_COPY_VALUES, B));
  PetscCall(MatGetOwnershipRange(R, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatGetRow(R, r, &length, &cols, &v));
    for (PetscInt k = 0; k < length; k++) w[k] = PetscAbsScalar(v[k]);
    PetscCall(MatSetValues(*B, 1, &r, length, cols, w, INSERT_VALUES));
    PetscCall(MatRestoreRow(R, r, &length, &cols, &v));
  }
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscFree(w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A call that ends in an error leaves the vectors that it reads locked in PETSc 3.24 */
static inline PetscErrorCode TestUnlock(Vec x)
{
  PetscInt locks;

  PetscFunctionBegin;
  PetscCall(VecLockGet(x, &locks));
  for (; locks > 0; locks--) PetscCall(VecLockReadPop(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The zoo's vector `seed`, whatever the number of ranks */
static inline PetscErrorCode TestFill(Vec x, PetscInt seed, PetscBool special)
{
  PetscInt     n, rs, re;
  PetscScalar *all, *v;

  PetscFunctionBegin;
  PetscCall(TestUnlock(x));
  PetscCall(VecGetSize(x, &n));
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(PetscMalloc1(n, &all));
  PetscCall(ZooFill(n, seed, special, all));
  PetscCall(VecGetArrayWrite(x, &v));
  for (PetscInt r = rs; r < re; r++) v[r - rs] = all[r];
  PetscCall(VecRestoreArrayWrite(x, &v));
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is y as good a result as r, with the bound b on their difference? Both must be infinite or NaN in the same entries. */
static inline PetscBool TestSame(PetscScalar y, PetscScalar r, PetscReal b)
{
  if (PetscIsInfOrNanScalar(r)) {
    if (PetscDefined(USE_COMPLEX)) return PetscIsInfOrNanScalar(y); /* which of the two depends on the compiler's complex product */
    return (PetscBool)(PetscIsNanScalar(r) ? PetscIsNanScalar(y) : y == r);
  }
  return (PetscBool)(PetscAbsScalar(y - r) <= b);
}

/* |y - ref| <= c eps bound in every entry; `what` and `where` say in the error which product of which matrix this is */
static inline PetscErrorCode TestClose(Vec y, Vec ref, Vec bound, const char what[], const char where[])
{
  PetscInt           rs, re;
  PetscReal          eps = 0.0;
  const PetscScalar *a, *r, *b;

  PetscFunctionBegin;
  PetscCall(TestEps(&eps));
  PetscCall(VecGetOwnershipRange(ref, &rs, &re));
  PetscCall(VecGetArrayRead(y, &a));
  PetscCall(VecGetArrayRead(ref, &r));
  PetscCall(VecGetArrayRead(bound, &b));
  for (PetscInt k = 0; k < re - rs; k++) {
    const PetscReal allowed = TEST_C * eps * PetscRealPart(b[k]);

    PetscCheck(TestSame(a[k], r[k], allowed), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: row %" PetscInt_FMT " is %.17g, should be %.17g, may differ by %g", where, what, rs + k, (double)PetscRealPart(a[k]), (double)PetscRealPart(r[k]), (double)allowed);
  }
  PetscCall(VecRestoreArrayRead(y, &a));
  PetscCall(VecRestoreArrayRead(ref, &r));
  PetscCall(VecRestoreArrayRead(bound, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y within c eps |ref| of ref: for results that are no sums of products */
static inline PetscErrorCode TestCloseVec(Vec y, Vec ref, const char what[], const char where[])
{
  Vec bound;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(ref, &bound));
  PetscCall(VecCopy(ref, bound));
  PetscCall(VecAbs(bound));
  PetscCall(TestClose(y, ref, bound, what, where));
  PetscCall(VecDestroy(&bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  TEST_N,
  TEST_T,
  TEST_H,
  TEST_KINDS
} TestKind; /* A, its transpose, its Hermitian transpose */

static const char *const TestNames[TEST_KINDS][3] = {
  {"MatMult",                   "MatMultAdd",                   "MatMultAdd in place"                  },
  {"MatMultTranspose",          "MatMultTransposeAdd",          "MatMultTransposeAdd in place"         },
  {"MatMultHermitianTranspose", "MatMultHermitianTransposeAdd", "MatMultHermitianTransposeAdd in place"}
};

/* Has the view of a PC this text? */
static inline PetscErrorCode TestPCSays(PC pc, const char text[], PetscBool *says)
{
  FILE       *file = tmpfile();
  char        line[512];
  int         found = 0;
  PetscViewer viewer;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIOpenWithFILE(PetscObjectComm((PetscObject)pc), file, &viewer));
  PetscCall(PCView(pc, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  rewind(file);
  while (fgets(line, sizeof(line), file))
    if (strstr(line, text)) found = 1;
  fclose(file);
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)pc)));
  *says = (PetscBool)found;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = op(A) x for add 0, z = y + op(A) x for add 1, z = z + op(A) x for add 2 */
static inline PetscErrorCode TestProduct(Mat A, PetscInt kind, PetscInt add, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  if (add == 2) {
    PetscCall(VecCopy(y, z));
    y = z;
  }
  switch (kind) {
  case TEST_N:
    if (add) PetscCall(MatMultAdd(A, x, y, z));
    else PetscCall(MatMult(A, x, z));
    break;
  case TEST_T:
    if (add) PetscCall(MatMultTransposeAdd(A, x, y, z));
    else PetscCall(MatMultTranspose(A, x, z));
    break;
  default:
    if (add) PetscCall(MatMultHermitianTransposeAdd(A, x, y, z));
    else PetscCall(MatMultHermitianTranspose(A, x, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  TestProductsBound - Check all nine products with A against those with R

  Input Parameters:
+ A       - the matrix under test, its vectors are those MatCreateVecs() makes
. R       - the reference, of the same layout
. B       - |R|
. special - put infinities and a NaN into the vectors that are multiplied
- where   - names the matrix in an error
*/
static inline PetscErrorCode TestProductsBound(Mat A, Mat R, Mat B, PetscBool special, const char where[])
{
  Vec  a[2], b[2], c[2], r[2], s[2], t[2], u[2], v[2], w[2]; /* input, addend, result: of A, of R, of the bound; [0] as long as a row, [1] as a column */
  Vec *all[] = {a, b, c, r, s, t, u, v, w};

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &a[0], &a[1]));
  PetscCall(MatCreateVecs(R, &r[0], &r[1]));
  for (PetscInt k = 0; k < 2; k++) {
    for (PetscInt l = 1; l < 9; l++)
      if (l != 3) PetscCall(VecDuplicate(l < 3 ? a[k] : r[k], &all[l][k]));
    PetscCall(TestFill(a[k], k, special));
    PetscCall(TestFill(r[k], k, special));
    PetscCall(TestFill(b[k], 2 + k, PETSC_FALSE));
    PetscCall(TestFill(s[k], 2 + k, PETSC_FALSE));
    PetscCall(VecCopy(r[k], u[k]));
    PetscCall(VecAbs(u[k]));
    PetscCall(VecCopy(s[k], v[k]));
    PetscCall(VecAbs(v[k]));
  }
  for (PetscInt kind = 0; kind < TEST_KINDS; kind++) {
    const PetscInt in = kind == TEST_N ? 0 : 1, out = 1 - in;

    for (PetscInt add = 0; add < 3; add++) {
      PetscCall(VecSet(c[out], -7.0)); /* what an earlier product left must not matter */
      PetscCall(TestProduct(A, kind, add, a[in], b[out], c[out]));
      PetscCall(TestProduct(R, kind, add, r[in], s[out], t[out]));
      PetscCall(TestProduct(B, kind, add, u[in], v[out], w[out]));
      PetscCall(TestClose(c[out], t[out], w[out], TestNames[kind][add], where));
      PetscCall(TestCloseVec(a[in], r[in], "the vector multiplied, after", where));
      PetscCall(TestCloseVec(b[out], s[out], "the vector added, after", where));
    }
  }
  for (PetscInt k = 0; k < 2; k++)
    for (PetscInt l = 0; l < 9; l++) PetscCall(VecDestroy(&all[l][k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same where R is a MATAIJ */
static inline PetscErrorCode TestProducts(Mat A, Mat R, PetscBool special, const char where[])
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(TestAbs(R, &B));
  PetscCall(TestProductsBound(A, R, B, special, where));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}
