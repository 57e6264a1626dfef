/* layout.c - where everything of a figure goes, from measured text.
**
** Two passes over the panels: 'need' measures the margins of each, columns and
** rows of the grid take the largest, then 'place' puts boxes and labels. */
#include "plot/layout.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

/* Lengths in points. */
enum {
  PAGE_MARGIN = 7,
  GAP = 3,         /* between neighbouring pieces of text */
  TITLE_GAP = 5,   /* below titles */
  COLUMN_GAP = 14, /* between panels */
  ROW_GAP = 10,
  BAR_GAP = 8, /* between a plot and its colour bar or legend */
  BAR_WIDTH = 9,
  SAMPLE_WIDTH = 18, /* of a line in a legend */
  LEAST_TEXT = 210,  /* titles and captions are not wrapped below this */
  HIGHEST_BAR = 300
};

typedef struct need {
  double w, h, left, right, top, bottom; /* the plot and its margins */
  /* Distances from the plot: up to its title, down to the x label, left to
  ** the y label, right to the bar or legend. */
  double over, under, before, after;
} need;

typedef struct work {
  sl_layout *l;
  sl_font font;
  need *panel;
  double *left, *width, *right;  /* per column */
  double *top, *height, *bottom; /* per row */
  int rows, columns;
  int failed;
} work;

static double larger (double a, double b) {
  return a > b ? a : b;
}

static void widen (double *x, double y) {
  if (y > *x) *x = y;
}

/* Up to whole pixels, so that the cells of heat maps stay sharp. */
static double snap (const work *w, double x) {
  double pixel = 72.0 / w->l->figure->dpi;
  return ceil (x / pixel - 1e-6) * pixel;
}

/* ---- text: wrapping, measuring, placing ---- */

/* The line that text begins with, in *n bytes and *wide points: as many
** words as fit in 'width', at least one. Returns where the next line begins,
** or NULL. */
static const char *next_line (work *w, sl_role role, const char *text,
                              double width, size_t *n, double *wide) {
  *n = 0, *wide = 0;
  for (size_t i = 0;; i++) {
    double x;
    if (text[i] && text[i] != ' ' && text[i] != '\n') continue;
    x = sl_font_width (&w->font, role, text, i);
    if (x > width && *n > 0) break;
    *n = i, *wide = x;
    if (text[i] != ' ') break;
  }
  return text[*n] ? text + *n + 1 : NULL;
}

static sl_box block_size (work *w, sl_role role, const char *text,
                          double width) {
  sl_box b = { 0, 0, 0, 0 };
  size_t n;
  double wide;
  if (!*text) return b;
  while (text) {
    text = next_line (w, role, text, width, &n, &wide);
    b.w = larger (b.w, wide);
    b.h += w->font.height[role];
  }
  return b;
}

static void add_label (work *w, sl_role role, int vertical, const char *text,
                       size_t n, sl_box box) {
  sl_layout *l = w->l;
  char *copy;
  if (n == 0 || w->failed) return;
  if (l->n_labels == l->room) {
    size_t room = l->room ? 2 * l->room : 64;
    sl_label *more = sl_alloc (room, sizeof *more);
    if (!more) {
      w->failed = 1;
      return;
    }
    if (l->label) memcpy (more, l->label, l->n_labels * sizeof *more);
    sl_free (l->label);
    l->label = more, l->room = room;
  }
  copy = sl_alloc (n + 1, 1);
  if (!copy) {
    w->failed = 1;
    return;
  }
  memcpy (copy, text, n);
  l->label[l->n_labels++] = (sl_label){ copy, role, vertical, box };
}

/* Lines centred on x, from y down. */
static void put_block (work *w, sl_role role, const char *text, double width,
                       double x, double y) {
  double wide, high = w->font.height[role];
  if (!*text) return;
  for (; text; y += high) {
    const char *line = text;
    size_t n;
    text = next_line (w, role, text, width, &n, &wide);
    add_label (w, role, 0, line, n, (sl_box){ x - wide / 2, y, wide, high });
  }
}

/* Lines that read upwards, centred on y, from x to the right. */
static void put_vertical (work *w, sl_role role, const char *text, double width,
                          double x, double y) {
  double wide, high = w->font.height[role];
  if (!*text) return;
  for (; text; x += high) {
    const char *line = text;
    size_t n;
    text = next_line (w, role, text, width, &n, &wide);
    add_label (w, role, 1, line, n, (sl_box){ x, y - wide / 2, high, wide });
  }
}

