/* shapes.c - shapes and buffer sizes of the attention layer's ops. */
#include "attention/plan.h"
#include "base/memory.h"
#include "base/number.h"
#include <limits.h>
#include <math.h>
#include <string.h>

/* 16 reals are at least 64 bytes. */
int sl_reserve (size_t *end, size_t rows, size_t columns, size_t *at) {
  const size_t most = SIZE_MAX / 16 - 16;
  size_t n;
  if (sl_size_mul (rows, columns, &n) || *end > most || n > most - *end)
    return -1;
  *at = *end;
  *end += sl_round_up (n, 16);
  return 0;
}

const char *sl_show_shape (const sl_view *v, sl_shape_room *room) {
  return sl_shape_text (v->ndim, v->dim, room->text, sizeof room->text);
}

int sl_reserve_call (size_t *end, size_t plugin_reals, sl_call_plan *p) {
  p->plugin_reals = plugin_reals;
  return sl_reserve (end, 1, (size_t)p->params, &p->param) ||
                 sl_reserve (end, 1, (size_t)p->params, &p->dparam) ||
                 sl_reserve (end, 1, plugin_reals, &p->plugin)
             ? -1
             : 0;
}

/* An optional input must be (rows, columns), or (rows) if columns is 0. */
static int check_optional (const char *op, const char *name, const sl_view *v,
                           ptrdiff_t rows, ptrdiff_t columns, const char *why,
                           sl_error *e) {
  const ptrdiff_t want[2] = { rows, columns };
  const int ndim = columns ? 2 : 1;
  sl_shape_room t, tw;
  if (v->ndim == ndim && v->dim[0] == rows &&
      (ndim == 1 || v->dim[1] == columns))
    return 0;
  return sl_fail (e, "%s: %s is %s; expected %s, one a %s", op, name,
                  sl_show_shape (v, &t),
                  sl_shape_text (ndim, want, tw.text, sizeof tw.text), why);
}

int sl_check_call (const char *op, const char *shape,
                   const sl_attention_attr *a, int n_in, const sl_view *in,
                   sl_call_plan *p, sl_error *e) {
  const sl_mechanism *m = a->mechanism;
  const int wanted = p->inputs + (a->has_param != 0) + (a->has_length != 0) +
                     (a->has_first_key != 0);
  const sl_view *v = &in[p->inputs];
  const char *name;
  sl_shape_room t;
  if (!m) return sl_fail (e, "%s: no mechanism given", op);
  name = m->loaded->name;
  if (strcmp (sl_plugin_shape (m->loaded->plugin[SL_F64]), shape) != 0)
    return sl_fail (e, "%s: plugin '%s' is a %s; expected a %s", op, name,
                    sl_plugin_shape (m->loaded->plugin[SL_F64]), shape);
  if (a->visibility.window < 0)
    return sl_fail (e, "%s: window is %d; expected 0 (none) or more", op,
                    a->visibility.window);
  p->params = sl_mechanism_params (m, p->d_head);
  if (p->params < 0)
    return sl_fail (e,
                    "%s: plugin '%s' has too many parameters for heads of "
                    "width %d",
                    op, name, p->d_head);
  if (n_in != wanted)
    return sl_fail (e, "%s: %d inputs; expected %d", op, n_in, wanted);
  if ((p->params > 0) != (a->has_param != 0))
    return sl_fail (e,
                    p->params ? "%s: plugin '%s' has %d parameters a head; "
                                "give them as param"
                              : "%s: plugin '%s' has no parameters; param was "
                                "given",
                    op, name, p->params);
  if (a->has_param &&
      (v->ndim != 2 || v->dim[0] != p->heads || v->dim[1] != p->params))
    return sl_fail (e, "%s: param is %s; plugin '%s' expects (%d, %d)", op,
                    sl_show_shape (v, &t), name, p->heads, p->params);
  v += a->has_param != 0;
  if (a->has_length &&
      check_optional (op, "length", v, p->batch, 0, "sequence", e))
    return -1;
  v += a->has_length != 0;
  return a->has_first_key
             ? check_optional (op, "first_key", v, p->batch, p->t, "query", e)
             : 0;
}

