/* check_attention_shapes.c - what the attention op refuses, and the memory that
** it asks for. */
#include "support/attend.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

static const char *refusal (const sl_attention_attr *attr, ptrdiff_t tokens,
                            ptrdiff_t widths[3]) {
  static double zero[64];
  static char text[sizeof (sl_error)];
  op_bench b;
  op_bench_start (&b, SL_F32, "attention", attr);
  for (int i = 0; i < 3; i++) {
    const ptrdiff_t dim[3] = { 1, i == 1 ? tokens : 2, widths[i] };
    op_bench_input (&b, 3, dim, zero);
  }
  strcpy (text, op_bench_refusal (&b));
  op_bench_free (&b);
  return text;
}

START_TEST (refusals) {
  const sl_attention_attr good = { .mechanism =
                                       attend_mechanism ("plugins/relu.so"),
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .d_head = 2,
                                   .scale = 1 };
  sl_attention_attr a = good;
  ptrdiff_t widths[3] = { 8, 4, 6 };
  a.kv_heads = 3;
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: 4 heads on 3 key/value heads; expected a "
                    "multiple of 1 or more");
  a = good;
  a.d_head = 0;
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: d_head is 0; expected 1 or more");
  a = good;
  a.scale = NAN;
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: scale is nan; expected a finite number");
  a = good;
  a.recompute_from = -1;
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: recompute_from is -1; expected 0 (default) or "
                    "more");
  a = good;
  a.block = -2;
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: block is -2; expected 0 (default) or more");
  a = good;
  a.mechanism = NULL;
  ck_assert_str_eq (refusal (&a, 2, widths), "attention: no mechanism given");
  ck_assert_str_eq (refusal (&good, 3, widths),
                    "attention: q (1, 2, 8), k (1, 3, 4), v (1, 2, 6); "
                    "expected (b, t, width) with equal b and t");
  widths[1] = 5;
  ck_assert_str_eq (refusal (&good, 2, widths),
                    "attention: q (1, 2, 8), k (1, 2, 5); 4 heads and 2 "
                    "key/value heads of width 2 expect widths 8 and 4");
  widths[1] = 4;
  widths[2] = 7;
  ck_assert_str_eq (refusal (&good, 2, widths),
                    "attention: v (1, 2, 7); its width must be a multiple of "
                    "2, the number of key/value heads");
  widths[2] = 6;
  a = good;
  a.mechanism = attend_mechanism ("tests/good/affine.so");
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: plugin 'affine' has 4 parameters a head; give "
                    "them as param");
  a.mechanism = attend_mechanism ("tests/good/gate_shape.so");
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: plugin 'gate_shape' is a gate; expected a row");
  a.mechanism = attend_mechanism ("tests/good/mixer_shape.so");
  ck_assert_str_eq (
      refusal (&a, 2, widths),
      "attention: plugin 'mixer_shape' is a mixer; expected a row");
}
END_TEST

/* Bytes of saved and scratch for one sequence of t tokens, 8 heads of 64. */
static double workspace (int t) {
  sl_attention_attr attr = { .mechanism =
                                 attend_mechanism ("plugins/softmax.so"),
                             .heads = 8,
                             .kv_heads = 8,
                             .d_head = 64,
                             .scale = 1,
                             .visibility = { 1, 0 } };
  const sl_view view = { .ndim = 3,
                         .dim = { 1, t, 512 },
                         .stride = { (ptrdiff_t)t * 512, 512, 1 } };
  const sl_view in[3] = { view, view, view };
  sl_shape_query q = { .attr = &attr, .n_in = 3, .in = in };
  sl_error e = { "" };
  const sl_op *op = sl_op_find (SL_F32, "attention", &e);
  ck_assert_msg (op != NULL && op->shapes (&q, &e) == 0, "%s", e.text);
  return 4.0 * (double)(q.saved + q.scratch);
}

/* Nothing is t x t: memory grows as the length, also where blocks form groups. */
START_TEST (long_sequences_need_little) {
  double at_8192;
  attend_best_isa ();
  for (int t = 1024; t <= 65536; t *= 2)
    ck_assert_msg (workspace (t) < 4096.0 * t, "%g bytes for %d tokens",
                   workspace (t), t);
  at_8192 = workspace (8192);
  for (int t = 16384; t <= 65536; t *= 2)
    CLOSE (workspace (t), at_8192 * t / 8192, 0, 0.05, "bytes for %d tokens",
           t);
}
END_TEST

SUITE_MAIN ("attention_infer", refusals, long_sequences_need_little)
