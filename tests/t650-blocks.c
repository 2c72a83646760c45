//TEST name="kernel" args="-mat_gpucsr_format csr -sub_mat_gpucsr_solve_kernel {}" loop="ranges syncfree inverses"
//TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -sub_mat_gpucsr_solve_kernel syncfree"
//TEST name="malloc" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -sub_mat_gpucsr_solve_kernel syncfree -malloc_debug -malloc_dump -case {}" loop="3 9 20"
//TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -sub_mat_gpucsr_solve_kernel ranges"
//TEST name="late.inverses" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -sub_mat_gpucsr_solve_kernel inverses"
//TEST name="hostvectors" args="-mat_gpucsr_format csr -vec_type standard -sub_mat_gpucsr_solve_kernel syncfree"
//TEST name="ranks" nsize=3 args="-sub_mat_gpucsr_solve_kernel syncfree"
//TEST name="ranks_standin" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -sub_mat_gpucsr_solve_kernel syncfree"
//TEST name="many" gpu=0 args="-many -mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
//TEST name="without" args="-theirs" gpu=0
//TEST name="memory" gpu=0 args="-faulty -mat_gpucsr_backend auto -gpucsr_debug_standin 1 -sub_mat_gpucsr_solve_kernel syncfree -mat_gpucsr_memory_limit {}" loop="20000 60000 110000"
//TEST name="memory.inverses" gpu=0 args="-faulty -mat_gpucsr_backend auto -gpucsr_debug_standin 1 -sub_mat_gpucsr_solve_kernel inverses -mat_gpucsr_memory_limit {}" loop="20000 60000 110000"
//TEST name="fault" gpu=0 args="-faulty -mat_gpucsr_backend auto -gpucsr_debug_standin 1 -sub_mat_gpucsr_solve_kernel syncfree -gpucsr_debug_fault {}" loop="memory:3 memory:20 memory:45:on launch:4 copy:30"

/*
  PCBJACOBI and PCASM, whose blocks the library solves together, against PETSc's of the same MATAIJ: one application with each kind of factor, ordering, number and length of blocks, overlap and
  restriction. Then applications with new values, a new pattern, its transpose, after PCReset(), and with other solvers of the blocks; zero pivots. -many: an application of many blocks does not look at each.

  Only PETSc's solvers of blocks count their iterations. So the test knows which application ran.
*/
#include "precond.h"
#include <petsctime.h>

typedef struct {
  PetscBool   symmetric, ours;
  const char *options;
} Case;

#define BJACOBI "-t_pc_type bjacobi -t_pc_bjacobi_local_blocks "
#define ASM     "-t_pc_type asm -t_pc_asm_local_blocks "

