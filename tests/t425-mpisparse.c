/*
  Products of sparse matrices on several ranks, A B, A^T B and P^T A P, against MATAIJ's: the same entries, and values within rounding. Factors get new values, the same pattern assembled again, or another
  pattern; the result is changed and used in between. Rows and columns are parted at random, some ranks have none. -device: how many products of each must have been computed on the devices; -1: some may not

  //TEST name="csr" nsize=2 args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -device 1"
  //TEST name="three" nsize=3 args="-mat_gpucsr_format sell -mat_gpucsr_product_least 0 -device 1"
  //TEST name="five" nsize=5 args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -device 1"
  //TEST name="separate" nsize=3 gpu=0 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_product_least 0 -device 1"
  //TEST name="late" nsize=2 gpu=0 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_product_least 0 -gpucsr_debug_defer {} -device 1" loop="0 7"
  //TEST name="apart" nsize={} gpu=0 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_product_least 0 -apart -cases 0" loop="2 3"
  //TEST name="small" nsize=2 args="-mat_gpucsr_format csr -mat_gpucsr_product_least 100000 -device 0"
  //TEST name="algorithm" nsize=2 args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -matptap_via scalable -matmatmult_via scalable -mattransposematmult_via nonscalable -device 0"
  //TEST name="limit" nsize=3 args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_product_least 0 -mat_gpucsr_memory_limit {} -cases 4" loop="20000 40000 80000 120000 200000 400000"
  //TEST name="faults" nsize=3 gpu=0 args="-mat_gpucsr_backend auto -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0 -cases 2 -products -gpucsr_debug_fault {}:rank=1" loop="memory:12 memory:25 memory:38 memory:51 memory:64 memory:90:on launch:5 launch:20 launch:33 copy:9 copy:25 copy:60 synchronize:15 device:50:on"
  //TEST name="refused" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0 -cases 1 -products -gpucsr_debug_fault memory:{}:rank=1" loop="2 5 15 17" fails="met by rank 1"
*/
static char help[] = "Tests products of sparse matrices on several ranks.\n";

#include <petscgpucsr.h>
#include "testing.h"
#include "sparse.h"

static PetscInt  device = -1;
static PetscBool alone  = PETSC_FALSE; /* products, and nothing else */

