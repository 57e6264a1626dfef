/* check_bars.c - bars, points, tokens, panels that share their axes. */
#include "base/memory.h"
#include "support/figures.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const sl_rgb WHITE = { 255, 255, 255 };
static const char *const abc[] = { "a", "b", "c" };

/* The page's x of group g's bar of series i of n, at its middle. */
static double bar_x (const sl_box *b, int groups, int g, int i, int n) {
  const double between = 0.28;
  return b->x +
         b->w / groups * (g + between / 2 + (1 - between) * (i + 0.5) / n);
}

/* Each bar fills its column from 0 to its value, and nothing above it. */
START_TEST (bars_are_where_they_belong) {
  static const double one[] = { 1, 2, NAN }, two[] = { 3, -1, 2 };
  sl_series s[] = { { .label = "one", .y = one },
                    { .label = "two", .y = two } };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  sl_layout *l;
  const sl_box *b;
  image png;
  add_bars (f, (sl_bars){ .groups = 3,
                          .name = abc,
                          .n = 2,
                          .series = s,
                          .ymin = -2,
                          .ymax = 4 });
  l = sl_layout_new (f, 1, NULL);
  b = &l->place[0].plot;
  png = read_png (f);
  for (int g = 0; g < 3; g++)
    for (int i = 0; i < 2; i++) {
      double y = i ? two[g] : one[g], x = bar_x (b, 3, g, i, 2);
      for (int half = -3; half < 8; half++) {
        double v = half / 2.0 + 0.25;
        int inside = (v > 0 && v < y) || (v < 0 && v > y);
        char where[80];
        snprintf (where, sizeof where, "group %d series %d at %g", g, i, v);
        check_pixel (&png, x, b->y + b->h * (4 - v) / 6,
                     inside ? sl_line_colour (i) : WHITE, where);
      }
    }
  cairo_surface_destroy (png.surface);
  sl_layout_free (l);
  sl_figure_free (f);
}
END_TEST

/* A linear axis without ends of its own holds 0, and ends there if it can. */
START_TEST (axes_of_bars) {
  static const struct {
    double y[3], lo, hi;
    int log;
  } cases[] = {
    { { 1, 2, 3 }, 0, 3.09, 0 },
    { { -1, -2, -3 }, -3.09, 0, 0 },
    { { -1, 0, 1 }, -1.06, 1.06, 0 },
    { { 0, 0, 0 }, 0, 1, 0 },
    { { 0.01, 0.1, 1 }, 0.0087096, 1.14815, 1 },
  };
  for (size_t i = 0; i < LENGTH (cases); i++) {
    sl_series s = { .y = cases[i].y };
    sl_figure *f = new_figure ((sl_figure_spec){ 0 });
    const sl_range *r;
    add_bars (f, (sl_bars){ .groups = 3,
                            .name = abc,
                            .n = 1,
                            .series = &s,
                            .ylog = cases[i].log });
    r = &f->panel[0].axes.y.range;
    CLOSE (r->min, cases[i].lo, 1e-12, 1e-4, "case %zu: low end", i);
    CLOSE (r->max, cases[i].hi, 1e-12, 1e-4, "case %zu: high end", i);
    sl_figure_free (f);
  }
}
END_TEST

START_TEST (points_are_where_they_belong) {
  static const double x[] = { 3, 1, 2 }, y[] = { 1, 3, NAN };
  static const double low[] = { 0.5, 2, 1 }, high[] = { 2, 3.5, 3 };
  sl_series s = { .n = 3, .x = x, .y = y, .points = 1 };
  sl_figure *f = new_figure ((sl_figure_spec){ .columns = 2 });
  sl_layout *l;
  image png;
  for (int bars = 0; bars < 2; bars++) {
    if (bars) s.low = low, s.high = high;
    add_lines (
        f,
        (sl_lines){
            .n = 1, .series = &s, .xmin = 0, .xmax = 4, .ymin = 0, .ymax = 4 });
  }
  l = sl_layout_new (f, 1, NULL);
  png = read_png (f);
  for (int bars = 0; bars < 2; bars++) {
    const sl_box *b = &l->place[bars].plot;
    /* 15 % of white shows through. */
    for (int i = 0; i < 2; i++) {
      sl_rgb c = sl_line_colour (0);
      sl_rgb got =
          pixel_at (&png, b->x + b->w * x[i] / 4, b->y + b->h * (4 - y[i]) / 4);
      if (bars) continue; /* the bar's line is under the mark */
      CLOSE (got.r, 255 - 0.85 * (255 - c.r), 2, 0, "red of point %d", i);
      CLOSE (got.b, 255 - 0.85 * (255 - c.b), 2, 0, "blue of point %d", i);
    }
    check_pixel (&png, b->x + b->w * 2 / 4, b->y + b->h * 2 / 4, WHITE,
                 "no line between points");
  }
  cairo_surface_destroy (png.surface);
  sl_layout_free (l);
  sl_figure_free (f);
}
END_TEST

