#pragma once

/* Faults that are injected between the library and a backend, and what was counted there: for tests */
#include "../../gpucsrsys.h"

typedef enum {
  GPUCSR_FAULT_MEMORY,   /* of the device */
  GPUCSR_FAULT_PAGELOCK, /* memory of the host */
  GPUCSR_FAULT_COPY,     /* and setting to zero */
  GPUCSR_FAULT_LAUNCH,   /* of a kernel, or of the loop that stands for it */
  GPUCSR_FAULT_EVENT,    /* and streams: made, recorded, waited for by a stream, timed */
  GPUCSR_FAULT_SYNCHRONIZE,
  GPUCSR_FAULT_PROPERTIES, /* opening, activating and asking a device */
  GPUCSR_FAULT_PEER,       /* memory for other processes, and theirs */
  GPUCSR_FAULT_DEVICE,     /* any of these, and giving back: as a device that is lost */
  GPUCSR_FAULT_KINDS
} GPUCSRFaultKind;

GPUCSR_INTERN const char *const GPUCSRFaultKinds[GPUCSR_FAULT_KINDS + 1];

typedef struct {
  GPUCSRFaultKind kind;
  PetscInt        at;                                                    /* the call that fails, counted from 1; 0: none */
  PetscBool       on;                                                    /* and all that follow */
  char            backend[16];                                           /* whose table is watched */
  PetscInt        calls[GPUCSR_FAULT_KINDS];                             /* so far */
  PetscInt        injected;                                              /* calls that failed because we said so */
  PetscInt        memory, hostmemory, locked, attached, events, streams; /* that are not given back */
} GPUCSRFaultCounts;

GPUCSR_INTERN GPUCSRFaultCounts GPUCSRFaultCounters;
