#pragma once

/*
  Shared by the files of KSPGPUCG and KSPGPUBCGS, and used by KSPGPUGMRES (gmresimpl.h):

    gpuksp.c    the types, their options and pages
    solve.c     a solve from beginning to end
    prepare.c   the choice of a path, and what the path needs
    refine.c    single precision with residual replacement
    precond.c   preconditioners, from the PC
    vectors.c   vectors and memory

  ../loop/iterate.c has iterations as steps, by a graph or by the host loop; ../loop/ranks.c what several ranks must agree on; ../persistent/peers.c has solves of several ranks of one host by one launch on each.
*/
#include <petsc/private/kspimpl.h> /* the members of a KSP that a solver reads and sets */
#include <petsc/private/pcimpl.h>  /* the state of its matrix at the last set-up of a PC */
#include <string.h>
#include "../../../../mat/impls/gpucsr/product/operator.h"
#include "../persistent/persistent.h"
#include "../../../../sys/graph.h"

/* The place of a preconditioner in an iteration */
typedef enum {
  GPUKSP_PC_NONE,
  GPUKSP_PC_DIAGONAL,      /* fused into any step */
  GPUKSP_PC_BETWEEN_STEPS, /* the device applies the PC between two steps */
  GPUKSP_PC_BY_PCAPPLY     /* by PCApply() */
} GPUKSPPCKind;

typedef struct _n_KSP_GPU KSP_GPU;
struct _n_GPUMGCycle;

/* A preconditioner that the solvers know: a row of the list in precond.c */
typedef struct {
  PCType       type;
  GPUKSPPCKind kind;
  PetscBool    rows;    /* stored as a fixed count of numbers a row for persistent kernels */
  PetscBool    lasting; /* its arrays stay in place unless its variant changes: a graph may be kept for the next solve */
  /* does this row serve the PC? bs: its block size; variant: a key of other settings. NULL: always */
  PetscErrorCode (*accept)(PC, PetscInt *bs, PetscInt *variant, PetscBool *yes);
  /* takes the data to apply the PC on the device; NULL: none */
  PetscErrorCode (*make)(KSP, KSP_GPU *);
  /* z = M r on the device, in stream order, between two steps of a solve; graphs may record it */
  PetscErrorCode (*apply)(KSP_GPU *, const double *r, double *z, PetscBool rule);
} GPUKSPPC;

/* The key of a cached object: numbers that change when the object must be made again. Keys are compared as memory; unused numbers are 0 */
typedef struct {
  PetscInt64 of[12];
} GPUKSPKey;
#define GPUKSPKeyOf(...)   ((GPUKSPKey){{__VA_ARGS__}})
#define GPUKSPSame(a, b)   (!memcmp(&(a), &(b), sizeof(GPUKSPKey)))
#define GPUKSPAddress(p)   ((PetscInt64)(uintptr_t)(p))
#define GPUKSPVersionOf(v) (v).pattern, (v).values

/* Keys of data on the device */
typedef struct {
  GPUKSPKey numbers; /* of the preconditioner */
  GPUKSPKey launch;  /* of a persistent kernel: all, */
  GPUKSPKey copy;    /* and the copy of the matrix in another format, without the values */
  GPUKSPKey pattern; /* of several ranks with one launch on each: the exchanged entries, */
  GPUKSPKey block;   /* and the off-diagonal block */
} GPUKSPKeys;

/* Room of a reason. A function with a reason against a path writes it; otherwise the text is empty */
#define GPUKSP_WHY 512

/* The preconditioner */
typedef struct {
  const GPUKSPPC       *row;
  PetscInt              bs, variant;
  PetscBool             flexible; /* not linear: conjugate gradients take the flexible beta */
  GPUKSPPCKind          kind;     /* the kind of the row; BY_PCAPPLY: the solve calls PCApply() in spite of the row */
  GPUCSRBuffer          numbers;  /* its diagonal, or rows of its blocks */
  PetscInt64            nnumbers; /* counts the makings of the numbers */
  struct _n_GPUMGCycle *cycle;    /* the preconditioner is a multigrid cycle */
  Mat                   factor;   /* or triangular solves with this factor; no reference is held */
} GPUKSPPCData;

