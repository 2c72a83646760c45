/*
  PCFIELDSPLIT of one process, applied on the device: additive, (symmetric) multiplicative, and by a Schur complement. Kernels gather and add fields. Residuals take products with the whole matrix,
  or with the off-diagonal blocks of two fields. PETSc's own application uses VecScatter, which works on the host. PETSc applies all other kinds, for example the diagonal form of a Schur complement.
*/
#include "../petscprivate.h"
#include <petscksp.h>
#include "../blocks/device.h"
#include <string.h>

typedef struct {
  IS  is;
  int m, *index; /* its entries, on the device */
  Vec b, x;
} Field;

typedef struct {
  PetscInt n;
  Field   *field;
  KSP     *ksp;
  Vec      w;       /* has the size of the whole vector; with a Schur complement, of the field with a product in its right-hand side */
  Mat      B[2][2]; /* with a Schur complement: blocks, which are PETSc's */

  PCFieldSplitSchurFactType factors;
  void (*set)(void); /* PETSc's function for setting the factors */
} Fields;

static PetscErrorCode FieldSplitRelease(PCDevice d)
{
  Fields *f = (Fields *)d->data;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < f->n; k++) {
    PetscCall(GPUCSRFree(d->dev, sizeof(int) * (size_t)f->field[k].m, (void **)&f->field[k].index));
    PetscCall(ISDestroy(&f->field[k].is));
    PetscCall(VecDestroy(&f->field[k].b));
    PetscCall(VecDestroy(&f->field[k].x));
  }
  PetscCall(PetscFree(f->field));
  PetscCall(PetscFree(f->ksp));
  PetscCall(VecDestroy(&f->w));
  f->n = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A field: its entries on the device, and its vectors, also on the device; P: its block */
static PetscErrorCode TakeField(PC pc, PCDevice d, PetscInt k, Mat P, PetscBool *possible)
{
  Fields         *f = (Fields *)d->data;
  Field          *e = &f->field[k];
  PetscInt        m;
  const PetscInt *index;
  GPUCSRDevice    dev[2];
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(PCFieldSplitGetISByIndex(pc, k, &e->is));
  PetscCall(PetscObjectReference((PetscObject)e->is));
  PetscCall(ISGetLocalSize(e->is, &m));
  PetscCall(MatCreateVecs(P, &e->x, &e->b));
  PetscCall(VecGPUGetDevice(e->b, &dev[0]));
  PetscCall(VecGPUGetDevice(e->x, &dev[1]));
  *possible = (PetscBool)(dev[0] == d->dev && dev[1] == d->dev && e->b->map->n == m);
  if (!*possible) PetscFunctionReturn(PETSC_SUCCESS);
  e->m = (int)m;
  PetscCall(GPUCSRMalloc(d->dev, sizeof(int) * (size_t)m, "the entries of a field", (void **)&e->index));
  PetscCall(ISGetIndices(e->is, &index));
  ierr = GPUCSRUpload(d->dev, e->index, GPUCSR_INT32, index, GPUCSR_PETSCINT, (size_t)m, PETSC_FALSE, d->dev->stream, NULL);
  PetscCall(ISRestoreIndices(e->is, &index));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode View(PC pc, PetscErrorCode (*view)(PC, PetscViewer), FILE *text)
{
  PetscViewer    viewer;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIOpenWithFILE(PetscObjectComm((PetscObject)pc), text, &viewer));
  ierr = (*view)(pc, viewer);
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(ierr);
}

