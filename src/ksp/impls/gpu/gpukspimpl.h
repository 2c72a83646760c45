#pragma once

/*
  What the files of KSPGPUCG and KSPGPUBCGS share, and KSPGPUGMRES (gmresimpl.h) takes over. Each includes nothing of those below it:

    gpuksp.c    the types, their options and pages
    solve.c     a solve from one end to the other
    prepare.c   which path a solve takes, and what that needs
    refine.c    single precision with residual replacement
    precond.c   what is taken from the PC
    peers.c     solves of several ranks of one host, without MPI in them
    iterate.c   iterations as steps: by a graph, or by the host loop
    vectors.c   vectors and memory
*/
#include <petsc/private/kspimpl.h>
#include <string.h>
#include "../../../mat/impls/gpucsr/operator.h"
#include "persistent.h"

/* Where a preconditioner is applied */
typedef enum {
  GPUKSP_PC_NONE,
  GPUKSP_PC_DIAGONAL, /* on the way, in any step */
  GPUKSP_PC_APART,    /* by the device's own work, between two steps */
  GPUKSP_PC_ANY       /* by PCApply() */
} GPUKSPPCKind;

typedef struct _n_KSP_GPU KSP_GPU;
struct _n_GPUMGCycle;

/* A preconditioner that the solvers know: a row of the list in precond.c */
typedef struct {
  PCType       type;
  GPUKSPPCKind kind;
  PetscBool    rows;    /* its numbers are so many a row: the persistent kernel has it too, and polynomials are of it */
  PetscBool    lasting; /* its arrays stay, or its variant is another one: a graph with it may be kept for the next solve */
  /* does the row serve this PC? bs: its block size; variant: what else it depends on */
  PetscErrorCode (*accept)(PC, PetscInt *bs, PetscInt *variant, PetscBool *yes);
  /* take from the PC what is needed to apply it without PETSc; NULL: nothing */
  PetscErrorCode (*make)(KSP, KSP_GPU *);
  /* z = M r, both on the device, in the order of a stream, between two steps of a solve; may be recorded in a graph */
  PetscErrorCode (*apply)(KSP_GPU *, const double *r, double *z, PetscBool rule, GPUCSRStream);
} GPUKSPPC;

/* ---- keys: what a thing that is kept was made from. Compared as a whole: all members take 64 bits, so that nothing lies between them ---- */

#define GPUKSPSame(a, b) (!memcmp(&(a), &(b), sizeof(a)))

/* A preconditioner. While PETSc reuses it, it is that of values which the state does not tell */
typedef struct {
  PetscInt64      pc, P, state, variant, reused;
  const GPUKSPPC *row;
} GPUKSPPCKey;

/* The largest eigenvalue of the preconditioned operator */
typedef struct {
  GPUKSPPCKey pc;
  PetscInt64  A, state;
} GPUKSPEigenvaluesKey;

/* The format that a persistent kernel should multiply with */
typedef struct {
  GPUCSRVersion version;
  PetscInt64    path;
} GPUKSPFormatKey;

/* A copy of the matrix in that format, but for its values */
typedef struct {
  PetscInt64          pattern, precision;
  const GPUCSRFormat *format;
} GPUKSPCopyKey;

/* Tables of stencils: the most common one, and the diagonals of the preconditioner */
typedef struct {
  GPUCSRVersion version;
  const void   *data; /* of the matrix */
  PetscInt64    numbers;
} GPUKSPTablesKey;

/* The shape of a persistent kernel */
typedef struct {
  GPUCSRVersion   version;
  const void     *data;
  const GPUKSPPC *row;
  PetscInt64      method, bs, degree, halo, peers;
} GPUKSPShapeKey;

/* Of a matrix of several ranks, what crosses them; */
typedef struct {
  PetscInt64 diagonal, off, state;
} GPUKSPPeersPattern;

/* and the off-diagonal block */
typedef struct {
  PetscInt64 id, state, precision;
} GPUKSPPeersValues;

/* An entry that another rank needs: which of ours, whose inbox it goes to, and its place there */
typedef struct {
  PetscInt    row, slot;
  PetscMPIInt rank;
} GPUKSPSend;

/* A recorded iteration in double: what it works on, and where that is */
typedef struct {
  GPUCSRVersion   version;
  const void     *data; /* of the matrix */
  const GPUKSPPC *row;
  PetscInt64      pc, variant, method, right, n;
  GPUKSPVectors   v;
} GPUKSPGraphKey;

/* Device memory that grows and stays */
typedef struct {
  void  *p;
  size_t bytes;
} GPUKSPMemory;

