/*
  Fuzz target: MatGPUCSRLoadFile() into a matrix, by one to three threads; the first byte chooses the type. MATAIJ and one thread must give the same matrix. The second byte decides whether bad lines are skipped, and the base of indices. An error must leave a matrix that can be destroyed.
*/
#include <petscgpucsr.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char name[64];

int omp_get_max_threads(void)
{
  return 1;
}

#define Must(what) \
  do { \
    if (!(what)) { \
      fprintf(stderr, "not so: %s\n", #what); \
      abort(); \
    } \
  } while (0)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc;
  (void)argv;
  Must(!PetscInitializeNoArguments());
  Must(!PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  snprintf(name, sizeof(name), "/dev/shm/fuzz-loadfile-%d", (int)getpid());
  return 0;
}

static int Load(MatType type, int threads, const uint8_t how, Mat *A, Vec *labels)
{
  MatGPUCSRFileOptions options;
  MatGPUCSRFileInfo    info;
  Vec                  queries;
  int                  failed;

  Must(!MatGPUCSRFileOptionsInitialize(&options));
  options.skip    = (PetscBool)(how & 1);
  options.base    = (how >> 1) % 3 - 1;
  options.threads = threads;
  Must(!MatCreate(PETSC_COMM_SELF, A) && !MatSetType(*A, type));
  failed = MatGPUCSRLoadFile(*A, name, &options, labels, &queries, &info) != 0;
  if (failed) {
    Must(!MatDestroy(A));
    Must(!VecDestroy(labels));
  }
  Must(!VecDestroy(&queries));
  return failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const MatType types[] = {MATSEQAIJ, MATSEQDENSE, MATSEQBAIJ, MATSEQSELL};
  Mat                  A, B;
  Vec                  x = NULL, y = NULL;
  PetscInt             m, n;
  PetscBool            same;
  FILE                *out;

  if (size < 2) return 0;
  out = fopen(name, "wb");
  Must(out != NULL);
  Must(fwrite(data + 2, 1, size - 2, out) == size - 2);
  fclose(out);
  if (Load(MATSEQAIJ, 1, data[1], &B, &y)) return 0;
  Must(!MatGetSize(B, &m, &n));
  if (m && n && (double)m * (double)n <= 1 << 20) { /* a dense matrix has to fit; MATSELL of PETSc 3.18 takes no empty matrix */
    PetscReal norm;

    Must(!Load(types[data[0] & 3], 1 + (data[0] >> 2) % 3, data[1], &A, &x));
    if (data[0] & 3) Must(!MatConvert(A, MATSEQAIJ, MAT_INPLACE_MATRIX, &A));
    Must(!MatAXPY(A, -1.0, B, UNKNOWN_NONZERO_PATTERN));
    Must(!MatNorm(A, NORM_INFINITY, &norm) && norm == 0);
    Must(!x == !y);
    if (x) Must(!VecEqual(x, y, &same) && same);
    Must(!MatDestroy(&A) && !VecDestroy(&x));
  }
  Must(!MatDestroy(&B) && !VecDestroy(&y));
  return 0;
}
