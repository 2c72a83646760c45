//TEST name="type" args="-mat_type {}" loop="gpucsr aijgpucsr seqaijgpucsr mpiaijgpucsr"
//TEST name="types" nsize=2 args="-mat_type {}" loop="gpucsr aijgpucsr mpiaijgpucsr"
//TEST name="hard" args="-hard -mat_seqaij_type seqaijgpucsr -mat_gpucsr_format csr"
//TEST name="hards" nsize=3 args="-hard -mat_seqaij_type seqaijgpucsr -mat_gpucsr_format csr"
//TEST name="plain" nsize=2 args="-hard -plain -options_left no"

/*
  A loaded library has registered its types under all of their names. A program that hard-codes MATAIJ gets them by
  -mat_seqaij_type seqaijgpucsr, which reaches both blocks of every MATMPIAIJ. Without an option a program gets MATAIJ as before.

    build/tests/t403-registration -dll_append build/lib/libpetscgpucsr.so -mat_type gpucsr
    build/tests/t403-registration -dll_append build/lib/libpetscgpucsr.so -hard -mat_seqaij_type seqaijgpucsr
*/
#include "testing.h"

static PetscErrorCode CheckType(PetscObject obj, const char type[], const char what[])
{
  const char *name;
  PetscBool   same;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetType(obj, &name));
  PetscCall(PetscStrcmp(name, type, &same));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is of type %s, should be %s", what, name, type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The type that MatCreateVecs() must give: on a GPU PETSc's vectors of the device or else the library's, and host vectors where products run on the host */
static PetscErrorCode VectorType(PetscMPIInt size, const char **type)
{
  char      word[32] = "";
  PetscBool cuda;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_backend", word, sizeof(word), NULL));
  PetscCall(PetscStrcmp(word, "cuda", &cuda));
  if (!cuda) *type = size > 1 ? VECMPI : VECSEQ;
  else if (PetscDefined(HAVE_CUDA)) *type = size > 1 ? VECMPICUDA : VECSEQCUDA;
  else *type = size > 1 ? VECMPI : VECSEQ; /* on the device under the standard names, where no option asks for gpu */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill(Mat A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(A, r, r, 2.0 + r, INSERT_VALUES));
    PetscCall(MatSetValue(A, r, (r + 1) % 60, -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A, R, on, off;
  Vec         x;
  MPI_Comm    comm;
  PetscMPIInt size;
  PetscBool   hard = PETSC_FALSE, plain = PETSC_FALSE, mpi, is;
  char        type[64] = "gpucsr";
  const char *vectors  = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  comm = PETSC_COMM_WORLD;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-hard", &hard, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-plain", &plain, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(PetscStrncmp(type, "mpi", 3, &mpi));
  if (size > 1) mpi = PETSC_TRUE;

  if (hard) { /* never a word of our types in the program */
    PetscCall(MatCreateAIJ(comm, PETSC_DECIDE, PETSC_DECIDE, 60, 60, 2, NULL, 2, NULL, &A));
    PetscCall(Fill(A));
    if (size > 1) {
      PetscCall(CheckType((PetscObject)A, MATMPIAIJ, "The matrix"));
      PetscCall(MatMPIAIJGetSeqAIJ(A, &on, &off, NULL));
      PetscCall(CheckType((PetscObject)on, plain ? MATSEQAIJ : "seqaijgpucsr", "The diagonal block"));
      PetscCall(CheckType((PetscObject)off, plain ? MATSEQAIJ : "seqaijgpucsr", "The off-diagonal block"));
    } else PetscCall(CheckType((PetscObject)A, plain ? MATSEQAIJ : "seqaijgpucsr", "The matrix"));
    PetscCall(TestMatCreate(comm, 60, 60, PETSC_TRUE, &R));
    PetscCall(MatSetUp(R));
    PetscCall(Fill(R));
  } else {
    PetscCall(TestConvection(comm, 8, 0.5, PETSC_FALSE, &A));
    PetscCall(TestConvection(comm, 8, 0.5, PETSC_TRUE, &R));
    PetscCall(CheckType((PetscObject)A, mpi ? "mpiaijgpucsr" : "seqaijgpucsr", "The matrix"));
    PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, mpi ? MATMPIAIJ : MATSEQAIJ, &is)); /* ILU, GAMG and other parts of PETSc look at the name */
    PetscCheck(is, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The matrix is not taken for an aij matrix");
    if (mpi) {
      PetscCall(MatMPIAIJGetSeqAIJ(A, &on, &off, NULL));
      PetscCall(CheckType((PetscObject)on, "seqaijgpucsr", "The diagonal block"));
      PetscCall(CheckType((PetscObject)off, "seqaijgpucsr", "The off-diagonal block"));
    }
    PetscCall(MatCreateVecs(A, &x, NULL));
    PetscCall(VectorType(size, &vectors));
    PetscCall(CheckType((PetscObject)x, vectors, "The vector of MatCreateVecs()"));
    PetscCall(VecDestroy(&x));
  }
  PetscCall(TestProducts(A, R, PETSC_FALSE, hard ? "hard-coded aij" : type));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}
