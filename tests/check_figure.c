/* check_figure.c - wrong figures, odd numbers, no memory. */
#include "base/memory_test.h"
#include "support/figures.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors, limits, memory ---- */

static void check_fails (int status, const sl_error *e, const char *says) {
  ck_assert_int_eq (status, -1);
  ck_assert_msg (strstr (e->text, says) != NULL, "'%s' not in '%s'", says,
                 e->text);
}

START_TEST (bad_heat_maps) {
  double one[] = { 1, 2, 3, 4 }, huge[] = { -1.7e308, 1.7e308 };
  static const char bad_text[] = { 'a', (char)0xc3, '(', 0 };
  char *longest = malloc (5000);
  sl_error e;
  memset (longest, 'x', 4999);
  longest[4999] = 0;
  const struct {
    sl_heat heat;
    const char *says;
  } bad[] = {
    { { .rows = 0, .cols = 2, .data = one }, "0 x 2 cells" },
    { { .rows = 2, .cols = 2 }, "2 x 2 cells" },
    { { .rows = 2, .cols = 2, .data = one, .palette = "bluse" },
      "did you mean 'blues'" },
    { { .rows = 2, .cols = 2, .data = one, .palette = "zzzzzzzz" },
      "(there are blues, viridis, cividis, magma, greys, rdbu)" },
    { { .rows = 2, .cols = 2, .data = one, .min = 2, .max = 1 }, "is empty" },
    { { .rows = 2, .cols = 2, .data = one, .min = NAN, .max = INFINITY },
      "not finite" },
    { { .rows = 1, .cols = 2, .data = huge }, "not finite" },
    { { .rows = 2, .cols = 2, .data = one, .min = -1, .max = 1, .log = 1 },
      "above 0" },
    { { .rows = 2, .cols = 2, .data = one, .title = bad_text },
      "not UTF-8 text: byte 2 is 0xc3" },
    { { .rows = 2, .cols = 2, .data = one, .quantity = bad_text },
      "the quantity is not UTF-8" },
    { { .rows = 2, .cols = 2, .data = one, .title = longest }, "4999 bytes" },
  };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  for (size_t i = 0; i < LENGTH (bad); i++) {
    check_fails (sl_figure_heat (f, &bad[i].heat, &e), &e, bad[i].says);
    ck_assert_int_eq (f->n, 0);
  }
  add_heat (f, (sl_heat){ .rows = 2, .cols = 2, .data = one });
  check_fails (
      sl_figure_heat (f, &(sl_heat){ .rows = 2, .cols = 2, .data = one }, &e),
      &e, "all 1 x 1 panels");
  sl_figure_free (f);
  f = new_figure ((sl_figure_spec){ .columns = 3, .shared = 1 });
  add_heat (f, (sl_heat){ .rows = 2, .cols = 2, .data = one });
  check_fails (
      sl_figure_heat (
          f,
          &(sl_heat){ .rows = 2, .cols = 2, .data = one, .palette = "viridis" },
          &e),
      &e, "panel 2 shows 'attention weight' in viridis");
  check_fails (sl_figure_lines (f,
                                &(sl_lines){
                                    .n = 1,
                                    .series = &(sl_series){ .n = 4, .y = one },
                                },
                                &e),
               &e, "panel 2 is a line plot, but panel 1 is a heat map");
  sl_figure_free (f);
  free (longest);
}
END_TEST

/* Panels that share a range may not ask for different ones. */
START_TEST (shared_ranges_that_differ) {
  static const char *const groups[] = { "a", "b" };
  static const double y[] = { 1, 2, 3, 4 };
  const sl_series line = { .n = 4, .y = y };
  const sl_series bar = { .y = y };
  sl_heat heat = { .rows = 2, .cols = 2, .data = y, .min = 0, .max = 4 };
  sl_lines lines = { .n = 1, .series = &line, .xmin = NAN, .xmax = 9 };
  sl_bars bars = { .n = 1, .series = &bar, .groups = 2, .name = groups };
  sl_error e;
  sl_figure *f = new_figure ((sl_figure_spec){ .columns = 3, .shared = 1 });
  add_heat (f, heat);
  heat.max = 8;
  check_fails (sl_figure_heat (f, &heat, &e), &e,
               "panel 2 asks for the colours from 0 to 8, but panel 1 from 0 "
               "to 4: panels that share it must agree");
  heat.log = 1, heat.min = 1;
  check_fails (sl_figure_heat (f, &heat, &e), &e,
               "panel 2 has a logarithmic scale of the colours, but panel 1 a "
               "linear one");
  heat.log = 0, heat.min = heat.max = NAN;
  add_heat (f, heat);
  ck_assert_double_eq (f->panel[1].heat.range.max, 4);
  sl_figure_free (f);
  f = new_figure ((sl_figure_spec){ .columns = 3, .shared = 1 });
  add_lines (f, lines);
  lines.xmax = 10;
  check_fails (sl_figure_lines (f, &lines, &e), &e,
               "panel 2 asks for x from data to 10, but panel 1 from data to "
               "9");
  lines.xmin = lines.xmax = 0;
  add_lines (f, lines);
  sl_figure_free (f);
  f = new_figure ((sl_figure_spec){ .columns = 3, .shared = 1 });
  add_bars (f, bars);
  bars.ymin = 0, bars.ymax = 5;
  check_fails (sl_figure_bars (f, &bars, &e), &e,
               "panel 2 asks for y from 0 to 5, but panel 1 from data to data");
  sl_figure_free (f);
}
END_TEST

