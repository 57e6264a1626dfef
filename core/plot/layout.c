/* layout.c - the place of each part of a figure, from measured text.
**
** Two passes over the panels: 'measure' finds the margins of each, columns and
** rows of the grid take the largest, then 'place' puts boxes and labels. */
#include "base/memory.h"
#include "base/number.h"
#include "plot/compose.h"
#include <math.h>
#include <string.h>

/* Lengths in points. */
enum {
  PAGE_MARGIN = 7,
  TITLE_GAP = 5,   /* below titles */
  COLUMN_GAP = 14, /* between panels */
  ROW_GAP = 10,
  BAR_GAP = 8,      /* between a plot and its colour bar or legend */
  LEAST_TEXT = 210, /* titles and captions are not wrapped below this */
  HIGHEST_BAR = 300
};

/* Up to whole pixels, so that the cells of heat maps stay sharp. */
static double snap (const sl_work *w, double x) {
  double pixel = 72.0 / w->l->figure->dpi;
  return ceil (x / pixel - 1e-6) * pixel;
}

/* ---- panels ---- */

/* About how many inches the plot of a panel should measure. */
static double wanted_side (const sl_work *w) {
  static const double side[] = { 3.4, 2.9, 2.0, 1.7 };
  int most = sl_max_int (w->rows, w->columns);
  return most <= 4 ? side[most - 1] : fmax (0.75, 7.0 / most);
}

static void measure_ticks (sl_work *w, const sl_panel *p, sl_place *at,
                           sl_need *n) {
  double high = w->font.height[SL_TICK_LABEL];
  sl_fit_ticks (w, p, NULL, SL_X, n->w, &at->x, &at->upright);
  sl_fit_ticks (w, p, NULL, SL_Y, n->h, &at->y, NULL);
  if (p->kind->has_bar && p->heat.rows == p->heat.cols && !at->x.words &&
      !at->y.words && p->heat.first_key == 1) { /* alike on both axes */
    if (at->y.n > at->x.n)
      at->y = at->x;
    else
      at->x = at->y;
  }
  if (at->show_x) {
    double widest = sl_widest_tick (w, &at->x);
    sl_widen (&n->under, SL_TICK_LENGTH + 2 + (at->upright ? widest : high));
    for (int i = 0; i < at->x.n; i++) {
      double x = sl_tick_at (p, NULL, SL_X, &at->x, i, n->w);
      double half = (at->upright ? high : sl_tick_width (w, &at->x, i)) / 2;
      sl_widen (&n->before, half - x);
      sl_widen (&n->after, x + half - n->w);
    }
  }
  if (at->show_y) {
    sl_widen (&n->before, SL_TICK_LENGTH + 2 + sl_widest_tick (w, &at->y));
    for (int i = 0; i < at->y.n; i++) {
      double y = sl_tick_at (p, NULL, SL_Y, &at->y, i, n->h);
      if (!at->y.label[i][0]) continue;
      sl_widen (&n->over, high / 2 - y);
      sl_widen (&n->under, y + high / 2 - n->h);
    }
  }
}

/* The colour bar or legend of one panel, if the panels share none. */
static void measure_right (sl_work *w, const sl_panel *p, sl_place *at,
                           sl_need *n) {
  double high;
  if (p->kind->has_bar) {
    at->bar.above = p->heat.any_above, at->bar.below = p->heat.any_below;
    n->right = sl_bar_need (w, &at->bar, &p->heat, n->h);
    sl_widen (&n->over, w->font.height[SL_TICK_LABEL] / 2);
    return;
  }
  n->right = sl_legend_need (w, p, &at->legend, &high);
  sl_widen (&n->under, high - n->h);
}

