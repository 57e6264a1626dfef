/* mixer_op.c - the mixer op: a mixer plugin on one head of one sequence at a time.
**
** The plugin sees the valid tokens alone, each input as rows side by side;
** inputs that lie so already are not copied. */
#include "attention/host.h"
#include "attention/kernels.h"
#include <string.h>

enum { SMALL = 1 << 15 }; /* numbers that one thread mixers alone */

/* One sequence and head, and what the calls need. */
typedef struct work {
  const sl_run *run;
  const sl_mixer_attr *attr;
  const sl_mixer_plan *p;
  const sl_mixer_kernel *mixer;
  const sl_view *param, *length; /* NULL: none */
  sl_call call;
  sl_shape shape;
  int sequence;
  const real *in[SL_MIXER_INPUTS];
} work;

static real *at (const sl_run *r, size_t offset) {
  return (real *)r->scratch + offset;
}

static void start (work *w, const sl_run *r, sl_mixer_plan *p) {
  const sl_mixer_attr *a = r->attr;
  const sl_dtype dtype = sizeof (real) == 4 ? SL_F32 : SL_F64;
  int input = 0;
  sl_mixer_plan_of (a, dtype, r->n_in, r->in, p, NULL);
  *w = (work){ .run = r, .attr = a, .p = p };
  for (int i = 0; i < p->inputs; i++) input += p->in[i].width > 0;
  w->mixer = a->mechanism->loaded->plugin[dtype]->mixer;
  if (a->has_param) w->param = &r->in[input++];
  if (a->has_length) w->length = &r->in[input];
  w->call.host = &SL (sl_host_services);
  w->call.config = a->mechanism->config;
  w->call.scratch = at (r, p->own);
  w->call.heads = p->heads;
  w->call.layer = a->layer;
  w->call.d_head = p->d_head;
  w->call.scale = a->scale;
  w->shape.d_head = p->d_head;
  w->shape.d_out = p->d_out;
}

/* Valid tokens, and what each of them sees. */
static void start_sequence (work *w, int s) {
  const sl_view *v = w->length;
  const sl_mixer_plan *p = w->p;
  int *lo = (int *)(void *)at (w->run, p->lo);
  int *hi = (int *)(void *)at (w->run, p->hi);
  const int n =
      v ? sl_valid_tokens (((const real *)v->data)[s * v->stride[0]], p->t)
        : p->t;
  for (int i = 0; i < n; i++)
    sl_visible (&w->attr->visibility, i, n, &lo[i], &hi[i]);
  w->sequence = s;
  w->call.length = w->shape.t = n;
  w->shape.lo = lo;
  w->shape.hi = hi;
}

/* The first n rows of one head's slice of (B, T, ...): where they lie if their
** numbers lie side by side, else in 'copy'. */
static const real *rows_of (const sl_view *v, int s, ptrdiff_t first, int n,
                            int width, real *copy) {
  const real *x =
      (const real *)v->data + s * v->stride[0] + first * v->stride[2];
  if ((v->stride[2] == 1 || width == 1) && (v->stride[1] == width || n == 1))
    return x;
  for (ptrdiff_t i = 0; i < n; i++)
    for (ptrdiff_t j = 0; j < width; j++)
      copy[i * width + j] = x[i * v->stride[1] + j * v->stride[2]];
  return copy;
}

static void add_rows (const sl_view *v, int s, ptrdiff_t first, int n,
                      int width, const real *x) {
  real *to = (real *)v->data;
  if (!to) return;
  to += s * v->stride[0] + first * v->stride[2];
  for (ptrdiff_t i = 0; i < n; i++)
    for (ptrdiff_t j = 0; j < width; j++)
      to[i * v->stride[1] + j * v->stride[2]] += x[i * width + j];
}

/* Where this head begins in input i, and in the output. */
static ptrdiff_t first_in (const work *w, int i) {
  return w->p->in[i].shared ? 0 : (ptrdiff_t)w->call.head * w->p->in[i].width;
}

static ptrdiff_t first_out (const work *w) {
  return (ptrdiff_t)w->call.head * w->p->d_out;
}

static real *saved (const work *w) {
  const size_t index =
      (size_t)w->sequence * (size_t)w->p->heads + (size_t)w->call.head;
  return (real *)w->run->saved + index * w->p->saved;
}

static void start_head (work *w, int head) {
  const sl_run *r = w->run;
  const sl_mixer_plan *p = w->p;
  const sl_view *v = w->param;
  real *to = at (r, p->param);
  w->call.head = head;
  for (int i = 0; v && i < p->params; i++)
    to[i] = ((const real *)v->data)[head * v->stride[0] + i * v->stride[1]];
  w->call.param = v ? to : NULL;
  for (int i = 0; i < p->inputs; i++)
    w->in[i] = p->in[i].width ? rows_of (&r->in[p->in[i].input], w->sequence,
                                         first_in (w, i), w->shape.t,
                                         p->in[i].width, at (r, p->in[i].x))
                              : NULL;
}

/* Rows n apart become rows t apart, zero past n: the last one moves first. */
static void spread (real *x, int n, int t) {
  for (ptrdiff_t i = n - 1; i >= 0; i--) {
    memmove (x + i * t, x + i * n, (size_t)n * sizeof *x);
    memset (x + i * t + n, 0, (size_t)(t - n) * sizeof *x);
  }
}

