/* row_weights_op.c - the row_weights op: a row plugin on given scores, one head of
** one sequence, (T, T), at a time.
**
** Scores of keys that a query does not see are not read; their weights and
** gradients are zero. */
#include "attention/host.h"
#include <string.h>

/* Row i of one head of (B, NH, T, T). */
static real *row_of (const sl_view *v, const sl_hosted *h, int i) {
  return (real *)v->data + h->sequence * v->stride[0] +
         h->call.head * v->stride[1] + i * v->stride[2];
}

/* The keys lo .. lo + n - 1 of row i, copied to the scratch. */
static real *gather (const sl_view *v, const sl_hosted *h, int i, int lo, int n,
                     size_t scratch) {
  const real *x = row_of (v, h, i) + lo * v->stride[3];
  real *copy = sl_at_scratch (h->run, scratch);
  for (ptrdiff_t j = 0; j < n; j++) copy[j] = x[j * v->stride[3]];
  return copy;
}

/* Query i is the next of the plugin's calls; returns how many keys it sees, from
** call.first_key on. */
static int visible (sl_hosted *h, int i) {
  const sl_attention_attr *a = h->run->attr;
  int hi;
  SL (sl_host_visible) (h, &a->visibility, i, &h->call.first_key, &hi);
  h->call.position = i + a->offset;
  return hi - h->call.first_key;
}

static void forward (const sl_run *r) {
  sl_row_weights_plan p;
  sl_hosted h;
  sl_row_weights_plan_of (r->attr, r->n_in, r->in, &p, NULL);
  SL (sl_host_init) (&h, r, &p.call);
  for (int s = 0; s < p.call.batch; s++)
    for (int head = 0; head < p.call.heads; head++) {
      SL (sl_host_sequence) (&h, s);
      SL (sl_host_head) (&h, head);
      for (int i = 0; i < p.call.t; i++) {
        real *w = row_of (&r->out[0], &h, i);
        const int n = visible (&h, i), lo = h.call.first_key;
        memset (w, 0, (size_t)p.call.t * sizeof *w);
        if (n > 0)
          h.plugin->row->forward (
              &h.call, n, gather (&r->in[0], &h, i, lo, n, p.scores), w + lo);
      }
    }
}

/* forward: w = plugin (s, param); ds += dw dw/ds, dparam += dw dw/dparam */
static void backward_row (sl_hosted *h, const sl_row_weights_plan *p, int i) {
  const sl_run *r = h->run;
  const sl_view *din = &r->din[0];
  real *ds = sl_at_scratch (r, p->dscores);
  const int n = visible (h, i), lo = h->call.first_key;
  if (n == 0) return;
  h->plugin->row->backward (
      &h->call, n, gather (&r->in[0], h, i, lo, n, p->scores),
      gather (&r->out[0], h, i, lo, n, p->weights),
      gather (&r->dout[0], h, i, lo, n, p->dweights), ds, sl_host_dparam (h));
  if (din->data) {
    real *to = row_of (din, h, i) + lo * din->stride[3];
    for (ptrdiff_t j = 0; j < n; j++) to[j * din->stride[3]] += ds[j];
  }
}

static void backward (const sl_run *r) {
  sl_row_weights_plan p;
  sl_hosted h;
  if (!r->dout[0].data) return;
  sl_row_weights_plan_of (r->attr, r->n_in, r->in, &p, NULL);
  SL (sl_host_init) (&h, r, &p.call);
  for (int s = 0; s < p.call.batch; s++)
    for (int head = 0; head < p.call.heads; head++) {
      SL (sl_host_sequence) (&h, s);
      SL (sl_host_head) (&h, head);
      SL (sl_host_clear_gradient) (&h);
      for (int i = 0; i < p.call.t; i++) backward_row (&h, &p, i);
      SL (sl_host_add_gradient) (&h);
    }
}

SL_OP (row_weights, .min_in = 1, .max_in = 4,
       .attr_size = sizeof (sl_attention_attr), .shapes = sl_row_weights_shapes,
       .forward = forward, .backward = backward);
