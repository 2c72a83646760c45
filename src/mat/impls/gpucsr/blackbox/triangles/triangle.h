#pragma once

/*
  Triangular solves, and the incomplete factorizations that make triangles. Knows no Mat and no CUDA.

  A factor is a square CSR matrix with ascending columns and a complete diagonal. L is left of the diagonal, U is right of it, and a separate array has
  the inverse of the diagonal. Each triangle is stored a second time, in the form for solves: rows in the order of their levels (a row needs only
  results of earlier levels), in slices of 32 lanes, as in sliced ELLPACK. A long row gets 2 to 32 lanes, so that a slice is seldom wider than
  four entries a lane. A slice never spans two levels. Columns are places in the order of levels, so that neighbouring lanes read neighbouring results.

  The computations are a table of functions: loops on the host (host.c), kernels on a GPU (*.cu). Each kernel computes the same as its loop, up to rounding.
*/
#include "../kernels/each.h"

/* Rows of a length up to 4 have a lane each, up to 8 two, and so on to 32 */
#define GPUCSR_LANE_CLASSES 6
#define GPUCSR_LANE_ENTRIES 4
GPUCSR_HOST_DEVICE int GPUCSRLaneClass(int length)
{
  int c = 0;

  while (c < GPUCSR_LANE_CLASSES - 1 && length > GPUCSR_LANE_ENTRIES << c) c++;
  return c;
}

/* 16 bytes, read in one load */
typedef struct {
  int          first;  /* place of its first row */
  unsigned int shape;  /* rows, lanes of each (log2), width: entries a lane */
  int          offset; /* of its entries, in units of 32 */
  int          unused;
} GPUCSRSlice;
#define GPUCSRSliceShape(rows, lanes, width) ((unsigned)(rows) | (unsigned)(lanes) << 6 | (unsigned)(width) << 9)
#define GPUCSRSliceRows(shape)               ((int)((shape)&63))
#define GPUCSRSliceLanes(shape)              ((int)((shape) >> 6 & 7))
#define GPUCSRSliceWidth(shape)              ((int)((shape) >> 9))
#define GPUCSR_SLICE_WIDTH_MAX               (1 << 23)

/* Column p of a range that begins at place b; and p - b of the column */
#define GPUCSR_NEAR(p, b) (-2 - ((p) - (b)))
#define GPUCSR_NEAR_OF(c) (-2 - (c))

/*
  One triangle in the order of levels: all rows, or one range of rows after the other (upper: from the end). Arrays are on the device
*/
typedef struct {
  int          n;
  GPUCSRBool   upper;
  int          rows, nranges; /* rows of a range, and number of ranges: n and 1 for all rows */
  GPUCSRBool   near;          /* solved by ranges: columns mark results of the same range */
  int          nlevels, nslices;
  int64_t      nnz, stored;
  int         *depth;         /* while the triangle is built: level of each row */
  int64_t     *key;           /* and range, level and lane class at each place */
  int         *order, *place; /* row at each place, and the place of each row */
  int         *range;         /* first slice of each range, then the end */
  GPUCSRSlice *slice;
  int         *col; /* a place; -1: no entry; near: GPUCSR_NEAR() of a place in the same range */
  double      *val;
  double      *scale; /* inverse diagonal, by place */
  double      *x[2];  /* results by place, used alternately: each solve marks the next solve's absent */
  int          turn;
} GPUCSRTriangle;

/* The factor, on the device */
typedef struct {
  int            n, longest; /* entries of its longest row */
  int64_t        nnz;
  int           *i, *j, *diag; /* diag: place of the diagonal in j and a */
  double        *a;            /* solves do not read the diagonal */
  double        *dinv;
  GPUCSRStorage *csr; /* of i, j and a */
} GPUCSRFactorCSR;

/* x = T^{-1} b in the places of T; a row is (b - sum) d, or b d - sum */
typedef enum {
  GPUCSR_UNIT,       /* d = 1 */
  GPUCSR_SCALE_ROW,  /* (b - sum) d */
  GPUCSR_SCALE_RIGHT /* b d - sum */
} GPUCSRScaling;

GPUCSR_HOST_DEVICE double GPUCSRScaled(GPUCSRScaling scaling, double b, double sum, double d)
{
  return scaling == GPUCSR_SCALE_ROW ? (b - sum) * d : scaling == GPUCSR_SCALE_RIGHT ? b * d - sum : b - sum;
}

