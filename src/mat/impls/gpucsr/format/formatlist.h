/*
  The formats, one row each: GPUCSR_FORMAT(name, family, variant, build). No guard: included with different meanings of
  GPUCSR_FORMAT(). name is the word a user gives, family the GPUCSRFormatFamily that a file of this folder exports, variant its number.
  build is DEVICE where a file of kernels/ fills the format on the device (it exports GPUCSRDeviceFormat_family), HOST where
  its arrays are filled on the host and sent.
*/
GPUCSR_FORMAT(csr, csr, 0, DEVICE)
GPUCSR_FORMAT(sell, sell, 1, DEVICE)
GPUCSR_FORMAT(dense, dense, 0, DEVICE)
GPUCSR_FORMAT(sell_256, sell, 256, DEVICE)
GPUCSR_FORMAT(sell_4096, sell, 4096, DEVICE)
GPUCSR_FORMAT(sell_sorted, sell, INT32_MAX, DEVICE)
GPUCSR_FORMAT(ell, sell, 0, DEVICE)
GPUCSR_FORMAT(bitdense, bitdense, 0, DEVICE)
GPUCSR_FORMAT(dia, dia, 0, DEVICE)
GPUCSR_FORMAT(coo, coo, 0, DEVICE)
GPUCSR_FORMAT(hyb, hyb, 0, DEVICE)
GPUCSR_FORMAT(jad, jad, 0, DEVICE)
