/* check_plot.c - figures as files and their pixels. */
#include "base/file.h"
#include "base/memory.h"
#include "support/figures.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files ---- */

static unsigned word (const char *p) {
  const unsigned char *u = (const unsigned char *)p;
  return (unsigned)u[0] << 24 | (unsigned)u[1] << 16 | (unsigned)u[2] << 8 |
         u[3];
}

START_TEST (formats_and_sizes) {
  double *a = causal (16);
  sl_figure *f = new_figure ((sl_figure_spec){ .title = "t", .dpi = 100 });
  sl_layout *l;
  size_t n;
  char *b;
  add_heat (f, (sl_heat){ .rows = 16, .cols = 16, .data = a });
  l = sl_layout_new (f, 1, NULL);
  b = bytes_of (f, "png", &n);
  ck_assert_mem_eq (b, "\x89PNG\r\n\x1a\n", 8);
  ck_assert_uint_eq (word (b + 16), (unsigned)lround (l->width / 72 * 100));
  ck_assert_uint_eq (word (b + 20), (unsigned)lround (l->height / 72 * 100));
  /* Resolution: 100 dots per inch are 3937 per metre. */
  ck_assert_mem_eq (b + 37, "pHYs", 4);
  ck_assert_uint_eq (word (b + 41), 3937);
  sl_free (b);
  b = bytes_of (f, "svg", &n);
  ck_assert_ptr_nonnull (strstr (b, "<svg "));
  ck_assert_ptr_nonnull (strstr (b, "</svg>"));
  ck_assert_msg (strstr (b, "<text") == NULL, "SVG text would need a font");
  sl_free (b);
  b = bytes_of (f, "pdf", &n);
  ck_assert_mem_eq (b, "%PDF-", 5);
  ck_assert_ptr_nonnull (memmem (b, n, "%%EOF", 5));
  ck_assert_msg (memmem (b, n, "FontFile", 8) != NULL, "no font is embedded");
  sl_free (b);
  sl_layout_free (l);
  sl_figure_free (f);
  free (a);
}
END_TEST

/* Same bytes again, also after other figures were drawn in between, and in the
** file. */
START_TEST (same_bytes) {
  const char *formats[] = { "png", "svg", "pdf" };
  double *a = causal (40), x[] = { 1, 2, 3 }, y[] = { 1, 4, 2 };
  sl_series s = { .label = "s", .n = 3, .x = x, .y = y, .low = x, .high = y };
  sl_figure *f = new_figure ((sl_figure_spec){ .rows = 1, .columns = 2 });
  sl_figure *g = new_figure ((sl_figure_spec){ .title = "another" });
  add_heat (f, (sl_heat){ .rows = 40, .cols = 40, .data = a });
  add_lines (f, (sl_lines){ .n = 1, .series = &s });
  add_heat (g, (sl_heat){ .rows = 40, .cols = 40, .data = a });
  for (size_t i = 0; i < LENGTH (formats); i++) {
    size_t n, again, in_file, other;
    char path[] = "plot-same.xxx", *first, *second, *third;
    sl_error e;
    first = bytes_of (f, formats[i], &n);
    sl_free (bytes_of (g, formats[i], &other));
    second = bytes_of (f, formats[i], &again);
    ck_assert_uint_eq (n, again);
    ck_assert_msg (!memcmp (first, second, n), "%s: bytes differ", formats[i]);
    memcpy (path + 10, formats[i], 3);
    if (sl_figure_save (f, path, &e)) ck_abort_msg ("%s", e.text);
    third = sl_file_read (path, 0, &in_file, &e);
    ck_assert_uint_eq (n, in_file);
    ck_assert_msg (!memcmp (first, third, n), "%s: file differs", formats[i]);
    unlink (path);
    sl_free (first);
    sl_free (second);
    sl_free (third);
  }
  sl_figure_free (f);
  sl_figure_free (g);
  free (a);
}
END_TEST

