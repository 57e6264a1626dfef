/* check_layer_edges.c - layer operations where rounding, infinities, NaN, odd
** views and wrong shapes decide; every variant, both precisions. */
#include "ops/ops.h"
#include "support/eager.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

static const sl_norm_attr layer_eps = { 1e-5 };
static const sl_gelu_attr exact = { 0 }, approximate = { 1 };
#define INF ((double)INFINITY)
#define NONE ((double)NAN)

static const struct {
  const char *op, *what;
  double x[4], want[4];
} rows[] = {
  { "softmax", "no score at all", { -INF, -INF, -INF, -INF }, { 0, 0, 0, 0 } },
  { "softmax", "two scores", { -INF, 2, -INF, 2 }, { 0, 0.5, 0, 0.5 } },
  { "softmax",
    "large",
    { 1e4, 1e4, -1e4, 1e4 },
    { 1. / 3, 1. / 3, 0, 1. / 3 } },
  { "softmax",
    "large and negative",
    { -1e4, -1e4, -1e4, -1e4 },
    { 0.25, 0.25, 0.25, 0.25 } },
  { "softmax", "NaN", { 0, NONE, 0, 0 }, { NONE, NONE, NONE, NONE } },
  { "softmax",
    "NaN without a score",
    { -INF, NONE, -INF, -INF },
    { NONE, NONE, NONE, NONE } },
  { "log_softmax",
    "no score at all",
    { -INF, -INF, -INF, -INF },
    { -INF, -INF, -INF, -INF } },
  { "log_softmax",
    "two scores",
    { -INF, 2, -INF, 2 },
    { -INF, -0.69314718055994531, -INF, -0.69314718055994531 } },
  { "log_softmax", "far apart", { 1e4, 0, 0, 0 }, { 0, -1e4, -1e4, -1e4 } },
  { "log_softmax", "NaN", { 0, NONE, 0, 0 }, { NONE, NONE, NONE, NONE } },
};

START_TEST (rows_at_their_edges) {
  static const sl_axis_attr last = { -1 }, first = { 0 };
  eager_start ();
  ALL_VARIANTS for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    double got[4];
    values (d, rows[k].op, &last, 1, &(given){ 1, { 4 }, rows[k].x }, 0, got);
    for (int j = 0; j < 4; j++)
      near_value (got[j], rows[k].want[j], 4 * unit (d), rows[k].what, j);
    values (d, rows[k].op, &first, 1, &(given){ 2, { 4, 1 }, rows[k].x }, 0,
            got);
    for (int j = 0; j < 4; j++)
      near_value (got[j], rows[k].want[j], 4 * unit (d), rows[k].what, j);
  }
  eager_end ();
}
END_TEST

/* Axes without elements: nothing is read, nothing is written. */
START_TEST (empty_axes) {
  static const sl_axis_attr last = { -1 };
  static const char *const names[] = { "softmax", "log_softmax" };
  eager_start ();
  ALL_VARIANTS for (int k = 0; k < 2; k++) for (int turn = 0; turn < 2;
                                                turn++) {
    sl_tensor *x =
        tensor (d, 2, (const ptrdiff_t[]){ 3 * turn, 3 - 3 * turn }, NULL);
    sl_program *p = sl_program_begin (&context, &error);
    sl_tensor *y = call (names[k], &last, 1, &x);
    sl_tensor *loss = call ("sum", &(sl_reduce_attr){ 0 }, 1, &y);
    double value;
    sl_program_end (&context, p);
    ck_assert_int_eq (y->dim[0], 3 * turn);
    ck_assert_int_eq (y->dim[1], 3 - 3 * turn);
    sl_tensor_to_doubles (loss, &value);
    ck_assert_msg (value == 0, "%g", value);
    gradient (p, loss, x, NULL);
    sl_program_free (p);
    sl_tensor_release (loss);
    sl_tensor_release (y);
    sl_tensor_release (x);
  }
  eager_end ();
}
END_TEST

