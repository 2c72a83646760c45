//TEST name="host" args="-mat_gpucsr_format csr -vec_type gpu"
//TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu"
//TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -vec_type gpu"
//TEST name="standard" args="-mat_gpucsr_format csr -vec_type standard"
//TEST name="ranks" nsize=3 args="-vec_type gpu"
//TEST name="ranks_standin" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu"
//TEST name="malloc" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -malloc_debug -malloc_dump"
//TEST name="memory" gpu=0 args="-mat_gpucsr_backend auto -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_memory_limit {}" loop="3000 10000 20000"
//TEST name="faults" gpu=0 args="-mat_gpucsr_backend auto -gpucsr_debug_standin 1 -vec_type gpu -only schur -gpucsr_debug_fault memory:{}" loop="3 5 8"
//TEST name="view" args="-vec_type gpu -only vpbjacobi -made_mat_view ::ascii_info"

/*
  PCPBJACOBI, PCVPBJACOBI and PCFIELDSPLIT, which the library applies to vectors of type gpu, against PETSc's of the same MATAIJ. Covered are lengths of blocks, and numbers and kinds of fields, with default and
  overlapping fields; then new values, a reused preconditioner with new values, PCReset(), and another composition.
*/
#include "precond.h"

static const char *const cases[] = {
  "-bs 1 -t_pc_type pbjacobi",
  "-bs 2 -t_pc_type pbjacobi",
  "-bs 3 -t_pc_type pbjacobi",
  "-bs 9 -t_pc_type pbjacobi",
  "-variable 1 -t_pc_type vpbjacobi",
  "-variable 5 -t_pc_type vpbjacobi",
  "-bs 2 -t_pc_type fieldsplit -t_pc_fieldsplit_type additive -t_fieldsplit_pc_type jacobi",
  "-bs 3 -t_pc_type fieldsplit -t_pc_fieldsplit_type additive -t_fieldsplit_pc_type ilu",
  "-bs 2 -t_pc_type fieldsplit -t_fieldsplit_pc_type jacobi",
  "-bs 3 -t_pc_type fieldsplit -t_fieldsplit_pc_type jacobi",
  "-bs 3 -t_pc_type fieldsplit -t_pc_fieldsplit_0_fields 0,2 -t_pc_fieldsplit_1_fields 1 -t_fieldsplit_pc_type jacobi",
  "-bs 3 -t_pc_type fieldsplit -t_pc_fieldsplit_type symmetric_multiplicative -t_fieldsplit_pc_type jacobi",
  "-bs 2 -t_pc_type fieldsplit -t_pc_fieldsplit_type symmetric_multiplicative -t_fieldsplit_pc_type lu",
  "-bs 2 -t_pc_type fieldsplit -t_pc_fieldsplit_type schur -t_pc_fieldsplit_schur_precondition a11 -t_fieldsplit_pc_type jacobi -t_fieldsplit_ksp_type preonly",
  "-bs 2 -t_pc_type fieldsplit -t_pc_fieldsplit_type schur -t_pc_fieldsplit_schur_fact_type lower -t_pc_fieldsplit_schur_precondition a11 -t_fieldsplit_pc_type jacobi -t_fieldsplit_ksp_type preonly",
  "-bs 3 -t_pc_type fieldsplit -t_pc_fieldsplit_type schur -t_pc_fieldsplit_schur_fact_type upper -t_pc_fieldsplit_0_fields 0,2 -t_pc_fieldsplit_1_fields 1 -t_pc_fieldsplit_schur_precondition selfp -t_fieldsplit_pc_type jacobi "
  "-t_fieldsplit_ksp_type preonly",
  "-bs 3 -t_pc_type fieldsplit -t_pc_fieldsplit_type schur -t_pc_fieldsplit_0_fields 1 -t_pc_fieldsplit_1_fields 0,2 -t_pc_fieldsplit_schur_precondition self -t_fieldsplit_pc_type jacobi -t_fieldsplit_0_ksp_type preonly "
  "-t_fieldsplit_1_ksp_type preonly -t_fieldsplit_1_pc_type none",
  "-bs 2 -t_pc_type fieldsplit -t_pc_fieldsplit_type schur -t_pc_fieldsplit_schur_fact_type diag -t_pc_fieldsplit_schur_precondition a11 -t_fieldsplit_pc_type jacobi -t_fieldsplit_ksp_type preonly",
  "-bs 2 -t_pc_type fieldsplit -t_pc_fieldsplit_type schur -t_pc_fieldsplit_schur_precondition a11 -t_fieldsplit_pc_type jacobi -t_fieldsplit_ksp_type preonly -t_fieldsplit_0_upper_ksp_type preonly -t_fieldsplit_0_upper_pc_type jacobi",
  "-overlap -t_pc_type fieldsplit -t_pc_fieldsplit_type additive -t_fieldsplit_pc_type jacobi",
  "-overlap -t_pc_type fieldsplit -t_pc_fieldsplit_type multiplicative -t_fieldsplit_pc_type jacobi",
};

