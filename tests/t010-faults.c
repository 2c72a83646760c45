//TEST args="-program {} -every 1" loop="columns sparse vectors learn"
//TEST args="-program {} -every 41" loop="solvers pieces gamg"
//TEST name="products" args="-program products -every 3"
//TEST name="factors" args="-program factors -every 5"
//TEST name="formats" args="-program formats -every 11"
//TEST name="cuda" args="-program products -backend cuda -every 7"
//TEST name="gpu" args="-program products -vectors gpu -every 5"
//TEST name="ranks" nsize=2 args="-program solvers -rank 1 -kind copy -on false -from 2 -to 2"
//TEST name="ranks_host" nsize=3 args="-program vectors -rank 2 -kind host -on false -from 34 -to 34"

/*
  Each call of the library to a device fails once. A program runs repeatedly; in run n the n-th call of a kind fails, or all calls from the n-th on, until there is no n-th call.
  With -mat_gpucsr_backend auto the results must be right; with cuda they are right, or the run ends in one error of memory or of the GPU. Afterwards the same program must run in the same
  process, nothing may stay allocated, and no run may take longer than -limit seconds. The library's allocations of host memory fail likewise; there both backends may end in an error.

  The host stands in for a GPU, unless -gpu is given.

    build/tests/t010-faults -program products -kind copy            every copy
    build/tests/t010-faults -program all -every 7 -count            each seventh of all calls, and the number of faults

  -from N -to N: only these n. -on true: all calls from the n-th on fail, false: only the n-th; default both. -rank R: only on this rank. -format F; -show: print each run.
*/
#include "../src/sys/debug/fault/fault.h"
#include "../include/petscgpucsr.h"
#include "testing.h"
#include <petsctao.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOSTMEMORY GPUCSR_FAULT_KINDS /* a kind more: what the library gets from PetscMalloc() */

static struct {
  const char *program, *kind, *backend, *format, *vectors;
  int         every, from, to, rank, limit, on;
  PetscBool   gpu, count, show;
} o = {"all", "all", "auto", "csr", "standard", 1, 1, 1 << 30, -1, 60, 2, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE};

#define ALLOWED 4 /* exit status of several ranks of which one met an error that is allowed: the next n needs a start of its own */

static char what[256]; /* is being done, for whom it takes too long */
static long faults, runs, wrong, leaked, errors;

/* ---- what the programs share ---- */

#define ROWS 90

