/*
  How fast files are read: MatGPUCSRLoadFile(), MatLoad(), and the page cache; one line of JSON.

    build/bench/read -generate libsvm|ones|market|pattern -f FILE [-megabytes 100]     write a file, the same each time
    build/bench/read -f FILE [-repeat 3] [-with gpucsr|matload|cache] [-gpucsr_file_threads n]

  read.py runs it against the readers of SciPy and scikit-learn.
*/
#include <petscgpucsr.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if PETSC_VERSION_LT(3, 19, 0)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

static double Random(uint64_t *x)
{
  *x = *x * 6364136223846793005u + 1442695040888963407u;
  return (double)(*x >> 11) / 9007199254740992.0;
}

/*
  libsvm: like a text collection, 75 words in a row out of some 20000, popular words more often, values of 5 digits. ones: the same, all values 1.
  market: 27 entries in a row about the diagonal, values of 16 digits, as printed doubles; pattern: the same without values.
*/
static PetscErrorCode Generate(const char kind[], const char file[], PetscReal megabytes)
{
  FILE     *out = fopen(file, "w");
  const int svm = kind[0] == 'l' || kind[0] == 'o', plain = kind[0] == 'o' || kind[0] == 'p';
  uint64_t  x     = 42;
  PetscInt  rows  = (PetscInt)(megabytes * 1e6 / (svm ? plain ? 510 : 890 : plain ? 380 : 900));
  int       index = 0;

  PetscFunctionBeginUser;
  PetscCheck(out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be written", file);
  if (!svm) fprintf(out, "%%%%MatrixMarket matrix coordinate %s general\n%d %d %lld\n", plain ? "pattern" : "real", (int)rows, (int)rows, 27LL * (long long)rows);
  for (PetscInt i = 0; i < rows; i++) {
    if (svm) {
      fprintf(out, "%s", Random(&x) < 0.5 ? "-1" : "+1");
      index = 0;
      for (int k = 0; k < 75 && index < 49000; k++) {
        index += 1 + (int)(index / 8. * Random(&x) + 8 * Random(&x));
        if (plain) fprintf(out, " %d:1", index);
        else fprintf(out, " %d:%.5g", index, 0.01 + 0.5 * Random(&x));
      }
      fprintf(out, "\n");
    } else
      for (int k = 0; k < 27; k++) {
        const PetscInt j = (i + 1 + (PetscInt)(k - 13) * (1 + rows / 40) + 14 * rows) % rows;

        if (plain) fprintf(out, "%d %d\n", (int)(j + 1), (int)(i + 1));
        else fprintf(out, "%d %d %.16g\n", (int)(j + 1), (int)(i + 1), Random(&x) - 0.5);
      }
  }
  PetscCheck(!fclose(out), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s cannot be written", file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The file from the page cache into new memory, as a matrix has; and into a buffer that stays in the processor's cache */
static PetscErrorCode Cache(const char file[], PetscBool fresh, double *seconds)
{
  struct stat  st;
  const size_t piece = fresh ? (size_t)1 << 30 : (size_t)1 << 18;
  int          fd    = open(file, O_RDONLY);
  char        *to;
  ssize_t      n;
  size_t       at = 0;

  PetscFunctionBeginUser;
  PetscCheck(fd >= 0 && !fstat(fd, &st), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be opened", file);
  *seconds = MPI_Wtime();
  to       = (char *)malloc(fresh ? (size_t)st.st_size + 1 : piece);
  while ((n = read(fd, to + at, piece)) > 0) at += fresh ? (size_t)n : 0;
  *seconds = MPI_Wtime() - *seconds;
  free(to);
  close(fd);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char              file[PETSC_MAX_PATH_LEN] = "", kind[32] = "", with[32] = "gpucsr";
  PetscReal         megabytes = 100;
  PetscInt          repeat = 3, m = 0, n = 0;
  PetscBool         set, own, matload;
  double            best = 1e30, parts[3] = {0, 0, 0};
  PetscMPIInt       size;
  MatGPUCSRFileInfo info;
  MatInfo           matinfo;
  struct stat       st;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-f", file, sizeof(file), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-with", with, sizeof(with), NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-megabytes", &megabytes, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeat", &repeat, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-generate", kind, sizeof(kind), &set));
  if (set) {
    PetscCall(Generate(kind, file, megabytes));
    PetscCall(PetscFinalize());
    return 0;
  }
  PetscCheck(!stat(file, &st), PETSC_COMM_WORLD, PETSC_ERR_FILE_OPEN, "-f %s: no such file", file);
  PetscCall(PetscStrcmp(with, "gpucsr", &own));
  PetscCall(PetscStrcmp(with, "matload", &matload));
  matinfo.nz_used = 0;
  info.text       = st.st_size;
  for (PetscInt k = 0; k < repeat; k++) {
    Mat    A;
    Vec    y = NULL;
    double t;

    if (!own && !matload) {
      PetscBool hot;

      PetscCall(PetscStrcmp(with, "hotcache", &hot));
      PetscCall(Cache(file, (PetscBool)!hot, &t));
      best = PetscMin(best, t);
      continue;
    }
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    t = MPI_Wtime();
    PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
    PetscCall(MatSetFromOptions(A));
    if (own) PetscCall(MatGPUCSRLoadFile(A, file, NULL, &y, NULL, &info));
    else {
      PetscViewer viewer;

      PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
      PetscCall(MatLoad(A, viewer));
      PetscCall(PetscViewerDestroy(&viewer));
    }
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    t = MPI_Wtime() - t;
    if (t < best) {
      best = t;
      if (own) {
        parts[0] = info.read_time;
        parts[1] = info.parse_time;
        parts[2] = info.assemble_time;
      }
    }
    PetscCall(MatGetSize(A, &m, &n));
    PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &matinfo));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "{\"with\": \"%s\", \"ranks\": %d, \"seconds\": %.4f, \"bytes\": %lld, \"text\": %lld, \"rows\": %lld, \"columns\": %lld, \"entries\": %.0f, \"open\": %.4f, \"parse\": %.4f, \"assemble\": %.4f}\n", with, (int)size, best,
                        (long long)st.st_size, (long long)info.text, (long long)m, (long long)n, matinfo.nz_used, parts[0], parts[1], parts[2]));
  PetscCall(PetscFinalize());
  return 0;
}
