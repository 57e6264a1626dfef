/* pre_tokenizer.c - text into the pieces that tokens never cross. */
#include "lm/pre_tokenizer.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "lm/bpe.h"
#include "lm/byte_level.h"
#include "lm/regex.h"
#include <string.h>

static const char mark[] = "\xe2\x96\x81"; /* U+2581 */
enum { MARK = sizeof mark - 1 };

struct sl_pre_tokenizer {
  size_t n;
  sl_pre_step step[SL_PRE_MAX_STEPS];
  sl_regex *regex[SL_PRE_MAX_STEPS]; /* one each: cuts are nested */
};

sl_pre_tokenizer *sl_pre_tokenizer_new (size_t n, const sl_pre_step *steps,
                                        sl_error *e) {
  sl_pre_tokenizer *p = sl_alloc (1, sizeof *p);
  int status = p == NULL ? sl_fail (e, "out of memory") : 0;
  if (n > SL_PRE_MAX_STEPS)
    status = sl_fail (e, "%zu pre-tokenizer steps are too many: at most %d", n,
                      SL_PRE_MAX_STEPS);
  for (size_t i = 0; status == 0 && i < n; i++) {
    p->step[i] = steps[i];
    p->step[i].pattern = NULL; /* the caller's */
    p->n = i + 1;
    if (steps[i].kind != SL_PRE_SPLIT) continue;
    p->regex[i] = sl_regex_new (steps[i].pattern, e);
    if (p->regex[i] == NULL) status = -1;
  }
  /* nothing cuts the letters: pieces are bytes already */
  if (status == 0 && n > 0 && steps[n - 1].kind == SL_PRE_LETTERS) p->n--;
  if (status == 0) return p;
  sl_pre_tokenizer_free (p);
  return NULL;
}

void sl_pre_tokenizer_free (sl_pre_tokenizer *p) {
  if (p == NULL) return;
  for (size_t i = 0; i < SL_PRE_MAX_STEPS; i++) sl_regex_free (p->regex[i]);
  sl_free (p);
}

/* Where pieces go. */
typedef struct run {
  sl_pre_tokenizer *p;
  int (*piece) (void *context, const char *text, size_t n, sl_error *e);
  void *context;
  sl_error *error;
} run;

/* A piece on its way. */
typedef struct span {
  const char *text;
  size_t n;
  int is_start;   /* of the text */
  int is_letters; /* they stand for bytes */
} span;

static int apply (const run *r, size_t k, span s);

/* s.text + from .. s.text + to - 1, through step k and those after it. */
static int apply_part (const run *r, size_t k, span s, size_t from, size_t to) {
  const span part = { s.text + from, to - from, s.is_start && from == 0,
                      s.is_letters };
  if (part.n == 0) return 0;
  if (k == r->p->n && !s.is_letters) /* the usual end, without more calls */
    return r->piece (r->context, part.text, part.n, r->error);
  return apply (r, k, part);
}

static void *room (const run *r, size_t n) {
  void *p = n <= PTRDIFF_MAX / 4 ? sl_alloc (n, 1) : NULL;
  if (p == NULL)
    sl_fail (r->error, "out of memory for a piece of %zu bytes", n);
  return p;
}

/* The piece that may still grow while matches and gaps come in order. */
typedef struct growing {
  size_t from, to;
  int is_match; /* its last part */
} growing;

/* Whether a part continues the growing piece. */
static int continues (sl_pre_behavior behavior, int before, int now) {
  switch (behavior) {
  case SL_PRE_CONTIGUOUS: return before == now;
  case SL_PRE_WITH_PREVIOUS: return now && !before;
  case SL_PRE_WITH_NEXT: return before && !now;
  case SL_PRE_ISOLATED:
  case SL_PRE_REMOVED: break;
  }
  return 0;
}

static int add_part (const run *r, size_t k, span s, growing *g, size_t from,
                     size_t to, int is_match) {
  const sl_pre_step *step = &r->p->step[k];
  const growing done = *g;
  if (from == to) return 0;
  if (step->behavior == SL_PRE_ISOLATED)
    return apply_part (r, k + 1, s, from, to);
  is_match = is_match != step->inverted;
  if (done.to > done.from &&
      continues (step->behavior, done.is_match, is_match)) {
    g->to = to;
    g->is_match = is_match;
    return 0;
  }
  *g = (growing){ from, to, is_match };
  if (step->behavior == SL_PRE_REMOVED && is_match) g->to = g->from;
  return apply_part (r, k + 1, s, done.from, done.to);
}

