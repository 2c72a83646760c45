static char help[] = "Solves a convection-diffusion equation in three dimensions by finite differences: an unsymmetric system.\n\n";

/*
  v . grad u - eps (u_xx + u_yy + u_zz) = 1 inside a box, u = 0 on its surface, with a constant velocity v, on the grid of poisson3d.

    convdiff3d -n 40                                       upwind differences: an M-matrix, and a solution without wiggles, at any speed
    convdiff3d -n 40 -scheme central -diffusion 0.05       central differences: of second order; wiggles if v h > 2 eps
    mpiexec -n 2 convdiff3d -velocity 0,0,1 -ksp_type gmres -pc_type asm

  The type of the matrix is an option, of this program or of its grid: -mat_type gpucsr or -dm_mat_type gpucsr.
*/
#include "grid.h"

typedef enum {
  SCHEME_UPWIND,
  SCHEME_CENTRAL
} Scheme;
static const char *const schemes[] = {"upwind", "central"};

/* below[d], centre and above[d] are the weights of the point and of its two neighbours in direction d */
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

static PetscScalar Weight(const PetscInt step[3], const void *ctx)
{
  const Stencil *s = (const Stencil *)ctx;

  for (PetscInt d = 0; d < 3; d++)
    if (step[d]) return step[d] < 0 ? s->below[d] : s->above[d];
  return s->centre;
}

int main(int argc, char **argv)
{
  DM        da;
  Mat       A;
  Stencil   stencil;
  PetscInt  n = 20, nv = 3, scheme = SCHEME_UPWIND, size[3];
  PetscReal v[3] = {1.0, 0.5, 0.25}, eps = 0.01, h = 0.0, speed;
  PetscBool given;
  double    nonzeros = 0.0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of convdiff3d", NULL);
  PetscCall(PetscOptionsInt("-n", "unknowns in each direction; -da_grid_x and so on set one", "convdiff3d.c", n, &n, NULL));
  PetscCall(PetscOptionsReal("-diffusion", "eps, the diffusion", "convdiff3d.c", eps, &eps, NULL));
  PetscCall(PetscOptionsRealArray("-velocity", "v, the velocity: three numbers", "convdiff3d.c", v, &nv, &given));
  PetscCall(PetscOptionsEList("-scheme", "differences of the convection", "convdiff3d.c", schemes, 2, schemes[scheme], &scheme, NULL));
  PetscOptionsEnd();
  PetscCheck(eps > 0.0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-diffusion has to be positive, not %g", (double)eps);
  PetscCheck(!given || nv == 3, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-velocity takes three numbers, such as 1,0.5,0.25, not %" PetscInt_FMT, nv);

  PetscCall(GridCreate(n, DMDA_STENCIL_STAR, &da, size, &h));
  stencil = MakeStencil((Scheme)scheme, eps, v, h);
  PetscCall(GridMatrix(da, Weight, &stencil, &A, &nonzeros));
  speed = PetscMax(PetscMax(PetscAbsReal(v[0]), PetscAbsReal(v[1])), PetscAbsReal(v[2]));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "grid      %" PetscInt_FMT " x %" PetscInt_FMT " x %" PetscInt_FMT ", %s differences, cell Peclet number %.3g, %.0f nonzeros\n", size[0], size[1], size[2], schemes[scheme], (double)(speed * h / eps), nonzeros));
  PetscCall(GridSolve(&da, &A, KSPBCGS, h));
  PetscCall(PetscFinalize());
  return 0;
}