static int check_heads (const sl_attention_attr *a, sl_error *e) {
  if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads != 0)
    return sl_fail (e,
                    "attention: %d heads on %d key/value heads; expected a "
                    "multiple of 1 or more",
                    a->heads, a->kv_heads);
  if (a->d_head < 1)
    return sl_fail (e, "attention: d_head is %d; expected 1 or more",
                    a->d_head);
  if (!isfinite (a->scale))
    return sl_fail (e, "attention: scale is %g; expected a finite number",
                    a->scale);
  if (a->virtual_keys < 0 || a->virtual_keys > 1 << 16)
    return sl_fail (e, "attention: virtual_keys is %d; expected 0 to %d",
                    a->virtual_keys, 1 << 16);
  if (a->virtual_keys && a->has_first_key)
    return sl_fail (e, "attention: first_key does not go with virtual_keys");
  if (a->virtual_keys && a->visibility.window)
    return sl_fail (e, "attention: virtual_keys do not go with a window");
  if (a->recompute_from < 0 || a->block < 0)
    return sl_fail (e, "attention: %s is %d; expected 0 (default) or more",
                    a->block < 0 ? "block" : "recompute_from",
                    a->block < 0 ? a->block : a->recompute_from);
  return 0;
}

static int check_shapes (const sl_attention_attr *a, int n_in,
                         const sl_view *in, sl_error *e) {
  const sl_view *q = &in[0], *k = &in[1], *v = &in[2];
  sl_shape_room tq, tk, tv;
  if (n_in < 3)
    return sl_fail (e, "attention: %d inputs; expected q, k, v", n_in);
  if (q->ndim != 3 || k->ndim != 3 || v->ndim != 3 || k->dim[0] != q->dim[0] ||
      v->dim[0] != q->dim[0] || k->dim[1] - a->virtual_keys != q->dim[1] ||
      v->dim[1] != k->dim[1])
    return sl_fail (e,
                    a->virtual_keys
                        ? "attention: q %s, k %s, v %s; expected (b, t, "
                          "width) with equal b, and %d more rows in k "
                          "and v than in q"
                        : "attention: q %s, k %s, v %s; expected (b, t, "
                          "width) with equal b and t",
                    sl_show_shape (q, &tq), sl_show_shape (k, &tk),
                    sl_show_shape (v, &tv), a->virtual_keys);
  if (q->dim[2] != (ptrdiff_t)a->heads * a->d_head ||
      k->dim[2] != (ptrdiff_t)a->kv_heads * a->d_head)
    return sl_fail (e,
                    "attention: q %s, k %s; %d heads and %d key/value heads "
                    "of width %d expect widths %td and %td",
                    sl_show_shape (q, &tq), sl_show_shape (k, &tk), a->heads,
                    a->kv_heads, a->d_head, (ptrdiff_t)a->heads * a->d_head,
                    (ptrdiff_t)a->kv_heads * a->d_head);
  if (v->dim[2] < 1 || v->dim[2] % a->kv_heads != 0)
    return sl_fail (e,
                    "attention: v %s; its width must be a multiple of %d, "
                    "the number of key/value heads",
                    sl_show_shape (v, &tv), a->kv_heads);
  if (q->dim[0] > INT_MAX || q->dim[1] > INT_MAX / 2 || v->dim[2] > INT_MAX)
    return sl_fail (e, "attention: q %s is too large", sl_show_shape (q, &tq));
  return 0;
}

/* As many queries as keep the four (block, T) buffers in the second-level cache,
** but enough that a key is read for several queries. */
static int choose_block (const sl_attention_attr *a, int t) {
  int rows = a->block ? a->block : SL_MAX_BLOCK_ROWS;
  if (!a->block)
    while (rows > 8 && (long)rows * t > 1L << 15) rows /= 2;
  if (rows > SL_MAX_BLOCK_ROWS) rows = SL_MAX_BLOCK_ROWS;
  return sl_min_int (rows, t);
}

/* Lanes are for plugins with a block kernel, where all queries see the keys from
** the first one on, and enough tokens to fill the lanes. */
static int use_lanes (const sl_attention_attr *a, int t) {
  return a->mechanism->loaded->plugin[SL_F64]->block &&
         a->visibility.window == 0 && !a->has_first_key &&
         t >= SL_LANES_MIN_TOKENS && t <= SL_LANES_MAX_TOKENS;
}

/* Blocks that share a tile of keys: a group has a larger scratch, which pays
** where the keys do not stay in the cache. */
static int choose_group (const sl_attention_attr *a, int keys) {
  if (!a->block) return keys >= SL_GROUP_MIN_KEYS ? SL_BLOCKS_PER_GROUP : 1;
  if (a->block < 2 * SL_QUERIES) return 1;
  return a->block / SL_QUERIES < SL_BLOCKS_PER_GROUP ? a->block / SL_QUERIES
                                                     : SL_BLOCKS_PER_GROUP;
}

/* The scratch of a block's products: the largest of the five. */
static int reserve_product (const sl_attention_plan *p,
                            sl_gemm_strided_scratch product, size_t *end,
                            size_t *at) {
  const ptrdiff_t m = p->block, t = p->keys, d = p->call.d_head, v = p->d_value;
  const size_t sizes[5] = { product (m, t, d), product (m, t, v),
                            product (m, d > v ? d : v, t), product (t, d, m),
                            product (t, v, m) };
  size_t most = 0;
  for (int i = 0; i < 5; i++)
    if (sizes[i] > most) most = sizes[i];
  return sl_reserve (end, 1, most, at);
}