/* A long row against the definition in long double. */
START_TEST (long_rows) {
  enum { N = 1003 };
  static const sl_axis_attr last = { -1 };
  eager_start ();
  ALL_VARIANTS {
    double x[N], weight[N], logs[N];
    long double sum = 0;
    for (int j = 0; j < N; j++) x[j] = (double)((j * 7919) % 1000) / 64 - 8;
    for (int j = 0; j < N; j++) sum += expl (x[j]);
    values (d, "softmax", &last, 1, &(given){ 1, { N }, x }, 0, weight);
    values (d, "log_softmax", &last, 1, &(given){ 1, { N }, x }, 0, logs);
    for (int j = 0; j < N; j++) {
      near_value (weight[j], (double)(expl (x[j]) / sum), 40 * unit (d),
                  "softmax", j);
      near_value (logs[j], (double)(x[j] - logl (sum)), 40 * unit (d),
                  "log_softmax", j);
    }
  }
  eager_end ();
}
END_TEST

/* Rows whose mean is large beside their spread: f32 keeps the spread. */
START_TEST (norm_of_a_shifted_row) {
  enum { N = 96 };
  eager_start ();
  ALL_VARIANTS {
    double x[N], got[N], mean = 0, square = 0;
    for (int j = 0; j < N; j++) x[j] = 40000 + (double)((j * 37) % 64) / 128;
    for (int j = 0; j < N; j++) mean += x[j] / N;
    for (int j = 0; j < N; j++) square += (x[j] - mean) * (x[j] - mean) / N;
    values (d, "layer_norm", &layer_eps, 1, &(given){ 1, { N }, x }, 0, got);
    for (int j = 0; j < N; j++)
      CLOSE (got[j], (x[j] - mean) / sqrt (square + 1e-5),
             d == SL_F32 ? 2e-6 : 1e-9, 0, "layer_norm %d", j);
  }
  eager_end ();
}
END_TEST

/* gelu and silu over all their range: the tails keep their precision. */
START_TEST (activations_in_their_tails) {
  enum { N = 2001 };
  eager_start ();
  ALL_VARIANTS {
    double x[N], erf_form[N], tanh_form[N], silu[N];
    for (int j = 0; j < N; j++) x[j] = (double)(float)((j - 1000) * 0.0125);
    values (d, "gelu", &exact, 1, &(given){ 1, { N }, x }, 0, erf_form);
    values (d, "gelu", &approximate, 1, &(given){ 1, { N }, x }, 0, tanh_form);
    values (d, "silu", NULL, 1, &(given){ 1, { N }, x }, 0, silu);
    for (int j = 0; j < N; j++) {
      const long double y = x[j], root = sqrtl (2 / acosl (-1));
      const long double u = 2 * root * (y + 0.044715L * y * y * y);
      CLOSE (erf_form[j], (double)(y * erfcl (-y / sqrtl (2)) / 2), least (d),
             24 * unit (d), "gelu erf of %g", x[j]);
      /* the rounding of u is magnified by u */
      CLOSE (tanh_form[j], (double)(y / (1 + expl (-u))), least (d),
             (double)(6 + 4 * fabsl (u)) * unit (d), "gelu tanh of %g", x[j]);
      CLOSE (silu[j], (double)(y / (1 + expl (-y))), least (d), 6 * unit (d),
             "silu of %g", x[j]);
    }
  }
  eager_end ();
}
END_TEST

START_TEST (activations_at_their_ends) {
  static const double x[] = { 1e30, -1e30, NONE, 0, INF };
  static const double want[] = { 1e30, 0, NONE, 0, INF };
  static const struct {
    const char *op;
    const void *attr;
  } all[] = { { "gelu", &exact }, { "gelu", &approximate }, { "silu", NULL } };
  eager_start ();
  ALL_VARIANTS for (int k = 0; k < 3; k++) {
    double got[5];
    values (d, all[k].op, all[k].attr, 1, &(given){ 1, { 5 }, x }, 0, got);
    for (int j = 0; j < 5; j++)
      near_value (got[j], want[j], 2 * unit (d), all[k].op, j);
    /* and their slopes there: 1, 0, NaN, 1/2 */
    sl_tensor *t = tensor (d, 1, (const ptrdiff_t[]){ 4 }, x);
    const sl_reduce_attr sum = { 0 };
    sl_program *p = sl_program_begin (&context, &error);
    sl_tensor *y = call (all[k].op, all[k].attr, 1, &t);
    sl_tensor *loss = call ("sum", &sum, 1, &y);
    sl_program_end (&context, p);
    gradient (p, loss, t, got);
    for (int j = 0; j < 4; j++)
      near_value (got[j], (const double[]){ 1, 0, NONE, 0.5 }[j], 2 * unit (d),
                  "slope", j);
    sl_program_free (p);
    sl_tensor_release (y);
    sl_tensor_release (loss);
    sl_tensor_release (t);
  }
  eager_end ();
}
END_TEST

