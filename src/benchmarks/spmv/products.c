/* Products of one matrix: all candidates in turn, and their records */
#include "spmv.h"

void SpmvJsonMatrix(FILE *f, const Problem *p, GPUCSRPrecision precision)
{
  JsonText(f, "matrix", p->name);
  JsonText(f, "class", p->real ? "real" : "synthetic");
  JsonText(f, "precision", precisionwords[precision]);
  JsonNumber(f, "rows", p->f.m);
  JsonNumber(f, "columns", p->f.n);
  JsonNumber(f, "nnz", (double)p->f.nnz);
}

/* Times the candidates with a chance, in turn */
static PetscErrorCode TimeAll(Case *c)
{
  PetscFunctionBeginUser;
  for (int r = 0; r < c->b->rounds; r++)
    for (int k = 0; k < c->nc; k++) {
      Candidate *d = &c->cand[k];

      if (d->peer || (!d->slow && d->seconds <= SLOW * c->best)) PetscCall(BenchBatch(&c->b->clock, SpmvLaunch, d, d->batch, &d->t[d->nt++]));
    }
  for (int k = 0; k < c->nc; k++) {
    Candidate *d = &c->cand[k];
    double     half[2][MAX_ROUNDS + 1];

    for (int r = 0; r < d->nt; r++) half[r % 2][r / 2] = d->t[r];
    for (int h = 0; h < 2; h++) d->half[h] = d->nt > 1 ? BenchMedian(half[h], (d->nt + 1 - h) / 2) : d->seconds;
    if (d->nt) d->seconds = BenchMedian(d->t, d->nt);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The time of the choice over the best. The least of two hundred similar medians is least by luck. So one half of the rounds finds the best candidate, and
  the other half times it, both ways
*/
static double Regret(const Case *c, const Candidate *chosen)
{
  double sum = 0;

  for (int h = 0; h < 2; h++) {
    const Candidate *best = NULL;

    for (int k = 0; k < c->nc; k++)
      if (!c->cand[k].peer && !c->cand[k].failed && c->cand[k].half[h] > 0 && (!best || c->cand[k].half[h] < best->half[h])) best = &c->cand[k];
    sum += best ? 0.5 * chosen->half[!h] / best->half[!h] : NAN;
  }
  return sum;
}

/* Times kernels with a free number of threads a block for several numbers: medians of three batches, in turn */
static PetscErrorCode Threads(Case *c)
{
  static const int sizes[] = {64, 128, 256, 512};
  FILE            *o       = c->b->out;
  const char      *comma   = "";

  PetscFunctionBeginUser;
  if (!c->b->threads || c->side || c->precision || !o || !c->b->dev->ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  JsonBegin(o, "threads");
  SpmvJsonMatrix(o, c->p, c->precision);
  JsonText(o, "side", sidewords[c->side]);
  fprintf(o, ", \"us\": {");
  for (int k = 0; k < c->nc; k++) {
    Candidate *d = &c->cand[k];
    double     t[4][3];

    if (d->peer || d->slow || !d->plan.choice.kernel->family->block) continue;
    for (int r = 0; r < 3; r++)
      for (int q = 0; q < 4; q++) {
        GPUCSRThreads = sizes[q];
        PetscCall(BenchBatch(&c->b->clock, SpmvLaunch, d, d->batch, &t[q][r]));
      }
    GPUCSRThreads = 0;
    fprintf(o, "%s\"%s\": [", comma, d->name);
    for (int q = 0; q < 4; q++) fprintf(o, "%s%.6g", q ? ", " : "", 1e6 * BenchMedian(t[q], 3));
    fprintf(o, "]");
    comma = ", ";
  }
  fprintf(o, "}");
  JsonEnd(o);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What fit.c makes a profile of, a line a candidate: matrix side precision format kernel us best_us convert_us, then the model's input */
static PetscErrorCode Samples(Case *c, const Candidate *best)
{
  const GPUCSRFeatures *f = &c->csr.features;
  FILE                 *o = c->b->samples;

  PetscFunctionBeginUser;
  for (int k = 0; o && k < c->nc; k++) {
    const Candidate *d = &c->cand[k];
    GPUCSRModelInput in;

    if (d->peer || d->failed) continue;
    PetscCall(GPUCSRModelInputGet(d->plan.choice.format, &c->csr.features, c->precision, c->b->dev->props.l2, &in));
    fprintf(o, "%s %s %s %s %s %.6g %.6g %.6g  %.6g %.6g %.6g %.10g %.10g %.10g %.10g %.6g %.6g %d %.6g  %.6g %.6g %.6g %.10g  %.10g %.6g %.6g", c->p->name, sidewords[c->side], precisionwords[c->precision], d->plan.choice.format->name,
            d->plan.choice.kernel->name, 1e6 * d->seconds, 1e6 * best->seconds, 1e6 * d->convert, in.matrix, in.vectors, in.cache, in.rows, in.stored, in.mean, in.max, in.sectors, in.quads, f->n, f->n ? f->mean / f->n : 0, f->deviation, f->spread, 0., /* once equal pairs of rows */
            (double)f->sell_stored, (double)f->heaviest, in.fetched[0], in.fetched[1]);
    for (int b = 0; b < GPUCSR_NCLASSES; b++) fprintf(o, b ? ",%d:%.10g" : " %d:%.10g", f->rows[b], (double)f->entries[b]);
    fprintf(o, "\n");
  }
  if (o) fflush(o);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Times, conversions, and who was wrong */
static void JsonCandidates(FILE *o, const Case *c)
{
  const char *comma = "";

  if (!o) return;
  fprintf(o, ", \"us\": {");
  for (int k = 0; k < c->nc; k++) fprintf(o, "%s\"%s\": %.6g", k ? ", " : "", c->cand[k].name, 1e6 * c->cand[k].seconds);
  fprintf(o, "}, \"convert\": {");
  for (int k = 0; k < c->nc && !c->cand[k].peer; k++) fprintf(o, "%s\"%s\": %.4g", k ? ", " : "", c->cand[k].name, 1e6 * c->cand[k].convert);
  fprintf(o, "}, \"failed\": [");
  for (int k = 0; k < c->nc; k++)
    if (c->cand[k].failed) {
      fprintf(o, "%s\"%s\"", comma, c->cand[k].name);
      comma = ", ";
    }
  fprintf(o, "]");
}

/* Of the rounds, the most less the least over the median. The times are sorted */
static double Spread(const Candidate *d)
{
  return d->nt ? (d->t[d->nt - 1] - d->t[0]) / d->seconds : NAN;
}

static void JsonProduct(const Case *c, const Result *r, const Candidate *const by[], const Candidate *best, const Candidate *peer, double bytes, double error)
{
  const Candidate      *chosen = by[0];
  const GPUCSRFeatures *f      = &c->csr.features;
  FILE                 *o      = c->b->out;

  JsonBegin(o, "product");
  SpmvJsonMatrix(o, c->p, c->precision);
  JsonText(o, "side", sidewords[c->side]);
  JsonNumber(o, "length_min", f->min);
  JsonNumber(o, "length_max", f->max);
  JsonNumber(o, "length_mean", f->mean);
  JsonNumber(o, "length_deviation", f->deviation);
  JsonNumber(o, "empty", f->rows[0]);
  JsonNumber(o, "sell_padding", f->nnz ? (double)f->sell_stored / (double)f->nnz - 1 : 0);
  JsonCandidates(o, c);
  JsonNumber(o, "error", error);
  JsonText(o, "chosen", chosen->name);
  JsonText(o, "why", c->choice[0].why);
  for (int q = 1; q < NSELECTS; q++) {
    char key[32];

    JsonText(o, selectwords[q], by[q]->name);
    snprintf(key, sizeof(key), "%s_regret", selectwords[q]);
    JsonNumber(o, key, by[q]->seconds / best->seconds);
    snprintf(key, sizeof(key), "%s_regret_halves", selectwords[q]);
    JsonNumber(o, key, Regret(c, by[q]));
  }
  JsonNumber(o, "sampled", f->sampled);
  JsonNumber(o, "diagonals", f->diagonals);
  JsonNumber(o, "spread", f->spread);
  JsonNumber(o, "chosen_us", 1e6 * chosen->seconds);
  JsonText(o, "best", best->name);
  JsonNumber(o, "best_us", 1e6 * best->seconds);
  JsonText(o, "peer", peer ? peer->name : "none");
  JsonNumber(o, "peer_us", peer ? 1e6 * peer->seconds : NAN);
  JsonNumber(o, "gflops", 2e-9 * (double)f->nnz / chosen->seconds);
  JsonNumber(o, "gbs", 1e-9 * bytes / chosen->seconds);
  JsonNumber(o, "fraction", r->fraction);
  JsonNumber(o, "ratio", r->ratio);
  JsonNumber(o, "chosen_spread", Spread(chosen));
  JsonNumber(o, "peer_spread", peer ? Spread(peer) : NAN);
  for (int q = 0; q < NPROGRAMS; q++) {
    char key[64];

    snprintf(key, sizeof(key), "%s_us", programwords[q]);
    JsonNumber(o, key, 1e6 * c->program[q]);
    snprintf(key, sizeof(key), "%s_spread", programwords[q]);
    JsonNumber(o, key, c->spread[q]);
    snprintf(key, sizeof(key), "%s_cold_us", programwords[q]);
    JsonNumber(o, key, 1e6 * c->cold[q]);
  }
  JsonNumber(o, "regret", r->regret);
  JsonNumber(o, "regret_halves", Regret(c, chosen));
  JsonEnd(o);
}

static PetscErrorCode Report(Case *c, const Candidate *const by[])
{
  const Bench          *b     = c->b;
  const GPUCSRFeatures *f     = &c->csr.features;
  const double          v     = (double)GPUCSRTypeSize(GPUCSRVectorType(c->precision));
  const double          bytes = GPUCSRCSRBytes(&c->p->f, c->precision) + v * ((double)f->m + f->n);
  const Candidate      *best = NULL, *peer = NULL, *chosen = by[0];
  double                error = 0;
  Result               *r;

  PetscFunctionBeginUser;
  PetscCall(SpmvResultAdd(&r));
  for (int k = 0; k < c->nc; k++) {
    const Candidate **slot = c->cand[k].peer ? &peer : &best;

    error = PetscMax(error, c->cand[k].error);
    if (c->cand[k].failed) PetscCall(PetscPrintf(PETSC_COMM_SELF, "WRONG %s %s %s %s: off by %.3g times what is allowed\n", c->p->name, precisionwords[c->precision], sidewords[c->side], c->cand[k].name, c->cand[k].error));
    if (c->cand[k].failed) SpmvFailed();
    else if (!*slot || c->cand[k].seconds < (*slot)->seconds) *slot = &c->cand[k];
  }
  if (!best) best = chosen;
  PetscCall(Samples(c, best));
  PetscCall(PetscStrncpy(r->name, c->p->name, sizeof(r->name)));
  PetscCall(PetscStrncpy(r->chosen, chosen->name, sizeof(r->chosen)));
  PetscCall(PetscStrncpy(r->best, best->name, sizeof(r->best)));
  r->real      = c->p->real;
  r->precision = c->precision;
  r->side      = c->side;
  r->ratio     = peer ? peer->seconds / chosen->seconds : NAN;
  r->bestratio = peer ? peer->seconds / best->seconds : NAN;
  r->regret    = chosen->seconds / best->seconds;
  r->fraction  = bytes / chosen->seconds / b->copy;
  r->petsc     = fmin(c->program[PROGRAM_PEER], c->program[PROGRAM_EXPLICIT]) / c->program[PROGRAM_GPUCSR];
  if (b->progress)
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-24s %s %s  %s %.2f us, best %s %.2f us, peer %s %.2f us, ratio %.2f\n", c->p->name, precisionwords[c->precision], sidewords[c->side], chosen->name, 1e6 * chosen->seconds, best->name, 1e6 * best->seconds,
                          peer ? peer->name : "none", peer ? 1e6 * peer->seconds : 0, r->ratio));
  JsonProduct(c, r, by, best, peer, bytes, error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* product: seconds of the chosen kernel */
PetscErrorCode SpmvProducts(Case *c, double *product)
{
  const Bench     *b            = c->b;
  const GPUCSRType vt           = GPUCSRVectorType(c->precision);
  const size_t     n            = (size_t)PetscMax(c->p->src.m, c->p->src.n);
  const Candidate *by[NSELECTS] = {NULL};
  int              first;

  PetscFunctionBeginUser;
  c->vbytes = n * GPUCSRTypeSize(vt);
  PetscCall(GPUCSRMalloc(b->dev, c->vbytes, "x", &c->x));
  PetscCall(GPUCSRMalloc(b->dev, c->vbytes, "z", &c->z));
  PetscCall(GPUCSRMalloc(b->dev, c->vbytes, "NaN", &c->nan));
  PetscCall(PetscMalloc1(n, &c->host));
  for (size_t k = 0; k < n; k++) c->host[k] = NAN;
  PetscCall(GPUCSRUpload(b->dev, c->x, vt, c->p->x, GPUCSR_DOUBLE, n, PETSC_FALSE, b->dev->stream, NULL));
  PetscCall(GPUCSRUpload(b->dev, c->nan, vt, c->host, GPUCSR_DOUBLE, n, PETSC_FALSE, b->dev->stream, NULL));
  PetscCall(SpmvAddOurs(c));
  first = c->nc;
  PetscCall(SpmvAddPeers(c));
  for (int k = first; k < c->nc; k++) PetscCall(SpmvFirstLook(c, &c->cand[k]));
  for (int s = 0; s < NSELECTS; s++) {
    for (int k = 0; k < first; k++)
      if (c->cand[k].plan.choice.format == c->choice[s].format && c->cand[k].plan.choice.kernel == c->choice[s].kernel) by[s] = &c->cand[k];
    PetscCheck(by[s], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Kernel %s on format %s, chosen by %s, is not among those that can take the matrix", c->choice[s].kernel->name, c->choice[s].format->name, selectwords[s]);
  }
  PetscCall(TimeAll(c));
  PetscCall(SpmvPrograms(c));
  PetscCall(Report(c, by));
  PetscCall(Threads(c));
  *product = by[0]->seconds;
  PetscFunctionReturn(PETSC_SUCCESS);
}
