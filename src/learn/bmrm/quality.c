/*
  The quality of a model, and its predictions.
*/
#include "learn.h"

/* The prediction from the k scores of a row, which are M apart: the label of the best class, or the score itself */
static PetscReal Guess(const Learner *l, const PetscScalar score[], PetscInt M)
{
  PetscInt best = l->k == 1 && PetscRealPart(score[0]) > 0 ? 1 : 0;

  if (!l->nclasses) return PetscRealPart(score[0]);
  for (PetscInt j = 1; j < l->k; j++)
    if (PetscRealPart(score[j * M]) > PetscRealPart(score[best * M])) best = j;
  return l->label[best];
}

/* Writes one line per row: the label, the scores of all classes, or the label and the probability of each class. With more than two classes the sum of the probabilities is scaled to 1 */
static PetscErrorCode WritePredictions(const Learner *l, PetscInt M, const PetscScalar score[], const char file[], PredictionKind kind)
{
  FILE *fp = fopen(file, "w");

  PetscFunctionBeginUser;
  PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be written", file);
  if (kind == PREDICT_PROBABILITY) { /* LIBLINEAR's header */
    fprintf(fp, "labels");
    for (PetscInt j = 0; j < l->nclasses; j++) fprintf(fp, " %.17g", (double)l->label[l->k == 1 ? 1 - j : j]);
    fprintf(fp, "\n");
  }
  for (PetscInt i = 0; i < M; i++) {
    if (kind == PREDICT_VALUE) {
      for (PetscInt j = 0; j < l->k; j++) fprintf(fp, j ? " %.17g" : "%.17g", (double)PetscRealPart(score[i + j * M]));
    } else fprintf(fp, "%.17g", (double)Guess(l, score + i, M));
    if (kind == PREDICT_PROBABILITY) {
      PetscReal sum = 0;

      for (PetscInt j = 0; j < l->k; j++) sum += 1 / (1 + PetscExpReal(-PetscRealPart(score[i + j * M])));
      if (l->k == 1) fprintf(fp, " %.17g %.17g", (double)sum, (double)(1 / (1 + PetscExpReal(PetscRealPart(score[i])))));
      else
        for (PetscInt j = 0; j < l->k; j++) fprintf(fp, " %.17g", (double)(1 / (1 + PetscExpReal(-PetscRealPart(score[i + j * M]))) / sum));
    }
    fprintf(fp, "\n");
  }
  PetscCheck(!fclose(fp), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s: cannot be written", file);
  PetscFunctionReturn(0);
}

/* The number by which models are compared (larger is better), and its name */
PetscReal QualityNumber(const Learner *l, const Quality *q)
{
  return l->loss->labels == LABELS_TARGETS ? -q->rms : (l->loss->labels == LABELS_RANKS ? q->pairs : q->accuracy);
}

const char *QualityName(const Learner *l)
{
  return l->loss->labels == LABELS_TARGETS ? "error" : (l->loss->labels == LABELS_RANKS ? "pairs in order" : "accuracy");
}

/* Computes and prints the quality of w on rows; with a file name, writes the predictions. Rows without labels are only predicted */
PetscErrorCode Judge(const Learner *l, const Data *data, Vec w[], const char what[], const char predictions[], PredictionKind kind, Quality *q)
{
  PetscScalar *score, *label, *query;
  PetscInt     M;
  PetscMPIInt  rank;
  Vec          s;
  MPI_Comm     comm = PETSC_COMM_WORLD;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(MatGetSize(data->X, &M, NULL));
  PetscCall(PetscCalloc3(rank ? 0 : (size_t)M * (size_t)l->k, &score, rank ? 0 : M, &label, rank ? 0 : M, &query));
  PetscCall(MatCreateVecs(data->X, NULL, &s));
  for (PetscInt j = 0; j < l->k; j++) {
    PetscCall(MatMult(data->X, w[j], s));
    PetscCall(Gather(s, PETSC_FALSE, score + (rank ? 0 : j * M)));
  }
  PetscCall(VecDestroy(&s));
  if (data->y) PetscCall(Gather(data->y, PETSC_FALSE, label));
  if (data->q) PetscCall(Gather(data->q, PETSC_FALSE, query));
  PetscCall(PetscMemzero(q, sizeof(*q)));
  q->area = -1;
  if (!rank) {
    for (PetscInt i = 0; i < M * l->k; i++) PetscCheck(!PetscIsInfOrNanScalar(score[i]), PETSC_COMM_SELF, PETSC_ERR_FP, "Row %" PetscInt_FMT " of those for %s has no finite score: its values are not finite, or too large", i % M, what);
    if (predictions[0]) PetscCall(WritePredictions(l, M, score, predictions, kind));
    if (data->y) {
      for (PetscInt i = 0; i < M; i++) {
        const PetscReal guess = Guess(l, score + i, M);

        q->accuracy += guess == PetscRealPart(label[i]);
        q->absolute += PetscAbsReal(guess - PetscRealPart(label[i]));
        q->rms += PetscSqr(guess - PetscRealPart(label[i]));
      }
      q->accuracy /= PetscMax(M, 1);
      q->absolute /= PetscMax(M, 1);
      q->rms = PetscSqrtReal(q->rms / PetscMax(M, 1));
      if (l->loss->labels == LABELS_RANKS) PetscCall(RankedPairs(M, score, label, query, &q->pairs));
      if (l->nclasses == 2) {
        for (PetscInt i = 0; i < M; i++) label[i] = PetscRealPart(label[i]) == l->label[1] ? 1 : -1;
        PetscCall(ROCArea(M, score, label, &q->area));
      }
    }
  }
  PetscCallMPI(MPI_Bcast(q, sizeof(*q), MPI_BYTE, 0, comm));
  PetscCall(PetscFree3(score, label, query));
  if (!what[0]) PetscFunctionReturn(0);
  if (!M) PetscCall(PetscPrintf(comm, "%-10s no rows\n", what));
  else if (!data->y) PetscCall(PetscPrintf(comm, "%-10s %" PetscInt_FMT " rows without labels\n", what, M));
  else if (l->loss->labels == LABELS_RANKS) PetscCall(PetscPrintf(comm, "%-10s pairs in order %.2f %%\n", what, (double)(100 * q->pairs)));
  else if (!l->nclasses) PetscCall(PetscPrintf(comm, "%-10s error %.3g root mean square, %.3g mean absolute\n", what, (double)q->rms, (double)q->absolute));
  else if (l->nclasses == 2) PetscCall(PetscPrintf(comm, "%-10s accuracy %.2f %%, area under the ROC curve %.2f\n", what, (double)(100 * q->accuracy), (double)q->area));
  else PetscCall(PetscPrintf(comm, "%-10s accuracy %.2f %%\n", what, (double)(100 * q->accuracy)));
  PetscFunctionReturn(0);
}
