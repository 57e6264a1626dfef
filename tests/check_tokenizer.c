/* check_tokenizer.c - the parts of tokenizers against their definitions, and
** vocabularies that are wrong. Ids of real ones: lua/test_lm_tokenizer.lua. */
#include "base/file.h"
#include "base/memory_test.h"
#include "base/random.h"
#include "base/utf8.h"
#include "lm/bpe.h"
#include "lm/byte_level.h"
#include "lm/pre_tokenizer.h"
#include "lm/tokenizer_internal.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

static sl_error error;

static uint32_t draw (uint32_t i, uint32_t below) {
  uint32_t out[4];
  sl_philox (5, (const uint32_t[]){ i, 0, 0, 0 }, out);
  return out[0] % below;
}

/* UTF-8 as it is written: every code point that is a character, and no other
** bytes. */
static int encode (uint32_t c, unsigned char *p) {
  if (c < 0x80) return p[0] = (unsigned char)c, 1;
  if (c < 0x800)
    return p[0] = (unsigned char)(0xc0 | c >> 6),
           p[1] = (unsigned char)(0x80 | (c & 63)), 2;
  if (c < 0x10000)
    return p[0] = (unsigned char)(0xe0 | c >> 12),
           p[1] = (unsigned char)(0x80 | (c >> 6 & 63)),
           p[2] = (unsigned char)(0x80 | (c & 63)), 3;
  return p[0] = (unsigned char)(0xf0 | c >> 18),
         p[1] = (unsigned char)(0x80 | (c >> 12 & 63)),
         p[2] = (unsigned char)(0x80 | (c >> 6 & 63)),
         p[3] = (unsigned char)(0x80 | (c & 63)), 4;
}

START_TEST (utf8) {
  unsigned char p[4];
  size_t valid = 0;
  for (uint32_t c = 0; c < 0x110000; c++) {
    const int n = encode (c, p);
    const int want = c >= 0xd800 && c < 0xe000 ? 0 : n;
    /* an assertion writes to a file: a million of them take seconds */
    if (sl_utf8_length ((char *)p, 4) != want ||
        (n > 1 && sl_utf8_length ((char *)p, (size_t)n - 1) != 0))
      ck_abort_msg ("U+%04X: got %d, want %d", c, sl_utf8_length ((char *)p, 4),
                    want);
  }
  /* all beginnings, behind them a letter, a later byte and none of UTF-8 */
  for (uint32_t s = 0; s < 1 << 16; s++)
    for (int k = 0; k < 3; k++) {
      p[0] = (unsigned char)(s >> 8);
      p[1] = (unsigned char)s;
      p[2] = (unsigned char)"A\x80\xff"[k];
      valid += sl_utf8_length ((char *)p, 3) > 0;
    }
  ck_assert_uint_eq (valid,
                     128 * 256 * 3 + 1920 * 3 + (65536 - 2048 - 2048) / 64);
}
END_TEST

START_TEST (byte_letters) {
  char letters[512], bytes[512], seen[512] = { 0 };
  size_t n = 0;
  for (int b = 0; b < 256; b++) {
    char letter[SL_BYTE_LEVEL_LETTER];
    const int k = sl_byte_level_letter ((unsigned char)b, letter);
    const int code =
        k == 1 ? letter[0] : (letter[0] & 31) << 6 | (letter[1] & 63);
    ck_assert (code > 32 && code < 324 && !seen[code]);
    seen[code] = 1;
    memcpy (letters + n, letter, (size_t)k);
    n += (size_t)k;
  }
  ck_assert_uint_eq (sl_byte_level_decode (letters, n, bytes), 256);
  for (int b = 0; b < 256; b++) ck_assert_int_eq ((unsigned char)bytes[b], b);
  /* published: a space is U+0120, a newline U+010A */
  ck_assert_int_eq (sl_byte_level_letter (' ', letters), 2);
  ck_assert_mem_eq (letters, "\xc4\xa0", 2);
  ck_assert_int_eq (sl_byte_level_letter ('\n', letters), 2);
  ck_assert_mem_eq (letters, "\xc4\x8a", 2);
  ck_assert_uint_eq (sl_byte_level_decode ("\xe2\x96\x81\xc3", 4, bytes), 4);
  ck_assert_mem_eq (bytes, "\xe2\x96\x81\xc3", 4);
}
END_TEST

