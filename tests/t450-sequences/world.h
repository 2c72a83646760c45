/* The two worlds of t450-sequences.c, and how their vectors and matrices are made and filled */
#define VECS     3 /* of each of the two spaces */
#define MATS     5 /* two square of space 0 (the last symmetric positive definite), 0 by 1, 1 by 0, and square of space 1 */
#define SPD      4
#define PRODUCTS 3
#define LENGTH   64
#define SIZE     40                           /* rows on a rank are fewer */
#define LARGE    (g.single ? 512.0 : 65536.0) /* entries beyond are made small again, long before sums stop being exact */

/* The spaces of the rows and columns of each matrix */
static const int rowspace[MATS] = {0, 0, 1, 1, 0}, colspace[MATS] = {0, 1, 0, 1, 0};

typedef struct {
  PetscBool          ref;
  Vec                v[2][VECS];
  PetscScalar       *open[2][VECS];   /* arrays that the program holds, to write */
  const PetscScalar *look[2][VECS];   /* and to read; where a rank has no entries, an array may be NULL, */
  PetscBool          out[2][2][VECS]; /* so this says which are out: open, look */
  PetscScalar       *placed[2][VECS]; /* the program's own, in place of the vector's */
  Mat                m[MATS];
  Mat                kept[PRODUCTS]; /* products of matrices, kept for new values */
  Mat               *gathered;       /* all of m[3] on each rank, kept likewise */
  KSP                ksp;
  PC                 pc;
} World;

/* What both worlds share */
static struct {
  MPI_Comm    comm;
  PetscInt    local[2], size[2], start[2];
  PetscMPIInt rank, ranks;
  uint32_t    seed;
  PetscBool   finite[2][VECS], small[2][VECS]; /* vectors, before a step */
  PetscBool   grown;                           /* entries of a matrix may be much larger */
  PetscScalar solved[SIZE];                    /* by the reference's factors */
  uint64_t    factors[PRODUCTS + 1];           /* hashes of the factors' patterns (or of the gathered matrix's) when the result was kept */
  PetscBool   again[PRODUCTS + 1];             /* they are the same */
  PetscBool   single;                          /* products in single precision */
  char        seqtype[64];                     /* what -mat_seqaij_type says */
  PetscBool   promised;                        /* the program does not look at the values of a matrix */
  World       w[2];                            /* the reference is 1 */
} g;

typedef struct {
  int op, p[4];
} Step;

/* Small integers: the same on all ranks, in both worlds */
static uint32_t Hash(uint32_t a, uint32_t b, uint32_t c)
{
  uint32_t h = a * 2654435761u ^ (b + 0x9e3779b9u) * 2246822519u ^ (c + 0x85ebca6bu) * 3266489917u;

  h = (h ^ (h >> 15)) * 2246822519u;
  h = (h ^ (h >> 13)) * 3266489917u;
  return h ^ (h >> 16);
}

static PetscScalar Small(uint32_t a, uint32_t b, uint32_t c)
{
  return (PetscScalar)((int)(Hash(a, b, c) % 7) - 3);
}

static PetscBool Same(PetscScalar x, PetscScalar y)
{
  return (PetscBool)(x == y || (x != x && y != y));
}

/* Matrices that PETSc makes from a reference's have no prefix: -mat_seqaij_type is for the other world */
static PetscErrorCode Enter(PetscBool ref)
{
  PetscFunctionBegin;
  if (!g.seqtype[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (ref) PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  else PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", g.seqtype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is every entry of each of the reference's vectors finite, and small? */
static PetscErrorCode Look(void)
{
  int is[2][2][VECS];

  PetscFunctionBegin;
  for (int s = 0; s < 2; s++)
    for (int k = 0; k < VECS; k++) {
      const PetscScalar *a;

      is[0][s][k] = is[1][s][k] = 1;
      PetscCall(VecGetArrayRead(g.w[1].v[s][k], &a));
      for (PetscInt i = 0; i < g.local[s]; i++) {
        if (PetscIsInfOrNanScalar(a[i])) is[0][s][k] = 0;
        else if (PetscAbsScalar(a[i]) > LARGE) is[1][s][k] = 0;
      }
      PetscCall(VecRestoreArrayRead(g.w[1].v[s][k], &a));
    }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, is, 4 * VECS, MPI_INT, MPI_MIN, g.comm));
  for (int s = 0; s < 2; s++)
    for (int k = 0; k < VECS; k++) {
      g.finite[s][k] = (PetscBool)is[0][s][k];
      g.small[s][k]  = (PetscBool)is[1][s][k];
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Making things */

static PetscErrorCode MakeVec(World *w, int s, PetscInt salt, Vec *v)
{
  char type[32] = "";

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", type, sizeof(type), NULL));
  if (w->ref || (salt % 3 == 1 && !type[0])) {
    PetscCall(VecCreate(g.comm, v));
    PetscCall(VecSetSizes(*v, g.local[s], g.size[s]));
    PetscCall(VecSetType(*v, VECSTANDARD));
  } else if (salt % 3 == 2) {
    if (s) PetscCall(MatCreateVecs(w->m[1], v, NULL));
    else PetscCall(MatCreateVecs(w->m[1], NULL, v));
  } else {
    PetscCall(VecCreate(g.comm, v));
    PetscCall(VecSetSizes(*v, g.local[s], g.size[s]));
    PetscCall(VecSetFromOptions(*v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By VecSetValues(), from one rank to all where there are several */
static PetscErrorCode FillVec(Vec v, int s, uint32_t salt)
{
  PetscFunctionBegin;
  for (PetscInt i = 0; i < g.size[s]; i++)
    if (i % g.ranks == g.rank) PetscCall(VecSetValue(v, i, Small(g.seed, salt, (uint32_t)i), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(v));
  PetscCall(VecAssemblyEnd(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values of A, at random places or (again) where there are entries already; symmetric and positive definite: I and a graph's Laplacian */
static PetscErrorCode FillMat(Mat A, int k, uint32_t salt)
{
  const PetscInt m = g.size[rowspace[k]], n = g.size[colspace[k]], r0 = g.start[rowspace[k]], r1 = r0 + g.local[rowspace[k]];

  PetscFunctionBegin;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt i = r0; i < r1; i++) {
    const int count = (int)(Hash(g.seed ^ 77, salt, (uint32_t)i) % 5);

    if (k == SPD) PetscCall(MatSetValue(A, i, i, 1.0, ADD_VALUES));
    if (!m || !n) continue;
    for (int q = 0; q < count; q++) {
      const PetscInt j = (PetscInt)(Hash(salt, (uint32_t)i, (uint32_t)q) % (uint32_t)n);

      if (k != SPD) PetscCall(MatSetValue(A, i, j, Small(salt, (uint32_t)i, (uint32_t)j), INSERT_VALUES));
      else {
        const PetscInt    at[2]     = {i, j};
        const PetscScalar number[4] = {1.0, -1.0, -1.0, 1.0};

        if (i != j) PetscCall(MatSetValues(A, 2, at, 2, at, number, ADD_VALUES));
      }
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakeMat(World *w, int k, uint32_t salt, Mat *A)
{
  char type[64];

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(MatCreate(g.comm, A));
  PetscCall(MatSetSizes(*A, g.local[rowspace[k]], g.local[colspace[k]], g.size[rowspace[k]], g.size[colspace[k]]));
  if (w->ref) PetscCall(MatSetOptionsPrefix(*A, "ref_"));
  PetscCall(MatSetType(*A, w->ref ? MATAIJ : type));
  if (!w->ref) PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(FillMat(*A, k, salt));
  PetscFunctionReturn(PETSC_SUCCESS);
}
