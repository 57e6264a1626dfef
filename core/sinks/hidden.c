/* hidden.c - the residual stream, one sequence of one layer at a time. */
#include "sinks/hidden.h"
#include "base/memory.h"
#include "base/number.h"
#include "sinks/labels.h"
#include "sinks/pattern_similarity.h"
#include "sinks/scan.h"
#include <math.h>
#include <string.h>

struct sl_hidden {
  sl_hidden_spec spec;
  sl_measuring m; /* sizes and labels, for labels.h */
  sl_state *state;
  double *norm; /* [1 + layers][tokens] sums */
  uint32_t *count;
  unsigned char *seen; /* [1 + layers][samples] */
  sl_pattern_similarity *similar;
  /* of the sequence at hand */
  double *x;       /* [d]: the token at hand, in double */
  double *channel; /* [d] sums of squares */
  double *first;   /* [2][d]: states of positions 1 and 2 of a segment */
  double first_norm[2];
  uint32_t *bucket; /* of the median */
  int d;
};

/* The median's: 12 bits of a double at a time. The lowest 29 of a float are 0. */
enum { BUCKET_BITS = 12, BUCKETS = 1 << BUCKET_BITS, FLOAT_ZEROS = 29 };

static int fail_memory (sl_error *e) {
  return sl_fail (e, "hidden: no memory for the measurements");
}

static size_t states_of (const sl_hidden *h) {
  return (size_t)h->spec.layers + 1;
}

static int check_spec (const sl_hidden_spec *s, sl_error *e) {
  const sl_measuring m = {
    .layers = s->layers, .heads = 1, .tokens = s->tokens, .labels = s->labels
  };
  if (!(s->massive >= 0 && s->ratio >= 0 && s->similar >= 0 && s->noise >= 0 &&
        s->bos >= s->noise))
    return sl_fail (e,
                    "hidden: massive %g, ratio %g, similar %g, noise %g, bos "
                    "%g; allowed are numbers from 0, and bos from noise",
                    s->massive, s->ratio, s->similar, s->noise, s->bos);
  return sl_measuring_check (&m, s->samples, e);
}

sl_hidden *sl_hidden_new (const sl_hidden_spec *spec, sl_error *e) {
  sl_hidden *h;
  size_t norms, seen;
  if (check_spec (spec, e) < 0) return NULL;
  h = sl_alloc (1, sizeof *h);
  if (h == NULL) {
    fail_memory (e);
    return NULL;
  }
  h->spec = *spec;
  h->m = (sl_measuring){ .layers = spec->layers,
                         .heads = 1,
                         .tokens = spec->tokens,
                         .labels = spec->labels };
  if (sl_size_mul (states_of (h), (size_t)spec->tokens, &norms) == 0 &&
      sl_size_mul (states_of (h), (size_t)spec->samples, &seen) == 0) {
    h->state = sl_alloc (states_of (h), sizeof *h->state);
    h->norm = sl_alloc (norms, sizeof *h->norm);
    h->count = sl_alloc (norms, sizeof *h->count);
    h->seen = sl_alloc (seen, 1);
    h->bucket = sl_alloc (BUCKETS, sizeof *h->bucket);
    h->similar =
        sl_pattern_similarity_new (spec->layers, spec->samples, spec->tokens);
  }
  if (h->state && h->norm && h->count && h->seen && h->bucket && h->similar)
    return h;
  fail_memory (e);
  sl_hidden_free (h);
  return NULL;
}

void sl_hidden_free (sl_hidden *h) {
  if (h == NULL) return;
  sl_free (h->state);
  sl_free (h->norm);
  sl_free (h->count);
  sl_free (h->seen);
  sl_free (h->bucket);
  sl_pattern_similarity_free (h->similar);
  sl_free (h->x);
  sl_free (h->channel);
  sl_free (h->first);
  sl_free (h);
}

