static char help[] = "Generates data sets of the shape of well-known ones for linear learning, with labels from a model that is known.\n\n";

/*
  Generates rows with labels. The size, the distribution of row lengths and the distribution of column popularity are those of a data set that cannot be shipped:

    learnset -set real-sim -o real-sim.petsc                  a matrix and its labels in PETSc binary, as bmrm reads them
    mpiexec -n 16 learnset -set reuters-ccat -o ccat.petsc    the same on any number of ranks
    learnset -set news20 -scale 0.1 -o small.petsc            a tenth of the rows and of the columns
    learnset -set real-sim -classes 10 -o classes.petsc       labels from 1 to 10
    learnset -list                                            what there is

  Text: row lengths are log-normal. The columns of a row are drawn without repetition from a Zipf-Mandelbrot distribution, popularity ~ (rank + q)^-s, and are
  scattered over the matrix. Values are term frequency times inverse document frequency, and rows have norm 1, as in the originals.
  Table: numeric columns, each present with the same probability, and groups of binary columns. A row has at most one column of each group.

  Labels: the sign of x w - t, for random weights w and the threshold t that gives the requested share of positive rows. Then some labels are flipped. With
  -classes 10, ten models compete, and the label is the number of the model with the largest score. The random generator is a counter, so a row depends only on
  the seed and on its index. At the end the program verifies that the data has the requested properties.
*/
#include <petscmat.h>

typedef struct {
  const char *name;
  PetscInt    rows, columns;
  PetscReal   mean;      /* nonzeros per row */
  PetscReal   sigma;     /* text: standard deviation of the logarithm of row lengths; 0 for a table */
  PetscReal   zipf, q;   /* text: popularity of a column is (rank + q)^-zipf */
  PetscInt    numbers;   /* table: numeric columns */
  PetscInt    group[16]; /* table: columns of each group, ended by 0 */
  PetscReal   present;   /* table: probability of a number in a row; without numeric columns, probability of an entry of a group in a row */
  PetscReal   positive;  /* share of positive rows, before labels are flipped */
  PetscReal   flipped;   /* share of flipped labels */
} Shape;

/*
  Sources of the numbers of rows, columns and nonzeros per row:

    adult9        LIBSVM's a9a, counted
    astro-ph      T. Joachims, Training linear SVMs in linear time, KDD 2006, table 1
    aut-avn       S. S. Keerthi and D. DeCoste, A modified finite Newton method, JMLR 6, 2005; nonzeros approximate
    covertype     UCI Covertype: 10 numbers, one of 4 and one of 40 binary columns
    kdd99         UCI KDD Cup 1999, rows of the full set; nonzeros per row counted in its 10 % sample
    news20        LIBSVM's news20.binary (there 19996 rows): 455 nonzeros per row
    real-sim      LIBSVM's real-sim: 3.7 million nonzeros
    reuters-*     RCV1-v2, D. D. Lewis et al., JMLR 5, 2004: 0.16 % nonzeros; the two sets differ in their labels
    web8          approximate. J. Platt's web data have 300 binary columns and about 12.7 nonzeros per row. Papers on bundle methods give 5.8e5 columns, which is
                  close to the number of nonzeros. We keep 5.8e5 columns, because the set is then our widest one with short rows.

  The spread of row lengths, the distribution of popularity and the shares of positive and flipped labels are our estimates.
*/
static const Shape shapes[] = {
  {"adult9",       32561,   123,     13.87, 0,   0,   0,  0,  {5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41}, 0.9907, 0.24, 0.10 },
  {"astro-ph",     62369,   99757,   77,    0.5, 1.1, 10, 0,  {0},                                           0,      0.45, 0.02 },
  {"aut-avn",      71066,   20707,   52,    0.7, 1.0, 10, 0,  {0},                                           0,      0.65, 0.02 },
  {"covertype",    581012,  54,      12,    0,   0,   0,  10, {4, 40},                                       1,      0.49, 0.15 },
  {"kdd99",        4898431, 127,     12.5,  0,   0,   0,  43, {3, 70, 11},                                   0.221,  0.80, 0.005},
  {"news20",       19954,   1355191, 455,   0.9, 1.1, 20, 0,  {0},                                           0,      0.50, 0.01 },
  {"real-sim",     72309,   20958,   51.3,  0.7, 1.0, 10, 0,  {0},                                           0,      0.31, 0.02 },
  {"reuters-c11",  804414,  47236,   76,    0.6, 1.0, 10, 0,  {0},                                           0,      0.03, 0.01 },
  {"reuters-ccat", 804414,  47236,   76,    0.6, 1.0, 10, 0,  {0},                                           0,      0.47, 0.02 },
  {"web8",         45546,   579967,  12.7,  0.8, 1.1, 10, 0,  {0},                                           0,      0.03, 0.01 },
};