static void measure (sl_work *w, int index) {
  const sl_figure *f = w->l->figure;
  const sl_panel *p = &f->panel[index];
  sl_place *at = &w->l->place[index];
  sl_need *n = &w->panel[index];
  double pixel = 72.0 / f->dpi, tall, wide;
  sl_box title, side, xlabel = { 0 }, ylabel = { 0 };
  p->kind->size (
      p, floor (f->size > 0 ? -f->size * f->dpi : wanted_side (w) * f->dpi),
      &n->w, &n->h);
  n->w *= pixel, n->h *= pixel;
  at->show_x = !f->shared || index + f->columns >= f->n;
  at->show_y = !f->shared || index % f->columns == 0;
  measure_ticks (w, p, at, n);
  title = sl_block_size (w, SL_PANEL_TITLE, p->title, n->w);
  side = sl_block_size (w, SL_PANEL_TITLE, p->side, n->h);
  tall = side.w;
  if (!f->shared) { /* otherwise the figure has one of each */
    xlabel = sl_block_size (w, SL_AXIS_LABEL, p->xlabel, n->w);
    ylabel = sl_block_size (w, SL_AXIS_LABEL, p->ylabel, n->h);
    measure_right (w, p, at, n);
    sl_widen (&tall, ylabel.w);
    if (p->kind->has_bar)
      sl_widen (&tall,
                sl_block_size (w, SL_AXIS_LABEL, p->heat.quantity, n->h).w);
  }
  /* Upright text that is longer than the plot is high keeps the title and the x
  ** label away; then these may be wider than the plot. */
  sl_widen (&n->over, (tall - n->h) / 2);
  sl_widen (&n->under, (tall - n->h) / 2);
  wide = (fmax (title.w, xlabel.w) - n->w) / 2;
  n->top = n->over;
  if (title.h > 0) {
    n->over = fmax (n->over + 1, TITLE_GAP);
    n->top = n->over + title.h;
  }
  n->bottom = n->under;
  if (xlabel.h > 0) {
    n->under += SL_GAP;
    n->bottom = n->under + xlabel.h;
  }
  n->left = n->before;
  if (ylabel.h > 0) n->left += SL_GAP + ylabel.h;
  if (side.h > 0) n->left += SL_GAP + side.h;
  if (n->right > 0) n->after = fmax (n->after + 2, BAR_GAP);
  n->right += n->after;
  sl_widen (&n->left, wide);
  sl_widen (&n->right, wide);
}

/* The plot's corner at (x, y). */
static void place (sl_work *w, int index, double x, double y) {
  const sl_figure *f = w->l->figure;
  const sl_panel *p = &f->panel[index];
  sl_place *at = &w->l->place[index];
  const sl_need *n = &w->panel[index];
  double high = w->font.height[SL_TICK_LABEL], left = x - n->before;
  sl_box title = sl_block_size (w, SL_PANEL_TITLE, p->title, n->w);
  at->plot = (sl_box){ x, y, n->w, n->h };
  sl_put_text (w, SL_PANEL_TITLE, 0, p->title, n->w, x + n->w / 2,
               y - n->over - title.h);
  for (int i = 0; at->show_x && i < at->x.n; i++) {
    double wide = at->upright ? high : sl_tick_width (w, &at->x, i);
    sl_put_tick (w, &at->x, i, at->upright,
                 x + sl_tick_at (p, NULL, SL_X, &at->x, i, n->w) - wide / 2,
                 y + n->h + SL_TICK_LENGTH + 2);
  }
  for (int i = 0; at->show_y && i < at->y.n; i++)
    sl_put_tick (w, &at->y, i, 0,
                 x - SL_TICK_LENGTH - 2 - sl_tick_width (w, &at->y, i),
                 y + sl_tick_at (p, NULL, SL_Y, &at->y, i, n->h) - high / 2);
  if (!f->shared) {
    sl_box ylabel = sl_block_size (w, SL_AXIS_LABEL, p->ylabel, n->h);
    sl_put_text (w, SL_AXIS_LABEL, 0, p->xlabel, n->w, x + n->w / 2,
                 y + n->h + n->under);
    if (ylabel.h > 0) left -= SL_GAP + ylabel.h;
    sl_put_text (w, SL_AXIS_LABEL, 1, p->ylabel, n->h, left, y + n->h / 2);
    if (p->kind->has_bar) sl_place_bar (w, &at->bar, x + n->w + n->after, y);
    sl_place_legend (w, &at->legend, x + n->w + n->after, y);
  }
  left -= SL_GAP + sl_block_size (w, SL_PANEL_TITLE, p->side, n->h).h;
  sl_put_text (w, SL_PANEL_TITLE, 1, p->side, n->h, left, y + n->h / 2);
}

/* ---- the page ---- */

/* Sum of the three parts of n rows or columns and the gaps between them. */
static double extent (const double *a, const double *b, const double *c, int n,
                      double gap) {
  double sum = gap * (n - 1);
  for (int i = 0; i < n; i++) sum += a[i] + b[i] + c[i];
  return sum;
}

