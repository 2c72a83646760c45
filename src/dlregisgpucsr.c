/*
  The library as PETSc opens it: every type that it holds is registered here, and all of it is given back here.
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
  PetscCall(GPUCSROptionsCheck());
  PetscCall(KSPGPUFinalize_Private());
  PetscCall(PCMGFinalize_Private());
  PetscCall(PCBlocksFinalize_Private());
  PetscCall(PCDeviceFinalize_Private());
  PetscCall(MatGPUCSRReportPrint_Private());
  PetscCall(MatGPUCSRProductsForget_Private());
  PetscCall(GPUCSRHalosForget());
  PetscCall(MatGPUCSRDevicesForget_Private());
  PetscCall(GPUCSRPinFinalize());
  PetscCall(VecGPUFinalize());
  PetscCall(GPUCSRPlanFinalize());
  PetscCall(GPUCSRKernelsRelease());
  PetscCall(GPUCSRSysFinalize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What one rank is asked for and all do together: a report, for one */
static PetscErrorCode AskedOfAny(MPI_Comm comm, PetscBool cuda[2])
{
  int       asked[2];
  char      word[16] = "";
  PetscBool mine;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_backend", word, sizeof(word), NULL)); /* a wrong word is for the first matrix to refuse */
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
  A GPU that all matrices insist on and some rank has not: said now, once for all ranks. Matrices and vectors of one process could
  later only say so each by itself. A rank that was not asked has none to miss.
*/
static PetscErrorCode CheckBackend(MPI_Comm comm)
{
  PetscMPIInt   size, first;
  int           mine, missing;
  PetscBool     cuda[2]  = {PETSC_FALSE, PETSC_FALSE}; /* asked of this rank, and of any */
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
  SETERRQ(comm, PETSC_ERR_GPU, "-mat_gpucsr_backend cuda cannot be had: %s (met by rank %d, on %d of %d ranks in all); auto would compute on the host", why, (int)first, (int)missing, (int)size);
}

/* Collective on comm; PETSC_COMM_SELF where a program that links the library comes to its first matrix, which some ranks may make alone */
PetscErrorCode MatGPUCSRInitialize_Private(MPI_Comm comm)
{
  PetscErrorCode ierr;
  char           why[256];

  PetscFunctionBegin;
  if (initialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRForeign(why, sizeof(why)));
  PetscCheck(!why[0], PETSC_COMM_WORLD, PETSC_ERR_LIB, "%s: build it again against the PETSc that the program uses", why);
  PetscCall(MatGPUCSRRegister_Private());
  PetscCall(GPUCSRSysInitialize());
  ierr = CheckBackend(comm);
  if (ierr) PetscCall(GPUCSRSysFinalize()); /* PETSc may be initialised again */
  PetscCall(ierr);
  PetscCall(GPUCSRPlanInitialize());
  PetscCall(VecGPUInitialize());
  PetscCall(KSPGPUInitialize_Private());
  PetscCall(KSPMethodsInitialize_Private());
  PetscCall(PCMGInitialize_Private());
  PetscCall(PCBlocksInitialize_Private());
  PetscCall(PCDeviceInitialize_Private());
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
  PetscFunctionBegin;
  PetscCall(MatGPUCSRInitialize_Private(PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  PetscDLLibraryRegister_petscgpucsr - What PETSc calls when it opens libpetscgpucsr.so

  Collective on `PETSC_COMM_WORLD`

  Options Database Key:
. -gpucsr_strict - an error, not a warning, where the library was built for a PETSc other than the program's

  Level: developer

  Note:
  In a PETSc with other scalars or indices, or of another minor version, the program runs without the library, and is told so once. Where it differs in
  scalars or indices alone our names of types stand for PETSc's own: options for all programs, from ~/.petscrc say, do no harm there.

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
    if (!strstr(why, "for PETSc ")) PetscCall(GPUCSRForeignNames());
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRInitializePackage());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc finds what a library registers by the name of its file, and says nothing where that is another one: only the loader gets here then */
static void __attribute__((constructor)) CheckName(void)
{
  Dl_info     info;
  const char *name;

  if (!dladdr((void *)PetscDLLibraryRegister_petscgpucsr, &info) || !info.dli_fname) return;
  name = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
  if (!strncmp(name, "lib", 3) && strncmp(name, "libpetscgpucsr", 14)) fprintf(stderr, "MATGPUCSR warning: %s is libpetscgpucsr.so under another name, by which PETSc does not find what it registers: give the file its name back\n", info.dli_fname);
}
