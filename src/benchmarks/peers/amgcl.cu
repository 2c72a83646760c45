/*
    amgcl [-only WORD] lognormal7_128 lognormal27_96 elastic_56 ...

  CG of AMGCL in double, preconditioned by its multigrid methods, with its CUDA backend: peer.h describes the times. AMGCL builds its levels on the CPU, with OpenMP on all cores; its own
  copy of the matrix is on the host before the clock starts. The upload of the levels is part of the set-up. The CPU solves the coarsest level.
  Settings follow its documentation: smoothed aggregation with SPAI-0, damped Jacobi or Chebyshev, and Ruge and Stuben's coarsening for one unknown a point. With "3 x 3" smoothed
  aggregation keeps the unknowns of a point of elastic_N together. The CUDA backend has scalar values only.
*/
#include "peer.h"
#include <amgcl/amg.hpp>
#include <amgcl/backend/cuda.hpp>
#include <amgcl/coarsening/ruge_stuben.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/chebyshev.hpp>
#include <amgcl/relaxation/damped_jacobi.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/cg.hpp>

typedef amgcl::backend::cuda<double>                      Backend;
typedef amgcl::backend::crs<double, ptrdiff_t, ptrdiff_t> Matrix;
typedef thrust::device_vector<double>                     Vector;

struct Setting {
  const char *name;
  int         ruge, blocks; /* Ruge and Stuben's coarsening; unknowns of a point together */
  int         smoother;     /* as in Create() */
  int         sweeps;       /* before and after; or the degree of Chebyshev's polynomial */
  int         strong;       /* threshold of a strong connection, hundredths; 0: AMGCL's default */
  int         coarse;       /* rows of the coarsest level; 0: AMGCL's default */
};

enum {
  SPAI0,
  JACOBI,
  CHEBYSHEV
};
#define SA "smoothed aggregation"
static const Setting settings[] = {
  {SA ", SPAI-0 1+1, coarse 500",                     0, 0, SPAI0,     1, 0, 500},
  {SA ", damped Jacobi 1+1, coarse 500",              0, 0, JACOBI,    1, 0, 500},
  {SA ", Chebyshev 2, coarse 500",                    0, 0, CHEBYSHEV, 2, 0, 500},
  {SA ", SPAI-0 1+1, strong 0.02, coarse 500",        0, 0, SPAI0,     1, 2, 500},
  {SA " 3 x 3, SPAI-0 1+1, strong 0.02, coarse 500",  0, 1, SPAI0,     1, 2, 500},
  {SA " 3 x 3, Chebyshev 2, strong 0.02, coarse 500", 0, 1, CHEBYSHEV, 2, 2, 500},
  {"Ruge-Stuben, SPAI-0 1+1, coarse 500",             1, 0, SPAI0,     1, 0, 500}
};
#define NSETTINGS ((int)(sizeof(settings) / sizeof(settings[0])))

static cusparseHandle_t handle;

/* A solver of any type */
struct Solver {
  virtual ~Solver()
  {
  }
  virtual int operator()(const Vector &b, Vector &x) const = 0;
};

static void Smooth(const Setting &, amgcl::relaxation::spai0<Backend>::params &)
{
}
static void Smooth(const Setting &, amgcl::relaxation::damped_jacobi<Backend>::params &)
{
}
/* Scaled by the diagonal, as the coefficients vary */
static void Smooth(const Setting &s, amgcl::relaxation::chebyshev<Backend>::params &p)
{
  p.degree      = s.sweeps;
  p.scale       = true;
  p.power_iters = 10;
  p.higher      = 1.1f;
}

static void Coarsen(const Setting &, const PeerSystem *, amgcl::coarsening::ruge_stuben<Backend>::params &)
{
}
static void Coarsen(const Setting &s, const PeerSystem *A, amgcl::coarsening::smoothed_aggregation<Backend>::params &p)
{
  if (s.blocks) p.aggr.block_size = A->bs;
  if (s.strong) p.aggr.eps_strong = 0.01f * s.strong;
}

template <template <class> class Coarsening, template <class> class Smoother>
struct SolverOf : Solver {
  typedef amgcl::make_solver<amgcl::amg<Backend, Coarsening, Smoother>, amgcl::solver::cg<Backend>> Method;
  Method                                                                                            method;

