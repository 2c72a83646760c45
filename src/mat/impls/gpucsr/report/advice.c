/*
  Advice, before the first product: the CPU or the GPU for a matrix' products, and for iterations of conjugate gradients. foretell.c has the model;
  this file applies it to the matrix and the machine, and prints the result.
*/
#include "report.h"
#include <string.h>
#include <unistd.h>

const char *const MatGPUCSRPlaces[] = {"cpu", "host_vectors", "device_vectors", "solver", "MatGPUCSRPlace", "MAT_GPUCSR_PLACE_", NULL};

/* MatMult() of MATSEQAIJ, the least of several times: other programs may use the core */
#define TIMED 7   /* repetitions, */
#define LIMIT 0.1 /* and seconds from which on one is enough */

static int Cores(void)
{
  return (int)PetscMax(1, sysconf(_SC_NPROCESSORS_ONLN));
}

/* One line: the recommendation, and the options for it */
static PetscErrorCode Recommend(MatGPUCSRAdvice *a, PetscBool forcg)
{
  const char  *ksp = forcg ? "CG -ksp_type gpucg -pc_type jacobi, or gpuamg from half a million rows and 250 iterations on, 100 for each of many systems" : "BiCGStab or GMRES -ksp_type gpubcgs or gpugmres -pc_type jacobi, or ilu where jacobi fails";
  const double cpu = a->product[MAT_GPUCSR_PLACE_CPU], solver = a->iteration[MAT_GPUCSR_PLACE_SOLVER], cg = a->iteration[MAT_GPUCSR_PLACE_CPU];
  int          gpus      = 0;
  char         more[128] = "";

  PetscFunctionBegin;
  a->best = MAT_GPUCSR_PLACE_CPU;
  for (int k = MAT_GPUCSR_PLACE_HOST_VECTORS; k <= MAT_GPUCSR_PLACE_DEVICE_VECTORS; k++)
    if (a->product[k] < a->product[a->best]) a->best = (MatGPUCSRPlace)k;
  for (int k = 1; k < 4; k++)
    if (a->products[k] > 0 && a->products[k] * 1.3 < a->products[gpus]) gpus = k;
  if (gpus) PetscCall(PetscSNPrintf(more, sizeof(more), "; on %d GPUs (mpiexec -n %d) %.1f times that", 1 << gpus, 1 << gpus, a->products[0] / a->products[gpus]));
  if (a->best == MAT_GPUCSR_PLACE_CPU && solver > 0 && solver < cg)
    PetscCall(PetscSNPrintf(a->take, sizeof(a->take), "the CPU for single products (-mat_type aij); iterations are %.1f times as fast on the GPU from b to x: -mat_type gpucsr, and to solve with %s", cg / solver, ksp));
  else if (a->best == MAT_GPUCSR_PLACE_CPU) PetscCall(PetscSNPrintf(a->take, sizeof(a->take), "the CPU: -mat_type aij"));
  else
    PetscCall(PetscSNPrintf(a->take, sizeof(a->take), "the GPU with vectors there, %.1f times one core, at least %.1f times all %d: -mat_type gpucsr -vec_type gpu%s%s%s", cpu / a->product[a->best], cpu / a->product[a->best] / Cores(), Cores(), solver > 0 ? ", and to solve with " : "", solver > 0 ? ksp : "", more));
  if (!forcg) { /* iterations of CG mean nothing for this matrix */
    PetscCall(PetscArrayzero(a->iteration, 4));
    PetscCall(PetscArrayzero(a->iterations, 4));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A: a MATSEQAIJGPUCSR */
static PetscErrorCode Advice(Mat A, MatGPUCSRAdvice *a)
{
  const struct _MatOps  *parent = &((Mat_GPUCSR *)A->spptr)->parent;
  const MatGPUCSRConfig *c      = &((Mat_GPUCSR *)A->spptr)->config;
  PetscReal              size, least;
  const GPUCSRPrecision  precision = c->precision == MAT_GPUCSR_SINGLE ? GPUCSR_PRECISION_SINGLE : c->precision == MAT_GPUCSR_MIXED ? GPUCSR_PRECISION_MIXED : GPUCSR_PRECISION_DOUBLE;
  const PetscInt        *i;
  GPUCSRFeatures         f   = {0};
  GPUCSRDevice           dev = NULL;
  GPUCSRSource           s;
  double                 host = 0;
  PetscBool              forcg;
  char                   why[256];
  double                 begin, scale[GPUCSR_NPARTS], processors;
  int                    batch = 1;
  double                 t0, t1;
  Vec                    x0, z;
  const char            *machine;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  PetscCheck(A->rmap->n <= INT32_MAX - 1024 && A->cmap->n <= INT32_MAX - 1024 && i[A->rmap->n] <= INT32_MAX - 1024, PETSC_COMM_SELF, PETSC_ERR_SUP, "No model covers a block of %" PetscInt_FMT " rows, %" PetscInt_FMT " columns and %" PetscInt_FMT " nonzeros, which does not fit 32-bit indices",
             A->rmap->n, A->cmap->n, i[A->rmap->n]);
  PetscCall(MatGPUCSRSource_Private(A, &s));
  PetscCheck(s.m > 0 && s.n > 0 && s.nnz > 0, PETSC_COMM_SELF, PETSC_ERR_SUP, "No model covers a matrix of %d rows, %d columns and %.0f nonzeros: it has no entries", s.m, s.n, (double)s.nnz);
  PetscCall(GPUCSRDeviceOpen("cuda", &dev, why, sizeof(why)));
  PetscCall(GPUCSRSourceInspect(&s, precision, (int)GPUCSRSettingsGlobal.threads, &f));
  /* MatMult() of MATSEQAIJ, the least of several times: other programs may use the core */
  begin = GPUCSRNow();
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, A->cmap->n, &x0));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, A->rmap->n, &z));
  PetscCall(VecSet(x0, 1));
  host = PETSC_MAX_REAL;
  for (int k = -2; k < TIMED && (k < 1 || GPUCSRNow() - begin < LIMIT); k++) { /* the first finds the vectors cold; later ones find branches predicted */
    t0 = GPUCSRNow();
    for (int q = 0; q < batch; q++) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.mult)(A, x0, z));
    t1 = GPUCSRNow();
    if (k == -1) batch = (int)PetscMin(100, 1 + 1e-4 / PetscMax(1e-7, t1 - t0));
    if (k >= 0) host = PetscMin(host, (t1 - t0) / batch);
  }
  PetscCall(VecDestroy(&x0));
  PetscCall(VecDestroy(&z));
  PetscCall(MatGPUCSRForetell_Private(dev, &f, precision, &c->request, host, a));
  forcg = (PetscBool)(A->rmap->n == A->cmap->n); /* can CG solve with A, symmetric and with a positive diagonal? */
  if (forcg) {
    PetscCall((*parent->norm)(A, NORM_INFINITY, &size));
    PetscCall(MatIsTranspose(A, A, 1e-10 * size, &forcg));
    PetscCall(VecCreateSeq(PETSC_COMM_SELF, A->rmap->n, &x0));
    PetscCall((*parent->getdiagonal)(A, x0));
    PetscCall(VecMin(x0, NULL, &least));
    PetscCall(VecDestroy(&x0));
    if (!(least > 0)) forcg = PETSC_FALSE;
  }
  PetscCall(Recommend(a, forcg));
  PetscCall(GPUCSRProfileMachine(&machine)); /* the limits of the numbers */
  PetscCall(GPUCSRProfileScale(dev, scale, &processors));
  a->device = (PetscBool)(dev && dev->ops->kernels);
  if (!a->device) PetscCall(PetscSNPrintf(a->note, sizeof(a->note), "there is no GPU here (%s): its times are those of the profile's, %s", dev ? dev->props.name : why, machine));
  else if (strcmp(machine, dev->props.name))
    PetscCall(PetscSNPrintf(a->note, sizeof(a->note), "the profile is of another GPU, %s%s; this one is %s: `make tune` and -mat_gpucsr_profile give its own times", machine, scale[GPUCSR_MEMORY] == 1 ? "" : ", scaled", dev->props.name));
  else if (dev->props.memory && a->bytes[MAT_GPUCSR_PLACE_DEVICE_VECTORS] > (double)dev->props.memory) PetscCall(PetscSNPrintf(a->note, sizeof(a->note), "the matrix does not fit the GPU's %.0f GB: use more GPUs", 1e-9 * (double)dev->props.memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGPUCSRGetAdvice - Predict the times of a matrix' products, and of iterations of conjugate gradients, on the CPU and on the GPU

  Not Collective

  Input Parameter:
. A - the matrix, assembled, of type `MATAIJ` or `MATGPUCSR`

  Output Parameter:
. advice - the prediction

  Options Database Key:
. -mat_gpucsr_advise - print the advice before the first product of each matrix

  Level: intermediate

  Notes:
  For a parallel matrix the advice is about this rank's diagonal block.

  A few products are timed on the host; the GPU's times come from the profile. Without a GPU, `note` names the profile's GPU.

.seealso: `MATGPUCSR`, `MatGPUCSRAdvice`, `MatGPUCSRAdvise()`
@*/
PetscErrorCode MatGPUCSRGetAdvice(Mat A, MatGPUCSRAdvice *advice)
{
  PetscBool      mpi, seq;
  PetscErrorCode ierr;
  Mat            B = NULL;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointerCompat(advice, 2);
  PetscCall(PetscMemzero(advice, sizeof(*advice)));
  PetscCheck(A->assembled, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The matrix must be assembled first: call MatAssemblyBegin() and MatAssemblyEnd()");
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &A, NULL, NULL));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATSEQAIJ, &seq));
  PetscCheck(seq, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "No model covers a matrix of type %s: MatConvert() it to aij or gpucsr first", ((PetscObject)A)->type_name);
  PetscCheck(GPUCSR_SCALAR_IS_DOUBLE, PETSC_COMM_SELF, PETSC_ERR_SUP, "No model covers the numbers of this PETSc: products run on a GPU in real double precision alone");
  if (!GPUCSRIsType(A, MATSEQAIJGPUCSR)) PetscCall(MatConvert(A, MATSEQAIJGPUCSR, MAT_INITIAL_MATRIX, &B));
  ierr = Advice(B ? B : A, advice);
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(ierr);
}

