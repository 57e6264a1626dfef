/* line_text.c - line plots as text: a canvas of characters, or sparklines. */
#include "base/memory.h"
#include "plot/panel.h"
#include <math.h>
#include <string.h>

/* Up to 'width' values of the series, equal steps of the x axis, the last
** point of each step; steps without a point repeat the one before. */
static void put_spark (const sl_axes_data *d, const sl_series_data *s,
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

/* ---- lines and points on a canvas of characters ---- */

/* UTF-8 and ASCII marks; series differ in mark and colour. */
static const char *const marks[][2] = { { "●", "o" }, { "■", "x" },
                                        { "▲", "+" }, { "◆", "*" },
                                        { "○", "@" }, { "□", "#" },
                                        { "△", "^" }, { "◇", "&" } };
enum { MARKS = sizeof marks / sizeof *marks, HIGH = 15, WIDEST = 72 };

/* A cell shows the series that was drawn there last, and if 'fine' its
** dots, two across and four down, as braille characters have them. */
typedef struct cell {
  int series; /* from 1; 0: empty */
  unsigned char dots;
} cell;

typedef struct canvas {
  const sl_axes_data *d;
  int wide, fine;
  cell *cell; /* [HIGH][wide] */
} canvas;

static int across_of (const canvas *c) {
  return c->wide * (c->fine ? 2 : 1);
}

static int down_of (const canvas *c) {
  return HIGH * (c->fine ? 4 : 1);
}

static void set (const canvas *c, int series, double across, double down) {
  static const unsigned char dot[4][2] = {
    { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
  };
  int x, y;
  cell *at;
  if (!(across > -0.5 && across < across_of (c) - 0.5) ||
      !(down > -0.5 && down < down_of (c) - 0.5))
    return;
  x = (int)floor (across + 0.5), y = (int)floor (down + 0.5);
  at = &c->cell[(c->fine ? y / 4 : y) * c->wide + (c->fine ? x / 2 : x)];
  if (at->series != series + 1) at->dots = 0;
  at->series = series + 1;
  if (c->fine) at->dots |= dot[y % 4][x % 2];
}

/* Point k of the series in dots from the top left corner; 0 if it is not to be
** seen. */
static int locate (const canvas *c, const sl_series_data *s, size_t k,
                   double *across, double *down) {
  const double *y = s->y ? s->y : s->high;
  if (!sl_shown (s->x[k], c->d->x.range.log) ||
      !sl_shown (y[k], c->d->y.range.log))
    return 0;
  *across = sl_range_fraction (&c->d->x.range, s->x[k]) * (across_of (c) - 1);
  *down = (1 - sl_range_fraction (&c->d->y.range, y[k])) * (down_of (c) - 1);
  return 1;
}

static void draw_series (const canvas *c, int i) {
  const sl_series_data *s = &c->d->series[i];
  double x = 0, y = 0, far = 4 * (across_of (c) + down_of (c));
  int pen = 0;
  for (size_t k = 0; k < s->n; k++) {
    double to_x, to_y, steps;
    if (!locate (c, s, k, &to_x, &to_y)) {
      pen = 0;
      continue;
    }
    steps = pen && !s->points
                ? fmin (far, ceil (fmax (fabs (to_x - x), fabs (to_y - y))))
                : 0;
    for (double t = 1; t < steps; t++)
      set (c, i, x + (to_x - x) * t / steps, y + (to_y - y) * t / steps);
    set (c, i, to_x, to_y);
    x = to_x, y = to_y, pen = 1;
  }
}

static void put_mark (const sl_text_style *style, int series, sl_bytes *out) {
  sl_put_colour (out, style, SL_FOREGROUND, sl_line_colour (series));
  sl_bytes_put (out, marks[series % MARKS][!style->utf8]);
  sl_put_uncolour (out, style);
}

static void put_cell (const sl_text_style *style, const cell *at,
                      sl_bytes *out) {
  /* U+2800 and the dots as UTF-8. */
  char braille[] = { (char)0xe2, (char)(0xa0 | at->dots >> 6),
                     (char)(0x80 | (at->dots & 0x3f)), 0 };
  if (!at->dots) {
    put_mark (style, at->series - 1, out);
    return;
  }
  sl_put_colour (out, style, SL_FOREGROUND, sl_line_colour (at->series - 1));
  sl_bytes_put (out, braille);
  sl_put_uncolour (out, style);
}

static void put_rows (const canvas *c, const sl_text_style *style, int margin,
                      const char *low, const char *high, sl_bytes *out) {
  for (int r = 0; r < HIGH; r++) {
    const char *label = r == 0 ? high : r == HIGH - 1 ? low : "";
    int blanks = 0;
    sl_bytes_format (out, "%*s %s", margin, label, style->utf8 ? "│" : "|");
    for (int x = 0; x < c->wide; x++) {
      const cell *at = &c->cell[r * c->wide + x];
      if (!at->series) {
        blanks++;
        continue;
      }
      sl_put_spaces (out, blanks);
      put_cell (style, at, out);
      blanks = 0;
    }
    sl_bytes_put (out, "\n");
  }
  sl_put_spaces (out, margin + 1);
  sl_bytes_put (out, style->utf8 ? "└" : "+");
  for (int x = 0; x < c->wide; x++) sl_bytes_put (out, style->utf8 ? "─" : "-");
  sl_bytes_put (out, "\n");
}

/* "● softmax  1 to 0.01" */
static void put_legend (const canvas *c, const sl_text_style *style,
                        int columns, sl_bytes *out) {
  for (int i = 0; i < c->d->n; i++) {
    const sl_series_data *s = &c->d->series[i];
    const double *y = s->y ? s->y : s->high;
    char a[32], b[32];
    int used = 0;
    if (s->label[0]) {
      put_mark (style, i, out);
      sl_bytes_put (out, " ");
      used = sl_put_fit (out, style, columns - 2, s->label) + 2;
    }
    if (!s->points && s->n > 0) {
      sl_number_text (y[0], 3, a, sizeof a);
      sl_number_text (y[s->n - 1], 3, b, sizeof b);
      if (used > 0 && used + 6 + (int)(strlen (a) + strlen (b)) > columns)
        sl_bytes_put (out, "\n");
      sl_bytes_format (out, "%s%s to %s", used ? "  " : "", a, b);
    } else if (!used)
      continue;
    sl_bytes_put (out, "\n");
  }
}

static void put_canvas (const sl_panel *p, const sl_text_style *style,
                        int columns, sl_bytes *out) {
  canvas c = { &p->axes, 0, 0, NULL };
  char low[32], high[32];
  int margin, points = 0;
  for (int i = 0; i < c.d->n; i++) points |= c.d->series[i].points;
  /* Dots without colours do not distinguish series. */
  c.fine = style->utf8 && !points &&
           (style->colours != SL_TEXT_PLAIN || c.d->n == 1);
  sl_number_text (c.d->y.range.min, 3, low, sizeof low);
  sl_number_text (c.d->y.range.max, 3, high, sizeof high);
  margin = (int)(strlen (low) > strlen (high) ? strlen (low) : strlen (high));
  c.wide = columns - margin - 2 > 4 ? columns - margin - 2 : 4;
  if (c.wide > WIDEST) c.wide = WIDEST;
  c.cell = sl_alloc ((size_t)(c.wide * HIGH), sizeof *c.cell);
  if (!c.cell) {
    out->failed = 1;
    return;
  }
  for (int i = 0; i < c.d->n; i++) draw_series (&c, i);
  sl_put_wrapped (out, style, columns, p->ylabel);
  put_rows (&c, style, margin, low, high, out);
  put_legend (&c, style, columns, out);
  sl_free (c.cell);
}

/* ---- the panel ---- */

static void put_sparks (const sl_panel *p, const sl_text_style *style,
                        int columns, sl_bytes *out) {
  const sl_axes_data *d = &p->axes;
  char a[32], b[32];
  for (int i = 0; i < d->n; i++) {
    const sl_series_data *s = &d->series[i];
    const double *y = s->y ? s->y : s->high;
    int room;
    sl_number_text (y[0], 3, a, sizeof a);
    sl_number_text (y[s->n - 1], 3, b, sizeof b);
    room = columns - (int)(strlen (a) + strlen (b)) - 6;
    sl_put_wrapped (out, style, columns, s->label);
    put_spark (d, s, room > 0 ? room : columns, style, out);
    sl_bytes_format (out, "%s%s to %s\n", room > 0 ? "  " : "\n", a, b);
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

/* Narrower panels, as of a grid, have sparklines. */
enum { LEAST_CANVAS = 44 };

void sl_lines_text (const sl_panel *p, const sl_text_style *style, int columns,
                    sl_bytes *out) {
  const sl_axes_data *d = &p->axes;
  int wide = columns >= LEAST_CANVAS;
  for (int i = 0; i < d->n; i++) wide |= d->series[i].points;
  sl_put_wrapped (out, style, columns, p->title);
  (wide ? put_canvas : put_sparks) (p, style, columns, out);
  put_range (out, "up", d->y.range.min, d->y.range.max, 3, d->y.range.log);
  sl_put_wrapped (out, style, columns, p->xlabel);
  if (d->x.lo > d->x.hi) return;
  put_range (out, "across", d->x.lo, d->x.hi, 6, d->x.range.log);
}
