/* rope.c - rotary positions (Su et al. 2021, arXiv 2104.09864), and their
** inverse.
**
** Pair k at position p is rotated by the angle p * base^(-2k/r), or that over a
** divisor.
** Angles advance by one position as a rotation in double, restarted from sin
** and cos every RESTART positions: that adds less than 1e-14 to the rounding of
** the angle, at any distance. */
#include "attention/plan.h"
#include <math.h>
#include <sinklab/plugin.h>

enum { RESTART = 32 };

/* For each of 'pairs' frequencies: the current angle and that of one step. */
typedef struct angles {
  int pairs;
  const sl_rope_attr *attr;
  double *frequency, *cosine, *sine, *step_cosine, *step_sine;
} angles;

static int rotated (const sl_rope_attr *a) {
  return a->rotated ? a->rotated : a->d_head;
}

static angles start (const sl_run *r) {
  const sl_rope_attr *attr = r->attr;
  const sl_view *divisors = attr->has_divisors ? &r->in[1] : NULL;
  angles a = { .pairs = rotated (attr) / 2, .attr = attr };
  a.frequency = r->scratch;
  a.cosine = a.frequency + a.pairs;
  a.sine = a.cosine + a.pairs;
  a.step_cosine = a.sine + a.pairs;
  a.step_sine = a.step_cosine + a.pairs;
  for (int k = 0; k < a.pairs; k++) {
    a.frequency[k] = pow (attr->base, -2.0 * k / rotated (attr));
    if (divisors)
      a.frequency[k] /= ((const real *)divisors->data)[k * divisors->stride[0]];
    a.step_cosine[k] = cos (a.frequency[k]);
    a.step_sine[k] = sin (a.frequency[k]);
  }
  return a;
}

static void set_position (angles *a, double position) {
  for (int k = 0; k < a->pairs; k++) {
    const double angle = position * a->frequency[k];
    a->cosine[k] = cos (angle);
    a->sine[k] = sin (angle);
  }
}

/* From the angles of token i - 1 to those of token i. */
static void advance (angles *a, ptrdiff_t i) {
  if (i % RESTART == 0) {
    set_position (a, (double)(a->attr->offset + i));
    return;
  }
  for (int k = 0; k < a->pairs; k++) {
    const double c = a->cosine[k], s = a->sine[k];
    a->cosine[k] = c * a->step_cosine[k] - s * a->step_sine[k];
    a->sine[k] = s * a->step_cosine[k] + c * a->step_sine[k];
  }
}

/* One head of one token: y = or += x rotated by the angles times 'sign'. */
static void rotate (const angles *a, real sign, int add, const real *x,
                    ptrdiff_t x_step, real *y, ptrdiff_t y_step) {
  const int half = a->attr->pairs == SL_ROPE_HALF;
  const double size = a->attr->magnitude != 0 ? a->attr->magnitude : 1;
  for (ptrdiff_t k = 0; k < a->pairs; k++) {
    const ptrdiff_t i = half ? k : 2 * k, j = half ? k + a->pairs : 2 * k + 1;
    const real c = (real)(size * a->cosine[k]);
    const real s = sign * (real)(size * a->sine[k]);
    const real u = x[i * x_step] * c - x[j * x_step] * s;
    const real v = x[i * x_step] * s + x[j * x_step] * c;
    y[i * y_step] = add ? y[i * y_step] + u : u;
    y[j * y_step] = add ? y[j * y_step] + v : v;
  }
  for (ptrdiff_t i = 2 * a->pairs; i < a->attr->d_head; i++)
    y[i * y_step] = add ? y[i * y_step] + x[i * x_step] : x[i * x_step];
}

/* All heads of token i of sequence b. */
static void rotate_token (const angles *a, real sign, int add, ptrdiff_t b,
                          ptrdiff_t i, const sl_view *x, const sl_view *y) {
  const ptrdiff_t heads = x->dim[2] / a->attr->d_head;
  const real *from =
      (const real *)x->data + b * x->stride[0] + i * x->stride[1];
  real *to = (real *)y->data + b * y->stride[0] + i * y->stride[1];
  for (ptrdiff_t h = 0; h < heads; h++)
    rotate (a, sign, add, from + h * a->attr->d_head * x->stride[2],
            x->stride[2], to + h * a->attr->d_head * y->stride[2],
            y->stride[2]);
}

static void rotate_all (const sl_run *r, real sign, int add, const sl_view *x,
                        const sl_view *y) {
  const sl_rope_attr *attr = r->attr;
  const sl_view *positions =
      attr->has_positions ? &r->in[1 + (attr->has_divisors != 0)] : NULL;
  angles a = start (r);
  for (ptrdiff_t i = 0; i < x->dim[1]; i++) {
    if (!positions) advance (&a, i);
    for (ptrdiff_t b = 0; b < x->dim[0]; b++) {
      if (positions)
        set_position (&a, (double)attr->offset +
                              (double)((const real *)positions
                                           ->data)[b * positions->stride[0] +
                                                   i * positions->stride[1]]);
      rotate_token (&a, sign, add, b, i, x, y);
    }
  }
}

static void forward (const sl_run *r) {
  rotate_all (r, 1, 0, &r->in[0], &r->out[0]);
}

/* forward: y = magnitude R x; dx += magnitude R^T dy: the transpose of a rotation
** is its inverse. */
static void backward (const sl_run *r) {
  if (r->dout[0].data && r->din[0].data)
    rotate_all (r, -1, 1, &r->dout[0], &r->din[0]);
}

SL_OP (rope, .min_in = 1, .max_in = 3, .attr_size = sizeof (sl_rope_attr),
       .shapes = sl_rope_shapes, .forward = forward, .backward = backward);
