/*
  PCVPBJACOBI applied on the device: a product with a gpucsr matrix of the blocks' inverses. Each set-up finds the inverses by applying PETSc's PC to vectors with a one in the k-th row of each block.
*/
#include "../petscprivate.h"
#include "device.h"

typedef struct {
  Mat inverse; /* of this process' rows */
  Vec x, y;    /* local vectors of the arguments */
} VBlocks;

static PetscErrorCode VPBJacobiRelease(PCDevice d)
{
  VBlocks *b = (VBlocks *)d->data;

  PetscFunctionBegin;
  PetscCall(MatDestroy(&b->inverse));
  PetscCall(VecDestroy(&b->x));
  PetscCall(VecDestroy(&b->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With the options of the PC's matrix, but in double precision, as PETSc's */
static PetscErrorCode Inverse(PC pc, PetscInt n, const PetscInt i[], const PetscInt j[], const PetscScalar a[], Mat *M)
{
  const char *prefix;

  PetscFunctionBegin;
  PetscCall(MatGetOptionsPrefix(pc->pmat, &prefix));
  PetscCall(MatCreate(PETSC_COMM_SELF, M));
  PetscCall(MatSetSizes(*M, n, n, n, n));
  PetscCall(MatSetOptionsPrefix(*M, prefix));
  PetscCall(MatSetType(*M, MATSEQAIJGPUCSR));
  PetscCall(MatSetFromOptions(*M));
  PetscCall(MatSetType(*M, MATSEQAIJGPUCSR));
  PetscCall(MatGPUCSRSetPrecision(*M, MAT_GPUCSR_DOUBLE));
  PetscCall(MatSetOptionsPrefix(*M, "vpbjacobi_inverse_")); /* -mat_view is about the program's matrices */
  PetscCall(MatSeqAIJSetPreallocationCSR(*M, i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VPBJacobiTake(PC pc, PCDevice d, Vec x, PetscBool *possible)
{
  VBlocks        *b = (VBlocks *)d->data;
  const PetscInt  n = x->map->n;
  PetscInt        count, most = 0, entries = 0, rows = 0, row = 0, e = 0, *i, *j, *place;
  const PetscInt *sizes;
  PetscScalar    *a;
  double         *all;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(VPBJacobiRelease(d));
  PetscCall(MatGetVariableBlockSizes(pc->pmat, &count, &sizes));
  for (PetscInt k = 0; k < count; k++) {
    most = PetscMax(most, sizes[k]);
    rows += sizes[k];
    entries += sizes[k] * sizes[k];
  }
  *possible = (PetscBool)(n && rows == n);
  if (!*possible) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc5(n + 1, &i, entries, &j, entries, &a, n, &place, (size_t)n * (size_t)most, &all));
  /* the pattern, and the place of each row in its block */
  for (PetscInt k = 0; k < count; k++) {
    const PetscInt first = row;

    for (PetscInt r = 0; r < sizes[k]; r++) {
      place[row] = r;
      i[row++]   = e;
      for (PetscInt c = 0; c < sizes[k]; c++) j[e++] = first + c;
    }
  }
  i[row] = e;
  ierr   = GPUCSRProbe(PETSC_COMM_SELF, PCDeviceApplyPETSc, pc, n, 0, most, place, all); /* not collective: another rank may have its vectors on the host and skip this code */
  for (PetscInt r = 0; r < n && !ierr; r++)
    for (PetscInt k = 0; k < i[r + 1] - i[r]; k++) a[i[r] + k] = (PetscScalar)all[(size_t)r * (size_t)most + (size_t)k];
  if (!ierr) ierr = Inverse(pc, n, i, j, a, &b->inverse);
  PetscCall(PetscFree5(i, j, a, place, all));
  PetscCall(ierr);
  PetscCall(VecCreateLocalVector(x, &b->x));
  PetscCall(VecCreateLocalVector(x, &b->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VPBJacobiApply(PC pc, PCDevice d, Vec x, Vec y)
{
  VBlocks *b = (VBlocks *)d->data;

  PetscFunctionBegin;
  PetscCall(VecGetLocalVectorRead(x, b->x));
  PetscCall(VecGetLocalVector(y, b->y));
  PetscCall(MatMult(b->inverse, b->x, b->y));
  PetscCall(VecRestoreLocalVector(y, b->y));
  PetscCall(VecRestoreLocalVectorRead(x, b->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const PCDeviceOps PCDeviceOps_VPBJacobi = {sizeof(VBlocks), VPBJacobiTake, VPBJacobiApply, VPBJacobiRelease};
