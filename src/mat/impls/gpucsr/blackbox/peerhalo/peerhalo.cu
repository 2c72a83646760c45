/*
  The halo among peers on the device: packing writes into the neighbours' memory over the link, and the launch that uses the halo waits for it.

  The last block of a launch, found by a count, shows the flags or counts the exchange. Every block of a waiting launch reads the flags, which are in
  this device's memory. A wait that gives up leaves NaN in place of the halo, and counts the exchange.

  Bytes: the halo once over the link and once here, 8 for each flag. Wins over a halo through host memory wherever there is a link, most for small
  halos.
*/
#include "peerhalo.h"
#include "../kernels/device.cuh"
#include "../../../../../sys/peer/peer.cuh"

#define BLOCK 256

/* Blocks of a multiprocessor: as many as are at work at once, and where each waits for the memory */
#define BLOCKS_SM      2
#define BLOCKS_SM_ROWS 8

struct Halo {
  GPUCSRPeerWatch       watch;
  const GPUCSRPeerLink *link;
  int                   n, way;
  const double         *in[2];
  int                   coming;
  unsigned long long   *count;

  __device__ __forceinline__ const double *came(unsigned long long s) const
  {
    return s % 2 ? in[1] : in[0];
  }
};

static Halo Arguments(const GPUCSRPeerHalo *h, GPUCSRPeerWay way)
{
  return {
    GPUCSRPeerSlotsOf(h).watch, h->link, h->n, (int)way, {h->in[way][0], h->in[way][1]},
        h->coming[way], (unsigned long long *)h->count
  };
}

static unsigned int Blocks(const GPUCSRPeerHalo *h, int64_t work, int each)
{
  return (unsigned int)GPUCSRMax(1, GPUCSRMin(each * h->dev->props.processors, (work + BLOCK - 1) / BLOCK));
}

/* As last_block(), and other devices see the writes of all blocks before the last block's own writes */
__device__ __forceinline__ bool last_sender(const Halo &h)
{
  __shared__ bool last;

  __syncthreads();
  if (threadIdx.x == 0) {
    peer_fence();
    last = atomicInc((unsigned *)(h.count + 1), gridDim.x - 1) == gridDim.x - 1;
    if (last) peer_fence();
  }
  __syncthreads();
  return last;
}

/* Waits for all neighbours; false: gave up */
__device__ __forceinline__ bool all_here(const Halo &h, unsigned long long s)
{
  bool here = true;

  for (int k = threadIdx.x; k < h.n; k += BLOCK) here = here && peer_await((const unsigned long long *)h.link[k].shown, s, h.watch);
  return __syncthreads_and(here);
}

__device__ __forceinline__ double arrived(const double *in, int k, bool here)
{
  return here ? __ldcg(in + k) : nan("");
}

__device__ __forceinline__ void counted(const Halo &h, unsigned long long s)
{
  if (last_block(h.count + 1, gridDim.x) && threadIdx.x == 0) *h.count = s;
}

__global__ void __launch_bounds__(BLOCK) peer_send_kernel(Halo h, int count, const int32_t *__restrict__ index, const double *__restrict__ from)
{
  const unsigned long long s = *h.count + 1;
  int                      l = 0;

  for (int k = blockIdx.x * BLOCK + threadIdx.x; k < count; k += gridDim.x * BLOCK) {
    while (k >= h.link[l].last[h.way]) l++;
    h.link[l].to[h.way][s % 2][k - h.link[l].first[h.way]] = !from ? nan("") : from[index ? index[k] : k];
  }
  if (last_sender(h))
    for (int k = threadIdx.x; k < h.n; k += BLOCK) peer_publish((unsigned long long *)h.link[k].flag, s);
}

__global__ void __launch_bounds__(BLOCK) peer_receive_kernel(Halo h, double *__restrict__ to)
{
  const unsigned long long s    = *h.count + 1;
  const bool               here = all_here(h, s);

  for (int k = blockIdx.x * BLOCK + threadIdx.x; k < h.coming && to; k += gridDim.x * BLOCK) to[k] = arrived(h.came(s), k, here);
  counted(h, s);
}

