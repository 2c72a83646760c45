//TEST name="format" args="-mat_gpucsr_format {}" loop="csr sell dia stencil"
//TEST name="host_loop" args="-path host_loop -mat_gpucsr_format {}" loop="csr sell"
//TEST name="graph" gpu=1 args="-path graph -mat_gpucsr_format {}" loop="csr sell dia stencil bcsr2x2"
//TEST name="standin" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format {}" loop="csr sell"
//TEST name="defer" args="-gpucsr_debug_standin 1 -gpucsr_debug_defer {} -mat_gpucsr_backend cuda -mat_gpucsr_format csr" loop="0 7"
//TEST name="hostvectors" args="-mat_gpucsr_format csr -vec_type standard -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda"
//TEST name="blocks" args="-mat_gpucsr_format csr -mat_block_size {} -ref_mat_block_size {} -blocks" loop="2 3 8"
//TEST name="ranks" nsize=2 args="-mat_gpucsr_format {}" loop="csr sell"
//TEST name="ranks4" nsize=4 args="-mat_gpucsr_format csr"
//TEST name="ranks_standin" nsize=3 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format csr"
//TEST name="live" args="-mat_gpucsr_format {} -live" loop="csr sell"
//TEST name="live_standin" args="-gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -live"
//TEST name="zoo" args="-zoo -mat_gpucsr_format {}" loop="csr sell"
//TEST name="zoo_standin" args="-zoo -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda"
//TEST name="malloc" args="-mat_gpucsr_format csr -malloc_dump"

/*
  gpugmres and gpufgmres take the iterations of PETSc's gmres and fgmres, with the same residual norms up to rounding, and end for the same reason, for all preconditioners, sides, restarts,
  refinements of the orthogonalization, initial guesses and failures.

    build/tests/t616-gpugmres -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format csr [-path host_loop] [-live] [-zoo]
*/
#include "testing.h"
#include "krylov.h"

typedef enum {
  POISSON,
  CONVECTION,
  INDEFINITE, /* Poisson shifted into its spectrum */
  SINGULAR,   /* a row and a column of zeros */
  IDENTITY,
  CLOSED, /* Poisson without a boundary: constants are its null space */
  SKEW    /* a cycle: GMRES stands still until the last iteration */
} System;

typedef enum {
  ONES,
  ZERO,
  RANDOM,
  WITHNAN
} Side;

#define GUESS    1  /* x does not start at 0 */
#define BLOCKS   2  /* with blocks alone */
#define MAYFAIL  4  /* where the reference does not converge */
#define HOSTONLY 8  /* applied by PCApply() */
#define SOLUTION 16 /* x is not determined */
#define BEYOND   32 /* goes on after a small system is solved */

