/*
  Cost of the kernels, microseconds, on one H200: kernel, width, threads, most, launch, bytes, row, step, uneven, cut. Made by
  src/benchmarks/fit.py from docs/results/; a kernel without a row is never chosen unless asked for.
*/
{"csr_scalar", 1, 1, INT_MAX, 2.854, 0.07911, 1.309, 0.0615, 0.4601, 0},
{"csr_vector2", 4, 2, INT_MAX, 2.955, 0.1105, 0.7534, 0.1026, 0.7029, 0},
{"csr_vector4", 8, 4, INT_MAX, 2.947, 0.1699, 0.9166, 0.1055, 0.4885, 0},
{"csr_vector8", 16, 8, INT_MAX, 2.926, 0.1612, 1.825, 0.1057, 0.3136, 0},
{"csr_vector16", 32, 16, INT_MAX, 2.881, 0.1915, 2.133, 0.1148, 0.07547, 0},
{"csr_vector32", 64, 32, INT_MAX, 2.855, 0.2017, 2.368, 0.1067, 0.005702, 0},
{"csr_block", 512, 256, INT_MAX, 2.776, 0.0637, 3.065, 0.09168, 0.5503, 0},
{"csr_adaptive", 32, 0, 1024, 3.543, 0.2617, 0, 0.01911, 0.8016, 0},
{"sell_row", 8, 1, INT_MAX, 2.698, 0.155, 0, 0.2943, 0.2987, 0},
{"dense_gemv", INT_MAX, 0, INT_MAX, 5.809, 0.2133, 0, 0, 0.06169, 0},
