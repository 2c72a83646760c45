/* Graphs on a GPU: independent sets, and the scaling of a matrix to a graph */
#include "spgemm.cuh"

enum {
  UNDECIDED,
  TAKEN,
  OUT
};

__device__ __forceinline__ int rank_of(const int *rank, int v)
{
  return rank ? rank[v] : v;
}

__global__ void begin_kernel(int m, const int *__restrict__ rowptr, int least, unsigned char *state, const int *__restrict__ order, int *rank)
{
  const int v = blockIdx.x * blockDim.x + threadIdx.x;

  if (v >= m) return;
  state[v] = rowptr[v + 1] - rowptr[v] < least ? OUT : UNDECIDED;
  if (order) rank[order[v]] = v;
}

/*
  A vertex waits for the earlier vertices with the vertex in their rows. A thread may see or miss decisions of the same launch: greedy selection in a
  given order has one result (Blelloch, Fineman, Shun, Greedy sequential maximal independent set and matching are parallel on average, 2012).
*/
__global__ void decide_kernel(int m, csr T, const int *__restrict__ rank, volatile unsigned char *state, int *left)
{
  const int v = blockIdx.x * blockDim.x + threadIdx.x;

  if (v >= m || state[v] != UNDECIDED) return;
  const int mine = rank_of(rank, v);
  bool      wait = false;
  for (int k = T.i[v]; k < T.i[v + 1]; k++) {
    const int u = T.j[k];

    if (u == v || rank_of(rank, u) > mine) continue;
    const unsigned char s = state[u];

    if (s == TAKEN) {
      state[v] = OUT;
      return;
    }
    wait = wait || s == UNDECIDED;
  }
  if (!wait) state[v] = TAKEN;
  else *left = 1;
}

__global__ void roots_kernel(int m, csr T, const int *__restrict__ rank, const unsigned char *__restrict__ state, int *root)
{
  const int v    = blockIdx.x * blockDim.x + threadIdx.x;
  int       best = -1;

  if (v >= m) return;
  if (state[v] == TAKEN) best = v;
  else
    for (int k = T.i[v]; k < T.i[v + 1]; k++) {
      const int u = T.j[k];

      if (state[u] == TAKEN && (best < 0 || rank_of(rank, u) < rank_of(rank, best))) best = u;
    }
  root[v] = best;
}

/* Rounds between two questions whether a vertex is undecided; at most so many questions, because a chain may be as long as the matrix */
#define ROUNDS    8
#define QUESTIONS 512

static size_t FlagBytes()
{
  return GPUCSRAlignUp(sizeof(int));
}

static size_t RankBytes(const GPUCSRStorage *A, const int32_t *order)
{
  return order ? GPUCSRAlignUp(sizeof(int) * (size_t)A->m) : 0;
}

/* work: a flag, ranks and states, in one piece */
static GPUCSRError IndependentSteps(const GPUCSRStorage *A, const GPUCSRStorage *T, const int32_t *order, int least, int32_t *root, char *work, GPUCSRBool *complete)
{
  const cudaStream_t s      = StreamOf(A);
  const unsigned int blocks = GPUCSRBlocks(A->m, 256);
  int               *left = (int *)work, *rank = (int *)(work + FlagBytes());
  unsigned char     *state = (unsigned char *)rank + RankBytes(A, order);
  const int         *place = order ? rank : NULL;

  begin_kernel<<<blocks, 256, 0, s>>>(A->m, Arrays(A).i, least, state, order, rank);
  *complete = false;
  for (int q = 0; q < QUESTIONS && !*complete; q++) {
    int undecided;

    for (int k = 0; k < ROUNDS; k++) {
      if (k == ROUNDS - 1) GPUCSRCall(A->dev->ops->zero(A->dev->id, left, sizeof(int), s));
      decide_kernel<<<blocks, 256, 0, s>>>(A->m, Arrays(T), place, state, left);
    }
    GPUCSRCheckLaunch("independent set");
    GPUCSRCall(ReadInt(A, left, &undecided));
    *complete = (GPUCSRBool)!undecided;
  }
  roots_kernel<<<blocks, 256, 0, s>>>(A->m, Arrays(T), place, state, root);
  GPUCSRCheckLaunch("independent set (roots)");
  return 0;
}

GPUCSRError GPUCSRIndependent_CUDA(const GPUCSRStorage *A, const GPUCSRStorage *T, const int32_t *order, int least, int32_t *root, GPUCSRBool *complete)
{
  const size_t bytes = FlagBytes() + RankBytes(A, order) + (size_t)A->m;
  void        *work  = NULL;
  GPUCSRError  ierr;

  *complete = true;
  if (!A->m) return 0;
  GPUCSRCall(GPUCSRMalloc(A->dev, bytes, "states of vertices", &work));
  ierr = IndependentSteps(A, T, order, least, root, (char *)work, complete);
  GPUCSRCall(GPUCSRFree(A->dev, bytes, &work));
  GPUCSRCall(ierr);
  return 0;
}

__global__ void roots_of_diagonal_kernel(int m, csr A, double *d)
{
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  double    v = 0;

  if (r >= m) return;
  for (int k = A.i[r]; k < A.i[r + 1]; k++)
    if (A.j[k] == r && A.a[k] != 0) v = sqrt(fabs(1 / A.a[k]));
  d[r] = v;
}

__global__ void normalize_kernel(int m, csr A, const double *__restrict__ d, double *val)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8);

  if (r >= m) return;
  for (int k = A.i[r] + (int)(threadIdx.x % 8); k < A.i[r + 1]; k += 8) val[k] = val[k] * d[r] * d[A.j[k]];
}

GPUCSRError GPUCSRNormalize_CUDA(GPUCSRStorage *A)
{
  void        *d     = NULL;
  const size_t bytes = sizeof(double) * (size_t)A->m;

  if (!A->m) return 0;
  GPUCSRCall(GPUCSRMalloc(A->dev, bytes, "a graph's diagonal", &d));
  roots_of_diagonal_kernel<<<GPUCSRBlocks(A->m, 256), 256, 0, StreamOf(A)>>>(A->m, Arrays(A), (double *)d);
  normalize_kernel<<<GPUCSRBlocks((int64_t)A->m * 8, 256), 256, 0, StreamOf(A)>>>(A->m, Arrays(A), (const double *)d, (double *)A->array[CSR_VAL].data);
  GPUCSRCall(GPUCSRFree(A->dev, bytes, &d));
  GPUCSRCheckLaunch("normalize");
  return 0;
}