/* Tridiagonal, symmetric and positive definite, with a few entries far away; other: with other values */
static PetscErrorCode Matrix(PetscBool ref, PetscInt n, PetscBool other, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 5, NULL, 5, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(*A, r, r, 5 + (other ? 1 : 0) + (PetscReal)(r % 7) / 3, INSERT_VALUES));
    if (r > 0) PetscCall(MatSetValue(*A, r, r - 1, -1, INSERT_VALUES));
    if (r < n - 1) PetscCall(MatSetValue(*A, r, r + 1, -1, INSERT_VALUES));
    if (r >= n / 2) PetscCall(MatSetValue(*A, r, r - n / 2, -0.5, INSERT_VALUES));
    if (r < n - n / 2) PetscCall(MatSetValue(*A, r, r + n / 2, -0.5, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the programs ---- */

/* Products with A and its transpose, before and after new values and a new pattern */
static PetscErrorCode Products(void)
{
  Mat A, R;

  PetscFunctionBegin;
  PetscCall(TestZoo(PETSC_COMM_WORLD, ZOO_RANDOM, PETSC_FALSE, PETSC_FALSE, &A));
  PetscCall(TestZoo(PETSC_COMM_WORLD, ZOO_RANDOM, PETSC_FALSE, PETSC_TRUE, &R));
  PetscCall(TestProducts(A, R, PETSC_FALSE, "at first"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(TestProducts(A, R, PETSC_FALSE, "with other values"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix in each format, and its transpose */
static PetscErrorCode Formats(void)
{
  static const char *const formats[] = {"csr", "sell", "dense", "sell_sorted", "ell", "bitdense", "dia", "coo", "hyb", "jad", "stencil", "bcsr2x2", "block4x64"};
  Mat                      A, R, B;

  PetscFunctionBegin;
  PetscCall(Matrix(PETSC_TRUE, ROWS, PETSC_FALSE, &R));
  PetscCall(TestAbs(R, &B));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(formats); k++) {
    Vec x, y, z, u, v;

    PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_format", formats[k]));
    PetscCall(Matrix(PETSC_FALSE, ROWS, PETSC_FALSE, &A));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecDuplicate(y, &z));
    PetscCall(TestFill(x, 3, PETSC_FALSE));
    PetscCall(VecDuplicate(x, &u));
    PetscCall(VecCopy(x, u));
    PetscCall(VecAbs(u));
    PetscCall(VecDuplicate(z, &v));
    PetscCall(MatMult(B, u, v));
    for (int values = 0; values < 2; values++) {
      if (values) {
        PetscCall(MatScale(A, 2.0));
        PetscCall(VecScale(v, 2.0));
      }
      for (int t = 0; t < 2; t++) { /* of a symmetric matrix both are the same */
        if (t) PetscCall(MatMultTranspose(A, x, y));
        else PetscCall(MatMult(A, x, y));
        PetscCall(MatMult(R, x, z));
        if (values) PetscCall(VecScale(z, 2.0));
        PetscCall(TestClose(y, z, v, "product", formats[k]));
      }
    }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    PetscCall(VecDestroy(&u));
    PetscCall(VecDestroy(&v));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_format", o.format));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with the host's vectors, long enough to be cut into pieces; two entries a row, so that what they must be is known */
static PetscErrorCode Pieces(void)
{
  const PetscInt     n = 530000;
  Mat                A;
  Vec                x, y;
  PetscLayout        rows;
  PetscInt           rs, re, *i, *j;
  PetscScalar       *a;
  const PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_FALSE, &A));
  PetscCall(MatGetLayouts(A, &rows, NULL));
  PetscCall(PetscLayoutSetUp(rows));
  PetscCall(PetscLayoutGetRange(rows, &rs, &re));
  PetscCall(PetscMalloc3(re - rs + 1, &i, 2 * (re - rs), &j, 2 * (re - rs), &a));
  for (PetscInt r = rs, k = 0; r < re; r++) {
    i[r - rs] = k;
    if (r > 0) {
      j[k]   = r - 1;
      a[k++] = -1;
    }
    j[k]          = r;
    a[k++]        = 2 + r % 7;
    i[r - rs + 1] = k;
  }
  PetscCall(MatSeqAIJSetPreallocationCSR(A, i, j, a));
  PetscCall(MatMPIAIJSetPreallocationCSR(A, i, j, a));
  PetscCall(PetscFree3(i, j, a));
  PetscCall(MatCreateVecs(A, &x, &y));
  for (PetscInt pass = 1; pass < 4; pass++) { /* x is pass * (r % 5), and all sums are small integers */
    PetscScalar *w;

    PetscCall(VecGetArrayWrite(x, &w));
    for (PetscInt r = rs; r < re; r++) w[r - rs] = pass * (r % 5);
    PetscCall(VecRestoreArrayWrite(x, &w));
    for (PetscInt times = 1; times < 3; times++) { /* the product, and the product added to it */
      if (times == 1) PetscCall(MatMult(A, x, y));
      else PetscCall(MatMultAdd(A, x, y, y));
      PetscCall(VecGetArrayRead(y, &v));
      for (PetscInt r = rs; r < re; r++) {
        const PetscInt z = times * pass * ((2 + r % 7) * (r % 5) - (r ? (r - 1) % 5 : 0));

        PetscCheck(PetscRealPart(v[r - rs]) == z, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Product in pieces: entry %" PetscInt_FMT " is %g, should be %" PetscInt_FMT, r, (double)PetscRealPart(v[r - rs]), z);
      }
      PetscCall(VecRestoreArrayRead(y, &v));
    }
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same operations with vectors of one type; sum: of all numbers that came out */
static PetscErrorCode Operations(VecType type, Vec result, PetscReal *sum)
{
  const PetscInt     n = 40;
  Vec                x, y, v[5];
  PetscScalar        dots[5], a[5] = {1, -2, 0.5, 3, 0.25}, *array;
  PetscReal          norm, max;
  PetscInt           at;
  const PetscScalar *read;
  PetscScalar       *write;
  PetscInt           nl;

  PetscFunctionBegin;
  *sum = 0;
  PetscCall(VecCreate(PETSC_COMM_WORLD, &x));
  PetscCall(VecSetSizes(x, PETSC_DECIDE, n));
  PetscCall(VecSetType(x, type));
  PetscCall(VecDuplicate(x, &y));
  for (int k = 0; k < 5; k++) {
    PetscCall(VecDuplicate(x, &v[k]));
    PetscCall(TestFill(v[k], k + 2, PETSC_FALSE));
  }
  PetscCall(VecSet(x, 1.5));
  PetscCall(VecCopy(v[0], y));
  PetscCall(VecAXPY(y, 2.0, x));
  PetscCall(VecAYPX(x, -1.0, y));
  PetscCall(VecMAXPY(x, 5, a, v));
  PetscCall(VecMDot(x, 5, v, dots));
  for (int k = 0; k < 5; k++) *sum += PetscRealPart(dots[k]);
  PetscCall(VecPointwiseMult(y, x, v[1]));
  PetscCall(VecNorm(y, NORM_2, &norm));
  PetscCall(VecMax(y, &at, &max));
  *sum += norm + max + at;
  PetscCall(VecGetArray(y, &array));
  PetscCall(VecGetLocalSize(y, &nl));
  for (PetscInt k = 0; k < nl; k++) array[k] += 1;
  PetscCall(VecRestoreArray(y, &array));
  PetscCall(VecWAXPY(v[4], 1.0, y, x));
  PetscCall(VecSwap(v[4], v[3]));
  PetscCall(VecScale(v[3], 0.5));
  PetscCall(VecAXPBYPCZ(x, 1.0, 2.0, 3.0, v[3], v[2]));
  PetscCall(VecDot(x, v[3], dots));
  PetscCall(VecSum(x, dots + 1));
  *sum += PetscRealPart(dots[0]) + PetscRealPart(dots[1]);
  PetscCall(VecGetArrayRead(x, &read));
  PetscCall(VecGetArrayWrite(result, &write));
  for (PetscInt k = 0; k < nl; k++) write[k] = read[k];
  PetscCall(VecRestoreArrayWrite(result, &write));
  PetscCall(VecRestoreArrayRead(x, &read));
  for (int k = 0; k < 5; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Vectors(void)
{
  Vec       result[2];
  PetscReal sum[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(VecCreate(PETSC_COMM_WORLD, &result[k]));
    PetscCall(VecSetSizes(result[k], PETSC_DECIDE, 40));
    PetscCall(VecSetType(result[k], VECSTANDARD));
    PetscCall(Operations(k ? "gpu" : VECSTANDARD, result[k], &sum[k]));
  }
  PetscCheck(PetscAbsReal(sum[0] - sum[1]) <= 1e4 * PETSC_MACHINE_EPSILON * PetscAbsReal(sum[0]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Numbers of vectors add up to %g, not %g", (double)sum[1], (double)sum[0]);
  PetscCall(TestCloseVec(result[1], result[0], "vector", "operations"));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&result[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with a dense matrix */
static PetscErrorCode Columns(void)
{
  Mat         A, R, B, C = NULL, D, E;
  PetscReal   norm, error;
  PetscRandom random;

  PetscFunctionBegin;
  PetscCall(Matrix(PETSC_FALSE, ROWS, PETSC_FALSE, &A));
  PetscCall(Matrix(PETSC_TRUE, ROWS, PETSC_FALSE, &R));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, ROWS, 6, NULL, &B));
  PetscCall(PetscRandomCreate(PETSC_COMM_WORLD, &random));
  PetscCall(MatSetRandom(B, random));
  PetscCall(MatMatMult(R, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatMatMult(A, B, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatDuplicate(C, MAT_COPY_VALUES, &E));
    PetscCall(MatNorm(D, NORM_FROBENIUS, &norm));
    PetscCall(MatAXPY(E, -1.0, D, SAME_NONZERO_PATTERN));
    PetscCall(MatNorm(E, NORM_FROBENIUS, &error));
    PetscCheck(error <= 100 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Product with a dense matrix is off by %g of %g", (double)error, (double)norm);
    PetscCall(MatDestroy(&E));
  }
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each solver by each path, twice, the second time with other values; the residual is taken by MATAIJ */
static PetscErrorCode Solvers(void)
{
  static const struct {
    const char *type, *pc, *path, *precision;
  } how[] = {
    {"gpucg",   "none",    "auto",      "double"              },
    {"gpucg",   "jacobi",  "graph",     "double"              },
    {"gpucg",   "jacobi",  "host_loop", "double"              },
    {"gpucg",   "jacobi",  "auto",      "residual_replacement"},
    {"gpucg",   "bjacobi", "auto",      "double"              },
    {"gpubcgs", "none",    "auto",      "double"              },
    {"gpubcgs", "jacobi",  "host_loop", "double"              },
    {"cg",      "jacobi",  "auto",      "double"              },
  };
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(how); k++) {
    Mat                A, R;
    Vec                x, b, r;
    KSP                ksp;
    PC                 pc;
    PetscBool          graph;
    PetscReal          norm, error;
    KSPConvergedReason reason;
    char               option[64];

    PetscCall(PetscStrcmp(how[k].path, "graph", &graph));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetType(ksp, how[k].type));
    PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_path", how[k].type));
    PetscCall(PetscOptionsSetValue(NULL, option, size > 1 && graph ? "auto" : how[k].path));
    PetscCall(PetscOptionsSetValue(NULL, "-ksp_gpucg_precision", how[k].precision));
    PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, how[k].pc));
    PetscCall(KSPSetFromOptions(ksp));
    for (int values = 0; values < 2; values++) {
      PetscCall(Matrix(PETSC_FALSE, ROWS, (PetscBool)values, &A));
      PetscCall(Matrix(PETSC_TRUE, ROWS, (PetscBool)values, &R));
      PetscCall(MatCreateVecs(A, &x, &b));
      PetscCall(VecDuplicate(b, &r));
      PetscCall(TestFill(b, 5, PETSC_FALSE));
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with %s by %s: %s", how[k].type, how[k].pc, how[k].path, KSPConvergedReasons[reason]);
      PetscCall(MatMult(R, x, r));
      PetscCall(VecAYPX(r, -1.0, b));
      PetscCall(VecNorm(r, NORM_2, &error));
      PetscCall(VecNorm(b, NORM_2, &norm));
      PetscCheck(error <= 1e-6 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with %s by %s leaves a residual of %g of %g", how[k].type, how[k].pc, how[k].path, (double)error, (double)norm);
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&b));
      PetscCall(VecDestroy(&r));
      PetscCall(MatDestroy(&A));
      PetscCall(MatDestroy(&R));
    }
    PetscCall(KSPDestroy(&ksp));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of sparse matrices on the device, for new values too */
static PetscErrorCode Sparse(void)
{
  Mat       A, R, C[2] = {NULL, NULL}, D;
  PetscReal norm, error;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_product_least", "0"));
  PetscCall(Matrix(PETSC_FALSE, ROWS, PETSC_FALSE, &A));
  PetscCall(Matrix(PETSC_TRUE, ROWS, PETSC_FALSE, &R));
  for (int k = 0; k < 2; k++) {
    const MatReuse reuse = k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    PetscCall(MatMatMult(A, A, reuse, PETSC_DEFAULT, &C[0]));
    PetscCall(MatPtAP(A, A, reuse, PETSC_DEFAULT, &C[1]));
    for (int q = 0; q < 2; q++) {
      if (q) PetscCall(MatPtAP(R, R, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
      else PetscCall(MatMatMult(R, R, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
      PetscCall(MatNorm(D, NORM_FROBENIUS, &norm));
      PetscCall(MatAXPY(D, -1.0, C[q], DIFFERENT_NONZERO_PATTERN));
      PetscCall(MatNorm(D, NORM_FROBENIUS, &error));
      PetscCheck(error <= 100 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is off by %g of %g", q ? "PtAP" : "A A", (double)error, (double)norm);
      PetscCall(MatDestroy(&D));
    }
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  for (int q = 0; q < 2; q++) PetscCall(MatDestroy(&C[q]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factorizations and their solves, again after new values; of several processes, of the block that each has */
static PetscErrorCode Factors(void)
{
  static const char *const types[] = {PCILU, PCICC, PCLU};
  PetscMPIInt              size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat M[2];
    Vec b, z[2];
    PC  pc[2];

    for (int q = 0; q < 2; q++) {
      PetscCall(Matrix((PetscBool)q, ROWS, PETSC_FALSE, &M[q]));
      PetscCall(PCCreate(PETSC_COMM_WORLD, &pc[q]));
      PetscCall(PCSetOperators(pc[q], M[q], M[q]));
      PetscCall(PCSetType(pc[q], size > 1 ? PCBJACOBI : types[k]));
    }
    PetscCall(MatCreateVecs(M[0], &z[0], &b));
    PetscCall(VecDuplicate(z[0], &z[1]));
    PetscCall(TestFill(b, 5, PETSC_FALSE));
    for (int values = 0; values < 2; values++) {
      for (int q = 0; q < 2; q++) {
        if (values) PetscCall(MatScale(M[q], 2.0));
        PetscCall(PCApply(pc[q], b, z[q]));
      }
      PetscCall(TestCloseVec(z[0], z[1], "solve", types[k]));
      if (size > 1) continue;
      for (int q = 0; q < 2; q++) PetscCall(PCApplyTranspose(pc[q], b, z[q]));
      PetscCall(TestCloseVec(z[0], z[1], "transposed solve", types[k]));
    }
    for (int q = 0; q < 2; q++) {
      PetscCall(VecDestroy(&z[q]));
      PetscCall(PCDestroy(&pc[q]));
      PetscCall(MatDestroy(&M[q]));
    }
    PetscCall(VecDestroy(&b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GAMG made ready, and made ready again for other values */
static PetscErrorCode Multigrid(void)
{
  KSP       ksp;
  PC        pc;
  Mat       A, R;
  Vec       x, b, r;
  PetscReal norm, error;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_product_least", "0"));
  PetscCall(PetscOptionsSetValue(NULL, "-pc_gamg_coarse_eq_limit", "10"));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(Matrix(PETSC_FALSE, ROWS, PETSC_FALSE, &A));
  PetscCall(Matrix(PETSC_TRUE, ROWS, PETSC_FALSE, &R));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(TestFill(b, 5, PETSC_FALSE));
  PetscCall(KSPSetOperators(ksp, A, A));
  for (int values = 0; values < 2; values++) {
    if (values) PetscCall(MatScale(A, 2.0));
    if (values) PetscCall(MatScale(R, 2.0));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(MatMult(R, x, r));
    PetscCall(VecAYPX(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &error));
    PetscCall(VecNorm(b, NORM_2, &norm));
    PetscCheck(error <= 1e-6 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "cg with gamg leaves a residual of %g of %g", (double)error, (double)norm);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hinge loss of two classes, as a program of TAO's bmrm has it */
typedef struct {
  Mat X;
  Vec margin;
} Learner;

static PetscErrorCode Loss(Tao tao, Vec w, PetscReal *f, Vec g, void *ctx)
{
  Learner     *l = (Learner *)ctx;
  PetscScalar *m;
  PetscReal    sum = 0;
  PetscInt     rs, re, rows;

  PetscFunctionBegin;
  (void)tao;
  PetscCall(MatMult(l->X, w, l->margin));
  PetscCall(MatGetSize(l->X, &rows, NULL));
  PetscCall(VecGetOwnershipRange(l->margin, &rs, &re));
  PetscCall(VecGetArray(l->margin, &m));
  for (PetscInt r = rs; r < re; r++) {
    const PetscReal y = r % 2 ? 1 : -1, t = 1 - y * PetscRealPart(m[r - rs]);

    sum += PetscMax(t, 0);
    m[r - rs] = t > 0 ? -y / rows : 0;
  }
  PetscCall(VecRestoreArray(l->margin, &m));
  PetscCallMPI(MPI_Allreduce(&sum, f, 1, MPIU_REAL, MPIU_SUM, PETSC_COMM_WORLD));
  *f /= rows;
  PetscCall(MatMultTranspose(l->X, l->margin, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Learn(void)
{
  PetscReal f[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Learner l;
    Tao     tao;
    Vec     w;

    PetscCall(Matrix(k ? PETSC_FALSE : PETSC_TRUE, ROWS, PETSC_FALSE, &l.X));
    PetscCall(MatCreateVecs(l.X, &w, &l.margin));
    PetscCall(VecSet(w, 0.0));
    PetscCall(TaoCreate(PETSC_COMM_WORLD, &tao));
    PetscCall(TaoSetType(tao, "gpubmrm")); /* PETSc forgets TAOBMRM when it is initialised again */
    PetscCall(TaoSetSolution(tao, w));
    PetscCall(TaoSetObjectiveAndGradient(tao, NULL, Loss, &l));
    PetscCall(TaoSetTolerances(tao, 0, 0, 1e-4));
    PetscCall(TaoSetFromOptions(tao));
    PetscCall(TaoSolve(tao));
    PetscCall(TaoGetSolutionStatus(tao, NULL, &f[k], NULL, NULL, NULL, NULL));
    PetscCall(TaoDestroy(&tao));
    PetscCall(VecDestroy(&w));
    PetscCall(VecDestroy(&l.margin));
    PetscCall(MatDestroy(&l.X));
  }
  PetscCheck(PetscAbsReal(f[0] - f[1]) <= 2e-3 * PetscAbsReal(f[0]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "gpubmrm ends with %.8g, with MATAIJ with %.8g", (double)f[1], (double)f[0]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*run)(void);
} programs[] = {
  {"products", Products },
  {"formats",  Formats  },
  {"vectors",  Vectors  },
  {"columns",  Columns  },
  {"solvers",  Solvers  },
  {"learn",    Learn    },
  {"pieces",   Pieces   },
  {"sparse",   Sparse   },
  {"factors",  Factors  },
  {"gamg",     Multigrid},
};

/* ---- host memory ---- */

static PetscErrorCode (*hostmalloc)(size_t, PetscBool, int, const char[], const char[], void **);
static struct {
  long      at, calls, injected;
  PetscBool on;
} host;

/* Calls of the library alone: PETSc's sources have other names */
static PetscErrorCode HostMalloc(size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **p)
{
  if (!strncmp(file, "src/", 4)) {
    host.calls++;
    if (host.at && (host.calls == host.at || (host.on && host.calls > host.at))) {
      host.injected++;
      return PetscError(PETSC_COMM_SELF, line, function, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "Memory requested %zu, as the test says", bytes);
    }
  }
  return (*hostmalloc)(bytes, clear, line, function, file, p);
}

/* ---- one run ---- */

static int   real[2] = {-1, -1};
static FILE *said[2];

/* What is printed goes into files, and is looked at afterwards */
static void Listen(PetscBool anew)
{
  for (int k = 0; k < 2; k++) {
    fflush(k ? stderr : stdout);
    if (!said[k]) said[k] = tmpfile();
    if (real[k] < 0) real[k] = dup(k + 1);
    if (anew && ftruncate(fileno(said[k]), 0)) abort();
    if (anew) rewind(said[k]);
    if (dup2(fileno(said[k]), k + 1) < 0) abort();
  }
}

/* What was printed, as far as it fits */
static void Heard(int k, char all[], size_t len)
{
  fflush(k ? stderr : stdout);
  rewind(said[k]);
  all[fread(all, 1, len - 1, said[k])] = 0;
}

static void Quiet(void)
{
  for (int k = 0; k < 2; k++) {
    fflush(k ? stderr : stdout);
    if (dup2(real[k], k + 1) < 0) abort();
  }
}

static void TooLong(int sig)
{
  (void)sig;
  Quiet();
  fprintf(stderr, "%s: takes more than %d seconds\n", what, o.limit);
  _exit(3);
}

/* An unclean end of one rank is one of all; a single process goes on, so that one run tells all that is wrong */
static void Bad(const char why[], const char all[])
{
  int size = 1;

  Quiet();
  fprintf(stderr, "%s: %s\n", what, why);
  if (all[0]) fprintf(stderr, "%.*s\n", 1500, all);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1) MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Errors come back as codes, the first message is kept */
static char           message[512];
static PetscErrorCode KeepMessage(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  (void)comm;
  (void)ctx;
  if (p == PETSC_ERROR_INITIAL && !message[0]) snprintf(message, sizeof(message), "%s (%s, %s:%d)", mess ? mess : "", fun, file, line);
  if (p == PETSC_ERROR_REPEAT && strlen(message) < sizeof(message) - 40) snprintf(message + strlen(message), sizeof(message) - strlen(message), " < %s:%d", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line);
  return n;
}

/* Does the message of this rank say that the rank which calls fail on has met an error? */
static PetscBool Names(const char text[], PetscMPIInt rank, PetscMPIInt size)
{
  char named[2][16];

  if (size == 1 || o.rank < 0 || rank == o.rank) return PETSC_FALSE;
  snprintf(named[0], sizeof(named[0]), "rank %d", o.rank);
  snprintf(named[1], sizeof(named[1]), "Rank %d", o.rank);
  return (PetscBool)(strstr(text, named[0]) || strstr(text, named[1]));
}

/* The n-th call of a kind fails while a program runs. reached: there was an n-th */
static PetscErrorCode Run(int program, int kind, long n, PetscBool on, PetscBool *reached)
{
  static char     all[1 << 16];
  char            options[512], name[] = "t010-faults", *words[] = {name, NULL}, **argv = words;
  int             argc = 1;
  const PetscBool cuda = (PetscBool)!strcmp(o.backend, "cuda");
  PetscErrorCode  ierr, again;
  PetscMPIInt     rank, size, any;
  PetscBool       injected, usable;
  GPUCSRDevice    dev = NULL;
  char            why[512];

  PetscFunctionBeginUser;
  snprintf(what, sizeof(what), "-program %s -kind %s -backend %s -from %ld -to %ld -on %s", programs[program].name, kind == HOSTMEMORY ? "host" : GPUCSRFaultKinds[kind], o.backend, n, n, on ? "true" : "false");
  snprintf(options, sizeof(options), "-skip_petscrc -malloc_dump -mat_gpucsr_backend %s -mat_gpucsr_format %s -mat_gpucsr_transpose_format %s %s", o.backend, o.format, o.format, o.gpu ? "" : "-gpucsr_debug_standin 1");
  if (!strcmp(o.vectors, "standard")) snprintf(options + strlen(options), sizeof(options) - strlen(options), " -standard_vectors");
  snprintf(options + strlen(options), sizeof(options) - strlen(options), " -gpucsr_debug_fault %s:%ld%s", kind == HOSTMEMORY ? "memory" : GPUCSRFaultKinds[kind], kind == HOSTMEMORY ? 0 : n, on ? ":on" : "");
  if (o.rank >= 0) snprintf(options + strlen(options), sizeof(options) - strlen(options), ":rank=%d", o.rank);
  setenv("PETSC_OPTIONS", options, 1);
  alarm((unsigned)o.limit);
  Listen(PETSC_TRUE);
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  signal(SIGALRM, TooLong);
  PetscCall(PetscPushErrorHandler(KeepMessage, NULL));
  message[0] = 0;
  ierr       = MatGPUCSRInitializePackage();
  usable     = (PetscBool)!ierr; /* where the GPU that was asked for cannot be had, nothing can be */
  hostmalloc = PetscTrMalloc;
  memset(&host, 0, sizeof(host));
  if (kind == HOSTMEMORY && (o.rank < 0 || o.rank == rank)) {
    host.at = n;
    host.on = on;
  }
  PetscTrMalloc = HostMalloc;
  if (!ierr) ierr = (*programs[program].run)();
  host.at                = 0;
  injected               = (PetscBool)(kind == HOSTMEMORY ? host.injected > 0 : GPUCSRFaultCounters.injected > 0);
  GPUCSRFaultCounters.at = 0;
  PetscTrMalloc          = hostmalloc;
  faults += kind == HOSTMEMORY ? host.injected : GPUCSRFaultCounters.injected;
  runs++;
  if (ierr) {
    /* what was on the device alone is lost with it: entries of a vector, those of GAMG's levels too; a sum that has begun to take the place of a summand */
    const PetscBool lost    = (PetscBool)((!strcmp(o.vectors, "gpu") || !strcmp(programs[program].name, "vectors") || !strcmp(programs[program].name, "gamg")) && ierr == PETSC_ERR_GPU);
    const PetscBool halfway = (PetscBool)(strstr(message, "the sum was on its way back into the vector that held a summand") || strstr(message, "values were on their way back into the matrix that they are added to"));
    const PetscBool loop    = (PetscBool)(size > 1 && !strcmp(programs[program].name, "solvers") && ierr == PETSC_ERR_GPU); /* a step of the host loop, where the other ranks wait for this one's sums */
    const PetscBool agreed  = Names(message, rank, size);                                                                   /* the error of the rank that met it is one of all */
    const PetscBool allowed = (PetscBool)((injected || agreed) && (cuda || lost || halfway || loop || kind == HOSTMEMORY) && (ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU));

    errors++;
    if (!allowed) {
      wrong++;
      Bad(message, "");
    } else if (size > 1) { /* the other ranks wait for this one: PETSc's programs end here */
      Quiet();
      if (o.show) fprintf(stderr, "%s: %s\n", what, message);
      if (o.count) fprintf(stderr, "%ld faults in %ld runs: %ld wrong, %ld leaked, %ld ended in an error that was allowed, stopped at %ld\n", faults, runs, wrong, leaked, errors - wrong, n);
      MPI_Abort(MPI_COMM_WORLD, ALLOWED);
    }
  }
  any = injected;
  MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  injected = (PetscBool)any;
  if (o.show) {
    Quiet();
    fprintf(stderr, "%s: %s, %d calls %s\n", what, injected ? "injected" : "not reached", (int)(kind == HOSTMEMORY ? host.calls : GPUCSRFaultCounters.calls[kind]), message);
  }
  if (usable && injected) { /* the next one, in the same process */
    snprintf(what + strlen(what), sizeof(what) - strlen(what), ", the next one");
    message[0] = 0;
    again      = (*programs[program].run)();
    if (again && !(cuda && again == PETSC_ERR_GPU)) { /* a device that failed is not used again */
      wrong++;
      Bad(message, "");
    }
    if (again) ierr = again;
  }
  if (usable) PetscCall(GPUCSRDeviceOpen("cuda", &dev, why, sizeof(why)));
  PetscCall(PetscPopErrorHandler());
  if (ierr) { /* what was being done stays allocated */
    PetscCall(PetscOptionsClearValue(NULL, "-malloc_dump"));
    any = 1;
  } else any = 0;
  Listen(PETSC_FALSE);
  PetscCall(PetscFinalize());
  Quiet();
  Heard(0, all, sizeof(all));
  if (kind == HOSTMEMORY && !strstr(all, " at src/")) all[0] = 0; /* PETSc's own functions keep what they had when ours, which they called, met an error */
  if (!any && all[0]) {
    leaked++;
    Bad("leaves memory allocated", all);
  }
  if (!any && dev) { /* a device that failed is given nothing back */
    const GPUCSRFaultCounts *f = &GPUCSRFaultCounters;

    if (f->memory || f->hostmemory || f->locked || f->events || f->streams) {
      leaked++;
      snprintf(why, sizeof(why), "leaves to the device %d pieces of memory, %d of the host's, %d locked, %d events, %d streams", (int)f->memory, (int)f->hostmemory, (int)f->locked, (int)f->events, (int)f->streams);
      Bad(why, "");
    }
  }
  *reached = injected;
  return PETSC_SUCCESS;
}

int main(int argc, char **argv)
{
  int rank;

  for (int k = 1; k < argc; k++) {
    const char *value = k + 1 < argc ? argv[k + 1] : "";

    if (!strcmp(argv[k], "-gpu")) o.gpu = PETSC_TRUE;
    else if (!strcmp(argv[k], "-count")) o.count = PETSC_TRUE; /* of several ranks those that stop say by -count where, so that tests/faults.sh goes on from there */
    else if (!strcmp(argv[k], "-show")) o.show = PETSC_TRUE;
    else {
      if (!strcmp(argv[k], "-program")) o.program = value;
      else if (!strcmp(argv[k], "-kind")) o.kind = value;
      else if (!strcmp(argv[k], "-backend")) o.backend = value;
      else if (!strcmp(argv[k], "-format")) o.format = value;
      else if (!strcmp(argv[k], "-vectors")) o.vectors = value;
      else if (!strcmp(argv[k], "-every")) o.every = atoi(value);
      else if (!strcmp(argv[k], "-from")) o.from = atoi(value);
      else if (!strcmp(argv[k], "-to")) o.to = atoi(value);
      else if (!strcmp(argv[k], "-rank")) o.rank = atoi(value);
      else if (!strcmp(argv[k], "-limit")) o.limit = atoi(value);
      else if (!strcmp(argv[k], "-on")) o.on = !strcmp(value, "true");
      else {
        fprintf(stderr, "%s is not understood\n", argv[k]);
        return 2;
      }
      k++;
    }
  }
  if (MPI_Init(NULL, NULL)) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int p = 0; p < (int)PETSC_STATIC_ARRAY_LENGTH(programs); p++) {
    if (strcmp(o.program, "all") && strcmp(o.program, programs[p].name)) continue;
    for (int kind = 0; kind <= HOSTMEMORY; kind++) {
      const PetscBool same = (PetscBool)!strcmp(o.kind, kind == HOSTMEMORY ? "host" : GPUCSRFaultKinds[kind]);

      if (strcmp(o.kind, "all") && !same) continue;
      for (int on = 0; on < 2; on++) {
        PetscBool reached = PETSC_TRUE;

        if (o.on != 2 && o.on != on) continue;
        if (o.on == 2 && (kind == GPUCSR_FAULT_DEVICE) != on && !same) continue; /* by default a device is lost for good, and other calls fail once */
        for (long n = o.from; n <= o.to && reached; n += o.every)
          if (Run(p, kind, n, (PetscBool)on, &reached)) return 1;
      }
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &faults, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (o.count && !rank) printf("%ld faults in %ld runs: %ld wrong, %ld leaked, %ld ended in an error that was allowed\n", faults, runs, wrong, leaked, errors - wrong);
  MPI_Finalize();
  return wrong || leaked ? 1 : 0;
}
