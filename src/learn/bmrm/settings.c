/*
  Options and error messages of bmrm.
*/
#include "learn.h"
#include "../../sys/gpucsrcompat.h"
#include <unistd.h>

static const char *const Kinds[]   = {"label", "value", "probability"};
static const char *const Methods[] = {"auto", "bundle", "newton", "interior", "dual"};

/* a:b:n, meaning n numbers from a to b in geometric progression, in descending order; or numbers separated by commas */
static PetscErrorCode GetLambdas(const char text[], Settings *o)
{
  double a, b;
  int    n, used = 0;

  PetscFunctionBeginUser;
  if (sscanf(text, "%lf:%lf:%d%n", &a, &b, &n, &used) == 3 && !text[used]) {
    PetscCheck(a > 0 && b > 0 && n >= 2 && n <= MAX_LAMBDAS, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-lambdas a:b:n wants two positive numbers, and how many from 2 to %d, not %s", MAX_LAMBDAS, text);
    for (int i = 0; i < n; i++) o->lambda[i] = PetscMax(a, b) * PetscPowReal(PetscMin(a, b) / PetscMax(a, b), (PetscReal)i / (n - 1));
    o->nlambdas = n;
  } else {
    o->nlambdas = MAX_LAMBDAS + 1;
    PetscCall(PetscOptionsGetRealArray(NULL, NULL, "-lambdas", o->lambda, &o->nlambdas, NULL));
    PetscCheck(o->nlambdas >= 1 && o->nlambdas <= MAX_LAMBDAS, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-lambdas takes 1 to %d numbers, or FROM:TO:COUNT", MAX_LAMBDAS);
    for (PetscInt i = 0; i < o->nlambdas; i++) o->lambda[i] = -o->lambda[i];
    PetscCall(PetscSortReal(o->nlambdas, o->lambda)); /* in descending order */
    for (PetscInt i = 0; i < o->nlambdas; i++) o->lambda[i] = -o->lambda[i];
  }
  PetscFunctionReturn(0);
}

static PetscErrorCode AskProblem(GPUCSROptionItems PetscOptionsObject, Settings *o, const Loss **loss, PetscReal *parameter)
{
  const char *names[32], *p;
  char        lambdas[512] = "", weights[4096] = "";
  PetscInt    which = 0, n = 0, method = 0;
  PetscBool   quiet = PETSC_FALSE, several, one, type;

  PetscFunctionBeginUser;
  while (losses[n].name) {
    names[n] = losses[n].name;
    n++;
  }
  PetscCall(PetscOptionsEList("-loss", "loss", "bmrm.c", names, n, names[0], &which, NULL));
  *loss      = &losses[which];
  *parameter = (*loss)->usual;
  if ((*loss)->option) PetscCall(PetscOptionsReal((*loss)->option, "parameter of the loss", "bmrm.c", *parameter, parameter, NULL));
  PetscCall(PetscOptionsReal("-lambda", "weight of |w|^2/2", "bmrm.c", o->lambda[0], &o->lambda[0], &one));
  PetscCall(PetscOptionsString("-lambdas", "several: FROM:TO:HOW MANY, or a list", "bmrm.c", lambdas, lambdas, sizeof(lambdas), &several));
  PetscCheck(!one || !several, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-lambda and -lambdas exclude each other");
  if (several) PetscCall(GetLambdas(lambdas, o));
  PetscCall(PetscOptionsString("-class_weights", "LABEL:WEIGHT,LABEL:WEIGHT", "bmrm.c", weights, weights, sizeof(weights), NULL));
  /* label:weight,label:weight */
  for (p = weights; *p && o->nweights < MAX_CLASSES; o->nweights++) {
    double label, weight;
    int    used = 0;

    PetscCheck(sscanf(p, "%lf:%lf%n", &label, &weight, &used) == 2 && (!p[used] || p[used] == ',') && weight >= 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-class_weights wants LABEL:WEIGHT,LABEL:WEIGHT, weights not negative, not %s", weights);
    o->weighted[o->nweights] = label;
    o->weight[o->nweights]   = weight;
    p += used + (p[used] == ',');
  }
  PetscCall(PetscOptionsReal("-bias", "value of one more column, whose weight is the bias; negative: none", "bmrm.c", o->bias, &o->bias, NULL));
  PetscCall(PetscOptionsBool("-bias_regularised", "is the bias regularised, as the weights of other columns are?", "bmrm.c", o->regularised, &o->regularised, NULL));
  PetscCall(PetscOptionsReal("-epsilon", "gap at which to stop, as a share of the objective", "bmrm.c", o->epsilon, &o->epsilon, NULL));
  PetscCall(PetscOptionsReal("-epsilon_absolute", "gap at which to stop", "bmrm.c", o->absolute, &o->absolute, NULL));
  PetscCall(PetscOptionsInt("-tao_max_it", "iterations at the most", "bmrm.c", o->maxits, &o->maxits, NULL));
  PetscCall(PetscOptionsEList("-method", "how to minimise", "bmrm.c", Methods, PETSC_STATIC_ARRAY_LENGTH(Methods), Methods[0], &method, NULL));
  PetscCall(PetscOptionsBool("-check", "check the subgradient, learn nothing", "bmrm.c", o->check, &o->check, NULL));
  PetscCall(PetscOptionsBool("-times", "print iterations and times", "bmrm.c", o->times, &o->times, NULL));
  PetscCall(PetscOptionsBool("-progress", "a line a second, default on a terminal", "bmrm.c", o->progress, &o->progress, NULL));
  PetscCall(PetscOptionsBool("-vector_losses", "losses by operations of vectors, as for vectors that are not in the host's memory", "bmrm.c", o->vectors, &o->vectors, NULL));
  PetscCall(PetscOptionsBool("-quiet", "no such lines", "bmrm.c", quiet, &quiet, NULL));
  if (quiet) o->progress = PETSC_FALSE;
  o->method = (Method)method;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-tao_type", &type));
  if (type && o->method == METHOD_AUTO) o->method = METHOD_BUNDLE;
  PetscFunctionReturn(0);
}

PetscErrorCode GetSettings(Settings *o, const Loss **loss, PetscReal *parameter)
{
  PetscInt kind = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(o, sizeof(*o)));
  o->epsilon     = 1e-4;
  o->bias        = -1;
  o->regularised = PETSC_TRUE;
  o->lambda[0]   = 1e-5;
  o->nlambdas    = 1;
  o->maxits      = 10000;
  o->progress    = (PetscBool)(isatty(STDOUT_FILENO) && isatty(STDERR_FILENO)); /* mpiexec makes stdout a terminal of its own */
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of bmrm", NULL);
  PetscCall(PetscOptionsString("-f", "file of the rows and their labels", "bmrm.c", o->file, o->file, sizeof(o->file), NULL));
  PetscCall(PetscOptionsString("-labels", "file with a label for each row", "bmrm.c", o->labels, o->labels, sizeof(o->labels), NULL));
  PetscCall(PetscOptionsString("-row_weights", "file with a weight for each row", "bmrm.c", o->rowweights, o->rowweights, sizeof(o->rowweights), NULL));
  PetscCall(PetscOptionsReal("-validation", "share of the rows that is kept from learning, to judge by", "bmrm.c", o->share, &o->share, NULL));
  PetscCall(PetscOptionsString("-validation_file", "rows to judge by", "bmrm.c", o->validation, o->validation, sizeof(o->validation), NULL));
  PetscCall(PetscOptionsInt("-cv", "judge by cross-validation of so many parts", "bmrm.c", o->folds, &o->folds, NULL));
  PetscCall(PetscOptionsInt("-seed", "for another choice of the rows to judge by", "bmrm.c", o->seed, &o->seed, NULL));
  PetscCall(PetscOptionsString("-model", "apply this model, learn nothing", "bmrm.c", o->model, o->model, sizeof(o->model), NULL));
  PetscCall(PetscOptionsString("-model_out", "file to write the model to", "bmrm.c", o->modelout, o->modelout, sizeof(o->modelout), NULL));
  PetscCall(PetscOptionsString("-predictions", "file to write predictions to, of the rows learned from or applied to", "bmrm.c", o->predictions, o->predictions, sizeof(o->predictions), NULL));
  PetscCall(PetscOptionsEList("-predictions_kind", "what they are", "bmrm.c", Kinds, PETSC_STATIC_ARRAY_LENGTH(Kinds), Kinds[0], &kind, NULL));
  PetscCall(PetscOptionsString("-json", "append a line with iterations, times and quality to this file", "bmrm.c", o->json, o->json, sizeof(o->json), NULL));
  o->kind = (PredictionKind)kind;
  PetscCall(AskProblem(PetscOptionsObject, o, loss, parameter));
  PetscOptionsEnd();
  PetscCheck(!PetscDefined(USE_COMPLEX), PETSC_COMM_WORLD, PETSC_ERR_SUP, "Risks are real: this needs a PETSc of real numbers");
  PetscCheck(o->file[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "No data to learn from: give -f FILE");
  PetscCheck(!(*loss)->option || strcmp((*loss)->option, "-quantile") || (*parameter > 0 && *parameter < 1), PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-quantile lies between 0 and 1, not at %g", (double)*parameter);
  PetscCheck(!(*loss)->option || strcmp((*loss)->option, "-insensitive") || *parameter >= 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-insensitive is a distance, 0 or more, not %g", (double)*parameter);
  for (PetscInt i = 0; i < o->nlambdas; i++) PetscCheck(o->lambda[i] > 0 && !PetscIsInfOrNanReal(o->lambda[i]), PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-lambda has to be positive and finite, not %g", (double)o->lambda[i]);
  PetscCheck(o->epsilon >= 0 && o->absolute >= 0 && o->epsilon + o->absolute > 0 && !PetscIsInfOrNanReal(o->epsilon + o->absolute), PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-epsilon and -epsilon_absolute must not be negative, and one has to be positive, not %g and %g",
             (double)o->epsilon, (double)o->absolute);
  PetscCheck(o->share >= 0 && o->share < 1, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-validation is a share of the rows, from 0 to less than 1, not %g", (double)o->share);
  PetscCheck(!o->folds || o->folds >= 2, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-cv wants two parts or more, not %" PetscInt_FMT, o->folds);
  PetscCheck(!PetscIsInfOrNanReal(o->bias), PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-bias has to be finite");
  PetscCheck(o->regularised || o->bias > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-bias_regularised 0 is about a bias: give -bias 1");
  PetscCheck(o->regularised || !(*loss)->differences, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-loss %s depends on differences of scores, which have no bias: leave out -bias", (*loss)->name);
  PetscCheck(o->regularised || o->method != METHOD_DUAL, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-method dual is for a bias that is regularised");
  PetscCheck(!o->nweights || (*loss)->labels == LABELS_CLASSES, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-class_weights is for losses of classes, -loss %s is not", (*loss)->name);
  PetscCheck(o->method != METHOD_NEWTON || (*loss)->curvature, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-method newton is for losses that are smooth, -loss %s is not", (*loss)->name);
  PetscCheck((o->method != METHOD_INTERIOR && o->method != METHOD_DUAL) || (*loss)->interior, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-method %s is for the hinge loss, not for -loss %s", Methods[o->method], (*loss)->name);
  PetscFunctionReturn(0);
}

/* Checks before learning that the files can be opened later */
PetscErrorCode CheckFiles(const Settings *o)
{
  const char *const out[] = {o->modelout, o->predictions, o->json}, *const in[] = {o->validation, o->model, o->labels, o->rowweights};
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank) PetscFunctionReturn(0);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(out); k++) {
    FILE *fp = out[k][0] ? fopen(out[k], "a") : NULL;

    PetscCheck(!out[k][0] || (fp && !fclose(fp)), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be written", out[k]);
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(in); k++) {
    FILE *fp = in[k][0] ? fopen(in[k], "rb") : NULL;

    PetscCheck(!in[k][0] || (fp && !fclose(fp)), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be read", in[k]);
  }
  PetscFunctionReturn(0);
}

/* After the program has read its options, the remaining ones belong to PETSc or a library, or are mistyped */
PetscErrorCode CheckOptions(void)
{
  static const char *const theirs[] = {"mat",     "vec",     "tao",          "ksp",       "pc",      "sf",        "gpucsr",  "log",  "info",       "options", "malloc",  "memory", "on_error",     "start",   "stop", "debug",
                                       "fp_trap", "error",   "dll",          "no_signal", "signal",  "citations", "history", "saws", "mpi",        "viewer",  "device",  "cuda",   "hip",          "threads", "blas", "check_pointer",
                                       "nox",     "display", "skip_petscrc", "petsc",     "objects", "use_gpu",   "omp",     "tmp",  "shared_tmp", "python",  "version", "help",   "options_left", "trace",   "x_"};
  PetscInt                 n;
  char                   **name, **value;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsLeftGet(NULL, &n, &name, &value));
  for (PetscInt i = 0; i < n; i++) {
    PetscBool known = PETSC_FALSE;

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(theirs); k++) known = (PetscBool)(known || !strncmp(name[i], theirs[k], strlen(theirs[k])));
    PetscCheck(known, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-%s is no option of this program; -help lists them", name[i]);
  }
  PetscCall(PetscOptionsLeftRestore(NULL, &n, &name, &value));
  PetscFunctionReturn(0);
}