static const Case cases[] = {
  {PETSC_FALSE, PETSC_TRUE,  BJACOBI "7"                                                                                },
  {PETSC_FALSE, PETSC_TRUE,  BJACOBI "1"                                                                                },
  {PETSC_FALSE, PETSC_TRUE,  BJACOBI "40"                                                                               },
  {PETSC_FALSE, PETSC_TRUE,  BJACOBI "5 -t_sub_pc_factor_levels 1"                                                      },
  {PETSC_FALSE, PETSC_TRUE,  BJACOBI "5 -t_sub_pc_factor_mat_ordering_type rcm"                                         },
  {PETSC_FALSE, PETSC_TRUE,  BJACOBI "4 -t_sub_pc_factor_levels 2 -t_sub_pc_factor_mat_ordering_type rcm"               },
  {PETSC_FALSE, PETSC_TRUE,  BJACOBI "6 -t_sub_pc_type lu"                                                              },
  {PETSC_TRUE,  PETSC_TRUE,  BJACOBI "6 -t_sub_pc_type icc"                                                             },
  {PETSC_TRUE,  PETSC_TRUE,  BJACOBI "6 -t_sub_pc_type icc -t_sub_pc_factor_mat_ordering_type rcm"                      },
  {PETSC_TRUE,  PETSC_TRUE,  BJACOBI "3 -t_sub_pc_type icc -t_sub_pc_factor_levels 1"                                   },
  {PETSC_TRUE,  PETSC_TRUE,  BJACOBI "6 -t_sub_pc_type cholesky -t_sub_pc_factor_mat_ordering_type nd"                  },
  {PETSC_FALSE, PETSC_FALSE, BJACOBI "4 -t_sub_pc_type sor"                                                             },
  {PETSC_FALSE, PETSC_FALSE, BJACOBI "4 -t_sub_pc_type jacobi"                                                          },
  {PETSC_FALSE, PETSC_FALSE, BJACOBI "1 -t_sub_pc_type jacobi -t_sub_pc_jacobi_type rowmax"                             },
  {PETSC_FALSE, PETSC_FALSE, BJACOBI "30 -t_sub_pc_type none"                                                           },
  {PETSC_FALSE, PETSC_FALSE, BJACOBI "4 -t_sub_ksp_type richardson -t_sub_ksp_max_it 2 -t_sub_ksp_convergence_test skip"},
  {PETSC_FALSE, PETSC_FALSE, BJACOBI "4 -t_sub_pc_factor_in_place"                                                      },
  {PETSC_FALSE, PETSC_FALSE, BJACOBI "4 -t_pc_blocks_gpucsr 0"                                                          },
  {PETSC_FALSE, PETSC_FALSE, BJACOBI "4 -t_sub_pc_factor_mat_solver_type petsc"                                         },
  {PETSC_FALSE, PETSC_TRUE,  ASM "5"                                                                                    },
  {PETSC_FALSE, PETSC_TRUE,  ASM "1"                                                                                    },
  {PETSC_FALSE, PETSC_TRUE,  ASM "5 -t_pc_asm_overlap 2 -t_sub_pc_factor_levels 1"                                      },
  {PETSC_FALSE, PETSC_TRUE,  ASM "5 -t_pc_asm_overlap 0"                                                                },
  {PETSC_FALSE, PETSC_TRUE,  ASM "5 -t_pc_asm_type basic"                                                               },
  {PETSC_TRUE,  PETSC_TRUE,  ASM "5 -t_pc_asm_type basic -t_pc_asm_overlap 2 -t_sub_pc_type icc"                        },
  {PETSC_FALSE, PETSC_TRUE,  ASM "8 -t_pc_asm_overlap 3 -t_sub_pc_type lu"                                              },
  {PETSC_FALSE, PETSC_FALSE, ASM "5 -t_pc_asm_local_type multiplicative"                                                },
};

/* The 5-point matrix of t600, perhaps with its rows, and its columns, scaled by numbers from 1 to 3: still an M-matrix, which is its own comparison matrix */
static PetscErrorCode Matrix(PetscInt k, PetscBool symmetric, PetscInt seed, PetscBool ref, Mat *A)
{
  Vec      l, r;
  PetscInt rows;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, k, symmetric ? 0.0 : 0.7, ref, A));
  PetscCall(MatGetLocalSize(*A, &rows, NULL));
  PetscCall(VecCreateMPI(PETSC_COMM_WORLD, rows, PETSC_DETERMINE, &l)); /* a device that fails does not take them along */
  PetscCall(VecDuplicate(l, &r));
  for (int side = 0; side < 2; side++) {
    Vec v = side ? r : l;

    PetscCall(TestFill(v, symmetric ? seed : seed + side, PETSC_FALSE));
    PetscCall(VecScale(v, 0.5));
    PetscCall(VecShift(v, 2.0));
    PetscCall(VecAbs(v));
    PetscCall(VecShift(v, 1.0));
  }
  PetscCall(MatDiagonalScale(*A, l, r));
  if (symmetric) PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iterations that PETSc's solvers of blocks have made so far */
