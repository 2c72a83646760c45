/*
  What all backends share: opening the process' device, counted memory, conversion by several threads, staged copies,
  and running something that may fail without noise.
*/
#include "gpucsrsys.h"
#include <omp.h>
#include <float.h>
#include <math.h>
#include <sched.h>
#include <string.h>

GPUCSRSettings GPUCSRSettingsGlobal;

#if !defined(GPUCSR_HAVE_CUDA)
/* Not compiled is not missing: the row stays and says why it cannot be used */
static PetscErrorCode Count_NotCompiled(int *n, char why[], size_t len)
{
  PetscFunctionBegin;
  *n = 0;
  PetscCall(PetscSNPrintf(why, len, "backend cuda is not compiled in: nvcc was not found, or not wanted, when this library was built"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
const GPUCSRBackendOps GPUCSRBackend_cuda = {.name = "cuda", .separate = PETSC_TRUE, .count = Count_NotCompiled};
#endif

#define GPUCSR_BACKEND(name) &GPUCSRBackend_##name,
static const GPUCSRBackendOps *const backends[] = {
#include "backendlist.h"
};
#undef GPUCSR_BACKEND
#define NBACKENDS (sizeof(backends) / sizeof(backends[0]))

static GPUCSRDevice devices[NBACKENDS]; /* opened at first need */

/* Collective on PETSC_COMM_WORLD: a rank's place on its node decides its GPU */
PetscErrorCode GPUCSRSysInitialize(void)
{
  GPUCSRSettings *s = &GPUCSRSettingsGlobal;
  GPUCSRAttempt   attempt;
  MPI_Comm        node;
  PetscBool       set;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  PetscCallMPI(MPI_Comm_split_type(PETSC_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  PetscCallMPI(MPI_Comm_rank(node, &s->localrank));
  PetscCallMPI(MPI_Comm_size(node, &s->localsize));
  PetscCallMPI(MPI_Comm_free(&node));
  s->threads    = PetscMin(8, PetscMax(1, omp_get_num_procs() / s->localsize));
  s->pinvectors = PETSC_TRUE;
  s->nmap       = (PetscInt)(sizeof(s->map) / sizeof(s->map[0]));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "GPU sparse matrix: process options", "MATGPUCSR");
  /* PETSc says what is no number, and not whose */
#define OPTION(get, word, ...) \
  do { \
    PetscErrorCode ierr_; \
\
    PetscCall(GPUCSRAttemptBegin(&attempt)); \
    ierr_ = get(word, __VA_ARGS__); \
    PetscCall(GPUCSRAttemptEnd(&attempt)); \
    PetscCheck(!ierr_, PETSC_COMM_WORLD, ierr_, word ": %s", attempt.message); \
  } while (0)
  OPTION(PetscOptionsIntArray, "-mat_gpucsr_device_map", "Device of each rank of a node, repeated when there are more ranks", "MATGPUCSR", s->map, &s->nmap, &set);
  if (!set) s->nmap = 0;
  OPTION(PetscOptionsInt, "-mat_gpucsr_threads", "Host threads that convert and copy", "MATGPUCSR", s->threads, &s->threads, NULL);
  OPTION(PetscOptionsReal, "-mat_gpucsr_memory_limit", "Largest device memory one rank may use, in bytes; 0: no limit", "MATGPUCSR", s->memorylimit, &s->memorylimit, NULL);
  OPTION(PetscOptionsBool, "-mat_gpucsr_pin_vectors", "Page-lock host vectors in place while they live", "MATGPUCSR", s->pinvectors, &s->pinvectors, NULL);
  OPTION(PetscOptionsBool, "-mat_gpucsr_report", "At the end, say for each matrix what it was stored as, why, and what its products reached", "MATGPUCSR", s->report, &s->report, NULL);
#undef OPTION
  PetscOptionsEnd();
  PetscCheck(s->threads >= 1 && s->threads <= 1024, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_threads %" PetscInt_FMT ": must be from 1 to 1024", s->threads);
  PetscCheck(s->memorylimit >= 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_memory_limit %g: must be a number of bytes, or 0 for no limit", (double)s->memorylimit);
  for (PetscInt k = 0; k < s->nmap; k++) PetscCheck(s->map[k] >= 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_device_map: entry %" PetscInt_FMT " is %" PetscInt_FMT "; devices count from 0", k, s->map[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is in hand goes back */
static PetscErrorCode HandEmpty(GPUCSRDevice d)
{
  PetscFunctionBegin;
  while (d->nhand) PetscCall(d->ops->free(d->id, d->stream, d->hand[--d->nhand]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DeviceClose(GPUCSRDevice *pd)
{
  GPUCSRDevice d = *pd;

  PetscFunctionBegin;
  if (!d) PetscFunctionReturn(PETSC_SUCCESS);
  *pd = NULL;
  if (!d->failed[0]) { /* a failed device gives nothing back, and asking it would fail again */
    PetscCall(d->ops->activate(d->id));
    PetscCall(HandEmpty(d));
    for (int k = 0; k < GPUCSR_STAGES; k++) {
      if (d->stage[k]) PetscCall(d->ops->hostfree(d->id, d->stage[k]));
      if (d->staged[k]) PetscCall(d->ops->eventdestroy(d->id, d->staged[k]));
    }
    PetscCall(d->ops->streamdestroy(d->id, d->stream));
    PetscCall(d->ops->streamdestroy(d->id, d->up));
    PetscCall(d->ops->streamdestroy(d->id, d->down));
    PetscCall(d->ops->close(d->id));
  }
  PetscCall(PetscFree(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRSysFinalize(void)
{
  PetscFunctionBegin;
  for (size_t b = 0; b < NBACKENDS; b++) PetscCall(DeviceClose(&devices[b]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BackendFind(const char name[], size_t *b)
{
  PetscBool same = PETSC_FALSE;

  PetscFunctionBegin;
  for (*b = 0; *b < NBACKENDS; (*b)++) {
    PetscCall(PetscStrcmp(name, backends[*b]->name, &same));
    if (same) break;
  }
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "There is no backend %s", name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Devices of the named backend that this process can see; where there are none why says so */
PetscErrorCode GPUCSRDeviceCount(const char name[], int *n, char why[], size_t len)
{
  size_t b;

  PetscFunctionBegin;
  PetscCall(BackendFind(name, &b));
  PetscCall((*backends[b]->count)(n, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The process' device of the named backend. Where there is none, dev is NULL and why says so; that is no error here.
  A device that exists and cannot be opened is one.
*/
PetscErrorCode GPUCSRDeviceOpen(const char name[], GPUCSRDevice *dev, char why[], size_t len)
{
  const GPUCSRSettings   *s = &GPUCSRSettingsGlobal;
  const GPUCSRBackendOps *ops;
  GPUCSRDevice            d;
  size_t                  b;
  int                     n = 0;
  PetscBool               defer;

  PetscFunctionBegin;
  *dev = NULL;
  PetscCall(GPUCSRDeferAsked(&defer));
  if (defer) PetscCall(PetscStrcmp(name, "host", &defer));
  PetscCall(BackendFind(defer ? "defer" : name, &b));
  if (devices[b]) {
    if (devices[b]->failed[0]) PetscCall(PetscSNPrintf(why, len, "it failed before: %s", devices[b]->failed));
    else *dev = devices[b];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  ops = backends[b];
  PetscCall(ops->count(&n, why, len));
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&d));
  devices[b] = d;
  d->ops     = ops;
  d->threads = (int)s->threads;
  d->limit   = (size_t)s->memorylimit;
  d->id      = s->nmap && ops->separate ? (int)s->map[s->localrank % s->nmap] : s->localrank % n;
  if (d->id >= n) {
    n = d->id;
    PetscCall(PetscFree(devices[b]));
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_device_map asks for device %d on local rank %d, which this machine does not have; devices count from 0", n, (int)s->localrank);
  }
  PetscCall(PetscStrncpy(d->failed, "it could not be opened", sizeof(d->failed)));
  PetscCall(ops->open(d->id, &d->props));
  PetscCall(ops->streamcreate(d->id, &d->stream));
  PetscCall(ops->streamcreate(d->id, &d->up));
  PetscCall(ops->streamcreate(d->id, &d->down));
  if (ops->separate) {
    for (int k = 0; k < GPUCSR_STAGES; k++) {
      PetscCall(ops->hostmalloc(d->id, GPUCSR_STAGE_BYTES, &d->stage[k]));
      PetscCall(ops->eventcreate(d->id, PETSC_FALSE, &d->staged[k]));
    }
  }
  d->failed[0] = 0;
  PetscCall(PetscInfo(NULL, "Rank %d of this node uses backend %s, device %d of %d: %s\n", (int)s->localrank, ops->name, d->id, d->props.ndevices, d->props.name));
  *dev = d;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Everything on the device is done, on PETSc's streams too */
PetscErrorCode GPUCSRDeviceSynchronize(GPUCSRDevice d)
{
  PetscFunctionBegin;
  PetscCall(d->ops->synchronize(d->id));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the host computes in place of a device comes in turn: after what the stream was given */
PetscErrorCode GPUCSRHostTurn(GPUCSRStream s)
{
  PetscFunctionBegin;
  if (s) PetscCall(GPUCSRBackend_defer.streamsynchronize(0, s)); /* the streams of the host backend are NULL */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Queue(GPUCSRDevice d, const GPUCSREvent e[2], PetscErrorCode (*launch)(void *), void *ctx, int n)
{
  PetscFunctionBegin;
  PetscCall((*launch)(ctx));
  PetscCall(d->ops->eventrecord(d->id, e[0], d->stream));
  for (int k = 0; k < n; k++) PetscCall((*launch)(ctx));
  PetscCall(d->ops->eventrecord(d->id, e[1], d->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Seconds a launch on d->stream, of n back to back after one that is not timed. The device starts when all are queued: work of a few microseconds
  is launched no faster than it runs, and what would be timed is the host. Events resolve half a microsecond.
*/
PetscErrorCode GPUCSRDeviceClock(GPUCSRDevice d, const GPUCSREvent e[2], PetscErrorCode (*launch)(void *), void *ctx, int n, double *seconds)
{
  static volatile int go; /* outlives an error below */
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  go = 0;
  PetscCall(d->ops->hold(d->id, d->stream, &go));
  ierr = Queue(d, e, launch, ctx, n);
  go   = 1;
  PetscCall(ierr);
  PetscCall(d->ops->eventelapsed(d->id, e[0], e[1], seconds));
  *seconds /= n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bytes that an array of size bytes gets: some more, so that wide loads past its end stay inside, and in the pool's own steps */
static size_t Padded(size_t size)
{
  return (size + 256 + 511) / 512 * 512;
}

/* From the device, which may have no more until it gets back what is in hand */
static PetscErrorCode MallocFromDevice(GPUCSRDevice d, size_t bytes, void **p)
{
  PetscFunctionBegin;
  PetscCall(d->ops->activate(d->id));
  if (d->nhand) {
    GPUCSRAttempt  attempt;
    PetscErrorCode ierr;

    PetscCall(GPUCSRAttemptBegin(&attempt));
    ierr = d->ops->malloc(d->id, bytes, d->stream, p);
    PetscCall(GPUCSRAttemptEnd(&attempt));
    if (!ierr) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(HandEmpty(d));
  }
  PetscCall(d->ops->malloc(d->id, bytes, d->stream, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* size bytes for the purpose named. For work in the order of d->stream; who uses it on another stream synchronizes first. */
PetscErrorCode GPUCSRMalloc(GPUCSRDevice d, size_t size, const char what[], void **p)
{
  const size_t bytes = Padded(size);

  PetscFunctionBegin;
  *p = NULL;
  PetscCheck(!d->limit || d->allocated + bytes <= d->limit, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s device %d: %s needs %zu bytes, %zu are in use and -mat_gpucsr_memory_limit is %zu", d->ops->name, d->id, what, bytes, d->allocated, d->limit);
  for (int k = d->nhand; k-- > 0 && !*p;)
    if (d->handbytes[k] == bytes) {
      *p = d->hand[k];
      d->nhand--;
      memmove(d->hand + k, d->hand + k + 1, sizeof(d->hand[0]) * (size_t)(d->nhand - k));
      memmove(d->handbytes + k, d->handbytes + k + 1, sizeof(d->handbytes[0]) * (size_t)(d->nhand - k));
    }
  if (!*p) PetscCall(MallocFromDevice(d, bytes, p));
  d->allocated += bytes;
  d->peak = PetscMax(d->peak, d->allocated);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRFree(GPUCSRDevice d, size_t size, void **p)
{
  const size_t bytes = Padded(size);

  PetscFunctionBegin;
  if (!*p) PetscFunctionReturn(PETSC_SUCCESS);
  d->allocated -= bytes;
  if (!d->failed[0]) {
    void *go = *p;

    if (d->ops->separate && !d->limit && bytes <= GPUCSR_HAND_BYTES) { /* host memory goes at once, so that who uses it afterwards is found out; a limit is for what is in hand, too */
      go = d->nhand == GPUCSR_HAND ? d->hand[0] : NULL;
      if (go) {
        d->nhand--;
        memmove(d->hand, d->hand + 1, sizeof(d->hand[0]) * (size_t)d->nhand);
        memmove(d->handbytes, d->handbytes + 1, sizeof(d->handbytes[0]) * (size_t)d->nhand);
      }
      d->hand[d->nhand]        = *p;
      d->handbytes[d->nhand++] = bytes;
    }
    if (go) {
      PetscCall(d->ops->activate(d->id));
      PetscCall(d->ops->free(d->id, d->stream, go));
    }
  }
  *p = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MeasureBandwidth(GPUCSRDevice d, size_t bytes, void **a, void **b, GPUCSREvent e[2])
{
  double best = PETSC_MAX_REAL, t;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(d, bytes, "the bandwidth yardstick", a));
  PetscCall(GPUCSRMalloc(d, bytes, "the bandwidth yardstick", b));
  for (int k = 0; k < 2; k++) PetscCall(d->ops->eventcreate(d->id, PETSC_TRUE, &e[k]));
  if (!GPUCSRHasKernels(d)) memset(*a, 1, bytes);
  for (int k = 0; k < 6; k++) {
    PetscCall(d->ops->eventrecord(d->id, e[0], d->stream));
    PetscCall(d->ops->copy(d->id, *b, *a, bytes, GPUCSR_ON_DEVICE, d->stream));
    PetscCall(d->ops->eventrecord(d->id, e[1], d->stream));
    PetscCall(d->ops->eventelapsed(d->id, e[0], e[1], &t));
    if (k) best = PetscMin(best, t);
  }
  d->bandwidth = 2.0 * (double)bytes / best;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Device copy rate, read plus written, measured once: the yardstick of the report. 0 where there is no memory to measure it with */
PetscErrorCode GPUCSRDeviceBandwidth(GPUCSRDevice d, double *rate)
{
  const size_t bytes = GPUCSRHasKernels(d) ? (size_t)512 << 20 : (size_t)64 << 20;
  const size_t limit = d->limit, peak = d->peak;

  PetscFunctionBegin;
  if (!d->bandwidth && !d->failed[0]) {
    void         *a = NULL, *b = NULL;
    GPUCSREvent   e[2] = {NULL, NULL};
    GPUCSRAttempt attempt;

    d->limit = 0; /* it is the user's for matrices */
    PetscCall(GPUCSRAttemptBegin(&attempt));
    (void)MeasureBandwidth(d, bytes, &a, &b, e);
    PetscCall(GPUCSRAttemptEnd(&attempt));
    for (int k = 0; k < 2; k++)
      if (e[k]) PetscCall(d->ops->eventdestroy(d->id, e[k]));
    PetscCall(GPUCSRFree(d, bytes, &a));
    PetscCall(GPUCSRFree(d, bytes, &b));
    d->limit = limit;
    d->peak  = peak;
  }
  *rate = d->bandwidth;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Up to this many bytes the driver takes pageable memory along with the command and returns at once; more it makes the caller wait for */
#define DIRECT_BYTES ((size_t)64 << 10)

/* Up to this many bytes of a stage one thread fills and a copy engine sends; more all threads fill, and the device's processors fetch */
#define ALONE_BYTES ((size_t)32 << 10)

/* Below this many bytes waking threads costs more than they save */
#define THREADED_BYTES ((size_t)256 << 10)

/* Threads take so many bytes at a time of what is staged */
#define PIECE_BYTES ((size_t)16 << 10)
#define PIECES      (GPUCSR_STAGE_BYTES / PIECE_BYTES) /* of a stage */
#define SMALL_BYTES ((size_t)8 << 10)                  /* of what is no more than a stage: the last piece is what the others wait for */

/*
  Several at once, and divided only where a block has a rounding worse than all before it: a division takes longer than all the rest. A quotient that is no
  number (0, Inf, NaN) counts as no rounding
*/
static double RoundToFloat(float *restrict t, const double *restrict f, size_t n, double worst)
{
  const size_t block = 256;

  for (size_t b = 0; b < n; b += block) {
    const size_t end  = PetscMin(n, b + block);
    double       over = -1;

#pragma omp simd reduction(max : over)
    for (size_t k = b; k < end; k++) {
      double e;

      t[k] = (float)f[k];
      e    = fabs(f[k] - (double)t[k]) - worst * fabs(f[k]);
      over = e > over ? e : over;
    }
    if (over <= 0) continue;
#pragma omp simd reduction(max : worst)
    for (size_t k = b; k < end; k++) {
      const double e = fabs(f[k] - (double)t[k]) / fabs(f[k]);

      worst = e > worst ? e : worst;
    }
    worst = worst < 1 ? worst : 1;
  }
  return worst;
}

static PetscBool Convertible(GPUCSRType to, GPUCSRType from)
{
  return (PetscBool)(to == from || (to == GPUCSR_FLOAT && from == GPUCSR_DOUBLE) || (to == GPUCSR_DOUBLE && from == GPUCSR_FLOAT) || (to == GPUCSR_INT32 && from == GPUCSR_INT64));
}

#define CONVERT(TO, FROM) \
  for (size_t k = 0; k < n; k++) ((TO *)dst)[k] = (TO)((const FROM *)src)[k]

/* Numbers first <= k < last of src to the begin of dst, by one thread. Returns the worst rounding, no less than it is given; judged where that is not negative */
static double ConvertPiece(void *restrict dst, GPUCSRType to, const void *restrict from_, GPUCSRType from, size_t first, size_t last, double worst)
{
  const void  *src = (const char *)from_ + first * GPUCSRTypeSize(from);
  const size_t n   = last - first;

  if (to == from) memcpy(dst, src, n * GPUCSRTypeSize(to));
  else if (to == GPUCSR_FLOAT && worst >= 0) return RoundToFloat((float *)dst, (const double *)src, n, worst);
  else if (to == GPUCSR_FLOAT) CONVERT(float, double);
  else if (to == GPUCSR_DOUBLE) CONVERT(double, float);
  else CONVERT(int32_t, int64_t);
  return worst;
}

/*
  dst[0..n) = src[0..n), converted. When rounding is given, it grows to the largest |a - float(a)| / |a| met;
  Inf and NaN are what they are in both, and a value beyond float's range counts as 1.
*/
PetscErrorCode GPUCSRConvert(void *dst, GPUCSRType to, const void *src, GPUCSRType from, size_t n, int nthreads, double *rounding)
{
  const int threads = n * GPUCSRTypeSize(from) < THREADED_BYTES ? 1 : nthreads;
  double    worst   = rounding ? *rounding : -1;

  PetscFunctionBegin;
  PetscCheck(Convertible(to, from), PETSC_COMM_SELF, PETSC_ERR_SUP, "No conversion from type %d to type %d", (int)from, (int)to);
#pragma omp parallel num_threads(threads) if (threads > 1) reduction(max : worst)
  {
    const size_t me = (size_t)omp_get_thread_num(), all = (size_t)omp_get_num_threads(), first = n * me / all;

    worst = ConvertPiece((char *)dst + first * GPUCSRTypeSize(to), to, src, from, first, n * (me + 1) / all, rounding ? *rounding : -1);
  }
  if (rounding) *rounding = worst;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is staged at once: numbers begin <= k < end of src, in pieces of PIECE_BYTES, fill stages from the one given on */
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

/* The stage that follows the *sent first pieces, once it is full: a command for each of its pieces would cost more than it gains */
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
  All threads take pieces as they come, and fill them; the first also sends the stages that are full, in order. It waits for no other thread before it
  begins, and for the bus not at all. Returns the worst rounding as ConvertPiece() does.
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

        mine = ConvertPiece(PlaceOfPiece(w, p), w->to, src, from, b, PetscMin(w->end, b + piece), mine);
#pragma omp atomic write seq_cst
        w->filled[p] = 1;
      } else if (first) (void)sched_yield(); /* the others are at their last */
      if (first && !ierr && sent < w->pieces) ierr = SendFilled(w, &sent);
    } while (p < w->pieces || (first && !ierr && sent < w->pieces));
    worst = mine;
  }
  PetscCall(ierr);
  *rounding = worst;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bytes from the begin of one array to the next, of arrays that lie together */
static size_t Apart(const GPUCSRTransfer *t)
{
  return GPUCSRTogether(t->n * GPUCSRTypeSize(t->to));
}

/*
  Between a stage and the device. A copy engine has to be told, and to tell the processors that wait for it: those are done sooner with what takes several
  threads to fill (one command for the rest costs the host less), and with what comes back.
*/
static PetscErrorCode CopyStaged(GPUCSRDevice d, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s)
{
  const PetscBool aligned = (PetscBool)((size_t)dst % 16 == 0 && (size_t)src % 16 == 0);

  PetscFunctionBegin;
  if (d->ops->fetch && aligned && (bytes > ALONE_BYTES || kind == GPUCSR_TO_HOST)) PetscCall(d->ops->fetch(d->id, dst, src, bytes, s));
  else PetscCall(d->ops->copy(d->id, dst, src, bytes, kind, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Room in a stage. Several in the same order share one: asking whether the bus is done with it takes as long as filling a few kilobytes */
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

/* What fits a stage: filled by several threads, then sent with one command for all that lie on the device as they do here */
static PetscErrorCode SendTogether(GPUCSRDevice d, const GPUCSRTransfer t[], int nt, size_t bytes, GPUCSRStream s, double *rounding)
{
  const int    threads = bytes <= ALONE_BYTES ? 1 : d->threads; /* never some of them: GNU's OpenMP ends those that a team leaves out, and starts them again for the next */
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
      for (int q = 0; q < nt; q++) { /* the part of each array that lies in this piece */
        const size_t size = GPUCSRTypeSize(t[q].to), from = begin > at ? (begin - at) / size : 0, to = begin + SMALL_BYTES > at ? PetscMin(t[q].n, (begin + SMALL_BYTES - at) / size) : 0;

        if (from < to) mine = ConvertPiece(stage + at + from * size, t[q].to, t[q].src, t[q].from, from, to, mine);
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

/* Through half of the stages at a time, while the others cross the bus */
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
  Send arrays of host memory to the device in the order of stream s, converted on the way; they may be changed as soon as this returns. Small ones
  that lie on the device GPUCSRTogether() from begin to begin, in the order given, go with one command.
*/
PetscErrorCode GPUCSRUploadTogether(GPUCSRDevice d, const GPUCSRTransfer t[], int nt, GPUCSRStream s, double *rounding)
{
  double worst = rounding ? *rounding : -1;
  size_t bytes = 0;

  PetscFunctionBegin;
  for (int k = 0; k < nt; k++) {
    PetscCheck(Convertible(t[k].to, t[k].from), PETSC_COMM_SELF, PETSC_ERR_SUP, "No conversion from type %d to type %d", (int)t[k].from, (int)t[k].to);
    bytes += Apart(&t[k]);
  }
  if (!d->ops->separate) {
    for (int k = 0; k < nt; k++) PetscCall(GPUCSRConvert(t[k].dst, t[k].to, t[k].src, t[k].from, t[k].n, d->threads, t[k].to == GPUCSR_FLOAT ? rounding : NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (bytes <= GPUCSR_STAGE_BYTES) PetscCall(SendTogether(d, t, nt, bytes, s, &worst));
  else
    for (int k = 0; k < nt; k++) {
      if (Apart(&t[k]) <= GPUCSR_STAGE_BYTES) PetscCall(SendTogether(d, &t[k], 1, Apart(&t[k]), s, &worst));
      else PetscCall(SendInHalves(d, &t[k], s, &worst));
    }
  if (rounding) *rounding = worst;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Send n numbers of host memory to the device in the order of stream s, converted on the way. pinned: src is page-locked
  and stays untouched until s has passed; otherwise src may be changed as soon as this returns.
*/
PetscErrorCode GPUCSRUpload(GPUCSRDevice d, void *dst, GPUCSRType to, const void *src, GPUCSRType from, size_t n, PetscBool pinned, GPUCSRStream s, double *rounding)
{
  const GPUCSRTransfer t = {dst, to, src, from, n};

  PetscFunctionBegin;
  if (d->ops->separate && to == from && (pinned || n * GPUCSRTypeSize(to) <= DIRECT_BYTES)) PetscCall(d->ops->copy(d->id, dst, src, n * GPUCSRTypeSize(to), GPUCSR_TO_DEVICE, s));
  else PetscCall(GPUCSRUploadTogether(d, &t, 1, s, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Bring n numbers of the device to the host in the order of stream s, converted on the way. pinned: dst is page-locked and
  is complete once s has passed; otherwise it is complete when this returns.
*/
PetscErrorCode GPUCSRDownload(GPUCSRDevice d, void *dst, GPUCSRType to, const void *src, GPUCSRType from, size_t n, PetscBool pinned, GPUCSRStream s)
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

    PetscCall(StageOpen(d, GPUCSRTogether(bytes), s, &k, &stage));
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

/* Keeps the first message of a chain of errors, prints none */
static PetscErrorCode KeepError(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  GPUCSRAttempt *a = (GPUCSRAttempt *)ctx;

  (void)comm;
  (void)line;
  (void)fun;
  (void)file;
  if (p == PETSC_ERROR_INITIAL && !a->message[0] && mess) {
    strncpy(a->message, mess, sizeof(a->message) - 1);
    a->message[sizeof(a->message) - 1] = 0;
  }
  return n;
}

PetscErrorCode GPUCSRAttemptBegin(GPUCSRAttempt *a)
{
  PetscFunctionBegin;
  a->message[0] = 0;
  a->stack      = 0;
#if PetscDefined(USE_DEBUG) && !PetscDefined(HAVE_THREADSAFETY)
  a->stack = petscstack.currentsize - 1; /* an error leaves the functions it passed on PETSc's debugging stack; less this one */
#endif
  PetscCall(PetscPushErrorHandler(KeepError, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRAttemptEnd(GPUCSRAttempt *a)
{
#if PetscDefined(USE_DEBUG) && !PetscDefined(HAVE_THREADSAFETY)
  petscstack.currentsize = a->stack;
#endif
  (void)a;
  return PetscPopErrorHandler();
}