/* Tokens on both axes: side by side if they fit, upright if not, fewer of them
** if need be, and never on top of each other. */
START_TEST (tokens_on_both_axes) {
  static const struct {
    size_t n;
    const char *token;
    int upright, all;
  } cases[] = { { 3, "ab", 0, 1 },
                { 24, "token", 1, 1 },
                { 24, "a token that is longer than there is room for", 1, 1 },
                { 300, "ten", 1, 0 },
                { 4, "\n", 0, 1 } };
  for (size_t i = 0; i < LENGTH (cases); i++) {
    size_t n = cases[i].n;
    double *a = sl_alloc (n * n, sizeof *a);
    const char **name = sl_alloc (n, sizeof *name);
    sl_figure *f = new_figure ((sl_figure_spec){ .title = "t" });
    sl_layout *l;
    for (size_t k = 0; k < n; k++) name[k] = cases[i].token;
    add_heat (f, (sl_heat){ .rows = n,
                            .cols = n,
                            .data = a,
                            .keys = { n, NULL, name },
                            .queries = { n, NULL, name } });
    l = sl_layout_new (f, 1, NULL);
    ck_assert_msg (l->place[0].upright == cases[i].upright, "case %zu", i);
    if (cases[i].all)
      ck_assert_int_eq (l->place[0].x.n, (int)n);
    else
      ck_assert_int_lt (l->place[0].x.n, (int)n);
    ck_assert_int_ge (l->place[0].x.n, 2);
    check_layout (f, cases[i].token);
    sl_layout_free (l);
    sl_figure_free (f);
    sl_free (a);
    sl_free (name);
  }
}
END_TEST

/* Without the first key, position 2 is the first column: its tick, its mask and
** the sentence that says so. */
START_TEST (first_key_left_out) {
  static const double a[] = { 0, 0, 1, 0, 0.5, 0.5 };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  char *text;
  add_heat (
      f,
      (sl_heat){
          .rows = 3, .cols = 2, .data = a, .first_key = 2, .mask_upper = 1 });
  text = sl_figure_text (f, (sl_text_style){ SL_TEXT_PLAIN, 0, 80 }, NULL);
  ck_assert_msg (strstr (text, "1     \n2 @@  \n3 ++++\n  2 3\n") != NULL, "%s",
                 text);
  ck_assert_msg (strstr (text, "Key 1 is left out. Light grey") != NULL, "%s",
                 text);
  sl_free (text);
  sl_figure_free (f);
}
END_TEST

static sl_figure *shared (int columns) {
  return new_figure ((sl_figure_spec){
      .title = "shared", .rows = 2, .columns = columns, .shared = 1 });
}

/* Panels that share have one range, one legend, labels at the edges. */
START_TEST (shared_axes) {
  static const double y[4][3] = {
    { 1, 2, 3 }, { -1, 0, 1 }, { 5, 5, 5 }, { 2, 9, 2 }
  };
  for (int kind = 0; kind < 2; kind++) {
    sl_figure *f = shared (2);
    sl_layout *l;
    for (int p = 0; p < 4; p++) {
      sl_series s = { .label = "s", .n = 3, .y = y[p] };
      sl_series h = { .label = "s", .y = y[p] };
      if (kind)
        add_bars (f, (sl_bars){ .title = "panel",
                                .side = "row",
                                .xlabel = "x",
                                .ylabel = "y",
                                .groups = 3,
                                .name = abc,
                                .n = 1,
                                .series = &h });
      else
        add_lines (f, (sl_lines){ .title = "panel",
                                  .side = "row",
                                  .xlabel = "x",
                                  .ylabel = "y",
                                  .n = 1,
                                  .series = &s });
    }
    for (int p = 0; p < 4; p++) {
      const sl_range *r = &f->panel[p].axes.y.range;
      CLOSE (r->min, -1.3, 0, 1e-12, "kind %d panel %d: low end", kind, p);
      CLOSE (r->max, 9.3, 0, 1e-12, "kind %d panel %d: high end", kind, p);
    }
    l = sl_layout_new (f, 1, NULL);
    ck_assert_ptr_nonnull (l->legend.panel);
    ck_assert_ptr_null (l->place[0].legend.panel);
    ck_assert (!l->place[0].show_x && l->place[0].show_y);
    ck_assert (l->place[3].show_x && !l->place[3].show_y);
    check_layout (f, kind ? "shared bars" : "shared lines");
    sl_layout_free (l);
    sl_figure_free (f);
  }
}
END_TEST

