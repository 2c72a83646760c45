/*
  The key of a hierarchy: the bytes of all data that PETSc's cycle reads. A changed key means that the device's cycle is stale. The key has solvers and preconditioners byte by byte, with all settings of
  a program, without the members that a solve writes. A forgotten exception remakes a cycle too often but never keeps a wrong cycle.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "cycle.h"
#include "../blocks/pcblocks.h"

/* Compares the bytes with the key, or appends them */
static PetscErrorCode Note(GPUMGKey *k, const void *p, size_t bytes)
{
  PetscFunctionBegin;
  if (k->differs) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->comparing) k->differs = (PetscBool)(k->at + bytes > k->used || memcmp(k->bytes + k->at, p, bytes));
  else {
    if (k->at + bytes > k->room) {
      k->room = 2 * (k->at + bytes);
      PetscCall(PetscRealloc(k->room, &k->bytes));
    }
    PetscCall(PetscMemcpy(k->bytes + k->at, p, bytes));
    k->used = k->at + bytes;
  }
  k->at += bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#define NOTE(k, value) Note(k, &(value), sizeof(value))

static PetscErrorCode NoteObject(GPUMGKey *k, void *object)
{
  PetscObjectState state = 0;
  PetscObjectId    id    = 0;

  PetscFunctionBegin;
  if (object) {
    PetscCall(PetscObjectGetId((PetscObject)object, &id));
    PetscCall(PetscObjectStateGet((PetscObject)object, &state));
  }
  PetscCall(NOTE(k, id));
  PetscCall(NOTE(k, state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NoteMat(GPUMGKey *k, Mat A)
{
  MatNullSpace null[2] = {NULL, NULL};

  PetscFunctionBegin;
  PetscCall(NoteObject(k, A));
  if (A) {
    PetscCall(MatGetNullSpace(A, &null[0]));
    PetscCall(MatGetTransposeNullSpace(A, &null[1]));
  }
  for (int t = 0; t < 2; t++) PetscCall(NoteObject(k, null[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- solvers ---- */

/* The least sizes of PETSc's private structures of KSPCHEBYSHEV and KSPRICHARDSON. The bytes hold the eigenvalues, their transformation into bounds, and the scale */
#define CHEBYSHEV_BYTES  104
#define RICHARDSON_BYTES 12

/* Not in all versions */
extern PetscErrorCode KSPGetNestLevel(KSP, PetscInt *) __attribute__((weak));
extern PetscErrorCode KSPSetNestLevel(KSP, PetscInt) __attribute__((weak));

/* A copy without the members that a solve writes */
static void AsSet(KSP ksp, struct _p_KSP *s)
{
  memcpy(s, ksp, sizeof(*s));
  memset(&s->hdr, 0, sizeof(s->hdr));
  s->vec_sol = s->vec_rhs = NULL;
  s->work                 = NULL;
  s->nwork                = 0;
  s->rnorm = s->rnorm0 = s->ttol = 0;
  s->its = s->totalits = 0;
  s->reason            = KSP_CONVERGED_ITERATING;
  s->res_hist_len = s->err_hist_len = 0;
  s->transpose_solve                = PETSC_FALSE;
  for (PetscInt m = s->numbermonitors; m < MAXKSPMONITORS; m++) { /* that have been cancelled */
    s->monitor[m]        = NULL;
    s->monitordestroy[m] = NULL;
    s->monitorcontext[m] = NULL;
  }
}

static PetscErrorCode NotePC(GPUMGKey *, PC);

static PetscErrorCode NoteKSP(GPUMGKey *k, KSP ksp)
{
  struct _p_KSP s;
  PetscBool     chebyshev, richardson;
  int           kind = 0;

  PetscFunctionBegin;
  AsSet(ksp, &s);
  PetscCall(NOTE(k, ((PetscObject)ksp)->id));
  PetscCall(NOTE(k, s));
  PetscCall(NOTE(k, *ksp->ops));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPCHEBYSHEV, &chebyshev));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPRICHARDSON, &richardson));
  if (richardson) PetscCall(Note(k, ksp->data, RICHARDSON_BYTES));
  if (chebyshev) {
    PetscTryMethod(ksp, "KSPChebyshevGetKind_C", (KSP, int *), (ksp, &kind));
    PetscCall(NOTE(k, kind));
    PetscCall(Note(k, ksp->data, CHEBYSHEV_BYTES));
  }
  PetscCall(NotePC(k, ksp->pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Can the device's cycle replace the solver? Yes, if the solver takes no norm, has no test and calls no function of the program. Every member has its value of KSPCreate(), except for the members
  named here. PCMG and PCGAMG make such solvers
*/
PetscErrorCode GPUMGPlain(KSP ksp, PetscBool *plain)
{
  const KSPConvergedReason reason = ksp->reason;
  struct _p_KSP            s, d;
  KSP                      created;
  MatNullSpace             null[4];
  PetscInt                 nested = 0;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_SELF, &created));
  PetscCall(KSPSetType(created, ((PetscObject)ksp)->type_name));
  if (KSPGetNestLevel && KSPSetNestLevel) {
    PetscCall(KSPGetNestLevel(ksp, &nested));
    PetscCall(KSPSetNestLevel(created, nested));
  }
  AsSet(created, &d);
  AsSet(ksp, &s);
  PetscCall(KSPDestroy(&created));
  PetscCall(MatGetNullSpace(ksp->pc->mat, &null[0]));
  PetscCall(MatGetTransposeNullSpace(ksp->pc->mat, &null[1]));
  PetscCall(MatGetNullSpace(ksp->pc->pmat, &null[2]));
  PetscCall(MatGetTransposeNullSpace(ksp->pc->pmat, &null[3]));
  *plain =
    (PetscBool)((s.converged == KSPConvergedSkip || s.converged == KSPConvergedDefault) && s.normtype <= KSP_NORM_NONE && !(s.dm && s.dmActive) && reason >= 0 && !null[0] && !null[1] && !null[2] && !null[3] && !ksp->pc->diagonalscale && !ksp->pc->failedreason);
  /* members that the device's cycle reads from PETSc */
  s.max_it         = d.max_it;
  s.guess_zero     = d.guess_zero;
  s.pc             = d.pc;
  s.data           = d.data;
  s.setupstage     = d.setupstage;
  s.setupnewmatrix = d.setupnewmatrix;
  if (!strcmp(((PetscObject)ksp)->type_name, KSPCHEBYSHEV)) s.ops->solve = d.ops->solve; /* the set-up chooses a function by the kind, and the key has the kind */
  /* members without effect if the solver takes no norm */
  s.rtol                = d.rtol;
  s.abstol              = d.abstol;
  s.divtol              = d.divtol;
  s.chknorm             = d.chknorm;
  s.lagnorm             = d.lagnorm;
  s.converged           = d.converged;
  s.convergeddestroy    = d.convergeddestroy;
  s.cnvP                = d.cnvP;
  s.normtype            = d.normtype;
  s.normtype_set        = d.normtype_set;
  s.pc_side             = d.pc_side;
  s.pc_side_set         = d.pc_side_set;
  s.errorifnotconverged = d.errorifnotconverged;
#if defined(PetscObjectParameterDeclare) /* 3.23 and later */
  s.guess_not_read = d.guess_not_read;
  s.default_max_it = d.default_max_it;
  s.default_rtol   = d.default_rtol;
  s.default_abstol = d.default_abstol;
  s.default_ttol   = d.default_ttol;
  s.default_divtol = d.default_divtol;
#endif
  /* members used before a solve only */
  s.dm                   = d.dm;
  s.dmAuto               = d.dmAuto;
  s.dmActive             = d.dmActive;
  s.setfromoptionscalled = d.setfromoptionscalled;
  s.skippcsetfromoptions = d.skippcsetfromoptions;
  if (memcmp(&s, &d, sizeof(s))) *plain = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- preconditioners ---- */

/* The solvers inside a preconditioner that is set up; most types have none */
PetscErrorCode GPUMGInside(PC pc, PetscInt *count, KSP **sub, KSP *one)
{
  PetscBool blocks, redundant;

  PetscFunctionBegin;
  *count = 0;
  if (!pc->setupcalled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCBJACOBI, &blocks));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCREDUNDANT, &redundant));
  if (blocks) PetscCall(PCBJacobiGetSubKSP(pc, count, NULL, sub));
  if (redundant) {
    PetscCall(PCRedundantGetKSP(pc, one));
    *count = 1;
    *sub   = one;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NotePC(GPUMGKey *k, PC pc)
{
  struct _p_PC             s;
  Mat                      factor = NULL;
  PetscInt                 count = 0, its[2] = {0, 0};
  KSP                     *sub = NULL, one = NULL;
  PetscBool                factors, has;
  static const char *const flags[] = {"PCJacobiGetUseAbs_C", "PCJacobiGetFixDiagonal_C"};
  int                      type    = 0;
  PetscReal                number  = 0;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)pc, &factors, PCILU, PCICC, PCBJACOBI, ""));
  if (factors && pc->setupcalled && !k->inside) PetscCall(PCFactorNow_Private(pc, &factor)); /* of a smoother */
  memcpy(&s, pc, sizeof(s));
  memset(&s.hdr, 0, sizeof(s.hdr)); /* and members that applications write */
  s.failedreason = s.failedreasonrank = PC_NOERROR;
  s.presolvedone                      = 0;
  PetscCall(NOTE(k, ((PetscObject)pc)->id));
  PetscCall(NOTE(k, s));
  PetscCall(NOTE(k, *pc->ops));
  PetscCall(NoteMat(k, pc->mat));
  PetscCall(NoteMat(k, pc->pmat));
  /* settings in a type's private structure that a program can change without a new set-up */
  PetscCall(PetscObjectTypeCompareAny((PetscObject)pc, &has, PCJACOBI, PCSOR, ""));
  if (has) {
    PetscTryMethod(pc, "PCJacobiGetType_C", (PC, int *), (pc, &type));
    PetscCall(NOTE(k, type));
    for (int f = 0; f < 2; f++) {
      PetscBool flag = PETSC_FALSE;

      PetscTryMethod(pc, flags[f], (PC, PetscBool *), (pc, &flag));
      PetscCall(NOTE(k, flag));
    }
    PetscTryMethod(pc, "PCJacobiGetRowl1Scale_C", (PC, PetscReal *), (pc, &number));
    PetscTryMethod(pc, "PCSORGetOmega_C", (PC, PetscReal *), (pc, &number));
    PetscTryMethod(pc, "PCSORGetIterations_C", (PC, PetscInt *, PetscInt *), (pc, &its[0], &its[1]));
    PetscTryMethod(pc, "PCSORGetSymmetric_C", (PC, int *), (pc, &type));
    PetscCall(NOTE(k, number));
    PetscCall(NOTE(k, its));
    PetscCall(NOTE(k, type));
  }
  if (pc->setupcalled && pc->ops->getfactoredmatrix && !factor) PetscCall(PCFactorGetMatrix(pc, &factor));
  PetscCall(NoteObject(k, factor));
  if (k->inside) PetscCall(GPUMGInside(pc, &count, &sub, &one));
  PetscCall(NOTE(k, count));
  for (PetscInt q = 0; q < count; q++) PetscCall(NoteKSP(k, sub[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- hierarchies ---- */

/* Takes the present key of a PCMG, or compares with it; same NULL: takes it */
PetscErrorCode GPUMGKeyNote(PC pc, GPUMGKey *k, PetscBool *same)
{
  const PC_MG *mg = (const PC_MG *)pc->data;
  PC_MG        s;

  PetscFunctionBegin;
  k->comparing = (PetscBool)(same != NULL);
  k->at        = 0;
  k->differs   = PETSC_FALSE;
  memcpy(&s, mg, sizeof(s)); /* except members that PCApplyRichardson() writes */
  s.rtol = s.abstol = s.dtol = s.ttol = 0;
  PetscCall(NOTE(k, s));
  for (PetscInt l = 0; mg->levels && l < mg->nlevels && !k->differs; l++) {
    PC_MG_Levels each;

    memcpy(&each, mg->levels[l], sizeof(each)); /* except members that applications write */
    each.b = each.x = each.r = each.crx = each.crb = NULL;
    each.B = each.X = each.R = NULL;
    k->inside                = (PetscBool)!each.level; /* the coarse solver's: asking for the solvers of PCBJACOBI changes its view */
    PetscCall(NOTE(k, each));
    PetscCall(NoteMat(k, each.A));
    PetscCall(NoteObject(k, each.interpolate));
    PetscCall(NoteObject(k, each.restrct));
    PetscCall(NoteKSP(k, each.smoothd));
    if (each.smoothu != each.smoothd) PetscCall(NoteKSP(k, each.smoothu));
  }
  if (same) *same = (PetscBool)(!k->differs && k->at == k->used);
  PetscFunctionReturn(PETSC_SUCCESS);
}
