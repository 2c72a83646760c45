/*
  A long random walk over the operations of vectors and products, with VECSTANDARD and with VECGPU, while arrays are open or placed, and
  subvectors and local vectors are in use. All numbers are small integers, so both must have the same bits, in every vector, number and open array, after every step.

    -walks n    how many walks (default 12), -steps n of how many steps, -seed n the first

  A failing walk is shortened to the steps that the failure needs, and printed.
*/
//TEST
//TEST name=separate args="-vec_gpu_separate"
//TEST name=malloc args="-vec_gpu_separate -malloc_debug -malloc_dump -walks 4"
//TEST name=ranks2.separate nsize=2 args="-vec_gpu_separate -walks 6 -seed 1000"
//TEST name=ranks3 nsize=3 args="-walks 4 -seed 2000"
#include "testing.h"
#include <petscgpucsr.h>
#include <petsc/private/petscimpl.h>

#define N       17 /* entries of a rank */
#define VECS    4
#define OPEN    5
#define PARTS   3
#define NUMBERS 8

typedef struct {
  int op, a, b, c;
  int value[3];
} Step;

typedef struct {
  PetscScalar *a;
  PetscInt     n;
  Vec          of;
  int          write, part; /* part: 1 + which part it is an array of; 0: of a whole vector */
} Open;

/* One of the two that go the same way */
typedef struct {
  Mat          A;
  Vec          v[VECS], part[PARTS], local;
  IS           is[PARTS];
  int          partof[PARTS], localof; /* -1: not out */
  Open         open[OPEN];
  PetscScalar *spare[VECS];
  int          placed[VECS];
  PetscScalar  number[NUMBERS];
} Side;

static unsigned long long state;

static int Random(int n)
{
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((state >> 33) % (unsigned long long)n);
}

