static char help[] = "Learns a linear model from rows with labels: regularised risk minimisation by a bundle method or by Newton's.\n"
                     "Binary and multi-class classification, regression, ranking; learns, validates, writes, reads and applies models.\n\n";

/*
  Minimises  lambda/2 |w|^2 + R(w),  where R(w) is the mean of the losses of n rows, or a loss of all rows together (bmrm/losses.c):

    bmrm -f a9a.petsc -loss logistic -lambda 1e-4 -validation 0.2    learn from four fifths of the rows, judge by the rest
    bmrm -f letter.petsc -model_out letter.model                     26 classes: each one against all others
    bmrm -f letter.t.petsc -model letter.model -predictions out.txt  apply it

  The data enter through two products only: the scores s = X w, and the subgradient X^T c, where c holds the slopes of the losses.

  Smooth losses are minimised by a truncated Newton method, the others by a bundle method of Tao: C. H. Teo, S. V. N. Vishwanathan, A. Smola and Q. V. Le, Bundle methods
  for regularized risk minimization, JMLR 11, 2010; with gpubmrm, V. Franc and S. Sonnenburg, Optimized cutting plane algorithm for large-scale risk minimization, JMLR 10,
  2009.
*/
#include "bmrm/learn.h"
#include <stddef.h>
#include <time.h>

