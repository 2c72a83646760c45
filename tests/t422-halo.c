//TEST name="host_1" nsize=1 args="-mat_gpucsr_halo peer -mat_gpucsr_format csr"
//TEST name="host_2" nsize=2 args="-mat_gpucsr_halo peer -mat_gpucsr_format csr"
//TEST name="host_5" nsize=5 args="-mat_gpucsr_halo peer -mat_gpucsr_format csr -cases 6"
//TEST name="host_8" nsize=8 args="-mat_gpucsr_halo peer -mat_gpucsr_format csr -cases 3"
//TEST name="staged" nsize=4 args="-mat_gpucsr_halo staged -mat_gpucsr_format csr -cases 6"
//TEST name="standin_3" nsize=3 args="-mat_gpucsr_halo peer -gpucsr_debug_standin 2 -mat_gpucsr_backend cuda -cases 8"
//TEST name="standin_4" nsize=4 args="-mat_gpucsr_halo peer -gpucsr_debug_standin 4 -mat_gpucsr_backend cuda -vec_type gpu -cases 8"
//TEST name="late_work" nsize=3 args="-mat_gpucsr_halo peer -gpucsr_debug_standin 1 -gpucsr_debug_defer {} -mat_gpucsr_backend cuda -vec_type gpu -cases 4" loop="0 3"
//TEST name="gpu_1" nsize=2 args="-mat_gpucsr_halo peer -vec_type gpu" gpu=1
//TEST name="gpu_3" nsize=3 args="-mat_gpucsr_halo peer -vec_type gpu -cases 6" gpu=1
//TEST name="gpu_host_vectors" nsize=2 args="-mat_gpucsr_halo peer -standard_vectors -cases 6" gpu=1
//TEST name="missing" nsize=3 args="-mat_gpucsr_halo peer -mat_gpucsr_format csr -gpucsr_peer_patience 0.5 -missing"
//TEST name="missing_standin" nsize=2 args="-mat_gpucsr_halo peer -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -vec_type gpu -gpucsr_peer_patience 0.5 -missing"
//TEST name="missing_gpu" nsize=2 args="-mat_gpucsr_halo peer -vec_type gpu -gpucsr_peer_patience 1 -missing" gpu=1
//TEST name="sleeps" nsize=3 args="-mat_gpucsr_halo peer -mat_gpucsr_format csr -gpucsr_peer_timeout 0.5 -sleeps"
//TEST name="sleeps_gpu" nsize=2 args="-mat_gpucsr_halo peer -vec_type gpu -gpucsr_peer_timeout 0.5 -sleeps" gpu=1
//TEST name="lost" nsize=3 args="-mat_gpucsr_halo peer -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -vec_type gpu -lost -gpucsr_debug_fault launch:40:on:rank=1"
//TEST name="refused" nsize=2 args="-mat_gpucsr_halo peer -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -cases 1 -gpucsr_debug_fault peer:{}:rank=1" loop="1 2 3 4" fails="-mat_gpucsr_halo peer: rank 1, cuda device 0: "
//TEST name="faults" nsize=2 args="-mat_gpucsr_halo peer -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -vec_type gpu -faults -gpucsr_peer_patience 5 -gpucsr_debug_fault launch:{}:rank=1" loop="22 27 31 36 41:on"
//TEST name="faults_auto" nsize=3 args="-mat_gpucsr_halo peer -gpucsr_debug_standin 1 -faults -gpucsr_peer_patience 5 -gpucsr_debug_fault {}:rank=1" loop="memory:30 copy:40 copy:50 launch:25 synchronize:30 event:20 device:60:on device:90:on"
//TEST name="differ" nsize=3 args="-cases 1 -mat_gpucsr_format csr -differ halo" fails="-mat_gpucsr_halo is not the same on all ranks: it must be"
//TEST name="differ_patience" nsize=2 args="-cases 1 -mat_gpucsr_format csr -mat_gpucsr_halo peer -differ patience" fails="on rank 1 of this host and 3600. on rank 0: options must be the same on all ranks"
//TEST name="differ_timeout" nsize=3 args="-cases 1 -mat_gpucsr_format csr -mat_gpucsr_halo peer -differ timeout" fails="on rank 1 of this host and 30. on rank 0: options must be the same on all ranks"
//TEST name="unknown" nsize=2 args="-mat_gpucsr_halo pigeon -cases 1" fails="for -mat_gpucsr_halo. Available options: auto peer nccl staged"
//TEST name="nccl_host" nsize=3 args="-mat_gpucsr_halo nccl -cases 1 -mat_gpucsr_format csr" gpu=0 fails="-mat_gpucsr_halo nccl: rank 0, host device 0: its products are on the host, where NCCL does not reach"
//TEST name="view" nsize=2 args="-mat_gpucsr_halo peer -mat_gpucsr_format csr -view"

