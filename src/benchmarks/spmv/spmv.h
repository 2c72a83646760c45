#pragma once

/* Common to the files of this program; see spmv.c for its measurements */
#include <petscmat.h>
#include "../bench.h"
#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>
#include <float.h>

#define MAX_CANDIDATES 400
#define MAX_ROUNDS     32
#define MAX_FILES      2000
#define MAX_STORED     64
#define SLOW           1.3 /* times the best so far, and a candidate is timed once */

#define CUSPARSECall(call) \
  do { \
    cusparseStatus_t st_ = (call); \
    PetscCheck(st_ == CUSPARSE_STATUS_SUCCESS, PETSC_COMM_SELF, PETSC_ERR_GPU, "%s failed with %s", #call, cusparseGetErrorName(st_)); \
  } while (0)

#define NPRECISIONS 3
#define NSELECTS    3
extern const char *const precisionwords[NPRECISIONS]; /* GPUCSRPrecision */
extern const char *const sidewords[2];                /* A x, A^T x */
/* Types of matrices as a PETSc program has them; the last is the peer with -mat_form_explicit_transpose */
enum {
  PROGRAM_GPUCSR,
  PROGRAM_PEER,
  PROGRAM_EXPLICIT,
  NPROGRAMS
};
extern const char *const programwords[NPROGRAMS];
extern const char *const selectwords[NSELECTS]; /* the judged choices, the default first */

typedef struct {
  const char    *name;
  PetscBool      real; /* from a file */
  GPUCSRSource   src;
  GPUCSRFeatures f;
  double        *x;        /* host: max(m, n) numbers, all of them floats */
  double        *y[2];     /* host: A x, A^T x */
  double        *bound[2]; /* what their entries may be off by, in units of eps */
} Problem;

typedef struct {
  GPUCSRDevice     dev;
  BenchClock       clock;
  cusparseHandle_t peer; /* NULL on the host */
  double           copy; /* bytes/s */
  FILE            *out, *samples;
  int              rounds;
  char            *pairs[16]; /* only pairs with one of the texts in "FORMAT KERNEL", and the choice */
  PetscInt         npairs;
  PetscBool        progress, products, setup, calls, threads, precisions[NPRECISIONS], sides[2];
} Bench;

struct Case_;

typedef struct {
  char          name[2 * GPUCSR_WORD];
  PetscBool     peer, failed, slow;
  GPUCSRProduct product;
  GPUCSRPlan    plan;    /* of the library's kernels: the case owns the arrays, the kernel the work array */
  double        convert; /* seconds from CSR on the device */
  struct Case_ *c;
  /* cuSPARSE's */
  cusparseSpMVAlg_t    alg;
  cusparseOperation_t  op;
  cusparseSpMatDescr_t mat;
  cusparseDnVecDescr_t x, y;
  void                *buffer;
  size_t               bytes;
  int                  batch, nt;
  double               t[MAX_ROUNDS + 1], seconds, error;
  double               half[2]; /* seconds by the even rounds and by the odd rounds; 0: not timed */
} Candidate;

/* A matrix in a format, for all kernels of the format */
typedef struct {
  GPUCSRStorage A;
  double        convert;
  PetscBool     refused;
} Stored;

/* One matrix in one precision on one side */
typedef struct Case_ {
  const Bench      *b;
  const Problem    *p;
  GPUCSRPrecision   precision;
  int               side;
  const GPUCSRPlan *A;   /* CSR of A itself */
  GPUCSRPlan        csr; /* of the matrix multiplied */
  int               nc;
  void             *x, *z, *nan; /* device vectors */
  size_t            vbytes;
  double           *host;
  GPUCSRChoice      choice[NSELECTS];
  double            best;                                                   /* seconds of the fastest met so far */
  double            program[NPROGRAMS], spread[NPROGRAMS], cold[NPROGRAMS]; /* SpmvPrograms() */
  int               ns;
  Stored            stored[MAX_STORED];
  Candidate         cand[MAX_CANDIDATES];
} Case;

/* A line of the table at the end */
typedef struct {
  char            name[64], chosen[GPUCSR_WORD], best[GPUCSR_WORD];
  PetscBool       real;
  GPUCSRPrecision precision;
  int             side;
  double          ratio, bestratio, regret, fraction, petsc;
} Result;

typedef struct {
  char   name[64];
  double ratio[4], memory; /* set-up and refresh, as the bytes are held; the same, harder */
  int    precision;
} SetUpResult;

/* candidates.c */
PetscErrorCode SpmvLaunch(void *candidate);
PetscErrorCode SpmvFirstLook(Case *, Candidate *);
PetscErrorCode SpmvAddOurs(Case *);
PetscErrorCode SpmvAddPeers(Case *);
PetscErrorCode SpmvCaseDestroy(Case *);
PetscErrorCode SpmvPrograms(Case *);

/* products.c */
PetscErrorCode SpmvProducts(Case *, double *product);
void           SpmvJsonMatrix(FILE *, const Problem *, GPUCSRPrecision);

/* setup.c */
PetscErrorCode SpmvSetUp(const Bench *, const Problem *, GPUCSRPrecision, double product);

/* calls.c */
PetscErrorCode SpmvCallsBegin(GPUCSRDevice);
PetscErrorCode SpmvCallsEnd(GPUCSRDevice, const char what[], double seconds);

/* tables.c */
PetscErrorCode SpmvResultAdd(Result **);
PetscErrorCode SpmvSetUpResultAdd(SetUpResult **);
void           SpmvFailed(void); /* a wrong result, or an error */
PetscErrorCode SpmvTables(int *failures);
