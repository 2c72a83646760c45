//TEST name="default" args=""
//TEST name="small" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1" gpu=0
//TEST name="gpu" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -vec_type gpu" gpu=1
//TEST name="gpu_master" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -vec_type gpu -mat_gpucsr_master device" gpu=1
//TEST name="standin" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu" gpu=0
//TEST name="master" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" gpu=0
//TEST name="late" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -gpucsr_debug_defer {} -mat_gpucsr_master device" loop="0 1 2" gpu=0
//TEST name="delay" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -vec_type gpu -gpucsr_debug_delay {}" loop="1 2" gpu=1
//TEST name="delay_standin" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -gpucsr_debug_delay 1" gpu=0
//TEST name="ranks" nsize=3 args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend auto -gpucsr_debug_standin 1 -vec_type gpu" gpu=0
//TEST name="ranks_master" nsize=2 args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" gpu=0
//TEST name="ranks_host" nsize=2 args="" gpu=0
//TEST name="ranks_gpu" nsize=2 args="-mat_gpucsr_backend cuda -vec_type gpu" gpu=1
//TEST name="ranks_late" nsize=2 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 1 -vec_type gpu" gpu=0
//TEST name="faults" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend auto -gpucsr_debug_standin 1 -gpucsr_debug_fault {}" loop="memory:1 memory:5 memory:9 copy:3 copy:6 copy:9 launch:1 launch:2 launch:3 device:15:on device:25:on device:40:on" warns="" gpu=0
//TEST name="beyond" args="-beyond -mat_gpucsr_product_least 0 -mat_gpucsr_backend auto -gpucsr_debug_standin 1" fails="has row 3 and column 41 of a matrix" gpu=0
//TEST name="beyond_host" args="-beyond" fails="has row 3 and column 41 of a matrix"
//TEST name="no_pattern" args="-no_pattern" fails="The matrix has no coordinates: call MatSetPreallocationCOO()"
//TEST name="freed" args="-freed -mat_gpucsr_product_least 0 -mat_gpucsr_backend auto -gpucsr_debug_standin 1" fails="is neither the host's nor a device's that this matrix uses: was it freed?" gpu=0

/*
  MatSetPreallocationCOO(), its local variant and MatSetValuesCOO() of the type under test against MATAIJ's MatSetValues(). Contributions repeat, are
  skipped or come from other ranks; modes are INSERT and ADD; values are on the host or the device. Duplicates, conversions and another pattern
  follow; every run has the same bits.
*/
static char help[] = "Tests assembly by coordinates.\n";

#include "testing.h"
#include <petscgpucsr.h>
#include <sys/mman.h>

#define ROUNDS 4

typedef struct {
  PetscInt   m, n; /* of the matrix */
  PetscCount len;
  PetscInt  *i, *j; /* of this rank */
} List;

/* The k-th contribution of round r: whole numbers in odd rounds */
static PetscScalar Value(PetscInt seed, PetscCount k, PetscInt r)
{
  return r % 2 ? (PetscScalar)(PetscInt)(10 * ZooReal(seed, (PetscInt)k, r)) : ZooScalar(seed, (PetscInt)k, r);
}

