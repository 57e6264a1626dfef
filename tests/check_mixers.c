/* check_mixers.c - mixers that carry a state, forget or learn their features,
** against the published formulas: outputs, weights, and gradients by
** differences. */
#include "attention/attention.h"
#include "support/op_bench.h"
#include "support/op_case.h"
#include "support/row_cases.h"
#include "support/suite.h"
#include "support/variants.h"
#include <math.h>
#include <string.h>

typedef long double wide;
enum { HEADS = 2, BATCH = 2, D = 3, T = 41, INPUTS = 4, NUMBERS = 2 * 5 * D };
static const int lengths[BATCH] = { T, 7 };

/* One head of one sequence as the formulas see it. */
typedef struct head {
  const struct mix_case *c;
  int t, h;
  const double *in[INPUTS]; /* t rows, stride[i] apart */
  int stride[INPUTS];
  const double *param; /* NUMBERS of them */
} head;

typedef struct mix_case {
  const char *name, *plugin;
  sl_setting settings[4]; /* ended by a NULL name */
  /* t x t weights, 0 past the query */
  void (*weights) (const head *x, wide w[T][T]);
  int width[INPUTS]; /* a head; 0: left out */
  int shared[INPUTS];
  int params;
  double spread, spread_of_last; /* of inputs, and of what gates or steps */
  wide x[4];                     /* numbers of the formula */
  uint64_t seed; /* of differences, where one must keep off the kinks of relu */
} mix_case;

static wide dot (const head *x, int a, int i, int b, int j) {
  wide sum = 0;
  for (int k = 0; k < x->c->width[a]; k++)
    sum += (wide)x->in[a][i * x->stride[a] + k] *
           (wide)x->in[b][j * x->stride[b] + k];
  return sum;
}

#define SCALE 0.7

/* Retention: (Q K^T * D), D_ij = gamma^(i-j); normalised as section 2.1 says: D
** by the root of its row's sum, then the product by max (|row's sum|, 1). */
static void retention (const head *x, wide w[T][T]) {
  const wide gamma = 1 - powl (2, -x->c->x[0] - x->c->x[1] * x->h);
  for (int i = 0; i < x->t; i++) {
    wide decays = 0, sum = 0;
    for (int j = 0; j <= i; j++) decays += powl (gamma, i - j);
    for (int j = 0; j <= i; j++) {
      w[i][j] = SCALE * dot (x, 0, i, 1, j) * powl (gamma, i - j);
      if (x->c->x[2] != 0) w[i][j] /= sqrtl (decays);
      sum += w[i][j];
    }
    for (int j = 0; j <= i && x->c->x[2] != 0; j++)
      w[i][j] /= fmaxl (fabsl (sum), 1);
  }
}

/* FoX, equation 5: F_ij = prod_{j < l <= i} f_l, softmax of q.k + log F. x:
** whether the gate is full, T of the first and of the last head (0: no
** start). */
static void forgetting (const head *x, wide w[T][T]) {
  const wide first = x->c->x[1], last = x->c->x[2];
  const wide time = first * powl (last / first, (wide)x->h / (HEADS - 1));
  const wide start = first > 0 ? -logl (expm1l (1 / time)) : 0;
  for (int i = 0; i < x->t; i++) {
    wide sum = 0;
    for (int j = 0; j <= i; j++) {
      wide forgotten = 0;
      for (int l = j + 1; l <= i; l++) {
        const wide z = start + (x->c->params ? x->param[0] : 0) +
                       (x->c->x[0] != 0 ? x->in[3][l * x->stride[3]] : 0);
        forgotten += -log1pl (expl (-z));
      }
      w[i][j] = expl (SCALE * dot (x, 0, i, 1, j) + forgotten);
      sum += w[i][j];
    }
    for (int j = 0; j <= i; j++) w[i][j] /= sum;
  }
}

/* SSD: L_ij = a_i ... a_{j+1} with a_t = exp (-A dt_t); M = L * (C B^T) dt_j.
** x: A of head 0 and 1 at the start, dt that a bias of 0 gives at the start. */
static void ssm (const head *x, wide w[T][T]) {
  const wide a = x->c->x[x->h] * expl (x->param[1]);
  wide dt[T];
  for (int t = 0; t < x->t; t++)
    dt[t] = log1pl (expl (x->in[3][t * x->stride[3]] + x->param[0] +
                          logl (expm1l (x->c->x[2]))));
  for (int i = 0; i < x->t; i++)
    for (int j = 0; j <= i; j++) {
      wide decay = 1;
      for (int l = j + 1; l <= i; l++) decay *= expl (-a * dt[l]);
      w[i][j] = dot (x, 2, i, 1, j) * decay * dt[j];
      if (i == j && x->c->params == 3) w[i][j] += x->param[2];
    }
}

