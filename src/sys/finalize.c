/*
  The end of the library, in PetscFinalize() or before. Each unit registers how it ends when it first has something to end; levels run from the users of a device to the device itself.
*/
#include "gpucsrsys.h"

#define MOST 32

/* One of the two is NULL */
static struct {
  GPUCSRFinalLevel level;
  PetscErrorCode (*end)(void);
  GPUCSRLivingList *list;
} ends[MOST];
static int nends = 0;

static PetscErrorCode Register(GPUCSRFinalLevel level, PetscErrorCode (*end)(void), GPUCSRLivingList *list)
{
  PetscFunctionBegin;
  for (int k = 0; k < nends; k++)
    if (ends[k].end == end && ends[k].list == list) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(nends < MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "There are more than %d functions that end the library", MOST);
  ends[nends].level  = level;
  ends[nends].end    = end;
  ends[nends++].list = list;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Registered twice, it runs once. Functions of one level run in reverse order, after the release of the objects of that level */
PetscErrorCode GPUCSRRegisterFinalize(GPUCSRFinalLevel level, PetscErrorCode (*end)(void))
{
  return Register(level, end, NULL);
}

PetscErrorCode GPUCSRLivingAdd(GPUCSRLivingList *list, GPUCSRLiving *l, void *object)
{
  PetscFunctionBegin;
  PetscCall(Register(list->level, NULL, list));
  l->object   = object;
  l->next     = list->first;
  l->previous = &list->first;
  if (l->next) l->next->previous = &l->next;
  list->first = l;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An object that is in no list may be removed */
PetscErrorCode GPUCSRLivingRemove(GPUCSRLiving *l)
{
  PetscFunctionBegin;
  if (!l->previous) PetscFunctionReturn(PETSC_SUCCESS);
  *l->previous = l->next;
  if (l->next) l->next->previous = l->previous;
  l->next     = NULL;
  l->previous = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ends all registered units and objects. A release may take the object off its list. Lists stay: a surviving object may use a device again, and the next end releases it again */
PetscErrorCode GPUCSRFinalizersRun_Private(void)
{
  int lists = 0;

  PetscFunctionBegin;
  for (int level = 0; level < (int)GPUCSR_FINAL_LEVELS; level++) {
    for (int k = nends - 1; k >= 0; k--) {
      if ((int)ends[k].level != level || !ends[k].list) continue;
      for (GPUCSRLiving *l = ends[k].list->first, *next; l; l = next) {
        next = l->next;
        PetscCall((*ends[k].list->release)(l->object));
      }
    }
    for (int k = nends - 1; k >= 0; k--)
      if ((int)ends[k].level == level && ends[k].end) PetscCall((*ends[k].end)());
  }
  for (int k = 0; k < nends; k++)
    if (ends[k].list) ends[lists++] = ends[k];
  nends = lists;
  PetscFunctionReturn(PETSC_SUCCESS);
}
