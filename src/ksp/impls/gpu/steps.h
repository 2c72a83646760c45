/*
  The vector work of an iteration, a row at a time, for vectors of type X; names get their ending by NAME(). No guard: vectors.h includes it for
  double and for float. Host loops and the kernels of steps.cu are made of it.
*/

typedef struct {
  X       *x, *b, *r, *p, *w, *z, *s, *t, *v, *rp, *ph, *sh;
  X       *p2, *v2;    /* of a launch: p and v of the iteration before */
  X       *c0, *c1;    /* of a polynomial preconditioner: its step, and A times that; in a launch the next step */
  X       *c2;         /* and what is left of what it is applied to */
  const X *diagonal;   /* of the preconditioner that it is a polynomial of, where that is diagonal */
  X        ca, cb;     /* the step to come is ca c0 + cb M c2 */
  int      degree;     /* 0: none */
  double   emin, emax; /* the eigenvalues that it is made for */
  const X *pc;         /* of a diagonal preconditioner that is applied on the way: its diagonal; NULL: none, or one that is applied by itself */
  const X *from;       /* what GPUKSP_PRECONDITION is applied to, */
  X       *to;         /* and its result */
  const X *block;      /* rows of the diagonal blocks of a point-block preconditioner */
  int      bs;         /* and their size */
  int      explicitpc; /* z = M r is in z */
} NAME(GPUKSPVectors);

GPUKSP_RULE X NAME(GPUKSPZ)(const NAME(GPUKSPVectors) * v, int i, const X *r)
{
  return v->explicitpc ? v->z[i] : v->pc ? v->pc[i] * r[i] : r[i];
}

/* Row i of M c2, where M is what a polynomial is of */
GPUKSP_RULE X NAME(GPUKSPInner)(const NAME(GPUKSPVectors) * v, int i)
{
  const int b = v->block ? i - i % v->bs : 0;
  X         z = 0;

  if (!v->block) return v->diagonal ? v->diagonal[i] * v->c2[i] : v->c2[i];
  for (int j = 0; j < v->bs; j++) z += v->block[(int64_t)i * v->bs + j] * v->c2[b + j];
  return z;
}

GPUKSP_RULE void NAME(GPUKSPNorms)(double r, double z, double sum[])
{
  sum[SUM_RR] += r * r;
  sum[SUM_ZZ] += z * z;
  sum[SUM_RZ] += r * z;
}

GPUKSP_RULE void NAME(GPUKSPStepRow)(GPUKSPStep step, const NAME(GPUKSPVectors) * v, const GPUKSPState *s, int i, double sum[])
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
    NAME(GPUKSPNorms)(v->b[i], v->explicitpc ? v->w[i] : v->pc ? v->pc[i] * v->b[i] : v->b[i], sum);
    break;
  case GPUKSP_NORMS:
    NAME(GPUKSPNorms)(v->r[i], NAME(GPUKSPZ)(v, i, v->r), sum);
    break;
  case GPUKSP_PRECONDITION: {
    const int b = i - i % v->bs;
    X         z = 0;

    for (int j = 0; j < v->bs; j++) z += v->block[(int64_t)i * v->bs + j] * v->from[b + j];
    v->to[i] = z;
    break;
  }
  case GPUKSP_POLYNOMIAL_START:
    v->c2[i] = v->from[i];
    break;
  case GPUKSP_POLYNOMIAL_FIRST:
    v->c0[i] = v->to[i] = v->cb * NAME(GPUKSPInner)(v, i);
    break;
  case GPUKSP_POLYNOMIAL_RESIDUAL:
    v->c2[i] -= v->c1[i];
    break;
  case GPUKSP_POLYNOMIAL_STEP:
    v->c0[i] = v->ca * v->c0[i] + v->cb * NAME(GPUKSPInner)(v, i);
    v->to[i] += v->c0[i];
    break;
  case GPUKSP_CG_DIRECTION: {
    const X p = v->p[i];

    v->x[i] += (X)s->xalpha * p;
    v->p[i] = NAME(GPUKSPZ)(v, i, v->r) + (X)s->beta * p;
    break;
  }
  case GPUKSP_CG_CURVATURE:
    sum[0] += (double)v->p[i] * (double)v->w[i];
    break;
  case GPUKSP_CG_RESIDUAL:
    v->r[i] -= (X)s->alpha * v->w[i];
    NAME(GPUKSPNorms)(v->r[i], NAME(GPUKSPZ)(v, i, v->r), sum);
    break;
  case GPUKSP_CG_R: /* where M is not applied on the way: it and GPUKSP_NORMS come after this */
    v->r[i] -= (X)s->alpha * v->w[i];
    break;
  case GPUKSP_CG_FINISH:
    v->x[i] += (X)s->xalpha * v->p[i];
    break;
  case GPUKSP_CG1_Z: /* z = M r where that is no step of its own */
    v->z[i] = v->pc ? v->pc[i] * v->r[i] : v->r[i];
    break;
  case GPUKSP_CG1_NORMS: /* s = A z */
    NAME(GPUKSPNorms)(v->r[i], v->z[i], sum);
    sum[SUM_ZS] += (double)v->z[i] * (double)v->s[i];
    break;
  case GPUKSP_CG1_UPDATE:
    v->p[i] = v->z[i] + (X)s->beta * v->p[i];
    v->w[i] = v->s[i] + (X)s->beta * v->w[i];
    v->x[i] += (X)s->alpha * v->p[i];
    v->r[i] -= (X)s->alpha * v->w[i];
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
    sum[0] += (double)v->r[i] * (double)v->r[i];
    break;
  case GPUKSP_BCGS_DIRECTION:
    v->p[i] = v->r[i] - (X)(s->omegaold * s->beta) * v->v[i] + (X)s->beta * v->p[i];
    if (v->ph != v->p && v->pc) v->ph[i] = v->pc[i] * v->p[i];
    break;
  case GPUKSP_BCGS_V:
    if (v->ph == v->p && v->pc) v->v[i] *= v->pc[i];
    sum[0] += (double)v->v[i] * (double)v->rp[i];
    break;
  case GPUKSP_BCGS_S:
    v->s[i] = v->r[i] - (X)s->alpha * v->v[i];
    if (v->sh != v->s && v->pc) v->sh[i] = v->pc[i] * v->s[i];
    break;
  case GPUKSP_BCGS_T:
    if (v->sh == v->s && v->pc) v->t[i] *= v->pc[i];
    sum[0] += (double)v->s[i] * (double)v->t[i];
    sum[1] += (double)v->t[i] * (double)v->t[i];
    sum[2] += (double)v->s[i] * (double)v->s[i];
    break;
  case GPUKSP_BCGS_UPDATE:
    v->x[i] += (X)s->alpha * v->ph[i] + (X)s->omega * v->sh[i];
    v->r[i] = v->s[i] - (X)s->omega * v->t[i];
    sum[0] += (double)v->r[i] * (double)v->r[i];
    sum[1] += (double)v->r[i] * (double)v->rp[i];
    break;
  case GPUKSP_BCGS_LUCKY:
    v->x[i] += (X)s->alpha * v->ph[i];
    break;
  default:
    break;
  }
}
