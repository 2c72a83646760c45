/*
  The host backend: the CPU plays the device. Memory is ordinary, streams and events are empty, and copies are complete on return. Formats, conversions, plans and the Mat run unchanged, so a
  machine without a GPU works, and tests all but the device code.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* memfd_create() */
#endif
#include "../../gpucsrsys.h"
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static PetscErrorCode Count_Host(int *n, char why[], size_t len)
{
  *n = 1;
  return PETSC_SUCCESS;
}

static PetscErrorCode Open_Host(int id, GPUCSRProperties *p)
{
  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(p->name, sizeof(p->name), "host CPU"));
  p->id         = id;
  p->ndevices   = 1;
  p->major      = 0;
  p->minor      = 0;
  p->processors = omp_get_num_procs();
  p->memory     = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  p->l2         = (size_t)32 << 20;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Id_Host(int id)
{
  return PETSC_SUCCESS;
}

static PetscErrorCode Memory_Host(int id, size_t *avail, size_t *total)
{
  *total = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  *avail = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  return PETSC_SUCCESS;
}

static PetscErrorCode HostMalloc_Host(int id, size_t bytes, void **p)
{
  return PetscMallocA(1, PETSC_FALSE, __LINE__, PETSC_FUNCTION_NAME, __FILE__, bytes, p);
}

static PetscErrorCode HostFree_Host(int id, void *p)
{
  return PetscFree(p);
}

static PetscErrorCode Malloc_Host(int id, size_t bytes, GPUCSRStream s, void **p)
{
  return HostMalloc_Host(id, bytes, p);
}

static PetscErrorCode Free_Host(int id, GPUCSRStream s, void *p)
{
  return HostFree_Host(id, p);
}

/* Device memory is the host's here: nothing distinguishes the two, and nothing needs to */
static PetscErrorCode Holds_Host(int id, const void *p, GPUCSRBool *yes)
{
  *yes = PETSC_FALSE;
  return PETSC_SUCCESS;
}

static PetscErrorCode Register_Host(int id, void *p, size_t bytes, GPUCSRBool *done)
{
  *done = PETSC_FALSE; /* nothing crosses a bus here */
  return PETSC_SUCCESS;
}

/* Memory without a name, so that a killed process leaves nothing behind; other processes open this process' descriptor */
static PetscErrorCode Map(int fd, size_t bytes, void **p)
{
  PetscFunctionBegin;
  PetscCheck(fd >= 0, PETSC_COMM_SELF, PETSC_ERR_SYS, "cannot open memory of another process: %s", strerror(errno));
  *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (*p == MAP_FAILED) *p = NULL;
  PetscCheck(*p, PETSC_COMM_SELF, PETSC_ERR_MEM, "cannot map %zu bytes of shared memory: %s", bytes, strerror(errno));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The piece begins with a page for its descriptor */
#define HEADER 4096

static PetscErrorCode Share_Host(int id, size_t bytes, void **p, GPUCSRHandle *handle)
{
  int   fd    = memfd_create("gpucsr", MFD_CLOEXEC);
  void *whole = NULL;

  PetscFunctionBegin;
  PetscCheck(fd >= 0 && !ftruncate(fd, (off_t)(bytes + HEADER)), PETSC_COMM_SELF, PETSC_ERR_MEM, "cannot allocate %zu bytes of shared memory: %s", bytes, strerror(errno));
  PetscCall(Map(fd, bytes + HEADER, &whole));
  *(int *)whole = fd;
  *p            = (char *)whole + HEADER;
  PetscCall(PetscSNPrintf(handle->bytes, sizeof(handle->bytes), "/proc/%d/fd/%d", (int)getpid(), fd));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Unshare_Host(int id, size_t bytes, void *p)
{
  void     *whole = (char *)p - HEADER;
  const int fd    = *(int *)whole;

  PetscFunctionBegin;
  (void)munmap(whole, bytes + HEADER);
  (void)close(fd);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Attach_Host(int id, const GPUCSRHandle *handle, size_t bytes, void **p)
{
  int            fd    = open(handle->bytes, O_RDWR | O_CLOEXEC);
  void          *whole = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = Map(fd, bytes + HEADER, &whole);
  if (fd >= 0) (void)close(fd);
  PetscCall(ierr);
  *p = (char *)whole + HEADER;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Detach_Host(int id, size_t bytes, void *p)
{
  PetscFunctionBegin;
  (void)munmap((char *)p - HEADER, bytes + HEADER);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copy_Host(int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s)
{
  return PetscMemcpy(dst, src, bytes);
}

static PetscErrorCode Zero_Host(int id, void *p, size_t bytes, GPUCSRStream s)
{
  return PetscMemzero(p, bytes);
}

static PetscErrorCode StreamCreate_Host(int id, GPUCSRStream *s)
{
  *s = NULL;
  return PETSC_SUCCESS;
}

static PetscErrorCode Pointer_Host(int id, void *p)
{
  return PETSC_SUCCESS;
}

static PetscErrorCode Pair_Host(int id, void *a, void *b)
{
  return PETSC_SUCCESS;
}

/* An event is the time at which it was recorded */
static PetscErrorCode EventCreate_Host(int id, GPUCSRBool timing, GPUCSREvent *e)
{
  return PetscMallocA(1, PETSC_TRUE, __LINE__, PETSC_FUNCTION_NAME, __FILE__, sizeof(double), (void **)e);
}

static PetscErrorCode EventRecord_Host(int id, GPUCSREvent e, GPUCSRStream s)
{
  *(double *)e = omp_get_wtime();
  return PETSC_SUCCESS;
}

static PetscErrorCode EventElapsed_Host(int id, GPUCSREvent a, GPUCSREvent b, double *seconds)
{
  *seconds = *(double *)b - *(double *)a;
  return PETSC_SUCCESS;
}

/* No later work to hold: a launch is complete on return */
static PetscErrorCode Hold_Host(int id, GPUCSRStream s, volatile int *go)
{
  return PETSC_SUCCESS;
}

const GPUCSRBackendOps GPUCSRBackend_host = {
  .name              = "host",
  .separate          = PETSC_FALSE,
  .count             = Count_Host,
  .open              = Open_Host,
  .close             = Id_Host,
  .activate          = Id_Host,
  .memory            = Memory_Host,
  .synchronize       = Id_Host,
  .malloc            = Malloc_Host,
  .free              = Free_Host,
  .holds             = Holds_Host,
  .hostmalloc        = HostMalloc_Host,
  .hostfree          = HostFree_Host,
  .hostregister      = Register_Host,
  .hostunregister    = Pointer_Host,
  .share             = Share_Host,
  .unshare           = Unshare_Host,
  .attach            = Attach_Host,
  .detach            = Detach_Host,
  .copy              = Copy_Host,
  .zero              = Zero_Host,
  .streamcreate      = StreamCreate_Host,
  .streamdestroy     = Pointer_Host,
  .streamsynchronize = Pointer_Host,
  .streamwait        = Pair_Host,
  .eventcreate       = EventCreate_Host,
  .eventdestroy      = HostFree_Host,
  .eventrecord       = EventRecord_Host,
  .eventsynchronize  = Pointer_Host,
  .eventelapsed      = EventElapsed_Host,
  .hold              = Hold_Host,
};
