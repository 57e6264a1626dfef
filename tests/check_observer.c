/* check_observer.c - what those who watch attention see. */
#include "base/memory.h"
#include "support/attend.h"
#include "support/suite.h"

/* The (sequence, head, query) that an observer should see next, and a copy. */
typedef struct seen {
  const brute *x;
  double *weights;
  long blocks, sample0;
  int next_row, next_head, next_sample;
} seen;

static void watch (void *context, const sl_weight_rows *r) {
  seen *s = context;
  const brute *x = s->x;
  const int n = x->length ? (int)x->length[s->next_sample] : x->t;
  ck_assert_int_eq (r->sample, s->sample0 + s->next_sample);
  ck_assert_int_eq (r->head, s->next_head);
  ck_assert_int_eq (r->kv_head, s->next_head / (x->heads / x->kv_heads));
  ck_assert_int_eq (r->row, s->next_row);
  ck_assert_int_eq (r->t, x->t);
  ck_assert_int_eq (r->length, n);
  ck_assert_int_eq (r->d_value, x->dv);
  for (int i = 0; i < r->rows; i++) {
    int lo, hi;
    sl_visible (&x->visibility, r->row + i, n, &lo, &hi);
    ck_assert_int_eq (r->lo[i], lo);
    ck_assert_int_eq (r->hi[i], hi);
    for (int j = 0; j < x->t; j++) {
      const double w = attend_number (r->weights, r->dtype, i * r->stride + j);
      s->weights[(((ptrdiff_t)s->next_sample * x->heads + r->head) * x->t +
                  r->row + i) *
                     x->t +
                 j] = w;
      if (j < lo || j >= hi) CLOSE (w, 0, 0, 0, "unseen weight");
    }
  }
  for (int j = 0; j < x->t; j++)
    CLOSE (attend_number (r->value, r->dtype, j * r->value_stride + 1),
           (float)x->v[(((ptrdiff_t)s->next_sample * x->t + j) * x->kv_heads +
                        r->kv_head) *
                           x->dv +
                       1],
           0, 0, "value of token %d", j);
  s->blocks++;
  s->next_row += r->rows;
  if (s->next_row == x->t) {
    s->next_row = 0;
    s->next_head++;
  }
  if (s->next_head == x->heads) {
    s->next_head = 0;
    s->next_sample++;
  }
}

START_TEST (observers_see_every_row) {
  double length[2] = { 40, 13 };
  attend_best_isa ();
  for (int recompute = 0; recompute < 2; recompute++) {
    brute x = { .batch = 2,
                .t = 40,
                .heads = 4,
                .kv_heads = 2,
                .d = 4,
                .dv = 3,
                .scale = 1,
                .visibility = { 1, 7 },
                .length = length };
    sl_attention_attr attr;
    op_bench b;
    seen s = { .x = &x, .sample0 = 6 };
    sl_observer observer = { watch, &s };
    const ptrdiff_t q[3] = { 2, 40, 16 }, k[3] = { 2, 40, 8 };
    const ptrdiff_t v[3] = { 2, 40, 6 }, n[1] = { 2 };
    brute_start (&x, 8);
    brute_run (&x);
    s.weights = sl_alloc (2 * 4 * 40 * 40, sizeof (double));
    attr = attend_attr (&x);
    attr.recompute_from = recompute;
    op_bench_start (&b, SL_F32, "attention", &attr);
    op_bench_input (&b, 3, q, x.q);
    op_bench_input (&b, 3, k, x.k);
    op_bench_input (&b, 3, v, x.v);
    op_bench_input (&b, 1, n, length);
    b.observer = &observer;
    b.draw.first_sample = 6;
    op_bench_forward (&b);
    ck_assert_int_eq (s.next_sample, 2);
    ck_assert_int_ge (s.blocks, 2 * 4 * 2);
    for (int i = 0; i < 2 * 4 * 40 * 40; i++)
      CLOSE (s.weights[i], x.weights[i], 2e-6, 1e-5, "weight %d", i);
    op_bench_free (&b);
    sl_free (s.weights);
    brute_free (&x);
  }
}
END_TEST

SUITE_MAIN ("observer", observers_see_every_row)
