#pragma once

/*
  Storage formats. A format is one file here and one row in formatlist.h. The file has the format's arrays, a function to fill the arrays from CSR,
  and a host reference of the product. The reference tests every kernel, and the host backend runs it.

  Host functions work on any arrays that the host can address. The row of a format that kernels can fill on the device from CSR says so
  (GPUCSRDeviceFormat in ../kernels/kernels.h); the host fills and uploads the other formats.
*/
#if defined(__CUDACC__)
  #include "../../../../../sys/device.h"
#else
  #include "../../../../../sys/gpucsrsys.h"
#endif

#if defined(__CUDACC__)
  #define GPUCSR_HOST_DEVICE static inline __host__ __device__
#else
  #define GPUCSR_HOST_DEVICE static inline
#endif

typedef enum {
  GPUCSR_PRECISION_DOUBLE, /* values double, vectors double */
  GPUCSR_PRECISION_SINGLE, /* values float,  vectors float  */
  GPUCSR_PRECISION_MIXED   /* values float,  vectors double */
} GPUCSRPrecision;

static inline GPUCSRType GPUCSRValueType(GPUCSRPrecision p)
{
  return p == GPUCSR_PRECISION_DOUBLE ? GPUCSR_DOUBLE : GPUCSR_FLOAT;
}
static inline GPUCSRType GPUCSRVectorType(GPUCSRPrecision p)
{
  return p == GPUCSR_PRECISION_SINGLE ? GPUCSR_FLOAT : GPUCSR_DOUBLE;
}

/* BODY(V, X) with the C types of values and vectors */
#define GPUCSRDispatchPrecision(p, BODY) \
  do { \
    switch (p) { \
    case GPUCSR_PRECISION_DOUBLE: \
      BODY(double, double); \
      break; \
    case GPUCSR_PRECISION_SINGLE: \
      BODY(float, float); \
      break; \
    case GPUCSR_PRECISION_MIXED: \
      BODY(float, double); \
      break; \
    } \
  } while (0)

#define GPUCSR_SLICE 32 /* rows of a slice of sliced ELL: a warp */

/* Block sizes whose number of blocks the inspector estimates: 1..4 by 1..4, 8 by 8, and 4 by 64 */
#define GPUCSR_NBLOCKSIZES   18
#define GPUCSR_BLOCK(r, c)   (100 * (r) + (c)) /* a block size as the variant of a format */
#define GPUCSR_BLOCK_ROWS(v) ((v) / 100)
#define GPUCSR_BLOCK_COLS(v) ((v) % 100)
GPUCSR_HOST_DEVICE int GPUCSRBlockIndex(int variant)
{
  const int r = GPUCSR_BLOCK_ROWS(variant), c = GPUCSR_BLOCK_COLS(variant);

  return c == 64 ? 17 : r == 8 ? 16 : 4 * (r - 1) + c - 1;
}
#define GPUCSR_NCLASSES 32 /* class b of row lengths: from 2^(b-1) to below 2^b, class 0: empty */

/* The inspector's results, on which alone a choice depends. The first part is exact, the second estimated from a sample of the rows. */
typedef struct {
  int     m, n;
  int64_t nnz;
  int     min, max;                 /* of the row lengths */
  double  mean, deviation;          /* of the row lengths */
  int     rows[GPUCSR_NCLASSES];    /* rows of each class of lengths; class 0: without entries */
  int64_t entries[GPUCSR_NCLASSES]; /* and their entries */
  int64_t sell_stored;              /* entries that sliced ELL would store */
  int64_t heaviest;                 /* entries of the largest slice of sliced ELL */

  int    sampled;                    /* rows sampled; 0: nothing below is known */
  double spread;                     /* mean of last - first column + 1 over the sampled rows with entries */
  int    bandwidth;                  /* largest |column - row| met */
  int    diagonals;                  /* different ones met */
  double blocks[GPUCSR_NBLOCKSIZES]; /* estimated number of blocks with entries */
  double listed;                     /* estimated sum over tiles of 128 rows of their different columns */
  double sectors[2][2];              /* the same for sectors of x, of numbers of 8 bytes and of 4: over groups of 8 rows, over tiles */

  int stencils;       /* exact number of different rows, as lists of (column - row, stored value): 0: not counted, -1: too many */
  int stencilentries; /* and their entries */
} GPUCSRFeatures;

/* Different rows and their entries in all, up to which they are counted */
#define GPUCSR_MOST_STENCILS 4095

