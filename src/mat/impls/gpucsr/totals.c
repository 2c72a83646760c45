/*
  The report in short: totals, what to try, and a line for each kind of matrix. What report.c says of each matrix is -mat_gpucsr_report full.
*/
#include "report.h"

/* Matrices that are alike: as large, and multiplied alike */
typedef struct {
  char          what[512], advice[512]; /* what was predicted of the first, and how far that was off */
  double        foretold;               /* seconds of a product of the first by its kernel, 0: not known */
  PetscInt      n;
  MatGPUCSRInfo sum;
} Alike;

static Alike        *alike;
static PetscInt      nalike, aalike;
static MatGPUCSRInfo total;
static PetscInt      multiplied, onhost;
static char          whyhost[256]; /* of the first on the host */

static void Add(MatGPUCSRInfo *sum, const MatGPUCSRInfo *info)
{
#define SUM(field) sum->field += info->field
  SUM(builds);
  SUM(refreshes);
  SUM(transpose_builds);
  SUM(products);
  SUM(transpose_products);
  SUM(aij_products);
  SUM(aij_transpose_products);
  SUM(sparse_products);
  SUM(fallbacks);
  SUM(uploaded);
  SUM(downloaded);
  SUM(build_time);
  SUM(product_time);
  SUM(transpose_product_time);
  SUM(vector_upload_time);
  SUM(vector_convert_time);
  SUM(download_time);
  SUM(aij_time);
#undef SUM
}

