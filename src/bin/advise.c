/*
  gpucsr-advise: predicts where products of a matrix in a file take least time, without a solve.

  A PETSc program that is linked with the library: MatGPUCSRLoadFile() reads the file, and MatGPUCSRAdvise() gives the advice.
*/
#include "program.h"

static const char usage[] = "Usage: gpucsr-advise [OPTIONS] FILE\n"
                            "\n"
                            "Predict what products of the matrix in FILE, and iterations of conjugate gradients with it, take on this CPU, on a GPU with vectors here and there, and on several\n"
                            "GPUs, and print the options. FILE is PETSc binary, LIBSVM or svmlight, Matrix Market, or Harwell-Boeing or Rutherford-Boeing, told by its content, and may be\n"
                            "compressed.\n"
                            "\n"
                            "  -mat_gpucsr_profile FILE    the times of another GPU, as `make tune` writes them; an H200's are built in\n"
                            "  -mat_gpucsr_machine FILE    constants tuned to another GPU, the same\n"
                            "  -mat_gpucsr_precision WORD  double, single or mixed\n"
                            "  -mat_gpucsr_format WORD     only one format, and so on: all options of the library\n"
                            "  -gpucsr_file_format WORD    petsc, libsvm, market or boeing, if the content does not tell; and the other options of files\n"
                            "  -version                    version of gpucsr and of its PETSc\n"
                            "\n"
                            "Exit status: 0; 1 if the file is wrong or no model covers the matrix; 2 if the command is wrong.\n";

static PetscErrorCode Advise(const char input[])
{
  Mat         A;
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetType(A, MATSEQAIJ));
  PetscCall(MatGPUCSRLoadFile(A, input, NULL, NULL, NULL, NULL));
  PetscCall(MatConvert(A, MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PetscViewerASCIIGetStdout(PETSC_COMM_SELF, &viewer));
  PetscCall(MatGPUCSRAdvise(A, viewer));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Wrong(const char *what, const char *word)
{
  fprintf(stderr, "gpucsr-advise: %s%s\n%s", what, word, usage);
  return 2;
}

int main(int argc, char **argv)
{
  const char    *input = NULL;
  PetscErrorCode ierr;

  for (int k = 1; k < argc; k++) {
    if (!strcmp(argv[k], "-help") || !strcmp(argv[k], "--help") || !strcmp(argv[k], "-h")) return printf("%s", usage) < 0;
    if (!strcmp(argv[k], "-version") || !strcmp(argv[k], "--version")) return printf("gpucsr-advise %s, for PETSc %d.%d\n", PETSCGPUCSR_VERSION, PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR) < 0;
    if (argv[k][0] == '-' && argv[k][1]) { /* an option and, if one follows, its value */
      if (strncmp(argv[k], "-mat_gpucsr_", 12) && strncmp(argv[k], "-gpucsr_", 8)) return Wrong("unknown option ", argv[k]);
      if (k + 1 < argc && argv[k + 1][0] != '-') k++;
    } else if (!input) input = argv[k];
    else return Wrong("one file, not also ", argv[k]);
  }
  if (!input) return Wrong("no file", "");
  if (PetscInitialize(&argc, &argv, NULL, NULL)) return 1;
  (void)PetscPushErrorHandler(Remember, NULL);
  ierr = MatGPUCSRInitializePackage();
  if (!ierr) ierr = Advise(input);
  return End("gpucsr-advise", ierr);
}
