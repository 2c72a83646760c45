/*
  Ways of exchanging a halo, one row each, preferred ones first. Each way is one file, exchange_NAME.c, and one row. No include guard: each include
  defines GPUCSR_EXCHANGE() anew.
*/
GPUCSR_EXCHANGE(peer)
GPUCSR_EXCHANGE(nccl)
GPUCSR_EXCHANGE(staged)
