/* pool.c - workers that spin briefly, then sleep, between runs.
**
** A run is announced by a new value of 'round'; each worker other than the
** caller does its range, helps the others with theirs and counts 'pending'
** down. Whoever waits first spins on
** the atomic, because the next run of a training step is microseconds away, and
** then sleeps on a condition variable. A sleeper announces itself ('asleep')
** before its last look at the atomic, a waker looks at 'asleep' after changing
** the atomic, both in sequential order: one of them sees the other. */
#include "base/pool.h"
#include "base/denormals.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

enum { SPINS = 20000 };

/* Where threads wait for an atomic to change. */
typedef struct sleepers {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  atomic_int asleep;
} sleepers;

/* A worker and its range of the run: tasks next..last-1 are left. Apart, so
** that taking one's own tasks costs no traffic. */
typedef struct worker {
  _Alignas(64) atomic_int next;
  int last, number;
  struct sl_pool *pool;
  pthread_t thread;
} worker;

struct sl_pool {
  int workers, spins;
  int started;    /* threads that exist */
  worker *worker; /* [workers]; number 0 is the caller, without a thread */
  /* The run; written before 'round', read after it. */
  void (*task) (void *context, int index, int worker);
  void *context;
  int n, stop;
  sl_denormals denormals; /* the caller's treatment */
  /* Apart, so that spinning on one does not slow the other. */
  _Alignas(64) atomic_uint round;
  _Alignas(64) atomic_uint pending;
  _Alignas(64) sleepers begin;
  sleepers end;
};

