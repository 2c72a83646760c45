/*
  Text into a matrix: each rank parses its part into pieces, entries travel to the owners of their rows, and each rank assembles its own rows.
*/
#include "loadfile.h"
#include <stdlib.h>
#include <string.h>

static int Keep(GPUCSRReader *R, GPUCSRPiece *p, GPUCSRFault *f)
{
  if (R->npieces == R->room) {
    const size_t room = R->room ? 2 * R->room : 64;
    GPUCSRPiece *more = (GPUCSRPiece *)realloc(R->piece, room * sizeof(*more));

    if (!more) return GPUCSRFaultSet(f, 0, 0, "no memory for %zu pieces", room);
    R->piece = more;
    R->room  = room;
  }
  R->piece[R->npieces++] = *p;
  memset(p, 0, sizeof(*p));
  return 0;
}

static int Handle(void *ctx, GPUCSRBlock *block, GPUCSRFault *f)
{
  GPUCSRReader *R = (GPUCSRReader *)ctx;
  GPUCSRPiece  *p = &block->piece;

  if (p->skipped && !R->info.line) R->info.line = p->skip + GPUCSRBlockLine(block) - 1;
  R->info.entries += (int64_t)(p->length ? p->nz : p->entries);
  R->lines += (int64_t)p->entries;
  R->info.skipped += (int64_t)p->skipped;
  if (p->nz) {
    R->low  = PetscMin(R->low, p->low);
    R->high = PetscMax(R->high, p->high);
  }
  return Keep(R, p, f);
}

