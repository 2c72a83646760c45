/*
  The exchanges of halos. An exchange is a row here and a file, exchange_NAME.c. No include guard: each include defines GPUCSR_EXCHANGE() anew.
*/
GPUCSR_EXCHANGE(peer)
GPUCSR_EXCHANGE(nccl)
GPUCSR_EXCHANGE(staged)
