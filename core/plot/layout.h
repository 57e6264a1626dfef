/* layout.h - the place of each part of a figure, from measured text.
**
** The layout is the same for PNG, SVG and PDF. Every piece of text that is
** drawn is a label in the list below, in a box of its own: boxes lie inside
** the page and do not overlap (a test looks at them). */
#ifndef SL_LAYOUT_H
#define SL_LAYOUT_H
#include "plot/font.h"
#include "plot/panel.h"

typedef struct sl_label {
  char *text; /* one line */
  sl_role role;
  int vertical; /* read upwards */
  sl_box box;
} sl_label;

/* A colour bar; heat is NULL where there is none. */
typedef struct sl_bar {
  sl_box box;
  const sl_heat_data *heat; /* whose colours and quantity */
  int below, above;         /* data lie beyond the bar's ends: arrowheads */
  sl_ticks ticks;
} sl_bar;

/* Names of series; panel is NULL if there are none. */
typedef struct sl_legend {
  const sl_panel *panel;
  sl_box first; /* the first sample */
  double step;  /* down to the next */
} sl_legend;

typedef struct sl_place {
  sl_box plot;
  sl_ticks x, y;
  int upright;        /* labels of the x axis read upwards */
  int show_x, show_y; /* ticks and labels of the axis are drawn */
  sl_bar bar;
  sl_legend legend;
} sl_place;

typedef struct sl_layout {
  const sl_figure *figure;
  double width, height; /* page, in points; whole pixels at the figure's dpi */
  size_t n_labels, room;
  sl_label *label;
  sl_place *place; /* per panel */
  sl_bar bar;      /* the shared one, or */
  sl_legend legend;
} sl_layout;

/* Lengths that layout and drawing share, in points. */
#define SL_TICK_LENGTH 3.0
#define SL_ARROW 5.0 /* arrowhead at the end of a colour bar */

/* NULL and a sentence without panels or memory. coarse: see sl_render. */
sl_layout *sl_layout_new (const sl_figure *f, int coarse, sl_error *e);
void sl_layout_free (sl_layout *l);

/* Draw the page with its unit one point. */
void sl_layout_draw (const sl_layout *l, cairo_t *cr, const sl_render *r);
#endif
