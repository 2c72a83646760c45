#pragma once

/*
  The scalars of a solve, and the rules that update the scalars after each reduction: step lengths, breakdowns, and PETSc's convergence tests, in the order of KSPCG and KSPBCGS. The host, the kernels
  of single steps and the persistent kernel share this source, so all three take the same decisions from the same sums.

  Methods: M. R. Hestenes, E. Stiefel, J. Res. Nat. Bur. Stand. 49 (1952); single reduction: A. T. Chronopoulos, C. W. Gear, J. Comput.
  Appl. Math. 25 (1989), in the form of PETSc's KSPCGUseSingleReduction(); H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992).
*/
#include "../../../../sys/plain.h"
#include <math.h>

#if defined(__CUDACC__)
  #define GPUKSP_RULE static inline __host__ __device__
#else
  #define GPUKSP_RULE static inline
#endif

typedef enum {
  GPUKSP_CG,
  GPUKSP_CG_SINGLE_REDUCTION,
  GPUKSP_BCGS
} GPUKSPMethod;

typedef enum {
  GPUKSP_TEST_DEFAULT, /* KSPConvergedDefault() */
  GPUKSP_TEST_SKIP,    /* KSPConvergedSkip() */
  GPUKSP_TEST_HOST     /* the user's function, called between two rules */
} GPUKSPTest;

/* The reasons and norms of PETSc that rules decide by; solve.c asserts the numbers */
enum {
  GPUKSP_CONVERGED_ITERATING     = 0,
  GPUKSP_CONVERGED_RTOL          = 2,
  GPUKSP_CONVERGED_ATOL          = 3,
  GPUKSP_CONVERGED_ITS           = 4,
  GPUKSP_NEG_CURVE               = 5,
  GPUKSP_DIVERGED_ITS            = -3,
  GPUKSP_DIVERGED_DTOL           = -4,
  GPUKSP_DIVERGED_BREAKDOWN      = -5,
  GPUKSP_DIVERGED_INDEFINITE_PC  = -8,
  GPUKSP_DIVERGED_NANORINF       = -9,
  GPUKSP_DIVERGED_INDEFINITE_MAT = -10
};
enum {
  GPUKSP_NORM_NONE,
  GPUKSP_NORM_PRECONDITIONED,
  GPUKSP_NORM_UNPRECONDITIONED,
  GPUKSP_NORM_NATURAL
};

/* The sums of a reduction */
enum {
  SUM_RR,
  SUM_ZZ,
  SUM_RZ,
  SUM_ZS, /* with A z, of the single reduction; with the last A p, of the flexible beta */
  GPUKSP_SUMS = 5
};

typedef struct {
  /* settings */
  int    normtype, test, guesszero, initialrtol, mininitialrtol, convmaxits, negcurve;
  int    maxit, minit, chknorm;
  int    histmax; /* entries allocated in hist */
  double rtol, abstol, divtol;
  int    flexible; /* beta for a preconditioner that is not linear */
  int    refined;  /* iterate on rounded numbers, */
  double update;   /* replace the residual after it has shrunk by this factor */
  /* current state */
  int    i, its, reason, recorded, lucky, replace, giveup, replacements, replaced, misses;
  double rnorm, rnorm0, ttol, bnorm;
  double rho, rhoold, dpi, delta, alpha, beta, omega, omegaold;
  double xalpha; /* the pending step of x along p */
  /* of residual replacement: the factor of the iteration's vectors, equal to the last |b - A x|; the first and the smallest |b - A x|; and the largest |r| since, in units of scale */
  double   scale, rfirst, rbest, rmax;
  double   truenorm; /* |b - A x| in the norm of the convergence test, on exit; negative: not computed */
  double  *hist;
  unsigned epoch, here; /* of a persistent kernel: grid-wide reductions so far, and barriers among the blocks of the rank */
} GPUKSPState;

GPUKSP_RULE int GPUKSPBad(double a)
{
  return !(a - a == 0);
}

GPUKSP_RULE double GPUKSPNorm(const GPUKSPState *s, const double sum[])
{
  switch (s->normtype) {
  case GPUKSP_NORM_PRECONDITIONED:
    return s->scale * sqrt(sum[SUM_ZZ]);
  case GPUKSP_NORM_UNPRECONDITIONED:
    return s->scale * sqrt(sum[SUM_RR]);
  case GPUKSP_NORM_NATURAL:
    return s->scale * sqrt(fabs(sum[SUM_RZ]));
  default:
    return 0;
  }
}

