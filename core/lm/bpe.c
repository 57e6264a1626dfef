/* bpe.c - byte-pair encoding: one piece of text into token ids. */
#include "lm/bpe.h"
#include "base/memory.h"
#include "base/utf8.h"
#include <stdint.h>
#include <string.h>

/* A part of the text, in a doubly linked list; n is 0 once it has been merged
** into the symbol before it. */
typedef struct sl_symbol {
  int32_t before, after; /* -1: none */
  int32_t start, n;
  int32_t id; /* -1: no token */
} symbol;

/* Two neighbours that make a token: stale when one has been joined since, which
** shows in their lengths. */
typedef struct sl_candidate {
  double cost; /* lowest first: the rank, or minus the score */
  int32_t left, right, n;
  int32_t id;
} candidate;

int sl_token_ids_add (sl_token_ids *ids, int32_t id, sl_error *e) {
  if (ids->n == ids->room) {
    const size_t room = ids->room > 0 ? 2 * ids->room : 256;
    int32_t *more = sl_alloc (room, sizeof *more);
    if (more == NULL) return sl_fail (e, "out of memory for %zu tokens", room);
    if (ids->n > 0) memcpy (more, ids->id, ids->n * sizeof *more);
    sl_free (ids->id);
    ids->id = more;
    ids->room = room;
  }
  ids->id[ids->n++] = id;
  return 0;
}

void sl_bpe_scratch_free (sl_bpe_scratch *w) {
  sl_free (w->symbol);
  sl_free (w->heap);
  *w = (sl_bpe_scratch){ 0 };
}

static int less (const candidate *a, const candidate *b) {
  if (a->cost != b->cost) return a->cost < b->cost;
  return a->left < b->left;
}

