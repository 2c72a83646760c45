/*
  -gpucsr_debug_delay SEED: on a GPU, streams stand still now and then, so that what somebody should have waited for and did not is late, and shows as a wrong number.

  Before or after a copy, an event or a wait for one, as drawn from the seed, the stream gets a function of the host that holds what comes next on it until the host waits for
  something, some milliseconds at most. On a GPU that is quick a missing wait is seen one time in thousands; so it is seen at once. On the host and its stand-in hold() does
  nothing: there -gpucsr_debug_defer does this.
*/
#include "../../gpucsrsys.h"

#define HELD 64 /* streams that stand still, at most: an older one then goes on standing for the newer one's time */

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

static void Release(void)
{
  for (int k = 0; k < HELD; k++) go[k] = 1;
}

#define DELAYED(name, formal, actual) \
  static PetscErrorCode name##_Delay formal \
  { \
    PetscFunctionBegin; \
    PetscCall(Delay(id, s)); \
    PetscCall((*under.name)actual); \
    PetscCall(Delay(id, s)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

DELAYED(copy, (int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s), (id, dst, src, bytes, kind, s))
DELAYED(zero, (int id, void *p, size_t bytes, GPUCSRStream s), (id, p, bytes, s))
DELAYED(fetch, (int id, void *dst, const void *src, size_t bytes, GPUCSRStream s), (id, dst, src, bytes, s))
DELAYED(streamwait, (int id, GPUCSRStream s, GPUCSREvent e), (id, s, e))
DELAYED(eventrecord, (int id, GPUCSREvent e, GPUCSRStream s), (id, e, s))

#define WAITS(name, formal, actual) \
  static PetscErrorCode name##_Delay formal \
  { \
    PetscFunctionBegin; \
    Release(); \
    PetscCall((*under.name)actual); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

WAITS(synchronize, (int id), (id))
WAITS(streamsynchronize, (int id, GPUCSRStream s), (id, s))
WAITS(eventsynchronize, (int id, GPUCSREvent e), (id, e))
WAITS(eventelapsed, (int id, GPUCSREvent a, GPUCSREvent b, double *seconds), (id, a, b, seconds))

PetscErrorCode GPUCSRDebug_delay(GPUCSRBackendOps *ops)
{
  PetscInt  seed;
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-gpucsr_debug_delay", &seed, &set));
  if (!set || !ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  state = (uint64_t)seed;
  under = *ops;
#define LAY(name) \
  if (ops->name) ops->name = name##_Delay
  LAY(copy);
  LAY(zero);
  LAY(fetch);
  LAY(streamwait);
  LAY(eventrecord);
  LAY(synchronize);
  LAY(streamsynchronize);
  LAY(eventsynchronize);
  LAY(eventelapsed);
#undef LAY
  PetscFunctionReturn(PETSC_SUCCESS);
}
