/*
  The formats that a persistent kernel can multiply with, one row each, in the order in which they are tried: GPUKSP_FORMAT(name, sharing, before, moved, offsets, needs). No
  guard: included with different meanings of GPUKSP_FORMAT(). The product is in persistent_NAME.cu, which exports GPUKSPPersistent_NAME.

    name     of the format, and of its family
    sharing  who works on a row: LANES of a warp, or WARPS on a slice of 32 rows
    before   the array that tells how many entries (or columns of slices) come before a row; NONE: as many for each row
    moved    the array of rows that have moved, within windows of as many rows as the variant says; NONE
    offsets  the array of column - row where that is all there are of columns; NONE: columns may be anywhere
    needs    what the features must know before it can be estimated: STENCILS, counted (rows are then those of a table), a SAMPLE of the rows, or NOTHING
*/
GPUKSP_FORMAT(stencil, WARPS, NONE, NONE, STENCIL_OFFSET, STENCILS)
GPUKSP_FORMAT(dia, WARPS, NONE, NONE, DIA_OFFSET, SAMPLE)
GPUKSP_FORMAT(sell, WARPS, SELL_SLICE, SELL_PERM, NONE, NOTHING)
GPUKSP_FORMAT(csr, LANES, CSR_ROWPTR, NONE, NONE, NOTHING)
