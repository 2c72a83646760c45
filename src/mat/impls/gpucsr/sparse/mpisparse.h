#pragma once

/* Products of sparse matrices of several ranks: the interface between mpisparse.c, where ranks agree, and mpisteps.c, the steps of one rank */
#include "mpirows.h"

typedef struct {
  MatProductType type;
  PetscBool      multiplied; /* M = A B, else M = B */
  PetscBool      transposed; /* C = T^T M, else C = M */
} Recipe;

/* A block's version when something was made from it */
typedef struct {
  PetscObjectId    id;
  PetscObjectState pattern;
} BlockKey;

/* Data of a product for new values, C->product->data */
typedef struct _n_RanksProduct RanksProduct;
struct _n_RanksProduct {
  const Recipe    *recipe;
  GPUCSRDevice     dev; /* NULL: nothing is on a device */
  BlockKey         key[6];
  PetscInt         own;            /* number of this rank's columns of C, */
  PetscInt         nghost, *ghost; /* and ghost columns, ascending */
  GPUCSRRows       theirs, given;  /* rows of B, and of T^T M */
  PetscInt        *oi, *oj;        /* pattern of T_o^T M, global columns, */
  PetscScalar     *oa;             /* and values */
  int32_t         *column;         /* local numbers of the columns of B's off-diagonal block, */
  size_t           columnbytes;
  GPUCSRStorage    K, B, T[2], O, S, L, R, C, E; /* K = [A_d A_o], B with fetched rows, O = T_o^T M, L = [T_d^T S], R = [M; given], C and its entries in ghost columns */
  int64_t          nnz;                          /* of M, which is the first rows of R, or is C */
  int32_t         *map[2];
  size_t           mapbytes[2];
  GPUCSRRowClasses mrows, orows, crows;
  GPUCSRLiving     living;
};

/* All but the first may fail on one rank alone */
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductForget(void *);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductGhosts(RanksProduct *, PetscInt nmore, const PetscInt more[], PetscInt nrows, const PetscInt j[], PetscLayout);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductFirst(Mat C, RanksProduct *);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductLast(Mat C, RanksProduct *, PetscInt before, const int32_t table[], GPUCSRStorage *D);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductFirstValues(Mat C, RanksProduct *);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductLastValues(Mat C, RanksProduct *);
