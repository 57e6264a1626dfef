/* distributions.c - uniform, normal, randint, bernoulli, categorical.
**
** Element i of sample s (axis 0 counts samples; i is row-major within one) is
** made of word i % 4 of the counter { i / 4, first_sample + s, step, stream }
** under the key seed: its high word. Where more bits are needed, its low word
** is the same word of the counter with 2^31 added to i / 4. f32 draws are the
** f64 draws with fewer bits, so both precisions see the same data:
**
**   uniform     f32: 24 bits of the high word; f64: 53 bits of both
**   normal      Box-Muller on elements (2k, 2k + 1): radius from the first,
**               angle from the second; f32: 32 bits each (|z| up to 6.8),
**               f64: 64 (up to 9.5)
**   randint     up to 2^16 values: the high word; more: both.
**               (word * values) >> bits, so no value's probability is off by
**               more than 2^-32 (2^-64)
**   bernoulli   high word < p 2^32
**   categorical 53 bits of both, times the sum of the probabilities */
#include "base/number.h"
#include "ops/box_muller.h"
#include "ops/ops.h"
#include "ops/philox.h"
#include "ops/walk.h"
#include <math.h>

/* Counters of a block, and the numbers that they give. */
enum { COUNTERS = 3 * SL_PHILOX_BATCH, NUMBERS = 4 * COUNTERS };

/* A distribution: n values (a multiple of 4 SL_PHILOX_BATCH, at most NUMBERS)
** from n high (and low) words. 'table' (n) has cumulative probabilities. */
typedef struct source {
  void (*fill) (const struct source *s, int n, const uint32_t *hi,
                const uint32_t *lo, real *restrict v);
  int low_words;
  double a, b;
  real most; /* uniform: the largest value below b */
  const double *table;
  ptrdiff_t n;
} source;

/* The next counter of a tensor; there are 'groups' counters a sample. */
typedef struct position {
  uint32_t group, groups, sample;
} position;

/* Set p to the counter after (group, sample). */
static void advance (position *p, uint32_t group, uint32_t sample) {
  const int ends = group + 1 == p->groups;
  p->group = ends ? 0 : group + 1;
  p->sample = sample + (uint32_t)ends;
}

/* The next n counters, padded to a multiple of SL_PHILOX_BATCH with the last
** one; returns the number with padding. */
static int next_counters (position *p, int n, uint32_t *c0, uint32_t *c1) {
  const uint32_t groups = p->groups, first = p->group, sample = p->sample;
  const int all = (int)sl_round_up (n, SL_PHILOX_BATCH);
  enum { ENDS = 4 }; /* the most samples that end in a block of large samples */
  if (groups >= COUNTERS / ENDS && groups < UINT32_MAX / 8)
    for (int i = 0; i < all; i++) {
      const uint32_t g = first + (uint32_t)(i < n ? i : n - 1);
      uint32_t past = 0;
      for (uint32_t k = 1; k <= ENDS; k++) past += g >= k * groups;
      c0[i] = g - past * groups;
      c1[i] = sample + past;
    }
  else
    for (int i = 0; i < all; i++) {
      c0[i] = i < n ? p->group : c0[n - 1];
      c1[i] = i < n ? p->sample : c1[n - 1];
      if (i < n) advance (p, c0[i], c1[i]);
    }
  advance (p, c0[n - 1], c1[n - 1]);
  return all;
}

/* Fill the output, a block of counters at a time. */
static void draw (const sl_run *r, const source *s) {
  const sl_random_attr *attr = r->attr;
  const ptrdiff_t samples = attr->ndim > 0 ? attr->dim[0] : 1;
  const ptrdiff_t total = (ptrdiff_t)sl_view_count (&r->out[0]);
  uint32_t c0[COUNTERS], c1[COUNTERS], hi[NUMBERS], lo[NUMBERS];
  real values[NUMBERS], *y = r->out[0].data;
  if (total == 0) return;
  const ptrdiff_t each = total / samples, groups = (each + 3) / 4;
  position p = { 0, (uint32_t)groups, r->draw->first_sample };
  for (ptrdiff_t left = groups * samples; left > 0; left -= COUNTERS) {
    const int n = left < COUNTERS ? (int)left : COUNTERS;
    ptrdiff_t at = p.group;
    const int all = next_counters (&p, n, c0, c1);
    sl_philox_many (r->draw, attr->stream, all, c0, c1, hi);
    if (s->low_words) {
      for (int i = 0; i < all; i++) c0[i] |= 0x80000000u;
      sl_philox_many (r->draw, attr->stream, all, c0, c1, lo);
    }
    if (each % 4 == 0 && n == all) {
      s->fill (s, 4 * n, hi, s->low_words ? lo : hi, y);
      y += 4 * n;
      continue;
    }
    s->fill (s, 4 * all, hi, s->low_words ? lo : hi, values);
    if (each % 4 == 0) {
      memcpy (y, values, (size_t)(4 * n) * sizeof *y);
      y += 4 * n;
      continue;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
      const ptrdiff_t here = each - 4 * at < 4 ? each - 4 * at : 4;
      for (ptrdiff_t k = 0; k < here; k++) *y++ = values[4 * i + k];
      if (++at == groups) at = 0;
    }
  }
}

