/* ticks.c - ranges of axes and colours, their ticks, numbers as text. */
#include "plot/ticks.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Move the free ends of a range that has no width away from the end that is
** given, or from the one value there is. */
static void widen (sl_range *r, int low, int high) {
  double at = low ? r->max : r->min, pad = fabs (at) / 2;
  if (r->log) {
    if (low) r->min = at / 2;
    if (high) r->max = at * 2;
  } else if (pad < 1e-280) { /* zeros are shown on 0..1 */
    if (high) r->max = at + 1;
    if (low && !high) r->min = at - 1;
  } else {
    if (low) r->min = at - pad;
    if (high) r->max = at + pad;
  }
}

/* Wide enough to be divided into ticks. */
static int has_width (const sl_range *r) {
  double largest = fmax (fabs (r->min), fabs (r->max));
  return r->max - r->min > fmax (1e-12 * largest, 1e-290);
}

int sl_range_settle (sl_range *r, double lo, double hi, const char *what,
                     sl_error *e) {
  int both = r->min == r->max;
  int low = both || isnan (r->min), high = both || isnan (r->max);
  if (lo > hi) lo = r->log ? 1e-3 : 0, hi = 1;
  if (r->log) { /* room for ratios at the end of the numbers' range */
    lo = fmax (lo, 1e-280);
    hi = fmax (hi, 1e-280);
  }
  if (low) r->min = lo;
  if (high) r->max = hi;
  if (!isfinite (r->min) || !isfinite (r->max) || !isfinite (r->max - r->min))
    return sl_fail (e, "the range of %s, %g to %g, is not finite", what, r->min,
                    r->max);
  if (r->log && ((!low && r->min <= 0) || (!high && r->max <= 0)))
    return sl_fail (e,
                    "the range of %s, %g to %g, is logarithmic: both ends "
                    "must be above 0",
                    what, r->min, r->max);
  if ((low || high) && !has_width (r)) widen (r, low, high);
  if (!has_width (r))
    return sl_fail (e,
                    "the range of %s is empty: its low end %g is not below "
                    "its high end %g",
                    what, r->min, r->max);
  return 0;
}

double sl_range_fraction (const sl_range *r, double x) {
  if (!r->log) return (x - r->min) / (r->max - r->min);
  if (x <= 0) return -INFINITY;
  return (log (x) - log (r->min)) / (log (r->max) - log (r->min));
}

/* mantissa 1, 2 or 5 and exponent of the smallest step that is not below x. */
static double nice_step (double x, int *exponent) {
  static const double mantissa[] = { 1, 2, 5, 10 };
  int k = (int)floor (log10 (x));
  double power = pow (10, k);
  for (size_t i = 0; i < 4; i++)
    if (mantissa[i] * power >= x * (1 - 1e-9)) {
      *exponent = i == 3 ? k + 1 : k;
      return mantissa[i] * power;
    }
  *exponent = k + 1;
  return 10 * power;
}

/* "2.50e-07" becomes "2.50e-7". */
static void short_exponent (char *text) {
  char *from = strchr (text, 'e'), *to;
  if (!from++) return;
  to = from;
  if (*from == '-') *to++ = *from;
  from++;
  while (*from == '0' && from[1]) from++;
  memmove (to, from, strlen (from) + 1);
}

char *sl_number_text (double x, int digits, char *text, size_t size) {
  snprintf (text, size, "%.*g", digits, x == 0 ? 0.0 : x);
  short_exponent (text);
  return text;
}

/* Bytes of text that fit, whole characters only. */
static size_t fitting (const char *text, size_t most) {
  size_t n = strlen (text);
  if (n <= most) return n;
  for (n = most; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;) n--;
  return n;
}

void sl_ticks_add (sl_ticks *t, double at, const char *label) {
  static const char cut[] = "…";
  size_t most = SL_TICK_BYTES - 1, n = fitting (label, most);
  char *to;
  if (t->n == SL_MAX_TICKS) return;
  t->at[t->n] = at;
  to = t->label[t->n++];
  if (label[n]) n = fitting (label, most - strlen (cut));
  memcpy (to, label, n);
  strcpy (to + n, label[n] ? cut : "");
}

