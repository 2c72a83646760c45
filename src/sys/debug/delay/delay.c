/*
  -gpucsr_debug_delay SEED: on a GPU, streams stop now and then, so a missing wait shows as a wrong number.

  A function of the host stops the stream before or after a copy, an event or a wait for an event. The seed chooses the place. The stop ends when the host waits, after some milliseconds at most. Without
  delays a fast GPU shows a missing wait one time in thousands. On the host and its stand-in hold() has no effect; -gpucsr_debug_defer serves there.
*/
#include "../../gpucsrsys.h"

#define HELD 64 /* most stopped streams; with more, the oldest stays stopped for the time of the newest */

static GPUCSRBackendOps under; /* the table below this layer */
static volatile int     go[HELD];
static int              next;
static uint64_t         state;

/* One time in eight */
static PetscErrorCode Delay(int id, GPUCSRStream s)
{
  PetscFunctionBegin;
  state = state * 6364136223846793005u + 1442695040888963407u;
  if ((state >> 33) % 8) PetscFunctionReturn(PETSC_SUCCESS);
  next     = (next + 1) % HELD;
  go[next] = 0;
  PetscCall((*under.hold)(id, s, &go[next]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Functions of a backend: with a delay, and with a wait of the host */
#define ROWS(DELAYED, WAITS) \
  DELAYED(copy, (int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s), (id, dst, src, bytes, kind, s)) \
  DELAYED(zero, (int id, void *p, size_t bytes, GPUCSRStream s), (id, p, bytes, s)) \
  DELAYED(fetch, (int id, void *dst, const void *src, size_t bytes, GPUCSRStream s), (id, dst, src, bytes, s)) \
  DELAYED(streamwait, (int id, GPUCSRStream s, GPUCSREvent e), (id, s, e)) \
  DELAYED(eventrecord, (int id, GPUCSREvent e, GPUCSRStream s), (id, e, s)) \
  WAITS(synchronize, (int id), (id)) \
  WAITS(streamsynchronize, (int id, GPUCSRStream s), (id, s)) \
  WAITS(eventsynchronize, (int id, GPUCSREvent e), (id, e)) \
  WAITS(eventelapsed, (int id, GPUCSREvent a, GPUCSREvent b, double *seconds), (id, a, b, seconds))

#define DELAYED(name, formal, actual) \
  static PetscErrorCode name##_Delay formal \
  { \
    PetscFunctionBegin; \
    PetscCall(Delay(id, s)); \
    PetscCall((*under.name)actual); \
    PetscCall(Delay(id, s)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

#define WAITS(name, formal, actual) \
  static PetscErrorCode name##_Delay formal \
  { \
    PetscFunctionBegin; \
    for (int k = 0; k < HELD; k++) go[k] = 1; \
    PetscCall((*under.name)actual); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

ROWS(DELAYED, WAITS)

PetscErrorCode GPUCSRLayer_delay(GPUCSRBackendOps *ops)
{
  PetscInt  seed;
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-gpucsr_debug_delay", &seed, &set));
  if (!set || !ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  state = (uint64_t)seed;
  under = *ops;
#define LAY(name, ...) \
  if (ops->name) ops->name = name##_Delay;
  ROWS(LAY, LAY)
#undef LAY
  PetscFunctionReturn(PETSC_SUCCESS);
}
