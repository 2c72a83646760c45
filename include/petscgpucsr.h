#pragma once

/*
  MATGPUCSR: a sparse matrix type for PETSc with products on an NVIDIA GPU, and VECGPU: vectors on the GPU.

  The only public header, in plain C: no CUDA type appears here, and including it needs no CUDA installation. A program that only uses options never includes it; see README.md.
*/
#include <petscksp.h>

#define PETSCGPUCSR_VERSION_MAJOR 0
#define PETSCGPUCSR_VERSION_MINOR 6
#define PETSCGPUCSR_VERSION       "0.6"

#define MATGPUCSR       "gpucsr"
#define MATAIJGPUCSR    "aijgpucsr"
#define MATSEQAIJGPUCSR "seqaijgpucsr"
#define MATMPIAIJGPUCSR "mpiaijgpucsr"

/* The solver types of its factors (MatSolverType) */
#define MATSOLVERGPUCSR "gpucsr"
#if !defined(MATSOLVERCUDSS)
  #define MATSOLVERCUDSS "cudss"
#endif

#define VECGPU    "gpu"
#define VECSEQGPU "seqgpu"
#define VECMPIGPU "mpigpu"

#define TAOGPUBMRM "gpubmrm"

#if !defined(GPUCSR_EXTERN)
  #if defined(__cplusplus)
    #define GPUCSR_EXTERN extern "C" __attribute__((visibility("default")))
  #else
    #define GPUCSR_EXTERN extern __attribute__((visibility("default")))
  #endif
#endif

/*E
  MatGPUCSRPrecision - precision of the device's values and of the vectors of a product

  Values:
+ `MAT_GPUCSR_DOUBLE` - values, vectors and sums in double
. `MAT_GPUCSR_SINGLE` - values, vectors and sums in single; host vectors are converted on the way to and from the device
. `MAT_GPUCSR_MIXED`  - values in single, vectors and sums in double
- `MAT_GPUCSR_AUTO`   - values in single if every value is exactly a float, so that nothing is lost; otherwise double

  Level: beginner

.seealso: `MATGPUCSR`, `MatGPUCSRSetPrecision()`
E*/
typedef enum {
  MAT_GPUCSR_DOUBLE,
  MAT_GPUCSR_SINGLE,
  MAT_GPUCSR_MIXED,
  MAT_GPUCSR_AUTO
} MatGPUCSRPrecision;
GPUCSR_EXTERN const char *const MatGPUCSRPrecisions[];

/*E
  MatGPUCSRBackend - where the products of a `MATGPUCSR` matrix run

  Values:
+ `MAT_GPUCSR_BACKEND_AUTO` - on the GPU if a GPU can hold the matrix, otherwise on the host
. `MAT_GPUCSR_BACKEND_CUDA` - on the GPU; an error if that is not possible
- `MAT_GPUCSR_BACKEND_HOST` - on the CPU

  Level: beginner

.seealso: `MATGPUCSR`, `MatGPUCSRSetBackend()`
E*/
typedef enum {
  MAT_GPUCSR_BACKEND_AUTO,
  MAT_GPUCSR_BACKEND_CUDA,
  MAT_GPUCSR_BACKEND_HOST
} MatGPUCSRBackend;
GPUCSR_EXTERN const char *const MatGPUCSRBackends[];

/*E
  MatGPUCSRSelect - Way to choose the format and kernel of a `MATGPUCSR` matrix without a choice of the user

  Values:
+ `MAT_GPUCSR_SELECT_ESTIMATE` - the pair that the machine's profile predicts to be fastest (the default)
. `MAT_GPUCSR_SELECT_MEASURE`  - the fastest of the profile's best pairs, timed on the matrix itself
- `MAT_GPUCSR_SELECT_TREE`     - the pair of a decision tree with mean row length and number of columns, from the thesis of A. H. El Zein

  Level: intermediate

.seealso: `MATGPUCSR`, `MatGPUCSRSetSelect()`
E*/
typedef enum {
  MAT_GPUCSR_SELECT_ESTIMATE,
  MAT_GPUCSR_SELECT_MEASURE,
  MAT_GPUCSR_SELECT_TREE
} MatGPUCSRSelect;
GPUCSR_EXTERN const char *const MatGPUCSRSelects[];

