/* check_golden.c - the reader and the comparison that other tests lean on. */
#include "support/golden.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST (reads_shapes_and_values) {
  golden x = golden_load ("piece/layernorm/x.npy");
  golden targets = golden_load ("piece/cross_entropy/targets.npy");
  golden loss = golden_load ("piece/cross_entropy/loss.npy");
  ck_assert_int_eq (x.ndim, 3);
  ck_assert_int_eq (x.dim[0] * 100 + x.dim[1] * 10 + x.dim[2], 348);
  ck_assert_uint_eq (x.count, 96);
  /* the manifest of the case: row [0, 1] is constant */
  for (int i = 0; i < 8; i++) ck_assert (x.x[8 + i] == x.x[8]);
  ck_assert (x.x[0] != x.x[1]);
  ck_assert_int_eq (targets.ndim, 2);
  for (size_t i = 0; i < targets.count; i++)
    ck_assert (targets.x[i] == -100 || (targets.x[i] >= 0 && targets.x[i] < 7));
  ck_assert_int_eq (loss.ndim, 0);
  ck_assert_uint_eq (loss.count, 1);
  golden_free (&x);
  golden_free (&targets);
  golden_free (&loss);
}
END_TEST

START_TEST (accepts_its_own_values_in_any_layout) {
  golden g = golden_load ("piece/rmsnorm/out.npy");
  float *single = malloc (g.count * sizeof *single);
  double *turned = malloc (g.count * sizeof *turned);
  sl_view v = { .ndim = 2, .dim = { 12, 8 }, .stride = { 1, 12 } };
  golden_fill (&g, SL_F32, single);
  golden_close_array (single, g.count, SL_F32, "piece/rmsnorm/out.npy");
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 8; j++) turned[j * 12 + i] = g.x[i * 8 + j];
  v.data = turned;
  golden_close (&v, SL_F64, "piece/rmsnorm/out.npy");
  free (single);
  free (turned);
  golden_free (&g);
}
END_TEST

/* rmsnorm's output with one element changed, of which 'count' are shown. */
static const struct {
  double change;
  size_t count;
  sl_dtype dtype;
  const char *message; /* NULL: no difference */
} changes[] = {
  { 1e-12, 96, SL_F64, NULL },
  { 1e-9, 96, SL_F64, "element 7 of 96 in f64: got " },
  { -1e-9, 96, SL_F64, "difference -1e-09, atol 4.68e-12, rtol 1e-10" },
  { 1e-3, 96, SL_F32, "element 7 of 96 in f32: got " },
  { NAN, 96, SL_F64, "element 7 of 96 in f64: got nan" },
  { INFINITY, 96, SL_F32, "element 7 of 96 in f32: got inf" },
  { 0, 95, SL_F64, "got 95 elements, want 96" },
};

START_TEST (tells_what_differs) {
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    golden g = golden_load ("piece/rmsnorm/out.npy");
    sl_view v = { .ndim = 1, .stride = { 1 } };
    double values[96];
    char text[512] = "";
    int differs;
    g.x[7] += changes[i].change;
    golden_fill (&g, changes[i].dtype, values);
    v.data = values;
    v.dim[0] = (ptrdiff_t)changes[i].count;
    differs = golden_differs (&v, changes[i].dtype, "piece/rmsnorm/out.npy",
                              text, sizeof text);
    ck_assert_msg (differs == (changes[i].message != NULL), "change %zu: %s", i,
                   text);
    if (differs)
      ck_assert_msg (strstr (text, changes[i].message) != NULL, "%s", text);
    golden_free (&g);
  }
}
END_TEST

SUITE_MAIN ("golden", reads_shapes_and_values,
            accepts_its_own_values_in_any_layout, tells_what_differs)
