/*
  Shared by all backends: the process' options and devices, and timing on a device. Memory is in memory.c, conversion of numbers in convert.c, copies in stage.c.
*/
#include "gpucsrsys.h"
#include <omp.h>
#include <string.h>

GPUCSRSettings GPUCSRSettingsGlobal;

#if !defined(GPUCSR_HAVE_CUDA)
/* A backend that is not compiled in keeps its row and gives the reason */
static PetscErrorCode Count_NotCompiled(int *n, char why[], size_t len)
{
  PetscFunctionBegin;
  *n = 0;
  PetscCall(PetscSNPrintf(why, len, "backend cuda is not compiled in: this library was built without nvcc"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
const GPUCSRBackendOps GPUCSRBackend_cuda = {.name = "cuda", .separate = PETSC_TRUE, .kernels = PETSC_TRUE, .count = Count_NotCompiled};
#endif

#define GPUCSR_BACKEND(name) &GPUCSRBackend_##name,
static const GPUCSRBackendOps *const backendlist[] = {
#include "backendlist.h"
};
#undef GPUCSR_BACKEND
#define NBACKENDS (sizeof(backendlist) / sizeof(backendlist[0]))

static GPUCSRBackendOps backends[NBACKENDS]; /* after the layers have changed them */
PetscErrorCode (*GPUCSRLaunchHook)(GPUCSRDevice, const char[]);

static GPUCSRDevice devices[NBACKENDS]; /* opened at first need */

/* [full][:file], or a word for yes or no */
static PetscErrorCode ReportSet(const char word[])
{
  GPUCSRSettings *s = &GPUCSRSettingsGlobal;
  char            first[16];
  const char     *colon = strchr(word, ':');

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(first, word, PetscMin(sizeof(first), colon ? (size_t)(colon - word) + 1 : sizeof(first))));
  if (colon) PetscCall(PetscStrncpy(s->reportfile, colon + 1, sizeof(s->reportfile)));
  PetscCall(PetscStrcasecmp(first, "full", &s->reportfull));
  s->report = PETSC_TRUE;
  if (!s->reportfull && first[0]) {
    GPUCSRAttempt attempt;

    GPUCSRTry(&attempt, PetscOptionsStringToBool(first, &s->report));
    PetscCheck(!attempt.error, PETSC_COMM_WORLD, PETSC_ERR_ARG_WRONG, "-mat_gpucsr_report %s: must be empty, full, :file or full:file", word);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective on PETSC_COMM_WORLD: a rank's place on its node decides its GPU */
PetscErrorCode GPUCSRSysInitialize(void)
{
  GPUCSRSettings *s = &GPUCSRSettingsGlobal;
  GPUCSRAttempt   attempt;
  MPI_Comm        node;
  PetscBool       set;
  char            report[PETSC_MAX_PATH_LEN] = "", machine[PETSC_MAX_PATH_LEN] = "";

  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  PetscCallMPI(MPI_Comm_split_type(PETSC_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  s->localrank = GPUCSRRankOf(node);
  s->localsize = GPUCSRSizeOf(node);
  PetscCallMPI(MPI_Comm_free(&node));
  s->threads    = PetscMin(8, PetscMax(1, omp_get_num_procs() / s->localsize));
  s->pinvectors = PETSC_TRUE;
  s->nmap       = (PetscInt)(sizeof(s->map) / sizeof(s->map[0]));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "GPU sparse matrix: process options", "MATGPUCSR");
  /* PETSc's error names the bad value but not the option */
#define OPTION(get, word, ...) \
  do { \
    GPUCSRTry(&attempt, get(word, __VA_ARGS__)); \
    PetscCheck(!attempt.error, PETSC_COMM_WORLD, attempt.error, word ": %s", attempt.message); \
  } while (0)
  OPTION(PetscOptionsIntArray, "-mat_gpucsr_device_map", "Device of each rank of a node, repeated for further ranks", "MATGPUCSR", s->map, &s->nmap, &set);
  if (!set) s->nmap = 0;
  OPTION(PetscOptionsInt, "-mat_gpucsr_threads", "Host threads that convert and copy", "MATGPUCSR", s->threads, &s->threads, NULL);
  OPTION(PetscOptionsReal, "-mat_gpucsr_memory_limit", "Largest device memory one rank may use, in bytes; 0: no limit", "MATGPUCSR", s->memorylimit, &s->memorylimit, NULL);
  OPTION(PetscOptionsBool, "-mat_gpucsr_pin_vectors", "Page-lock host vectors in place while they live", "MATGPUCSR", s->pinvectors, &s->pinvectors, NULL);
  OPTION(PetscOptionsString, "-mat_gpucsr_report", "At the end, report the time of products, and a line a matrix; full: all details; :file or full:file: into a file", "MATGPUCSR", report, report, sizeof(report), &set);
  if (set) PetscCall(ReportSet(report));
  OPTION(PetscOptionsString, "-mat_gpucsr_machine", "What was tuned on this machine, as make tune writes it", "MATGPUCSR", machine, machine, sizeof(machine), NULL);
  OPTION(PetscOptionsBool, "-mat_gpucsr_advise", "Before the first product of a matrix, where its products would take least time; at the end, how far that was off", "MatGPUCSRAdvise", s->advise, &s->advise, NULL);
  if (s->advise) s->report = PETSC_TRUE;
#undef OPTION
  PetscOptionsEnd();
  PetscCheck(s->threads >= 1 && s->threads <= 1024, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_threads %" PetscInt_FMT ": must be from 1 to 1024", s->threads);
  PetscCheck(s->memorylimit >= 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_memory_limit %g: must be a number of bytes, or 0 for no limit", (double)s->memorylimit);
  for (PetscInt k = 0; k < s->nmap; k++) PetscCheck(s->map[k] >= 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_device_map: entry %" PetscInt_FMT " is %" PetscInt_FMT "; devices count from 0", k, s->map[k]);
  PetscCall(GPUCSRMachineLoad(machine));
  for (size_t b = 0; b < NBACKENDS; b++) {
    backends[b] = *backendlist[b];
#define GPUCSR_LAYER(name) PetscCall(GPUCSRLayer_##name(&backends[b]));
#include "layerlist.h"
#undef GPUCSR_LAYER
  }
  PetscCall(GPUCSROnceInitialize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Closes as much as DeviceOpen() has opened */
static PetscErrorCode DeviceClose(GPUCSRDevice d)
{
  PetscFunctionBegin;
  PetscCall(d->ops->activate(d->id));
  PetscCall(GPUCSRCacheEmpty(d));
  for (int k = 0; k < GPUCSR_STAGES; k++) {
    if (d->stage[k]) PetscCall(d->ops->hostfree(d->id, d->stage[k]));
    if (d->staged[k]) PetscCall(d->ops->eventdestroy(d->id, d->staged[k]));
    d->stage[k]  = NULL;
    d->staged[k] = NULL;
  }
  for (int k = 0; k < d->nstreams; k++) PetscCall(d->ops->streamdestroy(d->id, k == 0 ? d->stream : k == 1 ? d->up : d->down));
  d->nstreams = 0;
  PetscCall(d->ops->close(d->id));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRSysFinalize(void)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRFinalizersRun_Private());
  PetscCall(GPUCSRPeersFinalize());
  for (size_t b = 0; b < NBACKENDS; b++) {
    if (devices[b] && !devices[b]->failed[0]) { /* a failed device frees nothing, and another call would fail again */
      GPUCSRAttempt attempt;

      GPUCSRTry(&attempt, DeviceClose(devices[b]));
    }
    PetscCall(PetscFree(devices[b]));
  }
  PetscCall(GPUCSROnceFinalize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DeviceSetUp(GPUCSRDevice d)
{
  const GPUCSRBackendOps *ops = d->ops;

  PetscFunctionBegin;
  PetscCall(ops->open(d->id, &d->props));
  GPUCSRMachineOfDevice(&d->props, &d->machine);
  for (; d->nstreams < 3; d->nstreams++) PetscCall(ops->streamcreate(d->id, d->nstreams == 0 ? &d->stream : d->nstreams == 1 ? &d->up : &d->down));
  if (ops->separate) {
    for (int k = 0; k < GPUCSR_STAGES; k++) {
      PetscCall(ops->hostmalloc(d->id, GPUCSR_STAGE_BYTES, &d->stage[k]));
      PetscCall(ops->eventcreate(d->id, PETSC_FALSE, &d->staged[k]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The process' device of the named backend. If there is none, or it cannot be opened, dev is NULL and why has the reason, without an error.
*/
PetscErrorCode GPUCSRDeviceOpen(const char name[], GPUCSRDevice *dev, char why[], size_t len)
{
  const GPUCSRSettings   *s = &GPUCSRSettingsGlobal;
  const GPUCSRBackendOps *ops;
  GPUCSRAttempt           attempt;
  GPUCSRDevice            d;
  size_t                  b;
  int                     n = 0, id;

  PetscFunctionBegin;
  *dev = NULL;
  for (b = 0; b < NBACKENDS && strcmp(name, backends[b].name); b++) {
  }
  PetscCheck(b < NBACKENDS, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "There is no backend %s", name);
  if (!devices[b]) {
    ops = &backends[b];
    PetscCall(ops->count(&n, why, len));
    if (!n) PetscFunctionReturn(PETSC_SUCCESS);
    id = s->nmap && ops->separate ? (int)s->map[s->localrank % s->nmap] : s->localrank % n;
    PetscCheck(id < n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_device_map: this machine has no device %d for local rank %d; devices count from 0", id, (int)s->localrank);
    PetscCall(PetscNew(&d));
    devices[b] = d;
    d->ops     = ops;
    d->id      = id;
    d->threads = (int)s->threads;
    d->limit   = (size_t)s->memorylimit;
    GPUCSRTry(&attempt, DeviceSetUp(d));
    /* a device exists but cannot be opened: its memory is full, another process owns it, it is broken, or its driver is too old. Warns once and keeps the reason */
    if (attempt.error) {
      char          warning[1024], word[16] = "";
      PetscBool     required;
      GPUCSRAttempt closing;

      GPUCSRTry(&closing, DeviceClose(d));
      PetscCall(PetscSNPrintf(d->failed, sizeof(d->failed), "device %d cannot be opened: %s", d->id, attempt.message));
      PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_backend", word, sizeof(word), NULL));
      PetscCall(PetscStrcasecmp(word, d->ops->name, &required));
      PetscCall(PetscSNPrintf(warning, sizeof(warning), "backend %s is not used: %s", d->ops->name, d->failed));
      if (!required) PetscCall(GPUCSRWarn(warning)); /* a required device is an error for the caller */
    } else PetscCall(PetscInfo(NULL, "Rank %d of this node uses backend %s, device %d of %d: %s\n", (int)s->localrank, ops->name, d->id, d->props.ndevices, d->props.name));
  }
  if (devices[b]->failed[0]) PetscCall(PetscSNPrintf(why, len, "%s%s", devices[b]->nstreams ? "it failed before: " : "", devices[b]->failed));
  else *dev = devices[b];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Everything on the device is done, on PETSc's streams too */
PetscErrorCode GPUCSRDeviceSynchronize(GPUCSRDevice d)
{
  return d->ops->synchronize(d->id);
}

static PetscErrorCode Queue(GPUCSRDevice d, const GPUCSREvent e[2], PetscErrorCode (*launch)(void *), void *ctx, int n)
{
  PetscFunctionBegin;
  PetscCall((*launch)(ctx));
  PetscCall(d->ops->eventrecord(d->id, e[0], d->stream));
  for (int k = 0; k < n; k++) PetscCall((*launch)(ctx));
  PetscCall(d->ops->eventrecord(d->id, e[1], d->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Seconds of a launch on d->stream, from n back to back after a launch that is not timed. The device starts when all are queued: otherwise the time of small work would be the host's time to launch.
*/
PetscErrorCode GPUCSRDeviceClock(GPUCSRDevice d, const GPUCSREvent e[2], PetscErrorCode (*launch)(void *), void *ctx, int n, double *seconds)
{
  static volatile int go; /* outlives an error below */
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  go = 0;
  PetscCall(d->ops->hold(d->id, d->stream, &go));
  ierr = Queue(d, e, launch, ctx, n);
  go   = 1;
  PetscCall(ierr);
  PetscCall(d->ops->eventelapsed(d->id, e[0], e[1], seconds));
  *seconds /= n;
  PetscFunctionReturn(PETSC_SUCCESS);
}
