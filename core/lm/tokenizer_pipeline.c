/* tokenizer_pipeline.c - normalizer, pre-tokenizer and post-processor of a
** tokenizer.json.
**
** Each is a step with a "type", or a Sequence of steps. What is known is in the
** tables below; any other type is refused by name. */
#include "lm/tokenizer_internal.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PATTERNS = 12 };
static const char space[] = "\xe2\x96\x81";

/* What the steps have said so far. */
typedef struct steps {
  sl_tokenizer *t;
  size_t n;
  const char *pattern[MAX_PATTERNS];
} steps;

typedef struct known_step {
  const char *type;
  int (*read) (steps *s, const json_t *step, sl_error *e);
} known_step;

static const char *text_at (const json_t *object, const char *key) {
  const char *text = json_string_value (json_object_get (object, key));
  return text != NULL ? text : "";
}

static int is_true (const json_t *object, const char *key) {
  return json_is_true (json_object_get (object, key));
}

/* Read a step, or each of a Sequence ('list' is the key of its members). */
static int read_step (steps *s, const json_t *value, const char *what,
                      const char *list, const known_step *known, sl_error *e) {
  const char *type = text_at (value, "type");
  const json_t *members = json_object_get (value, list);
  json_t *member;
  size_t i;
  if (value == NULL || json_is_null (value)) return 0;
  if (strcmp (type, "Sequence") == 0) {
    json_array_foreach (members, i, member) {
      /* one level: a Sequence in a Sequence is no known type */
      if (strcmp (text_at (member, "type"), "Sequence") == 0)
        return sl_fail (e, "its %s is a Sequence of Sequences", what);
      if (read_step (s, member, what, list, known, e) < 0) return -1;
    }
    return 0;
  }
  for (; known->type != NULL; known++)
    if (strcmp (known->type, type) == 0) return known->read (s, value, e);
  return sl_fail (e, "its %s has the step '%.32s', which is not known", what,
                  type);
}

static int add_pattern (steps *s, const char *pattern, sl_error *e) {
  if (s->n == MAX_PATTERNS)
    return sl_fail (e, "its pre_tokenizer has more than %d patterns",
                    MAX_PATTERNS);
  s->pattern[s->n++] = pattern;
  return 0;
}

static int nothing (steps *s, const json_t *step, sl_error *e) {
  (void)s, (void)step, (void)e;
  return 0;
}

/* Normalizer. */

static int normalize_prepend (steps *s, const json_t *step, sl_error *e) {
  if (strcmp (text_at (step, "prepend"), space) != 0)
    return sl_fail (e, "its normalizer prepends '%.32s', expected U+2581",
                    text_at (step, "prepend"));
  s->t->prefix = SL_PREFIX_EACH;
  return 0;
}

static int normalize_replace (steps *s, const json_t *step, sl_error *e) {
  const char *from = text_at (json_object_get (step, "pattern"), "String");
  if (strcmp (from, " ") != 0 || strcmp (text_at (step, "content"), space) != 0)
    return sl_fail (e,
                    "its normalizer replaces '%.32s' by '%.32s', expected a "
                    "space by U+2581",
                    from, text_at (step, "content"));
  s->t->escape = 1;
  return 0;
}

static int normalize_nfc (steps *s, const json_t *step, sl_error *e) {
  (void)step, (void)e;
  sl_tokenizer_note (s->t, "text is to be in composed form (NFC): it is taken "
                           "as it comes");
  return 0;
}

static const known_step normalizers[] = { { "Prepend", normalize_prepend },
                                          { "Replace", normalize_replace },
                                          { "NFC", normalize_nfc },
                                          { NULL, NULL } };

/* Pre-tokenizer. */

static int cut_byte_level (steps *s, const json_t *step, sl_error *e) {
  const json_t *words = json_object_get (step, "use_regex");
  s->t->byte_level = 1;
  if (is_true (step, "add_prefix_space")) s->t->prefix = SL_PREFIX_EACH;
  if (words == NULL || json_is_true (words)) {
    const char *const *patterns;
    size_t n;
    if (sl_pre_tokenizer_patterns ("gpt-2", &n, &patterns, e) < 0) return -1;
    return add_pattern (s, patterns[0], e);
  }
  return 0;
}

static int cut_split (steps *s, const json_t *step, sl_error *e) {
  const json_t *pattern = json_object_get (step, "pattern");
  const char *regex = text_at (pattern, "Regex");
  const char *behavior = text_at (step, "behavior");
  const int inverted = is_true (step, "invert");
  /* after the normalizer there are no spaces to split at */
  if (s->t->escape && strcmp (text_at (pattern, "String"), " ") == 0) return 0;
  if (*regex == '\0')
    return sl_fail (e, "its pre_tokenizer splits at a String, which is not "
                       "known");
  /* matches as pieces, with what is between them or without */
  if (strcmp (behavior, inverted ? "Removed" : "Isolated") != 0)
    return sl_fail (e,
                    "its pre_tokenizer has a Split with the behavior "
                    "'%.32s'%s, which is not known",
                    behavior, inverted ? " inverted" : "");
  return add_pattern (s, regex, e);
}

