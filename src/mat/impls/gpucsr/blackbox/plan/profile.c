/*
  The profile of a machine: a small text file, made by `make tune` (src/benchmarks/fit/fit.c), or the built-in one of an H200.

    gpucsr-profile 6                  the first line, with the version of the format
    machine NAME                      the device it was measured on
    cost FORMAT KERNEL WIDTH THREADS MOST AHEAD  TIME1 ... TIME18  SETUP1 SETUP2
    measure FORMAT KERNEL ...         the same; the prediction is too inexact for a choice, and the pair is worth measuring
    tree MEAN COLUMNS FORMAT KERNEL   for -mat_gpucsr_select tree: the first line with at most MEAN entries a row in the mean, and at
                                      most COLUMNS columns; inf: no bound

  cost: microseconds of a product. Each term is TIMEk times

    waiting:
    1  1                              a launch
    5  rounds of the longest row      floor(steps / AHEAD), steps = ceil(min(longest, MOST) / WIDTH): WIDTH entries of a row a step, AHEAD steps a round, whose loads are all in flight together
   14  steps outside of rounds        at most AHEAD - 1, one after the other
    7  1 if the longest row is longer than MOST, for which the kernel has another path
   18  doublings of the longest row   log2(1 + longest / 32)

    from memory:
    3  megabytes of A in this format, x and z that the last-level cache loses, see Kept()
   13  million sectors of x that it misses, see Sectors()
   17  million rows                   beyond its bytes: its begin, and z written

    from the last-level cache:
    2  megabytes of A in this format, x and z, all of them
   12  million sectors of x           of 32 bytes, fetched by blocks of threads, see Sectors()

    in the processors:
    4  million threads                THREADS a row (1 where that is 0)
    6  million entries, uneven        each counts as often as the mean length doubles the WIDTH: threads of short reach read a long row
                                      in pieces that share no sector. Each once where THREADS is 0.
    8  million sectors of x           touched by rows: gathering
    9  million blocks of 4 by 4       the same, where four rows gather together
   10  thousand rows longer than MOST
   11  million threads' steps         of all rows, with the idle ones at the end of a row
   15  thousand entries of the largest 32 neighbouring rows
   16  million entries                where numbers have 8 bytes

  Memory, cache and processors overlap, so the time is the waiting plus the cube root of the sum of the cubes of the three other parts: nearly the longest of
  the three, and more if two are about as long.

  The time to make the format from CSR on the device is SETUP1 + SETUP2 times its megabytes.

  The first tuners (R. Vuduc, J. Demmel, K. Yelick, OSKI, 2005; GOSpMV) timed a dense matrix in each sparse format. Block formats store such
  matrices without padding; here the samples include dense matrices.
*/
#include "../format/formats.h"
#include "plan.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char builtin[] =
#include "h200.h"
  ;

#define MAX_COSTS 512
#define MAX_TREE  80

#define BLOCKS  8   /* of a processor at a time, */
#define THREADS 256 /* of so many threads */
#define LONG    32  /* entries: of longer rows the doublings count */

#define SECTOR 32.0 /* bytes */

typedef struct {
  double mean, columns;
  char   format[GPUCSR_WORD], kernel[GPUCSR_WORD];
} Leaf;

typedef struct {
  GPUCSRCostRow cost[MAX_COSTS];
  Leaf          leaf[MAX_TREE];
  GPUCSRPair    pair[MAX_COSTS];
  int           ncosts, nleaves, npairs, nknown;
  char          machine[128];
  PetscBool     builtin;
} Profile;

static Profile *profile = NULL; /* the one in use */

