/*
  The hierarchy: level by level an eigenvalue estimate, aggregates, a prolongator and a Galerkin product, then the inverse of the coarsest matrix. Patterns and values are apart, so that new values take
  the second half alone.
*/
#include "amg.h"
#include "../../../../../sys/gpucsrsys.h"

/* Temporary memory is freed before the next pieces are allocated, so the pool gives the same memory again: growth of a pool takes longer than most steps */
PetscErrorCode GPUAMGTemporaries(GPUAMG *h)
{
  PetscFunctionBegin;
  for (int t = 0; t < GPUAMG_TEMPS; t++) PetscCall(GPUCSRBufferFree(h->dev, &h->temp[t]));
  h->normed = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- events ---- */

static GPUCSRLogEvent events[GPUAMG_PHASES];

PetscErrorCode GPUAMGRegister(PetscClassId id)
{
  static const char *const names[] = {"GPUAMGEigen", "GPUAMGStrength", "GPUAMGAggregate", "GPUAMGProlong", "GPUAMGGalerkin", "GPUAMGCoarse", "GPUAMGBuild", "GPUAMGSend"};

  PetscFunctionBegin;
  for (int k = 0; k < GPUAMG_PHASES; k++) PetscCall(GPUCSRLogRegister(names[k], id, &events[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUAMGPhaseBegin(GPUAMG *h, GPUAMGPhases phase)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRLogBegin(&events[phase], h->dev, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Waits for the device only if times will be reported */
PetscErrorCode GPUAMGPhaseEnd(GPUAMG *h, GPUAMGPhases phase, PetscErrorCode ierr)
{
  PetscFunctionBegin;
  if (!ierr && h->dev && GPUCSRSettingsGlobal.report) PetscCall(h->dev->ops->streamsynchronize(h->dev->id, h->dev->stream));
  PetscCall(GPUCSRLogEnd(&events[phase], h->dev, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the diagonal and the largest eigenvalue ---- */

/* The limit of the norms of powers: the largest eigenvalue in size of a small matrix by columns */
double GPUAMGRadius(int m, const double *H, int ld)
{
  double B[GPUAMG_STEPS][GPUAMG_STEPS], C[GPUAMG_STEPS][GPUAMG_STEPS], size = 0, power = 1;

  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++) B[i][j] = i <= j + 1 ? H[j * ld + i] : 0;
  for (int q = 0; q < 12; q++) {
    double most = 0;

    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++) most = PetscAbsReal(B[i][j]) <= most ? most : PetscAbsReal(B[i][j]); /* or no number */
    if (!(most > 0)) return most;
    size += PetscLogReal(most) / power;
    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++) {
        C[i][j] = 0;
        for (int k = 0; k < m; k++) C[i][j] += B[i][k] / most * (B[k][j] / most);
      }
    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++) B[i][j] = C[i][j];
    power *= 2;
  }
  return PetscExpReal(size);
}

/* What an eigenvalue estimate leaves on the device: flags, and the small matrix of Arnoldi's method by columns */
typedef struct {
  double  H[GPUAMG_STEPS * (GPUAMG_STEPS + 1)], norm[GPUAMG_STEPS + 1];
  int32_t flag, done;
} Estimate;

/* to = M^-1 from, for a smoother's M that is no diagonal */
typedef PetscErrorCode (*Inverse)(GPUAMG *, int l, void *, const double *from, double *to);

/* Arnoldi's method from numbers by chance. inverse: in place of the diagonal's; NULL: the diagonal's */
static PetscErrorCode Arnoldi(GPUAMG *h, int l, int steps, Inverse inverse, void *of, Estimate *e)
{
  GPUAMGLevel     *L   = &h->level[l];
  const GPUAMGOps *ops = GPUAMGOf(h->dev);
  GPUAMGArnoldi    a   = {.n = L->n, .ld = GPUCSRAlignUp(sizeof(double) * (size_t)L->n) / sizeof(double), .dinv = (const double *)L->dinv.p, .norm = e->norm, .done = (int *)&e->done};
  double          *z, *to = NULL;
  GPUAMGWork       w = {0};

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * a.ld * (size_t)(steps + 2), "vectors of an eigenvalue estimate", &h->temp[GPUAMG_TEMP_VECTORS]));
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * GPUAMG_PARTS, "sums of an eigenvalue estimate", &h->temp[GPUAMG_TEMP_PARTS]));
  a.V = (double *)h->temp[GPUAMG_TEMP_VECTORS].p;
  a.z = z = a.V + a.ld * (size_t)(steps + 1);
  a.part  = (double *)h->temp[GPUAMG_TEMP_PARTS].p;
  w.basis = a.V;
  PetscCall((*ops->rows)(h->dev, GPUAMG_START, L->n, &w));
  if (inverse) {
    PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * a.ld, "vectors of an eigenvalue estimate", &h->temp[GPUAMG_TEMP_BLOCKED]));
    a.z = to = (double *)h->temp[GPUAMG_TEMP_BLOCKED].p;
    a.dinv   = NULL;
  }
  PetscCall((*ops->orthogonalize)(h->dev, &a, 0));
  for (int k = 0; k < steps; k++) {
    const GPUCSRProduct p = {.alpha = 1, .x = a.V + (size_t)k * a.ld, .z = z, .last = L->n, .doubles = PETSC_TRUE};

    PetscCall(GPUCSRPlanProduct(L->plan, &p, h->dev->stream));
    if (inverse) PetscCall((*inverse)(h, l, of, z, to));
    a.h = e->H + k * (GPUAMG_STEPS + 1);
    PetscCall((*ops->orthogonalize)(h->dev, &a, k + 1));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Estimates the largest eigenvalue of M^-1 A for a level's smoother */
PetscErrorCode GPUAMGBound(GPUAMG *h, int l, Inverse inverse, void *of)
{
  GPUAMGLevel *L     = &h->level[l];
  const int    steps = PetscMin(h->o.steps, L->n);
  Estimate     host, *e;

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(*e), "an eigenvalue estimate", &h->temp[GPUAMG_TEMP_FLAG]));
  e = (Estimate *)h->temp[GPUAMG_TEMP_FLAG].p;
  PetscCall(h->dev->ops->zero(h->dev->id, e, sizeof(*e), h->dev->stream));
  PetscCall(Arnoldi(h, l, steps, inverse, of, e));
  PetscCall(GPUCSRRead(h->dev, &host, e, sizeof(host)));
  PetscCall(GPUCSRBufferFree(h->dev, &h->temp[GPUAMG_TEMP_VECTORS]));
  L->bound = GPUAMGRadius(steps, host.H, GPUAMG_STEPS + 1);
  if (!(L->bound >= 0 && L->bound < 1e300)) h->problem = GPUAMG_NAN;
  if (!(L->bound > 0)) L->bound = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Blocks(GPUAMG *h, int l, void *of, const double *from, double *to)
{
  const GPUAMGLevel *L = &h->level[l];
  const GPUAMGWork   w = {.bs = L->bs, .coarse = (double *)L->smooth.p, .norm = (double *)from, .basis = to};

  PetscFunctionBegin;
  (void)of;
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_TIMES, L->n, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal of a level, and an estimate of the largest eigenvalue where a smoother needs one. All in one question to the device */
static PetscErrorCode Values(GPUAMG *h, int l, GPUCSRBool smoothed)
{
  GPUAMGLevel *L     = &h->level[l];
  const int    steps = PetscMin(h->o.steps, L->n);
  GPUAMGWork   w     = {.A = GPUAMGRowsOf(&L->A)};
  Estimate     host, *e;
  int          flag;

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (size_t)L->n, "the diagonal of a level", &L->dinv));
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(*e), "an eigenvalue estimate", &h->temp[GPUAMG_TEMP_FLAG]));
  e      = (Estimate *)h->temp[GPUAMG_TEMP_FLAG].p;
  w.dinv = (double *)L->dinv.p;
  w.flag = &e->flag;
  if (!l && h->o.drop == GPUAMG_ASK) {
    PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (size_t)L->n, "norms of a graph", &h->temp[GPUAMG_TEMP_NORM]));
    w.norm    = (double *)h->temp[GPUAMG_TEMP_NORM].p;
    h->normed = PETSC_TRUE;
  }
  PetscCall(h->dev->ops->zero(h->dev->id, e, sizeof(*e), h->dev->stream));
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_DIAGONAL, L->n, &w));
  if (smoothed) PetscCall(Arnoldi(h, l, steps, NULL, NULL, e));
  PetscCall(GPUCSRRead(h->dev, &host, e, sizeof(host)));
  PetscCall(GPUCSRBufferFree(h->dev, &h->temp[GPUAMG_TEMP_VECTORS]));
  flag = host.flag & ~GPUAMG_NEGATIVE;
  if (!l) h->negative = (GPUCSRBool)(flag != host.flag);
  if (l) flag &= ~GPUAMG_ZERO; /* a coarse row with a zero diagonal is smoothed as if the diagonal were 1 */
  L->lambda = smoothed ? GPUAMGRadius(steps, host.H, GPUAMG_STEPS + 1) : 1;
  if (!flag && smoothed && !(L->lambda > 0 && L->lambda < 1e300)) flag = L->lambda == 0 ? 0 : GPUAMG_NAN;
  if (!(L->lambda > 0)) L->lambda = 1;
  h->problem = flag;
  h->at      = l;
  if (smoothed && !flag) { /* what smooths a level, and its bound, where this is not the diagonal or a factor */
    GPUAMGWork s = {.A = GPUAMGRowsOf(&L->A), .bs = L->bs, .dinv = (double *)L->dinv.p};

    L->bound = L->lambda;
    if (h->o.smoother == GPUAMG_BY_SIZES) {
      PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (size_t)L->n, "the smoother of a level", &L->smooth));
      s.dinv = (double *)L->smooth.p;
      PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_SIZES, L->n, &s));
      L->bound = 1;
    }
    if (h->o.smoother == GPUAMG_BY_BLOCKS && L->bs != 1) {
      PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (size_t)L->n * (size_t)L->bs, "the smoother of a level", &L->smooth));
      s.coarse = (double *)L->smooth.p;
      PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_INVERSES, L->n / L->bs, &s));
      PetscCall(GPUAMGBound(h, l, Blocks, NULL));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the prolongator ---- */

