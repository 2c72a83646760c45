/*
  The library's entry for PETSc: registers every type here, and releases everything here.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* dladdr() */
#endif
#include "mat/impls/gpucsr/type/gpucsrimpl.h"
#include "mat/impls/gpucsr/mpi/halo.h"
#include "ksp/impls/petsc/methods.h"
#include "ksp/impls/gpu/common/gpukspimpl.h"
#include "ksp/pc/impls/blocks/device.h"
#include "ksp/pc/impls/blocks/pcblocks.h"
#include "ksp/pc/impls/gpuamg/gpuamg.h"
#include "ksp/pc/impls/mg/cycle.h"
#include "tao/impls/bmrm/gpubmrm.h"
#include "foreign.h"
#include <dlfcn.h>
#include <string.h>
#if PetscDefined(HAVE_CUDA) && PetscDefined(HAVE_OPENMPI)
  #include <mpi-ext.h>
#endif

static PetscBool initialized = PETSC_FALSE;

#if PetscDefined(HAVE_CUDA)
/* If unknown, assume yes: PETSc then behaves as without this library */
static PetscBool MPIKnowsGPUs(void)
{
  #if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() ? PETSC_TRUE : PETSC_FALSE;
  #else
  return PETSC_TRUE;
  #endif
}
#endif

