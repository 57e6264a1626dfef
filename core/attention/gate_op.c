/* gate_op.c - the gate op: a gate plugin on the output of every head.
**
** One head at a time, its tokens in order, so that the gradient of its
** parameters is one sum in a fixed order. */
#include "attention/host.h"
#include <string.h>

typedef struct work {
  sl_hosted host;
  const sl_run *run;
  const sl_gate_plan *p;
  const sl_gate_kernel *gate;
} work;

static void start (work *w, const sl_run *r, sl_gate_plan *p) {
  sl_gate_plan_of (r->attr, r->n_in, r->in, p, NULL);
  *w = (work){ .run = r, .p = p };
  SL (sl_host_init) (&w->host, r, &p->call);
  w->host.call.scale = 1;
  w->gate = w->host.plugin->gate;
}

/* The first number of the head in o and in z. */
static ptrdiff_t first_o (const work *w) {
  return (ptrdiff_t)w->host.call.head * w->p->call.d_head;
}

static ptrdiff_t first_z (const work *w) {
  return w->p->shared ? 0 : (ptrdiff_t)w->host.call.head * w->p->width;
}

static const real *z_of (const work *w, int s, int i) {
  const sl_gate_plan *p = w->p;
  if (p->width == 0) return NULL;
  return sl_head_rows (&w->run->in[1], s, i, first_z (w), 1, p->width,
                       sl_at_scratch (w->run, p->z));
}

/* y (d_head) = plugin (o (d_head), z (width)) for each token of one head; 0 past
** the sequence's length */
static void forward_sequence (work *w, int s) {
  const sl_run *r = w->run;
  const sl_gate_plan *p = w->p;
  sl_call *call = &w->host.call;
  const int d = p->call.d_head;
  const ptrdiff_t row = (ptrdiff_t)p->call.heads * d;
  real *y =
      (real *)r->out[0].data + (ptrdiff_t)s * p->call.t * row + first_o (w);
  SL (sl_host_sequence) (&w->host, s);
  for (int i = 0; i < p->call.t; i++, y += row) {
    call->position = i;
    if (i < call->length)
      w->gate->forward (call, d,
                        sl_head_rows (&r->in[0], s, i, first_o (w), 1, d,
                                      sl_at_scratch (r, p->o)),
                        z_of (w, s, i), y);
    else
      memset (y, 0, (size_t)d * sizeof *y);
  }
}

static void forward (const sl_run *r) {
  sl_gate_plan p;
  work w;
  start (&w, r, &p);
  for (int h = 0; h < p.call.heads; h++) {
    SL (sl_host_head) (&w.host, h);
    for (int s = 0; s < p.call.batch; s++) forward_sequence (&w, s);
  }
}

/* forward: y = plugin (o, z); do += dy dy/do, dz += dy dy/dz */
static void backward_sequence (work *w, int s) {
  const sl_run *r = w->run;
  const sl_gate_plan *p = w->p;
  sl_call *call = &w->host.call;
  const int d = p->call.d_head;
  real *d_o = sl_at_scratch (r, p->d_o);
  real *dz = p->width ? sl_at_scratch (r, p->dz) : NULL;
  SL (sl_host_sequence) (&w->host, s);
  for (int i = 0; i < call->length; i++) {
    call->position = i;
    w->gate->backward (call, d,
                       sl_head_rows (&r->in[0], s, i, first_o (w), 1, d,
                                     sl_at_scratch (r, p->o)),
                       z_of (w, s, i),
                       sl_head_rows (&r->dout[0], s, i, first_o (w), 1, d,
                                     sl_at_scratch (r, p->dy)),
                       d_o, dz, sl_host_dparam (&w->host));
    sl_add_head_rows (&r->din[0], s, i, first_o (w), 1, d, d_o);
    if (dz) sl_add_head_rows (&r->din[1], s, i, first_z (w), 1, p->width, dz);
  }
}

static void backward (const sl_run *r) {
  sl_gate_plan p;
  work w;
  if (!r->dout[0].data) return;
  start (&w, r, &p);
  for (int h = 0; h < p.call.heads; h++) {
    SL (sl_host_head) (&w.host, h);
    SL (sl_host_clear_gradient) (&w.host);
    for (int s = 0; s < p.call.batch; s++) backward_sequence (&w, s);
    SL (sl_host_add_gradient) (&w.host);
  }
}

SL_OP (gate, .min_in = 1, .max_in = 4, .attr_size = sizeof (sl_attention_attr),
       .shapes = sl_gate_shapes, .forward = forward, .backward = backward);
