/* Operations on vectors, of t450-sequences.c */
/* --- Operations. p are any numbers; s is a space, a, b, c vectors of it, k a matrix */

#define SPACE int s = p[0] % 2
#define ONE   SPACE, a = p[1] % VECS
#define TWO   ONE, b = (a + 1 + p[2] % (VECS - 1)) % VECS
#define A_    w->v[s][a]
#define B_    w->v[s][b]

/* A matrix k, a vector a of its columns and b of its rows (another one than a, if the matrix is square) */
#define PRODUCT int k = p[0] % MATS, r = rowspace[k], c = colspace[k], a = p[1] % VECS, b = (a + 1 + p[2] % (VECS - 1)) % VECS

typedef PetscErrorCode Operation(World *w, const int p[4], double *result);

static PetscErrorCode Op_fill(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, FillVec(A_, s, (uint32_t)p[3]);
}

static PetscErrorCode Op_set(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, VecSet(A_, (PetscScalar)(p[2] % 5 - 2));
}

static PetscErrorCode Op_zero(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, VecZeroEntries(A_);
}

static PetscErrorCode Op_axpy(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecAXPY(A_, (PetscScalar)(p[3] % 5 - 2), B_);
}

static PetscErrorCode Op_aypx(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecAYPX(A_, (PetscScalar)(p[3] % 5 - 2), B_);
}

static PetscErrorCode Op_axpby(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecAXPBY(A_, (PetscScalar)(p[3] % 3 - 1), (PetscScalar)(p[3] / 3 % 3 - 1), B_);
}

static PetscErrorCode Op_waxpy(World *w, const int p[4], double *result)
{
  TWO;
  const int c = 3 - a - b;

  return (void)result, VecWAXPY(w->v[s][c], (PetscScalar)(p[3] % 5 - 2), A_, B_);
}

static PetscErrorCode Op_maxpy(World *w, const int p[4], double *result)
{
  TWO;
  const int         c       = 3 - a - b;
  const PetscScalar f[2]    = {(PetscScalar)(p[3] % 5 - 2), 1.0};
  Vec               from[2] = {A_, B_};

  return (void)result, VecMAXPY(w->v[s][c], 2, f, from);
}

static PetscErrorCode Op_times(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecPointwiseMult(w->v[s][3 - a - b], A_, B_);
}

static PetscErrorCode Op_copy(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecCopy(A_, B_);
}

static PetscErrorCode Op_swap(World *w, const int p[4], double *result)
{
  TWO;
  return (void)result, VecSwap(A_, B_);
}

static PetscErrorCode Op_scale(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, VecScale(A_, (PetscScalar)(p[3] % 5 - 2));
}

static PetscErrorCode Op_shift(World *w, const int p[4], double *result)
{
  ONE;
  return (void)result, VecShift(A_, (PetscScalar)(p[3] % 5 - 2));
}

