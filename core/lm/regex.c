/* regex.c - regular expressions of Unicode text, by PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "lm/regex.h"
#include "base/memory.h"
#include <pcre2.h>
#include <stdint.h>
#include <string.h>

/* Patterns come from files: matching gives up here rather than run for hours.
** The known patterns take a thousandth of these steps for a word. */
enum { MAX_STEPS = 10000000, MAX_DEPTH = 100000, MAX_HEAP_KB = 65536 };
enum { JIT_STACK = 32 * 1024, MAX_JIT_STACK = 1024 * 1024 }; /* bytes */

struct sl_regex {
  pcre2_code *code;
  pcre2_match_data *match;
  pcre2_match_context *limits;
  pcre2_jit_stack *stack;
};

/* White space as Unicode has it; PCRE2's \s has U+180E too, which was white space
** until Unicode 6.3. Characters of words as Oniguruma has them. */
#define SPACES "\\p{Z}\\t-\\r\\x85"
#define WORDS "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}"
/* In no class it counts some numbers of Latin-1 too. */
#define LATIN_NUMBERS "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define NO_SPACES                                                    \
  "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}\\p{Cn}\\x{0}-\\x{8}" \
  "\\x{e}-\\x{1f}\\x{7f}-\\x{84}\\x{86}-\\x{9f}"
enum { LONGER = 96 }; /* no letter of a pattern becomes more than this many */

static char *append (char *to, const char *text) {
  const size_t n = strlen (text);
  memcpy (to, text, n);
  return to + n;
}

/* Escapes that PCRE2 reads in another way, outside a class and in one. */
static const struct {
  char letter;
  const char *outside, *in_class; /* NULL: it cannot be said */
} escapes[] = {
  { 's', "[" SPACES "]", SPACES },
  { 'S', "[^" SPACES "]", NO_SPACES },
  { 'w', "[" WORDS LATIN_NUMBERS "]", WORDS },
  { 'W', "[^" WORDS LATIN_NUMBERS "]", NULL },
};

/* The escape at *at, which moves behind it; NULL where the two libraries
** differ. */
static char *translate_escape (const char **at, int in_class, char *to) {
  const char *p = *at, *end = p[2] == '{' ? strchr (p, '}') : p + 1;
  for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
    const char *text = in_class ? escapes[i].in_class : escapes[i].outside;
    if (p[1] != escapes[i].letter) continue;
    *at = p + 2;
    return text ? append (to, text) : NULL;
  }
  if (((p[1] | 32) >= 'a' && (p[1] | 32) <= 'z') ||
      (p[1] >= '0' && p[1] <= '9'))
    if (strchr ("pPdDnrtfAzu", p[1]) == NULL && !(p[1] == 'x' && p[2] == '{'))
      return NULL;
  if (end == NULL || strchr ("pPx", p[1]) == NULL) end = p + 1;
  while (p <= end) *to++ = *p++;
  *at = p;
  return to;
}

/* Whether PCRE2 reads the text at p in another way than Oniguruma does:
** groups with other options, intervals as "{1,3}+" and "{,3}", intersections
** and complements in a class. */
static int is_other (const char *p, int depth) {
  if (depth > 0)
    return (p[0] == '&' && p[1] == '&') || (p[0] == '[' && p[1] == '^') ||
           (p[0] == '[' && p[1] == ':');
  if (p[0] == '(' && p[1] == '?') return strchr (":=!><i", p[2]) == NULL;
  return (p[0] == '}' && p[1] == '+') || (p[0] == '{' && p[1] == ',');
}

/* The patterns are Oniguruma's or Rust's, where a class in a class, [a[bc]], is
** a union; PCRE2 wants [abc]. NULL, or the place that cannot be translated. */
static const char *translate (const char *p, char *to) {
  int depth = 0;
  while (*p) {
    if (*p == '\\' && p[1] != '\0') {
      const char *start = p;
      to = translate_escape (&p, depth > 0, to);
      if (to == NULL) return start;
      continue;
    }
    if (is_other (p, depth)) return p;
    if (*p == '[') {
      if (depth++ == 0) *to++ = *p;
    } else if (*p == ']' && depth > 0) {
      if (--depth == 0) *to++ = *p;
    } else
      *to++ = *p;
    p++;
  }
  *to = '\0';
  return NULL;
}