/* Gu et al., MLP kernel: phi (q).phi (k), phi (x) = W2 relu (W1 x), rows
** divided by max (|sum|, 1). x: hidden, whether rows are divided. */
static void mlp (const head *x, wide w[T][T]) {
  const int hidden = (int)x->c->x[0];
  const double *w1 = x->param, *w2 = w1 + hidden * D;
  wide phi[2][T][D];
  for (int a = 0; a < 2; a++)
    for (int t = 0; t < x->t; t++) {
      memset (phi[a][t], 0, sizeof phi[a][t]);
      for (int k = 0; k < hidden; k++) {
        wide h = 0;
        for (int i = 0; i < D; i++)
          h += (wide)w1[k * D + i] * x->in[a][t * x->stride[a] + i];
        for (int i = 0; i < D; i++)
          phi[a][t][i] += w2[i * hidden + k] * (h > 0 ? h : 0);
      }
    }
  for (int i = 0; i < x->t; i++) {
    wide sum = 0;
    for (int j = 0; j <= i; j++) {
      for (int k = 0; k < D; k++)
        w[i][j] += SCALE * phi[0][i][k] * phi[1][j][k];
      sum += w[i][j];
    }
    for (int j = 0; j <= i && x->c->x[1] != 0; j++)
      w[i][j] /= fmaxl (fabsl (sum), 1);
  }
}

#define QKV .width = { D, D, D }, .spread = 1.5
#define QKVF .width = { D, D, D, 1 }, .spread = 1.5
#define VBC(n, common, last)                                                  \
  .width = { D, n, n, 1 }, .shared = { 0, common, common, 0 }, .spread = 1.5, \
  .spread_of_last = last

static const mix_case cases[] = {
  { "retention", "retention", { { 0 } }, retention, QKV, .x = { 5, 1, 0 } },
  { "fast retention",
    "retention",
    { { "exponent", 0.5, NULL }, { "step", 0.25, NULL } },
    retention,
    QKV,
    .x = { 0.5L, 0.25L, 0 } },
  { "normalised retention",
    "retention",
    { { "normalise", 1, NULL } },
    retention,
    QKV,
    .x = { 5, 1, 1 } },
  { "forgetting",
    "forgetting",
    { { 0 } },
    forgetting,
    QKVF,
    .spread_of_last = 2,
    .params = 1,
    .x = { 1 } },
  { "strong forgetting",
    "forgetting",
    { { 0 } },
    forgetting,
    QKVF,
    .spread_of_last = 60,
    .params = 1,
    .x = { 1 } },
  { "forgetting by a bias",
    "forgetting",
    { { "gate", 0, "bias" } },
    forgetting,
    QKV,
    .params = 1,
    .x = { 0, 2, 128 } },
  { "fixed forgetting",
    "forgetting",
    { { "gate", 0, "fixed" },
      { "decay_min", 0.5, NULL },
      { "decay_max", 9, NULL } },
    forgetting,
    QKV,
    .x = { 0, 0.5L, 9 } },
  { "ssm",
    "ssm",
    { { 0 } },
    ssm,
    VBC (2 * D, 1, 2),
    .params = 3,
    .x = { 4.75L, 12.25L, 0.01L } },
  { "ssm with long steps",
    "ssm",
    { { "shared", 0, NULL } },
    ssm,
    VBC (2 * D, 0, 50),
    .params = 3,
    .x = { 4.75L, 12.25L, 0.01L } },
  { "small ssm",
    "ssm",
    { { "state", 2, NULL }, { "skip", 0, NULL }, { "a_max", 1, NULL } },
    ssm,
    VBC (2, 1, 2),
    .params = 2,
    .x = { 1, 1, 0.01L } },
  { "mlp",
    "linear",
    { { "feature", 0, "mlp" }, { "hidden", 4, NULL } },
    mlp,
    QKV,
    .params = 2 * 4 * D,
    .x = { 4, 1 },
    .seed = 3 },
  { "mlp sums",
    "linear",
    { { "feature", 0, "mlp" },
      { "hidden", 5, NULL },
      { "normalise", 0, NULL } },
    mlp,
    QKV,
    .params = 2 * 5 * D,
    .x = { 5, 0 },
    .seed = 3 },
};
enum { CASES = sizeof cases / sizeof *cases };

static uint64_t state_of_draw;

/* In [-1, 1), a number of f32. */
static double draw (void) {
  state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
  return (double)(state_of_draw >> 40) * 0x1p-23 - 1;
}

/* A case's numbers, laid out as the op takes them. */
typedef struct numbers {
  double in[INPUTS][BATCH * T * HEADS * 2 * D];
  double param[HEADS][NUMBERS];
  double dout[BATCH * T * HEADS * D];
  size_t size[INPUTS];
} numbers;

