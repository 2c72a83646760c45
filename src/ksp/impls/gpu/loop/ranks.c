/*
  Several ranks: what they must agree on before a solve, and which ways they can take together: one launch on each (peers.c), or a graph with the exchange of the matrix. What they
  answer is the same on all ranks.
*/
#include "../common/gpukspimpl.h"
#include <sched.h>

/*
  Agrees on the outcome of something that each process has tried by itself, since processes that go on must not wait for one that failed. ok: all go on. If not, all get the message of the first
  process with the worst outcome, and its error if it is one.
*/
PetscErrorCode GPUKSPAgree(KSP ksp, GPUKSPOutcome mine, PetscErrorCode ierr, const char message[], PetscBool *ok, char why[], size_t len)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)ksp);
  char           text[512];
  int            code = (int)ierr;
  PetscMPIInt    rank;
  struct {
    int outcome, rank;
  } one, worst;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  one.outcome = (int)mine;
  one.rank    = rank;
  PetscCallMPI(MPI_Allreduce(&one, &worst, 1, MPI_2INT, MPI_MAXLOC, comm));
  *ok = (PetscBool)(worst.outcome == GPUKSP_GOES_ON);
  if (*ok) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrncpy(text, message, sizeof(text)));
  PetscCallMPI(MPI_Bcast(text, (PetscMPIInt)sizeof(text), MPI_CHAR, worst.rank, comm));
  PetscCallMPI(MPI_Bcast(&code, 1, MPI_INT, worst.rank, comm));
  PetscCheck(worst.outcome != GPUKSP_IN_ERROR, comm, (PetscErrorCode)code, "%s", text);
  PetscCall(PetscStrncpy(why, text, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If the device has too little memory or fails, PETSc's method solves; with -mat_gpucsr_backend cuda it is an error */
GPUKSPOutcome GPUKSPOutcomeOf(const KSP_GPU *k, PetscErrorCode ierr)
{
  if (!ierr) return GPUKSP_GOES_ON;
  return (ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU) && !k->op.required ? GPUKSP_NO_DEVICE : GPUKSP_IN_ERROR;
}

/* The same for an error code. ok: it worked on all processes */
PetscErrorCode GPUKSPTogether(KSP ksp, const KSP_GPU *k, PetscErrorCode ierr, const char message[], PetscBool *ok, char why[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(GPUKSPAgree(ksp, GPUKSPOutcomeOf(k, ierr), ierr, message, ok, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  After what all have begun: has any rank met an error? All come here, whether they have met one or not, but a rank may be later than others may wait. So the wait has a limit, and what the ranks
  agree by stays for those that are late
*/
PetscErrorCode GPUKSPEndTogether(KSP ksp, PetscErrorCode ierr, PetscBool *any)
{
  struct {
    int         mine, all;
    MPI_Request request;
  } * end;
  PetscReal    timeout;
  PetscMPIInt  done  = 0;
  const double since = MPI_Wtime();

  PetscFunctionBegin;
  PetscCall(GPUCSRPeerTimeout(&timeout));
  PetscCall(PetscMalloc(sizeof(*end), &end));
  end->mine = ierr ? 1 : 0;
  PetscCallMPI(MPI_Iallreduce(&end->mine, &end->all, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)ksp), &end->request));
  do {
    PetscCallMPI(MPI_Test(&end->request, &done, MPI_STATUS_IGNORE));
    if (!done) (void)sched_yield();
  } while (!done && !ierr && MPI_Wtime() - since < timeout);
  PetscCheck(done || ierr, PETSC_COMM_SELF, PETSC_ERR_GPU, "A rank has not come to the end of a solve for %g seconds: -gpucsr_peer_timeout says how long it may", (double)timeout);
  *any = (PetscBool)(!done || end->all);
  if (done) PetscCall(PetscFree(end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Why several processes cannot solve in one launch on each; empty: they can. The answer is the same on all */
PetscErrorCode GPUKSPWhyNotPeers(KSP ksp, KSP_GPU *k, PetscMPIInt size, char why[], size_t len)
{
  const char *what = size > GPUKSP_PEERS                       ? "there are too many"
                     : k->path == KSP_GPU_PATH_GRAPH           ? "asked for"
                     : k->precision != KSP_GPU_DOUBLE          ? "residual replacement is for one"
                     : k->live                                 ? "a monitor or test looks at every iteration"
                     : !k->pc.row->rows                        ? "the preconditioner is not part of a persistent kernel"
                     : k->method == GPUKSP_CG_SINGLE_REDUCTION ? GPUKSP_STANDARD_ALONE
                                                               : NULL;
  PetscBool   ok   = PETSC_FALSE;
  char        text[256];

  PetscFunctionBegin;
  if (!what) {
    PetscCall(GPUKSPPeersGet(ksp, k, &ok, text, sizeof(text)));
    what = text;
  }
  why[0] = 0;
  if (!ok) PetscCall(PetscStrncpy(why, what, len));
  k->peers.on = ok;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* May several processes solve by a graph, with products and sums by the exchange of the matrix? If not, why says why. The answer is the same on all */
static PetscErrorCode RanksGet(KSP ksp, KSP_GPU *k, char why[], size_t len)
{
  char           text[256] = "", message[600];
  int            host      = !k->dev->ops->kernels;
  Mat            A;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  k->ranks.on = PETSC_FALSE;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &k->ranks.size));
  if (k->precision != KSP_GPU_DOUBLE || k->path == KSP_GPU_PATH_PERSISTENT) {
    PetscCall(PetscStrncpy(why, k->precision != KSP_GPU_DOUBLE ? "residual replacement is for one" : "", len));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &host, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
  if (host && k->path == KSP_GPU_PATH_AUTO) {
    PetscCall(PetscStrncpy(why, "the host computes", len));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = MatGPUCSRRanksGet_Private(A, &k->ranks.A, text, sizeof(text));
  if (!ierr && !text[0]) ierr = GPUKSPGrow(k, sizeof(double) * GPUKSP_SUMS * (size_t)(1 + k->ranks.size), "sums of a solver", &k->ranks.sums);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCall(PetscStrncpy(message, ierr ? attempt.message : text, sizeof(message)));
  PetscCall(GPUKSPAgree(ksp, ierr ? GPUKSPOutcomeOf(k, ierr) : text[0] ? GPUKSP_NO_DEVICE : GPUKSP_GOES_ON, ierr, message, &k->ranks.on, why, len));
  if (k->ranks.on) k->ranks.way = MatGPUCSRRanksExchange_Private(&k->ranks.A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same after one launch on each was refused. A graph keeps the reason for the view, k->why; without one, why says what both need */
PetscErrorCode GPUKSPWhyNotRanks(KSP ksp, KSP_GPU *k, const char launch[], char why[], size_t len)
{
  char      graph[256];
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(RanksGet(ksp, k, graph, sizeof(graph)));
  PetscCall(PetscStrncpy(k->why, launch, sizeof(k->why)));
  if (k->ranks.on) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(graph, launch, &same));
  if (k->path == KSP_GPU_PATH_GRAPH) PetscCall(PetscSNPrintf(why, len, "there are several processes, and %s", graph));
  else PetscCall(PetscSNPrintf(why, len, "there are several processes, and %s%s%s", launch, graph[0] && !same ? "; for a graph, " : "", same ? "" : graph));
  if (k->path == KSP_GPU_PATH_AUTO && k->dev->ops->kernels) { /* 171 us an iteration for 109 on two GPUs (27 points 64^3, staged) */
    PetscCall(PetscStrlcat(why, ": -ksp_type ", len));
    PetscCall(PetscStrlcat(why, k->petsc, len));
    PetscCall(PetscStrlcat(why, " is faster there", len));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What may differ between ranks and must not: a rank may have no device for what its neighbours have one for, a factor say, and then PETSc applies the PC on all; and if one rank has a monitor that
  looks at every iteration, all stop for it
*/
PetscErrorCode GPUKSPKindTogether(KSP ksp, KSP_GPU *k)
{
  const int kind    = (int)k->pc.kind;
  int       most[3] = {kind, -kind, (int)k->live};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
  if (most[0] != -most[1]) k->pc.kind = GPUKSP_PC_ANY;
  k->live = (PetscBool)most[2];
  PetscFunctionReturn(PETSC_SUCCESS);
}
