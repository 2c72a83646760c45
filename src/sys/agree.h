#pragma once

/*
  Attempts: a failure decides how the caller goes on. Agreement: all ranks get the same error.

    GPUCSRAttempt t;

    GPUCSRTry(&t, Work());            t.error keeps the error of Work(), t.message its first message. PETSc prints nothing
    GPUCSRTryIf(quiet, &t, Work());   quiet: the same, because the host can do the work (backend auto). Not quiet: the error returns at once (backend cuda)
    GPUCSRThen(&t, More());           adds to the attempt, unless it has failed

    GPUCSRAttemptAgree(&t, comm, dev);   collective: the error of one rank is an error on all ranks, with the same message

  Other ranks wait for the communication of this rank, so an error inside it must not return:

    GPUCSRKeep(&error, Step());       PETSc prints the error, and the rank goes on with its communication; no later step runs
*/
#include "device.h"

typedef struct {
  int            stack;
  PetscErrorCode error;
  char           message[512];
} GPUCSRAttempt;
GPUCSR_INTERN PetscErrorCode GPUCSRAttemptBegin(GPUCSRAttempt *);
GPUCSR_INTERN PetscErrorCode GPUCSRAttemptEnd(GPUCSRAttempt *);
GPUCSR_INTERN PetscErrorCode GPUCSRAttemptAgree(GPUCSRAttempt *, MPI_Comm, GPUCSRDevice);

#define GPUCSRTry(attempt, call) \
  do { \
    PetscCall(GPUCSRAttemptBegin(attempt)); \
    (attempt)->error = (call); \
    PetscCall(GPUCSRAttemptEnd(attempt)); \
  } while (0)

#define GPUCSRThen(attempt, call) \
  do { \
    if (!(attempt)->error) GPUCSRTry(attempt, call); \
  } while (0)

#define GPUCSRTryIf(quiet, attempt, call) \
  do { \
    (attempt)->error = PETSC_SUCCESS; \
    if (quiet) GPUCSRTry(attempt, call); \
    else PetscCall(call); \
  } while (0)

#define GPUCSRKeep(error, call) \
  do { \
    if (!*(error)) *(error) = (call); \
  } while (0)

GPUCSR_INTERN PetscErrorCode GPUCSRAgree(MPI_Comm, int *weight, PetscErrorCode *, void *message, size_t bytes, PetscMPIInt *rank);
GPUCSR_INTERN PetscErrorCode GPUCSRSameOnAllRanks(MPI_Comm, int n, const int64_t mine[], int *differs);
GPUCSR_INTERN int64_t        GPUCSRBits(double);
GPUCSR_INTERN int64_t        GPUCSRNumberOf(const char[]);
