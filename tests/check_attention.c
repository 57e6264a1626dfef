/* check_attention.c - the attention op against its definition, what it must not
** read, equal bits for every block, and what observers see. */
#include "attention/attention.h"
#include "base/isa.h"
#include "base/memory.h"
#include "support/brute.h"
#include "support/golden.h"
#include "support/op_bench.h"
#include "support/suite.h"
#include "support/variants.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const sl_mechanism *mechanism (const char *path) {
  char full[512];
  sl_error e = { "" };
  const sl_loaded *l;
  const sl_mechanism *m;
  snprintf (full, sizeof full, SINKLAB_TEST_BUILD "/%s", path);
  ck_assert (sl_attention_register () == 0);
  l = sl_plugin_load (full, &e);
  ck_assert_msg (l != NULL, "%s", e.text);
  m = sl_mechanism_new (l, 0, NULL, &e);
  ck_assert_msg (m != NULL, "%s", e.text);
  return m;
}

static sl_attention_attr attr_of (const brute *x) {
  return (sl_attention_attr){
    .mechanism = mechanism (x->relu ? "plugins/relu.so" : "plugins/softmax.so"),
    .heads = x->heads,
    .kv_heads = x->kv_heads,
    .d_head = x->d,
    .scale = x->scale,
    .visibility = x->visibility,
    .alibi = x->alibi,
    .has_length = x->length != NULL
  };
}

/* The op on the numbers of x, forwards, and backwards if 'backward'. */
static void run (op_bench *b, sl_dtype dtype, const sl_attention_attr *attr,
                 const brute *x, int backward) {
  const ptrdiff_t q[3] = { x->batch, x->t, (ptrdiff_t)x->heads * x->d };
  const ptrdiff_t k[3] = { x->batch, x->t, (ptrdiff_t)x->kv_heads * x->d };
  const ptrdiff_t v[3] = { x->batch, x->t, (ptrdiff_t)x->kv_heads * x->dv };
  const ptrdiff_t length[1] = { x->batch };
  op_bench_start (b, dtype, "attention", attr);
  op_bench_input (b, 3, q, x->q);
  op_bench_input (b, 3, k, x->k);
  op_bench_input (b, 3, v, x->v);
  if (x->length) op_bench_input (b, 1, length, x->length);
  op_bench_forward (b);
  if (backward) op_bench_backward (b, x->dout);
}

static void close_view (const op_bench *b, const sl_view *v, const double *want,
                        const char *what, const char *which) {
  const double tolerance = b->dtype == SL_F64 ? 1e-12 : 2e-5;
  for (size_t i = 0; i < sl_view_count (v); i++)
    CLOSE (op_bench_at (b, v, i), want[i], tolerance, tolerance, "%s, %s[%zu]",
           which, what, i);
}

/* A number below n; the last four arguments of a case come from one seed. */
static int pick (unsigned *state, int n) {
  *state = *state * 1664525u + 1013904223u;
  return (int)((*state >> 16) % (unsigned)n);
}

/* Case number 'seed': all options at random. */
static void random_case (brute *x, sl_attention_attr *attr, double *length,
                         unsigned seed) {
  static const int ts[] = { 1, 2, 5, 16, 17, 37, 70 };
  static const int windows[] = { 0, 0, 1, 3, 16, 100 };
  static const int heads[][2] = { { 1, 1 }, { 2, 2 }, { 4, 2 }, { 3, 1 } };
  static const int blocks[] = { 0, 0, 1, 3, 16, 32 };
  static const double scales[] = { 1, 0.25, -0.5 };
  unsigned state = seed * 7919u + 1;
  const int h = pick (&state, 4);
  *x = (brute){ .batch = 1 + pick (&state, 3), .t = ts[pick (&state, 7)] };
  x->heads = heads[h][0];
  x->kv_heads = heads[h][1];
  x->d = 1 + pick (&state, 9);
  x->dv = pick (&state, 2) ? x->d : 1 + pick (&state, 20);
  x->relu = pick (&state, 2);
  x->scale = scales[pick (&state, 3)];
  x->visibility.causal = pick (&state, 3) > 0;
  x->visibility.window = windows[pick (&state, 6)];
  x->alibi = pick (&state, 2);
  if (pick (&state, 2)) {
    for (int i = 0; i < x->batch; i++) length[i] = pick (&state, x->t + 1);
    x->length = length;
  }
  brute_start (x, seed);
  *attr = attr_of (x);
  attr->recompute_from = pick (&state, 2);
  attr->block = blocks[pick (&state, 6)];
}

