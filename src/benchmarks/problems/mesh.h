#pragma once

/*
  Unstructured meshes: the Delaunay mesh of random points in a square or a box, with the stiffness matrix plus lumped mass of linear elements.

  Each point finds its own cell of the Voronoi diagram. The corners of a cell are the centres of the spheres through the simplices of the point. The cell begins as a large box. The planes half way to
  neighbours, the nearest first, cut the box until no other point can reach it. A grid of cells of about two points finds neighbours. No point waits for another, so threads
  share the points, and a row of the matrix is complete when its point is. The time is O(n) for points drawn evenly, but for the order of the numbers.

  The mesh leaves out simplices whose sphere has its centre further out than MARGIN mean distances: flat simplices at the hull of random points.
  Two points can disagree on a simplex only if five points (four in the plane) lie on one sphere to within rounding. Random points do not.

  Papers: C. H. Rycroft, VORO++, Chaos 19, 2009 (a cell at a time, on a grid); N. Ray et al., Meshless Voronoi on the GPU, ACM Trans. Graph. 37, 2018 (corners as triples of planes).
*/
#include "meshorder.h"
#include "random.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define MESH_MARGIN 2.0   /* mean distances of points between their box and the first box of a cell */
#define MESH_PLANES 256   /* of a cell, with those cut off later */
#define MESH_NEAR   16384 /* points in a shell of grid cells */

typedef struct {
  int      d, n;
  double   edge[3]; /* of the box */
  double  *x;       /* d numbers a point, along Hilbert's curve */
  int32_t *drawn;   /* the number by which chance drew each point */
  int      cells[3];
  double   width; /* of the grid's cells, at least, */
  double   margin;
  int32_t *start, *point; /* and who is in each */
  uint64_t seed;
} Mesh;

static inline void MeshCellOf(const Mesh *M, const double x[], int cell[])
{
  for (int i = 0; i < M->d; i++) cell[i] = PetscMin(M->cells[i] - 1, (int)(x[i] / M->edge[i] * M->cells[i]));
}
static inline int64_t MeshCellNumber(const Mesh *M, const int cell[])
{
  return M->d == 2 ? (int64_t)cell[1] * M->cells[0] + cell[0] : ((int64_t)cell[2] * M->cells[1] + cell[1]) * M->cells[0] + cell[0];
}

/* The points, sorted along Hilbert's curve */
static inline PetscErrorCode MeshPoints(Mesh *M)
{
  const int bits = M->d == 2 ? 15 : 11;
  uint64_t *key;
  double   *x, most = PetscMax(M->edge[0], PetscMax(M->edge[1], M->edge[2]));

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(M->n, &key, (size_t)M->n * (size_t)M->d, &x));
  PetscCall(PetscMalloc2((size_t)M->n * (size_t)M->d, &M->x, M->n, &M->drawn));
#pragma omp parallel for
  for (int p = 0; p < M->n; p++) {
    uint32_t cell[3] = {0, 0, 0};

    for (int i = 0; i < M->d; i++) {
      x[(int64_t)p * M->d + i] = M->edge[i] * SyntheticUniform(M->seed, (uint64_t)p, (uint64_t)i);
      cell[i]                  = (uint32_t)(x[(int64_t)p * M->d + i] / most * (1 << bits));
    }
    key[p] = MeshHilbert(cell, M->d, bits);
  }
  PetscCall(MeshSort(M->n, key, bits * M->d, M->drawn));
