//TEST name="default"
//TEST name="format" args="-mat_gpucsr_format sell"
//TEST name="ranks" nsize=2 args="-mat_gpucsr_format {}" loop="aij csr"
//TEST name="ranks4" nsize=4 args="-mat_gpucsr_format sell"
//TEST name="ranks3" nsize=3 args="-mat_type aij" load=0
//TEST name="malloc" args="-mat_gpucsr_format csr -malloc_dump"
//TEST name="vecgpu" args="-vec_type gpu -vec_gpu_separate -mat_gpucsr_format {}" loop="aij csr"
//TEST name="unasked" args="-vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="unasked2" nsize=2 args="-vec_gpu_separate"
//TEST name="vecgpu2" nsize=2 args="-vec_type gpu -vec_gpu_separate"
//TEST name="vecgpu.malloc" args="-vec_type gpu -malloc_dump"

/*
  PETSc's solvers and preconditioners with the type under test take the same iterations as with MATAIJ, end for the same reason, and reach an
  equally small residual.

    build/tests/t600-ksp -dll_append build/lib/libpetscgpucsr.so [-mat_type gpucsr] [-mat_gpucsr_...]
*/
#include "testing.h"

typedef enum {
  POISSON,
  CONVECTION,
  TALL
} System;

#define SEQUENTIAL 1

