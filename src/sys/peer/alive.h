#pragma once

/*
  A thread that looks at something ten times a second, and the death of other ranks' processes, which it detects. One thread serves all, from the first Begin() to the last End(); what it calls must be
  quick and call nothing of PETSc. A return value other than 0 is an errno.

    GPUCSRWatchBegin(w)    w->look(w) is called until the end, once before this function returns.
    GPUCSRWatchEnd(w)      the last call has w->wanted 0. No effect before Begin().

  Detects the death of another rank's process on this host. Each process holds a lock in shared memory for as long as it lives, and the system reports a dead holder
  (pthread_mutexattr_setrobust()). Process numbers would be unreliable: they are reused, and hidden in containers.

    GPUCSRAliveBegin(w)    holds the lock of this process, and watches the other locks. After a death the thread calls w->died(w, rank) once.
    GPUCSRAliveEnd(w)      releases the lock; the other ranks report nothing.
*/
#include "../gpucsrsys.h"
#include <pthread.h>

typedef struct _n_GPUCSRWatched GPUCSRWatched;
struct _n_GPUCSRWatched {
  void (*look)(GPUCSRWatched *);
  int            wanted, seen; /* seen: the last call knew this `wanted` */
  GPUCSRWatched *next;
};

/* Of each rank, in shared memory, zeroed */
typedef struct {
  pthread_mutex_t lock;
  int             held; /* 1: the holder lives, or has died */
} GPUCSRAliveWord;

typedef struct _n_GPUCSRAlive GPUCSRAlive;
struct _n_GPUCSRAlive {
  GPUCSRWatched    watched;
  GPUCSRAliveWord *word; /* of all ranks */
  int              rank, size;
  void (*died)(GPUCSRAlive *, int rank);
  void *ctx;
  int   holds, done; /* the thread's */
};

GPUCSR_INTERN int  GPUCSRWatchBegin(GPUCSRWatched *);
GPUCSR_INTERN void GPUCSRWatchEnd(GPUCSRWatched *);
GPUCSR_INTERN int  GPUCSRAliveBegin(GPUCSRAlive *);
GPUCSR_INTERN void GPUCSRAliveEnd(GPUCSRAlive *);
