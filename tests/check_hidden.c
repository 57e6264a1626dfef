/* check_hidden.c - the residual stream without memory, and odd numbers; what it
** measures is in lua/test_hidden.lua. */
#include "base/memory_test.h"
#include "sinks/hidden.h"
#include "support/suite.h"
#include <math.h>

enum { L = 2, S = 3, T = 4, D = 3 };

static sl_tensor *states (sl_dtype dtype, int layer, double odd) {
  const ptrdiff_t dim[3] = { S, T, D };
  double x[S * T * D];
  sl_error e;
  sl_tensor *t = sl_tensor_new (dtype, 3, dim, &e);
  ck_assert_msg (t != NULL, "%s", e.text);
  for (int i = 0; i < S * T * D; i++) x[i] = sin (3 * i + layer);
  x[5] = odd;
  ck_assert_int_eq (sl_tensor_from_doubles (t, S * T * D, x, &e), 0);
  return t;
}

static const sl_hidden_spec spec = { .layers = L,
                                     .tokens = T,
                                     .samples = S,
                                     .massive = 1,
                                     .ratio = 1,
                                     .similar = 0.5,
                                     .noise = 0.1,
                                     .bos = 0.9 };

static sl_hidden_result *measure (sl_tensor *const *x, sl_error *e) {
  sl_hidden *h = sl_hidden_new (&spec, e);
  sl_hidden_result *r = NULL;
  int good = h != NULL;
  for (int l = 0; good && l <= L; l++)
    good = sl_hidden_add (h, l, 0, x[l], e) == 0;
  if (good) r = sl_hidden_finish (h, e);
  sl_hidden_free (h);
  return r;
}

START_TEST (no_memory) {
  sl_tensor *x[L + 1];
  sl_hidden_result *r = NULL;
  size_t live;
  long n = 0;
  for (int l = 0; l <= L; l++) x[l] = states (SL_F32, l, 0.5);
  live = sl_alloc_live ();
  for (; n < 100; n++) {
    sl_error e = { "" };
    sl_alloc_fail_after (n);
    r = measure (x, &e);
    sl_alloc_fail_after (-1);
    if (r != NULL) break;
    ck_assert_str_eq (e.text, "hidden: no memory for the measurements");
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  ck_assert_int_gt (n, 10);
  ck_assert_ptr_nonnull (r);
  sl_hidden_result_free (r);
  ck_assert_uint_eq (sl_alloc_live (), live);
  for (int l = 0; l <= L; l++) sl_tensor_release (x[l]);
}
END_TEST

/* NaN is not lost, infinity breaks nothing. */
START_TEST (odd_numbers) {
  const double odd[] = { NAN, INFINITY };
  for (int i = 0; i < 2; i++)
    for (int wide = 0; wide < 2; wide++) {
      sl_error e = { "" };
      sl_tensor *x[L + 1];
      sl_hidden_result *r;
      for (int l = 0; l <= L; l++)
        x[l] = states (wide ? SL_F64 : SL_F32, l, l == 1 ? odd[i] : 0.5);
      r = measure (x, &e);
      ck_assert_msg (r != NULL, "%s", e.text);
      ck_assert_msg (!isfinite (r->state[1].max_norm), "%g",
                     r->state[1].max_norm);
      ck_assert_msg (!isfinite (r->state[1].kurtosis), "%g",
                     r->state[1].kurtosis);
      ck_assert_msg (isfinite (r->state[2].kurtosis), "%g",
                     r->state[2].kurtosis);
      sl_hidden_result_free (r);
      for (int l = 0; l <= L; l++) sl_tensor_release (x[l]);
    }
}
END_TEST

START_TEST (refusals) {
  sl_error e = { "" };
  sl_tensor *x = states (SL_F32, 0, 1);
  sl_hidden *h = sl_hidden_new (&spec, &e);
  ck_assert_msg (h != NULL, "%s", e.text);
  ck_assert_int_eq (sl_hidden_add (h, 3, 0, x, &e), -1);
  ck_assert_str_eq (e.text,
                    "hidden: layer 3; there are 0 (before the first) to 2");
  ck_assert_int_eq (sl_hidden_add (h, 0, 1, x, &e), -1);
  ck_assert_str_eq (e.text, "hidden: samples 2 to 4; there are 3");
  ck_assert_int_eq (sl_hidden_add (h, 0, 0, x, &e), 0);
  ck_assert_int_eq (sl_hidden_add (h, 0, 0, x, &e), -1);
  ck_assert_str_eq (e.text, "hidden: layer 0 of sample 1 was given before");
  ck_assert_ptr_null (sl_hidden_finish (h, &e));
  ck_assert_str_eq (e.text, "hidden: layer 1 of sample 1 has not been given");
  sl_hidden_free (h);
  sl_tensor_release (x);
}
END_TEST

SUITE_MAIN ("hidden", no_memory, odd_numbers, refusals)