static double tick_width (work *w, const char *label) {
  char text[64];
  sl_pretty (label, text, sizeof text);
  return sl_font_width (&w->font, SL_TICK_LABEL, text, strlen (text));
}

static double widest_tick (work *w, const sl_ticks *t) {
  double most = 0;
  for (int i = 0; i < t->n; i++)
    most = larger (most, tick_width (w, t->label[i]));
  return most;
}

static void put_tick (work *w, const char *label, double x, double y) {
  char text[64];
  double wide = tick_width (w, label), high = w->font.height[SL_TICK_LABEL];
  sl_pretty (label, text, sizeof text);
  add_label (w, SL_TICK_LABEL, 0, text, strlen (text),
             (sl_box){ x, y, wide, high });
}

/* ---- ticks that fit ---- */

/* Position of tick i along an axis of that length; of a bar if p is NULL. */
static double tick_at (const sl_panel *p, const sl_bar *bar, sl_axis axis,
                       const sl_ticks *t, int i, double length) {
  return length * (p ? p->kind->along (p, axis, t->at[i])
                     : 1 - sl_range_fraction (&bar->heat->range, t->at[i]));
}

/* Labels that come too near to the one before are removed if 'thin'; otherwise
** returns 0 if there is one. */
static int labels_fit (work *w, const sl_panel *p, const sl_bar *bar,
                       sl_axis axis, sl_ticks *t, double length, int thin) {
  double high = w->font.height[SL_TICK_LABEL], last_at = 0, last_extent = -1;
  for (int i = 0; i < t->n; i++) {
    double at, extent, gap = axis == SL_X ? 3 : 1;
    if (!t->label[i][0]) continue;
    at = tick_at (p, bar, axis, t, i, length);
    extent = axis == SL_X ? tick_width (w, t->label[i]) : high;
    if (last_extent >= 0 &&
        fabs (at - last_at) < (extent + last_extent) / 2 + gap) {
      if (!thin) return 0;
      t->label[i][0] = 0;
      continue;
    }
    last_at = at, last_extent = extent;
  }
  return 1;
}

static void fit_ticks (work *w, const sl_panel *p, const sl_bar *bar,
                       sl_axis axis, double length, sl_ticks *t) {
  for (int most = p ? 32 : 6; most >= 2; most--) {
    if (p)
      p->kind->ticks (p, axis, most, t);
    else
      sl_ticks_range (&bar->heat->range, most, t);
    if (labels_fit (w, p, bar, axis, t, length, 0)) return;
  }
  labels_fit (w, p, bar, axis, t, length, 1);
}

/* ---- colour bars ---- */

/* Width of a bar with its labels. */
static double bar_need (work *w, sl_bar *bar, const sl_heat_data *heat,
                        double height) {
  bar->heat = heat;
  bar->box.h = height;
  fit_ticks (w, NULL, bar, SL_Y, height - SL_ARROW * (bar->above + bar->below),
             &bar->ticks);
  return BAR_WIDTH + SL_TICK_LENGTH + 2 + widest_tick (w, &bar->ticks) +
         (*heat->quantity ? GAP : 0) +
         block_size (w, SL_AXIS_LABEL, heat->quantity, height).h;
}

/* A bar from (x, y) down, of the height that bar_need was asked for. */
static void place_bar (work *w, sl_bar *bar, double x, double y) {
  double height = bar->box.h, high = w->font.height[SL_TICK_LABEL], text;
  bar->box = (sl_box){ x, y + SL_ARROW * bar->above, BAR_WIDTH,
                       height - SL_ARROW * (bar->above + bar->below) };
  text = x + BAR_WIDTH + SL_TICK_LENGTH + 2;
  for (int i = 0; i < bar->ticks.n; i++)
    put_tick (w, bar->ticks.label[i], text,
              bar->box.y - high / 2 +
                  tick_at (NULL, bar, SL_Y, &bar->ticks, i, bar->box.h));
  put_vertical (w, SL_AXIS_LABEL, bar->heat->quantity, height,
                text + widest_tick (w, &bar->ticks) + GAP, y + height / 2);
}

/* ---- panels ---- */

/* About how many inches the plot of a panel should measure. */
static double wanted_side (const work *w) {
  static const double side[] = { 3.4, 2.9, 2.0, 1.7 };
  int most = w->rows > w->columns ? w->rows : w->columns;
  return most <= 4 ? side[most - 1] : larger (0.75, 7.0 / most);
}

