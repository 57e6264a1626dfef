/* pattern_similarity.c - secondary sinks: tokens whose states have the
** direction of the state at position 1 (arXiv 2512.22213), and for how many
** layers. */
#include "sinks/pattern_similarity.h"
#include "base/memory.h"
#include "sinks/labels.h"

struct sl_pattern_similarity {
  long samples;
  int tokens;
  unsigned char *bits; /* [layer][sample][token] */
};

sl_pattern_similarity *sl_pattern_similarity_new (int layers, long samples,
                                                  int tokens) {
  sl_pattern_similarity *a = sl_alloc (1, sizeof *a);
  size_t n;
  if (a == NULL) return NULL;
  *a = (sl_pattern_similarity){ samples, tokens, NULL };
  if (sl_size_mul ((size_t)layers, (size_t)samples, &n) == 0 &&
      sl_size_mul (n, (size_t)tokens, &n) == 0)
    a->bits = sl_alloc (n, 1);
  if (a->bits) return a;
  sl_pattern_similarity_free (a);
  return NULL;
}

void sl_pattern_similarity_free (sl_pattern_similarity *a) {
  if (a == NULL) return;
  sl_free (a->bits);
  sl_free (a);
}

static size_t at (const sl_pattern_similarity *a, int layer, long sample,
                  int token) {
  return ((size_t)(layer - 1) * (size_t)a->samples + (size_t)sample) *
             (size_t)a->tokens +
         (size_t)token;
}

void sl_pattern_similarity_set (sl_pattern_similarity *a, int layer,
                                long sample, int token, int anchor) {
  a->bits[at (a, layer, sample, token)] |= (unsigned char)(1 << anchor);
}

/* The mean norm of position at (from 0) after l layers. */
static double norm_at (const sl_hidden_result *r, int l, int at) {
  return r->norm[(ptrdiff_t)l * r->tokens + at];
}

/* The window of layers in which position 'anchor' has a large norm: from after
** the steepest rise to before the steepest fall after it. */
static void find_window (sl_hidden_result *r) {
  const int layers = r->layers, at = r->anchor - 1;
  double rise = 0, fall = 0;
  r->window_first = r->window_last = 0;
  for (int l = 1; l < layers; l++) {
    const double d = norm_at (r, l + 1, at) - norm_at (r, l, at);
    if (d > rise) rise = d, r->window_first = l + 1;
  }
  if (r->window_first == 0) return;
  r->window_last = layers;
  for (int l = r->window_first; l < layers; l++) {
    const double d = norm_at (r, l + 1, at) - norm_at (r, l, at);
    if (d < fall) fall = d, r->window_last = l;
  }
}

static void choose_anchor (sl_hidden_result *r) {
  double sum[2] = { 0 };
  r->anchor = 1;
  if (r->tokens < 2) return;
  for (int l = 1; l <= r->layers; l++)
    for (int a = 0; a < 2; a++) sum[a] += norm_at (r, l, a);
  if (sum[1] > sum[0]) r->anchor = 2;
}

/* Layers of the window in which a token is like the anchor; *first: the first
** of them. */
static int lifetime (const sl_pattern_similarity *a, const sl_hidden_result *r,
                     long sample, int token, int *first) {
  int n = 0;
  for (int l = r->window_first; l > 0 && l <= r->window_last; l++) {
    if (!(a->bits[at (a, l, sample, token)] & 1 << (r->anchor - 1))) continue;
    if (n++ == 0) *first = l;
  }
  return n;
}

static int kind_of (const sl_hidden_spec *spec, int lifetime) {
  const double share = (double)lifetime / spec->layers;
  return share >= spec->bos ? 2 : share > spec->noise ? 1 : 0;
}

/* Counts them, and writes them down where there is room. */
static long walk (const sl_pattern_similarity *a, const sl_hidden_spec *spec,
                  const sl_measuring *m, sl_hidden_result *r) {
  long n = 0;
  for (long s = 0; s < spec->samples; s++) {
    int begin, end, from = 0, to = 0;
    sl_valid_range (m, s, &begin, &end);
    for (int j = begin; j < end; j++) {
      sl_secondary found = { .sample = s };
      if (j >= to) sl_segment_of (m, s, j, &from, &to);
      found.position = j - from + 1;
      if (found.position <= r->anchor) continue;
      found.lifetime = lifetime (a, r, s, j, &found.first);
      if (found.lifetime == 0) continue;
      found.kind = kind_of (spec, found.lifetime);
      if (r->secondary) {
        r->secondary[n] = found;
        r->secondary_of_kind[found.kind]++;
      }
      n++;
    }
  }
  return n;
}

int sl_secondary_find (const sl_pattern_similarity *a,
                       const sl_hidden_spec *spec, const sl_measuring *m,
                       sl_hidden_result *r) {
  choose_anchor (r);
  find_window (r);
  r->secondaries = walk (a, spec, m, r);
  r->secondary = sl_alloc ((size_t)r->secondaries, sizeof *r->secondary);
  if (r->secondary == NULL) return -1;
  walk (a, spec, m, r);
  return 0;
}