/*@C
  MatGPUCSRFinalizePackage - Print the report if requested, and close the devices

  Collective on `PETSC_COMM_WORLD`

  Level: developer

  Note:
  `PetscFinalize()` calls it. Living matrices keep their values; their next product would start over.

.seealso: `MATGPUCSR`, `MatGPUCSRInitializePackage()`
@*/
PetscErrorCode MatGPUCSRFinalizePackage(void)
{
  PetscFunctionBegin;
  if (!initialized) PetscFunctionReturn(PETSC_SUCCESS);
  initialized = PETSC_FALSE;
  PetscCall(GPUCSRSysFinalize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A request on one rank for a collective action, a report for example */
static PetscErrorCode AskedOfAny(MPI_Comm comm, PetscBool cuda[2])
{
  int       asked[2];
  char      word[16] = "";
  PetscBool mine;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_backend", word, sizeof(word), NULL)); /* the first matrix reports a wrong word */
  PetscCall(PetscStrcasecmp(word, MatGPUCSRBackends[MAT_GPUCSR_BACKEND_CUDA], &mine));
  asked[0] = (int)mine;
  asked[1] = (int)GPUCSRSettingsGlobal.report;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, asked, 2, MPI_INT, MPI_MAX, comm));
  cuda[0]                     = mine;
  cuda[1]                     = (PetscBool)asked[0];
  GPUCSRSettingsGlobal.report = (PetscBool)asked[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Reports, once for all ranks, a GPU that all matrices require and some rank lacks. Later each process could only report it by itself. A rank without the requirement lacks nothing.
*/
static PetscErrorCode CheckBackend(MPI_Comm comm)
{
  PetscMPIInt   size, first;
  int           mine, missing;
  PetscBool     cuda[2]  = {PETSC_FALSE, PETSC_FALSE}; /* required on this rank, and on any */
  char          why[512] = "";
  GPUCSRDevice  dev      = NULL;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  PetscCall(AskedOfAny(comm, cuda));
  if (!cuda[1]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(comm, &size));
  GPUCSRTry(&attempt, cuda[0] ? GPUCSRDeviceOpen("cuda", &dev, why, sizeof(why)) : PETSC_SUCCESS);
  if (attempt.error) PetscCall(PetscStrncpy(why, attempt.message, sizeof(why)));
  mine = cuda[0] && !dev;
  PetscCallMPI(MPI_Allreduce(&mine, &missing, 1, MPI_INT, MPI_SUM, comm));
  if (!missing) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRAgree(comm, &mine, NULL, why, sizeof(why), &first));
  SETERRQ(comm, PETSC_ERR_GPU, "-mat_gpucsr_backend cuda is not possible here: %s (met by rank %d, on %d of %d ranks in all); auto would compute on the host", why, (int)first, (int)missing, (int)size);
}

/* Collective on comm; PETSC_COMM_SELF when a linked program makes its first matrix, possibly on some ranks only */
PetscErrorCode MatGPUCSRInitialize_Private(MPI_Comm comm)
{
  PetscErrorCode ierr;
  char           why[256];

  PetscFunctionBegin;
  if (initialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRForeign(why, sizeof(why)));
  PetscCheck(!why[0], PETSC_COMM_WORLD, PETSC_ERR_LIB, "%s: rebuild it with the program's PETSc", why);
  PetscCall(MatGPUCSRRegister_Private());
  PetscCall(GPUCSRSysInitialize());
  ierr = CheckBackend(comm);
  if (ierr) PetscCall(GPUCSRSysFinalize()); /* PETSc may be initialised again */
  PetscCall(ierr);
  PetscCall(GPUCSRRegisterFinalize(GPUCSR_FINAL_OPTIONS, GPUCSROptionsCheck));
  PetscCall(GPUCSRRegisterFinalize(GPUCSR_FINAL_REPORT, MatGPUCSRReportPrint_Private));
  PetscCall(GPUCSRPlanInitialize());
  PetscCall(VecGPUInitialize());
  PetscCall(KSPGPUInitialize_Private());
  PetscCall(KSPMethodsInitialize_Private());
  PetscCall(PCMGInitialize_Private());
  PetscCall(PCGPUAMGInitialize_Private());
  PetscCall(PCBlocksInitialize_Private());
  PetscCall(PCDeviceInitialize_Private());
  PetscCall(PCDirectInitialize_Private());
  PetscCall(PCJacobiInitialize_Private());
  PetscCall(TaoGPUBMRMRegister());
#if PetscDefined(HAVE_CUDA)
  { /* PETSc aborts on device vectors of several ranks if MPI lacks GPU support, which this library does not need */
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
  MatGPUCSRInitializePackage - Register `MATGPUCSR`, `VECGPU`, `KSPGPUCG`, `KSPGPUBCGS` and `TAOGPUBMRM` with PETSc

  Collective on `PETSC_COMM_WORLD`

  Level: intermediate

  Notes:
  A program that links the library calls this function after `PetscInitialize()`; with -dll_append PETSc calls it. Further
  calls do nothing.

  It is an error if another copy of the library is registered already. It is an error if the library was built for another PETSc (minor version,
  scalar type, index size). It is an error if a rank has no GPU with -mat_gpucsr_backend cuda.

.seealso: `MATGPUCSR`, `MatGPUCSRFinalizePackage()`
@*/
PetscErrorCode MatGPUCSRInitializePackage(void)
{
  return MatGPUCSRInitialize_Private(PETSC_COMM_WORLD);
}

/*@C
  PetscDLLibraryRegister_petscgpucsr - The function that PETSc calls when it opens libpetscgpucsr.so

  Collective on `PETSC_COMM_WORLD`

  Options Database Key:
. -gpucsr_strict - an error in place of a warning if the library is not built for the program's PETSc

  Level: developer

  Note:
  In a PETSc with other scalars or indices, or of another minor version, the program runs without the library, with one warning. If only
  scalars or indices differ, the library's type names stand for PETSc's own, so that options for all programs, as in ~/.petscrc, do no harm.

.seealso: `MatGPUCSRInitializePackage()`
@*/
PetscErrorCode PetscDLLibraryRegister_petscgpucsr(void)
{
  PetscBool strict = PETSC_FALSE;
  char      why[256];

  PetscFunctionBegin;
  PetscCall(GPUCSRForeign(why, sizeof(why)));
  if (why[0]) PetscCall(PetscOptionsGetBool(NULL, NULL, "-gpucsr_strict", &strict, NULL));
  if (why[0] && !strict) {
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR, "MATGPUCSR warning: %s: the program runs without it; -gpucsr_strict makes this an error\n", why));
    PetscCall(GPUCSRForeignNames());
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRInitializePackage());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc derives the registration function from the file's name, and ignores a renamed library: only the loader runs this constructor then */
static void __attribute__((constructor)) CheckName(void)
{
  Dl_info     info;
  const char *name;

  if (!dladdr((void *)PetscDLLibraryRegister_petscgpucsr, &info) || !info.dli_fname) return;
  name = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
  if (!strncmp(name, "lib", 3) && strncmp(name, "libpetscgpucsr", 14)) fprintf(stderr, "MATGPUCSR warning: %s is libpetscgpucsr.so under another name, and PETSc cannot register its types: restore the file's name\n", info.dli_fname);
}
