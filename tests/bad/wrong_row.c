/* wrong_row.c - row plugins that load and do one thing wrong each, for plugin
** check.
**
** Built once per case with -DCASE_<case>. The defaults make a softmax that is
** right; a case replaces the part that it gets wrong. */
#include <math.h>
#include <sinklab/plugin.h>
#include <stdio.h>
#include <string.h>

#define SOME static __attribute__ ((unused))

/* w_i = exp (s_i - max) / sum */
SOME void softmax (int n, const real *s, real *w) {
  real max = s[0], sum = 0;
  for (int i = 1; i < n; i++) max = s[i] > max ? s[i] : max;
  for (int i = 0; i < n; i++) w[i] = (real)exp (s[i] - max);
  for (int i = 0; i < n; i++) sum += w[i];
  for (int i = 0; i < n; i++) w[i] /= sum;
}

/* ds_i = factor w_i (dw_i - sum_j w_j dw_j) */
SOME void softmax_backward (int n, const real *w, const real *dw, real *ds,
                            real factor) {
  real mean = 0;
  for (int i = 0; i < n; i++) mean += w[i] * dw[i];
  for (int i = 0; i < n; i++) ds[i] = factor * w[i] * (dw[i] - mean);
}

/* w_i = scale / (1 + exp (-s_i)) */
SOME void logistic (int n, const real *s, real *w, double scale) {
  for (int i = 0; i < n; i++) w[i] = (real)(scale / (1 + exp (-s[i])));
}

SOME void logistic_backward (int n, const real *w, const real *dw, real *ds,
                             double scale) {
  for (int i = 0; i < n; i++) ds[i] = (real)(dw[i] * w[i] * (1 - w[i] / scale));
}

#define FORWARD softmax (n, s, w);
#define BACKWARD softmax_backward (n, w, dw, ds, 1);
#define PROPERTIES SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT
#define PARAMS NULL
#define OPTIONS NULL
#define CONFIG_SIZE 0
#define VALIDATE NULL

#if defined CASE_wrong_backward
/* Weights sum to 1, so the gradient of their plain sum is 0 and hides this. */
#undef BACKWARD
#define BACKWARD softmax_backward (n, w, dw, ds, -3);

#elif defined CASE_keeps_state
/* After a row of 33 keys, rows of two keys get other weights. */
static int had_33;
#undef FORWARD
#define FORWARD            \
  softmax (n, s, w);       \
  if (n == 33) had_33 = 1; \
  if (n == 2 && had_33) w[0] *= (real)0.5;

#elif defined CASE_shares_memory
/* Correct on one thread. */
#include <sched.h>
static real held[64];
#undef FORWARD
#define FORWARD                              \
  if (n <= 64) {                             \
    memcpy (held, s, (size_t)n * sizeof *s); \
    sched_yield ();                          \
    softmax (n, held, w);                    \
  } else                                     \
    softmax (n, s, w);

#elif defined CASE_past_row
#undef FORWARD
#define FORWARD      \
  softmax (n, s, w); \
  w[n] = 0;

#elif defined CASE_past_gradient
#undef BACKWARD
#define BACKWARD                      \
  softmax_backward (n, w, dw, ds, 1); \
  ds[-1] = 0;

#elif defined CASE_reads_hidden_key
#undef FORWARD
#define FORWARD      \
  softmax (n, s, w); \
  if (s[-1] > (real)1e5) w[0] *= (real)0.5;

#elif defined CASE_trusts_scratch
#undef FORWARD
#define FORWARD      \
  softmax (n, s, w); \
  if (c->scratch[0] > (real)1e5) w[0] *= (real)0.5;

#elif defined CASE_leaves_unwritten
#undef PROPERTIES
#define PROPERTIES 0
#undef FORWARD
#define FORWARD                      \
  real all[64];                      \
  if (n == 19) {                     \
    softmax (n, s, all);             \
    memcpy (w, all, 18 * sizeof *w); \
  } else                             \
    softmax (n, s, w);

#elif defined CASE_changes_input
#undef BACKWARD
#define BACKWARD                      \
  softmax_backward (n, w, dw, ds, 1); \
  ((real *)(size_t)s)[0] += 1;

#elif defined CASE_overwrites_dparam || defined CASE_right_dparam
/* w = gain softmax (s) */
static const sl_param params[] = { { "gain", "", { 0, 1 }, SL_CONST, 1 },
                                   { 0 } };
