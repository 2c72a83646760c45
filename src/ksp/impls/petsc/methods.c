/*
  PETSc's own Krylov methods that do not fit device vectors. The library registers each again under its name. The wrapper makes PETSc's method and acts between KSPSolve() and the method's solve.

  - KSPIBCGS and KSPFBCGSR read and write arrays after giving them back, and refuse vectors of unknown types. Their arrays count as borrowed during a solve.
  - A method duplicates its work vectors from the solution. With a solution on the host, a ghosted vector for example, the host would do all vector work. So methods without other access to the
    solution get work vectors of the matrix, and solve with copies of the host's vectors on the device. The program's monitors, convergence test and KSPBuildSolution() see the current iterate in
    the program's vectors.
*/
#include <petscgpucsr.h>
#include <petsc/private/kspimpl.h> /* the operations of a KSP, and its vectors */
#include <petsc/private/vecimpl.h> /* the layout and the type of vectors */
#include "../../wrap.h"
#include <petsctime.h>
#include "../../../mat/impls/gpucsr/product/operator.h"
#include "methods.h"

/* --- Arrays in use after their restoration */

/* PETSc's own vectors on a device (VECCUDA) work on the host meanwhile: their arrays stay valid there. bound: they were there before */
static PetscErrorCode Bind(Vec v, PetscBool binds, PetscBool *bound)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_DEVICE)
  if (binds) *bound = v->boundtocpu;
  if (!*bound) PetscCall(VecBindToCPU(v, binds));
#else
  (void)v;
  (void)binds;
  (void)bound;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveHeld(KSP ksp, GPUCSRWrap *w)
{
  const PetscInt n = ksp->nwork + 2;
  Vec           *v;
  VecGPUHeld    *held;
  PetscBool     *bound;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(n, &v, n, &held, n, &bound));
  for (PetscInt k = 0; k < n; k++) {
    v[k] = k < ksp->nwork ? ksp->work[k] : k == ksp->nwork ? ksp->vec_sol : ksp->vec_rhs;
    PetscCall(VecGPUHold(v[k], &held[k]));
    PetscCall(Bind(v[k], PETSC_TRUE, &bound[k]));
  }
  ierr = (*w->petsc.ksp.solve)(ksp);
  for (PetscInt k = n - 1; k >= 0; k--) {
    PetscCall(Bind(v[k], PETSC_FALSE, &bound[k]));
    PetscCall(VecGPURelease(v[k], &held[k]));
  }
  PetscCall(PetscFree3(v, held, bound));
  PetscFunctionReturn(ierr);
}

/* --- The program's vectors are on the host, the matrix' vectors on the device */

