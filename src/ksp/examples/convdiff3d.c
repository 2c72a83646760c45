static char help[] = "Solves a convection-diffusion equation in three dimensions by finite differences: an unsymmetric system.\n\n";

/*
  v . grad u - eps (u_xx + u_yy + u_zz) = 1 inside a box, u = 0 on its surface, with a constant velocity v, on the grid of poisson3d.

    convdiff3d -n 40                                       upwind differences: an M-matrix, and a solution without wiggles, at any speed
    convdiff3d -n 40 -scheme central -diffusion 0.05       central differences: of second order; wiggles if v h > 2 eps
    mpiexec -n 2 convdiff3d -velocity 0,0,1 -ksp_type gmres -pc_type asm

  The type of the matrix is an option, of this program or of its grid: -mat_type gpucsr or -dm_mat_type gpucsr.
*/
#include "report.h"
#include <petscdmda.h>

typedef enum {
  SCHEME_UPWIND,
  SCHEME_CENTRAL
} Scheme;
static const char *const schemes[] = {"upwind", "central"};

/* h^2 times the operator: below[d], centre and above[d] are the weights of the point and of its two neighbours in direction d */
typedef struct {
  PetscScalar below[3], centre, above[3];
} Stencil;

static Stencil MakeStencil(Scheme scheme, PetscReal eps, const PetscReal v[], PetscReal h)
{
  Stencil s = {
    {0.0, 0.0, 0.0},
    0.0, {0.0, 0.0, 0.0}
  };

  for (PetscInt d = 0; d < 3; d++) {
    const PetscReal in  = scheme == SCHEME_UPWIND ? h * PetscMax(v[d], 0.0) : 0.5 * h * v[d]; /* carried in from below */
    const PetscReal out = scheme == SCHEME_UPWIND ? h * PetscMin(v[d], 0.0) : 0.5 * h * v[d];

    s.below[d] = -eps - in;
    s.above[d] = -eps + out;
    s.centre += 2.0 * eps + in - out;
  }
  return s;
}

static PetscErrorCode Assemble(DM da, const Stencil *s, Mat A)
{
  PetscInt xs, ys, zs, xm, ym, zm, size[3];

  PetscFunctionBeginUser;
  PetscCall(DMDAGetInfo(da, NULL, &size[0], &size[1], &size[2], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(DMDAGetCorners(da, &xs, &ys, &zs, &xm, &ym, &zm));
  for (PetscInt k = zs; k < zs + zm; k++) {
    for (PetscInt j = ys; j < ys + ym; j++) {
      for (PetscInt i = xs; i < xs + xm; i++) {
        const PetscInt here[3] = {i, j, k};
        MatStencil     row, col[7];
        PetscScalar    v[7];
        PetscInt       n = 0;

        row.i  = i;
        row.j  = j;
        row.k  = k;
        row.c  = 0;
        col[n] = row;
        v[n++] = s->centre;
        for (PetscInt d = 0; d < 3; d++) {
          for (PetscInt step = -1; step <= 1; step += 2) {
            if (here[d] + step < 0 || here[d] + step >= size[d]) continue;
            col[n] = row;
            if (d == 0) col[n].i += step;
            else if (d == 1) col[n].j += step;
            else col[n].k += step;
            v[n++] = step < 0 ? s->below[d] : s->above[d];
          }
        }
        PetscCall(MatSetValuesStencil(A, 1, &row, n, col, v, INSERT_VALUES));
      }
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  DM        da;
  Mat       A;
  Vec       x, b;
  KSP       ksp;
  PC        pc;
  Stencil   stencil;
  MatInfo   info;
  PetscInt  n = 20, nv = 3, scheme = SCHEME_UPWIND, mx, my, mz;
  PetscReal v[3] = {1.0, 0.5, 0.25}, eps = 0.01, h, speed, max;
  PetscBool given;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of convdiff3d", NULL);
  PetscCall(PetscOptionsInt("-n", "unknowns in each direction; -da_grid_x and so on set one", "convdiff3d.c", n, &n, NULL));
  PetscCall(PetscOptionsReal("-diffusion", "eps, the diffusion", "convdiff3d.c", eps, &eps, NULL));
  PetscCall(PetscOptionsRealArray("-velocity", "v, the velocity: three numbers", "convdiff3d.c", v, &nv, &given));
  PetscCall(PetscOptionsEList("-scheme", "differences of the convection", "convdiff3d.c", schemes, 2, schemes[scheme], &scheme, NULL));
  PetscOptionsEnd();
  PetscCheck(n > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-n has to be positive, not %" PetscInt_FMT, n);
  PetscCheck(eps > 0.0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-diffusion has to be positive, not %g", (double)eps);
  PetscCheck(!given || nv == 3, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-velocity takes three numbers, such as 1,0.5,0.25, not %" PetscInt_FMT, nv);

  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n, n, n, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &da));
  PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  PetscCall(DMDAGetInfo(da, NULL, &mx, &my, &mz, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  h       = 1.0 / (PetscReal)(mx + 1);
  speed   = PetscMax(PetscMax(PetscAbsReal(v[0]), PetscAbsReal(v[1])), PetscAbsReal(v[2]));
  stencil = MakeStencil((Scheme)scheme, eps, v, h);

  PetscCall(DMCreateMatrix(da, &A));
  PetscCall(Assemble(da, &stencil, A));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "grid      %" PetscInt_FMT " x %" PetscInt_FMT " x %" PetscInt_FMT ", %s differences, cell Peclet number %.3g, %.0f nonzeros\n", mx, my, mz, schemes[scheme], (double)(speed * h / eps), info.nz_used));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, h * h));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPBCGS));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));

  PetscCall(KSPReport(ksp, A, b, x));
  PetscCall(VecMax(x, NULL, &max));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solution  largest value %.5f\n", (double)max));

  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(DMDestroy(&da));
  PetscCall(PetscFinalize());
  return 0;
}
