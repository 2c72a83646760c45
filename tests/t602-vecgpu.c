//TEST name="default"
//TEST name="ranks" nsize=2 args="-vec_gpu_separate"
//TEST name="ranks4" nsize=4 args="-vec_gpu_separate"
//TEST name="malloc" args="-vec_gpu_separate -malloc_dump"

/*
  Nonlinear problems, time steps and minimizations with vectors of type gpu take the same steps as with standard vectors. A DMDA makes the
  vectors (-dm_vec_type gpu), or the program (-vec_type gpu).

    build/tests/t602-vecgpu -dll_append build/lib/libpetscgpucsr.so [-vec_gpu_separate]
*/
#include <petscdmda.h>
#include <petscsnes.h>
#include <petsctao.h>
#include <petscts.h>
#include "testing.h"
#include "bratu.h"

typedef struct {
  PetscInt  steps, iterations;
  int       reason;
  PetscReal norm; /* of the solution */
} Outcome;

static PetscErrorCode Options(const char prefix[], const char options[])
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsPrefixPush(NULL, prefix));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(PetscOptionsPrefixPop(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Grid(const char prefix[], PetscBool gpu, DM *dm)
{
  PetscBool found;
  VecType   type;

  PetscFunctionBegin;
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 17, 17, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, dm));
  PetscCall(DMSetOptionsPrefix(*dm, prefix));
  PetscCall(Options(prefix, gpu ? "-dm_vec_type gpu -dm_mat_type gpucsr" : "-dm_vec_type standard -dm_mat_type aij"));
  PetscCall(DMSetFromOptions(*dm));
  PetscCall(DMSetUp(*dm));
  PetscCall(DMGetVecType(*dm, &type));
  PetscCall(PetscStrcmp(type, gpu ? "gpu" : VECSTANDARD, &found));
  PetscCheck(found, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The vectors of the grid are of type %s", type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nonlinear(const char prefix[], PetscBool gpu, const char options[], Outcome *o)
{
  DM                  dm;
  SNES                snes;
  Vec                 u;
  SNESConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(Options(prefix, options));
  PetscCall(Grid(prefix, gpu, &dm));
  PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
  PetscCall(SNESSetOptionsPrefix(snes, prefix));
  PetscCall(SNESSetDM(snes, dm));
  PetscCall(DMDASNESSetFunctionLocal(dm, INSERT_VALUES, (PetscErrorCode(*)(DMDALocalInfo *, void *, void *, void *))Bratu, NULL));
  PetscCall(SNESSetFromOptions(snes));
  PetscCall(DMCreateGlobalVector(dm, &u));
  PetscCall(SNESSolve(snes, NULL, u));
  PetscCall(SNESGetIterationNumber(snes, &o->steps));
  PetscCall(SNESGetLinearSolveIterations(snes, &o->iterations));
  PetscCall(SNESGetConvergedReason(snes, &reason));
  o->reason = (int)reason;
  PetscCall(VecNorm(u, NORM_2, &o->norm));
  PetscCall(VecDestroy(&u));
  PetscCall(SNESDestroy(&snes));
  PetscCall(DMDestroy(&dm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* du/dt = laplace(u) + u - u^3, no flux through the rim */
static PetscErrorCode Reaction(DMDALocalInfo *info, PetscReal t, PetscScalar **u, PetscScalar **f, void *ctx)
{
  const PetscReal h2 = 100.0 / (PetscReal)((info->mx - 1) * (info->mx - 1));

  PetscFunctionBegin;
  (void)ctx;
  (void)t;
  for (PetscInt j = info->ys; j < info->ys + info->ym; j++) {
    for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
      PetscScalar flux = 0.0;

      if (i) flux += u[j][i - 1] - u[j][i];
      if (j) flux += u[j - 1][i] - u[j][i];
      if (i < info->mx - 1) flux += u[j][i + 1] - u[j][i];
      if (j < info->my - 1) flux += u[j + 1][i] - u[j][i];
      f[j][i] = flux / h2 + u[j][i] - u[j][i] * u[j][i] * u[j][i];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Steps(const char prefix[], PetscBool gpu, const char options[], Outcome *o)
{
  DM                dm;
  TS                ts;
  Vec               u;
  TSConvergedReason reason;
  PetscInt          rs, re;

  PetscFunctionBegin;
  PetscCall(Grid(prefix, gpu, &dm));
  PetscCall(Options(prefix, options));
  PetscCall(DMCreateGlobalVector(dm, &u));
  PetscCall(VecGetOwnershipRange(u, &rs, &re));
  {
    DMDALocalInfo info;
    PetscScalar **a;

    PetscCall(DMDAGetLocalInfo(dm, &info));
    PetscCall(DMDAVecGetArray(dm, u, &a));
    for (PetscInt j = info.ys; j < info.ys + info.ym; j++)
      for (PetscInt i = info.xs; i < info.xs + info.xm; i++) a[j][i] = PetscSinReal(0.7 * (PetscReal)i) * PetscCosReal(0.4 * (PetscReal)j);
    PetscCall(DMDAVecRestoreArray(dm, u, &a));
  }
  PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
  PetscCall(TSSetOptionsPrefix(ts, prefix));
  PetscCall(TSSetDM(ts, dm));
  PetscCall(TSSetProblemType(ts, TS_NONLINEAR));
  PetscCall(DMDATSSetRHSFunctionLocal(dm, INSERT_VALUES, (PetscErrorCode(*)(DMDALocalInfo *, PetscReal, void *, void *, void *))Reaction, NULL));
  PetscCall(TSSetMaxTime(ts, 0.5));
  PetscCall(TSSetTimeStep(ts, 0.01));
  PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_MATCHSTEP));
  PetscCall(TSSetFromOptions(ts));
  PetscCall(TSSolve(ts, u));
  PetscCall(TSGetStepNumber(ts, &o->steps));
  PetscCall(TSGetKSPIterations(ts, &o->iterations));
  PetscCall(TSGetConvergedReason(ts, &reason));
  o->reason = (int)reason;
  PetscCall(VecNorm(u, NORM_2, &o->norm));
  PetscCall(VecDestroy(&u));
  PetscCall(TSDestroy(&ts));
  PetscCall(DMDestroy(&dm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A sum of (1 - x)^2 + 10 (y - x^2)^2 over pairs of entries that are on the same rank */
static PetscErrorCode Valley(Tao tao, Vec x, PetscReal *f, Vec g, void *ctx)
{
  const PetscScalar *a;
  PetscScalar       *b;
  PetscInt           n;
  PetscReal          sum = 0.0;

  PetscFunctionBegin;
  (void)ctx;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayWrite(g, &b));
  for (PetscInt k = 0; k < n; k += 2) {
    const PetscReal u = PetscRealPart(a[k]), v = PetscRealPart(a[k + 1]), t = v - u * u;

    sum += PetscSqr(1 - u) + 10 * t * t;
    b[k]     = -2 * (1 - u) - 40 * t * u;
    b[k + 1] = 20 * t;
  }
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCall(VecRestoreArrayWrite(g, &b));
  PetscCallMPI(MPI_Allreduce(&sum, f, 1, MPIU_REAL, MPIU_SUM, PetscObjectComm((PetscObject)tao)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Minimum(const char prefix[], PetscBool gpu, const char options[], Outcome *o)
{
  Tao                tao;
  Vec                x, g;
  TaoConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(Options(prefix, gpu ? "-vec_type gpu" : "-vec_type standard"));
  PetscCall(Options(prefix, options));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &x));
  PetscCall(VecSetOptionsPrefix(x, prefix));
  PetscCall(VecSetSizes(x, 100, PETSC_DETERMINE));
  PetscCall(VecSetFromOptions(x));
  PetscCall(VecDuplicate(x, &g));
  PetscCall(TaoCreate(PETSC_COMM_WORLD, &tao));
  PetscCall(TaoSetOptionsPrefix(tao, prefix));
  PetscCall(TaoSetSolution(tao, x));
  PetscCall(TaoSetObjectiveAndGradient(tao, g, Valley, NULL));
  PetscCall(TaoSetFromOptions(tao));
  PetscCall(TaoSolve(tao));
  PetscCall(TaoGetIterationNumber(tao, &o->steps));
  PetscCall(TaoGetTotalIterationNumber(tao, &o->iterations));
  PetscCall(TaoGetConvergedReason(tao, &reason));
  o->reason = (int)reason;
  PetscCall(VecNorm(x, NORM_2, &o->norm));
  PetscCall(TaoDestroy(&tao));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const struct {
    PetscErrorCode (*solve)(const char[], PetscBool, const char[], Outcome *);
    const char *options;
  } cases[] = {
    {Nonlinear, "-ksp_type gmres -pc_type bjacobi"                                                   },
    {Nonlinear, "-ksp_type cg -pc_type jacobi"                                                       },
    {Nonlinear, "-snes_type ngmres"                                                                  },
    {Nonlinear, "-snes_mf -ksp_type gmres"                                                           },
    {Nonlinear, "-da_refine 1 -ksp_type fgmres -pc_type mg -mg_levels_pc_type jacobi"                },
    {Steps,     "-ts_type rk -ts_adapt_type basic"                                                   },
    {Steps,     "-ts_type beuler -ksp_type gmres -pc_type jacobi"                                    },
    {Steps,     "-ts_type cn -ksp_type bcgs -pc_type bjacobi"                                        },
    {Steps,     "-ts_type rosw -ts_adapt_type basic -ksp_type gmres -pc_type jacobi -ts_max_steps 20"},
#if PETSC_VERSION_LT(3, 22, 0)  /* later ones keep the steps of LMVM in a dense matrix of the vectors' type, and make none for types that are not their own */
    {Minimum,   "-tao_type lmvm -tao_gatol 1e-6"                                                     },
#endif
    {Minimum,   "-tao_type cg -tao_gatol 1e-4"                                                       },
  };

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    Outcome o[2];

    for (int gpu = 0; gpu < 2; gpu++) {
      char prefix[32];

      PetscCall(PetscSNPrintf(prefix, sizeof(prefix), "%s%d_", gpu ? "gpu" : "ref", (int)k));
      PetscCall((*cases[k].solve)(prefix, (PetscBool)gpu, cases[k].options, &o[gpu]));
    }
    PetscCheck(o[0].reason > 0 && o[0].reason == o[1].reason && o[0].steps == o[1].steps && PetscAbsInt(o[0].iterations - o[1].iterations) <= o[0].steps + o[0].iterations / 20, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: reason %d after %" PetscInt_FMT " steps and %" PetscInt_FMT " iterations, with standard vectors %d after %" PetscInt_FMT " and %" PetscInt_FMT,
               cases[k].options, o[1].reason, o[1].steps, o[1].iterations, o[0].reason, o[0].steps, o[0].iterations);
    PetscCheck(PetscAbsReal(o[0].norm - o[1].norm) <= 1e-6 * o[0].norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the solution's norm is %g, with standard vectors %g", cases[k].options, (double)o[1].norm, (double)o[0].norm);
  }
  PetscCall(PetscFinalize());
  return 0;
}
