/*
  Two-grid cycles of PCGPUAMG beside dense arithmetic on one rank's copies. Plain aggregation: the coarse space, recovered from applications, is the near null space on each of disjoint connected aggregates.
  Smoothed aggregation: the prolongator and the coarse matrix follow from this space, applications are the dense two-grid operator, and the smallest eigenvalue is 1/K of the two-grid theory.

  //TEST name="host" nsize={} loop="1 3" args="-mat_gpucsr_format csr"
  //TEST name="auto" gpu=1
  //TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
  //TEST name="ranks" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 2 -plain_pc_mg_gpucsr -default_pc_mg_gpucsr -mat_gpucsr_halo peer"
*/
static char help[] = "Tests the two-grid cycle of PCGPUAMG.\n";

#include "t660-gpuamg/problems.h"
#include <petscgpucsr.h>

static PetscBool report = PETSC_FALSE;

/* ---- dense matrices, the same on all ranks ---- */

/* X + a Y as a new matrix */
static PetscErrorCode Plus(Mat X, PetscReal a, Mat Y, Mat *Z)
{
  PetscFunctionBegin;
  PetscCall(MatDuplicate(X, MAT_COPY_VALUES, Z));
  PetscCall(MatAXPY(*Z, (PetscScalar)a, Y, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Times(Mat X, Mat Y, Mat *Z)
{
  PetscFunctionBegin;
  PetscCall(MatMatMult(X, Y, MAT_INITIAL_MATRIX, PETSC_DEFAULT, Z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* X^T Y X */
static PetscErrorCode Between(Mat X, Mat Y, Mat *Z)
{
  Mat YX;

  PetscFunctionBegin;
  PetscCall(Times(Y, X, &YX));
  PetscCall(MatTransposeMatMult(X, YX, MAT_INITIAL_MATRIX, PETSC_DEFAULT, Z));
  PetscCall(MatDestroy(&YX));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Identity(PetscInt n, Mat *V)
{
  PetscFunctionBegin;
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, n, NULL, V));
  PetscCall(MatAssemblyBegin(*V, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*V, MAT_FINAL_ASSEMBLY));
  PetscCall(MatShift(*V, 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Inverse(Mat X, Mat *Z)
{
  Mat      F, V;
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(X, &n, NULL));
  PetscCall(Identity(n, &V));
  PetscCall(MatDuplicate(V, MAT_DO_NOT_COPY_VALUES, Z));
  PetscCall(MatDuplicate(X, MAT_COPY_VALUES, &F));
  PetscCall(MatLUFactor(F, NULL, NULL, NULL));
  PetscCall(MatMatSolve(F, V, *Z));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&V));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The smallest and the largest eigenvalue of a matrix whose eigenvalues are real */
static PetscErrorCode Eigenvalues(Mat X, PetscReal ends[2])
{
  KSP        ksp;
  PC         pc;
  PetscReal *re, *im;
  PetscInt   n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(X, &n, NULL));
  PetscCall(PetscMalloc2(n, &re, n, &im));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, X, X));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPComputeEigenvaluesExplicitly(ksp, n, re, im));
  ends[0] = ends[1] = re[0];
  for (PetscInt i = 1; i < n; i++) {
    ends[0] = PetscMin(ends[0], re[i]);
    ends[1] = PetscMax(ends[1], re[i]);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(PetscFree2(re, im));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |X - Y| relative to |X|, both Frobenius norms, is at most so much */
static PetscErrorCode Near(Mat X, Mat Y, PetscReal most, const char what[], const char where[])
{
  Mat       Z;
  PetscReal difference, norm;

  PetscFunctionBegin;
  PetscCall(Plus(X, -1.0, Y, &Z));
  PetscCall(MatNorm(Z, NORM_FROBENIUS, &difference));
  PetscCall(MatNorm(X, NORM_FROBENIUS, &norm));
  if (report) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %s, difference %g\n", where, what, (double)(difference / norm)));
  PetscCheck(report || difference <= most * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s differ by %g", where, what, (double)(difference / norm));
  PetscCall(MatDestroy(&Z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An orthonormal basis of the range of a matrix of this rank, by pivoting; the columns left over are zero */
static PetscErrorCode Range(Mat X, PetscInt rank, const char where[], Mat *Q)
{
  PetscInt     n;
  PetscScalar *x, *q;
  Mat          Y;

  PetscFunctionBegin;
  PetscCall(MatGetSize(X, &n, NULL));
  PetscCall(MatDuplicate(X, MAT_COPY_VALUES, &Y));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, rank, NULL, Q));
  PetscCall(MatDenseGetArray(Y, &x));
  PetscCall(MatDenseGetArray(*Q, &q));
  for (PetscInt k = 0; k <= rank; k++) {
    PetscInt  at   = 0;
    PetscReal most = -1;

    for (PetscInt j = 0; j < n; j++) {
      PetscReal sum = 0;

      for (PetscInt i = 0; i < n; i++) sum += PetscRealPart(x[j * n + i]) * PetscRealPart(x[j * n + i]);
      if (sum > most) at = j;
      most = PetscMax(most, sum);
    }
    most = PetscSqrtReal(most);
    PetscCheck(k < rank ? most > 0.1 : most < 1e-8, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the coarse space does not have dimension %" PetscInt_FMT ", a column of size %g is left after %" PetscInt_FMT, where, rank, (double)most, k);
    if (k == rank) break;
    for (PetscInt i = 0; i < n; i++) q[k * n + i] = x[at * n + i] / most;
    for (PetscInt j = 0; j < n; j++) {
      PetscScalar dot = 0;

      for (PetscInt i = 0; i < n; i++) dot += q[k * n + i] * x[j * n + i];
      for (PetscInt i = 0; i < n; i++) x[j * n + i] -= dot * q[k * n + i];
    }
  }
  PetscCall(MatDenseRestoreArray(Y, &x));
  PetscCall(MatDenseRestoreArray(*Q, &q));
  PetscCall(MatAssemblyBegin(*Q, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*Q, MAT_FINAL_ASSEMBLY));
  PetscCall(MatDestroy(&Y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- problems and their cycles ---- */

typedef struct {
  const char *name;
  Grid        grid;
  PetscInt    elements; /* of plane elasticity; 0: a grid */
  PetscBool   filtered; /* weak entries are dropped */
  Mat         R, A, D;  /* of this rank, of the type under test on all ranks, dense */
  PetscInt    n, bs, ns;
} Problem;

static PetscErrorCode Create(Problem *p)
{
  PetscFunctionBegin;
  p->bs = p->elements ? 2 : 1;
  p->ns = p->elements ? 3 : 1;
  if (p->elements) PetscCall(ElasticCreate(p->elements, 0.3, PETSC_FALSE, PETSC_TRUE, &p->R));
  else PetscCall(GridCreate(&p->grid, 0, PETSC_TRUE, &p->R));
  PetscCall(MatConvert(p->R, MATSEQDENSE, MAT_INITIAL_MATRIX, &p->D));
  PetscCall(MatGetSize(p->R, &p->n, NULL));
  PetscCall(Spread(PETSC_COMM_WORLD, p->R, &p->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(Problem *p)
{
  PetscFunctionBegin;
  PetscCall(MatDestroy(&p->R));
  PetscCall(MatDestroy(&p->A));
  PetscCall(MatDestroy(&p->D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The place of a node of elasticity, both numbers from 0 */
static PetscReal Place(const Problem *p, PetscInt node, int axis)
{
  return (PetscReal)(axis ? node / p->elements : node % p->elements + 1);
}

/* The number of a row in a near null vector: a constant, or two translations and a rotation */
static PetscReal NearOf(const Problem *p, PetscInt row, PetscInt vector)
{
  if (!p->elements) return 1;
  if (vector < 2) return row % 2 == vector ? 1 : 0;
  return row % 2 ? Place(p, row / 2, 0) : -Place(p, row / 2, 1);
}

/* Columns of a dense matrix on each rank: results for unit vectors */
static PetscErrorCode Columns(PC pc, PetscInt n, Mat *M)
{
  Vec          e, x, all;
  VecScatter   scatter;
  Mat          A;
  PetscScalar *m;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &e));
  PetscCall(VecScatterCreateToAll(x, &scatter, &all));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, n, NULL, M));
  PetscCall(MatDenseGetArray(*M, &m));
  for (PetscInt j = 0; j < n; j++) {
    const PetscScalar *column;
    PetscInt           first, end;

    PetscCall(VecSet(e, 0.0));
    PetscCall(VecGetOwnershipRange(e, &first, &end));
    if (j >= first && j < end) PetscCall(VecSetValue(e, j, 1.0, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(e));
    PetscCall(VecAssemblyEnd(e));
    PetscCall(PCApply(pc, e, x));
    PetscCall(VecScatterBegin(scatter, x, all, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(scatter, x, all, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecGetArrayRead(all, &column));
    PetscCall(PetscArraycpy(m + j * n, column, n));
    PetscCall(VecRestoreArrayRead(all, &column));
  }
  PetscCall(MatDenseRestoreArray(*M, &m));
  PetscCall(MatAssemblyBegin(*M, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*M, MAT_FINAL_ASSEMBLY));
  PetscCall(VecScatterDestroy(&scatter));
  PetscCall(VecDestroy(&e));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A PC of two levels as a dense matrix, which is symmetric; the coarse matrix's size, trace and Frobenius norm */
static PetscErrorCode Cycle(const Problem *p, const char prefix[], PetscInt smooths, Mat *M, PetscInt *coarse, PetscReal *trace, PetscReal *norm)
{
  PetscReal   all = -1, *at;
  PetscInt    first, n;
  PetscScalar sum;
  PC          pc;
  Mat         C;

  PetscFunctionBegin;
  PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
  PetscCall(PCSetOptionsPrefix(pc, prefix));
  PetscCall(PCSetOperators(pc, p->A, p->A));
  PetscCall(PCSetType(pc, PCGPUAMG));
  PetscCall(PCGAMGSetNSmooths(pc, smooths));
  PetscCall(PCGAMGSetCoarseEqLim(pc, p->n - 1));
  if (!p->filtered) PetscCall(PCGAMGSetThreshold(pc, &all, 1));
  PetscCall(PCSetFromOptions(pc));
  if (p->elements) {
    PetscCall(MatGetOwnershipRange(p->A, &first, &n));
    n -= first;
    PetscCall(PetscMalloc1(n, &at));
    for (PetscInt i = 0; i < n; i++) at[i] = Place(p, (first + i) / 2, (int)(i % 2));
    PetscCall(PCSetCoordinates(pc, 2, n / 2, at));
    PetscCall(PetscFree(at));
  }
  PetscCall(PCSetUp(pc));
  PetscCall(PCGPUAMGGetOperator(pc, 1, &C));
  PetscCall(MatGetSize(C, coarse, NULL));
  PetscCall(MatGetTrace(C, &sum));
  PetscCall(MatNorm(C, NORM_FROBENIUS, norm));
  *trace = PetscRealPart(sum);
  PetscCall(MatDestroy(&C));
  PetscCall(Columns(pc, p->n, M));
  PetscCall(MatTranspose(*M, MAT_INITIAL_MATRIX, &C));
  PetscCall(Near(*M, C, TEST_C * PETSC_MACHINE_EPSILON, "an application and its transpose", p->name));
  PetscCall(MatDestroy(&C));
  if (report) PetscCall(PCView(pc, PETSC_VIEWER_STDOUT_WORLD));
  PetscCall(PCDestroy(&pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the reference ---- */

/* D^-1 A; filtered: without entries of at most a fiftieth of their row's largest, and the sums of rows stay the same */
static PetscErrorCode Scaled(const Problem *p, PetscBool filtered, Mat *W)
{
  PetscScalar *w;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(p->D, MAT_COPY_VALUES, W));
  PetscCall(MatDenseGetArray(*W, &w));
  for (PetscInt i = 0; i < p->n; i++) {
    PetscReal   most  = 0;
    PetscScalar pivot = w[i * p->n + i];

    for (PetscInt j = 0; j < p->n; j++)
      if (j != i) most = PetscMax(most, PetscAbsScalar(w[j * p->n + i]));
    for (PetscInt j = 0; j < p->n && filtered; j++) {
      if (j == i || PetscAbsScalar(w[j * p->n + i]) > 0.02 * most) continue;
      pivot += w[j * p->n + i];
      w[j * p->n + i] = 0;
    }
    w[i * p->n + i] = pivot;
    for (PetscInt j = 0; j < p->n; j++) w[j * p->n + i] /= pivot;
  }
  PetscCall(MatDenseRestoreArray(*W, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Disjoint sets of vertices that T connects, or, graph not NULL, T and this matrix. of: the set of each vertex */
static PetscErrorCode Sets(const Problem *p, Mat T, Mat graph, PetscInt of[], PetscInt *sets)
{
  const PetscInt     n = p->n, vertices = p->n / p->bs;
  const PetscScalar *t, *g              = NULL;
  PetscInt          *queue;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(vertices, &queue));
  PetscCall(MatDenseGetArrayRead(T, &t));
  if (graph) PetscCall(MatDenseGetArrayRead(graph, &g));
  for (PetscInt v = 0; v < vertices; v++) of[v] = -1;
  *sets = 0;
  for (PetscInt v = 0; v < vertices; v++) {
    PetscInt count = 0;

    if (of[v] >= 0) continue;
    queue[count++] = v;
    of[v]          = *sets;
    for (PetscInt k = 0; k < count; k++)
      for (PetscInt u = 0; u < vertices; u++) {
        PetscReal size = 0, coupling = g ? 0 : 1;

        if (of[u] >= 0) continue;
        for (PetscInt i = 0; i < p->bs; i++)
          for (PetscInt j = 0; j < p->bs; j++) {
            const PetscInt at = (p->bs * u + i) * n + p->bs * queue[k] + j;

            size = PetscMax(size, PetscAbsScalar(t[at]));
            if (g) coupling = PetscMax(coupling, PetscAbsScalar(g[at]));
          }
        if (size < 1e-8 || coupling == 0) continue;
        of[u]          = *sets;
        queue[count++] = u;
      }
    (*sets)++;
  }
  PetscCall(MatDenseRestoreArrayRead(T, &t));
  if (graph) PetscCall(MatDenseRestoreArrayRead(graph, &g));
  PetscCall(PetscFree(queue));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The columns of Q span the near null space on each of connected aggregates, and nothing else */
static PetscErrorCode Aggregates(const Problem *p, Mat Q)
{
  PetscInt    *of, coarse, sets, parts;
  PetscScalar *b;
  Mat          T, B, TB;

  PetscFunctionBegin;
  PetscCall(MatGetSize(Q, NULL, &coarse));
  PetscCall(MatMatTransposeMult(Q, Q, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &T));
  PetscCall(PetscMalloc1(p->n / p->bs, &of));
  PetscCall(Sets(p, T, p->D, of, &parts));
  PetscCall(Sets(p, T, NULL, of, &sets));
  PetscCheck(sets * p->ns == coarse && sets == parts, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " coarse unknowns of %" PetscInt_FMT " aggregates with %" PetscInt_FMT " connected parts", p->name, coarse, sets, parts);
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, p->n, coarse, NULL, &B));
  PetscCall(MatDenseGetArray(B, &b));
  for (PetscInt i = 0; i < p->n; i++)
    for (PetscInt k = 0; k < p->ns; k++) b[(of[i / p->bs] * p->ns + k) * p->n + i] = NearOf(p, i, k);
  PetscCall(MatDenseRestoreArray(B, &b));
  PetscCall(Times(T, B, &TB));
  PetscCall(Near(B, TB, 1e-10, "the near null space and its part in the coarse space", p->name));
  PetscCall(PetscFree(of));
  PetscCall(MatDestroy(&T));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&TB));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* I - P (P^T X P)^-1 P^T X, the error of the best approximation from the range of P in the norm of X */
static PetscErrorCode Best(Mat P, Mat X, Mat *Z)
{
  Mat C, V, PI, PX, Y;

  PetscFunctionBegin;
  PetscCall(Between(P, X, &C));
  PetscCall(Inverse(C, &V));
  PetscCall(Times(P, V, &PI));
  PetscCall(MatTransposeMatMult(P, X, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &PX));
  PetscCall(Times(PI, PX, &Y));
  PetscCall(MatScale(Y, -1.0));
  PetscCall(MatShift(Y, 1.0));
  *Z = Y;
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&V));
  PetscCall(MatDestroy(&PI));
  PetscCall(MatDestroy(&PX));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* I - M A */
static PetscErrorCode Error(const Problem *p, Mat M, Mat *E)
{
  PetscFunctionBegin;
  PetscCall(Times(M, p->D, E));
  PetscCall(MatScale(*E, -1.0));
  PetscCall(MatShift(*E, 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The cycle with smoother S and prolongator P has I - M A = S (I - Pi) S, with the projection Pi of best approximations in the norm of A. The eigenvalues of M A are at most 1. The smallest one is 1/K, with
  K = max |v - Pi' v|_X^2 / |v|_A^2, X = A (I - S^2)^-1, and the projection Pi' in the norm of X (R. D. Falgout, P. S. Vassilevski, L. T. Zikatanov, Numer. Linear Algebra Appl. 12, 2005).
*/
static PetscErrorCode Bound(const Problem *p, Mat M, Mat S, Mat P, const char where[])
{
  PetscReal ends[2], k[2];
  Mat       E, G, GS, SGS, SS, V, X, Y, K;

  PetscFunctionBegin;
  PetscCall(Error(p, M, &E));
  PetscCall(Best(P, p->D, &G));
  PetscCall(Times(G, S, &GS));
  PetscCall(Times(S, GS, &SGS));
  PetscCall(Near(SGS, E, 1e-9, "the errors of the dense two-grid cycle and of an application", where));
  PetscCall(MatScale(E, -1.0));
  PetscCall(MatShift(E, 1.0));
  PetscCall(Eigenvalues(E, ends));
  PetscCall(MatDestroy(&G));
  PetscCall(Times(S, S, &SS));
  PetscCall(MatScale(SS, -1.0));
  PetscCall(MatShift(SS, 1.0));
  PetscCall(Inverse(SS, &V));
  PetscCall(Times(p->D, V, &X));
  PetscCall(Best(P, X, &G));
  PetscCall(Between(G, X, &Y));
  PetscCall(MatDestroy(&V));
  PetscCall(Inverse(p->D, &V));
  PetscCall(Times(V, Y, &K));
  PetscCall(Eigenvalues(K, k));
  if (report) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: eigenvalues of M A from %.12g, 1/K = %.12g, to 1 + %g\n", where, (double)ends[0], 1 / (double)k[1], (double)ends[1] - 1));
  PetscCheck(report || (ends[0] > 0 && PetscAbsReal(ends[0] * k[1] - 1) < 1e-8 && ends[1] < 1 + 1e-10), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: eigenvalues of M A from %.12g, 1/K = %.12g, to %.12g", where, (double)ends[0], 1 / (double)k[1], (double)ends[1]);
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&G));
  PetscCall(MatDestroy(&GS));
  PetscCall(MatDestroy(&SGS));
  PetscCall(MatDestroy(&SS));
  PetscCall(MatDestroy(&V));
  PetscCall(MatDestroy(&X));
  PetscCall(MatDestroy(&Y));
  PetscCall(MatDestroy(&K));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An orthonormal basis of the space of plain aggregation: S is a regular matrix, so S^-1 (I - M A) S^-1 = I - Pi gives the projection Pi */
static PetscErrorCode Plain(const Problem *p, Mat S, Mat *Q)
{
  PetscInt  coarse;
  PetscReal trace, norm;
  Mat       M, E, V, IE, Pi, Square;

  PetscFunctionBegin;
  PetscCall(Cycle(p, "plain_", 0, &M, &coarse, &trace, &norm));
  PetscCall(Error(p, M, &E));
  PetscCall(Inverse(S, &V));
  PetscCall(Times(V, E, &IE));
  PetscCall(Times(IE, V, &Pi));
  PetscCall(MatScale(Pi, -1.0));
  PetscCall(MatShift(Pi, 1.0));
  PetscCall(Times(Pi, Pi, &Square));
  PetscCall(Near(Pi, Square, 1e-10, "a coarse correction and two", p->name));
  PetscCall(Range(Pi, coarse, p->name, Q));
  PetscCall(Aggregates(p, *Q));
  PetscCall(Bound(p, M, S, *Q, p->name));
  PetscCall(MatDestroy(&M));
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&V));
  PetscCall(MatDestroy(&IE));
  PetscCall(MatDestroy(&Pi));
  PetscCall(MatDestroy(&Square));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TraceOf(Mat X, Mat Y, PetscReal *trace)
{
  PetscScalar sum;
  Mat         Z;

  PetscFunctionBegin;
  PetscCall(MatTransposeMatMult(X, Y, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &Z));
  PetscCall(MatGetTrace(Z, &sum));
  *trace = PetscRealPart(sum);
  PetscCall(MatDestroy(&Z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The smoothed prolongator P = (I - omega F) Q. The trace of the coarse matrix is tr Q^T A Q - 2 omega tr (F Q)^T A Q + omega^2 tr (F Q)^T A F Q, which gives omega. It is 1.4 over an estimate of the
  largest eigenvalue lambda of W, from below
*/
static PetscErrorCode Smoothed(const Problem *p, Mat Q, Mat F, Mat W, PetscReal trace, PetscReal norm, Mat *P, PetscReal *lambda)
{
  PetscReal t[3], ends[2], root, omega, other;
  Mat       FQ, AQ, AFQ, C;

  PetscFunctionBegin;
  PetscCall(Times(F, Q, &FQ));
  PetscCall(Times(p->D, Q, &AQ));
  PetscCall(Times(p->D, FQ, &AFQ));
  PetscCall(TraceOf(Q, AQ, &t[0]));
  PetscCall(TraceOf(FQ, AQ, &t[1]));
  PetscCall(TraceOf(FQ, AFQ, &t[2]));
  PetscCall(Eigenvalues(W, ends));
  root  = PetscSqrtReal(PetscMax(0.0, t[1] * t[1] - t[2] * (t[0] - trace)));
  omega = (t[1] + root) / t[2];
  other = (t[1] - root) / t[2];
  if (PetscAbsReal(other * ends[1] - 1.4) < PetscAbsReal(omega * ends[1] - 1.4)) omega = other;
  *lambda = 1.4 / omega;
  PetscCall(Plus(Q, -omega, FQ, P));
  PetscCall(Between(*P, p->D, &C));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &other));
  if (report)
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: omega %g from an eigenvalue %g, of the dense matrix %g; norm of the coarse matrix %g, difference %g\n", p->name, (double)omega, (double)*lambda, (double)ends[1], (double)norm, (double)(norm - other)));
  PetscCheck(report || (*lambda < 1.0001 * ends[1] && *lambda > 0.9 * ends[1]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the prolongator's smoother has omega %g, the largest eigenvalue is %g", p->name, (double)omega, (double)ends[1]);
  PetscCheck(report || PetscAbsReal(norm - other) < 1e-9 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: norm of the coarse matrix %.12g, of the dense one %.12g", p->name, (double)norm, (double)other);
  PetscCall(MatDestroy(&FQ));
  PetscCall(MatDestroy(&AQ));
  PetscCall(MatDestroy(&AFQ));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two steps of Chebyshev's method: T_2((theta - W)/delta) / T_2(theta/delta), with T_2(x) = 2 x^2 - 1 */
static PetscErrorCode Chebyshev(Mat W, PetscReal from, PetscReal to, Mat *S)
{
  const PetscReal theta = 0.5 * (to + from), delta = 0.5 * (to - from);
  Mat             X;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(W, MAT_COPY_VALUES, &X));
  PetscCall(MatShift(X, (PetscScalar)-theta));
  PetscCall(Times(X, X, S));
  PetscCall(MatScale(*S, (PetscScalar)(2 / (delta * delta))));
  PetscCall(MatShift(*S, -1.0));
  PetscCall(MatScale(*S, (PetscScalar)(1 / (2 * theta * theta / (delta * delta) - 1))));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TwoGrid(Problem *p)
{
  PetscInt  coarse;
  PetscReal trace, norm, lambda = 0;
  char      where[64];
  Mat       W, F, S, T, Q, P, M;

  PetscFunctionBegin;
  PetscCall(Create(p));
  PetscCall(Scaled(p, PETSC_FALSE, &W));
  PetscCall(Scaled(p, p->filtered, &F));
  PetscCall(MatDuplicate(W, MAT_COPY_VALUES, &S));
  PetscCall(MatScale(S, -0.25)); /* as in the options of main() */
  PetscCall(MatShift(S, 1.0));
  PetscCall(Plain(p, S, &Q));
  PetscCall(Cycle(p, "default_", 1, &M, &coarse, &trace, &norm));
  PetscCall(Smoothed(p, Q, F, W, trace, norm, &P, &lambda));
  PetscCall(Chebyshev(W, 0.1 * lambda, 1.1 * lambda, &T));
  PetscCall(PetscSNPrintf(where, sizeof(where), "%s, smoothed", p->name));
  PetscCall(Bound(p, M, T, P, where));
  PetscCall(MatDestroy(&W));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&T));
  PetscCall(MatDestroy(&Q));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&M));
  PetscCall(Destroy(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Problem problems[] = {
    {.name = "Poisson",          .grid = {.n = {16, 15, 1}, .along = {1, 1, 0}}               },
    {.name = "Poisson in space", .grid = {.n = {7, 6, 5}, .along = {1, 1, 1}}                 },
    {.name = "contrast e^4",     .grid = {.n = {15, 15, 1}, .along = {1, 1, 0}, .contrast = 4}},
    {.name = "weak entries",     .grid = {.n = {18, 13, 1}, .along = {1, 1e-3, 0}},             .filtered = PETSC_TRUE},
    {.name = "elasticity",                          .elements = 10                                                                   }
  };

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-report", &report, NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-plain_mg_levels_ksp_type", KSPRICHARDSON));
  PetscCall(PetscOptionsSetValue(NULL, "-plain_mg_levels_ksp_richardson_scale", "0.25"));
  PetscCall(PetscOptionsSetValue(NULL, "-plain_mg_levels_ksp_max_it", "1"));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(problems); k++) PetscCall(TwoGrid(&problems[k]));
  PetscCall(PetscFinalize());
  return 0;
}
