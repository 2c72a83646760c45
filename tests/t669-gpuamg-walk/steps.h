/* The matrices and the steps of t669-gpuamg-walk.c */
#pragma once

/* All entries */
static PetscErrorCode Entries(const Grid *g, Mat A)
{
  static const PetscInt step[6][3] = {
    {-1, 0,  0},
    {1,  0,  0},
    {0,  -1, 1},
    {0,  1,  1},
    {-1, -1, 0},
    {1,  1,  0}
  };
  PetscInt first, end;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt v = first / g->bs; v < end / g->bs; v++) {
    const PetscInt x = v % g->n[0], y = v / g->n[0];
    PetscReal      diagonal = 0;

    for (int k = 0; k < (g->corner ? 7 : 5); k++) {
      const int         last = k == (g->corner ? 6 : 4);
      const PetscInt    dx = last ? 0 : step[k][0], dy = last ? 0 : step[k][1], u = v + dx + g->n[0] * dy;
      const PetscReal   w        = last ? -diagonal : g->along[step[k][2]] * PetscExpReal(2 * (ZooReal(PetscMin(u, v), PetscMax(u, v), g->seed) - 0.5)) + (k % 2 ? 0 : g->convection);
      const PetscScalar block[4] = {g->bs == 1 ? -w : -2 * w, -0.5 * w, -0.5 * w, -w};

      diagonal += w;
      if (x + dx < 0 || x + dx >= g->n[0] || y + dy < 0 || y + dy >= g->n[1]) continue;
      PetscCall(MatSetValuesBlocked(A, 1, &v, 1, &u, block, INSERT_VALUES));
    }
  }
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BothEntries(Walk *w)
{
  PetscFunctionBegin;
  PetscCall(Entries(&w->g, w->A));
  PetscCall(Entries(&w->g, w->R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In place of the old ones */
static PetscErrorCode Matrices(Walk *w)
{
  const PetscInt n = w->g.n[0] * w->g.n[1] * w->g.bs;

  PetscFunctionBegin;
  for (int ref = 0; ref < 2; ref++) {
    Mat *M = ref ? &w->R : &w->A;

    PetscCall(MatDestroy(M));
    PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, (PetscBool)ref, M));
    PetscCall(MatSetBlockSize(*M, w->g.bs));
    PetscCall(MatSeqAIJSetPreallocation(*M, 5 * w->g.bs, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*M, 5 * w->g.bs, NULL, 3 * w->g.bs, NULL));
    PetscCall(MatSetOption(*M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetNearNullSpace(*M, w->near));
  }
  PetscCall(BothEntries(w));
  if (w->g.convection == 0) PetscCall(MatSetOption(w->A, MAT_SPD, PETSC_TRUE)); /* until the values change */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- steps ---- */

/* A new set-up of all. reset: after KSPReset(), which PCGAMG of older versions of PETSc does not survive: new KSPs */
static PetscErrorCode Restart(Walk *w, PetscBool reset)
{
  PetscFunctionBegin;
  for (int k = 0; k < w->solvers; k++) {
    Solver *s = &w->solver[k];

    if (reset && !strcmp(w->pctype, PCGAMG)) {
      PetscCall(KSPDestroy(&s->ksp));
      PetscCall(New(w, w->A, &s->ksp));
      s->made = PETSC_TRUE;
    } else if (reset) PetscCall(KSPReset(s->ksp));
    PetscCall(KSPSetOperators(s->ksp, w->A, w->A));
    s->anew = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Values(Walk *w)
{
  w->g.seed++;
  return BothEntries(w);
}

static PetscErrorCode Scaled(Walk *w)
{
  const PetscScalar by = Draw(2) ? 3 : 0.5;

  PetscFunctionBegin;
  PetscCall(MatScale(w->A, by));
  PetscCall(MatScale(w->R, by));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An entry of the diagonal, on the rank that has it */
static PetscErrorCode Put(Walk *w, PetscInt row, PetscScalar factor, PetscScalar value)
{
  PetscInt    first, end;
  PetscScalar old;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(w->R, &first, &end));
  if (row >= first && row < end) {
    PetscCall(MatGetValues(w->R, 1, &row, 1, &row, &old));
    if (factor != 0) value = factor * old;
    PetscCall(MatSetValue(w->A, row, row, value, INSERT_VALUES));
    PetscCall(MatSetValue(w->R, row, row, value, INSERT_VALUES));
    w->was = old;
  }
  PetscCall(Assemble(w->A));
  PetscCall(Assemble(w->R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt Row(const Walk *w)
{
  return Draw((int)(w->g.n[0] * w->g.n[1] * w->g.bs));
}

static PetscErrorCode OneEntry(Walk *w)
{
  return Put(w, Row(w), 1.25, 0);
}

/* A bad value. From new prolongators of it PETSc's set-up of PCGAMG may end in an error */
static PetscErrorCode Bad(Walk *w)
{
  for (int k = 0; k < w->solvers; k++)
    if (!strcmp(w->pctype, PCGAMG) && (!w->option[REUSE] || w->solver[k].made)) return Values(w);
  w->bad = Row(w);
  w->nan = (PetscBool)Draw(2);
  return Put(w, w->bad, 0, w->nan ? NAN : 0);
}

static PetscErrorCode Mended(Walk *w)
{
  const PetscInt row = w->bad;

  w->bad = -1;
  return Put(w, row, 0, w->was);
}

/* Weak entries along one axis, which turn */
static PetscErrorCode Turned(Walk *w)
{
  const int strong = Draw(3);

  w->g.along[0] = strong == 1 ? 1e-3 : 1;
  w->g.along[1] = strong == 2 ? 1e-3 : 1;
  return BothEntries(w);
}

/* More entries in the same matrix, or another matrix with less */
static PetscErrorCode Pattern(Walk *w)
{
  PetscFunctionBegin;
  w->g.corner = (PetscBool)!w->g.corner;
  if (w->g.corner) PetscCall(BothEntries(w));
  else PetscCall(Matrices(w));
  PetscCall(Restart(w, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Size(Walk *w)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) w->g.n[k] = 14 + 2 * Draw(3);
  w->g.bs     = 1 + Draw(2);
  w->g.corner = PETSC_FALSE;
  PetscCall(MatNullSpaceDestroy(&w->near));
  PetscCall(Matrices(w));
  PetscCall(Restart(w, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two vectors, which PCGAMG takes after a reset alone */
static PetscErrorCode Near(Walk *w)
{
  Vec      v[2];
  PetscInt n, first, end;

  PetscFunctionBegin;
  if (w->near) PetscCall(MatNullSpaceDestroy(&w->near));
  else {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatCreateVecs(w->R, &v[k], NULL));
      PetscCall(VecGetSize(v[k], &n));
      PetscCall(VecGetOwnershipRange(v[k], &first, &end));
      for (PetscInt i = first; i < end; i++) PetscCall(VecSetValue(v[k], i, (k && i < n / 2 ? -1 : 1) / PetscSqrtReal((PetscReal)n), INSERT_VALUES));
      PetscCall(VecAssemblyBegin(v[k]));
      PetscCall(VecAssemblyEnd(v[k]));
    }
    PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, 2, v, &w->near));
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  }
  PetscCall(MatSetNearNullSpace(w->A, w->near));
  PetscCall(PetscObjectStateIncrease((PetscObject)w->A));
  PetscCall(Restart(w, (PetscBool)!strcmp(w->pctype, PCGAMG)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets an option that holds from the next set-up on; value -1: takes it away */
static PetscErrorCode Set(Walk *w, int k, int value)
{
  const char *text = value < 0 ? NULL : options[k].value[value];
  char        name[64];

  PetscFunctionBegin;
  if ((options[k].only[0] && strcmp(options[k].only, w->pctype)) || (value >= 0 && !text)) PetscFunctionReturn(PETSC_SUCCESS);
  w->option[k] = value;
  if (!strncmp(options[k].name, "mg_", 3)) PetscCall(PetscSNPrintf(name, sizeof(name), "-our_%s", options[k].name));
  else PetscCall(PetscSNPrintf(name, sizeof(name), "-our_pc_%s_%s", w->pctype, options[k].name));
  if (text) PetscCall(PetscOptionsSetValue(NULL, name, text));
  else PetscCall(PetscOptionsClearValue(NULL, name));
  if (show && text) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "    %s %s\n", name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Options(Walk *w)
{
  PetscFunctionBegin;
  for (int times = 0; times < 2; times++) {
    const int k = times ? REUSE : Draw(OPTIONS);
    int       n = 0;

    while (n < 4 && options[k].value[n]) n++;
    if (!n) n = 4;
    PetscCall(Set(w, k, Draw(n)));
  }
  for (int k = 0; k < w->solvers; k++) PetscCall(KSPSetFromOptions(w->solver[k].ksp));
  PetscCall(PetscObjectStateIncrease((PetscObject)w->A));
  if (!strcmp(w->pctype, PCGAMG) && Draw(2)) PetscCall(Restart(w, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RightHandSide(Walk *w)
{
  w->rhs++;
  return PETSC_SUCCESS;
}

static PetscErrorCode Reset(Walk *w)
{
  PC pc;

  PetscFunctionBegin;
  if (!strcmp(w->pctype, PCGAMG)) PetscFunctionReturn(Restart(w, PETSC_TRUE));
  PetscCall(KSPGetPC(w->solver[0].ksp, &pc));
  PetscCall(PCReset(pc));
  PetscCall(KSPSetOperators(w->solver[0].ksp, w->A, w->A));
  w->solver[0].anew = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A second KSP comes or goes */
static PetscErrorCode Second(Walk *w)
{
  PetscFunctionBegin;
  if (w->solvers == 2) {
    PetscCall(KSPDestroy(&w->solver[1].ksp));
    PetscCall(MatDestroy(&w->solver[1].base));
    w->solvers = 1;
  } else {
    PetscCall(New(w, w->A, &w->solver[w->solvers].ksp));
    w->solver[w->solvers++].made = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*take)(Walk *);
} steps[] = {
  {"new values",      Values       },
  {"scaled",          Scaled       },
  {"one entry",       OneEntry     },
  {"turned",          Turned       },
  {"pattern",         Pattern      },
  {"bad value",       Bad          },
  {"options",         Options      },
  {"options",         Options      },
  {"options",         Options      },
  {"right-hand side", RightHandSide},
  {"near null space", Near         },
  {"another size",    Size         },
  {"reset",           Reset        },
  {"second KSP",      Second       }
};
