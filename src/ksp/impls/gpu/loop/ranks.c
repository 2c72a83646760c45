/*
  Several ranks: agreement before and at the end of a solve, and the graph with the exchange of the matrix. All ranks get the same answers.
*/
#include "../common/gpukspimpl.h"
#include <sched.h>

/*
  Agrees on the outcome of each process' separate work, so that no process waits for a failed process. refused: the reason of this process against the path; empty: none. why: empty if all
  continue, otherwise the message of the first process with the worst outcome. A device with too little memory, or a failed device, is a reason for another path, with -mat_gpucsr_backend cuda an error
*/
PetscErrorCode GPUKSPAgree(KSP ksp, const KSP_GPU *k, const GPUCSRAttempt *attempt, const char refused[], char why[])
{
  enum {
    CONTINUE,
    REFUSED,
    FAILED
  };
  const MPI_Comm  comm    = PetscObjectComm((PetscObject)ksp);
  const PetscBool device  = (PetscBool)((attempt->error == PETSC_ERR_MEM || attempt->error == PETSC_ERR_GPU) && !k->op.required);
  PetscErrorCode  ierr    = attempt->error;
  int             outcome = ierr ? (device ? REFUSED : FAILED) : refused[0] ? REFUSED : CONTINUE;
  PetscMPIInt     rank;

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(why, ierr ? attempt->message : refused, GPUKSP_WHY));
  if (outcome == REFUSED && !why[0]) PetscCall(PetscStrncpy(why, "its device failed without a message", GPUKSP_WHY)); /* an empty text would be success */
  PetscCall(GPUCSRAgree(comm, &outcome, &ierr, why, GPUKSP_WHY, &rank));
  PetscCheck(outcome != FAILED, comm, ierr, "%s", why);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  At the end of a common solve: has any rank met an error? All ranks call this function, with or without an error, but possibly late. So the wait is bounded, and the request of the agreement
  stays alive for late ranks
*/
PetscErrorCode GPUKSPEndAllreduce(KSP ksp, PetscErrorCode ierr, PetscBool *any)
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

/* May several processes solve by a graph, with products and sums by the exchange of the matrix? why: the reason against it, the same on all; empty: none */
PetscErrorCode GPUKSPRanksGet(KSP ksp, KSP_GPU *k, char why[])
{
  char          text[GPUKSP_WHY] = "";
  int           host             = !k->dev->ops->kernels;
  Mat           A;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  if (k->precision != KSP_GPU_DOUBLE) PetscFunctionReturn(PetscStrncpy(why, "residual replacement is for one", GPUKSP_WHY));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &host, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
  if (host && k->path == KSP_GPU_PATH_AUTO) PetscFunctionReturn(PetscStrncpy(why, "the host computes", GPUKSP_WHY));
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  GPUCSRTry(&attempt, MatGPUCSRRanksGet_Private(A, PETSC_FALSE, &k->ranks.A, text, sizeof(text)));
  if (!text[0]) GPUCSRThen(&attempt, GPUCSRBufferGrow(k->dev, sizeof(double) * GPUKSP_SUMS * (size_t)(1 + k->size), "sums of a solver", &k->ranks.sums));
  PetscCall(GPUKSPAgree(ksp, k, &attempt, text, why));
  if (!why[0]) k->ranks.way = MatGPUCSRRanksExchange_Private(&k->ranks.A);
  PetscFunctionReturn(PETSC_SUCCESS);
}