/* A matrix that was multiplied, or has been left to the host */
PetscErrorCode MatGPUCSRTotalsAdd_Private(const Mat_SeqGPUCSR *g, const MatGPUCSRInfo *info)
{
  const PetscBool small = (PetscBool)(g->small && !g->plan[GPUCSR_FORWARD].built && !g->plan[GPUCSR_TRANSPOSE].built);
  char            what[512], why[512];
  PetscBool       same = PETSC_FALSE;
  PetscInt        k;

  PetscFunctionBegin;
  if (small) PetscCall(MatGPUCSRHostIsFasterWhy_Private(g, why, sizeof(why)));
  else PetscCall(PetscStrncpy(why, g->whynot, sizeof(why)));
  if (small || !g->dev) PetscCall(PetscSNPrintf(what, sizeof(what), "%s: MATSEQAIJ on the host, because %s", g->name, why));
  else if (!g->plan[GPUCSR_FORWARD].built && !g->plan[GPUCSR_TRANSPOSE].built) PetscCall(PetscSNPrintf(what, sizeof(what), "%s: with sparse matrices alone on %s", g->name, info->backend));
  else
    PetscCall(PetscSNPrintf(what, sizeof(what), "%s: %s %s%s%s%s%s on %s", g->name, info->format, info->kernel, g->plan[GPUCSR_TRANSPOSE].built ? ", transpose " : "", g->plan[GPUCSR_TRANSPOSE].built ? info->transpose_format : "",
                            g->plan[GPUCSR_TRANSPOSE].built ? " " : "", g->plan[GPUCSR_TRANSPOSE].built ? info->transpose_kernel : "", info->backend));
  multiplied++;
  if (small || !g->dev) {
    if (!onhost) PetscCall(PetscStrncpy(whyhost, why, sizeof(whyhost)));
    onhost++;
  }
  Add(&total, info);
  for (k = 0; k < nalike && !same; k++) PetscCall(PetscStrcmp(alike[k].what, what, &same));
  if (same) k--;
  else {
    if (nalike == aalike) {
      aalike = 2 * aalike + 16;
      PetscCall(PetscRealloc(sizeof(*alike) * (size_t)aalike, &alike));
    }
    k = nalike++;
    PetscCall(PetscMemzero(&alike[k], sizeof(alike[k])));
    PetscCall(PetscStrncpy(alike[k].what, what, sizeof(alike[k].what)));
    PetscCall(MatGPUCSRAdviceError_Private(g, info, alike[k].advice, sizeof(alike[k].advice)));
    if (g->dev && g->dev->ops->kernels && g->plan[GPUCSR_FORWARD].ncandidates && !g->plan[GPUCSR_TRANSPOSE].built) alike[k].foretold = g->plan[GPUCSR_FORWARD].candidate[0].predicted;
  }
  alike[k].n++;
  Add(&alike[k].sum, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Append(char **text, const char line[])
{
  size_t have = 0, add;

  PetscFunctionBegin;
  if (*text) PetscCall(PetscStrlen(*text, &have));
  PetscCall(PetscStrlen(line, &add));
  PetscCall(PetscRealloc(have + add + 1, text));
  PetscCall(PetscMemcpy(*text + have, line, add + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the totals say about the program's options */
static PetscErrorCode Advice(char **text)
{
  const double copies = total.vector_upload_time + total.download_time, products = total.product_time + total.transpose_product_time;

  PetscFunctionBegin;
  if (total.fallbacks) PetscCall(Append(text, "  try: see why matrices left the device (the warnings, or -info); more ranks or -mat_gpucsr_precision single need less memory a device\n"));
  if (copies > products && copies > 0) PetscCall(Append(text, "  try: -vec_type gpu (or -dm_vec_type gpu), or -ksp_type gpucg: vectors cross the bus for longer than products take\n"));
  if (total.builds + total.transpose_builds > 0 && total.build_time > products && total.build_time > 1e-3) PetscCall(Append(text, "  try: -mat_gpucsr_expected_mults N: preparing matrices took longer than their products\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Was the profile far off? Of a few microseconds what measuring adds to each product is as much */
static PetscBool Missed(double foretold, double measured)
{
  return (PetscBool)(foretold > 0 && PetscMax(foretold, measured) > 10e-6 && PetscAbsReal(foretold - measured) > 0.3 * measured);
}

/* The report of this rank, to be freed; made: matrices of the type that there ever were */
PetscErrorCode MatGPUCSRTotalsText_Private(PetscInt made, char **text)
{
  char line[1024];

  PetscFunctionBegin;
  *text = NULL;
  if (!multiplied) {
    if (!made) PetscCall(Append(text, "  no products: there was no matrix of type gpucsr; -mat_type gpucsr makes one where the program calls MatSetFromOptions(), -dm_mat_type gpucsr those of a DM, -mat_seqaij_type seqaijgpucsr every MATAIJ\n"));
    else {
      PetscCall(PetscSNPrintf(line, sizeof(line), "  no products: of %" PetscInt_FMT " matrices of type gpucsr none was multiplied\n", made));
      PetscCall(Append(text, line));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscSNPrintf(line, sizeof(line), "  matrices %" PetscInt_FMT " of %" PetscInt_FMT ": products %" PetscInt_FMT " in %.3f ms, transposed %" PetscInt_FMT " in %.3f ms; on the host %" PetscInt_FMT " in %.3f ms\n", multiplied, made, total.products,
                          1e3 * total.product_time, total.transpose_products, 1e3 * total.transpose_product_time, total.aij_products + total.aij_transpose_products, 1e3 * total.aij_time));
  PetscCall(Append(text, line));
  PetscCall(PetscSNPrintf(line, sizeof(line), "  prepared in %.3f ms: %" PetscInt_FMT " builds, %" PetscInt_FMT " refreshes; sparse products %" PetscInt_FMT "; left the device %" PetscInt_FMT "\n", 1e3 * total.build_time, total.builds + total.transpose_builds,
                          total.refreshes, total.sparse_products, total.fallbacks));
  PetscCall(Append(text, line));
  PetscCall(PetscSNPrintf(line, sizeof(line), "  copies: sent %.3g MB, brought back %.3g MB; of vectors up %.3f ms, down %.3f ms\n", 1e-6 * total.uploaded, 1e-6 * total.downloaded, 1e3 * total.vector_upload_time, 1e3 * total.download_time));
  PetscCall(Append(text, line));
  if (onhost) {
    PetscCall(PetscSNPrintf(line, sizeof(line), "  on the host: %" PetscInt_FMT " matrices, the first because %s\n", onhost, whyhost));
    PetscCall(Append(text, line));
  }
  PetscCall(Advice(text));
  for (PetscInt k = 0; k < nalike; k++) {
    const MatGPUCSRInfo *s        = &alike[k].sum;
    const PetscInt       products = s->products + s->transpose_products;
    const double         time     = s->product_time + s->transpose_product_time;

    PetscCall(PetscSNPrintf(line, sizeof(line), "  %" PetscInt_FMT " x %s; products %" PetscInt_FMT "%s", alike[k].n, alike[k].what, products ? products : s->aij_products + s->aij_transpose_products + s->sparse_products, products && time > 0 ? "" : "\n"));
    PetscCall(Append(text, line));
    if (products && time > 0) {
      PetscCall(PetscSNPrintf(line, sizeof(line), ", %.2f us each", 1e6 * time / (double)products));
      PetscCall(Append(text, line));
      if (Missed(alike[k].foretold, time / (double)products)) {
        PetscCall(PetscSNPrintf(line, sizeof(line), ", predicted %.2f us, which is off by more than 30 %%", 1e6 * alike[k].foretold));
        PetscCall(Append(text, line));
      }
      PetscCall(Append(text, "\n"));
    }
    PetscCall(Append(text, alike[k].advice));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRTotalsForget_Private(void)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(alike));
  nalike = aalike = multiplied = onhost = 0;
  PetscCall(PetscMemzero(&total, sizeof(total)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
