#pragma once

/* What the files of KSPGPUCG and KSPGPUBCGS share */
#include <petsc/private/kspimpl.h>
#include "../../../mat/impls/gpucsr/gpucsrimpl.h"
#include "launch.h"

/* The vectors of a solve, in the order in which GPUKSPVectors has them */
typedef enum {
  VEC_X,
  VEC_B,
  VEC_R,
  VEC_P,
  VEC_W,
  VEC_Z,
  VEC_S,
  VEC_T,
  VEC_V,
  VEC_RP,
  VEC_PH,
  VEC_SH,
  VEC_P2,
  VEC_V2,
  VEC_C0,
  VEC_C1,
  VEC_C2,
  GPUKSP_VECTORS
} GPUKSPVectorName;

/* Where a preconditioner is applied */
typedef enum {
  GPUKSP_PC_NONE,
  GPUKSP_PC_DIAGONAL, /* on the way, in any step */
  GPUKSP_PC_BLOCK,    /* in a step of its own */
  GPUKSP_PC_ANY       /* by PCApply() */
} GPUKSPPCKind;

/* A preconditioner as it was when something was taken from it. While PETSc reuses it, it is that of values which the state does not tell */
typedef struct {
  PetscObjectId    pc, P;
  PetscObjectState state;
  GPUKSPPCKind     kind;
  int              key; /* its type, where the kind has several */
  PetscBool        reused;
} GPUKSPPCSeen;

/* Solves that a KSP has set up once: vectors on the device, what the preconditioner comes to, the launch */
typedef struct {
  GPUKSPMethod    method;
  KSPGPUVariant   variant;
  KSPGPUPrecision precision;
  KSPGPUPath      path;
  PetscBool       guard, tiles, warnedlive;
  PetscInt        degree;    /* of a polynomial preconditioner; 0: none */
  PetscReal       given[2];  /* the eigenvalues it is to be made for; 0 where they are to be estimated, */
  PetscReal       lambda[2]; /* and those it is made for */

  Mat                  A;              /* one process' matrix, or the diagonal block; not counted, looked at while a solve lasts */
  GPUCSRDevice         dev;            /* where memory below is from */
  int                  n;              /* rows */
  GPUKSPPCKind         pckind;         /* as it was last time */
  KSPGPUPath           taken;          /* how the last solve went */
  char                 why[256];       /* and why so, */
  const GPUCSRFormat  *with;           /* and in which format, if in a launch */
  PetscBool            mixed;          /* it iterated in single precision, */
  char                 whydouble[128]; /* or did not, though mixed was asked for */
  PetscBool            rulehere;       /* rules are applied by the host */
  PetscBool            live;           /* somebody looks at each iteration */
  void                *memory;         /* device: all vectors */
  size_t               bytes;
  char                *fmemory; /* device: those of mixed, its preconditioner, and the rounded values */
  size_t               fbytes;
  double              *pc; /* device: diagonal, or rows of diagonal blocks */
  size_t               pcbytes;
  double              *partial;    /* device: of steps, */
  int                  stepblocks; /* by so many blocks */
  int                 *bounds;     /* device: of the launch */
  void                *slots;      /* device: of the launch */
  double              *table;      /* device: the diagonal of each stencil */
  double              *hist;       /* device: residual norms */
  int                  histmax;
  GPUKSPState         *state;    /* page-locked, */
  GPUKSPState         *seen;     /* so is this, */
  double              *sums;     /* and so are these: one piece of memory */
  GPUKSPState         *devstate; /* device: of steps that apply rules themselves */
  GPUKSPLaunch         launch;
  GPUKSPVectorsSingle  single;  /* vectors of the iteration of mixed, */
  GPUCSRStorage        rounded; /* and A with rounded values; its other arrays are the plan's */
  const GPUCSRStorage *S;       /* what products of a launch are with: the plan's, or */
  GPUCSRPlan           own;     /* one of our own, where another format is better in a launch */
  GPUCSREvent          events[2];
  void                *graph; /* of an iteration, while a solve lasts */

  /* what the above was made of; made again when it is another */
  PetscObjectId       matid;
  PetscObjectState    pattern, matvalues, ownpattern, ownvalues;
  PetscObjectId       ownid;
  PetscBool           pcnew; /* the preconditioner has other numbers than the last solve's */
  const GPUCSRKernel *kernel;
  const GPUCSRFormat *better; /* than the plan's, in a launch */
  KSPGPUPath          betterfor;
  GPUKSPPCSeen        pcseen, diagonalseen, lambdaseen; /* what pc, diagonal and lambda were taken from, */
  PetscObjectId       lambdaid;                         /* and the operator of the last */
  PetscObjectState    lambdastate;
  KSPGPUPath          shapefor;
  int                 shapeof[4]; /* method, kind of preconditioner, its block size, degree of the polynomial */
  const void         *shapedata;

  /* by the host's loop, with vectors of PETSc's own */
  Vec           work[GPUKSP_VECTORS], diagonal;
  GPUCSROperand operand[GPUKSP_VECTORS];
  int           from, to; /* vectors that the preconditioner is between */
  PetscReal     truenorm;
  PetscInt      replacements;
} KSP_GPU;

GPUCSR_INTERN PetscErrorCode KSPGPUInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode KSPCreate_GPUCG(KSP);
GPUCSR_INTERN PetscErrorCode KSPCreate_GPUBCGS(KSP);
GPUCSR_INTERN PetscErrorCode GPUKSPDrive(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPDriveMixed(KSP, KSP_GPU *);
GPUCSR_INTERN PetscErrorCode GPUKSPStoreX(KSP, KSP_GPU *);
