#pragma once

/*
  The blackbox: features of a matrix -> candidates -> predicted times -> choice of format and kernel -> the matrix in the chosen format on a device,
  ready for products. Knows no Mat and no CUDA.
*/
#include "../kernels/kernels.h"

#define GPUCSR_WORD 32

/* The way of choosing if nothing was asked for: by the model, by timing the best-predicted candidates, by a decision tree */
typedef enum {
  GPUCSR_SELECT_ESTIMATE,
  GPUCSR_SELECT_MEASURE,
  GPUCSR_SELECT_TREE
} GPUCSRSelect;

/* The user's request; "auto": none */
typedef struct {
  char         format[GPUCSR_WORD], kernel[GPUCSR_WORD];
  GPUCSRSelect select;
  int          budget;   /* products for measuring; 0: 50 */
  double       expected; /* number of products to come; 0: so many that the build costs nothing */
} GPUCSRRequest;

/* A candidate: one way to store and multiply a matrix. Times in seconds, 0: unknown */
typedef struct {
  const GPUCSRFormat *format;
  const GPUCSRKernel *kernel;
  GPUCSRBool          usable, known; /* the format can store the matrix; the profile has a line for the pair, */
  PetscBool           trusted;       /* which may decide, not only propose a measurement */
  double              bytes;         /* of the matrix on the device, estimated */
  double              predicted, setup, measured;
  char                why[112]; /* the reason against the candidate; empty: its time */
} GPUCSRCandidate;

typedef struct {
  const GPUCSRFormat *format;
  const GPUCSRKernel *kernel;
  char                why[256]; /* one phrase for users */
} GPUCSRChoice;

typedef struct {
  double inspect, choose, convert, upload, transpose, measure; /* seconds so far */
  double uploaded, values;                                     /* bytes so far, and of these the matrix' values */
} GPUCSRCosts;

/* A matrix, or a transpose, ready for products */
typedef struct {
  PetscBool        built;
  GPUCSRFeatures   features;
  GPUCSRChoice     choice;
  GPUCSRCandidate *candidate; /* all candidates, the best first; none if the request left no choice */
  int              ncandidates;
  GPUCSRStorage    A;
  GPUCSRStorage    pattern; /* row pointers and columns of A's CSR, if new values need them */
  int32_t         *map;     /* of a transpose: the entry in A's CSR of each entry of its own CSR; device memory */
  double           rounding;
  GPUCSRCosts      costs;
  GPUCSREvent      changed;  /* of the device's stream, after the last write to the arrays, */
  PetscBool        recorded; /* recorded when another stream first asks, */
  GPUCSRStream     waited;   /* and the last stream that waited for the event */
} GPUCSRPlan;

GPUCSR_INTERN PetscErrorCode GPUCSRRequestCheck(const GPUCSRRequest *);
GPUCSR_INTERN PetscErrorCode GPUCSRCandidatesGet(const GPUCSRFeatures *, GPUCSRPrecision, GPUCSRDevice, const GPUCSRRequest *, PetscBool all, GPUCSRCandidate **, int *);
GPUCSR_INTERN PetscErrorCode GPUCSRChoose(const GPUCSRFeatures *, GPUCSRPrecision, GPUCSRDevice, const GPUCSRRequest *, GPUCSRChoice *, GPUCSRCandidate **, int *);

GPUCSR_INTERN void      GPUCSRCandidateWhy(const GPUCSRCandidate *, const GPUCSRCandidate *, char[], size_t);
GPUCSR_INTERN void      GPUCSRCandidatesPromote(GPUCSRCandidate[], int);
GPUCSR_INTERN PetscBool GPUCSRRequestOpen(const GPUCSRRequest *);

/* Settings of the process */
typedef struct {
  double sample; /* fraction of the rows in the inspector's sample */
} GPUCSRPlanOptions;
GPUCSR_INTERN GPUCSRPlanOptions GPUCSRPlanSettings;
GPUCSR_INTERN PetscErrorCode    GPUCSRPlanInitialize(void);

