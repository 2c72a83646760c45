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

/* Nothing to do: work is complete on return, and the host is always open */
#define NOTHING(name, ...) \
  static PetscErrorCode name##_Host(__VA_ARGS__) \
  { \
    return PETSC_SUCCESS; \
  }
NOTHING(close, int id)
NOTHING(activate, int id)
NOTHING(synchronize, int id)
NOTHING(hostunregister, int id, void *p)
NOTHING(streamdestroy, int id, GPUCSRStream s)
NOTHING(streamsynchronize, int id, GPUCSRStream s)
NOTHING(streamwait, int id, GPUCSRStream s, GPUCSREvent e)
NOTHING(eventsynchronize, int id, GPUCSREvent e)
NOTHING(hold, int id, GPUCSRStream s, volatile int *go)

static PetscErrorCode count_Host(int *n, char why[], size_t len)
{
  *n = 1;
  return PETSC_SUCCESS;
}

static PetscErrorCode open_Host(int id, GPUCSRProperties *p)
{
  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(p->name, sizeof(p->name), "host CPU"));
  p->ndevices   = 1;
  p->processors = omp_get_num_procs();
  p->memory     = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  p->l2         = (size_t)32 << 20;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode memory_Host(int id, size_t *avail, size_t *total)
{
  *total = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  *avail = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  return PETSC_SUCCESS;
}

static PetscErrorCode hostmalloc_Host(int id, size_t bytes, void **p)
{
  return PetscMallocA(1, PETSC_FALSE, __LINE__, PETSC_FUNCTION_NAME, __FILE__, bytes, p);
}

static PetscErrorCode hostfree_Host(int id, void *p)
{
  return PetscFree(p);
}

static PetscErrorCode malloc_Host(int id, size_t bytes, GPUCSRStream s, void **p)
{
  return hostmalloc_Host(id, bytes, p);
}

static PetscErrorCode free_Host(int id, GPUCSRStream s, void *p)
{
  return hostfree_Host(id, p);
}

/* Device memory is the host's here: nothing distinguishes the two, and nothing needs to */
static PetscErrorCode holds_Host(int id, const void *p, GPUCSRBool *yes)
{
  *yes = PETSC_FALSE;
  return PETSC_SUCCESS;
}

static PetscErrorCode hostregister_Host(int id, void *p, size_t bytes, GPUCSRBool *done)
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

static PetscErrorCode share_Host(int id, size_t bytes, void **p, GPUCSRHandle *handle)
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

static PetscErrorCode unshare_Host(int id, size_t bytes, void *p)
{
  void     *whole = (char *)p - HEADER;
  const int fd    = *(int *)whole;

  PetscFunctionBegin;
  (void)munmap(whole, bytes + HEADER);
  (void)close(fd);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode attach_Host(int id, const GPUCSRHandle *handle, size_t bytes, void **p)
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

static PetscErrorCode detach_Host(int id, size_t bytes, void *p)
{
  PetscFunctionBegin;
  (void)munmap((char *)p - HEADER, bytes + HEADER);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode copy_Host(int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s)
{
  return PetscMemcpy(dst, src, bytes);
}

static PetscErrorCode zero_Host(int id, void *p, size_t bytes, GPUCSRStream s)
{
  return PetscMemzero(p, bytes);
}

static PetscErrorCode streamcreate_Host(int id, GPUCSRStream *s)
{
  *s = NULL;
  return PETSC_SUCCESS;
}

/* An event is the time at which it was recorded */
static PetscErrorCode eventcreate_Host(int id, GPUCSRBool timing, GPUCSREvent *e)
{
  return PetscMallocA(1, PETSC_TRUE, __LINE__, PETSC_FUNCTION_NAME, __FILE__, sizeof(double), (void **)e);
}

static PetscErrorCode eventdestroy_Host(int id, GPUCSREvent e)
{
  return PetscFree(e);
}

static PetscErrorCode eventrecord_Host(int id, GPUCSREvent e, GPUCSRStream s)
{
  *(double *)e = omp_get_wtime();
  return PETSC_SUCCESS;
}

static PetscErrorCode eventelapsed_Host(int id, GPUCSREvent a, GPUCSREvent b, double *seconds)
{
  *seconds = *(double *)b - *(double *)a;
  return PETSC_SUCCESS;
}

/* Without kernels */
#define fetch_Host NULL
#define call_Host  NULL

#define GPUCSR_ROW(name, parameters) .name = name##_Host,
const GPUCSRBackendOps GPUCSRBackend_host = {.name = "host", .separate = PETSC_FALSE, GPUCSR_BACKEND_FUNCTIONS(GPUCSR_ROW)};