static int cut_digits (steps *s, const json_t *step, sl_error *e) {
  return add_pattern (
      s, is_true (step, "individual_digits") ? "\\p{N}" : "\\p{N}+", e);
}

static int cut_punctuation (steps *s, const json_t *step, sl_error *e) {
  const int runs = strcmp (text_at (step, "behavior"), "Contiguous") == 0;
  return add_pattern (s, runs ? "[\\p{P}$+<=>^`|~]+" : "[\\p{P}$+<=>^`|~]", e);
}

static int cut_metaspace (steps *s, const json_t *step, sl_error *e) {
  const char *scheme = text_at (step, "prepend_scheme");
  const json_t *prefix = json_object_get (step, "add_prefix_space");
  const char *mark = text_at (step, "replacement");
  if (strcmp (mark, space) != 0)
    return sl_fail (e,
                    "its pre_tokenizer writes spaces as '%.32s', expected "
                    "U+2581",
                    mark);
  s->t->escape = 1;
  if (strcmp (scheme, "first") == 0)
    s->t->prefix = SL_PREFIX_FIRST;
  else if (strcmp (scheme, "always") == 0 ||
           (*scheme == '\0' && !json_is_false (prefix)))
    s->t->prefix = SL_PREFIX_EACH;
  if (json_is_false (json_object_get (step, "split"))) return 0;
  return add_pattern (s, "\xe2\x96\x81[^\xe2\x96\x81]*", e);
}

static const known_step pre_tokenizers[] = {
  { "ByteLevel", cut_byte_level }, { "Split", cut_split },
  { "Digits", cut_digits },        { "Punctuation", cut_punctuation },
  { "Metaspace", cut_metaspace },  { NULL, NULL }
};

/* Post-processor: which tokens are put around one text. */

static int around_template (steps *s, const json_t *step, sl_error *e) {
  const json_t *single = json_object_get (step, "single");
  const size_t n = json_array_size (single);
  const json_t *first =
      json_object_get (json_array_get (single, 0), "SpecialToken");
  const json_t *last = json_object_get (
      n > 0 ? json_array_get (single, n - 1) : NULL, "SpecialToken");
  const char *name = text_at (first, "id");
  (void)e;
  s->t->add_bos = first != NULL;
  s->t->said_bos = 1;
  if (first != NULL)
    s->t->bos = sl_vocabulary_find (&s->t->vocabulary, name, strlen (name));
  if (last != NULL && n > 1)
    sl_tokenizer_note (s->t, "the file asks for an end token, which is not "
                             "added");
  return 0;
}

/* "cls": [text, id]; BERT's and RoBERTa's way. */
static int around_cls (steps *s, const json_t *step, sl_error *e) {
  const json_t *name = json_array_get (json_object_get (step, "cls"), 0);
  if (!json_is_string (name))
    return sl_fail (e, "its post_processor has no cls");
  s->t->add_bos = s->t->said_bos = 1;
  s->t->bos = sl_vocabulary_find (&s->t->vocabulary, json_string_value (name),
                                  json_string_length (name));
  sl_tokenizer_note (s->t, "the file asks for an end token, which is not "
                           "added");
  return 0;
}

static const known_step post_processors[] = {
  { "TemplateProcessing", around_template },
  { "BertProcessing", around_cls },
  { "RobertaProcessing", around_cls },
  { "ByteLevel", nothing },
  { NULL, NULL }
};

int sl_tokenizer_read_pipeline (sl_tokenizer *t, const json_t *root,
                                sl_error *e) {
  steps s = { .t = t };
  if (read_step (&s, json_object_get (root, "normalizer"), "normalizer",
                 "normalizers", normalizers, e) < 0 ||
      read_step (&s, json_object_get (root, "pre_tokenizer"), "pre_tokenizer",
                 "pretokenizers", pre_tokenizers, e) < 0 ||
      read_step (&s, json_object_get (root, "post_processor"), "post_processor",
                 "processors", post_processors, e) < 0)
    return -1;
  snprintf (t->pre, sizeof t->pre, "%zu pattern%s of tokenizer.json", s.n,
            s.n == 1 ? "" : "s");
  if (s.n == 0) return 0;
  t->pre_tokenizer = sl_pre_tokenizer_new (s.n, s.pattern, e);
  return t->pre_tokenizer != NULL ? 0 : -1;
}