static const struct {
  System      system;
  Side        side;
  int         what;
  const char *method, *options;
} cases[] = {
  {CONVECTION, RANDOM,  0,                   "gmres",  "-pc_type none"                                                                                             },
  {CONVECTION, RANDOM,  0,                   "gmres",  "-pc_type jacobi"                                                                                           },
  {CONVECTION, RANDOM,  0,                   "gmres",  "-pc_type jacobi -ksp_pc_side right"                                                                        },
  {CONVECTION, RANDOM,  0,                   "gmres",  "-pc_type none -ksp_pc_side right"                                                                          },
  {CONVECTION, RANDOM,  0,                   "gmres",  "-pc_type jacobi -ksp_gmres_restart 5"                                                                      },
  {CONVECTION, RANDOM,  MAYFAIL,             "gmres",  "-pc_type jacobi -ksp_gmres_restart 1 -ksp_max_it 40"                                                       },
  {CONVECTION, RANDOM,  0,                   "gmres",  "-pc_type jacobi -ksp_gmres_restart 80 -ksp_rtol 1e-10"                                                     },
  {CONVECTION, RANDOM,  0,                   "gmres",  "-pc_type jacobi -ksp_gmres_cgs_refinement_type refine_always"                                              },
  {CONVECTION, RANDOM,  0,                   "gmres",  "-pc_type jacobi -ksp_gmres_cgs_refinement_type refine_ifneeded"                                            },
  {CONVECTION, RANDOM,  GUESS,               "gmres",  "-pc_type jacobi"                                                                                           },
  {CONVECTION, RANDOM,  GUESS,               "gmres",  "-pc_type jacobi -ksp_pc_side right -ksp_gmres_restart 7"                                                   },
  {CONVECTION, ZERO,    0,                   "gmres",  "-pc_type jacobi"                                                                                           },
  {CONVECTION, ZERO,    GUESS,               "gmres",  "-pc_type jacobi"                                                                                           },
  {CONVECTION, ZERO,    0,                   "gmres",  "-pc_type jacobi -ksp_norm_type none -ksp_max_it 5"                                                         },
  {CONVECTION, RANDOM,  MAYFAIL,             "gmres",  "-pc_type jacobi -ksp_norm_type none -ksp_max_it 11"                                                        },
  {CONVECTION, RANDOM,  MAYFAIL | BEYOND,    "gmres",  "-pc_type jacobi -ksp_convergence_test skip -ksp_max_it 9 -ksp_gmres_restart 4"                             },
  {CONVECTION, RANDOM,  MAYFAIL,             "gmres",  "-pc_type jacobi -ksp_max_it 3"                                                                             },
  {CONVECTION, RANDOM,  MAYFAIL,             "gmres",  "-pc_type jacobi -ksp_max_it 6 -ksp_gmres_restart 3"                                                        },
  {CONVECTION, RANDOM,  MAYFAIL,             "gmres",  "-pc_type jacobi -ksp_max_it 0"                                                                             },
  {CONVECTION, RANDOM,  MAYFAIL,             "gmres",  "-pc_type none -ksp_divtol 1.0000001 -ksp_gmres_restart 2 -ksp_max_it 30"                                   },
  {CONVECTION, WITHNAN, MAYFAIL,             "gmres",  "-pc_type jacobi"                                                                                           },
  {INDEFINITE, RANDOM,  MAYFAIL,             "gmres",  "-pc_type none -ksp_max_it 60"                                                                              },
  {SINGULAR,   ONES,    MAYFAIL | SOLUTION,  "gmres",  "-pc_type none -ksp_max_it 40"                                                                              },
  {IDENTITY,   RANDOM,  0,                   "gmres",  "-pc_type none"                                                                                             },
  {IDENTITY,   RANDOM,  MAYFAIL,             "gmres",  "-pc_type jacobi -ksp_norm_type none -ksp_max_it 4 -ksp_gmres_haptol 1e-10"                                 },
  {SKEW,       ONES,    MAYFAIL,             "gmres",  "-pc_type none -ksp_max_it 12"                                                                              },
  {CONVECTION, RANDOM,  BLOCKS,              "gmres",  "-pc_type pbjacobi"                                                                                         },
  {CONVECTION, RANDOM,  BLOCKS | GUESS,      "gmres",  "-pc_type pbjacobi -ksp_pc_side right -ksp_gmres_restart 9"                                                 },
  {CONVECTION, RANDOM,  BLOCKS,              "fgmres", "-pc_type pbjacobi"                                                                                         },
  {CONVECTION, RANDOM,  HOSTONLY,            "gmres",  "-pc_type bjacobi"                                                                                          },
  {CONVECTION, RANDOM,  HOSTONLY | GUESS,    "gmres",  "-pc_type bjacobi -ksp_pc_side right -ksp_gmres_restart 4"                                                  },
  {CONVECTION, RANDOM,  HOSTONLY | BEYOND,   "gmres",  "-pc_type bjacobi -sub_pc_type sor -ksp_gmres_cgs_refinement_type refine_ifneeded"                          },
  {CLOSED,     RANDOM,  HOSTONLY | SOLUTION, "gmres",  "-pc_type jacobi"                                                                                           },
  {CLOSED,     RANDOM,  HOSTONLY | SOLUTION, "gmres",  "-pc_type bjacobi"                                                                                          },
  {CONVECTION, RANDOM,  0,                   "fgmres", "-pc_type none"                                                                                             },
  {CONVECTION, RANDOM,  0,                   "fgmres", "-pc_type jacobi -ksp_gmres_restart 6"                                                                      },
  {CONVECTION, RANDOM,  GUESS,               "fgmres", "-pc_type jacobi"                                                                                           },
  {CONVECTION, ZERO,    0,                   "fgmres", "-pc_type jacobi"                                                                                           },
  {CONVECTION, ZERO,    MAYFAIL,             "fgmres", "-pc_type jacobi -ksp_norm_type none -ksp_max_it 5"                                                         },
  {CONVECTION, RANDOM,  MAYFAIL,             "fgmres", "-pc_type jacobi -ksp_max_it 6 -ksp_gmres_restart 3"                                                        },
  {CONVECTION, WITHNAN, MAYFAIL,             "fgmres", "-pc_type jacobi"                                                                                           },
  {IDENTITY,   RANDOM,  0,                   "fgmres", "-pc_type none"                                                                                             },
  {CONVECTION, RANDOM,  HOSTONLY,            "fgmres", "-pc_type bjacobi -ksp_gmres_restart 4"                                                                     },
  {CONVECTION, RANDOM,  HOSTONLY,            "fgmres", "-pc_type ksp -ksp_ksp_type richardson -ksp_ksp_max_it 4 -ksp_pc_type jacobi -ksp_ksp_convergence_test skip"},
  {CONVECTION, RANDOM,  HOSTONLY,            "gmres",  "-pc_type bjacobi -pc_bjacobi_blocks 4"                                                                     },
  {CONVECTION, RANDOM,  HOSTONLY,            "gmres",  "-pc_type asm -pc_asm_overlap 2"                                                                            },
};

