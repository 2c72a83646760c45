/*
  Arrays of a VECGPU that stay open: operations must see the numbers that the program writes through its pointer, and the pointer must show the
  results of operations. Each scene runs with VECSTANDARD and with VECGPU, on integers, and must give the same bits.
*/
//TEST
//TEST name=malloc args="-vec_gpu_separate -malloc_debug -malloc_dump"
//TEST name=ranks2 nsize=2
//TEST name=ranks3.separate nsize=3 args="-vec_gpu_separate"
#include "testing.h"
#include <petscdmda.h>
#include <petscgpucsr.h>

#define N 12 /* entries of a rank */

/* What a scene has seen */
typedef struct {
  VecType     type;
  const char *name;
  PetscScalar seen[2048];
  int         n;
} Scene;

static PetscErrorCode See(Scene *s, PetscInt n, const PetscScalar a[])
{
  PetscFunctionBegin;
  PetscCheck(s->n + n <= (int)PETSC_STATIC_ARRAY_LENGTH(s->seen), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Scene %s sees too much", s->name);
  for (PetscInt k = 0; k < n; k++) s->seen[s->n++] = a[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries as an operation sees them, and as the host does */
static PetscErrorCode SeeVec(Scene *s, Vec v)
{
  const PetscScalar *a;
  PetscScalar        sum;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecDot(v, v, &sum));
  PetscCall(See(s, 1, &sum));
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArrayRead(v, &a));
  PetscCall(See(s, n, a));
  PetscCall(VecRestoreArrayRead(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(const Scene *s, PetscInt n, Vec *v)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_WORLD, v));
  PetscCall(VecSetSizes(*v, n, PETSC_DETERMINE));
  PetscCall(VecSetType(*v, s->type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A fill while the array is out, and the program's writes over it (PETSc's ts/tutorials/ex10) */
static PetscErrorCode Fill(Scene *s)
{
  Vec          v;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(Create(s, N, &v));
  PetscCall(VecSet(v, 7));
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecZeroEntries(v));
  PetscCall(See(s, N, a));
  for (int k = 0; k < N; k += 2) a[k] = 5;
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(SeeVec(s, v));
  PetscCall(VecScale(v, 3));
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecScale(v, 0));
  a[1] = 2;
  PetscCall(VecSet(v, 3));
  a[2] = 4;
  PetscCall(SeeVec(s, v));
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(VecShift(v, 1));
  PetscCall(SeeVec(s, v));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays of x and of the results that are never given back, between products and operations */
static PetscErrorCode Kept(Scene *s)
{
  Mat                A;
  Vec                x, y, z;
  PetscScalar       *xa, *ya, number;
  const PetscScalar *za;
  PetscInt           rs, re, M;

  PetscFunctionBegin;
  PetscCall(Create(s, N, &x));
  PetscCall(VecGetSize(x, &M));
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, M, M, PETSC_FALSE, &A));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(A, r, r, 2, INSERT_VALUES));
    PetscCall(MatSetValue(A, r, (r + 1) % M, 1, INSERT_VALUES));
    PetscCall(MatSetValue(A, r, (r + 5) % M, -1, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(VecGetArray(x, &xa));
  PetscCall(VecGetArray(y, &ya));
  PetscCall(VecSet(z, 1));
  PetscCall(VecGetArrayRead(z, &za));
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < N; k++) xa[k] = (k * (round + 1)) % 7;
    PetscCall(MatMult(A, x, y));
    PetscCall(See(s, N, ya));
    ya[round] = -3;
    PetscCall(MatMultTranspose(A, y, z));
    PetscCall(See(s, N, za));
    PetscCall(MatMultAdd(A, z, y, y));
    PetscCall(See(s, N, ya));
    PetscCall(VecAXPY(z, 2, x));
    PetscCall(See(s, N, za));
    PetscCall(VecSwap(x, y));
    PetscCall(See(s, N, xa));
    PetscCall(See(s, N, ya));
    PetscCall(VecAXPY(x, -1, x == y ? z : y));
    PetscCall(VecCopy(z, y));
    PetscCall(See(s, N, ya));
    xa[0]++;
    PetscCall(VecDot(x, y, &number));
    PetscCall(See(s, 1, &number));
    PetscCall(VecMax(x, NULL, (PetscReal *)&number));
    PetscCall(See(s, 1, &number));
    PetscCall(VecPointwiseMult(y, x, z));
    PetscCall(VecScale(y, 0));
    PetscCall(VecShift(y, 2));
    PetscCall(See(s, N, ya));
  }
  PetscCall(SeeVec(s, x));
  PetscCall(SeeVec(s, y));
  PetscCall(SeeVec(s, z));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every other way to an array, and work on the vector while it is open */