  static typename Method::params Parameters(const Setting &s, const PeerSystem *A)
  {
    typename Method::params p;

    Coarsen(s, A, p.precond.coarsening);
    Smooth(s, p.precond.relax);
    p.precond.npre = p.precond.npost = s.smoother == CHEBYSHEV ? 1 : s.sweeps;
    if (s.coarse) p.precond.coarse_enough = s.coarse;
    p.solver.tol     = PEER_RTOL;
    p.solver.maxiter = PEER_MOST;
    return p;
  }
  SolverOf(const Setting &s, const PeerSystem *A, std::shared_ptr<Matrix> matrix) : method(matrix, Parameters(s, A), Backend::params(handle))
  {
  }
  int operator()(const Vector &b, Vector &x) const override
  {
    return (int)std::get<0>(method(b, x));
  }
};

template <template <class> class Coarsening>
static Solver *Create(const Setting &s, const PeerSystem *A, std::shared_ptr<Matrix> matrix)
{
  switch (s.smoother) {
  case SPAI0:
    return new SolverOf<Coarsening, amgcl::relaxation::spai0>(s, A, matrix);
  case JACOBI:
    return new SolverOf<Coarsening, amgcl::relaxation::damped_jacobi>(s, A, matrix);
  default:
    return new SolverOf<Coarsening, amgcl::relaxation::chebyshev>(s, A, matrix);
  }
}

struct Amgcl {
  const Setting          *setting;
  const PeerSystem       *A;
  std::shared_ptr<Matrix> matrix;
  std::unique_ptr<Solver> solver;
  Vector                  b, x;
};

static const char *SetUp(void *ctx)
{
  Amgcl *a = (Amgcl *)ctx;

  return PeerThrown([a] {
    a->solver.reset();
    a->solver.reset(a->setting->ruge ? Create<amgcl::coarsening::ruge_stuben>(*a->setting, a->A, a->matrix) : Create<amgcl::coarsening::smoothed_aggregation>(*a->setting, a->A, a->matrix));
  });
}

static const char *Begin(void *ctx)
{
  Amgcl *a = (Amgcl *)ctx;

  return PeerThrown([a] { thrust::fill(a->x.begin(), a->x.end(), 0.0); });
}

/* A solve that ends without the tolerance is no failure: the residual tells */
static const char *Solve(void *ctx, int *its)
{
  Amgcl *a = (Amgcl *)ctx;

  return PeerThrown([a, its] { *its = (*a->solver)(a->b, a->x); });
}

static const char *Fetch(void *ctx, double *x)
{
  const Amgcl *a = (const Amgcl *)ctx;

  return PeerThrown([a, x] { thrust::copy(a->x.begin(), a->x.end(), x); });
}

static void Run(int k, PeerSystem *A, PeerRow *row)
{
  Amgcl            a;
  const PeerSolver s = {&a, SetUp, Solve, Fetch, Begin};

  memset(row, 0, sizeof(*row));
  if (A->bs == 1 ? settings[k].blocks : settings[k].ruge) {
    row->failed = PeerSkipped;
    return;
  }
  row->failed = PeerThrown([&a, A, k] {
    a.setting = &settings[k];
    a.A       = A;
    a.matrix  = std::make_shared<Matrix>((size_t)A->n, (size_t)A->n, amgcl::make_iterator_range(A->i, A->i + A->n + 1), amgcl::make_iterator_range(A->j, A->j + A->i[A->n]), amgcl::make_iterator_range(A->a, A->a + A->i[A->n]));
    a.b.assign(A->b, A->b + A->n);
    a.x.assign((size_t)A->n, 0.0);
  });
  if (!row->failed) PeerRun(&s, A, row);
}

int main(int argc, char **argv)
{
  const char *names[NSETTINGS];
  int         code;

  for (int k = 0; k < NSETTINGS; k++) names[k] = settings[k].name;
  if (cusparseCreate(&handle) != CUSPARSE_STATUS_SUCCESS) {
    fprintf(stderr, "amgcl: cuSPARSE did not start\n");
    return 1;
  }
  code = PeerMain(argc, argv, names, NSETTINGS, Run, NULL);
  (void)cusparseDestroy(handle);
  return code;
}
