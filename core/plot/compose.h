/* compose.h - the parts of the layout: label.c measures and places text,
** legend.c the colour bar and the legend, layout.c the panels. */
#ifndef SL_COMPOSE_H
#define SL_COMPOSE_H
#include "plot/layout.h"

enum { SL_GAP = 3 }; /* points between neighbouring pieces of text */

typedef struct sl_need {
  double w, h, left, right, top, bottom; /* the plot and its margins */
  /* Distances from the plot: up to its title, down to the x label, left to
  ** the y label, right to the bar or legend. */
  double over, under, before, after;
} sl_need;

typedef struct sl_work {
  sl_layout *l;
  sl_font font;
  sl_need *panel;
  double *left, *width, *right;  /* per column */
  double *top, *height, *bottom; /* per row */
  int rows, columns;
  int failed;
} sl_work;

/* Size of text that is wrapped to 'width'. */
sl_box sl_block_size (sl_work *w, sl_role role, const char *text, double width);

/* n bytes of one line in this box, a copy; 'vertical': it reads upwards. */
void sl_add_label (sl_work *w, sl_role role, int vertical, const char *text,
                   size_t n, sl_box box);
/* Lines wrapped to 'width', centred on x, from y down; 'vertical': lines that read
** upwards, centred on y, from x to the right. */
void sl_put_text (sl_work *w, sl_role role, int vertical, const char *text,
                  double width, double x, double y);

/* Labels of ticks. */
double sl_tick_width (sl_work *w, const sl_ticks *t, int i);
double sl_widest_tick (sl_work *w, const sl_ticks *t);
/* The label's upper left corner at (x, y); upright: it reads upwards. */
void sl_put_tick (sl_work *w, const sl_ticks *t, int i, int upright, double x,
                  double y);

/* Position of tick i along an axis of that length; of a bar if p is NULL. */
double sl_tick_at (const sl_panel *p, const sl_bar *bar, sl_axis axis,
                   const sl_ticks *t, int i, double length);

/* As many ticks as fit. Names of an x axis that do not fit side by side are put
** upright, and *upright is 1 then (NULL: never). */
void sl_fit_ticks (sl_work *w, const sl_panel *p, const sl_bar *bar,
                   sl_axis axis, double length, sl_ticks *t, int *upright);

/* legend.c. bar_need: width of a colour bar of that height with its labels.
** place_bar: from (x, y) down. */
double sl_bar_need (sl_work *w, sl_bar *bar, const sl_heat_data *heat,
                    double height);
void sl_place_bar (sl_work *w, sl_bar *bar, double x, double y);
/* legend_need: width of the legend of a panel, 0 for none; *high: its height. */
double sl_legend_need (sl_work *w, const sl_panel *p, sl_legend *legend,
                       double *high);
void sl_place_legend (sl_work *w, sl_legend *l, double x, double y);

static inline void sl_widen (double *x, double y) {
  if (y > *x) *x = y;
}
#endif
