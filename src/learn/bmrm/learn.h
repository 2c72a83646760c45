#pragma once

/* Shared by the files of bmrm: the settings, the data, the learner, and its parts */
#include <petsctao.h>
#include <petsctime.h>
#include <stdio.h>
#include <string.h>
#include "losses.h"

enum {
  MAX_CLASSES = 1000,
  MAX_LAMBDAS = 200
};

/* Times of the parts of an iteration, in seconds */
typedef enum {
  TIME_SCORES,
  TIME_LOSS,
  TIME_SUBGRADIENT,
  NTIMES
} TimePart;

/* Adds the time of a call to a part's */
#define TIMED(l, part, call) \
  do { \
    PetscLogDouble begin_, end_; \
\
    PetscCall(PetscTime(&begin_)); \
    PetscCall(call); \
    PetscCall(PetscTime(&end_)); \
    (l)->seconds[part] += end_ - begin_; \
  } while (0)

/* ---- settings: settings.c */

typedef enum {
  PREDICT_LABEL,
  PREDICT_VALUE,
  PREDICT_PROBABILITY
} PredictionKind;

typedef enum {
  METHOD_AUTO,
  METHOD_BUNDLE,
  METHOD_NEWTON,
  METHOD_INTERIOR,
  METHOD_DUAL
} Method;

typedef struct {
  char           file[PETSC_MAX_PATH_LEN], labels[PETSC_MAX_PATH_LEN], rowweights[PETSC_MAX_PATH_LEN], validation[PETSC_MAX_PATH_LEN], model[PETSC_MAX_PATH_LEN], modelout[PETSC_MAX_PATH_LEN], predictions[PETSC_MAX_PATH_LEN], json[PETSC_MAX_PATH_LEN];
  PredictionKind kind;
  Method         method;
  PetscReal      share, epsilon, absolute, bias, lambda[MAX_LAMBDAS + 1];
  PetscReal      weighted[MAX_CLASSES], weight[MAX_CLASSES]; /* labels that have a weight, and the weights */
  PetscInt       seed, folds, nlambdas, nweights, maxits;
  PetscBool      check, times, progress, vectors, regularised; /* regularised: the bias is */
} Settings;

extern PetscErrorCode GetSettings(Settings *, const Loss **, PetscReal *parameter);
extern PetscErrorCode CheckFiles(const Settings *);
extern PetscErrorCode CheckOptions(void);

/* ---- the data: data.c */

typedef struct {
  Mat      X;
  Vec      y, u, q; /* labels, weights of rows, queries; NULL if absent */
  PetscInt base;    /* index of the first column in the file, -1 if the format has none */
} Data;

extern PetscErrorCode DataLoad(const char file[], const char labels[], const char weights[], PetscReal bias, PetscInt base, Data *);
extern PetscErrorCode DataDestroy(Data *);
extern PetscErrorCode DataSelect(const Data *, PetscInt seed, PetscReal low, PetscReal high, PetscBool complement, Data *);
extern PetscErrorCode DistinctLabels(Vec y, PetscReal label[], PetscInt *n);

/* ---- the learner */

typedef struct {
  const Loss     *loss;
  PetscReal       parameter, lambda, bias;
  PetscInt        base, columns;      /* of the data learned from; columns include the bias */
  PetscInt        nclasses;           /* number of classes; 0 if labels are targets or ranks */
  PetscReal       label[MAX_CLASSES]; /* labels of the classes, ascending; of two classes the second is the positive one */
  PetscInt        k;                  /* number of weight vectors: 1, or with more than two classes one for each class against the rest */
  const Settings *settings;
  /* what LearnerSetUp() makes, and the data: */
  Data data;
  Vec *w; /* the weight vectors */
  /* of the weight vector being learned: */
  PetscInt       which;
  Vec            z, u;      /* labels as the loss needs them; weights of rows, NULL if all are 1 */
  Vec            s, c, f;   /* scores, slopes, losses */
  Vec            origin, d; /* a line of scores: base + k d */
  Vec            t, dt;     /* the same line as margins 1 - y s, if vector operations compute the losses: t + k dt */
  Vec            zero;
  Vec            ones, unit, near, other; /* if the bias is not regularised: a shift of all scores; its column's unit vector; scores and slopes for the search along it. Else NULL */
  PetscReal      shift;                   /* the bias of the scores then, else 0 */
  PetscBool      vectors;                 /* vector operations compute the losses, because the vectors are not in host memory */
  PetscReal      trial;                   /* first trial step of the line search */
  PetscLogDouble seconds[NTIMES], began;
  PetscInt       products;
} Learner;

/* The outcome of learning, for all weight vectors together */
typedef struct {
  PetscReal   objective, risk, gap;
  PetscInt    iterations;
  PetscBool   converged;
  const char *method;
} Outcome;

