/* font.c - the text of figures: its roles, its measure, its drawing. */
#include "plot/font.h"
#include <math.h>
#include <string.h>

static const struct {
  double size, grey;
  cairo_font_weight_t weight;
} role_face[SL_ROLES] = { { 11, 0.0, CAIRO_FONT_WEIGHT_BOLD },
                          { 9, 0.0, CAIRO_FONT_WEIGHT_NORMAL },
                          { 8.5, 0.1, CAIRO_FONT_WEIGHT_NORMAL },
                          { 7.5, 0.1, CAIRO_FONT_WEIGHT_NORMAL },
                          { 8, 0.0, CAIRO_FONT_WEIGHT_NORMAL },
                          { 8, 0.3, CAIRO_FONT_WEIGHT_NORMAL } };

void sl_font_select (cairo_t *cr, sl_role role) {
  double grey = role_face[role].grey;
  cairo_font_options_t *options = cairo_font_options_create ();
  cairo_font_options_set_antialias (options, CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style (options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics (options, CAIRO_HINT_METRICS_OFF);
  cairo_set_font_options (cr, options);
  cairo_font_options_destroy (options);
  /* Where this family is missing, fontconfig gives its default sans. */
  cairo_select_font_face (cr, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                          role_face[role].weight);
  cairo_set_font_size (cr, role_face[role].size);
  cairo_set_source_rgb (cr, grey, grey, grey);
}

int sl_font_open (sl_font *f, sl_error *e) {
  f->surface = cairo_image_surface_create (CAIRO_FORMAT_A8, 1, 1);
  f->cr = cairo_create (f->surface);
  for (int role = 0; role < SL_ROLES; role++) {
    cairo_font_extents_t x;
    sl_font_select (f->cr, (sl_role)role);
    cairo_font_extents (f->cr, &x);
    f->ascent[role] = x.ascent;
    f->height[role] = x.ascent + x.descent;
  }
  if (cairo_status (f->cr) == CAIRO_STATUS_SUCCESS) return 0;
  sl_fail (e, "cannot measure text: %s",
           cairo_status_to_string (cairo_status (f->cr)));
  sl_font_close (f);
  return -1;
}

void sl_font_close (sl_font *f) {
  cairo_destroy (f->cr);
  cairo_surface_destroy (f->surface);
}

double sl_font_width (sl_font *f, sl_role role, const char *text, size_t n) {
  char copy[4097];
  cairo_text_extents_t x;
  if (n > sizeof copy - 1) n = sizeof copy - 1;
  memcpy (copy, text, n);
  copy[n] = 0;
  sl_font_select (f->cr, role);
  cairo_text_extents (f->cr, copy, &x);
  return fmax (x.x_advance, x.x_bearing + x.width);
}