/* All text into pieces, then checks of the file as a whole. columns: of LIBSVM text, negative if unknown */
static PetscErrorCode Parse(GPUCSRReader *R, PetscInt columns)
{
  const GPUCSRTextHeader *h = &R->header;
  int64_t                 sums[3], most[4];

  PetscFunctionBegin;
  R->low  = INT64_MAX;
  R->high = INT64_MIN;
  if (h->format == GPUCSR_TEXT_LIBSVM) GPUCSRLibsvmBound(&R->header, R->options.base, columns);
  if (R->source) {
    const size_t bytes = (size_t)GPUCSRInputBytes(R->source), size = R->stream ? 1 : (size_t)R->size;
    const size_t block = R->stream ? (size_t)1 << 22 : PetscMin(PetscMax(bytes / (size * (size_t)R->threads * 4) + 1, (size_t)1 << 16), (size_t)1 << 22);
    const size_t depth = R->stream ? 4 * (size_t)R->threads : PetscMin(bytes / (size << 16) + 3, (size_t)1 << 16);

    R->failed    = GPUCSRInputPart(R->source, h, R->rank, (int)size, block, &R->fault) || GPUCSRInputParse(R->source, h, R->options.skip, R->threads, depth, Handle, R, &R->fault);
    R->info.text = GPUCSRInputText(R->source);
  }
  PetscCall(GPUCSRReaderAgree(R));
  GPUCSRInputClose(R->source);
  R->source = NULL;
  /* totals over the pieces of all ranks: counts, smallest and largest index */
  sums[0] = R->info.entries;
  sums[1] = R->info.skipped;
  sums[2] = R->lines;
  most[0] = -R->low;
  most[1] = R->high;
  most[2] = R->info.line ? -R->info.line : INT64_MIN;
  most[3] = R->info.text;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPIU_INT64, MPI_SUM, R->comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, most, 4, MPIU_INT64, MPI_MAX, R->comm));
  R->info.entries = sums[0];
  R->info.skipped = sums[1];
  R->lines        = sums[2];
  R->low          = -most[0];
  R->high         = most[1];
  R->info.line    = R->info.skipped ? -most[2] : 0;
  R->info.text    = most[3];
  if (R->info.skipped && R->info.skipped == R->lines) R->failed = GPUCSRFaultSet(&R->fault, R->info.line, 0, "the first of %lld bad lines, which are all that the file has", (long long)R->lines);
  else if (h->format == GPUCSR_TEXT_MARKET && R->info.entries < h->entries) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "the file ends after %lld of %lld entries", (long long)R->info.entries, (long long)h->entries);
  else if (h->format == GPUCSR_TEXT_MARKET && R->info.entries > h->entries) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "more than the %lld entries that the %s", (long long)h->entries, h->array ? "sizes ask for" : "size line announces");
  PetscCall(GPUCSRReaderAgree(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* R->first: rows, or entries, of the file before each piece; and their total */
static PetscErrorCode CountBefore(GPUCSRReader *R, PetscBool rows, int64_t *total)
{
  int64_t own = 0, before = 0;

  PetscFunctionBegin;
  for (size_t k = 0; k < R->npieces; k++) own += (int64_t)(rows ? R->piece[k].rows : R->piece[k].nz);
  PetscCallMPI(MPI_Allreduce(&own, total, 1, MPIU_INT64, MPI_SUM, R->comm));
  PetscCallMPI(MPI_Scan(&own, &before, 1, MPIU_INT64, MPI_SUM, R->comm));
  before -= own;
  PetscCall(PetscMalloc1(R->npieces + 1, &R->first));
  for (size_t k = 0; k < R->npieces; k++) {
    R->first[k] = before;
    before += (int64_t)(rows ? R->piece[k].rows : R->piece[k].nz);
  }
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

/* One pass over a piece: counts its entries by owner, or stores them in `to` at at[owner] */
static void Deal(const GPUCSRReader *R, size_t piece, PetscInt base, const PetscInt ranges[], int64_t at[], const GPUCSRPiece *to)
{
  const GPUCSRPiece *p     = &R->piece[piece];
  PetscMPIInt        owner = 0;
  size_t             e     = 0;

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
      for (PetscInt k = 0; k < p->length[r]; k++, e++) GIVE((PetscInt)(R->first[piece] + (int64_t)r), p->j[e] - base, p->v[e]);
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
static PetscErrorCode Redistribute(GPUCSRReader *R, PetscInt base, const PetscInt ranges[])
{
  const size_t size = (size_t)R->size, nb = R->npieces;
  int64_t     *at, *send, *recv, *counts;
  GPUCSRPiece  got, to;

  PetscFunctionBegin;
  PetscCall(PetscCalloc4(nb * size + 1, &at, size + 1, &send, size + 1, &recv, size, &counts));
#pragma omp parallel for num_threads(R->threads) schedule(dynamic)
  for (size_t k = 0; k < nb; k++) Deal(R, k, base, ranges, at + k * size, NULL);
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
    Deal(R, k, base, ranges, at + k * size, &to);
    GPUCSRPieceDestroy(&R->piece[k]);
  }
  memset(&got, 0, sizeof(got));
  R->failed = GPUCSRPieceAllocate(&got, 0, (size_t)recv[size], 1, 1, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  PetscCall(Exchange(R, to.i, send, got.i, recv, sizeof(*to.i)));
  PetscCall(Exchange(R, to.j, send, got.j, recv, sizeof(*to.j)));
  PetscCall(Exchange(R, to.v, send, got.v, recv, sizeof(*to.v)));
  got.nz   = (size_t)recv[size];
  got.low  = 0;
  got.high = PETSC_MAX_INT;
  PetscCall(PetscFree3(to.i, to.j, to.v));
  PetscCall(PetscFree4(at, send, recv, counts));
  R->npieces = 0;
  R->failed  = Keep(R, &got, &R->fault);
  PetscCall(GPUCSRReaderAgree(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies the pieces of this rank into the matrix. The caller has set its type and layout */
static PetscErrorCode FillMatrix(GPUCSRReader *R, Mat A, PetscInt base)
{
  const PetscInt       m        = A->rmap->n;
  const GPUCSRAssembly assembly = {R->size > 1 ? GPUCSR_GENERAL : R->header.symmetry, A->rmap->rstart, A->rmap->rend, R->npieces, R->piece, R->threads};
  int64_t             *row, equal = 0;
  PetscInt            *j;
  PetscScalar         *v;
  PetscBool            direct;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2((size_t)m + 1, &R->row, (size_t)m, &R->nnz));
  row = R->row;
  GPUCSRAssemblyCount(&assembly, row);
  PetscCall(GPUCSRReaderArrays(R, A, &j, &v, &direct));
  R->failed = GPUCSRAssemblyFill(&assembly, base, row, j, v, &equal, &R->fault);
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
#pragma omp parallel for num_threads(R->threads) schedule(dynamic)
  for (size_t k = 0; k < R->npieces; k++) GPUCSRPieceDestroy(&R->piece[k]);
  PetscCall(GPUCSRSetRows(A, direct, row, j, v, R->threads));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Labels or queries of the rows of LIBSVM text */
static PetscErrorCode FillVector(GPUCSRReader *R, Mat A, PetscBool labels, Vec *x)
{
  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, NULL, x));
  PetscCall(VecSet(*x, 0));
  for (size_t k = 0; k < R->npieces; k++) {
    const GPUCSRPiece *p = &R->piece[k];
    PetscInt          *ix;
    PetscScalar       *values;

    if (!labels && !p->query) continue;
    PetscCall(PetscMalloc2(p->rows, &ix, p->rows, &values));
    for (size_t r = 0; r < p->rows; r++) {
      ix[r]     = (PetscInt)(R->first[k] + (int64_t)r);
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
static PetscErrorCode Count(GPUCSRReader *R, const void *ctx)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < R->npieces; k++) {
    const GPUCSRPiece *p = &R->piece[k];

    if (p->length) {
      for (size_t r = 0; r < p->rows; r++) GPUCSRReaderCount(R, R->first[k] + (int64_t)r, p->length[r]);
      continue;
    }
    for (size_t e = 0; e < p->nz; e++) {
      GPUCSRReaderCount(R, p->i[e], 1);
      if (R->header.symmetry != GPUCSR_GENERAL && p->i[e] != p->j[e]) GPUCSRReaderCount(R, p->j[e], 1);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRLoadText(GPUCSRReader *R, Mat A, Vec *labels, Vec *queries)
{
  const GPUCSRTextHeader *h       = &R->header;
  const PetscInt          columns = R->options.columns >= 0 ? R->options.columns : A->cmap->N;
  int64_t                 rows;
  PetscInt                M = (PetscInt)h->m, N = (PetscInt)h->n, base = 0;
  int                     has, any;

  PetscFunctionBegin;
  PetscCall(Parse(R, columns));
  R->parsed = MPI_Wtime();
  if (h->array) {
    PetscCall(CountBefore(R, PETSC_FALSE, &rows));
    for (size_t k = 0; k < R->npieces; k++) GPUCSRMarketPlace(h, R->first[k], &R->piece[k]);
  } else if (h->format == GPUCSR_TEXT_LIBSVM) {
    PetscCall(CountBefore(R, PETSC_TRUE, &rows));
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
  R->info.base = base;
  if (A->rmap->N < 0 && M > 1 << 24 && M / 64 > R->info.text) R->failed = GPUCSRFaultSet(&R->fault, h->lines, 0, "%lld rows in a file of %lld bytes: almost all rows would be empty and waste memory", (long long)M, (long long)R->info.text);
  PetscCall(GPUCSRReaderAgree(R));
  PetscCall(GPUCSRReaderLayout(R, A, M, N, Count, NULL));
  if (labels && h->format == GPUCSR_TEXT_LIBSVM && !h->unlabelled) PetscCall(FillVector(R, A, PETSC_TRUE, labels));
  has = 0;
  for (size_t k = 0; k < R->npieces; k++) has |= R->piece[k].query != NULL;
  PetscCallMPI(MPI_Allreduce(&has, &any, 1, MPI_INT, MPI_MAX, R->comm));
  if (queries && any) PetscCall(FillVector(R, A, PETSC_FALSE, queries));
  if (R->size > 1) {
    PetscCall(Redistribute(R, base, A->rmap->range));
    base = 0;
  }
  PetscCall(FillMatrix(R, A, base));
  PetscFunctionReturn(PETSC_SUCCESS);
}