/* The weights of this head, shown as one block of rows. */
static void observe (const work *w) {
  const sl_run *r = w->run;
  const sl_mixer_plan *p = w->p;
  const sl_observer *o = r->observer;
  const int n = w->shape.t;
  sl_weight_rows rows = {
    .layer = r->ordinal,
    .sample = (long)(r->draw ? r->draw->first_sample : 0) + w->sequence,
    .head = w->call.head,
    .kv_head = w->call.head,
    .t = p->t,
    .length = n,
    .rows = n,
    .dtype = sizeof (real) == 4 ? SL_F32 : SL_F64,
    .stride = p->t,
    .weights = at (r, p->weights),
    .lo = w->shape.lo,
    .hi = w->shape.hi,
    .d_value = p->d_out
  };
  if (p->value >= 0) {
    const sl_view *v = &r->in[p->in[p->value].input];
    rows.value = (const real *)v->data + w->sequence * v->stride[0] +
                 first_in (w, p->value) * v->stride[2];
    rows.value_stride = v->stride[1];
    rows.value_step = v->stride[2];
  }
  w->mixer->weights (&w->call, &w->shape, w->in, at (r, p->weights));
  spread (at (r, p->weights), n, p->t);
  o->rows (o->context, &rows);
}

static void forward_head (work *w, int head) {
  const sl_run *r = w->run;
  const sl_mixer_plan *p = w->p;
  const ptrdiff_t row = (ptrdiff_t)p->heads * p->d_out;
  const int n = w->shape.t;
  real *y = (real *)r->out[0].data + (ptrdiff_t)w->sequence * p->t * row +
            head * (ptrdiff_t)p->d_out;
  real *out = p->heads == 1 ? y : at (r, p->out);
  start_head (w, head);
  if (n > 0)
    w->mixer->forward (&w->call, &w->shape, w->in, out,
                       p->saved ? saved (w) : NULL);
  for (ptrdiff_t i = 0; i < n && out != y; i++)
    memcpy (y + i * row, out + i * p->d_out, (size_t)p->d_out * sizeof *y);
  for (ptrdiff_t i = n; i < p->t; i++)
    memset (y + i * row, 0, (size_t)p->d_out * sizeof *y);
  if (n > 0 && r->observer && w->mixer->weights) observe (w);
}

static void forward (const sl_run *r) {
  sl_mixer_plan p;
  work w;
  start (&w, r, &p);
  for (int s = 0; s < p.batch; s++) {
    start_sequence (&w, s);
    for (int h = r->from; h < (r->to ? r->to : p.heads); h++)
      forward_head (&w, h);
  }
}

/* din += what the plugin gives; dparam is summed over tokens, then over
** sequences. */
static void backward_head (work *w, int head) {
  const sl_run *r = w->run;
  const sl_mixer_plan *p = w->p;
  const int n = w->shape.t, s = w->sequence;
  const sl_view *v = w->param ? &r->din[w->param - r->in] : NULL;
  real *din[SL_MIXER_INPUTS] = { NULL }, *sum = at (r, p->dparam);
  if (n == 0) return;
  start_head (w, head);
  for (int i = 0; i < p->inputs; i++)
    if (p->in[i].width) din[i] = at (r, p->in[i].dx);
  memset (sum, 0, (size_t)p->params * sizeof *sum);
  w->mixer->backward (
      &w->call, &w->shape, w->in,
      rows_of (&r->out[0], s, first_out (w), n, p->d_out, at (r, p->out)),
      p->saved ? saved (w) : NULL,
      rows_of (&r->dout[0], s, first_out (w), n, p->d_out, at (r, p->dout)),
      din, sum);
  for (int i = 0; i < p->inputs; i++)
    if (din[i])
      add_rows (&r->din[p->in[i].input], s, first_in (w, i), n, p->in[i].width,
                din[i]);
  for (int i = 0; v && v->data && i < p->params; i++)
    ((real *)v->data)[head * v->stride[0] + i * v->stride[1]] += sum[i];
}

static void backward (const sl_run *r) {
  sl_mixer_plan p;
  work w;
  if (!r->dout[0].data) return;
  start (&w, r, &p);
  for (int s = 0; s < p.batch; s++) {
    start_sequence (&w, s);
    for (int h = 0; h < p.heads; h++) backward_head (&w, h);
  }
}

static int shapes (sl_shape_query *q, sl_error *e) {
  return sl_mixer_shapes (q, sizeof (real) == 4 ? SL_F32 : SL_F64, e);
}

/* Heads: an observer sees the sequences of each in order. A short sequence is
** done before another thread wakes up. */
static int units (const void *attr, const sl_view *in) {
  const sl_mixer_attr *a = attr;
  const double tokens = (double)in[0].dim[0] * (double)in[0].dim[1];
  return tokens * a->heads * a->d_head < SMALL ? 1 : a->heads;
}

SL_OP (mixer, .min_in = 1, .max_in = SL_MAX_IN,
       .attr_size = sizeof (sl_mixer_attr), .shapes = shapes, .units = units,
       .forward = forward, .backward = backward);
