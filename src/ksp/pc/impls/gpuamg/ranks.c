/*
  PCGPUAMG of several ranks. Each device aggregates the diagonal block of its rank (blackbox/amg), so the tentative prolongator is block diagonal. Its smoothing steps and the Galerkin product are
  products of matrices of all ranks (sparse/mpisparse.c). A PCMG holds the levels, and its cycles run on the devices (../mg). Each rank holds the whole of the first small level, with a hierarchy of
  one process. An application exchanges the right-hand side of this level once; a smaller group of ranks would also send the solution back.
*/
#include "gpuamgimpl.h"
#include "../../../../mat/impls/gpucsr/blackbox/amg/rows.h"

typedef GPUAMGRanksLevel Level;

/* Collective: the first error of any rank is an error on all */
PetscErrorCode PCGPUAMGSettle_Private(MPI_Comm comm, GPUCSRAttempt *a)
{
  char        text[sizeof(a->message) + 32];
  int         weight = a->error ? 1 : 0;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s (met by rank %d)", a->error ? a->message : "", (int)rank));
  PetscCall(GPUCSRAgree(comm, &weight, &a->error, text, sizeof(text), &rank));
  PetscCheck(!a->error, comm, a->error, "%s", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does each rank take all of level l, of N rows? */
static PetscBool Gathers(PC pc, int l, PetscInt N)
{
  const PC_GPUAMG *a    = (const PC_GPUAMG *)pc->data;
  PetscMPIInt      size = 1;

  if (a->gathers || N <= a->used.o.limit || (l && N <= a->used.gather)) return PETSC_TRUE;
  return (PetscBool)(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size) || (double)N < (double)a->used.least * size);
}

/* ---- values of a level ---- */

/* Flags of GPUAMGFlag of the rank's rows; a row without a diagonal entry gets 1 */
static PetscErrorCode Reciprocals(const Level *L, int *problem)
{
  PetscScalar *d;
  PetscInt     first;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(L->A, &first, NULL));
  PetscCall(MatGetDiagonal(L->A, L->dinv));
  PetscCall(VecGetArray(L->dinv, &d));
  for (PetscInt i = 0; i < L->n; i++) {
    const PetscScalar *row;
    PetscInt           n;

    if (PetscIsInfOrNanScalar(d[i])) *problem |= GPUAMG_NAN;
    if (PetscRealPart(d[i]) < 0) *problem |= GPUAMG_NEGATIVE;
    if (d[i] != 0.0) {
      d[i] = 1.0 / d[i];
      continue;
    }
    d[i] = 1.0;
    PetscCall(MatGetRow(L->A, first + i, &n, NULL, &row));
    for (PetscInt k = 0; k < n; k++)
      if (row[k] != 0.0) *problem |= GPUAMG_ZERO;
    PetscCall(MatRestoreRow(L->A, first + i, &n, NULL, &row));
  }
  PetscCall(VecRestoreArray(L->dinv, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arnoldi's method as on one process, from the same numbers: an estimate of the largest eigenvalue of D^-1 A */
static PetscErrorCode Largest(Level *L, int most)
{
  const int   steps                                = (int)PetscMin(most, L->N);
  double      H[GPUAMG_STEPS * (GPUAMG_STEPS + 1)] = {0};
  PetscScalar h[GPUAMG_STEPS + 1], *a;
  PetscReal   norm = 1;
  PetscInt    first;
  Vec        *V;

  PetscFunctionBegin;
  PetscCall(VecDuplicateVecs(L->dinv, steps + 1, &V));
  PetscCall(VecGetOwnershipRange(V[0], &first, NULL));
  PetscCall(VecGetArrayWrite(V[0], &a));
  for (PetscInt i = 0; i < L->n; i++) a[i] = GPUAMGStart((uint32_t)(first + i));
  PetscCall(VecRestoreArrayWrite(V[0], &a));
  PetscCall(VecNormalize(V[0], NULL));
  for (int k = 0; k < steps && norm > 0; k++) {
    PetscCall(MatMult(L->A, V[k], V[k + 1]));
    PetscCall(VecPointwiseMult(V[k + 1], L->dinv, V[k + 1]));
    PetscCall(VecMDot(V[k + 1], k + 1, V, h));
    for (int j = 0; j <= k; j++) {
      H[k * (GPUAMG_STEPS + 1) + j] = (double)PetscRealPart(h[j]);
      h[j]                          = -h[j];
    }
    PetscCall(VecMAXPY(V[k + 1], k + 1, h, V));
    PetscCall(VecNorm(V[k + 1], NORM_2, &norm));
    H[k * (GPUAMG_STEPS + 1) + k + 1] = (double)norm;
    if (norm > 0) PetscCall(VecScale(V[k + 1], 1 / norm));
  }
  PetscCall(VecDestroyVecs(steps + 1, &V));
  L->lambda = GPUAMGRadius(steps, H, GPUAMG_STEPS + 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector on the device */
static PetscErrorCode Diagonal(Mat A, Vec *v)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PetscObjectComm((PetscObject)A), v));
  PetscCall(VecSetSizes(*v, A->rmap->n, A->rmap->N));
  PetscCall(VecSetType(*v, VECGPU));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does each row of the diagonal block have its diagonal entry? */
static PetscErrorCode Complete(Mat A, PetscBool *complete)
{
  const PetscInt *i, *j;
  PetscInt        at = 0;
  Mat             D;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &D, NULL, NULL));
  PetscCall(MatSeqAIJGetCSRAndMemType(D, &i, &j, NULL, NULL));
  for (PetscInt r = 0; r < D->rmap->n && at >= 0; r++) PetscCall(PetscFindInt(r, i[r + 1] - i[r], j + i[r], &at));
  *complete = (PetscBool)(at >= 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: diagonal and largest eigenvalue of level l */
static PetscErrorCode Values(PC_GPUAMG *a, int l)
{
  Level         *L        = &a->ranks->level[l];
  const MPI_Comm comm     = PetscObjectComm((PetscObject)L->A);
  int            flag[2]  = {0, 0}; /* problems; rows without a diagonal entry */
  PetscBool      complete = L->whole;

  PetscFunctionBegin;
  if (!L->dinv) PetscCall(Diagonal(L->A, &L->dinv));
  PetscCall(Reciprocals(L, &flag[0]));
  if (!complete) PetscCall(Complete(L->A, &complete));
  flag[1] = !complete;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, flag, 2, MPI_INT, MPI_BOR, comm));
  L->whole     = (PetscBool)!flag[1];
  a->h.at      = l;
  a->h.problem = flag[0] & ~(GPUAMG_NEGATIVE | (l ? GPUAMG_ZERO : 0)); /* a coarse row is smoothed as if it had 1 there */
  if (!l) a->h.negative = (GPUCSRBool)((flag[0] & GPUAMG_NEGATIVE) != 0);
  if (a->h.problem) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Largest(L, a->used.o.steps));
  if (!(L->lambda >= 0 && L->lambda < 1e300)) a->h.problem = GPUAMG_NAN;
  else if (L->lambda == 0) L->lambda = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the next level ---- */

/* Collective: the steps P = (I - omega D^-1 F) P of the prolongator. F: the level's matrix, or without its small entries */
static PetscErrorCode Smoothed(const PC_GPUAMG *a, Level *L, Mat F, MatReuse reuse)
{
  PetscFunctionBegin;
  for (int k = 1; k <= a->used.o.nsmooths; k++) {
    PetscCall(MatMatMult(F, L->P[k - 1], reuse, PETSC_DEFAULT, &L->P[k]));
    PetscCall(MatDiagonalScale(L->P[k], L->dinv, NULL));
    PetscCall(MatAYPX(L->P[k], (PetscScalar)(-a->used.o.damping / L->lambda), L->P[k - 1], L->whole ? SUBSET_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
    if (F != L->A) PetscCall(MatProductClear(L->P[k])); /* new values are a new set-up */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the prolongator, and the Galerkin product. again: of new values */
static PetscErrorCode Products(const PC_GPUAMG *a, Level *L, PetscBool again, PetscBool keep)
{
  const MatReuse reuse = again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;
  Mat            F     = L->A;

  PetscFunctionBegin;
  if (!again && a->ranks->weak && a->used.o.nsmooths) PetscCall(PCGPUAMGFilter_Private(L->A, L->dinv, L->near, &F));
  if (!again || !keep) PetscCall(Smoothed(a, L, F, reuse));
  if (F != L->A) PetscCall(MatDestroy(&F));
  PetscCall(MatPtAP(L->A, L->P[a->used.o.nsmooths], reuse, PETSC_DEFAULT, &L[1].A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. The device also multiplies small matrices: PETSc adds entries of other ranks in the order of their arrival */
static PetscErrorCode Coarse(const PC_GPUAMG *a, Level *L, PetscBool again, PetscBool keep)
{
  PetscInt       least = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRProductLeast_Private(L->A, &least));
  ierr = Products(a, L, again, keep);
  PetscCall(MatGPUCSRProductLeast_Private(L->A, &least));
  PetscCall(ierr);
  if (L[1].dead) PetscCall(MatDiagonalSet(L[1].A, L[1].dead, ADD_VALUES));
  if (!again) PetscCall(MatSetBlockSize(L[1].A, L[1].bs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the data of the next level */
static PetscErrorCode Next(Level *L, PCGPUAMGTentative *t)
{
  Level   *C = &L[1];
  PetscInt first, dead = 0;

  PetscFunctionBegin;
  PetscCall(PCGPUAMGTentativeMatrix_Private(L->A, t, &L->P[0]));
  C->n  = t->columns;
  C->bs = C->ns = L->ns;
  C->near       = t->near;
  t->near       = NULL;
  for (PetscInt i = 0; i < C->n; i++) dead += C->ns > 1 && t->dead[i];
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &dead, 1, MPIU_INT, MPI_SUM, PetscObjectComm((PetscObject)L->A)));
  if (!dead) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateVecs(L->P[0], &C->dead, NULL));
  PetscCall(VecGetOwnershipRange(C->dead, &first, NULL));
  for (PetscInt i = 0; i < C->n; i++) PetscCall(VecSetValue(C->dead, first + i, t->dead[i] ? 1.0 : 0.0, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(C->dead));
  PetscCall(VecAssemblyEnd(C->dead));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the set-up look for weak entries? */
static PetscBool Asks(const PC_GPUAMG *a)
{
  return (PetscBool)(a->used.o.drop == GPUAMG_ASK && a->ranks->level[0].bs == 1 && a->ranks->level[0].ns == 1);
}

static PetscErrorCode Aggregates(const Level *L, const GPUAMGOptions *o, PCGPUAMGTentative *t)
{
  double        *beyond = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (o->drop == GPUAMG_ALWAYS && o->level == 0) PetscCall(PCGPUAMGBeyond_Private(L->A, L->dinv, &beyond));
  ierr = PCGPUAMGTentativeMake_Private(L->A, o, L->ns, L->near, beyond, t);
  PetscCall(PetscFree(beyond));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: makes levels until a small level, or until coarsening stops; *last: coarsening has stopped */
static PetscErrorCode Build(PC pc, PetscBool *last)
{
  PC_GPUAMG   *a = (PC_GPUAMG *)pc->data;
  GPUAMGRanks *r = a->ranks;

  PetscFunctionBegin;
  *last = PETSC_TRUE;
  for (int l = 0; l < GPUAMG_LEVELS; l++) {
    Level            *L       = &r->level[l];
    PCGPUAMGTentative t       = {0};
    GPUAMGOptions     options = a->used.o;
    GPUCSRAttempt     attempt;

    r->levels = l + 1;
    PetscCall(MatGetSize(L->A, &L->N, NULL));
    PetscCall(Values(a, l));
    *last = (PetscBool)!Gathers(pc, l, L->N);
    if (a->h.problem || !*last || l + 1 >= a->used.o.levels) break;
    if (!l && Asks(a)) PetscCall(PCGPUAMGWeak_Private(L->A, &r->weak));
    PCGPUAMGOptionsAt_Private(a, l, &options);
    options.drop = r->weak ? GPUAMG_ALWAYS : GPUAMG_NEVER;
    GPUCSRTry(&attempt, Aggregates(L, &options, &t));
    PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
    PetscCall(PCGPUAMGTentativeColumns_Private(L->A, &t, &L[1].N));
    if (L[1].N) PetscCall(Next(L, &t));
    PetscCall(PCGPUAMGTentativeDestroy_Private(&t));
    if (!L[1].N) break;
    PetscCall(Coarse(a, L, PETSC_FALSE, PETSC_FALSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- cycles ---- */

#define COARSE_STEPS 16 /* of the smoother on the coarsest level */

/* The PC of a level's smoother. ILU of several ranks is PETSc's block Jacobi, with a block a rank */
static PetscErrorCode SmootherType(const char type[], PetscBool ilu, PetscBool sizes, PC pc)
{
  PetscEnum rowl1;
  PetscBool known;

  PetscFunctionBegin;
  PetscCall(PCSetType(pc, ilu ? PCBJACOBI : type));
  if (ilu) pc->setfromoptionscalled++; /* the blocks read their options */
  if (!sizes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscEnumFind(PCJacobiTypes, "rowl1", &rowl1, &known));
  PetscCheck(known, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "PC type gpuamg needs a PETSc with -pc_jacobi_type rowl1 for -pc_gpuamg_smoother rowl1 on levels of several ranks: take jacobi or pbjacobi");
  PetscCall(PCJacobiSetType(pc, (PCJacobiType)rowl1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: a zero pivot in the block of one rank is a problem on all ranks */
static PetscErrorCode Factors(PC_GPUAMG *a, PC pc)
{
  PCFailedReason why;
  int            weight;
  PetscMPIInt    rank;

  PetscFunctionBegin;
  PetscCall(PCSetUp(pc));
  PetscCall(PCSetUpOnBlocks(pc));
  PetscCall(PCGetFailedReason(pc, &why));
  weight = why != PC_NOERROR;
  PetscCall(GPUCSRAgree(PetscObjectComm((PetscObject)pc), &weight, NULL, NULL, 0, &rank));
  if (weight) a->h.problem = GPUAMG_PIVOT;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Jacobi's eigenvalues give Chebyshev's bounds. PETSc estimates bounds for another preconditioner, and options may set bounds. PETSc would read the type ilu from the options again */
static PetscErrorCode Smoother(PC_GPUAMG *a, int l, PetscBool solves, PetscBool first, KSP ksp)
{
  const Level *L       = &a->ranks->level[l];
  PetscOptions options = ((PetscObject)ksp)->options;
  PetscInt     steps   = solves ? COARSE_STEPS : a->used.degree;
  const char  *prefix;
  char         type[64];
  PetscBool    chebyshev, bounds, estimate, ilu, jacobi, sizes;
  PC           pc;

  PetscFunctionBegin;
  PetscCall(KSPGetOptionsPrefix(ksp, &prefix));
  PetscCall(PetscOptionsHasName(options, prefix, "-ksp_chebyshev_eigenvalues", &bounds));
  PetscCall(PetscOptionsHasName(options, prefix, "-ksp_chebyshev_esteig", &estimate));
  PetscCall(PetscOptionsGetInt(options, prefix, "-ksp_max_it", &steps, NULL));
  PetscCall(PetscStrncpy(type, a->used.o.smoother == GPUAMG_BY_FACTOR ? PCILU : a->used.o.smoother == GPUAMG_BY_BLOCKS && L->bs > 1 ? PCPBJACOBI : PCJACOBI, sizeof(type))); /* blocks of one row are Jacobi's */
  PetscCall(PetscOptionsGetString(options, prefix, "-pc_type", type, sizeof(type), NULL));
  PetscCall(PetscStrcmp(type, PCILU, &ilu));
  PetscCall(PetscStrcmp(type, PCJACOBI, &jacobi));
  sizes = (PetscBool)(jacobi && a->used.o.smoother == GPUAMG_BY_SIZES);
  PetscCall(KSPSetOperators(ksp, L->A, L->A));
  PetscCall(KSPGetPC(ksp, &pc));
  if (first) {
    PetscCall(KSPSetType(ksp, KSPCHEBYSHEV));
    PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
    PetscCall(SmootherType(type, ilu, sizes, pc));
    PetscCall(KSPSetSkipPCSetFromOptions(ksp, ilu));
  }
  PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, steps));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPCHEBYSHEV, &chebyshev));
  if (chebyshev && jacobi && !sizes && (first || !(bounds || estimate))) PetscCall(KSPChebyshevSetEigenvalues(ksp, 1.1 * L->lambda, 0.1 * L->lambda));
  a->h.at = l;
  if (ilu) PetscCall(Factors(a, pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the levels as a PCMG. last: the coarsest is not small */
static PetscErrorCode Cycles(PC pc, PetscBool last)
{
  PC_GPUAMG      *a     = (PC_GPUAMG *)pc->data;
  GPUAMGRanks    *r     = a->ranks;
  const PetscBool first = (PetscBool)!r->mg;
  const Level    *C     = &r->level[r->levels - 1];
  const char     *prefix;
  int             reason;
  PetscMPIInt     rank;
  PC              coarse;
  KSP             ksp;

  PetscFunctionBegin;
  for (int l = 0; l < r->levels - (last ? 0 : 1) && a->used.o.smoother == GPUAMG_BY_FACTOR; l++) {
    a->h.at = l;
    if (!r->level[l].whole) a->h.problem = GPUAMG_PIVOT;
    if (a->h.problem) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (first) {
    PetscCall(PCGetOptionsPrefix(pc, &prefix));
    PetscCall(PCCreate(PetscObjectComm((PetscObject)pc), &r->mg));
    PetscCall(PCSetOptionsPrefix(r->mg, prefix));
    PetscCall(PCSetType(r->mg, PCMG));
    PetscCall(PCMGWanted_Private(r->mg));
    PetscCall(PCMGSetLevels(r->mg, r->levels, NULL));
    PetscCall(PCMGSetGalerkin(r->mg, PC_MG_GALERKIN_NONE));
    if (a->used.cycles == 2) PetscCall(PCMGSetCycleType(r->mg, PC_MG_CYCLE_W));
  }
  PetscCall(PCSetOperators(r->mg, r->level[0].A, r->level[0].A));
  for (int l = 0; l + 1 < r->levels; l++) {
    const PetscInt at = r->levels - 1 - l;

    PetscCall(PCMGGetSmoother(r->mg, at, &ksp));
    PetscCall(Smoother(a, l, PETSC_FALSE, first, ksp));
    if (a->h.problem) PetscFunctionReturn(PETSC_SUCCESS);
    if (first) PetscCall(PCMGSetInterpolation(r->mg, at, r->level[l].P[a->used.o.nsmooths]));
  }
  PetscCall(PCMGGetCoarseSolve(r->mg, &ksp));
  if (last) PetscCall(Smoother(a, r->levels - 1, PETSC_TRUE, first, ksp));
  else {
    PetscCall(KSPSetOperators(ksp, C->A, C->A));
    PetscCall(KSPGetPC(ksp, &coarse));
    if (first) {
      PetscCall(KSPSetType(ksp, KSPPREONLY));
      PetscCall(PCSetType(coarse, PCGPUAMG));
      PetscCall(PCGPUAMGInherit_Private(a, r->levels - 1, C->ns, C->near, coarse));
    }
    ((PC_GPUAMG *)coarse->data)->reuse = a->reuse;
  }
  if (a->h.problem) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGPUAMGKrylovMethod_Private(a, r->level[0].A, &r->krylov));
  if (r->krylov == GPUMG_KRYLOV_CG) PetscCall(MatSetOption(C->A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(PCSetUp(r->mg));
  if (r->krylov) PetscCall(PCGPUAMGKrylovSetUp_Private(r));
  reason = r->mg->failedreason < 0 ? (int)PC_SUBPC_ERROR : (int)r->mg->failedreason;
  PetscCall(GPUCSRAgree(PetscObjectComm((PetscObject)pc), &reason, NULL, NULL, 0, &rank)); /* PETSc's reason is that of this rank */
  pc->failedreason = (PCFailedReason)reason;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what gpuamg.c calls ---- */

PetscErrorCode PCGPUAMGRanksDestroy_Private(GPUAMGRanks **ranks)
{
  GPUAMGRanks *r = *ranks;

  PetscFunctionBegin;
  if (!r) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCDestroy(&r->mg));
  PetscCall(PCDestroy(&r->one));
  PetscCall(MatDestroy(&r->all));
  PetscCall(VecScatterDestroy(&r->scatter));
  PetscCall(VecDestroy(&r->b));
  PetscCall(VecDestroy(&r->x));
  for (int l = 0; l < GPUAMG_LEVELS; l++) {
    Level *L = &r->level[l];

    PetscCall(MatDestroy(&L->A));
    for (int k = 0; k <= GPUAMG_SMOOTHS; k++) PetscCall(MatDestroy(&L->P[k]));
    PetscCall(VecDestroy(&L->dinv));
    PetscCall(VecDestroy(&L->dead));
    PetscCall(VecDestroyVecs(3, &L->krylov));
    PetscCall(PetscFree(L->near));
  }
  PetscCall(PetscFree(*ranks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the first level */
static PetscErrorCode Begin(PC pc)
{
  PC_GPUAMG    *a = (PC_GPUAMG *)pc->data;
  Level        *L;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  PetscCall(PetscNew(&a->ranks));
  L = &a->ranks->level[0];
  PetscCall(PetscObjectReference((PetscObject)pc->pmat));
  L->A = pc->pmat;
  L->n = pc->pmat->rmap->n;
  PetscCall(PetscObjectGetId((PetscObject)L->A, &a->ranks->id));
  a->ranks->pattern = L->A->nonzerostate;
  GPUCSRTry(&attempt, PCGPUAMGNear_Private(pc, &L->bs, &L->ns, &L->near));
  PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. same: options are unchanged, and aggregates do not depend on values */
PetscErrorCode PCGPUAMGRanksSetUp_Private(PC pc, PetscBool same)
{
  PC_GPUAMG    *a = (PC_GPUAMG *)pc->data;
  PetscObjectId id;
  PetscBool     last, weak = PETSC_FALSE;
  PetscInt      N;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)pc->pmat, &id));
  same = (PetscBool)(same && a->taken && a->ranks && a->ranks->id == id && a->ranks->pattern == pc->pmat->nonzerostate && (a->reuse || !a->ranks->weak));
  for (int l = 0; same && l < a->ranks->levels; l++) same = a->ranks->level[l].whole;
  if (same && a->ranks->mg && !a->reuse && Asks(a)) PetscCall(PCGPUAMGWeak_Private(pc->pmat, &weak));
  same         = (PetscBool)(same && !weak);
  a->taken     = PETSC_FALSE;
  a->h.problem = 0;
  if (same) a->refreshed++;
  else {
    PetscCall(PCGPUAMGRanksDestroy_Private(&a->ranks));
    PetscCall(Begin(pc));
    a->built++;
  }
  PetscCall(MatGetSize(pc->pmat, &N, NULL));
  if (Gathers(pc, 0, N)) PetscCall(PCGPUAMGGather_Private(pc));
  else {
    GPUAMGRanks *r = a->ranks;

    if (!same) PetscCall(Build(pc, &last));
    else {
      last = (PetscBool)!Gathers(pc, r->levels - 1, r->level[r->levels - 1].N);
      for (int l = 0; l < r->levels && !a->h.problem; l++) {
        PetscCall(Values(a, l));
        if (!a->h.problem && l + 1 < r->levels) PetscCall(Coarse(a, &r->level[l], PETSC_TRUE, a->reuse));
      }
    }
    if (!a->h.problem) PetscCall(Cycles(pc, last));
  }
  a->taken = (PetscBool)(!a->h.problem && !pc->failedreason);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGRanksApply_Private(PC pc, PetscBool transposed, Vec b, Vec x)
{
  const GPUAMGRanks *r = ((PC_GPUAMG *)pc->data)->ranks;

  PetscFunctionBegin;
  if (r->one) PetscCall(PCGPUAMGGatheredApply_Private(r, transposed, b, x));
  else if (r->krylov) PetscCall(PCGPUAMGKrylovApply_Private(pc, b, x));
  else if (transposed) PetscCall(PCApplyTranspose(r->mg, b, x));
  else PetscCall(PCApply(r->mg, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The cycle of all ranks; NULL: PETSc or krylov.c runs the cycle, or each rank has all rows */
PetscErrorCode PCGPUAMGRanksCycle_Private(PC pc, GPUMGCycle **c, PetscInt *version)
{
  const GPUAMGRanks *r = ((PC_GPUAMG *)pc->data)->ranks;

  PetscFunctionBegin;
  *c = NULL;
  if (r->mg && !r->krylov) PetscCall(PCMGCycleGet_Private(r->mg, c, version));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The one-process cycle of a PCGPUAMG in which each rank has all rows; NULL for other PCs */
PetscErrorCode PCGPUAMGSmall_Private(PC pc, GPUMGCycle **c)
{
  const GPUAMGRanks *r = ((PC_GPUAMG *)pc->data)->ranks;
  PetscInt           version;

  PetscFunctionBegin;
  *c = NULL;
  if (r && r->one) PetscCall(PCGPUAMGCycleGet_Private(r->one, c, &version));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGRanksView_Private(PC pc, PetscViewer viewer)
{
  const PC_GPUAMG   *a   = (const PC_GPUAMG *)pc->data;
  const GPUAMGRanks *r   = a->ranks;
  double             all = 0;
  MatInfo            info[GPUAMG_LEVELS];
  PetscViewer        sub;
  PetscMPIInt        rank;

  PetscFunctionBegin;
  if (r->one) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  Each rank has all rows, with\n"));
    PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)pc), &rank));
    PetscCall(PetscViewerGetSubViewer(viewer, PETSC_COMM_SELF, &sub));
    if (!rank) PetscCall(PCView(r->one, sub));
    PetscCall(PetscViewerRestoreSubViewer(viewer, PETSC_COMM_SELF, &sub));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int l = 0; l < r->levels; l++) {
    PetscCall(MatGetInfo(r->level[l].A, MAT_GLOBAL_SUM, &info[l]));
    all += info[l].nz_used;
  }
  PetscCall(PetscViewerASCIIPrintf(viewer, "  %d levels of all ranks, operator complexity %.3f, built %" PetscInt_FMT " times, refreshed %" PetscInt_FMT "\n", r->levels, all / info[0].nz_used, a->built, a->refreshed));
  if (r->krylov) PetscCall(PetscViewerASCIIPrintf(viewer, "  K-cycles of these levels are operations of PETSc's vectors, because their sums of all ranks pass through the host\n"));
  PetscCall(PetscViewerASCIIPrintf(viewer, "  level       rows    nonzeros  a row  block  eigenvalue\n"));
  for (int l = 0; l < r->levels; l++)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  %5d %10" PetscInt_FMT " %11.0f %6.1f %6" PetscInt_FMT " %11.4f\n", l, r->level[l].N, info[l].nz_used, info[l].nz_used / PetscMax(1.0, (double)r->level[l].N), r->level[l].bs, r->level[l].lambda));
  PetscCall(PCView(r->mg, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
