#pragma once

/* What the parts of the benchmark share: a problem's elements, and arrays of vectors on the device */
#include <petscksp.h>
#include <string.h>
#if PETSC_VERSION_LT(3, 19, 0)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

typedef struct {
  FILE       *out;
  const char *type, *master; /* of matrices */
  PetscInt    rounds, patterns, steps;
  PetscBool   variable; /* coefficients of Newton's steps differ */
  Vec         small;    /* on the device */
} Bench;

typedef struct {
  const char *name;
  PetscInt    n, corners; /* points a side, and points of an element */
  PetscInt    elements;
  PetscCount  len;
  PetscInt   *i, *j;
  double     *v;
} Problem;

extern PetscErrorCode Wait(const Bench *);
extern PetscErrorCode ArrayGet(Vec, const PetscScalar **);
extern PetscErrorCode ArrayRestore(Vec, const PetscScalar **);
extern PetscErrorCode Newton(const Bench *, const Problem *, Mat);
extern PetscErrorCode Stokes(const Bench *, PetscInt n);

/* Cells of a cube in slabs, and the equations on them */
typedef struct {
  PetscInt    n, first, planes; /* cells a side; this rank's */
  PetscBool   interlaced;
  PetscMPIInt rank, size;
} StokesGrid;

typedef struct {
  Mat A, S; /* S in place of the Schur complement */
  Vec f;
  IS  is[2]; /* velocities, pressures */
} StokesSystem;

extern void           StokesOwner(const StokesGrid *, PetscInt plane, PetscInt *first, PetscInt *planes);
extern PetscErrorCode TaylorHood(const Bench *, const StokesGrid *, StokesSystem *);

/* Copies of vectors over the bus, as PETSc's log has counted them in a stage */
extern PetscErrorCode Copies(PetscLogStage, double *);
