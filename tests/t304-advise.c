/*
  Predicted times of products and iterations for each place (CPU, GPU with vectors on host and device, several GPUs). The profile has one line, whose times can be added up by hand. More work for one place makes
  that place slower and no other.
  A case without a model is an error that says so.

  //TEST
*/
static char help[] = "Tests what is predicted of products by where they run.\n";

#include "../src/mat/impls/gpucsr/report/report.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const GPUCSRRequest anything = {.format = "auto", .kernel = "auto"};
static const double        host     = 77e-6;
static char                file[PETSC_MAX_PATH_LEN];

static PetscErrorCode WriteFile(const char text[])
{
  FILE *f = fopen(file, "w");

  PetscFunctionBegin;
  PetscCheck(f && fputs(text, f) >= 0 && !fclose(f), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s", file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRFeatures Features(int m, int n, double mean)
{
  GPUCSRFeatures f = {.m = m, .n = n, .nnz = (int64_t)(m * mean), .max = (int)mean, .mean = mean, .sell_stored = (int64_t)(m * mean)};
  int            b = 1;

  while (1 << b <= (int)mean) b++;
  f.rows[b]    = m;
  f.entries[b] = f.nnz;
  return f;
}

static PetscErrorCode Near(const char what[], double is, double should)
{
  PetscFunctionBegin;
  PetscCheck(fabs(is - should) <= 1e-9 * fabs(should), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %g, should be %g", what, is, should);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fails(const GPUCSRFeatures *f, const GPUCSRRequest *q, const char why[])
{
  MatGPUCSRAdvice t = {0};
  GPUCSRAttempt   attempt;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = MatGPUCSRForetell_Private(NULL, f, GPUCSR_PRECISION_DOUBLE, q, host, &t);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCheck(ierr == PETSC_ERR_SUP && strstr(attempt.message, why), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Error %d \"%s\", should say \"%s\"", (int)ierr, ierr ? attempt.message : "", why);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A launch of 50 us, and 1 us a megabyte that the cache does not keep */
static const char profile[] = "gpucsr-profile 6\nmachine Test\ncost csr csr_scalar 1 0 inf 1  50 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  1 0\n";

static PetscErrorCode Places(void)
{
  const GPUCSRFeatures small = Features(1000, 1000, 10), large = Features(4000000, 4000000, 20), wide = Features(1000, 3000, 10);
  MatGPUCSRAdvice      s = {0}, l = {0}, w = {0};

  PetscFunctionBegin;
  PetscCall(MatGPUCSRForetell_Private(NULL, &small, GPUCSR_PRECISION_DOUBLE, &anything, host, &s));
  PetscCall(Near("a small product by the kernel", s.kernel_product, 50e-6));
  PetscCall(Near("a small product on the device", s.product[MAT_GPUCSR_PLACE_DEVICE_VECTORS], 50e-6));
  PetscCall(Near("a small product on the CPU", s.product[MAT_GPUCSR_PLACE_CPU], 77e-6));
  PetscCall(Near("bytes on the CPU", s.bytes[MAT_GPUCSR_PLACE_CPU], 12.0 * 10000 + 4 * 1001 + 8 * 2000));
  PetscCall(Near("bytes on the device", s.bytes[MAT_GPUCSR_PLACE_DEVICE_VECTORS], 12.0 * 10000 + 4 * 1001 + 8 * 2000));
  PetscCheck(s.product[MAT_GPUCSR_PLACE_HOST_VECTORS] > 50e-6 + 16000 / 60e9, PETSC_COMM_SELF, PETSC_ERR_PLIB, "With host vectors %g s, which is faster than the bus", s.product[MAT_GPUCSR_PLACE_HOST_VECTORS]);
  /* of a small matrix by one cluster, which launches nothing */
  PetscCheck(s.iteration[MAT_GPUCSR_PLACE_SOLVER] < s.iteration[MAT_GPUCSR_PLACE_DEVICE_VECTORS] && s.iteration[MAT_GPUCSR_PLACE_SOLVER] > 3e-6 && s.iteration[MAT_GPUCSR_PLACE_SOLVER] < 10e-6, PETSC_COMM_SELF, PETSC_ERR_PLIB, "An iteration of the solver is predicted to take %g s, of the host's loop %g", s.iteration[MAT_GPUCSR_PLACE_SOLVER], s.iteration[MAT_GPUCSR_PLACE_DEVICE_VECTORS]);
  PetscCall(Near("the solver on one GPU", s.iterations[0], s.iteration[MAT_GPUCSR_PLACE_SOLVER]));
  PetscCheck(s.products[1] > s.products[0] && s.iterations[1] > s.iterations[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "A launch is not faster on two GPUs: %g and %g s", s.products[0], s.products[1]);

  PetscCall(MatGPUCSRForetell_Private(NULL, &large, GPUCSR_PRECISION_DOUBLE, &anything, host, &l));
  PetscCall(Near("a large product on the device", l.product[MAT_GPUCSR_PLACE_DEVICE_VECTORS], 50e-6 + 1e-12 * (12.0 * 80000000 + 4 * 4000001 + 16 * 4000000)));
  PetscCheck(l.products[2] < 0.4 * l.products[0] && l.iterations[2] < 0.4 * l.iterations[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "On four GPUs a product of 80 million entries takes %g of one's", l.products[2] / l.products[0]);
  PetscCheck(l.product[MAT_GPUCSR_PLACE_HOST_VECTORS] > 64e6 / 110e9, PETSC_COMM_SELF, PETSC_ERR_PLIB, "With host vectors %g s, which is faster than the bus", l.product[MAT_GPUCSR_PLACE_HOST_VECTORS]);
  PetscCheck(l.iteration[MAT_GPUCSR_PLACE_SOLVER] > l.product[MAT_GPUCSR_PLACE_DEVICE_VECTORS], PETSC_COMM_SELF, PETSC_ERR_PLIB, "An iteration is faster than its product");

  PetscCall(MatGPUCSRForetell_Private(NULL, &wide, GPUCSR_PRECISION_DOUBLE, &anything, host, &w));
  for (int k = 0; k < 4; k++) PetscCheck(w.iteration[k] == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "There is no iteration with a matrix that is not square");
  PetscCheck(w.product[MAT_GPUCSR_PLACE_HOST_VECTORS] > s.product[MAT_GPUCSR_PLACE_HOST_VECTORS], PETSC_COMM_SELF, PETSC_ERR_PLIB, "A longer x is no slower to send");
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const GPUCSRFeatures small = Features(1000, 1000, 10);
  GPUCSRRequest        named = anything;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(PetscSNPrintf(file, sizeof(file), "t304.%d", (int)getpid()));
  PetscCall(WriteFile(profile));
  PetscCall(GPUCSRProfileLoad(file));
  PetscCall(Places());
  PetscCall(Fails(&(GPUCSRFeatures){.m = 3, .n = 3}, &anything, "no model covers one without entries"));
  PetscCall(PetscStrncpy(named.format, "jad", sizeof(named.format)));
  PetscCall(Fails(&small, &named, "The profile has no line for format jad with kernel jad_row"));
  (void)remove(file);
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