static int compile (sl_regex *r, const char *pattern, sl_error *e) {
  char *translated = sl_alloc (strlen (pattern) + 1, LONGER);
  PCRE2_UCHAR text[128];
  const char *other;
  PCRE2_SIZE at;
  uint32_t empty = 0;
  int code;
  if (translated == NULL) return sl_fail (e, "out of memory");
  other = translate (pattern, translated);
  if (other != NULL) {
    sl_free (translated);
    return sl_fail (e, "the pattern '%.100s' has '%.3s', which is not followed",
                    pattern, other);
  }
  r->code = pcre2_compile ((PCRE2_SPTR)translated, PCRE2_ZERO_TERMINATED,
                           PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                               PCRE2_NEVER_BACKSLASH_C,
                           &code, &at, NULL);
  sl_free (translated);
  if (r->code == NULL) {
    pcre2_get_error_message (code, text, sizeof text);
    return sl_fail (e, "the pattern '%.100s' is wrong: %s", pattern,
                    (const char *)text);
  }
  pcre2_pattern_info (r->code, PCRE2_INFO_MATCHEMPTY, &empty);
  if (empty)
    return sl_fail (e,
                    "the pattern '%.100s' matches between characters, which "
                    "is not followed",
                    pattern);
  /* where there is no JIT, pcre2_match interprets */
  (void)pcre2_jit_compile (r->code, PCRE2_JIT_COMPLETE);
  r->match = pcre2_match_data_create (1, NULL);
  r->limits = pcre2_match_context_create (NULL);
  if (r->match == NULL || r->limits == NULL)
    return sl_fail (e, "out of memory");
  r->stack = pcre2_jit_stack_create (JIT_STACK, MAX_JIT_STACK, NULL);
  pcre2_set_match_limit (r->limits, MAX_STEPS);
  pcre2_set_depth_limit (r->limits, MAX_DEPTH);
  pcre2_set_heap_limit (r->limits, MAX_HEAP_KB);
  if (r->stack != NULL) pcre2_jit_stack_assign (r->limits, NULL, r->stack);
  return 0;
}

sl_regex *sl_regex_new (const char *pattern, sl_error *e) {
  sl_regex *r = sl_alloc (1, sizeof *r);
  if (r == NULL) {
    sl_fail (e, "out of memory");
    return NULL;
  }
  if (compile (r, pattern, e) == 0) return r;
  sl_regex_free (r);
  return NULL;
}

void sl_regex_free (sl_regex *r) {
  if (r == NULL) return;
  if (r->match != NULL) pcre2_match_data_free (r->match);
  if (r->code != NULL) pcre2_code_free (r->code);
  if (r->limits != NULL) pcre2_match_context_free (r->limits);
  if (r->stack != NULL) pcre2_jit_stack_free (r->stack);
  sl_free (r);
}

int sl_regex_match (sl_regex *r, const char *text, size_t n, size_t at,
                    size_t *from, size_t *to, sl_error *e) {
  PCRE2_UCHAR why[128];
  const PCRE2_SIZE *ends;
  /* the text is known to be UTF-8: looking again at each match is quadratic */
  const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
  int code = pcre2_match (r->code, (PCRE2_SPTR)text, n, at, options, r->match,
                          r->limits);
  if (code == PCRE2_ERROR_JIT_STACKLIMIT)
    code = pcre2_match (r->code, (PCRE2_SPTR)text, n, at,
                        options | PCRE2_NO_JIT, r->match, r->limits);
  if (code == PCRE2_ERROR_NOMATCH) return 0;
  if (code < 0) {
    pcre2_get_error_message (code, why, sizeof why);
    return sl_fail (e, "the text cannot be cut into words: %s at byte %zu",
                    (const char *)why, at);
  }
  ends = pcre2_get_ovector_pointer (r->match);
  *from = ends[0];
  *to = ends[1];
  /* \K may turn a match around */
  return *from >= at && *to > *from
             ? 1
             : sl_fail (e, "the text cannot be cut into words: a pattern "
                           "matches backwards");
}

int sl_regex_quote (const char *text, char *to, size_t room) {
  size_t n = 0;
  for (; *text != '\0' && n + 2 < room; text++) {
    const char c = *text;
    const int is_plain = (c & 0x80) || (c >= '0' && c <= '9') ||
                         (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                         (c >= '\0' && c <= ' ');
    if (!is_plain) to[n++] = '\\';
    to[n++] = c;
  }
  to[n] = '\0';
  return *text == '\0';
}
