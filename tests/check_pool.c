/* check_pool.c - every index once, on a promised worker; help, sleep and
** wake. */
#include "base/interrupt.h"
#include "base/memory_test.h"
#include "base/pool.h"
#include "support/suite.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 40 };
typedef struct record {
  int runs[MOST], by[MOST]; /* of each index */
  pthread_t thread[MOST];   /* of each worker */
  int blocked[MOST];        /* worker has sl_stop_signals blocked */
  int meeting;              /* tasks that wait for each other; 0: none do */
  atomic_int here, done;
} record;

static void wait_for (atomic_int *x, int value) {
  while (atomic_load (x) < value) sched_yield ();
}

static void note (void *context, int index, int worker) {
  record *r = context;
  sigset_t set;
  pthread_sigmask (SIG_SETMASK, NULL, &set);
  r->runs[index]++;
  r->by[index] = worker;
  r->thread[worker] = pthread_self ();
  r->blocked[worker] = 1;
  for (const int *number = sl_stop_signals; *number; number++)
    if (!sigismember (&set, *number)) r->blocked[worker] = 0;
  atomic_fetch_add (&r->here, 1);
  wait_for (&r->here, r->meeting);
}

static sl_pool *pool_of (int workers) {
  sl_error e;
  sl_pool *pool = sl_pool_new (workers, &e);
  ck_assert_msg (pool != NULL, "%s", e.text);
  return pool;
}

START_TEST (every_index_runs_once_on_a_worker_below_n) {
  for (int workers = 1; workers <= 7; workers++) {
    sl_pool *pool = pool_of (workers);
    ck_assert_int_eq (sl_pool_workers (pool), workers);
    for (int n = 0; n < MOST; n++) {
      record r = { 0 };
      sl_pool_run (pool, n, note, &r);
      for (int i = 0; i < MOST; i++) {
        ck_assert_int_eq (r.runs[i], i < n);
        if (i < n) ck_assert_int_lt (r.by[i], n < workers ? n : workers);
      }
    }
    sl_pool_free (pool);
  }
}
END_TEST

/* The first task of two workers waits for the others: whoever has it, only the
** other worker is left for them. */
static void hold (void *context, int index, int worker) {
  record *r = context;
  r->by[index] = worker;
  if (index == 0) wait_for (&r->done, MOST - 1);
  atomic_fetch_add (&r->done, 1);
}

START_TEST (who_is_done_helps) {
  sl_pool *pool = pool_of (2);
  record r = { 0 };
  sl_pool_run (pool, MOST, hold, &r);
  for (int i = 1; i < MOST; i++) ck_assert_int_ne (r.by[i], r.by[0]);
  sl_pool_free (pool);
}
END_TEST

START_TEST (workers_are_threads_deaf_to_interrupts) {
  record r = { .meeting = 4 }; /* so that nobody takes two */
  sl_pool *pool = pool_of (4);
  sl_pool_run (pool, 4, note, &r);
  ck_assert (pthread_equal (r.thread[0], pthread_self ()));
  ck_assert (!r.blocked[0]);
  for (int i = 1; i < 4; i++) {
    ck_assert (r.blocked[i]);
    for (int j = 0; j < i; j++)
      ck_assert (!pthread_equal (r.thread[i], r.thread[j]));
  }
  sl_pool_free (pool);
}
END_TEST

static void add (void *context, int index, int worker) {
  (void)worker;
  ((long *)context)[index] += index + 1;
}

START_TEST (many_runs_in_a_row) {
  long sums[8] = { 0 };
  sl_pool *pool = pool_of (3);
  for (int i = 0; i < 20000; i++) sl_pool_run (pool, 8, add, sums);
  for (int i = 0; i < 8; i++) ck_assert_int_eq (sums[i], 20000L * (i + 1));
  sl_pool_free (pool);
}
END_TEST

static void doze (void *context, int index, int worker) {
  atomic_int *done = context;
  (void)worker;
  if (index) usleep (20000);
  atomic_fetch_add (done, 1);
}

/* Longer than anyone spins, on either side. */
START_TEST (sleepers_wake) {
  atomic_int done = 0;
  sl_pool *pool = pool_of (2);
  for (int i = 1; i <= 5; i++) {
    usleep (20000);
    sl_pool_run (pool, 2, doze, &done);
    ck_assert_int_eq (atomic_load (&done), 2 * i);
  }
  usleep (20000); /* freed while asleep */
  sl_pool_free (pool);
}
END_TEST

START_TEST (bad_numbers_of_threads_are_refused) {
  sl_error e;
  ck_assert_ptr_null (sl_pool_new (-1, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "got -1, expected 1..1024"));
  ck_assert_ptr_null (sl_pool_new (5000, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "got 5000"));
  sl_pool_free (NULL);
}
END_TEST

START_TEST (by_default_every_processor_works) {
  sl_pool *pool = pool_of (0);
  int n = sl_pool_workers (pool);
  ck_assert_int_ge (n, 1);
  ck_assert_int_le (n, (int)sysconf (_SC_NPROCESSORS_CONF));
  sl_pool_free (pool);
}
END_TEST

START_TEST (no_memory_is_an_error) {
  sl_error e;
  size_t live = sl_alloc_live ();
  for (long n = 0; n < 2; n++) {
    sl_alloc_fail_after (n);
    ck_assert_ptr_null (sl_pool_new (3, &e));
    ck_assert_str_eq (e.text, "threads: no memory for a pool of 3");
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  sl_alloc_fail_after (-1);
}
END_TEST

SUITE_MAIN ("pool", every_index_runs_once_on_a_worker_below_n,
            who_is_done_helps, workers_are_threads_deaf_to_interrupts,
            many_runs_in_a_row, sleepers_wake,
            bad_numbers_of_threads_are_refused,
            by_default_every_processor_works, no_memory_is_an_error)
