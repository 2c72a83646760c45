#pragma once

/* The vector work of an iteration, a row at a time: host loops and the kernels of steps.cu are made of it */

typedef struct {
  double       *x, *b, *r, *p, *w, *z, *s, *t, *v, *rp, *ph, *sh;
  double       *p2, *v2;    /* of a launch: p and v of the iteration before */
  double       *c0, *c1;    /* of a polynomial preconditioner: its step, and A times that; in a launch the next step */
  double       *c2;         /* and what is left of what it is applied to */
  const double *diagonal;   /* of the preconditioner that it is a polynomial of, where that is diagonal */
  double        ca, cb;     /* the step to come is ca c0 + cb M c2 */
  int           degree;     /* 0: none */
  double        emin, emax; /* the eigenvalues that it is made for */
  const double *pc;         /* of a diagonal preconditioner that is applied on the way: its diagonal; NULL: none, or one that is applied by itself */
  const double *from;       /* what GPUKSP_PRECONDITION is applied to, */
  double       *to;         /* and its result */
  const double *block;      /* rows of the diagonal blocks of a point-block preconditioner */
  int           bs;         /* and their size */
  int           explicitpc; /* z = M r is in z */
} GPUKSPVectors;

GPUKSP_RULE double GPUKSPZ(const GPUKSPVectors *v, int i, const double *r)
{
  return v->explicitpc ? v->z[i] : v->pc ? v->pc[i] * r[i] : r[i];
}

/* Row i of M c2, where M is what a polynomial is of */
GPUKSP_RULE double GPUKSPInner(const GPUKSPVectors *v, int i)
{
  const int b = v->block ? i - i % v->bs : 0;
  double    z = 0;

  if (!v->block) return v->diagonal ? v->diagonal[i] * v->c2[i] : v->c2[i];
  for (int j = 0; j < v->bs; j++) z += v->block[(int64_t)i * v->bs + j] * v->c2[b + j];
  return z;
}

GPUKSP_RULE void GPUKSPNorms(double r, double z, double sum[])
{
  sum[SUM_RR] += r * r;
  sum[SUM_ZZ] += z * z;
  sum[SUM_RZ] += r * z;
}

GPUKSP_RULE void GPUKSPStepRow(GPUKSPStep step, const GPUKSPVectors *v, const GPUKSPState *s, int i, double sum[])
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
  case GPUKSP_BNORM: /* |b| in the norm of the test; w = M b where that is applied by itself */
    GPUKSPNorms(v->b[i], v->explicitpc ? v->w[i] : v->pc ? v->pc[i] * v->b[i] : v->b[i], sum);
    break;
  case GPUKSP_NORMS:
    GPUKSPNorms(v->r[i], GPUKSPZ(v, i, v->r), sum);
    break;
  case GPUKSP_PRECONDITION: {
    const int b = i - i % v->bs;
    double    z = 0;

    for (int j = 0; j < v->bs; j++) z += v->block[(int64_t)i * v->bs + j] * v->from[b + j];
    v->to[i] = z;
    break;
  }
  case GPUKSP_POLYNOMIAL_START:
    v->c2[i] = v->from[i];
    break;
  case GPUKSP_POLYNOMIAL_FIRST:
    v->c0[i] = v->to[i] = v->cb * GPUKSPInner(v, i);
    break;
  case GPUKSP_POLYNOMIAL_RESIDUAL:
    v->c2[i] -= v->c1[i];
    break;
  case GPUKSP_POLYNOMIAL_STEP:
    v->c0[i] = v->ca * v->c0[i] + v->cb * GPUKSPInner(v, i);
    v->to[i] += v->c0[i];
    break;
  case GPUKSP_CG_DIRECTION: {
    const double p = v->p[i];

    v->x[i] += s->xalpha * p;
    v->p[i] = GPUKSPZ(v, i, v->r) + s->beta * p;
    break;
  }
  case GPUKSP_CG_CURVATURE:
    sum[0] += v->p[i] * v->w[i];
    break;
  case GPUKSP_CG_RESIDUAL:
    v->r[i] -= s->alpha * v->w[i];
    GPUKSPNorms(v->r[i], GPUKSPZ(v, i, v->r), sum);
    break;
  case GPUKSP_CG_R: /* where M is not applied on the way: it and GPUKSP_NORMS come after this */
    v->r[i] -= s->alpha * v->w[i];
    break;
  case GPUKSP_CG_FINISH:
    v->x[i] += s->xalpha * v->p[i];
    break;
  case GPUKSP_CG1_Z: /* z = M r where that is no step of its own */
    v->z[i] = v->pc ? v->pc[i] * v->r[i] : v->r[i];
    break;
  case GPUKSP_CG1_NORMS: /* s = A z */
    GPUKSPNorms(v->r[i], v->z[i], sum);
    sum[SUM_ZS] += v->z[i] * v->s[i];
    break;
  case GPUKSP_CG1_UPDATE:
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
    BiCGStab. Left: the product's result w is preconditioned into v and t. Right: p and s are, into ph and sh, and the product's result is v or t
    itself. In place on the way where M is diagonal; w is v (or t), ph is p, sh is s where there is nothing in between.
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
    sum[0] += v->r[i] * v->r[i];
    break;
  case GPUKSP_BCGS_DIRECTION:
    v->p[i] = v->r[i] - (s->omegaold * s->beta) * v->v[i] + s->beta * v->p[i];
    if (v->ph != v->p && v->pc) v->ph[i] = v->pc[i] * v->p[i];
    break;
  case GPUKSP_BCGS_V:
    if (v->ph == v->p && v->pc) v->v[i] *= v->pc[i];
    sum[0] += v->v[i] * v->rp[i];
    break;
  case GPUKSP_BCGS_S:
    v->s[i] = v->r[i] - s->alpha * v->v[i];
    if (v->sh != v->s && v->pc) v->sh[i] = v->pc[i] * v->s[i];
    break;
  case GPUKSP_BCGS_T:
    if (v->sh == v->s && v->pc) v->t[i] *= v->pc[i];
    sum[0] += v->s[i] * v->t[i];
    sum[1] += v->t[i] * v->t[i];
    sum[2] += v->s[i] * v->s[i];
    break;
  case GPUKSP_BCGS_UPDATE:
    v->x[i] += s->alpha * v->ph[i] + s->omega * v->sh[i];
    v->r[i] = v->s[i] - s->omega * v->t[i];
    sum[0] += v->r[i] * v->r[i];
    sum[1] += v->r[i] * v->rp[i];
    break;
  case GPUKSP_BCGS_LUCKY:
    v->x[i] += s->alpha * v->ph[i];
    break;
  default:
    break;
  }
}
