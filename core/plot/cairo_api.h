/* cairo_api.h - the functions of Cairo that figures use, in a library that is
** loaded with the first figure: its two dozen libraries would more than double
** the time that every start takes.
**
** Include this instead of <cairo.h>. A function that is missing from the two
** lists does not link: add it to both. */
#ifndef SL_CAIRO_API_H
#define SL_CAIRO_API_H
#include "base/error.h"
#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>

/* clang-format off */
#define SL_CAIRO_FUNCTIONS(X) \
  X (cairo_clip) X (cairo_close_path) X (cairo_create) X (cairo_destroy) \
  X (cairo_fill) X (cairo_fill_preserve) X (cairo_font_extents) \
  X (cairo_font_options_create) X (cairo_font_options_destroy) \
  X (cairo_font_options_set_antialias) \
  X (cairo_font_options_set_hint_metrics) \
  X (cairo_font_options_set_hint_style) X (cairo_get_source) \
  X (cairo_image_surface_create) X (cairo_image_surface_get_data) \
  X (cairo_image_surface_get_stride) X (cairo_line_to) X (cairo_move_to) \
  X (cairo_paint) X (cairo_pattern_add_color_stop_rgb) \
  X (cairo_pattern_create_linear) X (cairo_pattern_destroy) \
  X (cairo_pattern_set_filter) X (cairo_pdf_surface_create_for_stream) \
  X (cairo_pdf_surface_set_metadata) X (cairo_rectangle) \
  X (cairo_rel_line_to) X (cairo_restore) X (cairo_rotate) X (cairo_save) \
  X (cairo_scale) X (cairo_select_font_face) X (cairo_set_dash) \
  X (cairo_set_font_options) X (cairo_set_font_size) \
  X (cairo_set_line_join) X (cairo_set_line_width) X (cairo_set_source) \
  X (cairo_set_source_rgb) X (cairo_set_source_rgba) \
  X (cairo_set_source_surface) X (cairo_show_text) X (cairo_status) \
  X (cairo_status_to_string) X (cairo_stroke) X (cairo_surface_destroy) \
  X (cairo_surface_finish) X (cairo_surface_mark_dirty) \
  X (cairo_surface_status) X (cairo_surface_write_to_png_stream) \
  X (cairo_svg_surface_create_for_stream) X (cairo_text_extents) \
  X (cairo_translate)
/* clang-format on */

typedef struct sl_cairo_functions {
#define SL_CAIRO_FIELD(name) __typeof__ (name) *name;
  SL_CAIRO_FUNCTIONS (SL_CAIRO_FIELD)
#undef SL_CAIRO_FIELD
} sl_cairo_functions;

/* Filled by the first sl_cairo_load; main thread. -1 and a sentence if there is
** no Cairo on this machine. */
extern sl_cairo_functions sl_cairo;
int sl_cairo_load (sl_error *e);

/* clang-format off */
#define cairo_clip sl_cairo.cairo_clip
#define cairo_close_path sl_cairo.cairo_close_path
#define cairo_create sl_cairo.cairo_create
#define cairo_destroy sl_cairo.cairo_destroy
#define cairo_fill sl_cairo.cairo_fill
#define cairo_fill_preserve sl_cairo.cairo_fill_preserve
#define cairo_font_extents sl_cairo.cairo_font_extents
#define cairo_font_options_create sl_cairo.cairo_font_options_create
#define cairo_font_options_destroy sl_cairo.cairo_font_options_destroy
#define cairo_font_options_set_antialias sl_cairo.cairo_font_options_set_antialias
#define cairo_font_options_set_hint_metrics sl_cairo.cairo_font_options_set_hint_metrics
#define cairo_font_options_set_hint_style sl_cairo.cairo_font_options_set_hint_style
#define cairo_get_source sl_cairo.cairo_get_source
#define cairo_image_surface_create sl_cairo.cairo_image_surface_create
#define cairo_image_surface_get_data sl_cairo.cairo_image_surface_get_data
#define cairo_image_surface_get_stride sl_cairo.cairo_image_surface_get_stride
#define cairo_line_to sl_cairo.cairo_line_to
#define cairo_move_to sl_cairo.cairo_move_to
#define cairo_paint sl_cairo.cairo_paint
#define cairo_pattern_add_color_stop_rgb sl_cairo.cairo_pattern_add_color_stop_rgb
#define cairo_pattern_create_linear sl_cairo.cairo_pattern_create_linear
#define cairo_pattern_destroy sl_cairo.cairo_pattern_destroy
#define cairo_pattern_set_filter sl_cairo.cairo_pattern_set_filter
#define cairo_pdf_surface_create_for_stream sl_cairo.cairo_pdf_surface_create_for_stream
#define cairo_pdf_surface_set_metadata sl_cairo.cairo_pdf_surface_set_metadata
#define cairo_rectangle sl_cairo.cairo_rectangle
#define cairo_rel_line_to sl_cairo.cairo_rel_line_to
#define cairo_restore sl_cairo.cairo_restore
#define cairo_rotate sl_cairo.cairo_rotate
#define cairo_save sl_cairo.cairo_save
#define cairo_scale sl_cairo.cairo_scale
#define cairo_select_font_face sl_cairo.cairo_select_font_face
#define cairo_set_dash sl_cairo.cairo_set_dash
#define cairo_set_font_options sl_cairo.cairo_set_font_options
#define cairo_set_font_size sl_cairo.cairo_set_font_size
#define cairo_set_line_join sl_cairo.cairo_set_line_join
#define cairo_set_line_width sl_cairo.cairo_set_line_width
#define cairo_set_source sl_cairo.cairo_set_source
#define cairo_set_source_rgb sl_cairo.cairo_set_source_rgb
#define cairo_set_source_rgba sl_cairo.cairo_set_source_rgba
#define cairo_set_source_surface sl_cairo.cairo_set_source_surface
#define cairo_show_text sl_cairo.cairo_show_text
#define cairo_status sl_cairo.cairo_status
#define cairo_status_to_string sl_cairo.cairo_status_to_string
#define cairo_stroke sl_cairo.cairo_stroke
#define cairo_surface_destroy sl_cairo.cairo_surface_destroy
#define cairo_surface_finish sl_cairo.cairo_surface_finish
#define cairo_surface_mark_dirty sl_cairo.cairo_surface_mark_dirty
#define cairo_surface_status sl_cairo.cairo_surface_status
#define cairo_surface_write_to_png_stream sl_cairo.cairo_surface_write_to_png_stream
#define cairo_svg_surface_create_for_stream sl_cairo.cairo_svg_surface_create_for_stream
#define cairo_text_extents sl_cairo.cairo_text_extents
#define cairo_translate sl_cairo.cairo_translate
/* clang-format on */
#endif
