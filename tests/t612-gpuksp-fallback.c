//TEST name="aij" args="-mat_type aij -ksp_type gpucg -options_left no" warns="KSP type gpucg: cg solves instead, because the operator is of type seqaij"
//TEST name="aij_ranks" nsize=2 args="-mat_type aij -ksp_type gpubcgs -options_left no" warns="KSP type gpubcgs: bcgs solves instead, because the operator is of type mpiaij"
//TEST name="nodevice" args="-ksp_type {}" loop="gpucg gpubcgs" gpu=0 warns="solves instead, because the operator is on no device: backend host was asked for"
//TEST name="nodevice_ranks" nsize=3 args="-ksp_type gpucg" gpu=0 warns="cg solves instead, because the operator is on no device"
//TEST name="eigenvalues" args="-ksp_type gpucg -mat_gpucsr_format csr -ksp_view_eigenvalues ascii:/dev/null" warns="cg solves instead, because singular values or eigenvalues were asked for"
//TEST name="memory" gpu=0 args="-ksp_type gpucg -mat_gpucsr_format csr -mat_gpucsr_memory_limit 50000" warns="cg solves instead, because host device 0: sums of a solver needs"
//TEST name="none" args="-ksp_type gpucg -mat_gpucsr_format csr -ksp_norm_type none -ksp_max_it 50"
//TEST name="word" args="-ksp_type gpucg -mat_gpucsr_format csr -ksp_gpucg_path sideways" fails="for -ksp_gpucg_path"
//TEST name="path" args="-ksp_type gpucg -pc_type sor -ksp_gpucg_path persistent" gpu=1 fails="-ksp_gpucg_path persistent is not possible here: the preconditioner is PCApply()'s"
//TEST name="empty" args="-ksp_type {} -mat_gpucsr_format csr -pc_type jacobi -size 0" loop="gpucg gpubcgs"
//TEST name="single_reduction" gpu=1 args="-ksp_type gpucg -mat_gpucsr_format csr -pc_type jacobi -ksp_gpucg_variant single_reduction -words graph,standard"
//TEST name="single_reduction_path" gpu=1 args="-ksp_type gpucg -pc_type jacobi -ksp_gpucg_variant single_reduction -ksp_gpucg_path persistent" fails="a persistent kernel has the standard conjugate gradients alone"
//TEST name="parted" args="-ksp_type gpucg -mat_gpucsr_format csr -far 1e10 -ksp_rtol 1e-9 -ksp_divtol 1e20" warns="rounding has separated them"
//TEST name="factor" gpu=0 args="-ksp_type {} -mat_gpucsr_format csr -pc_type ilu -mat_gpucsr_solve_kernel ranges -words graph" loop="gpucg gpubcgs gpugmres"
//TEST name="in_place" args="-ksp_type {} -mat_gpucsr_format csr -pc_type ilu -in_place pc_factor_in_place" loop="gpucg gpubcgs gpugmres gpufgmres" fails="Not for factored matrix"
//TEST name="in_place_lu" args="-ksp_type {} -pc_type lu -in_place pc_factor_in_place -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda" loop="gpucg gpugmres" fails="Not for factored matrix"
//TEST name="in_place_parts" args="-ksp_type {} -mat_gpucsr_format csr -in_place sub_pc_factor_in_place -pc_type bjacobi -sub_pc_type ilu" loop="gpucg gpugmres" fails="Not for factored matrix"
//TEST name="in_place_shell" args="-ksp_type {} -mat_gpucsr_format csr -in_place shell -pc_type none" loop="gpucg gpubcgs gpugmres" fails="Not for factored matrix"
//TEST name="in_place_zero" args="-ksp_type {} -mat_gpucsr_format csr -pc_type ilu -in_place pc_factor_in_place -zero" loop="gpucg gpubcgs gpugmres" warns="solves instead, because the operator is of type seqaij"
//TEST name="gmres" args="-ksp_type {} -mat_gpucsr_format csr" loop="gpugmres gpufgmres"
//TEST name="gmres_aij" args="-mat_type aij -ksp_type gpugmres -options_left no" warns="KSP type gpugmres: gmres solves instead, because the operator is of type seqaij"
//TEST name="gmres_nodevice" nsize=2 args="-ksp_type gpufgmres" gpu=0 warns="fgmres solves instead, because the operator is on no device"
//TEST name="gmres_eigenvalues" args="-ksp_type gpugmres -mat_gpucsr_format csr -ksp_view_eigenvalues ascii:/dev/null" warns="gmres solves instead, because singular values or eigenvalues were asked for"
//TEST name="gmres_memory" gpu=0 args="-ksp_type gpugmres -mat_gpucsr_format csr -mat_gpucsr_memory_limit 200000" warns="gmres solves instead, because host device 0: the Krylov basis of a solver needs"
//TEST name="gmres_memory_ranks" gpu=0 nsize=2 args="-ksp_type gpugmres -mat_gpucsr_format csr -mat_gpucsr_memory_limit 100000" warns="gmres solves instead, because host device 0: the Krylov basis of a solver needs"
//TEST name="gmres_modified" args="-ksp_type gpugmres -mat_gpucsr_format csr -ksp_gmres_modifiedgramschmidt -ksp_gmres_restart 7 -options_left no -words restart=7,Modified" warns="gmres solves instead, because an orthogonalization other than the classical is selected"
//TEST name="gmres_symmetric" args="-ksp_type gpugmres -mat_gpucsr_format csr -pc_type jacobi -ksp_pc_side symmetric" warns="gmres solves instead, because symmetric preconditioning was asked for"
//TEST name="gmres_modifypc" args="-ksp_type gpufgmres -mat_gpucsr_format csr -pc_type ksp -ksp_fgmres_modifypcksp" warns="fgmres solves instead, because KSPFGMRESSetModifyPC() changes the preconditioner between iterations"
//TEST name="gmres_path" args="-ksp_type gpugmres -mat_gpucsr_format csr -ksp_gpugmres_path persistent" fails="-ksp_gpugmres_path persistent is not possible here: GMRES is no persistent kernel"
//TEST name="gmres_path_sor" args="-ksp_type gpugmres -mat_gpucsr_format csr -pc_type sor -ksp_gpugmres_path graph" fails="-ksp_gpugmres_path graph is not possible here: the preconditioner is PCApply()'s; auto would take host_loop"
//TEST name="gmres_restart" args="-ksp_type gpugmres -ksp_gmres_restart 0" fails="restart of GMRES is 0: must be from 1"
//TEST name="gmres_empty" args="-ksp_type {} -mat_gpucsr_format csr -pc_type jacobi -size 0" loop="gpugmres gpufgmres"
//TEST name="gmres_view" args="-ksp_type gpugmres -mat_gpucsr_format csr -pc_type jacobi -ksp_gmres_cgs_refinement_type refine_ifneeded -words restart=30,refined,graph"
/*
  Unsupported cases fall back to PETSc's solvers, with one line that says why. An option that cannot be honoured is an error with the option's name.

    build/tests/t612-gpuksp-fallback -dll_append build/lib/libpetscgpucsr.so -ksp_type gpucg [-mat_type aij] ...
*/
#include "testing.h"

