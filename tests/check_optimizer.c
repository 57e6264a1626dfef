/* check_optimizer.c - updates against reference trajectories and rules. */
#include "base/memory.h"
#include "support/golden.h"
#include "support/optimizer.h"
#include "support/suite.h"
#include "train/update.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 6, STEPS = 50 };

static const struct {
  const char *name, *kind;
  struct {
    const char *name;
    double value;
  } option[4];
  double lr;
} cases[] = {
  { "adam", "adam", { { "beta2", 0.95 } }, 1e-3 },
  { "adamw", "adamw", { { "weight_decay", 0.1 } }, 1e-2 },
  { "sgd_momentum", "sgd", { { "momentum", 0.9 } }, 0.05 },
  { "sgd_nesterov_wd",
    "sgd",
    { { "momentum", 0.9 }, { "nesterov", 1 }, { "weight_decay", 0.01 } },
    0.05 },
};
enum { CASES = sizeof cases / sizeof *cases };

static void *allocate (size_t n, sl_dtype dtype) {
  void *x = sl_alloc (n, sl_dtype_size (dtype));
  ck_assert_ptr_nonnull (x);
  return x;
}

/* One update of n parameters in place. Returns the gradient's 2-norm before
** clipping. */
static double update (const sl_optimizer *o, sl_dtype dtype, size_t n,
                      void *parameters, const void *gradient, void *state,
                      double lr, long step) {
  const size_t size = sl_dtype_size (dtype);
  double squares = 0;
  sl_factors f;
  void *copy = allocate (n, dtype);
  for (size_t i = 0; i < n; i += SL_CHUNK)
    squares += sl_update_pick (dtype)->gather (
        n - i < SL_CHUNK ? n - i : SL_CHUNK, 1, n,
        (const char *)gradient + i * size, 1, (char *)copy + i * size);
  sl_free (copy);
  f = sl_optimizer_factors (o, sqrt (squares), lr, step);
  sl_optimizer_range (o, &f, dtype, n, 0, n, parameters, gradient, state);
  return sqrt (squares);
}

static void follow (int i, sl_dtype dtype) {
  const size_t size = sl_dtype_size (dtype);
  char file[64];
  void *p = allocate (N, dtype), *g = allocate (N * STEPS, dtype);
  void *all = allocate (N * STEPS, dtype);
  sl_optimizer o = optimizer_of (cases[i].kind, NULL);
  void *state;
  golden start, gradients;
  for (int k = 0; k < 4 && cases[i].option[k].name != NULL; k++)
    *sl_optimizer_find (&o, cases[i].option[k].name) = cases[i].option[k].value;
  state = allocate (sl_optimizer_state (&o, N), dtype);
  snprintf (file, sizeof file, "optim/%s/p0.npy", cases[i].name);
  start = golden_load (file);
  golden_fill (&start, dtype, p);
  snprintf (file, sizeof file, "optim/%s/grads.npy", cases[i].name);
  gradients = golden_load (file);
  golden_fill (&gradients, dtype, g);
  for (long s = 0; s < STEPS; s++) {
    update (&o, dtype, N, p, (char *)g + (size_t)s * N * size, state,
            cases[i].lr, s + 1);
    memcpy ((char *)all + (size_t)s * N * size, p, N * size);
  }
  snprintf (file, sizeof file, "optim/%s/params.npy", cases[i].name);
  golden_close_array (all, N * STEPS, dtype, file);
  golden_free (&start);
  golden_free (&gradients);
  sl_free (state);
  sl_free (all);
  sl_free (g);
  sl_free (p);
}

START_TEST (trajectories) {
  for (int i = 0; i < CASES; i++)
    for (int d = SL_F32; d <= SL_F64; d++) follow (i, (sl_dtype)d);
}
END_TEST

/* SGD from 0 with lr 1 leaves minus the clipped gradient. */
START_TEST (clipping) {
  const sl_optimizer o = optimizer_of ("sgd", "clip_norm", 1.0, NULL);
  golden a = golden_load ("optim/clip_norm/a.npy");
  golden b = golden_load ("optim/clip_norm/b.npy");
  const size_t n = a.count + b.count;
  for (int d = SL_F32; d <= SL_F64; d++) {
    const size_t size = sl_dtype_size (d);
    char *p = allocate (n, d), *g = allocate (n, d);
    double norm;
    golden_fill (&a, d, g);
    golden_fill (&b, d, g + a.count * size);
    norm = update (&o, d, n, p, g, NULL, 1, 1);
    golden_close_array (&norm, 1, SL_F64, "optim/clip_norm/norm.npy");
    for (size_t i = 0; i < n; i++)
      if (d == SL_F32)
        ((float *)p)[i] *= -1;
      else
        ((double *)p)[i] *= -1;
    golden_close_array (p, a.count, d, "optim/clip_norm/a_clipped.npy");
    golden_close_array (p + a.count * size, b.count, d,
                        "optim/clip_norm/b_clipped.npy");
    sl_free (p);
    sl_free (g);
  }
  golden_free (&a);
  golden_free (&b);
}
END_TEST

