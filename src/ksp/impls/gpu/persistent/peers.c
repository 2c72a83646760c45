/*
  A solve by several ranks of one host without MPI: the exchange lists, and the data of the other ranks for each launch (peers.cuh). On the host backend the twin runs the steps of iterate.c with
  the same exchanges and the same sums, through shared memory.
*/
#include "../common/gpukspimpl.h"
#include <limits.h>

/* ---- memory that other ranks write to: slots of sums, then the inbox. The host twin has one slot a rank ---- */

typedef struct {
  uint64_t flag;
  double   sum[GPUKSP_GRID_SUMS];
} Part;

/* In a kernel every entry of the inbox carries a flag; in the host twin one flag a rank precedes its entries */
static size_t InboxEach(const KSP_GPU *k)
{
  return k->dev->ops->kernels ? 16 : sizeof(double);
}

/* ---- the lists of GPUKSPPeers: the off-diagonal block, and the entries to send ---- */

/* Rows and stored entries of the off-diagonal block as sliced ELL of its nonempty rows */
static void Count(const GPUCSRSource *s, int *rows, int64_t *stored)
{
  int wide = 0;

  *rows   = 0;
  *stored = 0;
  for (int i = 0; i < s->m; i++) {
    const int n = s->i[i + 1] - s->i[i];

    if (!n) continue;
    if ((*rows)++ % GPUCSR_SLICE == 0) wide = 0;
    *stored += GPUCSR_SLICE * (PetscMax(wide, n) - wide);
    wide = PetscMax(wide, n);
  }
}

/* All lists, written on the host in the order of the one piece of memory on the device; values are rounded if the diagonal block's are */
static PetscErrorCode Lists(KSP_GPU *k, Mat Ao)
{
  GPUKSPPeers   *o   = &k->persistent.peers;
  GPUCSROperator off = {.A = Ao};
  GPUCSRSource   s;
  int64_t        stored;
  size_t         bytes = 0;
  int           *row, *slice, *col, *sendrow;
  void         **sendto;
  double        *val, *sums;
  char          *lists;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorSource_Private(&off, &s));
  Count(&s, &o->rows, &stored);
  o->weight = o->rows ? (int)(2 * s.nnz / o->rows) + 4 : 0;
  {
    const struct {
      size_t bytes;
      void **host, **device;
    } list[] = {
      {sizeof(int) * (size_t)o->rows,                      (void **)&row,     (void **)&o->row    },
      {sizeof(int) * (size_t)(o->rows / GPUCSR_SLICE + 2), (void **)&slice,   (void **)&o->slice  },
      {sizeof(int) * (size_t)stored,                       (void **)&col,     (void **)&o->col    },
      {sizeof(double) * (size_t)stored,                    (void **)&val,     (void **)&o->val    },
      {sizeof(int) * (size_t)o->nsend,                     (void **)&sendrow, (void **)&o->sendrow},
      {sizeof(void *) * (size_t)o->nsend,                  (void **)&sendto,  (void **)&o->sendto },
      {sizeof(double) * (size_t)o->rows,                   (void **)&sums,    (void **)&o->sums   },
    };
    size_t at = 0;

    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(list); q++) bytes += GPUCSRAlignUp(list[q].bytes);
    PetscCall(GPUCSRBufferGrow(k->dev, bytes, "the off-diagonal block of a solver", &k->peers.lists));
    PetscCall(PetscCalloc1(bytes, &lists));
    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(list); at += GPUCSRAlignUp(list[q++].bytes)) {
      *list[q].host   = lists + at;
      *list[q].device = (char *)k->peers.lists.p + at;
    }
  }
  for (int64_t e = 0; e < stored; e++) col[e] = -1;
  for (int i = 0, q = 0; i < s.m; i++) {
    const int n = s.i[i + 1] - s.i[i], l = q / GPUCSR_SLICE;

    if (!n) continue;
    slice[l + 1] = PetscMax(slice[l + 1], slice[l] + n);
    for (int e = 0; e < n; e++) {
      const int64_t to = GPUCSR_SLICE * (int64_t)(slice[l] + e) + q % GPUCSR_SLICE;

      col[to] = o->tail + (int)s.j[s.i[i] + e];
      val[to] = (double)PetscRealPart(s.a[s.i[i] + e]);
    }
    row[q++] = i;
  }
  for (int q = 0; q < o->nsend; q++) {
    const GPUCSRSend *to = &k->peers.sends[q];

    sendrow[q] = (int)to->row;
    sendto[q]  = (char *)o->memory[to->rank] + o->inbox + InboxEach(k) * (size_t)to->slot;
  }
  ierr = GPUCSRUpload(k->dev, k->peers.lists.p, GPUCSR_INT32, lists, GPUCSR_INT32, bytes / sizeof(int32_t), PETSC_FALSE, k->dev->stream, NULL);
  if (!ierr) ierr = k->dev->ops->streamsynchronize(k->dev->id, k->dev->stream);
  PetscCall(PetscFree(lists));
  PetscFunctionReturn(ierr);
}

