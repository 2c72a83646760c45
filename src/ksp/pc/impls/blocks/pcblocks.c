/*
  PCBJACOBI and PCASM with the blocks of a process factored and solved together on the device. Both types are registered again under their own names: the wrapper makes PETSc's preconditioner and
  replaces the set-up of blocks and the application. It takes blocks solved by one application of ILU, ICC, LU or Cholesky. PETSc does the rest.

  PETSc sets up each block's solver, but factorizations are put off; then all blocks get one factor (Mat's factor/batch.c). A single block has its own factor and uses the vectors of the whole
  without copies.
*/
#include "../petscprivate.h"
#include "../../../wrap.h"
#include "pcblocks.h"

/* Key of a block: changes when the block changes */
typedef struct {
  PetscInt64 ksp, pc, P, state, pattern, factor, plain;
  PetscErrorCode (*solve)(KSP);
  PetscErrorCode (*apply)(PC, Vec, Vec);
} BlockKey;

typedef struct _n_Blocks Blocks;
struct _n_Blocks {
  GPUCSRWrap *wrap;
  PetscErrorCode (*getsolvers)(PC, PetscInt *, PetscInt *, KSP **); /* PETSc's, of a PCBJACOBI */
  PetscBool     handed;                                             /* the program has solvers or matrices of blocks, so it may change blocks at any time */
  PetscBool     stale;                                              /* set up since the last comparison of the blocks */
  PetscInt      n;
  BlockKey     *key;
  PetscInt64    asmtype;
  Mat           F;       /* an application of the PC solves with this factor; NULL: PETSc applies the PC. No reference is held */
  GPUCSRFactors batch;   /* the common factor of several blocks */
  PetscBool     refused; /* no common factor while the pattern is unchanged */
  PetscInt64    refusedat;
  char          why[512], said[512]; /* the reason for PETSc's blocks, and the reason last told */
};

/* The PC as a PCASM; NULL: a PCBJACOBI */
static PC_ASM *ASMOf(PC pc)
{
  return strcmp(((PetscObject)pc)->type_name, PCASM) ? NULL : (PC_ASM *)pc->data;
}

/* The solvers of this process' blocks; n 0: the PC has no solvers yet, or a block spans several processes */
static PetscErrorCode Solvers(PC pc, PetscInt *n, KSP **ksp)
{
  const PC_ASM *osm = ASMOf(pc);
  PetscMPIInt   size;

  PetscFunctionBegin;
  *n = 0;
  if (!pc->setupcalled) PetscFunctionReturn(PETSC_SUCCESS);
  if (osm) {
    *n   = osm->ksp ? osm->n_local_true : 0;
    *ksp = osm->ksp;
  } else {
    Blocks *m;

    PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
    PetscCall((*m->getsolvers)(pc, n, NULL, ksp));
  }
  if (!*n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)(*ksp)[0]), &size));
  if (size > 1) *n = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program asks for the solvers */