/* Sizes that need no check. */
static void set_sizes (const sl_attention_attr *a, const sl_view *in,
                       sl_attention_plan *p) {
  const int t = (int)in[0].dim[1];
  p->call.batch = (int)in[0].dim[0];
  p->call.t = t;
  p->call.heads = a->heads;
  p->call.d_head = a->d_head;
  p->call.inputs = 3;
  p->kv_heads = a->kv_heads;
  p->d_value = (int)(in[2].dim[2] / a->kv_heads);
  p->keys = t + a->virtual_keys;
}

/* Layout and buffers, except that of products, which is last. */
static int lay_out (const sl_attention_attr *a, sl_attention_plan *p) {
  const size_t t = (size_t)p->call.t, keys = (size_t)p->keys;
  const size_t d = (size_t)p->call.d_head, dv = (size_t)p->d_value;
  size_t rows, group, transposed, gathered, end = 0;
  p->lanes = use_lanes (a, p->call.t);
  p->block = p->lanes ? SL_QUERIES : choose_block (a, p->call.t);
  p->group = p->lanes ? choose_group (a, p->keys) : 1;
  p->gathered = p->lanes && p->call.t >= SL_GATHER_MIN_TOKENS;
  p->recompute = p->call.t >= (a->recompute_from ? a->recompute_from
                                                 : SL_RECOMPUTE_MIN_TOKENS);
  rows = (size_t)p->block;
  group = rows * (size_t)p->group;
  gathered = p->gathered ? keys : 0;
  p->saved = p->saved_scores = 0;
  if (!p->recompute &&
      (sl_size_mul (p->lanes ? sl_round_up (t, rows) : t, keys,
                    &p->saved_scores) ||
       sl_size_mul (p->saved_scores, 2 * (size_t)p->call.heads, &p->saved) ||
       sl_size_mul (p->saved, (size_t)p->call.batch, &p->saved)))
    return -1;
  /* an odd number of cache lines: columns do not fall on one another */
  p->ld = (ptrdiff_t)sl_round_up (keys, 16);
  if (p->ld / 16 % 2 == 0) p->ld += 16;
  transposed = p->lanes ? group : (size_t)p->ld;
  if (sl_reserve (&end, transposed, d, &p->kt) ||
      sl_reserve (&end, transposed, dv, &p->vt) ||
      sl_reserve (&end, gathered, d, &p->k) ||
      sl_reserve (&end, gathered, dv, &p->v) ||
      sl_reserve (&end, t, d, &p->dq) || sl_reserve (&end, keys, d, &p->dk) ||
      sl_reserve (&end, keys, dv, &p->dv) ||
      sl_reserve (&end, group, keys, &p->scores) ||
      sl_reserve (&end, group, keys, &p->weights) ||
      sl_reserve (&end, group, keys, &p->dscores) ||
      sl_reserve (&end, rows, keys, &p->dweights) ||
      sl_reserve_call (&end, keys, &p->call))
    return -1;
  p->product = p->scratch = end;
  return 0;
}

/* Fill p from attributes and input shapes, which must fit. */
static int plan_of (const sl_attention_attr *a, int n_in, const sl_view *in,
                    sl_gemm_strided_scratch product, sl_attention_plan *p,
                    sl_error *e) {
  if (check_heads (a, e) || check_shapes (a, n_in, in, e)) return -1;
  set_sizes (a, in, p);
  if (sl_check_call ("attention", "row", a, n_in, in, &p->call, e)) return -1;
  if (lay_out (a, p) || reserve_product (p, product, &p->scratch, &p->product))
    return sl_fail (e,
                    "attention: %d sequences of %d tokens of width %d and %d "
                    "do not fit in memory",
                    p->call.batch, p->call.t, p->call.d_head, p->d_value);
  return 0;
}

void sl_attention_plan_again (const sl_attention_attr *a, const sl_view *in,
                              sl_attention_plan *p) {
  set_sizes (a, in, p);
  p->call.params = sl_mechanism_params (a->mechanism, a->d_head);
  lay_out (a, p);
}

int sl_attention_shapes (sl_shape_query *q, sl_gemm_strided_scratch product,
                         sl_error *e) {
  const sl_attention_attr *a = q->attr;
  sl_attention_plan p;
  if (plan_of (a, q->n_in, q->in, product, &p, e)) return -1;
  q->n_out = 1;
  q->out[0].ndim = 3;
  q->out[0].dim[0] = p.call.batch;
  q->out[0].dim[1] = p.call.t;
  q->out[0].dim[2] = (ptrdiff_t)p.call.heads * p.d_value;
  q->saved = p.saved;
  q->scratch = p.scratch;
  return 0;
}

