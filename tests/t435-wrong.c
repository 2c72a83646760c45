//TEST name="default" args=""
//TEST name="standin" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend {} -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" loop="auto cuda" gpu=0
//TEST name="host_vectors" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_master device" gpu=0
//TEST name="gpu" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -vec_type gpu -mat_gpucsr_master device" gpu=1
//TEST name="ranks_host" nsize=2 args="" gpu=0
//TEST name="ranks" nsize=3 args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master {}" loop="host device" gpu=0

/* Wrong arguments of one rank, in a program that goes on after errors: an error on all ranks, none of which waits, with the matrix as before */
static char help[] = "Tests wrong arguments of assembly and of changes in place.\n";

#include "pair.h"
#include <petscgpucsr.h>
#include <sys/mman.h>

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

  PetscFunctionBegin;
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

int main(int argc, char **argv)
{
  Pair p;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PairCreate(&p));
  PetscCall(Sizes(&p));
  PetscCall(Indices(&p));
  PetscCall(Freed(&p));
  PetscCall(SameRows(p.m[0], p.m[1], "the end"));
  PetscCall(PairDestroy(&p));
  PetscCall(PetscFinalize());
  return 0;
}
