/*
  Vectors made from a VECGPU: duplicates, and vectors with its entries or a part of them, subvectors and local vectors. Such vectors share one set of entries, so a change to one vector is a change to
  all.
*/
#include "vecgpuimpl.h"

static PetscBool IsStandard(Vec v)
{
  return (PetscBool)(GPUCSRIsType(v, VECSEQ) || GPUCSRIsType(v, VECMPI));
}

/* A vector with the name of the standard type makes vectors with that name */
static PetscErrorCode SetTypeAs(Vec v, PetscBool mpi, Vec w)
{
  const PetscBool standard = IsStandard(v);

  PetscFunctionBegin;
  PetscCall(VecSetType(w, mpi ? VECMPIGPU : VECSEQGPU));
  if (standard) PetscCall(PetscObjectChangeTypeName((PetscObject)w, mpi ? VECMPI : VECSEQ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* w: without a type; becomes a vector like v, except for its operations */
static PetscErrorCode Inherit(Vec v, PetscBool mpi, Vec w)
{
  PetscFunctionBegin;
  PetscCall(PetscLayoutReference(v->map, &w->map));
  PetscCall(SetTypeAs(v, mpi, w));
  w->stash.donotstash   = v->stash.donotstash;
  w->stash.ignorenegidx = v->stash.ignorenegidx;
  w->stash.bs           = v->stash.bs;
  w->bstash.bs          = v->bstash.bs;
  PetscCall(PetscObjectListDuplicate(((PetscObject)v)->olist, &((PetscObject)w)->olist));
  PetscCall(PetscFunctionListDuplicate(((PetscObject)v)->qlist, &((PetscObject)w)->qlist));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whole, or none */
static PetscErrorCode VecDuplicate_GPU(Vec v, Vec *w)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *w = NULL;
  PetscCall(VecCreate(PetscObjectComm((PetscObject)v), w));
  ierr = Inherit(v, VecGPUOf(v)->mpi, *w);
  if (ierr) PetscCall(VecDestroy(w));
  PetscCall(ierr);
  /* a DM sets operations of its vectors and composes objects */
  *(*w)->ops          = *v->ops;
  VecGPUOf(*w)->bound = VecGPUOf(v)->bound;
#if PetscDefined(HAVE_DEVICE)
  (*w)->boundtocpu        = v->boundtocpu;
  (*w)->bindingpropagates = v->bindingpropagates;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All, or none */
static PetscErrorCode VecDuplicateVecs_GPU(Vec v, PetscInt m, Vec *w[])
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(m, w));
  for (PetscInt k = 0; k < m && !ierr; k++) ierr = VecDuplicate(v, *w + k);
  if (!ierr) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < m; k++) PetscCall(VecDestroy(*w + k));
  PetscCall(PetscFree(*w));
  PetscFunctionReturn(ierr);
}

PetscErrorCode VecGPUDuplicate(Vec v, Vec *w)
{
  typedef void (*Operation)(void);
  const Operation *set, *usual;
  Vec              like, local;
  PetscBool        mpi, ghosts = PETSC_FALSE;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(v, w));
  like = *w;
  if (PetscDefined(HAVE_DEVICE) || !IsStandard(like) || VecGPUIs(like)) PetscFunctionReturn(PETSC_SUCCESS); /* a PETSc with devices compares types by name */
  mpi = GPUCSRIsType(like, VECMPI);
  if (mpi) {
    PetscCall(VecGhostGetLocalForm(like, &local));
    ghosts = (PetscBool)(local != NULL); /* behind its array */
    PetscCall(VecGhostRestoreLocalForm(like, &local));
  }
  if (ghosts) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecCreate(PetscObjectComm((PetscObject)v), w));
  ierr  = Inherit(like, mpi, *w);
  set   = (const Operation *)like->ops;
  usual = (const Operation *)&VecGPUParents[mpi];
  for (size_t k = 0; k < sizeof(*like->ops) / sizeof(Operation) && !ierr; k++) /* keeps operations that a DM or the program has set */
    if (set[k] != usual[k]) ((Operation *)(*w)->ops)[k] = set[k];
  PetscCall(VecDestroy(&like));
  if (ierr) PetscCall(VecDestroy(w));
  PetscFunctionReturn(ierr);
}

/* --- Other entries in place of a vector's own */

PetscErrorCode VecGPUExchange_Private(Vec v, VecGPUEntries *entries, PetscInt start)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  PetscCheck(!g->before, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Another array is in place of this vector's already: call VecResetArray() or VecRestoreLocalVector() first");
  g->before      = g->entries;
  g->startbefore = g->start;
  g->entries     = entries;
  g->start       = start;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUComeBack_Private(Vec v)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  if (!g->before) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGPUEntriesRelease_Private(&g->entries, g->before));
  g->entries = g->before;
  g->start   = g->startbefore;
  g->before  = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Local vectors */

