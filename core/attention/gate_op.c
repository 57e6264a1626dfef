/* gate_op.c - the gate op: a gate plugin on the output of every head.
**
** One head at a time, its tokens in order, so that the gradient of its
** parameters is one sum in a fixed order. */
#include "attention/host.h"
#include "attention/kernels.h"
#include <string.h>

/* What the calls of one run share. */
typedef struct work {
  const sl_run *run;
  const sl_gate_plan *p;
  const sl_gate_kernel *gate;
  const sl_view *param, *length; /* NULL: none */
  sl_call call;
} work;

static real *at (const sl_run *r, size_t offset) {
  return (real *)r->scratch + offset;
}

static void start (work *w, const sl_run *r, sl_gate_plan *p) {
  const sl_gate_attr *a = r->attr;
  const sl_dtype dtype = sizeof (real) == 4 ? SL_F32 : SL_F64;
  int input;
  sl_gate_plan_of (a, r->n_in, r->in, p, NULL);
  input = 1 + (p->width > 0);
  *w = (work){ .run = r, .p = p };
  w->gate = a->mechanism->loaded->plugin[dtype]->gate;
  if (a->has_param) w->param = &r->in[input++];
  if (a->has_length) w->length = &r->in[input];
  w->call.host = &SL (sl_host_services);
  w->call.config = a->mechanism->config;
  w->call.heads = p->heads;
  w->call.layer = a->layer;
  w->call.d_head = p->d;
  w->call.scale = 1;
}

/* This head's parameters, side by side. */
static void start_head (work *w, int head) {
  const sl_view *v = w->param;
  real *to = at (w->run, w->p->param);
  w->call.head = head;
  for (int i = 0; v && i < w->p->params; i++)
    to[i] = ((const real *)v->data)[head * v->stride[0] + i * v->stride[1]];
  w->call.param = v ? to : NULL;
}

static void start_sequence (work *w, int s) {
  const sl_view *v = w->length;
  w->call.length =
      v ? sl_valid_tokens (((const real *)v->data)[s * v->stride[0]], w->p->t)
        : w->p->t;
}

/* Numbers first..first+n-1 of a token: where they lie, or side by side in
** 'copy'. */
static const real *slice (const sl_view *v, int s, int i, ptrdiff_t first,
                          int n, real *copy) {
  const real *x = (const real *)v->data + s * v->stride[0] + i * v->stride[1] +
                  first * v->stride[2];
  if (v->stride[2] == 1) return x;
  for (ptrdiff_t j = 0; j < n; j++) copy[j] = x[j * v->stride[2]];
  return copy;
}

static void add_slice (const sl_view *v, int s, int i, ptrdiff_t first, int n,
                       const real *x) {
  real *to = (real *)v->data;
  if (!to) return;
  to += s * v->stride[0] + i * v->stride[1] + first * v->stride[2];
  for (ptrdiff_t j = 0; j < n; j++) to[j * v->stride[2]] += x[j];
}

/* Where a head's numbers begin in o and in z. */
static ptrdiff_t first_o (const work *w) {
  return (ptrdiff_t)w->call.head * w->p->d;
}

static ptrdiff_t first_z (const work *w) {
  return w->p->shared ? 0 : (ptrdiff_t)w->call.head * w->p->width;
}

static const real *z_of (const work *w, int s, int i) {
  const sl_gate_plan *p = w->p;
  if (p->width == 0) return NULL;
  return slice (&w->run->in[1], s, i, first_z (w), p->width, at (w->run, p->z));
}

static void forward_sequence (work *w, int s) {
  const sl_run *r = w->run;
  const sl_gate_plan *p = w->p;
  const ptrdiff_t row = (ptrdiff_t)p->heads * p->d;
  real *y = (real *)r->out[0].data + (ptrdiff_t)s * p->t * row + first_o (w);
  start_sequence (w, s);
  for (int i = 0; i < p->t; i++, y += row) {
    w->call.pos = i;
    if (i < w->call.length)
      w->gate->forward (
          &w->call, p->d,
          slice (&r->in[0], s, i, first_o (w), p->d, at (r, p->o)),
          z_of (w, s, i), y);
    else
      memset (y, 0, (size_t)p->d * sizeof *y);
  }
}

static void forward (const sl_run *r) {
  sl_gate_plan p;
  work w;
  start (&w, r, &p);
  for (int h = 0; h < p.heads; h++) {
    start_head (&w, h);
    for (int s = 0; s < p.batch; s++) forward_sequence (&w, s);
  }
}

/* do += dy y'(o), dz += dy y'(z) */
static void backward_sequence (work *w, int s) {
  const sl_run *r = w->run;
  const sl_gate_plan *p = w->p;
  real *dz = p->width ? at (r, p->dz) : NULL;
  start_sequence (w, s);
  for (int i = 0; i < w->call.length; i++) {
    w->call.pos = i;
    w->gate->backward (
        &w->call, p->d,
        slice (&r->in[0], s, i, first_o (w), p->d, at (r, p->o)),
        z_of (w, s, i),
        slice (&r->dout[0], s, i, first_o (w), p->d, at (r, p->dy)),
        at (r, p->d_o), dz, at (r, p->dparam));
    add_slice (&r->din[0], s, i, first_o (w), p->d, at (r, p->d_o));
    if (dz) add_slice (&r->din[1], s, i, first_z (w), p->width, dz);
  }
}

static void backward (const sl_run *r) {
  sl_gate_plan p;
  work w;
  if (!r->dout[0].data) return;
  start (&w, r, &p);
  for (int h = 0; h < p.heads; h++) {
    const sl_view *v = w.param ? &r->din[w.param - r->in] : NULL;
    const real *sum = at (r, p.dparam);
    start_head (&w, h);
    memset (at (r, p.dparam), 0, (size_t)p.params * sizeof (real));
    for (int s = 0; s < p.batch; s++) backward_sequence (&w, s);
    for (int i = 0; v && v->data && i < p.params; i++)
      ((real *)v->data)[h * v->stride[0] + i * v->stride[1]] += sum[i];
  }
}

SL_OP (gate, .min_in = 1, .max_in = 4, .attr_size = sizeof (sl_gate_attr),
       .shapes = sl_gate_shapes, .forward = forward, .backward = backward);