/* Targets of two rows of three classes -> loss, loss per target, count. */
static const struct {
  double target[2], loss, token[2], count;
} labels[] = {
  { { 0, 1 },
    0.5 * (1.0986122886681098 + 0.5514447139320511),
    { 1.0986122886681098, 0.5514447139320511 },
    2 },
  { { -100, 1 }, 0.5514447139320511, { 0, 0.5514447139320511 }, 1 },
  { { -100, -100 }, 0, { 0, 0 }, 0 },
  { { 0, 3 }, NONE, { 1.0986122886681098, NONE }, 2 },
  { { 0, -1 }, NONE, { 1.0986122886681098, NONE }, 2 },
  { { 0, 0.5 }, NONE, { 1.0986122886681098, NONE }, 2 },
  { { -100, NONE }, NONE, { 0, NONE }, 1 },
};

START_TEST (targets_at_their_edges) {
  static const double z[] = { 1000, 1000, 1000, 0, 1, 0 };
  static const sl_cross_entropy_attr attr = { -100 };
  eager_start ();
  ALL_VARIANTS for (size_t k = 0; k < sizeof labels / sizeof *labels; k++) {
    const given in[] = { { 2, { 2, 3 }, z }, { 1, { 2 }, labels[k].target } };
    double loss, token[2], count, slope[6];
    values (d, "cross_entropy", &attr, 2, in, 0, &loss);
    values (d, "cross_entropy", &attr, 2, in, 1, token);
    values (d, "cross_entropy", &attr, 2, in, 2, &count);
    near_value (loss, labels[k].loss, 4 * unit (d), "loss", (int)k);
    for (int j = 0; j < 2; j++)
      near_value (token[j], labels[k].token[j], 4 * unit (d), "token", j);
    near_value (count, labels[k].count, 0, "count", (int)k);
    /* the gradient: 0 where ignored, NaN where wrong, else p - 1 / count */
    sl_tensor *t[2], *out[SL_MAX_OUT];
    t[0] = tensor (d, 2, in[0].dim, z);
    t[1] = tensor (d, 1, in[1].dim, labels[k].target);
    sl_program *p = sl_program_begin (&context, &error);
    const sl_op *op = sl_op_find (d, "cross_entropy", &error);
    OK (sl_apply (&context, op, &attr, 2, t, out, &error) == 0);
    sl_program_end (&context, p);
    gradient (p, out[0], t[0], slope);
    for (int j = 0; j < 6; j++) {
      const double mine = labels[k].target[j / 3], e = exp (1);
      const double share = j < 3 ? 1. / 3 : (j == 4 ? e : 1) / (2 + e);
      const double want = mine == -100 ? 0
                          : isnan (labels[k].token[j / 3])
                              ? NONE
                              : (share - (mine == j % 3)) / count;
      near_value (slope[j], want, 8 * unit (d), "gradient", j);
    }
    sl_program_free (p);
    for (int j = 0; j < 2; j++) sl_tensor_release (t[j]);
    for (int j = 0; j < 3; j++) sl_tensor_release (out[j]);
  }
  eager_end ();
}
END_TEST

START_TEST (errors_between_tensors) {
  enum { N = 700 };
  eager_start ();
  ALL_VARIANTS {
    double a[N], b[N], total = 0, got;
    const given in[] = { { 2, { 7, 100 }, a }, { 2, { 7, 100 }, b } };
    for (int j = 0; j < N; j++) {
      a[j] = (double)(j % 32) / 8;
      b[j] = (double)(j % 27) / 4;
      total += (a[j] - b[j]) * (a[j] - b[j]) / N;
    }
    b[513] = a[513] + 11.5;
    total = 0;
    for (int j = 0; j < N; j++) total += (a[j] - b[j]) * (a[j] - b[j]) / N;
    values (d, "mse", NULL, 2, in, 0, &got);
    near_value (got, total, 4 * unit (d), "mse", 0);
    values (d, "max_abs_error", NULL, 2, in, 0, &got);
    near_value (got, 11.5, 0, "max_abs_error", 0);
    /* NaN must not hide behind a larger number, in any place */
    for (int at = 0; at < N; at += 37) {
      const double before = a[at];
      a[at] = NONE;
      values (d, "max_abs_error", NULL, 2, in, 0, &got);
      near_value (got, NONE, 0, "max_abs_error with NaN", at);
      values (d, "mse", NULL, 2, in, 0, &got);
      near_value (got, NONE, 0, "mse with NaN", at);
      a[at] = -INF;
      values (d, "max_abs_error", NULL, 2, in, 0, &got);
      near_value (got, INF, 0, "max_abs_error with -inf", at);
      a[at] = before;
    }
  }
  eager_end ();
}
END_TEST