#pragma omp parallel for
  for (int p = 0; p < M->n; p++) memcpy(M->x + (int64_t)p * M->d, x + (int64_t)M->drawn[p] * M->d, sizeof(double) * (size_t)M->d);
  PetscCall(PetscFree2(key, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MeshGrid(Mesh *M)
{
  double  volume = 1, spacing;
  int64_t all    = 1;

  PetscFunctionBeginUser;
  for (int i = 0; i < M->d; i++) volume *= M->edge[i];
  spacing   = pow(volume / M->n, 1.0 / M->d);
  M->margin = MESH_MARGIN * spacing;
  M->width  = HUGE_VAL;
  for (int i = 0; i < M->d; i++) {
    M->cells[i] = PetscMax(1, (int)(M->edge[i] / (spacing * pow(2, 1.0 / M->d))));
    M->width    = PetscMin(M->width, M->edge[i] / M->cells[i]);
    all *= M->cells[i];
  }
  PetscCall(PetscMalloc1(all + 2, &M->start));
  PetscCall(PetscMalloc1(M->n, &M->point));
  PetscCall(PetscArrayzero(M->start, all + 2));
  for (int turn = 0; turn < 2; turn++) {
    for (int p = 0; p < M->n; p++) {
      int     cell[3];
      int64_t c;

      MeshCellOf(M, M->x + (int64_t)p * M->d, cell);
      c = MeshCellNumber(M, cell);
      if (turn) M->point[M->start[c + 1]++] = p;
      else M->start[c + 2]++;
    }
    for (int64_t c = 0; c < all && !turn; c++) M->start[c + 2] += M->start[c + 1];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The cell of a point, which is the origin: planes n x = off, and corners, each where d planes meet */
typedef struct {
  double n[MESH_PLANES][3], off[MESH_PLANES];
  int    id[MESH_PLANES], planes; /* the point behind a plane, -1: of the box */
  struct {
    int    a[3]; /* planes, in the plane the two in their turn */
    double v[3];
  } corner[MESH_PLANES];
  int    corners, full; /* full: there was no room */
  double reach;         /* the square of how far the furthest corner is */
} MeshCell;

static inline void MeshCross(const double a[], const double b[], double c[])
{
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}
static inline double MeshDot(const double a[], const double b[])
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* One more corner; in the plane c is none */
static inline void MeshCorner(MeshCell *C, int d, int a, int b, int c)
{
  const int q = C->corners++;
  double    bc[3], ca[3], ab[3], *v = C->corner[q].v;

  C->corner[q].a[0] = a;
  C->corner[q].a[1] = b;
  C->corner[q].a[2] = c;
  if (d == 2) {
    const double det = C->n[a][0] * C->n[b][1] - C->n[a][1] * C->n[b][0];

    v[0] = (C->off[a] * C->n[b][1] - C->off[b] * C->n[a][1]) / det;
    v[1] = (C->n[a][0] * C->off[b] - C->n[b][0] * C->off[a]) / det;
    v[2] = 0;
    return;
  }
  MeshCross(C->n[b], C->n[c], bc);
  MeshCross(C->n[c], C->n[a], ca);
  MeshCross(C->n[a], C->n[b], ab);
  for (int i = 0; i < 3; i++) v[i] = (C->off[a] * bc[i] + C->off[b] * ca[i] + C->off[c] * ab[i]) / MeshDot(C->n[a], bc);
}

/* The large box around all */
static inline void MeshCellBegin(const Mesh *M, const double x[], MeshCell *C)
{
  static const int corner2[4][2] = {
    {1, 3},
    {3, 0},
    {0, 2},
    {2, 1}
  };

  memset(C->n, 0, sizeof(C->n[0]) * 6);
  C->corners = 0;
  C->planes  = 2 * M->d;
  for (int i = 0; i < M->d; i++)
    for (int s = 0; s < 2; s++) { /* plane 2 i is the lower one */
      C->n[2 * i + s][i] = s ? 1 : -1;
      C->off[2 * i + s]  = s ? M->edge[i] + M->margin - x[i] : x[i] + M->margin;
      C->id[2 * i + s]   = -1;
    }
  if (M->d == 2)
    for (int k = 0; k < 4; k++) MeshCorner(C, 2, corner2[k][0], corner2[k][1], -1);
  else
    for (int k = 0; k < 8; k++) { /* the three planes in turn as seen from outside */
      const int a = k & 1, b = 2 + (k >> 1 & 1), c = 4 + (k >> 2 & 1);

      if ((k ^ k >> 1 ^ k >> 2) & 1) MeshCorner(C, 3, a, b, c);
      else MeshCorner(C, 3, a, c, b);
    }
  C->reach = HUGE_VAL;
  C->full  = 0;
}

/* Cuts off the part beyond the plane half way to a point; each pair of neighbouring planes along the cut gets a corner with it */
static inline void MeshCut(MeshCell *C, int d, int id, const double to[])
{
  const double off = 0.5 * MeshDot(to, to);
  const int    P   = C->planes;
  int          from[MESH_PLANES], next[MESH_PLANES], edges = 0, kept = 0;

  if (0.5 * off > C->reach) return;
  for (int q = 0; q < C->corners; q++) {
    if (MeshDot(to, C->corner[q].v) <= off) {
      C->corner[kept++] = C->corner[q];
      continue;
    }
    for (int e = 0; e < d; e++) { /* an edge that two corners share goes with them */
      const int a = C->corner[q].a[e], b = d == 2 ? -1 : C->corner[q].a[(e + 1) % 3];
      int       k = 0;

      while (k < edges && !(d == 2 ? from[k] == a : from[k] == b && next[k] == a)) k++;
      if (k < edges) {
        edges--;
        from[k] = from[edges];
        next[k] = next[edges];
      } else {
        from[edges]   = a;
        next[edges++] = d == 2 ? e : b;
      }
    }
  }
  if (!edges) return;
  if (P == MESH_PLANES - 1 || kept + edges > MESH_PLANES) {
    C->full = 1;
    return;
  }
  memcpy(C->n[P], to, sizeof(C->n[P]));
  C->off[P]  = off;
  C->id[P]   = id;
  C->planes  = P + 1;
  C->corners = kept;
  for (int k = 0; k < edges; k++) {
    if (d == 3) MeshCorner(C, 3, from[k], next[k], P);
    else if (next[k] == 0) MeshCorner(C, 2, from[k], P, -1);
    else MeshCorner(C, 2, P, from[k], -1);
  }
  C->reach = 0;
  for (int q = 0; q < C->corners; q++) C->reach = PetscMax(C->reach, MeshDot(C->corner[q].v, C->corner[q].v));
}

typedef struct {
  double far; /* squared */
  int    p;
} MeshNear;

/* Points in the grid cells at distance `shell` with planes nearer than `reach`, the nearest first */
static inline int MeshShell(const Mesh *M, int p, const int cell[], int shell, double reach, MeshNear near[], int *full)
{
  const double *x = M->x + (int64_t)p * M->d;
  int           n = 0, low[3] = {0, 0, 0}, high[3] = {0, 0, 0};

  for (int i = 0; i < M->d; i++) {
    low[i]  = PetscMax(0, cell[i] - shell);
    high[i] = PetscMin(M->cells[i] - 1, cell[i] + shell);
  }
  for (int cz = low[2]; cz <= high[2]; cz++)
    for (int cy = low[1]; cy <= high[1]; cy++) {
      const PetscBool all = (PetscBool)(abs(cy - cell[1]) == shell || (M->d == 3 && abs(cz - cell[2]) == shell));

      for (int cx = low[0]; cx <= high[0]; cx++) {
        const int     at[3] = {cx, cy, cz};
        const int64_t c     = MeshCellNumber(M, at);

        if (!all && abs(cx - cell[0]) != shell) continue;
        for (int32_t k = M->start[c]; k < M->start[c + 1]; k++) {
          const int     q = M->point[k];
          const double *y = M->x + (int64_t)q * M->d;
          MeshNear      t = {0, q};
          int           w = n;

          for (int i = 0; i < M->d; i++) t.far += (y[i] - x[i]) * (y[i] - x[i]);
          if (q == p || t.far > 4 * reach) continue;
          if (n == MESH_NEAR) {
            *full = 1;
            return n;
          }
          for (; w > 0 && near[w - 1].far > t.far; w--) near[w] = near[w - 1];
          near[w] = t;
          n++;
        }
      }
    }
  return n;
}

static inline void MeshCellMake(const Mesh *M, int p, MeshCell *C, MeshNear near[])
{
  const double *x       = M->x + (int64_t)p * M->d;
  int           cell[3] = {0, 0, 0};

  MeshCellBegin(M, x, C);
  MeshCellOf(M, x, cell);
  for (int shell = 0;; shell++) {
    const int n    = MeshShell(M, p, cell, shell, C->reach, near, &C->full);
    PetscBool more = PETSC_FALSE;

    for (int k = 0; k < n && near[k].far <= 4 * C->reach; k++) {
      double to[3] = {0, 0, 0};

      for (int i = 0; i < M->d; i++) to[i] = M->x[(int64_t)near[k].p * M->d + i] - x[i];
      MeshCut(C, M->d, near[k].p, to);
    }
    /* the cells not yet searched are at least so far away */
    for (int i = 0; i < M->d; i++) more = (PetscBool)(more || cell[i] - shell > 0 || cell[i] + shell < M->cells[i] - 1);
    if (!more || shell * shell * M->width * M->width > 4 * C->reach) return;
  }
}

/* Entries of a row: columns and values, room for MESH_PLANES */
typedef struct {
  int     n;
  int32_t col[MESH_PLANES];
  double  val[MESH_PLANES];
} MeshRow;

/* Is corner q of a cell a simplex, all of whose planes are points'? */
static inline PetscBool MeshIsSimplex(const MeshCell *C, int d, int q)
{
  PetscBool real = PETSC_TRUE;

  for (int e = 0; e < d; e++) real = (PetscBool)(real && C->id[C->corner[q].a[e]] >= 0);
  return real;
}

/* The determinant of the simplex of the origin and d planes' points, and as many times the gradients of its barycentric coordinates, that of the origin first */
static inline double MeshGradients(const MeshCell *C, int d, const int a[], double g[4][3])
{
  const double *u = C->n[a[0]], *v = C->n[a[1]];
  double        det;

  if (d == 2) {
    det     = u[0] * v[1] - u[1] * v[0];
    g[1][0] = v[1];
    g[1][1] = -v[0];
    g[2][0] = -u[1];
    g[2][1] = u[0];
    g[1][2] = g[2][2] = 0;
  } else {
    MeshCross(v, C->n[a[2]], g[1]);
    MeshCross(C->n[a[2]], u, g[2]);
    MeshCross(u, v, g[3]);
    det = MeshDot(u, g[1]);
  }
  for (int i = 0; i < 3; i++) {
    g[0][i] = 0;
    for (int k = 1; k <= d; k++) g[0][i] -= g[k][i];
  }
  return det;
}

/* Adds to the row of the origin the simplex with d planes' points: stiffness, and its share of the mass */
static inline void MeshSimplex(const MeshCell *C, int d, const int a[], int own, const int slot[], MeshRow *row)
{
  double       g[4][3];
  const double det = MeshGradients(C, d, a, g), factor = 1 / (fabs(det) * (d == 2 ? 2 : 6)); /* volume / det^2 */

  if (det == 0) return;
  for (int k = 0; k < d; k++) row->val[slot[a[k]]] += factor * MeshDot(g[0], g[k + 1]);
  row->val[own] += factor * MeshDot(g[0], g[0]) + fabs(det) / (d == 2 ? 6 : 24);
}

/* Row p of the matrix; columns rise */
static inline void MeshRowMake(const Mesh *M, int p, MeshCell *C, MeshNear near[], MeshRow *row)
{
  int slot[MESH_PLANES], order[MESH_PLANES] = {0}, n = 0;

  MeshCellMake(M, p, C, near);
  for (int k = 0; k < C->planes; k++) slot[k] = -1;
  for (int q = 0; q < C->corners; q++) { /* planes of simplices, sorted by their points */
    const int *a = C->corner[q].a;

    for (int e = 0; e < M->d && MeshIsSimplex(C, M->d, q); e++) {
      int w = n;

      if (slot[a[e]] >= 0) continue;
      slot[a[e]] = 0;
      for (; w > 0 && C->id[order[w - 1]] > C->id[a[e]]; w--) order[w] = order[w - 1];
      order[w] = a[e];
      n++;
    }
  }
  int own = 0;
  while (own < n && C->id[order[own]] < p) own++;
  row->n        = n + 1;
  row->col[own] = p;
  for (int k = 0; k < n; k++) {
    slot[order[k]]           = k + (k >= own);
    row->col[slot[order[k]]] = C->id[order[k]];
  }
  for (int k = 0; k <= n; k++) row->val[k] = 0;
  for (int q = 0; q < C->corners; q++)
    if (MeshIsSimplex(C, M->d, q)) MeshSimplex(C, M->d, C->corner[q].a, own, slot, row);
}

static inline PetscErrorCode MeshCreate(int d, int n, const double edge[], uint64_t seed, Mesh *M)
{
  PetscFunctionBeginUser;
  memset(M, 0, sizeof(*M));
  M->d    = d;
  M->n    = n;
  M->seed = seed;
  for (int i = 0; i < 3; i++) {
    M->edge[i]  = i < d ? edge[i] : 0;
    M->cells[i] = 1;
  }
  PetscCall(MeshPoints(M));
  PetscCall(MeshGrid(M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MeshDestroy(Mesh *M)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree2(M->x, M->drawn));
  PetscCall(PetscFree(M->start));
  PetscCall(PetscFree(M->point));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define MESH_CHUNK 2048 /* points that a thread takes at a time */

/* Entries of the rows of a chunk */
typedef struct {
  size_t   n, room;
  int32_t *col;
  double  *val;
} MeshChunk;

static inline void MeshChunkGrow(MeshChunk *to, size_t more)
{
  if (to->n + more <= to->room) return;
  to->room = 2 * to->room + 20 * MESH_CHUNK + more;
  to->col  = (int32_t *)realloc(to->col, sizeof(int32_t) * to->room);
  to->val  = (double *)realloc(to->val, sizeof(double) * to->room);
}

/* Adds the rows of point p, and says how long each is; 0: there was no room */
typedef int (*MeshRows)(const void *ctx, int p, MeshCell *C, MeshNear near[], MeshChunk *to, int64_t length[]);

/* All rows; first: the first row of each point, and their number. begin, col and val are to be freed with free() */
static inline PetscErrorCode MeshAssembleRows(const Mesh *M, const int32_t first[], MeshRows make, const void *ctx, int64_t **begin, int32_t **col, double **val)
{
  const int  chunks = (M->n + MESH_CHUNK - 1) / MESH_CHUNK, rows = first ? first[M->n] : M->n;
  MeshChunk *chunk = (MeshChunk *)calloc((size_t)chunks, sizeof(*chunk));
  int64_t   *b     = (int64_t *)malloc(sizeof(*b) * ((size_t)rows + 1));
  int        full  = 0;

  PetscFunctionBeginUser;
  b[0] = 0;
#pragma omp parallel
  {
    MeshCell *C    = (MeshCell *)malloc(sizeof(*C));
    MeshNear *near = (MeshNear *)malloc(sizeof(*near) * MESH_NEAR);

#pragma omp for schedule(dynamic, 1) reduction(| : full)
    for (int c = 0; c < chunks; c++)
      for (int p = c * MESH_CHUNK; p < PetscMin(M->n, (c + 1) * MESH_CHUNK); p++) full |= !(*make)(ctx, p, C, near, &chunk[c], b + 1 + (first ? first[p] : p));
    free(C);
    free(near);
  }
  PetscCheck(!full, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A point of the mesh has more neighbours than %d planes and %d points near by", MESH_PLANES, MESH_NEAR);
  for (int r = 0; r < rows; r++) b[r + 1] += b[r];
  *begin = b;
  *col   = (int32_t *)malloc(sizeof(int32_t) * (size_t)b[rows]);
  *val   = (double *)malloc(sizeof(double) * (size_t)b[rows]);
#pragma omp parallel for schedule(dynamic, 1)
  for (int c = 0; c < chunks; c++) {
    const int64_t from = b[first ? first[c * MESH_CHUNK] : c * MESH_CHUNK];

    memcpy(*col + from, chunk[c].col, sizeof(int32_t) * chunk[c].n);
    memcpy(*val + from, chunk[c].val, sizeof(double) * chunk[c].n);
    free(chunk[c].col);
    free(chunk[c].val);
  }
  free(chunk);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline int MeshLinearRow(const void *mesh, int p, MeshCell *C, MeshNear near[], MeshChunk *to, int64_t length[])
{
  MeshRow row;

  MeshRowMake((const Mesh *)mesh, p, C, near, &row);
  MeshChunkGrow(to, (size_t)row.n);
  memcpy(to->col + to->n, row.col, sizeof(int32_t) * (size_t)row.n);
  memcpy(to->val + to->n, row.val, sizeof(double) * (size_t)row.n);
  to->n += (size_t)row.n;
  length[0] = row.n;
  return !C->full;
}

/* All rows of linear elements, points numbered along Hilbert's curve */
static inline PetscErrorCode MeshAssemble(const Mesh *M, int64_t **begin, int32_t **col, double **val)
{
  PetscFunctionBeginUser;
  PetscCall(MeshAssembleRows(M, NULL, MeshLinearRow, M, begin, col, val));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define MESH_COUPLED 0.25 /* between a point's unknowns, relative to their diagonal */

/* A matrix in an order, each of g's points with so many unknowns, coupled with all of the points next to it; to be freed as SyntheticCreate() says */
static inline PetscErrorCode MeshOrdered(const MeshGraph *g, const double val[], MeshOrder order, const int32_t drawn[], int unknowns, int *m, int32_t **i, PetscInt **j, PetscScalar **a)
{
  int32_t *old, *now;
  int64_t  longest = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(g->n, &old, g->n, &now));
  PetscCall(MeshOrderGet(g, order, drawn, old));
  for (int r = 0; r < g->n; r++) now[old[r]] = r;
  PetscCheck((int64_t)unknowns * unknowns * g->begin[g->n] < INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "A mesh of %d points with %d unknowns each has more entries than 32-bit integers count", g->n, unknowns);
  *m = g->n * unknowns;
  PetscCall(PetscMalloc1(*m + 1, i));
  (*i)[0] = 0;
  for (int r = 0; r < *m; r++) (*i)[r + 1] = (*i)[r] + (int32_t)(unknowns * (g->begin[old[r / unknowns] + 1] - g->begin[old[r / unknowns]]));
  for (int r = 0; r < g->n; r++) longest = PetscMax(longest, g->begin[r + 1] - g->begin[r]);
  PetscCall(PetscMalloc2((*i)[*m], j, (*i)[*m], a));
#pragma omp parallel
  {
    int *sorted = (int *)malloc(sizeof(int) * (size_t)PetscMax(1, longest));

#pragma omp for schedule(dynamic, 1024)
    for (int r = 0; r < g->n; r++) {
      const int64_t b = g->begin[old[r]];
      const int     n = (int)(g->begin[old[r] + 1] - b);

      for (int k = 0; k < n; k++) {
        int w = k;

        for (; w > 0 && now[g->to[b + sorted[w - 1]]] > now[g->to[b + k]]; w--) sorted[w] = sorted[w - 1];
        sorted[w] = k;
      }
      for (int u = 0; u < unknowns; u++)
        for (int k = 0; k < n; k++)
          for (int v = 0; v < unknowns; v++) {
            const int64_t e = (*i)[r * unknowns + u] + (int64_t)k * unknowns + v;

            (*j)[e] = (PetscInt)now[g->to[b + sorted[k]]] * unknowns + v;
            (*a)[e] = val[b + sorted[k]] * (u == v ? 1 : MESH_COUPLED);
          }
    }
    free(sorted);
  }
  PetscCall(PetscFree2(old, now));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MeshMatrix(const Mesh *M, MeshOrder order, int unknowns, int *m, int32_t **i, PetscInt **j, PetscScalar **a)
{
  int64_t *begin = NULL;
  int32_t *col   = NULL;
  double  *val   = NULL;

  PetscFunctionBeginUser;
  PetscCall(MeshAssemble(M, &begin, &col, &val));
  PetscCall(MeshOrdered(&(MeshGraph){M->n, M->d, M->x, begin, col}, val, order, M->drawn, unknowns, m, i, j, a));
  free(begin);
  free(col);
  free(val);
  PetscFunctionReturn(PETSC_SUCCESS);
}
