/*
  The vectors of a solve for the steps of an iteration (steprow.h). Without a guard, because the file is included once for each GPUKSP_NUMBER; GPUKSP_NAMED() makes the names. With single precision
  vectors the steps still compute and sum in double.
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
  const GPUKSP_NUMBER *pc;           /* the diagonal of a preconditioner within steps; NULL: no preconditioner, or a preconditioner with its own step */
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