#ifdef CASE_overwrites_dparam
#define ADD =
#else
#define ADD +=
#endif
#undef PARAMS
#define PARAMS params
#undef PROPERTIES
#define PROPERTIES 0
#undef FORWARD
#define FORWARD      \
  softmax (n, s, w); \
  for (int i = 0; i < n; i++) w[i] *= c->param[0];
#undef BACKWARD
#define BACKWARD                                            \
  real sum = 0;                                             \
  softmax (n, s, c->scratch);                               \
  for (int i = 0; i < n; i++) sum += dw[i] * c->scratch[i]; \
  softmax_backward (n, c->scratch, dw, ds, c->param[0]);    \
  dparam[0] ADD sum;

#elif defined CASE_not_nonnegative
#undef PROPERTIES
#define PROPERTIES SL_NONNEGATIVE
#undef FORWARD
#define FORWARD \
  for (int i = 0; i < n; i++) w[i] = s[i] / 8;
#undef BACKWARD
#define BACKWARD \
  for (int i = 0; i < n; i++) ds[i] = dw[i] / 8;

#elif defined CASE_not_one || defined CASE_not_null_mass || \
    defined CASE_not_invariant
#undef PROPERTIES
#ifdef CASE_not_one
#define PROPERTIES SL_SUMS_TO_ONE
#elif defined CASE_not_null_mass
#define PROPERTIES SL_NULL_MASS
#else
#define PROPERTIES SL_SHIFT_INVARIANT
#endif
#undef FORWARD
#define FORWARD logistic (n, s, w, 1);
#undef BACKWARD
#define BACKWARD logistic_backward (n, w, dw, ds, 1);

#elif defined CASE_kink_not_declared
#undef PROPERTIES
#define PROPERTIES SL_NONNEGATIVE
#undef FORWARD
#define FORWARD \
  for (int i = 0; i < n; i++) w[i] = s[i] > 0 ? s[i] : 0;
#undef BACKWARD
#define BACKWARD \
  for (int i = 0; i < n; i++) ds[i] = s[i] > 0 ? dw[i] : 0;

#elif defined CASE_crash
#undef BACKWARD
#define BACKWARD                      \
  softmax_backward (n, w, dw, ds, 1); \
  if (n == 16) *(volatile int *)8 = 1;

#elif defined CASE_endless
static volatile int forever = 1;
#undef FORWARD
#define FORWARD      \
  softmax (n, s, w); \
  while (n == 7 && forever) {}

#elif defined CASE_leaves
/* Ends its process. */
#include <stdlib.h>
#undef FORWARD
#define FORWARD      \
  softmax (n, s, w); \
  if (n == 5) _Exit (3);

#elif defined CASE_overflows
#undef PROPERTIES
#define PROPERTIES 0
#undef FORWARD
#define FORWARD                                               \
  real sum = 0;                                               \
  for (int i = 0; i < n; i++) sum += w[i] = (real)exp (s[i]); \
  for (int i = 0; i < n; i++) w[i] /= sum;

#elif defined CASE_single_differs
#undef PROPERTIES
#define PROPERTIES 0
#define SHRINK (sizeof (real) == 4 ? (real)0.999 : 1)
#undef FORWARD
#define FORWARD      \
  softmax (n, s, w); \
  if (n < 64)        \
    for (int i = 0; i < n; i++) w[i] *= SHRINK;

#elif defined CASE_short_rows_only
#undef PROPERTIES
#define PROPERTIES 0
#undef FORWARD
#define FORWARD softmax (n > 65536 ? 65536 : n, s, w);

#elif defined CASE_too_slow
/* A million operations for every key of a long row. */
#undef FORWARD
#define FORWARD      \
  softmax (n, s, w); \
  for (volatile long i = 0; n > 64 && i < 1000000L * n;) i++;

#elif defined CASE_accepts_zero
/* The range of the option includes 0, by which the kernel divides. */
typedef struct config {
  double temperature;
} config;
static const sl_option options[] = {
  { "temperature", "", SL_REAL, offsetof (config, temperature), 1, 0, 9, NULL },
  { 0 }
};
#undef OPTIONS
#define OPTIONS options
#undef CONFIG_SIZE
#define CONFIG_SIZE sizeof (config)
#undef FORWARD
#define FORWARD                                                           \
  const double temperature = ((const config *)c->config)->temperature;    \
  for (int i = 0; i < n; i++) c->scratch[i] = (real)(s[i] / temperature); \
  softmax (n, c->scratch, w);
