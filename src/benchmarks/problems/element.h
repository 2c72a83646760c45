#pragma once

/*
  Quadratic elements on a simplex of d dimensions, 2 or 3. Functions of the corners are l (2 l - 1), and those of the middles of edges are 4 l m, where l and m are barycentric coordinates.
  Corners come first. The edges of a triangle are the first three of a tetrahedron.
*/
#include <math.h>

#define ELEMENT_MOST 10 /* functions */

static const int elementedge[6][2] = {
  {0, 1},
  {0, 2},
  {1, 2},
  {0, 3},
  {1, 3},
  {2, 3}
};

static inline int ElementSize(int d)
{
  return (d + 1) * (d + 2) / 2;
}

/* Barycentric coordinates of point q of d + 1 that weigh the same: exact for polynomials of degree 2 */
static inline void ElementPoint(int d, int q, double l[])
{
  const double far = (1 - 1 / sqrt(d + 2)) / (d + 1);

  for (int k = 0; k <= d; k++) l[k] = k == q ? 1 - d * far : far;
}

/* Gradients of the functions at a point, from the gradients g of the barycentric coordinates */
static inline void ElementGradients(int d, const double l[], const double g[][3], double f[][3])
{
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k <= d; k++) f[k][i] = (4 * l[k] - 1) * g[k][i];
    for (int k = d + 1; k < ElementSize(d); k++) {
      const int *e = elementedge[k - d - 1];

      f[k][i] = 4 * (l[e[0]] * g[e[1]][i] + l[e[1]] * g[e[0]][i]);
    }
  }
}

/* Integrals of products of gradients */
static inline void ElementStiffness(int d, const double g[][3], double volume, double K[ELEMENT_MOST][ELEMENT_MOST])
{
  const int n = ElementSize(d);

  for (int a = 0; a < n; a++)
    for (int b = 0; b < n; b++) K[a][b] = 0;
  for (int q = 0; q <= d; q++) {
    double l[4], f[ELEMENT_MOST][3];

    ElementPoint(d, q, l);
    ElementGradients(d, l, g, f);
    for (int a = 0; a < n; a++)
      for (int b = 0; b < n; b++) K[a][b] += volume / (d + 1) * (f[a][0] * f[b][0] + f[a][1] * f[b][1] + f[a][2] * f[b][2]);
  }
}

/* The integral of the product of two functions, for a simplex of volume 1 */
static inline double ElementMass(int d, int a, int b)
{
  const int corner = a <= d, other = b <= d, *e = corner ? 0 : elementedge[a - d - 1], *f = other ? 0 : elementedge[b - d - 1];
  int       shared;

  if (corner && other) return (a == b ? 6.0 : d == 2 ? -1.0 : 1.0) / (d == 2 ? 180 : 420);
  if (corner || other) {
    const int c = corner ? a : b, *of = corner ? f : e;

    shared = of[0] == c || of[1] == c;
    return d == 2 ? (shared ? 0 : -4.0 / 180) : (shared ? -4.0 : -6.0) / 420;
  }
  shared = (e[0] == f[0]) + (e[0] == f[1]) + (e[1] == f[0]) + (e[1] == f[1]);
  return (shared == 2 ? 32.0 : shared ? 16.0 : 8.0) / (d == 2 ? 180 : 420);
}
