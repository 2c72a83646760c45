/*
  Wisdom: the results of measuring are written, read back and used. The newest line counts, for this precision and this machine only. Lines of
  other machines or of removed kernels are skipped. A damaged file is not used and not changed. Each case has one message.
  On a GPU the whole sequence is tested: measure, store, and use in the next plan without measuring.

  //TEST name="file" args="-backend host"
  //TEST name="cuda" args="-backend cuda" gpu=1
*/
static char help[] = "Tests wisdom.\n";

#include "../src/mat/impls/gpucsr/blackbox/plan/plan.h"
#include "zoo.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char file[PETSC_MAX_PATH_LEN], said[8192];

/* `said` holds the output to stderr of the calls in between */
static FILE *Listen(void)
{
  FILE *own = PETSC_STDERR;

  PETSC_STDERR = tmpfile();
  return own;
}

static void Heard(FILE *own)
{
  size_t n;

  rewind(PETSC_STDERR);
  n       = fread(said, 1, sizeof(said) - 1, PETSC_STDERR);
  said[n] = 0;
  (void)fclose(PETSC_STDERR);
  PETSC_STDERR = own;
}

/* How often text was said */
static int Count(const char text[])
{
  int n = 0;

  for (const char *c = said; (c = strstr(c, text)); c++) n++;
  return n;
}

