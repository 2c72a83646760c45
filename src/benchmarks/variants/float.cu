#define VALUE float
#include "kernels.cuh"