/* More images than any fixed table holds: each is still its own. */
START_TEST (same_bytes_of_many_panels) {
  enum { SIDE = 28 };
  sl_figure *f = new_figure ((sl_figure_spec){
      .rows = SIDE, .columns = SIDE, .shared = 1, .dpi = 72 });
  size_t n, again;
  char *first, *second, used[8 * SIDE * SIDE] = { 0 };
  int images = 0;
  for (int i = 0; i < SIDE * SIDE; i++) {
    double x[] = { i, i + 1 };
    add_heat (f, (sl_heat){ .rows = 1, .cols = 2, .data = x, .max = 800 });
  }
  first = bytes_of (f, "svg", &n);
  second = bytes_of (f, "svg", &again);
  ck_assert_uint_eq (n, again);
  ck_assert (!memcmp (first, second, n));
  for (const char *p = first; (p = strstr (p, " id=\"image")) != NULL; p++) {
    int id = atoi (p + 10);
    ck_assert_int_lt (id, 8 * SIDE * SIDE);
    ck_assert_msg (!used[id], "image%d twice", id);
    used[id] = 1;
    images++;
  }
  ck_assert_int_ge (images, SIDE * SIDE);
  sl_free (first);
  sl_free (second);
  sl_figure_free (f);
}
END_TEST

START_TEST (failed_save_leaves_nothing) {
  static const struct {
    const char *path, *says;
  } bad[] = {
    { "plot-x.jpg", "no format 'jpg'" },
    { "plot-x.pgn", "did you mean 'png'" },
    { "plot-x", "needs the extension .png, .svg or .pdf" },
    { "plot.png/x", "needs the extension" },
    { "no-such-folder/x.png", "no-such-folder/x.png" },
  };
  double one = 1;
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  sl_error e;
  size_t n;
  ck_assert_int_eq (sl_figure_save (f, "plot-x.png", &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "no panels"));
  add_heat (f, (sl_heat){ .rows = 1, .cols = 1, .data = &one });
  for (size_t i = 0; i < LENGTH (bad); i++) {
    ck_assert_int_eq (sl_figure_save (f, bad[i].path, &e), -1);
    ck_assert_msg (strstr (e.text, bad[i].says) != NULL, "%s: '%s' not in '%s'",
                   bad[i].path, bad[i].says, e.text);
    ck_assert_msg (!sl_file_exists (bad[i].path), "%s exists", bad[i].path);
  }
  ck_assert_ptr_null (sl_figure_bytes (f, "sgv", &n, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "did you mean 'svg'"));
  sl_figure_free (f);
}
END_TEST

/* Noise is the worst case: it is shown coarser, and says so. */
START_TEST (large_maps_stay_small) {
  const char *formats[] = { "png", "svg", "pdf" };
  size_t side = 2500;
  double *a = malloc (side * side * sizeof *a);
  unsigned state = 1;
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  for (size_t i = 0; i < side * side; i++)
    a[i] = (state = state * 1664525u + 1013904223u) / 4294967296.0;
  add_heat (f, (sl_heat){ .rows = side, .cols = side, .data = a });
  for (size_t i = 0; i < LENGTH (formats); i++) {
    size_t n;
    sl_free (bytes_of (f, formats[i], &n));
    ck_assert_msg (n < 200000, "%s: %zu bytes", formats[i], n);
  }
  sl_figure_free (f);
  free (a);
}
END_TEST

/* ---- pixels ---- */

static unsigned pixel (const image *i, double x, double y, int dpi) {
  int px = (int)floor (x / 72 * dpi), py = (int)floor (y / 72 * dpi);
  const unsigned char *p = i->data + py * i->stride + 4 * px;
  unsigned v;
  memcpy (&v, p, sizeof v);
  return v & 0xffffff;
}

