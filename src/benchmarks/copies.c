static char help[] = "Copies between host and device by size, in every way that this library can copy.\n\n";

/*
    copies [-o FILE] [-repeats n] [-threads 1,4,16] [-most MiB] [-backend auto|cuda|host] [-id TEXT]

  A. H. El Zein, M. Phil. thesis, ANU 2009, table 3.2. From 1 byte to -most (100) MiB, up and down:
    pageable    the CUDA runtime's copy of memory from malloc()
    pinned      the library's copy of its own page-locked memory
    registered  the same of other memory, page-locked in place; register: page-locking itself
    staged      GPUCSRUpload(), GPUCSRDownload() of memory from malloc(), through page-locked buffers that -threads threads fill
    mapped      a kernel reads or writes page-locked host memory
    pieces      one command for each MiB of page-locked memory
    both        pinned, both directions at once, their bytes added
    device      on the device; peer: to the next GPU, if there is one
  A time is from the call until the host knows that the data have arrived: the median of -repeats (9).

  FILE gets one line for each: way, direction (up|down|both|device), threads, bytes, us. src/benchmarks/papers/reads.py makes the tables. -backend host tries the program.
*/
#include "bench.h"
#include <omp.h>

typedef struct {
  GPUCSRDevice dev;
  FILE        *out;
  int          repeats;
  void        *pageable, *pinned, *locked, *device[2], *pinned2; /* of the most bytes */
  size_t       most;
  GPUCSRBool   islocked;
} Bench;

typedef enum {
  PAGEABLE,
  PINNED,
  REGISTERED,
  STAGED,
  MAPPED,
  PIECES,
  BOTH,
  DEVICE,
  PEER,
  NWAYS
} Way;
static const char *const wayword[] = {"pageable", "pinned", "registered", "staged", "mapped", "pieces", "both", "device", "peer"};

#define PIECE_BYTES ((size_t)1 << 20)

