/* check_attention_mask.c - what the attention op must not read: padding, keys
** that a query does not see, tokens that are not there. */
#include "support/attend.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Put x into every number of token j of sequence s. */
static void spoil (const brute *b, double *x, int width, int s, int j,
                   double value) {
  for (int c = 0; c < width; c++)
    x[((ptrdiff_t)s * b->t + j) * width + c] = value;
}

/* What lies in padding changes nothing, be it NaN or infinity. */
START_TEST (padding_is_not_read) {
  static const double junk[] = { NAN, INFINITY, -INFINITY, 1e300 };
  double length[2] = { 9, 0 };
  attend_best_isa ();
  for (int kind = 0; kind < 4 * 2 * 2; kind++) {
    const double value = junk[kind / 4];
    brute x = { .batch = 2,
                .t = 21,
                .heads = 2,
                .kv_heads = 1,
                .d = 8,
                .dv = 8,
                .scale = 1,
                .visibility = { kind & 1, 0 },
                .length = length };
    sl_attention_attr attr;
    op_bench want, got;
    brute_start (&x, 3);
    attr = attend_attr (&x);
    attr.recompute_from = kind >> 1 & 1;
    attend_run (&want, SL_F64, &attr, &x, 1);
    for (int s = 0; s < 2; s++)
      for (int j = (int)length[s]; j < x.t; j++) {
        spoil (&x, x.q, 16, s, j, value);
        spoil (&x, x.k, 8, s, j, value);
        spoil (&x, x.v, 8, s, j, value);
        spoil (&x, x.dout, 16, s, j, value);
      }
    attend_run (&got, SL_F64, &attr, &x, 1);
    attend_same_bits (&want, &got, "padding");
    for (size_t i = 0; i < sl_view_count (&got.out[0]); i++)
      if (i / 16 >= 9)
        CLOSE (op_bench_at (&got, &got.out[0], i), 0, 0, 0,
               "out[%zu] of an empty row", i);
    op_bench_free (&want);
    op_bench_free (&got);
    brute_free (&x);
  }
}
END_TEST

/* Rows first..last of a (1, t, width) view equal those of another, bit by bit.
** */
static void same_rows (const op_bench *b, const sl_view *x, const sl_view *y,
                       int first, int last, const char *what) {
  const size_t bytes =
      (size_t)x->dim[2] * sl_dtype_size (b->dtype); /* of one row */
  for (int i = first; i <= last; i++)
    ck_assert_msg (memcmp ((char *)x->data + (size_t)i * bytes,
                           (char *)y->data + (size_t)i * bytes, bytes) == 0,
                   "%s: row %d differs", what, i);
}

/* A key, value, query or cotangent that is not finite reaches the tokens that
** see it and no other. Window 3: token 20 is seen by 20, 21, 22, whose
** gradients reach 18 to 22; rows, in blocks of 32 that hold all of them. No
** window: it is seen by 20 and later ones, whose gradients reach all tokens
** but through keys and values that only earlier ones see: lanes. */
static void leaks (int kind, int window, double junk) {
  enum { T = 40, J = 20 };
  brute x = { .batch = 1,
              .t = T,
              .heads = 1,
              .kv_heads = 1,
              .d = 8,
              .dv = 8,
              .scale = 1,
              .visibility = { 1, window } };
  const int last = window ? J + window - 1 : T - 1; /* who sees token J */
  sl_attention_attr attr;
  op_bench want, got;
  double *spoiled[4];
  char what[80];
  brute_start (&x, 4);
  spoiled[0] = x.k, spoiled[1] = x.v, spoiled[2] = x.q, spoiled[3] = x.dout;
  attr = attend_attr (&x);
  attr.recompute_from = kind >> 2;
  snprintf (what, sizeof what, "input %d is %g, window %d", kind & 3, junk,
            window);
  attend_run (&want, SL_F64, &attr, &x, 1);
  spoil (&x, spoiled[kind & 3], 8, 0, J, junk);
  attend_run (&got, SL_F64, &attr, &x, 1);
  same_rows (&want, &want.out[0], &got.out[0], 0, J - 1, what);
  same_rows (&want, &want.out[0], &got.out[0], last + 1, T - 1, what);
  for (int i = 0; i < 3; i++) {
    const int first = i == 0 ? J : window ? J - window + 1 : 0;
    same_rows (&want, &want.din[i], &got.din[i], 0, first - 1, what);
    same_rows (&want, &want.din[i], &got.din[i], last + 1, T - 1, what);
  }
  /* a query or cotangent is its own row: keys after it do not meet it */
  for (int i = 1; (kind & 3) > 1 && i < 3; i++)
    same_rows (&want, &want.din[i], &got.din[i], J + 1, T - 1, what);
  if ((kind & 3) == 1) /* and it does reach those */
    ck_assert (!isfinite (op_bench_at (&got, &got.out[0], (size_t)(J * 8))));
  op_bench_free (&want);
  op_bench_free (&got);
  brute_free (&x);
}

START_TEST (nothing_leaks_through_the_mask) {
  attend_best_isa ();
  for (int kind = 0; kind < 4 * 2; kind++) {
    leaks (kind, 3, NAN);
    leaks (kind, 3, INFINITY);
    leaks (kind, 0, NAN);
    leaks (kind, 0, INFINITY);
  }
}
END_TEST

/* A length is a number in a tensor: what is not a whole number of tokens. */
START_TEST (odd_lengths) {
  double length[5] = { NAN, -3, 1e30, 2.7, 4 };
  brute x = { .batch = 5,
              .t = 4,
              .heads = 1,
              .kv_heads = 1,
              .d = 2,
              .dv = 2,
              .scale = 1,
              .length = length };
  static const int valid[5] = { 0, 0, 4, 2, 4 };
  sl_attention_attr attr;
  op_bench b;
  attend_best_isa ();
  brute_start (&x, 2);
  attr = attend_attr (&x);
  attend_run (&b, SL_F64, &attr, &x, 1);
  for (int i = 0; i < 5 * 4; i++)
    ck_assert_int_eq (op_bench_at (&b, &b.out[0], (size_t)(2 * i)) != 0,
                      i % 4 < valid[i / 4]);
  op_bench_free (&b);
  brute_free (&x);
}
END_TEST

/* No token, no sequence: nothing to do, and nothing is touched. */
START_TEST (empty) {
  for (int i = 0; i < 2; i++) {
    brute x = { .batch = i,
                .t = 1 - i,
                .heads = 1,
                .kv_heads = 1,
                .d = 2,
                .dv = 2,
                .scale = 1 };
    sl_attention_attr attr;
    op_bench b;
    attend_best_isa ();
    brute_start (&x, 2);
    attr = attend_attr (&x);
    attend_run (&b, SL_F32, &attr, &x, 1);
    ck_assert_uint_eq (sl_view_count (&b.out[0]), 0);
    op_bench_free (&b);
    brute_free (&x);
  }
}
END_TEST

SUITE_MAIN ("attention_mask", padding_is_not_read,
            nothing_leaks_through_the_mask, odd_lengths, empty)
