/* check_plot_text.c - figures as text. */
#include "base/memory.h"
#include "support/figures.h"
#include "support/suite.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- text ---- */

START_TEST (text_of_a_small_map) {
  double a[] = { 1, 0, 0, 0.5, NAN, 0, 0.75, 0.125, 0.125 };
  sl_figure *f = new_figure (
      (sl_figure_spec){ .title = "softmax", .caption = "10 samples" });
  char *text;
  add_heat (f, (sl_heat){ .rows = 3, .cols = 3, .data = a, .mask_upper = 1 });
  text = sl_figure_text (f, (sl_text_style){ SL_TEXT_PLAIN, 0, 80 }, NULL);
  ck_assert_str_eq (text,
                    "softmax\n"
                    "query position\n"
                    "1 @@    \n"
                    "2 ++??  \n"
                    "3 ##::::\n"
                    "  1   3\n"
                    "key position\n"
                    "attention weight\n"
                    "0 .:-=+*#%@ 1\n"
                    "10 samples\n"
                    "Grey: no value. Light grey: keys after the query.\n");
  sl_free (text);
  text = sl_figure_text (f, (sl_text_style){ SL_TEXT_TRUE, 1, 80 }, NULL);
  ck_assert_ptr_nonnull (strstr (text, "1 \033[48;2;8;48;107m  "));
  ck_assert_ptr_nonnull (strstr (text, "\033[0m\n"));
  sl_free (text);
  text = sl_figure_text (f, (sl_text_style){ SL_TEXT_256, 1, 80 }, NULL);
  ck_assert_ptr_nonnull (strstr (text, "\033[48;5;"));
  ck_assert_ptr_null (strstr (text, ";2;"));
  sl_free (text);
  sl_figure_free (f);
}
END_TEST

/* Numbers that leave a sparkline no room beside it go below it. */
START_TEST (sparklines_beside_long_numbers) {
  static double y[1000];
  sl_series s = { .n = LENGTH (y), .y = y };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  char *text;
  for (size_t i = 0; i < LENGTH (y); i++) y[i] = -1.23e-10 - 1e-13 * (double)i;
  add_lines (f, (sl_lines){ .n = 1, .series = &s });
  text = sl_figure_text (f, (sl_text_style){ SL_TEXT_PLAIN, 0, 20 }, NULL);
  ck_assert_ptr_nonnull (strstr (text, "\n-1.23e-10 to -2.23e-10\n"));
  ck_assert_uint_eq (strcspn (text, "\n"), 20);
  sl_free (text);
  sl_figure_free (f);
}
END_TEST

/* No line is wider than asked for, whatever the figure. */
START_TEST (text_fits_the_terminal) {
  static const int widths[] = { 20, 33, 80, 132 };
  double *a = causal (200), y[] = { 1, 2, 3 };
  sl_series s = { .label = long_text, .n = 3, .y = y };
  sl_figure *f = new_figure ((sl_figure_spec){
      .rows = 2, .columns = 3, .title = long_text, .caption = "ünïcödé" });
  for (int i = 0; i < 5; i++)
    add_heat (f, (sl_heat){ .title = "layer 1 head 1",
                            .rows = 200,
                            .cols = 200,
                            .data = a });
  add_lines (f, (sl_lines){ .n = 1, .series = &s, .xlabel = long_text });
  for (size_t i = 0; i < LENGTH (widths); i++)
    for (int colours = SL_TEXT_PLAIN; colours <= SL_TEXT_TRUE; colours++) {
      sl_text_style style = { (sl_text_colours)colours, (int)i % 2, widths[i] };
      char *text = sl_figure_text (f, style, NULL), *p = text;
      int width = 0, cells = 0;
      for (; *p; p++) {
        if (*p == '\n') {
          ck_assert_msg (width <= widths[i], "%d columns of %d: %.200s", width,
                         widths[i], text);
          width = 0;
        } else if (*p == '\033') {
          ck_assert_int_ne (colours, SL_TEXT_PLAIN);
          p = strchr (p, 'm');
        } else {
          width += ((unsigned char)*p & 0xc0) != 0x80;
          cells++;
          if (!style.utf8) ck_assert_int_lt ((unsigned char)*p, 128);
        }
      }
      ck_assert_int_gt (cells, 200);
      sl_free (text);
    }
  sl_figure_free (f);
  free (a);
}
END_TEST

START_TEST (text_of_lines) {
  double y[] = { 1, 0.1, 0.01, 0.001 };
  sl_series s = { .label = "loss", .n = 4, .y = y };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  char *text;
  add_lines (f,
             (sl_lines){ .n = 1, .series = &s, .ylog = 1, .xlabel = "step" });
  text = sl_figure_text (f, (sl_text_style){ SL_TEXT_PLAIN, 1, 40 }, NULL);
  ck_assert_msg (strstr (text, "loss\n█▆▃▁  1 to 0.001\n") != NULL, "%s", text);
  ck_assert_msg (strstr (text, "step\nacross: 1 to 4\n") != NULL, "%s", text);
  sl_free (text);
  sl_figure_free (f);
}
END_TEST

