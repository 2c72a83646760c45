/*
  PETSc's decisions by the name of a vector's type or by petscnative, and programs that ask for no type of vector: on a GPU (here
  -vec_gpu_separate), MatCreateVecs() gives a VECGPU under the name of the standard type.

  All places where PETSc 3.18.5 to 3.25.4 looks at petscnative or reads data->array of a vector that it did not make itself in the same function, and what has become of them:

    vec/interface/rvector.c    VecGetArray(), VecGetArrayRead()                 only of vectors without operations getarray
    vec/interface/rvector.c    VecRestoreArray()                                only of vectors without an operation restorearray
    vec/interface/rvector.c    VecRestoreArrayRead(), ...ReadAndMemType()       not called of native vectors: VECGPU is not native
    vec/interface/rvector.c    VecValidValues_Internal()                        either will do
    vec/impls/seq/seqcuda      VecGetLocalVector() and Read, and Restore        only where the local vector is VECCUDA
    ksp/impls/ibcgs, fbcgsr    refuse what is not native, keep arrays           wrapped (src/ksp/impls/petsc)
    vec/impls/seq, mpi         operations of VECSEQ and VECMPI                  replaced, or by VecGetArray()
    vec/impls/mpi/commonmpvec.c, pbvec.c   ghosts                               a VECGPU has none

  t600 has all of PETSc's KSPs; here is the rest.
*/
//TEST name=separate args="-vec_gpu_separate -mat_gpucsr_format csr"
//TEST name=ranks2.separate nsize=2 args="-vec_gpu_separate -mat_gpucsr_format csr"
//TEST name=malloc args="-vec_gpu_separate -malloc_debug -malloc_dump"
#include "testing.h"
#include <petsctao.h>
#include <petscgpucsr.h>

#define K 30

static PetscErrorCode IsOurs(Vec v, const char what[])
{
  VecGPUInfo info;

  PetscFunctionBegin;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  PetscErrorCode ierr = VecGPUGetInfo(v, &info);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(!ierr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is not on the device", what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By the name of the standard type, and whatever is made from it too */
static PetscErrorCode NamesOf(Mat A)
{
  Vec         v, w, x, *many;
  IS          is;
  PetscMPIInt size;
  PetscInt    rs;
  VecType     type;
  Mat         B;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  type = size > 1 ? VECMPI : VECSEQ;
  PetscCall(MatCreateVecs(A, &v, NULL));
  PetscCall(TestVecType(v, type, "A vector of the matrix"));
  PetscCall(IsOurs(v, "A vector of the matrix"));
  PetscCall(VecSet(v, 2));
  PetscCall(VecDuplicate(v, &w));
  PetscCall(TestVecType(w, type, "A duplicate"));
  PetscCall(IsOurs(w, "A duplicate"));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDuplicateVecs(v, 2, &many));
  PetscCall(IsOurs(many[1], "One of several duplicates"));
  PetscCall(VecDestroyVecs(2, &many));
  PetscCall(VecGetOwnershipRange(v, &rs, NULL));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, 5, rs + 1, 1, &is));
  PetscCall(VecGetSubVector(v, is, &w));
  PetscCall(TestVecType(w, type, "A part"));
  PetscCall(IsOurs(w, "A part"));
  PetscCall(VecRestoreSubVector(v, is, &w));
  PetscCall(ISDestroy(&is));
  PetscCall(VecCreateLocalVector(v, &w));
  PetscCall(TestVecType(w, VECSEQ, "A local vector"));
  PetscCall(VecDestroy(&w));
  PetscCall(VecGhostGetLocalForm(v, &w));
  PetscCheck(size == 1 || !w, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A vector without ghosts has a local form");
  PetscCall(VecGhostRestoreLocalForm(v, &w));
  PetscCall(VecSetType(v, VECSTANDARD));
  PetscCall(IsOurs(v, "A vector that was to be standard")); /* its type's name says it is */
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatCreateVecs(B, NULL, &w));
  PetscCall(IsOurs(w, "A vector of a duplicate"));
  PetscCall(VecDestroy(&w));
  PetscCall(MatSetVecType(B, type));
  PetscCall(MatCreateVecs(B, NULL, &w));
  PetscCall(TestVecType(w, type, "A vector as the program wants it"));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &x));
  PetscCall(VecSetSizes(x, PETSC_DECIDE, K * K));
  PetscCall(VecSetType(x, VECGPU));
  PetscCall(TestVecType(x, size > 1 ? VECMPIGPU : VECSEQGPU, "A vector that was asked for by name"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&v));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A + U C V^T, dense U and V: PETSc wants the names of the matrices' vector types to be the same */
