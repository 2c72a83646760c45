/*
  Device memory: every allocation is counted and named, small pieces are kept for the next one. The device's copy bandwidth is measured here, since that
  takes memory.
*/
#include "gpucsrsys.h"
#include <string.h>

/* What is in hand goes back */
PetscErrorCode GPUCSRCacheEmpty(GPUCSRDevice d)
{
  PetscFunctionBegin;
  while (d->ncached) PetscCall(d->ops->free(d->id, d->stream, d->cache[--d->ncached]));
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
  if (d->ncached) {
    GPUCSRAttempt attempt;

    GPUCSRTry(&attempt, d->ops->malloc(d->id, bytes, d->stream, p));
    if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(GPUCSRCacheEmpty(d));
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
  for (int k = d->ncached; k-- > 0 && !*p;)
    if (d->cachebytes[k] == bytes) {
      *p = d->cache[k];
      d->ncached--;
      memmove(d->cache + k, d->cache + k + 1, sizeof(d->cache[0]) * (size_t)(d->ncached - k));
      memmove(d->cachebytes + k, d->cachebytes + k + 1, sizeof(d->cachebytes[0]) * (size_t)(d->ncached - k));
    }
  if (!*p) PetscCall(MallocFromDevice(d, bytes, p));
  d->allocated += bytes;
  d->peak = PetscMax(d->peak, d->allocated);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A device that cannot be reached any more keeps what it has: whoever uses it next hears of that */
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

static PetscErrorCode FreeToDevice(GPUCSRDevice d, void *p)
{
  GPUCSRBool yes;

  PetscFunctionBegin;
  PetscCall(GPUCSRDeviceReach(d, PETSC_FALSE, &yes));
  if (yes) PetscCall(d->ops->free(d->id, d->stream, p));
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

    if (d->ops->separate && !d->limit && bytes <= GPUCSR_CACHED_BYTES) { /* host memory goes at once, so that who uses it afterwards is found out; a limit is for what is in hand, too */
      go = d->ncached == GPUCSR_CACHED_PIECES ? d->cache[0] : NULL;
      if (go) {
        d->ncached--;
        memmove(d->cache, d->cache + 1, sizeof(d->cache[0]) * (size_t)d->ncached);
        memmove(d->cachebytes, d->cachebytes + 1, sizeof(d->cachebytes[0]) * (size_t)d->ncached);
      }
      d->cache[d->ncached]        = *p;
      d->cachebytes[d->ncached++] = bytes;
    }
    if (go) PetscCall(FreeToDevice(d, go));
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

/* Device copy rate, read plus written, measured once: the yardstick of the report. 0 where there is no memory to measure it with */
PetscErrorCode GPUCSRDeviceBandwidth(GPUCSRDevice d, double *rate)
{
  const size_t bytes = d->ops->kernels ? (size_t)512 << 20 : (size_t)64 << 20;
  const size_t limit = d->limit, peak = d->peak;

  PetscFunctionBegin;
  if (!d->bandwidth && !d->failed[0]) {
    void         *a = NULL, *b = NULL;
    GPUCSREvent   e[2] = {NULL, NULL};
    GPUCSRAttempt attempt;

    d->limit = 0; /* it is the user's for matrices */
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
