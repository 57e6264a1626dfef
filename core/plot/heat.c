/* heat.c - heat maps: a matrix, its colours and its cells. */
#include "base/memory.h"
#include "base/number.h"
#include "plot/panel.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Columns visible to query number 'query' under mask_upper: the lead, and the
** keys up to its own position. */
static size_t visible_in (const sl_heat_data *h, size_t query) {
  size_t keys = query >= h->first_key ? query - h->first_key + 1 : 0;
  size_t seen = keys + (h->lead != NULL);
  return seen < h->cols ? seen : h->cols;
}

/* 1 if every cell of the block of r x c cells at (row, col) is masked. */
static int is_masked (const sl_heat_data *h, size_t r, size_t c, size_t row,
                      size_t col) {
  size_t last = (row + 1) * r < h->rows ? (row + 1) * r : h->rows;
  return h->mask_upper && col * c >= visible_in (h, last);
}

/* Largest of each block of the visible cells; their range; whether any is
** NaN. */
static void pool (sl_heat_data *h, const double *data) {
  size_t br = h->block_rows, bc = h->block_cols;
  h->lo = INFINITY, h->hi = -INFINITY;
  for (size_t i = 0; i < h->n_rows * h->n_cols; i++) h->value[i] = NAN;
  for (size_t r = 0; r < h->rows; r++) {
    const double *in = data + r * h->cols;
    double *out = h->value + r / br * h->n_cols;
    size_t visible = h->mask_upper ? visible_in (h, r + 1) : h->cols;
    for (size_t c = 0, end; c < visible; c = end, out++) {
      double most = -INFINITY;
      int any = 0;
      end = c + bc < visible ? c + bc : visible;
      for (size_t k = c; k < end; k++) {
        double x = in[k];
        if (isnan (x)) {
          h->any_nan = 1;
          continue;
        }
        any = 1;
        if (x > most) most = x;
        if (isfinite (x) && (!h->asked.log || x > 0)) {
          if (x < h->lo) h->lo = x;
          if (x > h->hi) h->hi = x;
        }
      }
      if (any && !(*out >= most)) *out = most;
    }
  }
}

/* The range for data lo..hi (lo > hi: none), within the ends that were given. */
static int range_for (const sl_heat_data *h, double lo, double hi,
                      sl_range *range, sl_error *e) {
  *range = h->asked;
  if (range->min == range->max && !range->log && lo >= 0 && hi <= 1)
    range->min = 0, range->max = 1;
  return sl_range_settle (range, lo, hi, "the colours", e);
}

static void show_in (sl_heat_data *h, sl_range range) {
  h->range = range;
  h->any_below = h->least < range.min;
  h->any_above = h->largest > range.max;
}

static int take_tokens (sl_marks_data *to, const sl_marks *from, size_t want,
                        const char *what, sl_error *e) {
  if (from->n && from->n != want)
    return sl_fail (e, "%zu tokens for %zu %s", from->n, want, what);
  return sl_marks_copy (to, from, what, e);
}

