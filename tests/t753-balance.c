//TEST name="ranks" nsize=1
//TEST name="ranks2" nsize=2 args="-mat_type {}" loop="aij gpucsr baij sbaij dense"
//TEST name="ranks3" nsize=3 args="-mat_type gpucsr"
//TEST name="ranks5" nsize=5
//TEST name="ranks8" nsize=8

/*
  MatGPUCSRLoadFile() with -gpucsr_file_balance entries: matrices with uneven rows, fewer rows than ranks, one row or no rows, written in each format. Each rank's work is at most its share plus
  one row, the loaded matrix is right, vectors of MatCreateVecs() fit, and the program's sizes take precedence.

    mpiexec -n 3 build/tests/t753-balance -dll_append build/lib/libpetscgpucsr.so [-mat_type TYPE]
*/
#include "testing.h"
#include <petscgpucsr.h>
#include <unistd.h>

static PetscMPIInt rank, size;

/* By case: entries of row r in columns r, r + 1, ... modulo n */
typedef struct {
  const char *name;
  PetscInt    m, n, bs;
  PetscInt (*length)(PetscInt r, PetscInt n);
} Shape;

static PetscInt Top(PetscInt r, PetscInt n)
{
  return r < 5 ? n : 2;
}
static PetscInt Bottom(PetscInt r, PetscInt n)
{
  return r < 100 ? 1 : n / 2;
}
static PetscInt Hill(PetscInt r, PetscInt n)
{
  return r % 7 ? 1 : PetscMin(n, r % 91 * 3);
}
static PetscInt None(PetscInt r, PetscInt n)
{
  (void)r;
  (void)n;
  return 0;
}
static const Shape shapes[] = {
  {"top",       400, 400, 1, Top   },
  {"bottom",    120, 120, 1, Bottom},
  {"wide",      300, 500, 1, Hill  },
  {"tall",      500, 60,  1, Hill  },
  {"blocks",    120, 120, 3, Bottom},
  {"few rows",  3,   3,   1, Top   },
  {"one row",   1,   50,  1, Top   },
  {"one entry", 1,   1,   1, Top   },
  {"empty",     40,  40,  1, None  },
};
static const char *const formats[] = {"petsc", "market", "symmetric", "libsvm"};

static double Value(PetscInt r, PetscInt c)
{
  return 1 + (double)((r * 31 + c * 17) % 64) / 64;
}