/* Merging by the definition: look at all neighbours, join the best, begin
** again. */
static size_t merge_slowly (const sl_vocabulary *v, const char *text, size_t n,
                            int32_t *ids) {
  size_t start[256], count = n;
  for (size_t i = 0; i <= n; i++) start[i] = i;
  for (;;) {
    size_t best = n;
    double cost = 0;
    for (size_t i = 0; i + 1 < count; i++) {
      const char *at = text + start[i];
      const size_t left = start[i + 1] - start[i];
      const size_t both = start[i + 2] - start[i];
      int32_t id = sl_vocabulary_find (v, at, both), rank = 0;
      double c;
      if (v->score == NULL && id >= 0)
        id = sl_vocabulary_pair (v, sl_vocabulary_find (v, at, left),
                                 sl_vocabulary_find (v, at + left, both - left),
                                 &rank);
      if (id < 0) continue;
      c = v->score != NULL ? -(double)v->score[id] : rank;
      if (best == n || c < cost) best = i, cost = c;
    }
    if (best == n) break;
    count--;
    memmove (start + best + 1, start + best + 2,
             (count - best) * sizeof *start);
  }
  for (size_t i = 0; i < count; i++)
    ids[i] = sl_vocabulary_find (v, text + start[i], start[i + 1] - start[i]);
  return count;
}

/* Letters a to c, and random strings of them with few different scores. */
static void random_vocabulary (sl_vocabulary *v, int scores, uint32_t seed) {
  enum { TOKENS = 60 };
  char texts[TOKENS][8];
  size_t lengths[TOKENS], n = 3;
  for (size_t i = 0; i < 3; i++) texts[i][0] = (char)('a' + i), lengths[i] = 1;
  for (uint32_t k = 0; n < TOKENS && k < 1000; k++) {
    const size_t a = draw (seed + 2 * k, (uint32_t)n);
    const size_t b = draw (seed + 2 * k + 1, (uint32_t)n);
    size_t i = 0;
    if (lengths[a] + lengths[b] > 7) continue;
    memcpy (texts[n], texts[a], lengths[a]);
    memcpy (texts[n] + lengths[a], texts[b], lengths[b]);
    lengths[n] = lengths[a] + lengths[b];
    while (i < n && (lengths[i] != lengths[n] ||
                     memcmp (texts[i], texts[n], lengths[n]) != 0))
      i++;
    n += i == n;
  }
  ck_assert_int_eq (sl_vocabulary_new (v, n, 8 * TOKENS, scores, &error), 0);
  for (size_t i = 0; i < n; i++) {
    sl_vocabulary_set (v, i, texts[i], lengths[i]);
    if (scores) v->score[i] = -(float)draw (seed + 5000 + (uint32_t)i, 9);
  }
  ck_assert_int_eq (sl_vocabulary_index (v, &error), 0);
  if (scores) return;
  ck_assert_int_eq (sl_vocabulary_merges (v, n, &error), 0);
  for (size_t i = 3, rank = 0; i < n; i++)
    for (size_t at = 1; at < lengths[i]; at++)
      if (sl_vocabulary_find (v, texts[i], at) >= 0 &&
          sl_vocabulary_find (v, texts[i] + at, lengths[i] - at) >= 0) {
        ck_assert_int_eq (sl_vocabulary_merge (v, rank++, texts[i], at,
                                               texts[i] + at, lengths[i] - at,
                                               &error),
                          0);
        break;
      }
}

START_TEST (merges_by_definition) {
  sl_bpe_scratch work = { 0 };
  for (uint32_t trial = 0; trial < 40; trial++) {
    sl_vocabulary v;
    sl_bpe m = { .vocabulary = &v, .unknown = -1 };
    random_vocabulary (&v, trial % 2 == 0, trial * 10000);
    memset (m.byte, -1, sizeof m.byte);
    for (int i = 0; i < 3; i++) m.byte['a' + i] = i;
    m.whole_bytes = trial % 4 == 1;
    for (uint32_t k = 0; k < 50; k++) {
      char text[200];
      int32_t want[200];
      const size_t n = 1 + draw (trial * 997 + k, 199);
      sl_token_ids ids = { 0 };
      size_t count;
      for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + draw (trial * 131 + k * 7919 + (uint32_t)i, 3));
      ck_assert_int_eq (sl_bpe_encode (&m, &work, text, n, &ids, &error), 0);
      count = merge_slowly (&v, text, n, want);
      ck_assert_msg (ids.n == count &&
                         memcmp (ids.id, want, count * sizeof *want) == 0,
                     "trial %u, text %u '%.*s': %zu ids, want %zu, seed 5",
                     trial, k, (int)n, text, ids.n, count);
      sl_free (ids.id);
    }
    sl_vocabulary_free (&v);
  }
  sl_bpe_scratch_free (&work);
}
END_TEST

