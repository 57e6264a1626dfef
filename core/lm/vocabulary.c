/* vocabulary.c - the tokens of a tokenizer, found by text; merges of two. */
#include "lm/vocabulary.h"
#include "base/memory.h"
#include <string.h>

/* The size of a table with linear probing: at most half of it is in use. */
static size_t power_of_two (size_t n) {
  size_t p = 16;
  while (p < 2 * n) p *= 2;
  return p;
}

/* FNV-1a with a seed that no file can know; the upper half is folded in. */
static uint64_t hash (const sl_vocabulary *v, const char *text, size_t n) {
  uint64_t h = v->seed;
  for (size_t i = 0; i < n; i++)
    h = (h ^ (unsigned char)text[i]) * 1099511628211u;
  return h ^ h >> 32;
}

static uint64_t hash_pair (const sl_vocabulary *v, uint64_t pair) {
  pair = (pair ^ v->seed) * 0x9e3779b97f4a7c15u;
  return pair ^ pair >> 32;
}

int sl_vocabulary_new (sl_vocabulary *v, size_t n, size_t bytes, int scores,
                       sl_error *e) {
  *v = (sl_vocabulary){ 0 };
  if (n == 0 || n > SL_MAX_TOKENS)
    return sl_fail (e, "the vocabulary has %zu tokens; expected 1 to %d", n,
                    SL_MAX_TOKENS);
  v->text = sl_alloc (bytes, 1);
  v->start = sl_alloc (n + 1, sizeof *v->start);
  v->kind = sl_alloc (n, 1);
  if (scores) v->score = sl_alloc (n, sizeof *v->score);
  if (v->text == NULL || v->start == NULL || v->kind == NULL ||
      (scores && v->score == NULL))
    return sl_fail (e, "out of memory for a vocabulary of %zu tokens", n);
  v->n = n;
  /* addresses differ from run to run: a file cannot hold tokens that all share
  ** a slot, which would make every search linear */
  v->seed = ((uint64_t)(uintptr_t)v->text ^ 14695981039346656037u) *
            0x9e3779b97f4a7c15u;
  memset (v->kind, SL_TOKEN_NORMAL, n);
  return 0;
}

void sl_vocabulary_free (sl_vocabulary *v) {
  sl_free (v->text);
  sl_free (v->start);
  sl_free (v->score);
  sl_free (v->kind);
  sl_free (v->slot);
  sl_free (v->pair);
  sl_free (v->rank);
  sl_free (v->merged);
  *v = (sl_vocabulary){ 0 };
}

void sl_vocabulary_set (sl_vocabulary *v, size_t id, const char *text,
                        size_t n) {
  if (n > 0) memcpy (v->text + v->start[id], text, n);
  v->start[id + 1] = v->start[id] + n;
  if (n > v->longest) v->longest = n;
}

const char *sl_vocabulary_text (const sl_vocabulary *v, size_t id, size_t *n) {
  *n = v->start[id + 1] - v->start[id];
  return v->text + v->start[id];
}

/* The slot of this text, or the free slot where it belongs. */
static int32_t *slot_of (const sl_vocabulary *v, const char *text, size_t n) {
  size_t i = (size_t)hash (v, text, n) & (v->slots - 1);
  for (; v->slot[i] >= 0; i = (i + 1) & (v->slots - 1)) {
    size_t k;
    const char *other = sl_vocabulary_text (v, (size_t)v->slot[i], &k);
    if (k == n && memcmp (other, text, n) == 0) break;
  }
  return &v->slot[i];
}

int sl_vocabulary_index (sl_vocabulary *v, sl_error *e) {
  v->slots = power_of_two (v->n);
  v->slot = sl_alloc (v->slots, sizeof *v->slot);
  if (v->slot == NULL)
    return sl_fail (e, "out of memory for a vocabulary of %zu tokens", v->n);
  for (size_t i = 0; i < v->slots; i++) v->slot[i] = -1;
  for (size_t id = 0; id < v->n; id++) {
    size_t n;
    const char *text = sl_vocabulary_text (v, id, &n);
    int32_t *slot = slot_of (v, text, n);
    if (*slot < 0) *slot = (int32_t)id;
  }
  return 0;
}

int32_t sl_vocabulary_find (const sl_vocabulary *v, const char *text,
                            size_t n) {
  return n == 0 || n > v->longest ? -1 : *slot_of (v, text, n);
}

/* Merges. */

int sl_vocabulary_merges (sl_vocabulary *v, size_t n, sl_error *e) {
  if (n > SL_MAX_TOKENS)
    return sl_fail (e, "the vocabulary has %zu merges; expected at most %d", n,
                    SL_MAX_TOKENS);
  v->pairs = power_of_two (n);
  v->pair = sl_alloc (v->pairs, sizeof *v->pair);
  v->rank = sl_alloc (v->pairs, sizeof *v->rank);
  v->merged = sl_alloc (v->pairs, sizeof *v->merged);
  if (v->pair == NULL || v->rank == NULL || v->merged == NULL)
    return sl_fail (e, "out of memory for %zu merges", n);
  for (size_t i = 0; i < v->pairs; i++) v->merged[i] = -1;
  return 0;
}

static size_t pair_slot (const sl_vocabulary *v, uint64_t pair) {
  size_t i = (size_t)hash_pair (v, pair) & (v->pairs - 1);
  while (v->merged[i] >= 0 && v->pair[i] != pair) i = (i + 1) & (v->pairs - 1);
  return i;
}

static uint64_t pair_of (int32_t left, int32_t right) {
  return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

int sl_vocabulary_merge (sl_vocabulary *v, size_t rank, const char *left,
                         size_t n_left, const char *right, size_t n_right,
                         sl_error *e) {
  char both[1024];
  const struct {
    const char *text;
    size_t n;
  } part[] = { { left, n_left },
               { right, n_right },
               { both, n_left + n_right } };
  int32_t id[3];
  size_t i;
  if (n_left > sizeof both || n_right > sizeof both - n_left)
    return sl_fail (e, "merge %zu makes a token of more than %zu bytes",
                    rank + 1, sizeof both);
  memcpy (both, left, n_left);
  memcpy (both + n_left, right, n_right);
  for (int k = 0; k < 3; k++) {
    id[k] = sl_vocabulary_find (v, part[k].text, part[k].n);
    if (id[k] < 0)
      return sl_fail (e, "merge %zu: '%.*s' is no token", rank + 1,
                      part[k].n < 64 ? (int)part[k].n : 64, part[k].text);
  }
  i = pair_slot (v, pair_of (id[0], id[1]));
  if (v->merged[i] >= 0) return 0;
  v->pair[i] = pair_of (id[0], id[1]);
  v->rank[i] = (int32_t)rank;
  v->merged[i] = id[2];
  return 0;
}

int sl_vocabulary_merge_text (sl_vocabulary *v, size_t rank, const char *text,
                              size_t n, sl_error *e) {
  const char *gap = n > 1 ? memchr (text + 1, ' ', n - 1) : NULL;
  const size_t left = gap != NULL ? (size_t)(gap - text) : 0;
  if (gap == NULL)
    return sl_fail (e, "merge %zu is not two tokens with a space between",
                    rank + 1);
  return sl_vocabulary_merge (v, rank, text, left, gap + 1, n - left - 1, e);
}

int32_t sl_vocabulary_pair (const sl_vocabulary *v, int32_t left, int32_t right,
                            int32_t *rank) {
  size_t i;
  if (v->pairs == 0 || left < 0 || right < 0) return -1;
  i = pair_slot (v, pair_of (left, right));
  *rank = v->rank[i];
  return v->merged[i];
}
