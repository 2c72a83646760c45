/*
  The type that computes a product of matrices. MatProductSetFromOptions() asks the factors for a function that all of them share, then for a function
  of the names of their types, then for a function of any types. Products that matmat.c does not compute go to MATAIJ or to the other factors.
*/
#include "../type/gpucsrimpl.h"

/* The factors, NULL behind the last */
static void Factors(Mat C, Mat M[4])
{
  M[0] = C->product->A;
  M[1] = C->product->B;
  M[2] = C->product->type == MATPRODUCT_ABC ? C->product->C : NULL;
  M[3] = NULL;
}

/* The common function of all factors for their products, as MATAIJ; NULL: there is none */
static PetscErrorCode Shared(const Mat M[], PetscErrorCode (**f)(Mat))
{
  PetscFunctionBegin;
  *f = NULL;
  for (int k = 0; M[k]; k++) {
    PetscErrorCode (*own)(Mat) = M[k]->ops->productsetfromoptions;

    if (MatGPUCSRIs(M[k])) own = ((Mat_GPUCSR *)M[k]->spptr)->parent.productsetfromoptions;
    if (k && own != *f) {
      *f = NULL;
      break;
    }
    *f = own;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host has the values of the factors and of the result. The virtual transpose of a factor has the factor's values */
static PetscErrorCode Fetch(Mat C, const Mat M[])
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(C));
  for (int k = 0; M[k]; k++) {
    Mat A = M[k];

    if (GPUCSRIsType(A, MATTRANSPOSEVIRTUAL)) PetscCall(MatTransposeGetMat(A, &A));
    PetscCall(MatGPUCSRFetch_Private(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The names of the parent's functions in a product */
static const char behindsymbolic[] = "MatGPUCSRProductSymbolic_C", behindnumeric[] = "MatGPUCSRProductNumeric_C";

static PetscErrorCode MatProductNumeric_Fetched(Mat);

/* MATAIJ computes C, and on the way the product of the first two of three factors: it changes both by operations, and reads their arrays */
static PetscErrorCode OnHost(Mat C, PetscErrorCode (*phase)(Mat))
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRHostWorks_Private(C, PETSC_TRUE));
  if (C->product) PetscCall(MatGPUCSRHostWorks_Private(C->product->Dwork, PETSC_TRUE));
  ierr = (*phase)(C);
  if (C->product) PetscCall(MatGPUCSRHostWorks_Private(C->product->Dwork, PETSC_FALSE));
  PetscCall(MatGPUCSRHostWorks_Private(C, PETSC_FALSE));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a phase, which may have replaced the result and its functions; numeric: the function before it */
static PetscErrorCode Keep(Mat C, PetscErrorCode (*numeric)(Mat))
{
  PetscFunctionBegin;
  if (!C->ops->productnumeric) PetscFunctionReturn(PETSC_SUCCESS);
  if (C->ops->productnumeric != MatProductNumeric_Fetched) numeric = C->ops->productnumeric;
  PetscCall(PetscObjectComposeFunction((PetscObject)C, behindnumeric, numeric));
  C->ops->productnumeric = MatProductNumeric_Fetched;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_Fetched(Mat C)
{
  PetscErrorCode (*numeric)(Mat);
  Mat M[4];

  PetscFunctionBegin;
  Factors(C, M);
  PetscCall(Fetch(C, M));
  PetscCall(PetscObjectQueryFunction((PetscObject)C, behindnumeric, &numeric));
  PetscCall(OnHost(C, numeric));
  PetscCall(Keep(C, numeric));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_Fetched(Mat C)
{
  PetscErrorCode (*symbolic)(Mat), (*shared)(Mat) = NULL;
  Mat            M[4], A                          = NULL;
  const char    *as   = NULL;
  char          *name = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  Factors(C, M);
  PetscCall(Fetch(C, M));
  PetscCall(PetscObjectQueryFunction((PetscObject)C, behindsymbolic, &symbolic));
  /* a factor takes another type name meanwhile. For A B^T, PETSc transposes B in B's type and then sets A's type, which would lose the transpose if one of them is gpucsr */
  if (C->product->type == MATPRODUCT_ABt) PetscCall(Shared(M, &shared));
  if (shared && !GPUCSRIsType(M[0], ((PetscObject)M[1])->type_name)) {
    A  = M[1];
    as = ((PetscObject)M[0])->type_name;
  } else if (C->product->type == MATPRODUCT_ABC && GPUCSRIsType(M[0], MATTRANSPOSEVIRTUAL)) { /* PETSc's hypre recognizes A in T(A) B C by its type name */
    PetscCall(MatTransposeGetMat(M[0], &A));
    if (MatGPUCSRIs(A)) as = ((Mat_GPUCSR *)A->spptr)->kind->parent;
    else A = NULL;
  }
  if (A) {
    PetscCall(PetscStrallocpy(((PetscObject)A)->type_name, &name));
    PetscCall(PetscObjectChangeTypeName((PetscObject)A, as));
  }
  ierr = OnHost(C, symbolic);
  if (A) PetscCall(PetscObjectChangeTypeName((PetscObject)A, name));
  PetscCall(PetscFree(name));
  PetscCall(ierr);
  PetscCall(Keep(C, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C is a parent's product, which reads the host's values: the factors' values come first, in each of its phases */
PetscErrorCode MatGPUCSRProductFetches_Private(Mat C)
{
  PetscFunctionBegin;
  if (!C->ops->productsymbolic || C->ops->productsymbolic == MatProductSymbolic_Fetched) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectComposeFunction((PetscObject)C, behindsymbolic, C->ops->productsymbolic));
  C->ops->productsymbolic = MatProductSymbolic_Fetched;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Asks for the product of the factors, gpucsr factors taken as their parents: by their common function, or by type names. There may be none. */
PetscErrorCode MatGPUCSRProductOfParents_Private(Mat C)
{
  char name[256]           = "MatProductSetFromOptions";
  PetscErrorCode (*f)(Mat) = NULL;
  Mat M[4];

  PetscFunctionBegin;
  Factors(C, M);
  PetscCall(Shared(M, &f));
  if (!f) {
    for (int k = 0; M[k]; k++) {
      PetscCall(PetscStrlcat(name, "_", sizeof(name)));
      PetscCall(PetscStrlcat(name, MatGPUCSRIs(M[k]) ? ((Mat_GPUCSR *)M[k]->spptr)->kind->parent : ((PetscObject)M[k])->type_name, sizeof(name)));
    }
    PetscCall(PetscStrlcat(name, "_C", sizeof(name)));
    for (int k = 0; M[k] && !f; k++) PetscCall(PetscObjectQueryFunction((PetscObject)M[k], name, &f));
  }
  if (f) PetscCall((*f)(C));
  PetscCall(MatGPUCSRProductFetches_Private(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* At least one factor is gpucsr. PETSc does not ask the other types (MATTRANSPOSEVIRTUAL, MATPYTHON) afterwards, so this function asks them */
PetscErrorCode MatProductSetFromOptions_GPUCSR(Mat C)
{
  Mat M[4];

  PetscFunctionBegin;
  Factors(C, M);
  C->ops->productsymbolic = NULL;
  C->ops->productnumeric  = NULL;
  PetscCall(MatGPUCSRProductOfParents_Private(C));
  for (int k = 0; M[k] && !C->ops->productsymbolic; k++) {
    PetscErrorCode (*f)(Mat) = NULL;

    PetscCall(PetscObjectQueryFunction((PetscObject)M[k], "MatProductSetFromOptions_anytype_C", &f));
    if (f && f != MatProductSetFromOptions_GPUCSR) PetscCall((*f)(C));
    if (C->product->A != M[0] || C->product->B != M[1]) break; /* C is another product now, and its factors have been asked */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The functions that PETSc finds by the names of the factors' types; seq is "seq" or "mpi" */
PetscErrorCode MatGPUCSRComposeProducts_Private(Mat A, const char seq[], PetscBool install)
{
  static const char *const dense[] = {"seqdense", "seqdensecuda", "mpidense"};
  char                     name[256];

  PetscFunctionBegin;
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(dense); s++) {
    PetscBool same;

    PetscCall(PetscStrncmp(dense[s], seq, 3, &same));
    if (!same) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_%saijgpucsr_%s_C", seq, dense[s]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatProductSetFromOptions_GPUCSR_Dense : NULL));
  }
  /* T(A) B C: MATAIJ has the product under the names of B and C, and MATTRANSPOSEVIRTUAL has none */
  for (int mixed = 0; mixed < 3; mixed++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_transpose_%saij%s_%saij%s_C", seq, mixed == 1 ? "" : "gpucsr", seq, mixed == 2 ? "" : "gpucsr"));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatProductSetFromOptions_GPUCSR : NULL));
  }
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_anytype_C", install ? MatProductSetFromOptions_GPUCSR : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}
