/*
  The Delaunay meshes of the benchmarks: no sphere through a simplex has a point inside, points agree on shared simplices, the simplices cover the box, and each order is a permutation.

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

static PetscErrorCode Matrix(const Synthetic *s, int64_t *nnz, double *sum, int *band)
{
  int          m = 0, n = 0;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(SyntheticCreate(s, 1, &m, &n, &i, &j, &a));
  PetscCheck(m == n && m == s->m * s->n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d by %d", s->name, m, n);
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
    PetscCheck(row > -100 * DBL_EPSILON * all, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %d adds up to %g", s->name, r, row);
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
    {MESH2, 0.97},
    {MESH3, 0.88},
    {PLATE, 0.6 }
  };

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  for (int q = 0; q < 3; q++) {
    const double volume  = kinds[q].kind == PLATE ? 0.12 : 1;
    const double edge[3] = {1, 1, volume};
    int64_t      nnz[5];
    double       sum[5];
    int          band[5];
    Mesh         M;

    for (int n = 1; n <= 1000; n *= 10) {
      PetscCall(MeshCreate(kinds[q].kind == MESH2 ? 2 : 3, n, edge, 7, &M));
      if (n >= 100) PetscCall(Empty(&M));
      PetscCall(MeshDestroy(&M));
    }
    for (int order = 0; order < 5; order++) {
      const Synthetic s = {"mesh", kinds[q].kind, 3000, order == MESH_RCM ? 3 : 1, 0, 60, order, 0, 0, 0};

      PetscCall(Matrix(&s, &nnz[order], &sum[order], &band[order]));
      if (order == MESH_RCM) { /* three unknowns: nine times the entries, and what couples them counts */
        nnz[order] /= 9;
        sum[order] /= 3 * (1 + 2 * MESH_COUPLED);
        band[order] /= 3;
      }
      PetscCheck(nnz[order] == nnz[0] && fabs(sum[order] - sum[0]) < 1e6 * DBL_EPSILON * sum[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "In order %d there are %d entries, sum %.15g; in order 0 %d, %.15g", order, (int)nnz[order], sum[order], (int)nnz[0], sum[0]);
    }
    PetscCheck(sum[0] <= volume && sum[0] > kinds[q].least * volume, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Simplices of kind %d cover %g of %g", q, sum[0], volume);
    PetscCheck(2 * band[MESH_RCM] < band[MESH_RANDOM] && 2 * band[MESH_RCM] < band[MESH_HILBERT] && band[MESH_DISSECTION] < 3000, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Bandwidths by order: Hilbert %d, random %d, RCM %d", band[0], band[1], band[2]);
  }
  PetscCall(PetscFinalize());
  return 0;
}
