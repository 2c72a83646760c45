/*
  Copies between host and device through a ring of page-locked pieces. Threads fill and convert a piece while the previous piece crosses the bus.
*/
#include "gpucsrsys.h"
#include <omp.h>
#include <sched.h>
#include <string.h>

/* Bytes that a thread stages at a time */
#define PIECE_BYTES ((size_t)16 << 10)
#define PIECES      (GPUCSR_STAGE_BYTES / PIECE_BYTES) /* of a stage */
#define SMALL_BYTES ((size_t)8 << 10)                  /* the same within a single stage, where all threads wait for the last piece */

/* A staged copy: numbers begin <= k < end of src, in pieces of PIECE_BYTES, fill stages starting at the given stage */
typedef struct {
  GPUCSRDevice d;
  int          stage;
  void        *dst;
  GPUCSRType   to;
  GPUCSRStream s;
  size_t       begin, end, pieces;
  char         filled[GPUCSR_STAGES / 2 * PIECES];
} Staged;

static char *PlaceOfPiece(const Staged *w, size_t p)
{
  return (char *)w->d->stage[((size_t)w->stage + p / PIECES) % GPUCSR_STAGES] + p % PIECES * PIECE_BYTES;
}

/* Sends the stage behind the first *sent pieces if it is full. One command a stage: a command for each piece would cost more than the overlap gains */
static PetscErrorCode SendFilled(const Staged *w, size_t *sent)
{
  const size_t size = GPUCSRTypeSize(w->to), piece = PIECE_BYTES / size, first = *sent, stop = PetscMin(w->pieces, first + PIECES);
  const size_t b = w->begin + first * piece, e = PetscMin(w->end, w->begin + stop * piece);
  const int    k = (int)(((size_t)w->stage + first / PIECES) % GPUCSR_STAGES);

  PetscFunctionBegin;
  for (size_t p = first; p < stop; p++) {
    char filled;

#pragma omp atomic read seq_cst
    filled = w->filled[p];
    if (!filled) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(w->d->ops->copy(w->d->id, (char *)w->dst + b * size, w->d->stage[k], (e - b) * size, GPUCSR_TO_DEVICE, w->s));
  PetscCall(w->d->ops->eventrecord(w->d->id, w->d->staged[k], w->s));
  *sent = stop;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  All threads fill pieces in order; the first thread also sends full stages in order, without waiting for other threads or the bus. Returns the largest rounding error like GPUCSRConvertPiece().
*/
static PetscErrorCode FillAndSend(Staged *w, const void *src, GPUCSRType from, int threads, double *rounding)
{
  const size_t   size = GPUCSRTypeSize(w->to), piece = PIECE_BYTES / size;
  const double   start = *rounding;
  double         worst = start;
  size_t         next  = 0;
  PetscErrorCode ierr  = PETSC_SUCCESS;

  PetscFunctionBegin;
#pragma omp parallel num_threads(threads) if (threads > 1) reduction(max : worst)
  {
    const int first = omp_get_thread_num() == 0;
    double    mine  = start;
    size_t    p, sent = 0;

    do {
#pragma omp atomic capture
      p = next++;
      if (p < w->pieces) {
        const size_t b = w->begin + p * piece;

        mine = GPUCSRConvertPiece(PlaceOfPiece(w, p), w->to, src, from, b, PetscMin(w->end, b + piece), mine);
#pragma omp atomic write seq_cst
        w->filled[p] = 1;
      } else if (first) (void)sched_yield(); /* the other threads fill their last pieces */
      if (first && !ierr && sent < w->pieces) ierr = SendFilled(w, &sent);
    } while (p < w->pieces || (first && !ierr && sent < w->pieces));
    worst = mine;
  }
  PetscCall(ierr);
  *rounding = worst;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bytes from the start of one array to the next, of arrays that lie together */
static size_t Apart(const GPUCSRTransfer *t)
{
  return GPUCSRAlignUp(t->n * GPUCSRTypeSize(t->to));
}

/*
  Copy between a stage and the device. Starting a copy engine and waiting for it take time. The device's processors are faster for data that several threads have filled, and for all data to the
  host; for smaller pieces the engine's command costs the host less.
*/
static PetscErrorCode CopyStaged(GPUCSRDevice d, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s)
{
  const GPUCSRBool aligned = (GPUCSRBool)((size_t)dst % 16 == 0 && (size_t)src % 16 == 0);

  PetscFunctionBegin;
  if (d->ops->fetch && aligned && ((double)bytes > GPUCSRMachineShared.alone_size || kind == GPUCSR_TO_HOST)) PetscCall(d->ops->fetch(d->id, dst, src, bytes, s));
  else PetscCall(d->ops->copy(d->id, dst, src, bytes, kind, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Room in a stage. Copies of one stream share a stage: asking whether the bus is done takes as long as filling a few kilobytes */
static PetscErrorCode StageOpen(GPUCSRDevice d, size_t bytes, GPUCSRStream s, int *k, char **room)
{
  const int last = (d->nextstage + GPUCSR_STAGES - 1) % GPUCSR_STAGES;

  PetscFunctionBegin;
  if (d->opened && s == d->opener && d->opened + bytes <= GPUCSR_STAGE_BYTES) *k = last;
  else {
    *k           = d->nextstage;
    d->nextstage = (d->nextstage + 1) % GPUCSR_STAGES;
    d->opened    = 0;
    d->opener    = s;
    PetscCall(d->ops->eventsynchronize(d->id, d->staged[*k]));
  }
  *room = (char *)d->stage[*k] + d->opened;
  d->opened += bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sends data that fit a stage: several threads fill the stage, then one command sends all arrays, which have the same layout on the device */
static PetscErrorCode SendBatch(GPUCSRDevice d, const GPUCSRTransfer t[], int nt, size_t bytes, GPUCSRStream s, double *rounding)
{
  const int    threads = (double)bytes <= GPUCSRMachineShared.alone_size ? 1 : d->threads; /* one thread or all: GNU's OpenMP ends and restarts threads when the size of the team changes */
  const double start   = *rounding;
  char        *stage;
  double       worst = start;
  size_t       next  = 0;
  int          k;

  PetscFunctionBegin;
  PetscCall(StageOpen(d, bytes, s, &k, &stage));
#pragma omp parallel num_threads(threads) if (threads > 1) reduction(max : worst)
  {
    double mine  = start;
    size_t begin = 0, p;

    do {
      size_t at = 0;

#pragma omp atomic capture
      p     = next++;
      begin = p * SMALL_BYTES;
      for (int q = 0; q < nt; q++) { /* the part of each array in this piece */
        const size_t size = GPUCSRTypeSize(t[q].to), from = begin > at ? (begin - at) / size : 0, to = begin + SMALL_BYTES > at ? PetscMin(t[q].n, (begin + SMALL_BYTES - at) / size) : 0;

        if (from < to) mine = GPUCSRConvertPiece(stage + at + from * size, t[q].to, t[q].src, t[q].from, from, to, mine);
        at += Apart(&t[q]);
      }
    } while (begin < bytes);
    worst = mine;
  }
  *rounding = worst;
  for (int q = 0, last; q < nt; q = last) {
    size_t length = t[q].n * GPUCSRTypeSize(t[q].to), step = Apart(&t[q]);

    for (last = q + 1; last < nt && t[last].dst == (char *)t[q].dst + step; last++) {
      length = step + t[last].n * GPUCSRTypeSize(t[last].to);
      step += Apart(&t[last]);
    }
    PetscCall(CopyStaged(d, t[q].dst, stage, length, GPUCSR_TO_DEVICE, s));
    stage += step;
  }
  PetscCall(d->ops->eventrecord(d->id, d->staged[k], s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sends through half of the stages at a time, while the other half crosses the bus */
static PetscErrorCode SendInHalves(GPUCSRDevice d, const GPUCSRTransfer *t, GPUCSRStream s, double *rounding)
{
  const size_t size = GPUCSRTypeSize(t->to), half = GPUCSR_STAGES / 2 * GPUCSR_STAGE_BYTES / size;

  PetscFunctionBegin;
  for (size_t b = 0; b < t->n; b += half) {
    Staged w = {.d = d, .stage = d->nextstage, .dst = t->dst, .to = t->to, .s = s, .begin = b, .end = PetscMin(t->n, b + half)};

    d->opened = 0;
    w.pieces  = ((w.end - b) * size + PIECE_BYTES - 1) / PIECE_BYTES;
    for (size_t k = 0; k < w.pieces; k += PIECES) {
      PetscCall(d->ops->eventsynchronize(d->id, d->staged[d->nextstage]));
      d->nextstage = (d->nextstage + 1) % GPUCSR_STAGES;
    }
    PetscCall(FillAndSend(&w, t->src, t->from, d->threads, rounding));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Sends arrays of host memory to the device in the order of stream s, converted on the way; the caller may change them afterwards. One command sends small arrays
  that lie on the device GPUCSRAlignUp() apart, in the given order.
*/
PetscErrorCode GPUCSRUploadBatch(GPUCSRDevice d, const GPUCSRTransfer t[], int nt, GPUCSRStream s, double *rounding)
{
  double worst = rounding ? *rounding : -1;
  size_t bytes = 0;

  PetscFunctionBegin;
  for (int k = 0; k < nt; k++) {
    PetscCheck(GPUCSRConvertible(t[k].to, t[k].from), PETSC_COMM_SELF, PETSC_ERR_SUP, "No conversion from type %d to type %d", (int)t[k].from, (int)t[k].to);
    bytes += Apart(&t[k]);
  }
  if (!d->ops->separate) {
    for (int k = 0; k < nt; k++) PetscCall(GPUCSRConvert(t[k].dst, t[k].to, t[k].src, t[k].from, t[k].n, d->threads, t[k].to == GPUCSR_FLOAT ? rounding : NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (bytes <= GPUCSR_STAGE_BYTES) PetscCall(SendBatch(d, t, nt, bytes, s, &worst));
  else
    for (int k = 0; k < nt; k++) {
      if (Apart(&t[k]) <= GPUCSR_STAGE_BYTES) PetscCall(SendBatch(d, &t[k], 1, Apart(&t[k]), s, &worst));
      else PetscCall(SendInHalves(d, &t[k], s, &worst));
    }
  if (rounding) *rounding = worst;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Sends n numbers of host memory to the device in the order of stream s, converted on the way. pinned: src is page-locked
  and must stay unchanged until s has passed; otherwise the caller may change src afterwards.
*/
PetscErrorCode GPUCSRUpload(GPUCSRDevice d, void *dst, GPUCSRType to, const void *src, GPUCSRType from, size_t n, GPUCSRBool pinned, GPUCSRStream s, double *rounding)
{
  const GPUCSRTransfer t = {dst, to, src, from, n};

  PetscFunctionBegin;
  if (d->ops->separate && to == from && (pinned || (double)(n * GPUCSRTypeSize(to)) <= GPUCSRMachineShared.unstaged_size)) PetscCall(d->ops->copy(d->id, dst, src, n * GPUCSRTypeSize(to), GPUCSR_TO_DEVICE, s));
  else PetscCall(GPUCSRUploadBatch(d, &t, 1, s, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Brings n numbers of the device to the host in the order of stream s, converted on the way. pinned: dst is page-locked and
  complete once s has passed; otherwise dst is complete on return.
*/
PetscErrorCode GPUCSRDownload(GPUCSRDevice d, void *dst, GPUCSRType to, const void *src, GPUCSRType from, size_t n, GPUCSRBool pinned, GPUCSRStream s)
{
  const size_t piece = GPUCSR_STAGE_BYTES / GPUCSRTypeSize(from);
  const size_t all   = (n + piece - 1) / piece;

  PetscFunctionBegin;
  if (!d->ops->separate) {
    PetscCall(GPUCSRConvert(dst, to, src, from, n, d->threads, NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (pinned && to == from) {
    PetscCall(d->ops->copy(d->id, dst, src, n * GPUCSRTypeSize(to), GPUCSR_TO_HOST, s));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (all == 1) {
    const size_t bytes = n * GPUCSRTypeSize(from);
    char        *stage;
    int          k;

    PetscCall(StageOpen(d, GPUCSRAlignUp(bytes), s, &k, &stage));
    PetscCall(CopyStaged(d, stage, src, bytes, GPUCSR_TO_HOST, s));
    PetscCall(d->ops->eventrecord(d->id, d->staged[k], s));
    PetscCall(d->ops->eventsynchronize(d->id, d->staged[k]));
    PetscCall(GPUCSRConvert(dst, to, stage, from, n, d->threads, NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  d->opened = 0;
  /* The copy of piece p runs while piece p - (GPUCSR_STAGES - 1) is converted */
  for (size_t p = 0; p < all + GPUCSR_STAGES - 1; p++) {
    if (p < all) {
      const size_t b = p * piece, len = PetscMin(piece, n - b);
      const int    k = (int)((d->nextstage + p) % GPUCSR_STAGES);

      PetscCall(d->ops->eventsynchronize(d->id, d->staged[k]));
      PetscCall(d->ops->copy(d->id, d->stage[k], (const char *)src + b * GPUCSRTypeSize(from), len * GPUCSRTypeSize(from), GPUCSR_TO_HOST, s));
      PetscCall(d->ops->eventrecord(d->id, d->staged[k], s));
    }
    if (p >= GPUCSR_STAGES - 1) {
      const size_t q = p - (GPUCSR_STAGES - 1), b = q * piece, len = PetscMin(piece, n - b);
      const int    k = (int)((d->nextstage + q) % GPUCSR_STAGES);

      PetscCall(d->ops->eventsynchronize(d->id, d->staged[k]));
      PetscCall(GPUCSRConvert((char *)dst + b * GPUCSRTypeSize(to), to, d->stage[k], from, len, d->threads, NULL));
    }
  }
  d->nextstage = (int)((d->nextstage + all) % GPUCSR_STAGES);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Reads `bytes` bytes, a multiple of 4, after the work of the device's stream. Page-locked memory stages the copy: a copy to other memory takes longer than most steps with a result for the
  host
*/
PetscErrorCode GPUCSRRead(GPUCSRDevice d, void *dst, const void *src, size_t bytes)
{
  PetscFunctionBegin;
  if (d->ops->separate) PetscCall(GPUCSRDownload(d, dst, GPUCSR_INT32, src, GPUCSR_INT32, bytes / sizeof(int32_t), PETSC_FALSE, d->stream));
  else {
    PetscCall(d->ops->copy(d->id, dst, src, bytes, GPUCSR_TO_HOST, d->stream));
    PetscCall(d->ops->streamsynchronize(d->id, d->stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