static PetscErrorCode VecCreateLocalVector_GPU(Vec v, Vec *w)
{
  PetscInt bs;

  PetscFunctionBegin;
  PetscCall(VecGetBlockSize(v, &bs));
  PetscCall(VecCreate(PETSC_COMM_SELF, w));
  PetscCall(VecSetSizes(*w, v->map->n, v->map->n));
  PetscCall(VecSetBlockSize(*w, bs));
  PetscCall(SetTypeAs(v, PETSC_FALSE, *w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* w gets v's entries. If w is of another type, it becomes a VECGPU if possible, because each use of the host's array would copy */
static PetscErrorCode GetLocalVector(Vec v, PetscBool write, Vec w)
{
  Vec_GPU            *g = VecGPUOf(v);
  const VecGPUHeader *h = (const VecGPUHeader *)w->data;
  PetscScalar        *a;

  PetscFunctionBegin;
  /* PCBJACOBI creates standard vectors for the arrays of local vectors. No pointer into such a vector exists */
  if (GPUCSRIsType(w, VECSEQ) && !VecGPUIs(w) && w->petscnative && !h->array && !h->array_allocated && !h->unplacedarray && !g->bound) PetscCall(VecGPUSetTypeUnasked(w));
  if (VecGPUIs(w)) {
    PetscCall(VecGPUExchange_Private(w, g->entries, g->start));
    g->entries->references++;
  } else {
    PetscCall(VecGPUHostGet_Private(v, PETSC_TRUE, write, &a));
    PetscCall(VecPlaceArray(w, a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RestoreLocalVector(Vec v, PetscBool write, Vec w)
{
  PetscFunctionBegin;
  if (VecGPUIs(w)) PetscCall(VecGPUComeBack_Private(w));
  else {
    PetscCall(VecResetArray(w));
    PetscCall(VecGPUHostRestore_Private(v, write, NULL));
  }
  if (write) PetscCall(PetscObjectStateIncrease((PetscObject)v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecGetLocalVectorRead_GPU(Vec v, Vec w)
{
  return GetLocalVector(v, PETSC_FALSE, w);
}

static PetscErrorCode VecRestoreLocalVectorRead_GPU(Vec v, Vec w)
{
  return RestoreLocalVector(v, PETSC_FALSE, w);
}

static PetscErrorCode VecGetLocalVector_GPU(Vec v, Vec w)
{
  return GetLocalVector(v, PETSC_TRUE, w);
}

static PetscErrorCode VecRestoreLocalVector_GPU(Vec v, Vec w)
{
  return RestoreLocalVector(v, PETSC_TRUE, w);
}

/* --- Subvectors */

/* One piece: a vector with a part of v's entries; otherwise a copy, scattered on the host */
static PetscErrorCode VecGetSubVector_GPU(Vec v, IS is, Vec *sub)
{
  Vec_GPU    *whole = VecGPUOf(v), *part;
  PetscInt    n, total, first, end, start = 0, bs, vbs, locked = 0;
  PetscMPIInt all[2];
  PetscBool   contiguous;
  Vec         w;

  PetscFunctionBegin;
  PetscCall(ISGetLocalSize(is, &n));
  PetscCall(ISGetSize(is, &total));
  PetscCall(ISGetBlockSize(is, &bs));
  PetscCall(VecGetBlockSize(v, &vbs));
  PetscCall(VecGetOwnershipRange(v, &first, &end));
  PetscCall(ISContiguousLocal(is, first, end, &start, &contiguous));
  all[0] = contiguous; /* the indices of every rank are one piece of its part of v */
  all[1] = n % vbs == 0;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)v)));
  if (bs <= 1) bs = all[1] ? vbs : 1;
  PetscCall(VecCreate(PetscObjectComm((PetscObject)v), &w));
  PetscCall(VecSetSizes(w, n, total));
  PetscCall(VecSetBlockSize(w, bs));
  PetscCall(SetTypeAs(v, whole->mpi, w));
  part = VecGPUOf(w);
  if (all[0]) {
    PetscCall(VecGPUEntriesRelease_Private(&part->entries, NULL));
    part->entries = whole->entries;
    part->start   = whole->start + start;
    part->bound   = whole->bound;
    whole->entries->references++;
    PetscCall(VecLockGet(v, &locked));
    if (locked) PetscCall(VecLockReadPush(w));
  } else {
    PetscCall(VecScatterCreate(v, is, w, NULL, &part->scatter));
    PetscCall(VecScatterBegin(part->scatter, v, w, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(part->scatter, v, w, INSERT_VALUES, SCATTER_FORWARD));
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)w)); /* PETSc may have cached the norm of older entries */
  part->got = GPUCSRStateOf(w);
  *sub      = w;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies changes of a copy back; the caller destroys the subvector */
static PetscErrorCode VecRestoreSubVector_GPU(Vec v, IS is, Vec *sub)
{
  Vec_GPU               *g     = VecGPUOf(*sub);
  const PetscObjectState state = GPUCSRStateOf(*sub);

  PetscFunctionBegin;
  if (state == g->got) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecSetErrorIfLocked(v, 1));
  if (g->scatter) {
    PetscCall(VecScatterBegin(g->scatter, *sub, v, INSERT_VALUES, SCATTER_REVERSE));
    PetscCall(VecScatterEnd(g->scatter, *sub, v, INSERT_VALUES, SCATTER_REVERSE));
  } else PetscCall(PetscObjectStateIncrease((PetscObject)v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void VecGPUPartOperations_Private(struct _VecOps *o)
{
  o->duplicate              = VecDuplicate_GPU;
  o->duplicatevecs          = VecDuplicateVecs_GPU;
  o->createlocalvector      = VecCreateLocalVector_GPU;
  o->getlocalvector         = VecGetLocalVector_GPU;
  o->restorelocalvector     = VecRestoreLocalVector_GPU;
  o->getlocalvectorread     = VecGetLocalVectorRead_GPU;
  o->restorelocalvectorread = VecRestoreLocalVectorRead_GPU;
  o->getsubvector           = VecGetSubVector_GPU;
  o->restoresubvector       = VecRestoreSubVector_GPU;
}