static void against_definition (sl_isa isa) {
  enum { CASES = 150 };
  double length[3];
  if (!variant_use (isa)) return;
  for (unsigned seed = 1; seed <= CASES; seed++) {
    brute x;
    sl_attention_attr attr;
    random_case (&x, &attr, length, seed);
    brute_run (&x);
    for (int d = SL_F32; d <= SL_F64; d++) {
      op_bench b;
      char which[80];
      snprintf (which, sizeof which, "seed %u, %s, %s", seed,
                sl_dtype_name ((sl_dtype)d), sl_isa_name (isa));
      run (&b, (sl_dtype)d, &attr, &x, 1);
      close_view (&b, &b.out[0], x.out, "out", which);
      close_view (&b, &b.din[0], x.dq, "dq", which);
      close_view (&b, &b.din[1], x.dk, "dk", which);
      close_view (&b, &b.din[2], x.dvalue, "dv", which);
      op_bench_free (&b);
    }
    brute_free (&x);
  }
}

/* A plugin's variant is picked when it is loaded: a process for each. */
#define ON_ISA(isa)                    \
  START_TEST (definition_##isa) {      \
    against_definition (SL_ISA_##isa); \
  }                                    \
  END_TEST
ON_ISA (BASE)
ON_ISA (V3)
ON_ISA (V4)

static void best_isa (void) {
  sl_isa isa;
  sl_error e = { "" };
  if (sl_isa_choose (&isa, &e)) ck_abort_msg ("%s", e.text);
}

static void same_bits (const op_bench *a, const op_bench *b, const char *what) {
  ck_assert_msg (op_bench_same (a, &a->out[0], &b->out[0]), "%s: out", what);
  for (int i = 0; i < 3; i++)
    ck_assert_msg (op_bench_same (a, &a->din[i], &b->din[i]),
                   "%s: gradient of input %d", what, i + 1);
}

/* Neither the size of a block nor saving the weights shows in a single bit. */
START_TEST (blocks_change_no_bit) {
  static const int sizes[] = { 1, 2, 7, 16, 31, 32, 0 };
  double length[3] = { 41, 64, 0 };
  best_isa ();
  for (int kind = 0; kind < 4; kind++)
    for (int d = SL_F32; d <= SL_F64; d++) {
      brute x = { .batch = 3,
                  .t = 64,
                  .heads = 4,
                  .kv_heads = 2,
                  .d = 16,
                  .dv = 12,
                  .scale = 0.3,
                  .visibility = { kind & 1, kind & 2 ? 0 : 20 },
                  .alibi = 1,
                  .length = length };
      sl_attention_attr attr;
      op_bench want;
      brute_start (&x, 5);
      attr = attr_of (&x);
      run (&want, (sl_dtype)d, &attr, &x, 1);
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int recompute = 0; recompute < 2; recompute++) {
          op_bench got;
          char what[80];
          attr.block = sizes[i];
          attr.recompute_from = recompute;
          snprintf (what, sizeof what, "block %d, recompute %d, %s", sizes[i],
                    recompute, sl_dtype_name ((sl_dtype)d));
          run (&got, (sl_dtype)d, &attr, &x, 1);
          ck_assert_uint_eq (got.n_saved,
                             recompute ? 0 : 3 * 4 * 2 * (size_t)64 * 64);
          same_bits (&want, &got, what);
          op_bench_free (&got);
        }
      op_bench_free (&want);
      brute_free (&x);
    }
}
END_TEST

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
  best_isa ();
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
    attr = attr_of (&x);
    attr.recompute_from = kind >> 1 & 1;
    run (&want, SL_F64, &attr, &x, 1);
    for (int s = 0; s < 2; s++)
      for (int j = (int)length[s]; j < x.t; j++) {
        spoil (&x, x.q, 16, s, j, value);
        spoil (&x, x.k, 8, s, j, value);
        spoil (&x, x.v, 8, s, j, value);
        spoil (&x, x.dout, 16, s, j, value);
      }
    run (&got, SL_F64, &attr, &x, 1);
    same_bits (&want, &got, "padding");
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
  attr = attr_of (&x);
  attr.recompute_from = kind >> 2;
  snprintf (what, sizeof what, "input %d is %g, window %d", kind & 3, junk,
            window);
  run (&want, SL_F64, &attr, &x, 1);
  spoil (&x, spoiled[kind & 3], 8, 0, J, junk);
  run (&got, SL_F64, &attr, &x, 1);
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
  best_isa ();
  for (int kind = 0; kind < 4 * 2; kind++) {
    leaks (kind, 3, NAN);
    leaks (kind, 3, INFINITY);
    leaks (kind, 0, NAN);
    leaks (kind, 0, INFINITY);
  }
}
END_TEST

