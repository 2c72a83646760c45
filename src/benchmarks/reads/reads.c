static char help[] = "Read bandwidth of a GPU: rows of equal length, one block or one thread a row, with every kind of load.\n\n";

/*
    reads [-o FILE] [-budget s] [-rounds n] [-totals MiB,...] [-id TEXT]

  A. H. El Zein, M. Phil. thesis, ANU 2009, tables 4.1, 4.2 and A.1, figure 4.2: rows of equal length are read by a thread block (coalesced) or by one thread (sequential).
  Loads of 4, 8 and 16 bytes (float, float2 or double, float4 or double2) with ordinary, read-only and streaming loads and texture; for a block also cp.async and bulk copies to
  shared memory. First the tables: -totals (1.5,25,55,390,4000) MiB by threads of a block and by floats a thread; then the figure: rows of 4 to 4096 floats, 55 and 390 MiB.

  The sum of all numbers verifies each kernel once for each total up to 55 MiB. FILE gets one line for each: total (MiB), pattern (block|thread), way, bytes (a load), threads, row
  (floats), gbs. Data that fit the last-level cache stay there between reads. papers/reads.py makes the tables.
*/
#include "../bench.h"
#include "reads.h"

static const char *const wayword[] = {"plain", "ldg", "cs", "tex", "async", "bulk"};

typedef struct {
  GPUCSRDevice        dev;
  BenchClock          clock;
  FILE               *out;
  int                 rounds, wrong, timed, late;
  PetscReal           budget;
  PetscLogDouble      begin;
  void               *from;
  size_t              bytes;
  unsigned long long *sum; /* on the device */
} Bench;

typedef struct {
  const Read         *r;
  unsigned long long *sum;
  GPUCSRStream        stream;
} Timed;

