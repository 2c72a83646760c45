#pragma once

/*
  Smoothed aggregation on one device: a hierarchy of matrices in CSR, built from the finest in the memory of the device. This unit uses no Mat and no KSP. The host sees counts, flags and the small
  matrix of an eigenvalue estimate.

  Aggregates grow around a set of vertices of which no two are within distance k: N. Bell, S. Dalton, L. Olson, Exposing fine-grained parallelism in algebraic multigrid methods, SIAM J. Sci. Comput. 34
  (2012). Priorities are from a permutation of the vertices. A round reads the states of the last round alone, so its result does not depend on the order of threads.
*/
#include "../spgemm/spgemm.h"
#if !defined(__CUDACC__)
  #include "../plan/plan.h"
#endif

#define GPUAMG_LEVELS  16 /* at most */
#define GPUAMG_SMOOTHS 4  /* of a prolongator at most */
#define GPUAMG_STEPS   16 /* of an eigenvalue estimate at most */
#define GPUAMG_VECTORS 16 /* near null vectors at most */

/*
  Shares, where weak entries are dropped by default. WEAK: a vertex does not depend on a neighbour by an entry of at most this share of the largest one of its row. SMALL: the prolongator's smoother leaves out an
  entry of at most this share.
*/
#define GPUAMG_WEAK  0.05
#define GPUAMG_SMALL 0.02

/* Steps over rows that are independent of each other: a thread a row in amg.cu, a loop in host.c */
typedef enum {
  GPUAMG_DIAGONAL,   /* dinv = 1 / a_ii; flag bits of GPUAMGFlag; with norm also relative norms of scalars, as the next step makes them */
  GPUAMG_NORMS,      /* norm = the root of the largest entry of a block on the diagonal; relative: of the largest off the diagonal or beyond, as GPUAMGSize() counts */
  GPUAMG_COUNT,      /* length = strong connections of a vertex, which has bs rows, */
  GPUAMG_GRAPH,      /* and these, into to */
  GPUAMG_BEGIN,      /* key of a vertex of graph A */
  GPUAMG_SPREAD,     /* next = the largest of keys, of a vertex and its neighbours; not fresh: unless it is final */
  GPUAMG_DECIDE,     /* next = the new key, where keys are the largest within distance k - 1; flag: a vertex is undecided */
  GPUAMG_ROOTS,      /* length = 1 for a root, else 0 */
  GPUAMG_OWN,        /* agg = number of a root's aggregate, else -1; number: the sums of length */
  GPUAMG_JOIN,       /* out = agg, or the aggregate of most neighbours */
  GPUAMG_BELONGS,    /* length = 1 for a vertex of an aggregate, else 0 */
  GPUAMG_MEMBERS,    /* to = the matrix of vertices by aggregates */
  GPUAMG_PATTERN,    /* to = the pattern of the tentative prolongator, of rows by vectors of aggregates; number: sums of GPUAMG_BELONGS */
  GPUAMG_ORTHOGONAL, /* its values, and the coarse near null space; A: members by aggregate */
  GPUAMG_BLOCKS_OF,  /* to = the pattern of bs rows and ns columns for each entry of graph A; out: as in GPUAMGBlocksOfRow() */
  GPUAMG_SMOOTH,     /* to = from - omega dinv to: a step of the prolongator's smoother, where to = A from */
  GPUAMG_DEAD,       /* the diagonal of rows that no vector is left for becomes 1 */
  GPUAMG_ONES,       /* basis = a constant for each of bs components */
  GPUAMG_START,      /* basis = numbers by chance, from `first` on */
  GPUAMG_SIZES,      /* dinv = 1 / the sum of sizes of a row's entries, with the sign of a_ii */
  GPUAMG_INVERSES,   /* coarse = the inverse of a vertex' block on the diagonal, by rows; of a singular one, dinv of its rows */
  GPUAMG_TIMES,      /* basis = the blocks of coarse times norm */
  GPUAMG_KEPT,       /* length = entries of a row that the prolongator's smoother takes, */
  GPUAMG_FILTER,     /* and these, into to */
  GPUAMG_REACH,      /* length = entries of a row of the product A from, where rows are short; flag: one is not, */
  GPUAMG_REACHED,    /* and these, into to; with dinv after the step GPUAMG_SMOOTH */
  GPUAMG_ENERGY,     /* norm = the diagonal of from D from^T, for D = 1 / |dinv|: what a coarse diagonal entry is the small difference of in a singular matrix */
  GPUAMG_FILL        /* a zero row of the inverse coarse of the matrix A gets a diagonal entry; basis: 1 there, 0 elsewhere */
} GPUAMGStep;

