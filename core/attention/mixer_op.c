/* mixer_op.c - the mixer op: a mixer plugin on one head of one sequence at a time.
**
** The plugin gets the valid tokens only, each input as contiguous rows; inputs
** with that layout are not copied. */
#include "attention/host.h"
#include <string.h>

enum { SMALL = 1 << 15 }; /* numbers of d_head that one thread mixes alone */

typedef struct work {
  sl_hosted host;
  const sl_run *run;
  const sl_mixer_plan *p;
  const sl_mixer_kernel *mixer;
  sl_shape shape;                  /* of the sequence */
  const real *in[SL_MIXER_INPUTS]; /* of the head */
} work;

static void start (work *w, const sl_run *r, sl_mixer_plan *p) {
  sl_mixer_plan_of (r->attr, SL_DTYPE, r->n_in, r->in, p, NULL);
  *w = (work){ .run = r, .p = p };
  SL (sl_host_init) (&w->host, r, &p->call);
  w->mixer = w->host.plugin->mixer;
  w->shape.d_head = p->call.d_head;
  w->shape.d_out = p->d_out;
}

/* Valid tokens, and the keys lo[i] <= j < hi[i] that each of them sees. */
static void start_sequence (work *w, int s) {
  const sl_attention_attr *a = w->run->attr;
  int *lo = (int *)(void *)sl_at_scratch (w->run, w->p->lo);
  int *hi = (int *)(void *)sl_at_scratch (w->run, w->p->hi);
  SL (sl_host_sequence) (&w->host, s);
  w->shape.t = w->host.call.length;
  for (int i = 0; i < w->shape.t; i++)
    sl_visible (&a->visibility, i, w->shape.t, &lo[i], &hi[i]);
  w->shape.lo = lo;
  w->shape.hi = hi;
}

/* The first number of this head in input i, and in the output. */
static ptrdiff_t first_in (const work *w, int i) {
  return w->p->in[i].shared ? 0
                            : (ptrdiff_t)w->host.call.head * w->p->in[i].width;
}

static ptrdiff_t first_out (const work *w) {
  return (ptrdiff_t)w->host.call.head * w->p->d_out;
}

static real *saved (const work *w) {
  const size_t index = (size_t)w->host.sequence * (size_t)w->p->call.heads +
                       (size_t)w->host.call.head;
  return w->p->saved ? (real *)w->run->saved + index * w->p->saved : NULL;
}

static void start_head (work *w, int head) {
  const sl_mixer_plan *p = w->p;
  SL (sl_host_head) (&w->host, head);
  for (int i = 0; i < p->inputs; i++)
    w->in[i] =
        p->in[i].width
            ? sl_head_rows (&w->run->in[p->in[i].input], w->host.sequence, 0,
                            first_in (w, i), w->shape.t, p->in[i].width,
                            sl_at_scratch (w->run, p->in[i].x))
            : NULL;
}

/* x (n, n) becomes (n, t) with zeros in the new columns, in place: the last row
** moves first. */
static void widen_rows (real *x, int n, int t) {
  for (ptrdiff_t i = n - 1; i >= 0; i--) {
    memmove (x + i * t, x + i * n, (size_t)n * sizeof *x);
    memset (x + i * t + n, 0, (size_t)(t - n) * sizeof *x);
  }
}

/* Show the weights of this head to the observer, as one block of rows. */
static void observe (const work *w) {
  const sl_mixer_plan *p = w->p;
  const int n = w->shape.t;
  real *weights = sl_at_scratch (w->run, p->weights);
  sl_weight_rows rows = { .length = n,
                          .rows = n,
                          .stride = p->call.t,
                          .weights = weights,
                          .lo = w->shape.lo,
                          .hi = w->shape.hi,
                          .d_value = p->d_out };
  if (p->value >= 0) {
    const sl_view *v = &w->run->in[p->in[p->value].input];
    rows.value = (const real *)v->data + w->host.sequence * v->stride[0] +
                 first_in (w, p->value) * v->stride[2];
    rows.value_stride = v->stride[1];
    rows.value_step = v->stride[2];
  }
  w->mixer->weights (&w->host.call, &w->shape, w->in, weights);
  widen_rows (weights, n, p->call.t);
  SL (sl_host_observe) (&w->host, w->host.call.head, rows);
}