/* One triangular solve of a launch; the second takes the results of the first */
typedef struct {
  GPUCSRTriangle *T;
  GPUCSRScaling   scaling;
  const int      *from; /* entry of b for each place: of the vector, or a place of the triangle before */
  const int      *to;   /* entry of the result for each place; NULL: no output */
} GPUCSRSweep;

typedef enum {
  GPUCSR_SOLVE_RANGES,   /* a block has a range of rows, with their results in its shared memory; a row waits for the results that it needs */
  GPUCSR_SOLVE_SYNCFREE, /* the same without ranges, through the second-level cache */
  GPUCSR_SOLVE_METHODS
} GPUCSRSolveMethod;
GPUCSR_INTERN const char *const GPUCSRSolveMethods[];

#define GPUCSR_RANGE_ROWS 28000 /* at most, 8 bytes of shared memory each */

/*
  The inverses of the blocks on the diagonal of a matrix, or of a factor of a block diagonal one: consecutive rows and columns begin[k] to begin[k + 1] - 1. Entry (r, c) of block k, of m rows, is at[k] + m c + r of
  value. Arrays are on the device
*/
typedef struct {
  int      n, nblocks, largest;
  int64_t  stored;
  int     *begin, *block; /* block: of each row */
  int64_t *at;
  double  *value;
} GPUCSRInverses;

#define GPUCSR_INVERSE_ROWS 64 /* of a block, at most: more are faster solved with */

/* Outcome of a factorization on the device */
typedef struct {
  int row; /* the least row whose pivot is not good, or n */
  int unsymmetric;
} GPUCSRPivots;

typedef enum {
  GPUCSR_PIVOT_ABSOLUTE, /* |pivot| > tolerance */
  GPUCSR_PIVOT_ROW,      /* |pivot| > tolerance times the sum over the row */
  GPUCSR_PIVOT_POSITIVE  /* pivot > tolerance times the sum over the row */
} GPUCSRPivotRule;

/*
  Steps of rows, see ../kernels/each.h and rows.h. The rows are those of the factor F, the inverses V or the lists, and the slices of T
    inspect   the diagonal of each row; bad, which was 0, is 1 if a row's columns do not ascend or its diagonal is not stored
    widths    width of each slice
    fill      columns (if pattern) and values of T
    compose   out[p] = index[in[p]]
    collect   to[r] = the sum of from[index[k]], k from ptr[r] to ptr[r + 1], in this order
    scatter   a, which was zero, = the entries of A in the rows and columns of the factor; row, column: permutations or NULL
    mirror    the upper triangle of an ICC factorization = the lower one's transpose
    invert    values of the inverses of a factor's blocks; symmetric: its upper triangle is the lower one's transpose
    multiply  x[to[r]] = the sum of row r of the inverses times b[from[c]]; from, to NULL: the identity
*/
#define GPUCSR_TRIANGLE_STEPS(STEP) \
  STEP(inspect, 1, (GPUCSRFactorCSR F, int *bad), (F, bad)) \
  STEP(widths, 32, (GPUCSRFactorCSR F, GPUCSRTriangle T, int *width), (F, T, width)) \
  STEP(fill, 32, (GPUCSRFactorCSR F, GPUCSRTriangle T, GPUCSRBool pattern), (F, T, pattern)) \
  STEP(compose, 1, (const int *in, const int *index, int *out), (in, index, out)) \
  STEP(collect, 1, (const int *__restrict__ ptr, const int *__restrict__ index, const double *__restrict__ from, double *to), (ptr, index, from, to)) \
  STEP(scatter, 32, (const int *ai, const int *aj, const double *aa, const int *row, const int *column, GPUCSRFactorCSR F), (ai, aj, aa, row, column, F)) \
  STEP(mirror, 1, (GPUCSRFactorCSR F), (F)) \
  STEP(invert, 1, (GPUCSRFactorCSR F, GPUCSRBool symmetric, GPUCSRInverses V), (F, symmetric, V)) \
  STEP(multiply, 1, (GPUCSRInverses V, const int *__restrict__ from, const int *__restrict__ to, const double *__restrict__ b, double *x), (V, from, to, b, x))