/* A KSPGPUCG or KSPGPUBCGS */
struct _n_KSP_GPU {
  /* what was asked for */
  GPUKSPMethod    method;
  KSPGPUVariant   variant;
  KSPGPUPrecision precision;
  KSPGPUPath      path;
  PetscBool       guard;      /* take the true residual at the end, */
  PetscBool       guardasked; /* be it dear or not */
  PetscBool       halo;       /* recompute halos in a persistent kernel where they fit */
  PetscInt        degree;     /* of a polynomial preconditioner; 0: none */
  PetscReal       given[2];   /* the eigenvalues it is to be made for; 0 where they are to be estimated */

  /* what its type adds */
  const char *petsc;                              /* PETSc's type, */
  PetscErrorCode (*become)(KSP);                  /* which it becomes where the solve is not its to do */
  PetscErrorCode (*release)(struct _n_KSP_GPU *); /* gives back what its type has on the device; NULL: nothing */

  /* the solve: what it works on, and which way */
  GPUCSROperator op;
  GPUCSRDevice   dev; /* where all memory below is from */
  int            n;   /* rows */
  struct {
    const GPUKSPPC *row;
    PetscInt        bs, variant;
    GPUKSPPCKind    kind; /* that of the row; or ANY where the solve has PCApply() do it nevertheless */
  } pc;
  KSPGPUPath          taken;
  char                why[256]; /* that path */
  const GPUCSRFormat *with;     /* multiplied with by the persistent kernel */
  PetscBool           refined;  /* in single precision with residual replacement */
  char                whydouble[128];
  PetscBool           noroom;   /* for rounded values: double, then */
  PetscBool           rulehere; /* rules are applied by the host */
  PetscBool           live;     /* somebody looks at each iteration */
  PetscBool           warnedlive, solved;

  /* of every solve on a device */
  GPUKSPMemory          partial;      /* of the sums of steps, */
  int                   stepblocks;   /* by so many blocks */
  GPUKSPMemory          devstate;     /* the state, where steps apply rules themselves */
  GPUKSPMemory          hist;         /* residual norms */
  GPUKSPState          *state, *seen; /* page-locked, */
  double               *sums;         /* and so are these: one piece of memory */
  GPUCSREvent           events[2];
  void                 *graph;            /* of an iteration; kept for solves */
  GPUKSPGraphKey        graphkey;         /* that are alike */
  GPUKSPMemory          vectors, numbers; /* numbers: the preconditioner's diagonal, or rows of its blocks */
  PetscInt64            nnumbers;         /* how often they were made */
  GPUKSPPCKey           numberskey;
  struct _n_GPUMGCycle *cycle;     /* the preconditioner is that of multigrid */
  Mat                   factor;    /* or it is solves with this one, not counted */
  PetscReal             lambda[2]; /* eigenvalues that the polynomial is made for */
  GPUKSPEigenvaluesKey  lambdakey;

  /* of a persistent kernel; its vectors are those of graphs too */
  GPUKSPPersistent     persistent;
  GPUKSPMemory         bounds, slots, table;
  const GPUCSRStorage *S;      /* what products are with: the plan's, or */
  GPUCSRPlan           copy;   /* one of our own, in another format, */
  const GPUCSRFormat  *better; /* this one */
  GPUKSPFormatKey      betterkey;
  GPUKSPCopyKey        copykey;
  PetscInt64           copyvalues; /* the version of its values */
  GPUKSPTablesKey      tableskey;
  GPUKSPShapeKey       shapekey;

  /* of several ranks that solve together; what a kernel sees of it is in persistent.peers */
  struct {
    PetscBool          on;                       /* in this solve */
    GPUCSRPeers        group;                    /* of the ranks, */
    GPUCSRDevice       dev;                      /* with this device */
    void              *theirs[GPUKSP_PEERS + 1]; /* memory that all can address, */
    void              *mine;                     /* and this rank's */
    GPUKSPSend        *sends;
    GPUKSPMemory       lists;
    GPUKSPPeersPattern pattern;
    GPUKSPPeersValues  values;
    PetscInt64         made;     /* how often the lists were made */
    uint64_t           sequence; /* of the host's twin: how often ranks met */
  } peers;

  /* of single precision with residual replacement */
  GPUKSPMemory        singles; /* vectors of the iteration, the preconditioner's numbers, and values */
  GPUKSPVectorsSingle single;
  GPUCSRStorage       rounded; /* A with rounded values; its other arrays are the plan's */

  /* of the host loop: vectors of PETSc's own */
  Vec           work[GPUKSP_VECTORS], diagonal;
  GPUKSPPCKey   diagonalkey;
  GPUCSROperand operand[GPUKSP_VECTORS + 1]; /* the last is that of the diagonal */
  int           from, to;                    /* vectors that the preconditioner is between */

  /* what came of it */
  PetscReal truenorm;
  PetscInt  replacements;

  KSP_GPU *next, **previous; /* living solvers */
};

