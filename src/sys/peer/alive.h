#pragma once

/*
  Is the process of another rank of this host still there? Each holds a lock in memory that all share, for as long as it lives; the system tells who asks for the lock that its holder has
  died, however that came about (pthread_mutexattr_setrobust()). No number of a process is needed, which may be another's by then, or hidden in a container.

    GPUCSRAliveBegin(w)    this process holds its lock, and looks at those of the others ten times a second, in a thread that does nothing else
    GPUCSRAliveEnd(w)      it leaves as it should: nobody misses it

  Once one has died, the thread calls w->died(w, rank), which must be quick and call nothing of PETSc, and looks no more. A return value other than 0 is an errno.
*/
#include "../gpucsrsys.h"
#include <pthread.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Of each rank, in shared memory, zeroed */
typedef struct {
  pthread_mutex_t lock;
  int             held; /* 1: its holder lives, or has died */
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

/* For all threads that look at something ten times a second: one is started, with signals left to the program's own threads; and the mutex is let go until the next look, or until the condition is signalled */
GPUCSR_INTERN int  GPUCSRThreadCreate(pthread_t *, void *(*)(void *));
GPUCSR_INTERN void GPUCSRPause(pthread_cond_t *, pthread_mutex_t *);

#if defined(__cplusplus)
}
#endif
