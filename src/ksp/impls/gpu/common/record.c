/*
  The report of a solve, also for -log_view: its path and the reason, iterations and time.
*/
#include "gpukspimpl.h"
#include <petsctime.h>

GPUCSRLogEvent GPUKSPEvents[4];

PetscErrorCode GPUKSPRecordInitialize(void)
{
  PetscFunctionBegin;
  PetscCall(KSPInitializePackage());
  PetscCall(GPUCSRLogRegister("KSPGPUPersistent", KSP_CLASSID, &GPUKSPEvents[KSP_GPU_PATH_PERSISTENT]));
  PetscCall(GPUCSRLogRegister("KSPGPUGraph", KSP_CLASSID, &GPUKSPEvents[KSP_GPU_PATH_GRAPH]));
  PetscCall(GPUCSRLogRegister("KSPGPUHostLoop", KSP_CLASSID, &GPUKSPEvents[KSP_GPU_PATH_HOST_LOOP]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solve of every type. After a fall back to PETSc's method, petsc/methods.c records the solve */
PetscErrorCode GPUKSPSolve(KSP ksp)
{
  PetscErrorCode (*const solve)(KSP) = ((KSP_GPU *)ksp->data)->solve;
  char           how[384];
  PetscLogDouble begin, end;
  const KSP_GPU *k;

  PetscFunctionBegin;
  PetscCall(PetscTime(&begin));
  PetscCall((*solve)(ksp));
  if (ksp->ops->solve != GPUKSPSolve) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTime(&end));
  k = (const KSP_GPU *)ksp->data;
  if (k->taken == KSP_GPU_PATH_PERSISTENT) PetscCall(PetscSNPrintf(how, sizeof(how), "path persistent, format %s", k->launch.with->name));
  else if (k->taken == KSP_GPU_PATH_AUTO) PetscCall(PetscSNPrintf(how, sizeof(how), "the preconditioner failed"));
  else PetscCall(PetscSNPrintf(how, sizeof(how), "path %s, because %s", KSPGPUPaths[k->taken], k->why));
  PetscCall(GPUCSRSolvesAdd((PetscObject)ksp, ((PetscObject)ksp->pc)->type_name, how, ksp->its, end - begin));
  PetscFunctionReturn(PETSC_SUCCESS);
}
