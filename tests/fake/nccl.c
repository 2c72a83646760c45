/*
  Stands in for NCCL where the host stands in for GPUs (t426-nccl.sh): MPI does its sends, receives and gathers. They complete when a group ends, or when another thread aborts.
*/
#include <mpi.h>
#include <stddef.h>

typedef struct {
  char bytes[128];
} Id;

#define MOST 64
static MPI_Request request[MOST];
static int         n, open;
static MPI_Comm    comm = MPI_COMM_NULL;
static int         aborted;

int ncclGetUniqueId(Id *id)
{
  for (int k = 0; k < 128; k++) id->bytes[k] = (char)k;
  return 0;
}

int ncclCommInitRank(void **c, int size, Id id, int rank)
{
  int mine, all;

  for (int k = 0; k < 128; k++)
    if (id.bytes[k] != (char)k) return 4;
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_rank(MPI_COMM_WORLD, &mine);
  if (size != all || rank != mine) return 5;
  if (comm == MPI_COMM_NULL || aborted) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  __atomic_store_n(&aborted, 0, __ATOMIC_RELEASE);
  *c = &comm;
  return 0;
}

int ncclCommDestroy(void *c)
{
  return c == (void *)&comm ? 0 : 4;
}

int ncclCommAbort(void *c)
{
  __atomic_store_n(&aborted, 1, __ATOMIC_RELEASE);
  return c == (void *)&comm ? 0 : 4;
}

int ncclCommGetAsyncError(void *c, int *error)
{
  *error = 0;
  return c == (void *)&comm ? 0 : 4;
}

int ncclGroupStart(void)
{
  return open++ ? 5 : 0;
}

int ncclGroupEnd(void)
{
  if (!open--) return 5;
  for (int done = 0; !done && !__atomic_load_n(&aborted, __ATOMIC_ACQUIRE);) MPI_Testall(n, request, &done, MPI_STATUSES_IGNORE);
  for (int k = 0; k < n; k++)
    if (request[k] != MPI_REQUEST_NULL) MPI_Request_free(&request[k]);
  n = 0;
  return __atomic_load_n(&aborted, __ATOMIC_ACQUIRE) ? 6 : 0;
}

int ncclSend(const void *p, size_t count, int type, int peer, void *c, void *stream)
{
  (void)stream;
  if (!open || n == MOST || type != 8 || c != (void *)&comm) return 4;
  MPI_Isend(p, (int)count, MPI_DOUBLE, peer, 0, comm, &request[n++]);
  return 0;
}

int ncclRecv(void *p, size_t count, int type, int peer, void *c, void *stream)
{
  (void)stream;
  if (!open || n == MOST || type != 8 || c != (void *)&comm) return 4;
  MPI_Irecv(p, (int)count, MPI_DOUBLE, peer, 0, comm, &request[n++]);
  return 0;
}

int ncclAllGather(const void *from, void *to, size_t count, int type, void *c, void *stream)
{
  MPI_Request gather;
  int         done = 0;

  (void)stream;
  if (open || type != 8 || c != (void *)&comm) return 4;
  MPI_Iallgather(from, (int)count, MPI_DOUBLE, to, (int)count, MPI_DOUBLE, comm, &gather);
  while (!done && !__atomic_load_n(&aborted, __ATOMIC_ACQUIRE)) MPI_Test(&gather, &done, MPI_STATUS_IGNORE);
  return done ? 0 : 6;
}

const char *ncclGetErrorString(int e)
{
  return e == 4 ? "invalid argument" : "invalid usage";
}
