/* rows.c - the layout [query][key] of a block: any visibility, any row plugin.
**
** Rows of the four matrices are keys apart: column 0 is key 0. Scores of keys
** that a query does not see are computed with the others and never read. */
#include "attention/attention_internal.h"
#include <string.h>

enum { SHORT = 1024 }; /* numbers that are faster cleared than looked at */

/* S (R, N) = scale Q (R, D) K^T (D, N) */
static void scores (sl_head *h, const sl_block *b, int j, int end) {
  sl_grid kt = h->kt;
  kt.x += j * kt.col;
  sl_product (h, b->queries, end - j, h->p->call.d_head, h->attr->scale,
              sl_from (h->q, b->row), kt, 0, b->scores + j, h->p->keys);
}

/* forward: O = W V; dW (R, N) = dO (R, V) V^T (V, N) */
static void grad_weights (sl_head *h, const sl_block *b, int j, int end) {
  sl_grid vt = h->vt;
  vt.x += j * vt.col;
  sl_product (h, b->queries, end - j, h->p->d_value, 1,
              sl_from (h->dout, b->row), vt, 0, b->dweights + j, h->p->keys);
}

/* Zero the columns first .. last - 1 of rows where a query does not see the key;
** its kernel writes the others. Short rows as a whole. */
static void clear_invisible (const sl_head *h, const sl_block *b, int first,
                             int last, real *x) {
  const size_t keys = (size_t)h->p->keys, rows = (size_t)b->queries;
  if (keys * rows <= SHORT) {
    memset (x, 0, keys * rows * sizeof *x);
    return;
  }
  for (size_t r = 0; r < rows; r++, x += keys) {
    int lo = b->key_lo[r], hi = b->key_hi[r];
    if (lo >= hi) lo = hi = last;
    if (lo > first) memset (x + first, 0, (size_t)(lo - first) * sizeof *x);
    if (last > hi) memset (x + hi, 0, (size_t)(last - hi) * sizeof *x);
  }
}

/* Row i is the next of the plugin's calls; returns how many keys it sees. */
static int next_row (sl_head *h, const sl_block *b, int i) {
  h->host.call.position = b->row + i + h->attr->virtual_keys;
  h->host.call.first_key = b->key_lo[i];
  return b->key_hi[i] - b->key_lo[i];
}

/* s[j] -= slope |query - token of key first + j|, for n keys */
static void add_alibi (const sl_head *h, int query, int first, int n, real *s) {
  const int virtual_keys = h->attr->virtual_keys;
  for (int j = virtual_keys; j < n; j++) {
    const int token = first + j - virtual_keys;
    s[j] -= h->slope * (real)(query > token ? query - token : token - query);
  }
}

/* An observer reads whole rows of weights. */
static void weights (sl_head *h, const sl_block *b) {
  const int all = h->run->observer != NULL;
  clear_invisible (h, b, all ? 0 : b->lo, all ? h->p->keys : b->hi, b->weights);
  for (int i = 0; i < b->queries; i++) {
    const int n = next_row (h, b, i), lo = b->key_lo[i];
    const ptrdiff_t at = i * b->query_step + lo;
    if (n <= 0) continue;
    if (h->slope != 0) add_alibi (h, b->row + i, lo, n, b->scores + at);
    h->host.plugin->row->forward (&h->host.call, n, b->scores + at,
                                  b->weights + at);
  }
}

/* A query or output gradient that is not finite shows in its score or dW of the
** first key, a key in all its scores. */
static int is_finite (const sl_block *b) {
  real sum = 0;
  for (int i = 0; i < b->queries; i++)
    sum += 0 * b->scores[i * b->query_step + b->lo] +
           0 * b->dweights[i * b->query_step + b->lo];
  return sum == 0 && SL (sl_all_finite) (
                         b->hi - b->lo,
                         b->scores + (b->queries - 1) * b->query_step + b->lo);
}

static int weights_backward (sl_head *h, const sl_block *b) {
  const int finite = !b->partial || is_finite (b);
  clear_invisible (h, b, b->lo, b->hi, b->dscores);
  for (int i = 0; i < b->queries; i++) {
    const int n = next_row (h, b, i);
    const ptrdiff_t at = i * b->query_step + b->key_lo[i];
    if (n > 0)
      h->host.plugin->row->backward (
          &h->host.call, n, b->scores + at, b->weights + at, b->dweights + at,
          b->dscores + at, sl_host_dparam (&h->host));
  }
  return finite;
}

static void observe (const sl_head *h, const sl_block *b, int rows) {
  const size_t padding = (size_t)(rows - b->queries) * (size_t)h->p->keys;
  memset (b->weights + b->queries * b->query_step, 0,
          padding * sizeof *b->weights);
  SL (sl_observe_block) (h, b, rows, b->weights, b->scores);
}

const sl_layout SL (sl_layout_rows) = { scores, grad_weights, weights,
                                        weights_backward, observe };
