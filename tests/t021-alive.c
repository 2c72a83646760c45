/*
  Is another process alive? A rank is killed, exits, is stopped and continued, or leaves its group, in two groups at once.

  //TEST name="all" load=0
*/
#include "../src/sys/peer/alive.h"
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef enum {
  KILLED,
  EXITS,
  STOPPED,
  LEAVES,
  WAYS
} Way;
static const char *const ways[] = {"is killed", "exits", "is stopped and goes on", "leaves"};

static void Died(GPUCSRAlive *w, int rank)
{
  __atomic_store_n((int *)w->ctx, 1 + rank, __ATOMIC_RELEASE);
}

static void Pause(double seconds)
{
  const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};

  (void)nanosleep(&t, NULL);
}

/* Waits until *p is v; false: two seconds have passed */
static int Becomes(int *p, int v)
{
  for (int k = 0; k < 200; k++) {
    if (__atomic_load_n(p, __ATOMIC_ACQUIRE) == v) return 1;
    Pause(0.01);
  }
  return 0;
}

static int Case(Way way)
{
  GPUCSRAliveWord *word     = (GPUCSRAliveWord *)mmap(NULL, 4 * sizeof(*word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int              heard[2] = {0, 0}, bad = 0, status;
  GPUCSRAlive      mine[2] = {
         {.word = word,     .rank = 0, .size = 2, .died = Died, .ctx = &heard[0]},
         {.word = word + 2, .rank = 1, .size = 2, .died = Died, .ctx = &heard[1]}
  };
  pid_t child;

  if (word == MAP_FAILED) return 1;
  child = fork();
  if (!child) { /* rank 1 of the first group, rank 0 of the second */
    GPUCSRAlive his[2] = {
      {.word = word,     .rank = 1, .size = 2, .died = Died, .ctx = &heard[0]},
      {.word = word + 2, .rank = 0, .size = 2, .died = Died, .ctx = &heard[1]}
    };

    for (int k = 0; k < 2; k++)
      if (GPUCSRAliveBegin(&his[k])) _exit(1);
    Pause(0.5);
    if (way == LEAVES || way == STOPPED)
      for (int k = 0; k < 2; k++) GPUCSRAliveEnd(&his[k]);
    else if (way == KILLED) (void)raise(SIGKILL);
    _exit(0);
  }
  for (int k = 0; k < 2; k++) bad |= GPUCSRAliveBegin(&mine[k]);
  if (!Becomes(&word[1].held, 1)) bad = 1;
  if (way == STOPPED) {
    (void)kill(child, SIGSTOP);
    Pause(1);
    (void)kill(child, SIGCONT);
  }
  (void)waitpid(child, &status, 0);
  if (way == KILLED || way == EXITS) {
    if (!Becomes(&heard[0], 2) || !Becomes(&heard[1], 1)) bad = 1;
  } else {
    Pause(0.3);
    if (heard[0] || heard[1]) bad = 1;
  }
  for (int k = 0; k < 2; k++) GPUCSRAliveEnd(&mine[k]);
  (void)munmap(word, 4 * sizeof(*word));
  if (bad) printf("Another process %s: %d and %d are heard\n", ways[way], heard[0], heard[1]);
  return bad;
}

int main(void)
{
  int bad = 0;

  for (int way = 0; way < WAYS; way++) bad |= Case((Way)way);
  return bad;
}