/* Rows of this rank, of n among all: at random; kind 1: the first rank has none, 2: all but the last have none */
static PetscErrorCode Part(PetscInt n, PetscInt kind, PetscInt seed, PetscInt *mine)
{
  PetscMPIInt rank, size;
  PetscInt    first = 0, last = 0;
  PetscReal   sum = 0, before = 0;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (PetscMPIInt r = 0; r < size; r++) sum += kind == 1 && r == 0 ? 0 : kind == 2 && r < size - 1 ? 0 : 0.1 + PetscAbsReal(ZooReal(seed, r, 5));
  for (PetscMPIInt r = 0; r <= rank; r++) {
    const PetscReal w = kind == 1 && r == 0 ? 0 : kind == 2 && r < size - 1 ? 0 : 0.1 + PetscAbsReal(ZooReal(seed, r, 5));

    first = (PetscInt)((PetscReal)n * before / sum);
    before += w;
    last = r == size - 1 ? n : (PetscInt)((PetscReal)n * before / sum);
  }
  *mine = last - first;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* k entries a row at most, near the diagonal and a few anywhere; pattern: other places; pass: other values */
static PetscErrorCode Fill(Mat M, PetscInt k, PetscInt seed, PetscInt pattern, PetscInt pass)
{
  PetscInt m, n, rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetSize(M, &m, &n));
  PetscCall(MatGetOwnershipRange(M, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt count = n ? (PetscInt)(ZooHash(seed, r, 3) % (uint64_t)(k + 1)) : 0;

    for (PetscInt q = 0; q < count; q++) {
      const PetscInt    at = (PetscInt)((double)r / (double)PetscMax(1, m) * (double)n), any = (PetscInt)(ZooHash(seed + pattern, r, 10 + q) % (uint64_t)PetscMax(1, n));
      const PetscInt    c = q % 4 == 3 ? any : (at + (PetscInt)(ZooHash(seed + pattern, r, 30 + q) % 9)) % n;
      const PetscScalar v = ZooScalar(seed + 100 * pass, r, q);

      PetscCall(MatSetValues(M, 1, &r, 1, &c, &v, ADD_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(M, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(M, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt m, n, mkind, nkind, mseed, nseed, k, seed;
} Shape;

static PetscErrorCode Make(const Shape *s, PetscBool ref, Mat *M)
{
  PetscInt m, n;

  PetscFunctionBegin;
  PetscCall(Part(s->m, s->mkind, s->mseed, &m));
  PetscCall(Part(s->n, s->nkind, s->nseed, &n));
  PetscCall(MatCreate(PETSC_COMM_WORLD, M));
  PetscCall(MatSetSizes(*M, m, n, s->m, s->n));
  if (ref) PetscCall(MatSetOptionsPrefix(*M, "ref_"));
  if (ref) PetscCall(MatSetType(*M, MATAIJ));
  else {
    char type[64];

    PetscCall(TestType(type, sizeof(type)));
    PetscCall(MatSetType(*M, type));
  }
  PetscCall(MatSetFromOptions(*M));
  PetscCall(MatXAIJSetPreallocation(*M, 1, NULL, NULL, NULL, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*M, s->k, NULL, s->k, NULL));
  PetscCall(Fill(*M, s->k, s->seed, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of this kind on the device so far: the result counts them */
static PetscErrorCode Times(Mat C, PetscInt times, const char what[], const char where[])
{
  MatGPUCSRInfo info;
  PetscBool     ours;

  PetscFunctionBegin;
  if (device < 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATMPIAIJGPUCSR, &ours));
  if (!ours) info.sparse_products = 0;
  else PetscCall(MatGPUCSRGetInfo(C, &info));
  PetscCheck(info.sparse_products == device * times, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: %" PetscInt_FMT " products on the device, should be %" PetscInt_FMT, where, what, info.sparse_products, device * times);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C + a D, with D's entries among C's; then one with an entry outside C, for which MATAIJ makes a new matrix */
static PetscErrorCode Add(Mat C, Mat R, Mat bound, const char where[])
{
  PetscInt rs, re, n;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(R, &rs, &re));
  PetscCall(MatGetSize(R, NULL, &n));
  for (int more = 0; more < 2; more++) {
    Mat D[2], M[2] = {C, R}, E[2], B;

    for (int ref = 0; ref < 2; ref++) {
      PetscInt rows, cols;
      MatType  type;

      PetscCall(MatGetType(M[ref], &type));
      PetscCall(MatGetLocalSize(R, &rows, &cols));
      PetscCall(MatCreate(PETSC_COMM_WORLD, &D[ref]));
      PetscCall(MatSetSizes(D[ref], rows, cols, PETSC_DETERMINE, PETSC_DETERMINE));
      if (ref) PetscCall(MatSetOptionsPrefix(D[ref], "ref_"));
      PetscCall(MatSetType(D[ref], type));
      PetscCall(MatSetFromOptions(D[ref]));
      PetscCall(MatXAIJSetPreallocation(D[ref], 1, NULL, NULL, NULL, NULL));
      PetscCall(MatMPIAIJSetPreallocation(D[ref], n, NULL, n, NULL));
      for (PetscInt r = rs; r < re; r++) {
        PetscInt        nc;
        const PetscInt *list;

        PetscCall(MatGetRow(R, r, &nc, &list, NULL));
        for (PetscInt k = 0; k < nc; k += 1 + (r + k) % 3) PetscCall(MatSetValue(D[ref], r, list[k], ZooScalar(5, r, k), INSERT_VALUES));
        PetscCall(MatRestoreRow(R, r, &nc, &list, NULL));
        if (more && r == rs) PetscCall(MatSetValue(D[ref], r, n / 2, 1.0, INSERT_VALUES));
      }
      PetscCall(MatAssemblyBegin(D[ref], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(D[ref], MAT_FINAL_ASSEMBLY));
      PetscCall(MatDuplicate(M[ref], MAT_COPY_VALUES, &E[ref]));
      PetscCall(MatAXPY(E[ref], -0.75, D[ref], more ? DIFFERENT_NONZERO_PATTERN : SUBSET_NONZERO_PATTERN));
    }
    PetscCall(TestAbs(D[1], &B));
    PetscCall(MatAXPY(B, 1.0, bound, DIFFERENT_NONZERO_PATTERN));
    PetscCall(Compare(E[0], E[1], B, more ? "C + D, which has more entries" : "C + D", where));
    PetscCall(TestProductsBound(E[0], E[1], B, PETSC_FALSE, where));
    PetscCall(MatDestroy(&B));
    for (int ref = 0; ref < 2; ref++) {
      PetscCall(MatDestroy(&D[ref]));
      PetscCall(MatDestroy(&E[ref]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All that is asked of one product; A and B are changed */
static PetscErrorCode Case(MatProductType t, const Shape *sa, const Shape *sb, const char where[])
{
  const char *name = MatProductTypes[t];
  Mat         A, RA, B, RB, C, R, b;

  PetscFunctionBegin;
  PetscCall(Make(sa, PETSC_FALSE, &A));
  PetscCall(Make(sa, PETSC_TRUE, &RA));
  PetscCall(Make(sb, PETSC_FALSE, &B));
  PetscCall(Make(sb, PETSC_TRUE, &RB));
  PetscCall(Product(t, A, B, MAT_INITIAL_MATRIX, &C));
  PetscCall(Times(C, 1, name, where));
  PetscCall(Product(t, RA, RB, MAT_INITIAL_MATRIX, &R));
  PetscCall(Bound(t, RA, RB, &b));
  PetscCall(Compare(C, R, b, name, where));
  if (!alone) PetscCall(TestProductsBound(C, R, b, PETSC_FALSE, where));
  if (!alone && device == 1) PetscCall(Add(C, R, b, where));
  PetscCall(MatDestroy(&b));
  for (PetscInt pass = 1; pass <= (device == 1 ? 3 : 2); pass++) { /* other values */
    if (pass == 3) {                                               /* the pattern set again, the same as before, which MATAIJ does not take */
      PetscCall(MatMPIAIJSetPreallocation(B, sb->k, NULL, sb->k, NULL));
      PetscCall(MatMPIAIJSetPreallocation(RB, sb->k, NULL, sb->k, NULL));
    } else {
      PetscCall(MatZeroEntries(B));
      PetscCall(MatZeroEntries(RB));
    }
    PetscCall(Fill(B, sb->k, sb->seed, 0, pass));
    PetscCall(Fill(RB, sb->k, sb->seed, 0, pass));
    PetscCall(MatScale(A, -1.25));
    PetscCall(MatScale(RA, -1.25));
    if (pass == 2) { /* the result is another's in between */
      PetscCall(MatScale(C, 3.0));
      PetscCall(MatZeroEntries(C));
    }
    PetscCall(Product(t, A, B, MAT_REUSE_MATRIX, &C));
    if (pass < 3) PetscCall(Times(C, pass + 1, name, where));
    PetscCall(MatDestroy(&R)); /* MATAIJ need not take a pattern set again */
    PetscCall(Product(t, RA, RB, MAT_INITIAL_MATRIX, &R));
    PetscCall(Bound(t, RA, RB, &b));
    PetscCall(Compare(C, R, b, "with new values", where));
    if (pass == 2 && !alone) PetscCall(TestProductsBound(C, R, b, PETSC_FALSE, where));
    PetscCall(MatDestroy(&b));
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&R));
  PetscCall(MatMPIAIJSetPreallocation(A, sa->k, NULL, sa->k, NULL)); /* another pattern */
  PetscCall(MatMPIAIJSetPreallocation(RA, sa->k, NULL, sa->k, NULL));
  PetscCall(Fill(A, sa->k, sa->seed, 1, 0));
  PetscCall(Fill(RA, sa->k, sa->seed, 1, 0));
  PetscCall(Product(t, A, B, MAT_INITIAL_MATRIX, &C));
  PetscCall(Times(C, 1, name, where));
  PetscCall(Product(t, RA, RB, MAT_INITIAL_MATRIX, &R));
  PetscCall(Bound(t, RA, RB, &b));
  PetscCall(Compare(C, R, b, "with another pattern", where));
  PetscCall(MatDestroy(&b));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&RA));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&RB));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows multiplied together are on different ranks: MATAIJ's error, on all ranks, without a hang */
static PetscErrorCode Apart(MatProductType t)
{
  static const PetscInt lots[] = {0, 2};
  PetscErrorCode        got[2];

  PetscFunctionBegin;
  for (int ours = 0; ours < 2; ours++) {
    const Shape A = {60, 60, 0, lots[t == MATPRODUCT_AB], 3, 4, 6, 9}, B = {60, 40, lots[t != MATPRODUCT_AB], 0, 5, 6, 4, 11};
    Mat         M[2], C                                                  = NULL;

    PetscCall(Make(&A, (PetscBool)!ours, &M[0]));
    PetscCall(Make(&B, (PetscBool)!ours, &M[1]));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    got[ours] = t == MATPRODUCT_AB    ? MatMatMult(M[0], M[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C)
                : t == MATPRODUCT_AtB ? MatTransposeMatMult(M[0], M[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C)
                                      : MatPtAP(M[0], M[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C);
    PetscCall(PetscPopErrorHandler());
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&M[k]));
  }
  PetscCheck(got[1] && got[1] == got[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s of matrices whose rows are apart: error %d, MATAIJ's is %d", MatProductTypes[t], (int)got[1], (int)got[0]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const MatProductType types[]    = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_PtAP};
  static const PetscInt       sizes[][2] = {
          {120, 30 },
          {77,  77 },
          {300, 41 },
          {9,   4  },
          {5,   200},
          {1,   1  },
          {60,  1  },
          {400, 130}
  };
  PetscInt  cases = 16;
  PetscBool apart;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-device", &device, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-cases", &cases, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-products", &alone, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-apart", &apart));
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(types) && apart; q++) PetscCall(Apart(types[q]));
  for (PetscInt c = 0; c < cases; c++) {
    const PetscInt m = sizes[c % 8][0], n = sizes[c % 8][1], other = 1 + (m + n) / 3;

    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(types); q++) {
      const PetscInt inner = types[q] == MATPRODUCT_PtAP ? m : types[q] == MATPRODUCT_AB ? other : n;
      const PetscInt ms = 7 * c, ns = types[q] == MATPRODUCT_PtAP ? ms : 7 * c + 1, mk = c % 3, nk = types[q] == MATPRODUCT_PtAP ? mk : (c + 1) % 3;
      const Shape    A = {m, inner, mk, nk, ms, ns, 6, 3 + c};
      const Shape    B = types[q] == MATPRODUCT_AtB ? (Shape){m, other, mk, c / 3 % 3, ms, 7 * c + 2, 4, 50 + c} : (Shape){inner, n, nk, c / 3 % 3, ns, 7 * c + 2, 4, 50 + c};
      char           where[64];

      PetscCall(PetscSNPrintf(where, sizeof(where), "case %" PetscInt_FMT ", %" PetscInt_FMT " x %" PetscInt_FMT, c, m, n));
      PetscCall(Case(types[q], &A, &B, where));
    }
  }
  PetscCall(PetscFinalize());
  return 0;
}