GPUKSP_RULE void GPUKSPRecord(GPUKSPState *s, int n, double norm)
{
  s->recorded = n + 1;
  if (s->hist && n < s->histmax) s->hist[n] = norm;
}

/* KSPConvergedDefault() and KSPConvergedSkip() */
GPUKSP_RULE void GPUKSPTestNorm(GPUKSPState *s, int n, double norm)
{
  s->reason = GPUKSP_CONVERGED_ITERATING;
  if (s->test == GPUKSP_TEST_HOST) return;
  if (s->test == GPUKSP_TEST_SKIP || s->convmaxits) {
    if (n >= s->maxit) s->reason = GPUKSP_CONVERGED_ITS;
    if (s->reason || s->test == GPUKSP_TEST_SKIP) return;
  }
  if (s->normtype == GPUKSP_NORM_NONE) return;
  if (!n) {
    s->rnorm0 = norm;
    if (!s->guesszero && !s->initialrtol) {
      const double b = s->bnorm == 0 ? norm : s->bnorm;

      s->rnorm0 = s->mininitialrtol && norm < b ? norm : b;
    }
    s->ttol = s->rtol * s->rnorm0 > s->abstol ? s->rtol * s->rnorm0 : s->abstol;
  }
  if (n <= s->chknorm) return;
  if (GPUKSPBad(norm)) s->reason = GPUKSP_DIVERGED_NANORINF;
  else if (n < s->minit) return;
  else if (norm <= s->ttol) s->reason = norm < s->abstol ? GPUKSP_CONVERGED_ATOL : GPUKSP_CONVERGED_RTOL;
  else if (norm >= s->divtol * s->rnorm0) s->reason = GPUKSP_DIVERGED_DTOL;
}

/* A NaN or Inf ends the solve */
GPUKSP_RULE int GPUKSPStop(GPUKSPState *s, double a)
{
  if (GPUKSPBad(a)) s->reason = GPUKSP_DIVERGED_NANORINF;
  return s->reason;
}

/* The norm of the first residual; or the norm of b, if the test needs it and the norm is NaN or Inf: the preconditioner has failed on b */
GPUKSP_RULE double GPUKSPFirst(const GPUKSPState *s, double norm)
{
  return s->test == GPUKSP_TEST_DEFAULT && !s->initialrtol && GPUKSPBad(s->bnorm) ? s->bnorm : norm;
}

/* ---- conjugate gradients ---- */

/* sums: of the first residual. A nonzero initial guess has set bnorm before */
GPUKSP_RULE void CGInit(GPUKSPState *s, const double sum[])
{
  const double norm = GPUKSPFirst(s, GPUKSPNorm(s, sum));

  s->i = s->its = 0;
  s->rho        = sum[SUM_RZ];
  s->delta      = sum[SUM_ZS];
  s->rnorm      = norm;
  s->dpi = s->xalpha = 0;
  if (GPUKSPStop(s, norm)) return;
  GPUKSPRecord(s, 0, norm);
  GPUKSPTestNorm(s, 0, norm);
}

/*
  Start of iteration i + 1: computes beta for p = z + beta p. Flexible: (z, r - r') / (z', r') with the z' and r' before, r - r' = -alpha A p (Y. Notay, Flexible conjugate gradients, SIAM J. Sci. Comput. 22,
  2000)
*/
GPUKSP_RULE void CGBegin(GPUKSPState *s)
{
  if (s->reason || GPUKSPStop(s, s->rho)) return;
  s->its = s->i + 1;
  if (s->rho == 0) s->reason = GPUKSP_CONVERGED_ATOL;
  else if (s->i > 0 && s->rho * s->rhoold < 0) s->reason = GPUKSP_DIVERGED_INDEFINITE_PC;
  s->beta = s->i > 0 ? (s->flexible ? -s->alpha * s->delta : s->rho) / s->rhoold : 0;
  if (s->reason && s->i >= s->maxit) s->reason = GPUKSP_DIVERGED_ITS;
}

/* dpi = p'Ap */
GPUKSP_RULE void CGCurvature(GPUKSPState *s, double dpi)
{
  const double dpiold = s->dpi;

  s->xalpha = 0;
  s->dpi    = dpi;
  if (GPUKSPStop(s, dpi)) return;
  if (dpi == 0 || (s->i > 0 && ((dpi > 0 && dpiold < 0) || (dpi < 0 && dpiold > 0)))) {
    s->reason = s->negcurve ? GPUKSP_NEG_CURVE : GPUKSP_DIVERGED_INDEFINITE_MAT;
    if (s->i >= s->maxit) s->reason = GPUKSP_DIVERGED_ITS;
    return;
  }
  s->alpha = s->xalpha = s->rho / dpi;
}

