/* tokenizer_pipeline.c - normalizer, pre-tokenizer, post-processor and decoder
** of a tokenizer.json.
**
** Each is a step with a "type", or a Sequence of steps. The tables below have
** the steps that are followed, with the keys of each; any other step or key is
** refused by name. */
#include "lm/regex.h"
#include "lm/tokenizer_internal.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const mark = sl_space_mark;

/* The settings of the steps so far. */
typedef struct pipeline {
  sl_tokenizer *t;
  size_t n;
  sl_pre_step step[SL_PRE_MAX_STEPS];
  char quoted[1024]; /* the pattern of a Split at a String */
  int mark_scheme;   /* of a Metaspace pre-tokenizer; -1: there is none */
} pipeline;

typedef struct known_step {
  const char *type;
  const char *keys; /* followed, or without effect on ids */
  int (*read) (pipeline *p, const json_t *step, sl_error *e);
} known_step;

static const char *text_at (const json_t *object, const char *key) {
  const char *text = json_string_value (json_object_get (object, key));
  return text != NULL ? text : "";
}

static int is_true (const json_t *object, const char *key) {
  return json_is_true (json_object_get (object, key));
}

/* One part of the pipeline: a step or a Sequence of steps under 'list'. */
typedef struct part {
  const char *name, *list;
  const known_step *known;
} part;

static int read_step (pipeline *p, const json_t *value, const part *in,
                      sl_error *e) {
  const char *type = text_at (value, "type");
  const json_t *members = json_object_get (value, in->list);
  char keys[256];
  json_t *member;
  size_t i;
  if (value == NULL || json_is_null (value)) return 0;
  if (strcmp (type, "Sequence") == 0) {
    json_array_foreach (members, i, member) {
      /* one level: a Sequence in a Sequence is no known type */
      if (strcmp (text_at (member, "type"), "Sequence") == 0)
        return sl_fail (e, "its %s is a Sequence of Sequences", in->name);
      if (read_step (p, member, in, e) < 0) return -1;
    }
    return 0;
  }
  for (const known_step *k = in->known; k->type != NULL; k++) {
    if (strcmp (k->type, type) != 0) continue;
    snprintf (keys, sizeof keys, "type%s%s", *k->keys ? ", " : "", k->keys);
    if (sl_tokenizer_check_keys (value, in->name, keys, e) < 0) return -1;
    return k->read (p, value, e);
  }
  return sl_fail (e, "its %s has the step '%.32s', which is not known",
                  in->name, type);
}

/* The place of a name in a list of n, or -1. */
static int place_of (const char *name, int n, const char *const *names) {
  while (--n >= 0 && strcmp (names[n], name) != 0) {}
  return n;
}

static int nothing (pipeline *p, const json_t *step, sl_error *e) {
  (void)p, (void)step, (void)e;
  return 0;
}

/* Normalizer. */

static int normalize_prepend (pipeline *p, const json_t *step, sl_error *e) {
  if (strcmp (text_at (step, "prepend"), mark) != 0)
    return sl_fail (e, "its normalizer prepends '%.32s', expected U+2581",
                    text_at (step, "prepend"));
  if (p->t->prefix != NULL)
    return sl_fail (e, "its normalizer has Prepend twice");
  p->t->prefix = mark;
  return 0;
}

static int normalize_replace (pipeline *p, const json_t *step, sl_error *e) {
  const char *from = text_at (json_object_get (step, "pattern"), "String");
  if (strcmp (from, " ") != 0 || strcmp (text_at (step, "content"), mark) != 0)
    return sl_fail (e,
                    "its normalizer replaces '%.32s' by '%.32s', expected a "
                    "space by U+2581",
                    from, text_at (step, "content"));
  p->t->add_marks = p->t->has_marks = 1;
  return 0;
}

static int normalize_nfc (pipeline *p, const json_t *step, sl_error *e) {
  (void)step, (void)e;
  p->t->nfc = 1;
  return 0;
}

static const known_step normalizers[] = {
  { "Prepend", "prepend", normalize_prepend },
  { "Replace", "pattern, content", normalize_replace },
  { "NFC", "", normalize_nfc },
  { NULL, NULL, NULL }
};

/* Pre-tokenizer. */