static void heap_push (candidate *heap, size_t *n, candidate c) {
  size_t i = (*n)++;
  while (i > 0 && less (&c, &heap[(i - 1) / 2])) {
    heap[i] = heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  heap[i] = c;
}

static candidate heap_pop (candidate *heap, size_t *n) {
  const candidate top = heap[0], last = heap[--*n];
  size_t i = 0;
  for (size_t child; (child = 2 * i + 1) < *n; i = child) {
    if (child + 1 < *n && less (&heap[child + 1], &heap[child])) child++;
    if (!less (&heap[child], &last)) break;
    heap[i] = heap[child];
  }
  heap[i] = last;
  return top;
}

/* A token that ordinary text may become. */
static int is_ordinary (const sl_vocabulary *v, int32_t id) {
  return v->kind[id] == SL_TOKEN_NORMAL || v->kind[id] == SL_TOKEN_ADDED ||
         v->kind[id] == SL_TOKEN_UNUSED;
}

static int32_t find (const sl_bpe *bpe, const char *text, size_t n) {
  const int32_t id = sl_vocabulary_find (bpe->vocabulary, text, n);
  if (id < 0 || (bpe->rule != NULL && bpe->rule[id] & SL_ADDED_OUTSIDE))
    return -1;
  return bpe->control || is_ordinary (bpe->vocabulary, id) ? id : -1;
}

/* Whether left and its neighbour make a token. */
static int find_candidate (const sl_bpe *bpe, const char *text, const symbol *s,
                           int32_t left, candidate *c) {
  const sl_vocabulary *v = bpe->vocabulary;
  const int32_t right = left < 0 ? -1 : s[left].after;
  int32_t rank = 0;
  if (right < 0) return 0;
  c->left = left;
  c->right = right;
  c->n = s[left].n + s[right].n;
  if (v->score != NULL) {
    c->id = find (bpe, text + s[left].start, (size_t)c->n);
    if (c->id >= 0) c->cost = -(double)v->score[c->id];
  } else {
    c->id = sl_vocabulary_pair (v, s[left].id, s[right].id, &rank);
    c->cost = rank;
  }
  return c->id >= 0;
}

/* The text as a list of characters or bytes; returns how many. */
static int32_t split_symbols (const sl_bpe *bpe, const char *text, size_t n,
                              symbol *s) {
  int32_t count = 0;
  for (size_t at = 0; at < n; count++) {
    int length = bpe->whole_bytes ? 1 : sl_utf8_length (text + at, n - at);
    if (length == 0) length = 1;
    s[count] = (symbol){
      .before = count - 1, .after = count + 1, .start = (int32_t)at, .n = length
    };
    s[count].id = bpe->whole_bytes ? bpe->byte[(unsigned char)text[at]]
                                   : find (bpe, text + at, (size_t)length);
    at += (size_t)length;
  }
  if (count > 0) s[count - 1].after = -1;
  return count;
}

/* The tokens of a symbol that is none itself. *is_unknown: whether the symbol
** before became the unknown token; then whether this one did. */
static int byte_tokens (const sl_bpe *bpe, const char *text, size_t n,
                        int *is_unknown, sl_token_ids *ids, sl_error *e) {
  const int fuse = *is_unknown && bpe->fuse_unknown;
  int all = 1;
  for (size_t i = 0; i < n; i++) all &= bpe->byte[(unsigned char)text[i]] >= 0;
  if (!all && bpe->unknown < 0)
    return sl_fail (e,
                    "the text has '%.*s' (byte 0x%02x), for which there is no "
                    "token and no unknown one",
                    (int)n, text, (unsigned char)text[0]);
  *is_unknown = !all;
  if (!all) return fuse ? 0 : sl_token_ids_add (ids, bpe->unknown, e);
  for (size_t i = 0; i < n; i++)
    if (sl_token_ids_add (ids, bpe->byte[(unsigned char)text[i]], e) < 0)
      return -1;
  return 0;
}

/* Room for a text of n bytes: every join makes at most two new candidates. */
static int reserve (sl_bpe_scratch *w, size_t n, sl_error *e) {
  if (w->symbols >= n) return 0;
  sl_bpe_scratch_free (w);
  n = n < 256 ? 256 : n;
  w->symbol = sl_alloc (n, sizeof *w->symbol);
  w->heap = sl_alloc (3 * n, sizeof *w->heap);
  if (w->symbol == NULL || w->heap == NULL)
    return sl_fail (e, "out of memory for a text of %zu bytes", n);
  w->symbols = n;
  return 0;
}

int sl_bpe_encode (const sl_bpe *bpe, sl_bpe_scratch *w, const char *text,
                   size_t n, sl_token_ids *ids, sl_error *e) {
  size_t in_heap = 0;
  int is_unknown = 0;
  symbol *s;
  candidate c;
  int32_t count;
  if (n > INT32_MAX)
    return sl_fail (e, "a text of %zu bytes is too long: at most %d", n,
                    INT32_MAX);
  if (reserve (w, n, e) < 0) return -1;
  s = w->symbol;
  count = split_symbols (bpe, text, n, s);
  for (int32_t i = 0; i < count; i++)
    if (find_candidate (bpe, text, s, i, &c)) heap_push (w->heap, &in_heap, c);
  while (in_heap > 0) {
    const candidate best = heap_pop (w->heap, &in_heap);
    symbol *left = &s[best.left], *right = &s[best.right];
    if (left->n == 0 || right->n == 0 || left->n + right->n != best.n) continue;
    left->n = best.n;
    left->id = best.id;
    left->after = right->after;
    right->n = 0;
    if (left->after >= 0) s[left->after].before = best.left;
    if (find_candidate (bpe, text, s, left->before, &c))
      heap_push (w->heap, &in_heap, c);
    if (find_candidate (bpe, text, s, best.left, &c))
      heap_push (w->heap, &in_heap, c);
  }
  for (int32_t i = count > 0 ? 0 : -1; i >= 0; i = s[i].after) {
    const char *at = text + s[i].start;
    const int status = s[i].id >= 0 ? sl_token_ids_add (ids, s[i].id, e)
                                    : byte_tokens (bpe, at, (size_t)s[i].n,
                                                   &is_unknown, ids, e);
    if (s[i].id >= 0) is_unknown = 0;
    if (status < 0) return -1;
  }
  return 0;
}
