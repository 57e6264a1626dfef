/* figures.c - what tests of figures share. */
#include "support/figures.h"
#include "base/memory.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char long_text[] =
    "A title that is a good deal longer than the figure below it is wide, so "
    "that "
    "it has to be wrapped; "
    "and_one_word_that_is_longer_than_the_whole_figure_and_"
    "cannot_be_wrapped_at_all_wherever_one_tries";

sl_figure *new_figure (sl_figure_spec spec) {
  sl_error e;
  sl_figure *f = sl_figure_new (&spec, &e);
  if (!f) ck_abort_msg ("%s", e.text);
  return f;
}

void add_heat (sl_figure *f, sl_heat heat) {
  sl_error e;
  if (sl_figure_heat (f, &heat, &e)) ck_abort_msg ("%s", e.text);
}

void add_lines (sl_figure *f, sl_lines lines) {
  sl_error e;
  if (sl_figure_lines (f, &lines, &e)) ck_abort_msg ("%s", e.text);
}

void add_bars (sl_figure *f, sl_bars bars) {
  sl_error e;
  if (sl_figure_bars (f, &bars, &e)) ck_abort_msg ("%s", e.text);
}

char *bytes_of (const sl_figure *f, const char *format, size_t *n) {
  sl_error e;
  char *b = sl_figure_bytes (f, format, n, &e);
  if (!b) ck_abort_msg ("%s", e.text);
  return b;
}

double *causal (size_t n) {
  double *a = calloc (n * n, sizeof *a);
  for (size_t r = 0; r < n; r++)
    for (size_t c = 0; c <= r; c++)
      a[r * n + c] = (double)(1 + r * n + c) / (double)(n * n);
  return a;
}

typedef struct source {
  const char *data;
  size_t n, at;
} source;

static cairo_status_t give (void *from, unsigned char *to, unsigned n) {
  source *s = from;
  if (s->n - s->at < n) return CAIRO_STATUS_READ_ERROR;
  memcpy (to, s->data + s->at, n);
  s->at += n;
  return CAIRO_STATUS_SUCCESS;
}

image read_png (const sl_figure *f) {
  source s = { 0 };
  image i;
  char *b = bytes_of (f, "png", &s.n);
  s.data = b;
  i.surface = cairo_image_surface_create_from_png_stream (give, &s);
  sl_free (b);
  ck_assert_int_eq (cairo_surface_status (i.surface), CAIRO_STATUS_SUCCESS);
  i.data = cairo_image_surface_get_data (i.surface);
  i.stride = cairo_image_surface_get_stride (i.surface);
  i.width = cairo_image_surface_get_width (i.surface);
  i.height = cairo_image_surface_get_height (i.surface);
  return i;
}

sl_rgb pixel_at (const image *i, double x, double y) {
  int px = (int)floor (x / 72 * SL_DEFAULT_DPI);
  int py = (int)floor (y / 72 * SL_DEFAULT_DPI);
  unsigned v;
  memcpy (&v, i->data + py * i->stride + 4 * px, sizeof v);
  return (sl_rgb){ (unsigned char)(v >> 16), (unsigned char)(v >> 8),
                   (unsigned char)v };
}

void check_pixel (const image *i, double x, double y, sl_rgb want,
                  const char *where) {
  sl_rgb got = pixel_at (i, x, y);
  ck_assert_msg (got.r == want.r && got.g == want.g && got.b == want.b,
                 "%s: got #%02x%02x%02x, want #%02x%02x%02x", where, got.r,
                 got.g, got.b, want.r, want.g, want.b);
}

static const char *what_overlaps; /* for messages */

static int apart (const sl_box *a, const sl_box *b) {
  const double touch = 0.05;
  return a->x + a->w <= b->x + touch || b->x + b->w <= a->x + touch ||
         a->y + a->h <= b->y + touch || b->y + b->h <= a->y + touch;
}

static void check_box (const sl_layout *l, const sl_box *box,
                       const char *text) {
  ck_assert_msg (box->x >= 0 && box->y >= 0 && box->x + box->w <= l->width &&
                     box->y + box->h <= l->height,
                 "%s: '%s' at %g, %g, size %g x %g, leaves the page of %g x %g",
                 what_overlaps, text, box->x, box->y, box->w, box->h, l->width,
                 l->height);
  for (size_t i = 0; i < l->n_labels; i++)
    if (l->label[i].text != text)
      ck_assert_msg (apart (box, &l->label[i].box), "%s: '%s' overlaps '%s'",
                     what_overlaps, text, l->label[i].text);
}

void check_layout (const sl_figure *f, const char *what) {
  sl_error e;
  sl_layout *l = sl_layout_new (f, 1, &e);
  what_overlaps = what;
  if (!l) ck_abort_msg ("%s: %s", what, e.text);
  for (size_t i = 0; i < l->n_labels; i++)
    check_box (l, &l->label[i].box, l->label[i].text);
  for (int i = 0; i < f->n; i++) {
    sl_box bar = l->place[i].bar.box, legend = l->place[i].legend.first;
    check_box (l, &l->place[i].plot, "(plot)");
    check_box (l, &bar, "(colour bar)");
    if (legend.w > 0) check_box (l, &legend, "(legend)");
    for (int k = 0; k < i; k++)
      ck_assert_msg (apart (&l->place[i].plot, &l->place[k].plot) &&
                         apart (&l->place[i].plot, &l->place[k].bar.box),
                     "%s: panels %d and %d overlap", what, k + 1, i + 1);
  }
  check_box (l, &l->bar.box, "(shared bar)");
  if (l->legend.panel) check_box (l, &l->legend.first, "(shared legend)");
  sl_layout_free (l);
}
