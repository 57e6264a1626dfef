/* palette.h - the colours of heat maps and lines. */
#ifndef SL_PALETTE_H
#define SL_PALETTE_H
#include "base/error.h"

typedef struct sl_rgb {
  unsigned char r, g, b;
} sl_rgb;

/* Equidistant control points; between them colours are linear in sRGB:
** within 3/255 of matplotlib's maps of the same names, cividis within 5. */
typedef struct sl_palette {
  const char *name;
  int n;
  const unsigned *point; /* 0xRRGGBB */
} sl_palette;

/* NULL gives "blues". An unknown name fails with the nearest one. */
const sl_palette *sl_palette_find (const char *name, sl_error *e);

/* The colour at t; t is clamped to 0..1 and must not be NaN. */
sl_rgb sl_palette_at (const sl_palette *p, double t);

/* Cells without a value (NaN), and cells masked because the key comes after the
** query. In no palette above. */
extern const sl_rgb SL_NO_VALUE, SL_MASKED;

/* Colour of line i >= 0: Okabe and Ito's colours for every kind of colour
** vision, again from the first after eight. */
enum { SL_LINE_COLOURS = 8 };
sl_rgb sl_line_colour (int i);

/* The nearest of the 240 fixed colours (16..255) of a 256-colour terminal. */
int sl_terminal_colour (sl_rgb c);
#endif
