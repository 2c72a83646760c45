/*
  Schur complements of a factor: cuDSS eliminates all rows but those of an index set, and gives S = A22 - A21 A11^-1 A12 of these. S becomes F->schur, a dense matrix on the host in the order of the index
  set, and PETSc's functions factor it there. A solve is a forward solve on the device, a solve with S, and a backward solve. In between, vectors are in the order of the elimination: the last entries are
  those of S, ascending.
*/
#include "cudss.h"

PetscErrorCode MatCuDSSSchurFree_Private(CuDSSSchur *schur)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(schur->marks, schur->place));
  *schur = (CuDSSSchur){0};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Marks the rows of an index set, and finds the place of each in ascending order */
static PetscErrorCode Mark(CuDSSSchur *schur, PetscInt rows, PetscInt n, const PetscInt index[])
{
  PetscInt at = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(rows, &schur->marks, n, &schur->place));
  PetscCall(PetscArrayzero(schur->marks, rows));
  schur->n = (int)n;
  for (PetscInt k = 0; k < n; k++) {
    PetscCheck(index[k] >= 0 && index[k] < rows, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Index %" PetscInt_FMT " of a Schur complement is %" PetscInt_FMT ": the matrix has %" PetscInt_FMT " rows", k, index[k], rows);
    PetscCheck(!schur->marks[index[k]], PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "Index %" PetscInt_FMT " of a Schur complement is %" PetscInt_FMT " again", k, index[k]);
    schur->marks[index[k]] = (int32_t)k + 1;
  }
  for (PetscInt r = 0; r < rows; r++) {
    if (!schur->marks[r]) continue;
    schur->place[schur->marks[r] - 1] = (int)at++;
    schur->marks[r]                   = 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factorization must follow: the analysis reads the marks */
static PetscErrorCode MatFactorSetSchurIS_CuDSS(Mat F, IS is)
{
  Mat_CuDSS      *f = (Mat_CuDSS *)F->data;
  const PetscInt *index;
  PetscInt        n;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(MatCuDSSSchurFree_Private(&f->schur));
  f->analyzed = f->factored = PETSC_FALSE;
  PetscCall(ISGetLocalSize(is, &n));
  PetscCheck(!n || n < F->rmap->n, PETSC_COMM_SELF, PETSC_ERR_SUP, "A Schur complement of %" PetscInt_FMT " rows, but the matrix has %" PetscInt_FMT ": cuDSS must eliminate one row at least", n, F->rmap->n);
  PetscCheck(!n || f->request.reordering < 1 || f->request.reordering > 2, PETSC_COMM_SELF, PETSC_ERR_SUP, "cuDSS gives no Schur complement with -mat_gpucsr_cudss_reordering colamd or btf_colamd");
  PetscCheck(!n || f->request.matching < 2, PETSC_COMM_SELF, PETSC_ERR_SUP, "cuDSS gives no Schur complement with -mat_gpucsr_cudss_matching: take auto or none");
  if (n) {
    PetscCall(ISGetIndices(is, &index));
    ierr = Mark(&f->schur, F->rmap->n, n, index);
    PetscCall(ISRestoreIndices(is, &index));
    if (ierr) PetscCall(MatCuDSSSchurFree_Private(&f->schur));
    PetscCall(ierr);
  }
  f->schur.F = F;
  PetscCall(MatDestroy(&F->schur));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, n, NULL, &F->schur));
  PetscCall(MatFactorRestoreSchurComplement(F, NULL, MAT_FACTOR_SCHUR_UNFACTORED));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCuDSSSchurCompose_Private(Mat F, PetscBool yes)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction((PetscObject)F, "MatFactorSetSchurIS_C", yes ? MatFactorSetSchurIS_CuDSS : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factorization begins: S has no values until it has succeeded */
PetscErrorCode MatCuDSSSchurClear_Private(Mat F)
{
  PetscFunctionBegin;
  if (!F->schur) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatFactorRestoreSchurComplement(F, NULL, MAT_FACTOR_SCHUR_UNFACTORED));
  PetscCall(MatZeroEntries(F->schur));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* S of cuDSS, ascending, in an array of the host */
static PetscErrorCode Download(Mat_CuDSS *f, double *values)
{
  GPUCSRDevice   dev   = f->dev;
  const size_t   n     = (size_t)f->schur.n;
  void          *array = NULL, *matrix = NULL, *handle;
  size_t         written;
  int            status;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(CuDSSHandle(dev, &handle));
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * n * n, "a Schur complement", &array));
  status = (*CuDSS.MatrixCreateDn)(&matrix, f->schur.n, f->schur.n, f->schur.n, array, CUDSS_DOUBLE, 0);
  if (!status) status = (*CuDSS.DataGet)(handle, f->data, CUDSS_SCHUR_MATRIX, &matrix, sizeof(matrix), &written);
  if (matrix) (void)(*CuDSS.MatrixDestroy)(matrix);
  if (!status) ierr = (*dev->ops->copy)(dev->id, values, array, sizeof(double) * n * n, GPUCSR_TO_HOST, dev->stream);
  if (!status && !ierr) ierr = (*dev->ops->streamsynchronize)(dev->id, dev->stream);
  PetscCall(GPUCSRFree(dev, sizeof(double) * n * n, &array));
  PetscCall(ierr);
  CuDSSCheck("the Schur complement", status);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a factorization: F->schur in the order of the index set */
PetscErrorCode MatCuDSSSchurGet_Private(Mat_CuDSS *f)
{
  const CuDSSSchur *schur = &f->schur;
  const size_t      n     = (size_t)schur->n;
  double           *values;
  PetscScalar      *S;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(MatFactorRestoreSchurComplement(schur->F, NULL, MAT_FACTOR_SCHUR_UNFACTORED));
  PetscCall(PetscMalloc1(n * n, &values));
  ierr = Download(f, values);
  if (!ierr) {
    PetscCall(MatDenseGetArrayWrite(schur->F->schur, &S));
    for (size_t c = 0; c < n; c++)
      for (size_t r = 0; r < n; r++) S[c * n + r] = values[(size_t)schur->place[c] * n + (size_t)schur->place[r]];
    PetscCall(MatDenseRestoreArrayWrite(schur->F->schur, &S));
  }
  PetscCall(PetscFree(values));
  PetscCall(ierr);
  PetscCall(MatSetOption(schur->F->schur, MAT_SPD, (PetscBool)(f->kind == CUDSS_POSITIVE)));
  if (f->kind == CUDSS_SYMMETRIC) PetscCall(MatSetOption(schur->F->schur, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = the forward solve of k columns b, in a buffer. L D L^T has another step, by way of array x */
static PetscErrorCode Forward(Mat_CuDSS *f, int k, const double *b, size_t ldb, double *x, size_t ldx, double **y)
{
  const size_t n = (size_t)f->A.m;
  void        *p;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRBuffer_Private(f->dev, &f->schur.partial, sizeof(double) * n * (size_t)k, &p));
  *y = (double *)p;
  if (f->kind == CUDSS_SYMMETRIC) {
    PetscCall(MatCuDSSExecute_Private(f, CUDSS_SOLVE_FORWARD, PETSC_FALSE, k, b, ldb, x, ldx));
    PetscCall(MatCuDSSExecute_Private(f, CUDSS_SOLVE_DIAGONAL, PETSC_FALSE, k, x, ldx, *y, n));
  } else PetscCall(MatCuDSSExecute_Private(f, CUDSS_SOLVE_FORWARD, PETSC_FALSE, k, b, ldb, *y, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of S in a column y: solved with S. work has as many numbers as S has rows */
static PetscErrorCode SolveS(Mat_CuDSS *f, double *y, PetscScalar *work, Vec b, Vec x)
{
  GPUCSRDevice      dev   = f->dev;
  const CuDSSSchur *schur = &f->schur;
  const size_t      bytes = sizeof(double) * (size_t)schur->n;
  PetscScalar      *array;

  PetscFunctionBegin;
  y += f->A.m - schur->n;
  PetscCall((*dev->ops->copy)(dev->id, work, y, bytes, GPUCSR_TO_HOST, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  PetscCall(VecGetArrayWrite(b, &array));
  for (int k = 0; k < schur->n; k++) array[k] = work[schur->place[k]];
  PetscCall(VecRestoreArrayWrite(b, &array));
  PetscCall(MatFactorSolveSchurComplement(schur->F, b, x));
  PetscCall(VecGetArray(x, &array));
  for (int k = 0; k < schur->n; k++) work[schur->place[k]] = array[k];
  PetscCall(VecRestoreArray(x, &array));
  PetscCall((*dev->ops->copy)(dev->id, y, work, bytes, GPUCSR_TO_DEVICE, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = the solutions of the whole system for k columns b. The factor has failed if S is singular */
PetscErrorCode MatCuDSSSchurSolve_Private(Mat_CuDSS *f, PetscBool transposed, int k, const double *b, size_t ldb, double *x, size_t ldx)
{
  double        *y;
  PetscScalar   *work;
  Vec            v[2];
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCheck(!transposed || f->kind != CUDSS_GENERAL, PETSC_COMM_SELF, PETSC_ERR_SUP, "cuDSS has no transposed solve with a Schur complement (MatFactorSetSchurIS()) of L U");
  PetscCall(Forward(f, k, b, ldb, x, ldx, &y));
  for (int q = 0; q < 2; q++) PetscCall(VecCreateSeq(PETSC_COMM_SELF, f->schur.n, &v[q]));
  PetscCall(PetscMalloc1(f->schur.n, &work));
  for (int q = 0; q < k && !ierr; q++) ierr = SolveS(f, y + (size_t)q * (size_t)f->A.m, work, v[0], v[1]);
  PetscCall(PetscFree(work));
  for (int q = 0; q < 2; q++) PetscCall(VecDestroy(&v[q]));
  if (ierr) f->factored = PETSC_FALSE; /* S may be half factored */
  PetscCall(ierr);
  PetscCall(MatCuDSSExecute_Private(f, CUDSS_SOLVE_BACKWARD, PETSC_FALSE, k, y, (size_t)f->A.m, x, ldx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The forward solve of a device array r = - A x ends in - S x2. So a product with S tells whether S is right, and in the expected order. size: of A and x */
PetscErrorCode MatCuDSSSchurTrial_Private(Mat_CuDSS *f, const double *x, const double *r, double size, PetscBool *good)
{
  GPUCSRDevice       dev = f->dev;
  const size_t       n = (size_t)f->A.m, ns = (size_t)f->schur.n;
  double            *y, *host, *xs, most = 0, largest = 0;
  const PetscScalar *S;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(Forward(f, 1, r, n, (double *)f->step.p, n, &y));
  PetscCall(PetscMalloc2(n, &host, ns, &xs));
  ierr = (*dev->ops->copy)(dev->id, host, x, sizeof(double) * n, GPUCSR_TO_HOST, dev->stream);
  GPUCSRKeep(&ierr, (*dev->ops->streamsynchronize)(dev->id, dev->stream));
  for (size_t k = 0, at = 0; k < n && !ierr; k++)
    if (f->schur.marks[k]) xs[at++] = host[k];
  GPUCSRKeep(&ierr, (*dev->ops->copy)(dev->id, host, y + n - ns, sizeof(double) * ns, GPUCSR_TO_HOST, dev->stream));
  GPUCSRKeep(&ierr, (*dev->ops->streamsynchronize)(dev->id, dev->stream));
  GPUCSRKeep(&ierr, MatDenseGetArrayRead(f->schur.F->schur, &S));
  if (!ierr) {
    for (size_t row = 0; row < ns; row++) {
      double sum = host[f->schur.place[row]], all = 0;

      for (size_t c = 0; c < ns; c++) {
        const double v = (double)PetscRealPart(S[c * ns + row]) * xs[f->schur.place[c]];

        sum += v;
        all += fabs(v);
      }
      most    = isnan(sum) ? INFINITY : PetscMax(most, fabs(sum));
      largest = PetscMax(largest, all);
    }
    ierr = MatDenseRestoreArrayRead(f->schur.F->schur, &S);
  }
  PetscCall(PetscFree2(host, xs));
  PetscCall(ierr);
  *good = (PetscBool)(isfinite(largest) && most <= f->request.error * (size + largest));
  PetscFunctionReturn(PETSC_SUCCESS);
}
