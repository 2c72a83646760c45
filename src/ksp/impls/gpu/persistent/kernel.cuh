#pragma once

/* The host side of persistent kernels: selection, feasibility and launch. Included by the file of each format's product, persistent_FORMAT.cu */
#include "bcgs.cuh"
#include "bcgs_halo.cuh"
#include "cg.cuh"
#include "cg_halo.cuh"

template <class M>
static void fill(const GPUKSPPersistent *L, M A, ArgsAlone<M> *a)
{
  *a = {A, L->v, L->bounds, L->reach, L->cluster ? NULL : (ulonglong2 *)L->slots, *L->state, L->state, L->epoch, (int)L->trueresidual, (int)L->right, L->A->m, L->shared, L->same};
}

template <class M>
static void fill(const GPUKSPPersistent *L, M A, ArgsPeers<M> *a)
{
  fill(L, A, (ArgsAlone<M> *)a);
  a->peers = L->peers;
  a->here  = L->here;
}

/* Queries the kernel or launches it */
template <bool PEERS, class M>
static GPUCSRError ask_or_launch(const GPUKSPPersistent *L, M A, void *kernel, int *possible, GPUCSRStream s)
{
  cudaLaunchConfig_t        config    = {};
  cudaLaunchAttribute       attribute = {};
  struct cudaFuncAttributes attr;
  int                       limit, most = 0;

  GPUCSR_CUDA(cudaFuncGetAttributes(&attr, kernel));
  config.gridDim  = dim3((unsigned)L->blocks);
  config.blockDim = dim3((unsigned)L->size);
  config.attrs    = &attribute;
  config.numAttrs = 1;
  if (L->cluster) {
    attribute.id             = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {(unsigned)L->blocks, 1, 1};
  } else {
    attribute.id              = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  if (possible) {
    GPUCSR_CUDA(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, L->A->dev->id));
    *possible = limit - (int)attr.sharedSizeBytes;
    GPUCSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, *possible));
    config.dynamicSmemBytes = (size_t)GPUCSRMin(*possible, SHARED_MOST);
    /* a device may have clusters, but not of this many blocks */
    if (L->cluster && (cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) || cudaOccupancyMaxActiveClusters(&most, kernel, &config) || most < 1)) {
      (void)cudaGetLastError();
      *possible = -1;
    }
  } else {
    Args<M, PEERS> a;
    void          *args[] = {&a};

    fill(L, A, &a);
    GPUCSR_CUDA(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerMultiprocessor, L->A->dev->id));
    /* leave the rest to the first-level cache */
    GPUCSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, (int)GPUCSRMin(100, (100 * (L->shared + attr.sharedSizeBytes + 1024) + (size_t)limit - 1) / (size_t)limit)));
    if (L->cluster) GPUCSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    config.dynamicSmemBytes = L->shared;
    config.stream           = (cudaStream_t)s;
    GPUCSR_CUDA(cudaLaunchKernelExC(&config, kernel, args));
  }
  return 0;
}

template <bool PEERS, class M>
static void *cg_of(const GPUKSPPersistent *L)
{
  if (L->halo) {
    if (L->size == 1024) return (void *)cg_halo_kernel<M, 1024, 1, PEERS>;
    return L->each == 1 ? (void *)cg_halo_kernel<M, 512, 1, PEERS> : (void *)cg_halo_kernel<M, 512, HALO_ROWS, PEERS>;
  }
  if constexpr (M::offsets) return L->windows.count ? (void *)cg_kernel<M, BY_WINDOWS, PEERS> : (void *)cg_kernel<M, GATHERED, PEERS>;
  else return L->written ? (void *)cg_kernel<M, WRITTEN, PEERS> : (void *)cg_kernel<M, GATHERED, PEERS>;
}

template <bool PEERS, class M>
static void *bcgs_of(const GPUKSPPersistent *L)
{
  if (L->halo) {
    if (L->size == 1024) return (void *)bcgs_halo_kernel<M, 1024, 1, PEERS>;
    return L->each == 1 ? (void *)bcgs_halo_kernel<M, 512, 1, PEERS> : (void *)bcgs_halo_kernel<M, 512, HALO_ROWS, PEERS>;
  }
  if constexpr (PEERS) return (void *)bcgs_kernel<M, true, false>;
  else return L->written ? (void *)bcgs_kernel<M, false, true> : (void *)bcgs_kernel<M, false, false>;
}

template <bool PEERS, class M>
static GPUCSRError method(const GPUKSPPersistent *L, M A, int *possible, GPUCSRStream s)
{
  GPUCSRCall(ask_or_launch<PEERS>(L, A, L->method == GPUKSP_CG ? cg_of<PEERS, M>(L) : bcgs_of<PEERS, M>(L), possible, s));
  return 0;
}

/* A format F<V> with values V */
template <template <class> class F>
struct ByValues {
  template <class Do>
  static GPUCSRError with(const GPUKSPPersistent *L, Do f)
  {
    if (L->A->precision == GPUCSR_PRECISION_DOUBLE) GPUCSRCall(f(F<double>::of(L)));
    else GPUCSRCall(f(F<float>::of(L)));
    return 0;
  }
};

/* A format F with values widened on loading */
template <class F>
struct Widened {
  template <class Do>
  static GPUCSRError with(const GPUKSPPersistent *L, Do f)
  {
    GPUCSRCall(f(F::of(L)));
    return 0;
  }
};

/* The functions of a format, for persistent.cu */
template <class Format>
struct ProductOf {
  static GPUCSRError run(const GPUKSPPersistent *L, int *possible, GPUCSRStream s)
  {
    GPUCSRCall(Format::with(L, [&](auto A) -> GPUCSRError {
      if constexpr (decltype(A)::peers) {
        if (L->peers.size) return method<true>(L, A, possible, s);
      }
      GPUCSRCheck(!L->peers.size, GPUCSR_ERR_PLIB, "Several ranks have no persistent kernel for single precision values");
      return method<false>(L, A, possible, s);
    }));
    return 0;
  }

  static GPUCSRError reach(const GPUKSPPersistent *L, GPUCSRStream s)
  {
    GPUCSRCall(Format::with(L, [&](auto A) -> GPUCSRError {
      GPUCSR_CUDA(cudaFuncSetAttribute(reach_kernel<decltype(A)>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)A.shared()));
      reach_kernel<<<(unsigned)L->blocks, MOST_THREADS, A.shared(), (cudaStream_t)s>>>(A, L->bounds, L->reach);
      return 0;
    }));
    GPUCSRCheckLaunch("the columns of a solve's blocks");
    return 0;
  }

  static GPUCSRError shared(const GPUKSPPersistent *L, size_t *bytes)
  {
    GPUCSRCall(Format::with(L, [&](auto A) -> GPUCSRError {
      *bytes = A.shared();
      return 0;
    }));
    return 0;
  }
};

#define GPUKSP_PERSISTENT_PRODUCT(name, Format) const GPUKSPPersistentProduct GPUKSPPersistent_##name = {ProductOf<Format>::run, ProductOf<Format>::reach, ProductOf<Format>::shared}