static const struct {
  System      system;
  PetscInt    what;
  const char *options;
} cases[] = {
  {POISSON,    0,          "-ksp_type cg -pc_type none"                                                                                },
  {POISSON,    0,          "-ksp_type cg -pc_type jacobi"                                                                              },
  {POISSON,    0,          "-ksp_type cg -pc_type bjacobi"                                                                             },
  {POISSON,    0,          "-ksp_type cg -pc_type bjacobi -sub_pc_type icc"                                                            },
  {POISSON,    SEQUENTIAL, "-ksp_type cg -pc_type icc"                                                                                 },
  {POISSON,    SEQUENTIAL, "-ksp_type cg -pc_type eisenstat"                                                                           },
  {POISSON,    SEQUENTIAL, "-ksp_type preonly -pc_type cholesky"                                                                       },
  {POISSON,    0,          "-ksp_type cg -pc_type asm"                                                                                 },
  {POISSON,    0,          "-ksp_type cg -pc_type sor"                                                                                 },
  {POISSON,    0,          "-ksp_type cg -pc_type gamg -pc_gamg_gpucsr false"                                                          },
  {POISSON,    0,          "-ksp_type cg -ksp_norm_type unpreconditioned -pc_type gamg -mg_levels_pc_type jacobi -pc_gamg_gpucsr false"},
  {POISSON,    0,          "-ksp_type pipecg -pc_type jacobi"                                                                          },
  {POISSON,    0,          "-ksp_type minres -pc_type jacobi"                                                                          },
  {POISSON,    0,          "-ksp_type chebyshev -pc_type jacobi"                                                                       },
  {POISSON,    0,          "-ksp_type cg -pc_type redundant"                                                                           },
  {POISSON,    0,          "-ksp_type cg -pc_type fieldsplit -pc_fieldsplit_type symmetric_multiplicative"                             },
  {CONVECTION, 0,          "-ksp_type gmres -pc_type none"                                                                             },
  {CONVECTION, 0,          "-ksp_type gmres -pc_type jacobi -ksp_pc_side right"                                                        },
  {CONVECTION, 0,          "-ksp_type fgmres -pc_type bjacobi"                                                                         },
  {CONVECTION, 0,          "-ksp_type bcgs -pc_type jacobi"                                                                            },
  {CONVECTION, 0,          "-ksp_type bcgs -pc_type bjacobi"                                                                           },
  {CONVECTION, 0,          "-ksp_type bcgs -pc_type asm -pc_asm_overlap 2"                                                             },
  {CONVECTION, 0,          "-ksp_type bcgs -pc_type gamg -pc_gamg_gpucsr false"                                                        },
  {CONVECTION, 0,          "-ksp_type bcgs -pc_type sor"                                                                               },
  {CONVECTION, 0,          "-ksp_type gmres -pc_type vpbjacobi"                                                                        },
  {CONVECTION, SEQUENTIAL, "-ksp_type gmres -pc_type ilu"                                                                              },
  {CONVECTION, SEQUENTIAL, "-ksp_type gmres -pc_type ilu -pc_factor_levels 2 -pc_factor_mat_ordering_type rcm"                         },
  {CONVECTION, SEQUENTIAL, "-ksp_type preonly -pc_type lu"                                                                             },
  {CONVECTION, 0,          "-ksp_type bicg -pc_type jacobi"                                                                            },
  {CONVECTION, 0,          "-ksp_type tfqmr -pc_type bjacobi"                                                                          },
  {CONVECTION, 0,          "-ksp_type gmres -pc_type fieldsplit -pc_fieldsplit_type additive"                                          },
  {CONVECTION, 0,          "-ksp_type fgmres -pc_type fieldsplit -pc_fieldsplit_type schur -pc_fieldsplit_schur_precondition selfp"    },
  {POISSON,    0,          "-ksp_type groppcg -pc_type jacobi"                                                                         },
  {POISSON,    0,          "-ksp_type pipecgrr -pc_type jacobi"                                                                        },
  {POISSON,    0,          "-ksp_type pipeprcg -pc_type jacobi"                                                                        },
  {POISSON,    0,          "-ksp_type pipecg2 -pc_type jacobi"                                                                         },
  {POISSON,    0,          "-ksp_type pipelcg -pc_type jacobi -ksp_pipelcg_lmin 0 -ksp_pipelcg_lmax 2"                                 },
  {POISSON,    0,          "-ksp_type cr -pc_type jacobi"                                                                              },
  {POISSON,    0,          "-ksp_type pipecr -pc_type jacobi"                                                                          },
  {POISSON,    0,          "-ksp_type fcg -pc_type jacobi"                                                                             },
  {POISSON,    0,          "-ksp_type pipefcg -pc_type jacobi"                                                                         },
  {POISSON,    0,          "-ksp_type pipegcr -pc_type jacobi"                                                                         },
  {POISSON,    0,          "-ksp_type symmlq -pc_type jacobi"                                                                          },
  {POISSON,    0,          "-ksp_type stcg -pc_type jacobi"                                                                            },
  {POISSON,    0,          "-ksp_type cg -ksp_cg_single_reduction -pc_type jacobi"                                                     },
  {CONVECTION, 0,          "-ksp_type ibcgs -pc_type jacobi"                                                                           },
  {CONVECTION, 0,          "-ksp_type ibcgs -pc_type bjacobi -ksp_pc_side right"                                                       },
  {CONVECTION, 0,          "-ksp_type fbcgsr -pc_type jacobi"                                                                          },
  {CONVECTION, 0,          "-ksp_type fbcgs -pc_type jacobi"                                                                           },
  {CONVECTION, 0,          "-ksp_type cgs -pc_type jacobi"                                                                             },
  {CONVECTION, 0,          "-ksp_type bcgsl -pc_type jacobi"                                                                           },
  {CONVECTION, 0,          "-ksp_type gcr -pc_type jacobi"                                                                             },
  {CONVECTION, 0,          "-ksp_type lgmres -pc_type jacobi"                                                                          },
  {CONVECTION, 0,          "-ksp_type dgmres -pc_type jacobi"                                                                          },
  {CONVECTION, 0,          "-ksp_type pgmres -pc_type jacobi"                                                                          },
  {CONVECTION, 0,          "-ksp_type pipefgmres -pc_type jacobi"                                                                      },
  {CONVECTION, 0,          "-ksp_type pipebcgs -pc_type jacobi"                                                                        },
  {CONVECTION, 0,          "-ksp_type qmrcgs -pc_type jacobi"                                                                          },
  {CONVECTION, 0,          "-ksp_type tcqmr -pc_type jacobi"                                                                           },
  {CONVECTION, 0,          "-ksp_type tfqmr -pc_type jacobi"                                                                           },
  {CONVECTION, 0,          "-ksp_type cgne -pc_type none"                                                                              },
  {CONVECTION, 0,          "-ksp_type richardson -pc_type bjacobi -ksp_max_it 2000"                                                    },
  {CONVECTION, 0,          "-ksp_type lsqr -pc_type none -ksp_rtol 1e-4"                                                               },
  {TALL,       0,          "-ksp_type lsqr -pc_type none"                                                                              },
  {TALL,       0,          "-ksp_type cgls -pc_type none"                                                                              },
#if defined(PETSC_HAVE_HYPRE)
  {POISSON,    0,          "-ksp_type cg -pc_type hypre -pc_hypre_type boomeramg"                                                      },
#endif
#if defined(PETSC_HAVE_MUMPS)
  {CONVECTION, 0,          "-ksp_type preonly -pc_type lu -pc_factor_mat_solver_type mumps"                                            },
#endif
};

