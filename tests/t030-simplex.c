//TEST args="-trials 50000"
/*
  The dual problem of the bundle method on random problems. Some are hard because of rounding: duplicate planes, dependent planes, numbers of very different size. Every solve must end with an optimal solution:
  it lies in the simplex, and no vertex lies below the plane of the gradient by more than the tolerance.
*/
#include <petscsys.h>
#include <petsctime.h>
#include <math.h>
#include <stdlib.h>
#include "../src/tao/impls/bmrm/simplexqp.h"

enum {
  MOST = 150 /* variables */
};

/* Of the gradient, relative to its terms: planes that differ by 1e-14 leave so much undecided */
#define ROUNDING 1e-7L

static unsigned long long state;

/* From 0 to 1 (splitmix64) */
static double Uniform(void)
{
  unsigned long long x = state += 0x9e3779b97f4a7c15ULL;

  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return (double)((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
}

static int Upto(int n)
{
  return (int)(Uniform() * n);
}

/* Few numbers mostly; a number of size 10^-e to 10^e, or of few values, so that some are equal */
static int Size(void)
{
  return 1 + (Upto(50) ? Upto(12) : Upto(MOST));
}

static double Number(int kind, double e)
{
  switch (kind) {
  case 0:
    return 2 * Uniform() - 1;
  case 1:
    return Upto(3) - 1;
  case 2:
    return (2 * Uniform() - 1) * pow(10, (2 * Uniform() - 1) * e);
  default:
    return 1 + 1e-15 * Upto(10);
  }
}

/* Is x in the simplex and optimal? By the gradient in long double, with the rounding of sums of |Q||x| + |f| */
static PetscErrorCode CheckOptimal(const SimplexQP *qp, PetscReal tol)
{
  long double sum = 0, mean = 0, lowest = HUGE_VALL, size = 0;

  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < qp->n; i++) {
    long double g = qp->f[i], a = fabsl(g);

    for (PetscInt j = 0; j < qp->n; j++) {
      g += (long double)qp->Q[i * qp->alloc + j] * qp->x[j];
      a += fabsl((long double)qp->Q[i * qp->alloc + j]) * qp->x[j];
    }
    PetscCheck(qp->x[i] >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Multiplier %" PetscInt_FMT " is %g", i, (double)qp->x[i]);
    sum += qp->x[i];
    mean += qp->x[i] * g;
    lowest = fminl(lowest, g);
    size   = fmaxl(size, a);
  }
  PetscCheck(fabsl(sum - 1) <= 1e3L * (qp->n + 1) * PETSC_MACHINE_EPSILON, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The sum of %" PetscInt_FMT " multipliers is %.17Lg", qp->n, sum);
  PetscCheck(mean - lowest <= 4 * tol + ROUNDING * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Of %" PetscInt_FMT " variables one is %Lg below the mean, the tolerance is %g, numbers are of size %Lg", qp->n, mean - lowest, (double)tol, size);
  PetscFunctionReturn(0);
}

/* Planes of up to `rank` numbers, added one at a time, as by the bundle method; tol: relative to the numbers */
static PetscErrorCode CheckDual(void)
{
  const int    n = Size(), rank = 1 + Upto(n > 12 ? 40 : 8), kind = Upto(4), often = n > 12 ? 1 + Upto(n) : 1;
  const double tol = pow(10, -2 - 8 * Uniform()), scale = Upto(2) ? 1 : pow(10, 8 * Uniform() - 4);
  double      *plane, column[MOST], size = 0;
  SimplexQP    qp;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(&qp, sizeof(qp)));
  PetscCall(PetscMalloc1(n * rank, &plane));
  for (int m = 0; m < n; m++) {
    const int from = m && !Upto(4) ? Upto(m) : -1; /* a plane that was there, or nearly */

    for (int r = 0; r < rank; r++) plane[m * rank + r] = from < 0 ? scale * Number(kind, 3) : plane[from * rank + r] * (1 + (Upto(2) ? 1e-14 * Uniform() : 0));
    for (int k = 0; k <= m; k++) {
      column[k] = 0;
      for (int r = 0; r < rank; r++) column[k] += plane[m * rank + r] * plane[k * rank + r];
    }
    size = PetscMax(size, column[m]);
    PetscCall(SimplexQPAppend(&qp, column, (Upto(3) ? Number(kind, 3) : 0) * (Upto(2) ? 1 : scale)));
    if ((m + 1) % often && m < n - 1) continue;
    PetscCall(SimplexQPSolve(&qp, tol * size));
    PetscCall(CheckOptimal(&qp, tol * size));
  }
  PetscCall(SimplexQPDestroy(&qp));
  PetscCall(PetscFree(plane));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  PetscInt trials = 0, seed = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-trials", &trials, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  state = (unsigned long long)seed << 32;
  for (PetscInt k = 0; k < trials; k++) {
    PetscLogDouble begin, end;

    PetscCall(PetscTime(&begin));
    PetscCall(CheckDual());
    PetscCall(PetscTime(&end));
    PetscCheck(end - begin < 60, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Problem %" PetscInt_FMT " of seed %" PetscInt_FMT " took %g seconds", k, seed, (double)(end - begin));
  }
  PetscCall(PetscFinalize());
  return 0;
}
