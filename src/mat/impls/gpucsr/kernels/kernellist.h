/*
  The kernels, one row each: GPUCSR_KERNEL(name, family, variant, format). No guard: included with different meanings of
  GPUCSR_KERNEL(). family names the GPUCSRKernelFamily that a .cu file of this folder exports, format the family of formats it works on.
*/
GPUCSR_KERNEL(csr_scalar, csr_scalar, 1, csr)
GPUCSR_KERNEL(csr_vector2, csr_vector, 2, csr)
GPUCSR_KERNEL(csr_vector4, csr_vector, 4, csr)
GPUCSR_KERNEL(csr_vector8, csr_vector, 8, csr)
GPUCSR_KERNEL(csr_vector16, csr_vector, 16, csr)
GPUCSR_KERNEL(csr_vector32, csr_vector, 32, csr)
GPUCSR_KERNEL(csr_block, csr_block, 256, csr)
GPUCSR_KERNEL(csr_adaptive, csr_adaptive, 0, csr)
GPUCSR_KERNEL(csr_merge, csr_merge, 0, csr)
GPUCSR_KERNEL(sell_row, sell_row, 1, sell)
GPUCSR_KERNEL(dense_gemv, dense_gemv, 0, dense)