static int row_of (const mix_case *c, int i) {
  return c->width[i] * (c->shared[i] ? 1 : HEADS);
}

static void make (const mix_case *c, numbers *n) {
  state_of_draw = 3 + (uint64_t)(c - cases);
  for (int i = 0; i < INPUTS; i++) {
    const double spread = i == 3 ? c->spread_of_last : c->spread;
    n->size[i] = (size_t)(BATCH * T * row_of (c, i));
    for (size_t k = 0; k < n->size[i]; k++)
      n->in[i][k] = (float)(spread * draw ());
  }
  for (int h = 0; h < HEADS; h++)
    for (int k = 0; k < NUMBERS; k++) n->param[h][k] = draw ();
  for (size_t k = 0; k < sizeof n->dout / sizeof *n->dout; k++)
    n->dout[k] = draw ();
}

static head head_of (const mix_case *c, const numbers *n, int s, int h) {
  head x = { .c = c, .t = lengths[s], .h = h, .param = n->param[h] };
  for (int i = 0; i < INPUTS; i++) {
    x.stride[i] = row_of (c, i);
    x.in[i] =
        n->in[i] + s * T * x.stride[i] + (c->shared[i] ? 0 : h * c->width[i]);
  }
  return x;
}

/* What the observer saw. */
typedef struct seen {
  double w[BATCH][HEADS][T][T];
  double v[BATCH][HEADS][T][D];
  int heads;
} seen;

static double element (const sl_weight_rows *r, const void *x, ptrdiff_t i) {
  return r->dtype == SL_F32 ? (double)((const float *)x)[i]
                            : ((const double *)x)[i];
}

static void watch (void *context, const sl_weight_rows *r) {
  seen *to = context;
  to->heads++;
  ck_assert_int_eq (r->rows, r->length);
  ck_assert_ptr_nonnull (r->value);
  for (int i = 0; i < r->rows; i++)
    for (int j = 0; j < r->t; j++)
      to->w[r->sample][r->head][i][j] =
          element (r, r->weights, i * r->stride + j);
  for (int j = 0; j < r->length; j++)
    for (int k = 0; k < r->d_value; k++)
      to->v[r->sample][r->head][j][k] =
          element (r, r->value, j * r->value_stride + k * r->value_step);
}

static void start (op_bench *b, const mix_case *c, sl_dtype dtype,
                   sl_attention_attr *attr, const numbers *n) {
  const ptrdiff_t batch = BATCH, param_dim[2] = { HEADS, c->params };
  double param[HEADS * NUMBERS], length[BATCH];
  *attr =
      (sl_attention_attr){ .mechanism = row_mechanism (c->plugin, c->settings),
                           .heads = HEADS,
                           .d_head = D,
                           .scale = SCALE,
                           .visibility = { 1, 0 },
                           .has_param = c->params > 0,
                           .has_length = 1 };
  op_bench_start (b, dtype, "mixer", attr);
  for (int i = 0; i < INPUTS; i++) {
    const ptrdiff_t dim[3] = { BATCH, T, row_of (c, i) };
    if (c->width[i]) op_bench_input (b, 3, dim, n->in[i]);
  }
  for (int h = 0; h < HEADS; h++)
    for (int k = 0; k < c->params; k++)
      param[h * c->params + k] = n->param[h][k];
  if (c->params) op_bench_input (b, 2, param_dim, param);
  for (int s = 0; s < BATCH; s++) length[s] = lengths[s];
  op_bench_input (b, 1, &batch, length);
}

/* One head's weights, what they make of the values, and the output. The
** tolerance is in units of the largest term of a sum. */
static void compare (const mix_case *c, sl_dtype dtype, const op_bench *b,
                     const numbers *n, const seen *got, int s, int h) {
  static wide w[T][T];
  const double unit = dtype == SL_F32 ? 2e-6 : 1e-14;
  const head x = head_of (c, n, s, h);
  const int value = c->weights == ssm ? 0 : 2;
  memset (w, 0, sizeof w);
  c->weights (&x, w);
  for (int i = 0; i < x.t; i++) {
    double largest = 0;
    for (int j = 0; j <= i; j++)
      largest = fmax (largest, fabs ((double)w[i][j]));
    for (int j = 0; j < T; j++)
      CLOSE (got->w[s][h][i][j], j <= i ? (double)w[i][j] : 0,
             unit * fmax (1, largest) * 8, 0, "%s: weight (%d, %d) of head %d",
             c->name, i, j, h);
    for (int k = 0; k < D; k++) {
      const size_t at = (size_t)(((s * T + i) * HEADS + h) * D + k);
      wide o = 0;
      double again = 0, size = 1;
      for (int j = 0; j <= i; j++) {
        const double v = x.in[value][j * x.stride[value] + k];
        o += w[i][j] * v;
        again += got->w[s][h][i][j] * got->v[s][h][j][k];
        size += fabs ((double)w[i][j] * v);
      }
      CLOSE (op_bench_at (b, &b->out[0], at), (double)o, unit * size * 8, 0,
             "%s: output %d of row %d, head %d", c->name, k, i, h);
      CLOSE (again, op_bench_at (b, &b->out[0], at), unit * size * 8, 0,
             "%s: weights times values, %d of row %d, head %d", c->name, k, i,
             h);
    }
  }
}