static int add_step (pipeline *p, sl_pre_step step, sl_error *e) {
  if (p->n == SL_PRE_MAX_STEPS)
    return sl_fail (e, "its pre_tokenizer has more than %d steps",
                    SL_PRE_MAX_STEPS);
  p->step[p->n++] = step;
  return 0;
}

static int behavior_of (const json_t *step, sl_pre_behavior *behavior,
                        sl_error *e) {
  static const char *const names[] = {
    [SL_PRE_ISOLATED] = "Isolated",
    [SL_PRE_REMOVED] = "Removed",
    [SL_PRE_CONTIGUOUS] = "Contiguous",
    [SL_PRE_WITH_PREVIOUS] = "MergedWithPrevious",
    [SL_PRE_WITH_NEXT] = "MergedWithNext",
  };
  const char *name = text_at (step, "behavior");
  const int place = place_of (name, SL_PRE_WITH_NEXT + 1, names);
  *behavior = (sl_pre_behavior)place;
  if (place >= 0) return 0;
  return sl_fail (e,
                  "its pre_tokenizer has a %s with the behavior '%.32s', which "
                  "is not known",
                  text_at (step, "type"), name);
}

static int cut_byte_level (pipeline *p, const json_t *step, sl_error *e) {
  const json_t *words = json_object_get (step, "use_regex");
  const sl_pre_step *gpt2;
  size_t n;
  if (p->t->byte_level)
    return sl_fail (e, "its pre_tokenizer has ByteLevel twice");
  if (sl_pre_tokenizer_named ("gpt-2", &n, &gpt2, e) < 0) return -1;
  p->t->byte_level = 1;
  if (is_true (step, "add_prefix_space") &&
      add_step (p, (sl_pre_step){ .kind = SL_PRE_SPACE }, e) < 0)
    return -1;
  if ((words == NULL || json_is_true (words)) && add_step (p, *gpt2, e) < 0)
    return -1;
  return add_step (p, (sl_pre_step){ .kind = SL_PRE_LETTERS }, e);
}

static int cut_split (pipeline *p, const json_t *step, sl_error *e) {
  const json_t *pattern = json_object_get (step, "pattern");
  const char *regex = text_at (pattern, "Regex");
  const char *string = text_at (pattern, "String");
  sl_pre_step out = { .inverted = is_true (step, "invert"), .pattern = regex };
  if (behavior_of (step, &out.behavior, e) < 0) return -1;
  if (*regex == '\0' && *string == '\0')
    return sl_fail (e, "its pre_tokenizer has a Split without a pattern");
  if (*string != '\0') {
    if (*p->quoted != '\0')
      return sl_fail (e, "its pre_tokenizer splits at two Strings");
    out.pattern = p->quoted;
    if (!sl_regex_quote (string, p->quoted, sizeof p->quoted))
      return sl_fail (e, "its pre_tokenizer splits at a String of more than "
                         "500 bytes");
  }
  return add_step (p, out, e);
}

static int cut_digits (pipeline *p, const json_t *step, sl_error *e) {
  const char *pattern =
      is_true (step, "individual_digits") ? "\\p{N}" : "\\p{N}+";
  return add_step (p, (sl_pre_step){ .pattern = pattern }, e);
}

static int cut_punctuation (pipeline *p, const json_t *step, sl_error *e) {
  sl_pre_step out = { .pattern = "[\\p{P}$+<=>^`|~]" };
  if (json_object_get (step, "behavior") != NULL &&
      behavior_of (step, &out.behavior, e) < 0)
    return -1;
  return add_step (p, out, e);
}

/* Where Metaspace puts a mark, by the key or the older one; -1: not known. */
static int scheme_of (const json_t *step) {
  static const char *const names[] = { [SL_PRE_ALWAYS] = "always",
                                       [SL_PRE_FIRST] = "first",
                                       [SL_PRE_NEVER] = "never" };
  const char *scheme = text_at (step, "prepend_scheme");
  if (*scheme == '\0')
    return json_is_false (json_object_get (step, "add_prefix_space"))
               ? SL_PRE_NEVER
               : SL_PRE_ALWAYS;
  return place_of (scheme, SL_PRE_NEVER + 1, names);
}

