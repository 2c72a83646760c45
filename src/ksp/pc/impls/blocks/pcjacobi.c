/*
  PCJACOBI with its diagonal on the device. PETSc's set-up replaces zeros by ones in the host's array, so it copies the diagonal to the host and back. Here the device looks for zeros and Inf. If it
  finds none, PETSc's own switch leaves out the search during the set-up. A part of the set-up happens in the first application.
*/
#include "device.h"

typedef struct {
  GPUCSRWrap      *wrap;
  PetscBool        sound; /* the diagonal has no zeros and no Inf, and no application has followed its set-up */
  PetscObjectState state; /* of the matrix at the set-up; with PCSetReusePreconditioner() the matrix may change before an application */
} Jacobi;

/* The least reciprocal of the diagonal's sizes on this rank; zeros and Inf count as 0. Also 0 if vectors are on the host. Not collective */
static PetscErrorCode Least(PC pc, PetscReal *least)
{
  Mat            A;
  Vec            d;
  PetscBool      isvecgpu;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock(pc->pmat, &A));
  PetscCall(MatCreateVecs(A, &d, NULL));
  PetscCall(VecGPUCheck(d, &isvecgpu));
  if (isvecgpu) ierr = MatGetDiagonal(A, d);
  if (isvecgpu && !ierr) ierr = VecReciprocal(d);
  if (isvecgpu && !ierr) ierr = VecAbs(d);
  if (isvecgpu && !ierr) ierr = VecMin(d, NULL, least);
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(ierr);
}

/* Would PETSc look for zeros, and of the diagonal? */
static PetscErrorCode Looks(PC pc, PetscBool *looks)
{
  PCJacobiType type;

  PetscFunctionBegin;
  PetscCall(PCJacobiGetType(pc, &type));
  PetscCall(PCJacobiGetFixDiagonal(pc, looks));
  *looks = (PetscBool)(*looks && type == PC_JACOBI_DIAGONAL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_Jacobi(PC pc)
{
  Jacobi        *j;
  PetscErrorCode ierr;
  PetscBool      looks;
  PetscReal      least = 0;
  GPUCSRAttempt  attempt;
  PetscErrorCode (*info)(Mat, MatGPUCSRInfo *) = NULL;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &j));
  /* sound is PETSC_FALSE also if PETSc would not look, if the matrix has a type of PETSc, or after a failure on one rank; PETSc's set-up meets the same failure again */
  PetscCall(Looks(pc, &looks));
  PetscCall(PetscObjectQueryFunction((PetscObject)pc->pmat, "MatGPUCSRGetInfo_C", &info));
  if (looks && info) {
    GPUCSRTry(&attempt, Least(pc, &least));
    if (attempt.error || !(least > 0)) least = 0; /* NaN, too */
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPIU_REAL, MPIU_MIN, PetscObjectComm((PetscObject)pc)));
  }
  j->sound = (PetscBool)(least > 0);
  PetscCall(PetscObjectStateGet((PetscObject)pc->pmat, &j->state));
  if (j->sound) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_FALSE));
  ierr = (*j->wrap->petsc.pc.setup)(pc);
  if (j->sound) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_TRUE));
  PetscFunctionReturn(ierr);
}

/* The first application after the set-up, with an unchanged matrix and unchanged options, does not look for zeros either */
static PetscErrorCode Apply(PC pc, PetscBool transpose, Vec x, Vec y)
{
  Jacobi          *j;
  PetscObjectState state;
  PetscBool        first, looks;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &j));
  first    = j->sound;
  j->sound = PETSC_FALSE;
  if (first) {
    PetscCall(PetscObjectStateGet((PetscObject)pc->pmat, &state));
    PetscCall(Looks(pc, &looks));
    first = (PetscBool)(looks && state == j->state);
  }
  if (first) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_FALSE));
  ierr = transpose ? (*j->wrap->petsc.pc.applytranspose)(pc, x, y) : (*j->wrap->petsc.pc.apply)(pc, x, y);
  if (first) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_TRUE));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode PCApply_Jacobi(PC pc, Vec x, Vec y)
{
  return Apply(pc, PETSC_FALSE, x, y);
}

static PetscErrorCode PCApplyTranspose_Jacobi(PC pc, Vec x, Vec y)
{
  return Apply(pc, PETSC_TRUE, x, y);
}

GPUCSR_WRAP(PC, Jacobi, PCJACOBI, .ops.pc = {.setup = PCSetUp_Jacobi, .apply = PCApply_Jacobi, .applytranspose = PCApplyTranspose_Jacobi}, .bytes = sizeof(Jacobi))

GPUCSR_WRAP_REGISTER(PCJacobiInitialize_Private, PCList, &wrap_Jacobi)
