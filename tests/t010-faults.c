//TEST args="-program {} -every 1" loop="columns sparse vectors learn"
//TEST args="-program {} -every 41" loop="solvers pieces gamg gpuamg"
//TEST name="products" args="-program products -every 3"
//TEST name="factors" args="-program factors -every 5"
//TEST name="formats" args="-program formats -every 11"
//TEST name="cuda" args="-program products -backend cuda -every 7"
//TEST name="gpu" args="-program products -vectors gpu -every 5"
//TEST name="ranks" nsize=2 args="-program solvers -rank 1 -kind copy -on false -from 2 -to 2"
//TEST name="ranks_host" nsize=3 args="-program vectors -rank 2 -kind host -on false -from 35 -to 35"

/*
  Each call of the library to a device fails once. A program runs repeatedly; in run n the n-th call of a kind fails, or all calls from the n-th on, until there is no n-th call.
  With -mat_gpucsr_backend auto the results must be right. With cuda the results are right, or the run ends in one error of memory or of the GPU. Afterwards the same program must run in the same
  process, nothing may stay allocated, and no run may take longer than -limit seconds. The library's allocations of host memory fail likewise; there both backends may end in an error.

  The host stands in for a GPU, unless -gpu is given.

    build/tests/t010-faults -program products -kind copy            every copy
    build/tests/t010-faults -program all -every 7 -count            each seventh of all calls, and the number of faults

  -from N -to N: only these n. -on true: all calls from the n-th on fail, false: only the n-th; default both. -rank R: only on this rank. -format F; -show: print each run.
*/
#include "../src/sys/debug/fault/fault.h"
#include "../include/petscgpucsr.h"
#include "testing.h"
#include <petsctao.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOSTMEMORY GPUCSR_FAULT_KINDS /* one kind more: the library's PetscMalloc() */

static struct {
  const char *program, *kind, *backend, *format, *vectors;
  int         every, from, to, rank, limit, on;
  PetscBool   gpu, count, show;
} o = {"all", "all", "auto", "csr", "standard", 1, 1, 1 << 30, -1, 60, 2, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE};

#define ALLOWED 4 /* exit status of several ranks after an allowed error of one rank: the next n needs a start of its own */

static char what[256]; /* is being done, for whom it takes too long */
static long faults, runs, wrong, leaked, errors;

#include "t010-faults/programs.h"

/* ---- host memory ---- */

static PetscErrorCode (*hostmalloc)(size_t, PetscBool, int, const char[], const char[], void **);
static struct {
  long      at, calls, injected;
  PetscBool on;
} host;

/* Calls of the library alone: PETSc's sources have other names */
static PetscErrorCode HostMalloc(size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **p)
{
  if (!strncmp(file, "src/", 4)) {
    host.calls++;
    if (host.at && (host.calls == host.at || (host.on && host.calls > host.at))) {
      host.injected++;
      return PetscError(PETSC_COMM_SELF, line, function, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "Memory requested %zu, as the test says", bytes);
    }
  }
  return (*hostmalloc)(bytes, clear, line, function, file, p);
}

/* ---- one run ---- */

static int   real[2] = {-1, -1};
static FILE *said[2];

/* The output goes into files, and is read afterwards */
static void Listen(PetscBool anew)
{
  for (int k = 0; k < 2; k++) {
    fflush(k ? stderr : stdout);
    if (!said[k]) said[k] = tmpfile();
    if (real[k] < 0) real[k] = dup(k + 1);
    if (anew && ftruncate(fileno(said[k]), 0)) abort();
    if (anew) rewind(said[k]);
    if (dup2(fileno(said[k]), k + 1) < 0) abort();
  }
}

/* What was printed, as far as it fits */
static void Heard(int k, char all[], size_t len)
{
  fflush(k ? stderr : stdout);
  rewind(said[k]);
  all[fread(all, 1, len - 1, said[k])] = 0;
}