/* Line by line; wrong: the first error, or empty */
static PetscErrorCode Parse(FILE *f, Profile *p, char wrong[], size_t len)
{
  char copy[1024];
  int  number = 0;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(p, sizeof(*p)));
  wrong[0] = 0;
  while (!wrong[0] && fgets(copy, sizeof(copy), f)) {
    char word[32] = "";

    number++;
    copy[strcspn(copy, "\n")] = 0;
    if (number == 1) {
      if (strcmp(copy, "gpucsr-profile 6")) PetscCall(PetscSNPrintf(wrong, len, "its first line is not \"gpucsr-profile 6\""));
      continue;
    }
    (void)sscanf(copy, "%31s", word);
    if (!word[0] || word[0] == '#') continue;
    if (!strcmp(word, "machine")) {
      PetscCall(PetscStrncpy(p->machine, copy + strcspn(copy, " "), sizeof(p->machine)));
    } else if ((!strcmp(word, "cost") || !strcmp(word, "measure")) && p->ncosts < MAX_COSTS) {
      GPUCSRCostRow *c                                    = &p->cost[p->ncosts];
      double         v[GPUCSR_NSHAPE + GPUCSR_NTERMS + 2] = {0};
      int            used = 0, got = 0;
      char          *rest = copy;

      if (sscanf(rest, "%*s %31s %31s%n", c->format, c->kernel, &used) == 2) {
        rest += used;
        for (got = 0; got < (int)(sizeof(v) / sizeof(v[0])) && sscanf(rest, "%lf%n", &v[got], &used) == 1 && !isnan(v[got]) && v[got] >= 0; got++) rest += used;
      }
      if (got != (int)(sizeof(v) / sizeof(v[0])) || v[0] == 0 || v[3] < 1 || strspn(rest, " ") != strlen(rest)) {
        PetscCall(PetscSNPrintf(wrong, len, "line %d should be \"%s FORMAT KERNEL\" and %d numbers, none below 0, the first above, the fourth from 1 on", number, word, (int)(sizeof(v) / sizeof(v[0]))));
        continue;
      }
      c->trusted = (PetscBool)!strcmp(word, "cost");
      c->width   = v[0];
      c->threads = v[1];
      c->most    = v[2];
      c->ahead   = v[3];
      PetscCall(PetscArraycpy(c->time, v + GPUCSR_NSHAPE, GPUCSR_NTERMS));
      PetscCall(PetscArraycpy(c->setup, v + GPUCSR_NSHAPE + GPUCSR_NTERMS, 2));
      p->ncosts++;
    } else if (!strcmp(word, "tree") && p->nleaves < MAX_TREE) {
      Leaf *l = &p->leaf[p->nleaves++];

      if (sscanf(copy, "tree %lf %lf %31s %31s", &l->mean, &l->columns, l->format, l->kernel) != 4) PetscCall(PetscSNPrintf(wrong, len, "line %d should be \"tree MEAN COLUMNS FORMAT KERNEL\"", number));
    } else PetscCall(PetscSNPrintf(wrong, len, "line %d begins with \"%s\", not with machine, cost, measure or tree", number, word));
  }
  if (!number) PetscCall(PetscSNPrintf(wrong, len, "its first line is not \"gpucsr-profile 6\""));
  else if (!wrong[0] && !p->ncosts) PetscCall(PetscSNPrintf(wrong, len, "it has no line that begins with cost"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From a file, or the built-in one for ""; an unreadable or damaged file is an error, and the profile in use stays */
PetscErrorCode GPUCSRProfileLoad(const char file[])
{
  char                wrong[256];
  Profile            *p;
  FILE               *f = file[0] ? fopen(file, "r") : fmemopen((void *)builtin, sizeof(builtin) - 1, "r");
  const GPUCSRFormat *format;
  const GPUCSRKernel *kernel;

  PetscFunctionBegin;
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-mat_gpucsr_profile %s: the file cannot be read; `make tune` writes one, and without the option the built-in profile serves", file);
  PetscCall(PetscNew(&p));
  PetscCall(Parse(f, p, wrong, sizeof(wrong)));
  (void)fclose(f);
  if (wrong[0]) {
    PetscCall(PetscFree(p));
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "-mat_gpucsr_profile %s: %s; `make tune` writes a new one", file[0] ? file : "(built in)", wrong);
  }
  p->builtin = (PetscBool)!file[0];
  /* looked up by name once for each profile, to keep choosing fast: pairs with a row first, and pairs of one format are neighbours among them */
  for (int known = 1; known >= 0; known--) {
    for (int j = 0; (format = GPUCSRFormatGet(j)); j++) {
      for (int i = 0; (kernel = GPUCSRKernelGet(i)); i++) {
        const GPUCSRCostRow *row = NULL;

        if (strcmp(kernel->format, format->family)) continue;
        for (int q = 0; q < p->ncosts && !row; q++)
          if (!strcmp(p->cost[q].format, format->name) && !strcmp(p->cost[q].kernel, kernel->name)) row = &p->cost[q];
        if ((row != NULL) != known) continue;
        PetscCheck(p->npairs < MAX_COSTS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d pairs of a format and a kernel", MAX_COSTS);
        p->pair[p->npairs++] = (GPUCSRPair){format, kernel, row};
        p->nknown += known;
      }
    }
  }
  PetscCall(GPUCSRProfileFinalize());
  profile = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRProfileFinalize(void)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(profile));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRProfilePairs(const GPUCSRPair **pair, int *known, int *all)
{
  PetscFunctionBegin;
  if (!profile) PetscCall(GPUCSRProfileLoad(""));
  *pair  = profile->pair;
  *known = profile->nknown;
  *all   = profile->npairs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The profile's device */
PetscErrorCode GPUCSRProfileMachine(const char **name)
{
  PetscFunctionBegin;
  if (!profile) PetscCall(GPUCSRProfileLoad(""));
  *name = profile->machine + strspn(profile->machine, " ");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factors from the profile's times to this device's, and its number of processors. A file's profile is the machine's own: the factors are 1 */
PetscErrorCode GPUCSRProfileScale(GPUCSRDevice dev, double scale[GPUCSR_NPARTS], double *processors)
{
  const GPUCSRMachine *t;

  PetscFunctionBegin;
  if (!profile) PetscCall(GPUCSRProfileLoad(""));
  t                     = profile->builtin ? GPUCSRMachineOf(dev) : &GPUCSRMachineH200;
  scale[GPUCSR_WAITING] = t->profile_waiting;
  scale[GPUCSR_MEMORY]  = t->profile_memory;
  scale[GPUCSR_CACHE]   = t->profile_cache;
  scale[GPUCSR_WORK]    = t->profile_work;
  *processors           = t->processors;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The decision tree's pair; NULL: no leaf */
PetscErrorCode GPUCSRProfileTree(const GPUCSRFeatures *f, const char **format, const char **kernel)
{
  PetscFunctionBegin;
  if (!profile) PetscCall(GPUCSRProfileLoad(""));
  *format = *kernel = NULL;
  for (int q = 0; q < profile->nleaves && !*format; q++) {
    if (f->mean > profile->leaf[q].mean || f->n > profile->leaf[q].columns) continue;
    *format = profile->leaf[q].format;
    *kernel = profile->leaf[q].kernel;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The model's data of a matrix in a format */
PetscErrorCode GPUCSRModelInputGet(const GPUCSRFormat *format, const GPUCSRFeatures *f, GPUCSRPrecision p, size_t l2, GPUCSRModelInput *in)
{
  const double  vector = (double)GPUCSRTypeSize(GPUCSRVectorType(p));
  GPUCSRStorage A;

  PetscFunctionBegin;
  PetscCall(GPUCSRStorageCreate(NULL, format, f, NULL, p, &A)); /* described, not allocated */
  in->matrix = 0;
  for (int k = 0; k < A.narrays; k++) in->matrix += 1e-6 * (double)A.array[k].count * (double)GPUCSRTypeSize(A.array[k].type);
  in->vectors    = 1e-6 * vector * ((double)f->m + (double)f->n);
  in->cache      = 1e-6 * (double)l2;
  in->processors = 0; /* of the profile */
  in->rows       = f->m;
  in->columns    = f->n;
  in->stored     = (double)PetscMax(A.stored, f->nnz); /* a dictionary's entries are gone through as often as rows have them */
  in->mean       = f->mean;
  in->max        = f->max;
  in->sectors    = f->sampled ? f->blocks[GPUCSRBlockIndex(GPUCSR_BLOCK(1, 4))] : (double)f->nnz;
  if (format->ops == &GPUCSRFormat_tile) in->sectors = (double)A.extent.units; /* gathered once a tile, not once a row */
  in->quads = f->sampled ? f->blocks[GPUCSRBlockIndex(GPUCSR_BLOCK(4, 4))] : (double)f->nnz;
  for (int q = 0; q < 2; q++) in->fetched[q] = f->sampled ? f->sectors[vector < 8][q] : (double)f->nnz; /* without a sample of the columns, as many as entries */
  in->heaviest = (double)f->heaviest;
  in->spread   = f->sampled ? f->spread : f->n;
  in->number   = vector;
  in->lengths  = f->rows;
  in->entries  = f->entries;
  for (in->nclasses = 1; in->nclasses < GPUCSR_NCLASSES && f->max >> (in->nclasses - 1);) in->nclasses++; /* all empty rows are one class */
  GPUCSRModelRows(format, A.extent.window, f->m, f->deviation, in);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The format's order of the rows. Sorting by length puts as many rows between neighbours as there are different lengths: for equally frequent lengths,
  that many times their deviation. Formats stored by columns give neighbouring rows to neighbouring threads; if all rows are sorted, running rows are
  of one length.
*/
void GPUCSRModelRows(const GPUCSRFormat *format, int window, double rows, double deviation, GPUCSRModelInput *in)
{
  in->window   = window;
  in->moved    = window ? PetscMin(PetscMin(window, rows), sqrt(12) * deviation) : 0;
  in->together = (PetscBool)(format->ops == &GPUCSRFormat_sell || format->ops == &GPUCSRFormat_jad);
  in->uneven   = window < rows && in->mean > 0 ? deviation / in->mean : 0;
}

/* Sectors of x that blocks of threads touch, each counted once a block: a power of the block's rows, through the counts for groups of 8 and tiles of 128 */
static double Counted(double rows, const GPUCSRModelInput *in)
{
  if (in->fetched[0] <= 0) return 0;
  return PetscMin(in->mean * in->rows, in->fetched[0] * pow(in->fetched[1] / in->fetched[0], log2(rows / 8) / log2(128 / 8.0)));
}

/*
  Counts the sectors that a block fetches from the last-level cache, and the cache's misses. Rows that the format has moved apart touch sectors
  within reach as if at random.

  A processor fetches a sector once if its blocks still have it at the next touch: the larger their current part of x, the less likely. Threads with
  one row each walk through x side by side, as columns ascend: after k of l columns a thread is at k/l of the width of x, up to a few times
  1/sqrt(l). So
  long rows use a narrow strip of x at a time, which widens as their lengths differ.

  Running blocks are neighbours. The cache misses the part of their common reach that exceeds x's share of the cache.
*/
static void Sectors(const GPUCSRCostRow *c, const GPUCSRModelInput *in, double *fetched, double *missed)
{
  const GPUCSRMachine *t          = &GPUCSRMachineShared;
  const double         processors = in->processors > 0 ? in->processors : GPUCSRMachineH200.processors;
  const double         all = PetscMax(1, in->rows), block = THREADS / PetscMax(1, PetscMin(THREADS, c->threads)), rows = PetscMin(all, block), x = in->number * in->columns, spread = in->number * in->spread;
  const double         places  = PetscMin(PetscMin(rows * (1 + in->moved), rows + in->window) * x / all, PetscMax(0, x - spread)); /* that the rows of a block lie apart in x */
  const double         reach   = PetscMax(in->number, PetscMin(x, places + spread));
  const double         meeting = rows * in->sectors / all / (reach / SECTOR); /* times that a sector in reach is touched */
  const double         chance = in->sectors * (meeting > 1e-6 ? (1 - exp(-meeting)) / meeting : 1), counted = Counted(block, in);
  const double         touched = in->moved > 0 ? PetscMax(counted, chance) : counted, once = PetscMin(touched, processors * x / SECTOR);
  const double         strip = in->together ? PetscMin(1, PetscMax(t->strip_width / sqrt(PetscMax(1, in->mean)), c->width / PetscMax(1, in->mean)) + in->uneven) : 1; /* of the width of a row */
  const double         used  = PetscMin(PetscMin(x, BLOCKS * places + x * strip), BLOCKS * PetscMin(reach, places + spread * strip)) / t->near_cache;
  const double         far = PetscMin(x, BLOCKS * processors * places + spread), share = t->cache_share * 1e6 * in->cache;

  *fetched = once + (touched - once) * used * used / (1 + used * used);
  *missed  = far > share ? *fetched * (1 - share / far) : 0;
}

/*
  The bytes of a product that the cache still has at the next product. Data read in the same order each time evict each other: a product a fifth
  larger than the cache finds nothing there, and a smaller product finds most of its bytes
*/
static double Kept(double moved, double cache)
{
  const double few = GPUCSRMachineShared.kept_whole * cache, many = GPUCSRMachineShared.kept_none * cache;

  return moved <= few ? moved : moved >= many ? 0 : moved * log(many / moved) / log(many / few);
}

/* The terms of the head comment; all: also terms with TIME 0 */
void GPUCSRModelTerms(const GPUCSRCostRow *c, const GPUCSRModelInput *in, PetscBool all, double terms[])
{
  const double    moved  = in->matrix + in->vectors;
  const PetscBool uneven = (PetscBool)(all || c->time[5] > 0), classes = (PetscBool)(all || c->time[9] > 0 || c->time[10] > 0), sectors = (PetscBool)(all || c->time[11] > 0 || c->time[12] > 0);
  const double    steps   = isinf(c->width) ? 0 : ceil(PetscMin(in->max, c->most) / c->width);
  double          fetched = 0, missed = 0;

  terms[0]  = 1;
  terms[1]  = moved;
  terms[2]  = moved - Kept(moved, in->cache);
  terms[3]  = 1e-6 * in->rows * PetscMax(1, c->threads);
  terms[4]  = floor(steps / c->ahead);
  terms[5]  = !uneven ? 0 : c->threads > 0 ? 1e-6 * in->stored * PetscMax(0, log2(PetscMax(1e-9, in->mean / c->width))) : 1e-6 * in->stored;
  terms[6]  = in->max > c->most ? 1 : 0;
  terms[7]  = 1e-6 * in->sectors;
  terms[8]  = 1e-6 * in->quads;
  terms[9]  = 0;
  terms[10] = 0;
  for (int b = 1; classes && b < in->nclasses; b++) {
    const double rows = in->lengths[b];

    if (rows == 0) continue;
    if (ldexp(1, b - 1) >= c->most) terms[9] += 1e-3 * rows;
    terms[10] += 1e-6 * rows * PetscMax(1, c->threads) * ceil((double)in->entries[b] / rows / c->width);
  }
  if (isinf(c->width)) terms[10] = 0;
  if (sectors) Sectors(c, in, &fetched, &missed);
  terms[11] = 1e-6 * fetched;
  terms[12] = 1e-6 * missed;
  terms[13] = PetscMin(steps, c->ahead - 1);
  terms[14] = 1e-3 * in->heaviest;
  terms[15] = in->number > 4 ? 1e-6 * in->stored : 0;
  terms[16] = 1e-6 * in->rows;
  terms[17] = log2(1 + in->max / LONG);
}

/* The part of the time to which each term belongs, see the head comment */
const int GPUCSRModelPart[GPUCSR_NTERMS] = {GPUCSR_WAITING, GPUCSR_CACHE, GPUCSR_MEMORY, GPUCSR_WORK,   GPUCSR_WAITING, GPUCSR_WORK, GPUCSR_WAITING, GPUCSR_WORK,   GPUCSR_WORK,
                                            GPUCSR_WORK,    GPUCSR_WORK,  GPUCSR_CACHE,  GPUCSR_MEMORY, GPUCSR_WAITING, GPUCSR_WORK, GPUCSR_WORK,    GPUCSR_MEMORY, GPUCSR_WAITING};

/* Microseconds of a product from its terms; part: of each part */
double GPUCSRModelTime(const GPUCSRCostRow *c, const double terms[], double part[])
{
  double cubes = 0;

  for (int k = 0; k < GPUCSR_NPARTS; k++) part[k] = 0;
  for (int k = 0; k < GPUCSR_NTERMS; k++) part[GPUCSRModelPart[k]] += c->time[k] * terms[k];
  for (int k = GPUCSR_WAITING + 1; k < GPUCSR_NPARTS; k++) cubes += part[k] * part[k] * part[k];
  return part[GPUCSR_WAITING] + cbrt(cubes);
}
