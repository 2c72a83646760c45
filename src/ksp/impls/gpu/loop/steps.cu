/*
  Single steps of the solvers, a kernel each: a thread takes several rows, and sums have two stages of fixed order. The last block to finish adds up the parts of all blocks. If the state is on the
  device, this block also applies the rule; the next step finds its scalars there, and the host need not wait. After the end of a solve steps do nothing, so iterations may be launched ahead.
*/
#include "../../../../mat/impls/gpucsr/blackbox/kernels/device.cuh"
#include "../../../../sys/peer/peer.cuh"
#include "../persistent/persistent.h"
#include "steprow.h"

#define THREADS 256

/* Blocks a multiprocessor that are resident at once: a second wave would take as long as the first */
#if __CUDA_ARCH__ == 750
  #define RESIDENT (1024 / THREADS)
#elif __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
  #define RESIDENT (1536 / THREADS)
#else
  #define RESIDENT (2048 / THREADS)
#endif

#define WARPS (THREADS / 32)

/* Sums over the threads of the block, in its first thread */
template <int N>
__device__ __forceinline__ void block_sums(double (&v)[GPUKSP_SUMS], double (&part)[GPUKSP_SUMS][WARPS])
{
#pragma unroll
  for (int k = 0; k < N; k++) {
    v[k] = reduce<32>(v[k]);
    if (threadIdx.x % 32 == 0) part[k][threadIdx.x / 32] = v[k];
  }
  __syncthreads();
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < N; k++) {
      v[k] = part[k][0];
      for (int w = 1; w < WARPS; w++) v[k] += part[k][w];
    }
}

__device__ __forceinline__ void step_row(GPUKSPStep step, const GPUKSPVectors &v, const GPUKSPState &s, int i, double sum[])
{
  GPUKSPStepRow(step, &v, &s, i, sum);
}

__device__ __forceinline__ void step_row(GPUKSPStep step, const GPUKSPVectorsSingle &v, const GPUKSPState &s, int i, double sum[])
{
  GPUKSPStepRowSingle(step, &v, &s, i, sum);
}

/* Called by all threads of a block; each copies a word */
__device__ __forceinline__ void copy_state(GPUKSPState *to, const GPUKSPState *from)
{
  static_assert(sizeof(*to) % sizeof(int) == 0 && sizeof(*to) <= THREADS * sizeof(int), "each thread takes a word of the state");
  if (threadIdx.x < sizeof(*to) / sizeof(int)) ((int *)to)[threadIdx.x] = ((const int *)from)[threadIdx.x];
}

/* One thread applies the rule of a step, */
__device__ __forceinline__ void decide(GPUKSPStep step, const double (&sum)[GPUKSP_SUMS], const GPUKSPStepArgs &a, GPUKSPState *st)
{
  GPUKSPStepRule(step, st, sum, a.first);
  if (a.next) GPUKSPNext(a.method, st, a.first);
}

/* and all threads of its block publish the outcome, only at the end because a copy over the bus is slow */
__device__ __forceinline__ void publish_state(const GPUKSPStepArgs &a, const GPUKSPState *st)
{
  __syncthreads();
  copy_state(a.state, st);
  if (GPUKSPRests(st)) copy_state(a.seen, st);
  else if (a.norms && threadIdx.x == 0) {
    a.seen->ttol  = st->ttol;
    a.seen->rnorm = st->rnorm;
  }
}

template <GPUKSPStep S, class Vectors>
__global__ void __launch_bounds__(THREADS, RESIDENT) step_kernel(const Vectors v, const GPUKSPStepArgs a)
{
  after_previous();
  constexpr GPUKSPStepKind KIND = GPUKSPStepKinds[S];
  constexpr int            N    = KIND.sums;
  constexpr int            ROWS = KIND.reads ? 4 : 1; /* loads in flight together; a write would separate them */
  __shared__ double        part[GPUKSP_SUMS][WARPS];
  __shared__ GPUKSPState   st;
  double                   sum[GPUKSP_SUMS] = {0, 0, 0, 0, 0};

  copy_state(&st, a.state);
  __syncthreads();
  /* while the solve rests, steps with a rule do nothing, except the norms of a replaced residual; steps without a rule belong to the end or to a replacement */
  if (a.rule && S != GPUKSP_REPLACEMENT_NORMS && GPUKSPRests(&st)) return;
  if (KIND.gathers && a.parts) {
#pragma unroll 4
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < (unsigned)a.parts; i += gridDim.x * THREADS)
#pragma unroll
      for (int k = 0; k < N; k++) sum[k] += a.part[GPUKSPStepPart(S, k) * (size_t)a.most + i];
  } else {
#pragma unroll ROWS
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < (unsigned)a.n; i += gridDim.x * THREADS) step_row(S, v, st, (int)(a.back ? (unsigned)a.n - 1 - i : i), sum);
  }
  if constexpr (N > 0) {
    block_sums<N>(sum, part);
    if (gridDim.x > 1) {
      if (threadIdx.x == 0)
        for (int k = 0; k < N; k++) a.partial[k * GPUKSP_PARTIALS + blockIdx.x] = sum[k];
      if (!last_block<true>(a.partial + GPUKSP_SUMS * GPUKSP_PARTIALS, gridDim.x)) return;
      for (int k = 0; k < N; k++) sum[k] = 0;
#pragma unroll 2
      for (int b = (int)threadIdx.x; b < (int)gridDim.x; b += THREADS)
        for (int k = 0; k < N; k++) sum[k] += __ldcg(a.partial + k * GPUKSP_PARTIALS + b);
      block_sums<N>(sum, part);
    }
    if (threadIdx.x == 0) {
      if (a.rule && !a.mine) decide(S, sum, a, &st);
      else
        for (int k = 0; k < N; k++) (a.mine ? a.mine : a.sums)[k] = sum[k];
    }
    if (a.rule && !a.mine) publish_state(a, &st);
  }
}

