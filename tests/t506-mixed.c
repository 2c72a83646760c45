//TEST name="operations" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
//TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3"
//TEST name="cg" gpu=1 args="-cg -mat_gpucsr_backend cuda"

/*
  VECGPU with operands of other types that live on the device.

  Operations: a type of the test plays PETSc's device vectors (its array claims to be on the device; the stand-in for a GPU can read it). Results equal standard vectors' results, and no
  vector crosses the bus. An operation on the host's array would be counted, and would give a wrong result, because the host's array of the test's type is wrong.

  -cg: in a PETSc with CUDA and on a GPU, CG with Jacobi where b, x and the vectors of the matrix are VECGPU or VECCUDA, in every combination: 40 iterations copy as often as 10.
*/
#include "testing.h"
#include <petsc/private/vecimpl.h>

#define TESTDEVICE "testdevice"

/* ---- a vector that lives on a device: VECSEQ's array is the host's view, its negative the device's */

typedef struct {
  PetscScalar *device;
  PetscInt     gets;
} Device;

static Device *DeviceOf(Vec v)
{
  PetscContainer c = NULL;
  Device        *d = NULL;

  if (PetscObjectQuery((PetscObject)v, "device", (PetscObject *)&c) || !c || PetscContainerGetPointer(c, (void **)&d)) abort();
  return d;
}

static PetscErrorCode GetRead(Vec v, const PetscScalar **a, PetscMemType *type)
{
  *a = DeviceOf(v)->device;
  if (type) *type = PETSC_MEMTYPE_DEVICE;
  DeviceOf(v)->gets++;
  return PETSC_SUCCESS;
}

static PetscErrorCode RestoreRead(Vec v, const PetscScalar **a)
{
  (void)v;
  *a = NULL;
  return PETSC_SUCCESS;
}

static PetscErrorCode Get(Vec v, PetscScalar **a, PetscMemType *type)
{
  return GetRead(v, (const PetscScalar **)a, type);
}

static PetscErrorCode Restore(Vec v, PetscScalar **a)
{
  return RestoreRead(v, (const PetscScalar **)a);
}

static PetscErrorCode RestoreWrite(Vec v, PetscScalar **a, PetscMemType *type)
{
  (void)type;
  return Restore(v, a);
}