/* Blocks of 1 to most rows in turn */
static PetscErrorCode VariableBlocks(Mat A, PetscInt most)
{
  PetscInt n, *sizes, count = 0;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(PetscMalloc1(n, &sizes));
  for (PetscInt r = 0; r < n; r += sizes[count - 1]) {
    sizes[count] = PetscMin(1 + count % most, n - r);
    count++;
  }
  PetscCall(MatSetVariableBlockSizes(A, count, sizes));
  PetscCall(PetscFree(sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An M-matrix whose rows and columns are scaled */
static PetscErrorCode Matrix(PetscBool ref, Mat *A)
{
  Vec       l, r;
  PetscInt  rows, bs = 1, most;
  PetscBool variable, view;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-bs", &bs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-variable", &most, &variable));
  PetscCall(TestConvection(PETSC_COMM_WORLD, 18, 0.7, ref, A));
  PetscCall(MatSetBlockSize(*A, bs));
  if (variable) PetscCall(VariableBlocks(*A, most));
  PetscCall(MatGetLocalSize(*A, &rows, NULL));
  PetscCall(VecCreateMPI(PETSC_COMM_WORLD, rows, PETSC_DETERMINE, &l));
  PetscCall(VecDuplicate(l, &r));
  PetscCall(TestFill(l, 3, PETSC_FALSE));
  PetscCall(TestFill(r, 4, PETSC_FALSE));
  PetscCall(VecAbs(l));
  PetscCall(VecAbs(r));
  PetscCall(VecShift(l, 1.0));
  PetscCall(VecShift(r, 1.0));
  PetscCall(MatDiagonalScale(*A, l, r));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-made_mat_view", &view)); /* of matrices assembled from now on: no matrix of the program */
  if (view) PetscCall(MatSetOptionsPrefix(*A, "made_"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(Mat A, PetscBool overlap, PC *pc)
{
  PetscInt rs, re, n;

  PetscFunctionBegin;
  PetscCall(PCCreate(PETSC_COMM_WORLD, pc));
  PetscCall(PCSetOptionsPrefix(*pc, "t_"));
  PetscCall(PCSetOperators(*pc, A, A));
  PetscCall(PCSetFromOptions(*pc));
  if (!overlap) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  n = re - rs;
  for (PetscInt k = 0; k < 3; k++) { /* the first two overlap */
    const PetscInt first = k == 0 ? 0 : k == 1 ? n / 3 : 2 * n / 3 + 1, end = k == 0 ? n / 2 : k == 1 ? 2 * n / 3 + 1 : n;
    IS             is;

    PetscCall(ISCreateStride(PETSC_COMM_WORLD, end - first, rs + first, 1, &is));
    PetscCall(PCFieldSplitSetIS(*pc, NULL, is));
    PetscCall(ISDestroy(&is));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(PC pc, PC ref, PetscInt seed, const char options[], const char where[])
{
  char what[512];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(what, sizeof(what), "with %s, %s", options, where));
  PetscCall(TestApplications(pc, ref, seed, PETSC_FALSE, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors of an application stay on the device, unless it is PETSc's */
static PetscErrorCode NoCopies(PC pc, const char options[])
{
  static const char *const names[] = {"VecGPUCopyTo", "VecGPUCopyFrom"};
  static PetscLogStage     stage   = -1;
  PetscEventPerfInfo       info[2][2];
  PetscLogEvent            event;
  PetscBool                standin = PETSC_FALSE, limit, fault;
  PetscMPIInt              size;
  char                     vec[32] = "";
  Mat                      A;
  Vec                      b, z;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-gpucsr_debug_standin", &standin, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gpucsr_memory_limit", &limit));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-gpucsr_debug_fault", &fault));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", vec, sizeof(vec), NULL));
  if (size > 1 || !standin || limit || fault || strcmp(vec, "gpu") || !strstr(options, "jacobi") || strstr(options, "diag") || strstr(options, "upper_")) PetscFunctionReturn(PETSC_SUCCESS);
  if (stage < 0) PetscCall(PetscLogStageRegister("applications", &stage));
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, &z, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(PCApply(pc, b, z));
  PetscCall(VecScale(b, 2.0)); /* it is on the device alone */
  PetscCall(PetscLogStagePush(stage));
  for (int when = 0; when < 2; when++) {
    if (when) {
      PetscCall(PCApply(pc, b, z));
      PetscCall(VecScale(z, 2.0));
    }
    for (int k = 0; k < 2; k++) {
      PetscCall(PetscLogEventGetId(names[k], &event));
      PetscCall(PetscLogEventGetPerfInfo(stage, event, &info[when][k]));
    }
  }
  PetscCall(PetscLogStagePop());
  for (int k = 0; k < 2; k++) PetscCheck(info[1][k].count == info[0][k].count, PETSC_COMM_SELF, PETSC_ERR_PLIB, "With %s an application has copied vectors: %d times %s", options, info[1][k].count - info[0][k].count, names[k]);
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other factors of a Schur complement's set-up, by the function and by an option */
static PetscErrorCode Factors(PC pc[], const char options[])
{
  PetscFunctionBegin;
  for (int type = PC_FIELDSPLIT_SCHUR_FACT_LOWER; type <= PC_FIELDSPLIT_SCHUR_FACT_FULL; type++) {
    for (int k = 0; k < 2; k++) PetscCall(PCFieldSplitSetSchurFactType(pc[k], (PCFieldSplitSchurFactType)type));
    PetscCall(Compare(pc[0], pc[1], 6 + type, options, PCFieldSplitSchurFactTypes[type]));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-t_pc_fieldsplit_type"));
  PetscCall(PetscOptionsSetValue(NULL, "-t_pc_fieldsplit_schur_fact_type", "lower"));
  for (int k = 0; k < 2; k++) PetscCall(PCSetFromOptions(pc[k]));
  PetscCall(Compare(pc[0], pc[1], 10, options, "factors by an option"));
  PetscCall(PetscOptionsClearValue(NULL, "-t_pc_fieldsplit_schur_fact_type"));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(const char options[])
{
  const PetscBool overlap = (PetscBool)(strstr(options, "-overlap") != NULL), fields = (PetscBool)(strstr(options, "fieldsplit") != NULL);
  Mat             A[2];
  PC              pc[2];

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, options));
  for (int k = 0; k < 2; k++) {
    PetscCall(Matrix((PetscBool)k, &A[k]));
    PetscCall(Make(A[k], overlap, &pc[k]));
  }
  PetscCall(Compare(pc[0], pc[1], 1, options, "at first"));
  PetscCall(Compare(pc[0], pc[1], 2, options, "again"));
  PetscCall(NoCopies(pc[0], options));
  for (int k = 0; k < 2; k++) PetscCall(MatScale(A[k], 1.5));
  PetscCall(Compare(pc[0], pc[1], 3, options, "new values"));
  for (int k = 0; k < 2; k++) {
    PetscCall(PCSetReusePreconditioner(pc[k], PETSC_TRUE));
    PetscCall(MatScale(A[k], 1.25));
  }
  PetscCall(Compare(pc[0], pc[1], 4, options, "new values that are not for it"));
  if (strstr(options, "schur")) PetscCall(Factors(pc, options));
  for (int k = 0; k < 2 && fields && !strstr(options, "schur"); k++) PetscCall(PCFieldSplitSetType(pc[k], strstr(options, "additive") ? PC_COMPOSITE_MULTIPLICATIVE : PC_COMPOSITE_ADDITIVE));
  for (int k = 0; k < 2; k++) {
    PetscCall(PCSetReusePreconditioner(pc[k], PETSC_FALSE));
    PetscCall(PCReset(pc[k]));
    PetscCall(PCDestroy(&pc[k]));
    PetscCall(Make(A[k], overlap, &pc[k]));
  }
  PetscCall(Compare(pc[0], pc[1], 5, options, "made again"));
  for (int k = 0; k < 2; k++) {
    PetscCall(PCSetType(pc[k], PCJACOBI));
    PetscCall(PCDestroy(&pc[k]));
    PetscCall(MatDestroy(&A[k]));
  }
  for (const char *word = strchr(options, '-'); word; word = strchr(word + 1, '-')) {
    char name[128];

    if (sscanf(word, "%127s", name) == 1 && (!strncmp(name, "-t_", 3) || !strcmp(name, "-bs") || !strcmp(name, "-variable") || !strcmp(name, "-overlap"))) PetscCall(PetscOptionsClearValue(NULL, name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt size;
  char        only[32] = ""; /* a part of a case's options */

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscLogDefaultBegin()); /* counts copies */
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++)
    if (strstr(cases[k], only) && (size == 1 || !(strstr(cases[k], " ilu") || strstr(cases[k], " lu")))) PetscCall(Run(cases[k]));
  PetscCall(PetscFinalize());
  return 0;
}
