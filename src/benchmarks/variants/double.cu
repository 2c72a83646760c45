#define VALUE double
#include "kernels.cuh"