static PetscErrorCode ListMake(PetscInt m, PetscInt n, PetscCount len, PetscInt seed, List *l)
{
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  *l = (List){m, n, len, NULL, NULL};
  PetscCall(PetscMalloc2((size_t)len, &l->i, (size_t)len, &l->j));
  for (PetscCount k = 0; k < len; k++) {
    const PetscReal x = PetscAbsReal(ZooReal(seed + 100 * rank, (PetscInt)k, 1)), y = PetscAbsReal(ZooReal(seed + 100 * rank, (PetscInt)k, 2)), z = ZooReal(seed + 100 * rank, (PetscInt)k, 3);

    l->i[k] = PetscMin(m - 1, (PetscInt)(x * m));
    l->j[k] = z > 0 ? PetscMin(n - 1, (PetscInt)(y * n)) : PetscMin(n - 1, l->i[k] + (PetscInt)(4 * y)); /* half of it near the diagonal, often repeated */
    if (z > 0.95) l->i[k] = -1;
    if (z < -0.95) l->j[k] = -2;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A + or = the list, in R, by MatSetValues(); bound: of the sums of absolute values */
static PetscErrorCode Reference(Mat R, const List *l, const PetscScalar v[], InsertMode mode, PetscBool absolute)
{
  PetscFunctionBegin;
  if (mode == INSERT_VALUES) PetscCall(MatZeroEntries(R));
  for (PetscCount k = 0; k < l->len; k++) {
    const PetscScalar a = v ? (absolute ? PetscAbsScalar(v[k]) : v[k]) : 0;

    PetscCall(MatSetValues(R, 1, &l->i[k], 1, &l->j[k], &a, ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(R, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(R, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products, transposed products and rows */
static PetscErrorCode Compare(Mat A, Mat R, Mat B, const char where[])
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(TestProductsBound(A, R, B, PETSC_FALSE, where));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r += 3) {
    PetscInt           n[3];
    const PetscInt    *c[3];
    const PetscScalar *v[3];
    Mat                M[3] = {A, R, B};

    for (int q = 0; q < 3; q++) PetscCall(MatGetRow(M[q], r, &n[q], &c[q], &v[q]));
    PetscCheck(n[0] == n[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " has %" PetscInt_FMT " entries, not %" PetscInt_FMT, where, r, n[0], n[1]);
    for (PetscInt k = 0; k < n[0]; k++)
      PetscCheck(c[0][k] == c[1][k] && TestSame(v[0][k], v[1][k], TEST_C * PETSC_MACHINE_EPSILON * PetscRealPart(v[2][k])), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT ", entry %" PetscInt_FMT ": %g in column %" PetscInt_FMT ", not %g in %" PetscInt_FMT, where, r, k, (double)PetscRealPart(v[0][k]), c[0][k], (double)PetscRealPart(v[1][k]), c[1][k]);
    for (int q = 2; q >= 0; q--) PetscCall(MatRestoreRow(M[q], r, &n[q], &c[q], &v[q]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values on the device: the array of a VECGPU, where its backend is a device */
static PetscErrorCode SetFromDevice(Mat A, PetscCount len, const PetscScalar v[], InsertMode mode)
{
  Vec           x;
  PetscScalar  *a;
  const double *d;

  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, (PetscInt)len, PETSC_DECIDE));
  PetscCall(VecSetType(x, VECGPU));
  PetscCall(VecGetArrayWrite(x, &a));
  PetscCall(PetscArraycpy(a, v, (size_t)len));
  PetscCall(VecRestoreArrayWrite(x, &a));
  PetscCall(VecScale(x, 2.0)); /* on its way on a stream */
  PetscCall(VecScale(x, 0.5));
  PetscCall(VecGPUGetArrayRead(x, &d));
  PetscCall(MatSetValuesCOO(A, (const PetscScalar *)d, mode));
  PetscCall(VecGPURestoreArrayRead(x, &d));
  PetscCall(VecSet(x, 1e30)); /* the matrix has read it */
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocate(Mat A, const List *l)
{
  PetscInt *i, *j;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2((size_t)l->len, &i, (size_t)l->len, &j));
  PetscCall(PetscArraycpy(i, l->i, (size_t)l->len));
  PetscCall(PetscArraycpy(j, l->j, (size_t)l->len));
  PetscCall(MatSetPreallocationCOO(A, l->len, i, j));
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two matrices, filled alike, have the same bits */
static PetscErrorCode SameBits(Mat A, Mat B, const char where[])
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(MatEqual(A, B, &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: other bits", where);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rounds of values; A may be of this type or another */
static PetscErrorCode Rounds(Mat A, Mat R, Mat B, const List *l, PetscInt seed, const char where[])
{
  PetscScalar *v;
  PetscMPIInt  size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscMalloc1((size_t)l->len, &v));
  for (PetscInt r = 0; r < ROUNDS; r++) {
    const InsertMode mode = r % 3 ? ADD_VALUES : INSERT_VALUES;
    char             what[128];

    for (PetscCount k = 0; k < l->len; k++) v[k] = Value(seed, k, r);
    if (r == 2) PetscCall(SetFromDevice(A, l->len, v, mode));
    else PetscCall(MatSetValuesCOO(A, v, mode));
    PetscCall(Reference(R, l, v, mode, PETSC_FALSE));
    PetscCall(Reference(B, l, v, mode, PETSC_TRUE));
    PetscCall(PetscSNPrintf(what, sizeof(what), "%s, round %" PetscInt_FMT, where, r));
    PetscCall(Compare(A, R, B, what));
    if (r == 1 && size == 1) { /* the host writes in between */
      const PetscScalar one = 1;
      PetscInt          rs, re;

      PetscCall(MatGetOwnershipRange(A, &rs, &re));
      for (PetscCount k = 0; k < l->len; k++) {
        if (l->i[k] < rs || l->i[k] >= re || l->j[k] < 0) continue;
        PetscCall(MatSetValues(A, 1, &l->i[k], 1, &l->j[k], &one, ADD_VALUES));
        PetscCall(MatSetValues(R, 1, &l->i[k], 1, &l->j[k], &one, ADD_VALUES));
        PetscCall(MatSetValues(B, 1, &l->i[k], 1, &l->j[k], &one, ADD_VALUES));
        break;
      }
      Mat M[3] = {A, R, B};
      for (int q = 0; q < 3; q++) {
        PetscCall(MatAssemblyBegin(M[q], MAT_FINAL_ASSEMBLY));
        PetscCall(MatAssemblyEnd(M[q], MAT_FINAL_ASSEMBLY));
      }
    }
  }
  PetscCall(PetscFree(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode New(const List *l, PetscBool ref, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, l->m, l->n, ref, A));
  if (!ref) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetUp(*A));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(Reference(*A, l, NULL, ADD_VALUES, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same by local numbers, reversed and with a gap */
static PetscErrorCode ByLocal(const List *l, Mat R, Mat B, PetscInt seed)
{
  const PetscInt         len[2] = {l->m + 5, l->n + 5};
  ISLocalToGlobalMapping map[2];
  List                   local = *l;
  Mat                    A;

  PetscFunctionBegin;
  PetscCall(New(l, PETSC_FALSE, &A));
  for (int k = 0; k < 2; k++) {
    PetscInt *index;

    PetscCall(PetscMalloc1((size_t)len[k], &index));
    for (PetscInt q = 0; q < len[k]; q++) index[q] = len[k] - 6 - q;
    PetscCall(ISLocalToGlobalMappingCreate(PETSC_COMM_WORLD, 1, len[k], index, PETSC_OWN_POINTER, &map[k]));
  }
  PetscCall(MatSetLocalToGlobalMapping(A, map[0], map[1]));
  PetscCall(PetscMalloc2((size_t)l->len, &local.i, (size_t)l->len, &local.j));
  for (PetscCount k = 0; k < l->len; k++) {
    local.i[k] = l->i[k] < 0 ? (k % 2 ? -3 : l->m + 1) : l->m - 1 - l->i[k];
    local.j[k] = l->j[k] < 0 ? -1 : l->n - 1 - l->j[k];
  }
  PetscCall(MatSetPreallocationCOOLocal(A, local.len, local.i, local.j));
  PetscCall(Rounds(A, R, B, l, seed, "by local numbers"));
  PetscCall(PetscFree2(local.i, local.j));
  for (int k = 0; k < 2; k++) PetscCall(ISLocalToGlobalMappingDestroy(&map[k]));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Indices of 32 bits on the device: the array of a VECGPU, where its backend is a device. The vector keeps them */
static PetscErrorCode Indices(PetscCount len, const int from[], Vec *x, const int **to)
{
  PetscScalar  *a;
  const double *d;

  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_SELF, x));
  PetscCall(VecSetSizes(*x, (PetscInt)len / 2 + 1, PETSC_DECIDE));
  PetscCall(VecSetType(*x, VECGPU));
  PetscCall(VecGetArrayWrite(*x, &a));
  PetscCall(PetscMemcpy(a, from, sizeof(int) * (size_t)len));
  PetscCall(VecRestoreArrayWrite(*x, &a));
  PetscCall(VecGPUGetArrayRead(*x, &d));
  *to = (const int *)d;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows of A once more, from the host and the device: by row pointers with columns reversed, of which the last repeats with value 0, or by coordinates */
static PetscErrorCode ByRows(Mat A, PetscBool csr)
{
  PetscInt     rs, re, n, m, N;
  PetscCount   len = 0;
  int         *i, *j;
  PetscScalar *v;
  Mat          B;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &N));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatGetRow(A, r, &n, NULL, NULL));
    len += n + (n > 0);
    PetscCall(MatRestoreRow(A, r, &n, NULL, NULL));
  }
  PetscCall(PetscMalloc3((size_t)PetscMax(len, re - rs) + 1, &i, (size_t)len + 1, &j, (size_t)len + 1, &v));
  len = 0;
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt    *c;
    const PetscScalar *a;

    if (csr) i[r - rs] = (int)len;
    PetscCall(MatGetRow(A, r, &n, &c, &a));
    for (PetscInt k = n - 1; k >= 0; k--)
      for (int twice = 0; twice < (k ? 1 : 2); twice++, len++) {
        if (!csr) i[len] = (int)r;
        j[len] = (int)c[k];
        v[len] = twice ? 0.0 : a[k];
      }
    PetscCall(MatRestoreRow(A, r, &n, &c, &a));
  }
  if (csr) i[re - rs] = (int)len;
  for (int device = 0; device < 2; device++) {
    Vec           x[2] = {NULL, NULL};
    const int    *di = i, *dj = j;
    const double *d[2];

    if (device) PetscCall(Indices(csr ? re - rs + 1 : len, i, &x[0], &di));
    if (device) PetscCall(Indices(len, j, &x[1], &dj));
    PetscCall(TestMatCreate(PETSC_COMM_WORLD, m, N, PETSC_FALSE, &B));
    if (csr) PetscCall(MatGPUCSRSetPreallocationCSR(B, len, di, dj));
    else PetscCall(MatGPUCSRSetPreallocationCOO(B, len, di, dj));
    d[0] = (const double *)di;
    d[1] = (const double *)dj;
    for (int k = 0; k < 2 && device; k++) PetscCall(VecGPURestoreArrayRead(x[k], &d[k]));
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&x[k]));
    if (device) PetscCall(SetFromDevice(B, len, v, INSERT_VALUES));
    else PetscCall(MatSetValuesCOO(B, v, INSERT_VALUES));
    PetscCall(SameBits(A, B, csr ? "by row pointers" : "by coordinates of 32 bits"));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(PetscInt m, PetscInt n, PetscCount len, PetscInt seed)
{
  Mat         A, R, B, D, E;
  List        l, other;
  PetscScalar v[1] = {0}, *w;
  PetscObject sums;

  PetscFunctionBegin;
  PetscCall(ListMake(m, n, len, seed, &l));
  PetscCall(New(&l, PETSC_FALSE, &A));
  PetscCall(New(&l, PETSC_TRUE, &R));
  PetscCall(New(&l, PETSC_TRUE, &B));
  PetscCall(Preallocate(A, &l));
  PetscCall(Rounds(A, R, B, &l, seed, "first"));
  PetscCall(PetscObjectQuery((PetscObject)A, "GPUCSRCOO", &sums));
  /* again, in a duplicate and after conversions: the same bits. Where the pattern is MATAIJ's, duplicates of earlier releases than 3.20 have no contributions */
  PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &D));
  if (!sums && PETSC_VERSION_LT(3, 20, 0)) {
    PetscErrorCode ierr;

    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = MatSetValuesCOO(D, v, INSERT_VALUES);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A duplicate without contributions: error %d", (int)ierr);
  }
  if (!sums) PetscCall(Preallocate(D, &l));
  PetscCall(Rounds(D, R, B, &l, seed, "duplicate"));
  PetscCall(SameBits(A, D, "a duplicate"));
  PetscCall(MatConvert(D, MATAIJ, MAT_INPLACE_MATRIX, &D));
  PetscCall(PetscMalloc1((size_t)len, &w));
  for (PetscCount k = 0; k < len; k++) w[k] = Value(seed, k, 0);
  PetscCall(MatSetValuesCOO(D, w, INSERT_VALUES));
  PetscCall(MatSetValuesCOO(A, w, INSERT_VALUES));
  PetscCall(PetscFree(w));
  PetscCall(SameBits(A, D, "converted to AIJ"));
  PetscCall(MatConvert(D, MATGPUCSR, MAT_INPLACE_MATRIX, &D));
  if (!sums) PetscCall(Preallocate(D, &l));
  PetscCall(Rounds(D, R, B, &l, seed, "converted and back"));
  /* PETSc's pattern, this type's values */
  PetscCall(MatDestroy(&D));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &D));
  PetscCall(SameBits(A, D, "a copy"));
  PetscCall(ByLocal(&l, R, B, seed));
  for (int csr = 0; csr < 2; csr++) PetscCall(ByRows(A, (PetscBool)csr));
  PetscCall(MatConvert(R, MATAIJ, MAT_INITIAL_MATRIX, &E));
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&B));
  /* another pattern of the same matrix */
  PetscCall(ListMake(m, n, len / 2, seed + 7, &other));
  PetscCall(New(&other, PETSC_TRUE, &R));
  PetscCall(New(&other, PETSC_TRUE, &B));
  PetscCall(Preallocate(A, &other));
  PetscCall(Rounds(A, R, B, &other, seed + 1, "another pattern"));
  PetscCall(MatSetValuesCOO(A, other.len ? NULL : v, INSERT_VALUES));
  PetscCall(MatZeroEntries(R));
  PetscCall(MatZeroEntries(B));
  PetscCall(Compare(A, R, B, "no values"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscFree2(l.i, l.j));
  PetscCall(PetscFree2(other.i, other.j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An index beyond the matrix, or freed memory: the error, with the matrix as before */
static PetscErrorCode Bad(PetscBool freed)
{
  PetscInt     i[4] = {0, 1, 3, 2}, j[4] = {0, 1, 41, 2};
  PetscScalar *v;
  Mat          A;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, 40, 40, PETSC_FALSE, &A));
  if (freed) j[2] = 3;
  PetscCall(MatSetPreallocationCOO(A, 4, i, j));
  v = (PetscScalar *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  (void)munmap(v, 4096);
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row pointers of ranks without entries, which have no array of columns */
static PetscErrorCode TestNoColumns(void)
{
  const int i[3] = {0, 0, 0};
  Mat       A;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 2, 2, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(A, MATGPUCSR));
  PetscCall(MatGPUCSRSetPreallocationCSR(A, 0, i, NULL));
  PetscCall(MatSetValuesCOO(A, NULL, INSERT_VALUES));
  PetscCall(MatNorm(A, NORM_1, &norm));
  PetscCheck(norm == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The norm of a matrix without entries is %g", (double)norm);
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A pattern that is not by coordinates */
static PetscErrorCode TestOtherPattern(void)
{
  const PetscScalar v = 1;
  Mat               A;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, 40, 40, PETSC_FALSE, &A));
  PetscCall(MatSetUp(A));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatSetValuesCOO(A, &v, INSERT_VALUES);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A pattern that is not by coordinates: error %d", (int)ierr);
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NoPattern(void)
{
  const PetscScalar v = 1;
  Mat               A;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, 4, 4, 4, 4));
  PetscCall(MatSetType(A, MATGPUCSR));
  PetscCall(MatSetValuesCOO(A, &v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool   beyond = PETSC_FALSE, freed = PETSC_FALSE, bare = PETSC_FALSE;
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-beyond", &beyond, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-freed", &freed, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-no_pattern", &bare, NULL));
  if (bare) PetscCall(NoPattern());
  if (beyond || freed) PetscCall(Bad(freed));
  else if (size > 1) {
    PetscCall(Case(40, 30, 200 + 100 * rank, 1));
    PetscCall(Case(7, 90, rank == 1 ? 0 : 150, 3));
  } else {
    PetscCall(Case(40, 30, 500, 1));
    PetscCall(Case(300, 300, 5000, 2));
    PetscCall(Case(7, 900, 3000, 3));
    PetscCall(Case(1000, 2, 20, 4));
    PetscCall(Case(3, 3, 20000, 5));
    PetscCall(Case(5, 4, 0, 6));
    PetscCall(Case(60, 50, 6000, 7));  /* two to three contributions an entry, */
    PetscCall(Case(40, 30, 12000, 8)); /* and ten */
  }
  PetscCall(TestNoColumns());
  PetscCall(TestOtherPattern());
  PetscCall(PetscFinalize());
  return 0;
}
