/*
  Preparation of a solve: the operator on a device, the choice of a path, and the data of the path. Data of an earlier solve are reused while their key (gpukspimpl.h) is the same.
*/
#include "gpukspimpl.h"
#include "../../petsc/methods.h"
#include "../../../pc/impls/gpuamg/gpuamg.h"

/* Most entries of the residual history on the device */
#define HISTORY 1000000

/* The matrix of one process, or the diagonal block, on a device. why: the reason against the device; empty: no reason */
PetscErrorCode GPUKSPOperator(KSP ksp, KSP_GPU *k, char why[])
{
  Mat           A, block;
  PetscBool     seq, mpi;
  char          whynot[GPUKSP_WHY] = "its blocks are not of type seqaijgpucsr", text[GPUKSP_WHY];
  GPUCSRAttempt attempt            = {0};
  PetscInt      M, N;

  PetscFunctionBegin;
  why[0] = 0;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &k->size));
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &seq));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJGPUCSR, &mpi));
  PetscCall(MatGetSize(A, &M, &N));
  if (!seq && !mpi) PetscCall(PetscSNPrintf(why, GPUKSP_WHY, "the operator is of type %s, not gpucsr", ((PetscObject)A)->type_name));
  else if (M != N) PetscCall(PetscStrncpy(why, "the operator is not square", GPUKSP_WHY));
  else if (ksp->calc_sings) PetscCall(PetscStrncpy(why, "singular values or eigenvalues were asked for", GPUKSP_WHY));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  block = A;
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &block, NULL, NULL));
  PetscCall(PetscObjectTypeCompare((PetscObject)block, MATSEQAIJGPUCSR, &seq));
  PetscCall(PetscMemzero(&k->op, sizeof(k->op)));
  if (seq) GPUCSRTry(&attempt, MatGPUCSROperatorGet_Private(block, PETSC_FALSE, &k->op, whynot, sizeof(whynot)));
  PetscCall(GPUKSPAgree(ksp, k, &attempt, k->op.dev ? "" : whynot, text));
  if (text[0]) PetscCall(PetscSNPrintf(why, GPUKSP_WHY, "the operator is on no device: %s", text));
  PetscCall(MatGetLocalSize(block, &M, NULL));
  k->n = (int)M;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the choice of a path: k->taken, why, and how; it computes nothing ---- */

/* The reason of this solve against a persistent kernel; NULL: no reason */
const char *GPUKSPWhyNoLaunch(const KSP_GPU *k)
{
  return k->path == KSP_GPU_PATH_GRAPH             ? "asked for"
         : k->live                                 ? "a monitor or test looks at every iteration"
         : !k->pc.row->rows                        ? "the preconditioner is not part of a persistent kernel"
         : k->method == GPUKSP_CG_SINGLE_REDUCTION ? "a persistent kernel has the standard conjugate gradients alone"
                                                   : NULL;
}

/*
  Is a graph faster than a persistent kernel in spite of its launches? Its products read a matrix from memory, entry by entry, at full bandwidth, and take most sums on the way. Stencils in a
  table suit the persistent kernel, which holds windows of their vectors in shared memory.

  BiCGStab: a persistent kernel computes its directions from two or three vectors at each entry, or writes them first if blocks have many rows. The rank with the most entries counts.

  CG: the blocks have ranges of rows far from each other. A large matrix pushes their neighbours' rows out of the last-level cache before the next read. A graph's products read each pair of diagonals
  once (format/dia.c); a matrix for CG is symmetric.
*/
static PetscErrorCode GraphIsFaster(KSP ksp, const KSP_GPU *k, PetscBool *faster)
{
  const GPUCSRPlan    *P     = k->op.plan;
  const PetscBool      there = (PetscBool)(P->A.format != NULL), table = (PetscBool)(P->features.stencils > 0 || (there && GPUKSPFormatIsTable(P->A.format))); /* a rank of several may have lost its device */
  const GPUCSRMachine *t   = GPUCSRMachineOf(k->size > 1 ? NULL : k->dev);
  double               nnz = (double)P->A.nnz;

  PetscFunctionBegin;
  *faster = PETSC_FALSE;
  if (k->path != KSP_GPU_PATH_AUTO || k->refined || GPUKSPWhyNoLaunch(k) || (k->size == 1 && !k->dev->ops->kernels)) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->method == GPUKSP_CG && k->size == 1)
    *faster = (PetscBool)(there && !table && GPUCSRPlanSums(P) && (GPUKSPBytes(&P->A, PETSC_FALSE) + 72.0 * k->n > t->cg_graph_traffic || (P->choice.kernel && P->choice.kernel->variant == 1 && GPUCSRPairedBytes(&P->A) > t->cg_graph_paired)));
  if (k->method != GPUKSP_BCGS) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->size > 1) {
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &nnz, 1, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
    *faster = (PetscBool)(nnz > t->bcgs_graph_entries_ranks);
  } else *faster = (PetscBool)(nnz > t->bcgs_graph_entries && (!table || nnz > t->bcgs_graph_row * k->n || k->pc.kind == GPUKSP_PC_BETWEEN_STEPS));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The kind of the PC, and the reason of any method for the host loop; NULL: no reason */