/*E
  MatGPUCSRMaster - which copy of the values of a `MATGPUCSR` matrix is the master

  Values:
+ `MAT_GPUCSR_MASTER_HOST`   - the host's: values are there before an operation returns (the default)
- `MAT_GPUCSR_MASTER_DEVICE` - the device's: the host's values are NaN until an operation fetches them

  Level: intermediate

.seealso: `MATGPUCSR`, `MatGPUCSRSetMaster()`
E*/
typedef enum {
  MAT_GPUCSR_MASTER_HOST,
  MAT_GPUCSR_MASTER_DEVICE
} MatGPUCSRMaster;
GPUCSR_EXTERN const char *const MatGPUCSRMasters[];

/*S
  MatGPUCSRInfo - contents and history of a `MATGPUCSR` matrix on this rank; all times in seconds, all sizes in bytes

  Level: intermediate

  Note:
  Sums over the diagonal and the off-diagonal block of a `MATMPIAIJGPUCSR`; names describe the diagonal block.

.seealso: `MATGPUCSR`, `MatGPUCSRGetInfo()`
S*/
typedef struct {
  const char *backend;          /* "cuda", "host", or "none" before the first product */
  const char *format;           /* storage format of A, "aij" if MATAIJ computes the products */
  const char *kernel;           /* kernel of the product with A */
  const char *transpose_format; /* the same for the resident transpose, "none" if there is none */
  const char *transpose_kernel;
  PetscInt    builds;    /* times a plan was made: pattern new or changed */
  PetscInt    refreshes; /* times only the values were sent again */
  PetscInt    transpose_builds;
  PetscInt    products; /* products with A computed by a plan */
  PetscInt    transpose_products;
  PetscInt    dense_products; /* launches for several columns of a dense matrix at once, */
  PetscInt    dense_columns;  /* and their columns, which also count as products */
  PetscInt    aij_products;   /* products by MATAIJ itself, on the host */
  PetscInt    aij_transpose_products;
  PetscInt    sparse_products; /* times the device computed the values of a product with a sparse matrix, with this matrix as the first factor */
  PetscInt    fallbacks;       /* times this matrix left the device because of a failure */
  double      bytes;           /* device memory of A */
  double      transpose_bytes; /* device memory of the transpose, its value map included */
  double      csr_bytes;       /* size of plain CSR in the same precision */
  double      padding;         /* stored entries over nonzeros, minus 1 */
  double      rounding;        /* largest relative rounding error of a value for the device, 0 if none */
  double      uploaded, downloaded;
  double      values_uploaded, values_downloaded; /* part for values of the matrix, and for contributions to values (`MatSetValuesCOO()`) */
  double      inspect_time, convert_time, build_time, upload_time, transpose_time, product_time, transpose_product_time, download_time;
  double      pad_time;            /* share of the conversion's time for padding, by written entries; not in convert_time */
  double      vector_upload_time;  /* upload_time is the matrix's; on the host, including conversion */
  double      vector_convert_time; /* of vectors on the device between double and the precision of the products */
  double      aij_time;            /* of products by MATAIJ itself, wall clock */
  PetscInt    solver_products;     /* of the products, those inside solvers and preconditioners of the device, which no time counts */
  PetscInt    solver_transpose_products;
} MatGPUCSRInfo;

/*E
  MatGPUCSRPlace - Place of a matrix' products, and of iterations of conjugate gradients with the matrix

  Values:
+ `MAT_GPUCSR_PLACE_CPU`            - on this rank's core, by `MATSEQAIJ`
. `MAT_GPUCSR_PLACE_HOST_VECTORS`   - on the GPU, with the program's vectors on the host
. `MAT_GPUCSR_PLACE_DEVICE_VECTORS` - on the GPU, with vectors on the GPU
- `MAT_GPUCSR_PLACE_SOLVER`         - on the GPU from the right-hand side to the solution, by `KSPGPUCG`

  Level: intermediate

.seealso: `MATGPUCSR`, `MatGPUCSRGetAdvice()`
E*/
typedef enum {
  MAT_GPUCSR_PLACE_CPU,
  MAT_GPUCSR_PLACE_HOST_VECTORS,
  MAT_GPUCSR_PLACE_DEVICE_VECTORS,
  MAT_GPUCSR_PLACE_SOLVER
} MatGPUCSRPlace;
GPUCSR_EXTERN const char *const MatGPUCSRPlaces[];

