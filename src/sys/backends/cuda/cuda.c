/*
  The CUDA backend. The runtime library is linked statically, so that this library loads without a driver. Memory comes from a stream-ordered pool of the library, since a build allocates many
  short-lived buffers.
*/
#include "../../gpucsrsys.h"
#include <cuda_runtime_api.h>
#include <time.h>
#if __has_include(<nvtx3/nvToolsExt.h>) /* a compiler alone has no NVTX */
  #include <nvtx3/nvToolsExt.h>
  #define HAVE_NVTX 1
#endif

/* bytes: the size for the message, or 0 */
#define CUDACall(id, bytes, call) \
  do { \
    cudaError_t err_ = (call); \
    if (PetscUnlikely(err_ != cudaSuccess)) { \
      (void)cudaGetLastError(); \
      SETERRQ(PETSC_COMM_SELF, err_ == cudaErrorMemoryAllocation ? PETSC_ERR_MEM : PETSC_ERR_GPU, "CUDA device %d: %s (%zu bytes) failed with %s: %s", id, #call, (size_t)(bytes), cudaGetErrorName(err_), cudaGetErrorString(err_)); \
    } \
  } while (0)

/* Frees of a failing device: the device has failed before, and keeps the object */
#define GiveBack(id, call) \
  do { \
    cudaError_t err_ = (call); \
    if (PetscUnlikely(err_ != cudaSuccess)) { \
      (void)cudaGetLastError(); \
      PetscCall(PetscInfo(NULL, "CUDA device %d: %s failed with %s\n", id, #call, cudaGetErrorName(err_))); \
    } \
  } while (0)

/* Functions with one call of the runtime, a row each. bytes: the size for the message, or 0. GIVE: a free */
#define CALL(name, formal, bytes, call) \
  static PetscErrorCode name formal \
  { \
    PetscFunctionBegin; \
    CUDACall(id, bytes, call); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
#define GIVE(name, formal, call) \
  static PetscErrorCode name formal \
  { \
    PetscFunctionBegin; \
    GiveBack(id, call); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

/* fetch.cu */
GPUCSR_INTERN PetscErrorCode GPUCSRFetch_CUDA(int, void *, const void *, size_t, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUCSRProbe_CUDA(int);

#define GPUCSR_MAX_DEVICES 64
static cudaMemPool_t pools[GPUCSR_MAX_DEVICES];

static PetscErrorCode count_CUDA(int *n, char why[], size_t len)
{
  int         driver = 0;
  cudaError_t err;

  PetscFunctionBegin;
  err = cudaGetDeviceCount(n);
  if (err != cudaSuccess) {
    (void)cudaGetLastError();
    (void)cudaDriverGetVersion(&driver); /* 0: none */
    *n = 0;
    if (!driver) PetscCall(PetscStrncpy(why, "no NVIDIA driver is installed", len));
    else if (err == cudaErrorInsufficientDriver) PetscCall(PetscSNPrintf(why, len, "the NVIDIA driver supports CUDA %d.%d, and this library needs %d.%d", driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10));
    else PetscCall(PetscSNPrintf(why, len, "no usable NVIDIA GPU: %s", cudaGetErrorString(err)));
  } else if (!*n) PetscCall(PetscSNPrintf(why, len, "the NVIDIA driver shows no GPU"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

CALL(activate_CUDA, (int id), 0, cudaSetDevice(id))

static PetscErrorCode open_CUDA(int id, GPUCSRProperties *p)
{
  struct cudaDeviceProp   prop;
  struct cudaMemPoolProps pp;
  unsigned long long      keep; /* bytes that the pool keeps: mapping memory takes time, and at each wait of the host the pool frees memory above this size */
  int                     clock = 0, memory = 0, bus = 0;

  PetscFunctionBegin;
  PetscCheck(id < GPUCSR_MAX_DEVICES, PETSC_COMM_SELF, PETSC_ERR_SUP, "CUDA device %d: this library supports at most %d devices", id, GPUCSR_MAX_DEVICES);
  PetscCall(activate_CUDA(id));
  CUDACall(id, 0, cudaGetDeviceProperties(&prop, id));
  CUDACall(id, 0, cudaGetDeviceCount(&p->ndevices));
  PetscCall(GPUCSRProbe_CUDA(id));
  PetscCall(PetscStrncpy(p->name, prop.name, sizeof(p->name)));
  p->processors = prop.multiProcessorCount;
  p->memory     = prop.totalGlobalMem;
  p->l2         = (size_t)prop.l2CacheSize;
  CUDACall(id, 0, cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, id)); /* both in kHz */
  CUDACall(id, 0, cudaDeviceGetAttribute(&memory, cudaDevAttrMemoryClockRate, id));
  CUDACall(id, 0, cudaDeviceGetAttribute(&bus, cudaDevAttrGlobalMemoryBusWidth, id)); /* bits, twice a cycle */
  p->clock     = 1e3 * clock;
  p->bandwidth = 2e3 * memory * bus / 8;
  PetscCall(PetscMemcpy(p->uuid, &prop.uuid, sizeof(p->uuid)));
  PetscCall(PetscMemzero(&pp, sizeof(pp)));
  pp.allocType     = cudaMemAllocationTypePinned;
  pp.location.type = cudaMemLocationTypeDevice;
  pp.location.id   = id;
  CUDACall(id, 0, cudaMemPoolCreate(&pools[id], &pp));
  keep = (unsigned long long)PetscMax((size_t)1 << 30, p->memory / 8);
  CUDACall(id, 0, cudaMemPoolSetAttribute(pools[id], cudaMemPoolAttrReleaseThreshold, &keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode close_CUDA(int id)
{
  PetscFunctionBegin;
  PetscCall(activate_CUDA(id));
  if (pools[id]) GiveBack(id, cudaMemPoolDestroy(pools[id]));
  pools[id] = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode memory_CUDA(int id, size_t *avail, size_t *total)
{
  PetscFunctionBegin;
  PetscCall(activate_CUDA(id));
  CUDACall(id, 0, cudaMemGetInfo(avail, total));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode synchronize_CUDA(int id)
{
  PetscFunctionBegin;
  PetscCall(activate_CUDA(id));
  CUDACall(id, 0, cudaDeviceSynchronize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

CALL(malloc_CUDA, (int id, size_t bytes, GPUCSRStream s, void **p), bytes, cudaMallocFromPoolAsync(p, bytes, pools[id], (cudaStream_t)s))
GIVE(free_CUDA, (int id, GPUCSRStream s, void *p), cudaFreeAsync(p, (cudaStream_t)s))

static PetscErrorCode holds_CUDA(int id, const void *p, GPUCSRBool *yes)
{
  struct cudaPointerAttributes a;

  PetscFunctionBegin;
  PetscCall(activate_CUDA(id));
  CUDACall(id, 0, cudaPointerGetAttributes(&a, p));
  *yes = a.type == cudaMemoryTypeDevice || a.type == cudaMemoryTypeManaged ? PETSC_TRUE : PETSC_FALSE;
  PetscCheck(a.type != cudaMemoryTypeDevice || a.device == id, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The memory at %p is CUDA device %d's, and this matrix is on device %d: copy it there", p, a.device, id);
  PetscFunctionReturn(PETSC_SUCCESS);
}

CALL(hostmalloc_CUDA, (int id, size_t bytes, void **p), bytes, cudaHostAlloc(p, bytes, cudaHostAllocDefault))
GIVE(hostfree_CUDA, (int id, void *p), cudaFreeHost(p))

/* The system may refuse to page-lock memory of the program (limits, odd mappings): copies are then staged */
static PetscErrorCode hostregister_CUDA(int id, void *p, size_t bytes, GPUCSRBool *done)
{
  PetscFunctionBegin;
  PetscCall(activate_CUDA(id));
  *done = cudaHostRegister(p, bytes, cudaHostRegisterDefault) == cudaSuccess ? PETSC_TRUE : PETSC_FALSE;
  if (!*done) (void)cudaGetLastError();
  PetscFunctionReturn(PETSC_SUCCESS);
}

GIVE(hostunregister_CUDA, (int id, void *p), cudaHostUnregister(p))

/* Whole pages of the device: a handle exposes the whole page, so no other memory may share it */
#define PAGE ((size_t)2 << 20)

/* Memory outside of the pool, because the pool's memory has no handles for other processes */
static PetscErrorCode share_CUDA(int id, size_t bytes, void **p, GPUCSRHandle *handle)
{
  cudaIpcMemHandle_t ipc;
  cudaError_t        err;

  PetscFunctionBegin;
  PetscCall(activate_CUDA(id));
  CUDACall(id, bytes, cudaMalloc(p, (bytes + PAGE - 1) / PAGE * PAGE));
  err = cudaMemset(*p, 0, bytes);
  if (err == cudaSuccess) err = cudaDeviceSynchronize();
  if (err == cudaSuccess) err = cudaIpcGetMemHandle(&ipc, *p);
  if (err != cudaSuccess) {
    GiveBack(id, cudaFree(*p));
    *p = NULL;
  }
  CUDACall(id, bytes, err);
  PetscCheck(sizeof(ipc) <= sizeof(handle->bytes), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A handle has %zu bytes", sizeof(ipc));
  PetscCall(PetscMemcpy(handle->bytes, &ipc, sizeof(ipc)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode unshare_CUDA(int id, size_t bytes, void *p)
{
  PetscFunctionBegin;
  PetscCall(activate_CUDA(id));
  GiveBack(id, cudaFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode attach_CUDA(int id, const GPUCSRHandle *handle, size_t bytes, void **p)
{
  cudaIpcMemHandle_t ipc;

  PetscFunctionBegin;
  PetscCall(activate_CUDA(id));
  PetscCall(PetscMemcpy(&ipc, handle->bytes, sizeof(ipc)));
  CUDACall(id, bytes, cudaIpcOpenMemHandle(p, ipc, cudaIpcMemLazyEnablePeerAccess));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode detach_CUDA(int id, size_t bytes, void *p)
{
  PetscFunctionBegin;
  PetscCall(activate_CUDA(id));
  GiveBack(id, cudaIpcCloseMemHandle(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode copy_CUDA(int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s)
{
  static const enum cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};

  PetscFunctionBegin;
  CUDACall(id, bytes, cudaMemcpyAsync(dst, src, bytes, kinds[kind], (cudaStream_t)s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

CALL(zero_CUDA, (int id, void *p, size_t bytes, GPUCSRStream s), bytes, cudaMemsetAsync(p, 0, bytes, (cudaStream_t)s))
CALL(streamcreate_CUDA, (int id, GPUCSRStream *s), 0, cudaStreamCreateWithFlags((cudaStream_t *)s, cudaStreamNonBlocking))
GIVE(streamdestroy_CUDA, (int id, GPUCSRStream s), cudaStreamDestroy((cudaStream_t)s))
CALL(streamsynchronize_CUDA, (int id, GPUCSRStream s), 0, cudaStreamSynchronize((cudaStream_t)s))
CALL(streamwait_CUDA, (int id, GPUCSRStream s, GPUCSREvent e), 0, cudaStreamWaitEvent((cudaStream_t)s, (cudaEvent_t)e, 0))
CALL(eventcreate_CUDA, (int id, GPUCSRBool timing, GPUCSREvent *e), 0, cudaEventCreateWithFlags((cudaEvent_t *)e, timing ? cudaEventDefault : cudaEventDisableTiming))
GIVE(eventdestroy_CUDA, (int id, GPUCSREvent e), cudaEventDestroy((cudaEvent_t)e))
CALL(eventrecord_CUDA, (int id, GPUCSREvent e, GPUCSRStream s), 0, cudaEventRecord((cudaEvent_t)e, (cudaStream_t)s))
CALL(eventsynchronize_CUDA, (int id, GPUCSREvent e), 0, cudaEventSynchronize((cudaEvent_t)e))

static PetscErrorCode eventelapsed_CUDA(int id, GPUCSREvent a, GPUCSREvent b, double *seconds)
{
  float ms = 0;

  PetscFunctionBegin;
  CUDACall(id, 0, cudaEventSynchronize((cudaEvent_t)b));
  CUDACall(id, 0, cudaEventElapsedTime(&ms, (cudaEvent_t)a, (cudaEvent_t)b));
  *seconds = 1e-3 * (double)ms;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define HOLD 20e-3 /* in seconds: a host that stops meanwhile must not stop the device */

static void Hold(void *go)
{
  struct timespec t0, t1;

  (void)clock_gettime(CLOCK_MONOTONIC, &t0);
  do (void)clock_gettime(CLOCK_MONOTONIC, &t1);
  while (!*(volatile int *)go && (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec) < HOLD);
}

CALL(hold_CUDA, (int id, GPUCSRStream s, volatile int *go), 0, cudaLaunchHostFunc((cudaStream_t)s, Hold, (void *)go))

#if defined(HAVE_NVTX)
static void range_CUDA(const char *name)
{
  if (name) (void)nvtxRangePushA(name);
  else (void)nvtxRangePop();
}
#else
  #define range_CUDA NULL
#endif

#define fetch_CUDA GPUCSRFetch_CUDA
#define call_CUDA  NULL

#define GPUCSR_ROW(name, parameters) .name = name##_CUDA,
const GPUCSRBackendOps GPUCSRBackend_cuda = {.name = "cuda", .separate = PETSC_TRUE, .kernels = PETSC_TRUE, .range = range_CUDA, GPUCSR_BACKEND_FUNCTIONS(GPUCSR_ROW)};
