/*
  Chooses format and kernel: the user's request, else the best candidate of all pairs of a format and a kernel for it.

  applicable() decides about correctness, for every choice; the model (profile.c) decides about speed.
*/
#include "plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static PetscBool Any(const char word[])
{
  return (PetscBool)!strcmp(word, "auto");
}

/* Does the request leave a choice? */
PetscBool GPUCSRRequestOpen(const GPUCSRRequest *q)
{
  return (PetscBool)(Any(q->format) && Any(q->kernel));
}

/* Words that exist, and fit each other */
PetscErrorCode GPUCSRRequestCheck(const GPUCSRRequest *q)
{
  const GPUCSRFormat *format = GPUCSRFormatFind(q->format);
  const GPUCSRKernel *kernel = GPUCSRKernelFind(q->kernel);
  const PetscBool     aij    = (PetscBool)!strcmp(q->format, "aij");
  char                list[GPUCSR_NAMES];

  PetscFunctionBegin;
  PetscCall(GPUCSRFormatNames(list, sizeof(list)));
  PetscCheck(Any(q->format) || aij || format, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown MATGPUCSR format %s: must be one of auto, aij, %s", q->format, list);
  PetscCall(GPUCSRKernelNames(NULL, list, sizeof(list)));
  PetscCheck(Any(q->kernel) || kernel, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown MATGPUCSR kernel %s: must be one of auto, %s", q->kernel, list);
  PetscCheck(!kernel || !aij, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "MATGPUCSR kernel %s does not apply to format aij, whose products are those of MATAIJ: leave one of them out", q->kernel);
  if (kernel && format) {
    PetscCall(GPUCSRKernelNames(format->family, list, sizeof(list)));
    PetscCheck(!strcmp(kernel->format, format->family), PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "MATGPUCSR kernel %s works on format %s, not on %s: leave the format to it, or take one of auto, %s", q->kernel, kernel->format, q->format, list);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the request allow this pair? */
static PetscBool Asked(const GPUCSRRequest *q, const GPUCSRFormat *f, const GPUCSRKernel *k)
{
  return (PetscBool)((Any(q->format) || !strcmp(q->format, f->name)) && (Any(q->kernel) || !strcmp(q->kernel, k->name)));
}

/* Usable ones first, then by time; ties in the order of the lists, since qsort() is not stable */
static int Compare(const void *a, const void *b)
{
  const GPUCSRCandidate *x = (const GPUCSRCandidate *)a, *y = (const GPUCSRCandidate *)b;

  if (x->usable != y->usable) return x->usable ? -1 : 1;
  if (x->predicted < y->predicted) return -1;
  if (x->predicted > y->predicted) return 1;
  if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
  return x->format < y->format ? -1 : x->format > y->format;
}

/* Common to all kernels of a format */
typedef struct {
  const GPUCSRFormat *format;
  GPUCSRBool          applicable;
  char                why[112];
  GPUCSRModelInput    in;
  double              scale[GPUCSR_NPARTS]; /* of the profile's times, on this device */
} FormatInput;

static void CandidateGet(const FormatInput *in, const GPUCSRCostRow *row, GPUCSRCandidate *c)
{
  double terms[GPUCSR_NTERMS], part[GPUCSR_NPARTS];

  c->usable = in->applicable;
  if (!c->usable) {
    memcpy(c->why, in->why, sizeof(c->why));
    return;
  }
  c->known   = row ? PETSC_TRUE : PETSC_FALSE;
  c->trusted = row ? row->trusted : PETSC_FALSE;
  c->bytes   = 1e6 * in->in.matrix;
  if (!row) return;
  GPUCSRModelTerms(row, &in->in, PETSC_FALSE, terms);
  for (int k = 0; k < GPUCSR_NTERMS; k++) terms[k] *= in->scale[GPUCSRModelPart[k]];
  c->predicted = 1e-6 * GPUCSRModelTime(row, terms, part);
  c->setup     = 1e-6 * (in->scale[GPUCSR_WAITING] * row->setup[0] + in->scale[GPUCSR_MEMORY] * row->setup[1] * in->in.matrix);
}

/* The reason against a candidate, beside the chosen one */
void GPUCSRCandidateWhy(const GPUCSRCandidate *c, const GPUCSRCandidate *chosen, char why[], size_t len)
{
  if (c->why[0]) (void)snprintf(why, len, "%s", c->why);
  else if (!c->known) (void)snprintf(why, len, "the machine's profile does not know it: make tune");
  else (void)snprintf(why, len, "%.2f times the chosen one's time%s", chosen->predicted > 0 ? c->predicted / chosen->predicted : 1, c->trusted ? "" : ", if the prediction is right: only for measuring");
}

/* Candidates for the request: first the pairs of the profile, sorted by predicted time if all are wanted, then, if all are wanted, the rest */
PetscErrorCode GPUCSRCandidatesGet(const GPUCSRFeatures *f, GPUCSRPrecision p, GPUCSRDevice dev, const GPUCSRRequest *q, PetscBool all, GPUCSRCandidate **list, int *n)
{
  FormatInput       in = {NULL};
  const GPUCSRPair *pair;
  int               known, npairs;
  PetscErrorCode    ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *n = 0;
  PetscCall(GPUCSRProfilePairs(&pair, &known, &npairs));
  if (!all) npairs = known;
  PetscCall(PetscCalloc1(npairs, list));
  for (int k = 0; k < npairs && !ierr; k++) {
    GPUCSRCandidate *c = &(*list)[*n];

    if (k == known) qsort(*list, (size_t)*n, sizeof(**list), Compare);
    if (!Asked(q, pair[k].format, pair[k].kernel)) continue;
    c->format = pair[k].format;
    c->kernel = pair[k].kernel;
    if (in.format != c->format) {
      in.format     = c->format;
      in.why[0]     = 0;
      in.applicable = GPUCSRFormatHolds(c->format, f, in.why, sizeof(in.why));
      if (in.applicable) ierr = GPUCSRModelInputGet(c->format, f, p, dev->props.l2, &in.in);
      if (!ierr) ierr = GPUCSRProfileScale(dev, in.scale, &in.in.processors);
    }
    if (!ierr) CandidateGet(&in, pair[k].row, c);
    (*n)++;
  }
  if (ierr) PetscCall(PetscFree(*list));
  PetscCall(ierr);
  if (all && known == npairs) qsort(*list, (size_t)*n, sizeof(**list), Compare);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Only by name: a candidate much larger than CSR */
static void OnlyByName(const GPUCSRFeatures *f, GPUCSRPrecision p, GPUCSRCandidate *c)
{
  const double times = c->bytes / GPUCSRCSRBytes(f, p);

  if (!c->usable || times <= GPUCSRMachineShared.choice_most) return;
  c->usable = PETSC_FALSE;
  (void)snprintf(c->why, sizeof(c->why), "it takes %.3g times the bytes of CSR: only by name", times);
}

/* The least time so far, and the next */
typedef struct {
  double best, second;
  int    pick;
} Leader;

/* Index of the candidate chosen, and the reason; -1: none */
static PetscErrorCode Pick(const GPUCSRFeatures *f, GPUCSRPrecision p, const GPUCSRRequest *q, GPUCSRCandidate *list, int n, int *pick, char why[], size_t len)
{
  const char *format = NULL, *kernel = NULL;
  Leader      leader = {PETSC_MAX_REAL, PETSC_MAX_REAL, -1};

  const PetscBool open   = GPUCSRRequestOpen(q);
  const PetscBool uneven = (PetscBool)(f->max > GPUCSRMachineShared.tree_longest && f->max > GPUCSRMachineShared.tree_uneven * f->mean);

  PetscFunctionBegin;
  *pick = -1;
  for (int c = 0; c < n && open; c++) OnlyByName(f, p, &list[c]);
  if (q->select == GPUCSR_SELECT_TREE) PetscCall(GPUCSRProfileTree(f, &format, &kernel));
  if (format && uneven) {
    format = "csr";
    kernel = "csr_adaptive";
  }
  for (int c = 0; c < n && format && *pick < 0; c++)
    if (list[c].usable && list[c].bytes <= GPUCSRMachineShared.tree_most * GPUCSRCSRBytes(f, p) && !strcmp(list[c].format->name, format) && !strcmp(list[c].kernel->name, kernel)) *pick = c;
  if (*pick >= 0) {
    if (uneven) PetscCall(PetscSNPrintf(why, len, "the decision tree takes it where a row, here one of %d entries, is so much longer than the mean of %.3g", f->max, f->mean));
    else PetscCall(PetscSNPrintf(why, len, "the decision tree takes it for rows of %.3g entries in the mean and %d columns", f->mean, f->n));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int c = 0; c < n; c++)
    if (list[c].usable && list[c].known && (!open || list[c].trusted)) {
      const double t = q->expected > 0 ? list[c].predicted + list[c].setup / q->expected : list[c].predicted;

      if (t < leader.best) {
        leader.second = leader.best;
        leader.best   = t;
        leader.pick   = c;
      } else leader.second = PetscMin(leader.second, t);
    }
  *pick = leader.pick;
  if (*pick >= 0) {
    if (q->expected > 0)
      (void)snprintf(why, len, "for %.0f products of rows with %.3g entries in the mean and %d at most it is predicted to take %.1f us a product, its conversion shared among them, the next best %.1f us", q->expected, f->mean, f->max, 1e6 * leader.best,
                     1e6 * leader.second);
    else if (leader.second < PETSC_MAX_REAL) (void)snprintf(why, len, "of rows with %.3g entries in the mean and %d at most it is predicted to take %.1f us, the next best %.1f us", f->mean, f->max, 1e6 * leader.best, 1e6 * leader.second);
    else (void)snprintf(why, len, "it is the only candidate allowed");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Moves the chosen candidate to the front, and keeps the order of the rest */
void GPUCSRCandidatesPromote(GPUCSRCandidate list[], int pick)
{
  const GPUCSRCandidate chosen = list[pick];

  for (int k = pick; k > 0; k--) list[k] = list[k - 1];
  list[0]        = chosen;
  list[0].why[0] = 0;
}

/*
  The choice, and on request all candidates by predicted time, the chosen one first; the caller frees the list. A request for a format and a kernel
  leaves no choice.
*/
PetscErrorCode GPUCSRChoose(const GPUCSRFeatures *f, GPUCSRPrecision p, GPUCSRDevice dev, const GPUCSRRequest *q, GPUCSRChoice *c, GPUCSRCandidate **candidates, int *ncandidates)
{
  GPUCSRCandidate *list         = NULL;
  int              n            = 0, pick;
  PetscBool        all          = (PetscBool)(candidates || !GPUCSRRequestOpen(q) || q->select != GPUCSR_SELECT_ESTIMATE);
  char             refused[256] = "";
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  if (all) PetscCall(GPUCSRRequestCheck(q));
  for (pick = -1; pick < 0; all = PETSC_TRUE) { /* the pairs of the profile nearly always suffice, and the rest takes longer than the conversion of a small matrix */
    PetscCall(PetscFree(list));
    PetscCall(GPUCSRCandidatesGet(f, p, dev, q, all, &list, &n));
    ierr = Pick(f, p, q, list, n, &pick, c->why, sizeof(c->why));
    if (ierr) PetscCall(PetscFree(list));
    PetscCall(ierr);
    if (all) break;
  }
  if (!Any(q->kernel) || pick < 0) PetscCall(PetscStrncpy(c->why, "asked for", sizeof(c->why)));
  for (int k = 0; k < n && pick < 0; k++)
    if (list[k].usable) pick = k; /* none in the profile: the first usable one */
  if (pick >= 0) {
    GPUCSRCandidatesPromote(list, pick);
    c->format = list[0].format;
    c->kernel = list[0].kernel;
  } else if (n) PetscCall(PetscStrncpy(refused, list[0].why, sizeof(refused)));
  if (candidates && pick >= 0) {
    *candidates  = list;
    *ncandidates = n;
  } else PetscCall(PetscFree(list));
  PetscCheck(pick >= 0, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR %s %s cannot take this matrix of %d rows, %d columns, %.0f nonzeros: %s", Any(q->format) ? "kernel" : "format", Any(q->format) ? q->kernel : q->format, f->m, f->n, (double)f->nnz, refused);
  PetscFunctionReturn(PETSC_SUCCESS);
}
