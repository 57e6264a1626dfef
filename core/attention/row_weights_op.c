/* row_weights_op.c - the row_weights op: a row plugin on given scores.
**
** Scores that a query does not see are not read; their weights and gradients
** are zero. */
#include "attention/host.h"
#include "attention/kernels.h"
#include <string.h>

/* One head of one sequence, t x t. */
typedef struct map {
  const sl_run *run;
  const sl_attention_attr *attr;
  const sl_row_weights_plan *p;
  const sl_row_kernel *row;
  sl_call call;
  const real
      *first_key; /* first visible key of query i at i * first_key_step; NULL:
                     ** no limit */
  ptrdiff_t first_key_step;
} map;

static real *at (const sl_run *r, size_t offset) {
  return (real *)r->scratch + offset;
}

static void start (map *m, const sl_run *r, sl_row_weights_plan *p) {
  const sl_attention_attr *a = r->attr;
  const sl_dtype dtype = sizeof (real) == 4 ? SL_F32 : SL_F64;
  sl_row_weights_plan_of (a, r->n_in, r->in, p, NULL);
  *m = (map){ .run = r, .attr = a, .p = p };
  m->row = a->mechanism->loaded->plugin[dtype]->row;
  m->call.host = &SL (sl_host_services);
  m->call.config = a->mechanism->config;
  m->call.scratch = at (r, p->row);
  m->call.heads = p->heads;
  m->call.layer = a->layer;
  m->call.d_head = a->d_head;
  m->call.scale = a->scale;
}

/* Valid tokens of the sequence, and this head's parameters side by side. */
static void choose (map *m, int sequence, int head) {
  const sl_run *r = m->run;
  const sl_row_weights_plan *p = m->p;
  int input = 1;
  m->call.head = head;
  m->call.length = p->t;
  if (p->params) {
    const sl_view *v = &r->in[input++];
    real *to = at (r, p->param);
    for (int i = 0; i < p->params; i++)
      to[i] = ((const real *)v->data)[head * v->stride[0] + i * v->stride[1]];
    m->call.param = to;
  }
  if (m->attr->has_length) {
    const sl_view *v = &r->in[input];
    m->call.length = sl_valid_tokens (
        ((const real *)v->data)[sequence * v->stride[0]], p->t);
  }
  if (m->attr->has_first_key) {
    const sl_view *v = &r->in[r->n_in - 1];
    m->first_key = (const real *)v->data + sequence * v->stride[0];
    m->first_key_step = v->stride[1];
  }
}

/* What query i sees goes into the call; returns the number of keys. */
static int see (map *m, int i) {
  int lo, hi;
  sl_visible (&m->attr->visibility, i, m->call.length, &lo, &hi);
  if (m->first_key) {
    const int first =
        sl_valid_tokens ((double)m->first_key[i * m->first_key_step], m->p->t);
    if (lo < first) lo = first;
    if (lo > hi) lo = hi;
  }
  m->call.pos = i;
  m->call.first = lo;
  return hi - lo;
}

/* Elements first..first+n-1 of row i of one head, side by side in 'copy'. */
static void gather (const sl_view *v, int sequence, int head, int i, int first,
                    int n, real *copy) {
  const real *x = (const real *)v->data + sequence * v->stride[0] +
                  head * v->stride[1] + i * v->stride[2] + first * v->stride[3];
  for (ptrdiff_t j = 0; j < n; j++) copy[j] = x[j * v->stride[3]];
}

static real *row_of (const sl_view *v, int sequence, int head, int i) {
  return (real *)v->data + sequence * v->stride[0] + head * v->stride[1] +
         i * v->stride[2];
}

static void forward (const sl_run *r) {
  sl_row_weights_plan p;
  map m;
  start (&m, r, &p);
  for (int s = 0; s < p.batch; s++)
    for (int h = 0; h < p.heads; h++) {
      choose (&m, s, h);
      for (int i = 0; i < p.t; i++) {
        real *w = row_of (&r->out[0], s, h, i);
        int n = see (&m, i);
        memset (w, 0, (size_t)p.t * sizeof *w);
        if (n == 0) continue;
        gather (&r->in[0], s, h, i, m.call.first, n, at (r, p.scores));
        m.row->forward (&m.call, n, at (r, p.scores), w + m.call.first);
      }
    }
}

/* ds += plugin' (s, w, dw); dparam is summed over queries, then over
** sequences. */
static void backward_row (map *m, int s, int h, int i) {
  const sl_run *r = m->run;
  const sl_row_weights_plan *p = m->p;
  const sl_view *din = &r->din[0];
  real *ds = at (r, p->dscores);
  int n = see (m, i), first = m->call.first;
  if (n == 0) return;
  gather (&r->in[0], s, h, i, first, n, at (r, p->scores));
  gather (&r->out[0], s, h, i, first, n, at (r, p->weights));
  gather (&r->dout[0], s, h, i, first, n, at (r, p->dweights));
  m->row->backward (&m->call, n, at (r, p->scores), at (r, p->weights),
                    at (r, p->dweights), ds, at (r, p->dparam));
  if (din->data) {
    real *to = row_of (din, s, h, i) + first * din->stride[3];
    for (ptrdiff_t j = 0; j < n; j++) to[j * din->stride[3]] += ds[j];
  }
}

static void backward (const sl_run *r) {
  sl_row_weights_plan p;
  map m;
  if (!r->dout[0].data) return;
  start (&m, r, &p);
  for (int s = 0; s < p.batch; s++)
    for (int h = 0; h < p.heads; h++) {
      const sl_view *v = &r->din[1];
      const real *sum = at (r, p.dparam);
      choose (&m, s, h);
      memset (at (r, p.dparam), 0, (size_t)p.params * sizeof (real));
      for (int i = 0; i < p.t; i++) backward_row (&m, s, h, i);
      for (int i = 0; p.params && v->data && i < p.params; i++)
        ((real *)v->data)[h * v->stride[0] + i * v->stride[1]] += sum[i];
    }
}

SL_OP (row_weights, .min_in = 1, .max_in = 4,
       .attr_size = sizeof (sl_attention_attr), .shapes = sl_row_weights_shapes,
       .forward = forward, .backward = backward);
