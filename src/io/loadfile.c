/*
  MatGPUCSRLoadFile(): a matrix, and the labels of its rows, from a file, by threads and by ranks.

  A file that can be mapped is parted among the ranks, and each parses its part; a compressed one is decompressed by the first rank, which hands blocks
  of lines to all in turn. Every rank then sends entries to those who own their rows, assembles what it owns, and puts that into the matrix: into the
  arrays of MATAIJ where the type has such, else by MatSetValues().
*/
#include <petscgpucsr.h>
#include <petsc/private/matimpl.h>
#include "../sys/gpucsrcompat.h"
#include "gpucsrio.h"
#include <stdlib.h>
#include <string.h>
#include <omp.h>
#include <sys/mman.h>

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

typedef struct {
  MPI_Comm             comm;
  PetscMPIInt          rank, size;
  const char          *file;
  MatGPUCSRFileOptions options;
  int                  threads;
  GPUCSRSource        *source; /* on the ranks that read */
  int                  stream;
  GPUCSRTextHeader     header;
  GPUCSRBlock         *block; /* parsed: their pieces alone are left */
  size_t               nblocks, room;
  int64_t             *number; /* of each block among all, in the order of the file */
  int64_t              all;    /* blocks of all ranks */
  int64_t              entries, skipped, skip, low, high, text;
  double               begun, parsed; /* times: when parsing began, and ended */
  int                  failed;
  GPUCSRFault          fault;
  /* of the rows of this rank; kept here, and the blocks, so that an error leaves nothing behind */
  int64_t     *row; /* where each begins */
  PetscInt    *nnz; /* their lengths */
  PetscInt    *j;   /* entries, where the matrix has no arrays for them */
  PetscScalar *v;
  int64_t     *firstrow; /* LIBSVM: of each block */
} Reader;

static PetscErrorCode ReaderDestroy(Reader *R)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < R->nblocks; k++) GPUCSRPieceDestroy(&R->block[k].piece);
  free(R->block);
  free(R->number);
  GPUCSRSourceClose(R->source);
  PetscCall(PetscFree2(R->row, R->nnz));
  PetscCall(PetscFree2(R->j, R->v));
  PetscCall(PetscFree(R->firstrow));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If any rank has failed, all end with the fault that comes first in the file */
static PetscErrorCode AgreeOnFault(Reader *R)
{
  const int64_t none = INT64_MAX;
  int64_t       line = R->failed ? R->fault.line : none, first;
  int           who  = R->size, least;
  char          text[PETSC_MAX_PATH_LEN + 512];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(&line, &first, 1, MPIU_INT64, MPI_MIN, R->comm));
  if (first == none) PetscFunctionReturn(PETSC_SUCCESS);
  if (line == first) who = R->rank;
  PetscCallMPI(MPI_Allreduce(&who, &least, 1, MPI_INT, MPI_MIN, R->comm));
  PetscCallMPI(MPI_Bcast(&R->fault, sizeof(R->fault), MPI_BYTE, least, R->comm));
  GPUCSRFaultPrint(&R->fault, R->file, text, sizeof(text));
  SETERRQ(R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s", text);
}

static void Fail(Reader *R, int64_t line, const char why[])
{
  if (R->failed) return;
  R->failed = GPUCSRFaultSet(&R->fault, line, 0, "%s", why);
}

/* Keep a parsed block, number in the order of the file */
static int Keep(Reader *R, GPUCSRBlock *block, int64_t number, GPUCSRFault *f)
{
  if (R->nblocks == R->room) {
    const size_t room = R->room ? 2 * R->room : 64;
    GPUCSRBlock *b    = (GPUCSRBlock *)realloc(R->block, room * sizeof(*b));
    int64_t     *n;

    if (b) R->block = b;
    n = b ? (int64_t *)realloc(R->number, room * sizeof(*n)) : NULL;
    if (!n) return GPUCSRFaultSet(f, 0, 0, "no memory for %zu blocks", room);
    R->number = n;
    R->room   = room;
  }
  if (block->piece.skipped && (!R->skip || R->skip > block->piece.skip)) R->skip = block->piece.skip;
  R->entries += (int64_t)(block->piece.length ? block->piece.nz : block->piece.entries);
  R->skipped += (int64_t)block->piece.skipped;
  if (block->piece.nz) {
    R->low  = PetscMin(R->low, block->piece.low);
    R->high = PetscMax(R->high, block->piece.high);
  }
  R->number[R->nblocks]  = number;
  R->block[R->nblocks++] = *block;
  memset(&block->piece, 0, sizeof(block->piece));
  R->block[R->nblocks - 1].owned = NULL; /* the text goes */
  return 0;
}

static int Handle(void *ctx, GPUCSRBlock *block, GPUCSRFault *f)
{
  Reader *R = (Reader *)ctx;

  if (block->piece.skipped) block->piece.skip += GPUCSRSourceLine(R->source, block) - 1;
  return Keep(R, block, (int64_t)R->nblocks, f);
}

