/* text.c - figures as text: heat maps as cells, lines as sparklines. */
#include "base/memory.h"
#include "plot/panel.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- the terminal ---- */

static const char *variable (const char *name) {
  const char *value = getenv (name);
  return value ? value : "";
}

sl_text_style sl_text_style_for (int fd) {
  static const char *const locale[] = { "LC_ALL", "LC_CTYPE", "LANG" };
  sl_text_style s = { SL_TEXT_PLAIN, 0, 80 };
  const char *term = variable ("TERM"), *depth = variable ("COLORTERM");
  struct winsize size;
  int columns = atoi (variable ("COLUMNS"));
  for (int i = 0; i < 3; i++) {
    const char *value = variable (locale[i]);
    if (!*value) continue;
    s.utf8 = strcasestr (value, "utf-8") || strcasestr (value, "utf8");
    break;
  }
  if (isatty (fd) && !*variable ("NO_COLOR") && *term && strcmp (term, "dumb"))
    s.colours = !strcmp (depth, "truecolor") || !strcmp (depth, "24bit")
                    ? SL_TEXT_TRUE
                    : SL_TEXT_256;
  if (isatty (fd) && !ioctl (fd, TIOCGWINSZ, &size) && size.ws_col > 0)
    columns = size.ws_col;
  if (columns > 0) s.columns = columns < 20 ? 20 : columns;
  return s;
}

/* ---- pieces of lines ---- */

static int continues (char c) {
  return ((unsigned char)c & 0xc0) == 0x80;
}

/* Columns that n bytes take: characters, without the terminal's colour
** codes. */
static int display_width (const char *text, size_t n) {
  int width = 0;
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '\033')
      while (i < n && text[i] != 'm') i++;
    else
      width += !continues (text[i]);
  }
  return width;
}

static void spaces (sl_bytes *out, int n) {
  while (n-- > 0) sl_bytes_put (out, " ");
}

/* Text broken at spaces (or within words that are too long) into lines; what an
** ASCII terminal cannot show becomes '?'. */
static void put_wrapped (sl_bytes *out, const sl_text_style *style, int columns,
                         const char *text) {
  while (*text) {
    size_t n = 0, end = 0;
    int width = 0;
    for (; text[n] && text[n] != '\n'; n++) {
      if (!continues (text[n]) && ++width > columns) break;
      if (text[n] == ' ') end = n;
    }
    if (!text[n] || text[n] == '\n' || text[n] == ' ' || end == 0) end = n;
    for (size_t i = 0; i < end; i++) {
      if (style->utf8 || !(text[i] & 0x80))
        sl_bytes_add (out, text + i, 1);
      else if (!continues (text[i]))
        sl_bytes_put (out, "?");
    }
    sl_bytes_put (out, "\n");
    text += end;
    if (*text == ' ' || *text == '\n') text++;
  }
}

static void colour (sl_bytes *out, const sl_text_style *style, int ground,
                    sl_rgb c) {
  if (style->colours == SL_TEXT_TRUE)
    sl_bytes_format (out, "\033[%d;2;%d;%d;%dm", ground, c.r, c.g, c.b);
  else
    sl_bytes_format (out, "\033[%d;5;%dm", ground, sl_terminal_colour (c));
}
enum { FOREGROUND = 38, BACKGROUND = 48 };

/* ---- heat maps ---- */

static const char ramp[] = ".:-=+*#%@";

/* A map reduced to what the terminal has room for. */
typedef struct view {
  const sl_heat_data *h;
  const sl_text_style *style;
  size_t coarse_rows, coarse_cols, rows, cols;
  int cell; /* characters across a cell; 1 with half blocks */
  int half; /* two rows in a line */
} view;

static char ramp_of (const sl_heat_data *h, double value, int masked) {
  double t;
  if (masked) return ' ';
  if (isnan (value)) return '?';
  t = sl_range_fraction (&h->range, value);
  t = t > 0 ? t < 1 ? t : 1 : 0;
  return ramp[(int)(t * (sizeof ramp - 2) + 0.5)];
}

static sl_rgb colour_at (const view *v, size_t row, size_t col) {
  int masked;
  double x =
      sl_heat_at (v->h, v->coarse_rows, v->coarse_cols, row, col, &masked);
  return sl_heat_colour (v->h, x, masked);
}

static void put_row (const view *v, size_t row, sl_bytes *out) {
  for (size_t c = 0; c < v->cols; c++) {
    if (v->style->colours == SL_TEXT_PLAIN) {
      int masked;
      double x =
          sl_heat_at (v->h, v->coarse_rows, v->coarse_cols, row, c, &masked);
      char mark = ramp_of (v->h, x, masked);
      for (int i = 0; i < v->cell; i++) sl_bytes_add (out, &mark, 1);
    } else if (v->half) {
      colour (out, v->style, FOREGROUND, colour_at (v, row, c));
      if (row + 1 < v->rows)
        colour (out, v->style, BACKGROUND, colour_at (v, row + 1, c));
      sl_bytes_put (out, "▀");
    } else {
      colour (out, v->style, BACKGROUND, colour_at (v, row, c));
      spaces (out, v->cell);
    }
  }
  if (v->style->colours != SL_TEXT_PLAIN) sl_bytes_put (out, "\033[0m");
}