/* matmul and linear against plain loops, from views of every kind. */
START_TEST (products_of_views) {
  enum { B = 3, M = 5, K = 7, N = 11 };
  double a[B * M * K], b[K * N], c[N];
  eager_start ();
  for (int j = 0; j < B * M * K; j++) a[j] = (double)((j * 31) % 64) / 32 - 1;
  for (int j = 0; j < K * N; j++) b[j] = (double)((j * 17) % 64) / 32 - 1;
  for (int j = 0; j < N; j++) c[j] = j;
  ALL_VARIANTS for (int turn = 0; turn < 8; turn++) {
    /* bit 0: a's last axes swapped; 1: b turned; 2: a's batch axis moved */
    const ptrdiff_t dims[] = { B, turn & 1 ? K : M, turn & 1 ? M : K };
    const ptrdiff_t db[] = { turn & 2 ? N : K, turn & 2 ? K : N };
    const ptrdiff_t row_b = turn & 2 ? 1 : N, col_b = turn & 2 ? K : 1;
    sl_tensor *ta = tensor (d, 3, dims, a), *tb = tensor (d, 2, db, b);
    sl_tensor *tc = tensor (d, 1, (const ptrdiff_t[]){ N }, c), *next;
    if (turn & 1) {
      next = sl_tensor_transpose (ta, 1, 2, &error);
      sl_tensor_release (ta);
      ta = next;
    }
    if (turn & 4) {
      next = sl_tensor_transpose (ta, 0, 1, &error); /* (M, B, K) */
      sl_tensor_release (ta);
      ta = next;
    }
    sl_tensor *tw = sl_tensor_transpose (tb, 0, 1, &error); /* (N, K) */
    if (turn & 2) {
      next = tb;
      tb = tw; /* (K, N) */
      tw = next;
    }
    sl_tensor *y = call ("matmul", NULL, 2, (sl_tensor *[]){ ta, tb });
    sl_tensor *z = call ("linear", NULL, 3, (sl_tensor *[]){ ta, tw, tc });
    const sl_view vy = sl_tensor_view (y), vz = sl_tensor_view (z);
    for (int s = 0; s < B; s++)
      for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
          double want = 0;
          const int at = turn & 4 ? m * B + s : s * M + m;
          for (int k = 0; k < K; k++)
            want += a[s * M * K + (turn & 1 ? k * M + m : m * K + k)] *
                    b[k * row_b + n * col_b];
          CLOSE (sl_view_get (&vy, d, (size_t)(at * N + n)), want,
                 16 * unit (d), 0, "matmul, turn %d, (%d, %d, %d)", turn, s, m,
                 n);
          CLOSE (sl_view_get (&vz, d, (size_t)(at * N + n)), want + n,
                 64 * unit (d), 0, "linear, turn %d, (%d, %d, %d)", turn, s, m,
                 n);
        }
    sl_tensor *all[] = { ta, tb, tc, tw, y, z };
    for (int j = 0; j < 6; j++) sl_tensor_release (all[j]);
  }
  eager_end ();
}
END_TEST