/* risk.c */
extern PetscErrorCode LearnerSetUp(Learner *);
extern PetscErrorCode LearnerClass(Learner *, PetscInt);
extern PetscErrorCode LearnerDestroy(Learner *);
extern PetscErrorCode Scores(Learner *, Vec w, Vec s);
extern PetscErrorCode WeighRows(Learner *, Vec);
extern PetscErrorCode RiskAt(Learner *, Vec s, Vec c, PetscReal *risk);
extern PetscErrorCode Subgradient(Learner *, Vec c, Vec g);
extern PetscErrorCode Curvature(Learner *, Vec s, Vec h);
extern PetscErrorCode SearchLine(Learner *, PetscReal linear, PetscReal square, PetscReal tol, PetscReal *step, PetscReal *risk);
extern PetscErrorCode SetLine(Learner *);
extern PetscErrorCode RiskAlong(Learner *, PetscReal k, PetscReal *risk, PetscReal *slope);
extern PetscErrorCode CheckRisk(Learner *, PetscInt seed);

/* bias.c; all but RiskBias() do nothing if the bias is regularised or there is none */
extern PetscErrorCode BiasTake(Learner *, Vec w);
extern PetscErrorCode BiasGive(Learner *, Vec w);
extern PetscErrorCode BiasBalance(Learner *, Vec h, Vec v, PetscReal *multiple);
extern PetscErrorCode BiasCentre(Learner *, Vec h, Vec s, PetscReal *shift);
extern PetscErrorCode RiskBias(Learner *, Vec s, Vec c, PetscReal *shift, PetscReal *risk, PetscReal *level);

/* A truncated Newton method: newton.c */
typedef struct {
  Vec       g, p, r, z, q, h, xp, xq; /* gradient; step; vectors of conjugate gradients; second derivatives; X p, X q */
  PetscReal shift;                    /* of the scores in xp, if the bias is not regularised */
} Newton;

extern PetscErrorCode CreateVecs(Vec like, PetscInt n, Vec *const v[]);
extern PetscErrorCode DestroyVecs(PetscInt n, Vec *const v[]);
extern PetscErrorCode NewtonCreate(Learner *, Newton *);
extern PetscErrorCode NewtonDestroy(Newton *);
extern PetscErrorCode NewtonSolve(Learner *, Newton *, PetscReal want, PetscReal residual, PetscReal *decrease);

/* Passed from a method to the next one */
typedef struct {
  PetscBool left;  /* the method stopped before the optimum and added nothing to the outcome */
  PetscReal lower; /* lower bound of the optimum */
  PetscInt  iterations;
} Rest;

/* newton.c, bundle.c, dual.c, interior.c: learn the current weight vector, and add to the outcome. The first two start from its value, the others from zero */
extern PetscErrorCode LearnNewton(Learner *, Outcome *);
extern PetscErrorCode LearnBundle(Learner *, Rest *, Outcome *);
extern PetscErrorCode LearnDual(Learner *, Rest *, Outcome *);
extern PetscErrorCode LearnInterior(Learner *, Rest *, Outcome *);
extern PetscErrorCode Objective(Learner *, Vec w, PetscReal risk, PetscReal *value); /* risk + lambda/2 |w|^2 */
extern void           AddOutcome(Outcome *, PetscReal objective, PetscReal risk, PetscReal gap, PetscInt iterations, PetscBool converged, const char method[]);
extern PetscErrorCode Progress(const Learner *, PetscInt iteration, PetscReal objective, PetscReal gap, PetscBool last);

/* ---- models: model.c */
extern PetscErrorCode ModelSave(const Learner *, const char file[]);
extern PetscErrorCode ModelLoad(Learner *, const char file[], PetscScalar **weights);
extern PetscErrorCode ModelWeights(const Learner *, const PetscScalar weights[], const char model[], const char file[], Mat X, Vec w[]);
extern PetscErrorCode Gather(Vec, PetscBool everywhere, PetscScalar all[]); /* all entries, on every rank or on rank 0 */
extern PetscErrorCode FitWeights(const Learner *, const char file[], Mat X, Vec **w);

/* ---- quality: quality.c */
typedef struct {
  PetscReal accuracy, area; /* classes: share of rows predicted correctly; area under the ROC curve, -1 if undefined */
  PetscReal rms, absolute;  /* targets: errors */
  PetscReal pairs;          /* ranks: share of pairs in the correct order */
} Quality;

extern PetscErrorCode Judge(const Learner *, const Data *, Vec w[], const char what[], const char predictions[], PredictionKind, Quality *);
extern PetscReal      QualityNumber(const Learner *, const Quality *);
extern const char    *QualityName(const Learner *);
