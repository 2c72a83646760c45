#pragma once

/* Peers for kernels: the words in shared memory, and the data of a wait. peer.h has the rest */
#include "../device.h"

typedef struct _n_GPUCSRPeers *GPUCSRPeers;

#define GPUCSR_PEER_PIECES 64
#define GPUCSR_PEER_LATE   (1 << 20)

/* Host memory, mapped by all ranks and their devices */
typedef struct {
  uint64_t token;        /* of rank 0's process: checks that the right memory was mapped */
  int      dead;         /* 1 + the first rank to give up, plus GPUCSR_PEER_LATE after a wait with patience; 0: none */
  int      said;         /* message is complete */
  char     message[400]; /* empty: the wait took too long */
  int64_t  left[];       /* by piece, modulo GPUCSR_PEER_PIECES, and rank: 1 + the rank's last freed piece; then the words of alive.h */
} GPUCSRPeerControl;

/* Data of a wait in a kernel; an argument of the launch */
typedef struct {
  volatile int      *dead;
  unsigned long long patience; /* nanoseconds */
  int                says;     /* value for dead after the time */
} GPUCSRPeerWatch;

/*
  Memory of a gather (peer.cuh, blackbox/peerhalo/). Each rank has slots of 16 bytes, for a number and its flag, and two sets of slots for gathers of even and odd count. Memory begins with 0, and a
  flag is never 0. Slots and count are in the device's memory, because a recorded launch keeps its arguments
*/
#define GPUCSR_PEER_GATHER             8 /* numbers of a rank at most */
#define GPUCSR_PEER_GATHER_BYTES(size) (2 * (size_t)(size)*GPUCSR_PEER_GATHER * 16)
typedef struct {
  GPUCSRPeerWatch watch;
  void          **slots; /* by rank */
  int             rank, size;
  uint64_t       *count; /* gathers done */
} GPUCSRPeerSlots;