static PetscErrorCode Ways(Scene *s)
{
  Vec          v[3], w;
  PetscScalar *a, *b, **a2, ***a3, ****a4, **all;
  PetscMemType type;
  DM           da;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    PetscCall(Create(s, N, &v[k]));
    PetscCall(VecSet(v[k], k + 1));
    PetscCall(VecShift(v[k], 1));
  }
  PetscCall(VecGetArrays(v, 3, &all));
  for (int k = 0; k < 3; k++) all[k][k] = 9;
  PetscCall(VecAXPY(v[0], 2, v[1]));
  all[0][5] = -1;
  PetscCall(VecAXPY(v[2], 2, v[0]));
  PetscCall(See(s, N, all[2]));
  PetscCall(VecRestoreArrays(v, 3, &all));
  PetscCall(VecGetArrayPair(v[0], v[1], &a, &b));
  a[0] = 3;
  PetscCall(VecScale(v[0], 2));
  b[0] = a[0];
  PetscCall(VecRestoreArrayPair(v[0], v[1], &a, &b));
  PetscCall(VecGetArray2d(v[0], 3, 4, 0, 0, &a2));
  a2[1][2] = 11;
  PetscCall(VecScale(v[0], -1));
  PetscCall(See(s, 4, a2[1]));
  a2[2][3] = 12;
  PetscCall(VecAXPY(v[1], 1, v[0]));
  PetscCall(VecRestoreArray2d(v[0], 3, 4, 0, 0, &a2));
  PetscCall(VecGetArray3d(v[1], 2, 2, 3, 0, 0, 0, &a3));
  a3[1][1][2] = 13;
  PetscCall(VecScale(v[1], 2));
  PetscCall(See(s, 3, a3[1][1]));
  PetscCall(VecRestoreArray3d(v[1], 2, 2, 3, 0, 0, 0, &a3));
  PetscCall(VecGetArray4d(v[2], 1, 2, 2, 3, 0, 0, 0, 0, &a4));
  a4[0][1][1][2] = 13;
  PetscCall(VecScale(v[2], 2));
  PetscCall(See(s, 3, a4[0][1][1]));
  PetscCall(VecRestoreArray4d(v[2], 1, 2, 2, 3, 0, 0, 0, 0, &a4));
  PetscCall(VecGetArrayAndMemType(v[0], &a, &type));
  PetscCall(VecSet(v[0], 4));
  a[3] = 5;
  PetscCall(VecRestoreArrayAndMemType(v[0], &a));
  PetscCall(VecGetArrayWriteAndMemType(v[1], &a, &type));
  for (int k = 0; k < N; k++) a[k] = k;
  PetscCall(VecShift(v[1], 1));
  PetscCall(See(s, N, a));
  PetscCall(VecRestoreArrayWriteAndMemType(v[1], &a));
  PetscCall(VecGetArrayReadAndMemType(v[2], (const PetscScalar **)&a, &type));
  PetscCall(VecCopy(v[1], v[2]));
  PetscCall(See(s, N, a));
  PetscCall(VecRestoreArrayReadAndMemType(v[2], (const PetscScalar **)&a));
  for (int k = 0; k < 3; k++) PetscCall(SeeVec(s, v[k]));
  /* an array that is a vector's own, as petsc4py and DMDA have it open */
  PetscCall(VecGetArray(v[0], &a));
  PetscCall(VecDuplicate(v[0], &w));
  PetscCall(VecCopy(v[0], w));
  a[0] = 20;
  PetscCall(VecCopy(v[0], w));
  PetscCall(SeeVec(s, w));
  PetscCall(VecWAXPY(w, 2, v[0], v[1]));
  PetscCall(VecRestoreArray(v[0], &a));
  PetscCall(SeeVec(s, w));
  PetscCall(VecDestroy(&w));
  for (int k = 0; k < 3; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 6, 6, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &da));
  PetscCall(DMSetVecType(da, s->type));
  PetscCall(DMSetUp(da));
  PetscCall(DMCreateGlobalVector(da, &v[0]));
  PetscCall(DMCreateLocalVector(da, &v[1]));
  {
    PetscInt xs, ys, xm, ym;

    PetscCall(DMDAGetCorners(da, &xs, &ys, NULL, &xm, &ym, NULL));
    PetscCall(DMDAVecGetArray(da, v[0], &a2));
    PetscCall(VecSet(v[0], 1));
    for (PetscInt j = ys; j < ys + ym; j++)
      for (PetscInt i = xs; i < xs + xm; i++) a2[j][i] += i + 10 * j;
    PetscCall(VecScale(v[0], 2));
    a2[ys][xs]++;
    PetscCall(DMGlobalToLocalBegin(da, v[0], INSERT_VALUES, v[1]));
    PetscCall(DMGlobalToLocalEnd(da, v[0], INSERT_VALUES, v[1]));
    PetscCall(DMDAVecRestoreArray(da, v[0], &a2));
    PetscCall(SeeVec(s, v[0]));
    PetscCall(VecScale(v[1], 2));
    PetscCall(DMLocalToGlobalBegin(da, v[1], INSERT_VALUES, v[0]));
    PetscCall(DMLocalToGlobalEnd(da, v[1], INSERT_VALUES, v[0]));
    PetscCall(SeeVec(s, v[0]));
  }
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays open while others are put in their place, and exchanged */
static PetscErrorCode Place(Scene *s)
{
  Vec          v;
  PetscScalar *a, *b, other[N], third[N];

  PetscFunctionBegin;
  for (int k = 0; k < N; k++) other[k] = third[k] = k;
  PetscCall(Create(s, N, &v));
  PetscCall(VecSet(v, 2));
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecPlaceArray(v, other));
  PetscCall(VecScale(v, 2));
  PetscCall(VecGetArray(v, &b));
  a[0] = 5;
  b[0] = 6;
  PetscCall(VecShift(v, 1));
  PetscCall(See(s, N, a));
  PetscCall(See(s, N, b));
  PetscCall(SeeVec(s, v));
  PetscCall(VecRestoreArray(v, &b));
  PetscCall(VecResetArray(v));
  PetscCall(See(s, N, other));
  PetscCall(VecShift(v, 1));
  PetscCall(See(s, N, a));
  a[1] = 8;
  PetscCall(SeeVec(s, v));
  PetscCall(VecRestoreArray(v, &a));
  /* given back while another is in place */
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecPlaceArray(v, third));
  a[2] = 7;
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(VecScale(v, 3));
  PetscCall(VecResetArray(v));
  PetscCall(See(s, N, third));
  PetscCall(SeeVec(s, v));
  PetscCall(VecGetArray(v, &a));
  a[3] = 17;
  PetscCall(VecPlaceArray(v, other));
  PetscCall(VecGetArray(v, &b));
  PetscCall(VecResetArray(v)); /* never given back: other is the program's again */
  b[3] = 1;
  PetscCall(VecScale(v, 2));
  PetscCall(See(s, N, a));
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(VecScale(v, 2));
  PetscCall(SeeVec(s, v));
  PetscCall(PetscMalloc1(N, &b));
  for (int k = 0; k < N; k++) b[k] = 3 - k;
  PetscCall(VecReplaceArray(v, b));
  PetscCall(VecShift(v, 1));
  PetscCall(SeeVec(s, v));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Parts share the whole's memory: a change of either is a change of both */
