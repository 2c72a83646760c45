#pragma once

/* Peers as kernels see them: the words in memory that all share, and a wait for them. peer.h has the rest */
#include "../device.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct _n_GPUCSRPeers *GPUCSRPeers;

#define GPUCSR_PEER_PIECES 64
#define GPUCSR_PEER_LATE   (1 << 20)

/* In memory of the host that all ranks have mapped, and their devices */
typedef struct {
  uint64_t token;        /* of rank 0's process: what was mapped is what was meant */
  int      dead;         /* 1 + the rank that gave up, and GPUCSR_PEER_LATE where it waited for one that may come late; 0: all is well */
  int      said;         /* message is complete */
  char     message[400]; /* empty: it waited too long */
  int64_t  left[];       /* by piece, modulo GPUCSR_PEER_PIECES, and rank: 1 + the piece that this rank addresses no more; behind it, words of alive.h */
} GPUCSRPeerControl;

/* What a wait in a kernel needs; an argument of the launch */
typedef struct {
  volatile int      *dead;
  unsigned long long patience; /* nanoseconds */
  int                says;     /* into dead, when that is over */
} GPUCSRPeerWatch;

/*
  Where the ranks gather numbers (peer.cuh, blackbox/peerhalo/): of each rank's memory the same place, with a slot of 16 bytes for a number and its flag, for gathers of either parity. Memory begins with 0, a
  flag is never 0. What is in memory that the kernel sees, slots and count, changes there: launches may be recorded
*/
#define GPUCSR_PEER_GATHER             8 /* numbers of a rank at most */
#define GPUCSR_PEER_GATHER_BYTES(size) (2 * (size_t)(size)*GPUCSR_PEER_GATHER * 16)
typedef struct {
  GPUCSRPeerWatch watch;
  void          **slots; /* by rank */
  int             rank, size;
  uint64_t       *count; /* gathers done */
} GPUCSRPeerSlots;

#if defined(__cplusplus)
}
#endif
