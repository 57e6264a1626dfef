/* tiny_ops.c - operations in f64 that exist only in tests of programs. */
#include "support/tiny_ops.h"
#include <math.h>
#include <stdint.h>

atomic_int tiny_backward_calls; /* shards run on threads */

/* Element 'index' of the shape 'of' in v, which broadcasts to it. */
static double *spread (const sl_view *v, const sl_view *of, size_t index) {
  ptrdiff_t offset = 0;
  for (int i = 1; i <= of->ndim; i++) {
    size_t size = (size_t)of->dim[of->ndim - i];
    if (i <= v->ndim && v->dim[v->ndim - i] != 1)
      offset += (ptrdiff_t)(index % size) * v->stride[v->ndim - i];
    index /= size;
  }
  return (double *)v->data + offset;
}

/* blend (a, b) -> p = a * b, h = sum of p^2 / 2; saves b as it was spread. */
static int blend_infer (sl_shape_query *q, sl_error *e) {
  q->n_out = 2;
  if (sl_broadcast_shape (&q->in[0], &q->in[1], &q->out[0], e) < 0) return -1;
  q->saved = q->scratch = sl_view_count (&q->out[0]);
  return 0;
}

static void blend_forward (const sl_run *r) {
  double *p = r->out[0].data, *half = r->out[1].data, *saved = r->saved;
  *half = 0;
  for (size_t i = 0; i < sl_view_count (&r->out[0]); i++) {
    saved[i] = *spread (&r->in[1], &r->out[0], i);
    p[i] = *spread (&r->in[0], &r->out[0], i) * saved[i];
    *half += p[i] * p[i] / 2;
  }
}

static void blend_backward (const sl_run *r) {
  const double *p = r->out[0].data, *dp = r->dout[0].data,
               *dhalf = r->dout[1].data, *saved = r->saved;
  double *g = r->scratch;
  tiny_backward_calls++;
  for (size_t i = 0; i < sl_view_count (&r->out[0]); i++)
    g[i] = (dp ? dp[i] : 0) + (dhalf ? *dhalf * p[i] : 0);
  for (size_t i = 0; i < sl_view_count (&r->out[0]); i++) {
    if (r->din[0].data) *spread (&r->din[0], &r->out[0], i) += g[i] * saved[i];
    if (r->din[1].data)
      *spread (&r->din[1], &r->out[0], i) +=
          g[i] * *spread (&r->in[0], &r->out[0], i);
  }
}

/* total (a, scale) -> sum of sin (a) * scale */
static int total_infer (sl_shape_query *q, sl_error *e) {
  (void)e;
  q->out[0].ndim = 0;
  return 0;
}

static void total_forward (const sl_run *r) {
  const tiny_total_attr *a = r->attr;
  double sum = 0;
  for (size_t i = 0; i < sl_view_count (&r->in[0]); i++)
    sum += sin (sl_view_get (&r->in[0], SL_F64, i)) * a->scale;
  *(double *)r->out[0].data = sum;
}

static void add_slope (const sl_run *r, double factor) {
  const tiny_total_attr *a = r->attr;
  tiny_backward_calls++;
  for (size_t i = 0; i < sl_view_count (&r->in[0]); i++) {
    double x = sl_view_get (&r->in[0], SL_F64, i);
    double d = sl_view_get (&r->din[0], SL_F64, i);
    d += factor * cos (x) * a->scale * *(const double *)r->dout[0].data;
    sl_view_set (&r->din[0], SL_F64, i, d);
  }
}

static void total_backward (const sl_run *r) {
  add_slope (r, 1);
}
static void wrong_backward (const sl_run *r) {
  add_slope (r, 1.001);
}

/* noise () -> uniform numbers, as sl_draw says */
static int noise_infer (sl_shape_query *q, sl_error *e) {
  const ptrdiff_t *dim = q->attr;
  (void)e;
  q->out[0].ndim = 2;
  q->out[0].dim[0] = dim[0];
  q->out[0].dim[1] = dim[1];
  return 0;
}

double tiny_noise_at (const sl_draw *draw, uint32_t sample, uint32_t i) {
  uint32_t word[4],
      counter[4] = { i, draw->first_sample + sample, draw->step, 7 };
  sl_philox (draw->seed, counter, word);
  return sl_uniform53 (word[0], word[1]);
}

static void noise_forward (const sl_run *r) {
  for (ptrdiff_t s = 0; s < r->out[0].dim[0]; s++)
    for (ptrdiff_t i = 0; i < r->out[0].dim[1]; i++)
      ((double *)r->out[0].data)[s * r->out[0].dim[1] + i] =
          tiny_noise_at (r->draw, (uint32_t)s, (uint32_t)i);
}

/* order (a) -> 100 * op_index + observer's number */
static void order_forward (const sl_run *r) {
  *(double *)r->out[0].data =
      100 * r->op_index + (r->observer ? *(double *)r->observer : 0);
}

static int refuse_infer (sl_shape_query *q, sl_error *e) {
  (void)q;
  return sl_fail (e, "refuse: never");
}

const sl_op tiny_blend = { .name = "blend",
                           .min_in = 2,
                           .max_in = 2,
                           .shapes = blend_infer,
                           .forward = blend_forward,
                           .backward = blend_backward };
const sl_op tiny_total = { .name = "total",
                           .min_in = 1,
                           .max_in = 1,
                           .attr_size = sizeof (tiny_total_attr),
                           .shapes = total_infer,
                           .forward = total_forward,
                           .backward = total_backward };
const sl_op tiny_wrong = { .name = "wrong",
                           .min_in = 1,
                           .max_in = 1,
                           .attr_size = sizeof (tiny_total_attr),
                           .shapes = total_infer,
                           .forward = total_forward,
                           .backward = wrong_backward };
const sl_op tiny_noise = { .name = "noise",
                           .flags = SL_OP_NO_GRADIENT | SL_OP_SERIAL,
                           .attr_size = 2 * sizeof (ptrdiff_t),
                           .shapes = noise_infer,
                           .forward = noise_forward };
const sl_op tiny_order = { .name = "order",
                           .min_in = 1,
                           .max_in = 1,
                           .flags = SL_OP_NO_GRADIENT,
                           .shapes = total_infer,
                           .forward = order_forward };
const sl_op tiny_refuse = { .name = "refuse",
                            .max_in = 1,
                            .shapes = refuse_infer,
                            .forward = order_forward };

static const sl_op_list *private_ops (sl_dtype dtype) {
  static const sl_op *const f64[] = { &tiny_blend, &tiny_total, &tiny_wrong,
                                      &tiny_noise, &tiny_order, &tiny_refuse,
                                      NULL };
  static const sl_op *const f32[] = { NULL };
  static const sl_op_list lists[] = { { f32 }, { f64 } };
  return &lists[dtype];
}

int tiny_ops_register (void) {
  return sl_op_add_list (private_ops);
}
