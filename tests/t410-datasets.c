//TEST name="default"
//TEST name="format" args="-mat_gpucsr_format {}" loop="csr sell bitdense"
//TEST name="single" args="-mat_gpucsr_format csr -mat_gpucsr_precision single"
//TEST name="ranks" nsize=3 args="-mat_gpucsr_format csr"
//TEST name="kernel" args="-mat_gpucsr_kernel {} -mat_gpucsr_transpose_kernel {}" loop="{kernels}" gpu=1
//TEST name="aij" nsize=2 args="-mat_type aij" load=0

/*
  The real matrices: each matrix of share/datasets in PETSc's binary format is loaded as the type under test, and every product is compared with
  MATAIJ, unless the format refuses the matrix. With a square matrix GMRES takes the same path as with MATAIJ.

    build/tests/t410-datasets -dll_append build/lib/libpetscgpucsr.so [-dir share/datasets] [-mat_type gpucsr] [-mat_gpucsr_...]
*/
#include "testing.h"
#include <dirent.h>

static PetscErrorCode Load(const char path[], PetscBool ref, Mat *A)
{
  PetscViewer viewer;
  char        type[64];

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  if (ref) PetscCall(MatSetOptionsPrefix(*A, "ref_"));
  PetscCall(MatSetType(*A, ref ? MATAIJ : type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, path, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(*A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ten steps of GMRES: how far the residual has come */
static PetscErrorCode Gmres(Mat A, PetscReal *left)
{
  KSP       ksp;
  PC        pc;
  Vec       b, x;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPGMRES));
  PetscCall(KSPSetTolerances(ksp, PETSC_SMALL, PETSC_DEFAULT, PETSC_DEFAULT, 10));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetResidualNorm(ksp, left));
  *left /= norm;
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char           dir[PETSC_MAX_PATH_LEN] = "share/datasets";
  DIR           *d;
  struct dirent *entry;
  PetscInt       files = 0, refused = 0;
  PetscReal      eps   = 0.0;
  PetscBool      takes = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(32)); /* as the files were written */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-dir", dir, sizeof(dir), NULL));
  PetscCall(TestEps(&eps));
  d = opendir(dir);
  PetscCheck(d, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot open the folder %s", dir);
  while ((entry = readdir(d))) {
    char      path[2 * PETSC_MAX_PATH_LEN];
    PetscBool binary;
    FILE     *f;
    unsigned  id[4];
    Mat       A, R;
    PetscInt  m, n;

    PetscCall(PetscStrendswith(entry->d_name, ".petsc", &binary));
    if (!binary) continue;
    PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s", dir, entry->d_name));
    f = fopen(path, "rb");
    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot open %s", path);
    for (PetscInt k = 0; k < 4; k++) id[k] = (unsigned)fgetc(f);
    fclose(f);
    if ((id[0] << 24 | id[1] << 16 | id[2] << 8 | id[3]) != MAT_FILE_CLASSID) continue; /* a vector */
    PetscCall(Load(path, PETSC_TRUE, &R));
    PetscCall(MatGetSize(R, &m, &n));
    PetscCall(Load(path, PETSC_FALSE, &A));
    PetscCall(TestTakes(A, &takes));
    if (!takes) {
      refused++;
      PetscCall(MatDestroy(&A));
      PetscCall(MatDestroy(&R));
      continue;
    }
    files++;
    PetscCall(TestProducts(A, R, PETSC_FALSE, entry->d_name));
    if (m == n) {
      PetscReal left, ref;

      PetscCall(Gmres(A, &left));
      PetscCall(Gmres(R, &ref));
      /* the square root of the rounding: ten steps with an ill-conditioned matrix may enlarge rounding so far */
      PetscCheck(PetscAbsReal(left - ref) <= PetscSqrtReal(eps), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: GMRES leaves %g of the residual, with aij %g", entry->d_name, (double)left, (double)ref);
    }
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  closedir(d);
  if (!files && refused) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "skipped: none of the matrices is for this format or kernel\n"));
  else PetscCheck(files, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "No matrix in %s", dir);
  PetscCall(PetscFinalize());
  return 0;
}
