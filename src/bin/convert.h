#pragma once

/* Shared by the files of gpucsr-convert: a matrix in memory, and its labels and queries */
#include <petscmat.h>
#include "../sys/gpucsrcompat.h"

typedef struct {
  Mat                A;
  Vec                labels, queries; /* NULL: none */
  PetscInt           m, n;
  const PetscInt    *i, *j; /* the rows of A, columns ascending */
  const PetscScalar *a;
  const PetscScalar *label, *query; /* NULL: none */
} Contents;

PetscErrorCode StatisticsPrint(const Contents *, int threads, FILE *);

PetscErrorCode Write(const Contents *, const char format[], PetscInt base, const char name[]); /* base: index of LIBSVM's first column */
void           WriteAbandon(void);                                                             /* nothing stays of a file that is not complete */
