/*
  Profile files and the ways of choosing, with a profile of a few lines whose times can be added up by hand: the choices of estimate and tree with their reasons, the effect of the expected number of products, and of the sample. A missing or damaged file is an error
  that names the place, and the previous profile stays in use.

  //TEST
  //TEST name="missing" args="-options -mat_gpucsr_profile /no/such/profile" fails="the file cannot be read"
  //TEST name="folder" args="-options -mat_gpucsr_profile /" fails="its first line is not"
  //TEST name="sample" args="-options -mat_gpucsr_sample 1.5" fails="must be a fraction from 0 to 1"
*/
static char help[] = "Tests profile files and the ways of choosing.\n";

#include "../src/mat/impls/gpucsr/blackbox/inspect/inspect.h"
#include "../src/mat/impls/gpucsr/blackbox/plan/plan.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char file[PETSC_MAX_PATH_LEN];

static PetscErrorCode Load(const char text[])
{
  FILE *f = fopen(file, "w");

  PetscFunctionBegin;
  PetscCheck(f && fputs(text, f) >= 0 && !fclose(f), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s", file);
  PetscCall(GPUCSRProfileLoad(file));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of 10 entries in the mean where nothing else is said */
static GPUCSRFeatures Features(int m, int n, double mean, double padding)
{
  GPUCSRFeatures f = {.m = m, .n = n, .nnz = (int64_t)(m * mean), .max = (int)(2 * mean), .mean = mean, .sell_stored = (int64_t)(m * mean * padding)};

  return f;
}

static PetscErrorCode Chosen(GPUCSRDevice d, GPUCSRFeatures f, GPUCSRSelect select, double expected, const char kernel[], double us, const char why[])
{
  const GPUCSRRequest q = {.format = "auto", .kernel = "auto", .select = select, .expected = expected};
  GPUCSRCandidate    *c;
  GPUCSRChoice        choice;
  int                 n, known = INT_MAX;
  char                text[256];

  PetscFunctionBegin;
  PetscCall(GPUCSRChoose(&f, GPUCSR_PRECISION_DOUBLE, d, &q, &choice, &c, &n));
  PetscCheck(!strcmp(choice.kernel->name, kernel), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Takes %s because %s, should take %s", choice.kernel->name, choice.why, kernel);
  PetscCheck(strstr(choice.why, why), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the reason should say \"%s\": %s", kernel, why, choice.why);
  PetscCheck(PetscAbsReal(c[0].predicted - 1e-6 * us) < 1e-12, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: predicted %g us, should be %g", kernel, 1e6 * c[0].predicted, us);
  for (int k = 1; k < n; k++) {
    GPUCSRCandidateWhy(&c[k], &c[0], text, sizeof(text));
    PetscCheck(text[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Nothing says why %s on %s was not taken", c[k].kernel->name, c[k].format->name);
    if (!c[k].known) known = PetscMin(known, k);
    PetscCheck(!c[k].usable || !c[k].known || k < known, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s on %s stands behind those that the profile does not know", c[k].kernel->name, c[k].format->name);
  }
  PetscCall(PetscFree(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Launches alone, but for the last, which takes a microsecond a megabyte and half a one for the longest row's 20 / 8 steps */
#define GOOD \
  "gpucsr-profile 6\n" \
  "machine one by hand\n" \
  "# a remark, and a line that is empty\n" \
  "\n" \
  "cost csr csr_scalar 1 1 inf 1  7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n" \
  "cost csr csr_adaptive 1 1 inf 1  5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n" \
  "cost sell sell_row 1 1 inf 1  3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  100 0\n" \
  "cost csr csr_vector2 8 0 inf 1  0 1 1 0 0.5 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n" \
  "measure csr csr_block 1 1 inf 1  1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n" \
  "cost csr kernel_of_old 1 1 inf 1  1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n" \
  "tree 5 inf csr csr_scalar\n" \
  "tree inf 500 sell sell_row\n" \
  "tree inf 2000 csr csr_adaptive\n"

static PetscErrorCode TestChoice(GPUCSRDevice d)
{
  const double      small = 1e-6 * (4 * 101 + 12 * 1000 + 16 * 100); /* megabytes of 100 rows of 10 in CSR, and x and z */
  GPUCSRFeatures    f     = Features(10000, 10000, 10, 1), uneven;
  const GPUCSRPair *pair;
  int               n, known;

  PetscFunctionBegin;
  PetscCall(Load(GOOD));
  PetscCall(GPUCSRProfilePairs(&pair, &known, &n));
  PetscCheck(known == 5, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d pairs known, should be 5", known);
  for (int k = 0; k < n; k++) PetscCheck((pair[k].row != NULL) == (k < known), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Pair %d stands on the wrong side of the known ones", k);
  /* 10 000 rows are 1.3 MB, more than 3 us for csr_vector2 is; 100 rows are not */
  f.nnz = 400000;
  PetscCall(Chosen(d, f, GPUCSR_SELECT_ESTIMATE, 0, "sell_row", 3, "the next best 5.0 us"));
  PetscCall(Chosen(d, Features(100, 100, 10, 1), GPUCSR_SELECT_ESTIMATE, 0, "csr_vector2", small + 1.5, "the next best 3.0 us"));
  PetscCall(Chosen(d, f, GPUCSR_SELECT_MEASURE, 0, "sell_row", 3, "predicted")); /* what measuring begins with */
  /* 3 us and 100 us once against 5 us: even after 50 products */
  PetscCall(Chosen(d, f, GPUCSR_SELECT_ESTIMATE, 49, "csr_adaptive", 5, "for 49 products"));
  PetscCall(Chosen(d, f, GPUCSR_SELECT_ESTIMATE, 51, "sell_row", 3, "for 51 products"));
  /* the first leaf that holds both, bounds included; without a leaf, or with too much padding, as estimate */
  PetscCall(Chosen(d, Features(1000, 1000, 5, 1), GPUCSR_SELECT_TREE, 0, "csr_scalar", 7, "the decision tree"));
  PetscCall(Chosen(d, Features(1000, 500, 6, 1), GPUCSR_SELECT_TREE, 0, "sell_row", 3, "the decision tree"));
  PetscCall(Chosen(d, Features(1000, 501, 6, 1), GPUCSR_SELECT_TREE, 0, "csr_adaptive", 5, "the decision tree"));
  PetscCall(Chosen(d, f, GPUCSR_SELECT_TREE, 0, "sell_row", 3, "predicted"));
  PetscCall(Chosen(d, Features(100000, 500, 6, 3), GPUCSR_SELECT_TREE, 0, "sell_row", 3, "predicted"));
  /* five times the bytes of CSR: its time is a guess */
  PetscCall(Chosen(d, Features(100000, 500, 6, 5), GPUCSR_SELECT_TREE, 0, "csr_adaptive", 5, "predicted"));
  PetscCall(Chosen(d, Features(100000, 500, 6, 5), GPUCSR_SELECT_ESTIMATE, 0, "csr_adaptive", 5, "predicted"));
  uneven     = Features(1000, 500, 6, 1);
  uneven.max = 5000;
  PetscCall(Chosen(d, uneven, GPUCSR_SELECT_TREE, 0, "csr_adaptive", 5, "so much longer"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Loads from the cache and work of the processors overlap, and both wait for a launch */
static PetscErrorCode TestTogether(GPUCSRDevice d)
{
  const double cache = 3e-6 * (4 * 101 + 12 * 1000 + 16 * 100), work = 40e-6 * 1000; /* 3 us a megabyte, 40 us a million numbers of 8 bytes */

  PetscFunctionBegin;
  PetscCall(Load("gpucsr-profile 6\nmachine one by hand\ncost csr csr_scalar 1 1 inf 1  7 3 0 0 0 0 0 0 0 0 0 0 0 0 0 40 0 0  0 0\n"));
  PetscCall(Chosen(d, Features(100, 100, 10, 1), GPUCSR_SELECT_ESTIMATE, 0, "csr_scalar", 7 + cbrt(cache * cache * cache + work * work * work), "the only candidate"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDamaged(GPUCSRDevice d)
{
  static const char cost[] = "cost csr csr_scalar 1 1 inf 1  7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n";
  static const struct {
    const char *line, *says;
  } damaged[] = {
    {NULL,                                                                         "its first line is not \"gpucsr-profile 6\""            },
    {"cost csr csr_block 1 1 inf 1  7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0\n",     "line 4 should be \"cost FORMAT KERNEL\" and 24 numbers"},
    {"cost csr csr_block 1 1 inf 1  7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0 0\n", "line 4 should be"                                      },
    {"cost csr csr_block 1 1 inf 1  -7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n",  "none below 0"                                          },
    {"cost csr csr_block 1 1 inf 1  nan 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n", "line 4 should be"                                      },
    {"cost csr csr_block 0 1 inf 1  7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n",   "the first above"                                       },
    {"cost csr csr_block 1 1 inf 0  7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n",   "the fourth from 1 on"                                  },
    {"cost csr csr_block one 1 inf 1  7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n", "line 4 should be"                                      },
    {"cost csr\n",                                                                 "line 4 should be"                                      },
    {"tree 5 csr csr_scalar\n",                                                    "line 4 should be \"tree MEAN COLUMNS FORMAT KERNEL\""  },
    {"price csr csr_block 1\n",                                                    "line 4 begins with \"price\""                          },
    {"cost csr csr_block 1 1 inf 1  7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",          "line 4 should be"                                      }
  };
  char text[1024];

  PetscFunctionBegin;
  for (size_t k = 0; k <= PETSC_STATIC_ARRAY_LENGTH(damaged); k++) {
    const PetscBool none = (PetscBool)(k == PETSC_STATIC_ARRAY_LENGTH(damaged)); /* of cost lines */
    const char     *says = none ? "no line that begins with cost" : damaged[k].says;
    GPUCSRAttempt   attempt;
    PetscErrorCode  ierr;

    PetscCall(PetscSNPrintf(text, sizeof(text), "gpucsr-profile %d\nmachine damaged\n%s%s", k ? 6 : 5, none ? "" : cost, none || !damaged[k].line ? "" : damaged[k].line));
    PetscCall(GPUCSRAttemptBegin(&attempt));
    ierr = Load(text);
    PetscCall(GPUCSRAttemptEnd(&attempt));
    PetscCheck(ierr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Should be refused: %s", text);
    PetscCheck(strstr(attempt.message, says) && strstr(attempt.message, file) && strstr(attempt.message, "make tune"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The message should name the file, say \"%s\" and what to do: %s", says, attempt.message);
    PetscCall(Chosen(d, Features(1000, 1000, 5, 1), GPUCSR_SELECT_TREE, 0, "csr_scalar", 7, "the decision tree")); /* the one before still */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Different numbers among the columns over `width` of so many rows, all such groups of rows together */
static PetscErrorCode Different(int m, const int32_t *i, const int32_t *j, int rows, int width, double *n)
{
  int *last;

  PetscFunctionBegin;
  *n = 0;
  PetscCall(PetscCalloc1(m / width + 1, &last));
  for (int r = 0; r < m; r++)
    for (int k = i[r]; k < i[r + 1]; k++) {
      *n += last[j[k] / width] != r / rows + 1;
      last[j[k] / width] = r / rows + 1;
    }
  PetscCall(PetscFree(last));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With all rows in the sample the blocks are counted; with few rows they are estimated within the error bound. The option sets the sample */
static PetscErrorCode TestSample(GPUCSRDevice d)
{
  const int      m = 24000, blocks = m / 2 * 3 / 2; /* block rows of 1 and of 2 blocks of 2 by 2, by turns */
  const int      index = GPUCSRBlockIndex(GPUCSR_BLOCK(2, 2));
  int32_t       *i, *j;
  GPUCSRFeatures f[2];

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(m + 1, &i, 4 * m, &j));
  i[0] = 0;
  for (int r = 0; r < m; r++) {
    const int n = r / 2 % 2 ? 4 : 2;

    for (int k = 0; k < n; k++) j[i[r] + k] = (r / 2 * 2 + k + (k / 2) * 100) % m;
    if (n == 4 && j[i[r] + 2] < j[i[r]]) /* past the end: in order again */
      for (int k = 0; k < 2; k++) {
        const int32_t t = j[i[r] + k];

        j[i[r] + k]     = j[i[r] + k + 2];
        j[i[r] + k + 2] = t;
      }
    i[r + 1] = i[r] + n;
  }
  for (int q = 0; q < 2; q++) {
    GPUCSRPlanSettings.sample = q ? 0.01 : 1;
    PetscCall(GPUCSRInspect(m, m, i, j, GPUCSRPlanSettings.sample, d->threads, &f[q]));
  }
  PetscCheck(f[0].sampled == m && f[0].blocks[index] == blocks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Of all %d rows %d were looked at, %g blocks of 2 by 2 found, should be %d", m, f[0].sampled, f[0].blocks[index], blocks);
  PetscCheck(f[1].sampled < m / 4 && PetscAbsReal(f[1].blocks[index] - blocks) <= 0.05 * blocks, PETSC_COMM_SELF, PETSC_ERR_PLIB, "From %d rows, %g blocks of 2 by 2 estimated, should be %d", f[1].sampled, f[1].blocks[index], blocks);
  for (int q = 0; q < 4; q++) { /* sectors of x, from bits that hashing sets: within a twentieth */
    double n;

    PetscCall(Different(m, i, j, q % 2 ? GPUCSR_TILE : GPUCSR_GROUP, q / 2 ? 8 : 4, &n));
    PetscCheck(PetscAbsReal(f[1].sectors[q / 2][q % 2] - n) <= 0.05 * n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g sectors of %d columns in %s of rows estimated, there are %g", f[1].sectors[q / 2][q % 2], q / 2 ? 8 : 4, q % 2 ? "tiles" : "groups", n);
  }
  PetscCheck(f[0].heaviest == 96, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The heaviest slice has %d entries, should have 96", (int)f[0].heaviest);
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char           why[512], folder[PETSC_MAX_PATH_LEN];
  PetscBool      options = PETSC_FALSE;
  GPUCSRDevice   d;
  GPUCSRFeatures f = Features(8000000, 8000000, 6.98, 1.003);

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-options", &options));
  PetscCall(PetscGetTmp(PETSC_COMM_SELF, folder, sizeof(folder)));
  PetscCall(PetscSNPrintf(file, sizeof(file), "%s/t302-%d", folder, (int)getpid()));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen("host", &d, why, sizeof(why)));
  if (options) PetscCall(GPUCSRPlanInitialize()); /* ends in an error */
  PetscCall(TestChoice(d));
  PetscCall(TestDamaged(d));
  PetscCall(TestTogether(d));
  PetscCall(TestSample(d));
  PetscCall(GPUCSRProfileLoad("")); /* the built-in one again */
  PetscCall(Load(GOOD));
  PetscCall(GPUCSRProfileFinalize()); /* and where none was loaded */
  {
    const GPUCSRRequest q = {.format = "auto", .kernel = "auto"};
    GPUCSRChoice        c;

    PetscCall(GPUCSRChoose(&f, GPUCSR_PRECISION_DOUBLE, d, &q, &c, NULL, NULL));
    PetscCheck(!strstr(c.why, "3.0 us"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The profile of the file is still in use: %s", c.why);
  }
  (void)remove(file);
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