/* Tick of positions first..last, or 0. */
static size_t tick_in (const sl_ticks *t, size_t first, size_t last) {
  for (int i = 0; i < t->n; i++)
    if (t->at[i] >= (double)first && t->at[i] <= (double)last)
      return (size_t)t->at[i];
  return 0;
}

static void put_key_ticks (const view *v, int margin, sl_bytes *out) {
  sl_ticks t;
  size_t block = v->h->block_cols * v->coarse_cols;
  int used = 0, most = (int)v->cols * v->cell / 4;
  sl_heat_key_ticks (v->h, most > 2 ? most : 2, &t);
  spaces (out, margin);
  for (int i = 0; i < t.n; i++) {
    int at = (int)(((size_t)t.at[i] - 1) / block) * v->cell;
    int n = (int)strlen (t.label[i]);
    if ((i > 0 && at <= used) || (i > 0 && at + n > (int)v->cols * v->cell))
      continue;
    spaces (out, at - used);
    sl_bytes_put (out, t.label[i]);
    used = at + n;
  }
  sl_bytes_put (out, "\n");
}

static void put_scale (const view *v, int columns, sl_bytes *out) {
  const sl_heat_data *h = v->h;
  char lo[32], hi[32];
  sl_bytes quantity = { 0 };
  int steps = (int)sizeof ramp - 1;
  sl_number_text (h->range.min, 4, lo, sizeof lo);
  sl_number_text (h->range.max, 4, hi, sizeof hi);
  sl_bytes_put (&quantity, h->quantity);
  if (h->range.log) sl_bytes_put (&quantity, " (log)");
  if (quantity.failed)
    out->failed = 1;
  else
    put_wrapped (out, v->style, columns, quantity.data);
  sl_bytes_free (&quantity);
  sl_bytes_format (out, "%s%s ", h->any_below ? "<" : "", lo);
  if (v->style->colours == SL_TEXT_PLAIN)
    sl_bytes_put (out, ramp);
  else {
    for (int i = 0; i < steps; i++) {
      colour (out, v->style, BACKGROUND,
              sl_palette_at (h->palette, (double)i / (steps - 1)));
      sl_bytes_put (out, " ");
    }
    sl_bytes_put (out, "\033[0m");
  }
  sl_bytes_format (out, " %s%s\n", h->any_above ? ">" : "", hi);
}

static size_t divide_up (size_t a, size_t b) {
  return (a + b - 1) / b;
}

void sl_heat_text (const sl_panel *p, const sl_text_style *style, int columns,
                   sl_bytes *out) {
  enum { MOST_ROWS = 64 };
  const sl_heat_data *h = &p->heat;
  view v = { h, style, 1, 1, 0, 0, 2, 0 };
  char number[32];
  int digits = snprintf (number, sizeof number, "%zu", h->rows);
  int margin = digits + 1, room = columns - margin;
  sl_ticks t;
  size_t step;
  if (room < 2) room = 2;
  v.half = style->colours != SL_TEXT_PLAIN && style->utf8 &&
           (2 * h->n_cols > (size_t)room || h->n_rows > MOST_ROWS / 2);
  if (v.half) v.cell = 1;
  v.coarse_cols = divide_up (h->n_cols, (size_t)(room / v.cell));
  v.coarse_rows = divide_up (h->n_rows, MOST_ROWS);
  /* Square maps stay square. */
  if (v.coarse_rows < v.coarse_cols) v.coarse_rows = v.coarse_cols;
  if (v.coarse_cols < v.coarse_rows && h->n_cols >= h->n_rows)
    v.coarse_cols = v.coarse_rows;
  v.rows = divide_up (h->n_rows, v.coarse_rows);
  v.cols = divide_up (h->n_cols, v.coarse_cols);
  put_wrapped (out, style, columns, p->side);
  put_wrapped (out, style, columns, p->title);
  put_wrapped (out, style, columns, p->ylabel);
  step = v.half ? 2 : 1;
  sl_ticks_positions (h->rows, (int)(v.rows / step / 2) + 2, &t);
  for (size_t r = 0; r < v.rows; r += step) {
    size_t block = h->block_rows * v.coarse_rows;
    size_t tick = tick_in (&t, r * block + 1, (r + step) * block);
    if (tick)
      sl_bytes_format (out, "%*zu ", digits, tick);
    else
      spaces (out, margin);
    put_row (&v, r, out);
    sl_bytes_put (out, "\n");
  }
  put_key_ticks (&v, margin, out);
  put_wrapped (out, style, columns, p->xlabel);
  put_scale (&v, columns, out);
}

