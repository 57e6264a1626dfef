/* figure.h - figures as data: panels in a grid, saved as PNG, SVG or PDF, or
** printed as text.
**
** A figure is made, given its panels one by one (left to right, then down),
** and then rendered as often as wanted. Everything given is copied. One
** figure gives the same bytes every time. All text is UTF-8; '\n' breaks a
** line of a title or caption, and longer lines are wrapped to the figure's
** width. */
#ifndef SL_FIGURE_H
#define SL_FIGURE_H
#include "base/error.h"
#include <stddef.h>

typedef struct sl_figure sl_figure;

enum { SL_DEFAULT_DPI = 200, SL_MAX_PANELS = 1024 };

typedef struct sl_figure_spec {
  const char *title;   /* above everything; NULL or "": none */
  const char *caption; /* below everything: quantity, sample count */
  int rows, columns;   /* grid of panels; 0 counts as 1 */
  /* Panels of one kind, one range and one colour bar or legend for all; axis
  ** labels and ticks only at the left and at the bottom. */
  int shared;
  int dpi;     /* pixels per inch of PNG: 72..600; 0: 200 */
  double size; /* inches of each panel's plot the long way, 0.3..20; 0: by the
               ** number of panels */
} sl_figure_spec;

/* Names at places of an axis. */
typedef struct sl_marks {
  size_t n;                /* 0: the axis chooses its own numbers */
  const double *at;        /* NULL: 1..n */
  const char *const *name; /* NULL: the places as numbers */
} sl_marks;

/* A matrix as colours: row 1 (the first query) at the top, keys across. NaN is
** drawn grey. With more cells than pixels, each pixel shows the largest of a
** block of cells, and a note below the figure states it. */
typedef struct sl_heat {
  const char *title;           /* of the panel; NULL or "": none */
  const char *side;            /* left of it, read upwards; NULL or "": none */
  const char *xlabel, *ylabel; /* NULL: "key position", "query position" */
  const char *quantity; /* beside the colour bar; NULL: "attention weight" */
  const char *palette;  /* "blues" (NULL) or another of palette.c */
  size_t rows, cols;
  const double *data; /* [rows][cols] */
  /* Range of the colours. Equal (as when zeroed): 0 to 1 if all data lie there,
  ** otherwise the range of the data, which is also taken if 'log'. NaN: that
  ** end from the data. */
  double min, max;
  int log;        /* logarithmic colours: min > 0; values <= 0 count as below */
  int mask_upper; /* do not show keys after the query (column > row) */
  /* The first column is no key position and has this name, of at most 15 bytes;
  ** positions then begin at the second. NULL: all columns are positions. */
  const char *lead;
  size_t first_key;       /* position of the first key column; 0: 1 */
  sl_marks keys, queries; /* tokens instead of positions: as many as the map has
                          ** of them; at is NULL */
} sl_heat;

/* One line of a line plot, points in drawing order; NaN interrupts it. */
typedef struct sl_series {
  const char *label; /* in the legend; NULL or "": not there */
  size_t n;
  const double *x;          /* NULL: 1..n */
  const double *y;          /* NULL only with a band */
  const double *low, *high; /* a band around the line; both or neither */
  int markers;              /* mark each point */
  int points; /* no line: marked points, and an error bar for a band */
} sl_series;

typedef struct sl_lines {
  const char *title, *side, *xlabel, *ylabel; /* NULL or "": none */
  int n;
  const sl_series *series;
  int xlog, ylog; /* points that are not positive are left out and counted in
                  ** the caption */
  double xmin, xmax, ymin, ymax; /* ranges. Equal: a little wider than the data;
                                 ** NaN: that end so */
  double aspect; /* width of the plot over its height, 0.2..5; 0: 1.5 */
  sl_marks xticks, yticks;
} sl_lines;

/* Bars in groups: in group g one bar of each series, as high as its y[g]; NaN: no
** bar. low and high: the ends of error bars. */
typedef struct sl_bars {
  const char *title, *side, *xlabel, *ylabel; /* NULL or "": none */
  size_t groups;
  const char *const *name; /* of each group */
  int n;
  const sl_series *series; /* [groups] numbers each; x is not read */
  int ylog;                /* bars then begin at the low end of the axis */
  double ymin, ymax; /* as in sl_lines, except that a linear axis without ends
                     ** holds 0 */
  double aspect;     /* as in sl_lines */
  sl_marks yticks;
} sl_bars;

/* A figure without panels, or NULL. Fails on a grid larger than
** SL_MAX_PANELS, a dpi out of range and text that is not UTF-8. */
sl_figure *sl_figure_new (const sl_figure_spec *spec, sl_error *e);
void sl_figure_free (sl_figure *f); /* NULL is allowed */

/* Add the next panel. Fails, and leaves the figure as it was, on an empty
** matrix or series, an unknown palette, a range that is empty or not finite,
** or when every place of the grid is taken. */
int sl_figure_heat (sl_figure *f, const sl_heat *heat, sl_error *e);
int sl_figure_lines (sl_figure *f, const sl_lines *lines, sl_error *e);
int sl_figure_bars (sl_figure *f, const sl_bars *bars, sl_error *e);

/* Write the figure to 'path', whole or not at all, in the format of the
** path's extension: .png, .svg or .pdf. Fails on any other extension, a
** figure without panels, a page larger than 32767 pixels, or when the file
** cannot be written. */
int sl_figure_save (const sl_figure *f, const char *path, sl_error *e);

/* 0 if the path's extension names a format, -1 and a sentence otherwise. */
int sl_figure_check_path (const char *path, sl_error *e);

/* The same as bytes (free with sl_free), their number in *n; format is "png",
** "svg" or "pdf". */
char *sl_figure_bytes (const sl_figure *f, const char *format, size_t *n,
                       sl_error *e);

/* How text is drawn: colours of a terminal, and whether it shows UTF-8. */
typedef enum sl_text_colours {
  SL_TEXT_PLAIN,
  SL_TEXT_256,
  SL_TEXT_TRUE
} sl_text_colours;
enum { SL_LEAST_COLUMNS = 20, SL_MOST_COLUMNS = 1000 };
typedef struct sl_text_style {
  sl_text_colours colours;
  int utf8;
  int columns; /* width of the terminal; taken to the nearest of 20..1000 */
} sl_text_style;

/* The style that suits the file descriptor: plain unless it is a terminal, and
** plain when NO_COLOR is set and not empty or TERM is "dumb" or missing; 24-bit
** if COLORTERM is truecolor or 24bit, otherwise 256 colours. UTF-8 if the
** locale's variables name it. Columns from the terminal, then COLUMNS, then 80. */
sl_text_style sl_text_style_for (int fd);

/* The figure as lines of text, each ended by '\n' (free with sl_free): heat
** maps as coloured cells or characters, lines and points on a grid of
** characters (narrow panels of lines as sparklines), bars as bars. NULL on
** failure. */
char *sl_figure_text (const sl_figure *f, sl_text_style style, sl_error *e);
#endif
