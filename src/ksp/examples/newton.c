static char help[] = "Solves a nonlinear Poisson equation by Newton's method. The values of the matrices are computed where the matrices are.\n\n";

/*
  -div((1 + u^2) grad u) = f in the unit cube, u = 0 on its surface, by linear elements on tetrahedra.

    newton -n 100 -mat_type gpucsr -mat_gpucsr_master device -ksp_type gpugmres -snes_monitor -mat_gpucsr_report
    newton -n 20 -mat_type aij

  With -mat_gpucsr_master device the report says that no value of a matrix crossed the bus: a kernel (newton.cu) writes each element's contributions into a vector of the GPU, and MatSetValuesCOO()
  sums them there. Without a GPU a loop computes the same contributions. newton.py is the same program in Python.
*/
#include <petscsnes.h>
#include <petscgpucsr.h>
#include "newton.h"

#if defined(GPUCSR_HAVE_CUDA) /* newton.cu */
extern int   NewtonLaunch(int elements, const int *corner, const int *unknown, const double *point, const double *u, int tangent, double *v, void *stream);
extern void *NewtonSend(const void *table, size_t bytes);
extern void  NewtonFree(void *);
#else
  #define NewtonLaunch(...) PETSC_ERR_GPU
  #define NewtonSend(...)   NULL
  #define NewtonFree(...)
#endif

typedef struct {
  int       elements;
  void     *table[3]; /* corner, unknown, point: on the GPU, if the vectors are there */
  PetscBool gpu;      /* vectors are of type gpu */
  void     *stream;   /* of the GPU; NULL: vectors of type gpu are on the host */
  Vec       v, b;     /* contributions, right-hand side */
  Mat       P;        /* P(u) u - b = 0 */
} Problem;

/* A = P(u) or the Jacobian: no value leaves the GPU */
static PetscErrorCode Assemble(Problem *p, Vec u, int tangent, Mat A)
{
  const int    *corner = p->table[0], *unknown = p->table[1];
  const double *point = p->table[2], *x;
  double       *v;

  PetscFunctionBeginUser;
  PetscCall(p->gpu ? VecGPUGetArrayRead(u, &x) : VecGetArrayRead(u, (const PetscScalar **)&x));
  PetscCall(p->gpu ? VecGPUGetArrayWrite(p->v, &v) : VecGetArrayWrite(p->v, (PetscScalar **)&v));
  if (p->stream) PetscCheck(!NewtonLaunch(p->elements, corner, unknown, point, x, tangent, v, p->stream), PETSC_COMM_SELF, PETSC_ERR_GPU, "The kernel cannot be launched");
  else
    for (int e = 0; e < p->elements; e++) NewtonValues(e, corner, unknown, point, x, tangent, v);
  PetscCall(MatSetValuesCOO(A, (PetscScalar *)v, INSERT_VALUES));
  PetscCall(p->gpu ? VecGPURestoreArrayWrite(p->v, &v) : VecRestoreArrayWrite(p->v, (PetscScalar **)&v));
  PetscCall(p->gpu ? VecGPURestoreArrayRead(u, &x) : VecRestoreArrayRead(u, (const PetscScalar **)&x));
  PetscFunctionReturn(0);
}

static PetscErrorCode Function(SNES snes, Vec u, Vec f, void *ctx)
{
  Problem *p = (Problem *)ctx;

  PetscFunctionBeginUser;
  PetscCall(Assemble(p, u, 0, p->P));
  PetscCall(MatMult(p->P, u, f));
  PetscCall(VecAXPY(f, -1.0, p->b));
  PetscFunctionReturn(0);
}

static PetscErrorCode Jacobian(SNES snes, Vec u, Mat J, Mat B, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(Assemble((Problem *)ctx, u, 1, J));
  PetscFunctionReturn(0);
}

/* A matrix with an entry for each pair of corners; MatSetPreallocationCOO() skips negative numbers, here points on the surface, and may change its lists */
static PetscErrorCode Pattern(const Problem *p, PetscInt unknowns, Mat *A)
{
  const int *corner = p->table[0], *unknown = p->table[1];
  PetscInt  *i, *j;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(16 * p->elements, &i, 16 * p->elements, &j));
  for (int k = 0; k < 16 * p->elements; k++) {
    i[k] = unknown[corner[k / 4]];
    j[k] = unknown[corner[k / 16 * 4 + k % 4]];
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, unknowns, unknowns, unknowns, unknowns));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetPreallocationCOO(*A, 16 * p->elements, i, j));
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(0);
}

static PetscErrorCode Vector(const Problem *p, PetscInt n, Vec *x)
{
  PetscFunctionBeginUser;
  PetscCall(VecCreate(PETSC_COMM_SELF, x));
  PetscCall(VecSetSizes(*x, n, n));
  PetscCall(VecSetType(*x, p->gpu ? VECGPU : VECSEQ));
  PetscFunctionReturn(0);
}

