#pragma once

/*
  Flags between devices, and numbers with their own flags, for kernels that wait for ranks of the same host (peer.h). Stores and loads have system scope. All waits have a time limit. A
  thread that gives up raises a word that ends all waits. Its launch continues to its end, and the host reports the reason.
*/
#include "peerslots.h"

/* Polls before the clock and the host's word are read, which takes a microsecond */
#define PEER_ASK 1024u

__device__ __forceinline__ unsigned long long peer_clock()
{
  unsigned long long ns;

  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

/* Counts the polls of one wait; true when it is time to give up */
struct PeerPatience {
  unsigned           looks = 0;
  unsigned long long since = 0;

  __device__ __forceinline__ bool gone(const GPUCSRPeerWatch &w)
  {
    if (++looks % PEER_ASK) return false;
    if (*w.dead) return true;
    if (!since) since = peer_clock();
    else if (peer_clock() - since > w.patience) {
      *w.dead = w.says; /* any thread may be first: the result is the same */
      __threadfence_system();
      return true;
    }
    return false;
  }
};

/* Earlier writes, of this thread and of synchronized threads, become visible to all devices before its later writes; later reads follow earlier reads */
__device__ __forceinline__ void peer_fence()
{
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Sets a flag in a peer's memory; a reader of the flag sees this thread's earlier and fenced writes */
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

/* Waits until a flag in this device's memory reaches a number; false: given up */
__device__ __forceinline__ bool peer_await(const unsigned long long *flag, unsigned long long sequence, const GPUCSRPeerWatch &w)
{
  PeerPatience patience;

  while (peer_look(flag) < sequence)
    if (patience.gone(w)) return false;
  return true;
}

/* A number that carries its flag, half of each in a word, in 16 bytes written at once: no fence, no second trip */
__device__ __forceinline__ void peer_publish(ulonglong2 *slot, double v, unsigned epoch)
{
  const unsigned long long bits = (unsigned long long)__double_as_longlong(v), flag = (unsigned long long)epoch << 32;

  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(slot), "l"(flag | (bits & 0xffffffffull)), "l"(flag | (bits >> 32)) : "memory");
}

/* Has the number arrived? */
__device__ __forceinline__ bool peer_look(const ulonglong2 *slot, unsigned epoch, double &v)
{
  unsigned long long low, high;

  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(slot) : "memory");
  v = __longlong_as_double((long long)((high << 32) | (low & 0xffffffffull)));
  return (unsigned)(low >> 32) == epoch && (unsigned)(high >> 32) == epoch;
}

/* Waits for the number of one slot in this device's memory. Returns false after giving up, with a NaN as number */
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

/* all = n numbers of each rank, in rank order, by all threads of a single block. A number and its flag make one trip */
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
