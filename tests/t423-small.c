/*
  Backend auto leaves only products of a small matrix with host vectors to the CPU. Everything else runs on the device: products of larger matrices, products with a vector on the device, solvers,
  and all products if an option asks for cuda, a format or a precision. A pattern that grows and shrinks near the border stays where it is. On the CPU products are MATAIJ's to the last bit. Every
  product counts in one place: aij_products, or products.

  A stand-in for a GPU leaves products to the CPU only if the test says so; a GPU does by itself.

  //TEST name="standin" gpu=0 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend auto -mat_gpucsr_small_on_host -yes"
  //TEST name="late" gpu=0 args="-gpucsr_debug_standin 1 -gpucsr_debug_defer 0 -mat_gpucsr_backend auto -mat_gpucsr_small_on_host -yes"
  //TEST name="unasked" gpu=0 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend auto"
  //TEST name="gpu" gpu=1 args="-mat_gpucsr_backend auto -yes"
  //TEST name="off" gpu=1 args="-mat_gpucsr_backend auto -mat_gpucsr_small_on_host 0"
  //TEST name="host" gpu=0 args="-mat_gpucsr_backend host -mat_gpucsr_small_on_host -all"
*/
static char help[] = "Tests that backend auto leaves products of small matrices with host vectors to the CPU.\n";

#include <petscgpucsr.h>
#include "testing.h"

typedef struct {
  PetscBool yes, all; /* small products are the host's; all are */
} Expect;

