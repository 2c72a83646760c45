#pragma once

/* The synthetic matrices of the benchmarks, as host CSR, the same on every machine and for any number of threads */
#include <math.h>
#include <omp.h>
#include <petscsys.h>
#include <petscversion.h>
#include <stdint.h>
#include <stdlib.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif
#include "quadratic.h" /* which needs that */
#include "rmat.h"
#include "saddle.h"

typedef enum {
  STENCIL5, /* of a square, the others of a cube */
  STENCIL7,
  STENCIL27,
  UNIFORM, /* every row the same number of random columns */
  SAME,    /* every row the same columns */
  RANDOM,  /* from 1 to twice the mean, all as often */
  POWERLAW,
  TEXT, /* few columns hold most entries */
  FULL, /* every entry is there */
  MESH2,
  MESH3,
  PLATE,  /* a thin box of points */
  SADDLE, /* a zero block, see saddle.h */
  RMAT,   /* see rmat.h */
  MESH2Q, /* as MESH2 and MESH3, with quadratic elements, one unknown a point */
  MESH3Q
} SyntheticKind;

typedef struct {
  const char   *name;
  SyntheticKind kind;
  int           m, n; /* of a stencil: points an edge, unknowns a point; of a mesh: points, unknowns a point; of a saddle point: cells an edge, dimensions; of RMAT: levels */
  double        mean; /* entries of each row, before equal columns are joined */
  uint64_t      seed;
  int           block;          /* rows and columns of full blocks, as the unknowns of a point make them; 0: 1. Of a mesh: its MeshOrder, of a saddle point: its SaddleKind */
  int           reach;          /* greatest distance of an entry from the diagonal, in columns of blocks; 0: any */
  int           dense, longest; /* so many rows, and as many columns, hold about `longest` entries each */
} Synthetic;

static const Synthetic synthetics[] = {
  {"lap7_50",    STENCIL7,  50,      1,       7,    0, 0, 0, 0, 0},
  {"lap7_200",   STENCIL7,  200,     1,       7,    0, 0, 0, 0, 0},
  {"st27_90",    STENCIL27, 90,      1,       27,   0, 0, 0, 0, 0},
  {"st27_50_b3", STENCIL27, 50,      3,       81,   5, 0, 0, 0, 0},
  {"powerlaw3",  POWERLAW,  1000005, 1000005, 3.1,  1, 0, 0, 0, 0},
  {"uniform40",  UNIFORM,   500000,  500000,  40,   2, 0, 0, 0, 0},
  {"text_like",  TEXT,      781265,  47236,   76,   3, 0, 0, 0, 0},
  {"tall_thin",  UNIFORM,   100000,  54,      12,   4, 0, 0, 0, 0},
  {"full",       FULL,      4000,    4000,    4000, 5, 0, 0, 0, 0},
};
#define NSYNTHETICS ((int)(sizeof(synthetics) / sizeof(synthetics[0])))

