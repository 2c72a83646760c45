/*
  MatGPUCSRLoadFile(): reads a matrix, and the labels of its rows, from a file, by threads and by ranks.

  The ranks share a plain file, and each parses its part; the first rank parses a compressed file or a pipe. Every rank then sends entries to the owners of their rows and assembles its own rows. They go into
  the arrays of MATAIJ if the type has them, otherwise through MatSetValues().
*/
#include "loadfile.h"
#include <stdlib.h>
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

/* ---- agreement of ranks on an error, layouts, and arrays for the entries */

/* If any rank has failed, all return the fault that comes first in the file */
PetscErrorCode GPUCSRReaderAgree(GPUCSRReader *R)
{
  const int64_t none = INT64_MAX;
  int64_t       line = R->failed ? R->fault.line : none, first;
  int           weight;
  PetscMPIInt   rank;
  char          text[PETSC_MAX_PATH_LEN + 512];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(&line, &first, 1, MPIU_INT64, MPI_MIN, R->comm));
  if (first == none) PetscFunctionReturn(PETSC_SUCCESS);
  weight = line == first;
  PetscCall(GPUCSRAgree(R->comm, &weight, NULL, &R->fault, sizeof(R->fault), &rank));
  GPUCSRFaultPrint(&R->fault, R->file, text, sizeof(text));
  SETERRQ(R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s", text);
}

/*
  With -gpucsr_file_balance entries each rank gets rows of equal work, if the program sets no layout. The work of a row is its entries, plus one for its numbers in the two vectors of a product, so
  empty rows count too. Bins of equally many rows hold the work, four million bins at most: 32 MB a rank for any matrix. Every rank has the sums of all bins, and cuts where the work before the cut is
  nearest to its share. So a rank has at most its share plus the work of one bin.
*/
#define BINS ((int64_t)1 << 22)

void GPUCSRReaderCount(GPUCSRReader *R, int64_t row, int64_t entries)
{
  R->work[1 + row / R->bin] += entries;
}

/* The bin at the end of rank r's share; from: the end of the previous rank's */
static int64_t Cut(const int64_t before[], int64_t n, int64_t from, int64_t r, int64_t size)
{
  const double target = (double)before[n] / (double)size * (double)r;
  int64_t      k      = from;

  while (k < n && (double)before[k + 1] <= target) k++;
  if (k < n && (double)before[k + 1] - target < target - (double)before[k]) k++;
  return k;
}

