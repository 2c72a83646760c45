/*
  Text into a matrix: each rank parses its part into pieces, entries travel to the owners of their rows, and each rank assembles its own rows.
*/
#include "loadfile.h"
#include <stdlib.h>
#include <string.h>

/* Keeps a parsed block; number: in file order */
static int Keep(GPUCSRReader *R, GPUCSRBlock *block, int64_t number, GPUCSRFault *f)
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
  R->lines += (int64_t)block->piece.entries;
  R->skipped += (int64_t)block->piece.skipped;
  if (block->piece.nz) {
    R->low  = PetscMin(R->low, block->piece.low);
    R->high = PetscMax(R->high, block->piece.high);
  }
  R->number[R->nblocks]  = number;
  R->block[R->nblocks++] = *block;
  memset(&block->piece, 0, sizeof(block->piece));
  R->block[R->nblocks - 1].text = NULL; /* the caller owns it */
  return 0;
}

static int Handle(void *ctx, GPUCSRBlock *block, GPUCSRFault *f)
{
  GPUCSRReader *R = (GPUCSRReader *)ctx;

  if (block->piece.skipped) block->piece.skip += GPUCSRBlockLine(block) - 1;
  return Keep(R, block, (int64_t)R->nblocks, f);
}

/* A stream on several ranks: the first rank reads, all ranks parse, one block each in turn */
static PetscErrorCode ParseDealt(GPUCSRReader *R)
{
  int64_t     head[2] = {0, 0}; /* bytes of text, number of its first line */
  GPUCSRBlock block;

  PetscFunctionBegin;
  for (int64_t k = 0;; k++) {
    const PetscMPIInt to = (PetscMPIInt)(k % R->size);

    if (R->rank == 0) {
      if (R->failed || (R->failed = GPUCSRInputNext(R->source, &block, &R->fault)) || !block.bytes) break;
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
      block.text  = (char *)malloc(block.bytes);
      PetscCheck(block.text, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s: no memory for %zu bytes of text", R->file, block.bytes);
      for (size_t at = 0; at < block.bytes; at += 1 << 30) PetscCallMPI(MPI_Recv(block.text + at, (PetscMPIInt)PetscMin(block.bytes - at, (size_t)1 << 30), MPI_BYTE, 0, 0, R->comm, MPI_STATUS_IGNORE));
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
    GPUCSRBlockDestroy(&block);
  }
  if (R->rank == 0) {
    head[0] = 0;
    for (PetscMPIInt to = 1; to < R->size; to++) PetscCallMPI(MPI_Send(head, 2, MPIU_INT64, to, 0, R->comm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Harwell-Boeing: each rank that can read takes a part of the entries, and splits it for its threads */
static int ParseBoeing(GPUCSRReader *R, GPUCSRFault *f)
{
  const PetscMPIInt rank = R->stream ? 0 : R->rank, size = R->stream ? 1 : R->size;
  const int64_t     nz = R->header.entries, first = nz / size * rank, last = rank + 1 == size ? nz : nz / size * (rank + 1), parts = PetscMin(4 * R->threads, (last - first) / 4096 + 1);
  GPUCSRLines       lines;
  GPUCSRBlock      *block;
  int64_t          *pointer = NULL;
  int               failed;

  if (GPUCSRInputSettle(R->source, f) || GPUCSRLinesCreate(R->source, R->threads, &lines, f)) return 1;
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

/* Totals over the pieces of all ranks: counts, smallest and largest index, numbers of blocks */
static PetscErrorCode Total(GPUCSRReader *R)
{
  int64_t sums[4], before = 0, mine = (int64_t)R->nblocks;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(&mine, &R->all, 1, MPIU_INT64, MPI_SUM, R->comm));
  if (!R->stream) { /* rank after rank; blocks of a stream have numbers already */
    PetscCallMPI(MPI_Exscan(&mine, &before, 1, MPIU_INT64, MPI_SUM, R->comm));
    if (R->rank == 0) before = 0;
    for (size_t k = 0; k < R->nblocks; k++) R->number[k] = before + (int64_t)k;
  }
  sums[0] = R->entries;
  sums[1] = R->skipped;
  sums[2] = R->lines;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPIU_INT64, MPI_SUM, R->comm));
  R->entries = sums[0];
  R->skipped = sums[1];
  R->lines   = sums[2];
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

/* All text into pieces, here or on other ranks; then checks of the file as a whole. columns: of LIBSVM text, negative if unknown */
static PetscErrorCode Parse(GPUCSRReader *R, PetscInt columns)
{
  const GPUCSRTextHeader *h = &R->header;

  PetscFunctionBegin;
  R->low  = INT64_MAX;
  R->high = INT64_MIN;
  R->skip = 0;
  if (h->format == GPUCSR_TEXT_LIBSVM) GPUCSRLibsvmBound(&R->header, R->options.base, columns);
  if (R->source && h->format != GPUCSR_TEXT_BOEING) {
    const size_t part = (size_t)GPUCSRInputBytes(R->source) / ((size_t)R->size * (size_t)R->threads * 4) + 1;

    GPUCSRInputSkip(R->source, h->bytes, h->lines);
    R->failed = GPUCSRInputPart(R->source, R->rank, R->size, R->stream ? (size_t)1 << 22 : PetscMin(PetscMax(part, (size_t)1 << 16), (size_t)1 << 22), &R->fault);
    if (!R->stream) PetscCall(GPUCSRReaderAgree(R));
  }
  if (h->format == GPUCSR_TEXT_BOEING) {
    if (R->source) R->failed = ParseBoeing(R, &R->fault);
  } else if (R->stream && R->size > 1) PetscCall(ParseDealt(R));
  else {
    const size_t depth = R->stream ? 4 * (size_t)R->threads : (size_t)GPUCSRInputBytes(R->source) / ((size_t)R->size << 16) + 3;

    R->failed = GPUCSRInputParse(R->source, h, R->options.skip, R->threads, PetscMin(depth, (size_t)1 << 16), Handle, R, &R->fault);
  }
  PetscCall(GPUCSRReaderAgree(R));
  R->text = R->source ? GPUCSRInputText(R->source) : 0;
  GPUCSRInputClose(R->source);
  R->source = NULL;
  PetscCall(Total(R));
  if (R->skipped && R->skipped == R->lines) R->failed = GPUCSRFaultSet(&R->fault, R->skip, 0, GPUCSR_NOTHING_UNDERSTOOD, (long long)R->lines);
  PetscCall(GPUCSRReaderAgree(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums of a count over the blocks of all ranks: before each block of this rank, and in all */
static PetscErrorCode CountBefore(GPUCSRReader *R, PetscBool rows, int64_t **before, int64_t *total)
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

/* The line of an entry, found by reading the file again; 0 if that is not possible */
static int64_t LineOfEntry(const GPUCSRReader *R, int64_t entry)
{
  GPUCSRInput     *s = NULL;
  GPUCSRTextHeader h;
  GPUCSRFault      f;
  GPUCSRBlock      block;
  int64_t          line = 0;

  if (R->regular && !GPUCSRInputOpen(R->file, 0, &s, &f) && !GPUCSRInputHeader(s, GPUCSR_TEXT_MARKET, &h, &f)) {
    GPUCSRInputSkip(s, h.bytes, h.lines);
    if (!GPUCSRInputPart(s, 0, 1, (size_t)1 << 22, &f))
      for (line = h.lines + 1; entry >= 0 && !GPUCSRInputNext(s, &block, &f) && block.bytes; GPUCSRBlockDestroy(&block)) {
        if (GPUCSRBlockLoad(&block, &f)) entry = -1;
        else line += GPUCSRMarketLine(block.text, block.bytes, &entry) - 1;
      }
  }
  GPUCSRInputClose(s);
  return line;
}

/* Matrix Market: are there as many entries as the size line announces? */
static PetscErrorCode CheckEntries(GPUCSRReader *R)
{
  const GPUCSRTextHeader *h = &R->header;

  PetscFunctionBegin;
  if (R->entries == h->entries) PetscFunctionReturn(PETSC_SUCCESS);
  if (R->rank == 0) { /* the line is searched only now */
    const int64_t line = LineOfEntry(R, PetscMin(R->entries, h->entries));

    if (R->entries < h->entries) R->failed = GPUCSRFaultSet(&R->fault, line, 0, "the file ends after %lld of %lld entries", (long long)R->entries, (long long)h->entries);
    else R->failed = GPUCSRFaultSet(&R->fault, line, 0, "more than the %lld entries that the %s", (long long)h->entries, h->array ? "sizes ask for" : "size line announces");
  }
  PetscCall(GPUCSRReaderAgree(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sends the elements from send[r] to send[r + 1] to rank r, which stores them from recv[this rank] on; elements of some bytes */
static PetscErrorCode Exchange(GPUCSRReader *R, const void *out, const int64_t send[], void *in, const int64_t recv[], size_t element)
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

/* The rank that owns a row; near is a guess */
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

/* One pass over a block: counts its entries by owner, or stores them in `to` at at[owner] */
static void Deal(const GPUCSRReader *R, const GPUCSRPiece *p, int64_t firstrow, PetscInt base, const PetscInt ranges[], int64_t at[], const GPUCSRPiece *to)
{
  PetscMPIInt owner = 0;
  size_t      e     = 0;

#define GIVE(row, column, value) \
  do { \
    owner = Owner(ranges, R->size, row, owner); \
    if (to) { \
      to->i[at[owner]] = row; \
      to->j[at[owner]] = column; \
      to->v[at[owner]] = value; \
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

/* The pieces of all ranks into one piece per rank, of triplets in its own rows, both halves of a symmetric matrix */
static PetscErrorCode Redistribute(GPUCSRReader *R, const int64_t firstrow[], PetscInt base, const PetscInt ranges[])
{
  const size_t size = (size_t)R->size, nb = R->nblocks;
  int64_t     *at, *send, *recv, *counts;
  GPUCSRBlock  got;
  GPUCSRPiece  to;

  PetscFunctionBegin;
  PetscCall(PetscCalloc4(nb * size + 1, &at, size + 1, &send, size + 1, &recv, size, &counts));
#pragma omp parallel for num_threads(R->threads) schedule(dynamic)
  for (size_t k = 0; k < nb; k++) Deal(R, &R->block[k].piece, firstrow ? firstrow[k] : 0, base, ranges, at + k * size, NULL);
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
  PetscCall(PetscMalloc3((size_t)send[size], &to.i, (size_t)send[size], &to.j, (size_t)send[size], &to.v));
#pragma omp parallel for num_threads(R->threads) schedule(dynamic)
  for (size_t k = 0; k < nb; k++) {
    Deal(R, &R->block[k].piece, firstrow ? firstrow[k] : 0, base, ranges, at + k * size, &to);
    GPUCSRPieceDestroy(&R->block[k].piece);
  }
  memset(&got, 0, sizeof(got));
  R->failed = GPUCSRPieceAllocate(&got.piece, 0, (size_t)recv[size], 1, 1, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  PetscCall(Exchange(R, to.i, send, got.piece.i, recv, sizeof(*to.i)));
  PetscCall(Exchange(R, to.j, send, got.piece.j, recv, sizeof(*to.j)));
  PetscCall(Exchange(R, to.v, send, got.piece.v, recv, sizeof(*to.v)));
  got.piece.nz   = (size_t)recv[size];
  got.piece.low  = 0;
  got.piece.high = PETSC_MAX_INT;
  PetscCall(PetscFree3(to.i, to.j, to.v));
  PetscCall(PetscFree4(at, send, recv, counts));
  R->nblocks = 0;
  R->failed  = Keep(R, &got, 0, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pieces of this rank into the matrix, whose type and layout are set */
static PetscErrorCode FillMatrix(GPUCSRReader *R, Mat A, PetscInt base)
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
  if (row[m] > PETSC_MAX_INT) GPUCSRReaderFail(R, "one rank would have more entries than the integers of this PETSc can count: use more ranks, or a PETSc with 64-bit indices");
  PetscCall(GPUCSRReaderAgree(R));
  for (PetscInt r = 0; r < m; r++) {
    nnz[r] = (PetscInt)(row[r + 1] - row[r]);
    more   = (PetscBool)(more || nnz[r] > A->cmap->N);
  }
  /* a row with equal places may be longer than PETSc allows */
  if (more || R->size > 1) j = NULL;
  else PetscCall(GPUCSRSeqArrays(A, PETSC_TRUE, nnz, &j, &v));
  direct = (PetscBool)(j != NULL);
  if (!direct) {
    PetscCall(PetscMalloc2((size_t)row[m] + 1, &R->j, (size_t)row[m] + 1, &R->v));
    j = R->j;
    v = R->v;
  }
  R->failed = GPUCSRAssemblyFill(&assembly, base, row, j, v, &equal, &R->fault);
  PetscCall(PetscFree(assembly.piece));
  PetscCall(GPUCSRReaderAgree(R));
  if (direct && equal) { /* rare: once more with the remaining lengths */
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
    /* returns memory to the system while PETSc handles the columns in one thread */
#pragma omp master
    if (direct) ierr = GPUCSRSeqArraysDone(A, row, j);
#pragma omp for schedule(dynamic)
    for (size_t k = 0; k < R->nblocks; k++) GPUCSRPieceDestroy(&R->block[k].piece);
  }
  PetscCall(ierr);
  if (direct) PetscCall(GPUCSRAssemble(A));
  else PetscCall(GPUCSRSetRows(A, row, j, v, R->threads));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Labels or queries of the rows of LIBSVM text */
static PetscErrorCode FillVector(GPUCSRReader *R, Mat A, const int64_t firstrow[], PetscBool labels, Vec *x)
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

/* The entries of this rank's pieces, and the other half of symmetric matrices */
static PetscErrorCode Count(GPUCSRReader *R, const void *ctx, GPUCSRBins *bins)
{
  PetscFunctionBegin;
  (void)ctx;
  for (size_t k = 0; k < R->nblocks; k++) {
    const GPUCSRPiece *p = &R->block[k].piece;

    if (p->length) {
      for (size_t r = 0; r < p->rows; r++) GPUCSRBinsAdd(bins, R->firstrow[k] + (int64_t)r, p->length[r]);
      continue;
    }
    for (size_t e = 0; e < p->nz; e++) {
      GPUCSRBinsAdd(bins, p->i[e], 1);
      if (R->header.symmetry != GPUCSR_GENERAL && p->i[e] != p->j[e]) GPUCSRBinsAdd(bins, p->j[e], 1);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRLoadText(GPUCSRReader *R, Mat A, Vec *labels, Vec *queries, PetscInt *basefound)
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
    /* unknown to the parser: an index 0 elsewhere lowers the last index by one */
    PetscCheck(R->high - base < N, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has index %lld, which is beyond %" PetscInt_FMT " columns that begin with index %" PetscInt_FMT, R->file, (long long)R->high, N, base);
    PetscCheck(rows <= PETSC_MAX_INT, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has %lld rows, more than the integers of this PETSc can count", R->file, (long long)rows);
    M = (PetscInt)rows;
  }
  *basefound = base;
  if (A->rmap->N < 0 && GPUCSRTooTall(M, R->text)) R->failed = GPUCSRFaultSet(&R->fault, h->lines, 0, GPUCSR_TOO_TALL, (long long)M, (long long)R->text);
  PetscCall(GPUCSRReaderAgree(R));
  PetscCall(GPUCSRReaderLayout(R, A, M, N, Count, NULL));
  if (labels && R->firstrow && !h->unlabelled) PetscCall(FillVector(R, A, R->firstrow, PETSC_TRUE, labels));
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
