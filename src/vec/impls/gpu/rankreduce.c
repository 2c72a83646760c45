/*
  Sums over all ranks: a rank's numbers are in host memory when the reduction on its device ends. Ranks of one host then read each other's numbers in shared memory, and each adds them up in rank order:
  the same bits on all ranks, without messages. Ranks of several hosts reduce by MPI.

  Devices could also wait for their peers' numbers and give the host the sum. The host is better: a look into other processors' caches costs less than a trip over the link before the trip to the host,
  and no launch waits, so ranks may share a device.

  At its first reduction a communicator gets this memory: two sets of numbers for each rank. A rank writes set s + 2 only after reading s + 1 of all ranks, which they wrote after reading s.
  A rank with an error in its part writes the error in place of its numbers: all ranks get an error, and the next reduction works again.
*/
#include "vecgpuimpl.h"
#include "../../../sys/peer/peer.h"

#define MOST 512 /* numbers at once */

/* Mapped by all ranks of the host */
typedef struct {
  uint64_t flag;
  int      failed;
  double   number[MOST];
} Set;

/* Of a communicator; its attribute */
typedef struct _n_Meeting Meeting;
struct _n_Meeting {
  MPI_Comm     comm;
  GPUCSRPeers  peers; /* NULL: by MPI */
  void       **sets;
  uint64_t     sequence;
  GPUCSRLiving living;
};

typedef enum {
  REDUCE_AUTO,
  REDUCE_SHARED,
  REDUCE_MPI
} Word;
static const char *const words[] = {"auto", "shared", "mpi", "Word", "REDUCE_", NULL};

static PetscMPIInt keyval = MPI_KEYVAL_INVALID;
static MPI_Op      top    = MPI_OP_NULL; /* as MPI_MAX, which may lose a NaN */

/* A NaN is larger than anything, as in veclist.h */
static void Combine(VecGPUCombine how, int n, const double from[], double to[])
{
  for (int k = 0; k < n; k++) {
    if (how == VEC_GPU_ADD) to[k] += from[k];
    else if (from[k] > to[k] || from[k] != from[k]) to[k] = from[k];
  }
}

static void MPIAPI Top(void *from, void *to, PetscMPIInt *n, MPI_Datatype *type)
{
  Combine(VEC_GPU_TOP, (int)*n, (const double *)from, (double *)to);
}

