/*
  Finds misspelt options of the library: PETSc ignores unread options. The makefile makes the list of names from the sources, so the list is complete.
*/
#include "gpucsrsys.h"
#include <string.h>

#define LONGEST 128 /* of a word; longer words are cut */
#define CLOSE   2   /* most wrong letters of a word without a beginning of the library */

static const char *const names[] = {
#define GPUCSR_OPTION(name) #name,
#include <optionnames.h>
#undef GPUCSR_OPTION
};
/* Beginnings of options that belong to the library alone, after any prefix */
static const char *const beginnings[] = {"mat_gpucsr", "vec_gpu_", "ksp_gpu", "pc_mg_gpucsr", "pc_gamg_gpucsr", "pc_blocks_gpucsr", "pc_gpuamg", "tao_gpubmrm"};

enum {
  NAMES      = sizeof(names) / sizeof(names[0]),
  BEGINNINGS = sizeof(beginnings) / sizeof(beginnings[0])
};

/*
  Letters that are wrong, missing, superfluous or swapped between a name and the end of a word; text before that end is a prefix. prefix: where the end begins.
  Rows of the usual table for two words, with a first row of zeros
*/
static int Distance(const char name[], const char word[], int *prefix)
{
  const int n = (int)strlen(name), w = (int)strlen(word);
  int       cost[3][LONGEST + 1], from[3][LONGEST + 1];

  for (int j = 0; j <= w; j++) {
    cost[0][j] = 0;
    from[0][j] = j;
  }
  for (int i = 1; i <= n; i++) {
    int       *now = cost[i % 3], *start = from[i % 3];
    const int *above = cost[(i + 2) % 3], *fromabove = from[(i + 2) % 3], *before = cost[(i + 1) % 3], *frombefore = from[(i + 1) % 3];

    now[0]   = i;
    start[0] = 0;
    for (int j = 1; j <= w; j++) {
      now[j]   = above[j - 1] + (name[i - 1] != word[j - 1]);
      start[j] = fromabove[j - 1];
      if (above[j] + 1 < now[j]) {
        now[j]   = above[j] + 1;
        start[j] = fromabove[j];
      }
      if (now[j - 1] + 1 < now[j]) {
        now[j]   = now[j - 1] + 1;
        start[j] = start[j - 1];
      }
      if (i > 1 && j > 1 && name[i - 1] == word[j - 2] && name[i - 2] == word[j - 1] && before[j - 2] + 1 < now[j]) {
        now[j]   = before[j - 2] + 1;
        start[j] = frombefore[j - 2];
      }
    }
  }
  *prefix = from[n % 3][w];
  return cost[n % 3][w];
}

/* Judges an option that was never read; "" if nothing is wrong */
static PetscErrorCode Judge(const char option[], char text[], size_t len)
{
  char      word[LONGEST + 1];
  int       distance[NAMES], prefix[NAMES], least = LONGEST;
  PetscBool looks = PETSC_FALSE;
  size_t    used;

  PetscFunctionBegin;
  text[0] = 0;
  PetscCall(PetscStrncpy(word, option, sizeof(word)));
  PetscCall(PetscStrtolower(word)); /* case-insensitive, as in PETSc */
  for (int k = 0; k < NAMES; k++) {
    distance[k] = Distance(names[k], word, &prefix[k]);
    least       = PetscMin(least, distance[k]);
  }
  if (!least) PetscFunctionReturn(PETSC_SUCCESS); /* an existing option without use in this run */
  for (int k = 0; k < BEGINNINGS && !looks; k++) looks = (PetscBool)(strstr(word, beginnings[k]) != NULL);
  if (!strncmp(word, "gpucsr_", 7)) looks = PETSC_TRUE; /* without a prefix: an option of the process */
  if (!looks && least > CLOSE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(text, len, "-%s is not an option of the library", option));
  if (least > 4) PetscCall(PetscStrlcat(text, " (docs/options.md lists them)", len));
  for (int k = 0, n = 0; k < NAMES && least <= 4 && n < 4; k++) {
    if (distance[k] > least) continue;
    PetscCall(PetscStrlen(text, &used));
    PetscCall(PetscSNPrintf(text + used, len - used, "%s-%.*s%s", n++ ? ", " : "; near it: ", prefix[k], word, names[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* At the end of the program */
PetscErrorCode GPUCSROptionsCheck(void)
{
  PetscInt n;
  char   **left, **values, text[512];

  PetscFunctionBegin;
  PetscCall(PetscOptionsLeftGet(NULL, &n, &left, &values));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(Judge(left[k], text, sizeof(text)));
    if (text[0]) PetscCall(GPUCSRWarn(text));
  }
  PetscCall(PetscOptionsLeftRestore(NULL, &n, &left, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}