static PetscErrorCode Said(const char when[], const char text[], int times)
{
  PetscFunctionBegin;
  PetscCheck(Count("warning") == times, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %d warnings, should be %d: %s", when, Count("warning"), times, said);
  PetscCheck(Count(text) == times, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: should be said %d times: \"%s\", was: %s", when, times, text, said);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode WriteFile(const char text[])
{
  FILE *f = fopen(file, "w");

  PetscFunctionBegin;
  PetscCheck(f && fputs(text, f) >= 0 && !fclose(f), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s", file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReadFile(char text[], size_t len)
{
  FILE *f = fopen(file, "r");

  PetscFunctionBegin;
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s was not written", file);
  text[fread(text, 1, len - 1, f)] = 0;
  (void)fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What wisdom says of a matrix: the name of the kernel, "" for nothing */
static PetscErrorCode Find(GPUCSRDevice d, const GPUCSRFeatures *f, GPUCSRPrecision p, char kernel[])
{
  const GPUCSRRequest q = {.format = "auto", .kernel = "auto"};
  GPUCSRCandidate    *c;
  const char         *why;
  int                 n;

  PetscFunctionBegin;
  PetscCall(GPUCSRCandidatesGet(f, p, d, &q, PETSC_TRUE, &c, &n));
  PetscCall(GPUCSRWisdomFind(d, f, p, c, n, &why));
  PetscCall(PetscStrncpy(kernel, why ? c[0].kernel->name : "", GPUCSR_WORD));
  PetscCheck(!why || (strstr(why, "-mat_gpucsr_wisdom") && c[0].measured > 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Taken without its time or a reason: %s", why);
  PetscCall(PetscFree(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Expect(GPUCSRDevice d, const char when[], const GPUCSRFeatures *f, GPUCSRPrecision p, const char kernel[])
{
  char is[GPUCSR_WORD];

  PetscFunctionBegin;
  PetscCall(Find(d, f, p, is));
  PetscCheck(!strcmp(is, kernel), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: wisdom takes \"%s\", should take \"%s\"", when, is, kernel);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As if measuring had found this kernel on CSR */
static PetscErrorCode Add(GPUCSRDevice d, const GPUCSRFeatures *f, GPUCSRPrecision p, const char kernel[], double seconds)
{
  GPUCSRCandidate c = {.format = GPUCSRFormatCSR(), .measured = seconds};

  PetscFunctionBegin;
  c.kernel = GPUCSRKernelFind(kernel);
  PetscCall(GPUCSRWisdomAdd(d, f, p, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestFile(GPUCSRDevice d, const GPUCSRFeatures *f)
{
  /* each is damaged in one way */
  static const char *const damaged[] = {"\n", "gpucsr-wisdom 2\n", "gpucsr-wisdom 1\nzz double csr csr_scalar 3.5 GPU\n", "gpucsr-wisdom 1\n0123456789abcdef double csr csr_sc", "gpucsr-wisdom 1\n0123456789abcdef double csr csr_scalar 3.5 NVID", "gpucsr-wisdom 1\n0123456789abcdef double csr csr_scalar nan GPU\n", "gpucsr-wisdom 1\n0123456789abcdef triple csr csr_scalar 3.5 GPU\n", "gpucsr-wisdom 1\n0123456789abcdef double csr csr_scalar -3.5 GPU\n"};
  GPUCSRFeatures           other     = *f;
  char                     text[4096], again[4096], signature[32] = "";
  FILE                    *own;

  PetscFunctionBegin;
  /* a file that is not there: nothing is known, and nothing written where nothing was measured, which is said */
  (void)remove(file);
  own = Listen();
  PetscCall(GPUCSRWisdomLoad(file));
  PetscCall(Expect(d, "no file", f, GPUCSR_PRECISION_DOUBLE, ""));
  PetscCall(GPUCSRWisdomFinalize());
  Heard(own);
  PetscCall(Said("no file", "is not written: nothing was measured", 1));
  PetscCheck(access(file, F_OK), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s was written with nothing to say", file);

  /* written and read back: this matrix, this precision, the newest line */
  PetscCall(GPUCSRWisdomLoad(file));
  PetscCall(Add(d, f, GPUCSR_PRECISION_DOUBLE, "csr_scalar", 3e-6));
  PetscCall(Add(d, f, GPUCSR_PRECISION_DOUBLE, "csr_vector4", 2e-6));
  PetscCall(Add(d, f, GPUCSR_PRECISION_SINGLE, "csr_block", 2e-6));
  PetscCall(Add(d, f, GPUCSR_PRECISION_MIXED, "csr_block", 0)); /* not measured */
  PetscCall(Expect(d, "the same run", f, GPUCSR_PRECISION_DOUBLE, "csr_vector4"));
  PetscCall(GPUCSRWisdomFinalize());
  PetscCall(ReadFile(text, sizeof(text)));
  PetscCall(GPUCSRWisdomLoad(file));
  PetscCall(Expect(d, "read back", f, GPUCSR_PRECISION_DOUBLE, "csr_vector4"));
  PetscCall(Expect(d, "read back", f, GPUCSR_PRECISION_SINGLE, "csr_block"));
  PetscCall(Expect(d, "not measured", f, GPUCSR_PRECISION_MIXED, ""));
  other.nnz++;
  PetscCall(Expect(d, "another matrix", &other, GPUCSR_PRECISION_DOUBLE, ""));
  other = *f;
  other.rows[1]++;
  other.rows[2]--;
  PetscCall(Expect(d, "other row lengths", &other, GPUCSR_PRECISION_DOUBLE, ""));
  PetscCall(GPUCSRWisdomFinalize());
  PetscCall(ReadFile(again, sizeof(again)));
  PetscCheck(!strcmp(text, again), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A run that measured nothing wrote \"%s\" over \"%s\"", again, text);
  PetscCheck(sscanf(text, "gpucsr-wisdom 1 %16s", signature) == 1 && strstr(text, d->props.name), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The file is not as its format says: %s", text);

  /* another machine */
  PetscCall(PetscSNPrintf(text, sizeof(text), "gpucsr-wisdom 1\n%s double csr csr_scalar 3.5 Some other GPU\n", signature));
  PetscCall(WriteFile(text));
  own = Listen();
  PetscCall(GPUCSRWisdomLoad(file));
  PetscCall(Expect(d, "another machine", f, GPUCSR_PRECISION_DOUBLE, ""));
  PetscCall(Expect(d, "another machine", f, GPUCSR_PRECISION_DOUBLE, ""));
  Heard(own);
  PetscCall(Said("another machine", "knows this matrix on Some other GPU, which does not count on", 1));
  PetscCall(Add(d, f, GPUCSR_PRECISION_DOUBLE, "csr_vector2", 4e-6)); /* both are kept */
  PetscCall(GPUCSRWisdomFinalize());
  PetscCall(ReadFile(again, sizeof(again)));
  PetscCheck(strstr(again, "Some other GPU") && strstr(again, "csr_vector2"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Another machine's line should stay: %s", again);
  PetscCall(GPUCSRWisdomLoad(file));
  PetscCall(Expect(d, "beside another machine's", f, GPUCSR_PRECISION_DOUBLE, "csr_vector2"));
  PetscCall(GPUCSRWisdomFinalize());

  /* stale lines: a removed kernel, then a format that cannot take the matrix; an older line is usable */
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscSNPrintf(text, sizeof(text), "gpucsr-wisdom 1\n%s double csr csr_scalar 3.5 %s\n%s double %s 3.5 %s\n", signature, d->props.name, signature, k ? "bcsr2x2 csr_scalar" : "csr csr_of_old", d->props.name));
    PetscCall(WriteFile(text));
    own = Listen();
    PetscCall(GPUCSRWisdomLoad(file));
    PetscCall(Expect(d, "stale", f, GPUCSR_PRECISION_DOUBLE, "csr_scalar"));
    PetscCall(Expect(d, "stale", f, GPUCSR_PRECISION_DOUBLE, "csr_scalar"));
    PetscCall(GPUCSRWisdomFinalize());
    Heard(own);
    PetscCall(Said("stale", k ? "is stale: kernel csr_scalar on format bcsr2x2" : "is stale: kernel csr_of_old on format csr", 1));
  }

  /* damaged: not used, and left as it is */
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(damaged); k++) {
    PetscCall(WriteFile(damaged[k]));
    own = Listen();
    PetscCall(GPUCSRWisdomLoad(file));
    PetscCall(Add(d, f, GPUCSR_PRECISION_DOUBLE, "csr_scalar", 3e-6));
    PetscCall(GPUCSRWisdomFinalize());
    Heard(own);
    PetscCall(Said(damaged[k], "is not used and not written: ", 1));
    PetscCall(ReadFile(again, sizeof(again)));
    PetscCheck(!strcmp(again, damaged[k]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A damaged file was written to: \"%s\" became \"%s\"", damaged[k], again);
  }
  (void)remove(file);

  /* where nothing can be written */
  own = Listen();
  PetscCall(GPUCSRWisdomLoad("/proc/no such folder/wisdom"));
  PetscCall(Add(d, f, GPUCSR_PRECISION_DOUBLE, "csr_scalar", 3e-6));
  PetscCall(GPUCSRWisdomFinalize());
  Heard(own);
  PetscCall(Said("no folder", "cannot be written", 1));
  own = Listen(); /* said at once, whether or not there will be something to write */
  PetscCall(GPUCSRWisdomLoad("/proc/no such folder/wisdom"));
  PetscCall(GPUCSRWisdomFinalize());
  Heard(own);
  PetscCall(Said("no folder, nothing measured", "cannot be written", 1));
  own = Listen();
  PetscCall(GPUCSRWisdomLoad("/tmp"));
  PetscCall(GPUCSRWisdomFinalize());
  Heard(own);
  PetscCall(Said("a folder", "it cannot be read", 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A plan built with this request, its measurements and the reason of its choice */
static PetscErrorCode Plan(GPUCSRDevice d, const GPUCSRSource *s, const GPUCSRRequest *q, PetscBool trans, int *measured, GPUCSRPlan *P)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(P, sizeof(*P)));
  if (trans) PetscCall(GPUCSRPlanBuildTranspose(d, s, NULL, GPUCSR_PRECISION_DOUBLE, q, P));
  else PetscCall(GPUCSRPlanBuild(d, s, GPUCSR_PRECISION_DOUBLE, q, P));
  *measured = 0;
  for (int k = 0; k < P->ncandidates; k++) *measured += P->candidate[k].measured > 0;
  PetscCheck(!P->ncandidates || P->candidate[0].kernel == P->choice.kernel, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The first candidate, %s, is not the one taken, %s", P->candidate[0].kernel->name, P->choice.kernel->name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Plans take the remembered choice; a GPU measures first, A and its transpose separately */
static PetscErrorCode TestPlan(GPUCSRDevice d, const GPUCSRSource *s, const GPUCSRFeatures *f)
{
  GPUCSRRequest       q = {.format = "auto", .kernel = "auto", .select = GPUCSR_SELECT_MEASURE};
  GPUCSRPlan          P;
  const GPUCSRKernel *taken[2];
  int                 n;

  PetscFunctionBegin;
  (void)remove(file);
  PetscCall(GPUCSRWisdomLoad(file));
  for (int trans = 0; trans < 2; trans++) {
    if (!d->ops->separate) PetscCall(Add(d, f, GPUCSR_PRECISION_DOUBLE, "csr_block", 1e-6)); /* nothing is measured there */
    PetscCall(Plan(d, s, &q, (PetscBool)trans, &n, &P));
    taken[trans] = P.choice.kernel;
    if (d->ops->separate) {
      double best = P.candidate[0].measured;

      PetscCheck(n >= 2 && n <= 6 && strstr(P.choice.why, "measured"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d candidates measured, because %s", n, P.choice.why);
      for (int k = 0; k < P.ncandidates; k++) PetscCheck(!(P.candidate[k].measured > 0) || P.candidate[k].measured >= 0.7 * best, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s was faster than what was taken", P.candidate[k].kernel->name);
      PetscCheck(P.costs.measure > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Measuring took no time");
    } else PetscCheck(!strcmp(taken[trans]->name, "csr_block") || trans, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Takes %s because %s", taken[trans]->name, P.choice.why);
    PetscCall(GPUCSRPlanDestroy(&P));
  }
  PetscCall(GPUCSRWisdomFinalize());
  PetscCall(GPUCSRWisdomLoad(file));
  for (int trans = 0; trans < (d->ops->separate ? 2 : 1); trans++) {
    PetscCall(Plan(d, s, &q, (PetscBool)trans, &n, &P));
    PetscCheck(n == 1 && P.choice.kernel == taken[trans] && strstr(P.choice.why, "-mat_gpucsr_wisdom"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The next run measured %d candidates and took %s, not %s, because %s", n, P.choice.kernel->name, taken[trans]->name,
               P.choice.why);
    PetscCall(GPUCSRPlanDestroy(&P));
    PetscCall(PetscStrncpy(q.kernel, "csr_scalar", sizeof(q.kernel))); /* a request by name counts more */
    PetscCall(Plan(d, s, &q, (PetscBool)trans, &n, &P));
    PetscCheck(!strcmp(P.choice.kernel->name, "csr_scalar"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "csr_scalar was asked for, %s taken", P.choice.kernel->name);
    PetscCall(GPUCSRPlanDestroy(&P));
    PetscCall(PetscStrncpy(q.kernel, "auto", sizeof(q.kernel)));
  }
  PetscCall(GPUCSRWisdomFinalize());
  (void)remove(file);

  q.budget = 4; /* not enough for two candidates: predicted instead */
  PetscCall(Plan(d, s, &q, PETSC_FALSE, &n, &P));
  PetscCheck(n == 0 && strstr(P.choice.why, "predicted"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d measured with a budget of 4 products, because %s", n, P.choice.why);
  PetscCall(GPUCSRPlanDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char           backend[32] = "host", why[512], folder[PETSC_MAX_PATH_LEN];
  GPUCSRDevice   d;
  GPUCSRFeatures f;
  GPUCSRSource   s;
  Zoo            z;
  int32_t       *i;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(PetscGetTmp(PETSC_COMM_SELF, folder, sizeof(folder)));
  PetscCall(PetscSNPrintf(file, sizeof(file), "%s/t301-%d", folder, (int)getpid()));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &d, why, sizeof(why)));
  PetscCheck(d, PETSC_COMM_SELF, PETSC_ERR_SUP, "-backend %s: %s", backend, why);
  PetscCall(ZooCreate(ZOO_RANDOM, PETSC_FALSE, &z));
  PetscCall(PetscMalloc1(z.m + 1, &i));
  for (PetscInt r = 0; r <= z.m; r++) i[r] = (int32_t)z.i[r];
  s = (GPUCSRSource){(int)z.m, (int)z.n, i[z.m], i, z.j, z.a, NULL};
  PetscCall(GPUCSRFeaturesOfRows(s.m, s.n, i, 1, &f));
  PetscCall(TestFile(d, &f));
  PetscCall(TestPlan(d, &s, &f));
  PetscCall(PetscFree(i));
  PetscCall(ZooDestroy(&z));
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