/* A product with one entry, to time one-time work of a type, like starting a device, separately from the data */
static PetscErrorCode StartType(void)
{
  Mat         A;
  Vec         x, y;
  PetscMPIInt size, rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 1, 1, size, size));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(MatSetValue(A, rank, rank, 1.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(0);
}

/* Finds the classes if the loss needs them, and checks that the labels fit the loss */
static PetscErrorCode GetClasses(Learner *l, const Data *data, const char file[])
{
  const Settings *o = l->settings;

  PetscFunctionBeginUser;
  l->k        = 1;
  l->nclasses = 0;
  PetscCheck(data->y, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: has no labels; -labels FILE gives them", file);
  PetscCheck(l->loss->labels != LABELS_RANKS || data->q, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: has no queries (qid:) to rank the rows of", file);
  if (l->loss->labels != LABELS_CLASSES) PetscFunctionReturn(0);
  PetscCall(DistinctLabels(data->y, l->label, &l->nclasses));
  PetscCheck(l->nclasses >= 2, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: all rows have the same label, there is nothing to tell apart", file);
  PetscCheck(l->nclasses <= MAX_CLASSES, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: has more than %d different labels; -loss %s is for classes, least_squares, absolute, insensitive and quantile are for numbers", file, MAX_CLASSES, l->loss->name);
  PetscCheck(l->nclasses == 2 || l->loss->rows, PETSC_COMM_WORLD, PETSC_ERR_SUP, "%s: has %" PetscInt_FMT " classes, -loss %s is for two", file, l->nclasses, l->loss->name);
  if (l->nclasses > 2) l->k = l->nclasses;
  for (PetscInt i = 0; i < o->nweights; i++) {
    PetscInt j = 0;

    while (j < l->nclasses && l->label[j] != o->weighted[i]) j++;
    PetscCheck(j < l->nclasses, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-class_weights: no row has the label %g", (double)o->weighted[i]);
  }
  PetscFunctionReturn(0);
}

/* Checks the rows to learn from, after others were set aside: some rows must be left, of both classes if the loss compares classes */
static PetscErrorCode CheckRows(const Learner *l, const char file[])
{
  const PetscScalar *v;
  PetscInt           m, M;
  PetscInt64         count[2] = {0, 0};

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(l->data.y, &M));
  PetscCheck(M > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: there is no row to learn from", file);
  PetscCheck(!l->loss->allrows || (!l->data.u && !l->settings->nweights), PETSC_COMM_WORLD, PETSC_ERR_SUP, "-loss %s is one of all rows together, which have no weights", l->loss->name);
  if (!l->loss->allrows || !l->nclasses) PetscFunctionReturn(0);
  PetscCall(VecGetLocalSize(l->data.y, &m));
  PetscCall(VecGetArrayRead(l->data.y, &v));
  for (PetscInt i = 0; i < m; i++) count[PetscRealPart(v[i]) == l->label[1]]++;
  PetscCall(VecRestoreArrayRead(l->data.y, &v));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, count, 2, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
  PetscCheck(count[0] && count[1], PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: all rows to learn from have the label %g; -loss %s compares two classes: choose others by -validation or -seed", file, (double)l->label[count[1] > 0], l->loss->name);
  PetscFunctionReturn(0);
}

/* Matches the labels of validation or test rows with the classes learned. Two classes may have other labels in these rows, for example 0 and 1 for -1 and 1; the greater label is positive */
static PetscErrorCode MatchLabels(const Learner *l, Vec y, const char file[])
{
  PetscReal    label[MAX_CLASSES];
  PetscInt     n       = 0, m;
  PetscInt64   unknown = 0;
  PetscScalar *v;

  PetscFunctionBeginUser;
  if (!l->nclasses || !y) PetscFunctionReturn(0);
  PetscCall(DistinctLabels(y, label, &n));
  PetscCall(VecGetLocalSize(y, &m));
  PetscCall(VecGetArray(y, &v));
  if (l->nclasses == 2 && n == 2 && (label[0] != l->label[0] || label[1] != l->label[1]) && label[0] != l->label[1] && label[1] != l->label[0]) {
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "labels     %g and %g of %s are taken for %g and %g\n", (double)label[0], (double)label[1], file, (double)l->label[0], (double)l->label[1]));
    for (PetscInt i = 0; i < m; i++) v[i] = PetscRealPart(v[i]) == label[1] ? l->label[1] : l->label[0];
  }
  for (PetscInt i = 0; i < m; i++) {
    PetscInt j = 0;

    while (j < l->nclasses && l->label[j] != PetscRealPart(v[i])) j++;
    unknown += j == l->nclasses;
  }
  PetscCall(VecRestoreArray(y, &v));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &unknown, 1, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
  if (unknown) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "labels     %" PetscInt64_FMT " rows of %s have labels that the model does not know: wrong, whatever is predicted\n", unknown, file));
  PetscFunctionReturn(0);
}

/* Learns all weight vectors for this lambda, from their current values: each by one method or, if that stops early, by several in turn */
static PetscErrorCode Learn(Learner *l, PetscReal lambda, Outcome *out)
{
  Method    method = l->settings->method;
  PetscBool dual;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(out, sizeof(*out)));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)l->data.X, MATSEQAIJ, &dual));
  dual = (PetscBool)(dual && l->loss->interior && !l->vectors && !l->ones);
  PetscCheck(method != METHOD_DUAL || dual, PETSC_COMM_WORLD, PETSC_ERR_SUP, "-method dual is for one process, and rows and vectors in its memory");
  if (method == METHOD_AUTO) method = l->loss->curvature ? METHOD_NEWTON : dual ? METHOD_DUAL : METHOD_BUNDLE;
  out->converged = PETSC_TRUE;
  l->lambda      = lambda;
  for (PetscInt j = 0; j < l->k; j++) {
    Rest rest = {PETSC_TRUE, -PETSC_MAX_REAL, 0};

    PetscCall(LearnerClass(l, j));
    PetscCall(BiasTake(l, l->w[j]));
    if (method == METHOD_NEWTON) {
      PetscCall(LearnNewton(l, out));
      rest.left = PETSC_FALSE;
    }
    if (method == METHOD_DUAL) PetscCall(LearnDual(l, &rest, out));
    if (rest.left && method != METHOD_INTERIOR) PetscCall(LearnBundle(l, &rest, out));
    if (rest.left) PetscCall(LearnInterior(l, &rest, out));
    PetscCall(BiasGive(l, l->w[j]));
  }
  PetscFunctionReturn(0);
}

