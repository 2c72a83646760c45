/*
  The type MATGPUCSR: its names, options and public functions. The products are in seqgpucsr.c, mpigpucsr.c and product/, the functions common to both
  types in inherit.c; plan/ chooses format and kernel.
*/
#include "gpucsrimpl.h"

const char *const        MatGPUCSRPrecisions[] = {"double", "single", "mixed", "auto", "MatGPUCSRPrecision", "MAT_GPUCSR_", NULL};
const char *const        MatGPUCSRBackends[]   = {"auto", "cuda", "host", "MatGPUCSRBackend", "MAT_GPUCSR_BACKEND_", NULL};
const char *const        MatGPUCSRMasters[]    = {"host", "device", "MatGPUCSRMaster", "MAT_GPUCSR_MASTER_", NULL};
const char *const        MatGPUCSRSelects[]    = {"estimate", "measure", "tree", "MatGPUCSRSelect", "MAT_GPUCSR_SELECT_", NULL};
static const char *const halos[]               = {"auto", "peer", "nccl", "staged", "GPUCSRHaloWay", "GPUCSR_HALO_", NULL};

GPUCSRLogEvent MAT_GPUCSR_Build, MAT_GPUCSR_Refresh, MAT_GPUCSR_Transpose, MAT_GPUCSR_Product, MAT_GPUCSR_Halo;

/*MC
  MATGPUCSR - "gpucsr" (or "aijgpucsr"), a sparse matrix whose products run on an NVIDIA GPU, in a PETSc with or without CUDA

  Options Database Keys:
+ -mat_type gpucsr                                    - makes a matrix of this type where the program calls `MatSetFromOptions()`
. -mat_seqaij_type seqaijgpucsr                       - makes one of every `MATSEQAIJ`, and of both blocks of every `MATMPIAIJ`
. -mat_gpucsr_backend (auto|cuda|host)                - where products run, see `MatGPUCSRSetBackend()`
. -mat_gpucsr_precision (double|single|mixed|auto)    - see `MatGPUCSRSetPrecision()`
. -mat_gpucsr_format (auto|aij|csr|sell|...)          - storage format of A, see `MatGPUCSRSetFormat()`
. -mat_gpucsr_kernel (auto|csr_scalar|...)            - kernel of the product with A, see `MatGPUCSRSetKernel()`
. -mat_gpucsr_transpose_format (auto|csr|sell|...)    - storage format of the resident transpose
. -mat_gpucsr_transpose_kernel (auto|csr_scalar|...)  - kernel of the product with the transpose
. -mat_gpucsr_select (estimate|measure|tree)          - how both are chosen if they are auto, see `MatGPUCSRSetSelect()`
. -mat_gpucsr_measure_budget n                        - products that measuring may take for each matrix, 50 by default
. -mat_gpucsr_expected_mults n                        - expected number of products, see `MatGPUCSRSetExpectedMults()`
. -mat_gpucsr_profile file                            - costs of products on this machine, written by `make tune`
. -mat_gpucsr_machine file                            - tuned constants of this machine, written by `make tune`
. -mat_gpucsr_sample fraction                         - fraction of the rows that estimates of block structure read, 0.01 by default
. -mat_gpucsr_small_on_host (true|false)              - under backend auto, `MATAIJ` computes products of host vectors where it is predicted to be faster
. -mat_gpucsr_product_least n                         - `MATAIJ` computes products of two sparse matrices with fewer nonzeros, 20000 by default
. -mat_gpucsr_solve_kernel (auto|host|ranges|...)     - kernel of solves with the triangles of a factor, see `MATSOLVERGPUCSR`
. -mat_gpucsr_cudss_library file                      - libcudss.so.1, for LU and Cholesky, see `MATSOLVERCUDSS`
. -mat_gpucsr_cudss_least n                           - rows from which factors use an installed cuDSS without -pc_factor_mat_solver_type cudss; 10000
. -mat_gpucsr_cudss_reordering (auto|amd|...)         - its ordering of the unknowns
. -mat_gpucsr_cudss_matching (auto|none|product|...)  - entries that it brings to the diagonal
. -mat_gpucsr_cudss_pivoting (auto|none|block|...)    - its search for pivots
. -mat_gpucsr_cudss_hybrid (auto|never|always)        - factors in host memory
. -mat_gpucsr_cudss_deterministic (true|false)        - the same bits in every run
. -mat_gpucsr_cudss_check (auto|never|always)         - check of its solutions
. -mat_gpucsr_cudss_refine n                          - most steps of refinement, 5 by default
. -mat_gpucsr_cudss_error e                           - backward error above which a solution is refused, 1e-10 by default
. -mat_gpucsr_transpose_at_assembly (true|false)      - build the transpose at assembly, not at the first product that needs it
. -mat_gpucsr_master (host|device)                    - which copy of the values is the master, see `MatGPUCSRSetMaster()`
. -mat_gpucsr_halo (auto|peer|nccl|staged)            - how ranks exchange entries of vectors: into each other's device memory, by NCCL, or through the host
. -mat_gpucsr_device_map 0,1,...                      - device of each rank of a node, repeated when there are more ranks
. -mat_gpucsr_threads n                               - host threads that convert and copy, at most 8 by default
. -mat_gpucsr_pin_vectors (true|false)                - page-lock large host vectors in place while they live
. -mat_gpucsr_memory_limit bytes                      - largest device memory one rank may use, 0 for no limit
. -mat_gpucsr_advise                                  - before the first product, recommend the CPU or the GPU, see `MatGPUCSRAdvise()`; at the end, print the error of the prediction
- -mat_gpucsr_report [full][:file]                    - at the end, print the times of products and a line for each matrix; full: each matrix' format, the reason for it, and the speed of its products

  Level: beginner

  Notes:
  Load the library with -dll_append libpetscgpucsr.so, or link it and call `MatGPUCSRInitializePackage()`.

  The host's `MATAIJ` stays the master copy: every operation of `MATAIJ` works as for `MATAIJ`. The device copy is updated at the next product, values alone if the pattern is unchanged.

  A. H. El Zein and A. P. Rendell (Generating optimal CUDA sparse matrix-vector product implementations for evolving GPU hardware, Concurrency and Computation 2012) choose among
  several kernels for each matrix, as this type does.

.seealso: `MATSEQAIJGPUCSR`, `MATMPIAIJGPUCSR`, `MatCreateAIJGPUCSR()`, `MatGPUCSRSetFormat()`, `MatGPUCSRGetInfo()`
M*/

