/*
    ginkgo [-only WORD] lognormal7_128 lognormal27_96 elastic_56 ...
    ginkgo -formats lognormal7_128 FILE ...

  Krylov methods of Ginkgo in double, on a matrix in its CSR: peer.h describes the times. CG has its multigrid, which matches pairs of neighbours (PGM), with smoothers of its examples.
  The coarsest level has at most 64 rows, and LU solves it. CG and BiCGStab also have Jacobi, IC(0) and ILU(0); GMRES of 30 vectors has ParILU and ILU(0). Triangular solves are exact.
  cuSPARSE makes IC and ILU, or Ginkgo where the name says "own". A pool of the device (cudaMallocAsync) keeps the memory.

  -formats prints microseconds of a product with each format. The matrix is a case, or a file in PETSc's binary format. The last column is the greatest difference from the first format's
  product, over the largest entry.
*/
#include "peer.h"
#include <algorithm>
#include <ginkgo/ginkgo.hpp>
#include <memory>
#include <stdexcept>
#include <vector>

using Csr   = gko::matrix::Csr<double, int>;
using Dense = gko::matrix::Dense<double>;
using gko::solver::multigrid::cycle;
using Factory = std::shared_ptr<const gko::LinOpFactory>;

enum Method {
  CG,
  BICGSTAB,
  GMRES
};
enum Kind {
  MULTIGRID,
  JACOBI,
  L1,
  IC,
  PARILU,
  ILU,
  OWNILU
};
struct Setting {
  const char *name;
  Method      method;
  Kind        kind;     /* the preconditioner */
  Kind        smoother; /* of multigrid */
  int         sweeps;   /* of the smoother, before and after; or the unknowns of a block of Jacobi */
  cycle       round;
  int         classical; /* products by CSR of that strategy, not of Ginkgo's default */
};
static const Setting settings[] = {
  {"CG, multigrid PGM, Jacobi 1+1",               CG,       MULTIGRID, JACOBI, 1, cycle::v, 0},
  {"CG, multigrid PGM, Jacobi 1+1, classical",    CG,       MULTIGRID, JACOBI, 1, cycle::v, 1},
  {"CG, multigrid PGM, Jacobi 2+2",               CG,       MULTIGRID, JACOBI, 2, cycle::v, 0},
  {"CG, multigrid PGM, l1-Jacobi 1+1",            CG,       MULTIGRID, L1,     1, cycle::v, 0},
  {"CG, multigrid PGM, l1-Jacobi 1+1, classical", CG,       MULTIGRID, L1,     1, cycle::v, 1},
  {"CG, multigrid PGM, l1-Jacobi 2+2",            CG,       MULTIGRID, L1,     2, cycle::v, 0},
  {"CG, multigrid PGM, IC 2+2",                   CG,       MULTIGRID, IC,     2, cycle::v, 0},
  {"CG, multigrid PGM, l1-Jacobi 1+1, W-cycle",   CG,       MULTIGRID, L1,     1, cycle::w, 0},
  {"CG, Jacobi",                                  CG,       JACOBI,    JACOBI, 1, cycle::v, 0},
  {"CG, Jacobi, classical",                       CG,       JACOBI,    JACOBI, 1, cycle::v, 1},
  {"CG, block Jacobi 3 x 3",                      CG,       JACOBI,    JACOBI, 3, cycle::v, 0},
  {"CG, IC",                                      CG,       IC,        JACOBI, 1, cycle::v, 0},
  {"BiCGStab, Jacobi",                            BICGSTAB, JACOBI,    JACOBI, 1, cycle::v, 0},
  {"BiCGStab, ILU",                               BICGSTAB, ILU,       JACOBI, 1, cycle::v, 0},
  {"GMRES, ParILU",                               GMRES,    PARILU,    JACOBI, 1, cycle::v, 0},
  {"GMRES, ILU",                                  GMRES,    ILU,       JACOBI, 1, cycle::v, 0},
  {"GMRES, ILU own",                              GMRES,    OWNILU,    JACOBI, 1, cycle::v, 0}
};
#define NSETTINGS ((int)(sizeof(settings) / sizeof(settings[0])))

static std::shared_ptr<gko::CudaExecutor> device;

