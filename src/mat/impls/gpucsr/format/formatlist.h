/*
  The formats, one row each: GPUCSR_FORMAT(name, build). No guard: included with different meanings of GPUCSR_FORMAT().
  build is DEVICE where a file of kernels/ fills the format on the device (GPUCSRDeviceBuild_name), HOST where its arrays are filled on the host
  and sent.
*/
GPUCSR_FORMAT(csr, DEVICE)
GPUCSR_FORMAT(sell, DEVICE)
GPUCSR_FORMAT(dense, DEVICE)