/* Room for one token of width d. */
static int make_room (sl_hidden *h, int d, sl_error *e) {
  if (d == h->d) return 0;
  sl_free (h->x);
  sl_free (h->channel);
  sl_free (h->first);
  h->x = sl_alloc ((size_t)d, sizeof *h->x);
  h->channel = sl_alloc ((size_t)d, sizeof *h->channel);
  h->first = sl_alloc (2 * (size_t)d, sizeof *h->first);
  h->d = h->x && h->channel && h->first ? d : 0;
  return h->d ? 0 : fail_memory (e);
}

/* ---- one sequence ---- */

typedef struct sequence {
  sl_hidden *h;
  const sl_tensor *x;
  sl_view view;
  ptrdiff_t row; /* which of the tensor */
  long sample;
  int layer, begin, end;
} sequence;

/* Token j becomes h->x. */
static void read_token (const sequence *s, int j) {
  const sl_view *v = &s->view;
  const ptrdiff_t at = s->row * v->stride[0] + j * v->stride[1];
  const ptrdiff_t step = v->stride[2];
  double *restrict x = s->h->x;
  if (s->x->storage->dtype == SL_F32) {
    const float *from = (const float *)v->data + at;
    for (int i = 0; i < s->h->d; i++) x[i] = from[i * step];
  } else {
    const double *from = (const double *)v->data + at;
    for (int i = 0; i < s->h->d; i++) x[i] = from[i * step];
  }
}

static double dot (const double *a, const double *b, int n) {
  double s[8] = { 0 };
  int i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; l++) s[l] += a[i + l] * b[i + l];
  for (; i < n; i++) s[i % 8] += a[i] * b[i];
  return sl_fold_halves (s);
}

/* Its norm, and which of positions 1 and 2 it is like. */
static double token_norm (const sequence *s, int segment, int j) {
  sl_hidden *h = s->h;
  const int position = j - segment;
  const double norm = sqrt (dot (h->x, h->x, h->d));
  if (position < 2)
    memcpy (h->first + position * h->d, h->x, (size_t)h->d * sizeof *h->x);
  if (position < 2) h->first_norm[position] = norm;
  for (int anchor = 0; anchor < 2 && s->layer > 0; anchor++) {
    const double *a = h->first + anchor * h->d;
    if (position <= anchor) continue;
    if (fabs (dot (a, h->x, h->d)) >
        h->spec.similar * norm * h->first_norm[anchor])
      sl_pattern_similarity_set (h->similar, s->layer, s->sample, j, anchor);
  }
  return norm;
}

static void measure_segments (const sequence *s) {
  sl_hidden *h = s->h;
  sl_state *state = &h->state[s->layer];
  double *norms = h->norm + (size_t)s->layer * (size_t)h->spec.tokens;
  uint32_t *count = h->count + (size_t)s->layer * (size_t)h->spec.tokens;
  int from, to;
  for (int begin = s->begin; begin < s->end; begin = to) {
    double others = 0, peak = 0;
    sl_segment_of (&h->m, s->sample, begin, &from, &to);
    if (to > s->end) to = s->end;
    for (int j = begin; j < to; j++) {
      double norm;
      read_token (s, j);
      norm = token_norm (s, begin, j);
      norms[j - begin] += norm;
      count[j - begin]++;
      if (j == begin) {
        state->first_norm += norm;
        state->segments++;
        continue;
      }
      others += norm;
      peak = sl_max_or_nan (peak, norm);
    }
    if (to - begin < 2) continue;
    state->pairs++;
    state->other_norm += others / (to - begin - 1);
    state->peak += peak;
  }
}

/* The bits of |x|: they order as the numbers do. */
static uint64_t bits_of (double x) {
  uint64_t b;
  x = fabs (x);
  memcpy (&b, &x, sizeof b);
  return b;
}

/* Which bucket holds element 'rank'; rank becomes that in the bucket. */
static uint64_t find_bucket (const uint32_t *bucket, uint64_t *rank) {
  uint64_t b = 0;
  while (b < BUCKETS - 1 && bucket[b] <= *rank) *rank -= bucket[b++];
  return b;
}

