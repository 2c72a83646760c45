static char help[] = "Fits the profile of a machine to measured products.\n\n";

/*
    fit [-o PROFILE] [-header FILE] [-machine NAME] [-pairs n] [-show r] SAMPLES ...

  SAMPLES are what spmv -samples leaves, a line a product: matrix side precision format kernel us best_us convert_us and the input of the
  model (GPUCSRModelInput), columns, density. PROFILE is the text that -mat_gpucsr_profile reads, and -header the same as a C string, for
  src/mat/impls/gpucsr/plan/h200.h.

  Of the pairs of a format and a kernel, so many (36) are kept as lose little: one after the other the one with which the mean of the best of
  those kept over the best of all falls most. More would each be chosen mostly by mistake.

  For each pair: how it goes along a row (width, threads, most) is searched over a list; the terms' times are
  non-negative least squares on relative errors, a product the heavier the nearer the pair is to the best there. The decision tree takes, for each
  class of mean length and columns, the pair with the least time in the geometric mean.

  -show r lists the products whose chosen pair takes more than r times the best one's time, with the pairs that come near that.

  Says what choosing by model and by tree would have lost on these products (chosen time / best time), and by cross-validation: each matrix
  judged by a model that was fitted without it.
*/
#include "../mat/impls/gpucsr/plan/plan.h"
#include "bench.h"
#include <string.h>

#define MAX_PAIRS 512
#define FOLDS     5

typedef struct {
  char             matrix[64], side[4], precision[16], format[GPUCSR_WORD], kernel[GPUCSR_WORD];
  double           us, best, convert, columns, density;
  GPUCSRModelInput in;
  int              pair, product, fold;
} Sample;

static Sample       *sample;
static int           nsamples, nproducts;
static GPUCSRCostRow row[MAX_PAIRS];
static int           npairs;