/* The size asked for is that of the plot the long way; ticks are those asked
** for that lie on the axis, with their names. */
START_TEST (sizes_and_ticks) {
  static const double y[] = { 1, 2, 3, 4, 5, 6 }, at[] = { 1.5, 2, 9 };
  sl_series s = { .n = 3, .y = y };
  sl_series h = { .y = y };
  static const struct {
    double aspect, w, h;
  } cases[] = { { 2, 144, 72 }, { 0.5, 72, 144 }, { 0, 144, 96 } };
  for (size_t i = 0; i < LENGTH (cases); i++) {
    sl_figure *f = new_figure (
        (sl_figure_spec){ .columns = 3, .size = 2, .title = "sizes" });
    sl_layout *l;
    add_lines (f, (sl_lines){ .n = 1,
                              .series = &s,
                              .aspect = cases[i].aspect,
                              .xticks = { 3, at, NULL },
                              .yticks = { 3, at, abc } });
    add_bars (f, (sl_bars){ .groups = 3,
                            .name = abc,
                            .n = 1,
                            .series = &h,
                            .aspect = cases[i].aspect,
                            .yticks = { 3, at, abc } });
    add_heat (f, (sl_heat){ .rows = 3, .cols = 2, .data = y });
    l = sl_layout_new (f, 1, NULL);
    for (int p = 0; p < 2; p++) {
      CLOSE (l->place[p].plot.w, cases[i].w, 0.5, 0, "width, panel %d", p);
      CLOSE (l->place[p].plot.h, cases[i].h, 0.5, 0, "height, panel %d", p);
      ck_assert_int_eq (l->place[p].y.n, 2); /* 9 is off the axis */
      ck_assert_str_eq (l->place[p].y.label[0], "a");
      CLOSE (l->place[p].y.at[1], 2, 0, 0, "second tick");
    }
    ck_assert_int_eq (l->place[0].x.n, 2);
    ck_assert_str_eq (l->place[0].x.label[0], "1.5");
    CLOSE (l->place[2].plot.h, 144, 0.5, 0, "height of the map");
    CLOSE (l->place[2].plot.w, 96, 0.5, 0, "width of the map");
    check_layout (f, "sizes");
    sl_layout_free (l);
    sl_figure_free (f);
  }
}
END_TEST

