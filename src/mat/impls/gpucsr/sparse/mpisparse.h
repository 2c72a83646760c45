#pragma once

/* Products of sparse matrices on several ranks: what mpisparse.c, where ranks agree and PETSc asks, and mpisteps.c, what each rank computes by itself in between, share */
#include "mpirows.h"

typedef struct {
  MatProductType type;
  PetscBool      multiplied; /* M = A B, else M = B */
  PetscBool      transposed; /* C = T^T M, else C = M */
} Recipe;

/* A block as it was when something was made from it */
typedef struct {
  PetscObjectId    id;
  PetscObjectState pattern;
} BlockKey;

/* What a product keeps for new values, C->product->data */
typedef struct _n_RanksProduct RanksProduct;
struct _n_RanksProduct {
  const Recipe    *recipe;
  GPUCSRDevice     dev; /* NULL: nothing is there any more */
  BlockKey         key[6];
  PetscInt         own;            /* columns of C that this rank owns, */
  PetscInt         nghost, *ghost; /* and those of others, ascending */
  GPUCSRRows       theirs, given;  /* rows of B, and of T^T M */
  PetscInt        *oi, *oj;        /* pattern of T_o^T M, global columns, */
  PetscScalar     *oa;             /* and values */
  int32_t         *column;         /* columns of B's off-diagonal block as they are numbered here, */
  size_t           columnbytes;
  GPUCSRStorage    K, B, T[2], O, S, L, R, C, E; /* K = [A_d A_o], B with rows of others, O = T_o^T M, L = [T_d^T S], R = [M; given], C and its entries in columns of others */
  int64_t          nnz;                          /* of M, which is the first rows of R, or C */
  int32_t         *map[2];
  size_t           mapbytes[2];
  GPUCSRRowClasses mrows, orows, crows;
  GPUCSRLiving     living;
};

/* All but the first may fail on one rank alone */
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductForget(RanksProduct *);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductGhosts(RanksProduct *, PetscInt nmore, const PetscInt more[], PetscInt nrows, const PetscInt j[], PetscLayout);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductFirst(Mat C, RanksProduct *);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductLast(Mat C, RanksProduct *, PetscInt before, const int32_t table[], GPUCSRStorage *D);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductFirstValues(Mat C, RanksProduct *);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductLastValues(Mat C, RanksProduct *);
