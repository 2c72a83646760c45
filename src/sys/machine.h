#pragma once

/*
  The table of tuned constants. Each row has a name, the value on one NVIDIA H200 and its host, a unit, the scaling and the files of its use. Sizes of blocks, of shared memory and of layouts stay
  with their kernels.

  Each device has a copy, scaled by its properties. The file of -mat_gpucsr_machine overrides rows. `make tune` writes one. The header is plain C, because device sources include it.
*/

typedef enum {
  GPUCSR_SCALE_FIXED,      /* not at all: ranks with different devices make the same choice */
  GPUCSR_SCALE_BANDWIDTH,  /* as the bandwidth of memory */
  GPUCSR_SCALE_PROCESSORS, /* as the number of processors */
  GPUCSR_SCALE_RATE,       /* as processors times clock, by which the last-level cache is read and entries are worked on */
  GPUCSR_SCALE_CACHE,      /* as the bytes of the last-level cache */
  GPUCSR_SCALE_PER_BANDWIDTH,
  GPUCSR_SCALE_PER_RATE,
  GPUCSR_SCALE_PER_CLOCK /* waiting */
} GPUCSRMachineScale;

/* clang-format off */
#define GPUCSR_MACHINE_ROWS(ROW) \
  /* the host and the bus */ \
  ROW(host_launch, 0.3e-6, "s", FIXED, "foretell.c: a product on one core, before its first row") \
  ROW(host_row, 1.5e-9, "s a row", FIXED, "foretell.c: the same") \
  ROW(host_entry, 0.9e-9, "s an entry", FIXED, "foretell.c: the same") \
  ROW(host_number, 0.5e-9, "s a number", FIXED, "foretell.c: a vector operation on one core") \
  ROW(host_iteration, 0.5e-6, "s", FIXED, "foretell.c: an iteration of KSPCG on the host") \
  ROW(host_passes, 17, "vectors", FIXED, "foretell.c: that such an iteration goes through") \
  ROW(device_call, 4.6e-6, "s", FIXED, "foretell.c: MatMult() again and again on device vectors, what the host takes for one") \
  ROW(host_call, 18.5e-6, "s", FIXED, "foretell.c: the same on short host vectors, whose result the host waits for") \
  ROW(staged_rate, 16e9, "bytes/s", FIXED, "foretell.c: short vectors, by way of staging buffers") \
  ROW(pinned_least, 524288, "bytes", FIXED, "foretell.c, product/vectors.c, vec/impls/gpu/entries.c: of a vector that is worth page-locking") \
  ROW(pieces_call, 35.0e-6, "s", FIXED, "foretell.c: a product in pieces, begin and end of the pipeline") \
  ROW(piece_size, 2097152, "bytes", FIXED, "product.c: of both vectors, in a piece of a product with host vectors") \
  ROW(pinned_rate, 55e9, "bytes/s", FIXED, "foretell.c: page-locked vectors, one way") \
  ROW(duplex_rate, 78e9, "bytes/s", FIXED, "foretell.c: both ways at the same time, together") \
  ROW(threaded_size, 262144, "bytes", FIXED, "sys/convert.c: from which on several host threads convert") \
  ROW(threaded_rows, 20000, "rows", FIXED, "inspect.c: from which on several host threads inspect") \
  ROW(threaded_entries, 100000, "entries", FIXED, "inplace.c, plan.c, sparseproduct.c: from which on several host threads go through values") \
  ROW(unstaged_size, 65536, "bytes", FIXED, "sys/stage.c: up to which the driver takes pageable memory along with the command") \
  ROW(alone_size, 32768, "bytes", FIXED, "sys/stage.c: of a stage, up to which one thread fills it and a copy engine sends it") \
  ROW(small_margin, 1.25, "factor", FIXED, "foretell.c: by which the other place must be faster before products move there") \
  ROW(small_launch, 2.5e-6, "s", FIXED, "foretell.c: a product of a small matrix, before its first entry") \
  ROW(small_rate, 2e12, "bytes/s", RATE, "foretell.c: of a matrix that the last-level cache holds") \
  ROW(sparse_least, 20000, "entries", FIXED, "type/gpucsr.c: of both factors, for a sparse product on the device") \
  ROW(missed_share, 0.3, "share", FIXED, "report/report.c: of a measured time, from which on the error of a prediction is told") \
  ROW(spare_entries, 100000, "entries", FIXED, "product/mirror.c: from which on a matrix keeps its upload for a set-up that follows,") \
  ROW(spare_products, 16, "products", FIXED, "product/mirror.c: for so many products,") \
  ROW(spare_share, 0.25, "share", FIXED, "product/mirror.c: while all of the library's memory is at most this part of the device's") \
  ROW(bundle_rows, 2048, "rows", FIXED, "tao/impls/bmrm/gpubmrm.c: from which on planes are on the device") \
  ROW(cudss_least, 10000, "rows", FIXED, "factor/cudss: from which on cuDSS factors; the first analysis takes a tenth of a second") \
  /* choosing formats and kernels: the parts of the built-in profile, and its model */ \
  ROW(profile_waiting, 1, "factor", PER_CLOCK, "choose.c: of the time that the built-in profile has for waiting,") \
  ROW(profile_memory, 1, "factor", PER_BANDWIDTH, "choose.c: for memory,") \
  ROW(profile_cache, 1, "factor", PER_RATE, "choose.c: for the last-level cache,") \
  ROW(profile_work, 1, "factor", PER_RATE, "choose.c: and for the processors") \
  ROW(processors, 132, "processors", PROCESSORS, "profile.c: each of which fetches a sector of x once") \
  ROW(near_cache, 256000, "bytes", FIXED, "profile.c: of a processor's own cache that x may have") \
  ROW(cache_share, 0.4, "share", FIXED, "profile.c: of the last-level cache that A leaves to x") \
  ROW(strip_width, 2.2, "widths", FIXED, "profile.c: of a strip of x, over the root of a row's entries") \
  ROW(kept_whole, 0.4, "share", FIXED, "profile.c: of the last-level cache, up to which the next product finds all of this one") \
  ROW(kept_none, 1.2, "share", FIXED, "profile.c: and from which on it finds nothing") \
  ROW(choice_most, 4.0, "factor", FIXED, "choose.c: times the bytes of CSR that the predicted choice may take") \
  ROW(tree_most, 2.0, "factor", FIXED, "choose.c: times the bytes of CSR that the decision tree's choice may take") \
  ROW(tree_longest, 1024, "entries", FIXED, "choose.c: of a row that the decision tree is trusted with, unless the row is") \
  ROW(tree_uneven, 32, "factor", FIXED, "choose.c: times the mean at most") \
  ROW(narrow_shared, 0.25, "share", FIXED, "format/narrow.c: of the entries that tiles list, up to which no slice is expected to be wide,") \
  ROW(narrow_apart, 0.8, "share", FIXED, "format/narrow.c: and from which on all are") \
  ROW(pairs_least, 0.4, "share", FIXED, "format/dia.h: of the last-level cache, from which on symmetric diagonals are read once") \
  ROW(stencil_warp, 48, "entries", FIXED, "stencil_build.cu: a row in the mean, from which on a warp shares it") \
  ROW(missed_least, 10e-6, "s", FIXED, "report/report.c, report/advice.c: from which on the error of a prediction is told") \
  ROW(measure_most, 6, "candidates", FIXED, "measure.c: that measuring tries at most") \
  ROW(measure_each, 8, "products", FIXED, "measure.c: of each of them at least") \
  ROW(measure_within, 1.6, "factor", FIXED, "measure.c: by which a candidate's prediction may be behind the best") \
  /* conjugate gradients, predicted */ \
  ROW(loop_iteration, 52.0e-6, "s", FIXED, "foretell.c: an iteration of KSPCG on device vectors, launches and waiting for two sums") \
  ROW(loop_passes, 16, "vectors", FIXED, "foretell.c: that such an iteration goes through") \
  ROW(vector_rate, 3.6e12, "bytes/s", BANDWIDTH, "foretell.c: vector operations through memory,") \
  ROW(vector_cached_rate, 12e12, "bytes/s", RATE, "foretell.c: and through the last-level cache") \
  ROW(meeting, 3.3e-6, "s", PER_CLOCK, "foretell.c: reductions of an iteration of a persistent kernel that is one cluster") \
  ROW(meeting_all, 0.6e-6, "s", PER_CLOCK, "foretell.c: what they take more among blocks of all processors") \
  ROW(cluster_entries, 1.2e5, "entries", FIXED, "foretell.c, persistent.cu: from which on all processors are faster than one cluster") \
  ROW(cluster_blocks, 16, "blocks", FIXED, "foretell.c: of a cluster") \
  ROW(cluster_entry, 0.44e-9, "s an entry", PER_CLOCK, "foretell.c: of one block of a cluster") \
  ROW(product_launch, 2.0e-6, "s", FIXED, "foretell.c: part of a predicted product, which a persistent kernel does not have") \
  ROW(product_gathered, 1.2, "factor", FIXED, "foretell.c: times the rest of a product in a persistent kernel, which gathers the parts of a direction,") \
  ROW(product_diagonals, 1.1, "factor", FIXED, "foretell.c: or reads them in order where columns are not stored,") \
  ROW(product_csr, 1.46, "factor", FIXED, "foretell.c: or reads CSR in place of tiles and narrow columns") \
  ROW(persistent_passes, 11, "vectors", FIXED, "foretell.c: that an iteration of a persistent kernel goes through") \
  ROW(persistent_rate, 5.9e12, "bytes/s", BANDWIDTH, "foretell.c: of vectors, part of which stay in shared memory and registers,") \
  ROW(persistent_cached_rate, 11.6e12, "bytes/s", RATE, "foretell.c: and through the last-level cache") \
  ROW(persistent_entry, 15e-9, "s an entry", PER_CLOCK, "foretell.c: of the mean row, one after the other") \
  ROW(exchange, 8.0e-6, "s", FIXED, "foretell.c: of a product with other GPUs, a launch and a trip there") \
  ROW(link_rate, 150e9, "bytes/s", FIXED, "foretell.c: between two GPUs") \
  ROW(meeting_ranks, 8.0e-6, "s", FIXED, "foretell.c: reductions of an iteration with other GPUs") \
  /* paths of solvers */ \
  ROW(persistent_longest, 4096, "entries", FIXED, "prepare.c: of a row, which a persistent kernel waits for") \
  ROW(bcgs_graph_entries, 8e6, "entries", CACHE, "prepare.c: above which a graph solves BiCGStab, if they are stored one by one") \
  ROW(bcgs_graph_row, 16, "entries", FIXED, "prepare.c: a row in the mean, above which it does in any format") \
  ROW(bcgs_graph_entries_ranks, 1.6e6, "entries", FIXED, "prepare.c: the same of several ranks, whose persistent kernels gather") \
  ROW(cg_graph_traffic, 7e8, "bytes", CACHE, "prepare.c: an iteration, above which a graph solves CG with stored entries") \
  ROW(cg_graph_paired, 100e6, "bytes", BANDWIDTH, "prepare.c: of values that products do not read a second time, above which a graph solves CG") \
  ROW(persistent_spared, 35e6, "bytes", BANDWIDTH, "prepare.c: that memory moves while a graph takes longer than a persistent kernel, an iteration") \
  ROW(persistent_spared_ranks, 70e6, "bytes", FIXED, "prepare.c: the same of several ranks, whose graphs exchange") \
  ROW(single_spared, 20e6, "bytes", BANDWIDTH, "refine.c: the same of a graph in single precision") \
  ROW(persistent_row, 64, "bytes a row", FIXED, "refine.c: of vectors that an iteration of a persistent kernel moves") \
  ROW(single_row, 56, "bytes a row", FIXED, "refine.c: and one in single precision by a graph") \
  ROW(single_iterations, 1.08, "factor", FIXED, "refine.c: of iterations that single precision takes") \
  ROW(ahead_rows, 200000, "rows", BANDWIDTH, "iterate.c: of a rank, from which on a multigrid cycle too many costs more than a host that waits in every iteration") \
  ROW(true_norm_iterations, 30, "iterations", FIXED, "iterate.c: from which on the true residual is a small part of a solve") \
  ROW(written_rows, 2048, "rows a block", FIXED, "persistent.cu: from which on directions are written before they are gathered") \
  ROW(one_device_bcgs, 110592, "rows", FIXED, "gpuksp.c: up to which one GPU took less time than two: BiCGStab in one launch,") \
  ROW(one_device_bcgs_graph, 512000, "rows", FIXED, "gpuksp.c: by a graph,") \
  ROW(one_device_cg_graph, 262144, "rows", FIXED, "gpuksp.c: and CG by a graph") \
  ROW(reduce_ranks, 16, "ranks", FIXED, "rankreduce.c: above which MPI's tree has fewer steps than reading all numbers") \
  /* multigrid */ \
  ROW(tail_rows, 1024, "rows", FIXED, "mg/options.c: of a level that a dense matrix stands for, with all below it") \
  ROW(whole_level_rows, 16384, "rows", FIXED, "gpuamg/gpuamg.c: of a level that each of several ranks has all of") \
  ROW(inverse_rows, 1024, "rows", FIXED, "mg/levels.c, gpuamg: of a coarse operator whose inverse is made") \
  ROW(unrecorded_rows, 400000, "rows", BANDWIDTH, "mg/cycle.c: from which on launches of a cycle are ahead of the device's work") \
  /* triangles */ \
  ROW(level_cache, 0.75e-6, "s", PER_CLOCK, "triangle.c: a step from level to level through the last-level cache,") \
  ROW(level_shared, 0.28e-6, "s", PER_CLOCK, "triangle.c: and through shared memory") \
  ROW(range_step, 0.4e-6, "s", PER_CLOCK, "triangle.c: a step from range to range") \
  ROW(slice_entry, 0.03e-6, "s an entry", PER_CLOCK, "triangle.c: of a row, of a slice of a range") \
  ROW(triangle_rate, 3e12, "bytes/s", BANDWIDTH, "triangle.c, inverses.c: of a solve") \
  ROW(inverses_launch, 3e-6, "s", FIXED, "inverses.c: a product with inverses of blocks, before its first entry") \
  ROW(probed_entries, 16384, "entries", FIXED, "factor/device.c: of a factor that solves for columns of the identity on the host") \
  ROW(host_solve, 60e-6, "s", FIXED, "factor/device.c: a solve on the host between device vectors, before its first row,") \
  ROW(host_solve_entry, 1.5e-9, "s an entry", FIXED, "factor/device.c: of both factors,") \
  ROW(host_solve_row, 5e-9, "s a row", FIXED, "factor/device.c: and a row,") \
  ROW(host_solve_margin, 1.5, "factor", FIXED, "factor/device.c: by which it must be faster") \
  /* the yardstick of make tune */ \
  ROW(copy_rate, 4.17e12, "bytes/s", BANDWIDTH, "benchmarks/tune.c: of a copy within memory, read plus written")
/* clang-format on */

typedef struct {
#define GPUCSR_ROW(name, value, unit, scaling, use) double name;
  GPUCSR_MACHINE_ROWS(GPUCSR_ROW)
#undef GPUCSR_ROW
} GPUCSRMachine;

#define GPUCSR_MACHINE_NROWS ((int)(sizeof(GPUCSRMachine) / sizeof(double)))

typedef struct {
  const char        *name, *unit, *use;
  double             value; /* on the H200 */
  GPUCSRMachineScale scaling;
} GPUCSRMachineRow;

/* Ratios of a device's properties to an H200's */
typedef struct {
  double bandwidth, clock, processors, cache;
} GPUCSRMachineRatios;