START_TEST (what_is_refused) {
  static const double y[] = { 1, 2, 3 }, up[] = { 1, 1, 2 };
  sl_series bar = { .label = "s", .y = y }, none = { .label = "s" };
  sl_series half = { .y = y, .low = y };
  sl_series line = { .label = "s", .n = 3, .y = y };
  const struct {
    sl_bars bars;
    const char *says;
  } bad[] = {
    { { .groups = 0, .name = abc, .n = 1, .series = &bar }, "0 groups" },
    { { .groups = 3, .name = abc, .n = 0 }, "bars of 0 series" },
    { { .groups = 3, .name = abc, .n = 1, .series = &none }, "no heights" },
    { { .groups = 3, .name = abc, .n = 1, .series = &half }, "only one edge" },
    { { .groups = 3, .name = abc, .n = 1, .series = &bar, .aspect = 9 },
      "aspect is 9: 0.2 to 5" },
    { { .groups = 3,
        .name = abc,
        .n = 1,
        .series = &bar,
        .ymin = 2,
        .ymax = 1 },
      "the range of y" },
    { { .groups = 3,
        .name = abc,
        .n = 1,
        .series = &bar,
        .yticks = { 3, up, NULL } },
      "y ticks: number 2 is 1; they must be finite and ascend" },
  };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  sl_error e;
  for (size_t i = 0; i < LENGTH (bad); i++) {
    ck_assert_int_eq (sl_figure_bars (f, &bad[i].bars, &e), -1);
    ck_assert_msg (strstr (e.text, bad[i].says) != NULL, "'%s' not in '%s'",
                   bad[i].says, e.text);
    ck_assert_int_eq (f->n, 0);
  }
  ck_assert_int_eq (sl_figure_heat (f,
                                    &(sl_heat){ .rows = 1,
                                                .cols = 3,
                                                .data = y,
                                                .keys = { 2, NULL, abc } },
                                    &e),
                    -1);
  ck_assert_str_eq (e.text, "2 tokens for 3 keys");
  sl_figure_free (f);
  /* What panels must agree on. */
  f = shared (1);
  add_bars (f, (sl_bars){ .groups = 3, .name = abc, .n = 1, .series = &bar });
  ck_assert_int_eq (
      sl_figure_lines (f, &(sl_lines){ .n = 1, .series = &line }, &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "panel 2 is a line plot"));
  bar.label = "t";
  ck_assert_int_eq (
      sl_figure_bars (
          f, &(sl_bars){ .groups = 3, .name = abc, .n = 1, .series = &bar },
          &e),
      -1);
  ck_assert_ptr_nonnull (strstr (e.text, "series 1 of panel 2 is 't'"));
  ck_assert_int_eq (f->n, 1);
  sl_figure_free (f);
}
END_TEST

START_TEST (text_of_bars_and_points) {
  static const double y[] = { 1, 0.5, -0.25 }, x[] = { 0, 1, 2 };
  static const double low[] = { 0.9, 0.4, -0.5 }, high[] = { 1.1, 0.6, 0 };
  sl_series bar = { .label = "s", .y = y, .low = low, .high = high };
  sl_series point = { .label = "dots", .n = 3, .x = x, .y = y, .points = 1 };
  sl_text_style plain = { SL_TEXT_PLAIN, 0, 60 };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  char *text;
  add_bars (f, (sl_bars){ .groups = 3,
                          .name = abc,
                          .n = 1,
                          .series = &bar,
                          .ymin = -1,
                          .ymax = 1 });
  text = sl_figure_text (f, plain, NULL);
  ck_assert_msg (
      strstr (
          text,
          "a s                    ################### 1 (0.9 to 1.1)\n"
          "b s                    ##########          0.5 (0.4 to 0.6)\n") !=
          NULL,
      "%s", text);
  ck_assert_msg (
      strstr (text, "c s               #####                    -0.25") != NULL,
      "%s", text);
  for (int columns = 20; columns < 130; columns += 9)
    for (int utf8 = 0; utf8 < 2; utf8++) {
      sl_text_style style = { SL_TEXT_PLAIN, utf8, columns };
      sl_free (text);
      text = sl_figure_text (f, style, NULL);
      for (const char *line = text; *line; line = strchr (line, '\n') + 1) {
        int width = 0;
        for (const char *c = line; *c != '\n'; c++)
          width += ((unsigned char)*c & 0xc0) != 0x80;
        ck_assert_msg (width <= columns, "%d of %d columns:\n%s", width,
                       columns, text);
      }
    }
  sl_free (text);
  sl_figure_free (f);
  f = new_figure ((sl_figure_spec){ 0 });
  add_lines (f, (sl_lines){ .n = 1,
                            .series = &point,
                            .xmin = 0,
                            .xmax = 2,
                            .ymin = -1,
                            .ymax = 1,
                            .xlabel = "x" });
  text = sl_figure_text (f, plain, NULL);
  ck_assert_msg (strstr (text, " 1 |o\n") != NULL, "%s", text);
  ck_assert_msg (strstr (text, "o dots\nup: -1 to 1\nx\nacross: 0 to 2\n") !=
                     NULL,
                 "%s", text);
  for (int columns = 20; columns < 130; columns += 9) {
    plain.columns = columns, plain.utf8 = columns % 2;
    sl_free (text);
    text = sl_figure_text (f, plain, NULL);
    ck_assert_ptr_nonnull (text);
  }
  sl_free (text);
  sl_figure_free (f);
}
END_TEST

SUITE_MAIN ("bars", bars_are_where_they_belong, axes_of_bars,
            points_are_where_they_belong, tokens_on_both_axes,
            first_key_left_out, shared_axes, sizes_and_ticks, what_is_refused,
            text_of_bars_and_points)