static int check_metaspace (const json_t *step, const char *what, sl_error *e) {
  const char *replacement = text_at (step, "replacement");
  if (strcmp (replacement, mark) != 0)
    return sl_fail (e, "its %s writes spaces as '%.32s', expected U+2581", what,
                    replacement);
  if (scheme_of (step) < 0)
    return sl_fail (e,
                    "its %s has the prepend_scheme '%.32s', which is not known",
                    what, text_at (step, "prepend_scheme"));
  return 0;
}

static int cut_metaspace (pipeline *p, const json_t *step, sl_error *e) {
  sl_pre_step marks = { .kind = SL_PRE_MARKS };
  if (check_metaspace (step, "pre_tokenizer", e) < 0) return -1;
  if (p->t->byte_level)
    return sl_fail (e, "its pre_tokenizer has Metaspace after ByteLevel");
  /* the library takes each piece of the first character for the first piece */
  if (scheme_of (step) == SL_PRE_FIRST && p->n > 0 &&
      (p->t->prefix != NULL || p->mark_scheme >= 0))
    return sl_fail (e, "its pre_tokenizer has Metaspace with prepend_scheme "
                       "first after a step that puts a mark there");
  p->mark_scheme = scheme_of (step);
  marks.scheme = (sl_pre_scheme)p->mark_scheme;
  p->t->has_marks = 1;
  if (add_step (p, marks, e) < 0) return -1;
  if (json_is_false (json_object_get (step, "split"))) return 0;
  return add_step (
      p, (sl_pre_step){ .pattern = mark, .behavior = SL_PRE_WITH_NEXT }, e);
}

static const known_step pre_tokenizers[] = {
  { "ByteLevel", "add_prefix_space, trim_offsets, use_regex", cut_byte_level },
  { "Split", "pattern, behavior, invert", cut_split },
  { "Digits", "individual_digits", cut_digits },
  { "Punctuation", "behavior", cut_punctuation },
  { "Metaspace",
    "replacement, str_rep, prepend_scheme, add_prefix_space, split",
    cut_metaspace },
  { NULL, NULL, NULL }
};

/* Post-processor: the tokens around one text. */

static const json_t *special_at (const json_t *list, size_t i) {
  return json_object_get (json_array_get (list, i), "SpecialToken");
}

static int around_template (pipeline *p, const json_t *step, sl_error *e) {
  const json_t *single = json_object_get (step, "single");
  const size_t n = json_array_size (single);
  const char *name = text_at (special_at (single, 0), "id");
  size_t before = 0;
  while (before < n && special_at (single, before) != NULL) before++;
  if (before > 1)
    return sl_fail (e,
                    "its post_processor puts %zu tokens before a text; at "
                    "most one is followed",
                    before);
  p->t->add_bos = before > 0;
  p->t->said_bos = 1;
  if (before > 0)
    p->t->bos = sl_vocabulary_find (&p->t->vocabulary, name, strlen (name));
  if (n > 1 && special_at (single, n - 1) != NULL)
    sl_tokenizer_note (p->t, "the file asks for an end token, which is not "
                             "added");
  return 0;
}

/* "cls": [text, id]; BERT's and RoBERTa's way. */
static int around_cls (pipeline *p, const json_t *step, sl_error *e) {
  const json_t *name = json_array_get (json_object_get (step, "cls"), 0);
  if (!json_is_string (name))
    return sl_fail (e, "its post_processor has no cls");
  p->t->add_bos = p->t->said_bos = 1;
  p->t->bos = sl_vocabulary_find (&p->t->vocabulary, json_string_value (name),
                                  json_string_length (name));
  sl_tokenizer_note (p->t, "the file asks for an end token, which is not "
                           "added");
  return 0;
}

static const known_step post_processors[] = {
  { "TemplateProcessing", "single, pair, special_tokens", around_template },
  { "BertProcessing", "sep, cls", around_cls },
  { "RobertaProcessing", "sep, cls, trim_offsets, add_prefix_space",
    around_cls },
  { "ByteLevel", "add_prefix_space, trim_offsets, use_regex", nothing },
  { NULL, NULL, NULL }
};

/* Decoder. */

static int add_decode_step (pipeline *p, sl_decode_step step, sl_error *e) {
  if (p->t->decode_steps == SL_DECODE_MAX_STEPS)
    return sl_fail (e, "its decoder has more than %d steps",
                    SL_DECODE_MAX_STEPS);
  p->t->decode[p->t->decode_steps++] = step;
  return 0;
}