static double legend_width (work *w, const sl_lines_data *d, int *entries) {
  double most = 0;
  *entries = 0;
  for (int i = 0; i < d->n; i++) {
    const char *label = d->series[i].label;
    if (!*label) continue;
    ++*entries;
    most = larger (most,
                   sl_font_width (&w->font, SL_LEGEND, label, strlen (label)));
  }
  return most;
}

static void measure_ticks (work *w, const sl_panel *p, sl_place *at, need *n) {
  double high = w->font.height[SL_TICK_LABEL];
  fit_ticks (w, p, NULL, SL_X, n->w, &at->x);
  fit_ticks (w, p, NULL, SL_Y, n->h, &at->y);
  if (p->kind->has_bar &&
      p->heat.rows == p->heat.cols) { /* alike on both axes */
    if (at->y.n > at->x.n)
      at->y = at->x;
    else
      at->x = at->y;
  }
  if (at->show_x) {
    widen (&n->under, SL_TICK_LENGTH + 2 + high);
    for (int i = 0; i < at->x.n; i++) {
      double x = tick_at (p, NULL, SL_X, &at->x, i, n->w);
      double half = tick_width (w, at->x.label[i]) / 2;
      widen (&n->before, half - x);
      widen (&n->after, x + half - n->w);
    }
  }
  if (at->show_y) {
    widen (&n->before, SL_TICK_LENGTH + 2 + widest_tick (w, &at->y));
    for (int i = 0; i < at->y.n; i++) {
      double y = tick_at (p, NULL, SL_Y, &at->y, i, n->h);
      if (!at->y.label[i][0]) continue;
      widen (&n->over, high / 2 - y);
      widen (&n->under, y + high / 2 - n->h);
    }
  }
}

/* What belongs to one panel only when the figure shares nothing. */
static void measure_right (work *w, const sl_panel *p, sl_place *at, need *n) {
  int entries;
  double wide;
  if (p->kind->has_bar) {
    at->bar.above = p->heat.any_above, at->bar.below = p->heat.any_below;
    n->right = bar_need (w, &at->bar, &p->heat, n->h);
    widen (&n->over, w->font.height[SL_TICK_LABEL] / 2);
    return;
  }
  wide = legend_width (w, &p->lines, &entries);
  if (entries == 0) return;
  at->legend_step = w->font.height[SL_LEGEND] + 2;
  at->legend.w = SAMPLE_WIDTH;
  n->right = SAMPLE_WIDTH + 4 + wide;
  widen (&n->under, entries * at->legend_step - n->h);
}

static void measure (work *w, int index) {
  const sl_figure *f = w->l->figure;
  const sl_panel *p = &f->panel[index];
  sl_place *at = &w->l->place[index];
  need *n = &w->panel[index];
  double pixel = 72.0 / f->dpi, tall, wide;
  sl_box title, side, xlabel = { 0 }, ylabel = { 0 };
  p->kind->size (p, floor (wanted_side (w) * f->dpi), &n->w, &n->h);
  n->w *= pixel, n->h *= pixel;
  at->show_x = !f->shared_bar || index + f->columns >= f->n;
  at->show_y = !f->shared_bar || index % f->columns == 0;
  measure_ticks (w, p, at, n);
  title = block_size (w, SL_PANEL_TITLE, p->title, n->w);
  side = block_size (w, SL_PANEL_TITLE, p->side, n->h);
  tall = side.w;
  if (!f->shared_bar) { /* otherwise the figure has one of each */
    xlabel = block_size (w, SL_AXIS_LABEL, p->xlabel, n->w);
    ylabel = block_size (w, SL_AXIS_LABEL, p->ylabel, n->h);
    measure_right (w, p, at, n);
    widen (&tall, ylabel.w);
    if (p->kind->has_bar)
      widen (&tall, block_size (w, SL_AXIS_LABEL, p->heat.quantity, n->h).w);
  }
  /* Upright text that is longer than the plot is high keeps the title and the x
  ** label away; then these may be wider than the plot. */
  widen (&n->over, (tall - n->h) / 2);
  widen (&n->under, (tall - n->h) / 2);
  wide = (larger (title.w, xlabel.w) - n->w) / 2;
  n->top = n->over;
  if (title.h > 0) {
    n->over = larger (n->over + 1, TITLE_GAP);
    n->top = n->over + title.h;
  }
  n->bottom = n->under;
  if (xlabel.h > 0) {
    n->under += GAP;
    n->bottom = n->under + xlabel.h;
  }
  n->left = n->before;
  if (ylabel.h > 0) n->left += GAP + ylabel.h;
  if (side.h > 0) n->left += GAP + side.h;
  if (n->right > 0) n->after = larger (n->after + 2, BAR_GAP);
  n->right += n->after;
  widen (&n->left, wide);
  widen (&n->right, wide);
}

