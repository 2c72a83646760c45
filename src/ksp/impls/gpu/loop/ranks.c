/*
  Several ranks: agreement before a solve, and the possible paths: one launch on each rank (peers.c), or a graph with the exchange of the matrix. All ranks get the same answers.
*/
#include "../common/gpukspimpl.h"
#include <sched.h>

/*
  Agrees on the outcome of each process' separate work, so that no process waits for a failed process. ok: all continue. Otherwise all get the message of the first process with the
  worst outcome, and its error if there is one.
*/
PetscErrorCode GPUKSPAgree(KSP ksp, GPUKSPOutcome mine, PetscErrorCode ierr, const char message[], PetscBool *ok, char why[], size_t len)
{
  const MPI_Comm comm    = PetscObjectComm((PetscObject)ksp);
  int            outcome = (int)mine;
  char           text[512];
  PetscMPIInt    rank;

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(text, mine == GPUKSP_GOES_ON ? "" : message, sizeof(text)));
  PetscCall(GPUCSRAgree(comm, &outcome, &ierr, text, sizeof(text), &rank));
  *ok = (PetscBool)(outcome == GPUKSP_GOES_ON);
  if (*ok) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(outcome != GPUKSP_IN_ERROR, comm, ierr, "%s", text);
  PetscCall(PetscStrncpy(why, text, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If the device has too little memory or fails, PETSc's method solves; with -mat_gpucsr_backend cuda the solve ends with an error */
GPUKSPOutcome GPUKSPOutcomeOf(const KSP_GPU *k, PetscErrorCode ierr)
{
  if (!ierr) return GPUKSP_GOES_ON;
  return (ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU) && !k->op.required ? GPUKSP_NO_DEVICE : GPUKSP_IN_ERROR;
}

/* The same for an error code. ok: all processes have succeeded */
PetscErrorCode GPUKSPTogether(KSP ksp, const KSP_GPU *k, PetscErrorCode ierr, const char message[], PetscBool *ok, char why[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(GPUKSPAgree(ksp, GPUKSPOutcomeOf(k, ierr), ierr, message, ok, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  At the end of a common solve: has any rank met an error? All ranks call this function, with or without an error, but possibly late. So the wait is bounded, and the request of the agreement
  stays alive for late ranks
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
  PetscCheck(done || ierr, PETSC_COMM_SELF, PETSC_ERR_GPU, "A rank has not reached the end of a solve for %g seconds (-gpucsr_peer_timeout)", (double)timeout);
  *any = (PetscBool)(!done || end->all);
  if (done) PetscCall(PetscFree(end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* May several processes solve by a graph, with products and sums by the exchange of the matrix? If not, why says why. The answer is the same on all */
static PetscErrorCode Get(KSP ksp, KSP_GPU *k, PetscBool *on, char why[], size_t len)
{
  char          text[256] = "", message[600];
  int           host      = !k->dev->ops->kernels;
  Mat           A;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  *on = PETSC_FALSE;
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
  GPUCSRTry(&attempt, MatGPUCSRRanksGet_Private(A, PETSC_FALSE, &k->ranks.A, text, sizeof(text)));
  if (!text[0]) GPUCSRThen(&attempt, GPUCSRBufferGrow(k->dev, sizeof(double) * GPUKSP_SUMS * (size_t)(1 + k->ranks.size), "sums of a solver", &k->ranks.sums));
  PetscCall(PetscStrncpy(message, attempt.error ? attempt.message : text, sizeof(message)));
  PetscCall(GPUKSPAgree(ksp, attempt.error ? GPUKSPOutcomeOf(k, attempt.error) : text[0] ? GPUKSP_NO_DEVICE : GPUKSP_GOES_ON, attempt.error, message, on, why, len));
  if (*on) k->ranks.way = MatGPUCSRRanksExchange_Private(&k->ranks.A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same after one launch on each was refused. why: the reason for a graph, which is that refusal; without a graph, what both need */
PetscErrorCode GPUKSPRanksGet(KSP ksp, KSP_GPU *k, const char launch[], PetscBool *on, char why[], size_t len)
{
  char      graph[256];
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(Get(ksp, k, on, graph, sizeof(graph)));
  if (*on) {
    PetscCall(PetscStrncpy(why, launch, len));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscStrcmp(graph, launch, &same));
  if (k->path == KSP_GPU_PATH_GRAPH) PetscCall(PetscSNPrintf(why, len, "there are several processes, and %s", graph));
  else PetscCall(PetscSNPrintf(why, len, "there are several processes, and %s%s%s", launch, graph[0] && !same ? "; for a graph, " : "", same ? "" : graph));
  if (k->path == KSP_GPU_PATH_AUTO && k->dev->ops->kernels) {
    PetscCall(PetscStrlcat(why, ": -ksp_type ", len));
    PetscCall(PetscStrlcat(why, k->petsc, len));
    PetscCall(PetscStrlcat(why, " is faster there", len));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Ranks agree on the kind of the PC and on live monitors. A rank may lack the device's data of its neighbours, a factor for example: then PETSc applies the PC on all ranks. If a monitor reads
  every iteration on one rank, all ranks stop for the monitor
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
