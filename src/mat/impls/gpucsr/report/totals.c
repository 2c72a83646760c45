/*
  The short report of all ranks: totals, reasons, a line for each solver, options to try, and a line for each kind of matrix. -mat_gpucsr_report full
  prints report.c's text of each matrix.
*/
#include "report.h"
#include <string.h>

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

static void Add(const MatGPUCSRInfo *i)
{
  count.products += (double)i->products;
  count.transposed += (double)i->transpose_products;
  count.inside += (double)i->solver_products;
  count.insidetransposed += (double)i->solver_transpose_products;
  count.host += (double)(i->aij_products + i->aij_transpose_products);
  count.sparse += (double)i->sparse_products;
  count.builds += (double)(i->builds + i->transpose_builds);
  count.refreshes += (double)i->refreshes;
  count.fallbacks += (double)i->fallbacks;
  count.up += i->uploaded;
  count.down += i->downloaded;
  count.valuesup += i->values_uploaded;
  count.valuesdown += i->values_downloaded;
  seconds.products += i->product_time;
  seconds.transposed += i->transpose_product_time;
  seconds.host += i->aij_time;
  seconds.build += i->build_time;
  seconds.up += i->vector_upload_time;
  seconds.down += i->download_time;
}

/* A matrix that was multiplied, or has been left to the host */
PetscErrorCode MatGPUCSRTotalsAdd_Private(const Mat_SeqGPUCSR *g, const MatGPUCSRInfo *info)
{
  const GPUCSRPlan *P = &g->plan[GPUCSR_FORWARD], *T = &g->plan[GPUCSR_TRANSPOSE];
  const PetscBool   small = (PetscBool)(g->small && !P->built && !T->built), onhost = (PetscBool)(small || !g->dev);
  const double      products = (double)(info->products + info->transpose_products), one[GPUCSR_RECORD_NUMBERS] = {1};
  double            n[GPUCSR_RECORD_NUMBERS] = {1};
  char              text[512];

  PetscFunctionBegin;
  count.multiplied++;
  Add(info);
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

/* Was the profile far off? In a product of a few microseconds the measurement takes as long */
static PetscBool Missed(double foretold, double measured)
{
  return (PetscBool)(foretold > 0 && PetscMax(foretold, measured) > GPUCSRMachineShared.missed_least && PetscAbsReal(foretold - measured) > GPUCSRMachineShared.missed_share * measured);
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

/* Options that the totals suggest */
static PetscErrorCode Advice(MPI_Comm comm, FILE *fp, const char petsc[])
{
  const double copies = seconds.up + seconds.down, products = seconds.products + seconds.transposed;

  PetscFunctionBegin;
  if (count.fallbacks > 0) PetscCall(PetscFPrintf(comm, fp, "  try: see why matrices left the device (the warnings, or -info); more ranks or -mat_gpucsr_precision single need less memory a device\n"));
  if (petsc && places.n) PetscCall(PetscFPrintf(comm, fp, "  try: -ksp_type gpu%s, which iterates on the device%s\n", petsc, copies > products ? "; vectors cross the bus for longer than products take" : ""));
  else if (copies > products && copies > 0) PetscCall(PetscFPrintf(comm, fp, "  try: -vec_type gpu (or -dm_vec_type gpu): vectors cross the bus for longer than products take\n"));
  if (count.builds > 0 && seconds.build > products && seconds.build > 1e-3 && count.inside + count.insidetransposed == 0)
    PetscCall(PetscFPrintf(comm, fp, "  try: -mat_gpucsr_expected_mults %.0f, the number of products a matrix: preparing matrices took longer than their products\n", PetscMax(1, (count.products + count.transposed) / count.builds)));
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
  if (each > 0 && Missed(foretold, each)) PetscCall(PetscFPrintf(comm, fp, ", predicted %.2f us, which is off by more than 30 %%", 1e6 * foretold));
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

/* Lines of a kind of matrix, one for each format, follow each other */
static PetscErrorCode Matrices(MPI_Comm comm, FILE *fp)
{
  PetscFunctionBegin;
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

/* Collective: the first rank prints the report of all; made: number of gpucsr matrices ever made on this rank */
PetscErrorCode MatGPUCSRTotalsPrint_Private(MPI_Comm comm, FILE *fp, PetscInt made)
{
  const char       *petsc;
  const PetscMPIInt size = GPUCSRSizeOf(comm);

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
  PetscCall(Advice(comm, fp, petsc));
  PetscCall(Matrices(comm, fp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRTotalsForget_Private(void)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) PetscCall(GPUCSRRecordsFree(all[k]));
  PetscCall(PetscMemzero(&count, sizeof(count)));
  PetscCall(PetscMemzero(&seconds, sizeof(seconds)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
