/* line_text.c - line plots as text: sparklines, points on a canvas. */
#include "base/memory.h"
#include "plot/panel.h"
#include <math.h>
#include <string.h>

/* Up to 'width' values of the series, equal steps of the x axis, the last
** point of each step; steps without a point repeat the one before. */
static void put_spark (const sl_lines_data *d, const sl_series_data *s,
                       int width, const sl_text_style *style, sl_bytes *out) {
  static const char *const block[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
  const double *y = s->y ? s->y : s->high;
  double *level;
  if ((size_t)width > s->n) width = (int)s->n;
  level = sl_alloc ((size_t)width, sizeof *level);
  if (!level) {
    out->failed = 1;
    return;
  }
  for (int i = 0; i < width; i++) level[i] = -INFINITY;
  for (size_t i = 0; i < s->n; i++) {
    double x = sl_range_fraction (&d->x.range, s->x[i]) * width;
    if (!(x >= -width && x <= 2 * width)) continue;
    x = fmax (0, fmin (width - 1, floor (x)));
    level[(int)x] = sl_range_fraction (&d->y.range, y[i]);
  }
  for (int i = 0; i < width; i++) {
    double t;
    if (i > 0 && level[i] == -INFINITY) level[i] = level[i - 1];
    if (isnan (level[i]) || level[i] == -INFINITY) {
      sl_put_spaces (out, 1);
      continue;
    }
    t = fmax (0, fmin (1, level[i]));
    if (style->utf8)
      sl_bytes_put (out, block[(int)(t * 7 + 0.5)]);
    else
      sl_bytes_add (out, &(char){ sl_ramp (t) }, 1);
  }
  sl_free (level);
}

/* ---- points on a canvas of characters ---- */

/* The first of these that a terminal shows; series differ in mark and
** colour. */
static const char *const marks[][2] = { { "●", "o" }, { "■", "x" },
                                        { "▲", "+" }, { "◆", "*" },
                                        { "○", "@" }, { "□", "#" },
                                        { "△", "^" }, { "◇", "&" } };
enum { MARKS = sizeof marks / sizeof *marks, HIGH = 15 };

static void put_mark (const sl_text_style *style, int series, sl_bytes *out) {
  if (style->colours != SL_TEXT_PLAIN)
    sl_put_colour (out, style, SL_FOREGROUND, sl_line_colour (series));
  sl_bytes_put (out, marks[series % MARKS][!style->utf8]);
  if (style->colours != SL_TEXT_PLAIN) sl_bytes_put (out, "\033[0m");
}

/* cell[row][column] = 1 + the series seen there last. */
static void spread (const sl_lines_data *d, int wide, int *cell) {
  for (int i = 0; i < d->n; i++) {
    const sl_series_data *s = &d->series[i];
    const double *y = s->y ? s->y : s->high;
    for (size_t k = 0; k < s->n; k++) {
      double across = sl_range_fraction (&d->x.range, s->x[k]);
      double up = sl_range_fraction (&d->y.range, y[k]);
      if (!(across >= 0 && across <= 1 && up >= 0 && up <= 1)) continue;
      cell[(int)((1 - up) * (HIGH - 1) + 0.5) * wide +
           (int)(across * (wide - 1) + 0.5)] = i + 1;
    }
  }
}

static void put_canvas (const sl_panel *p, const sl_text_style *style,
                        int columns, sl_bytes *out) {
  const sl_lines_data *d = &p->lines;
  char low[32], high[32];
  int margin, wide, *cell;
  sl_number_text (d->y.range.min, 3, low, sizeof low);
  sl_number_text (d->y.range.max, 3, high, sizeof high);
  margin = (int)(strlen (low) > strlen (high) ? strlen (low) : strlen (high));
  wide = columns - margin - 2 > 4 ? columns - margin - 2 : 4;
  if (wide > 72) wide = 72;
  cell = sl_alloc ((size_t)(wide * HIGH), sizeof *cell);
  if (!cell) {
    out->failed = 1;
    return;
  }
  spread (d, wide, cell);
  sl_put_wrapped (out, style, columns, p->ylabel);
  for (int r = 0; r < HIGH; r++) {
    const char *label = r == 0 ? high : r == HIGH - 1 ? low : "";
    int blanks = 0;
    sl_bytes_format (out, "%*s %s", margin, label, style->utf8 ? "│" : "|");
    for (int c = 0; c < wide; c++) {
      int series = cell[r * wide + c];
      if (!series) {
        blanks++;
        continue;
      }
      sl_put_spaces (out, blanks);
      put_mark (style, series - 1, out);
      blanks = 0;
    }
    sl_bytes_put (out, "\n");
  }
  sl_free (cell);
  sl_put_spaces (out, margin + 1);
  sl_bytes_put (out, style->utf8 ? "└" : "+");
  for (int c = 0; c < wide; c++) sl_bytes_put (out, style->utf8 ? "─" : "-");
  sl_bytes_put (out, "\n");
  for (int i = 0; i < d->n; i++) {
    if (!d->series[i].label[0]) continue;
    put_mark (style, i, out);
    sl_bytes_put (out, " ");
    sl_put_wrapped (out, style, columns - 2, d->series[i].label);
  }
}

/* ---- the panel ---- */

static void put_sparks (const sl_panel *p, const sl_text_style *style,
                        int columns, sl_bytes *out) {
  const sl_lines_data *d = &p->lines;
  char a[32], b[32];
  for (int i = 0; i < d->n; i++) {
    const sl_series_data *s = &d->series[i];
    const double *y = s->y ? s->y : s->high;
    sl_number_text (y[0], 3, a, sizeof a);
    sl_number_text (y[s->n - 1], 3, b, sizeof b);
    sl_put_wrapped (out, style, columns, s->label);
    put_spark (d, s, columns - (int)(strlen (a) + strlen (b)) - 6, style, out);
    sl_bytes_format (out, "  %s to %s\n", a, b);
  }
  sl_put_wrapped (out, style, columns, p->ylabel);
}

static void put_range (sl_bytes *out, const char *what, double lo, double hi,
                       int digits, int log) {
  char a[32], b[32];
  sl_bytes_format (
      out, "%s: %s to %s%s\n", what, sl_number_text (lo, digits, a, sizeof a),
      sl_number_text (hi, digits, b, sizeof b), log ? " (log)" : "");
}

void sl_lines_text (const sl_panel *p, const sl_text_style *style, int columns,
                    sl_bytes *out) {
  const sl_lines_data *d = &p->lines;
  int points = 0;
  for (int i = 0; i < d->n; i++) points |= d->series[i].points;
  sl_put_wrapped (out, style, columns, p->title);
  (points ? put_canvas : put_sparks) (p, style, columns, out);
  put_range (out, "up", d->y.range.min, d->y.range.max, 3, d->y.range.log);
  sl_put_wrapped (out, style, columns, p->xlabel);
  if (d->x.lo > d->x.hi) return;
  if (points)
    put_range (out, "across", d->x.range.min, d->x.range.max, 3,
               d->x.range.log);
  else
    put_range (out, "across", d->x.lo, d->x.hi, 6, d->x.range.log);
}