static PetscErrorCode Solved(PC pc, PetscInt *its)
{
  PetscBool jacobi;
  PetscInt  n;
  KSP      *ksp;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCBJACOBI, &jacobi));
  if (jacobi) PetscCall(PCBJacobiGetSubKSP(pc, &n, NULL, &ksp));
  else PetscCall(PCASMGetSubKSP(pc, &n, NULL, &ksp));
  PetscCall(KSPGetTotalIterations(ksp[n - 1], its));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Applications of both: does the expected code run? */
static PetscErrorCode Compare(PC pc, PC ref, PetscInt seed, PetscBool transposed, PetscBool ours, const char where[])
{
  PetscInt before, after;

  PetscFunctionBegin;
  PetscCall(PCSetUp(pc));
  PetscCall(PCSetUp(ref));
  PetscCall(PCSetUpOnBlocks(pc));
  PetscCall(PCSetUpOnBlocks(ref));
  PetscCall(Solved(pc, &before));
  PetscCall(TestApplications(pc, ref, seed, transposed, where));
  PetscCall(Solved(pc, &after));
  PetscCheck((after == before) == ours, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: blocks are solved with by %s", where, ours ? "PETSc, one by one" : "the library, together");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A case's request ends with it */
static PetscErrorCode Forget(const char options[])
{
  PetscFunctionBegin;
  for (const char *word = strchr(options, '-'); word; word = strchr(word + 1, '-')) {
    char name[128];

    if (sscanf(word, "%127s", name) == 1 && !strncmp(name, "-t_", 3)) PetscCall(PetscOptionsClearValue(NULL, name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(Mat A, PC *pc)
{
  PetscFunctionBegin;
  PetscCall(PCCreate(PETSC_COMM_WORLD, pc));
  PetscCall(PCSetOptionsPrefix(*pc, "t_"));
  PetscCall(PCSetOperators(*pc, A, A));
  PetscCall(PCSetFromOptions(*pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values in place, or a pattern with more entries */
static PetscErrorCode Change(Mat A, PetscBool symmetric, PetscBool pattern)
{
  PetscInt rs, re, n;

  PetscFunctionBegin;
  if (!pattern) {
    Mat B;

    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatShift(B, 0.375));
    PetscCall(MatCopy(B, A, SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    const PetscScalar less = -0.01;

    if (r + 2 < n && r % 3 == 0) PetscCall(MatSetValue(A, r, r + 2, less, ADD_VALUES));
    if (symmetric && r >= 2 && (r - 2) % 3 == 0) PetscCall(MatSetValue(A, r, r - 2, less, ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(const Case *c, PetscInt k, PetscBool never)
{
  Mat         A, R;
  PC          pc, ref;
  PetscMPIInt size;
  PetscBool   ours = (PetscBool)(c->ours && !never), factors, overlap;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  overlap = (PetscBool)(strstr(c->options, " asm ") != NULL);
  if (overlap && size > 1) {
    if (!strstr(c->options, "_blocks 1")) PetscFunctionReturn(PETSC_SUCCESS); /* two of PETSc 3.18 with MATAIJ differ there */
    ours = PETSC_FALSE;
  }
  factors = (PetscBool)(!strstr(c->options, "in_place") && !strstr(c->options, "multiplicative") && !strstr(c->options, "richardson") && !strstr(c->options, "sor"));
  PetscCall(PetscOptionsInsertString(NULL, c->options));
  PetscCall(Matrix(k, c->symmetric, 3, PETSC_FALSE, &A));
  PetscCall(Matrix(k, c->symmetric, 3, PETSC_TRUE, &R));
  PetscCall(Make(A, &pc));
  PetscCall(Make(R, &ref));
  PetscCall(Compare(pc, ref, 1, PETSC_FALSE, ours, c->options));
  PetscCall(Compare(pc, ref, 2, PETSC_FALSE, ours, c->options));
  for (PetscInt again = 0; again < 2 && !strstr(c->options, "in_place"); again++) { /* PETSc's blocks are their factors then, and take no new values */
    PetscCall(Change(A, c->symmetric, PETSC_FALSE));
    PetscCall(Change(R, c->symmetric, PETSC_FALSE));
    PetscCall(Compare(pc, ref, 3, PETSC_FALSE, ours, "new values"));
    if (factors) PetscCall(Compare(pc, ref, 4, PETSC_TRUE, PETSC_FALSE, "the transpose"));
    PetscCall(Compare(pc, ref, 5, PETSC_FALSE, ours, "after the transpose"));
  }
  PetscCall(Change(A, c->symmetric, PETSC_TRUE));
  PetscCall(Change(R, c->symmetric, PETSC_TRUE));
  if (overlap) { /* subdomains stay as they are */
    PetscCall(PCReset(pc));
    PetscCall(PCReset(ref));
    PetscCall(PCSetOperators(pc, A, A));
    PetscCall(PCSetOperators(ref, R, R));
    PetscCall(PCSetFromOptions(pc));
    PetscCall(PCSetFromOptions(ref));
  }
  if (!strstr(c->options, "in_place")) PetscCall(Compare(pc, ref, 6, PETSC_FALSE, ours, "a new pattern"));
  PetscCall(PCDestroy(&pc));
  PetscCall(PCDestroy(&ref));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(Forget(c->options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A function of the program that a skipped solve would miss */
static PetscErrorCode Twice(KSP ksp, Vec b, Vec x, void *ctx)
{
  PetscFunctionBegin;
  PetscCall(VecScale(x, 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program gives a block another solver or a function, and takes it back */
static PetscErrorCode Others(PetscInt k, PetscBool ours)
{
  Mat  A, R;
  PC   pc[2];
  KSP *ksp;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, BJACOBI "3"));
  PetscCall(Matrix(k, PETSC_FALSE, 3, PETSC_FALSE, &A));
  PetscCall(Matrix(k, PETSC_FALSE, 3, PETSC_TRUE, &R));
  PetscCall(Make(A, &pc[0]));
  PetscCall(Make(R, &pc[1]));
  PetscCall(Compare(pc[0], pc[1], 1, PETSC_FALSE, ours, "as it is made"));
  for (int step = 0; step < 3; step++) {
    for (int q = 0; q < 2; q++) {
      PC       sub;
      PetscInt n;

      PetscCall(PCBJacobiGetSubKSP(pc[q], &n, NULL, &ksp));
      PetscCall(KSPGetPC(ksp[1], &sub));
      PetscCall(PCSetType(sub, step == 1 ? PCILU : PCJACOBI));
    }
    PetscCall(Compare(pc[0], pc[1], 2, PETSC_FALSE, (PetscBool)(ours && step == 1), step == 1 ? "the second block again as the others" : "the second block by Jacobi"));
  }
  for (int q = 0; q < 2; q++) {
    PC sub;

    PetscCall(PCBJacobiGetSubKSP(pc[q], NULL, NULL, &ksp));
    PetscCall(KSPGetPC(ksp[1], &sub));
    PetscCall(PCSetType(sub, PCILU));
  }
  PetscCall(Compare(pc[0], pc[1], 2, PETSC_FALSE, ours, "all blocks alike"));
  for (int step = 0; step < 2; step++) {
    for (int q = 0; q < 2; q++) {
      PetscCall(PCBJacobiGetSubKSP(pc[q], NULL, NULL, &ksp));
      PetscCall(KSPSetPostSolve(ksp[1], step ? NULL : Twice, NULL));
    }
    PetscCall(Compare(pc[0], pc[1], 2, PETSC_FALSE, (PetscBool)(ours && step), step ? "without the function again" : "a function of the program after the second block's solve"));
  }
  for (int q = 0; q < 2; q++) PetscCall(PCDestroy(&pc[q]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(Forget(BJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program gives all blocks another kind of factor, of the same pattern in the same order */
static PetscErrorCode Kinds(PetscInt k, PetscBool ours)
{
  static const struct {
    PCType   type;
    PetscInt levels;
  } kinds[] = {
    {PCILU, 0},
    {PCLU,  0},
    {PCILU, 0},
    {PCILU, 2},
  };
  Mat A, R;
  PC  pc[2];

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, BJACOBI "3"));
  PetscCall(Matrix(k, PETSC_FALSE, 3, PETSC_FALSE, &A));
  PetscCall(Matrix(k, PETSC_FALSE, 3, PETSC_TRUE, &R));
  PetscCall(Make(A, &pc[0]));
  PetscCall(Make(R, &pc[1]));
  for (size_t step = 0; step < PETSC_STATIC_ARRAY_LENGTH(kinds); step++) {
    for (int q = 0; q < 2; q++) {
      PetscInt n;
      KSP     *ksp;

      PetscCall(PCSetUp(pc[q]));
      PetscCall(PCBJacobiGetSubKSP(pc[q], &n, NULL, &ksp));
      for (PetscInt block = 0; block < n; block++) {
        PC sub;

        PetscCall(KSPGetPC(ksp[block], &sub));
        PetscCall(PCSetType(sub, PCNONE)); /* forgets the former state */
        PetscCall(PCSetType(sub, kinds[step].type));
        PetscCall(PCFactorSetMatOrderingType(sub, MATORDERINGNATURAL));
        if (kinds[step].levels) PetscCall(PCFactorSetLevels(sub, kinds[step].levels));
      }
    }
    PetscCall(Compare(pc[0], pc[1], 2, PETSC_FALSE, ours, "another kind of factor"));
  }
  for (int q = 0; q < 2; q++) PetscCall(PCDestroy(&pc[q]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(Forget(BJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One process gives its blocks another kind of solver: applications stay right, and collective work happens on all processes */
static PetscErrorCode Differing(PetscInt k, PetscBool first)
{
  Mat         A, R;
  PC          pc[2];
  PetscMPIInt rank, tag, bounds[2];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscOptionsInsertString(NULL, BJACOBI "3"));
  PetscCall(Matrix(k, PETSC_FALSE, 3, PETSC_FALSE, &A));
  PetscCall(Matrix(k, PETSC_FALSE, 3, PETSC_TRUE, &R));
  PetscCall(Make(A, &pc[0]));
  PetscCall(Make(R, &pc[1]));
  for (int q = 0; q < 2; q++) {
    PetscInt n;
    KSP     *ksp;

    PetscCall(PCSetUp(pc[q]));
    PetscCall(PCBJacobiGetSubKSP(pc[q], &n, NULL, &ksp));
    for (PetscInt block = 0; block < n && (rank == 0) == first; block++) {
      PC sub;

      PetscCall(KSPGetPC(ksp[block], &sub));
      PetscCall(PCSetType(sub, PCSOR));
    }
    PetscCall(PCSetUpOnBlocks(pc[q]));
  }
  PetscCall(TestApplications(pc[0], pc[1], 1, PETSC_FALSE, "blocks of two kinds"));
  PetscCall(PetscCommGetNewTag(PetscObjectComm((PetscObject)A), &tag));
  bounds[0] = tag;
  bounds[1] = -tag;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  PetscCheck(bounds[0] == -bounds[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Blocks of two kinds: tags are %d to %d, messages would miss each other", -bounds[1], bounds[0]);
  for (int q = 0; q < 2; q++) PetscCall(PCDestroy(&pc[q]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(Forget(BJACOBI "3"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A zero pivot in one block: PETSc's error, and its shift of this block alone */
static PetscErrorCode Pivots(PetscInt k)
{
  static const char *const options[] = {BJACOBI "4", BJACOBI "4 -t_sub_pc_factor_shift_type nonzero", BJACOBI "4 -t_sub_pc_factor_shift_type none", BJACOBI "4 -t_sub_pc_factor_shift_type inblocks"};

  PetscFunctionBegin;
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(options); q++) {
    PCFailedReason failed[2];
    PetscReal      norm[2];

    PetscCall(PetscOptionsInsertString(NULL, options[q]));
    for (int ref = 0; ref < 2; ref++) { /* of one type of matrix: PETSc shifts differently for types other than MATAIJ by name */
      Mat      A;
      PC       pc;
      Vec      x, b;
      PetscInt rs;

      PetscCall(PetscOptionsSetValue(NULL, "-t_pc_blocks_gpucsr", ref ? "0" : "1"));
      PetscCall(Matrix(k, PETSC_FALSE, 3, PETSC_FALSE, &A));
      PetscCall(MatGetOwnershipRange(A, &rs, NULL));
      PetscCall(MatSetValue(A, rs, rs, 0.0, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
      PetscCall(Make(A, &pc));
      PetscCall(PCSetUp(pc));
      PetscCall(PCSetUpOnBlocks(pc));
      PetscCall(PCGetFailedReason(pc, &failed[ref]));
      PetscCall(MatCreateVecs(A, &x, &b));
      PetscCall(TestFill(b, 1, PETSC_FALSE));
      norm[ref] = 0;
      if (!failed[ref]) PetscCall(PCApply(pc, b, x));
      if (!failed[ref]) PetscCall(VecNorm(x, NORM_2, &norm[ref]));
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&b));
      PetscCall(PCDestroy(&pc));
      PetscCall(MatDestroy(&A));
    }
    PetscCheck(failed[0] == failed[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: a block without a pivot is %s, should be %s", options[q], PCFailedReasons[failed[0]], PCFailedReasons[failed[1]]);
    PetscCheck(PetscAbsReal(norm[0] - norm[1]) <= 1e-6 * norm[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: a block whose pivot is shifted gives the norm %g, should be %g", options[q], (double)norm[0], (double)norm[1]);
    PetscCall(Forget(options[q]));
    PetscCall(Forget("-t_pc_blocks_gpucsr"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Methods of PETSc and of the library: as many iterations as with MATAIJ */
static PetscErrorCode Solve(PetscInt k)
{
  static const char *const methods[][2] = {
    {"cg",    "gpucg"   },
    {"bcgs",  "gpubcgs" },
    {"gmres", "gpugmres"}
  };
  static const char *const options[] = {BJACOBI "5", ASM "5", ASM "4 -t_pc_asm_type basic -t_sub_pc_type icc"};

  PetscFunctionBegin;
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(options); q++)
    for (size_t m = 0; m < PETSC_STATIC_ARRAY_LENGTH(methods); m++) {
      const PetscBool symmetric = (PetscBool)(m == 0);
      PetscInt        its[3]    = {0, 0, 0};

      PetscCall(PetscOptionsInsertString(NULL, options[q]));
      if (symmetric) PetscCall(PetscOptionsInsertString(NULL, "-t_sub_pc_type icc -t_pc_asm_type basic"));
      for (int kind = 0; kind < 3; kind++) { /* AIJ; PETSc's method on this library's types; and the library's method */
        Mat                A;
        KSP                ksp;
        Vec                x, b;
        KSPConvergedReason reason;

        PetscCall(Matrix(k, symmetric, 3, (PetscBool)!kind, &A));
        PetscCall(MatCreateVecs(A, &x, &b));
        PetscCall(TestFill(b, 7, PETSC_FALSE));
        PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
        PetscCall(KSPSetOptionsPrefix(ksp, "t_"));
        PetscCall(KSPSetOperators(ksp, A, A));
        PetscCall(KSPSetType(ksp, methods[m][kind == 2]));
        PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 300));
        PetscCall(KSPSetFromOptions(ksp));
        for (int pass = 0; pass < 2; pass++) {
          PetscInt n;

          PetscCall(VecSet(x, 0.0));
          PetscCall(KSPSolve(ksp, b, x));
          PetscCall(KSPGetConvergedReason(ksp, &reason));
          PetscCall(KSPGetIterationNumber(ksp, &n));
          PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with %s: %s", methods[m][kind == 2], options[q], KSPConvergedReasons[reason]);
          PetscCheck(!pass || n == its[kind], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with %s takes %" PetscInt_FMT " iterations after %" PetscInt_FMT, methods[m][kind == 2], options[q], n, its[kind]);
          its[kind] = n;
        }
        PetscCall(KSPDestroy(&ksp));
        PetscCall(VecDestroy(&x));
        PetscCall(VecDestroy(&b));
        PetscCall(MatDestroy(&A));
      }
      for (int kind = 1; kind < 3; kind++) PetscCheck(its[kind] == its[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with %s takes %" PetscInt_FMT " iterations, with MATAIJ %" PetscInt_FMT, methods[m][kind == 2], options[q], its[kind], its[0]);
      PetscCall(Forget(options[q]));
      PetscCall(Forget("-t_sub_pc_type -t_pc_asm_type"));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whatever the device fails to do, an application is right */
static PetscErrorCode Faulty(PetscInt k)
{
  static const char *const options[] = {BJACOBI "6", ASM "6", ASM "6 -t_pc_asm_type basic", BJACOBI "1"};

  PetscFunctionBegin;
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(options); q++) {
    Mat A[2];
    PC  pc[2];
    Vec x[2], b[2];

    PetscCall(PetscOptionsInsertString(NULL, options[q]));
    for (int ref = 0; ref < 2; ref++) {
      PetscCall(Matrix(k, PETSC_FALSE, 3, (PetscBool)ref, &A[ref]));
      PetscCall(Make(A[ref], &pc[ref]));
      PetscCall(VecCreateSeq(PETSC_COMM_SELF, k * k, &x[ref]));
      PetscCall(VecDuplicate(x[ref], &b[ref]));
      PetscCall(TestFill(b[ref], 5, PETSC_FALSE));
    }
    for (int pass = 0; pass < 3; pass++) {
      PetscReal norm, all;

      for (int ref = 0; ref < 2; ref++) {
        PetscCall(PCSetUp(pc[ref]));
        PetscCall(PCSetUpOnBlocks(pc[ref]));
        PetscCall(PCApply(pc[ref], b[ref], x[ref]));
        PetscCall(MatScale(A[ref], 2.0));
      }
      PetscCall(VecNorm(x[1], NORM_INFINITY, &all));
      PetscCall(VecAXPY(x[0], -1.0, x[1]));
      PetscCall(VecNorm(x[0], NORM_INFINITY, &norm));
      PetscCheck(norm <= 1e-10 * all, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: an application differs by %g of %g", options[q], (double)norm, (double)all);
    }
    for (int ref = 0; ref < 2; ref++) {
      PetscCall(PCDestroy(&pc[ref]));
      PetscCall(MatDestroy(&A[ref]));
      PetscCall(VecDestroy(&x[ref]));
      PetscCall(VecDestroy(&b[ref]));
    }
    PetscCall(Forget(options[q]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shown(PC pc, PetscInt n, const IS row[], const IS col[], Mat sub[], void *ctx)
{
  PetscFunctionBegin;
  (void)pc;
  (void)row;
  (void)col;
  *(Mat *)ctx = sub[n - 1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program never asks for the blocks' solvers. Between two applications the matrix changes in values and pattern, and the PC is reset; or the program
   gets a block's matrix, and changes it */
static PetscErrorCode Unasked(PetscInt k, PetscBool shown)
{
  Mat A[2], block[2] = {NULL, NULL};
  PC  pc[2];

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, BJACOBI "4"));
  for (int q = 0; q < 2; q++) {
    PetscCall(Matrix(k, PETSC_FALSE, 3, (PetscBool)q, &A[q]));
    PetscCall(Make(A[q], &pc[q]));
    if (shown) PetscCall(PCSetModifySubMatrices(pc[q], Shown, &block[q]));
  }
  for (int step = 0; step < 5; step++) {
    PetscCall(TestApplications(pc[0], pc[1], step, PETSC_FALSE, shown ? "a block's matrix is shown" : "the blocks' solvers are not asked for"));
    for (int q = 0; q < 2; q++) {
      PetscInt first;

      PetscCall(MatGetOwnershipRange(A[q], &first, NULL));
      if (shown) PetscCall(MatScale(block[q], 2.0));
      else if (step == 0) PetscCall(MatScale(A[q], 2.0));
      else if (step == 2) PetscCall(PCReset(pc[q]));
      else if (step == 1) {
        PetscCall(MatSetOption(A[q], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
        PetscCall(MatSetValue(A[q], first, first + 2, 0.25, INSERT_VALUES));
        PetscCall(MatAssemblyBegin(A[q], MAT_FINAL_ASSEMBLY));
        PetscCall(MatAssemblyEnd(A[q], MAT_FINAL_ASSEMBLY));
      }
      if (step == 2) PetscCall(PCSetOperators(pc[q], A[q], A[q]));
    }
  }
  for (int q = 0; q < 2; q++) {
    PetscCall(PCDestroy(&pc[q]));
    PetscCall(MatDestroy(&A[q]));
  }
  PetscCall(Forget(BJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Seconds of an application, the least of several */
static PetscErrorCode Seconds(PC pc, Vec x, Vec y, PetscLogDouble *least)
{
  PetscFunctionBegin;
  *least = PETSC_MAX_REAL;
  for (int q = 0; q < 50; q++) {
    PetscLogDouble t[2];

    PetscCall(PetscTime(&t[0]));
    PetscCall(PCApply(pc, x, y));
    PetscCall(PetscTime(&t[1]));
    *least = PetscMin(*least, t[1] - t[0]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Few rows in many blocks, which are not examined until the program asks for their solvers. An examination takes several times as long as the
   application; here it must take at most half as long */
static PetscErrorCode Many(void)
{
  Mat            A;
  PC             pc;
  KSP           *ksp;
  Vec            x, y;
  PetscLogDouble before, after;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, BJACOBI "4096 -t_sub_pc_type ilu"));
  PetscCall(TestConvection(PETSC_COMM_SELF, 64, 0.0, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(Make(A, &pc));
  PetscCall(Seconds(pc, x, y, &before));
  PetscCall(PCBJacobiGetSubKSP(pc, NULL, NULL, &ksp));
  PetscCall(Seconds(pc, x, y, &after));
  PetscCheck(before < 0.5 * after, PETSC_COMM_SELF, PETSC_ERR_PLIB, "An application takes %g us, and %g once the program has asked for the solvers", 1e6 * before, 1e6 * after);
  PetscCall(PCDestroy(&pc));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool   many   = PETSC_FALSE;
  PetscBool   faulty = PETSC_FALSE, theirs = PETSC_FALSE;
  PetscInt    one        = -1;
  char        kernel[32] = "";
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-faulty", &faulty, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-theirs", &theirs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-case", &one, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-sub_mat_gpucsr_solve_kernel", kernel, sizeof(kernel), NULL));
  if (kernel[0]) PetscCall(PetscOptionsSetValue(NULL, "-t_sub_mat_gpucsr_solve_kernel", kernel)); /* for the tests' own prefix */
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-many", &many, NULL));
  if (many) PetscCall(Many());
  else if (faulty) PetscCall(Faulty(16));
  else {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++)
      if (one < 0 || one == (PetscInt)k) PetscCall(Run(&cases[k], 13, theirs));
    if (one < 0) {
      PetscCall(Others(14, (PetscBool)!theirs));
      PetscCall(Kinds(14, (PetscBool)!theirs));
      for (int shown = 0; shown < 2; shown++) PetscCall(Unasked(14, (PetscBool)shown));
      for (int first = 0; first < 2; first++) PetscCall(Differing(14, (PetscBool)first));
      PetscCall(Pivots(14));
      if (size == 1) PetscCall(Solve(15));
    }
  }
  PetscCall(PetscFinalize());
  return 0;
}