/* gpuksp.c */
GPUCSR_INTERN PetscErrorCode KSPGPUInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode KSPGPUFinalize_Private(void);
GPUCSR_INTERN PetscErrorCode GPUKSPCreate(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPSetUp(KSP);
GPUCSR_INTERN PetscErrorCode GPUKSPDestroy(KSP);
GPUCSR_INTERN PetscErrorCode GPUKSPPathFromOptions(KSP_GPU *, GPUCSROptionItems, const char[]);
GPUCSR_INTERN PetscErrorCode KSPCreate_GPUCG(KSP);
GPUCSR_INTERN PetscErrorCode KSPCreate_GPUBCGS(KSP);

/* solve.c */
GPUCSR_INTERN PetscErrorCode KSPSolve_GPU(KSP);
GPUCSR_INTERN PetscErrorCode GPUKSPFallBack(KSP, const char[]);
GPUCSR_INTERN PetscErrorCode GPUKSPAttempt(KSP, KSP_GPU *, PetscErrorCode (*)(KSP, KSP_GPU *), PetscBool *, char[], size_t);

/* prepare.c */
GPUCSR_INTERN PetscErrorCode GPUKSPOperator(KSP, KSP_GPU *, PetscBool *, char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUKSPTogether(KSP, const KSP_GPU *, PetscErrorCode, const char[], PetscBool *, char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUKSPPrepare(KSP, KSP_GPU *, PetscBool *, char[], size_t);

/* refine.c */
GPUCSR_INTERN PetscErrorCode GPUKSPRefineChoose(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPRefineMake(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPRefineRelease(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPRefine(KSP, KSP_GPU *);
GPUCSR_INTERN double         GPUKSPBytes(const GPUCSRStorage *, PetscBool);

/* iterate.c. The last argument of an iteration is what it works on */
typedef PetscErrorCode (*GPUKSPIteration)(KSP, KSP_GPU *, GPUKSPVectors *);
GPUCSR_INTERN PetscErrorCode GPUKSPIterate(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPIterateBegin(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPIterateEnd(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPGraphForget(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPLoop(KSP, KSP_GPU *, GPUKSPVectors *, GPUKSPIteration);
GPUCSR_INTERN PetscErrorCode GPUKSPStart(KSP, KSP_GPU *, GPUKSPVectors *, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUKSPTrueNorm(KSP, KSP_GPU *, GPUKSPVectors *);
GPUCSR_INTERN PetscErrorCode GPUKSPStepRun(KSP, KSP_GPU *, GPUKSPStep, GPUKSPVectors *, PetscBool, PetscBool, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUKSPStepRunSingle(KSP, KSP_GPU *, GPUKSPStep, PetscBool, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUKSPStepArrays(KSP_GPU *, GPUKSPStep, const GPUKSPVectors *, PetscBool, GPUCSRStream, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUKSPProduct(KSP, KSP_GPU *, GPUKSPVectors *, int, int);

/* precond.c */
GPUCSR_INTERN PetscErrorCode GPUKSPPCFind(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPCReserve(KSP, KSP_GPU *, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUKSPPCMake(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPCCheck(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPCDiagonal(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPCEigenvalues(KSP, KSP_GPU *, PetscBool *);

/* peers.c */
GPUCSR_INTERN PetscErrorCode GPUKSPPeersGet(KSP, KSP_GPU *, PetscBool *, char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUKSPPeersLists(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPeersBlocks(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPeersRelease(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPeersReduce(KSP_GPU *, double[], int);
GPUCSR_INTERN PetscErrorCode GPUKSPPeersExchange(KSP_GPU *, double *);
GPUCSR_INTERN PetscErrorCode GPUKSPPeersAdd(KSP_GPU *, const double *, double *);

/* vectors.c */
GPUCSR_INTERN size_t         GPUKSPLength(const KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPOpen(KSP_GPU *, GPUCSRDevice);
GPUCSR_INTERN PetscErrorCode GPUKSPRelease(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPGrow(KSP_GPU *, size_t, const char[], GPUKSPMemory *);
GPUCSR_INTERN PetscErrorCode GPUKSPFree(KSP_GPU *, GPUKSPMemory *);
GPUCSR_INTERN PetscErrorCode GPUKSPVectorsOwn(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPVectorsBorrowed(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPVectorsGet(KSP_GPU *, GPUKSPVectors *, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUKSPVectorsGiveBack(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPLoad(KSP_GPU *, Vec, double *);
GPUCSR_INTERN PetscErrorCode GPUKSPStore(KSP_GPU *, const double *, Vec);
GPUCSR_INTERN PetscErrorCode GPUKSPTake(KSP_GPU *, Vec, PetscBool, PetscBool, GPUCSROperand *, double **);