static PetscErrorCode Op_dot(World *w, const int p[4], double *result)
{
  TWO;
  PetscScalar dot;

  PetscFunctionBegin;
  PetscCall(VecDot(A_, B_, &dot));
  *result = (double)PetscRealPart(dot);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_norm(World *w, const int p[4], double *result)
{
  ONE;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(VecNorm(A_, p[3] % 2 ? NORM_1 : NORM_INFINITY, &norm));
  if (g.finite[s][a]) *result = (double)norm; /* MPI_MAX may lose a NaN of PETSc's */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_sum(World *w, const int p[4], double *result)
{
  ONE;
  PetscScalar sum;

  PetscFunctionBegin;
  PetscCall(VecSum(A_, &sum));
  *result = (double)PetscRealPart(sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_strange(World *w, const int p[4], double *result)
{
  ONE;
  PetscScalar *x;

  PetscFunctionBegin;
  (void)result;
  PetscCall(VecGetArray(A_, &x));
  if (g.local[s]) x[p[2] % g.local[s]] = p[3] % 3 ? (p[3] % 3 == 1 ? PETSC_INFINITY : -PETSC_INFINITY) : (PetscScalar)NAN;
  PetscCall(VecRestoreArray(A_, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_write(World *w, const int p[4], double *result)
{
  ONE;
  PetscScalar *x;

  PetscFunctionBegin;
  (void)result;
  if (p[2] % 2) PetscCall(VecGetArrayWrite(A_, &x));
  else PetscCall(VecGetArray(A_, &x));
  for (PetscInt i = 0; i < g.local[s]; i++)
    if (p[2] % 2 || i % 2) x[i] = Small((uint32_t)p[3], (uint32_t)(g.start[s] + i), 5);
  if (p[2] % 2) PetscCall(VecRestoreArrayWrite(A_, &x));
  else PetscCall(VecRestoreArray(A_, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program takes an array, writes through it from time to time, and gives it back later or at the end */
static PetscErrorCode Op_open(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  (void)result;
  if (!w->out[0][s][a]) PetscCall(VecGetArray(A_, &w->open[s][a]));
  w->out[0][s][a] = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_poke(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  (void)result;
  if (w->open[s][a])
    for (PetscInt i = p[2] % 3; i < g.local[s]; i += 3) w->open[s][a][i] = Small((uint32_t)p[3], (uint32_t)(g.start[s] + i), 9);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_close(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  (void)result;
  if (w->out[0][s][a]) PetscCall(VecRestoreArray(A_, &w->open[s][a]));
  w->open[s][a] = NULL;
  if (w->out[1][s][a]) PetscCall(VecRestoreArrayRead(A_, &w->look[s][a]));
  w->look[s][a]   = NULL;
  w->out[0][s][a] = w->out[1][s][a] = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_look(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  if (!w->out[1][s][a]) PetscCall(VecGetArrayRead(A_, &w->look[s][a]));
  w->out[1][s][a] = PETSC_TRUE;
  for (PetscInt i = 0; i < g.local[s]; i++) *result += (double)PetscRealPart(w->look[s][a][i]) * (double)(i + 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a program sees through pointers that it holds */
static PetscErrorCode Op_see(World *w, const int p[4], double *result)
{
  ONE;
  const PetscScalar *x = w->open[s][a] ? w->open[s][a] : w->look[s][a];

  for (PetscInt i = 0; x && i < g.local[s]; i++) *result += (double)PetscRealPart(x[i]) * (double)(i + 1);
  return PETSC_SUCCESS;
}

static PetscErrorCode Op_place(World *w, const int p[4], double *result)
{
  ONE;
  PetscScalar *x;

  PetscFunctionBegin;
  (void)result;
  if (w->placed[s][a] || w->out[0][s][a] || w->out[1][s][a]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(g.local[s] + 1, &x));
  for (PetscInt i = 0; i < g.local[s]; i++) x[i] = Small((uint32_t)p[3], (uint32_t)(g.start[s] + i), 11);
  PetscCall(VecPlaceArray(A_, x));
  w->placed[s][a] = x;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_reset(World *w, const int p[4], double *result)
{
  ONE;

  PetscFunctionBegin;
  if (!w->placed[s][a] || w->out[0][s][a] || w->out[1][s][a]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecResetArray(A_));
  for (PetscInt i = 0; i < g.local[s]; i++) *result += (double)PetscRealPart(w->placed[s][a][i]) * (double)(i + 1);
  PetscCall(PetscFree(w->placed[s][a]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Free to go: nothing of it is out */
static PetscBool Free(World *w, int s, int a)
{
  return (PetscBool)(!w->out[0][s][a] && !w->out[1][s][a] && !w->placed[s][a]);
}

static PetscErrorCode Op_duplicate(World *w, const int p[4], double *result)
{
  ONE;
  Vec copy;

  PetscFunctionBegin;
  (void)result;
  PetscCall(VecDuplicate(A_, &copy));
  PetscCall(VecCopy(A_, copy));
  if (Free(w, s, a)) {
    PetscCall(VecDestroy(&A_));
    A_ = copy;
  } else PetscCall(VecDestroy(&copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_renew(World *w, const int p[4], double *result)
{
  ONE;
  Vec v;

  PetscFunctionBegin;
  (void)result;
  if (!Free(w, s, a)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MakeVec(w, s, p[2], &v));
  PetscCall(VecCopy(A_, v));
  PetscCall(VecDestroy(&A_));
  A_ = v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A piece, worked on alone */
static PetscErrorCode Op_piece(World *w, const int p[4], double *result)
{
  ONE;
  const PetscInt n = g.local[s], first = n ? p[2] % n : 0, step = 1 + p[3] % 2;
  IS             is;
  Vec            sub;
  PetscReal      norm;

  PetscFunctionBegin;
  if (w->out[0][s][a] || w->out[1][s][a]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ISCreateStride(g.comm, n ? (n - first - 1) / step + 1 : 0, g.start[s] + first, step, &is));
  PetscCall(VecGetSubVector(A_, is, &sub));
  if (p[3] % 5 == 0) { /* all of it anew, on the device alone */
    Vec copy;

    PetscCall(VecDuplicate(sub, &copy));
    PetscCall(VecSet(copy, (PetscScalar)(p[2] % 7)));
    PetscCall(VecCopy(copy, sub));
    PetscCall(VecDestroy(&copy));
  } else PetscCall(VecScale(sub, -1.0));
  if (p[3] % 7 < 3) { /* a piece of the piece */
    PetscInt start, nsub;
    IS       inner;
    Vec      subsub;

    PetscCall(VecGetOwnershipRange(sub, &start, NULL));
    PetscCall(VecGetLocalSize(sub, &nsub));
    PetscCall(ISCreateStride(g.comm, nsub / 2, start + nsub - nsub / 2, 1, &inner));
    PetscCall(VecGetSubVector(sub, inner, &subsub));
    PetscCall(VecShift(subsub, 1.0));
    PetscCall(VecRestoreSubVector(sub, inner, &subsub));
    PetscCall(ISDestroy(&inner));
  }
  PetscCall(VecShift(sub, (PetscScalar)(p[3] % 3)));
  PetscCall(VecNorm(sub, NORM_1, &norm));
  *result = (double)norm;
  PetscCall(VecRestoreSubVector(A_, is, &sub));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}
