/*
  -gpucsr_debug_fault KIND:N[:on][:rank=R]: the N-th backend call of a kind fails, or with `on` every call from the N-th; with R only on rank R. N = 0 only counts. Code above the backend's table
  cannot tell these failures from real ones.
*/
#include "fault.h"
#include <stdlib.h>
#include <string.h>

const char *const GPUCSRFaultKinds[GPUCSR_FAULT_KINDS + 1] = {"memory", "pagelock", "copy", "launch", "event", "synchronize", "properties", "peer", "device", NULL};
GPUCSRFaultCounts GPUCSRFaultCounters;

static GPUCSRBackendOps under; /* the table below this layer */

/* Counts a call; does it fail? */
static GPUCSRBool Fails(GPUCSRFaultKind kind)
{
  GPUCSRFaultCounts *f = &GPUCSRFaultCounters;
  PetscInt           n;

  if (kind != GPUCSR_FAULT_DEVICE) f->calls[kind]++;
  f->calls[GPUCSR_FAULT_DEVICE]++;
  if (!f->at || (f->kind != kind && f->kind != GPUCSR_FAULT_DEVICE)) return PETSC_FALSE;
  n = f->calls[f->kind];
  if (n != f->at && !(f->on && n > f->at)) return PETSC_FALSE;
  f->injected++;
  return PETSC_TRUE;
}