/* A preconditioner that makes a factor of its matrix as it is applied */
static PetscErrorCode ApplyInPlace(PC pc, Vec x, Vec y)
{
  Mat           A;
  IS            rows;
  MatFactorInfo info;
  MatFactorType type;
  PetscInt      n;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatGetFactorType(A, &type));
  if (type == MAT_FACTOR_NONE) {
    PetscCall(MatFactorInfoInitialize(&info));
    info.fill = 1;
    PetscCall(MatGetSize(A, &n, NULL));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, n, 0, 1, &rows));
    PetscCall(ISSetIdentity(rows));
    PetscCall(MatILUFactor(A, rows, rows, &info));
    PetscCall(ISDestroy(&rows));
  }
  PetscCall(VecCopy(x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                A;
  Vec                x, b;
  KSP                ksp;
  PetscReal          far         = 0;
  PetscInt           size        = 20;
  char               inplace[64] = "", option[80];
  PetscBool          words, zero;
  KSPConvergedReason reason;
  KSPNormType        norm;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-far", &far, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-size", &size, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-words", &words));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-in_place", inplace, sizeof(inplace), NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-zero", &zero));
  PetscCall(TestConvection(PETSC_COMM_WORLD, size, 0.0, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  if (far > 0) { /* x starts so far away that the digits lost on the way back matter */
    PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
    PetscCall(TestFill(x, 2, PETSC_FALSE));
    PetscCall(VecScale(x, far));
  } else PetscCall(KSPSolve(ksp, b, x)); /* the second solve must not repeat the message */
  if (inplace[0]) {                      /* as it is set up again, the PC makes a factor of A itself */
    PC pc;

    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PetscSNPrintf(option, sizeof(option), "-%s", inplace));
    if (strcmp(inplace, "shell")) PetscCall(PetscOptionsSetValue(NULL, option, NULL));
    else PetscCall(PetscOptionsSetValue(NULL, "-pc_type", "shell"));
    PetscCall(KSPSetFromOptions(ksp));
    if (!strcmp(inplace, "shell")) PetscCall(PCShellSetApply(pc, ApplyInPlace));
    PetscCall(MatScale(A, 2.0));
  }
  if (zero) PetscCall(VecSet(b, 0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetNormType(ksp, &norm));
  PetscCheck(reason > 0 || norm == KSP_NORM_NONE, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "it ended with %s", KSPConvergedReasons[reason]);
  if (words) { /* the view has them */
    char        text[4096], *word[2];
    PetscInt    nwords = 2;
    FILE       *file   = tmpfile();
    PetscViewer viewer;

    PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_SELF, file, &viewer));
    PetscCall(KSPView(ksp, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-words", word, &nwords, NULL));
    for (PetscInt k = 0; k < nwords; k++) {
      PetscCheck(strstr(text, word[k]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is not in the view: %s", word[k], text);
      PetscCall(PetscFree(word[k]));
    }
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
