/*
  Numbers of all ranks: what each has reduced on its device is there in host memory when its reduction ends. Ranks of one host then read each other's, in memory that they share,
  and each adds them up in the order of ranks: the same bits on all of them, and no message. Ranks of several hosts do it by MPI.

  A device could wait for its peers' numbers as well, and give the host the sum: that costs a trip over the link before the trip to the host, where this costs a look into the other processors' caches
  after it; and no launch waits, so that ranks may share a device.

  A communicator has one such memory, made at its first reduction: a piece a rank, with two sets of numbers. A rank writes set s + 2 only after it has read s + 1 of all, which they wrote
  after they had read s. A rank that has met an error in its own part says so in place of its numbers: all get an error, and the next reduction is as good as any.
*/
#include "vecgpuimpl.h"
#include "../../../sys/peer/peer.h"

#define MOST 512 /* numbers at once */
#define FEW  16  /* ranks: of more, each would read so many others' numbers that MPI's tree has fewer steps */

/* In memory that all ranks of the host have mapped */
typedef struct {
  uint64_t flag;
  int      failed;
  double   number[MOST];
} Set;

/* Of a communicator; its attribute */
typedef struct _n_Together Together;
struct _n_Together {
  MPI_Comm    comm;
  GPUCSRPeers peers; /* NULL: by MPI */
  void      **theirs;
  uint64_t    sequence;
  Together   *next;
  Together  **previous;
};

typedef enum {
  REDUCE_AUTO,
  REDUCE_SHARED,
  REDUCE_MPI
} Word;
static const char *const words[] = {"auto", "shared", "mpi", "Word", "REDUCE_", NULL};

static PetscMPIInt keyval = MPI_KEYVAL_INVALID;
static MPI_Op      top    = MPI_OP_NULL; /* as MPI_MAX, which may lose a NaN */
static Together   *living;

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
  (void)type;
  Combine(VEC_GPU_TOP, (int)*n, (const double *)from, (double *)to);
}