/* The size of a matrix in a format: the data of layout() beyond the features */
typedef struct {
  int64_t stored; /* entries stored, with padding */
  int64_t units;  /* blocks, diagonals, entries of a second part: as the format's head comment says */
  int     width;  /* entries of each row in a first part, if there is one */
  int     window; /* rows of a window sorted by length; 0: rows are not sorted */
} GPUCSRExtent;

/* Entries that a format may store at most, with padding */
#define GPUCSR_MOST_STORED(f) (64.0 * ((double)(f)->nnz + (double)(f)->m + 1024))

typedef struct _n_GPUCSRSource GPUCSRSource;
#if !defined(__CUDACC__)
/* The matrix as MATAIJ holds it: host CSR, rows sorted or not, no duplicates */
struct _n_GPUCSRSource {
  int                m, n;
  int64_t            nnz;
  const int32_t     *i;        /* m + 1 */
  const PetscInt    *j;        /* nnz */
  const PetscScalar *a;        /* nnz */
  const void        *resident; /* a GPUCSRStorage: the same in CSR on a device, in double; NULL: there is none */
};
#endif

#define GPUCSR_MAX_ARRAYS 8
#define GPUCSR_PIECE      GPUCSR_STAGE_BYTES /* arrays up to this size in all share an allocation and a copy */

typedef struct {
  const char *name;
  GPUCSRType  type;
  GPUCSRBool  values; /* changes with values; the other arrays change with the pattern alone */
  size_t      count;
  void       *data; /* memory of the device */
} GPUCSRArray;

typedef struct _n_GPUCSRFormat GPUCSRFormat;

/* A matrix in some format on some device, as kernels see it */
typedef struct {
  const GPUCSRFormat *format;
  GPUCSRDevice        dev;
  GPUCSRPrecision     precision;
  int                 m, n;
  int64_t             nnz;
  int64_t             stored; /* entries stored, with padding */
  int                 narrays;
  GPUCSRArray         array[GPUCSR_MAX_ARRAYS];
  void               *piece; /* memory of small arrays, GPUCSRAlignUp() from begin to begin; NULL: each array has its own */
  size_t              piecebytes;
  int                 lent; /* so many arrays, the first ones, are another owner's */
  GPUCSRExtent        extent;
  GPUCSRBool          outdated; /* the format cannot store the new values: the matrix must be built anew */
  GPUCSRArray         work;     /* a kernel's data from the pattern */
  int                 parts;    /* a count with the work array, */
  int                 way;      /* and the path that the kernel has prepared */
} GPUCSRStorage;

/*
  A step of an iteration with A at the end of a product z = v: z = x + ca (x - before) + cb M v. M: a diagonal, NULL is 1. before: the iterate before
  x, which may be in z; NULL is 0. Only for A square, z other than x and y, and kernels whose family has steps.
*/
typedef struct {
  GPUCSRBool  taken;
  double      ca, cb;
  const void *M, *before;
} GPUCSRStep;

/*
  Sums that a product may compute from its result, with vectors q and u: (q, z), and with `all` (z, z), (q, q), (u, z) and (u, q), which are 0 without
  u. Each block of a kernel adds up its rows; part k of block b is part[k * GPUCSR_MOST_PARTS(m) + b]. With M, a diagonal, z = M v in place of v. For all
  rows at once, vectors of doubles, and kernels whose family has steps.
*/
#define GPUCSR_INNER         5
#define GPUCSR_MOST_PARTS(m) ((m) / 8 + 64) /* at most: every block of such a kernel has 8 rows or more */
typedef struct {
  GPUCSRBool    all;
  const double *q, *u, *M; /* q NULL: none */
  double       *part;
  int          *parts; /* on the host: their number, known at the launch */
} GPUCSRSums;

/* z = alpha A x + beta y for rows first <= r < last; z may be y; y is not read when beta is 0. Vectors are whole. */
typedef struct {
  double      alpha, beta;
  const void *x, *y;
  void       *z;
  int         first, last;
  GPUCSRBool  doubles; /* the vectors are doubles, in any precision of the plan */
  GPUCSRStep  step;
  GPUCSRSums  sums;
} GPUCSRProduct;

