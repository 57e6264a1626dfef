/* line.c - line plots: series, bands and markers. */
#include "plot/panel.h"
#include <math.h>

int sl_lines_fill (sl_panel *p, const sl_lines *lines, sl_error *e) {
  if (lines->n < 1 || !lines->series)
    return sl_fail (e, "a line plot of %d series: at least 1 is needed",
                    lines->n);
  return sl_axes_fill (p, lines, 0, e);
}

/* On the page, or at most 1000 plots beside it: no format has room for
** 1e300. */
static double page (const sl_panel *p, sl_axis axis, const sl_box *b,
                    double v) {
  double f = fmax (-1e3, fmin (1e3, sl_axes_along (p, axis, v)));
  return axis == SL_X ? b->x + f * b->w : b->y + f * b->h;
}

/* A walk over points of a series, first to last or back. When x ascends and
** there are more points than the plot can resolve, the points of a column half
** a point wide are reduced: to first, lowest, highest and last, or to the one
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
  return floor (sl_axes_along (w->panel, SL_X, w->series->x[i]) * w->columns);
}

/* The point of step *k and the points that share its column, reduced to at most
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
  return sl_shown (s->x[i], p->axes.x.asked.log) &&
         sl_shown (y[i], p->axes.y.asked.log);
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

/* Points may lie in any order and on top of each other: they are drawn
** translucent. */
static void draw_points (const sl_panel *p, const sl_series_data *s, int kind,
                         cairo_t *cr, const sl_box *b) {
  const double *y = s->y ? s->y : s->high;
  for (size_t i = 0; i < s->n; i++) {
    double x = page (p, SL_X, b, s->x[i]);
    if (!visible (p, s, y, i)) continue;
    if (s->low && isfinite (s->low[i]) && isfinite (s->high[i]))
      sl_error_bar (cr, x, page (p, SL_Y, b, s->low[i]),
                    page (p, SL_Y, b, s->high[i]), 2);
    if (s->y) marker (cr, kind, x, page (p, SL_Y, b, y[i]));
  }
}

/* Many points are drawn lighter. */
static double alpha_of (const sl_series_data *s) {
  return s->n <= 100 ? 0.85 : s->n <= 1000 ? 0.6 : 0.35;
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

static void sample (const sl_panel *p, int i, cairo_t *cr, const sl_box *b) {
  const sl_series_data *s = &p->axes.series[i];
  double y = b->y + b->h / 2;
  double middle = b->x + b->w / 2;
  if (s->low && !s->points) {
    pen_of (cr, i, 0.2);
    cairo_rectangle (cr, b->x, b->y + 1, b->w, b->h - 2);
    cairo_fill (cr);
  }
  pen_of (cr, i, 1);
  if (s->low && s->points)
    sl_error_bar (cr, middle, b->y + 1, b->y + b->h - 1, 2);
  if (!s->y) return;
  if (!s->points) {
    cairo_move_to (cr, b->x, y);
    cairo_line_to (cr, b->x + b->w, y);
    cairo_stroke (cr);
  }
  if (s->markers) marker (cr, i, middle, y);
}

static void draw (const sl_panel *p, cairo_t *cr, const sl_box *plot,
                  const sl_render *r) {
  const sl_axes_data *d = &p->axes;
  (void)r;
  sl_clip (cr, plot);
  for (int i = 0; i < d->n; i++)
    if (d->series[i].low && !d->series[i].points) {
      pen_of (cr, i, 0.2);
      draw_band (p, &d->series[i], cr, plot);
    }
  for (int i = 0; i < d->n; i++) {
    const sl_series_data *s = &d->series[i];
    pen_of (cr, i, s->points ? alpha_of (s) : 1);
    if (s->points)
      draw_points (p, s, i, cr, plot);
    else if (s->y) {
      draw_line (p, s, cr, plot);
      if (s->markers) draw_markers (p, s, i, cr, plot);
    }
  }
  cairo_restore (cr);
}

const sl_panel_kind sl_lines_kind = { .name = "a line plot",
                                      SL_AXES_KIND,
                                      .sample = sample,
                                      .draw = draw,
                                      .text = sl_lines_text };
