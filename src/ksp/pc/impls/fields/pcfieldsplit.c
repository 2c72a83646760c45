/*
  PCFIELDSPLIT, additive and (symmetric) multiplicative, applied on one device: kernels gather fields and add them up, and compute residuals with the whole matrix. PETSc's own application uses
  VecScatter, which works on the host. PETSc does Schur complements and the rest.
*/
#include "../petscprivate.h"
#include <petscksp.h>
#include "../blocks/device.h"

typedef struct {
  IS  is;
  int m, *index; /* its entries, on the device */
  Vec b, x;
} Field;

typedef struct {
  PetscInt n;
  Field   *field;
  KSP     *ksp;
  Vec      w;
} Fields;

static PetscErrorCode FieldSplitRelease(PCDevice d)
{
  Fields *f = (Fields *)d->data;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < f->n; k++) {
    PetscCall(GPUCSRFree(d->dev, sizeof(int) * (size_t)f->field[k].m, (void **)&f->field[k].index));
    PetscCall(ISDestroy(&f->field[k].is));
    PetscCall(VecDestroy(&f->field[k].b));
    PetscCall(VecDestroy(&f->field[k].x));
  }
  PetscCall(PetscFree(f->field));
  PetscCall(PetscFree(f->ksp));
  PetscCall(VecDestroy(&f->w));
  f->n = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A field: its entries on the device, and its vectors, also on the device */