static void linear (double min, double max, int most, sl_ticks *t) {
  int exponent;
  double step = nice_step ((max - min) / (most + 1), &exponent), first, last;
  double largest = fmax (fabs (min), fabs (max));
  int scientific = largest >= 1e6 || largest < 1e-3;
  for (;;) {
    first = ceil (min / step - 1e-6), last = floor (max / step + 1e-6);
    if (last - first + 1 <= most) break;
    step = nice_step (step * 1.5, &exponent);
  }
  for (double i = first; i <= last; i++) {
    double x = i * step;
    char text[64];
    int digits = exponent < 0 ? -exponent : 0;
    if (i == 0 && scientific)
      strcpy (text, "0");
    else if (scientific)
      snprintf (text, sizeof text, "%.*e",
                (int)floor (log10 (fabs (x)) + 1e-9) - exponent, x);
    else
      snprintf (text, sizeof text, "%.*f", digits, i == 0 ? 0.0 : x);
    if (scientific) short_exponent (text);
    sl_ticks_add (t, x, text);
  }
}

static void logarithmic (double min, double max, int most, sl_ticks *t) {
  int first = (int)ceil (log10 (min) - 1e-9),
      last = (int)floor (log10 (max) + 1e-9);
  int decades = last - first + 1, stride = 1, plain;
  if (decades < 2) { /* too few powers of ten: 1, 2, 5, or else linear ticks */
    static const int mantissa[] = { 1, 2, 5 };
    char text[32];
    for (int k = first - 1; k <= last; k++)
      for (size_t i = 0; i < 3; i++) {
        double x = mantissa[i] * pow (10, k);
        if (x < min * (1 - 1e-9) || x > max * (1 + 1e-9)) continue;
        sl_ticks_add (t, x, sl_number_text (x, 3, text, sizeof text));
      }
    if (t->n >= 2 && t->n <= most) return;
    t->n = 0;
    linear (min, max, most, t);
    return;
  }
  while ((decades + stride - 1) / stride > most) stride++;
  plain = first >= -3 && last <= 4;
  for (int k = first - 1; k <= last; k++) {
    char text[32] = "";
    /* Labelled powers are multiples of the stride, whatever the range. */
    int labelled = k >= first && ((k % stride) + stride) % stride == 0;
    if (labelled && plain) sl_number_text (pow (10, k), 3, text, sizeof text);
    if (labelled && !plain) snprintf (text, sizeof text, "1e%d", k);
    if (k >= first) sl_ticks_add (t, pow (10, k), text);
    for (int i = 2; i < 10 && decades <= 8; i++)
      if (i * pow (10, k) >= min && i * pow (10, k) <= max)
        sl_ticks_add (t, i * pow (10, k), "");
  }
}

void sl_ticks_range (const sl_range *r, int most, sl_ticks *t) {
  t->n = 0, t->words = 0;
  (r->log ? logarithmic : linear) (r->min, r->max, most < 2 ? 2 : most, t);
}

void sl_ticks_positions (size_t first, size_t last, int most, sl_ticks *t) {
  static const unsigned mantissa[] = { 1, 2, 5 };
  size_t n = last - first + 1, step = 1, power = 1;
  char text[24];
  if (most > SL_MAX_TICKS) most = SL_MAX_TICKS;
  for (int i = 1; (n + step - 1) / step > (size_t)most; i++) {
    if (i % 3 == 0) power *= 10;
    step = mantissa[i % 3] * power;
  }
  t->n = 0, t->words = 0;
  for (size_t k = first; k <= last;) {
    snprintf (text, sizeof text, "%zu", k);
    sl_ticks_add (t, (double)k, text);
    if (last - k < step) break;
    k = k == first && step > 2 ? (k / step + 1) * step : k + step;
  }
}

char *sl_pretty (const char *label, char *text, size_t size) {
  static const char *const superscript[] = { "⁰", "¹", "²", "³", "⁴",
                                             "⁵", "⁶", "⁷", "⁸", "⁹" };
  int power = 0;
  size_t n = 0;
  text[0] = 0;
  if (label[strspn (label, "0123456789.e-")]) { /* the name of a column */
    snprintf (text, size, "%s", label);
    return text;
  }
  for (const char *p = label; *p; p++) {
    char single[2] = { *p, 0 };
    const char *piece = single;
    if (*p == 'e') {
      power = 1;
      /* 1e-7 is 10 to the -7 without the 1. */
      if (n == 1 && text[0] == '1')
        n = 0, piece = "10";
      else
        piece = "×10";
    } else if (*p == '-')
      piece = power ? "⁻" : "−";
    else if (power && *p != '.')
      piece = superscript[*p - '0'];
    n += (size_t)snprintf (text + n, size - n, "%s", piece);
    if (n >= size) break;
  }
  return text;
}
