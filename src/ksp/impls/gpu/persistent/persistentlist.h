/*
  The formats of a persistent kernel's product, one row each, in the order of trial: GPUKSP_FORMAT(name, sharing, before, moved, offsets, needs). Without a guard, because the file is included with
  different meanings of GPUKSP_FORMAT(). The product is in persistent_NAME.cu, which exports GPUKSPPersistent_NAME.

    name     of the format, and of its family
    sharing  what shares a row: LANES of a warp, or WARPS of a slice of 32 rows
    before   the array with the number of entries (or columns of slices) before a row; NONE: all rows have the same number
    moved    the permutation of rows, within windows of as many rows as the variant says; NONE
    offsets  the array of all values of column - row; NONE: columns are arbitrary
    needs    the features that its estimate needs: STENCILS, counted (rows are then those of a table), a SAMPLE of the rows, or NOTHING
*/
GPUKSP_FORMAT(stencil, WARPS, NONE, NONE, STENCIL_OFFSET, STENCILS)
GPUKSP_FORMAT(dia, WARPS, NONE, NONE, DIA_OFFSET, SAMPLE)
GPUKSP_FORMAT(sell, WARPS, SELL_SLICE, SELL_PERM, NONE, NOTHING)
GPUKSP_FORMAT(csr, LANES, CSR_ROWPTR, NONE, NONE, NOTHING)