START_TEST (published_formulas) {
  static numbers n;
  static seen got;
  for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
    if (!variant_use ((sl_isa)isa)) continue;
    for (int k = 0; k < CASES; k++)
      for (int dtype = SL_F32; dtype <= SL_F64; dtype++) {
        sl_observer observer = { watch, &got };
        sl_attention_attr attr;
        op_bench b;
        make (&cases[k], &n);
        start (&b, &cases[k], (sl_dtype)dtype, &attr, &n);
        b.observer = &observer;
        got.heads = 0;
        op_bench_forward (&b);
        ck_assert_int_eq (got.heads, BATCH * HEADS);
        for (int s = 0; s < BATCH; s++)
          for (int h = 0; h < HEADS; h++)
            compare (&cases[k], (sl_dtype)dtype, &b, &n, &got, s, h);
        for (int i = lengths[1] * HEADS * D; i < T * HEADS * D; i++)
          CLOSE (op_bench_at (&b, &b.out[0], (size_t)(T * HEADS * D + i)), 0, 0,
                 0, "%s: padding, element %d", cases[k].name, i);
        op_bench_free (&b);
      }
  }
}
END_TEST

/* Gradients in f32 against those in f64, over more than one stretch of kept
** states. */
START_TEST (gradients_in_single_precision) {
  static numbers n;
  for (int k = 0; k < CASES; k++) {
    sl_attention_attr attr;
    op_bench b[2];
    make (&cases[k], &n);
    for (int dtype = SL_F32; dtype <= SL_F64; dtype++) {
      start (&b[dtype], &cases[k], (sl_dtype)dtype, &attr, &n);
      op_bench_forward (&b[dtype]);
      op_bench_backward (&b[dtype], n.dout);
    }
    for (int i = 0; i < b[0].n_in - 1; i++) {
      const sl_view *want = &b[SL_F64].din[i];
      size_t size = 1;
      double largest = 0;
      for (int a = 0; a < want->ndim; a++) size *= (size_t)want->dim[a];
      for (size_t j = 0; j < size; j++)
        largest = fmax (largest, fabs (op_bench_at (&b[SL_F64], want, j)));
      ck_assert_msg (largest > 0, "%s: no gradient of input %d", cases[k].name,
                     i);
      for (size_t j = 0; j < size; j++)
        CLOSE (op_bench_at (&b[SL_F32], &b[SL_F32].din[i], j),
               op_bench_at (&b[SL_F64], want, j), 5e-6 * largest, 0,
               "%s: gradient of input %d, element %zu", cases[k].name, i, j);
    }
    for (int dtype = SL_F32; dtype <= SL_F64; dtype++)
      op_bench_free (&b[dtype]);
  }
}
END_TEST

/* Five tokens are two stretches of the states that ssm keeps. */
START_TEST (gradients_by_differences) {
  enum { FEW = 5 };
  for (int k = 0; k < CASES; k++) {
    const mix_case *c = &cases[k];
    sl_attention_attr attr = { .mechanism =
                                   row_mechanism (c->plugin, c->settings),
                               .heads = HEADS,
                               .d_head = D,
                               .scale = SCALE,
                               .visibility = { 1, 0 },
                               .has_param = c->params > 0,
                               .has_length = 1 };
    op_case o = { .op = "mixer", .note = c->name, .attr = &attr };
    for (int i = 0; i < INPUTS; i++)
      if (c->width[i])
        o.in[o.n_in++] =
            (op_input){ OP_REAL, -1, 1, 3, { BATCH, FEW, row_of (c, i) } };
    if (c->params)
      o.in[o.n_in++] = (op_input){ OP_REAL, -1, 1, 2, { HEADS, c->params } };
    o.in[o.n_in++] = (op_input){ OP_WHOLE, 0, FEW, 1, { BATCH } };
    if (c->x[2] == 1 && c->weights == retention) /* sums above 1 from row 0 */
      o.in[0].low = o.in[1].low = 1, o.in[0].high = o.in[1].high = 2;
    op_case_run (&o, c->seed ? c->seed : 11);
  }
}
END_TEST

SUITE_MAIN ("mixers", published_formulas, gradients_in_single_precision,
            gradients_by_differences)