/* ---- random numbers: splitmix64; its state is a counter ---- */

typedef unsigned long long Random;

static Random RandomStart(Random seed, Random stream, Random i)
{
  return (seed * 0x9e3779b97f4a7c15ULL) ^ (stream * 0xd1342543de82ef95ULL) ^ (i * 0x2545f4914f6cdd1dULL);
}

static PetscReal Uniform(Random *r)
{
  Random x = *r += 0x9e3779b97f4a7c15ULL;

  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return ((PetscReal)((x ^ (x >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static PetscReal Normal(Random *r)
{
  const PetscReal u = Uniform(r), v = Uniform(r);

  return PetscSqrtReal(-2 * PetscLogReal(u)) * PetscCosReal(2 * PETSC_PI * v);
}

/* ---- rows ---- */

enum {
  STREAM_ROWS,
  STREAM_LABELS,
  STREAM_WEIGHTS,
  STREAM_CLASSES
};

typedef struct {
  Shape      s;
  Random     seed;
  PetscReal  low, high;  /* text: the integral of the popularity at both ends */
  PetscInt   multiplier; /* text: rank r is column r * multiplier modulo columns */
  PetscInt   longest;
  PetscInt  *met;    /* text: the last row that contains this column */
  PetscReal *weight; /* weights of the model */
  PetscReal  threshold;
} Generator;

static PetscInt CommonDivisor(PetscInt a, PetscInt b)
{
  while (b) {
    const PetscInt c = a % b;

    a = b;
    b = c;
  }
  return a;
}

/* The integral of the popularity. Sampling by its inverse is exact up to the width of a rank */
static PetscReal Integral(const Shape *s, PetscReal rank)
{
  return s->zipf == 1 ? PetscLogReal(rank + s->q) : PetscPowReal(rank + s->q, 1 - s->zipf) / (1 - s->zipf);
}

static PetscInt DrawRank(const Generator *g, Random *r)
{
  const PetscReal f = g->low + Uniform(r) * (g->high - g->low), x = g->s.zipf == 1 ? PetscExpReal(f) : PetscPowReal(f * (1 - g->s.zipf), 1 / (1 - g->s.zipf));

  return PetscMax(0, PetscMin((PetscInt)(x - g->s.q), g->s.columns - 1));
}

static PetscInt TextRow(Generator *g, PetscInt row, Random *r, PetscInt j[], PetscScalar v[])
{
  const Shape *s      = &g->s;
  PetscInt     length = (PetscInt)(PetscExpReal(PetscLogReal(s->mean) - 0.5 * PetscSqr(s->sigma) + s->sigma * Normal(r)) + Uniform(r)), n = 0;
  PetscReal    norm = 0;

  length = PetscMax(1, PetscMin(length, g->longest));
  while (n < length) {
    const PetscInt  rank   = DrawRank(g, r);
    const PetscInt  column = (PetscInt)((PetscInt64)rank * g->multiplier % s->columns);
    const PetscReal rarity = 1 + PetscLogReal(((PetscReal)s->columns + s->q) / ((PetscReal)rank + s->q));
    PetscReal       value;

    if (g->met[column] == row) continue;
    g->met[column] = row;
    value          = (1 - PetscLogReal(Uniform(r))) / rarity + 1 / (rarity * rarity); /* frequent words occur more often and carry less information */
    norm += PetscSqr(value);
    j[n]   = column;
    v[n++] = value;
  }
  for (PetscInt k = 0; k < n; k++) v[k] /= PetscSqrtReal(norm);
  return n;
}

static PetscInt TableRow(const Generator *g, Random *r, PetscInt j[], PetscScalar v[])
{
  const Shape *s = &g->s;
  PetscInt     n = 0, first = s->numbers;

  for (PetscInt k = 0; k < s->numbers; k++) {
    if (Uniform(r) > s->present) continue;
    j[n]   = k;
    v[n++] = Uniform(r);
  }
  for (PetscInt k = 0; k < 16 && s->group[k]; k++) {
    /* the first column of a group is the most frequent, the last one the least */
    if (s->numbers || Uniform(r) < s->present) {
      j[n]   = first + (PetscInt)((PetscReal)s->group[k] * PetscPowReal(Uniform(r), 3));
      v[n++] = 1;
    }
    first += s->group[k];
  }
  return n;
}

/* Generates a row: its n entries by ascending column, and its score x w. A row of a table may be empty */
static PetscErrorCode Row(Generator *g, PetscInt row, PetscInt *n, PetscInt j[], PetscScalar v[], PetscReal *score)
{
  Random r = RandomStart(g->seed, STREAM_ROWS, (Random)row);

  PetscFunctionBeginUser;
  *n = g->s.sigma > 0 ? TextRow(g, row, &r, j, v) : TableRow(g, &r, j, v);
  PetscCall(PetscSortIntWithScalarArray(*n, j, v));
  *score = 0;
  for (PetscInt k = 0; k < *n; k++) *score += g->weight[j[k]] * PetscRealPart(v[k]);
  PetscFunctionReturn(0);
}

/* Draws the weights of the model, and finds the threshold from a sample of rows */
static PetscErrorCode GeneratorSetUp(Generator *g, const Shape *s, Random seed)
{
  const PetscInt samples = PetscMin(s->rows, 10000);
  PetscReal     *score;
  PetscScalar   *v;
  PetscInt      *j, n;

  PetscFunctionBeginUser;
  g->s          = *s;
  g->seed       = seed;
  g->low        = Integral(s, 0);
  g->high       = Integral(s, (PetscReal)s->columns);
  g->longest    = s->sigma > 0 ? PetscMin(s->columns / 2, (PetscInt)(20 * s->mean)) : s->columns;
  g->multiplier = (PetscInt)(0.6180339887498949 * (PetscReal)s->columns) | 1;
  while (CommonDivisor(g->multiplier, s->columns) != 1) g->multiplier += 2;
  PetscCall(PetscMalloc2(s->columns, &g->met, s->columns, &g->weight));
  for (PetscInt c = 0; c < s->columns; c++) {
    Random r = RandomStart(seed, STREAM_WEIGHTS, (Random)c);

    g->met[c]    = -1;
    g->weight[c] = Normal(&r);
  }
  PetscCall(PetscMalloc3(samples, &score, g->longest, &j, g->longest, &v));
  for (PetscInt k = 0; k < samples; k++) PetscCall(Row(g, (PetscInt)((PetscInt64)k * s->rows / samples), &n, j, v, &score[k]));
  PetscCall(PetscSortReal(samples, score));
  g->threshold = score[PetscMin((PetscInt)((1 - s->positive) * (PetscReal)samples), samples - 1)];
  PetscCall(PetscFree3(score, j, v));
  for (PetscInt c = 0; c < s->columns; c++) g->met[c] = -1;
  PetscFunctionReturn(0);
}

/* ---- the data set ---- */

/* The rows of this rank in CSR, and their labels */
typedef struct {
  PetscInt     m, *i, *j;
  PetscScalar *a, *label;
} Rows;

static PetscErrorCode Generate(Generator *g, PetscInt begin, PetscInt end, Rows *rows)
{
  PetscInt alloc = (PetscInt)((PetscReal)(end - begin) * (g->s.mean * 1.1 + 4)) + g->longest + 1000;

  PetscFunctionBeginUser;
  rows->m = end - begin;
  PetscCall(PetscMalloc2(rows->m + 1, &rows->i, rows->m, &rows->label));
  PetscCall(PetscMalloc1(alloc, &rows->j));
  PetscCall(PetscMalloc1(alloc, &rows->a));
  rows->i[0] = 0;
  for (PetscInt k = 0; k < rows->m; k++) {
    PetscReal score;
    PetscInt  n, at = rows->i[k];
    Random    r = RandomStart(g->seed, STREAM_LABELS, (Random)(begin + k));

    if (at + g->longest > alloc) {
      alloc = at + g->longest + alloc / 4;
      PetscCall(PetscRealloc((size_t)alloc * sizeof(PetscInt), &rows->j));
      PetscCall(PetscRealloc((size_t)alloc * sizeof(PetscScalar), &rows->a));
    }
    PetscCall(Row(g, begin + k, &n, rows->j + at, rows->a + at, &score));
    rows->i[k + 1] = at + n;
    rows->label[k] = ((score > g->threshold) == (Uniform(&r) >= g->s.flipped)) ? 1 : -1;
  }
  PetscFunctionReturn(0);
}

/* Replaces the labels of two classes by labels from 1 to n */
static PetscErrorCode Classes(const Generator *g, PetscInt n, PetscInt begin, const Rows *rows)
{
  PetscReal *weight, *score;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2((size_t)g->s.columns * (size_t)n, &weight, n, &score));
  for (PetscInt j = 0; j < g->s.columns; j++) {
    Random r = RandomStart(g->seed, STREAM_CLASSES, (Random)j);

    for (PetscInt c = 0; c < n; c++) weight[j * n + c] = Normal(&r);
  }
  for (PetscInt k = 0; k < rows->m; k++) {
    Random   r    = RandomStart(g->seed, STREAM_LABELS, (Random)(begin + k));
    PetscInt best = 0;

    PetscCall(PetscArrayzero(score, n));
    for (PetscInt l = rows->i[k]; l < rows->i[k + 1]; l++)
      for (PetscInt c = 0; c < n; c++) score[c] += weight[rows->j[l] * n + c] * PetscRealPart(rows->a[l]);
    for (PetscInt c = 1; c < n; c++)
      if (score[c] > score[best]) best = c;
    if (Uniform(&r) < g->s.flipped) best = PetscMin((PetscInt)(Uniform(&r) * (PetscReal)n), n - 1);
    rows->label[k] = (PetscReal)(best + 1);
  }
  PetscCall(PetscFree2(weight, score));
  PetscFunctionReturn(0);
}

/* Prints requested and generated properties; they must agree */
static PetscErrorCode Verify(const Shape *s, const Rows *rows, MPI_Comm comm)
{
  PetscInt64 *count, sum[2] = {0, 0}, head = 0, used = 0;
  PetscInt    extreme[2] = {PETSC_MAX_INT, 0}, popular = PetscMax(s->columns / 100, 1);
  PetscReal   mean, positive, wanted;

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1(s->columns, &count));
  for (PetscInt k = 0; k < rows->m; k++) {
    const PetscInt n = rows->i[k + 1] - rows->i[k];

    sum[0] += n;
    sum[1] += PetscRealPart(rows->label[k]) > 0;
    extreme[0] = PetscMin(extreme[0], n);
    extreme[1] = PetscMax(extreme[1], n);
    for (PetscInt l = rows->i[k]; l < rows->i[k + 1]; l++) count[rows->j[l]]++;
  }
  extreme[0] = -extreme[0];
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPIU_INT64, MPI_SUM, comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, extreme, 2, MPIU_INT, MPI_MAX, comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, count, (PetscMPIInt)s->columns, MPIU_INT64, MPI_SUM, comm));
  PetscCall(PetscSortInt64(s->columns, count));
  for (PetscInt j = 0; j < s->columns; j++) {
    if (j >= s->columns - popular) head += count[j];
    used += count[j] > 0;
  }
  PetscCall(PetscFree(count));
  mean     = (PetscReal)sum[0] / (PetscReal)s->rows;
  positive = (PetscReal)sum[1] / (PetscReal)s->rows;
  wanted   = s->positive * (1 - s->flipped) + (1 - s->positive) * s->flipped;
  PetscCall(PetscPrintf(comm, "set        %s: %" PetscInt_FMT " rows, %" PetscInt_FMT " columns, %.0f nonzeros\n", s->name, s->rows, s->columns, (double)sum[0]));
  PetscCall(PetscPrintf(comm, "rows       %.2f entries in the mean (asked for %.2f), %" PetscInt_FMT " to %" PetscInt_FMT "\n", (double)mean, (double)s->mean, -extreme[0], extreme[1]));
  PetscCall(PetscPrintf(comm, "columns    %.0f have entries; %.1f %% of all entries are in the most popular 1 %%\n", (double)used, 100 * (double)head / (double)sum[0]));
  PetscCall(PetscPrintf(comm, "labels     %.2f %% positive (asked for %.2f), %.1f %% flipped\n", 100 * (double)positive, 100 * (double)wanted, 100 * (double)s->flipped));
  PetscCheck(PetscAbsReal(mean - s->mean) <= 0.03 * s->mean + 3 * (s->sigma + 0.1) * s->mean / PetscSqrtReal((PetscReal)s->rows), comm, PETSC_ERR_PLIB, "%s: rows have %g entries in the mean, not %g", s->name, (double)mean, (double)s->mean);
  PetscCheck(PetscAbsReal(positive - wanted) <= 0.01 + 2 / PetscSqrtReal((PetscReal)s->rows), comm, PETSC_ERR_PLIB, "%s: %g of the labels are positive, not %g", s->name, (double)positive, (double)wanted);
  if (s->sigma > 0) { /* a row contains a popular column only once, even if it is drawn more often, so the head is lighter than the distribution says; long rows contain at most the whole head */
    const PetscReal law   = (Integral(s, (PetscReal)popular) - Integral(s, 0)) / (Integral(s, (PetscReal)s->columns) - Integral(s, 0));
    const PetscReal least = PetscMin(law, (PetscReal)popular / mean);

    PetscCheck((PetscReal)head <= 1.02 * law * (PetscReal)sum[0] && (PetscReal)head >= 0.4 * least * (PetscReal)sum[0], comm, PETSC_ERR_PLIB, "%s: the most popular 1 %% of the columns have %g of the entries, the law %g", s->name, (double)head / (double)sum[0], (double)law);
  }
  PetscFunctionReturn(0);
}

static PetscErrorCode WriteBinary(const Shape *s, const Rows *rows, MPI_Comm comm, const char file[])
{
  Mat         A;
  Vec         y;
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(comm, &A));
  PetscCall(MatSetSizes(A, rows->m, PETSC_DECIDE, s->rows, s->columns));
  PetscCall(MatSetType(A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocationCSR(A, rows->i, rows->j, rows->a));
  PetscCall(MatMPIAIJSetPreallocationCSR(A, rows->i, rows->j, rows->a));
  PetscCall(VecCreateMPIWithArray(comm, 1, rows->m, s->rows, rows->label, &y));
  PetscCall(PetscViewerBinaryOpen(comm, file, FILE_MODE_WRITE, &viewer));
  PetscCall(MatView(A, viewer));
  PetscCall(VecView(y, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  MPI_Comm    comm;
  const char *names[PETSC_STATIC_ARRAY_LENGTH(shapes)];
  char        file[PETSC_MAX_PATH_LEN] = "";
  PetscInt    which = 0, seed = 1, classes = 2, begin, end;
  PetscReal   scale = 1;
  PetscBool   list = PETSC_FALSE, chosen = PETSC_FALSE;
  Shape       s;
  Generator   g;
  Rows        rows;
  PetscLayout layout;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  comm = PETSC_COMM_WORLD;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(shapes); k++) names[k] = shapes[k].name;
  PetscOptionsBegin(comm, NULL, "Options of learnset", NULL);
  PetscCall(PetscOptionsEList("-set", "data set to be like", "learnset.c", names, PETSC_STATIC_ARRAY_LENGTH(shapes), names[0], &which, &chosen));
  PetscCall(PetscOptionsReal("-scale", "rows and columns (of text), as a share of the original's", "learnset.c", scale, &scale, NULL));
  PetscCall(PetscOptionsInt("-seed", "for another set of the same shape", "learnset.c", seed, &seed, NULL));
  PetscCall(PetscOptionsInt("-classes", "classes of the labels", "learnset.c", classes, &classes, NULL));
  PetscCall(PetscOptionsString("-o", "file to write, in PETSc binary", "learnset.c", file, file, sizeof(file), NULL));
  PetscCall(PetscOptionsBool("-list", "print what there is", "learnset.c", list, &list, NULL));
  PetscOptionsEnd();
  if (list) {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(shapes); k++)
      PetscCall(PetscPrintf(comm, "%-13s %8" PetscInt_FMT " rows %8" PetscInt_FMT " columns %10.0f nonzeros\n", shapes[k].name, shapes[k].rows, shapes[k].columns, (double)(shapes[k].mean * (PetscReal)shapes[k].rows)));
    PetscCall(PetscFinalize());
    return 0;
  }
  PetscCheck(chosen, comm, PETSC_ERR_USER, "Which set to be like? -list shows them, -set NAME says which");
  PetscCheck(classes >= 2 && classes <= 1000, comm, PETSC_ERR_USER_INPUT, "-classes is a number from 2 to 1000, not %" PetscInt_FMT, classes);
  PetscCheck(scale > 0, comm, PETSC_ERR_USER_INPUT, "-scale has to be positive, not %g", (double)scale);
  s = shapes[which];
  PetscCheck(scale * (PetscReal)PetscMax(s.rows, s.columns) < (PetscReal)PETSC_MAX_INT, comm, PETSC_ERR_USER_INPUT, "-scale %g: more rows or columns than the integers of this PETSc can count", (double)scale);
  s.rows = PetscMax((PetscInt)(scale * (PetscReal)s.rows + 0.5), 1);
  if (s.sigma > 0) s.columns = PetscMax((PetscInt)(scale * (PetscReal)s.columns + 0.5), (PetscInt)(8 * s.mean));

  PetscCall(PetscLayoutCreateFromSizes(comm, PETSC_DECIDE, s.rows, 1, &layout));
  PetscCall(PetscLayoutGetRange(layout, &begin, &end));
  PetscCall(PetscLayoutDestroy(&layout));
  PetscCall(GeneratorSetUp(&g, &s, (Random)seed));
  PetscCall(Generate(&g, begin, end, &rows));
  PetscCall(Verify(&s, &rows, comm));
  if (classes > 2) PetscCall(Classes(&g, classes, begin, &rows));
  if (file[0]) PetscCall(WriteBinary(&s, &rows, comm, file));
  PetscCall(PetscFree2(g.met, g.weight));
  PetscCall(PetscFree2(rows.i, rows.label));
  PetscCall(PetscFree(rows.j));
  PetscCall(PetscFree(rows.a));
  PetscCall(PetscFinalize());
  return 0;
}
