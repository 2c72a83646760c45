/* What was found, and the tables at the end */
#include "spmv.h"

static Result      results[2 * NPRECISIONS * MAX_FILES];
static SetUpResult setups[NPRECISIONS * MAX_FILES];
static int         nresults, nsetups, nfailures;

PetscErrorCode SpmvResultAdd(Result **r)
{
  PetscFunctionBeginUser;
  PetscCheck(nresults < (int)PETSC_STATIC_ARRAY_LENGTH(results), PETSC_COMM_SELF, PETSC_ERR_PLIB, "More matrices than the tables of this program hold: %d", MAX_FILES);
  *r = &results[nresults++];
  PetscFunctionReturn(PETSC_SUCCESS);
}

void SpmvFailed(void)
{
  nfailures++;
}

PetscErrorCode SpmvSetUpResultAdd(SetUpResult **r)
{
  PetscFunctionBeginUser;
  PetscCheck(nsetups < (int)PETSC_STATIC_ARRAY_LENGTH(setups), PETSC_COMM_SELF, PETSC_ERR_PLIB, "More matrices than the tables of this program hold: %d", MAX_FILES);
  *r = &setups[nsetups++];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static double GeometricMean(const double *v, int n)
{
  double sum = 0;

  for (int k = 0; k < n; k++) sum += log(v[k]);
  return n ? exp(sum / n) : NAN;
}

static PetscErrorCode Slower(void)
{
  PetscFunctionBeginUser;
  for (int k = 0, head = 1; k < nresults; k++) {
    const Result *r = &results[k];

    if (!(r->ratio < 1)) continue;
    if (head) PetscCall(PetscPrintf(PETSC_COMM_SELF, "\nslower than cuSPARSE's best: matrix, ratio, chosen kernel, (best kernel, its ratio)\n"));
    head = 0;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-24s %-6s %s  %.3f  %s (%s %.3f)\n", r->name, precisionwords[r->precision], sidewords[r->side], r->ratio, r->chosen, r->best, r->bestratio));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(void)
{
  static double chosen[2 * NPRECISIONS * MAX_FILES], ofbest[2 * NPRECISIONS * MAX_FILES], regret[2 * NPRECISIONS * MAX_FILES];

  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\nclass      precision side  matrices   cuSPARSE/chosen  cuSPARSE/best   regret  worst   of copy  slower\n"));
  for (int cls = 0; cls < 2; cls++)
    for (int q = 0; q < NPRECISIONS; q++)
      for (int side = 0; side < 2; side++) {
        int    n = 0, np = 0, slower = 0;
        double worst = 0, fraction = 0;

        for (int k = 0; k < nresults; k++) {
          const Result *r = &results[k];

          if ((int)r->real != cls || (int)r->precision != q || r->side != side) continue;
          regret[n++] = r->regret;
          worst       = PetscMax(worst, r->regret);
          fraction += r->fraction;
          if (!isfinite(r->ratio)) continue;
          chosen[np]   = r->ratio;
          ofbest[np++] = r->bestratio;
          slower += r->ratio < 1;
        }
        if (n)
          PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-10s %-9s %-4s  %8d   %15.3f  %13.3f  %7.3f  %5.2f   %7.2f  %6d\n", cls ? "real" : "synthetic", precisionwords[q], sidewords[side], n, GeometricMean(chosen, np), GeometricMean(ofbest, np), GeometricMean(regret, n), worst, fraction / n, slower));
      }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OfPETSc(void)
{
  static double ratio[2 * NPRECISIONS * MAX_FILES];

  PetscFunctionBeginUser;
  for (int side = 0; side < 2; side++) {
    int n = 0;

    for (int k = 0; k < nresults; k++)
      if (results[k].side == side && isfinite(results[k].petsc)) ratio[n++] = results[k].petsc;
    if (n) PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%s of MATSEQAIJCUSPARSE, double, %d matrices: %.3f times the time of MATSEQAIJGPUCSR in the geometric mean", side ? "MatMultTranspose()" : "MatMult()", n, GeometricMean(ratio, n)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUps(void)
{
  static double v[5][NPRECISIONS * MAX_FILES];

  PetscFunctionBeginUser;
  for (int q = 0; q < NPRECISIONS; q++) {
    int    n = 0, over[4] = {0};
    double worst[5] = {0};

    for (int k = 0; k < nsetups; k++) {
      if (setups[k].precision != q) continue;
      for (int w = 0; w < 4; w++) {
        v[w][n]  = setups[k].ratio[w];
        worst[w] = PetscMax(worst[w], v[w][n]);
        over[w] += v[w][n] > 1;
      }
      v[4][n]  = setups[k].memory;
      worst[4] = PetscMax(worst[4], v[4][n]);
      n++;
    }
    if (n)
      PetscCall(PetscPrintf(PETSC_COMM_SELF,
                            "\n%s, %d matrices, of what is allowed, mean (worst, above): conversion and upload %.2f (%.2f, %d), refresh %.2f (%.2f, %d); with inspection and choice, of the copy of bytes as sent: set-up %.2f (%.2f, %d), refresh %.2f "
                            "(%.2f, %d); device bytes / CSR bytes "
                            "%.3f (%.2f)\n",
                            precisionwords[q], n, GeometricMean(v[0], n), worst[0], over[0], GeometricMean(v[1], n), worst[1], over[1], GeometricMean(v[2], n), worst[2], over[2], GeometricMean(v[3], n), worst[3], over[3], GeometricMean(v[4], n), worst[4]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The list comes first, so a long output ends with the summary */
PetscErrorCode SpmvTables(int *failures)
{
  PetscFunctionBeginUser;
  PetscCall(Slower());
  PetscCall(Products());
  PetscCall(OfPETSc());
  PetscCall(SetUps());
  *failures = nfailures;
  if (nfailures) PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%d WRONG or FAILED, see above\n", nfailures));
  PetscFunctionReturn(PETSC_SUCCESS);
}
