#pragma once

/*
  Types of PC and KSP with some operations in place of PETSc's. The library registers such a type again under PETSc's name. The constructor lets PETSc make the object, keeps PETSc's operations and replaces
  some of them. And probing: the columns of a linear operation.
*/
#include <petsc/private/pcimpl.h>  /* the operations of a PC, which a wrap replaces */
#include <petsc/private/kspimpl.h> /* the operations of a KSP */
#include "../sys/gpucsrsys.h"

/* A table of operations: all members point to functions */
typedef union {
  struct _PCOps  pc;
  struct _KSPOps ksp;
} GPUCSRWrapOps;

typedef struct _n_GPUCSRWrapType GPUCSRWrapType;

/* Of an object */
typedef struct {
  const GPUCSRWrapType *type;
  GPUCSRWrapOps         petsc; /* the operations that were replaced */
  void                 *data;
  PetscBool             failed; /* of a KSP: its PC has failed in the last solve, not in the set-up before */
  GPUCSRLiving          living;
} GPUCSRWrap;

struct _n_GPUCSRWrapType {
  const char   *type;
  GPUCSRWrapOps ops;                                 /* each replaces PETSc's, if PETSc has one. reset() and destroy() are the wrap's */
  size_t        bytes;                               /* of an object's data, zeros at first; they begin with a pointer to the wrap */
  PetscErrorCode (*release)(void *data);             /* frees what data have on a device; NULL: nothing */
  PetscErrorCode (*made)(PetscObject, GPUCSRWrap *); /* the rest of an object's making; NULL: nothing */
  void (*create)(void);                              /* the constructor that is registered, which calls GPUCSRWrapCreate() */
  void (*petsc)(void);                               /* PETSc's constructor, set by the registration */
};

/* A type of PC or KSP, wrap_NAME, with its constructor. One each, because a program may have registered it under a further name: then an object's type name does not tell the type. ...: other members */
#define GPUCSR_WRAP(Object, name, petsc, ...) \
  static PetscErrorCode Object##Create_##name##_GPUCSR(Object); \
  static GPUCSRWrapType wrap_##name = {.type = petsc, .create = (void (*)(void))Object##Create_##name##_GPUCSR, __VA_ARGS__}; \
  static PetscErrorCode Object##Create_##name##_GPUCSR(Object o) \
  { \
    return GPUCSRWrapCreate((PetscObject)o, &wrap_##name); \
  }

/* The function that registers these types in PETSc's list */
#define GPUCSR_WRAP_REGISTER(function, list, ...) \
  PetscErrorCode function(void) \
  { \
    GPUCSRWrapType *const all[] = {__VA_ARGS__}; \
\
    PetscFunctionBegin; \
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) PetscCall(GPUCSRWrapRegister(&list, all[k])); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

GPUCSR_INTERN PetscErrorCode GPUCSRWrapRegister(PetscFunctionList *, GPUCSRWrapType *);
GPUCSR_INTERN PetscErrorCode GPUCSRWrapCreate(PetscObject, const GPUCSRWrapType *);
GPUCSR_INTERN PetscErrorCode GPUCSRWrapGet(PetscObject, GPUCSRWrap **);
GPUCSR_INTERN PetscErrorCode GPUCSRWrapData(PetscObject, void *data); /* data: the address of a pointer */
GPUCSR_INTERN PetscErrorCode GPUCSRWrapOver(PetscObject, GPUCSRWrap *);
GPUCSR_INTERN PetscErrorCode PCSetUp_WrapAnew(PC);

GPUCSR_INTERN PetscErrorCode GPUCSRProbe(MPI_Comm, PetscErrorCode (*)(void *, Vec, Vec), void *, PetscInt n, PetscInt first, PetscInt count, const PetscInt place[], double rows[]);
