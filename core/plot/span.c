/* span.c - what line plots and bars share: series and the ranges of axes. */
#include "base/memory.h"
#include "plot/panel.h"
#include <math.h>
#include <string.h>

int sl_shown (double x, int log) {
  return isfinite (x) && (!log || x > 0);
}

static double *copy (const double *from, size_t n) {
  double *to = sl_alloc (n, sizeof *to);
  if (to) memcpy (to, from, n * sizeof *to);
  return to;
}

int sl_series_take (sl_series_data *to, const sl_series *from, int number,
                    const char *what, sl_error *e) {
  size_t bytes;
  if (from->n == 0)
    return sl_fail (e, "series %d of the %s has no points", number, what);
  if (!from->low != !from->high)
    return sl_fail (e, "series %d has only one edge of its band, '%s'", number,
                    from->low ? "low" : "high");
  if (!from->y && !from->low)
    return sl_fail (e, "series %d has neither y nor a band", number);
  to->label = sl_text_copy (from->label, "", "a series' label", e);
  if (!to->label) return -1;
  for (char *p = to->label; *p; p++)
    if (*p == '\n') *p = ' ';
  to->n = from->n;
  to->markers = from->markers || from->points;
  to->points = from->points;
  if (sl_size_mul (from->n, sizeof *to->x, &bytes))
    return sl_fail (e, "series %d has too many points: %zu", number, from->n);
  to->x = from->x ? copy (from->x, from->n) : sl_alloc (from->n, sizeof *to->x);
  if (from->y) to->y = copy (from->y, from->n);
  if (from->low) to->low = copy (from->low, from->n);
  if (from->high) to->high = copy (from->high, from->n);
  if (!to->x || (from->y && !to->y) || (from->low && (!to->low || !to->high)))
    return sl_fail (e, "no memory for %zu points of series %d", from->n,
                    number);
  if (!from->x)
    for (size_t i = 0; i < from->n; i++) to->x[i] = (double)(i + 1);
  return 0;
}

void sl_series_drop (sl_series_data *s) {
  sl_free (s->label);
  sl_free (s->x);
  sl_free (s->y);
  sl_free (s->low);
  sl_free (s->high);
}

/* The end of a range as scripts give it. */
static const char *end_text (const sl_range *r, double end, char text[32]) {
  if (r->min == r->max || isnan (end)) return "data";
  return sl_number_text (end, 6, text, 32);
}

int sl_ranges_agree (const sl_range *asked, const sl_range *first,
                     const char *what, int panel, sl_error *e) {
  const int all_free = asked->min == asked->max;
  char a[32], b[32], c[32], d[32];
  if (asked->log != first->log)
    return sl_fail (e,
                    "panel %d has a %s scale of %s, but panel 1 a %s one: "
                    "panels that share it must agree",
                    panel, asked->log ? "logarithmic" : "linear", what,
                    first->log ? "logarithmic" : "linear");
  if (all_free || ((isnan (asked->min) || asked->min == first->min) &&
                   (isnan (asked->max) || asked->max == first->max)))
    return 0;
  return sl_fail (e,
                  "panel %d asks for %s from %s to %s, but panel 1 from %s to "
                  "%s: panels that share it must agree",
                  panel, what, end_text (asked, asked->min, a),
                  end_text (asked, asked->max, b),
                  end_text (first, first->min, c),
                  end_text (first, first->max, d));
}

int sl_series_agree (const sl_series_data *first, int n_first,
                     const sl_series_data *s, int n, int panel, sl_error *e) {
  if (n != n_first)
    return sl_fail (e,
                    "panel %d has %d series, but panel 1 has %d: under a "
                    "shared legend they must agree",
                    panel, n, n_first);
  for (int i = 0; i < n; i++)
    if (strcmp (s[i].label, first[i].label) != 0)
      return sl_fail (e,
                      "series %d of panel %d is '%.80s', but of panel 1 "
                      "'%.80s': under a shared legend they must agree",
                      i + 1, panel, s[i].label, first[i].label);
  return 0;
}

void sl_span_include (sl_span *s, double x) {
  if (x < s->lo) s->lo = x;
  if (x > s->hi) s->hi = x;
}

/* Ends that are free stand a little off the data, where numbers go on. */
int sl_span_settle (sl_span *s, const char *what, sl_error *e) {
  sl_range *r = &s->range, wide;
  int both = s->asked.min == s->asked.max;
  int low = both || isnan (s->asked.min), high = both || isnan (s->asked.max);
  *r = s->asked;
  if (sl_range_settle (r, s->lo, s->hi, what, e)) return -1;
  if (s->lo >= s->hi) return 0;
  wide = *r;
  if (r->log) {
    double factor = exp (0.03 * (log (r->max) - log (r->min)));
    if (low) wide.min = r->min / factor;
    if (high) wide.max = r->max * factor;
  } else {
    double pad = (r->max - r->min) * 0.03;
    if (low) wide.min = r->min - pad;
    if (high) wide.max = r->max + pad;
  }
  if (isfinite (wide.max - wide.min)) *r = wide;
  return 0;
}

double sl_aspect (double given) {
  return given > 0 ? given : 1.5;
}

int sl_check_aspect (double aspect, sl_error *e) {
  if (aspect == 0 || (aspect >= 0.2 && aspect <= 5)) return 0;
  return sl_fail (e, "aspect is %g: 0.2 to 5 (width over height) are allowed",
                  aspect);
}

void sl_error_bar (cairo_t *cr, double x, double low, double high, double cap) {
  cairo_set_dash (cr, NULL, 0, 0);
  cairo_set_line_width (cr, 1);
  cairo_move_to (cr, x, low);
  cairo_line_to (cr, x, high);
  cairo_move_to (cr, x - cap, low);
  cairo_line_to (cr, x + cap, low);
  cairo_move_to (cr, x - cap, high);
  cairo_line_to (cr, x + cap, high);
  cairo_stroke (cr);
}