/* Fails before the call of the layer below, which is skipped */
static PetscErrorCode Inject(GPUCSRFaultKind kind, const char what[], PetscErrorCode code)
{
  const GPUCSRFaultCounts *f = &GPUCSRFaultCounters;

  PetscFunctionBegin;
  PetscCheck(!Fails(kind), PETSC_COMM_SELF, code, "Backend %s: %s fails, as -gpucsr_debug_fault %s:%" PetscInt_FMT "%s says", under.name, what, GPUCSRFaultKinds[f->kind], f->at, f->on ? ":on" : "");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The functions of a backend, a row each. CALL(name, formal arguments, actual arguments, kind, error code, statement that counts). GIVE(name, formal arguments, actual arguments, counted): frees never fail,
  since a lost device keeps the object.
*/
#define ROWS(CALL, GIVE) \
  CALL(open, (int id, GPUCSRProperties *p), (id, p), GPUCSR_FAULT_PROPERTIES, PETSC_ERR_GPU, ) \
  CALL(activate, (int id), (id), GPUCSR_FAULT_PROPERTIES, PETSC_ERR_GPU, ) \
  CALL(memory, (int id, size_t *avail, size_t *total), (id, avail, total), GPUCSR_FAULT_PROPERTIES, PETSC_ERR_GPU, ) \
  CALL(synchronize, (int id), (id), GPUCSR_FAULT_SYNCHRONIZE, PETSC_ERR_GPU, ) \
  CALL(malloc, (int id, size_t bytes, GPUCSRStream s, void **p), (id, bytes, s, p), GPUCSR_FAULT_MEMORY, PETSC_ERR_MEM, GPUCSRFaultCounters.memory++) \
  CALL(hostmalloc, (int id, size_t bytes, void **p), (id, bytes, p), GPUCSR_FAULT_PAGELOCK, PETSC_ERR_MEM, GPUCSRFaultCounters.hostmemory++) \
  CALL(share, (int id, size_t bytes, void **p, GPUCSRHandle *h), (id, bytes, p, h), GPUCSR_FAULT_PEER, PETSC_ERR_MEM, GPUCSRFaultCounters.memory++) \
  CALL(attach, (int id, const GPUCSRHandle *h, size_t bytes, void **p), (id, h, bytes, p), GPUCSR_FAULT_PEER, PETSC_ERR_GPU, GPUCSRFaultCounters.attached++) \
  CALL(copy, (int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s), (id, dst, src, bytes, kind, s), GPUCSR_FAULT_COPY, PETSC_ERR_GPU, ) \
  CALL(zero, (int id, void *p, size_t bytes, GPUCSRStream s), (id, p, bytes, s), GPUCSR_FAULT_COPY, PETSC_ERR_GPU, ) \
  CALL(fetch, (int id, void *dst, const void *src, size_t bytes, GPUCSRStream s), (id, dst, src, bytes, s), GPUCSR_FAULT_COPY, PETSC_ERR_GPU, ) \
  CALL(streamcreate, (int id, GPUCSRStream *s), (id, s), GPUCSR_FAULT_EVENT, PETSC_ERR_GPU, GPUCSRFaultCounters.streams++) \
  CALL(streamsynchronize, (int id, GPUCSRStream s), (id, s), GPUCSR_FAULT_SYNCHRONIZE, PETSC_ERR_GPU, ) \
  CALL(streamwait, (int id, GPUCSRStream s, GPUCSREvent e), (id, s, e), GPUCSR_FAULT_EVENT, PETSC_ERR_GPU, ) \
  CALL(eventcreate, (int id, GPUCSRBool timing, GPUCSREvent *e), (id, timing, e), GPUCSR_FAULT_EVENT, PETSC_ERR_GPU, GPUCSRFaultCounters.events++) \
  CALL(eventrecord, (int id, GPUCSREvent e, GPUCSRStream s), (id, e, s), GPUCSR_FAULT_EVENT, PETSC_ERR_GPU, ) \
  CALL(eventsynchronize, (int id, GPUCSREvent e), (id, e), GPUCSR_FAULT_SYNCHRONIZE, PETSC_ERR_GPU, ) \
  CALL(eventelapsed, (int id, GPUCSREvent a, GPUCSREvent b, double *seconds), (id, a, b, seconds), GPUCSR_FAULT_EVENT, PETSC_ERR_GPU, ) \
  CALL(hold, (int id, GPUCSRStream s, volatile int *go), (id, s, go), GPUCSR_FAULT_LAUNCH, PETSC_ERR_GPU, ) \
  GIVE(free, (int id, GPUCSRStream s, void *p), (id, s, p), memory) \
  GIVE(unshare, (int id, size_t bytes, void *p), (id, bytes, p), memory) \
  GIVE(detach, (int id, size_t bytes, void *p), (id, bytes, p), attached) \
  GIVE(hostfree, (int id, void *p), (id, p), hostmemory) \
  GIVE(hostunregister, (int id, void *p), (id, p), locked) \
  GIVE(streamdestroy, (int id, GPUCSRStream s), (id, s), streams) \
  GIVE(eventdestroy, (int id, GPUCSREvent e), (id, e), events)

#define CALL(name, formal, actual, kind, code, count) \
  static PetscErrorCode name##_Fault formal \
  { \
    PetscFunctionBegin; \
    PetscCall(Inject(kind, #name, code)); \
    PetscCall((*under.name)actual); \
    count; \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
#define GIVE(name, formal, actual, counted) \
  static PetscErrorCode name##_Fault formal \
  { \
    PetscFunctionBegin; \
    GPUCSRFaultCounters.counted--; \
    if (!Fails(GPUCSR_FAULT_DEVICE)) PetscCall((*under.name)actual); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
ROWS(CALL, GIVE)

/* Page-locking is refused, which is no error */
static PetscErrorCode hostregister_Fault(int id, void *p, size_t bytes, GPUCSRBool *done)
{
  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!Fails(GPUCSR_FAULT_PAGELOCK)) PetscCall((*under.hostregister)(id, p, bytes, done));
  if (*done) GPUCSRFaultCounters.locked++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Launch_Fault(GPUCSRDevice d, const char what[])
{
  PetscFunctionBegin;
  if (!d || !strcmp(d->ops->name, under.name)) PetscCall(Inject(GPUCSR_FAULT_LAUNCH, what, PETSC_ERR_GPU));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRLayer_fault(GPUCSRBackendOps *ops)
{
  GPUCSRFaultCounts *f = &GPUCSRFaultCounters;
  char               text[64], *rest;
  PetscBool          set;
  const char        *end;
  size_t             word;
  int                k = 0;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-gpucsr_debug_fault", text, sizeof(text), &set));
  PetscCall(PetscStrncpy(f->backend, "cuda", sizeof(f->backend)));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-gpucsr_debug_fault_backend", f->backend, sizeof(f->backend), NULL));
  if (strcmp(ops->name, f->backend)) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRLaunchHook = NULL;
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(f->calls, sizeof(f->calls)));
  f->injected = f->memory = f->hostmemory = f->locked = f->attached = f->events = f->streams = 0;
  /* KIND:N and its suffixes */
  end  = strchr(text, ':');
  word = end ? (size_t)(end - text) : strlen(text);
  while (k < GPUCSR_FAULT_KINDS && (strncmp(text, GPUCSRFaultKinds[k], word) || GPUCSRFaultKinds[k][word])) k++;
  PetscCheck(end && k < GPUCSR_FAULT_KINDS, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-gpucsr_debug_fault %s: must begin with memory:, pagelock:, copy:, launch:, event:, synchronize:, properties:, peer: or device:, and a number", text);
  f->kind = (GPUCSRFaultKind)k;
  f->at   = (PetscInt)strtol(end + 1, &rest, 10);
  f->on   = (GPUCSRBool)!strncmp(rest, ":on", 3);
  if (f->on) rest += 3;
  if (!strncmp(rest, ":rank=", 6)) {
    if (strtol(rest + 6, &rest, 10) != GPUCSRRankOf(PETSC_COMM_WORLD)) f->at = 0;
  }
  PetscCheck(!*rest, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-gpucsr_debug_fault %s: cannot parse %s", text, rest);
  under            = *ops;
  GPUCSRLaunchHook = Launch_Fault;
#define LAY(name, ...) \
  if (ops->name) ops->name = name##_Fault;
  ROWS(LAY, LAY)
  LAY(hostregister)
#undef LAY
  PetscFunctionReturn(PETSC_SUCCESS);
}
