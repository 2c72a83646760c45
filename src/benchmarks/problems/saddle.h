#pragma once

/*
  Saddle points with a zero block, by rows: all velocities first, then all pressures, whose rows have no diagonal entry. Walls all around, so that only faces and points inside are unknowns.

    MAC     Stokes' equations on a staggered grid: velocities on the faces of cells, pressures in cells
    DARCY   a flux through each face, coupled to the other faces of the two cells as a full tensor couples them, and pressures in cells
    Q2Q1    Stokes' equations by elements: quadratic velocities, all of a point coupled and neighbours, and linear pressures
*/
#include <stdint.h>

typedef enum {
  SADDLE_MAC,
  SADDLE_DARCY,
  SADDLE_Q2Q1
} SaddleKind;

typedef struct {
  SaddleKind kind;
  int        n, dimensions; /* cells an edge; 2 or 3 */
} Saddle;

#define SADDLE_LONGEST 402 /* entries of a row: 5^3 points of three velocities, and 3^3 pressures */

/* Edges of a box of points */
typedef struct {
  int edge[3];
} SaddleBox;

/* Faces across direction c that are no wall */
static inline SaddleBox SaddleFaces(const Saddle *s, int c)
{
  SaddleBox b = {
    {s->n, s->n, s->dimensions == 3 ? s->n : 1}
  };

  b.edge[c]--;
  return b;
}

/* Points an edge; a third dimension that is missing has one */
static inline SaddleBox SaddlePoints(const Saddle *s, int points)
{
  return (SaddleBox){
    {points, points, s->dimensions == 3 ? points : 1}
  };
}

static inline int SaddleSize(const SaddleBox *b)
{
  return b->edge[0] * b->edge[1] * b->edge[2];
}

static inline int SaddleNumber(const SaddleBox *b, const int at[3])
{
  return (at[2] * b->edge[1] + at[1]) * b->edge[0] + at[0];
}

static inline int SaddleInside(const SaddleBox *b, const int at[3])
{
  for (int d = 0; d < 3; d++)
    if (at[d] < 0 || at[d] >= b->edge[d]) return 0;
  return 1;
}

static inline void SaddlePlace(const SaddleBox *b, int number, int at[3])
{
  at[0] = number % b->edge[0];
  at[1] = number / b->edge[0] % b->edge[1];
  at[2] = number / b->edge[0] / b->edge[1];
}

static inline int SaddleVelocities(const Saddle *s)
{
  SaddleBox b = s->kind == SADDLE_Q2Q1 ? SaddlePoints(s, 2 * s->n - 1) : SaddleFaces(s, 0);

  return s->dimensions * SaddleSize(&b);
}

static inline int SaddleRows(const Saddle *s)
{
  SaddleBox b = SaddlePoints(s, s->kind == SADDLE_Q2Q1 ? s->n + 1 : s->n);

  return SaddleVelocities(s) + SaddleSize(&b);
}

/* Adds the face across direction c at that place, unless it is a wall */
static inline void SaddleAddFace(const Saddle *s, int c, const int at[3], int32_t *col, int *count)
{
  const SaddleBox b = SaddleFaces(s, c);

  if (SaddleInside(&b, at)) col[(*count)++] = c * SaddleSize(&b) + SaddleNumber(&b, at);
}

/* Adds the faces of a cell across direction c */
static inline void SaddleAddFaces(const Saddle *s, int c, const int cell[3], int32_t *col, int *count)
{
  for (int side = -1; side <= 0; side++) {
    int at[3] = {cell[0], cell[1], cell[2]};

    at[c] += side;
    SaddleAddFace(s, c, at, col, count);
  }
}

static inline int SaddleStaggeredRow(const Saddle *s, int r, int32_t *col)
{
  const SaddleBox cells      = SaddlePoints(s, s->n);
  const int       velocities = SaddleVelocities(s), each = velocities / s->dimensions;
  int             at[3], count                           = 0;

  if (r >= velocities) {
    SaddlePlace(&cells, r - velocities, at);
    for (int c = 0; c < s->dimensions; c++) SaddleAddFaces(s, c, at, col, &count);
    return count;
  }
  const int       across = r / each;
  const SaddleBox faces  = SaddleFaces(s, across);

  SaddlePlace(&faces, r % each, at);
  for (int c = 0; c < s->dimensions; c++) {
    int to[3] = {at[0], at[1], at[2]};

    if (c == across || s->kind == SADDLE_MAC) { /* neighbours in direction c */
      for (to[c] = at[c] - 1; to[c] <= at[c] + 1; to[c]++)
        if (to[c] != at[c] || c == across) SaddleAddFace(s, across, to, col, &count);
    } else
      for (to[across] = at[across]; to[across] <= at[across] + 1; to[across]++) SaddleAddFaces(s, c, to, col, &count);
  }
  col[count++] = velocities + SaddleNumber(&cells, at);
  at[across]++;
  col[count++] = velocities + SaddleNumber(&cells, at);
  return count;
}

/* Places count in halves of a cell: corners are at even ones, and points next to a wall at 1 */
static inline int SaddleElementRow(const Saddle *s, int r, int32_t *col)
{
  const SaddleBox points = SaddlePoints(s, 2 * s->n - 1), corners = SaddlePoints(s, s->n + 1);
  const int       velocities = SaddleVelocities(s), pressure = r >= velocities;
  int             at[3], low[3] = {0}, high[3] = {0}, first[3] = {0}, last[3] = {0}, count = 0, to[3];

  if (pressure) SaddlePlace(&corners, r - velocities, at);
  else SaddlePlace(&points, r / s->dimensions, at);
  for (int d = 0; d < s->dimensions; d++) {
    const int place = pressure ? 2 * at[d] : at[d] + 1, reach = 2 - place % 2; /* a corner has elements on both sides */

    low[d]   = place - reach < 1 ? 0 : place - reach - 1;
    high[d]  = place + reach > 2 * s->n - 1 ? 2 * s->n - 2 : place + reach - 1;
    first[d] = (place - reach) / 2;
    last[d]  = (place + reach) / 2;
  }
  for (to[2] = low[2]; to[2] <= high[2]; to[2]++)
    for (to[1] = low[1]; to[1] <= high[1]; to[1]++)
      for (to[0] = low[0]; to[0] <= high[0]; to[0]++)
        for (int c = 0; c < s->dimensions; c++) col[count++] = SaddleNumber(&points, to) * s->dimensions + c;
  for (to[2] = first[2]; to[2] <= last[2] && !pressure; to[2]++)
    for (to[1] = first[1]; to[1] <= last[1]; to[1]++)
      for (to[0] = first[0]; to[0] <= last[0]; to[0]++) col[count++] = velocities + SaddleNumber(&corners, to);
  return count;
}

/* Columns of row r, in any order; returns their number */
static inline int SaddleRow(const Saddle *s, int r, int32_t *col)
{
  return s->kind == SADDLE_Q2Q1 ? SaddleElementRow(s, r, col) : SaddleStaggeredRow(s, r, col);
}
