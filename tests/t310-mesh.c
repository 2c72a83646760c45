/*
  The Delaunay meshes of the benchmarks: no sphere through a simplex has a point inside, points agree on shared simplices, the simplices cover the box, and each order is a permutation. Quadratic elements
  agree with integrals of polynomials of degree 2.

  //TEST
*/
static char help[] = "Tests the meshes that the benchmarks make.\n";

#include "../src/benchmarks/problems/synthetic.h"
#include <float.h>

/* Every corner of a cell between points alone is the centre of a sphere through d + 1 points: all other points are outside */
static PetscErrorCode Empty(const Mesh *M)
{
  MeshCell *C;
  MeshNear *near;
  int       simplices = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(1, &C, MESH_NEAR, &near));
  for (int p = 0; p < M->n; p++) {
    const double *x = M->x + (size_t)p * (size_t)M->d;

    MeshCellMake(M, p, C, near);
    PetscCheck(!C->full, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No room for the cell of point %d", p);
    for (int q = 0; q < C->corners; q++) {
      const double *v = C->corner[q].v, radius = sqrt(MeshDot(v, v));
      PetscBool     real = PETSC_TRUE;

      for (int e = 0; e < M->d; e++) real = (PetscBool)(real && C->id[C->corner[q].a[e]] >= 0);
      if (!real) continue;
      simplices++;
      for (int r = 0; r < M->n; r++) {
        double far = 0;

        for (int i = 0; i < M->d; i++) far += PetscSqr(M->x[(size_t)r * (size_t)M->d + (size_t)i] - x[i] - v[i]);
        PetscCheck(sqrt(far) > radius - 1e4 * DBL_EPSILON, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Point %d is inside a sphere through %d: by %g", r, p, radius - sqrt(far));
      }
    }
  }
  PetscCheck(simplices > M->n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d points have %d simplices", M->n, simplices);
  PetscCall(PetscFree2(C, near));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entry of row r in column c, NaN where there is none: rows are sorted */
static double Entry(const int32_t *i, const PetscInt *j, const PetscScalar *a, int r, int c)
{
  int lo = i[r], hi = i[r + 1];

  while (lo < hi) {
    const int mid = (lo + hi) / 2;

    if (j[mid] < c) lo = mid + 1;
    else hi = mid;
  }
  return lo < i[r + 1] && j[lo] == c ? a[lo] : NAN;
}

static double Factorial(int n)
{
  return n < 2 ? 1 : n * Factorial(n - 1);
}

/* A polynomial of degree 2 as a bilinear form of (1, x) and (1, y) */
static double Form(int d, const double x[], const double y[])
{
  static const double c[4][4] = {
    {1,    0.5, -0.7, 0.3},
    {0.5,  2,   0.4,  0.6},
    {-0.7, 0.4, -1,   0.2},
    {0.3,  0.6, 0.2,  1.5}
  };
  double sum = 0;

  for (int r = 0; r <= d; r++)
    for (int s = 0; s <= d; s++) sum += c[r][s] * (r ? x[r - 1] : 1) * (s ? y[s - 1] : 1);
  return sum;
}

/* The integral of the square of a polynomial and of its gradient's over the simplex of points x[0 .. d]: by factorials, for the products of up to four barycentric coordinates */
static double Energy(int d, const double *x[], double volume)
{
  double mass = 0, stiffness = 0, g[4][3], sum[3] = {0, 0, 0};

  for (int k = 0; k < 1 << 8; k++) {
    const int at[4]    = {k & 3, k >> 2 & 3, k >> 4 & 3, k >> 6 & 3};
    int       power[4] = {0, 0, 0, 0};
    double    weight   = Factorial(d) / Factorial(d + 4);

    if (PetscMax(PetscMax(at[0], at[1]), PetscMax(at[2], at[3])) > d) continue;
    for (int q = 0; q < 4; q++) power[at[q]]++;
    for (int q = 0; q < 4; q++) weight *= Factorial(power[q]);
    mass += weight * Form(d, x[at[0]], x[at[1]]) * Form(d, x[at[2]], x[at[3]]);
  }
  for (int k = 0; k <= d; k++)
    for (int i = 0; i < d; i++) { /* the derivative at a corner, from a difference that is exact but for rounding */
      double high[3], low[3];

      for (int q = 0; q < d; q++) {
        high[q] = x[k][q] + (q == i ? 0.5 : 0);
        low[q]  = x[k][q] - (q == i ? 0.5 : 0);
      }
      g[k][i] = Form(d, high, high) - Form(d, low, low);
      sum[i] += g[k][i];
    }
  for (int k = 0; k <= d; k++)
    for (int i = 0; i < d; i++) stiffness += g[k][i] * (g[k][i] + sum[i]) / ((d + 1) * (d + 2));
  return volume * (mass + stiffness);
}

/* Of quadratic elements: the rows add up to the integrals of their functions, as a constant has no gradient, and a polynomial of degree 2 has its energy */
static PetscErrorCode Polynomials(int d, int points)
{
  const double  edge[3] = {1, 1, 1};
  double       *sum, exact = 0, energy = 0, size = 0;
  int           m = 0;
  int32_t      *i;
  PetscInt     *j;
  PetscScalar  *a;
  Mesh          M;
  MeshCell     *C;
  MeshNear     *near;
  QuadraticMesh Q;

  PetscFunctionBegin;
  PetscCall(MeshCreate(d, points, edge, 11, &M));
  PetscCall(QuadraticCreate(&M, &Q));
  PetscCall(QuadraticMatrix(&Q, MESH_HILBERT, &m, &i, &j, &a));
  PetscCheck(m == Q.n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d rows of %d unknowns", m, Q.n);
  PetscCall(PetscCalloc1(m, &sum));
  PetscCall(PetscMalloc2(1, &C, MESH_NEAR, &near));
  for (int p = 0; p < M.n; p++) {
    MeshCellMake(&M, p, C, near);
    for (int q = 0; q < C->corners; q++) {
      const double *x[4] = {M.x + (size_t)p * (size_t)d};
      double        g[4][3], volume;
      int           number[4] = {p}, least = p;

      if (!MeshIsSimplex(C, d, q)) continue;
      for (int k = 1; k <= d; k++) {
        number[k] = C->id[C->corner[q].a[k - 1]];
        x[k]      = M.x + (size_t)number[k] * (size_t)d;
        least     = PetscMin(least, number[k]);
      }
      if (least < p) continue; /* another point has counted it */
      volume = fabs(MeshGradients(C, d, C->corner[q].a, g)) / Factorial(d);
      exact += Energy(d, x, volume);
      for (int k = 0; k <= d; k++)
        for (int l = k; l <= d; l++) {
          const int row = QuadraticNumber(&Q, number[k], number[l]);

          PetscCheck(row >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "There is no edge between %d and %d", number[k], number[l]);
          sum[row] += volume * (k == l ? (d == 2 ? 0 : -0.05) : 4.0 / ((d + 1) * (d + 2)));
        }
    }
  }
  for (int r = 0; r < m; r++) {
    double row = 0, all = 0;

    for (int k = i[r]; k < i[r + 1]; k++) {
      const double *x = Q.x + (size_t)r * (size_t)d, *y = Q.x + (size_t)j[k] * (size_t)d, u = Form(d, x, x), v = Form(d, y, y);

      row += a[k];
      all += fabs(a[k]);
      energy += u * a[k] * v;
      size += fabs(u * a[k] * v);
    }
    PetscCheck(fabs(row - sum[r]) <= 100 * DBL_EPSILON * all, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d dimensions: row %d adds up to %g, not %g", d, r, row, sum[r]);
  }
  PetscCheck(fabs(energy - exact) <= 100 * DBL_EPSILON * size && exact > 0.1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d dimensions: an energy of %.15g, not %.15g: %g of the terms' sizes", d, energy, exact, fabs(energy - exact) / size);
  PetscCall(PetscFree2(C, near));
  PetscCall(PetscFree(sum));
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscCall(QuadraticDestroy(&Q));
  PetscCall(MeshDestroy(&M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Matrix(const Synthetic *s, int64_t *nnz, double *sum, int *band)
{
  int          m = 0, n = 0;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;
  const int    quadratic = s->kind == MESH2Q || s->kind == MESH3Q;

  PetscFunctionBegin;
  PetscCall(SyntheticCreate(s, 1, &m, &n, &i, &j, &a));
  PetscCheck(m == n && (quadratic ? m > 2 * s->m : m == s->m * s->n), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d by %d", s->name, m, n);
  *nnz  = i[m];
  *sum  = 0;
  *band = 0;
  for (int r = 0; r < m; r++) {
    double row = 0, all = 0;

    for (int k = i[r]; k < i[r + 1]; k++) {
      const double other = Entry(i, j, a, (int)j[k], r);

      PetscCheck(k == i[r] || j[k] > j[k - 1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %d is not sorted", s->name, r);
      row += a[k];
      all += fabs(a[k]);
      *band = PetscMax(*band, abs((int)j[k] - r));
      /* both sums over the simplices of an edge, whose terms may be much larger than the sum */
      PetscCheck(fabs(other - a[k]) <= 1000 * DBL_EPSILON * (fabs(Entry(i, j, a, r, r)) + fabs(Entry(i, j, a, (int)j[k], (int)j[k]))), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: entries of %d and %d are %g and %g", s->name, r, (int)j[k], a[k], other);
    }
    /* without the mass, a constant has no energy */
    PetscCheck(quadratic || row > -100 * DBL_EPSILON * all, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %d adds up to %g", s->name, r, row);
    *sum += row;
  }
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const struct {
    SyntheticKind kind;
    double        least; /* of the box that simplices cover */
  } kinds[] = {
    {MESH2,  0.97},
    {MESH3,  0.88},
    {PLATE,  0.6 },
    {MESH2Q, 0.97},
    {MESH3Q, 0.88}
  };

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(Polynomials(2, 3000));
  PetscCall(Polynomials(3, 3000));
  for (int q = 0; q < 5; q++) {
    const int    quadratic = kinds[q].kind == MESH2Q || kinds[q].kind == MESH3Q, unknowns = quadratic ? 1 : 3;
    const double volume  = kinds[q].kind == PLATE ? 0.12 : 1;
    const double edge[3] = {1, 1, volume};
    int64_t      nnz[5];
    double       sum[5];
    int          band[5];
    Mesh         M;

    for (int n = 1; n <= 1000 && !quadratic; n *= 10) {
      PetscCall(MeshCreate(kinds[q].kind == MESH2 ? 2 : 3, n, edge, 7, &M));
      if (n >= 100) PetscCall(Empty(&M));
      PetscCall(MeshDestroy(&M));
    }
    for (int order = 0; order < 5; order++) {
      const Synthetic s = {"mesh", kinds[q].kind, 3000, order == MESH_RCM ? unknowns : 1, 0, 60, order, 0, 0, 0};

      PetscCall(Matrix(&s, &nnz[order], &sum[order], &band[order]));
      if (order == MESH_RCM && unknowns > 1) { /* three unknowns: nine times the entries, and what couples them counts */
        nnz[order] /= 9;
        sum[order] /= 3 * (1 + 2 * MESH_COUPLED);
        band[order] /= 3;
      }
      PetscCheck(nnz[order] == nnz[0] && fabs(sum[order] - sum[0]) < 1e6 * DBL_EPSILON * sum[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "In order %d there are %d entries, sum %.15g; in order 0 %d, %.15g", order, (int)nnz[order], sum[order], (int)nnz[0], sum[0]);
    }
    PetscCheck(sum[0] <= volume && sum[0] > kinds[q].least * volume, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Simplices of kind %d cover %g of %g", q, sum[0], volume);
    PetscCheck(2 * band[MESH_RCM] < band[MESH_RANDOM] && 2 * band[MESH_RCM] < band[MESH_HILBERT] && band[MESH_DISSECTION] < (quadratic ? 30000 : 3000), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Bandwidths by order: Hilbert %d, random %d, RCM %d", band[0], band[1], band[2]);
  }
  PetscCall(PetscFinalize());
  return 0;
}