/* Every cell of a map with all values different: queries down, keys across. */
START_TEST (cells_are_where_they_belong) {
  size_t rows = 5, cols = 9;
  double a[45];
  sl_figure *f = new_figure ((sl_figure_spec){ .title = "a title" });
  const sl_palette *blues = sl_palette_find (NULL, NULL);
  sl_layout *l;
  image png;
  for (size_t i = 0; i < 45; i++) a[i] = (double)i / 44;
  a[7] = NAN;
  add_heat (
      f, (sl_heat){ .rows = rows, .cols = cols, .data = a, .mask_upper = 1 });
  l = sl_layout_new (f, 1, NULL);
  png = read_png (f);
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) {
      const sl_box *b = &l->place[0].plot;
      double x = b->x + b->w * ((double)c + 0.5) / (double)cols;
      double y = b->y + b->h * ((double)r + 0.5) / (double)rows;
      char where[40];
      snprintf (where, sizeof where, "row %zu, column %zu", r + 1, c + 1);
      check_pixel (&png, x, y,
                   c > r ? SL_MASKED : sl_palette_at (blues, a[r * cols + c]),
                   where);
    }
  cairo_surface_destroy (png.surface);
  sl_layout_free (l);
  sl_figure_free (f);
  a[7] = 0.5;
  a[20] = NAN;
  f = new_figure ((sl_figure_spec){ 0 });
  add_heat (f, (sl_heat){ .rows = rows, .cols = cols, .data = a });
  l = sl_layout_new (f, 1, NULL);
  png = read_png (f);
  check_pixel (&png, l->place[0].plot.x + l->place[0].plot.w * 2.5 / 9,
               l->place[0].plot.y + l->place[0].plot.h / 2, SL_NO_VALUE, "NaN");
  cairo_surface_destroy (png.surface);
  sl_layout_free (l);
  sl_figure_free (f);
}
END_TEST

/* One large value among many survives the reduction, in its place. */
START_TEST (pooling_keeps_the_largest) {
  size_t side = 2051, row = 1500, col = 700;
  double *a = calloc (side * side, sizeof *a);
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  const sl_palette *blues = sl_palette_find (NULL, NULL);
  sl_layout *l;
  image png;
  const sl_box *b;
  char *text;
  double cells = 3 * 684; /* blocks of 3; the last is not full */
  a[row * side + col] = 1;
  add_heat (f, (sl_heat){ .rows = side, .cols = side, .data = a });
  l = sl_layout_new (f, 1, NULL);
  b = &l->place[0].plot;
  png = read_png (f);
  check_pixel (&png, b->x + b->w * ((double)col + 0.5) / cells,
               b->y + b->h * ((double)row + 0.5) / cells,
               sl_palette_at (blues, 1), "the one");
  check_pixel (&png, b->x + b->w * ((double)row + 0.5) / cells,
               b->y + b->h * ((double)col + 0.5) / cells,
               sl_palette_at (blues, 0), "its mirror image");
  text = sl_figure_text (f, (sl_text_style){ SL_TEXT_PLAIN, 0, 80 }, NULL);
  ck_assert_ptr_nonnull (
      strstr (text, "Each colour is the largest of 3 x 3 cells."));
  sl_free (text);
  cairo_surface_destroy (png.surface);
  sl_layout_free (l);
  sl_figure_free (f);
  free (a);
}
END_TEST

START_TEST (colour_bars) {
  static const struct {
    double min, max, a, b;
    int log, above, below;
    double lo, hi; /* the bar's ends */
  } cases[] = {
    { 0, 0, 0.25, 0.5, 0, 0, 0, 0, 1 },
    { 0, 0, -1, 3, 0, 0, 0, -1, 3 },
    { 0, NAN, 0.1, 0.3, 0, 0, 0, 0, 0.3 },
    { 0, 1, 0.5, 1.5, 0, 1, 0, 0, 1 },
    { 0.5, 1, 0.25, 0.5, 0, 0, 1, 0.5, 1 },
    { 0, NAN, 0, 0, 0, 0, 0, 0, 1 },
    { NAN, NAN, 4, 4, 0, 0, 0, 2, 6 },
    { 0, 0, 1e-6, 1, 1, 0, 0, 1e-6, 1 },
    { 0, 0, 0, 1, 1, 0, 1, 0.5, 2 },
    { 1e-3, 1, 1e-4, 2, 1, 1, 1, 1e-3, 1 },
    { NAN, NAN, 0.25, 0.5, 0, 0, 0, .25, .5 },
  };
  const sl_palette *blues = sl_palette_find (NULL, NULL);
  for (size_t i = 0; i < LENGTH (cases); i++) {
    double data[2] = { cases[i].a, cases[i].b };
    sl_figure *f = new_figure ((sl_figure_spec){ 0 });
    sl_layout *l;
    const sl_bar *bar;
    image png;
    add_heat (f, (sl_heat){ .rows = 2,
                            .cols = 1,
                            .data = data,
                            .min = cases[i].min,
                            .max = cases[i].max,
                            .log = cases[i].log });
    l = sl_layout_new (f, 1, NULL);
    bar = &l->place[0].bar;
    CLOSE (bar->heat->range.min, cases[i].lo, 0, 1e-12, "case %zu: min", i);
    CLOSE (bar->heat->range.max, cases[i].hi, 0, 1e-12, "case %zu: max", i);
    ck_assert_int_eq (bar->above, cases[i].above);
    ck_assert_int_eq (bar->below, cases[i].below);
    png = read_png (f);
    /* Dark at the top, light at the bottom, the ends' colours. */
    for (int end = 0; end < 2; end++) {
      const sl_box *b = &bar->box;
      sl_rgb want = sl_palette_at (blues, end ? 0.99 : 0.01);
      unsigned got = pixel (&png, b->x + b->w / 2,
                            b->y + b->h * (end ? 0.01 : 0.99), SL_DEFAULT_DPI);
      ck_assert_msg (abs ((int)(got >> 16) - want.r) <= 3 &&
                         abs ((int)(got & 255) - want.b) <= 3,
                     "case %zu, end %d: got #%06x, want #%02x%02x%02x", i, end,
                     got, want.r, want.g, want.b);
    }
    cairo_surface_destroy (png.surface);
    sl_layout_free (l);
    sl_figure_free (f);
  }
}
END_TEST

