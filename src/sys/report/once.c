/*
  Warnings of several ranks, printed once. Ranks without common waits cannot communicate, so the ranks of a node count printed messages in shared memory.
  (A MATMPIAIJGPUCSR asks its ranks, see mpiproduct.c.)
*/
#include "../gpucsrsys.h"
#include <ctype.h>

#define SLOTS 64

/* Messages that differ only in numbers: the largest count of any rank */
typedef struct {
  uint64_t key; /* 0: free */
  int      said;
} Slot;

static Slot  alone[SLOTS]; /* where nothing can be shared */
static Slot *slots = alone;
static int   mine[SLOTS]; /* messages of this rank so far */
#if !PetscDefined(HAVE_MPIUNI)
static MPI_Win  window = MPI_WIN_NULL;
static MPI_Comm node   = MPI_COMM_NULL;
#endif

/* Collective on PETSC_COMM_WORLD, as is the next */
PetscErrorCode GPUCSROnceInitialize(void)
{
  PetscFunctionBegin;
  slots = alone;
  PetscCall(PetscArrayzero(alone, SLOTS));
  PetscCall(PetscArrayzero(mine, SLOTS));
#if !PetscDefined(HAVE_MPIUNI)
  if (GPUCSRSettingsGlobal.localsize > 1) {
    PetscMPIInt failed, rank = GPUCSRSettingsGlobal.localrank;
    void       *memory = NULL;
    MPI_Aint    size;
    int         unit;

    PetscCallMPI(MPI_Comm_split_type(PETSC_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    PetscCallMPI(MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN)); /* if MPI cannot share memory, each rank prints its own messages */
    failed = MPI_Win_allocate_shared(rank ? 0 : (MPI_Aint)sizeof(alone), 1, MPI_INFO_NULL, node, &memory, &window) != MPI_SUCCESS;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, node));
    if (failed) window = MPI_WIN_NULL;
    else {
      PetscCallMPI(MPI_Win_shared_query(window, 0, &size, &unit, &memory));
      PetscCallMPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window));
      slots = (Slot *)memory;
      if (!rank) PetscCall(PetscArrayzero(slots, SLOTS));
      PetscCallMPI(MPI_Win_sync(window));
      PetscCallMPI(MPI_Barrier(node));
      PetscCallMPI(MPI_Win_sync(window));
    }
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSROnceFinalize(void)
{
  PetscFunctionBegin;
  slots = alone;
#if !PetscDefined(HAVE_MPIUNI)
  if (window != MPI_WIN_NULL) {
    PetscCallMPI(MPI_Win_unlock_all(window));
    PetscCallMPI(MPI_Win_free(&window));
  }
  if (node != MPI_COMM_NULL) PetscCallMPI(MPI_Comm_free(&node));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the calling rank print this message? Yes for its n-th message with these words, unless another rank has printed n already. */
PetscBool GPUCSROnceMine(const char message[])
{
  char     words[1024];
  uint64_t key;
  size_t   length = 0;
  int      s, n, said;

  for (const char *c = message; *c && length < sizeof(words) - 1; c++)
    if (!isdigit((unsigned char)*c)) words[length++] = *c;
  words[length] = 0;
  key           = (uint64_t)GPUCSRNumberOf(words);
  if (!key) key = 1;
  s = (int)(key % SLOTS);
  for (int k = 0; k < SLOTS; k++, s = (s + 1) % SLOTS) {
    uint64_t there = 0;

    if (__atomic_compare_exchange_n(&slots[s].key, &there, key, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) || there == key) break;
    if (k == SLOTS - 1) return PETSC_TRUE;
  }
  n    = ++mine[s];
  said = __atomic_load_n(&slots[s].said, __ATOMIC_SEQ_CST);
  while (said < n)
    if (__atomic_compare_exchange_n(&slots[s].said, &said, n, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return PETSC_TRUE;
  return PETSC_FALSE;
}

/* A warning about the device of this process, shared by its matrices, vectors and solvers */
PetscErrorCode GPUCSRWarn(const char message[])
{
  char where[64] = "";

  PetscFunctionBegin;
  if (GPUCSRSettingsGlobal.localsize > 1) PetscCall(PetscSNPrintf(where, sizeof(where), " (said by rank %d, once for all of this node)", (int)PetscGlobalRank));
  if (GPUCSROnceMine(message)) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: %s%s\n", message, where));
  else PetscCall(PetscInfo(NULL, "Said by another rank: %s\n", message));
  PetscFunctionReturn(PETSC_SUCCESS);
}