static PetscErrorCode TestLRC(Mat A, Mat R)
{
  Mat      L[2], U;
  Vec      x[2], y[2];
  PetscInt m, M, rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, m, PETSC_DECIDE, M, 2, NULL, &U));
  PetscCall(MatGetOwnershipRange(U, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(U, r, 0, 1.0 / (1 + r), INSERT_VALUES));
    PetscCall(MatSetValue(U, r, 1, r % 3, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(U, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(U, MAT_FINAL_ASSEMBLY));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreateLRC(k ? R : A, U, NULL, U, &L[k]));
    PetscCall(MatCreateVecs(k ? R : A, &x[k], &y[k]));
    PetscCall(TestFill(x[k], 3, PETSC_FALSE));
    PetscCall(MatMult(L[k], x[k], y[k]));
    PetscCall(VecScale(y[k], 2));
    PetscCall(MatDestroy(&L[k]));
  }
  PetscCall(TestCloseVec(y[0], y[0], "a vector itself", "MatCreateLRC"));
  {
    PetscReal norm, difference;

    PetscCall(VecNorm(y[1], NORM_2, &norm));
    PetscCall(VecAXPY(y[0], -1, y[1])); /* of two types with one name */
    PetscCall(VecNorm(y[0], NORM_2, &difference));
    PetscCheck(difference <= TEST_C * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "MatCreateLRC: off by %g of %g", (double)difference, (double)norm);
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&y[k]));
  }
  PetscCall(MatDestroy(&U));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Quadratic(Tao tao, Vec x, PetscReal *f, Vec g, void *ctx)
{
  Mat         A = (Mat)ctx;
  PetscScalar xg, xs;

  PetscFunctionBegin;
  PetscCall(MatMult(A, x, g));
  PetscCall(VecDot(x, g, &xg));
  PetscCall(VecSum(x, &xs));
  *f = PetscRealPart(0.5 * xg - xs);
  PetscCall(VecShift(g, -1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Quasi-Newton methods keep their steps in a dense matrix of the vectors' type, from 3.22 on */
static PetscErrorCode TestLMVM(Mat A)
{
  static const TaoType types[] = {TAOLMVM, TAOBLMVM};
  Vec                  x;
  Tao                  tao;
  TaoConvergedReason   reason;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(MatCreateVecs(A, &x, NULL));
    PetscCall(TaoCreate(PETSC_COMM_WORLD, &tao));
    PetscCall(TaoSetType(tao, types[k]));
    PetscCall(TaoSetSolution(tao, x));
    PetscCall(TaoSetObjectiveAndGradient(tao, NULL, Quadratic, A));
    PetscCall(TaoSetTolerances(tao, 1e-8, 1e-6, 0));
    PetscCall(TaoSetFromOptions(tao));
    PetscCall(TaoSolve(tao));
    PetscCall(TaoGetConvergedReason(tao, &reason));
    PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Tao of type %s: %s", types[k], TaoConvergedReasons[reason]);
    PetscCall(TaoDestroy(&tao));
    PetscCall(VecDestroy(&x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A program's own vectors, on the host: PETSc's methods iterate on the device all the same, and nothing crosses the bus but right-hand side and solution */
static PetscErrorCode TestHosted(Mat A, Mat R)
{
  static const KSPType types[] = {KSPCG, KSPGMRES, KSPFGMRES, KSPBCGS, KSPMINRES};

  PetscFunctionBegin;
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++) {
    for (int ghosted = 0; ghosted < 2; ghosted++) {
      PetscInt    its[2], m, M, ghost[1];
      PetscReal   norm[2];
      PetscScalar sum;

      PetscCall(MatGetLocalSize(A, &m, NULL));
      PetscCall(MatGetSize(A, &M, NULL));
      for (int k = 0; k < 2; k++) {
        Vec       b, x, r;
        KSP       ksp;
        PC        pc;
        PetscInt  rs;
        VecType   type;
        PetscBool same;

        PetscCall(MatGetOwnershipRange(A, &rs, NULL));
        ghost[0] = (rs + m) % M;
        if (ghosted) PetscCall(VecCreateGhost(PETSC_COMM_WORLD, m, M, 1, ghost, &b));
        else PetscCall(VecCreateMPI(PETSC_COMM_WORLD, m, M, &b));
        PetscCall(VecDuplicate(b, &x));
        PetscCall(VecGetType(b, &type));
        PetscCall(TestFill(b, 1, PETSC_FALSE));
        PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
        PetscCall(KSPSetType(ksp, types[t]));
        PetscCall(KSPSetOperators(ksp, k ? R : A, k ? R : A));
        PetscCall(KSPGetPC(ksp, &pc));
        PetscCall(PCSetType(pc, PCJACOBI));
        PetscCall(KSPSetFromOptions(ksp));
        PetscCall(KSPSolve(ksp, b, x));
        PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
        PetscCall(KSPSetTolerances(ksp, 1e-9, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
        PetscCall(KSPSolve(ksp, b, x));
        PetscCall(KSPGetTotalIterations(ksp, &its[k]));
        {
          Vec       guess, *work;
          PetscBool mine;

          PetscCall(KSPCreateVecs(ksp, 1, &work, 0, NULL));
          guess = work[0];
          PetscCall(PetscObjectTypeCompare((PetscObject)guess, type, &mine));
          PetscCheck(mine, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The solution is not the program's after a solve");
          PetscCall(VecDestroyVecs(1, &work));
        }
        PetscCall(KSPGetSolution(ksp, &r));
        PetscCheck(r == x, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The solution of %s is another vector after a solve", types[t]);
        PetscCall(VecDuplicate(b, &r));
        PetscCall(MatMult(R, x, r));
        PetscCall(VecAXPY(r, -1, b));
        PetscCall(VecNorm(r, NORM_2, &norm[k]));
        PetscCall(VecGetType(x, &type));
        PetscCall(PetscStrbeginswith(type, "mpi", &same));
        PetscCall(VecSum(x, &sum));
        PetscCall(KSPDestroy(&ksp));
        PetscCall(VecDestroy(&b));
        PetscCall(VecDestroy(&x));
        PetscCall(VecDestroy(&r));
      }
      PetscCheck(PetscAbsInt(its[0] - its[1]) <= 2 + its[1] / 20 && norm[0] <= 2 * norm[1] + 1e-12, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s with vectors of the host: %" PetscInt_FMT " iterations and residual %g, with aij %" PetscInt_FMT " and %g", types[t], its[0], (double)norm[0], its[1], (double)norm[1]);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies counted by the log's events of them */
static PetscErrorCode TestHostedCopies(Mat A)
{
  Vec                b, x;
  KSP                ksp;
  PC                 pc;
  PetscInt           m, M, its;
  PetscLogEvent      up, down;
  PetscEventPerfInfo info[2][2];
  MatGPUCSRInfo      minfo[2];

  PetscFunctionBegin;
  PetscCall(PetscLogEventGetId("VecGPUCopyTo", &up));
  PetscCall(PetscLogEventGetId("VecGPUCopyFrom", &down));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(VecCreateGhost(PETSC_COMM_WORLD, m, M, 0, NULL, &b));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecSet(b, 1));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscLogEventGetPerfInfo(0, up, &info[0][0]));
  PetscCall(PetscLogEventGetPerfInfo(0, down, &info[0][1]));
  PetscCall(MatGPUCSRGetInfo(A, &minfo[0]));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscLogEventGetPerfInfo(0, up, &info[1][0]));
  PetscCall(PetscLogEventGetPerfInfo(0, down, &info[1][1]));
  PetscCall(MatGPUCSRGetInfo(A, &minfo[1]));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCheck(its > 20, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Only %" PetscInt_FMT " iterations", its);
  if (minfo[1].products > minfo[0].products) /* not MATAIJ's own, which are the host's, and the halo's entries of a parallel one are fetched there by the vector */
    PetscCheck(info[1][0].count - info[0][0].count <= 4 && info[1][1].count - info[0][1].count <= 4, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d copies up and %d down in a solve of %" PetscInt_FMT " iterations with vectors of the host",
               (int)(info[1][0].count - info[0][0].count), (int)(info[1][1].count - info[0][1].count), its);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, R;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscLogDefaultBegin());
  PetscCall(TestConvection(PETSC_COMM_WORLD, K, 0, PETSC_FALSE, &A));
  PetscCall(TestConvection(PETSC_COMM_WORLD, K, 0, PETSC_TRUE, &R));
  PetscCall(NamesOf(A));
  PetscCall(TestLRC(A, R));
  PetscCall(TestLMVM(A));
  PetscCall(TestHosted(A, R));
  PetscCall(TestHostedCopies(A));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}
