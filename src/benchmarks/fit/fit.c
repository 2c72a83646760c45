static char help[] = "Fits the profile of a machine to measured products.\n\n";

/*
    fit [-o PROFILE] [-header FILE] [-machine NAME] [-pairs n] [-without TEXT,...] [-show r] SAMPLES ...

  spmv -samples writes the files SAMPLES, in one run or several. Names in .xz are packed by xz. If a pair has two times, the last time counts. Each line is a product: matrix side precision format kernel us best_us convert_us,
  then the input of the model (GPUCSRModelInput): columns, density, deviation, spread, twins, entries stored by sliced ELL, the heaviest slice, sectors fetched, and rows:entries of each class of row lengths. -mat_gpucsr_profile reads the
  text PROFILE. -header writes the text as a C string, for src/mat/impls/gpucsr/blackbox/plan/h200.h.

  For each pair of a format and a kernel, fit searches a list for the parameters of its walk along a row (width, threads, most, ahead). The times of the terms are a non-negative least squares fit of relative errors, repeated, as parts of a product go on at the same time. A product
  has more weight the nearer the pair is to the best.

  The selection of pairs is greedy, at most -pairs (34). Each step adds or removes the pair with the least loss of the model's choice, by the model and by a model fitted without the matrix. The selection ends if no change helps. So it leaves out a pair that is sometimes the best, but unpredictably. -without TEXT leaves out pairs with TEXT in "FORMAT KERNEL";
  the losses count such pairs. Twenty more pairs are for measuring: with these pairs the best of the first six predictions loses least.

  The decision tree has, for each class of mean length and columns, the pair with the least geometric mean time.

  -show r lists products whose chosen pair takes more than r times the best time, with the pairs near the best.

  Prints the loss of the model's choice on these products (chosen time / best time - 1), and the same by cross-validation.
*/
#include "fit.h"

#define TRIED  6    /* what measuring tries, as plan.c has it */
#define WITHIN 1.6  /* the same */
#define HELD   0.03 /* of the fit: 0.01 to 0.1 end alike */

/* min |A x - b| over x >= 0, given A^T A and A^T b: by coordinate descent, from x */
static void NonNegative(int n, const double AA[][GPUCSR_NTERMS], const double Ab[], double x[])
{
  for (int sweep = 0; sweep < 400; sweep++) {
    double moved = 0, size = 0;

    for (int i = 0; i < n; i++) {
      double g = Ab[i], old = x[i];

      if (AA[i][i] <= 0) continue;
      for (int j = 0; j < n; j++) g -= AA[i][j] * x[j];
      x[i]  = PetscMax(0, x[i] + g / AA[i][i]);
      moved = PetscMax(moved, fabs(x[i] - old) * sqrt(AA[i][i]));
      size  = PetscMax(size, x[i] * sqrt(AA[i][i]));
    }
    if (moved < 1e-8 * size) break;
  }
}

/* The samples of a pair: of[first[pair]] to of[first[pair + 1] - 1] */
static int *of, first[MAX_PAIRS + 1];

