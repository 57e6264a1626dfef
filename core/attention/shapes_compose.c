/* shapes_compose.c - shapes and buffer sizes of the gate and mixer ops. */
#include "attention/plan.h"
#include "base/memory.h"
#include <limits.h>
#include <math.h>
#include <string.h>

/* An input of the plugin: (b, t, width), or (b, t, heads * width). */
static int check_input (const char *op, const sl_mechanism *m, int i,
                        const sl_view *x, ptrdiff_t b, ptrdiff_t t, int heads,
                        int width, sl_error *e) {
  const sl_input *input = &m->inputs[i];
  const ptrdiff_t want = (ptrdiff_t)width * (input->shared ? 1 : heads);
  sl_shape_room tx;
  if (x->ndim == 3 && x->dim[0] == b && x->dim[1] == t && x->dim[2] == want)
    return 0;
  return sl_fail (
      e, "%s: input '%s' of plugin '%s' is %s; expected (%td, %td, %td)", op,
      input->name, m->loaded->name, sl_show_shape (x, &tx), b, t, want);
}

static int input_width (const char *op, const sl_mechanism *m, int i, int d,
                        int heads, sl_error *e) {
  const int width = sl_mechanism_input (m, i, d);
  if (width < 0 || width > INT_MAX / heads)
    return sl_fail (e,
                    "%s: input '%s' of plugin '%s' is too wide for heads of "
                    "width %d",
                    op, m->inputs[i].name, m->loaded->name, d);
  return width;
}

static int check_sizes (const char *op, const sl_view *x, int heads,
                        sl_error *e) {
  sl_shape_room tx;
  if (heads < 1)
    return sl_fail (e, "%s: heads is %d; expected 1 or more", op, heads);
  if (x->ndim != 3 || x->dim[0] > INT_MAX || x->dim[1] > INT_MAX / 2 ||
      x->dim[2] > INT_MAX)
    return sl_fail (e, "%s: its first input is %s; expected (b, t, width)", op,
                    sl_show_shape (x, &tx));
  return 0;
}

int sl_gate_plan_of (const sl_attention_attr *a, int n_in, const sl_view *in,
                     sl_gate_plan *p, sl_error *e) {
  const sl_mechanism *m = a->mechanism;
  size_t d, width, end = 0;
  sl_shape_room t;
  if (n_in < 1) return sl_fail (e, "gate: no input; expected o");
  if (check_sizes ("gate", &in[0], a->heads, e)) return -1;
  if (in[0].dim[2] < a->heads || in[0].dim[2] % a->heads != 0)
    return sl_fail (e,
                    "gate: o is %s; its width must be a multiple of %d, the "
                    "number of heads",
                    sl_show_shape (&in[0], &t), a->heads);
  p->call.batch = (int)in[0].dim[0];
  p->call.t = (int)in[0].dim[1];
  p->call.heads = a->heads;
  p->call.d_head = (int)in[0].dim[2] / a->heads;
  p->width = p->shared = 0;
  if (m && m->inputs->name) {
    p->width = input_width ("gate", m, 0, p->call.d_head, a->heads, e);
    p->shared = m->inputs->shared;
    if (p->width < 0) return -1;
  }
  p->call.inputs = 1 + (p->width > 0);
  d = (size_t)p->call.d_head;
  width = (size_t)p->width;
  if (sl_check_call ("gate", "gate", a, n_in, in, &p->call, e) ||
      (width && check_input ("gate", m, 0, &in[1], p->call.batch, p->call.t,
                             a->heads, p->width, e)))
    return -1;
  if (sl_reserve (&end, 1, d, &p->o) || sl_reserve (&end, 1, d, &p->dy) ||
      sl_reserve (&end, 1, d, &p->d_o) || sl_reserve (&end, 1, width, &p->z) ||
      sl_reserve (&end, 1, width, &p->dz) ||
      sl_reserve_call (&end, 0, &p->call))
    return sl_fail (e, "gate: o %s is too large", sl_show_shape (&in[0], &t));
  p->scratch = end;
  return 0;
}

int sl_gate_shapes (sl_shape_query *q, sl_error *e) {
  sl_gate_plan p;
  if (sl_gate_plan_of (q->attr, q->n_in, q->in, &p, e)) return -1;
  q->n_out = 1;
  q->out[0] = q->in[0];
  q->scratch = p.scratch;
  return 0;
}

static int check_options (const sl_attention_attr *a, sl_error *e) {
  const sl_visibility *v = &a->visibility;
  const char *name = a->mechanism->loaded->name;
  if (a->d_head < 1)
    return sl_fail (e, "mixer: d_head is %d; expected 1 or more", a->d_head);
  if (!isfinite (a->scale))
    return sl_fail (e, "mixer: scale is %g; expected a finite number",
                    a->scale);
  if ((a->mechanism->loaded->plugin[SL_F64]->properties & SL_CAUSAL_ONLY) &&
      (!v->causal || v->window))
    return sl_fail (e,
                    "mixer: plugin '%s' does causal attention without a window "
                    "only; %s was asked for",
                    name, v->causal ? "a window" : "causal = false");
  return 0;
}

