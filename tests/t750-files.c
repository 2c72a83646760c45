//TEST name="petsc" args="-f share/datasets/add32.petsc -reference share/datasets/add32.petsc"
//TEST name="petsc.ranks3" nsize=3 args="-f share/datasets/bcsstk16.petsc -reference share/datasets/bcsstk16.petsc -mat_type {}" loop="aij gpucsr dense sbaij baij sell"
//TEST name="type" args="-f share/datasets/bcsstk16.petsc -reference share/datasets/bcsstk16.petsc -mat_type {}" loop="aij gpucsr dense sbaij baij sell aijperm"
//TEST name="prefix" args="-f share/datasets/ash219.mtx -in_gpucsr_file_format market -in_gpucsr_file_threads 3 -prefix in_"
//TEST name="base" args="-f share/datasets/ash219.mtx -gpucsr_file_base 2" fails="the first index is 0 or 1, not 2"
//TEST name="sizes" args="-f share/datasets/ash219.mtx -rows 12" fails="share/datasets/ash219.mtx: has 219 rows where the matrix has 12"
//TEST name="columns" args="-f share/datasets/ash219.mtx -columns 12" fails="share/datasets/ash219.mtx: has 85 columns where the matrix has 12"
//TEST name="missing" args="-f nowhere.mtx" fails="nowhere.mtx: cannot be opened: No such file or directory"
//TEST name="missing.ranks2" nsize=2 args="-f nowhere.mtx" fails="nowhere.mtx: cannot be opened: No such file or directory"

/*
  MatGPUCSRLoadFile(): a matrix of any type from a file, on any number of ranks, against MatLoad(); or printed.

    build/tests/t750-files -f FILE [-mat_type TYPE] [-reference FILE.petsc] [-print]
    build/tests/t750-files -cases LIST        for t751-readers.sh: a file and its options a line; the matrix, or the errors, are printed after "case" and a count
*/
#include "testing.h"
#include <petscgpucsr.h>
#include <string.h>