static PetscErrorCode Parts(Scene *s)
{
  Vec                v, sub, other, whole, strided;
  IS                 is, is2, all, every;
  PetscInt           rs;
  PetscScalar       *a, *b;
  const PetscScalar *c;

  PetscFunctionBegin;
  PetscCall(Create(s, N, &v));
  PetscCall(VecSet(v, 2));
  PetscCall(VecGetOwnershipRange(v, &rs, NULL));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, 5, rs + 3, 1, &is));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, 5, rs + 6, 1, &is2));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, N, rs, 1, &all));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, 4, rs, 3, &every));
  PetscCall(VecGetSubVector(v, is, &sub));
  PetscCall(VecShift(sub, 1));
  PetscCall(VecSet(v, 5)); /* while a changed part is out */
  PetscCall(SeeVec(s, sub));
  PetscCall(VecShift(sub, 1));
  PetscCall(SeeVec(s, v));
  PetscCall(VecGetSubVector(v, is2, &other));
  PetscCall(VecScale(other, 2));
  PetscCall(SeeVec(s, sub));
  PetscCall(VecAXPY(sub, 2, other)); /* they overlap, and each is read where it is written */
  PetscCall(VecGetArray(sub, &a));
  a[1] = 30;
  PetscCall(VecScale(v, 2));
  PetscCall(See(s, 5, a));
  PetscCall(VecGetArrayRead(v, &c));
  PetscCall(VecSet(other, 1));
  PetscCall(See(s, N, c));
  PetscCall(See(s, 5, a));
  a[4] = 31;
  PetscCall(VecDot(v, v, &a[0]));
  a[0] = 4;
  PetscCall(VecGetArray(other, &b));
  b[0]++;
  PetscCall(VecShift(sub, 1));
  PetscCall(See(s, 5, b));
  PetscCall(VecRestoreArray(sub, &a));
  PetscCall(VecRestoreArrayRead(v, &c));
  PetscCall(VecRestoreSubVector(v, is, &sub));
  PetscCall(VecScale(v, 2));
  PetscCall(See(s, 5, b));
  PetscCall(VecRestoreArray(other, &b));
  PetscCall(VecRestoreSubVector(v, is2, &other));
  PetscCall(SeeVec(s, v));
  PetscCall(VecGetSubVector(v, all, &whole));
  PetscCall(VecSet(whole, 6));
  PetscCall(VecGetSubVector(whole, is, &sub)); /* of a part */
  PetscCall(VecShift(sub, -1));
  PetscCall(SeeVec(s, v));
  PetscCall(VecSet(sub, 9));
  PetscCall(SeeVec(s, whole));
  PetscCall(VecRestoreSubVector(whole, is, &sub));
  PetscCall(VecRestoreSubVector(v, all, &whole));
  /* all of a part is written, the rest of the whole is on the host */
  PetscCall(VecGetSubVector(v, is, &sub));
  PetscCall(VecDuplicate(sub, &other));
  PetscCall(VecSet(other, 2));
  PetscCall(VecShift(other, 1));
  PetscCall(VecGetArray(v, &a));
  for (int k = 0; k < N; k++) a[k] = 10 + k;
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(VecCopy(other, sub));
  PetscCall(SeeVec(s, v));
  PetscCall(VecDestroy(&other));
  PetscCall(VecRestoreSubVector(v, is, &sub));
  PetscCall(VecGetSubVector(v, every, &strided));
  PetscCall(VecGetArray(strided, &a));
  PetscCall(VecSet(strided, 3));
  a[0] = 2;
  PetscCall(VecScale(strided, 2));
  PetscCall(VecRestoreArray(strided, &a));
  PetscCall(SeeVec(s, strided));
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecRestoreSubVector(v, every, &strided));
  PetscCall(See(s, N, a));
  PetscCall(VecScale(v, 2));
  PetscCall(See(s, N, a));
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(SeeVec(s, v));
  PetscCall(ISDestroy(&is));
  PetscCall(ISDestroy(&is2));
  PetscCall(ISDestroy(&all));
  PetscCall(ISDestroy(&every));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Local vectors and forms, while arrays are open */