/* y (T, d_out) = plugin (inputs); 0 past the sequence's length */
static void forward_head (work *w, int head) {
  const sl_run *r = w->run;
  const sl_mixer_plan *p = w->p;
  const ptrdiff_t row = (ptrdiff_t)p->call.heads * p->d_out;
  const int n = w->shape.t;
  real *y = (real *)r->out[0].data +
            (ptrdiff_t)w->host.sequence * p->call.t * row +
            head * (ptrdiff_t)p->d_out;
  real *out = p->call.heads == 1 ? y : sl_at_scratch (r, p->out);
  start_head (w, head);
  if (n > 0)
    w->mixer->forward (&w->host.call, &w->shape, w->in, out, saved (w));
  for (ptrdiff_t i = 0; i < n && out != y; i++)
    memcpy (y + i * row, out + i * p->d_out, (size_t)p->d_out * sizeof *y);
  for (ptrdiff_t i = n; i < p->call.t; i++)
    memset (y + i * row, 0, (size_t)p->d_out * sizeof *y);
  if (n > 0 && r->observer && w->mixer->weights) observe (w);
}

static void forward (const sl_run *r) {
  sl_mixer_plan p;
  work w;
  start (&w, r, &p);
  for (int s = 0; s < p.call.batch; s++) {
    start_sequence (&w, s);
    for (int h = r->from; h < (r->to ? r->to : p.call.heads); h++)
      forward_head (&w, h);
  }
}

/* forward: y = plugin (inputs, param); din += dy dy/din, dparam likewise */
static void backward_head (work *w, int head) {
  const sl_run *r = w->run;
  const sl_mixer_plan *p = w->p;
  const int n = w->shape.t, s = w->host.sequence;
  real *din[SL_MIXER_INPUTS] = { NULL };
  if (n == 0) return;
  start_head (w, head);
  for (int i = 0; i < p->inputs; i++)
    if (p->in[i].width) din[i] = sl_at_scratch (r, p->in[i].dx);
  SL (sl_host_clear_gradient) (&w->host);
  w->mixer->backward (&w->host.call, &w->shape, w->in,
                      sl_head_rows (&r->out[0], s, 0, first_out (w), n,
                                    p->d_out, sl_at_scratch (r, p->out)),
                      saved (w),
                      sl_head_rows (&r->dout[0], s, 0, first_out (w), n,
                                    p->d_out, sl_at_scratch (r, p->dout)),
                      din, sl_host_dparam (&w->host));
  for (int i = 0; i < p->inputs; i++)
    if (din[i])
      sl_add_head_rows (&r->din[p->in[i].input], s, 0, first_in (w, i), n,
                        p->in[i].width, din[i]);
  SL (sl_host_add_gradient) (&w->host);
}

static void backward (const sl_run *r) {
  sl_mixer_plan p;
  work w;
  if (!r->dout[0].data) return;
  start (&w, r, &p);
  for (int s = 0; s < p.call.batch; s++) {
    start_sequence (&w, s);
    for (int h = 0; h < p.call.heads; h++) backward_head (&w, h);
  }
}

static int shapes (sl_shape_query *q, sl_error *e) {
  return sl_mixer_shapes (q, SL_DTYPE, e);
}

/* Heads: an observer sees the sequences of each in order. A short sequence is
** done before another thread wakes up. */
static int units (const void *attr, const sl_view *in) {
  const sl_attention_attr *a = attr;
  const double tokens = (double)in[0].dim[0] * (double)in[0].dim[1];
  return tokens * a->heads * a->d_head < SMALL ? 1 : a->heads;
}

SL_OP (mixer, .min_in = 1, .max_in = SL_MAX_IN,
       .flags = SL_OP_FLUSHES | SL_OP_OBSERVED,
       .attr_size = sizeof (sl_attention_attr), .shapes = shapes,
       .units = units, .forward = forward, .backward = backward);
