/*
  Models as text, in LIBLINEAR's format with additions at its end, which LIBLINEAR does not read: docs/learning.md has the lines
*/
#include "learn.h"

PetscErrorCode Gather(Vec v, PetscBool everywhere, PetscScalar all[])
{
  Vec                whole;
  VecScatter         scatter;
  PetscInt           n;
  const PetscScalar *a;

  PetscFunctionBeginUser;
  if (everywhere) PetscCall(VecScatterCreateToAll(v, &scatter, &whole));
  else PetscCall(VecScatterCreateToZero(v, &scatter, &whole));
  PetscCall(VecScatterBegin(scatter, v, whole, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(scatter, v, whole, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecGetLocalSize(whole, &n));
  PetscCall(VecGetArrayRead(whole, &a));
  PetscCall(PetscArraycpy(all, a, n));
  PetscCall(VecRestoreArrayRead(whole, &a));
  PetscCall(VecScatterDestroy(&scatter));
  PetscCall(VecDestroy(&whole));
  PetscFunctionReturn(0);
}

/* The weight vectors of l, one after the other */
static PetscErrorCode GatherWeights(const Learner *l, PetscBool everywhere, PetscScalar **weights)
{
  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1((size_t)l->columns * (size_t)l->k, weights));
  for (PetscInt j = 0; j < l->k; j++) PetscCall(Gather(l->w[j], everywhere, *weights + (size_t)j * (size_t)l->columns));
  PetscFunctionReturn(0);
}

PetscErrorCode ModelSave(const Learner *l, const char file[])
{
  PetscMPIInt  rank;
  PetscScalar *weights;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(GatherWeights(l, PETSC_FALSE, &weights));
  if (!rank) {
    FILE    *fp = fopen(file, "w");
    PetscInt features;

    PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be written", file);
    features = l->columns - (l->bias >= 0);
    fprintf(fp, "solver_type %s\nnr_class %ld\n", l->loss->liblinear, (long)PetscMax(l->nclasses, 2));
    if (l->nclasses) {
      fprintf(fp, "label");
      for (PetscInt j = 0; j < l->nclasses; j++) fprintf(fp, " %.17g", (double)l->label[l->k == 1 ? 1 - j : j]);
      fprintf(fp, "\n");
    }
    fprintf(fp, "nr_feature %ld\nbias %.17g\nw\n", (long)features, (double)(l->bias >= 0 ? l->bias : -1));
    for (PetscInt i = 0; i < l->columns; i++) {
      for (PetscInt j = 0; j < l->k; j++) fprintf(fp, "%.17g ", (double)PetscRealPart(weights[(size_t)j * (size_t)l->columns + (size_t)i]));
      fprintf(fp, "\n");
    }
    fprintf(fp, "bmrm 1\nloss %s\nparameter %.17g\nlambda %.17g\nbase %ld\n", l->loss->name, (double)l->parameter, (double)l->lambda, (long)l->base);
    PetscCheck(!fclose(fp), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s: cannot be written", file);
  }
  PetscCall(PetscFree(weights));
  PetscFunctionReturn(0);
}

#define CheckModel(ok, why) PetscCheck(ok, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: is no model of this program: %s", file, why)

/* Reads the header, up to the line "w" */
static PetscErrorCode ReadHead(Learner *l, const char file[], FILE *fp)
{
  char     word[96], solver[96] = "";
  PetscInt nclasses = 0;
  long     number   = 0;
  double   bias     = -1;

  PetscFunctionBeginUser;
  l->columns = -1;
  for (;;) {
    CheckModel(fscanf(fp, "%95s", word) == 1, "it ends before its weights");
    if (!strcmp(word, "solver_type")) CheckModel(fscanf(fp, "%95s", solver) == 1, "no solver");
    else if (!strcmp(word, "nr_class")) {
      CheckModel(fscanf(fp, "%ld", &number) == 1 && number >= 2 && number <= MAX_CLASSES, "a number of classes that cannot be");
      nclasses = (PetscInt)number;
    } else if (!strcmp(word, "label")) {
      double label;

      CheckModel(nclasses >= 2, "labels before the number of classes");
      for (PetscInt j = 0; j < nclasses; j++) {
        CheckModel(fscanf(fp, "%lf", &label) == 1 && !PetscIsInfOrNanReal(label), "a label is missing");
        l->label[nclasses == 2 ? 1 - j : j] = label;
      }
      for (PetscInt j = 1; j < nclasses; j++)
        for (PetscInt i = 0; i < j; i++) CheckModel(l->label[j] != l->label[i], "two labels are the same");
      l->nclasses = nclasses;
    } else if (!strcmp(word, "nr_feature")) {
      CheckModel(fscanf(fp, "%ld", &number) == 1 && number >= 0 && number < PETSC_MAX_INT, "a number of columns that cannot be");
      l->columns = (PetscInt)number;
    } else if (!strcmp(word, "bias")) CheckModel(fscanf(fp, "%lf", &bias) == 1 && !PetscIsInfOrNanReal(bias), "no bias");
    else if (!strcmp(word, "w")) break;
    else CheckModel(0, "a line that is not known");
  }
  CheckModel(l->columns >= 0 && nclasses >= 2, "its head is not whole");
  l->bias = bias;
  l->columns += bias >= 0;
  l->k = l->nclasses > 2 ? l->nclasses : 1;
  /* the loss of LIBLINEAR's solver, primal or dual; a model of an unknown solver is applied like the first loss for such labels */
  for (const Loss *loss = losses; loss->name; loss++) {
    const PetscBool same = (PetscBool)!strncmp(loss->liblinear, solver, strlen(loss->liblinear));

    if ((loss->labels == LABELS_CLASSES) != (l->nclasses > 0) || loss->labels == LABELS_RANKS) continue;
    if (!l->loss || same) l->loss = loss;
    if (same) break;
  }
  PetscFunctionReturn(0);
}

/* Reads the properties after the weights, if this program wrote the file; otherwise the file is LIBLINEAR's, and the solver names the loss */
static PetscErrorCode ReadRest(Learner *l, const char file[], FILE *fp)
{
  char   word[96], value[96];
  double number;

  PetscFunctionBeginUser;
  l->base      = -1;
  l->lambda    = 0;
  l->parameter = 0;
  if (fscanf(fp, "%95s %95s", word, value) == 2) {
    CheckModel(!strcmp(word, "bmrm") && !strcmp(value, "1"), "more weights than columns");
    while (fscanf(fp, "%95s %95s", word, value) == 2) {
      number = strtod(value, NULL);
      if (!strcmp(word, "loss")) {
        for (l->loss = losses; l->loss->name && strcmp(l->loss->name, value); l->loss++) {
        }
        CheckModel(l->loss->name, "a loss that is not known");
      } else if (!strcmp(word, "parameter")) l->parameter = number;
      else if (!strcmp(word, "lambda")) l->lambda = number;
      else if (!strcmp(word, "base")) l->base = (PetscInt)number;
      else CheckModel(0, "a line that is not known");
    }
  }
  CheckModel(l->loss && (l->loss->labels == LABELS_CLASSES) == (l->nclasses > 0) && (l->nclasses <= 2 || l->loss->rows), "its loss is not for its classes");
  PetscFunctionReturn(0);
}

/* LIBLINEAR orders labels by first occurrence. Here they ascend, and of two classes the second is the positive one */
static PetscErrorCode SortClasses(Learner *l, PetscScalar **weights)
{
  PetscInt     order[MAX_CLASSES];
  PetscScalar *file = *weights;

  PetscFunctionBeginUser;
  for (PetscInt j = 0; j < l->nclasses; j++) order[j] = j;
  if (l->nclasses == 2 && l->label[0] > l->label[1])
    for (PetscInt i = 0; i < l->columns; i++) file[i] = -file[i];
  PetscCall(PetscSortRealWithArrayInt(l->nclasses, l->label, order));
  if (l->k == 1) PetscFunctionReturn(0);
  PetscCall(PetscMalloc1((size_t)l->columns * (size_t)l->k, weights));
  for (PetscInt j = 0; j < l->k; j++) PetscCall(PetscArraycpy(*weights + (size_t)j * (size_t)l->columns, file + (size_t)order[j] * (size_t)l->columns, l->columns));
  PetscCall(PetscFree(file));
  PetscFunctionReturn(0);
}

/* Loads everything that learning would have set in l, and the weight vectors, one after the other; every rank reads the file */
PetscErrorCode ModelLoad(Learner *l, const char file[], PetscScalar **weights)
{
  FILE  *fp = fopen(file, "r");
  double number;

  PetscFunctionBeginUser;
  PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be read", file);
  l->loss     = NULL;
  l->nclasses = 0;
  PetscCall(ReadHead(l, file, fp));
  PetscCall(PetscMalloc1((size_t)l->columns * (size_t)l->k, weights));
  for (size_t i = 0; i < (size_t)l->columns * (size_t)l->k; i++) {
    CheckModel(fscanf(fp, "%lf", &number) == 1 && !PetscIsInfOrNanReal(number), "weights that are missing, or not finite");
    (*weights)[i % (size_t)l->k * (size_t)l->columns + i / (size_t)l->k] = number;
  }
  PetscCall(ReadRest(l, file, fp));
  fclose(fp);
  PetscCall(SortClasses(l, weights));
  PetscFunctionReturn(0);
}

/* Makes the weights of a model vectors for X. Columns missing in the model or in the data count as zero; the bias is the last column of both */
PetscErrorCode ModelWeights(const Learner *l, const PetscScalar weights[], const char model[], const char file[], Mat X, Vec w[])
{
  const PetscInt features = l->columns - (l->bias >= 0);
  PetscInt       N, rs, re, n;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(X, NULL, &N));
  n = N - (l->bias >= 0);
  /* reports if the rows have more or fewer columns than the model; the bias does not count */
  if (n > features) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "columns    %s has %" PetscInt_FMT ", %s %" PetscInt_FMT ": those beyond are left out\n", file, n, model, features));
  if (n < features) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "columns    %s has %" PetscInt_FMT ", %s %" PetscInt_FMT ": those missing count as zero\n", file, n, model, features));
  PetscCall(MatGetOwnershipRangeColumn(X, &rs, &re));
  for (PetscInt j = 0; j < l->k; j++) {
    PetscScalar *a;

    PetscCall(MatCreateVecs(X, &w[j], NULL));
    PetscCall(VecGetArrayWrite(w[j], &a));
    for (PetscInt i = rs; i < re; i++) {
      const PetscInt from = i == n ? l->columns - 1 : (i < features ? i : -1);

      a[i - rs] = from < 0 ? 0 : weights[(size_t)j * (size_t)l->columns + (size_t)from];
    }
    PetscCall(VecRestoreArrayWrite(w[j], &a));
  }
  PetscFunctionReturn(0);
}

/* The same for the weights of l, which were learned from other rows */
PetscErrorCode FitWeights(const Learner *l, const char file[], Mat X, Vec **w)
{
  PetscScalar *weights;

  PetscFunctionBeginUser;
  PetscCall(GatherWeights(l, PETSC_TRUE, &weights));
  PetscCall(PetscMalloc1(l->k, w));
  PetscCall(ModelWeights(l, weights, "the model", file, X, *w));
  PetscCall(PetscFree(weights));
  PetscFunctionReturn(0);
}