/*
  The survey's additional matrices (spmv -collection). Random, Constant-row and Structured are in A. H. El Zein's thesis. Further matrices are blocks of
  unknowns as in finite elements, graphs, linear programs and text. A few matrices have the size and row lengths of ASIC_680k, lp1 and rajat30: some rows and
  columns of 10^5 entries among rows of less than ten. The last matrices have about 10^8 entries.
*/
static const Synthetic collection[] = {
  {"asic_like",       RANDOM,    682862,   682862,   4,     32, 0, 20000, 3,  395259},
  {"lp1_like",        RANDOM,    534388,   534388,   2,     33, 0, 0,     2,  249643},
  {"rajat_like",      RANDOM,    643994,   643994,   7,     34, 0, 20000, 4,  454746},
  {"few_long",        RANDOM,    300000,   300000,   8,     35, 0, 0,     40, 100000},
  {"regular_like",    UNIFORM,   682862,   682862,   6,     36, 0, 20000, 0,  0     },
  {"random8",         RANDOM,    1000000,  1000000,  8,     10, 0, 0,     0,  0     },
  {"random100",       RANDOM,    100000,   100000,   100,   11, 0, 0,     0,  0     },
  {"constant4",       UNIFORM,   2000000,  2000000,  4,     12, 0, 0,     0,  0     },
  {"constant16",      UNIFORM,   500000,   500000,   16,    13, 0, 0,     0,  0     },
  {"constant200",     UNIFORM,   50000,    50000,    200,   14, 0, 0,     0,  0     },
  {"structured16",    SAME,      500000,   500000,   16,    47, 0, 0,     0,  0     },
  {"structured500",   SAME,      3000,     10000,    500,   48, 0, 0,     0,  0     },
  {"band24",          RANDOM,    500000,   500000,   24,    15, 0, 60,    0,  0     },
  {"band300",         RANDOM,    40000,    40000,    300,   16, 0, 500,   0,  0     },
  {"square5_1500",    STENCIL5,  1500,     1,        5,     0,  0, 0,     0,  0     },
  {"square5_60",      STENCIL5,  60,       1,        5,     0,  0, 0,     0,  0     },
  {"lap7_16",         STENCIL7,  16,       1,        7,     0,  0, 0,     0,  0     },
  {"lap7_129",        STENCIL7,  129,      1,        7,     0,  0, 0,     0,  0     },
  {"st27_16",         STENCIL27, 16,       1,        27,    0,  0, 0,     0,  0     },
  {"st27_50",         STENCIL27, 50,       1,        27,    0,  0, 0,     0,  0     },
  {"st27_128",        STENCIL27, 128,      1,        27,    0,  0, 0,     0,  0     },
  {"st27_40_c3",      STENCIL27, 40,       3,        81,    0,  0, 0,     0,  0     },
  {"lap7_80_c2",      STENCIL7,  80,       2,        14,    0,  0, 0,     0,  0     },
  {"square5_800_b4",  STENCIL5,  800,      4,        20,    17, 0, 0,     0,  0     },
  {"st27_30_b4",      STENCIL27, 30,       4,        108,   18, 0, 0,     0,  0     },
  {"lap7_80_b8",      STENCIL7,  80,       8,        56,    19, 0, 0,     0,  0     },
  {"fem2",            RANDOM,    300000,   300000,   20,    20, 2, 3000,  0,  0     },
  {"fem3",            RANDOM,    150000,   150000,   60,    21, 3, 2000,  0,  0     },
  {"fem4",            RANDOM,    200000,   200000,   40,    22, 4, 2000,  0,  0     },
  {"fem6",            RANDOM,    120000,   120000,   60,    23, 6, 1500,  0,  0     },
  {"fem8",            RANDOM,    160000,   160000,   64,    24, 8, 1000,  0,  0     },
  {"fem8_small",      RANDOM,    8000,     8000,     48,    25, 8, 100,   0,  0     },
  {"fem4_small",      RANDOM,    6000,     6000,     32,    26, 4, 100,   0,  0     },
  {"full_700",        FULL,      700,      700,      700,   40, 0, 0,     0,  0     },
  {"full_300_20000",  FULL,      300,      20000,    20000, 41, 0, 0,     0,  0     },
  {"full_2000",       FULL,      2000,     1500,     1500,  42, 0, 0,     0,  0     },
  {"dense90",         UNIFORM,   2500,     2500,     5756,  43, 0, 0,     0,  0     },
  {"dense70",         UNIFORM,   1200,     1200,     1444,  44, 0, 0,     0,  0     },
  {"dense40",         UNIFORM,   3000,     3000,     1532,  45, 0, 0,     0,  0     },
  {"graph8",          POWERLAW,  1000000,  1000000,  8,     27, 0, 0,     0,  0     },
  {"graph20",         POWERLAW,  200000,   200000,   20,    28, 0, 0,     0,  0     },
  {"lp_long",         RANDOM,    20000,    400000,   60,    29, 0, 0,     0,  0     },
  {"lp_tall",         POWERLAW,  400000,   30000,    6,     30, 0, 0,     0,  0     },
  {"text_short",      TEXT,      500000,   100000,   12,    31, 0, 0,     0,  0     },
  {"lap7_240",        STENCIL7,  240,      1,        7,     0,  0, 0,     0,  0     },
  {"st27_200",        STENCIL27, 200,      1,        27,    0,  0, 0,     0,  0     },
  {"st27_75_b3",      STENCIL27, 75,       3,        81,    37, 0, 0,     0,  0     },
  {"uniform50",       UNIFORM,   2000000,  2000000,  50,    38, 0, 0,     0,  0     },
  {"fem4_large",      RANDOM,    2000000,  2000000,  50,    39, 4, 20000, 0,  0     },
  {"graph5_large",    POWERLAW,  15000000, 15000000, 5,     46, 0, 0,     0,  0     },
 /* like the fourteen of Williams, Oliker, Vuduc, Shalf, Yelick and Demmel, SC 2007, table 2, in rows, entries and unknowns a point */
  {"w14_dense",       FULL,      2000,     2000,     2000,  60, 0, 0,     0,  0     },
  {"w14_protein",     RANDOM,    36000,    36000,    119,   61, 3, 1000,  0,  0     },
  {"w14_spheres",     RANDOM,    83001,    83001,    72,    62, 3, 1500,  0,  0     },
  {"w14_cantilever",  RANDOM,    62001,    62001,    65,    63, 3, 200,   0,  0     },
  {"w14_tunnel",      RANDOM,    217998,   217998,   53,    64, 6, 1000,  0,  0     },
  {"w14_harbor",      RANDOM,    47001,    47001,    50,    65, 3, 500,   0,  0     },
  {"w14_qcd",         UNIFORM,   49152,    49152,    39,    66, 3, 4096,  0,  0     },
  {"w14_ship",        RANDOM,    140874,   140874,   55,    67, 6, 500,   0,  0     },
  {"w14_economics",   RANDOM,    206500,   206500,   6,     68, 0, 30000, 0,  0     },
  {"w14_epidemic",    UNIFORM,   525825,   525825,   4,     69, 0, 1000,  0,  0     },
  {"w14_accelerator", RANDOM,    121192,   121192,   22,    70, 0, 40000, 0,  0     },
  {"w14_circuit",     RANDOM,    170998,   170998,   6,     71, 0, 20000, 1,  350   },
  {"w14_web",         POWERLAW,  1000005,  1000005,  3.1,   72, 0, 0,     0,  0     },
  {"w14_lp",          RANDOM,    4284,     1092610,  2633,  73, 0, 0,     0,  0     },
};
#define NCOLLECTION ((int)(sizeof(collection) / sizeof(collection[0])))

