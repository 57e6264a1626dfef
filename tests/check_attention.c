/* check_attention.c - the attention op against its definition, equal bits for
** every block, lanes against rows, and the model of the paper. */
#include "attention/attention.h"
#include "support/attend.h"
#include "support/golden.h"
#include "support/suite.h"
#include "support/variants.h"
#include <stdio.h>

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
  *attr = attend_attr (x);
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
      attend_run (&b, (sl_dtype)d, &attr, &x, 1);
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

/* Neither the size of a block nor saving the weights shows in a single bit. */
START_TEST (blocks_change_no_bit) {
  static const int sizes[] = { 1, 2, 7, 16, 31, 32, 48, 64, 0 };
  double length[3] = { 41, 64, 0 };
  attend_best_isa ();
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
      attr = attend_attr (&x);
      attend_run (&want, (sl_dtype)d, &attr, &x, 1);
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int recompute = 0; recompute < 2; recompute++) {
          op_bench got;
          char what[80];
          attr.block = sizes[i];
          attr.recompute_from = recompute;
          snprintf (what, sizeof what, "block %d, recompute %d, %s", sizes[i],
                    recompute, sl_dtype_name ((sl_dtype)d));
          attend_run (&got, (sl_dtype)d, &attr, &x, 1);
          ck_assert_uint_eq (got.n_saved,
                             recompute ? 0 : 3 * 4 * 2 * (size_t)64 * 64);
          attend_same_bits (&want, &got, what);
          op_bench_free (&got);
        }
      op_bench_free (&want);
      brute_free (&x);
    }
}
END_TEST

/* A row plugin with a block pair gives the same by rows: 'by_rows' is the same
** plugin without one. */
START_TEST (lanes_agree_with_rows) {
  static const struct {
    int t, virtual_keys, causal, alibi, kv_heads, recompute;
    double length;
  } cases[] = { { 16, 0, 1, 0, 2, 0, 16 }, { 8, 0, 1, 0, 2, 0, 8 },
                { 37, 3, 1, 1, 1, 1, 30 }, { 150, 0, 1, 0, 2, 1, 149 },
                { 70, 2, 0, 1, 1, 0, 70 }, { 20, 0, 0, 0, 2, 1, 13 },
                { 16, 1, 1, 0, 2, 0, 0 } };
  attend_best_isa ();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (int d = SL_F32; d <= SL_F64; d++) {
      const int t = cases[k].t, g = cases[k].kv_heads;
      double length[1] = { cases[k].length };
      const ptrdiff_t q[3] = { 1, t, 2 * 12 };
      const ptrdiff_t kv[3] = { 1, t + cases[k].virtual_keys,
                                (ptrdiff_t)g * 12 };
      const ptrdiff_t one[1] = { 1 };
      brute x = { .batch = 1,
                  .t = t + cases[k].virtual_keys,
                  .heads = 2,
                  .kv_heads = g,
                  .d = 12,
                  .dv = 12,
                  .scale = 0.5 };
      sl_attention_attr attr = attend_attr (&x);
      op_bench b[2];
      char what[80];
      brute_start (&x, 11);
      attr.visibility.causal = cases[k].causal;
      attr.alibi = cases[k].alibi;
      attr.virtual_keys = cases[k].virtual_keys;
      attr.has_length = 1;
      attr.recompute_from = cases[k].recompute ? 1 : 1000;
      for (int rows = 0; rows < 2; rows++) {
        attr.mechanism = attend_mechanism (rows ? "tests/good/softmax_rows.so"
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
static void keep (void *context, const sl_weight_rows *r) {
  double *w = context;
  for (int i = 0; i < r->rows; i++)
    for (int j = 0; j < r->t; j++)
      w[(r->sample * r->t + r->row + i) * r->t + j] =
          attend_number (r->weights, r->dtype, i * r->stride + j);
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
  const sl_attention_attr attr = attend_attr (&x);
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
  attend_best_isa ();
  model ("softmax");
  model ("relu");
}
END_TEST

SUITE_MAIN ("attention", definition_BASE, definition_V3, definition_V4,
            blocks_change_no_bit, lanes_agree_with_rows, model_of_the_paper)