int sl_heat_fill (sl_panel *p, const sl_heat *heat, size_t limit, sl_error *e) {
  sl_heat_data *h = &p->heat;
  sl_range range;
  size_t count;
  if (heat->rows == 0 || heat->cols == 0 || !heat->data)
    return sl_fail (e, "a heat map of %zu x %zu cells: both must be at least 1",
                    heat->rows, heat->cols);
  h->palette = sl_palette_find (heat->palette, e);
  if (!h->palette) return -1;
  h->quantity =
      sl_text_copy (heat->quantity, "attention weight", "the quantity", e);
  if (!h->quantity) return -1;
  if (heat->lead) {
    if (heat->cols < 2 || heat->cols > limit || !*heat->lead ||
        strlen (heat->lead) > 15)
      return sl_fail (e,
                      "a first column called '%.20s' before %zu others: the "
                      "name may have 1 to 15 bytes, the others be 1 to %zu",
                      heat->lead, heat->cols - 1, limit - 1);
    h->lead = sl_text_copy (heat->lead, "", "the name of the first column", e);
    if (!h->lead) return -1;
  }
  h->rows = heat->rows, h->cols = heat->cols;
  h->first_key = heat->first_key ? heat->first_key : 1;
  if (h->first_key > (size_t)-1 - h->cols)
    return sl_fail (e, "the first key position is %zu", h->first_key);
  if (take_tokens (&h->keys, &heat->keys, h->cols - (h->lead != NULL), "keys",
                   e) ||
      take_tokens (&h->queries, &heat->queries, h->rows, "queries", e))
    return -1;
  h->block_rows = sl_div_up (h->rows, limit);
  h->block_cols = sl_div_up (h->cols, limit);
  h->n_rows = sl_div_up (h->rows, h->block_rows);
  h->n_cols = sl_div_up (h->cols, h->block_cols);
  h->asked = (sl_range){ heat->min, heat->max, heat->log };
  h->mask_upper = heat->mask_upper;
  if (sl_size_mul (h->n_rows, h->n_cols, &count) ||
      !(h->value = sl_alloc (count, sizeof *h->value)))
    return sl_fail (e, "no memory for a heat map of %zu x %zu cells", h->rows,
                    h->cols);
  pool (h, heat->data);
  h->least = INFINITY, h->largest = -INFINITY;
  for (size_t i = 0; i < count; i++) {
    if (h->value[i] < h->least) h->least = h->value[i];
    if (h->value[i] > h->largest) h->largest = h->value[i];
  }
  if (range_for (h, h->lo, h->hi, &range, e)) return -1;
  show_in (h, range);
  return 0;
}

static void drop (sl_panel *p) {
  sl_free (p->heat.value);
  sl_free (p->heat.quantity);
  sl_free (p->heat.lead);
  sl_marks_free (&p->heat.keys);
  sl_marks_free (&p->heat.queries);
}

double sl_heat_at (const sl_heat_data *h, size_t coarse_rows,
                   size_t coarse_cols, size_t row, size_t col, int *masked) {
  size_t r_end = (row + 1) * coarse_rows, c_end = (col + 1) * coarse_cols;
  double most = NAN;
  if (r_end > h->n_rows) r_end = h->n_rows;
  if (c_end > h->n_cols) c_end = h->n_cols;
  *masked = is_masked (h, h->block_rows * coarse_rows,
                       h->block_cols * coarse_cols, row, col);
  for (size_t r = row * coarse_rows; r < r_end; r++)
    for (size_t c = col * coarse_cols; c < c_end; c++) {
      double x = h->value[r * h->n_cols + c];
      if (!isnan (x) && !(most >= x)) most = x;
    }
  return most;
}

sl_rgb sl_heat_colour (const sl_heat_data *h, double value, int masked) {
  if (masked) return SL_MASKED;
  if (isnan (value)) return SL_NO_VALUE;
  return sl_palette_at (h->palette, sl_range_fraction (&h->range, value));
}

/* A pixel count per stored value, so that the larger side comes near 'side';
** the cells of very long maps are stretched the short way. */
static void size (const sl_panel *p, double side, double *w, double *h) {
  const sl_heat_data *d = &p->heat;
  size_t most = d->n_rows > d->n_cols ? d->n_rows : d->n_cols;
  double cell = fmax (1, floor (side / (double)most + 0.5));
  double least = fabs (side) / 6;
  if (side < 0) side = -side, cell = side / (double)most;
  *w = cell * (double)d->n_cols;
  *h = cell * (double)d->n_rows;
  if (*w < least) *w *= ceil (least / *w);
  if (*h < least) *h *= ceil (least / *h);
}

