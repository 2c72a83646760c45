/*
  The interface to the hardware: every function of a backend. Conversions and their rounding; staged copies with lengths around the size of a stage; arrays
  sent together; the memory limit; the cache of small pieces of memory, freed when memory runs out; small pieces of
  page-locked memory, which share a block; attempts whose errors are caught.

  //TEST name="host" args="-backend host"
  //TEST name="threads" args="-backend host -mat_gpucsr_threads 3"
  //TEST name="staged" args="-backend host -staged"
  //TEST name="staged_threads" args="-backend host -staged -mat_gpucsr_threads 3"
  //TEST name="standin" args="-backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_fault pagelock:0" gpu=0
  //TEST name="late" args="-backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 0 -gpucsr_debug_fault pagelock:0" gpu=0
  //TEST name="cuda" args="-backend cuda -gpucsr_debug_fault pagelock:0" gpu=1
*/
static char help[] = "Tests the backends.\n";

#include "../src/sys/debug/fault/fault.h"
#include "testing.h"
#include <math.h>
#include <float.h>

/* up and down again, by way of every type that a number takes */
static PetscErrorCode RoundTrip(GPUCSRDevice d, size_t n, GPUCSRType there, PetscBool pinned)
{
  double      *a, *b, rounding = 0, worst = 0;
  void        *dev;
  const double eps = there == GPUCSR_FLOAT ? FLT_EPSILON / 2 : 0;

  PetscFunctionBegin;
  if (pinned) {
    PetscCall(d->ops->hostmalloc(d->id, (n + 1) * sizeof(double), (void **)&a));
    PetscCall(d->ops->hostmalloc(d->id, (n + 1) * sizeof(double), (void **)&b));
  } else PetscCall(PetscMalloc2(n + 1, &a, n + 1, &b));
  PetscCall(GPUCSRMalloc(d, n * GPUCSRTypeSize(there), "a test", &dev));
  for (size_t k = 0; k < n; k++) {
    a[k]  = 1.0 / (1.0 + (double)k);
    b[k]  = -1;
    worst = PetscMax(worst, fabs(a[k] - (double)(float)a[k]) / a[k]);
  }
  PetscCall(GPUCSRUpload(d, dev, there, a, GPUCSR_DOUBLE, n, pinned, d->stream, &rounding));
  PetscCall(GPUCSRDownload(d, b, GPUCSR_DOUBLE, dev, there, n, pinned, d->stream));
  PetscCall(GPUCSRDeviceSynchronize(d));
  for (size_t k = 0; k < n; k++)
    PetscCheck(fabs(a[k] - b[k]) <= eps * fabs(a[k]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu numbers as type %d, %s: number %zu went as %.17g and came back as %.17g", n, (int)there, pinned ? "page-locked" : "staged", k, a[k], b[k]);
  PetscCheck(rounding == (there == GPUCSR_FLOAT ? worst : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rounding reported as %g, is %g", rounding, worst);
  PetscCall(GPUCSRFree(d, n * GPUCSRTypeSize(there), &dev));
  if (pinned) {
    PetscCall(d->ops->hostfree(d->id, a));
    PetscCall(d->ops->hostfree(d->id, b));
  } else PetscCall(PetscFree2(a, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TooMuch(GPUCSRDevice d)
{
  void *p;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(d, (size_t)1 << 20, "more than allowed", &p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host as a device with a memory of its own, to which everything goes by way of the stages */
static PetscErrorCode Separate(GPUCSRDevice d, GPUCSRBackendOps *ops)
{
  PetscFunctionBegin;
  *ops          = *d->ops;
  ops->separate = PETSC_TRUE;
  d->ops        = ops;
  for (int k = 0; k < GPUCSR_STAGES; k++) {
    PetscCall(ops->hostmalloc(d->id, GPUCSR_STAGE_BYTES, &d->stage[k]));
    PetscCall(ops->eventcreate(d->id, PETSC_FALSE, &d->staged[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Three arrays in one piece of memory, and the second one in another: each array arrives in its place, several times and for any lengths */
static PetscErrorCode Together(GPUCSRDevice d, size_t n)
{
  const size_t bytes[] = {n * 4, n * 8, 12}, at[] = {0, GPUCSRAlignUp(bytes[0]), GPUCSRAlignUp(bytes[0]) + GPUCSRAlignUp(bytes[1])}, all = at[2] + bytes[2];
  int32_t     *i, last[3] = {-1, 0, 1}, *j;
  int64_t     *wide;
  double      *a, *b, rounding = 0;
  void        *piece, *other;

  PetscFunctionBegin;
  PetscCall(PetscMalloc5(n + 1, &i, n + 1, &a, n + 1, &j, n + 1, &b, n + 1, &wide));
  PetscCall(GPUCSRMalloc(d, all, "a test", &piece));
  PetscCall(GPUCSRMalloc(d, bytes[1], "a test", &other));
  for (int apart = 0; apart < 2; apart++)
    for (int turn = 0; turn < 3; turn++) {
      const GPUCSRTransfer t[] = {
        {piece,                                           GPUCSR_INT32,  i,    GPUCSR_INT32,  n},
        {apart ? other : (void *)((char *)piece + at[1]), GPUCSR_DOUBLE, a,    GPUCSR_DOUBLE, n},
        {(char *)piece + at[2],                           GPUCSR_INT32,  last, GPUCSR_INT32,  3}
      };
      int32_t back[3];

      for (size_t k = 0; k < n; k++) {
        i[k] = (int32_t)k + turn;
        a[k] = (double)k / 3 + turn;
      }
      PetscCall(GPUCSRUploadBatch(d, t, 3, d->stream, &rounding));
      PetscCall(GPUCSRDownload(d, j, GPUCSR_INT32, t[0].dst, GPUCSR_INT32, n, PETSC_FALSE, d->stream));
      PetscCall(GPUCSRDownload(d, wide, GPUCSR_INT64, t[0].dst, GPUCSR_INT32, n, PETSC_FALSE, d->stream)); /* as a PetscInt of 64 bits */
      PetscCall(GPUCSRDownload(d, b, GPUCSR_DOUBLE, t[1].dst, GPUCSR_DOUBLE, n, PETSC_FALSE, d->stream));
      PetscCall(GPUCSRDownload(d, back, GPUCSR_INT32, t[2].dst, GPUCSR_INT32, 3, PETSC_FALSE, d->stream));
      for (size_t k = 0; k < n; k++) PetscCheck(i[k] == j[k] && i[k] == wide[k] && a[k] == b[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu sent together: number %zu differs", n, k);
      for (int k = 0; k < 3; k++) PetscCheck(back[k] == last[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu sent together: the last array differs", n);
    }
  PetscCheck(rounding == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "What is not rounded counts as rounded by %g", rounding);
  PetscCall(GPUCSRFree(d, all, &piece));
  PetscCall(GPUCSRFree(d, bytes[1], &other));
  PetscCall(PetscFree5(i, a, j, b, wide));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A memory that runs out */
#define ROOM ((size_t)1 << 20)
static const GPUCSRBackendOps *roomy;
static size_t                  taken;
static int                     mallocs;

static PetscErrorCode MallocSome(int id, size_t bytes, GPUCSRStream s, void **p)
{
  size_t *q;

  PetscFunctionBegin;
  PetscCheck(taken + bytes <= ROOM, PETSC_COMM_SELF, PETSC_ERR_MEM, "%zu bytes are too much", bytes);
  PetscCall((*roomy->malloc)(id, bytes + sizeof(*q), s, (void **)&q));
  *q = bytes;
  taken += bytes;
  mallocs++;
  *p = q + 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FreeSome(int id, GPUCSRStream s, void *p)
{
  PetscFunctionBegin;
  taken -= ((size_t *)p)[-1];
  PetscCall((*roomy->free)(id, s, (size_t *)p - 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InHand(GPUCSRDevice d)
{
  GPUCSRBackendOps ops = *d->ops;
  void            *p, *first, *many[GPUCSR_CACHED_PIECES + 3];

  PetscFunctionBegin;
  while (d->ncached) PetscCall(d->ops->free(d->id, d->stream, d->cache[--d->ncached].p)); /* of the tests before */
  roomy      = d->ops;
  ops.malloc = MallocSome;
  ops.free   = FreeSome;
  d->ops     = &ops;
  PetscCall(GPUCSRMalloc(d, ROOM / 2, "a test", &p));
  first = p;
  PetscCall(GPUCSRFree(d, ROOM / 2, &p));
  PetscCheck(!d->allocated && taken, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A small piece should stay in hand, and count no more");
  PetscCall(GPUCSRMalloc(d, ROOM / 2, "a test", &p));
  PetscCheck(p == first && mallocs == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The piece in hand should be had again");
  PetscCall(GPUCSRFree(d, ROOM / 2, &p));
  PetscCall(GPUCSRMalloc(d, 3 * (ROOM / 4), "a test", &p)); /* which is there as soon as the other one is given back */
  PetscCheck(mallocs == 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "What is in hand should go back when memory runs out");
  PetscCall(GPUCSRFree(d, 3 * (ROOM / 4), &p));
  for (int k = 0; k < GPUCSR_CACHED_PIECES + 3; k++) PetscCall(GPUCSRMalloc(d, 1000, "a test", &many[k]));
  for (int k = 0; k < GPUCSR_CACHED_PIECES + 3; k++) PetscCall(GPUCSRFree(d, 1000, &many[k]));
  PetscCheck(d->ncached == GPUCSR_CACHED_PIECES, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d pieces in hand", d->ncached);
  while (d->ncached) PetscCall(FreeSome(d->id, d->stream, d->cache[--d->ncached].p));
  PetscCheck(!taken && !d->allocated, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu bytes are lost", taken);
  d->ops = roomy;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Small pieces of page-locked memory lie in one block, until the block is full. A piece comes back after the work of its former user, and a request can fail as any other */
static PetscErrorCode Locked(GPUCSRDevice d)
{
  const GPUCSRBackendOps *ops = d->ops;
  GPUCSRFaultCounts      *f   = &GPUCSRFaultCounters;
  char                   *p[GPUCSR_LOCKED_PIECES + 2], *first, *again;
  void                   *large, *numbers;
  GPUCSRAttempt           attempt;
  const PetscInt          living = f->hostmemory;

  PetscFunctionBegin;
  PetscCall(ops->hostmalloc(d->id, GPUCSR_LOCKED_BYTES + 1, &large));
  for (int k = 0; k < GPUCSR_LOCKED_PIECES + 2; k++) {
    PetscCall(ops->hostmalloc(d->id, k ? GPUCSR_LOCKED_BYTES : 1, (void **)&p[k]));
    memset(p[k], k, k ? GPUCSR_LOCKED_BYTES : 1);
  }
  first = p[0];
  for (int k = 0; k < GPUCSR_LOCKED_PIECES; k++) PetscCheck(p[k] == first + (size_t)k * GPUCSR_LOCKED_BYTES && p[k][0] == k, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Piece %d is not in its place", k);
  for (int k = GPUCSR_LOCKED_PIECES; k < GPUCSR_LOCKED_PIECES + 2; k++)
    PetscCheck((p[k] < first || p[k] >= first + GPUCSR_LOCKED_PIECES * GPUCSR_LOCKED_BYTES) && p[k][0] == k, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Piece %d should lie apart from the full block", k);
  PetscCheck((char *)large < first || (char *)large >= first + GPUCSR_LOCKED_PIECES * GPUCSR_LOCKED_BYTES, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A large request should lie apart from the block");

  PetscCall(GPUCSRMalloc(d, GPUCSR_LOCKED_BYTES, "a test", &numbers));
  PetscCall(ops->zero(d->id, numbers, GPUCSR_LOCKED_BYTES, d->stream));
  PetscCall(ops->copy(d->id, p[5], numbers, GPUCSR_LOCKED_BYTES, GPUCSR_TO_HOST, d->stream));
  PetscCall(ops->hostfree(d->id, p[5]));
  PetscCall(ops->hostmalloc(d->id, 1, (void **)&again));
  PetscCheck(again == p[5], PETSC_COMM_SELF, PETSC_ERR_PLIB, "The free piece should be had again");
  *again = 7;
  PetscCall(GPUCSRDeviceSynchronize(d));
  PetscCheck(*again == 7, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Work of a piece's former user writes into the piece");
  PetscCall(GPUCSRFree(d, GPUCSR_LOCKED_BYTES, &numbers));

  PetscCall(ops->hostfree(d->id, p[0]));
  f->kind = GPUCSR_FAULT_PAGELOCK;
  f->at   = f->calls[f->kind] + 1;
  GPUCSRTry(&attempt, ops->hostmalloc(d->id, 1, (void **)&p[0]));
  f->at = 0;
  PetscCheck(attempt.error == PETSC_ERR_MEM, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Error %d, not that of memory", (int)attempt.error);
  for (int k = 1; k < GPUCSR_LOCKED_PIECES + 2; k++) PetscCall(ops->hostfree(d->id, p[k]));
  PetscCall(ops->hostfree(d->id, large));
  PetscCheck(f->hostmemory == living, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d pieces of page-locked memory are lost", (int)(f->hostmemory - living));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const size_t            stage = GPUCSR_STAGE_BYTES / 8, lengths[] = {0, 1, 7, 1000, 4096, 4097, 8192, 8193, 40000, stage - 1, stage, stage + 1, 2 * stage, 9 * stage + 5};
  char                    backend[32] = "host", why[512];
  static GPUCSRBackendOps ops;
  GPUCSRDevice            d;
  GPUCSRAttempt           attempt;
  GPUCSREvent             e0, e1;
  GPUCSRStream            s;
  double                  seconds, bandwidth, odd[4] = {NAN, INFINITY, -0.0, 1e300}, rounding = 0;
  float                   f[4];
  int64_t                 wide[3] = {0, 5, 2147483647};
  int32_t                 narrow[3], index[3] = {-1, 5, 2147483647};
  size_t                  avail, total;
  PetscErrorCode          ierr;
  PetscBool               same, mine = PETSC_TRUE, staged = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &d, why, sizeof(why)));
  PetscCheck(d, PETSC_COMM_SELF, PETSC_ERR_GPU, "Backend %s: %s", backend, why);
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-staged", &staged, NULL));
  if (staged) PetscCall(Separate(d, &ops));
  PetscCheck(d->props.name[0] && d->props.processors > 0 && d->props.memory > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Properties are missing");
  PetscCall(d->ops->memory(d->id, &avail, &total));
  PetscCheck(avail > 0 && avail <= total, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu bytes free of %zu", avail, total);
  for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
    PetscCall(TestShare((PetscInt)k, &mine));
    for (int pinned = 0; pinned < 2 && mine; pinned++) {
      PetscCall(RoundTrip(d, lengths[k], GPUCSR_DOUBLE, (PetscBool)pinned));
      PetscCall(RoundTrip(d, lengths[k], GPUCSR_FLOAT, (PetscBool)pinned));
    }
    if (mine) PetscCall(Together(d, lengths[k]));
  }
  if (staged) PetscCall(InHand(d));
  PetscCall(PetscStrcmp(backend, "cuda", &same));
  if (same) PetscCall(Locked(d));

  /* NaN stays NaN; a number too large for float loses everything */
  PetscCall(GPUCSRConvert(f, GPUCSR_FLOAT, odd, GPUCSR_DOUBLE, 3, 1, &rounding));
  PetscCheck(isnan(f[0]) && isinf(f[1]) && f[2] == 0 && signbit(f[2]) && rounding == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Special values change on their way: %g %g %g, rounding %g", f[0], f[1], f[2], rounding);
  PetscCall(GPUCSRConvert(f, GPUCSR_FLOAT, odd, GPUCSR_DOUBLE, 4, 1, &rounding));
  PetscCheck(rounding == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "1e300 as a float should count as lost, rounding %g", rounding);
  PetscCall(GPUCSRConvert(narrow, GPUCSR_INT32, wide, GPUCSR_INT64, 3, 1, NULL));
  PetscCheck(narrow[1] == 5 && narrow[2] == 2147483647, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Indices change on their way");
  PetscCall(GPUCSRConvert(wide, GPUCSR_INT64, index, GPUCSR_INT32, 3, 1, NULL));
  PetscCheck(wide[0] == -1 && wide[1] == 5 && wide[2] == 2147483647, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Indices change on their way back");

  PetscCall(d->ops->streamcreate(d->id, &s));
  PetscCall(d->ops->eventcreate(d->id, PETSC_TRUE, &e0));
  PetscCall(d->ops->eventcreate(d->id, PETSC_TRUE, &e1));
  PetscCall(d->ops->eventrecord(d->id, e0, s));
  PetscCall(d->ops->streamwait(d->id, d->stream, e0));
  PetscCall(d->ops->eventrecord(d->id, e1, s));
  PetscCall(d->ops->eventelapsed(d->id, e0, e1, &seconds));
  PetscCheck(seconds >= 0 && seconds < 10, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Nothing took %g s", seconds);
  PetscCall(d->ops->eventdestroy(d->id, e0));
  PetscCall(d->ops->eventdestroy(d->id, e1));
  PetscCall(d->ops->streamdestroy(d->id, s));
  PetscCall(GPUCSRDeviceBandwidth(d, &bandwidth));
  PetscCheck(bandwidth > 1e8 && bandwidth < 1e15, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Copy bandwidth %g bytes/s", bandwidth);

  d->limit = d->allocated + 1000;
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = TooMuch(d);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCheck(ierr == PETSC_ERR_MEM, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Error %d, not that of memory", (int)ierr);
  PetscCall(PetscStrbeginswith(attempt.message, backend, &same));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The message should begin with the backend: %s", attempt.message);
  d->limit = 0;

  PetscCheck(!d->allocated, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu bytes are not given back", d->allocated);
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
