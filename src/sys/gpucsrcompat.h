#pragma once

/*
  The differences between PETSc 3.18 and 3.25. Code of the library tests the names of this table, never a version (tests/lint.sh). The headers of PETSc that only its sources use are included in
  one file of each room, with the reason: loadfile.h, vecgpuimpl.h, gpucsrimpl.h, petscprivate.h, methods.c, gpukspimpl.h and gpubmrm.c.
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

/* The context that PETSc destroys: the pointer itself before 3.23, its place from then on */
#if PETSC_VERSION_LT(3, 23, 0)
typedef void           GPUCSRContext; /* GPUCSRContext * is the argument of a destroyer */
typedef PetscErrorCode GPUCSRDestroyFn(GPUCSRContext *);
  #define GPUCSRDestroyContext(destroy, ctx) (*(destroy))(ctx)
#else
typedef void             *GPUCSRContext;
typedef PetscCtxDestroyFn GPUCSRDestroyFn;
  #define GPUCSRDestroyContext(destroy, ctx) (*(destroy))(&(ctx))
#endif

/* The same of a container */
#if PETSC_VERSION_LT(3, 23, 0)
  #define PetscContainerSetDestroyCompat PetscContainerSetUserDestroy
#else
  #define PetscContainerSetDestroyCompat PetscContainerSetCtxDestroy
#endif

/* The argument of product->destroy(): product->data before 3.25, its place from then on. From the argument to the data, and back */
#if PETSC_VERSION_LT(3, 25, 0)
  #define GPUCSRProductData(argument) (argument)
  #define GPUCSRProductArgument(data) ((void *)(data))
#else
  #define GPUCSRProductData(argument) (*(void **)(argument))
  #define GPUCSRProductArgument(data) ((void *)&(data))
#endif

/* Members, operations and habits that came with a release */
#define GPUCSR_KSP_HAS_NEGCURVE        PETSC_VERSION_GE(3, 19, 0) /* ksp->converged_neg_curve */
#define GPUCSR_DENSE_HAS_MEMTYPE       PETSC_VERSION_GE(3, 19, 0) /* MatDenseGetArrayReadAndMemType() */
#define GPUCSR_KSP_HAS_MINIT           PETSC_VERSION_GE(3, 20, 0) /* ksp->min_it */
#define GPUCSR_VEC_TYPE_KEEPS_NOTHING  PETSC_VERSION_GE(3, 20, 0) /* VecSetType() to another type drops the values */
#define GPUCSR_STREAM_IS_TOLD          PETSC_VERSION_GE(3, 20, 0) /* PetscDeviceContextGetStreamHandle(): the stream of PETSc's vectors */
#define GPUCSR_MAT_HAS_ROWSUMABS       PETSC_VERSION_GE(3, 21, 0) /* ops->getrowsumabs, and ops->eliminatezeros of two arguments */
#define GPUCSR_FGMRES_RECORDS_CYCLE    PETSC_VERSION_LT(3, 21, 0) /* FGMRES records the residual at the end of each cycle too */
#define GPUCSR_GMRES_RECORDS_BREAKDOWN PETSC_VERSION_GE(3, 22, 0) /* GMRES and FGMRES record the residual of a breakdown */
#define GPUCSR_CONTAINER_GIVES_PLACE   PETSC_VERSION_GE(3, 23, 0) /* its destructor gets the place of the pointer */
#define GPUCSR_HAS_PARAMETERS          PETSC_VERSION_GE(3, 23, 0) /* TaoParametersInitialize(), PetscObjectParameterSetDefault() */
#define GPUCSR_VEC_HAS_MAXPBY          PETSC_VERSION_GE(3, 24, 0) /* ops->maxpby */
#define GPUCSR_VECMPI_MAPS_GHOSTS      PETSC_VERSION_GE(3, 24, 0) /* ops->getlocaltoglobalmapping of VECMPI, which accepts no other type */
#define GPUCSR_GAMG_HAS_HEM_AGGS       PETSC_VERSION_GE(3, 24, 0) /* -pc_gamg_asm_hem_aggs */
