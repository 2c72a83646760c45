#pragma once

/*
  The devices of a process (device.h), its settings, and what ranks agree on.
*/
#include "agree.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define GPUCSR_BACKEND(name) GPUCSR_INTERN const GPUCSRBackendOps GPUCSRBackend_##name;
#include "backendlist.h"
#undef GPUCSR_BACKEND

/* Layers for tests, which change what they are told to in the table of a backend before it is used */
#define GPUCSR_DEBUG(name) GPUCSR_INTERN PetscErrorCode GPUCSRDebug_##name(GPUCSRBackendOps *);
#include "debuglist.h"
#undef GPUCSR_DEBUG

/* What the host computes in place of a device comes in its turn, after what the stream was given before (defer/defer.c) */
GPUCSR_INTERN PetscErrorCode GPUCSRWaitStreamOnHost(GPUCSRStream);

#if defined(PETSC_USE_64BIT_INDICES)
  #define GPUCSR_PETSCINT GPUCSR_INT64
#else
  #define GPUCSR_PETSCINT GPUCSR_INT32
#endif

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
