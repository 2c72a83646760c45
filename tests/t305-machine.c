/*
  The table of tuned constants: as it is built in, from a file, and scaled by the properties of a device. A wrong file is one error that names the line, and changes nothing. On the
  stand-in with the properties of other devices each row scales, predicted times follow, and no choice loses more than 1.3 in the model of the device.

  //TEST args="-mat_gpucsr_backend host"
  //TEST name="a100" args="-gpucsr_debug_standin 1 -gpucsr_debug_standin_properties 108,1410,1555,41.94304"
  //TEST name="l40s" args="-gpucsr_debug_standin 1 -gpucsr_debug_standin_properties 142,2520,864,100.663296"
  //TEST name="t4" args="-gpucsr_debug_standin 1 -gpucsr_debug_standin_properties 40,1590,320,4.194304"
  //TEST name="h200" args="-gpucsr_debug_standin 1 -gpucsr_debug_standin_properties 132,1980,4917,62.91456"
  //TEST name="missing" args="-mat_gpucsr_machine /no/such/file" fails="-mat_gpucsr_machine /no/such/file: the file cannot be read"
  //TEST name="missing_ranks" nsize=2 args="-mat_gpucsr_machine /no/such/file" fails="the file cannot be read"
  //TEST name="properties" args="-gpucsr_debug_standin 1 -gpucsr_debug_standin_properties 108,1410" fails="processors, MHz, GB/s and MB of cache"
*/
static char help[] = "Tests the table of tuned constants.\n";

#include "../src/mat/impls/gpucsr/blackbox/plan/plan.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char file[PETSC_MAX_PATH_LEN];