/* Which factors of the block LU are applied: no function of PETSc tells, but the view does. DIAG: also where it does not */
static PetscErrorCode SchurFactors(PC pc, PCDevice d, PCFieldSplitSchurFactType *factors)
{
  static const char word[] = "factorization ";
  char             *text   = NULL, *at;
  size_t            length;
  FILE             *memory = open_memstream(&text, &length);
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCheck(memory, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for the view of a preconditioner");
  ierr = View(pc, d->wrap->petsc.pc.view, memory);
  PetscCheck(!fclose(memory), PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for the view of a preconditioner");
  *factors = PC_FIELDSPLIT_SCHUR_FACT_DIAG;
  at       = ierr || !text ? NULL : strstr(text, word);
  for (int k = PC_FIELDSPLIT_SCHUR_FACT_LOWER; at && k <= PC_FIELDSPLIT_SCHUR_FACT_FULL; k++) {
    const char  *name = PCFieldSplitSchurFactTypes[k];
    const size_t n    = strlen(name);

    if (!strncmp(at + strlen(word), name, n) && at[strlen(word) + n] == '\n') *factors = (PCFieldSplitSchurFactType)k;
  }
  free(text);
  PetscFunctionReturn(ierr);
}

/* PETSc keeps its set-up, and the next application has the new factors */
static PetscErrorCode SetFactors(PC pc, PCFieldSplitSchurFactType factors)
{
  PCDevice d;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &d));
  d->fresh = d->settled = PETSC_FALSE;
  PetscCall((*(PetscErrorCode(*)(PC, PCFieldSplitSchurFactType))((Fields *)d->data)->set)(pc, factors));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FieldSplitTake(PC pc, PCDevice d, Vec x, PetscBool *possible)
{
  Fields         *f = (Fields *)d->data;
  PetscMPIInt     size;
  PCCompositeType type;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  PetscCall(PCFieldSplitGetType(pc, &type));
  *possible = (PetscBool)(size == 1 && (type == PC_COMPOSITE_ADDITIVE || type == PC_COMPOSITE_MULTIPLICATIVE || type == PC_COMPOSITE_SYMMETRIC_MULTIPLICATIVE || type == PC_COMPOSITE_SCHUR));
  PetscCall(FieldSplitRelease(d));
  if (!*possible) PetscFunctionReturn(PETSC_SUCCESS);
  if (type == PC_COMPOSITE_SCHUR) {
    Mat S;
    PetscObject explicit;
    PetscInt n;
    void (*set)(void) = NULL;

    PetscCall(PetscObjectQueryFunction((PetscObject)pc, "PCFieldSplitSetSchurFactType_C", &set));
    if (set && set != (void (*)(void))SetFactors) { /* PETSc sets the function again with the type */
      d->settled = PETSC_FALSE;
      f->set     = set;
      PetscCall(PetscObjectComposeFunction((PetscObject)pc, "PCFieldSplitSetSchurFactType_C", SetFactors));
    }
    PetscCall(PCFieldSplitSchurGetSubKSP(pc, &n, &f->ksp));
    PetscCall(PCFieldSplitSchurGetS(pc, &S));
    PetscCall(PetscObjectQuery((PetscObject)S, "AinvB", &explicit));
    *possible = (PetscBool)(n == 2 && !explicit); /* 3: the upper factor has a solver of its own */
    if (!d->settled) PetscCall(SchurFactors(pc, d, &f->factors));
    d->settled = PETSC_TRUE;
    if (f->factors == PC_FIELDSPLIT_SCHUR_FACT_DIAG) *possible = PETSC_FALSE;
    if (*possible) {
      PetscCall(PetscCalloc1(n, &f->field));
      f->n = n;
      PetscCall(PCFieldSplitGetSchurBlocks(pc, &f->B[0][0], &f->B[0][1], &f->B[1][0], &f->B[1][1]));
      for (PetscInt k = 0; k < 2 && *possible; k++) PetscCall(TakeField(pc, d, k, f->B[k][k], possible));
      if (*possible) PetscCall(VecDuplicate(f->field[f->factors == PC_FIELDSPLIT_SCHUR_FACT_UPPER ? 0 : 1].b, &f->w));
    }
  } else {
    PetscCall(PCFieldSplitGetSubKSP(pc, &f->n, &f->ksp));
    PetscCall(PetscCalloc1(f->n, &f->field));
    for (PetscInt k = 0; k < f->n && *possible; k++) {
      Mat P;

      PetscCall(KSPGetOperators(f->ksp[k], NULL, &P));
      PetscCall(TakeField(pc, d, k, P, possible));
    }
    if (type != PC_COMPOSITE_ADDITIVE && *possible) PetscCall(VecDuplicate(x, &f->w));
  }
  if (!*possible) PetscCall(FieldSplitRelease(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the vectors still on the device? A vector without memory on the device is not; NULL is ignored */
static PetscErrorCode AreOnDevice(PCDevice d, Vec u, Vec v, Vec w, PetscBool *yes)
{
  const Vec    all[] = {u, v, w};
  GPUCSRDevice dev;

  PetscFunctionBegin;
  *yes = PETSC_TRUE;
  for (int k = 0; k < 3; k++) {
    if (!all[k]) continue;
    PetscCall(VecGPUGetDevice(all[k], &dev));
    if (dev != d->dev) *yes = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b of a field = the entries of x */
static PetscErrorCode Gather(PCDevice d, const Field *e, Vec x)
{
  const double  *ax;
  double        *ab;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(VecGPUGetArrayRead(x, &ax));
  PetscCall(VecGPUGetArrayWrite(e->b, &ab));
  ierr = (*GPUCSRHelpers(d->dev)->gather)(d->dev, (int)e->m, GPUCSR_DOUBLE, e->index, ax, ab, d->dev->stream);
  PetscCall(VecGPURestoreArrayWrite(e->b, &ab));
  PetscCall(VecGPURestoreArrayRead(x, &ax));
  PetscFunctionReturn(ierr);
}

/* y += x of a field */
static PetscErrorCode Scatter(PCDevice d, const Field *e, Vec y)
{
  const double  *ax;
  double        *ay;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(VecGPUGetArrayRead(e->x, &ax));
  PetscCall(VecGPUGetArray(y, &ay));
  ierr = (*GPUCSRHelpers(d->dev)->scatteradd)(d->dev, (int)e->m, e->index, ax, ay, d->dev->stream);
  PetscCall(VecGPURestoreArray(y, &ay));
  PetscCall(VecGPURestoreArrayRead(e->x, &ax));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode Solve(PC pc, KSP ksp, const Field *e)
{
  PetscFunctionBegin;
  PetscCall(KSPSolve(ksp, e->b, e->x));
  PetscCall(KSPCheckSolve(ksp, pc, e->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y += the solution of field k for x, less A y unless y is zero. done: the vectors were all on the device */
static PetscErrorCode SolveAndAdd(PC pc, PCDevice d, PetscInt k, PetscBool zero, Vec x, Vec y, PetscBool *done)
{
  Fields *f = (Fields *)d->data;
  Field  *e = &f->field[k];

  PetscFunctionBegin;
  if (!zero) {
    PetscCall(MatMult(pc->pmat, y, f->w));
    PetscCall(VecAYPX(f->w, -1.0, x));
  }
  PetscCall(AreOnDevice(d, zero ? x : f->w, e->b, NULL, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Gather(d, e, zero ? x : f->w));
  PetscCall(Solve(pc, f->ksp[k], e));
  PetscCall(AreOnDevice(d, e->x, y, NULL, done));
  if (*done) PetscCall(Scatter(d, e, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If a vector has left the device meanwhile, PETSc's application starts anew */
static PetscErrorCode FieldSplitApply(PC pc, PCDevice d, Vec x, Vec y)
{
  Fields         *f    = (Fields *)d->data;
  PetscBool       done = PETSC_TRUE;
  PCCompositeType type;

  PetscFunctionBegin;
  PetscCall(PCFieldSplitGetType(pc, &type));
  /* do products with the matrix stand for those with PETSc's blocks? A reused preconditioner has blocks of old values */
  if (type == PC_COMPOSITE_MULTIPLICATIVE || type == PC_COMPOSITE_SYMMETRIC_MULTIPLICATIVE) {
    PetscBool amat;

    PetscCall(PCFieldSplitGetOffDiagUseAmat(pc, &amat));
    done = (PetscBool)(pc->matstate == ((PetscObject)pc->pmat)->state && (!amat || pc->mat == pc->pmat));
  }
  PetscCall(VecSet(y, 0.0));
  if (type == PC_COMPOSITE_SCHUR) {
    PetscCall(AreOnDevice(d, x, f->field[0].b, f->field[1].b, &done));
    /* the factors [1 0; C inv(A) 1] [A 0; 0 S] [1 inv(A) B; 0 1], of which LOWER leaves out the last, and UPPER the first */
    if (done) {
      const PetscBool upper = (PetscBool)(f->factors == PC_FIELDSPLIT_SCHUR_FACT_UPPER);
      Field          *first = &f->field[upper], *second = &f->field[!upper];

      PetscCall(Gather(d, first, x));
      PetscCall(Solve(pc, f->ksp[upper], first));
      /* b = the entries of x, less the other field's part of the product with the solution there */
      PetscCall(MatMult(f->B[!upper][upper], first->x, f->w));
      PetscCall(Gather(d, second, x));
      PetscCall(VecAXPY(second->b, -1.0, f->w));
      PetscCall(Solve(pc, f->ksp[!upper], second));
      if (f->factors == PC_FIELDSPLIT_SCHUR_FACT_FULL) {
        PetscCall(MatMult(f->B[0][1], second->x, first->x)); /* this, too, is where PETSc's solver may start from */
        PetscCall(VecAXPY(first->b, -1.0, first->x));
        PetscCall(Solve(pc, f->ksp[0], first));
      }
    }
    if (done) PetscCall(AreOnDevice(d, y, f->field[0].x, f->field[1].x, &done));
    for (PetscInt k = 0; k < 2 && done; k++) PetscCall(Scatter(d, &f->field[k], y));
  } else
    for (PetscInt k = 0; k < f->n && done; k++) PetscCall(SolveAndAdd(pc, d, k, (PetscBool)(k == 0 || type == PC_COMPOSITE_ADDITIVE), x, y, &done));
  for (PetscInt k = f->n - 2; k >= 0 && done && type == PC_COMPOSITE_SYMMETRIC_MULTIPLICATIVE; k--) PetscCall(SolveAndAdd(pc, d, k, PETSC_FALSE, x, y, &done));
  if (!done) PetscCall((*d->wrap->petsc.pc.apply)(pc, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const PCDeviceOps PCDeviceOps_FieldSplit = {sizeof(Fields), FieldSplitTake, FieldSplitApply, FieldSplitRelease};
