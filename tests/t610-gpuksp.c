//TEST name="format" args="-mat_gpucsr_format {}" loop="sell dia ell jad sell_256 stencil"
//TEST name="graph" gpu=1 args="-path graph -mat_gpucsr_format {}" loop="csr sell dia sell_256 stencil"
//TEST name="persistent" gpu=1 args="-path persistent -mat_gpucsr_kernel {}" loop="csr_scalar csr_vector8 csr_adaptive sell_row dia_row"
//TEST name="persistent_format" gpu=1 args="-path persistent -mat_gpucsr_format {}" loop="jad sell_256 stencil"
//TEST name="two_meetings" gpu=1 args="-path persistent -mat_gpucsr_format {} -halo false" loop="csr sell dia stencil"
//TEST name="grid" gpu=1 args="-path persistent -mat_gpucsr_format {} -size 200 -cases 10" loop="csr stencil"
//TEST name="grid_two_meetings" gpu=1 args="-path persistent -mat_gpucsr_format {} -size 200 -cases 10 -halo false" loop="csr stencil"
//TEST name="large" gpu=1 args="-path persistent -mat_gpucsr_format {} -size 560 -cases 3" loop="csr dia stencil"
//TEST name="large_few" gpu=1 args="-path persistent -mat_gpucsr_format {} -size 560 -only max_it" loop="csr dia stencil sell"
//TEST name="host_loop" args="-path host_loop -mat_gpucsr_format {}" loop="csr sell"
//TEST name="standin" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format {}" loop="csr sell"
//TEST name="floats" args="-mat_gpucsr_format {} -mat_gpucsr_precision auto" loop="csr sell"
//TEST name="blocks" args="-mat_gpucsr_format csr -mat_block_size {} -ref_mat_block_size {} -blocks" loop="2 3 4 6 8"
//TEST name="blocks_format" args="-mat_gpucsr_format {} -mat_block_size 3 -ref_mat_block_size 3 -blocks" loop="sell dia"
//TEST name="blocks_graph" gpu=1 args="-path graph -mat_gpucsr_format sell -mat_block_size 3 -ref_mat_block_size 3 -blocks"
//TEST name="ranks" nsize=2 args="-mat_gpucsr_format {}" loop="csr sell"
//TEST name="ranks4" nsize=4 args="-mat_gpucsr_format csr"
//TEST name="live" args="-mat_gpucsr_format {} -live" loop="csr sell"
//TEST name="malloc" args="-mat_gpucsr_format csr -malloc_dump"

/*
  gpucg and gpubcgs take the iterations of PETSc's cg and bcgs, with the same residual norms but for rounding, and end for the same reason, whatever the norm, the
  preconditioner, the guess, the test, and what goes wrong.

    build/tests/t610-gpuksp -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format csr [-path persistent] [-live] [-halo false] [-size 200] [-cases 10] [-only max_it]
*/
#include "testing.h"
#include "krylov.h"

typedef enum {
  POISSON,
  CONVECTION,
  INDEFINITE, /* Poisson shifted into its spectrum */
  NEGATIVE,   /* minus Poisson */
  SINGULAR,   /* a row and a column of zeros */
  SYSTEMS
} System;

typedef enum {
  ONES,
  ZERO,
  RANDOM,
  WITHNAN
} Side;

#define GUESS   1 /* x does not start at 0 */
#define EXACT   2 /* it starts at the solution of a coarse tolerance */
#define BLOCKS  4 /* with blocks alone */
#define MAYFAIL 8 /* where the reference does not converge */