static void Quiet(void)
{
  for (int k = 0; k < 2; k++) {
    fflush(k ? stderr : stdout);
    if (dup2(real[k], k + 1) < 0) abort();
  }
}

static void TooLong(int sig)
{
  (void)sig;
  Quiet();
  fprintf(stderr, "%s: takes more than %d seconds\n", what, o.limit);
  _exit(3);
}

/* An unclean end of one rank ends all ranks; a single process goes on, so one run reports all failures */
static void Bad(const char why[], const char all[])
{
  int size = 1;

  Quiet();
  fprintf(stderr, "%s: %s\n", what, why);
  if (all[0]) fprintf(stderr, "%.*s\n", 1500, all);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1) MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Errors come back as codes, the first message is kept */
static char           message[512];
static PetscErrorCode KeepMessage(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  (void)comm;
  (void)ctx;
  if (p == PETSC_ERROR_INITIAL && !message[0]) snprintf(message, sizeof(message), "%s (%s, %s:%d)", mess ? mess : "", fun, file, line);
  if (p == PETSC_ERROR_REPEAT && strlen(message) < sizeof(message) - 40) snprintf(message + strlen(message), sizeof(message) - strlen(message), " < %s:%d", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line);
  return n;
}

/* Does the message of this rank say that the rank which calls fail on has met an error? */
static PetscBool Names(const char text[], PetscMPIInt rank, PetscMPIInt size)
{
  char named[2][16];

  if (size == 1 || o.rank < 0 || rank == o.rank) return PETSC_FALSE;
  snprintf(named[0], sizeof(named[0]), "rank %d", o.rank);
  snprintf(named[1], sizeof(named[1]), "Rank %d", o.rank);
  return (PetscBool)(strstr(text, named[0]) || strstr(text, named[1]));
}

/* PC type gpuamg has no place on the host: its error where the backend has failed names the types to take */
static PetscBool OnDeviceOnly(int program, PetscErrorCode error)
{
  return (PetscBool)(!strcmp(programs[program].name, "gpuamg") && (error == PETSC_ERR_MEM || error == PETSC_ERR_GPU || (error == PETSC_ERR_SUP && strstr(message, "needs its matrix on a device, but backend cuda failed"))));
}

