/*
  -gpucsr_debug_defer ORDER, with -gpucsr_debug_standin: the device works late, to find missing waits on a machine without a GPU.

  A stream is a queue of commands. A command runs as late as possible, when the host waits for it (order 0), or earlier, in an order drawn from a seed (order 1 and more). A missing wait then shows as
  a wrong number. As on a GPU, a copy from pageable memory saves its source before it returns, and a copy to pageable memory is complete on return. Copies of page-locked memory run later.
  Products and the loops of GMRES are queued; other work of the host in place of a device waits for the queue first.
*/
#include "../../gpucsrsys.h"
#include <string.h>

typedef struct _n_Task  Task;
typedef struct _n_Queue Queue;

/* The first `ticket` commands of a queue */
typedef struct {
  Queue *queue;
  size_t ticket;
} Point;

struct _n_Task {
  PetscErrorCode (*work)(void *); /* NULL: wait for a point */
  void *arg;
  Point point;
  Task *next;
};

struct _n_Queue {
  size_t queued, done; /* commands so far */
  Task  *first, **last;
  Queue *next;
};

typedef struct _n_Range Range;
struct _n_Range {
  char  *begin;
  size_t bytes;
  Range *next;
};

static Queue   *queues;
static Range   *locked; /* page-locked memory */
static PetscInt order = -1;
static uint64_t state;
static PetscErrorCode (*freeit)(int, GPUCSRStream, void *); /* of the layer below */

static unsigned Draw(unsigned n)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % n;
}

/* --- Queues */

static PetscErrorCode DoUntil(Queue *q, size_t ticket);

