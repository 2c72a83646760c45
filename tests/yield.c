/*
  sched_yield() that sleeps, preloaded into ranks that mpiexec starts (tests/run.sh). A rank that waits calls it again and again. If there are more ranks than processors,
  a sleeping rank leaves its processor to computing ranks; a rank that only yields is scheduled again at once.
*/
#include <sched.h>
#include <time.h>

int sched_yield(void)
{
  const struct timespec pause = {0, 20000};

  nanosleep(&pause, NULL);
  return 0;
}
