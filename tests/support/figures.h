/* figures.h - what tests of figures share. */
#ifndef FIGURES_H
#define FIGURES_H
#include "plot/layout.h"

#define LENGTH(a) (sizeof (a) / sizeof *(a))

/* These end the test with core's sentence when core fails. */
sl_figure *new_figure (sl_figure_spec spec);
void add_heat (sl_figure *f, sl_heat heat);
void add_lines (sl_figure *f, sl_lines lines);
void add_bars (sl_figure *f, sl_bars bars);
char *bytes_of (const sl_figure *f, const char *format, size_t *n);

/* A causal matrix whose values are all different (free with free). */
double *causal (size_t n);

/* The figure's PNG, decoded by Cairo: rows of 32-bit 0x00RRGGBB. */
typedef struct image {
  cairo_surface_t *surface;
  const unsigned char *data;
  int stride, width, height;
} image;
image read_png (const sl_figure *f);

/* The pixel at (x, y) points of a figure of SL_DEFAULT_DPI; it has this
** colour. */
sl_rgb pixel_at (const image *i, double x, double y);
void check_pixel (const image *i, double x, double y, sl_rgb want,
                  const char *where);

/* A title that must be wrapped, with a word that cannot be. */
extern const char long_text[];

/* Text lies inside the page, apart from all other text, plots, bars and
** legends. */
void check_layout (const sl_figure *f, const char *what);
#endif
