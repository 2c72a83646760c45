#pragma once

/* Losses of linear models: losses.c */
#include <petscvec.h>
#include <stdlib.h>

typedef enum {
  LABELS_CLASSES, /* names of classes */
  LABELS_TARGETS, /* numbers to be predicted */
  LABELS_RANKS    /* numbers that define the order within a query */
} LabelKind;

/* Rows with their scores s, or s + k d along a line */
typedef struct {
  PetscInt           n;
  const PetscScalar *s, *d, *y, *u; /* y: labels; u: weights, NULL: all 1 */
  PetscReal          k, parameter, scale;
  PetscScalar       *c;     /* without d: becomes `scale` times the slope of each row's loss */
  PetscReal          along; /* with d: becomes `scale` times the derivative of the sum by k */
} LossRows;

typedef struct {
  const char *name;
  const char *liblinear; /* the solver of LIBLINEAR with this loss, or a solver with the same application of models */
  LabelKind   labels;
  const char *option;                                                                   /* the option for the parameter; NULL if there is none */
  PetscReal   usual;                                                                    /* default of the parameter */
  PetscReal (*rows)(LossRows *);                                                        /* sum of the losses; NULL for a loss of all rows together */
  PetscErrorCode (*vectors)(Vec s, Vec y, PetscReal parameter, Vec zero, Vec f, Vec c); /* losses and slopes of all rows, by vector operations */
  int power;                                                                            /* the loss of a row is this power of max(t, 0) at the margin t = 1 - y s; 0: the loss is no such power */
  PetscErrorCode (*curvature)(Vec c);                                                   /* overwrites slopes by second derivatives; NULL if the loss is not smooth */
  /* loss of all n rows together; c[i] becomes its derivative by the score of row i */
  PetscErrorCode (*allrows)(PetscInt n, const PetscScalar s[], const PetscScalar y[], const PetscScalar query[], PetscScalar c[], PetscReal *value);
  PetscBool differences; /* does the loss depend on differences of scores alone? */
  PetscBool interior;    /* do the methods for the hinge loss support it? */
} Loss;

extern const Loss     losses[]; /* the last one has no name */
extern PetscErrorCode ROCArea(PetscInt n, const PetscScalar s[], const PetscScalar y[], PetscReal *area);
/* Share of the pairs within queries that are in the correct order; ties count half; -1 without a pair */
extern PetscErrorCode RankedPairs(PetscInt n, const PetscScalar s[], const PetscScalar y[], const PetscScalar query[], PetscReal *share);
