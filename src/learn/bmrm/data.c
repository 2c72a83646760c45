/*
  The data: a matrix with one row per example, labels, weights, queries.

  PETSc reads its binary format: a matrix, then a vector of labels. If a loaded library composes a function that reads files, this function is called. It also reads LIBSVM text and Matrix Market files.
*/
#include "learn.h"
#include <petscgpucsr.h> /* only for a struct: functions of the library are found by name */

/* Does a file begin with the class id that MatView() writes? */
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
  PetscInt    M, N, m, n, rs, re, *length;
  PetscMPIInt size, rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatGetSize(*X, &M, &N));
  PetscCall(MatGetLocalSize(*X, &m, &n));
  PetscCall(MatGetOwnershipRange(*X, &rs, &re));
  PetscCall(PetscMalloc1(m, &length));
  for (PetscInt i = rs; i < re; i++) {
    PetscInt nz;

    PetscCall(MatGetRow(*X, i, &nz, NULL, NULL));
    length[i - rs] = nz + 1;
    PetscCall(MatRestoreRow(*X, i, &nz, NULL, NULL));
  }
  PetscCall(MatCreate(PETSC_COMM_WORLD, &B));
  PetscCall(MatGetType(*X, &type));
  PetscCall(MatSetSizes(B, m, n + (rank == size - 1), M, N + 1));
  PetscCall(MatSetType(B, type));
  PetscCall(MatSetFromOptions(B));
  PetscCall(MatSeqAIJSetPreallocation(B, 0, length));
  PetscCall(MatMPIAIJSetPreallocation(B, 0, length, 0, length));
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
  PetscCall(PetscFree(length));
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
  PetscBool binary = PETSC_FALSE, given;
  char      text[8];
  PetscErrorCode (*load)(Mat, const char *, const void *, Vec *, Vec *, void *) = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(data, sizeof(*data)));
  data->base = -1;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &data->X));
  PetscCall(MatSetFromOptions(data->X));
  PetscCall(PetscDLSym(NULL, "MatGPUCSRLoadFile", (void **)&load));
  if (load) {
    MatGPUCSRFileInfo info;

    PetscCall(PetscOptionsHasName(NULL, NULL, "-gpucsr_file_base", &given));
    if (base >= 0 && !given) {
      PetscCall(PetscSNPrintf(text, sizeof(text), "%d", (int)base));
      PetscCall(PetscOptionsSetValue(NULL, "-gpucsr_file_base", text));
    }
    PetscCall((*load)(data->X, file, NULL, &data->y, &data->q, &info));
    if (base >= 0 && !given) PetscCall(PetscOptionsClearValue(NULL, "-gpucsr_file_base"));
    if (info.format == MAT_GPUCSR_FILE_LIBSVM) data->base = info.base;
    PetscCheck(base < 0 || data->base < 0 || base == data->base, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: its columns count from %" PetscInt_FMT ", those of the model from %" PetscInt_FMT, file, data->base, base);
  } else {
    PetscViewer viewer;
    PetscInt    M, My;

    PetscCall(IsBinary(file, &binary));
    PetscCheck(binary, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: is not PETSc binary; -dll_append libpetscgpucsr.so brings what reads text", file);
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(data->X, viewer));
    if (!labels[0]) {
      PetscCall(MatCreateVecs(data->X, NULL, &data->y));
      PetscCall(VecLoad(data->y, viewer));
      PetscCall(VecGetSize(data->y, &My));
      PetscCall(MatGetSize(data->X, &M, NULL));
      PetscCheck(M == My, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " labels for %" PetscInt_FMT " rows", file, My, M);
    }
    PetscCall(PetscViewerDestroy(&viewer));
  }
  if (labels[0]) {
    PetscCall(VecDestroy(&data->y));
    PetscCall(LoadNumbers(labels, "label", data->X, &data->y));
  }
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
PetscReal Uniform(PetscInt seed, PetscInt i)
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

/* Selects the rows for which `in` is true, or all others */
PetscErrorCode DataSelect(const Data *data, PetscBool (*in)(PetscInt, PetscInt, PetscReal), PetscInt seed, PetscReal share, PetscBool not, Data *part)
{
  IS       is;
  PetscInt rs, re, *rows, n = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(part, sizeof(*part)));
  part->base = data->base;
  PetscCall(MatGetOwnershipRange(data->X, &rs, &re));
  PetscCall(PetscMalloc1(re - rs, &rows));
  for (PetscInt i = rs; i < re; i++)
    if ((*in)(i, seed, share) != not ) rows[n++] = i;
  PetscCall(ISCreateGeneral(PetscObjectComm((PetscObject)data->X), n, rows, PETSC_OWN_POINTER, &is));
  PetscCall(MatCreateSubMatrix(data->X, is, NULL, MAT_INITIAL_MATRIX, &part->X));
  PetscCall(SelectVector(data->y, is, part->X, &part->y));
  PetscCall(SelectVector(data->u, is, part->X, &part->u));
  PetscCall(SelectVector(data->q, is, part->X, &part->q));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(0);
}

static int CompareReal(const void *a, const void *b)
{
  const PetscReal x = *(const PetscReal *)a, y = *(const PetscReal *)b;

  return x < y ? -1 : x > y;
}

/* The distinct labels of all ranks, ascending. If there are too many to be classes, n becomes one more than the array can hold */
PetscErrorCode DistinctLabels(Vec y, PetscReal label[], PetscInt *n)
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