/*S
  MatGPUCSRAdvice - predicted time of products and of iterations of conjugate gradients with Jacobi on this rank, by `MatGPUCSRPlace`; seconds and bytes, 0 if not applicable

  Level: intermediate

.seealso: `MATGPUCSR`, `MatGPUCSRGetAdvice()`, `MatGPUCSRAdvise()`, `MatGPUCSRPlace`
S*/
typedef struct {
  PetscBool      device;                              /* there is a GPU; otherwise the times are for the profile's GPU */
  const char    *format, *kernel;                     /* the automatic choice */
  double         kernel_product;                      /* of the kernel alone */
  double         product[4], iteration[4], bytes[4];  /* by place; bytes of device memory, for the CPU of host memory */
  double         products[4], iterations[4], each[4]; /* on 1, 2, 4, 8 GPUs: products of device vectors, iterations of KSPGPUCG, bytes of each GPU */
  MatGPUCSRPlace best;                                /* fastest place for products: one of the first three */
  char           take[320];                           /* the recommended options */
  char           note[256];                           /* remarks about the numbers, empty if there are none */
} MatGPUCSRAdvice;

/*S
  VecGPUInfo - the place of a `VECGPU` vector on this rank, and the number of copies over the bus

  Level: intermediate

.seealso: `VECGPU`, `VecGPUGetInfo()`
S*/
typedef struct {
  const char *backend;              /* "cuda", "host" */
  PetscBool   onhost, ondevice;     /* which copies are valid now */
  PetscInt    uploads, downloads;   /* times the entries were copied */
  PetscInt    forced;               /* of these copies, made because the program held an array of the vector (`VecGetArray()`) while the device worked on the vector */
  double      uploaded, downloaded; /* bytes */
} VecGPUInfo;

GPUCSR_EXTERN PetscErrorCode MatGPUCSRInitializePackage(void);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRFinalizePackage(void);
GPUCSR_EXTERN PetscErrorCode PetscDLLibraryRegister_petscgpucsr(void);

GPUCSR_EXTERN PetscErrorCode MatCreateSeqAIJGPUCSR(MPI_Comm, PetscInt, PetscInt, PetscInt, const PetscInt[], Mat *);
GPUCSR_EXTERN PetscErrorCode MatCreateAIJGPUCSR(MPI_Comm, PetscInt, PetscInt, PetscInt, PetscInt, PetscInt, const PetscInt[], PetscInt, const PetscInt[], Mat *);

GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetBackend(Mat, MatGPUCSRBackend);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetFormat(Mat, const char[]);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetKernel(Mat, const char[]);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetTransposeFormat(Mat, const char[]);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetTransposeKernel(Mat, const char[]);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetPrecision(Mat, MatGPUCSRPrecision);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetSelect(Mat, MatGPUCSRSelect);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetExpectedMults(Mat, PetscReal);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetTransposeAtAssembly(Mat, PetscBool);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetMaster(Mat, MatGPUCSRMaster);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRGetDevice(PetscInt *);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetPreallocationCOO(Mat, PetscCount, const int[], const int[]);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetPreallocationCSR(Mat, PetscCount, const int[], const int[]);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRGetDeviceCSR(Mat, const int **, const int **, double **);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRRestoreDeviceCSR(Mat, const int **, const int **, double **);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRGetInfo(Mat, MatGPUCSRInfo *);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRGetAdvice(Mat, MatGPUCSRAdvice *);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRAdvise(Mat, PetscViewer);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRSetUp(Mat, PetscBool);

