/*
  PCGAMG of several ranks: a PC of type gpuamg, which no program sees, makes the levels on the devices of all ranks (../gpuamg/ranks.c). From the first level on of which PETSc would take fewer ranks, PETSc makes levels.
*/
#include "../gpuamg/gpuamgimpl.h"
#include "gamg.h"

/* Collective, and so are its errors: the levels of A by options of one rank, and by PETSc's rule for the number of ranks. near: as many vectors as PETSc has, by rows, or NULL */
PetscErrorCode PCGAMGRanksMake_Private(PC pc, Mat A, const GPUAMGOptions *o, const double *near, PCGAMGData *d)
{
  const PC_GAMG *g    = (const PC_GAMG *)((const PC_MG *)pc->data)->innerctx;
  const size_t   size = (size_t)A->rmap->n * (size_t)g->data_cell_cols;
  PC_GPUAMG     *a;

  PetscFunctionBegin;
  PetscCall(PCCreate(PetscObjectComm((PetscObject)A), &d->shared->of));
  PetscCall(PCSetType(d->shared->of, PCGPUAMG));
  PetscCall(PCSetOperators(d->shared->of, A, A));
  a                   = (PC_GPUAMG *)d->shared->of->data;
  a->asked.o          = *o;
  a->asked.nthreshold = GPUAMG_LEVELS;
  a->asked.least      = (int)PetscMin(g->min_eq_proc, INT32_MAX);
  a->asked.gather     = 0;
  a->part = a->reuse = PETSC_TRUE;
  if (near) {
    PetscCall(PetscMalloc1(size + 1, &a->given));
    PetscCall(PetscArraycpy(a->given, near, size));
    a->ngiven = g->data_cell_cols;
  }
  a->used = a->asked;
  PetscCall(PCGPUAMGRanksLevels_Private(d->shared->of));
  d->whole = (PetscBool)(!a->h.problem && a->ranks->levels > 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- new values ---- */

static PetscErrorCode Values(const GPUCSRRanksCSR *M, Mat A)
{
  PetscInt      *i, *j;
  PetscScalar   *a;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(GPUCSRRanksRows(M, &i, &j, &a));
  for (PetscInt r = 0; r < A->rmap->n && !ierr; r++) {
    const PetscInt row = A->rmap->rstart + r;

    ierr = MatSetValues(A, 1, &row, i[r + 1] - i[r], j + i[r], a + i[r], INSERT_VALUES);
  }
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(ierr);
}

/* Collective: the coarsest matrix of the devices, and PETSc's products with old prolongators below */
PetscErrorCode PCGAMGRanksRenew_Private(PC pc, PCGAMGHierarchy *s)
{
  const PC_MG       *mg = (const PC_MG *)pc->data;
  const GPUAMGRanks *r  = ((const PC_GPUAMG *)s->of->data)->ranks;
  const PetscInt     at = mg->nlevels - r->levels; /* of the coarsest matrix, in PETSc's order */
  GPUCSRAttempt      attempt;
  Mat                A, C;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(mg->levels[at]->smoothd, NULL, &A));
  GPUCSRTry(&attempt, Values(&r->level[r->levels - 1].A.m, A));
  PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  for (PetscInt l = at; l > 0; l--, A = C) {
    Mat       P = mg->levels[l]->interpolate;
    PetscBool same;

    PetscCall(KSPGetOperators(mg->levels[l - 1]->smoothd, NULL, &C));
    same = (PetscBool)(C->product && C->product->A == A && C->product->B == P);
    if (!same) PetscCall(MatDestroy(&mg->levels[l - 1]->A));
    PetscCall(MatPtAP(A, P, same ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    if (!same) mg->levels[l - 1]->A = C;
    PetscCall(KSPSetOperators(mg->levels[l - 1]->smoothd, C, C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
