/*
  The report of each matrix: MatView()'s info, MatGPUCSRGetInfo(), and the report at the end, which is short, or with -mat_gpucsr_report full has the text of each matrix, too. Nothing here changes a matrix.
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

/* ---- the short report of all ranks: totals, reasons, a line for each solver, options to try, and a line for each kind of matrix */

/* The numbers of a record, which sums blocks and matrices of one description */
enum {
  BLOCKS,
  NONZEROS,
  PRODUCTS,  /* on the device */
  TIMED,     /* of these, outside solvers */
  SECONDS,   /* of TIMED */
  ELSEWHERE, /* products by MATSEQAIJ, and with sparse matrices */
  FORETOLD   /* seconds predicted for PRODUCTS, 0: unknown */
};

static GPUCSRRecords        matrices, reasons, places, errors, factors; /* errors: of advice */
static GPUCSRRecords *const all[] = {&matrices, &reasons, &places, &errors, &factors};

/* Counts are summed over matrices and ranks */
static struct {
  double made, multiplied, empty; /* matrices; empty: blocks without entries */
  double products, transposed, host, sparse, builds, refreshes, fallbacks;
  double inside, insidetransposed;       /* products inside solvers, also in the sums above */
  double up, down, valuesup, valuesdown; /* bytes; of values of matrices */
} count;

/* Each rank sums its times, and the largest sum counts */
static struct {
  double products, transposed, host, build, up, down;
} seconds;