/* The profile of a machine: times of products and conversions (profile.c) */
#define GPUCSR_NTERMS 18
#define GPUCSR_NSHAPE 4
typedef struct {
  char      format[GPUCSR_WORD], kernel[GPUCSR_WORD];
  double    width, threads, most, ahead; /* the kernel's way along a row, see profile.c */
  double    time[GPUCSR_NTERMS];         /* microseconds for each term */
  double    setup[2];                    /* microseconds, and microseconds a megabyte, to make the format from CSR on the device */
  PetscBool trusted;                     /* a line `cost`, not `measure` */
} GPUCSRCostRow;
GPUCSR_INTERN PetscErrorCode GPUCSRProfileLoad(const char[]);
GPUCSR_INTERN PetscErrorCode GPUCSRProfileFinalize(void);
GPUCSR_INTERN PetscErrorCode GPUCSRProfileMachine(const char **);
/* Each format with each of its kernels, and their costs; row is NULL if the profile has none. The first ones have a row */
typedef struct {
  const GPUCSRFormat  *format;
  const GPUCSRKernel  *kernel;
  const GPUCSRCostRow *row;
} GPUCSRPair;
GPUCSR_INTERN PetscErrorCode GPUCSRProfilePairs(const GPUCSRPair **, int *known, int *all);
GPUCSR_INTERN PetscErrorCode GPUCSRProfileTree(const GPUCSRFeatures *, const char **, const char **);
typedef struct {
  double         matrix, vectors, cache; /* megabytes */
  double         rows, columns, stored, mean, max, sectors, quads;
  double         fetched[2];    /* sectors of x: sum over groups of 8 rows, and over tiles of 128 */
  double         heaviest;      /* entries of the largest slice */
  double         spread, moved; /* columns spanned by a row; rows between neighbours of the format, 0: none */
  double         number;        /* bytes of a vector's number */
  double         window;        /* rows that the format sorts together, 0: none */
  PetscBool      together;      /* threads go along neighbouring rows side by side, */
  double         uneven;        /* deviation of the rows' lengths over their mean */
  double         processors;    /* 0: an H200's */
  int            nclasses;      /* of row lengths that there are, */
  const int     *lengths;       /* and the rows, */
  const int64_t *entries;       /* and their entries */
} GPUCSRModelInput;
GPUCSR_INTERN PetscErrorCode GPUCSRModelInputGet(const GPUCSRFormat *, const GPUCSRFeatures *, GPUCSRPrecision, size_t, GPUCSRModelInput *);
GPUCSR_INTERN void           GPUCSRModelRows(const GPUCSRFormat *, int, double, double, GPUCSRModelInput *);
GPUCSR_INTERN void           GPUCSRModelTerms(const GPUCSRCostRow *, const GPUCSRModelInput *, PetscBool, double[]);
/* The parts of a product's time, each a sum of terms: all but the first overlap */
enum {
  GPUCSR_WAITING,
  GPUCSR_MEMORY,
  GPUCSR_CACHE,
  GPUCSR_WORK,
  GPUCSR_NPARTS
};
GPUCSR_INTERN const int      GPUCSRModelPart[GPUCSR_NTERMS];
GPUCSR_INTERN PetscErrorCode GPUCSRProfileScale(GPUCSRDevice, double[GPUCSR_NPARTS], double *);
GPUCSR_INTERN double         GPUCSRModelTime(const GPUCSRCostRow *, const double[], double[]);

GPUCSR_INTERN PetscErrorCode GPUCSRSourceInspect(const GPUCSRSource *, GPUCSRPrecision, int, GPUCSRFeatures *);
GPUCSR_INTERN PetscErrorCode GPUCSRStorageFromCSR(const GPUCSRStorage *, const GPUCSRFeatures *, const GPUCSRFormat *, GPUCSRStorage *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanBuild(GPUCSRDevice, const GPUCSRSource *, GPUCSRPrecision, const GPUCSRRequest *, GPUCSRPlan *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanBuildTranspose(GPUCSRDevice, const GPUCSRSource *, const GPUCSRPlan *, GPUCSRPrecision, const GPUCSRRequest *, GPUCSRPlan *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanRefresh(GPUCSRPlan *, const GPUCSRSource *, const GPUCSRPlan *, PetscBool *);
GPUCSR_INTERN PetscBool      GPUCSRPlanCanRefresh(const GPUCSRPlan *);
GPUCSR_INTERN PetscBool      GPUCSRValuesAreFloats(const GPUCSRSource *, int);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanKeepPattern(GPUCSRStorage *csr, GPUCSRPlan *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanPrepare(GPUCSRPlan *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanLend(const GPUCSRStorage *csr, int longest, GPUCSRPlan *); /* this and the next two: lend.c */
GPUCSR_INTERN PetscErrorCode GPUCSRPlanRound(const GPUCSRStorage *csr, const GPUCSRPlan *like, int longest, GPUCSRPlan *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanReturn(GPUCSRPlan *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanMeasure(GPUCSRDevice, const GPUCSRRequest *, GPUCSRStorage *, GPUCSRPlan *); /* measure.c */
GPUCSR_INTERN PetscErrorCode GPUCSRPlanProduct(GPUCSRPlan *, const GPUCSRProduct *, GPUCSRStream);
GPUCSR_INTERN PetscBool      GPUCSRPlanSteps(const GPUCSRPlan *);
GPUCSR_INTERN PetscBool      GPUCSRPlanSums(const GPUCSRPlan *);
GPUCSR_INTERN void           GPUCSRReferenceSums(const GPUCSRProduct *);
/* k columns of the vector type on the plan's device: x and z, ldx and ldz apart; y, without gaps, may be NULL. xrows and zrows have room for x and z */
typedef struct {
  int         k;
  const void *x, *y;
  void       *z;
  size_t      ldx, ldz;
  void       *xrows, *zrows;
} GPUCSRColumns;
GPUCSR_INTERN PetscErrorCode GPUCSRPlanColumns(GPUCSRPlan *, const GPUCSRColumns *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanDiagonal(GPUCSRPlan *, void *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanDestroy(GPUCSRPlan *);
GPUCSR_INTERN double         GPUCSRPlanBytes(const GPUCSRPlan *);