/*
  Halo exchanges: products of random matrices over random partitions against MATAIJ. Matrices are square and rectangular; some ranks have no rows, no columns or no halo, or come late. Values and
  patterns change; every run has the same bits. -missing: a rank skips a product, and the others get an error in time. -sleeps: a rank is late, which is no error. -lost: a rank's device
  fails during the exchange, and all ranks get an error. Afterwards no memory stays allocated.

    build/tests/t422-halo -dll_append build/lib/libpetscgpucsr.so [-mat_gpucsr_halo peer] [-cases n] [-missing] [-sleeps] [-lost] [-faults] [-differ halo|timeout|patience] [-view]
*/
#include "testing.h"
#include <time.h>

static PetscMPIInt rank, size;
static uint64_t    state = 7;

/* The same on all ranks */
static PetscInt Draw(PetscInt n)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (PetscInt)((state >> 33) % (uint64_t)n);
}

static PetscReal Number(PetscInt r, PetscInt c, PetscInt turn)
{
  return 0.25 + (PetscReal)((r * 31 + c * 17 + turn * 7) % 101) / 37;
}

static double Seconds(void)
{
  struct timespec t;

  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* n over the ranks, some of which get none */
static PetscInt Share(PetscInt n)
{
  PetscInt mine = 0, left = n;

  for (PetscMPIInt r = 0; r < size; r++) {
    const PetscInt its = r == size - 1 ? left : Draw(4) ? Draw(PetscMin(left, 2 * n / size) + 1) : 0;

    if (r == rank) mine = its;
    left -= its;
  }
  return mine;
}

/* Kinds: 0 a band, few of whose rows have off-diagonal entries; 1 anywhere; 2 a block for each rank, without off-diagonal entries; 3 all ranks need the entries of a single rank */
static PetscErrorCode Set(Mat A, PetscInt kind, PetscInt turn)
{
  PetscInt rs, re, cs, ce, m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, &ce));
  for (PetscInt r = rs; r < re && n; r++) {
    for (PetscInt k = -2; k < 3; k++) {
      PetscInt c = kind == 0 ? r * n / m + k : kind == 1 ? (r * 37 + (k + 3) * 101) % n : kind == 2 ? (ce > cs ? cs + (r + k + 5) % (ce - cs) : -1) : (k ? r * n / m + k : n / 2 + r % 3);

      if (c >= 0 && c < n) PetscCall(MatSetValue(A, r, c, Number(r, c, turn) * (k % 2 ? -1 : 1), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(PetscInt m, PetscInt n, PetscInt ml, PetscInt nl, PetscInt kind, PetscBool ref, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, m, n, ref, A));
  PetscCall(MatSetSizes(*A, ml, nl, m, n));
  PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 5, NULL, 5, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(Set(*A, kind, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products of two vectors in turn, without a wait for results, give the same bits each time; ranks arrive at different times. A product must not see
  entries of the next one, whichever rank is ahead.
*/
static PetscErrorCode Again(Mat A, const char where[])
{
  Vec             x[2], y[2], first[2][2], again[2];
  PetscBool       same;
  struct timespec pause = {0, 200000 * (rank % 3)};

  PetscFunctionBegin;
  for (int v = 0; v < 2; v++) {
    PetscCall(MatCreateVecs(A, &x[v], &y[v]));
    PetscCall(TestFill(x[v], 1 + v, PETSC_FALSE));
    PetscCall(TestFill(y[v], 3 + v, PETSC_FALSE));
    PetscCall(VecDuplicate(v ? x[0] : y[0], &again[v]));
    PetscCall(VecDuplicate(y[0], &first[v][0]));
    PetscCall(VecDuplicate(x[0], &first[v][1]));
    PetscCall(MatMult(A, x[v], first[v][0]));
    PetscCall(MatMultTranspose(A, y[v], first[v][1]));
  }
  for (int turn = 0; turn < 24; turn++) {
    const int v = turn % 2;

    if (turn % 5 == 0) (void)nanosleep(&pause, NULL);
    if (turn % 3 != 1) PetscCall(MatMult(A, x[v], again[0]));
    if (turn % 3 != 2) PetscCall(MatMultTranspose(A, y[v], again[1]));
    for (int k = 0; k < 2; k++) { /* by each rank for itself: no other exchange */
      const PetscScalar *a, *b;
      PetscInt           n;

      if (turn % 3 == 1 + k || turn % 4 < 2) continue; /* not computed, or not read */
      PetscCall(VecGetLocalSize(again[k], &n));
      PetscCall(VecGetArrayRead(first[v][k], &a));
      PetscCall(VecGetArrayRead(again[k], &b));
      PetscCall(PetscArraycmp(a, b, n, &same));
      PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: other bits in turn %d, %s", where, turn, k ? "transposed" : "forward");
      PetscCall(VecRestoreArrayRead(first[v][k], &a));
      PetscCall(VecRestoreArrayRead(again[k], &b));
    }
  }
  for (int v = 0; v < 2; v++) {
    PetscCall(VecDestroy(&x[v]));
    PetscCall(VecDestroy(&y[v]));
    PetscCall(VecDestroy(&again[v]));
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&first[v][k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(PetscInt which)
{
  const PetscInt kind = which % 4, m = 1 + Draw(300), n = which % 3 ? m : 1 + Draw(200), ml = Share(m), nl = n == m && which % 2 ? ml : Share(n);
  char           where[96];
  Mat            A, R;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(where, sizeof(where), "case %d, kind %d, %d by %d", (int)which, (int)kind, (int)m, (int)n));
  PetscCall(Make(m, n, ml, nl, kind, PETSC_FALSE, &A));
  PetscCall(Make(m, n, ml, nl, kind, PETSC_TRUE, &R));
  for (PetscInt turn = 0; turn < 3; turn++) { /* another pattern, other values */
    if (turn) PetscCall(Set(A, turn == 1 ? (kind == 2 ? 1 : 0) : kind, turn));
    if (turn) PetscCall(Set(R, turn == 1 ? (kind == 2 ? 1 : 0) : kind, turn));
    PetscCall(TestProducts(A, R, PETSC_FALSE, where));
    PetscCall(Again(A, where));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last rank does not come, or its device is lost: every rank that comes gets an error, and soon */
static PetscErrorCode Trouble(PetscBool lost)
{
  const PetscBool absent = (PetscBool)(!lost && rank == size - 1);
  const double    since  = Seconds();
  PetscErrorCode  ierr   = PETSC_SUCCESS;
  PetscMPIInt     met;
  Vec             x, y;
  Mat             A;

  PetscFunctionBegin;
  PetscCall(Make(200, 200, PETSC_DECIDE, PETSC_DECIDE, 0, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMult(A, x, y));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  for (int k = 0; k < 40 && !ierr && !absent; k++) {
    ierr = MatMult(A, x, y);
    if (!ierr && !lost) PetscCall(PetscSleep(0.1));
  }
  PetscCall(PetscPopErrorHandler());
  met = absent || ierr == PETSC_ERR_GPU;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &met, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  PetscCheck(met, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Not all ranks got an error");
  PetscCheck(Seconds() - since < 20, PETSC_COMM_SELF, PETSC_ERR_PLIB, "That took %g seconds", Seconds() - since);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A rank comes to products later than ranks may be apart in a solve */
static PetscErrorCode Sleeps(void)
{
  Mat A, R;

  PetscFunctionBegin;
  PetscCall(Make(200, 200, PETSC_DECIDE, PETSC_DECIDE, 0, PETSC_FALSE, &A));
  PetscCall(Make(200, 200, PETSC_DECIDE, PETSC_DECIDE, 0, PETSC_TRUE, &R));
  for (int turn = 0; turn < 2; turn++) {
    PetscCall(TestProducts(A, R, PETSC_FALSE, "where a rank was late"));
    if (rank == size - 1) PetscCall(PetscSleep(1.5));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A call to a device fails on one rank: no rank waits for ever, and none takes a wrong number for its result. A rank has an error, or the NaN of a
  failed rank
*/
static PetscErrorCode Faults(void)
{
  PetscErrorCode     ierr;
  const PetscScalar *a, *b;
  PetscInt           n;
  Vec                x[2], y[2];
  Mat                A, R;

  PetscFunctionBegin;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  PetscCall(Make(200, 200, PETSC_DECIDE, PETSC_DECIDE, 0, PETSC_FALSE, &A));
  PetscCall(Make(200, 200, PETSC_DECIDE, PETSC_DECIDE, 0, PETSC_TRUE, &R));
  PetscCall(MatCreateVecs(R, &x[1], &y[1]));
  PetscCall(MatCreateVecs(A, &x[0], &y[0]));
  for (int turn = 0; turn < 12; turn++) {
    const PetscBool transpose = (PetscBool)(turn % 3 == 2);

    if (turn == 6) { /* new values: all ranks begin anew */
      PetscCall(Set(A, 0, 1));
      PetscCall(Set(R, 0, 1));
    }
    PetscCall(TestFill(x[1], turn, PETSC_FALSE));
    ierr = TestFill(x[0], turn, PETSC_FALSE);
    if (transpose) {
      if (!ierr) ierr = MatMultTranspose(A, x[0], y[0]);
      else (void)MatMultTranspose(A, x[1], y[0]);
      PetscCall(MatMultTranspose(R, x[1], y[1]));
    } else {
      if (!ierr) ierr = MatMult(A, x[0], y[0]);
      else (void)MatMult(A, x[1], y[0]);
      PetscCall(MatMult(R, x[1], y[1]));
    }
    if (!ierr) ierr = VecGetArrayRead(y[0], &a);
    if (ierr) continue;
    PetscCall(VecGetLocalSize(y[1], &n));
    PetscCall(VecGetArrayRead(y[1], &b));
    for (PetscInt k = 0; k < n; k++)
      if (!PetscIsNanScalar(a[k]) && PetscAbsScalar(a[k] - b[k]) > TEST_C * PETSC_MACHINE_EPSILON * 5 * 3 * 2) { /* five products of numbers below 3 and 2 */
        PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "Rank %d, turn %d, row %d is %g, should be %g\n", rank, turn, (int)k, (double)PetscRealPart(a[k]), (double)PetscRealPart(b[k])));
        MPI_Abort(PETSC_COMM_WORLD, 1);
      }
    PetscCall(VecRestoreArrayRead(y[1], &b));
    (void)VecRestoreArrayRead(y[0], &a);
  }
  PetscCall(PetscPopErrorHandler());
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&y[k]));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the view says of it */
static PetscErrorCode View(void)
{
  Mat         A;
  PetscViewer viewer;
  char        text[4096] = "", *at;

  PetscFunctionBegin;
  PetscCall(Make(200, 200, PETSC_DECIDE, PETSC_DECIDE, 0, PETSC_FALSE, &A));
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, "t422-view.tmp", &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  if (!rank) {
    FILE *f = fopen("t422-view.tmp", "r");

    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No view");
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    (void)fclose(f);
    (void)remove("t422-view.tmp");
    PetscCall(PetscStrstr(text, "MATGPUCSR halo: peer (asked for)", &at));
    PetscCheck(at, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The view does not say how halos are exchanged: %s", text);
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does this machine lack the exchange? */
static PetscErrorCode Refused(PetscBool *refused)
{
  Mat            A;
  Vec            x, z;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, 4, 0.0, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatMult(A, x, z);
  PetscCall(PetscPopErrorHandler());
  *refused = (PetscBool)(ierr == PETSC_ERR_SUP);
  if (!*refused) PetscCall(ierr);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt  cases      = 12;
  char      differ[16] = "";
  PetscBool missing = PETSC_FALSE, lost = PETSC_FALSE, faults = PETSC_FALSE, view = PETSC_FALSE, sleeps = PETSC_FALSE, may = PETSC_FALSE, refused = PETSC_FALSE, set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-cases", &cases, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-missing", &missing, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-lost", &lost, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sleeps", &sleeps, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-view", &view, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-faults", &faults, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-differ", differ, sizeof(differ), &set));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-may_refuse", &may, NULL));
  if (may) PetscCall(Refused(&refused));
  if (refused) { /* by all ranks */
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "skipped: this machine has no such exchange\n"));
    PetscCall(PetscFinalize());
    return 0;
  }
  if (set && rank == 1) PetscCall(PetscOptionsSetValue(NULL, differ[0] == 'h' ? "-mat_gpucsr_halo" : differ[0] == 'p' ? "-gpucsr_peer_patience" : "-gpucsr_peer_timeout", differ[0] == 'h' ? "staged" : "7"));
  if (view) PetscCall(View());
  else if (sleeps) PetscCall(Sleeps());
  else if (faults) PetscCall(Faults());
  else if (missing || lost) PetscCall(Trouble(lost));
  else
    for (PetscInt k = 0; k < cases; k++) PetscCall(Case(k));
  PetscCall(PetscFinalize());
  return 0;
}
