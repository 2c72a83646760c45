#pragma once

/* Shared by the programs: errors of PETSc as one line, without the trace of calls */
#include <petscgpucsr.h>
#include "../sys/gpucsrcompat.h"
#include <string.h>
#include <unistd.h>

static char message[1024]; /* of the last error */

static PetscErrorCode Remember(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode code, PetscErrorType type, const char *text, void *ctx)
{
  if (type == PETSC_ERROR_INITIAL && text) (void)snprintf(message, sizeof(message), "%s", text);
  return code;
}

/* The exit status */
static int End(const char program[], PetscErrorCode ierr)
{
  (void)PetscPopErrorHandler();
  if (!ierr) return PetscFinalize() != PETSC_SUCCESS;
  fprintf(stderr, "%s: %s\n", program, message[0] ? message : "failed");
  _exit(1); /* objects of the failed call are alive */
}
