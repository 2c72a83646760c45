static char help[] = "Learns a linear model from rows with labels: regularised risk minimisation by a bundle method, TAO's BMRM.\n"
                     "Binary and multi-class classification, regression, ranking; learns, validates, writes, reads and applies models.\n\n";

/*
  Minimise  lambda/2 |w|^2 + R(w),  R(w) = (1/n) sum of the losses of n rows, or a loss of all rows together (losses.h):

    bmrm -f a9a.petsc                                                hinge loss, a linear support vector machine
    bmrm -f a9a.petsc -loss logistic -lambda 1e-4 -validation 0.2    learn from four fifths of the rows, judge by the rest
    bmrm -f letter.petsc -model_out letter.model                     26 classes: one against all others, all of them at once
    bmrm -f letter.t.petsc -model letter.model -predictions out.txt  apply it
    bmrm -f x.petsc -loss quantile -quantile 0.9                     regression
    bmrm -f x.petsc -loss roc -check                                 compare the subgradient with finite differences, learn nothing

  A file is PETSc binary, a matrix with a row per example and then a vector of labels. If a library was loaded that has a function for files
  (-dll_append libpetscgpucsr.so), that one reads it, and LIBSVM text too, compressed or not.

  All work on the data is two products an iteration: scores s = X w, and the subgradient X^T c, where c holds the slopes of the losses. With
  several classes w is a matrix with a column for each, and both are one product with several vectors. So types are a matter of options:

    -mat_type aij, gpucsr, dense, ...     where X is multiplied          -tao_type bmrm, gpubmrm     who minimises
    -lambda 1e-5                          weight of |w|^2/2              -epsilon 1e-4               gap to the optimum at which to stop

  The method: C. H. Teo, S. V. N. Vishwanathan, A. Smola and Q. V. Le, Bundle methods for regularized risk minimization, JMLR 11, 2010. LIBLINEAR's C is
  1/(lambda n), without its bias; for one, give the data a column of ones. Of the iterates, which do not descend each time, the best is kept.
*/
#include "losses.h"
#include <petsctao.h>
#include <petsctime.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum {
  MAX_CLASSES = 1000
};

/* Times of the parts of an evaluation, in seconds */
typedef enum {
  TIME_SCORES,
  TIME_LOSS,
  TIME_SUBGRADIENT,
  NTIMES
} TimePart;

typedef struct {
  const Loss    *loss;
  PetscReal      parameter, lambda;
  PetscInt       nclasses;           /* with a label each; 0 where labels are targets */
  PetscReal      label[MAX_CLASSES]; /* ascending; of two, the second is the positive one */
  PetscInt       k;                  /* weight vectors: 1, or one for each of more than two classes */
  Mat            X;
  Vec            y;       /* labels as in the file */
  Vec            s, c;    /* scores and slopes, k = 1 */
  Vec            z;       /* labels as the loss wants them, k = 1 */
  PetscBool      vectors; /* losses by operations of vectors: these are not the host's; k = 1 */
  Vec            zero, t[LOSS_VECTORS];
  Mat            W, S, C, G; /* the same for k > 1, and weights and subgradient, a column a class */
  PetscScalar   *sign;       /* labels of each class as the loss wants them, in the order of S */
  VecScatter     tozero;     /* for a loss of all rows together: everything to rank 0 */
  Vec            s0, c0, z0;
  Vec            w, best; /* weights; a class after the other, on each rank */
  PetscReal      bestvalue;
  PetscInt       evaluations;
  PetscLogDouble seconds[NTIMES];
} Learner;

/* ---- data ---- */

/* Does a file begin as MatView() begins one? */
static PetscErrorCode IsBinary(const char file[], PetscBool *binary)
{
  unsigned char first[8] = {0};
  unsigned long word[2]  = {0, 0};
  PetscMPIInt   rank;
  FILE         *fp;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (!rank) {
    fp = fopen(file, "rb");
    PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be read", file);
    if (fread(first, 1, sizeof(first), fp) == sizeof(first))
      for (int k = 0; k < 8; k++) word[k / 4] = word[k / 4] << 8 | first[k];
    fclose(fp);
  }
  PetscCallMPI(MPI_Bcast(word, 2, MPI_UNSIGNED_LONG, 0, PETSC_COMM_WORLD));
  *binary = (PetscBool)(word[sizeof(PetscInt) == 8] == MAT_FILE_CLASSID);
  PetscFunctionReturn(0);
}

/* Binary files can hold labels that are no numbers */
static PetscErrorCode CheckLabels(const char file[], Vec y)
{
  const PetscScalar *v;
  PetscInt           rs, re, bad, first;

  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(y, &rs, &re));
  PetscCall(VecGetArrayRead(y, &v));
  for (bad = rs; bad < re && !PetscIsInfOrNanScalar(v[bad - rs]); bad++) {
  }
  PetscCall(VecRestoreArrayRead(y, &v));
  if (bad == re) bad = PETSC_MAX_INT;
  PetscCallMPI(MPI_Allreduce(&bad, &first, 1, MPIU_INT, MPI_MIN, PetscObjectComm((PetscObject)y)));
  PetscCheck(first == PETSC_MAX_INT, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: the label of row %" PetscInt_FMT " is not a finite number", file, first);
  PetscFunctionReturn(0);
}