/* The n-th call of a kind fails while a program runs. reached: there was an n-th */
static PetscErrorCode Run(int program, int kind, long n, PetscBool on, PetscBool *reached)
{
  static char     all[1 << 16];
  char            options[512], name[] = "t010-faults", *words[] = {name, NULL}, **argv = words;
  int             argc = 1;
  const PetscBool cuda = (PetscBool)!strcmp(o.backend, "cuda");
  PetscErrorCode  ierr, again;
  PetscMPIInt     rank, size, any;
  PetscBool       injected, usable;
  GPUCSRDevice    dev = NULL;
  char            why[512];

  PetscFunctionBeginUser;
  snprintf(what, sizeof(what), "-program %s -kind %s -backend %s -from %ld -to %ld -on %s", programs[program].name, kind == HOSTMEMORY ? "host" : GPUCSRFaultKinds[kind], o.backend, n, n, on ? "true" : "false");
  snprintf(options, sizeof(options), "-skip_petscrc -options_left no -malloc_dump -mat_gpucsr_backend %s -mat_gpucsr_format %s -mat_gpucsr_transpose_format %s %s", o.backend, o.format, o.format, o.gpu ? "" : "-gpucsr_debug_standin 1");
  if (!strcmp(o.vectors, "standard")) snprintf(options + strlen(options), sizeof(options) - strlen(options), " -standard_vectors");
  snprintf(options + strlen(options), sizeof(options) - strlen(options), " -gpucsr_debug_fault %s:%ld%s", kind == HOSTMEMORY ? "memory" : GPUCSRFaultKinds[kind], kind == HOSTMEMORY ? 0 : n, on ? ":on" : "");
  if (o.rank >= 0) snprintf(options + strlen(options), sizeof(options) - strlen(options), ":rank=%d", o.rank);
  setenv("PETSC_OPTIONS", options, 1);
  alarm((unsigned)o.limit);
  Listen(PETSC_TRUE);
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  signal(SIGALRM, TooLong);
  PetscCall(PetscPushErrorHandler(KeepMessage, NULL));
  message[0] = 0;
  ierr       = MatGPUCSRInitializePackage();
  usable     = (PetscBool)!ierr; /* where the GPU that was asked for cannot be had, nothing can be */
  hostmalloc = PetscTrMalloc;
  memset(&host, 0, sizeof(host));
  if (kind == HOSTMEMORY && (o.rank < 0 || o.rank == rank)) {
    host.at = n;
    host.on = on;
  }
  PetscTrMalloc = HostMalloc;
  if (!ierr) ierr = (*programs[program].run)();
  host.at                = 0;
  injected               = (PetscBool)(kind == HOSTMEMORY ? host.injected > 0 : GPUCSRFaultCounters.injected > 0);
  GPUCSRFaultCounters.at = 0;
  PetscTrMalloc          = hostmalloc;
  faults += kind == HOSTMEMORY ? host.injected : GPUCSRFaultCounters.injected;
  runs++;
  if (ierr) {
    /* a failed device loses data without a copy on the host: entries of a vector, even of GAMG's levels; a sum that has begun to replace a summand */
    const PetscBool lost    = (PetscBool)((!strcmp(o.vectors, "gpu") || !strcmp(programs[program].name, "vectors") || !strcmp(programs[program].name, "gamg")) && ierr == PETSC_ERR_GPU);
    const PetscBool halfway = (PetscBool)(strstr(message, "the sum was on its way back into the vector that held a summand") || strstr(message, "values were on their way back into the matrix that they are added to"));
    const PetscBool loop    = (PetscBool)(size > 1 && !strcmp(programs[program].name, "solvers") && ierr == PETSC_ERR_GPU); /* a step of the host loop, where the other ranks wait for this one's sums */
    const PetscBool agreed  = Names(message, rank, size);                                                                   /* one rank's error is an error on all */
    const PetscBool allowed = (PetscBool)((injected || agreed) && (OnDeviceOnly(program, ierr) || ((cuda || lost || halfway || loop || kind == HOSTMEMORY) && (ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU))));

    errors++;
    if (!allowed) {
      wrong++;
      Bad(message, "");
    } else if (size > 1) { /* the other ranks wait for this one: PETSc's programs end here */
      Quiet();
      if (o.show) fprintf(stderr, "%s: %s\n", what, message);
      if (o.count) fprintf(stderr, "%ld faults in %ld runs: %ld wrong, %ld leaked, %ld ended in an error that was allowed, stopped at %ld\n", faults, runs, wrong, leaked, errors - wrong, n);
      MPI_Abort(MPI_COMM_WORLD, ALLOWED);
    }
  }
  any = injected;
  MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  injected = (PetscBool)any;
  if (o.show) {
    Quiet();
    fprintf(stderr, "%s: %s, %d calls %s\n", what, injected ? "injected" : "not reached", (int)(kind == HOSTMEMORY ? host.calls : GPUCSRFaultCounters.calls[kind]), message);
  }
  if (usable && injected) { /* the next one, in the same process */
    snprintf(what + strlen(what), sizeof(what) - strlen(what), ", the next one");
    message[0] = 0;
    again      = (*programs[program].run)();
    if (again && !(cuda && again == PETSC_ERR_GPU) && !(again != PETSC_ERR_MEM && OnDeviceOnly(program, again))) { /* a device that failed is not used again */
      wrong++;
      Bad(message, "");
    }
    if (again) ierr = again;
  }
  if (usable) PetscCall(GPUCSRDeviceOpen("cuda", &dev, why, sizeof(why)));
  PetscCall(PetscPopErrorHandler());
  if (ierr) { /* the interrupted operation's memory stays allocated */
    PetscCall(PetscOptionsClearValue(NULL, "-malloc_dump"));
    any = 1;
  } else any = 0;
  Listen(PETSC_FALSE);
  PetscCall(PetscFinalize());
  Quiet();
  Heard(0, all, sizeof(all));
  if (kind == HOSTMEMORY && !strstr(all, " at src/")) all[0] = 0; /* PETSc's own functions keep their memory after an error in a function of the library */
  if (!any && all[0]) {
    leaked++;
    Bad("leaves memory allocated", all);
  }
  if (!any && dev) { /* a device that failed is given nothing back */
    const GPUCSRFaultCounts *f = &GPUCSRFaultCounters;

    if (f->memory || f->hostmemory || f->locked || f->events || f->streams) {
      leaked++;
      snprintf(why, sizeof(why), "leaves to the device %d pieces of memory, %d of the host's, %d locked, %d events, %d streams", (int)f->memory, (int)f->hostmemory, (int)f->locked, (int)f->events, (int)f->streams);
      Bad(why, "");
    }
  }
  *reached = injected;
  return PETSC_SUCCESS;
}

