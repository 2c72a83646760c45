#pragma once

/*
  Flags between devices, and numbers that carry theirs, for kernels whose grids wait for ranks of the same host (peer.h). Stores and loads have the scope of the system. All waits are
  bounded, by time: whoever gives up raises the word that all look at, and goes on, so that its launch ends and the host says why.
*/
#include "peerslots.h"

/* Looks before the clock and the word of the host are asked, which takes a microsecond */
#define PEER_ASK 1024u

__device__ __forceinline__ unsigned long long peer_clock()
{
  unsigned long long ns;

  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

/* Counts looks of one wait; true when it is time to give up */
struct PeerPatience {
  unsigned           looks = 0;
  unsigned long long since = 0;

  __device__ __forceinline__ bool gone(const GPUCSRPeerWatch &w)
  {
    if (++looks % PEER_ASK) return false;
    if (*w.dead) return true;
    if (!since) since = peer_clock();
    else if (peer_clock() - since > w.patience) {
      *w.dead = w.says; /* who was first does not matter: all come to the same end */
      __threadfence_system();
      return true;
    }
    return false;
  }
};

/* What was written before, by whoever this thread has synchronized with, is there for all devices before what is shown after; and read after what was seen */
__device__ __forceinline__ void peer_fence()
{
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* A flag in a peer's memory; what this thread wrote before, or was fenced, is there for whoever sees it */
__device__ __forceinline__ void peer_publish(unsigned long long *flag, unsigned long long sequence)
{
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(sequence) : "memory");
}

__device__ __forceinline__ unsigned long long peer_look(const unsigned long long *flag)
{
  unsigned long long v;

  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(flag) : "memory");
  return v;
}

/* Until a flag in this device's memory has come to a number; false: given up */
__device__ __forceinline__ bool peer_await(const unsigned long long *flag, unsigned long long sequence, const GPUCSRPeerWatch &w)
{
  PeerPatience patience;

  while (peer_look(flag) < sequence)
    if (patience.gone(w)) return false;
  return true;
}

/* A number that carries its flag, a half of it with a half of a word each, in 16 bytes that are written at once: no fence, no second trip */
__device__ __forceinline__ void peer_publish(ulonglong2 *slot, double v, unsigned epoch)
{
  const unsigned long long bits = (unsigned long long)__double_as_longlong(v), flag = (unsigned long long)epoch << 32;

  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(slot), "l"(flag | (bits & 0xffffffffull)), "l"(flag | (bits >> 32)) : "memory");
}

/* Is it there? */
__device__ __forceinline__ bool peer_look(const ulonglong2 *slot, unsigned epoch, double &v)
{
  unsigned long long low, high;

  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(slot) : "memory");
  v = __longlong_as_double((long long)((high << 32) | (low & 0xffffffffull)));
  return (unsigned)(low >> 32) == epoch && (unsigned)(high >> 32) == epoch;
}

/* The number of one slot in this device's memory; given up: NaN, and false */
__device__ __forceinline__ bool peer_await(const ulonglong2 *slot, unsigned epoch, const GPUCSRPeerWatch &w, double &v)
{
  PeerPatience patience;

  while (!peer_look(slot, epoch, v))
    if (patience.gone(w)) {
      v = nan("");
      return false;
    }
  return true;
}

/* all = n numbers of each rank, in the order of ranks, by all threads of one block, the only one. A number travels with its flag, in one trip */
__device__ __forceinline__ void peer_gather(const GPUCSRPeerSlots &p, const double *mine, int n, double *all)
{
  const unsigned long long s     = *p.count + 1;
  const unsigned           flag  = (unsigned)(s % 0xffffffffu) + 1;
  const size_t             set   = (size_t)(s % 2) * p.size;
  ulonglong2 *const *const slots = (ulonglong2 *const *)p.slots;

  for (int t = threadIdx.x; t < p.size * n; t += blockDim.x) peer_publish(slots[t / n] + (set + p.rank) * GPUCSR_PEER_GATHER + t % n, mine[t % n], flag);
  for (int t = threadIdx.x; t < p.size * n; t += blockDim.x) (void)peer_await(slots[p.rank] + (set + t / n) * GPUCSR_PEER_GATHER + t % n, flag, p.watch, all[t]);
  __syncthreads();
  if (threadIdx.x == 0) *p.count = s;
}