/* The unit cube of n cubes a side, six tetrahedra each; tables of corners, unknowns and points, and their sizes */
static PetscErrorCode Mesh(int n, Problem *p, PetscInt *unknowns, size_t bytes[3])
{
  const int points = (n + 1) * (n + 1) * (n + 1);
  int      *corner, *unknown;
  double   *point;

  PetscFunctionBeginUser;
  p->elements = 6 * n * n * n;
  bytes[0]    = sizeof(int) * 4 * (size_t)p->elements;
  bytes[1]    = sizeof(int) * (size_t)points;
  bytes[2]    = sizeof(double) * 3 * (size_t)points;
  for (int k = 0; k < 3; k++) PetscCall(PetscMalloc(bytes[k], &p->table[k]));
  corner    = p->table[0];
  unknown   = p->table[1];
  point     = p->table[2];
  *unknowns = 0;
  for (int k = 0; k < 4 * p->elements; k++) corner[k] = NewtonCorner(n + 1, k / 4, k % 4);
  for (int k = 0; k < points; k++) {
    const int at[3]  = {k % (n + 1), k / (n + 1) % (n + 1), k / (n + 1) / (n + 1)};
    int       inside = 1;

    for (int x = 0; x < 3; x++) {
      point[3 * k + x] = (double)at[x] / n;
      inside           = inside && at[x] > 0 && at[x] < n;
    }
    unknown[k] = inside ? (int)(*unknowns)++ : -1;
  }
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  Problem             p = {.stream = NULL};
  PetscInt            n = 8, unknowns = 0, its;
  PetscReal           f = 40, norm;
  size_t              bytes[3];
  Mat                 J;
  Vec                 u;
  SNES                snes;
  KSP                 ksp;
  PC                  pc;
  SNESConvergedReason reason;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL)); /* cubes in each direction */
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-f", &f, NULL));
  PetscCheck(sizeof(PetscScalar) == sizeof(double), PETSC_COMM_WORLD, PETSC_ERR_SUP, "The elements are computed in double");

  PetscCall(Mesh((int)n, &p, &unknowns, bytes));
  PetscCall(Pattern(&p, unknowns, &J));
  PetscCall(Pattern(&p, unknowns, &p.P));
  PetscCall(PetscObjectTypeCompare((PetscObject)J, MATSEQAIJGPUCSR, &p.gpu));
  PetscCall(Vector(&p, unknowns, &u));
  PetscCall(Vector(&p, 16 * p.elements, &p.v));
  PetscCall(VecDuplicate(u, &p.b));
  PetscCall(VecSet(p.b, f / (PetscReal)(n * n * n))); /* each unknown has the volume of a cube */
  if (p.gpu) PetscCall(VecGPUGetStream(u, &p.stream));
  for (int k = 0; k < 3 && p.stream; k++) {
    void *sent = NewtonSend(p.table[k], bytes[k]);

    PetscCheck(sent, PETSC_COMM_SELF, PETSC_ERR_GPU, "The mesh cannot be sent to the GPU");
    PetscCall(PetscFree(p.table[k]));
    p.table[k] = sent;
  }

  PetscCall(SNESCreate(PETSC_COMM_SELF, &snes));
  PetscCall(SNESSetFunction(snes, NULL, Function, &p));
  PetscCall(SNESSetJacobian(snes, J, J, Jacobian, &p));
  PetscCall(SNESGetKSP(snes, &ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(SNESSetFromOptions(snes));
  PetscCall(VecSet(u, 0.0));
  PetscCall(SNESSolve(snes, NULL, u));
  PetscCall(SNESGetConvergedReason(snes, &reason));
  PetscCall(SNESGetIterationNumber(snes, &its));
  PetscCall(VecNorm(u, NORM_INFINITY, &norm));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "mesh      %d tetrahedra, %" PetscInt_FMT " unknowns\noutcome   %s after %" PetscInt_FMT " iterations\nsolution  at most %.4f\n", p.elements, unknowns, SNESConvergedReasons[reason], its, (double)norm));
  PetscCall(VecViewFromOptions(u, NULL, "-solution_view"));
  PetscCall(MatViewFromOptions(J, NULL, "-jacobian_view"));

  for (int k = 0; k < 3; k++) {
    if (p.stream) NewtonFree(p.table[k]);
    else PetscCall(PetscFree(p.table[k]));
  }
  PetscCall(SNESDestroy(&snes));
  PetscCall(MatDestroy(&J));
  PetscCall(MatDestroy(&p.P));
  PetscCall(VecDestroy(&u));
  PetscCall(VecDestroy(&p.v));
  PetscCall(VecDestroy(&p.b));
  PetscCall(PetscFinalize());
  return 0;
}