/* Delaunay meshes (spmv -meshes): dimensions, q of quadratic elements, points, unknowns a point where they are several, order. Then saddle points: cells an edge, dimensions, kind; and R-MAT graphs: levels, edges a point */
#define MESHES(name, kind, points, unknowns) \
  {name "_random", kind, points, unknowns, 0, 60, MESH_RANDOM, 0, 0, 0}, {name "_rcm", kind, points, unknowns, 0, 60, MESH_RCM, 0, 0, 0}, {name "_hilbert", kind, points, unknowns, 0, 60, MESH_HILBERT, 0, 0, 0}, \
  { \
    name "_nd", kind, points, unknowns, 0, 60, MESH_DISSECTION, 0, 0, 0 \
  }
static const Synthetic meshes[] = {
  MESHES("mesh3_150k", MESH3, 150000, 1),
  MESHES("mesh2_150k", MESH2, 150000, 1),
  {"wave_like",     PLATE,  156000, 1, 0,  61, MESH_SWEEP,   0, 0, 0},
  {"wave_like_rcm", PLATE,  156000, 1, 0,  61, MESH_RCM,     0, 0, 0},
  MESHES("mesh3_50k_u3", MESH3, 50000, 3),
  MESHES("mesh3_150k_u3", MESH3, 150000, 3),
  MESHES("mesh2_150k_u3", MESH2, 150000, 3),
  MESHES("mesh3_10k", MESH3, 10000, 1),
  MESHES("mesh2_10k", MESH2, 10000, 1),
  MESHES("mesh3_40k", MESH3, 40000, 1),
  MESHES("mesh2_40k", MESH2, 40000, 1),
  MESHES("mesh3_500k", MESH3, 500000, 1),
  MESHES("mesh2_500k", MESH2, 500000, 1),
  MESHES("mesh3_1500k", MESH3, 1500000, 1),
  MESHES("mesh2_1500k", MESH2, 1500000, 1),
  MESHES("mesh3_1500k_u3", MESH3, 1500000, 3),
  MESHES("mesh3_5000k", MESH3, 5000000, 1),
  MESHES("mesh2_5000k", MESH2, 5000000, 1),
  MESHES("mesh2_5000k_u3", MESH2, 5000000, 3),
  MESHES("mesh2_10000k", MESH2, 10000000, 1),
  MESHES("mesh3q_40k", MESH3Q, 40000, 1),
  MESHES("mesh2q_150k", MESH2Q, 150000, 1),
  MESHES("mesh3q_150k", MESH3Q, 150000, 1),
  MESHES("mesh2q_1500k", MESH2Q, 1500000, 1),
  {"mac2_1000",     SADDLE, 1000,   2, 0,  80, SADDLE_MAC,   0, 0, 0},
  {"mac3_32",       SADDLE, 32,     3, 0,  81, SADDLE_MAC,   0, 0, 0},
  {"mac3_144",      SADDLE, 144,    3, 0,  82, SADDLE_MAC,   0, 0, 0},
  {"darcy2_700",    SADDLE, 700,    2, 0,  83, SADDLE_DARCY, 0, 0, 0},
  {"darcy3_90",     SADDLE, 90,     3, 0,  84, SADDLE_DARCY, 0, 0, 0},
  {"q2q1_2_300",    SADDLE, 300,    2, 0,  85, SADDLE_Q2Q1,  0, 0, 0},
  {"q2q1_3_20",     SADDLE, 20,     3, 0,  86, SADDLE_Q2Q1,  0, 0, 0},
  {"rmat_16",       RMAT,   16,     0, 24, 87, 0,            0, 0, 0},
  {"rmat_22",       RMAT,   22,     0, 16, 88, 0,            0, 0, 0},
};
#undef MESHES
#define NMESHES ((int)(sizeof(meshes) / sizeof(meshes[0])))