template <int T>
__global__ void __launch_bounds__(BLOCK) peer_multiply_kernel(Halo h, GPUCSRPeerRows r, double *z)
{
  const unsigned long long s    = *h.count + 1;
  const bool               here = all_here(h, s);
  const double            *in   = h.came(s);

  /* groups of a warp stay together, since reduce() needs the whole warp */
  for (int first = (blockIdx.x * BLOCK + threadIdx.x) / 32 * (32 / T); first < r.n; first += gridDim.x * (BLOCK / T)) {
    const int k   = first + threadIdx.x % 32 / T;
    double    sum = 0;

    if (k < r.n)
      for (int q = r.ptr[k] + threadIdx.x % T; q < r.ptr[k + 1]; q += T) sum += r.val[q] * arrived(in, r.col[q], here);
    sum = reduce<T>(sum);
    if (k < r.n && threadIdx.x % T == 0) z[r.row[k]] += sum;
  }
  counted(h, s);
}

__global__ void __launch_bounds__(BLOCK) peer_add_kernel(Halo h, GPUCSRPeerSums a, double *z)
{
  const unsigned long long s    = *h.count + 1;
  const bool               here = all_here(h, s);

  for (int k = blockIdx.x * BLOCK + threadIdx.x; k < a.n; k += gridDim.x * BLOCK) {
    double sum = 0;

    for (int q = a.ptr[k]; q < a.ptr[k + 1]; q++) sum += arrived(h.came(s), a.from[q], here);
    z[a.place[k]] += sum;
  }
  counted(h, s);
}

GPUCSRError GPUCSRPeerSend_CUDA(const GPUCSRPeerHalo *h, GPUCSRPeerWay way, int count, const int32_t *index, const double *from, GPUCSRStream s)
{
  peer_send_kernel<<<Blocks(h, count, BLOCKS_SM), BLOCK, 0, (cudaStream_t)s>>>(Arguments(h, way), count, index, from);
  GPUCSRCheckLaunch("peer_send");
  return 0;
}

GPUCSRError GPUCSRPeerReceive_CUDA(const GPUCSRPeerHalo *h, GPUCSRPeerWay way, double *to, GPUCSRStream s)
{
  peer_receive_kernel<<<Blocks(h, to ? h->coming[way] : 0, BLOCKS_SM), BLOCK, 0, (cudaStream_t)s>>>(Arguments(h, way), to);
  GPUCSRCheckLaunch("peer_receive");
  return 0;
}

GPUCSRError GPUCSRPeerMultiply_CUDA(const GPUCSRPeerHalo *h, const GPUCSRPeerRows *r, double *z, GPUCSRStream s)
{
  const Halo         a      = Arguments(h, GPUCSR_ENTRIES);
  const unsigned int blocks = Blocks(h, (int64_t)r->n * r->group, BLOCKS_SM_ROWS);

  if (r->group == 2) peer_multiply_kernel<2><<<blocks, BLOCK, 0, (cudaStream_t)s>>>(a, *r, z);
  else if (r->group == 8) peer_multiply_kernel<8><<<blocks, BLOCK, 0, (cudaStream_t)s>>>(a, *r, z);
  else peer_multiply_kernel<32><<<blocks, BLOCK, 0, (cudaStream_t)s>>>(a, *r, z);
  GPUCSRCheckLaunch("peer_multiply");
  return 0;
}

GPUCSRError GPUCSRPeerAdd_CUDA(const GPUCSRPeerHalo *h, const GPUCSRPeerSums *a, double *z, GPUCSRStream s)
{
  peer_add_kernel<<<Blocks(h, a->n, BLOCKS_SM), BLOCK, 0, (cudaStream_t)s>>>(Arguments(h, GPUCSR_SUMS), *a, z);
  GPUCSRCheckLaunch("peer_add");
  return 0;
}

__global__ void __launch_bounds__(BLOCK) peer_gather_kernel(const GPUCSRPeerSlots slots, const double *mine, int n, double *all)
{
  peer_gather(slots, mine, n, all);
}

GPUCSRError GPUCSRPeerGather_CUDA(const GPUCSRPeerHalo *h, const double *mine, int n, double *all, GPUCSRStream s)
{
  peer_gather_kernel<<<1, BLOCK, 0, (cudaStream_t)s>>>(GPUCSRPeerSlotsOf(h), mine, n, all);
  GPUCSRCheckLaunch("peer_gather");
  return 0;
}
