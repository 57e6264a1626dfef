/* check_ticks.c - ticks, ranges, numbers, colours. */
#include "plot/palette.h"
#include "plot/ticks.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(a) (sizeof (a) / sizeof *(a))

/* The labels with a space between; "." for a minor tick. */
static const char *labels (const sl_ticks *t) {
  static char text[4096];
  text[0] = 0;
  for (int i = 0; i < t->n; i++) {
    if (i) strcat (text, " ");
    strcat (text, t->label[i][0] ? t->label[i] : ".");
  }
  return text;
}

START_TEST (ticks_of_ranges) {
  static const struct {
    double min, max;
    int log, most;
    const char *want;
  } cases[] = {
    { 0, 1, 0, 6, "0.0 0.2 0.4 0.6 0.8 1.0" },
    { 0, 1, 0, 5, "0.0 0.5 1.0" },
    { 0, 1, 0, 11, "0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0" },
    { -0.3, 0.31, 0, 4, "-0.2 0.0 0.2" },
    { 0.9991, 0.9999, 0, 5, "0.9992 0.9994 0.9996 0.9998" },
    { 0, 50000, 0, 6, "0 10000 20000 30000 40000 50000" },
    { 0, 3e-4, 0, 4, "0 1e-4 2e-4 3e-4" },
    { 0, 2.5e-7, 0, 6, "0 5e-8 1.0e-7 1.5e-7 2.0e-7 2.5e-7" },
    { -4e6, 4e6, 0, 5, "-4e6 -2e6 0 2e6 4e6" },
    { 1e-3, 1, 1, 6,
      "0.001 . . . . . . . . 0.01 . . . . . . . . 0.1 . . . . . . . . 1" },
    { 1e-12, 1, 1, 4, "1e-12 . . . 1e-8 . . . 1e-4 . . . 1e0" },
    { 0.15, 0.7, 1, 6, "0.2 0.5" },
    { 0.21, 0.28, 1, 5, "0.22 0.24 0.26 0.28" },
  };
  for (size_t i = 0; i < LENGTH (cases); i++) {
    sl_range r = { cases[i].min, cases[i].max, cases[i].log };
    sl_ticks t;
    sl_ticks_range (&r, cases[i].most, &t);
    ck_assert_msg (!strcmp (labels (&t), cases[i].want),
                   "case %zu: got '%s', want '%s'", i, labels (&t),
                   cases[i].want);
  }
}
END_TEST

/* For any range: inside it, ascending, never more labels than asked for, never
** fewer than one, and labels read as the numbers they stand for. */
START_TEST (ticks_of_any_range) {
  unsigned state = 12345;
  for (int i = 0; i < 20000; i++) {
    double a, b, u[3];
    sl_range r;
    sl_ticks t;
    int most, n = 0;
    for (int k = 0; k < 3; k++)
      u[k] = (state = state * 1664525u + 1013904223u) / 4294967296.0;
    a = (u[0] - 0.4) * pow (10, 30 * u[1] - 15);
    b = a + pow (10, 24 * u[2] - 9) * (fabs (a) + 1e-9);
    r = (sl_range){ a, b, a > 0 && i % 2 };
    most = 2 + (int)(9 * u[1]);
    sl_ticks_range (&r, most, &t);
    for (int k = 0; k < t.n; k++) {
      double slack = 1e-6 * (b - a);
      if (r.log) slack = 1e-6 * fabs (t.at[k]);
      ck_assert_msg (t.at[k] >= a - slack && t.at[k] <= b + slack,
                     "range %.17g..%.17g: tick at %.17g", a, b, t.at[k]);
      ck_assert_msg (k == 0 || t.at[k] > t.at[k - 1], "ticks do not ascend");
      if (!t.label[k][0]) continue;
      n++;
      CLOSE (atof (t.label[k]), t.at[k], 1e-7 * (b - a), 1e-9,
             "label '%s' in %.17g..%.17g", t.label[k], a, b);
    }
    ck_assert_msg (n <= most && n >= 1, "%d labels for %d in %.17g..%.17g%s", n,
                   most, a, b, r.log ? " (log)" : "");
  }
}
END_TEST

START_TEST (ticks_of_positions) {
  static const struct {
    size_t first, n;
    int most;
    const char *want;
  } cases[] = {
    { 1, 1, 8, "1" },
    { 1, 8, 8, "1 2 3 4 5 6 7 8" },
    { 1, 16, 8, "1 3 5 7 9 11 13 15" },
    { 1, 16, 4, "1 5 10 15" },
    { 1, 64, 4, "1 20 40 60" },
    { 1, 4096, 9, "1 500 1000 1500 2000 2500 3000 3500 4000" },
    { 1, 1000000, 2, "1 500000 1000000" },
    { 2, 16, 16, "2 3 4 5 6 7 8 9 10 11 12 13 14 15 16" },
    { 2, 16, 4, "2 5 10 15" },
    { 7, 7, 4, "7" },
  };
  for (size_t i = 0; i < LENGTH (cases); i++) {
    sl_ticks t;
    sl_ticks_positions (cases[i].first, cases[i].n, cases[i].most, &t);
    ck_assert_msg (!strcmp (labels (&t), cases[i].want),
                   "%zu positions, %d: got '%s', want '%s'", cases[i].n,
                   cases[i].most, labels (&t), cases[i].want);
  }
}
END_TEST

