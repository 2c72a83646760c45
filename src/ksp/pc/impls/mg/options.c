/*
  Options of a PCMG, and the check that all ranks have the same: ranks with different options deadlock.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "cycle.h"

/* Largest number of rows of a dense matrix in the options */
#define MOST_TAIL 8192

/* Numbers compared for a level: its smoothers, and its visits in a cycle */
#define NUMBERS 9

/* Collective: reads and checks the options of a PC after its set-up */
PetscErrorCode GPUMGAsked(PC pc, GPUMGOptions *o)
{
  static const char *const options[] = {"gpucsr", "gpucsr_tail", "type", "levels", "multiplicative_cycles"};
  enum {
    OURS    = 2,
    OPTIONS = sizeof(options) / sizeof(options[0])
  };
  const PC_MG   *mg                                     = (const PC_MG *)pc->data;
  const char    *prefix                                 = ((PetscObject)pc)->prefix ? ((PetscObject)pc)->prefix : "";
  const MPI_Comm comm                                   = PetscObjectComm((PetscObject)pc);
  const PetscInt levels                                 = PetscMin(mg->levels ? mg->nlevels : 0, GPUMG_LEVELS);
  int64_t        mine[OPTIONS + NUMBERS * GPUMG_LEVELS] = {0};
  int            differs;
  PetscMPIInt    size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  *o = (GPUMGOptions){(PetscBool)(size == 1), PETSC_FALSE, (PetscInt)GPUCSRMachineShared.tail_rows};
  PetscCall(PetscOptionsGetBool(((PetscObject)pc)->options, prefix, "-pc_mg_gpucsr", &o->wanted, &o->asked));
  PetscCall(PetscOptionsGetInt(((PetscObject)pc)->options, prefix, "-pc_mg_gpucsr_tail", &o->tail, NULL));
  {
    const int64_t first[OPTIONS] = {(int64_t)o->wanted, o->tail, (int64_t)mg->am, mg->nlevels, mg->cyclesperpcapply};

    PetscCall(PetscArraycpy(mine, first, OPTIONS));
  }
  for (PetscInt l = 0; l < levels; l++) {
    const PC_MG_Levels *p          = mg->levels[l];
    const KSP           smoother[] = {p->smoothd, p->smoothu};
    int64_t            *next       = mine + OPTIONS + NUMBERS * l;

    *next++ = p->cycles;
    for (int up = 0; up < 2; up++) {
      *next++ = GPUCSRNumberOf(((PetscObject)smoother[up])->type_name);
      *next++ = GPUCSRNumberOf(((PetscObject)smoother[up]->pc)->type_name);
      *next++ = smoother[up]->max_it;
      *next++ = (int64_t)smoother[up]->guess_zero;
    }
  }
  PetscCall(GPUCSRSameOnAllRanks(comm, PETSC_STATIC_ARRAY_LENGTH(mine), mine, &differs));
  if (!o->wanted && differs >= OURS) PetscFunctionReturn(PETSC_SUCCESS); /* PETSc's cycles */
  PetscCheck(differs >= OPTIONS, comm, PETSC_ERR_ARG_INCOMP, "-%spc_mg_%s is not the same on all ranks: it must be", prefix, options[differs]);
  PetscCheck(differs == PETSC_STATIC_ARRAY_LENGTH(mine), comm, PETSC_ERR_ARG_INCOMP, "The smoother of level %d is not the same on all ranks: it must be (-%smg_levels_..., -%spc_mg_cycle_type)", (differs - OPTIONS) / NUMBERS, prefix, prefix);
  PetscCheck(o->tail >= 0 && o->tail <= MOST_TAIL, comm, PETSC_ERR_ARG_OUTOFRANGE, "-pc_mg_gpucsr_tail %" PetscInt_FMT ": must be from 0 to %d rows", o->tail, MOST_TAIL);
  PetscFunctionReturn(PETSC_SUCCESS);
}
