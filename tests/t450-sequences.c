//TEST name="default" args="-sequences 300"
//TEST name="separate" args="-sequences 300 -vec_gpu_separate -vec_type gpu"
//TEST name="format" args="-sequences 100 -vec_gpu_separate -mat_gpucsr_format {}" loop="csr sell sell_sorted coo hyb jad ell"
//TEST name="lossless" args="-sequences 100 -mat_gpucsr_format csr -mat_gpucsr_precision auto -mat_gpucsr_transpose_at_assembly"
//TEST name="standin" args="-sequences 200 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu" gpu=0
//TEST name="late" args="-sequences 200 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 1" gpu=0
//TEST name="master" args="-sequences 200 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" gpu=0
//TEST name="master_late" args="-sequences 100 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 2 -vec_type gpu -mat_gpucsr_master device" gpu=0
//TEST name="master2" nsize=2 args="-sequences 30 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" gpu=0
//TEST name="master_gpu" args="-sequences 200 -vec_type gpu -mat_gpucsr_master device" gpu=1
//TEST name="delay" args="-sequences 50 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_delay 1" gpu=0
//TEST name="delay" args="-sequences 50 -gpucsr_debug_delay {}" loop="1 2" gpu=1
//TEST name="precision" args="-sequences 100 -vec_gpu_separate -vec_type gpu -mat_gpucsr_precision {}" loop="mixed single auto"
//TEST name="precision.standin" args="-sequences 100 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_precision {}" loop="mixed single auto" gpu=0
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
#include "t450-sequences/world.h"
#include "t450-sequences/vectors.h"
#include "t450-sequences/matrices.h"
#include "t450-sequences/derived.h"

static const struct {
  const char *name;
  Operation  *apply;
} operations[] = {
#define ROW(name) \
  { \
    #name, Op_##name \
  }
  ROW(fill),        ROW(set),      ROW(zero),      ROW(axpy),          ROW(aypx),     ROW(axpby),       ROW(waxpy),  ROW(maxpy),      ROW(times),   ROW(copy),          ROW(swap),
  ROW(scale),       ROW(shift),    ROW(dot),       ROW(norm),          ROW(sum),      ROW(strange),     ROW(write),  ROW(open),       ROW(poke),    ROW(close),         ROW(look),
  ROW(see),         ROW(place),    ROW(reset),     ROW(duplicate),     ROW(renew),    ROW(piece),       ROW(mult),   ROW(transposed), ROW(multadd), ROW(transposedadd), ROW(diagonal),
  ROW(values),      ROW(scalemat), ROW(shiftmat),  ROW(diagonalscale), ROW(zerorows), ROW(zeromat),     ROW(array),  ROW(axpymat),    ROW(copymat), ROW(replacemat),    ROW(convert),
  ROW(transpose),   ROW(matmat),   ROW(dense),     ROW(edge),          ROW(solve),    ROW(keep),        ROW(gather), ROW(factor),     ROW(one),     ROW(coo),           ROW(zerorowscolumns),
  ROW(diagonalset), ROW(normmat),  ROW(rowmaxabs), ROW(stash),         ROW(store),    ROW(preallocate), ROW(again),  ROW(part),       ROW(parts),   ROW(permute),       ROW(outlive),
  ROW(three),       ROW(steps),    ROW(ask),       ROW(sor),           ROW(wrap),     ROW(hermitian),   ROW(file),   ROW(foreign),    ROW(beside),  ROW(rows),          ROW(block),
  ROW(settings),    ROW(local),    ROW(coolater),
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
    {"one",   "replacemat", "mult",   "transposed",  "diagonal",        "scalemat",   "dense"        },
    {"one",   "array",      "gather", "mult",        "scalemat",        "diagonal",   "gather"       },
    {"one",   "keep",       "keep",   "array",       "matmat",          "transposed", "zeromat"      },
    {"solve", "factor",     "edge",   "scalemat",    "factor",          "axpy",       "solve"        },
    {"open",  "look",       "piece",  "place",       "set",             "mult",       "poke"         },
    {"coo",   "axpymat",    "mult",   "stash",       "zerorowscolumns", "transposed", "diagonalscale"},
    {"coo",   "copymat",    "store",  "preallocate", "zerorows",        "mult",       "shiftmat"     },
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
  char      type[64], precision[16] = "";
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
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_precision", precision, sizeof(precision), NULL));
  g.single = (PetscBool)!strcmp(precision, "single");
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", g.seqtype, sizeof(g.seqtype), NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gpucsr_product_least", &least));
  if (!least) PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_product_least", "0")); /* on the device, however small */
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gpucsr_master", &g.promised));
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
