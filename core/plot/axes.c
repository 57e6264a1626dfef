/* axes.c - the part that line plots and bars share: series, ranges, ticks. */
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

static int take_series (sl_series_data *to, const sl_series *from, int number,
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

/* -1 and a sentence unless the panel has the labels of panel 1. */
static int series_agree (const sl_axes_data *first, const sl_axes_data *d,
                         int panel, sl_error *e) {
  if (d->n != first->n)
    return sl_fail (e,
                    "panel %d has %d series, but panel 1 has %d: under a "
                    "shared legend they must agree",
                    panel, d->n, first->n);
  for (int i = 0; i < d->n; i++)
    if (strcmp (d->series[i].label, first->series[i].label) != 0)
      return sl_fail (e,
                      "series %d of panel %d is '%.80s', but of panel 1 "
                      "'%.80s': under a shared legend they must agree",
                      i + 1, panel, d->series[i].label, first->series[i].label);
  return 0;
}

static void include (sl_span *s, double x) {
  if (x < s->lo) s->lo = x;
  if (x > s->hi) s->hi = x;
}

/* Ends that are free stand a little off the data, where numbers go on. */
static int settle (sl_span *s, const char *what, sl_error *e) {
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

/* The length of a bar means something only if a linear axis holds 0, and ends
** there if no bar crosses it. */
static int settle_bars (sl_span *y, sl_error *e) {
  sl_span with_zero = *y;
  int free_ends = y->asked.min == y->asked.max;
  if (y->asked.log || y->lo > y->hi) return settle (y, "y", e);
  include (&with_zero, 0);
  if (settle (&with_zero, "y", e)) return -1;
  y->range = with_zero.range;
  if (with_zero.lo == 0 && (free_ends || isnan (y->asked.min)))
    y->range.min = 0;
  if (with_zero.hi == 0 && with_zero.lo < 0 &&
      (free_ends || isnan (y->asked.max)))
    y->range.max = 0;
  return 0;
}

static int settle_axes (sl_axes_data *d, sl_error *e) {
  if (d->groups) {
    d->x.range = (sl_range){ 0.5, (double)d->groups + 0.5, 0 };
    return settle_bars (&d->y, e);
  }
  return settle (&d->x, "x", e) ? -1 : settle (&d->y, "y", e);
}

/* The ranges of the points that can be shown; counts the others. */
static void measure (sl_axes_data *d) {
  sl_span *x = &d->x, *y = &d->y;
  x->lo = y->lo = INFINITY, x->hi = y->hi = -INFINITY;
  for (int s = 0; s < d->n; s++) {
    const sl_series_data *q = &d->series[s];
    const double *column[3] = { q->y, q->low, q->high };
    for (size_t i = 0; i < q->n; i++) {
      int lost = !isnan (q->x[i]) && !sl_shown (q->x[i], x->asked.log);
      for (int k = 0; k < 3; k++) {
        double v = column[k] ? column[k][i] : NAN;
        if (isnan (v) || isnan (q->x[i])) continue;
        /* A band may touch zero on a log axis: it is cut at the axis. */
        if (!sl_shown (v, y->asked.log))
          lost |= k != 1 || !isfinite (v);
        else if (sl_shown (q->x[i], x->asked.log)) {
          include (x, q->x[i]);
          include (y, v);
        }
      }
      d->left_out += (size_t)lost;
    }
  }
}

int sl_axes_fill (sl_panel *p, const sl_lines *lines, size_t groups,
                  sl_error *e) {
  sl_axes_data *d = &p->axes;
  d->groups = groups;
  d->series = sl_alloc ((size_t)lines->n, sizeof *d->series);
  if (!d->series) return sl_fail (e, "no memory for %d series", lines->n);
  for (int i = 0; i < lines->n; i++) {
    d->n = i + 1;
    sl_series s = lines->series[i];
    if (groups) s.x = NULL, s.n = groups;
    if (take_series (&d->series[i], &s, i + 1, groups ? "bars" : "line plot",
                     e))
      return -1;
  }
  if (lines->aspect != 0 && !(lines->aspect >= 0.2 && lines->aspect <= 5))
    return sl_fail (e, "aspect is %g: 0.2 to 5 (width over height) are allowed",
                    lines->aspect);
  if (sl_marks_copy (&d->xticks, &lines->xticks,
                     groups ? "names of bars" : "x ticks", e) ||
      sl_marks_copy (&d->yticks, &lines->yticks, "y ticks", e))
    return -1;
  d->aspect = lines->aspect > 0 ? lines->aspect : 1.5;
  d->x.asked = (sl_range){ lines->xmin, lines->xmax, lines->xlog };
  d->y.asked = (sl_range){ lines->ymin, lines->ymax, lines->ylog };
  measure (d);
  return settle_axes (d, e);
}

void sl_axes_drop (sl_panel *p) {
  sl_axes_data *d = &p->axes;
  for (int i = 0; i < d->n; i++) {
    sl_free (d->series[i].label);
    sl_free (d->series[i].x);
    sl_free (d->series[i].y);
    sl_free (d->series[i].low);
    sl_free (d->series[i].high);
  }
  sl_free (d->series);
  sl_marks_free (&d->xticks);
  sl_marks_free (&d->yticks);
}

/* The ranges and the legend are those of all panels. */
int sl_axes_share (sl_figure *f, int count, sl_error *e) {
  const sl_axes_data *first = &f->panel[0].axes,
                     *last = &f->panel[count - 1].axes;
  sl_axes_data all = *first;
  if (last->groups != first->groups)
    return sl_fail (e,
                    "panel %d has %zu groups, but panel 1 has %zu: panels that "
                    "share axes must agree",
                    count, last->groups, first->groups);
  if (sl_ranges_agree (&last->x.asked, &first->x.asked, "x", count, e) ||
      sl_ranges_agree (&last->y.asked, &first->y.asked, "y", count, e) ||
      series_agree (first, last, count, e))
    return -1;
  for (int i = 1; i < count; i++) {
    const sl_axes_data *d = &f->panel[i].axes;
    all.x.lo = fmin (all.x.lo, d->x.lo), all.x.hi = fmax (all.x.hi, d->x.hi);
    all.y.lo = fmin (all.y.lo, d->y.lo), all.y.hi = fmax (all.y.hi, d->y.hi);
  }
  if (settle_axes (&all, e)) return -1;
  for (int i = 0; i < count; i++) {
    f->panel[i].axes.x.range = all.x.range;
    f->panel[i].axes.y.range = all.y.range;
  }
  return 0;
}

void sl_axes_size (const sl_panel *p, double side, double *w, double *h) {
  double aspect = p->axes.aspect;
  *w = floor (side < 0 ? -side * fmin (1, aspect) : side * 1.2);
  *h = floor (*w / aspect);
}

void sl_axes_ticks (const sl_panel *p, sl_axis axis, int most, sl_ticks *t) {
  const sl_axes_data *d = &p->axes;
  const sl_marks_data *marks = axis == SL_X ? &d->xticks : &d->yticks;
  const sl_range *r = axis == SL_X ? &d->x.range : &d->y.range;
  if (marks->n)
    sl_marks_ticks (marks, r, most, t);
  else
    sl_ticks_range (r, most < 9 ? most : 9, t);
}

double sl_axes_along (const sl_panel *p, sl_axis axis, double at) {
  return axis == SL_X ? sl_range_fraction (&p->axes.x.range, at)
                      : 1 - sl_range_fraction (&p->axes.y.range, at);
}

const char *sl_axes_entry (const sl_panel *p, int i) {
  return i < p->axes.n ? p->axes.series[i].label : NULL;
}

void sl_clip (cairo_t *cr, const sl_box *b) {
  cairo_save (cr);
  cairo_rectangle (cr, b->x, b->y, b->w, b->h);
  cairo_clip (cr);
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
