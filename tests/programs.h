/*
  Common to tests of unusual programs. A program runs in several worlds, one after the other: with MATAIJ and VECSTANDARD; with the same types and data perturbed by rounding (Perturb()); with the types under test. It reports numbers, which must be the same in all. Most are sums of small integers, and exact. A solver's result depends on rounding: the perturbed worlds show how much, which bounds the difference of the types under test.

    build/tests/t461-solvers [-only NAME] [-shares]      -shares prints the largest part of a bound that a program needs
*/
#pragma once
#include "testing.h"

#define MOST           20000
#define PROGRAMS_DRAWS 2 /* perturbed worlds: one may be lucky */

typedef struct {
  double value, bound;
  int    group; /* of numbers that a solver found together, from 1 on; 0: none, the number is exact but for bound */
} Told;

typedef struct {
  PetscBool ref, plain; /* plain: without the library's types */
  int       draw;       /* of the perturbation; 0: none */
  MPI_Comm  comm;
  int       n, groups;
  Told      told[MOST];
} World;

typedef struct {
  const char *name;
  PetscErrorCode (*run)(World *);
} Program;

/* A number that may differ by bound */
static inline PetscErrorCode TellNear(World *w, double value, double bound)
{
  PetscFunctionBegin;
  PetscCheck(w->n < MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d numbers", MOST);
  w->told[w->n++] = (Told){value, bound, 0};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A number that is exact */
static inline PetscErrorCode Tell(World *w, double value)
{
  return TellNear(w, value, 0);
}

/* The entries of a vector of integers, which are exact */
static inline PetscErrorCode TellVec(World *w, Vec x)
{
  const PetscScalar *a;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  for (PetscInt k = 0; k < n; k++) PetscCall(Tell(w, PetscRealPart(a[k])));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A number that depends on rounding; `more` bounds what rounds beyond the perturbations */
static inline PetscErrorCode TellFound(World *w, double value, double more)
{
  PetscFunctionBegin;
  PetscCall(TellNear(w, value, more));
  w->told[w->n - 1].group = ++w->groups;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same of the entries of a vector */
static inline PetscErrorCode TellFoundVec(World *w, Vec x, double more)
{
  const int first = w->n;

  PetscFunctionBegin;
  PetscCall(TellVec(w, x));
  w->groups++;
  for (int q = first; q < w->n; q++) {
    w->told[q].group = w->groups;
    w->told[q].bound = more;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In a perturbed world, changes the start of a solver: each entry by TEST_C eps up or down, in place of the rounding of all sums of the solve */
static inline PetscErrorCode Perturb(World *w, Vec x)
{
  PetscScalar *a;
  PetscInt     rs, re;

  PetscFunctionBegin;
  if (!w->draw) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(VecGetArray(x, &a));
  for (PetscInt k = rs; k < re; k++) a[k - rs] *= 1 + ((k * k + k / 3 + w->draw) % 5 < 2 ? -1 : 1) * TEST_C * PETSC_MACHINE_EPSILON;
  PetscCall(VecRestoreArray(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same of a matrix, each row up or down */
static inline PetscErrorCode PerturbMat(World *w, Mat A)
{
  Vec d;

  PetscFunctionBegin;
  if (!w->draw) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateVecs(A, NULL, &d));
  PetscCall(VecSet(d, 1.0));
  PetscCall(Perturb(w, d));
  PetscCall(MatDiagonalScale(A, d, NULL));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Small integers, the same whatever the number of ranks */
static inline PetscErrorCode Fill(Vec x, PetscInt seed)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  for (PetscInt k = rs; k < re; k++) PetscCall(VecSetValue(x, k, (PetscScalar)((k * 7 + seed * 13) % 11 - 5), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The product with small integers, and of the transpose */
static inline PetscErrorCode TellProducts(World *w, Mat A)
{
  Vec       x, y;
  PetscBool has;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(Fill(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(TellVec(w, y));
  PetscCall(MatHasOperation(A, MATOP_MULT_TRANSPOSE, &has));
  if (has) {
    PetscCall(Fill(y, 2));
    PetscCall(MatMultTranspose(A, y, x));
    PetscCall(TellVec(w, x));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode Make(World *w, MPI_Comm comm, PetscInt m, PetscInt n, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(TestMatCreate(comm, m, n, w->ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 7, NULL, 7, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode Assemble(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 5 points on k by k, integers, symmetric positive definite for asymmetry 0 */
static inline PetscErrorCode GridOn(World *w, MPI_Comm comm, PetscInt k, PetscInt asymmetry, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(Make(w, comm, k * k, k * k, A));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt x = r % k, y = r / k;

    PetscCall(MatSetValue(*A, r, r, 5 + asymmetry, INSERT_VALUES));
    if (x) PetscCall(MatSetValue(*A, r, r - 1, -1 - asymmetry, INSERT_VALUES));
    if (x < k - 1) PetscCall(MatSetValue(*A, r, r + 1, -1, INSERT_VALUES));
    if (y) PetscCall(MatSetValue(*A, r, r - k, -1, INSERT_VALUES));
    if (y < k - 1) PetscCall(MatSetValue(*A, r, r + k, -1, INSERT_VALUES));
  }
  PetscCall(Assemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode Grid(World *w, PetscInt k, PetscInt asymmetry, Mat *A)
{
  return GridOn(w, w->comm, k, asymmetry, A);
}

/* Rows without entries, without a diagonal, and one long one */
static inline PetscErrorCode Ragged(World *w, PetscInt n, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(Make(w, w->comm, n, n, A));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    if (r % 3 == 0) continue;
    for (PetscInt q = 0; q < (r == 4 ? n : 3); q++) PetscCall(MatSetValue(*A, r, r == 4 ? q : (r * 5 + q * 3 + 1) % n, (PetscScalar)((r + q) % 5 - 2), INSERT_VALUES));
  }
  PetscCall(Assemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x of A x = b where b = A (integers) */
static inline PetscErrorCode Solve(World *w, KSP ksp, Mat A)
{
  Vec                x, b;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(Fill(x, 3));
  PetscCall(MatMult(A, x, b));
  PetscCall(Perturb(w, b));
  PetscCall(VecSet(x, 0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(Tell(w, reason > 0));
  PetscCall(TellFoundVec(w, x, 0));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode NewKSP(World *w, MPI_Comm comm, Mat A, const char type[], const char pctype[], KSP *ksp)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(comm, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 2000));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetOptionsPrefix(*ksp, w->ref ? "ref_" : "our_"));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The allowed difference of a group's numbers: the effect of rounding in the perturbed worlds, and their own rounding */
static inline double Rounding(const World *ref, const World perturbed[], int group)
{
  double moved = 0, size = 0;

  for (int q = 0; q < ref->n; q++) {
    if (ref->told[q].group != group) continue;
    for (int d = 0; d < PROGRAMS_DRAWS; d++) moved = PetscMax(moved, PetscAbsReal(perturbed[d].told[q].value - ref->told[q].value));
    size = PetscMax(size, PetscAbsReal(ref->told[q].value));
  }
  return TEST_C * (moved + PETSC_MACHINE_EPSILON * size);
}

/* Was the number told as exact, and is it not? */
static inline PetscBool Inexact(const World *ref, const World perturbed[], int q)
{
  if (ref->told[q].group) return PETSC_FALSE;
  for (int d = 0; d < PROGRAMS_DRAWS; d++) {
    if (!(PetscAbsReal(perturbed[d].told[q].value - ref->told[q].value) <= ref->told[q].bound)) return PETSC_TRUE;
  }
  return PETSC_FALSE;
}

/* The first number that is not the reference's, and its bound; -1: there is none. share: the largest part that a difference has of its bound */
static inline int Differs(const World *us, const World *ref, const World perturbed[], double *allowed, double *share)
{
  double rounding = 0;

  *share = *allowed = 0;
  for (int d = 0; d < PROGRAMS_DRAWS; d++) {
    if (perturbed[d].n != ref->n || us->n != ref->n) return 0;
  }
  for (int q = 0, group = 0; q < ref->n; q++) {
    const Told  *r          = &ref->told[q];
    const double difference = PetscAbsReal(us->told[q].value - r->value);

    if (r->group != group) rounding = r->group ? Rounding(ref, perturbed, r->group) : 0;
    group    = r->group;
    *allowed = r->bound + rounding;
    if (Inexact(ref, perturbed, q) || !(difference <= *allowed)) return q;
    if (difference > 0) *share = PetscMax(*share, difference / *allowed);
  }
  return -1;
}

/* Runs each program in all worlds and compares the numbers reported */
static inline PetscErrorCode RunPrograms(size_t n, const Program programs[])
{
  static World us, ref, perturbed[PROGRAMS_DRAWS];
  World       *worlds[2 + PROGRAMS_DRAWS] = {&us, &ref};
  char         only[32]                   = "", type[64];
  PetscBool    shares                     = PETSC_FALSE;
  PetscInt     wrong                      = 0;

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-shares", &shares, NULL));
  for (int d = 0; d < PROGRAMS_DRAWS; d++) {
    perturbed[d].draw = d + 1;
    worlds[2 + d]     = &perturbed[d];
  }
  for (int v = 0; v < 2 + PROGRAMS_DRAWS; v++) {
    worlds[v]->comm  = PETSC_COMM_WORLD;
    worlds[v]->ref   = (PetscBool)(v > 0);
    worlds[v]->plain = (PetscBool)(v > 0 || !strstr(type, "gpucsr"));
  }
  for (size_t k = 0; k < n; k++) {
    PetscInt found[2];
    double   allowed, share;
    int      q;

    if (only[0] && strcmp(only, programs[k].name)) continue;
    for (int v = 1 + PROGRAMS_DRAWS; v >= 0; v--) {
      worlds[v]->n = worlds[v]->groups = 0;
      PetscCall((*programs[k].run)(worlds[v]));
    }
    q        = Differs(&us, &ref, perturbed, &allowed, &share);
    found[0] = q >= 0;
    PetscCallMPI(MPI_Allreduce(&found[0], &found[1], 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
    if (q >= 0) {
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, stderr, "case %s: number %d of %d (reference %d) is %.17g, not %.17g, perturbed %.17g; may differ by %g\n", programs[k].name, q, us.n, ref.n, us.told[q].value, ref.told[q].value, perturbed[0].told[q].value, allowed));
    }
    if (shares) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: %g of the bound\n", programs[k].name, share));
    wrong += found[1];
  }
  PetscCheck(!wrong, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " cases differ", wrong);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The main function of a test that runs all programs of a list */
static inline int ProgramsMain(int argc, char **argv, const char about[], size_t n, const Program programs[])
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, about));
  PetscCall(TestRequireReal(32));
  PetscCall(RunPrograms(n, programs));
  PetscCall(PetscFinalize());
  return 0;
}