/*
  Number k of the matrices that are drawn (spmv -drawn): sizes, shapes, lengths of rows, blocks and how far entries lie from the diagonal all by chance, even in their logarithms. They fill
  the space between the matrices of the lists, each of which is alone of its kind. 10^6 to 5 10^7 entries, from the two thousandth on 5 10^4 to 3 10^6.
*/
static inline void SyntheticDrawn(int k, Synthetic *s, char name[64])
{
  static const struct {
    const char   *word;
    SyntheticKind kind;
  } kinds[] = {
    {"random",   RANDOM  },
    {"band",     RANDOM  },
    {"fem",      RANDOM  },
    {"constant", UNIFORM },
    {"graph",    POWERLAW},
    {"text",     TEXT    },
    {"stencil",  STENCIL7},
    {"uneven",   RANDOM  }
  };
  static const int blocks[] = {2, 3, 4, 6, 8, 2, 3, 4};
  const int        which    = k % 8;
  double           u[6];

  for (int q = 0; q < 6; q++) u[q] = SyntheticUniform(271, (uint64_t)k, (uint64_t)q);
  const double entries = k < 2000 ? 1e6 * pow(50, u[0]) : 5e4 * pow(60, u[0]), mean = 3 * pow(which == 4 || which == 7 ? 8 : 50, u[1]);
  const int    m = (int)(entries / mean) / 24 * 24, any = which == 0 || which == 3 || which == 5;
  const int    n = PetscMax(24, any ? (int)(m * pow(10, 2 * u[2] - 1.5)) : m);

  *s = (Synthetic){name, kinds[which].kind, m, n, mean, 1000 + (uint64_t)k, 0, 0, 0, 0};
  if (which == 1 || which == 2 || (which >= 6 && u[3] < 0.5)) s->reach = (int)PetscMax(4 * mean, m * pow(10, -4 + 3.5 * u[4]));
  if (which == 2) {
    s->block = blocks[(int)(8 * u[5])];
    s->mean  = mean * (mean < 3 * s->block ? s->block : 1);
    s->m = s->n = PetscMax(240, (int)(entries / s->mean) / 24 * 24);
    s->reach    = PetscMax(8, PetscMin(s->reach, s->m) / s->block);
  }
  if (which == 6) { /* stencils of 5, 7 and 27 points, of one to four unknowns */
    const int points = u[1] < 0.25 ? 5 : u[1] < 0.6 ? 7 : 27;

    s->kind  = points == 5 ? STENCIL5 : points == 7 ? STENCIL7 : STENCIL27;
    s->n     = u[2] < 0.6 ? 1 : 2 + (int)(3 * u[3]);
    s->m     = (int)pow(entries / points / s->n / s->n, points == 5 ? 0.5 : 1.0 / 3);
    s->mean  = points * s->n;
    s->reach = 0;
  }
  if (which == 7) {
    s->dense   = 1 + (int)(30 * u[3] * u[3]);
    s->longest = (int)(m * pow(10, -2 + 1.7 * u[4]));
  }
  (void)snprintf(name, 64, "%s_drawn%d", kinds[which].word, k);
}

static inline int SyntheticIsMesh(const Synthetic *s)
{
  return s->kind == MESH2 || s->kind == MESH3 || s->kind == PLATE || s->kind == MESH2Q || s->kind == MESH3Q;
}

