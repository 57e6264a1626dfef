/* bars.c - bars in groups, with error bars. */
#include "base/memory.h"
#include "plot/panel.h"
#include <math.h>
#include <stdio.h>

/* Room between groups, as a share of a group. */
static const double BETWEEN = 0.28;

static void measure (sl_bars_data *d) {
  d->y.lo = INFINITY, d->y.hi = -INFINITY;
  for (int s = 0; s < d->n; s++) {
    const sl_series_data *q = &d->series[s];
    const double *column[3] = { q->y, q->low, q->high };
    for (size_t i = 0; i < q->n; i++) {
      int lost = 0;
      for (int k = 0; k < 3; k++) {
        double v = column[k] ? column[k][i] : NAN;
        if (isnan (v)) continue;
        if (sl_shown (v, d->y.asked.log))
          sl_span_include (&d->y, v);
        else
          lost |= k != 1 || !isfinite (v);
      }
      d->left_out += (size_t)lost;
    }
  }
}

/* The length of a bar means something only if a linear axis holds 0, and ends
** there if no bar crosses it. */
static int settle (sl_span *y, sl_error *e) {
  sl_span with_zero = *y;
  int free_ends = y->asked.min == y->asked.max;
  if (y->asked.log || y->lo > y->hi) return sl_span_settle (y, "y", e);
  sl_span_include (&with_zero, 0);
  if (sl_span_settle (&with_zero, "y", e)) return -1;
  y->range = with_zero.range;
  if (with_zero.lo == 0 && (free_ends || isnan (y->asked.min)))
    y->range.min = 0;
  if (with_zero.hi == 0 && with_zero.lo < 0 &&
      (free_ends || isnan (y->asked.max)))
    y->range.max = 0;
  return 0;
}

int sl_bars_fill (sl_panel *p, const sl_bars *bars, sl_error *e) {
  sl_bars_data *d = &p->bars;
  sl_marks names = { bars->groups, NULL, bars->name };
  if (bars->n < 1 || !bars->series || bars->groups == 0 || !bars->name)
    return sl_fail (e,
                    "bars of %d series in %zu groups: both must be at least 1",
                    bars->n, bars->groups);
  if (sl_marks_copy (&d->names, &names, "names of bars", e)) return -1;
  d->groups = bars->groups;
  d->series = sl_alloc ((size_t)bars->n, sizeof *d->series);
  if (!d->series) return sl_fail (e, "no memory for %d series", bars->n);
  for (int i = 0; i < bars->n; i++) {
    const sl_bar_series *from = &bars->series[i];
    sl_series s = { .label = from->label,
                    .n = bars->groups,
                    .y = from->y,
                    .low = from->low,
                    .high = from->high };
    if (!from->y)
      return sl_fail (e, "series %d of the bars has no heights", i + 1);
    d->n = i + 1;
    if (sl_series_take (&d->series[i], &s, i + 1, "bars", e)) return -1;
  }
  if (sl_check_aspect (bars->aspect, e) ||
      sl_marks_copy (&d->yticks, &bars->yticks, "y ticks", e))
    return -1;
  d->aspect = sl_aspect (bars->aspect);
  d->y.asked = (sl_range){ bars->ymin, bars->ymax, bars->ylog };
  measure (d);
  return settle (&d->y, e);
}

static void drop (sl_panel *p) {
  for (int i = 0; i < p->bars.n; i++) sl_series_drop (&p->bars.series[i]);
  sl_free (p->bars.series);
  sl_marks_free (&p->bars.names);
  sl_marks_free (&p->bars.yticks);
}

/* The upright axis and the legend are those of all panels. */
static int share (sl_figure *f, int count, sl_error *e) {
  const sl_bars_data *first = &f->panel[0].bars,
                     *last = &f->panel[count - 1].bars;
  sl_span y = first->y;
  if (last->groups != first->groups)
    return sl_fail (e,
                    "panel %d has %zu groups, but panel 1 has %zu: panels that "
                    "share axes must agree",
                    count, last->groups, first->groups);
  if (sl_ranges_agree (&last->y.asked, &y.asked, "y", count, e)) return -1;
  if (sl_series_agree (first->series, first->n, last->series, last->n, count,
                       e))
    return -1;
  for (int i = 1; i < count; i++) {
    const sl_bars_data *d = &f->panel[i].bars;
    y.lo = fmin (y.lo, d->y.lo), y.hi = fmax (y.hi, d->y.hi);
  }
  if (settle (&y, e)) return -1;
  for (int i = 0; i < count; i++) f->panel[i].bars.y.range = y.range;
  return 0;
}

static void size (const sl_panel *p, double side, double *w, double *h) {
  double aspect = p->bars.aspect;
  *w = floor (side < 0 ? -side * fmin (1, aspect) : side * 1.2);
  *h = floor (*w / aspect);
}

