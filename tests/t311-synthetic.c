/*
  The generated matrices of the benchmarks that the thesis of A. H. El Zein calls Constant-row and Structured: columns ascend and are there, rows are as long as asked for but for
  columns drawn twice, and of a structured matrix all rows have the same columns.

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

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(Test(SAME, 300, 1000, 50));
  PetscCall(Test(SAME, 1, 100000, 16));
  PetscCall(Test(UNIFORM, 300, 1000, 50));
  PetscCall(PetscFinalize());
  return 0;
}
