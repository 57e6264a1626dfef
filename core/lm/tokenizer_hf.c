/* tokenizer_hf.c - tokenizers beside Hugging Face weights: tokenizer.json, or
** vocab.json and merges.txt. */
#include "base/file.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "lm/tokenizer_internal.h"
#include <stdio.h>
#include <string.h>

enum { MAX_FILE = 1 << 29 };

/* The file's value, or NULL: and a sentence, or no such file (e empty). */
static json_t *load (const char *folder, const char *name, sl_error *e) {
  char path[4096];
  json_error_t why;
  json_t *root;
  char *text;
  size_t n;
  e->text[0] = '\0';
  snprintf (path, sizeof path, "%s/%s", folder, name);
  if (!sl_file_exists (path)) return NULL;
  text = sl_file_read (path, MAX_FILE, &n, e);
  if (text == NULL) return NULL;
  root = sl_json_load (text, n, JSON_REJECT_DUPLICATES, &why);
  if (root == NULL)
    sl_fail (e, "%s is no JSON: %s (line %d)", name, why.text, why.line);
  sl_free (text);
  return root;
}

/* Tokens. */

/* Texts and kinds by id, while they are gathered. */
typedef struct token {
  const char *text;
  size_t n;
  unsigned char kind;
} token;

typedef struct gathering {
  token *token;
  size_t n, room; /* ids are below n */
} gathering;

static int gather (gathering *all, const json_t *id, const char *text, size_t n,
                   int kind, sl_error *e) {
  const json_int_t i = json_integer_value (id);
  if (!json_is_integer (id) || i < 0 || (size_t)i >= all->room)
    return sl_fail (e,
                    "the token '%.64s' has an id that is no number from 0 to "
                    "%zu",
                    text, all->room - 1);
  all->token[i] = (token){ text, n, (unsigned char)kind };
  if ((size_t)i >= all->n) all->n = (size_t)i + 1;
  return 0;
}