static PetscErrorCode SortByPair(void)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1(nsamples, &of));
  for (int q = 0, n = 0; q < npairs; q++) {
    for (int k = 0; k < nsamples; k++)
      if (sample[k].pair == q) of[n++] = k;
    first[q + 1] = n;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The times of a row, from the samples without matrix number `out` (-1: all samples), by steps of Gauss and Newton. Each step is a non-negative least squares
  fit, damped by a part of the terms' own weight (K. Levenberg, 1944): samples do not determine a part of the time that is shorter than another part. Returns
  the square of the remaining error.
*/
static double Fit(int pair, double (*terms)[GPUCSR_NTERMS], int out, int steps, GPUCSRCostRow *c)
{
  const int n = first[pair + 1] - first[pair], *mine = of + first[pair];
  double    rest = 0, part[GPUCSR_NPARTS];

  for (int step = 0; step < steps; step++) {
    double AA[GPUCSR_NTERMS][GPUCSR_NTERMS] = {{0}}, Ab[GPUCSR_NTERMS] = {0}, alone[GPUCSR_NTERMS] = {0};

    for (int k = 0; k < n; k++) {
      const Sample *s = &sample[mine[k]];
      double        t[GPUCSR_NTERMS], slope[GPUCSR_NPARTS], together;

      if (s->number == out) continue;
      together = GPUCSRModelTime(c, terms[k], part) - part[GPUCSR_WAITING];
      for (int q = 0; q < GPUCSR_NPARTS; q++) slope[q] = q == GPUCSR_WAITING || together <= 0 ? 1 : part[q] * part[q] / (together * together);
      for (int i = 0; i < GPUCSR_NTERMS; i++) {
        t[i] = terms[k][i] * slope[GPUCSRModelPart[i]];
        for (int j = 0; j <= i; j++) AA[i][j] += s->weight * t[i] * t[j];
        Ab[i] += s->weight * t[i] * s->us;
        alone[i] += s->weight * terms[k][i] * terms[k][i];
      }
    }
    for (int i = 0; i < GPUCSR_NTERMS; i++) {
      for (int j = 0; j < i; j++) AA[j][i] = AA[i][j];
      AA[i][i] += step ? HELD * alone[i] : 0;
      Ab[i] += step ? HELD * alone[i] * c->time[i] : 0;
    }
    NonNegative(GPUCSR_NTERMS, (const double(*)[GPUCSR_NTERMS])AA, Ab, c->time);
  }
  for (int k = 0; k < n; k++)
    if (sample[mine[k]].number != out) rest += sample[mine[k]].weight * pow(GPUCSRModelTime(c, terms[k], part) - sample[mine[k]].us, 2);
  return rest;
}

/* By a row's shape */
static double FitAs(int pair, double (*terms)[GPUCSR_NTERMS], int steps, GPUCSRCostRow *c)
{
  for (int k = first[pair]; k < first[pair + 1]; k++) GPUCSRModelTerms(c, &sample[of[k]].in, PETSC_TRUE, terms[k - first[pair]]);
  return Fit(pair, terms, -1, steps, c);
}

/* The best shape, and its times */
static void FitShape(int pair, double (*terms)[GPUCSR_NTERMS], GPUCSRCostRow *c)
{
  static const double widths[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, INFINITY}, threads[] = {0, 1, 2, 4, 8, 16, 32, 256}, most[] = {INFINITY, 1024, 2048}, ahead[] = {1, 2, 4, 8};
  double              best = INFINITY;
  GPUCSRCostRow       b    = *c;

  for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
    for (size_t j = 0; j < sizeof(threads) / sizeof(threads[0]); j++)
      for (size_t k = 0; k < sizeof(most) / sizeof(most[0]); k++)
        for (size_t l = 0; l < sizeof(ahead) / sizeof(ahead[0]) && (!l || !isinf(widths[i])); l++) {
          GPUCSRCostRow trial = *c;
          double        rest;

          trial.width   = widths[i];
          trial.threads = threads[j];
          trial.most    = most[k];
          trial.ahead   = ahead[l];
          rest          = FitAs(pair, terms, 4, &trial);
          if (rest < best) {
            best = rest;
            b    = trial;
          }
        }
  *c = b;
  (void)FitAs(pair, terms, 20, c);
}

/* What making the format costs: a constant and a rate, on relative errors */
static void FitSetUp(int pair, GPUCSRCostRow *c)
{
  double AA[GPUCSR_NTERMS][GPUCSR_NTERMS] = {{0}}, Ab[GPUCSR_NTERMS] = {0};

  for (int k = first[pair]; k < first[pair + 1]; k++) {
    const Sample *s    = &sample[of[k]];
    const double  t[2] = {1, s->in.matrix}, w = 1 / PetscMax(1, s->convert);

    for (int i = 0; i < 2; i++) {
      for (int j = 0; j < 2; j++) AA[i][j] += w * w * t[i] * t[j];
      Ab[i] += w * w * t[i] * s->convert;
    }
  }
  NonNegative(2, (const double(*)[GPUCSR_NTERMS])AA, Ab, c->setup);
}

static double Predict(const GPUCSRCostRow *c, const Sample *s)
{
  double t[GPUCSR_NTERMS], part[GPUCSR_NPARTS];

  GPUCSRModelTerms(c, &s->in, PETSC_TRUE, t);
  return GPUCSRModelTime(c, t, part);
}

/* The weight of a choice that takes r times the best time: its loss, plus thirty times the loss beyond a quarter, which is rare */
static double Loss(double r)
{
  return r - 1 + 30 * PetscMax(0, r - 1.25);
}

/* What measuring tries of a product: the first of the trusted predictions, and of all the next ones */
typedef struct {
  int    n;
  double predicted[TRIED], ratio[TRIED];
} Tried;

static void Try(Tried *t, double predicted, double ratio)
{
  int k = PetscMin(t->n, TRIED - 1);

  if (t->n == TRIED && predicted >= t->predicted[k]) return;
  if (t->n < TRIED) t->n++;
  for (; k > 0 && t->predicted[k - 1] > predicted; k--) {
    t->predicted[k] = t->predicted[k - 1];
    t->ratio[k]     = t->ratio[k - 1];
  }
  t->predicted[k] = predicted;
  t->ratio[k]     = ratio;
}

static double BestTried(const Tried *t, double leader, double taken)
{
  for (int k = 0; k < t->n && (k < 2 || t->predicted[k] <= WITHIN * leader); k++) taken = PetscMin(taken, t->ratio[k]);
  return taken;
}

/* Adds pairs to the kept pairs, up to `most`, such that the best of the measured candidates loses least */
static PetscErrorCode Extend(int kept[], int most)
{
  Tried  *tried;
  double *leader, *taken, loss = INFINITY;
  int     n = 0;

  PetscFunctionBegin;
  PetscCall(PetscCalloc3(nproducts, &tried, nproducts, &leader, nproducts, &taken));
  for (int p = 0; p < nproducts; p++) {
    leader[p] = INFINITY;
    taken[p]  = judged[p] ? 50 : 1;
  }
  for (int q = 0; q < npairs; q++) {
    n += kept[q];
    for (int k = first[q]; k < first[q + 1] && kept[q]; k++) {
      const Sample *s = &sample[of[k]];

      if (!judged[s->product]) continue;
      Try(&tried[s->product], s->model[1], s->us / s->best);
      if (s->model[1] >= leader[s->product]) continue;
      leader[s->product] = s->model[1];
      taken[s->product]  = s->us / s->best;
    }
  }
  for (;;) {
    double best, mean = 0, worst = 0;
    int    pick = -1;

    for (int p = 0; p < nproducts; p++) {
      const double r = BestTried(&tried[p], leader[p], taken[p]);

      mean += (r - 1) / njudged;
      worst = PetscMax(worst, r - 1);
    }
    if (isinf(loss)) loss = mean;
    else loss = PetscMin(loss, mean);
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%3d with the best of the first %d loses %.4f in the mean, %.2f at worst\n", n, TRIED, mean, worst));
    best = loss - 1e-5;
    for (int q = 0; q < npairs && n < most; q++) {
      double sum = mean;

      if (kept[q] || excluded[q]) continue;
      for (int k = first[q]; k < first[q + 1]; k++) {
        const Sample *s = &sample[of[k]];
        Tried         with;

        if (!judged[s->product]) continue;
        with = tried[s->product];
        sum -= (BestTried(&with, leader[s->product], taken[s->product]) - 1) / njudged;
        Try(&with, s->model[1], s->us / s->best);
        sum += (BestTried(&with, leader[s->product], taken[s->product]) - 1) / njudged;
      }
      if (sum < best) {
        best = sum;
        pick = q;
      }
    }
    if (pick < 0) break;
    kept[pick] = 1;
    n++;
    for (int k = first[pick]; k < first[pick + 1]; k++)
      if (judged[sample[of[k]].product]) Try(&tried[sample[of[k]].product], sample[of[k]].model[1], sample[of[k]].us / sample[of[k]].best);
  }
  PetscCall(PetscFree3(tried, leader, taken));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes one more pair into account, if given. now[] has, per model and product, the prediction for the chosen pair and its time over the best */
typedef struct {
  double predicted, taken;
} Taken;

static void TakeIn(int pair, Taken now[])
{
  for (int k = first[pair]; k < first[pair + 1]; k++) {
    const Sample *s = &sample[of[k]];

    for (int c = 0; c < 2; c++) {
      Taken *t = &now[c * nproducts + s->product];

      if (judged[s->product] && s->model[c] < t->predicted) *t = (Taken){s->model[c], s->us / s->best};
    }
  }
}

/* Those kept but for one (npairs: none) */
static void TakeAll(const int kept[], int but, Taken now[])
{
  for (int p = 0; p < 2 * nproducts; p++) now[p] = (Taken){INFINITY, judged[p % nproducts] ? 50 : 1}; /* no pair can hold the matrix */
  for (int q = 0; q < npairs; q++)
    if (kept[q] && q != but) TakeIn(q, now);
}

static double Sum(const Taken now[])
{
  double sum = 0;

  for (int p = 0; p < 2 * nproducts; p++) sum += Loss(now[p].taken);
  return sum / njudged / 2;
}

/* The pairs kept, for both models; samples of other pairs are dropped */
static PetscErrorCode Keep(int most, int more)
{
  Taken               *now, *trial;
  int                 *kept, n = 0, m = 0;
  double               loss = INFINITY;
  static GPUCSRCostRow old[MAX_PAIRS];

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(2 * nproducts, &now, 2 * nproducts, &trial, npairs, &kept));
  for (int q = 0; q < npairs; q++) kept[q] = 0;
  TakeAll(kept, npairs, now);
  for (;;) {
    int    pick = -1;
    double best = loss - 1e-5, mean = 0, worst = 0;

    for (int q = 0; q < npairs; q++) {
      double sum;

      if (excluded[q] || (!kept[q] && n >= most)) continue;
      if (kept[q]) TakeAll(kept, q, trial);
      else {
        memcpy(trial, now, sizeof(*now) * 2 * (size_t)nproducts);
        TakeIn(q, trial);
      }
      sum = Sum(trial);
      if (sum < best) {
        best = sum;
        pick = q;
      }
    }
    if (pick < 0) break;
    loss       = best;
    kept[pick] = !kept[pick];
    n += kept[pick] ? 1 : -1;
    TakeAll(kept, npairs, now);
    for (int p = 0; p < 2 * nproducts; p++) {
      mean += (now[p].taken - 1) / njudged / 2;
      worst = PetscMax(worst, now[p].taken - 1);
    }
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%3d %s %-12s %-24s loses %.4f in the mean, %.2f at worst\n", n, kept[pick] ? "with   " : "without", row[pick].format, row[pick].kernel, mean, worst));
  }
  for (int q = 0; q < npairs; q++) row[q].trusted = (PetscBool)kept[q];
  PetscCall(Extend(kept, n + more));
  memcpy(old, row, sizeof(old));
  n = 0;
  for (int q = 0; q < npairs; q++) {
    if (kept[q]) row[n] = old[q];
    kept[q] = kept[q] ? n++ : -1;
  }
  for (int k = 0; k < nsamples; k++) {
    if (kept[sample[k].pair] < 0) continue;
    sample[m]      = sample[k];
    sample[m].pair = kept[sample[k].pair];
    m++;
  }
  nsamples = m;
  npairs   = n;
  PetscCall(PetscFree3(now, trial, kept));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the model of all samples, or from those without the matrix */
static PetscErrorCode Regret(const char what[], PetscBool crossed, double show)
{
  PetscFunctionBeginUser;
  for (int p = 0; p < 2; p++) {
    const char *precision = p ? "single" : "double";
    double      sum = 0, worst = 0;
    int         n = 0, where = 0, over = 0;

    for (int k = 0; k < nsamples;) {
      const Sample *pick  = NULL;
      double        least = INFINITY;
      const int     begin = k;

      for (; k < nsamples && sample[k].product == sample[begin].product; k++) {
        const double t = sample[k].model[crossed];

        if (row[sample[k].pair].trusted && judged[sample[k].product] && t < least) {
          least = t;
          pick  = &sample[k];
        }
      }
      if (!pick || strcmp(pick->precision, precision)) continue;
      if (show && pick->us > show * pick->best)
        for (int q = begin; q < k; q++)
          if (sample[q].us <= 1.1 * pick->best || &sample[q] == pick)
            PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-20s %s %-6s %s+%s %.2f us, predicted %.2f; rows %g mean %.3g longest %g stored %g\n", pick->matrix, pick->side, precision, sample[q].format, sample[q].kernel, sample[q].us,
                                  Predict(&row[sample[q].pair], &sample[q]), pick->in.rows, pick->in.mean, pick->in.max, sample[q].in.stored));
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
  if (header) fprintf(f, "/* The profile of one %s, made by src/benchmarks/fit/fit.c; its lines are explained in profile.c */\n", machine);
  Put(f, header, "gpucsr-profile 6");
  PetscCall(PetscSNPrintf(line, sizeof(line), "machine %s", machine));
  Put(f, header, line);
  for (int q = 0; q < npairs; q++) {
    const GPUCSRCostRow *c = &row[q];
    int                  n = snprintf(line, sizeof(line), "%s %s %s %g %g %g %g ", c->trusted ? "cost" : "measure", c->format, c->kernel, c->width, c->threads, c->most, c->ahead);

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
  char      out[PETSC_MAX_PATH_LEN] = "", header[PETSC_MAX_PATH_LEN] = "", machine[128] = "NVIDIA H200";
  PetscInt  most = 34, more = 20;
  PetscReal show = 0;
  PetscBool set;
  double(*terms)[GPUCSR_NTERMS];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", out, sizeof(out), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-header", header, sizeof(header), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-machine", machine, sizeof(machine), NULL));
  nwithout = 16;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-without", without, &nwithout, &set));
  if (!set) nwithout = 0;
  for (int k = 1; k < argc; k++) {
    if (argv[k][0] == '-') k++;
    else PetscCall(ReadSamples(argv[k]));
  }
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-show", &show, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-pairs", &most, NULL));
  PetscCheck(nsamples, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "No samples: name the files that spmv -samples has written");
  PetscCall(SortByProduct());
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d samples of %d products, %d of them judged, %d pairs\n", nsamples, nproducts, njudged, npairs));
  PetscCall(SortByPair());
  PetscCall(PetscMalloc1(nsamples, &terms));
#pragma omp parallel for schedule(dynamic)
  for (int q = 0; q < npairs; q++) {
    GPUCSRCostRow c;

    FitShape(q, terms + first[q], &row[q]);
    FitSetUp(q, &row[q]);
    for (int k = first[q]; k < first[q + 1]; k++) sample[of[k]].model[0] = Predict(&row[q], &sample[of[k]]);
    for (int k = first[q], held = -1; k < first[q + 1]; k++) {
      if (sample[of[k]].number != held) {
        held = sample[of[k]].number;
        c    = row[q];
        (void)Fit(q, terms + first[q], held, 4, &c);
      }
      sample[of[k]].model[1] = Predict(&c, &sample[of[k]]);
    }
  }
  PetscCall(PetscFree(terms));
  PetscCall(Keep((int)most, (int)more));
  PetscCall(Regret("model", PETSC_FALSE, show));
  PetscCall(Regret("cross-validated", PETSC_TRUE, 0));
  for (int h = 0; h < 2; h++) {
    const char *name = h ? header : out;
    FILE       *f    = name[0] ? fopen(name, "w") : NULL;

    PetscCheck(f || !name[0], PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be written", name);
    if (f) {
      PetscCall(Write(f, (PetscBool)h, machine));
      (void)fclose(f);
    }
  }
  PetscCall(PetscFree(of));
  PetscCall(PetscFree(sample));
  for (int k = 0; k < nwithout; k++) PetscCall(PetscFree(without[k]));
  PetscCall(PetscFinalize());
  return 0;
}
