/*
  What the tests of Krylov methods share: the outcome of a solve, and histories that agree but for rounding. Include it after testing.h.
*/
#ifndef GPUCSR_TEST_KRYLOV_H
#define GPUCSR_TEST_KRYLOV_H

#define TEST_HISTORY 20000

typedef struct {
  PetscInt           its, n; /* n: norms in the history */
  KSPConvergedReason reason;
  PetscReal          norm[TEST_HISTORY];
} TestOutcome;

static inline PetscErrorCode TestOutcomeGet(KSP ksp, TestOutcome *o)
{
  const PetscReal *norm;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, sizeof(*o))); /* outcomes are compared as bytes */
  PetscCall(KSPGetIterationNumber(ksp, &o->its));
  PetscCall(KSPGetConvergedReason(ksp, &o->reason));
  PetscCall(KSPGetResidualHistory(ksp, &norm, &o->n));
  o->n = PetscMin(o->n, TEST_HISTORY);
  PetscCall(PetscArraycpy(o->norm, norm, o->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  By how much of the largest norm so far the norms of iteration q may differ. Rounding is amplified from one iteration to the next, by a varying factor; a wrong rule or step shows at once.

  Short recurrences lose half a decade an iteration. GMRES is backward stable: norms differ by the rounding of an iteration's sums, times the condition of the basis, for which an eighth of a decade is allowed.
*/
static inline PetscReal TestShortRecurrences(PetscInt q)
{
  const PetscReal growth = q < 8 ? PetscPowReal(10.0, (PetscReal)q / 2) : PetscPowReal(10.0, 4.0 + (PetscReal)(q - 8) / 2);

  return PetscMin(1e3 * PETSC_MACHINE_EPSILON * growth, 0.2);
}

static inline PetscReal TestLongRecurrences(PetscInt q)
{
  return PetscMin(1e2 * PETSC_MACHINE_EPSILON * PetscPowReal(10.0, (PetscReal)q / 8), 1e-2);
}

/* The first iteration whose norm differs from the reference's, or -1. top: the smallest unit of the differences; on exit, the last unit */
static inline PetscInt TestHistoriesPart(const TestOutcome *a, const TestOutcome *r, PetscReal (*bound)(PetscInt), PetscReal *top)
{
  for (PetscInt q = 0; q < PetscMin(a->n, r->n); q++) {
    if (!PetscIsNanReal(r->norm[q])) *top = PetscMax(*top, r->norm[q]);
    if (PetscIsNanReal(a->norm[q]) != PetscIsNanReal(r->norm[q]) || PetscAbsReal(a->norm[q] - r->norm[q]) > bound(q) * *top) return q;
  }
  return -1;
}

/* |x - y| and |y|, of vectors that may be of different types */
static inline PetscErrorCode TestDistance(Vec x, Vec y, PetscReal *distance, PetscReal *norm)
{
  const PetscScalar *v;
  PetscScalar       *w;
  PetscInt           n;
  Vec                z;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &v));
  PetscCall(VecGetArrayWrite(z, &w));
  PetscCall(PetscArraycpy(w, v, n));
  PetscCall(VecRestoreArrayRead(x, &v));
  PetscCall(VecRestoreArrayWrite(z, &w));
  PetscCall(VecAXPY(z, -1.0, y));
  PetscCall(VecNorm(z, NORM_2, distance));
  PetscCall(VecNorm(y, NORM_2, norm));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reports a failure and goes on with the other cases; TestFailures fails the test at its end */
PETSC_UNUSED static int TestFailures = 0;

#define TestExpect(condition, ...) \
  do { \
    if (!(condition)) { \
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, __VA_ARGS__)); \
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n")); \
      TestFailures++; \
    } \
  } while (0)

#endif