GPUCSR_EXTERN PetscErrorCode VecGPUGetInfo(Vec, VecGPUInfo *);
GPUCSR_EXTERN PetscErrorCode VecGPUGetArray(Vec, double **);
GPUCSR_EXTERN PetscErrorCode VecGPURestoreArray(Vec, double **);
GPUCSR_EXTERN PetscErrorCode VecGPUGetArrayRead(Vec, const double **);
GPUCSR_EXTERN PetscErrorCode VecGPURestoreArrayRead(Vec, const double **);
GPUCSR_EXTERN PetscErrorCode VecGPUGetArrayWrite(Vec, double **);
GPUCSR_EXTERN PetscErrorCode VecGPURestoreArrayWrite(Vec, double **);
GPUCSR_EXTERN PetscErrorCode VecGPUPlaceArray(Vec, double *);
GPUCSR_EXTERN PetscErrorCode VecGPUGetStream(Vec, void **);
GPUCSR_EXTERN PetscErrorCode VecGPUSynchronize(Vec);

/*E
  MatGPUCSRFileFormat - format of a matrix file

  Values:
+ `MAT_GPUCSR_FILE_AUTO`   - detected from the content
. `MAT_GPUCSR_FILE_PETSC`  - PETSc binary, the format of `MatView()`; the vector behind the matrix has the labels
. `MAT_GPUCSR_FILE_LIBSVM` - LIBSVM or svmlight text: a line per row, with a label and INDEX:VALUE pairs
. `MAT_GPUCSR_FILE_MARKET` - Matrix Market
- `MAT_GPUCSR_FILE_BOEING` - Harwell-Boeing or Rutherford-Boeing

  Level: intermediate

.seealso: `MatGPUCSRLoadFile()`, `MatGPUCSRFileOptions`
E*/
typedef enum {
  MAT_GPUCSR_FILE_AUTO,
  MAT_GPUCSR_FILE_PETSC,
  MAT_GPUCSR_FILE_LIBSVM,
  MAT_GPUCSR_FILE_MARKET,
  MAT_GPUCSR_FILE_BOEING
} MatGPUCSRFileFormat;
GPUCSR_EXTERN const char *const MatGPUCSRFileFormats[];

/*E
  MatGPUCSRFileBalance - what `MatGPUCSRLoadFile()` distributes equally over the ranks

  Values:
+ `MAT_GPUCSR_FILE_BALANCE_ROWS`    - rows, like `PETSC_DECIDE` and `MatLoad()`
- `MAT_GPUCSR_FILE_BALANCE_ENTRIES` - nonzeros, so that products take equal times on all ranks although rows differ in length

  Level: intermediate

.seealso: `MatGPUCSRLoadFile()`, `MatGPUCSRFileOptions`
E*/
typedef enum {
  MAT_GPUCSR_FILE_BALANCE_ROWS,
  MAT_GPUCSR_FILE_BALANCE_ENTRIES
} MatGPUCSRFileBalance;
GPUCSR_EXTERN const char *const MatGPUCSRFileBalances[];

/*S
  MatGPUCSRFileOptions - options of `MatGPUCSRLoadFile()`; set by `MatGPUCSRFileOptionsInitialize()` first

  Level: intermediate

.seealso: `MatGPUCSRLoadFile()`, `MatGPUCSRFileOptionsInitialize()`, `MatGPUCSRFileOptionsSetFromOptions()`
S*/
typedef struct {
  MatGPUCSRFileFormat  format;
  PetscInt             columns; /* LIBSVM: columns of the matrix, `PETSC_DECIDE` for the largest index in the file */
  PetscInt             base;    /* LIBSVM: index of the first column, 0 or 1; `PETSC_DECIDE`: 0 if an index 0 occurs, else 1 */
  PetscInt             threads; /* parsing threads on each rank, `PETSC_DECIDE` for all threads of OpenMP */
  PetscBool            skip;    /* skip and count bad lines, instead of stopping at the first */
  MatGPUCSRFileBalance balance; /* distribution of rows, unless the matrix has sizes */
} MatGPUCSRFileOptions;

/*S
  MatGPUCSRFileInfo - statistics of `MatGPUCSRLoadFile()` over all ranks; times in seconds, of the slowest rank

  Level: intermediate

.seealso: `MatGPUCSRLoadFile()`
S*/
typedef struct {
  MatGPUCSRFileFormat format;
  PetscInt            base;    /* LIBSVM: index of the first column */
  PetscInt64          bytes;   /* of the file */
  PetscInt64          text;    /* of the same, decompressed */
  PetscInt64          entries; /* in the file: before adding the other half of a symmetric matrix and summing equal places */
  PetscInt64          skipped; /* bad lines left out */
  PetscInt64          line;    /* the first skipped line */
  double              read_time, parse_time, assemble_time;
} MatGPUCSRFileInfo;

