/*
  PCPBJACOBI applied on the device: one kernel, a thread a row. Each set-up finds the blocks by applying PETSc's PC to unit vectors.
*/
#include "../petscprivate.h"
#include "device.h"

typedef struct {
  PetscInt bs, n;
  double  *rows; /* of the inverses of blocks */
} Blocks;

static PetscErrorCode PBJacobiRelease(PCDevice d)
{
  Blocks *b = (Blocks *)d->data;

  return GPUCSRFree(d->dev, sizeof(double) * (size_t)b->n * (size_t)b->bs, (void **)&b->rows);
}

static PetscErrorCode PBJacobiTake(PC pc, PCDevice d, Vec x, PetscBool *possible)
{
  Blocks        *b = (Blocks *)d->data;
  const PetscInt n = x->map->n;
  double        *rows;
  size_t         count;
  PetscInt       bs;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGetBlockSize(pc->pmat, &bs));
  *possible = (PetscBool)(n % bs == 0);
  if (!*possible) PetscFunctionReturn(PETSC_SUCCESS);
  if (b->rows && (bs != b->bs || n != b->n)) PetscCall(PBJacobiRelease(d));
  b->bs = bs;
  b->n  = n;
  count = (size_t)n * (size_t)bs;
  if (!b->rows) PetscCall(GPUCSRMalloc(d->dev, sizeof(double) * count, "the blocks of a preconditioner", (void **)&b->rows));
  PetscCall(PetscMalloc1(count, &rows));
  ierr = GPUCSRProbe(PETSC_COMM_SELF, PCDeviceApplyPETSc, pc, n, 0, bs, NULL, rows); /* not collective: another rank may have its vectors on the host and skip this code */
  if (!ierr) ierr = GPUCSRUpload(d->dev, b->rows, GPUCSR_DOUBLE, rows, GPUCSR_DOUBLE, count, PETSC_FALSE, d->dev->stream, NULL);
  PetscCall(PetscFree(rows));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode PBJacobiApply(PC pc, PCDevice d, Vec x, Vec y)
{
  Blocks        *b = (Blocks *)d->data;
  const double  *from;
  double        *to;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(VecGPUGetArrayRead(x, &from));
  PetscCall(VecGPUGetArrayWrite(y, &to));
  {
    const GPUMGPass p = {.n = (int)b->n, .bs = (int)b->bs, .ca = 0, .cb = 1, .M = b->rows, .r = from, .x = NULL, .d = NULL, .z = to};

    ierr = GPUMGPassRun(d->dev, &p, d->dev->stream);
  }
  PetscCall(VecGPURestoreArrayWrite(y, &to));
  PetscCall(VecGPURestoreArrayRead(x, &from));
  PetscCall(ierr);
  PetscCall(PetscLogFlops(2.0 * (double)b->n * (double)b->bs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const PCDeviceOps PCDeviceOps_PBJacobi = {sizeof(Blocks), PBJacobiTake, PBJacobiApply, PBJacobiRelease};