static PetscErrorCode GetSolvers_Blocks(PC pc, PetscInt *n, PetscInt *first, KSP **ksp)
{
  Blocks *m;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  if (ksp) m->handed = PETSC_TRUE;
  PetscCall((*m->getsolvers)(pc, n, first, ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- have the blocks changed? ---- */

/* Is a solve with this block just one application of its PC? A monitor or an initial guess, for example, says no */
static PetscErrorCode Plain(KSP ksp, PetscBool *plain)
{
  PetscBool    scaled;
  MatNullSpace null[2] = {NULL, NULL};

  PetscFunctionBegin;
  PetscCall(PCGetDiagonalScale(ksp->pc, &scaled));
  if (ksp->pc->mat) PetscCall(MatGetNullSpace(ksp->pc->mat, &null[0]));
  if (ksp->pc->pmat) PetscCall(MatGetNullSpace(ksp->pc->pmat, &null[1]));
  *plain = (PetscBool)(!scaled && !null[0] && !null[1] && !ksp->numbermonitors && !ksp->dscale && !ksp->guess && !ksp->guess_knoll && !ksp->presolve && !ksp->postsolve && ksp->guess_zero && !ksp->view && !ksp->viewPre && !ksp->viewRate && !ksp->viewMat &&
                       !ksp->viewPMat && !ksp->viewRhs && !ksp->viewSol && !ksp->viewFinalRes && !ksp->numberreasonviews);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KeyOf(KSP ksp, BlockKey *key)
{
  const PC  pc = ksp->pc;
  const Mat P  = pc->pmat;
  Mat       F  = NULL; /* differs if the program has replaced the block's factor */
  PetscBool plain;

  PetscFunctionBegin;
  PetscCall(Plain(ksp, &plain));
  if (pc->ops->getfactoredmatrix && pc->setupcalled) PetscCall(PCFactorGetMatrix(pc, &F));
  *key = (BlockKey){(PetscInt64)((PetscObject)ksp)->id,
                    (PetscInt64)((PetscObject)pc)->id,
                    P ? (PetscInt64)((PetscObject)P)->id : 0,
                    P ? (PetscInt64)((PetscObject)P)->state : 0,
                    P ? (PetscInt64)P->nonzerostate : 0,
                    F ? (PetscInt64)((PetscObject)F)->id : 0,
                    plain,
                    ksp->ops->solve,
                    pc->ops->apply};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt64 ASMTypeOf(PC pc)
{
  const PC_ASM *osm = ASMOf(pc);

  return osm ? 100 * (PetscInt64)osm->loctype + 10 * (PetscInt64)osm->type + (osm->lprolongation != NULL) : 0;
}

static PetscErrorCode Same(PC pc, const Blocks *m, PetscBool *same)
{
  PetscInt n;
  KSP     *ksp;

  PetscFunctionBegin;
  PetscCall(Solvers(pc, &n, &ksp));
  *same = (PetscBool)(m->key && n == m->n && m->asmtype == ASMTypeOf(pc));
  for (PetscInt k = 0; k < n && *same; k++) {
    BlockKey key;

    PetscCall(KeyOf(ksp[k], &key));
    *same = (PetscBool)!memcmp(&key, &m->key[k], sizeof(key));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Keep(PC pc, Blocks *m)
{
  PetscInt n;
  KSP     *ksp;

  PetscFunctionBegin;
  PetscCall(Solvers(pc, &n, &ksp));
  PetscCall(PetscFree(m->key));
  m->n       = n;
  m->asmtype = ASMTypeOf(pc);
  PetscCall(PetscMalloc1(PetscMax(1, n), &m->key));
  for (PetscInt k = 0; k < n; k++) PetscCall(KeyOf(ksp[k], &m->key[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- can the blocks be solved together? ---- */

/* Without the values: leaves why empty if the blocks can be solved together */
static PetscErrorCode Possible(PC pc, PetscInt n, KSP ksp[], char why[], size_t len)
{
  const PC_ASM *osm    = ASMOf(pc);
  PetscBool     wanted = PETSC_TRUE, gpucsr = PETSC_FALSE, factors = PETSC_TRUE, preonly, factor, plain;
  PetscMPIInt   size;

  PetscFunctionBegin;
  why[0] = 0;
  if (n && ksp[0]->pc->pmat) PetscCall(PetscObjectTypeCompare((PetscObject)ksp[0]->pc->pmat, MATSEQAIJGPUCSR, &gpucsr));
  PetscCall(PetscOptionsGetBool(((PetscObject)pc)->options, ((PetscObject)pc)->prefix, "-pc_blocks_gpucsr", &wanted, NULL));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  /* is a solve with each block one unobserved application of a factor? */
  for (PetscInt k = 0; k < n && factors; k++) {
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp[k], KSPPREONLY, &preonly));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp[k]->pc, &factor, PCILU, PCICC, PCLU, PCCHOLESKY, ""));
    PetscCall(Plain(ksp[k], &plain));
    factors = (PetscBool)(preonly && factor && plain);
  }
  if (!wanted) PetscCall(PetscStrncpy(why, "-pc_blocks_gpucsr false was asked for", len));
  else if (!n) PetscCall(PetscStrncpy(why, "blocks are of several processes", len));
  else if (!gpucsr) PetscCall(PetscStrncpy(why, "their matrices are not of type gpucsr", len));
  else if (osm && size > 1) PetscCall(PetscStrncpy(why, "subdomains of several processes overlap", len));
  else if (osm && osm->loctype != PC_COMPOSITE_ADDITIVE && n > 1) PetscCall(PetscStrncpy(why, "subdomains are solved one after the other", len));
  else if (!factors)
    PetscCall(PetscSNPrintf(why, len, "they are solved by %s with %s, or a solve is monitored: -%spc_type ilu, icc, lu or cholesky", ((PetscObject)ksp[0])->type_name, ((PetscObject)ksp[0]->pc)->type_name ? ((PetscObject)ksp[0]->pc)->type_name : "none yet",
                            ((PetscObject)ksp[0])->prefix ? ((PetscObject)ksp[0])->prefix : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Said once */
static PetscErrorCode Tell(PC pc, Blocks *m)
{
  PetscFunctionBegin;
  if (strcmp(m->why, m->said)) PetscCall(PetscInfo(pc, "Blocks are PETSc's: %s\n", m->why));
  PetscCall(PetscStrncpy(m->said, m->why, sizeof(m->said)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc makes the postponed factors one after the other */
static PetscErrorCode Refuse(PC pc, Blocks *m, PetscInt n, KSP ksp[])
{
  PetscFunctionBegin;
  m->F         = NULL;
  m->refused   = PETSC_TRUE;
  m->refusedat = (PetscInt64)pc->pmat->nonzerostate;
  PetscCall(Tell(pc, m));
  PetscCall(GPUCSRFactorsDestroy(&m->batch));
  for (PetscInt k = 0; k < n; k++) {
    Mat       F, A, P;
    PetscBool later;

    if (!ksp[k]->pc->ops->getfactoredmatrix || !ksp[k]->pc->setupcalled) continue;
    PetscCall(PCFactorGetMatrix(ksp[k]->pc, &F));
    PetscCall(MatGPUCSRFactorWasPutOff_Private(F, &later));
    if (!later) continue;
    PetscCall(PCGetOperators(ksp[k]->pc, &A, &P));
    PetscCall(PetscObjectStateIncrease((PetscObject)P));
    PetscCall(KSPSetOperators(ksp[k], A, P));
  }
  PetscCall((*m->wrap->petsc.pc.setuponblocks)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- operations ---- */

static PetscErrorCode PCSetUpOnBlocks_Blocks(PC pc)
{
  const PC_ASM  *osm = ASMOf(pc);
  Blocks        *m;
  PetscInt       n, rows, of;
  KSP           *ksp;
  PetscBool      same, possible, alone;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  PetscCall(Solvers(pc, &n, &ksp));
  if (m->refusedat != (PetscInt64)pc->pmat->nonzerostate) m->refused = PETSC_FALSE;
  if (!m->refused) PetscCall(Possible(pc, n, ksp, m->why, sizeof(m->why)));
  if (m->why[0]) PetscCall(Tell(pc, m));
  possible = (PetscBool)!m->why[0];
  alone    = (PetscBool)(n == 1); /* its own factor suffices */
  if (osm && alone) {
    PetscCall(ISIdentity(osm->is[0], &alone));
    PetscCall(ISGetLocalSize(osm->is[0], &of));
    PetscCall(MatGetLocalSize(pc->pmat, &rows, NULL));
    alone = (PetscBool)(alone && of == rows && !osm->lprolongation);
  }
  if (n == 1 && !osm) PetscCall(KSPSetReusePreconditioner(ksp[0], pc->reusepreconditioner)); /* as PETSc's application does: the matrix may belong to the program */
  for (PetscInt k = 0; k < n && possible && !alone; k++) PetscCall(MatGPUCSRFactorPutOff_Private(ksp[k]->pc->pmat, PETSC_TRUE));
  ierr = (*m->wrap->petsc.pc.setuponblocks)(pc);
  for (PetscInt k = 0; k < n && possible && !ierr; k++) ierr = PCSetUp(ksp[k]->pc); /* for a KSP whose type has changed since KSPSetUp() */
  for (PetscInt k = 0; k < n && possible && !alone; k++) PetscCall(MatGPUCSRFactorPutOff_Private(ksp[k]->pc->pmat, PETSC_FALSE));
  PetscCall(ierr);
  PetscCall(Same(pc, m, &same));
  if (same) PetscFunctionReturn(PETSC_SUCCESS);
  m->F = NULL;
  if (!possible || alone) PetscCall(GPUCSRFactorsDestroy(&m->batch)); /* postponed factors are made at first use */
  if (possible && alone) PetscCall(PCFactorGetMatrix(ksp[0]->pc, &m->F));
  else if (possible) {
    GPUCSROverlap overlap = {0, NULL, NULL};
    Mat          *F;
    PetscBool     ok;

    /* the common factor of all blocks, which are set up */
    if (osm) {
      PetscCall(MatGetLocalSize(pc->pmat, &overlap.n, NULL));
      overlap.is = osm->is;
      if (osm->lprolongation && osm->type != PC_ASM_INTERPOLATE) overlap.counted = osm->is_local;
    }
    PetscCall(PetscMalloc1(n, &F));
    for (PetscInt k = 0; k < n; k++) PetscCall(PCFactorGetMatrix(ksp[k]->pc, &F[k]));
    PetscCall(MatGPUCSRFactorsBatch_Private(n, F, osm ? &overlap : NULL, &m->batch, &ok, m->why, sizeof(m->why)));
    PetscCall(PetscFree(F));
    if (ok) m->F = m->batch.F;
    else PetscCall(Refuse(pc, m, n, ksp));
  }
  PetscCall(Keep(pc, m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Compares the blocks if they can have changed. Several blocks of a PCBJACOBI change in a set-up alone, until the program asks for their solvers or sees their matrices. A single block has the
  program's matrix. The PC does not see calls of PCASMGetLocalSubmatrices().
*/
static PetscErrorCode Current(PC pc, Blocks *m)
{
  PetscBool same;

  PetscFunctionBegin;
  if (m->key && m->n > 1 && !m->handed && !m->stale && !ASMOf(pc)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Same(pc, m, &same));
  if (!same) PetscCall(PCSetUpOnBlocks(pc));
  m->stale = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_Blocks(PC pc, Vec b, Vec x)
{
  Blocks      *m;
  PetscInt     n;
  KSP         *ksp;
  GPUCSRDevice dev;
  PetscBool    done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  PetscCall(Current(pc, m));
  if (m->F) PetscCall(MatGPUCSRFactorDevice_Private(m->F, &dev));
  if (m->F && dev) PetscCall(MatGPUCSRFactorSolveVecs_Private(m->F, b, x, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  if (m->F && m->F == m->batch.F) {
    PetscCall(Solvers(pc, &n, &ksp));
    PetscCall(PetscStrncpy(m->why, "the common factor has left the device", sizeof(m->why)));
    PetscCall(Refuse(pc, m, n, ksp));
    PetscCall(Keep(pc, m));
  }
  PetscCall((*m->wrap->petsc.pc.apply)(pc, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factor with which an application solves, on vectors of this process; NULL: the application is another one. pc: set up */
PetscErrorCode PCFactorNow_Private(PC pc, Mat *F)
{
  PetscBool blocks;

  PetscFunctionBegin;
  *F = NULL;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)pc, &blocks, PCBJACOBI, PCASM, ""));
  if (blocks) {
    GPUCSRWrap *w;

    PetscCall(GPUCSRWrapGet((PetscObject)pc, &w));
    if (w && w->petsc.pc.setuponblocks) {
      PetscCall(Current(pc, (Blocks *)w->data));
      *F = ((Blocks *)w->data)->F;
    }
  } else PetscCall(PCFactorGetMatrix(pc, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same, after a set-up. Collective */
PetscErrorCode PCFactorOf_Private(PC pc, Mat *F)
{
  PetscFunctionBegin;
  PetscCall(PCSetUp(pc)); /* needed if the PC changed its type after KSPSetUp() */
  PetscCall(PCSetUpOnBlocks(pc));
  PetscCall(PCFactorNow_Private(pc, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlocksRelease(void *data)
{
  Blocks *m = (Blocks *)data;

  PetscFunctionBegin;
  PetscCall(GPUCSRFactorsDestroy(&m->batch));
  PetscCall(PetscFree(m->key));
  m->F       = NULL;
  m->n       = 0;
  m->refused = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCView_Blocks(PC pc, PetscViewer viewer)
{
  Blocks   *m;
  PetscBool ascii;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  PetscCall((*m->wrap->petsc.pc.view)(pc, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii || !m->batch.F) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  All %" PetscInt_FMT " blocks of a process are one factor on the device\n", m->n));
  PetscCall(PetscViewerASCIIPushTab(viewer));
  PetscCall(MatGPUCSRFactorDescribe_Private(m->batch.F, viewer));
  PetscCall(PetscViewerASCIIPopTab(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- registration ---- */

/* PETSc sets some of its operations when the PC is set up */
static PetscErrorCode PCSetUp_Blocks(PC pc)
{
  Blocks *m;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  m->stale = PETSC_TRUE;
  if (pc->modifysubmatrices) m->handed = PETSC_TRUE;
  PetscCall(PCSetUp_WrapAnew(pc));
  PetscCall(GPUCSRWrapOver((PetscObject)pc, m->wrap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlocksMade(PetscObject pc, GPUCSRWrap *w)
{
  Blocks *m = (Blocks *)w->data;

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction(pc, "PCBJacobiGetSubKSP_C", &m->getsolvers));
  if (m->getsolvers) PetscCall(PetscObjectComposeFunction(pc, "PCBJacobiGetSubKSP_C", GetSolvers_Blocks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define WRAP(name, petsc) \
  GPUCSR_WRAP(PC, name, petsc, .ops.pc = {.setup = PCSetUp_Blocks, .setuponblocks = PCSetUpOnBlocks_Blocks, .apply = PCApply_Blocks, .view = PCView_Blocks}, .bytes = sizeof(Blocks), .release = BlocksRelease, .made = BlocksMade)
WRAP(BJacobi, PCBJACOBI)
WRAP(ASM, PCASM)

GPUCSR_WRAP_REGISTER(PCBlocksInitialize_Private, PCList, &wrap_BJacobi, &wrap_ASM)
