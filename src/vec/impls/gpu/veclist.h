/*
  The device operations of VECGPU, a row each. The file has no guard, because each inclusion defines the macros anew. The expressions are valid C and CUDA: host.c and cuda.cu make a loop and a kernel of
  each row.

    VECGPU_MAP(name, reads, expression)                       z[i] = expression.
    VECGPU_REDUCE(name, reads, count, combine, first, second) one or two (count) reductions of the expressions over all i.

  x, y, z are the i-th entries of the vectors named in reads (and of no other vectors). a, b, c are scalars. combine is
  ADD, or TOP: the largest, where a NaN is larger than anything. The vectors may coincide.
*/
#if defined(VECGPU_MAP)
VECGPU_MAP(set, 0, a)
VECGPU_MAP(copy, VECGPU_X, x)
VECGPU_MAP(scale, VECGPU_Z, (a * z))
VECGPU_MAP(shift, VECGPU_Z, z + a)
VECGPU_MAP(multiple, VECGPU_X, (a * x))
VECGPU_MAP(axpy, VECGPU_X | VECGPU_Z, z + a * x)
VECGPU_MAP(aypx, VECGPU_X | VECGPU_Z, x + a * z)
VECGPU_MAP(axpby, VECGPU_X | VECGPU_Z, (a * x) + b * z)
VECGPU_MAP(waxpy, VECGPU_X | VECGPU_Y, y + a * x)
VECGPU_MAP(axpbyz, VECGPU_X | VECGPU_Y, (a * x) + b * y)
VECGPU_MAP(axpbypcz, VECGPU_X | VECGPU_Y | VECGPU_Z, (a * x) + b * y + c * z)
VECGPU_MAP(mult, VECGPU_X | VECGPU_Y, (x * y))
VECGPU_MAP(divide, VECGPU_X | VECGPU_Y, y == 0 ? 0 : x / y)
VECGPU_MAP(max, VECGPU_X | VECGPU_Y, x < y ? y : x)
VECGPU_MAP(min, VECGPU_X | VECGPU_Y, x < y ? x : y)
VECGPU_MAP(maxabs, VECGPU_X | VECGPU_Y, fabs(x) < fabs(y) ? fabs(y) : fabs(x))
VECGPU_MAP(reciprocal, VECGPU_Z, z == 0 ? z : 1 / z)
VECGPU_MAP(abs, VECGPU_Z, fabs(z))
VECGPU_MAP(sqrtabs, VECGPU_Z, sqrt(fabs(z)))
VECGPU_MAP(exp, VECGPU_Z, exp(z))
VECGPU_MAP(log, VECGPU_Z, log(z))
#endif

#if defined(VECGPU_REDUCE)
VECGPU_REDUCE(dot, VECGPU_X | VECGPU_Y, 1, ADD, (x * y), 0)
VECGPU_REDUCE(dotnorm2, VECGPU_X | VECGPU_Y, 2, ADD, (x * y), (y * y))
VECGPU_REDUCE(sum, VECGPU_X, 1, ADD, x, 0)
VECGPU_REDUCE(norm1, VECGPU_X, 1, ADD, fabs(x), 0)
VECGPU_REDUCE(square, VECGPU_X, 1, ADD, (x * x), 0)
VECGPU_REDUCE(norm1square, VECGPU_X, 2, ADD, fabs(x), (x * x))
VECGPU_REDUCE(largest, VECGPU_X, 1, TOP, fabs(x), 0)
VECGPU_REDUCE(largestquotient, VECGPU_X | VECGPU_Y, 1, TOP, fabs(y == 0 ? x : x / y), 0)
#endif
