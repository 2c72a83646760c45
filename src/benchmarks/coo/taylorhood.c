/*
  Stokes' equations by Taylor-Hood elements: velocities quadratic and pressures linear on the tetrahedra of n^3 cells, six a cell. Five sides of the cube are walls, and the fluid leaves by the side x = 1, so
  that the pressure is unique. Velocities have the points of a grid of (2 n + 1)^3 points. Pressures have each second point in each direction. The midpoints of the tetrahedra's edges are points of the grid,
  because each edge joins two corners of one cell. Assembled by coordinates, values from an array of the device if there is one. In place of the Schur complement: minus the pressure's mass matrix.
*/
#include "coo.h"
#include "../problems/element.h"

enum {
  POINTS  = ELEMENT_MOST, /* of a tetrahedron: corners, then midpoints of edges */
  EACH    = 3 * POINTS * POINTS + 2 * 3 * POINTS * 4,
  CORNERS = 4
};

/* Of a tetrahedron with edges of length 1 along the axes, as a path along the axes a, b, c */
typedef struct {
  double stiffness[POINTS][POINTS], gradient[CORNERS][POINTS][3]; /* -integral of pressure times derivative of velocity */
} Element;

static const int path[6][3] = {
  {0, 1, 2},
  {0, 2, 1},
  {1, 0, 2},
  {1, 2, 0},
  {2, 0, 1},
  {2, 1, 0}
};

static void ElementMake(const int axes[3], Element *e)
{
  double g[CORNERS][3] = {{0}}; /* of barycentric coordinates: 1 - a, a - b, b - c, c */

  for (int k = 0; k < 3; k++) {
    g[k][axes[k]] -= 1;
    g[k + 1][axes[k]] += 1;
  }
  memset(e, 0, sizeof(*e));
  ElementStiffness(3, g, 1.0 / 6, e->stiffness);
  for (int q = 0; q < CORNERS; q++) {
    double l[CORNERS], f[POINTS][3];

    ElementPoint(3, q, l);
    ElementGradients(3, l, g, f);
    for (int k = 0; k < CORNERS; k++)
      for (int a = 0; a < POINTS; a++)
        for (int c = 0; c < 3; c++) e->gradient[k][a][c] -= l[k] * f[a][c] / 24;
  }
}

/* The number of this rank's planes of velocities, and the first plane */
static PetscInt Planes(const StokesGrid *g, PetscInt *first)
{
  *first = 2 * g->first;
  return 2 * g->planes + (g->first + g->planes == g->n && g->planes > 0);
}

static PetscInt PressurePlanes(const StokesGrid *g)
{
  PetscInt first;

  return (Planes(g, &first) + 1) / 2;
}

/* The number of velocity c at a point, or of its pressure (3) */
static PetscInt Number(const StokesGrid *g, const PetscInt at[3], PetscInt c)
{
  const PetscInt w = 2 * g->n + 1, v = g->n + 1;
  StokesGrid     owner = *g; /* of the point */
  PetscInt       begin, point, before, planes;

  StokesOwner(g, PetscMin(at[2] / 2, g->n - 1), &owner.first, &owner.planes);
  planes = Planes(&owner, &begin);
  point  = ((at[2] - begin) * w + at[1]) * w + at[0];
  /* pressures at points before */
  before = (at[2] - begin + 1) / 2 * v * v;
  if (at[2] % 2 == 0) before += (at[1] + 1) / 2 * v + (at[1] % 2 == 0 ? (at[0] + 1) / 2 : 0);
  begin = 3 * begin * w * w + owner.first * v * v;
  if (g->interlaced) return begin + 3 * point + before + c;
  return begin + (c == 3 ? 3 * planes * w * w + before : 3 * point + c);
}

static PetscInt PressureNumber(const StokesGrid *g, const PetscInt at[3])
{
  return (at[2] / 2 * (g->n + 1) + at[1] / 2) * (g->n + 1) + at[0] / 2;
}

static PetscBool IsWall(const StokesGrid *g, const PetscInt at[3])
{
  return (PetscBool)(at[0] == 0 || at[1] == 0 || at[2] == 0 || at[1] == 2 * g->n || at[2] == 2 * g->n);
}

/* Points of tetrahedron t of a cell */
static void Points(const PetscInt cell[3], int t, PetscInt at[POINTS][3])
{
  for (int d = 0; d < 3; d++) at[0][d] = 2 * cell[d];
  for (int k = 1; k < CORNERS; k++) {
    for (int d = 0; d < 3; d++) at[k][d] = at[k - 1][d];
    at[k][path[t][k - 1]] += 2;
  }
  for (int k = 0; k < 6; k++)
    for (int d = 0; d < 3; d++) at[CORNERS + k][d] = (at[elementedge[k][0]][d] + at[elementedge[k][1]][d]) / 2;
}

/* Contributions of coordinates; numbers -1, of walls, are left out */
typedef struct {
  PetscCount   n;
  PetscInt    *i, *j;
  PetscScalar *a;
} Coordinates;

static void Add(Coordinates *c, PetscInt i, PetscInt j, PetscReal a)
{
  c->i[c->n]   = i;
  c->j[c->n]   = j;
  c->a[c->n++] = a;
}

