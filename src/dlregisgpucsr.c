/*
  The library as PETSc opens it: every type that it holds is registered here, and all of it is given back here.
*/
#include "mat/impls/gpucsr/gpucsrimpl.h"
#include "ksp/impls/gpu/gpukspimpl.h"
#include "tao/impls/bmrm/gpubmrm.h"
#if PetscDefined(HAVE_CUDA) && PetscDefined(HAVE_OPENMPI)
  #include <mpi-ext.h>
#endif

static PetscBool initialized = PETSC_FALSE;

#if PetscDefined(HAVE_CUDA)
/* What cannot be known is taken as known: PETSc then does as it would without us */
static PetscBool MPIKnowsGPUs(void)
{
  #if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() ? PETSC_TRUE : PETSC_FALSE;
  #else
  return PETSC_TRUE;
  #endif
}
#endif

/* A plugin loaded into a PETSc other than the one it was compiled for must say so before it touches an object */
static PetscErrorCode CheckPETSc(void)
{
  PetscInt      major, minor, subminor, release;
  PetscDataType scalar;
  PetscBool     found;
  size_t        intsize;

  PetscFunctionBegin;
  /* first of all, since a PETSc with other indices fills our numbers in another width */
  PetscCall(PetscDataTypeGetSize(PETSC_INT, &intsize));
  PetscCheck(intsize == sizeof(PetscInt), PETSC_COMM_WORLD, PETSC_ERR_LIB, "libpetscgpucsr.so was built for a PETSc with %d-bit indices and is loaded into one with %d-bit indices: build it again against the PETSc that the program uses", (int)(8 * sizeof(PetscInt)), (int)(8 * intsize));
  PetscCall(PetscGetVersionNumber(&major, &minor, &subminor, &release));
  PetscCheck(major == PETSC_VERSION_MAJOR && minor == PETSC_VERSION_MINOR, PETSC_COMM_WORLD, PETSC_ERR_LIB, "libpetscgpucsr.so was built for PETSc %d.%d and is loaded into PETSc %d.%d: build it again against the PETSc that the program uses", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, (int)major, (int)minor);
  PetscCall(PetscDataTypeFromString("scalar", &scalar, &found));
  PetscCheck(found && scalar == PETSC_SCALAR, PETSC_COMM_WORLD, PETSC_ERR_LIB, "libpetscgpucsr.so was built for a PETSc with %s scalars and is loaded into one with %s scalars: build it again against the PETSc that the program uses", PetscDataTypes[PETSC_SCALAR], found ? PetscDataTypes[scalar] : "unknown");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRFinalizePackage - Print the report if one was asked for, and give the devices back

  Collective on `PETSC_COMM_WORLD`

  Level: developer

  Note:
  `PetscFinalize()` calls it. Matrices still alive keep their values; their next product would start over.

.seealso: `MATGPUCSR`, `MatGPUCSRInitializePackage()`
@*/
PetscErrorCode MatGPUCSRFinalizePackage(void)
{
  PetscFunctionBegin;
  if (!initialized) PetscFunctionReturn(PETSC_SUCCESS);
  initialized = PETSC_FALSE;
  PetscCall(KSPGPUFinalize_Private());
  PetscCall(MatGPUCSRReportPrint_Private());
  PetscCall(GPUCSRPinFinalize());
  PetscCall(VecGPUFinalize());
  PetscCall(GPUCSRPlanFinalize());
  PetscCall(GPUCSRKernelsRelease());
  PetscCall(GPUCSRSysFinalize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A GPU that all matrices insist on and some rank has not: said now, once for all ranks. Matrices and vectors of one process could
  later only say so each by itself.
*/
static PetscErrorCode CheckBackend(void)
{
  PetscMPIInt    rank, size, mine[2], missing, first;
  PetscBool      cuda;
  char           word[16] = "", why[512] = "";
  GPUCSRDevice   dev = NULL;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_backend", word, sizeof(word), NULL)); /* a wrong word is for the first matrix to refuse */
  PetscCall(PetscStrcasecmp(word, MatGPUCSRBackends[MAT_GPUCSR_BACKEND_CUDA], &cuda));
  if (!cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = GPUCSRDeviceOpen("cuda", &dev, why, sizeof(why));
  PetscCall(GPUCSRAttemptEnd(&attempt));
  if (ierr) PetscCall(PetscStrncpy(why, attempt.message, sizeof(why)));
  mine[0] = dev ? 0 : 1;
  mine[1] = dev ? size : rank;
  PetscCallMPI(MPI_Allreduce(&mine[0], &missing, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCallMPI(MPI_Allreduce(&mine[1], &first, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  if (!missing) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Bcast(why, (PetscMPIInt)sizeof(why), MPI_CHAR, first, PETSC_COMM_WORLD));
  SETERRQ(PETSC_COMM_WORLD, PETSC_ERR_GPU, "-mat_gpucsr_backend cuda cannot be had: %s (met by rank %d, on %d of %d ranks in all); auto would compute on the host", why, (int)first, (int)missing, (int)size);
}

/*@C
  MatGPUCSRInitializePackage - Register `MATGPUCSR`, `VECGPU`, `KSPGPUCG`, `KSPGPUBCGS` and `TAOGPUBMRM` with PETSc

  Collective on `PETSC_COMM_WORLD`

  Level: intermediate

  Notes:
  A program that links the library calls this after `PetscInitialize()`; one that loads it with -dll_append need not. Calling
  it again does nothing.

  It is an error if another copy of the library, with symbols of its own, is registered already, or if the PETSc at hand is not the one that the
  library was built for (minor version, scalar type, index size), or if -mat_gpucsr_backend cuda asks for a GPU that some rank does not have.

.seealso: `MATGPUCSR`, `MatGPUCSRFinalizePackage()`
@*/
PetscErrorCode MatGPUCSRInitializePackage(void)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (initialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CheckPETSc());
  PetscCall(MatGPUCSRRegister_Private());
  PetscCall(GPUCSRSysInitialize());
  ierr = CheckBackend();
  if (ierr) PetscCall(GPUCSRSysFinalize()); /* PETSc may be initialised again */
  PetscCall(ierr);
  PetscCall(GPUCSRPlanInitialize());
  PetscCall(VecGPUInitialize());
  PetscCall(KSPGPUInitialize_Private());
  PetscCall(TaoGPUBMRMRegister());
#if PetscDefined(HAVE_CUDA)
  { /* PETSc aborts when it makes a device vector on several ranks of an MPI that knows nothing of GPUs; our halo needs no such MPI */
    PetscBool set;

    PetscCall(PetscOptionsHasName(NULL, NULL, "-use_gpu_aware_mpi", &set));
    if (!set && use_gpu_aware_mpi && !MPIKnowsGPUs()) {
      use_gpu_aware_mpi = PETSC_FALSE;
      PetscCall(PetscInfo(NULL, "MPI is not GPU-aware: set -use_gpu_aware_mpi 0\n"));
    }
  }
#endif
  PetscCall(PetscRegisterFinalize(MatGPUCSRFinalizePackage));
  initialized = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  PetscDLLibraryRegister_petscgpucsr - What PETSc calls when it opens libpetscgpucsr.so

  Collective on `PETSC_COMM_WORLD`

  Level: developer

.seealso: `MatGPUCSRInitializePackage()`
@*/
PetscErrorCode PetscDLLibraryRegister_petscgpucsr(void)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRInitializePackage());
  PetscFunctionReturn(PETSC_SUCCESS);
}
