/*
  The tail of a cycle: its small levels as one dense matrix. From a zero start, the cycle on a level is linear in the right-hand side. On a small level a dense product takes less time than the
  launches of all passes below. One cycle of the level, applied to all unit vectors at once, gives the columns of the matrix: vectors become panels with as many columns, stored by rows.
*/
#include "cycle.h"

/* Leaves the matrix in c->tail. Columns of it are cycles from the level bottom on */
static PetscErrorCode Columns(GPUMGCycle *c, int bottom, GPUCSRStorage own[][2])
{
  const int    n       = c->level[bottom].n;
  const size_t columns = (size_t)n, bytes = sizeof(double) * columns * columns;
  size_t       room = 0, next = 0;

  PetscFunctionBegin;
  /* the matrices of levels up to bottom in CSR, and panels for their vectors */
  for (int l = 0; l <= bottom; l++) room += 4 * GPUCSRAlignUp(sizeof(double) * (size_t)c->level[l].n * columns);
  PetscCall(GPUCSRBufferGrow(c->dev, room, "panels of a multigrid tail", &c->panels));
  for (int l = 0; l <= bottom; l++) {
    GPUMGLevel *L   = &c->level[l];
    void      **v[] = {&L->b, &L->x, &L->r, &L->d};

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(v); k++) {
      *v[k] = (char *)c->panels.p + next;
      next += GPUCSRAlignUp(sizeof(double) * (size_t)L->n * columns);
    }
    PetscCall(MatGPUCSROperatorCSR_Private(&L->A.o, NULL, &L->A.rows));
    if (!l) continue;
    PetscCall(MatGPUCSROperatorCSR_Private(&L->P.o, &own[l][0], &L->P.rows));
    PetscCall(MatGPUCSROperatorCSR_Private(&L->R.o, &own[l][1], &L->R.rows));
  }
  PetscCall(GPUCSRBufferGrow(c->dev, bytes, "the tail of a multigrid cycle", &c->tail));
  PetscCall(GPUMGIdentity(c->dev, n, (double *)c->level[bottom].b, c->dev->stream));
  PetscCall(GPUMGCycleRunColumns(c, bottom, c->level[bottom + 1].cycles, n));
  PetscCall(c->dev->ops->copy(c->dev->id, c->tail.p, c->level[bottom].x, bytes, GPUCSR_ON_DEVICE, c->dev->stream));
  PetscCall(c->dev->ops->streamsynchronize(c->dev->id, c->dev->stream)); /* transposes go */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  One matrix for the levels of at most so many rows in V and W cycles, below the finest level. The coarsest level alone gains nothing: its solver is a matrix already. Other cycle types begin on
  small levels, not from 0
*/
PetscErrorCode GPUMGTailMake(GPUMGCycle *c, int most)
{
  GPUCSRStorage own[GPUMG_LEVELS][2] = {{{0}}}; /* P and R if only their transposes are stored */
  int           bottom               = 0;
  GPUMGCycle   *t;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  c->bottom = 0;
  if (c->type != PC_MG_MULTIPLICATIVE) PetscFunctionReturn(PETSC_SUCCESS);
  while (bottom < c->levels - 2 && c->level[bottom + 1].n <= most && !GPUMGFactored(&c->level[bottom + 1]) && (c->exact || !GPUMGFactored(&c->level[0]))) bottom++; /* a solve takes one vector */
  if (!bottom) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&t));
  *t        = *c; /* with panels as its vectors */
  t->krylov = GPUMG_KRYLOV_NONE;
  GPUCSRTry(&attempt, Columns(t, bottom, own));
  c->tail   = t->tail;
  c->panels = t->panels;
  PetscCall(PetscFree(t));
  for (int l = 0; l <= bottom; l++)
    for (int k = 0; k < 2; k++)
      if (own[l][k].dev) PetscCall(GPUCSRStorageDestroy(&own[l][k]));
  /* without memory for the matrix, cycles go over all levels */
  if (!attempt.error) c->bottom = bottom;
  else {
    PetscCheck(attempt.error == PETSC_ERR_MEM, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    PetscCall(GPUCSRBufferFree(c->dev, &c->tail));
    PetscCall(GPUCSRBufferFree(c->dev, &c->panels));
    PetscCall(PetscInfo(NULL, "No matrix for the small levels of a cycle: %s\n", attempt.message));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
