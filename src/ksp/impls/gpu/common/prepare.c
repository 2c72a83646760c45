/*
  Preparation of a solve: the operator on a device, the choice of a path, and the data of that path. Data of an earlier solve are reused while their key (gpukspimpl.h) is the same.
*/
#include "gpukspimpl.h"
#include "../../petsc/methods.h"

/* Longest row for which auto takes a persistent kernel: at most 32 threads share a row, and all others wait for them */
#define LONGEST_ROW 4096

/* With more entries than this, which are stored one by one or are more than so many a row, auto solves BiCGStab by a graph */
#define MOST_GATHERED 8e6
#define LONG_ROWS     16

/* With more bytes an iteration than this, auto solves CG with stored entries by a graph */
#define MOST_BYTES 7e8

/* The same of several ranks, whose persistent kernels gather. Microseconds an iteration on two H200 in one launch and by a graph: 48 and 54 with 0.9 million entries a rank, 179 and 126 with 7.3 million (convection) */
#define MOST_GATHERED_RANKS 1.6e6

/* Time that a persistent kernel saves an iteration over a graph of kernels, measured on an H200, expressed in bytes moved meanwhile */
#define SPARED       35e6
#define SPARED_RANKS 70e6 /* of several, where a graph has exchanges too: 17 us an iteration of CG on 27 points 64^3 and 128^3, two H200 */

/* Most entries of the residual history on the device */
#define HISTORY 1000000

