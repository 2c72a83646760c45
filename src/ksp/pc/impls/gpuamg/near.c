/*
  The near null space of a PCGPUAMG: from the level above, else rigid motions of the program's coordinates, else from the matrix, else a constant of each component.
*/
#include "gpuamgimpl.h"

/* Translations and infinitesimal rotations of points in the plane (3) or in space (6) */
static void RigidMotions(PetscInt dim, PetscInt points, const PetscReal x[], double *rows)
{
  const PetscInt ns = dim == 2 ? 3 : 6;

  for (PetscInt p = 0; p < points; p++, x += dim) {
    double *r = rows + p * dim * ns;

    for (PetscInt c = 0; c < dim; c++)
      for (PetscInt v = 0; v < ns; v++) r[c * ns + v] = v == c;
    if (dim == 2) {
      r[2]      = (double)-x[1];
      r[ns + 2] = (double)x[0];
      continue;
    }
    for (int q = 0; q < 3; q++) { /* about axis q */
      const int a = (q + 1) % 3, b = (q + 2) % 3;

      r[a * ns + 3 + q] = (double)-x[b];
      r[b * ns + 3 + q] = (double)x[a];
    }
  }
}

static PetscErrorCode NearRows(MPI_Comm comm, PetscInt n, PetscInt ns, PetscBool constant, const Vec v[], double *rows)
{
  const PetscScalar *x;
  PetscInt           size;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < ns; c++) {
    const PetscBool one = (PetscBool)(constant && c == 0);

    if (!one) PetscCall(VecGetLocalSize(v[c - (PetscInt)constant], &size));
    PetscCheck(one || size == n, comm, PETSC_ERR_ARG_SIZ, "Vector %" PetscInt_FMT " of the near null space has %" PetscInt_FMT " rows, its matrix %" PetscInt_FMT, c, size, n);
    if (!one) PetscCall(VecGetArrayRead(v[c - (PetscInt)constant], &x));
    for (PetscInt i = 0; i < n; i++) rows[i * ns + c] = one ? 1 : (double)PetscRealPart(x[i]);
    if (!one) PetscCall(VecRestoreArrayRead(v[c - (PetscInt)constant], &x));
    for (PetscInt i = 0; i < n; i++) PetscCheck(!PetscIsInfOrNanReal((PetscReal)rows[i * ns + c]), comm, PETSC_ERR_FP, "Vector %" PetscInt_FMT " of the near null space has no finite number in row %" PetscInt_FMT, c, i);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* bs: rows of a vertex; ns: near null vectors; basis: the vectors by rows on the device, or nothing for a constant of each component */
PetscErrorCode PCGPUAMGNear_Private(PC pc, GPUCSRDevice dev, PetscInt *bs, PetscInt *ns, GPUCSRBuffer *basis)
{
  const PC_GPUAMG *a        = (const PC_GPUAMG *)pc->data;
  const MPI_Comm   comm     = PetscObjectComm((PetscObject)pc);
  const PetscInt   n        = pc->pmat->rmap->n;
  PetscBool        constant = PETSC_FALSE, motions, none = PETSC_FALSE;
  const Vec       *v    = NULL;
  MatNullSpace     near = NULL;
  double          *rows;
  size_t           count;
  PetscErrorCode   ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatGetBlockSize(pc->pmat, bs));
  PetscCheck(*bs <= GPUAMG_VECTORS, comm, PETSC_ERR_SUP, "PC type gpuamg takes blocks of at most %d rows, not %" PetscInt_FMT, GPUAMG_VECTORS, *bs);
  *ns     = *bs;
  motions = (PetscBool)(a->dim > 1 && a->dim == *bs);
  if (!a->part) PetscCall(MatGetNearNullSpace(pc->pmat, &near)); /* the PC of which this one is a part gives vectors, or none */
  if (a->given) *ns = a->ngiven;
  else if (motions) {
    PetscCheck(a->points * a->dim == n, comm, PETSC_ERR_ARG_SIZ, "PCSetCoordinates() has given %" PetscInt_FMT " points on a process whose matrix has %" PetscInt_FMT " blocks of rows", a->points, n / *bs);
    *ns = *bs == 2 ? 3 : 6;
  } else if (near) {
    PetscCall(MatNullSpaceGetVecs(near, &constant, ns, &v));
    *ns += (PetscInt)constant;
    PetscCheck(*ns <= GPUAMG_VECTORS, comm, PETSC_ERR_SUP, "PC type gpuamg takes a near null space of at most %d vectors, not %" PetscInt_FMT, GPUAMG_VECTORS, *ns);
    none = (PetscBool) !*ns;
    if (none) *ns = *bs;
  } else none = PETSC_TRUE;
  if (none) PetscFunctionReturn(PETSC_SUCCESS);
  count = (size_t)PetscMax(1, n * *ns);
  PetscCall(PetscCalloc1(count, &rows));
  if (a->given) PetscCall(PetscArraycpy(rows, a->given, n * *ns));
  else if (motions) RigidMotions(a->dim, a->points, a->coordinates, rows);
  else ierr = NearRows(comm, n, *ns, constant, v, rows);
  if (!ierr) ierr = GPUCSRBufferGrow(dev, sizeof(double) * count, "a near null space", basis);
  if (!ierr) ierr = GPUCSRUpload(dev, basis->p, GPUCSR_DOUBLE, rows, GPUCSR_DOUBLE, count, PETSC_FALSE, dev->stream, NULL);
  PetscCall(PetscFree(rows));
  PetscFunctionReturn(ierr);
}

/* PCSetCoordinates(): dim numbers a point */
PetscErrorCode PCSetCoordinates_GPUAMG(PC pc, PetscInt dim, PetscInt points, PetscReal coordinates[])
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  PetscCheck(dim >= 1 && dim <= 3 && points >= 0, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, "PCSetCoordinates(): %" PetscInt_FMT " points of %" PetscInt_FMT " numbers: there must be from 1 to 3 a point", points, dim);
  for (PetscInt k = 0; k < dim * points; k++) PetscCheck(!PetscIsInfOrNanReal(coordinates[k]), PetscObjectComm((PetscObject)pc), PETSC_ERR_FP, "PCSetCoordinates(): point %" PetscInt_FMT " has a number that is not finite", k / dim);
  PetscCall(PetscFree(a->coordinates));
  a->dim = a->points = 0;
  PetscCall(PetscMalloc1(dim * points, &a->coordinates));
  PetscCall(PetscArraycpy(a->coordinates, coordinates, dim * points));
  a->dim    = dim;
  a->points = points;
  a->moved  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