/* A matrix that was multiplied, or has been left to the host */
static PetscErrorCode AddTotals(const Mat_SeqGPUCSR *g, const MatGPUCSRInfo *info)
{
  const GPUCSRPlan *P = &g->plan[GPUCSR_FORWARD], *T = &g->plan[GPUCSR_TRANSPOSE];
  const PetscBool   small = (PetscBool)(g->small && !P->built && !T->built), onhost = (PetscBool)(small || !g->dev);
  const double      products = (double)(info->products + info->transpose_products), one[GPUCSR_RECORD_NUMBERS] = {1};
  double            n[GPUCSR_RECORD_NUMBERS] = {1};
  char              text[512];

  PetscFunctionBegin;
  count.multiplied++;
  count.products += (double)info->products;
  count.transposed += (double)info->transpose_products;
  count.inside += (double)info->solver_products;
  count.insidetransposed += (double)info->solver_transpose_products;
  count.host += (double)(info->aij_products + info->aij_transpose_products);
  count.sparse += (double)info->sparse_products;
  count.builds += (double)(info->builds + info->transpose_builds);
  count.refreshes += (double)info->refreshes;
  count.fallbacks += (double)info->fallbacks;
  count.up += info->uploaded;
  count.down += info->downloaded;
  count.valuesup += info->values_uploaded;
  count.valuesdown += info->values_downloaded;
  seconds.products += info->product_time;
  seconds.transposed += info->transpose_product_time;
  seconds.host += info->aij_time;
  seconds.build += info->build_time;
  seconds.up += info->vector_upload_time;
  seconds.down += info->download_time;
  if (!onhost && !places.n) { /* a rank has one device */
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s, %s", info->backend, g->dev->props.name));
    PetscCall(GPUCSRRecordsAdd(&places, text, PETSC_TRUE, one));
  }
  if (g->nonzeros == 0) { /* a block of a parallel matrix, mostly: nothing to report */
    count.empty++;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (onhost) {
    if (small) PetscCall(MatGPUCSRHostIsFasterWhy_Private(g, text, sizeof(text)));
    else PetscCall(PetscStrncpy(text, g->whynot, sizeof(text)));
    PetscCall(GPUCSRRecordsAdd(&reasons, text, PETSC_FALSE, one));
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s|MATSEQAIJ on the host", g->name));
  } else if (!P->built && !T->built) PetscCall(PetscSNPrintf(text, sizeof(text), "%s|with sparse matrices alone on %s", g->name, info->backend));
  else
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s|%s %s%s%s%s%s on %s", g->name, info->format, info->kernel, T->built ? ", transpose " : "", T->built ? info->transpose_format : "", T->built ? " " : "", T->built ? info->transpose_kernel : "", info->backend));
  n[NONZEROS]  = (double)g->nonzeros;
  n[PRODUCTS]  = products;
  n[TIMED]     = products - (double)(info->solver_products + info->solver_transpose_products);
  n[SECONDS]   = info->product_time + info->transpose_product_time;
  n[ELSEWHERE] = (double)(info->aij_products + info->aij_transpose_products + info->sparse_products);
  if (g->dev && g->dev->ops->kernels && P->ncandidates && !T->built) n[FORETOLD] = P->candidate[0].predicted * products;
  PetscCall(GPUCSRRecordsAdd(&matrices, text, PETSC_TRUE, n));
  PetscCall(MatGPUCSRAdviceError_Private(g, info, text, sizeof(text)));
  if (text[0]) PetscCall(GPUCSRRecordsAdd(&errors, text, PETSC_FALSE, one));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factorization by LU or Cholesky */
PetscErrorCode MatGPUCSRReportFactor_Private(MatFactorType type, PetscInt rows, const char solver[], const char why[], double taken)
{
  const double n[GPUCSR_RECORD_NUMBERS] = {1, taken};
  char         text[640];

  PetscFunctionBegin;
  if (!GPUCSRSettingsGlobal.report) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s of %" PetscInt_FMT " rows by %s, because %s", MatFactorTypes[type], rows, solver, why));
  PetscCall(GPUCSRRecordsAdd(&factors, text, PETSC_TRUE, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *Plural(double n)
{
  return n == 1 ? "" : "s";
}

/* Omits zeros */
static PetscErrorCode Totals(MPI_Comm comm, FILE *fp)
{
  const struct {
    const char *what;
    double      count, seconds; /* negative: not timed */
  } products[] = {
    {"products",                  count.products - count.inside,             seconds.products  },
    {"transposed",                count.transposed - count.insidetransposed, seconds.transposed},
    {"inside solvers",            count.inside,                              -1                },
    {"transposed inside solvers", count.insidetransposed,                    -1                },
    {"on the host",               count.host,                                seconds.host      },
    {"with sparse matrices",      count.sparse,                              -1                }
  };
  const char *separator = ": ";

  PetscFunctionBegin;
  PetscCall(PetscFPrintf(comm, fp, "  matrices %.0f of %.0f", count.multiplied, count.made));
  for (int k = 0; k < (int)PETSC_STATIC_ARRAY_LENGTH(products); k++) {
    if (!(products[k].count > 0)) continue;
    PetscCall(PetscFPrintf(comm, fp, "%s%s %.0f", separator, products[k].what, products[k].count));
    if (products[k].seconds >= 0) PetscCall(PetscFPrintf(comm, fp, " in %.3f ms", 1e3 * products[k].seconds));
    separator = ", ";
  }
  PetscCall(PetscFPrintf(comm, fp, "\n"));
  if (count.builds > 0) PetscCall(PetscFPrintf(comm, fp, "  prepared in %.3f ms: %.0f build%s, %.0f refresh%s\n", 1e3 * seconds.build, count.builds, Plural(count.builds), count.refreshes, count.refreshes == 1 ? "" : "es"));
  if (count.up + count.down > 0)
    PetscCall(PetscFPrintf(comm, fp, "  copies: sent %.3g MB, brought back %.3g MB; of these values of matrices %.3g MB and %.3g MB; of vectors up %.3f ms, down %.3f ms\n", 1e-6 * count.up, 1e-6 * count.down, 1e-6 * count.valuesup, 1e-6 * count.valuesdown,
                           1e3 * seconds.up, 1e3 * seconds.down));
  if (count.fallbacks > 0) PetscCall(PetscFPrintf(comm, fp, "  left the device: %.0f\n", count.fallbacks));
  for (int k = 0; k < reasons.n; k++) PetscCall(PetscFPrintf(comm, fp, "  on the host: %.0f matri%s, because %s\n", reasons.record[k].n[0], reasons.record[k].n[0] == 1 ? "x" : "ces", reasons.record[k].text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The length of text without the reason at its end, which is printed once */
static int Length(const char text[])
{
  const char *again;

  for (int k = 0; k < reasons.n; k++)
    if ((again = strstr(text, reasons.record[k].text)) && again > text + 2) return (int)(again - text) - 2;
  return (int)strlen(text);
}

/* One line for each solver. petsc: the type of the slowest solver, if it is PETSc's and has a twin on the device that could have taken its place */
static PetscErrorCode Solvers(MPI_Comm comm, FILE *fp, const char **petsc)
{
  static const char *const twins[] = {"cg", "bcgs", "gmres", "fgmres"};
  GPUCSRRecords           *solves;
  double                   longest = 0;

  PetscFunctionBegin;
  *petsc = NULL;
  PetscCall(GPUCSRSolvesGather(comm, &solves));
  for (int k = 0; k < solves->n && !PetscGlobalRank; k++) {
    const GPUCSRRecord *s   = &solves->record[k];
    const char         *how = strchr(s->text, '|'), *type = strstr(s->text, ": ");
    const PetscBool     last = (PetscBool)(s->n[2] < longest);

    PetscCall(PetscFPrintf(comm, fp, "  solver %.*s: %.0f solve%s, %.0f iteration%s, %.3f ms; %.*s\n", (int)(how - s->text), s->text, s->n[0], Plural(s->n[0]), s->n[1], Plural(s->n[1]), 1e3 * s->n[2], Length(how + 1), how + 1));
    if (last) continue;
    longest = s->n[2];
    *petsc  = NULL;
    type    = type && type < how ? type + 2 : s->text;
    for (int t = 0; t < 4 && s->n[3] > 0; t++)
      if (!strncmp(type, twins[t], strlen(twins[t])) && type[strlen(twins[t])] == ',') *petsc = twins[t];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Line(MPI_Comm comm, FILE *fp, const GPUCSRRecord *m)
{
  const char  *how  = strchr(m->text, '|');
  const double each = m->n[TIMED] > 0 ? m->n[SECONDS] / m->n[TIMED] : 0, foretold = m->n[PRODUCTS] > 0 ? m->n[FORETOLD] / m->n[PRODUCTS] : 0;

  PetscFunctionBegin;
  PetscCall(PetscFPrintf(comm, fp, "  "));
  if (m->n[BLOCKS] > 1) PetscCall(PetscFPrintf(comm, fp, "%.0f times ", m->n[BLOCKS]));
  PetscCall(PetscFPrintf(comm, fp, "%.*s, %.0f nonzeros%s: %s; products %.0f", (int)(how - m->text), m->text, m->n[NONZEROS], m->n[BLOCKS] > 1 ? " in all" : "", how + 1, m->n[PRODUCTS] > 0 ? m->n[PRODUCTS] : m->n[ELSEWHERE]));
  if (each > 0) PetscCall(PetscFPrintf(comm, fp, ", %.2f us each", 1e6 * each));
  if (each > 0 && foretold > 0 && PetscMax(foretold, each) > GPUCSRMachineShared.missed_least && PetscAbsReal(foretold - each) > GPUCSRMachineShared.missed_share * each)
    PetscCall(PetscFPrintf(comm, fp, ", predicted %.2f us, which is off by more than 30 %%", 1e6 * foretold));
  PetscCall(PetscFPrintf(comm, fp, "\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool SameMatrix(const char a[], const char b[])
{
  while (*a == *b && *a != '|') {
    a++;
    b++;
  }
  return (PetscBool)(*a == '|' && *b == '|');
}

/* Collective: the first rank prints the report of all */
static PetscErrorCode PrintTotals(MPI_Comm comm, FILE *fp)
{
  const char       *petsc;
  const PetscMPIInt size = GPUCSRSizeOf(comm);
  double            copies, products;

  PetscFunctionBegin;
  count.made = (double)made;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &count, (int)(sizeof(count) / sizeof(double)), MPI_DOUBLE, MPI_SUM, comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &seconds, (int)(sizeof(seconds) / sizeof(double)), MPI_DOUBLE, MPI_MAX, comm));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) PetscCall(GPUCSRRecordsGather(comm, all[k], (PetscBool)(all[k] != &reasons && all[k] != &errors)));
  PetscCall(PetscFPrintf(comm, fp, "MATGPUCSR report"));
  if (size > 1) PetscCall(PetscFPrintf(comm, fp, " of %d ranks: counts of all, times of the slowest", (int)size));
  PetscCall(PetscFPrintf(comm, fp, "\n"));
  for (int k = 0; k < factors.n; k++) PetscCall(PetscFPrintf(comm, fp, "  factor %s: %.0f time%s, %.3f ms\n", factors.record[k].text, factors.record[k].n[0], Plural(factors.record[k].n[0]), 1e3 * factors.record[k].n[1]));
  if (!count.multiplied) {
    if (!count.made)
      PetscCall(PetscFPrintf(comm, fp, "  no products: there was no matrix of type gpucsr; -mat_type gpucsr makes one where the program calls MatSetFromOptions(), -dm_mat_type gpucsr those of a DM, -mat_seqaij_type seqaijgpucsr every MATAIJ\n"));
    else PetscCall(PetscFPrintf(comm, fp, "  no products: of %.0f matrices of type gpucsr none was multiplied\n", count.made));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < places.n; k++) {
    PetscCall(PetscFPrintf(comm, fp, "  device: %s", places.record[k].text));
    if (size > 1) PetscCall(PetscFPrintf(comm, fp, " (%.0f rank%s)", places.record[k].n[0], Plural(places.record[k].n[0])));
    PetscCall(PetscFPrintf(comm, fp, "\n"));
  }
  PetscCall(Totals(comm, fp));
  PetscCall(Solvers(comm, fp, &petsc));
  copies   = seconds.up + seconds.down; /* options that the totals suggest */
  products = seconds.products + seconds.transposed;
  if (count.fallbacks > 0) PetscCall(PetscFPrintf(comm, fp, "  try: see why matrices left the device (the warnings, or -info); more ranks or -mat_gpucsr_precision single need less memory a device\n"));
  if (petsc && places.n) PetscCall(PetscFPrintf(comm, fp, "  try: -ksp_type gpu%s, which iterates on the device%s\n", petsc, copies > products ? "; vectors cross the bus for longer than products take" : ""));
  else if (copies > products && copies > 0) PetscCall(PetscFPrintf(comm, fp, "  try: -vec_type gpu (or -dm_vec_type gpu): vectors cross the bus for longer than products take\n"));
  if (count.builds > 0 && seconds.build > products && seconds.build > 1e-3 && count.inside + count.insidetransposed == 0)
    PetscCall(PetscFPrintf(comm, fp, "  try: -mat_gpucsr_expected_mults %.0f, the number of products a matrix: preparing matrices took longer than their products\n", PetscMax(1, (count.products + count.transposed) / count.builds)));
  /* lines of a kind of matrix, one for each format, follow each other */
  for (int k = 0; k < matrices.n; k++) {
    int before = 0;

    while (before < k && !SameMatrix(matrices.record[before].text, matrices.record[k].text)) before++;
    for (int q = k; before == k && q < matrices.n; q++)
      if (SameMatrix(matrices.record[q].text, matrices.record[k].text)) PetscCall(Line(comm, fp, &matrices.record[q]));
  }
  if (count.empty > 0) PetscCall(PetscFPrintf(comm, fp, "  %.0f without entries\n", count.empty));
  for (int k = 0; k < errors.n; k++) PetscCall(PetscFPrintf(comm, fp, "%s", errors.record[k].text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the life of a report */

PetscErrorCode MatGPUCSRReportAdd_Private(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;

  PetscFunctionBegin;
  made++;
  PetscCall(GPUCSRLivingAdd(&MatGPUCSRLiving, &g->living, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices that never had a product stay out of the report */
static PetscErrorCode Keep(Mat_SeqGPUCSR *g)
{
  char          words[8192];
  MatGPUCSRInfo info;

  PetscFunctionBegin;
  if (!GPUCSRSettingsGlobal.report || !(g->plan[0].built || g->plan[1].built || g->info.sparse_products || (g->decided && (!g->dev || g->info.aij_products + g->info.aij_transpose_products)))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(InfoGet(g, &info));
  PetscCall(AddTotals(g, &info));
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

PetscErrorCode MatGPUCSRReportPrint_Private(void)
{
  PetscFunctionBegin;
  if (GPUCSRSettingsGlobal.report) {
    const char *file = GPUCSRSettingsGlobal.reportfile;
    FILE       *fp   = PETSC_STDOUT;

    for (GPUCSRLiving *l = MatGPUCSRLiving.first; l; l = l->next) PetscCall(Keep((Mat_SeqGPUCSR *)l->object));
    GPUCSRSettingsGlobal.report = PETSC_FALSE;
    if (file[0]) PetscCall(PetscFOpen(PETSC_COMM_WORLD, file, "w", &fp));
    PetscCall(PrintTotals(PETSC_COMM_WORLD, fp));
    PetscCall(VecGPUReport(PETSC_COMM_WORLD, fp));
    if (kept && !fflush(kept)) PetscCall(PetscSynchronizedFPrintf(PETSC_COMM_WORLD, fp, "Matrices of rank %d\n%s", PetscGlobalRank, keptwords));
    PetscCall(PetscSynchronizedFlush(PETSC_COMM_WORLD, fp));
    if (file[0]) PetscCall(PetscFClose(PETSC_COMM_WORLD, fp));
  }
  if (kept) (void)fclose(kept);
  kept = NULL;
  free(keptwords);
  keptwords = NULL;
  PetscCall(GPUCSRSolvesForget());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) PetscCall(GPUCSRRecordsFree(all[k]));
  PetscCall(PetscMemzero(&count, sizeof(count)));
  PetscCall(PetscMemzero(&seconds, sizeof(seconds)));
  nkept = made = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
