/*
  Rows in the order of their lengths, on the host: a stable counting sort in each window.
*/
#include "order.h"

/* perm[q] = the row at place q */
PetscErrorCode GPUCSRSortRows(int m, int n, const int32_t *rowptr, int window, int32_t *perm)
{
  const GPUCSRRowOrder o     = GPUCSRRowOrderOf(m, n, window);
  int32_t             *start = NULL;
  int                  have  = -1;

  PetscFunctionBegin;
  for (int64_t w = 0; w < m; w += window) {
    const int last = (int)PetscMin(m, w + window), most = (int)o.most;
    int       top = 0;

    for (int r = (int)w; r < last; r++) top = PetscMax(top, PetscMin(most, rowptr[r + 1] - rowptr[r]));
    if (top > have) {
      PetscCall(PetscFree(start));
      PetscCall(PetscMalloc1(top + 2, &start));
      have = top;
    }
    PetscCall(PetscArrayzero(start, top + 2));
    for (int r = (int)w; r < last; r++) start[top - PetscMin(most, rowptr[r + 1] - rowptr[r]) + 1]++;
    for (int k = 0; k < top; k++) start[k + 1] += start[k];
    for (int r = (int)w; r < last; r++) perm[w + start[top - PetscMin(most, rowptr[r + 1] - rowptr[r])]++] = r;
  }
  PetscCall(PetscFree(start));
  PetscFunctionReturn(PETSC_SUCCESS);
}
