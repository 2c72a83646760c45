/*
  The samples for fit, of one run or several: samples of a product are neighbours, with the last sample of each pair, and their best.

  All products of a run may take longer than in an earlier run, by the same time at any size: the time of a launch depends on the host. The program subtracts
  the median of this difference over short products.

  A product of which a run timed some pairs alone (spmv -pairs) gives their times, but not the loss of a choice, unless another run timed the other
  pairs.
*/
#include "fit.h"

#define SHORT  10 /* us: products of which the launch is a part that counts */
#define FEW    20 /* pairs, all that some runs timed of a product */
#define SHARED 30 /* so many pairs in common, or runs are not compared */

Sample       *sample;
int           nsamples, nproducts, nmatrices, njudged;
PetscBool     judged[MAX_PRODUCTS];
GPUCSRCostRow row[MAX_PAIRS];
int           npairs;
PetscBool     excluded[MAX_PAIRS];
char         *without[16];
PetscInt      nwithout;

/* Classes of row lengths, the same for all samples of a product */
typedef struct {
  int     rows[GPUCSR_NCLASSES];
  int64_t entries[GPUCSR_NCLASSES];
} Lengths;

static PetscErrorCode ReadLengths(const char *text, const Lengths *last, const Lengths **lengths)
{
  Lengths l, *kept;

  PetscFunctionBeginUser;
  for (int b = 0; b < GPUCSR_NCLASSES; b++) {
    double entries = 0;
    int    used    = 0;

    l.rows[b] = 0;
    (void)sscanf(text, "%d:%lf%n", &l.rows[b], &entries, &used);
    l.entries[b] = (int64_t)entries;
    text += used + (text[used] == ',');
  }
  *lengths = last;
  if (last && !memcmp(last, &l, sizeof(l))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&kept)); /* for the life of the program */
  *kept    = l;
  *lengths = kept;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Excludes pairs of -without, and kernels that this version does not have for the format */