/* The quality of each lambda: the mean over the parts. Each part is left out of learning once */
static PetscErrorCode CrossValidate(const Learner *l, const Settings *o, PetscReal quality[])
{
  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < o->nlambdas; i++) quality[i] = 0;
  for (PetscInt fold = 0; fold < o->folds; fold++) {
    const PetscReal low = (PetscReal)fold / (PetscReal)o->folds, high = (PetscReal)(fold + 1) / (PetscReal)o->folds;
    Learner         part = *l;
    Data            rest;
    Outcome         out;
    Quality         q;
    PetscInt        M;

    PetscCall(PetscMemzero(&part.data, sizeof(part) - offsetof(Learner, data)));
    part.began = l->began;
    PetscCall(DataSelect(&l->data, o->seed, low, high, PETSC_TRUE, &part.data));
    PetscCall(DataSelect(&l->data, o->seed, low, high, PETSC_FALSE, &rest));
    PetscCall(MatGetSize(rest.X, &M, NULL));
    PetscCheck(M, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-cv %" PetscInt_FMT ": a part has no rows, choose fewer or another -seed", o->folds);
    PetscCall(CheckRows(&part, o->file));
    PetscCall(LearnerSetUp(&part));
    for (PetscInt i = 0; i < o->nlambdas; i++) {
      PetscCall(Learn(&part, o->lambda[i], &out));
      PetscCall(Judge(&part, &rest, part.w, "", "", PREDICT_LABEL, &q));
      quality[i] += QualityNumber(&part, &q) / (PetscReal)o->folds;
    }
    PetscCall(DataDestroy(&rest));
    PetscCall(LearnerDestroy(&part));
  }
  PetscFunctionReturn(0);
}

typedef struct {
  Data           validation; /* validation rows; none if X is NULL */
  Vec           *w;          /* the weights for these rows, if the rows are from another file */
  PetscReal      best;
  PetscInt       which; /* index of the best lambda */
  Vec           *bestw;
  Outcome        out;
  Quality        training, judged;
  PetscLogDouble start, load, setup, learn, cpu; /* cpu: processor time of learning, of all threads of this process */
} Run;