typedef enum {
  GPUAMG_UNDECIDED = 1, /* a vertex is */
  GPUAMG_ZERO      = 2, /* a row with entries has a zero diagonal entry, or lacks the diagonal */
  GPUAMG_NAN       = 4, /* it is no number */
  GPUAMG_PIVOT     = 8, /* a level's factor has a zero pivot, or the finest matrix has no inverse with pivots from its diagonal */
  GPUAMG_NEGATIVE  = 16 /* a diagonal entry is negative, which is no problem by itself */
} GPUAMGFlag;

typedef struct {
  int      m;
  int32_t *i, *j;
  double  *a;
} GPUAMGRows;

typedef struct {
  GPUAMGRows     A, from, to;
  int            bs, ns; /* rows of a vertex, near null vectors */
  double         theta, omega;
  uint32_t      *key, *next, *keys;
  uint32_t       first;              /* number of this rank's first row */
  int            fresh, wide;        /* wide: entries of a row of A, about */
  int            relative, directed; /* directed: connections are strong beside the largest one of their row, otherwise of both rows */
  int32_t       *agg, *out, *length, *number, *flag;
  double        *dinv, *norm, *basis, *coarse;
  const double  *beyond; /* for each row, the size of its largest entry in columns missing in A; NULL: A has all columns */
  unsigned char *dead;
} GPUAMGWork;

/* Arnoldi's method, whose vectors are not scaled in memory */
typedef struct {
  int           n;
  size_t        ld;       /* of V */
  const double *z, *dinv; /* dinv NULL: 1 */
  double       *V, *norm, *h, *part;
  int          *done;
} GPUAMGArnoldi;

/* What a backend does, in the order of the device's stream */
typedef struct {
  GPUCSRError (*rows)(GPUCSRDevice, GPUAMGStep, int n, const GPUAMGWork *);
  /*
    The vectors v_j = V_j / norm_j, of which there are k before w = V_k. k > 0: w = dinv z / norm_(k - 1), for z = A V_(k - 1), h[j] = (v_j, w), w -= sum of h[j] v_j, h[k] = |w|. Then norm_k = |w|.
    part: GPUAMG_PARTS; done: a number, 0 before and after
  */
  GPUCSRError (*orthogonalize)(GPUCSRDevice, const GPUAMGArnoldi *, int k);
  /* D = the inverse of A by rows, pivots from the diagonal; a pivot of mere rounding gets a zero row and column. scale: the size of the terms of each diagonal entry, or NULL. work: GPUAMG_WORK(n) doubles */
  GPUCSRError (*invert)(GPUCSRDevice, const GPUAMGRows *A, const double *scale, double *D, double *work);
  GPUCSRError (*transpose)(GPUCSRDevice, int n, double *D);
} GPUAMGOps;

#define GPUAMG_TILE     32 /* rows of a block of the inverse */
#define GPUAMG_WORK(n)  (((size_t)(4 * GPUAMG_TILE + 1) + (size_t)(n)) * (size_t)(n))
#define GPUAMG_REACHES  32                   /* entries of a row at most, for which a thread takes less time than a sparse product */
#define GPUAMG_LEAST(n) (2e-15 * ((n) + 32)) /* a pivot of a smaller share of its first value, or of the terms of that, is rounding */

#define GPUAMG_BLOCKS 512 /* that share a sum */
#define GPUAMG_PARTS  (GPUAMG_BLOCKS * (GPUAMG_STEPS + 1))

GPUCSR_INTERN const GPUAMGOps  GPUAMG_host;
GPUCSR_INTERN const GPUAMGOps  GPUAMG_cuda;
GPUCSR_INTERN const GPUAMGOps *GPUAMGOf(GPUCSRDevice);
GPUCSR_INTERN GPUCSRError      GPUAMGInvert_CUDA(GPUCSRDevice, const GPUAMGRows *A, const double *scale, double *D, double *work); /* this and the next: invert.cu */
GPUCSR_INTERN GPUCSRError      GPUAMGTurn_CUDA(GPUCSRDevice, int n, double *D);

#if !defined(__CUDACC__)

/*
  The smoother of a level: the inverse of its diagonal; inverses of the blocks of vertices on the diagonal; one over a row's sum of sizes, which bounds all eigenvalues by 1: A. H. Baker, R. D.
  Falgout, T. V. Kolev, U. M. Yang, Multigrid smoothers for ultraparallel computing, SIAM J. Sci. Comput. 33 (2011); a factor, which the caller makes
*/
typedef enum {
  GPUAMG_BY_DIAGONAL,
  GPUAMG_BY_BLOCKS,
  GPUAMG_BY_SIZES,
  GPUAMG_BY_FACTOR,
  GPUAMG_SMOOTHERS
} GPUAMGSmoother;

