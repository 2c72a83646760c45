/*
  Every operation of VECGPU against VECSTANDARD, on random and on special values; sums against sums in long double.

    -n 0,1,2,...   lengths on all ranks together
    -deep 0        leave out what takes long
*/
//TEST
//TEST name=separate args="-vec_gpu_separate"
//TEST name=standin args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda"
//TEST name=ranks2 nsize=2
//TEST name=ranks2.separate nsize=2 args="-vec_gpu_separate -n 0,1,2,256,1023,5000"
//TEST name=ranks4.separate nsize=4 args="-vec_gpu_separate -n 0,1,3,31,257,5000"
//TEST name=ranks4.memory nsize=4 gpu=1 args="-mat_gpucsr_backend auto -mat_gpucsr_memory_limit 30000"
//TEST name=large gpu=1 args="-n 10000001 -deep 0"
#include "testing.h"
#include <petsc/private/petscimpl.h> /* the state of an object */

typedef struct {
  Vec g, s; /* of type gpu, and standard */
} Pair;

static PetscInt  runs = 0;
static PetscBool deep = PETSC_TRUE;

static PetscErrorCode PairCreate(PetscInt n, Pair *p)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_WORLD, &p->g));
  PetscCall(VecSetSizes(p->g, PETSC_DECIDE, n));
  PetscCall(VecSetType(p->g, "gpu"));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &p->s));
  PetscCall(VecSetSizes(p->s, PETSC_DECIDE, n));
  PetscCall(VecSetType(p->s, VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PairDestroy(Pair *p)
{
  PetscFunctionBegin;
  PetscCall(VecDestroy(&p->g));
  PetscCall(VecDestroy(&p->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entry i of the sequence `seed`: between -1 and 1, and now and then a special value */
static double Entry(PetscInt i, PetscInt seed, PetscBool special)
{
  static const double specials[] = {-0.0, 0.0, INFINITY, -INFINITY, NAN, 1e-310, -1e-310, 1.0};
  uint64_t            h          = (uint64_t)i * 0x9E3779B97F4A7C15ull + (uint64_t)(seed + 1) * 0xD1B54A32D192ED03ull;

  h = (h ^ (h >> 31)) * 0x94D049BB133111EBull;
  h ^= h >> 29;
  if (special && h % 5 == 0) return specials[(h >> 8) % 8];
  return 2.0 * (double)(h >> 11) / 9007199254740992.0 - 1.0;
}

/* Both on the host, or (ondevice) the one of type gpu on the device alone */
static PetscErrorCode PairFill(Pair p, PetscInt seed, PetscBool special, PetscBool ondevice)
{
  PetscInt     rs, re;
  PetscScalar *s, *g;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(p.s, &rs, &re));
  PetscCall(VecGetArrayWrite(p.s, &s));
  PetscCall(VecGetArrayWrite(p.g, &g));
  for (PetscInt r = rs; r < re; r++) s[r - rs] = Entry(r, seed, special);
  PetscCall(PetscArraycpy(g, s, re - rs));
  PetscCall(VecRestoreArrayWrite(p.g, &g));
  PetscCall(VecRestoreArrayWrite(p.s, &s));
  if (ondevice) {
    Vec w;

    PetscCall(VecDuplicate(p.g, &w));
    PetscCall(VecCopy(p.g, w));
    PetscCall(VecSwap(p.g, w));
    PetscCall(VecDestroy(&w));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of both are the same within c eps |bound|, of the same kind where not finite; bound NULL: the same numbers */
static PetscErrorCode PairSame(Pair p, Vec bound, const char what[])
{
  const PetscScalar *g, *s, *b = NULL;
  PetscInt           n, rs;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(p.s, &n));
  PetscCall(VecGetOwnershipRange(p.s, &rs, NULL));
  PetscCall(VecGetArrayRead(p.g, &g));
  PetscCall(VecGetArrayRead(p.s, &s));
  if (bound) PetscCall(VecGetArrayRead(bound, &b));
  for (PetscInt k = 0; k < n; k++) {
    /* a bound may have an entry that the result lacks: 0 times infinity */
    const PetscReal allowed = bound ? TEST_C * PETSC_MACHINE_EPSILON * PetscAbsScalar(PetscIsInfOrNanScalar(b[k]) ? s[k] : b[k]) : 0.0;

    PetscCheck(TestSame(g[k], s[k], allowed), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: entry %" PetscInt_FMT " is %.17g, should be %.17g, may differ by %g", what, rs + k, (double)PetscRealPart(g[k]), (double)PetscRealPart(s[k]), (double)allowed);
  }
  PetscCall(VecRestoreArrayRead(p.g, &g));
  PetscCall(VecRestoreArrayRead(p.s, &s));
  if (bound) PetscCall(VecRestoreArrayRead(bound, &b));
  runs++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const maps[] = {"VecSet", "VecCopy", "VecSwap", "VecScale", "VecShift", "VecAXPY", "VecAYPX", "VecAXPBY", "VecWAXPY", "VecAXPBYPCZ", "VecPointwiseMult", "VecPointwiseDivide", "VecPointwiseMax", "VecPointwiseMaxAbs", "VecPointwiseMin", "VecReciprocal", "VecAbs", "VecSqrtAbs", "VecExp", "VecLog", "VecConjugate", "VecPointwiseMult in place", "VecPointwiseDivide in place", NULL};

/* z = operation number op of x, y and z; with absolute values of all numbers, a bound of its rounding */
static PetscErrorCode Map(int op, PetscScalar a, PetscScalar b, PetscScalar c, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  switch (op) {
  case 0:
    PetscCall(VecSet(z, a));
    break;
  case 1:
    PetscCall(VecCopy(x, z));
    break;
  case 2:
    PetscCall(VecSwap(x, z));
    break;
  case 3:
    PetscCall(VecScale(z, a));
    break;
  case 4:
    PetscCall(VecShift(z, a));
    break;
  case 5:
    PetscCall(VecAXPY(z, a, x));
    break;
  case 6:
    PetscCall(VecAYPX(z, a, x));
    break;
  case 7:
    PetscCall(VecAXPBY(z, a, b, x));
    break;
  case 8:
    PetscCall(VecWAXPY(z, a, x, y));
    break;
  case 9:
    PetscCall(VecAXPBYPCZ(z, a, b, c, x, y));
    break;
  case 10:
    PetscCall(VecPointwiseMult(z, x, y));
    break;
  case 11:
    PetscCall(VecPointwiseDivide(z, x, y));
    break;
  case 12:
    PetscCall(VecPointwiseMax(z, x, y));
    break;
  case 13:
    PetscCall(VecPointwiseMaxAbs(z, x, y));
    break;
  case 14:
    PetscCall(VecPointwiseMin(z, x, y));
    break;
  case 15:
    PetscCall(VecReciprocal(z));
    break;
  case 16:
    PetscCall(VecAbs(z));
    break;
  case 17:
    PetscCall(VecSqrtAbs(z));
    break;
  case 18:
    PetscCall(VecExp(z));
    break;
  case 19:
    PetscCall(VecLog(z));
    break;
  case 20:
    PetscCall(VecConjugate(z));
    break;
  case 21:
    PetscCall(VecPointwiseMult(z, x, z));
    break;
  default:
    PetscCall(VecPointwiseDivide(z, z, y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestMaps(PetscInt n, PetscBool special)
{
  static const double scalars[][3] = {
    {0.75, -1.25, 2.5},
    {0,    1,     -1 },
    {1,    0,     1  },
    {-1,   0.5,   0  },
    {1,    1,     0  }
  };
  Pair x, y, z;
  Vec  ax, ay, az;

  PetscFunctionBegin;
  PetscCall(PairCreate(n, &x));
  PetscCall(PairCreate(n, &y));
  PetscCall(PairCreate(n, &z));
  PetscCall(VecDuplicate(x.s, &ax));
  PetscCall(VecDuplicate(x.s, &ay));
  PetscCall(VecDuplicate(x.s, &az));
  for (int op = 0; maps[op]; op++) {
    for (int k = 0; k < (!deep ? 1 : n < 10000 ? 5 : 2); k++) {
      const double *f = scalars[k];
      PetscReal     norm, ref;
      char          what[256];

      /* VECSEQ multiplies z by 0 when the first scalar is 1 */
      if (special && op == 9 && f[0] == 1 && f[2] == 0) continue;
      for (int ondevice = 0; ondevice < 2; ondevice++) {
        PetscCall(PairFill(x, 1, special, (PetscBool)ondevice));
        PetscCall(PairFill(y, 2, special, (PetscBool)!ondevice));
        PetscCall(PairFill(z, 3, special, (PetscBool)ondevice));
        PetscCall(VecCopy(x.s, ax));
        PetscCall(VecCopy(y.s, ay));
        PetscCall(VecCopy(z.s, az));
        PetscCall(VecAbs(ax));
        PetscCall(VecAbs(ay));
        PetscCall(VecAbs(az));
        PetscCall(VecNorm(z.g, NORM_1, &norm)); /* a norm that was cached before must not come back */
        PetscCall(VecNorm(z.g, NORM_INFINITY, &norm));
        PetscCall(Map(op, f[0], f[1], f[2], x.g, y.g, z.g));
        PetscCall(Map(op, f[0], f[1], f[2], x.s, y.s, z.s));
        PetscCall(Map(op, fabs(f[0]), fabs(f[1]), fabs(f[2]), ax, ay, az));
        PetscCall(PetscSNPrintf(what, sizeof(what), "%s of %" PetscInt_FMT " %s entries, scalars %g %g %g", maps[op], n, special ? "special" : "random", f[0], f[1], f[2]));
        PetscCall(PairSame(z, az, what));
        PetscCall(VecNorm(z.g, NORM_1, &norm));
        PetscCall(VecNorm(z.s, NORM_1, &ref));
        if (!special) PetscCheck(TestSame(norm, ref, 1e-12 * ref), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: its norm is %.17g, should be %.17g", what, (double)norm, (double)ref);
        PetscCall(PairSame(x, op == 2 ? ax : NULL, what));
        PetscCall(PairSame(y, NULL, what));
      }
    }
  }
  PetscCall(PairDestroy(&x));
  PetscCall(PairDestroy(&y));
  PetscCall(PairDestroy(&z));
  PetscCall(VecDestroy(&ax));
  PetscCall(VecDestroy(&ay));
  PetscCall(VecDestroy(&az));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums over all entries of all ranks of x y, |x y| */
static PetscErrorCode Reference(Vec x, Vec y, PetscReal *sum, PetscReal *bound)
{
  const PetscScalar *a, *b;
  PetscInt           n;
  long double        s[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayRead(y, &b));
  for (PetscInt k = 0; k < n; k++) {
    s[0] += (long double)PetscRealPart(a[k]) * (long double)PetscRealPart(b[k]);
    s[1] += fabsl((long double)PetscRealPart(a[k]) * (long double)PetscRealPart(b[k]));
  }
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCall(VecRestoreArrayRead(y, &b));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, s, 2, MPI_LONG_DOUBLE, MPI_SUM, PETSC_COMM_WORLD));
  *sum   = (PetscReal)s[0];
  *bound = (PetscReal)s[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define CHECK(what, value, ref, allowed) \
  do { \
    PetscCheck(TestSame(value, ref, allowed), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s of %" PetscInt_FMT " %s entries is %.17g, should be %.17g, may differ by %g", what, n, special ? "special" : "random", (double)PetscRealPart(value), (double)PetscRealPart(ref), (double)(allowed)); \
    runs++; \
  } while (0)

#define SUM(what, value, x, y) \
  do { \
    PetscReal ref, bound; \
\
    PetscCall(Reference(x, y, &ref, &bound)); \
    CHECK(what, value, ref, TEST_C *PETSC_MACHINE_EPSILON *bound); \
  } while (0)

#define NORM2(what, value, x) \
  do { \
    PetscReal ref, bound; \
\
    PetscCall(Reference(x, x, &ref, &bound)); \
    CHECK(what, value, PetscSqrtReal(ref), TEST_C *PETSC_MACHINE_EPSILON *PetscSqrtReal(bound)); \
  } while (0)

/* Asks a changed vector for a cached value */
static PetscErrorCode Touch(Vec x)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectStateIncrease((PetscObject)x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestNumbers(PetscInt n, PetscBool special)
{
  Pair        x, y;
  Vec         one, ax;
  PetscScalar v, w;
  PetscReal   r, t, norms[2];
  PetscInt    i, j;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PairCreate(n, &x));
  PetscCall(PairCreate(n, &y));
  PetscCall(VecDuplicate(x.s, &one));
  PetscCall(VecDuplicate(x.s, &ax));
  PetscCall(VecSet(one, 1.0));
  for (int ondevice = 0; ondevice < 2; ondevice++) {
    PetscCall(PairFill(x, 4, special, (PetscBool)ondevice));
    PetscCall(PairFill(y, 5, special, PETSC_FALSE));
    PetscCall(VecCopy(x.s, ax));
    PetscCall(VecAbs(ax));
    PetscCall(VecDot(x.g, y.g, &v));
    SUM("VecDot", v, x.s, y.s);
    PetscCall(VecTDot(x.g, y.g, &v));
    SUM("VecTDot", v, x.s, y.s);
    PetscCall(VecDot(x.g, x.g, &v));
    SUM("VecDot with itself", v, x.s, x.s);
    PetscCall(VecSum(x.g, &v));
    SUM("VecSum", v, x.s, one);
    PetscCall(VecDotNorm2(x.g, y.g, &v, &r));
    SUM("VecDotNorm2, dot", v, x.s, y.s);
    SUM("VecDotNorm2, norm", r, y.s, y.s);
    PetscCall(Touch(x.g));
    PetscCall(VecNorm(x.g, NORM_1, &r));
    SUM("1-norm", r, ax, one);
    PetscCall(VecNorm(x.g, NORM_2, &r));
    NORM2("2-norm", r, x.s);
    PetscCall(VecNorm(x.g, NORM_FROBENIUS, &r));
    NORM2("Frobenius norm", r, x.s);
    PetscCall(VecNorm(x.g, NORM_1_AND_2, norms));
    SUM("1-norm of two", norms[0], ax, one);
    NORM2("2-norm of two", norms[1], x.s);
    PetscCall(VecDotBegin(x.g, y.g, &v));
    PetscCall(Touch(x.g));
    PetscCall(VecNormBegin(x.g, NORM_2, &r));
    PetscCall(VecDotEnd(x.g, y.g, &v));
    PetscCall(VecNormEnd(x.g, NORM_2, &r));
    SUM("VecDotBegin", v, x.s, y.s);
    NORM2("VecNormBegin", r, x.s);
    if (special && size > 1) continue; /* what MPI makes of NaN is its own */
    PetscCall(VecNorm(x.g, NORM_INFINITY, &r));
    PetscCall(VecNorm(x.s, NORM_INFINITY, &t));
    CHECK("Infinity norm", r, t, 0.0);
    i = j = -7;
    PetscCall(VecMax(x.g, &i, &r));
    PetscCall(VecMax(x.s, &j, &t));
    CHECK("VecMax", r, t, 0.0);
    CHECK("Place of VecMax", (PetscReal)i, (PetscReal)j, 0.0);
    PetscCall(VecMin(x.g, &i, &r));
    PetscCall(VecMin(x.s, &j, &t));
    CHECK("VecMin", r, t, 0.0);
    CHECK("Place of VecMin", (PetscReal)i, (PetscReal)j, 0.0);
    PetscCall(VecMax(x.g, NULL, &r));
    PetscCall(VecMax(x.s, NULL, &t));
    CHECK("VecMax without place", r, t, 0.0);
    if (special) continue;
    PetscCall(VecMaxPointwiseDivide(x.g, y.g, &r));
    PetscCall(VecMaxPointwiseDivide(x.s, y.s, &t));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPIU_REAL, MPIU_MAX, PETSC_COMM_WORLD)); /* PETSc 3.19 to 3.22 give each rank its own */
    CHECK("VecMaxPointwiseDivide", r, t, 4.0 * PETSC_MACHINE_EPSILON * t);
    /* the same bits each time */
    PetscCall(VecDot(x.g, y.g, &v));
    for (int k = 0; k < 10; k++) {
      PetscCall(VecDot(x.g, y.g, &w));
      CHECK("VecDot once more", w, v, 0.0);
    }
  }
  /* equal entries: the first place counts; and one NaN at the start, which is what VECSEQ then finds */
  if (n > 0) {
    PetscCall(VecSet(x.g, 0.5));
    PetscCall(VecMax(x.g, &i, &r));
    CHECK("VecMax of equal entries", r, 0.5, 0.0);
    CHECK("Place of VecMax of equal entries", (PetscReal)i, 0.0, 0.0);
    PetscCall(VecMin(x.g, &i, &r));
    CHECK("Place of VecMin of equal entries", (PetscReal)i, 0.0, 0.0);
    if (size == 1) {
      PetscCall(VecSetValue(x.g, 0, NAN, INSERT_VALUES));
      PetscCall(VecAssemblyBegin(x.g));
      PetscCall(VecAssemblyEnd(x.g));
      PetscCall(VecMax(x.g, &i, &r));
      CHECK("VecMax of a NaN in front", r, (PetscReal)NAN, 0.0);
      PetscCall(VecNorm(x.g, NORM_INFINITY, &r));
      CHECK("Infinity norm of a NaN", r, (PetscReal)NAN, 0.0);
    }
  }
  PetscCall(PairDestroy(&x));
  PetscCall(PairDestroy(&y));
  PetscCall(VecDestroy(&one));
  PetscCall(VecDestroy(&ax));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Several vectors at once, around the numbers that one launch takes */
static PetscErrorCode TestMany(PetscInt n)
{
  static const PetscInt counts[] = {1, 2, 7, 8, 9, 31, 32, 33, 70, 520};
  const PetscBool       special  = PETSC_FALSE;
  const PetscInt        most     = deep && n < 2000 ? 10 : n < 10000 ? 9 : n < 1000000 ? 5 : 3;
  Pair                  x, y;
  Vec                  *vg, *vs, az, *av;
  PetscScalar          *dots, *alpha, *absalpha;

  PetscFunctionBegin;
  PetscCall(PairCreate(n, &x));
  PetscCall(PairCreate(n, &y));
  PetscCall(PetscMalloc3(520, &dots, 520, &alpha, 520, &absalpha));
  for (PetscInt k = 0; k < 520; k++) {
    alpha[k]    = Entry(k, 77, PETSC_FALSE);
    absalpha[k] = PetscAbsScalar(alpha[k]);
  }
  PetscCall(VecDuplicate(x.s, &az));
  for (PetscInt c = 0; c < most; c++) {
    const PetscInt nv = counts[c];

    PetscCall(VecDuplicateVecs(x.g, nv, &vg));
    PetscCall(VecDuplicateVecs(x.s, nv, &vs));
    PetscCall(VecDuplicateVecs(x.s, nv, &av));
    PetscCall(PairFill(x, 8, special, PETSC_TRUE));
    for (PetscInt k = 0; k < nv; k++) {
      const Pair p = {vg[k], vs[k]};

      PetscCall(PairFill(p, 100 + k, special, (PetscBool)(k % 3 == 0)));
      PetscCall(VecCopy(vs[k], av[k]));
      PetscCall(VecAbs(av[k]));
    }
    PetscCall(VecMDot(x.g, nv, vg, dots));
    for (PetscInt k = 0; k < nv; k++) SUM("VecMDot", dots[k], x.s, vs[k]);
    PetscCall(VecMTDot(x.g, nv, vg, dots));
    for (PetscInt k = 0; k < nv; k++) SUM("VecMTDot", dots[k], x.s, vs[k]);
    PetscCall(VecMDotBegin(x.g, nv, vg, dots));
    PetscCall(VecMDotEnd(x.g, nv, vg, dots));
    for (PetscInt k = 0; k < nv; k++) SUM("VecMDotBegin", dots[k], x.s, vs[k]);
    PetscCall(PairFill(y, 9, special, PETSC_TRUE));
    PetscCall(VecCopy(y.s, az));
    PetscCall(VecAbs(az));
    PetscCall(VecMAXPY(y.g, nv, alpha, vg));
    PetscCall(VecMAXPY(y.s, nv, alpha, vs));
    PetscCall(VecMAXPY(az, nv, absalpha, av));
    PetscCall(PairSame(y, az, "VecMAXPY"));
#if PETSC_VERSION_GE(3, 24, 0)
    for (int b = 0; b < 3; b++) {
      const PetscScalar beta = b == 0 ? 0.0 : b == 1 ? 1.0 : -0.5;

      PetscCall(PairFill(y, 9, special, PETSC_TRUE));
      PetscCall(VecCopy(y.s, az));
      PetscCall(VecAbs(az));
      PetscCall(VecMAXPBY(y.g, nv, alpha, beta, vg));
      PetscCall(VecMAXPBY(y.s, nv, alpha, beta, vs));
      PetscCall(VecMAXPBY(az, nv, absalpha, PetscAbsScalar(beta), av));
      PetscCall(PairSame(y, az, "VecMAXPBY"));
    }
#endif
    PetscCall(VecDestroyVecs(nv, &vg));
    PetscCall(VecDestroyVecs(nv, &vs));
    PetscCall(VecDestroyVecs(nv, &av));
  }
  PetscCall(PetscFree3(dots, alpha, absalpha));
  PetscCall(VecDestroy(&az));
  PetscCall(PairDestroy(&x));
  PetscCall(PairDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same numbers come out of a PetscRandom as for other vectors */
static PetscErrorCode TestRandom(PetscInt n)
{
  PetscRandom r;
  Pair        x;

  PetscFunctionBegin;
  PetscCall(PairCreate(n, &x));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscRandomCreate(PETSC_COMM_WORLD, &r));
    PetscCall(PetscRandomSetFromOptions(r));
    PetscCall(VecSetRandom(k ? x.g : x.s, r));
    PetscCall(PetscRandomDestroy(&r));
  }
  PetscCall(PairSame(x, NULL, "VecSetRandom"));
  PetscCall(PairDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestMapping(void)
{
  Vec                    v;
  ISLocalToGlobalMapping map;

  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_WORLD, &v));
  PetscCall(VecSetSizes(v, 3, PETSC_DETERMINE));
  PetscCall(VecSetType(v, "gpu"));
  PetscCall(VecGetLocalToGlobalMapping(v, &map));
  PetscCheck(!map, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A vector has a mapping that the program did not give");
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt  lengths[32] = {0, 1, 2, 3, 31, 256, 257, 1023, 5000, 100003}, n = 32;
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(TestRequireVecGPU());
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-n", lengths, &n, &set));
  if (!set) n = 10;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-deep", &deep, NULL));
  for (PetscInt k = 0; k < n; k++) {
    for (int special = 0; special < 2; special++) {
      if (special || deep) PetscCall(TestMaps(lengths[k], (PetscBool)special));
      if (!special || deep) PetscCall(TestNumbers(lengths[k], (PetscBool)special));
    }
    PetscCall(TestMany(lengths[k]));
    PetscCall(TestRandom(lengths[k]));
  }
  PetscCheck(runs > 100, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Only %" PetscInt_FMT " comparisons", runs);
  PetscCall(TestMapping());
  PetscCall(PetscFinalize());
  return 0;
}
