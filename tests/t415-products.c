//TEST name="default"
//TEST name="format" args="-mat_gpucsr_format {}" loop="csr sell"
//TEST name="ranks" nsize=2 args="-mat_gpucsr_format csr"
//TEST name="ranks3" nsize=3
//TEST name="standin" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -vec_type gpu" gpu=0
//TEST name="ranks_standin" nsize=2 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format csr" gpu=0

/*
  For all kinds of products and types of factors, a product that PETSc has for MATAIJ works for the type under test, with the same result, also with new values. Values are small integers, so that results are equal to the bit.

    build/tests/t415-products -dll_append build/lib/libpetscgpucsr.so [-mat_gpucsr_...]
*/
#include "testing.h"
#include <petsc/private/matimpl.h>

#define N 40

/* The kinds of factors: the type under test and MATAIJ, and matrices made from them */
typedef enum {
  SPARSE,
  PLAIN, /* MATAIJ in both */
  TRANSPOSED,
  PLAIN_TRANSPOSED,
  DENSE,
  STRANGER, /* a type that knows what to do with any other, as MATPYTHON does */
  KINDS
} Kind;

static const char *const names[KINDS] = {"A", "aij", "T(A)", "T(aij)", "dense", "stranger"};

/* A foreign type takes the products of the matrix inside; like MATPYTHON, it answers for any type */
static PetscErrorCode StrangerNumeric(Mat C)
{
  Mat inner, D;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)C, "result", (PetscObject *)&inner));
  PetscCall(MatProductNumeric(inner));
  PetscCall(MatConvert(inner, MATDENSE, MAT_INITIAL_MATRIX, &D));
  PetscCall(MatCopy(D, C, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StrangerSymbolic(Mat C)
{
  Mat                M[3], inner;
  Mat_Product *const p    = C->product;
  Mat *const         f[3] = {&p->A, &p->B, &p->C};
  PetscInt           m, n, lm, ln;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    M[k] = *f[k];
    if (!M[k]) continue;
    PetscCall(PetscObjectQuery((PetscObject)M[k], "held", (PetscObject *)&inner));
    if (inner) M[k] = inner;
  }
  PetscCall(MatProductCreate(M[0], M[1], M[2], &inner));
  PetscCall(MatProductSetType(inner, p->type));
  PetscCall(MatProductSetFromOptions(inner));
  PetscCall(MatProductSymbolic(inner));
  PetscCall(MatGetSize(inner, &m, &n));
  PetscCall(MatGetLocalSize(inner, &lm, &ln));
  PetscCall(MatSetSizes(C, lm, ln, m, n));
  PetscCall(MatSetType(C, MATDENSE));
  PetscCall(MatSetUp(C));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscObjectCompose((PetscObject)C, "result", (PetscObject)inner));
  PetscCall(MatDestroy(&inner));
  C->ops->productnumeric = StrangerNumeric;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StrangerSetFromOptions(Mat C)
{
  PetscFunctionBegin;
  C->ops->productsymbolic = StrangerSymbolic;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* seed: of the numbers; base: the matrix whose values change */
static PetscErrorCode FactorCreate(Kind kind, PetscInt seed, PetscBool ref, Mat *A, Mat *base)
{
  const PetscBool plain = (PetscBool)(ref || kind == PLAIN || kind == PLAIN_TRANSPOSED), dense = (PetscBool)(kind == DENSE);
  PetscInt        rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, base));
  PetscCall(MatSetSizes(*base, PETSC_DECIDE, PETSC_DECIDE, N, N));
  if (plain || dense) PetscCall(MatSetOptionsPrefix(*base, "ref_"));
  PetscCall(MatSetType(*base, dense ? MATDENSE : (plain || kind == STRANGER ? MATAIJ : "gpucsr")));
  PetscCall(MatSetFromOptions(*base));
  PetscCall(MatSetUp(*base));
  PetscCall(MatGetOwnershipRange(*base, &rs, &re));
  for (PetscInt r = rs; r < re; r++)
    for (PetscInt k = 0; k < (dense ? N : 5); k++) PetscCall(MatSetValue(*base, r, dense ? k : (r * 7 + k * k + seed) % N, (PetscScalar)((r + 3 * k + seed) % 5 - 1), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*base, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*base, MAT_FINAL_ASSEMBLY));
  if (kind == TRANSPOSED || kind == PLAIN_TRANSPOSED) PetscCall(MatCreateTranspose(*base, A));
  else if (kind == STRANGER) {
    PetscInt m, n;

    PetscCall(MatGetLocalSize(*base, &m, &n));
    PetscCall(MatCreateShell(PETSC_COMM_WORLD, m, n, N, N, NULL, A));
    PetscCall(MatSetUp(*A));
    PetscCall(PetscObjectCompose((PetscObject)*A, "held", (PetscObject)*base));
    PetscCall(PetscObjectComposeFunction((PetscObject)*A, "MatProductSetFromOptions_anytype_C", StrangerSetFromOptions));
  } else {
    *A = *base;
    PetscCall(PetscObjectReference((PetscObject)*A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C as columns of numbers: its products with unit vectors */
static PetscErrorCode Numbers(Mat C, PetscScalar *v)
{
  Vec                x, y;
  PetscInt           m;
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(C, &x, &y));
  PetscCall(VecGetLocalSize(y, &m));
  for (PetscInt c = 0; c < N; c++) {
    PetscCall(VecSet(x, 0.0));
    PetscCall(VecSetValue(x, c, 1.0, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(x));
    PetscCall(VecAssemblyEnd(x));
    PetscCall(MatMult(C, x, y));
    PetscCall(VecGetArrayRead(y, &a));
    PetscCall(PetscArraycpy(v + c * m, a, m));
    PetscCall(VecRestoreArrayRead(y, &a));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = op(A) x of the matrix that a factor is made of */
static PetscErrorCode Apply(Kind kind, Mat base, PetscBool transpose, Vec x, Vec y)
{
  PetscFunctionBegin;
  if (transpose == (PetscBool)(kind == TRANSPOSED || kind == PLAIN_TRANSPOSED)) PetscCall(MatMult(base, x, y));
  else PetscCall(MatMultTranspose(base, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same numbers by products with vectors alone; all matrices here are square and dealt alike */
static PetscErrorCode Truth(MatProductType type, const Kind kind[3], PetscScalar scale, PetscScalar *v)
{
  static const struct {
    MatProductType type;
    int            n, factor[3];
    PetscBool      transpose[3];
  } steps[] = {
    {MATPRODUCT_AB,   2, {1, 0},    {PETSC_FALSE, PETSC_FALSE}             },
    {MATPRODUCT_AtB,  2, {1, 0},    {PETSC_FALSE, PETSC_TRUE}              },
    {MATPRODUCT_ABt,  2, {1, 0},    {PETSC_TRUE, PETSC_FALSE}              },
    {MATPRODUCT_PtAP, 3, {1, 0, 1}, {PETSC_FALSE, PETSC_FALSE, PETSC_TRUE} },
    {MATPRODUCT_RARt, 3, {1, 0, 1}, {PETSC_TRUE, PETSC_FALSE, PETSC_FALSE} },
    {MATPRODUCT_ABC,  3, {2, 1, 0}, {PETSC_FALSE, PETSC_FALSE, PETSC_FALSE}}
  };
  Mat                M[3], base[3];
  Vec                x, y;
  PetscInt           m;
  const PetscScalar *a;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) PetscCall(FactorCreate(kind[k], 11 * k, PETSC_TRUE, &M[k], &base[k]));
  PetscCall(MatCreateVecs(base[0], &x, &y));
  PetscCall(VecGetLocalSize(x, &m));
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(steps); t++)
    for (PetscInt c = 0; c < N && steps[t].type == type; c++) {
      PetscCall(VecSet(x, 0.0));
      PetscCall(VecSetValue(x, c, scale, INSERT_VALUES));
      PetscCall(VecAssemblyBegin(x));
      PetscCall(VecAssemblyEnd(x));
      for (int k = 0; k < steps[t].n; k++) {
        PetscCall(Apply(kind[steps[t].factor[k]], base[steps[t].factor[k]], steps[t].transpose[k], x, y));
        PetscCall(VecCopy(y, x));
      }
      PetscCall(VecGetArrayRead(x, &a));
      PetscCall(PetscArraycpy(v + c * m, a, m));
      PetscCall(VecRestoreArrayRead(x, &a));
    }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatDestroy(&M[k]));
    PetscCall(MatDestroy(&base[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(MatProductType type, Mat M[3], Mat base, PetscScalar *v, PetscScalar *w)
{
  Mat C;

  PetscFunctionBegin;
  PetscCall(MatProductCreate(M[0], M[1], type == MATPRODUCT_ABC ? M[2] : NULL, &C));
  PetscCall(MatProductSetType(C, type));
  PetscCall(MatSetOptionsPrefix(C, "ref_"));
  PetscCall(MatProductSetFromOptions(C));
  PetscCheck(C->ops->productsymbolic, PETSC_COMM_WORLD, PETSC_ERR_SUP, "No such product");
  PetscCall(MatProductSymbolic(C));
  PetscCall(MatProductNumeric(C));
  PetscCall(Numbers(C, v));
  PetscCall(MatScale(base, 2.0));
  PetscCall(MatProductReplaceMats(NULL, NULL, NULL, C));
  PetscCall(MatProductNumeric(C));
  PetscCall(Numbers(C, w));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With the type under test or with MATAIJ. works: known to work on all ranks (*works is PETSC_TRUE: an error is a failure) */
static PetscErrorCode Try(MatProductType type, const Kind kind[3], PetscBool ref, PetscBool *works, PetscScalar *v, PetscScalar *w)
{
  Mat            M[3], base[3];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) PetscCall(FactorCreate(kind[k], 11 * k, ref, &M[k], &base[k]));
  if (ref) {
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = Product(type, M, base[0], v, w);
    PetscCall(PetscPopErrorHandler());
    *works = (PetscBool)!ierr;
  } else PetscCall(Product(type, M, base[0], v, w));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatDestroy(&M[k]));
    PetscCall(MatDestroy(&base[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products in which PETSc itself crashes: on several ranks A B C with a transpose behind A, or a dense A (a function that is NULL). Or products that
  PETSc does not offer: T(A) of two MATAIJ, for which it asks hypre, which refuses A's name.
*/
static PetscBool Hopeless(MatProductType type, const Kind kind[3])
{
  PetscMPIInt size;
  PetscBool   transposed = PETSC_FALSE;

  if (MPI_Comm_size(PETSC_COMM_WORLD, &size)) return PETSC_TRUE;
  if (type != MATPRODUCT_ABC) return PETSC_FALSE;
  if (kind[0] == TRANSPOSED && kind[1] == PLAIN && kind[2] == PLAIN) return PETSC_TRUE;
  for (int k = 1; k < 3; k++) transposed = (PetscBool)(transposed || kind[k] == TRANSPOSED || kind[k] == PLAIN_TRANSPOSED);
  return (PetscBool)(size > 1 && (transposed || kind[0] == DENSE));
}

/* On all ranks */
static PetscErrorCode Same(PetscScalar *const v[2], PetscScalar *const w[2], PetscBool *same)
{
  PetscMPIInt size, mine = 1, all;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int k = 0; k < 2 && mine; k++) {
    PetscCall(PetscMemcmp(v[k], w[k], sizeof(PetscScalar) * (size_t)(N / size * N), same));
    mine = *same ? 1 : 0;
  }
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  *same = (PetscBool)(all == 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP, MATPRODUCT_RARt, MATPRODUCT_ABC};
  PetscScalar                *v[4];
  PetscInt                    worked = 0, tried = 0;
  PetscBool                   verbose = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-verbose", &verbose, NULL));
  for (int k = 0; k < 4; k++) PetscCall(PetscCalloc1(N * N, &v[k]));
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++)
    for (int q = 0; q < KINDS * KINDS * (types[t] == MATPRODUCT_ABC ? KINDS : 1); q++) {
      const Kind kind[3] = {(Kind)(q % KINDS), (Kind)(q / KINDS % KINDS), (Kind)(q / KINDS / KINDS)};
      PetscBool  ours    = PETSC_FALSE, works;

      for (int k = 0; k < (types[t] == MATPRODUCT_ABC ? 3 : 2); k++) ours = (PetscBool)(ours || kind[k] == SPARSE || kind[k] == TRANSPOSED);
      if (!ours || Hopeless(types[t], kind)) continue;
      tried++;
      for (int k = 0; k < 2; k++) PetscCall(Truth(types[t], kind, k ? 2.0 : 1.0, v[k]));
      PetscCall(Try(types[t], kind, PETSC_TRUE, &works, v[2], v[3]));
      if (works) PetscCall(Same(v, v + 2, &works)); /* where PETSc itself is wrong there is nothing to compare */
      if (!works) continue;
      worked++;
      if (verbose) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s of %s, %s, %s\n", MatProductTypes[types[t]], names[kind[0]], names[kind[1]], names[kind[2]]));
      PetscCall(Try(types[t], kind, PETSC_FALSE, &works, v[2], v[3]));
      PetscCall(Same(v, v + 2, &works));
      PetscCheck(works, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s of %s, %s, %s is another", MatProductTypes[types[t]], names[kind[0]], names[kind[1]], names[kind[2]]);
    }
  PetscCheck(worked > 60, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Of %" PetscInt_FMT " products only %" PetscInt_FMT " work with MATAIJ", tried, worked);
  for (int k = 0; k < 4; k++) PetscCall(PetscFree(v[k]));
  PetscCall(PetscFinalize());
  return 0;
}
