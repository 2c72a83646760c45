/*
  KSPGPUCG and KSPGPUBCGS: PETSc's conjugate gradients and BiCGStab, iterating where the matrix is. A solve is one launch where the matrix'
  format and the preconditioner allow it, and a loop of steps (drive.c) elsewhere; the rules of both are in rules.h.

  What is made once and kept: vectors and the rest of device memory for a number of rows, the shape of the launch for a pattern, what the
  preconditioner comes to (its diagonal, or its diagonal blocks, found by applying it to unit vectors) for the state of its matrix.
*/
#include "gpukspimpl.h"
#include "../../../mat/impls/gpucsr/format/absent.h"
#include <limits.h>
#include <string.h>

const char *const KSPGPUPaths[]      = {"auto", "launch", "graph", "driven", "KSPGPUPath", "KSP_GPU_PATH_", NULL};
const char *const KSPGPUVariants[]   = {"standard", "single_reduction", "KSPGPUVariant", "KSP_GPU_", NULL};
const char *const KSPGPUPrecisions[] = {"double", "mixed", "KSPGPUPrecision", "KSP_GPU_", NULL};

/* Entries of a row that a launch takes without being asked to: at most 32 threads share it, and all others wait for them */
#define LONGEST_ROW 4096

/* Entries of the residual history that the device keeps at most */
#define HISTORY 1000000

/* Of the norm of the right-hand side, or of the first residual: what rounding costs any solve */
#define USUAL_GAP 1e-12

/* Of mixed: the residual is replaced when it has shrunk by this factor */
#define UPDATE 1e-2

#define VECTOR_BYTES(k)  ((((size_t)(k)->n * sizeof(double) + 255) / 256) * 256)
#define ROUNDED_BYTES(n) (((n) * sizeof(float) + 255) / 256 * 256)

/* ---- memory ---- */