static inline int SyntheticIsStencil(const Synthetic *s)
{
  return s->kind == STENCIL5 || s->kind == STENCIL7 || s->kind == STENCIL27;
}

static inline Saddle SyntheticSaddle(const Synthetic *s)
{
  return (Saddle){(SaddleKind)s->block, s->m, s->n};
}

/* Is row r dense? Dense rows are evenly spaced */
static inline int SyntheticIsDense(const Synthetic *s, int r)
{
  return s->dense && r % (s->m / s->dense) == s->m / s->dense / 2;
}

/* Number of random entries, or blocks of entries, for row r, without dense columns */
static inline int SyntheticRandomLength(const Synthetic *s, int r)
{
  const int    b = PetscMax(1, s->block);
  const double u = SyntheticUniform(s->seed, (uint64_t)(r / b), 0), mean = s->mean / b;

  if (s->kind == FULL) return s->n;
  if (SyntheticIsDense(s, r)) return s->longest;
  if (s->kind == UNIFORM || s->kind == SAME) return (int)mean;
  if (s->kind == RANDOM) return 1 + (int)((2 * mean - 1) * u);
  if (s->kind == TEXT) return (int)PetscMax(1, mean * (0.3 + 1.4 * u));
  return (int)PetscMax(1, PetscMin(s->n / 4.0, 0.5 * mean / pow(1 - u, 1 / 1.6)));
}

static int SyntheticLess(const void *a, const void *b)
{
  return *(const int32_t *)a < *(const int32_t *)b ? -1 : *(const int32_t *)a > *(const int32_t *)b;
}

/* Columns of row r, increasing; returns their number */
static inline int SyntheticRow(const Synthetic *s, int r, int32_t *col)
{
  int count = 0;

  if (SyntheticIsStencil(s)) {
    const int k = s->m, b = s->n, p = r / b, x = p % k, y = p / k % k, z = s->kind == STENCIL5 ? 0 : p / k / k, edges = s->kind == STENCIL5 ? 1 : k;

    for (int dz = -1; dz <= 1; dz++)
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
          if (s->kind != STENCIL27 && abs(dx) + abs(dy) + abs(dz) > 1) continue;
          if (x + dx < 0 || y + dy < 0 || z + dz < 0 || x + dx >= k || y + dy >= k || z + dz >= edges) continue;
          for (int q = 0; q < b; q++) col[count++] = (((z + dz) * k + y + dy) * k + x + dx) * b + q;
        }
  } else if (s->kind == SADDLE) {
    const Saddle saddle = SyntheticSaddle(s);

    count = SaddleRow(&saddle, r, col);
    qsort(col, (size_t)count, sizeof(*col), SyntheticLess);
  } else if (s->kind == FULL) {
    for (; count < s->n; count++) col[count] = count;
  } else {
    const int b = PetscMax(1, s->block), R = r / b, columns = s->n / b, dense = SyntheticIsDense(s, r);
    int       length = SyntheticRandomLength(s, r), last = -1;

    for (int q = 0; q < length; q++) {
      const double u = SyntheticUniform(s->seed, s->kind == SAME ? 0 : (uint64_t)R, (uint64_t)q + 1);

      if (s->reach && !dense) col[q] = (int32_t)PetscMax(0, PetscMin(columns - 1, (int64_t)R * s->n / s->m + (int64_t)((2 * u - 1) * s->reach)));
      else col[q] = PetscMin(columns - 1, (int32_t)(columns * (s->kind == TEXT ? u * u * u : u)));
    }
    if (s->reach && !dense) col[0] = (int32_t)PetscMin(columns - 1, (int64_t)R * s->n / s->m);
    for (int q = 0; q < s->dense && !dense; q++)
      if (SyntheticUniform(s->seed + 1, (uint64_t)r, (uint64_t)q) * s->m < s->longest) col[length++] = (int32_t)((int64_t)columns * (2 * q + 1) / (2 * s->dense));
    qsort(col, (size_t)length, sizeof(*col), SyntheticLess);
    for (int q = 0; q < length; q++)
      if (col[q] != last) last = col[count++] = col[q];
    for (int q = count; b > 1 && q-- > 0;)
      for (int w = b; w-- > 0;) col[q * b + w] = col[q] * b + w;
    count *= b;
  }
  return count;
}

/* Stencils have the values of the discrete Laplacian; stencils of blocks, and all other matrices, have random ones */
static inline double SyntheticValue(const Synthetic *s, int r, int k, int32_t col)
{
  if (s->seed) return SyntheticUniform(s->seed + 100, (uint64_t)r, (uint64_t)k) - 0.3;
  if (col != r) return -1;
  return s->kind == STENCIL5 ? 4 : s->kind == STENCIL7 ? 6 : 26;
}