static PetscErrorCode DoFirst(Queue *q)
{
  Task *t = q->first;

  PetscFunctionBegin;
  if (t->work) PetscCall((*t->work)(t->arg));
  else PetscCall(DoUntil(t->point.queue, t->point.ticket));
  q->first = t->next;
  if (!q->first) q->last = &q->first;
  q->done++;
  PetscCall(PetscFree(t->arg));
  PetscCall(PetscFree(t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoUntil(Queue *q, size_t ticket)
{
  PetscFunctionBegin;
  while (q->done < ticket) PetscCall(DoFirst(q));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Enqueue(GPUCSRStream s, PetscErrorCode (*work)(void *), const void *arg, size_t bytes, Point point)
{
  Queue *q = (Queue *)s;
  Task  *t;

  PetscFunctionBegin;
  PetscCall(PetscNew(&t));
  PetscCall(PetscMalloc(bytes, &t->arg));
  PetscCall(PetscMemcpy(t->arg, arg, bytes));
  t->work  = work;
  t->point = point;
  *q->last = t;
  q->last  = &t->next;
  q->queued++;
  /* runs some of the commands that may run already, drawn from the seed */
  for (Queue *each = queues; each && order >= 1; each = each->next)
    for (unsigned n = Draw(2) ? Draw(64) : 0; n && each->first; n--) {
      const Point *p = &each->first->point;

      if (!each->first->work && p->queue->done < p->ticket) break;
      PetscCall(DoFirst(each));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode call_Defer(int id, PetscErrorCode (*work)(void *), const void *arg, size_t bytes, GPUCSRStream s)
{
  return Enqueue(s, work, arg, bytes, (Point){NULL, 0});
}

static PetscErrorCode synchronize_Defer(int id)
{
  PetscFunctionBegin;
  for (Queue *q = queues; q; q = q->next) PetscCall(DoUntil(q, q->queued));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode streamcreate_Defer(int id, GPUCSRStream *s)
{
  Queue *q;

  PetscFunctionBegin;
  PetscCall(PetscNew(&q));
  q->last = &q->first;
  q->next = queues;
  queues  = q;
  *s      = q;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode streamsynchronize_Defer(int id, GPUCSRStream s)
{
  return DoUntil((Queue *)s, ((Queue *)s)->queued);
}

/* With the marks that other streams wait for in this queue */
static PetscErrorCode streamdestroy_Defer(int id, GPUCSRStream s)
{
  Queue **q = &queues;

  PetscFunctionBegin;
  PetscCall(synchronize_Defer(id));
  while (*q != s) q = &(*q)->next;
  *q = (*q)->next;
  PetscCall(PetscFree(s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An event is the point of a queue at its last record */
static PetscErrorCode eventcreate_Defer(int id, GPUCSRBool timing, GPUCSREvent *e)
{
  Point *p;

  PetscFunctionBegin;
  PetscCall(PetscNew(&p));
  *e = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode eventdestroy_Defer(int id, GPUCSREvent e)
{
  return PetscFree(e);
}

static PetscErrorCode eventrecord_Defer(int id, GPUCSREvent e, GPUCSRStream s)
{
  *(Point *)e = (Point){(Queue *)s, ((Queue *)s)->queued};
  return PETSC_SUCCESS;
}

static PetscErrorCode eventsynchronize_Defer(int id, GPUCSREvent e)
{
  const Point *p = (const Point *)e;

  PetscFunctionBegin;
  if (p->queue) PetscCall(DoUntil(p->queue, p->ticket));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode streamwait_Defer(int id, GPUCSRStream s, GPUCSREvent e)
{
  const Point *p = (const Point *)e;

  PetscFunctionBegin;
  if (p->queue && p->queue != s) PetscCall(Enqueue(s, NULL, NULL, 0, *p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Times have no meaning here */
static PetscErrorCode eventelapsed_Defer(int id, GPUCSREvent a, GPUCSREvent b, double *seconds)
{
  PetscFunctionBegin;
  PetscCall(eventsynchronize_Defer(id, a));
  PetscCall(eventsynchronize_Defer(id, b));
  *seconds = 1e-6;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Memory */

static PetscErrorCode Lock(void *p, size_t bytes)
{
  Range *r;

  PetscFunctionBegin;
  PetscCall(PetscNew(&r));
  r->begin = (char *)p;
  r->bytes = bytes;
  r->next  = locked;
  locked   = r;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Like CUDA, after all commands that may use the memory */
static PetscErrorCode hostunregister_Defer(int id, void *p)
{
  Range **r = &locked, *gone;

  PetscFunctionBegin;
  PetscCall(synchronize_Defer(id));
  while (*r && (*r)->begin != p) r = &(*r)->next;
  PetscCheck(*r, PETSC_COMM_SELF, PETSC_ERR_GPU, "The memory at %p is not page-locked", p);
  gone = *r;
  *r   = gone->next;
  PetscCall(PetscFree(gone));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRBool Locked(const void *p)
{
  for (const Range *r = locked; r; r = r->next)
    if ((const char *)p >= r->begin && (const char *)p < r->begin + r->bytes) return PETSC_TRUE;
  return PETSC_FALSE;
}

static PetscErrorCode hostmalloc_Defer(int id, size_t bytes, void **p)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc(bytes, p));
  PetscCall(Lock(*p, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode hostfree_Defer(int id, void *p)
{
  PetscFunctionBegin;
  PetscCall(hostunregister_Defer(id, p));
  PetscCall(PetscFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode hostregister_Defer(int id, void *p, size_t bytes, GPUCSRBool *done)
{
  PetscFunctionBegin;
  PetscCall(Lock(p, bytes));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoFree(void *arg)
{
  return (*freeit)(0, NULL, *(void **)arg);
}

static PetscErrorCode free_Defer(int id, GPUCSRStream s, void *p)
{
  return call_Defer(id, DoFree, &p, sizeof(p), s);
}

typedef struct {
  void       *dst;
  const void *src; /* NULL: behind this struct, or with zero: no source */
  size_t      bytes;
  GPUCSRBool  zero;
} Move;

static PetscErrorCode DoMove(void *arg)
{
  const Move *m = (const Move *)arg;

  if (!m->bytes) return PETSC_SUCCESS; /* of nothing, which may be nowhere */
  if (m->zero) memset(m->dst, 0, m->bytes);
  else memmove(m->dst, m->src ? m->src : m + 1, m->bytes);
  return PETSC_SUCCESS;
}

static PetscErrorCode copy_Defer(int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s)
{
  Move m = {dst, src, bytes, PETSC_FALSE};

  PetscFunctionBegin;
  if (kind == GPUCSR_TO_DEVICE && !Locked(src)) {
    char *both;

    PetscCall(PetscMalloc(sizeof(m) + bytes, &both));
    m.src = NULL;
    PetscCall(PetscMemcpy(both, &m, sizeof(m)));
    PetscCall(PetscMemcpy(both + sizeof(m), src, bytes));
    PetscCall(call_Defer(id, DoMove, both, sizeof(m) + bytes, s));
    PetscCall(PetscFree(both));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(call_Defer(id, DoMove, &m, sizeof(m), s));
  if (kind == GPUCSR_TO_HOST && !Locked(dst)) PetscCall(streamsynchronize_Defer(id, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode zero_Defer(int id, void *p, size_t bytes, GPUCSRStream s)
{
  const Move m = {p, NULL, bytes, PETSC_TRUE};

  return call_Defer(id, DoMove, &m, sizeof(m), s);
}

/* --- The layer */

PetscErrorCode GPUCSRWaitStreamOnHost(GPUCSRStream s)
{
  PetscFunctionBegin;
  if (order >= 0 && s) PetscCall(streamsynchronize_Defer(0, s)); /* the streams of the host backend are NULL */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRLayer_defer(GPUCSRBackendOps *ops)
{
  PetscFunctionBegin;
  if (strcmp(ops->name, "cuda")) PetscFunctionReturn(PETSC_SUCCESS);
  order = -1;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-gpucsr_debug_defer", &order, NULL));
  if (order < 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(!ops->kernels, PETSC_COMM_WORLD, PETSC_ERR_ARG_WRONGSTATE, "-gpucsr_debug_defer needs -gpucsr_debug_standin 1");
  state  = (uint64_t)order;
  freeit = ops->free;
#define LAY(name) ops->name = name##_Defer
  LAY(synchronize);
  LAY(free);
  LAY(hostmalloc);
  LAY(hostfree);
  LAY(hostregister);
  LAY(hostunregister);
  LAY(copy);
  LAY(zero);
  LAY(streamcreate);
  LAY(streamdestroy);
  LAY(streamsynchronize);
  LAY(streamwait);
  LAY(eventcreate);
  LAY(eventdestroy);
  LAY(eventrecord);
  LAY(eventsynchronize);
  LAY(eventelapsed);
  LAY(call);
#undef LAY
  PetscFunctionReturn(PETSC_SUCCESS);
}
