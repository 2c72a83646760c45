/*
    amgx [-only WORD] lognormal7_128 lognormal27_96 elastic_56 FOLDER/mesh2 ...

  CG of AmgX, for unsymmetric matrices FGMRES(30), preconditioned by its multigrid methods, all in double (mode dDDI): peer.h describes the times. The first settings come from AmgX' own files PCG_AGGREGATION_JACOBI,
  AMG_AGGRREGATION_CG, PCG_CLASSICAL_V_JACOBI, AMG_CLASSICAL_PMIS and AMG_CLASSICAL_AGGRESSIVE_CHEB_L1_TRUNC. Further settings vary sizes of aggregates, smoothers and sweeps.
  With "blocks" the program uploads the matrix of elastic_N, and others with several unknowns a point, as blocks for the aggregation.
*/
#include "peer.h"
#include <amgx_c.h>

/* A name of the table, and JSON of AmgX */
typedef struct {
  const char *name, *json;
} Part;

enum {
  SIZE2,
  SIZE4,
  SIZE8,
  PMIS,
  PMIS4,
  PMIS4AGGRESSIVE,
  PMISAGGRESSIVE2
};
#define AGGREGATION "\"algorithm\":\"AGGREGATION\",\"coarse_solver\":\"NOSOLVER\","
#define CLASSICAL   "\"algorithm\":\"CLASSICAL\",\"selector\":\"PMIS\",\"interpolator\":\"D2\",\"strength_threshold\":0.25,\"max_row_sum\":0.9,\"coarse_solver\":\"NOSOLVER\""
static const Part coarsenings[] = {
  {"aggregation 2",                  AGGREGATION "\"selector\":\"SIZE_2\""                         },
  {"aggregation 4",                  AGGREGATION "\"selector\":\"SIZE_4\""                         },
  {"aggregation 8",                  AGGREGATION "\"selector\":\"SIZE_8\""                         },
  {"PMIS D2",                        CLASSICAL                                                     },
  {"PMIS D2, 4 a row",               CLASSICAL ",\"interp_max_elements\":4"                        },
  {"PMIS D2, 4 a row, 1 aggressive", CLASSICAL ",\"interp_max_elements\":4,\"aggressive_levels\":1"},
  {"PMIS D2, 2 aggressive",          CLASSICAL ",\"aggressive_levels\":2"                          }
};

enum {
  JACOBI,
  L1,
  CHEBYSHEV
};
static const Part smoothers[] = {
  {"block Jacobi", "\"solver\":\"BLOCK_JACOBI\",\"relaxation_factor\":0.8"                                                                                                                                           },
  {"l1-Jacobi",    "\"solver\":\"JACOBI_L1\",\"relaxation_factor\":1.0"                                                                                                                                              },
  {"Chebyshev",    "\"solver\":\"CHEBYSHEV\",\"max_iters\":1,\"chebyshev_polynomial_order\":2,\"chebyshev_lambda_estimate_mode\":2,\"preconditioner\":{\"scope\":\"inner\",\"solver\":\"JACOBI_L1\",\"max_iters\":1}"}
};

static const struct {
  int coarsening, smoother, pre, post;
  int kcycle; /* with it the outer method has to be flexible */
  int blocks; /* unknowns of a point as a block; only where there are three */
} settings[] = {
  {SIZE2,           JACOBI,    0, 3, 0, 0},
  {SIZE4,           JACOBI,    0, 3, 0, 0},
  {SIZE8,           JACOBI,    0, 3, 0, 0},
  {SIZE2,           JACOBI,    1, 1, 0, 0},
  {SIZE4,           JACOBI,    1, 1, 0, 0},
  {SIZE8,           JACOBI,    1, 1, 0, 0},
  {SIZE2,           L1,        1, 1, 0, 0},
  {SIZE4,           L1,        1, 1, 0, 0},
  {SIZE8,           L1,        1, 1, 0, 0},
  {SIZE8,           JACOBI,    1, 1, 1, 0},
  {SIZE2,           JACOBI,    0, 3, 0, 1},
  {SIZE4,           JACOBI,    0, 3, 0, 1},
  {SIZE8,           JACOBI,    0, 3, 0, 1},
  {SIZE8,           JACOBI,    1, 1, 0, 1},
  {PMIS,            L1,        1, 1, 0, 0},
  {PMIS4,           L1,        1, 1, 0, 0},
  {PMIS4AGGRESSIVE, L1,        1, 1, 0, 0},
  {PMIS4AGGRESSIVE, L1,        2, 2, 0, 0},
  {PMIS4AGGRESSIVE, CHEBYSHEV, 1, 1, 0, 0},
  {PMISAGGRESSIVE2, JACOBI,    1, 1, 0, 0},
};
#define NSETTINGS ((int)(sizeof(settings) / sizeof(settings[0])))