/* Loads the validation rows, or separates them from the rows to learn from */
static PetscErrorCode GetValidation(Learner *l, const Settings *o, Run *r)
{
  PetscFunctionBeginUser;
  if (o->share > 0) {
    Data rest;

    PetscCall(DataSelect(&l->data, o->seed, 0, o->share, PETSC_TRUE, &rest));
    PetscCall(DataSelect(&l->data, o->seed, 0, o->share, PETSC_FALSE, &r->validation));
    PetscCall(DataDestroy(&l->data));
    l->data = rest;
  } else if (o->validation[0]) {
    PetscCall(DataLoad(o->validation, "", "", l->bias, l->base, &r->validation));
    PetscCheck(r->validation.y, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: has no labels to judge by", o->validation);
    PetscCall(MatchLabels(l, r->validation.y, o->validation));
  }
  PetscFunctionReturn(0);
}

/* Computes the quality of the weights of l on the validation rows; prints it if `what` is not empty */
static PetscErrorCode JudgeValidation(const Learner *l, const Settings *o, Run *r, const char what[])
{
  Vec *w = l->w;

  PetscFunctionBeginUser;
  if (!r->validation.X) PetscFunctionReturn(0);
  if (o->validation[0]) PetscCall(FitWeights(l, o->validation, r->validation.X, &w));
  PetscCall(Judge(l, &r->validation, w, what, "", PREDICT_LABEL, &r->judged));
  if (w != l->w) {
    for (PetscInt j = 0; j < l->k; j++) PetscCall(VecDestroy(&w[j]));
    PetscCall(PetscFree(w));
  }
  PetscFunctionReturn(0);
}

/* Learns for each lambda in descending order, starting from the previous weights. Chooses the best lambda by quality on the rows left out of learning, or else on the rows learned from */
static PetscErrorCode LearnPath(Learner *l, const Settings *o, Run *r)
{
  PetscReal      cv[MAX_LAMBDAS];
  PetscLogDouble begin, end;
  clock_t        cpu[2];

  PetscFunctionBeginUser;
  if (o->folds) PetscCall(CrossValidate(l, o, cv));
  if (o->nlambdas > 1) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "path       lambda      iterations  objective   %s: training%s%s\n", QualityName(l), r->validation.X ? "  validation" : "", o->folds ? "  cross-validation" : ""));
  PetscCall(PetscMalloc1(l->k, &r->bestw));
  for (PetscInt j = 0; j < l->k; j++) PetscCall(VecDuplicate(l->w[j], &r->bestw[j]));
  for (PetscInt i = 0; i < o->nlambdas; i++) {
    Outcome   out;
    Quality   training;
    PetscReal number;

    PetscCall(PetscTime(&begin));
    cpu[0] = clock();
    PetscCall(Learn(l, o->lambda[i], &out));
    cpu[1] = clock();
    PetscCall(PetscTime(&end));
    r->learn += end - begin;
    r->cpu += (PetscLogDouble)(cpu[1] - cpu[0]) / CLOCKS_PER_SEC;
    if (o->nlambdas > 1) {
      PetscCall(Judge(l, &l->data, l->w, "", "", PREDICT_LABEL, &training));
      PetscCall(JudgeValidation(l, o, r, ""));
      number = o->folds ? cv[i] : QualityNumber(l, r->validation.X ? &r->judged : &training);
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "           %-10.4g  %10" PetscInt_FMT "  %-10.4g  %.4f", (double)o->lambda[i], out.iterations, (double)out.objective, (double)PetscAbsReal(QualityNumber(l, &training))));
      if (r->validation.X) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  %.4f", (double)PetscAbsReal(QualityNumber(l, &r->judged))));
      if (o->folds) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  %.4f", (double)PetscAbsReal(cv[i])));
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s\n", out.converged ? "" : "  not converged"));
    } else number = 0;
    if (!i || number > r->best) {
      r->best  = number;
      r->which = i;
      r->out   = out;
      for (PetscInt j = 0; j < l->k; j++) PetscCall(VecCopy(l->w[j], r->bestw[j]));
    }
  }
  for (PetscInt j = 0; j < l->k; j++) {
    PetscCall(VecCopy(r->bestw[j], l->w[j]));
    PetscCall(VecDestroy(&r->bestw[j]));
  }
  PetscCall(PetscFree(r->bestw));
  l->lambda = o->lambda[r->which];
  if (o->nlambdas > 1) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "best       lambda %g\n", (double)l->lambda));
  if (o->folds) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "cross      %s %.4f, mean of %" PetscInt_FMT " parts\n", QualityName(l), (double)PetscAbsReal(cv[r->which]), o->folds));
  PetscFunctionReturn(0);
}