/* A matrix and the labels of its rows */
static PetscErrorCode LoadData(const char file[], Mat *X, Vec *y)
{
  PetscBool binary;
  PetscErrorCode (*load)(Mat, const char *, const void *, Vec *, Vec *, void *) = NULL;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, X));
  PetscCall(MatSetFromOptions(*X));
  PetscCall(PetscDLSym(NULL, "MatGPUCSRLoadFile", (void **)&load));
  if (load) {
    PetscCall((*load)(*X, file, NULL, y, NULL, NULL));
    PetscCheck(*y, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: has no labels", file);
  } else {
    PetscViewer viewer;

    PetscCall(IsBinary(file, &binary));
    PetscCheck(binary, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: is not PETSc binary; -dll_append libpetscgpucsr.so brings what reads text", file);
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(*X, viewer));
    PetscCall(MatCreateVecs(*X, NULL, y));
    PetscCall(VecLoad(*y, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  }
  PetscCall(CheckLabels(file, *y));
  PetscFunctionReturn(0);
}

/* A number from 0 to 1 that depends on i alone: the same rows are chosen on any number of ranks (the finaliser of splitmix64) */
static PetscReal Uniform(PetscInt seed, PetscInt i)
{
  unsigned long long x = ((unsigned long long)seed + 1) * 0x9e3779b97f4a7c15ULL + (unsigned long long)i * 0xd1342543de82ef95ULL; /* 1: mixed, 0 remains 0 */

  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return (PetscReal)((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
}

/* Take a share of the rows of X and y away, into Xv and yv */
static PetscErrorCode SplitData(PetscReal share, PetscInt seed, Mat *X, Vec *y, Mat *Xv, Vec *yv)
{
  Mat      part[2];
  Vec      ypart[2];
  IS       is;
  PetscInt rs, re, *rows;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(*X, &rs, &re));
  for (int validation = 0; validation < 2; validation++) {
    PetscInt n = 0;
    Vec      sub;

    PetscCall(PetscMalloc1(re - rs, &rows));
    for (PetscInt i = rs; i < re; i++)
      if ((Uniform(seed, i) < share) == validation) rows[n++] = i;
    PetscCall(ISCreateGeneral(PetscObjectComm((PetscObject)*X), n, rows, PETSC_OWN_POINTER, &is));
    PetscCall(MatCreateSubMatrix(*X, is, NULL, MAT_INITIAL_MATRIX, &part[validation]));
    PetscCall(MatCreateVecs(part[validation], NULL, &ypart[validation]));
    PetscCall(VecGetSubVector(*y, is, &sub));
    PetscCall(VecCopy(sub, ypart[validation]));
    PetscCall(VecRestoreSubVector(*y, is, &sub));
    PetscCall(ISDestroy(&is));
  }
  PetscCall(MatDestroy(X));
  PetscCall(VecDestroy(y));
  *X  = part[0];
  *y  = ypart[0];
  *Xv = part[1];
  *yv = ypart[1];
  PetscFunctionReturn(0);
}

static int CompareReal(const void *a, const void *b)
{
  const PetscReal x = *(const PetscReal *)a, y = *(const PetscReal *)b;

  return x < y ? -1 : x > y;
}

/* The distinct labels of all ranks, ascending; one more than there is room for when there are too many to be classes */
static PetscErrorCode DistinctLabels(Vec y, PetscReal label[], PetscInt *n)
{
  MPI_Comm           comm = PetscObjectComm((PetscObject)y);
  const PetscScalar *v;
  PetscReal         *all;
  PetscMPIInt        size, *count, *first, mine = 0;
  PetscInt           m;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(VecGetLocalSize(y, &m));
  PetscCall(VecGetArrayRead(y, &v));
  for (PetscInt i = 0; i < m && mine <= MAX_CLASSES; i++) {
    const PetscReal r  = PetscRealPart(v[i]);
    PetscMPIInt     lo = 0, hi = mine;

    while (lo < hi) {
      const PetscMPIInt mid = (lo + hi) / 2;

      if (label[mid] < r) lo = mid + 1;
      else hi = mid;
    }
    if (lo < mine && label[lo] == r) continue;
    if (mine < MAX_CLASSES) {
      memmove(label + lo + 1, label + lo, (size_t)(mine - lo) * sizeof(label[0]));
      label[lo] = r;
    }
    mine++;
  }
  PetscCall(VecRestoreArrayRead(y, &v));
  PetscCall(PetscMalloc2(size, &count, size, &first));
  PetscCallMPI(MPI_Allgather(&mine, 1, MPI_INT, count, 1, MPI_INT, comm));
  *n = 0;
  for (PetscMPIInt r = 0; r < size; r++) {
    first[r] = r ? first[r - 1] + PetscMin(count[r - 1], MAX_CLASSES) : 0;
    if (count[r] > MAX_CLASSES) *n = MAX_CLASSES + 1;
  }
  if (!*n) {
    PetscInt total = first[size - 1] + count[size - 1];

    PetscCall(PetscMalloc1(total, &all));
    PetscCallMPI(MPI_Allgatherv(label, mine, MPIU_REAL, all, count, first, MPIU_REAL, comm));
    qsort(all, (size_t)total, sizeof(all[0]), CompareReal);
    for (PetscInt i = 0; i < total && *n <= MAX_CLASSES; i++) {
      if (*n && all[i] == label[*n - 1]) continue;
      if (*n < MAX_CLASSES) label[*n] = all[i];
      (*n)++;
    }
    PetscCall(PetscFree(all));
  }
  PetscCall(PetscFree2(count, first));
  PetscFunctionReturn(0);
}

/* ---- the risk and its subgradient ---- */

/* A class' weights as a column of a dense matrix that borrows the array of w, k columns */
static PetscErrorCode CreateWeightMatrix(Mat X, PetscInt k, Mat *W)
{
  PetscInt n, N;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(X, NULL, &n));
  PetscCall(MatGetSize(X, NULL, &N));
  PetscCall(MatCreateDense(PetscObjectComm((PetscObject)X), n, PETSC_DECIDE, N, k, NULL, W));
  PetscCall(MatAssemblyBegin(*W, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*W, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(0);
}

/* S = X W for the weights w, a column a class; S is made by the first call */
static PetscErrorCode ScoreMatrix(Mat X, Vec w, Mat W, Mat *S)
{
  const PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayRead(w, &a));
  PetscCall(MatDensePlaceArray(W, a));
  PetscCall(MatMatMult(X, W, *S ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, S));
  PetscCall(MatDenseResetArray(W));
  PetscCall(VecRestoreArrayRead(w, &a));
  PetscFunctionReturn(0);
}

/* A loss of all rows together, on rank 0 */
static PetscErrorCode LossTogether(Learner *l, PetscReal *value)
{
  const PetscScalar *s, *z;
  PetscScalar       *c;
  PetscInt           n;
  PetscMPIInt        rank;
  MPI_Comm           comm = PetscObjectComm((PetscObject)l->s);

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(VecScatterBegin(l->tozero, l->s, l->s0, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(l->tozero, l->s, l->s0, INSERT_VALUES, SCATTER_FORWARD));
  if (!rank) {
    PetscCall(VecGetSize(l->s, &n));
    PetscCall(VecGetArrayRead(l->s0, &s));
    PetscCall(VecGetArrayRead(l->z0, &z));
    PetscCall(VecGetArrayWrite(l->c0, &c));
    PetscCall((*l->loss->together)(n, s, z, c, value));
    PetscCall(VecRestoreArrayWrite(l->c0, &c));
    PetscCall(VecRestoreArrayRead(l->z0, &z));
    PetscCall(VecRestoreArrayRead(l->s0, &s));
  }
  PetscCallMPI(MPI_Bcast(value, 1, MPIU_REAL, 0, comm));
  PetscCall(VecScatterBegin(l->tozero, l->c0, l->c, INSERT_VALUES, SCATTER_REVERSE));
  PetscCall(VecScatterEnd(l->tozero, l->c0, l->c, INSERT_VALUES, SCATTER_REVERSE));
  PetscFunctionReturn(0);
}

/* Sum of the losses of this rank's rows, and their slopes divided by the number of rows; a class after the other where there are several */
static PetscErrorCode LossRows(Learner *l, PetscReal *sum)
{
  const PetscScalar *s, *z;
  PetscScalar       *c;
  PetscInt           m, M, lds, ldc;
  PetscReal          part[MAX_CLASSES];

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(l->y, &m));
  PetscCall(VecGetSize(l->y, &M));
  *sum = 0;
  if (l->k == 1) {
    PetscCall(VecGetArrayRead(l->s, &s));
    PetscCall(VecGetArrayRead(l->z, &z));
    PetscCall(VecGetArrayWrite(l->c, &c));
    *sum = (*l->loss->rows)(m, s, z, l->parameter, 1 / (PetscReal)M, c);
    PetscCall(VecRestoreArrayWrite(l->c, &c));
    PetscCall(VecRestoreArrayRead(l->z, &z));
    PetscCall(VecRestoreArrayRead(l->s, &s));
  } else {
    PetscCall(MatDenseGetLDA(l->S, &lds));
    PetscCall(MatDenseGetLDA(l->C, &ldc));
    PetscCall(MatDenseGetArrayRead(l->S, &s));
    PetscCall(MatDenseGetArrayWrite(l->C, &c));
    /* a class a thread, where the loss would have none for its rows or there are classes for all */
#pragma omp parallel for schedule(dynamic) if ((PetscInt64)m * l->k > 50000 && (m <= 50000 || l->k >= omp_get_max_threads()))
    for (PetscInt k = 0; k < l->k; k++) part[k] = (*l->loss->rows)(m, s + (size_t)k * (size_t)lds, l->sign + (size_t)k * (size_t)m, l->parameter, 1 / (PetscReal)M, c + (size_t)k * (size_t)ldc);
    for (PetscInt k = 0; k < l->k; k++) *sum += part[k];
    PetscCall(MatDenseRestoreArrayWrite(l->C, &c));
    PetscCall(MatDenseRestoreArrayRead(l->S, &s));
  }
  PetscFunctionReturn(0);
}

/* The subgradient of several classes, X^T C, into g */
static PetscErrorCode SubgradientMatrix(Learner *l, Vec g)
{
  const PetscScalar *from;
  PetscScalar       *to;
  PetscInt           n, ld;

  PetscFunctionBeginUser;
  PetscCall(MatTransposeMatMult(l->X, l->C, l->G ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &l->G));
  PetscCall(MatGetLocalSize(l->X, NULL, &n));
  PetscCall(MatDenseGetLDA(l->G, &ld));
  PetscCall(MatDenseGetArrayRead(l->G, &from));
  PetscCall(VecGetArrayWrite(g, &to));
  for (PetscInt k = 0; k < l->k; k++) PetscCall(PetscArraycpy(to + k * n, from + k * ld, n));
  PetscCall(VecRestoreArrayWrite(g, &to));
  PetscCall(MatDenseRestoreArrayRead(l->G, &from));
  PetscFunctionReturn(0);
}

/* What TAO calls: the risk at w, and a subgradient of it */
static PetscErrorCode Risk(Tao tao, Vec w, PetscReal *f, Vec g, void *ctx)
{
  Learner       *l = (Learner *)ctx;
  PetscInt       M;
  PetscReal      value, norm;
  PetscLogDouble t[NTIMES + 1];

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(l->y, &M));
  PetscCall(PetscTime(&t[0]));
  if (l->k == 1) PetscCall(MatMult(l->X, w, l->s));
  else PetscCall(ScoreMatrix(l->X, w, l->W, &l->S));
  PetscCall(PetscTime(&t[1]));
  if (l->loss->together) {
    PetscCall(LossTogether(l, f));
    PetscCall(PetscTime(&t[2]));
    PetscCall(MatMultTranspose(l->X, l->c, g));
  } else {
    if (l->vectors) PetscCall((*l->loss->vectors)(l->s, l->z, l->parameter, 1 / (PetscReal)M, l->zero, l->t, l->c, f));
    else {
      PetscCall(LossRows(l, &value));
      PetscCallMPI(MPI_Allreduce(&value, f, 1, MPIU_REAL, MPIU_SUM, PetscObjectComm((PetscObject)w)));
    }
    *f /= (PetscReal)M;
    PetscCall(PetscTime(&t[2]));
    if (l->k == 1) PetscCall(MatMultTranspose(l->X, l->c, g));
    else PetscCall(SubgradientMatrix(l, g));
  }
  PetscCall(PetscTime(&t[3]));
  for (int part = 0; part < NTIMES; part++) l->seconds[part] += t[part + 1] - t[part];
  l->evaluations++;

  PetscCall(VecNorm(w, NORM_2, &norm));
  value = *f + 0.5 * l->lambda * norm * norm;
  if (l->best && value < l->bestvalue) {
    l->bestvalue = value;
    PetscCall(VecCopy(w, l->best));
  }
  PetscFunctionReturn(0);
}

/* Labels as the loss wants them, and what a weight vector needs */
static PetscErrorCode LearnerSetUp(Learner *l, Mat X, Vec y)
{
  PetscScalar *z;
  PetscInt     m, n;

  PetscFunctionBeginUser;
  l->X = X;
  l->y = y;
  PetscCall(VecGetLocalSize(y, &m));
  PetscCall(MatGetLocalSize(X, NULL, &n));
  if (l->k == 1) {
    PetscCall(MatCreateVecs(X, &l->w, &l->s));
    PetscCall(VecDuplicate(l->s, &l->c));
    PetscCall(VecDuplicate(l->s, &l->z));
    PetscCall(VecCopy(y, l->z));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)l->s, &l->vectors, VECSEQ, VECMPI, ""));
    l->vectors = (PetscBool)(!l->vectors && l->loss->vectors);
    if (l->vectors) {
      PetscCall(VecDuplicate(l->s, &l->zero));
      PetscCall(VecSet(l->zero, 0.0));
      for (int k = 0; k < LOSS_VECTORS; k++) PetscCall(VecDuplicate(l->s, &l->t[k]));
    }
    if (l->nclasses) {
      PetscCall(VecGetArray(l->z, &z));
      for (PetscInt i = 0; i < m; i++) z[i] = PetscRealPart(z[i]) == l->label[1] ? 1 : -1;
      PetscCall(VecRestoreArray(l->z, &z));
    }
  } else {
    const PetscScalar *label;
    PetscInt           M;

    PetscCall(VecGetSize(y, &M));
    PetscCall(PetscMalloc1((size_t)m * (size_t)l->k, &l->sign));
    PetscCall(VecGetArrayRead(y, &label));
    for (PetscInt k = 0; k < l->k; k++)
      for (PetscInt i = 0; i < m; i++) l->sign[(size_t)k * (size_t)m + (size_t)i] = PetscRealPart(label[i]) == l->label[k] ? 1 : -1;
    PetscCall(VecRestoreArrayRead(y, &label));
    PetscCall(VecCreateMPI(PetscObjectComm((PetscObject)X), n * l->k, PETSC_DETERMINE, &l->w));
    PetscCall(CreateWeightMatrix(X, l->k, &l->W));
    PetscCall(MatCreateDense(PetscObjectComm((PetscObject)X), m, PETSC_DECIDE, M, l->k, NULL, &l->C));
    PetscCall(MatAssemblyBegin(l->C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(l->C, MAT_FINAL_ASSEMBLY));
  }
  if (l->loss->together) {
    PetscCall(VecScatterCreateToZero(l->s, &l->tozero, &l->s0));
    PetscCall(VecDuplicate(l->s0, &l->c0));
    PetscCall(VecDuplicate(l->s0, &l->z0));
    PetscCall(VecScatterBegin(l->tozero, l->z, l->z0, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(l->tozero, l->z, l->z0, INSERT_VALUES, SCATTER_FORWARD));
  }
  PetscFunctionReturn(0);
}

static PetscErrorCode LearnerDestroy(Learner *l)
{
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(&l->X));
  PetscCall(MatDestroy(&l->W));
  PetscCall(MatDestroy(&l->S));
  PetscCall(MatDestroy(&l->C));
  PetscCall(MatDestroy(&l->G));
  PetscCall(PetscFree(l->sign));
  PetscCall(VecDestroy(&l->y));
  PetscCall(VecDestroy(&l->s));
  PetscCall(VecDestroy(&l->c));
  PetscCall(VecDestroy(&l->z));
  PetscCall(VecDestroy(&l->zero));
  for (int k = 0; k < LOSS_VECTORS; k++) PetscCall(VecDestroy(&l->t[k]));
  PetscCall(VecDestroy(&l->s0));
  PetscCall(VecDestroy(&l->c0));
  PetscCall(VecDestroy(&l->z0));
  PetscCall(VecDestroy(&l->w));
  PetscCall(VecDestroy(&l->best));
  PetscCall(VecScatterDestroy(&l->tozero));
  PetscFunctionReturn(0);
}