static inline PetscErrorCode SyntheticMesh(const Synthetic *s, int *m, int **i, PetscInt **j, PetscScalar **a)
{
  const double edge[3] = {1, 1, s->kind == PLATE ? 0.12 : 1};
  Mesh         M;

  PetscFunctionBeginUser;
  PetscCall(MeshCreate(s->kind == MESH2 || s->kind == MESH2Q ? 2 : 3, s->m, edge, s->seed, &M));
  if (s->kind == MESH2Q || s->kind == MESH3Q) {
    QuadraticMesh Q;

    PetscCall(QuadraticCreate(&M, &Q));
    PetscCall(QuadraticMatrix(&Q, (MeshOrder)s->block, m, i, j, a));
    PetscCall(QuadraticDestroy(&Q));
  } else PetscCall(MeshMatrix(&M, (MeshOrder)s->block, s->n, m, i, j, a));
  PetscCall(MeshDestroy(&M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* shrink divides the edges of cubes and squares, and its square the rows (and most columns) of the others: for trying the program */
static inline PetscErrorCode SyntheticCreate(const Synthetic *which, int shrink, int *m, int *n, int32_t **i, PetscInt **j, PetscScalar **a)
{
  Synthetic       t = *which, *s = &t;
  const PetscBool saddle = (PetscBool)(s->kind == SADDLE), grid = (PetscBool)(saddle || SyntheticIsStencil(s)), mesh = (PetscBool)SyntheticIsMesh(s);
  int             longest = saddle ? SADDLE_LONGEST : grid ? 27 * s->n : 0;
  int64_t         nnz     = 0;

  PetscFunctionBeginUser;
  if (s->kind == RMAT) {
    const int levels = PetscMax(4, s->m - (int)(2 * log2(shrink)));

    PetscCall(RMATCreate(levels, (int64_t)s->mean << levels, s->seed, m, i, j, a));
    *n = *m;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (shrink > 1) {
    s->m = PetscMax(3, s->m / (grid ? shrink : shrink * shrink));
    if (!grid && !mesh && s->n > 1000) s->n = PetscMax(100, s->n / (shrink * shrink));
    s->reach   = PetscMin(s->reach, PetscMax(1, s->m / 10));
    s->longest = PetscMin(s->longest, s->n / 2);
  }
  if (mesh) {
    PetscCall(SyntheticMesh(s, m, i, j, a));
    *n = *m;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (saddle) {
    const Saddle of = SyntheticSaddle(s);

    *m = SaddleRows(&of);
  } else *m = grid ? s->m * s->m * (s->kind == STENCIL5 ? 1 : s->m) * s->n : s->m;
  *n = grid ? *m : s->n;
#pragma omp parallel for reduction(max : longest) if (!grid)
  for (int r = 0; r < (grid ? 0 : *m); r++) longest = PetscMax(longest, (SyntheticRandomLength(s, r) + s->dense) * PetscMax(1, s->block));
  PetscCall(PetscMalloc1(*m + 1, i));
  (*i)[0] = 0;
#pragma omp parallel
  {
    int32_t *col = (int32_t *)malloc(sizeof(int32_t) * (size_t)longest);

#pragma omp for schedule(dynamic, 1024)
    for (int r = 0; r < *m; r++) (*i)[r + 1] = SyntheticRow(s, r, col);
    free(col);
  }
  for (int r = 0; r < *m; r++) nnz += (*i)[r + 1];
  for (int r = 0; r < *m; r++) (*i)[r + 1] += (*i)[r];
  PetscCall(PetscMalloc2(nnz, j, nnz, a));
#pragma omp parallel
  {
    int32_t *col = (int32_t *)malloc(sizeof(int32_t) * (size_t)longest);

#pragma omp for schedule(dynamic, 1024)
    for (int r = 0; r < *m; r++) {
      const int length = SyntheticRow(s, r, col);

      for (int k = 0; k < length; k++) {
        (*j)[(*i)[r] + k] = col[k];
        (*a)[(*i)[r] + k] = SyntheticValue(s, r, k, col[k]);
      }
    }
    free(col);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SyntheticDestroy(int32_t **i, PetscInt **j, PetscScalar **a)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree(*i));
  PetscCall(PetscFree2(*j, *a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
