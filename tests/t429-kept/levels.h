/*
  Levels of PCGAMG on devices alone, for t429-kept.c and t435-levels-ranks.c
*/
#pragma once
#include "../t421-gamg/problems.h"

static PetscBool    petscs = PETSC_FALSE; /* levels are of type gpucsr */
static PetscOptions own, aside;           /* of PCs; aside has an option without effect, but for levels on the host */

static PetscErrorCode Create(Mat A, PetscBool host, PC *pc)
{
  PetscFunctionBegin;
  PetscCall(PCCreate(PETSC_COMM_WORLD, pc));
  PetscCall(PetscObjectSetOptions((PetscObject)*pc, host ? aside : own));
  PetscCall(PCSetOperators(*pc, A, A));
  PetscCall(PCSetType(*pc, PCGAMG));
  PetscCall(PCSetFromOptions(*pc));
  PetscCall(PCSetUp(*pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix of the level below the finest, or (p) its prolongator */
static PetscErrorCode LevelOf(PC pc, PetscBool p, Mat *A)
{
  PetscInt levels;
  KSP      smoother;

  PetscFunctionBegin;
  PetscCall(PCMGGetLevels(pc, &levels));
  PetscCheck(levels > 2, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " levels", levels);
  if (p) PetscCall(PCMGGetInterpolation(pc, levels - 1, A));
  else {
    PetscCall(PCMGGetSmoother(pc, levels - 2, &smoother));
    PetscCall(KSPGetOperators(smoother, A, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Kept(PC pc, PetscBool want, const char where[])
{
  Mat       A;
  MatType   type;
  PetscBool kept;

  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) {
    PetscCall(LevelOf(pc, (PetscBool)p, &A));
    PetscCall(MatGetType(A, &type));
    kept = (PetscBool)(strstr(type, "gpucsrlevel") != NULL);
    PetscCheck(kept == (PetscBool)(want && !petscs), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the %s has type %s", where, p ? "prolongator" : "level", type);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each entry of x and y is the same up to rounding of c sums of their largest */
static PetscErrorCode Near(Vec x, Vec y, PetscReal c, const char where[])
{
  PetscReal most, off;
  Vec       d;

  PetscFunctionBegin;
  PetscCall(VecNorm(y, NORM_INFINITY, &most));
  PetscCall(VecDuplicate(y, &d));
  PetscCall(VecCopy(x, d));
  PetscCall(VecAXPY(d, -1.0, y));
  PetscCall(VecNorm(d, NORM_INFINITY, &off));
  PetscCheck(off <= c * TEST_C * PETSC_MACHINE_EPSILON * most && most > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: off by %g of %g", where, (double)off, (double)most);
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(PC pc, Vec *y)
{
  Mat A;
  Vec b;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, &b, y));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(PCApply(pc, b, *y));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- operations of a program ---- */

typedef PetscErrorCode Operation(Mat A, Mat fine, Vec *v); /* v depends on all that the operation does */

static PetscErrorCode Number(Mat A, PetscReal number, Vec *v)
{
  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, v, NULL));
  PetscCall(VecSet(*v, number));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define OPERATION(name, ...) \
  static PetscErrorCode name(Mat A, Mat fine, Vec *v) \
  { \
    Mat       B    = NULL; \
    PetscReal norm = 0; \
\
    PetscFunctionBegin; \
    (void)fine; \
    (void)norm; \
    __VA_ARGS__ \
    PetscCall(MatDestroy(&B)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

/* One application of a PC */
PETSC_UNUSED static PetscErrorCode By(Mat A, PCType type, Vec *v)
{
  PC  pc;
  Vec b;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, v, &b));
  PetscCall(TestFill(b, 6, PETSC_FALSE));
  PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
  PetscCall(PCSetType(pc, type));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCApply(pc, b, *v));
  PetscCall(PCDestroy(&pc));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  const char *name;
  Operation  *run;
  int         of;     /* 0 levels, 1 prolongators, 2 both */
  PetscBool   stays;  /* on the devices */
  PetscBool   writes; /* entries */
} Tested;

/* The operation on a level, or (p) a prolongator, and on a MATAIJ of it; c as in Near(). An application agrees before and after it */
static PetscErrorCode One(Mat A, Mat R, const Tested *t, PetscReal c, PetscBool p)
{
  Mat  level[2], fine[2] = {A, R};
  PC   pc[2];
  Vec  v[2], y[2];
  char where[100];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(where, sizeof(where), "%s of a %s", t->name, p ? "prolongator" : "level"));
  for (int ref = 0; ref < 2; ref++) PetscCall(Create(A, (PetscBool)ref, &pc[ref]));
  PetscCall(Kept(pc[0], PETSC_TRUE, where));
  PetscCall(Kept(pc[1], PETSC_FALSE, where));
  PetscCall(Apply(pc[0], &y[0]));
  PetscCall(Kept(pc[0], PETSC_TRUE, "After an application"));
  for (int ref = 0; ref < 2; ref++) PetscCall(LevelOf(pc[ref], p, &level[ref]));
  PetscCall(MatConvert(level[1], MATAIJ, MAT_INITIAL_MATRIX, &level[1]));
  for (int ref = 0; ref < 2; ref++) PetscCall((*t->run)(level[ref], fine[ref], &v[ref]));
  PetscCall(Near(v[0], v[1], c, where));
  if (t->stays) PetscCall(Kept(pc[0], PETSC_TRUE, where));
  if (!t->writes) { /* the cycle of a level on the host is the same */
    PetscCall(Apply(pc[0], &y[1]));
    PetscCall(Near(y[1], y[0], 100, where));
    PetscCall(VecDestroy(&y[1]));
  }
  PetscCall(VecDestroy(&y[0]));
  PetscCall(MatDestroy(&level[1]));
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(VecDestroy(&v[ref]));
    PetscCall(PCDestroy(&pc[ref]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- new values ---- */

/* Values of two PCs change. stays: eigenvalues hardly change, so levels stay on the devices */
static PetscErrorCode Values(Mat A, PC pc[2], PetscBool stays, const char where[])
{
  Vec y[2];

  PetscFunctionBegin;
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(PCSetOperators(pc[ref], A, A));
    PetscCall(PCSetUp(pc[ref]));
    PetscCall(Apply(pc[ref], &y[ref]));
  }
  PetscCall(Kept(pc[0], stays, where));
  PetscCall(Near(y[0], y[1], 1e3, where));
  for (int ref = 0; ref < 2; ref++) PetscCall(VecDestroy(&y[ref]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