/* ---- quality ---- */

/* Scores of all rows on rank 0, in the order of the rows; a class after the other where there are several */
static PetscErrorCode GatherColumn(Vec v, PetscScalar all[])
{
  VecScatter         tozero;
  Vec                v0;
  PetscInt           n;
  const PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(VecScatterCreateToZero(v, &tozero, &v0));
  PetscCall(VecScatterBegin(tozero, v, v0, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(tozero, v, v0, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecGetLocalSize(v0, &n));
  PetscCall(VecGetArrayRead(v0, &a));
  PetscCall(PetscArraycpy(all, a, n));
  PetscCall(VecRestoreArrayRead(v0, &a));
  PetscCall(VecScatterDestroy(&tozero));
  PetscCall(VecDestroy(&v0));
  PetscFunctionReturn(0);
}

/* Scores of the rows of X on rank 0, M of them for each of the k weight vectors */
static PetscErrorCode GatherScores(Mat X, Vec w, PetscInt k, PetscScalar scores[])
{
  Mat      W, S = NULL;
  Vec      s;
  PetscInt M;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(X, &M, NULL));
  if (k == 1) {
    PetscCall(MatCreateVecs(X, NULL, &s));
    PetscCall(MatMult(X, w, s));
    PetscCall(GatherColumn(s, scores));
    PetscCall(VecDestroy(&s));
  } else {
    PetscCall(CreateWeightMatrix(X, k, &W));
    PetscCall(ScoreMatrix(X, w, W, &S));
    for (PetscInt j = 0; j < k; j++) {
      PetscCall(MatDenseGetColumnVecRead(S, j, &s));
      PetscCall(GatherColumn(s, scores + j * M));
      PetscCall(MatDenseRestoreColumnVecRead(S, j, &s));
    }
    PetscCall(MatDestroy(&S));
    PetscCall(MatDestroy(&W));
  }
  PetscFunctionReturn(0);
}

typedef struct {
  PetscReal accuracy, area; /* classes: share of rows that are right; area under the ROC curve, -1 where there is none */
  PetscReal rms, absolute;  /* targets: errors */
} Quality;

/* Say how well w does on X and y; with a name, write the predictions, a line a row */
static PetscErrorCode Judge(const Learner *l, Mat X, Vec y, Vec w, const char what[], const char predictions[], Quality *q)
{
  PetscScalar *score, *label;
  PetscInt     M;
  PetscMPIInt  rank;
  FILE        *fp   = NULL;
  MPI_Comm     comm = PetscObjectComm((PetscObject)X);

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(MatGetSize(X, &M, NULL));
  PetscCall(PetscCalloc2(rank ? 0 : (size_t)M * (size_t)l->k, &score, rank ? 0 : M, &label));
  PetscCall(GatherScores(X, w, l->k, score));
  PetscCall(GatherColumn(y, label));
  PetscCall(PetscMemzero(q, sizeof(*q)));
  q->area = -1;
  if (!rank) {
    if (predictions[0]) {
      fp = fopen(predictions, "w");
      PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be written", predictions);
    }
    for (PetscInt i = 0; i < M * l->k; i++) PetscCheck(!PetscIsInfOrNanScalar(score[i]), PETSC_COMM_SELF, PETSC_ERR_FP, "Row %" PetscInt_FMT " of those for %s has no finite score: its values are not finite, or too large", i % M, what);
    for (PetscInt i = 0; i < M; i++) {
      PetscReal guess = PetscRealPart(score[i]);

      if (l->nclasses) {
        PetscInt best = l->k == 1 && guess > 0 ? 1 : 0;

        for (PetscInt j = 1; j < l->k; j++)
          if (PetscRealPart(score[i + j * M]) > PetscRealPart(score[i + best * M])) best = j;
        guess = l->label[best];
        q->accuracy += guess == PetscRealPart(label[i]);
      } else {
        q->absolute += PetscAbsReal(guess - PetscRealPart(label[i]));
        q->rms += PetscSqr(guess - PetscRealPart(label[i]));
      }
      if (fp) fprintf(fp, "%.17g\n", (double)guess);
    }
    PetscCheck(!fp || !fclose(fp), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s: cannot be written", predictions);
    q->accuracy /= PetscMax(M, 1);
    q->absolute /= PetscMax(M, 1);
    q->rms = PetscSqrtReal(q->rms / PetscMax(M, 1));
    if (l->nclasses == 2) {
      for (PetscInt i = 0; i < M; i++) label[i] = PetscRealPart(label[i]) == l->label[1] ? 1 : -1;
      PetscCall(ROCArea(M, score, label, &q->area));
    }
  }
  PetscCall(PetscFree2(score, label));
  if (!M) PetscCall(PetscPrintf(comm, "%-10s no rows\n", what));
  else if (!l->nclasses) PetscCall(PetscPrintf(comm, "%-10s error %.3g root mean square, %.3g mean absolute\n", what, (double)q->rms, (double)q->absolute));
  else if (l->nclasses == 2) PetscCall(PetscPrintf(comm, "%-10s accuracy %.2f %%, area under the ROC curve %.2f\n", what, (double)(100 * q->accuracy), (double)q->area));
  else PetscCall(PetscPrintf(comm, "%-10s accuracy %.2f %%\n", what, (double)(100 * q->accuracy)));
  PetscFunctionReturn(0);
}

/* ---- subgradients, checked ---- */

/*
  At random weights: the derivative along a random direction, by central differences, against the subgradient; and f(v) >= f(w) + <g, v - w>, which
  holds for a subgradient of a convex function, differentiable or not. Differences of a loss with kinks are off by the rows that have one between the
  two points, so their distance is small and the bound is wider.
*/
static PetscErrorCode Check(Learner *l, PetscInt seed)
{
  Vec             w, v, d, g;
  PetscReal       f, fplus, fminus, slope, bound, error = 0, below = 0;
  PetscScalar     gd;
  PetscRandom     random;
  const PetscReal h = 1e-6;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(l->w, &w));
  PetscCall(VecDuplicate(l->w, &v));
  PetscCall(VecDuplicate(l->w, &d));
  PetscCall(VecDuplicate(l->w, &g));
  PetscCall(PetscRandomCreate(PetscObjectComm((PetscObject)w), &random));
  PetscCall(PetscRandomSetInterval(random, -1.0, 1.0));
  PetscCall(PetscRandomSetSeed(random, (unsigned long)seed));
  PetscCall(PetscRandomSeed(random));
  for (int trial = 0; trial < 5; trial++) {
    PetscCall(VecSetRandom(w, random));
    PetscCall(VecSetRandom(d, random));
    PetscCall(VecWAXPY(v, h, d, w));
    PetscCall(Risk(NULL, v, &fplus, g, l));
    PetscCall(VecWAXPY(v, -h, d, w));
    PetscCall(Risk(NULL, v, &fminus, g, l));
    PetscCall(Risk(NULL, w, &f, g, l));
    PetscCall(VecDot(d, g, &gd));
    slope = (fplus - fminus) / (2 * h);
    error = PetscMax(error, PetscAbsReal(slope - PetscRealPart(gd)) / (PetscAbsReal(slope) + 1));
    PetscCall(VecWAXPY(v, 1.0, d, w));
    {
      Vec unused;

      PetscCall(VecDuplicate(g, &unused));
      PetscCall(Risk(NULL, v, &fplus, unused, l));
      PetscCall(VecDestroy(&unused));
    }
    below = PetscMax(below, (f + PetscRealPart(gd) - fplus) / (PetscAbsReal(f) + 1));
  }
  bound = l->loss->smooth ? 1e-7 : 1e-3;
  PetscCheck(error <= bound, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Loss %s: the subgradient differs from finite differences by %g of them, %g is allowed", l->loss->name, (double)error, (double)bound);
  PetscCheck(below <= 1e-12, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Loss %s: the plane of the subgradient lies above the loss by %g", l->loss->name, (double)below);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "check      loss %s: finite differences agree within %g, its planes lie below it\n", l->loss->name, (double)bound));
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&d));
  PetscCall(VecDestroy(&g));
  PetscFunctionReturn(0);
}

/* ---- models ---- */

/* The weights of class j, in the order of the columns of X */
static PetscErrorCode ClassWeights(Mat X, Vec w, PetscInt j, PetscBool fromw, Vec part)
{
  PetscInt     n;
  PetscScalar *a, *p;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(X, NULL, &n));
  PetscCall(VecGetArray(w, &a));
  PetscCall(VecGetArray(part, &p));
  if (fromw) PetscCall(PetscArraycpy(p, a + j * n, n));
  else PetscCall(PetscArraycpy(a + j * n, p, n));
  PetscCall(VecRestoreArray(part, &p));
  PetscCall(VecRestoreArray(w, &a));
  PetscFunctionReturn(0);
}

