/*
  The vector work of an iteration, a row at a time, from which host loops and the kernels of steps.cu are made. There is no guard, because the file is included once for each GPUKSP_NUMBER; GPUKSP_NAMED() makes
  the names. With single precision vectors the steps still compute and sum in double.
*/

typedef struct {
  union {
    struct {
#define GPUKSP_MEMBER(NAME, name) GPUKSP_NUMBER *name;
      GPUKSP_EACH_VECTOR(GPUKSP_MEMBER)
#undef GPUKSP_MEMBER
    };
    GPUKSP_NUMBER *at[GPUKSP_VECTORS]; /* the same, indexed by GPUKSPVectorName */
  };
  const GPUKSP_NUMBER *diagonal;     /* diagonal preconditioner inside the polynomial, if it is diagonal */
  double               ca, cb;       /* the next step of the polynomial is ca c0 + cb M c2 */
  int                  degree;       /* 0: none */
  double               emin, emax;   /* eigenvalues of the polynomial */
  const GPUKSP_NUMBER *pc;           /* the diagonal of a preconditioner fused into steps; NULL: none, or a preconditioner applied by its own step */
  const GPUKSP_NUMBER *from;         /* input of GPUKSP_PRECONDITION, */
  GPUKSP_NUMBER       *to;           /* and its result */
  const GPUKSP_NUMBER *block;        /* rows of the diagonal blocks of a point-block preconditioner */
  int                  bs;           /* and their size */
  int                  explicitpc;   /* z = M r is stored in z */
  double              *truex;        /* for residual replacement: the solution, */
  const double        *trueresidual; /* and its b - A x, both unscaled */
} GPUKSP_NAMED(GPUKSPVectors);

GPUKSP_RULE double GPUKSP_NAMED(GPUKSPZ)(const GPUKSP_NAMED(GPUKSPVectors) * v, int i, const GPUKSP_NUMBER *r)
{
  return v->explicitpc ? v->z[i] : v->pc ? (double)v->pc[i] * r[i] : r[i];
}

