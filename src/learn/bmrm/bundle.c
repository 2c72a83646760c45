/*
  Bundle methods of Tao: gpubmrm if a loaded library provides it, else TAO's bmrm.

  gpubmrm also gets the risk along a line. The scores of the best weights are kept from one iteration to the next, so an iteration takes two products, as in the plain method.
*/
#include "learn.h"

#define LONG  1000 /* estimated products of an interior point method */
#define SMALL 5e6  /* nonzeros: on a device a product with fewer nonzeros takes equally long */
#define NEAR  0.1  /* place of the next plane: this fraction of the way from the best weights to the new weights; the value of Franc and Sonnenburg */

PetscErrorCode Objective(Learner *l, Vec w, PetscReal risk, PetscReal *value)
{
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(VecNorm(w, NORM_2, &norm));
  *value = risk + 0.5 * l->lambda * norm * norm;
  PetscFunctionReturn(0);
}

/* lambda/2 |w + k d|^2 from the scalar products of w and d */
static PetscReal Regulariser(const Learner *l, PetscScalar ww, PetscScalar wd, PetscScalar dd, PetscReal k)
{
  return 0.5 * l->lambda * (PetscRealPart(ww) + 2 * k * PetscRealPart(wd) + k * k * PetscRealPart(dd));
}

/* Called by gpubmrm: finds better weights on the line from the best ones to `point`, and computes a plane near them */
static PetscErrorCode Search(Tao tao, Vec point, Vec best, Vec G, PetscReal *value, PetscReal *offset)
{
  Learner    *l;
  Vec         near;
  PetscReal   risk, level, step = 0, at = 0, shift, change = 0;
  PetscScalar wd = 0, dd = 0, ww = 0;

  PetscFunctionBeginUser;
  PetscCall(TaoGetApplicationContext(tao, (void *)&l));
  near = l->ones ? l->near : l->s;
  if (point == best) {
    PetscCall(Scores(l, best, l->origin));
    PetscCall(VecShift(l->origin, l->shift));
    near = l->origin;
  } else {
    PetscCall(Scores(l, point, l->d));
    if (l->ones) { /* the line goes to the best bias there */
      PetscCall(VecShift(l->d, l->shift));
      PetscCall(RiskBias(l, l->d, NULL, &change, &risk, &level));
    }
    PetscCall(VecAXPY(l->d, -1.0, l->origin));
    PetscCall(VecAXPY(point, -1.0, best)); /* the direction */
    PetscCall(VecDot(best, point, &wd));
    PetscCall(VecDot(point, point, &dd));
    PetscCall(SearchLine(l, l->lambda * PetscRealPart(wd), l->lambda * PetscRealPart(dd), 0.02, &step, &risk));
    if (step > 0) l->trial = PetscMin(step, 1);
    PetscCall(VecDot(best, best, &ww));
    at = step + NEAR * (1 - step); /* a fraction of the way from base + step d to base + d */
    PetscCall(VecWAXPY(near, at, l->d, l->origin));
    if (step > 0) {
      *value = risk + Regulariser(l, ww, wd, dd, step);
      PetscCall(VecAXPY(best, step, point));
      PetscCall(VecAXPY(l->origin, step, l->d));
      l->shift += step * change;
    }
  }
  PetscCall(RiskBias(l, near, l->c, &shift, &risk, &level));
  if (point == best) {
    PetscCall(Objective(l, best, risk, value));
    l->shift += shift;
  } else if (l->ones && risk + Regulariser(l, ww, wd, dd, at) < *value) { /* the line had other biases than the best ones */
    *value = risk + Regulariser(l, ww, wd, dd, at);
    PetscCall(VecAXPY(best, at - step, point));
    PetscCall(VecCopy(near, l->origin));
    l->shift += (at - step) * change + shift;
  }
  PetscCall(VecDot(l->c, near, &wd));
  *offset = level - PetscRealPart(wd);
  PetscCall(Subgradient(l, l->c, G));
  PetscFunctionReturn(0);
}

/* Called by other methods: computes the risk at w and a subgradient. Keeps the best weights, because not every method descends */
typedef struct {
  Learner  *l;
  Vec       best;
  PetscReal value, shift;
} Best;

static PetscErrorCode Risk(Tao tao, Vec w, PetscReal *f, Vec g, void *ctx)
{
  Best     *b = (Best *)ctx;
  Vec       s = b->l->ones ? b->l->near : b->l->s;
  PetscReal value, level, shift;

  PetscFunctionBeginUser;
  PetscCall(Scores(b->l, w, s));
  PetscCall(RiskBias(b->l, s, b->l->c, &shift, f, &level));
  PetscCall(Subgradient(b->l, b->l->c, g));
  PetscCall(Objective(b->l, w, *f, &value));
  if (value < b->value) {
    b->value = value;
    b->shift = shift;
    PetscCall(VecCopy(w, b->best));
  }
  PetscFunctionReturn(0);
}

