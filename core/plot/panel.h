/* panel.h - the inside of a figure: its panels and their kinds.
**
** A kind of panel is one file with one table of functions (heat.c, line.c,
** bars.c); layout, output and text use panels only through that table. */
#ifndef SL_PANEL_H
#define SL_PANEL_H
#include "plot/bytes.h"
#include "plot/figure.h"
#include "plot/marks.h"
#include "plot/palette.h"
#include "plot/ticks.h"
#include <cairo.h>

typedef struct sl_box {
  double x, y, w, h; /* points (1/72 inch) from the top left corner */
} sl_box;

typedef struct sl_heat_data {
  size_t rows, cols;             /* of the matrix */
  size_t block_rows, block_cols; /* cells that one stored value stands for */
  size_t n_rows, n_cols;         /* of the values stored */
  double *value;                 /* [n_rows][n_cols] largest of each block */
  double lo, hi; /* of the visible data (positive ones if log); lo > hi: none */
  double least, largest; /* of the stored values, whatever they are */
  sl_range asked, range; /* as given; as shown */
  const sl_palette *palette;
  int mask_upper, any_nan, any_below, any_above;
  char *quantity;
  char *lead; /* name of the first column, or NULL */
  size_t first_key;
  sl_marks_data keys, queries;
} sl_heat_data;

typedef struct sl_series_data {
  char *label;
  size_t n;
  double *x, *y, *low, *high; /* y, or low and high, may be NULL */
  int markers, points;
} sl_series_data;

/* The range of an axis: as given, of the data (lo > hi: there are none), and as
** shown. */
typedef struct sl_span {
  sl_range asked, range;
  double lo, hi;
} sl_span;

/* A line plot, or bars: these are series too, whose x axis has a name for each
** group. */
typedef struct sl_axes_data {
  int n;
  sl_series_data *series;
  size_t groups; /* of bars; 0: a line plot */
  sl_span x, y;  /* x of bars: group g is at g */
  sl_marks_data xticks, yticks;
  double aspect;
  size_t left_out; /* points that a logarithmic axis or infinity excludes */
} sl_axes_data;

typedef struct sl_panel {
  const struct sl_panel_kind *kind;
  char *title, *side, *xlabel, *ylabel; /* never NULL */
  union {
    sl_heat_data heat;
    sl_axes_data axes;
  };
} sl_panel;

typedef enum sl_axis { SL_X, SL_Y } sl_axis;

/* How a panel is being drawn. 'coarse' joins that many stored values of a
** heat map into one more, each way (files of noise stay small); 'cells'
** draws heat maps as filled paths instead of images. */
typedef struct sl_render {
  int dpi, vector, coarse, cells;
} sl_render;

typedef struct sl_panel_kind {
  const char *name;
  int has_bar; /* a colour bar belongs to it */
  void (*drop) (sl_panel *p);
  /* Give panels 0 .. count - 1 of the figure one range. */
  int (*share) (sl_figure *f, int count, sl_error *e);
  /* Size of the plot area in pixels: about 'side' the long way, or exactly -side
  ** if side < 0. */
  void (*size) (const sl_panel *p, double side, double *w, double *h);
  void (*ticks) (const sl_panel *p, sl_axis axis, int most, sl_ticks *t);
  /* Where a tick sits: 0..1 from the left or from the top. */
  double (*along) (const sl_panel *p, sl_axis axis, double at);
  /* The sample of series i in the legend; NULL for heat maps. */
  void (*sample) (const sl_panel *p, int i, cairo_t *cr, const sl_box *b);
  void (*draw) (const sl_panel *p, cairo_t *cr, const sl_box *plot,
                const sl_render *r);
  /* Lines of text at most 'columns' wide, each ended by '\n'. */
  void (*text) (const sl_panel *p, const sl_text_style *style, int columns,
                sl_bytes *out);
} sl_panel_kind;

extern const sl_panel_kind sl_heat_kind, sl_lines_kind, sl_bars_kind;

struct sl_figure {
  char *title, *caption; /* never NULL */
  int rows, columns, shared, dpi;
  double size; /* inches, or 0 */
  int n;       /* panels so far */
  sl_panel *panel;
};

/* Copies of text: NULL gives the default; control characters but '\n' become
** spaces. NULL with a sentence on bad UTF-8, over 4000 bytes, no memory. */
char *sl_text_copy (const char *text, const char *def, const char *what,
                    sl_error *e);