static void rest (void) {
#if defined(__x86_64__)
  __builtin_ia32_pause ();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Wait while *value is 'old'; returns its new value. */
static unsigned wait_while (sleepers *s, const atomic_uint *value, unsigned old,
                            int spins) {
  unsigned now;
  for (int i = 0; i < spins; i++) {
    if ((now = atomic_load_explicit (value, memory_order_acquire)) != old)
      return now;
    rest ();
  }
  pthread_mutex_lock (&s->mutex);
  atomic_fetch_add (&s->asleep, 1);
  while ((now = atomic_load (value)) == old)
    pthread_cond_wait (&s->changed, &s->mutex);
  atomic_fetch_sub (&s->asleep, 1);
  pthread_mutex_unlock (&s->mutex);
  return now;
}

/* Call after the value was changed. */
static void wake (sleepers *s) {
  if (atomic_load (&s->asleep) == 0) return;
  pthread_mutex_lock (&s->mutex);
  pthread_cond_broadcast (&s->changed);
  pthread_mutex_unlock (&s->mutex);
}

/* Deal out tasks 0..n-1; the first n % workers ranges are one longer. */
static void deal (sl_pool *pool) {
  const int part = pool->n / pool->workers, extra = pool->n % pool->workers;
  for (int i = 0, first = 0; i < pool->workers; i++) {
    worker *w = &pool->worker[i];
    w->last = first + part + (i < extra);
    atomic_store_explicit (&w->next, first, memory_order_relaxed);
    first = w->last;
  }
}

/* A worker's own range, then the rest of the ranges of others. A worker
** without a range is not needed. */
static void run_tasks (sl_pool *pool, int number) {
  if (number >= pool->n) return;
  for (int i = 0; i < pool->workers; i++) {
    worker *w = &pool->worker[(number + i) % pool->workers];
    int task;
    /* The first look spares an owner the traffic of a vain attempt. */
    while (atomic_load_explicit (&w->next, memory_order_relaxed) < w->last &&
           (task = atomic_fetch_add_explicit (&w->next, 1,
                                              memory_order_relaxed)) < w->last)
      pool->task (pool->context, task, number);
  }
}

static void *work (void *argument) {
  const worker *self = argument;
  sl_pool *pool = self->pool;
  unsigned seen = 0;
  for (;;) {
    seen = wait_while (&pool->begin, &pool->round, seen, pool->spins);
    if (pool->stop) return NULL;
    sl_denormals_set (pool->denormals);
    run_tasks (pool, self->number);
    if (atomic_fetch_sub (&pool->pending, 1) == 1) wake (&pool->end);
  }
}

/* Processors that this process may use. */
static int processors (void) {
#ifdef __linux__
  /* The kernel refuses a set shorter than its own: ask with longer ones. */
  for (int n = 1024; n <= 1 << 20; n *= 4) {
    size_t size = CPU_ALLOC_SIZE (n);
    cpu_set_t *set = CPU_ALLOC (n);
    int count = 0;
    if (!set) break;
    if (sched_getaffinity (0, size, set) == 0) count = CPU_COUNT_S (size, set);
    CPU_FREE (set);
    if (count > 0) return count;
  }
#endif
  return (int)sysconf (_SC_NPROCESSORS_ONLN);
}

/* Start the threads with sl_stop_signals blocked: those are for the thread that
** polls sl_interrupted. Returns 0 or an error number. */
static int start (sl_pool *pool) {
  sigset_t ours, before;
  int code = 0;
  sigemptyset (&ours);
  sl_stop_signals_add (&ours);
  pthread_sigmask (SIG_BLOCK, &ours, &before);
  while (pool->started < pool->workers - 1) {
    worker *w = &pool->worker[pool->started + 1];
    w->pool = pool;
    w->number = pool->started + 1;
    if ((code = pthread_create (&w->thread, NULL, work, w))) break;
    pool->started++;
  }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  return code;
}

static void sleepers_init (sleepers *s) {
  pthread_mutex_init (&s->mutex, NULL);
  pthread_cond_init (&s->changed, NULL);
}

static void sleepers_destroy (sleepers *s) {
  pthread_cond_destroy (&s->changed);
  pthread_mutex_destroy (&s->mutex);
}

sl_pool *sl_pool_new (int workers, sl_error *e) {
  int most = processors (), code;
  sl_pool *pool;
  if (workers < 0 || workers > SL_POOL_MOST) {
    sl_fail (e,
             "threads: got %d, expected 1..%d, or 0 for as many as this "
             "process may use (%d)",
             workers, SL_POOL_MOST, most);
    return NULL;
  }
  if (workers == 0) workers = most < 1 ? 1 : most;
  if (workers > SL_POOL_MOST) workers = SL_POOL_MOST;
  pool = sl_alloc (1, sizeof *pool);
  if (pool) pool->worker = sl_alloc ((size_t)workers, sizeof *pool->worker);
  if (!pool || !pool->worker) {
    sl_free (pool);
    sl_fail (e, "threads: no memory for a pool of %d", workers);
    return NULL;
  }
  pool->workers = workers;
  /* With more threads than processors, who spins keeps another from working. */
  pool->spins = workers <= most ? SPINS : 0;
  sleepers_init (&pool->begin);
  sleepers_init (&pool->end);
  if ((code = start (pool))) {
    sl_fail (e, "threads: cannot start number %d of %d: %s", pool->started + 2,
             workers, strerror (code));
    sl_pool_free (pool);
    return NULL;
  }
  return pool;
}

void sl_pool_free (sl_pool *pool) {
  if (!pool) return;
  pool->stop = 1;
  atomic_fetch_add (&pool->round, 1);
  wake (&pool->begin);
  for (int i = 1; i <= pool->started; i++)
    pthread_join (pool->worker[i].thread, NULL);
  sleepers_destroy (&pool->begin);
  sleepers_destroy (&pool->end);
  sl_free (pool->worker);
  sl_free (pool);
}

int sl_pool_workers (const sl_pool *pool) {
  return pool->workers;
}

void sl_pool_run (sl_pool *pool, int n,
                  void (*task) (void *context, int index, int worker),
                  void *context) {
  unsigned left = (unsigned)pool->started;
  pool->n = n;
  pool->task = task;
  pool->context = context;
  if (left == 0 || n <= 1) { /* nothing for others: worker 0 has the first */
    for (int i = 0; i < n; i++) task (context, i, 0);
    return;
  }
  pool->denormals = sl_denormals_current ();
  deal (pool);
  atomic_store (&pool->pending, left);
  atomic_fetch_add (&pool->round, 1);
  wake (&pool->begin);
  run_tasks (pool, 0);
  while ((left = atomic_load (&pool->pending)))
    wait_while (&pool->end, &pool->pending, left, pool->spins);
}