/* ---- lines ---- */

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
    double x = sl_range_fraction (&d->x, s->x[i]) * width;
    if (!(x >= -width && x <= 2 * width)) continue;
    x = fmax (0, fmin (width - 1, floor (x)));
    level[(int)x] = sl_range_fraction (&d->y, y[i]);
  }
  for (int i = 0; i < width; i++) {
    double t;
    if (i > 0 && level[i] == -INFINITY) level[i] = level[i - 1];
    if (isnan (level[i]) || level[i] == -INFINITY) {
      spaces (out, 1);
      continue;
    }
    t = fmax (0, fmin (1, level[i]));
    if (style->utf8)
      sl_bytes_put (out, block[(int)(t * 7 + 0.5)]);
    else
      sl_bytes_add (out, &ramp[(int)(t * (sizeof ramp - 2) + 0.5)], 1);
  }
  sl_free (level);
}

void sl_lines_text (const sl_panel *p, const sl_text_style *style, int columns,
                    sl_bytes *out) {
  const sl_lines_data *d = &p->lines;
  char a[32], b[32];
  put_wrapped (out, style, columns, p->title);
  for (int i = 0; i < d->n; i++) {
    const sl_series_data *s = &d->series[i];
    const double *y = s->y ? s->y : s->high;
    sl_number_text (y[0], 3, a, sizeof a);
    sl_number_text (y[s->n - 1], 3, b, sizeof b);
    put_wrapped (out, style, columns, s->label);
    put_spark (d, s, columns - (int)(strlen (a) + strlen (b)) - 6, style, out);
    sl_bytes_format (out, "  %s to %s\n", a, b);
  }
  sl_number_text (d->y.min, 3, a, sizeof a);
  sl_number_text (d->y.max, 3, b, sizeof b);
  put_wrapped (out, style, columns, p->ylabel);
  sl_bytes_format (out, "up: %s to %s%s\n", a, b, d->y.log ? " (log)" : "");
  put_wrapped (out, style, columns, p->xlabel);
  if (d->first > d->last) return;
  sl_number_text (d->first, 6, a, sizeof a);
  sl_number_text (d->last, 6, b, sizeof b);
  sl_bytes_format (out, "across: %s to %s%s\n", a, b, d->x.log ? " (log)" : "");
}

/* ---- the grid ---- */

/* The next line of a block, without its end; NULL behind the last. */
static const char *take_line (const char **text, size_t *n) {
  const char *line = *text, *end = line ? strchr (line, '\n') : NULL;
  if (!end) return NULL;
  *n = (size_t)(end - line);
  *text = end + 1;
  return line;
}

/* Panels first..first + n - 1 side by side, each 'columns' wide. */
static void put_beside (const sl_figure *f, int first, int n, int columns,
                        const sl_text_style *style, sl_bytes *out) {
  enum { BESIDE = 16 };
  sl_bytes block[BESIDE] = { { 0 } };
  const char *next[BESIDE];
  int more = 1;
  for (int i = 0; i < n; i++) {
    const sl_panel *p = &f->panel[first + i];
    p->kind->text (p, style, columns, &block[i]);
    out->failed |= block[i].failed;
    next[i] = block[i].data;
  }
  while (more && !out->failed) {
    int pending = 0;
    more = 0;
    for (int i = 0; i < n; i++) {
      size_t bytes = 0;
      const char *line = take_line (&next[i], &bytes);
      if (line) {
        if (bytes) {
          spaces (out, pending);
          sl_bytes_add (out, line, bytes);
          pending = 0;
        }
        more = 1;
      }
      pending += columns + 2 - (line ? display_width (line, bytes) : 0);
    }
    if (more) sl_bytes_put (out, "\n");
  }
  for (int i = 0; i < n; i++) sl_bytes_free (&block[i]);
}

char *sl_figure_text (const sl_figure *f, sl_text_style style, sl_error *e) {
  enum { LEAST_COLUMNS = 24, MOST_BESIDE = 16 };
  sl_bytes out = { 0 }, notes = { 0 };
  int beside, columns;
  if (f->n == 0) {
    sl_fail (e, "the figure has no panels");
    return NULL;
  }
  if (style.columns < 20) style.columns = 20;
  beside = (style.columns + 2) / (LEAST_COLUMNS + 2);
  if (beside < 1) beside = 1;
  if (beside > MOST_BESIDE) beside = MOST_BESIDE;
  if (beside > f->columns) beside = f->columns;
  columns = (style.columns + 2) / beside - 2;
  put_wrapped (&out, &style, style.columns, f->title);
  for (int row = 0; row < f->n; row += f->columns)
    for (int c = 0; c < f->columns && row + c < f->n; c += beside) {
      int n = beside;
      if (c + n > f->columns) n = f->columns - c;
      if (row + c + n > f->n) n = f->n - row - c;
      if (row + c > 0) sl_bytes_put (&out, "\n");
      put_beside (f, row + c, n, columns, &style, &out);
    }
  put_wrapped (&out, &style, style.columns, f->caption);
  sl_figure_notes (f, 1, &notes);
  if (notes.n) put_wrapped (&out, &style, style.columns, notes.data);
  sl_bytes_free (&notes);
  if (!out.failed) return out.data;
  sl_bytes_free (&out);
  sl_fail (e, "no memory for the figure's text");
  return NULL;
}
