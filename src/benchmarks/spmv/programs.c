/* Products as a PETSc program has them: MatMult() and MatMultTranspose() of types of matrices, by the host's clock over a batch and one wait, the types in turn */
#include "spmv.h"
#include <petscgpucsr.h>

const char *const programwords[] = {"gpucsr", "aijcusparse", "aijcusparse_explicit"};

typedef struct {
  Mat    A;
  Vec    x, z;
  int    batch;
  double t[MAX_ROUNDS];
} Program;

static PetscErrorCode Create(const Case *c, int type, Mat A, Program *p)
{
  PetscScalar *to;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, type == PROGRAM_GPUCSR ? MATSEQAIJGPUCSR : MATSEQAIJCUSPARSE, MAT_INITIAL_MATRIX, &p->A));
  if (type == PROGRAM_EXPLICIT) PetscCall(MatSetOption(p->A, MAT_FORM_EXPLICIT_TRANSPOSE, PETSC_TRUE));
  PetscCall(MatCreateVecs(p->A, c->side ? &p->z : &p->x, c->side ? &p->x : &p->z));
  PetscCall(VecGetArrayWrite(p->x, &to));
  PetscCall(PetscArraycpy(to, c->p->x, c->side ? c->p->src.m : c->p->src.n));
  PetscCall(VecRestoreArrayWrite(p->x, &to));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first of the products puts the device to work, and is not timed */
static PetscErrorCode Batch(const Case *c, Program *p, int count, double *seconds)
{
  PetscLogDouble from = 0, to;

  PetscFunctionBeginUser;
  for (int k = 0; k <= count; k++) {
    if (k == 1) {
      PetscCheck(!c->b->peer || !cudaDeviceSynchronize(), PETSC_COMM_SELF, PETSC_ERR_GPU, "cudaDeviceSynchronize() failed");
      PetscCall(PetscTime(&from));
    }
    PetscCall(c->side ? MatMultTranspose(p->A, p->x, p->z) : MatMult(p->A, p->x, p->z));
  }
  PetscCheck(!c->b->peer || !cudaDeviceSynchronize(), PETSC_COMM_SELF, PETSC_ERR_GPU, "cudaDeviceSynchronize() failed");
  PetscCall(PetscTime(&to));
  *seconds = (to - from) / count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Largest error of z over its bound */
static PetscErrorCode Verify(const Case *c, const Program *p, double *error)
{
  const int          n = c->side ? c->p->src.n : c->p->src.m;
  const PetscScalar *z;

  PetscFunctionBeginUser;
  *error = 0;
  PetscCall(VecGetArrayRead(p->z, &z));
  for (int r = 0; r < n; r++) {
    const double off = fabs(PetscRealPart(z[r]) - c->p->y[c->side][r]), most = c->p->bound[c->side][r] * DBL_EPSILON;

    if (!(off <= most)) *error = isfinite(off) && most > 0 ? PetscMax(*error, off / most) : INFINITY;
  }
  PetscCall(VecRestoreArrayRead(p->z, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fills c->program and c->spread; NaN for types that this PETSc has not, and but in double */
PetscErrorCode SpmvPrograms(Case *c)
{
  const GPUCSRSource *s      = &c->p->src;
  const int           ntypes = !PetscDefined(HAVE_CUDA) || !c->b->peer ? 1 : c->side ? NPROGRAMS : PROGRAM_EXPLICIT;
  Program             p[NPROGRAMS];
  double              error;
  Mat                 A;

  PetscFunctionBeginUser;
  for (int k = 0; k < NPROGRAMS; k++) c->program[k] = c->spread[k] = NAN;
  if (c->precision != GPUCSR_PRECISION_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, s->m, s->n, (PetscInt *)s->i, (PetscInt *)s->j, (PetscScalar *)s->a, &A));
  for (int k = 0; k < ntypes; k++) {
    PetscCall(Create(c, k, A, &p[k]));
    PetscCall(Batch(c, &p[k], 1, &p[k].t[0])); /* makes what the type keeps */
    PetscCall(Batch(c, &p[k], 1, &p[k].t[0]));
    p[k].batch = (int)PetscMax(1, PetscMin(50, 500e-6 / p[k].t[0]));
  }
  for (int r = 0; r < c->b->rounds; r++)
    for (int k = 0; k < ntypes; k++) PetscCall(Batch(c, &p[k], p[k].batch, &p[k].t[r]));
  for (int k = 0; k < ntypes; k++) {
    PetscCall(Verify(c, &p[k], &error));
    PetscCheck(error <= 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s of %s is off by %g times what is allowed", c->side ? "MatMultTranspose()" : "MatMult()", programwords[k], error);
    c->program[k] = BenchMedian(p[k].t, c->b->rounds);
    c->spread[k]  = (p[k].t[c->b->rounds - 1] - p[k].t[0]) / c->program[k];
    PetscCall(VecDestroy(&p[k].x));
    PetscCall(VecDestroy(&p[k].z));
    PetscCall(MatDestroy(&p[k].A));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
