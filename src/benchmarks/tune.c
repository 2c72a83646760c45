static char help[] = "Measures for about a second what `make tune` keeps of this machine: copies, launches and reductions.\n\n";

/*
    tune [-o FILE] [-mat_gpucsr_backend cuda|host] [-list]

  FILE is for -mat_gpucsr_machine: the rows of src/sys/machine.h that were measured here, and those that scale with the bandwidth of memory and with waiting. The other rows are scaled by the
  properties of the device that a program has. -list prints the whole table.
*/
#include "../sys/gpucsrsys.h"
#include <petscgpucsr.h>
#include <petscksp.h>
#include <petsctime.h>
#include <stdlib.h>
#include <string.h>

GPUCSR_EXTERN PetscErrorCode PetscDLLibraryRegister_petscgpucsr(void);

#define ROWS       2048 /* of a tridiagonal matrix, small enough for one cluster of blocks */
#define PRODUCTS   2000
#define ITERATIONS 500
#define COPY_BYTES ((size_t)64 << 20)

static GPUCSRMachine found; /* 0: not measured */

static PetscErrorCode Matrix(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, ROWS, ROWS, ROWS, ROWS));
  PetscCall(MatSetType(*A, MATGPUCSR));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  for (PetscInt r = 0; r < ROWS; r++) {
    PetscCall(MatSetValue(*A, r, r, 2, INSERT_VALUES));
    if (r) PetscCall(MatSetValue(*A, r, r - 1, -1, INSERT_VALUES));
    if (r + 1 < ROWS) PetscCall(MatSetValue(*A, r, r + 1, -1, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The least of three rounds: seconds that the host takes for a product */
static PetscErrorCode TimeProducts(GPUCSRDevice dev, Mat A, VecType type, double *seconds)
{
  Vec            x, z;
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, ROWS, ROWS));
  PetscCall(VecSetType(x, type));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(VecSet(x, 1));
  *seconds = PETSC_MAX_REAL;
  for (int round = 0; round < 4; round++) {
    PetscCall(GPUCSRDeviceSynchronize(dev));
    PetscCall(PetscTime(&t0));
    for (int k = 0; k < PRODUCTS; k++) PetscCall(MatMult(A, x, z));
    PetscCall(GPUCSRDeviceSynchronize(dev));
    PetscCall(PetscTime(&t1));
    if (round) *seconds = PetscMin(*seconds, (t1 - t0) / PRODUCTS);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Seconds an iteration of CG with Jacobi, from two solves of different length */
static PetscErrorCode TimeIterations(Mat A, KSPType type, VecType vectors, double *seconds)
{
  KSP            ksp;
  PC             pc;
  Vec            x, b;
  PetscLogDouble t0, t1;
  double         t[2] = {PETSC_MAX_REAL, PETSC_MAX_REAL};

  PetscFunctionBeginUser;
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, ROWS, ROWS));
  PetscCall(VecSetType(x, vectors));
  PetscCall(VecDuplicate(x, &b));
  PetscCall(VecSet(b, 1));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  for (int round = 0; round < 4; round++)
    for (int q = 0; q < 2; q++) {
      PetscCall(KSPSetTolerances(ksp, 1e-50, 1e-300, PETSC_DEFAULT, q ? 2 * ITERATIONS : ITERATIONS));
      PetscCall(PetscTime(&t0));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(PetscTime(&t1));
      if (round) t[q] = PetscMin(t[q], t1 - t0);
    }
  *seconds = (t[1] - t[0]) / ITERATIONS;
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Page-locked copies up, and both ways at the same time, bytes a second */
static PetscErrorCode TimeCopies(GPUCSRDevice dev)
{
  const GPUCSRBackendOps *ops  = dev->ops;
  void                   *h[2] = {NULL, NULL}, *d[2] = {NULL, NULL};
  double                  best[2] = {PETSC_MAX_REAL, PETSC_MAX_REAL};
  PetscLogDouble          t0, t1;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(ops->hostmalloc(dev->id, COPY_BYTES, &h[k]));
    memset(h[k], 1, COPY_BYTES);
    PetscCall(GPUCSRMalloc(dev, COPY_BYTES, "page-locked copies", &d[k]));
  }
  for (int round = 0; round < 5; round++)
    for (int both = 0; both < 2; both++) {
      PetscCall(GPUCSRDeviceSynchronize(dev));
      PetscCall(PetscTime(&t0));
      PetscCall(ops->copy(dev->id, d[0], h[0], COPY_BYTES, GPUCSR_TO_DEVICE, dev->up));
      if (both) PetscCall(ops->copy(dev->id, h[1], d[1], COPY_BYTES, GPUCSR_TO_HOST, dev->down));
      PetscCall(GPUCSRDeviceSynchronize(dev));
      PetscCall(PetscTime(&t1));
      if (round) best[both] = PetscMin(best[both], t1 - t0);
    }
  found.pinned_rate = (double)COPY_BYTES / best[0];
  found.duplex_rate = 2 * (double)COPY_BYTES / best[1];
  for (int k = 0; k < 2; k++) {
    PetscCall(GPUCSRFree(dev, COPY_BYTES, &d[k]));
    PetscCall(ops->hostfree(dev->id, h[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the table of the H200 predicts of an iteration in one launch, most of which is waiting */
static double Iteration(void)
{
  const GPUCSRMachine *t = &GPUCSRMachineH200;

  return t->meeting + 3 * t->persistent_entry + 3 * ROWS * t->cluster_entry / t->cluster_blocks + 8 * ROWS * t->persistent_passes / t->persistent_cached_rate;
}

static PetscErrorCode Measure(GPUCSRDevice dev, GPUCSRMachineRatios *ratios)
{
  Mat    A;
  double iteration, loop;

  PetscFunctionBeginUser;
  *ratios = GPUCSRMachineRatiosOf(&dev->props);
  PetscCall(GPUCSRDeviceBandwidth(dev, &found.copy_rate));
  PetscCheck(found.copy_rate > 0, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s has no memory to measure copies in", dev->props.name);
  PetscCall(TimeCopies(dev));
  PetscCall(Matrix(&A));
  PetscCall(TimeProducts(dev, A, VECGPU, &found.device_call));
  PetscCall(TimeProducts(dev, A, VECSEQ, &found.host_call));
  PetscCall(TimeIterations(A, KSPCG, VECGPU, &loop));
  PetscCall(TimeIterations(A, "gpucg", VECGPU, &iteration));
  PetscCall(MatDestroy(&A));
  found.host_call      = PetscMax(found.device_call, found.host_call - GPUCSRMachineH200.small_launch);
  found.loop_iteration = PetscMax(found.device_call, loop - GPUCSRMachineH200.small_launch);
  ratios->bandwidth    = found.copy_rate / GPUCSRMachineH200.copy_rate;
  if (iteration > 0) ratios->clock = Iteration() / iteration;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Write(FILE *f, GPUCSRDevice dev, const GPUCSRMachineRatios *ratios)
{
  const double *value = (const double *)&found;
  char          date[64];

  PetscFunctionBeginUser;
  PetscCall(PetscGetDate(date, sizeof(date)));
  PetscCall(PetscFPrintf(PETSC_COMM_SELF, f, "# %s, %s: for -mat_gpucsr_machine. Rows that are not here are scaled by the device's properties\n", dev->props.name, date));
  for (int k = 0; k < GPUCSR_MACHINE_NROWS; k++) {
    const GPUCSRMachineRow *row    = &GPUCSRMachineRows[k];
    const PetscBool         scaled = (PetscBool)(row->scaling == GPUCSR_SCALE_BANDWIDTH || row->scaling == GPUCSR_SCALE_PER_BANDWIDTH || row->scaling == GPUCSR_SCALE_PER_CLOCK);

    if (value[k] > 0 || scaled) PetscCall(PetscFPrintf(PETSC_COMM_SELF, f, "%s = %.4g # %s\n", row->name, value[k] > 0 ? value[k] : GPUCSRMachineScaled(row, ratios), row->unit));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode List(GPUCSRDevice dev)
{
  static const char *const scales[] = {"the same everywhere", "bandwidth", "processors", "processors x clock", "cache", "1 / bandwidth", "1 / (processors x clock)", "1 / clock"};
  const double            *value    = (const double *)GPUCSRMachineOf(dev);

  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-25s %-13s %-11s %-11s %-25s %s\n", "name", "unit", "H200", "here", "scales as", "used by"));
  for (int k = 0; k < GPUCSR_MACHINE_NROWS; k++) {
    const GPUCSRMachineRow *row = &GPUCSRMachineRows[k];

    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-25s %-13s %-11.5g %-11.5g %-25s %s\n", row->name, row->unit, row->value, value[k], scales[row->scaling], row->use));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char                name[PETSC_MAX_PATH_LEN] = "", backend[16] = "cuda", why[512];
  GPUCSRMachineRatios ratios;
  GPUCSRDevice        dev;
  PetscBool           list = PETSC_FALSE;
  FILE               *f    = stdout;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", name, sizeof(name), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_backend", backend, sizeof(backend), NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-list", &list));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_backend", backend)); /* also of matrices so small that the host would be faster */
  PetscCall(PetscDLLibraryRegister_petscgpucsr());
  PetscCall(GPUCSRDeviceOpen(backend, &dev, why, sizeof(why)));
  PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "backend %s has no device: %s", backend, why);
  if (list) PetscCall(List(dev));
  else {
    PetscCall(Measure(dev, &ratios));
    if (name[0]) f = fopen(name, "w");
    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-o %s: cannot be written", name);
    PetscCall(Write(f, dev, &ratios));
    if (name[0]) PetscCheck(!fclose(f), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "-o %s: cannot be written", name);
  }
  PetscCall(PetscFinalize());
  return 0;
}
