/*
  Wrapping and probing, see wrap.h. A container of the object holds its data and frees them with the object at the latest, since PCHMG makes a PCMG and destroys it by PETSc's destructor.
*/
#include "wrap.h"

static const char KEY[] = "GPUCSRWrap";

static PetscErrorCode Release(void *wrap)
{
  GPUCSRWrap *w = (GPUCSRWrap *)wrap;

  PetscFunctionBegin;
  if (w->type->release) PetscCall((*w->type->release)(w->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList wraps = {GPUCSR_FINAL_PC, Release, NULL};

static PetscErrorCode Free(GPUCSRContext *wrap)
{
  GPUCSRWrap *w = GPUCSR_CONTAINER_GIVES_PLACE ? *(GPUCSRWrap **)wrap : (GPUCSRWrap *)wrap;

  PetscFunctionBegin;
  PetscCall(Release(w));
  PetscCall(GPUCSRLivingRemove(&w->living));
  PetscCall(PetscFree(w->data));
  PetscCall(PetscFree(w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NULL: the object is not wrapped */
PetscErrorCode GPUCSRWrapGet(PetscObject o, GPUCSRWrap **w)
{
  PetscContainer c;

  PetscFunctionBegin;
  *w = NULL;
  PetscCall(PetscObjectQuery(o, KEY, (PetscObject *)&c));
  if (c) PetscCall(PetscContainerGetPointer(c, (void **)w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRWrapData(PetscObject o, void *data)
{
  GPUCSRWrap *w;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet(o, &w));
  PetscCheck(w, PETSC_COMM_SELF, PETSC_ERR_PLIB, "An object of type %s has lost our data", o->type_name);
  *(void **)data = w->data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCReset_Wrap(PC pc)
{
  GPUCSRWrap *w;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet((PetscObject)pc, &w));
  PetscCall(Release(w));
  PetscCall(PetscObjectStateIncrease((PetscObject)pc)); /* counts objects made and resets: what a solver has of the PC is old */
  if (w->petsc.pc.reset) PetscCall((*w->petsc.pc.reset)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes the wrap off. The object's destructor is then PETSc's */
static PetscErrorCode Unwrap(PetscObject o, GPUCSRWrapOps *petsc)
{
  GPUCSRWrap *w;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet(o, &w));
  *petsc = w->petsc;
  PetscCall(PetscObjectCompose(o, KEY, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCDestroy_Wrap(PC pc)
{
  GPUCSRWrapOps petsc;

  PetscFunctionBegin;
  PetscCall(Unwrap((PetscObject)pc, &petsc));
  if (petsc.pc.destroy) PetscCall((*petsc.pc.destroy)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDestroy_Wrap(KSP ksp)
{
  GPUCSRWrapOps petsc;

  PetscFunctionBegin;
  PetscCall(Unwrap((PetscObject)ksp, &petsc));
  if (petsc.ksp.destroy) PetscCall((*petsc.ksp.destroy)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Puts the type's operations in place of PETSc's, also in place of operations that PETSc has set since */
PetscErrorCode GPUCSRWrapOver(PetscObject o, GPUCSRWrap *w)
{
  const PetscBool pc   = (PetscBool)(o->classid == PC_CLASSID);
  char           *now  = pc ? (char *)((PC)o)->ops : (char *)((KSP)o)->ops;
  GPUCSRWrapOps   over = w->type->ops;
  void (*f[2])(void);

  PetscFunctionBegin;
  if (pc) {
    over.pc.reset   = PCReset_Wrap;
    over.pc.destroy = PCDestroy_Wrap;
    if (!((PC)o)->ops->reset) ((PC)o)->ops->reset = PCReset_Wrap; /* where PETSc has nothing to reset */
  } else over.ksp.destroy = KSPDestroy_Wrap;
  for (size_t at = 0; at < (pc ? sizeof(over.pc) : sizeof(over.ksp)); at += sizeof(f[0])) {
    memcpy(&f[0], now + at, sizeof(f[0]));
    memcpy(&f[1], (char *)&over + at, sizeof(f[1]));
    if (!f[0] || !f[1] || f[0] == f[1]) continue;
    memcpy((char *)&w->petsc + at, &f[0], sizeof(f[0]));
    memcpy(now + at, &f[1], sizeof(f[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From PETSc 3.24 on, types with solvers inside keep the failure of such a solver. The set-up tells anew */
PetscErrorCode PCSetUp_WrapAnew(PC pc)
{
  GPUCSRWrap *w;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet((PetscObject)pc, &w));
  PetscCall(PCSetFailedReason(pc, PC_NOERROR));
  PetscCall((*w->petsc.pc.setup)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes PETSc's object and wraps it. If PETSc makes the object from another wrapped type (PCGAMG from PCMG), one wrap of the outer type has the data of both */
PetscErrorCode GPUCSRWrapCreate(PetscObject o, const GPUCSRWrapType *t)
{
  GPUCSRWrap    *w;
  PetscContainer c;

  PetscFunctionBegin;
  if (o->classid == PC_CLASSID) PetscCall((*(PetscErrorCode(*)(PC))t->petsc)((PC)o));
  else PetscCall((*(PetscErrorCode(*)(KSP))t->petsc)((KSP)o));
  PetscCall(GPUCSRWrapGet(o, &w));
  if (!w || w->type->release != t->release || w->type->bytes != t->bytes) {
    PetscCall(PetscNew(&w));
    w->type = t;
    PetscCall(PetscCalloc(t->bytes, &w->data));
    if (t->bytes) *(GPUCSRWrap **)w->data = w;
    PetscCall(GPUCSRLivingAdd(&wraps, &w->living, w));
    PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &c));
    PetscCall(PetscContainerSetPointer(c, w));
    PetscCall(PetscContainerSetDestroyCompat(c, Free));
    PetscCall(PetscObjectCompose(o, KEY, (PetscObject)c));
    PetscCall(PetscContainerDestroy(&c));
  }
  w->type = t;
  PetscCall(PetscObjectStateIncrease(o));
  PetscCall(GPUCSRWrapOver(o, w));
  if (t->made) PetscCall((*t->made)(o, w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Wraps also a type of the program under the same name */
PetscErrorCode GPUCSRWrapRegister(PetscFunctionList *list, GPUCSRWrapType *t)
{
  void (*petsc)(void) = NULL;

  PetscFunctionBegin;
  if (!GPUCSR_SCALAR_IS_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCInitializePackage());
  PetscCall(KSPInitializePackage());
  PetscCall(PetscFunctionListFind(*list, t->type, &petsc));
  if (!petsc || petsc == t->create) PetscFunctionReturn(PETSC_SUCCESS);
  t->petsc = petsc;
  PetscCall(PetscFunctionListAdd(list, t->type, t->create));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Column j of a linear operation, from a vector with a one in each count-th entry from the j-th on */
static PetscErrorCode Column(PetscErrorCode (*apply)(void *, Vec, Vec), void *ctx, PetscInt first, PetscInt count, PetscInt j, const PetscInt place[], Vec unit, Vec column, double rows[])
{
  PetscScalar       *u;
  const PetscScalar *c;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(unit, &n));
  PetscCall(VecGetArrayWrite(unit, &u));
  for (PetscInt i = 0; i < n; i++) u[i] = (place ? place[i] : (first + i) % count) == j;
  PetscCall(VecRestoreArrayWrite(unit, &u));
  PetscCall((*apply)(ctx, unit, column));
  PetscCall(VecGetArrayRead(column, &c));
  for (PetscInt i = 0; i < n; i++) rows[(size_t)i * (size_t)count + (size_t)j] = (double)PetscRealPart(c[i]);
  PetscCall(VecRestoreArrayRead(column, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Columns of a linear operation on vectors of n entries of this process, as rows of this process' entries. These are the blocks of a block-diagonal operation of block size count, or, with count its
  size, all of it. first: the number of this process' first entry. place: of each entry in its block of at most count, where blocks differ in size; NULL: they do not
*/
PetscErrorCode GPUCSRProbe(MPI_Comm comm, PetscErrorCode (*apply)(void *, Vec, Vec), void *ctx, PetscInt n, PetscInt first, PetscInt count, const PetscInt place[], double rows[])
{
  Vec            unit, column;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(VecCreateMPI(comm, n, PETSC_DETERMINE, &unit));
  PetscCall(VecDuplicate(unit, &column));
  for (PetscInt j = 0; j < count; j++) GPUCSRKeep(&ierr, Column(apply, ctx, first, count, j, place, unit, column, rows));
  PetscCall(VecDestroy(&unit));
  PetscCall(VecDestroy(&column));
  PetscFunctionReturn(ierr);
}