/* Widths and places of the plugin's inputs; returns how many the op has, or
** -1. */
static int place_inputs (const sl_attention_attr *a, int n_in,
                         const sl_view *in, sl_mixer_plan *p, sl_error *e) {
  const sl_mechanism *m = a->mechanism;
  int n = 0;
  p->inputs = sl_plugin_inputs (m->loaded->plugin[SL_F64]);
  for (int i = 0; i < p->inputs; i++) {
    const int width = input_width ("mixer", m, i, a->d_head, a->heads, e);
    if (width < 0) return -1;
    p->in[i].width = width;
    p->in[i].shared = m->inputs[i].shared;
    p->in[i].input = width ? n++ : -1;
  }
  if (n == 0)
    return sl_fail (e,
                    "mixer: the options of plugin '%s' leave out every input",
                    m->loaded->name);
  if (n_in < n)
    return sl_fail (e, "mixer: %d inputs; plugin '%s' has %d", n_in,
                    m->loaded->name, n);
  if (check_sizes ("mixer", &in[0], a->heads, e)) return -1;
  for (int i = 0; i < p->inputs; i++)
    if (p->in[i].width &&
        check_input ("mixer", m, i, &in[p->in[i].input], in[0].dim[0],
                     in[0].dim[1], a->heads, p->in[i].width, e))
      return -1;
  return n;
}

/* The input 'v', if it is as wide as the output. */
static int find_value (const sl_attention_attr *a, const sl_mixer_plan *p) {
  for (int i = 0; i < p->inputs; i++)
    if (strcmp (a->mechanism->inputs[i].name, "v") == 0 &&
        p->in[i].width == p->d_out)
      return i;
  return -1;
}

static int reserve_all (const sl_attention_attr *a, const sl_plan *own,
                        sl_mixer_plan *p) {
  const size_t t = (size_t)p->call.t, d_out = (size_t)p->d_out;
  const int shows =
      a->mechanism->loaded->plugin[SL_F64]->mixer->weights != NULL;
  size_t all, end = 0;
  for (int i = 0; i < p->inputs; i++)
    if (sl_reserve (&end, t, (size_t)p->in[i].width, &p->in[i].x) ||
        sl_reserve (&end, t, (size_t)p->in[i].width, &p->in[i].dx))
      return -1;
  if (sl_reserve (&end, 1, t, &p->lo) || sl_reserve (&end, 1, t, &p->hi) ||
      sl_reserve (&end, t, d_out, &p->out) ||
      sl_reserve (&end, t, d_out, &p->dout) ||
      sl_reserve (&end, shows ? t : 0, t, &p->weights) ||
      sl_reserve_call (&end, own->scratch, &p->call))
    return -1;
  p->scratch = end;
  p->saved = 0;
  return sl_reserve (&p->saved, 1, own->saved, &end) ||
                 sl_size_mul (p->saved, (size_t)p->call.heads, &all) ||
                 sl_size_mul (all, (size_t)p->call.batch, &all)
             ? -1
             : 0;
}

int sl_mixer_plan_of (const sl_attention_attr *a, sl_dtype dtype, int n_in,
                      const sl_view *in, sl_mixer_plan *p, sl_error *e) {
  const sl_mechanism *m = a->mechanism;
  sl_plan own;
  p->call.heads = a->heads;
  p->call.d_head = a->d_head;
  p->call.inputs = 0;
  if (!m || !m->loaded->plugin[SL_F64]->mixer)
    return sl_check_call ("mixer", "mixer", a, n_in, in, &p->call, e);
  if (a->heads < 1)
    return sl_fail (e, "mixer: heads is %d; expected 1 or more", a->heads);
  if (check_options (a, e)) return -1;
  p->call.inputs = place_inputs (a, n_in, in, p, e);
  if (p->call.inputs < 0) return -1;
  p->call.batch = (int)in[0].dim[0];
  p->call.t = (int)in[0].dim[1];
  if (sl_check_call ("mixer", "mixer", a, n_in, in, &p->call, e) ||
      sl_mechanism_ask (m, dtype, a->d_head, p->call.t, &own, e))
    return -1;
  if (own.d_out > INT_MAX / a->heads)
    return sl_fail (e, "mixer: %d heads of width %d are too wide", a->heads,
                    own.d_out);
  p->d_out = own.d_out;
  p->value = find_value (a, p);
  if (reserve_all (a, &own, p))
    return sl_fail (e,
                    "mixer: the buffers of plugin '%s' for %d tokens do not "
                    "fit in memory",
                    m->loaded->name, p->call.t);
  return 0;
}

int sl_mixer_shapes (sl_shape_query *q, sl_dtype dtype, sl_error *e) {
  sl_mixer_plan p;
  if (sl_mixer_plan_of (q->attr, dtype, q->n_in, q->in, &p, e)) return -1;
  q->n_out = 1;
  q->out[0].ndim = 3;
  q->out[0].dim[0] = p.call.batch;
  q->out[0].dim[1] = p.call.t;
  q->out[0].dim[2] = (ptrdiff_t)p.call.heads * p.d_out;
  q->saved = p.saved * (size_t)p.call.heads * (size_t)p.call.batch;
  q->scratch = p.scratch;
  return 0;
}
