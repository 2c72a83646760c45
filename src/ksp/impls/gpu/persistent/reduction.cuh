#pragma once

/*
  Grid-wide reductions: sums over all blocks of a persistent kernel, which also make the blocks' writes visible to each other.

  Each block publishes its part of up to five sums, and reads the parts of all other blocks. A part carries its own flag: each half of the number shares a word with a half of the flag, which saves a
  fence and a second round trip. All blocks add up the same parts in the same order, so all take the same decisions, and two runs give the same bits. If vectors must become visible too, a fence
  precedes publishing and follows reading. One cluster solves small matrices: its blocks write each other's shared memory and wait in hardware.

  In a solve with a launch on each of several ranks, the grid is the union of the launches. A block publishes its part into every rank's memory, and each rank adds up the same parts in the same order,
  at the cost of one more trip between devices. A block that waits too long (peer.h) gives up: all its later sums are NaN, and the rules end the solve.
*/
#include "../../../../sys/peer/peer.cuh"
#include "product/products.cuh"

__device__ __forceinline__ double warp_sum(double v)
{
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

/* Earlier writes of all threads of the block are visible to readers of the words published afterwards */
__device__ __forceinline__ void fence()
{
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

__device__ __forceinline__ void publish(ulonglong2 *slot, double v, unsigned epoch)
{
  const unsigned long long bits = (unsigned long long)__double_as_longlong(v), flag = (unsigned long long)epoch << 32;

  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(slot), "l"(flag | (bits & 0xffffffffull)), "l"(flag | (bits >> 32)) : "memory");
}

/* Each lane's share of the sum of all blocks' parts. Loads of AWAIT blocks are in flight together, and the warp does not diverge */
#define AWAIT 5

__device__ __forceinline__ double await(const ulonglong2 *slots, int blocks, unsigned epoch)
{
  double sum = 0;

  for (int b = threadIdx.x % 32; b - (int)threadIdx.x % 32 < blocks; b += AWAIT * 32) {
    unsigned long long low[AWAIT], high[AWAIT];
    bool               here;

    do {
      here = true;
#pragma unroll
      for (int u = 0; u < AWAIT; u++) {
        low[u] = high[u] = (unsigned long long)epoch << 32;
        if (b + 32 * u < blocks) asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(low[u]), "=l"(high[u]) : "l"(slots + b + 32 * u) : "memory");
      }
#pragma unroll
      for (int u = 0; u < AWAIT; u++) here = here && (unsigned)(low[u] >> 32) == epoch && (unsigned)(high[u] >> 32) == epoch;
    } while (!__all_sync(0xffffffffu, here));
#pragma unroll
    for (int u = 0; u < AWAIT; u++) sum += __longlong_as_double((long long)((high[u] << 32) | (low[u] & 0xffffffffull)));
  }
  return sum;
}

/* The blocks of one launch */
struct GridReduction {
  ulonglong2 *slots; /* NULL: all blocks are one cluster */
  unsigned    epoch;
  double     *part, *all; /* shared: parts of each warp, and of each block of a cluster, two sets */
  double     *total;      /* and the totals, two sets, so the previous reduction's stay valid */

  /* The slots of a sum */
  __device__ __forceinline__ ulonglong2 *of(int sum) const
  {
    return slots + (size_t)sum * gridDim.x;
  }

  template <bool FENCE>
  __device__ __forceinline__ void publish_sum(ulonglong2 *those, double sum) const
  {
    if (threadIdx.x % 32 == 0) {
      if (FENCE) fence();
      publish(those + blockIdx.x, sum, epoch);
    }
  }

  __device__ __forceinline__ double await_sums(const ulonglong2 *those) const
  {
    return await(those, gridDim.x, epoch);
  }

  __device__ __forceinline__ double what(double sum) const
  {
    return sum;
  }
};

/* A block's data about other ranks, in shared memory to leave the registers to products */
struct PeerView {
  GPUKSPPeers o;
  ulonglong2 *here;    /* slots of this rank's blocks alone */
  int         first;   /* row of the block */
  int         many;    /* blocks have many rows: see peers.cuh */
  int         gone;    /* a thread of the block has given up */
  int         ends[8]; /* see peers.cuh */

  /* As await() above, with a limit on the wait */
  __device__ __forceinline__ double await(const ulonglong2 *slots, int blocks, unsigned epoch)
  {
    double       sum = 0;
    PeerPatience patience;

    for (int b = threadIdx.x % 32; b - (int)threadIdx.x % 32 < blocks; b += AWAIT * 32) {
      double v[AWAIT];
      bool   there;

      do {
        there = true;
#pragma unroll
        for (int u = 0; u < AWAIT; u++) {
          v[u] = 0;
          if (b + 32 * u < blocks && !peer_look(slots + b + 32 * u, epoch, v[u])) there = false;
        }
        there = __all_sync(0xffffffffu, there);
      } while (!there && !__any_sync(0xffffffffu, patience.gone(o.watch)));
      if (!there) {
        gone = 1;
        break;
      }
#pragma unroll
      for (int u = 0; u < AWAIT; u++) sum += v[u];
    }
    return sum;
  }
};