static PetscErrorCode Excluded(const GPUCSRFormat *format, const char kernel[], PetscBool *yes)
{
  const GPUCSRKernel *k;
  char                names[3 * GPUCSR_WORD];

  PetscFunctionBeginUser;
  k    = GPUCSRKernelFind(kernel);
  *yes = (PetscBool)(!k || strcmp(k->format, format->family));
  (void)snprintf(names, sizeof(names), "%s %s", format->name, kernel);
  for (int w = 0; w < nwithout; w++)
    if (strstr(names, without[w])) *yes = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The number of a matrix by its name */
static int Matrix(const char name[])
{
  static char known[MAX_MATRICES][64];
  int         k = 0;

  while (k < nmatrices && strcmp(known[k], name)) k++;
  if (k == nmatrices && nmatrices < MAX_MATRICES) (void)snprintf(known[nmatrices++], sizeof(known[0]), "%s", name);
  return k;
}

/* The number of a sample's product: mostly the last one's */
static int Product(const Sample *s)
{
  static int one[MAX_PRODUCTS]; /* a sample of each */

  for (int q = nproducts; q-- > 0;) {
    const Sample *t = &sample[one[q]];

    if (!strcmp(s->matrix, t->matrix) && !strcmp(s->side, t->side) && !strcmp(s->precision, t->precision)) return q;
  }
  if (nproducts < MAX_PRODUCTS) one[nproducts++] = (int)(s - sample);
  return nproducts - 1;
}

PetscErrorCode SortByProduct(void)
{
  Sample *sorted;
  int     n = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(nsamples, &sorted));
  for (int q = 0; q < nproducts; q++) {
    const int from = n;
    double    best = PETSC_MAX_REAL, told = PETSC_MAX_REAL;

    for (int k = 0; k < nsamples; k++) {
      int to = from;

      if (sample[k].product != q) continue;
      told = PetscMin(told, sample[k].best);
      while (to < n && sorted[to].pair != sample[k].pair) to++;
      sorted[to] = sample[k];
      n          = PetscMax(n, to + 1);
    }
    for (int k = from; k < n; k++) best = PetscMin(best, sorted[k].us);
    judged[q] = (PetscBool)(n - from >= FEW);
    njudged += judged[q];
    for (int k = from; k < n; k++) {
      sorted[k].best   = judged[q] ? best : PetscMin(best, told);
      sorted[k].weight = pow(pow(sorted[k].best / sorted[k].us, 1.5) / sorted[k].us, 2); /* samples far from the best need little accuracy */
    }
  }
  PetscCall(PetscFree(sample));
  sample   = sorted;
  nsamples = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Subtracts the additional time of the samples from one on */
static PetscErrorCode TakeOffLaunch(const char file[], int begin)
{
  double    *before;
  PetscReal *longer;
  PetscInt   n = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1((size_t)nproducts * (size_t)npairs, &before));
  PetscCall(PetscMalloc1(nsamples - begin, &longer));
  for (int k = 0; k < nsamples; k++) {
    double *b = &before[(size_t)sample[k].product * (size_t)npairs + (size_t)sample[k].pair];

    if (k < begin) *b = sample[k].us;
    else if (*b > 0 && *b < SHORT) longer[n++] = sample[k].us - *b;
  }
  if (n >= SHARED) {
    PetscCall(PetscSortReal(n, longer));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: %.3f us longer than before, by %" PetscInt_FMT " pairs in common\n", file, (double)longer[n / 2], n));
    for (int k = begin; k < nsamples; k++) {
      sample[k].us -= longer[n / 2];
      sample[k].best -= longer[n / 2];
    }
  }
  PetscCall(PetscFree(before));
  PetscCall(PetscFree(longer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The caller closes the file, a packed file by pclose() */
static PetscErrorCode Open(const char file[], PetscBool *packed, FILE **f)
{
  char command[PETSC_MAX_PATH_LEN + 32];

  PetscFunctionBeginUser;
  PetscCall(PetscStrendswith(file, ".xz", packed));
  (void)snprintf(command, sizeof(command), "xz -dc '%s'", file);
  *f = fopen(file, "r");
  PetscCheck(*f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be read", file);
  if (!*packed) PetscFunctionReturn(PETSC_SUCCESS);
  (void)fclose(*f);
  *f = popen(command, "r");
  PetscCheck(*f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be unpacked by xz", file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ReadSamples(const char file[])
{
  FILE          *f       = NULL;
  const Lengths *lengths = NULL;
  char           line[2048];
  int            number = 0, wrong;
  const int      begin  = nsamples;
  PetscBool      packed;

  PetscFunctionBeginUser;
  PetscCall(Open(file, &packed, &f));
  while (fgets(line, sizeof(line), f)) {
    Sample             *s;
    GPUCSRModelInput   *in;
    GPUCSRFeatures      features = {0};
    GPUCSRExtent        extent   = {0};
    const GPUCSRFormat *format;
    double              deviation;
    int                 used = 0;

    number++;
    if (nsamples % 65536 == 0) PetscCall(PetscRealloc(sizeof(*sample) * (size_t)(nsamples + 65536), &sample));
    s  = &sample[nsamples];
    in = &s->in;
    memset(s, 0, sizeof(*s));
    PetscCheck(strchr(line, '\n'), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s, line %d: cut short; spmv -samples writes the file anew", file, number);
    PetscCheck(sscanf(line, "%63s %3s %15s %31s %31s %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %*f %lf %lf %*f %*f %lf %lf %lf %n", s->matrix, s->side, s->precision, s->format, s->kernel, &s->us, &s->best, &s->convert, &in->matrix, &in->vectors, &in->cache, &in->rows, &in->stored, &in->mean, &in->max, &in->sectors, &in->quads, &s->columns, &deviation, &in->spread, &in->heaviest, &in->fetched[0], &in->fetched[1], &used) == 23 && used, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s, line %d: not a sample", file, number);
    PetscCall(ReadLengths(line + used, lengths, &lengths));
    format = GPUCSRFormatFind(s->format);
    if (!format) continue; /* of another version */
    features.m   = (int)in->rows;
    features.n   = (int)s->columns;
    features.max = (int)in->max;
    (*format->ops->estimate)(&features, format->variant, &extent);
    in->columns = s->columns;
    in->number  = strcmp(s->precision, "single") ? 8 : 4;
    in->lengths = lengths->rows;
    in->entries = lengths->entries;
    for (in->nclasses = 1; in->nclasses < GPUCSR_NCLASSES && features.max >> (in->nclasses - 1);) in->nclasses++;
    GPUCSRModelRows(format, extent.window, in->rows, deviation, in);
    for (s->pair = 0; s->pair < npairs; s->pair++)
      if (!strcmp(row[s->pair].format, s->format) && !strcmp(row[s->pair].kernel, s->kernel)) break;
    if (s->pair == npairs) {
      PetscCheck(npairs < MAX_PAIRS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d pairs", MAX_PAIRS);
      PetscCall(PetscStrncpy(row[npairs].format, s->format, GPUCSR_WORD));
      PetscCall(PetscStrncpy(row[npairs].kernel, s->kernel, GPUCSR_WORD));
      PetscCall(Excluded(format, s->kernel, &excluded[npairs]));
      npairs++;
    }
    s->product = Product(s);
    s->number  = Matrix(s->matrix);
    nsamples++;
  }
  wrong = packed ? pclose(f) : fclose(f);
  PetscCheck(!wrong, PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s: cannot be read to its end%s", file, packed ? ": xz says why" : "");
  PetscCall(TakeOffLaunch(file, begin));
  PetscFunctionReturn(PETSC_SUCCESS);
}
