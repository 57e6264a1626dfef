/* shapes.c - shapes and buffer sizes of the attention layer's ops. */
#include "attention/kernels.h"
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

/* What to do with a plugin of another shape. */
static int fail_shape (const sl_mechanism_use *u, sl_error *e) {
  const sl_loaded *l = u->mechanism->loaded;
  return sl_fail (e, "%s: plugin '%s' is a %s; expected a %s", u->op, l->name,
                  sl_plugin_shape (l->plugin[SL_F64]), u->shape);
}

int sl_check_use (const sl_mechanism_use *u, int first, int n_in,
                  const sl_view *in, int *params, sl_error *e) {
  const sl_loaded *l;
  const int wanted = first + (u->has_param != 0) + (u->has_length != 0);
  sl_shape_room t;
  int at = first;
  if (!u->mechanism) return sl_fail (e, "%s: no mechanism given", u->op);
  l = u->mechanism->loaded;
  if (strcmp (sl_plugin_shape (l->plugin[SL_F64]), u->shape) != 0)
    return fail_shape (u, e);
  *params = sl_mechanism_params (u->mechanism, u->d_head);
  if (*params < 0)
    return sl_fail (e,
                    "%s: plugin '%s' has too many parameters for heads of "
                    "width %d",
                    u->op, l->name, u->d_head);
  if (n_in != wanted)
    return sl_fail (e, "%s: %d inputs; expected %d", u->op, n_in, wanted);
  if ((*params > 0) != (u->has_param != 0))
    return sl_fail (e,
                    *params ? "%s: plugin '%s' has %d parameters a head; "
                              "give them as param"
                            : "%s: plugin '%s' has no parameters; param was "
                              "given",
                    u->op, l->name, *params);
  if (u->has_param) {
    const sl_view *p = &in[at++];
    if (p->ndim != 2 || p->dim[0] != u->heads || p->dim[1] != *params)
      return sl_fail (e, "%s: param is %s; plugin '%s' expects (%d, %d)", u->op,
                      sl_show_shape (p, &t), l->name, u->heads, *params);
  }
  if (u->has_length) {
    const sl_view *p = &in[at];
    if (p->ndim != 1 || p->dim[0] != u->batch)
      return sl_fail (e, "%s: length is %s; expected (%td), one a sequence",
                      u->op, sl_show_shape (p, &t), u->batch);
  }
  return 0;
}