typedef struct {
  GPUCSR_TRIANGLE_STEPS(GPUCSR_EACH_MEMBER)
  /* T->depth, nlevels, nnz */
  GPUCSRError (*levels)(GPUCSRDevice, const GPUCSRFactorCSR *, GPUCSRTriangle *T, GPUCSRStream);
  /* T->order, place, key from T->depth and T->rows */
  GPUCSRError (*order)(GPUCSRDevice, const GPUCSRFactorCSR *, GPUCSRTriangle *T, GPUCSRStream);
  /* runs of equal keys: key and rows of each, in memory that the caller frees by GPUCSRHostFree() */
  GPUCSRError (*runs)(GPUCSRDevice, const GPUCSRTriangle *T, int *n, int64_t **key, int **rows, GPUCSRStream);
  /* ILU (or, with the upper triangle of a symmetric pattern alone, ICC) of the values in a, in place, rows in the order given; done at return */
  GPUCSRError (*factor)(GPUCSRDevice, GPUCSRFactorCSR *, GPUCSRBool symmetric, const int *order, GPUCSRPivotRule, double tolerance, GPUCSRPivots *, GPUCSRStream);
  /* Two triangular solves in one launch. *trouble, page-locked, is set if results did not come in time */
  GPUCSRError (*solve)(GPUCSRDevice, GPUCSRSolveMethod, const GPUCSRSweep[2], const double *b, double *x, volatile int *trouble, GPUCSRStream);
  /* prepares this x of T for a solve */
  GPUCSRError (*reset)(GPUCSRTriangle *T, int turn, GPUCSRStream);
} GPUCSRTriangleOps;
GPUCSR_INTERN const GPUCSRTriangleOps  GPUCSRTriangleOps_Host;
GPUCSR_INTERN const GPUCSRTriangleOps  GPUCSRTriangleOps_CUDA;
GPUCSR_INTERN const GPUCSRTriangleOps *GPUCSRTriangleOpsGet(GPUCSRDevice);

GPUCSR_INTERN GPUCSRError GPUCSRFactorCSRCreate(GPUCSRDevice, int n, int64_t nnz, GPUCSRFactorCSR *);
GPUCSR_INTERN GPUCSRError GPUCSRFactorCSRDestroy(GPUCSRDevice, GPUCSRFactorCSR *);
GPUCSR_INTERN GPUCSRError GPUCSRFactorCSRInspect(GPUCSRDevice, const GPUCSRFactorCSR *, int *bad);
GPUCSR_INTERN GPUCSRError GPUCSRTriangleLevels(GPUCSRDevice, const GPUCSRFactorCSR *, GPUCSRBool upper, GPUCSRTriangle *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRTriangleOrder(GPUCSRDevice, const GPUCSRFactorCSR *, int rows, GPUCSRTriangle *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRTriangleSlices(GPUCSRDevice, const GPUCSRFactorCSR *, GPUCSRTriangle *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRTriangleDestroy(GPUCSRDevice, GPUCSRTriangle *);
GPUCSR_INTERN double      GPUCSRTriangleBytes(const GPUCSRTriangle *);
GPUCSR_INTERN double      GPUCSRTriangleTime(const GPUCSRTriangle *, GPUCSRDevice, GPUCSRSolveMethod, int ranges);
GPUCSR_INTERN int         GPUCSRTriangleRanges(const GPUCSRTriangle *, GPUCSRDevice);

GPUCSR_INTERN GPUCSRError GPUCSRInversesCreate(GPUCSRDevice, int nblocks, const int begin[], GPUCSRInverses *);
GPUCSR_INTERN GPUCSRError GPUCSRInversesDestroy(GPUCSRDevice, GPUCSRInverses *);
GPUCSR_INTERN double      GPUCSRInversesTime(GPUCSRDevice, int nblocks, const int begin[]);

/* The same on a GPU (numeric.cu, solve.cu), for build.cu */
GPUCSR_INTERN GPUCSRError GPUCSRFactor_CUDA(GPUCSRDevice, GPUCSRFactorCSR *, GPUCSRBool, const int *, GPUCSRPivotRule, double, GPUCSRPivots *, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRSolve_CUDA(GPUCSRDevice, GPUCSRSolveMethod, const GPUCSRSweep[2], const double *, double *, volatile int *, GPUCSRStream);

/* Rows of a range, if a triangle of n rows has this many ranges */
static inline int GPUCSRRangeRows(int n, int ranges)
{
  return ranges <= 1 ? n : ((n + ranges - 1) / ranges + 31) / 32 * 32;
}