PetscErrorCode GPUKSPWhyHostLoop(KSP ksp, KSP_GPU *k, const char **why)
{
  Mat          A;
  MatNullSpace null, tnull;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatGetNullSpace(A, &null));
  PetscCall(MatGetTransposeNullSpace(A, &tnull));
  k->refined = k->peers.on = k->ranks.on = PETSC_FALSE;
  k->why[0] = k->whydouble[0] = 0;
  if (null || tnull || ksp->transpose_solve) k->pc.kind = GPUKSP_PC_BY_PCAPPLY;
  *why = k->path == KSP_GPU_PATH_HOST_LOOP ? "asked for" : null || tnull ? "the operator has a null space" : ksp->transpose_solve ? "it is a solve with the transpose" : k->pc.kind == GPUKSP_PC_BY_PCAPPLY ? "the preconditioner is PCApply()'s" : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- one launch ---- */

/* Bytes of the matrix in a format; infinity if the format cannot hold the matrix, or takes far too much memory */
static PetscErrorCode BytesIn(KSP_GPU *k, const GPUKSPFormat *f, const GPUCSRFormat *format, double least, double *bytes)
{
  const GPUCSRPlan *P = k->op.plan;
  GPUCSRStorage     A;
  GPUCSRExtent      extent;
  GPUCSRSource      s;
  char              why[128];

  PetscFunctionBegin;
  *bytes = PETSC_INFINITY;
  if (!GPUCSRFormatHolds(format, &P->features, why, sizeof(why)) || format == P->A.format) PetscFunctionReturn(PETSC_SUCCESS);
  if ((f->needs == GPUKSP_NEEDS_STENCILS && P->features.stencils <= 0) || (f->needs == GPUKSP_NEEDS_SAMPLE && !P->features.sampled)) PetscFunctionReturn(PETSC_SUCCESS);
  (*format->ops->estimate)(&P->features, format->variant, &extent);
  if (format->ops->measure && f->needs == GPUKSP_NEEDS_SAMPLE && 8.0 * (double)extent.stored < least && !(k->launch.copy.built && k->launch.copy.A.format == format)) { /* the features have only seen a sample */
    PetscCall(MatGPUCSROperatorSource_Private(&k->op, &s));
    PetscCall((*format->ops->measure)(&s, format->variant, &extent));
  }
  if ((double)extent.stored > GPUCSR_MOST_STORED(&P->features) / 16) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRStorageCreate(k->dev, format, &P->features, &extent, P->A.precision, &A));
  *bytes = GPUKSPBytes(&A, PETSC_FALSE);
  PetscCall(GPUCSRStorageDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes a copy of the matrix in another format than the plan's, unless the values have changed since the features were computed, and the format cannot hold them */
static PetscErrorCode Copy(KSP_GPU *k, PetscBool *takes)
{
  const GPUCSRPlan *P    = k->op.plan;
  const GPUKSPKey   key  = GPUKSPKeyOf(k->op.version.pattern, P->A.precision, GPUKSPAddress(k->launch.better));
  PetscBool         same = (PetscBool)(k->launch.copy.built && GPUKSPSame(key, k->keys.copy));
  GPUCSRRequest     q    = {"auto", "auto", GPUCSR_SELECT_ESTIMATE, 0, 0};
  GPUCSRFeatures    f    = P->features;
  GPUCSRSource      s;

  PetscFunctionBegin;
  if (!same || k->launch.copyvalues != k->op.version.values) {
    PetscCall(MatGPUCSROperatorSource_Private(&k->op, &s));
    PetscCall(PetscStrncpy(q.format, k->launch.better->name, sizeof(q.format)));
    k->launch.copyvalues = 0; /* until the new ones are there */
    if (same) PetscCall(GPUCSRPlanRefresh(&k->launch.copy, &s, NULL, &same));
    if (!same && GPUKSPFormatIsTable(k->launch.better)) PetscCall(GPUCSRStencils(s.m, s.i, s.j, GPUCSR_PETSCINT, s.a, GPUCSR_DOUBLE, &f));
    if (!same && GPUKSPFormatIsTable(k->launch.better) && f.stencils <= 0) PetscFunctionReturn(PETSC_SUCCESS);
    if (!same) PetscCall(GPUCSRPlanBuild(k->dev, &s, P->A.precision, &q, &k->launch.copy));
    k->keys.copy         = key;
    k->launch.copyvalues = k->op.version.values;
  }
  k->launch.S = &k->launch.copy.A;
  *takes      = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  k->why: the reason against one launch; empty: none.

  The plan has the best format for separate products. In a persistent kernel, products launch nothing and cost the bytes read. So take the format of the list with the fewest bytes, if it has a tenth
  less than the plan's format. If the plan's format is not in the list, take the format with the fewest bytes if the plan's has at most persistent_spared bytes less. A format or kernel of the user's
  choice stays, if the list has it.
*/
static PetscErrorCode PreparePersistent(KSP_GPU *k)
{
  const GPUKSPKey     key = GPUKSPKeyOf(GPUKSPVersionOf(k->op.version), GPUKSPAddress(k->op.plan->A.array[0].data), k->path, GPUKSPAddress(k->pc.row), k->pc.bs, k->pc.nnumbers, k->method, k->halo, k->peers.on ? k->peers.made : 0);
  GPUKSPLaunch       *l   = &k->launch;
  PetscBool           takes, open;
  double              plan, least, bytes;
  const GPUCSRFormat *format;

  PetscFunctionBegin;
  if (GPUKSPSame(key, k->keys.launch)) PetscFunctionReturn(PetscStrncpy(k->why, l->why, sizeof(k->why)));
  PetscCall(PetscMemzero(&k->keys.launch, sizeof(k->keys.launch)));
  l->S      = &k->op.plan->A;
  takes     = GPUKSPPersistentTakes(l->S);
  plan      = GPUKSPBytes(l->S, PETSC_FALSE);
  least     = takes ? 0.9 * plan : plan + (k->peers.on ? GPUCSRMachineShared.persistent_spared_ranks : GPUCSRMachineOf(k->dev)->persistent_spared);
  open      = GPUCSRRequestOpen(k->op.request);
  l->better = NULL;
  if (!takes && k->path == KSP_GPU_PATH_PERSISTENT) least = PETSC_INFINITY;
  for (const GPUKSPFormat *f = GPUKSPFormats; f->name && (open || !takes); f++) {
    format = GPUCSRFormatFind(f->name);
    PetscCall(BytesIn(k, f, format, least, &bytes));
    if (bytes < least) {
      least     = bytes;
      l->better = format;
    }
  }
  if (l->better) PetscCall(Copy(k, &takes));
  if (takes) {
    GPUKSPPersistent *L    = &k->persistent;
    GPUCSRBool        fits = 0;

    /* for stencils: the most common stencil, and the diagonals of the preconditioner */
    PetscCall(GPUCSREither(k->dev, GPUKSPPersistentCommon(l->S, &L->common, k->dev->stream), 0));
    PetscCall(GPUCSREither(k->dev, GPUKSPPersistentDiagonals(l->S, L->v.pc, (double *)l->table.p, &L->same, k->dev->stream), 0));
    /* blocks and their rows; no block cuts a slice or a block of the preconditioner */
    L->A      = l->S;
    L->method = k->method;
    L->bounds = (int *)l->bounds.p;
    L->reach  = L->bounds + GPUKSP_BLOCKS + 1;
    L->slots  = l->slots.p;
    L->state  = k->state;
    PetscCall(GPUCSREither(k->dev, GPUKSPPersistentShape(k->dev, L, &fits, k->why, sizeof(k->why)), 0));
    if (fits) {
      PetscCall(GPUCSREither(k->dev, GPUKSPPersistentPartition(l->S, L->v.block ? L->v.bs : 1, L->blocks, &L->peers, L->bounds, k->dev->stream), 0));
      l->plain.size    = L->size;
      l->plain.threads = L->threads;
      l->plain.shared  = L->shared;
      if (k->halo) PetscCall(GPUCSREither(k->dev, GPUKSPPersistentHalo(L, k->dev->stream), 0));
    }
  } else PetscCall(PetscSNPrintf(k->why, sizeof(k->why), "format %s has no product that a persistent kernel could call, and is much smaller than one that has", l->S->format->name));
  l->with = l->S->format;
  PetscCall(PetscStrncpy(l->why, k->why, sizeof(l->why)));
  k->keys.launch = key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the data of a path ---- */

static PetscErrorCode Lists(KSP ksp, KSP_GPU *k)
{
  return k->peers.on ? GPUKSPPeersLists(ksp, k) : PETSC_SUCCESS;
}

static PetscErrorCode Rest(KSP ksp, KSP_GPU *k)
{
  PetscFunctionBegin;
  if (k->taken == KSP_GPU_PATH_PERSISTENT) PetscCall(PreparePersistent(k));
  if (k->taken == KSP_GPU_PATH_HOST_LOOP) PetscCall(GPUKSPBegin(ksp, k));
  if (k->refined) PetscCall(GPUKSPRefineMake(k));
  /* fused: the products of this solve take the sums of their next steps */
  k->graph.nparts = 0;
  k->graph.normed = PETSC_FALSE;
  k->graph.fused  = (PetscBool)(k->taken == KSP_GPU_PATH_GRAPH && !k->refined && !k->peers.on && !k->ranks.on && GPUCSRPlanSums(k->op.plan));
  if (k->graph.fused) PetscCall(GPUCSRBufferGrow(k->dev, sizeof(double) * GPUCSR_INNER * (size_t)GPUCSR_MOST_PARTS(k->n), "sums that a solver's products take", &k->graph.parts));
  /* Residual norms, which PETSc gets after the solve. If a monitor or test reads each iteration, the host passes on each norm at once */
  if (!k->live && k->taken != KSP_GPU_PATH_HOST_LOOP && (ksp->res_hist || ksp->numbermonitors))
    PetscCall(GPUCSRBufferGrow(k->dev, sizeof(double) * (size_t)PetscMin(HISTORY, (PetscInt64)ksp->max_it + 2), "the residual history of a solver", &k->hist));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The data of a path, on all processes or, with a reason why, on none. refused: the reason of this process; empty: none. First comes what each process does by itself: an allocation may fail on one process
  alone. Collective work follows on all, whatever fails
*/
PetscErrorCode GPUKSPMake(KSP ksp, KSP_GPU *k, KSPGPUPath path, const GPUKSPParts *parts, const char refused[], char why[])
{
  GPUCSRAttempt attempt, numbers;
  PetscBool     stale = PETSC_FALSE;
  int           any;

  PetscFunctionBegin;
  k->taken  = path;
  k->why[0] = 0;
  GPUCSRTry(&attempt, (*parts->memory)(ksp, k));
  GPUCSRThen(&attempt, GPUKSPPCReserve(ksp, k, &stale));
  PetscCall(GPUKSPAgree(ksp, k, &attempt, refused, why));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  any = stale;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
  if (any) PetscCall(PetscMemzero(&k->keys.numbers, sizeof(k->keys.numbers)));
  GPUCSRTry(&attempt, (*parts->vectors)(ksp, k));
  GPUCSRTry(&numbers, GPUKSPPCMake(ksp, k));
  if (!attempt.error) attempt = numbers;
  if (parts->rest) GPUCSRThen(&attempt, (*parts->rest)(ksp, k));
  PetscCall(GPUKSPAgree(ksp, k, &attempt, k->why, why));
  /*
    PCJACOBI makes its diagonal in its first application. After a failure of one rank's device, this rank alone would create a parallel vector in the next application, and tags of later messages
    would differ. So all ranks reset the PC.
  */
  if (why[0] && k->size > 1 && k->taken != KSP_GPU_PATH_HOST_LOOP) {
    PetscBool jacobi;

    PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
    if (jacobi) {
      PetscCall(PCReset(ksp->pc));
      PetscCall(PetscMemzero(&k->keys.numbers, sizeof(k->keys.numbers)));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const GPUKSPParts parts = {Lists, GPUKSPVectorsMake, Rest};

/* ---- the paths, in the order of trial. why: the reason against the path, the same on all ranks; empty: none, and the path's data are ready ---- */

static PetscErrorCode TryLaunch(KSP ksp, KSP_GPU *k, char why[])
{
  const int   longest = k->op.plan->features.max;
  const char *refused;
  char        text[80];

  PetscFunctionBegin;
  why[0] = 0;
  if (k->size > 1) PetscCall(GPUKSPPeersGet(ksp, k, why));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  k->peers.on = (PetscBool)(k->size > 1);
  PetscCall(PetscSNPrintf(text, sizeof(text), "a row has %d entries, which a persistent kernel would wait for", longest));
  refused = k->peers.on ? NULL : !k->dev->ops->kernels ? "the host computes" : GPUKSPWhyNoLaunch(k);
  if (!refused) refused = k->refined ? "residual replacement goes by it" : longest > GPUCSRMachineShared.persistent_longest && k->path == KSP_GPU_PATH_AUTO ? text : "";
  PetscCall(GPUKSPMake(ksp, k, k->dev->ops->kernels ? KSP_GPU_PATH_PERSISTENT : KSP_GPU_PATH_GRAPH, &parts, refused, why));
  if (!k->peers.on) PetscFunctionReturn(PETSC_SUCCESS);
  k->peers.on = (PetscBool)!why[0];
  if (k->peers.on) PetscCall(GPUKSPPeersBlocks(ksp, k));
  else k->persistent.peers.size = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TryGraph(KSP ksp, KSP_GPU *k, char why[])
{
  PetscFunctionBegin;
  why[0] = 0;
  if (k->size > 1) PetscCall(GPUKSPRanksGet(ksp, k, why));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  k->ranks.on = (PetscBool)(k->size > 1);
  PetscCall(GPUKSPMake(ksp, k, KSP_GPU_PATH_GRAPH, &parts, "", why));
  if (why[0] && k->refined) {
    k->refined = PETSC_FALSE;
    PetscCall(PetscStrncpy(k->whydouble, why, sizeof(k->whydouble)));
    PetscCall(GPUKSPMake(ksp, k, KSP_GPU_PATH_GRAPH, &parts, "", why));
  }
  if (why[0]) k->ranks.on = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before the choice of a path: the memory of all solves, the preconditioner, and who looks at iterations. Ranks agree on these */
PetscErrorCode GPUKSPPrepareBegin(KSP ksp, KSP_GPU *k, char why[])
{
  GPUCSRAttempt attempt, found;
  PetscBool     monitors, test;
  PetscInt      rows[2];
  int           most[4];

  PetscFunctionBegin;
  GPUCSRTry(&attempt, GPUKSPOpen(k, k->op.dev));
  GPUCSRTry(&found, GPUKSPPCFind(ksp, k));
  if (!attempt.error) attempt = found;
  PetscCall(GPUKSPAgree(ksp, k, &attempt, "", why));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPMethodsLooked_Private(ksp, &monitors, &test));
  most[0] = (int)k->pc.kind;
  most[1] = -(int)k->pc.kind;
  most[2] = monitors || test;
  PetscCall(VecGetLocalSize(ksp->vec_rhs, &rows[0]));
  PetscCall(VecGetLocalSize(ksp->vec_sol, &rows[1]));
  most[3] = rows[0] != k->n || rows[1] != k->n;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, most, 4, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
  PetscCheck(!most[3], PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_SIZ, "The right-hand side or the solution has another local size than the operator, on this rank %" PetscInt_FMT " and %" PetscInt_FMT ", not %d", rows[0], rows[1], k->n);
  if (most[0] != -most[1]) k->pc.kind = GPUKSP_PC_BY_PCAPPLY; /* a rank may lack the device's data of its neighbours, a factor for example */
  k->live = (PetscBool)most[2];                               /* all ranks stop for a monitor of one */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prepares the solve, on all processes or, with a reason why, on none: then PETSc's method solves */
PetscErrorCode GPUKSPPrepare(KSP ksp, KSP_GPU *k, char why[])
{
  PetscFunctionBegin;
  PetscCall(PCGPUAMGFlexible_Private(ksp->pc, &k->pc.flexible));
  if (k->method != GPUKSP_BCGS) k->method = k->variant == KSP_GPU_SINGLE_REDUCTION && !k->pc.flexible ? GPUKSP_CG_SINGLE_REDUCTION : GPUKSP_CG;
  k->single.replacements   = 0;
  k->persistent.peers.size = 0;
  PetscCall(VecGetSize(ksp->vec_rhs, &k->rows));
  PetscCall(GPUKSPPrepareBegin(ksp, k, why));
  if (!why[0]) { /* take the first possible path */
    char        launch[GPUKSP_WHY] = "a graph is faster for so many entries", graph[GPUKSP_WHY] = "", text[GPUKSP_WHY];
    const char *loop;
    PetscBool   faster;

    PetscCall(GPUKSPWhyHostLoop(ksp, k, &loop));
    if (!loop) {
      if (k->size == 1) PetscCall(GPUKSPRefineChoose(k));
      PetscCall(GraphIsFaster(ksp, k, &faster));
      if (faster) PetscCall(TryGraph(ksp, k, graph));
      if (!faster || graph[0]) PetscCall(TryLaunch(ksp, k, launch));
      if (launch[0] && k->size > 1 && k->path == KSP_GPU_PATH_PERSISTENT) PetscCall(PetscStrncpy(graph, launch, sizeof(graph)));
      else if (!faster && launch[0]) PetscCall(TryGraph(ksp, k, graph));
    }
    why[0] = 0;
    if (!loop && launch[0] && graph[0]) { /* the reasons against the other paths */
      PetscBool same;

      PetscCall(PetscStrcmp(graph, launch, &same));
      same = (PetscBool)(same || k->path == KSP_GPU_PATH_GRAPH);
      PetscCall(PetscSNPrintf(text, GPUKSP_WHY, "%s%s%s%s", k->size > 1 ? "there are several processes, and " : "", same ? graph : launch, same ? "" : "; for a graph, ", same ? "" : graph));
      if (k->path == KSP_GPU_PATH_AUTO && k->dev->ops->kernels) {
        PetscCall(PetscStrlcat(text, ": -ksp_type ", GPUKSP_WHY));
        PetscCall(PetscStrlcat(text, k->petsc, GPUKSP_WHY));
        PetscCall(PetscStrlcat(text, " is faster there", GPUKSP_WHY));
      }
    } else PetscCall(PetscStrncpy(text, loop ? loop : launch, sizeof(text)));
    if (loop || (launch[0] && graph[0])) { /* PETSc may have to apply a PC of any type */
      PetscCall(PetscStrncpy(k->whydouble, "the host loop is in double", sizeof(k->whydouble)));
      if (k->pc.kind == GPUKSP_PC_BETWEEN_STEPS) k->pc.kind = GPUKSP_PC_BY_PCAPPLY;
      PetscCall(GPUKSPMake(ksp, k, KSP_GPU_PATH_HOST_LOOP, &parts, "", why));
    }
    PetscCall(PetscStrncpy(k->why, text, sizeof(k->why)));
  }
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(k->path == KSP_GPU_PATH_AUTO || k->path == k->taken || !k->dev->ops->kernels || k->live, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "-ksp_%s_path %s is not possible here: %s; auto would take %s", ((PetscObject)ksp)->type_name, KSPGPUPaths[k->path], k->why, KSPGPUPaths[k->taken]);
  if (k->size > 1 && !k->solved && k->taken == KSP_GPU_PATH_HOST_LOOP && k->path == KSP_GPU_PATH_AUTO && k->dev->ops->separate) {
    static char told[512];
    char        text[512];

    /* say once that every iteration uses MPI without the user's choice, and do not repeat the reason of another solver */
    PetscCall(PetscSNPrintf(text, sizeof(text), "KSP type %s takes the host loop on several processes, because %s", ((PetscObject)ksp)->type_name, k->why));
    if (strcmp(text, told)) PetscCall(GPUCSRWarn(text));
    PetscCall(PetscStrncpy(told, text, sizeof(told)));
  }
  k->solved = PETSC_TRUE;
  if (k->live && k->dev->ops->kernels && k->taken == KSP_GPU_PATH_GRAPH && !k->warnedlive) {
    k->warnedlive = PETSC_TRUE;
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "KSP type %s: a monitor or convergence test reads every iteration, which costs a launch for each step; -ksp_monitor does not\n", ((PetscObject)ksp)->type_name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
