/* Conversions from and to the types gpucsr: functions that PETSc finds by the names of both types. */
#include "gpucsrimpl.h"
#include <string.h>

/* From an unrelated type that converts to MATAIJ. As ops->convertfrom it would call itself for ever: -mat_seqaij_type makes each MATAIJ a gpucsr */
static PetscErrorCode MatConvert_ByWayOfAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  if (reuse == MAT_INPLACE_MATRIX) PetscCall(MatHeaderReplace(A, &B));
  else if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(B, *newmat, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&B));
  } else *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To a type that MATAIJ converts to by itself, from the host's values */
static PetscErrorCode MatConvert_ToStranger(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  const char *seq = ((Mat_GPUCSR *)A->spptr)->kind->seq, *prefix[] = {seq, ""};
  PetscErrorCode (*f)(Mat, MatType, MatReuse, Mat *) = NULL;
  char name[256];

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  for (int k = 0; k < 2 && !f; k++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saij_%s%s_C", seq, prefix[k], type));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &f));
  }
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_SUP, "No conversion to type %s", type);
  PetscCall((*f)(A, type, reuse, newmat));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Between two names of the same type: all settings stay */
static PetscErrorCode MatConvert_Same(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  PetscFunctionBegin;
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, newmat));
  else if (reuse == MAT_REUSE_MATRIX) PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Composes (or, with install false, removes) the functions for conversions from and to this type. seq is "seq" or "mpi". MATAIJ's conversions to
  unrelated types are composed, too. Only few names: every block has them all.
*/
PetscErrorCode MatGPUCSRComposeConverters_Private(Mat A, const char seq[], PetscErrorCode (*toaij)(Mat, MatType, MatReuse, Mat *), PetscErrorCode (*fromaij)(Mat, MatType, MatReuse, Mat *), PetscBool install)
{
  char         name[256], from[64], own[32];
  const char  *words[] = {"gpucsr", "aijgpucsr", own}, *strangers[] = {"dense", "baij", "sbaij", "sell"};
  const char **list;
  char       **known_as;
  int          n, known = 0;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(own, sizeof(own), "%saijgpucsr", seq));
  PetscCall(PetscSNPrintf(from, sizeof(from), "MatConvert_%saij_", seq));
  PetscCall(PetscFunctionListGet(((PetscObject)A)->qlist, &list, &n));
  PetscCall(PetscMalloc1(n, &known_as));
  for (int k = 0; k < n; k++) {
    const char *to;

    if (!list[k] || strncmp(list[k], from, strlen(from))) continue; /* NULL: removed */
    to = list[k] + strlen(from);
    if (!strncmp(to, "gpucsr", strlen("gpucsr"))) continue;
    if (!strncmp(to, seq, strlen(seq)) && !strncmp(to + strlen(seq), "aij", strlen("aij"))) continue; /* MATAIJ's other subclasses would overwrite this type's data */
    PetscCall(PetscStrallocpy(list[k], &known_as[known++]));                                          /* composing below changes the list */
  }
  PetscCall(PetscFree(list));
  for (int k = 0; k < known; k++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s_%s", own, known_as[k] + strlen(from)));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatConvert_ToStranger : NULL));
    PetscCall(PetscFree(known_as[k]));
  }
  PetscCall(PetscFree(known_as));
  PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s_%saij_C", own, seq));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? toaij : NULL));
  for (size_t w = 0; w < PETSC_STATIC_ARRAY_LENGTH(words); w++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saij_%s_C", seq, words[w]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? fromaij : NULL));
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s_%s_C", own, words[w]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatConvert_Same : NULL));
    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(strangers); q++) {
      PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s%s_%s_C", seq, strangers[q], words[w]));
      PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatConvert_ByWayOfAIJ : NULL));
    }
  }
  PetscCall(MatGPUCSRComposeProducts_Private(A, seq, install));
  PetscFunctionReturn(PETSC_SUCCESS);
}