/* The kind's own part of sl_figure_heat and its like. 'limit' bounds the stored
** values of a heat map each way. On failure the panel holds what 'drop' can
** free. */
int sl_heat_fill (sl_panel *p, const sl_heat *heat, size_t limit, sl_error *e);
int sl_lines_fill (sl_panel *p, const sl_lines *lines, sl_error *e);
int sl_bars_fill (sl_panel *p, const sl_bars *bars, sl_error *e);

/* The part that line plots and bars share (axes.c): copies of n series and their
** ticks, ranges, the table of functions but for drawing and text. 'groups': of
** bars, 0 for lines. */
int sl_axes_fill (sl_panel *p, const sl_lines *lines, size_t groups,
                  sl_error *e);
void sl_axes_drop (sl_panel *p);
int sl_axes_share (sl_figure *f, int count, sl_error *e);
void sl_axes_size (const sl_panel *p, double side, double *w, double *h);
void sl_axes_ticks (const sl_panel *p, sl_axis axis, int most, sl_ticks *t);
double sl_axes_along (const sl_panel *p, sl_axis axis, double at);
/* Entry i of the legend: "" is left out; NULL behind the last. */
const char *sl_axes_entry (const sl_panel *p, int i);
#define SL_AXES_KIND                                                  \
  .drop = sl_axes_drop, .share = sl_axes_share, .size = sl_axes_size, \
  .ticks = sl_axes_ticks, .along = sl_axes_along
/* -1 and a sentence unless the ends of the range that a panel asks for, if any,
** are those of panel 1. */
int sl_ranges_agree (const sl_range *asked, const sl_range *first,
                     const char *what, int panel, sl_error *e);
int sl_shown (double x, int log); /* finite, and positive if log */
/* Save the state of Cairo and clip to the box. */
void sl_clip (cairo_t *cr, const sl_box *b);
/* From low to high at x, with caps of half that width; all of the page. */
void sl_error_bar (cairo_t *cr, double x, double low, double high, double cap);

/* Heat maps. at: the value shown at a row and column when 'coarse' stored
** values are joined, NaN for none; *masked is 1 for keys after the query.
** colour: of that value. */
double sl_heat_at (const sl_heat_data *h, size_t coarse_rows,
                   size_t coarse_cols, size_t row, size_t col, int *masked);
sl_rgb sl_heat_colour (const sl_heat_data *h, double value, int masked);
/* Ticks of columns, the lead and the keys, and of rows. */
void sl_heat_key_ticks (const sl_heat_data *h, int most, sl_ticks *t);
void sl_heat_query_ticks (const sl_heat_data *h, int most, sl_ticks *t);
/* Paths needed to draw the map as cells. */
size_t sl_heat_runs (const sl_heat_data *h);

/* Text of the kinds (heat_text.c, line_text.c). */
void sl_heat_text (const sl_panel *p, const sl_text_style *style, int columns,
                   sl_bytes *out);
void sl_lines_text (const sl_panel *p, const sl_text_style *style, int columns,
                    sl_bytes *out);

/* Pieces of text (text.c). wrapped: broken at spaces into lines; '?' stands
** for characters that an ASCII terminal lacks. fit: one piece of at most 'columns'
** characters without a line end; returns how many it took. colour: from here
** on; uncolour: as before; neither on terminals without colours. */
enum { SL_FOREGROUND = 38, SL_BACKGROUND = 48 };
void sl_put_spaces (sl_bytes *out, int n);
int sl_text_width (const char *text); /* characters */
void sl_put_wrapped (sl_bytes *out, const sl_text_style *style, int columns,
                     const char *text);
int sl_put_fit (sl_bytes *out, const sl_text_style *style, int columns,
                const char *text);
void sl_put_colour (sl_bytes *out, const sl_text_style *style, int ground,
                    sl_rgb c);
void sl_put_uncolour (sl_bytes *out, const sl_text_style *style);
/* The mark for t of 0..1, darkest at 1, on terminals without colour. */
char sl_ramp (double t);
extern const char sl_ramp_marks[]; /* all of them, lightest first */

/* Notes for the reader on omissions and masks of the figure, as sentences. */
void sl_figure_notes (const sl_figure *f, int coarse, sl_bytes *out);
#endif
