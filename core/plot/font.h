/* font.h - the text of figures: its roles, its measure, its drawing. */
#ifndef SL_FONT_H
#define SL_FONT_H
#include "base/error.h"
#include <cairo.h>
#include <stddef.h>

typedef enum sl_role {
  SL_TITLE,       /* of the figure */
  SL_PANEL_TITLE, /* of a panel */
  SL_AXIS_LABEL,  /* of an axis or a colour bar */
  SL_TICK_LABEL,
  SL_LEGEND,
  SL_CAPTION,
  SL_ROLES
} sl_role;

/* Sizes do not depend on the output: no hinting, metrics that scale. */
typedef struct sl_font {
  cairo_surface_t *surface;
  cairo_t *cr;
  double ascent[SL_ROLES], height[SL_ROLES]; /* points */
} sl_font;

int sl_font_open (sl_font *f, sl_error *e);
void sl_font_close (sl_font *f);

/* Width in points of the first n bytes of text: the larger of advance and
** ink. */
double sl_font_width (sl_font *f, sl_role role, const char *text, size_t n);

/* Choose the role's face and colour. */
void sl_font_select (cairo_t *cr, sl_role role);
#endif