/* The same for the single reduction, with p'Ap from a recurrence */
GPUKSP_RULE void CGBeginSingle(GPUKSPState *s)
{
  const double dpiold = s->dpi;

  CGBegin(s);
  if (s->reason) return;
  s->dpi = s->i > 0 ? s->delta - s->rho * s->rho * dpiold / (s->rhoold * s->rhoold) : s->delta;
  if (GPUKSPStop(s, s->dpi)) return;
  if (s->dpi == 0 || (s->i > 0 && s->dpi * dpiold <= 0)) {
    s->reason = GPUKSP_DIVERGED_INDEFINITE_MAT;
    return;
  }
  s->alpha = s->rho / s->dpi;
}

/* sums: of the residual after the step */
GPUKSP_RULE void CGResidual(GPUKSPState *s, const double sum[])
{
  double norm = GPUKSPNorm(s, sum);

  if (s->normtype != GPUKSP_NORM_NATURAL && s->chknorm >= s->i + 2) norm = 0;
  s->rhoold = s->rho;
  s->rho    = sum[SUM_RZ];
  s->delta  = sum[SUM_ZS];
  s->rnorm  = norm;
  if (GPUKSPStop(s, norm)) return;
  GPUKSPRecord(s, s->i + 1, norm);
  GPUKSPTestNorm(s, s->i + 1, norm);
}

/* Is there a next iteration? */
GPUKSP_RULE int CGGoesOn(GPUKSPState *s)
{
  if (s->reason) return 0;
  s->i++;
  if (s->i >= s->maxit) s->reason = GPUKSPBad(s->rho) ? GPUKSP_DIVERGED_NANORINF : GPUKSP_DIVERGED_ITS;
  return !s->reason;
}

GPUKSP_RULE void CGNext(GPUKSPState *s)
{
  if (CGGoesOn(s)) CGBegin(s);
}

/* ---- single precision with residual replacement ----

  The iteration runs on rounded numbers, with its vectors in units of scale. x is updated in double and the residual replaced by b - A x when the residual has shrunk by the factor update, after a
  number of iterations, and before convergence is accepted. The direction is kept. So a converged solve always reports the norm of a true residual. If replacements make no progress, the iteration
  gives up, and x is the iterate that the last replacement confirmed. Papers: H. A. van der Vorst, Q. Ye, SIAM J. Sci. Comput. 22 (2000); M. A. Clark et al., Comput. Phys. Commun. 181 (2010),
  section 4 ("reliable updates").
*/
#define GPUKSP_MISSES  3   /* replacements without progress before the solve continues in double */
#define GPUKSP_STRETCH 300 /* most iterations between two replacements */

/* After CGResidual(): must the residual be replaced? Then CGTrueResidual() must be the next rule */
GPUKSP_RULE void CGReplace(GPUKSPState *s, const double sum[])
{
  const double r = sqrt(sum[SUM_RR]);

  s->replace = 0;
  if (r > s->rmax) s->rmax = r;
  if (s->reason == GPUKSP_DIVERGED_NANORINF || GPUKSPBad(s->rho)) {
    s->giveup = 1;
    return;
  }
  if (s->reason > 0 || s->reason == GPUKSP_DIVERGED_DTOL || r <= s->update * s->rmax || s->i + 1 - s->replaced >= GPUKSP_STRETCH || s->rho == 0 || (s->rho > 0) != (s->rhoold > 0)) s->replace = 1;
}

/* sums: of the true residual, in double and unscaled; the first, or a replacement for the iteration's residual */
GPUKSP_RULE void CGTrueResidual(GPUKSPState *s, const double sum[], int first)
{
  const double old = s->scale, scale = sum[SUM_RR] > 0 ? sqrt(sum[SUM_RR]) : 1;
  double       norm;

  s->scale = s->rmax = 1;
  if (first) {
    CGInit(s, sum);
    s->scale = s->rfirst = s->rbest = scale;
    s->rho                          = s->rho / scale / scale;
    if (GPUKSPBad(scale)) s->giveup = 1;
    return;
  }
  norm      = GPUKSPNorm(s, sum);
  s->scale  = scale;
  s->xalpha = 0;
  s->replacements++;
  s->replace = 0;
  s->rnorm   = norm;
  s->reason  = 0; /* convergence in single precision must be confirmed */
  if (GPUKSPStop(s, norm)) {
    s->rfirst = 0; /* x is useless */
    return;
  }
  GPUKSPRecord(s, s->i + 1, norm);
  GPUKSPTestNorm(s, s->i + 1, norm);
  /* p is in the old units: beta = (rho / rhoold) (scale / old), with each rho in its own units */
  s->rho    = sum[SUM_RZ] / scale / scale;
  s->rhoold = s->rhoold * old / scale;
  s->misses = scale <= 0.5 * s->rbest ? 0 : s->misses + 1;
  if (scale < s->rbest) s->rbest = scale;
  if (!s->reason && (s->misses >= GPUKSP_MISSES || GPUKSPBad(scale))) s->giveup = 1;
  s->replaced = s->i + 1;
}