struct Ginkgo {
  std::shared_ptr<gko::LinOpFactory>             factory;
  std::shared_ptr<Csr>                           A;
  std::unique_ptr<Dense>                         b, x;
  std::unique_ptr<gko::LinOp>                    solver;
  std::shared_ptr<gko::log::Convergence<double>> log = gko::log::Convergence<double>::create();
};

static Factory Jacobi(int block, bool l1)
{
  return gko::preconditioner::Jacobi<double, int>::build().with_max_block_size((gko::uint32)block).with_skip_sorting(true).with_aggregate_l1(l1).on(device);
}

static Factory IncompleteCholesky()
{
  return gko::preconditioner::Ic<gko::solver::LowerTrs<double, int>, int>::build().with_factorization(gko::factorization::Ic<double, int>::build().with_skip_sorting(true)).on(device);
}

/* own: factorization and triangular solves without cuSPARSE */
template <class Factors>
static Factory Incomplete(Factors factors, bool own)
{
  using Lower          = gko::solver::LowerTrs<double, int>;
  using Upper          = gko::solver::UpperTrs<double, int>;
  const auto algorithm = own ? gko::solver::trisolve_algorithm::syncfree : gko::solver::trisolve_algorithm::sparselib;

  return gko::preconditioner::Ilu<Lower, Upper, false, int>::build().with_factorization(factors).with_l_solver(Lower::build().with_algorithm(algorithm)).with_u_solver(Upper::build().with_algorithm(algorithm)).on(device);
}

static Factory Multigrid(const Setting &s)
{
  const Factory inner  = s.smoother == IC ? IncompleteCholesky() : Jacobi(1, s.smoother == L1);
  const Factory smooth = gko::solver::build_smoother(inner, (gko::size_type)s.sweeps, s.smoother == L1 ? 1.0 : 0.9);

  return gko::solver::Multigrid::build()
    .with_mg_level(gko::multigrid::Pgm<double, int>::build().with_skip_sorting(true))
    .with_pre_smoother(smooth)
    .with_post_uses_pre(true)
    .with_max_levels(30u)
    .with_min_coarse_rows(64u)
    .with_cycle(s.round)
    .with_default_initial_guess(gko::solver::initial_guess_mode::zero)
    .with_criteria(gko::stop::Iteration::build().with_max_iters(1u))
    .on(device);
}

static Factory Preconditioner(const Setting &s)
{
  using gko::factorization::incomplete_algorithm;
  switch (s.kind) {
  case MULTIGRID:
    return Multigrid(s);
  case IC:
    return IncompleteCholesky();
  case PARILU:
    return Incomplete(gko::factorization::ParIlu<double, int>::build().with_skip_sorting(true), false);
  case ILU:
    return Incomplete(gko::factorization::Ilu<double, int>::build().with_skip_sorting(true), false);
  case OWNILU:
    return Incomplete(gko::factorization::Ilu<double, int>::build().with_skip_sorting(true).with_algorithm(incomplete_algorithm::syncfree), true);
  default:
    return Jacobi(s.sweeps, s.kind == L1);
  }
}

template <class Parameters>
static std::shared_ptr<gko::LinOpFactory> Solver(Parameters p, const Setting &s)
{
  return p.with_criteria(gko::stop::Iteration::build().with_max_iters((gko::size_type)PEER_MOST), gko::stop::ResidualNorm<double>::build().with_baseline(gko::stop::mode::rhs_norm).with_reduction_factor(PEER_RTOL))
    .with_preconditioner(Preconditioner(s))
    .on(device);
}

static std::shared_ptr<gko::LinOpFactory> Create(const Setting &s)
{
  switch (s.method) {
  case BICGSTAB:
    return Solver(gko::solver::Bicgstab<double>::build(), s);
  case GMRES:
    return Solver(gko::solver::Gmres<double>::build().with_krylov_dim(30u), s);
  default:
    return Solver(gko::solver::Cg<double>::build(), s);
  }
}

static std::unique_ptr<Csr> Upload(const PeerSystem *A, std::shared_ptr<Csr::strategy_type> strategy)
{
  return Csr::create(device, gko::dim<2>((gko::size_type)A->n, (gko::size_type)A->n), gko::array<double>(device, A->a, A->a + A->i[A->n]), gko::array<int>(device, A->j, A->j + A->i[A->n]), gko::array<int>(device, A->i, A->i + A->n + 1), strategy);
}