/* A model file is PETSc binary: a vector with the number of the loss in losses[], its parameter, lambda, and the labels; then weight vectors */
static PetscErrorCode SaveModel(const Learner *l, const char file[])
{
  PetscViewer    viewer;
  Vec            head, part;
  const PetscInt n = 3 + l->nclasses;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerCreate(PETSC_COMM_WORLD, &viewer));
  PetscCall(PetscViewerSetType(viewer, PETSCVIEWERBINARY));
  PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
  PetscCall(PetscViewerFileSetMode(viewer, FILE_MODE_WRITE));
  PetscCall(PetscViewerFileSetName(viewer, file));
  PetscCall(VecCreateMPI(PETSC_COMM_WORLD, PETSC_DECIDE, n, &head));
  for (PetscInt i = 0; i < n; i++) {
    const PetscReal v = i == 0 ? (PetscReal)(l->loss - losses) : (i == 1 ? l->parameter : (i == 2 ? l->lambda : l->label[i - 3]));

    PetscCall(VecSetValue(head, i, v, INSERT_VALUES)); /* by all ranks, the same */
  }
  PetscCall(VecAssemblyBegin(head));
  PetscCall(VecAssemblyEnd(head));
  PetscCall(VecView(head, viewer));
  PetscCall(VecDestroy(&head));
  PetscCall(MatCreateVecs(l->X, &part, NULL));
  for (PetscInt j = 0; j < l->k; j++) {
    PetscCall(ClassWeights(l->X, l->w, j, PETSC_TRUE, part));
    PetscCall(VecView(part, viewer));
  }
  PetscCall(VecDestroy(&part));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(0);
}

