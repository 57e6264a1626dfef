/* pre_tokenizer.c - text into the pieces that tokens never cross, by PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "lm/pre_tokenizer.h"
#include "base/memory.h"
#include "lm/bpe.h"
#include <pcre2.h>
#include <stdint.h>
#include <string.h>

/* Patterns come from files: matching gives up here rather than run for hours.
** A million steps are a thousand times what the known ones take for a word. */
enum { MAX_STEPS = 10000000, MAX_DEPTH = 100000, MAX_HEAP_KB = 65536 };
enum { JIT_STACK = 32 * 1024, MAX_JIT_STACK = 1024 * 1024 };
enum { MAX_PATTERNS = 16 };

struct sl_pre_tokenizer {
  size_t n;
  pcre2_code *code[MAX_PATTERNS];
  pcre2_match_data *match[MAX_PATTERNS]; /* one each: cuts are nested */
  pcre2_match_context *limits;
  pcre2_jit_stack *stack;
};

/* By llama.cpp's names for them; the patterns are the models' own. */
#define WORDS_GPT2                                                   \
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]" \
  "+|\\s+(?!\\S)|\\s+"
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CAMEL(ending)                                 \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending \
  "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ending
#define PUNCTUATION "[\\p{P}\\$\\+<=>\\^~\\|`]+"