static PetscErrorCode Destroy(Meeting *t)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRLivingRemove(&t->living));
  if (t->sets) PetscCall(GPUCSRPeersFree(t->peers, t->sets));
  PetscCall(PetscFree(t->sets));
  PetscCall(GPUCSRPeersDestroy(&t->peers));
  PetscCall(PetscFree(t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The communicator goes */
static PetscMPIInt MPIAPI Delete(MPI_Comm comm, PetscMPIInt key, void *t, void *unused)
{
  return Destroy((Meeting *)t) ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* Collective: memory shared by all ranks of one host. Failure is an error only with -vec_gpu_reduce shared */
static PetscErrorCode Connect(Meeting *t, Word word)
{
  char why[768] = "asked for";

  GPUCSRAttempt     attempt = {.error = PETSC_ERR_SUP};
  const PetscMPIInt size    = GPUCSRSizeOf(t->comm);

  PetscFunctionBegin;
  if (word == REDUCE_AUTO && size > GPUCSRMachineShared.reduce_ranks) {
    word = REDUCE_MPI;
    PetscCall(PetscSNPrintf(why, sizeof(why), "there are more than %g ranks", GPUCSRMachineShared.reduce_ranks));
  }
  if (word != REDUCE_MPI) {
    PetscCall(GPUCSRPeersCreate(t->comm, NULL, &t->peers));
    if (!t->peers->all) PetscCall(PetscStrncpy(why, t->peers->why, sizeof(why)));
    else {
      PetscCall(PetscCalloc1(t->peers->size + 1, &t->sets));
      GPUCSRTry(&attempt, GPUCSRPeersMalloc(t->peers, 2 * sizeof(Set), "numbers of vectors", t->sets));
      if (attempt.error) PetscCall(PetscStrncpy(why, attempt.message, sizeof(why)));
    }
    if (attempt.error) {
      PetscCall(PetscFree(t->sets));
      PetscCall(GPUCSRPeersDestroy(&t->peers));
    }
    PetscCheck(!attempt.error || word != REDUCE_SHARED, t->comm, attempt.error, "-vec_gpu_reduce shared: %s", why);
  }
  PetscCall(PetscInfo(NULL, "VECGPU: numbers of ranks are reduced %s%s\n", t->peers ? "in memory that they share" : "by MPI: ", t->peers ? "" : why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MeetingRelease(void *t)
{
  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_delete_attr(((Meeting *)t)->comm, keyval));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList living = {GPUCSR_FINAL_VEC, MeetingRelease, NULL};

/* After the communicators */
static PetscErrorCode KeyvalFree(void)
{
  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_free_keyval(&keyval));
  PetscCallMPI(MPI_Op_free(&top));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(MPI_Comm comm, Meeting **result)
{
  int64_t        word;
  int            differs;
  PetscEnum      asked = (PetscEnum)REDUCE_AUTO;
  Meeting       *t;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscOptionsBegin(comm, NULL, "VECGPU", "VECGPU");
  PetscCall(PetscOptionsEnum("-vec_gpu_reduce", "How numbers of ranks are reduced", "VECGPU", words, asked, &asked, NULL));
  PetscOptionsEnd();
  word = (int64_t)asked;
  PetscCall(GPUCSRSameOnAllRanks(comm, 1, &word, &differs));
  PetscCheck(differs == 1, comm, PETSC_ERR_ARG_INCOMP, "-vec_gpu_reduce is not the same on all ranks");
  if (keyval == MPI_KEYVAL_INVALID) {
    PetscCallMPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, Delete, &keyval, NULL));
    PetscCallMPI(MPI_Op_create(Top, 1, &top));
    PetscCall(GPUCSRRegisterFinalize(GPUCSR_FINAL_VEC, KeyvalFree));
  }
  PetscCall(PetscNew(&t));
  t->comm = comm;
  PetscCall(GPUCSRLivingAdd(&living, &t->living, t));
  PetscCallMPI(MPI_Comm_set_attr(comm, keyval, t));
  ierr = Connect(t, (Word)asked);
  if (ierr) PetscCallMPI(MPI_Comm_delete_attr(comm, keyval)); /* another attempt is an error again */
  PetscCall(ierr);
  *result = t;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n numbers, MOST at the most; failed: this rank has none */
static PetscErrorCode Shared(Meeting *t, PetscBool failed, VecGPUCombine how, int n, double z[])
{
  const PetscMPIInt rank = t->peers->rank, size = t->peers->size;
  const uint64_t    now  = ++t->sequence;
  Set              *mine = (Set *)t->sets[rank] + now % 2;
  PetscMPIInt       bad  = -1;

  PetscFunctionBegin;
  mine->failed = failed;
  for (int k = 0; k < n && !failed; k++) mine->number[k] = z[k];
  GPUCSRPeerPublish(&mine->flag, now);
  for (PetscMPIInt r = 0; r < size; r++) {
    const Set *set = (const Set *)t->sets[r] + now % 2;

    PetscCall(GPUCSRPeerAwaitLate(t->peers, &set->flag, now));
    if (set->failed && bad < 0) bad = r;
    if (bad >= 0) continue;
    if (r) Combine(how, n, set->number, z);
    else
      for (int k = 0; k < n; k++) z[k] = set->number[k];
  }
  PetscCheck(bad < 0 || failed, PETSC_COMM_SELF, PETSC_ERR_GPU, "Rank %d has failed in its part of a reduction", (int)bad);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective on the ranks of x, if x is parallel: reduces n numbers of each rank over all ranks. ierr: an error of this rank, which this function returns; the other ranks get an error too. With MPI the
  other ranks would wait, as for any absent rank
*/
PetscErrorCode VecGPUAllreduce_Private(Vec x, PetscErrorCode ierr, VecGPUCombine how, PetscInt n, double z[])
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)x);
  Meeting       *t;
  PetscMPIInt    set;

  PetscFunctionBegin;
  if (!VecGPUOf(x)->mpi || !n) PetscFunctionReturn(ierr);
  set = 0;
  if (keyval != MPI_KEYVAL_INVALID) PetscCallMPI(MPI_Comm_get_attr(comm, keyval, (void *)&t, &set));
  if (!set) PetscCall(Create(comm, &t));
  if (!t->peers) {
    for (PetscInt k = 0; k < (ierr ? n : 0); k++) z[k] = NAN; /* the other ranks wait */
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, z, (PetscMPIInt)n, MPI_DOUBLE, how == VEC_GPU_ADD ? MPI_SUM : top, comm));
    PetscFunctionReturn(ierr);
  }
  for (PetscInt first = 0; first < n; first += MOST) {
    const PetscErrorCode met = Shared(t, (PetscBool)(ierr != PETSC_SUCCESS), how, (int)PetscMin(n - first, MOST), z + first);

    if (!ierr) ierr = met;
  }
  PetscFunctionReturn(ierr);
}
