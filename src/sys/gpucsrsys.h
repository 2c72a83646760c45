#pragma once

/*
  The seam to the hardware. Everything above it (formats, kernels, plans, the Mat) sees devices, memory, streams and
  events through this header alone; what stands behind them is one table of functions a backend (backendlist.h).
*/
#include <petscsys.h>
#include "gpucsrcompat.h"

#define GPUCSR_INTERN extern PETSC_VISIBILITY_INTERNAL

#if defined(__cplusplus)
extern "C" {
#endif

typedef void *GPUCSRStream;
typedef void *GPUCSREvent;

typedef struct {
  char   name[128];
  int    id, ndevices;
  int    major, minor; /* compute capability, 0 on the host */
  int    processors;
  size_t memory; /* bytes in all */
  size_t l2;     /* bytes of last-level cache */
  char   uuid[16];
} GPUCSRProperties;

typedef enum {
  GPUCSR_TO_DEVICE,
  GPUCSR_TO_HOST,
  GPUCSR_ON_DEVICE
} GPUCSRCopyKind;

/* What another process of this host opens memory by */
typedef struct {
  char bytes[64];
} GPUCSRHandle;

/* One backend. Every function names itself, the size and the device in its error; those that give back meet none: what a device cannot take back is lost with it. */
typedef struct {
  const char *name;
  PetscBool   separate; /* device memory is not the host's: data must be copied */
  PetscBool   kernels;  /* kernels compute; otherwise the formats' references do, on the host, which can then read device memory */
  PetscErrorCode (*count)(int *ndevices, char why[], size_t len);
  PetscErrorCode (*open)(int id, GPUCSRProperties *);
  PetscErrorCode (*close)(int id);
  PetscErrorCode (*activate)(int id); /* make it the calling thread's device */
  PetscErrorCode (*memory)(int id, size_t *free, size_t *total);
  PetscErrorCode (*synchronize)(int id);                                 /* all streams, other people's too */
  PetscErrorCode (*malloc)(int id, size_t bytes, GPUCSRStream, void **); /* for work in the order of this stream */
  PetscErrorCode (*free)(int id, GPUCSRStream, void *);
  PetscErrorCode (*hostmalloc)(int id, size_t bytes, void **); /* page-locked */
  PetscErrorCode (*hostfree)(int id, void *);
  PetscErrorCode (*hostregister)(int id, void *, size_t bytes, PetscBool *done); /* page-lock memory that is somebody else's */
  PetscErrorCode (*hostunregister)(int id, void *);
  PetscErrorCode (*share)(int id, size_t bytes, void **, GPUCSRHandle *);        /* memory, zeroed, that other processes can attach; */
  PetscErrorCode (*unshare)(int id, size_t bytes, void *);                       /* all have detached it */
  PetscErrorCode (*attach)(int id, const GPUCSRHandle *, size_t bytes, void **); /* memory of another process' device, as this device addresses it */
  PetscErrorCode (*detach)(int id, size_t bytes, void *);
  PetscErrorCode (*copy)(int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind, GPUCSRStream);
  PetscErrorCode (*zero)(int id, void *, size_t bytes, GPUCSRStream);
  PetscErrorCode (*streamcreate)(int id, GPUCSRStream *);
  PetscErrorCode (*streamdestroy)(int id, GPUCSRStream);
  PetscErrorCode (*streamsynchronize)(int id, GPUCSRStream);
  PetscErrorCode (*streamwait)(int id, GPUCSRStream, GPUCSREvent);
  PetscErrorCode (*eventcreate)(int id, PetscBool timing, GPUCSREvent *);
  PetscErrorCode (*eventdestroy)(int id, GPUCSREvent);
  PetscErrorCode (*eventrecord)(int id, GPUCSREvent, GPUCSRStream);
  PetscErrorCode (*eventsynchronize)(int id, GPUCSREvent);
  PetscErrorCode (*eventelapsed)(int id, GPUCSREvent, GPUCSREvent, double *seconds);
  PetscErrorCode (*hold)(int id, GPUCSRStream, volatile int *go);                                              /* what comes next on the stream waits until *go is set, some milliseconds at most */
  PetscErrorCode (*fetch)(int id, void *dst, const void *src, size_t bytes, GPUCSRStream);                     /* a small copy from or to page-locked memory, both aligned to 16 bytes; NULL: copy() is as good */
  PetscErrorCode (*call)(int id, PetscErrorCode (*work)(void *), const void *arg, size_t bytes, GPUCSRStream); /* run a function of the host in the order of a stream, with a copy of its argument; NULL: at once is in order */
  void (*range)(const char *name);                                                                             /* of a profiler's time line, up to a call with NULL; NULL: there are none */
} GPUCSRBackendOps;

#define GPUCSR_BACKEND(name) GPUCSR_INTERN const GPUCSRBackendOps GPUCSRBackend_##name;
#include "backendlist.h"
#undef GPUCSR_BACKEND

/* Layers for tests, which change what they are told to in the table of a backend before it is used */
#define GPUCSR_DEBUG(name) GPUCSR_INTERN PetscErrorCode GPUCSRDebug_##name(GPUCSRBackendOps *);
#include "debuglist.h"
#undef GPUCSR_DEBUG

/* What the host computes in place of a device comes in its turn, after what the stream was given before (defer/defer.c) */
GPUCSR_INTERN PetscErrorCode GPUCSRHostTurn(GPUCSRStream);

/* What an array holds; conversions happen while it is copied */
typedef enum {
  GPUCSR_UINT16,
  GPUCSR_INT32,
  GPUCSR_INT64,
  GPUCSR_FLOAT,
  GPUCSR_DOUBLE
} GPUCSRType;
#if defined(PETSC_USE_64BIT_INDICES)
  #define GPUCSR_PETSCINT GPUCSR_INT64
#else
  #define GPUCSR_PETSCINT GPUCSR_INT32
#endif
static inline size_t GPUCSRTypeSize(GPUCSRType t)
{
  return t == GPUCSR_UINT16 ? 2 : t == GPUCSR_INT32 || t == GPUCSR_FLOAT ? 4 : 8;
}

/* Staging: a ring of page-locked pieces, filled by several host threads while the one before crosses the bus */
#define GPUCSR_STAGES      8
#define GPUCSR_STAGE_BYTES ((size_t)1 << 20)

/* Small pieces of device memory that were given back stay in hand: from the pool and back again takes two microseconds, and who builds one small matrix builds the next */
#define GPUCSR_HAND       64
#define GPUCSR_HAND_BYTES ((size_t)1 << 20) /* of a piece */

/* An open device: one per backend and process, shared by all its matrices */
typedef struct _n_GPUCSRDevice {
  const GPUCSRBackendOps *ops;
  GPUCSRProperties        props;
  int                     id;
  int                     threads;               /* host threads that convert and copy */
  GPUCSRStream            stream;                /* products */
  GPUCSRStream            up, down;              /* copies that overlap products */
  int                     nstreams;              /* of these three, that are there */
  void                   *stage[GPUCSR_STAGES];  /* page-locked */
  GPUCSREvent             staged[GPUCSR_STAGES]; /* the piece may be used again */
  int                     nextstage;
  size_t                  opened;                 /* bytes of the stage before that, whose event need not be waited for again: small uploads share one, */
  GPUCSRStream            opener;                 /* on this stream */
  size_t                  allocated, peak, limit; /* bytes through GPUCSRMalloc(); limit 0: none */
  void                   *hand[GPUCSR_HAND];      /* pieces to be had again, in the order of the stream, the oldest first */
  size_t                  handbytes[GPUCSR_HAND];
  int                     nhand;
  double                  bandwidth;   /* bytes/s of a device copy, read plus written; 0: not measured yet */
  char                    failed[512]; /* why it must not be used any more, empty while it works */
} * GPUCSRDevice;

/* After each launch of a kernel on a device, NULL where that is the GPU of this thread, and after each loop that stands for one: a layer for tests may say that it failed */
GPUCSR_INTERN                PetscErrorCode (*GPUCSRLaunchHook)(GPUCSRDevice, const char what[]);
static inline PetscErrorCode GPUCSRLaunched(GPUCSRDevice d, const char what[])
{
  return GPUCSRLaunchHook ? (*GPUCSRLaunchHook)(d, what) : PETSC_SUCCESS;
}

/* The process' choice of device and its options; read once at registration */
typedef struct {
  PetscMPIInt localrank, localsize; /* among the ranks of this node */
  PetscInt    map[64];              /* device of each local rank */
  PetscInt    nmap;
  PetscInt    threads;
  PetscReal   memorylimit;
  PetscBool   pinvectors;
  PetscBool   report, reportfull;
  PetscBool   advise;
  char        reportfile[PETSC_MAX_PATH_LEN]; /* empty: standard output */
} GPUCSRSettings;
GPUCSR_INTERN GPUCSRSettings GPUCSRSettingsGlobal;

GPUCSR_INTERN PetscErrorCode GPUCSRSysInitialize(void);
GPUCSR_INTERN PetscErrorCode GPUCSRSysFinalize(void);
GPUCSR_INTERN PetscErrorCode GPUCSRPeersFinalize(void);
GPUCSR_INTERN PetscErrorCode GPUCSROnceInitialize(void);
GPUCSR_INTERN PetscErrorCode GPUCSROnceFinalize(void);
GPUCSR_INTERN PetscBool      GPUCSROnceMine(const char[]);
GPUCSR_INTERN PetscErrorCode GPUCSRWarn(const char[]);
GPUCSR_INTERN PetscErrorCode GPUCSROptionsCheck(void);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceCount(const char[], int *, char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceOpen(const char[], GPUCSRDevice *, char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceBandwidth(GPUCSRDevice, double *);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceSynchronize(GPUCSRDevice);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceClock(GPUCSRDevice, const GPUCSREvent[2], PetscErrorCode (*)(void *), void *, int, double *);

GPUCSR_INTERN PetscErrorCode GPUCSRMalloc(GPUCSRDevice, size_t, const char[], void **);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceReach(GPUCSRDevice, PetscBool settle, PetscBool *yes); /* before something is given back to it; settle: when all that was begun is done */
GPUCSR_INTERN PetscErrorCode GPUCSRFree(GPUCSRDevice, size_t, void **);
GPUCSR_INTERN PetscErrorCode GPUCSRHandEmpty(GPUCSRDevice);

GPUCSR_INTERN PetscErrorCode GPUCSRConvert(void *, GPUCSRType, const void *, GPUCSRType, size_t, int, double *);
GPUCSR_INTERN PetscErrorCode GPUCSRUpload(GPUCSRDevice, void *, GPUCSRType, const void *, GPUCSRType, size_t, PetscBool, GPUCSRStream, double *);
/* Bytes from the begin of an array of so many bytes to the next, of arrays that lie in one piece of memory */
static inline size_t GPUCSRTogether(size_t bytes)
{
  return (bytes + 255) / 256 * 256;
}

/* Several arrays that are sent together */
typedef struct {
  void       *dst;
  GPUCSRType  to;
  const void *src;
  GPUCSRType  from;
  size_t      n;
} GPUCSRTransfer;
GPUCSR_INTERN PetscErrorCode GPUCSRUploadTogether(GPUCSRDevice, const GPUCSRTransfer[], int, GPUCSRStream, double *);
GPUCSR_INTERN PetscErrorCode GPUCSRDownload(GPUCSRDevice, void *, GPUCSRType, const void *, GPUCSRType, size_t, PetscBool, GPUCSRStream);

/* Run something that may fail without PETSc printing a traceback: between Begin and End errors are kept, not shown */
typedef struct {
  char message[512];
  int  stack;
} GPUCSRAttempt;
GPUCSR_INTERN PetscErrorCode GPUCSRAttemptBegin(GPUCSRAttempt *);
GPUCSR_INTERN PetscErrorCode GPUCSRAttemptEnd(GPUCSRAttempt *);

GPUCSR_INTERN PetscErrorCode GPUCSRAlike(MPI_Comm, int n, const int64_t mine[], int *differs);
GPUCSR_INTERN int64_t        GPUCSRBits(double);
GPUCSR_INTERN int64_t        GPUCSRNumberOf(const char[]);

/* Records of the report, see records.c */
#define GPUCSR_RECORD_NUMBERS 8
typedef struct {
  char   text[640];
  double n[GPUCSR_RECORD_NUMBERS];
} GPUCSRRecord;
typedef struct {
  GPUCSRRecord *record;
  int           n, room;
} GPUCSRRecords;
GPUCSR_INTERN PetscErrorCode GPUCSRRecordsAdd(GPUCSRRecords *, const char[], PetscBool, const double[]);
GPUCSR_INTERN PetscErrorCode GPUCSRRecordsGather(MPI_Comm, GPUCSRRecords *, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUCSRRecordsFree(GPUCSRRecords *);
GPUCSR_INTERN PetscErrorCode GPUCSRSolvesAdd(PetscObject, const char[], const char[], PetscInt, double);
GPUCSR_INTERN PetscErrorCode GPUCSRSolvesInstead(PetscObject, const char[]);
GPUCSR_INTERN PetscErrorCode GPUCSRSolvesGather(MPI_Comm, GPUCSRRecords **);
GPUCSR_INTERN PetscErrorCode GPUCSRSolvesForget(void);

/* An event of -log_view, and a range of a GPU's profiler */
typedef struct {
  const char   *name;
  PetscLogEvent event;
} GPUCSRLogEvent;
GPUCSR_INTERN PetscErrorCode GPUCSRLogRegister(const char[], PetscClassId, GPUCSRLogEvent *);
GPUCSR_INTERN PetscErrorCode GPUCSRLogBegin(const GPUCSRLogEvent *, GPUCSRDevice, void *);
GPUCSR_INTERN PetscErrorCode GPUCSRLogEnd(const GPUCSRLogEvent *, GPUCSRDevice, void *);

#if defined(__cplusplus)
}
#endif
