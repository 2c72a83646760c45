/*
  The formats, one row each: GPUCSR_FORMAT(name, family, variant, build). No guard: included with different meanings of
  GPUCSR_FORMAT(). name is the word a user gives, family the GPUCSRFormatFamily that a file of this folder exports, variant its number.
  build is DEVICE where a file of kernels/ fills the format on the device (it exports GPUCSRDeviceFormat_family), HOST where
  its arrays are filled on the host and sent.
*/
GPUCSR_FORMAT(csr, csr, 0, DEVICE)
GPUCSR_FORMAT(sell, sell, 0, DEVICE)
GPUCSR_FORMAT(dense, dense, 0, DEVICE)
GPUCSR_FORMAT(bcsr1x2, bcsr, GPUCSR_BLOCK(1, 2), DEVICE)
GPUCSR_FORMAT(bcsr1x3, bcsr, GPUCSR_BLOCK(1, 3), DEVICE)
GPUCSR_FORMAT(bcsr1x4, bcsr, GPUCSR_BLOCK(1, 4), DEVICE)
GPUCSR_FORMAT(bcsr2x1, bcsr, GPUCSR_BLOCK(2, 1), DEVICE)
GPUCSR_FORMAT(bcsr2x2, bcsr, GPUCSR_BLOCK(2, 2), DEVICE)
GPUCSR_FORMAT(bcsr2x3, bcsr, GPUCSR_BLOCK(2, 3), DEVICE)
GPUCSR_FORMAT(bcsr2x4, bcsr, GPUCSR_BLOCK(2, 4), DEVICE)
GPUCSR_FORMAT(bcsr3x1, bcsr, GPUCSR_BLOCK(3, 1), DEVICE)
GPUCSR_FORMAT(bcsr3x2, bcsr, GPUCSR_BLOCK(3, 2), DEVICE)
GPUCSR_FORMAT(bcsr3x3, bcsr, GPUCSR_BLOCK(3, 3), DEVICE)
GPUCSR_FORMAT(bcsr3x4, bcsr, GPUCSR_BLOCK(3, 4), DEVICE)
GPUCSR_FORMAT(bcsr4x1, bcsr, GPUCSR_BLOCK(4, 1), DEVICE)
GPUCSR_FORMAT(bcsr4x2, bcsr, GPUCSR_BLOCK(4, 2), DEVICE)
GPUCSR_FORMAT(bcsr4x3, bcsr, GPUCSR_BLOCK(4, 3), DEVICE)
GPUCSR_FORMAT(bcsr4x4, bcsr, GPUCSR_BLOCK(4, 4), DEVICE)
GPUCSR_FORMAT(bcsr8x8, bcsr, GPUCSR_BLOCK(8, 8), DEVICE)
GPUCSR_FORMAT(block4x64, block4x64, GPUCSR_BLOCK(4, 64), DEVICE)