/* Vectors of the matrix for solution and right-hand side, NULL if the program's vectors are as good. A solution on the device stays in use: Newton's method of FEniCSx has one beside a ghosted right-hand side */
static PetscErrorCode DeviceVecs(KSP ksp, Vec *x, Vec *b)
{
  Mat       A;
  PetscBool set, device[2], made, square;
  PetscErrorCode (*info)(Mat, MatGPUCSRInfo *) = NULL;
  Vec v[2];

  PetscFunctionBegin;
  *x = *b = NULL;
  if (!ksp->pc || !ksp->vec_sol || !ksp->vec_rhs || (ksp->dm && !ksp->dmAuto)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperatorsSet(ksp->pc, &set, NULL));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatGPUCSRGetInfo_C", &info));
  PetscCall(VecGPUCheck(ksp->vec_sol, &device[0]));
  PetscCall(VecGPUCheck(ksp->vec_rhs, &device[1]));
  if (!info || (device[0] && device[1])) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateVecs(A, &v[0], &v[1]));
  PetscCall(VecGPUCheck(v[0], &made));
  square = (PetscBool)(v[0]->map->n == ksp->vec_sol->map->n && v[1]->map->n == ksp->vec_rhs->map->n && v[0]->map->N == ksp->vec_sol->map->N);
  if (made && square) {
    *x = device[0] ? ksp->vec_sol : v[0];
    *b = v[1];
    if (!device[0]) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscObjectReference((PetscObject)*x));
    PetscCall(VecDestroy(&v[0]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetUp_Copies(KSP ksp)
{
  GPUCSRWrap    *w;
  Vec            x, b, mine[2] = {ksp->vec_sol, ksp->vec_rhs};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet((PetscObject)ksp, &w));
  PetscCall(DeviceVecs(ksp, &x, &b));
  if (x) {
    ksp->vec_sol = x;
    ksp->vec_rhs = b;
  }
  ierr         = (*w->petsc.ksp.setup)(ksp);
  ksp->vec_sol = mine[0];
  ksp->vec_rhs = mine[1];
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(ierr);
}

/* Do monitors or the convergence test read more than the norm? PETSc's most common ones do not */
PetscErrorCode KSPMethodsLooked_Private(KSP ksp, PetscBool *monitors, PetscBool *test)
{
  PetscFunctionBegin;
  *test     = (PetscBool)(ksp->converged != KSPConvergedDefault && ksp->converged != KSPConvergedSkip);
  *monitors = PETSC_FALSE;
  for (PetscInt q = 0; q < ksp->numbermonitors; q++) {
    void (*f)(void) = (void (*)(void))ksp->monitor[q];

    if (f != (void (*)(void))KSPMonitorResidual && f != (void (*)(void))KSPMonitorResidualShort && f != (void (*)(void))KSPMonitorResidualDrawLG) *monitors = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Data of a wrapped method, for a solve with copies: the program's solution and right-hand side, and the copies. During PETSc's method the KSP has the copies, and these functions in place of the program's */
typedef struct {
  GPUCSRWrap      *wrap;
  KSP              ksp;
  Vec              mine[2], copy[2];
  PetscObjectState copied, mineat; /* state of the copy when the program's vector last received it, and state of that vector then */
  PetscBool        given;          /* the KSP has the copies */
  PetscInt         nmonitors;
  PetscErrorCode (*monitor)(KSP, PetscInt, PetscReal, void *);
  PetscErrorCode (*converged)(KSP, PetscInt, PetscReal, KSPConvergedReason *, void *);
  void *monitorcontext, *cnvP;
} Lent;

static PetscErrorCode Give(Lent *);

/* Shows the KSP to the program: its own vectors, with the current iterate */
static PetscErrorCode TakeBack(Lent *l)
{
  KSP              ksp = l->ksp;
  PetscObjectState state;

  PetscFunctionBegin;
  if (!l->given) PetscFunctionReturn(PETSC_SUCCESS);
  l->given     = PETSC_FALSE;
  ksp->vec_sol = l->mine[0];
  ksp->vec_rhs = l->mine[1];
  if (l->nmonitors) {
    ksp->numbermonitors    = l->nmonitors;
    ksp->monitor[0]        = l->monitor;
    ksp->monitorcontext[0] = l->monitorcontext;
  }
  ksp->converged = l->converged;
  ksp->cnvP      = l->cnvP;
  PetscCall(PetscObjectStateGet((PetscObject)l->copy[0], &state));
  if (state == l->copied) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecCopy(l->copy[0], l->mine[0]));
  l->copied = state;
  PetscCall(PetscObjectStateGet((PetscObject)l->mine[0], &l->mineat));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In place of all monitors */
static PetscErrorCode Monitor(KSP ksp, PetscInt it, PetscReal norm, void *ctx)
{
  PetscFunctionBegin;
  PetscCall(TakeBack((Lent *)ctx));
  PetscCall(KSPMonitor(ksp, it, norm));
  PetscCall(Give((Lent *)ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces the program's convergence test */
static PetscErrorCode Test(KSP ksp, PetscInt it, PetscReal norm, KSPConvergedReason *reason, void *ctx)
{
  PetscFunctionBegin;
  PetscCall(TakeBack((Lent *)ctx));
  PetscCall((*ksp->converged)(ksp, it, norm, reason, ksp->cnvP));
  PetscCall(Give((Lent *)ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Shows the KSP to PETSc's method: the copies */
static PetscErrorCode Give(Lent *l)
{
  KSP              ksp = l->ksp;
  PetscObjectState state;
  PetscBool        monitors, test;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)l->mine[0], &state));
  if (state != l->mineat) { /* a monitor or test has changed it */
    PetscCall(VecCopy(l->mine[0], l->copy[0]));
    l->mineat = state;
    PetscCall(PetscObjectStateGet((PetscObject)l->copy[0], &l->copied));
  }
  l->given     = PETSC_TRUE;
  ksp->vec_sol = l->copy[0];
  ksp->vec_rhs = l->copy[1];
  PetscCall(KSPMethodsLooked_Private(ksp, &monitors, &test));
  l->nmonitors = monitors ? ksp->numbermonitors : 0;
  if (monitors) {
    l->monitor             = ksp->monitor[0];
    l->monitorcontext      = ksp->monitorcontext[0];
    ksp->numbermonitors    = 1;
    ksp->monitor[0]        = Monitor;
    ksp->monitorcontext[0] = l;
  }
  l->converged = ksp->converged;
  l->cnvP      = ksp->cnvP;
  if (test) {
    ksp->converged = Test;
    ksp->cnvP      = l;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPBuildSolution_Copies(KSP ksp, Vec v, Vec *V)
{
  Lent     *l;
  PetscBool given;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)ksp, &l));
  given = l->given;
  PetscCall(TakeBack(l));
  PetscCall((*l->wrap->petsc.ksp.buildsolution)(ksp, v, V));
  if (given) PetscCall(Give(l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveCopies(KSP ksp, GPUCSRWrap *w)
{
  Lent          *l    = (Lent *)w->data;
  Vec           *mine = l->mine, *copy = l->copy;
  PetscErrorCode ierr, back;

  PetscFunctionBegin;
  PetscCall(DeviceVecs(ksp, &copy[0], &copy[1]));
  if (!copy[0]) PetscFunctionReturn((*w->petsc.ksp.solve)(ksp));
  PetscCall(PetscInfo(ksp, "Right-hand side or solution is on the host: solving with copies on the device\n"));
  l->ksp  = ksp;
  mine[0] = ksp->vec_sol;
  mine[1] = ksp->vec_rhs;
  PetscCall(VecCopy(mine[1], copy[1]));
  PetscCall(VecLockReadPush(copy[1]));
  if (ksp->guess_zero) PetscCall(VecSet(copy[0], 0.0));
  else PetscCall(VecCopy(mine[0], copy[0]));
  PetscCall(PetscObjectStateGet((PetscObject)mine[0], &l->mineat));
  PetscCall(PetscObjectStateGet((PetscObject)copy[0], &l->copied));
  PetscCall(Give(l));
  ierr = (*w->petsc.ksp.solve)(ksp);
  back = TakeBack(l);
  PetscCall(VecLockReadPop(copy[1]));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&copy[k]));
  PetscCall(ierr);
  PetscCall(back);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The report */

/* Tells all ranks of a failure of the preconditioner on one */
static PetscErrorCode Tell(KSP ksp)
{
  int failed = ksp->reason == KSP_DIVERGED_PC_FAILED;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
  if (failed) ksp->reason = KSP_DIVERGED_PC_FAILED;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A method begins, and would end with an old failure of the preconditioner. That of the last solve, for example a refused solution, says nothing of this solve. Nor does that of older values: KSPSetUp() skips the
  set-up without KSPSetOperators(), as PETSc's methods leave it to PCApply(). PETSc tells the failed rank alone, which then has a norm of infinity at once where the others wait for its part of the sum. failed: at
  first in the last solve, then in this one's set-up on some rank
*/
PetscErrorCode KSPMethodsForget_Private(KSP ksp, PetscBool *failed)
{
  const PetscObjectState values = ksp->pc->matstate;

  PetscFunctionBegin;
  if (*failed && ksp->reason == KSP_DIVERGED_PC_FAILED) {
    PetscCall(PCSetFailedReason(ksp->pc, PC_NOERROR));
    ksp->reason = KSP_CONVERGED_ITERATING;
  }
  PetscCall(PCSetUp(ksp->pc));
  if (ksp->pc->matstate != values) {
    ksp->reason = KSP_CONVERGED_ITERATING;
    PetscCall(KSPSetUpOnBlocks(ksp));
  }
  PetscCall(Tell(ksp));
  *failed = (PetscBool)(ksp->reason == KSP_DIVERGED_PC_FAILED);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A method has ended. failed: at first in the set-up, then after the set-up, whatever the method made of it */
PetscErrorCode KSPMethodsRemember_Private(KSP ksp, PetscBool *failed)
{
  PCFailedReason why;

  PetscFunctionBegin;
  PetscCall(PCGetFailedReason(ksp->pc, &why));
  *failed = (PetscBool)(!*failed && why);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Begins a method. If it looks at b - A x until it is small, it shows a wrong solution of a preconditioner, and factors on the device of A are trusted. Entries of A are stored, so that no solve is hidden in
   its product */
PetscErrorCode KSPMethodsTrust_Private(KSP ksp, GPUCSRDevice *dev)
{
  PetscBool set;
  Mat       A;

  PetscFunctionBegin;
  *dev = NULL;
  PetscCall(PCGetOperatorsSet(ksp->pc, &set, NULL));
  if (!set || ksp->normtype != KSP_NORM_UNPRECONDITIONED || ksp->converged != KSPConvergedDefault) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatGPUCSRFactorTrust_Private(A, dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves with a matrix of the library are recorded. Methods with copies have data */
static PetscErrorCode KSPSolve_Method(KSP ksp)
{
  GPUCSRWrap *w;
  Mat         A;
  PetscBool   set;
  PetscErrorCode (*info)(Mat, MatGPUCSRInfo *) = NULL;
  PetscLogDouble begin, end;
  GPUCSRDevice   dev;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet((PetscObject)ksp, &w));
  PetscCall(KSPMethodsForget_Private(ksp, &w->failed));
  PetscCall(KSPMethodsTrust_Private(ksp, &dev));
  PetscCall(PetscTime(&begin));
  ierr = w->data ? SolveCopies(ksp, w) : SolveHeld(ksp, w);
  PetscCall(MatGPUCSRFactorDistrust_Private(dev));
  PetscCall(ierr);
  PetscCall(KSPMethodsRemember_Private(ksp, &w->failed));
  PetscCall(PetscTime(&end));
  PetscCall(PCGetOperatorsSet(ksp->pc, &set, NULL));
  if (set) {
    PetscCall(PCGetOperators(ksp->pc, &A, NULL));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatGPUCSRGetInfo_C", &info));
  }
  if (info) PetscCall(GPUCSRSolvesAdd((PetscObject)ksp, ((PetscObject)ksp->pc)->type_name, NULL, ksp->its, end - begin));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_Forgets(KSP ksp)
{
  GPUCSRWrap *w;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet((PetscObject)ksp, &w));
  PetscCall(KSPMethodsForget_Private(ksp, &w->failed));
  PetscCall((*w->petsc.ksp.solve)(ksp));
  PetscCall(KSPMethodsRemember_Private(ksp, &w->failed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One application has no norm that tells all ranks of the failure of one */
static PetscErrorCode KSPSolve_Preonly(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(KSPSolve_Forgets(ksp));
  PetscCall(Tell(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PETSc's method, and then a solve that a preconditioner has failed in: its reason says so where the method took Inf and NaN for convergence (pipefgmres), and the solver keeps neither a work vector in place
  of its solution (chebyshev before PETSc 3.19) nor Inf and NaN in work vectors, which the next solve would multiply by zero (qmrcgs)
*/
static PetscErrorCode KSPSolve_Mended(KSP ksp)
{
  Vec            x = ksp->vec_sol;
  PCFailedReason why;
  PetscReal      norm = 0;

  PetscFunctionBegin;
  PetscCall(KSPSolve_Forgets(ksp));
  PetscCall(PCGetFailedReason(ksp->pc, &why));
  if (ksp->vec_sol != x) {
    PetscCall(VecCopy(ksp->vec_sol, x));
    ksp->vec_sol = x;
  }
  if (ksp->reason > 0 && (why || (ksp->normtype != KSP_NORM_NONE && !(ksp->rnorm > 0)))) PetscCall(VecNorm(x, NORM_INFINITY, &norm));
  if (PetscIsInfOrNanReal(norm)) {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "The solution is not finite");
    ksp->reason = why ? KSP_DIVERGED_PC_FAILED : KSP_DIVERGED_NANORINF;
  }
  for (PetscInt k = 0; k < ksp->nwork && (ksp->reason == KSP_DIVERGED_PC_FAILED || ksp->reason == KSP_DIVERGED_NANORINF); k++) PetscCall(VecSet(ksp->work[k], 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The set-up of chebyshev chooses its solve, in PETSc 3.24 */
static PetscErrorCode KSPSetUp_Mended(KSP ksp)
{
  GPUCSRWrap *w;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet((PetscObject)ksp, &w));
  PetscCall((*w->petsc.ksp.setup)(ksp));
  PetscCall(GPUCSRWrapOver((PetscObject)ksp, w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Registration */

/* The methods. FORGETS: the method would end with a failure of the last solve. ONCE, MENDED: so it would, and more. HELD: the method keeps pointers to arrays after their restoration. COPIES: its work vectors have the type of the solution */
#define FORGETS(name) GPUCSR_WRAP(KSP, name, #name, .ops.ksp = {.solve = KSPSolve_Forgets})
#define ONCE(name)    GPUCSR_WRAP(KSP, name, #name, .ops.ksp = {.solve = KSPSolve_Preonly})
#define MENDED(name)  GPUCSR_WRAP(KSP, name, #name, .ops.ksp = {.solve = KSPSolve_Mended, .setup = KSPSetUp_Mended})
#define HELD(name)    GPUCSR_WRAP(KSP, name, #name, .ops.ksp = {.solve = KSPSolve_Method})
#define COPIES(name)  GPUCSR_WRAP(KSP, name, #name, .ops.ksp = {.solve = KSPSolve_Method, .setup = KSPSetUp_Copies, .buildsolution = KSPBuildSolution_Copies}, .bytes = sizeof(Lent))
ONCE(preonly)
FORGETS(bcgsl)
FORGETS(cgs)
FORGETS(cr)
FORGETS(dgmres)
FORGETS(lgmres)
FORGETS(pgmres)
FORGETS(tcqmr)
FORGETS(tfqmr)
MENDED(chebyshev)
MENDED(qmrcgs)
MENDED(pipefgmres)
HELD(ibcgs)
HELD(fbcgsr)
COPIES(cg)
COPIES(gmres)
COPIES(fgmres)
COPIES(bcgs)
COPIES(minres)

GPUCSR_WRAP_REGISTER(KSPMethodsInitialize_Private, KSPList, &wrap_preonly, &wrap_bcgsl, &wrap_cgs, &wrap_cr, &wrap_dgmres, &wrap_lgmres, &wrap_pgmres, &wrap_tcqmr, &wrap_tfqmr, &wrap_chebyshev, &wrap_qmrcgs, &wrap_pipefgmres, &wrap_ibcgs, &wrap_fbcgsr, &wrap_cg, &wrap_gmres, &wrap_fgmres, &wrap_bcgs, &wrap_minres)