/* Shows the progress on a terminal: iteration, objective, gap, time */
PetscErrorCode Progress(const Learner *l, PetscInt iteration, PetscReal objective, PetscReal gap, PetscBool last)
{
  static PetscLogDouble said = 0;
  PetscLogDouble        now;

  PetscFunctionBeginUser;
  if (!l->settings->progress) PetscFunctionReturn(0);
  PetscCall(PetscTime(&now));
  if (iteration && !last && now - said < 1) PetscFunctionReturn(0);
  said = now;
  if (l->k > 1) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "class %-6g", (double)l->label[l->which]));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "iteration %6" PetscInt_FMT "  objective %.8g  gap %.2e  %.1f s\n", iteration, (double)objective, (double)gap, now - l->began));
  PetscFunctionReturn(0);
}

void AddOutcome(Outcome *out, PetscReal objective, PetscReal risk, PetscReal gap, PetscInt iterations, PetscBool converged, const char method[])
{
  out->objective += objective;
  out->risk += risk;
  out->gap += gap;
  out->iterations += iterations;
  out->converged = (PetscBool)(out->converged && converged);
  out->method    = method;
}

#if PETSC_VERSION_LT(3, 21, 0)
  #define TaoMonitorSet TaoSetMonitor
#endif

/*
  An iteration costs two products with the data, and products with a growing number of planes. An interior point method needs more products with the data, so it takes over only if the planes are the
  main cost
*/
static PetscErrorCode Monitor(Tao tao, void *ctx)
{
  const Learner     *l = (const Learner *)ctx;
  PetscInt           it;
  PetscReal          f, gap, planes;
  TaoConvergedReason reason;
  MatInfo            info;

  PetscFunctionBeginUser;
  PetscCall(TaoGetSolutionStatus(tao, &it, &f, &gap, NULL, NULL, &reason));
  PetscCall(Progress(l, it, f, gap, PETSC_FALSE));
  if (l->settings->method != METHOD_AUTO || !l->loss->interior) PetscFunctionReturn(0);
  PetscCall(MatGetInfo(l->data.X, MAT_GLOBAL_SUM, &info));
  planes = (PetscReal)it * (PetscReal)it * (PetscReal)l->columns;
  if (planes > LONG * (l->vectors ? PetscMax(info.nz_used, SMALL) : info.nz_used)) PetscCall(TaoSetConvergedReason(tao, TAO_DIVERGED_USER));
  PetscFunctionReturn(0);
}

PetscErrorCode LearnBundle(Learner *l, Rest *rest, Outcome *out)
{
  const Settings    *o = l->settings;
  Tao                tao;
  Best               b;
  Vec                w = l->w[l->which];
  PetscReal          value, gap;
  PetscInt           its;
  PetscBool          isgpubmrm;
  char               text[64];
  TaoConvergedReason reason;
  PetscErrorCode (*known)(Tao) = NULL;

  PetscFunctionBeginUser;
  b.l     = l;
  b.value = PETSC_MAX_REAL;
  PetscCall(VecDuplicate(w, &b.best));
  PetscCall(VecCopy(w, b.best));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%.17g", (double)l->lambda));
  PetscCall(PetscOptionsSetValue(NULL, "-tao_bmrm_lambda", text)); /* TAO has no function for it */
  PetscCall(PetscFunctionListFind(TaoList, "gpubmrm", &known));
  PetscCall(TaoCreate(PETSC_COMM_WORLD, &tao));
  PetscCall(TaoSetType(tao, known ? "gpubmrm" : TAOBMRM));
  PetscCall(TaoSetObjectiveAndGradient(tao, NULL, Risk, &b));
  PetscCall(TaoSetApplicationContext(tao, l));
  PetscCall(PetscObjectComposeFunction((PetscObject)tao, "TaoGPUBMRMSearch_C", Search));
  PetscCall(TaoSetTolerances(tao, o->absolute, o->epsilon, 0.0));
  PetscCall(TaoSetMaximumIterations(tao, o->maxits - rest->iterations));
  PetscCall(TaoSetMaximumFunctionEvaluations(tao, PETSC_MAX_INT));
  PetscCall(TaoMonitorSet(tao, Monitor, l, NULL));
  PetscCall(TaoSetFromOptions(tao));
  PetscCall(TaoSetSolution(tao, w));
  PetscCall(TaoSolve(tao));
  PetscCall(PetscObjectTypeCompare((PetscObject)tao, "gpubmrm", &isgpubmrm));
  PetscCall(TaoGetSolutionStatus(tao, &its, &value, &gap, NULL, NULL, &reason));
  if (b.value < PETSC_MAX_REAL) {
    value    = b.value;
    l->shift = b.shift;
    PetscCall(VecCopy(b.best, w));
  }
  rest->left       = (PetscBool)(reason == TAO_DIVERGED_USER);
  rest->lower      = PetscMax(rest->lower, value - gap);
  rest->iterations = its += rest->iterations;
  if (rest->left) {
    PetscCall(VecDestroy(&b.best));
    PetscCall(TaoDestroy(&tao));
    PetscFunctionReturn(0);
  }
  PetscCall(Progress(l, its, value, gap, PETSC_TRUE));
  PetscCall(VecNorm(w, NORM_2, &b.value));
  AddOutcome(out, value, value - 0.5 * l->lambda * b.value * b.value, gap, its, (PetscBool)(reason > 0), isgpubmrm ? "gpubmrm" : "bmrm");
  PetscCall(VecDestroy(&b.best));
  PetscCall(TaoDestroy(&tao));
  PetscFunctionReturn(0);
}