/* Single precision has failed. The solve must continue in double, from x if x has improved */
GPUKSP_RULE int CGGivenUp(const GPUKSPState *s)
{
  return s->giveup || s->reason == GPUKSP_DIVERGED_NANORINF || s->reason == GPUKSP_DIVERGED_INDEFINITE_MAT || s->reason == GPUKSP_DIVERGED_INDEFINITE_PC || s->reason == GPUKSP_DIVERGED_DTOL || s->reason == GPUKSP_NEG_CURVE;
}

GPUKSP_RULE int CGImproved(const GPUKSPState *s)
{
  return s->scale < s->rfirst;
}

/* ---- BiCGStab ---- */

GPUKSP_RULE void BCGSInit(GPUKSPState *s, double rr)
{
  const double norm = s->normtype == GPUKSP_NORM_NONE ? 0 : GPUKSPFirst(s, sqrt(rr));

  s->i = s->its = 0;
  s->rnorm      = norm;
  s->rho        = rr;
  s->rhoold = s->alpha = s->omegaold = 1;
  if (GPUKSPStop(s, norm)) return;
  GPUKSPRecord(s, 0, norm);
  GPUKSPTestNorm(s, 0, norm);
}

/* Computes beta for p = r - omegaold beta v + beta p */
GPUKSP_RULE void BCGSBegin(GPUKSPState *s)
{
  if (!s->reason) s->beta = (s->rho / s->rhoold) * (s->alpha / s->omegaold);
}

/* d1 = v'rp */
GPUKSP_RULE void BCGSDirection(GPUKSPState *s, double d1)
{
  if (GPUKSPStop(s, d1)) return;
  if (d1 == 0) s->reason = s->i >= s->maxit ? GPUKSP_DIVERGED_ITS : GPUKSP_DIVERGED_BREAKDOWN;
  else s->alpha = s->rho / d1;
}

GPUKSP_RULE void BCGSStabilize(GPUKSPState *s, double st, double tt, double ss)
{
  s->omega = 0;
  if (tt != 0) s->omega = st / tt;
  else if (ss != 0) s->reason = GPUKSP_DIVERGED_BREAKDOWN;
  else { /* s = 0: x + alpha p is the solution */ s->lucky = 1;
    s->its++;
    GPUKSPRecord(s, s->i + 1, s->rnorm);
    s->rnorm  = 0;
    s->reason = GPUKSP_CONVERGED_RTOL;
  }
  if (s->reason && s->i >= s->maxit) s->reason = GPUKSP_DIVERGED_ITS;
}

/*
  The next rho, and with it beta, before the new residual r = s - omega t exists: rho = (s, rp) - omega (t, rp). tr = t'rp, sr = s'rp. alpha makes sr 0 up to rounding, but the rounding adds up
  over the iterations if sr is left out
*/
GPUKSP_RULE void BCGSPredict(GPUKSPState *s, double tr, double sr)
{
  if (s->reason) return;
  s->delta = sr - s->omega * tr;
  s->beta  = (s->delta / s->rho) * (s->alpha / s->omega);
}

/* rr = r'r, rho = r'rp of the new residual */
GPUKSP_RULE void BCGSResidual(GPUKSPState *s, double rr, double rho)
{
  if (s->normtype != GPUKSP_NORM_NONE && s->chknorm < s->i + 2) {
    s->rnorm = sqrt(rr);
    if (GPUKSPStop(s, s->rnorm)) return;
  }
  s->rhoold   = s->rho;
  s->rho      = rho;
  s->omegaold = s->omega;
  s->its++;
  GPUKSPRecord(s, s->i + 1, s->rnorm);
  GPUKSPTestNorm(s, s->i + 1, s->rnorm);
}

GPUKSP_RULE void BCGSNext(GPUKSPState *s)
{
  if (s->reason) return;
  if (s->rhoold == 0) s->reason = GPUKSP_DIVERGED_BREAKDOWN;
  else if (++s->i >= s->maxit) s->reason = GPUKSP_DIVERGED_ITS;
  BCGSBegin(s);
}