static PetscErrorCode SideCreate(VecType type, Side *s)
{
  PetscInt rs, re, M;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  for (int i = 0; i < VECS; i++) {
    PetscCall(VecCreate(PETSC_COMM_WORLD, &s->v[i]));
    PetscCall(VecSetSizes(s->v[i], N, PETSC_DETERMINE));
    PetscCall(VecSetType(s->v[i], type));
    PetscCall(VecSet(s->v[i], i));
    PetscCall(PetscCalloc1(N, &s->spare[i]));
  }
  PetscCall(VecGetSize(s->v[0], &M));
  PetscCall(VecGetOwnershipRange(s->v[0], &rs, &re));
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, M, M, PETSC_FALSE, &s->A));
  PetscCall(MatSetUp(s->A));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(s->A, r, r, 1, INSERT_VALUES));
    PetscCall(MatSetValue(s->A, r, (r + 3) % M, 1, INSERT_VALUES));
    PetscCall(MatSetValue(s->A, r, (r + 7) % M, -1, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(s->A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(s->A, MAT_FINAL_ASSEMBLY));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, 6, rs + 4, 1, &s->is[0]));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, 9, rs + 7, 1, &s->is[1]));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, 5, rs, 3, &s->is[2])); /* a copy */
  PetscCall(VecCreateLocalVector(s->v[0], &s->local));
  for (int k = 0; k < PARTS; k++) s->partof[k] = -1;
  s->localof = -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Close(Open *o, int say)
{
  PetscFunctionBegin;
  if (!o->of) PetscFunctionReturn(PETSC_SUCCESS);
  if (o->write == 1) PetscCall(VecRestoreArray(o->of, say ? &o->a : NULL));
  else if (o->write == 2) PetscCall(VecRestoreArrayWrite(o->of, say ? &o->a : NULL));
  else PetscCall(VecRestoreArrayRead(o->of, say ? (const PetscScalar **)&o->a : NULL));
  o->of = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PartRestore(Side *s, int k)
{
  PetscFunctionBegin;
  for (int o = 0; o < OPEN; o++)
    if (s->open[o].of && s->open[o].part == 1 + k) PetscCall(Close(&s->open[o], 1));
  PetscCall(VecRestoreSubVector(s->v[s->partof[k]], s->is[k], &s->part[k]));
  s->partof[k] = -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SideDestroy(Side *s)
{
  PetscFunctionBegin;
  for (int k = 0; k < PARTS; k++)
    if (s->partof[k] >= 0) PetscCall(PartRestore(s, k));
  if (s->localof >= 0) PetscCall(VecRestoreLocalVector(s->v[s->localof], s->local));
  for (int i = 0; i < VECS; i++) {
    PetscCall(VecDestroy(&s->v[i])); /* arrays stay open */
    PetscCall(PetscFree(s->spare[i]));
  }
  for (int k = 0; k < PARTS; k++) PetscCall(ISDestroy(&s->is[k]));
  PetscCall(VecDestroy(&s->local));
  PetscCall(MatDestroy(&s->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The vectors of a step: whole ones, and parts that are out */
static Vec Which(const Side *s, int i)
{
  if (i >= VECS && s->partof[i % PARTS] >= 0) return s->part[i % PARTS];
  return s->v[i % VECS];
}

static const char *const names[] = {"axpy", "scale", "set",   "copy",     "swap", "pointwisemult", "aypx",    "waxpy", "maxpy", "mdot",      "dot",  "sum",      "max",   "mult",         "multtranspose", "multadd",  "setvalue",  "abs",     "shift",
                                    "open", "close", "write", "getwrite", "part", "parts",         "restore", "local", "place", "duplicate", "look", "fillpart", "array", "restorelocal", "axpbypcz",      "dotnorm2", "viaarrays", "copypart"};
#define OPS ((int)PETSC_STATIC_ARRAY_LENGTH(names))

static PetscErrorCode Play(Side *s, const Step *t)
{
  Vec                x = s->v[t->a % VECS], y = s->v[t->b % VECS], z = s->v[t->c % VECS], w = Which(s, t->a);
  const int          slot = t->value[2] % OPEN, p = t->value[1] % PARTS;
  const PetscScalar  f = t->value[0] % 4 - 1;
  Open              *o = &s->open[slot];
  PetscScalar       *a;
  const PetscScalar *r;
  PetscInt           n, rs;
  PetscReal          real;

  PetscFunctionBegin;
  switch (t->op) {
  case 0:
    if (x != y) PetscCall(VecAXPY(x, f, y));
    break;
  case 1:
    PetscCall(VecScale(w, f));
    break;
  case 2:
    PetscCall(VecSet(w, f));
    break;
  case 3:
    PetscCall(VecCopy(x, y));
    break;
  case 4:
    if (x != y) PetscCall(VecSwap(x, y));
    break;
  case 5:
    PetscCall(VecPointwiseMult(x, y, z));
    break;
  case 6:
    if (x != y) PetscCall(VecAYPX(x, f, y));
    break;
  case 7:
    if (x != y && x != z) PetscCall(VecWAXPY(x, f, y, z));
    break;
  case 8: {
    const PetscScalar alpha[2] = {f, 2};
    Vec               two[2]   = {y, z};

    if (x != y && x != z) PetscCall(VecMAXPY(x, 2, alpha, two));
    break;
  }
  case 9:
    PetscCall(VecMDot(x, VECS, s->v, s->number));
    break;
  case 10:
    PetscCall(VecDot(x, y, &s->number[0]));
    break;
  case 11:
    PetscCall(VecSum(w, &s->number[1]));
    break;
  case 12:
    PetscCall(PetscObjectStateIncrease((PetscObject)x));
    PetscCall(VecMax(x, &n, &real));
    s->number[2] = real;
    s->number[3] = (PetscScalar)n;
    PetscCall(VecNorm(x, NORM_1, &real));
    s->number[4] = real;
    break;
  case 13:
    if (x != y) PetscCall(MatMult(s->A, x, y));
    break;
  case 14:
    if (x != y) PetscCall(MatMultTranspose(s->A, x, y));
    break;
  case 15:
    if (x != z && x != y) PetscCall(MatMultAdd(s->A, x, y, z));
    break;
  case 16:
    PetscCall(VecGetOwnershipRange(x, &rs, NULL));
    PetscCall(VecSetValue(x, rs + t->value[1] % N, f, t->value[2] % 2 ? ADD_VALUES : INSERT_VALUES));
    PetscCall(VecAssemblyBegin(x));
    PetscCall(VecAssemblyEnd(x));
    break;
  case 17:
    PetscCall(VecAbs(w));
    break;
  case 18:
    PetscCall(VecShift(w, f));
    break;
  case 19: /* an array is opened, and stays so */
    if (o->of) break;
    o->of    = w;
    o->part  = w == x ? 0 : 1 + t->a % PARTS;
    o->write = t->value[1] % 2;
    if (o->write) PetscCall(VecGetArray(w, &o->a));
    else PetscCall(VecGetArrayRead(w, (const PetscScalar **)&o->a));
    PetscCall(VecGetLocalSize(w, &o->n));
    break;
  case 20:
    PetscCall(Close(o, t->value[1] % 3));
    break;
  case 21: /* written through one that is open */
    if (o->of && o->write) o->a[t->value[1] % (int)o->n] = f + 5;
    break;
  case 22:
    PetscCall(VecGetArrayWrite(w, &a));
    PetscCall(VecGetLocalSize(w, &n));
    for (PetscInt k = 0; k < n; k++) a[k] = (PetscScalar)((k + t->value[0]) % 5);
    PetscCall(VecRestoreArrayWrite(w, &a));
    break;
  case 23:
  case 24: /* part of a vector */
    if (s->partof[p] >= 0 || s->placed[t->a % VECS]) break;
    s->partof[p] = t->a % VECS;
    PetscCall(VecGetSubVector(x, s->is[p], &s->part[p]));
    break;
  case 25:
    if (s->partof[p] >= 0) PetscCall(PartRestore(s, p));
    break;
  case 26: /* the local entries */
    if (s->localof >= 0) {
      PetscCall(VecShift(s->local, f));
      PetscCall(VecGetArray(s->local, &a));
      a[t->value[1] % N] = 3;
      PetscCall(VecRestoreArray(s->local, &a));
      break;
    }
    s->localof = t->a % VECS;
    PetscCall(VecGetLocalVector(x, s->local));
    break;
  case 27: /* an array in place of the vector's; arrays that are out belong to one of the two */
    for (int k = 0; k < PARTS; k++)
      if (s->partof[k] == t->a % VECS) PetscFunctionReturn(PETSC_SUCCESS);
    if (s->localof == t->a % VECS) break;
    for (int k = 0; k < OPEN; k++) /* one array tells which by itself, NULL does not */
      if (s->open[k].of == x) PetscCall(Close(&s->open[k], 1));
    if (s->placed[t->a % VECS]) PetscCall(VecResetArray(x));
    else PetscCall(VecPlaceArray(x, s->spare[t->a % VECS]));
    s->placed[t->a % VECS] = !s->placed[t->a % VECS];
    break;
  case 28: {
    Vec d;

    PetscCall(VecDuplicate(w, &d));
    PetscCall(VecCopy(w, d));
    PetscCall(VecScale(d, f));
    PetscCall(VecAXPY(w, 1, d));
    PetscCall(VecDestroy(&d));
    break;
  }
  case 29:
    PetscCall(VecGetLocalSize(w, &n));
    PetscCall(VecGetArrayRead(w, &r));
    s->number[5] = 0;
    for (PetscInt k = 0; k < n; k++) s->number[5] += (PetscScalar)(k + 1) * r[k];
    PetscCall(VecRestoreArrayRead(w, &r));
    break;
  case 30:
    if (s->partof[p] >= 0) PetscCall(VecSet(s->part[p], f));
    break;
  case 31: /* as an operation of a program's own */
    PetscCall(VecGetArray(w, &a));
    a[0] += f;
    PetscCall(VecShift(w, 1));
    a[1] -= f;
    PetscCall(VecRestoreArray(w, &a));
    break;
  case 32:
    if (s->localof < 0) break;
    PetscCall(VecRestoreLocalVector(s->v[s->localof], s->local));
    s->localof = -1;
    break;
  case 33:
    if (x != y && x != z && y != z) PetscCall(VecAXPBYPCZ(x, 1, f, 2, y, z));
    break;
  case 34:
    PetscCall(VecDotNorm2(x, y, &s->number[6], &real));
    s->number[7] = real;
    break;
  case 36: { /* every entry of a part is written from elsewhere */
    Vec d;

    if (s->partof[p] < 0) break;
    PetscCall(VecDuplicate(s->part[p], &d));
    PetscCall(VecSet(d, f));
    PetscCall(VecShift(d, 1));
    PetscCall(VecCopy(d, s->part[p]));
    PetscCall(VecDestroy(&d));
    break;
  }
  default: {
    PetscScalar **all;

    PetscCall(VecGetArrays(s->v, VECS, &all));
    all[t->a % VECS][2] = all[t->b % VECS][3] + f;
    if (x != y) PetscCall(VecAXPY(x, 1, y));
    all[t->a % VECS][4] = 1;
    PetscCall(VecRestoreArrays(s->v, VECS, &all));
  }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Differ(PetscInt n, const PetscScalar a[], const PetscScalar b[], const char what[], int which, char why[], size_t length)
{
  for (PetscInt k = 0; k < n && !why[0]; k++)
    if (a[k] != b[k]) (void)snprintf(why, length, "%s %d: entry %d is %g, should be %g", what, which, (int)k, (double)PetscRealPart(b[k]), (double)PetscRealPart(a[k]));
}

/* Reports differences; scales down numbers that grow */
static PetscErrorCode Compare(Side s[2], int all, char why[], size_t length)
{
  const PetscScalar *a, *b;
  PetscBool          grown = PETSC_FALSE;

  PetscFunctionBegin;
  Differ(NUMBERS, s[0].number, s[1].number, "number", 0, why, length);
  for (int o = 0; o < OPEN; o++)
    if (s[0].open[o].of) Differ(s[0].open[o].n, s[0].open[o].a, s[1].open[o].a, "open array", o, why, length);
  for (int i = 0; i < VECS; i++)
    if (!s[0].placed[i]) Differ(N, s[0].spare[i], s[1].spare[i], "array that was placed", i, why, length);
  for (int i = 0; i < VECS; i++) {
    PetscInt n;

    PetscCall(VecGetArrayRead(s[0].v[i], &a));
    for (PetscInt k = 0; k < N; k++) grown = (PetscBool)(grown || PetscAbsScalar(a[k]) > 1e4);
    PetscCall(VecRestoreArrayRead(s[0].v[i], &a));
    for (int k = 0; k < PARTS; k++) {
      if (s[0].partof[k] != i) continue;
      PetscCall(VecGetLocalSize(s[0].part[k], &n));
      PetscCall(VecGetArrayRead(s[0].part[k], &a));
      for (PetscInt l = 0; l < n; l++) grown = (PetscBool)(grown || PetscAbsScalar(a[l]) > 1e4);
      PetscCall(VecRestoreArrayRead(s[0].part[k], &a));
    }
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &grown, 1, MPIU_BOOL, MPI_LOR, PETSC_COMM_WORLD));
  for (int i = 0; i < VECS && (all || grown); i++) { /* comparing all of them each time would keep both copies the same */
    PetscCall(VecGetArrayRead(s[0].v[i], &a));
    PetscCall(VecGetArrayRead(s[1].v[i], &b));
    Differ(N, a, b, "vector", i, why, length);
    PetscCall(VecRestoreArrayRead(s[0].v[i], &a));
    PetscCall(VecRestoreArrayRead(s[1].v[i], &b));
  }
  for (int k = 0; k < 2 && grown; k++) {
    for (int i = 0; i < VECS; i++) PetscCall(VecSet(s[k].v[i], i));
    for (int i = 0; i < PARTS; i++)
      if (s[k].partof[i] >= 0) PetscCall(VecSet(s[k].part[i], i));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Walk, without the steps that are left out; why is empty where all went well */
static PetscErrorCode Walk(int n, const Step steps[], const char out[], char why[], size_t length, int *at)
{
  Side s[2];

  PetscFunctionBegin;
  why[0] = 0;
  for (int k = 0; k < 2; k++) PetscCall(SideCreate(k ? VECGPU : VECSTANDARD, &s[k]));
  for (int i = 0; i < n; i++) {
    int bad;

    if (out[i]) continue;
    for (int k = 0; k < 2; k++) PetscCall(Play(&s[k], &steps[i]));
    PetscCall(Compare(s, i + 1 == n || steps[i].value[2] % 7 == 0, why, length));
    bad = why[0] != 0;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    if (bad) {
      if (!why[0]) (void)snprintf(why, length, "on another rank");
      *at = i;
      break;
    }
  }
  for (int k = 0; k < 2; k++) PetscCall(SideDestroy(&s[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shorten(int n, const Step steps[], char out[], char why[], size_t length)
{
  int at = n - 1;

  PetscFunctionBegin;
  PetscCall(Walk(n, steps, out, why, length, &at));
  for (int i = at + 1; i < n; i++) out[i] = 1;
  for (int piece = PetscMax(n / 2, 1); piece; piece /= 2) {
    for (int first = 0; first < at; first += piece) {
      char kept[4096], other[256];
      int  ignored, any = 0;

      PetscCall(PetscArraycpy(kept, out, n));
      for (int i = first; i < PetscMin(first + piece, at); i++) {
        any |= !out[i];
        out[i] = 1;
      }
      if (!any) continue;
      PetscCall(Walk(n, steps, out, other, sizeof(other), &ignored));
      if (!other[0]) PetscCall(PetscArraycpy(out, kept, n));
      else PetscCall(PetscStrncpy(why, other, length));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt    walks = 12, n = 400, seed = 1;
  static Step steps[4096];
  static char out[4096];
  char        why[256];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-walks", &walks, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  PetscCheck(n <= (PetscInt)PETSC_STATIC_ARRAY_LENGTH(steps), PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "At most %d steps", (int)PETSC_STATIC_ARRAY_LENGTH(steps));
  for (PetscInt walk = 0; walk < walks; walk++) {
    int at;

    state = (unsigned long long)(seed + walk) * 2654435761ULL + 12345;
    for (int i = 0; i < 10; i++) (void)Random(2);
    for (PetscInt i = 0; i < n; i++) {
      steps[i].op = Random(OPS);
      steps[i].a  = Random(2 * VECS);
      steps[i].b  = Random(VECS);
      steps[i].c  = Random(VECS);
      for (int k = 0; k < 3; k++) steps[i].value[k] = Random(1000);
    }
    PetscCall(PetscArrayzero(out, n));
    PetscCall(Walk((int)n, steps, out, why, sizeof(why), &at));
    if (!why[0]) continue;
    PetscCall(Shorten((int)n, steps, out, why, sizeof(why)));
    for (PetscInt i = 0; i < n; i++)
      if (!out[i]) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s a=%d b=%d c=%d values %d %d %d\n", names[steps[i].op], steps[i].a, steps[i].b, steps[i].c, steps[i].value[0], steps[i].value[1], steps[i].value[2]));
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "Walk %" PetscInt_FMT ": after the steps above, %s", seed + walk, why);
  }
  PetscCall(PetscFinalize());
  return 0;
}