int main(int argc, char **argv)
{
  int rank;

  for (int k = 1; k < argc; k++) {
    const char *value = k + 1 < argc ? argv[k + 1] : "";

    if (!strcmp(argv[k], "-gpu")) o.gpu = PETSC_TRUE;
    else if (!strcmp(argv[k], "-count")) o.count = PETSC_TRUE; /* ranks that stop report the place for -count, so that tests/faults.sh goes on from there */
    else if (!strcmp(argv[k], "-show")) o.show = PETSC_TRUE;
    else {
      if (!strcmp(argv[k], "-program")) o.program = value;
      else if (!strcmp(argv[k], "-kind")) o.kind = value;
      else if (!strcmp(argv[k], "-backend")) o.backend = value;
      else if (!strcmp(argv[k], "-format")) o.format = value;
      else if (!strcmp(argv[k], "-vectors")) o.vectors = value;
      else if (!strcmp(argv[k], "-every")) o.every = atoi(value);
      else if (!strcmp(argv[k], "-from")) o.from = atoi(value);
      else if (!strcmp(argv[k], "-to")) o.to = atoi(value);
      else if (!strcmp(argv[k], "-rank")) o.rank = atoi(value);
      else if (!strcmp(argv[k], "-limit")) o.limit = atoi(value);
      else if (!strcmp(argv[k], "-on")) o.on = !strcmp(value, "true");
      else {
        fprintf(stderr, "%s is not understood\n", argv[k]);
        return 2;
      }
      k++;
    }
  }
  if (MPI_Init(NULL, NULL)) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int p = 0; p < (int)PETSC_STATIC_ARRAY_LENGTH(programs); p++) {
    if (strcmp(o.program, "all") && strcmp(o.program, programs[p].name)) continue;
    for (int kind = 0; kind <= HOSTMEMORY; kind++) {
      const PetscBool same = (PetscBool)!strcmp(o.kind, kind == HOSTMEMORY ? "host" : GPUCSRFaultKinds[kind]);

      if (strcmp(o.kind, "all") && !same) continue;
      for (int on = 0; on < 2; on++) {
        PetscBool reached = PETSC_TRUE;

        if (o.on != 2 && o.on != on) continue;
        if (o.on == 2 && (kind == GPUCSR_FAULT_DEVICE) != on && !same) continue; /* by default a device is lost for good, and other calls fail once */
        for (long n = o.from; n <= o.to && reached; n += o.every)
          if (Run(p, kind, n, (PetscBool)on, &reached)) return 1;
      }
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &faults, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (o.count && !rank) printf("%ld faults in %ld runs: %ld wrong, %ld leaked, %ld ended in an error that was allowed\n", faults, runs, wrong, leaked, errors - wrong);
  MPI_Finalize();
  return wrong || leaked ? 1 : 0;
}