static int shapes (sl_shape_query *q, sl_error *e) {
  const sl_random_attr *attr = q->attr;
  size_t each = 1;
  q->n_out = 1;
  if (attr->ndim < 0 || attr->ndim > SL_MAX_DIMS)
    return sl_fail (e, "%d axes, allowed are 0 to %d", attr->ndim, SL_MAX_DIMS);
  q->out[0].ndim = attr->ndim;
  for (int i = 0; i < attr->ndim; i++) {
    const ptrdiff_t n = q->out[0].dim[i] = attr->dim[i];
    if (n < 0) return sl_fail (e, "size %td of axis %d is negative", n, i);
    if (i > 0 && n > 0 && each > ((size_t)1 << 33) / (size_t)n)
      return sl_fail (e, "a sample has more than 2^33 elements");
    if (i > 0 && n > 0) each *= (size_t)n;
  }
  return 0;
}

/* The largest real below b, or b itself if a = b; a <= b. */
static real below (real b, real a) {
  if (a == b) return b;
  if (b == 0) return -sl_from_bits (1);
  return sl_from_bits (sl_to_bits (b) + (b > 0 ? (sl_bits)-1 : 1));
}

/* a <= v < b, also where the rounding of a sum would reach b. */
static void fill_uniform (const source *s, int n, const uint32_t *hi,
                          const uint32_t *lo, real *restrict v) {
  const real a = (real)s->a, width = (real)(s->b - s->a), b = (real)s->b;
  const real most = s->most;
  const real largest = (real)(sizeof a == 4 ? 1 - 0x1p-24 : 1 - 0x1p-53);
  for (int i = 0; i < n; i++) {
#ifdef SL_SINGLE
    v[i] = a + width * ((real)(int32_t)(hi[i] >> 8) * 0x1p-24f);
    (void)lo;
#else
    v[i] = a + width * (sl_word_to_real (hi[i]) * 0x1p-32 +
                        (real)(int32_t)(lo[i] >> 11) * 0x1p-53);
#endif
  }
  /* No value can reach b: the largest one, rounded up, is below it. */
  if (a + width * largest < most) return;
  for (int i = 0; i < n; i++) v[i] = sl_choose (v[i] < b, v[i], most);
}

static int uniform_shapes (sl_shape_query *q, sl_error *e) {
  const sl_random_attr *attr = q->attr;
  if (!isfinite ((real)attr->a) || !isfinite ((real)attr->b) ||
      !isfinite ((real)(attr->b - attr->a)) || !(attr->a <= attr->b))
    return sl_fail (e, "the range is %g to %g, it must be finite and not empty",
                    attr->a, attr->b);
  return shapes (q, e);
}

/* Box and Muller (1958): r = sqrt (-2 log u), (r cos, r sin) of the angle. */
static void fill_normal (const source *s, int n, const uint32_t *hi,
                         const uint32_t *lo, real *restrict v) {
  const real mean = (real)s->a, deviation = (real)s->b;
  for (int i = 0; i < n; i += 2) {
    const real square = 2 * sl_minus_log (hi[i], lo[i]);
    const real radius =
        deviation * (sizeof (real) == 4 ? (real)sqrtf ((float)square)
                                        : (real)sqrt ((double)square));
    real c, d;
    sl_cos_sin (hi[i + 1], lo[i + 1], &c, &d);
    v[i] = mean + radius * c;
    v[i + 1] = mean + radius * d;
  }
}

static int normal_shapes (sl_shape_query *q, sl_error *e) {
  const sl_random_attr *attr = q->attr;
  if (!isfinite ((real)attr->a) || !isfinite ((real)attr->b) || attr->b < 0)
    return sl_fail (e,
                    "mean %g and standard deviation %g must be finite, the "
                    "deviation not negative",
                    attr->a, attr->b);
  return shapes (q, e);
}

/* The upper 64 bits of x n. */
static uint64_t high_product (uint64_t x, uint64_t n) {
  const uint64_t xh = x >> 32, xl = x & 0xffffffffu;
  const uint64_t nh = n >> 32, nl = n & 0xffffffffu;
  const uint64_t middle = xh * nl + (xl * nl >> 32);
  const uint64_t carry = xl * nh + (middle & 0xffffffffu);
  return xh * nh + (middle >> 32) + (carry >> 32);
}

static void fill_randint (const source *s, int n, const uint32_t *hi,
                          const uint32_t *lo, real *restrict v) {
  const real a = (real)s->a;
  if (!s->low_words) {
    const uint32_t many = (uint32_t)(s->b - s->a) + 1;
    for (int i = 0; i < n; i++)
      v[i] = a + (real)(int32_t)(uint32_t)(((uint64_t)hi[i] * many) >> 32);
    return;
  }
  const uint64_t many = (uint64_t)(s->b - s->a) + 1;
  for (int i = 0; i < n; i++) {
    const uint64_t k = high_product ((uint64_t)hi[i] << 32 | lo[i], many);
    v[i] = (real)((int64_t)s->a + (int64_t)k);
  }
}