static std::unique_ptr<Dense> UploadVector(const double *v, int n)
{
  return Dense::create(device, gko::dim<2>((gko::size_type)n, 1), gko::array<double>(device, v, v + n), 1);
}

static const char *SetUp(void *ctx)
{
  Ginkgo *g = (Ginkgo *)ctx;

  return PeerThrown([g] {
    g->solver.reset();
    g->solver = g->factory->generate(g->A);
    g->solver->add_logger(g->log);
  });
}

static const char *Begin(void *ctx)
{
  Ginkgo *g = (Ginkgo *)ctx;

  return PeerThrown([g] { g->x->fill(0.0); });
}

/* A solve that ends without the tolerance is no failure: the residual tells */
static const char *Solve(void *ctx, int *its)
{
  Ginkgo *g = (Ginkgo *)ctx;

  return PeerThrown([g, its] {
    g->solver->apply(g->b, g->x);
    *its = (int)g->log->get_num_iterations();
  });
}

static const char *Fetch(void *ctx, double *x)
{
  const Ginkgo *g = (const Ginkgo *)ctx;

  return PeerThrown([g, x] { device->get_master()->copy_from(device, g->x->get_size()[0], g->x->get_const_values(), x); });
}

static void Run(int k, PeerSystem *A, PeerRow *row)
{
  Ginkgo           g;
  const PeerSolver s = {&g, SetUp, Solve, Fetch, Begin};

  memset(row, 0, sizeof(*row));
  if (settings[k].kind == JACOBI && settings[k].sweeps > A->bs) {
    row->failed = PeerSkipped;
    return;
  }
  row->failed = PeerThrown([&g, A, k] {
    g.A       = Upload(A, settings[k].classical ? std::make_shared<Csr::classical>() : nullptr);
    g.b       = UploadVector(A->b, A->n);
    g.x       = UploadVector(A->x, A->n);
    g.factory = Create(settings[k]);
  });
  if (!row->failed) PeerRun(&s, A, row);
}

template <class Format>
static std::unique_ptr<gko::LinOp> Convert(const Csr *A)
{
  auto made = Format::create(device);

  A->convert_to(made);
  return made;
}

template <class Strategy>
static std::unique_ptr<gko::LinOp> Balance(const Csr *A, std::shared_ptr<Strategy> strategy)
{
  auto made = gko::clone(A);

  made->set_strategy(strategy);
  return made;
}

static const char *const formats[] = {"csr sparselib", "csr classical", "csr load_balance", "csr merge_path", "coo", "ell", "sellp", "hybrid"};

/* Format k of formats */
static std::unique_ptr<gko::LinOp> Make(int k, const Csr *A)
{
  switch (k) {
  case 0:
    return Balance(A, std::make_shared<Csr::sparselib>());
  case 1:
    return Balance(A, std::make_shared<Csr::classical>());
  case 2:
    return Balance(A, std::make_shared<Csr::load_balance>(device));
  case 3:
    return Balance(A, std::make_shared<Csr::merge_path>());
  case 4:
    return Convert<gko::matrix::Coo<double, int>>(A);
  case 5:
    return Convert<gko::matrix::Ell<double, int>>(A);
  case 6:
    return Convert<gko::matrix::Sellp<double, int>>(A);
  default:
    return Convert<gko::matrix::Hybrid<double, int>>(A);
  }
}

/* Big-endian numbers of a file */
template <class T>
static std::vector<T> Numbers(FILE *f, size_t count)
{
  std::vector<T> v(count);

  if (fread(v.data(), sizeof(T), count, f) != count) throw std::runtime_error("the file is too short");
  for (T &t : v) std::reverse((char *)&t, (char *)(&t + 1));
  return v;
}