/* A row plugin with a block pair gives the same by rows: 'by_rows' is the same
** plugin without one. */
START_TEST (lanes_agree_with_rows) {
  static const struct {
    int t, prefix, causal, alibi, kv_heads, recompute;
    double length;
  } cases[] = { { 16, 0, 1, 0, 2, 0, 16 }, { 8, 0, 1, 0, 2, 0, 8 },
                { 37, 3, 1, 1, 1, 1, 30 }, { 150, 0, 1, 0, 2, 1, 149 },
                { 70, 2, 0, 1, 1, 0, 70 }, { 20, 0, 0, 0, 2, 1, 13 },
                { 16, 1, 1, 0, 2, 0, 0 } };
  best_isa ();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (int d = SL_F32; d <= SL_F64; d++) {
      const int t = cases[k].t, g = cases[k].kv_heads;
      double length[1] = { cases[k].length };
      const ptrdiff_t q[3] = { 1, t, 2 * 12 };
      const ptrdiff_t kv[3] = { 1, t + cases[k].prefix, (ptrdiff_t)g * 12 };
      const ptrdiff_t one[1] = { 1 };
      brute x = { .batch = 1,
                  .t = t + cases[k].prefix,
                  .heads = 2,
                  .kv_heads = g,
                  .d = 12,
                  .dv = 12,
                  .scale = 0.5 };
      sl_attention_attr attr = attr_of (&x);
      op_bench b[2];
      char what[80];
      brute_start (&x, 11);
      attr.visibility.causal = cases[k].causal;
      attr.alibi = cases[k].alibi;
      attr.prefix = cases[k].prefix;
      attr.has_length = 1;
      attr.recompute_from = cases[k].recompute ? 1 : 1000;
      for (int rows = 0; rows < 2; rows++) {
        attr.mechanism = mechanism (rows ? "tests/good/softmax_rows.so"
                                         : "plugins/softmax.so");
        op_bench_start (&b[rows], (sl_dtype)d, "attention", &attr);
        op_bench_input (&b[rows], 3, q, x.q);
        op_bench_input (&b[rows], 3, kv, x.k);
        op_bench_input (&b[rows], 3, kv, x.v);
        op_bench_input (&b[rows], 1, one, length);
        op_bench_forward (&b[rows]);
        op_bench_backward (&b[rows], x.dout);
      }
      snprintf (what, sizeof what, "case %zu, %s", k,
                sl_dtype_name ((sl_dtype)d));
      for (int i = -1; i < 3; i++) {
        const sl_view *v = i < 0 ? &b[0].out[0] : &b[0].din[i];
        const sl_view *w = i < 0 ? &b[1].out[0] : &b[1].din[i];
        const double tolerance = d == SL_F64 ? 1e-13 : 1e-5;
        for (size_t j = 0; j < sl_view_count (v); j++)
          CLOSE (op_bench_at (&b[0], v, j), op_bench_at (&b[1], w, j),
                 tolerance, tolerance, "%s, array %d[%zu]", what, i, j);
      }
      op_bench_free (&b[0]);
      op_bench_free (&b[1]);
      brute_free (&x);
    }
}
END_TEST

/* The (sequence, head, query) that an observer should see next, and a copy. */
typedef struct seen {
  const brute *x;
  double *weights;
  long blocks, sample0;
  int next_row, next_head, next_sample;
} seen;

static double number (const void *p, sl_dtype dtype, ptrdiff_t i) {
  return dtype == SL_F64 ? ((const double *)p)[i] : ((const float *)p)[i];
}