GPUCSR_EXTERN PetscErrorCode MatGPUCSRFileOptionsInitialize(MatGPUCSRFileOptions *);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRFileOptionsSetFromOptions(MPI_Comm, const char[], MatGPUCSRFileOptions *);
GPUCSR_EXTERN PetscErrorCode MatGPUCSRLoadFile(Mat, const char[], const MatGPUCSRFileOptions *, Vec *, Vec *, MatGPUCSRFileInfo *);

#define KSPGPUCG     "gpucg"
#define KSPGPUBCGS   "gpubcgs"
#define KSPGPUGMRES  "gpugmres"
#define KSPGPUFGMRES "gpufgmres"

#define PCGPUAMG "gpuamg"

GPUCSR_EXTERN PetscErrorCode PCGPUAMGGetOperator(PC, PetscInt, Mat *);

/*E
  KSPGPUPath - how a `KSPGPUCG`, `KSPGPUBCGS` or `KSPGPUGMRES` iterates

  Values:
+ `KSP_GPU_PATH_AUTO`       - the first possible path
. `KSP_GPU_PATH_PERSISTENT` - the whole solve is one persistent kernel
. `KSP_GPU_PATH_GRAPH`      - an iteration is a graph of a few kernels, launched again and again
- `KSP_GPU_PATH_HOST_LOOP`  - the host calls `MatMult()` and `PCApply()`, and applies the rules

  Level: advanced

.seealso: `KSPGPUCG`, `KSPGPUBCGS`, `KSPGPUSetPath()`
E*/
typedef enum {
  KSP_GPU_PATH_AUTO,
  KSP_GPU_PATH_PERSISTENT,
  KSP_GPU_PATH_GRAPH,
  KSP_GPU_PATH_HOST_LOOP
} KSPGPUPath;
GPUCSR_EXTERN const char *const KSPGPUPaths[];

/*E
  KSPGPUVariant - variant of conjugate gradients of a `KSPGPUCG`

  Values:
+ `KSP_GPU_STANDARD`         - `KSPCG`'s
- `KSP_GPU_SINGLE_REDUCTION` - `KSPCGUseSingleReduction()`'s

  Level: intermediate

.seealso: `KSPGPUCG`, `KSPGPUCGSetVariant()`
E*/
typedef enum {
  KSP_GPU_STANDARD,
  KSP_GPU_SINGLE_REDUCTION
} KSPGPUVariant;
GPUCSR_EXTERN const char *const KSPGPUVariants[];

/*E
  KSPGPUPrecision - precision of a `KSPGPUCG`'s iteration

  Values:
+ `KSP_GPU_DOUBLE`               - double
- `KSP_GPU_RESIDUAL_REPLACEMENT` - values and vectors in single, sums in double; the true residual, in double, replaces the residual again and again and before
                                   convergence is accepted

  Level: intermediate

  Note:
  Residual replacement loses no digits of the matrix. In contrast, -mat_gpucsr_precision mixed rounds the matrix for good.

.seealso: `KSPGPUCG`, `KSPGPUSetPrecision()`
E*/
typedef enum {
  KSP_GPU_DOUBLE,
  KSP_GPU_RESIDUAL_REPLACEMENT
} KSPGPUPrecision;
GPUCSR_EXTERN const char *const KSPGPUPrecisions[];

GPUCSR_EXTERN PetscErrorCode KSPGPUSetPath(KSP, KSPGPUPath);
GPUCSR_EXTERN PetscErrorCode KSPGPUSetPrecision(KSP, KSPGPUPrecision);
GPUCSR_EXTERN PetscErrorCode KSPGPUCGSetVariant(KSP, KSPGPUVariant);
GPUCSR_EXTERN PetscErrorCode KSPGPUSetTrueResidual(KSP, PetscBool);
GPUCSR_EXTERN PetscErrorCode KSPGPUGetTrueResidualNorm(KSP, PetscReal *);
