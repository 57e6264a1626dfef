/* shapes_compose.c - shapes and buffer sizes of the gate and mixer ops. */
#include "attention/kernels.h"
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

int sl_gate_plan_of (const sl_gate_attr *a, int n_in, const sl_view *in,
                     sl_gate_plan *p, sl_error *e) {
  const sl_mechanism *m = a->mechanism;
  sl_mechanism_use use = { "gate",       "gate",        m, 1, a->heads,
                           a->has_param, a->has_length, 0 };
  size_t end = 0;
  int input;
  sl_shape_room t;
  if (n_in < 1) return sl_fail (e, "gate: no input; expected o");
  if (check_sizes ("gate", &in[0], a->heads, e)) return -1;
  if (in[0].dim[2] < a->heads || in[0].dim[2] % a->heads != 0)
    return sl_fail (e,
                    "gate: o is %s; its width must be a multiple of %d, the "
                    "number of heads",
                    sl_show_shape (&in[0], &t), a->heads);
  p->batch = (int)in[0].dim[0];
  p->t = (int)in[0].dim[1];
  p->heads = a->heads;
  p->d = (int)in[0].dim[2] / a->heads;
  p->width = p->shared = 0;
  if (m && m->inputs->name) {
    p->width = input_width ("gate", m, 0, p->d, a->heads, e);
    p->shared = m->inputs->shared;
    if (p->width < 0) return -1;
  }
  input = p->width > 0;
  use.d_head = p->d;
  use.batch = p->batch;
  if (sl_check_use (&use, 1 + input, n_in, in, &p->params, e) ||
      (input && check_input ("gate", m, 0, &in[1], p->batch, p->t, a->heads,
                             p->width, e)))
    return -1;
  if (sl_reserve (&end, 1, (size_t)p->d, &p->o) ||
      sl_reserve (&end, 1, (size_t)p->d, &p->dy) ||
      sl_reserve (&end, 1, (size_t)p->d, &p->d_o) ||
      sl_reserve (&end, 1, (size_t)p->width, &p->z) ||
      sl_reserve (&end, 1, (size_t)p->width, &p->dz) ||
      sl_reserve (&end, 1, (size_t)p->params, &p->param) ||
      sl_reserve (&end, 1, (size_t)p->params, &p->dparam))
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

static int check_mix (const sl_mixer_attr *a, sl_error *e) {
  const sl_visibility *v = &a->visibility;
  const char *name = a->mechanism->loaded->name;
  if (a->d_head < 1)
    return sl_fail (e, "mixer: d_head is %d; expected 1 or more", a->d_head);
  if (!isfinite (a->scale))
    return sl_fail (e, "mixer: scale is %g; expected a finite number",
                    a->scale);
  if (v->window < 0)
    return sl_fail (e, "mixer: window is %d; expected 0 (none) or more",
                    v->window);
  if ((a->mechanism->loaded->plugin[SL_F64]->flags & SL_CAUSAL_ONLY) &&
      (!v->causal || v->window))
    return sl_fail (e,
                    "mixer: plugin '%s' does causal attention without a window "
                    "only; %s was asked for",
                    name, v->causal ? "a window" : "causal = false");
  return 0;
}

/* The plugin's own plan for one head. */
static int ask (const sl_mixer_attr *a, sl_dtype dtype, sl_mixer_plan *p,
                sl_plan *own, sl_error *e) {
  if (sl_mechanism_ask (a->mechanism, dtype, a->d_head, p->t, own, e))
    return -1;
  if (own->d_out > INT_MAX / a->heads)
    return sl_fail (e, "mixer: %d heads of width %d are too wide", a->heads,
                    own->d_out);
  p->d_out = own->d_out;
  return 0;
}

/* Widths and places of the plugin's inputs; returns how many the op has, or
** -1. */
static int place_inputs (const sl_mixer_attr *a, int n_in, const sl_view *in,
                         sl_mixer_plan *p, sl_error *e) {
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
static int find_value (const sl_mixer_attr *a, const sl_mixer_plan *p) {
  for (int i = 0; i < p->inputs; i++)
    if (strcmp (a->mechanism->inputs[i].name, "v") == 0 &&
        p->in[i].width == p->d_out)
      return i;
  return -1;
}

static int reserve_all (const sl_mixer_attr *a, const sl_plan *own,
                        sl_mixer_plan *p) {
  const size_t t = (size_t)p->t, d_out = (size_t)p->d_out;
  const size_t params = (size_t)p->params;
  const int shows =
      a->mechanism->loaded->plugin[SL_F64]->mixer->weights != NULL;
  size_t end = 0;
  for (int i = 0; i < p->inputs; i++)
    if (sl_reserve (&end, t, (size_t)p->in[i].width, &p->in[i].x) ||
        sl_reserve (&end, t, (size_t)p->in[i].width, &p->in[i].dx))
      return -1;
  if (sl_reserve (&end, 1, t, &p->lo) || sl_reserve (&end, 1, t, &p->hi) ||
      sl_reserve (&end, t, d_out, &p->out) ||
      sl_reserve (&end, t, d_out, &p->dout) ||
      sl_reserve (&end, shows ? t : 0, t, &p->weights) ||
      sl_reserve (&end, 1, own->scratch, &p->own) ||
      sl_reserve (&end, 1, params, &p->param) ||
      sl_reserve (&end, 1, params, &p->dparam))
    return -1;
  p->scratch = end;
  p->saved = 0;
  return sl_reserve (&p->saved, 1, own->saved, &end);
}

int sl_mixer_plan_of (const sl_mixer_attr *a, sl_dtype dtype, int n_in,
                      const sl_view *in, sl_mixer_plan *p, sl_error *e) {
  sl_mechanism_use use = { "mixer",  "mixer",      a->mechanism,  a->d_head,
                           a->heads, a->has_param, a->has_length, 0 };
  sl_plan own;
  int n;
  size_t all;
  if (!a->mechanism) return sl_fail (e, "mixer: no mechanism given");
  if (!a->mechanism->loaded->plugin[SL_F64]->mixer)
    return sl_check_use (&use, 0, n_in, in, &n, e);
  if (a->heads < 1)
    return sl_fail (e, "mixer: heads is %d; expected 1 or more", a->heads);
  if (check_mix (a, e)) return -1;
  n = place_inputs (a, n_in, in, p, e);
  if (n < 0) return -1;
  p->batch = (int)in[0].dim[0];
  p->t = (int)in[0].dim[1];
  p->heads = a->heads;
  p->d_head = a->d_head;
  use.batch = p->batch;
  if (sl_check_use (&use, n, n_in, in, &p->params, e)) return -1;
  if (ask (a, dtype, p, &own, e)) return -1;
  p->value = find_value (a, p);
  if (reserve_all (a, &own, p) ||
      sl_size_mul (p->saved, (size_t)p->heads, &all) ||
      sl_size_mul (all, (size_t)p->batch, &all))
    return sl_fail (
        e,
        "mixer: what plugin '%s' needs for %d tokens does not fit in "
        "memory",
        a->mechanism->loaded->name, p->t);
  return 0;
}

int sl_mixer_shapes (sl_shape_query *q, sl_dtype dtype, sl_error *e) {
  sl_mixer_plan p;
  if (sl_mixer_plan_of (q->attr, dtype, q->n_in, q->in, &p, e)) return -1;
  q->n_out = 1;
  q->out[0].ndim = 3;
  q->out[0].dim[0] = p.batch;
  q->out[0].dim[1] = p.t;
  q->out[0].dim[2] = (ptrdiff_t)p.heads * p.d_out;
  q->saved = p.saved * (size_t)p.heads * (size_t)p.batch;
  q->scratch = p.scratch;
  return 0;
}