/* Of a path by a graph of steps */
typedef struct {
  GPUCSRBuffer  parts;    /* of the sums by a product */
  int           nparts;   /* their number, for the next step; 0: the next step goes over the rows */
  PetscBool     fused;    /* products take sums in this solve */
  PetscBool     normed;   /* the preconditioner may take the sums of the next step, GPUKSP_NORMS */
  PetscBool     rulehere; /* the host applies the rules */
  void         *recorded; /* an iteration; kept for later, */
  void         *stale;    /* a graph of earlier data; the next record becomes an update of the graph */
  GPUKSPKey     key;      /* solves with the same key */
  GPUKSPVectors v;        /* and the same vectors use the same graph */
} GPUKSPGraph;

/* Of a persistent kernel. Its arguments are a GPUKSPPersistent */
typedef struct {
  GPUCSRBuffer         bounds, slots, table;
  const GPUCSRFormat  *with;       /* format of the product */
  const GPUCSRStorage *S;          /* its storage: the plan's, or */
  GPUCSRPlan           copy;       /* our copy in another format, */
  const GPUCSRFormat  *better;     /* this one; NULL: none */
  char                 why[128];   /* the reason against the kernel; empty: none */
  PetscInt64           copyvalues; /* the version of its values */
  struct {
    int    size, threads;
    size_t shared;
  } plain; /* the shape without halo recomputation */
} GPUKSPLaunch;

/* Of several ranks with one launch on each rank; a kernel sees persistent.peers */
typedef struct {
  PetscBool    on;                       /* in this solve */
  GPUCSRPeers  group;                    /* of the ranks, */
  GPUCSRDevice dev;                      /* with this device */
  void        *memory[GPUKSP_PEERS + 1]; /* of each rank, which all can address */
  GPUCSRSend  *sends;
  GPUCSRBuffer lists;
  PetscInt64   made;     /* how many times the lists were made */
  uint64_t     sequence; /* of the host twin: count of synchronisations */
} GPUKSPPeerGroup;

/* Of several ranks by a graph, with the exchange of the matrix */
typedef struct {
  PetscBool    on; /* in this solve */
  GPUCSRRanks  A;
  const char  *way;  /* its exchange, for the view */
  GPUCSRBuffer sums; /* sums of this rank, followed by sums of all ranks */
} GPUKSPRanks;

/* Of single precision with residual replacement */
typedef struct {
  GPUCSRBuffer        memory; /* vectors of the iteration, the preconditioner's numbers, and values */
  GPUKSPVectorsSingle v;
  GPUCSRStorage       rounded; /* A with rounded values; its other arrays are the plan's */
  PetscInt            replacements;
} GPUKSPSingle;

/* A vector of the steps. In a host loop PETSc works on it too, between GPUKSPGive() and GPUKSPLend() */
typedef struct {
  double   *p;        /* its array on the device; NULL: not needed */
  Vec       vec;      /* for PETSc's work; NULL: none */
  PetscBool borrowed; /* p is the array of vec */
} GPUKSPSlot;

/* A function in the KSP for other libraries */
typedef struct {
  const char *name;
  void (*f)(void);
} GPUKSPComposed;

/* A KSPGPUCG or KSPGPUBCGS: common to all paths, and then a struct a path */
struct _n_KSP_GPU {
  /* options */
  GPUKSPMethod    method;
  KSPGPUVariant   variant;
  KSPGPUPrecision precision;
  KSPGPUPath      path;
  PetscBool       trueresidual;      /* compute the true residual at the end, */
  PetscBool       trueresidualasked; /* also if the product is expensive */
  PetscBool       halo;              /* recompute halos in a persistent kernel if they fit */

  /* set by the type */
  const char *petsc;                                     /* PETSc's type, */
  PetscErrorCode (*become)(KSP);                         /* the fall back to PETSc's type for unsupported solves */
  const char *(*settings)(KSP, int64_t *own);            /* the reason for PETSc's type, or NULL; own: a number of the type's own settings. NULL: no such function */
  PetscErrorCode (*prepare)(KSP, KSP_GPU *, char why[]); /* the parts of a solve: the data of its path, */
  PetscErrorCode (*solve)(KSP, KSP_GPU *, char why[]);   /* and the iteration, with its report */
  PetscErrorCode (*release)(struct _n_KSP_GPU *);        /* frees the type's memory on the device; NULL: none */
  const GPUKSPComposed *composed;
  size_t                ncomposed;