/* The middle of a flat line has its colour; where y is NaN nothing is drawn. */
START_TEST (lines_are_where_they_belong) {
  double y[] = { 2, 2, 2, NAN, NAN, 2, 2 }, z[] = { 1, 1, 1, 1, 1, 1, 1 };
  sl_series s[] = { { .label = "two", .n = 7, .y = y },
                    { .label = "one", .n = 7, .y = z } };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  sl_layout *l;
  const sl_box *b;
  image png;
  add_lines (
      f, (sl_lines){
             .n = 2, .series = s, .xmin = 0, .xmax = 8, .ymin = 0, .ymax = 4 });
  l = sl_layout_new (f, 1, NULL);
  b = &l->place[0].plot;
  png = read_png (f);
  check_pixel (&png, b->x + b->w * 2.5 / 8, b->y + b->h * 2 / 4,
               sl_line_colour (0), "first series");
  check_pixel (&png, b->x + b->w * 4.5 / 8, b->y + b->h * 3 / 4,
               sl_line_colour (1), "second series");
  check_pixel (&png, b->x + b->w * 4.5 / 8, b->y + b->h * 2 / 4,
               (sl_rgb){ 255, 255, 255 }, "the gap");
  check_pixel (&png, l->place[0].legend.first.x + 4,
               l->place[0].legend.first.y + l->place[0].legend.first.h / 2,
               sl_line_colour (0), "legend");
  cairo_surface_destroy (png.surface);
  sl_layout_free (l);
  sl_figure_free (f);
}
END_TEST

/* A peak of one point among 200,000 is still drawn, and the file stays
** small. */
START_TEST (long_series_are_thinned) {
  size_t count = 200000, n;
  double *y = calloc (count, sizeof *y);
  sl_series s = { .n = count, .y = y, .low = y, .high = y };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  sl_layout *l;
  image png;
  const sl_box *b;
  y[123456] = 1;
  add_lines (f, (sl_lines){ .n = 1,
                            .series = &s,
                            .xmin = 0,
                            .xmax = 200000,
                            .ymin = -1,
                            .ymax = 2 });
  l = sl_layout_new (f, 1, NULL);
  b = &l->place[0].plot;
  png = read_png (f);
  check_pixel (&png, b->x + b->w * 123456.5 / 200000, b->y + b->h * 0.5,
               sl_line_colour (0), "peak");
  sl_free (bytes_of (f, "svg", &n));
  ck_assert_msg (n < 200000, "%zu bytes", n);
  cairo_surface_destroy (png.surface);
  sl_layout_free (l);
  sl_figure_free (f);
  free (y);
}
END_TEST

SUITE_MAIN ("plot", formats_and_sizes, same_bytes, same_bytes_of_many_panels,
            failed_save_leaves_nothing, large_maps_stay_small,
            cells_are_where_they_belong, pooling_keeps_the_largest, colour_bars,
            lines_are_where_they_belong, long_series_are_thinned)
