#pragma once

/*
  The seam to the hardware: devices, memory, streams and events for formats, kernels, plans and the Mat. Each backend is one table of functions (backendlist.h). Plain C, because device sources
  include this header.
*/
#include "plain.h"
#include "machine.h"

typedef void *GPUCSRStream;
typedef void *GPUCSREvent;

typedef struct {
  char   name[128];
  int    ndevices, processors;
  size_t memory;           /* bytes in all */
  size_t l2;               /* bytes of last-level cache */
  double clock, bandwidth; /* of the processors, 1/s, and of memory, bytes/s; 0: not known */
  char   uuid[16];
} GPUCSRProperties;

typedef enum {
  GPUCSR_TO_DEVICE,
  GPUCSR_TO_HOST,
  GPUCSR_ON_DEVICE
} GPUCSRCopyKind;

/* Opens memory in another process of this host */
typedef struct {
  char bytes[64];
} GPUCSRHandle;

/*
  The functions of a backend, a row each. Every function names itself, the size and the device in its error. Frees never fail: if a device cannot free an object, the object is lost with the device. The
  function NAME of the backend cuda is NAME_CUDA. fetch: NULL: use copy(). call: NULL: calling the function keeps the order
*/
/* clang-format off */
#define GPUCSR_BACKEND_FUNCTIONS(ROW) \
  ROW(count, (int *ndevices, char why[], size_t len)) \
  ROW(open, (int id, GPUCSRProperties *)) \
  ROW(close, (int id)) \
  ROW(activate, (int id)) /* make it the calling thread's device */ \
  ROW(memory, (int id, size_t *free, size_t *total)) \
  ROW(synchronize, (int id)) /* all streams, of other libraries too */ \
  ROW(malloc, (int id, size_t bytes, GPUCSRStream, void **)) /* for work in the order of this stream */ \
  ROW(free, (int id, GPUCSRStream, void *)) \
  ROW(holds, (int id, const void *, GPUCSRBool *yes)) /* is it memory of this device? An error if it is another device's */ \
  ROW(hostmalloc, (int id, size_t bytes, void **)) /* page-locked */ \
  ROW(hostfree, (int id, void *)) \
  ROW(hostregister, (int id, void *, size_t bytes, GPUCSRBool *done)) /* page-lock memory of the program */ \
  ROW(hostunregister, (int id, void *)) \
  ROW(share, (int id, size_t bytes, void **, GPUCSRHandle *)) /* memory, zeroed, that other processes can attach; */ \
  ROW(unshare, (int id, size_t bytes, void *)) /* after all processes have detached the memory */ \
  ROW(attach, (int id, const GPUCSRHandle *, size_t bytes, void **)) /* memory of another process' device, at this device's address */ \
  ROW(detach, (int id, size_t bytes, void *)) \
  ROW(copy, (int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind, GPUCSRStream)) \
  ROW(zero, (int id, void *, size_t bytes, GPUCSRStream)) \
  ROW(streamcreate, (int id, GPUCSRStream *)) \
  ROW(streamdestroy, (int id, GPUCSRStream)) \
  ROW(streamsynchronize, (int id, GPUCSRStream)) \
  ROW(streamwait, (int id, GPUCSRStream, GPUCSREvent)) \
  ROW(eventcreate, (int id, GPUCSRBool timing, GPUCSREvent *)) \
  ROW(eventdestroy, (int id, GPUCSREvent)) \
  ROW(eventrecord, (int id, GPUCSREvent, GPUCSRStream)) \
  ROW(eventsynchronize, (int id, GPUCSREvent)) \
  ROW(eventelapsed, (int id, GPUCSREvent, GPUCSREvent, double *seconds)) \
  ROW(hold, (int id, GPUCSRStream, volatile int *go)) /* later work on the stream waits until *go is set, some milliseconds at most */ \
  ROW(fetch, (int id, void *dst, const void *src, size_t bytes, GPUCSRStream)) /* a small copy from or to page-locked memory, both aligned to 16 bytes */ \
  ROW(call, (int id, GPUCSRError (*work)(void *), const void *arg, size_t bytes, GPUCSRStream)) /* run a function of the host in stream order, with a copy of its argument */
/* clang-format on */