/* By the first rank. symmetric: on and below the diagonal only; the matrix has both halves */
static PetscErrorCode Write(const Shape *s, int format, const char file[])
{
  Mat         A;
  PetscViewer viewer;
  FILE       *f;
  PetscInt    nz = 0;

  PetscFunctionBeginUser;
  if (format == 0) {
    PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, s->m, s->n, s->n, NULL, &A));
    for (PetscInt r = 0; r < s->m; r++)
      for (PetscInt k = 0; k < s->length(r, s->n); k++) PetscCall(MatSetValue(A, r, (r + k) % s->n, Value(r, (r + k) % s->n), INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, file, FILE_MODE_WRITE, &viewer));
    PetscCall(MatView(A, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCall(MatDestroy(&A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  f = fopen(file, "w");
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", file);
  for (int pass = format == 3; pass < 2; pass++) {
    if (pass && format != 3) fprintf(f, "%%%%MatrixMarket matrix coordinate real %s\n%d %d %d\n", format == 2 ? "symmetric" : "general", (int)s->m, (int)s->n, (int)nz);
    for (PetscInt r = 0; r < s->m; r++) {
      if (format == 3) fprintf(f, "%d", (int)r);
      for (PetscInt c = 0; c < s->n; c++) { /* ascending, as svmlight wants */
        if ((c - r + s->n * s->m) % s->n >= s->length(r, s->n)) continue;
        if (format == 2 && c > r) continue;
        if (!pass) nz++;
        else if (format == 3) fprintf(f, " %d:%.17g", (int)c + 1, Value(r, c));
        else fprintf(f, "%d %d %.17g\n", (int)r + 1, (int)c + 1, Value(r, c));
      }
      if (format == 3) fprintf(f, "\n");
    }
  }
  fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same product as on one rank */
static PetscErrorCode Multiply(Mat A, Vec *z, PetscReal *norm)
{
  Vec          x;
  PetscInt     rs, re;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, z));
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(VecGetArray(x, &a));
  for (PetscInt r = rs; r < re; r++) a[r - rs] = 1 + (double)(r % 13) / 16;
  PetscCall(VecRestoreArray(x, &a));
  PetscCall(MatMult(A, x, *z));
  if (norm) PetscCall(MatNorm(A, NORM_INFINITY, norm)); /* not all types have one */
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const Shape *s, const char what[], const char file[], Mat A)
{
  Mat                  R;
  Vec                  z, rz;
  PetscReal            norm;
  PetscInt             rs, re;
  const PetscScalar   *a, *b;
  MatGPUCSRFileOptions options;

  PetscFunctionBeginUser;
  PetscCall(MatGPUCSRFileOptionsInitialize(&options));
  PetscCall(MatCreate(PETSC_COMM_SELF, &R));
  PetscCall(MatSetType(R, MATAIJ));
  PetscCall(MatSetSizes(R, PETSC_DECIDE, PETSC_DECIDE, s->m, s->n));
  PetscCall(MatGPUCSRLoadFile(R, file, &options, NULL, NULL, NULL));
  PetscCall(Multiply(R, &rz, &norm));
  PetscCall(Multiply(A, &z, NULL));
  PetscCall(VecGetOwnershipRange(z, &rs, &re));
  PetscCall(VecGetArrayRead(z, &a));
  PetscCall(VecGetArrayRead(rz, &b));
  for (PetscInt r = rs; r < re; r++) PetscCheck(PetscAbsScalar(a[r - rs] - b[r]) <= TEST_C * PETSC_MACHINE_EPSILON * 2 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %d of the product is another", what, (int)r);
  PetscCall(VecRestoreArrayRead(z, &a));
  PetscCall(VecRestoreArrayRead(rz, &b));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&rz));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No rank has more than its share and the largest row, or block of rows */
static PetscErrorCode Balanced(const Shape *s, int format, const char what[], Mat A)
{
  PetscInt rs, re, m, n;
  double   mine = 0, all = 0, largest = 0, row = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCheck(s->m != s->n || m == n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d rows and %d columns on rank %d", what, (int)m, (int)n, (int)rank);
  PetscCheck(rs % s->bs == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: a block of rows is cut at row %d", what, (int)rs);
  for (PetscInt r = 0; r < s->m; r++) {
    double work = 1;

    for (PetscInt c = 0; c < s->n; c++) {
      const PetscInt i = format == 2 && c > r ? c : r, j = format == 2 && c > r ? r : c;

      work += (j - i + s->n * s->m) % s->n < s->length(i, s->n);
    }
    all += work;
    if (r >= rs && r < re) mine += work;
    row     = r % s->bs ? row + work : work;
    largest = PetscMax(largest, row);
  }
  PetscCheck(mine <= all / size + largest, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: rank %d has work %g of %g, where the largest row is %g", what, (int)rank, mine, all, largest);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* preset: the program has parted the rows itself */
static PetscErrorCode Case(const Shape *s, int format, PetscBool preset)
{
  char      file[64], what[128];
  int       pid = (int)getpid();
  Mat       A;
  PetscBool sbaij, binary;
  PetscInt  rows = PETSC_DECIDE, columns = PETSC_DECIDE, m, n;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(formats[format], "petsc", &binary));
  PetscCallMPI(MPI_Bcast(&pid, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  PetscCall(PetscSNPrintf(file, sizeof(file), "/tmp/t753-%d", pid));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s", s->name, formats[format]));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &sbaij, MATSEQSBAIJ, MATMPISBAIJ, ""));
  if ((format == 2 && s->m != s->n) || (sbaij && format != 2)) {
    PetscCall(MatDestroy(&A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!rank) PetscCall(Write(s, format, file));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  if (preset) {
    rows    = rank ? 0 : s->m;
    columns = rank ? 0 : s->n;
  }
  PetscCall(MatSetSizes(A, rows, columns, s->m, s->n));
  if (s->bs > 1) PetscCall(MatSetBlockSize(A, s->bs));
  PetscCall(MatGPUCSRLoadFile(A, file, NULL, NULL, NULL, NULL));
  PetscCall(MatGetLocalSize(A, &m, &n));
  if (preset) PetscCheck(m == rows && n == columns, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d rows and %d columns where %d and %d were set", what, (int)m, (int)n, (int)rows, (int)columns);
  else PetscCall(Balanced(s, format, what, A));
  PetscCall(Compare(s, what, file, A));
  PetscCall(MatDestroy(&A));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  if (!rank) (void)unlink(file);
  if (!rank && binary) {
    PetscCall(PetscStrlcat(file, ".info", sizeof(file)));
    (void)unlink(file);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(32));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsSetValue(NULL, "-gpucsr_file_balance", "entries"));
  for (int f = 0; f < (int)PETSC_STATIC_ARRAY_LENGTH(formats); f++)
    for (int k = 0; k < (int)PETSC_STATIC_ARRAY_LENGTH(shapes); k++)
      for (int preset = 0; preset < 2; preset++) PetscCall(Case(&shapes[k], f, (PetscBool)preset));
  PetscCall(PetscFinalize());
  return 0;
}