#undef BACKWARD
#define BACKWARD                                                       \
  const double temperature = ((const config *)c->config)->temperature; \
  softmax_backward (n, w, dw, ds, (real)(1 / temperature));

#elif defined CASE_refuses_silently || defined CASE_err_too_long || \
    defined CASE_err_two_lines
typedef struct config {
  int flag;
} config;
static const sl_option options[] = {
  { "flag", "", SL_BOOL, offsetof (config, flag), 0, 0, 0, NULL }, { 0 }
};
static int validate (const void *given, char *err, size_t cap) {
  const config *o = given;
  if (!o->flag) return 0;
#ifdef CASE_err_too_long
  /* 124 bytes, without regard to the size of err. */
  (void)cap;
  memset (err, 'x', 123);
  err[123] = '\0';
#elif defined CASE_err_two_lines
  snprintf (err, cap, "flag is set\nwhich cannot be");
#else
  (void)err, (void)cap;
#endif
  return -1;
}
#undef OPTIONS
#define OPTIONS options
#undef CONFIG_SIZE
#define CONFIG_SIZE sizeof (config)
#undef VALIDATE
#define VALIDATE validate

#elif defined CASE_block_differs
/* Adds 1e-3 to the sum of lanes that have masked keys. */
#define BLOCK &block
static void forward_block (const sl_call *c, int n, const real *s, real *w) {
  for (int i = 0; i < SL_QUERIES; i++) {
    real sum = (int)c->visible_keys[i] < n ? (real)1e-3 : 0;
    for (int j = 0; j < n; j++) {
      w[j * SL_QUERIES + i] = (real)exp (s[j * SL_QUERIES + i]);
      sum += w[j * SL_QUERIES + i];
    }
    for (int j = 0; j < n; j++) w[j * SL_QUERIES + i] /= sum;
  }
}

static void backward_block (const sl_call *c, int n, const real *s,
                            const real *w, const real *dw, real *ds,
                            real *dparam) {
  (void)c, (void)s, (void)dparam;
  for (int i = 0; i < SL_QUERIES; i++) {
    real mean = 0;
    for (int j = i; j < n * SL_QUERIES; j += SL_QUERIES) mean += w[j] * dw[j];
    for (int j = i; j < n * SL_QUERIES; j += SL_QUERIES)
      ds[j] = w[j] * (dw[j] - mean);
  }
}

static const sl_block_kernel block = { forward_block, backward_block };

#elif defined CASE_block_past_end
/* Zeros in the block and in the element after it. */
#undef FORWARD
#define FORWARD \
  for (int i = 0; i < n; i++) w[i] = 0 * s[i];
#undef BACKWARD
#define BACKWARD \
  for (int i = 0; i < n; i++) ds[i] = 0 * dw[i];
#undef PROPERTIES
#define PROPERTIES SL_NONNEGATIVE
#define BLOCK &block
static void forward_block (const sl_call *c, int n, const real *s, real *w) {
  (void)c, (void)s;
  for (int i = 0; i <= n * SL_QUERIES; i++) w[i] = 0;
}

static void backward_block (const sl_call *c, int n, const real *s,
                            const real *w, const real *dw, real *ds,
                            real *dparam) {
  (void)c, (void)s, (void)w, (void)dw, (void)dparam;
  for (int i = 0; i < n * SL_QUERIES; i++) ds[i] = 0;
}

static const sl_block_kernel block = { forward_block, backward_block };

#else
#error "no such case"
#endif

static void forward (const sl_call *c, int n, const real *s, real *w) {
  (void)c;
  FORWARD
}

static void backward (const sl_call *c, int n, const real *s, const real *w,
                      const real *dw, real *ds, real *dparam) {
  (void)c, (void)s, (void)w, (void)dparam;
  BACKWARD
}

#ifndef BLOCK
#define BLOCK NULL
#endif

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              CASE_NAME,
              "1.0",
              "wrong on purpose",
              .properties = PROPERTIES,
              .config_size = CONFIG_SIZE,
              .options = OPTIONS,
              .params = PARAMS,
              .validate = VALIDATE,
              .row = &row,
              .block = BLOCK };
