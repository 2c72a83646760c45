/*
  Reductions over ranks: norms, inner products and many inner products at once against sums in long double. The bits are the same on all ranks, in every run, and as with standard vectors in the same order. Covered
  are ranks without entries, NaN, a late rank, a rank whose device fails, and communicators created and freed.

  //TEST name="ranks1" nsize=1 args="-malloc_debug -malloc_dump"
  //TEST name="ranks2" nsize=2 args="-vec_gpu_reduce {} -malloc_dump" loop="auto shared mpi"
  //TEST name="ranks3" nsize=3
  //TEST name="ranks5" nsize=5
  //TEST name="ranks8" nsize=8 args="-vec_gpu_reduce shared"
  //TEST name="standin" nsize=3 args="-gpucsr_debug_standin 2 -mat_gpucsr_backend cuda"
  //TEST name="late_work" nsize=2 args="-gpucsr_debug_standin 1 -gpucsr_debug_defer {} -mat_gpucsr_backend cuda" loop="0 3"
  //TEST name="sleeps" nsize=3 args="-sleeps -gpucsr_peer_timeout 0.5"
  //TEST name="missing" nsize=3 args="-missing -gpucsr_peer_patience 0.5"
  //TEST name="fails" nsize=3 args="-fails -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -gpucsr_debug_fault launch:{}:rank=1" loop="4 5 6 7"
  //TEST name="differ" nsize=2 args="-differ" fails="-vec_gpu_reduce is not the same on all ranks"
  //TEST name="gpu" nsize=2 gpu=1
  //TEST name="gpu_mpi" nsize=2 gpu=1 args="-vec_gpu_reduce mpi"
*/
#include "testing.h"
#include <petsc/private/petscimpl.h> /* the state of an object */

static PetscMPIInt rank, size;

