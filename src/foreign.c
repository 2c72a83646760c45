/*
  The library in a PETSc with other numbers or indices, or of another release, than the PETSc of its build. An options file or variable for all programs loads the library in all of them. The code here
  touches no object, and no number with a variable width.
*/
#include "foreign.h"
#include <petscksp.h>
#include <petsctao.h>

/* The mismatch; empty if there is none */
PetscErrorCode GPUCSRForeign(char why[], size_t len)
{
  PetscInt      major, minor, subminor, release;
  PetscDataType scalar;
  int           found = 0; /* as wide as any release's PetscBool */
  size_t        intsize;

  PetscFunctionBegin;
  why[0] = 0;
  /* first of all, since a PETSc with other indices writes numbers of another width */
  PetscCall(PetscDataTypeGetSize(PETSC_INT, &intsize));
  if (intsize != sizeof(PetscInt)) {
    PetscCall(PetscSNPrintf(why, len, "libpetscgpucsr.so was built for a PETSc with %d-bit indices and is loaded into one with %d-bit indices", (int)(8 * sizeof(PetscInt)), (int)(8 * intsize)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscGetVersionNumber(&major, &minor, &subminor, &release));
  PetscCall(PetscDataTypeFromString("scalar", &scalar, (PetscBool *)&found));
  if (major != PETSC_VERSION_MAJOR || minor != PETSC_VERSION_MINOR) PetscCall(PetscSNPrintf(why, len, "libpetscgpucsr.so was built for PETSc %d.%d and is loaded into PETSc %d.%d", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, (int)major, (int)minor));
  else if (!found || scalar != PETSC_SCALAR)
    PetscCall(PetscSNPrintf(why, len, "libpetscgpucsr.so was built for a PETSc with %s scalars and is loaded into one with %s scalars", PetscDataTypes[PETSC_SCALAR], found ? PetscDataTypes[scalar] : "unknown"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Converts a MATSEQAIJ for -mat_seqaij_type with one of the library's names: keeps the type */
static PetscErrorCode Unchanged(Mat A, MatType type, MatReuse reuse, Mat *B)
{
  PetscFunctionBegin;
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
  else *B = A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Registers the library's names for PETSc's own types, so that options with these names do no harm */
PetscErrorCode GPUCSRForeignNames(void)
{
  static const char *const mat[][2] = {
    {"gpucsr",       MATAIJ   },
    {"aijgpucsr",    MATAIJ   },
    {"seqaijgpucsr", MATSEQAIJ},
    {"mpiaijgpucsr", MATMPIAIJ}
  };
  static const char *const ksp[][2] = {
    {"gpucg",   KSPCG  },
    {"gpubcgs", KSPBCGS}
  };
  PetscErrorCode (*create)(Mat), (*vec)(Vec), (*solver)(KSP), (*pc)(PC), (*tao)(Tao);

  PetscFunctionBegin;
  PetscCall(VecInitializePackage());
  PetscCall(MatInitializePackage());
  PetscCall(KSPInitializePackage());
  PetscCall(TaoInitializePackage());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(mat); k++) {
    PetscCall(PetscFunctionListFind(MatList, mat[k][1], &create));
    if (create) PetscCall(MatRegister(mat[k][0], create));
  }
  PetscCall(MatRegisterRootName("gpucsr", MATSEQAIJ, MATMPIAIJ));
  PetscCall(MatRegisterRootName("aijgpucsr", MATSEQAIJ, MATMPIAIJ));
  PetscCall(MatSeqAIJRegister("seqaijgpucsr", Unchanged));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ksp); k++) {
    PetscCall(PetscFunctionListFind(KSPList, ksp[k][1], &solver));
    if (solver) PetscCall(KSPRegister(ksp[k][0], solver));
  }
  PetscCall(PetscFunctionListFind(PCList, PCGAMG, &pc));
  if (pc) PetscCall(PCRegister("gpuamg", pc));
  PetscCall(PetscFunctionListFind(VecList, VECSTANDARD, &vec));
  if (vec) PetscCall(VecRegister("gpu", vec));
  PetscCall(PetscFunctionListFind(TaoList, TAOBMRM, &tao));
  if (tao) PetscCall(TaoRegister("gpubmrm", tao));
  PetscFunctionReturn(PETSC_SUCCESS);
}