/* Not collective. With the current values */
PetscErrorCode GPUKSPPeersLists(KSP ksp, KSP_GPU *k)
{
  Mat       A, Ao;
  GPUKSPKey now;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &Ao, NULL));
  now = GPUKSPKeyOf(((PetscObject)Ao)->id, ((PetscObject)Ao)->state);
  if (k->peers.lists.p && GPUKSPSame(now, k->keys.block)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(&k->keys.block, sizeof(k->keys.block)));
  PetscCall(Lists(k, Ao));
  k->keys.block = now;
  k->peers.made++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the group of ranks ---- */

/* Collective, and not during a solve: frees everything */
PetscErrorCode GPUKSPPeersRelease(KSP_GPU *k)
{
  PetscFunctionBegin;
  if (k->peers.group) {
    if (k->peers.group->all) PetscCall(GPUCSRPeersFree(k->peers.group, k->peers.memory));
    PetscCall(GPUCSRPeersDestroy(&k->peers.group));
  }
  PetscCall(PetscFree(k->peers.sends));
  PetscCall(PetscMemzero(&k->keys.block, sizeof(k->keys.block)));
  PetscCall(PetscMemzero(&k->keys.pattern, sizeof(k->keys.pattern)));
  k->peers.memory[0] = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Memory that the other ranks can address, for this pattern */
static PetscErrorCode Exchange(KSP_GPU *k, Mat A)
{
  GPUKSPPeers *o = &k->persistent.peers;
  GPUCSRPeers  g = k->peers.group;
  Mat          Ao;
  PetscInt     halo;

  PetscFunctionBegin;
  PetscCall(PetscFree(k->peers.sends));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &Ao, NULL));
  PetscCall(MatGetLocalSize(Ao, NULL, &halo));
  o->rank  = (int)g->rank;
  o->size  = (int)g->size;
  o->halo  = (int)halo;
  o->tail  = (k->n + GPUCSR_SLICE - 1) / GPUCSR_SLICE * GPUCSR_SLICE;
  o->inbox = (k->dev->ops->kernels ? GPUKSP_SLOTS_BYTES : 2 * sizeof(Part) + sizeof(uint64_t)) * (size_t)g->size;
  o->watch = GPUCSRPeersWatch(g);
  PetscCall(MatGPUCSRRanksSends_Private(A, &k->peers.sends, &o->nsend));
  o->apart = o->halo;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &o->apart, 1, MPI_INT, MPI_MAX, g->comm));
  PetscCall(GPUCSRPeersMalloc(g, o->inbox + InboxEach(k) * 2 * (size_t)o->apart, "the exchange of a solve", k->peers.memory));
  for (int r = 0; r < o->size; r++) o->memory[r] = k->peers.memory[r];
  k->peers.sequence   = 0;
  k->persistent.epoch = 1;
  PetscCall(PetscMemzero(&k->keys.block, sizeof(k->keys.block)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective, with the same answer on all ranks: can they solve together? why: the reason against it; empty: none. If any rank's lists are stale (another pattern, another device, or a rank that gave up), all
  ranks make new lists.
*/
PetscErrorCode GPUKSPPeersGet(KSP ksp, KSP_GPU *k, char why[])
{
  const MPI_Comm   comm = PetscObjectComm((PetscObject)ksp);
  GPUKSPKey        now;
  Mat              A, Ad, Ao;
  PetscObjectState state;
  int              stale[4], any[4];
  const char      *whynot;
  GPUCSRAttempt    attempt;

  PetscFunctionBegin;
  why[0] = 0;
  whynot = k->size > GPUKSP_PEERS ? "there are too many" : GPUKSPWhyNoLaunch(k);
  if (!whynot && k->precision != KSP_GPU_DOUBLE) whynot = "residual replacement is for one";
  if (whynot) PetscFunctionReturn(PetscStrncpy(why, whynot, GPUKSP_WHY));
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, NULL));
  PetscCall(MatGetNonzeroState(A, &state));
  now      = GPUKSPKeyOf(((PetscObject)Ad)->id, ((PetscObject)Ao)->id, state);
  stale[0] = !k->peers.group || k->peers.dev != k->dev || (k->peers.group->all && k->peers.group->control->dead) || k->persistent.epoch > UINT_MAX / 2;
  stale[1] = !GPUKSPSame(now, k->keys.pattern);
  stale[2] = !k->dev->ops->kernels;
  stale[3] = k->op.plan->A.precision != GPUCSR_PRECISION_DOUBLE;
  PetscCallMPI(MPI_Allreduce(stale, any, 4, MPI_INT, MPI_MAX, comm));
  if (any[2] && k->path == KSP_GPU_PATH_AUTO) whynot = "the host computes"; /* solving together would gain nothing */
  else if (any[3]) whynot = "the matrix is not in double on every rank";
  if (whynot) PetscFunctionReturn(PetscStrncpy(why, whynot, GPUKSP_WHY));
  if (any[0]) {
    PetscCall(GPUKSPPeersRelease(k));
    k->peers.dev = k->dev;
    PetscCall(GPUCSRPeersCreate(comm, k->dev, &k->peers.group));
  }
  if (!k->peers.group->all || (k->peers.group->shared && k->path == KSP_GPU_PATH_AUTO)) PetscFunctionReturn(PetscStrncpy(why, k->peers.group->all ? "several of the processes have the same GPU" : k->peers.group->why, GPUKSP_WHY));
  if (any[0] || any[1]) {
    PetscCall(GPUCSRPeersFree(k->peers.group, k->peers.memory));
    PetscCall(PetscMemzero(&k->keys.pattern, sizeof(k->keys.pattern)));
    GPUCSRTry(&attempt, Exchange(k, A)); /* an error is the same on all ranks */
    if (attempt.error) PetscFunctionReturn(PetscStrncpy(why, attempt.message, GPUKSP_WHY));
    k->keys.pattern = now;
  }
  k->persistent.peers.size = (int)k->peers.group->size; /* an earlier solve may have taken another path */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Counts the blocks of all launches, once their shapes are known. Either all ranks recompute halos or none, because all must take equally many reductions */
PetscErrorCode GPUKSPPeersBlocks(KSP ksp, KSP_GPU *k)
{
  GPUKSPPeers *o       = &k->persistent.peers;
  const int    mine[2] = {k->persistent.blocks, (int)k->persistent.halo};
  int          all[GPUKSP_PEERS][2];
  PetscBool    halo = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, PetscObjectComm((PetscObject)ksp)));
  o->before = o->all = 0;
  for (int r = 0; r < o->size; r++) {
    if (r < o->rank) o->before += all[r][0];
    o->all += all[r][0];
    if (!all[r][1]) halo = PETSC_FALSE;
  }
  if (k->persistent.halo && !halo) {
    k->persistent.halo    = PETSC_FALSE;
    k->persistent.size    = k->launch.plain.size;
    k->persistent.threads = k->launch.plain.threads;
    k->persistent.shared  = k->launch.plain.shared;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the host twin ---- */

/* Sums over the ranks, in rank order: the same bits on each. Two sets of parts suffice, since no rank is ahead by more than one reduction */
PetscErrorCode GPUKSPPeersReduce(KSP_GPU *k, double sum[], int n)
{
  const GPUKSPPeers *o    = &k->persistent.peers;
  const uint64_t     now  = ++k->peers.sequence;
  const size_t       set  = (size_t)(now % 2) * (size_t)o->size;
  const Part        *mine = (const Part *)o->memory[o->rank] + set;

  PetscFunctionBegin;
  for (int r = 0; r < o->size; r++) {
    Part *part = (Part *)o->memory[r] + set + o->rank;

    for (int q = 0; q < n; q++) part->sum[q] = sum[q];
    GPUCSRPeerPublish(&part->flag, now);
  }
  for (int q = 0; q < n; q++) sum[q] = 0;
  for (int r = 0; r < o->size; r++) {
    PetscCall(GPUCSRPeerAwait(k->peers.group, &mine[r].flag, now));
    for (int q = 0; q < n; q++) sum[q] += mine[r].sum[q];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A neighbour's flag in an inbox, the count of its exchanges; the entries follow */
static uint64_t *Flag(const KSP_GPU *k, PetscMPIInt of, PetscMPIInt from)
{
  const GPUKSPPeers *o = &k->persistent.peers;

  return (uint64_t *)((char *)o->memory[of] + o->inbox) - o->size + from;
}

/* Fills the halo of a vector, behind its own entries. All ranks synchronise afterwards, so that no rank writes into an inbox before its owner has read it */
PetscErrorCode GPUKSPPeersExchange(KSP_GPU *k, double *v)
{
  const GPUKSPPeers *o   = &k->persistent.peers;
  const uint64_t     now = k->peers.sequence + 1;

  PetscFunctionBegin;
  PetscCall(k->dev->ops->streamsynchronize(k->dev->id, k->dev->stream));
  for (int q = 0; q < o->nsend; q++) *(double *)o->sendto[q] = v[o->sendrow[q]];
  for (int r = 0; r < o->size; r++) GPUCSRPeerPublish(Flag(k, r, o->rank), now);
  for (int r = 0; r < o->size; r++) PetscCall(GPUCSRPeerAwait(k->peers.group, Flag(k, o->rank, r), now));
  PetscCall(PetscArraycpy(v + o->tail, (const double *)((const char *)o->memory[o->rank] + o->inbox), o->halo));
  PetscCall(GPUKSPPeersReduce(k, NULL, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z += the off-diagonal block times x, whose halo is filled */
PetscErrorCode GPUKSPPeersAdd(KSP_GPU *k, const double *x, double *z)
{
  const GPUKSPPeers *o = &k->persistent.peers;

  PetscFunctionBegin;
  PetscCall(k->dev->ops->streamsynchronize(k->dev->id, k->dev->stream));
  for (int q = 0; q < o->rows; q++) {
    double sum = 0;

    for (int e = o->slice[q / GPUCSR_SLICE]; e < o->slice[q / GPUCSR_SLICE + 1]; e++) {
      const int64_t at = GPUCSR_SLICE * (int64_t)e + q % GPUCSR_SLICE;

      if (o->col[at] >= 0) sum += o->val[at] * x[o->col[at]];
    }
    z[o->row[q]] += sum;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