static const struct {
  System      system;
  Side        side;
  int         what;
  const char *method, *options;
} cases[] = {
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type none"                                                      },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type jacobi"                                                    },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type jacobi -pc_jacobi_type rowmax"                             },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type jacobi -pc_jacobi_type rowsum -pc_jacobi_abs"              },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type jacobi -ksp_norm_type unpreconditioned"                    },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type jacobi -ksp_norm_type natural"                             },
  {POISSON,    RANDOM,  MAYFAIL,         "cg",   "-pc_type jacobi -ksp_norm_type none -ksp_max_it 17"                 },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type jacobi -ksp_convergence_test skip -ksp_max_it 9"           },
  {POISSON,    RANDOM,  GUESS,           "cg",   "-pc_type jacobi"                                                    },
  {POISSON,    RANDOM,  GUESS,           "cg",   "-pc_type jacobi -ksp_norm_type unpreconditioned"                    },
  {POISSON,    RANDOM,  GUESS,           "cg",   "-pc_type jacobi -ksp_norm_type natural"                             },
  {POISSON,    RANDOM,  GUESS,           "cg",   "-pc_type none -ksp_converged_use_initial_residual_norm"             },
  {POISSON,    RANDOM,  GUESS,           "cg",   "-pc_type none -ksp_converged_use_min_initial_residual_norm"         },
  {POISSON,    ZERO,    GUESS,           "cg",   "-pc_type jacobi"                                                    },
  {POISSON,    ZERO,    0,               "cg",   "-pc_type jacobi"                                                    },
  {POISSON,    ZERO,    0,               "cg",   "-pc_type jacobi -ksp_norm_type none"                                },
  {POISSON,    RANDOM,  EXACT,           "cg",   "-pc_type jacobi -ksp_rtol 1e-2"                                     },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type jacobi -ksp_atol 1e-1 -ksp_rtol 1e-30"                     },
  {POISSON,    RANDOM,  MAYFAIL,         "cg",   "-pc_type jacobi -ksp_max_it 5"                                      },
  {POISSON,    RANDOM,  MAYFAIL,         "cg",   "-pc_type jacobi -ksp_max_it 1"                                      },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type jacobi -ksp_max_it 5 -ksp_converged_maxits"                },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type jacobi -ksp_check_norm_iteration 6"                        },
  {POISSON,    RANDOM,  MAYFAIL,         "cg",   "-pc_type none -ksp_divtol 1.0000001 -ksp_norm_type unpreconditioned"},
  {POISSON,    WITHNAN, MAYFAIL,         "cg",   "-pc_type jacobi"                                                    },
  {INDEFINITE, RANDOM,  MAYFAIL,         "cg",   "-pc_type none -ksp_rtol 1e-12"                                      },
  {INDEFINITE, RANDOM,  MAYFAIL,         "cg",   "-pc_type jacobi -ksp_rtol 1e-12"                                    },
  {NEGATIVE,   RANDOM,  MAYFAIL,         "cg",   "-pc_type none"                                                      },
  {SINGULAR,   ONES,    MAYFAIL,         "cg",   "-pc_type none -ksp_max_it 60"                                       },
  {POISSON,    RANDOM,  0,               "cg1",  "-pc_type none"                                                      },
  {POISSON,    RANDOM,  0,               "cg1",  "-pc_type jacobi"                                                    },
  {POISSON,    RANDOM,  0,               "cg1",  "-pc_type jacobi -ksp_norm_type unpreconditioned"                    },
  {POISSON,    RANDOM,  0,               "cg1",  "-pc_type jacobi -ksp_norm_type natural"                             },
  {POISSON,    RANDOM,  GUESS,           "cg1",  "-pc_type jacobi"                                                    },
  {POISSON,    ZERO,    0,               "cg1",  "-pc_type jacobi"                                                    },
  {INDEFINITE, RANDOM,  MAYFAIL,         "cg1",  "-pc_type none -ksp_rtol 1e-12"                                      },
  {POISSON,    RANDOM,  MAYFAIL,         "cg1",  "-pc_type jacobi -ksp_max_it 5"                                      },
  {POISSON,    RANDOM,  BLOCKS,          "cg",   "-pc_type pbjacobi"                                                  },
  {POISSON,    RANDOM,  BLOCKS,          "cg",   "-pc_type pbjacobi -ksp_norm_type natural"                           },
  {POISSON,    RANDOM,  BLOCKS | GUESS,  "cg",   "-pc_type pbjacobi -ksp_norm_type unpreconditioned"                  },
  {POISSON,    RANDOM,  BLOCKS | GUESS,  "cg1",  "-pc_type pbjacobi"                                                  },
  {POISSON,    RANDOM,  0,               "cg",   "-pc_type bjacobi -sub_pc_type icc"                                  },
  {POISSON,    RANDOM,  GUESS,           "cg",   "-pc_type bjacobi -sub_pc_type icc"                                  },
  {POISSON,    RANDOM,  0,               "cg1",  "-pc_type bjacobi -sub_pc_type icc"                                  },
  {CONVECTION, RANDOM,  0,               "bcgs", "-pc_type none"                                                      },
  {CONVECTION, RANDOM,  0,               "bcgs", "-pc_type jacobi"                                                    },
  {CONVECTION, RANDOM,  0,               "bcgs", "-pc_type jacobi -ksp_pc_side right"                                 },
  {CONVECTION, RANDOM,  0,               "bcgs", "-pc_type none -ksp_pc_side right"                                   },
  {CONVECTION, RANDOM,  GUESS,           "bcgs", "-pc_type jacobi"                                                    },
  {CONVECTION, RANDOM,  GUESS,           "bcgs", "-pc_type jacobi -ksp_pc_side right"                                 },
  {CONVECTION, RANDOM,  MAYFAIL,         "bcgs", "-pc_type jacobi -ksp_norm_type none -ksp_max_it 11"                 },
  {CONVECTION, RANDOM,  MAYFAIL,         "bcgs", "-pc_type jacobi -ksp_max_it 3"                                      },
  {CONVECTION, RANDOM,  MAYFAIL | GUESS, "bcgs", "-pc_type jacobi -ksp_max_it 3 -ksp_pc_side right"                   },
  {CONVECTION, ZERO,    0,               "bcgs", "-pc_type jacobi"                                                    },
  {CONVECTION, RANDOM,  EXACT,           "bcgs", "-pc_type jacobi -ksp_rtol 1e-2"                                     },
  {CONVECTION, WITHNAN, MAYFAIL,         "bcgs", "-pc_type jacobi"                                                    },
  {CONVECTION, RANDOM,  BLOCKS,          "bcgs", "-pc_type pbjacobi"                                                  },
  {CONVECTION, RANDOM,  BLOCKS | GUESS,  "bcgs", "-pc_type pbjacobi -ksp_pc_side right"                               },
  {CONVECTION, RANDOM,  0,               "bcgs", "-pc_type bjacobi"                                                   },
  {CONVECTION, RANDOM,  GUESS,           "bcgs", "-pc_type bjacobi -ksp_pc_side right"                                },
};