/* A piece of device memory that grows and stays */
static PetscErrorCode Grow(KSP_GPU *k, size_t bytes, size_t *have, const char what[], void **p)
{
  PetscFunctionBegin;
  if (*p && *have >= bytes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRFree(k->dev, *have, p));
  *have = 0;
  PetscCall(GPUCSRMalloc(k->dev, bytes, what, p));
  *have = bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define PARTIAL_BYTES ((GPUKSP_SUMS * GPUKSP_PARTIALS + 1) * sizeof(double))
#define BOUNDS_BYTES  (sizeof(int) * (3 * GPUKSP_BLOCKS + 1))
#define TABLE_BYTES   (sizeof(double) * (GPUKSP_STENCILS + 1))
#define SLOTS_BYTES   ((size_t)GPUKSP_SLOT_BYTES * GPUKSP_BLOCKS)

static PetscErrorCode Release(KSP_GPU *k)
{
  PetscFunctionBegin;
  if (k->dev) {
    const GPUCSRBackendOps *ops = k->dev->ops;

    if (!k->dev->failed[0]) PetscCall(ops->activate(k->dev->id));
#if defined(GPUCSR_HAVE_CUDA)
    if (!k->dev->failed[0]) PetscCall(GPUKSPGraphDestroy(&k->graph));
#endif
    PetscCall(GPUCSRPlanDestroy(&k->own));
    PetscCall(GPUCSRFree(k->dev, k->bytes, &k->memory));
    PetscCall(GPUCSRFree(k->dev, k->fbytes, (void **)&k->fmemory));
    PetscCall(GPUCSRFree(k->dev, k->pcbytes, (void **)&k->pc));
    PetscCall(GPUCSRFree(k->dev, PARTIAL_BYTES, (void **)&k->partial));
    PetscCall(GPUCSRFree(k->dev, BOUNDS_BYTES, (void **)&k->bounds));
    PetscCall(GPUCSRFree(k->dev, SLOTS_BYTES, &k->slots));
    PetscCall(GPUCSRFree(k->dev, TABLE_BYTES, (void **)&k->table));
    PetscCall(GPUCSRFree(k->dev, sizeof(GPUKSPState), (void **)&k->devstate));
    PetscCall(GPUCSRFree(k->dev, sizeof(double) * (size_t)k->histmax, (void **)&k->hist));
    if (k->state && !k->dev->failed[0]) {
      PetscCall(ops->hostfree(k->dev->id, k->state));
      for (int q = 0; q < 2; q++)
        if (k->events[q]) PetscCall(ops->eventdestroy(k->dev->id, k->events[q]));
    }
  }
  k->bytes = k->fbytes = k->pcbytes = 0;
  k->launch.epoch                   = 0;
  k->histmax                        = 0;
  k->state = k->seen = NULL;
  k->sums            = NULL;
  k->events[0] = k->events[1] = NULL;
  k->graph                    = NULL;
  k->dev                      = NULL;
  k->matid = k->pcseen.pc = k->diagonalseen.pc = 0;
  k->shapedata                                 = NULL;
  for (int q = 0; q < GPUKSP_VECTORS; q++) PetscCall(VecDestroy(&k->work[q]));
  PetscCall(VecDestroy(&k->diagonal));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What every solve on this device needs, whatever its size */
static PetscErrorCode Open(KSP_GPU *k, GPUCSRDevice dev)
{
  const size_t each = (sizeof(GPUKSPState) + 255) / 256 * 256;
  char        *p;

  PetscFunctionBegin;
  if (k->dev == dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Release(k));
  k->dev = dev;
  PetscCall(dev->ops->hostmalloc(dev->id, 2 * each + sizeof(double) * GPUKSP_SUMS, (void **)&p));
  k->state = (GPUKSPState *)p;
  k->seen  = (GPUKSPState *)(p + each);
  k->sums  = (double *)(p + 2 * each);
  PetscCall(GPUCSRMalloc(dev, PARTIAL_BYTES, "sums of a solver", (void **)&k->partial));
  PetscCall(GPUCSRMalloc(dev, sizeof(GPUKSPState), "the state of a solver", (void **)&k->devstate));
  for (int q = 0; q < 2; q++) PetscCall(dev->ops->eventcreate(dev->id, PETSC_FALSE, &k->events[q]));
#if defined(GPUCSR_HAVE_CUDA)
  if (dev->ops->kernels) {
    PetscCall(GPUCSRMalloc(dev, BOUNDS_BYTES, "ranges of rows of a solver", (void **)&k->bounds));
    PetscCall(GPUCSRMalloc(dev, SLOTS_BYTES, "slots of a solver", &k->slots));
    PetscCall(GPUCSRMalloc(dev, TABLE_BYTES, "the diagonal of a solver's stencils", (void **)&k->table));
    PetscCall(GPUKSPStepReset(k->partial, dev->stream));
    PetscCall(GPUKSPStepBlocks(dev, &k->stepblocks));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The method's vectors, each where the steps expect it */
static PetscErrorCode Vectors(KSP ksp, KSP_GPU *k)
{
  const PetscBool cg = (PetscBool)(k->method == GPUKSP_CG), cg1 = (PetscBool)(k->method == GPUKSP_CG_SINGLE_REDUCTION), bcgs = (PetscBool)(k->method == GPUKSP_BCGS);
  const PetscBool mixed = k->mixed, launch = (PetscBool)(k->dev->ops->kernels && !mixed), block = (PetscBool)(k->pckind == GPUKSP_PC_BLOCK), polynomial = (PetscBool)(k->degree > 0);
  const PetscBool apart = (PetscBool)(block || polynomial), hat = (PetscBool)(bcgs && ksp->pc_side == PC_RIGHT && (k->pckind != GPUKSP_PC_NONE || polynomial));
  const PetscBool need[GPUKSP_VECTORS] = {PETSC_TRUE, PETSC_TRUE, (PetscBool)!mixed, (PetscBool)!mixed, PETSC_TRUE, (PetscBool)(cg1 || (cg && (apart || launch))), (PetscBool)(cg1 || bcgs), (PetscBool)(bcgs || apart), bcgs, bcgs, hat, hat, (PetscBool)(launch && !cg1), (PetscBool)(launch && bcgs), polynomial, polynomial, polynomial};
  const size_t    each                 = VECTOR_BYTES(k);
  GPUKSPVectors  *v                    = &k->launch.v;
  const int       bs                   = v->bs;
  int             count                = 0;

  PetscFunctionBegin;
  for (int q = 0; q < GPUKSP_VECTORS; q++) count += need[q];
  PetscCall(Grow(k, each * (size_t)count, &k->bytes, "vectors of a solver", &k->memory));
  count = 0;
  PetscCall(PetscMemzero(v, sizeof(*v)));
  for (int q = 0; q < GPUKSP_VECTORS; q++)
    if (need[q]) (&v->x)[q] = (double *)((char *)k->memory + each * (size_t)count++);
  if (!hat) {
    v->ph = v->p;
    v->sh = v->s;
  }
  v->bs         = bs;
  v->pc         = k->pckind == GPUKSP_PC_DIAGONAL && !polynomial ? k->pc : NULL;
  v->diagonal   = k->pckind == GPUKSP_PC_DIAGONAL && polynomial ? k->pc : NULL;
  v->block      = block ? k->pc : NULL;
  v->explicitpc = apart;
  v->degree     = (int)k->degree;
  v->emin       = k->lambda[0];
  v->emax       = k->lambda[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the preconditioner ---- */

static PetscErrorCode PCKind(KSP ksp, KSP_GPU *k, GPUKSPPCKind *kind, int *bs, int *key)
{
  PetscBool none, jacobi, pbjacobi;
  PetscInt  b = 1;

  PetscFunctionBegin;
  (void)k;
  *kind = GPUKSP_PC_ANY;
  *bs = *key = 0;
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCNONE, &none));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCPBJACOBI, &pbjacobi));
  if (none) *kind = GPUKSP_PC_NONE;
  else if (jacobi) {
    PCJacobiType type;
    PetscBool    positive;

    PetscCall(PCJacobiGetType(ksp->pc, &type));
    PetscCall(PCJacobiGetUseAbs(ksp->pc, &positive));
    *kind = GPUKSP_PC_DIAGONAL;
    *key  = 2 * (int)type + (int)positive;
  } else if (pbjacobi) {
    Mat      P;
    PetscInt n;

    PetscCall(PCGetOperators(ksp->pc, NULL, &P));
    PetscCall(MatGetBlockSize(P, &b));
    PetscCall(MatGetLocalSize(P, &n, NULL));
    if (b == 1) *kind = GPUKSP_PC_DIAGONAL;
    else if (b <= 8 && n % b == 0) *kind = GPUKSP_PC_BLOCK;
    *bs = *key = (int)b;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is it still as it was then? Where not, notes how it is now */
static PetscErrorCode PCSeen(KSP ksp, GPUKSPPCKind kind, int key, GPUKSPPCSeen *seen, PetscBool *same)
{
  GPUKSPPCSeen now = {((PetscObject)ksp->pc)->id, 0, 0, kind, key, PETSC_FALSE};
  Mat          P;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, NULL, &P));
  now.P = ((PetscObject)P)->id;
  PetscCall(PetscObjectStateGet((PetscObject)P, &now.state));
  PetscCall(PCGetReusePreconditioner(ksp->pc, &now.reused));
  *same = (PetscBool)(seen->pc == now.pc && seen->P == now.P && seen->state == now.state && seen->kind == now.kind && seen->key == now.key && seen->reused == now.reused);
  *seen = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* It as numbers: applied to ones it shows its diagonal, to the unit vectors of all blocks at once the columns of its blocks */
static PetscErrorCode PCNumbers(KSP ksp, KSP_GPU *k, GPUKSPPCKind kind, int bs, int key)
{
  Mat                P;
  Vec                unit, column;
  PetscBool          same;
  const int          columns = kind == GPUKSP_PC_BLOCK ? bs : 1;
  double            *rows    = NULL;
  const PetscScalar *c;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, NULL, &P));
  k->launch.v.bs = bs;
  if (kind == GPUKSP_PC_NONE || kind == GPUKSP_PC_ANY) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCSeen(ksp, kind, key, &k->pcseen, &same));
  if (k->pc && same) PetscFunctionReturn(PETSC_SUCCESS);
  k->pcseen.pc = 0; /* until it is here */
  PetscCall(Grow(k, sizeof(double) * (size_t)columns * (size_t)k->n, &k->pcbytes, "the preconditioner of a solver", (void **)&k->pc));
  k->pcnew = PETSC_TRUE;
  PetscCall(MatCreateVecs(P, &unit, &column));
  if (columns > 1) PetscCall(PetscMalloc1((size_t)columns * (size_t)k->n, &rows));
  for (int j = 0; j < columns; j++) {
    if (columns > 1) {
      PetscScalar *u;

      PetscCall(VecGetArrayWrite(unit, &u));
      for (int i = 0; i < k->n; i++) u[i] = i % bs == j;
      PetscCall(VecRestoreArrayWrite(unit, &u));
    } else PetscCall(VecSet(unit, 1.0));
    PetscCall(PCApply(ksp->pc, unit, column));
    PetscCall(VecGetArrayRead(column, &c));
    if (columns > 1)
      for (int i = 0; i < k->n; i++) rows[(size_t)i * (size_t)bs + (size_t)j] = PetscRealPart(c[i]);
    else PetscCall(GPUCSRUpload(k->dev, k->pc, GPUCSR_DOUBLE, c, GPUCSR_DOUBLE, (size_t)k->n, PETSC_FALSE, k->dev->stream, NULL));
    PetscCall(VecRestoreArrayRead(column, &c));
  }
  if (columns > 1) PetscCall(GPUCSRUpload(k->dev, k->pc, GPUCSR_DOUBLE, rows, GPUCSR_DOUBLE, (size_t)columns * (size_t)k->n, PETSC_FALSE, k->dev->stream, NULL));
  PetscCall(PetscFree(rows));
  PetscCall(VecDestroy(&unit));
  PetscCall(VecDestroy(&column));
  k->pcseen.pc = ((PetscObject)ksp->pc)->id;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The eigenvalues that a polynomial is made for: those that were given, or as KSPCHEBYSHEV has them, from the largest of a few iterations of GMRES */
static PetscErrorCode Eigenvalues(KSP ksp, KSP_GPU *k, GPUKSPPCKind kind, int key)
{
  KSP              gmres;
  Mat              A, P;
  Vec              x, b;
  PetscRandom      random;
  PetscReal        re[10], im[10], most = 0;
  PetscInt         n;
  PetscBool        same;
  PetscObjectState state;

  PetscFunctionBegin;
  if (!k->degree) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->given[1] > 0) {
    PetscCall(PetscArraycpy(k->lambda, k->given, 2));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PCGetOperators(ksp->pc, &A, &P));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCall(PCSeen(ksp, kind, key, &k->lambdaseen, &same));
  if (same && k->lambda[1] > 0 && k->lambdaid == ((PetscObject)A)->id && k->lambdastate == state) PetscFunctionReturn(PETSC_SUCCESS);
  k->lambda[1] = 0; /* until they are found */
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(PetscRandomCreate(PetscObjectComm((PetscObject)ksp), &random));
  PetscCall(VecSetRandom(b, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)ksp), &gmres));
  PetscCall(KSPSetPC(gmres, ksp->pc));
  PetscCall(KSPSetOperators(gmres, A, P));
  PetscCall(KSPSetType(gmres, KSPGMRES));
  PetscCall(KSPSetTolerances(gmres, 1e-12, PETSC_DEFAULT, PETSC_DEFAULT, 10));
  PetscCall(KSPSetComputeEigenvalues(gmres, PETSC_TRUE));
  PetscCall(KSPSolve(gmres, b, x));
  PetscCall(KSPComputeEigenvalues(gmres, 10, re, im, &n));
  for (PetscInt q = 0; q < n; q++) most = PetscMax(most, re[q]);
  PetscCall(KSPDestroy(&gmres));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCheck(most > 0, PetscObjectComm((PetscObject)ksp), PETSC_ERR_USER, "No eigenvalue of the preconditioned operator seems to be positive: give the two that the polynomial is for by -ksp_%s_polynomial_eigenvalues", ((PetscObject)ksp)->type_name);
  k->lambda[0]   = 0.1 * most;
  k->lambda[1]   = 1.1 * most;
  k->lambdaid    = ((PetscObject)A)->id;
  k->lambdastate = state;
  PetscCall(PetscInfo(ksp, "Polynomial of degree %" PetscInt_FMT " for eigenvalues from %g to %g\n", k->degree, (double)k->lambda[0], (double)k->lambda[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- mixed precision ---- */

/* What a launch spares of each iteration against a graph of kernels, measured on an H200, in bytes that it could move meanwhile: in double, and against single precision, whose vectors take less */
#define SPARED       35e6
#define SPARED_MIXED 20e6

/* Bytes of a matrix that has been laid out, be it made or not; single: with its values in that precision */
static double Bytes(const GPUCSRStorage *A, PetscBool single)
{
  double bytes = 0;

  for (int q = 0; q < A->narrays; q++) bytes += (double)A->array[q].count * (double)GPUCSRTypeSize(single && A->array[q].values ? GPUCSR_FLOAT : A->array[q].type);
  return bytes;
}

/* Bytes of vectors that an iteration in a launch moves beyond what stays in shared memory, and one in single precision in a graph, a row; and how many more of the latter there are */
#define LAUNCH_ROW 64.0
#define SINGLE_ROW 56.0
#define SINGLE_ITS 1.08

/* Is this solve one for single precision, by a graph of kernels? Where mixed was asked for and it is not, whydouble tells */
static PetscErrorCode Mixed(KSP_GPU *k, const GPUCSRPlan *P, GPUKSPPCKind kind)
{
  const GPUCSRFormat *format = P->A.format;
  const double        more = Bytes(&P->A, PETSC_FALSE) + LAUNCH_ROW * k->n, less = SINGLE_ITS * (Bytes(&P->A, PETSC_TRUE) + SINGLE_ROW * k->n);
  PetscBool           can;

  PetscFunctionBegin;
  k->mixed        = PETSC_FALSE;
  k->whydouble[0] = 0;
  if (k->precision != KSP_GPU_MIXED) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*format->ops->applicable)(&P->features, format->variant, GPUCSR_PRECISION_SINGLE, &can, k->whydouble, sizeof(k->whydouble)));
  if (P->A.precision != GPUCSR_PRECISION_DOUBLE) PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "the matrix itself is not in double"));
  else if (k->method != GPUKSP_CG) PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "mixed is of standard conjugate gradients"));
  else if (k->degree) PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "mixed has no polynomial"));
  else if (k->live) PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "a monitor or test looks at every iteration"));
  else if (kind == GPUKSP_PC_ANY) PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "the preconditioner is PCApply()'s"));
  else if (k->path != KSP_GPU_PATH_GRAPH && format->ops == &GPUCSRFormat_stencil) PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "stencils have no values to halve, and of rows alike single precision takes many more iterations"));
  else if (!can) PetscCall(PetscStrlcat(k->whydouble, " in single", sizeof(k->whydouble)));
  else if (k->dev->ops->kernels && k->path == KSP_GPU_PATH_LAUNCH) PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "a launch was asked for"));
  else if (k->dev->ops->kernels && k->path == KSP_GPU_PATH_AUTO && more - less < SPARED_MIXED) PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "a launch in double takes less"));
  else k->mixed = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* lane: values of a lane of bcsr, else 0 */
