/*
  Ranks of one host as peers: memory addressed by all ranks, flags in shared memory, a rank that does not arrive, a rank that fails. Where a call that makes or opens shared memory
  fails on one rank, all ranks get an error, or there are no peers and a reason is given; nothing stays allocated.

  //TEST name="host_1" nsize=1 args="-backend host"
  //TEST name="host_2" nsize=2 args="-backend host"
  //TEST name="host_3" nsize=3 args="-backend host"
  //TEST name="host_8" nsize=8 args="-backend host"
  //TEST name="standin_1" nsize=1 args="-backend cuda -gpucsr_debug_standin 2"
  //TEST name="standin_3" nsize=3 args="-backend cuda -gpucsr_debug_standin 2"
  //TEST name="standin_4" nsize=4 args="-backend cuda -gpucsr_debug_standin 2"
  //TEST name="late" nsize=2 args="-backend host -late -gpucsr_peer_timeout 0.5"
  //TEST name="absent" nsize=2 args="-backend host -late -products -gpucsr_peer_patience 0.5"
  //TEST name="comes" nsize=3 args="-backend host -comes -gpucsr_peer_timeout 0.5"
  //TEST name="fails" nsize=3 args="-backend host -fails"
  //TEST name="faults" nsize=2 args="-backend cuda -gpucsr_debug_standin 1 -faults"
  //TEST name="mixed" nsize=2 args="-backend cuda -gpucsr_debug_standin 1 -mixed"
  //TEST name="zero" nsize=2 args="-backend host -gpucsr_peer_timeout 0" fails="must be a number of seconds above 0"
  //TEST name="zero_patience" nsize=2 args="-backend host -gpucsr_peer_patience 0" fails="must be a number of seconds above 0"
  //TEST name="cuda_1" nsize=1 args="-backend cuda" gpu=1
  //TEST name="cuda_2" nsize=2 args="-backend cuda" gpu=1
  //TEST name="cuda_3" nsize=3 args="-backend cuda" gpu=1
*/
static char help[] = "Tests peers.\n";

#include "../src/sys/peer/peer.h"
#include "../src/sys/debug/fault/fault.h"
#include <string.h>

static PetscMPIInt rank, size;