/* Formats that differ only in a number (as a block size) are variants of one family and share its file */
typedef struct {
  /* can the format store the matrix? If not, why has the reason. About correctness, never about speed. NULL: it can store any with not too much padding */
  GPUCSRBool (*applicable)(const GPUCSRFeatures *, int variant, char why[], size_t len);
  /* its extent from the features: for the choice, and for layout() if measure is NULL */
  void (*estimate)(const GPUCSRFeatures *, int variant, GPUCSRExtent *);
  /* its exact extent from host CSR; NULL: the estimate is exact */
  GPUCSRError (*measure)(const GPUCSRSource *, int variant, GPUCSRExtent *);
  /* names, types and lengths of the arrays, and A->stored */
  void (*layout)(const GPUCSRFeatures *, const GPUCSRExtent *, GPUCSRStorage *A);
  /* writes the arrays from host CSR; valuesonly: only the value arrays, or A->outdated if that is impossible */
  GPUCSRError (*fill)(const GPUCSRSource *, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding);
  /* the reference product on the host */
  GPUCSRError (*mult)(const GPUCSRStorage *A, const GPUCSRProduct *);
  /* d[r] = A[r][r], 0 where it is not stored, r < min(m, n), in the vector type */
  GPUCSRError (*diagonal)(const GPUCSRStorage *A, void *d);
} GPUCSRFormatFamily;

struct _n_GPUCSRFormat {
  const char               *name, *family; /* words */
  int                       variant;
  const GPUCSRFormatFamily *ops;
};

/* formats.h has the other formats, so that a new row of formatlist.h compiles few files again */
GPUCSR_INTERN const GPUCSRFormatFamily GPUCSRFormat_csr;

/* The arrays of CSR, the source of every build */
enum {
  CSR_ROWPTR,
  CSR_COL,
  CSR_VAL
};

GPUCSR_INTERN const GPUCSRFormat *GPUCSRFormatFind(const char[]); /* NULL: no format has that name */
GPUCSR_INTERN const GPUCSRFormat *GPUCSRFormatGet(int);           /* NULL: past the last */
#define GPUCSR_NAMES 2048                                         /* characters for the names of all kernels, or of all formats */
GPUCSR_INTERN GPUCSRError GPUCSRFormatNames(char[], size_t);
GPUCSR_INTERN GPUCSRBool  GPUCSRFormatHolds(const GPUCSRFormat *, const GPUCSRFeatures *, char[], size_t);

static inline GPUCSRBool GPUCSRIsCSR(const GPUCSRFormat *f)
{
  return f->ops == &GPUCSRFormat_csr;
}
GPUCSR_INTERN const GPUCSRFormat *GPUCSRFormatCSR(void);

/* Functions common to several families: estimate() for exactly the matrix' entries, and for all m n */
GPUCSR_INTERN void GPUCSRStoresEntries(const GPUCSRFeatures *, int, GPUCSRExtent *);
GPUCSR_INTERN void GPUCSRStoresAll(const GPUCSRFeatures *, int, GPUCSRExtent *);

GPUCSR_INTERN GPUCSRError GPUCSRFeaturesOfRows(int, int, const int32_t *, int, GPUCSRFeatures *);
GPUCSR_INTERN GPUCSRError GPUCSRStencils(int, const int32_t *, const void *, GPUCSRType, const void *, GPUCSRType, GPUCSRFeatures *);
GPUCSR_INTERN GPUCSRError GPUCSRInspect(int, int, const int32_t *, const int32_t *, double, int, GPUCSRFeatures *);

GPUCSR_INTERN GPUCSRError GPUCSRStorageCreate(GPUCSRDevice, const GPUCSRFormat *, const GPUCSRFeatures *, const GPUCSRExtent *, GPUCSRPrecision, GPUCSRStorage *);
GPUCSR_INTERN GPUCSRError GPUCSRStorageCSR(GPUCSRDevice, int m, int n, int64_t nnz, GPUCSRPrecision, GPUCSRBool valuesonly, GPUCSRStorage *);
GPUCSR_INTERN GPUCSRError GPUCSRStorageAllocate(GPUCSRStorage *, GPUCSRBool valuesonly);
GPUCSR_INTERN GPUCSRError GPUCSRStorageDestroy(GPUCSRStorage *);
GPUCSR_INTERN GPUCSRError GPUCSRStorageLend(const GPUCSRStorage *, GPUCSRStorage *);
GPUCSR_INTERN GPUCSRError GPUCSRStorageWork(GPUCSRStorage *, GPUCSRType, size_t);
GPUCSR_INTERN double      GPUCSRStorageBytes(const GPUCSRStorage *);
GPUCSR_INTERN double      GPUCSRPairedBytes(const GPUCSRStorage *); /* dia.c */
GPUCSR_INTERN double      GPUCSRCSRBytes(const GPUCSRFeatures *, GPUCSRPrecision);

GPUCSR_INTERN GPUCSRError GPUCSRTransposeCSR(const GPUCSRStorage *A, GPUCSRStorage *T, int32_t *map);
