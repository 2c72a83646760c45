#pragma once

/* Injected faults between the library and a backend, and counts of calls, for tests */
#include "../../gpucsrsys.h"

typedef enum {
  GPUCSR_FAULT_MEMORY,   /* of the device */
  GPUCSR_FAULT_PAGELOCK, /* memory of the host */
  GPUCSR_FAULT_COPY,     /* and setting to zero */
  GPUCSR_FAULT_LAUNCH,   /* of a kernel, or of its loop on the host */
  GPUCSR_FAULT_EVENT,    /* and streams: made, recorded, waited for by a stream, timed */
  GPUCSR_FAULT_SYNCHRONIZE,
  GPUCSR_FAULT_PROPERTIES, /* opening, activating and asking a device */
  GPUCSR_FAULT_PEER,       /* memory shared with other processes */
  GPUCSR_FAULT_DEVICE,     /* any kind, and frees: a lost device */
  GPUCSR_FAULT_KINDS
} GPUCSRFaultKind;

GPUCSR_INTERN const char *const GPUCSRFaultKinds[GPUCSR_FAULT_KINDS + 1];

typedef struct {
  GPUCSRFaultKind kind;
  PetscInt        at;                                                    /* the failing call, counted from 1; 0: none */
  PetscBool       on;                                                    /* and all later calls */
  char            backend[16];                                           /* backend with the watched table */
  PetscInt        calls[GPUCSR_FAULT_KINDS];                             /* so far */
  PetscInt        injected;                                              /* injected failures */
  PetscInt        memory, hostmemory, locked, attached, events, streams; /* living objects */
} GPUCSRFaultCounts;

GPUCSR_INTERN GPUCSRFaultCounts GPUCSRFaultCounters;
