#pragma once

/*
  Types of PC and KSP that are PETSc's but for some operations. Such a type is registered again under PETSc's name. Its constructor lets PETSc make the object, keeps PETSc's operations and puts others over
  them. And probing: the columns of a linear operation.
*/
#include <petsc/private/pcimpl.h>  /* the operations of a PC, which a wrap replaces */
#include <petsc/private/kspimpl.h> /* those of a KSP */
#include "../sys/gpucsrsys.h"

/* A table of operations: all members point to functions */
typedef union {
  struct _PCOps  pc;
  struct _KSPOps ksp;
} GPUCSRWrapOps;

typedef struct {
  const char *type;
  void (*ours)(void);                    /* the constructor that is registered, which calls GPUCSRWrapCreate() */
  GPUCSRWrapOps ops;                     /* stand where PETSc has one. reset() and destroy() are the wrap's */
  size_t        bytes;                   /* of an object's data, zeros at first */
  PetscErrorCode (*release)(void *data); /* frees what data have on a device; NULL: nothing */
  void (*petsc)(void);                   /* PETSc's constructor, found at registration */
} GPUCSRWrapType;

/* Of an object */
typedef struct {
  const GPUCSRWrapType *type;
  GPUCSRWrapOps         petsc; /* PETSc's operations, where others stand */
  void                 *data;
  GPUCSRLiving          living;
} GPUCSRWrap;

GPUCSR_INTERN PetscErrorCode GPUCSRWrapRegister(PetscFunctionList *, size_t, GPUCSRWrapType[]);
GPUCSR_INTERN PetscErrorCode GPUCSRWrapCreate(PetscObject, const GPUCSRWrapType *, GPUCSRWrap **);
GPUCSR_INTERN PetscErrorCode GPUCSRWrapGet(PetscObject, GPUCSRWrap **);
GPUCSR_INTERN PetscErrorCode GPUCSRWrapOver(PetscObject, GPUCSRWrap *);

GPUCSR_INTERN PetscErrorCode GPUCSRProbe(PetscErrorCode (*)(void *, Vec, Vec), void *, PetscInt first, PetscInt count, Vec, Vec, double[]);