/* The name of the lead is wide: position 1 makes room for it unless every
** position has a tick. */
void sl_heat_key_ticks (const sl_heat_data *h, int most, sl_ticks *t) {
  const size_t keys = h->cols - (h->lead != NULL);
  if (most > SL_MAX_TICKS - 1) most = SL_MAX_TICKS - 1;
  if (h->keys.n)
    sl_marks_ticks (&h->keys, NULL, most, t);
  else {
    sl_ticks_positions (h->first_key, h->first_key + keys - 1, most, t);
    for (int i = 0; i < t->n; i++) t->at[i] -= (double)(h->first_key - 1);
  }
  if (!h->lead) return;
  if ((size_t)t->n == keys) { /* every position has a tick */
    memmove (t->label[1], t->label[0], (size_t)t->n * sizeof t->label[0]);
    memmove (t->at + 1, t->at, (size_t)t->n * sizeof t->at[0]);
    t->n++;
  }
  for (int i = 1; i < t->n; i++) t->at[i] += 1;
  t->at[0] = 1;
  snprintf (t->label[0], sizeof t->label[0], "%s", h->lead);
}

void sl_heat_query_ticks (const sl_heat_data *h, int most, sl_ticks *t) {
  if (h->queries.n)
    sl_marks_ticks (&h->queries, NULL, most, t);
  else
    sl_ticks_positions (1, h->rows, most, t);
}

static void ticks (const sl_panel *p, sl_axis axis, int most, sl_ticks *t) {
  if (axis == SL_X)
    sl_heat_key_ticks (&p->heat, most, t);
  else
    sl_heat_query_ticks (&p->heat, most, t);
}

/* Position k is at the middle of its cell. */
static double along (const sl_panel *p, sl_axis axis, double at) {
  const sl_heat_data *h = &p->heat;
  double n = axis == SL_X ? (double)(h->n_cols * h->block_cols)
                          : (double)(h->n_rows * h->block_rows);
  return (at - 0.5) / n;
}

static int same (sl_rgb a, sl_rgb b) {
  return a.r == b.r && a.g == b.g && a.b == b.b;
}

static sl_rgb cell (const sl_heat_data *h, size_t row, size_t col) {
  int masked;
  double x = sl_heat_at (h, 1, 1, row, col, &masked);
  return sl_heat_colour (h, x, masked);
}

size_t sl_heat_runs (const sl_heat_data *h) {
  size_t runs = 0;
  for (size_t r = 0; r < h->n_rows; r++)
    for (size_t c = 0; c < h->n_cols; c++)
      runs += c == 0 || !same (cell (h, r, c), cell (h, r, c - 1));
  return runs;
}

/* Each run of equal cells is a rectangle that reaches a little below and to the
** right, under the next ones: no hairlines between cells in any viewer. */
static void draw_cells (const sl_heat_data *h, cairo_t *cr,
                        const sl_box *plot) {
  double w = plot->w / (double)h->n_cols, t = plot->h / (double)h->n_rows;
  const double under = 0.25;
  for (size_t r = 0; r < h->n_rows; r++)
    for (size_t c = 0, end; c < h->n_cols; c = end) {
      sl_rgb rgb = cell (h, r, c);
      double right, bottom;
      for (end = c + 1; end < h->n_cols && same (rgb, cell (h, r, end));) end++;
      right = end < h->n_cols ? under : 0;
      bottom = r + 1 < h->n_rows ? under : 0;
      cairo_set_source_rgb (cr, rgb.r / 255.0, rgb.g / 255.0, rgb.b / 255.0);
      cairo_rectangle (cr, plot->x + (double)c * w, plot->y + (double)r * t,
                       (double)(end - c) * w + right, t + bottom);
      cairo_fill (cr);
    }
}

