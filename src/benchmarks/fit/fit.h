#pragma once

/* What the files of fit share: the samples, by product */
#include "../../mat/impls/gpucsr/blackbox/plan/plan.h"
#include "../bench.h"
#include <string.h>

#define MAX_PAIRS    512
#define MAX_MATRICES 4096
#define MAX_PRODUCTS (6 * MAX_MATRICES)

typedef struct {
  char             matrix[64], side[4], precision[16], format[GPUCSR_WORD], kernel[GPUCSR_WORD];
  double           us, best, convert, columns, weight;
  GPUCSRModelInput in;
  double           model[2];              /* predicted time: by the model of all samples, by the model without this matrix */
  int              pair, product, number; /* the last: of the matrix */
} Sample;

extern Sample       *sample;
extern int           nsamples, nproducts, nmatrices, njudged;
extern PetscBool     judged[MAX_PRODUCTS]; /* were all pairs of the product timed, so that the loss of a choice is known? */
extern GPUCSRCostRow row[MAX_PAIRS];
extern int           npairs;
extern PetscBool     excluded[MAX_PAIRS]; /* never selected, though the selection is judged by their times too */
extern char         *without[16];
extern PetscInt      nwithout;

extern PetscErrorCode ReadSamples(const char file[]), SortByProduct(void);