static PetscErrorCode Copy(GPUCSRDevice d, void *to, const void *from, size_t bytes, GPUCSRCopyKind kind)
{
  PetscFunctionBegin;
  PetscCall(d->ops->copy(d->id, to, from, bytes, kind, d->stream));
  PetscCall(d->ops->streamsynchronize(d->id, d->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each rank writes its number into every other rank's memory, pieces of which differ in length, and finds all ranks' numbers in its own */
static PetscErrorCode Memory(GPUCSRDevice d, GPUCSRPeers p)
{
  void *first[9], *second[9];

  PetscFunctionBegin;
  PetscCall(GPUCSRPeersMalloc(p, sizeof(double) * (size_t)size, "a test", first));
  PetscCall(GPUCSRPeersMalloc(p, (size_t)rank * 100000, "a test", second));
  for (int r = 0; r < size; r++) {
    const double mine = 1 + rank;

    PetscCall(Copy(d, (double *)first[r] + rank, &mine, sizeof(mine), GPUCSR_TO_DEVICE));
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  for (int r = 0; r < size; r++) {
    double seen, end = -1;

    PetscCall(Copy(d, &seen, (double *)first[rank] + r, sizeof(seen), GPUCSR_TO_HOST));
    PetscCheck(seen == 1 + r, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rank %d wrote %d, and %g arrived", r, 1 + r, seen);
    if (r) PetscCall(Copy(d, &end, (char *)second[r] + (size_t)r * 100000 - 8, sizeof(end), GPUCSR_TO_HOST));
    PetscCheck(!r || end == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Memory of rank %d begins with %g, not 0", r, end);
  }
  PetscCall(GPUCSRPeersFree(p, second));
  PetscCall(GPUCSRPeersFree(p, first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Round and round: a number goes from each to the next, two behind each other at most */
static PetscErrorCode Flags(GPUCSRPeers p)
{
  void *all[9];

  PetscFunctionBegin;
  PetscCall(GPUCSRPeersMalloc(p, 64, "flags", all));
  for (uint64_t s = 1; s <= 200; s++) {
    uint64_t *next = (uint64_t *)all[(rank + 1) % size], *mine = (uint64_t *)all[rank];

    next[2 + s % 2] = 1000 * s + (uint64_t)rank;
    GPUCSRPeerPublish(&next[0], s);
    PetscCall(GPUCSRPeerAwait(p, &mine[0], s));
    PetscCheck(mine[2 + s % 2] == 1000 * s + (uint64_t)((rank + size - 1) % size), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Turn %d: %d arrived", (int)s, (int)mine[2 + s % 2]);
    GPUCSRPeerPublish((uint64_t *)all[(rank + size - 1) % size] + 1, s); /* read */
    PetscCall(GPUCSRPeerAwait(p, &mine[1], s));
  }
  PetscCall(GPUCSRPeersCheck(p));
  PetscCall(GPUCSRPeersFree(p, all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last rank does not arrive, or reports that it fails: the other ranks get an error, in time, and memory can be freed */
static PetscErrorCode Missing(GPUCSRPeers p, PetscBool says, PetscBool products)
{
  const double   since = GPUCSRPeerSeconds();
  const char    *want  = says ? "out of luck" : products ? "-gpucsr_peer_patience" : "-gpucsr_peer_timeout";
  void          *all[9];
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;
  char          *found;

  PetscFunctionBegin;
  PetscCall(GPUCSRPeersMalloc(p, 64, "flags", all));
  PetscCall(GPUCSRAttemptBegin(&attempt));
  if (rank < size - 1) ierr = products ? GPUCSRPeerAwaitLate(p, (uint64_t *)all[rank], 1) : GPUCSRPeerAwait(p, (uint64_t *)all[rank], 1);
  else {
    ierr = PETSC_ERR_GPU;
    if (says) (void)GPUCSRPeersDead(p, "out of luck");
    else PetscCall(PetscSleep(1));
    (void)GPUCSRPeersCheck(p);
  }
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCheck(ierr == PETSC_ERR_GPU, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No error, but %d", (int)ierr);
  PetscCall(PetscStrstr(attempt.message, want, &found));
  PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The error is %s", attempt.message);
  PetscCall(GPUCSRPeersFree(p, all));
  PetscCheck(GPUCSRPeerSeconds() - since < 10, PETSC_COMM_SELF, PETSC_ERR_PLIB, "This took %g seconds", GPUCSRPeerSeconds() - since);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last rank comes late, by more than a solve would wait: that is no error */
static PetscErrorCode Comes(GPUCSRPeers p)
{
  void *all[9];

  PetscFunctionBegin;
  PetscCall(GPUCSRPeersMalloc(p, 64, "flags", all));
  if (rank == size - 1) PetscCall(PetscSleep(2));
  for (int r = 0; r < size; r++) GPUCSRPeerPublish((uint64_t *)all[r] + rank, 1);
  for (int r = 0; r < size; r++) PetscCall(GPUCSRPeerAwaitLate(p, (uint64_t *)all[rank] + r, 1));
  PetscCall(GPUCSRPeersCheck(p));
  PetscCall(GPUCSRPeersFree(p, all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The n-th call on one rank fails */
static PetscErrorCode Faults(GPUCSRDevice d)
{
  GPUCSRFaultCounts *f = &GPUCSRFaultCounters;

  PetscFunctionBegin;
  for (int where = 0; where < size; where++)
    for (PetscInt n = 1; n < 12; n++) {
      GPUCSRPeers    p;
      GPUCSRAttempt  attempt;
      PetscErrorCode ierr = PETSC_SUCCESS, worst;
      int            code;
      const PetscInt memory = f->memory, attached = f->attached;
      void          *all[9];

      f->kind                     = GPUCSR_FAULT_PEER;
      f->calls[GPUCSR_FAULT_PEER] = 0;
      f->at                       = rank == where ? n : 0;
      PetscCall(GPUCSRPeersCreate(PETSC_COMM_WORLD, d, &p));
      if (p->all) {
        PetscCall(GPUCSRAttemptBegin(&attempt));
        ierr = GPUCSRPeersMalloc(p, 100, "a test", all);
        PetscCall(GPUCSRAttemptEnd(&attempt));
        if (!ierr) PetscCall(GPUCSRPeersFree(p, all));
      }
      code = (int)ierr;
      PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
      worst = (PetscErrorCode)code;
      PetscCheck(ierr == worst, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Call %d of rank %d: error %d here, %d elsewhere", (int)n, where, (int)ierr, (int)worst);
      PetscCheck(n > 4 || ierr || !p->all, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Call %d of rank %d failed, and nobody knows", (int)n, where);
      PetscCheck(n <= 4 || (!ierr && p->all), PETSC_COMM_SELF, PETSC_ERR_PLIB, "There are more calls than thought: %s", p->why);
      PetscCall(GPUCSRPeersDestroy(&p));
      PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
      PetscCall(GPUCSRPeersSweep(1));
      PetscCheck(f->memory == memory && f->attached == attached, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Call %d of rank %d: %d pieces of memory and %d mappings are left", (int)n, where, (int)(f->memory - memory), (int)(f->attached - attached));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool    late = PETSC_FALSE, products = PETSC_FALSE, comes = PETSC_FALSE, fails = PETSC_FALSE, faults = PETSC_FALSE, mixed = PETSC_FALSE;
  char         backend[16] = "host", why[512];
  GPUCSRDevice d;
  GPUCSRPeers  p;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-late", &late, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-products", &products, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-comes", &comes, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-fails", &fails, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-faults", &faults, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mixed", &mixed, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  if (faults) PetscCall(PetscOptionsSetValue(NULL, "-gpucsr_debug_fault", "peer:0"));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &d, why, sizeof(why)));
  PetscCheck(d, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s", why);
  if (faults) PetscCall(Faults(d));
  else {
    PetscCall(GPUCSRPeersCreate(PETSC_COMM_WORLD, mixed && !rank ? NULL : d, &p));
    PetscCheck(p->all == !mixed, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Peers: %s", p->why);
    PetscCheck(!mixed || !strcmp(p->why, "rank 1 computes on cuda and rank 0 on the host"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Why not: %s", p->why);
    if (!mixed && !late && !fails) PetscCall(Memory(d, p));
    if (late || fails) PetscCall(Missing(p, fails, products));
    else if (comes) PetscCall(Comes(p));
    else if (!mixed && !d->ops->kernels) PetscCall(Flags(p));
    PetscCall(GPUCSRPeersDestroy(&p));
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(GPUCSRPeersSweep(1));
  PetscCheck(faults || d->allocated == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu bytes are left", d->allocated);
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