static PetscErrorCode Launch(void *ctx)
{
  const Timed *t = (const Timed *)ctx;

  PetscFunctionBeginUser;
  BenchTry(ReadLaunch(t->r, t->sum, t->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All words are 1 */
static PetscErrorCode Verify(Bench *b, const Read *r)
{
  Timed              t   = {r, b->sum, b->dev->stream};
  unsigned long long sum = 0;

  PetscFunctionBeginUser;
  PetscCall(b->dev->ops->zero(b->dev->id, b->sum, sizeof(sum), t.stream));
  PetscCall(Launch(&t));
  PetscCall(b->dev->ops->copy(b->dev->id, &sum, b->sum, sizeof(sum), GPUCSR_TO_HOST, t.stream));
  PetscCall(b->dev->ops->streamsynchronize(b->dev->id, t.stream));
  if (sum == r->row * r->rows / 4) PetscFunctionReturn(PETSC_SUCCESS);
  b->wrong++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "WRONG: %s, a row of %zu bytes by a %s of %d, loads of %d: %llu words of %zu\n", wayword[r->way], r->row, r->block ? "block" : "thread", r->threads, r->bytes, sum, r->row * r->rows / 4));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(Bench *b, const char record[], double total, Read *r)
{
  Timed          t = {r, NULL, b->dev->stream};
  double         s[32], once;
  int            batch;
  PetscLogDouble now;

  PetscFunctionBeginUser;
  r->rows = (size_t)(total * 1048576) / r->row;
  if (!r->rows || !ReadCan(r)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTime(&now));
  if (now - b->begin > b->budget) {
    b->late++;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (total <= 55) PetscCall(Verify(b, r));
  else PetscCall(Launch(&t));
  PetscCall(BenchBatch(&b->clock, Launch, &t, 1, &once));
  batch = BenchBatchSize(once);
  for (int k = 0; k < b->rounds; k++) PetscCall(BenchBatch(&b->clock, Launch, &t, batch, &s[k]));
  once = BenchMedian(s, b->rounds);
  b->timed++;
  JsonBegin(b->out, record);
  JsonNumber(b->out, "total", total);
  JsonText(b->out, "pattern", r->block ? "block" : "thread");
  JsonText(b->out, "way", wayword[r->way]);
  JsonNumber(b->out, "bytes", r->bytes);
  JsonNumber(b->out, "threads", r->threads);
  JsonNumber(b->out, "row", (double)r->row / 4);
  JsonNumber(b->out, "gbs", 1e-9 * (double)(r->row * r->rows) / once);
  JsonEnd(b->out);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* tables 4.1, 4.2, A.1: so many floats a thread */
static PetscErrorCode Tables(Bench *b, double total, Read *r)
{
  static const int threads[] = {32, 64, 128, 256, 512, 1024}, workload[] = {4, 20, 100, 1000};

  PetscFunctionBeginUser;
  for (int w = 0; w < 4; w++) {
    if ((workload[w] == 4 && total > 2) || (workload[w] == 20 && total > 100) || (workload[w] == 1000 && total < 20)) continue;
    for (int t = 0; t < 6; t++)
      for (int block = 0; block < 2; block++)
        for (int way = 0; way < READ_NWAYS; way++)
          for (int bytes = 4; bytes <= 16; bytes *= 2) {
            r->way     = (ReadWay)way;
            r->block   = block;
            r->bytes   = bytes;
            r->threads = threads[t];
            r->row     = (size_t)workload[w] * 4 * (block ? (size_t)threads[t] : 1);
            PetscCall(Measure(b, "table", total, r));
          }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* figure 4.2: rows of so many floats */
static PetscErrorCode Figure(Bench *b, double total, Read *r)
{
  PetscFunctionBeginUser;
  for (int row = 4; row <= 4096; row *= 2)
    for (int block = 0; block < 2; block++)
      for (int threads = 32; threads <= 128; threads *= 2)
        for (int bytes = 4; bytes <= 16; bytes *= 2) {
          if (!block && threads < 128) continue;
          r->way     = READ_READONLY;
          r->block   = block;
          r->bytes   = bytes;
          r->threads = threads;
          r->row     = (size_t)row * 4;
          PetscCall(Measure(b, "figure", total, r));
        }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n words of 1 on the device */
static PetscErrorCode Ones(Bench *b, size_t bytes)
{
  const size_t piece = PetscMin(bytes, (size_t)64 << 20);
  unsigned    *h;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(piece / 4, &h));
  for (size_t k = 0; k < piece / 4; k++) h[k] = 1;
  for (size_t at = 0; at < bytes; at += piece) PetscCall(GPUCSRUpload(b->dev, (char *)b->from + at, GPUCSR_INT32, h, GPUCSR_INT32, PetscMin(piece, bytes - at) / 4, PETSC_FALSE, b->dev->stream, NULL));
  PetscCall(GPUCSRDeviceSynchronize(b->dev));
  PetscCall(PetscFree(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Bench     b         = {0};
  PetscReal total[16] = {1.5, 25, 55, 390, 4000}, most = 0, budget = 40;
  PetscInt  ntotals = 16, rounds = 3;
  PetscBool set;
  Read      r;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscTime(&b.begin));
  PetscCall(PetscOptionsGetRealArray(NULL, NULL, "-totals", total, &ntotals, &set));
  if (!set) ntotals = 5;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &rounds, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-budget", &budget, NULL));
  PetscCheck(rounds >= 1 && rounds <= 32, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-rounds must be from 1 to 32");
  b.rounds = (int)rounds;
  b.budget = budget;
  PetscCall(BenchDevice(&b.dev));
  PetscCheck(b.dev->ops->separate, PETSC_COMM_SELF, PETSC_ERR_SUP, "What is measured is a GPU, and there is none");
  PetscCall(BenchOutput("reads", b.dev, &b.out));
  PetscCall(BenchClockCreate(b.dev, &b.clock));
  for (int k = 0; k < ntotals; k++) most = PetscMax(most, total[k]);
  b.bytes = (size_t)(PetscMax(most, 390) * 1048576);
  PetscCall(GPUCSRMalloc(b.dev, b.bytes, "what is read", &b.from));
  PetscCall(GPUCSRMalloc(b.dev, sizeof(*b.sum), "a sum", (void **)&b.sum));
  PetscCall(Ones(&b, b.bytes));
  memset(&r, 0, sizeof(r));
  r.from = b.from;
  BenchTry(ReadTextures(b.from, b.bytes, r.texture));
  PetscCall(Figure(&b, 55, &r));
  PetscCall(Figure(&b, 390, &r));
  for (int k = 0; k < ntotals; k++) PetscCall(Tables(&b, total[k], &r));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d reads timed, %d WRONG, %d left out by -budget\n", b.timed, b.wrong, b.late));
  ReadTexturesDestroy(r.texture);
  PetscCall(GPUCSRFree(b.dev, b.bytes, &b.from));
  PetscCall(GPUCSRFree(b.dev, sizeof(*b.sum), (void **)&b.sum));
  if (b.out) fclose(b.out);
  PetscCall(BenchClockDestroy(&b.clock));
  PetscCall(PetscFinalize());
  return b.wrong > 0;
}