/* The blocks of the launches of all ranks */
struct PeerReduction {
  unsigned  epoch, here; /* of the next reduction; and of the next barrier of this rank's blocks alone */
  double   *part, *total;
  PeerView *view;

  /* Offset of a sum's slots, the same in the memory of every rank */
  __device__ __forceinline__ size_t of(int sum) const
  {
    return (size_t)sum * view->o.all;
  }

  /* Each lane publishes to one rank */
  template <bool FENCE>
  __device__ __forceinline__ void publish_sum(size_t those, double sum) const
  {
    const int rank = threadIdx.x % 32;

    if (rank < view->o.size) {
      if (FENCE) fence();
      peer_publish((ulonglong2 *)view->o.memory[rank] + those + view->o.before + blockIdx.x, sum, epoch);
    }
  }

  __device__ __forceinline__ double await_sums(size_t those) const
  {
    return view->await((const ulonglong2 *)view->o.memory[view->o.rank] + those, view->o.all, epoch);
  }

  __device__ __forceinline__ double what(double sum) const
  {
    return view->gone ? nan("") : sum;
  }
};

/* Writes to the same place in another block's shared memory */
__device__ __forceinline__ void tell(double *to, int block, double v)
{
#if __CUDA_ARCH__ >= 900
  unsigned there;

  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(to)), "r"(block));
  asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(there), "d"(v) : "memory");
#endif
}

/* Called by all threads of the cluster. After waiting, all threads may read the writes before arriving */
__device__ __forceinline__ void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ bool in_cluster(const GridReduction &m)
{
  return !m.slots;
}

__device__ __forceinline__ bool in_cluster(const PeerReduction &)
{
  return false;
}

/* Each lane's share of the sum over the blocks of a cluster */
template <int N, class F>
__device__ __forceinline__ double cluster_sums(const GridReduction &m, double sum, F meanwhile)
{
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = gridDim.x;
  double   *all = m.all + (m.epoch & 1) * GPUKSP_GRID_SUMS * CLUSTER;

  if (warp < N && lane < blocks) tell(all + warp * CLUSTER + blockIdx.x, lane, sum);
  cluster_arrive();
  meanwhile();
  __syncwarp();
  cluster_wait();
  return warp < N && lane < blocks ? all[warp * CLUSTER + lane] : 0;
}

template <int N, class F>
__device__ __forceinline__ double cluster_sums(const PeerReduction &, double sum, F)
{
  return sum;
}

/*
  v[k], summed over all threads of all blocks. A block is at most one reduction ahead of another, so two sets of slots suffice. With FENCE all earlier writes of any thread are visible to all
  afterwards. The first N warps add and wait; work of the other warps meanwhile is free.
*/
template <int N, bool FENCE, class R, class F>
__device__ __forceinline__ void grid_reduce(R &m, double (&v)[N], F meanwhile)
{
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, set = m.epoch & 1;
  double   *total = m.total + set * GPUKSP_GRID_SUMS, sum = 0;

  {
    const int    k    = WarpSums<N>::which(lane);
    const double part = WarpSums<N>::sum(v, lane);

    if (k < N) m.part[k * MOST_WARPS + warp] = part; /* all lanes with sum k have the same number */
  }
  __syncthreads();
  if (warp < N) sum = warp_sum(lane < WARPS ? m.part[warp * MOST_WARPS + lane] : 0);
  if (in_cluster(m)) sum = cluster_sums<N>(m, sum, meanwhile);
  else {
    const auto those = m.of(set * GPUKSP_GRID_SUMS + warp);

    if (warp < N) m.template publish_sum<FENCE>(those, sum);
    meanwhile();
    __syncwarp();
    if (warp < N) {
      sum = m.await_sums(those);
      if (FENCE) fence();
    }
  }
  if (warp < N) {
    sum = warp_sum(sum);
    if (lane == 0) total[warp] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < N; k++) v[k] = m.what(total[k]);
  m.epoch++;
}

template <int N, bool FENCE, class R>
__device__ __forceinline__ void grid_reduce(R &m, double (&v)[N])
{
  grid_reduce<N, FENCE>(m, v, [] {});
}

/* A barrier: earlier writes of all blocks of all ranks are visible afterwards */
template <class R>
__device__ __forceinline__ void grid_sync(R &m)
{
  double none[1] = {0};

  grid_reduce<1, true>(m, none);
}

/* A barrier of this rank's blocks alone. A reduction over all ranks separates two barriers. The wait has a limit, because blocks may give up at different times, and then end without each other */
__device__ __forceinline__ void rank_sync(GridReduction &m)
{
  grid_sync(m);
}

__device__ __forceinline__ void rank_sync(PeerReduction &m)
{
  ulonglong2 *const slots = m.view->here + (m.here & 1) * gridDim.x;

  __syncthreads();
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) {
      fence();
      publish(slots + blockIdx.x, 0, m.here);
    }
    __syncwarp();
    (void)m.view->await(slots, gridDim.x, m.here);
    fence();
  }
  __syncthreads();
  m.here++;
}
