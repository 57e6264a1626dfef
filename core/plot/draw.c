/* draw.c - a laid out figure on a Cairo page. */
#include "plot/layout.h"
#include <math.h>

static const double frame_grey = 0.25;

static void frame (cairo_t *cr, const sl_box *b) {
  cairo_set_source_rgb (cr, frame_grey, frame_grey, frame_grey);
  cairo_set_line_width (cr, 0.6);
  cairo_set_dash (cr, NULL, 0, 0);
  cairo_rectangle (cr, b->x, b->y, b->w, b->h);
  cairo_stroke (cr);
}

/* Labelled ticks are long, the others short. */
static double tick_length (const sl_ticks *t, int i) {
  return t->label[i][0] ? SL_TICK_LENGTH : SL_TICK_LENGTH * 0.6;
}

static void axis_ticks (cairo_t *cr, const sl_panel *p, const sl_place *at) {
  const sl_box *b = &at->plot;
  for (int i = 0; at->show_x && i < at->x.n; i++) {
    double x = b->x + b->w * p->kind->along (p, SL_X, at->x.at[i]);
    cairo_move_to (cr, x, b->y + b->h);
    cairo_rel_line_to (cr, 0, tick_length (&at->x, i));
  }
  for (int i = 0; at->show_y && i < at->y.n; i++) {
    double y = b->y + b->h * p->kind->along (p, SL_Y, at->y.at[i]);
    cairo_move_to (cr, b->x, y);
    cairo_rel_line_to (cr, -tick_length (&at->y, i), 0);
  }
  cairo_stroke (cr);
}

/* A triangle of the bar's end colour, its tip towards 'tip'. */
static void arrowhead (cairo_t *cr, const sl_bar *bar, double edge, double tip,
                       double end) {
  sl_rgb c = sl_palette_at (bar->heat->palette, end);
  cairo_move_to (cr, bar->box.x, edge);
  cairo_line_to (cr, bar->box.x + bar->box.w, edge);
  cairo_line_to (cr, bar->box.x + bar->box.w / 2, tip);
  cairo_close_path (cr);
  cairo_set_source_rgb (cr, c.r / 255.0, c.g / 255.0, c.b / 255.0);
  cairo_fill_preserve (cr);
  cairo_set_source_rgb (cr, frame_grey, frame_grey, frame_grey);
  cairo_stroke (cr);
}

static void draw_bar (cairo_t *cr, const sl_bar *bar) {
  const sl_box *b = &bar->box;
  const sl_palette *palette;
  cairo_pattern_t *gradient;
  if (!bar->heat) return;
  palette = bar->heat->palette;
  gradient = cairo_pattern_create_linear (0, b->y + b->h, 0, b->y);
  for (int i = 0; i < palette->n; i++) {
    double t = (double)i / (palette->n - 1);
    sl_rgb c = sl_palette_at (palette, t);
    cairo_pattern_add_color_stop_rgb (gradient, t, c.r / 255.0, c.g / 255.0,
                                      c.b / 255.0);
  }
  cairo_rectangle (cr, b->x, b->y, b->w, b->h);
  cairo_set_source (cr, gradient);
  cairo_fill (cr);
  cairo_pattern_destroy (gradient);
  frame (cr, b);
  for (int i = 0; i < bar->ticks.n; i++) {
    double t = sl_range_fraction (&bar->heat->range, bar->ticks.at[i]);
    cairo_move_to (cr, b->x + b->w, b->y + b->h * (1 - t));
    cairo_rel_line_to (cr, tick_length (&bar->ticks, i), 0);
  }
  cairo_stroke (cr);
  if (bar->above) arrowhead (cr, bar, b->y, b->y - SL_ARROW, 1);
  if (bar->below) arrowhead (cr, bar, b->y + b->h, b->y + b->h + SL_ARROW, 0);
}

static void draw_legend (cairo_t *cr, const sl_legend *l) {
  sl_box sample = l->first;
  const char *name;
  if (!l->panel) return;
  for (int i = 0; (name = sl_axes_entry (l->panel, i)) != NULL; i++) {
    if (!*name) continue;
    l->panel->kind->sample (l->panel, i, cr, &sample);
    sample.y += l->step;
  }
}

/* The box's text; 'ascent' is that of its role. */
static void draw_label (cairo_t *cr, const sl_label *l) {
  cairo_font_extents_t font;
  sl_font_select (cr, l->role);
  cairo_font_extents (cr, &font);
  cairo_save (cr);
  if (l->vertical) {
    cairo_translate (cr, l->box.x + font.ascent, l->box.y + l->box.h);
    cairo_rotate (cr, -acos (-1) / 2);
  } else
    cairo_translate (cr, l->box.x, l->box.y + font.ascent);
  cairo_move_to (cr, 0, 0);
  cairo_show_text (cr, l->text);
  cairo_restore (cr);
}

void sl_layout_draw (const sl_layout *l, cairo_t *cr, const sl_render *r) {
  cairo_set_source_rgb (cr, 1, 1, 1);
  cairo_paint (cr);
  for (int i = 0; i < l->figure->n; i++) {
    const sl_panel *p = &l->figure->panel[i];
    const sl_place *at = &l->place[i];
    p->kind->draw (p, cr, &at->plot, r);
    frame (cr, &at->plot);
    axis_ticks (cr, p, at);
    draw_bar (cr, &at->bar);
    draw_legend (cr, &at->legend);
  }
  draw_bar (cr, &l->bar);
  draw_legend (cr, &l->legend);
  for (size_t i = 0; i < l->n_labels; i++) draw_label (cr, &l->label[i]);
}
