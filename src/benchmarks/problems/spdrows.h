#pragma once

/*
  Symmetric positive definite matrices in host CSR whose coefficients vary from point to point. They complement the constant
  stencils of synthetic.h, and use the same random numbers. The file does not need PETSc, so programs without PETSc generate the same matrices.

    lognormal  7 or 27 points of a cube, fluxes between neighbours by the harmonic mean of their coefficients, whose logarithms are normal
    elastic    three displacements a point of a cube, springs to the 26 neighbours of lognormal stiffness, a tenth of which acts across them
    graph      a point somewhere in each cell of a cube, those no farther apart than 1.65 cells connected by exp(-distance squared), and a hundredth on the diagonal

  Beyond the cube's faces everything is held at 0, but for the graph, which has no such faces.
*/
#include "random.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum {
  LOGNORMAL7,
  LOGNORMAL27,
  ELASTIC,
  GRAPH
} SPDKind;

typedef struct {
  SPDKind       kind;
  int           m;     /* points an edge */
  int           depth; /* planes of m by m points, 0: as many as make a cube */
  int           first; /* point that the table below begins with */
  const double *table; /* coefficients of the rows' points, see SPDTable(); NULL: computed each time */
} SPD;

static inline int SPDDepth(const SPD *s)
{
  return s->depth ? s->depth : s->m;
}

#define SPD_LONGEST 160

/* Of a point, by Box and Muller */
static inline double SPDCoefficient(int p)
{
  return exp(sqrt(-2 * log(1 - SyntheticUniform(51, (uint64_t)p, 0))) * cos(2 * 3.14159265358979323846 * SyntheticUniform(51, (uint64_t)p, 1)));
}

static inline double SPDLook(const SPD *s, int p)
{
  return s->table ? s->table[p - s->first] : SPDCoefficient(p);
}

static inline double SPDMean(const SPD *s, int p, int q)
{
  const double a = SPDLook(s, p), b = SPDLook(s, q);

  return 2 * a * b / (a + b);
}

/* Row r: columns, increasing, and values; returns their number */
static inline int SPDRow(const SPD *s, int r, int32_t *col, double *val)
{
  const int dofs = s->kind == ELASTIC ? 3 : 1, reach = s->kind == GRAPH ? 2 : 1, m = s->m, p = r / dofs, x = p % m, y = p / m % m, z = p / m / m;
  int       count = 0, self = 0;
  double    sum[3] = {0, 0, 0};

  for (int dz = -reach; dz <= reach; dz++)
    for (int dy = -reach; dy <= reach; dy++)
      for (int dx = -reach; dx <= reach; dx++) {
        const int q = ((z + dz) * m + y + dy) * m + x + dx, d[3] = {dx, dy, dz};
        const int in = x + dx >= 0 && y + dy >= 0 && z + dz >= 0 && x + dx < m && y + dy < m && z + dz < SPDDepth(s);

        if (s->kind == LOGNORMAL7 && abs(dx) + abs(dy) + abs(dz) > 1) continue;
        if (s->kind == GRAPH && !in) continue;
        if (!dx && !dy && !dz) { /* its value follows */
          self = count;
          for (int k = 0; k < dofs; k++) col[count++] = p * dofs + k;
        } else if (s->kind == GRAPH) {
          double far = 0;

          for (int k = 0; k < 3; k++) {
            const double f = d[k] + SyntheticUniform(52, (uint64_t)q, (uint64_t)k) - SyntheticUniform(52, (uint64_t)p, (uint64_t)k);

            far += f * f;
          }
          if (far > 1.65 * 1.65) continue;
          col[count]   = q;
          val[count++] = -exp(-far);
          sum[0] += exp(-far);
        } else {
          const double w = in ? SPDMean(s, p, q) : SPDLook(s, p);

          for (int k = 0; k < dofs; k++) {
            const double part = dofs == 1 ? w : w * ((double)d[r % 3] * d[k] / (dx * dx + dy * dy + dz * dz) + (k == r % 3 ? 0.1 : 0));

            sum[k] += part;
            if (!in) continue;
            col[count]   = q * dofs + k;
            val[count++] = -part;
          }
        }
      }
  for (int k = 0; k < dofs; k++) val[self + k] = sum[k] + (s->kind == GRAPH ? 0.01 : 0);
  return count;
}

/* Reads "lognormal7_64" and similar names, with the points of an edge; 1 if name is known */
static inline int SPDNamed(const char name[], SPD *s)
{
  static const char *const kinds[] = {"lognormal7_%d", "lognormal27_%d", "elastic_%d", "graph_%d"}; /* in the order of SPDKind */

  for (int k = 0; k < 4; k++)
    if (sscanf(name, kinds[k], &s->m) == 1) {
      s->kind = (SPDKind)k;
      return 1;
    }
  return 0;
}
