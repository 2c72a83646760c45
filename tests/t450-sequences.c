//TEST name="default" args="-sequences 300"
//TEST name="separate" args="-sequences 300 -vec_gpu_separate -vec_type gpu"
//TEST name="format" args="-sequences 100 -vec_gpu_separate -mat_gpucsr_format {}" loop="csr sell sell_sorted coo hyb jad ell"
//TEST name="lossless" args="-sequences 100 -mat_gpucsr_format csr -mat_gpucsr_precision auto -mat_gpucsr_transpose_at_assembly"
//TEST name="standin" args="-sequences 200 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu" gpu=0
//TEST name="late" args="-sequences 200 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 1" gpu=0
//TEST name="delay" args="-sequences 50 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_delay 1" gpu=0
//TEST name="delay" args="-sequences 50 -gpucsr_debug_delay {}" loop="1 2" gpu=1
//TEST name="seqaij" args="-sequences 200 -mat_gpucsr_format csr -mat_type aij -mat_seqaij_type seqaijgpucsr"
//TEST name="ranks2" nsize=2 args="-sequences 60 -vec_gpu_separate -vec_type gpu -mat_gpucsr_format csr"
//TEST name="ranks3" nsize=3 args="-sequences 60 -mat_gpucsr_format sell"
//TEST name="seqaij2" nsize=2 args="-sequences 40 -mat_gpucsr_format csr -mat_type aij -mat_seqaij_type seqaijgpucsr"
//TEST name="aij" args="-sequences 20 -mat_type aij" load=0

/*
  A differential fuzzer: random sequences of operations of Mat, Vec and KSP, done by a world of the types under test and by one of MATAIJ and
  VECSTANDARD. All numbers are small integers (and Inf and NaN in a few vectors), so every sum is exact and results are equal to the bit.

    build/tests/t450-sequences [-sequences 500] [-seed 1] [-length 25] [-only k] [-keep 0,1,4,...] [-seconds 60]     (make fuzz)

  A sequence that fails is shortened as long as it still fails, and printed with the command that runs it again (-only, -keep).
*/
#include "testing.h"
#include <string.h>

#define VECS     3 /* of each of the two spaces */
#define MATS     5 /* two square of space 0 (the last symmetric positive definite), 0 by 1, 1 by 0, and square of space 1 */
#define SPD      4
#define PRODUCTS 3
#define LENGTH   64
#define SIZE     40      /* rows on a rank are fewer */
#define LARGE    65536.0 /* entries beyond are made small again, long before sums stop being exact */

/* The spaces of the rows and columns of each matrix */
static const int rowspace[MATS] = {0, 0, 1, 1, 0}, colspace[MATS] = {0, 1, 0, 1, 0};

typedef struct {
  PetscBool          ref;
  Vec                v[2][VECS];
  PetscScalar       *open[2][VECS];   /* arrays that the program holds, to write */
  const PetscScalar *look[2][VECS];   /* and to read; where a rank has no entries, an array may be NULL, */
  PetscBool          out[2][2][VECS]; /* so this says which are out: open, look */
  PetscScalar       *placed[2][VECS]; /* the program's own, in place of the vector's */
  Mat                m[MATS];
  Mat                kept[PRODUCTS]; /* products of matrices, kept for new values */
  Mat               *gathered;       /* all of m[3] on each rank, kept likewise */
  KSP                ksp;
  PC                 pc;
} World;

/* What both worlds share */
static struct {
  MPI_Comm    comm;
  PetscInt    local[2], size[2], start[2];
  PetscMPIInt rank, ranks;
  uint32_t    seed;
  PetscBool   finite[2][VECS], small[2][VECS]; /* vectors, before a step */
  PetscBool   grown;                           /* entries of a matrix may be much larger */
  PetscScalar solved[SIZE];                    /* by the reference's factors */
  uint64_t    factors[PRODUCTS + 1];           /* patterns of the factors, or of the gathered matrix, when the result was kept */
  PetscBool   again[PRODUCTS + 1];             /* they are the same */
  char        seqtype[64];                     /* what -mat_seqaij_type says */
  World       w[2];                            /* the reference is 1 */
} g;

typedef struct {
  int op, p[4];
} Step;

/* Small integers: the same on all ranks, in both worlds */
static uint32_t Hash(uint32_t a, uint32_t b, uint32_t c)
{
  uint32_t h = a * 2654435761u ^ (b + 0x9e3779b9u) * 2246822519u ^ (c + 0x85ebca6bu) * 3266489917u;

  h = (h ^ (h >> 15)) * 2246822519u;
  h = (h ^ (h >> 13)) * 3266489917u;
  return h ^ (h >> 16);
}

static PetscScalar Small(uint32_t a, uint32_t b, uint32_t c)
{
  return (PetscScalar)((int)(Hash(a, b, c) % 7) - 3);
}

static PetscBool Same(PetscScalar x, PetscScalar y)
{
  return (PetscBool)(x == y || (x != x && y != y));
}

