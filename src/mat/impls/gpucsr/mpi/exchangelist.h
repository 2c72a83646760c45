/*
  Ways of exchanging a halo, one row each, the one to be preferred first. No guard: included with different meanings of GPUCSR_EXCHANGE(). A way is one file,
  exchange_NAME.c, and one row.
*/
GPUCSR_EXCHANGE(peer)
GPUCSR_EXCHANGE(nccl)
GPUCSR_EXCHANGE(staged)
