//TEST name="default" args="-vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="ranks2" nsize=2 args="-vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="standin" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="standin2" nsize=2 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="aij" args="-mat_type aij"

/* Unusual programs with vectors: placed arrays, scatters, ghosts, a DM, parts of vectors, a thread, a fork (programs.h) */
static char help[] = "Tests what a program may do and few do: vectors.\n";

#include "programs.h"
#include <petscdmda.h>
#include <petscksp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static PetscErrorCode Case_placed(World *w)
{
  Mat                A;
  Vec                x, y, z;
  PetscScalar       *a, mine[200];
  const PetscScalar *r;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 1, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(Fill(x, 1));
  PetscCall(Fill(z, 6));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecGetArray(z, &a)); /* z's array is x's for a while */
  PetscCall(VecPlaceArray(x, a));
  PetscCall(MatMult(A, x, y));
  PetscCall(TellVec(w, y));
  PetscCall(VecScale(x, 2));
  PetscCall(VecResetArray(x));
  PetscCall(VecRestoreArray(z, &a));
  PetscCall(TellVec(w, z));
  PetscCall(MatMult(A, z, y));
  PetscCall(TellVec(w, y));
  PetscCall(MatMult(A, x, y));
  PetscCall(TellVec(w, y));
  for (PetscInt k = 0; k < n; k++) mine[k] = (PetscScalar)(k % 7);
  PetscCall(VecPlaceArray(y, mine));
  PetscCall(MatMultAdd(A, x, y, y));
  PetscCall(VecResetArray(y));
  for (PetscInt k = 0; k < n; k++) PetscCall(Tell(w, PetscRealPart(mine[k])));
  PetscCall(TellVec(w, y));
  PetscCall(VecGetArrayRead(x, &r)); /* while one looks at x it is multiplied */
  PetscCall(MatMult(A, x, y));
  PetscCall(VecAXPY(y, 3, x));
  PetscCall(VecRestoreArrayRead(x, &r));
  PetscCall(TellVec(w, y));
  {
    PetscScalar *own;

    PetscCall(PetscMalloc1(PetscMax(n, 1), &own));
    for (PetscInt k = 0; k < n; k++) own[k] = (PetscScalar)(k % 3);
    PetscCall(VecReplaceArray(z, own)); /* z frees it */
    PetscCall(MatMult(A, z, y));
    PetscCall(TellVec(w, y));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_scatter(World *w)
{
  Mat        A;
  Vec        x, y, host, all, zero;
  VecScatter s;
  IS         from, to;
  PetscInt   rs, re, n;

  PetscFunctionBegin;
  PetscCall(Grid(w, 7, 1, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecCreate(w->comm, &host));
  PetscCall(VecSetSizes(host, PETSC_DECIDE, 49));
  PetscCall(VecSetType(host, VECSTANDARD));
  PetscCall(Fill(x, 1));
  PetscCall(VecScale(x, 3));
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  n = re - rs;
  PetscCall(ISCreateStride(w->comm, n, rs, 1, &from));
  PetscCall(ISCreateStride(w->comm, n, 48 - rs, -1, &to));
  PetscCall(VecScatterCreate(x, from, host, to, &s));
  for (int round = 0; round < 3; round++) {
    PetscCall(VecScale(x, 2));
    PetscCall(VecScatterBegin(s, x, host, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(s, x, host, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(TellVec(w, host));
    PetscCall(MatMult(A, x, y));
    PetscCall(VecScatterBegin(s, host, y, ADD_VALUES, SCATTER_REVERSE));
    PetscCall(VecScatterEnd(s, host, y, ADD_VALUES, SCATTER_REVERSE));
    PetscCall(MatMult(A, y, x));
    PetscCall(TellVec(w, x));
    PetscCall(Fill(x, round));
  }
  PetscCall(VecScatterDestroy(&s));
  PetscCall(VecScatterCreate(x, from, y, to, &s));
  PetscCall(VecScatterBegin(s, x, y, MAX_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(s, x, y, MAX_VALUES, SCATTER_FORWARD));
  PetscCall(TellVec(w, y));
  PetscCall(VecScatterBegin(s, x, x, INSERT_VALUES, SCATTER_FORWARD_LOCAL));
  PetscCall(VecScatterEnd(s, x, x, INSERT_VALUES, SCATTER_FORWARD_LOCAL));
  PetscCall(VecScatterDestroy(&s));
  PetscCall(VecScatterCreateToAll(x, &s, &all));
  PetscCall(Fill(x, 3));
  PetscCall(VecShift(x, 1));
  PetscCall(VecScatterBegin(s, x, all, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(s, x, all, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScale(all, 2));
  PetscCall(TellVec(w, all));
  PetscCall(VecScatterDestroy(&s));
  PetscCall(VecScatterCreateToZero(x, &s, &zero));
  PetscCall(VecScale(x, -1));
  PetscCall(VecScatterBegin(s, x, zero, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(s, x, zero, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(TellVec(w, zero));
  PetscCall(VecShift(zero, 4));
  PetscCall(VecScatterBegin(s, zero, x, INSERT_VALUES, SCATTER_REVERSE));
  PetscCall(VecScatterEnd(s, zero, x, INSERT_VALUES, SCATTER_REVERSE));
  PetscCall(TellVec(w, x));
  PetscCall(VecScatterDestroy(&s));
  PetscCall(VecDestroy(&all));
  PetscCall(VecDestroy(&zero));
  PetscCall(VecDestroy(&host));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(ISDestroy(&from));
  PetscCall(ISDestroy(&to));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_vectors(World *w)
{
  Mat       A;
  Vec       x, y, z, local, sub, cat, *many, pair[2];
  IS        is;
  PetscInt  rs, re;
  PetscReal nrm[2];

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 1, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(Fill(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(ISCreateStride(w->comm, (re - rs) / 3, rs, 3, &is));
  PetscCall(VecGetSubVector(y, is, &sub));
  PetscCall(VecScale(sub, 3));
  PetscCall(VecRestoreSubVector(y, is, &sub));
  PetscCall(TellVec(w, y));
  PetscCall(VecISSet(y, is, 4));
  PetscCall(TellVec(w, y));
  PetscCall(VecGetSubVector(x, is, &sub));
  PetscCall(VecISAXPY(y, is, 2, sub));
  PetscCall(VecISCopy(y, is, SCATTER_REVERSE, sub));
  PetscCall(VecRestoreSubVector(x, is, &sub));
  PetscCall(TellVec(w, x));
  PetscCall(TellVec(w, y));
  PetscCall(VecCreateLocalVector(x, &local));
  PetscCall(VecGetLocalVector(x, local));
  PetscCall(VecShift(local, 2));
  PetscCall(VecRestoreLocalVector(x, local));
  PetscCall(MatMult(A, x, y));
  PetscCall(TellVec(w, y));
  PetscCall(VecGetLocalVectorRead(x, local));
  PetscCall(VecNorm(local, NORM_1, nrm));
  PetscCall(Tell(w, nrm[0]));
  PetscCall(VecRestoreLocalVectorRead(x, local));
  PetscCall(VecDestroy(&local));
  PetscCall(VecDuplicateVecs(x, 4, &many));
  for (int k = 0; k < 4; k++) {
    PetscScalar dots[4];

    PetscCall(Fill(many[k], k));
    PetscCall(MatMult(A, many[k], z));
    PetscCall(VecMDot(z, k + 1, many, dots));
    for (int q = 0; q <= k; q++) PetscCall(Tell(w, PetscRealPart(dots[q])));
    PetscCall(VecMAXPY(z, k + 1, dots, many));
    PetscCall(TellVec(w, z));
  }
  PetscCall(VecSwap(many[0], many[3]));
  PetscCall(VecPointwiseMult(many[1], many[0], many[3]));
  PetscCall(VecPointwiseMax(many[2], many[0], many[1]));
  PetscCall(TellVec(w, many[1]));
  PetscCall(TellVec(w, many[2]));
  pair[0] = many[0];
  pair[1] = y;
  PetscCall(VecConcatenate(2, pair, &cat, NULL));
  PetscCall(VecScale(cat, 2));
  PetscCall(TellVec(w, cat));
  PetscCall(VecDestroy(&cat));
  PetscCall(VecDestroyVecs(4, &many));
  PetscCall(VecSetBlockSize(y, 2));
  PetscCall(VecStrideScale(y, 1, 3));
  PetscCall(VecStrideNorm(y, 0, NORM_1, nrm));
  PetscCall(Tell(w, nrm[0]));
  PetscCall(VecStrideNormAll(y, NORM_INFINITY, nrm));
  PetscCall(Tell(w, nrm[1]));
  PetscCall(TellVec(w, y));
  PetscCall(VecZeroEntries(z));
  PetscCall(VecSetValue(z, 63 - rs, 2, ADD_VALUES)); /* perhaps another rank's */
  PetscCall(VecAssemblyBegin(z));
  PetscCall(VecAssemblyEnd(z));
  PetscCall(MatMultAdd(A, z, y, y));
  PetscCall(TellVec(w, y));
  PetscCall(VecCreateNest(w->comm, 2, NULL, (Vec[]){x, y}, &cat));
  PetscCall(VecScale(cat, 2));
  PetscCall(VecNorm(cat, NORM_1, nrm));
  PetscCall(Tell(w, nrm[0]));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecNorm(cat, NORM_1, nrm));
  PetscCall(Tell(w, nrm[0]));
  PetscCall(VecDestroy(&cat));
  PetscCall(VecSetRandom(z, NULL));
  PetscCall(VecReciprocal(x));
  PetscCall(TellFoundVec(w, x, 0)); /* a division rounds */
  PetscCall(ISDestroy(&is));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_ghosts(World *w)
{
  Mat         A;
  Vec         g, y, l;
  PetscInt    rs, re, ghosts[3];
  PetscMPIInt rank, ranks;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(w->comm, &rank));
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  PetscCall(Grid(w, 8, 1, &A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (int k = 0; k < 3; k++) ghosts[k] = (re + k) % 64;
  PetscCall(VecCreateGhost(w->comm, re - rs, 64, ranks > 1 ? 3 : 0, ghosts, &g));
  if (!w->ref) {
    char type[64];

    PetscCall(TestType(type, sizeof(type)));
    if (strstr(type, "gpucsr")) PetscCall(VecSetOptionsPrefix(g, "ghosts_"));
  }
  PetscCall(VecDuplicate(g, &y));
  PetscCall(Fill(g, 1));
  for (int round = 0; round < 3; round++) {
    PetscCall(MatMult(A, g, y));
    PetscCall(VecGhostUpdateBegin(y, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecGhostUpdateEnd(y, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecGhostGetLocalForm(y, &l));
    PetscCall(TellVec(w, l));
    PetscCall(VecShift(l, 1));
    PetscCall(VecGhostRestoreLocalForm(y, &l));
    PetscCall(VecGhostUpdateBegin(y, ADD_VALUES, SCATTER_REVERSE));
    PetscCall(VecGhostUpdateEnd(y, ADD_VALUES, SCATTER_REVERSE));
    PetscCall(VecAXPY(g, 1, y));
    PetscCall(TellVec(w, g));
  }
  PetscCall(VecDestroy(&g));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A DMDA's vectors, local and global, and its matrices, by the DM's types */
static PetscErrorCode Case_dm(World *w)
{
  DM         da, coarse;
  Mat        A, P;
  Vec        g, l, v, nat;
  KSP        ksp;
  PetscInt   xs, ys, xm, ym;
  MatStencil row, col[5];

  PetscFunctionBegin;
  PetscCall(DMDACreate2d(w->comm, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 9, 9, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &da));
  if (!w->ref) {
    char type[64];

    PetscCall(TestType(type, sizeof(type)));
    PetscCall(DMSetMatType(da, type));
    if (strstr(type, "gpucsr")) PetscCall(DMSetVecType(da, "gpu"));
  }
  PetscCall(DMSetUp(da));
  PetscCall(DMCreateMatrix(da, &A));
  PetscCall(DMDAGetCorners(da, &xs, &ys, NULL, &xm, &ym, NULL));
  for (PetscInt y = ys; y < ys + ym; y++)
    for (PetscInt x = xs; x < xs + xm; x++) {
      PetscScalar a[5] = {5, -1, -1, -1, -1};
      PetscInt    n    = 1;

      row.i = col[0].i = x;
      row.j = col[0].j = y;
      row.k = row.c = 0;
      if (x > 0) col[n++] = (MatStencil){0, y, x - 1, 0};
      if (x < 8) col[n++] = (MatStencil){0, y, x + 1, 0};
      if (y > 0) col[n++] = (MatStencil){0, y - 1, x, 0};
      if (y < 8) col[n++] = (MatStencil){0, y + 1, x, 0};
      PetscCall(MatSetValuesStencil(A, 1, &row, n, col, a, INSERT_VALUES));
    }
  PetscCall(Assemble(A));
  PetscCall(DMCreateGlobalVector(da, &g));
  PetscCall(DMCreateLocalVector(da, &l));
  PetscCall(VecDuplicate(g, &v));
  PetscCall(Fill(g, 1));
  for (int round = 0; round < 2; round++) {
    PetscScalar **a;

    PetscCall(MatMult(A, g, v));
    PetscCall(DMGlobalToLocal(da, v, INSERT_VALUES, l));
    PetscCall(TellVec(w, l));
    PetscCall(VecScale(l, 2));
    PetscCall(DMLocalToGlobal(da, l, ADD_VALUES, v));
    PetscCall(TellVec(w, v));
    PetscCall(DMDAVecGetArray(da, g, &a));
    for (PetscInt y = ys; y < ys + ym; y++)
      for (PetscInt x = xs; x < xs + xm; x++) a[y][x] += 1;
    PetscCall(DMDAVecRestoreArray(da, g, &a));
    PetscCall(DMLocalToLocalBegin(da, l, INSERT_VALUES, l));
    PetscCall(DMLocalToLocalEnd(da, l, INSERT_VALUES, l));
    PetscCall(TellVec(w, l));
    PetscCall(DMDACreateNaturalVector(da, &nat));
    PetscCall(DMDAGlobalToNaturalBegin(da, v, INSERT_VALUES, nat));
    PetscCall(DMDAGlobalToNaturalEnd(da, v, INSERT_VALUES, nat));
    PetscCall(VecScale(nat, 2));
    PetscCall(DMDANaturalToGlobalBegin(da, nat, INSERT_VALUES, g));
    PetscCall(DMDANaturalToGlobalEnd(da, nat, INSERT_VALUES, g));
    PetscCall(VecDestroy(&nat));
    PetscCall(TellVec(w, g));
    row.i = row.j = 3;
    PetscCall(MatZeroRowsColumnsStencil(A, xs <= 3 && 3 < xs + xm && ys <= 3 && 3 < ys + ym ? 1 : 0, &row, 1, NULL, NULL));
  }
  PetscCall(DMCoarsen(da, w->comm, &coarse));
  PetscCall(DMCreateInterpolation(coarse, da, &P, NULL));
  PetscCall(TellProducts(w, P));
  PetscCall(MatDestroy(&P));
  PetscCall(DMDestroy(&coarse));
  PetscCall(NewKSP(w, w->comm, A, "cg", "mg", &ksp));
  {
    PC pc;

    PetscCall(KSPSetDM(ksp, da));
    PetscCall(KSPSetDMActive(ksp, PETSC_FALSE));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCMGSetLevels(pc, 2, NULL));
    PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_BOTH));
  }
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&g));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&v));
  PetscCall(MatDestroy(&A));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product in another thread, while this one waits */
typedef struct {
  Mat            A;
  Vec            x, y;
  PetscErrorCode ierr;
} Errand;

static void *Run(void *p)
{
  Errand *e = (Errand *)p;

  e->ierr = MatMult(e->A, e->x, e->y);
  return NULL;
}

static PetscErrorCode Case_thread(World *w)
{
  Errand    e;
  pthread_t thread;

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 1, &e.A));
  PetscCall(MatCreateVecs(e.A, &e.x, &e.y));
  for (int round = 0; round < 3; round++) {
    PetscCall(Fill(e.x, round));
    PetscCheck(!pthread_create(&thread, NULL, Run, &e), PETSC_COMM_SELF, PETSC_ERR_SYS, "No thread");
    pthread_join(thread, NULL);
    PetscCall(e.ierr);
    PetscCall(VecScale(e.y, 2));
    PetscCall(TellVec(w, e.y));
    PetscCall(MatScale(e.A, 2));
  }
  PetscCall(VecDestroy(&e.x));
  PetscCall(VecDestroy(&e.y));
  PetscCall(MatDestroy(&e.A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A child that ends at once */
static PetscErrorCode Case_fork(World *w)
{
  Mat   A;
  pid_t child;
  int   status;

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 1, &A));
  PetscCall(TellProducts(w, A));
  child = fork();
  if (!child) _exit(3);
  waitpid(child, &status, 0);
  PetscCall(Tell(w, WEXITSTATUS(status)));
  PetscCall(MatScale(A, 2));
  PetscCall(TellProducts(w, A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Program programs[] = {
  {"placed",  Case_placed },
  {"scatter", Case_scatter},
  {"vectors", Case_vectors},
  {"ghosts",  Case_ghosts },
  {"dm",      Case_dm     },
  {"thread",  Case_thread },
  {"fork",    Case_fork   },
};

int main(int argc, char **argv)
{
  return ProgramsMain(argc, argv, help, PETSC_STATIC_ARRAY_LENGTH(programs), programs);
}
