/*
  Stands before cuDSS and times its solves: run.sh links it with the library, whose other functions are found behind it. With APPLY_CAPTURE in the environment it records the second solve in a CUDA graph,
  plays the graph, and says whether the solution is the same. CUDA's driver is opened at run time; without it there is no stream to wait for.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  SOLVE   = 1008,
  RELAXED = 2 /* capture in which other work may go on */
};

double execute_seconds; /* of all solves */
int    execute_count;

static void *current; /* stream of the library */

static void *Driver(const char name[])
{
  static void *cuda;

  if (!cuda) cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return cuda ? dlsym(cuda, name) : NULL;
}

/* The work of the stream has ended */
void execute_wait(void)
{
  int (*wait)(void *) = (int (*)(void *))Driver("cuStreamSynchronize");

  if (wait) (void)(*wait)(current);
}

static double Now(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef int SetStream(void *, void *);
typedef int Execute(void *, int, const void *, void *, const void *, void *, const void *);

int cudssSetStream(void *handle, void *stream)
{
  current = stream;
  return (*(SetStream *)dlsym(RTLD_NEXT, "cudssSetStream"))(handle, stream);
}

/* The solution of the last solve, on the host */
static double *Solution(const void *x, void **device, size_t *bytes)
{
  int (*get)(const void *, int64_t *, int64_t *, int64_t *, void **, int *, int *) = (int (*)(const void *, int64_t *, int64_t *, int64_t *, void **, int *, int *))dlsym(RTLD_NEXT, "cudssMatrixGetDn");
  int (*copy)(void *, uintptr_t, size_t)                                           = (int (*)(void *, uintptr_t, size_t))Driver("cuMemcpyDtoH_v2");
  int64_t rows, columns, ld;
  int     type, layout;
  double *values;

  if (!get || !copy || (*get)(x, &rows, &columns, &ld, device, &type, &layout)) return NULL;
  *bytes = sizeof(double) * (size_t)rows;
  values = (double *)malloc(*bytes);
  if (values && (*copy)(values, (uintptr_t)*device, *bytes)) memset(values, 0, *bytes);
  return values;
}

/* The same solve in a graph, on a stream of its own */
static void Capture(Execute *execute, void *h, const void *config, void *data, const void *A, void *x, const void *b)
{
  int (*create)(void **, unsigned)                        = (int (*)(void **, unsigned))Driver("cuStreamCreate");
  int (*begin)(void *, int)                               = (int (*)(void *, int))Driver("cuStreamBeginCapture_v2");
  int (*end)(void *, void **)                             = (int (*)(void *, void **))Driver("cuStreamEndCapture");
  int (*instantiate)(void **, void *, unsigned long long) = (int (*)(void **, void *, unsigned long long))Driver("cuGraphInstantiateWithFlags");
  int (*launch)(void *, void *)                           = (int (*)(void *, void *))Driver("cuGraphLaunch");
  int (*set)(uintptr_t, unsigned char, size_t)            = (int (*)(uintptr_t, unsigned char, size_t))Driver("cuMemsetD8_v2");
  void   *stream = NULL, *before = current, *graph = NULL, *play = NULL, *device = NULL;
  size_t  bytes = 0;
  double *right, *again = NULL;
  int     status[6] = {0, 0, 0, 0, 0, 0};

  execute_wait();
  right = Solution(x, &device, &bytes);
  if (!right || !create || !begin || !end || !instantiate || !launch || !set) {
    printf("capture: no driver of CUDA, or no solution on a device\n");
    free(right);
    return;
  }
  status[0] = (*create)(&stream, 1); /* does not wait for the default stream */
  (void)cudssSetStream(h, stream);
  status[1] = (*begin)(stream, RELAXED);
  status[2] = (*execute)(h, SOLVE, config, data, A, x, b);
  status[3] = (*end)(stream, &graph);
  (void)(*set)((uintptr_t)device, 0, bytes);
  if (!status[2] && !status[3] && graph) status[4] = (*instantiate)(&play, graph, 0);
  if (play) {
    status[5] = (*launch)(play, stream);
    execute_wait();
    again = Solution(x, &device, &bytes);
  }
  printf("capture: stream %d, begin %d, cudssExecute %d, end %d, instantiate %d, launch %d: %s\n", status[0], status[1], status[2], status[3], status[4], status[5],
         !again                        ? "no graph"
         : memcmp(right, again, bytes) ? "another solution"
                                       : "the same solution");
  (void)cudssSetStream(h, before);
  (void)(*execute)(h, SOLVE, config, data, A, x, b); /* the solution is there, whatever has happened */
  free(right);
  free(again);
}

int cudssExecute(void *h, int phase, const void *config, void *data, const void *A, void *x, const void *b)
{
  Execute *execute = (Execute *)dlsym(RTLD_NEXT, "cudssExecute");
  double   begin;
  int      status;

  if (phase != SOLVE) return (*execute)(h, phase, config, data, A, x, b);
  execute_wait();
  begin  = Now();
  status = (*execute)(h, phase, config, data, A, x, b);
  execute_wait();
  execute_seconds += Now() - begin;
  if (++execute_count == 2 && getenv("APPLY_CAPTURE") && *getenv("APPLY_CAPTURE")) Capture(execute, h, config, data, A, x, b);
  return status;
}