/* Are weak entries dropped, on all levels? ASK: where the finest matrix, of scalars, has enough of them */
typedef enum {
  GPUAMG_NEVER,
  GPUAMG_ASK,
  GPUAMG_ALWAYS
} GPUAMGDrop;

/* As docs/options.md has them */
typedef struct {
  double threshold[GPUAMG_LEVELS]; /* of each level; negative: all entries are strong */
  int    drop;                     /* GPUAMGDrop, where there is no threshold */
  int    level;                    /* of the other hierarchy, which becomes the finest level here */
  int    nsmooths, aggressive;     /* aggressive: so many levels */
  int    distance[2];              /* that roots are more apart than, and where coarsening is aggressive */
  int    limit, levels;            /* rows that are not made coarser, levels at most */
  int    steps;                    /* of an eigenvalue estimate */
  int    smoother;                 /* GPUAMGSmoother */
  double damping;                  /* omega times the largest eigenvalue */
} GPUAMGOptions;

/* Level 0 is the finest. P: to this level from the next */
typedef struct {
  int              n, bs, ns, aggregates; /* ns: near null vectors of this level */
  GPUCSRStorage    A;                     /* of level 0 its arrays are the caller's */
  GPUCSRPlan      *plan, own;             /* products with A; of level 0 the caller's */
  GPUCSRPlan       planP, planR, planT;   /* planT: of A transposed, made when it is asked for */
  GPUCSRPlan       rounded[3];            /* of A, P and R in single precision, made when they are asked for */
  GPUCSRStorage    P[GPUAMG_SMOOTHS + 1]; /* tentative, smoothed once, ... */
  GPUCSRRowClasses prows[GPUAMG_SMOOTHS + 1];
  GPUCSRStorage    R, AP, T;
  int32_t         *map, *tmap; /* values of R are from there; of T */
  GPUCSRRowClasses aprows, crows;
  GPUCSRBool       reached; /* rows of AP are short: of AP only the row pointers stay, here */
  GPUCSRBuffer     aprow;
  int64_t          apnnz;
  GPUCSRBuffer     dinv, basis, dead;
  double           lambda; /* the largest eigenvalue of D^-1 A, estimated */
  GPUCSRBuffer     smooth; /* of another smoother than the diagonal's */
  double           bound;  /* the largest eigenvalue for the smoother */
} GPUAMGLevel;

/* Graphs of a level whose rows and columns come in blocks, while it is built: of A, of the prolongator, and of its transpose. on: products have their patterns from these */
typedef struct {
  GPUCSRBool    on;
  GPUCSRStorage A, P, R;
} GPUAMGGraphs;

enum {
  GPUAMG_TEMP_KEY,
  GPUAMG_TEMP_SPREAD = GPUAMG_TEMP_KEY + 2,
  GPUAMG_TEMP_AGG,
  GPUAMG_TEMP_LENGTH = GPUAMG_TEMP_AGG + 2,
  GPUAMG_TEMP_NUMBER,
  GPUAMG_TEMP_NORM,
  GPUAMG_TEMP_FLAG,
  GPUAMG_TEMP_GRAPH,
  GPUAMG_TEMP_VECTORS,
  GPUAMG_TEMP_PARTS,
  GPUAMG_TEMP_BLOCKED,
  GPUAMG_TEMPS
};

typedef struct {
  GPUCSRDevice  dev;
  GPUAMGOptions o;
  GPUCSRBool    negative;        /* the finest diagonal has negative entries */
  int           levels, problem; /* problem: flags of what keeps the matrix from having a hierarchy, at level `at` */
  GPUCSRBool    singular;        /* the finest matrix, which has no other level, lacks a pivot */
  int           at;
  GPUCSRBool    weak;   /* entries are dropped */
  const double *beyond; /* of GPUAMGOneLevel() */
  GPUCSRBool    normed; /* relative norms of the finest level are there */
  GPUAMGLevel   level[GPUAMG_LEVELS];
  GPUCSRBool    exact; /* the coarsest level has an inverse, here */
  GPUCSRBuffer  inverse, inverseT;
  GPUCSRBuffer  temp[GPUAMG_TEMPS]; /* while it is built */
} GPUAMG;

