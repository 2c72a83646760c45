/*
  Does a matrix still equal the copy in its plans? PETSc's count of changes does not tell after values are written uncounted, and after
  MatHeaderReplace().
*/
#include "gpucsrimpl.h"
#include <string.h>

/* Some of the host's values, spread over all; all values of a small matrix */
PetscErrorCode MatGPUCSRSample_Private(Mat A, PetscInt samples, PetscScalar sample[])
{
  const PetscInt *i;
  PetscScalar    *a;
  PetscInt        n;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, &a, NULL));
  n = a ? i[A->rmap->n] : 0; /* MatTransposeSymbolic() makes patterns without values */
  for (PetscInt k = 0; k < samples; k++) sample[k] = k < n ? a[n <= samples ? k : (PetscInt)((double)(n - 1) * (double)k / (double)(samples - 1))] : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Did values change uncounted? A matrix is filled uncounted if PETSc has counted no change since the only assembly, and values differ from the assembled values,
  or all assembled values were zero. Each product then compares all values with a copy, until PETSc counts a change.
*/
PetscErrorCode MatGPUCSRUncountedChange_Private(Mat A, Mat_SeqGPUCSR *g, PetscObjectState state, PetscBool *changed)
{
  const PetscInt *i;
  PetscScalar    *a, now[GPUCSR_FIRST_SAMPLES];
  PetscBool       same, zero = PETSC_TRUE;
  size_t          n;

  PetscFunctionBegin;
  *changed = PETSC_FALSE;
  if ((!g->firstvalues && !g->copy) || !A->num_ass) PetscFunctionReturn(PETSC_SUCCESS); /* nothing to compare, or inside that assembly */
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, &a, NULL));
  n = (size_t)i[A->rmap->n];
  if (state != g->firststate) PetscCall(PetscFree(g->copy));
  else if (g->copy) {
    PetscCall(PetscMemcmp(g->copy, a, n * sizeof(*a), &same));
    *changed = (PetscBool)!same;
  } else {
    PetscCall(MatGPUCSRSample_Private(A, GPUCSR_FIRST_SAMPLES, now));
    PetscCall(PetscMemcmp(now, g->firstvalues, sizeof(now), &same));
    for (int k = 0; k < GPUCSR_FIRST_SAMPLES; k++) zero = (PetscBool)(zero && g->firstvalues[k] == 0.0);
    if (!same || zero) {
      PetscCall(PetscMalloc1(n, &g->copy));
      *changed = PETSC_TRUE;
      PetscCall(PetscInfo(A, "Changes of this matrix are not counted: its values are compared with a copy before each product\n"));
    }
  }
  PetscCall(PetscFree(g->firstvalues));
  if (*changed) PetscCall(PetscArraycpy(g->copy, a, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's value while the device's copy is the master: a signalling NaN, from which arithmetic makes another NaN */
static PetscScalar Absent(void)
{
  const uint64_t bits = 0x7ff4000000000000;
  PetscScalar    a    = (PetscScalar)NAN;

  if (sizeof(a) == sizeof(bits)) memcpy(&a, &bits, sizeof(bits));
  return a;
}

void MatGPUCSRVoid_Private(PetscScalar a[], int64_t n)
{
  const PetscScalar absent = Absent();

  for (int64_t k = 0; k < n; k++) a[k] = absent;
}

/*
  Has the host newer values than the device's master copy? MatTranspose() and MatMatMult() with MAT_REUSE_MATRIX write values into the host's array, and call no operation of A; a program may preallocate
  A anew. a: the array
*/
static PetscErrorCode Overwritten(Mat A, const void *columns, int64_t nnz, PetscScalar **a, PetscBool *over)
{
  const PetscScalar absent = Absent();
  const PetscInt   *i, *j;
  PetscScalar       sample[GPUCSR_SAMPLES];

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, a, NULL));
  *over = (PetscBool)(!i || columns != (const void *)j || (int64_t)i[A->rmap->n] != nnz);
  if (*over || !*a) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRSample_Private(A, GPUCSR_SAMPLES, sample));
  for (int k = 0; k < GPUCSR_SAMPLES && k < nnz; k++) *over = (PetscBool)(*over || memcmp(&sample[k], &absent, sizeof(absent)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatHeaderReplace() brings the states of another matrix: all values count as changed */
PetscErrorCode MatGPUCSRHeaderReplaced_Private(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscScalar   *a;
  PetscBool      over = PETSC_FALSE;

  PetscFunctionBegin;
  if (g->kept) { /* the matrix is used after its device was closed */
    PetscCall(Overwritten(A, g->keptcolumns, g->nkept, &a, &over));
    if (a && !over) PetscCall(PetscArraycpy(a, g->kept, (size_t)g->nkept));
    PetscCall(PetscFree(g->kept));
    over = PETSC_FALSE;
  }
  if (g->mirror.ahead) PetscCall(Overwritten(A, g->mirror.columns, g->mirror.csr.nnz, &a, &over));
  if (over) g->mirror.ahead = PETSC_FALSE;
  if (over || g->counted != A) g->values[0] = g->values[1] = g->mirror.values = -1;
  g->counted = A;
  if (g->mirror.ahead) g->mirror.values = GPUCSRStateOf(A); /* no host's value is newer */
  PetscFunctionReturn(PETSC_SUCCESS);
}