START_TEST (numbers) {
  static const struct {
    double x;
    int digits;
    const char *plain, *pretty;
  } cases[] = {
    { 0, 3, "0", "0" },
    { -0.0, 3, "0", "0" },
    { -1.5, 3, "-1.5", "−1.5" },
    { 1e-7, 3, "1e-7", "10⁻⁷" },
    { 2.5e-10, 3, "2.5e-10", "2.5×10⁻¹⁰" },
    { 1e30, 3, "1e30", "10³⁰" },
    { -1e30, 3, "-1e30", "−1×10³⁰" },
    { 0.001, 3, "0.001", "0.001" },
    { 20000, 6, "20000", "20000" },
  };
  for (size_t i = 0; i < LENGTH (cases); i++) {
    char text[32], print[64];
    sl_number_text (cases[i].x, cases[i].digits, text, sizeof text);
    ck_assert_str_eq (text, cases[i].plain);
    ck_assert_str_eq (sl_pretty (text, print, sizeof print), cases[i].pretty);
  }
}
END_TEST

/* Names of columns are no numbers, whatever letters they have; the long ones
** end in a whole character and an ellipsis. */
START_TEST (names_of_ticks) {
  static const struct {
    const char *name, *shown;
  } cases[] = {
    { "other", "other" },
    { "e-", "e-" },
    { "a name of more than thirty-one bytes", "a name of more than thirty-o…" },
    { "ääääääääääääääääääää", "ääääääääääääää…" },
  };
  char print[64];
  for (size_t i = 0; i < LENGTH (cases); i++) {
    sl_ticks t = { .words = 1 };
    sl_ticks_add (&t, 1, cases[i].name);
    ck_assert_str_eq (t.label[0], cases[i].shown);
  }
  ck_assert_str_eq (sl_pretty ("other", print, sizeof print), "other");
}
END_TEST

START_TEST (fractions) {
  sl_range r = { -1, 3, 0 }, log = { 1e-4, 1, 1 };
  CLOSE (sl_range_fraction (&r, 0), 0.25, 1e-15, 0, "linear");
  CLOSE (sl_range_fraction (&r, 5), 1.5, 1e-15, 0, "beyond");
  CLOSE (sl_range_fraction (&log, 1e-3), 0.25, 1e-14, 0, "log");
  ck_assert_msg (sl_range_fraction (&log, 0) == -INFINITY, "log of 0");
}
END_TEST

/* Control points, the middle between two, and clamping. */
START_TEST (palettes) {
  static const struct {
    const char *name;
    double t;
    int r, g, b;
  } cases[] = {
    { "blues", 0, 247, 251, 255 },   { "blues", 1, 8, 48, 107 },
    { "blues", 0.5, 107, 174, 214 }, { "blues", 0.0625, 235, 243, 251 },
    { "blues", -1, 247, 251, 255 },  { "blues", 7, 8, 48, 107 },
    { "viridis", 0, 68, 1, 84 },     { "viridis", 1, 253, 231, 37 },
    { "rdbu", 0.5, 247, 247, 247 },  { "rdbu", 0, 103, 0, 31 },
    { "cividis", 0, 0, 34, 78 },     { "magma", 0.5, 183, 55, 121 },
    { "greys", 1, 0, 0, 0 },
  };
  for (size_t i = 0; i < LENGTH (cases); i++) {
    sl_rgb c =
        sl_palette_at (sl_palette_find (cases[i].name, NULL), cases[i].t);
    ck_assert_msg (c.r == cases[i].r && c.g == cases[i].g && c.b == cases[i].b,
                   "%s at %g: got %d, %d, %d", cases[i].name, cases[i].t, c.r,
                   c.g, c.b);
  }
  ck_assert_str_eq (sl_palette_find (NULL, NULL)->name, "blues");
}
END_TEST

/* Lightness falls along blues and greys and rises along the others but rdbu,
** whose middle is lightest: they read in grey too. */
START_TEST (palettes_in_grey) {
  const char *names[] = { "blues", "greys", "viridis", "cividis", "magma" };
  for (int p = 0; p < (int)LENGTH (names); p++) {
    int rises = p >= 2;
    double last = rises ? -1 : 256;
    for (int i = 0; i <= 100; i++) {
      sl_rgb c = sl_palette_at (sl_palette_find (names[p], NULL), i / 100.0);
      double grey = 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b;
      ck_assert_msg (rises ? grey >= last - 1 : grey <= last + 1, "%s at %d %%",
                     names[p], i);
      last = grey;
    }
  }
}
END_TEST

START_TEST (terminal_colours) {
  static const struct {
    sl_rgb c;
    int want;
  } cases[] = { { { 255, 255, 255 }, 231 }, { { 0, 0, 0 }, 16 },
                { { 128, 128, 128 }, 244 }, { { 255, 0, 0 }, 196 },
                { { 8, 48, 107 }, 23 },     { { 95, 135, 175 }, 67 } };
  for (size_t i = 0; i < LENGTH (cases); i++)
    ck_assert_int_eq (sl_terminal_colour (cases[i].c), cases[i].want);
}
END_TEST

START_TEST (line_colours) {
  for (int i = 0; i < SL_LINE_COLOURS; i++)
    for (int k = 0; k < i; k++) {
      sl_rgb a = sl_line_colour (i), b = sl_line_colour (k);
      ck_assert_msg (a.r != b.r || a.g != b.g || a.b != b.b, "%d and %d", i, k);
    }
  ck_assert_int_eq (sl_line_colour (0).b, sl_line_colour (SL_LINE_COLOURS).b);
}
END_TEST

SUITE_MAIN ("ticks", ticks_of_ranges, ticks_of_any_range, ticks_of_positions,
            numbers, fractions, names_of_ticks, palettes, palettes_in_grey,
            terminal_colours, line_colours)
