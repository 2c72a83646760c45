/*
  Opens libcudss.so.1 at run time: the file of -mat_gpucsr_cudss_library, the loader's, or the file of make cudss beside this library. The process has one handle.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* dladdr() */
#endif
#include "library.h"
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

CuDSSFunctions CuDSS;

static void *opened;
static char  name[PETSC_MAX_PATH_LEN + 32], asked[PETSC_MAX_PATH_LEN], refused[512];

/* Of the process' GPU */
static struct {
  GPUCSRDevice dev;
  void        *cudss; /* NULL: not created yet */
} handle;

const char *CuDSSName(void)
{
  return name;
}

const char *CuDSSStatus(int e)
{
  static const char *const words[] = {"success", "a handle that is not initialized", "no memory", "an invalid value", "a combination that is not supported", "a failed execution", "an internal error", "a refinement that did not converge"};

  return e >= 0 && e < (int)PETSC_STATIC_ARRAY_LENGTH(words) ? words[e] : "an unknown status";
}

/* The folder of a function's library, with the slash */
static PetscErrorCode FolderOf(void *f, char folder[], size_t len)
{
  Dl_info info;
  char   *slash;

  PetscFunctionBegin;
  folder[0] = 0;
  if (!dladdr(f, &info) || !info.dli_fname) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrncpy(folder, info.dli_fname, len));
  slash = strrchr(folder, '/');
  if (slash) slash[1] = 0;
  else folder[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The functions, and a version of which they are known */
static PetscErrorCode Resolve(char why[], size_t len)
{
#define NAME(name, parameters) "cudss" #name,
  static const char *const names[] = {CUDSS_FUNCTIONS(NAME)};
#undef NAME
  void   *functions[PETSC_STATIC_ARRAY_LENGTH(names)];
  int     version[3] = {0, 0, 0};
  Dl_info info;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(names) && !why[0]; k++) {
    functions[k] = dlsym(opened, names[k]);
    if (!functions[k]) PetscCall(PetscSNPrintf(why, len, "cuDSS has no %s: version 1 is needed", names[k]));
  }
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  memcpy(&CuDSS, functions, sizeof(CuDSS));
  for (int k = 0; k < 3 && !why[0]; k++)
    if ((*CuDSS.GetProperty)(k, &version[k])) PetscCall(PetscStrncpy(why, "cuDSS does not say its version: version 1 is needed", len));
  if (!why[0] && version[0] != 1) PetscCall(PetscSNPrintf(why, len, "cuDSS is version %d.%d.%d: version 1 is needed", version[0], version[1], version[2]));
  PetscCall(PetscSNPrintf(name, sizeof(name), "cuDSS %d.%d.%d, %s", version[0], version[1], version[2], dladdr(functions[0], &info) && info.dli_fname ? info.dli_fname : "libcudss.so.1"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tries each name once. An open library stays open: its threads may run */
PetscErrorCode CuDSSOpen(char why[], size_t len)
{
  static const char *const made[]                   = {"../cudss/nvidia/cu13/lib/libcudss.so.1", "../cudss/nvidia/cu12/lib/libcudss.so.1"};
  char                     file[PETSC_MAX_PATH_LEN] = "", path[PETSC_MAX_PATH_LEN], folder[PETSC_MAX_PATH_LEN];
  const char              *said;

  PetscFunctionBegin;
  why[0] = 0;
  PetscOptionsBegin(PETSC_COMM_SELF, NULL, "cuDSS", "MATSOLVERCUDSS");
  PetscCall(PetscOptionsString("-mat_gpucsr_cudss_library", "The library libcudss.so.1", "MATSOLVERCUDSS", file, file, sizeof(file), NULL));
  PetscOptionsEnd();
  if (opened) PetscFunctionReturn(PETSC_SUCCESS);
  if (strcmp(file, asked) || !refused[0]) {
    PetscCall(PetscStrncpy(asked, file, sizeof(asked)));
    opened = dlopen(file[0] ? file : "libcudss.so.1", RTLD_NOW | RTLD_LOCAL);
    said   = opened ? NULL : dlerror();
    PetscCall(PetscSNPrintf(refused, sizeof(refused), "cuDSS cannot be loaded: %s; make cudss fetches it, -mat_gpucsr_cudss_library names it", said ? said : "libcudss.so.1"));
    PetscCall(FolderOf((void *)CuDSSOpen, folder, sizeof(folder)));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(made) && !opened && !file[0]; k++) {
      PetscCall(PetscSNPrintf(path, sizeof(path), "%s%s", folder, made[k]));
      if (!access(path, R_OK)) opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (opened) refused[0] = 0;
    if (opened) PetscCall(Resolve(refused, sizeof(refused)));
    if (opened && refused[0]) {
      (void)dlclose(opened);
      opened = NULL;
    }
  }
  PetscCall(PetscStrncpy(why, refused, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HandleDestroy(void)
{
  PetscFunctionBegin;
  if (handle.cudss && !handle.dev->failed[0]) (void)(*CuDSS.Destroy)(handle.cudss);
  PetscCall(PetscMemzero(&handle, sizeof(handle)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The handle, for work in the order of the device's stream. A host that stands in for the device does the stream's work first */
PetscErrorCode CuDSSHandle(GPUCSRDevice dev, void **cudss)
{
  PetscFunctionBegin;
  PetscCall((*dev->ops->activate)(dev->id));
  if (!handle.cudss) {
    void *created = NULL;
    int   e;
    char  layer[PETSC_MAX_PATH_LEN + 32], folder[PETSC_MAX_PATH_LEN];

    e = (*CuDSS.Create)(&created);
    if (!e) e = (*CuDSS.SetStream)(created, (void *)dev->stream);
    if (e && created) (void)(*CuDSS.Destroy)(created);
    CuDSSCheck("cudssCreate()", e);
    handle.dev   = dev;
    handle.cudss = created;
    PetscCall(GPUCSRRegisterFinalize(GPUCSR_FINAL_MAT, HandleDestroy));
    /* several threads of the host order the unknowns, where the library came with its layer for them */
    PetscCall(FolderOf((void *)CuDSS.Create, folder, sizeof(folder)));
    PetscCall(PetscSNPrintf(layer, sizeof(layer), "%slibcudss_mtlayer_gomp.so.1", folder));
    if (!access(layer, R_OK) && (*CuDSS.SetThreadingLayer)(created, layer)) PetscCall(PetscInfo(NULL, "cuDSS refuses its threads of %s\n", layer));
  }
  if (!dev->ops->kernels) PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
  *cudss = handle.cudss;
  PetscFunctionReturn(PETSC_SUCCESS);
}
