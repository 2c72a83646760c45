/*
  The report of each matrix: MatView()'s info, MatGPUCSRGetInfo(), and the report at the end. Nothing here changes a matrix.
*/
#include "report.h"
#include <string.h>

static FILE    *kept      = NULL; /* texts of matrices that are gone, in memory: */
static char    *keptwords = NULL;
static size_t   keptlength;
static PetscInt nkept = 0, made = 0;

static PetscErrorCode InfoGet(Mat_SeqGPUCSR *g, MatGPUCSRInfo *info)
{
  const GPUCSRPlan *P = &g->plan[GPUCSR_FORWARD], *T = &g->plan[GPUCSR_TRANSPOSE];

  PetscFunctionBegin;
  if (g->dev && !g->dev->failed[0]) PetscCall(MatGPUCSRTimersRead_Private(g, 0));
  *info                  = g->info;
  info->backend          = g->dev ? g->dev->ops->name : (g->decided ? "host" : "none");
  info->format           = P->built ? P->A.format->name : (g->decided && !g->dev ? "aij" : "none");
  info->kernel           = P->built && P->choice.kernel ? P->choice.kernel->name : info->format;
  info->transpose_format = T->built ? T->A.format->name : "none";
  info->transpose_kernel = T->built && T->choice.kernel ? T->choice.kernel->name : info->transpose_format;
  info->bytes            = GPUCSRPlanBytes(P);
  info->transpose_bytes  = GPUCSRPlanBytes(T);
  info->csr_bytes        = P->built ? GPUCSRCSRBytes(&P->features, g->precision) : 0;
  info->padding          = P->built && P->A.nnz ? PetscMax(0, (double)P->A.stored / (double)P->A.nnz - 1) : 0;
  info->rounding         = PetscMax(P->rounding, T->rounding);
  info->uploaded += P->costs.uploaded + T->costs.uploaded;
  info->values_uploaded += P->costs.values + T->costs.values;
  info->inspect_time   = P->costs.inspect + P->costs.choose + T->costs.inspect + T->costs.choose;
  info->convert_time   = P->costs.convert + T->costs.convert;
  info->upload_time    = P->costs.upload + T->costs.upload;
  info->transpose_time = T->costs.transpose;
  info->build_time     = info->inspect_time + info->convert_time + info->upload_time + info->transpose_time;
  info->upload_time -= g->filled;
  info->convert_time += g->filled - info->pad_time;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRInfoGet_Private(Mat A, MatGPUCSRInfo *info)
{
  return InfoGet((Mat_SeqGPUCSR *)A->spptr, info);
}

/* Adds to text, which has room for len characters in all */
PetscErrorCode MatGPUCSRAppend_Private(char text[], size_t len, const char format[], ...)
{
  size_t  have, full;
  va_list arguments;

  PetscFunctionBegin;
  PetscCall(PetscStrlen(text, &have));
  va_start(arguments, format);
  PetscCall(PetscVSNPrintf(text + have, len - have, format, &full, arguments));
  va_end(arguments);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ViewPlan(const GPUCSRPlan *P, const char name[], PetscInt products, PetscInt untimed, double seconds, GPUCSRDevice dev, char text[], size_t len)
{
  const size_t vector = GPUCSRTypeSize(GPUCSRVectorType(P->A.precision));

  PetscFunctionBegin;
  PetscCall(MatGPUCSRAppend_Private(text, len, "  %s: format %s, kernel %s%s, because %s\n", name, P->A.format->name, P->choice.kernel ? P->choice.kernel->name : "none", dev->ops->kernels ? "" : " (host reference)", P->choice.why));
  PetscCall(
    MatGPUCSRAppend_Private(text, len, "    bytes %.0f (plain CSR %.0f), padding %.1f%%, products %" PetscInt_FMT, GPUCSRPlanBytes(P), GPUCSRCSRBytes(&P->features, P->A.precision), P->A.nnz ? 100 * PetscMax(0, (double)P->A.stored / (double)P->A.nnz - 1) : 0.0, products));
  if (seconds > 0 && products > untimed) {
    const double moved = GPUCSRStorageBytes(&P->A) + (double)vector * ((double)P->A.m + (double)P->A.n), rate = moved * (double)(products - untimed) / seconds;
    double       copy;

    PetscCall(GPUCSRDeviceBandwidth(dev, &copy));
    PetscCall(MatGPUCSRAppend_Private(text, len, ", %.2f us each, %.1f GB/s", 1e6 * seconds / (double)(products - untimed), 1e-9 * rate));
    PetscCall(MatGPUCSRAppend_Private(text, len, copy > 0 && dev->ops->kernels ? ", %.2f of the device's copy bandwidth (%.0f GB/s)" : "", rate / copy, 1e-9 * copy));
  }
  PetscCall(MatGPUCSRAppend_Private(text, len, "\n"));
  if (P->rounding > 0) PetscCall(MatGPUCSRAppend_Private(text, len, "    values are rounded to single, by %.2e of themselves at most\n", P->rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every candidate, the chosen one first: bytes, predicted and measured time, and the reason against it. Nothing if there was one candidate */
static void ViewCandidates(const GPUCSRPlan *P, const char title[], FILE *fp)
{
  int unknown = 0;

  if (!P->built || P->ncandidates < 2) return;
  (void)fprintf(fp, "%s    %-12s %-20s %14s %12s %12s\n", title, "format", "kernel", "bytes", "predicted us", "measured us");
  for (int k = 0; k < P->ncandidates; k++) {
    const GPUCSRCandidate *c             = &P->candidate[k];
    char                   predicted[32] = "-", measured[32] = "-", bytes[32] = "-", why[256] = "chosen";

    if (k && c->usable && !c->known) { /* not in the profile: counted below */
      unknown++;
      continue;
    }
    if (k) GPUCSRCandidateWhy(c, &P->candidate[0], why, sizeof(why));
    if (c->bytes > 0) (void)snprintf(bytes, sizeof(bytes), "%.0f", c->bytes);
    if (c->predicted > 0) (void)snprintf(predicted, sizeof(predicted), "%.2f", 1e6 * c->predicted);
    if (c->measured > 0) (void)snprintf(measured, sizeof(measured), "%.2f", 1e6 * c->measured);
    (void)fprintf(fp, "    %-12s %-20s %14s %12s %12s  %s\n", c->format->name, c->kernel->name, bytes, predicted, measured, why);
  }
  if (unknown) (void)fprintf(fp, "    and %d that are not in the machine's profile: chosen only by name\n", unknown);
}

/* Of several ranks: this rank's share of the entries and the largest share, both over the mean */
static PetscErrorCode ViewShare(const double share[], char text[], size_t len)
{
  PetscFunctionBegin;
  if (!(share[1] > 0)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRAppend_Private(text, len, "    of the parallel matrix this rank has %.0f entries, %.2f of the ranks' mean; the largest share is %.2f of the mean\n", share[0], share[0] / share[1], share[2] / share[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix in words */
static PetscErrorCode Describe(Mat_SeqGPUCSR *g, char text[], size_t len)
{
  MatGPUCSRInfo info;
  char          why[256];

  PetscFunctionBegin;
  text[0] = 0;
  PetscCall(InfoGet(g, &info));
  if (!g->dev) PetscCall(MatGPUCSRAppend_Private(text, len, "  MATGPUCSR: products run on the host by MATSEQAIJ, because %s\n", g->decided ? g->whynot : "none was asked for yet"));
  if (info.aij_products + info.aij_transpose_products)
    PetscCall(MatGPUCSRAppend_Private(text, len, "    by MATSEQAIJ: products %" PetscInt_FMT ", transposed products %" PetscInt_FMT ", milliseconds %.3f\n", info.aij_products, info.aij_transpose_products, 1e3 * info.aij_time));
  if (!g->dev) {
    PetscCall(ViewShare(g->share, text, len));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (g->small) {
    PetscCall(MatGPUCSRHostIsFasterWhy_Private(g, why, sizeof(why)));
    PetscCall(MatGPUCSRAppend_Private(text, len, "    products of host vectors are MATSEQAIJ's, because %s\n", why));
  }
  PetscCall(MatGPUCSRAppend_Private(text, len, "  MATGPUCSR: products run on %s device %d, %s, precision %s%s\n", g->dev->ops->name, g->dev->id, g->dev->props.name, MatGPUCSRPrecisions[g->base.config.precision], g->base.config.precision != MAT_GPUCSR_AUTO ? "" : (g->precision == GPUCSR_PRECISION_DOUBLE ? " (double: values need it)" : " (single values: nothing is lost)")));
  PetscCall(ViewShare(g->share, text, len));
  if (g->plan[GPUCSR_FORWARD].built) PetscCall(ViewPlan(&g->plan[GPUCSR_FORWARD], "A", info.products, info.solver_products, info.product_time, g->dev, text, len));
  if (g->plan[GPUCSR_TRANSPOSE].built) PetscCall(ViewPlan(&g->plan[GPUCSR_TRANSPOSE], "A transposed", info.transpose_products, info.solver_transpose_products, info.transpose_product_time, g->dev, text, len));
  if (info.sparse_products) PetscCall(MatGPUCSRAppend_Private(text, len, "    %" PetscInt_FMT " products with sparse matrices\n", info.sparse_products));
  if (info.dense_products) PetscCall(MatGPUCSRAppend_Private(text, len, "    of the products, %" PetscInt_FMT " were columns of dense matrices, in %" PetscInt_FMT " passes\n", info.dense_columns, info.dense_products));
  PetscCall(MatGPUCSRAppend_Private(text, len, "    builds %" PetscInt_FMT ", transpose builds %" PetscInt_FMT ", refreshes %" PetscInt_FMT "; vectors and matrix sent %.3g MB, brought back %.3g MB, of these values of the matrix %.3g MB and %.3g MB\n",
                                    info.builds, info.transpose_builds, info.refreshes, 1e-6 * info.uploaded, 1e-6 * info.downloaded, 1e-6 * info.values_uploaded, 1e-6 * info.values_downloaded));
  PetscCall(MatGPUCSRAppend_Private(text, len, "    milliseconds: inspect %.3f, upload %.3f, convert %.3f, pad %.3f, transpose %.3f; products %.3f, vectors up %.3f, converted %.3f, down %.3f\n", 1e3 * info.inspect_time, 1e3 * info.upload_time,
                                    1e3 * info.convert_time, 1e3 * info.pad_time, 1e3 * info.transpose_time, 1e3 * (info.product_time + info.transpose_product_time), 1e3 * info.vector_upload_time, 1e3 * info.vector_convert_time, 1e3 * info.download_time));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRDescribe_Private(Mat A, PetscViewer viewer)
{
  char text[8192];

  PetscFunctionBegin;
  PetscCall(Describe((Mat_SeqGPUCSR *)A->spptr, text, sizeof(text)));
  for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) { /* each line with the viewer's indentation */
    *end = 0;
    PetscCall(PetscViewerASCIIPrintf(viewer, "%s\n", line));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRReportAdd_Private(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;

  PetscFunctionBegin;
  made++;
  PetscCall(GPUCSRLivingAdd(&MatGPUCSRLiving, &g->living, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has it been multiplied, or left to the host? */
static PetscBool Multiplied(const Mat_SeqGPUCSR *g)
{
  return (PetscBool)(g->plan[0].built || g->plan[1].built || g->info.sparse_products || (g->decided && (!g->dev || g->info.aij_products + g->info.aij_transpose_products)));
}

/* Matrices that never had a product stay out of the report */
static PetscErrorCode Keep(Mat_SeqGPUCSR *g)
{
  char          words[8192];
  MatGPUCSRInfo info;

  PetscFunctionBegin;
  if (!GPUCSRSettingsGlobal.report || !Multiplied(g)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(InfoGet(g, &info));
  PetscCall(MatGPUCSRTotalsAdd_Private(g, &info));
  if (!GPUCSRSettingsGlobal.reportfull) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Describe(g, words, sizeof(words)));
  if (!kept) kept = open_memstream(&keptwords, &keptlength);
  PetscCheck(kept, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for the report");
  (void)fprintf(kept, "Matrix %" PetscInt_FMT ": %s, %.0f nonzeros\n%s", ++nkept, g->name, g->nonzeros, words);
  for (int side = 0; side < 2; side++) ViewCandidates(&g->plan[side], side ? "  candidates for A transposed\n" : "  candidates for A\n", kept);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRReportRemove_Private(Mat_SeqGPUCSR *g)
{
  PetscFunctionBegin;
  if (!g->living.previous) PetscFunctionReturn(PETSC_SUCCESS); /* it was never added: its creation met an error */
  PetscCall(Keep(g));
  PetscCall(GPUCSRLivingRemove(&g->living));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To the file named, or to standard output */
static PetscErrorCode Print(void)
{
  const char *file = GPUCSRSettingsGlobal.reportfile;
  FILE       *fp   = PETSC_STDOUT;

  PetscFunctionBegin;
  if (file[0]) PetscCall(PetscFOpen(PETSC_COMM_WORLD, file, "w", &fp));
  PetscCall(MatGPUCSRTotalsPrint_Private(PETSC_COMM_WORLD, fp, made));
  PetscCall(VecGPUReport(PETSC_COMM_WORLD, fp));
  if (kept && !fflush(kept)) PetscCall(PetscSynchronizedFPrintf(PETSC_COMM_WORLD, fp, "Matrices of rank %d\n%s", PetscGlobalRank, keptwords));
  PetscCall(PetscSynchronizedFlush(PETSC_COMM_WORLD, fp));
  if (file[0]) PetscCall(PetscFClose(PETSC_COMM_WORLD, fp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRReportPrint_Private(void)
{
  PetscFunctionBegin;
  if (GPUCSRSettingsGlobal.report) {
    for (GPUCSRLiving *l = MatGPUCSRLiving.first; l; l = l->next) PetscCall(Keep((Mat_SeqGPUCSR *)l->object));
    GPUCSRSettingsGlobal.report = PETSC_FALSE;
    PetscCall(Print());
  }
  if (kept) (void)fclose(kept);
  kept = NULL;
  free(keptwords);
  keptwords = NULL;
  PetscCall(GPUCSRSolvesForget());
  PetscCall(MatGPUCSRTotalsForget_Private());
  nkept = made = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