/* The matrix of one process, or the diagonal block, on a device; if that fails, why says what is missing */
PetscErrorCode GPUKSPOperator(KSP ksp, KSP_GPU *k, PetscBool *ok, char why[], size_t len)
{
  Mat            A, block;
  PetscBool      seq, mpi;
  char           whynot[512] = "its blocks are not of type seqaijgpucsr", message[600];
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr = PETSC_SUCCESS;
  GPUKSPOutcome  mine = GPUKSP_NO_DEVICE;
  PetscInt       M, N;

  PetscFunctionBegin;
  *ok = PETSC_FALSE;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &seq));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJGPUCSR, &mpi));
  if (!seq && !mpi) {
    PetscCall(PetscSNPrintf(why, len, "the operator is of type %s, not gpucsr", ((PetscObject)A)->type_name));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetSize(A, &M, &N));
  if (M != N) {
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
  PetscCall(PetscMemzero(&k->op, sizeof(k->op)));
  if (seq) {
    PetscCall(GPUCSRAttemptBegin(&attempt));
    ierr = MatGPUCSROperatorGet_Private(block, &k->op, whynot, sizeof(whynot));
    PetscCall(GPUCSRAttemptEnd(&attempt));
    if (ierr) PetscCall(PetscStrncpy(whynot, attempt.message, sizeof(whynot)));
    mine = ierr ? GPUKSPOutcomeOf(k, ierr) : k->op.dev ? GPUKSP_GOES_ON : GPUKSP_NO_DEVICE;
  }
  PetscCall(PetscSNPrintf(message, sizeof(message), "%s%s", mine == GPUKSP_IN_ERROR ? "" : "the operator is on no device: ", whynot));
  PetscCall(GPUKSPAgree(ksp, mine, ierr, message, ok, why, len));
  PetscCall(MatGetLocalSize(block, &M, NULL));
  k->n = (int)M;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the choice of a path, which computes nothing ---- */

/* Does a monitor or test of this solve look at iterates? */
PetscErrorCode GPUKSPLive(KSP ksp, KSP_GPU *k)
{
  PetscBool monitors, test;

  PetscFunctionBegin;
  PetscCall(KSPMethodsLooked_Private(ksp, &monitors, &test));
  k->live = (PetscBool)(monitors || test);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Is a graph faster than a persistent kernel, although it takes launches? Its products do, where they read the matrix from memory, entry by entry, at the full rate of that; and they take most sums on their way.
  Stencils in a table are for the persistent kernel, which has windows of their vectors in shared memory.

  BiCGStab: a persistent kernel computes its directions from three and two vectors at each entry, or writes them first where blocks have many rows. Microseconds an iteration on an H200 by it and by the
  graph: 79 and 86 on 7 points 100^3, 170 and 156 on 128^3, 344 and 316 on 27 points 128^3. Of several ranks the one with the most entries counts.

  CG: its blocks have ranges of rows far from each other, whose neighbours a large matrix pushes out of the last-level cache before they are read again: 77 and 88 on 7 points 128^3, 162 and 160 on 160^3,
  323 and 300 on 200^3.
*/
static PetscErrorCode GraphIsFaster(KSP ksp, const KSP_GPU *k, PetscMPIInt size, PetscBool *faster)
{
  const GPUCSRPlan *P     = k->op.plan;
  const PetscBool   there = (PetscBool)(P->A.format != NULL), table = (PetscBool)(P->features.stencils > 0 || (there && GPUKSPFormatIsTable(P->A.format))); /* of several ranks one may have lost its device by now */
  double            nnz = (double)P->A.nnz;

  PetscFunctionBegin;
  *faster = PETSC_FALSE;
  if (k->path != KSP_GPU_PATH_AUTO) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->method == GPUKSP_CG && size == 1) *faster = (PetscBool)(there && !table && GPUCSRPlanSums(P) && GPUKSPBytes(&P->A, PETSC_FALSE) + 72.0 * k->n > MOST_BYTES);
  if (k->method != GPUKSP_BCGS) PetscFunctionReturn(PETSC_SUCCESS);
  if (size > 1) {
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &nnz, 1, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
    *faster = (PetscBool)(nnz > MOST_GATHERED_RANKS);
  } else *faster = (PetscBool)(nnz > MOST_GATHERED && (!table || nnz > LONG_ROWS * k->n || k->pc.kind == GPUKSP_PC_APART));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char gathers[] = "a graph multiplies so many entries faster";

/* Why only the host loop can solve this; NULL: other paths can too. In the host loop PETSc may have to apply the PC, whatever its type */
static PetscErrorCode WhyHostLoop(KSP ksp, KSP_GPU *k, char text[], size_t len, const char **why)
{
  Mat          A;
  MatNullSpace null, tnull;
  PetscMPIInt  size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  k->peers.on = k->ranks.on = PETSC_FALSE;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatGetNullSpace(A, &null));
  PetscCall(MatGetTransposeNullSpace(A, &tnull));
  k->pc.kind = k->pc.row->kind;
  if (size > 1) PetscCall(GPUKSPKindTogether(ksp, k));
  if (null || tnull || ksp->transpose_solve) k->pc.kind = GPUKSP_PC_ANY;
  *why = k->path == KSP_GPU_PATH_HOST_LOOP ? "asked for" : null || tnull ? "the operator has a null space" : ksp->transpose_solve ? "it is a solve with the transpose" : k->pc.kind == GPUKSP_PC_ANY ? "the preconditioner is PCApply()'s" : NULL;
  if (!*why && size > 1) {
    char      launch[256];
    PetscBool faster;

    PetscCall(GraphIsFaster(ksp, k, size, &faster));
    if (faster) PetscCall(GPUKSPWhyNotRanks(ksp, k, gathers, text, len));
    if (!k->ranks.on) PetscCall(GPUKSPWhyNotPeers(ksp, k, size, launch, sizeof(launch)));
    if (!k->ranks.on && !k->peers.on) PetscCall(GPUKSPWhyNotRanks(ksp, k, launch, text, len));
    if (!k->peers.on && !k->ranks.on) *why = text;
  }
  if (*why && k->pc.kind == GPUKSP_PC_APART) k->pc.kind = GPUKSP_PC_ANY;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The path of this solve, and why */
static PetscErrorCode Choose(KSP ksp, KSP_GPU *k)
{
  const int   longest = k->op.plan->features.max;
  const char *why     = NULL;
  PetscBool   faster  = PETSC_FALSE;
  char        text[sizeof(k->why)];

  PetscFunctionBegin;
  PetscCall(WhyHostLoop(ksp, k, text, sizeof(text), &why));
  if (why) {
    k->taken   = KSP_GPU_PATH_HOST_LOOP;
    k->refined = PETSC_FALSE;
    PetscCall(PetscStrncpy(k->why, why, sizeof(k->why)));
    PetscCall(PetscStrncpy(k->whydouble, "the host loop is in double", sizeof(k->whydouble)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (k->ranks.on) {
    k->taken   = KSP_GPU_PATH_GRAPH;
    k->refined = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS); /* k->why says why */
  }
  if (k->peers.on) k->refined = PETSC_FALSE;
  else PetscCall(GPUKSPRefineChoose(k));
  if (!k->peers.on) PetscCall(GraphIsFaster(ksp, k, 1, &faster));
  PetscCall(PetscSNPrintf(text, sizeof(text), "a row has %d entries, which a persistent kernel would wait for", longest));
  why      = !k->dev->ops->kernels                                   ? "the host computes"
             : k->path == KSP_GPU_PATH_GRAPH                         ? "asked for"
             : k->refined                                            ? "residual replacement goes by it"
             : k->live                                               ? "a monitor or test looks at every iteration"
             : !k->pc.row->rows                                      ? "the preconditioner is not part of a persistent kernel"
             : k->method == GPUKSP_CG_SINGLE_REDUCTION               ? GPUKSP_STANDARD_ALONE
             : longest > LONGEST_ROW && k->path == KSP_GPU_PATH_AUTO ? text
             : faster                                                ? gathers
                                                                     : "";
  k->taken = why[0] ? KSP_GPU_PATH_GRAPH : KSP_GPU_PATH_PERSISTENT;
  PetscCall(PetscStrncpy(k->why, why, sizeof(k->why)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- one function a path ---- */

static PetscErrorCode PrepareHostLoop(KSP ksp, KSP_GPU *k)
{
  PetscFunctionBegin;
  PetscCall(GPUKSPPCDiagonal(ksp, k));
  PetscCall(GPUKSPVectorsBorrowed(ksp, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PrepareGraph(KSP ksp, KSP_GPU *k)
{
  PetscFunctionBegin;
  PetscCall(GPUKSPPCMake(ksp, k));
  PetscCall(GPUKSPVectorsOwn(ksp, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Single precision, unless there is no memory for rounded values */
static PetscErrorCode PrepareRefinement(KSP ksp, KSP_GPU *k)
{
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PrepareGraph(ksp, k));
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = GPUKSPRefineMake(k);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCheck(!ierr || ierr == PETSC_ERR_MEM, PetscObjectComm((PetscObject)ksp), ierr, "%s", attempt.message);
  k->noroom = (PetscBool)(ierr != PETSC_SUCCESS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(GPUCSR_HAVE_CUDA)

/* Bytes of the matrix in a format; infinity if the format cannot hold it, or takes far too much memory */
static PetscErrorCode BytesIn(KSP_GPU *k, const GPUKSPFormat *f, const GPUCSRFormat *format, double least, double *bytes)
{
  const GPUCSRPlan *P = k->op.plan;
  GPUCSRStorage     A;
  GPUCSRExtent      extent;
  GPUCSRSource      s;
  PetscBool         can;
  char              why[128];

  PetscFunctionBegin;
  *bytes = PETSC_INFINITY;
  PetscCall((*format->ops->applicable)(&P->features, format->variant, P->A.precision, &can, why, sizeof(why)));
  if (!can || format == P->A.format) PetscFunctionReturn(PETSC_SUCCESS);
  if ((f->needs == GPUKSP_NEEDS_STENCILS && P->features.stencils <= 0) || (f->needs == GPUKSP_NEEDS_SAMPLE && !P->features.sampled)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*format->ops->estimate)(&P->features, format->variant, &extent));
  if (format->ops->measure && f->needs == GPUKSP_NEEDS_SAMPLE && 8.0 * (double)extent.stored < least && !(k->copy.built && k->copy.A.format == format)) { /* the features have only seen a sample */
    PetscCall(MatGPUCSROperatorSource_Private(&k->op, &s));
    PetscCall((*format->ops->measure)(&s, format->variant, &extent));
  }
  if ((double)extent.stored > GPUCSR_MOST_STORED(&P->features) / 16) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRStorageCreate(k->dev, format, &P->features, &extent, P->A.precision, &A));
  *bytes = GPUKSPBytes(&A, PETSC_FALSE);
  PetscCall(GPUCSRStorageDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The format for a persistent kernel's product; NULL: that of the plan. The best format for separate products need not be best here: an iteration launches nothing, and its product costs the bytes
  that it reads. So take the format of the list with the fewest bytes, if that is a tenth less than the plan's. If the plan's format is not in the list, take it if the plan's has at most SPARED bytes
  less. A format or kernel that the user asked for stays, if it is in the list.
*/
static PetscErrorCode Better(KSP_GPU *k, PetscBool takes)
{
  const GPUKSPFormatKey key   = {k->op.version, k->path, k->peers.on};
  const double          plan  = GPUKSPBytes(&k->op.plan->A, PETSC_FALSE);
  double                least = takes ? 0.9 * plan : plan + (k->peers.on ? SPARED_RANKS : SPARED), bytes;
  const GPUCSRFormat   *format;
  PetscBool             open;

  PetscFunctionBegin;
  if (GPUKSPSame(key, k->betterkey)) PetscFunctionReturn(PETSC_SUCCESS);
  k->better = NULL;
  PetscCall(GPUCSRRequestOpen(k->op.request, &open));
  if (!takes && k->path == KSP_GPU_PATH_PERSISTENT) least = PETSC_INFINITY;
  for (const GPUKSPFormat *f = GPUKSPFormats; f->name && (open || !takes); f++) {
    PetscCall(GPUCSRFormatFind(f->name, &format));
    PetscCall(BytesIn(k, f, format, least, &bytes));
    if (bytes < least) {
      least     = bytes;
      k->better = format;
    }
  }
  k->betterkey = key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of the matrix in that format, besides the plan. held: false if the values have changed since the features were computed, and the format cannot hold them */
static PetscErrorCode Copy(KSP_GPU *k, PetscBool *held)
{
  const GPUCSRPlan   *P    = k->op.plan;
  const GPUKSPCopyKey key  = {k->op.version.pattern, P->A.precision, k->better};
  PetscBool           same = (PetscBool)(k->copy.built && GPUKSPSame(key, k->copykey));
  GPUCSRRequest       q    = {"auto", "auto", GPUCSR_SELECT_ESTIMATE, 0, 0};
  GPUCSRSource        s;

  PetscFunctionBegin;
  *held = PETSC_TRUE;
  if (!same || k->copyvalues != k->op.version.values) {
    PetscCall(MatGPUCSROperatorSource_Private(&k->op, &s));
    PetscCall(PetscStrncpy(q.format, k->better->name, sizeof(q.format)));
    k->copyvalues = 0; /* until the new ones are there */
    if (same) PetscCall(GPUCSRPlanRefresh(&k->copy, &s, NULL, &same));
    if (!same && GPUKSPFormatIsTable(k->better)) {
      GPUCSRFeatures f = P->features;

      PetscCall(GPUCSRStencils(s.m, s.i, s.j, GPUCSR_PETSCINT, s.a, GPUCSR_DOUBLE, &f));
      *held = (PetscBool)(f.stencils > 0);
    }
    if (!*held) PetscFunctionReturn(PETSC_SUCCESS);
    if (!same) PetscCall(GPUCSRPlanBuild(k->dev, &s, P->A.precision, &q, &k->copy));
    k->copykey    = key;
    k->copyvalues = k->op.version.values;
  }
  k->S = &k->copy.A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For stencils: the most common one, and the diagonals of the preconditioner */
static PetscErrorCode Tables(KSP_GPU *k)
{
  const PetscBool       diagonal = (PetscBool)(k->pc.kind == GPUKSP_PC_DIAGONAL);
  const GPUKSPTablesKey key      = {k->op.version, k->S->array[0].data, diagonal ? k->nnumbers : 0};
  GPUKSPPersistent     *L        = &k->persistent;

  PetscFunctionBegin;
  if (GPUKSPSame(key, k->tableskey)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(&k->tableskey, sizeof(k->tableskey)));
  PetscCall(GPUKSPPersistentCommon(k->S, &L->common, k->dev->stream));
  PetscCall(GPUKSPPersistentDiagonals(k->S, diagonal ? (const double *)k->numbers.p : NULL, (double *)k->table.p, &L->same, k->dev->stream));
  k->tableskey = key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks and their rows; no block cuts a slice or a block of the preconditioner */
static PetscErrorCode Shape(KSP_GPU *k, PetscBool *possible)
{
  const GPUKSPShapeKey key = {k->op.version, k->S->array[0].data, k->pc.row, k->method, k->pc.bs, k->halo, k->peers.on ? k->peers.made : 0};
  GPUKSPPersistent    *L   = &k->persistent;

  PetscFunctionBegin;
  *possible = PETSC_TRUE;
  L->A      = k->S;
  if (GPUKSPSame(key, k->shapekey)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(&k->shapekey, sizeof(k->shapekey)));
  L->method = k->method;
  L->bounds = (int *)k->bounds.p;
  L->reach  = L->bounds + GPUKSP_BLOCKS + 1;
  L->slots  = k->slots.p;
  L->state  = k->state;
  PetscCall(GPUKSPPersistentShape(k->dev, L, possible, k->why, sizeof(k->why)));
  if (!*possible) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUKSPPersistentPartition(k->S, L->v.block ? L->v.bs : 1, L->blocks, &L->peers, L->bounds, k->dev->stream));
  k->plain.size    = L->size;
  k->plain.threads = L->threads;
  k->plain.shared  = L->shared;
  if (k->halo) PetscCall(GPUKSPPersistentHalo(L, k->dev->stream));
  k->shapekey = key;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* possible: false if a graph must solve; its data are then ready, and k->why says why */
static PetscErrorCode PreparePersistent(KSP ksp, KSP_GPU *k, PetscBool *possible)
{
  PetscFunctionBegin;
  *possible = PETSC_FALSE;
  PetscCall(PrepareGraph(ksp, k));
#if defined(GPUCSR_HAVE_CUDA)
  k->S      = &k->op.plan->A;
  *possible = GPUKSPPersistentTakes(k->S);
  PetscCall(Better(k, *possible));
  if (k->better) {
    PetscBool held;

    PetscCall(Copy(k, &held));
    if (held) *possible = PETSC_TRUE;
  }
  if (!*possible) {
    PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "format %s has no product that a persistent kernel could call, and is much smaller than one that has", k->S->format->name));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Tables(k));
  PetscCall(Shape(k, possible));
  k->with = k->S->format;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Device memory for residual norms, which PETSc gets after the solve. If a monitor or test reads each iteration, the host passes each norm on at once */
static PetscErrorCode PrepareHistory(KSP ksp, KSP_GPU *k)
{
  PetscFunctionBegin;
  if (k->live || k->taken == KSP_GPU_PATH_HOST_LOOP || !(ksp->res_hist || ksp->numbermonitors)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUKSPGrow(k, sizeof(double) * (size_t)PetscMin(HISTORY, (PetscInt64)ksp->max_it + 2), "the residual history of a solver", &k->hist));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Where one rank's device failed while PCJACOBI made its diagonal, which it does as it is first applied, that rank would make another vector of all ranks as it is applied again, and the others would not: what
  is made next would have different tags on them. So all make it anew.
*/
static PetscErrorCode ResetJacobi(KSP ksp, KSP_GPU *k)
{
  PetscBool jacobi;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  if (!jacobi) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCReset(ksp->pc));
  PetscCall(PetscMemzero(&k->numberskey, sizeof(k->numberskey)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For several ranks that solve together, each prepares its part, of one launch or of a graph. on: all could; if not, why says why */
static PetscErrorCode PrepareTogether(KSP ksp, KSP_GPU *k, PetscBool *on, char why[], size_t len)
{
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr     = PETSC_SUCCESS;
  PetscBool      possible = PETSC_TRUE, stale = PETSC_FALSE;
  int            any;

  PetscFunctionBegin;
  PetscCall(GPUCSRAttemptBegin(&attempt)); /* what each rank does by itself, */
  if (k->peers.on) ierr = GPUKSPPeersLists(ksp, k);
  if (!ierr) ierr = GPUKSPPCReserve(ksp, k, &stale);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCall(GPUKSPTogether(ksp, k, ierr, attempt.message, on, why, len));
  if (!*on) PetscFunctionReturn(PETSC_SUCCESS);
  any = stale; /* and then what is collective: taking the PC's numbers */
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
  if (any) PetscCall(PetscMemzero(&k->numberskey, sizeof(k->numberskey)));
  PetscCall(GPUCSRAttemptBegin(&attempt));
  if (k->taken == KSP_GPU_PATH_PERSISTENT) ierr = PreparePersistent(ksp, k, &possible);
  else {
    ierr     = PrepareGraph(ksp, k);
    possible = (PetscBool)(k->ranks.on || !k->dev->ops->kernels); /* k->why says why not */
  }
  if (!ierr) ierr = PrepareHistory(ksp, k);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCall(GPUKSPAgree(ksp, ierr || possible ? GPUKSPOutcomeOf(k, ierr) : GPUKSP_NO_DEVICE, ierr, ierr ? attempt.message : k->why, on, why, len));
  if (!*on) PetscCall(ResetJacobi(ksp, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One launch on each rank; where that cannot be, a graph; where that cannot be either, the host loop */
static PetscErrorCode PrepareRanks(KSP ksp, KSP_GPU *k)
{
  char why[256], text[256];

  PetscFunctionBegin;
  if (k->peers.on) {
    PetscCall(PrepareTogether(ksp, k, &k->peers.on, why, sizeof(why)));
    if (k->peers.on) {
      PetscCall(GPUKSPPeersBlocks(ksp, k));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(GPUKSPWhyNotRanks(ksp, k, why, text, sizeof(text)));
  }
  k->persistent.peers.size = 0;
  if (k->ranks.on) {
    k->taken = KSP_GPU_PATH_GRAPH;
    PetscCall(PrepareTogether(ksp, k, &k->ranks.on, why, sizeof(why)));
    if (k->ranks.on) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscSNPrintf(text, sizeof(text), "there are several processes, and on one of them %s", why));
  }
  PetscCall(PetscStrncpy(k->why, text, sizeof(k->why)));
  k->taken = KSP_GPU_PATH_HOST_LOOP;
  if (k->pc.kind == GPUKSP_PC_APART) k->pc.kind = GPUKSP_PC_ANY;
  PetscCall(PrepareHostLoop(ksp, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do the products of this solve take the sums of the steps that follow them? */
static PetscErrorCode PrepareSums(KSP_GPU *k)
{
  PetscFunctionBegin;
  k->nparts = 0;
  k->normed = PETSC_FALSE;
  k->fused  = (PetscBool)(k->taken == KSP_GPU_PATH_GRAPH && !k->refined && !k->peers.on && !k->ranks.on && GPUCSRPlanSums(k->op.plan));
  if (k->fused) PetscCall(GPUKSPGrow(k, sizeof(double) * GPUCSR_INNER * (size_t)GPUCSR_PARTS(k->n), "sums that a solver's products take", &k->parts));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prepares all of it. possible: this type can solve; if not, k->why says why */
static PetscErrorCode PrepareSolve(KSP ksp, KSP_GPU *k, PetscBool *possible)
{
  PetscFunctionBegin;
  PetscCall(GPUKSPOpen(k, k->op.dev));
  PetscCall(GPUKSPPCFind(ksp, k));
  PetscCall(GPUKSPLive(ksp, k));
  k->noroom = PETSC_FALSE;
  PetscCall(Choose(ksp, k));
  if (k->refined) {
    PetscCall(PrepareRefinement(ksp, k));
    if (k->noroom) PetscCall(Choose(ksp, k));
  }
  if (!k->peers.on) k->persistent.peers.size = 0;
  if (k->peers.on || k->ranks.on) PetscCall(PrepareRanks(ksp, k));
  else if (k->taken == KSP_GPU_PATH_PERSISTENT) {
    PetscBool had;

    PetscCall(PreparePersistent(ksp, k, &had));
    if (!had) k->taken = KSP_GPU_PATH_GRAPH;
  } else if (k->taken == KSP_GPU_PATH_HOST_LOOP) PetscCall(PrepareHostLoop(ksp, k));
  else if (!k->refined) PetscCall(PrepareGraph(ksp, k));
  PetscCheck(k->path == KSP_GPU_PATH_AUTO || k->path == k->taken || !k->dev->ops->kernels || k->live, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "-ksp_%s_path %s cannot be had here: %s; auto would take %s", ((PetscObject)ksp)->type_name, KSPGPUPaths[k->path], k->why, KSPGPUPaths[k->taken]);
  PetscCall(PrepareSums(k));
  PetscCall(PrepareHistory(ksp, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Several processes whose solve goes by MPI in every iteration though nobody asked for that: said once */
static PetscErrorCode WarnLoop(KSP ksp, KSP_GPU *k)
{
  static char told[512]; /* the same of another solver is no news */
  char        text[512];

  PetscFunctionBegin;
  if (k->taken != KSP_GPU_PATH_HOST_LOOP || k->path != KSP_GPU_PATH_AUTO || !k->dev->ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(text, sizeof(text), "KSP type %s takes the host loop on several processes, because %s", ((PetscObject)ksp)->type_name, k->why));
  if (strcmp(text, told)) PetscCall(GPUCSRWarn(text));
  PetscCall(PetscStrncpy(told, text, sizeof(told)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Prepares the solve, on all processes or on none. With several processes allocations come first, because they may fail on one process alone and what follows is collective. On one process any of it
  may fail; PETSc's method then solves.
*/
PetscErrorCode GPUKSPPrepare(KSP ksp, KSP_GPU *k, PetscBool *ok, char why[], size_t len)
{
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;
  PetscMPIInt    size;
  PetscBool      possible = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = size > 1 ? GPUKSPOpen(k, k->op.dev) : PrepareSolve(ksp, k, &possible);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCall(GPUKSPTogether(ksp, k, ierr, attempt.message, ok, why, len));
  if (*ok && size > 1) PetscCall(PrepareSolve(ksp, k, &possible));
  if (*ok && !possible) {
    *ok = PETSC_FALSE;
    PetscCall(PetscStrncpy(why, k->why, len));
  }
  if (!*ok) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetSize(ksp->vec_rhs, &k->rows));
  if (size > 1 && !k->solved) PetscCall(WarnLoop(ksp, k));
  k->solved = PETSC_TRUE;
  if (k->live && k->dev->ops->kernels && k->taken == KSP_GPU_PATH_GRAPH && !k->warnedlive) {
    k->warnedlive = PETSC_TRUE;
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "KSP type %s: a monitor or convergence test of this solve looks at every iteration, which costs a launch for each step; -ksp_monitor would not\n", ((PetscObject)ksp)->type_name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
