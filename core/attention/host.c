/* host.c - the host of a plugin, in this precision and instruction set. */
#include "attention/host.h"
#include "base/escape.h"
#include "ops/gemm.h"
#include <stdio.h>
#include <string.h>

static void log_line (int level, const char *msg) {
  char line[1024];
  snprintf (line, sizeof line, "plugin (level %d): %s", level, msg);
  sl_complain (line);
}

const sl_host SL (sl_host_services) = { sizeof (sl_host), log_line,
                                        SL (sl_gemm_host) };

sl_call SL (sl_new_call) (const sl_mechanism *m, int layer, int heads,
                          int d_head, double scale) {
  return (sl_call){ .host = &SL (sl_host_services),
                    .config = m->config,
                    .heads = heads,
                    .layer = layer,
                    .d_head = d_head,
                    .scale = scale };
}

void SL (sl_host_init) (sl_hosted *h, const sl_run *r, const sl_call_plan *p) {
  const sl_attention_attr *a = r->attr;
  const sl_view *in = &r->in[p->inputs];
  *h = (sl_hosted){ .run = r, .p = p };
  h->plugin = a->mechanism->loaded->plugin[SL_DTYPE];
  h->param = a->has_param ? in++ : NULL;
  h->length = a->has_length ? in++ : NULL;
  h->first_key = a->has_first_key ? in : NULL;
  h->call =
      SL (sl_new_call) (a->mechanism, a->layer, p->heads, p->d_head, a->scale);
  h->call.scratch = p->plugin_reals ? sl_at_scratch (r, p->plugin) : NULL;
}

void SL (sl_host_sequence) (sl_hosted *h, int sequence) {
  const sl_view *v = h->length;
  h->sequence = sequence;
  h->call.length = h->tokens =
      v ? sl_valid_tokens (((const real *)v->data)[sequence * v->stride[0]],
                           h->p->t)
        : h->p->t;
}

/* Element i of a row of (heads, params). */
static real *param_of (const sl_view *v, int head, int i) {
  return (real *)v->data + head * v->stride[0] + i * v->stride[1];
}

void SL (sl_host_head) (sl_hosted *h, int head) {
  real *to;
  h->call.head = head;
  if (!h->param) return;
  to = sl_at_scratch (h->run, h->p->param);
  for (int i = 0; i < h->p->params; i++) to[i] = *param_of (h->param, head, i);
  h->call.param = to;
}

void SL (sl_host_clear_gradient) (const sl_hosted *h) {
  if (h->p->params)
    memset (sl_host_dparam (h), 0, (size_t)h->p->params * sizeof (real));
}

void SL (sl_host_add_gradient) (const sl_hosted *h) {
  const sl_view *v = h->param ? &h->run->din[h->param - h->run->in] : NULL;
  if (!v || !v->data) return;
  for (int i = 0; i < h->p->params; i++)
    *param_of (v, h->call.head, i) += sl_host_dparam (h)[i];
}

void SL (sl_host_visible) (const sl_hosted *h, const sl_visibility *v, int i,
                           int *lo, int *hi) {
  const sl_view *f = h->first_key;
  sl_visible (v, i, h->tokens, lo, hi);
  if (f) {
    const real first =
        ((const real *)f->data)[h->sequence * f->stride[0] + i * f->stride[1]];
    const int key = sl_valid_tokens ((double)first, h->p->t);
    if (*lo < key) *lo = key;
    if (*lo >= *hi) *lo = *hi = 0;
  }
}

void SL (sl_host_observe) (const sl_hosted *h, int kv_head,
                           sl_weight_rows rows) {
  const sl_run *r = h->run;
  const sl_observer *o = r->observer;
  rows.layer = r->op_index;
  rows.sample = (long)(r->draw ? r->draw->first_sample : 0) + h->sequence;
  rows.head = h->call.head;
  rows.kv_head = kv_head;
  rows.t = h->p->t;
  rows.dtype = SL_DTYPE;
  o->rows (o->context, &rows);
}
