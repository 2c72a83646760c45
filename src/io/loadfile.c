/*
  MatGPUCSRLoadFile(): reads a matrix, and the labels of its rows, from a file, by threads and by ranks.

  The ranks share a plain file, and each parses its part; the first rank parses a compressed file or a pipe. Every rank then sends entries to the owners of their rows and assembles its own rows. They go into
  the arrays of MATAIJ if the type has them, otherwise through MatSetValues().
*/
#include "loadfile.h"
#include <string.h>
#include <omp.h>

const char *const MatGPUCSRFileFormats[]  = {"auto", "petsc", "libsvm", "market", "boeing", "MatGPUCSRFileFormat", "MAT_GPUCSR_FILE_", NULL};
const char *const MatGPUCSRFileBalances[] = {"rows", "entries", "MatGPUCSRFileBalance", "MAT_GPUCSR_FILE_BALANCE_", NULL};

/*@
  MatGPUCSRFileOptionsInitialize - set the defaults for reading a file

  Not Collective

  Output Parameter:
. options - format by content, columns and base from the indices, all threads of OpenMP, stop at the first bad line,
            equally many rows a rank

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
  options->balance = MAT_GPUCSR_FILE_BALANCE_ROWS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRFileOptionsSetFromOptions - set options for reading a file from the options database

  Collective

  Input Parameters:
+ comm    - the reading ranks
. prefix  - in front of the options, or `NULL`
- options - the values for options that are not given

  Options Database Keys:
+ -gpucsr_file_format (auto|petsc|libsvm|market|boeing) - format of the file
. -gpucsr_file_columns n                               - LIBSVM: columns of the matrix
. -gpucsr_file_base (0|1)                              - LIBSVM: index of the first column
. -gpucsr_file_threads n                               - threads that parse on each rank
. -gpucsr_file_skip                                    - skip and count bad lines
- -gpucsr_file_balance (rows|entries)                  - balance ranks by rows or by entries

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
  PetscCall(PetscOptionsBool("-gpucsr_file_skip", "Skip and count bad lines", "MatGPUCSRLoadFile", options->skip, &options->skip, NULL));
  PetscCall(PetscOptionsEnum("-gpucsr_file_balance", "Balance ranks by rows or by entries", "MatGPUCSRLoadFile", MatGPUCSRFileBalances, (PetscEnum)options->balance, (PetscEnum *)&options->balance, NULL));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Load(GPUCSRReader *R, Mat A, Vec *labels, Vec *queries)
{
  MatGPUCSRFileInfo *info  = &R->info;
  const double       begun = MPI_Wtime();
  double             opened;
  struct {
    int64_t          stream;
    GPUCSRTextHeader header;
  } told;

  PetscFunctionBegin;
  memset(&told, 0, sizeof(told)); /* opens the file, and reads the header before the entries */
  if (R->rank == 0) {
    R->failed = GPUCSRInputOpen(R->file, R->size > 1, &R->source, &R->fault) || GPUCSRInputHeader(R->source, (GPUCSRTextFormat)R->options.format, &told.header, &R->fault);
    if (!R->failed) told.stream = GPUCSRInputIsStream(R->source);
  }
  PetscCall(GPUCSRReaderAgree(R));
  PetscCallMPI(MPI_Bcast(&told, sizeof(told), MPI_BYTE, 0, R->comm));
  R->header = told.header;
  R->stream = (int)told.stream;
  if (R->rank && !R->stream) R->failed = GPUCSRInputOpen(R->file, 1, &R->source, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  info->format = (MatGPUCSRFileFormat)R->header.format;
  info->bytes  = R->source ? GPUCSRInputBytes(R->source) : 0;
  opened       = MPI_Wtime();
  if (R->header.format == GPUCSR_TEXT_PETSC) PetscCall(GPUCSRLoadBinary(R, A, labels));
  else PetscCall(GPUCSRLoadText(R, A, labels, queries));
  info->read_time     = opened - begun;
  info->parse_time    = R->parsed - opened;
  info->assemble_time = MPI_Wtime() - R->parsed;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRLoadFile - read a matrix, and the labels of its rows, from a file of text or of PETSc binary

  Collective

  Input Parameters:
+ A       - the matrix to fill, with type and sizes as for `MatLoad()`. `MatCreate()` and `MatSetFromOptions()` are enough.
. file    - name of the file, or "-" for the standard input of the first rank
- options - settings of the reader. `NULL`: the defaults and the options database with the prefix of `A`.

  Output Parameters:
+ labels  - a new vector with the labels of the rows, `NULL` if the file has no labels. Pass `NULL` to ignore labels.
. queries - a new vector with the numbers after qid: in svmlight files, 0 for a row without, `NULL` if the file has no numbers; or pass `NULL`
- info    - statistics of the file, or pass `NULL`

  Level: intermediate

  Notes:
  The file is LIBSVM or svmlight text, Matrix Market, Harwell-Boeing, Rutherford-Boeing, or PETSc binary, told by its content, and may be compressed by
  gzip, xz, bzip2 or zstd. The first rank reads a pipe for all. Threads (`MatGPUCSRFileOptions`) and ranks read a file in parallel, into a matrix of any type. In PETSc binary the
  vector behind the matrix has the labels.

  The sizes of `A` distribute the rows over the ranks; otherwise `PETSC_DECIDE` does, or, with balance entries, equal work in a product. Then vectors
  of `MatCreateVecs()` fit, and vectors with sizes from `PETSC_DECIDE` do not. LIBSVM text gets the columns of `A`, if set, or of the options;
  so a second file can get the columns of a first.

  If a sample of the rows has too few equal neighbours, `MAT_USE_INODES` skips PETSc's search for equal neighbours.

  A bad line is an error on all ranks, with the file, line, column and the expected text; or bad lines are skipped and counted in
  the info.

.seealso: `MatGPUCSRFileOptions`, `MatGPUCSRFileInfo`, `MatGPUCSRFileOptionsInitialize()`, `MatLoad()`
@*/
PetscErrorCode MatGPUCSRLoadFile(Mat A, const char file[], const MatGPUCSRFileOptions *options, Vec *labels, Vec *queries, MatGPUCSRFileInfo *info)
{
  GPUCSRReader   R;
  PetscErrorCode ierr;
  const char    *prefix;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointerCompat(file, 2);
  memset(&R, 0, sizeof(R));
  R.comm = PetscObjectComm((PetscObject)A);
  R.file = file;
  if (labels) *labels = NULL;
  if (queries) *queries = NULL;
  PetscCallMPI(MPI_Comm_rank(R.comm, &R.rank));
  PetscCallMPI(MPI_Comm_size(R.comm, &R.size));
  if (options) R.options = *options;
  else {
    PetscCall(MatGetOptionsPrefix(A, &prefix));
    PetscCall(MatGPUCSRFileOptionsInitialize(&R.options));
    PetscCall(MatGPUCSRFileOptionsSetFromOptions(R.comm, prefix, &R.options));
  }
  PetscCheck(R.options.base == PETSC_DECIDE || R.options.base == 0 || R.options.base == 1, R.comm, PETSC_ERR_ARG_OUTOFRANGE, "the first index is 0 or 1, not %" PetscInt_FMT, R.options.base);
  R.threads = R.options.threads > 0 ? (int)PetscMin(R.options.threads, 1024) : omp_get_max_threads();

  ierr = Load(&R, A, labels, queries);
  PetscCall(GPUCSRReaderDestroy(&R));
  PetscCall(ierr);
  if (info) {
    *info = R.info;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &info->read_time, 3, MPI_DOUBLE, MPI_MAX, R.comm)); /* the three times */
    PetscCallMPI(MPI_Bcast(&info->bytes, 1, MPIU_INT64, 0, R.comm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
