/*
  The choice: the rule's choices for matrices given by their features alone. Requests are honoured or refused by name, and every
  choice has a reason. No matrix and no GPU is needed: the device is described, not used.

  //TEST
*/
static char help[] = "Tests the choice of format and kernel.\n";

#include "../src/mat/impls/gpucsr/blackbox/plan/plan.h"
#include <string.h>

static GPUCSRFeatures Features(int m, int n, double mean, int max, double padding)
{
  GPUCSRFeatures f = {.m = m, .n = n, .nnz = (int64_t)(m * mean), .max = max, .mean = mean, .sell_stored = (int64_t)(m * mean * padding)};

  return f;
}

static PetscErrorCode Chosen(GPUCSRDevice d, GPUCSRFeatures f, const char expect[])
{
  GPUCSRRequest q = {.format = "auto", .kernel = "auto"};
  GPUCSRChoice  c;
  PetscBool     same;

  PetscFunctionBegin;
  PetscCall(GPUCSRChoose(&f, GPUCSR_PRECISION_DOUBLE, d, &q, &c, NULL, NULL));
  same = (PetscBool)!strncmp(c.kernel->name, expect, strlen(expect)); /* PetscStrbeginswith() of 3.18 refuses "" and the same string twice */
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d x %d, mean %g, longest %d: chose %s because %s; expected %s", f.m, f.n, f.mean, f.max, c.kernel->name, c.why, expect);
  PetscCheck(c.why[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "No reason is given for %s", c.kernel->name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ok: must be taken, else the error must contain text */
static PetscErrorCode Requested(GPUCSRDevice d, const char format[], const char kernel[], GPUCSRPrecision p, PetscBool ok, const char text[])
{
  GPUCSRFeatures f = Features(100, 100, 50, 60, 1.1);
  GPUCSRRequest  q = {.format = ""};
  GPUCSRChoice   c;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;
  char          *found;

  PetscFunctionBegin;
  f.stencils       = 10; /* counted, and few enough */
  f.stencilentries = 500;
  PetscCall(PetscStrncpy(q.format, format, GPUCSR_WORD));
  PetscCall(PetscStrncpy(q.kernel, kernel, GPUCSR_WORD));
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = GPUCSRChoose(&f, p, d, &q, &c, NULL, NULL);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCheck(ok == (PetscBool)!ierr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Format %s, kernel %s: %s", format, kernel, ierr ? attempt.message : "should be refused");
  if (!ok) {
    PetscCall(PetscStrstr(attempt.message, text, &found));
    PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Format %s, kernel %s: the message should say \"%s\": %s", format, kernel, text, attempt.message);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  GPUCSRDevice        d;
  GPUCSRFeatures      f;
  const GPUCSRKernel *k;
  const GPUCSRFormat *format;
  char                why[256];
  int32_t             none[] = {0};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen("host", &d, why, sizeof(why)));
  d->props.processors = 132;

  PetscCall(Chosen(d, Features(8000000, 8000000, 6.98, 7, 1.003), "narrow_"));
  PetscCall(Chosen(d, Features(1000005, 1000005, 3.7, 200000, 30), "csr_adaptive"));
  PetscCall(Chosen(d, Features(54, 100000, 20000, 25000, 1.2), "csr_"));
  f         = Features(4000, 3000, 3000, 3000, 1.0);
  f.sampled = f.m;
  for (int r = 1; r <= 4; r++)
    for (int c = 1; c <= 4; c++) f.blocks[GPUCSRBlockIndex(GPUCSR_BLOCK(r, c))] = (double)f.nnz / (r * c);
  f.blocks[GPUCSRBlockIndex(GPUCSR_BLOCK(8, 8))] = (double)f.nnz / 64;
  PetscCall(Chosen(d, f, "b"));                                      /* bitdense, or full blocks */
  PetscCall(Chosen(d, Features(500000, 500000, 300, 340, 1.1), "")); /* several are right */
  PetscCall(Chosen(d, Features(100, 100, 5, 7, 1.1), ""));
  PetscCall(GPUCSRFeaturesOfRows(0, 0, none, 1, &f));
  PetscCall(Chosen(d, f, "")); /* whatever, but something */

  for (int q = 0; (k = GPUCSRKernelGet(q)); q++) { /* every kernel can be had by name, alone and with its format */
    PetscCall(Requested(d, "auto", k->name, GPUCSR_PRECISION_DOUBLE, PETSC_TRUE, ""));
    for (int r = 0; (format = GPUCSRFormatGet(r)); r++) {
      PetscBool same;

      PetscCall(PetscStrcmp(k->format, format->family, &same));
      if (!same) continue;
      PetscCall(Requested(d, format->name, k->name, GPUCSR_PRECISION_DOUBLE, PETSC_TRUE, ""));
      PetscCall(Requested(d, format->name, "auto", GPUCSR_PRECISION_DOUBLE, PETSC_TRUE, ""));
    }
  }
  PetscCall(Requested(d, "csv", "auto", GPUCSR_PRECISION_DOUBLE, PETSC_FALSE, "csr, sell"));
  PetscCall(Requested(d, "auto", "csr_vector3", GPUCSR_PRECISION_DOUBLE, PETSC_FALSE, "csr_vector4"));
  PetscCall(Requested(d, "sell", "csr_scan", GPUCSR_PRECISION_DOUBLE, PETSC_FALSE, "sell_row"));

  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
