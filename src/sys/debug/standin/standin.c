/*
  -gpucsr_debug_standin: the host stands in for the GPU of the backend cuda. Its memory is apart from the host's and poisoned, so programs need the same copies, staged pieces,
  page-locked vectors and fallbacks as with a GPU. Kernels are the formats' reference products. -gpucsr_debug_standin gives the number of devices.
  -gpucsr_debug_standin_properties: processors, MHz, GB/s and MB of last-level cache of these devices.
*/
#include "../../gpucsrsys.h"
#include <stdlib.h>
#include <string.h>

static int       ndevices;
static PetscReal properties[4];

static PetscErrorCode Count_StandIn(int *n, char why[], size_t len)
{
  *n = ndevices;
  return PETSC_SUCCESS;
}

static PetscErrorCode Open_StandIn(int id, GPUCSRProperties *p)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRBackend_host.open)(0, p));
  PetscCall(PetscSNPrintf(p->name, sizeof(p->name), "host CPU, standing in for a GPU"));
  p->ndevices = ndevices;
  if (properties[0] > 0) {
    p->processors = (int)properties[0];
    p->clock      = 1e6 * (double)properties[1];
    p->bandwidth  = 1e9 * (double)properties[2];
    p->l2         = (size_t)(1e6 * (double)properties[3]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Separate from PETSc's memory, like a GPU's. All bits set are a NaN, and an index beyond every array */
static PetscErrorCode HostMalloc_StandIn(int id, size_t bytes, void **p)
{
  PetscFunctionBegin;
  *p = malloc(bytes);
  PetscCheck(*p, PETSC_COMM_SELF, PETSC_ERR_MEM, "Device %d: cannot allocate %zu bytes", id, bytes);
  memset(*p, 255, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostFree_StandIn(int id, void *p)
{
  free(p);
  return PETSC_SUCCESS;
}

/* Device memory, to tell it from the host's */
typedef struct _n_Piece Piece;
struct _n_Piece {
  int         id;
  const char *begin;
  size_t      bytes;
  Piece      *next;
};
static Piece *pieces;

static PetscErrorCode Malloc_StandIn(int id, size_t bytes, GPUCSRStream s, void **p)
{
  Piece *m;

  PetscFunctionBegin;
  PetscCall(HostMalloc_StandIn(id, bytes, p));
  m = (Piece *)malloc(sizeof(*m));
  PetscCheck(m, PETSC_COMM_SELF, PETSC_ERR_MEM, "Device %d: cannot allocate %zu bytes", id, bytes);
  *m     = (Piece){id, (const char *)*p, bytes, pieces};
  pieces = m;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Free_StandIn(int id, GPUCSRStream s, void *p)
{
  Piece **m = &pieces, *gone;

  PetscFunctionBegin;
  while (*m && (*m)->begin != p) m = &(*m)->next;
  gone = *m;
  if (gone) *m = gone->next;
  free(gone);
  PetscCall(HostFree_StandIn(id, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Holds_StandIn(int id, const void *p, GPUCSRBool *yes)
{
  const Piece *m = pieces;

  PetscFunctionBegin;
  while (m && ((const char *)p < m->begin || (const char *)p >= m->begin + m->bytes)) m = m->next;
  *yes = m ? PETSC_TRUE : PETSC_FALSE;
  PetscCheck(!m || m->id == id, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The memory at %p is device %d's, and this matrix is on device %d: copy it there", p, m->id, id);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Register_StandIn(int id, void *p, size_t bytes, GPUCSRBool *done)
{
  *done = PETSC_TRUE;
  return PETSC_SUCCESS;
}

/* An event is the time at which it was recorded */
static PetscErrorCode EventCreate_StandIn(int id, GPUCSRBool timing, GPUCSREvent *e)
{
  PetscFunctionBegin;
  PetscCall(HostMalloc_StandIn(id, sizeof(double), e));
  *(double *)*e = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRLayer_standin(GPUCSRBackendOps *ops)
{
  PetscBool set;
  PetscInt  n = 0, np = 4;

  PetscFunctionBegin;
  if (strcmp(ops->name, "cuda")) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-gpucsr_debug_standin", &n, NULL));
  if (n <= 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscArrayzero(properties, 4));
  PetscCall(PetscOptionsGetRealArray(NULL, NULL, "-gpucsr_debug_standin_properties", properties, &np, &set));
  PetscCheck(!set || (np == 4 && properties[0] > 0), PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-gpucsr_debug_standin_properties: processors, MHz, GB/s and MB of cache");
  ndevices          = (int)n;
  *ops              = GPUCSRBackend_host;
  ops->name         = "cuda";
  ops->separate     = PETSC_TRUE;
  ops->count        = Count_StandIn;
  ops->open         = Open_StandIn;
  ops->malloc       = Malloc_StandIn;
  ops->free         = Free_StandIn;
  ops->holds        = Holds_StandIn;
  ops->hostmalloc   = HostMalloc_StandIn;
  ops->hostfree     = HostFree_StandIn;
  ops->hostregister = Register_StandIn;
  ops->eventcreate  = EventCreate_StandIn;
  ops->eventdestroy = HostFree_StandIn;
  PetscFunctionReturn(PETSC_SUCCESS);
}