/* A bad value of an option is reported once for the matrix, not by each rank */
#define OPTION(call) \
  do { \
    GPUCSRTry(&attempt, call); \
    PetscCheck(!attempt.error, PetscObjectComm((PetscObject)A), attempt.error, "%s", attempt.message); \
    *changed = (PetscBool)(*changed || set); \
  } while (0)

/* changed: an option was given */
PetscErrorCode MatGPUCSRConfigOptions_Private(Mat A, MatGPUCSRConfig *c, PetscBool *changed, GPUCSROptionItems PetscOptionsObject)
{
  MatGPUCSRSelect select   = MAT_GPUCSR_SELECT_ESTIMATE;
  MatGPUCSRMaster master   = c->masterdevice ? MAT_GPUCSR_MASTER_DEVICE : MAT_GPUCSR_MASTER_HOST;
  PetscInt        budget   = c->request.budget ? c->request.budget : 50;
  PetscReal       expected = (PetscReal)c->request.expected;
  PetscBool       small    = c->smallonhost ? PETSC_TRUE : PETSC_FALSE;
  GPUCSRAttempt   attempt;
  PetscBool       set = PETSC_FALSE;

  PetscFunctionBegin;
  *changed = PETSC_FALSE;
  PetscOptionsHeadBegin(PetscOptionsObject, "MATGPUCSR options");
  OPTION(PetscOptionsEnum("-mat_gpucsr_backend", "Where products run", "MatGPUCSRSetBackend", MatGPUCSRBackends, (PetscEnum)c->backend, (PetscEnum *)&c->backend, &set));
  OPTION(PetscOptionsEnum("-mat_gpucsr_precision", "Digits of values and vectors on the device", "MatGPUCSRSetPrecision", MatGPUCSRPrecisions, (PetscEnum)c->precision, (PetscEnum *)&c->precision, &set));
  OPTION(PetscOptionsString("-mat_gpucsr_format", "Storage format of A", "MatGPUCSRSetFormat", c->request.format, c->request.format, GPUCSR_WORD, &set));
  OPTION(PetscOptionsString("-mat_gpucsr_kernel", "Kernel of the product with A", "MatGPUCSRSetKernel", c->request.kernel, c->request.kernel, GPUCSR_WORD, &set));
  OPTION(PetscOptionsString("-mat_gpucsr_transpose_format", "Storage format of the resident transpose", "MatGPUCSRSetTransposeFormat", c->trequest.format, c->trequest.format, GPUCSR_WORD, &set));
  OPTION(PetscOptionsString("-mat_gpucsr_transpose_kernel", "Kernel of the product with the transpose", "MatGPUCSRSetTransposeKernel", c->trequest.kernel, c->trequest.kernel, GPUCSR_WORD, &set));
  OPTION(PetscOptionsEnum("-mat_gpucsr_select", "How format and kernel are chosen", "MatGPUCSRSetSelect", MatGPUCSRSelects, (PetscEnum)c->request.select, (PetscEnum *)&select, &set));
  if (set) c->request.select = c->trequest.select = (GPUCSRSelect)select;
  OPTION(PetscOptionsInt("-mat_gpucsr_measure_budget", "Products that measuring may take", "MatGPUCSRSetSelect", budget, &budget, &set));
  PetscCheck(budget > 0 && budget <= 1000000, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_measure_budget %" PetscInt_FMT ": must be a number of products from 1 to 1000000", budget);
  c->request.budget = c->trequest.budget = (int)budget;
  OPTION(PetscOptionsReal("-mat_gpucsr_expected_mults", "Products that the matrix will live for", "MatGPUCSRSetExpectedMults", expected, &expected, &set));
  PetscCheck(expected >= 0, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_expected_mults %g: must be a number of products, or 0 for so many that the conversion does not count", (double)expected);
  c->request.expected = c->trequest.expected = (double)expected;
  OPTION(PetscOptionsBool("-mat_gpucsr_small_on_host", "Under backend auto, leave products to the CPU where the matrix is small and its vectors are there", "MATGPUCSR", small, &small, &set));
  if (set) c->smallonhost = small ? 1 : 0;
  OPTION(PetscOptionsInt("-mat_gpucsr_product_least", "Nonzeros of two sparse matrices below which their product is MATAIJ's", "MATGPUCSR", c->productleast, &c->productleast, &set));
  OPTION(PetscOptionsBool("-mat_gpucsr_transpose_at_assembly", "Build the transpose at assembly", "MatGPUCSRSetTransposeAtAssembly", c->transposeatassembly, &c->transposeatassembly, &set));
  OPTION(PetscOptionsEnum("-mat_gpucsr_master", "Which copy of the values is the master", "MatGPUCSRSetMaster", MatGPUCSRMasters, (PetscEnum)master, (PetscEnum *)&master, &set));
  c->masterdevice = (PetscBool)(master == MAT_GPUCSR_MASTER_DEVICE);
  OPTION(PetscOptionsEnum("-mat_gpucsr_halo", "How ranks exchange entries of vectors", "MATGPUCSR", halos, (PetscEnum)c->halo, (PetscEnum *)&c->halo, &set));
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks that the words exist and fit each other */
PetscErrorCode MatGPUCSRConfigCheck_Private(Mat A, const MatGPUCSRConfig *c)
{
  const MPI_Comm comm   = PetscObjectComm((PetscObject)A);
  const char    *prefix = ((PetscObject)A)->prefix ? ((PetscObject)A)->prefix : "";
  char           list[GPUCSR_NAMES];
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    const GPUCSRRequest *q    = k ? &c->trequest : &c->request;
    const char          *side = k ? "transpose_" : ""; /* part of the option's name */
    const PetscBool      aij  = (PetscBool)!strcmp(q->format, "aij");

    PetscCheck(!aij || !k, comm, PETSC_ERR_ARG_WRONG, "-%smat_gpucsr_%sformat aij: a transpose is kept on the device or not at all; take -%smat_gpucsr_format aij for both", prefix, side, prefix);
    PetscCall(GPUCSRFormatNames(list, sizeof(list)));
    PetscCheck(!strcmp(q->format, "auto") || aij || GPUCSRFormatFind(q->format), comm, PETSC_ERR_ARG_UNKNOWN_TYPE, "-%smat_gpucsr_%sformat %s: must be one of auto, %s%s", prefix, side, q->format, k ? "" : "aij, ", list);
    PetscCall(GPUCSRKernelNames(NULL, list, sizeof(list)));
    PetscCheck(!strcmp(q->kernel, "auto") || GPUCSRKernelFind(q->kernel), comm, PETSC_ERR_ARG_UNKNOWN_TYPE, "-%smat_gpucsr_%skernel %s: must be one of auto, %s", prefix, side, q->kernel, list);
    GPUCSRTry(&attempt, GPUCSRRequestCheck(q));
    PetscCheck(!attempt.error, comm, attempt.error, "-%smat_gpucsr_%skernel: %s", prefix, side, attempt.message);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Vectors are where products run. On a device they are VECCUDA in a PETSc with CUDA, else VECGPU; on the host they are host vectors. -vec_type overrides the
  type. PETSc compares the names of matrices' vector types (MatCreateLRC()), so VECGPU by default is not recorded as a name.
*/
PetscErrorCode MatGPUCSRVecType_Private(Mat A, const MatGPUCSRConfig *c)
{
  GPUCSRDevice dev = NULL;
  PetscBool    aij = (PetscBool)(!strcmp(c->request.format, "aij")), have;
  char         why[512];
  VecType      type;

  PetscFunctionBegin;
  ((Mat_GPUCSR *)A->spptr)->devicevectors = PETSC_FALSE;
  PetscCall(VecGPUTypeAsked(&type));
  if (type) {
    ((Mat_GPUCSR *)A->spptr)->devicevectors = (PetscBool)(!strcmp(type, VECGPU));
    if (PetscDefined(USE_DEBUG)) ((Mat_GPUCSR *)A->spptr)->devicevectors = PETSC_FALSE; /* the program chose the type's name */
  } else {
    type = VECSTANDARD;
    if (MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_HOST && !aij && GPUCSR_SCALAR_IS_DOUBLE) PetscCall(GPUCSRDeviceOpen("cuda", &dev, why, sizeof(why)));
    have = dev ? PETSC_TRUE : PETSC_FALSE;
    if (PetscDefined(HAVE_CUDA) && dev && !dev->ops->kernels) have = PETSC_FALSE; /* a stand-in for a GPU has no VECCUDA */
                                                                                  /* one type on all ranks, though a rank may lack a device: VECGPU also works without a device */
#if PetscDefined(HAVE_CUDA)
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &have, 1, GPUCSR_MPI_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
    if (have) type = VECCUDA;
#else
    if (VecGPUSeparate() && MatGPUCSRBackendOf(A) == MAT_GPUCSR_BACKEND_HOST && !aij) have = PETSC_TRUE; /* it acts as a device */
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &have, 1, GPUCSR_MPI_BOOL, MPI_LOR, PetscObjectComm((PetscObject)A)));
    ((Mat_GPUCSR *)A->spptr)->devicevectors = have;
#endif
  }
  PetscCall(PetscFree(A->defaultvectype));
  PetscCall(PetscStrallocpy(type, &A->defaultvectype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Configures A, unless nothing changes: then the device's data stays. No effect on a matrix of another type */
PetscErrorCode MatGPUCSRReconfigure_Private(Mat A, const MatGPUCSRConfig *c)
{
  PetscBool done = (PetscBool)!MatGPUCSRIs(A);

  PetscFunctionBegin;
  if (!done) PetscCall(PetscMemcmp(&((Mat_GPUCSR *)A->spptr)->config, c, sizeof(*c), &done));
  if (!done) PetscCall(MatGPUCSRConfigure_Private(A, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes one member of the configuration; no effect on a matrix of another type */
#define CONFIGURE(A, statement) \
  do { \
    if (MatGPUCSRIs(A)) { \
      MatGPUCSRConfig c = ((Mat_GPUCSR *)(A)->spptr)->config; \
\
      statement; \
      PetscCall(MatGPUCSRReconfigure_Private(A, &c)); \
    } \
  } while (0)

/*@
  MatGPUCSRSetBackend - Choose where the products of a `MATGPUCSR` matrix run

  Logically Collective

  Input Parameters:
+ A - the matrix
- b - `MAT_GPUCSR_BACKEND_AUTO` (the default), `MAT_GPUCSR_BACKEND_CUDA` or `MAT_GPUCSR_BACKEND_HOST`

  Options Database Key:
. -mat_gpucsr_backend (auto|cuda|host) - the same

  Level: beginner

  Notes:
  If the matrix does not fit the device, or the device fails, auto prints one warning and continues on the host; cuda raises an error. With auto, the host computes products of host vectors with a matrix so small that the host is faster; with cuda, the device does. Setting the backend frees the matrix' device memory, which the next product fills again.

  On the host, `MATAIJ` computes the products unless a format, a kernel or a precision is asked for.

.seealso: `MATGPUCSR`, `MatGPUCSRBackend`, `MatGPUCSRSetFormat()`
@*/
PetscErrorCode MatGPUCSRSetBackend(Mat A, MatGPUCSRBackend b)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscValidLogicalCollectiveEnum(A, b, 2);
  PetscCheck((int)b >= 0 && b <= MAT_GPUCSR_BACKEND_HOST, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "SetBackend %d: must be one of MAT_GPUCSR_BACKEND_AUTO, MAT_GPUCSR_BACKEND_CUDA, MAT_GPUCSR_BACKEND_HOST", (int)b);
  CONFIGURE(A, c.backend = b);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGPUCSRSetPrecision - Choose the precision of a `MATGPUCSR` matrix on the device

  Logically Collective

  Input Parameters:
+ A - the matrix
- p - one of `MatGPUCSRPrecision`; `MAT_GPUCSR_DOUBLE` is the default

  Options Database Key:
. -mat_gpucsr_precision (double|single|mixed|auto) - the same

  Level: intermediate

  Note:
  `MatView()` with `PETSC_VIEWER_ASCII_INFO` prints the largest relative rounding of a value if digits are dropped.

.seealso: `MATGPUCSR`, `MatGPUCSRPrecision`
@*/
PetscErrorCode MatGPUCSRSetPrecision(Mat A, MatGPUCSRPrecision p)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscValidLogicalCollectiveEnum(A, p, 2);
  PetscCheck((int)p >= 0 && p <= MAT_GPUCSR_AUTO, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "SetPrecision %d: must be one of MAT_GPUCSR_DOUBLE, MAT_GPUCSR_SINGLE, MAT_GPUCSR_MIXED, MAT_GPUCSR_AUTO", (int)p);
  CONFIGURE(A, c.precision = p);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRSetFormat - Choose the storage format of a `MATGPUCSR` matrix on the device

  Logically Collective

  Input Parameters:
+ A      - the matrix
- format - "auto" (the default: chosen from the matrix), "aij" (`MATAIJ` computes the products), or a format by name: {formats}

  Options Database Key:
. -mat_gpucsr_format format - the same

  Level: intermediate

  Notes:
  With aij products run on the host, whatever the backend.

  An unknown word is an error that lists the formats; a format that does not fit the kernel asked for is an error, too.

.seealso: `MATGPUCSR`, `MatGPUCSRSetKernel()`, `MatGPUCSRSetTransposeFormat()`
@*/
PetscErrorCode MatGPUCSRSetFormat(Mat A, const char format[])
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointerCompat(format, 2);
  CONFIGURE(A, PetscCall(PetscStrncpy(c.request.format, format, GPUCSR_WORD)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRSetKernel - Choose the kernel of the product with a `MATGPUCSR` matrix

  Logically Collective

  Input Parameters:
+ A      - the matrix
- kernel - "auto" (the default), or a kernel by name: {kernels}

  Options Database Key:
. -mat_gpucsr_kernel kernel - the same

  Level: intermediate

  Notes:
  If the format is auto, the kernel determines it. auto takes the kernel with the least predicted time; kernels of papers (csr_scan, bcsr_twostep and others) run only by name. A report lists all kernels with their predicted times.

  An unknown word is an error that lists the kernels; any kernel with format aij is an error, too.

.seealso: `MATGPUCSR`, `MatGPUCSRSetFormat()`, `MatGPUCSRSetTransposeKernel()`
@*/
PetscErrorCode MatGPUCSRSetKernel(Mat A, const char kernel[])
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointerCompat(kernel, 2);
  CONFIGURE(A, PetscCall(PetscStrncpy(c.request.kernel, kernel, GPUCSR_WORD)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRSetTransposeFormat - Choose the storage format of the resident transpose of a `MATGPUCSR` matrix

  Logically Collective

  Input Parameters:
+ A      - the matrix
- format - "auto" (the default: chosen from the transpose), or a format by name, as in `MatGPUCSRSetFormat()`

  Options Database Key:
. -mat_gpucsr_transpose_format format - the same

  Level: intermediate

  Note:
  "aij" is an error: a transpose is kept on the device or not at all. `MatGPUCSRSetFormat()` with "aij" applies to both.

.seealso: `MATGPUCSR`, `MatGPUCSRSetFormat()`, `MatGPUCSRSetTransposeKernel()`, `MatGPUCSRSetTransposeAtAssembly()`
@*/
PetscErrorCode MatGPUCSRSetTransposeFormat(Mat A, const char format[])
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointerCompat(format, 2);
  CONFIGURE(A, PetscCall(PetscStrncpy(c.trequest.format, format, GPUCSR_WORD)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRSetTransposeKernel - Choose the kernel of the product with the transpose of a `MATGPUCSR` matrix

  Logically Collective

  Input Parameters:
+ A      - the matrix
- kernel - as in `MatGPUCSRSetKernel()`

  Options Database Key:
. -mat_gpucsr_transpose_kernel kernel - the same

  Level: intermediate

.seealso: `MATGPUCSR`, `MatGPUCSRSetKernel()`, `MatGPUCSRSetTransposeFormat()`
@*/
PetscErrorCode MatGPUCSRSetTransposeKernel(Mat A, const char kernel[])
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointerCompat(kernel, 2);
  CONFIGURE(A, PetscCall(PetscStrncpy(c.trequest.kernel, kernel, GPUCSR_WORD)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGPUCSRSetSelect - Choose how a `MATGPUCSR` matrix selects its format and kernel if none is asked for

  Logically Collective

  Input Parameters:
+ A - the matrix
- s - one of `MatGPUCSRSelect`; `MAT_GPUCSR_SELECT_ESTIMATE` is the default

  Options Database Keys:
+ -mat_gpucsr_select (estimate|measure|tree) - the same
- -mat_gpucsr_measure_budget n                     - products that measuring may take for each matrix, 50 by default; conversions come on top

  Level: intermediate

  Notes:
  A and its transpose are chosen separately. -mat_gpucsr_report full lists every candidate with its predicted and, if it was timed, its measured time.

  Measuring needs a GPU; on the host, measure acts as estimate.

.seealso: `MATGPUCSR`, `MatGPUCSRSelect`, `MatGPUCSRSetFormat()`, `MatGPUCSRSetKernel()`, `MatGPUCSRSetExpectedMults()`
@*/
PetscErrorCode MatGPUCSRSetSelect(Mat A, MatGPUCSRSelect s)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscValidLogicalCollectiveEnum(A, s, 2);
  PetscCheck((int)s >= 0 && s <= MAT_GPUCSR_SELECT_TREE, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "SetSelect %d: must be one of MAT_GPUCSR_SELECT_ESTIMATE, MAT_GPUCSR_SELECT_MEASURE, MAT_GPUCSR_SELECT_TREE", (int)s);
  CONFIGURE(A, c.request.select = c.trequest.select = (GPUCSRSelect)s);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGPUCSRSetExpectedMults - Set the expected number of products of a `MATGPUCSR` matrix, over which the cost of its conversion is spread

  Logically Collective

  Input Parameters:
+ A - the matrix
- n - number of products; 0 (the default) ignores the cost of conversion

  Options Database Key:
. -mat_gpucsr_expected_mults n - the same

  Level: intermediate

  Note:
  With few products the matrix stays in CSR, the format of the upload.

.seealso: `MATGPUCSR`, `MatGPUCSRSetSelect()`
@*/
PetscErrorCode MatGPUCSRSetExpectedMults(Mat A, PetscReal n)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscValidLogicalCollectiveReal(A, n, 2);
  PetscCheck(n >= 0, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "Number of products %g is negative", (double)n);
  CONFIGURE(A, c.request.expected = c.trequest.expected = (double)n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGPUCSRSetMaster - Choose which copy of the values of a `MATGPUCSR` matrix is the master

  Logically Collective

  Input Parameters:
+ A      - the matrix
- master - `MAT_GPUCSR_MASTER_HOST` (the default) or `MAT_GPUCSR_MASTER_DEVICE`

  Options Database Key:
. -mat_gpucsr_master (host|device) - the same

  Level: intermediate

  Notes:
  With host, values that the device has computed (`MatSetValuesCOO()`, `MatScale()`, `MatAXPY()`, ...) are in the host's array before the operation returns.

  With device, the program promises that the host's array is read through operations of the matrix alone. Then values stay on the device: the host's array holds NaN until an operation
  that needs the host (`MatGetRow()`, `MatSetValues()`, `MatView()`, ...) fetches the values. All further readers read NaN, for example `MatSeqAIJGetArray()` and factorizations of external packages.
  If PETSc writes all values of the array, as `MatTranspose()` does with `MAT_REUSE_MATRIX`, they replace the values of the device.

  A change of the setting frees the matrix' device memory. The host backend ignores the setting.

.seealso: `MATGPUCSR`, `MatSetValuesCOO()`, `MatGPUCSRMaster`
@*/
PetscErrorCode MatGPUCSRSetMaster(Mat A, MatGPUCSRMaster master)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscValidLogicalCollectiveEnum(A, master, 2);
  CONFIGURE(A, c.masterdevice = (PetscBool)(master == MAT_GPUCSR_MASTER_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGPUCSRSetTransposeAtAssembly - Choose whether assembly builds the resident transpose of a `MATGPUCSR` matrix

  Logically Collective

  Input Parameters:
+ A   - the matrix
- flg - `PETSC_TRUE`: at the end of each assembly; `PETSC_FALSE` (the default): at the first transposed product

  Options Database Key:
. -mat_gpucsr_transpose_at_assembly (true|false) - the same

  Level: intermediate

.seealso: `MATGPUCSR`, `MatGPUCSRSetUp()`
@*/
PetscErrorCode MatGPUCSRSetTransposeAtAssembly(Mat A, PetscBool flg)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscValidLogicalCollectiveBool(A, flg, 2);
  CONFIGURE(A, c.transposeatassembly = flg);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGPUCSRSetUp - Make a `MATGPUCSR` matrix ready for products now, rather than at the first one

  Collective

  Input Parameters:
+ A         - the matrix, assembled
- transpose - prepare the transpose, too

  Level: intermediate

  Note:
  Does the work of the first product: inspects, chooses, converts and uploads all changes.

.seealso: `MATGPUCSR`, `MatGPUCSRSetTransposeAtAssembly()`
@*/
PetscErrorCode MatGPUCSRSetUp(Mat A, PetscBool transpose)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCheck(A->assembled, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The matrix must be assembled first: call MatAssemblyBegin() and MatAssemblyEnd()");
  PetscTryMethod(A, "MatGPUCSRSetUp_C", (Mat, PetscBool), (A, transpose));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGPUCSRGetInfo - Get the format, the sizes and the work of a `MATGPUCSR` matrix on this rank

  Not Collective

  Input Parameter:
. A - the matrix

  Output Parameter:
. info - see `MatGPUCSRInfo`; times in seconds, sizes in bytes

  Level: intermediate

  Note:
  Times of products, and of the copies of their vectors, are measured only with -mat_gpucsr_report, on the device. Copies and products overlap, so the sum of their times may exceed the elapsed time.

.seealso: `MATGPUCSR`, `MatGPUCSRInfo`
@*/
PetscErrorCode MatGPUCSRGetInfo(Mat A, MatGPUCSRInfo *info)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointerCompat(info, 2);
  PetscUseMethod(A, "MatGPUCSRGetInfo_C", (Mat, MatGPUCSRInfo *), (A, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatCreateSeqAIJGPUCSR - Create a matrix of type `MATSEQAIJGPUCSR` with memory for its nonzeros

  Collective

  Input Parameters:
+ comm - a communicator of one process
. m    - rows
. n    - columns
. nz   - nonzeros a row, when nnz is `NULL`
- nnz  - nonzeros of each row, or `NULL`

  Output Parameter:
. A - the matrix

  Level: beginner

.seealso: `MATSEQAIJGPUCSR`, `MatCreateSeqAIJ()`, `MatCreateAIJGPUCSR()`
@*/
PetscErrorCode MatCreateSeqAIJGPUCSR(MPI_Comm comm, PetscInt m, PetscInt n, PetscInt nz, const PetscInt nnz[], Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRInitialize_Private(PETSC_COMM_SELF));
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetType(*A, MATSEQAIJGPUCSR));
  PetscCall(MatSeqAIJSetPreallocation(*A, nz, nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatCreateAIJGPUCSR - Create a matrix of type `MATGPUCSR` with memory for its nonzeros

  Collective

  Input Parameters:
+ comm  - communicator
. m     - rows on this rank, or `PETSC_DECIDE`
. n     - columns of the diagonal block on this rank, or `PETSC_DECIDE`
. M     - rows in all, or `PETSC_DETERMINE`
. N     - columns in all, or `PETSC_DETERMINE`
. d_nz  - nonzeros a row of the diagonal block, when d_nnz is `NULL`
. d_nnz - nonzeros of each row of the diagonal block, or `NULL`
. o_nz  - the same for the off-diagonal block
- o_nnz - the same for the off-diagonal block

  Output Parameter:
. A - the matrix

  Level: beginner

.seealso: `MATGPUCSR`, `MatCreateAIJ()`, `MatCreateSeqAIJGPUCSR()`
@*/
PetscErrorCode MatCreateAIJGPUCSR(MPI_Comm comm, PetscInt m, PetscInt n, PetscInt M, PetscInt N, PetscInt d_nz, const PetscInt d_nnz[], PetscInt o_nz, const PetscInt o_nnz[], Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRInitialize_Private(PETSC_COMM_SELF));
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, n, M, N));
  PetscCall(MatSetType(*A, MATGPUCSR));
  PetscCall(MatSeqAIJSetPreallocation(*A, d_nz, d_nnz));
  PetscCall(MatMPIAIJSetPreallocation(*A, d_nz, d_nnz, o_nz, o_nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Mat types and events, for MatGPUCSRInitializePackage() */
PetscErrorCode MatGPUCSRRegister_Private(void)
{
  PetscErrorCode (*create)(Mat) = NULL;

  PetscFunctionBegin;
  PetscCall(MatInitializePackage());
  PetscCall(PetscFunctionListFind(MatList, MATSEQAIJGPUCSR, &create));
  PetscCheck(!create || create == MatCreate_SeqAIJGPUCSR, PETSC_COMM_WORLD, PETSC_ERR_LIB, "Another copy of libpetscgpucsr.so is loaded already: load it once, by one path");
  PetscCall(MatRegister(MATSEQAIJGPUCSR, MatCreate_SeqAIJGPUCSR));
  PetscCall(MatRegister(MATMPIAIJGPUCSR, MatCreate_MPIAIJGPUCSR));
  PetscCall(MatRegisterRootName(MATGPUCSR, MATSEQAIJGPUCSR, MATMPIAIJGPUCSR));
  PetscCall(MatRegisterRootName(MATAIJGPUCSR, MATSEQAIJGPUCSR, MATMPIAIJGPUCSR));
  PetscCall(MatSeqAIJRegister(MATSEQAIJGPUCSR, MatConvert_SeqAIJ_SeqAIJGPUCSR));
  PetscCall(MatGPUCSRFactorRegister_Private());
  PetscCall(MatGPUCSRLevelRegister_Private());
  PetscCall(GPUCSRLogRegister("MatGPUBuild", MAT_CLASSID, &MAT_GPUCSR_Build));
  PetscCall(GPUCSRLogRegister("MatGPURefresh", MAT_CLASSID, &MAT_GPUCSR_Refresh));
  PetscCall(GPUCSRLogRegister("MatGPUTranspose", MAT_CLASSID, &MAT_GPUCSR_Transpose));
  PetscCall(GPUCSRLogRegister("MatGPUMult", MAT_CLASSID, &MAT_GPUCSR_Product));
  PetscCall(GPUCSRLogRegister("MatGPUHalo", MAT_CLASSID, &MAT_GPUCSR_Halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}