/* Blocks of one, two and three rows, for PCVPBJACOBI, which is PETSc's */
static PetscErrorCode VariableBlocks(Mat A)
{
  PetscInt n, *sizes, count = 0;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(PetscMalloc1(n, &sizes));
  for (PetscInt r = 0; r < n; r += sizes[count - 1]) {
    sizes[count] = PetscMin(1 + count % 3, n - r);
    count++;
  }
  PetscCall(MatSetVariableBlockSizes(A, count, sizes));
  PetscCall(PetscFree(sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solve with A, or the reference, by the options of a case; the solution goes into x */
static PetscErrorCode Solve(Mat A, const char prefix[], const char options[], Vec x, PetscInt *its, KSPConvergedReason *reason)
{
  KSP       ksp;
  PC        pc;
  Vec       b, left;
  PetscBool split, variable;

  PetscFunctionBegin;
  PetscCall(PetscOptionsPrefixPush(NULL, prefix));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(PetscOptionsPrefixPop(NULL));
  PetscCall(MatCreateVecs(A, NULL, &left));
  PetscCall(VecDuplicate(left, &b));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, prefix));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCVPBJACOBI, &variable));
  if (variable) PetscCall(VariableBlocks(A));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCFIELDSPLIT, &split));
  for (PetscInt f = 0; split && f < 2; f++) { /* the unknowns of even and of odd number */
    PetscInt rs, re, first;
    IS       is;

    PetscCall(MatGetOwnershipRange(A, &rs, &re));
    first = rs + (rs + f) % 2;
    PetscCall(ISCreateStride(PetscObjectComm((PetscObject)A), (re - first + 1) / 2, first, 2, &is));
    PetscCall(PCFieldSplitSetIS(pc, f ? "odd" : "even", is));
    PetscCall(ISDestroy(&is));
  }
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPGetConvergedReason(ksp, reason));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&left));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |R'(b - R x)|, or, if R is square, without the transpose: the quantity that solvers minimize; and its rounding */
static PetscErrorCode ResidualNorm(Mat R, Vec x, PetscReal *norm, PetscReal *rounding)
{
  Vec       r, b, t;
  PetscInt  m, n;
  PetscReal a, xn, bn;

  PetscFunctionBegin;
  PetscCall(MatGetSize(R, &m, &n));
  PetscCall(MatCreateVecs(R, &t, &r));
  PetscCall(VecDuplicate(r, &b));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(MatNorm(R, NORM_FROBENIUS, &a));
  PetscCall(VecNorm(x, NORM_2, &xn));
  PetscCall(VecNorm(b, NORM_2, &bn));
  PetscCall(MatResidual(R, b, x, r));
  *rounding = TEST_C * PETSC_MACHINE_EPSILON * (a * xn + bn);
  if (m == n) PetscCall(VecNorm(r, NORM_2, norm));
  else {
    PetscCall(MatMultTranspose(R, r, t));
    PetscCall(VecNorm(t, NORM_2, norm));
    *rounding *= a;
  }
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(Mat A, Mat R, PetscInt k)
{
  const char        *options = cases[k].options;
  char               prefix[2][32]; /* an own prefix, so that options of other cases have no effect */
  Vec                x, y, z;
  PetscInt           its, itsref, rs, re;
  PetscReal          norm, normref, rounding;
  KSPConvergedReason reason, reasonref;
  const PetscScalar *v;
  PetscScalar       *w;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(MatCreateVecs(R, &y, NULL));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(PetscSNPrintf(prefix[0], sizeof(prefix[0]), "test%" PetscInt_FMT "_", k));
  PetscCall(PetscSNPrintf(prefix[1], sizeof(prefix[1]), "ref%" PetscInt_FMT "_", k));
  PetscCall(Solve(A, prefix[0], options, x, &its, &reason));
  PetscCall(Solve(R, prefix[1], options, y, &itsref, &reasonref));
  PetscCheck(reasonref > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Case %s: not a test, as aij does not converge (%s)", options, KSPConvergedReasons[reasonref]);
  /* sums in another order round otherwise, and a test of convergence may pass an iteration sooner or later for that */
  PetscCheck(reason == reasonref && PetscAbsInt(its - itsref) <= 1 + itsref / 20, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Case %s: %s after %" PetscInt_FMT " iterations, with aij %s after %" PetscInt_FMT, options, KSPConvergedReasons[reason], its, KSPConvergedReasons[reasonref], itsref);
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(VecGetArrayRead(x, &v));
  PetscCall(VecGetArrayWrite(z, &w));
  PetscCall(PetscArraycpy(w, v, re - rs));
  PetscCall(VecRestoreArrayRead(x, &v));
  PetscCall(VecRestoreArrayWrite(z, &w));
  PetscCall(ResidualNorm(R, z, &norm, &rounding));
  PetscCall(ResidualNorm(R, y, &normref, &rounding));
  PetscCheck(norm <= 2.0 * normref + rounding, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Case %s: residual %g, with aij %g", options, (double)norm, (double)normref);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-options_left", "no")); /* -pc_gamg_gpucsr of the reference, which has other matrices */
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    Mat A[2];

    if (size > 1 && cases[k].what == SEQUENTIAL) continue;
    for (PetscInt ref = 0; ref < 2; ref++) {
      if (cases[k].system == TALL) PetscCall(TestZoo(PETSC_COMM_WORLD, ZOO_TALL, PETSC_FALSE, (PetscBool)ref, &A[ref]));
      else PetscCall(TestConvection(PETSC_COMM_WORLD, 24, cases[k].system == POISSON ? 0.0 : 0.5, (PetscBool)ref, &A[ref]));
    }
    PetscCall(Case(A[0], A[1], (PetscInt)k));
    PetscCall(MatDestroy(&A[0]));
    PetscCall(MatDestroy(&A[1]));
  }
  PetscCall(PetscFinalize());
  return 0;
}
