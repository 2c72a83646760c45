/* Textures and constants of a matrix, and the test of a product, beside the kernels of kernels.cuh */
#include <cuda_runtime.h>
#include <cstring>
#include "variants.h"

static const char *failed(cudaError_t err)
{
  return err == cudaSuccess ? NULL : cudaGetErrorString(err);
}

/* A texture of n elements, each of so many 32-bit words */
static cudaError_t Texture(const void *p, size_t n, int words, cudaChannelFormatKind kind, unsigned long long *texture)
{
  cudaResourceDesc r;
  cudaTextureDesc  t;
  const int        bits[4] = {32, words > 1 ? 32 : 0, words > 2 ? 32 : 0, words > 2 ? 32 : 0};

  memset(&r, 0, sizeof(r));
  memset(&t, 0, sizeof(t));
  r.resType                = cudaResourceTypeLinear;
  r.res.linear.devPtr      = (void *)p;
  r.res.linear.desc        = cudaCreateChannelDesc(bits[0], bits[1], bits[2], bits[3], kind);
  r.res.linear.sizeInBytes = n * (size_t)words * 4;
  t.readMode               = cudaReadModeElementType;
  return cudaCreateTextureObject(texture, &r, &t, NULL);
}

/* Arrays of entries have room for three more */
const char *VariantMatrixTextures(VariantMatrix *A, size_t nnz)
{
  const int   words = A->single ? 1 : 2; /* of a value */
  cudaError_t err   = Texture(A->ptr, (size_t)A->m + 1, 1, cudaChannelFormatKindSigned, &A->ptrtexture);

  if (!err) err = Texture(A->x, (size_t)A->n, words, A->single ? cudaChannelFormatKindFloat : cudaChannelFormatKindSigned, &A->xtexture);
  for (int k = 0; k < 3 && !err; k++) {
    const int    width = 1 << k, vwords = width * words > 4 ? 4 : width * words;
    const size_t n = (nnz + 3) / 4 * 4;

    err = Texture(A->col, n / (size_t)width, width, cudaChannelFormatKindSigned, &A->coltexture[k]);
    if (!err) err = Texture(A->val, n * (size_t)words / (size_t)vwords, vwords, cudaChannelFormatKindSigned, &A->valtexture[k]);
  }
  return failed(err);
}

void VariantMatrixDestroy(VariantMatrix *A)
{
  (void)cudaDestroyTextureObject(A->ptrtexture);
  (void)cudaDestroyTextureObject(A->xtexture);
  for (int k = 0; k < 3; k++) {
    (void)cudaDestroyTextureObject(A->coltexture[k]);
    (void)cudaDestroyTextureObject(A->valtexture[k]);
  }
  memset(A, 0, sizeof(*A));
}

const char *VariantMatrixConstants(const VariantMatrix *A)
{
  size_t       x;
  const size_t ptr = VariantConstantBytes(A, &x);

  return A->single ? VariantConstants_float(A, ptr, x) : VariantConstants_double(A, ptr, x);
}

int VariantCan(const Variant *v, const VariantMatrix *A)
{
  const size_t x = (size_t)A->n * (A->single ? 4 : 8);
  size_t       xconstant;
  const size_t ptr = VariantConstantBytes(A, &xconstant);

  if (v->ptr == SPACE_CONSTANT && !ptr) return 0;
  if (v->x == SPACE_CONSTANT && !xconstant) return 0;
  return v->x != SPACE_SHARED || x <= VARIANT_STAGED;
}

const char *VariantLaunch(const Variant *v, const VariantMatrix *A, void *stream)
{
  return A->single ? VariantLaunch_float(v, A, stream) : VariantLaunch_double(v, A, stream);
}

template <class V>
static __global__ void wrong_kernel(int m, const V *z, const double *right, const double *bound, int *wrong)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < m && !(fabs((double)z[r] - right[r]) <= bound[r])) atomicAdd(wrong, 1); /* not a number is wrong too */
}

const char *VariantWrong(const VariantMatrix *A, const double *right, const double *bound, int *wrong, void *stream)
{
  const unsigned int blocks = (unsigned int)((A->m + 255) / 256);

  if (A->single) wrong_kernel<<<blocks, 256, 0, (cudaStream_t)stream>>>(A->m, (const float *)A->z, right, bound, wrong);
  else wrong_kernel<<<blocks, 256, 0, (cudaStream_t)stream>>>(A->m, (const double *)A->z, right, bound, wrong);
  return failed(cudaGetLastError());
}