static void AddTetrahedron(const StokesGrid *g, const Element *e, PetscInt at[POINTS][3], Coordinates *flow, Coordinates *mass)
{
  const PetscReal h = 1.0 / (PetscReal)g->n;
  PetscInt        u[POINTS][3], p[CORNERS], s[CORNERS];

  for (int k = 0; k < POINTS; k++) {
    const PetscBool wall = IsWall(g, at[k]);

    u[k][0] = wall ? -1 : Number(g, at[k], 0);
    for (int d = 1; d < 3; d++) u[k][d] = wall ? -1 : u[k][0] + d;
    if (k >= CORNERS) continue;
    p[k] = Number(g, at[k], 3);
    s[k] = PressureNumber(g, at[k]);
  }
  for (int a = 0; a < POINTS; a++)
    for (int d = 0; d < 3; d++) {
      for (int b = 0; b < POINTS; b++) Add(flow, u[a][d], u[b][d], h * e->stiffness[a][b]);
      for (int k = 0; k < CORNERS; k++) {
        Add(flow, u[a][d], p[k], h * h * e->gradient[k][a][d]);
        Add(flow, p[k], u[a][d], h * h * e->gradient[k][a][d]);
      }
    }
  for (int k = 0; k < CORNERS; k++)
    for (int l = 0; l < CORNERS; l++) Add(mass, s[k], s[l], -h * h * h / 120 * (k == l ? 2 : 1));
}

/* Contributions of this rank's cells, and a diagonal for its velocities at walls */
static PetscErrorCode Contributions(const StokesGrid *g, Coordinates *flow, Coordinates *mass)
{
  PetscInt first, planes = Planes(g, &first), w = 2 * g->n + 1, cell[3], at[3];
  Element  e[6];

  PetscFunctionBeginUser;
  for (int t = 0; t < 6; t++) ElementMake(path[t], &e[t]);
  for (cell[2] = g->first; cell[2] < g->first + g->planes; cell[2]++)
    for (cell[1] = 0; cell[1] < g->n; cell[1]++)
      for (cell[0] = 0; cell[0] < g->n; cell[0]++)
        for (int t = 0; t < 6; t++) {
          PetscInt point[POINTS][3];

          Points(cell, t, point);
          AddTetrahedron(g, &e[t], point, flow, mass);
        }
  for (at[2] = first; at[2] < first + planes; at[2]++)
    for (at[1] = 0; at[1] < w; at[1]++)
      for (at[0] = 0; at[0] < w; at[0]++)
        for (PetscInt c = 0; c < 3 && IsWall(g, at); c++) Add(flow, Number(g, at, c), Number(g, at, c), 1.0 / (PetscReal)g->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values: of the contributions, on the device if vectors are there */
static PetscErrorCode Sum(const Bench *b, PetscInt n, Coordinates *c, Vec values, Mat *A)
{
  const PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, n, n, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, b->type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetPreallocationCOO(*A, c->n, c->i, c->j));
  PetscCall(ArrayGet(values, &a));
  PetscCall(MatSetValuesCOO(*A, a, INSERT_VALUES));
  PetscCall(ArrayRestore(values, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assemble(const Bench *b, const StokesGrid *g, PetscInt velocities, PetscInt pressures, StokesSystem *s)
{
  const PetscCount tetrahedra = (PetscCount)6 * g->planes * g->n * g->n, most[2] = {tetrahedra * EACH + velocities, tetrahedra * CORNERS * CORNERS};
  Coordinates      c[2] = {{0}};
  Vec              v[2];

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscMalloc2((size_t)most[k], &c[k].i, (size_t)most[k], &c[k].j));
    PetscCall(VecCreate(PETSC_COMM_SELF, &v[k]));
    PetscCall(VecSetSizes(v[k], (PetscInt)most[k], PETSC_DECIDE));
    PetscCall(VecSetFromOptions(v[k]));
    PetscCall(VecGetArrayWrite(v[k], &c[k].a));
  }
  PetscCall(Contributions(g, &c[0], &c[1]));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscArrayzero(c[k].a + c[k].n, (size_t)(most[k] - c[k].n)));
    PetscCall(VecRestoreArrayWrite(v[k], &c[k].a));
    PetscCall(Sum(b, k ? pressures : velocities + pressures, &c[k], v[k], k ? &s->S : &s->A));
    PetscCall(VecDestroy(&v[k]));
    PetscCall(PetscFree2(c[k].i, c[k].j));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TaylorHood(const Bench *b, const StokesGrid *g, StokesSystem *s)
{
  const PetscInt w = 2 * g->n + 1, v = g->n + 1;
  PetscInt       first, planes = Planes(g, &first), at[3], n[2] = {3 * planes * w * w, PressurePlanes(g) * v * v}, *index[2], count[2] = {0, 0};

  PetscFunctionBeginUser;
  PetscCall(Assemble(b, g, n[0], n[1], s));
  PetscCall(MatCreateVecs(s->A, NULL, &s->f));
  PetscCall(PetscMalloc1(n[0], &index[0]));
  PetscCall(PetscMalloc1(n[1], &index[1]));
  for (at[2] = first; at[2] < first + planes; at[2]++)
    for (at[1] = 0; at[1] < w; at[1]++)
      for (at[0] = 0; at[0] < w; at[0]++)
        for (PetscInt c = 0; c < (at[0] % 2 || at[1] % 2 || at[2] % 2 ? 3 : 4); c++) {
          const PetscInt row = Number(g, at, c);

          index[c == 3][count[c == 3]++] = row;
          if (c < 3 && !IsWall(g, at)) PetscCall(VecSetValue(s->f, row, PetscSinReal((PetscReal)(at[0] + 2 * at[1] + 3 * at[2]) / (PetscReal)g->n + (PetscReal)c) / (PetscReal)(w * w * w), INSERT_VALUES));
        }
  PetscCall(VecAssemblyBegin(s->f));
  PetscCall(VecAssemblyEnd(s->f));
  for (int k = 0; k < 2; k++) PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, n[k], index[k], PETSC_OWN_POINTER, &s->is[k]));
  PetscCall(ISSetBlockSize(s->is[0], 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}