static int randint_shapes (sl_shape_query *q, sl_error *e) {
  const sl_random_attr *attr = q->attr;
  const double most = sizeof (real) == 4 ? 0x1p24 : 0x1p53;
  if (!(fabs (attr->a) <= most) || !(fabs (attr->b) <= most) ||
      attr->a != floor (attr->a) || attr->b != floor (attr->b) ||
      attr->a > attr->b)
    return sl_fail (
        e,
        "the bounds are %.17g and %.17g, two whole numbers in order "
        "within %.0f are needed",
        attr->a, attr->b, most);
  return shapes (q, e);
}

static void fill_bernoulli (const source *s, int n, const uint32_t *hi,
                            const uint32_t *lo, real *restrict v) {
  const uint64_t bound = (uint64_t)ceil (s->a * 0x1p32);
  const uint32_t last = (uint32_t)(bound - 1);
  const real one = bound > 0;
  (void)lo;
  for (int i = 0; i < n; i++) v[i] = hi[i] <= last ? one : 0;
}

static int bernoulli_shapes (sl_shape_query *q, sl_error *e) {
  const sl_random_attr *attr = q->attr;
  if (!(attr->a >= 0 && attr->a <= 1))
    return sl_fail (e, "the probability is %g, allowed are 0 to 1", attr->a);
  return shapes (q, e);
}

/* The number of table entries <= u * sum: the first category that u does not
** pass. s->n counts up to the last category of probability > 0. */
static void fill_categorical (const source *s, int n, const uint32_t *hi,
                              const uint32_t *lo, real *restrict v) {
  for (int i = 0; i < n; i++) {
    const double u = (double)(((uint64_t)hi[i] << 32 | lo[i]) >> 11) * 0x1p-53;
    const double x = u * s->table[s->n - 1];
    ptrdiff_t low = 0, high = s->n - 1;
    while (low < high) {
      const ptrdiff_t middle = (low + high) / 2;
      if (s->table[middle] <= x)
        low = middle + 1;
      else
        high = middle;
    }
    v[i] = (real)low;
  }
}

/* probabilities (k), need not sum to 1. */
static int categorical_shapes (sl_shape_query *q, sl_error *e) {
  if (q->in[0].ndim != 1 || q->in[0].dim[0] < 1) {
    char text[128];
    return sl_fail (
        e, "the probabilities have shape %s, (k) is needed, k >= 1",
        sl_shape_text (q->in[0].ndim, q->in[0].dim, text, sizeof text));
  }
  if (sizeof (real) == 4 && q->in[0].dim[0] > 1 << 24)
    return sl_fail (e, "an index into %td probabilities is not exact in f32",
                    q->in[0].dim[0]);
  q->scratch = (size_t)q->in[0].dim[0] * (sizeof (double) / sizeof (real));
  return shapes (q, e);
}

/* Probabilities that are negative, NaN or all zero draw NaN. */
static void categorical_forward (const sl_run *r) {
  const sl_view *p = &r->in[0];
  double *table = r->scratch, sum = 0;
  source s = { .fill = fill_categorical, .low_words = 1, .table = table };
  int good = 1;
  for (ptrdiff_t k = 0; k < p->dim[0]; k++) {
    const double x = (double)((const real *)p->data)[k * p->stride[0]];
    good &= x >= 0 && isfinite (x);
    table[k] = sum += x;
    if (x > 0) s.n = k + 1;
  }
  if (good && s.n > 0) {
    draw (r, &s);
    return;
  }
  for (size_t i = 0; i < sl_view_count (&r->out[0]); i++)
    ((real *)r->out[0].data)[i] = (real)NAN;
}

#define FORWARD(name, low)                                             \
  static void name##_forward (const sl_run *r) {                       \
    const sl_random_attr *attr = r->attr;                              \
    const source s = { .fill = fill_##name,                            \
                       .low_words = low,                               \
                       .a = attr->a,                                   \
                       .b = attr->b,                                   \
                       .most = below ((real)attr->b, (real)attr->a) }; \
    draw (r, &s);                                                      \
  }
FORWARD (uniform, sizeof (real) == 8)
FORWARD (normal, sizeof (real) == 8)
FORWARD (randint, attr->b - attr->a > 65535)
FORWARD (bernoulli, 0)

#define SL_OP_DRAW(name, inputs)                                        \
  SL_OP (name, .min_in = inputs, .max_in = inputs,                      \
         .flags = SL_OP_NO_GRADIENT | SL_OP_RANDOM,                     \
         .attr_size = sizeof (sl_random_attr), .shapes = name##_shapes, \
         .forward = name##_forward);
SL_OP_DRAW (uniform, 0)
SL_OP_DRAW (normal, 0)
SL_OP_DRAW (randint, 0)
SL_OP_DRAW (bernoulli, 0)
SL_OP_DRAW (categorical, 1)