static void ticks (const sl_panel *p, sl_axis axis, int most, sl_ticks *t) {
  const sl_bars_data *d = &p->bars;
  if (axis == SL_X)
    sl_marks_ticks (&d->names, NULL, most, t);
  else if (d->yticks.n)
    sl_marks_ticks (&d->yticks, &d->y.range, most, t);
  else
    sl_ticks_range (&d->y.range, most < 9 ? most : 9, t);
}

/* Group g is at the middle of its share of the axis. */
static double along (const sl_panel *p, sl_axis axis, double at) {
  return axis == SL_X ? (at - 0.5) / (double)p->bars.groups
                      : 1 - sl_range_fraction (&p->bars.y.range, at);
}

static const char *entry (const sl_panel *p, int i) {
  return i < p->bars.n ? p->bars.series[i].label : NULL;
}

/* Series after the eighth repeat colours; stripes tell them apart. */
static void fill_bar (cairo_t *cr, int i, const sl_box *b) {
  sl_rgb c = sl_line_colour (i);
  cairo_set_source_rgb (cr, c.r / 255.0, c.g / 255.0, c.b / 255.0);
  cairo_rectangle (cr, b->x, b->y, b->w, b->h);
  cairo_fill (cr);
  if (i / SL_LINE_COLOURS % 2 == 0) return;
  cairo_save (cr);
  cairo_rectangle (cr, b->x, b->y, b->w, b->h);
  cairo_clip (cr);
  cairo_set_source_rgb (cr, 1, 1, 1);
  cairo_set_line_width (cr, 0.8);
  cairo_set_dash (cr, NULL, 0, 0);
  for (double y = b->y; y < b->y + b->h + b->w; y += 4) {
    cairo_move_to (cr, b->x, y);
    cairo_line_to (cr, b->x + b->w, y - b->w);
  }
  cairo_stroke (cr);
  cairo_restore (cr);
}

static void sample (const sl_panel *p, int i, cairo_t *cr, const sl_box *b) {
  sl_box box = { b->x + b->w - b->h, b->y + 1, b->h - 2, b->h - 2 };
  (void)p;
  fill_bar (cr, i, &box);
}

static double clamp (double x) {
  return fmax (0, fmin (1, x));
}

static void draw (const sl_panel *p, cairo_t *cr, const sl_box *plot,
                  const sl_render *r) {
  const sl_bars_data *d = &p->bars;
  const sl_range *range = &d->y.range;
  double group = plot->w / (double)d->groups;
  double width = group * (1 - BETWEEN) / d->n;
  double base = range->log ? 1 : clamp (along (p, SL_Y, 0));
  (void)r;
  cairo_save (cr);
  cairo_rectangle (cr, plot->x, plot->y, plot->w, plot->h);
  cairo_clip (cr);
  for (size_t g = 0; g < d->groups; g++)
    for (int i = 0; i < d->n; i++) {
      const sl_series_data *s = &d->series[i];
      double x = plot->x + group * ((double)g + BETWEEN / 2) + i * width, top;
      sl_box bar;
      if (!sl_shown (s->y[g], range->log)) continue;
      top = clamp (along (p, SL_Y, s->y[g]));
      bar = (sl_box){ x + width * 0.04, plot->y + plot->h * fmin (top, base),
                      width * 0.92, plot->h * fabs (top - base) };
      fill_bar (cr, i, &bar);
      if (!s->low || !isfinite (s->low[g]) ||
          !sl_shown (s->high[g], range->log))
        continue;
      cairo_set_source_rgb (cr, 0.15, 0.15, 0.15);
      sl_error_bar (cr, x + width / 2,
                    plot->y + plot->h * clamp (along (p, SL_Y, s->low[g])),
                    plot->y + plot->h * clamp (along (p, SL_Y, s->high[g])),
                    fmin (3, width / 4));
    }
  if (!range->log && base > 0 && base < 1) {
    cairo_set_source_rgb (cr, 0.25, 0.25, 0.25);
    cairo_set_line_width (cr, 0.6);
    cairo_set_dash (cr, NULL, 0, 0);
    cairo_move_to (cr, plot->x, plot->y + plot->h * base);
    cairo_rel_line_to (cr, plot->w, 0);
    cairo_stroke (cr);
  }
  cairo_restore (cr);
}

/* ---- text ---- */