typedef struct {
  TestOutcome of;
  PetscReal   rnorm, truenorm; /* of the end, by the recurrence and of b - A x */
} Outcome;

static PetscInt seen; /* calls of the monitor */

/* One that could look at anything: it does, at x */
static PetscErrorCode Watch(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
  Vec       x;
  PetscReal r;

  PetscFunctionBegin;
  PetscCall(KSPBuildSolution(ksp, NULL, &x));
  PetscCall(VecNorm(x, NORM_2, &r));
  PetscCheck(n == seen, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the monitor is told of iteration %" PetscInt_FMT " after %" PetscInt_FMT, n, seen - 1);
  PetscCheck(n == 0 || r > 0 || *(PetscBool *)ctx, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "x is 0 when the monitor sees it in iteration %" PetscInt_FMT, n);
  seen++;
  (void)norm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where a solve starts */
static PetscErrorCode Guess(Mat A, Vec b, PetscInt k, Vec x)
{
  KSP ksp;

  PetscFunctionBegin;
  PetscCall(VecSet(x, 0));
  if (cases[k].what & GUESS) PetscCall(TestFill(x, 7, PETSC_FALSE));
  if (cases[k].what & EXACT) {
    PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetTolerances(ksp, 1e-6, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Mat A, const char prefix[], PetscInt k, PetscBool ours, Vec x, Outcome *o)
{
  const char *method = cases[k].method;
  char        type[16], path[16] = "auto", option[256];
  KSP         ksp;
  Vec         b;
  PetscBool   single, bcgs, live = PETSC_FALSE, halo = PETSC_TRUE, zero = (PetscBool)(cases[k].side == ZERO || cases[k].side == WITHNAN);

  PetscFunctionBegin;
  PetscCall(PetscStrncmp(method, "cg1", 3, &single));
  PetscCall(PetscStrncmp(method, "bcgs", 4, &bcgs));
  PetscCall(PetscSNPrintf(type, sizeof(type), "%s%s", ours ? "gpu" : "", bcgs ? "bcgs" : "cg"));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-path", path, sizeof(path), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-live", &live, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-halo", &halo, NULL));
  PetscCall(PetscOptionsPrefixPush(NULL, prefix));
  PetscCall(PetscOptionsInsertString(NULL, cases[k].options));
  if (ours) {
    /* no persistent kernel solves these */
    if (strstr(cases[k].options, " bjacobi") || (single && !strcmp(path, "persistent"))) PetscCall(PetscStrncpy(path, "auto", sizeof(path)));
    PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_path %s", type, path));
    PetscCall(PetscOptionsInsertString(NULL, option));
    PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_true_residual true", type)); /* also where it is dear: after a few iterations by a preconditioner that is */
    PetscCall(PetscOptionsInsertString(NULL, option));
    if (single) PetscCall(PetscOptionsInsertString(NULL, "-ksp_gpucg_variant single_reduction"));
    if (!halo && !bcgs) PetscCall(PetscOptionsInsertString(NULL, "-ksp_gpucg_halo_recomputation false"));
  }
  PetscCall(PetscOptionsPrefixPop(NULL));
  PetscCall(VecDuplicate(x, &b));
  if (cases[k].side == ZERO) PetscCall(VecSet(b, 0));
  else if (cases[k].side == ONES) PetscCall(VecSet(b, 1));
  else PetscCall(TestFill(b, 1, PETSC_FALSE));
  if (cases[k].side == WITHNAN) {
    PetscCall(VecSetValue(b, 0, NAN, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(b));
    PetscCall(VecAssemblyEnd(b));
  }
  PetscCall(Guess(A, b, k, x));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, prefix));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  if (single && !ours) PetscCall(KSPCGUseSingleReduction(ksp, PETSC_TRUE));
  if (cases[k].what & (GUESS | EXACT)) PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  PetscCall(KSPSetResidualHistory(ksp, NULL, TEST_HISTORY, PETSC_TRUE));
  PetscCall(KSPSetFromOptions(ksp));
  seen = 0;
  if (live && ours) PetscCall(KSPMonitorSet(ksp, Watch, &zero, NULL));
  PetscCall(KSPSolve(ksp, b, x));
  if (ours) { /* the type must not have been given up for PETSc's */
    KSPType now;

    PetscCall(KSPGetType(ksp, &now));
    PetscCall(PetscStrcmp(now, type, &single));
    PetscCheck(single, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: fell back to %s", cases[k].options, now);
    PetscCall(Guess(A, b, k, x));
    seen = 0;
    PetscCall(KSPSolve(ksp, b, x)); /* again, from the kept set-up */
  }
  PetscCall(KSPGetResidualNorm(ksp, &o->rnorm));
  o->truenorm = o->rnorm;
  if (ours) {
    PetscErrorCode (*get)(KSP, PetscReal *);

    PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPGPUGetTrueResidualNorm_C", &get));
    PetscCall((*get)(ksp, &o->truenorm));
  }
  PetscCall(TestOutcomeGet(ksp, &o->of));
  PetscCheck(!live || !ours || seen == o->of.n, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the monitor was called %" PetscInt_FMT " times, the history has %" PetscInt_FMT " entries", cases[k].options, seen, o->of.n);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode System_(System which, PetscInt k, PetscBool ref, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, k, which == CONVECTION ? 0.5 : 0.0, ref, A));
  if (which == INDEFINITE) PetscCall(MatShift(*A, -1.3));
  if (which == NEGATIVE) PetscCall(MatScale(*A, -1.0));
  if (which == SINGULAR) {
    PetscCall(MatGetOwnershipRange(*A, &rs, &re));
    rs = 0;
    PetscCall(MatZeroRowsColumns(*A, 1, &rs, 0.0, NULL, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(PetscInt k, PetscInt size)
{
  char           prefix[2][32];
  static Outcome got, ref;
  TestOutcome   *a = &got.of, *r = &ref.of;
  Mat            A, R;
  Vec            x, y;
  PetscReal      top = cases[k].what & EXACT ? 1 : 0, xn, dn; /* of b, where only rounding is left of the residual */
  PetscInt       part;
  const char    *what = cases[k].options;

  PetscFunctionBegin;
  PetscCall(System_(cases[k].system, size, PETSC_FALSE, &A));
  PetscCall(System_(cases[k].system, size, PETSC_TRUE, &R));
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(MatCreateVecs(R, &y, NULL));
  PetscCall(PetscSNPrintf(prefix[0], sizeof(prefix[0]), "test%" PetscInt_FMT "_", k));
  PetscCall(PetscSNPrintf(prefix[1], sizeof(prefix[1]), "ref%" PetscInt_FMT "_", k));
  PetscCall(Solve(A, prefix[0], k, PETSC_TRUE, x, &got));
  PetscCall(Solve(R, prefix[1], k, PETSC_FALSE, y, &ref));
  TestExpect(r->reason > 0 || (cases[k].what & MAYFAIL) || size < 4, "%s %s: not a test, as aij does not converge (%s)", cases[k].method, what, KSPConvergedReasons[r->reason]);
  /* where p'Ap is rounding, the reason depends on rounding */
  if (cases[k].system == SINGULAR && a->reason < 0 && r->reason < 0) a->reason = r->reason;
  TestExpect(a->reason == r->reason, "%s %s, %" PetscInt_FMT ": %s after %" PetscInt_FMT " iterations, PETSc's %s after %" PetscInt_FMT, cases[k].method, what, size, KSPConvergedReasons[a->reason], a->its, KSPConvergedReasons[r->reason], r->its);
  TestExpect(cases[k].system == SINGULAR || PetscAbsInt(a->its - r->its) <= r->its / 20 + (r->its > 20 ? 1 : 0), "%s %s, %" PetscInt_FMT ": %" PetscInt_FMT " iterations, PETSc's takes %" PetscInt_FMT, cases[k].method, what, size, a->its, r->its);
  TestExpect(cases[k].system == SINGULAR || a->n - a->its == r->n - r->its, "%s %s, %" PetscInt_FMT ": history of %" PetscInt_FMT " for %" PetscInt_FMT " iterations, PETSc's of %" PetscInt_FMT " for %" PetscInt_FMT, cases[k].method, what, size, a->n, a->its, r->n, r->its);
  part = TestHistoriesPart(a, r, TestShortRecurrences, &top);
  TestExpect(part < 0, "%s %s, %" PetscInt_FMT ": norm %.15g in iteration %" PetscInt_FMT ", PETSc's %.15g", cases[k].method, what, size, (double)a->norm[PetscMax(part, 0)], part, (double)r->norm[PetscMax(part, 0)]);
  TestExpect(a->reason <= 0 || PetscAbsReal(got.truenorm - got.rnorm) <= 1e-6 * top, "%s %s, %" PetscInt_FMT ": the norm of the true residual is %g, by the recurrence %g", cases[k].method, what, size, (double)got.truenorm, (double)got.rnorm);
  if (cases[k].side != WITHNAN && r->reason > 0) {
    PetscCall(TestDistance(x, y, &dn, &xn));
    TestExpect(dn <= (a->its == r->its ? 1e-4 : 1e-2) * xn || cases[k].system == SINGULAR || cases[k].side == ZERO, "%s %s, %" PetscInt_FMT ": x differs from PETSc's by %g of %g", cases[k].method, what, size, (double)dn, (double)xn);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt    sizes[] = {2, 24, 61}, nsizes = 3, ncases = PETSC_STATIC_ARRAY_LENGTH(cases);
  char        only[64] = "";
  PetscBool   blocks   = PETSC_FALSE, set;
  PetscInt    bs       = 1;
  PetscMPIInt nranks;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &nranks));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-blocks", &blocks, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_block_size", &bs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-size", &sizes[0], &set));
  if (set) nsizes = 1;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-cases", &ncases, NULL));              /* the first so many */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL)); /* those with such options */
  for (PetscInt s = 0; s < nsizes; s++) {
    if (sizes[s] * sizes[s] % (bs * nranks)) continue;
    for (PetscInt k = 0; k < ncases; k++)
      if (!(cases[k].what & BLOCKS) == !blocks && strstr(cases[k].options, only)) PetscCall(Case(k, sizes[s]));
  }
  PetscCheck(!TestFailures, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%d of what was expected did not happen", TestFailures);
  PetscCall(PetscFinalize());
  return 0;
}
