#pragma once

/*
  Detects the death of another rank's process on this host. Each process holds a lock in shared memory for as long as it lives, and the system reports a dead holder
  (pthread_mutexattr_setrobust()). Process numbers would be unreliable: they are reused, and hidden in containers.

    GPUCSRAliveBegin(w)    holds the lock of this process, and starts a thread that checks the other locks ten times a second.
    GPUCSRAliveEnd(w)      releases the lock; the other ranks report nothing.

  After a death the thread calls w->died(w, rank), which must be quick and call nothing of PETSc; then the checks end. A return value other than 0 is an errno.
*/
#include "../gpucsrsys.h"
#include <pthread.h>

/* Of each rank, in shared memory, zeroed */
typedef struct {
  pthread_mutex_t lock;
  int             held; /* 1: the holder lives, or has died */
} GPUCSRAliveWord;

typedef struct _n_GPUCSRAlive GPUCSRAlive;
struct _n_GPUCSRAlive {
  GPUCSRAliveWord *word; /* of all ranks */
  int              rank, size;
  void (*died)(GPUCSRAlive *, int rank);
  void        *ctx;
  int          wanted, holds, done; /* the thread's */
  GPUCSRAlive *next;
};

GPUCSR_INTERN int  GPUCSRAliveBegin(GPUCSRAlive *);
GPUCSR_INTERN void GPUCSRAliveEnd(GPUCSRAlive *);

/* For threads with ten checks a second. The first starts a thread that leaves signals to the program's threads. The second releases the mutex until the next check or signal of the condition */
GPUCSR_INTERN int  GPUCSRThreadCreate(pthread_t *, void *(*)(void *));
GPUCSR_INTERN void GPUCSRPause(pthread_cond_t *, pthread_mutex_t *);
