/* Products of a PETSc program: MatMult() and MatMultTranspose() of several types in turn, by the host's clock over a batch and one wait */
#include "spmv.h"
#include <petscgpucsr.h>

#define COLD   3 /* caches that the copies of a matrix fill, which are multiplied in turn */
#define COPIES 32
#define BATCH  3e-3 /* seconds: a pause of the host in a shorter batch shows in the median */

const char *const programwords[] = {"gpucsr", "aijcusparse", "aijcusparse_explicit"};

typedef struct {
  Mat    A[COPIES];
  Vec    x[COPIES], z[COPIES];
  int    copies, batch;
  double t[MAX_ROUNDS];
} Program;

static PetscErrorCode Create(const Case *c, int type, Mat A, int copies, Program *p)
{
  PetscScalar *to;

  PetscFunctionBeginUser;
  p->copies = copies;
  for (int q = 0; q < copies; q++) {
    PetscCall(MatConvert(A, type == PROGRAM_GPUCSR ? MATSEQAIJGPUCSR : MATSEQAIJCUSPARSE, MAT_INITIAL_MATRIX, &p->A[q]));
    if (type == PROGRAM_EXPLICIT) PetscCall(MatSetOption(p->A[q], MAT_FORM_EXPLICIT_TRANSPOSE, PETSC_TRUE));
    PetscCall(MatCreateVecs(p->A[q], c->side ? &p->z[q] : &p->x[q], c->side ? &p->x[q] : &p->z[q]));
    PetscCall(VecGetArrayWrite(p->x[q], &to));
    PetscCall(PetscArraycpy(to, c->p->x, c->side ? c->p->src.m : c->p->src.n));
    PetscCall(VecRestoreArrayWrite(p->x[q], &to));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(Program *p)
{
  PetscFunctionBeginUser;
  for (int q = 0; q < p->copies; q++) {
    PetscCall(VecDestroy(&p->x[q]));
    PetscCall(VecDestroy(&p->z[q]));
    PetscCall(MatDestroy(&p->A[q]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first of the products puts the device to work, and is not timed */
static PetscErrorCode Batch(const Case *c, Program *p, int count, double *seconds)
{
  PetscLogDouble from = 0, to;

  PetscFunctionBeginUser;
  for (int k = 0; k <= count; k++) {
    const int q = k % p->copies;

    if (k == 1) {
      PetscCheck(!c->b->peer || !cudaDeviceSynchronize(), PETSC_COMM_SELF, PETSC_ERR_GPU, "cudaDeviceSynchronize() failed");
      PetscCall(PetscTime(&from));
    }
    PetscCall(c->side ? MatMultTranspose(p->A[q], p->x[q], p->z[q]) : MatMult(p->A[q], p->x[q], p->z[q]));
  }
  PetscCheck(!c->b->peer || !cudaDeviceSynchronize(), PETSC_COMM_SELF, PETSC_ERR_GPU, "cudaDeviceSynchronize() failed");
  PetscCall(PetscTime(&to));
  *seconds = (to - from) / count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The result is within its bound */
static PetscErrorCode Verify(const Case *c, const Program *p, const char word[])
{
  const int          n     = c->side ? c->p->src.n : c->p->src.m;
  double             error = 0;
  const PetscScalar *z;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayRead(p->z[0], &z));
  for (int r = 0; r < n; r++) {
    const double off = fabs(PetscRealPart(z[r]) - c->p->y[c->side][r]), most = c->p->bound[c->side][r] * DBL_EPSILON;

    if (!(off <= most)) error = isfinite(off) && most > 0 ? PetscMax(error, off / most) : INFINITY;
  }
  PetscCall(VecRestoreArrayRead(p->z[0], &z));
  PetscCheck(error <= 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s of %s is off by %g times what is allowed", c->side ? "MatMultTranspose()" : "MatMult()", word, error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Medians and spreads of the types, with so many copies of the matrix in turn */
static PetscErrorCode Measure(const Case *c, Mat A, int ntypes, int copies, double median[], double spread[])
{
  const int rounds = c->b->rounds;
  Program  *p;

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1(NPROGRAMS, &p));
  for (int k = 0; k < ntypes; k++) {
    PetscCall(Create(c, k, A, copies, &p[k]));
    for (int q = 0; q < 2; q++) PetscCall(Batch(c, &p[k], copies, &p[k].t[0])); /* the first batch makes the type's permanent data */
    p[k].batch = (int)PetscMax(copies, PetscMin(50, BATCH / p[k].t[0]));
  }
  for (int r = 0; r < rounds; r++)
    for (int k = 0; k < ntypes; k++) PetscCall(Batch(c, &p[k], p[k].batch, &p[k].t[r]));
  for (int k = 0; k < ntypes; k++) {
    PetscCall(Verify(c, &p[k], programwords[k]));
    median[k] = BenchMedian(p[k].t, rounds);
    spread[k] = (p[k].t[rounds - 1] - p[k].t[0]) / median[k];
    PetscCall(Destroy(&p[k]));
  }
  PetscCall(PetscFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fills c->program, c->spread and c->cold; NaN for types that this PETSc lacks, and in other precisions than double. No cold time if one matrix fills the cache, or with too many copies */
PetscErrorCode SpmvPrograms(Case *c)
{
  const GPUCSRSource *s      = &c->p->src;
  const int           ntypes = !PetscDefined(HAVE_CUDA) || !c->b->peer ? 1 : c->side ? NPROGRAMS : PROGRAM_EXPLICIT;
  const double        copies = ceil(COLD * (double)c->b->dev->props.l2 / GPUCSRCSRBytes(&c->p->f, c->precision));
  double              ignored[NPROGRAMS];
  Mat                 A;

  PetscFunctionBeginUser;
  for (int k = 0; k < NPROGRAMS; k++) c->program[k] = c->spread[k] = c->cold[k] = NAN;
  if (c->precision != GPUCSR_PRECISION_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, s->m, s->n, (PetscInt *)s->i, (PetscInt *)s->j, (PetscScalar *)s->a, &A));
  PetscCall(Measure(c, A, ntypes, 1, c->program, c->spread));
  if (copies > 1 && copies <= COPIES) PetscCall(Measure(c, A, ntypes, (int)copies, c->cold, ignored));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
