#pragma once

/*
  Linear elements on tetrahedra for -div((1 + u^2) grad u) = f. The text is C for the host (newton.c), CUDA for nvcc (newton.cu) and for NVRTC (newton.py).

    corner   four points of each tetrahedron
    unknown  the number of each point, -1: u is 0 there
    point    three coordinates of each point
*/
#ifdef __CUDACC__
  #define NEWTON_BOTH static inline __host__ __device__
#else
  #define NEWTON_BOTH static inline
#endif

/* Corner a of tetrahedron e, where cubes of n points a side are cut into six tetrahedra each, along paths of edges from corner 0 to corner 7 */
NEWTON_BOTH int NewtonCorner(int n, int e, int a)
{
  const int path[6][4] = {
    {0, 1, 3, 7},
    {0, 1, 5, 7},
    {0, 2, 3, 7},
    {0, 2, 6, 7},
    {0, 4, 5, 7},
    {0, 4, 6, 7}
  };
  const int q = path[e % 6][a], c = e / 6, m = n - 1;

  return c % m + q % 2 + n * (c / m % m + q / 2 % 2 + n * (c / m / m + q / 4));
}

/* The 16 contributions of tetrahedron e to P(u) (tangent 0), where P(u) u is the operator, or to the Jacobian of P(u) u (tangent 1) */
NEWTON_BOTH void NewtonValues(int e, const int *corner, const int *unknown, const double *point, const double *u, int tangent, double *v)
{
  double edge[3][3], grad[4][3], det = 0, mean = 0, gradu[3] = {0, 0, 0}; /* grad: of the function that is 1 at a corner, and 0 at the other corners */

  for (int k = 0; k < 3; k++)
    for (int x = 0; x < 3; x++) edge[k][x] = point[3 * corner[4 * e + k + 1] + x] - point[3 * corner[4 * e] + x];
  for (int k = 0; k < 3; k++) {
    const double *p = edge[(k + 1) % 3], *q = edge[(k + 2) % 3];

    for (int x = 0; x < 3; x++) grad[k + 1][x] = p[(x + 1) % 3] * q[(x + 2) % 3] - p[(x + 2) % 3] * q[(x + 1) % 3];
  }
  for (int x = 0; x < 3; x++) det += edge[0][x] * grad[1][x];
  for (int x = 0; x < 3; x++) {
    for (int k = 1; k < 4; k++) grad[k][x] /= det;
    grad[0][x] = -(grad[1][x] + grad[2][x] + grad[3][x]);
  }
  for (int a = 0; a < 4; a++) {
    const int    i  = unknown[corner[4 * e + a]];
    const double ua = i < 0 ? 0 : u[i];

    mean += ua / 4;
    for (int x = 0; x < 3; x++) gradu[x] += ua * grad[a][x];
  }
  for (int a = 0; a < 4; a++)
    for (int b = 0; b < 4; b++) {
      double sum = 0;

      for (int x = 0; x < 3; x++) sum += grad[a][x] * ((1 + mean * mean) * grad[b][x] + tangent * mean / 2 * gradu[x]);
      v[16 * e + 4 * a + b] = (det < 0 ? -det : det) / 6 * sum;
    }
}