static PetscErrorCode TakeField(PC pc, PCDevice d, PetscInt k, PetscBool *possible)
{
  Fields         *f = (Fields *)d->data;
  Field          *e = &f->field[k];
  Mat             P;
  PetscInt        m;
  const PetscInt *index;
  GPUCSRDevice    dev[2];
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(PCFieldSplitGetISByIndex(pc, k, &e->is));
  PetscCall(PetscObjectReference((PetscObject)e->is));
  PetscCall(ISGetLocalSize(e->is, &m));
  PetscCall(KSPGetOperators(f->ksp[k], NULL, &P));
  PetscCall(MatCreateVecs(P, &e->x, &e->b));
  PetscCall(VecGPUGetDevice(e->b, &dev[0]));
  PetscCall(VecGPUGetDevice(e->x, &dev[1]));
  *possible = (PetscBool)(dev[0] == d->dev && dev[1] == d->dev && e->b->map->n == m);
  if (!*possible) PetscFunctionReturn(PETSC_SUCCESS);
  e->m = (int)m;
  PetscCall(GPUCSRMalloc(d->dev, sizeof(int) * (size_t)m, "the entries of a field", (void **)&e->index));
  PetscCall(ISGetIndices(e->is, &index));
  ierr = GPUCSRUpload(d->dev, e->index, GPUCSR_INT32, index, GPUCSR_PETSCINT, (size_t)m, PETSC_FALSE, d->dev->stream, NULL);
  PetscCall(ISRestoreIndices(e->is, &index));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FieldSplitTake(PC pc, PCDevice d, Vec x, PetscBool *possible)
{
  Fields         *f = (Fields *)d->data;
  PetscMPIInt     size;
  PCCompositeType type;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  PetscCall(PCFieldSplitGetType(pc, &type));
  *possible = (PetscBool)(size == 1 && (type == PC_COMPOSITE_ADDITIVE || type == PC_COMPOSITE_MULTIPLICATIVE || type == PC_COMPOSITE_SYMMETRIC_MULTIPLICATIVE));
  PetscCall(FieldSplitRelease(d));
  if (!*possible) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCFieldSplitGetSubKSP(pc, &f->n, &f->ksp));
  PetscCall(PetscCalloc1(f->n, &f->field));
  for (PetscInt k = 0; k < f->n && *possible; k++) PetscCall(TakeField(pc, d, k, possible));
  if (type != PC_COMPOSITE_ADDITIVE && *possible) PetscCall(VecDuplicate(x, &f->w));
  if (!*possible) PetscCall(FieldSplitRelease(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are these vectors still on the device? A vector without memory there is not; NULL is ignored */
static PetscErrorCode AreOnDevice(PCDevice d, Vec u, Vec v, Vec w, PetscBool *yes)
{
  const Vec    all[] = {u, v, w};
  GPUCSRDevice dev;

  PetscFunctionBegin;
  *yes = PETSC_TRUE;
  for (int k = 0; k < 3; k++) {
    if (!all[k]) continue;
    PetscCall(VecGPUGetDevice(all[k], &dev));
    if (dev != d->dev) *yes = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b of a field = x, less w unless w is NULL */
static PetscErrorCode Gather(PCDevice d, const Field *e, Vec x, Vec w)
{
  const double  *ax, *aw = NULL;
  double        *ab;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(VecGPUGetArrayRead(x, &ax));
  if (w) PetscCall(VecGPUGetArrayRead(w, &aw));
  PetscCall(VecGPUGetArrayWrite(e->b, &ab));
  ierr = GPUMGGather(d->dev, e->m, e->index, ax, aw, ab, d->dev->stream);
  PetscCall(VecGPURestoreArrayWrite(e->b, &ab));
  if (w) PetscCall(VecGPURestoreArrayRead(w, &aw));
  PetscCall(VecGPURestoreArrayRead(x, &ax));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y += x of a field */
static PetscErrorCode Scatter(PCDevice d, const Field *e, Vec y)
{
  const double  *ax;
  double        *ay;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(VecGPUGetArrayRead(e->x, &ax));
  PetscCall(VecGPUGetArray(y, &ay));
  ierr = GPUMGScatter(d->dev, e->m, e->index, ax, ay, d->dev->stream);
  PetscCall(VecGPURestoreArray(y, &ay));
  PetscCall(VecGPURestoreArrayRead(e->x, &ax));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y += the solution of field k for x, less A y unless y is zero. done: the vectors were all on the device */
static PetscErrorCode SolveAndAdd(PC pc, PCDevice d, PetscInt k, PetscBool zero, Vec x, Vec y, PetscBool *done)
{
  Fields   *f = (Fields *)d->data;
  Field    *e = &f->field[k];
  PetscBool amat;

  PetscFunctionBegin;
  if (!zero) {
    PetscCall(PCFieldSplitGetOffDiagUseAmat(pc, &amat));
    PetscCall(MatMult(amat ? pc->mat : pc->pmat, y, f->w));
  }
  PetscCall(AreOnDevice(d, x, zero ? NULL : f->w, e->b, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Gather(d, e, x, zero ? NULL : f->w));
  PetscCall(KSPSolve(f->ksp[k], e->b, e->x));
  PetscCall(KSPCheckSolve(f->ksp[k], pc, e->x));
  PetscCall(AreOnDevice(d, e->x, y, NULL, done));
  if (*done) PetscCall(Scatter(d, e, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If a vector has left the device meanwhile, PETSc's application starts anew */
static PetscErrorCode FieldSplitApply(PC pc, PCDevice d, Vec x, Vec y)
{
  Fields         *f    = (Fields *)d->data;
  PetscBool       done = PETSC_TRUE;
  PCCompositeType type;

  PetscFunctionBegin;
  PetscCall(PCFieldSplitGetType(pc, &type));
  PetscCall(VecSet(y, 0.0));
  for (PetscInt k = 0; k < f->n && done; k++) PetscCall(SolveAndAdd(pc, d, k, (PetscBool)(k == 0 || type == PC_COMPOSITE_ADDITIVE), x, y, &done));
  for (PetscInt k = f->n - 2; k >= 0 && done && type == PC_COMPOSITE_SYMMETRIC_MULTIPLICATIVE; k--) PetscCall(SolveAndAdd(pc, d, k, PETSC_FALSE, x, y, &done));
  if (!done) PetscCall((*d->wrap->petsc.pc.apply)(pc, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const PCDeviceOps PCDeviceOps_FieldSplit = {sizeof(Fields), FieldSplitTake, FieldSplitApply, FieldSplitRelease};