static void put_legend (work *w, const sl_lines_data *d, sl_place *at, double x,
                        double y) {
  double high = w->font.height[SL_LEGEND];
  at->legend = (sl_box){ x, y, SAMPLE_WIDTH, high };
  for (int i = 0; i < d->n; i++) {
    const char *label = d->series[i].label;
    size_t n = strlen (label);
    if (n == 0) continue;
    add_label (w, SL_LEGEND, 0, label, n,
               (sl_box){ x + SAMPLE_WIDTH + 4, y,
                         sl_font_width (&w->font, SL_LEGEND, label, n), high });
    y += at->legend_step;
  }
}

/* The plot's corner at (x, y). */
static void place (work *w, int index, double x, double y) {
  const sl_figure *f = w->l->figure;
  const sl_panel *p = &f->panel[index];
  sl_place *at = &w->l->place[index];
  const need *n = &w->panel[index];
  double high = w->font.height[SL_TICK_LABEL], left = x - n->before;
  sl_box title = block_size (w, SL_PANEL_TITLE, p->title, n->w);
  at->plot = (sl_box){ x, y, n->w, n->h };
  put_block (w, SL_PANEL_TITLE, p->title, n->w, x + n->w / 2,
             y - n->over - title.h);
  for (int i = 0; at->show_x && i < at->x.n; i++)
    put_tick (w, at->x.label[i],
              x + tick_at (p, NULL, SL_X, &at->x, i, n->w) -
                  tick_width (w, at->x.label[i]) / 2,
              y + n->h + SL_TICK_LENGTH + 2);
  for (int i = 0; at->show_y && i < at->y.n; i++)
    put_tick (w, at->y.label[i],
              x - SL_TICK_LENGTH - 2 - tick_width (w, at->y.label[i]),
              y + tick_at (p, NULL, SL_Y, &at->y, i, n->h) - high / 2);
  if (!f->shared_bar) {
    sl_box ylabel = block_size (w, SL_AXIS_LABEL, p->ylabel, n->h);
    put_block (w, SL_AXIS_LABEL, p->xlabel, n->w, x + n->w / 2,
               y + n->h + n->under);
    if (ylabel.h > 0) left -= GAP + ylabel.h;
    put_vertical (w, SL_AXIS_LABEL, p->ylabel, n->h, left, y + n->h / 2);
    if (p->kind->has_bar) place_bar (w, &at->bar, x + n->w + n->after, y);
    if (at->legend.w > 0) put_legend (w, &p->lines, at, x + n->w + n->after, y);
  }
  left -= GAP + block_size (w, SL_PANEL_TITLE, p->side, n->h).h;
  put_vertical (w, SL_PANEL_TITLE, p->side, n->h, left, y + n->h / 2);
}

/* ---- the page ---- */

/* Sum of the three parts of n rows or columns and the gaps between them. */
static double extent (const double *a, const double *b, const double *c, int n,
                      double gap) {
  double sum = gap * (n - 1);
  for (int i = 0; i < n; i++) sum += a[i] + b[i] + c[i];
  return sum;
}