  /* the solve: its operands and its path */
  PetscMPIInt    size; /* processes */
  GPUCSROperator op;
  GPUCSRDevice   dev;  /* has all memory below */
  int            n;    /* rows */
  PetscInt       rows; /* of all processes */
  GPUKSPPCData   pc;
  KSPGPUPath     taken;
  char           why[GPUKSP_WHY]; /* why that path */
  PetscBool      refined;         /* in single precision with residual replacement */
  char           whydouble[128];
  PetscBool      live; /* a monitor or test reads each iteration */
  PetscBool      warnedlive, solved;
  PetscBool      failed; /* the preconditioner, in the last solve, not in the set-up before */

  /* for every solve on a device */
  GPUCSRBuffer     partial;      /* partial sums of steps, */
  int              stepblocks;   /* the number of blocks of a step */
  GPUCSRBuffer     devstate;     /* the state, if steps apply the rules on the device */
  GPUCSRBuffer     hist;         /* residual norms */
  GPUKSPState     *state, *seen; /* page-locked, */
  double          *sums;         /* also page-locked, in the same allocation */
  GPUCSREvent      events[2];
  GPUCSRBuffer     vectors; /* of a basis */
  GPUKSPSlot       slot[GPUKSP_VECTORS];
  GPUKSPKey        solution; /* of which the slots' vectors are duplicates */
  GPUCSRBuffer     slotmemory;
  GPUKSPPersistent persistent; /* of a persistent kernel; graphs use its vectors too */
  GPUKSPKeys       keys;

  /* the paths */
  GPUKSPLaunch    launch;
  GPUKSPGraph     graph;
  GPUKSPPeerGroup peers;
  GPUKSPRanks     ranks;
  GPUKSPSingle    single;

  /* results */
  PetscReal truenorm;
  double   *norms; /* history of a common solve of several ranks, until the report */
  int       nnorms;

  GPUCSRLiving living;
};

/* The data of a path, in the order of their making: what each process allocates by itself; vectors, collective in the host loop; the rest, NULL: none */
typedef struct {
  PetscErrorCode (*memory)(KSP, KSP_GPU *);
  PetscErrorCode (*vectors)(KSP, KSP_GPU *);
  PetscErrorCode (*rest)(KSP, KSP_GPU *);
} GPUKSPParts;

/* Functions that set or get a member of the solver's data */
#define GPUKSP_SETTER(function, Solver, type, member) \
  static PetscErrorCode function(KSP ksp, type value) \
  { \
    ((Solver *)ksp->data)->member = value; \
    return PETSC_SUCCESS; \
  }
#define GPUKSP_GETTER(function, Solver, type, member) \
  static PetscErrorCode function(KSP ksp, type *value) \
  { \
    *value = ((Solver *)ksp->data)->member; \
    return PETSC_SUCCESS; \
  }

/* gpuksp.c */
GPUCSR_INTERN PetscErrorCode KSPGPUInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode GPUKSPCreate(KSP, KSP_GPU *, size_t n, const GPUKSPComposed[]);
GPUCSR_INTERN PetscErrorCode GPUKSPSettings(KSP, char why[]);
GPUCSR_INTERN PetscErrorCode GPUKSPDestroy(KSP);
GPUCSR_INTERN PetscErrorCode GPUKSPPathFromOptions(KSP_GPU *, GPUCSROptionItems, const char[]);

