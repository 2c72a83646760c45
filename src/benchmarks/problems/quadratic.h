#pragma once

/*
  Quadratic elements on the Delaunay meshes of mesh.h, stiffness matrix plus mass matrix: an unknown at each point and one in the middle of each edge.

  An edge belongs to the end with the lower number. The edge's unknown follows the unknown of this end, in the order of the other ends. Each simplex of an edge is a simplex of its ends. So the
  cell of a point is enough for the rows of its own unknowns.
*/
#include "element.h"
#include "mesh.h"

typedef struct {
  const Mesh *M;
  int         n;     /* unknowns */
  int64_t    *begin; /* the linear mesh: neighbours of points, rising, and the point */
  int32_t    *to;
  int32_t    *first; /* unknown of each point, and n */
  double     *x;     /* where the unknowns are */
} QuadraticMesh;

/* The unknown in the middle between points a and b, or for a = b the point's; -1 if there is no such edge */
static inline int QuadraticNumber(const QuadraticMesh *Q, int a, int b)
{
  const int low = PetscMin(a, b), high = PetscMax(a, b);
  int64_t   from = Q->begin[low], end = Q->begin[low + 1];

  while (from < end) {
    const int64_t middle = (from + end) / 2;

    if (Q->to[middle] < high) from = middle + 1;
    else end = middle;
  }
  if (from == Q->begin[low + 1] || Q->to[from] != high) return -1;
  return Q->first[low + 1] - (int)(Q->begin[low + 1] - from);
}

static inline PetscErrorCode QuadraticCreate(const Mesh *M, QuadraticMesh *Q)
{
  double *val;
  int64_t unknowns;

  PetscFunctionBeginUser;
  Q->M = M;
  PetscCall(MeshAssemble(M, &Q->begin, &Q->to, &val));
  free(val);
  unknowns = (Q->begin[M->n] + M->n) / 2;
  PetscCheck(unknowns < INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "A mesh of %d points has more points and edges than 32-bit integers count", M->n);
  PetscCall(PetscMalloc2(M->n + 1, &Q->first, (size_t)unknowns * (size_t)M->d, &Q->x));
  Q->n = 0;
  for (int p = 0; p < M->n; p++) {
    Q->first[p] = Q->n;
    for (int64_t k = Q->begin[p]; k < Q->begin[p + 1]; k++) {
      if (Q->to[k] < p) continue;
      for (int i = 0; i < M->d; i++) Q->x[(int64_t)Q->n * M->d + i] = 0.5 * (M->x[(int64_t)p * M->d + i] + M->x[(int64_t)Q->to[k] * M->d + i]);
      Q->n++;
    }
  }
  Q->first[M->n] = Q->n;
  PetscCheck(Q->n == unknowns, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Points of the mesh do not agree on its edges");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode QuadraticDestroy(QuadraticMesh *Q)
{
  PetscFunctionBeginUser;
  free(Q->begin);
  free(Q->to);
  PetscCall(PetscFree2(Q->first, Q->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  int32_t row, col;
  int     turn;
  double  val;
} QuadraticTerm;

static int QuadraticLess(const void *a, const void *b)
{
  const QuadraticTerm *s = (const QuadraticTerm *)a, *t = (const QuadraticTerm *)b;

  if (s->row != t->row) return s->row < t->row ? -1 : 1;
  if (s->col != t->col) return s->col < t->col ? -1 : 1;
  return s->turn - t->turn; /* sums are the same for any sort */
}

/* Terms of a simplex of point p for the unknowns that belong to p; returns their number, or -1 if an edge is not there */
static inline int QuadraticSimplex(const QuadraticMesh *Q, int p, const MeshCell *C, const int a[], QuadraticTerm term[])
{
  const int d = Q->M->d, size = ElementSize(d);
  double    g[4][3], K[ELEMENT_MOST][ELEMENT_MOST], det = MeshGradients(C, d, a, g), volume = fabs(det) / (d == 2 ? 2 : 6);
  int       number[ELEMENT_MOST], own[ELEMENT_MOST], n = 0;

  if (det == 0) return 0;
  for (int k = 0; k <= d; k++)
    for (int i = 0; i < 3; i++) g[k][i] /= det;
  ElementStiffness(d, g, volume, K);
  for (int k = 0; k < size; k++) {
    const int *e = k > d ? elementedge[k - d - 1] : (const int[]){k, k}, from = e[0] ? C->id[a[e[0] - 1]] : p, to = e[1] ? C->id[a[e[1] - 1]] : p;

    own[k]    = PetscMin(from, to) == p;
    number[k] = QuadraticNumber(Q, from, to);
    if (number[k] < 0) return -1;
  }
  for (int r = 0; r < size; r++)
    for (int c = 0; own[r] && c < size; c++) term[n++] = (QuadraticTerm){number[r], number[c], 0, K[r][c] + volume * ElementMass(d, r, c)};
  return n;
}

static inline int QuadraticRows(const void *quadratic, int p, MeshCell *C, MeshNear near[], MeshChunk *to, int64_t length[])
{
  const QuadraticMesh *Q = (const QuadraticMesh *)quadratic;
  QuadraticTerm        term[MESH_PLANES * 4 * ELEMENT_MOST]; /* d + 1 unknowns of a simplex at most belong to p */
  int                  n = 0;

  MeshCellMake(Q->M, p, C, near);
  for (int q = 0; q < C->corners; q++)
    if (MeshIsSimplex(C, Q->M->d, q)) {
      const int more = QuadraticSimplex(Q, p, C, C->corner[q].a, term + n);

      if (more < 0) return 0;
      n += more;
    }
  for (int k = 0; k < n; k++) term[k].turn = k;
  qsort(term, (size_t)n, sizeof(*term), QuadraticLess);
  for (int r = Q->first[p]; r < Q->first[p + 1]; r++) length[r - Q->first[p]] = 0;
  MeshChunkGrow(to, (size_t)n);
  for (int k = 0; k < n; k++) {
    if (k && term[k].row == term[k - 1].row && term[k].col == term[k - 1].col) {
      to->val[to->n - 1] += term[k].val;
      continue;
    }
    to->col[to->n]   = term[k].col;
    to->val[to->n++] = term[k].val;
    length[term[k].row - Q->first[p]]++;
  }
  return !C->full;
}

/* The matrix in an order, as MeshMatrix() */
static inline PetscErrorCode QuadraticMatrix(const QuadraticMesh *Q, MeshOrder order, int *m, int32_t **i, PetscInt **j, PetscScalar **a)
{
  int64_t  *begin = NULL;
  int32_t  *col   = NULL, *drawn;
  double   *val   = NULL;
  uint64_t *key;

  PetscFunctionBeginUser;
  PetscCall(MeshAssembleRows(Q->M, Q->first, QuadraticRows, Q, &begin, &col, &val));
  PetscCall(PetscMalloc2(Q->n, &drawn, Q->n, &key));
  for (int r = 0; r < Q->n; r++) key[r] = (uint64_t)(0x1p33 * SyntheticUniform(Q->M->seed + 1, (uint64_t)r, 0));
  PetscCall(MeshSort(Q->n, key, 33, drawn));
  PetscCall(MeshOrdered(&(MeshGraph){Q->n, Q->M->d, Q->x, begin, col}, val, order, drawn, 1, m, i, j, a));
  PetscCall(PetscFree2(drawn, key));
  free(begin);
  free(col);
  free(val);
  PetscFunctionReturn(PETSC_SUCCESS);
}