static PetscErrorCode Load(const char text[])
{
  FILE *f = fopen(file, "w");

  PetscFunctionBegin;
  PetscCheck(f && fputs(text, f) >= 0 && !fclose(f), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s", file);
  PetscCall(GPUCSRMachineLoad(file));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Is(const char what[], double is, double should)
{
  PetscFunctionBegin;
  PetscCheck(fabs(is - should) <= 1e-12 * fabs(should), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %g, should be %g", what, is, should);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows with distinct names and units, and values above 0; a device without figures has the values of the H200, to the last bit */
static PetscErrorCode TestBuiltIn(GPUCSRDevice host)
{
  const double *value = (const double *)GPUCSRMachineOf(host), *shared = (const double *)GPUCSRMachineOf(NULL), *h200 = (const double *)&GPUCSRMachineH200;

  PetscFunctionBegin;
  for (int k = 0; k < GPUCSR_MACHINE_NROWS; k++) {
    const GPUCSRMachineRow *row = &GPUCSRMachineRows[k];

    PetscCheck(row->name[0] && row->unit[0] && row->use[0] && row->value > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Row %d lacks something", k);
    PetscCheck(value[k] == row->value && shared[k] == row->value && h200[k] == row->value, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %g on the host, should be %g", row->name, value[k], row->value);
    for (int q = 0; q < k; q++) PetscCheck(strcmp(row->name, GPUCSRMachineRows[q].name), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Two rows are called %s", row->name);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestFile(void)
{
  static const struct {
    const char *line, *says;
  } damaged[] = {
    {"exchange 8e-6",                      "line 2 should be \"NAME = VALUE\""                       },
    {"= 8e-6",                             "line 2 should be \"NAME = VALUE\""                       },
    {"exchanges = 8e-6",                   "line 2 names \"exchanges\", which is no row of the table"},
    {"exchange = ",                        "line 2: exchange must be a number above 0, in s"         },
    {"exchange = eight",                   "line 2: exchange must be a number above 0"               },
    {"exchange = 8e-6 s",                  "line 2: exchange must be a number above 0"               },
    {"exchange = 0",                       "line 2: exchange must be a number above 0"               },
    {"exchange = -1",                      "line 2: exchange must be a number above 0"               },
    {"exchange = nan",                     "line 2: exchange must be a number above 0"               },
    {"exchange = inf",                     "line 2: exchange must be a number above 0"               },
    {"exchange = 1e-6\nexchange = 2e-6\n", "line 3 names exchange a second time"                     }
  };
  char text[256];

  PetscFunctionBegin;
  PetscCall(Load("# a remark\n\n  exchange=7e-6 # another\n\tahead_rows\t=\t5e4\nprofile_memory = 2\r\nlink_rate = 1e9"));
  PetscCall(Is("exchange", GPUCSRMachineShared.exchange, 7e-6));
  PetscCall(Is("ahead_rows", GPUCSRMachineShared.ahead_rows, 5e4));
  PetscCall(Is("profile_memory", GPUCSRMachineShared.profile_memory, 2));
  PetscCall(Is("link_rate", GPUCSRMachineShared.link_rate, 1e9));
  PetscCall(Is("meeting, which the file does not have,", GPUCSRMachineShared.meeting, GPUCSRMachineH200.meeting));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(damaged); k++) {
    GPUCSRAttempt  attempt;
    PetscErrorCode ierr;

    PetscCall(PetscSNPrintf(text, sizeof(text), "meeting = 1e-6\n%s", damaged[k].line));
    PetscCall(GPUCSRAttemptBegin(&attempt));
    ierr = Load(text);
    PetscCall(GPUCSRAttemptEnd(&attempt));
    PetscCheck(ierr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Should be refused: %s", text);
    PetscCheck(strstr(attempt.message, damaged[k].says) && strstr(attempt.message, file) && strstr(attempt.message, "-mat_gpucsr_machine"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The message should name option and file, and say \"%s\": %s", damaged[k].says,
               attempt.message);
    PetscCall(Is("exchange, after a wrong file,", GPUCSRMachineShared.exchange, 7e-6));
    PetscCall(Is("meeting, after a wrong file,", GPUCSRMachineShared.meeting, GPUCSRMachineH200.meeting));
  }
  PetscCall(GPUCSRMachineLoad(""));
  PetscCall(Is("exchange, built in,", GPUCSRMachineShared.exchange, GPUCSRMachineH200.exchange));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRFeatures Features(int m, double mean, int max, double padding)
{
  GPUCSRFeatures f = {.m = m, .n = m, .nnz = (int64_t)(m * mean), .max = max, .mean = mean, .sell_stored = (int64_t)(m * mean * padding), .heaviest = (int64_t)(32 * mean), .spread = m};
  int            b = 1;

  while (1 << b <= (int)mean) b++;
  f.rows[b]    = m;
  f.entries[b] = f.nnz;
  return f;
}

/* The predicted time of a pair, or of the choice (NULL), and the least time of all pairs */
static PetscErrorCode Times(GPUCSRDevice d, GPUCSRFeatures *f, GPUCSRCandidate *pair, double *time, double *least)
{
  const GPUCSRRequest q = {.format = "auto", .kernel = "auto"};
  GPUCSRCandidate    *c;
  GPUCSRChoice        choice;
  int                 n, k = 0;

  PetscFunctionBegin;
  PetscCall(GPUCSRChoose(f, GPUCSR_PRECISION_DOUBLE, d, &q, &choice, &c, &n));
  if (!pair->format) *pair = c[0];
  *least = PETSC_MAX_REAL;
  for (int i = 0; i < n; i++)
    if (c[i].usable && c[i].known && c[i].trusted) *least = PetscMin(*least, c[i].predicted);
  while (k < n && (c[k].format != pair->format || c[k].kernel != pair->kernel)) k++;
  PetscCheck(k < n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A pair is no candidate any more");
  *time = c[k].predicted;
  PetscCall(PetscFree(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The predicted time of the choice; lost: what it loses at most where a part of the times of the device is a fifth less or a quarter more than its properties tell */
static PetscErrorCode Choice(GPUCSRDevice d, GPUCSRFeatures *f, double *time, double *lost)
{
  double *const   part[] = {&d->machine.profile_waiting, &d->machine.profile_memory, &d->machine.profile_cache, &d->machine.profile_work};
  GPUCSRCandidate pair   = {.format = NULL};
  double          other, least;

  PetscFunctionBegin;
  PetscCall(Times(d, f, &pair, time, &least));
  *lost = *time / least;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(part); k++)
    for (int more = 0; more < 2; more++) {
      const double was = *part[k];

      *part[k] = (more ? 1.25 : 0.8) * was;
      PetscCall(Times(d, f, &pair, &other, &least));
      *part[k] = was;
      *lost    = PetscMax(*lost, other / least);
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* d: a GPU with figures */
static PetscErrorCode TestScaling(GPUCSRDevice d, GPUCSRDevice host)
{
  const GPUCSRMachine *t = GPUCSRMachineOf(d), *h = &GPUCSRMachineH200;
  const double         bandwidth = d->props.bandwidth / 4.917e12, clock = d->props.clock / 1.98e9, processors = d->props.processors / 132.0, cache = (double)d->props.l2 / 62914560.0;
  const int            rows[]  = {100, 2000, 30000, 500000, 8000000};
  const double         means[] = {3, 7, 27, 90};
  const double         least = PetscMin(PetscMin(t->profile_waiting, t->profile_memory), t->profile_work), most = PetscMax(PetscMax(t->profile_waiting, t->profile_memory), t->profile_work);
  double               time, was, lost;
  GPUCSRMachine        machine;

  PetscFunctionBegin;
  PetscCall(Is("processors", t->processors, d->props.processors));
  PetscCall(Is("vector_rate", t->vector_rate, bandwidth * h->vector_rate));
  PetscCall(Is("ahead_rows", t->ahead_rows, bandwidth * h->ahead_rows));
  PetscCall(Is("vector_cached_rate", t->vector_cached_rate, processors * clock * h->vector_cached_rate));
  PetscCall(Is("cg_graph_traffic", t->cg_graph_traffic, cache * h->cg_graph_traffic));
  PetscCall(Is("meeting", t->meeting, h->meeting / clock));
  PetscCall(Is("profile_memory", t->profile_memory, 1 / bandwidth));
  PetscCall(Is("profile_work", t->profile_work, 1 / (processors * clock)));
  for (int k = 0; k < GPUCSR_MACHINE_NROWS; k++)
    if (GPUCSRMachineRows[k].scaling == GPUCSR_SCALE_FIXED) PetscCheck(((const double *)t)[k] == GPUCSRMachineRows[k].value, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %g, which every device has alike", GPUCSRMachineRows[k].name, ((const double *)t)[k]);
  for (size_t r = 0; r < PETSC_STATIC_ARRAY_LENGTH(rows); r++)
    for (size_t e = 0; e < PETSC_STATIC_ARRAY_LENGTH(means); e++)
      for (int uneven = 0; uneven < 2; uneven++) {
        GPUCSRFeatures f = Features(rows[r], means[e], (int)(uneven ? PetscMin(rows[r], 40 * means[e]) : means[e]), uneven ? 3 : 1.01);

        PetscCall(Choice(d, &f, &time, &lost));
        PetscCheck(time > 0 && lost <= 1.3, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d rows of %g entries: the choice takes %.2f times the least", f.m, f.mean, lost);
        PetscCall(Choice(host, &f, &was, &lost));
        if (f.m == 8000000) PetscCheck(time >= 0.8 * least * was && time <= 1.25 * most * was, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d rows of %g entries: %.2f times an H200's time, should be %.2f to %.2f", f.m, f.mean, time / was, least, most);
      }
  /* Values of a file, and a profile from a file, are not scaled */
  PetscCall(Load("meeting = 5e-6\n"));
  GPUCSRMachineOfDevice(&d->props, &machine);
  PetscCall(Is("meeting, from the file,", machine.meeting, 5e-6));
  PetscCall(Is("vector_rate, beside the file,", machine.vector_rate, bandwidth * h->vector_rate));
  PetscCall(GPUCSRMachineLoad(""));
  {
    FILE          *p = fopen(file, "w");
    GPUCSRFeatures f = Features(1000, 10, 10, 1);

    PetscCheck(p && fputs("gpucsr-profile 6\nmachine one by hand\ncost csr csr_scalar 1 1 inf 1  7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0  0 0\n", p) >= 0 && !fclose(p), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s", file);
    PetscCall(GPUCSRProfileLoad(file));
    PetscCall(Choice(d, &f, &time, &lost));
    PetscCall(Is("a product by a profile from a file", time, 7e-6));
    PetscCall(GPUCSRProfileLoad(""));
  }
  /* the H200 itself, by name */
  {
    GPUCSRProperties p = d->props;

    PetscCall(PetscStrncpy(p.name, "NVIDIA H200", sizeof(p.name)));
    GPUCSRMachineOfDevice(&p, &machine);
    PetscCheck(!memcmp(&machine, h, sizeof(machine)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The values of the H200 are scaled on an H200");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char         why[512], folder[PETSC_MAX_PATH_LEN];
  GPUCSRDevice d, host;
  PetscBool    standin;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscGetTmp(PETSC_COMM_SELF, folder, sizeof(folder)));
  PetscCall(PetscSNPrintf(file, sizeof(file), "%s/t305-%d", folder, (int)getpid()));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen("host", &host, why, sizeof(why)));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-gpucsr_debug_standin", &standin));
  if (standin) {
    PetscCall(GPUCSRDeviceOpen("cuda", &d, why, sizeof(why)));
    PetscCall(TestScaling(d, host));
  } else {
    PetscCall(TestBuiltIn(host));
    PetscCall(TestFile());
  }
  (void)remove(file);
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