/* Tridiagonal and k entries a row beside, in places that stay the same as k grows */
static PetscErrorCode Fill(Mat A, PetscInt k)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  for (PetscInt r = 0; r < n; r++) {
    PetscCall(MatSetValue(A, r, r, 4 + 1.0 / (1 + r), INSERT_VALUES));
    if (r) PetscCall(MatSetValue(A, r, r - 1, -1, INSERT_VALUES));
    if (r < n - 1) PetscCall(MatSetValue(A, r, r + 1, -1, INSERT_VALUES));
    for (PetscInt q = 0; q < k; q++) PetscCall(MatSetValue(A, r, (r + 3 + 2 * q) % n, 1e-3 / (1 + q), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of the type under test, with the options of the run and of its prefix */
static PetscErrorCode Create(PetscInt n, PetscInt k, const char type[], const char prefix[], Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, n, n, n, n));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSeqAIJSetPreallocation(*A, k + 3, NULL));
  PetscCall(MatSetOptionsPrefix(*A, prefix));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(Fill(*A, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* type NULL: a vector that the matrix makes */
static PetscErrorCode Vector(Mat A, const char type[], Vec *v)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  if (type) {
    PetscCall(VecCreate(PETSC_COMM_SELF, v));
    PetscCall(VecSetSizes(*v, n, n));
    PetscCall(VecSetType(*v, type));
  } else PetscCall(MatCreateVecs(A, v, NULL));
  for (PetscInt r = 0; r < n; r++) PetscCall(VecSetValue(*v, r, 1.0 + (PetscReal)(r % 17) / 8, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(*v));
  PetscCall(VecAssemblyEnd(*v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One of each kind of product: where, and right, to the last bit where MATAIJ computes it */
static PetscErrorCode Products(const char what[], Mat A, const char xtype[], const char ztype[], PetscBool onhost)
{
  MatGPUCSRInfo before, after;
  PetscInt      host, device;
  Mat           R;
  Vec           x, z, s;
  PetscReal     norm, scale;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &R));
  PetscCall(Vector(A, xtype, &x));
  PetscCall(Vector(A, ztype, &z));
  PetscCall(Vector(A, VECSEQ, &s));
  PetscCall(MatGPUCSRGetInfo(A, &before));
  for (int k = 0; k < 4; k++) {
    const PetscScalar *za;
    PetscScalar       *sa;
    PetscInt           n;
    Vec                xr;

    PetscCall(Vector(A, VECSEQ, &xr));
    PetscCall(VecSet(z, 2));
    PetscCall(VecSet(s, 2));
    if (k == 0) PetscCall(MatMult(A, x, z));
    else if (k == 1) PetscCall(MatMultTranspose(A, x, z));
    else if (k == 2) PetscCall(MatMultAdd(A, x, z, z));
    else PetscCall(MatMultTransposeAdd(A, x, z, z));
    if (k == 0) PetscCall(MatMult(R, xr, s));
    else if (k == 1) PetscCall(MatMultTranspose(R, xr, s));
    else if (k == 2) PetscCall(MatMultAdd(R, xr, s, s));
    else PetscCall(MatMultTransposeAdd(R, xr, s, s));
    PetscCall(VecNorm(s, NORM_INFINITY, &scale));
    PetscCall(VecGetSize(z, &n));
    PetscCall(VecGetArrayRead(z, &za));
    PetscCall(VecGetArray(s, &sa));
    for (PetscInt r = 0; r < n; r++) sa[r] -= za[r];
    PetscCall(VecRestoreArray(s, &sa));
    PetscCall(VecRestoreArrayRead(z, &za));
    PetscCall(VecNorm(s, NORM_INFINITY, &norm)); /* rows have less than 128 entries, all products of one sign but two */
    PetscCheck(norm <= (onhost ? 0 : TEST_C * PETSC_MACHINE_EPSILON * 4 * scale), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, product %d: off by %g", what, k, (double)norm);
    PetscCall(VecDestroy(&xr));
  }
  PetscCall(MatGPUCSRGetInfo(A, &after));
  host   = after.aij_products + after.aij_transpose_products - before.aij_products - before.aij_transpose_products;
  device = after.products + after.transpose_products - before.products - before.transpose_products;
  PetscCheck(host == (onhost ? 4 : 0) && device == (onhost ? 0 : 4), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: of 4 products %" PetscInt_FMT " on the host and %" PetscInt_FMT " on the device, should be on the %s", what, host, device, onhost ? "host" : "device");
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&s));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New entries a row in each row: the pattern is another one */
static PetscErrorCode Pattern(Mat A, PetscInt k)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJSetPreallocation(A, k + 3, NULL));
  PetscCall(Fill(A, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries a row from which on a new matrix of n rows goes to the device, by trying; between is where hysteresis shows */
static PetscErrorCode Border(PetscInt n, PetscInt *border)
{
  PetscInt lo = 0, hi = 100;

  PetscFunctionBegin;
  while (hi - lo > 1) {
    const PetscInt k = (lo + hi) / 2;
    Mat            A;
    Vec            x, z;
    MatGPUCSRInfo  info;

    PetscCall(Create(n, k, MATSEQAIJGPUCSR, NULL, &A));
    PetscCall(Vector(A, VECSEQ, &x));
    PetscCall(Vector(A, VECSEQ, &z));
    PetscCall(MatMult(A, x, z));
    PetscCall(MatGPUCSRGetInfo(A, &info));
    if (info.aij_products) lo = k;
    else hi = k;
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&A));
  }
  *border = hi;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Hysteresis(void)
{
  const PetscInt n = 1000;
  PetscInt       border;
  Mat            A;

  PetscFunctionBegin;
  PetscCall(Border(n, &border));
  PetscCheck(border > 3 && border < 90, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The border is at %" PetscInt_FMT " entries a row of 1000", border);
  PetscCall(Create(n, border - 1, MATSEQAIJGPUCSR, NULL, &A));
  PetscCall(Products("just below the border", A, VECSEQ, VECSEQ, PETSC_TRUE));
  PetscCall(Pattern(A, border + 1));
  PetscCall(Products("grown a little", A, VECSEQ, VECSEQ, PETSC_TRUE));
  PetscCall(Pattern(A, 3 * border));
  PetscCall(Products("grown a lot", A, VECSEQ, VECSEQ, PETSC_FALSE));
  PetscCall(Pattern(A, border + 1));
  PetscCall(Products("shrunk a little", A, VECSEQ, VECSEQ, PETSC_FALSE));
  PetscCall(Pattern(A, 1));
  PetscCall(Products("shrunk a lot", A, VECSEQ, VECSEQ, PETSC_TRUE));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solver(void)
{
  const PetscInt n = 60;
  Mat            A;
  Vec            b, x;
  KSP            ksp;
  PC             pc;
  MatGPUCSRInfo  info;

  PetscFunctionBegin;
  PetscCall(Create(n, 0, MATSEQAIJGPUCSR, NULL, &A));
  PetscCall(Vector(A, VECSEQ, &b));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, "gpucg"));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatGPUCSRGetInfo(A, &info));
  PetscCheck(info.builds == 1 && info.products > 0 && info.aij_products == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "gpucg of a small matrix made %" PetscInt_FMT " products on the device and %" PetscInt_FMT " on the host", info.products, info.aij_products);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const struct {
    const char *option, *value;
  } asked[] = {
    {"-d_mat_gpucsr_backend",               "cuda"        },
    {"-d_mat_gpucsr_format",                "csr"         },
    {"-d_mat_gpucsr_kernel",                "csr_adaptive"},
    {"-d_mat_gpucsr_transpose_format",      "csr"         },
    {"-d_mat_gpucsr_select",                "tree"        },
    {"-d_mat_gpucsr_transpose_at_assembly", "1"           },
    {"-d_mat_gpucsr_small_on_host",         "0"           },
  };
  Expect e = {PETSC_FALSE, PETSC_FALSE};
  Mat    A;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(64));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-yes", &e.yes, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-all", &e.all, NULL));
  if (e.all) e.yes = PETSC_TRUE;

  PetscCall(Create(60, 2, MATSEQAIJGPUCSR, NULL, &A));
  PetscCall(Products("small, host vectors", A, VECSEQ, VECSEQ, e.yes));
  if (!e.all) {
    PetscCall(Products("small, device vectors", A, VECSEQGPU, VECSEQGPU, PETSC_FALSE));
    PetscCall(Products("small, vectors of the matrix", A, NULL, NULL, PETSC_FALSE));
    PetscCall(Products("small, x on the host", A, VECSEQ, VECSEQGPU, PETSC_FALSE));
    PetscCall(Products("small, z on the host", A, VECSEQGPU, VECSEQ, PETSC_FALSE));
    PetscCall(Products("small, host vectors again", A, VECSEQ, VECSEQ, e.yes));
    PetscCall(MatScale(A, 3)); /* values that the device has are out of date, or not */
    PetscCall(Products("small and changed, host vectors", A, VECSEQ, VECSEQ, e.yes));
    PetscCall(Products("small and changed, device vectors", A, VECSEQGPU, VECSEQGPU, PETSC_FALSE));
  }
  PetscCall(MatDestroy(&A));
  if (!e.all) {
    PetscCall(Create(20000, 6, MATSEQAIJGPUCSR, NULL, &A));
    PetscCall(Products("large, host vectors", A, VECSEQ, VECSEQ, PETSC_FALSE));
    PetscCall(MatDestroy(&A));
    if (e.yes) { /* without any of these */
      PetscCall(PetscOptionsSetValue(NULL, "-d_mat_gpucsr_small_on_host", "1"));
      PetscCall(Create(60, 2, MATSEQAIJGPUCSR, "d_", &A));
      PetscCall(Products("nothing asked", A, VECSEQ, VECSEQ, PETSC_TRUE));
      PetscCall(MatDestroy(&A));
    }
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(asked); k++) {
      PetscCall(PetscOptionsSetValue(NULL, asked[k].option, asked[k].value));
      PetscCall(Create(60, 2, MATSEQAIJGPUCSR, "d_", &A));
      PetscCall(Products(asked[k].option, A, VECSEQ, VECSEQ, PETSC_FALSE));
      PetscCall(MatDestroy(&A));
      PetscCall(PetscOptionsClearValue(NULL, asked[k].option));
    }
    PetscCall(Solver());
    if (e.yes) PetscCall(Hysteresis());
  }
  PetscCall(PetscFinalize());
  return 0;
}