/* Where there is room, lines are drawn: in dots if one colour is enough or
** there are colours, else in a mark for each series. */
START_TEST (lines_on_a_canvas) {
  static const double x[] = { 0, 1 }, up[] = { 0, 1 }, down[] = { 1, 0 };
  sl_series s[] = { { .label = "up", .n = 2, .x = x, .y = up },
                    { .label = "down", .n = 2, .x = x, .y = down } };
  static const struct {
    sl_text_colours colours;
    int utf8, n;
    const char *corner, *none;
  } cases[] = {
    { SL_TEXT_PLAIN, 1, 1, "1 │", "●\n" },
    { SL_TEXT_PLAIN, 1, 2, "1 │■", "⠁" },
    { SL_TEXT_PLAIN, 0, 2, "1 |x", "⠁" },
    { SL_TEXT_256, 1, 2, "1 │\033[38;5;", "■■" },
  };
  for (size_t i = 0; i < LENGTH (cases); i++) {
    sl_figure *f = new_figure ((sl_figure_spec){ 0 });
    sl_text_style style = { cases[i].colours, cases[i].utf8, 60 };
    char *text;
    const char *p;
    int rows = 0;
    add_lines (f, (sl_lines){ .n = cases[i].n,
                              .series = s,
                              .xmin = 0,
                              .xmax = 1,
                              .ymin = 0,
                              .ymax = 1 });
    text = sl_figure_text (f, style, NULL);
    ck_assert_msg (strstr (text, cases[i].corner) != NULL, "case %zu:\n%s", i,
                   text);
    ck_assert_msg (strstr (text, cases[i].none) == NULL, "case %zu:\n%s", i,
                   text);
    for (p = text; (p = strstr (p, cases[i].utf8 ? "│" : "|")) != NULL; p++)
      rows++;
    ck_assert_int_eq (rows, 15);
    ck_assert_msg (strstr (text, "up  0 to 1\n") != NULL, "case %zu:\n%s", i,
                   text);
    sl_free (text);
    sl_figure_free (f);
  }
}
END_TEST

/* Points far outside, or hostile, neither hang nor leave the canvas. */
START_TEST (lines_out_of_range) {
  static const double x[] = { -1e300, 1e300, 0.5, NAN, INFINITY, 1 };
  static const double y[] = { 1e300, -1e300, 0.5, 1, -INFINITY, 1e-300 };
  sl_series s = { .n = 6, .x = x, .y = y };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  char *text;
  add_lines (
      f,
      (sl_lines){
          .n = 1, .series = &s, .xmin = 0, .xmax = 1, .ymin = 0, .ymax = 1 });
  text = sl_figure_text (f, (sl_text_style){ SL_TEXT_PLAIN, 1, 80 }, NULL);
  ck_assert_ptr_nonnull (strstr (text, "across"));
  sl_free (text);
  sl_figure_free (f);
}
END_TEST

/* Points that a logarithmic axis cannot show are counted. */
START_TEST (left_out_points_are_counted) {
  double x[] = { 0, 1, 2, 3, 4 }, y[] = { 1, 0, 2, INFINITY, NAN };
  sl_series s = { .label = "s", .n = 5, .x = x, .y = y };
  sl_figure *f = new_figure ((sl_figure_spec){ 0 });
  char *text;
  add_lines (f, (sl_lines){ .n = 1, .series = &s, .xlog = 1, .ylog = 1 });
  text = sl_figure_text (f, (sl_text_style){ SL_TEXT_PLAIN, 0, 80 }, NULL);
  ck_assert_msg (strstr (text, "Not shown: 3 points") != NULL, "%s", text);
  sl_free (text);
  sl_figure_free (f);
}
END_TEST

START_TEST (styles_of_terminals) {
  sl_text_style s;
  setenv ("LC_ALL", "C.UTF-8", 1);
  setenv ("COLUMNS", "7", 1);
  s = sl_text_style_for (-1);
  ck_assert_int_eq (s.colours, SL_TEXT_PLAIN);
  ck_assert_int_eq (s.utf8, 1);
  ck_assert_int_eq (s.columns, 20);
  setenv ("LC_ALL", "C", 1);
  setenv ("COLUMNS", "99999999999", 1);
  ck_assert_int_eq (sl_text_style_for (-1).columns, SL_MOST_COLUMNS);
  setenv ("COLUMNS", "120", 1);
  s = sl_text_style_for (-1);
  ck_assert_int_eq (s.utf8, 0);
  ck_assert_int_eq (s.columns, 120);
  unsetenv ("COLUMNS");
  ck_assert_int_eq (sl_text_style_for (-1).columns, 80);
}
END_TEST

/* On a terminal: a pseudo-terminal stands in for one. */
START_TEST (colours_of_terminals) {
  static const struct {
    const char *term, *depth, *no_color;
    sl_text_colours want;
  } cases[] = {
    { "xterm", "truecolor", "", SL_TEXT_TRUE },
    { "xterm", "", "", SL_TEXT_256 },
    { "dumb", "truecolor", "", SL_TEXT_PLAIN },
    { "", "24bit", "", SL_TEXT_PLAIN },
    { "xterm", "24bit", "1", SL_TEXT_PLAIN },
    { "xterm", "24bit", "", SL_TEXT_TRUE },
  };
  int terminal = posix_openpt (O_RDWR | O_NOCTTY);
  ck_assert_msg (terminal >= 0 && isatty (terminal), "no pseudo-terminal");
  for (size_t i = 0; i < LENGTH (cases); i++) {
    setenv ("TERM", cases[i].term, 1);
    setenv ("COLORTERM", cases[i].depth, 1);
    setenv ("NO_COLOR", cases[i].no_color, 1);
    ck_assert_msg (sl_text_style_for (terminal).colours == cases[i].want,
                   "case %zu", i);
  }
  close (terminal);
}
END_TEST

SUITE_MAIN ("plot_text", text_of_a_small_map, sparklines_beside_long_numbers,
            text_fits_the_terminal, text_of_lines, lines_on_a_canvas,
            lines_out_of_range, left_out_points_are_counted,
            styles_of_terminals, colours_of_terminals)
