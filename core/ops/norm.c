/* norm.c - layer_norm and rms_norm over the last axis.
**
**   layer_norm  y = (x - mean) / sqrt (var + eps) * gamma + beta, var biased
**               (divided by n; Ba et al. 2016)
**   rms_norm    y = x / sqrt (mean (x^2) + eps) * gamma (Zhang, Sennrich 2019)
**
** Sums run in double; the mean is kept as two reals, so that f32 loses nothing
** on rows whose mean is large beside their spread. */
#include "base/number.h"
#include "ops/ops.h"
#include "ops/walk.h"
#include <math.h>

/* Saved by forward for backward, per row. */
typedef struct moments {
  real mean, mean_low; /* the mean is their sum; 0 for rms_norm */
  real scale;          /* 1 / sqrt (... + eps) */
} moments;

/* Parts of scratch: gamma and beta as rows, rows of x, h and g (see
** backward), and sums over rows in double. */
typedef struct room {
  double *dgamma, *dbeta;
  real *gamma, *beta, *x, *h, *g;
} room;

static room room_of (const sl_run *r, ptrdiff_t n) {
  room m;
  m.dgamma = r->scratch;
  m.dbeta = m.dgamma + n;
  m.gamma = (real *)(m.dbeta + n);
  m.beta = m.gamma + n;
  m.x = m.beta + n;
  m.h = m.x + n;
  m.g = m.h + n;
  return m;
}

static int shapes (sl_shape_query *q, sl_error *e) {
  static const char *const names[] = { "x", "gamma", "beta" };
  const sl_view *x = &q->in[0];
  const sl_norm_attr *attr = q->attr;
  char text[96];
  size_t rows = 1;
  if (x->ndim < 1 || x->dim[x->ndim - 1] < 1)
    return sl_fail (e, "x has shape %s; it needs a last axis of at least 1",
                    sl_shape_text (x->ndim, x->dim, text, sizeof text));
  const ptrdiff_t n = x->dim[x->ndim - 1];
  if (!(attr->eps >= 0 && attr->eps < (double)INFINITY))
    return sl_fail (e, "eps is %g; it must be a number at or above 0",
                    attr->eps);
  for (int i = 1; i < q->n_in; i++)
    if (q->in[i].ndim != 1 || q->in[i].dim[0] != n)
      return sl_fail (
          e,
          "%s has shape %s; it must be (%td) like the last axis "
          "of x",
          names[i],
          sl_shape_text (q->in[i].ndim, q->in[i].dim, text, sizeof text), n);
  for (int i = 0; i < x->ndim - 1; i++) rows *= (size_t)x->dim[i];
  q->n_out = 1;
  q->out[0] = *x;
  q->saved = rows * sizeof (moments) / sizeof (real);
  q->scratch = (size_t)n * (2 * sizeof (double) / sizeof (real) + 5);
  return 0;
}

/* The rows of both views; their last axes are left to the caller. */
static void rows_start (sl_walk *w, const sl_view *x, const sl_view *y) {
  const sl_view vx = sl_drop_axis (x, x->ndim - 1);
  const sl_view vy = sl_drop_axis (y, y->ndim - 1);
  sl_walk_start (w, 2, (const sl_view *[]){ &vx, &vy });
}

/* Input (n) as contiguous numbers; if it is not given, n times 'other'. */
static const real *row_of (const sl_run *r, int input, ptrdiff_t n, real other,
                           real *space) {
  if (input < r->n_in)
    return sl_row_read (n, r->in[input].data, r->in[input].stride[0], space);
  for (ptrdiff_t i = 0; i < n; i++) space[i] = other;
  return space;
}

/* The sum of (x - mean)^2. */
static double spread (ptrdiff_t n, const real *x, double mean) {
  double lane[8] = { 0 };
  ptrdiff_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; k++) {
      const double d = (double)x[i + k] - mean;
      lane[k] += d * d;
    }
  for (int k = 0; i < n; i++, k++) {
    const double d = (double)x[i] - mean;
    lane[k] += d * d;
  }
  return sl_fold_neighbours (lane);
}

/* The sum of a b. */
static double dot (ptrdiff_t n, const real *a, const real *b) {
  double lane[8] = { 0 };
  ptrdiff_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; k++) lane[k] += (double)a[i + k] * (double)b[i + k];
  for (int k = 0; i < n; i++, k++) lane[k] += (double)a[i] * (double)b[i];
  return sl_fold_neighbours (lane);
}

