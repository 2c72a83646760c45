//TEST name="default" args=""
//TEST name="standin" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend {} -gpucsr_debug_standin 1 -vec_type gpu" loop="cuda auto" gpu=0
//TEST name="master" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend {} -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" loop="cuda auto" gpu=0
//TEST name="late" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer {} -mat_gpucsr_master device" loop="0 1" gpu=0
//TEST name="mixed" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_master device -mat_gpucsr_precision mixed" gpu=0
//TEST name="host_vectors" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_master device" gpu=0
//TEST name="gpu" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -vec_type gpu -mat_gpucsr_master device" gpu=1
//TEST name="ranks_host" nsize=2 args="" gpu=0
//TEST name="ranks" nsize={} args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" loop="2 3" gpu=0
//TEST name="ranks_master" nsize=3 args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master host" gpu=0

/*
  With the master copy on the device: PETSc writes values on the host past the operations of the matrix, the program preallocates anew, or the library ends. And wrong arguments of one rank, in a program that goes on after
  errors: an error on all ranks, none of which waits, with the matrix as before.
*/
static char help[] = "Tests values that are written past the device that has them, and wrong arguments.\n";

#include "pair.h"
#include <petscgpucsr.h>
#include <sys/mman.h>

/* Matrices that the device has, and PETSc writes again on the host: the new values count */
static PetscErrorCode Reused(Pair *p)
{
  static const char *const what[] = {"MatTranspose()", "MatCreateSubMatrices()", "MatMatMatMult()", "MatMatMult() with a MATAIJ"};
  Mat                      B[2], F[2], *sub[2];
  IS                       is;

  PetscFunctionBegin;
  PetscCall(ISCreateStride(PETSC_COMM_SELF, N / 2, 0, 2, &is));
  for (int q = 0; q < 4; q++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(Make(PETSC_TRUE, 3, &F[k]));
      for (int r = 0; r < 2; r++) {
        const MatReuse reuse = r ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

        if (q == 0) PetscCall(MatTranspose(p->m[k], reuse, &B[k]));
        if (q == 1) PetscCall(MatCreateSubMatrices(p->m[k], 1, &is, &is, reuse, &sub[k]));
        if (q == 2) PetscCall(MatMatMatMult(p->m[k], p->m[k], p->m[k], reuse, PETSC_DEFAULT, &B[k]));
        if (q == 3) PetscCall(MatMatMult(p->m[k], F[k], reuse, PETSC_DEFAULT, &B[k]));
        if (q == 1) B[k] = sub[k][0];
        if (r) continue;
        PetscCall(MatScale(B[k], 2.0));
        PetscCall(MatScale(p->m[k], -1.0));
      }
    }
    for (int t = 0; t < 2 && q != 1; t++) {
      for (int k = 0; k < 2; k++) PetscCall(MatMult(B[k], p->x[k], p->y[k]));
      PetscCall(SameVec(p->y[0], p->y[1], what[q]));
      for (int k = 0; k < 2; k++) PetscCall(MatScale(B[k], 3.0));
    }
    PetscCall(SameRows(B[0], B[1], what[q]));
    for (int k = 0; k < 2; k++) {
      if (q == 1) PetscCall(MatDestroySubMatrices(1, &sub[k]));
      else PetscCall(MatDestroy(&B[k]));
      PetscCall(MatDestroy(&F[k]));
    }
  }
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Preallocated anew, with values, while the device has those of the older pattern */
static PetscErrorCode Anew(Pair *p)
{
  PetscInt    rs, re, i[N + 1], j[2 * N];
  PetscScalar a[2 * N];

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(p->m[0], &rs, &re));
  for (int r = 0; r < 4; r++) {
    i[0] = 0;
    for (PetscInt k = rs; k < re; k++) {
      const PetscInt at = i[k - rs];

      j[at]         = r / 2 ? 0 : k / 2;
      j[at + 1]     = k + 1;
      a[at]         = Small(k, r, 5);
      a[at + 1]     = Small(r, k, 2);
      i[k - rs + 1] = at + (k + 1 < N ? 2 : 1);
    }
    PetscCall(Ahead(p));
    for (int k = 0; k < 2; k++) {
      Mat D;

      PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &D));
      PetscCall(MatScale(D, -1.0));
      PetscCall(MatCopy(D, p->m[k], SAME_NONZERO_PATTERN));
      PetscCall(MatDestroy(&D));
      PetscCall(MatSeqAIJSetPreallocationCSR(p->m[k], i, j, a));
      PetscCall(MatMPIAIJSetPreallocationCSR(p->m[k], i, j, a));
    }
    PetscCall(Products(p, "preallocated anew"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The library ends, and begins again, while the device has the values */
static PetscErrorCode Ended(Pair *p)
{
  Mat B[2];

  PetscFunctionBegin;
  for (int r = 0; r < 3; r++) {
    PetscCall(Ahead(p));
    for (int k = 0; k < 2; k++) PetscCall(MatDuplicate(p->m[k], MAT_COPY_VALUES, &B[k]));
    for (int k = 0; k < 2; k++) PetscCall(MatScale(B[k], 3.0));
    PetscCall(MatGPUCSRFinalizePackage());
    PetscCall(MatGPUCSRInitializePackage());
    for (int k = 0; k < 2; k++) PetscCall(r ? MatScale(p->m[k], -1.0) : MatZeroEntries(p->m[k]));
    if (r < 2) PetscCall(Products(p, "after the library's end"));
    for (int k = 0; k < 2; k++) PetscCall(MatAXPY(p->m[k], 1.0, B[k], SAME_NONZERO_PATTERN));
    PetscCall(SameRows(p->m[0], p->m[1], "after the library's end"));
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&B[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Expect(PetscErrorCode got, PetscErrorCode wanted, const char what[])
{
  PetscFunctionBegin;
  PetscCall(PetscPopErrorHandler());
  PetscCheck(got == wanted, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: error %d, not %d", what, (int)got, (int)wanted);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define EXPECT(wanted, what, call) \
  do { \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    PetscCall(Expect(call, wanted, what)); \
  } while (0)

/* As x, with entries missing on the last rank */
static PetscErrorCode Shorter(Vec x, PetscInt missing, Vec *y)
{
  PetscMPIInt rank, size;
  PetscInt    n;
  VecType     type;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetType(x, &type));
  PetscCall(VecCreate(PETSC_COMM_WORLD, y));
  PetscCall(VecSetSizes(*y, rank == size - 1 ? n - missing : n, PETSC_DETERMINE));
  PetscCall(VecSetType(*y, type));
  PetscCall(VecSet(*y, 3.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sizes(Pair *p)
{
  const PetscInt rows[2] = {2, N - 1};
  Vec            v[2];
  PetscReal      norm;
  PetscMPIInt    rank, size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Ahead(p));
  PetscCall(Shorter(p->x[0], 1, &v[0]));
  PetscCall(VecSetFromOptions(v[0]));
  EXPECT(rank == size - 1 ? PETSC_ERR_ARG_SIZ : PETSC_SUCCESS, "a diagonal too short", MatGetDiagonal(p->m[0], v[0]));
  PetscCall(VecDestroy(&v[0]));
  for (int keep = 0; keep < 2; keep++) {
    PetscCall(MatSetOption(p->m[0], MAT_KEEP_NONZERO_PATTERN, (PetscBool)keep));
    for (int k = 0; k < 6; k++) {
      PetscCall(Ahead(p));
      PetscCall(Shorter(p->x[0], k % 3 != 1, &v[0]));
      PetscCall(Shorter(p->x[0], k % 3 != 0, &v[1]));
      EXPECT(PETSC_ERR_ARG_SIZ, "vectors too short", k < 3 ? MatZeroRows(p->m[0], 2, rows, 2.0, v[0], v[1]) : MatZeroRowsColumns(p->m[0], 2, rows, 2.0, v[0], v[1]));
      PetscCall(VecShift(v[1], -3.0));
      PetscCall(VecNorm(v[1], NORM_1, &norm));
      PetscCheck(norm == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The right-hand side has changed");
      for (int q = 0; q < 2; q++) PetscCall(VecDestroy(&v[q]));
      PetscCall(Products(p, "vectors too short"));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Indices(Pair *p)
{
  static const char *const what[] = {"MatSetPreallocationCOO()", "MatSetPreallocationCOOLocal()", "MatGPUCSRSetPreallocationCOO()", "MatGPUCSRSetPreallocationCSR()", "a local number without a global one"};
  ISLocalToGlobalMapping   map;
  PetscMPIInt              rank, size;
  PetscInt                 rs, re, all[N];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatGetOwnershipRange(p->m[0], &rs, &re));
  for (PetscInt k = 0; k < N; k++) all[k] = k == N - 1 ? N + 7 : k; /* a local number of a column that is not there */
  PetscCall(ISLocalToGlobalMappingCreate(PETSC_COMM_WORLD, 1, N, all, PETSC_COPY_VALUES, &map));
  PetscCall(MatSetLocalToGlobalMapping(p->m[0], map, map));
  for (int q = 0; q < 5; q++) {
    const PetscBool last = (PetscBool)(rank == size - 1);
    PetscInt        i[3] = {rs, rs + 1, rs}, j[3] = {rs, 0, last ? (q == 1 ? N - 1 : N + 7) : 1};
    int             ii[3] = {(int)i[0], (int)i[1], (int)i[2]}, jj[3] = {(int)j[0], (int)j[1], (int)j[2]}, pointers[N + 1];

    for (PetscInt k = 0; k <= re - rs; k++) pointers[k] = last && k == 1 ? 5 : (int)PetscMin(k, 3);
    if (q == 3) jj[2] = 1;
    PetscCall(Ahead(p));
    EXPECT(PETSC_ERR_ARG_OUTOFRANGE, what[q],
           q == 0   ? MatSetPreallocationCOO(p->m[0], 3, i, j)
           : q == 2 ? MatGPUCSRSetPreallocationCOO(p->m[0], 3, ii, jj)
           : q == 3 ? MatGPUCSRSetPreallocationCSR(p->m[0], 3, pointers, jj)
                    : MatSetPreallocationCOOLocal(p->m[0], 3, i, j));
    PetscCall(Products(p, what[q]));
  }
  PetscCall(ISLocalToGlobalMappingDestroy(&map));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last rank's values are in memory that is freed. Without a device nothing tells, and the program would end */
static PetscErrorCode Freed(Pair *p)
{
  char         backend[16] = "";
  PetscMPIInt  rank, size;
  PetscInt     rs, i[2], j[2];
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_backend", backend, sizeof(backend), NULL));
  if (strcmp(backend, "cuda")) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatGetOwnershipRange(p->m[0], &rs, NULL));
  for (int far = 0; far < 2; far++) { /* contributions to the own rows, or to those of the first rank too */
    i[0] = j[0] = rs;
    i[1] = j[1] = far ? 0 : rs + 1;
    for (int q = 0; q < 2; q++) PetscCall(MatSetPreallocationCOO(p->m[q], 2, i, j));
    v    = (PetscScalar *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    v[0] = 2;
    v[1] = 3;
    for (int q = 0; q < 2; q++) PetscCall(MatSetValuesCOO(p->m[q], v, INSERT_VALUES));
    if (rank == size - 1) (void)munmap(v, 4096);
    EXPECT(PETSC_ERR_ARG_BADPTR, "freed memory", MatSetValuesCOO(p->m[0], v, ADD_VALUES));
    PetscCall(Products(p, "freed memory"));
    if (rank < size - 1) (void)munmap(v, 4096);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wrong(Pair *p)
{
  PetscFunctionBegin;
  PetscCall(Sizes(p));
  PetscCall(Indices(p));
  PetscCall(Freed(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const struct {
    const char *what;
    PetscErrorCode (*run)(Pair *);
  } parts[] = {
    {"matrices of the host", Reused},
    {"a pattern anew",       Anew  },
    {"wrong arguments",      Wrong },
    {"the library's end",    Ended },
  };

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(parts); k++) {
    Pair p;

    PetscCall(PairCreate(&p));
    PetscCall((*parts[k].run)(&p));
    PetscCall(Products(&p, parts[k].what));
    PetscCall(SameRows(p.m[0], p.m[1], parts[k].what));
    PetscCall(PairDestroy(&p));
  }
  PetscCall(PetscFinalize());
  return 0;
}