static PetscErrorCode Round(KSP_GPU *k, size_t n, int lane, const double *from, float *to)
{
  PetscFunctionBegin;
#if defined(GPUCSR_HAVE_CUDA)
  if (k->dev->ops->kernels) {
    PetscCall(GPUKSPRound(n, lane, from, to, k->dev->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  for (size_t i = 0; i < n; i++) {
    const double *f = from + GPUKSPPlace(i, lane, sizeof(*from));
    float        *t = to + GPUKSPPlace(i, lane, sizeof(*to));

    if (GPUCSRIsAbsent(f, sizeof(*f))) memset(t, 255, sizeof(*t));
    else *t = (float)*f;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's values, the preconditioner's numbers and the vectors of the iteration, in single precision */
static PetscErrorCode Rounded(KSP_GPU *k, const GPUCSRStorage *S)
{
  const GPUKSPVectors *v = &k->launch.v;
  const size_t         n = (size_t)k->n, numbers = v->pc ? n : v->block ? n * (size_t)v->bs : 0;
  GPUKSPVectorsSingle *f        = &k->single;
  float              **vector[] = {&f->x, &f->r, &f->p, &f->w, &f->z};
  const int            nvectors = v->explicitpc ? 5 : 4, block = S->format->ops == &GPUCSRFormat_bcsr ? S->format->variant : 0;
  const int            lane  = block ? GPUCSR_BLOCK_ROWS(block) * GPUCSR_BLOCK_COLS(block) / BCSR_LANES(GPUCSR_BLOCK_ROWS(block)) : 0;
  size_t               bytes = ROUNDED_BYTES(numbers) + (size_t)nvectors * ROUNDED_BYTES(n);
  char                *p;

  PetscFunctionBegin;
  for (int q = 0; q < S->narrays; q++)
    if (S->array[q].values) bytes += ROUNDED_BYTES(S->array[q].count);
  PetscCall(Grow(k, bytes, &k->fbytes, "rounded values and vectors of a solver", (void **)&k->fmemory));
  p                    = k->fmemory;
  k->rounded           = *S;
  k->rounded.precision = GPUCSR_PRECISION_SINGLE;
  for (int q = 0; q < S->narrays; q++) {
    if (!S->array[q].values) continue;
    k->rounded.array[q].data = p;
    k->rounded.array[q].type = GPUCSR_FLOAT;
    PetscCall(Round(k, S->array[q].count, lane, (const double *)S->array[q].data, (float *)p));
    p += ROUNDED_BYTES(S->array[q].count);
  }
  PetscCall(PetscMemzero(f, sizeof(*f)));
  for (int q = 0; q < nvectors; q++, p += ROUNDED_BYTES(n)) *vector[q] = (float *)p;
  if (numbers) PetscCall(Round(k, numbers, 0, v->pc ? v->pc : v->block, (float *)p));
  if (v->pc) f->pc = (float *)p;
  if (v->block) f->block = (float *)p;
  f->bs           = v->bs;
  f->explicitpc   = v->explicitpc;
  f->truex        = v->x;
  f->trueresidual = v->w;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- PETSc's vectors of the driven path ---- */

static PetscErrorCode Borrowed(KSP ksp, KSP_GPU *k, GPUKSPPCKind kind, int key)
{
  const PetscBool cg = (PetscBool)(k->method == GPUKSP_CG), cg1 = (PetscBool)(k->method == GPUKSP_CG_SINGLE_REDUCTION), bcgs = (PetscBool)(k->method == GPUKSP_BCGS);
  const PetscBool polynomial = (PetscBool)(k->degree > 0), any = (PetscBool)(kind == GPUKSP_PC_ANY || polynomial), hat = (PetscBool)(bcgs && ksp->pc_side == PC_RIGHT && (kind != GPUKSP_PC_NONE || polynomial));
  const PetscBool need[GPUKSP_VECTORS] = {PETSC_FALSE, PETSC_FALSE, PETSC_TRUE, PETSC_TRUE, PETSC_TRUE, (PetscBool)(cg1 || (cg && any)), (PetscBool)(cg1 || bcgs), (PetscBool)(bcgs || any), bcgs, bcgs, hat, hat,
                                          PETSC_FALSE, PETSC_FALSE, polynomial, polynomial, polynomial};
  GPUKSPVectors  *v                    = &k->launch.v;
  PetscBool       same;
  Vec             unit;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(v, sizeof(*v)));
  for (int q = VEC_R; q < GPUKSP_VECTORS; q++) {
    if (need[q] && !k->work[q]) PetscCall(VecDuplicate(ksp->vec_sol, &k->work[q]));
    if (!need[q]) PetscCall(VecDestroy(&k->work[q]));
  }
  PetscCall(PetscObjectReference((PetscObject)ksp->vec_sol));
  PetscCall(PetscObjectReference((PetscObject)ksp->vec_rhs));
  PetscCall(VecDestroy(&k->work[VEC_X]));
  PetscCall(VecDestroy(&k->work[VEC_B]));
  k->work[VEC_X] = ksp->vec_sol;
  k->work[VEC_B] = ksp->vec_rhs;
  v->explicitpc  = any;
  v->degree      = (int)k->degree;
  v->emin        = k->lambda[0];
  v->emax        = k->lambda[1];
  if (kind != GPUKSP_PC_DIAGONAL) {
    PetscCall(VecDestroy(&k->diagonal));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PCSeen(ksp, kind, key, &k->diagonalseen, &same));
  if (!k->diagonal || !same) {
    PetscCall(VecDestroy(&k->diagonal));
    PetscCall(VecDuplicate(ksp->vec_sol, &k->diagonal));
    PetscCall(VecDuplicate(ksp->vec_sol, &unit));
    PetscCall(VecSet(unit, 1.0));
    PetscCall(PCApply(ksp->pc, unit, k->diagonal));
    PetscCall(VecDestroy(&unit));
  }
  *(polynomial ? &v->diagonal : &v->pc) = k->sums; /* something: a step puts the array here */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- between PETSc's vectors and the solver's ---- */

static PetscErrorCode Load(KSP_GPU *k, Vec from, double *to)
{
  GPUCSROperand o;
  GPUCSRStream  s;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRVecGet_Private((Mat_SeqGPUCSR *)k->A->spptr, from, PETSC_TRUE, PETSC_FALSE, &o));
  if (o.place == GPUCSR_DEVICE) {
    PetscCall(MatGPUCSRStream_Private(k->dev, &o, NULL, NULL, &s));
    PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s));
    PetscCall(k->dev->ops->copy(k->dev->id, to, o.p, sizeof(double) * (size_t)k->n, GPUCSR_ON_DEVICE, k->dev->stream));
  } else PetscCall(GPUCSRUpload(k->dev, to, GPUCSR_DOUBLE, o.p, GPUCSR_DOUBLE, (size_t)k->n, o.pinned, k->dev->stream, NULL));
  PetscCall(MatGPUCSRVecRestore_Private((Mat_SeqGPUCSR *)k->A->spptr, from, PETSC_TRUE, PETSC_FALSE, &o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x home; complete on return */
PetscErrorCode GPUKSPStoreX(KSP ksp, KSP_GPU *k)
{
  GPUCSROperand o;
  GPUCSRStream  s;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRVecGet_Private((Mat_SeqGPUCSR *)k->A->spptr, ksp->vec_sol, PETSC_FALSE, PETSC_TRUE, &o));
  if (o.place == GPUCSR_DEVICE) {
    PetscCall(MatGPUCSRStream_Private(k->dev, &o, NULL, NULL, &s));
    PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s));
    PetscCall(k->dev->ops->copy(k->dev->id, o.p, k->launch.v.x, sizeof(double) * (size_t)k->n, GPUCSR_ON_DEVICE, k->dev->stream));
  } else PetscCall(GPUCSRDownload(k->dev, o.p, GPUCSR_DOUBLE, k->launch.v.x, GPUCSR_DOUBLE, (size_t)k->n, o.pinned, k->dev->stream));
  PetscCall(k->dev->ops->streamsynchronize(k->dev->id, k->dev->stream));
  PetscCall(MatGPUCSRVecRestore_Private((Mat_SeqGPUCSR *)k->A->spptr, ksp->vec_sol, PETSC_FALSE, PETSC_TRUE, &o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- which way ---- */

/* PETSc's own method takes over, said once for each solver */
static PetscErrorCode FallBack(KSP ksp, const char why[])
{
  KSP_GPU        *k      = (KSP_GPU *)ksp->data;
  const PetscBool single = (PetscBool)(k->method == GPUKSP_CG_SINGLE_REDUCTION), cg = (PetscBool)(k->method != GPUKSP_BCGS);
  KSPNormType     norm;

  PetscFunctionBegin;
  PetscCall(PetscFPrintf(PetscObjectComm((PetscObject)ksp), PETSC_STDERR, "KSP type %s: %s solves instead, because %s\n", ((PetscObject)ksp)->type_name, cg ? "cg" : "bcgs", why));
  PetscCall(KSPSetType(ksp, cg ? KSPCG : KSPBCGS));
  if (single) PetscCall(KSPCGUseSingleReduction(ksp, PETSC_TRUE));
  PetscCall(KSPGetNormType(ksp, &norm)); /* settles norm and side for the new type */
  PetscCall((*ksp->ops->setup)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ok: nobody has anything to say against it */
static PetscErrorCode Together(KSP ksp, const char message[], PetscBool *ok, char why[], size_t len)
{
  PetscMPIInt mine = message ? 0 : 1, all;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)ksp)));
  *ok = (PetscBool)all;
  if (!all) PetscCall(PetscSNPrintf(why, len, "%s", message ? message : "another process' device failed"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The one process' matrix, or the diagonal block, ready on a device; why says what is missing where it is not */
static PetscErrorCode Operator(KSP ksp, KSP_GPU *k, PetscBool *ok, char why[], size_t len)
{
  Mat       A, block;
  PetscBool seq, mpi, ready = PETSC_FALSE;
  char      message[512];

  PetscFunctionBegin;
  *ok = PETSC_FALSE;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &seq));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJGPUCSR, &mpi));
  if (!seq && !mpi) {
    PetscCall(PetscSNPrintf(why, len, "the operator is of type %s, not gpucsr", ((PetscObject)A)->type_name));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (A->rmap->N != A->cmap->N) {
    PetscCall(PetscSNPrintf(why, len, "the operator is not square"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (ksp->calc_sings) {
    PetscCall(PetscSNPrintf(why, len, "singular values or eigenvalues were asked for"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  block = A;
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &block, NULL, NULL));
  PetscCall(PetscObjectTypeCompare((PetscObject)block, MATSEQAIJGPUCSR, &seq));
  if (seq) PetscCall(MatGPUCSRReady_Private(block, GPUCSR_FORWARD, &ready));
  if (!ready) PetscCall(PetscSNPrintf(message, sizeof(message), "the operator is on no device: %s", seq ? ((Mat_SeqGPUCSR *)block->spptr)->whynot : "its blocks are not of type seqaijgpucsr"));
  PetscCall(Together(ksp, ready ? NULL : message, ok, why, len));
  if (!*ok) PetscFunctionReturn(PETSC_SUCCESS);
  k->A = block;
  k->n = (int)block->rmap->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Live(KSP ksp, KSP_GPU *k)
{
  PetscFunctionBegin;
  k->live = (PetscBool)(ksp->converged != KSPConvergedDefault && ksp->converged != KSPConvergedSkip);
  for (PetscInt q = 0; q < ksp->numbermonitors; q++) {
    void (*f)(void) = (void (*)(void))ksp->monitor[q];

    /* these look at nothing but the norm they are given */
    if (f != (void (*)(void))KSPMonitorResidual && f != (void (*)(void))KSPMonitorResidualShort && f != (void (*)(void))KSPMonitorResidualDrawLG) k->live = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(GPUCSR_HAVE_CUDA)

/*
  The format that a launch should multiply with, NULL: that of the plan. A choice that is best for products need not be best here: an iteration has no launches to
  amortize, and what its product costs is what it reads. So: of the formats that a launch takes, the one of the fewest bytes, if that is a tenth less than the plan's,
  or if the plan's is none of them and has at most SPARED bytes less. A format or kernel that was asked for stays, if a launch takes it.
*/
static PetscErrorCode Better(KSP_GPU *k, const GPUCSRPlan *P, PetscBool takes, const GPUCSRFormat **better)
{
  static const char *const names[] = {"stencil", "dia", "sell", "csr"};
  const GPUCSRRequest     *q       = &((Mat_SeqGPUCSR *)k->A->spptr)->base.config.request;
  const double             plan    = Bytes(&P->A, PETSC_FALSE);
  double                   least   = takes ? 0.9 * plan : plan + SPARED;
  GPUCSRSource             s;
  PetscBool                open;

  PetscFunctionBegin;
  *better = NULL;
  PetscCall(GPUCSRRequestOpen(q, &open));
  if (!open && takes) PetscFunctionReturn(PETSC_SUCCESS);
  if (!takes && k->path == KSP_GPU_PATH_LAUNCH) least = PETSC_INFINITY;
  for (size_t f = 0; f < PETSC_STATIC_ARRAY_LENGTH(names); f++) {
    const GPUCSRFormat *format;
    GPUCSRStorage       A;
    GPUCSRExtent        extent;
    PetscBool           can;
    char                why[128];

    PetscCall(GPUCSRFormatFind(names[f], &format));
    PetscCall((*format->ops->applicable)(&P->features, format->variant, P->A.precision, &can, why, sizeof(why)));
    if (!can || format == P->A.format || (format->ops == &GPUCSRFormat_stencil && P->features.stencils <= 0) || (format->ops == &GPUCSRFormat_dia && !P->features.sampled)) continue;
    PetscCall((*format->ops->estimate)(&P->features, format->variant, &extent));
    if (format->ops->measure && format->ops == &GPUCSRFormat_dia && 8.0 * (double)extent.stored < least && !(k->own.built && k->own.A.format == format)) { /* the features have seen a sample */
      PetscCall(MatGPUCSRSource_Private(k->A, &s));
      PetscCall((*format->ops->measure)(&s, format->variant, &extent));
    }
    if ((double)extent.stored > GPUCSR_MOST_STORED(&P->features) / 16) continue;
    PetscCall(GPUCSRStorageCreate(k->dev, format, &P->features, &extent, P->A.precision, &A));
    if (Bytes(&A, PETSC_FALSE) < least) {
      least   = Bytes(&A, PETSC_FALSE);
      *better = format;
    }
    PetscCall(GPUCSRStorageDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix in that format, besides the plan; unless its values have become others since the features were taken, and it cannot hold them */
static PetscErrorCode Own(KSP_GPU *k, const GPUCSRPlan *P, const GPUCSRFormat *format, PetscBool *held)
{
  const Mat_SeqGPUCSR *g    = (Mat_SeqGPUCSR *)k->A->spptr;
  PetscBool            same = (PetscBool)(k->own.built && k->ownid == ((PetscObject)k->A)->id && k->ownpattern == g->pattern[GPUCSR_FORWARD] && k->own.A.precision == P->A.precision && k->own.A.format == format);
  GPUCSRRequest        q    = {"auto", "auto", GPUCSR_SELECT_ESTIMATE, 0, 0};
  GPUCSRSource         s;

  PetscFunctionBegin;
  *held = PETSC_TRUE;
  if (!same || k->ownvalues != g->values[GPUCSR_FORWARD]) {
    PetscCall(MatGPUCSRSource_Private(k->A, &s));
    PetscCall(PetscStrncpy(q.format, format->name, sizeof(q.format)));
    if (same) PetscCall(GPUCSRPlanRefresh(&k->own, &s, NULL, &same));
    if (!same && format->ops == &GPUCSRFormat_stencil) {
      GPUCSRFeatures f = P->features;

      PetscCall(GPUCSRStencils(s.m, s.i, s.j, GPUCSR_PETSCINT, s.a, GPUCSR_DOUBLE, &f));
      *held = (PetscBool)(f.stencils > 0);
    }
    if (!*held) PetscFunctionReturn(PETSC_SUCCESS);
    if (!same) PetscCall(GPUCSRPlanBuild(k->dev, &s, P->A.precision, &q, &k->own));
  }
  k->S          = &k->own.A;
  k->ownid      = ((PetscObject)k->A)->id;
  k->ownpattern = g->pattern[GPUCSR_FORWARD];
  k->ownvalues  = g->values[GPUCSR_FORWARD];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of a block start where slices and blocks of the preconditioner do */
static PetscErrorCode Shape(KSP_GPU *k, PetscBool *possible, char why[], size_t len)
{
  const int align = k->launch.v.block ? k->launch.v.bs : 1;

  PetscFunctionBegin;
  k->launch.method = k->method;
  k->launch.A      = k->S;
  k->launch.bounds = k->bounds;
  k->launch.reach  = k->bounds + GPUKSP_BLOCKS + 1;
  k->launch.slots  = k->slots;
  k->launch.state  = k->state;
  PetscCall(GPUKSPLaunchShape(k->dev, &k->launch, possible, why, len));
  if (!*possible) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUKSPLaunchPartition(k->S, align, k->launch.blocks, k->bounds, k->dev->stream));
  if (k->tiles) PetscCall(GPUKSPLaunchTile(&k->launch, k->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* Choose the way of this solve, and make ready what it needs */
static PetscErrorCode Prepare(KSP ksp, KSP_GPU *k)
{
  Mat_SeqGPUCSR    *g = (Mat_SeqGPUCSR *)k->A->spptr;
  const GPUCSRPlan *P = &g->plan[GPUCSR_FORWARD];
  Mat               A;
  MatNullSpace      null, tnull;
  GPUKSPPCKind      kind;
  KSPGPUPath        path = KSP_GPU_PATH_GRAPH;
  PetscMPIInt       size;
  PetscBool         takes = PETSC_FALSE, fresh;
  int               bs, key;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatGetNullSpace(A, &null));
  PetscCall(MatGetTransposeNullSpace(A, &tnull));
  PetscCall(PCKind(ksp, k, &kind, &bs, &key));
  PetscCall(Live(ksp, k));
  PetscCall(Open(k, g->dev));
  fresh     = (PetscBool)(k->matid != ((PetscObject)k->A)->id || k->pattern != g->pattern[GPUCSR_FORWARD] || k->matvalues != g->values[GPUCSR_FORWARD] || k->kernel != P->choice.kernel);
  k->why[0] = 0;
  PetscCall(Eigenvalues(ksp, k, kind, key));
  if (null || tnull || ksp->transpose_solve) kind = GPUKSP_PC_ANY;
  if (kind == GPUKSP_PC_BLOCK && size > 1) kind = GPUKSP_PC_ANY;
  PetscCheck(!k->degree || kind != GPUKSP_PC_ANY, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "-ksp_%s_polynomial_degree: the polynomial is of PCNONE or PCJACOBI, or on one process of PCPBJACOBI with blocks of at most 8, and of no operator with a null space",
             ((PetscObject)ksp)->type_name);
  if (size > 1 || kind == GPUKSP_PC_ANY || k->path == KSP_GPU_PATH_DRIVEN) {
    path     = KSP_GPU_PATH_DRIVEN;
    k->mixed = PETSC_FALSE;
    PetscCall(PetscStrncpy(k->whydouble, "the host drives", sizeof(k->whydouble)));
    PetscCheck(!k->degree || kind != GPUKSP_PC_BLOCK, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "The polynomial of PCPBJACOBI cannot be driven by the host");
    if (kind == GPUKSP_PC_BLOCK) kind = GPUKSP_PC_ANY;
    PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "%s",
                            size > 1                         ? "there are several processes"
                            : k->path == KSP_GPU_PATH_DRIVEN ? "asked for"
                            : null || tnull                  ? "the operator has a null space"
                            : ksp->transpose_solve           ? "the transpose is solved with"
                                                             : "the preconditioner is PCApply()'s"));
    PetscCall(Borrowed(ksp, k, kind, key));
  } else {
    PetscCall(PCNumbers(ksp, k, kind, bs, key));
    k->pckind = kind;
    PetscCall(Mixed(k, P, kind));
    PetscCall(Vectors(ksp, k));
    k->S = &P->A;
    if (k->mixed) {
      GPUCSRAttempt  attempt;
      PetscErrorCode ierr;

      PetscCall(GPUCSRAttemptBegin(&attempt));
      ierr = Rounded(k, &P->A);
      PetscCall(GPUCSRAttemptEnd(&attempt));
      PetscCheck(!ierr || ierr == PETSC_ERR_MEM, PetscObjectComm((PetscObject)ksp), ierr, "%s", attempt.message);
      if (ierr) {
        k->mixed = PETSC_FALSE;
        PetscCall(PetscStrncpy(k->whydouble, "the device has no room for rounded values", sizeof(k->whydouble)));
        PetscCall(Vectors(ksp, k));
      }
    }
#if defined(GPUCSR_HAVE_CUDA)
    if (k->dev->ops->kernels && !k->mixed) {
      if (!k->degree || k->method == GPUKSP_CG) PetscCall(GPUKSPLaunchTakes(&P->A, &takes));
      if (!k->live && (!k->degree || k->method == GPUKSP_CG) && k->path != KSP_GPU_PATH_GRAPH) {
        if (fresh || k->betterfor != k->path) PetscCall(Better(k, P, takes, &k->better));
        k->betterfor = k->path;
        if (k->better) {
          PetscBool held;

          PetscCall(Own(k, P, k->better, &held));
          if (held) takes = PETSC_TRUE;
        }
      }
    }
#endif
    if (!k->dev->ops->kernels) PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "the host computes"));
    else if (k->path == KSP_GPU_PATH_GRAPH) PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "asked for"));
    else if (k->mixed) PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "mixed precision goes by it"));
    else if (k->live) PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "a monitor or test looks at every iteration"));
    else if (k->degree && k->method != GPUKSP_CG) PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "a launch has a polynomial in standard conjugate gradients alone"));
    else if (!takes) PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "format %s has no product that a launch could call, and is much smaller than one that has", P->A.format->name));
    else if (P->features.max > LONGEST_ROW && k->path == KSP_GPU_PATH_AUTO) PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "a row has %d entries, which a launch would wait for", P->features.max));
    else path = KSP_GPU_PATH_LAUNCH;
  }
  k->pckind = kind;
#if !defined(GPUCSR_HAVE_CUDA)
  (void)fresh;
#else
  if (path == KSP_GPU_PATH_LAUNCH) {
    const int shape[] = {(int)k->method, (int)kind, bs, (int)k->degree};

    if (fresh || k->shapedata != k->S->array[0].data) PetscCall(GPUKSPLaunchCommon(k->S, &k->launch.common, k->dev->stream));
    if (fresh || k->pcnew || k->shapedata != k->S->array[0].data) PetscCall(GPUKSPLaunchDiagonals(k->S, kind == GPUKSP_PC_DIAGONAL ? k->pc : NULL, k->table, &k->launch.same, k->dev->stream));
    k->pcnew = PETSC_FALSE;
    if (fresh || k->shapefor != KSP_GPU_PATH_LAUNCH || k->shapedata != k->S->array[0].data || memcmp(k->shapeof, shape, sizeof(shape))) {
      PetscBool possible;

      PetscCall(Shape(k, &possible, k->why, sizeof(k->why)));
      if (!possible) path = KSP_GPU_PATH_GRAPH;
      PetscCall(PetscArraycpy(k->shapeof, shape, 4));
      k->shapedata = k->S->array[0].data;
    }
  }
#endif
  PetscCheck(k->path == KSP_GPU_PATH_AUTO || k->path == path || !k->dev->ops->kernels || k->live, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "-ksp_%s_path %s cannot be had here: %s; auto would take %s", ((PetscObject)ksp)->type_name, KSPGPUPaths[k->path], k->why, KSPGPUPaths[path]);
  if (fresh && path != KSP_GPU_PATH_LAUNCH) { /* the launch that comes next finds nothing that was made for this matrix */
    k->betterfor = KSP_GPU_PATH_DRIVEN;
    k->shapedata = NULL;
  }
  k->shapefor  = path;
  k->matid     = ((PetscObject)k->A)->id;
  k->pattern   = g->pattern[GPUCSR_FORWARD];
  k->matvalues = g->values[GPUCSR_FORWARD];
  k->kernel    = P->choice.kernel;
  k->taken     = path;
  k->with      = path == KSP_GPU_PATH_LAUNCH ? k->S->format : NULL;
  if (k->live && k->dev->ops->kernels && path == KSP_GPU_PATH_GRAPH && !k->warnedlive) {
    k->warnedlive = PETSC_TRUE;
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "KSP type %s: a monitor or convergence test of this solve looks at every iteration, which costs a launch for each step; -ksp_monitor would not\n", ((PetscObject)ksp)->type_name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a solve ---- */

static PetscErrorCode StateInit(KSP ksp, KSP_GPU *k)
{
  GPUKSPState            *s    = k->state;
  KSPConvergedDefaultCtx *cctx = (KSPConvergedDefaultCtx *)ksp->cnvP;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  s->normtype  = (int)ksp->normtype;
  s->test      = ksp->converged == KSPConvergedDefault ? GPUKSP_TEST_DEFAULT : ksp->converged == KSPConvergedSkip ? GPUKSP_TEST_SKIP : GPUKSP_TEST_HOST;
  s->guesszero = (int)ksp->guess_zero;
  if (s->test == GPUKSP_TEST_DEFAULT) {
    s->initialrtol    = (int)cctx->initialrtol;
    s->mininitialrtol = (int)cctx->mininitialrtol;
    s->convmaxits     = (int)cctx->convmaxits;
  }
  s->maxit   = (int)PetscMin(ksp->max_it, PETSC_MAX_INT / 2);
  s->chknorm = (int)ksp->chknorm;
#if PETSC_VERSION_GE(3, 20, 0)
  s->minit = (int)ksp->min_it;
#endif
#if PETSC_VERSION_GE(3, 19, 0)
  s->negcurve = (int)ksp->converged_neg_curve;
#endif
  s->rtol     = ksp->rtol;
  s->abstol   = ksp->abstol;
  s->divtol   = ksp->divtol;
  s->mixed    = k->mixed;
  s->update   = UPDATE;
  s->scale    = 1;
  s->truenorm = -1;
  if (!k->live && k->taken != KSP_GPU_PATH_DRIVEN && (ksp->res_hist || ksp->numbermonitors)) { /* else the host tells each norm as it comes */
    const int want = (int)PetscMin(HISTORY, (PetscInt64)s->maxit + 2);

    if (k->histmax < want) {
      PetscCall(GPUCSRFree(k->dev, sizeof(double) * (size_t)k->histmax, (void **)&k->hist));
      k->histmax = 0;
      PetscCall(GPUCSRMalloc(k->dev, sizeof(double) * (size_t)want, "the residual history of a solver", (void **)&k->hist));
      k->histmax = want;
    }
    s->hist    = k->hist;
    s->histmax = want;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What happened, to PETSc: history and monitors after the fact, reason, norms */
static PetscErrorCode Report(KSP ksp, KSP_GPU *k)
{
  const GPUKSPState *s    = k->state;
  const int          n    = s->hist ? (int)PetscMin(s->recorded, k->histmax) : 0;
  double            *hist = NULL;

  PetscFunctionBegin;
  if (n) {
    PetscCall(PetscMalloc1(n, &hist));
    PetscCall(GPUCSRDownload(k->dev, hist, GPUCSR_DOUBLE, k->hist, GPUCSR_DOUBLE, (size_t)n, PETSC_FALSE, k->dev->stream));
    for (int q = 0; q < n; q++) {
      ksp->its   = q;
      ksp->rnorm = hist[q];
      PetscCall(KSPLogResidualHistory(ksp, hist[q]));
      PetscCall(KSPMonitor(ksp, q, s->lucky && q == n - 1 ? 0 : hist[q]));
    }
    PetscCall(PetscFree(hist));
  }
  ksp->its    = s->its;
  ksp->rnorm  = s->rnorm;
  ksp->rnorm0 = s->rnorm0;
  ksp->ttol   = s->ttol;
  ksp->reason = (KSPConvergedReason)s->reason;
  if (ksp->reason == KSP_DIVERGED_NANORINF) {
    PCFailedReason failed;

    PetscCall(PCGetFailedReason(ksp->pc, &failed));
    if (failed) ksp->reason = KSP_DIVERGED_PC_FAILED;
  }
  k->truenorm = s->truenorm;
  k->replacements += s->replacements;
  PetscCall(PetscLogFlops((double)s->its * ((k->method == GPUKSP_BCGS ? 4.0 : 2.0) * (double)((Mat_SeqGPUCSR *)k->A->spptr)->plan[GPUCSR_FORWARD].A.nnz + (k->method == GPUKSP_BCGS ? 20.0 : 13.0) * (double)k->n)));
  PetscCall(PetscInfo(ksp, "%s after %d iterations, residual norm %g, true residual norm %g; path %s%s%s\n", KSPConvergedReasons[ksp->reason], s->its, s->rnorm, s->truenorm, KSPGPUPaths[k->taken], k->why[0] ? " because " : "", k->why));
  /* a recurrence that has lost its residual says that it has converged where b - A x has not */
  if (k->truenorm >= 0 && ksp->reason > 0 && s->normtype != KSP_NORM_NONE && s->test == GPUKSP_TEST_DEFAULT && k->truenorm > PetscMax(2 * s->ttol, USUAL_GAP * PetscMax(s->rnorm0, s->bnorm)) && !s->convmaxits)
    PetscCall(PetscFPrintf(PetscObjectComm((PetscObject)ksp), PETSC_STDERR, "KSP type %s warning: converged by its recurrence, with residual norm %.3g for a tolerance of %.3g, but the true residual norm is %.3g: rounding has parted the two\n",
                           ((PetscObject)ksp)->type_name, s->rnorm, s->ttol, (double)k->truenorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(GPUCSR_HAVE_CUDA)
/* b or x of a launch: where it is on the device, the launch works on it there, elsewhere on a copy */
static PetscErrorCode Take(KSP_GPU *k, Vec from, PetscBool read, PetscBool write, GPUCSROperand *o, double **p)
{
  GPUCSRStream s;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRVecGet_Private((Mat_SeqGPUCSR *)k->A->spptr, from, read, write, o));
  if (o->place == GPUCSR_DEVICE) {
    PetscCall(MatGPUCSRStream_Private(k->dev, o, NULL, NULL, &s));
    if (s != k->dev->stream) PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s));
    *p = (double *)o->p;
  } else if (read) PetscCall(GPUCSRUpload(k->dev, *p, GPUCSR_DOUBLE, o->p, GPUCSR_DOUBLE, (size_t)k->n, o->pinned, k->dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One launch, x home and complete on return */
static PetscErrorCode Launch(KSP ksp, KSP_GPU *k)
{
  Mat_SeqGPUCSR *g   = (Mat_SeqGPUCSR *)k->A->spptr;
  GPUCSRDevice   dev = k->dev;
  GPUKSPVectors *v   = &k->launch.v;
  double *const ownx = v->x, *const ownb = v->b;
  GPUCSROperand b, x;

  PetscFunctionBegin;
  PetscCall(Take(k, ksp->vec_rhs, PETSC_TRUE, PETSC_FALSE, &b, &v->b));
  PetscCall(Take(k, ksp->vec_sol, (PetscBool)!ksp->guess_zero, PETSC_TRUE, &x, &v->x));
  if (!k->launch.epoch || k->launch.epoch > UINT_MAX / 2) { /* what is left of so long ago could be taken for new */
    PetscCall(GPUKSPLaunchClear(k->slots, SLOTS_BYTES, dev->stream));
    k->launch.epoch = 1;
  }
  PetscCall(GPUKSPLaunchSolve(&k->launch, dev->stream));
  if (x.place != GPUCSR_DEVICE) PetscCall(GPUCSRDownload(dev, x.p, GPUCSR_DOUBLE, v->x, GPUCSR_DOUBLE, (size_t)k->n, x.pinned, dev->stream));
  PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  k->launch.epoch = k->state->epoch;
  PetscCall(MatGPUCSRVecRestore_Private(g, ksp->vec_sol, (PetscBool)!ksp->guess_zero, PETSC_TRUE, &x));
  PetscCall(MatGPUCSRVecRestore_Private(g, ksp->vec_rhs, PETSC_TRUE, PETSC_FALSE, &b));
  v->x = ownx;
  v->b = ownb;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* From the right-hand side to the solution, x home */
static PetscErrorCode Run(KSP ksp, KSP_GPU *k)
{
  Mat_SeqGPUCSR *g   = (Mat_SeqGPUCSR *)k->A->spptr;
  GPUCSRDevice   dev = k->dev;

  PetscFunctionBegin;
  PetscCall(dev->ops->activate(dev->id));
  k->launch.right = (PetscBool)(ksp->pc_side == PC_RIGHT);
  k->launch.guard = k->guard;
  if (k->taken == KSP_GPU_PATH_DRIVEN) {
    if (ksp->guess_zero) PetscCall(VecSet(ksp->vec_sol, 0));
    PetscCall(GPUKSPDrive(ksp, k));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* a kernel's work is shared by all products of this matrix: one stream at a time */
  if (g->last && g->last != dev->stream) PetscCall(GPUCSRDeviceSynchronize(dev));
  g->last = dev->stream;
#if defined(GPUCSR_HAVE_CUDA)
  if (k->taken == KSP_GPU_PATH_LAUNCH) {
    PetscCall(Launch(ksp, k));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(Load(k, ksp->vec_rhs, k->launch.v.b));
  if (!ksp->guess_zero) PetscCall(Load(k, ksp->vec_sol, k->launch.v.x));
  if (k->mixed) {
    PetscCall(GPUKSPDriveMixed(ksp, k));
    if (CGGivenUp(k->state) && !CGImproved(k->state)) PetscFunctionReturn(PETSC_SUCCESS); /* what there was is better */
  } else PetscCall(GPUKSPDrive(ksp, k));
  PetscCall(GPUKSPStoreX(ksp, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prepare(), where it can be done; elsewhere why not: what the device has no room for is PETSc's, as for a matrix */
static PetscErrorCode Ready(KSP ksp, KSP_GPU *k, PetscBool *ok, char why[], size_t len)
{
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *ok = PETSC_TRUE;
  if (MatGPUCSRBackendOf(k->A) == MAT_GPUCSR_BACKEND_CUDA) {
    PetscCall(Prepare(ksp, k));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = Prepare(ksp, k);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCheck(!ierr || ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU, PetscObjectComm((PetscObject)ksp), ierr, "%s", attempt.message);
  PetscCall(Together(ksp, ierr ? attempt.message : NULL, ok, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Single precision has got nowhere: double goes on, from where it was or, if that is no better, from where the solve began. One solve to those who look: the same target, and iterations that
  go on counting. What double takes for convergence is confirmed as well: it starts again from x while that helps.
*/
static PetscErrorCode GoOnInDouble(KSP ksp, KSP_GPU *k, PetscBool *ok, char why[], size_t len)
{
  const GPUKSPState before = *k->state;
  const PetscBool   zero = ksp->guess_zero, guard = k->guard;
  GPUKSPState      *s;
  PetscReal         last = PETSC_INFINITY, rnorm = before.rnorm, truenorm = -1;
  int               its = before.its, recorded = before.recorded;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(PetscInfo(ksp, "Single precision has got nowhere after %d iterations: double goes on\n", its));
  PetscCall(GPUCSRFree(k->dev, k->fbytes, (void **)&k->fmemory));
  k->fbytes    = 0;
  k->precision = KSP_GPU_DOUBLE;
  ierr         = Ready(ksp, k, ok, why, len);
  k->precision = KSP_GPU_MIXED;
  PetscCall(ierr);
  if (CGImproved(&before)) ksp->guess_zero = PETSC_FALSE;
  if (!*ok) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "single precision got nowhere after %d iterations", its));
  k->guard = PETSC_TRUE;
  s        = k->state;
  for (;;) {
    PetscBool says;

    PetscCall(StateInit(ksp, k));
    if (before.ttol > 0) {
      s->rtol   = 0;
      s->abstol = before.ttol;
    }
    if (its >= s->maxit) {
      s->rnorm    = rnorm;
      s->truenorm = truenorm;
      s->reason   = s->test == GPUKSP_TEST_SKIP || s->convmaxits ? KSP_CONVERGED_ITS : KSP_DIVERGED_ITS;
      break;
    }
    s->maxit -= its;
    s->minit -= its;
    s->chknorm -= its;
    if (s->hist) { /* its first norm is the last of those before */
      s->hist += PetscMin(its, s->histmax);
      s->histmax -= PetscMin(its, s->histmax);
    }
    PetscCall(Run(ksp, k));
    recorded = its + s->recorded;
    its += s->its;
    rnorm    = s->rnorm;
    truenorm = s->truenorm;
    says     = (PetscBool)(s->reason > 0 && s->reason != KSP_CONVERGED_ITS && s->reason != GPUKSP_NEG_CURVE && s->test == GPUKSP_TEST_DEFAULT && s->normtype != KSP_NORM_NONE);
    if (!says || s->truenorm <= s->ttol) break;
    if (!(s->truenorm <= last / 2)) {
      s->reason = KSP_DIVERGED_BREAKDOWN;
      break;
    }
    last            = s->truenorm;
    ksp->guess_zero = PETSC_FALSE;
  }
  k->guard        = guard;
  ksp->guess_zero = zero;
  s->recorded     = recorded;
  s->its          = its;
  s->replacements = before.replacements;
  s->rnorm0       = before.rnorm0;
  if (!guard) s->truenorm = -1;
  if (s->reason == KSP_CONVERGED_ATOL && s->rnorm >= before.abstol) s->reason = KSP_CONVERGED_RTOL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_GPU(KSP ksp)
{
  KSP_GPU  *k = (KSP_GPU *)ksp->data;
  PetscBool diagonalscale, ok, zero = ksp->guess_zero;
  char      why[512];

  PetscFunctionBegin;
  PetscCall(PCGetDiagonalScale(ksp->pc, &diagonalscale));
  PetscCheck(!diagonalscale, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "Krylov method %s does not support diagonal scaling", ((PetscObject)ksp)->type_name);
  PetscCall(Operator(ksp, k, &ok, why, sizeof(why)));
  if (!ok) {
    PetscCall(FallBack(ksp, why));
    PetscCall((*ksp->ops->solve)(ksp));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (ksp->reason == KSP_DIVERGED_PC_FAILED) { /* its set-up did */
    ksp->its   = 0;
    ksp->rnorm = PETSC_INFINITY;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (k->method != GPUKSP_BCGS) k->method = k->variant == KSP_GPU_SINGLE_REDUCTION ? GPUKSP_CG_SINGLE_REDUCTION : GPUKSP_CG;
  k->replacements = 0;
  PetscCall(Ready(ksp, k, &ok, why, sizeof(why)));
  if (ok) {
    PetscCall(StateInit(ksp, k));
    PetscCall(Run(ksp, k));
    if (k->mixed && CGGivenUp(k->state)) PetscCall(GoOnInDouble(ksp, k, &ok, why, sizeof(why)));
  }
  if (!ok) {
    PetscCall(FallBack(ksp, why));
    PetscCall((*ksp->ops->solve)(ksp));
    ksp->guess_zero = zero;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Report(ksp, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Only what can be told before a solve: the rest is made ready by the first, and kept */
static PetscErrorCode KSPSetUp_GPU(KSP ksp)
{
  KSP_GPU  *k = (KSP_GPU *)ksp->data;
  PetscBool ok;
  char      why[512];

  PetscFunctionBegin;
  ksp->setupnewmatrix = PETSC_TRUE;
  PetscCall(Operator(ksp, k, &ok, why, sizeof(why)));
  if (!ok) PetscCall(FallBack(ksp, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPReset_GPU(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(Release((KSP_GPU *)ksp->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDestroy_GPU(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(KSPReset_GPU(ksp));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetPath_C", NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetPrecision_C", NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUCGSetVariant_C", NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetTrueResidual_C", NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetPolynomial_C", NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUGetTrueResidualNorm_C", NULL));
  PetscCall(KSPDestroyDefault(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x itself is what steps are added to, right preconditioning or left */
static PetscErrorCode KSPBuildSolution_GPU(KSP ksp, Vec v, Vec *V)
{
  PetscFunctionBegin;
  if (v) PetscCall(VecCopy(ksp->vec_sol, v));
  *V = v ? v : ksp->vec_sol;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPView_GPU(KSP ksp, PetscViewer viewer)
{
  KSP_GPU  *k = (KSP_GPU *)ksp->data;
  PetscBool ascii;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->method != GPUKSP_BCGS)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  variant %s, precision %s%s%s\n", KSPGPUVariants[k->variant], KSPGPUPrecisions[k->precision], k->precision == KSP_GPU_MIXED && k->matid && !k->mixed ? ", double in the last solve because " : "", k->precision == KSP_GPU_MIXED && k->matid && !k->mixed ? k->whydouble : ""));
  if (k->degree) PetscCall(PetscViewerASCIIPrintf(viewer, "  preconditioned by a Chebyshev polynomial of degree %" PetscInt_FMT " of the PC below, for eigenvalues from %g to %g\n", k->degree, (double)k->lambda[0], (double)k->lambda[1]));
  if (!k->matid) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->taken == KSP_GPU_PATH_LAUNCH) PetscCall(PetscViewerASCIIPrintf(viewer, "  last solve: one launch of %d blocks, format %s%s\n", k->launch.blocks, k->with->name, k->launch.tile ? ", by tiles" : ""));
  else PetscCall(PetscViewerASCIIPrintf(viewer, "  last solve: path %s, because %s\n", KSPGPUPaths[k->taken], k->why));
  if (k->mixed || k->replacements) PetscCall(PetscViewerASCIIPrintf(viewer, "  residual replaced by the true one %" PetscInt_FMT " times\n", k->replacements));
  if (k->truenorm >= 0) PetscCall(PetscViewerASCIIPrintf(viewer, "  true residual norm %g, by the recurrence %g\n", (double)k->truenorm, (double)ksp->rnorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetFromOptions_GPU(KSP ksp, GPUCSROptionItems PetscOptionsObject)
{
  KSP_GPU  *k              = (KSP_GPU *)ksp->data;
  PetscReal eigenvalues[2] = {k->given[0], k->given[1]};
  PetscInt  degree = k->degree, two = 2;
  PetscBool set;
  char      option[64];

  PetscFunctionBegin;
  if (k->method == GPUKSP_BCGS) {
    PetscOptionsHeadBegin(PetscOptionsObject, "KSPGPUBCGS options");
    PetscCall(PetscOptionsEnum("-ksp_gpubcgs_path", "How an iteration is launched", "KSPGPUSetPath", KSPGPUPaths, (PetscEnum)k->path, (PetscEnum *)&k->path, NULL));
    PetscCall(PetscOptionsBool("-ksp_gpubcgs_true_residual", "Compute the true residual on exit", "KSPGPUSetTrueResidual", k->guard, &k->guard, NULL));
  } else {
    PetscOptionsHeadBegin(PetscOptionsObject, "KSPGPUCG options");
    PetscCall(PetscOptionsEnum("-ksp_gpucg_path", "How an iteration is launched", "KSPGPUSetPath", KSPGPUPaths, (PetscEnum)k->path, (PetscEnum *)&k->path, NULL));
    PetscCall(PetscOptionsEnum("-ksp_gpucg_variant", "Reductions of an iteration", "KSPGPUCGSetVariant", KSPGPUVariants, (PetscEnum)k->variant, (PetscEnum *)&k->variant, NULL));
    PetscCall(PetscOptionsEnum("-ksp_gpucg_precision", "Digits of the iteration", "KSPGPUSetPrecision", KSPGPUPrecisions, (PetscEnum)k->precision, (PetscEnum *)&k->precision, NULL));
    PetscCall(PetscOptionsBool("-ksp_gpucg_tiles", "Let a launch compute halos again, and meet once an iteration, where they fit", "None", k->tiles, &k->tiles, NULL));
    PetscCall(PetscOptionsBool("-ksp_gpucg_true_residual", "Compute the true residual on exit", "KSPGPUSetTrueResidual", k->guard, &k->guard, NULL));
  }
  PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_polynomial_degree", ((PetscObject)ksp)->type_name));
  PetscCall(PetscOptionsInt(option, "Steps of the Chebyshev iteration that precondition", "KSPGPUSetPolynomial", degree, &degree, NULL));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_polynomial_eigenvalues", ((PetscObject)ksp)->type_name));
  PetscCall(PetscOptionsRealArray(option, "Least and largest eigenvalue they are for", "KSPGPUSetPolynomial", eigenvalues, &two, &set));
  PetscCheck(!set || two == 2, PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_WRONG, "%s must be two numbers, the least and the largest", option);
  PetscCall(KSPGPUSetPolynomial(ksp, degree, eigenvalues[0], eigenvalues[1]));
  k->shapedata = NULL;
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPGPUSetPolynomial_GPU(KSP ksp, PetscInt degree, PetscReal emin, PetscReal emax)
{
  KSP_GPU *k = (KSP_GPU *)ksp->data;

  PetscFunctionBegin;
  PetscCheck(degree >= 0 && degree <= 100, PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_OUTOFRANGE, "A polynomial of degree %" PetscInt_FMT " was asked for: must be from 1 to 100, or 0 for none", degree);
  PetscCheck((emin == 0 && emax == 0) || (emin > 0 && emax > emin), PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_OUTOFRANGE, "A polynomial for eigenvalues from %g to %g was asked for: the least must be positive and below the largest, or both 0, to be estimated", (double)emin, (double)emax);
  if (k->given[1] != emax) k->lambda[1] = 0;
  k->degree   = degree;
  k->given[0] = emin;
  k->given[1] = emax;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPGPUSetPath_GPU(KSP ksp, KSPGPUPath path)
{
  PetscFunctionBegin;
  ((KSP_GPU *)ksp->data)->path = path;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPGPUSetPrecision_GPU(KSP ksp, KSPGPUPrecision precision)
{
  PetscFunctionBegin;
  ((KSP_GPU *)ksp->data)->precision = precision;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPGPUCGSetVariant_GPU(KSP ksp, KSPGPUVariant variant)
{
  PetscFunctionBegin;
  ((KSP_GPU *)ksp->data)->variant = variant;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPGPUSetTrueResidual_GPU(KSP ksp, PetscBool compute)
{
  PetscFunctionBegin;
  ((KSP_GPU *)ksp->data)->guard = compute;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPGPUGetTrueResidualNorm_GPU(KSP ksp, PetscReal *norm)
{
  PetscFunctionBegin;
  *norm = ((KSP_GPU *)ksp->data)->truenorm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(KSP ksp, GPUKSPMethod method)
{
  KSP_GPU *k;

  PetscFunctionBegin;
  PetscCall(PetscNew(&k));
  ksp->data                = k;
  k->method                = method;
  k->guard                 = PETSC_TRUE;
  k->tiles                 = PETSC_TRUE;
  k->truenorm              = -1;
  ksp->ops->setup          = KSPSetUp_GPU;
  ksp->ops->solve          = KSPSolve_GPU;
  ksp->ops->reset          = KSPReset_GPU;
  ksp->ops->destroy        = KSPDestroy_GPU;
  ksp->ops->view           = KSPView_GPU;
  ksp->ops->setfromoptions = KSPSetFromOptions_GPU;
  ksp->ops->buildsolution  = KSPBuildSolution_GPU;
  ksp->ops->buildresidual  = KSPBuildResidualDefault;
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetPath_C", KSPGPUSetPath_GPU));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetTrueResidual_C", KSPGPUSetTrueResidual_GPU));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetPolynomial_C", KSPGPUSetPolynomial_GPU));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUGetTrueResidualNorm_C", KSPGPUGetTrueResidualNorm_GPU));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGPUCG - "gpucg", the conjugate gradients of `KSPCG` for a `MATGPUCSR` matrix, iterating on its device from the right-hand side to the solution

  Options Database Keys:
+ -ksp_type gpucg                                     - use this type
. -ksp_gpucg_path (auto|launch|graph|driven)          - how an iteration is launched
. -ksp_gpucg_variant (standard|single_reduction)      - the conjugate gradients of `KSPCG`, or those of `KSPCGUseSingleReduction()`
. -ksp_gpucg_precision (double|mixed)                 - digits of the iteration; convergence is always that of the residual in double
. -ksp_gpucg_polynomial_degree degree                 - precondition with a Chebyshev polynomial, see `KSPGPUSetPolynomial()`
. -ksp_gpucg_polynomial_eigenvalues emin,emax         - which is for these eigenvalues
. -ksp_gpucg_tiles (true|false)                       - let the blocks of a launch compute again what they need of each other, and meet once an iteration instead of twice, where it fits; true by default
- -ksp_gpucg_true_residual (true|false)               - compute b - A x on exit, show it, and warn where the recurrence has lost it; true by default

  Level: beginner

  Notes:
  The same iterates, norms, tests and reasons as `KSPCG`, but for rounding. Left preconditioning; norms preconditioned, unpreconditioned, natural and none.

  One launch is the whole solve (path launch) for matrices stored as csr, sell, sell_256, ell, dia or stencil, on one process, with `PCNONE`, `PCJACOBI`, or `PCPBJACOBI` with blocks of at
  most 8. Other formats go by a graph of a few kernels, launched again and again (graph). Other preconditioners, null spaces and several processes are driven by the host (driven).

  -ksp_monitor and the residual history are served when the solve is over. A monitor that looks at more than the norm, and a test of convergence of your own, make the
  host look at every iteration.

  Where the operator is not a `MATGPUCSR` matrix, or is on no device, `KSPCG` solves, which one line says.

  With mixed, values, vectors and the preconditioner of the iteration are in single precision, and the path is graph; its residual is replaced by b - A x in double before convergence is
  believed, whenever it has become a hundred times smaller, and at least every 300 iterations. Where that gets nowhere, double goes on. Where a launch in double takes less, that is taken; -ksp_view says so.

.seealso: `MATGPUCSR`, `KSPGPUBCGS`, `KSPGPUSetPath()`, `KSPGPUCGSetVariant()`, `KSPGPUSetPrecision()`, `KSPGPUSetTrueResidual()`
M*/
PetscErrorCode KSPCreate_GPUCG(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(Create(ksp, GPUKSP_CG));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, PC_LEFT, 3));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_LEFT, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NATURAL, PC_LEFT, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_LEFT, 1));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetPrecision_C", KSPGPUSetPrecision_GPU));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUCGSetVariant_C", KSPGPUCGSetVariant_GPU));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGPUBCGS - "gpubcgs", the BiCGStab of `KSPBCGS` for a `MATGPUCSR` matrix, iterating on its device from the right-hand side to the solution

  Options Database Keys:
+ -ksp_type gpubcgs                            - use this type
. -ksp_gpubcgs_path (auto|launch|graph|driven) - how an iteration is launched
- -ksp_gpubcgs_true_residual (true|false)      - compute b - A x on exit, show it, and warn where the recurrence has lost it; true by default

  Level: beginner

  Note:
  The same iterates, norms, tests and reasons as `KSPBCGS`, but for rounding: preconditioned norm from the left, unpreconditioned from the right. The rest is as
  for `KSPGPUCG`.

.seealso: `MATGPUCSR`, `KSPGPUCG`, `KSPGPUSetPath()`, `KSPGPUSetTrueResidual()`
M*/
PetscErrorCode KSPCreate_GPUBCGS(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(Create(ksp, GPUKSP_BCGS));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, PC_LEFT, 3));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_RIGHT, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_LEFT, 1));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_RIGHT, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUSetPath - Set how the iterations of a `KSPGPUCG` or `KSPGPUBCGS` are launched

  Logically Collective

  Input Parameters:
+ ksp  - the solver
- path - `KSP_GPU_PATH_AUTO`, which takes the first of the following that can be had (but graph in mixed precision, and where a row is very long), or one of them: an error where it cannot

  Options Database Key:
. -ksp_gpucg_path (auto|launch|graph|driven) - sets the path

  Level: advanced

.seealso: `KSPGPUCG`, `KSPGPUBCGS`, `KSPGPUPath`
@*/
PetscErrorCode KSPGPUSetPath(KSP ksp, KSPGPUPath path)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscTryMethod(ksp, "KSPGPUSetPath_C", (KSP, KSPGPUPath), (ksp, path));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUSetPrecision - Set the digits that a `KSPGPUCG` iterates with

  Logically Collective

  Input Parameters:
+ ksp       - the solver
- precision - `KSP_GPU_DOUBLE` or `KSP_GPU_MIXED`

  Options Database Key:
. -ksp_gpucg_precision (double|mixed) - sets the precision

  Level: intermediate

.seealso: `KSPGPUCG`, `KSPGPUPrecision`
@*/
PetscErrorCode KSPGPUSetPrecision(KSP ksp, KSPGPUPrecision precision)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscTryMethod(ksp, "KSPGPUSetPrecision_C", (KSP, KSPGPUPrecision), (ksp, precision));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUCGSetVariant - Set the variant of the conjugate gradients of a `KSPGPUCG`

  Logically Collective

  Input Parameters:
+ ksp     - the solver
- variant - `KSP_GPU_STANDARD` or `KSP_GPU_SINGLE_REDUCTION`

  Options Database Key:
. -ksp_gpucg_variant (standard|single_reduction) - sets the variant

  Level: intermediate

  Note:
  The single reduction is that of `KSPCGUseSingleReduction()`: one reduction less where the host drives several processes, and a little less accurate at the end. In a launch both meet twice.

.seealso: `KSPGPUCG`, `KSPGPUVariant`
@*/
PetscErrorCode KSPGPUCGSetVariant(KSP ksp, KSPGPUVariant variant)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscTryMethod(ksp, "KSPGPUCGSetVariant_C", (KSP, KSPGPUVariant), (ksp, variant));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUSetPolynomial - Have a `KSPGPUCG` or `KSPGPUBCGS` precondition with a Chebyshev polynomial of its preconditioned operator

  Logically Collective

  Input Parameters:
+ ksp    - the solver
. degree - how many steps of the Chebyshev iteration from 0 are the preconditioner, each an application of the `PC` and, but for the first, a product; 0 for the `PC` alone
. emin   - least eigenvalue that the polynomial is for
- emax   - largest one; both 0 to have it estimated, as 1.1 and 0.1 times what ten iterations of GMRES find

  Options Database Keys:
+ -ksp_gpucg_polynomial_degree degree         - sets the degree
- -ksp_gpucg_polynomial_eigenvalues emin,emax - sets the eigenvalues

  Level: intermediate

  Note:
  The same as `PCKSP` around `KSPCHEBYSHEV` with so many iterations, norm none and these eigenvalues; but part of the launch or of the graph. Of `PCNONE`,
  `PCJACOBI` and, on one process, `PCPBJACOBI`.

.seealso: `KSPGPUCG`, `KSPGPUBCGS`, `KSPCHEBYSHEV`, `PCKSP`
@*/
PetscErrorCode KSPGPUSetPolynomial(KSP ksp, PetscInt degree, PetscReal emin, PetscReal emax)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscTryMethod(ksp, "KSPGPUSetPolynomial_C", (KSP, PetscInt, PetscReal, PetscReal), (ksp, degree, emin, emax));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUSetTrueResidual - Have a `KSPGPUCG` or `KSPGPUBCGS` compute b - A x when it ends, or not

  Logically Collective

  Input Parameters:
+ ksp     - the solver
- compute - true by default; costs one product a solve

  Options Database Key:
. -ksp_gpucg_true_residual (true|false) - sets it

  Level: intermediate

.seealso: `KSPGPUCG`, `KSPGPUBCGS`, `KSPGPUGetTrueResidualNorm()`
@*/
PetscErrorCode KSPGPUSetTrueResidual(KSP ksp, PetscBool compute)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscTryMethod(ksp, "KSPGPUSetTrueResidual_C", (KSP, PetscBool), (ksp, compute));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUGetTrueResidualNorm - Get the norm of b - A x at the end of the last solve, in the norm of the test of convergence

  Not Collective

  Input Parameter:
. ksp - the solver

  Output Parameter:
. norm - the norm, negative where it was not computed

  Level: intermediate

.seealso: `KSPGPUCG`, `KSPGPUBCGS`, `KSPGPUSetTrueResidual()`
@*/
PetscErrorCode KSPGPUGetTrueResidualNorm(KSP ksp, PetscReal *norm)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscAssertPointerCompat(norm, 2);
  *norm = -1;
  PetscTryMethod(ksp, "KSPGPUGetTrueResidualNorm_C", (KSP, PetscReal *), (ksp, norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPGPUInitialize_Private(void)
{
  PetscFunctionBegin;
  /* the device formats hold real double numbers: elsewhere the types would never be more than PETSc's own */
  PetscCall(KSPRegister(KSPGPUCG, KSPCreate_GPUCG));
  PetscCall(KSPRegister(KSPGPUBCGS, KSPCreate_GPUBCGS));
  PetscFunctionReturn(PETSC_SUCCESS);
}
