/*
  Which format and kernel: what was asked for where something was, else a rule on the row lengths.

  applicable() and available() are about correctness and are asked of every choice; the rule below is about speed alone.
  Its thresholds are those of docs/choice.md, fitted to docs/results/.
*/
#include "plan.h"
#include <math.h>

#define DENSE_DENSITY   1.0  /* two thirds would do for speed, but a stored zero times Inf is NaN where CSR has nothing */
#define SELL_PADDING    1.25 /* most that sliced ELL may store for one nonzero */
#define SELL_LONGEST    96   /* mean length above which a row is too long for one thread */
#define UNEVEN          8.0  /* a longest row of this many means, and UNEVEN_LENGTH at least, keeps everybody waiting */
#define UNEVEN_LENGTH   1024
#define BLOCK_LENGTH    2048 /* mean length that keeps a whole block busy */

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

/* Threads a row: about three entries each, more where rows alone would leave processors idle */
static int ThreadsPerRow(const GPUCSRFeatures *f, GPUCSRDevice dev)
{
  const double want = PetscMin(32, 2048.0 * dev->props.processors / PetscMax(1, f->m)); /* threads a row that fill the device */
  int          t    = 2;

  while (t < 32 && (3.0 * t < f->mean || (t < want && 2.0 * t < f->mean))) t *= 2;
  return t;
}

/* The kernel that the row lengths speak for, and the reason */
static PetscErrorCode Rule(const GPUCSRFeatures *f, GPUCSRPrecision p, GPUCSRDevice dev, const char format[], char kernel[], char why[], size_t len)
{
  const GPUCSRKernel *dense;
  const double        padding = f->nnz ? (double)f->sell_stored / (double)f->nnz : 1;
  PetscBool           any, csr, sell, isdense, usable = PETSC_FALSE;
  char                reason[128];

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(format, "auto", &any));
  PetscCall(PetscStrcmp(format, "csr", &csr));
  PetscCall(PetscStrcmp(format, "sell", &sell));
  PetscCall(PetscStrcmp(format, "dense", &isdense));
  if (any && f->density >= DENSE_DENSITY) {
    PetscCall(GPUCSRKernelFind("dense_gemv", &dense));
    PetscCall(Usable(dense, f, p, dev, &usable, reason, sizeof(reason)));
  }
  if (isdense || usable) {
    PetscCall(PetscStrncpy(kernel, "dense_gemv", GPUCSR_WORD));
    PetscCall(PetscSNPrintf(why, len, "%.0f%% of the entries are there", 100 * f->density));
  } else if (!sell && f->max > UNEVEN_LENGTH && f->max > UNEVEN * f->mean) {
    PetscCall(PetscStrncpy(kernel, "csr_merge", GPUCSR_WORD));
    PetscCall(PetscSNPrintf(why, len, "the longest row has %d entries, the mean %.3g: work is cut evenly", f->max, f->mean));
  } else if (!sell && f->mean >= BLOCK_LENGTH) {
    if (f->m >= 4 * dev->props.processors) {
      PetscCall(PetscStrncpy(kernel, "csr_block", GPUCSR_WORD));
      PetscCall(PetscSNPrintf(why, len, "rows of %.3g entries keep a block each busy", f->mean));
    } else {
      PetscCall(PetscStrncpy(kernel, "csr_merge", GPUCSR_WORD));
      PetscCall(PetscSNPrintf(why, len, "%d rows are too few to fill the device: each is cut", f->m));
    }
  } else if (sell || (any && padding <= SELL_PADDING && f->mean <= SELL_LONGEST && (double)f->m >= 512.0 * dev->props.processors)) {
    PetscCall(PetscStrncpy(kernel, "sell_row", GPUCSR_WORD));
    PetscCall(PetscSNPrintf(why, len, "rows of about equal length (%.3g entries, padding %.1f%%), enough of them for a thread each", f->mean, 100 * (padding - 1)));
  } else {
    PetscCall(PetscSNPrintf(kernel, GPUCSR_WORD, "csr_vector%d", ThreadsPerRow(f, dev)));
    PetscCall(PetscSNPrintf(why, len, "rows of %.3g entries in the mean, %d at most: %d threads share one", f->mean, f->max, ThreadsPerRow(f, dev)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRChoose(const GPUCSRFeatures *f, GPUCSRPrecision p, GPUCSRDevice dev, const GPUCSRRequest *q, GPUCSRChoice *c)
{
  PetscBool any, csr, yes, same;
  char      word[GPUCSR_WORD] = "", why[256];

  PetscFunctionBegin;
  PetscCall(GPUCSRRequestCheck(q));
  PetscCall(PetscStrcmp(q->kernel, "auto", &any));
  if (!any) {
    PetscCall(PetscStrncpy(word, q->kernel, sizeof(word)));
    PetscCall(PetscStrncpy(c->why, "asked for", sizeof(c->why)));
  } else {
    PetscCall(PetscStrcmp(q->format, "csr", &csr));
    PetscCall(Rule(f, p, dev, q->format, word, c->why, sizeof(c->why)));
    PetscCall(GPUCSRKernelFind(word, &c->kernel));
    PetscCall(PetscStrcmp(q->format, "auto", &any));
    PetscCall(PetscStrcmp(q->format, c->kernel->format, &same));
    if (!any && !same) { /* a format that the rule does not know: its first kernel */
      for (int k = 0;; k++) {
        PetscCall(GPUCSRKernelGet(k, &c->kernel));
        PetscCheck(c->kernel || !dev->ops->separate, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR format %s has no kernel for the device yet: take -mat_gpucsr_backend host", q->format);
        if (!c->kernel) break;
        PetscCall(PetscStrcmp(q->format, c->kernel->format, &same));
        if (same) break;
      }
      PetscCall(PetscStrncpy(c->why, "asked for", sizeof(c->why)));
    }
    if (c->kernel) PetscCall(PetscStrncpy(word, c->kernel->name, sizeof(word)));
  }
  PetscCall(GPUCSRKernelFind(word, &c->kernel));
  PetscCall(GPUCSRFormatFind(c->kernel ? c->kernel->format : q->format, &c->format));
  PetscCall((*c->format->applicable)(f, p, &yes, why, sizeof(why)));
  if (yes && c->kernel) PetscCall(Usable(c->kernel, f, p, dev, &yes, why, sizeof(why)));
  PetscCheck(yes, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATGPUCSR format %s cannot take this matrix of %d rows, %d columns, %.0f nonzeros: %s", c->format->name, f->m, f->n, (double)f->nnz, why);
  PetscFunctionReturn(PETSC_SUCCESS);
}
