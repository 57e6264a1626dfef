/* line.c - line plots: series, bands and markers. */
#include "base/memory.h"
#include "plot/panel.h"
#include <math.h>
#include <string.h>

static int shown (double x, int log) {
  return isfinite (x) && (!log || x > 0);
}

static double *copy (const double *from, size_t n) {
  double *to = sl_alloc (n, sizeof *to);
  if (to) memcpy (to, from, n * sizeof *to);
  return to;
}

static int take_series (sl_series_data *to, const sl_series *from, int number,
                        sl_error *e) {
  size_t bytes;
  if (from->n == 0)
    return sl_fail (e, "series %d of the line plot has no points", number);
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
  to->markers = from->markers;
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

typedef struct extent {
  double lo, hi;
} extent;

static void include (extent *e, double x) {
  if (x < e->lo) e->lo = x;
  if (x > e->hi) e->hi = x;
}

/* The ranges of the points that can be shown; counts those that cannot. */
static void measure (sl_lines_data *d, extent *ex, extent *ey) {
  *ex = *ey = (extent){ INFINITY, -INFINITY };
  for (int s = 0; s < d->n; s++) {
    const sl_series_data *q = &d->series[s];
    const double *column[3] = { q->y, q->low, q->high };
    for (size_t i = 0; i < q->n; i++) {
      int lost = !isnan (q->x[i]) && !shown (q->x[i], d->x.log);
      for (int k = 0; k < 3; k++) {
        double y = column[k] ? column[k][i] : NAN;
        if (isnan (y) || isnan (q->x[i])) continue;
        /* A band may touch zero on a log axis: it is cut at the axis. */
        if (!shown (y, d->y.log))
          lost |= k != 1 || !isfinite (y);
        else if (shown (q->x[i], d->x.log)) {
          include (ex, q->x[i]);
          include (ey, y);
        }
      }
      d->left_out += (size_t)lost;
    }
  }
}

/* Ends that are free stand a little off the data, where numbers go on. */
static int settle (sl_range *r, double min, double max, extent e,
                   const char *what, sl_error *error) {
  int low = min == max || isnan (min), high = min == max || isnan (max);
  sl_range wide;
  r->min = min, r->max = max;
  if (sl_range_settle (r, e.lo, e.hi, what, error)) return -1;
  if (e.lo >= e.hi) return 0;
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

int sl_lines_fill (sl_panel *p, const sl_lines *lines, sl_error *e) {
  sl_lines_data *d = &p->lines;
  extent ex, ey;
  if (lines->n < 1 || !lines->series)
    return sl_fail (e, "a line plot of %d series: at least 1 is needed",
                    lines->n);
  d->series = sl_alloc ((size_t)lines->n, sizeof *d->series);
  if (!d->series) return sl_fail (e, "no memory for %d series", lines->n);
  for (int i = 0; i < lines->n; i++) {
    d->n = i + 1;
    if (take_series (&d->series[i], &lines->series[i], i + 1, e)) return -1;
  }
  d->x.log = lines->xlog, d->y.log = lines->ylog;
  measure (d, &ex, &ey);
  d->first = ex.lo, d->last = ex.hi;
  if (settle (&d->x, lines->xmin, lines->xmax, ex, "x", e)) return -1;
  return settle (&d->y, lines->ymin, lines->ymax, ey, "y", e);
}

static void drop (sl_panel *p) {
  for (int i = 0; i < p->lines.n; i++) {
    sl_series_data *s = &p->lines.series[i];
    sl_free (s->label);
    sl_free (s->x);
    sl_free (s->y);
    sl_free (s->low);
    sl_free (s->high);
  }
  sl_free (p->lines.series);
}

static void size (const sl_panel *p, double side, double *w, double *h) {
  (void)p;
  *w = floor (side * 1.2);
  *h = floor (side * 0.8);
}

static void ticks (const sl_panel *p, sl_axis axis, int most, sl_ticks *t) {
  sl_ticks_range (axis == SL_X ? &p->lines.x : &p->lines.y, most < 9 ? most : 9,
                  t);
}

static double along (const sl_panel *p, sl_axis axis, double at) {
  return axis == SL_X ? sl_range_fraction (&p->lines.x, at)
                      : 1 - sl_range_fraction (&p->lines.y, at);
}

/* On the page, or at most 1000 plots beside it: no format has room for
** 1e300. */
static double page (const sl_panel *p, sl_axis axis, const sl_box *b,
                    double v) {
  double f = fmax (-1e3, fmin (1e3, along (p, axis, v)));
  return axis == SL_X ? b->x + f * b->w : b->y + f * b->h;
}

/* A walk over points of a series, first to last or back. When x ascends and
** there are more points than can be told apart, those of a column half a
** point wide are reduced: to first, lowest, highest and last, or to the one
** extreme that the edge of a band shows. */
typedef struct walk {
  const sl_panel *panel;
  const sl_series_data *series;
  const double *y;
  size_t start, n; /* points start .. start + n - 1 */
  int back;
  enum { KEEP_SHAPE, KEEP_HIGHEST, KEEP_LOWEST } keep;
  double columns; /* across the plot; 0: keep every point */
} walk;

static double columns_for (const sl_series_data *s, const sl_box *b) {
  double columns = floor (2 * b->w);
  if ((double)s->n < 2 * columns) return 0;
  for (size_t i = 1; i < s->n; i++)
    if (!(s->x[i] >= s->x[i - 1])) return 0;
  return columns;
}

static size_t point (const walk *w, size_t k) {
  return w->back ? w->start + w->n - 1 - k : w->start + k;
}

static double column_of (const walk *w, size_t i) {
  return floor (along (w->panel, SL_X, w->series->x[i]) * w->columns);
}

/* The points of step *k and those that share its column, reduced to up to
** four, in walking order; *k moves behind them. */
static int next_points (const walk *w, size_t *k, size_t kept[4]) {
  size_t first = *k, end = first + 1, low = first, high = first, swap;
  double column = column_of (w, point (w, first));
  int n = 0;
  for (; w->columns > 0 && end < w->n; end++) {
    double y = w->y[point (w, end)];
    if (column_of (w, point (w, end)) != column ||
        isnan (y) != isnan (w->y[point (w, first)]))
      break;
    if (y < w->y[point (w, low)]) low = end;
    if (y > w->y[point (w, high)]) high = end;
  }
  *k = end;
  if (w->keep != KEEP_SHAPE) {
    kept[0] = point (w, w->keep == KEEP_LOWEST ? low : high);
    return 1;
  }
  if (low > high) swap = low, low = high, high = swap;
  kept[n++] = first;
  if (low > kept[n - 1]) kept[n++] = low;
  if (high > kept[n - 1]) kept[n++] = high;
  if (end - 1 > kept[n - 1]) kept[n++] = end - 1;
  for (int i = 0; i < n; i++) kept[i] = point (w, kept[i]);
  return n;
}

static int visible (const sl_panel *p, const sl_series_data *s, const double *y,
                    size_t i) {
  return shown (s->x[i], p->lines.x.log) && shown (y[i], p->lines.y.log);
}

static void draw_line (const sl_panel *p, const sl_series_data *s, cairo_t *cr,
                       const sl_box *b) {
  walk w = { p, s, s->y, 0, s->n, 0, KEEP_SHAPE, columns_for (s, b) };
  int pen = 0;
  size_t kept[4];
  for (size_t k = 0; k < s->n;) {
    int n = next_points (&w, &k, kept);
    for (int i = 0; i < n; i++) {
      double x, y;
      if (!visible (p, s, s->y, kept[i])) {
        pen = 0;
        continue;
      }
      x = page (p, SL_X, b, s->x[kept[i]]);
      y = page (p, SL_Y, b, s->y[kept[i]]);
      if (!pen) cairo_move_to (cr, x, y);
      cairo_line_to (cr, x, y);
      pen = 1;
    }
  }
  cairo_stroke (cr);
}

static void trace_edge (const walk *w, cairo_t *cr, const sl_box *b) {
  size_t kept[4];
  for (size_t k = 0; k < w->n;) {
    next_points (w, &k, kept);
    cairo_line_to (cr, page (w->panel, SL_X, b, w->series->x[kept[0]]),
                   page (w->panel, SL_Y, b, w->y[kept[0]]));
  }
}

/* Each stretch of points that can be shown: along the high edge, back along the
** low one. */
static void draw_band (const sl_panel *p, const sl_series_data *s, cairo_t *cr,
                       const sl_box *b) {
  double columns = columns_for (s, b);
  size_t start = 0;
  for (size_t i = 0; i <= s->n; i++) {
    walk up = { p, s, s->high, start, i - start, 0, KEEP_HIGHEST, columns };
    walk down = { p, s, s->low, start, i - start, 1, KEEP_LOWEST, columns };
    if (i < s->n && visible (p, s, s->high, i) && isfinite (s->low[i]))
      continue;
    if (i > start) {
      trace_edge (&up, cr, b);
      trace_edge (&down, cr, b);
      cairo_close_path (cr);
      cairo_fill (cr);
    }
    start = i + 1;
  }
}

/* Circle, square, triangle, diamond: markers differ where colours may not. */
static void marker (cairo_t *cr, int kind, double x, double y) {
  static const int sides[] = { 24, 4, 3, 4 };
  static const double turn[] = { 0, 0.125, -0.25, 0 };
  int n = sides[kind % 4];
  for (int i = 0; i < n; i++) {
    double a = 2 * 3.14159265358979323846 * ((double)i / n + turn[kind % 4]);
    cairo_line_to (cr, x + 2.2 * cos (a), y + 2.2 * sin (a));
  }
  cairo_close_path (cr);
  cairo_fill (cr);
}

static void draw_markers (const sl_panel *p, const sl_series_data *s, int kind,
                          cairo_t *cr, const sl_box *b) {
  walk w = { p, s, s->y, 0, s->n, 0, KEEP_SHAPE, columns_for (s, b) };
  size_t kept[4];
  for (size_t k = 0; k < s->n;) {
    int n = next_points (&w, &k, kept);
    for (int i = 0; i < n; i++)
      if (visible (p, s, s->y, kept[i]))
        marker (cr, kind, page (p, SL_X, b, s->x[kept[i]]),
                page (p, SL_Y, b, s->y[kept[i]]));
  }
}

/* Colour and dashes of series i; the second round of colours is dashed. */
static void pen_of (cairo_t *cr, int i, double alpha) {
  static const double dashes[] = { 5, 2.5 };
  sl_rgb c = sl_line_colour (i);
  cairo_set_source_rgba (cr, c.r / 255.0, c.g / 255.0, c.b / 255.0, alpha);
  cairo_set_line_width (cr, 1.4);
  cairo_set_line_join (cr, CAIRO_LINE_JOIN_ROUND);
  cairo_set_dash (cr, dashes, i / SL_LINE_COLOURS % 2 ? 2 : 0, 0);
}

void sl_lines_sample (const sl_panel *p, int i, cairo_t *cr, const sl_box *b) {
  const sl_series_data *s = &p->lines.series[i];
  double y = b->y + b->h / 2;
  if (s->low) {
    pen_of (cr, i, 0.2);
    cairo_rectangle (cr, b->x, b->y + 1, b->w, b->h - 2);
    cairo_fill (cr);
  }
  pen_of (cr, i, 1);
  if (s->y) {
    cairo_move_to (cr, b->x, y);
    cairo_line_to (cr, b->x + b->w, y);
    cairo_stroke (cr);
    if (s->markers) marker (cr, i, b->x + b->w / 2, y);
  }
}

static void draw (const sl_panel *p, cairo_t *cr, const sl_box *plot,
                  const sl_render *r) {
  const sl_lines_data *d = &p->lines;
  (void)r;
  cairo_save (cr);
  cairo_rectangle (cr, plot->x, plot->y, plot->w, plot->h);
  cairo_clip (cr);
  for (int i = 0; i < d->n; i++)
    if (d->series[i].low) {
      pen_of (cr, i, 0.2);
      draw_band (p, &d->series[i], cr, plot);
    }
  for (int i = 0; i < d->n; i++) {
    if (!d->series[i].y) continue;
    pen_of (cr, i, 1);
    draw_line (p, &d->series[i], cr, plot);
    if (d->series[i].markers) draw_markers (p, &d->series[i], i, cr, plot);
  }
  cairo_restore (cr);
}

const sl_panel_kind sl_lines_kind = { 0,     drop, size,         ticks,
                                      along, draw, sl_lines_text };