/* PETSc's binary format: a head of four numbers, lengths of rows, columns, values */
static std::unique_ptr<Csr> ReadFile(const char *name)
{
  std::unique_ptr<FILE, int (*)(FILE *)> f(fopen(name, "rb"), fclose);

  if (!f) throw std::runtime_error("no such file");
  const auto head = Numbers<int>(f.get(), 4);
  if (head[0] != 1211216 || head[3] < 0) throw std::runtime_error("no matrix in PETSc's binary format with indices of 32 bits");
  auto       rows = Numbers<int>(f.get(), (size_t)head[1]);
  const auto cols = Numbers<int>(f.get(), (size_t)head[3]);
  const auto vals = Numbers<double>(f.get(), (size_t)head[3]);
  rows.insert(rows.begin(), 0);
  for (int r = 0; r < head[1]; r++) rows[(size_t)r + 1] += rows[(size_t)r];
  return Csr::create(device, gko::dim<2>((gko::size_type)head[1], (gko::size_type)head[2]), gko::array<double>(device, vals.begin(), vals.end()), gko::array<int>(device, cols.begin(), cols.end()), gko::array<int>(device, rows.begin(), rows.end()));
}

static std::unique_ptr<Csr> Read(const char *name)
{
  SPD        s = {LOGNORMAL7, 0, 0, 0, NULL};
  PeerSystem A;

  if (!SPDNamed(name, &s)) return ReadFile(name);
  PeerSystemCreate(&s, &A);
  auto made = Upload(&A, nullptr);
  PeerSystemDestroy(&A);
  return made;
}

/* Microseconds of a product by the host's clock, the best of five times a hundred */
static double Time(const gko::LinOp *A, const Dense *x, Dense *y)
{
  double best = 1e9;

  for (int round = 0; round <= 5; round++) {
    const double begin = PeerNow();

    for (int k = 0; k < 100; k++) A->apply(x, y);
    if (round) best = fmin(best, PeerNow() - begin);
  }
  return 1e4 * best;
}

static std::vector<double> Download(const Dense *v)
{
  std::vector<double> host(v->get_size()[0]);

  device->get_master()->copy_from(device, host.size(), v->get_const_values(), host.data());
  return host;
}

static void Formats(const char *name)
{
  const auto          A = Read(name);
  std::vector<double> x(A->get_size()[1]), right;

  for (size_t k = 0; k < x.size(); k++) x[k] = SyntheticUniform(53, k, 0);
  const auto dx = UploadVector(x.data(), (int)x.size());
  auto       dy = Dense::create(device, gko::dim<2>(A->get_size()[0], 1));
  for (int f = 0; f < 8; f++) {
    double      us = 0, error = 0, most = 0;
    const char *failed = PeerThrown([&] {
      const auto made = Make(f, A.get());

      dy->fill(0.0);
      us             = Time(made.get(), dx.get(), dy.get());
      const auto got = Download(dy.get());
      if (right.empty()) right = got;
      for (size_t k = 0; k < got.size(); k++) {
        error = fmax(error, fabs(got[k] - right[k]));
        most  = fmax(most, fabs(right[k]));
      }
    });

    if (failed) printf("| %s | %s | failed: %s |\n", name, formats[f], failed);
    else printf("| %s | %s | %.2f | %.1e |\n", name, formats[f], us, most > 0 ? error / most : error);
    fflush(stdout);
  }
}

/* The default pool of the device keeps what is freed */
static void Start(void)
{
  cudaMemPool_t pool;
  uint64_t      all = UINT64_MAX;

  if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess) (void)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
  device = gko::CudaExecutor::create(0, gko::ReferenceExecutor::create(), std::make_shared<gko::CudaAsyncAllocator>(nullptr));
}

int main(int argc, char **argv)
{
  const char *names[NSETTINGS];
  const char *failed = PeerThrown(Start);
  int         code   = 0;

  if (failed) {
    fprintf(stderr, "ginkgo: %s\n", failed);
    return 1;
  }
  if (argc > 1 && !strcmp(argv[1], "-formats")) {
    printf("| matrix | format | microseconds | difference |\n| :-- | :-- | --: | --: |\n");
    for (int k = 2; k < argc; k++) {
      if (!(failed = PeerThrown([=] { Formats(argv[k]); }))) continue;
      fprintf(stderr, "ginkgo: %s: %s\n", argv[k], failed);
      code = 1;
    }
  } else {
    for (int k = 0; k < NSETTINGS; k++) names[k] = settings[k].name;
    code = PeerMain(argc, argv, names, NSETTINGS, Run, NULL);
  }
  device.reset();
  return code;
}
