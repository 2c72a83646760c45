/*
  Fuzz target: gpucsr-convert on a file of any format, plain or compressed. An accepted file is written in a format chosen by the first byte, read again and written in another: matrix and sizes must stay the same. The second byte decides whether bad lines are skipped, the base of indices, and whether entries are sorted by files.
*/
#define main ConvertMain
#include "../../src/bin/convert.c"
#undef main

enum {
  WIDEST = 1 << 16 /* larger matrices are read, not written: text has a line for each of their columns */
};

static char paths[3][64];

int omp_get_max_threads(void)
{
  return 1;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc;
  (void)argv;
  for (int k = 0; k < 3; k++) snprintf(paths[k], sizeof(paths[k]), "/dev/shm/fuzz-convert-%d-%d", (int)getpid(), k);
  return 0;
}

static void Must(int ok)
{
  if (!ok) abort();
}

/* As in main(); the result is in s */
static int Run(const Command *k, Statistics *s)
{
  Conversion  c;
  GPUCSRFault fault;
  int64_t     base = k->base == 0 ? 0 : 1;
  int         failed;

  for (int pass = 0;; pass++) {
    memset(&c, 0, sizeof(c));
    memset(&fault, 0, sizeof(fault));
    c.command = k;
    c.threads = 1;
    c.base    = base;
    c.again   = pass;
    failed    = Convert(&c, &fault);
    if (!failed || !c.again || pass) break;
    base = 0;
    Destroy(&c);
  }
  *s        = c.statistics;
  s->column = NULL;
  Must(!failed == !fault.why[0]);
  Destroy(&c);
  return failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const char *const formats[] = {"petsc", "libsvm", "market"};
  Command                  k;
  Statistics               first, s;
  FILE                    *out;

  if (size < 2) return 0;
  out = fopen(paths[0], "wb");
  Must(out != NULL);
  Must(fwrite(data + 2, 1, size - 2, out) == size - 2);
  fclose(out);
  memset(&k, 0, sizeof(k));
  k.input   = paths[0];
  k.columns = k.memory = -1;
  k.threads            = 1;
  k.quiet              = 1;
  k.skip               = data[1] & 1;
  k.base               = (data[1] >> 1) % 3 - 1;
  if (data[1] & 64) k.memory = 0;
  if (Run(&k, &first) || first.m > WIDEST || first.n > WIDEST) return 0;
  for (int step = 0; step < 2; step++) {
    k.output = paths[1 + step];
    k.to     = formats[(data[0] >> 2 * step & 3) % 3];
    Must(!Run(&k, &s) && s.m == first.m && s.n == first.n && s.nz == first.nz && s.sum == first.sum);
    k.input   = k.output;
    k.from    = k.to;        /* an empty matrix as LIBSVM is an empty file of no format */
    k.base    = k.base != 0; /* the matrix written */
    k.skip    = 0;
    k.columns = first.n;
    if (!first.m) break;
  }
  return 0;
}