int sl_row_weights_plan_of (const sl_attention_attr *a, int n_in,
                            const sl_view *in, sl_row_weights_plan *p,
                            sl_error *e) {
  const sl_view *s = &in[0];
  size_t t, end = 0;
  sl_shape_room ts;
  if (n_in < 1 || s->ndim != 4 || s->dim[2] != s->dim[3])
    return sl_fail (e, "row_weights: scores are %s; expected (b, h, t, t)",
                    n_in < 1 ? "missing" : sl_show_shape (s, &ts));
  if (s->dim[0] > INT_MAX || s->dim[1] > INT_MAX || s->dim[2] > INT_MAX / 2)
    return sl_fail (e, "row_weights: scores %s are too large",
                    sl_show_shape (s, &ts));
  p->call.batch = (int)s->dim[0];
  p->call.heads = (int)s->dim[1];
  p->call.t = (int)s->dim[2];
  p->call.d_head = a->d_head;
  p->call.inputs = 1;
  if (sl_check_call ("row_weights", "row", a, n_in, in, &p->call, e)) return -1;
  t = (size_t)p->call.t;
  if (sl_reserve (&end, 1, t, &p->scores) ||
      sl_reserve (&end, 1, t, &p->weights) ||
      sl_reserve (&end, 1, t, &p->dscores) ||
      sl_reserve (&end, 1, t, &p->dweights) ||
      sl_reserve_call (&end, t, &p->call))
    return sl_fail (e, "row_weights: scores %s are too large",
                    sl_show_shape (s, &ts));
  p->scratch = end;
  return 0;
}

int sl_row_weights_shapes (sl_shape_query *q, sl_error *e) {
  sl_row_weights_plan p;
  if (sl_row_weights_plan_of (q->attr, q->n_in, q->in, &p, e)) return -1;
  q->n_out = 1;
  q->out[0] = q->in[0];
  q->scratch = p.scratch;
  return 0;
}

int sl_rope_shapes (sl_shape_query *q, sl_error *e) {
  const sl_rope_attr *a = q->attr;
  const sl_view *x = &q->in[0];
  const int rotated = a->rotated ? a->rotated : a->d_head;
  sl_shape_room tx;
  if (a->d_head < 2 || (!a->rotated && a->d_head % 2))
    return sl_fail (e, "rope: d_head is %d; expected an even number from 2",
                    a->d_head);
  if (rotated < 2 || rotated % 2 || rotated > a->d_head)
    return sl_fail (e,
                    "rope: rotated is %d; expected an even number from 2 to "
                    "d_head, which is %d",
                    rotated, a->d_head);
  if (!(a->base > 0) || !isfinite (a->base))
    return sl_fail (e, "rope: base is %g; expected a finite number above 0",
                    a->base);
  if (!(a->magnitude >= 0) || !isfinite (a->magnitude))
    return sl_fail (e,
                    "rope: magnitude is %g; expected a finite number above 0",
                    a->magnitude);
  if (a->pairs != SL_ROPE_INTERLEAVED && a->pairs != SL_ROPE_HALF)
    return sl_fail (e, "rope: pairs is %d; expected interleaved or half",
                    (int)a->pairs);
  if (x->ndim != 3 || x->dim[2] % a->d_head)
    return sl_fail (e, "rope: x is %s; expected (b, t, heads * %d)",
                    sl_show_shape (x, &tx), a->d_head);
  if (q->n_in != 1 + (a->has_divisors != 0) + (a->has_positions != 0))
    return sl_fail (e, "rope: got %d inputs, the flags ask for %d", q->n_in,
                    1 + (a->has_divisors != 0) + (a->has_positions != 0));
  if (a->has_divisors && (q->in[1].ndim != 1 || q->in[1].dim[0] != rotated / 2))
    return sl_fail (e, "rope: divisors are %s; expected (%d), one for a pair",
                    sl_show_shape (&q->in[1], &tx), rotated / 2);
  if (a->has_positions) {
    const sl_view *p = &q->in[q->n_in - 1];
    if (p->ndim != 2 || p->dim[0] != x->dim[0] || p->dim[1] != x->dim[1])
      return sl_fail (e, "rope: positions are %s; expected (%td, %td)",
                      sl_show_shape (p, &tx), x->dim[0], x->dim[1]);
  }
  q->n_out = 1;
  q->out[0] = *x;
  q->scratch = 5 * (size_t)rotated; /* 5 doubles a pair */
  return 0;
}
