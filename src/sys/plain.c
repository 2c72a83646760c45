/*
  PETSc's errors and memory for device sources, which include none of PETSc's headers (plain.h).
*/
#include "plain.h"
#include <stdarg.h>

_Static_assert(GPUCSR_ERR_MEM == PETSC_ERR_MEM && GPUCSR_ERR_SUP == PETSC_ERR_SUP && GPUCSR_ERR_PLIB == PETSC_ERR_PLIB && GPUCSR_ERR_GPU == PETSC_ERR_GPU, "the error codes of plain.h are PETSc's");
_Static_assert(sizeof(PetscErrorCode) == sizeof(int), "device sources return an int for a PetscErrorCode");

int GPUCSRFail(const char file[], int line, const char function[], int code, const char format[], ...)
{
  char    message[1024];
  va_list arguments;

  va_start(arguments, format);
  (void)vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  return (int)PetscError(PETSC_COMM_SELF, line, function, file, (PetscErrorCode)code, PETSC_ERROR_INITIAL, "%s", message);
}

int GPUCSRPass(const char file[], int line, const char function[], int code)
{
  return (int)PetscError(PETSC_COMM_SELF, line, function, file, (PetscErrorCode)code, PETSC_ERROR_REPEAT, " ");
}

PetscErrorCode GPUCSRHostMalloc(size_t bytes, void **p)
{
  return PetscCalloc(bytes, p);
}

void GPUCSRHostFree(void **p)
{
  (void)PetscFree(*p);
}