static PetscErrorCode Destroy(Together *t)
{
  PetscFunctionBegin;
  *t->previous = t->next;
  if (t->next) t->next->previous = t->previous;
  if (t->theirs) PetscCall(GPUCSRPeersFree(t->peers, t->theirs));
  PetscCall(PetscFree(t->theirs));
  PetscCall(GPUCSRPeersDestroy(&t->peers));
  PetscCall(PetscFree(t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The communicator goes */
static PetscMPIInt MPIAPI Delete(MPI_Comm comm, PetscMPIInt key, void *t, void *unused)
{
  (void)comm;
  (void)key;
  (void)unused;
  return Destroy((Together *)t) ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* Collective: memory that all share, where they are on one host and nobody declines. What cannot be had is no error but where it was asked for by name */
static PetscErrorCode Connect(Together *t, Word word)
{
  PetscMPIInt size;
  char        why[768] = "asked for";

  GPUCSRAttempt attempt = {.error = PETSC_ERR_SUP};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(t->comm, &size));
  if (word == REDUCE_AUTO && size > FEW) {
    word = REDUCE_MPI;
    PetscCall(PetscStrncpy(why, "there are more than 16 ranks", sizeof(why)));
  }
  if (word != REDUCE_MPI && !GPUCSR_SCALAR_IS_DOUBLE) PetscCall(PetscStrncpy(why, "this PETSc does not compute with real double numbers", sizeof(why)));
  else if (word != REDUCE_MPI) {
    PetscCall(GPUCSRPeersCreate(t->comm, NULL, &t->peers));
    if (!t->peers->all) PetscCall(PetscStrncpy(why, t->peers->why, sizeof(why)));
    else {
      PetscCall(PetscCalloc1(t->peers->size + 1, &t->theirs));
      GPUCSRTry(&attempt, GPUCSRPeersMalloc(t->peers, 2 * sizeof(Set), "numbers of vectors", t->theirs));
      if (attempt.error) PetscCall(PetscStrncpy(why, attempt.message, sizeof(why)));
    }
    if (attempt.error) {
      PetscCall(PetscFree(t->theirs));
      PetscCall(GPUCSRPeersDestroy(&t->peers));
    }
    PetscCheck(!attempt.error || word != REDUCE_SHARED, t->comm, attempt.error, "-vec_gpu_reduce shared: %s", why);
  }
  PetscCall(PetscInfo(NULL, "VECGPU: numbers of ranks are reduced %s%s\n", t->peers ? "in memory that they share" : "by MPI: ", t->peers ? "" : why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(MPI_Comm comm, Together **result)
{
  int            word[2];
  PetscEnum      asked = (PetscEnum)REDUCE_AUTO;
  Together      *t;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscOptionsBegin(comm, NULL, "VECGPU", "VECGPU");
  PetscCall(PetscOptionsEnum("-vec_gpu_reduce", "How numbers of ranks are reduced", "VECGPU", words, asked, &asked, NULL));
  PetscOptionsEnd();
  word[0] = (int)asked;
  word[1] = -(int)asked;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, word, 2, MPI_INT, MPI_MIN, comm));
  PetscCheck(word[0] == -word[1], comm, PETSC_ERR_ARG_INCOMP, "-vec_gpu_reduce is not the same on all ranks: it must be");
  if (keyval == MPI_KEYVAL_INVALID) {
    PetscCallMPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, Delete, &keyval, NULL));
    PetscCallMPI(MPI_Op_create(Top, 1, &top));
  }
  PetscCall(PetscNew(&t));
  t->comm     = comm;
  t->next     = living;
  t->previous = &living;
  if (living) living->previous = &t->next;
  living = t;
  PetscCallMPI(MPI_Comm_set_attr(comm, keyval, t));
  ierr = Connect(t, (Word)asked);
  if (ierr) PetscCallMPI(MPI_Comm_delete_attr(comm, keyval)); /* asked again, it is an error again */
  PetscCall(ierr);
  *result = t;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUTogetherFinalize_Private(void)
{
  PetscFunctionBegin;
  while (living) PetscCallMPI(MPI_Comm_delete_attr(living->comm, keyval));
  if (keyval != MPI_KEYVAL_INVALID) {
    PetscCallMPI(MPI_Comm_free_keyval(&keyval));
    PetscCallMPI(MPI_Op_free(&top));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n numbers, MOST at the most; failed: this rank has none */
static PetscErrorCode Shared(Together *t, PetscBool failed, VecGPUCombine how, int n, double z[])
{
  const PetscMPIInt rank = t->peers->rank, size = t->peers->size;
  const uint64_t    now  = ++t->sequence;
  Set              *mine = (Set *)t->theirs[rank] + now % 2;
  PetscMPIInt       bad  = -1;

  PetscFunctionBegin;
  mine->failed = failed;
  for (int k = 0; k < n && !failed; k++) mine->number[k] = z[k];
  GPUCSRPeerPublish(&mine->flag, now);
  for (PetscMPIInt r = 0; r < size; r++) {
    const Set *set = (const Set *)t->theirs[r] + now % 2;

    PetscCall(GPUCSRPeerAwaitLate(t->peers, &set->flag, now));
    if (set->failed && bad < 0) bad = r;
    if (bad >= 0) continue;
    if (r) Combine(how, n, set->number, z);
    else
      for (int k = 0; k < n; k++) z[k] = set->number[k];
  }
  PetscCheck(bad < 0 || failed, PETSC_COMM_SELF, PETSC_ERR_GPU, "Rank %d has met an error in its part of a reduction", (int)bad);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective on the ranks of x, if it is parallel: n numbers of each become those of all. ierr: what this rank has met in its part, which is given back; the others get an error, too. Where they
  reduce by MPI they would wait for it, as for any rank that does not come
*/
PetscErrorCode VecGPUTogether_Private(Vec x, PetscErrorCode ierr, VecGPUCombine how, PetscInt n, double z[])
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)x);
  Together      *t;
  PetscMPIInt    set;

  PetscFunctionBegin;
  if (!VecGPUOf(x)->mpi || !n) PetscFunctionReturn(ierr);
  set = 0;
  if (keyval != MPI_KEYVAL_INVALID) PetscCallMPI(MPI_Comm_get_attr(comm, keyval, (void *)&t, &set));
  if (!set) PetscCall(Create(comm, &t));
  if (!t->peers) {
    PetscCall(ierr);
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, z, (PetscMPIInt)n, MPI_DOUBLE, how == VEC_GPU_ADD ? MPI_SUM : top, comm));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt first = 0; first < n; first += MOST) {
    const PetscErrorCode met = Shared(t, (PetscBool)(ierr != PETSC_SUCCESS), how, (int)PetscMin(n - first, MOST), z + first);

    if (!ierr) ierr = met;
  }
  PetscFunctionReturn(ierr);
}