/* A copy, all of it done */
static PetscErrorCode Copy(const Bench *b, Way way, PetscBool up, size_t bytes)
{
  const GPUCSRBackendOps *ops  = b->dev->ops;
  const int               id   = b->dev->id;
  const GPUCSRStream      s    = b->dev->stream;
  void                   *host = way == PAGEABLE || way == STAGED ? b->pageable : way == REGISTERED ? b->locked : b->pinned;
  void                   *from = up ? host : b->device[0], *to = up ? b->device[0] : host;
  const GPUCSRCopyKind    kind = up ? GPUCSR_TO_DEVICE : GPUCSR_TO_HOST;

  PetscFunctionBeginUser;
  switch (way) {
  case PAGEABLE:
    if (!ops->separate) memcpy(to, from, bytes);
    else {
      cudaError_t err = cudaMemcpy(to, from, bytes, cudaMemcpyDefault);

      if (!err) err = cudaStreamSynchronize(NULL); /* a small copy may return before its data arrive */
      PetscCheck(!err, PETSC_COMM_SELF, PETSC_ERR_GPU, "cudaMemcpy() of %zu bytes failed with %s", bytes, cudaGetErrorName(err));
    }
    break;
  case STAGED:
    /* in numbers of four bytes, as there is no smaller type */
    if (up) PetscCall(GPUCSRUpload(b->dev, to, GPUCSR_INT32, from, GPUCSR_INT32, (bytes + 3) / 4, PETSC_FALSE, s, NULL));
    else PetscCall(GPUCSRDownload(b->dev, to, GPUCSR_INT32, from, GPUCSR_INT32, (bytes + 3) / 4, PETSC_FALSE, s));
    break;
  case MAPPED:
    PetscCall(ops->fetch(id, to, from, bytes, s));
    break;
  case PIECES:
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) PetscCall(ops->copy(id, (char *)to + at, (char *)from + at, PetscMin(PIECE_BYTES, bytes - at), kind, s));
    break;
  case BOTH:
    PetscCall(ops->copy(id, b->device[0], b->pinned, bytes, GPUCSR_TO_DEVICE, b->dev->up));
    PetscCall(ops->copy(id, b->pinned2, b->device[1], bytes, GPUCSR_TO_HOST, b->dev->down));
    PetscCall(ops->streamsynchronize(id, b->dev->up));
    PetscCall(ops->streamsynchronize(id, b->dev->down));
    break;
  case DEVICE:
    PetscCall(ops->copy(id, b->device[1], b->device[0], bytes, GPUCSR_ON_DEVICE, s));
    break;
  default:
    PetscCall(ops->copy(id, to, from, bytes, kind, s));
  }
  PetscCall(ops->streamsynchronize(id, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Write(const Bench *b, const char way[], const char direction[], int threads, size_t bytes, double seconds)
{
  JsonBegin(b->out, "copy");
  JsonText(b->out, "way", way);
  JsonText(b->out, "direction", direction);
  JsonNumber(b->out, "threads", threads);
  JsonNumber(b->out, "bytes", (double)bytes);
  JsonNumber(b->out, "us", 1e6 * seconds);
  JsonEnd(b->out);
}

static PetscErrorCode Time(const Bench *b, Way way, PetscBool up, size_t bytes, int threads)
{
  const PetscBool oneway = (PetscBool)(way < BOTH);
  double          t[64];
  PetscLogDouble  t0, t1;

  PetscFunctionBeginUser;
  for (int k = -2; k < b->repeats; k++) {
    PetscCall(PetscTime(&t0));
    PetscCall(Copy(b, way, up, bytes));
    PetscCall(PetscTime(&t1));
    if (k >= 0) t[k] = t1 - t0;
  }
  Write(b, wayword[way], oneway ? (up ? "up" : "down") : way == BOTH ? "both" : "device", threads, way == BOTH ? 2 * bytes : bytes, BenchMedian(t, b->repeats));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do the data come back unchanged, by each way? */
static PetscErrorCode Verify(const Bench *b, Way way)
{
  const size_t bytes = PetscMin(b->most, (size_t)3000004);
  unsigned    *up    = (unsigned *)(way == PAGEABLE || way == STAGED ? b->pageable : way == REGISTERED ? b->locked : b->pinned);
  PetscBool    same  = PETSC_TRUE;

  PetscFunctionBeginUser;
  for (size_t k = 0; k < bytes / 4; k++) up[k] = (unsigned)(k * 2654435761u + (unsigned)way);
  PetscCall(Copy(b, way, PETSC_TRUE, bytes));
  memset(up, 0, bytes);
  PetscCall(Copy(b, way, PETSC_FALSE, bytes));
  for (size_t k = 0; k < bytes / 4; k++) same = (PetscBool)(same && up[k] == (unsigned)(k * 2654435761u + (unsigned)way));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: what comes back is not what was sent", wayword[way]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Page-lock and release memory of somebody else's */
static PetscErrorCode Register(const Bench *b, size_t bytes)
{
  double         t[64];
  GPUCSRBool     done = PETSC_FALSE;
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  for (int k = 0; k < PetscMin(b->repeats, 5); k++) {
    PetscCall(PetscTime(&t0));
    PetscCall(b->dev->ops->hostregister(b->dev->id, b->pageable, bytes, &done));
    PetscCall(PetscTime(&t1));
    if (done) PetscCall(b->dev->ops->hostunregister(b->dev->id, b->pageable));
    t[k] = t1 - t0;
  }
  if (done) Write(b, "register", "up", 1, bytes, BenchMedian(t, PetscMin(b->repeats, 5)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To the memory of the next GPU, through whatever lies between */
static PetscErrorCode Peer(const Bench *b, const size_t bytes[], int nsizes)
{
  int            n     = 0;
  void          *there = NULL;
  double         t[64];
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  if (!b->dev->ops->separate || cudaGetDeviceCount(&n) || n < 2) PetscFunctionReturn(PETSC_SUCCESS);
  (void)cudaSetDevice(1);
  (void)cudaDeviceEnablePeerAccess(0, 0);
  if (cudaMalloc(&there, b->most)) there = NULL;
  (void)cudaSetDevice(0);
  (void)cudaDeviceEnablePeerAccess(1, 0);
  (void)cudaGetLastError();
  for (int q = 0; q < nsizes && there; q++) {
    for (int k = -2; k < b->repeats; k++) {
      PetscCall(PetscTime(&t0));
      (void)cudaMemcpyPeerAsync(there, 1, b->device[0], 0, bytes[q], (cudaStream_t)b->dev->stream);
      PetscCall(b->dev->ops->streamsynchronize(b->dev->id, b->dev->stream));
      PetscCall(PetscTime(&t1));
      if (k >= 0) t[k] = t1 - t0;
    }
    Write(b, wayword[PEER], "device", 1, bytes[q], BenchMedian(t, b->repeats));
  }
  (void)cudaFree(there);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Memory(Bench *b, PetscBool create)
{
  const GPUCSRBackendOps *ops = b->dev->ops;
  const int               id  = b->dev->id;

  PetscFunctionBeginUser;
  if (create) {
    PetscCall(PetscMalloc1(b->most, (char **)&b->pageable)); /* not together: they must not share a page */
    PetscCall(PetscMalloc1(b->most, (char **)&b->locked));
    PetscCall(ops->hostmalloc(id, b->most, &b->pinned));
    PetscCall(ops->hostmalloc(id, b->most, &b->pinned2));
    memset(b->pageable, 1, b->most);
    memset(b->locked, 1, b->most);
    memset(b->pinned, 1, b->most);
    memset(b->pinned2, 1, b->most);
    PetscCall(ops->hostregister(id, b->locked, b->most, &b->islocked));
  } else {
    if (b->islocked) PetscCall(ops->hostunregister(id, b->locked));
    PetscCall(ops->hostfree(id, b->pinned));
    PetscCall(ops->hostfree(id, b->pinned2));
    PetscCall(PetscFree(b->pageable));
    PetscCall(PetscFree(b->locked));
  }
  for (int k = 0; k < 2; k++)
    if (create) PetscCall(GPUCSRMalloc(b->dev, b->most, "copies", &b->device[k]));
    else PetscCall(GPUCSRFree(b->dev, b->most, &b->device[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Bench     b       = {0};
  PetscInt  repeats = 9, threads[16] = {1, 4, 8, 16}, nthreads = 16;
  PetscReal most = 100;
  size_t    bytes[32];
  int       nsizes = 0, all;
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-most", &most, NULL));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-threads", threads, &nthreads, &set));
  if (!set) nthreads = 4;
  PetscCheck(repeats >= 1 && repeats <= 64, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-repeats must be from 1 to 64");
  b.repeats = (int)repeats;
  PetscCall(BenchDevice(&b.dev));
  PetscCall(BenchOutput("copies", b.dev, &b.out));
  b.most          = (size_t)(PetscMax(most, 4) * 1048576);
  bytes[nsizes++] = 1;
  for (size_t k = 1024; k < b.most; k *= 4) bytes[nsizes++] = k;
  bytes[nsizes++] = b.most;
  all             = b.dev->threads;
  PetscCall(Memory(&b, PETSC_TRUE));
  for (int way = 0; way <= PIECES; way++)
    if ((way != REGISTERED || b.islocked) && (way != MAPPED || b.dev->ops->fetch)) PetscCall(Verify(&b, (Way)way));
  for (int way = 0; way < PEER; way++)
    for (int q = 0; q < nsizes; q++)
      for (PetscInt t = 0; t < (way == STAGED ? nthreads : 1); t++)
        for (int up = 1; up >= (way < BOTH ? 0 : 1); up--) {
          if ((way == REGISTERED && !b.islocked) || (way == MAPPED && !b.dev->ops->fetch) || (way == PIECES && bytes[q] <= PIECE_BYTES)) continue;
          if (way == STAGED) b.dev->threads = (int)PetscMin(threads[t], omp_get_num_procs());
          PetscCall(Time(&b, (Way)way, (PetscBool)up, bytes[q], way == STAGED ? b.dev->threads : 1));
          b.dev->threads = all;
        }
  for (int q = 0; q < nsizes; q++) PetscCall(Register(&b, bytes[q]));
  PetscCall(Peer(&b, bytes, nsizes));
  PetscCall(Memory(&b, PETSC_FALSE));
  if (b.out) fclose(b.out);
  PetscCall(PetscFinalize());
  return 0;
}
