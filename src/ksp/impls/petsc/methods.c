/*
  PETSc's own Krylov methods, where they and device vectors do not fit. They are registered again under their names; ours makes PETSc's, and steps between
  KSPSolve() and its solve:

  - KSPIBCGS and KSPFBCGSR read and write arrays that they have given back (and refuse vectors of which they think that this cannot be done). Theirs count as held
    while they solve.
  - A method makes its work vectors like the solution. Where that is on the host, a ghosted vector say, all vector work would be done there. Methods that have
    nothing else to do with it get work vectors of the matrix, and solve with copies of right-hand side and solution on the device.
*/
#include <petscgpucsr.h>
#include <petsc/private/kspimpl.h>
#include <petsc/private/vecimpl.h>
#include "../../../sys/gpucsrsys.h"
#include <petsctime.h>
#include "../../../vec/impls/gpu/vecgpu.h"
#include "methods.h"

typedef enum {
  KEEPS,  /* pointers to arrays that it has given back */
  FOLLOWS /* the solution, with its work vectors */
} Habit;

/* The methods: a row each */
#define METHODS \
  METHOD(ibcgs, KEEPS) \
  METHOD(fbcgsr, KEEPS) \
  METHOD(cg, FOLLOWS) \
  METHOD(gmres, FOLLOWS) \
  METHOD(fgmres, FOLLOWS) \
  METHOD(bcgs, FOLLOWS) \
  METHOD(minres, FOLLOWS)

typedef struct {
  const char *type;
  Habit       habit;
  PetscErrorCode (*ours)(KSP);
  PetscErrorCode (*create)(KSP), (*setup)(KSP), (*solve)(KSP); /* PETSc's */
} Method;

enum {
#define METHOD(name, habit) METHOD_##name,
  METHODS
#undef METHOD
    COUNT
};