START_TEST (bad_lines_and_figures) {
  double y[] = { 1, 2 };
  sl_series none = { .n = 0, .y = y }, no_y = { .n = 2 };
  sl_series half = { .n = 2, .y = y, .low = y }, good = { .n = 2, .y = y };
  const struct {
    sl_lines lines;
    const char *says;
  } bad[] = {
    { { .n = 0 }, "0 series" },
    { { .n = 1, .series = &none }, "series 1 of the line plot has no points" },
    { { .n = 1, .series = &no_y }, "neither y nor a band" },
    { { .n = 1, .series = &half }, "only one edge of its band, 'low'" },
    { { .n = 1, .series = &good, .xmin = 3, .xmax = 1 }, "the range of x" },
    { { .n = 1, .series = &good, .ylog = 1, .ymin = 0, .ymax = 1 }, "above 0" },
  };
  const struct {
    sl_figure_spec spec;
    const char *says;
  } specs[] = {
    { { .rows = -1 }, "-1 x 1 panels" },
    { { .rows = 100, .columns = 100 }, "100 x 100 panels" },
    { { .rows = 0x7fffffff, .columns = 0x7fffffff }, "panels" },
    { { .dpi = 601 }, "dpi is 601" },
    { { .title = "\xff" }, "title is not UTF-8" },
    { { .size = 0.1 }, "size is 0.1: 0.3 to 20 inches" },
    { { .size = NAN }, "size is nan" },
    { { .caption = "\xed\xa0\x80" }, "caption is not UTF-8" },
  };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  sl_error e;
  for (size_t i = 0; i < LENGTH (bad); i++)
    check_fails (sl_figure_lines (f, &bad[i].lines, &e), &e, bad[i].says);
  sl_figure_free (f);
  for (size_t i = 0; i < LENGTH (specs); i++)
    check_fails (sl_figure_new (&specs[i].spec, &e) ? 0 : -1, &e,
                 specs[i].says);
}
END_TEST

/* Hostile numbers give a figure, not a fault. */
START_TEST (odd_numbers) {
  static const double sets[][4] = {
    { NAN, NAN, NAN, NAN },        { INFINITY, -INFINITY, 0, 1 },
    { 5e-324, 5e-324, 0, 5e-324 }, { 1e-300, 1e-299, 0, 0 },
    { 8e307, -8e307, 0, 1 },       { 1, 1 + 2e-16, 1, 1 }
  };
  for (size_t i = 0; i < LENGTH (sets); i++)
    for (int log = 0; log < 2; log++) {
      sl_figure *f = new_figure (
          (sl_figure_spec){ .columns = 4, .title = "\033[31m\tcontrol" });
      sl_series s = { .n = 4, .y = sets[i], .markers = 1 };
      sl_series points = {
        .n = 4, .y = sets[i], .points = 1, .low = sets[i], .high = sets[i]
      };
      static const char *const name[] = { "", "\n", "\033[31m", "é" };
      sl_series high = {
        .label = "s", .y = sets[i], .low = sets[i], .high = sets[i]
      };
      char *text;
      size_t n;
      add_heat (f,
                (sl_heat){ .rows = 2, .cols = 2, .data = sets[i], .log = log });
      add_lines (f, (sl_lines){ .n = 1, .series = &s, .ylog = log });
      add_lines (f, (sl_lines){ .n = 1, .series = &points, .ylog = log });
      add_bars (f, (sl_bars){ .groups = 4,
                              .name = name,
                              .n = 1,
                              .series = &high,
                              .ylog = log });
      sl_free (bytes_of (f, "png", &n));
      sl_free (bytes_of (f, "svg", &n));
      check_layout (f, "odd numbers");
      text = sl_figure_text (f, (sl_text_style){ SL_TEXT_PLAIN, 0, 80 }, NULL);
      ck_assert_msg (!strchr (text, '\033') && !strchr (text, '\t'), "%s",
                     text);
      sl_free (text);
      sl_figure_free (f);
    }
}
END_TEST

/* Every allocation fails once: a sentence each time, and nothing is kept. */
START_TEST (memory_runs_out) {
  double a[] = { 1, 2, 3, 4 };
  sl_series s = { .label = "s", .n = 4, .y = a, .low = a, .high = a };
  size_t live = sl_alloc_live ();
  long limit = 0;
  int done = 0;
  for (; !done; limit++) {
    sl_figure_spec spec = { .title = "t", .caption = "c", .columns = 3 };
    static const char *const name[] = { "a", "line\nbreak" };
    sl_marks two = { 2, NULL, name };
    sl_heat heat = {
      .rows = 2, .cols = 2, .data = a, .keys = two, .queries = two
    };
    sl_lines lines = { .n = 1, .series = &s, .xticks = two };
    sl_series high = { .label = "s", .y = a, .low = a, .high = a };
    sl_bars bars = { .groups = 2, .name = name, .n = 1, .series = &high };
    char *b = NULL, *text = NULL;
    size_t n;
    sl_error e = { "" };
    sl_figure *f;
    sl_alloc_fail_after (limit);
    f = sl_figure_new (&spec, &e);
    if (f && !sl_figure_heat (f, &heat, &e) &&
        !sl_figure_lines (f, &lines, &e) && !sl_figure_bars (f, &bars, &e) &&
        (b = sl_figure_bytes (f, "svg", &n, &e)) &&
        (text = sl_figure_text (f, (sl_text_style){ 0, 0, 80 }, &e)))
      done = 1;
    sl_alloc_fail_after (-1);
    if (!done) {
      ck_assert_msg (e.text[0] != 0, "limit %ld: no sentence", limit);
    }
    sl_free (b);
    sl_free (text);
    sl_figure_free (f);
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  ck_assert_int_gt (limit, 20);
}
END_TEST

SUITE_MAIN ("figure", bad_heat_maps, shared_ranges_that_differ,
            bad_lines_and_figures, odd_numbers, memory_runs_out)