/* A norm below the limit changes nothing, not even the last bit. */
START_TEST (small_gradients_are_not_clipped) {
  const double g[3] = { 0.1, -0.2, 0.3 };
  double p[3] = { 0 };
  const sl_optimizer o = optimizer_of ("sgd", "clip_norm", 5.0, NULL);
  CLOSE (update (&o, SL_F64, 3, p, g, NULL, 1, 1), sqrt (0.14), 1e-15, 0,
         "norm");
  for (int i = 0; i < 3; i++) ck_assert_double_eq (p[i], -g[i]);
}
END_TEST

/* Sizes around the chunks and lanes, against the rule in plain double. */
START_TEST (large_sizes) {
  static const size_t sizes[] = { 1, 15, 16, 17, 4095, 4096, 4097, 20001 };
  const sl_optimizer o =
      optimizer_of ("adamw", "beta1", 0.8, "beta2", 0.9, "eps", 1e-3,
                    "weight_decay", 0.5, "clip_norm", 2.0, NULL);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    const size_t n = sizes[k];
    double *p = allocate (n, SL_F64), *g = allocate (n, SL_F64);
    double *s = allocate (2 * n, SL_F64), squares = 0, scale;
    for (size_t i = 0; i < n; i++) {
      p[i] = sin ((double)i);
      g[i] = cos (3.0 * (double)i);
      squares += g[i] * g[i];
    }
    scale = fmin (1, 2 / (sqrt (squares) + 1e-6));
    CLOSE (update (&o, SL_F64, n, p, g, s, 0.1, 1), sqrt (squares), 0, 1e-14,
           "norm of %zu", n);
    for (size_t i = 0; i < n; i++) {
      double d = scale * cos (3.0 * (double)i);
      CLOSE (p[i],
             sin ((double)i) * (1 - 0.1 * 0.5) - 0.1 * d / (fabs (d) + 1e-3),
             1e-14, 0, "parameter %zu of %zu", i, n);
    }
    sl_free (s);
    sl_free (g);
    sl_free (p);
  }
}
END_TEST

/* Adam and SGD without momentum add the decay to the gradient. */
START_TEST (decay_in_the_gradient) {
  const sl_optimizer o = optimizer_of ("sgd", "weight_decay", 0.25, NULL);
  double p = 2, g = 1;
  ck_assert_uint_eq (sl_optimizer_state (&o, 7), 0);
  update (&o, SL_F64, 1, &p, &g, NULL, 0.5, 1);
  CLOSE (p, 2 - 0.5 * (1 + 0.25 * 2), 1e-15, 0, "sgd with decay");
}
END_TEST

START_TEST (names_and_ranges) {
  sl_optimizer o;
  sl_error e;
  ck_assert_int_eq (sl_optimizer_parse ("adamw", &o, &e), 0);
  ck_assert_str_eq (sl_optimizer_name (o.kind), "adamw");
  ck_assert_double_eq (*sl_optimizer_find (&o, "weight_decay"), 0.01);
  ck_assert_ptr_null (sl_optimizer_find (&o, "momentum"));
  ck_assert_int_eq (sl_optimizer_check (&o, &e), 0);
  *sl_optimizer_find (&o, "beta1") = 1;
  ck_assert_int_eq (sl_optimizer_check (&o, &e), -1);
  ck_assert_str_eq (e.text, "optimizer: beta1 is 1, allowed is 0 <= beta1 < 1");
  *sl_optimizer_find (&o, "beta1") = NAN;
  ck_assert_int_eq (sl_optimizer_check (&o, &e), -1);
  o = optimizer_of ("adam", "eps", 0.0, NULL);
  ck_assert_int_eq (sl_optimizer_check (&o, &e), -1);
  ck_assert_str_eq (e.text, "optimizer: eps is 0, allowed is 0 < eps < inf");
  o = optimizer_of ("sgd", "nesterov", 1.0, NULL);
  ck_assert_int_eq (sl_optimizer_check (&o, &e), -1);
  ck_assert_str_eq (e.text, "optimizer: nesterov needs a momentum above 0");
  ck_assert_int_eq (sl_optimizer_parse ("adamm", &o, &e), -1);
  ck_assert_str_eq (e.text,
                    "optimizer: no kind 'adamm' (did you mean 'adam'?)");
}
END_TEST

SUITE_MAIN ("optimizer", trajectories, clipping,
            small_gradients_are_not_clipped, large_sizes, decay_in_the_gradient,
            names_and_ranges)
