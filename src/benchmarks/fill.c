static char help[] = "The fill of blocks: exact, estimated from a sample of the rows, and with other orderings of rows and columns. On the host.\n\n";

/*
    fill [-dir FOLDER,...] [-generated no] [-most entries] [-o FILE]

  X. Zhang et al., GOSpMV: the fill ratio of a block size, entries stored over entries, is estimated from a sample of the rows. M. Verschoor and A. C. Jalba (2012): orderings do not
  increase the fill. For the *.petsc of folders, generated matrices, and Delaunay meshes with at most -most (2e6) entries, FILE gets
    fill     matrix, nnz; size RxC, fraction of the rows in the sample, estimated fill, exact fill
    order    matrix, nnz; order (natural|rcm|nd|1wd|qmd|rowlength|random), size, fill; for square matrices with at most as many entries
  src/benchmarks/papers/gospmv.py makes the tables.
*/
#include "problems/matrices.h"

static const int sizes[][2] = {
  {1, 2},
  {2, 1},
  {2, 2},
  {3, 3},
  {4, 4},
  {8, 8}
};
static const double fractions[] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1};
#define NSIZES     ((int)(sizeof(sizes) / sizeof(sizes[0])))
#define NFRACTIONS ((int)(sizeof(fractions) / sizeof(fractions[0])))

typedef struct {
  FILE     *out;
  PetscReal most;
  int       n;
} Bench;

static double Fill(const GPUCSRFeatures *f, int q)
{
  return f->blocks[GPUCSRBlockIndex(GPUCSR_BLOCK(sizes[q][0], sizes[q][1]))] * sizes[q][0] * sizes[q][1] / (double)f->nnz;
}

static PetscErrorCode Fractions(const Bench *b, const char name[], const GPUCSRSource *s)
{
  GPUCSRFeatures exact, f;

  PetscFunctionBeginUser;
  PetscCall(GPUCSRInspect(s->m, s->n, s->i, s->j, 1, 1, &exact));
  for (int k = 0; k < NFRACTIONS; k++) {
    PetscCall(GPUCSRInspect(s->m, s->n, s->i, s->j, fractions[k], 1, &f));
    for (int q = 0; q < NSIZES; q++)
      fprintf(b->out, "{\"record\": \"fill\", \"matrix\": \"%s\", \"nnz\": %d, \"size\": \"%dx%d\", \"fraction\": %g, \"fill\": %.6g, \"exact\": %.6g}\n", name, (int)s->nnz, sizes[q][0], sizes[q][1], fractions[k], Fill(&f, q), Fill(&exact, q));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fill of the matrix with rows and columns in the order of perm */
static PetscErrorCode Ordered(const Bench *b, const char name[], const char order[], Mat A, IS perm)
{
  Mat             B = A;
  PetscInt        n;
  const PetscInt *i, *j;
  PetscBool       done;
  GPUCSRFeatures  f;

  PetscFunctionBeginUser;
  if (perm) PetscCall(MatPermute(A, perm, perm, &B));
  PetscCall(MatGetRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  PetscCall(GPUCSRInspect((int)n, (int)n, i, j, 1, 1, &f));
  PetscCall(MatRestoreRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  for (int q = 0; q < NSIZES; q++) fprintf(b->out, "{\"record\": \"order\", \"matrix\": \"%s\", \"nnz\": %.0f, \"order\": \"%s\", \"size\": \"%dx%d\", \"fill\": %.6g}\n", name, (double)f.nnz, order, sizes[q][0], sizes[q][1], Fill(&f, q));
  if (perm) PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Orders(const Bench *b, const char name[], const GPUCSRSource *s)
{
  static const char *const orders[] = {MATORDERINGRCM, MATORDERINGND, MATORDERING1WD, MATORDERINGQMD, MATORDERINGROWLENGTH};
  Mat                      A;
  IS                       rows, columns;
  PetscInt                *shuffled;

  PetscFunctionBeginUser;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, s->m, s->n, (PetscInt *)s->i, (PetscInt *)s->j, (PetscScalar *)s->a, &A));
  PetscCall(Ordered(b, name, "natural", A, NULL));
  for (size_t k = 0; k < sizeof(orders) / sizeof(orders[0]); k++) {
    if (k == 3 && s->nnz > 100000) continue; /* takes minutes */
    PetscCall(MatGetOrdering(A, orders[k], &rows, &columns));
    PetscCall(Ordered(b, name, orders[k], A, rows));
    PetscCall(ISDestroy(&rows));
    PetscCall(ISDestroy(&columns));
  }
  PetscCall(PetscMalloc1(s->m, &shuffled));
  for (int r = 0; r < s->m; r++) shuffled[r] = r;
  for (int r = s->m - 1; r > 0; r--) {
    const int      q = (int)(SyntheticUniform(13, 0, (uint64_t)r) * (r + 1));
    const PetscInt t = shuffled[r];

    shuffled[r] = shuffled[q];
    shuffled[q] = t;
  }
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, s->m, shuffled, PETSC_OWN_POINTER, &rows));
  PetscCall(ISSetPermutation(rows));
  PetscCall(Ordered(b, name, "random", A, rows));
  PetscCall(ISDestroy(&rows));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Visit(void *ctx, const char name[], PetscBool real, const GPUCSRSource *s)
{
  Bench *b = (Bench *)ctx;

  PetscFunctionBeginUser;
  if (!s->nnz || (double)s->nnz > (double)b->most) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, %d entries\n", name, (int)s->nnz));
  PetscCall(Fractions(b, name, s));
  if (s->m == s->n && (double)s->nnz <= (double)b->most) PetscCall(Orders(b, name, s));
  b->n++;
  fflush(b->out);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Synthetic few[] = {
    {"mesh2_40k",   MESH2,    40000, 1,     0,  60, MESH_RANDOM, 0,   0, 0},
    {"mesh3_20k",   MESH3,    20000, 1,     0,  60, MESH_RANDOM, 0,   0, 0},
    {"mesh3_5k_u3", MESH3,    5000,  3,     0,  60, MESH_RANDOM, 0,   0, 0},
    {"random30k",   RANDOM,   30000, 30000, 20, 61, 0,           0,   0, 0},
    {"graph50k",    POWERLAW, 50000, 50000, 8,  62, 0,           0,   0, 0},
    {"fem3_12k",    RANDOM,   12000, 12000, 60, 63, 3,           500, 0, 0}
  };
  Bench     b                        = {.most = 2e6};
  char      name[PETSC_MAX_PATH_LEN] = "fill.jsonl";
  PetscBool generated                = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCheck(sizeof(PetscInt) == 4, PETSC_COMM_SELF, PETSC_ERR_SUP, "This needs a PETSc of 32-bit indices");
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", name, sizeof(name), NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-most", &b.most, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-generated", &generated, NULL));
  b.out = fopen(name, "w");
  PetscCheck(b.out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-o %s: cannot be written", name);
  PetscCall(BenchVisitFolders(Visit, &b));
  for (size_t k = 0; k < sizeof(few) / sizeof(few[0]) && generated; k++) PetscCall(BenchVisitGenerated(&few[k], 1, Visit, &b));
  (void)fclose(b.out);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d matrices\n", b.n));
  PetscCall(PetscFinalize());
  return 0;
}