/* solve.c */
GPUCSR_INTERN PetscErrorCode GPUKSPSolveInitialize(void);
GPUCSR_INTERN PetscErrorCode GPUKSPSolve(KSP);
GPUCSR_INTERN PetscErrorCode GPUKSPBegin(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode KSPSolve_GPU(KSP, KSP_GPU *, char why[]);
GPUCSR_INTERN PetscErrorCode GPUKSPFallBack(KSP, const char[]);
GPUCSR_INTERN PetscErrorCode GPUKSPAttempt(KSP, KSP_GPU *, PetscErrorCode (*)(KSP, KSP_GPU *), char why[]);

/* prepare.c */
GPUCSR_INTERN PetscErrorCode GPUKSPOperator(KSP, KSP_GPU *, char why[]);
GPUCSR_INTERN const char    *GPUKSPWhyNoLaunch(const KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPWhyHostLoop(KSP, KSP_GPU *, const char **why);
GPUCSR_INTERN PetscErrorCode GPUKSPMake(KSP, KSP_GPU *, KSPGPUPath, const GPUKSPParts *, const char refused[], char why[]);
GPUCSR_INTERN PetscErrorCode GPUKSPPrepareBegin(KSP, KSP_GPU *, char why[]);
GPUCSR_INTERN PetscErrorCode GPUKSPPrepare(KSP, KSP_GPU *, char why[]);

/* ranks.c */
GPUCSR_INTERN PetscErrorCode GPUKSPAgree(KSP, const KSP_GPU *, const GPUCSRAttempt *, const char refused[], char why[]);
GPUCSR_INTERN PetscErrorCode GPUKSPEndAllreduce(KSP, PetscErrorCode, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUKSPRanksGet(KSP, KSP_GPU *, char why[]);

/* refine.c */
GPUCSR_INTERN PetscErrorCode GPUKSPRefineChoose(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPRefineMake(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPRefineProduct(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPRefine(KSP, KSP_GPU *);
GPUCSR_INTERN double         GPUKSPBytes(const GPUCSRStorage *, PetscBool);

/* iterate.c. The last argument of an iteration has its vectors */

/* When a step runs, as the sum of these: always; not if the solve rests; as the first of a solve; as the last with a rule in its iteration */
enum {
  GPUKSP_STEP_ALWAYS = 0,
  GPUKSP_STEP_RULE   = 1,
  GPUKSP_STEP_FIRST  = 2,
  GPUKSP_STEP_LAST   = 4
};
typedef PetscErrorCode (*GPUKSPIteration)(KSP, KSP_GPU *, GPUKSPVectors *);
GPUCSR_INTERN PetscErrorCode GPUKSPIterate(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPIterateCG(KSP, KSP_GPU *, GPUKSPVectors *);
GPUCSR_INTERN PetscErrorCode GPUKSPIterateBegin(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPIterateEnd(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPGraphForget(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPGraphRecord(KSP, KSP_GPU *, GPUKSPVectors *, GPUKSPIteration);
GPUCSR_INTERN PetscErrorCode GPUKSPLoop(KSP, KSP_GPU *, GPUKSPVectors *, GPUKSPIteration);
GPUCSR_INTERN PetscErrorCode GPUKSPStart(KSP, KSP_GPU *, GPUKSPVectors *, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUKSPTrueNorm(KSP, KSP_GPU *, GPUKSPVectors *);
GPUCSR_INTERN PetscErrorCode GPUKSPStepRun(KSP, KSP_GPU *, GPUKSPStep, const GPUKSPVectors *, int turn);
GPUCSR_INTERN PetscErrorCode GPUKSPProduct(KSP, KSP_GPU *, int from, int to);
GPUCSR_INTERN PetscErrorCode GPUKSPPrecondition(KSP, KSP_GPU *, int from, int to, PetscBool rule);

/* precond.c */
GPUCSR_INTERN PetscErrorCode GPUKSPCheckNorm(KSP, PetscReal);
GPUCSR_INTERN PetscErrorCode GPUKSPPCFind(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPCReserve(KSP, KSP_GPU *, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUKSPPCMake(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPCCheck(KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPPCSolving(KSP_GPU *, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUKSPPCFail(KSP_GPU *, const char message[]);

/* peers.c */
GPUCSR_INTERN PetscErrorCode GPUKSPPeersGet(KSP, KSP_GPU *, char why[]);
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
GPUCSR_INTERN PetscErrorCode GPUKSPVectorsMake(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPSlotsMake(KSP, KSP_GPU *, const PetscBool need[]);
GPUCSR_INTERN PetscErrorCode GPUKSPGive(KSP_GPU *, GPUKSPSlot *);
GPUCSR_INTERN PetscErrorCode GPUKSPLend(KSP_GPU *, GPUKSPSlot *);
GPUCSR_INTERN PetscErrorCode GPUKSPLoad(KSP_GPU *, Vec, double *);
GPUCSR_INTERN PetscErrorCode GPUKSPStore(KSP_GPU *, const double *, Vec);
GPUCSR_INTERN PetscErrorCode GPUKSPTake(KSP_GPU *, Vec, PetscBool, PetscBool, GPUCSROperand *, double **);
