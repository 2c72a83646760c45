/* What set-up and refresh ask of the backend (-calls): a table of functions that counts, and hands on */
#include "spmv.h"

#define COUNTED(X) \
  X(malloc, (int id, size_t bytes, GPUCSRStream s, void **p), (id, bytes, s, p)) \
  X(free, (int id, GPUCSRStream s, void *p), (id, s, p)) \
  X(copy, (int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s), (id, dst, src, bytes, kind, s)) \
  X(zero, (int id, void *p, size_t bytes, GPUCSRStream s), (id, p, bytes, s)) \
  X(eventcreate, (int id, GPUCSRBool timing, GPUCSREvent *e), (id, timing, e)) \
  X(eventdestroy, (int id, GPUCSREvent e), (id, e)) \
  X(eventrecord, (int id, GPUCSREvent e, GPUCSRStream s), (id, e, s)) \
  X(eventsynchronize, (int id, GPUCSREvent e), (id, e)) \
  X(streamwait, (int id, GPUCSRStream s, GPUCSREvent e), (id, s, e)) \
  X(streamsynchronize, (int id, GPUCSRStream s), (id, s))

static const GPUCSRBackendOps *backend;

#define COUNT(call, parameters, arguments) \
  static struct { \
    int    n; \
    double s; \
  } count_##call; \
  static PetscErrorCode Counted_##call parameters \
  { \
    PetscLogDouble t0, t1; \
\
    PetscFunctionBeginUser; \
    PetscCall(PetscTime(&t0)); \
    PetscCall((*backend->call)arguments); \
    PetscCall(PetscTime(&t1)); \
    count_##call.n++; \
    count_##call.s += t1 - t0; \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
COUNTED(COUNT)
#undef COUNT

static GPUCSRBackendOps counting;

/* Begins to count all calls */
PetscErrorCode SpmvCallsBegin(GPUCSRDevice dev)
{
  PetscFunctionBeginUser;
  backend  = dev->ops;
  counting = *backend;
#define TAKE(call, parameters, arguments) \
  counting.call  = Counted_##call; \
  count_##call.n = 0; \
  count_##call.s = 0;
  COUNTED(TAKE)
#undef TAKE
  dev->ops = &counting;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No more; says how often each was called, and its mean in microseconds */
PetscErrorCode SpmvCallsEnd(GPUCSRDevice dev, const char what[], double seconds)
{
  PetscFunctionBeginUser;
  dev->ops = backend;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %s %.1f us:", what, 1e6 * seconds));
#define SAY(call, parameters, arguments) \
  if (count_##call.n) PetscCall(PetscPrintf(PETSC_COMM_SELF, " " #call " %d x %.2f", count_##call.n, 1e6 * count_##call.s / count_##call.n));
  COUNTED(SAY)
#undef SAY
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
