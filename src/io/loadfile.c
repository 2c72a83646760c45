/*
  MatGPUCSRLoadFile(): a matrix, and the labels of its rows, from a file.
*/
#include <petscgpucsr.h>
#include "../sys/gpucsrcompat.h"
#include <petsc/private/matimpl.h>
#include <stdio.h>
#include <stdlib.h>

const char *const MatGPUCSRFileFormats[] = {"auto", "petsc", "libsvm", "market", "boeing", "MatGPUCSRFileFormat", "MAT_GPUCSR_FILE_", NULL};

/*@
  MatGPUCSRFileOptionsInitialize - the defaults of how a file is read

  Not Collective

  Output Parameter:
. options - format by content, columns and base by the indices that occur, as many threads as OpenMP has, stop at the first bad line

  Level: intermediate

.seealso: `MatGPUCSRLoadFile()`, `MatGPUCSRFileOptions`, `MatGPUCSRFileOptionsSetFromOptions()`
@*/
PetscErrorCode MatGPUCSRFileOptionsInitialize(MatGPUCSRFileOptions *options)
{
  PetscFunctionBegin;
  options->format  = MAT_GPUCSR_FILE_AUTO;
  options->columns = PETSC_DECIDE;
  options->base    = PETSC_DECIDE;
  options->threads = PETSC_DECIDE;
  options->skip    = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRFileOptionsSetFromOptions - change how a file is read by the options database

  Collective

  Input Parameters:
+ comm    - those who will read
. prefix  - in front of the options, or `NULL`
- options - what holds where an option is not given

  Options Database Keys:
+ -gpucsr_file_format (auto|petsc|libsvm|market|boeing) - what the file holds
. -gpucsr_file_columns n                               - LIBSVM: columns of the matrix
. -gpucsr_file_base (0|1)                              - LIBSVM: index of the first column
. -gpucsr_file_threads n                               - threads that parse on each rank
- -gpucsr_file_skip                                    - leave bad lines out and count them

  Level: intermediate

.seealso: `MatGPUCSRLoadFile()`, `MatGPUCSRFileOptions`, `MatGPUCSRFileOptionsInitialize()`
@*/
PetscErrorCode MatGPUCSRFileOptionsSetFromOptions(MPI_Comm comm, const char prefix[], MatGPUCSRFileOptions *options)
{
  PetscFunctionBegin;
  PetscOptionsBegin(comm, prefix, "How a matrix is read from a file", "MatGPUCSRLoadFile");
  PetscCall(PetscOptionsEnum("-gpucsr_file_format", "What the file holds", "MatGPUCSRLoadFile", MatGPUCSRFileFormats, (PetscEnum)options->format, (PetscEnum *)&options->format, NULL));
  PetscCall(PetscOptionsInt("-gpucsr_file_columns", "LIBSVM: columns of the matrix", "MatGPUCSRLoadFile", options->columns, &options->columns, NULL));
  PetscCall(PetscOptionsInt("-gpucsr_file_base", "LIBSVM: index of the first column", "MatGPUCSRLoadFile", options->base, &options->base, NULL));
  PetscCall(PetscOptionsInt("-gpucsr_file_threads", "Threads that parse on each rank", "MatGPUCSRLoadFile", options->threads, &options->threads, NULL));
  PetscCall(PetscOptionsBool("-gpucsr_file_skip", "Leave bad lines out and count them", "MatGPUCSRLoadFile", options->skip, &options->skip, NULL));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRLoadFile - read a matrix, and the labels of its rows, from a file of text or of PETSc binary

  Collective

  Input Parameters:
+ A       - the matrix to fill: type and sizes as for `MatLoad()`, so `MatCreate()` and `MatSetFromOptions()` are enough
. file    - its name
- options - how to read, or `NULL` for the defaults and the options database with the prefix of `A`

  Output Parameters:
+ labels  - a new vector with the labels of the rows, `NULL` where the file has none; or pass `NULL`
. queries - a new vector with the numbers after qid: in svmlight files, `NULL` where the file has none; or pass `NULL`
- info    - what was found, or pass `NULL`

  Level: intermediate

.seealso: `MatGPUCSRFileOptions`, `MatGPUCSRFileInfo`, `MatGPUCSRFileOptionsInitialize()`, `MatLoad()`
@*/
PetscErrorCode MatGPUCSRLoadFile(Mat A, const char file[], const MatGPUCSRFileOptions *options, Vec *labels, Vec *queries, MatGPUCSRFileInfo *info)
{
  MPI_Comm             comm = PetscObjectComm((PetscObject)A);
  MatGPUCSRFileOptions o;
  FILE                *fp;
  char                *line = NULL, *s, *end;
  size_t               room = 0;
  PetscInt             m = 0, n = 0, rs, re, row, *nnz, low = PETSC_MAX_INT, ml, nl, M, N;
  PetscInt64           entries = 0;
  Vec                  y = NULL;
  const char          *prefix;

  PetscFunctionBegin;
  if (options) o = *options;
  else {
    PetscCall(MatGetOptionsPrefix(A, &prefix));
    PetscCall(MatGPUCSRFileOptionsInitialize(&o));
    PetscCall(MatGPUCSRFileOptionsSetFromOptions(comm, prefix, &o));
  }
  fp = fopen(file, "r");
  PetscCheck(fp, comm, PETSC_ERR_FILE_OPEN, "%s: cannot be opened", file);
  while (getline(&line, &room, fp) >= 0) {
    if ((s = strchr(line, '#'))) *s = 0;
    strtod(line, &end);
    if (end == line) continue;
    m++;
    for (s = end; (s = strchr(s, ':')); s++) {
      char *d = s;

      while (d > line && d[-1] != ' ' && d[-1] != '\t') d--;
      if (*d == 'q') continue;
      n   = PetscMax(n, (PetscInt)atoll(d));
      low = PetscMin(low, (PetscInt)atoll(d));
      entries++;
    }
  }
  if (o.base < 0) o.base = low == 0 ? 0 : 1;
  if (o.columns < 0) o.columns = n + 1 - o.base;
  PetscCheck(n - o.base < o.columns, comm, PETSC_ERR_FILE_UNEXPECTED, "%s: index %" PetscInt_FMT " is beyond the %" PetscInt_FMT " columns", file, n, o.columns);
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetLocalSize(A, &ml, &nl));
  PetscCall(MatSetSizes(A, ml, nl, m, o.columns));
  if (!((PetscObject)A)->type_name) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(PetscLayoutSetUp(A->rmap));
  PetscCall(PetscLayoutSetUp(A->cmap));
  rs = A->rmap->rstart;
  re = A->rmap->rend;
  PetscCall(PetscCalloc1(2 * (re - rs), &nnz));
  for (int pass = 0; pass < 2; pass++) {
    if (pass) {
      PetscBool aij;

      PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &aij, MATSEQAIJ, MATMPIAIJ, ""));
      if (aij) PetscCall(MatXAIJSetPreallocation(A, 1, nnz, nnz + re - rs, NULL, NULL));
      PetscCall(MatSetUp(A));
      PetscCall(MatCreateVecs(A, NULL, &y));
    }
    rewind(fp);
    row = -1;
    while (getline(&line, &room, fp) >= 0) {
      double label;

      if ((s = strchr(line, '#'))) *s = 0;
      label = strtod(line, &end);
      if (end == line) continue;
      row++;
      if (row < rs || row >= re) continue;
      if (pass) PetscCall(VecSetValue(y, row, (PetscScalar)label, INSERT_VALUES));
      for (s = end; (s = strchr(s, ':')); s++) {
        char       *d = s;
        PetscInt    j;
        PetscScalar v = strtod(s + 1, NULL);

        while (d > line && d[-1] != ' ' && d[-1] != '\t') d--;
        if (*d == 'q') continue;
        j = (PetscInt)atoll(d) - o.base;
        if (pass) PetscCall(MatSetValues(A, 1, &row, 1, &j, &v, INSERT_VALUES));
        else nnz[row - rs + (j < A->cmap->rstart || j >= A->cmap->rend ? re - rs : 0)]++;
      }
    }
  }
  PetscCall(PetscFree(nnz));
  free(line);
  fclose(fp);
  PetscCall(VecAssemblyBegin(y));
  PetscCall(VecAssemblyEnd(y));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  if (labels) *labels = y;
  else PetscCall(VecDestroy(&y));
  if (queries) *queries = NULL;
  if (info) {
    PetscCall(PetscMemzero(info, sizeof(*info)));
    info->format  = MAT_GPUCSR_FILE_LIBSVM;
    info->base    = o.base;
    info->entries = entries;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
