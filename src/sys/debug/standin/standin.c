/*
  -gpucsr_debug_standin N: the host plays N GPUs of the backend cuda. Device memory is separate and poisoned, so every copy, staged piece, page-locked vector and fallback of a GPU is tested; kernels
  are the formats' reference products.
*/
#include "../../gpucsrsys.h"
#include <stdlib.h>
#include <string.h>

static int ndevices;

static PetscErrorCode Count_StandIn(int *n, char why[], size_t len)
{
  (void)why;
  (void)len;
  *n = ndevices;
  return PETSC_SUCCESS;
}

static PetscErrorCode Open_StandIn(int id, GPUCSRProperties *p)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRBackend_host.open)(0, p));
  PetscCall(PetscSNPrintf(p->name, sizeof(p->name), "host CPU, standing in for a GPU"));
  p->id       = id;
  p->ndevices = ndevices;
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
  (void)id;
  free(p);
  return PETSC_SUCCESS;
}

static PetscErrorCode Malloc_StandIn(int id, size_t bytes, GPUCSRStream s, void **p)
{
  (void)s;
  return HostMalloc_StandIn(id, bytes, p);
}

static PetscErrorCode Free_StandIn(int id, GPUCSRStream s, void *p)
{
  (void)s;
  return HostFree_StandIn(id, p);
}

static PetscErrorCode Register_StandIn(int id, void *p, size_t bytes, GPUCSRBool *done)
{
  (void)id;
  (void)p;
  (void)bytes;
  *done = PETSC_TRUE;
  return PETSC_SUCCESS;
}

/* An event is the time at which it was recorded */
static PetscErrorCode EventCreate_StandIn(int id, GPUCSRBool timing, GPUCSREvent *e)
{
  PetscFunctionBegin;
  (void)timing;
  PetscCall(HostMalloc_StandIn(id, sizeof(double), e));
  *(double *)*e = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRDebug_standin(GPUCSRBackendOps *ops)
{
  PetscBool cuda;
  PetscInt  n = 0;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(ops->name, "cuda", &cuda));
  if (!cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-gpucsr_debug_standin", &n, NULL));
  if (n <= 0) PetscFunctionReturn(PETSC_SUCCESS);
  ndevices          = (int)n;
  *ops              = GPUCSRBackend_host;
  ops->name         = "cuda";
  ops->separate     = PETSC_TRUE;
  ops->count        = Count_StandIn;
  ops->open         = Open_StandIn;
  ops->malloc       = Malloc_StandIn;
  ops->free         = Free_StandIn;
  ops->hostmalloc   = HostMalloc_StandIn;
  ops->hostfree     = HostFree_StandIn;
  ops->hostregister = Register_StandIn;
  ops->eventcreate  = EventCreate_StandIn;
  ops->eventdestroy = HostFree_StandIn;
  PetscFunctionReturn(PETSC_SUCCESS);
}
