/*
  Which format and kernel: what was asked for where something was, else the kernel that a small model of their times finds
  fastest for these row lengths.

  applicable() and available() are about correctness and are asked of every choice; the model is about speed alone. It is
  fitted to docs/results/, see docs/choice.md.
*/
#include "plan.h"
#include <math.h>

#define DENSE_DENSITY 1.0 /* two thirds would do for speed, but a stored zero times Inf is NaN where CSR has nothing */

/*
  The time of a product in microseconds, of a kernel that gives each row `threads` threads, which take `width` entries a step:

    launch + bytes (MB moved) + row (million threads) + step (steps of the longest row) + uneven (million entries, see below)
           + cut (if the longest row is longer than `most`, where the kernel goes another way)

  uneven counts each entry as often as a row's mean length doubles the width: threads of short reach read a long row in
  pieces that share no sector. A kernel without a fixed number of threads a row counts each entry once.
*/
typedef struct {
  const char *kernel;
  int         width, threads, most;
  double      launch, bytes, row, step, uneven, cut;
} Cost;

static const Cost costs[] = {
#include "costs.h"
};
#define NCOSTS ((int)(sizeof(costs) / sizeof(costs[0])))

static PetscErrorCode Predict(const Cost *c, const GPUCSRFormat *format, const GPUCSRFeatures *f, GPUCSRPrecision p, double *microseconds)
{
  double        bytes = (double)GPUCSRTypeSize(GPUCSRVectorType(p)) * ((double)f->m + (double)f->n), entries;
  GPUCSRStorage A;

  PetscFunctionBegin;
  PetscCall(GPUCSRStorageCreate(NULL, format, f, p, &A)); /* described, not allocated */
  for (int k = 0; k < A.narrays; k++) bytes += (double)A.array[k].count * (double)GPUCSRTypeSize(A.array[k].type);
  entries = (double)A.stored;
  if (c->threads) entries *= PetscMax(0, log2(PetscMax(1e-9, f->mean / c->width)));
  *microseconds = c->launch + c->bytes * 1e-6 * bytes + c->row * 1e-6 * (double)f->m * c->threads + c->step * ceil((double)PetscMin(f->max, c->most) / c->width) + c->uneven * 1e-6 * entries + (f->max > c->most ? c->cut : 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Words that exist, and fit each other */
PetscErrorCode GPUCSRRequestCheck(const GPUCSRRequest *q)
{
  const GPUCSRFormat *format;
  const GPUCSRKernel *kernel;
  PetscBool           anyformat, anykernel, same, aij;
  char                list[512];

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(q->format, "auto", &anyformat));
  PetscCall(PetscStrcmp(q->format, "aij", &aij));
  PetscCall(PetscStrcmp(q->kernel, "auto", &anykernel));
  PetscCall(GPUCSRFormatFind(q->format, &format));
  PetscCall(GPUCSRFormatNames(list, sizeof(list)));
  PetscCheck(anyformat || aij || format, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown MATGPUCSR format %s: must be one of auto, aij, %s", q->format, list);
  PetscCall(GPUCSRKernelFind(q->kernel, &kernel));
  PetscCall(GPUCSRKernelNames(NULL, list, sizeof(list)));
  PetscCheck(anykernel || kernel, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown MATGPUCSR kernel %s: must be one of auto, %s", q->kernel, list);
  PetscCheck(!kernel || !aij, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "MATGPUCSR kernel %s has no part in format aij, whose products are those of MATAIJ: leave one of them out", q->kernel);
  if (kernel && !anyformat) {
    PetscCall(PetscStrcmp(kernel->format, q->format, &same));
    PetscCall(GPUCSRKernelNames(q->format, list, sizeof(list)));
    PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "MATGPUCSR kernel %s works on format %s, not on %s: leave the format to it, or take one of auto, %s", q->kernel, kernel->format, q->format, list);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Could what was asked for work in this precision? Asked of an empty matrix, so of the format alone */
PetscErrorCode GPUCSRRequestTakes(const GPUCSRRequest *q, GPUCSRPrecision p, PetscBool *yes)
{
  const GPUCSRFormat  *format;
  const GPUCSRKernel  *kernel;
  const GPUCSRFeatures nothing = {0};
  char                 why[256];

  PetscFunctionBegin;
  *yes = PETSC_TRUE;
  PetscCall(GPUCSRKernelFind(q->kernel, &kernel));
  PetscCall(GPUCSRFormatFind(kernel ? kernel->format : q->format, &format));
  if (format) PetscCall((*format->applicable)(&nothing, p, yes, why, sizeof(why)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Usable(const GPUCSRKernel *k, const GPUCSRFeatures *f, GPUCSRPrecision p, GPUCSRDevice dev, PetscBool *yes, char why[], size_t len)
{
  const GPUCSRFormat *format;

  PetscFunctionBegin;
  PetscCall(GPUCSRFormatFind(k->format, &format));
  PetscCall((*format->applicable)(f, p, yes, why, len));
  if (*yes && dev->ops->separate && k->family && k->family->available) PetscCall((*k->family->available)(yes, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The fastest kernel by the model, of this format unless that is auto; none for a format that the model does not know */
static PetscErrorCode Fastest(const GPUCSRFeatures *f, GPUCSRPrecision p, GPUCSRDevice dev, const char format[], char kernel[], char why[], size_t len)
{
  double    best = PETSC_MAX_REAL, second = PETSC_MAX_REAL;
  PetscBool any;

  PetscFunctionBegin;
  kernel[0] = 0;
  PetscCall(PetscStrcmp(format, "auto", &any));
  for (int q = 0; q < NCOSTS; q++) {
    const GPUCSRKernel *k;
    const GPUCSRFormat *its;
    PetscBool           usable, same, dense;
    char                reason[256];
    double              t = 0;

    PetscCall(GPUCSRKernelFind(costs[q].kernel, &k));
    PetscCall(PetscStrcmp(format, k->format, &same));
    PetscCall(PetscStrcmp(k->format, "dense", &dense));
    if (!(any ? !dense || f->density >= DENSE_DENSITY : same)) continue;
    PetscCall(Usable(k, f, p, dev, &usable, reason, sizeof(reason)));
    if (!usable && any) continue;
    PetscCall(GPUCSRFormatFind(k->format, &its));
    PetscCall(Predict(&costs[q], its, f, p, &t));
    if (t < best) {
      second = best;
      best   = t;
      PetscCall(PetscStrncpy(kernel, k->name, GPUCSR_WORD));
    } else second = PetscMin(second, t);
  }
  if (second < PETSC_MAX_REAL) PetscCall(PetscSNPrintf(why, len, "of rows with %.3g entries in the mean and %d at most it is predicted to take %.1f us, the next best %.1f us", f->mean, f->max, best, second));
  else PetscCall(PetscStrncpy(why, "it is the format's only kernel", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRChoose(const GPUCSRFeatures *f, GPUCSRPrecision p, GPUCSRDevice dev, const GPUCSRRequest *q, GPUCSRChoice *c)
{
  PetscBool any, yes, same;
  char      word[GPUCSR_WORD] = "", why[256];

  PetscFunctionBegin;
  PetscCall(GPUCSRRequestCheck(q));
  PetscCall(PetscStrcmp(q->kernel, "auto", &any));
  if (!any) {
    PetscCall(PetscStrncpy(word, q->kernel, sizeof(word)));
    PetscCall(PetscStrncpy(c->why, "asked for", sizeof(c->why)));
  } else {
    PetscCall(Fastest(f, p, dev, q->format, word, c->why, sizeof(c->why)));
    for (int k = 0; !word[0]; k++) { /* a format that the model does not know: its first kernel */
      PetscCall(GPUCSRKernelGet(k, &c->kernel));
      PetscCheck(c->kernel || !dev->ops->separate, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR format %s has no kernel for the device yet: take -mat_gpucsr_backend host", q->format);
      if (!c->kernel) break;
      PetscCall(PetscStrcmp(q->format, c->kernel->format, &same));
      if (same) PetscCall(PetscStrncpy(word, c->kernel->name, sizeof(word)));
      PetscCall(PetscStrncpy(c->why, "asked for", sizeof(c->why)));
    }
  }
  PetscCall(GPUCSRKernelFind(word, &c->kernel));
  PetscCall(GPUCSRFormatFind(c->kernel ? c->kernel->format : q->format, &c->format));
  PetscCall((*c->format->applicable)(f, p, &yes, why, sizeof(why)));
  if (yes && c->kernel) PetscCall(Usable(c->kernel, f, p, dev, &yes, why, sizeof(why)));
  PetscCheck(yes, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR format %s cannot take this matrix of %d rows, %d columns, %.0f nonzeros: %s", c->format->name, f->m, f->n, (double)f->nnz, why);
  PetscFunctionReturn(PETSC_SUCCESS);
}