/* x, y (..., n): y = (x - mean) scale gamma + beta with scale =
** 1 / sqrt (mean ((x - mean)^2) + eps); centred 0 (rms_norm): mean 0, beta
** 0. */
static void forward (const sl_run *r, int centred) {
  const sl_norm_attr *attr = r->attr;
  const sl_view *x = &r->in[0];
  const int last = x->ndim - 1;
  const ptrdiff_t n = x->dim[last];
  const room m = room_of (r, n);
  const real *restrict gamma = row_of (r, 1, n, 1, m.gamma);
  const real *restrict beta = row_of (r, 2, n, 0, m.beta);
  moments *saved = r->saved;
  sl_walk w;
  for (rows_start (&w, x, &r->out[0]); w.left > 0; sl_walk_next (&w), saved++) {
    const real *restrict from = sl_row_read (n, w.at[0], x->stride[last], m.x);
    real *restrict to = w.at[1];
    const double mean = centred ? sl_sum (n, from) / (double)n : 0;
    const double square = spread (n, from, mean) / (double)n;
    const real high = (real)mean, low = (real)(mean - (double)high);
    const real scale = (real)(1 / sqrt (square + attr->eps));
    for (ptrdiff_t i = 0; i < n; i++)
      to[i] = ((from[i] - high) - low) * scale * gamma[i] + beta[i];
    *saved = (moments){ high, low, scale };
  }
}

/* y = (x - mean) scale gamma + beta; with h = (x - mean) scale, g = gamma dy:
**   layer_norm  dx += scale (g - mean (g) - h mean (g h))
**   rms_norm    dx += scale (g - h mean (g h))
**   dgamma (n) += the sum over rows of dy h, dbeta (n) += the sum of dy */
static void backward (const sl_run *r, int centred) {
  const sl_view *x = &r->in[0], *dx = &r->din[0];
  const int last = x->ndim - 1;
  const ptrdiff_t n = x->dim[last], step = x->stride[last];
  const room m = room_of (r, n);
  const real *restrict gamma = row_of (r, 1, n, 1, m.gamma);
  const moments *saved = r->saved;
  const sl_view *dy = &r->dout[0];
  real *h = m.h, *g = m.g;
  sl_walk w, to;
  if (!dy->data) return;
  for (ptrdiff_t i = 0; i < n; i++) m.dgamma[i] = m.dbeta[i] = 0;
  rows_start (&w, x, dy);
  rows_start (&to, dx, dy);
  for (; w.left > 0; sl_walk_next (&w), sl_walk_next (&to), saved++) {
    const real *from = sl_row_read (n, w.at[0], step, m.x);
    const real *restrict dy_row = w.at[1];
    for (ptrdiff_t i = 0; i < n; i++) {
      h[i] = ((from[i] - saved->mean) - saved->mean_low) * saved->scale;
      m.dgamma[i] += (double)(dy_row[i] * h[i]);
      m.dbeta[i] += (double)dy_row[i];
    }
    if (!dx->data) continue;
    for (ptrdiff_t i = 0; i < n; i++) g[i] = dy_row[i] * gamma[i];
    const real mean_g = (real)(centred ? sl_sum (n, g) / (double)n : 0);
    const real mean_gh = (real)(dot (n, g, h) / (double)n);
    const ptrdiff_t dx_step = dx->stride[last];
    for (ptrdiff_t i = 0; i < n; i++)
      to.at[0][i * dx_step] += saved->scale * (g[i] - mean_g - h[i] * mean_gh);
  }
  for (int k = 1; k < r->n_in; k++) {
    const double *total = k == 1 ? m.dgamma : m.dbeta;
    real *into = r->din[k].data;
    for (ptrdiff_t i = 0; into && i < n; i++)
      into[i * r->din[k].stride[0]] += (real)total[i];
  }
}

static void layer_norm_forward (const sl_run *r) {
  forward (r, 1);
}
static void layer_norm_backward (const sl_run *r) {
  backward (r, 1);
}
static void rms_norm_forward (const sl_run *r) {
  forward (r, 0);
}
static void rms_norm_backward (const sl_run *r) {
  backward (r, 0);
}

#define EPS(default)                                                        \
  {                                                                         \
    .name = "eps", .type = SL_REAL, .offset = offsetof (sl_norm_attr, eps), \
    .def = default                                                          \
  }
static const sl_option layer_norm_options[] = { EPS (1e-5), { .name = NULL } };
static const sl_option rms_norm_options[] = { EPS (1e-6), { .name = NULL } };

SL_OP (layer_norm, .min_in = 1, .max_in = 3, .arguments = SL_ARGS_INPUTS,
       .options = layer_norm_options, .attr_size = sizeof (sl_norm_attr),
       .shapes = shapes, .forward = layer_norm_forward,
       .backward = layer_norm_backward);
SL_OP (rms_norm, .min_in = 1, .max_in = 2, .arguments = SL_ARGS_INPUTS,
       .options = rms_norm_options, .attr_size = sizeof (sl_norm_attr),
       .shapes = shapes, .forward = rms_norm_forward,
       .backward = rms_norm_backward);