static AMGX_resources_handle resources;

typedef struct {
  AMGX_config_handle config;
  AMGX_matrix_handle A;
  AMGX_vector_handle b, x;
  AMGX_solver_handle solver;
  int                n, bs; /* block rows, and rows of a block */
} AmgX;

static const char *Failed(AMGX_RC code)
{
  static char text[256];

  if (code == AMGX_RC_OK) return NULL;
  (void)AMGX_get_error_string(code, text, (int)sizeof(text));
  for (char *c = text; *c; c++)
    if (*c == '\n' || *c == '|') *c = ' ';
  return text;
}

static const char *SetUp(void *ctx)
{
  const AmgX *a = (const AmgX *)ctx;

  return Failed(AMGX_solver_setup(a->solver, a->A));
}

/* Uploads x = 0, because AMGX_solver_solve_with_0_initial_guess() leaves x unchanged if CUDA 13.0 has built AmgX */
static const char *Begin(void *ctx)
{
  const AmgX *a    = (const AmgX *)ctx;
  double     *zero = (double *)PeerAlloc((size_t)a->n * (size_t)a->bs, sizeof(*zero));
  AMGX_RC     code;

  memset(zero, 0, sizeof(*zero) * (size_t)a->n * (size_t)a->bs);
  code = AMGX_vector_upload(a->x, a->n, a->bs, zero);
  free(zero);
  return Failed(code);
}

/* A solve that ends without the tolerance is no failure: the residual tells */
static const char *Solve(void *ctx, int *its)
{
  const AmgX *a    = (const AmgX *)ctx;
  AMGX_RC     code = AMGX_solver_solve(a->solver, a->b, a->x);

  if (code == AMGX_RC_OK) code = AMGX_solver_get_iterations_number(a->solver, its);
  return Failed(code);
}

static const char *Fetch(void *ctx, double *x)
{
  return Failed(AMGX_vector_download(((const AmgX *)ctx)->x, x));
}

/* All rows of a point have the same neighbours, with entries for all unknowns of a neighbour */
static AMGX_RC UploadBlocks(const PeerSystem *A, AMGX_matrix_handle matrix)
{
  const int bs = A->bs, n = A->n / bs, nnz = A->i[A->n] / (bs * bs);
  int      *i = (int *)PeerAlloc((size_t)n + 1, sizeof(*i)), *j = (int *)PeerAlloc((size_t)nnz, sizeof(*j));
  double   *a = (double *)PeerAlloc((size_t)A->i[A->n], sizeof(*a));
  AMGX_RC   code;

  for (int p = 0; p <= n; p++) i[p] = A->i[p * bs] / (bs * bs);
  for (int p = 0; p < n; p++)
    for (int k = i[p]; k < i[p + 1]; k++) {
      j[k] = A->j[A->i[p * bs] + (k - i[p]) * bs] / bs;
      for (int r = 0; r < bs; r++)
        for (int c = 0; c < bs; c++) a[(k * bs + r) * bs + c] = A->a[A->i[p * bs + r] + (k - i[p]) * bs + c];
    }
  code = AMGX_matrix_upload_all(matrix, n, nnz, bs, bs, i, j, a, NULL);
  free(i);
  free(j);
  free(a);
  return code;
}

