/* bars.c - bars in groups, with error bars. */
#include "plot/panel.h"
#include <math.h>
#include <stdio.h>

/* Room between groups, as a share of a group. */
static const double BETWEEN = 0.28;

int sl_bars_fill (sl_panel *p, const sl_bars *bars, sl_error *e) {
  sl_lines lines = { .n = bars->n,
                     .ylog = bars->ylog,
                     .ymin = bars->ymin,
                     .ymax = bars->ymax,
                     .aspect = bars->aspect,
                     .xticks = { bars->groups, NULL, bars->name },
                     .yticks = bars->yticks,
                     .series = bars->series };
  if (bars->n < 1 || !bars->series || bars->groups == 0 || !bars->name)
    return sl_fail (e,
                    "bars of %d series in %zu groups: both must be at least 1",
                    bars->n, bars->groups);
  for (int i = 0; i < bars->n; i++)
    if (!bars->series[i].y)
      return sl_fail (e, "series %d of the bars has no heights", i + 1);
  return sl_axes_fill (p, &lines, bars->groups, e);
}

/* Series after the eighth repeat the colours with stripes. */
static void fill_bar (cairo_t *cr, int i, const sl_box *b) {
  sl_rgb c = sl_line_colour (i);
  cairo_set_source_rgb (cr, c.r / 255.0, c.g / 255.0, c.b / 255.0);
  cairo_rectangle (cr, b->x, b->y, b->w, b->h);
  cairo_fill (cr);
  if (i / SL_LINE_COLOURS % 2 == 0) return;
  sl_clip (cr, b);
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
  const sl_axes_data *d = &p->axes;
  const sl_range *range = &d->y.range;
  double group = plot->w / (double)d->groups;
  double width = group * (1 - BETWEEN) / d->n;
  double base = range->log ? 1 : clamp (sl_axes_along (p, SL_Y, 0));
  (void)r;
  sl_clip (cr, plot);
  for (size_t g = 0; g < d->groups; g++)
    for (int i = 0; i < d->n; i++) {
      const sl_series_data *s = &d->series[i];
      double x = plot->x + group * ((double)g + BETWEEN / 2) + i * width, top;
      sl_box bar;
      if (!sl_shown (s->y[g], range->log)) continue;
      top = clamp (sl_axes_along (p, SL_Y, s->y[g]));
      bar = (sl_box){ x + width * 0.04, plot->y + plot->h * fmin (top, base),
                      width * 0.92, plot->h * fabs (top - base) };
      fill_bar (cr, i, &bar);
      if (!s->low || !isfinite (s->low[g]) ||
          !sl_shown (s->high[g], range->log))
        continue;
      cairo_set_source_rgb (cr, 0.15, 0.15, 0.15);
      sl_error_bar (
          cr, x + width / 2,
          plot->y + plot->h * clamp (sl_axes_along (p, SL_Y, s->low[g])),
          plot->y + plot->h * clamp (sl_axes_along (p, SL_Y, s->high[g])),
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
  sl_put_colour (out, style, SL_FOREGROUND, sl_line_colour (i));
  for (int k = 0; k < whole; k++) sl_bytes_put (out, style->utf8 ? "█" : "#");
  sl_bytes_put (out, eighth[rest]);
  sl_put_uncolour (out, style);
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

static int widest_value (const sl_axes_data *d, int with_range) {
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

static widths fit (const sl_axes_data *d, int columns) {
  enum { LEAST_BAR = 6 };
  widths w = { longest (d->xticks.name, d->groups), 0, 0, 1 };
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
  const sl_axes_data *d = &p->axes;
  const sl_range *range = &d->y.range;
  const widths w = fit (d, columns);
  double base = range->log ? 0 : clamp (sl_range_fraction (range, 0));
  sl_put_wrapped (out, style, columns, p->title);
  sl_put_wrapped (out, style, columns, p->ylabel);
  for (size_t g = 0; g < d->groups; g++)
    for (int i = 0; i < d->n; i++) {
      const sl_series_data *s = &d->series[i];
      char value[100];
      int used = sl_put_fit (out, style, w.names, i ? "" : d->xticks.name[g]);
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

const sl_panel_kind sl_bars_kind = {
  .name = "bars", SL_AXES_KIND, .sample = sample, .draw = draw, .text = text
};