/* Rows may have other columns than those that were learned from: say so */
static PetscErrorCode MatchColumns(PetscInt weights, PetscInt columns, const char file[])
{
  PetscFunctionBeginUser;
  if (columns > weights) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "columns    %s has %" PetscInt_FMT ", the model %" PetscInt_FMT ": those beyond are left out\n", file, columns, weights));
  if (columns < weights) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "columns    %s has %" PetscInt_FMT ", the model %" PetscInt_FMT ": those missing count as zero\n", file, columns, weights));
  PetscFunctionReturn(0);
}

/* Everything of l that learning would have found. Columns that the model or the data lacks count as zero. */
static PetscErrorCode LoadModel(Learner *l, Mat X, Vec y, const char data[], const char file[])
{
  PetscViewer        viewer;
  Vec                head, part, mine, model;
  VecScatter         toall;
  IS                 is;
  PetscInt           n, N;
  const PetscScalar *h;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &head));
  PetscCall(VecLoad(head, viewer));
  PetscCall(VecScatterCreateToAll(head, &toall, &part));
  PetscCall(VecScatterBegin(toall, head, part, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(toall, head, part, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecGetSize(head, &n));
  PetscCall(VecGetArrayRead(part, &h));
  l->nclasses = n - 3;
  PetscCheck(n >= 3 && l->nclasses <= MAX_CLASSES && PetscRealPart(h[0]) >= 0 && PetscRealPart(h[0]) < PETSC_STATIC_ARRAY_LENGTH(losses), PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: is no model of this program", file);
  l->loss = &losses[(int)PetscRealPart(h[0])];
  PetscCheck(l->loss->labels == LABELS_TARGETS ? !l->nclasses : l->nclasses == 2 || (l->nclasses > 2 && l->loss->rows), PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: is no model of this program: loss %s of %" PetscInt_FMT " classes", file,
             l->loss->name, l->nclasses);
  for (PetscInt j = 3; j < n; j++)
    PetscCheck(!PetscIsInfOrNanScalar(h[j]) && (j == 3 || PetscRealPart(h[j]) > PetscRealPart(h[j - 1])), PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: is no model of this program: its labels do not increase", file);
  l->parameter = PetscRealPart(h[1]);
  l->lambda    = PetscRealPart(h[2]);
  for (PetscInt j = 0; j < l->nclasses; j++) l->label[j] = PetscRealPart(h[3 + j]);
  l->k = l->nclasses > 2 ? l->nclasses : 1;
  PetscCall(VecRestoreArrayRead(part, &h));
  PetscCall(VecScatterDestroy(&toall));
  PetscCall(VecDestroy(&part));
  PetscCall(VecDestroy(&head));

  PetscCall(LearnerSetUp(l, X, y));
  PetscCall(MatCreateVecs(X, &mine, NULL));
  PetscCall(VecGetSize(mine, &N));
  for (PetscInt j = 0; j < l->k; j++) {
    VecScatter scatter;
    PetscInt   rs, re;
    PetscReal  size;

    PetscCall(VecCreate(PETSC_COMM_WORLD, &model));
    PetscCall(VecLoad(model, viewer));
    PetscCall(VecGetSize(model, &n));
    PetscCall(VecNorm(model, NORM_1, &size));
    PetscCheck(!PetscIsInfOrNanReal(size), PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: is no model of this program: weights that are not finite", file);
    if (!j) PetscCall(MatchColumns(n, N, data));
    PetscCall(VecGetOwnershipRange(mine, &rs, &re));
    re = PetscMax(PetscMin(re, n), rs);
    PetscCall(ISCreateStride(PETSC_COMM_WORLD, re - rs, rs, 1, &is));
    PetscCall(VecScatterCreate(model, is, mine, is, &scatter));
    PetscCall(VecSet(mine, 0.0));
    PetscCall(VecScatterBegin(scatter, model, mine, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(scatter, model, mine, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(ClassWeights(X, l->w, j, PETSC_FALSE, mine));
    PetscCall(VecScatterDestroy(&scatter));
    PetscCall(ISDestroy(&is));
    PetscCall(VecDestroy(&model));
  }
  PetscCall(VecDestroy(&mine));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(0);
}

/* ---- set-up ---- */

/* A product of one entry: what a type does once in a process, such as starting a device, is not counted with the data */
static PetscErrorCode StartType(void)
{
  Mat         A;
  Vec         x, y;
  PetscMPIInt size, rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 1, 1, size, size));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(MatSetValue(A, rank, rank, 1.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(0);
}

/*
  The first products, at zero: with them a type converts the matrix, sends it, and makes its transpose. Zero times a value that is not finite is not a number, so
  that the subgradient shows whether there is one, whatever the loss
*/
static PetscErrorCode FirstProducts(Learner *l, const char file[])
{
  Vec       g;
  PetscReal f, size;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(l->w, &g));
  PetscCall(VecSet(l->w, 0.0));
  PetscCall(Risk(NULL, l->w, &f, g, l));
  PetscCall(VecNorm(g, NORM_1, &size));
  PetscCheck(!PetscIsInfOrNanReal(f) && !PetscIsInfOrNanReal(size), PETSC_COMM_WORLD, PETSC_ERR_FP, "%s: the risk or its subgradient at zero is not finite: a value in the file is not, or is too large", file);
  PetscCall(VecDestroy(&g));
  PetscCall(PetscMemzero(l->seconds, sizeof(l->seconds)));
  l->evaluations = 0;
  PetscFunctionReturn(0);
}

/* ---- the program ---- */

typedef struct {
  char      file[PETSC_MAX_PATH_LEN], validation[PETSC_MAX_PATH_LEN], model[PETSC_MAX_PATH_LEN], modelout[PETSC_MAX_PATH_LEN], predictions[PETSC_MAX_PATH_LEN], json[PETSC_MAX_PATH_LEN];
  PetscReal share, epsilon;
  PetscInt  seed;
  PetscBool check, times;
} Settings;

static PetscErrorCode GetSettings(Settings *o, Learner *l)
{
  const char *names[PETSC_STATIC_ARRAY_LENGTH(losses)];
  PetscInt    which = 0;
  PetscBool   hasfile;
  char        text[64];

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(o, sizeof(*o)));
  o->epsilon = 1e-4;
  l->lambda  = 1e-5;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(losses); i++) names[i] = losses[i].name;
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of bmrm", NULL);
  PetscCall(PetscOptionsString("-f", "file of the rows and their labels", "bmrm.c", o->file, o->file, sizeof(o->file), &hasfile));
  PetscCall(PetscOptionsEList("-loss", "loss", "bmrm.c", names, PETSC_STATIC_ARRAY_LENGTH(losses), names[0], &which, NULL));
  l->loss      = &losses[which];
  l->parameter = l->loss->usual;
  if (l->loss->option) PetscCall(PetscOptionsReal(l->loss->option, "parameter of the loss", "bmrm.c", l->parameter, &l->parameter, NULL));
  PetscCheck(l->loss->rows != QuantileRows || (l->parameter > 0 && l->parameter < 1), PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-quantile lies between 0 and 1, not at %g", (double)l->parameter);
  PetscCheck(l->loss->rows != InsensitiveRows || l->parameter >= 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-insensitive is a distance, 0 or more, not %g", (double)l->parameter);
  PetscCall(PetscOptionsReal("-lambda", "weight of |w|^2/2", "bmrm.c", l->lambda, &l->lambda, NULL));
  PetscCall(PetscOptionsReal("-epsilon", "gap between the best value and the lower bound at which to stop", "bmrm.c", o->epsilon, &o->epsilon, NULL));
  PetscCall(PetscOptionsReal("-validation", "share of the rows that is kept from learning, to judge by", "bmrm.c", o->share, &o->share, NULL));
  PetscCall(PetscOptionsString("-validation_file", "rows to judge by", "bmrm.c", o->validation, o->validation, sizeof(o->validation), NULL));
  PetscCall(PetscOptionsInt("-seed", "for another choice of the rows to judge by", "bmrm.c", o->seed, &o->seed, NULL));
  PetscCall(PetscOptionsString("-model", "apply this model, learn nothing", "bmrm.c", o->model, o->model, sizeof(o->model), NULL));
  PetscCall(PetscOptionsString("-model_out", "file to write the model to", "bmrm.c", o->modelout, o->modelout, sizeof(o->modelout), NULL));
  PetscCall(PetscOptionsString("-predictions", "file to write predictions to, of the rows learned from or applied to", "bmrm.c", o->predictions, o->predictions, sizeof(o->predictions), NULL));
  PetscCall(PetscOptionsBool("-check", "check the subgradient, learn nothing", "bmrm.c", o->check, &o->check, NULL));
  PetscCall(PetscOptionsBool("-times", "print iterations and times", "bmrm.c", o->times, &o->times, NULL));
  PetscCall(PetscOptionsString("-json", "append a line with iterations, times and quality to this file", "bmrm.c", o->json, o->json, sizeof(o->json), NULL));
  PetscOptionsEnd();
  PetscCheck(!PetscDefined(USE_COMPLEX), PETSC_COMM_WORLD, PETSC_ERR_SUP, "Risks are real: this needs a PETSc of real numbers");
  PetscCheck(hasfile && o->file[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "No data to learn from: give -f FILE");
  PetscCheck(l->lambda > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-lambda has to be positive, not %g", (double)l->lambda);
  PetscCheck(o->epsilon > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-epsilon has to be positive, not %g", (double)o->epsilon);
  PetscCheck(o->share >= 0 && o->share < 1, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-validation is a share of the rows, from 0 to less than 1, not %g", (double)o->share);
  PetscCall(PetscSNPrintf(text, sizeof(text), "%.17g", (double)l->lambda));
  PetscCall(PetscOptionsSetValue(NULL, "-tao_bmrm_lambda", text)); /* TAO has no function for it */
  PetscFunctionReturn(0);
}

/* What the labels in y mean for the loss */
static PetscErrorCode GetClasses(Learner *l, Vec y, const char file[])
{
  PetscFunctionBeginUser;
  l->k        = 1;
  l->nclasses = 0;
  if (l->loss->labels == LABELS_TARGETS) PetscFunctionReturn(0);
  PetscCall(DistinctLabels(y, l->label, &l->nclasses));
  PetscCheck(l->nclasses >= 2, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: all rows have the same label, there is nothing to tell apart", file);
  PetscCheck(l->nclasses <= MAX_CLASSES, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: has more than %d different labels; -loss %s is for classes, least_squares, absolute, insensitive and quantile are for numbers", file, MAX_CLASSES, l->loss->name);
  PetscCheck(l->nclasses == 2 || l->loss->rows, PETSC_COMM_WORLD, PETSC_ERR_SUP, "%s: has %" PetscInt_FMT " classes, -loss %s is for two", file, l->nclasses, l->loss->name);
  if (l->nclasses > 2) l->k = l->nclasses;
  PetscFunctionReturn(0);
}

/* The rows to learn from, when others were taken away: some must be left, and of both classes for a loss that compares them */
static PetscErrorCode CheckRows(const Learner *l, Vec y, const char file[])
{
  const PetscScalar *v;
  PetscInt           m, M;
  PetscInt64         count[2] = {0, 0};

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(y, &M));
  PetscCheck(M > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: there is no row to learn from", file);
  if (!l->loss->together) PetscFunctionReturn(0);
  PetscCall(VecGetLocalSize(y, &m));
  PetscCall(VecGetArrayRead(y, &v));
  for (PetscInt i = 0; i < m; i++) count[PetscRealPart(v[i]) == l->label[1]]++;
  PetscCall(VecRestoreArrayRead(y, &v));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, count, 2, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
  PetscCheck(count[0] && count[1], PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: all rows to learn from have the label %g; -loss %s compares two classes: choose others by -validation or -seed", file, (double)l->label[count[1] > 0], l->loss->name);
  PetscFunctionReturn(0);
}

/* Labels of other rows than were learned from: two classes may have other names there, such as 0 and 1 for -1 and 1; then the greater is still the positive one */
static PetscErrorCode MatchLabels(const Learner *l, Vec y, const char file[])
{
  PetscReal    label[MAX_CLASSES];
  PetscInt     n       = 0, m;
  PetscInt64   unknown = 0;
  PetscScalar *v;

  PetscFunctionBeginUser;
  if (!l->nclasses) PetscFunctionReturn(0);
  PetscCall(DistinctLabels(y, label, &n));
  PetscCall(VecGetLocalSize(y, &m));
  PetscCall(VecGetArray(y, &v));
  if (l->nclasses == 2 && n == 2 && (label[0] != l->label[0] || label[1] != l->label[1]) && label[0] != l->label[1] && label[1] != l->label[0]) {
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "labels     %g and %g of %s are taken for %g and %g\n", (double)label[0], (double)label[1], file, (double)l->label[0], (double)l->label[1]));
    for (PetscInt i = 0; i < m; i++) v[i] = PetscRealPart(v[i]) == label[1] ? l->label[1] : l->label[0];
  }
  for (PetscInt i = 0; i < m; i++) {
    const PetscReal r = PetscRealPart(v[i]);

    unknown += !bsearch(&r, l->label, (size_t)l->nclasses, sizeof(r), CompareReal);
  }
  PetscCall(VecRestoreArray(y, &v));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &unknown, 1, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
  if (unknown) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "labels     %" PetscInt64_FMT " rows of %s have labels that the model does not know: wrong, whatever is predicted\n", unknown, file));
  PetscFunctionReturn(0);
}

/* The columns that a model learned on X has: those of Xv beyond are left out, those that it lacks are empty */
static PetscErrorCode JudgeFile(Learner *l, const char file[], Quality *q)
{
  Mat      X;
  Vec      y, w, wj, vj;
  IS       is;
  PetscInt n, N, rs, re;

  PetscFunctionBeginUser;
  PetscCall(LoadData(file, &X, &y));
  PetscCall(MatchLabels(l, y, file));
  PetscCall(MatGetSize(l->X, NULL, &N));
  PetscCall(MatCreateVecs(X, &vj, NULL));
  PetscCall(VecGetSize(vj, &n));
  PetscCall(MatchColumns(N, n, file));
  PetscCall(MatGetLocalSize(X, NULL, &n));
  PetscCall(MatCreateVecs(l->X, &wj, NULL));
  PetscCall(VecCreateMPI(PETSC_COMM_WORLD, n * l->k, PETSC_DETERMINE, &w));
  PetscCall(VecGetOwnershipRange(vj, &rs, &re));
  re = PetscMax(PetscMin(re, N), rs);
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, re - rs, rs, 1, &is));
  for (PetscInt j = 0; j < l->k; j++) {
    VecScatter scatter;

    PetscCall(ClassWeights(l->X, l->w, j, PETSC_TRUE, wj));
    PetscCall(VecSet(vj, 0.0));
    PetscCall(VecScatterCreate(wj, is, vj, is, &scatter));
    PetscCall(VecScatterBegin(scatter, wj, vj, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(scatter, wj, vj, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterDestroy(&scatter));
    PetscCall(ClassWeights(X, w, j, PETSC_FALSE, vj));
  }
  PetscCall(Judge(l, X, y, w, "validation", "", q));
  PetscCall(ISDestroy(&is));
  PetscCall(VecDestroy(&vj));
  PetscCall(VecDestroy(&wj));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(0);
}

/* That files can be opened later is found out now, and not when all has been learned */
static PetscErrorCode CheckFiles(const Settings *o)
{
  const char *const out[] = {o->modelout, o->predictions, o->json}, *const in[] = {o->validation, o->model};
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank) PetscFunctionReturn(0);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(out); k++) {
    FILE *fp = out[k][0] ? fopen(out[k], "a") : NULL;

    PetscCheck(!out[k][0] || (fp && !fclose(fp)), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be written", out[k]);
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(in); k++) {
    FILE *fp = in[k][0] ? fopen(in[k], "rb") : NULL;

    PetscCheck(!in[k][0] || (fp && !fclose(fp)), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be read", in[k]);
  }
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  Learner            l;
  Settings           o;
  Tao                tao;
  Mat                X, Xv = NULL;
  Vec                y, yv = NULL;
  MatInfo            info;
  MatType            type;
  TaoType            solver;
  PetscInt           M, N, its = 0;
  PetscReal          gap = 0, risk = 0;
  PetscMPIInt        rank, size;
  TaoConvergedReason reason;
  Quality            training, validation = {-1, -1, -1, -1};
  PetscLogDouble     t[7];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscMemzero(&l, sizeof(l)));
  PetscCall(GetSettings(&o, &l));
  PetscCall(CheckFiles(&o));

  PetscCall(PetscTime(&t[0]));
  PetscCall(StartType());
  PetscCall(PetscTime(&t[1]));
  PetscCall(LoadData(o.file, &X, &y));
  PetscCall(PetscTime(&t[2]));
  PetscCall(MatGetSize(X, &M, &N));
  PetscCall(MatGetInfo(X, MAT_GLOBAL_SUM, &info));
  PetscCall(MatGetType(X, &type));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "data       %" PetscInt_FMT " rows, %" PetscInt_FMT " columns, %.0f nonzeros\n", M, N, info.nz_used));

  if (o.model[0]) {
    PetscCall(LoadModel(&l, X, y, o.file, o.model));
    PetscCall(MatchLabels(&l, y, o.file));
    PetscCall(Judge(&l, X, y, l.w, "data", o.predictions, &training));
    PetscCall(LearnerDestroy(&l));
    PetscCall(PetscFinalize());
    return 0;
  }

  PetscCall(GetClasses(&l, y, o.file));
  if (o.share > 0) PetscCall(SplitData(o.share, o.seed, &X, &y, &Xv, &yv));
  PetscCall(CheckRows(&l, y, o.file));
  PetscCall(LearnerSetUp(&l, X, y));
  if (l.nclasses) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "problem    loss %s, lambda %g, %" PetscInt_FMT " classes\n", l.loss->name, (double)l.lambda, l.nclasses));
  else PetscCall(PetscPrintf(PETSC_COMM_WORLD, "problem    loss %s, lambda %g\n", l.loss->name, (double)l.lambda));
  if (o.check) {
    PetscCall(Check(&l, o.seed));
    PetscCall(LearnerDestroy(&l));
    PetscCall(PetscFinalize());
    return 0;
  }

  PetscCall(PetscTime(&t[3]));
  PetscCall(FirstProducts(&l, o.file));
  PetscCall(PetscTime(&t[4]));
  PetscCall(TaoCreate(PETSC_COMM_WORLD, &tao));
  PetscCall(TaoSetType(tao, TAOBMRM));
  PetscCall(TaoSetObjectiveAndGradient(tao, NULL, Risk, &l));
  PetscCall(TaoSetTolerances(tao, o.epsilon, 0.0, 0.0));
  PetscCall(TaoSetMaximumFunctionEvaluations(tao, PETSC_MAX_INT)); /* one an iteration: -tao_max_it says how many, not TAO's limit of 4000 */
  PetscCall(TaoSetFromOptions(tao));
  PetscCall(VecSet(l.w, 0.0));
  PetscCall(VecDuplicate(l.w, &l.best));
  l.bestvalue = PETSC_MAX_REAL;
  PetscCall(TaoSetSolution(tao, l.w));
  PetscCall(PetscTime(&t[5]));
  PetscCall(TaoSolve(tao));
  PetscCall(PetscTime(&t[6]));
  PetscCall(TaoGetType(tao, &solver));
  PetscCall(TaoGetSolutionStatus(tao, &its, NULL, &gap, NULL, NULL, &reason));
  PetscCall(VecCopy(l.best, l.w));
  PetscCall(VecNorm(l.w, NORM_2, &risk));
  risk = l.bestvalue - 0.5 * l.lambda * risk * risk;

  if (o.modelout[0]) PetscCall(SaveModel(&l, o.modelout)); /* first of all: what comes may fail */

  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "outcome    %s\n", TaoConvergedReasons[reason]));
  if (reason < 0) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "warning    not converged: after %" PetscInt_FMT " iterations the gap is %.3g, not the %g of -epsilon; -tao_max_it allows more\n", its, (double)gap, (double)o.epsilon));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "objective  %.4g, of which the risk is %.4g\n", (double)l.bestvalue, (double)risk));
  PetscCall(Judge(&l, l.X, l.y, l.w, "training", o.predictions, &training));
  if (Xv) PetscCall(Judge(&l, Xv, yv, l.w, "validation", "", &validation));
  if (o.validation[0]) PetscCall(JudgeFile(&l, o.validation, &validation));
  if (o.times) {
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "iterations %" PetscInt_FMT ", gap %.3g\n", its, (double)gap));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "seconds    start %.4f, load %.4f, set-up %.4f, learn %.4f: scores %.4f, losses %.4f, subgradients %.4f, optimiser %.4f\n", t[1] - t[0], t[2] - t[1], t[4] - t[3], t[6] - t[5], l.seconds[TIME_SCORES], l.seconds[TIME_LOSS], l.seconds[TIME_SUBGRADIENT], t[6] - t[5] - l.seconds[TIME_SCORES] - l.seconds[TIME_LOSS] - l.seconds[TIME_SUBGRADIENT]));
  }
  if (o.json[0] && !rank) {
    FILE *fp = fopen(o.json, "a");

    PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be written", o.json);
    fprintf(fp, "{\"file\": \"%s\", \"rows\": %ld, \"columns\": %ld, \"nonzeros\": %.0f, \"mat_type\": \"%s\", \"tao_type\": \"%s\", \"ranks\": %d, \"loss\": \"%s\", \"lambda\": %g, \"epsilon\": %g, ", o.file, (long)M, (long)N, info.nz_used, type, solver, (int)size,
            l.loss->name, (double)l.lambda, (double)o.epsilon);
    fprintf(fp, "\"reason\": \"%s\", \"iterations\": %ld, \"evaluations\": %ld, \"gap\": %.17g, \"objective\": %.17g, \"risk\": %.17g, \"accuracy\": %.17g, \"area\": %.17g, \"rms\": %.17g, \"validation_accuracy\": %.17g, ", TaoConvergedReasons[reason], (long)its,
            (long)l.evaluations, (double)gap, (double)l.bestvalue, (double)risk, (double)training.accuracy, (double)training.area, (double)training.rms, (double)validation.accuracy);
    fprintf(fp, "\"start\": %.6f, \"load\": %.6f, \"setup\": %.6f, \"learn\": %.6f, \"scores\": %.6f, \"losses\": %.6f, \"subgradients\": %.6f}\n", t[1] - t[0], t[2] - t[1], t[4] - t[3], t[6] - t[5], l.seconds[TIME_SCORES], l.seconds[TIME_LOSS], l.seconds[TIME_SUBGRADIENT]);
    PetscCheck(!fclose(fp), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s: cannot be written", o.json);
  }

  PetscCall(TaoDestroy(&tao));
  PetscCall(MatDestroy(&Xv));
  PetscCall(VecDestroy(&yv));
  PetscCall(LearnerDestroy(&l));
  PetscCall(PetscFinalize());
  return 0;
}