static PetscErrorCode Forget(void *d)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(((Device *)d)->device));
  PetscCall(PetscFree(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecCreate_TestDevice(Vec v)
{
  PetscContainer c;
  Device        *d;

  PetscFunctionBegin;
  PetscCall(VecSetType(v, VECSEQ));
  PetscCall(PetscNew(&d));
  PetscCall(PetscCalloc1(v->map->n, &d->device));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &c));
  PetscCall(PetscContainerSetPointer(c, d));
  PetscCall(PetscContainerSetUserDestroy(c, Forget));
  PetscCall(PetscObjectCompose((PetscObject)v, "device", (PetscObject)c));
  PetscCall(PetscContainerDestroy(&c));
  v->ops->getarrayreadandmemtype      = GetRead;
  v->ops->restorearrayreadandmemtype  = RestoreRead;
  v->ops->getarraywriteandmemtype     = Get;
  v->ops->restorearraywriteandmemtype = RestoreWrite;
  v->ops->getarrayandmemtype          = Get;
  v->ops->restorearrayandmemtype      = Restore;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries on the device; on the host others */
static PetscErrorCode Fill(Vec v, PetscInt seed, PetscBool device)
{
  PetscFunctionBegin;
  PetscCall(TestFill(v, seed, PETSC_FALSE));
  if (device) {
    PetscScalar *a;

    PetscCall(VecGetArray(v, &a));
    for (PetscInt k = 0; k < v->map->n; k++) {
      DeviceOf(v)->device[k] = a[k];
      a[k]                   = -1e30;
    }
    PetscCall(VecRestoreArray(v, &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies of vectors over the bus so far */
static PetscErrorCode Crossings(PetscInt *n)
{
  static const char *const events[] = {"VecGPUCopyTo", "VecGPUCopyFrom", "VecCUDACopyTo", "VecCUDACopyFrom"};
  PetscEventPerfInfo       info;
  PetscLogEvent            e;

  PetscFunctionBegin;
  *n = 0;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(events); k++) {
    PetscCall(PetscLogEventGetId(events[k], &e));
    if (e < 0) continue;
    PetscCall(PetscLogEventGetPerfInfo(PETSC_DEFAULT, e, &info));
    *n += info.count;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define OPERATIONS 16

static const char *const names[OPERATIONS] = {"VecPointwiseMult", "VecAXPY", "VecAYPX", "VecAXPBY",           "VecWAXPY",    "VecWAXPY, the other",   "VecAXPBYPCZ",     "VecMAXPY",
                                              "VecDot",           "VecTDot", "VecMDot", "VecPointwiseDivide", "VecDotNorm2", "VecMaxPointwiseDivide", "VecPointwiseMax", "VecAXPBY by 0"};

/* z: VECGPU, or the reference's type; x, y: the foreign vector and a vector of z's type, in either order. A resulting number is put into z */
static PetscErrorCode Operate(PetscInt op, Vec z, Vec x, Vec y)
{
  Vec               both[2] = {x, y};
  const PetscScalar a[2]    = {0.5, -1.5};
  PetscScalar       r[2]    = {0, 0};
  PetscReal         most    = 0;

  PetscFunctionBegin;
  switch (op) {
  case 0:
    PetscCall(VecPointwiseMult(z, x, y));
    break;
  case 1:
    PetscCall(VecAXPY(z, 0.75, x));
    break;
  case 2:
    PetscCall(VecAYPX(z, 0.75, x));
    break;
  case 3:
    PetscCall(VecAXPBY(z, 0.75, 0.5, x));
    break;
  case 4:
    PetscCall(VecWAXPY(z, 0.75, x, y));
    break;
  case 5:
    PetscCall(VecWAXPY(z, 0.75, y, x));
    break;
  case 6:
    PetscCall(VecAXPBYPCZ(z, 0.75, 0.5, 0.25, x, y));
    break;
  case 7:
    PetscCall(VecMAXPY(z, 2, a, both));
    break;
  case 8:
    PetscCall(VecDot(z, x, r));
    break;
  case 9:
    PetscCall(VecTDot(z, x, r));
    break;
  case 10:
    PetscCall(VecMDot(z, 2, both, r));
    break;
  case 11:
    PetscCall(VecPointwiseDivide(z, y, x));
    break;
  case 12:
    PetscCall(VecDotNorm2(z, x, &r[0], &most));
    break;
  case 13:
    PetscCall(VecMaxPointwiseDivide(z, x, &most));
    break;
  case 14:
    PetscCall(VecPointwiseMax(z, x, y));
    break;
  default:
    PetscCall(VecAXPBY(z, 0.75, 0.0, x));
  }
  if (r[0] != (PetscScalar)0.0 || most != 0) PetscCall(VecSet(z, r[0] + 2.0 * r[1] + most));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Operations(PetscInt n)
{
  Vec      z, x, y, zr, xr, yr;
  PetscInt before, after;

  PetscFunctionBegin;
  PetscCall(VecRegister(TESTDEVICE, VecCreate_TestDevice));
  PetscCall(VecCreate(PETSC_COMM_SELF, &z));
  PetscCall(VecSetSizes(z, n, n));
  PetscCall(VecSetType(z, "gpu"));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, n, n));
  PetscCall(VecSetType(x, TESTDEVICE));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &zr));
  PetscCall(VecDuplicate(zr, &xr));
  PetscCall(VecDuplicate(zr, &yr));
  for (PetscInt op = 0; op < OPERATIONS; op++)
    for (PetscInt turned = 0; turned < 2; turned++) {
      if (turned && (op != 0 && op != 4 && op != 7 && op != 10 && op != 14)) continue; /* its operands are not alike */
      PetscCall(Fill(z, 1, PETSC_FALSE));
      PetscCall(Fill(y, 2, PETSC_FALSE));
      PetscCall(Fill(x, 3, PETSC_TRUE));
      PetscCall(Fill(zr, 1, PETSC_FALSE));
      PetscCall(Fill(yr, 2, PETSC_FALSE));
      PetscCall(Fill(xr, 3, PETSC_FALSE));
      PetscCall(VecScale(z, 1.0009765625)); /* both are on the device */
      PetscCall(VecScale(y, 1.0009765625));
      PetscCall(VecScale(zr, 1.0009765625));
      PetscCall(VecScale(yr, 1.0009765625));
      PetscCall(Crossings(&before));
      PetscCall(Operate(op, z, turned ? y : x, turned ? x : y));
      PetscCall(Crossings(&after));
      PetscCall(Operate(op, zr, turned ? yr : xr, turned ? xr : yr));
      PetscCheck(after == before, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s of a VECGPU and another device vector: %" PetscInt_FMT " vectors crossed the bus", names[op], after - before);
      {
        Vec       bound;
        PetscReal norm[2];

        PetscCall(VecDuplicate(zr, &bound)); /* a sum over n of products of entries of at most 2.1, or a few of them */
        PetscCall(VecNorm(zr, NORM_INFINITY, &norm[0]));
        PetscCall(VecSet(bound, 8.0 * (norm[0] + (op == 8 || op == 9 || op == 10 || op == 12 ? (PetscReal)n : 1.0))));
        PetscCall(TestClose(z, zr, bound, names[op], "with another device vector"));
        PetscCall(VecDestroy(&bound));
      }
    }
  /* copies to it */
  PetscCall(Fill(z, 1, PETSC_FALSE));
  PetscCall(VecScale(z, 2.0));
  PetscCall(Crossings(&before));
  PetscCall(VecCopy(z, x));
  PetscCall(Crossings(&after));
  PetscCheck(after == before, PETSC_COMM_SELF, PETSC_ERR_PLIB, "VecCopy() of a VECGPU to another device vector crosses the bus");
  PetscCall(VecAXPY(z, -1.0, x));
  {
    PetscReal norm;

    PetscCall(VecNorm(z, NORM_INFINITY, &norm));
    PetscCheck(norm == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a copy to another device vector differs by %g", (double)norm);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&xr));
  PetscCall(VecDestroy(&yr));
  PetscCall(VecDestroy(&zr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CG with Jacobi of 10 iterations and of 40, types of b and x, and of the vectors of the matrix */
static PetscErrorCode Solves(VecType tb, VecType tx, VecType tm)
{
  Mat      A;
  Vec      b, x;
  KSP      ksp;
  PC       pc;
  PetscInt n[3], k = 60;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_SELF, k, 0.0, PETSC_FALSE, &A));
  PetscCall(MatSetVecType(A, tm));
  PetscCall(VecCreate(PETSC_COMM_SELF, &b));
  PetscCall(VecSetSizes(b, k * k, k * k));
  PetscCall(VecSetType(b, tb));
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, k * k, k * k));
  PetscCall(VecSetType(x, tx));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  for (int q = 0; q < 3; q++) {
    PetscCall(KSPSetTolerances(ksp, 1e-30, 1e-300, 1e30, q == 2 ? 40 : 10));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Crossings(&n[q]));
  }
  PetscCheck(n[2] - n[1] == n[1] - n[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "b %s, x %s, vectors of the matrix %s: %" PetscInt_FMT " copies over the bus in 10 iterations, %" PetscInt_FMT " in 40", tb, tx, tm, n[1] - n[0], n[2] - n[1]);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool cg = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-cg", &cg, NULL));
  if (cg && !PetscDefined(HAVE_CUDA)) PetscCall(PetscPrintf(PETSC_COMM_SELF, "skipped: this PETSc has no CUDA\n"));
  if (cg && PetscDefined(HAVE_CUDA)) {
    static const char *const types[] = {"seqgpu", "seqcuda"};

    for (int k = 0; k < 8; k++) PetscCall(Solves(types[k & 1], types[k >> 1 & 1], types[k >> 2 & 1]));
  }
  if (!cg) PetscCall(Operations(1000));
  PetscCall(PetscFinalize());
  return 0;
}