static int apply_split (const run *r, size_t k, span s) {
  growing g = { 0 };
  for (size_t at = 0; at < s.n;) {
    size_t from = s.n, to = s.n;
    const int found =
        sl_regex_match (r->p->regex[k], s.text, s.n, at, &from, &to, r->error);
    if (found < 0 || add_part (r, k, s, &g, at, from, 0) < 0 ||
        add_part (r, k, s, &g, from, to, 1) < 0)
      return -1;
    at = to;
  }
  return apply_part (r, k + 1, s, g.from, g.to);
}

static int apply_space (const run *r, size_t k, span s) {
  span longer = { NULL, s.n + 1, s.is_start, 0 };
  char *text;
  int status;
  if (*s.text == ' ') return apply (r, k + 1, s);
  longer.text = text = room (r, longer.n);
  if (text == NULL) return -1;
  *text = ' ';
  memcpy (text + 1, s.text, s.n);
  status = apply (r, k + 1, longer);
  sl_free (text);
  return status;
}

static int apply_marks (const run *r, size_t k, span s) {
  const sl_pre_scheme scheme = r->p->step[k].scheme;
  const int starts =
      *s.text == ' ' || (s.n >= MARK && memcmp (s.text, mark, MARK) == 0);
  const int add = !starts && (scheme == SL_PRE_ALWAYS ||
                              (scheme == SL_PRE_FIRST && s.is_start));
  char *text = room (r, (s.n + 1) * MARK);
  span out = { text, 0, s.is_start, 0 };
  int status;
  if (text == NULL) return -1;
  if (add) memcpy (text, mark, MARK);
  out.n = add ? MARK : 0;
  for (size_t i = 0; i < s.n; i++)
    if (s.text[i] == ' ') {
      memcpy (text + out.n, mark, MARK);
      out.n += MARK;
    } else
      text[out.n++] = s.text[i];
  status = apply (r, k + 1, out);
  sl_free (text);
  return status;
}

static int apply_letters (const run *r, size_t k, span s) {
  char *text;
  span out = { NULL, 0, s.is_start, 1 };
  int status;
  out.text = text = room (r, s.n * SL_BYTE_LEVEL_LETTER);
  if (text == NULL) return -1;
  for (size_t i = 0; i < s.n; i++)
    out.n +=
        (size_t)sl_byte_level_letter ((unsigned char)s.text[i], text + out.n);
  status = apply (r, k + 1, out);
  sl_free (text);
  return status;
}

/* The piece is done. */
static int finish (const run *r, span s) {
  char *bytes;
  int status;
  if (!s.is_letters) return r->piece (r->context, s.text, s.n, r->error);
  bytes = room (r, s.n);
  if (bytes == NULL) return -1;
  s.n = sl_byte_level_decode (s.text, s.n, bytes);
  status = r->piece (r->context, bytes, s.n, r->error);
  sl_free (bytes);
  return status;
}

static int apply (const run *r, size_t k, span s) {
  static int (*const kinds[]) (const run *r, size_t k, span s) = {
    [SL_PRE_SPLIT] = apply_split,
    [SL_PRE_SPACE] = apply_space,
    [SL_PRE_MARKS] = apply_marks,
    [SL_PRE_LETTERS] = apply_letters,
  };
  if (k == r->p->n) return finish (r, s);
  return kinds[r->p->step[k].kind](r, k, s);
}

int sl_pre_tokenizer_run (sl_pre_tokenizer *p, const char *text, size_t n,
                          int is_start,
                          int (*piece) (void *context, const char *text,
                                        size_t n, sl_error *e),
                          void *context, sl_error *e) {
  const run r = { p, piece, context, e };
  size_t at = 0;
  while (at < n) {
    size_t end = at;
    int length;
    while (end < n && (length = sl_utf8_length (text + end, n - end)) > 0)
      end += (size_t)length;
    if (end > at) {
      const span s = { text + at, end - at, is_start && at == 0, 0 };
      if (apply (&r, 0, s) < 0) return -1;
    }
    at = end;
    while (end < n && sl_utf8_length (text + end, n - end) == 0) end++;
    if (end > at && piece (context, text + at, end - at, e) < 0) return -1;
    at = end;
  }
  return 0;
}
