/*
  Device memory: every allocation is counted and named, and small pieces are kept for reuse. Small pieces of page-locked memory share a block. The device's copy bandwidth is measured here, because the measurement needs memory.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* mincore() */
#endif
#include "gpucsrsys.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Frees the kept pieces */
PetscErrorCode GPUCSRCacheEmpty(GPUCSRDevice d)
{
  PetscFunctionBegin;
  while (d->ncached) PetscCall(d->ops->free(d->id, d->stream, d->cache[--d->ncached].p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes kept piece k out of the list */
static void *TakeKept(GPUCSRDevice d, int k)
{
  void *p = d->cache[k].p;

  memmove(d->cache + k, d->cache + k + 1, sizeof(d->cache[0]) * (size_t)(--d->ncached - k));
  return p;
}

/* Bytes for an array of size bytes: padded for wide loads past its end, and to the pool's granularity */
static size_t Padded(size_t size)
{
  return (size + 256 + 511) / 512 * 512;
}

/* Allocates from the device, if necessary after freeing the kept pieces */
static PetscErrorCode MallocFromDevice(GPUCSRDevice d, size_t bytes, void **p)
{
  PetscFunctionBegin;
  PetscCall(d->ops->activate(d->id));
  if (d->ncached) {
    GPUCSRAttempt attempt;

    GPUCSRTry(&attempt, d->ops->malloc(d->id, bytes, d->stream, p));
    if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(GPUCSRCacheEmpty(d));
  }
  PetscCall(d->ops->malloc(d->id, bytes, d->stream, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* size bytes for the named purpose, in the order of d->stream; before use on another stream, synchronize. */
PetscErrorCode GPUCSRMalloc(GPUCSRDevice d, size_t size, const char what[], void **p)
{
  const size_t bytes = Padded(size);

  PetscFunctionBegin;
  *p = NULL;
  PetscCheck(!d->limit || d->allocated + bytes <= d->limit, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s device %d: %s needs %zu bytes, %zu are in use and -mat_gpucsr_memory_limit is %zu", d->ops->name, d->id, what, bytes, d->allocated, d->limit);
  for (int k = d->ncached; k-- > 0 && !*p;)
    if (d->cache[k].bytes == bytes) *p = TakeKept(d, k);
  if (!*p) PetscCall(MallocFromDevice(d, bytes, p));
  d->allocated += bytes;
  d->peak = PetscMax(d->peak, d->allocated);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can the device be reached? A lost device keeps its objects, and the next use of the device returns the error */
PetscErrorCode GPUCSRDeviceReach(GPUCSRDevice d, GPUCSRBool settle, GPUCSRBool *yes)
{
  GPUCSRAttempt attempt = {0};

  PetscFunctionBegin;
  if (!d->failed[0]) {
    GPUCSRTry(&attempt, d->ops->activate(d->id));
    if (settle) GPUCSRThen(&attempt, GPUCSRDeviceSynchronize(d));
  }
  if (attempt.error) PetscCall(PetscStrncpy(d->failed, attempt.message, sizeof(d->failed)));
  *yes = (GPUCSRBool)!d->failed[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRFree(GPUCSRDevice d, size_t size, void **p)
{
  const size_t bytes = Padded(size);

  PetscFunctionBegin;
  if (!*p) PetscFunctionReturn(PETSC_SUCCESS);
  d->allocated -= bytes;
  if (!d->failed[0]) {
    void      *go = *p;
    GPUCSRBool works;

    if (d->ops->separate && !d->limit && bytes <= GPUCSR_CACHED_BYTES) { /* host memory is freed at once, to expose later uses; a memory limit covers kept pieces too */
      go                     = d->ncached == GPUCSR_CACHED_PIECES ? TakeKept(d, 0) : NULL;
      d->cache[d->ncached++] = (GPUCSRBuffer){*p, bytes};
    }
    if (go) PetscCall(GPUCSRDeviceReach(d, PETSC_FALSE, &works));
    if (go && works) PetscCall(d->ops->free(d->id, d->stream, go));
  }
  *p = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRBufferFree(GPUCSRDevice d, GPUCSRBuffer *b)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRFree(d, b->bytes, &b->p));
  b->bytes = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A buffer that grows loses its contents */
PetscErrorCode GPUCSRBufferGrow(GPUCSRDevice d, size_t bytes, const char what[], GPUCSRBuffer *b)
{
  PetscFunctionBegin;
  if (b->p && b->bytes >= bytes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRBufferFree(d, b));
  PetscCall(GPUCSRMalloc(d, PetscMax(bytes, 1), what, &b->p));
  b->bytes = PetscMax(bytes, 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Page-locked memory: a layer over the table of a backend (layerlist.h) */

static struct {
  GPUCSRBackendOps under; /* the table below this layer */
  char            *block; /* NULL: none could be had, and every request goes to the backend */
  uint64_t         taken; /* a bit for each piece; pieces may outlive the device */
  PetscBool        open;
} locked;

static PetscErrorCode Open_Locked(int id, GPUCSRProperties *p)
{
  GPUCSRAttempt attempt;
  void         *block = locked.block; /* of an earlier device, if pieces have outlived it */

  PetscFunctionBegin;
  PetscCall((*locked.under.open)(id, p));
  if (!block) GPUCSRTry(&attempt, (*locked.under.hostmalloc)(id, GPUCSR_LOCKED_PIECES * GPUCSR_LOCKED_BYTES, &block));
  locked.block = (char *)block;
  locked.open  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees the block if the device is closed and no piece is in use */
static PetscErrorCode FreeBlock(int id)
{
  PetscFunctionBegin;
  if (locked.open || locked.taken || !locked.block) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*locked.under.hostfree)(id, locked.block));
  locked.block = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Close_Locked(int id)
{
  PetscFunctionBegin;
  locked.open = PETSC_FALSE;
  PetscCall(FreeBlock(id));
  PetscCall((*locked.under.close)(id));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostMalloc_Locked(int id, size_t bytes, void **p)
{
  PetscFunctionBegin;
  if (locked.block && bytes <= GPUCSR_LOCKED_BYTES && ~locked.taken) {
    const int k = __builtin_ctzll(~locked.taken);

    locked.taken |= (uint64_t)1 << k;
    *p = locked.block + (size_t)k * GPUCSR_LOCKED_BYTES;
    memset(*p, 255, bytes); /* NaN, which shows a use of the former user's numbers */
  } else PetscCall((*locked.under.hostmalloc)(id, bytes, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Waits for all work of the device, as the backend does, so that no work of the former user writes into the piece */
static PetscErrorCode HostFree_Locked(int id, void *p)
{
  const size_t k = ((uintptr_t)p - (uintptr_t)locked.block) / GPUCSR_LOCKED_BYTES; /* large if p lies below the block */

  PetscFunctionBegin;
  if (locked.block && k < GPUCSR_LOCKED_PIECES) {
    GPUCSRAttempt attempt;

    GPUCSRTry(&attempt, (*locked.under.synchronize)(id));
    if (!attempt.error) locked.taken &= ~((uint64_t)1 << k); /* a device that fails keeps the piece */
    PetscCall(FreeBlock(id));
  } else PetscCall((*locked.under.hostfree)(id, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not for memory of the host's own, whose misuse the host's tools then find. The block stays, because a device can be open already */
PetscErrorCode GPUCSRLayer_locked(GPUCSRBackendOps *ops)
{
  PetscFunctionBegin;
  if (!ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  locked.under    = *ops;
  ops->open       = Open_Locked;
  ops->close      = Close_Locked;
  ops->hostmalloc = HostMalloc_Locked;
  ops->hostfree   = HostFree_Locked;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MeasureBandwidth(GPUCSRDevice d, size_t bytes, void **a, void **b, GPUCSREvent e[2])
{
  double best = PETSC_MAX_REAL, t;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(d, bytes, "the bandwidth yardstick", a));
  PetscCall(GPUCSRMalloc(d, bytes, "the bandwidth yardstick", b));
  for (int k = 0; k < 2; k++) PetscCall(d->ops->eventcreate(d->id, PETSC_TRUE, &e[k]));
  if (!d->ops->kernels) memset(*a, 1, bytes);
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

/* Device copy rate, read plus written, measured once for the report. 0 without memory for the measurement */
PetscErrorCode GPUCSRDeviceBandwidth(GPUCSRDevice d, double *rate)
{
  const size_t bytes = d->ops->kernels ? (size_t)512 << 20 : (size_t)64 << 20;
  const size_t limit = d->limit, peak = d->peak;

  PetscFunctionBegin;
  if (!d->bandwidth && !d->failed[0]) {
    void         *a = NULL, *b = NULL;
    GPUCSREvent   e[2] = {NULL, NULL};
    GPUCSRAttempt attempt;

    d->limit = 0; /* the limit is for the user's matrices */
    GPUCSRTry(&attempt, MeasureBandwidth(d, bytes, &a, &b, e));
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

/* Does the host have memory at p? Freed memory, and memory of a device, have no page on the host */
static PetscBool Mapped(const void *p)
{
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  unsigned char   in;

  return (PetscBool)(!mincore((void *)((uintptr_t)p / page * page), 1, &in) || errno != ENOMEM);
}

/* Is a program's array on this device? d NULL: there is none. An error if the array is on another device, or nowhere */
PetscErrorCode GPUCSRHolds(GPUCSRDevice d, const void *p, GPUCSRBool *yes)
{
  PetscFunctionBegin;
  *yes = PETSC_FALSE;
  if (!p) PetscFunctionReturn(PETSC_SUCCESS);
  if (d) PetscCall((*d->ops->holds)(d->id, p, yes));
  PetscCheck(*yes || Mapped(p), PETSC_COMM_SELF, PETSC_ERR_ARG_BADPTR, "The array at %p is neither the host's nor a device's that this matrix uses: was it freed?", p);
  PetscFunctionReturn(PETSC_SUCCESS);
}
