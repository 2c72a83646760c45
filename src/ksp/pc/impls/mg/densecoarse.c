/*
  The tail of a cycle: its small levels as one dense matrix. From a zero start, the cycle on a level is linear in the right-hand side. On a small level a dense product takes less time than the
  launches of all passes below. One cycle of the level, applied to all unit vectors at once, gives the columns of the matrix: vectors become panels with as many columns, stored by rows.
*/
#include "cycle.h"
#include "../../../../mat/impls/gpucsr/blackbox/kernels/columns.h"

typedef struct {
  const GPUCSRStorage *A, *P, *R;
  GPUCSRStorage        own[2]; /* P and R if only their transposes are stored */
  double              *b, *x, *r, *d;
} Panel;

typedef struct {
  GPUMGCycle *c;
  int         columns;
  Panel       at[GPUMG_LEVELS];
} Tail;

static const GPUMGStep subtract = {0, -1}, add = {0, 1};

/* z = x + d with d = ca d + cb M r */
static PetscErrorCode Pass(Tail *t, int l, const GPUMGSmoother *m, const GPUMGStep *s, const double *r, const double *x, double *d, double *z)
{
  const GPUMGPass p = {t->c->level[l].n, m ? m->bs : 0, s->ca, s->cb, m ? (const double *)m->M.p : NULL, r, x, d, z, t->columns - 1};

  return GPUMGPassRun(t->c->dev, &p, t->c->dev->stream);
}

/* r = b - A x */
static PetscErrorCode Residual(Tail *t, int l)
{
  Panel *at = &t->at[l];

  PetscFunctionBegin;
  PetscCall(GPUCSRMultRows(at->A, t->columns, at->x, at->r));
  PetscCall(Pass(t, l, NULL, &subtract, at->r, at->b, NULL, at->r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Smooth(Tail *t, int l, const GPUMGSmoother *m, PetscBool zero)
{
  Panel    *at   = &t->at[l];
  PetscBool none = (PetscBool)(zero || m->fromzero);

  PetscFunctionBegin;
  for (int k = 0; k < m->steps; k++) {
    if (!none) PetscCall(Residual(t, l));
    PetscCall(Pass(t, l, m, &m->step[k], none ? at->b : at->r, none ? NULL : at->x, at->d, at->x));
    none = PETSC_FALSE;
  }
  if (none) PetscCall(t->c->dev->ops->zero(t->c->dev->id, at->x, sizeof(double) * (size_t)t->c->level[l].n * (size_t)t->columns, t->c->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As cycles go over vectors (cycle.c) */
static PetscErrorCode Multiplicative(Tail *t, int l, PetscBool zero)
{
  GPUMGCycle *c      = t->c;
  GPUMGLevel *L      = &c->level[l];
  Panel      *at     = &t->at[l];
  const int   cycles = l == 1 ? 1 : L->cycles;

  PetscFunctionBegin;
  if (!l && c->exact) {
    PetscCall(GPUMGDense(c->dev, L->n, t->columns, (const double *)c->inverse.p, at->b, at->x, c->dev->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Smooth(t, l, &L->down, zero));
  if (!l) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Residual(t, l));
  PetscCall(GPUCSRMultRows(at->R, t->columns, at->r, t->at[l - 1].b));
  for (int k = 0; k < cycles; k++) PetscCall(Multiplicative(t, l - 1, (PetscBool)(k == 0)));
  PetscCall(GPUCSRMultRows(at->P, t->columns, t->at[l - 1].x, at->r));
  PetscCall(Pass(t, l, NULL, &add, at->r, at->x, NULL, at->x));
  PetscCall(Smooth(t, l, L->two ? &L->up : &L->down, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrices and the panels of levels up to bottom */
static PetscErrorCode Begin(Tail *t, int bottom)
{
  GPUMGCycle *c     = t->c;
  size_t      bytes = 0, next = 0;

  PetscFunctionBegin;
  for (int l = 0; l <= bottom; l++) bytes += 4 * GPUCSRAlignUp(sizeof(double) * (size_t)c->level[l].n * (size_t)t->columns);
  PetscCall(GPUCSRBufferGrow(c->dev, bytes, "panels of a multigrid tail", &c->panels));
  for (int l = 0; l <= bottom; l++) {
    Panel   *at  = &t->at[l];
    double **v[] = {&at->b, &at->x, &at->r, &at->d};

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(v); k++) {
      *v[k] = (double *)((char *)c->panels.p + next);
      next += GPUCSRAlignUp(sizeof(double) * (size_t)c->level[l].n * (size_t)t->columns);
    }
    PetscCall(MatGPUCSROperatorCSR_Private(&c->level[l].A.o, NULL, &at->A));
    if (!l) continue;
    PetscCall(MatGPUCSROperatorCSR_Private(&c->level[l].P.o, &at->own[0], &at->P));
    PetscCall(MatGPUCSROperatorCSR_Private(&c->level[l].R.o, &at->own[1], &at->R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Columns(Tail *t, int bottom)
{
  GPUMGCycle  *c  = t->c;
  Panel       *at = &t->at[bottom];
  const size_t n  = (size_t)t->columns;

  PetscFunctionBegin;
  PetscCall(Begin(t, bottom));
  PetscCall(GPUMGIdentity(c->dev, t->columns, at->b, c->dev->stream));
  for (int k = 0; k < c->level[bottom + 1].cycles; k++) PetscCall(Multiplicative(t, bottom, (PetscBool)(k == 0)));
  PetscCall(GPUCSRBufferGrow(c->dev, sizeof(double) * n * n, "the tail of a multigrid cycle", &c->tail));
  PetscCall(c->dev->ops->copy(c->dev->id, c->tail.p, at->x, sizeof(double) * n * n, GPUCSR_ON_DEVICE, c->dev->stream));
  PetscCall(c->dev->ops->streamsynchronize(c->dev->id, c->dev->stream)); /* transposes go */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  One matrix for the levels of at most so many rows in V and W cycles, below the finest level. The coarsest level alone gains nothing: its solver is a matrix already. Other cycle types begin on
  small levels, not from 0
*/
PetscErrorCode GPUMGTailMake(GPUMGCycle *c, int most)
{
  Tail          t      = {.c = c};
  int           bottom = 0;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  c->bottom = 0;
  if (c->type != PC_MG_MULTIPLICATIVE) PetscFunctionReturn(PETSC_SUCCESS);
  while (bottom < c->levels - 2 && c->level[bottom + 1].n <= most && !GPUMGFactored(&c->level[bottom + 1]) && (c->exact || !GPUMGFactored(&c->level[0]))) bottom++; /* a solve takes one vector */
  if (!bottom) PetscFunctionReturn(PETSC_SUCCESS);
  t.columns = c->level[bottom].n;
  GPUCSRTry(&attempt, Columns(&t, bottom));
  for (int l = 0; l <= bottom; l++)
    for (int k = 0; k < 2; k++)
      if (t.at[l].own[k].dev) PetscCall(GPUCSRStorageDestroy(&t.at[l].own[k]));
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