/* The row mechanism and its visibility. */
static int check_mechanism (const char *op, const sl_attention_attr *a,
                            int first, int n_in, const sl_view *in,
                            ptrdiff_t batch, int heads, int *params,
                            sl_error *e) {
  const sl_mechanism_use use = { op,    "row",        a->mechanism,  a->d_head,
                                 heads, a->has_param, a->has_length, batch };
  if (a->visibility.window < 0)
    return sl_fail (e, "%s: window is %d; expected 0 (none) or more", op,
                    a->visibility.window);
  return sl_check_use (&use, first, n_in, in, params, e);
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

/* The last input of 'n_in', behind 'first' others: for each query of each
** sequence the first key it may see. */
static int check_first_key (const char *op, int first, int n_in,
                            const sl_view *in, ptrdiff_t batch, ptrdiff_t t,
                            sl_error *e) {
  const sl_view *first_key = &in[n_in - 1];
  sl_shape_room tb;
  if (n_in > first && first_key->ndim == 2 && first_key->dim[0] == batch &&
      first_key->dim[1] == t)
    return 0;
  return sl_fail (e, "%s: first_key is %s; expected (%td, %td), one a query",
                  op, n_in > first ? sl_show_shape (first_key, &tb) : "missing",
                  batch, t);
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

/* As many rows as keep the four block x T buffers in the second-level cache,
** but enough that a key is read for several queries. */
static int choose_block (const sl_attention_attr *a, int t) {
  int rows = a->block ? a->block : SL_MOST_ROWS;
  if (!a->block)
    while (rows > 8 && (long)rows * t > 1L << 15) rows /= 2;
  if (rows > SL_MOST_ROWS) rows = SL_MOST_ROWS;
  return sl_min_int (rows, t);
}

/* Lanes are for plugins with a block pair, where all queries see the keys from
** the first one on, and enough of them to fill the lanes. */
static int use_lanes (const sl_attention_attr *a, int t) {
  return a->mechanism->loaded->plugin[SL_F64]->block &&
         a->visibility.window == 0 && !a->has_first_key && t >= SL_LANES_FROM &&
         t <= SL_LANES_TO;
}

/* Blocks of lanes that share a tile of keys: a team has a larger scratch, which
** pays where keys come from far away. */
static int choose_together (const sl_attention_attr *a, int keys) {
  if (!a->block) return keys >= SL_TEAM_FROM ? SL_BLOCKS_PER_GROUP : 1;
  if (a->block < 2 * SL_QUERIES) return 1;
  return a->block / SL_QUERIES < SL_BLOCKS_PER_GROUP ? a->block / SL_QUERIES
                                                     : SL_BLOCKS_PER_GROUP;
}

/* Where the products of a block find scratch: the largest of the five. */
static int reserve_product (const sl_attention_plan *p,
                            sl_gemm_strided_scratch product, size_t *end,
                            size_t *at) {
  const ptrdiff_t m = p->block, t = p->keys, d = p->d, v = p->dv;
  const size_t sizes[5] = { product (m, t, d), product (m, t, v),
                            product (m, d > v ? d : v, t), product (t, d, m),
                            product (t, v, m) };
  size_t most = 0;
  for (int i = 0; i < 5; i++)
    if (sizes[i] > most) most = sizes[i];
  return sl_reserve (end, 1, most, at);
}

/* Sizes, and where the buffers lie but for that of products, which is last. */
static int lay_out (const sl_attention_attr *a, const sl_view *in, int params,
                    sl_attention_plan *p) {
  size_t t, keys, d, dv, rows, team, ld, end = 0;
  p->params = params;
  p->batch = (int)in[0].dim[0];
  p->t = (int)in[0].dim[1];
  p->heads = a->heads;
  p->kv_heads = a->kv_heads;
  p->d = a->d_head;
  p->dv = (int)(in[2].dim[2] / a->kv_heads);
  p->keys = p->t + a->virtual_keys;
  p->lanes = use_lanes (a, p->t);
  p->block = p->lanes ? SL_QUERIES : choose_block (a, p->t);
  p->together = p->lanes ? choose_together (a, p->keys) : 1;
  p->gathered = p->lanes && p->t >= SL_GATHER_FROM;
  p->recompute =
      p->t >= (a->recompute_from ? a->recompute_from : SL_RECOMPUTE_FROM);
  t = (size_t)p->t;
  keys = (size_t)p->keys;
  d = (size_t)p->d;
  dv = (size_t)p->dv;
  rows = (size_t)p->block;
  team = rows * (size_t)p->together;
  p->saved = p->saved_scores = 0;
  if (!p->recompute &&
      (sl_size_mul (p->lanes ? sl_round_up (t, rows) : t, keys,
                    &p->saved_scores) ||
       sl_size_mul (p->saved_scores, 2 * (size_t)p->heads, &p->saved) ||
       sl_size_mul (p->saved, (size_t)p->batch, &p->saved)))
    return -1;
  /* an odd number of cache lines: columns do not fall on one another */
  ld = sl_round_up (keys, 16);
  if (ld / 16 % 2 == 0) ld += 16;
  p->ld = (ptrdiff_t)ld;
  if (sl_reserve (&end, p->lanes ? team : ld, d, &p->kt) ||
      sl_reserve (&end, p->lanes ? team : ld, dv, &p->vt) ||
      sl_reserve (&end, p->gathered ? keys : 0, d, &p->k) ||
      sl_reserve (&end, p->gathered ? keys : 0, dv, &p->v) ||
      sl_reserve (&end, t, d, &p->dq) || sl_reserve (&end, keys, d, &p->dk) ||
      sl_reserve (&end, keys, dv, &p->dv_sum) ||
      sl_reserve (&end, team, keys, &p->scores) ||
      sl_reserve (&end, team, keys, &p->weights) ||
      sl_reserve (&end, team, keys, &p->dscores) ||
      sl_reserve (&end, rows, keys, &p->dweights) ||
      sl_reserve (&end, 1, (size_t)p->params, &p->param) ||
      sl_reserve (&end, 1, (size_t)p->params, &p->dparam) ||
      sl_reserve (&end, 1, keys, &p->row))
    return -1;
  p->product = p->scratch = end;
  return 0;
}

/* Fill p from attributes and input shapes, which must fit. */
static int plan_of (const sl_attention_attr *a, int n_in, const sl_view *in,
                    sl_gemm_strided_scratch product, sl_attention_plan *p,
                    sl_error *e) {
  int params;
  if (check_heads (a, e) || check_shapes (a, n_in, in, e) ||
      (a->has_first_key && check_first_key ("attention", 3, n_in, in,
                                            in[0].dim[0], in[0].dim[1], e)) ||
      check_mechanism ("attention", a, 3, n_in - (a->has_first_key != 0), in,
                       in[0].dim[0], a->heads, &params, e))
    return -1;
  if (lay_out (a, in, params, p) ||
      reserve_product (p, product, &p->scratch, &p->product))
    return sl_fail (e,
                    "attention: %d sequences of %d tokens of width %d and %d "
                    "do not fit in memory",
                    p->batch, p->t, p->d, p->dv);
  return 0;
}

void sl_attention_plan_again (const sl_attention_attr *a, const sl_view *in,
                              sl_attention_plan *p) {
  lay_out (a, in, sl_mechanism_params (a->mechanism, a->d_head), p);
}

int sl_attention_shapes (sl_shape_query *q, sl_gemm_strided_scratch product,
                         sl_error *e) {
  const sl_attention_attr *a = q->attr;
  sl_attention_plan p;
  if (plan_of (a, q->n_in, q->in, product, &p, e)) return -1;
  q->n_out = 1;
  q->out[0].ndim = 3;
  q->out[0].dim[0] = p.batch;
  q->out[0].dim[1] = p.t;
  q->out[0].dim[2] = (ptrdiff_t)p.heads * p.dv;
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
  if ((a->has_first_key &&
       check_first_key ("row_weights", 1, n_in, in, s->dim[0], s->dim[2], e)) ||
      check_mechanism ("row_weights", a, 1, n_in - (a->has_first_key != 0), in,
                       s->dim[0], (int)s->dim[1], &p->params, e))
    return -1;
  p->batch = (int)s->dim[0];
  p->heads = (int)s->dim[1];
  p->t = (int)s->dim[2];
  t = (size_t)p->t;
  if (sl_reserve (&end, 1, t, &p->scores) ||
      sl_reserve (&end, 1, t, &p->weights) ||
      sl_reserve (&end, 1, t, &p->dscores) ||
      sl_reserve (&end, 1, t, &p->dweights) ||
      sl_reserve (&end, 1, (size_t)p->params, &p->param) ||
      sl_reserve (&end, 1, (size_t)p->params, &p->dparam) ||
      sl_reserve (&end, 1, t, &p->row))
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
