#pragma once

/*
  Differences between the supported PETSc releases, 3.18 to 3.25, in one place.
*/
#include <petscsys.h>
#include <petscversion.h>

#if PETSC_VERSION_LT(3, 18, 0) || PETSC_VERSION_GT(3, 25, 99)
  #error "libpetscgpucsr supports PETSc 3.18 to 3.25; pkg-config found another release"
#endif

#if PETSC_VERSION_LT(3, 19, 0)
  #define PETSC_SUCCESS PETSC_COMPAT_SUCCESS
typedef enum {
  PETSC_COMPAT_SUCCESS = 0
} GPUCSRPetscSuccess;
#endif

#if PETSC_VERSION_LT(3, 20, 0)
  #define PetscAssertPointerCompat(p, n) PetscValidPointer(p, n)
#else
  #define PetscAssertPointerCompat(p, n) PetscAssertPointer(p, n)
#endif

/* The device formats hold real numbers and 32-bit indices; in any other PETSc the matrix keeps MATAIJ's products */
#if defined(PETSC_USE_REAL_DOUBLE) && !defined(PETSC_USE_COMPLEX)
  #define GPUCSR_SCALAR_IS_DOUBLE 1
#else
  #define GPUCSR_SCALAR_IS_DOUBLE 0
#endif

#if PETSC_VERSION_LT(3, 23, 0)
  #define GPUCSROptionItems PetscOptionItems *
#else
  #define GPUCSROptionItems PetscOptionItems
#endif

/* Type of the ranks that PetscSF returns */
#if PETSC_VERSION_LT(3, 22, 0)
  #define GPUCSRSFCount PetscInt
#else
  #define GPUCSRSFCount PetscMPIInt
#endif

/* The type of MPI that a PetscBool has */
#if PETSC_VERSION_LT(3, 24, 0)
  #define GPUCSR_MPI_BOOL MPIU_BOOL
#else
  #define GPUCSR_MPI_BOOL MPI_C_BOOL
#endif
