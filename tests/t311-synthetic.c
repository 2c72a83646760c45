/*
  The generated matrices of the benchmarks that the thesis of A. H. El Zein calls Constant-row and Structured: columns ascend and are there, rows are as long as asked for but for
  columns drawn twice, and of a structured matrix all rows have the same columns. Saddle points have a symmetric pattern and a zero block, and as many entries as counted by hand. A graph
  by R-MAT has its longest row where the quadrants have it, at the first point, and as many edges as were drawn but for equal ones.

  //TEST
*/
static char help[] = "Tests matrices that the benchmarks generate.\n";

#include "../src/benchmarks/problems/synthetic.h"

static PetscErrorCode Test(SyntheticKind kind, int rows, int columns, int mean)
{
  const Synthetic s = {"tested", kind, rows, columns, mean, 9, 0, 0, 0, 0};
  int             m = 0, n = 0, same = 0;
  int32_t        *i;
  PetscInt       *j;
  PetscScalar    *a;

  PetscFunctionBegin;
  PetscCall(SyntheticCreate(&s, 1, &m, &n, &i, &j, &a));
  PetscCheck(m == rows && n == columns, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d by %d instead of %d by %d", m, n, rows, columns);
  for (int r = 0; r < m; r++) {
    const int length = i[r + 1] - i[r];

    PetscCheck(length <= mean && length > 0.8 * mean, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Row %d has %d entries, for which %d columns of %d were drawn", r, length, mean, columns);
    for (int k = i[r]; k < i[r + 1]; k++) PetscCheck(j[k] >= 0 && j[k] < n && (k == i[r] || j[k] > j[k - 1]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Row %d has column %" PetscInt_FMT " out of order or range", r, j[k]);
    same += length == i[1] && !memcmp(j, j + i[r], sizeof(*j) * (size_t)length);
  }
  PetscCheck(kind == SAME ? same == m : same == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d of %d rows have the columns of the first", same, m);
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSaddle(SaddleKind kind, int cells, int dimensions, int rows, int velocities, int entries)
{
  const Synthetic s = {"tested", SADDLE, cells, dimensions, 0, 9, (int)kind, 0, 0, 0};
  int             m = 0, n = 0;
  int32_t        *i;
  PetscInt       *j;
  PetscScalar    *a;

  PetscFunctionBegin;
  PetscCall(SyntheticCreate(&s, 1, &m, &n, &i, &j, &a));
  PetscCheck(m == rows && n == rows && i[m] == entries, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Saddle point %d: %d by %d with %d entries instead of %d rows with %d", kind, m, n, (int)i[m], rows, entries);
  for (int r = 0; r < m; r++)
    for (int k = i[r]; k < i[r + 1]; k++) {
      const int c     = (int)j[k];
      int       there = 0;

      PetscCheck(c >= 0 && c < n && (k == i[r] || c > j[k - 1]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Saddle point %d: row %d has column %d out of order or range", kind, r, c);
      PetscCheck(r < velocities || c < velocities, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Saddle point %d: entry %d, %d in the zero block", kind, r, c);
      for (int q = i[c]; q < i[c + 1]; q++) there += j[q] == r;
      PetscCheck(there, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Saddle point %d: entry %d, %d without its mirror", kind, r, c);
    }
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestRMAT(void)
{
  const Synthetic s = {"tested", RMAT, 10, 0, 16, 9, 0, 0, 0, 0};
  int             m = 0, n = 0, longest = 0;
  int32_t        *i;
  PetscInt       *j;
  PetscScalar    *a;

  PetscFunctionBegin;
  PetscCall(SyntheticCreate(&s, 1, &m, &n, &i, &j, &a));
  PetscCheck(m == 1024 && n == 1024 && i[m] < 16384 && i[m] > 8192, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d by %d with %d entries", m, n, (int)i[m]);
  for (int r = 0; r < m; r++) {
    longest = PetscMax(longest, i[r + 1] - i[r]);
    for (int k = i[r]; k < i[r + 1]; k++) PetscCheck(j[k] >= 0 && j[k] < n && (k == i[r] || j[k] > j[k - 1]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Row %d has column %" PetscInt_FMT " out of order or range", r, j[k]);
  }
  PetscCheck(longest == i[1] && longest > 10 * 16, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The longest row has %d entries, the first %d", longest, (int)i[1]);
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(Test(SAME, 300, 1000, 50));
  PetscCall(Test(SAME, 1, 100000, 16));
  PetscCall(Test(UNIFORM, 300, 1000, 50));
  PetscCall(TestSaddle(SADDLE_MAC, 4, 2, 40, 24, 188));
  PetscCall(TestSaddle(SADDLE_MAC, 2, 3, 20, 12, 84));
  PetscCall(TestSaddle(SADDLE_DARCY, 2, 3, 20, 12, 108));
  PetscCall(TestSaddle(SADDLE_DARCY, 4, 2, 40, 24, 224));
  PetscCall(TestSaddle(SADDLE_Q2Q1, 2, 2, 27, 18, 392));
  PetscCall(TestSaddle(SADDLE_Q2Q1, 2, 3, 108, 81, 5145));
  PetscCall(TestRMAT());
  PetscCall(PetscFinalize());
  return 0;
}