/* ---- in words ---- */

static void Microseconds(double seconds, char text[], size_t len)
{
  if (seconds > 0) (void)snprintf(text, len, "%.*f", seconds < 1e-4 ? 2 : 0, 1e6 * seconds);
  else (void)snprintf(text, len, "-");
}

static PetscErrorCode Row(const char name[], double product, double iteration, double bytes, char text[], size_t len)
{
  char p[32], i[32];

  PetscFunctionBegin;
  Microseconds(product, p, sizeof(p));
  Microseconds(iteration, i, sizeof(i));
  PetscCall(MatGPUCSRAppend_Private(text, len, "    %-28s %12s %15s %12.2f\n", name, p, i, 1e-6 * bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Text(Mat A, const MatGPUCSRAdvice *a, char text[], size_t len)
{
  static const char *const names[] = {"CPU, one core, MATSEQAIJ", "GPU, vectors on the host", "GPU, vectors there", "GPU, gpucg from b to x"};
  char                     line[64];
  PetscInt                 m, n;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(PetscSNPrintf(text, len, "MATGPUCSR advice for %" PetscInt_FMT " x %" PetscInt_FMT ", by format %s and kernel %s:\n    %-28s %12s %15s %12s\n", m, n, a->format, a->kernel, "", "product, us", "CG iteration, us", "MB there"));
  for (int k = 0; k < 4; k++) {
    if (a->product[k] > 0 || a->iteration[k] > 0) PetscCall(Row(names[k], a->product[k], a->iteration[k], a->bytes[k], text, len));
    if (k || Cores() == 1) continue;
    PetscCall(PetscSNPrintf(line, sizeof(line), "CPU, %d cores, at best", Cores()));
    PetscCall(Row(line, a->product[0] / Cores(), a->iteration[0] / Cores(), a->bytes[0], text, len));
  }
  for (int k = 1; k < 4; k++) {
    if (a->products[k] <= 0) continue;
    PetscCall(PetscSNPrintf(line, sizeof(line), "%d GPUs, each", 1 << k));
    PetscCall(Row(line, a->products[k], a->iterations[k], a->each[k], text, len));
  }
  if (a->note[0]) PetscCall(MatGPUCSRAppend_Private(text, len, "    note: %s\n", a->note));
  PetscCall(MatGPUCSRAppend_Private(text, len, "    take: %s\n", a->take));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGPUCSRAdvise - Print predicted times of products and of iterations of conjugate gradients, and the machine to take

  Not Collective

  Input Parameters:
+ A      - the matrix, assembled, of type `MATAIJ` or `MATGPUCSR`
- viewer - an ASCII viewer of this process

  Options Database Key:
. -mat_gpucsr_advise - print before the first product of each matrix

  Level: intermediate

.seealso: `MATGPUCSR`, `MatGPUCSRGetAdvice()`
@*/
PetscErrorCode MatGPUCSRAdvise(Mat A, PetscViewer viewer)
{
  MatGPUCSRAdvice advice;
  char            text[2048];

  PetscFunctionBegin;
  PetscCall(MatGPUCSRGetAdvice(A, &advice));
  PetscCall(Text(A, &advice, text, sizeof(text)));
  PetscCall(PetscViewerASCIIPrintf(viewer, "%s", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  -mat_gpucsr_advise: before the first product of A with this pattern. Equal advice of several ranks of a host is printed once. If no advice is
  possible, the reason is printed, without an error.
*/
PetscErrorCode MatGPUCSRAdviseFirst_Private(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  char           text[2048], first[256];
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  if (!GPUCSRSettingsGlobal.advise || g->advised) PetscFunctionReturn(PETSC_SUCCESS);
  g->advised = PETSC_TRUE;
  GPUCSRTry(&attempt, MatGPUCSRGetAdvice(A, &g->advice));
  if (attempt.error) PetscCall(PetscSNPrintf(text, sizeof(text), "MATGPUCSR advice: none for %" PetscInt_FMT " x %" PetscInt_FMT ": %s\n", A->rmap->n, A->cmap->n, attempt.message));
  else PetscCall(Text(A, &g->advice, text, sizeof(text)));
  if (attempt.error) g->advice.product[0] = 0;
  /* compares the first line alone: the times below it differ, and may lead ranks of a busy host to different advice */
  PetscCall(PetscStrncpy(first, text, PetscMin(strcspn(text, "\n") + 1, sizeof(first))));
  if (GPUCSROnceMine(first)) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDOUT, "%s", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For the report: the error of the prediction; empty if there is none to report */
PetscErrorCode MatGPUCSRAdviceError_Private(const Mat_SeqGPUCSR *g, const MatGPUCSRInfo *info, char text[], size_t len)
{
  const MatGPUCSRAdvice *a = &g->advice;

  PetscFunctionBegin;
  text[0] = 0;
  if (!g->advised || a->product[0] <= 0) PetscFunctionReturn(PETSC_SUCCESS);
  if (info->products > info->solver_products && info->product_time > 0 && g->dev && g->dev->ops->kernels) {
    const double measured = info->product_time / (double)(info->products - info->solver_products);

    /* the measured time of a short product is mostly its launch and two events */
    if (PetscMax(a->kernel_product, measured) <= GPUCSRMachineShared.missed_least)
      PetscCall(MatGPUCSRAppend_Private(text, len, "  advice: the GPU's products were predicted to take %.2f us and took %.2f, with a launch and two events of about 5\n", 1e6 * a->kernel_product, 1e6 * measured));
    else PetscCall(MatGPUCSRAppend_Private(text, len, "  advice: the GPU's products were predicted to take %.2f us and took %.2f (%+.0f %%)\n", 1e6 * a->kernel_product, 1e6 * measured, 100 * (a->kernel_product / measured - 1)));
  }
  if (info->aij_products && info->aij_time > 0) {
    const double measured = info->aij_time / (double)(info->aij_products + info->aij_transpose_products);

    PetscCall(MatGPUCSRAppend_Private(text, len, "  advice: the CPU's products were predicted to take %.2f us and took %.2f (%+.0f %%)\n", 1e6 * a->product[0], 1e6 * measured, 100 * (a->product[0] / measured - 1)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