static AMGX_RC Create(int k, const PeerSystem *A, AmgX *a)
{
  char    text[2048];
  AMGX_RC code;

  a->bs = settings[k].blocks ? A->bs : 1;
  a->n  = A->n / a->bs;
  (void)snprintf(text, sizeof(text),
                 "{\"config_version\":2,\"solver\":{\"scope\":\"main\",\"solver\":\"%s\",\"max_iters\":%d,\"gmres_n_restart\":30,\"monitor_residual\":1,\"convergence\":\"RELATIVE_INI\",\"tolerance\":%g,\"norm\":\"L2\",\"use_scalar_norm\":1,"
                 "\"preconditioner\":{\"scope\":\"amg\",\"solver\":\"AMG\",\"max_iters\":1,\"monitor_residual\":0,\"max_levels\":50,\"cycle\":\"%s\",\"presweeps\":%d,\"postsweeps\":%d,%s,"
                 "\"smoother\":{\"scope\":\"smoother\",\"monitor_residual\":0,%s}}}}",
                 !A->symmetric        ? "FGMRES"
                 : settings[k].kcycle ? "PCGF"
                                      : "PCG",
                 PEER_MOST, PEER_RTOL, settings[k].kcycle ? "CG" : "V", settings[k].pre, settings[k].post, coarsenings[settings[k].coarsening].json, smoothers[settings[k].smoother].json);
  if ((code = AMGX_config_create(&a->config, text)) != AMGX_RC_OK) return code;
  if ((code = AMGX_matrix_create(&a->A, resources, AMGX_mode_dDDI)) != AMGX_RC_OK) return code;
  if ((code = AMGX_vector_create(&a->b, resources, AMGX_mode_dDDI)) != AMGX_RC_OK) return code;
  if ((code = AMGX_vector_create(&a->x, resources, AMGX_mode_dDDI)) != AMGX_RC_OK) return code;
  code = a->bs > 1 ? UploadBlocks(A, a->A) : AMGX_matrix_upload_all(a->A, A->n, A->i[A->n], 1, 1, A->i, A->j, A->a, NULL);
  if (code != AMGX_RC_OK) return code;
  if ((code = AMGX_vector_upload(a->b, a->n, a->bs, A->b)) != AMGX_RC_OK) return code;
  if ((code = AMGX_vector_set_zero(a->x, a->n, a->bs)) != AMGX_RC_OK) return code;
  return AMGX_solver_create(&a->solver, resources, AMGX_mode_dDDI, a->config);
}

static void Run(int k, PeerSystem *A, PeerRow *row)
{
  AmgX             a = {NULL, NULL, NULL, NULL, NULL, 0, 0};
  const PeerSolver s = {&a, SetUp, Solve, Fetch, Begin};

  *row = (PeerRow){0, 0, 0, 0, 1, 0, NULL};
  if (settings[k].blocks && A->bs == 1) row->failed = PeerSkipped;
  else if (!(row->failed = Failed(Create(k, A, &a)))) PeerRun(&s, A, row);
  if (a.solver) (void)AMGX_solver_destroy(a.solver);
  if (a.x) (void)AMGX_vector_destroy(a.x);
  if (a.b) (void)AMGX_vector_destroy(a.b);
  if (a.A) (void)AMGX_matrix_destroy(a.A);
  if (a.config) (void)AMGX_config_destroy(a.config);
}

static void Silent(const char *message, int length)
{
  (void)length;
  if (getenv("AMGX_PRINT")) fputs(message, stderr);
}

int main(int argc, char **argv)
{
  AMGX_config_handle config;
  static char        text[NSETTINGS][128];
  const char        *names[NSETTINGS];
  int                code;

  for (int k = 0; k < NSETTINGS; k++) {
    (void)snprintf(text[k], sizeof(text[k]), "%s, %s %d+%d%s%s", coarsenings[settings[k].coarsening].name, smoothers[settings[k].smoother].name, settings[k].pre, settings[k].post, settings[k].kcycle ? ", K-cycle" : "", settings[k].blocks ? ", blocks" : "");
    names[k] = text[k];
  }
  if (AMGX_initialize() != AMGX_RC_OK) {
    fprintf(stderr, "AmgX did not start\n");
    return 1;
  }
  (void)AMGX_register_print_callback(Silent);
  /* The pool holds every case, because an allocation beyond it costs a cudaMalloc each time */
  AMGX_SAFE_CALL(AMGX_config_create(&config, "config_version=2,device_mem_pool_size=8000000000"));
  AMGX_SAFE_CALL(AMGX_resources_create_simple(&resources, config));
  code = PeerMain(argc, argv, names, NSETTINGS, Run, NULL);
  (void)AMGX_resources_destroy(resources);
  (void)AMGX_config_destroy(config);
  (void)AMGX_finalize();
  return code;
}
