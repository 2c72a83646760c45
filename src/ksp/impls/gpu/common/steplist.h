/*
  GPUKSP_STEP(name, double, single, sums, reads, gathers, order): the steps of iterations, GPUKSP_name. steprow.h says what a step does with a row.

    double, single  does the step exist in this precision?
    sums            their number
    reads           1: the step writes no vector
    gathers         1: a product before the step may take its sums
    order           of the rows. The last-level cache still holds the rows at which the previous step or product has ended. So passes alternate, and products always run forwards:
                    FORWARDS, BACKWARDS, or BACKWARDS if products of the solve take sums (FUSED) or take none (APART)
*/
GPUKSP_STEP(SUBTRACT, true, false, 0, 0, 0, FORWARDS)
GPUKSP_STEP(CG_START, true, false, 0, 0, 0, FORWARDS)
GPUKSP_STEP(BNORM, true, false, 3, 1, 0, FORWARDS)
GPUKSP_STEP(NORMS, true, true, 3, 1, 1, BACKWARDS)
GPUKSP_STEP(FLEXIBLE_NORMS, true, false, 4, 1, 0, BACKWARDS)
GPUKSP_STEP(PRECONDITION, true, true, 0, 0, 0, FORWARDS)
GPUKSP_STEP(CG_DIRECTION, true, true, 0, 0, 0, APART)
GPUKSP_STEP(CG_CURVATURE, true, true, 1, 1, 1, BACKWARDS)
GPUKSP_STEP(CG_RESIDUAL, true, true, 3, 0, 0, FUSED)
GPUKSP_STEP(CG_R, true, true, 0, 0, 0, FORWARDS)
GPUKSP_STEP(CG_FINISH, true, false, 0, 0, 0, FORWARDS)
GPUKSP_STEP(REPLACEMENT_START, true, false, 0, 0, 0, FORWARDS)
GPUKSP_STEP(REPLACEMENT_NORMS, true, false, 3, 1, 0, FORWARDS)
GPUKSP_STEP(REPLACEMENT_RESIDUAL, false, true, 0, 0, 0, FORWARDS)
GPUKSP_STEP(REPLACEMENT_UPDATE, false, true, 0, 0, 0, FORWARDS)
GPUKSP_STEP(CG1_START, true, false, 0, 0, 0, FORWARDS)
GPUKSP_STEP(CG1_NORMS, true, false, 4, 1, 0, FORWARDS)
GPUKSP_STEP(CG1_UPDATE, true, false, 0, 0, 0, FORWARDS)
GPUKSP_STEP(BCGS_START, true, false, 1, 0, 0, FORWARDS)
GPUKSP_STEP(BCGS_V, true, false, 1, 0, 1, BACKWARDS)
GPUKSP_STEP(BCGS_S, true, false, 0, 0, 0, FUSED)
GPUKSP_STEP(BCGS_T, true, false, 5, 0, 1, BACKWARDS)
GPUKSP_STEP(BCGS_ADVANCE, true, false, 1, 0, 0, FUSED)
GPUKSP_STEP(BCGS_LUCKY, true, false, 0, 0, 0, FORWARDS)