static void compose (work *w, const char *caption) {
  sl_layout *l = w->l;
  const sl_figure *f = l->figure;
  const sl_panel *first = &f->panel[0];
  double pixel = 72.0 / f->dpi;
  double grid_w, grid_h, before = 0, after = 0, below = 0, bar_h = 0;
  double plots_h = 0;
  double content, inner, x0, x, y;
  sl_box title, note;
  for (int i = 0; i < f->n; i++) {
    int r = i / f->columns, c = i % f->columns;
    const need *n = &w->panel[i];
    measure (w, i);
    widen (&w->left[c], n->left), widen (&w->width[c], n->w);
    widen (&w->right[c], n->right);
    widen (&w->top[r], n->top), widen (&w->height[r], n->h);
    widen (&w->bottom[r], n->bottom);
  }
  /* Snapped sums: a plot begins on a pixel. */
  for (int c = 0; c < w->columns; c++) w->left[c] = snap (w, w->left[c]);
  for (int c = 0; c < w->columns; c++) w->right[c] = snap (w, w->right[c]);
  for (int r = 0; r < w->rows; r++) w->top[r] = snap (w, w->top[r]);
  for (int r = 0; r < w->rows; r++) w->bottom[r] = snap (w, w->bottom[r]);
  double column_gap = snap (w, COLUMN_GAP), row_gap = snap (w, ROW_GAP);
  grid_w = extent (w->left, w->width, w->right, w->columns, column_gap);
  grid_h = extent (w->top, w->height, w->bottom, w->rows, row_gap);
  if (f->shared_bar) {
    double plots_w = grid_w - w->left[0] - w->right[w->columns - 1], tall;
    sl_box xlabel, ylabel, quantity;
    plots_h = grid_h - w->top[0] - w->bottom[w->rows - 1];
    bar_h = plots_h < HIGHEST_BAR ? plots_h : HIGHEST_BAR;
    quantity = block_size (w, SL_AXIS_LABEL, first->heat.quantity, bar_h);
    xlabel = block_size (w, SL_AXIS_LABEL, first->xlabel, plots_w);
    ylabel = block_size (w, SL_AXIS_LABEL, first->ylabel, plots_h);
    widen (&w->left[0], snap (w, (xlabel.w - plots_w) / 2));
    widen (&w->right[w->columns - 1], snap (w, (xlabel.w - plots_w) / 2));
    tall = (larger (ylabel.w, quantity.w) - plots_h) / 2;
    widen (&w->top[0],
           snap (w, larger (tall, w->font.height[SL_TICK_LABEL] / 2)));
    widen (&w->bottom[w->rows - 1],
           snap (w, larger (tall, w->font.height[SL_TICK_LABEL] / 2)));
    grid_w = plots_w + w->left[0] + w->right[w->columns - 1];
    grid_h = plots_h + w->top[0] + w->bottom[w->rows - 1];
    below = xlabel.h > 0 ? GAP + xlabel.h : 0;
    before = snap (w, ylabel.h > 0 ? GAP + ylabel.h : 0);
    for (int i = 0; i < f->n; i++) {
      l->bar.above |= f->panel[i].heat.any_above;
      l->bar.below |= f->panel[i].heat.any_below;
    }
    after = BAR_GAP + bar_need (w, &l->bar, &first->heat, bar_h);
  }
  content = before + grid_w + after;
  inner = larger (content, LEAST_TEXT);
  title = block_size (w, SL_TITLE, f->title, inner);
  note = block_size (w, SL_CAPTION, caption, inner);
  inner = larger (content, larger (title.w, note.w));
  l->width = snap (w, inner + 2 * PAGE_MARGIN);
  x0 = snap (w, (l->width - content) / 2);
  y = PAGE_MARGIN;
  put_block (w, SL_TITLE, f->title, larger (content, LEAST_TEXT), l->width / 2,
             y);
  y = snap (w, y + title.h + (title.h > 0 ? TITLE_GAP + 1 : 0));
  if (f->shared_bar) {
    double top = y + w->top[0], left = x0 + before + w->left[0];
    double plots_w = grid_w - w->left[0] - w->right[w->columns - 1];
    put_block (w, SL_AXIS_LABEL, first->xlabel, plots_w, left + plots_w / 2,
               y + grid_h + GAP);
    put_vertical (w, SL_AXIS_LABEL, first->ylabel, plots_h, x0,
                  top + plots_h / 2);
    place_bar (w, &l->bar, x0 + before + grid_w + BAR_GAP,
               top + (plots_h - bar_h) / 2);
  }
  for (int r = 0, i = 0; r < w->rows; r++) {
    y += w->top[r];
    x = x0 + before;
    for (int c = 0; c < w->columns && i < f->n; c++, i++) {
      x += w->left[c];
      place (w, i, x, y);
      x += w->width[c] + w->right[c] + column_gap;
    }
    y += w->height[r] + w->bottom[r] + (r + 1 < w->rows ? row_gap : 0);
  }
  y += below;
  if (note.h > 0) y += TITLE_GAP + 1;
  put_block (w, SL_CAPTION, caption, larger (content, LEAST_TEXT), l->width / 2,
             y);
  l->height = ceil ((y + note.h + PAGE_MARGIN) / pixel) * pixel;
}

sl_layout *sl_layout_new (const sl_figure *f, int coarse, sl_error *e) {
  work w = { 0 };
  sl_bytes caption = { 0 };
  double *lengths = NULL;
  if (f->n == 0) {
    sl_fail (e, "the figure has no panels");
    return NULL;
  }
  if (sl_font_open (&w.font, e)) return NULL;
  w.columns = f->n < f->columns ? f->n : f->columns;
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