/* A bar of 'room' characters at most from 'from' to 'to' (0..1), to an eighth
** of a character where the terminal can; a bar that grows to the left is
** coarser. */
static void put_bar (sl_bytes *out, const sl_text_style *style, int i, int room,
                     double from, double to) {
  static const char *const eighth[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
  int first = (int)floor (fmin (from, to) * room + 0.5);
  int eighths = (int)floor (fabs (to - from) * room * 8 + 0.5);
  int whole = eighths / 8, rest = eighths % 8;
  if (to < from || !style->utf8) whole += rest >= 4, rest = 0;
  if (whole == 0 && rest == 0) rest = style->utf8 && to > from;
  if (first + whole >= room) whole = room - first, rest = 0;
  sl_put_spaces (out, first);
  if (style->colours != SL_TEXT_PLAIN)
    sl_put_colour (out, style, SL_FOREGROUND, sl_line_colour (i));
  for (int k = 0; k < whole; k++) sl_bytes_put (out, style->utf8 ? "█" : "#");
  sl_bytes_put (out, eighth[rest]);
  if (style->colours != SL_TEXT_PLAIN) sl_bytes_put (out, "\033[0m");
  sl_put_spaces (out, room - first - whole - (rest > 0));
}

static int longest (char *const *text, size_t n) {
  int most = 0;
  for (size_t i = 0; i < n; i++)
    if (sl_text_width (text[i]) > most) most = sl_text_width (text[i]);
  return most;
}

/* "0.98 (0.95 to 0.99)", or its first number alone; returns its width. */
static int value_text (const sl_series_data *s, size_t g, int with_range,
                       char *text, size_t size) {
  char y[32], low[32], high[32];
  sl_number_text (s->y[g], 4, y, sizeof y);
  if (!with_range || !s->low || isnan (s->low[g]))
    return snprintf (text, size, "%s", y);
  return snprintf (text, size, "%s (%s to %s)", y,
                   sl_number_text (s->low[g], 4, low, sizeof low),
                   sl_number_text (s->high[g], 4, high, sizeof high));
}

static int widest_value (const sl_bars_data *d, int with_range) {
  char text[100];
  int most = 0;
  for (size_t g = 0; g < d->groups; g++)
    for (int i = 0; i < d->n; i++) {
      int n = value_text (&d->series[i], g, with_range, text, sizeof text);
      if (n > most) most = n;
    }
  return most;
}

/* Widths of the columns of a line. */
typedef struct widths {
  int names, labels, bar, with_range;
} widths;

static widths fit (const sl_bars_data *d, int columns) {
  enum { LEAST_BAR = 6 };
  widths w = { longest (d->names.name, d->groups), 0, 0, 1 };
  for (int i = 0; i < d->n; i++) {
    int n = sl_text_width (d->series[i].label);
    if (n > w.labels) w.labels = n;
  }
  if (w.names > columns / 4) w.names = columns / 4;
  if (w.labels > columns / 4) w.labels = columns / 4;
  for (; w.with_range >= 0; w.with_range--) {
    w.bar = columns - w.names - 2 - w.labels - (w.labels > 0) -
            widest_value (d, w.with_range);
    if (w.bar >= LEAST_BAR) return w;
  }
  w.with_range = 0;
  if (w.bar < 1) w.bar = 1;
  return w;
}

static void text (const sl_panel *p, const sl_text_style *style, int columns,
                  sl_bytes *out) {
  const sl_bars_data *d = &p->bars;
  const sl_range *range = &d->y.range;
  const widths w = fit (d, columns);
  double base = range->log ? 0 : clamp (sl_range_fraction (range, 0));
  sl_put_wrapped (out, style, columns, p->title);
  sl_put_wrapped (out, style, columns, p->ylabel);
  for (size_t g = 0; g < d->groups; g++)
    for (int i = 0; i < d->n; i++) {
      const sl_series_data *s = &d->series[i];
      char value[100];
      int used = sl_put_fit (out, style, w.names, i ? "" : d->names.name[g]);
      sl_put_spaces (out, w.names - used + 1);
      if (w.labels > 0) {
        used = sl_put_fit (out, style, w.labels, s->label);
        sl_put_spaces (out, w.labels - used + 1);
      }
      if (sl_shown (s->y[g], range->log))
        put_bar (out, style, i, w.bar, base,
                 clamp (sl_range_fraction (range, s->y[g])));
      else
        sl_put_spaces (out, w.bar);
      value_text (s, g, w.with_range, value, sizeof value);
      sl_bytes_put (out, " ");
      sl_bytes_put (out, value);
      sl_bytes_put (out, "\n");
    }
  sl_put_wrapped (out, style, columns, p->xlabel);
  if (range->log) sl_put_wrapped (out, style, columns, "(log)");
}

const sl_panel_kind sl_bars_kind = { .name = "bars",
                                     .drop = drop,
                                     .share = share,
                                     .size = size,
                                     .ticks = ticks,
                                     .along = along,
                                     .entry = entry,
                                     .sample = sample,
                                     .draw = draw,
                                     .text = text };
