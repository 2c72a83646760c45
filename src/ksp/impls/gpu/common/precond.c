/*
  Preconditioners that the solvers apply without PETSc: each is a row of the list below. A diagonal or blocks are read once, by applying the PC to unit vectors, and kept until the PC or its
  matrix changes.

  Other preconditioners that the device applies (a multigrid cycle, triangular solves) are rows of kind GPUKSP_PC_BETWEEN_STEPS with their own apply(), which graphs record.
*/
#include "gpukspimpl.h"
#include "../../../pc/impls/blocks/pcblocks.h"
#include "../../../pc/impls/mg/cycle.h"
#include "../../../pc/impls/gpuamg/gpuamg.h"

/* Largest block size in a step */
#define LARGEST_BLOCK 8

static PetscErrorCode AcceptJacobi(PC pc, PetscInt *bs, PetscInt *variant, PetscBool *yes)
{
  PCJacobiType type;
  PetscBool    positive, fix = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PCJacobiGetType(pc, &type));
  PetscCall(PCJacobiGetUseAbs(pc, &positive));
  PetscCall(PCJacobiGetFixDiagonal(pc, &fix));
  *variant = 4 * (PetscInt)type + 2 * (PetscInt)fix + (PetscInt)positive;
  *yes     = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AcceptBlocks(PC pc, PetscInt *bs, PetscInt *variant, PetscBool *yes)
{
  Mat      P;
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, NULL, &P));
  PetscCall(MatGetBlockSize(P, bs));
  PetscCall(MatGetLocalSize(P, &n, NULL));
  *variant = *bs;
  *yes     = (PetscBool)(n % *bs == 0 && *bs <= LARGEST_BLOCK);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakeNumbers(KSP ksp, KSP_GPU *k)
{
  PetscFunctionBegin;
  if (k->pc.row->kind == GPUKSP_PC_DIAGONAL) PetscCall(GPUMGPCDiagonal(&k->op, ksp, (double *)k->pc.numbers.p));
  else PetscCall(GPUMGPCColumns(k->dev, ksp, k->n, k->pc.bs, (double *)k->pc.numbers.p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyBlocks(KSP_GPU *k, const double *r, double *z, PetscBool rule)
{
  GPUKSPVectors v = k->persistent.v;

  v.from = r;
  v.to   = z;
  return GPUKSPStepRun(NULL, k, GPUKSP_PRECONDITION, &v, rule ? GPUKSP_STEP_RULE : GPUKSP_STEP_ALWAYS);
}

static PetscErrorCode CycleOf(PC pc, GPUMGCycle **c, PetscInt *version)
{
  PetscBool amg;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCGPUAMG, &amg));
  PetscCall(amg ? PCGPUAMGCycleGet_Private(pc, c, version) : PCMGCycleGet_Private(pc, c, version));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A multigrid cycle with all levels on the device of the solve */
static PetscErrorCode AcceptCycle(PC pc, PetscInt *bs, PetscInt *variant, PetscBool *yes)
{
  GPUMGCycle *c;

  PetscFunctionBegin;
  PetscCall(CycleOf(pc, &c, variant));
  *yes = (PetscBool)(c != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakeCycle(KSP ksp, KSP_GPU *k)
{
  PetscInt version;

  PetscFunctionBegin;
  PetscCall(CycleOf(ksp->pc, &k->pc.cycle, &version));
  PetscCheck(k->pc.cycle && k->pc.cycle->dev == k->dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "The levels of PC type %s have left the device", ((PetscObject)ksp->pc)->type_name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyCycle(KSP_GPU *k, const double *r, double *z, PetscBool rule)
{
  const GPUCSRSums sums = {PETSC_TRUE, r, NULL, NULL, (double *)k->graph.parts.p, &k->graph.nparts};

  return GPUMGCycleRun(k->pc.cycle, r, z, k->graph.normed ? &sums : NULL);
}

static PetscErrorCode AcceptFactor(PC pc, PetscInt *bs, PetscInt *variant, PetscBool *yes)
{
  Mat          F, P;
  GPUCSRDevice dev;
  PetscInt     n;

  PetscFunctionBegin;
  PetscCall(PCFactorOf_Private(pc, &F));
  PetscCall(PCGetOperators(pc, NULL, &P));
  PetscCall(MatGetLocalSize(P, &n, NULL));
  PetscCall(MatGPUCSRFactorDevice_Private(F, &dev));
  *yes     = (PetscBool)(dev != NULL || !n); /* a rank without rows has no device and no solve */
  *variant = F && n ? (PetscInt)((PetscObject)F)->id : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakeFactor(KSP ksp, KSP_GPU *k)
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  k->pc.factor = NULL;
  if (!k->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCFactorOf_Private(ksp->pc, &k->pc.factor));
  PetscCall(MatGPUCSRFactorDevice_Private(k->pc.factor, &dev));
  PetscCheck(dev == k->dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "The factor of PC type %s is on another device than the matrix", ((PetscObject)ksp->pc)->type_name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyFactor(KSP_GPU *k, const double *r, double *z, PetscBool rule)
{
  PetscFunctionBegin;
  if (k->pc.factor) PetscCall(MatGPUCSRFactorSolveArrays_Private(k->pc.factor, r, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool IsCycle(const KSP_GPU *k)
{
  return (PetscBool)(k->pc.kind == GPUKSP_PC_BETWEEN_STEPS && k->pc.row->apply == ApplyCycle && k->pc.cycle);
}

/* Have all applications of the preconditioner between steps succeeded? */
PetscErrorCode GPUKSPPCCheck(KSP_GPU *k)
{
  PetscFunctionBegin;
  if (k->pc.kind == GPUKSP_PC_BETWEEN_STEPS && k->pc.row->apply == ApplyFactor && k->pc.factor) PetscCall(MatGPUCSRFactorCheck_Private(k->pc.factor));
  if (IsCycle(k)) {
    PetscCall(GPUMGRanksCheck(k->pc.cycle));
    PetscCall(GPUMGCycleCheck(k->pc.cycle));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve of several ranks begins or has ended: a preconditioner with exchanges takes part */
PetscErrorCode GPUKSPPCSolving(KSP_GPU *k, PetscBool begins)
{
  return IsCycle(k) ? GPUMGRanksSolving(k->pc.cycle, begins) : PETSC_SUCCESS;
}

/* This rank goes no further */
PetscErrorCode GPUKSPPCFail(KSP_GPU *k, const char message[])
{
  return IsCycle(k) ? GPUMGRanksFail(k->pc.cycle, message) : PETSC_SUCCESS;
}

/* type, place in an iteration, rows, lasting, accept(), make(), apply() (see GPUKSPPC). The first row that accepts the PC serves */
static const GPUKSPPC list[] = {
  {PCNONE,     GPUKSP_PC_NONE,          PETSC_TRUE,  PETSC_TRUE,  NULL,         NULL,        NULL       },
  {PCJACOBI,   GPUKSP_PC_DIAGONAL,      PETSC_TRUE,  PETSC_TRUE,  AcceptJacobi, MakeNumbers, NULL       },
  {PCPBJACOBI, GPUKSP_PC_BETWEEN_STEPS, PETSC_TRUE,  PETSC_TRUE,  AcceptBlocks, MakeNumbers, ApplyBlocks},
  {PCMG,       GPUKSP_PC_BETWEEN_STEPS, PETSC_FALSE, PETSC_TRUE,  AcceptCycle,  MakeCycle,   ApplyCycle },
  {PCGAMG,     GPUKSP_PC_BETWEEN_STEPS, PETSC_FALSE, PETSC_TRUE,  AcceptCycle,  MakeCycle,   ApplyCycle },
  {PCGPUAMG,   GPUKSP_PC_BETWEEN_STEPS, PETSC_FALSE, PETSC_TRUE,  AcceptCycle,  MakeCycle,   ApplyCycle },
  {PCILU,      GPUKSP_PC_BETWEEN_STEPS, PETSC_FALSE, PETSC_FALSE, AcceptFactor, MakeFactor,  ApplyFactor},
  {PCICC,      GPUKSP_PC_BETWEEN_STEPS, PETSC_FALSE, PETSC_FALSE, AcceptFactor, MakeFactor,  ApplyFactor},
  {PCLU,       GPUKSP_PC_BETWEEN_STEPS, PETSC_FALSE, PETSC_FALSE, AcceptFactor, MakeFactor,  ApplyFactor},
  {PCCHOLESKY, GPUKSP_PC_BETWEEN_STEPS, PETSC_FALSE, PETSC_FALSE, AcceptFactor, MakeFactor,  ApplyFactor},
  {PCBJACOBI,  GPUKSP_PC_BETWEEN_STEPS, PETSC_FALSE, PETSC_FALSE, AcceptFactor, MakeFactor,  ApplyFactor},
  {PCASM,      GPUKSP_PC_BETWEEN_STEPS, PETSC_FALSE, PETSC_FALSE, AcceptFactor, MakeFactor,  ApplyFactor},
};
static const GPUKSPPC any = {NULL, GPUKSP_PC_BY_PCAPPLY, PETSC_FALSE, PETSC_FALSE, NULL, NULL, NULL};

/*
  Collective, for a norm that is NaN or Inf: ends the solve like PETSc's methods, with the reason, and with an error if the user asked for errors. If the PC has failed on any rank, all entries of
  the solution become NaN or Inf, so a program sees the failure
*/
PetscErrorCode GPUKSPCheckNorm(KSP ksp, PetscReal norm)
{
  PetscFunctionBegin;
  KSPCheckNorm(ksp, norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Finds the row of this solve's PC */
PetscErrorCode GPUKSPPCFind(KSP ksp, KSP_GPU *k)
{
  PetscBool yes;

  PetscFunctionBegin;
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(list); q++) {
    k->pc.bs = k->pc.variant = 0;
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, list[q].type, &yes));
    if (yes && list[q].accept) PetscCall((*list[q].accept)(ksp->pc, &k->pc.bs, &k->pc.variant, &yes));
    if (!yes) continue;
    k->pc.row  = &list[q];
    k->pc.kind = list[q].kind;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  k->pc.row  = &any;
  k->pc.kind = GPUKSP_PC_BY_PCAPPLY;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If PETSc reuses the PC, its values may be older than the matrix: they are of its state at the last set-up, or of another matrix (-1), and not known then */
static PetscErrorCode Key(KSP ksp, KSP_GPU *k, GPUKSPKey *key)
{
  static PetscInt64 unknown = 0;
  Mat               P;
  PetscObjectState  state = ksp->pc->matstate;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, NULL, &P));
  if (state < 0) state = --unknown;
  *key = GPUKSPKeyOf(((PetscObject)ksp->pc)->id, ((PetscObject)ksp->pc)->state, ((PetscObject)P)->id, state, k->pc.variant, GPUKSPAddress(k->pc.row));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the solve apply numbers of its own? */
static PetscBool HasNumbers(const KSP_GPU *k)
{
  return (PetscBool)(k->pc.row->rows && k->pc.row->make && k->pc.kind != GPUKSP_PC_BY_PCAPPLY);
}

/*
  Memory for the numbers, with room for halo rows, each process by itself. Never 0: with any numbers a kernel synchronises the ranks more often, and all ranks must agree. stale: GPUKSPPCMake() makes
  the numbers anew, which is collective
*/
PetscErrorCode GPUKSPPCReserve(KSP ksp, KSP_GPU *k, PetscBool *stale)
{
  const size_t bytes = sizeof(double) * PetscMax(PetscMax(1, (size_t)k->n * (size_t)(k->pc.row->kind == GPUKSP_PC_BETWEEN_STEPS ? k->pc.bs : 1)), GPUKSPLength(k));
  GPUKSPKey    key;

  PetscFunctionBegin;
  *stale = PETSC_FALSE;
  if (!HasNumbers(k)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Key(ksp, k, &key));
  *stale = (PetscBool)(k->pc.numbers.bytes < bytes || !GPUKSPSame(key, k->keys.numbers));
  if (*stale) PetscCall(PetscMemzero(&k->keys.numbers, sizeof(k->keys.numbers)));
  PetscCall(GPUCSRBufferGrow(k->dev, bytes, "the preconditioner of a solver", &k->pc.numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The data to apply the PC on the device */
PetscErrorCode GPUKSPPCMake(KSP ksp, KSP_GPU *k)
{
  const PetscBool numbers = HasNumbers(k);
  GPUKSPKey       key;

  PetscFunctionBegin;
  if (!k->pc.row->make || k->pc.kind == GPUKSP_PC_BY_PCAPPLY) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Key(ksp, k, &key));
  if (numbers && GPUKSPSame(key, k->keys.numbers)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(&k->keys.numbers, sizeof(k->keys.numbers))); /* until the new ones are there */
  PetscCall((*k->pc.row->make)(ksp, k));
  if (numbers) k->keys.numbers = key;
  k->pc.nnumbers++;
  PetscFunctionReturn(PETSC_SUCCESS);
}
