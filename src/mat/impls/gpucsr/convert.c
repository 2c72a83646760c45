/*
  Conversions from and to our types: what PETSc finds by the names of the two.
*/
#include "gpucsrimpl.h"
#include <string.h>

/* From a type that is no relative: by way of MATAIJ */
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

/* From one of ours to one of ours by another of its names: what was set stays */
static PetscErrorCode MatConvert_Same(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  PetscFunctionBegin;
  (void)type;
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, newmat));
  else if (reuse == MAT_REUSE_MATRIX) PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Tell PETSc how to get from and to our type, by composing (or, with install false, taking away) functions by name. seq is
  "seq" or "mpi". What MATAIJ knows of converting to strangers holds for us too, as we are one.
*/
PetscErrorCode MatGPUCSRComposeConverters_Private(Mat A, const char seq[], PetscErrorCode (*toaij)(Mat, MatType, MatReuse, Mat *), PetscErrorCode (*fromaij)(Mat, MatType, MatReuse, Mat *), PetscBool install)
{
  static const char *const words[]     = {"gpucsr", "aijgpucsr"};
  static const char *const strangers[] = {"dense", "baij", "sbaij", "sell"};
  char                     name[256], from[64];
  const char             **list;
  char                   **known_as;
  int                      n;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(from, sizeof(from), "MatConvert_%saij_", seq));
  PetscCall(PetscFunctionListGet(((PetscObject)A)->qlist, &list, &n));
  PetscCall(PetscMalloc1(n, &known_as));
  for (int k = 0; k < n; k++) PetscCall(PetscStrallocpy(list[k], &known_as[k])); /* composing below changes the list */
  PetscCall(PetscFree(list));
  for (int k = 0; k < n; k++) {
    PetscBool known, relative;
    PetscErrorCode (*f)(void) = NULL;

    PetscCall(PetscStrbeginswith(known_as[k], from, &known));
    if (!known) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s%saij", from, seq));
    PetscCall(PetscStrbeginswith(known_as[k], name, &relative)); /* MATAIJ's other subclasses would overwrite what is ours */
    if (relative) continue;
    PetscCall(PetscStrbeginswith(known_as[k] + strlen(from), "gpucsr", &relative));
    if (relative) continue;
    PetscCall(PetscObjectQueryFunction((PetscObject)A, known_as[k], &f));
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saijgpucsr_%s", seq, known_as[k] + strlen(from)));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? f : NULL));
  }
  for (int k = 0; k < n; k++) PetscCall(PetscFree(known_as[k]));
  PetscCall(PetscFree(known_as));
  PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saijgpucsr_%saij_C", seq, seq));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? toaij : NULL));
  for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
    /* the type's own word is the last, with its prefix; MatConvert() also asks for the root's */
    for (int prefixed = 0; prefixed < 2; prefixed++) {
      const char *p = prefixed ? seq : "";

      PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saij_%s%s_C", seq, p, words[w]));
      PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? fromaij : NULL));
      PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%saijgpucsr_%s%s_C", seq, p, words[w]));
      PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatConvert_Same : NULL));
      for (size_t s = 0; s < sizeof(strangers) / sizeof(strangers[0]); s++) {
        PetscCall(PetscSNPrintf(name, sizeof(name), "MatConvert_%s%s_%s%s_C", seq, strangers[s], p, words[w]));
        PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatConvert_ByWayOfAIJ : NULL));
      }
    }
  }
  PetscCall(MatGPUCSRComposeProducts_Private(A, seq, install));
  PetscFunctionReturn(PETSC_SUCCESS);
}