/* The lower median of |entries|, exact, by counting 12 bits at a time from the
** highest: each pass counts the entries that share the bits found so far. */
static double median (const sequence *s) {
  sl_hidden *h = s->h;
  const int end = s->x->storage->dtype == SL_F32 ? FLOAT_ZEROS : 0;
  uint64_t rank = (uint64_t)(s->end - s->begin) * (uint64_t)h->d;
  uint64_t known = 0, mask = 0; /* bits that are settled, and which */
  double x;
  rank = (rank - 1) / 2;
  for (int below = 63; below > end;) { /* bit 63, the sign, is 0 */
    const int shift = sl_max_int (below - BUCKET_BITS, 0);
    memset (h->bucket, 0, BUCKETS * sizeof *h->bucket);
    for (int j = s->begin; j < s->end; j++) {
      read_token (s, j);
      for (int i = 0; i < h->d; i++) {
        const uint64_t b = bits_of (h->x[i]);
        if ((b & mask) == known) h->bucket[b >> shift & (BUCKETS - 1)]++;
      }
    }
    known |= find_bucket (h->bucket, &rank) << shift;
    mask = ~(uint64_t)0 << shift;
    below = shift;
  }
  memcpy (&x, &known, sizeof x);
  return x;
}

/* Inserts an entry among the SL_TOP largest by |value|; of equals the first one
** stays first. */
static void keep_entry (sl_hidden_entry *top, sl_hidden_entry entry) {
  for (int i = 0; i < SL_TOP; i++)
    if (top[i].position == 0 || fabs (entry.value) > fabs (top[i].value)) {
      const sl_hidden_entry next = top[i];
      top[i] = entry;
      entry = next;
      if (entry.position == 0) return;
    }
}

/* ((1/n) sum (x - mu)^4) / (std^4 + 1e-6) from one pass around a guess of mu
** would cancel; the mean comes first. */
static double kurtosis (const sequence *s, double mean) {
  const sl_hidden *h = s->h;
  const double n = (double)(s->end - s->begin) * h->d;
  double squares[8] = { 0 }, fourth[8] = { 0 }, variance;
  for (int j = s->begin; j < s->end; j++) {
    int i = 0;
    read_token (s, j);
    for (; i + 8 <= h->d; i += 8)
      for (int l = 0; l < 8; l++) {
        const double y = (h->x[i + l] - mean) * (h->x[i + l] - mean);
        squares[l] += y;
        fourth[l] += y * y;
      }
    for (; i < h->d; i++) {
      const double y = (h->x[i] - mean) * (h->x[i] - mean);
      squares[i % 8] += y;
      fourth[i % 8] += y * y;
    }
  }
  variance = sl_fold_halves (squares) / (n - 1);
  return sl_fold_halves (fourth) / n / (variance * variance + 1e-6);
}

static double channel_kurtosis (const sl_hidden *h) {
  double second = 0, fourth = 0;
  for (int i = 0; i < h->d; i++) {
    second += h->channel[i];
    fourth += h->channel[i] * h->channel[i];
  }
  return second > 0 ? fourth * h->d / (second * second) : (double)NAN;
}

static void measure_entries (const sequence *s) {
  sl_hidden *h = s->h;
  sl_state *state = &h->state[s->layer];
  const double middle = median (s);
  const double bound =
      fmax (h->spec.massive, nextafter (h->spec.ratio * middle, 0));
  double sum = 0, most = 0;
  int from = 0, to = 0;
  memset (h->channel, 0, (size_t)h->d * sizeof *h->channel);
  for (int j = s->begin; j < s->end; j++) {
    if (j == s->begin || j >= to)
      sl_segment_of (&h->m, s->sample, j, &from, &to);
    read_token (s, j);
    for (int i = 0; i < h->d; i++) {
      const double x = h->x[i], size = fabs (x);
      sum += x;
      h->channel[i] += x * x;
      state->massive += size > bound;
      most = sl_max_or_nan (most, size);
      if (size > fabs (state->top[SL_TOP - 1].value))
        keep_entry (state->top,
                    (sl_hidden_entry){ x, s->sample, j - from + 1, i + 1 });
    }
  }
  state->sequences++;
  state->median += middle;
  state->max_norm += most;
  state->max_norm_all = sl_max_or_nan (state->max_norm_all, most);
  state->channel_kurtosis += channel_kurtosis (h);
  state->kurtosis += kurtosis (s, sum / ((double)(s->end - s->begin) * h->d));
}

