/*
  Tuned constants: the built-in table, its scaling by the properties of a device, and the file that overrides rows.

  A line of the file is NAME = VALUE; # begins a remark. The first rank reads the file and sends it to all ranks, because ranks that choose differently deadlock.
*/
#include "gpucsrsys.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const GPUCSRMachineRow GPUCSRMachineRows[] = {
#define GPUCSR_ROW(name, value, unit, scaling, use) {#name, unit, use, value, GPUCSR_SCALE_##scaling},
  GPUCSR_MACHINE_ROWS(GPUCSR_ROW)
#undef GPUCSR_ROW
};

#define GPUCSR_ROW(name, value, unit, scaling, use) value,
const GPUCSRMachine GPUCSRMachineH200   = {GPUCSR_MACHINE_ROWS(GPUCSR_ROW)};
GPUCSRMachine       GPUCSRMachineShared = {GPUCSR_MACHINE_ROWS(GPUCSR_ROW)};
#undef GPUCSR_ROW

/* The device of the built-in values */
static const GPUCSRProperties measured = {.name = "NVIDIA H200", .processors = 132, .l2 = 62914560, .clock = 1.98e9, .bandwidth = 4.917e12};

static double given[sizeof(GPUCSRMachine) / sizeof(double)]; /* by the file; 0: the file does not have this row */

static double Ratio(double is, double was)
{
  return is > 0 ? is / was : 1;
}

/* All ratios are 1 for the host and for a device of unknown clock or bandwidth */
GPUCSRMachineRatios GPUCSRMachineRatiosOf(const GPUCSRProperties *p)
{
  GPUCSRMachineRatios r = {1, 1, 1, 1};

  if (p->bandwidth <= 0 || p->clock <= 0 || !strcmp(p->name, measured.name)) return r;
  r.bandwidth  = Ratio(p->bandwidth, measured.bandwidth);
  r.clock      = Ratio(p->clock, measured.clock);
  r.processors = Ratio(p->processors, measured.processors);
  r.cache      = Ratio((double)p->l2, (double)measured.l2);
  return r;
}

/* The value of a row on a device with these ratios, without the file */
double GPUCSRMachineScaled(const GPUCSRMachineRow *row, const GPUCSRMachineRatios *r)
{
  const double rate = r->processors * r->clock;
  const double up[] = {1, r->bandwidth, r->processors, rate, r->cache, 1, 1, 1}, down[] = {1, 1, 1, 1, 1, r->bandwidth, rate, r->clock}; /* in the order of GPUCSRMachineScale */

  return row->value * up[row->scaling] / down[row->scaling];
}

static void Fill(const GPUCSRMachineRatios *r, GPUCSRMachine *machine)
{
  double *value = (double *)machine;

  for (int k = 0; k < GPUCSR_MACHINE_NROWS; k++) value[k] = given[k] > 0 ? given[k] : GPUCSRMachineScaled(&GPUCSRMachineRows[k], r);
}

/* The table of a device */
void GPUCSRMachineOfDevice(const GPUCSRProperties *p, GPUCSRMachine *machine)
{
  const GPUCSRMachineRatios r = GPUCSRMachineRatiosOf(p);

  Fill(&r, machine);
}

/* Parses one line. On an error the message goes to wrong */
static PetscErrorCode ParseLine(char line[], int number, double value[], char wrong[], size_t len)
{
  char  *name = line + strspn(line, " \t"), *number_at, *end;
  size_t n;
  double v;
  int    k;

  PetscFunctionBegin;
  line[strcspn(line, "#\r\n")] = 0;
  if (!name[0] || !name[strspn(name, " \t")]) PetscFunctionReturn(PETSC_SUCCESS);
  n         = strcspn(name, " \t=");
  number_at = name + n + strspn(name + n, " \t");
  if (!n || *number_at != '=') {
    PetscCall(PetscSNPrintf(wrong, len, "line %d should be \"NAME = VALUE\"", number));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  name[n] = 0;
  for (k = 0; k < GPUCSR_MACHINE_NROWS && strcmp(name, GPUCSRMachineRows[k].name); k++) {
  }
  v = strtod(++number_at, &end);
  if (k == GPUCSR_MACHINE_NROWS) PetscCall(PetscSNPrintf(wrong, len, "line %d names \"%.64s\", which is no row of the table", number, name));
  else if (end == number_at || end[strspn(end, " \t")] || !isfinite(v) || v <= 0) PetscCall(PetscSNPrintf(wrong, len, "line %d: %s must be a number above 0, in %s", number, name, GPUCSRMachineRows[k].unit));
  else if (value[k] > 0) PetscCall(PetscSNPrintf(wrong, len, "line %d names %s a second time", number, name));
  else value[k] = v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective on PETSC_COMM_WORLD, before a device is opened: "" means the built-in values. An error changes nothing */
PetscErrorCode GPUCSRMachineLoad(const char file[])
{
  const GPUCSRMachineRatios same                                          = {1, 1, 1, 1};
  double                    value[sizeof(GPUCSRMachine) / sizeof(double)] = {0};
  char                      wrong[256]                                    = "";
  const PetscMPIInt         rank                                          = GPUCSRRankOf(PETSC_COMM_WORLD);

  PetscFunctionBegin;
  if (file[0]) {
    if (rank == 0) {
      FILE *f = fopen(file, "r");
      char  line[512];

      if (!f) PetscCall(PetscStrncpy(wrong, "the file cannot be read; `make tune` writes one", sizeof(wrong)));
      else {
        for (int number = 1; !wrong[0] && fgets(line, sizeof(line), f); number++) PetscCall(ParseLine(line, number, value, wrong, sizeof(wrong)));
        if (!wrong[0] && ferror(f)) PetscCall(PetscStrncpy(wrong, "the file cannot be read; `make tune` writes one", sizeof(wrong)));
        (void)fclose(f);
      }
    }
    PetscCallMPI(MPI_Bcast(wrong, (PetscMPIInt)sizeof(wrong), MPI_CHAR, 0, PETSC_COMM_WORLD));
    PetscCallMPI(MPI_Bcast(value, GPUCSR_MACHINE_NROWS, MPI_DOUBLE, 0, PETSC_COMM_WORLD));
    PetscCheck(!wrong[0], PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "-mat_gpucsr_machine %s: %s", file, wrong);
  }
  PetscCall(PetscArraycpy(given, value, GPUCSR_MACHINE_NROWS));
  Fill(&same, &GPUCSRMachineShared);
  PetscFunctionReturn(PETSC_SUCCESS);
}