/* A text of the decoder, which is not empty where it is looked for. */
static int decode_text (char to[SL_DECODE_TEXT], const char *text, size_t least,
                        sl_error *e) {
  const size_t n = strlen (text);
  if (n < least || n >= SL_DECODE_TEXT)
    return sl_fail (e,
                    "its decoder has the text '%.70s', expected %zu to %d "
                    "bytes",
                    text, least, SL_DECODE_TEXT - 1);
  memcpy (to, text, n + 1);
  return 0;
}

/* A step without settings. */
static int decode_plain (pipeline *p, const json_t *step, sl_error *e) {
  static const char *const types[] = { [SL_DECODE_BYTES] = "ByteFallback",
                                       [SL_DECODE_FUSE] = "Fuse",
                                       [SL_DECODE_LETTERS] = "ByteLevel" };
  const int kind = place_of (text_at (step, "type"), 3, types);
  return add_decode_step (p, (sl_decode_step){ .kind = kind }, e);
}

static int decode_metaspace (pipeline *p, const json_t *step, sl_error *e) {
  sl_decode_step out = { .kind = SL_DECODE_MARKS,
                         .start = scheme_of (step) != SL_PRE_NEVER };
  if (check_metaspace (step, "decoder", e) < 0 ||
      decode_text (out.from, mark, 1, e) < 0)
    return -1;
  return add_decode_step (p, out, e);
}

static int decode_replace (pipeline *p, const json_t *step, sl_error *e) {
  const char *from = text_at (json_object_get (step, "pattern"), "String");
  sl_decode_step out = { .kind = SL_DECODE_REPLACE };
  if (decode_text (out.from, from, 1, e) < 0 ||
      decode_text (out.to, text_at (step, "content"), 0, e) < 0)
    return -1;
  return add_decode_step (p, out, e);
}

static int decode_strip (pipeline *p, const json_t *step, sl_error *e) {
  const json_int_t start = json_integer_value (json_object_get (step, "start"));
  const json_int_t stop = json_integer_value (json_object_get (step, "stop"));
  sl_decode_step out = { SL_DECODE_STRIP, "", "", (size_t)start, (size_t)stop };
  if (start < 0 || stop < 0)
    return sl_fail (e, "its decoder strips fewer than 0 characters");
  if (decode_text (out.from, text_at (step, "content"), 1, e) < 0) return -1;
  return add_decode_step (p, out, e);
}

static const known_step decoders[] = {
  { "ByteLevel", "add_prefix_space, trim_offsets, use_regex", decode_plain },
  { "Metaspace",
    "replacement, str_rep, prepend_scheme, add_prefix_space, split",
    decode_metaspace },
  { "Replace", "pattern, content", decode_replace },
  { "ByteFallback", "", decode_plain },
  { "Fuse", "", decode_plain },
  { "Strip", "content, start, stop", decode_strip },
  { NULL, NULL, NULL }
};

int sl_tokenizer_read_pipeline (sl_tokenizer *t, const json_t *root,
                                sl_error *e) {
  static const part parts[] = {
    { "normalizer", "normalizers", normalizers },
    { "pre_tokenizer", "pretokenizers", pre_tokenizers },
    { "post_processor", "processors", post_processors },
    { "decoder", "decoders", decoders },
  };
  pipeline p = { .t = t, .mark_scheme = -1 };
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (read_step (&p, json_object_get (root, parts[i].name), &parts[i], e) < 0)
      return -1;
  /* without a decoder: strip the prefix that encoding adds */
  t->has_decoder = json_is_object (json_object_get (root, "decoder"));
  if (!t->has_decoder) {
    if (p.mark_scheme >= 0 && p.mark_scheme != SL_PRE_NEVER)
      t->strip = SL_STRIP_MARKS;
    else if (t->prefix != NULL && t->add_marks) {
      t->strip = SL_STRIP_SPACE;
      t->strip_after = 1;
    }
  }
  snprintf (t->pre, sizeof t->pre, "%zu step%s of tokenizer.json", p.n,
            p.n == 1 ? "" : "s");
  if (p.n == 0) return 0;
  t->pre_tokenizer = sl_pre_tokenizer_new (p.n, p.step, e);
  return t->pre_tokenizer != NULL ? 0 : -1;
}