typedef struct {
  const char *name;
  GPUCSRBool  separate; /* device memory is not the host's: data must be copied */
  GPUCSRBool  kernels;  /* kernels compute on the device; otherwise the formats' reference products do on the host, which can then read device memory */
#define GPUCSR_ROW(name, parameters) GPUCSRError(*name) parameters;
  GPUCSR_BACKEND_FUNCTIONS(GPUCSR_ROW)
#undef GPUCSR_ROW
  void (*range)(const char *name); /* a range of a profiler's time line, up to a call with NULL; NULL: no profiler */
} GPUCSRBackendOps;

/* Type of an array's entries; copies convert */
typedef enum {
  GPUCSR_UINT16,
  GPUCSR_INT32,
  GPUCSR_INT64,
  GPUCSR_FLOAT,
  GPUCSR_DOUBLE
} GPUCSRType;
static inline size_t GPUCSRTypeSize(GPUCSRType t)
{
  return t == GPUCSR_UINT16 ? 2 : t == GPUCSR_INT32 || t == GPUCSR_FLOAT ? 4 : 8;
}

/* Staging: a ring of page-locked pieces. Several host threads fill a piece while the previous piece crosses the bus */
#define GPUCSR_STAGES      8
#define GPUCSR_STAGE_BYTES ((size_t)1 << 20)

/* Small pieces of freed device memory are kept for reuse, because the pool takes two microseconds and small matrices come in series */
#define GPUCSR_CACHED_PIECES 64
#define GPUCSR_CACHED_BYTES  ((size_t)1 << 20) /* of a piece */

/* Small requests of page-locked memory share one block, because locking takes a millisecond */
#define GPUCSR_LOCKED_PIECES 64
#define GPUCSR_LOCKED_BYTES  ((size_t)8 << 10) /* of a piece */

/* Device memory: a buffer that only grows, or a kept piece */
typedef struct {
  void  *p;
  size_t bytes;
} GPUCSRBuffer;

/* An open device: one per backend and process, shared by all its matrices */
typedef struct _n_GPUCSRDevice {
  const GPUCSRBackendOps *ops;
  GPUCSRProperties        props;
  GPUCSRMachine           machine; /* tuned constants, scaled to a device with these properties */
  int                     id;
  int                     threads;               /* host threads that convert and copy */
  GPUCSRStream            stream;                /* products */
  GPUCSRStream            up, down;              /* copies that overlap products */
  int                     nstreams;              /* number of existing streams of these three */
  void                   *stage[GPUCSR_STAGES];  /* page-locked */
  GPUCSREvent             staged[GPUCSR_STAGES]; /* the piece may be used again */
  int                     nextstage;
  size_t                  opened;                      /* bytes in the last stage: small uploads share a stage without another wait, */
  GPUCSRStream            opener;                      /* if they are on this stream */
  size_t                  allocated, peak, limit;      /* bytes through GPUCSRMalloc(); limit 0: none */
  GPUCSRBuffer            cache[GPUCSR_CACHED_PIECES]; /* kept pieces, the oldest first */
  int                     ncached;
  int                     trusting;    /* methods that run and look at their residuals: solutions of factors need no check */
  double                  bandwidth;   /* bytes/s of a device copy, read plus written; 0: not measured yet */
  char                    failed[512]; /* why the device must not be used any longer; empty while it works */
} * GPUCSRDevice;

GPUCSR_INTERN const GPUCSRMachineRow GPUCSRMachineRows[];
GPUCSR_INTERN const GPUCSRMachine    GPUCSRMachineH200;
GPUCSR_INTERN GPUCSRMachine          GPUCSRMachineShared; /* without a device: the values of the H200, overridden by the file */
GPUCSR_INTERN GPUCSRMachineRatios    GPUCSRMachineRatiosOf(const GPUCSRProperties *);
GPUCSR_INTERN double                 GPUCSRMachineScaled(const GPUCSRMachineRow *, const GPUCSRMachineRatios *);
GPUCSR_INTERN void                   GPUCSRMachineOfDevice(const GPUCSRProperties *, GPUCSRMachine *);