/* Pieces joined by '|'. */
static int join (void *context, const char *text, size_t n, sl_error *e) {
  char *out = context;
  (void)e;
  snprintf (out + strlen (out), 400 - strlen (out), "%.*s|", (int)n, text);
  return 0;
}

START_TEST (pieces) {
  static const struct {
    const char *pre, *text, *want;
  } cases[] = {
    { "gpt-2", "Hello world's  12345!!\n\n x",
      "Hello| world|'s| | 12345|!!|\n\n| x|" },
    { "gpt-2", "a  \n", "a|  \n|" },
    { "llama-bpe", "Hello WORLD'S 12345 ok!!\n\n  x",
      "Hello| WORLD|'S| |123|45| ok|!!\n\n| | x|" },
    { "llama-bpe", "(call_x)\r\n", "(call|_x|)\r\n|" },
    { "qwen2", "in 2024.", "in| |2|0|2|4|.|" },
    { "starcoder", "x 12y", "x| |1|2|y|" },
    { "falcon", "a1234 -- b", "a|123|4| |--| b|" },
    { "default", "a1234 -- b", "a|123|4| |--| b|" },
    { "gpt-4o", "HTTPServer isn't x/\n", "HTTPServer| isn't| x|/\n|" },
    { "tekken", "fooBar 12", "foo|Bar| |1|2|" },
    { "gpt-2", "a\xe1\xa0\x8e\xe2\x80\x83 b",
      "a|\xe1\xa0\x8e|\xe2\x80\x83| b|" },
    { "bloom", "Hi, there you.", "Hi|,| there| you|.|" },
    { "mpt", "\xc3\xa9t\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac",
      "\xc3\xa9t\xc3\xa9| \xe6\x97\xa5\xe6\x9c\xac|" },
    { "mpt",
      "ab\xff\xfe"
      "cd \xe6\x97",
      "ab|\xff\xfe|cd| |\xe6\x97|" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const sl_pre_step *steps;
    char out[400] = "";
    size_t n;
    sl_pre_tokenizer *s;
    ck_assert_int_eq (sl_pre_tokenizer_named (cases[i].pre, &n, &steps, &error),
                      0);
    s = sl_pre_tokenizer_new (n, steps, &error);
    ck_assert_msg (s != NULL, "%s: %s", cases[i].pre, error.text);
    ck_assert_int_eq (sl_pre_tokenizer_run (s, cases[i].text,
                                            strlen (cases[i].text), 1, join,
                                            out, &error),
                      0);
    ck_assert_msg (strcmp (out, cases[i].want) == 0, "%s: got '%s', want '%s'",
                   cases[i].pre, out, cases[i].want);
    sl_pre_tokenizer_free (s);
  }
  {
    const sl_pre_step *steps;
    size_t n;
    ck_assert_int_eq (sl_pre_tokenizer_named ("qwen", &n, &steps, &error), -1);
    ck_assert_str_eq (error.text, "the pre-tokenizer 'qwen' is not known "
                                  "(did you mean 'qwen2'?)");
  }
}
END_TEST

/* Pieces behind one another, each after a U+001F. */
typedef struct pieces_so_far {
  char text[16384];
  size_t n;
} pieces_so_far;

static int gather (void *context, const char *text, size_t n, sl_error *e) {
  pieces_so_far *p = context;
  (void)e;
  ck_assert (p->n + n + 1 < sizeof p->text);
  p->text[p->n++] = '\x1f';
  memcpy (p->text + p->n, text, n);
  p->n += n;
  return 0;
}

/* Random text of many scripts, cut by Python's regex module (2022) with the
** patterns that the models publish: name, pieces, U+001E, and so on. */
START_TEST (pieces_of_python) {
  size_t n, records = 0;
  char *file =
      sl_file_read (SINKLAB_TEST_SOURCE "/golden/lm/pieces.txt", 0, &n, &error);
  ck_assert_msg (file != NULL, "%s", error.text);
  for (char *at = file, *end; (end = strchr (at, '\x1e')) != NULL;
       at = end + 1, records++) {
    static pieces_so_far got;
    char text[16384], *first = strchr (at, '\x1f');
    const sl_pre_step *steps;
    size_t k, length = 0;
    sl_pre_tokenizer *s;
    *first = *end = '\0';
    ck_assert_int_eq (sl_pre_tokenizer_named (at, &k, &steps, &error), 0);
    *first = '\x1f';
    for (char *c = first; c < end; c++)
      if (*c != '\x1f') text[length++] = *c;
    s = sl_pre_tokenizer_new (k, steps, &error);
    got.n = 0;
    ck_assert_int_eq (
        sl_pre_tokenizer_run (s, text, length, 1, gather, &got, &error), 0);
    for (size_t i = 0; i < got.n; i++)
      if (got.text[i] != first[i])
        ck_abort_msg ("record %zu: other pieces at byte %zu: '%.20s', want "
                      "'%.20s'",
                      records + 1, i, got.text + i, first + i);
    ck_assert_uint_eq (got.n, (size_t)(end - first));
    sl_pre_tokenizer_free (s);
  }
  ck_assert_uint_eq (records, 4);
  sl_free (file);
}
END_TEST

/* A GGUF file with a vocabulary, made by hand. */
typedef struct writer {
  char data[4096];
  size_t n;
} writer;

static void put (writer *w, const void *data, size_t n) {
  ck_assert (w->n + n <= sizeof w->data);
  memcpy (w->data + w->n, data, n);
  w->n += n;
}

static void put_u32 (writer *w, uint32_t x) {
  put (w, &x, sizeof x);
}

static void put_string (writer *w, const char *text) {
  const uint64_t n = strlen (text);
  put (w, &n, sizeof n);
  put (w, text, n);
}

static void put_list (writer *w, const char *key, uint32_t type, uint64_t n) {
  put_string (w, key);
  put_u32 (w, SL_GGUF_ARRAY);
  put_u32 (w, type);
  put (w, &n, sizeof n);
}

/* NULL: that key is left out. */
typedef struct vocabulary {
  const char *model, *pre;
  const char *token[6], *merge[3];
  const float *score;
} vocabulary;

static int read_it (const vocabulary *v, sl_tokenizer *t) {
  static const uint32_t version = 3;
  writer w = { .n = 0 };
  uint64_t n_tokens = 0, n_merges = 0, keys, none = 0;
  sl_gguf g;
  int status;
  while (n_tokens < 6 && v->token[n_tokens] != NULL) n_tokens++;
  while (n_merges < 3 && v->merge[n_merges] != NULL) n_merges++;
  keys = (v->model != NULL) + (v->pre != NULL) + (n_tokens > 0) +
         (n_merges > 0) + (v->score != NULL) + 1;
  put (&w, "GGUF", 4);
  put (&w, &version, 4);
  put (&w, &none, 8);
  put (&w, &keys, 8);
  put_string (&w, "x");
  put_u32 (&w, SL_GGUF_U32);
  put_u32 (&w, 0);
  if (v->model != NULL) {
    put_string (&w, "tokenizer.ggml.model");
    put_u32 (&w, SL_GGUF_STRING);
    put_string (&w, v->model);
  }
  if (v->pre != NULL) {
    put_string (&w, "tokenizer.ggml.pre");
    put_u32 (&w, SL_GGUF_STRING);
    put_string (&w, v->pre);
  }
  if (n_tokens > 0)
    put_list (&w, "tokenizer.ggml.tokens", SL_GGUF_STRING, n_tokens);
  for (uint64_t i = 0; i < n_tokens; i++) put_string (&w, v->token[i]);
  if (n_merges > 0)
    put_list (&w, "tokenizer.ggml.merges", SL_GGUF_STRING, n_merges);
  for (uint64_t i = 0; i < n_merges; i++) put_string (&w, v->merge[i]);
  if (v->score != NULL) {
    put_list (&w, "tokenizer.ggml.scores", SL_GGUF_F32, n_tokens);
    put (&w, v->score, n_tokens * sizeof *v->score);
  }
  ck_assert_msg (sl_gguf_parse (w.data, w.n, &g, &error) == 0, "%s",
                 error.text);
  sl_tokenizer_begin (t);
  status = sl_tokenizer_read_gguf (t, &g, &error);
  sl_gguf_free (&g);
  return status;
}

static void drop (sl_tokenizer *t) {
  sl_vocabulary_free (&t->vocabulary);
  sl_bpe_scratch_free (&t->scratch);
  sl_pre_tokenizer_free (t->pre_tokenizer);
  sl_free (t->rule);
  sl_added_free (&t->added);
  sl_added_free (&t->added_normalized);
}

static const float flat[6] = { 0 }, wrong[6] = { 0, 0.0f / 0.0f };

START_TEST (vocabularies_that_are_wrong) {
  static const struct {
    vocabulary v;
    const char *why;
  } cases[] = {
    { { .token = { "a" } }, "there is no tokenizer in the file" },
    { { .model = "bert", .token = { "a" } },
      "the tokenizer is of the kind 'bert'; read are llama (SentencePiece) and "
      "gpt2 (byte-level BPE)" },
    { { .model = "llama", .score = NULL },
      "there is no tokenizer.ggml.tokens: give token ids" },
    { { .model = "llama", .token = { "a" } },
      "the vocabulary has no tokenizer.ggml.scores" },
    { { .model = "llama", .token = { "a", "b" }, .score = wrong },
      "the score of token 1 is NaN" },
    { { .model = "gpt2", .pre = "gpt-2", .token = { "a", "b" } },
      "the vocabulary has no tokenizer.ggml.merges" },
    { { .model = "gpt2",
        .pre = "gpt-2",
        .token = { "a", "b" },
        .merge = { "a b" } },
      "merge 1: 'ab' is no token" },
    { { .model = "gpt2",
        .pre = "gpt-2",
        .token = { "a", "ab" },
        .merge = { "ab" } },
      "merge 1 is not two tokens with a space between" },
    { { .model = "gpt2", .pre = "llama-bpee", .token = { "a" } },
      "the pre-tokenizer 'llama-bpee' is not known (did you mean "
      "'llama-bpe'?)" },
  };
  const size_t live = sl_alloc_live ();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sl_tokenizer t;
    ck_assert_int_eq (read_it (&cases[i].v, &t), -1);
    ck_assert_msg (
        strncmp (error.text, cases[i].why, strlen (cases[i].why)) == 0,
        "case %zu: got '%s', want '%s'", i, error.text, cases[i].why);
    drop (&t);
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
}
END_TEST

/* A vocabulary without tokens for bytes: the unknown token, or a sentence. */
START_TEST (what_cannot_be_spelt) {
  static const vocabulary v = { .model = "llama",
                                .token = { "<unk>", "\xe2\x96\x81", "a" },
                                .score = flat };
  sl_tokenizer t;
  sl_token_ids ids = { 0 };
  ck_assert_msg (read_it (&v, &t) == 0, "%s", error.text);
  ck_assert_int_eq (sl_tokenizer_encode (&t, "a\xc3\xa9", 3, 0, &ids, &error),
                    -1);
  ck_assert_str_eq (error.text,
                    "the text has '\xc3\xa9' (byte 0xc3), for which there is "
                    "no token and no unknown one");
  t.bpe.unknown = 0;
  ids.n = 0;
  ck_assert_int_eq (sl_tokenizer_encode (&t, "a\xc3\xa9", 3, 0, &ids, &error),
                    0);
  ck_assert_uint_eq (ids.n, 3);
  ck_assert_int_eq (ids.id[0] * 100 + ids.id[1] * 10 + ids.id[2], 120);
  sl_free (ids.id);
  drop (&t);
}
END_TEST

START_TEST (failing_allocations_leak_nothing) {
  sl_weights *w = sl_weights_open (
      SINKLAB_TEST_SOURCE "/models/tokenizers/ggml-vocab-llama-spm.gguf",
      &error);
  size_t live;
  int failures = 0;
  ck_assert_msg (w != NULL, "%s", error.text);
  live = sl_alloc_live ();
  for (long k = 0;; k++) {
    sl_tokenizer *t;
    sl_token_ids ids = { 0 };
    int done;
    sl_alloc_fail_after (k);
    t = sl_tokenizer_open (w, &error);
    done = t != NULL &&
           sl_tokenizer_encode (t, "Once upon", 9, 0, &ids, &error) == 0;
    sl_alloc_fail_after (-1);
    sl_tokenizer_free (t);
    sl_free (ids.id);
    ck_assert_uint_eq (sl_alloc_live (), live);
    if (done) break;
    failures++;
  }
  ck_assert_int_gt (failures, 8);
  sl_weights_release (w);
}
END_TEST

SUITE_MAIN ("tokenizer", utf8, byte_letters, merges_by_definition, pieces,
            pieces_of_python, vocabularies_that_are_wrong, what_cannot_be_spelt,
            failing_allocations_leak_nothing)