/* Collective: the rows of this rank, and for a square matrix its columns, so that vectors fit both. count adds the entries of the rows that this rank has read */
static PetscErrorCode Balance(GPUCSRReader *R, Mat A, PetscInt M, PetscInt N, GPUCSRCountFn count, const void *ctx)
{
  PetscInt bs, m, columns;
  int64_t  n, cut = 0, last = 0;
  int      set, any;

  PetscFunctionBegin;
  /* Does the program leave both layouts free? The same answer on all ranks, although only some ranks may have set a size */
  PetscCall(MatGetLocalSize(A, &m, &columns));
  set = m >= 0 || (M == N && columns >= 0);
  PetscCallMPI(MPI_Allreduce(&set, &any, 1, MPI_INT, MPI_MAX, R->comm));
  if (any || R->size == 1 || R->options.balance != MAT_GPUCSR_FILE_BALANCE_ENTRIES) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLayoutGetBlockSize(A->rmap, &bs));
  bs = PetscMax(bs, 1); /* -1: not set */
  if (M == N && A->cmap->bs > 1) {
    PetscInt common = bs;

    while (common % A->cmap->bs) common += bs;
    bs = common;
  }
  R->bin = ((M + BINS - 1) / BINS + bs - 1) / bs * bs;
  R->bin = PetscMax(R->bin, bs);
  n      = (M + R->bin - 1) / R->bin;
  PetscCall(PetscCalloc1((size_t)n + 1, &R->work));
  PetscCall((*count)(R, ctx));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, R->work + 1, (PetscMPIInt)n, MPIU_INT64, MPI_SUM, R->comm));
  for (int64_t k = 0; k < n; k++) R->work[k + 1] += R->work[k] + PetscMin(R->bin, M - k * R->bin);
  for (PetscMPIInt r = 1; r <= R->rank + 1; r++) {
    last = cut;
    cut  = r < R->size ? Cut(R->work, n, cut, r, R->size) : n;
  }
  m = (PetscInt)(PetscMin(cut * R->bin, M) - PetscMin(last * R->bin, M));
  PetscCall(MatSetSizes(A, m, M == N ? m : A->cmap->n, M, N));
  PetscCall(PetscFree(R->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sizes in the file, for sizes that the caller has not set; sizes that the caller has set must agree */
PetscErrorCode GPUCSRReaderLayout(GPUCSRReader *R, Mat A, PetscInt M, PetscInt N, GPUCSRCountFn count, const void *ctx)
{
  PetscInt m, n, has[2];

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &has[0], &has[1]));
  PetscCheck(has[0] < 0 || has[0] == M, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " rows where the matrix has %" PetscInt_FMT, R->file, M, has[0]);
  PetscCheck(has[1] < 0 || has[1] == N, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " columns where the matrix has %" PetscInt_FMT, R->file, N, has[1]);
  PetscCall(Balance(R, A, M, N, count, ctx));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatSetSizes(A, m, n, M, N));
  if (!((PetscObject)A)->type_name) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(PetscLayoutSetUp(A->rmap));
  PetscCall(PetscLayoutSetUp(A->cmap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, with R->row. One rank fills the arrays of the matrix if its type has arrays; otherwise the reader has them. A row with equal places may be longer than PETSc allows */
PetscErrorCode GPUCSRReaderArrays(GPUCSRReader *R, Mat A, PetscInt **j, PetscScalar **v, PetscBool *direct)
{
  const PetscInt m        = A->rmap->n;
  const size_t   n        = (size_t)R->row[m] + 1;
  PetscBool      possible = (PetscBool)(R->size == 1);

  PetscFunctionBegin;
  if (R->row[m] > PETSC_MAX_INT) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "one rank would have more entries than the integers of this PETSc can count: use more ranks, or a PETSc with 64-bit indices");
  PetscCall(GPUCSRReaderAgree(R));
  for (PetscInt r = 0; r < m; r++) {
    R->nnz[r] = (PetscInt)(R->row[r + 1] - R->row[r]);
    possible  = (PetscBool)(possible && R->nnz[r] <= A->cmap->N);
  }
  *j = NULL;
  if (possible) {
    PetscCall(MatSeqAIJSetPreallocation(A, 0, R->nnz)); /* no effect on other types */
    PetscCall(GPUCSRSeqArrays(A, n - 1, j, v));
  }
  *direct = (PetscBool)(*j != NULL);
  if (*direct) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc2(n, &R->j, n, &R->v));
  *j = R->j;
  *v = R->v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- PETSc binary. Every rank reads its part of a plain file; the first rank passes a stream on to all */

/* PETSc's viewer loads dense matrices and scalars that are not double */
static PetscErrorCode LoadViewer(GPUCSRReader *R, Mat A, const GPUCSRBinary *b, Vec *labels)
{
  PetscViewer viewer;
  PetscInt    M, N;
  int         follows = b->nz >= 0 && b->labels;

  PetscFunctionBegin;
  if (!((PetscObject)A)->type_name) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(PetscViewerBinaryOpen(R->comm, R->file, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(A, viewer));
  PetscCall(MatGetSize(A, &M, &N));
  R->info.entries = b->nz < 0 ? (int64_t)M * N : b->nz; /* of a dense matrix only after loading: the sizes of a header may be arbitrary */
  PetscCallMPI(MPI_Bcast(&follows, 1, MPI_INT, 0, R->comm));
  if (follows && labels) {
    PetscCall(MatCreateVecs(A, NULL, labels));
    PetscCall(VecLoad(*labels, viewer));
  }
  PetscCall(PetscViewerDestroy(&viewer));
  R->parsed = MPI_Wtime();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first rank sends the contents of a stream to all */
static PetscErrorCode Share(GPUCSRReader *R)
{
  int64_t bytes = 0;
  char   *all   = NULL;

  PetscFunctionBegin;
  if (R->rank == 0) {
    all       = (char *)GPUCSRInputWhole(R->source, &R->fault);
    R->failed = !all;
    bytes     = (int64_t)GPUCSRInputSize(R->source);
  }
  PetscCall(GPUCSRReaderAgree(R));
  PetscCallMPI(MPI_Bcast(&bytes, 1, MPIU_INT64, 0, R->comm));
  if (R->rank) R->all = all = (char *)malloc((size_t)bytes + 1);
  if (!all) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "no memory for the contents of the file");
  PetscCall(GPUCSRReaderAgree(R));
  for (int64_t at = 0; at < bytes; at += 1 << 30) PetscCallMPI(MPI_Bcast(all + at, (PetscMPIInt)PetscMin(bytes - at, 1 << 30), MPI_BYTE, 0, R->comm));
  if (R->rank) R->failed = GPUCSRInputMemory(all, (size_t)bytes, &R->source, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The lengths of rows, equally many on each rank */
static PetscErrorCode Count(GPUCSRReader *R, const void *ctx)
{
  const GPUCSRBinary *b     = (const GPUCSRBinary *)ctx;
  const int64_t       first = b->M / R->size * R->rank, m = R->rank + 1 == R->size ? b->M - first : b->M / R->size;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)m + 1, &R->first));
  R->failed = GPUCSRBinaryRows(b, first, m, R->first, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  for (int64_t r = 0; r < m; r++) GPUCSRReaderCount(R, first + r, R->first[r + 1] - R->first[r]);
  PetscCall(PetscFree(R->first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoadBinary(GPUCSRReader *R, Mat A, Vec *labels)
{
  GPUCSRBinary b;
  int64_t      first, end;
  PetscInt     m, rstart, *j;
  PetscScalar *y, *v;
  PetscBool    direct;

  PetscFunctionBegin;
  if (R->stream) PetscCall(Share(R));
  R->failed = GPUCSRBinaryHeader(R->source, &b, &R->fault);
  if (!R->failed && R->stream && (b.nz < 0 || !GPUCSR_SCALAR_IS_DOUBLE)) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "is a dense matrix, or has other scalars than doubles, inside a compressed file or a pipe: make it a plain file first");
  PetscCall(GPUCSRReaderAgree(R));
  R->info.text = (int64_t)b.length;
  if (b.nz < 0 || !GPUCSR_SCALAR_IS_DOUBLE) {
    PetscCall(LoadViewer(R, A, &b, labels));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  R->info.entries = b.nz;
  PetscCall(GPUCSRReaderLayout(R, A, (PetscInt)b.M, (PetscInt)b.N, Count, &b));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  /* the start of each of this rank's rows, and the number of their first entry in the file; the rows of all ranks must have as many entries as the header announces */
  PetscCall(PetscMalloc2((size_t)m + 1, &R->row, (size_t)m, &R->nnz));
  R->failed = GPUCSRBinaryRows(&b, rstart, m, R->row, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  PetscCallMPI(MPI_Scan(&R->row[m], &end, 1, MPIU_INT64, MPI_SUM, R->comm));
  first = end - R->row[m];
  PetscCallMPI(MPI_Bcast(&end, 1, MPIU_INT64, R->size - 1, R->comm));
  if (end != b.nz) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "the rows have %lld entries together, the header says %lld", (long long)end, (long long)b.nz);
  PetscCall(GPUCSRReaderAgree(R));
  /* columns and values of this rank's rows, into the arrays of the matrix if its type has them */
  PetscCall(GPUCSRReaderArrays(R, A, &j, &v, &direct));
  R->failed = GPUCSRBinaryColumns(&b, rstart, m, R->row, first, j, R->threads, &R->fault) || GPUCSRBinaryReals(&b, b.values + 8 * (size_t)first, R->row[m], v, R->threads, &R->fault);
  if (R->failed && direct) PetscCall(MatSeqAIJSetPreallocation(A, 0, R->nnz)); /* its rows are empty again */
  PetscCall(GPUCSRReaderAgree(R));
  R->parsed = MPI_Wtime();
  PetscCall(GPUCSRSetRows(A, direct, R->row, j, v, R->threads));
  if (b.labels && labels) {
    PetscCall(MatCreateVecs(A, NULL, labels));
    PetscCall(VecGetArrayWrite(*labels, &y));
    R->failed = GPUCSRBinaryReals(&b, b.labels + 8 * (size_t)rstart, m, y, R->threads, &R->fault);
    PetscCall(VecRestoreArrayWrite(*labels, &y));
    if (R->failed) PetscCall(VecDestroy(labels));
    PetscCall(GPUCSRReaderAgree(R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a file */

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
  if (R->header.format == GPUCSR_TEXT_PETSC) PetscCall(LoadBinary(R, A, labels));
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
  for (size_t k = 0; k < R.npieces; k++) GPUCSRPieceDestroy(&R.piece[k]);
  free(R.piece);
  GPUCSRInputClose(R.source);
  free(R.all);
  PetscCall(PetscFree2(R.row, R.nnz));
  PetscCall(PetscFree2(R.j, R.v));
  PetscCall(PetscFree(R.first));
  PetscCall(PetscFree(R.work));
  PetscCall(ierr);
  if (info) {
    *info = R.info;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &info->read_time, 3, MPI_DOUBLE, MPI_MAX, R.comm)); /* the three times */
    PetscCallMPI(MPI_Bcast(&info->bytes, 1, MPIU_INT64, 0, R.comm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
