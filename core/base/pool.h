/* pool.h - a fixed set of threads that run numbered tasks. */
#ifndef SL_POOL_H
#define SL_POOL_H
#include "base/error.h"

typedef struct sl_pool sl_pool;

/* The largest pool. */
enum { SL_POOL_MOST = 1024 };

/* 'workers' 1..SL_POOL_MOST counts the calling thread, which works too; 0 means
** as many as the process may use. NULL and a sentence when a thread cannot be
** made. The threads do not take sl_stop_signals. A pool does not survive
** fork: a child makes its own. */
sl_pool *sl_pool_new (int workers, sl_error *e);
void sl_pool_free (sl_pool *pool); /* NULL is allowed */
int sl_pool_workers (const sl_pool *pool);

/* Run task (context, index, worker) for index 0..n-1, each once, and return
** when all are done. 'worker' is below n and below the pool's number of
** workers; no two tasks that run at a time have the same. Each worker begins
** with a contiguous range, the first n % workers one longer, so that buffers
** stay warm; a worker that is done takes from the ranges of others, because
** processors differ in speed from one moment to the next. Results must not
** depend on who runs what. Worker 0 is the caller, whose treatment of denormals
** (denormals.h) the others take over. Not reentrant; one caller at a time. */
void sl_pool_run (sl_pool *pool, int n,
                  void (*task) (void *context, int index, int worker),
                  void *context);
#endif
