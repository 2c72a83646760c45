/*
  The work of each step on a row, for loops of the host and the kernels of steps.cu: GPUKSPStepRow(), and GPUKSPStepRowSingle() for vectors in single precision. A row's numbers are read before any
  is written, to have their loads in flight together: the compiler must assume that vectors overlap. The file includes itself once for each type of numbers.
*/
#if !defined(GPUKSP_NUMBER)
  #define GPUKSP_NUMBER      double
  #define GPUKSP_NAMED(name) name
  #include "steprow.h"
  #undef GPUKSP_NUMBER
  #undef GPUKSP_NAMED
  #define GPUKSP_NUMBER      float
  #define GPUKSP_NAMED(name) name##Single
  #include "steprow.h"
  #undef GPUKSP_NUMBER
  #undef GPUKSP_NAMED
#else

/* Entry i of the fused diagonal; 1 without a diagonal */
GPUKSP_RULE double GPUKSP_NAMED(GPUKSPDiagonal)(const GPUKSP_NAMED(GPUKSPVectors) * v, int i)
{
  return v->pc ? (double)v->pc[i] : 1;
}

/* A flat table: each case is an independent step. Functions would need a second list, and the kernels would call through pointers */
GPUKSP_RULE void GPUKSP_NAMED(GPUKSPStepRow)(GPUKSPStep step, const GPUKSP_NAMED(GPUKSPVectors) * v, const GPUKSPState *s, int i, double sum[])
{
  switch (step) {
  case GPUKSP_SUBTRACT: /* w = b - w */
    v->w[i] = v->b[i] - v->w[i];
    break;
  case GPUKSP_CG_START:
    v->r[i] = s->guesszero ? v->b[i] : v->w[i];
    v->p[i] = 0;
    if (s->guesszero) v->x[i] = 0;
    break;
  case GPUKSP_BNORM: /* |b| in the norm of the test; w = M b if M has its own step */
    GPUKSPNorms(v->b[i], v->explicitpc ? v->w[i] : v->pc ? (double)v->pc[i] * v->b[i] : v->b[i], sum);
    break;
  case GPUKSP_NORMS:
    GPUKSPNorms(v->r[i], GPUKSP_NAMED(GPUKSPZ)(v, i, v->r), sum);
    break;
  case GPUKSP_FLEXIBLE_NORMS: /* z = M r in its own step */
    GPUKSPNorms(v->r[i], v->z[i], sum);
    sum[SUM_ZS] += (double)v->z[i] * v->w[i];
    break;
  case GPUKSP_PRECONDITION: {
    const int b = i - i % v->bs;
    double    z = 0;

    for (int j = 0; j < v->bs; j++) z += (double)v->block[(int64_t)i * v->bs + j] * v->from[b + j];
    v->to[i] = z;
    break;
  }
  /*
    Conjugate gradients, equations (3:1) of Hestenes and Stiefel 1952 with z = M r. Bytes a row in double, with a diagonal M: 40 for the direction, 16 for the curvature, 32 for the residual, and
    16 for the product's vectors
  */
  case GPUKSP_CG_DIRECTION: { /* (3:1c) of the previous iteration, x += alpha p; (3:1f) p = z + beta p */
    const double p = v->p[i], x = v->x[i], z = GPUKSP_NAMED(GPUKSPZ)(v, i, v->r);

    v->x[i] = x + s->xalpha * p;
    v->p[i] = z + s->beta * p;
    break;
  }
  case GPUKSP_CG_CURVATURE: /* p'w of (3:1b), w = A p */
    sum[0] += (double)v->p[i] * v->w[i];
    break;
  case GPUKSP_CG_RESIDUAL: { /* (3:1d) r -= alpha w, and the sums of (3:1e) */
    const double        d = GPUKSP_NAMED(GPUKSPDiagonal)(v, i);
    const GPUKSP_NUMBER r = v->r[i] - s->alpha * v->w[i];

    v->r[i] = r;
    GPUKSPNorms(r, d * r, sum);
    break;
  }
  case GPUKSP_CG_R: /* if M is not fused: M and GPUKSP_NORMS follow this step */
    v->r[i] -= s->alpha * v->w[i];
    break;
  case GPUKSP_CG_FINISH: /* after a breakdown p may be NaN */
    if (s->xalpha != 0) v->x[i] += s->xalpha * v->p[i];
    break;
  /* Residual replacement: its start from 0; the norms of the true residual in w; and the updates between the iteration's vectors and the solution */
  case GPUKSP_REPLACEMENT_START:
    v->x[i] = 0;
    v->w[i] = v->b[i];
    break;
  case GPUKSP_REPLACEMENT_NORMS:
    GPUKSPNorms(v->w[i], GPUKSP_NAMED(GPUKSPZ)(v, i, v->w), sum);
    break;
  case GPUKSP_REPLACEMENT_RESIDUAL:
    v->r[i] = v->trueresidual[i] / s->scale;
    v->x[i] = 0;
    if (!s->replacements) v->p[i] = 0;
    break;
  case GPUKSP_REPLACEMENT_UPDATE:
    v->truex[i] += s->scale * (s->xalpha != 0 ? v->x[i] + s->xalpha * v->p[i] : v->x[i]);
    v->x[i] = 0;
    break;
  case GPUKSP_CG1_NORMS: /* s = A z */
    GPUKSPNorms(v->r[i], v->z[i], sum);
    sum[SUM_ZS] += (double)v->z[i] * v->s[i];
    break;
  case GPUKSP_CG1_UPDATE: { /* all updates of an iteration of Chronopoulos and Gear 1989, s = A z: 80 bytes a row, and 8 of a diagonal */
    const double        x = v->x[i], r = v->r[i], d = GPUKSP_NAMED(GPUKSPDiagonal)(v, i);
    const GPUKSP_NUMBER p = v->z[i] + s->beta * v->p[i], w = v->s[i] + s->beta * v->w[i], left = r - s->alpha * w;

    v->p[i] = p;
    v->w[i] = w;
    v->x[i] = x + s->alpha * p;
    v->r[i] = left;
    if (!v->explicitpc) v->z[i] = d * left;
    break;
  }
  case GPUKSP_CG1_START: /* z = M r, with a fused M here */
    v->p[i] = v->w[i] = 0;
    if (!v->explicitpc) v->z[i] = v->pc ? v->pc[i] * v->r[i] : v->r[i];
    break;
  /*
    BiCGStab (H. A. van der Vorst, 1992). The first product is v = A p, s = r - alpha v. The second is t = A s, omega = (t, s) / (t, t). Then x += alpha p + omega s, r = s - omega t, p = r + beta (p - omega v). Bytes a row in double, with a
    diagonal M: 32 with the product for v, 24 for s, 32 with the product for t, 64 for the rest. A product without sums costs 16 more. Left: the product's result w is
    preconditioned into v and t. Right: p and s are preconditioned into ph and sh, and the product's result is v or t itself. A diagonal M is fused, in place. Without a separate M, w is v (or t), ph is p and
    sh is s.
  */
  case GPUKSP_BCGS_START: { /* left: r = M (b - A x), which is in t if M has its own step. The first direction is r */
    const double        d = GPUKSP_NAMED(GPUKSPDiagonal)(v, i);
    const GPUKSP_NUMBER r = v->ph != v->p ? v->r[i] : v->explicitpc ? v->t[i] : d * v->r[i];

    v->r[i] = v->rp[i] = v->p[i] = r;
    if (v->ph != v->p && v->pc) v->ph[i] = d * r;
    sum[0] += (double)r * r;
    break;
  }
  case GPUKSP_BCGS_V: {
    const double        rp = v->rp[i], d = v->ph == v->p ? GPUKSP_NAMED(GPUKSPDiagonal)(v, i) : 1;
    const GPUKSP_NUMBER y = d * v->v[i];

    if (v->ph == v->p && v->pc) v->v[i] = y;
    sum[0] += (double)y * rp;
    break;
  }
  case GPUKSP_BCGS_S: {
    const double        d = v->sh != v->s ? GPUKSP_NAMED(GPUKSPDiagonal)(v, i) : 1;
    const GPUKSP_NUMBER y = v->r[i] - s->alpha * v->v[i];

    v->s[i] = y;
    if (v->sh != v->s && v->pc) v->sh[i] = d * y;
    break;
  }
  case GPUKSP_BCGS_T: {
    const double        y = v->s[i], rp = v->rp[i], d = v->sh == v->s ? GPUKSP_NAMED(GPUKSPDiagonal)(v, i) : 1;
    const GPUKSP_NUMBER t = d * v->t[i];

    if (v->sh == v->s && v->pc) v->t[i] = t;
    sum[0] += y * t;
    sum[1] += (double)t * t;
    sum[2] += y * y;
    sum[3] += rp * t;
    sum[4] += rp * y;
    break;
  }
  case GPUKSP_BCGS_ADVANCE: { /* x, r and the next direction in one pass, since its beta is known */
    const double        x = v->x[i], ph = v->ph[i], sh = v->sh[i], p = v->p[i], y = v->v[i], d = v->ph != v->p ? GPUKSP_NAMED(GPUKSPDiagonal)(v, i) : 1;
    const GPUKSP_NUMBER r = v->s[i] - s->omega * v->t[i], next = r - (s->omega * s->beta) * y + s->beta * p;

    v->x[i] = x + (s->alpha * ph + s->omega * sh);
    v->r[i] = r;
    v->p[i] = next;
    if (v->ph != v->p && v->pc) v->ph[i] = d * next;
    sum[0] += (double)r * r;
    break;
  }
  case GPUKSP_BCGS_LUCKY:
    v->x[i] += s->alpha * v->ph[i];
    break;
  default:
    break;
  }
}
#endif
