/*
  Cost of the kernels, microseconds, on one H200: kernel, width, threads, most, launch, bytes, row, step, uneven, cut. Fitted by
  src/benchmarks/fit.py to the products of docs/results/; a kernel without a row is never chosen unless asked for.
*/
  {"csr_scalar", 1, 1, INT_MAX, 2.765, 0.08199, 1.906, 0.06245, 0.4429, 0},
  {"csr_vector2", 4, 2, INT_MAX, 2.87, 0.1133, 0.9825, 0.1046, 0.7084, 0},
  {"csr_vector4", 8, 4, INT_MAX, 2.86, 0.1804, 0.9628, 0.1075, 0.477, 0},
  {"csr_vector8", 16, 8, INT_MAX, 2.851, 0.1752, 1.822, 0.1084, 0.275, 0},
  {"csr_vector16", 32, 16, INT_MAX, 2.797, 0.181, 2.255, 0.1161, 0.2952, 0},
  {"csr_vector32", 64, 32, INT_MAX, 2.758, 0.2021, 2.446, 0.1031, 0.6517, 0},
  {"csr_block", 512, 256, INT_MAX, 2.634, 0.05528, 3.188, 0.09892, 0.5969, 0},
  {"csr_adaptive", 32, 0, 1024, 3.45, 0.1602, 0, 0.04813, 2.163, 0},
  {"sell_row", 8, 1, INT_MAX, 2.625, 0.1614, 0.643, 0.2963, 0.2783, 0},
  {"dense_gemv", INT_MAX, 0, INT_MAX, 5.548, 0.1864, 0, 0, 0, 0},
