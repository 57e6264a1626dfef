/* determinism.c - the checks "repeat" and "threads": equal arguments give equal
** bits. */
#include "base/memory.h"
#include "check/check_case.h"
#include <pthread.h>
#include <string.h>

enum { MOST = 48, ORDERS = 4, THREADS = 8, ROUNDS = 12, MOST_ROUNDS = 1000 };

/* Test inputs, and the results of their first call in each precision. */
typedef struct set {
  int n;
  sl_test_inputs *inputs[MOST];
  double *want[2][MOST];
  size_t size[MOST];
} set;

static void gather (sl_check_case *c, sl_test_inputs *in, void *context) {
  set *all = context;
  (void)c;
  if (all->n == MOST) return;
  /* Different numbers, so that one call's results cannot pass for another's. */
  sl_test_inputs_draw (in, 200 + (uint32_t)all->n, 1);
  all->inputs[all->n++] = in;
}

/* Fill all->want. */
static void first_results (sl_check_case *c, set *all) {
  for (int i = 0; i < all->n; i++)
    for (int d = 0; d < 2; d++) {
      sl_harness *h = sl_case_harness (c, (sl_dtype)d, all->inputs[i]);
      sl_case_backward (c, h);
      all->want[d][i] = sl_case_results (c, h, &all->size[i]);
      h->calls->close (h);
    }
}

/* Call number i again: 0, or 1 when the bits differ. */
static int differs (sl_check_case *c, const set *all, sl_dtype dtype, int i) {
  sl_harness *h = sl_harness_open (dtype, all->inputs[i]);
  double *got;
  size_t n;
  int result;
  if (!h) return 1;
  h->calls->forward (h);
  h->calls->backward (h);
  got = sl_case_results (c, h, &n);
  result = memcmp (got, all->want[dtype][i], n * sizeof *got) != 0;
  sl_free (got);
  h->calls->close (h);
  return result;
}

/* A permutation of 0..n-1 by the seed. */
static void shuffle (int *order, int n, uint64_t seed, uint32_t stream) {
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    const int j = (int)(sl_test_uniform (seed, stream, (uint32_t)i) * (i + 1));
    const int swap = order[i];
    order[i] = order[j];
    order[j] = swap;
  }
}

void sl_check_repeat (sl_check_case *c) {
  set all = { 0 };
  int calls = 0;
  sl_case_for_each (c, SL_ALL_OPTIONS, gather, &all);
  if (sl_case_failed (c)) return;
  first_results (c, &all);
  for (uint32_t k = 0; k < ORDERS; k++) {
    int order[MOST];
    shuffle (order, all.n, c->seed, 900 + k);
    for (int i = 0; i < all.n; i++)
      for (int d = 0; d < 2; d++) {
        /* The first pass is in order, the others are shuffled. */
        const int at = k == 0 ? i : order[i];
        calls += 2;
        if (!differs (c, &all, (sl_dtype)d, at)) continue;
        sl_case_figure (c, "other bits on repetition %u", k + 1);
        sl_case_fail_call (
            c, all.inputs[at],
            "%s gives other bits %s: it keeps state between calls",
            d == SL_F64 ? "f64" : "f32",
            k == 0 ? "the second time" : "in another order");
        return;
      }
  }
  sl_case_pass (c, "same bits in %d calls in %d orders", calls, ORDERS);
}

typedef struct worker {
  sl_check_case *check;
  const set *all;
  pthread_t thread;
  int number, rounds, wrong, dtype; /* wrong: index of test inputs, or -1 */
} worker;

static void *work (void *context) {
  worker *w = context;
  int order[MOST];
  shuffle (order, w->all->n, w->check->seed, 950 + (uint32_t)w->number);
  for (int k = 0; k < w->rounds && w->wrong < 0; k++)
    for (int i = 0; i < w->all->n && w->wrong < 0; i++)
      for (int d = 0; d < 2; d++)
        if (differs (w->check, w->all, (sl_dtype)d, order[i])) {
          w->wrong = order[i];
          w->dtype = d;
          break;
        }
  return NULL;
}

void sl_check_threads (sl_check_case *c) {
  set all = { 0 };
  worker w[THREADS];
  int started = 0, rounds;
  sl_case_for_each (c, SL_ALL_OPTIONS, gather, &all);
  if (sl_case_failed (c)) return;
  first_results (c, &all);
  /* More rounds for few inputs: else a thread ends before the next one
  ** starts. */
  rounds = ROUNDS * MOST / all.n;
  if (rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
  strcpy (c->doing, "kernels on several threads");
  for (int i = 0; i < THREADS; i++) {
    w[i] = (worker){
      .check = c, .all = &all, .number = i, .rounds = rounds, .wrong = -1
    };
    if (pthread_create (&w[i].thread, NULL, work, &w[i])) break;
    started++;
  }
  for (int i = 0; i < started; i++) pthread_join (w[i].thread, NULL);
  if (started < 2) {
    sl_case_fail (c, "no threads could be started");
    return;
  }
  for (int i = 0; i < started; i++)
    if (w[i].wrong >= 0) {
      sl_case_figure (c, "other bits on a thread of %d", started);
      sl_case_fail_call (c, all.inputs[w[i].wrong],
                         "%s gives other bits while other threads call it: "
                         "threads share memory of the plugin",
                         w[i].dtype == SL_F64 ? "f64" : "f32");
      return;
    }
  sl_case_pass (c, "same bits on %d threads, %d calls each", started,
                rounds * all.n * 4);
}
