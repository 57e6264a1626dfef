/* check_attention_groups.c - blocks of queries that share tiles of keys: equal
** bits in output, gradients and observed weights, however many there are. */
#include "attention/attention.h"
#include "base/memory.h"
#include "support/attend.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { T = 300, HEADS = 2, WIDTH = 16, PREFIX = 5 };

/* Several tiles of keys, a last block and a last group that are not full, and
** where 'bad' is not 0 a query that is not finite: its block adds singly. */
typedef struct group_case {
  int virtual_keys, causal, alibi, kv_heads, recompute, bad;
  double length;
} group_case;

typedef struct seen {
  int next; /* row of the head that has to come */
  double *weights;
} seen;

static void keep (void *context, const sl_weight_rows *r) {
  seen *s = context;
  const int keys = T + PREFIX;
  if (r->row == 0) s->next = 0;
  ck_assert_msg (r->row == s->next, "row %d; expected %d", r->row, s->next);
  s->next += r->rows;
  for (int i = 0; i < r->rows; i++)
    for (int j = 0; j < r->virtual_keys + r->t; j++)
      s->weights[(r->head * T + r->row + i) * keys + j] =
          attend_number (r->weights, r->dtype, i * r->stride + j);
}

/* x has T + PREFIX tokens: queries and gradients are the first T of them. */
static void run (op_bench *b, sl_dtype dtype, const group_case *c, int block,
                 const brute *x, sl_attention_attr *attr, seen *s) {
  const ptrdiff_t q[3] = { 1, T, (ptrdiff_t)HEADS * WIDTH };
  const ptrdiff_t kv[3] = { 1, T + c->virtual_keys,
                            (ptrdiff_t)c->kv_heads * WIDTH };
  const ptrdiff_t one[1] = { 1 };
  sl_observer observer = { keep, s };
  attr->block = block;
  op_bench_start (b, dtype, "attention", attr);
  op_bench_input (b, 3, q, x->q);
  op_bench_input (b, 3, kv, x->k);
  op_bench_input (b, 3, kv, x->v);
  op_bench_input (b, 1, one, &c->length);
  b->observer = &observer;
  op_bench_forward (b);
  b->observer = NULL;
  ck_assert_int_eq (s->next, T);
  op_bench_backward (b, x->dout);
}

START_TEST (groups_change_no_bit) {
  static const group_case cases[] = {
    { 0, 1, 0, 2, 1, 0, T },          { PREFIX, 1, 1, 1, 1, 0, 299 },
    { 0, 1, 1, 2, 0, 0, 290 },        { PREFIX, 0, 1, 1, 1, 0, 275 },
    { 0, 0, 0, 2, 0, 0, T },          { 0, 1, 0, 1, 1, 199, T },
    { PREFIX, 1, 0, 2, 0, 140, 150 }, { 0, 1, 0, 2, 1, 0, 0 }
  };
  enum { SEEN = HEADS * T * (T + PREFIX) };
  double *weights = sl_alloc (2 * (size_t)SEEN, sizeof *weights);
  ck_assert (weights != NULL);
  attend_best_isa ();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (int d = SL_F32; d <= SL_F64; d++) {
      const group_case *c = &cases[k];
      brute x = { .batch = 1,
                  .t = T + PREFIX,
                  .heads = HEADS,
                  .kv_heads = c->kv_heads,
                  .d = WIDTH,
                  .dv = WIDTH,
                  .scale = 0.5,
                  .visibility = { c->causal, 0 } };
      sl_attention_attr attr = attend_attr (&x);
      op_bench alone;
      seen one = { 0, weights };
      brute_start (&x, 17);
      if (c->bad) x.q[c->bad * HEADS * WIDTH] = NAN;
      attr.alibi = c->alibi;
      attr.virtual_keys = c->virtual_keys;
      attr.has_length = 1;
      attr.recompute_from = c->recompute ? 1 : 1000;
      run (&alone, (sl_dtype)d, c, 16, &x, &attr, &one);
      for (int block = 32; block <= 80; block += 16) {
        op_bench grouped;
        seen all = { 0, weights + SEEN };
        char what[80];
        snprintf (what, sizeof what, "case %zu, %s, block %d", k,
                  sl_dtype_name ((sl_dtype)d), block);
        run (&grouped, (sl_dtype)d, c, block, &x, &attr, &all);
        ck_assert_msg (grouped.n_scratch >
                           alone.n_scratch + (size_t)(T * block),
                       "%s: scratch %zu, of one block %zu: no group", what,
                       grouped.n_scratch, alone.n_scratch);
        attend_same_bits (&alone, &grouped, what);
        ck_assert_msg (
            memcmp (one.weights, all.weights, SEEN * sizeof *weights) == 0,
            "%s: observed weights", what);
        op_bench_free (&grouped);
      }
      op_bench_free (&alone);
      brute_free (&x);
    }
  sl_free (weights);
}
END_TEST

SUITE_MAIN ("attention_groups", groups_change_no_bit)