static PetscErrorCode Create(KSP, int);
#define METHOD(name, habit) \
  static PetscErrorCode KSPCreate_##name(KSP ksp) \
  { \
    PetscFunctionBegin; \
    PetscCall(Create(ksp, METHOD_##name)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
METHODS
#undef METHOD

static Method methods[] = {
#define METHOD(name, habit) {#name, habit, KSPCreate_##name, NULL, NULL, NULL},
  METHODS
#undef METHOD
};

static PetscErrorCode Find(KSP ksp, const Method **m)
{
  PetscBool same = PETSC_FALSE;
  int       k    = 0;

  PetscFunctionBegin;
  for (; k < COUNT && !same; k++) PetscCall(PetscStrcmp(methods[k].type, ((PetscObject)ksp)->type_name, &same));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No method %s", ((PetscObject)ksp)->type_name);
  *m = &methods[k - 1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Arrays that are used after they were given back */

static PetscErrorCode KSPSolve_Keeps(KSP ksp)
{
  const PetscInt n = ksp->nwork + 2;
  Vec           *v;
  VecGPUHeld    *held;
  const Method  *m;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Find(ksp, &m));
  PetscCall(PetscMalloc2(n, &v, n, &held));
  for (PetscInt k = 0; k < n; k++) {
    v[k] = k < ksp->nwork ? ksp->work[k] : k == ksp->nwork ? ksp->vec_sol : ksp->vec_rhs;
    PetscCall(VecGPUHold(v[k], &held[k]));
  }
  ierr = (*m->solve)(ksp);
  for (PetscInt k = n - 1; k >= 0; k--) PetscCall(VecGPURelease(v[k], &held[k]));
  PetscCall(PetscFree2(v, held));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Vectors of the program that are on the host, of a matrix whose vectors are on the device */

/* The matrix' vectors; NULL where the program's are as good */
static PetscErrorCode DeviceVecs(KSP ksp, Vec *x, Vec *b)
{
  Mat       A;
  PetscBool set, device, square;
  PetscErrorCode (*ours)(Mat, MatGPUCSRInfo *) = NULL;
  Vec v[2];

  PetscFunctionBegin;
  *x = *b = NULL;
  if (!ksp->pc || !ksp->vec_sol || !ksp->vec_rhs || ksp->dm) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperatorsSet(ksp->pc, &set, NULL));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatGPUCSRGetInfo_C", &ours));
  PetscCall(VecGPUCheck(ksp->vec_sol, &device));
  if (!ours || device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateVecs(A, &v[0], &v[1]));
  PetscCall(VecGPUCheck(v[0], &device));
  square = (PetscBool)(v[0]->map->n == ksp->vec_sol->map->n && v[1]->map->n == ksp->vec_rhs->map->n && v[0]->map->N == ksp->vec_sol->map->N);
  if (device && square) {
    *x = v[0];
    *b = v[1];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetUp_Follows(KSP ksp)
{
  const Method  *m;
  Vec            x, b, mine[2] = {ksp->vec_sol, ksp->vec_rhs};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Find(ksp, &m));
  PetscCall(DeviceVecs(ksp, &x, &b));
  if (x) {
    ksp->vec_sol = x;
    ksp->vec_rhs = b;
  }
  ierr         = (*m->setup)(ksp);
  ksp->vec_sol = mine[0];
  ksp->vec_rhs = mine[1];
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_Follows(KSP ksp)
{
  const Method  *m;
  Vec            x, b, mine[2] = {ksp->vec_sol, ksp->vec_rhs};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Find(ksp, &m));
  PetscCall(DeviceVecs(ksp, &x, &b));
  if (!x) {
    PetscCall((*m->solve)(ksp));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscInfo(ksp, "Right-hand side and solution are on the host: solving with copies on the device\n"));
  PetscCall(VecCopy(mine[1], b));
  PetscCall(VecLockReadPush(b));
  if (ksp->guess_zero) PetscCall(VecSet(x, 0.0));
  else PetscCall(VecCopy(mine[0], x));
  ksp->vec_sol = x;
  ksp->vec_rhs = b;
  ierr         = (*m->solve)(ksp);
  ksp->vec_sol = mine[0];
  ksp->vec_rhs = mine[1];
  PetscCall(VecLockReadPop(b));
  PetscCall(VecCopy(x, mine[0]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The report */

/* Solves with a matrix of the library are recorded */
static PetscErrorCode KSPSolve_Recorded(KSP ksp)
{
  const Method *m;
  Mat           A;
  PetscBool     set;
  PetscErrorCode (*ours)(Mat, MatGPUCSRInfo *) = NULL;
  PetscLogDouble begin, end;

  PetscFunctionBegin;
  PetscCall(Find(ksp, &m));
  PetscCall(PetscTime(&begin));
  PetscCall(m->habit == KEEPS ? KSPSolve_Keeps(ksp) : KSPSolve_Follows(ksp));
  PetscCall(PetscTime(&end));
  PetscCall(PCGetOperatorsSet(ksp->pc, &set, NULL));
  if (set) {
    PetscCall(PCGetOperators(ksp->pc, &A, NULL));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatGPUCSRGetInfo_C", &ours));
  }
  if (ours) PetscCall(GPUCSRSolvesAdd((PetscObject)ksp, ((PetscObject)ksp->pc)->type_name, NULL, ksp->its, end - begin));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Registration */

static PetscErrorCode Create(KSP ksp, int k)
{
  Method *m = &methods[k];

  PetscFunctionBegin;
  PetscCall((*m->create)(ksp));
  m->solve        = ksp->ops->solve;
  m->setup        = ksp->ops->setup;
  ksp->ops->solve = KSPSolve_Recorded;
  if (m->habit == FOLLOWS) ksp->ops->setup = KSPSetUp_Follows;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A method that the program has registered itself under one of these names is wrapped as well */
PetscErrorCode KSPMethodsInitialize_Private(void)
{
  PetscFunctionBegin;
  if (!GPUCSR_SCALAR_IS_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPInitializePackage());
  for (int k = 0; k < COUNT; k++) {
    PetscErrorCode (*create)(KSP) = NULL;

    PetscCall(PetscFunctionListFind(KSPList, methods[k].type, &create));
    if (!create || create == methods[k].ours) continue;
    methods[k].create = create;
    PetscCall(KSPRegister(methods[k].type, methods[k].ours));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
