#pragma once

/* Losses of linear models: losses.c */
#include <petscvec.h>
#include <stdlib.h>

typedef enum {
  LABELS_CLASSES, /* names of classes */
  LABELS_TARGETS, /* numbers to be predicted */
  LABELS_RANKS    /* numbers whose order within a query is to be predicted */
} LabelKind;

typedef struct {
  const char *name;
  const char *liblinear; /* the solver of LIBLINEAR that has this loss, or one whose models are applied in the same way */
  LabelKind   labels;
  const char *option; /* that of its parameter, NULL where it has none */
  PetscReal   usual;  /* the parameter when the option is not given */
  /*
    Sum of the losses of n rows with the labels y and the weights u (NULL: all 1). At the scores s, c[i] becomes scale times the slope of the loss of row i; at s + k d, where d
    is not NULL, nothing is stored, and `along` is scale times the slope of the sum by k.
  */
  PetscReal (*rows)(PetscInt n, const PetscScalar s[], PetscReal k, const PetscScalar d[], const PetscScalar y[], const PetscScalar u[], PetscReal parameter, PetscReal scale, PetscScalar c[], PetscReal *along);
  PetscErrorCode (*vectors)(Vec s, Vec y, PetscReal parameter, Vec zero, Vec f, Vec c); /* losses and slopes of all rows, by vectors */
  /* sum of the losses at the margins t, which are 1 - y s, and slope of that sum along dt; by two vectors of scratch; NULL where there is nothing better than `vectors` */
  PetscErrorCode (*margins)(Vec t, Vec dt, Vec zero, Vec f, PetscScalar sums[2]);
  PetscErrorCode (*curvature)(Vec c); /* slopes become second derivatives; NULL for a loss that is not smooth */
  /* loss of all n rows together; c[i] becomes its slope by the score of row i */
  PetscErrorCode (*together)(PetscInt n, const PetscScalar s[], const PetscScalar y[], const PetscScalar query[], PetscScalar c[], PetscReal *value);
  PetscBool interior; /* do the methods for the hinge loss support it? */
} Loss;

extern const Loss     losses[]; /* up to one without a name */
extern PetscErrorCode ROCArea(PetscInt n, const PetscScalar s[], const PetscScalar y[], PetscReal *area);
extern PetscErrorCode RankedPairs(PetscInt n, const PetscScalar s[], const PetscScalar y[], const PetscScalar query[], PetscReal *share);