static PetscErrorCode Report(const Learner *l, const Settings *o, Run *r)
{
  const PetscLogDouble *s = l->seconds;

  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "outcome    %s\n", r->out.converged ? "converged" : "not converged"));
  if (!r->out.converged)
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "warning    not converged: after %" PetscInt_FMT " iterations the gap is %.3g of the objective, not the %g of -epsilon; -tao_max_it allows more\n", r->out.iterations, (double)(r->out.gap / r->out.objective),
                          (double)o->epsilon));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "objective  %.4g, of which the risk is %.4g\n", (double)r->out.objective, (double)r->out.risk));
  PetscCall(Judge(l, &l->data, l->w, "training", o->predictions, o->kind, &r->training));
  PetscCall(JudgeValidation(l, o, r, "validation"));
  if (o->times) {
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "iterations %" PetscInt_FMT " by %s, %" PetscInt_FMT " products, gap %.3g\n", r->out.iterations, r->out.method, l->products, (double)r->out.gap));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "seconds    start %.4f, load %.4f, set-up %.4f, learn %.4f: scores %.4f, losses %.4f, subgradients %.4f, optimiser %.4f\n", r->start, r->load, r->setup, r->learn, s[TIME_SCORES], s[TIME_LOSS], s[TIME_SUBGRADIENT], r->learn - s[TIME_SCORES] - s[TIME_LOSS] - s[TIME_SUBGRADIENT]));
  }
  if (o->json[0]) {
    MatInfo     info;
    MatType     type;
    PetscInt    M, N;
    PetscMPIInt rank, size;
    FILE       *fp;

    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
    PetscCall(MatGetSize(l->data.X, &M, &N));
    PetscCall(MatGetInfo(l->data.X, MAT_GLOBAL_SUM, &info));
    PetscCall(MatGetType(l->data.X, &type));
    if (!rank) {
      fp = fopen(o->json, "a");
      PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be written", o->json);
      fprintf(fp, "{\"file\": \"%s\", \"rows\": %ld, \"columns\": %ld, \"nonzeros\": %.0f, \"mat_type\": \"%s\", \"tao_type\": \"%s\", \"ranks\": %d, \"loss\": \"%s\", \"lambda\": %g, \"epsilon\": %g, ", o->file, (long)M, (long)N, info.nz_used, type,
              r->out.method, (int)size, l->loss->name, (double)l->lambda, (double)o->epsilon);
      fprintf(fp, "\"reason\": \"%s\", \"iterations\": %ld, \"evaluations\": %ld, \"gap\": %.17g, \"objective\": %.17g, \"risk\": %.17g, \"accuracy\": %.17g, \"area\": %.17g, \"rms\": %.17g, \"validation_accuracy\": %.17g, ", r->out.converged ? "CONVERGED" : "DIVERGED_MAXITS",
              (long)r->out.iterations, (long)l->products / 2, (double)r->out.gap, (double)r->out.objective, (double)r->out.risk, (double)r->training.accuracy, (double)r->training.area, (double)r->training.rms, (double)(r->validation.X ? r->judged.accuracy : -1));
      fprintf(fp, "\"start\": %.6f, \"load\": %.6f, \"setup\": %.6f, \"learn\": %.6f, \"scores\": %.6f, \"losses\": %.6f, \"subgradients\": %.6f, \"cpu\": %.6f}\n", r->start, r->load, r->setup, r->learn, l->seconds[TIME_SCORES], l->seconds[TIME_LOSS], l->seconds[TIME_SUBGRADIENT], r->cpu);
      PetscCheck(!fclose(fp), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s: cannot be written", o->json);
    }
  }
  PetscFunctionReturn(0);
}

static PetscErrorCode SayData(Mat X)
{
  PetscInt M, N;
  MatInfo  info;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(X, &M, &N));
  PetscCall(MatGetInfo(X, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "data       %" PetscInt_FMT " rows, %" PetscInt_FMT " columns, %.0f nonzeros\n", M, N, info.nz_used));
  PetscFunctionReturn(0);
}