/* Row i of M c2, with the preconditioner M inside the polynomial */
GPUKSP_RULE double GPUKSP_NAMED(GPUKSPInner)(const GPUKSP_NAMED(GPUKSPVectors) * v, int i)
{
  const int b = v->block ? i - i % v->bs : 0;
  double    z = 0;

  if (!v->block) return v->diagonal ? (double)v->diagonal[i] * v->c2[i] : v->c2[i];
  for (int j = 0; j < v->bs; j++) z += (double)v->block[(int64_t)i * v->bs + j] * v->c2[b + j];
  return z;
}

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
  case GPUKSP_TRUE_NORMS: /* of b - A x, which is in w; M w is in t if M has its own step */
    GPUKSPNorms(v->w[i], v->explicitpc ? v->t[i] : v->pc ? (double)v->pc[i] * v->w[i] : v->w[i], sum);
    break;
  case GPUKSP_NORMS:
    GPUKSPNorms(v->r[i], GPUKSP_NAMED(GPUKSPZ)(v, i, v->r), sum);
    break;
  case GPUKSP_PRECONDITION: {
    const int b = i - i % v->bs;
    double    z = 0;

    for (int j = 0; j < v->bs; j++) z += (double)v->block[(int64_t)i * v->bs + j] * v->from[b + j];
    v->to[i] = z;
    break;
  }
  case GPUKSP_POLYNOMIAL_START:
    v->c2[i] = v->from[i];
    break;
  case GPUKSP_POLYNOMIAL_FIRST:
    v->c0[i] = v->to[i] = v->cb * GPUKSP_NAMED(GPUKSPInner)(v, i);
    break;
  case GPUKSP_POLYNOMIAL_RESIDUAL:
    v->c2[i] -= v->c1[i];
    break;
  case GPUKSP_POLYNOMIAL_STEP:
    v->c0[i] = v->ca * v->c0[i] + v->cb * GPUKSP_NAMED(GPUKSPInner)(v, i);
    v->to[i] += v->c0[i];
    break;
  /*
    Conjugate gradients, equations (3:1) of Hestenes and Stiefel 1952 with z = M r. Bytes a row in double, with a diagonal M: 40 for the direction, 16 for the curvature, 32 for the residual, and
    16 for the product's vectors
  */
  case GPUKSP_CG_DIRECTION: { /* (3:1c) of the previous iteration, x += alpha p; (3:1f) p = z + beta p */
    const double p = v->p[i];

    v->x[i] += s->xalpha * p;
    v->p[i] = GPUKSP_NAMED(GPUKSPZ)(v, i, v->r) + s->beta * p;
    break;
  }
  case GPUKSP_CG_CURVATURE: /* p'w of (3:1b), w = A p */
    sum[0] += (double)v->p[i] * v->w[i];
    break;
  case GPUKSP_CG_RESIDUAL: /* (3:1d) r -= alpha w, and the sums of (3:1e) */
    v->r[i] -= s->alpha * v->w[i];
    GPUKSPNorms(v->r[i], GPUKSP_NAMED(GPUKSPZ)(v, i, v->r), sum);
    break;
  case GPUKSP_CG_R: /* if M is not fused: M and GPUKSP_NORMS follow this step */
    v->r[i] -= s->alpha * v->w[i];
    break;
  case GPUKSP_CG_FINISH: /* after a breakdown p may be NaN */
    if (s->xalpha != 0) v->x[i] += s->xalpha * v->p[i];
    break;
  /* Residual replacement: its start, from 0; the norms of the true residual, which is in w; and the updates between the iteration's vectors and the solution */
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
  case GPUKSP_CG1_Z: /* z = M r with a fused M */
    v->z[i] = v->pc ? v->pc[i] * v->r[i] : v->r[i];
    break;
  case GPUKSP_CG1_NORMS: /* s = A z */
    GPUKSPNorms(v->r[i], v->z[i], sum);
    sum[SUM_ZS] += (double)v->z[i] * v->s[i];
    break;
  case GPUKSP_CG1_UPDATE: /* all updates of an iteration of Chronopoulos and Gear 1989, s = A z: 80 bytes a row, and 8 of a diagonal */
    v->p[i] = v->z[i] + s->beta * v->p[i];
    v->w[i] = v->s[i] + s->beta * v->w[i];
    v->x[i] += s->alpha * v->p[i];
    v->r[i] -= s->alpha * v->w[i];
    if (!v->explicitpc) v->z[i] = v->pc ? v->pc[i] * v->r[i] : v->r[i];
    break;
  case GPUKSP_CG1_START:
    v->p[i] = v->w[i] = 0;
    break;
  /*
    BiCGStab, van der Vorst 1992: p = r + beta (p - omega v), v = A p, s = r - alpha v, t = A s, omega = (t, s) / (t, t), x += alpha p + omega s, r = s - omega t. Left: the product's result w is
    preconditioned into v and t. Right: p and s are preconditioned into ph and sh, and the product's result is v or t itself. A diagonal M is fused, in place. Without a separate M, w is v (or t), ph is p and
    sh is s.
  */
  case GPUKSP_BCGS_R_FROM_T:
    v->r[i] = v->t[i];
    break;
  case GPUKSP_BCGS_R_SCALE:
    v->r[i] *= v->pc[i];
    break;
  case GPUKSP_BCGS_START:
    v->rp[i] = v->r[i];
    v->p[i] = v->v[i] = 0;
    sum[0] += (double)v->r[i] * v->r[i];
    break;
  case GPUKSP_BCGS_DIRECTION:
    v->p[i] = v->r[i] - (s->omegaold * s->beta) * v->v[i] + s->beta * v->p[i];
    if (v->ph != v->p && v->pc) v->ph[i] = v->pc[i] * v->p[i];
    break;
  case GPUKSP_BCGS_V:
    if (v->ph == v->p && v->pc) v->v[i] *= v->pc[i];
    sum[0] += (double)v->v[i] * v->rp[i];
    break;
  case GPUKSP_BCGS_S:
    v->s[i] = v->r[i] - s->alpha * v->v[i];
    if (v->sh != v->s && v->pc) v->sh[i] = v->pc[i] * v->s[i];
    break;
  case GPUKSP_BCGS_T:
    if (v->sh == v->s && v->pc) v->t[i] *= v->pc[i];
    sum[0] += (double)v->s[i] * v->t[i];
    sum[1] += (double)v->t[i] * v->t[i];
    sum[2] += (double)v->s[i] * v->s[i];
    break;
  case GPUKSP_BCGS_UPDATE:
    v->x[i] += s->alpha * v->ph[i] + s->omega * v->sh[i];
    v->r[i] = v->s[i] - s->omega * v->t[i];
    sum[0] += (double)v->r[i] * v->r[i];
    sum[1] += (double)v->r[i] * v->rp[i];
    break;
  case GPUKSP_BCGS_LUCKY:
    v->x[i] += s->alpha * v->ph[i];
    break;
  default:
    break;
  }
}
