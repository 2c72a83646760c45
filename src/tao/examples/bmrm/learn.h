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
  PetscReal      share, epsilon, absolute, bias, lambda[MAX_LAMBDAS];
  PetscReal      weighted[MAX_CLASSES], weight[MAX_CLASSES]; /* labels that have a weight, and the weights */
  PetscInt       seed, folds, nlambdas, nweights, maxits;
  PetscBool      check, times, progress, vectors;
} Settings;

extern PetscErrorCode GetSettings(Settings *, const Loss **, PetscReal *parameter);
extern PetscErrorCode CheckFiles(const Settings *);
extern PetscErrorCode CheckOptions(void);
extern PetscErrorCode SayError(MPI_Comm, int, const char *, const char *, PetscErrorCode, PetscErrorType, const char *, void *);

/* ---- rows and what is known of them: data.c */

typedef struct {
  Mat      X;
  Vec      y, u, q; /* labels, weights of rows, queries: NULL where there are none */
  PetscInt base;    /* index of the first column in the file, -1 where files of that format have none */
} Data;

extern PetscErrorCode DataLoad(const char file[], const char labels[], const char weights[], PetscReal bias, PetscInt base, Data *);
extern PetscErrorCode DataDestroy(Data *);
extern PetscErrorCode DataSelect(const Data *, PetscBool (*in)(PetscInt row, PetscInt seed, PetscReal share), PetscInt seed, PetscReal share, PetscBool not, Data *);
extern PetscReal      Uniform(PetscInt seed, PetscInt i);
extern PetscErrorCode DistinctLabels(Vec y, PetscReal label[], PetscInt *n);

/* ---- the learner */

typedef struct {
  const Loss     *loss;
  PetscReal       parameter, lambda, bias;
  PetscInt        base, columns;      /* of the data learned from; the column of the bias counts */
  PetscInt        nclasses;           /* with a label each; 0 where labels are targets or ranks */
  PetscReal       label[MAX_CLASSES]; /* ascending; of two, the second is the positive one */
  PetscInt        k;                  /* weight vectors: 1, or one for each of more than two classes, against all others */
  Vec            *w;                  /* them */
  const Settings *settings;
  Data            data;
  /* of the weight vector that is learned: */
  PetscInt       which;
  Vec            z, u;      /* labels as the loss wants them; weights of rows, NULL where all are 1 */
  Vec            s, c, f;   /* scores, slopes, losses */
  Vec            origin, d; /* a line of scores: base + k d */
  Vec            t, dt;     /* the same line as margins 1 - y s, where losses are by vectors: t + k dt */
  Vec            zero;
  PetscBool      vectors; /* losses by operations of vectors: these are not the host's */
  VecScatter     tozero;  /* for a loss of all rows together: everything to rank 0 */
  Vec            s0, c0, z0, q0;
  PetscReal      trial; /* step along a line that is tried first */
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
extern PetscErrorCode RiskAt(Learner *, Vec s, Vec c, PetscReal *risk);
extern PetscErrorCode Subgradient(Learner *, Vec c, Vec g);
extern PetscErrorCode Curvature(Learner *, Vec s, Vec h);
extern PetscErrorCode SearchLine(Learner *, PetscReal linear, PetscReal square, PetscReal tol, PetscReal *step, PetscReal *risk);
extern PetscErrorCode CheckRisk(Learner *, PetscInt seed);

/* A truncated Newton method: newton.c */
typedef struct {
  Vec g, p, r, z, q, h, xp, xq; /* gradient; step; of conjugate gradients; second derivatives; X p, X q */
} Newton;

extern PetscErrorCode NewtonCreate(Learner *, Newton *);
extern PetscErrorCode NewtonDestroy(Newton *);
extern PetscErrorCode NewtonSolve(Learner *, Newton *, PetscReal want, PetscReal residual, PetscReal *decrease);

/* Passed from a method to the next one */
typedef struct {
  PetscBool left;  /* the optimum was not met, and nothing was added to the outcome */
  PetscReal lower; /* a bound of the optimum */
  PetscInt  iterations;
} Rest;

/* newton.c, bundle.c, dual.c, interior.c: minimise for the current weight vector, and add to the outcome. The first two begin at its value, the others at zero */
extern PetscErrorCode LearnNewton(Learner *, Outcome *);
extern PetscErrorCode LearnBundle(Learner *, Rest *, Outcome *);
extern PetscErrorCode HasDual(const Learner *, PetscBool *);
extern PetscErrorCode LearnDual(Learner *, Rest *, Outcome *);
extern PetscErrorCode LearnInterior(Learner *, Rest *, Outcome *);
extern PetscErrorCode Progress(const Learner *, PetscInt iteration, PetscReal objective, PetscReal gap, PetscBool last);

/* ---- models: model.c */
extern PetscErrorCode ModelSave(const Learner *, const char file[]);
extern PetscErrorCode ModelLoad(Learner *, const char file[], PetscReal **weights);
extern PetscErrorCode ModelWeights(Learner *, const PetscReal weights[], const char model[], const char file[], Mat X, Vec w[]);
extern PetscErrorCode FitWeights(const Learner *, const char file[], Mat X, Vec **w);

/* ---- quality: quality.c */
typedef struct {
  PetscReal accuracy, area; /* classes: share of rows that are right; area under the ROC curve, -1 where there is none */
  PetscReal rms, absolute;  /* targets: errors */
  PetscReal pairs;          /* ranks: share of pairs in the right order */
} Quality;

extern PetscErrorCode Judge(const Learner *, const Data *, Vec w[], const char what[], const char predictions[], PredictionKind, Quality *);
extern PetscReal      QualityNumber(const Learner *, const Quality *);
extern const char    *QualityName(const Learner *);