static PetscErrorCode Read(const char file[])
{
  FILE *f = fopen(file, "r");
  char  line[1024];
  int   number = 0;

  PetscFunctionBeginUser;
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be read", file);
  while (fgets(line, sizeof(line), f)) {
    Sample           *s;
    GPUCSRModelInput *in;
    unsigned int      hash = 5381;

    number++;
    if (nsamples % 65536 == 0) PetscCall(PetscRealloc(sizeof(*sample) * (size_t)(nsamples + 65536), &sample));
    s  = &sample[nsamples];
    in = &s->in;
    memset(s, 0, sizeof(*s));
    PetscCheck(sscanf(line, "%63s %3s %15s %31s %31s %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf", s->matrix, s->side, s->precision, s->format, s->kernel, &s->us, &s->best, &s->convert, &in->matrix, &in->vectors, &in->cache, &in->rows, &in->stored, &in->mean, &in->max, &in->sectors, &in->quads, &s->columns, &s->density) == 19, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s, line %d: not a sample", file, number);
    for (s->pair = 0; s->pair < npairs; s->pair++)
      if (!strcmp(row[s->pair].format, s->format) && !strcmp(row[s->pair].kernel, s->kernel)) break;
    if (s->pair == npairs) {
      PetscCheck(npairs < MAX_PAIRS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d pairs", MAX_PAIRS);
      PetscCall(PetscStrncpy(row[npairs].format, s->format, GPUCSR_WORD));
      PetscCall(PetscStrncpy(row[npairs].kernel, s->kernel, GPUCSR_WORD));
      npairs++;
    }
    /* samples of one product stand together */
    if (!nsamples || strcmp(s->matrix, sample[nsamples - 1].matrix) || strcmp(s->side, sample[nsamples - 1].side) || strcmp(s->precision, sample[nsamples - 1].precision)) nproducts++;
    s->product = nproducts - 1;
    for (const char *c = s->matrix; *c; c++) hash = 33 * hash + (unsigned char)*c;
    s->fold = (int)(hash % FOLDS);
    nsamples++;
  }
  (void)fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Which pairs are kept: greedily, by the mean logarithm of the least time among those kept over the least of all; a product that none of
  them can hold counts as 50 times. Samples of the others are dropped.
*/
static PetscErrorCode Keep(int most)
{
  double *least, *sum;
  int    *kept, n = 0, m = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc3(nproducts, &least, npairs, &sum, npairs, &kept));
  for (int p = 0; p < nproducts; p++) least[p] = log(50);
  for (int q = 0; q < npairs; q++) kept[q] = -1;
  while (n < PetscMin(most, npairs)) {
    int    pick = -1;
    double mean = 0, worst = 0;

    for (int q = 0; q < npairs; q++) sum[q] = 0;
    for (int k = 0; k < nsamples; k++) sum[sample[k].pair] += PetscMax(0, least[sample[k].product] - log(sample[k].us / sample[k].best));
    for (int q = 0; q < npairs; q++)
      if (kept[q] < 0 && (pick < 0 || sum[q] > sum[pick])) pick = q;
    if (sum[pick] <= 0) break;
    kept[pick] = n++;
    for (int k = 0; k < nsamples; k++)
      if (sample[k].pair == pick) least[sample[k].product] = PetscMin(least[sample[k].product], log(sample[k].us / sample[k].best));
    for (int p = 0; p < nproducts; p++) {
      mean += least[p] / nproducts;
      worst = PetscMax(worst, least[p]);
    }
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%3d %-12s %-24s loses %.4f in the mean, %.2f at worst\n", n, row[pick].format, row[pick].kernel, exp(mean) - 1, exp(worst) - 1));
  }
  for (int k = 0; k < nsamples; k++) {
    if (kept[sample[k].pair] < 0) continue;
    sample[m]      = sample[k];
    sample[m].pair = kept[sample[k].pair];
    m++;
  }
  nsamples = m;
  {
    static GPUCSRCostRow old[MAX_PAIRS];

    memcpy(old, row, sizeof(old));
    for (int q = 0; q < npairs; q++)
      if (kept[q] >= 0) row[kept[q]] = old[q];
  }
  npairs = n;
  PetscCall(PetscFree3(least, sum, kept));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* min |A x - b| over x >= 0, given A^T A, A^T b and b^T b: by coordinate descent; returns the square of what remains */
static double NonNegative(int n, const double AA[][GPUCSR_NTERMS], const double Ab[], double bb, double x[])
{
  double rest = bb;

  for (int i = 0; i < n; i++) x[i] = 0;
  for (int sweep = 0; sweep < 400; sweep++) {
    double moved = 0;

    for (int i = 0; i < n; i++) {
      double g = Ab[i], old = x[i];

      if (AA[i][i] <= 0) continue;
      for (int j = 0; j < n; j++) g -= AA[i][j] * x[j];
      x[i]  = PetscMax(0, x[i] + g / AA[i][i]);
      moved = PetscMax(moved, fabs(x[i] - old) * sqrt(AA[i][i]));
    }
    if (moved < 1e-10 * sqrt(bb)) break;
  }
  for (int i = 0; i < n; i++) {
    rest -= 2 * x[i] * Ab[i];
    for (int j = 0; j < n; j++) rest += x[i] * AA[i][j] * x[j];
  }
  return rest;
}

/* The times of a row whose width, threads and most are set, without fold out (-1: with all) */
static double Fit(int pair, int out, GPUCSRCostRow *c)
{
  double AA[GPUCSR_NTERMS][GPUCSR_NTERMS] = {{0}}, Ab[GPUCSR_NTERMS] = {0}, bb = 0, t[GPUCSR_NTERMS];

  for (int k = 0; k < nsamples; k++) {
    const Sample *s = &sample[k];
    double        w;

    if (s->pair != pair || s->fold == out) continue;
    w = sqrt(s->best / s->us) / s->us;
    GPUCSRModelTerms(c, &s->in, t);
    for (int i = 0; i < GPUCSR_NTERMS; i++) {
      for (int j = 0; j < GPUCSR_NTERMS; j++) AA[i][j] += w * w * t[i] * t[j];
      Ab[i] += w * w * t[i] * s->us;
    }
    bb += w * w * s->us * s->us;
  }
  return NonNegative(GPUCSR_NTERMS, (const double(*)[GPUCSR_NTERMS])AA, Ab, bb, c->time);
}

/* The best shape, and its times */
static void FitShape(int pair, GPUCSRCostRow *c)
{
  static const double widths[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, INFINITY}, threads[] = {0, 1, 2, 4, 8, 16, 32, 256}, most[] = {INFINITY, 1024, 2048};
  double              best = INFINITY;
  GPUCSRCostRow       b    = *c;

  for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
    for (size_t j = 0; j < sizeof(threads) / sizeof(threads[0]); j++)
      for (size_t k = 0; k < sizeof(most) / sizeof(most[0]); k++) {
        GPUCSRCostRow trial = *c;
        double        rest;

        trial.width   = widths[i];
        trial.threads = threads[j];
        trial.most    = most[k];
        rest          = Fit(pair, -1, &trial);
        if (rest < best) {
          best = rest;
          b    = trial;
        }
      }
  *c = b;
}

/* What making the format costs: a constant and a rate, on relative errors */
static void FitSetUp(int pair, GPUCSRCostRow *c)
{
  double AA[GPUCSR_NTERMS][GPUCSR_NTERMS] = {{0}}, Ab[GPUCSR_NTERMS] = {0}, bb = 0, x[GPUCSR_NTERMS];

  for (int k = 0; k < nsamples; k++) {
    const Sample *s    = &sample[k];
    const double  t[2] = {1, s->in.matrix}, w = 1 / PetscMax(1, s->convert);

    if (s->pair != pair) continue;
    for (int i = 0; i < 2; i++) {
      for (int j = 0; j < 2; j++) AA[i][j] += w * w * t[i] * t[j];
      Ab[i] += w * w * t[i] * s->convert;
    }
    bb += w * w * s->convert * s->convert;
  }
  (void)NonNegative(2, (const double(*)[GPUCSR_NTERMS])AA, Ab, bb, x);
  c->setup[0] = x[0];
  c->setup[1] = x[1];
}

static double Predict(const GPUCSRCostRow *c, const Sample *s)
{
  double t[GPUCSR_NTERMS], sum = 0;

  GPUCSRModelTerms(c, &s->in, t);
  for (int i = 0; i < GPUCSR_NTERMS; i++) sum += c->time[i] * t[i];
  return sum;
}

static PetscBool Allowed(const Sample *s)
{
  return !strcmp(s->format, "dense") && s->density < 1 ? PETSC_FALSE : PETSC_TRUE;
}

/* Of the model in rows[fold], or that in rows[0] for all */
static PetscErrorCode Regret(const char what[], GPUCSRCostRow (*rows)[MAX_PAIRS], PetscBool folds, double show)
{
  PetscFunctionBeginUser;
  for (int p = 0; p < 2; p++) {
    const char *precision = p ? "single" : "double";
    double      sum = 0, worst = 0;
    int         n = 0, where = 0, over = 0;

    for (int k = 0; k < nsamples;) {
      const Sample *pick  = NULL;
      double        least = INFINITY;
      const int     first = k;

      for (; k < nsamples && sample[k].product == sample[first].product; k++) {
        const double t = Predict(&rows[folds ? sample[k].fold : 0][sample[k].pair], &sample[k]);

        if (Allowed(&sample[k]) && t < least) {
          least = t;
          pick  = &sample[k];
        }
      }
      if (!pick || strcmp(pick->precision, precision)) continue;
      if (show && pick->us > show * pick->best)
        for (int q = first; q < k; q++)
          if (sample[q].us <= 1.1 * pick->best || &sample[q] == pick)
            PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-20s %s %-6s %s+%s %.2f us, predicted %.2f; rows %g mean %.3g longest %g stored %g\n", pick->matrix, pick->side, precision, sample[q].format, sample[q].kernel, sample[q].us,
                                  Predict(&rows[0][sample[q].pair], &sample[q]), pick->in.rows, pick->in.mean, pick->in.max, sample[q].in.stored));
      sum += pick->us / pick->best - 1;
      over += pick->us > 1.3 * pick->best;
      if (pick->us / pick->best > worst) {
        worst = pick->us / pick->best;
        where = (int)(pick - sample);
      }
      n++;
    }
    if (n)
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-16s %s: regret %.4f in the mean of %d products, worst %.3f (%s %s: %s), %d above 0.3\n", what, precision, sum / n, n, worst - 1, sample[where].matrix, sample[where].side, sample[where].kernel, over));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A line of the profile, as it is or as a C string */
static void Put(FILE *f, PetscBool header, const char line[])
{
  if (f) fprintf(f, header ? "\"%s\\n\"\n" : "%s\n", line);
}

static PetscErrorCode Write(FILE *f, PetscBool header, const char machine[])
{
  static const double means[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, INFINITY}, columns[] = {1e3, 1e4, 1e5, 1e6, INFINITY};
  char                line[1024];

  PetscFunctionBeginUser;
  if (header) fprintf(f, "/* The profile of one %s, made by src/benchmarks/fit.c; its lines are explained in profile.c */\n", machine);
  Put(f, header, "gpucsr-profile 1");
  PetscCall(PetscSNPrintf(line, sizeof(line), "machine %s", machine));
  Put(f, header, line);
  for (int q = 0; q < npairs; q++) {
    const GPUCSRCostRow *c = &row[q];
    int                  n = snprintf(line, sizeof(line), "cost %s %s %g %g %g ", c->format, c->kernel, c->width, c->threads, c->most);

    for (int i = 0; i < GPUCSR_NTERMS; i++) n += snprintf(line + n, sizeof(line) - (size_t)n, " %.4g", c->time[i]);
    snprintf(line + n, sizeof(line) - (size_t)n, "  %.3g %.3g", c->setup[0], c->setup[1]);
    Put(f, header, line);
  }
  for (size_t i = 0; i < sizeof(means) / sizeof(means[0]); i++)
    for (size_t j = 0; j < sizeof(columns) / sizeof(columns[0]); j++) {
      double sum[MAX_PAIRS]   = {0};
      int    count[MAX_PAIRS] = {0}, products = 0, best = -1, last = -1;

      for (int k = 0; k < nsamples; k++) {
        const Sample *s = &sample[k];

        if (s->in.mean > means[i] || (i && s->in.mean <= means[i - 1]) || s->columns > columns[j] || (j && s->columns <= columns[j - 1]) || strcmp(s->precision, "double")) continue;
        products += s->product != last;
        last = s->product;
        if (!strcmp(s->format, "dense")) continue; /* a leaf is for every matrix of its class */
        sum[s->pair] += log(s->us / s->best);
        count[s->pair]++;
      }
      for (int q = 0; q < npairs; q++)
        if (products && count[q] == products && (best < 0 || sum[q] < sum[best])) best = q;
      if (best < 0) continue;
      (void)snprintf(line, sizeof(line), "tree %g %g %s %s", means[i], columns[j], row[best].format, row[best].kernel);
      Put(f, header, line);
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static GPUCSRCostRow folds[FOLDS][MAX_PAIRS];
  char                 out[PETSC_MAX_PATH_LEN] = "", header[PETSC_MAX_PATH_LEN] = "", machine[128] = "NVIDIA H200";
  PetscInt             most = 36;
  PetscReal            show = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", out, sizeof(out), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-header", header, sizeof(header), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-machine", machine, sizeof(machine), NULL));
  for (int k = 1; k < argc; k++) {
    if (argv[k][0] == '-') k++;
    else PetscCall(Read(argv[k]));
  }
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-show", &show, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-pairs", &most, NULL));
  PetscCheck(nsamples, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "No samples: name the files that spmv -samples has written");
  PetscCall(Keep((int)most));
  for (int q = 0; q < npairs; q++) {
    FitShape(q, &row[q]);
    FitSetUp(q, &row[q]);
    for (int f = 0; f < FOLDS; f++) {
      folds[f][q] = row[q];
      (void)Fit(q, f, &folds[f][q]);
    }
  }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d samples of %d products, %d pairs\n", nsamples, nproducts, npairs));
  PetscCall(Regret("model", &row, PETSC_FALSE, show));
  PetscCall(Regret("cross-validated", folds, PETSC_TRUE, 0));
  for (int h = 0; h < 2; h++) {
    const char *name = h ? header : out;
    FILE       *f    = name[0] ? fopen(name, "w") : NULL;

    PetscCheck(f || !name[0], PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be written", name);
    if (f) {
      PetscCall(Write(f, (PetscBool)h, machine));
      (void)fclose(f);
    }
  }
  PetscCall(PetscFree(sample));
  PetscCall(PetscFinalize());
  return 0;
}
