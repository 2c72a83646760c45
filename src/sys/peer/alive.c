/*
  The thread that looks, and the locks of this process, which it holds, because a lock belongs to a thread: see alive.h.
*/
#include "alive.h"
#include <errno.h>
#include <signal.h>
#include <time.h>

#define PAUSE 100000000 /* nanoseconds between two looks */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* guards all variables below */
static pthread_cond_t  turn  = PTHREAD_COND_INITIALIZER;  /* something is wanted, or done */
static GPUCSRWatched  *list;
static pthread_t       thread;

static void *Watch(void *unused)
{
  (void)pthread_mutex_lock(&guard);
  while (list) {
    for (GPUCSRWatched **w = &list; *w;) {
      GPUCSRWatched *one = *w;

      (*one->look)(one);
      one->seen = one->wanted;
      if (one->wanted) w = &one->next;
      else *w = one->next; /* the caller may free it as soon as the guard is free */
    }
    (void)pthread_cond_broadcast(&turn);
    if (list) {
      struct timespec next;

      (void)clock_gettime(CLOCK_REALTIME, &next);
      next.tv_nsec += PAUSE;
      if (next.tv_nsec >= 1000000000) {
        next.tv_nsec -= 1000000000;
        next.tv_sec++;
      }
      (void)pthread_cond_timedwait(&turn, &guard, &next);
    }
  }
  (void)pthread_mutex_unlock(&guard);
  return unused;
}

/* Until the thread has looked */
static void Await(const GPUCSRWatched *w)
{
  while (w->seen != w->wanted) {
    (void)pthread_cond_broadcast(&turn);
    (void)pthread_cond_wait(&turn, &guard);
  }
}

int GPUCSRWatchBegin(GPUCSRWatched *w)
{
  int e = 0;

  (void)pthread_mutex_lock(&guard);
  w->seen = 0;
  w->next = list;
  list    = w;
  if (!w->next) { /* signals of the program are for its own threads */
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    e = pthread_create(&thread, NULL, Watch, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  if (e) list = NULL;
  w->wanted = !e;
  Await(w);
  (void)pthread_mutex_unlock(&guard);
  return e;
}

void GPUCSRWatchEnd(GPUCSRWatched *w)
{
  int last;

  (void)pthread_mutex_lock(&guard);
  last      = w->wanted;
  w->wanted = 0;
  Await(w);
  last = last && !list;
  (void)pthread_mutex_unlock(&guard);
  if (last) (void)pthread_join(thread, NULL);
}

/* --- Processes */

static void Look(GPUCSRWatched *watched)
{
  GPUCSRAlive     *w    = (GPUCSRAlive *)watched;
  GPUCSRAliveWord *mine = &w->word[w->rank];

  if (w->watched.wanted && !w->holds) {
    (void)pthread_mutex_lock(&mine->lock);
    __atomic_store_n(&mine->held, 1, __ATOMIC_RELEASE);
  } else if (!w->watched.wanted) {
    __atomic_store_n(&mine->held, 0, __ATOMIC_RELEASE);
    (void)pthread_mutex_unlock(&mine->lock);
  }
  w->holds = w->watched.wanted;
  for (int r = 0; r < w->size && w->holds && !w->done; r++) {
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
  const int e = WordCreate(&w->word[w->rank]);

  w->holds = w->done = 0;
  w->watched.look    = Look;
  return e ? e : GPUCSRWatchBegin(&w->watched);
}

void GPUCSRAliveEnd(GPUCSRAlive *w)
{
  GPUCSRWatchEnd(&w->watched);
}