static void watch (void *context, const sl_rows *r) {
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
      const double w = number (r->weights, r->dtype, i * r->stride + j);
      s->weights[(((ptrdiff_t)s->next_sample * x->heads + r->head) * x->t +
                  r->row + i) *
                     x->t +
                 j] = w;
      if (j < lo || j >= hi) CLOSE (w, 0, 0, 0, "unseen weight");
    }
  }
  for (int j = 0; j < x->t; j++)
    CLOSE (number (r->value, r->dtype, j * r->value_stride + 1),
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
  best_isa ();
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
    attr = attr_of (&x);
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

/* y (rows x out) = x (rows x in) w^T with w (out x in). */
static void linear (const double *x, const double *w, double *y, int rows,
                    int in, int out) {
  for (int r = 0; r < rows; r++)
    for (int o = 0; o < out; o++) {
      y[r * out + o] = 0;
      for (int i = 0; i < in; i++)
        y[r * out + o] += x[r * in + i] * w[o * in + i];
    }
}

/* A copy of the weights of each block. */
static void keep (void *context, const sl_rows *r) {
  double *w = context;
  for (int i = 0; i < r->rows; i++)
    for (int j = 0; j < r->t; j++)
      w[(r->sample * r->t + r->row + i) * r->t + j] =
          number (r->weights, r->dtype, i * r->stride + j);
}

/* The one-layer model of the paper: W_O attention (W_Q x, W_K x, W_V x). */
static void model (const char *plugin) {
  enum { B = 4, T = 16, D = 16, N = B * T * D };
  static const char *const part[5] = { "x", "W_Q", "W_K", "W_V", "W_O" };
  golden g[5];
  char file[80];
  static double q[N], k[N], v[N], y[N], context[N], weights[B * T * T];
  brute x = { .batch = B,
              .t = T,
              .heads = 1,
              .kv_heads = 1,
              .d = D,
              .dv = D,
              .relu = plugin[0] == 'r',
              .scale = 1,
              .visibility = { 1, 0 },
              .q = q,
              .k = k,
              .v = v };
  const sl_attention_attr attr = attr_of (&x);
  sl_observer observer = { keep, weights };
  const ptrdiff_t dim[3] = { B, T, D };
  op_bench b;
  for (int i = 0; i < 5; i++) {
    snprintf (file, sizeof file, "model_1l1h/%s/%s.npy", plugin, part[i]);
    g[i] = golden_load (file);
  }
  linear (g[0].x, g[1].x, q, B * T, D, D);
  linear (g[0].x, g[2].x, k, B * T, D, D);
  linear (g[0].x, g[3].x, v, B * T, D, D);
  op_bench_start (&b, SL_F64, "attention", &attr);
  op_bench_input (&b, 3, dim, q);
  op_bench_input (&b, 3, dim, k);
  op_bench_input (&b, 3, dim, v);
  b.observer = &observer;
  op_bench_forward (&b);
  for (int i = 0; i < N; i++)
    context[i] = op_bench_at (&b, &b.out[0], (size_t)i);
  linear (context, g[4].x, y, B * T, D, D);
  snprintf (file, sizeof file, "model_1l1h/%s/pred.npy", plugin);
  golden_close_array (y, N, SL_F64, file);
  snprintf (file, sizeof file, "model_1l1h/%s/attn.npy", plugin);
  golden_close_array (weights, B * T * T, SL_F64, file);
  op_bench_free (&b);
  for (int i = 0; i < 5; i++) golden_free (&g[i]);
}

START_TEST (model_of_the_paper) {
  best_isa ();
  model ("softmax");
  model ("relu");
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
  best_isa ();
  brute_start (&x, 2);
  attr = attr_of (&x);
  run (&b, SL_F64, &attr, &x, 1);
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
    best_isa ();
    brute_start (&x, 2);
    attr = attr_of (&x);
    run (&b, SL_F32, &attr, &x, 1);
    ck_assert_uint_eq (sl_view_count (&b.out[0]), 0);
    op_bench_free (&b);
    brute_free (&x);
  }
}
END_TEST

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
  const sl_attention_attr good = { .mechanism = mechanism ("plugins/relu.so"),
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
  a.mechanism = mechanism ("tests/good/affine.so");
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: plugin 'affine' has 4 parameters a head; give "
                    "them as param");
  a.mechanism = mechanism ("tests/good/gate_shape.so");
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: plugin 'gate_shape' is a gate; expected a row");
  a.mechanism = mechanism ("tests/good/mix_shape.so");
  ck_assert_str_eq (refusal (&a, 2, widths),
                    "attention: plugin 'mix_shape' is a mix; expected a row");
}
END_TEST

/* Bytes of saved and scratch for one sequence of t tokens, 8 heads of 64. */
static double workspace (int t) {
  sl_attention_attr attr = { .mechanism = mechanism ("plugins/softmax.so"),
                             .heads = 8,
                             .kv_heads = 8,
                             .d_head = 64,
                             .scale = 1,
                             .visibility = { 1, 0 } };
  const sl_view view = { .ndim = 3,
                         .dim = { 1, t, 512 },
                         .stride = { (ptrdiff_t)t * 512, 512, 1 } };
  const sl_view in[3] = { view, view, view };
  sl_infer q = { .attr = &attr, .n_in = 3, .in = in };
  sl_error e = { "" };
  const sl_op *op = sl_op_find (SL_F32, "attention", &e);
  ck_assert_msg (op != NULL && op->infer (&q, &e) == 0, "%s", e.text);
  return 4.0 * (double)(q.saved + q.scratch);
}

/* Nothing is t x t: memory grows as the length. */
START_TEST (long_sequences_need_little) {
  double at_4096;
  best_isa ();
  at_4096 = workspace (4096);
  ck_assert_msg (at_4096 < 16e6, "%g bytes for 4096 tokens", at_4096);
  for (int t = 8192; t <= 32768; t *= 2)
    CLOSE (workspace (t), at_4096 * t / 4096, 0, 0.05, "bytes for %d tokens",
           t);
}
END_TEST

SUITE_MAIN ("attention", definition_BASE, definition_V3, definition_V4,
            blocks_change_no_bit, padding_is_not_read,
            nothing_leaks_through_the_mask, lanes_agree_with_rows,
            long_sequences_need_little, observers_see_every_row,
            model_of_the_paper, odd_lengths, empty, refusals)
