/*
  The cycle of a PCGPUAMG's levels, on one rank or on several. There exchanges between devices make a graph of a solver's iteration possible; exchanges through the host, and sums of K-cycles, do not.
*/
#include "gpuamgimpl.h"

/* A: with its transpose if transposed, whose products take the exchange of A in reverse */
static GPUMGMatrix Matrix(const PCGPUAMGMatrix *A, PetscBool transposed)
{
  const GPUMGMatrix m = {.A = A->side[transposed].A, .o = A->side[transposed], .r = A->ranks[transposed], .transposed = (PetscBool)(transposed && A->rows)};

  return m;
}

/* Level k of the hierarchy. finest: the finest matrix of one rank */
static PetscErrorCode Level(PC_GPUAMG *a, int k, const GPUCSROperator *finest, PetscBool transposed, GPUMGCycle *c)
{
  const PetscBool      last = (PetscBool)(k + 1 == c->levels);
  GPUMGLevel          *L    = &c->level[c->levels - 1 - k];
  const PCGPUAMGMatrix A    = PCGPUAMGMatrixOf_Private(a, k, PETSC_FALSE);
  PCGPUAMGMatrix       P;

  PetscFunctionBegin;
  L->cycles = (int)PetscMin(a->used.cycles, 2);
  L->two    = PETSC_FALSE;
  L->A      = finest && !k ? (GPUMGMatrix){.A = finest->A, .o = *finest} : Matrix(&A, transposed);
  if (!last) {
    P    = PCGPUAMGMatrixOf_Private(a, k, PETSC_TRUE);
    L->P = Matrix(&P, PETSC_FALSE);
    L->R = Matrix(&P, PETSC_TRUE);
  }
  if (a->ranks) {
    const GPUAMGRanksLevel *G = &a->ranks->level[k];

    L->n = (int)G->n;
    PCGPUAMGSmoother_Private(a, &G->dinv, &G->smooth, (int)G->bs, G->factor, G->bound, last, &L->down);
  } else {
    const GPUAMGLevel *G = &a->h.level[k];

    L->n = G->n;
    PCGPUAMGSmoother_Private(a, &G->dinv, &G->smooth, G->bs, a->factor[k], G->bound, last, &L->down);
  }
  L->down.transposed = transposed;
  PetscCall(GPUCSRBufferGrow(c->dev, GPUMGCycleVectorBytes(c, c->levels - 1 - k), "vectors of a multigrid level", &L->memory));
  GPUMGCycleVectors(c, c->levels - 1 - k);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes the cycle of the hierarchy or of its transpose. finest: the finest matrix of one rank */
PetscErrorCode PCGPUAMGCycleFill_Private(PC pc, const GPUCSROperator *finest, PetscBool transposed, GPUMGCycle *c)
{
  PC_GPUAMG           *a     = (PC_GPUAMG *)pc->data;
  const PCGPUAMGLevels of    = PCGPUAMGLevelsOf_Private(pc);
  PetscBool            known = PETSC_FALSE, symmetric = PETSC_FALSE;
  GPUMGKrylovMethod    krylov;

  PetscFunctionBegin;
  if (c->dev) PetscCall(GPUMGCycleForget(c));
  c->dev    = of.dev;
  c->type   = PC_MG_MULTIPLICATIVE;
  c->levels = of.levels;
  c->cycles = 1;
  c->floats = PETSC_FALSE;
  c->exact  = (PetscBool)a->h.exact;
  c->comm   = PetscObjectComm((PetscObject)pc);
  PetscCallMPI(MPI_Comm_size(c->comm, &c->size));
  if (c->exact) c->inverse = (GPUCSRBuffer){transposed ? a->h.inverseT.p : a->h.inverse.p, 0}; /* 0 bytes: the hierarchy's, which counts them */
  for (int k = 0; k < c->levels; k++) PetscCall(Level(a, k, finest, transposed, c));
  PetscCall(MatIsSymmetricKnown(finest ? finest->A : a->matrix.A, &known, &symmetric));
  krylov = a->used.cycles < GPUAMG_K ? GPUMG_KRYLOV_NONE : known && symmetric ? GPUMG_KRYLOV_CG : GPUMG_KRYLOV_GCR;
  if (!a->ranks) PetscCall(GPUMGTailMake(c, a->used.tail));
  c->krylov = krylov;
  if (a->ranks && a->ranks->small) { /* the solve of the small level on each rank */
    const GPUAMGRanksLevel *G = &a->ranks->level[a->ranks->levels - 1];
    PetscInt                version;

    if (transposed) PetscCall(PCGPUAMGTransposedCycle_Private(a->ranks->one, &c->small));
    else PetscCall(PCGPUAMGCycleGet_Private(a->ranks->one, &c->small, &version));
    PetscCheck(c->small && c->small->dev == c->dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "The small levels of PC type gpuamg are not on the device of its matrix");
    c->gather      = (GPUMGMatrix){.A = a->ranks->gather.o.A, .o = a->ranks->gather.o, .r = a->ranks->gather.r};
    c->coarserows  = (int)G->N;
    c->coarsefirst = (int)G->rows->rstart;
    PetscCall(GPUCSRBufferGrow(c->dev, 2 * sizeof(double) * (size_t)G->N, "vectors of a coarse operator", &c->coarsevectors));
    if (!c->krylov) c->level[0].x = (double *)c->coarsevectors.p + c->coarserows + c->coarsefirst;
  }
  PetscCall(GPUMGCycleKrylov(c, krylov));
  /* does the host take part in the exchanges of an application? Where peers are not asked for, one exchange may have them and another none */
  if (a->ranks) {
    PetscBool hosted = (PetscBool)(c->krylov || (a->ranks->small && !MatGPUCSRRanksRecordable_Private(&a->ranks->gather.r)));

    for (int l = 0; l < c->levels; l++) {
      const GPUMGLevel *L = &c->level[l];

      if (!MatGPUCSRRanksRecordable_Private(&L->A.r) || (L->P.r.halo && !MatGPUCSRRanksRecordable_Private(&L->P.r))) hosted = PETSC_TRUE;
    }
    c->host = hosted;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the PC need a flexible method? */
PetscErrorCode PCGPUAMGFlexible_Private(PC pc, PetscBool *flexible)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCGPUAMG, flexible));
  if (*flexible) *flexible = (PetscBool)(((PC_GPUAMG *)pc->data)->used.cycles == GPUAMG_K);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before each solve. Warns once if a method assumes a linear preconditioner and this is a K-cycle: its residual norms are wrong */
PetscErrorCode PCGPUAMGPreSolve_Private(PC pc, KSP ksp, Vec b, Vec x)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;
  PetscBool  flexible, floats = PETSC_FALSE, same, right;

  PetscFunctionBegin;
  (void)b;
  (void)x;
  /* floats serve if residual and solution take the same results of the preconditioner. A method without norms is a part of another method, which is not known here */
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &same, KSPCG, KSPGPUCG, KSPFCG, KSPFGMRES, KSPGCR, KSPFBCGS, ""));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPGPUBCGS, &right));
  floats = (PetscBool)(ksp->normtype != KSP_NORM_NONE && (same || (right && ksp->pc_side == PC_RIGHT)));
  PetscCall(PCGPUAMGFloats_Private(pc, floats));
  if (a->used.cycles < GPUAMG_K || a->warned) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &flexible, KSPGPUCG, KSPGPUFGMRES, KSPFCG, KSPPIPEFCG, KSPFGMRES, KSPPIPEFGMRES, KSPGCR, KSPPIPEGCR, KSPFBCGS, KSPRICHARDSON, KSPPREONLY, ""));
  a->warned = (PetscBool)!flexible;
  if (a->warned)
    PetscCall(PetscFPrintf(PetscObjectComm((PetscObject)pc), PETSC_STDERR, "PC type gpuamg warning: K-cycles are not linear, and KSP type %s may report convergence that the true residual does not have: take gpucg, gpufgmres, fcg, fgmres or gcr\n",
                           ((PetscObject)ksp)->type_name));
  PetscFunctionReturn(PETSC_SUCCESS);
}
