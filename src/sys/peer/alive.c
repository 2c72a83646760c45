/*
  The thread that holds this process' locks and checks the locks of other processes: see alive.h. A lock belongs to a thread, so one thread holds all locks, from the first Begin() to the last
  End().
*/
#include "alive.h"
#include <errno.h>
#include <signal.h>
#include <time.h>

#define PAUSE 100000000 /* nanoseconds between two looks */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* guards all variables below */
static pthread_cond_t  turn  = PTHREAD_COND_INITIALIZER;  /* something is wanted, or done */
static GPUCSRAlive    *watched;
static pthread_t       thread;

void GPUCSRPause(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
  struct timespec next;

  (void)clock_gettime(CLOCK_REALTIME, &next);
  next.tv_nsec += PAUSE;
  if (next.tv_nsec >= 1000000000) {
    next.tv_nsec -= 1000000000;
    next.tv_sec++;
  }
  (void)pthread_cond_timedwait(condition, mutex, &next);
}

/* Signals of the program are for its own threads */
int GPUCSRThreadCreate(pthread_t *id, void *(*work)(void *))
{
  sigset_t all, before;
  int      e;

  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  e = pthread_create(id, NULL, work, NULL);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return e;
}

static void Look(GPUCSRAlive *w)
{
  for (int r = 0; r < w->size && !w->done; r++) {
    GPUCSRAliveWord *word = &w->word[r];
    int              e;

    if (r == w->rank || !__atomic_load_n(&word->held, __ATOMIC_ACQUIRE)) continue;
    e = pthread_mutex_trylock(&word->lock);
    if (!e || e == EOWNERDEAD) (void)pthread_mutex_unlock(&word->lock); /* after the holder's death the lock stays unusable: ENOTRECOVERABLE */
    if (e != EOWNERDEAD && e != ENOTRECOVERABLE) continue;
    w->done = 1;
    (*w->died)(w, r);
  }
}

/* Requests of Begin() and End(); with the guard held */
static void Serve(GPUCSRAlive *w)
{
  GPUCSRAliveWord *mine = &w->word[w->rank];

  if (w->wanted && !w->holds) {
    (void)pthread_mutex_lock(&mine->lock);
    __atomic_store_n(&mine->held, 1, __ATOMIC_RELEASE);
  } else if (!w->wanted && w->holds) {
    __atomic_store_n(&mine->held, 0, __ATOMIC_RELEASE);
    (void)pthread_mutex_unlock(&mine->lock);
  }
  w->holds = w->wanted;
}

static void *Watch(void *unused)
{
  (void)pthread_mutex_lock(&guard);
  while (watched) {
    for (GPUCSRAlive **w = &watched; *w;) {
      GPUCSRAlive *one = *w;

      Serve(one);
      if (!one->wanted) *w = one->next; /* the caller may free w as soon as the guard is free */
      else {
        if (!one->done) Look(one);
        w = &one->next;
      }
    }
    (void)pthread_cond_broadcast(&turn);
    if (!watched) break;
    GPUCSRPause(&turn, &guard);
  }
  (void)pthread_mutex_unlock(&guard);
  return unused;
}

static int WordCreate(GPUCSRAliveWord *word)
{
  pthread_mutexattr_t a;
  int                 e = pthread_mutexattr_init(&a);

  if (e) return e;
  e = pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
  if (!e) e = pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  if (!e) e = pthread_mutex_init(&word->lock, &a);
  (void)pthread_mutexattr_destroy(&a);
  return e;
}

int GPUCSRAliveBegin(GPUCSRAlive *w)
{
  int e = WordCreate(&w->word[w->rank]), first;

  if (e) return e;
  (void)pthread_mutex_lock(&guard);
  first     = !watched;
  w->wanted = 1;
  w->holds = w->done = 0;
  w->next            = watched;
  watched            = w;
  if (first) {
    e = GPUCSRThreadCreate(&thread, Watch);
    if (e) {
      watched   = NULL;
      w->wanted = 0;
    }
  }
  while (!e && !w->holds) {
    (void)pthread_cond_broadcast(&turn);
    (void)pthread_cond_wait(&turn, &guard);
  }
  (void)pthread_mutex_unlock(&guard);
  return e;
}

void GPUCSRAliveEnd(GPUCSRAlive *w)
{
  int last;

  (void)pthread_mutex_lock(&guard);
  if (w->wanted) {
    w->wanted = 0;
    while (w->holds) {
      (void)pthread_cond_broadcast(&turn);
      (void)pthread_cond_wait(&turn, &guard);
    }
    last = !watched;
    (void)pthread_mutex_unlock(&guard);
    if (last) (void)pthread_join(thread, NULL);
    return;
  }
  (void)pthread_mutex_unlock(&guard);
}
