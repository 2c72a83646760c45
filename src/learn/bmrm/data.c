/*
  The data: a matrix with one row per example, labels, weights, queries.

  PETSc reads its binary format: a matrix, then a vector of labels. If a loaded library composes a function that reads files, this function is called. It also reads LIBSVM text and Matrix Market files.
*/
#include "learn.h"
#include "../../ksp/examples/loadmat.h"
#include <petscgpucsr.h> /* only for a struct: functions of the library are found by name */

/* A binary file can hold labels that are NaN or infinite */
static PetscErrorCode CheckLabels(const char file[], const char what[], Vec y)
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
  PetscCheck(first == PETSC_MAX_INT, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: the %s of row %" PetscInt_FMT " is not a finite number", file, what, first);
  PetscFunctionReturn(0);
}

/* Reads a text file with one number for each row of X */
static PetscErrorCode LoadNumbers(const char file[], const char what[], Mat X, Vec *v)
{
  PetscInt     m, M, rs, n = 0;
  PetscScalar *a;
  char         word[64];
  FILE        *fp = fopen(file, "r"); /* on every rank */

  PetscFunctionBeginUser;
  PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be read", file);
  PetscCall(MatCreateVecs(X, NULL, v));
  PetscCall(MatGetSize(X, &M, NULL));
  PetscCall(MatGetLocalSize(X, &m, NULL));
  PetscCall(MatGetOwnershipRange(X, &rs, NULL));
  PetscCall(VecGetArrayWrite(*v, &a));
  while (fscanf(fp, "%63s", word) == 1) {
    char        *end;
    const double value = strtod(word, &end);

    PetscCheck(end != word && !*end && n < M, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: number %" PetscInt_FMT " is '%s', wanted is a %s for each of %" PetscInt_FMT " rows", file, n + 1, word, what, M);
    if (n >= rs && n < rs + m) a[n - rs] = value;
    n++;
  }
  fclose(fp);
  PetscCall(VecRestoreArrayWrite(*v, &a));
  PetscCheck(n == M, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " numbers, wanted is a %s for each of %" PetscInt_FMT " rows", file, n, what, M);
  PetscCall(CheckLabels(file, what, *v));
  PetscFunctionReturn(0);
}

/* Appends a column whose entries are all `bias` */
static PetscErrorCode AppendColumn(Mat *X, PetscReal bias)
{
  Mat         B;
  MatType     type;
  PetscInt    M, N, m, n, k, rs, re, *length[2];
  PetscMPIInt size, rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatGetSize(*X, &M, &N));
  PetscCall(MatGetLocalSize(*X, &m, &n));
  PetscCall(MatGetOwnershipRange(*X, &rs, &re));
  k = n + (rank == size - 1); /* columns of the diagonal block */
  PetscCall(PetscMalloc2(m, &length[0], m, &length[1]));
  for (PetscInt i = rs; i < re; i++) {
    PetscInt nz;

    PetscCall(MatGetRow(*X, i, &nz, NULL, NULL));
    length[0][i - rs] = PetscMin(nz + 1, k);
    length[1][i - rs] = PetscMin(nz + 1, N + 1 - k);
    PetscCall(MatRestoreRow(*X, i, &nz, NULL, NULL));
  }
  PetscCall(MatCreate(PETSC_COMM_WORLD, &B));
  PetscCall(MatGetType(*X, &type));
  PetscCall(MatSetSizes(B, m, k, M, N + 1));
  PetscCall(MatSetType(B, type));
  PetscCall(MatSetFromOptions(B));
  PetscCall(MatSeqAIJSetPreallocation(B, 0, length[0]));
  PetscCall(MatMPIAIJSetPreallocation(B, 0, length[0], 0, length[1]));
  PetscCall(MatSetOption(B, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatSetUp(B));
  for (PetscInt i = rs; i < re; i++) {
    const PetscInt    *j;
    const PetscScalar *v;
    const PetscScalar  b = bias;
    PetscInt           nz;

    PetscCall(MatGetRow(*X, i, &nz, &j, &v));
    PetscCall(MatSetValues(B, 1, &i, nz, j, v, INSERT_VALUES));
    PetscCall(MatRestoreRow(*X, i, &nz, &j, &v));
    PetscCall(MatSetValues(B, 1, &i, 1, &N, &b, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscFree2(length[0], length[1]));
  PetscCall(MatDestroy(X));
  *X = B;
  PetscFunctionReturn(0);
}

/*
  Loads a matrix, and the labels, weights and queries of its rows from the same file or from separate ones. base: the index of the first column of the model, or -1 to take the
  file's. The model's, if any, must agree with the file's
*/
PetscErrorCode DataLoad(const char file[], const char labels[], const char weights[], PetscReal bias, PetscInt base, Data *data)
{
  MatGPUCSRFileInfo info = {0};
  PetscBool         given;
  char              text[8];

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(data, sizeof(*data)));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &data->X));
  PetscCall(MatSetFromOptions(data->X));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-gpucsr_file_base", &given));
  if (base >= 0 && !given) {
    PetscCall(PetscSNPrintf(text, sizeof(text), "%d", (int)base));
    PetscCall(PetscOptionsSetValue(NULL, "-gpucsr_file_base", text));
  }
  PetscCall(LoadMat(data->X, file, labels[0] ? NULL : &data->y, &data->q, &info));
  if (base >= 0 && !given) PetscCall(PetscOptionsClearValue(NULL, "-gpucsr_file_base"));
  data->base = info.format == MAT_GPUCSR_FILE_LIBSVM ? info.base : -1;
  PetscCheck(base < 0 || data->base < 0 || base == data->base, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: its columns count from %" PetscInt_FMT ", those of the model from %" PetscInt_FMT, file, data->base, base);
  if (labels[0]) PetscCall(LoadNumbers(labels, "label", data->X, &data->y));
  if (data->y) PetscCall(CheckLabels(file, "label", data->y));
  if (weights[0]) {
    PetscReal least;

    PetscCall(LoadNumbers(weights, "weight", data->X, &data->u));
    PetscCall(VecMin(data->u, NULL, &least));
    PetscCheck(least >= 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: a weight of a row is %g; none may be negative", weights, (double)least);
  }
  if (bias >= 0) PetscCall(AppendColumn(&data->X, bias));
  PetscFunctionReturn(0);
}

PetscErrorCode DataDestroy(Data *data)
{
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(&data->X));
  PetscCall(VecDestroy(&data->y));
  PetscCall(VecDestroy(&data->u));
  PetscCall(VecDestroy(&data->q));
  PetscFunctionReturn(0);
}

/* A number from 0 to 1 that depends only on i and the seed, so any number of ranks chooses the same rows (the finaliser of splitmix64) */
static PetscReal Uniform(PetscInt seed, PetscInt i)
{
  unsigned long long x = ((unsigned long long)seed + 1) * 0x9e3779b97f4a7c15ULL + (unsigned long long)i * 0xd1342543de82ef95ULL; /* + 1, because mixing leaves 0 unchanged */

  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return (PetscReal)((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
}

static PetscErrorCode SelectVector(Vec all, IS is, Mat X, Vec *part)
{
  Vec sub;

  PetscFunctionBeginUser;
  *part = NULL;
  if (!all) PetscFunctionReturn(0);
  PetscCall(MatCreateVecs(X, NULL, part));
  PetscCall(VecGetSubVector(all, is, &sub));
  PetscCall(VecCopy(sub, *part));
  PetscCall(VecRestoreSubVector(all, is, &sub));
  PetscFunctionReturn(0);
}

/* Selects the rows whose random number, from 0 to 1, is at least low and below high; or the complement */
PetscErrorCode DataSelect(const Data *data, PetscInt seed, PetscReal low, PetscReal high, PetscBool complement, Data *part)
{
  IS       is;
  PetscInt rs, re, *rows, n = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(part, sizeof(*part)));
  part->base = data->base;
  PetscCall(MatGetOwnershipRange(data->X, &rs, &re));
  PetscCall(PetscMalloc1(re - rs, &rows));
  for (PetscInt i = rs; i < re; i++) {
    const PetscReal x = Uniform(seed, i);

    if ((x >= low && x < high) != complement) rows[n++] = i;
  }
  PetscCall(ISCreateGeneral(PetscObjectComm((PetscObject)data->X), n, rows, PETSC_OWN_POINTER, &is));
  PetscCall(MatCreateSubMatrix(data->X, is, NULL, MAT_INITIAL_MATRIX, &part->X));
  PetscCall(SelectVector(data->y, is, part->X, &part->y));
  PetscCall(SelectVector(data->u, is, part->X, &part->u));
  PetscCall(SelectVector(data->q, is, part->X, &part->q));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(0);
}

/* The distinct labels of all ranks, ascending. With too many to be classes, n becomes one more than the array can hold */
PetscErrorCode DistinctLabels(Vec y, PetscReal label[], PetscInt *n)
{
  const PetscScalar *v;
  PetscInt           m;
  PetscReal          next, last = -PETSC_INFINITY;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(y, &m));
  PetscCall(VecGetArrayRead(y, &v));
  for (*n = 0; *n <= MAX_CLASSES; (*n)++) {
    next = PETSC_INFINITY;
    for (PetscInt i = 0; i < m; i++)
      if (PetscRealPart(v[i]) > last) next = PetscMin(next, PetscRealPart(v[i]));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &next, 1, MPIU_REAL, MPIU_MIN, PetscObjectComm((PetscObject)y)));
    if (next == PETSC_INFINITY) break;
    last = next;
    if (*n < MAX_CLASSES) label[*n] = next;
  }
  PetscCall(VecRestoreArrayRead(y, &v));
  PetscFunctionReturn(0);
}