static PetscInt seen; /* calls of the monitor */

/* Builds the solution and takes its residual, in the given norm */
static PetscErrorCode Watch(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
  Vec         x, b, r, z;
  Mat         A;
  PC          pc;
  PCSide      side;
  KSPNormType type;
  PetscReal   true_;

  PetscFunctionBegin;
  seen++;
  PetscCall(KSPBuildSolution(ksp, NULL, &x));
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(KSPGetRhs(ksp, &b));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(KSPGetPCSide(ksp, &side));
  PetscCall(KSPGetNormType(ksp, &type));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecDuplicate(b, &z));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  if (side == PC_LEFT) PetscCall(PCApply(pc, r, z));
  PetscCall(VecNorm(side == PC_LEFT ? z : r, NORM_2, &true_));
  if (*(PetscBool *)ctx && type != KSP_NORM_NONE && norm == norm)
    PetscCheck(PetscAbsReal(true_ - norm) <= 1e-8 * PetscMax(1, norm), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the monitor is told of the norm %g in iteration %" PetscInt_FMT ", that of the solution it builds is %g", (double)norm, n, (double)true_);
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* k: of cases */
static PetscErrorCode Solve(Mat A, const char prefix[], PetscInt k, PetscBool ours, Vec x, TestOutcome *o)
{
  char      type[16], path[16] = "auto", option[256];
  KSP       ksp;
  KSPType   now;
  Vec       b;
  PetscBool live = PETSC_FALSE, regular = (PetscBool)(cases[k].system == CONVECTION || cases[k].system == IDENTITY), same;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(type, sizeof(type), "%s%s", ours ? "gpu" : "", cases[k].method));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-path", path, sizeof(path), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-live", &live, NULL));
  PetscCall(PetscOptionsPrefixPush(NULL, prefix));
  PetscCall(PetscOptionsInsertString(NULL, cases[k].options));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_path %s", type, cases[k].what & HOSTONLY ? "auto" : path));
  if (ours) PetscCall(PetscOptionsInsertString(NULL, option));
  PetscCall(PetscOptionsPrefixPop(NULL));
  PetscCall(VecDuplicate(x, &b));
  if (cases[k].side == ZERO) PetscCall(VecSet(b, 0));
  else if (cases[k].side == ONES) PetscCall(VecSet(b, 1));
  else PetscCall(TestFill(b, 1, PETSC_FALSE));
  if (cases[k].system == SKEW) {
    PetscCall(VecSet(b, 0));
    PetscCall(VecSetValue(b, 0, 1, INSERT_VALUES));
  }
  if (cases[k].side == WITHNAN) PetscCall(VecSetValue(b, 0, NAN, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, prefix));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  if (cases[k].what & GUESS) PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  PetscCall(KSPSetResidualHistory(ksp, NULL, TEST_HISTORY, PETSC_TRUE));
  PetscCall(KSPSetFromOptions(ksp));
  if (live && ours) PetscCall(KSPMonitorSet(ksp, Watch, &regular, NULL));
  for (int again = 0; again < (ours ? 2 : 1); again++) { /* again, from the kept set-up */
    PetscCall(VecSet(x, 0));
    if (cases[k].what & GUESS) PetscCall(TestFill(x, 7, PETSC_FALSE));
    seen = 0;
    PetscCall(KSPSolve(ksp, b, x));
  }
  PetscCall(KSPGetType(ksp, &now));
  PetscCall(PetscStrcmp(now, type, &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: fell back to %s", cases[k].options, now);
  PetscCall(TestOutcomeGet(ksp, o));
  PetscCheck(!live || !ours || seen >= o->its || o->reason < 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the monitor was called %" PetscInt_FMT " times in %" PetscInt_FMT " iterations", cases[k].options, seen, o->its);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Diagonal, or a cycle */
static PetscErrorCode Special(System which, PetscInt n, PetscBool ref, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, ref, A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt i = rs; i < re; i++) PetscCall(MatSetValue(*A, i, which == SKEW ? (i + 1) % n : i, which == SKEW ? 1 : 3, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode System_(System which, PetscInt k, PetscBool ref, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  if (which == IDENTITY || which == SKEW) {
    PetscCall(Special(which, which == SKEW ? 8 : k * k, ref, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(TestConvection(PETSC_COMM_WORLD, k, which == CONVECTION ? 0.5 : 0.0, ref, A));
  if (which == INDEFINITE) PetscCall(MatShift(*A, -1.3));
  if (which == SINGULAR) {
    rs = 0;
    PetscCall(MatZeroRowsColumns(*A, 1, &rs, 0.0, NULL, NULL));
  }
  if (which == CLOSED) { /* the diagonal is what makes sums of rows 0 */
    Vec          sums;
    MatNullSpace null;

    PetscCall(MatCreateVecs(*A, NULL, &sums));
    PetscCall(MatGetRowSum(*A, sums));
    PetscCall(VecScale(sums, -1.0));
    PetscCall(MatGetOwnershipRange(*A, &rs, &re));
    PetscCall(MatDiagonalSet(*A, sums, ADD_VALUES));
    PetscCall(VecDestroy(&sums));
    PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
    PetscCall(MatSetNullSpace(*A, null));
    PetscCall(MatNullSpaceDestroy(&null));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(PetscInt k, const char name[], Mat A, Mat R)
{
  static TestOutcome a, r;
  char               prefix[2][32], where[512];
  Vec                x, y;
  PetscInt           part;
  PetscReal          xn, dn, top = 0;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(where, sizeof(where), "%s %s, %s", cases[k].method, cases[k].options, name));
  PetscCall(PetscSNPrintf(prefix[0], sizeof(prefix[0]), "test%" PetscInt_FMT "_", k));
  PetscCall(PetscSNPrintf(prefix[1], sizeof(prefix[1]), "ref%" PetscInt_FMT "_", k));
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(MatCreateVecs(R, &y, NULL));
  PetscCall(Solve(A, prefix[0], k, PETSC_TRUE, x, &a));
  PetscCall(Solve(R, prefix[1], k, PETSC_FALSE, y, &r));
  TestExpect(r.reason > 0 || (cases[k].what & MAYFAIL), "%s: not a test, as aij does not converge (%s)", where, KSPConvergedReasons[r.reason]);
  if (cases[k].system == IDENTITY && a.reason > 0 && r.reason > 0) a.reason = r.reason; /* the rest is 0, or rounding */
  TestExpect(a.reason == r.reason, "%s: %s after %" PetscInt_FMT " iterations, PETSc's %s after %" PetscInt_FMT, where, KSPConvergedReasons[a.reason], a.its, KSPConvergedReasons[r.reason], r.its);
  TestExpect(a.its == r.its, "%s: %" PetscInt_FMT " iterations, PETSc's takes %" PetscInt_FMT, where, a.its, r.its);
  TestExpect(a.n == r.n, "%s: history of %" PetscInt_FMT ", PETSc's of %" PetscInt_FMT, where, a.n, r.n);
  part = TestHistoriesPart(&a, &r, TestLongRecurrences, &top);
  TestExpect(part < 0, "%s: norm %.15g in iteration %" PetscInt_FMT ", PETSc's %.15g", where, (double)a.norm[PetscMax(part, 0)], part, (double)r.norm[PetscMax(part, 0)]);
  PetscCall(TestDistance(x, y, &dn, &xn));
  TestExpect(dn <= 1e-8 * xn || cases[k].side == ZERO || (cases[k].what & SOLUTION) || cases[k].side == WITHNAN, "%s: x differs from PETSc's by %g of %g", where, (double)dn, (double)xn);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(PetscInt k, PetscInt size)
{
  Mat  A, R;
  char name[32];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%" PetscInt_FMT, size));
  PetscCall(System_(cases[k].system, size, PETSC_FALSE, &A));
  PetscCall(System_(cases[k].system, size, PETSC_TRUE, &R));
  PetscCall(Compare(k, name, A, R));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Square matrices of the zoo, with a diagonal that GMRES converges with; the first cases, of any matrix */
static PetscErrorCode ZooCases(void)
{
  PetscFunctionBegin;
  for (PetscInt which = 0; which < ZOO_COUNT; which++) {
    PetscReal norm;
    Mat       A, R;

    if (ZooTable[which].m != ZooTable[which].n || ZooTable[which].m < 2 || ZooTable[which].m > 3000) continue;
    PetscCall(TestZoo(PETSC_COMM_WORLD, which, PETSC_FALSE, PETSC_FALSE, &A));
    PetscCall(TestZoo(PETSC_COMM_WORLD, which, PETSC_FALSE, PETSC_TRUE, &R));
    PetscCall(MatNorm(R, NORM_INFINITY, &norm));
    PetscCall(MatShift(A, 0.8 * norm + 1));
    PetscCall(MatShift(R, 0.8 * norm + 1));
    for (PetscInt k = 0; k < 12; k++) PetscCall(Compare(k, ZooTable[which].name, A, R));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const PetscInt sizes[] = {2, 24, 61};
  PetscInt       ncases = PETSC_STATIC_ARRAY_LENGTH(cases), first = 0, bs = 1;
  PetscBool      blocks = PETSC_FALSE, zoo = PETSC_FALSE;
  PetscMPIInt    nranks;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &nranks));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-blocks", &blocks, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-zoo", &zoo, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_block_size", &bs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-case", &first, NULL)); /* this one alone */
  if (first) ncases = first + 1;
  if (zoo) PetscCall(ZooCases());
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(sizes) && !zoo; s++) {
    if (sizes[s] * sizes[s] % (bs * nranks)) continue;
    for (PetscInt k = first; k < ncases; k++) {
      if ((cases[k].system == SINGULAR || (cases[k].what & BEYOND)) && sizes[s] < 4) continue; /* four unknowns: what ends it is rounding */
      if (!(cases[k].what & BLOCKS) == !blocks) PetscCall(Case(k, sizes[s]));
    }
  }
  PetscCheck(!TestFailures, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%d of what was expected did not happen", TestFailures);
  PetscCall(PetscFinalize());
  return 0;
}