/* The panels with their margins, and the parts around all of them. */
typedef struct grid {
  double w, h;
  double plots_w, plots_h; /* without the outermost margins */
  double column_gap, row_gap;
  /* Of a figure whose panels share: labels before and below the panels, a bar
  ** (that high) or legend after them. */
  double before, after, below, bar_h;
} grid;

static void find_extent (const sl_work *w, grid *g) {
  g->w = extent (w->left, w->width, w->right, w->columns, g->column_gap);
  g->h = extent (w->top, w->height, w->bottom, w->rows, g->row_gap);
  g->plots_w = g->w - w->left[0] - w->right[w->columns - 1];
  g->plots_h = g->h - w->top[0] - w->bottom[w->rows - 1];
}

static void measure_panels (sl_work *w, grid *g) {
  const sl_figure *f = w->l->figure;
  for (int i = 0; i < f->n; i++) {
    int r = i / f->columns, c = i % f->columns;
    const sl_need *n = &w->panel[i];
    measure (w, i);
    sl_widen (&w->left[c], n->left), sl_widen (&w->width[c], n->w);
    sl_widen (&w->right[c], n->right);
    sl_widen (&w->top[r], n->top), sl_widen (&w->height[r], n->h);
    sl_widen (&w->bottom[r], n->bottom);
  }
  /* Snapped sums: a plot begins on a pixel. */
  for (int c = 0; c < w->columns; c++) w->left[c] = snap (w, w->left[c]);
  for (int c = 0; c < w->columns; c++) w->right[c] = snap (w, w->right[c]);
  for (int r = 0; r < w->rows; r++) w->top[r] = snap (w, w->top[r]);
  for (int r = 0; r < w->rows; r++) w->bottom[r] = snap (w, w->bottom[r]);
  g->column_gap = snap (w, COLUMN_GAP), g->row_gap = snap (w, ROW_GAP);
  find_extent (w, g);
}

/* The labels of the axes, and the bar or the legend, that all panels share. */
static void measure_shared (sl_work *w, grid *g) {
  sl_layout *l = w->l;
  const sl_figure *f = l->figure;
  const sl_panel *first = &f->panel[0];
  const double half_tick = w->font.height[SL_TICK_LABEL] / 2;
  double *right = &w->right[w->columns - 1], *bottom = &w->bottom[w->rows - 1];
  double legend_h = 0, legend_w = 0, side, tall;
  sl_box xlabel, ylabel, quantity = { 0 };
  g->bar_h = g->plots_h < HIGHEST_BAR ? g->plots_h : HIGHEST_BAR;
  if (first->kind->has_bar)
    quantity = sl_block_size (w, SL_AXIS_LABEL, first->heat.quantity, g->bar_h);
  else
    legend_w = sl_legend_need (w, first, &l->legend, &legend_h);
  xlabel = sl_block_size (w, SL_AXIS_LABEL, first->xlabel, g->plots_w);
  ylabel = sl_block_size (w, SL_AXIS_LABEL, first->ylabel, g->plots_h);
  side = snap (w, (xlabel.w - g->plots_w) / 2);
  tall = (fmax (ylabel.w, quantity.w) - g->plots_h) / 2;
  tall = snap (w, fmax (tall, half_tick));
  sl_widen (&w->left[0], side), sl_widen (right, side);
  sl_widen (&w->top[0], tall), sl_widen (bottom, tall);
  sl_widen (bottom, snap (w, legend_h - g->plots_h));
  find_extent (w, g);
  g->below = xlabel.h > 0 ? SL_GAP + xlabel.h : 0;
  g->before = snap (w, ylabel.h > 0 ? SL_GAP + ylabel.h : 0);
  if (!first->kind->has_bar) {
    g->after = legend_w > 0 ? BAR_GAP + legend_w : 0;
    return;
  }
  for (int i = 0; i < f->n; i++) {
    l->bar.above |= f->panel[i].heat.any_above;
    l->bar.below |= f->panel[i].heat.any_below;
  }
  g->after = BAR_GAP + sl_bar_need (w, &l->bar, &first->heat, g->bar_h);
}

/* The corner of all that belongs to the panels is (x, y). */
static void place_shared (sl_work *w, const grid *g, double x, double y) {
  sl_layout *l = w->l;
  const sl_panel *first = &l->figure->panel[0];
  const double top = y + w->top[0], left = x + g->before + w->left[0];
  const double beside = x + g->before + g->w + BAR_GAP;
  sl_put_text (w, SL_AXIS_LABEL, 0, first->xlabel, g->plots_w,
               left + g->plots_w / 2, y + g->h + SL_GAP);
  sl_put_text (w, SL_AXIS_LABEL, 1, first->ylabel, g->plots_h, x,
               top + g->plots_h / 2);
  if (first->kind->has_bar)
    sl_place_bar (w, &l->bar, beside, top + (g->plots_h - g->bar_h) / 2);
  else
    sl_place_legend (w, &l->legend, beside, top);
}

