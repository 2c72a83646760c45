/*
  Attempts whose errors are kept, and agreement of ranks on errors, numbers and names: agree.h explains their use.
*/
#include "agree.h"

/* Keeps the first message of a chain of errors, prints none */
static PetscErrorCode KeepError(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  GPUCSRAttempt *a = (GPUCSRAttempt *)ctx;

  if (p == PETSC_ERROR_INITIAL && !a->message[0] && mess) {
    strncpy(a->message, mess, sizeof(a->message) - 1);
    a->message[sizeof(a->message) - 1] = 0;
  }
  return n;
}

PetscErrorCode GPUCSRAttemptBegin(GPUCSRAttempt *a)
{
  PetscFunctionBegin;
  a->error      = PETSC_SUCCESS;
  a->message[0] = 0;
  a->stack      = 0;
#if PetscDefined(USE_DEBUG) && !PetscDefined(HAVE_THREADSAFETY)
  a->stack = petscstack.currentsize - 1; /* an error leaves its functions on PETSc's debugging stack; without the caller */
#endif
  PetscCall(PetscPushErrorHandler(KeepError, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRAttemptEnd(GPUCSRAttempt *a)
{
#if PetscDefined(USE_DEBUG) && !PetscDefined(HAVE_THREADSAFETY)
  petscstack.currentsize = a->stack;
#endif
  return PetscPopErrorHandler();
}

/* ---- ranks ---- */

/*
  Collective: all ranks get the weight, error and message of one rank, the first with the greatest weight, and its number. A rank without an error has weight 0. If all have, rank is -1 and nothing
  changes. error may be NULL, and bytes 0.
*/
PetscErrorCode GPUCSRAgree(MPI_Comm comm, int *weight, PetscErrorCode *error, void *message, size_t bytes, PetscMPIInt *rank)
{
  int code = error ? (int)*error : 0;
  struct {
    int weight, rank;
  } mine, worst;

  PetscFunctionBegin;
  mine.weight = *weight;
  PetscCallMPI(MPI_Comm_rank(comm, &mine.rank));
  PetscCallMPI(MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, comm));
  *weight = worst.weight;
  *rank   = worst.weight ? worst.rank : -1;
  if (!worst.weight) PetscFunctionReturn(PETSC_SUCCESS);
  if (error) {
    PetscCallMPI(MPI_Bcast(&code, 1, MPI_INT, worst.rank, comm));
    *error = (PetscErrorCode)code;
  }
  if (bytes) PetscCallMPI(MPI_Bcast(message, (PetscMPIInt)bytes, MPI_BYTE, worst.rank, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: an error of one rank is an error on all ranks, and its message names the rank and its device; dev NULL: the host */
PetscErrorCode GPUCSRAttemptAgree(GPUCSRAttempt *a, MPI_Comm comm, GPUCSRDevice dev)
{
  int         weight = a->error ? 1 : 0;
  char        text[sizeof(a->message)];
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscSNPrintf(text, sizeof(text), "rank %d, %s device %d: %s", (int)rank, dev ? dev->ops->name : "host", dev ? dev->id : 0, a->error ? a->message : ""));
  PetscCall(GPUCSRAgree(comm, &weight, &a->error, text, sizeof(text), &rank));
  if (rank >= 0) PetscCall(PetscStrncpy(a->message, text, sizeof(a->message)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A number as GPUCSRSameOnAllRanks() compares it */
int64_t GPUCSRBits(double number)
{
  int64_t bits;

  memcpy(&bits, &number, sizeof(bits));
  return bits;
}

/* A name as a number; NULL counts as the empty name */
int64_t GPUCSRNumberOf(const char name[])
{
  uint64_t n = 14695981039346656037u;

  for (; name && *name; name++) n = (n ^ (unsigned char)*name) * 1099511628211u;
  return (int64_t)n;
}

/* Collective: index of the first number that differs between ranks; n: none differs */
PetscErrorCode GPUCSRSameOnAllRanks(MPI_Comm comm, int n, const int64_t mine[], int *differs)
{
  PetscMPIInt size;
  int64_t    *least;

  PetscFunctionBegin;
  *differs = n;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(2 * n, &least));
  for (int k = 0; k < n; k++) {
    least[k]     = mine[k];
    least[n + k] = ~mine[k]; /* the minimum of the complement gives the maximum */
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, least, 2 * n, MPI_INT64_T, MPI_MIN, comm));
  for (int k = n - 1; k >= 0; k--)
    if (least[k] != ~least[n + k]) *differs = k;
  PetscCall(PetscFree(least));
  PetscFunctionReturn(PETSC_SUCCESS);
}