/* ---- all of them ---- */

int sl_hidden_add (sl_hidden *h, int layer, long first, const sl_tensor *x,
                   sl_error *e) {
  const sl_hidden_spec *spec = &h->spec;
  char text[128];
  if (layer < 0 || layer > spec->layers)
    return sl_fail (e, "hidden: layer %d; there are 0 (before the first) to %d",
                    layer, spec->layers);
  if (x->ndim != 3 || x->dim[1] < 1 || x->dim[1] > spec->tokens ||
      x->dim[2] < 1 || x->dim[2] > 1 << 24)
    return sl_fail (e,
                    "hidden: the states of layer %d are %s, allowed is (b, "
                    "tokens up to %d, width)",
                    layer, sl_shape_text (x->ndim, x->dim, text, sizeof text),
                    spec->tokens);
  if (first < 0 || x->dim[0] > spec->samples - first)
    return sl_fail (e, "hidden: samples %ld to %ld; there are %ld", first + 1,
                    first + (long)x->dim[0], spec->samples);
  if (make_room (h, (int)x->dim[2], e) < 0) return -1;
  for (ptrdiff_t b = 0; b < x->dim[0]; b++) {
    sequence s = { h, x, sl_tensor_view (x), b, first + b, layer, 0, 0 };
    unsigned char *seen =
        &h->seen[(size_t)layer * (size_t)spec->samples + (size_t)s.sample];
    if (*seen)
      return sl_fail (e, "hidden: layer %d of sample %ld was given before",
                      layer, s.sample + 1);
    *seen = 1;
    sl_valid_range (&h->m, s.sample, &s.begin, &s.end);
    if (s.end > x->dim[1]) s.end = (int)x->dim[1];
    if (s.begin >= s.end) continue;
    measure_segments (&s);
    measure_entries (&s);
  }
  return 0;
}

static void state_result (const sl_state *s, sl_state *out) {
  const double sequences = (double)s->sequences, pairs = (double)s->pairs;
  *out = *s;
  out->first_norm = s->first_norm / (double)s->segments;
  out->other_norm = s->other_norm / pairs;
  out->peak = s->peak / pairs;
  out->max_norm = s->max_norm / sequences;
  out->kurtosis = s->kurtosis / sequences;
  out->channel_kurtosis = s->channel_kurtosis / sequences;
  out->median = s->median / sequences;
  out->massive = s->massive / sequences;
}

sl_hidden_result *sl_hidden_finish (sl_hidden *h, sl_error *e) {
  const sl_hidden_spec *spec = &h->spec;
  const size_t norms = states_of (h) * (size_t)spec->tokens;
  sl_hidden_result *r;
  for (size_t i = 0; i < states_of (h) * (size_t)spec->samples; i++)
    if (!h->seen[i]) {
      sl_fail (e, "hidden: layer %zu of sample %zu has not been given",
               i / (size_t)spec->samples, i % (size_t)spec->samples + 1);
      return NULL;
    }
  r = sl_alloc (1, sizeof *r);
  if (r == NULL) {
    fail_memory (e);
    return NULL;
  }
  *r = (sl_hidden_result){ .layers = spec->layers, .tokens = spec->tokens };
  r->state = sl_alloc (states_of (h), sizeof *r->state);
  r->norm = sl_alloc (norms, sizeof *r->norm);
  if (!r->state || !r->norm) goto no_memory;
  for (size_t l = 0; l < states_of (h); l++)
    state_result (&h->state[l], &r->state[l]);
  for (size_t i = 0; i < norms; i++) r->norm[i] = h->norm[i] / h->count[i];
  if (sl_secondary_find (h->similar, spec, &h->m, r) == 0) return r;
no_memory:
  sl_hidden_result_free (r);
  fail_memory (e);
  return NULL;
}

void sl_hidden_result_free (sl_hidden_result *r) {
  if (r == NULL) return;
  sl_free (r->state);
  sl_free (r->norm);
  sl_free (r->secondary);
  sl_free (r);
}