/* What PETSc makes of a reference's matrices has no prefix: -mat_seqaij_type is for the other world */
static PetscErrorCode Enter(PetscBool ref)
{
  PetscFunctionBegin;
  if (!g.seqtype[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (ref) PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  else PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", g.seqtype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is every entry of each of the reference's vectors finite, and small? */
static PetscErrorCode Look(void)
{
  int is[2][2][VECS];

  PetscFunctionBegin;
  for (int s = 0; s < 2; s++)
    for (int k = 0; k < VECS; k++) {
      const PetscScalar *a;

      is[0][s][k] = is[1][s][k] = 1;
      PetscCall(VecGetArrayRead(g.w[1].v[s][k], &a));
      for (PetscInt i = 0; i < g.local[s]; i++) {
        if (PetscIsInfOrNanScalar(a[i])) is[0][s][k] = 0;
        else if (PetscAbsScalar(a[i]) > LARGE) is[1][s][k] = 0;
      }
      PetscCall(VecRestoreArrayRead(g.w[1].v[s][k], &a));
    }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, is, 4 * VECS, MPI_INT, MPI_MIN, g.comm));
  for (int s = 0; s < 2; s++)
    for (int k = 0; k < VECS; k++) {
      g.finite[s][k] = (PetscBool)is[0][s][k];
      g.small[s][k]  = (PetscBool)is[1][s][k];
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Making things */

static PetscErrorCode MakeVec(World *w, int s, PetscInt salt, Vec *v)
{
  char type[32] = "";

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", type, sizeof(type), NULL));
  if (w->ref || (salt % 3 == 1 && !type[0])) {
    PetscCall(VecCreate(g.comm, v));
    PetscCall(VecSetSizes(*v, g.local[s], g.size[s]));
    PetscCall(VecSetType(*v, VECSTANDARD));
  } else if (salt % 3 == 2) {
    if (s) PetscCall(MatCreateVecs(w->m[1], v, NULL));
    else PetscCall(MatCreateVecs(w->m[1], NULL, v));
  } else {
    PetscCall(VecCreate(g.comm, v));
    PetscCall(VecSetSizes(*v, g.local[s], g.size[s]));
    PetscCall(VecSetFromOptions(*v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By VecSetValues(), from one rank to all where there are several */
static PetscErrorCode FillVec(Vec v, int s, uint32_t salt)
{
  PetscFunctionBegin;
  for (PetscInt i = 0; i < g.size[s]; i++)
    if (i % g.ranks == g.rank) PetscCall(VecSetValue(v, i, Small(g.seed, salt, (uint32_t)i), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(v));
  PetscCall(VecAssemblyEnd(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values of A, at random places or (again) where there are entries already; symmetric and positive definite: I and a graph's Laplacian */
static PetscErrorCode FillMat(Mat A, int k, uint32_t salt)
{
  const PetscInt m = g.size[rowspace[k]], n = g.size[colspace[k]], r0 = g.start[rowspace[k]], r1 = r0 + g.local[rowspace[k]];

  PetscFunctionBegin;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt i = r0; i < r1; i++) {
    const int count = (int)(Hash(g.seed ^ 77, salt, (uint32_t)i) % 5);

    if (k == SPD) PetscCall(MatSetValue(A, i, i, 1.0, ADD_VALUES));
    if (!m || !n) continue;
    for (int q = 0; q < count; q++) {
      const PetscInt j = (PetscInt)(Hash(salt, (uint32_t)i, (uint32_t)q) % (uint32_t)n);

      if (k != SPD) PetscCall(MatSetValue(A, i, j, Small(salt, (uint32_t)i, (uint32_t)j), INSERT_VALUES));
      else {
        const PetscInt    at[2]     = {i, j};
        const PetscScalar number[4] = {1.0, -1.0, -1.0, 1.0};

        if (i != j) PetscCall(MatSetValues(A, 2, at, 2, at, number, ADD_VALUES));
      }
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakeMat(World *w, int k, uint32_t salt, Mat *A)
{
  char type[64];

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(MatCreate(g.comm, A));
  PetscCall(MatSetSizes(*A, g.local[rowspace[k]], g.local[colspace[k]], g.size[rowspace[k]], g.size[colspace[k]]));
  if (w->ref) PetscCall(MatSetOptionsPrefix(*A, "ref_"));
  PetscCall(MatSetType(*A, w->ref ? MATAIJ : type));
  if (!w->ref) PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(FillMat(*A, k, salt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Operations. p are any numbers; s is a space, a, b, c vectors of it, k a matrix */

#define SPACE int s = p[0] % 2
#define ONE   SPACE, a = p[1] % VECS
#define TWO   ONE, b = (a + 1 + p[2] % (VECS - 1)) % VECS
#define A_    w->v[s][a]
#define B_    w->v[s][b]

/* A matrix k, a vector a of its columns and b of its rows (another one than a, if the matrix is square) */
#define PRODUCT int k = p[0] % MATS, r = rowspace[k], c = colspace[k], a = p[1] % VECS, b = (a + 1 + p[2] % (VECS - 1)) % VECS

typedef PetscErrorCode Operation(World *w, const int p[4], double *result);

static PetscErrorCode Op_fill(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, FillVec(A_, s, (uint32_t)p[3]);
}

static PetscErrorCode Op_set(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, VecSet(A_, (PetscScalar)(p[2] % 5 - 2));
}

static PetscErrorCode Op_zero(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, VecZeroEntries(A_);
}

static PetscErrorCode Op_axpy(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecAXPY(A_, (PetscScalar)(p[3] % 5 - 2), B_);
}

static PetscErrorCode Op_aypx(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecAYPX(A_, (PetscScalar)(p[3] % 5 - 2), B_);
}

static PetscErrorCode Op_axpby(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecAXPBY(A_, (PetscScalar)(p[3] % 3 - 1), (PetscScalar)(p[3] / 3 % 3 - 1), B_);
}

static PetscErrorCode Op_waxpy(World *w, const int p[4], double *result)
{
  TWO;
  const int c = 3 - a - b;

  return (void)result, VecWAXPY(w->v[s][c], (PetscScalar)(p[3] % 5 - 2), A_, B_);
}

static PetscErrorCode Op_maxpy(World *w, const int p[4], double *result)
{
  TWO;
  const int         c       = 3 - a - b;
  const PetscScalar f[2]    = {(PetscScalar)(p[3] % 5 - 2), 1.0};
  Vec               from[2] = {A_, B_};

  return (void)result, VecMAXPY(w->v[s][c], 2, f, from);
}

static PetscErrorCode Op_times(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecPointwiseMult(w->v[s][3 - a - b], A_, B_);
}

static PetscErrorCode Op_copy(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecCopy(A_, B_);
}

static PetscErrorCode Op_swap(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecSwap(A_, B_);
}

static PetscErrorCode Op_scale(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, VecScale(A_, (PetscScalar)(p[3] % 5 - 2));
}

static PetscErrorCode Op_shift(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, VecShift(A_, (PetscScalar)(p[3] % 5 - 2));
}

static PetscErrorCode Op_dot(World *w, const int p[4], double *result)
{
  TWO;
  PetscScalar dot;

  PetscFunctionBegin;
  PetscCall(VecDot(A_, B_, &dot));
  *result = (double)PetscRealPart(dot);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_norm(World *w, const int p[4], double *result)
{
  ONE;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(VecNorm(A_, p[3] % 2 ? NORM_1 : NORM_INFINITY, &norm));
  if (g.finite[s][a]) *result = (double)norm; /* MPI_MAX may lose a NaN of PETSc's */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_sum(World *w, const int p[4], double *result)
{
  ONE;
  PetscScalar sum;

  PetscFunctionBegin;
  PetscCall(VecSum(A_, &sum));
  *result = (double)PetscRealPart(sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_strange(World *w, const int p[4], double *result)
{
  ONE;
  PetscScalar *x;

  PetscFunctionBegin;
  (void)result;
  PetscCall(VecGetArray(A_, &x));
  if (g.local[s]) x[p[2] % g.local[s]] = p[3] % 3 ? (p[3] % 3 == 1 ? PETSC_INFINITY : -PETSC_INFINITY) : (PetscScalar)NAN;
  PetscCall(VecRestoreArray(A_, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_write(World *w, const int p[4], double *result)
{
  ONE;
  PetscScalar *x;

  PetscFunctionBegin;
  (void)result;
  if (p[2] % 2) PetscCall(VecGetArrayWrite(A_, &x));
  else PetscCall(VecGetArray(A_, &x));
  for (PetscInt i = 0; i < g.local[s]; i++)
    if (p[2] % 2 || i % 2) x[i] = Small((uint32_t)p[3], (uint32_t)(g.start[s] + i), 5);
  if (p[2] % 2) PetscCall(VecRestoreArrayWrite(A_, &x));
  else PetscCall(VecRestoreArray(A_, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program takes an array, writes through it from time to time, and gives it back later or at the end */
static PetscErrorCode Op_open(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  (void)result;
  if (!w->out[0][s][a]) PetscCall(VecGetArray(A_, &w->open[s][a]));
  w->out[0][s][a] = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_poke(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  (void)result;
  if (w->open[s][a])
    for (PetscInt i = p[2] % 3; i < g.local[s]; i += 3) w->open[s][a][i] = Small((uint32_t)p[3], (uint32_t)(g.start[s] + i), 9);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_close(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  (void)result;
  if (w->out[0][s][a]) PetscCall(VecRestoreArray(A_, &w->open[s][a]));
  w->open[s][a] = NULL;
  if (w->out[1][s][a]) PetscCall(VecRestoreArrayRead(A_, &w->look[s][a]));
  w->look[s][a]   = NULL;
  w->out[0][s][a] = w->out[1][s][a] = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_look(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  if (!w->out[1][s][a]) PetscCall(VecGetArrayRead(A_, &w->look[s][a]));
  w->out[1][s][a] = PETSC_TRUE;
  for (PetscInt i = 0; i < g.local[s]; i++) *result += (double)PetscRealPart(w->look[s][a][i]) * (double)(i + 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a program sees through pointers that it holds */
static PetscErrorCode Op_see(World *w, const int p[4], double *result)
{
  ONE;
  const PetscScalar *x = w->open[s][a] ? w->open[s][a] : w->look[s][a];

  for (PetscInt i = 0; x && i < g.local[s]; i++) *result += (double)PetscRealPart(x[i]) * (double)(i + 1);
  return PETSC_SUCCESS;
}

static PetscErrorCode Op_place(World *w, const int p[4], double *result)
{
  ONE;
  PetscScalar *x;

  PetscFunctionBegin;
  (void)result;
  if (w->placed[s][a] || w->out[0][s][a] || w->out[1][s][a]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(g.local[s] + 1, &x));
  for (PetscInt i = 0; i < g.local[s]; i++) x[i] = Small((uint32_t)p[3], (uint32_t)(g.start[s] + i), 11);
  PetscCall(VecPlaceArray(A_, x));
  w->placed[s][a] = x;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_reset(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  if (!w->placed[s][a] || w->out[0][s][a] || w->out[1][s][a]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecResetArray(A_));
  for (PetscInt i = 0; i < g.local[s]; i++) *result += (double)PetscRealPart(w->placed[s][a][i]) * (double)(i + 1);
  PetscCall(PetscFree(w->placed[s][a]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Free to go: nothing of it is out */
static PetscBool Free(World *w, int s, int a)
{
  return (PetscBool)(!w->out[0][s][a] && !w->out[1][s][a] && !w->placed[s][a]);
}

static PetscErrorCode Op_duplicate(World *w, const int p[4], double *result)
{
  ONE;
  Vec copy;

  PetscFunctionBegin;
  (void)result;
  PetscCall(VecDuplicate(A_, &copy));
  PetscCall(VecCopy(A_, copy));
  if (Free(w, s, a)) {
    PetscCall(VecDestroy(&A_));
    A_ = copy;
  } else PetscCall(VecDestroy(&copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_renew(World *w, const int p[4], double *result)
{
  ONE;
  Vec v;

  PetscFunctionBegin;
  (void)result;
  if (!Free(w, s, a)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MakeVec(w, s, p[2], &v));
  PetscCall(VecCopy(A_, v));
  PetscCall(VecDestroy(&A_));
  A_ = v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A piece, worked on alone */
static PetscErrorCode Op_piece(World *w, const int p[4], double *result)
{
  ONE;
  const PetscInt n = g.local[s], first = n ? p[2] % n : 0, step = 1 + p[3] % 2;
  IS             is;
  Vec            sub;
  PetscReal      norm;

  PetscFunctionBegin;
  if (w->out[0][s][a] || w->out[1][s][a]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ISCreateStride(g.comm, n ? (n - first - 1) / step + 1 : 0, g.start[s] + first, step, &is));
  PetscCall(VecGetSubVector(A_, is, &sub));
  if (p[3] % 5 == 0) { /* all of it anew, on the device alone */
    Vec copy;

    PetscCall(VecDuplicate(sub, &copy));
    PetscCall(VecSet(copy, (PetscScalar)(p[2] % 7)));
    PetscCall(VecCopy(copy, sub));
    PetscCall(VecDestroy(&copy));
  } else PetscCall(VecScale(sub, -1.0));
  if (p[3] % 7 < 3) { /* a piece of the piece */
    PetscInt start, nsub;
    IS       inner;
    Vec      subsub;

    PetscCall(VecGetOwnershipRange(sub, &start, NULL));
    PetscCall(VecGetLocalSize(sub, &nsub));
    PetscCall(ISCreateStride(g.comm, nsub / 2, start + nsub - nsub / 2, 1, &inner));
    PetscCall(VecGetSubVector(sub, inner, &subsub));
    PetscCall(VecShift(subsub, 1.0));
    PetscCall(VecRestoreSubVector(sub, inner, &subsub));
    PetscCall(ISDestroy(&inner));
  }
  PetscCall(VecShift(sub, (PetscScalar)(p[3] % 3)));
  PetscCall(VecNorm(sub, NORM_1, &norm));
  *result = (double)norm;
  PetscCall(VecRestoreSubVector(A_, is, &sub));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_mult(World *w, const int p[4], double *result)
{
  PRODUCT;
  return (void)result, MatMult(w->m[k], w->v[c][a], w->v[r][b]);
}

static PetscErrorCode Op_transposed(World *w, const int p[4], double *result)
{
  PRODUCT;
  return (void)result, MatMultTranspose(w->m[k], w->v[r][b], w->v[c][a]);
}

static PetscErrorCode Op_multadd(World *w, const int p[4], double *result)
{
  PRODUCT;
  const int z = r == c ? (p[3] % 2 ? b : 3 - a - b) : p[3] % VECS;

  return (void)result, MatMultAdd(w->m[k], w->v[c][a], w->v[r][b], w->v[r][z]);
}

static PetscErrorCode Op_transposedadd(World *w, const int p[4], double *result)
{
  PRODUCT;
  const int z = r == c ? (p[3] % 2 ? b : 3 - a - b) : p[3] % VECS;

  return (void)result, MatMultTransposeAdd(w->m[k], w->v[r][a], w->v[c][b], w->v[c][z]);
}

static PetscErrorCode Op_diagonal(World *w, const int p[4], double *result)
{
  PRODUCT;
  (void)a;
  if (r != c) return PETSC_SUCCESS;
  return (void)result, MatGetDiagonal(w->m[k], w->v[r][b]);
}

static PetscErrorCode Op_values(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);

  return (void)result, FillMat(w->m[k], k, (uint32_t)(p[1] % 3)); /* sometimes the places it has */
}

static PetscErrorCode Op_scalemat(World *w, const int p[4], double *result)
{
  return (void)result, MatScale(w->m[p[0] % MATS], p[0] % MATS == SPD ? 2.0 : (PetscScalar)(p[1] % 4 - 2));
}

static PetscErrorCode Op_shiftmat(World *w, const int p[4], double *result)
{
  const int k = p[0] % MATS;

  PetscFunctionBegin;
  (void)result;
  if (rowspace[k] != colspace[k]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatShift(w->m[k], 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_diagonalscale(World *w, const int p[4], double *result)
{
  PRODUCT;

  PetscFunctionBegin;
  (void)result;
  g.grown = PETSC_TRUE;
  if (k != SPD && g.finite[r][b] && g.finite[c][a]) PetscCall(MatDiagonalScale(w->m[k], p[3] % 3 ? w->v[r][b] : NULL, p[3] % 3 == 1 ? NULL : w->v[c][a]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_zerorows(World *w, const int p[4], double *result)
{
  const int      k = p[0] % (MATS - 1), r = rowspace[k];
  const PetscInt row = g.start[r] + (g.local[r] ? p[1] % g.local[r] : 0);

  PetscFunctionBegin;
  (void)result;
  PetscCall(MatSetOption(w->m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatZeroRows(w->m[k], g.local[r] ? 1 : 0, &row, r == colspace[k] ? (PetscScalar)(p[2] % 3) : 0.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_zeromat(World *w, const int p[4], double *result)
{
  return (void)result, MatZeroEntries(w->m[p[0] % (MATS - 1)]);
}

/* Past PETSc's count of changes, but for the last line */
static PetscErrorCode Op_array(World *w, const int p[4], double *result)
{
  const int    k     = p[0] % (MATS - 1);
  Mat          block = w->m[k];
  PetscScalar *a;
  MatInfo      info;

  PetscFunctionBegin;
  (void)result;
  if (g.ranks > 1) PetscCall(MatMPIAIJGetSeqAIJ(w->m[k], &block, NULL, NULL));
  PetscCall(MatGetInfo(block, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArray(block, &a));
  for (PetscInt q = 0; q < (PetscInt)info.nz_used; q++) a[q] = Small((uint32_t)p[1], (uint32_t)q, 3);
  PetscCall(MatSeqAIJRestoreArray(block, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's products of several processes cannot take new values once a factor is another matrix */
static PetscErrorCode Another(World *w)
{
  PetscFunctionBegin;
  for (int k = 0; k < PRODUCTS && g.ranks > 1; k++) PetscCall(MatDestroy(&w->kept[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One entry, where there is one: most of the matrix is as it was */
static PetscErrorCode Op_one(World *w, const int p[4], double *result)
{
  const int      k = p[0] % (MATS - 1), r = rowspace[k];
  const PetscInt row = g.start[r] + (g.local[r] ? p[1] % g.local[r] : 0);
  PetscInt       n = 0, column = 0;

  PetscFunctionBegin;
  (void)result;
  if (g.local[r]) {
    const PetscInt *c;

    PetscCall(MatGetRow(w->m[k], row, &n, &c, NULL));
    if (n) column = c[p[2] % n];
    PetscCall(MatRestoreRow(w->m[k], row, &n, &c, NULL));
  }
  if (n) PetscCall(MatSetValue(w->m[k], row, column, (PetscScalar)(p[3] % 7 - 3), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(w->m[k], MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(w->m[k], MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_axpymat(World *w, const int p[4], double *result)
{
  const int k = p[0] % 2 ? 1 : 0;
  Mat       B;

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  if (p[1] % 2) PetscCall(MatDuplicate(w->m[k], MAT_COPY_VALUES, &B));
  else PetscCall(MakeMat(w, k, (uint32_t)p[2], &B));
  PetscCall(MatAXPY(w->m[k], (PetscScalar)(p[3] % 3 - 1), B, p[1] % 2 ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_copymat(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);
  Mat       B;

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  PetscCall(MakeMat(w, k, (uint32_t)p[2], &B));
  if (p[1] % 2) {
    Mat D;

    PetscCall(MatDuplicate(w->m[k], p[3] % 2 ? MAT_COPY_VALUES : MAT_DO_NOT_COPY_VALUES, &D));
    PetscCall(MatScale(D, 2.0));
    PetscCall(MatCopy(D, w->m[k], SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&D));
  } else PetscCall(MatCopy(B, w->m[k], DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_replacemat(World *w, const int p[4], double *result)
{
  const int k = p[0] % (MATS - 1);
  Mat       B;

  PetscFunctionBegin;
  (void)result;
  PetscCall(Another(w));
  if (p[1] % 2) PetscCall(MakeMat(w, k, (uint32_t)p[2], &B));
  else {
    PetscCall(MatDuplicate(w->m[k], MAT_COPY_VALUES, &B));
    PetscCall(MatScale(B, 3.0));
  }
  if (p[3] % 2) { /* with a plan of its own */
    Vec x, y;

    PetscCall(MatCreateVecs(B, &x, &y));
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(B, x, y));
    PetscCall(MatMultTranspose(B, y, x));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  }
  PetscCall(MatHeaderReplace(w->m[k], &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To MATAIJ and back, or to its own type */
static PetscErrorCode Op_convert(World *w, const int p[4], double *result)
{
  const int k = p[0] % MATS;
  char      type[64];

  PetscFunctionBegin;
  (void)result;
  PetscCall(TestType(type, sizeof(type)));
  if (g.seqtype[0]) PetscFunctionReturn(PETSC_SUCCESS); /* PETSc cannot transpose a plain MATSEQAIJ when -mat_seqaij_type names another type */
  if (p[1] % 2) PetscCall(MatConvert(w->m[k], MATAIJ, MAT_INPLACE_MATRIX, &w->m[k]));
  PetscCall(MatConvert(w->m[k], w->ref ? MATAIJ : type, MAT_INPLACE_MATRIX, &w->m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_transpose(World *w, const int p[4], double *result)
{
  PetscFunctionBegin;
  (void)result;
  if (p[0] % 3 == 0) {
    PetscCall(MatTranspose(w->m[0], MAT_INPLACE_MATRIX, &w->m[0]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatDestroy(&w->m[2]));
  PetscCall(MatTranspose(w->m[1], MAT_INITIAL_MATRIX, &w->m[2]));
  for (int k = 0; k < PRODUCTS; k++) PetscCall(MatDestroy(&w->kept[k])); /* they had that matrix */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two matrices have the patterns of the time when the result was kept: both worlds follow the reference, which comes first */
static PetscErrorCode SamePatterns(World *w, int a, int b, int which)
{
  const int at[2] = {a, b};
  uint64_t  h     = 1469598103934665603u;

  PetscFunctionBegin;
  if (!w->ref) PetscFunctionReturn(PETSC_SUCCESS);
  for (int q = 0; q < 2; q++)
    for (PetscInt r = g.start[rowspace[at[q]]]; r < g.start[rowspace[at[q]]] + g.local[rowspace[at[q]]]; r++) {
      const PetscInt *c;
      PetscInt        n;

      PetscCall(MatGetRow(w->m[at[q]], r, &n, &c, NULL));
      h = (h ^ (uint64_t)(n + 1)) * 1099511628211u;
      for (PetscInt k = 0; k < n; k++) h = (h ^ (uint64_t)(c[k] + 1)) * 1099511628211u;
      PetscCall(MatRestoreRow(w->m[at[q]], r, &n, &c, NULL));
    }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &h, 1, MPI_UINT64_T, MPI_BXOR, g.comm));
  g.again[which]   = (PetscBool)(h == g.factors[which]);
  g.factors[which] = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product that was made before, of new values */
static PetscErrorCode Op_keep(World *w, const int p[4], double *result)
{
  static const int a[PRODUCTS] = {1, 0, 2}, b[PRODUCTS] = {2, 1, 2}, space[PRODUCTS] = {0, 1, 0};
  const int        k = p[0] % PRODUCTS, x = p[1] % VECS, y = (x + 1) % VECS;
  MatReuse         reuse;

  PetscFunctionBegin;
  (void)result;
  PetscCall(SamePatterns(w, a[k], b[k], k));
  if (!g.again[k]) PetscCall(MatDestroy(&w->kept[k]));
  reuse = w->kept[k] ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;
  if (k == 0) PetscCall(MatMatMult(w->m[1], w->m[2], reuse, PETSC_DEFAULT, &w->kept[k]));
  else if (k == 1) PetscCall(MatPtAP(w->m[0], w->m[1], reuse, PETSC_DEFAULT, &w->kept[k]));
  else PetscCall(MatTransposeMatMult(w->m[2], w->m[2], reuse, PETSC_DEFAULT, &w->kept[k]));
  if (p[2] % 2) PetscCall(MatMult(w->kept[k], w->v[space[k]][x], w->v[space[k]][y]));
  else PetscCall(MatMultTranspose(w->kept[k], w->v[space[k]][x], w->v[space[k]][y]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The whole of a matrix on each rank, which PETSc fills again without counting the change: its product is the sum that its rows say */
static PetscErrorCode Op_gather(World *w, const int p[4], double *result)
{
  const PetscInt m = g.size[1];
  Vec            x, y;
  PetscScalar   *sum;
  IS             is;
  Mat            S;

  PetscFunctionBegin;
  PetscCall(SamePatterns(w, 3, 3, PRODUCTS));
  if (!g.again[PRODUCTS] && w->gathered) PetscCall(MatDestroySubMatrices(1, &w->gathered));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, m, 0, 1, &is));
  PetscCall(MatCreateSubMatrices(w->m[3], 1, &is, &is, w->gathered ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &w->gathered));
  PetscCall(ISDestroy(&is));
  S = w->gathered[0];
  PetscCall(MatCreateVecs(S, &x, &y));
  for (PetscInt k = 0; k < m; k++) PetscCall(VecSetValue(x, k, Small((uint32_t)p[1], (uint32_t)k, 13), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  if (p[2] % 2) PetscCall(MatMult(S, x, y));
  else PetscCall(MatMultTranspose(S, x, y));
  PetscCall(PetscCalloc1(m + 1, &sum));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt    *c;
    const PetscScalar *a;
    PetscInt           n;

    PetscCall(MatGetRow(S, r, &n, &c, &a));
    for (PetscInt k = 0; k < n; k++) sum[p[2] % 2 ? r : c[k]] += a[k] * Small((uint32_t)p[1], (uint32_t)(p[2] % 2 ? c[k] : r), 13);
    PetscCall(MatRestoreRow(S, r, &n, &c, &a));
  }
  *result = 1;
  for (PetscInt k = 0; k < m; k++) {
    PetscScalar v;

    PetscCall(VecGetValues(y, 1, &k, &v));
    if (!Same(v, sum[k])) *result = 0;
  }
  PetscCall(PetscFree(sum));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sparse products become the matrices of the program */
static PetscErrorCode Op_matmat(World *w, const int p[4], double *result)
{
  Mat C;

  PetscFunctionBegin;
  (void)result;
  if (p[0] % 3 == 0) PetscCall(MatMatMult(w->m[1], w->m[2], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C)); /* 0 by 0 */
  else if (p[0] % 3 == 1) PetscCall(MatPtAP(w->m[3], w->m[2], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  else PetscCall(MatTransposeMatMult(w->m[2], w->m[2], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMult(C, w->v[0][0], w->v[0][1]));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_dense(World *w, const int p[4], double *result)
{
  PRODUCT;
  Mat          D, C;
  PetscScalar *d;
  PetscInt     lda, columns = 1 + p[3] % 3;

  PetscFunctionBegin;
  (void)a, (void)b;
  PetscCall(MatCreateDense(g.comm, g.local[c], PETSC_DECIDE, g.size[c], columns, NULL, &D));
  PetscCall(MatDenseGetLDA(D, &lda));
  PetscCall(MatDenseGetArray(D, &d));
  for (PetscInt j = 0; j < columns; j++)
    for (PetscInt i = 0; i < g.local[c]; i++) d[i + j * lda] = Small((uint32_t)p[3], (uint32_t)(g.start[c] + i), (uint32_t)j);
  PetscCall(MatDenseRestoreArray(D, &d));
  PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatMatMult(w->m[k], D, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatScale(w->m[k], k == SPD ? 1.0 : -1.0));
  PetscCall(MatMatMult(w->m[k], D, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatDenseGetLDA(C, &lda));
  PetscCall(MatDenseGetArray(C, &d));
  for (PetscInt j = 0; j < columns; j++)
    for (PetscInt i = 0; i < g.local[r]; i++) *result += (double)PetscRealPart(d[i + j * lda]) * (double)(i + 3 * j + 1);
  PetscCall(MatDenseRestoreArray(C, &d));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An edge more in the graph, so that the pattern may change, and stays positive definite */
static PetscErrorCode Op_edge(World *w, const int p[4], double *result)
{
  const PetscInt    at[2]     = {g.size[0] ? p[0] % g.size[0] : 0, g.size[0] ? p[1] % g.size[0] : 0};
  const PetscScalar number[4] = {1.0, -1.0, -1.0, 1.0};

  PetscFunctionBegin;
  (void)result;
  if (!g.rank && at[0] != at[1]) PetscCall(MatSetValues(w->m[SPD], 2, at, 2, at, number, ADD_VALUES));
  PetscCall(MatAssemblyBegin(w->m[SPD], MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(w->m[SPD], MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A x = b with known x, which replaces a result that is near enough. The least eigenvalue of A is at least 1: the error is not larger than the residual */
static PetscErrorCode Op_solve(World *w, const int p[4], double *result)
{
  const int          a = p[0] % VECS, b = (a + 1) % VECS, c = (a + 2) % VECS, kind = p[1] % 4;
  const char        *pc[] = {PCJACOBI, PCNONE, PCJACOBI, PCBJACOBI};
  const PetscReal    rtol = 1e-11;
  PetscReal          norm, error;
  KSPConvergedReason reason;
  PC                 prec;
  PetscBool          ours;
  char               type[64];
  const char        *set;

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(PetscStrendswith(type, "gpucsr", &ours));
  if (!g.finite[0][a] || !g.size[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (!w->ksp) {
    PetscCall(KSPCreate(g.comm, &w->ksp));
    PetscCall(KSPSetOptionsPrefix(w->ksp, w->ref ? "ref_" : "fuzz_"));
    PetscCall(KSPSetOperators(w->ksp, w->m[SPD], w->m[SPD]));
    PetscCall(KSPSetTolerances(w->ksp, rtol, 1e-300, 1e30, 10000));
  }
  if (p[2] % 2) PetscCall(KSPSetType(w->ksp, w->ref || !ours ? KSPCG : p[2] % 4 == 1 ? "gpucg" : "gpubcgs"));
  PetscCall(KSPGetType(w->ksp, &set));
  if (!set) PetscCall(KSPSetType(w->ksp, KSPCG));
  PetscCall(KSPGetPC(w->ksp, &prec));
  if (p[3] % 2) PetscCall(PCSetType(prec, pc[kind]));
  PetscCall(PCGetType(prec, &set));
  if (!set) PetscCall(PCSetType(prec, PCJACOBI));
  if (p[3] % 3 == 0) PetscCall(KSPSetOperators(w->ksp, w->m[SPD], w->m[SPD]));
  PetscCall(KSPSetInitialGuessNonzero(w->ksp, (PetscBool)(p[3] % 5 == 1)));
  if (!g.finite[0][c]) PetscCall(VecSet(w->v[0][c], 0.0));
  PetscCall(MatMult(w->m[SPD], w->v[0][a], w->v[0][b]));
  PetscCall(VecNorm(w->v[0][b], NORM_INFINITY, &norm));
  PetscCall(VecNorm(w->v[0][c], NORM_INFINITY, &error));
  if (error > 16 * norm) PetscCall(VecSet(w->v[0][c], 1.0)); /* rounding of such a guess is more than the tolerance */
  PetscCall(VecNorm(w->v[0][b], NORM_2, &norm));
  PetscCall(KSPSolve(w->ksp, w->v[0][b], w->v[0][c]));
  PetscCall(KSPGetConvergedReason(w->ksp, &reason));
  PetscCall(VecAXPY(w->v[0][c], -1.0, w->v[0][a]));
  PetscCall(VecNorm(w->v[0][c], NORM_2, &error));
  PetscCall(VecCopy(w->v[0][a], w->v[0][c]));
  /* BiCGStab's residual is a recurrence; rounding is far below the factor */
  *result = norm == 0.0 || (reason > 0 && error <= 100 * rtol * norm) || (reason < 0 && p[2] % 2 && p[2] % 4 != 1) ? 1 : 0; /* BiCGStab may break down */ /* without a right-hand side the first residual is what counts */
  if (w->ref) *result = 1;                                                                                                                                /* nothing is asked of PETSc */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factorization and its solve, perhaps of new values, beside the reference's. The matrix is an M-matrix whose row sums are at least 1, so neither
   inverse is larger than 1 */
static PetscErrorCode Op_factor(World *w, const int p[4], double *result)
{
  const char        *type[] = {PCILU, PCICC, PCLU};
  const int          a      = p[0] % VECS;
  Vec                z;
  PetscReal          norm, size;
  const PetscScalar *read;
  PCType             now;

  PetscFunctionBegin;
  if (!g.finite[0][a] || g.ranks > 1) PetscFunctionReturn(PETSC_SUCCESS);
  if (!w->pc) {
    PetscCall(PCCreate(g.comm, &w->pc));
    PetscCall(PCSetOptionsPrefix(w->pc, w->ref ? "ref_" : "fuzz_"));
  }
  PetscCall(PCGetType(w->pc, &now));
  if (!now || p[2] % 2) PetscCall(PCSetType(w->pc, type[p[1] % 3]));
  PetscCall(PCFactorSetLevels(w->pc, p[2] / 2 % 2));
  PetscCall(PCSetOperators(w->pc, w->m[SPD], w->m[SPD]));
  PetscCall(VecDuplicate(w->v[0][a], &z));
  if (p[3] % 3 == 0) PetscCall(PCApplyTranspose(w->pc, w->v[0][a], z));
  else PetscCall(PCApply(w->pc, w->v[0][a], z));
  PetscCall(VecGetArrayRead(z, &read));
  if (w->ref) PetscCall(PetscArraycpy(g.solved, read, g.local[0]));
  else {
    PetscCall(MatNorm(w->m[SPD], NORM_INFINITY, &size));
    PetscCall(VecNorm(w->v[0][a], NORM_INFINITY, &norm));
    for (PetscInt k = 0; k < g.local[0]; k++)
      if (!(PetscAbsScalar(read[k] - g.solved[k]) <= TEST_C * PETSC_MACHINE_EPSILON * (PetscReal)g.local[0] * size * norm)) *result = 1;
  }
  PetscCall(VecRestoreArrayRead(z, &read));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  Operation  *apply;
} operations[] = {
#define ROW(name) \
  { \
    #name, Op_##name \
  }
  ROW(fill),       ROW(set),        ROW(zero),      ROW(axpy),          ROW(aypx),     ROW(axpby),  ROW(waxpy),    ROW(maxpy),    ROW(times),         ROW(copy),     ROW(swap),    ROW(scale),     ROW(shift),   ROW(dot),
  ROW(norm),       ROW(sum),        ROW(strange),   ROW(write),         ROW(open),     ROW(poke),   ROW(close),    ROW(look),     ROW(see),           ROW(place),    ROW(reset),   ROW(duplicate), ROW(renew),   ROW(piece),
  ROW(mult),       ROW(transposed), ROW(multadd),   ROW(transposedadd), ROW(diagonal), ROW(values), ROW(scalemat), ROW(shiftmat), ROW(diagonalscale), ROW(zerorows), ROW(zeromat), ROW(array),     ROW(axpymat), ROW(copymat),
  ROW(replacemat), ROW(convert),    ROW(transpose), ROW(matmat),        ROW(dense),    ROW(edge),   ROW(solve),    ROW(keep),     ROW(gather),        ROW(factor),   ROW(one),
#undef ROW
};
#define NOPS ((int)PETSC_STATIC_ARRAY_LENGTH(operations))

/* --- Comparing */

static PetscErrorCode CompareVec(int s, int k, char what[], size_t len)
{
  const PetscScalar *x, *y;

  PetscFunctionBegin;
  PetscCall(VecGetArrayRead(g.w[0].v[s][k], &x));
  PetscCall(VecGetArrayRead(g.w[1].v[s][k], &y));
  for (PetscInt i = 0; i < g.local[s] && !what[0]; i++)
    if (!Same(x[i], y[i])) PetscCall(PetscSNPrintf(what, len, "entry %" PetscInt_FMT " of vector %d of space %d is %g, not %g", g.start[s] + i, k, s, (double)PetscRealPart(x[i]), (double)PetscRealPart(y[i])));
  PetscCall(VecRestoreArrayRead(g.w[0].v[s][k], &x));
  PetscCall(VecRestoreArrayRead(g.w[1].v[s][k], &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CompareMat(int k, char what[], size_t len)
{
  const PetscInt r0 = g.start[rowspace[k]], r1 = r0 + g.local[rowspace[k]];

  PetscFunctionBegin;
  for (PetscInt i = r0; i < r1 && !what[0]; i++) {
    const PetscInt    *c[2];
    const PetscScalar *a[2];
    PetscInt           n[2];

    for (int q = 0; q < 2; q++) PetscCall(MatGetRow(g.w[q].m[k], i, &n[q], &c[q], &a[q]));
    if (n[0] != n[1]) PetscCall(PetscSNPrintf(what, len, "row %" PetscInt_FMT " of matrix %d has %" PetscInt_FMT " entries, not %" PetscInt_FMT, i, k, n[0], n[1]));
    for (PetscInt j = 0; j < n[0] && !what[0]; j++)
      if (c[0][j] != c[1][j] || !Same(a[0][j], a[1][j])) PetscCall(PetscSNPrintf(what, len, "row %" PetscInt_FMT " of matrix %d is another", i, k));
    for (int q = 0; q < 2; q++) PetscCall(MatRestoreRow(g.w[q].m[k], i, &n[q], &c[q], &a[q]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries that have grown are made small again, in both worlds */
static PetscErrorCode Tame(uint32_t salt)
{
  PetscFunctionBegin;
  for (int s = 0; s < 2; s++)
    for (int k = 0; k < VECS; k++)
      for (int q = 0; q < 2; q++)
        if (!g.small[s][k]) PetscCall(FillVec(g.w[q].v[s][k], s, salt));
  for (int k = 0; k < MATS && (g.grown || salt % 3 == 0); k++) { /* a matrix grows by less than a thousandfold in the steps between */
    PetscReal norm;

    PetscCall(MatNorm(g.w[1].m[k], NORM_1, &norm));
    if (norm <= 4096) continue;
    for (int q = 0; q < 2; q++) {
      PetscCall(MatZeroEntries(g.w[q].m[k]));
      PetscCall(FillMat(g.w[q].m[k], k, salt));
    }
  }
  g.grown = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- A sequence */

static PetscErrorCode Build(void)
{
  PetscFunctionBegin;
  PetscCall(PetscArrayzero(g.factors, PRODUCTS + 1));
  for (int s = 0; s < 2; s++) {
    const uint32_t h = Hash(g.seed, 1000, (uint32_t)s);

    g.local[s] = Hash(h, (uint32_t)g.rank, 1) % 7 ? (PetscInt)(Hash(h, (uint32_t)g.rank, 2) % (h % 5 ? 9 : SIZE)) : 0;
    g.size[s] = g.start[s] = 0;
    PetscCallMPI(MPI_Allreduce(&g.local[s], &g.size[s], 1, MPIU_INT, MPI_SUM, g.comm));
    PetscCallMPI(MPI_Exscan(&g.local[s], &g.start[s], 1, MPIU_INT, MPI_SUM, g.comm));
    if (!g.rank) g.start[s] = 0;
  }
  for (int q = 0; q < 2; q++) {
    World *w = &g.w[q];

    PetscCall(PetscMemzero(w, sizeof(*w)));
    w->ref = (PetscBool)q;
    PetscCall(Enter(w->ref));
    for (int k = 0; k < MATS; k++) PetscCall(MakeMat(w, k, Hash(g.seed, 7, (uint32_t)k), &w->m[k]));
    for (int s = 0; s < 2; s++)
      for (int k = 0; k < VECS; k++) {
        PetscCall(MakeVec(w, s, (PetscInt)(Hash(g.seed, (uint32_t)s, (uint32_t)k) % 3), &w->v[s][k]));
        PetscCall(FillVec(w->v[s][k], s, (uint32_t)(10 * s + k)));
      }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Clear(void)
{
  PetscFunctionBegin;
  for (int q = 0; q < 2; q++) {
    World *w = &g.w[q];

    PetscCall(KSPDestroy(&w->ksp));
    PetscCall(PCDestroy(&w->pc));
    for (int k = 0; k < PRODUCTS; k++) PetscCall(MatDestroy(&w->kept[k]));
    if (w->gathered) PetscCall(MatDestroySubMatrices(1, &w->gathered));
    for (int k = 0; k < MATS; k++) PetscCall(MatDestroy(&w->m[k]));
    for (int s = 0; s < 2; s++)
      for (int k = 0; k < VECS; k++) {
        if (w->out[0][s][k]) PetscCall(VecRestoreArray(w->v[s][k], &w->open[s][k]));
        if (w->out[1][s][k]) PetscCall(VecRestoreArrayRead(w->v[s][k], &w->look[s][k]));
        if (w->placed[s][k]) PetscCall(VecResetArray(w->v[s][k]));
        PetscCall(PetscFree(w->placed[s][k]));
        PetscCall(VecDestroy(&w->v[s][k]));
      }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Any operation or, in every third sequence, one of a few of like kind, which need to meet each other */
static int Draw(uint32_t h)
{
  static const char *const focus[][7] = {
    {"one",   "replacemat", "mult",   "transposed", "diagonal", "scalemat",   "dense"  },
    {"one",   "array",      "gather", "mult",       "scalemat", "diagonal",   "gather" },
    {"one",   "keep",       "keep",   "array",      "matmat",   "transposed", "zeromat"},
    {"solve", "factor",     "edge",   "scalemat",   "factor",   "axpy",       "solve"  },
    {"open",  "look",       "piece",  "place",      "set",      "mult",       "poke"   },
  };
  const uint32_t kind = g.seed % 15;

  for (int k = 0; k < NOPS && kind < PETSC_STATIC_ARRAY_LENGTH(focus); k++)
    if (!strcmp(operations[k].name, focus[kind][h % 7])) return k;
  return (int)(h % (uint32_t)NOPS);
}

/* what stays empty where both worlds agree to the end */
static PetscErrorCode Run(const Step step[], int n, char what[], size_t len)
{
  PetscFunctionBegin;
  what[0] = 0;
  PetscCall(Build());
  for (int t = 0; t < n && !what[0]; t++) {
    double         result[2] = {0, 0};
    PetscErrorCode ierr[2];
    int            differ;

    PetscCall(Look());
    PetscCall(Tame((uint32_t)step[t].p[3]));
    PetscCall(Look());
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    for (int q = 1; q >= 0; q--) {
      PetscCall(Enter((PetscBool)q));
      ierr[q] = (*operations[step[t].op].apply)(&g.w[q], step[t].p, &result[q]);
    }
    PetscCall(PetscPopErrorHandler());
    if (ierr[0]) PetscCall(PetscSNPrintf(what, len, "%s ends in error %d where the reference's ends in %d", operations[step[t].op].name, (int)ierr[0], (int)ierr[1]));
    else if (ierr[1]) PetscCall(PetscSNPrintf(what, len, "%s of the reference ends in error %d: the test is wrong", operations[step[t].op].name, (int)ierr[1]));
    else if (!Same(result[0], result[1])) PetscCall(PetscSNPrintf(what, len, "%s gives %g, not %g", operations[step[t].op].name, result[0], result[1]));
    differ = what[0] ? 1 : 0;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &differ, 1, MPI_INT, MPI_MAX, g.comm));
    if (differ && !what[0]) PetscCall(PetscSNPrintf(what, len, "differs on another rank"));
    /* looking at all of it changes where things are: from time to time */
    for (int k = 0; k < MATS && !what[0] && (t == n - 1 || step[t].p[2] % 4 == 0); k++) PetscCall(CompareMat(k, what, len));
    for (int s = 0; s < 2; s++)
      for (int k = 0; k < VECS && !what[0] && (t == n - 1 || step[t].p[2] % 4 == 0); k++) PetscCall(CompareVec(s, k, what, len));
    differ = what[0] ? 1 : 0;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &differ, 1, MPI_INT, MPI_MAX, g.comm));
    if (differ && !what[0]) PetscCall(PetscSNPrintf(what, len, "differs on another rank"));
  }
  PetscCall(Clear());
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt  sequences = 500, seed = 1, length = 25, only = -1, nkeep = LENGTH, failed = 0, keep[LENGTH];
  char      type[64];
  PetscBool some, least;
  PetscReal seconds = 0;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(TestType(type, sizeof(type)));
  g.comm = PETSC_COMM_WORLD;
  PetscCallMPI(MPI_Comm_rank(g.comm, &g.rank));
  PetscCallMPI(MPI_Comm_size(g.comm, &g.ranks));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-sequences", &sequences, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-length", &length, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-only", &only, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-seconds", &seconds, NULL)); /* as many of them as begin within this time, and their number is told */
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-keep", keep, &nkeep, &some));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", g.seqtype, sizeof(g.seqtype), NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gpucsr_product_least", &least));
  if (!least) PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_product_least", "0")); /* on the device, however small */
  if (!some) nkeep = -1;
  length             = PetscMin(length, LENGTH);
  const double until = MPI_Wtime() + (double)seconds;
  PetscInt     q;
  for (q = only < 0 ? 0 : only; q < (only < 0 ? sequences : only + 1) && failed < 3; q++) {
    PetscMPIInt late = (PetscMPIInt)(seconds > 0 && MPI_Wtime() > until);
    Step        step[LENGTH], shorter[LENGTH];
    int         n = 0, at[LENGTH];
    char        what[256], said[256];

    if (seconds > 0) PetscCallMPI(MPI_Bcast(&late, 1, MPI_INT, 0, g.comm));
    if (late) break;
    g.seed = Hash((uint32_t)seed, (uint32_t)q, 4711);
    for (int t = 0; t < (int)length; t++) {
      Step      s;
      PetscBool kept = (PetscBool)(nkeep < 0);

      s.op = Draw(Hash(g.seed, (uint32_t)t, 1));
      for (int k = 0; k < 4; k++) s.p[k] = (int)(Hash(g.seed, (uint32_t)t, (uint32_t)k + 2) % 1000u);
      for (PetscInt k = 0; k < nkeep; k++) kept = (PetscBool)(kept || keep[k] == t);
      if (kept) {
        at[n]     = t;
        step[n++] = s;
      }
    }
    PetscCall(Run(step, n, what, sizeof(what)));
    if (!what[0]) continue;
    failed++;
    for (int t = n - 1; t >= 0; t--) { /* without each step in turn */
      PetscCall(PetscArraycpy(shorter, step, t));
      PetscCall(PetscArraycpy(shorter + t, step + t + 1, n - t - 1));
      PetscCall(Run(shorter, n - 1, said, sizeof(said)));
      if (!said[0]) continue;
      PetscCall(PetscArraycpy(step, shorter, --n));
      for (int k = t; k < n; k++) at[k] = at[k + 1];
      PetscCall(PetscStrncpy(what, said, sizeof(what)));
    }
    PetscCall(PetscPrintf(g.comm, "sequence %" PetscInt_FMT ", sizes %" PetscInt_FMT " and %" PetscInt_FMT ":", q, g.size[0], g.size[1]));
    for (int t = 0; t < n; t++) PetscCall(PetscPrintf(g.comm, " %s(%d,%d,%d,%d)", operations[step[t].op].name, step[t].p[0], step[t].p[1], step[t].p[2], step[t].p[3]));
    PetscCall(PetscPrintf(g.comm, "\n  "));
    PetscCall(PetscSynchronizedPrintf(g.comm, "[%d] %s\n", g.rank, what));
    PetscCall(PetscSynchronizedFlush(g.comm, PETSC_STDOUT));
    PetscCall(PetscPrintf(g.comm, "  again: -seed %" PetscInt_FMT " -length %" PetscInt_FMT " -only %" PetscInt_FMT " -keep ", seed, length, q));
    for (int t = 0; t < n; t++) PetscCall(PetscPrintf(g.comm, "%s%d", t ? "," : "", at[t]));
    PetscCall(PetscPrintf(g.comm, "\n"));
  }
  if (seconds > 0) PetscCall(PetscPrintf(g.comm, "%" PetscInt_FMT " sequences\n", q));
  PetscCall(PetscFinalize());
  return failed ? 1 : 0;
}
