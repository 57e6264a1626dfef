/* tokenizer_gguf.c - the tokenizer that a GGUF file carries. */
#include "lm/tokenizer_internal.h"
#include <stdio.h>
#include <string.h>

static const sl_gguf_value *find (const sl_gguf *g, const char *name) {
  char key[64];
  snprintf (key, sizeof key, "tokenizer.ggml.%s", name);
  return sl_gguf_find (g, key);
}

/* A string value into a buffer; "" if there is none. */
static void text_of (const sl_gguf *g, const char *name, char *to,
                     size_t size) {
  const sl_gguf_value *v = find (g, name);
  const char *cursor, *text;
  size_t n;
  *to = '\0';
  if (v == NULL || v->is_array || v->type != SL_GGUF_STRING) return;
  cursor = v->at;
  text = sl_gguf_string (v, &cursor, &n);
  snprintf (to, size, "%.*s", n < size ? (int)n : (int)size - 1, text);
}

/* A truth value, or 'otherwise'. */
static int flag_of (const sl_gguf *g, const char *name, int otherwise) {
  const sl_gguf_value *v = find (g, name);
  const char *cursor;
  if (v == NULL || v->is_array || v->type != SL_GGUF_BOOL) return otherwise;
  cursor = v->at;
  return sl_gguf_whole (v, &cursor) != 0;
}

/* An id, or -1: none. Writers say "none" as 2^32 - 1. */
static int32_t id_of (sl_tokenizer *t, const sl_gguf *g, const char *name) {
  const sl_gguf_value *v = find (g, name);
  const char *cursor;
  double id;
  if (v == NULL || v->is_array || v->type == SL_GGUF_STRING) return -1;
  cursor = v->at;
  id = sl_gguf_real (v, &cursor);
  if (id >= 0 && id < (double)t->vocabulary.n) return (int32_t)id;
  if (id != -1 && id != 4294967295.0)
    sl_tokenizer_note (t, "%s %.0f is none of the %zu tokens", name, id,
                       t->vocabulary.n);
  return -1;
}

/* The list 'name' of n elements of a type; NULL without one (or a sentence if
** it is another). */
static int list_of (const sl_gguf *g, const char *name, int is_text, size_t n,
                    const sl_gguf_value **out, sl_error *e) {
  const sl_gguf_value *v = find (g, name);
  *out = v;
  if (v == NULL) return 0;
  if (!v->is_array || (v->type == SL_GGUF_STRING) != is_text ||
      (n > 0 && v->count != n))
    return sl_fail (e, "tokenizer.ggml.%s is not a list of %zu %s", name,
                    n > 0 ? n : v->count, is_text ? "strings" : "numbers");
  return 0;
}

static int read_tokens (sl_tokenizer *t, const sl_gguf *g, int scores,
                        sl_error *e) {
  const sl_gguf_value *tokens, *types, *score;
  const char *cursor;
  size_t bytes = 0, n;
  sl_vocabulary *v = &t->vocabulary;
  if (list_of (g, "tokens", 1, 0, &tokens, e) < 0) return -1;
  if (tokens == NULL)
    return sl_fail (e, "there is no tokenizer.ggml.tokens: give token ids");
  if (list_of (g, "token_type", 0, tokens->count, &types, e) < 0 ||
      list_of (g, "scores", 0, tokens->count, &score, e) < 0)
    return -1;
  if (scores && score == NULL)
    return sl_fail (e, "the vocabulary has no tokenizer.ggml.scores");
  cursor = tokens->at;
  for (size_t i = 0; i < tokens->count; i++) {
    (void)sl_gguf_string (tokens, &cursor, &n);
    bytes += n;
  }
  if (sl_vocabulary_new (v, tokens->count, bytes, scores, e) < 0) return -1;
  cursor = tokens->at;
  for (size_t i = 0; i < v->n; i++) {
    const char *text = sl_gguf_string (tokens, &cursor, &n);
    sl_vocabulary_set (v, i, text, n);
    if (types == NULL && scores && sl_byte_named (text, n) >= 0)
      v->kind[i] = SL_TOKEN_BYTE;
  }
  cursor = scores ? score->at : NULL;
  for (size_t i = 0; scores && i < v->n; i++) {
    v->score[i] = (float)sl_gguf_real (score, &cursor);
    if (v->score[i] != v->score[i])
      return sl_fail (e, "the score of token %zu is NaN", i);
  }
  cursor = types != NULL ? types->at : NULL;
  for (size_t i = 0; types != NULL && i < v->n; i++) {
    const int64_t kind = sl_gguf_whole (types, &cursor);
    if (kind >= SL_TOKEN_NORMAL && kind <= SL_TOKEN_BYTE)
      v->kind[i] = (unsigned char)kind;
  }
  return sl_vocabulary_index (v, e);
}

/* "left right"; tokens have no spaces of their own here. */
static int read_merges (sl_tokenizer *t, const sl_gguf *g, sl_error *e) {
  const sl_gguf_value *merges;
  const char *cursor;
  if (list_of (g, "merges", 1, 0, &merges, e) < 0) return -1;
  if (merges == NULL)
    return sl_fail (e, "the vocabulary has no tokenizer.ggml.merges");
  if (sl_vocabulary_merges (&t->vocabulary, merges->count, e) < 0) return -1;
  cursor = merges->at;
  for (size_t i = 0; i < merges->count; i++) {
    size_t n;
    const char *text = sl_gguf_string (merges, &cursor, &n);
    if (sl_vocabulary_merge_text (&t->vocabulary, i, text, n, e) < 0) return -1;
  }
  return 0;
}