/* Learns, and prints the quality */
static PetscErrorCode LearnAndReport(Learner *l, const Settings *o)
{
  Run            r = {0};
  PetscLogDouble t[4];

  PetscFunctionBeginUser;
  PetscCheck(o->kind != PREDICT_PROBABILITY || !strcmp(l->loss->name, "logistic"), PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "Probabilities come from -loss logistic, not %s", l->loss->name);
  PetscCall(PetscTime(&t[0]));
  PetscCall(StartType());
  PetscCall(PetscTime(&t[1]));
  PetscCall(DataLoad(o->file, o->labels, o->rowweights, o->bias, -1, &l->data));
  l->base = l->data.base;
  l->bias = o->bias;
  PetscCall(PetscTime(&t[2]));
  r.start = t[1] - t[0];
  r.load  = t[2] - t[1];
  PetscCall(SayData(l->data.X));
  PetscCall(GetClasses(l, &l->data, o->file));
  PetscCall(GetValidation(l, o, &r));
  PetscCall(CheckRows(l, o->file));
  PetscCall(CheckOptions());
  PetscCall(LearnerSetUp(l));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "problem    loss %s, ", l->loss->name));
  if (o->nlambdas > 1) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%" PetscInt_FMT " lambdas from %g to %g", o->nlambdas, (double)o->lambda[0], (double)o->lambda[o->nlambdas - 1]));
  else PetscCall(PetscPrintf(PETSC_COMM_WORLD, "lambda %g", (double)o->lambda[0]));
  if (l->nclasses) PetscCall(PetscPrintf(PETSC_COMM_WORLD, ", %" PetscInt_FMT " classes", l->nclasses));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  if (o->check) PetscCall(CheckRisk(l, o->seed));
  else {
    Vec       g;
    PetscReal f, size;

    PetscCall(PetscTime(&t[2]));
    /* the first products, at zero. In them a type converts the matrix, copies it to the device and builds its transpose. Zero times an infinite value is NaN, so the subgradient shows infinite and NaN values for every loss */
    PetscCall(VecDuplicate(l->w[0], &g));
    PetscCall(LearnerClass(l, 0));
    PetscCall(Scores(l, l->w[0], l->s));
    PetscCall(RiskAt(l, l->s, l->c, &f));
    PetscCall(Subgradient(l, l->c, g));
    PetscCall(VecNorm(g, NORM_1, &size));
    PetscCheck(!PetscIsInfOrNanReal(f) && !PetscIsInfOrNanReal(size), PETSC_COMM_WORLD, PETSC_ERR_FP, "%s: the risk or its subgradient at zero is not finite: a value in the file is not, or is too large", o->file);
    PetscCall(VecDestroy(&g));
    PetscCall(PetscMemzero(l->seconds, sizeof(l->seconds)));
    l->products = 0;
    PetscCall(PetscTime(&t[3]));
    r.setup  = t[3] - t[2];
    l->began = t[3];
    PetscCall(LearnPath(l, o, &r));
    if (o->modelout[0]) PetscCall(ModelSave(l, o->modelout)); /* first, because later steps may fail */
    PetscCall(Report(l, o, &r));
  }
  PetscCall(DataDestroy(&r.validation));
  PetscFunctionReturn(0);
}

static PetscErrorCode Program(void)
{
  Learner  l = {0};
  Settings o;

  PetscFunctionBeginUser;
  PetscCall(GetSettings(&o, &l.loss, &l.parameter));
  PetscCall(CheckFiles(&o));
  l.settings = &o;
  if (o.model[0]) { /* applies a model; ignores the settings for learning */
    PetscScalar *weights;
    Quality      q;

    PetscCall(ModelLoad(&l, o.model, &weights));
    PetscCall(DataLoad(o.file, o.labels, "", l.bias, l.base, &l.data));
    PetscCall(SayData(l.data.X));
    PetscCheck(o.kind != PREDICT_PROBABILITY || !strcmp(l.loss->name, "logistic"), PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "Probabilities come from a model of -loss logistic, not %s", l.loss->name);
    PetscCall(CheckOptions());
    PetscCall(PetscCalloc1(l.k, &l.w));
    PetscCall(ModelWeights(&l, weights, "the model", o.file, l.data.X, l.w));
    PetscCall(MatchLabels(&l, l.data.y, o.file));
    PetscCall(Judge(&l, &l.data, l.w, "data", o.predictions, o.kind, &q));
    PetscCall(PetscFree(weights));
  } else PetscCall(LearnAndReport(&l, &o));
  PetscCall(LearnerDestroy(&l));
  PetscFunctionReturn(0);
}

/* Prints an error as one line; -trace makes PETSc print where it occurred */
static PetscErrorCode SayError(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode code, PetscErrorType type, const char *message, void *ctx)
{
  PetscMPIInt rank = 0;

  MPI_Comm_rank(comm, &rank);
  if (type == PETSC_ERROR_INITIAL && !rank) fprintf(stderr, "bmrm: %s\n", message ? message : "an error without a message; -trace says where");
  return code;
}

int main(int argc, char **argv)
{
  PetscErrorCode ierr;
  PetscBool      trace = PETSC_FALSE;
  PetscMPIInt    size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-trace", &trace, NULL));
  if (!trace) PetscCall(PetscPushErrorHandler(SayError, NULL));
  ierr = Program();
  if (ierr) {
    fflush(stdout);
    if (size > 1) MPI_Abort(PETSC_COMM_WORLD, (int)ierr);
    _Exit((int)ierr);
  }
  if (!trace) PetscCall(PetscPopErrorHandler());
  PetscCall(PetscFinalize());
  return 0;
}
