/* check_layout.c - no label is clipped, none overlaps. */
#include "support/figures.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- layout ---- */

/* The outermost pixels are white: no text is cut. */
static void check_margin (const sl_figure *f, const char *what) {
  image png = read_png (f);
  for (int y = 0; y < png.height; y++)
    for (int x = 0; x < png.width; x++) {
      unsigned v;
      if (x > 2 && x < png.width - 3 && y > 2 && y < png.height - 3) {
        x = png.width - 4;
        continue;
      }
      memcpy (&v, png.data + y * png.stride + 4 * x, sizeof v);
      ck_assert_msg ((v & 0xffffff) == 0xffffff, "%s: ink at %d, %d", what, x,
                     y);
    }
  cairo_surface_destroy (png.surface);
}

START_TEST (labels_neither_clipped_nor_overlapping) {
  static const struct {
    size_t rows, cols;
    double top; /* largest value */
    const char *text;
  } maps[] = {
    { 1, 1, 1, "t" },
    { 16, 16, 3e-7, "std" },
    { 3, 40, 1, "wide" },
    { 200, 2, -1e7, "tall" },
    { 1, 3000, 1, "a row" },
    { 64, 64, 1e300, "q" },
    { 300, 300, 123456.7, "large" },
    { 5, 5, 1, long_text },
  };
  for (size_t i = 0; i < LENGTH (maps); i++) {
    size_t n = maps[i].rows * maps[i].cols;
    double *a = malloc (n * sizeof *a);
    sl_figure *f = new_figure (
        (sl_figure_spec){ .title = maps[i].text, .caption = long_text });
    for (size_t k = 0; k < n; k++) a[k] = maps[i].top * (double)k / (double)n;
    add_heat (f, (sl_heat){ .title = maps[i].text,
                            .rows = maps[i].rows,
                            .cols = maps[i].cols,
                            .data = a,
                            .side = maps[i].text,
                            .quantity = maps[i].text,
                            .xlabel = maps[i].text,
                            .ylabel = maps[i].text });
    check_layout (f, maps[i].text);
    check_margin (f, maps[i].text);
    sl_figure_free (f);
    free (a);
  }
}
END_TEST

START_TEST (grids_neither_clipped_nor_overlapping) {
  static const struct {
    int rows, columns, panels, shared;
    size_t side;
    const char *title, *side_title;
  } grids[] = {
    { 2, 2, 4, 0, 16, "softmax mean", NULL },
    { 1, 4, 4, 0, 16, "standard deviation of softmax", NULL },
    { 2, 3, 5, 0, 7, "p", "s" },
    { 2, 2, 4, 1, 16, "layer 1 head 1", NULL },
    { 4, 4, 13, 1, 16, "layer 4 head 4", NULL },
    { 12, 12, 144, 1, 40, "head 12", "layer 12" },
    { 1, 1, 1, 1, 4, "layer 1 head 1", NULL },
    { 1, 8, 8, 1, 16, "an_unbreakable_title_of_a_panel", "side" },
    { 24, 1, 24, 1, 5, "layer 24 head 1", "layer" },
  };
  for (size_t i = 0; i < LENGTH (grids); i++) {
    double *a = causal (grids[i].side);
    char what[100];
    sl_figure *f = new_figure (
        (sl_figure_spec){ .rows = grids[i].rows,
                          .columns = grids[i].columns,
                          .title = "Heads",
                          .caption = "mean attention weight, 1000 samples",
                          .shared = grids[i].shared,
                          .dpi = 100 });
    for (int p = 0; p < grids[i].panels; p++)
      add_heat (f, (sl_heat){ .title = grids[i].title,
                              .side = grids[i].side_title,
                              .data = a,
                              .max = 1,
                              .rows = grids[i].side,
                              .cols = grids[i].side });
    snprintf (what, sizeof what, "grid %zu, %d x %d", i, grids[i].rows,
              grids[i].columns);
    check_layout (f, what);
    check_margin (f, what);
    sl_figure_free (f);
    free (a);
  }
}
END_TEST

START_TEST (line_plots_neither_clipped_nor_overlapping) {
  static const struct {
    double scale, offset;
    int xlog, ylog;
    const char *text;
  } plots[] = {
    { 1, 0, 0, 0, "y" },        { 1e-9, 0, 0, 0, "tiny" },
    { 1e12, 0, 0, 1, "loss" },  { 1, 1e6, 1, 1, "near" },
    { 1e-30, 0, 1, 1, "deep" }, { -5, 0, 0, 0, long_text },
  };
  double x[30], y[30];
  sl_series s[12] = { { 0 } };
  for (size_t i = 0; i < LENGTH (plots); i++) {
    sl_figure *f = new_figure (
        (sl_figure_spec){ .title = "t", .columns = 2, .caption = "c" });
    for (int k = 0; k < 30; k++) {
      x[k] = pow (3, k);
      y[k] = plots[i].offset + plots[i].scale * exp (-k);
    }
    for (size_t k = 0; k < LENGTH (s); k++)
      s[k] = (sl_series){
        .label = plots[i].text, .n = 30, .x = x, .y = y, .markers = 1
      };
    for (int p = 0; p < 2; p++)
      add_lines (f, (sl_lines){ .title = plots[i].text,
                                .xlabel = plots[i].text,
                                .ylabel = plots[i].text,
                                .series = s,
                                .n = p ? 2 : (int)LENGTH (s),
                                .xlog = plots[i].xlog,
                                .ylog = plots[i].ylog });
    check_layout (f, plots[i].text);
    check_margin (f, plots[i].text);
    sl_figure_free (f);
  }
}
END_TEST

/* A shared bar covers all panels with one range. */
START_TEST (shared_range) {
  double a[] = { 0, 0.5, 0.25, 2 }, b[] = { -3, 0, 0, 1 };
  sl_figure *f = new_figure ((sl_figure_spec){ .columns = 2, .shared = 1 });
  sl_layout *l;
  sl_error e;
  add_heat (f, (sl_heat){ .rows = 2, .cols = 2, .data = a });
  add_heat (f, (sl_heat){ .rows = 2, .cols = 2, .data = b });
  l = sl_layout_new (f, 1, &e);
  CLOSE (l->bar.heat->range.min, -3, 0, 0, "low end");
  CLOSE (l->bar.heat->range.max, 2, 0, 0, "high end");
  for (int i = 0; i < 2; i++)
    ck_assert_msg (l->place[i].bar.heat == NULL, "panel %d has a bar", i + 1);
  sl_layout_free (l);
  sl_figure_free (f);
}
END_TEST

SUITE_MAIN ("layout", labels_neither_clipped_nor_overlapping,
            grids_neither_clipped_nor_overlapping,
            line_plots_neither_clipped_nor_overlapping, shared_range)
