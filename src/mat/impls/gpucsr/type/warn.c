/*
  Warnings of matrices.
*/
#include "gpucsrimpl.h"

/* Prints the warning of this matrix. After ranks agreed: rank prints, and have ranks of size have the same warning; all 0 otherwise */
PetscErrorCode MatGPUCSRWarn_Private(Mat A, PetscMPIInt rank, PetscMPIInt have, PetscMPIInt size)
{
  Mat_SeqGPUCSR *g         = (Mat_SeqGPUCSR *)A->spptr;
  char           where[96] = "";

  PetscFunctionBegin;
  if (!g->warning[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (size > 1) PetscCall(PetscSNPrintf(where, sizeof(where), " (said by rank %d, the same on %d of %d ranks)", (int)rank, (int)have, (int)size));
  else if (!size && GPUCSRSettingsGlobal.localsize > 1) PetscCall(PetscSNPrintf(where, sizeof(where), " (said by rank %d, once for all of this node)", (int)PetscGlobalRank));
  if (size || GPUCSROnceMine(g->warning)) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: %s%s\n", g->warning, where));
  else PetscCall(PetscInfo(A, "Said by another rank: %s\n", g->warning));
  g->warning[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