static const char *const gpt2[] = { WORDS_GPT2 };
static const char *const llama3[] = {
  CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
               "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST
};
static const char *const qwen2[] = { CONTRACTIONS
                                     "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                                     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST };
static const char *const starcoder[] = { "\\p{N}", WORDS_GPT2 };
static const char *const falcon[] = { PUNCTUATION, WORDS_GPT2,
                                      "[0-9][0-9][0-9]" };
static const char *const plain[] = { "[\\p{P}\\$\\+<=>\\^~\\|]+", WORDS_GPT2,
                                     "\\p{N}+", "[0-9][0-9][0-9]" };
static const char *const gpt4o[] = { CAMEL (
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?") "|\\p{N}{1,3}| "
                                     "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" REST };
static const char *const tekken[] = { CAMEL (
    "") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" REST };
static const char *const bloom[] = { " ?[^(\\s|.,!?…。，、।۔،)]+" };

static const struct {
  const char *name;
  size_t n;
  const char *const *patterns;
} known[] = {
#define KNOWN(name, list) \
  { name, sizeof list / sizeof *list, list }
  KNOWN ("default", plain),
  KNOWN ("gpt-2", gpt2),
  KNOWN ("gpt2", gpt2),
  KNOWN ("phi-2", gpt2),
  KNOWN ("mpt", gpt2),
  KNOWN ("olmo", gpt2),
  KNOWN ("jais", gpt2),
  KNOWN ("trillion", gpt2),
  KNOWN ("llama3", llama3),
  KNOWN ("llama-v3", llama3),
  KNOWN ("llama-bpe", llama3),
  KNOWN ("dbrx", llama3),
  KNOWN ("smaug-bpe", llama3),
  KNOWN ("falcon3", llama3),
  KNOWN ("qwen2", qwen2),
  KNOWN ("stablelm2", qwen2),
  KNOWN ("deepseek-r1-qwen", qwen2),
  KNOWN ("starcoder", starcoder),
  KNOWN ("refact", starcoder),
  KNOWN ("command-r", starcoder),
  KNOWN ("smollm", starcoder),
  KNOWN ("codeshell", starcoder),
  KNOWN ("exaone", starcoder),
  KNOWN ("minerva-7b", starcoder),
  KNOWN ("falcon", falcon),
  KNOWN ("gpt-4o", gpt4o),
  KNOWN ("llama4", gpt4o),
  KNOWN ("tekken", tekken),
  KNOWN ("bloom", bloom),
  KNOWN ("gpt3-finnish", bloom),
};
enum { KNOWN_NAMES = sizeof known / sizeof *known };

int sl_pre_tokenizer_patterns (const char *name, size_t *n,
                               const char *const **patterns, sl_error *e) {
  const char *names[KNOWN_NAMES];
  for (int i = 0; i < KNOWN_NAMES; i++) {
    names[i] = known[i].name;
    if (strcmp (name, known[i].name) != 0) continue;
    *n = known[i].n;
    *patterns = known[i].patterns;
    return 0;
  }
  return sl_fail_unknown (e, name, KNOWN_NAMES, names,
                          "the pre-tokenizer '%.64s' is not known", name);
}

/* White space as Unicode has it. PCRE2's \s has U+180E too, which was white
** space until Unicode 6.3. */
#define SPACES "\\p{Z}\\t-\\r\\x85"
enum { LONGER = 24 }; /* no letter of a pattern becomes more than so many */

static char *append (char *to, const char *text) {
  const size_t n = strlen (text);
  memcpy (to, text, n);
  return to + n;
}

/* What \s and \S become; else the two letters as they are. */
static char *translate_escape (const char *p, int in_class, char *to) {
  if (p[1] == 's') return append (to, in_class ? SPACES : "[" SPACES "]");
  if (p[1] == 'S' && !in_class) return append (to, "[^" SPACES "]");
  *to++ = p[0];
  *to++ = p[1];
  return to;
}

/* The patterns are Oniguruma's or Rust's, where a class in a class, [a[bc]], is
** a union; PCRE2 wants [abc]. */
static void translate (const char *p, char *to) {
  int depth = 0;
  for (; *p; p++) {
    const int posix = depth > 0 && p[0] == '[' && p[1] == ':';
    const char *end = posix ? strstr (p + 2, ":]") : NULL;
    if (*p == '\\' && p[1] != '\0') {
      to = translate_escape (p++, depth > 0, to);
    } else if (end != NULL) { /* [:alpha:] */
      for (; p < end + 2; p++) *to++ = *p;
      p--;
    } else if (*p == '[') {
      if (depth++ == 0) *to++ = *p;
    } else if (*p == ']' && depth > 0) {
      if (--depth == 0) *to++ = *p;
    } else
      *to++ = *p;
  }
  *to = '\0';
}

static int compile (sl_pre_tokenizer *s, const char *pattern, sl_error *e) {
  char *translated = sl_alloc (strlen (pattern) + 1, LONGER);
  PCRE2_UCHAR text[128];
  PCRE2_SIZE at;
  int code;
  if (translated == NULL) return sl_fail (e, "out of memory");
  translate (pattern, translated);
  s->code[s->n] = pcre2_compile (
      (PCRE2_SPTR)translated, PCRE2_ZERO_TERMINATED,
      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
  sl_free (translated);
  if (s->code[s->n] == NULL) {
    pcre2_get_error_message (code, text, sizeof text);
    return sl_fail (e, "the pattern '%.100s' is wrong: %s", pattern,
                    (const char *)text);
  }
  /* where there is no JIT, pcre2_match interprets */
  (void)pcre2_jit_compile (s->code[s->n], PCRE2_JIT_COMPLETE);
  s->match[s->n] = pcre2_match_data_create (1, NULL);
  return s->match[s->n++] != NULL ? 0 : sl_fail (e, "out of memory");
}

sl_pre_tokenizer *sl_pre_tokenizer_new (size_t n, const char *const *patterns,
                                        sl_error *e) {
  sl_pre_tokenizer *s = sl_alloc (1, sizeof *s);
  int status = s == NULL ? sl_fail (e, "out of memory") : 0;
  if (n > MAX_PATTERNS)
    status =
        sl_fail (e, "%zu patterns are too many: at most %d", n, MAX_PATTERNS);
  for (size_t i = 0; status == 0 && i < n; i++)
    status = compile (s, patterns[i], e);
  if (status == 0) {
    s->limits = pcre2_match_context_create (NULL);
    s->stack = pcre2_jit_stack_create (JIT_STACK, MAX_JIT_STACK, NULL);
    if (s->limits == NULL) status = sl_fail (e, "out of memory");
  }
  if (status < 0) {
    sl_pre_tokenizer_free (s);
    return NULL;
  }
  pcre2_set_match_limit (s->limits, MAX_STEPS);
  pcre2_set_depth_limit (s->limits, MAX_DEPTH);
  pcre2_set_heap_limit (s->limits, MAX_HEAP_KB);
  if (s->stack != NULL) pcre2_jit_stack_assign (s->limits, NULL, s->stack);
  return s;
}

void sl_pre_tokenizer_free (sl_pre_tokenizer *s) {
  if (s == NULL) return;
  for (size_t i = 0; i < MAX_PATTERNS; i++) {
    if (s->match[i] != NULL) pcre2_match_data_free (s->match[i]);
    if (s->code[i] != NULL) pcre2_code_free (s->code[i]);
  }
  if (s->limits != NULL) pcre2_match_context_free (s->limits);
  if (s->stack != NULL) pcre2_jit_stack_free (s->stack);
  sl_free (s);
}

/* Where pieces go. */
typedef struct sink {
  int (*piece) (void *context, const char *text, size_t n, sl_error *e);
  void *context;
  sl_error *error;
} sink;

/* The next match of pattern k at or after 'at': 1 and its place, 0 none. */
static int match (sl_pre_tokenizer *s, size_t k, const char *text, size_t n,
                  size_t at, size_t *from, size_t *to, sl_error *e) {
  PCRE2_UCHAR why[128];
  const PCRE2_SIZE *ends;
  /* the text is known to be UTF-8: looking again at each match is quadratic */
  uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
  int code = pcre2_match (s->code[k], (PCRE2_SPTR)text, n, at, options,
                          s->match[k], s->limits);
  if (code == PCRE2_ERROR_JIT_STACKLIMIT)
    code = pcre2_match (s->code[k], (PCRE2_SPTR)text, n, at,
                        options | PCRE2_NO_JIT, s->match[k], s->limits);
  if (code == PCRE2_ERROR_NOMATCH) return 0;
  if (code < 0) {
    pcre2_get_error_message (code, why, sizeof why);
    return sl_fail (e, "the text cannot be cut into words: %s at byte %zu",
                    (const char *)why, at);
  }
  ends = pcre2_get_ovector_pointer (s->match[k]);
  *from = ends[0];
  *to = ends[1];
  /* \K may turn a match around */
  return *from >= at && *to > *from
             ? 1
             : sl_fail (e,
                        "the text cannot be cut into words: pattern %zu "
                        "matches backwards",
                        k + 1);
}

/* Cut by pattern k and those after it. */
static int cut (sl_pre_tokenizer *s, size_t k, const char *text, size_t n,
                const sink *to) {
  size_t at = 0;
  if (k == s->n) return n > 0 ? to->piece (to->context, text, n, to->error) : 0;
  while (at < n) {
    size_t from = n, end = n;
    const int found = match (s, k, text, n, at, &from, &end, to->error);
    if (found < 0) return -1;
    if (from > at && cut (s, k + 1, text + at, from - at, to) < 0) return -1;
    if (found && cut (s, k + 1, text + from, end - from, to) < 0) return -1;
    at = end;
  }
  return 0;
}

int sl_pre_tokenizer_run (sl_pre_tokenizer *s, const char *text, size_t n,
                          int (*piece) (void *context, const char *text,
                                        size_t n, sl_error *e),
                          void *context, sl_error *e) {
  const sink to = { piece, context, e };
  size_t at = 0;
  while (at < n) {
    size_t end = at;
    int length;
    while (end < n && (length = sl_utf8_length (text + end, n - end)) > 0)
      end += (size_t)length;
    if (end > at && cut (s, 0, text + at, end - at, &to) < 0) return -1;
    at = end;
    while (end < n && sl_utf8_length (text + end, n - end) == 0) end++;
    if (end > at && piece (context, text + at, end - at, e) < 0) return -1;
    at = end;
  }
  return 0;
}