static PetscErrorCode VectorCreate(MPI_Comm comm, PetscInt n, int seed, Vec *x)
{
  PetscInt     rs, re;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(VecCreate(comm, x));
  PetscCall(VecSetSizes(*x, n, PETSC_DECIDE));
  PetscCall(VecSetType(*x, "gpu"));
  PetscCall(VecGetOwnershipRange(*x, &rs, &re));
  PetscCall(VecGetArray(*x, &a));
  for (PetscInt k = rs; k < re; k++) a[k - rs] = (PetscReal)((k * 7919 + seed * 104729) % 1000003) / 1000003 - 0.4; /* sums in another order have other bits */
  PetscCall(VecRestoreArray(*x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All ranks have the same numbers, within rounding of sums in long double */
static PetscErrorCode Check(MPI_Comm comm, const char what[], PetscInt n, const PetscScalar z[], const long double want[], const long double size_of[])
{
  PetscScalar *first;
  PetscBool    same;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(n, &first));
  PetscCall(PetscArraycpy(first, z, n));
  PetscCallMPI(MPI_Bcast(first, (PetscMPIInt)n, MPIU_SCALAR, 0, comm));
  PetscCall(PetscArraycmp(first, z, n, &same));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: other bits on rank %d than on rank 0", what, (int)rank);
  for (PetscInt k = 0; k < n; k++)
    PetscCheck(PetscAbsReal((PetscReal)((long double)PetscRealPart(z[k]) - want[k])) <= TEST_C * PETSC_MACHINE_EPSILON * (PetscReal)size_of[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: number %d is %g, should be %g", what, (int)k, (double)PetscRealPart(z[k]), (double)want[k]);
  PetscCall(PetscFree(first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x'y and sum |x||y| over all ranks */
static PetscErrorCode Exact(MPI_Comm comm, Vec x, Vec y, long double *dot, long double *absolute)
{
  const PetscScalar *a, *b;
  long double        sum[2] = {0, 0};
  PetscInt           n;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayRead(y, &b));
  for (PetscInt k = 0; k < n; k++) {
    const long double v = (long double)PetscRealPart(a[k]) * (long double)PetscRealPart(b[k]);

    sum[0] += v;
    sum[1] += v < 0 ? -v : v;
  }
  PetscCall(VecRestoreArrayRead(y, &b));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_LONG_DOUBLE, MPI_SUM, comm));
  *dot      = sum[0];
  *absolute = sum[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(MPI_Comm comm, PetscInt n, PetscInt nv)
{
  Vec          x, *y;
  PetscScalar  z, *many, two[2];
  PetscReal    norm[2], bits;
  long double *want, *absolute, sum;

  PetscFunctionBeginUser;
  PetscCall(VectorCreate(comm, n, 1, &x));
  PetscCall(PetscMalloc4(nv, &y, nv, &many, nv, &want, nv, &absolute));
  for (PetscInt k = 0; k < nv; k++) {
    PetscCall(VectorCreate(comm, n, 2 + (int)k, &y[k]));
    PetscCall(Exact(comm, x, y[k], &want[k], &absolute[k]));
  }
  PetscCall(VecDot(x, y[0], &z));
  PetscCall(Check(comm, "VecDot", 1, &z, want, absolute));
  PetscCall(VecTDot(x, y[0], &z));
  PetscCall(Check(comm, "VecTDot", 1, &z, want, absolute));
  for (int turn = 0; turn < 3; turn++) { /* again and again: both sets of numbers */
    PetscCall(VecMDot(x, nv, y, many));
    PetscCall(Check(comm, "VecMDot", nv, many, want, absolute));
  }
  PetscCall(VecMTDot(x, nv, y, many));
  PetscCall(Check(comm, "VecMTDot", nv, many, want, absolute));
  want[0] = want[0] + 0;
  PetscCall(VecDotNorm2(x, y[0], &two[0], &norm[0]));
  PetscCall(Check(comm, "VecDotNorm2", 1, two, want, absolute));
  PetscCall(Exact(comm, y[0], y[0], &sum, absolute));
  two[0] = norm[0];
  PetscCall(Check(comm, "VecDotNorm2", 1, two, &sum, absolute));
  PetscCall(PetscObjectStateIncrease((PetscObject)y[0]));
  PetscCall(VecNorm(y[0], NORM_2, norm));
  two[0]  = norm[0];
  want[0] = sqrtl(sum);
  PetscCall(Check(comm, "VecNorm", 1, two, want, want));
  bits = norm[0];
  PetscCall(PetscObjectStateIncrease((PetscObject)y[0]));
  PetscCall(VecNorm(y[0], NORM_2, norm));
  PetscCheck(bits == norm[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "VecNorm: other bits the second time");
  PetscCall(PetscObjectStateIncrease((PetscObject)y[0]));
  PetscCall(VecNorm(y[0], NORM_1_AND_2, norm));
  PetscCheck(norm[1] == bits, PETSC_COMM_SELF, PETSC_ERR_PLIB, "NORM_1_AND_2: %g, should be %g", (double)norm[1], (double)bits);
  PetscCall(VecNorm(y[0], NORM_INFINITY, norm));
  PetscCall(VecMax(y[0], NULL, &norm[1]));
  PetscCheck(norm[0] >= norm[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "NORM_INFINITY is %g, the largest entry %g", (double)norm[0], (double)norm[1]);
  two[0]  = norm[0];
  want[0] = norm[0];
  PetscCall(Check(comm, "NORM_INFINITY", 1, two, want, want));
  if (rank == size - 1 && n) { /* one rank's NaN is NaN on all */
    PetscScalar *a;

    PetscCall(VecGetArray(y[0], &a));
    a[n / 2] = NAN;
    PetscCall(VecRestoreArray(y[0], &a));
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)y[0]));
  PetscCall(VecNorm(y[0], NORM_2, &norm[0]));
  PetscCall(PetscObjectStateIncrease((PetscObject)y[0]));
  PetscCall(VecNorm(y[0], NORM_INFINITY, &norm[1]));
  {
    int last = n > 0;

    PetscCallMPI(MPI_Bcast(&last, 1, MPI_INT, size - 1, comm));
    if (last) PetscCheck(PetscIsNanReal(norm[0]) && PetscIsNanReal(norm[1]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A NaN of the last rank is lost: %g, %g", (double)norm[0], (double)norm[1]);
  }
  for (PetscInt k = 0; k < nv; k++) PetscCall(VecDestroy(&y[k]));
  PetscCall(PetscFree4(y, many, want, absolute));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Communicators of all ranks, in another order, and of some; each returns its memory */
static PetscErrorCode Communicators(void)
{
  PetscFunctionBeginUser;
  for (int turn = 0; turn < 6; turn++) {
    MPI_Comm          comm;
    const PetscMPIInt whole_rank = rank, whole = size;

    PetscCallMPI(MPI_Comm_split(PETSC_COMM_WORLD, turn % 2 ? 0 : rank % 2, -rank, &comm));
    PetscCallMPI(MPI_Comm_rank(comm, &rank));
    PetscCallMPI(MPI_Comm_size(comm, &size));
    PetscCall(Case(comm, 100 + rank, 3));
    PetscCallMPI(MPI_Comm_free(&comm));
    rank = whole_rank;
    size = whole;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last rank comes late (sleeps), or not at all: then the others get an error, and soon */
static PetscErrorCode Late(PetscBool sleeps)
{
  Vec            x;
  PetscReal      norm;
  PetscErrorCode ierr = PETSC_SUCCESS;
  PetscMPIInt    met;

  PetscFunctionBeginUser;
  PetscCall(VectorCreate(PETSC_COMM_WORLD, 100, 1, &x));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(PetscObjectStateIncrease((PetscObject)x));
  if (rank == size - 1) PetscCall(PetscSleep(1.5));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  if (sleeps || rank < size - 1) ierr = VecNorm(x, NORM_2, &norm);
  PetscCall(PetscPopErrorHandler());
  met = sleeps ? !ierr : rank == size - 1 || ierr == PETSC_ERR_GPU;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &met, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  PetscCheck(met, PETSC_COMM_WORLD, PETSC_ERR_PLIB, sleeps ? "A rank that came late is an error" : "A rank that did not come is none");
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A call to the device of one rank fails: in a reduction all ranks get an error, and the next one is right */
static PetscErrorCode Fails(void)
{
  Vec         x, y;
  PetscMPIInt failed = 0;

  PetscFunctionBeginUser;
  PetscCall(VectorCreate(PETSC_COMM_WORLD, 100, 1, &x));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  for (int turn = 0; turn < 8; turn++) {
    PetscScalar    z = 0, exact = (PetscReal)(100 * size);
    PetscErrorCode ierr;
    PetscMPIInt    some[2];

    ierr = TestUnlock(x);
    if (!ierr) ierr = TestUnlock(y);
    if (!ierr) ierr = VecSet(x, 1);
    if (!ierr) ierr = VecSet(y, 1);
    PetscCheck(!ierr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The fault is not in a reduction");
    ierr    = VecDot(x, y, &z);
    some[0] = ierr != 0;
    some[1] = ierr == 0;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, some, 2, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
    if (some[0] && some[1]) {
      PetscCall(PetscFPrintf(PETSC_COMM_WORLD, stderr, "Turn %d: an error on %d ranks of %d\n", turn, (int)some[0], (int)size));
      MPI_Abort(PETSC_COMM_WORLD, 1);
    }
    failed += some[0] > 0;
    if (!ierr && z != exact) {
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, stderr, "Turn %d, rank %d: %g, should be %g\n", turn, (int)rank, (double)PetscRealPart(z), (double)PetscRealPart(exact)));
      MPI_Abort(PETSC_COMM_WORLD, 1);
    }
  }
  PetscCall(PetscPopErrorHandler());
  PetscCheck(failed == 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "One fault, and %d reductions failed", (int)failed);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool sleeps = PETSC_FALSE, missing = PETSC_FALSE, fails = PETSC_FALSE, differ = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sleeps", &sleeps, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-missing", &missing, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-fails", &fails, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-differ", &differ, NULL));
  if (differ && rank) PetscCall(PetscOptionsSetValue(NULL, "-vec_gpu_reduce", "mpi"));
  if (sleeps || missing) PetscCall(Late(sleeps));
  else if (fails) PetscCall(Fails());
  else {
    PetscCall(Case(PETSC_COMM_WORLD, 1000 + 10 * rank, 5));
    PetscCall(Case(PETSC_COMM_WORLD, rank % 2 ? 0 : 77, 1));
    PetscCall(Case(PETSC_COMM_WORLD, 50, 40));
    PetscCall(Case(PETSC_COMM_WORLD, 9, 1100));
    if (size > 1) PetscCall(Communicators());
  }
  PetscCall(PetscFinalize());
  return 0;
}