/* Returns where the last row ends. */
static double place_panels (sl_work *w, const grid *g, double x0, double y) {
  for (int r = 0, i = 0; r < w->rows; r++) {
    double x = x0 + g->before;
    y += w->top[r];
    for (int c = 0; c < w->columns && i < w->l->figure->n; c++, i++) {
      x += w->left[c];
      place (w, i, x, y);
      x += w->width[c] + w->right[c] + g->column_gap;
    }
    y += w->height[r] + w->bottom[r] + (r + 1 < w->rows ? g->row_gap : 0);
  }
  return y;
}

/* From the top: the title, the panels with their shared parts, the caption. */
static void compose (sl_work *w, const char *caption) {
  sl_layout *l = w->l;
  const sl_figure *f = l->figure;
  const double pixel = 72.0 / f->dpi;
  grid g = { 0 };
  double content, wide, x, y;
  sl_box title, note;
  measure_panels (w, &g);
  if (f->shared) measure_shared (w, &g);
  content = g.before + g.w + g.after;
  wide = fmax (content, LEAST_TEXT);
  title = sl_block_size (w, SL_TITLE, f->title, wide);
  note = sl_block_size (w, SL_CAPTION, caption, wide);
  l->width = snap (w, fmax (content, fmax (title.w, note.w)) + 2 * PAGE_MARGIN);
  x = snap (w, (l->width - content) / 2);
  y = PAGE_MARGIN;
  sl_put_text (w, SL_TITLE, 0, f->title, wide, l->width / 2, y);
  y = snap (w, y + title.h + (title.h > 0 ? TITLE_GAP + 1 : 0));
  if (f->shared) place_shared (w, &g, x, y);
  y = place_panels (w, &g, x, y) + g.below;
  if (note.h > 0) y += TITLE_GAP + 1;
  sl_put_text (w, SL_CAPTION, 0, caption, wide, l->width / 2, y);
  l->height = ceil ((y + note.h + PAGE_MARGIN) / pixel) * pixel;
}

sl_layout *sl_layout_new (const sl_figure *f, int coarse, sl_error *e) {
  sl_work w = { 0 };
  sl_bytes caption = { 0 };
  double *lengths = NULL;
  if (f->n == 0) {
    sl_fail (e, "the figure has no panels");
    return NULL;
  }
  if (sl_font_open (&w.font, e)) return NULL;
  w.columns = sl_min_int (f->n, f->columns);
  w.rows = (f->n + f->columns - 1) / f->columns;
  sl_bytes_put (&caption, f->caption);
  if (caption.n) sl_bytes_put (&caption, "\n");
  sl_figure_notes (f, coarse, &caption);
  if (caption.n && caption.data[caption.n - 1] == '\n')
    caption.data[caption.n - 1] = 0;
  w.l = sl_alloc (1, sizeof *w.l);
  if (w.l) w.l->place = sl_alloc ((size_t)f->n, sizeof *w.l->place);
  w.panel = sl_alloc ((size_t)f->n, sizeof *w.panel);
  lengths = sl_alloc (3 * (size_t)(w.rows + w.columns), sizeof *lengths);
  w.failed = !w.l || !w.l->place || !w.panel || !lengths || caption.failed;
  if (!w.failed) {
    w.l->figure = f;
    w.left = lengths, w.width = w.left + w.columns;
    w.right = w.width + w.columns, w.top = w.right + w.columns;
    w.height = w.top + w.rows, w.bottom = w.height + w.rows;
    compose (&w, caption.data);
  }
  sl_font_close (&w.font);
  sl_bytes_free (&caption);
  sl_free (w.panel);
  sl_free (lengths);
  if (w.failed) {
    sl_fail (e, "no memory to lay out a figure of %d panels", f->n);
    sl_layout_free (w.l);
    return NULL;
  }
  return w.l;
}

void sl_layout_free (sl_layout *l) {
  if (!l) return;
  for (size_t i = 0; i < l->n_labels; i++) sl_free (l->label[i].text);
  sl_free (l->label);
  sl_free (l->place);
  sl_free (l);
}