/* A stream on several ranks: the first reads, all parse, a block each in turn */
static PetscErrorCode ParseDealt(Reader *R)
{
  int64_t     head[2] = {0, 0}; /* bytes of text, number of its first line */
  GPUCSRBlock block;

  PetscFunctionBegin;
  for (int64_t k = 0;; k++) {
    const PetscMPIInt to = (PetscMPIInt)(k % R->size);

    if (R->rank == 0) {
      if (R->failed || (R->failed = GPUCSRSourceNext(R->source, &block, &R->fault)) || !block.bytes) break;
      if (to) {
        head[0] = (int64_t)block.bytes;
        head[1] = block.line;
        PetscCallMPI(MPI_Send(head, 2, MPIU_INT64, to, 0, R->comm));
        for (size_t at = 0; at < block.bytes; at += 1 << 30) PetscCallMPI(MPI_Send(block.text + at, (PetscMPIInt)PetscMin(block.bytes - at, (size_t)1 << 30), MPI_BYTE, to, 0, R->comm));
        GPUCSRBlockDestroy(&block);
        continue;
      }
    } else {
      if (to != R->rank) continue;
      memset(&block, 0, sizeof(block));
      PetscCallMPI(MPI_Recv(head, 2, MPIU_INT64, 0, 0, R->comm, MPI_STATUS_IGNORE));
      if (!head[0]) break;
      block.bytes = (size_t)head[0];
      block.line  = head[1];
      block.text = block.owned = (char *)malloc(block.bytes);
      PetscCheck(block.owned, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s: no memory for %zu bytes of text", R->file, block.bytes);
      for (size_t at = 0; at < block.bytes; at += 1 << 30) PetscCallMPI(MPI_Recv(block.owned + at, (PetscMPIInt)PetscMin(block.bytes - at, (size_t)1 << 30), MPI_BYTE, 0, 0, R->comm, MPI_STATUS_IGNORE));
    }
    if (!R->failed) {
      GPUCSRBlockParse(&R->header, R->options.skip, &block);
      if (block.piece.fault.why[0]) {
        R->failed = 1;
        R->fault  = block.piece.fault;
        if (R->fault.line) R->fault.line += block.line - 1;
      } else {
        if (block.piece.skipped) block.piece.skip += block.line - 1;
        R->failed = Keep(R, &block, k, &R->fault);
      }
    }
    free(block.owned);
    if (R->failed) GPUCSRPieceDestroy(&block.piece);
  }
  if (R->rank == 0) {
    head[0] = 0;
    for (PetscMPIInt to = 1; to < R->size; to++) PetscCallMPI(MPI_Send(head, 2, MPIU_INT64, to, 0, R->comm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Harwell-Boeing: each rank that has the text takes a part of the entries, and cuts it for its threads */
static int ParseBoeing(Reader *R, GPUCSRFault *f)
{
  const PetscMPIInt rank = R->stream ? 0 : R->rank, size = R->stream ? 1 : R->size;
  const int64_t     nz = R->header.entries, first = nz / size * rank, last = rank + 1 == size ? nz : nz / size * (rank + 1), parts = PetscMin(4 * R->threads, (last - first) / 4096 + 1);
  const char       *text;
  size_t            bytes;
  GPUCSRLines       lines;
  GPUCSRBlock      *block;
  int64_t          *pointer = NULL;
  int               failed;

  if (GPUCSRSourceWhole(R->source, &text, &bytes, f)) return 1;
  failed = GPUCSRLinesCreate(text, bytes, R->threads, &lines, f);
  if (failed) return failed;
  failed = GPUCSRBoeingPointers(&R->header, &lines, &pointer, f);
  block  = (GPUCSRBlock *)calloc((size_t)parts, sizeof(*block));
  if (!failed && !block) failed = GPUCSRFaultSet(f, 0, 0, "no memory for %lld blocks", (long long)parts);
  if (!failed) {
#pragma omp parallel for num_threads(R->threads) schedule(dynamic)
    for (int64_t k = 0; k < parts; k++) GPUCSRBoeingParse(&R->header, &lines, pointer, first + (last - first) / parts * k, k + 1 == parts ? last : first + (last - first) / parts * (k + 1), &block[k].piece);
    for (int64_t k = 0; k < parts; k++) {
      if (!failed && block[k].piece.fault.why[0]) {
        *f     = block[k].piece.fault;
        failed = 1;
      }
      if (!failed) failed = Keep(R, &block[k], k, f);
      GPUCSRPieceDestroy(&block[k].piece);
    }
  }
  free(block);
  free(pointer);
  GPUCSRLinesDestroy(&lines);
  return failed;
}

/* Open the file, and read what stands in front of the entries */
static PetscErrorCode Open(Reader *R)
{
  struct {
    int64_t          petsc, stream;
    GPUCSRTextHeader header;
  } told;
  const char *text;
  size_t      bytes;

  PetscFunctionBegin;
  memset(&told, 0, sizeof(told));
  if (R->rank == 0) {
    R->failed = GPUCSRSourceOpen(R->file, &R->source, &R->fault) || GPUCSRSourceHead(R->source, &text, &bytes, &R->fault);
    if (!R->failed) {
      GPUCSRTextFormat format = R->options.format == MAT_GPUCSR_FILE_LIBSVM   ? GPUCSR_TEXT_LIBSVM
                                : R->options.format == MAT_GPUCSR_FILE_MARKET ? GPUCSR_TEXT_MARKET
                                : R->options.format == MAT_GPUCSR_FILE_BOEING ? GPUCSR_TEXT_BOEING
                                : R->options.format == MAT_GPUCSR_FILE_PETSC  ? GPUCSR_TEXT_PETSC
                                                                              : GPUCSRTextSniff(text, bytes);

      told.stream          = GPUCSRSourceIsStream(R->source);
      told.header.format   = format;
      told.header.symmetry = GPUCSR_GENERAL;
      if (format == GPUCSR_TEXT_MARKET) R->failed = GPUCSRMarketHeader(text, bytes, &told.header, &R->fault);
      if (format == GPUCSR_TEXT_BOEING) R->failed = GPUCSRBoeingHeader(text, bytes, &told.header, &R->fault);
      if (!R->failed && format == GPUCSR_TEXT_MARKET) {
        /* an entry takes two characters at the least: refuse sizes that the file cannot hold before memory is asked for them */
        if (!told.stream && (double)told.header.entries > 0.5 * ((double)GPUCSRSourceBytes(R->source) + 1))
          R->failed = GPUCSRFaultSet(&R->fault, told.header.lines, 0, "the file, of %lld bytes, is too short for the %lld entries announced here", (long long)GPUCSRSourceBytes(R->source), (long long)told.header.entries);
      }
    }
  }
  PetscCall(AgreeOnFault(R));
  PetscCallMPI(MPI_Bcast(&told, sizeof(told), MPI_BYTE, 0, R->comm));
  R->header = told.header;
  R->stream = (int)told.stream;
  if (R->rank && !R->stream && R->header.format != GPUCSR_TEXT_PETSC) R->failed = GPUCSRSourceOpen(R->file, &R->source, &R->fault);
  PetscCall(AgreeOnFault(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All text into pieces, here or on other ranks; then what holds for the file as a whole. The columns of LIBSVM text, where they are known, or a negative number */
static PetscErrorCode Parse(Reader *R, PetscInt columns)
{
  const GPUCSRTextHeader *h = &R->header;
  int64_t                 sums[4], before = 0, mine;

  PetscFunctionBegin;
  R->low  = INT64_MAX;
  R->high = INT64_MIN;
  R->skip = 0;
  if (h->format == GPUCSR_TEXT_LIBSVM) GPUCSRLibsvmBound(&R->header, R->options.base, columns);
  if (R->source && h->format != GPUCSR_TEXT_BOEING) {
    const size_t part = (size_t)GPUCSRSourceBytes(R->source) / ((size_t)R->size * (size_t)R->threads * 4) + 1;

    GPUCSRSourceSkip(R->source, h->bytes, h->lines);
    GPUCSRSourcePart(R->source, R->rank, R->size, R->stream ? (size_t)1 << 22 : PetscMin(PetscMax(part, (size_t)1 << 16), (size_t)1 << 22));
  }
  if (h->format == GPUCSR_TEXT_BOEING) {
    if (R->source) R->failed = ParseBoeing(R, &R->fault);
  } else if (R->stream && R->size > 1) PetscCall(ParseDealt(R));
  else {
    const size_t depth = R->stream ? 4 * (size_t)R->threads : (size_t)GPUCSRSourceBytes(R->source) / ((size_t)R->size << 16) + 3;

    R->failed = GPUCSRSourceParse(R->source, h, R->options.skip, R->threads, PetscMin(depth, (size_t)1 << 16), Handle, R, &R->fault);
  }
  PetscCall(AgreeOnFault(R));
  R->text = R->source ? GPUCSRSourceText(R->source) : 0;
  GPUCSRSourceClose(R->source);
  R->source = NULL;

  mine = (int64_t)R->nblocks;
  PetscCallMPI(MPI_Allreduce(&mine, &R->all, 1, MPIU_INT64, MPI_SUM, R->comm));
  if (!R->stream) { /* those of the ranks one after the other; of a stream they are numbered already */
    PetscCallMPI(MPI_Exscan(&mine, &before, 1, MPIU_INT64, MPI_SUM, R->comm));
    if (R->rank == 0) before = 0;
    for (size_t k = 0; k < R->nblocks; k++) R->number[k] = before + (int64_t)k;
  }
  sums[0] = R->entries;
  sums[1] = R->skipped;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPIU_INT64, MPI_SUM, R->comm));
  R->entries = sums[0];
  R->skipped = sums[1];
  sums[0]    = -R->low;
  sums[1]    = R->high;
  sums[2]    = R->skip ? -R->skip : INT64_MIN;
  sums[3]    = R->text;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPIU_INT64, MPI_MAX, R->comm));
  R->low  = -sums[0];
  R->high = sums[1];
  R->skip = R->skipped ? -sums[2] : 0;
  R->text = sums[3];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks of all ranks, each with a count: how much is counted before each block of this rank, and in all */
static PetscErrorCode CountBefore(Reader *R, PetscBool rows, int64_t **before, int64_t *total)
{
  int64_t *count, sum = 0;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1((size_t)R->all + 1, &count));
  PetscCall(PetscMalloc1(R->nblocks + 1, before));
  for (size_t k = 0; k < R->nblocks; k++) count[R->number[k]] = (int64_t)(rows ? R->block[k].piece.rows : R->block[k].piece.nz);
  for (int64_t at = 0; at < R->all; at += 1 << 30) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, count + at, (PetscMPIInt)PetscMin(R->all - at, 1 << 30), MPIU_INT64, MPI_SUM, R->comm));
  for (int64_t k = 0; k < R->all; k++) {
    const int64_t n = count[k];

    count[k] = sum;
    sum += n;
  }
  for (size_t k = 0; k < R->nblocks; k++) (*before)[k] = count[R->number[k]];
  *total = sum;
  PetscCall(PetscFree(count));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrix Market: as many entries as the size line says? */
static PetscErrorCode CheckEntries(Reader *R)
{
  const GPUCSRTextHeader *h = &R->header;
  GPUCSRSource           *s = NULL;
  const char             *text;
  size_t                  bytes;

  PetscFunctionBegin;
  if (R->entries == h->entries) PetscFunctionReturn(PETSC_SUCCESS);
  /* the line is looked for only now */
  if (R->rank == 0 && !GPUCSRSourceOpen(R->file, &s, &R->fault) && !GPUCSRSourceWhole(s, &text, &bytes, &R->fault)) {
    const int64_t line = h->lines + GPUCSRMarketLine(text + h->bytes, bytes - h->bytes, PetscMin(R->entries, h->entries));

    if (R->entries < h->entries) R->failed = GPUCSRFaultSet(&R->fault, line, 0, "the file ends after %lld of %lld entries", (long long)R->entries, (long long)h->entries);
    else R->failed = GPUCSRFaultSet(&R->fault, line, 0, "more than the %lld entries that the %s", (long long)h->entries, h->array ? "sizes ask for" : "size line announces");
  } else if (R->rank == 0) R->failed = 1;
  GPUCSRSourceClose(s);
  PetscCall(AgreeOnFault(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Send what lies between send[r] and send[r + 1] to rank r, which puts it behind recv[this rank]; elements of some bytes */
static PetscErrorCode Exchange(Reader *R, const void *out, const int64_t send[], void *in, const int64_t recv[], size_t element)
{
  const int64_t limit = (int64_t)((1u << 30) / element);
  MPI_Request  *request;
  PetscMPIInt   n    = 0;
  int64_t       most = 0;

  PetscFunctionBegin;
  for (PetscMPIInt r = 0; r < R->size; r++) most += (send[r + 1] - send[r]) / limit + (recv[r + 1] - recv[r]) / limit + 2;
  PetscCall(PetscMalloc1((size_t)most, &request));
  for (PetscMPIInt r = 0; r < R->size; r++)
    for (int64_t at = recv[r]; at < recv[r + 1]; at += limit) PetscCallMPI(MPI_Irecv((char *)in + (size_t)at * element, (PetscMPIInt)(PetscMin(limit, recv[r + 1] - at) * (int64_t)element), MPI_BYTE, r, 1, R->comm, &request[n++]));
  for (PetscMPIInt r = 0; r < R->size; r++)
    for (int64_t at = send[r]; at < send[r + 1]; at += limit) PetscCallMPI(MPI_Isend((const char *)out + (size_t)at * element, (PetscMPIInt)(PetscMin(limit, send[r + 1] - at) * (int64_t)element), MPI_BYTE, r, 1, R->comm, &request[n++]));
  PetscCallMPI(MPI_Waitall(n, request, MPI_STATUSES_IGNORE));
  PetscCall(PetscFree(request));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which rank owns a row; near is a guess */
static inline PetscMPIInt Owner(const PetscInt ranges[], PetscMPIInt size, PetscInt row, PetscMPIInt near)
{
  PetscMPIInt lo = 0, hi = size;

  if (row >= ranges[near] && row < ranges[near + 1]) return near;
  while (hi - lo > 1) {
    const PetscMPIInt c = lo + (hi - lo) / 2;

    if (ranges[c] <= row) lo = c;
    else hi = c;
  }
  return lo;
}

/* One pass over a block: count its entries by owner, or put them where at[owner] says */
static void Deal(const Reader *R, const GPUCSRPiece *p, int64_t firstrow, PetscInt base, const PetscInt ranges[], int64_t at[], PetscInt i[], PetscInt j[], PetscScalar v[])
{
  PetscMPIInt owner = 0;
  size_t      e     = 0;

#define GIVE(row, column, value) \
  do { \
    owner = Owner(ranges, R->size, row, owner); \
    if (i) { \
      i[at[owner]] = row; \
      j[at[owner]] = column; \
      v[at[owner]] = value; \
    } \
    at[owner]++; \
  } while (0)
  if (p->length) {
    for (size_t r = 0; r < p->rows; r++)
      for (PetscInt k = 0; k < p->length[r]; k++, e++) GIVE((PetscInt)(firstrow + (int64_t)r), p->j[e] - base, p->v[e]);
  } else {
    for (; e < p->nz; e++) {
      const PetscScalar x = p->v ? p->v[e] : (PetscScalar)1;

      GIVE(p->i[e], p->j[e], x);
      if (R->header.symmetry != GPUCSR_GENERAL && p->i[e] != p->j[e]) GIVE(p->j[e], p->i[e], GPUCSRMirror(R->header.symmetry, x));
    }
  }
#undef GIVE
}

/* The pieces of all ranks into one per rank, of triplets in the rows that it owns, both halves of a symmetric matrix */
static PetscErrorCode Redistribute(Reader *R, const int64_t firstrow[], PetscInt base, const PetscInt ranges[])
{
  const size_t size = (size_t)R->size, nb = R->nblocks;
  int64_t     *at, *send, *recv, *counts;
  GPUCSRBlock  got;
  PetscInt    *i, *j;
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(PetscCalloc4(nb * size + 1, &at, size + 1, &send, size + 1, &recv, size, &counts));
#pragma omp parallel for num_threads(R->threads) schedule(dynamic)
  for (size_t k = 0; k < nb; k++) Deal(R, &R->block[k].piece, firstrow ? firstrow[k] : 0, base, ranges, at + k * size, NULL, NULL, NULL);
  for (size_t r = 0; r < size; r++) {
    send[r + 1] = send[r];
    for (size_t k = 0; k < nb; k++) {
      const int64_t n = at[k * size + r];

      at[k * size + r] = send[r + 1];
      send[r + 1] += n;
    }
    counts[r] = send[r + 1] - send[r];
  }
  PetscCallMPI(MPI_Alltoall(MPI_IN_PLACE, 1, MPIU_INT64, counts, 1, MPIU_INT64, R->comm));
  for (size_t r = 0; r < size; r++) recv[r + 1] = recv[r] + counts[r];
  PetscCall(PetscMalloc3((size_t)send[size], &i, (size_t)send[size], &j, (size_t)send[size], &v));
#pragma omp parallel for num_threads(R->threads) schedule(dynamic)
  for (size_t k = 0; k < nb; k++) {
    Deal(R, &R->block[k].piece, firstrow ? firstrow[k] : 0, base, ranges, at + k * size, i, j, v);
    GPUCSRPieceDestroy(&R->block[k].piece);
  }
  memset(&got, 0, sizeof(got));
  R->failed = GPUCSRPieceAllocate(&got.piece, 0, (size_t)recv[size], 1, 1, &R->fault);
  PetscCall(AgreeOnFault(R));
  PetscCall(Exchange(R, i, send, got.piece.i, recv, sizeof(*i)));
  PetscCall(Exchange(R, j, send, got.piece.j, recv, sizeof(*j)));
  PetscCall(Exchange(R, v, send, got.piece.v, recv, sizeof(*v)));
  got.piece.nz   = (size_t)recv[size];
  got.piece.low  = 0;
  got.piece.high = PETSC_MAX_INT;
  PetscCall(PetscFree3(i, j, v));
  PetscCall(PetscFree4(at, send, recv, counts));
  R->nblocks = 0;
  R->failed  = Keep(R, &got, 0, &R->fault);
  PetscCall(AgreeOnFault(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- Into the matrix */

/* Large arrays in large pages, if the system has such: they are filled, and later read by products, with fewer faults */
static void AdviseHuge(void *p, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
  const size_t huge  = (size_t)1 << 21;
  char        *begin = (char *)(((uintptr_t)p + huge - 1) & ~(uintptr_t)(huge - 1)), *end = (char *)(((uintptr_t)p + bytes) & ~(uintptr_t)(huge - 1));

  if (end > begin) madvise(begin, (size_t)(end - begin), MADV_HUGEPAGE);
#else
  (void)p;
  (void)bytes;
#endif
}

/* Arrays of a MATSEQAIJ with rows of these lengths, to be filled; NULL where its type keeps them elsewhere. SeqArraysDone() when they are */
static PetscErrorCode SeqArrays(Mat A, PetscBool preallocate, const PetscInt nnz[], PetscInt **j, PetscScalar **v)
{
  PetscBool       mine;
  const PetscInt *columns;

  PetscFunctionBegin;
  *j = NULL;
  *v = NULL;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &mine, MATSEQAIJ, MATSEQAIJGPUCSR, ""));
  if (!mine) PetscFunctionReturn(PETSC_SUCCESS);
  if (preallocate) PetscCall(MatSeqAIJSetPreallocation(A, 0, nnz));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, NULL, &columns, v, NULL));
  *j = (PetscInt *)columns;
  if (preallocate && nnz) {
    PetscInt m;
    int64_t  nz = 0;

    PetscCall(MatGetLocalSize(A, &m, NULL));
    for (PetscInt r = 0; r < m; r++) nz += nnz[r];
    AdviseHuge(*j, (size_t)nz * sizeof(**j));
    AdviseHuge(*v, (size_t)nz * sizeof(**v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

enum {
  INODE_SAMPLES = 4096,
  PIECE         = 1 << 17 /* numbers that a thread is given */
};

/*
  Assembly compares each row with the one before, in one thread, and gives inodes up, for good, where less than a fifth of the rows are equal to it. What comes out
  of that for a matrix of many rows is told by some: where not even a tenth of them are, the search is spared. They are scattered, as blocks repeat
*/
static PetscErrorCode SpareInodes(Mat A, PetscInt m, const int64_t row[], const PetscInt j[])
{
  uint64_t state = 0;
  int      equal = 0;

  PetscFunctionBegin;
  if (m <= 4 * INODE_SAMPLES) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < INODE_SAMPLES; k++) {
    const PetscInt r = 1 + (PetscInt)((state >> 32) * (uint64_t)(m - 1) >> 32);

    equal += row[r + 1] - row[r] == row[r] - row[r - 1] && !memcmp(j + row[r], j + row[r - 1], (size_t)(row[r + 1] - row[r]) * sizeof(*j));
    state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's multiplier for a congruential generator of 64 bits */
  }
  if (equal < INODE_SAMPLES / 10) PetscCall(MatSetOption(A, MAT_USE_INODES, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SeqArraysDone(Mat A, const int64_t row[], PetscInt j[])
{
  PetscInt m;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(SpareInodes(A, m, row, j));
  PetscCall(MatSeqAIJSetColumnIndices(A, j)); /* they are there; it says so */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assemble(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Local rows, columns global and ascending, into a matrix of any type */
static PetscErrorCode SetRows(Mat A, const int64_t row[], const PetscInt j[], const PetscScalar v[], int threads)
{
  static const char *const counted[] = {"MatSeqAIJSetPreallocation_C", "MatMPIAIJSetPreallocation_C", "MatSeqBAIJSetPreallocation_C", "MatMPIBAIJSetPreallocation_C", "MatSeqSBAIJSetPreallocation_C", "MatMPISBAIJSetPreallocation_C"};
  PetscInt                 m, rstart, cstart, cend, *nnz;
  PetscBool                mpi, preallocated = PETSC_FALSE;
  Mat                      block[2];
  PetscInt                *bj[2];
  PetscScalar             *bv[2];

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  PetscCall(MatGetOwnershipRangeColumn(A, &cstart, &cend));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &mpi, MATMPIAIJ, MATMPIAIJGPUCSR, ""));
  PetscCall(PetscCalloc1(4 * (size_t)m + 1, &nnz)); /* in the diagonal block, off it; the same in the upper triangle */
#pragma omp parallel for num_threads(threads)
  for (PetscInt r = 0; r < m; r++)
    for (int64_t k = row[r]; k < row[r + 1]; k++) {
      const PetscInt off = j[k] < cstart || j[k] >= cend;

      nnz[off * m + r]++;
      if (j[k] >= rstart + r) nnz[(2 + off) * m + r]++;
    }
  if (mpi) {
    PetscCall(MatMPIAIJSetPreallocation(A, 0, nnz, 0, nnz + m));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    for (int b = 0; b < 2; b++) PetscCall(SeqArrays(block[b], PETSC_FALSE, NULL, &bj[b], &bv[b]));
    preallocated = PETSC_TRUE;
    mpi          = (PetscBool)(bj[0] && bj[1]);
  }
  if (mpi) {
    int64_t *at[2];

    PetscCall(PetscMalloc2((size_t)m + 1, &at[0], (size_t)m + 1, &at[1]));
    for (int b = 0; b < 2; b++) {
      at[b][0] = 0;
      for (PetscInt r = 0; r < m; r++) at[b][r + 1] = at[b][r] + nnz[b * m + r];
    }
#pragma omp parallel for num_threads(threads)
    for (PetscInt r = 0; r < m; r++) {
      int64_t to[2] = {at[0][r], at[1][r]};

      for (int64_t k = row[r]; k < row[r + 1]; k++) {
        const int off = j[k] < cstart || j[k] >= cend;

        bj[off][to[off]]   = off ? j[k] : j[k] - cstart; /* the block off the diagonal gets its own numbers of columns at assembly */
        bv[off][to[off]++] = v[k];
      }
    }
    for (int b = 0; b < 2; b++) PetscCall(SeqArraysDone(block[b], at[b], bj[b]));
    PetscCall(PetscFree2(at[0], at[1]));
  } else {
    for (size_t k = 0; k < sizeof(counted) / sizeof(counted[0]) && !preallocated; k++) {
      void (*found)(void);

      PetscCall(PetscObjectQueryFunction((PetscObject)A, counted[k], &found));
      if (!found) continue;
      PetscCall(MatXAIJSetPreallocation(A, 1, nnz, nnz + m, nnz + 2 * m, nnz + 3 * m));
      preallocated = PETSC_TRUE;
    }
    if (!preallocated) { /* these two do nothing to other types */
      PetscCall(MatSeqSELLSetPreallocation(A, 0, nnz));
      PetscCall(MatMPISELLSetPreallocation(A, 0, nnz, 0, nnz + m));
      PetscCall(MatSetUp(A));
    }
    PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &mpi, MATSEQSBAIJ, MATMPISBAIJ, ""));
    if (mpi) PetscCall(MatSetOption(A, MAT_IGNORE_LOWER_TRIANGULAR, PETSC_TRUE));
    for (PetscInt r = 0; r < m; r++) {
      const PetscInt g = rstart + r;

      PetscCall(MatSetValues(A, 1, &g, (PetscInt)(row[r + 1] - row[r]), j + row[r], v + row[r], INSERT_VALUES));
    }
  }
  PetscCall(PetscFree(nnz));
  PetscCall(Assemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pieces of this rank into the matrix, whose type and layout are set */
static PetscErrorCode FillMatrix(Reader *R, Mat A, PetscInt base)
{
  GPUCSRAssembly assembly;
  int64_t       *row, equal = 0;
  PetscInt       rstart, rend, m, *nnz, *j;
  PetscScalar   *v;
  PetscBool      direct, more = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  m                 = rend - rstart;
  assembly.symmetry = R->size > 1 ? GPUCSR_GENERAL : R->header.symmetry;
  assembly.rstart   = rstart;
  assembly.rend     = rend;
  assembly.threads  = R->threads;
  assembly.npieces  = R->nblocks;
  PetscCall(PetscMalloc1(R->nblocks + 1, &assembly.piece));
  for (size_t k = 0; k < R->nblocks; k++) assembly.piece[k] = R->block[k].piece;
  PetscCall(PetscMalloc2((size_t)m + 1, &R->row, (size_t)m, &R->nnz));
  row = R->row;
  nnz = R->nnz;
  GPUCSRAssemblyCount(&assembly, row);
  if (row[m] > PETSC_MAX_INT) Fail(R, 0, "one rank would have more entries than the integers of this PETSc can count: use more ranks, or a PETSc with 64-bit indices");
  PetscCall(AgreeOnFault(R));
  for (PetscInt r = 0; r < m; r++) {
    nnz[r] = (PetscInt)(row[r + 1] - row[r]);
    more   = (PetscBool)(more || nnz[r] > A->cmap->N);
  }
  /* a row with equal places may be longer than PETSc lets a row be */
  if (more || R->size > 1) j = NULL;
  else PetscCall(SeqArrays(A, PETSC_TRUE, nnz, &j, &v));
  direct = (PetscBool)(j != NULL);
  if (!direct) {
    PetscCall(PetscMalloc2((size_t)row[m] + 1, &R->j, (size_t)row[m] + 1, &R->v));
    j = R->j;
    v = R->v;
  }
  R->failed = GPUCSRAssemblyFill(&assembly, base, row, j, v, &equal, &R->fault);
  PetscCall(PetscFree(assembly.piece));
  PetscCall(AgreeOnFault(R));
  if (direct && equal) { /* rare: over again with the lengths that are left */
    PetscCall(PetscMalloc2((size_t)row[m] + 1, &R->j, (size_t)row[m] + 1, &R->v));
    memcpy(R->j, j, (size_t)row[m] * sizeof(*j));
    memcpy(R->v, v, (size_t)row[m] * sizeof(*v));
    j      = R->j;
    v      = R->v;
    direct = PETSC_FALSE;
  }
  if (equal) GPUCSRAssemblyCompact(m, row, j, v);
  ierr = PETSC_SUCCESS;
#pragma omp parallel num_threads(R->threads)
  {
    /* memory goes back to the system beside what PETSc does with the columns in one thread */
#pragma omp master
    if (direct) ierr = SeqArraysDone(A, row, j);
#pragma omp for schedule(dynamic)
    for (size_t k = 0; k < R->nblocks; k++) GPUCSRPieceDestroy(&R->block[k].piece);
  }
  PetscCall(ierr);
  if (direct) PetscCall(Assemble(A));
  else PetscCall(SetRows(A, row, j, v, R->threads));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Labels or queries of the rows of LIBSVM text */
static PetscErrorCode FillVector(Reader *R, Mat A, const int64_t firstrow[], PetscBool labels, Vec *x)
{
  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, NULL, x));
  PetscCall(VecSet(*x, 0));
  for (size_t k = 0; k < R->nblocks; k++) {
    const GPUCSRPiece *p = &R->block[k].piece;
    PetscInt          *ix;
    PetscScalar       *values;

    if (!labels && !p->query) continue;
    PetscCall(PetscMalloc2(p->rows, &ix, p->rows, &values));
    for (size_t r = 0; r < p->rows; r++) {
      ix[r]     = (PetscInt)(firstrow[k] + (int64_t)r);
      values[r] = labels ? (PetscScalar)p->label[r] : (PetscScalar)PetscMax(p->query[r], 0);
    }
    PetscCall(VecSetValues(*x, (PetscInt)p->rows, ix, values, INSERT_VALUES));
    PetscCall(PetscFree2(ix, values));
  }
  PetscCall(VecAssemblyBegin(*x));
  PetscCall(VecAssemblyEnd(*x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sizes that the file tells, where the caller has set none; those that he has set must be the file's */
static PetscErrorCode SetLayout(Reader *R, Mat A, PetscInt M, PetscInt N)
{
  PetscInt m, n, has[2];

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &has[0], &has[1]));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCheck(has[0] < 0 || has[0] == M, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " rows where the matrix has %" PetscInt_FMT, R->file, M, has[0]);
  PetscCheck(has[1] < 0 || has[1] == N, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " columns where the matrix has %" PetscInt_FMT, R->file, N, has[1]);
  PetscCall(MatSetSizes(A, m, n, M, N));
  if (!((PetscObject)A)->type_name) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(PetscLayoutSetUp(A->rmap));
  PetscCall(PetscLayoutSetUp(A->cmap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoadText(Reader *R, Mat A, Vec *labels, Vec *queries, PetscInt *basefound)
{
  const GPUCSRTextHeader *h       = &R->header;
  const PetscInt          columns = R->options.columns >= 0 ? R->options.columns : A->cmap->N;
  int64_t                 rows;
  PetscInt                M = (PetscInt)h->m, N = (PetscInt)h->n, base = 0;
  int                     has, any;

  PetscFunctionBegin;
  PetscCall(Parse(R, columns));
  R->parsed = MPI_Wtime();
  if (h->format == GPUCSR_TEXT_MARKET) {
    PetscCall(CheckEntries(R));
    if (h->array) {
      int64_t *first, total;

      PetscCall(CountBefore(R, PETSC_FALSE, &first, &total));
      for (size_t k = 0; k < R->nblocks; k++) GPUCSRMarketPlace(h, first[k], &R->block[k].piece);
      PetscCall(PetscFree(first));
    }
  } else if (h->format == GPUCSR_TEXT_LIBSVM) {
    PetscCall(CountBefore(R, PETSC_TRUE, &R->firstrow, &rows));
    base = R->options.base >= 0 ? R->options.base : R->low == 0 ? 0 : 1;
    if (R->low == INT64_MAX) { /* no entry at all */
      R->low  = base;
      R->high = base - 1;
    }
    N = columns >= 0 ? columns : (PetscInt)(R->high + 1 - base);
    /* what the parser could not know: an index 0 elsewhere makes the last index one less */
    PetscCheck(R->high - base < N, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has index %lld, which is beyond %" PetscInt_FMT " columns that begin with index %" PetscInt_FMT, R->file, (long long)R->high, N, base);
    PetscCheck(rows <= PETSC_MAX_INT, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has %lld rows, more than the integers of this PETSc can count", R->file, (long long)rows);
    M = (PetscInt)rows;
  }
  *basefound = base;
  PetscCall(SetLayout(R, A, M, N));
  if (labels && R->firstrow) PetscCall(FillVector(R, A, R->firstrow, PETSC_TRUE, labels));
  has = 0;
  for (size_t k = 0; k < R->nblocks; k++) has |= R->block[k].piece.query != NULL;
  PetscCallMPI(MPI_Allreduce(&has, &any, 1, MPI_INT, MPI_MAX, R->comm));
  if (queries && any) PetscCall(FillVector(R, A, R->firstrow, PETSC_FALSE, queries));
  if (R->size > 1) {
    PetscCall(Redistribute(R, R->firstrow, base, A->rmap->range));
    base = 0;
  }
  PetscCall(FillMatrix(R, A, base));
  PetscFunctionReturn(PETSC_SUCCESS);
}
/* ---- PETSc binary */

/* What we do not read ourselves: matrices that were stored dense, scalars that are not double */
static PetscErrorCode LoadViewer(Reader *R, Mat A, Vec *labels)
{
  PetscViewer  viewer;
  PetscInt     M, N;
  const char  *text;
  size_t       bytes;
  GPUCSRBinary b;
  int          follows = 0;

  PetscFunctionBegin;
  if (!((PetscObject)A)->type_name) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(PetscViewerBinaryOpen(R->comm, R->file, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(A, viewer));
  PetscCall(MatGetSize(A, &M, &N));
  if (R->rank == 0 && !GPUCSRSourceHead(R->source, &text, &bytes, &R->fault)) follows = !GPUCSRBinaryHeader(text, bytes, &b, &R->fault) && b.nz >= 0 && b.labels;
  PetscCallMPI(MPI_Bcast(&follows, 1, MPI_INT, 0, R->comm));
  if (follows && labels) {
    PetscCall(MatCreateVecs(A, NULL, labels));
    PetscCall(VecLoad(*labels, viewer));
  }
  PetscCall(PetscViewerDestroy(&viewer));
  R->parsed = MPI_Wtime();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Values, and beside them what PETSc does with the columns in one thread: a copy to themselves, by which A, where it is given, takes them for its own. With many threads the others
  would wait for that one, so it comes after the columns then. With one or two it comes before them, as the first touch of their memory, and what is copied is in the caches.
*/
static PetscErrorCode FillValues(const Reader *R, Mat A, const GPUCSRBinary *b, int64_t first, int64_t nz, PetscInt j[], PetscScalar v[])
{
  const unsigned char *from = b->at + b->values + 8 * (size_t)first;
  PetscErrorCode       ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
#pragma omp parallel num_threads(R->threads)
  {
#pragma omp master
    if (A) ierr = MatSeqAIJSetColumnIndices(A, j);
#pragma omp for schedule(dynamic)
    for (int64_t k = 0; k < nz; k += PIECE) GPUCSRBinaryReals(from + 8 * (size_t)k, PetscMin(nz - k, (int64_t)PIECE), v + k, 1);
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoadBinary(Reader *R, Mat A, Vec *labels)
{
  const char  *text;
  size_t       bytes;
  GPUCSRBinary b;
  int64_t     *row, first = 0, last, bad;
  PetscInt     m, rstart, *nnz, *j;
  PetscScalar *v, *y;
  PetscBool    direct;
  const int    early = R->threads <= 2; /* see FillValues() */

  PetscFunctionBegin;
  if (R->rank) R->failed = GPUCSRSourceOpen(R->file, &R->source, &R->fault);
  PetscCall(AgreeOnFault(R));
  R->failed = GPUCSRSourceWhole(R->source, &text, &bytes, &R->fault) || GPUCSRBinaryHeader(text, bytes, &b, &R->fault);
  if (!R->failed && R->stream && (b.nz < 0 || !GPUCSR_SCALAR_IS_DOUBLE)) Fail(R, 0, "is a matrix stored dense, or of other scalars than doubles, inside a compressed file: decompress it first");
  PetscCall(AgreeOnFault(R));
  R->text    = (int64_t)b.length;
  R->entries = b.nz < 0 ? b.M * b.N : b.nz;
  if (b.nz < 0 || !GPUCSR_SCALAR_IS_DOUBLE) {
    PetscCall(LoadViewer(R, A, labels));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(SetLayout(R, A, (PetscInt)b.M, (PetscInt)b.N));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  PetscCall(PetscMalloc2((size_t)m + 1, &R->row, (size_t)m, &R->nnz));
  row    = R->row;
  nnz    = R->nnz;
  row[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    const int64_t n = GPUCSRBinaryInteger(b.at + b.lengths + (size_t)(rstart + r) * b.width, b.width);

    if ((n < 0 || n > b.N) && !R->failed) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, n < 0 ? "row %lld has %lld entries" : "row %lld has %lld entries in a matrix of %lld columns", (long long)rstart + r, (long long)n, (long long)b.N);
    nnz[r]     = R->failed ? 0 : (PetscInt)n;
    row[r + 1] = row[r] + nnz[r];
  }
  PetscCall(AgreeOnFault(R));
  PetscCallMPI(MPI_Scan(&row[m], &last, 1, MPIU_INT64, MPI_SUM, R->comm));
  first = last - row[m];
  PetscCallMPI(MPI_Bcast(&last, 1, MPIU_INT64, R->size - 1, R->comm));
  if (last != b.nz) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "the rows have %lld entries together, the header says %lld", (long long)last, (long long)b.nz);
  else if (row[m] > PETSC_MAX_INT) Fail(R, 0, "one rank would have more entries than the integers of this PETSc can count: use more ranks, or a PETSc with 64-bit indices");
  PetscCall(AgreeOnFault(R));
  if (R->size > 1) j = NULL;
  else PetscCall(SeqArrays(A, PETSC_TRUE, nnz, &j, &v));
  direct = (PetscBool)(j != NULL);
  if (!direct) {
    PetscCall(PetscMalloc2((size_t)row[m] + 1, &R->j, (size_t)row[m] + 1, &R->v));
    j = R->j;
    v = R->v;
  }
  if (early) PetscCall(FillValues(R, direct ? A : NULL, &b, first, row[m], j, v));
  bad = GPUCSRBinaryColumns(&b, m, row, first, j, R->threads);
  for (int64_t k = bad < 0 ? 0 : row[bad]; bad >= 0 && k < row[bad + 1] && !R->failed; k++) {
    const int64_t x = GPUCSRBinaryInteger(b.at + b.columns + (size_t)(first + k) * b.width, b.width);

    if (x < 0 || x >= b.N) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "row %lld has an entry in column %lld of %lld", (long long)(rstart + bad), (long long)x, (long long)b.N);
    else if (k > row[bad] && j[k] <= j[k - 1]) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "the columns of row %lld do not increase", (long long)(rstart + bad));
  }
  if (R->failed && direct) PetscCall(MatSeqAIJSetPreallocation(A, 0, nnz)); /* its rows are empty again */
  PetscCall(AgreeOnFault(R));
  if (!early) PetscCall(FillValues(R, direct ? A : NULL, &b, first, row[m], j, v));
  if (direct) PetscCall(SpareInodes(A, m, row, j));
  R->parsed = MPI_Wtime();
  if (direct) PetscCall(Assemble(A));
  else PetscCall(SetRows(A, row, j, v, R->threads));
  if (b.labels && labels) {
    PetscCall(MatCreateVecs(A, NULL, labels));
    PetscCall(VecGetArrayWrite(*labels, &y));
    GPUCSRBinaryReals(b.at + b.labels + 8 * (size_t)rstart, m, y, R->threads);
    PetscCall(VecRestoreArrayWrite(*labels, &y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Load(Reader *R, Mat A, Vec *labels, Vec *queries, PetscInt *base, int64_t *bytes, double times[])
{
  PetscFunctionBegin;
  times[0] = MPI_Wtime();
  PetscCall(Open(R));
  *bytes   = R->source ? GPUCSRSourceBytes(R->source) : 0;
  R->begun = MPI_Wtime();
  if (R->header.format == GPUCSR_TEXT_PETSC) PetscCall(LoadBinary(R, A, labels));
  else PetscCall(LoadText(R, A, labels, queries, base));
  times[3] = MPI_Wtime() - R->parsed;
  times[2] = R->parsed - R->begun;
  times[1] = R->begun - times[0];
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
. queries - a new vector with the numbers after qid: in svmlight files, 0 for a row without, `NULL` where the file has none; or pass `NULL`
- info    - what was found, or pass `NULL`

  Level: intermediate

  Notes:
  The file is LIBSVM or svmlight text, Matrix Market, Harwell-Boeing, Rutherford-Boeing, or PETSc binary, told by its content, and may be compressed by
  gzip, xz or bzip2. Threads (`MatGPUCSRFileOptions`) and ranks read it in parallel, into a matrix of any type. In PETSc binary the labels are the
  vector that follows the matrix.

  Rows are parted among the ranks as the sizes of `A` say, or as `PETSC_DECIDE` does. The columns of LIBSVM text are those of `A`, if set, or of the options;
  so the columns of a second file can be made those of a first one.

  Where a sample of the rows says that PETSc's search for equal neighbours would find too few to use, it is spared, by `MAT_USE_INODES`.

  A line that is wrong is an error with the file, the line, the column, and what was expected there, on all ranks; or it is left out and counted in
  the info.

.seealso: `MatGPUCSRFileOptions`, `MatGPUCSRFileInfo`, `MatGPUCSRFileOptionsInitialize()`, `MatLoad()`
@*/
PetscErrorCode MatGPUCSRLoadFile(Mat A, const char file[], const MatGPUCSRFileOptions *options, Vec *labels, Vec *queries, MatGPUCSRFileInfo *info)
{
  static const MatGPUCSRFileFormat formats[] = {MAT_GPUCSR_FILE_LIBSVM, MAT_GPUCSR_FILE_MARKET, MAT_GPUCSR_FILE_BOEING, MAT_GPUCSR_FILE_PETSC};
  Reader                           R;
  PetscErrorCode                   ierr;
  const char                      *prefix;
  PetscInt                         base     = 0;
  double                           times[4] = {0, 0, 0, 0}, slowest[4];
  int64_t                          bytes    = 0;

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

  ierr = Load(&R, A, labels, queries, &base, &bytes, times);
  PetscCall(ReaderDestroy(&R));
  PetscCall(ierr);
  if (info) {
    PetscCallMPI(MPI_Allreduce(times, slowest, 4, MPI_DOUBLE, MPI_MAX, R.comm));
    PetscCallMPI(MPI_Bcast(&bytes, 1, MPIU_INT64, 0, R.comm));
    info->format        = formats[R.header.format];
    info->base          = base;
    info->bytes         = bytes;
    info->text          = R.text;
    info->entries       = R.entries;
    info->skipped       = R.skipped;
    info->line          = R.skip;
    info->read_time     = slowest[1];
    info->parse_time    = slowest[2];
    info->assemble_time = slowest[3];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
