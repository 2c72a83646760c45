#pragma once

/* KSPReport(): the outcome of a solve, in lines that do not depend on the number of ranks or the order of sums. */
#include <petscksp.h>

/* A small number as the least power of ten above it; below 1e-10 the order of sums decides */
static inline PetscErrorCode FormatSmall(PetscReal r, char text[], size_t len)
{
  PetscFunctionBeginUser;
  if (PetscIsInfOrNanReal(r) || r >= 0.1) PetscCall(PetscSNPrintf(text, len, "= %.1e", (double)r));
  else PetscCall(PetscSNPrintf(text, len, "< 1e-%02d", r < 1e-10 ? 10 : (int)PetscFloorReal(-PetscLog10Real(r))));
  PetscFunctionReturn(0);
}

/* Print the solver, its outcome and the true residual |b - A x| / |b| */
static inline PetscErrorCode KSPReport(KSP ksp, Mat A, Vec b, Vec x)
{
  PC                 pc;
  KSPType            ksptype;
  PCType             pctype;
  KSPConvergedReason reason;
  PetscInt           its;
  PetscReal          bnorm, rnorm;
  Vec                r;
  char               text[32];
  MPI_Comm           comm = PetscObjectComm((PetscObject)ksp);

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(KSPGetType(ksp, &ksptype));
  PetscCall(PCGetType(pc, &pctype));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, &its));

  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(b, NORM_2, &bnorm));
  PetscCall(VecNorm(r, NORM_2, &rnorm));
  PetscCall(VecDestroy(&r));
  PetscCall(FormatSmall(bnorm > 0.0 ? rnorm / bnorm : rnorm, text, sizeof(text)));

  PetscCall(PetscPrintf(comm, "solver    %s, preconditioner %s\n", ksptype, pctype));
  PetscCall(PetscPrintf(comm, "outcome   %s after %" PetscInt_FMT " iterations\n", KSPConvergedReasons[reason], its));
  PetscCall(PetscPrintf(comm, "residual  |b - A x| / |b| %s\n", text));
  PetscFunctionReturn(0);
}