/* One pixel per value, or 'up' x 'up' of them for viewers that smooth
** images. */
static cairo_surface_t *image (const sl_heat_data *h, size_t coarse_rows,
                               size_t coarse_cols, size_t up) {
  size_t rows = sl_div_up (h->n_rows, coarse_rows);
  size_t cols = sl_div_up (h->n_cols, coarse_cols);
  cairo_surface_t *s = cairo_image_surface_create (
      CAIRO_FORMAT_RGB24, (int)(cols * up), (int)(rows * up));
  unsigned char *pixels = cairo_image_surface_get_data (s);
  size_t stride = (size_t)cairo_image_surface_get_stride (s);
  if (!pixels) return s;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) {
      int masked;
      double x = sl_heat_at (h, coarse_rows, coarse_cols, r, c, &masked);
      sl_rgb rgb = sl_heat_colour (h, x, masked);
      unsigned word =
          (unsigned)rgb.r << 16 | (unsigned)rgb.g << 8 | (unsigned)rgb.b;
      for (size_t i = 0; i < up; i++) {
        unsigned *row = (unsigned *)(void *)(pixels + (r * up + i) * stride);
        for (size_t j = 0; j < up; j++) row[c * up + j] = word;
      }
    }
  cairo_surface_mark_dirty (s);
  return s;
}

static void draw (const sl_panel *p, cairo_t *cr, const sl_box *plot,
                  const sl_render *r) {
  const sl_heat_data *h = &p->heat;
  size_t coarse_rows = h->n_rows > 1 ? (size_t)r->coarse : 1;
  size_t coarse_cols = h->n_cols > 1 ? (size_t)r->coarse : 1;
  size_t rows = sl_div_up (h->n_rows, coarse_rows);
  size_t cols = sl_div_up (h->n_cols, coarse_cols);
  size_t most = rows > cols ? rows : cols;
  double longest = fmax (plot->w, plot->h) / 72 * SL_DEFAULT_DPI;
  size_t up = r->vector ? sl_div_up ((size_t)longest, most) : 1;
  /* The last block may reach beyond the matrix: the plot shows it whole. */
  double w = plot->w * (double)(cols * coarse_cols) / (double)h->n_cols;
  double t = plot->h * (double)(rows * coarse_rows) / (double)h->n_rows;
  cairo_surface_t *s;
  sl_clip (cr, plot);
  if (r->cells && r->coarse == 1)
    draw_cells (h, cr, plot);
  else {
    s = image (h, coarse_rows, coarse_cols, up);
    cairo_translate (cr, plot->x, plot->y);
    cairo_scale (cr, w / (double)(cols * up), t / (double)(rows * up));
    cairo_set_source_surface (cr, s, 0, 0);
    cairo_pattern_set_filter (cairo_get_source (cr), CAIRO_FILTER_NEAREST);
    cairo_paint (cr);
    cairo_surface_destroy (s);
  }
  cairo_restore (cr);
}

/* One range for all panels. */
static int share (sl_figure *f, int count, sl_error *e) {
  const sl_heat_data *first = &f->panel[0].heat, *last;
  double lo = INFINITY, hi = -INFINITY;
  sl_range range;
  last = &f->panel[count - 1].heat;
  if (last->palette != first->palette ||
      strcmp (last->quantity, first->quantity) != 0)
    return sl_fail (e,
                    "panel %d shows '%.80s' in %s, but panel 1 shows '%.80s' "
                    "in %s: under a shared colour bar they must agree",
                    count, last->quantity, last->palette->name, first->quantity,
                    first->palette->name);
  if (sl_ranges_agree (&last->asked, &first->asked, "the colours", count, e))
    return -1;
  for (int i = 0; i < count; i++) {
    lo = fmin (lo, f->panel[i].heat.lo);
    hi = fmax (hi, f->panel[i].heat.hi);
  }
  if (range_for (first, lo, hi, &range, e)) return -1;
  for (int i = 0; i < count; i++) show_in (&f->panel[i].heat, range);
  return 0;
}

const sl_panel_kind sl_heat_kind = { .name = "a heat map",
                                     .has_bar = 1,
                                     .drop = drop,
                                     .share = share,
                                     .size = size,
                                     .ticks = ticks,
                                     .along = along,
                                     .draw = draw,
                                     .text = sl_heat_text };