static PetscErrorCode Locals(Scene *s)
{
  Vec          v, l, g, form;
  PetscScalar *a, *b;
  PetscInt     ghost[2], rs, M;

  PetscFunctionBegin;
  PetscCall(Create(s, N, &v));
  PetscCall(VecGetOwnershipRange(v, &rs, NULL));
  PetscCall(VecGetSize(v, &M));
  for (int other = 0; other < 2; other++) {
    if (!other) PetscCall(VecCreateLocalVector(v, &l));
    else PetscCall(VecCreateSeq(PETSC_COMM_SELF, N, &l));
    PetscCall(VecSet(v, 2));
    PetscCall(VecGetArray(v, &a));
    a[2] = 4;
    PetscCall(VecGetLocalVector(v, l));
    PetscCall(VecScale(l, 3));
    PetscCall(See(s, N, a));
    a[3] = 5;
    PetscCall(VecGetArray(l, &b));
    b[4] = 6;
    PetscCall(VecShift(v, 1));
    PetscCall(See(s, N, b));
    PetscCall(VecRestoreArray(l, &b));
    PetscCall(VecRestoreLocalVector(v, l));
    PetscCall(SeeVec(s, v));
    PetscCall(VecGetLocalVectorRead(v, l));
    PetscCall(SeeVec(s, l));
    PetscCall(VecRestoreLocalVectorRead(v, l));
    a[5] = 7;
    PetscCall(VecScale(v, 2));
    PetscCall(See(s, N, a));
    PetscCall(VecRestoreArray(v, &a));
    PetscCall(VecScale(v, 2));
    PetscCall(SeeVec(s, v));
    PetscCall(VecDestroy(&l));
  }
  ghost[0] = (rs + N) % M;
  ghost[1] = (rs + N + 1) % M;
  PetscCall(VecCreateGhost(PETSC_COMM_WORLD, N, PETSC_DETERMINE, 2, ghost, &g));
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecGhostGetLocalForm(g, &form));
  PetscCall(VecGetArray(form, &b));
  a[0] = 9;
  PetscCall(VecCopy(v, g));
  PetscCall(VecGhostUpdateBegin(g, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecGhostUpdateEnd(g, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(See(s, N + 2, b));
  b[1] = 10;
  PetscCall(VecCopy(g, v));
  PetscCall(See(s, N, a));
  PetscCall(VecRestoreArray(form, &b));
  PetscCall(VecGhostRestoreLocalForm(g, &form));
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(SeeVec(s, v));
  PetscCall(VecDestroy(&g));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nests of them */
static PetscErrorCode Nests(Scene *s)
{
  Vec          v[2], nest, other;
  PetscScalar *a, *b, dot;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(Create(s, N, &v[k]));
    PetscCall(VecSet(v[k], k + 1));
  }
  PetscCall(VecCreateNest(PETSC_COMM_WORLD, 2, NULL, v, &nest));
  PetscCall(VecDuplicate(nest, &other));
  PetscCall(VecGetArray(v[0], &a));
  PetscCall(VecSet(nest, 3));
  PetscCall(See(s, N, a));
  a[1] = 4;
  PetscCall(VecCopy(nest, other));
  PetscCall(VecAXPY(nest, 2, other));
  PetscCall(See(s, N, a));
  PetscCall(VecDot(nest, other, &dot));
  PetscCall(See(s, 1, &dot));
  PetscCall(VecGetArray(nest, &b));
  b[N] = 5;
  PetscCall(VecRestoreArray(nest, &b));
  PetscCall(VecScale(nest, 2));
  PetscCall(See(s, N, a));
  PetscCall(SeeVec(s, v[1]));
  PetscCall(VecRestoreArray(v[0], &a));
  PetscCall(VecDestroy(&nest));
  PetscCall(VecDestroy(&other));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values set by index, loaded, and scattered while an array is open */
static PetscErrorCode Sets(Scene *s)
{
  Vec          v, w;
  PetscScalar *a, *b;
  PetscInt     rs;
  IS           is;
  VecScatter   scatter;

  PetscFunctionBegin;
  PetscCall(Create(s, N, &v));
  PetscCall(Create(s, N, &w));
  PetscCall(VecGetOwnershipRange(v, &rs, NULL));
  PetscCall(VecSet(v, 1));
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecSetValue(v, rs + 3, 8, ADD_VALUES));
  PetscCall(VecAssemblyBegin(v));
  PetscCall(VecAssemblyEnd(v));
  PetscCall(See(s, N, a));
  PetscCall(VecScale(v, 2));
  a[0] = 3;
  PetscCall(VecGetArray(w, &b));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, N, rs, 1, &is));
  PetscCall(VecScatterCreate(v, is, w, is, &scatter));
  PetscCall(VecScatterBegin(scatter, v, w, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(scatter, v, w, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(See(s, N, b));
  PetscCall(VecScale(w, 2));
  PetscCall(VecScatterBegin(scatter, w, v, ADD_VALUES, SCATTER_REVERSE));
  PetscCall(VecScatterEnd(scatter, w, v, ADD_VALUES, SCATTER_REVERSE));
  PetscCall(See(s, N, a));
  PetscCall(VecRestoreArray(w, &b));
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(SeeVec(s, v));
  PetscCall(SeeVec(s, w));
  PetscCall(VecScatterDestroy(&scatter));
  PetscCall(ISDestroy(&is));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Given back more often than taken, or as something else: no later operation goes wrong */
static PetscErrorCode Sloppy(Scene *s)
{
  Vec                v;
  PetscScalar       *a, *b;
  const PetscScalar *c;

  PetscFunctionBegin;
  PetscCall(Create(s, N, &v));
  PetscCall(VecSet(v, 2));
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecGetArrayRead(v, &c));
  PetscCall(VecRestoreArrayRead(v, &c));
  PetscCall(VecRestoreArrayRead(v, &c)); /* once too often */
  a[0] = 5;
  PetscCall(VecScale(v, 2));
  a[1] = 6;
  PetscCall(VecScale(v, 2));
  PetscCall(See(s, N, a));
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(VecScale(v, 2));
  PetscCall(VecRestoreArray(v, NULL)); /* once too often, from the device */
  PetscCall(SeeVec(s, v));
  PetscCall(VecGetArrayRead(v, &c));
  b = (PetscScalar *)c;
  PetscCall(VecRestoreArray(v, &b)); /* as another */
  PetscCall(VecScale(v, 2));
  PetscCall(SeeVec(s, v));
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecGetArray(v, &b)); /* twice */
  a[4] = 1;
  PetscCall(VecRestoreArray(v, &a));
  b[5] = 1;
  PetscCall(VecScale(v, 2));
  b[6] = 1;
  PetscCall(VecRestoreArray(v, &b));
  PetscCall(SeeVec(s, v));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Written through an array got for reading: SLEPc puts it into a vector that a scatter fills. n: also more entries than are sampled */
static PetscErrorCode ThroughRead(Scene *s)
{
  Vec                v, w, from;
  const PetscScalar *c, *d;
  PetscScalar        sum;
  PetscInt           first;
  IS                 is;
  VecScatter         all;

  PetscFunctionBegin;
  for (PetscInt n = N; n <= 3000; n += 3000 - N) {
    PetscCall(Create(s, n, &v));
    PetscCall(VecCreateMPIWithArray(PETSC_COMM_WORLD, 1, n, PETSC_DETERMINE, NULL, &w));
    PetscCall(VecDuplicate(v, &from));
    PetscCall(VecGetOwnershipRange(from, &first, NULL));
    PetscCall(ISCreateStride(PETSC_COMM_WORLD, n, first, 1, &is));
    PetscCall(VecScatterCreate(from, is, w, is, &all));
    PetscCall(ISDestroy(&is));
    for (int k = 1; k < 4; k++) {
      PetscCall(VecSet(from, k));
      PetscCall(VecSet(v, 7));
      PetscCall(VecScale(v, 2));
      PetscCall(VecGetArrayRead(v, &c));
      if (k == 2) PetscCall(VecGetArrayRead(v, &d));
      PetscCall(VecPlaceArray(w, c));
      PetscCall(VecScatterBegin(all, from, w, INSERT_VALUES, SCATTER_FORWARD));
      PetscCall(VecScatterEnd(all, from, w, INSERT_VALUES, SCATTER_FORWARD));
      PetscCall(VecResetArray(w));
      if (k == 2) PetscCall(VecRestoreArrayRead(v, &d));
      PetscCall(VecRestoreArrayRead(v, &c));
      PetscCall(VecScale(v, 3));
      PetscCall(VecDot(v, v, &sum));
      PetscCall(See(s, 1, &sum));
      if (n == N) PetscCall(SeeVec(s, v));
    }
    PetscCall(VecScatterDestroy(&all));
    PetscCall(VecDestroy(&from));
    PetscCall(VecDestroy(&w));
    PetscCall(VecDestroy(&v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies are made for arrays that are open, and for no other */
static PetscErrorCode TestForced(void)
{
  Vec                v;
  PetscScalar       *a, other[N] = {0};
  const PetscScalar *r;
  VecGPUInfo         info;
  PetscBool          separate = PETSC_FALSE;
  PetscInt           before;
  const Scene        s = {VECGPU, "forced copies", {0}, 0};

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-vec_gpu_separate", &separate, NULL));
  PetscCall(Create(&s, N, &v));
  PetscCall(VecSet(v, 2));
  PetscCall(VecScale(v, 2));
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecPlaceArray(v, other));
  PetscCall(VecRestoreArray(v, &a)); /* of the array before */
  PetscCall(VecScale(v, 2));
  PetscCall(VecResetArray(v));
  PetscCall(VecScale(v, 2));
  PetscCall(VecGetArrayRead(v, &r));
  PetscCall(VecRestoreArrayRead(v, &r));
  PetscCall(VecScale(v, 2));
  PetscCall(VecGPUGetInfo(v, &info));
  PetscCheck(!info.forced, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " copies were forced, with no array open", info.forced);
  PetscCall(VecGetArrayRead(v, &r));
  PetscCall(VecScale(v, 2));
  PetscCall(VecGPUGetInfo(v, &info));
  PetscCheck(!separate || info.forced == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " copies were forced by an array to read, should be 1", info.forced);
  PetscCall(VecRestoreArrayRead(v, &r));
  before = info.forced;
  PetscCall(VecGetArray(v, &a));
  PetscCall(VecScale(v, 2));
  PetscCall(VecGPUGetInfo(v, &info));
  PetscCheck(!separate || info.forced == before + 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " copies were forced by an array to write, should be 2", info.forced - before);
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*play)(Scene *);
} scenes[] = {
  {"fill",           Fill       },
  {"kept arrays",    Kept       },
  {"ways to arrays", Ways       },
  {"placed arrays",  Place      },
  {"parts",          Parts      },
  {"local vectors",  Locals     },
  {"nests",          Nests      },
  {"values set",     Sets       },
  {"sloppy",         Sloppy     },
  {"through read",   ThroughRead}
};

int main(int argc, char **argv)
{
  static Scene s[2];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(scenes); k++) {
    for (int gpu = 0; gpu < 2; gpu++) {
      s[gpu] = (Scene){.type = gpu ? VECGPU : VECSTANDARD, .name = scenes[k].name};
      PetscCall((*scenes[k].play)(&s[gpu]));
    }
    for (int i = 0; i < s[0].n; i++)
      PetscCheck(s[0].seen[i] == s[1].seen[i], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Scene %s: number %d seen is %g, should be %g", scenes[k].name, i, (double)PetscRealPart(s[1].seen[i]), (double)PetscRealPart(s[0].seen[i]));
  }
  PetscCall(TestForced());
  PetscCall(PetscFinalize());
  return 0;
}
