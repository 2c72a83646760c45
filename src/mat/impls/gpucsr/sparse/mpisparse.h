#pragma once

/* Products of sparse matrices of several ranks: mpisparse.c */
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

/* Collective: ok is false on all ranks if a rank has met an error that another implementation may replace; other errors are errors on all ranks */
typedef PetscErrorCode (*GPUCSRRanksAgree)(void *context, const GPUCSRAttempt *, PetscBool *ok);

typedef struct _n_RanksProduct RanksProduct;
struct _n_RanksProduct {
  const Recipe    *recipe;
  GPUCSRDevice     dev; /* NULL: nothing is on a device */
  GPUCSRRanksAgree agree;
  void            *context;
  BlockKey         key[6];         /* of Mats */
  PetscInt         own;            /* number of this rank's columns of C, */
  PetscInt         first, places;  /* a table of places of ghost columns, */
  int32_t         *place;          /* one more than the number, 0 for other columns; NULL: ghost is searched */
  PetscInt         nghost, *ghost; /* and ghost columns, ascending; C may lack some */
  PetscInt         nmoved;         /* number of ghost columns known before, */
  int32_t         *moved;          /* and their places in ghost[] */
  GPUCSRRows       theirs, given;  /* rows of B, and of T^T M */
  int32_t         *column;         /* local numbers of the columns of B's off-diagonal block, */
  size_t           columnbytes;
  GPUCSRStorage    Q, W[2], F;                   /* Q has a 1 for each row that other ranks fetch: W = Q B_d and Q B_o, F = [W[0] W[1]] */
  GPUCSRStorage    K, B, T[2], O, S, L, R, C, E; /* K = [A_d A_o], B with fetched rows, O = T_o^T M, L = [T_d^T S], R = [M; given], C and its entries in ghost columns */
  int64_t          nnz;                          /* of M, which is the first rows of R, or is C */
  int32_t         *map[2];
  size_t           mapbytes[2];
  GPUCSRRowClasses wrows[2], mrows, orows, crows;
  GPUCSRLiving     living;
};

GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductCreate(MatProductType, GPUCSRDevice, GPUCSRRanksAgree, void *context, RanksProduct **);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductDestroy(RanksProduct **);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductSymbolic(RanksProduct *, const GPUCSRRanksCSR *a, const GPUCSRRanksCSR *b, GPUCSRStorage *D, PetscBool *ok);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksProductNumeric(RanksProduct *, const GPUCSRRanksCSR *a, const GPUCSRRanksCSR *b, GPUCSRStorage *D, PetscBool *ok);

/* Of one rank: both blocks side by side; j[k] = table[j[k]] on the device, for a table of n numbers on the host */
GPUCSR_INTERN PetscErrorCode GPUCSRRanksBeside(GPUCSRStorage *const block[2], GPUCSRStorage *);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksRenumber(GPUCSRDevice, PetscInt n, const int32_t table[], int64_t nnz, int32_t *j);