/* What cannot be is refused in a sentence with the shapes. */
static const sl_norm_attr negative = { -1 };
static const sl_axis_attr axis_3 = { 3 };
static const sl_gelu_attr maybe = { 2 };
static const struct {
  const char *op;
  const void *attr;
  int n;
  given in[3];
  const char *message;
} refused[] = {
  { "linear",
    NULL,
    2,
    { { 2, { 2, 3 }, 0 }, { 2, { 4, 5 }, 0 } },
    "linear: x has shape (2, 3) and w (out, in) (4, 5); the last axis of x "
    "must be 5" },
  { "linear",
    NULL,
    2,
    { { 2, { 2, 3 }, 0 }, { 1, { 3 }, 0 } },
    "linear: w has shape (3); it must be (out, in)" },
  { "linear",
    NULL,
    2,
    { { 0, { 0 }, 0 }, { 2, { 4, 1 }, 0 } },
    "linear: x has shape () and w (out, in) (4, 1); the last axis" },
  { "linear",
    NULL,
    3,
    { { 2, { 2, 3 }, 0 }, { 2, { 4, 3 }, 0 }, { 1, { 3 }, 0 } },
    "linear: bias has shape (3); it must be (4)" },
  { "matmul",
    NULL,
    2,
    { { 2, { 2, 3 }, 0 }, { 2, { 4, 5 }, 0 } },
    "matmul: shapes (2, 3) and (4, 5); the last axis of the first" },
  { "matmul",
    NULL,
    2,
    { { 1, { 3 }, 0 }, { 2, { 3, 5 }, 0 } },
    "matmul: shapes (3) and (3, 5); both need at least 2 axes" },
  { "matmul",
    NULL,
    2,
    { { 3, { 2, 2, 3 }, 0 }, { 3, { 3, 3, 5 }, 0 } },
    "matmul: shapes (2, 2, 3) and (3, 3, 5); the axes before the last two" },
  { "softmax",
    &axis_3,
    1,
    { { 2, { 2, 3 }, 0 } },
    "softmax: axis 3 of a tensor with 2 axes" },
  { "layer_norm",
    &layer_eps,
    2,
    { { 2, { 2, 3 }, 0 }, { 1, { 2 }, 0 } },
    "layer_norm: gamma has shape (2); it must be (3)" },
  { "layer_norm",
    &layer_eps,
    3,
    { { 2, { 2, 3 }, 0 }, { 1, { 3 }, 0 }, { 2, { 1, 3 }, 0 } },
    "layer_norm: beta has shape (1, 3); it must be (3)" },
  { "rms_norm",
    &negative,
    1,
    { { 2, { 2, 3 }, 0 } },
    "rms_norm: eps is -1; it must be a number at or above 0" },
  { "layer_norm",
    &layer_eps,
    1,
    { { 2, { 2, 0 }, 0 } },
    "layer_norm: x has shape (2, 0); it needs a last axis" },
  { "gelu",
    &maybe,
    1,
    { { 1, { 2 }, 0 } },
    "gelu: approximate is 2; it must be 0 or 1" },
  { "cross_entropy",
    &negative,
    2,
    { { 2, { 2, 3 }, 0 }, { 1, { 3 }, 0 } },
    "cross_entropy: logits have shape (2, 3) and targets (3); logits must" },
  { "mse",
    NULL,
    2,
    { { 2, { 2, 1 }, 0 }, { 1, { 2 }, 0 } },
    "mse: shapes (2, 1) and (2); they must be equal" },
  { "max_abs_error",
    NULL,
    2,
    { { 1, { 0 }, 0 }, { 1, { 0 }, 0 } },
    "max_abs_error: shape (0) has no elements to compare" },
};

START_TEST (refusals) {
  eager_start ();
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    sl_tensor *in[3], *out[SL_MAX_OUT];
    const sl_op *op = sl_op_find (SL_F64, refused[k].op, &error);
    OK (op != NULL);
    for (int j = 0; j < refused[k].n; j++)
      in[j] = sl_tensor_new (SL_F64, refused[k].in[j].ndim,
                             refused[k].in[j].dim, &error);
    ck_assert_int_eq (
        sl_apply (&context, op, refused[k].attr, refused[k].n, in, out, &error),
        -1);
    ck_assert_msg (strncmp (error.text, refused[k].message,
                            strlen (refused[k].message)) == 0,
                   "got \"%s\", want \"%s\"", error.text, refused[k].message);
    for (int j = 0; j < refused[k].n; j++) sl_tensor_release (in[j]);
  }
  eager_end ();
}
END_TEST

SUITE_MAIN ("layer edges", rows_at_their_edges, empty_axes, long_rows,
            norm_of_a_shifted_row, activations_in_their_tails,
            activations_at_their_ends, targets_at_their_edges,
            errors_between_tensors, products_of_views, refusals)