GPUCSR_INTERN PetscErrorCode GPUAMGSetUp(GPUAMG *, const GPUAMGOptions *, const GPUCSRStorage *A, GPUCSRPlan *plan, int bs, int ns, const double *basis);
GPUCSR_INTERN PetscErrorCode GPUAMGRefresh(GPUAMG *, const GPUCSRStorage *A, GPUCSRPlan *plan, GPUCSRBool keep, GPUCSRBool *stale);
GPUCSR_INTERN PetscErrorCode GPUAMGBound(GPUAMG *, int l, PetscErrorCode (*inverse)(GPUAMG *, int l, void *, const double *, double *), void *);
GPUCSR_INTERN PetscErrorCode GPUAMGTemporaries(GPUAMG *);
GPUCSR_INTERN PetscErrorCode GPUAMGTransposes(GPUAMG *);
GPUCSR_INTERN PetscErrorCode GPUAMGRound(GPUAMG *, int levels);
GPUCSR_INTERN PetscErrorCode GPUAMGDestroy(GPUAMG *);
GPUCSR_INTERN double         GPUAMGBytes(const GPUAMG *);
GPUCSR_INTERN PetscErrorCode GPUAMGOneLevel(GPUAMG *, const GPUAMGOptions *, const GPUCSRStorage *A, int bs, int ns, const double *basis, const double *beyond);
GPUCSR_INTERN PetscErrorCode GPUAMGOneWeak(const GPUCSRStorage *A, int64_t *weak);
GPUCSR_INTERN GPUCSRBool     GPUAMGEnoughWeak(int64_t weak, int64_t all);
GPUCSR_INTERN double         GPUAMGRadius(int m, const double *H, int ld);

/* Parts of a set-up, as -log_view and profilers show them. A phase within its function; Try: ierr gets the error of the call, and the caller frees its memory */
typedef enum {
  GPUAMG_EIGENVALUE,
  GPUAMG_STRENGTH,
  GPUAMG_AGGREGATE,
  GPUAMG_PROLONGATOR,
  GPUAMG_GALERKIN,
  GPUAMG_COARSE,
  GPUAMG_BUILD,
  GPUAMG_SEND, /* the finest matrix and its plan, by the caller */
  GPUAMG_PHASES
} GPUAMGPhases;
  #define GPUAMGPhaseTry(h, phase, call, ierr) \
    do { \
      PetscCall(GPUAMGPhaseBegin(h, phase)); \
      (ierr) = (call); \
      PetscCall(GPUAMGPhaseEnd(h, phase, ierr)); \
    } while (0)
  #define GPUAMGPhase(h, phase, call) \
    do { \
      PetscErrorCode ierr_; \
\
      GPUAMGPhaseTry(h, phase, call, ierr_); \
      PetscCall(ierr_); \
    } while (0)
GPUCSR_INTERN PetscErrorCode GPUAMGRegister(PetscClassId);
GPUCSR_INTERN PetscErrorCode GPUAMGPhaseBegin(GPUAMG *, GPUAMGPhases);
GPUCSR_INTERN PetscErrorCode GPUAMGPhaseEnd(GPUAMG *, GPUAMGPhases, PetscErrorCode);

/* Functions shared by the files of this folder */
GPUCSR_INTERN PetscErrorCode GPUAMGCoarsest(GPUAMG *);
GPUCSR_INTERN PetscErrorCode GPUAMGLengths(GPUAMG *, int n, GPUAMGWork *);
GPUCSR_INTERN PetscErrorCode GPUAMGAggregates(GPUAMG *, int l, GPUAMGGraphs *, GPUCSRStorage *members);
GPUCSR_INTERN PetscErrorCode GPUAMGGraphsBegin(GPUAMG *, int l, GPUAMGGraphs *);
GPUCSR_INTERN PetscErrorCode GPUAMGGraphsSmoothed(GPUAMG *, int l, int k, GPUAMGGraphs *);
GPUCSR_INTERN PetscErrorCode GPUAMGGraphsTranspose(GPUAMG *, int l, GPUAMGGraphs *);
GPUCSR_INTERN PetscErrorCode GPUAMGGraphsGalerkin(GPUAMG *, int l, GPUAMGGraphs *);
GPUCSR_INTERN PetscErrorCode GPUAMGGraphsDestroy(GPUAMGGraphs *);
GPUCSR_INTERN PetscErrorCode GPUAMGCountWeak(GPUAMG *, int64_t *weak);
GPUCSR_INTERN PetscErrorCode GPUAMGFilter(GPUAMG *, int l, GPUCSRStorage *F);
GPUCSR_INTERN PetscErrorCode GPUAMGReach(GPUAMG *, const GPUCSRStorage *A, const GPUCSRStorage *B, GPUCSRStorage *C, GPUCSRBool *can);
GPUCSR_INTERN GPUAMGRows     GPUAMGRowsOf(const GPUCSRStorage *);
#endif