/* ROW [LABEL [QUERY]]: COLUMN=VALUE ..., row by row */
static PetscErrorCode Print(Mat A, Vec y, Vec q)
{
  PetscInt    rstart, rend, m, n;
  PetscScalar a, *yv = NULL, *qv = NULL;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  if (y) PetscCall(VecGetArray(y, &yv));
  if (q) PetscCall(VecGetArray(q, &qv));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%" PetscInt_FMT "x%" PetscInt_FMT, m, n));
  for (PetscInt i = rstart; i < rend; i++) {
    PetscInt           nz;
    const PetscInt    *j;
    const PetscScalar *v;

    PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, "; %" PetscInt_FMT, i));
    for (int k = 0; k < 2; k++) {
      if (!(k ? qv : yv)) continue;
      a = (k ? qv : yv)[i - rstart];
      PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, " %.17g", (double)PetscRealPart(a)));
    }
    PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, ":"));
    PetscCall(MatGetRow(A, i, &nz, &j, &v));
    for (PetscInt k = 0; k < nz; k++) {
      PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, " %" PetscInt_FMT "=%.17g", j[k], (double)PetscRealPart(v[k])));
      if (PetscDefined(USE_COMPLEX)) PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, "%+.17gi", (double)PetscImaginaryPart(v[k])));
    }
    PetscCall(MatRestoreRow(A, i, &nz, &j, &v));
  }
  PetscCall(PetscSynchronizedFlush(PETSC_COMM_WORLD, stdout));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  if (y) PetscCall(VecRestoreArray(y, &yv));
  if (q) PetscCall(VecRestoreArray(q, &qv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All errors, one on each line; errors of all ranks once */
static char errors[8192];

static PetscErrorCode KeepError(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType type, const char *message, void *ctx)
{
  const size_t used = strlen(errors);
  PetscMPIInt  rank;

  MPI_Comm_rank(comm, &rank);
  if (type == PETSC_ERROR_INITIAL && !rank) snprintf(errors + used, sizeof(errors) - used, "error: %s\n", message);
  return n;
}

/* One file of a list, with its own options; its errors leave the ranks ready for the next */
static PetscErrorCode Case(const char file[], const char words[])
{
  Mat               A;
  Vec               y = NULL, q = NULL;
  PetscInt          m = PETSC_DECIDE, n = PETSC_DECIDE;
  PetscOptions      own;
  PetscErrorCode    ierr;
  MatGPUCSRFileInfo info;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsCreate(&own));
  PetscCall(PetscOptionsInsertString(own, words));
  PetscCall(PetscOptionsPush(own));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rows", &m, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &n, NULL));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, m, n));
  PetscCall(MatSetFromOptions(A));
  errors[0] = 0;
  PetscCall(PetscPushErrorHandler(KeepError, NULL));
  ierr = MatGPUCSRLoadFile(A, file, NULL, &y, &q, &info);
  PetscCall(PetscPopErrorHandler());
  if (!ierr) {
    PetscCall(Print(A, y, q));
    if (info.skipped) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "skipped %" PetscInt64_FMT " from line %" PetscInt64_FMT "\n", info.skipped, info.line));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&q));
  } else { /* a matrix whose sizes were known by then can still be used, and is empty */
    PetscCall(MatGetSize(A, &m, &n));
    if (m >= 0 && n >= 0) {
      MatInfo matinfo;

      PetscCall(MatSetUp(A));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &matinfo));
      PetscCheck(matinfo.nz_used == 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %g entries are left", file, matinfo.nz_used);
    }
  }
  PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, "%s", errors));
  PetscCall(PetscSynchronizedFlush(PETSC_COMM_WORLD, stdout));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsPop());
  PetscCall(PetscOptionsDestroy(&own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each rank reads the list */
static PetscErrorCode Cases(const char list[])
{
  FILE *fp = fopen(list, "r");
  char  line[1024];

  PetscFunctionBeginUser;
  PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be read", list);
  for (int k = 1; fgets(line, sizeof(line), fp); k++) {
    char *words = line + strcspn(line, " \n");

    line[strcspn(line, "\n")] = 0;
    if (*words) *words++ = 0;
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "case %d\n", k));
    PetscCall(Case(line, words));
  }
  fclose(fp);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char              file[PETSC_MAX_PATH_LEN] = "", prefix[64] = "";
  Mat               A, R, B;
  Vec               y, q, x, z, w;
  PetscViewer       viewer;
  PetscBool         set, print = PETSC_FALSE, same;
  PetscInt          m = PETSC_DECIDE, n = PETSC_DECIDE;
  PetscReal         norm, error;
  MatGPUCSRFileInfo info;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-cases", file, sizeof(file), &set));
  if (set) {
    PetscCall(Cases(file));
    PetscCall(PetscFinalize());
    return 0;
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-f", file, sizeof(file), NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-reference", &set));
  if (set) PetscCall(TestRequireReal(32)); /* as PETSc wrote it */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-prefix", prefix, sizeof(prefix), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-print", &print, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rows", &m, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &n, NULL));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, m, n));
  if (prefix[0]) PetscCall(MatSetOptionsPrefix(A, prefix));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatGPUCSRLoadFile(A, file, NULL, &y, &q, &info));
  if (print) {
    PetscCall(Print(A, y, q));
    if (info.skipped) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "skipped %" PetscInt64_FMT " from line %" PetscInt64_FMT "\n", info.skipped, info.line));
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-reference", file, sizeof(file), &set));
  if (set) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &R));
    PetscCall(MatSetType(R, MATAIJ));
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(R, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &same, MATSEQAIJ, MATMPIAIJ, ""));
    if (same) {
      PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
      PetscCall(MatEqual(B, R, &same));
      PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: is not what MatLoad() reads", file);
      PetscCall(MatDestroy(&B));
    }
    PetscCall(MatCreateVecs(R, &x, &z));
    PetscCall(MatCreateVecs(A, NULL, &w));
    PetscCall(TestFill(x, 1, PETSC_FALSE));
    PetscCall(MatMult(R, x, z));
    PetscCall(MatMult(A, x, w));
    PetscCall(VecNorm(z, NORM_INFINITY, &norm));
    PetscCall(VecAXPY(w, -1, z));
    PetscCall(VecNorm(w, NORM_INFINITY, &error));
    PetscCheck(error <= 1e3 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the product differs by %g of %g", file, (double)error, (double)norm);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&w));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&q));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