/* Vocabularies whose pre-tokenizer implies the rest, as llama.cpp has it: a
** beginning token, and words that are tokens are taken whole. */
static int is_whole_first (const char *pre) {
  static const char *const names[] = { "llama3", "llama-v3", "llama-bpe",
                                       "falcon3", "tekken" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp (pre, names[i]) == 0) return 1;
  return 0;
}

static int read_bpe (sl_tokenizer *t, const sl_gguf *g, sl_error *e) {
  const sl_pre_step *steps;
  size_t n;
  if (*t->pre == '\0') {
    sl_tokenizer_note (t, "the file names no pre-tokenizer: the default one "
                          "is taken");
    snprintf (t->pre, sizeof t->pre, "default");
  }
  t->byte_level = 1;
  t->whole_first = is_whole_first (t->pre);
  t->add_bos = flag_of (g, "add_bos_token", t->whole_first ? 1 : -1);
  t->prefix = flag_of (g, "add_space_prefix", 0) ? " " : NULL;
  if (sl_pre_tokenizer_named (t->pre, &n, &steps, e) < 0 ||
      read_tokens (t, g, 0, e) < 0 || read_merges (t, g, e) < 0)
    return -1;
  t->pre_tokenizer = sl_pre_tokenizer_new (n, steps, e);
  return t->pre_tokenizer != NULL ? 0 : -1;
}

static int read_sentencepiece (sl_tokenizer *t, const sl_gguf *g, sl_error *e) {
  t->add_marks = t->has_marks = 1;
  t->add_bos = flag_of (g, "add_bos_token", 1);
  if (flag_of (g, "add_space_prefix", 1)) {
    t->prefix = sl_space_mark;
    t->strip = SL_STRIP_SPACE;
    t->strip_after = 1;
  }
  return read_tokens (t, g, 1, e);
}

/* A token with this role is a control token, whatever its kind says. */
static void control (sl_tokenizer *t, int32_t id) {
  if (id >= 0 && t->vocabulary.kind[id] == SL_TOKEN_NORMAL)
    t->vocabulary.kind[id] = SL_TOKEN_CONTROL;
}

/* Keys behind "tokenizer.ggml." that are read, or that change no id. Names of
** the form *_token_id and *_token_ids say which tokens have a role. */
static const char *const keys[] = {
  "model",
  "pre",
  "tokens",
  "scores",
  "token_type",
  "token_type_count",
  "merges",
  "added_tokens",
  "add_bos_token",
  "add_eos_token",
  "add_sep_token",
  "add_space_prefix",
  "remove_extra_whitespaces",
  "precompiled_charsmap",
};

/* Refuse settings that would change ids and are not followed. */
static int check_keys (const sl_gguf *g, sl_error *e) {
  static const char prefix[] = "tokenizer.ggml.";
  const sl_gguf_value *map = find (g, "precompiled_charsmap");
  if (flag_of (g, "remove_extra_whitespaces", 0) ||
      (map != NULL && map->count > 0))
    return sl_fail (e, "%s%s is a setting that this library does not follow",
                    prefix,
                    map != NULL && map->count > 0 ? "precompiled_charsmap"
                                                  : "remove_extra_whitespaces");
  for (size_t i = 0; i < g->n_values; i++) {
    const char *key = g->value[i].key, *own = key + sizeof prefix - 1;
    size_t k = 0;
    if (strncmp (key, prefix, sizeof prefix - 1) != 0 ||
        strstr (own, "_token_id") != NULL)
      continue;
    while (k < sizeof keys / sizeof *keys && strcmp (keys[k], own) != 0) k++;
    if (k == sizeof keys / sizeof *keys)
      return sl_fail (
          e, "%.100s is a setting that this library does not follow", key);
  }
  return 0;
}

int sl_tokenizer_read_gguf (sl_tokenizer *t, const sl_gguf *g, sl_error *e) {
  static const struct {
    const char *name;
    int (*read) (sl_tokenizer *t, const sl_gguf *g, sl_error *e);
  } models[] = { { "llama", read_sentencepiece }, { "gpt2", read_bpe } };
  char model[32];
  size_t i = 0;
  text_of (g, "model", model, sizeof model);
  text_of (g, "pre", t->pre, sizeof t->pre);
  if (*model == '\0')
    return sl_fail (e, "there is no tokenizer in the file "
                       "(tokenizer.ggml.model): give token ids");
  while (i < 2 && strcmp (models[i].name, model) != 0) i++;
  if (i == 2)
    return sl_fail (e,
                    "the tokenizer is of the kind '%s'; read are llama "
                    "(SentencePiece) and gpt2 (byte-level BPE)",
                    model);
  if (models[i].read (t, g, e) < 0 || check_keys (g, e) < 0) return -1;
  t->said_bos = find (g, "add_bos_token") != NULL;
  t->bos = id_of (t, g, "bos_token_id");
  t->eos = id_of (t, g, "eos_token_id");
  t->bpe.unknown = id_of (t, g, "unknown_token_id");
  control (t, t->bos);
  control (t, t->eos);
  if (t->bpe.unknown >= 0 && t->has_marks &&
      t->vocabulary.kind[t->bpe.unknown] == SL_TOKEN_NORMAL)
    t->vocabulary.kind[t->bpe.unknown] = SL_TOKEN_UNKNOWN;
  if (flag_of (g, "add_eos_token", 0))
    sl_tokenizer_note (t, "the file asks for an end token, which is not added");
  return sl_tokenizer_finish (t, e);
}