/* The rule of a step of several ranks, one block. Gathers n sums of each rank, if necessary, and adds the sums in rank order */
__global__ void __launch_bounds__(THREADS) rule_kernel(GPUKSPStep step, const GPUCSRPeerSlots slots, double *all, int ranks, int n, const GPUKSPStepArgs a)
{
  __shared__ GPUKSPState st;
  bool                   rests;

  if (slots.size) peer_gather(slots, a.mine, n, all);
  copy_state(&st, a.state);
  __syncthreads();
  rests = GPUKSPRests(&st);
  __syncthreads(); /* all threads read the state before one writes it */
  if (rests) return;
  if (threadIdx.x == 0) {
    double sum[GPUKSP_SUMS] = {0, 0, 0, 0, 0};

    for (int r = 0; r < ranks; r++)
      for (int k = 0; k < n; k++) sum[k] += all[r * n + k];
    decide(step, sum, a, &st);
  }
  publish_state(a, &st);
}

GPUCSRError GPUKSPStepRuleDevice(GPUKSPStep step, const GPUCSRPeerSlots *slots, double *all, int ranks, const GPUKSPStepArgs *a, GPUCSRStream s)
{
  rule_kernel<<<1, THREADS, 0, (cudaStream_t)s>>>(step, *slots, all, ranks, GPUKSPStepKinds[step].sums, *a);
  GPUCSRCheckLaunch("a rule of a solver");
  return 0;
}

/* Blocks resident on the device at once */
GPUCSRError GPUKSPStepBlocks(GPUCSRDevice dev, int *blocks)
{
  int threads;

  GPUCSR_CUDA(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, dev->id));
  *blocks = GPUCSRMin(GPUKSP_PARTIALS, dev->props.processors * (threads / THREADS));
  return 0;
}

template <bool SINGLE, class Vectors>
static GPUCSRError Step(GPUKSPStep step, const Vectors *v, const GPUKSPStepArgs *a, GPUCSRStream s)
{
  const unsigned blocks = GPUCSRMax(1u, GPUCSRMin((unsigned)a->blocks, GPUCSRBlocks(a->parts ? a->parts : a->n, THREADS)));
  bool           exists = false;

  switch (step) {
#define GPUKSP_STEP(name, with_double, with_single, ...) \
  case GPUKSP_##name: \
    exists = SINGLE ? with_single : with_double; \
    if constexpr (SINGLE ? with_single : with_double) launch_after(step_kernel<GPUKSP_##name, Vectors>, blocks, THREADS, 0, s, *v, *a); \
    break;
#include "../common/steplist.h"
#undef GPUKSP_STEP
  default:
    break;
  }
  GPUCSRCheck(exists, GPUCSR_ERR_PLIB, "No step %d in %s precision", (int)step, SINGLE ? "single" : "double");
  GPUCSRCheckLaunch("a step of a solver");
  return 0;
}

GPUCSRError GPUKSPStepDevice(GPUKSPStep step, const GPUKSPVectors *v, const GPUKSPStepArgs *a, GPUCSRStream s)
{
  return Step<false>(step, v, a, s);
}

/* The steps of an iteration in single precision */
GPUCSRError GPUKSPStepDeviceSingle(GPUKSPStep step, const GPUKSPVectorsSingle *v, const GPUKSPStepArgs *a, GPUCSRStream s)
{
  return Step<true>(step, v, a, s);
}

__global__ void round_kernel(size_t n, int lane, const double *from, float *to)
{
  for (size_t k = blockIdx.x * (size_t)blockDim.x + threadIdx.x; k < n; k += gridDim.x * (size_t)blockDim.x) {
    const double a = from[GPUKSPPlace(k, lane, sizeof(double))];

    to[GPUKSPPlace(k, lane, sizeof(float))] = is_absent(a) ? absent<float>() : present((float)a);
  }
}

/* Rounds values to single precision. lane: values of a lane of bcsr; empty places stay marked as empty */
GPUCSRError GPUKSPRound(size_t n, int lane, const double *from, float *to, GPUCSRStream s)
{
  if (n) round_kernel<<<(unsigned)GPUCSRMin((size_t)2048, (n + 255) / 256), 256, 0, (cudaStream_t)s>>>(n, lane, from, to);
  GPUCSRCheckLaunch("rounding");
  return 0;
}
