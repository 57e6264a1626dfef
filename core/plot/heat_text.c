/* heat_text.c - heat maps as text: cells of colour or of marks. */
#include "base/number.h"
#include "plot/panel.h"
#include <math.h>
#include <string.h>

/* A map reduced to the columns and rows of the terminal. */
typedef struct view {
  const sl_heat_data *h;
  const sl_text_style *style;
  size_t coarse_rows, coarse_cols, rows, cols;
  int cell; /* characters across a cell; 1 with half blocks */
  int half; /* two rows in a line */
} view;

static char ramp_of (const sl_heat_data *h, double value, int masked) {
  if (masked) return ' ';
  if (isnan (value)) return '?';
  return sl_ramp (sl_range_fraction (&h->range, value));
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
      sl_put_colour (out, v->style, SL_FOREGROUND, colour_at (v, row, c));
      if (row + 1 < v->rows)
        sl_put_colour (out, v->style, SL_BACKGROUND, colour_at (v, row + 1, c));
      sl_bytes_put (out, "▀");
    } else {
      sl_put_colour (out, v->style, SL_BACKGROUND, colour_at (v, row, c));
      sl_put_spaces (out, v->cell);
    }
  }
  sl_put_uncolour (out, v->style);
}

/* Label of the tick of positions first..last, or "". */
static const char *tick_in (const sl_ticks *t, size_t first, size_t last) {
  for (int i = 0; i < t->n; i++)
    if (t->at[i] >= (double)first && t->at[i] <= (double)last)
      return t->label[i];
  return "";
}

static void put_key_ticks (const view *v, int margin, sl_bytes *out) {
  sl_ticks t;
  size_t block = v->h->block_cols * v->coarse_cols;
  int used = 0, most = (int)v->cols * v->cell / 4;
  sl_heat_key_ticks (v->h, most > 2 ? most : 2, &t);
  sl_put_spaces (out, margin);
  for (int i = 0; i < t.n; i++) {
    int at = (int)(((size_t)t.at[i] - 1) / block) * v->cell;
    int n = sl_text_width (t.label[i]);
    if ((i > 0 && at <= used) || (i > 0 && at + n > (int)v->cols * v->cell))
      continue;
    sl_put_spaces (out, at - used);
    sl_put_fit (out, v->style, n, t.label[i]);
    used = at + n;
  }
  sl_bytes_put (out, "\n");
}

static void put_scale (const view *v, int columns, sl_bytes *out) {
  const sl_heat_data *h = v->h;
  char lo[32], hi[32];
  sl_bytes quantity = { 0 };
  int steps = (int)strlen (sl_ramp_marks);
  sl_number_text (h->range.min, 4, lo, sizeof lo);
  sl_number_text (h->range.max, 4, hi, sizeof hi);
  sl_bytes_put (&quantity, h->quantity);
  if (h->range.log) sl_bytes_put (&quantity, " (log)");
  if (quantity.failed)
    out->failed = 1;
  else
    sl_put_wrapped (out, v->style, columns, quantity.data);
  sl_bytes_free (&quantity);
  sl_bytes_format (out, "%s%s ", h->any_below ? "<" : "", lo);
  if (v->style->colours == SL_TEXT_PLAIN)
    sl_bytes_put (out, sl_ramp_marks);
  else {
    for (int i = 0; i < steps; i++) {
      sl_put_colour (out, v->style, SL_BACKGROUND,
                     sl_palette_at (h->palette, (double)i / (steps - 1)));
      sl_bytes_put (out, " ");
    }
    sl_bytes_put (out, "\033[0m");
  }
  sl_bytes_format (out, " %s%s\n", h->any_above ? ">" : "", hi);
}

void sl_heat_text (const sl_panel *p, const sl_text_style *style, int columns,
                   sl_bytes *out) {
  enum { MOST_ROWS = 64 };
  const sl_heat_data *h = &p->heat;
  view v = { h, style, 1, 1, 0, 0, 2, 0 };
  sl_ticks t;
  int digits = 0, margin, room;
  size_t step;
  sl_heat_query_ticks (h, SL_MAX_TICKS, &t);
  for (int i = 0; i < t.n; i++)
    if (sl_text_width (t.label[i]) > digits)
      digits = sl_text_width (t.label[i]);
  if (digits > columns / 3) digits = columns / 3;
  margin = digits + 1, room = columns - margin;
  if (room < 2) room = 2;
  v.half = style->colours != SL_TEXT_PLAIN && style->utf8 &&
           (2 * h->n_cols > (size_t)room || h->n_rows > MOST_ROWS / 2);
  if (v.half) v.cell = 1;
  v.coarse_cols = sl_div_up (h->n_cols, (size_t)(room / v.cell));
  v.coarse_rows = sl_div_up (h->n_rows, MOST_ROWS);
  /* Square maps stay square. */
  if (v.coarse_rows < v.coarse_cols) v.coarse_rows = v.coarse_cols;
  if (v.coarse_cols < v.coarse_rows && h->n_cols >= h->n_rows)
    v.coarse_cols = v.coarse_rows;
  v.rows = sl_div_up (h->n_rows, v.coarse_rows);
  v.cols = sl_div_up (h->n_cols, v.coarse_cols);
  sl_put_wrapped (out, style, columns, p->title);
  sl_put_wrapped (out, style, columns, p->ylabel);
  step = v.half ? 2 : 1;
  sl_heat_query_ticks (
      h, h->queries.n ? (int)(v.rows / step) + 2 : (int)(v.rows / step / 2) + 2,
      &t);
  for (size_t r = 0; r < v.rows; r += step) {
    size_t block = h->block_rows * v.coarse_rows;
    const char *tick = tick_in (&t, r * block + 1, (r + step) * block);
    int wide = sl_text_width (tick);
    sl_put_spaces (out, digits - wide);
    sl_put_fit (out, style, digits, tick);
    sl_bytes_put (out, " ");
    put_row (&v, r, out);
    sl_bytes_put (out, "\n");
  }
  put_key_ticks (&v, margin, out);
  sl_put_wrapped (out, style, columns, p->xlabel);
  put_scale (&v, columns, out);
}
