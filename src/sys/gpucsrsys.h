#pragma once

/*
  The devices of a process (device.h), its settings, and agreement of ranks.
*/
#include <petsctime.h>
#include <petscviewer.h>
#include "agree.h"

#define GPUCSR_BACKEND(name) GPUCSR_INTERN const GPUCSRBackendOps GPUCSRBackend_##name;
#include "backendlist.h"
#undef GPUCSR_BACKEND

/* Layers, which change a backend's table before its use */
#define GPUCSR_LAYER(name) GPUCSR_INTERN PetscErrorCode GPUCSRLayer_##name(GPUCSRBackendOps *);
#include "layerlist.h"
#undef GPUCSR_LAYER

/* Waits for the earlier work of the stream, before the host computes in place of a device (defer/defer.c) */
GPUCSR_INTERN PetscErrorCode GPUCSRWaitStreamOnHost(GPUCSRStream);

#if defined(PETSC_USE_64BIT_INDICES)
  #define GPUCSR_PETSCINT GPUCSR_INT64
#else
  #define GPUCSR_PETSCINT GPUCSR_INT32
#endif

/* What PETSc and MPI tell of an object without an error */
static inline PetscBool GPUCSRIsType(const void *o, const char type[])
{
  PetscBool same = PETSC_FALSE;

  return (PetscBool)(!PetscObjectTypeCompare((PetscObject)o, type, &same) && same);
}

/* Does the viewer show what an object is, not its entries? */
static inline PetscBool GPUCSRViewsInfo(PetscViewer viewer)
{
  PetscViewerFormat format;

  if (!GPUCSRIsType(viewer, PETSCVIEWERASCII) || PetscViewerGetFormat(viewer, &format)) return PETSC_FALSE;
  return (PetscBool)(format == PETSC_VIEWER_ASCII_INFO || format == PETSC_VIEWER_ASCII_INFO_DETAIL);
}

static inline double GPUCSRNow(void)
{
  PetscLogDouble now = 0;

  (void)PetscTime(&now);
  return now;
}

#define GPUCSRStateOf(o) (((PetscObject)(o))->state)

static inline PetscMPIInt GPUCSRRankOf(MPI_Comm comm)
{
  PetscMPIInt rank = -1;

  (void)MPI_Comm_rank(comm, &rank);
  return rank;
}

static inline PetscMPIInt GPUCSRSizeOf(MPI_Comm comm)
{
  PetscMPIInt size = -1;

  (void)MPI_Comm_size(comm, &size);
  return size;
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

/* The end of the library, see finalize.c: its levels, in this order */
typedef enum {
  GPUCSR_FINAL_OPTIONS,
  GPUCSR_FINAL_KSP,
  GPUCSR_FINAL_PC,
  GPUCSR_FINAL_REPORT, /* of matrices and vectors, which have counted until now */
  GPUCSR_FINAL_PRODUCT,
  GPUCSR_FINAL_HALO,
  GPUCSR_FINAL_MAT,
  GPUCSR_FINAL_VEC,
  GPUCSR_FINAL_PLAN,
  GPUCSR_FINAL_LEVELS
} GPUCSRFinalLevel;
GPUCSR_INTERN PetscErrorCode GPUCSRRegisterFinalize(GPUCSRFinalLevel, PetscErrorCode (*)(void));
GPUCSR_INTERN PetscErrorCode GPUCSRFinalizersRun_Private(void);

/* Objects of one kind with memory on a device. An object may outlive the device: at its level release() frees this memory, and keeps the object */
typedef struct _n_GPUCSRLiving GPUCSRLiving;
struct _n_GPUCSRLiving { /* a member of the object */
  void         *object;
  GPUCSRLiving *next, **previous;
};
typedef struct {
  GPUCSRFinalLevel level;
  PetscErrorCode (*release)(void *object);
  GPUCSRLiving *first;
} GPUCSRLivingList;
GPUCSR_INTERN PetscErrorCode GPUCSRLivingAdd(GPUCSRLivingList *, GPUCSRLiving *, void *object);
GPUCSR_INTERN PetscErrorCode GPUCSRLivingRemove(GPUCSRLiving *);

GPUCSR_INTERN PetscErrorCode GPUCSRPeersFinalize(void);
GPUCSR_INTERN PetscErrorCode GPUCSRMachineLoad(const char[]);
GPUCSR_INTERN PetscErrorCode GPUCSROnceInitialize(void);
GPUCSR_INTERN PetscErrorCode GPUCSROnceFinalize(void);
GPUCSR_INTERN PetscBool      GPUCSROnceMine(const char[]);
GPUCSR_INTERN PetscErrorCode GPUCSRWarn(const char[]);
GPUCSR_INTERN PetscErrorCode GPUCSROptionsCheck(void);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceOpen(const char[], GPUCSRDevice *, char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceBandwidth(GPUCSRDevice, double *);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceSynchronize(GPUCSRDevice);
GPUCSR_INTERN PetscErrorCode GPUCSRDeviceClock(GPUCSRDevice, const GPUCSREvent[2], PetscErrorCode (*)(void *), void *, int, double *);

/* Conversion of one piece by one thread, for staged copies */
GPUCSR_INTERN PetscBool GPUCSRConvertible(GPUCSRType to, GPUCSRType from);
GPUCSR_INTERN double    GPUCSRConvertPiece(void *, GPUCSRType, const void *, GPUCSRType, size_t, size_t, double);

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