/* Rows of the finest level are short, and a tentative prolongator has an entry a row at most: a thread makes a row of their product */
static GPUCSRBool Reaches(const GPUAMG *h, int l)
{
  const GPUAMGLevel *L = &h->level[l];

  return (GPUCSRBool)(!l && L->bs == 1 && L->ns == 1 && L->plan->features.max <= GPUAMG_REACHES);
}

/* Values of the smoothed prolongator, for the existing pattern. F: the level's matrix, or a part of it */
static PetscErrorCode Smooth(GPUAMG *h, int l, int k, const GPUCSRStorage *F)
{
  GPUAMGLevel     *L      = &h->level[l];
  GPUAMGWork       w      = {.dinv = (double *)L->dinv.p, .omega = h->o.damping / L->lambda};
  const GPUCSRBool direct = (GPUCSRBool)(k == 1 && Reaches(h, l));

  PetscFunctionBegin;
  w.A    = GPUAMGRowsOf(F);
  w.from = GPUAMGRowsOf(&L->P[k - 1]);
  w.to   = GPUAMGRowsOf(&L->P[k]);
  if (!direct) PetscCall(GPUCSRSpGEMMValues(F, &L->P[k - 1], &L->prows[k], &L->P[k]));
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, direct ? GPUAMG_REACHED : GPUAMG_SMOOTH, L->n, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The tentative prolongator, and the coarse near null space */
static PetscErrorCode Tentative(GPUAMG *h, int l, const GPUCSRStorage *members)
{
  GPUAMGLevel     *L = &h->level[l], *C = &h->level[l + 1];
  const GPUAMGOps *ops = GPUAMGOf(h->dev);
  const int64_t    nnz = members->nnz * L->bs * L->ns;
  GPUAMGWork       w   = {.bs = L->bs, .ns = L->ns, .basis = (double *)L->basis.p};

  PetscFunctionBegin;
  PetscCheck(nnz <= INT32_MAX - 1024, PETSC_COMM_SELF, PETSC_ERR_SUP, "A prolongator of %" PetscInt64_FMT " nonzeros does not fit the 32-bit indices of the device formats", (PetscInt64)nnz);
  C->n  = L->aggregates * L->ns;
  C->bs = C->ns = L->ns;
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (size_t)C->n * (size_t)C->ns, "a near null space", &C->basis));
  PetscCall(GPUCSRBufferGrow(h->dev, (size_t)C->n, "a near null space", &C->dead));
  PetscCall(GPUCSRCSRCreate(h->dev, L->n, C->n, nnz, &L->P[0]));
  w.agg    = (int32_t *)h->temp[GPUAMG_TEMP_AGG].p;
  w.number = (int32_t *)h->temp[GPUAMG_TEMP_NUMBER].p;
  w.to     = GPUAMGRowsOf(&L->P[0]);
  PetscCall((*ops->rows)(h->dev, GPUAMG_PATTERN, L->n, &w));
  w.A      = GPUAMGRowsOf(members);
  w.coarse = (double *)C->basis.p;
  w.dead   = (unsigned char *)C->dead.p;
  PetscCall((*ops->rows)(h->dev, GPUAMG_ORTHOGONAL, L->aggregates, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the next level ---- */

/* Values of the first product; where rows are short, with its columns */
static PetscErrorCode Left(GPUAMG *h, int l)
{
  GPUAMGLevel *L = &h->level[l];
  GPUAMGWork   w = {.A = GPUAMGRowsOf(&L->A), .from = GPUAMGRowsOf(&L->P[h->o.nsmooths])};

  PetscFunctionBegin;
  if (!L->reached) PetscFunctionReturn(GPUCSRSpGEMMValues(&L->A, &L->P[h->o.nsmooths], &L->aprows, &L->AP));
  if (!L->AP.dev) {
    PetscCall(GPUCSRCSRCreate(h->dev, L->n, h->level[l + 1].n, L->apnnz, &L->AP));
    PetscCall(h->dev->ops->copy(h->dev->id, L->AP.array[CSR_ROWPTR].data, L->aprow.p, sizeof(int32_t) * ((size_t)L->n + 1), GPUCSR_ON_DEVICE, h->dev->stream));
  }
  w.to = GPUAMGRowsOf(&L->AP);
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_REACHED, L->n, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Right(GPUAMG *h, int l)
{
  GPUAMGLevel *L = &h->level[l], *C = &h->level[l + 1];
  GPUAMGWork   w = {.to = GPUAMGRowsOf(&C->A), .dead = (unsigned char *)C->dead.p};

  PetscFunctionBegin;
  PetscCall(GPUCSRSpGEMMValues(&L->R, &L->AP, &L->crows, &C->A));
  if (L->reached) { /* frees the first product, which Left() makes again from its row pointers */
    const size_t bytes = sizeof(int32_t) * ((size_t)L->n + 1);

    if (!L->aprow.p) {
      PetscCall(GPUCSRBufferGrow(h->dev, bytes, "row pointers of a product", &L->aprow));
      PetscCall(h->dev->ops->copy(h->dev->id, L->aprow.p, L->AP.array[CSR_ROWPTR].data, bytes, GPUCSR_ON_DEVICE, h->dev->stream));
      L->apnnz = L->AP.nnz;
    }
    PetscCall(GPUCSRStorageDestroy(&L->AP));
  }
  if (C->ns > 1) PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_DEAD, C->n, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Smoothed(GPUAMG *h, int l, const GPUCSRStorage *F, GPUAMGGraphs *g)
{
  GPUAMGLevel *L = &h->level[l];

  PetscFunctionBegin;
  for (int k = 1; k <= h->o.nsmooths; k++) {
    GPUCSRBool can = PETSC_FALSE;

    if (k == 1 && Reaches(h, l)) PetscCall(GPUAMGReach(h, F, &L->P[0], &L->P[1], &can));
    if (g->on) PetscCall(GPUAMGGraphsSmoothed(h, l, k, g));
    else if (!can) PetscCall(GPUCSRSpGEMMSymbolic(F, &L->P[k - 1], &L->P[k], &L->prows[k]));
    PetscCall(Smooth(h, l, k, F));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* members are given back */
static PetscErrorCode Prolongator(GPUAMG *h, int l, GPUAMGGraphs *g, GPUCSRStorage *members)
{
  GPUAMGLevel   *L    = &h->level[l];
  GPUCSRStorage  F    = {.dev = h->dev};
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(Tentative(h, l, members));
  if (h->weak) ierr = GPUAMGFilter(h, l, &F);
  PetscCall(GPUAMGTemporaries(h));
  PetscCall(GPUCSRStorageDestroy(members));
  if (!ierr) ierr = Smoothed(h, l, h->weak ? &F : &L->A, g);
  PetscCall(GPUCSRStorageDestroy(&F));
  PetscCall(ierr);
  if (g->on) PetscCall(GPUAMGGraphsTranspose(h, l, g));
  else PetscCall(GPUCSRTransposeStorage(&L->P[h->o.nsmooths], &L->R, &L->map));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coarser(GPUAMG *h, int l, GPUAMGGraphs *g)
{
  GPUAMGLevel *L = &h->level[l], *C = &h->level[l + 1];

  PetscFunctionBegin;
  L->reached = PETSC_FALSE;
  if (g->on) PetscCall(GPUAMGGraphsGalerkin(h, l, g));
  else if (Reaches(h, l)) PetscCall(GPUAMGReach(h, &L->A, &L->P[h->o.nsmooths], &L->AP, &L->reached));
  if (!g->on && !L->reached) PetscCall(GPUCSRSpGEMMSymbolic(&L->A, &L->P[h->o.nsmooths], &L->AP, &L->aprows));
  PetscCall(Left(h, l));
  if (!g->on) PetscCall(GPUCSRSpGEMMSymbolic(&L->R, &L->AP, &C->A, &L->crows));
  PetscCall(Right(h, l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Plans(GPUAMG *h, int l)
{
  GPUAMGLevel *L = &h->level[l], *C = &h->level[l + 1];

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanLend(&L->P[h->o.nsmooths], L->prows[h->o.nsmooths].longest, &L->planP));
  PetscCall(GPUCSRPlanLend(&L->R, 0, &L->planR));
  PetscCall(GPUCSRPlanLend(&C->A, L->crows.longest, &C->own));
  C->plan = &C->own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The near null space of the finest level; NULL: constants */
static PetscErrorCode Basis(GPUAMG *h, const double *basis)
{
  GPUAMGLevel *L = &h->level[0];
  GPUAMGWork   w = {.bs = L->bs};

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (size_t)L->n * (size_t)L->ns, "a near null space", &L->basis));
  w.basis = (double *)L->basis.p;
  if (basis) PetscCall(h->dev->ops->copy(h->dev->id, w.basis, basis, sizeof(double) * (size_t)L->n * (size_t)L->ns, GPUCSR_ON_DEVICE, h->dev->stream));
  else PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_ONES, L->n, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Weak(GPUAMG *h, GPUCSRBool *weak)
{
  int64_t count;

  PetscFunctionBegin;
  *weak = (GPUCSRBool)(h->o.drop == GPUAMG_ALWAYS);
  if (h->o.drop != GPUAMG_ASK) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUAMGCountWeak(h, &count));
  *weak = GPUAMGEnoughWeak(count, h->level[0].A.nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(GPUAMG *h, const double *basis, GPUAMGGraphs *g)
{
  GPUCSRBool more = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(Basis(h, basis));
  for (int l = 0; more; l++) {
    const GPUCSRBool last = (GPUCSRBool)(h->level[l].n <= h->o.limit || l + 1 >= h->o.levels);

    h->levels = l + 1;
    h->exact  = (GPUCSRBool)(last && h->level[l].n <= GPUCSRMachineShared.inverse_rows);
    GPUAMGPhase(h, GPUAMG_EIGENVALUE, Values(h, l, (GPUCSRBool)!h->exact));
    if (!l && !last && !h->problem) GPUAMGPhase(h, GPUAMG_STRENGTH, Weak(h, &h->weak));
    more = (GPUCSRBool)(!last && !h->problem);
    if (more) { /* the next level, if it is smaller */
      GPUAMGLevel   *L       = &h->level[l];
      GPUCSRStorage  members = {.dev = h->dev};
      PetscErrorCode ierr;

      GPUAMGPhase(h, GPUAMG_STRENGTH, GPUAMGGraphsBegin(h, l, g));
      GPUAMGPhaseTry(h, GPUAMG_AGGREGATE, GPUAMGAggregates(h, l, g, &members), ierr);
      more = (GPUCSRBool)(!ierr && L->aggregates > 0 && (double)L->aggregates * L->ns < 0.9 * L->n);
      if (more) GPUAMGPhaseTry(h, GPUAMG_PROLONGATOR, Prolongator(h, l, g, &members), ierr);
      PetscCall(GPUCSRStorageDestroy(&members));
      PetscCall(ierr);
      if (more) {
        GPUAMGPhase(h, GPUAMG_GALERKIN, Coarser(h, l, g));
        GPUAMGPhase(h, GPUAMG_BUILD, Plans(h, l));
      }
    }
  }
  h->exact = (GPUCSRBool)(h->level[h->levels - 1].n <= GPUCSRMachineShared.inverse_rows);
  GPUAMGPhase(h, GPUAMG_COARSE, GPUAMGCoarsest(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Begin(GPUAMG *h, const GPUAMGOptions *o, const GPUCSRStorage *A, int bs, int ns)
{
  GPUAMGLevel *L = &h->level[0];

  PetscFunctionBegin;
  PetscCall(GPUAMGDestroy(h));
  h->dev = A->dev;
  h->o   = *o;
  L->n   = A->m;
  L->bs  = bs;
  L->ns  = ns;
  L->A   = *A;
  if (bs > 1 || ns > 1) h->o.drop = GPUAMG_NEVER;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The hierarchy of A, with bs rows a vertex. The caller keeps the arrays and the plan of A, which must outlive the hierarchy. basis: the near null space on the device, ns numbers a row; NULL: bs constants. An old hierarchy is
  destroyed. If problem is set there is no hierarchy; after an error there is nothing to destroy.
*/
PetscErrorCode GPUAMGSetUp(GPUAMG *h, const GPUAMGOptions *o, const GPUCSRStorage *A, GPUCSRPlan *plan, int bs, int ns, const double *basis)
{
  GPUAMGGraphs   g = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Begin(h, o, A, bs, basis ? ns : bs));
  h->level[0].plan = plan;
  ierr             = Build(h, basis, &g);
  PetscCall(GPUAMGGraphsDestroy(&g));
  PetscCall(GPUCSRBufferFree(h->dev, &h->level[0].basis)); /* new values do not need it */
  PetscCall(GPUAMGTemporaries(h));
  if (ierr) PetscCall(GPUAMGDestroy(h));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the finest level, alone */
static PetscErrorCode Diagonal(GPUAMG *h)
{
  GPUAMGLevel *L = &h->level[0];
  GPUAMGWork   w = {.A = GPUAMGRowsOf(&L->A)};

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(int32_t), "aggregates", &h->temp[GPUAMG_TEMP_FLAG]));
  if (h->o.drop == GPUAMG_NEVER) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (size_t)L->n, "the diagonal of a level", &L->dinv));
  w.dinv = (double *)L->dinv.p;
  w.flag = (int32_t *)h->temp[GPUAMG_TEMP_FLAG].p;
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_DIAGONAL, L->n, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Weak entries of a rank's diagonal block of scalars */
PetscErrorCode GPUAMGOneWeak(const GPUCSRStorage *A, int64_t *weak)
{
  const GPUAMGOptions o = {.drop = GPUAMG_ASK};
  GPUAMG              h = {0};
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  PetscCall(Begin(&h, &o, A, 1, 1));
  ierr = Diagonal(&h);
  if (!ierr) ierr = GPUAMGCountWeak(&h, weak);
  PetscCall(GPUAMGDestroy(&h));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OneLevel(GPUAMG *h, const double *basis)
{
  GPUCSRStorage  members = {.dev = h->dev};
  GPUAMGGraphs   g       = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Basis(h, basis));
  PetscCall(Diagonal(h));
  h->weak = (GPUCSRBool)(h->o.drop == GPUAMG_ALWAYS);
  ierr    = GPUAMGAggregates(h, 0, &g, &members);
  if (!ierr && h->level[0].aggregates) ierr = Tentative(h, 0, &members);
  PetscCall(GPUCSRStorageDestroy(&members));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Aggregates and the tentative prolongator, level[0].P[0], of a rank's diagonal block A; beyond: of GPUAMGWork, on the device. Level 1 has rows and their near null space, but no matrix; a block without aggregates has no rows there. Arguments as in
  GPUAMGSetUp(). An error leaves nothing to destroy.
*/
PetscErrorCode GPUAMGOneLevel(GPUAMG *h, const GPUAMGOptions *o, const GPUCSRStorage *A, int bs, int ns, const double *basis, const double *beyond)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Begin(h, o, A, bs, basis ? ns : bs));
  h->beyond = beyond;
  ierr      = OneLevel(h, basis);
  h->beyond = NULL;
  PetscCall(GPUAMGTemporaries(h));
  if (ierr) PetscCall(GPUAMGDestroy(h));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Galerkin(GPUAMG *h, int l)
{
  PetscFunctionBegin;
  PetscCall(Left(h, l));
  PetscCall(Right(h, l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values of the smoothed prolongator and of its transpose */
static PetscErrorCode ProlongatorValues(GPUAMG *h, int l)
{
  GPUAMGLevel *L = &h->level[l];

  PetscFunctionBegin;
  for (int k = 1; k <= h->o.nsmooths; k++) PetscCall(Smooth(h, l, k, &L->A));
  PetscCall(GPUCSRTransposeValues(&L->P[h->o.nsmooths], L->map, &L->R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RefreshSteps(GPUAMG *h, GPUCSRBool keep, GPUCSRBool *stale)
{
  PetscFunctionBegin;
  for (int l = 0; l < h->levels; l++) {
    GPUAMGLevel     *L    = &h->level[l];
    const GPUCSRBool last = (GPUCSRBool)(l + 1 == h->levels);

    GPUAMGPhase(h, GPUAMG_EIGENVALUE, Values(h, l, (GPUCSRBool) !(last && h->exact)));
    if (h->problem) break;
    if (!l && !last && !keep) GPUAMGPhase(h, GPUAMG_STRENGTH, Weak(h, stale));
    if (*stale) PetscFunctionReturn(PETSC_SUCCESS);
    if (L->T.format) PetscCall(GPUCSRTransposeValues(&L->A, L->tmap, &L->T));
    if (last) break;
    if (!keep && h->o.nsmooths) GPUAMGPhase(h, GPUAMG_PROLONGATOR, ProlongatorValues(h, l));
    GPUAMGPhase(h, GPUAMG_GALERKIN, Galerkin(h, l));
  }
  GPUAMGPhase(h, GPUAMG_COARSE, GPUAMGCoarsest(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values of the finest matrix with the same pattern. keep: the prolongators. *stale: the new values change the aggregates; half of the hierarchy is old, and a new set-up must follow */
PetscErrorCode GPUAMGRefresh(GPUAMG *h, const GPUCSRStorage *A, GPUCSRPlan *plan, GPUCSRBool keep, GPUCSRBool *stale)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *stale = (GPUCSRBool)(h->weak && !keep);
  if (*stale) PetscFunctionReturn(PETSC_SUCCESS);
  h->level[0].A    = *A;
  h->level[0].plan = plan;
  ierr             = RefreshSteps(h, keep, stale);
  PetscCall(GPUAMGTemporaries(h));
  if (ierr) PetscCall(GPUAMGDestroy(h));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUAMGDestroy(GPUAMG *h)
{
  PetscFunctionBegin;
  if (!h->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUAMGTemporaries(h));
  for (int l = 0; l < GPUAMG_LEVELS; l++) {
    GPUAMGLevel   *L     = &h->level[l];
    GPUCSRStorage *all[] = {l ? &L->A : NULL, &L->R, &L->AP, &L->T};

    PetscCall(GPUCSRPlanReturn(&L->own));
    PetscCall(GPUCSRPlanReturn(&L->planP));
    PetscCall(GPUCSRPlanReturn(&L->planR));
    PetscCall(GPUCSRPlanReturn(&L->planT));
    for (int k = 0; k < 3; k++) PetscCall(GPUCSRPlanReturn(&L->rounded[k]));
    if (L->map) PetscCall(GPUCSRFree(h->dev, sizeof(int32_t) * (size_t)L->R.nnz, (void **)&L->map));
    if (L->tmap) PetscCall(GPUCSRFree(h->dev, sizeof(int32_t) * (size_t)L->T.nnz, (void **)&L->tmap));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++)
      if (all[k] && all[k]->dev) PetscCall(GPUCSRStorageDestroy(all[k]));
    for (int k = 0; k <= GPUAMG_SMOOTHS; k++) {
      PetscCall(GPUCSRStorageDestroy(&L->P[k]));
      PetscCall(GPUCSRRowClassesDestroy(h->dev, &L->prows[k]));
    }
    PetscCall(GPUCSRRowClassesDestroy(h->dev, &L->aprows));
    PetscCall(GPUCSRRowClassesDestroy(h->dev, &L->crows));
    PetscCall(GPUCSRBufferFree(h->dev, &L->dinv));
    PetscCall(GPUCSRBufferFree(h->dev, &L->smooth));
    PetscCall(GPUCSRBufferFree(h->dev, &L->aprow));
    PetscCall(GPUCSRBufferFree(h->dev, &L->basis));
    PetscCall(GPUCSRBufferFree(h->dev, &L->dead));
  }
  PetscCall(GPUCSRBufferFree(h->dev, &h->inverse));
  PetscCall(GPUCSRBufferFree(h->dev, &h->inverseT));
  PetscCall(PetscMemzero(h, sizeof(*h)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of device memory, but for the finest matrix */
double GPUAMGBytes(const GPUAMG *h)
{
  double bytes = (double)h->inverse.bytes + (double)h->inverseT.bytes;

  for (int l = 0; l < h->levels; l++) {
    const GPUAMGLevel *L = &h->level[l];

    bytes += (l ? GPUCSRStorageBytes(&L->A) : 0) + GPUCSRStorageBytes(&L->R) + GPUCSRStorageBytes(&L->AP) + GPUCSRStorageBytes(&L->T) + (double)(L->dinv.bytes + L->aprow.bytes + L->smooth.bytes + L->basis.bytes + L->dead.bytes) +
             4.0 * (double)(L->R.nnz + L->T.nnz);
    for (int k = 0; k <= h->o.nsmooths; k++) bytes += GPUCSRStorageBytes(&L->P[k]) + 4.0 * L->prows[k].m;
    bytes += 4.0 * (L->aprows.m + L->crows.m);
    for (int k = 0; k < 3; k++) bytes += GPUCSRStorageBytes(&L->rounded[k].A);
  }
  return bytes;
}

/* ---- what a hierarchy has only after it is asked for ---- */

/* What transposed cycles need: coarse matrices and the inverse transposed. The finest is the caller's */
PetscErrorCode GPUAMGTransposes(GPUAMG *h)
{
  const size_t n = (size_t)h->level[h->levels - 1].n;

  PetscFunctionBegin;
  for (int l = 1; l < h->levels; l++) {
    GPUAMGLevel *L = &h->level[l];

    if (L->T.format) continue;
    PetscCall(GPUCSRTransposeStorage(&L->A, &L->T, &L->tmap));
    PetscCall(GPUCSRPlanLend(&L->T, 0, &L->planT));
  }
  if (!h->exact || h->inverseT.p) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * n * n, "the inverse of a coarse operator", &h->inverseT));
  PetscCall(h->dev->ops->copy(h->dev->id, h->inverseT.p, h->inverse.p, sizeof(double) * n * n, GPUCSR_ON_DEVICE, h->dev->stream));
  PetscCall((*GPUAMGOf(h->dev)->transpose)(h->dev, (int)n, (double *)h->inverseT.p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes plans in single precision beside the double plans, for the matrices of the finest levels, so many, and frees all others */
PetscErrorCode GPUAMGRound(GPUAMG *h, int levels)
{
  PetscFunctionBegin;
  for (int l = 0; l < h->levels; l++) {
    GPUAMGLevel *L = &h->level[l];

    for (int k = 0; k < 3; k++) PetscCall(GPUCSRPlanReturn(&L->rounded[k]));
    if (l >= levels) continue;
    PetscCall(GPUCSRPlanRound(&L->A, l ? NULL : L->plan, l ? h->level[l - 1].crows.longest : 0, &L->rounded[0]));
    if (l + 1 == h->levels) continue;
    PetscCall(GPUCSRPlanRound(&L->P[h->o.nsmooths], NULL, L->prows[h->o.nsmooths].longest, &L->rounded[1]));
    PetscCall(GPUCSRPlanRound(&L->R, NULL, 0, &L->rounded[2]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