/* Whether key k of a name list ("type, vocab") is this one. */
static int is_listed (const char *list, const char *key) {
  const size_t n = strlen (key);
  if (n == 0) return 0;
  for (const char *at = list; (at = strstr (at, key)) != NULL; at++)
    if ((at == list || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0'))
      return 1;
  return 0;
}

int sl_tokenizer_check_keys (const json_t *object, const char *what,
                             const char *known, sl_error *e) {
  const char *key;
  json_t *value;
  json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
    if (!is_listed (known, key) && !json_is_null (value))
      return sl_fail (e,
                      "its %s has the setting '%.64s', which this library does "
                      "not follow",
                      what, key);
  }
  return 0;
}

/* The ids of added tokens by their texts, as Hugging Face's library gives them
** whatever the entries say: the vocabulary's, else the next one. */
static json_t *number_added (sl_tokenizer *t, const json_t *vocabulary,
                             const json_t *added, sl_error *e) {
  const json_int_t size = (json_int_t)json_object_size (vocabulary);
  json_int_t next = size, id;
  json_t *ids = json_object (), *entry, *known;
  size_t i;
  json_array_foreach (added, i, entry) {
    const char *text = json_string_value (json_object_get (entry, "content"));
    const json_t *said = json_object_get (entry, "id");
    if (text == NULL || !json_is_integer (said)) {
      sl_fail (e, "added token %zu has no %s", i + 1,
               text == NULL ? "content" : "id");
      json_decref (ids);
      return NULL;
    }
    if (*text == '\0') continue;
    if (json_object_get (ids, text) != NULL) {
      sl_fail (e, "it has the added token '%.64s' twice", text);
      json_decref (ids);
      return NULL;
    }
    known = json_object_get (vocabulary, text);
    id = known != NULL ? json_integer_value (known) : next;
    if (id != json_integer_value (said) && *t->note == '\0')
      sl_tokenizer_note (
          t,
          "the added token '%.32s' has the id %lld, not the %lld "
          "of its entry",
          text, (long long)id, (long long)json_integer_value (said));
    if (id >= next) next = id + 1;
    json_object_set_new (ids, text, json_integer (id));
  }
  if (ids == NULL) sl_fail (e, "out of memory");
  return ids;
}

/* The rules of added tokens, by id. */
static int read_rules (sl_tokenizer *t, const json_t *vocabulary,
                       const json_t *ids, const json_t *added, sl_error *e) {
  static const struct {
    const char *key;
    unsigned rule;
  } rules[] = { { "single_word", SL_ADDED_SINGLE_WORD },
                { "lstrip", SL_ADDED_LSTRIP },
                { "rstrip", SL_ADDED_RSTRIP },
                { "normalized", SL_ADDED_NORMALIZED } };
  json_t *entry;
  size_t i;
  t->rule = sl_alloc (t->vocabulary.n, sizeof *t->rule);
  if (t->rule == NULL) return sl_fail (e, "out of memory");
  json_array_foreach (added, i, entry) {
    const char *text = json_string_value (json_object_get (entry, "content"));
    const size_t id = (size_t)json_integer_value (json_object_get (ids, text));
    if (sl_tokenizer_check_keys (entry, "added token",
                                 "id, content, special, single_word, lstrip, "
                                 "rstrip, normalized",
                                 e) < 0)
      return -1;
    if (*text == '\0') continue;
    if (json_object_get (vocabulary, text) == NULL)
      t->rule[id] = SL_ADDED_OUTSIDE;
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
      if (json_is_true (json_object_get (entry, rules[k].key)))
        t->rule[id] |= (unsigned char)rules[k].rule;
  }
  return 0;
}

static int gather_all (gathering *all, const json_t *vocabulary,
                       const json_t *added, const json_t *ids, int bytes,
                       sl_error *e) {
  const char *text;
  json_t *id, *entry;
  size_t i;
  json_object_foreach ((json_t *)(uintptr_t)vocabulary, text, id) {
    const size_t n = strlen (text);
    const int kind =
        bytes && sl_byte_named (text, n) >= 0 ? SL_TOKEN_BYTE : SL_TOKEN_NORMAL;
    if (gather (all, id, text, n, kind, e) < 0) return -1;
  }
  json_array_foreach (added, i, entry) {
    const int special = json_is_true (json_object_get (entry, "special"));
    text = json_string_value (json_object_get (entry, "content"));
    if (*text == '\0') continue;
    id = json_object_get (ids, text);
    if (gather (all, id, text, strlen (text),
                special ? SL_TOKEN_CONTROL : SL_TOKEN_ADDED, e) < 0)
      return -1;
  }
  return 0;
}

/* Ids may leave holes, but not more than there are tokens. */
static int read_tokens (sl_tokenizer *t, const json_t *vocabulary,
                        const json_t *added, const json_t *ids, int bytes,
                        sl_error *e) {
  gathering all = { 0 };
  size_t total = 0;
  int status;
  all.room =
      2 * (json_object_size (vocabulary) + json_array_size (added)) + 1024;
  all.token = sl_alloc (all.room, sizeof *all.token);
  if (all.token == NULL) return sl_fail (e, "out of memory");
  status = gather_all (&all, vocabulary, added, ids, bytes, e);
  for (size_t i = 0; i < all.n; i++) total += all.token[i].n;
  if (status == 0)
    status = sl_vocabulary_new (&t->vocabulary, all.n, total, 0, e);
  for (size_t i = 0; status == 0 && i < all.n; i++) {
    const token *x = &all.token[i];
    sl_vocabulary_set (&t->vocabulary, i, x->text, x->n);
    t->vocabulary.kind[i] = x->text != NULL ? x->kind : SL_TOKEN_UNUSED;
  }
  sl_free (all.token);
  return status == 0 ? sl_vocabulary_index (&t->vocabulary, e) : -1;
}

/* Merges. */

static int read_merges (sl_tokenizer *t, const json_t *merges, sl_error *e) {
  json_t *entry;
  size_t i;
  if (!json_is_array (merges)) return sl_fail (e, "the model has no merges");
  if (sl_vocabulary_merges (&t->vocabulary, json_array_size (merges), e) < 0)
    return -1;
  json_array_foreach (merges, i, entry) {
    const json_t *a = json_array_get (entry, 0), *b = json_array_get (entry, 1);
    int status;
    if (json_is_string (entry))
      status = sl_vocabulary_merge_text (&t->vocabulary, i,
                                         json_string_value (entry),
                                         json_string_length (entry), e);
    else if (json_is_string (a) && json_is_string (b) &&
             json_array_size (entry) == 2)
      status = sl_vocabulary_merge (
          &t->vocabulary, i, json_string_value (a), json_string_length (a),
          json_string_value (b), json_string_length (b), e);
    else
      status = sl_fail (e, "merge %zu is not two tokens", i + 1);
    if (status < 0) return -1;
  }
  return 0;
}

/* A line each, after one that begins with '#version'. */
static int read_merge_lines (sl_tokenizer *t, const char *text, size_t n,
                             sl_error *e) {
  size_t lines = 0, rank = 0;
  for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
  if (sl_vocabulary_merges (&t->vocabulary, lines + 1, e) < 0) return -1;
  for (size_t at = 0; at < n;) {
    const char *end = memchr (text + at, '\n', n - at);
    const size_t stop = end != NULL ? (size_t)(end - text) : n;
    size_t length = stop - at;
    if (length > 0 && text[stop - 1] == '\r') length--;
    if (length > 0 &&
        !(at == 0 && length >= 8 && memcmp (text, "#version", 8) == 0) &&
        sl_vocabulary_merge_text (&t->vocabulary, rank++, text + at, length,
                                  e) < 0)
      return -1;
    at = stop + 1;
  }
  return 0;
}

/* Files. */

static int32_t id_named (const sl_tokenizer *t, const json_t *name) {
  if (json_is_object (name)) name = json_object_get (name, "content");
  if (!json_is_string (name)) return -1;
  return sl_vocabulary_find (&t->vocabulary, json_string_value (name),
                             json_string_length (name));
}

static int32_t id_given (const sl_tokenizer *t, const json_t *id) {
  if (json_is_array (id)) id = json_array_get (id, 0);
  return json_is_integer (id) && json_integer_value (id) >= 0 &&
                 (size_t)json_integer_value (id) < t->vocabulary.n
             ? (int32_t)json_integer_value (id)
             : -1;
}

/* What tokenizer_config.json and config.json say of the special tokens. */
static int read_roles (sl_tokenizer *t, const char *folder, sl_error *e) {
  json_t *names = load (folder, "tokenizer_config.json", e), *ids;
  const json_t *add = json_object_get (names, "add_bos_token");
  if (names == NULL && e->text[0] != '\0') return -1;
  ids = load (folder, "config.json", e);
  if (ids == NULL && e->text[0] != '\0') {
    json_decref (names);
    return -1;
  }
  if (t->bos < 0) t->bos = id_named (t, json_object_get (names, "bos_token"));
  if (t->eos < 0) t->eos = id_named (t, json_object_get (names, "eos_token"));
  if (t->bos < 0) t->bos = id_given (t, json_object_get (ids, "bos_token_id"));
  if (t->eos < 0) t->eos = id_given (t, json_object_get (ids, "eos_token_id"));
  if (t->add_bos < 0 && json_is_boolean (add)) {
    t->add_bos = json_is_true (add);
    t->said_bos = 1;
  }
  json_decref (names);
  json_decref (ids);
  return 0;
}

/* Settings of the model that change ids and are not followed. */
static int check_model (const json_t *model, sl_error *e) {
  static const char *const affixes[] = { "continuing_subword_prefix",
                                         "end_of_word_suffix" };
  for (int i = 0; i < 2; i++) {
    const char *affix = json_string_value (json_object_get (model, affixes[i]));
    if (affix != NULL && *affix)
      return sl_fail (e, "its model has the %s '%.32s', which is not read",
                      affixes[i], affix);
  }
  if (json_number_value (json_object_get (model, "dropout")) != 0)
    return sl_fail (e, "its model has a dropout, which makes ids random");
  return sl_tokenizer_check_keys (
      model, "model",
      "type, vocab, merges, unk_token, fuse_unk, byte_fallback, ignore_merges, "
      "dropout, continuing_subword_prefix, end_of_word_suffix",
      e);
}

static int read_json (sl_tokenizer *t, const json_t *root, sl_error *e) {
  const json_t *model = json_object_get (root, "model");
  const json_t *added = json_object_get (root, "added_tokens");
  const char *type = json_string_value (json_object_get (model, "type"));
  const json_t *vocabulary = json_object_get (model, "vocab");
  const int bytes = json_is_true (json_object_get (model, "byte_fallback"));
  json_t *ids;
  int status;
  if (type == NULL && json_is_array (json_object_get (model, "merges")))
    type = "BPE"; /* files from before the key */
  if (type == NULL || strcmp (type, "BPE") != 0)
    return sl_fail (e, "its model is of the kind %s; read is BPE",
                    type != NULL ? type : "(none)");
  if (!json_is_object (vocabulary))
    return sl_fail (e, "its model has no vocab");
  if (check_model (model, e) < 0) return -1;
  t->whole_first = json_is_true (json_object_get (model, "ignore_merges"));
  t->bpe.fuse_unknown = json_is_true (json_object_get (model, "fuse_unk"));
  ids = number_added (t, vocabulary, added, e);
  status = ids == NULL ||
           read_tokens (t, vocabulary, added, ids, bytes, e) < 0 ||
           read_merges (t, json_object_get (model, "merges"), e) < 0 ||
           read_rules (t, vocabulary, ids, added, e) < 0;
  json_decref (ids);
  if (status) return -1;
  t->bpe.unknown = id_named (t, json_object_get (model, "unk_token"));
  if (json_is_object (json_object_get (root, "truncation")) ||
      json_is_object (json_object_get (root, "padding")))
    sl_tokenizer_note (t, "the file asks for truncation or padding, which is "
                          "not done");
  return sl_tokenizer_read_pipeline (t, root, e);
}

/* GPT-2's first form: nothing says how text is cut, GPT-2's way is meant. */
static int read_pair (sl_tokenizer *t, const json_t *vocabulary,
                      const char *folder, sl_error *e) {
  char path[4096];
  const sl_pre_step *steps;
  size_t n;
  char *text;
  int status;
  t->byte_level = 1;
  snprintf (t->pre, sizeof t->pre, "gpt-2");
  sl_tokenizer_note (t, "vocab.json and merges.txt name no pre-tokenizer: "
                        "GPT-2's is taken");
  snprintf (path, sizeof path, "%s/merges.txt", folder);
  text = sl_file_read (path, MAX_FILE, &n, e);
  if (text == NULL) return -1;
  if (!json_is_object (vocabulary))
    status = sl_fail (e, "vocab.json is no object");
  else
    status = read_tokens (t, vocabulary, NULL, NULL, 0, e);
  if (status == 0) status = read_merge_lines (t, text, n, e);
  sl_free (text);
  if (status < 0 || sl_pre_tokenizer_named ("gpt-2", &n, &steps, e) < 0)
    return -1;
  t->pre_tokenizer = sl_pre_tokenizer_new (n, steps, e);
  return t->pre_tokenizer != NULL ? 0 : -1;
}

static void mark_control (sl_tokenizer *t, int32_t id) {
  if (id >= 0) t->vocabulary.kind[id] = SL_TOKEN_CONTROL;
}

int sl_tokenizer_read_folder (sl_tokenizer *t, const char *folder,
                              const char *name, sl_error *e) {
  json_t *root = load (folder, name, e);
  int status;
  if (root == NULL && e->text[0] != '\0') return -1;
  if (root != NULL) {
    status = read_json (t, root, e);
    if (status < 0) sl_fail_within (e, "%s", name);
  } else {
    root = load (folder, "vocab.json", e);
    if (root == NULL)
      return e->text[0] != '\0'
                 ? -1
                 : sl_fail (e,
                            "there is no %s, and no vocab.json with "
                            "merges.txt: give token ids",
                            name);
    status = read_pair (t, root, folder, e);
  }
  json_decref (root);
  if (status < 0 || read_roles (t, folder, e) < 0) return -1;
  mark_control (t, t->bos);
  mark_control (t, t->eos);
  return sl_tokenizer_finish (t, e);
}