/* The table of a device. NULL: for choices that must be the same on ranks with different devices */
static inline const GPUCSRMachine *GPUCSRMachineOf(GPUCSRDevice d)
{
  return d && d->machine.processors > 0 ? &d->machine : &GPUCSRMachineShared;
}

/* Called after each launch of a kernel, and after each loop of the host in place of a kernel. A test layer can make the launch fail. dev NULL: the GPU of this thread */
GPUCSR_INTERN             GPUCSRError (*GPUCSRLaunchHook)(GPUCSRDevice, const char what[]);
static inline GPUCSRError GPUCSRLaunched(GPUCSRDevice d, const char what[])
{
  return GPUCSRLaunchHook ? (*GPUCSRLaunchHook)(d, what) : (GPUCSRError)0;
}

/* Runs a loop of the host like a kernel: in stream order, with a copy of its argument */
static inline GPUCSRError GPUCSRRunOnHost(GPUCSRDevice d, GPUCSRError (*loop)(void *), void *arg, size_t bytes, GPUCSRStream s, const char what[])
{
  const GPUCSRError e = d->ops->call ? (*d->ops->call)(d->id, loop, arg, bytes, s) : (*loop)(arg);

  return e ? e : GPUCSRLaunched(d, what);
}

/*
  Kernels of the device, or the host: GPUCSREither() is the one or the other expression, GPUCSRByKernels() returns from a function whose rest is the host's loop. No device has kernels in a library
  without CUDA, which does not contain them.
*/
#if defined(GPUCSR_HAVE_CUDA)
  #define GPUCSREither(dev, device, host) ((dev)->ops->kernels ? (device) : (host))
  #define GPUCSRByKernels(dev, call) \
    do { \
      if ((dev) && (dev)->ops->kernels) { \
        PetscCall(call); \
        PetscFunctionReturn(PETSC_SUCCESS); \
      } \
    } while (0)
#else
  #define GPUCSREither(dev, device, host) ((void)(dev), (host))
  #define GPUCSRByKernels(dev, call)      ((void)(dev))
#endif

GPUCSR_INTERN GPUCSRError GPUCSRMalloc(GPUCSRDevice, size_t, const char[], void **);
GPUCSR_INTERN GPUCSRError GPUCSRDeviceReach(GPUCSRDevice, GPUCSRBool settle, GPUCSRBool *yes); /* before frees; settle: waits for all work */
GPUCSR_INTERN GPUCSRError GPUCSRFree(GPUCSRDevice, size_t, void **);
GPUCSR_INTERN GPUCSRError GPUCSRHolds(GPUCSRDevice, const void *, GPUCSRBool *yes);

GPUCSR_INTERN GPUCSRError GPUCSRBufferGrow(GPUCSRDevice, size_t, const char[], GPUCSRBuffer *);
GPUCSR_INTERN GPUCSRError GPUCSRBufferFree(GPUCSRDevice, GPUCSRBuffer *);
GPUCSR_INTERN GPUCSRError GPUCSRCacheEmpty(GPUCSRDevice);

GPUCSR_INTERN GPUCSRError GPUCSRConvert(void *, GPUCSRType, const void *, GPUCSRType, size_t, int, double *);
GPUCSR_INTERN GPUCSRError GPUCSRUpload(GPUCSRDevice, void *, GPUCSRType, const void *, GPUCSRType, size_t, GPUCSRBool, GPUCSRStream, double *);
/* Bytes of an array including padding, when arrays lie side by side in one piece of memory */
static inline size_t GPUCSRAlignUp(size_t bytes)
{
  return (bytes + 255) / 256 * 256;
}

/* Several arrays sent together */
typedef struct {
  void       *dst;
  GPUCSRType  to;
  const void *src;
  GPUCSRType  from;
  size_t      n;
} GPUCSRTransfer;
GPUCSR_INTERN GPUCSRError GPUCSRUploadBatch(GPUCSRDevice, const GPUCSRTransfer[], int, GPUCSRStream, double *);
GPUCSR_INTERN GPUCSRError GPUCSRRead(GPUCSRDevice, void *, const void *, size_t);
GPUCSR_INTERN GPUCSRError GPUCSRDownload(GPUCSRDevice, void *, GPUCSRType, const void *, GPUCSRType, size_t, GPUCSRBool, GPUCSRStream);
