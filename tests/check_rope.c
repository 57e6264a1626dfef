/* check_rope.c - rotary positions, sinusoidal tables and ALiBi slopes. */
#include "attention/attention.h"
#include "support/golden.h"
#include "support/op_bench.h"
#include "support/suite.h"
#include "support/variants.h"
#include <math.h>
#include <stdio.h>

/* (1, heads, t, d) of the reference as (1, t, heads * d) of the op, or back. */
static void swap_axes (const golden *g, const double *from, double *to,
                       int back) {
  const ptrdiff_t heads = g->dim[1], t = g->dim[2], d = g->dim[3];
  for (ptrdiff_t h = 0; h < heads; h++)
    for (ptrdiff_t i = 0; i < t; i++)
      for (ptrdiff_t j = 0; j < d; j++) {
        const ptrdiff_t a = (h * t + i) * d + j, b = (i * heads + h) * d + j;
        if (back)
          to[a] = from[b];
        else
          to[b] = from[a];
      }
}

/* The view in the reference's order against its file. */
static void close_to (const op_bench *b, const sl_view *v, const golden *g,
                      const char *file) {
  double got[80], want[80];
  float single[80];
  ck_assert_uint_eq (g->count, 80);
  for (size_t i = 0; i < 80; i++) got[i] = op_bench_at (b, v, i);
  swap_axes (g, got, want, 1);
  for (size_t i = 0; i < 80; i++) single[i] = (float)want[i];
  golden_close_array (b->dtype == SL_F64 ? (void *)want : (void *)single, 80,
                      b->dtype, file);
}

static void reference (const char *name, sl_rope_pairs pairs, int offset) {
  const sl_rope_attr attr = { pairs, 8, 10000, offset, 0, 0, 0, 0 };
  char file[4][80];
  static const char *const part[4] = { "x", "out", "up_out", "grad_x" };
  golden x, up;
  ptrdiff_t dim[3] = { 1, 0, 0 };
  double in[80], dout[80];
  for (int i = 0; i < 4; i++)
    snprintf (file[i], sizeof *file, "pos/rope_%s_offset%d/%s.npy", name,
              offset, part[i]);
  x = golden_load (file[0]);
  up = golden_load (file[2]);
  ck_assert_uint_eq (x.count, 80);
  dim[1] = x.dim[2];
  dim[2] = x.dim[1] * x.dim[3];
  swap_axes (&x, x.x, in, 0);
  swap_axes (&up, up.x, dout, 0);
  for (int d = SL_F32; d <= SL_F64; d++) {
    op_bench b;
    op_bench_start (&b, (sl_dtype)d, "rope", &attr);
    op_bench_input (&b, 3, dim, in);
    op_bench_forward (&b);
    close_to (&b, &b.out[0], &x, file[1]);
    op_bench_backward (&b, dout);
    close_to (&b, &b.din[0], &x, file[3]);
    op_bench_free (&b);
  }
  golden_free (&x);
  golden_free (&up);
}

START_TEST (reference_values) {
  for (int i = 0; i < SL_ISA_COUNT; i++) {
    if (!variant_use ((sl_isa)i)) continue;
    for (int offset = 0; offset <= 7; offset += 7) {
      reference ("interleaved", SL_ROPE_INTERLEAVED, offset);
      reference ("half", SL_ROPE_HALF, offset);
    }
  }
}
END_TEST

/* Far out, x = (1, 0) shows cosine and sine of the angle; angles of up to 1e5
** are themselves rounded to 1e-11, here and there. */
START_TEST (far_positions) {
  enum { T = 100, D = 6 };
  const sl_rope_attr attr = { SL_ROPE_HALF, D, 500, 123456, 0, 0, 0, 0 };
  const ptrdiff_t dim[3] = { 1, T, D };
  static double x[T * D];
  op_bench b;
  for (int i = 0; i < T * D; i++) x[i] = i % D < D / 2;
  op_bench_start (&b, SL_F64, "rope", &attr);
  op_bench_input (&b, 3, dim, x);
  op_bench_forward (&b);
  for (int i = 0; i < T; i++)
    for (int k = 0; k < D / 2; k++) {
      const double angle = (123456 + i) * pow (500, -2.0 * k / D);
      CLOSE (op_bench_at (&b, &b.out[0], (size_t)(i * D + k)), cos (angle),
             1e-11, 0, "cosine %d at %d", k, i);
      CLOSE (op_bench_at (&b, &b.out[0], (size_t)(i * D + D / 2 + k)),
             sin (angle), 1e-11, 0, "sine %d at %d", k, i);
    }
  op_bench_free (&b);
}
END_TEST

/* A part of a head turns, by divided angles, and grows: three numbers of five
** stay, the pair has x = (1, 0). */
START_TEST (partial) {
  enum { T = 70, D = 5 };
  static const sl_rope_pairs pairs[2] = { SL_ROPE_HALF, SL_ROPE_INTERLEAVED };
  const ptrdiff_t dim[3] = { 1, T, D }, one[1] = { 2 };
  const double divisors[2] = { 1, 7.25 };
  static double x[T * D];
  for (int p = 0; p < 2; p++) {
    const sl_rope_attr attr = { pairs[p], D, 100, 3, 4, 1.5, 1, 0 };
    const int second = p == 0 ? 1 : 2; /* where pair 1 begins, and its other */
    const int other = p == 0 ? 2 : 1;
    op_bench b;
    for (int i = 0; i < T * D; i++)
      x[i] = i % D == 4 ? i : i % D == 0 || i % D == second;
    op_bench_start (&b, SL_F64, "rope", &attr);
    op_bench_input (&b, 3, dim, x);
    op_bench_input (&b, 1, one, divisors);
    op_bench_forward (&b);
    for (int i = 0; i < T; i++) {
      const double a = 3 + i, c = (3 + i) * pow (100, -0.5) / 7.25;
      const double *const got = (const double *)b.out[0].data + i * D;
      CLOSE (got[0], 1.5 * cos (a), 1e-12, 0, "cosine 0 at %d", i);
      CLOSE (got[other], 1.5 * sin (a), 1e-12, 0, "sine 0 at %d", i);
      CLOSE (got[second], 1.5 * cos (c), 1e-12, 0, "cosine 1 at %d", i);
      CLOSE (got[3], 1.5 * sin (c), 1e-12, 0, "sine 1 at %d", i);
      CLOSE (got[4], i * D + 4, 0, 0, "untouched at %d", i);
    }
    op_bench_free (&b);
  }
}
END_TEST

/* Positions of one's own: the tokens of a sequence in any order, each sequence
** its own, give the same numbers as in their places. */
START_TEST (positions) {
  enum { B = 2, T = 40, D = 6 };
  const sl_rope_attr plain = { SL_ROPE_HALF, D, 50, 0, 4, 0, 0, 0 };
  const sl_rope_attr placed = { SL_ROPE_HALF, D, 50, 0, 4, 0, 0, 1 };
  const ptrdiff_t dim[3] = { B, T, D }, places[2] = { B, T };
  static double x[B * T * D], moved[B * T * D], at[B * T];
  op_bench a, b;
  for (int i = 0; i < B * T * D; i++) x[i] = sin (i);
  for (int s = 0; s < B; s++)
    for (int i = 0; i < T; i++) {
      const int from = (i * 7 + s * 3) % T;
      at[s * T + i] = from;
      for (int j = 0; j < D; j++)
        moved[(s * T + i) * D + j] = x[(s * T + from) * D + j];
    }
  op_bench_start (&a, SL_F64, "rope", &plain);
  op_bench_input (&a, 3, dim, x);
  op_bench_forward (&a);
  op_bench_start (&b, SL_F64, "rope", &placed);
  op_bench_input (&b, 3, dim, moved);
  op_bench_input (&b, 2, places, at);
  op_bench_forward (&b);
  for (int s = 0; s < B; s++)
    for (int i = 0; i < T; i++)
      for (int j = 0; j < D; j++)
        CLOSE (op_bench_at (&b, &b.out[0], (size_t)((s * T + i) * D + j)),
               op_bench_at (&a, &a.out[0],
                            (size_t)((s * T + (int)at[s * T + i]) * D + j)),
               1e-13, 0, "%d of token %d of %d", j, i, s);
  op_bench_free (&a);
  op_bench_free (&b);
}
END_TEST

START_TEST (refusals) {
  static const struct {
    sl_rope_attr attr;
    const char *sentence;
  } cases[] = {
    { { SL_ROPE_HALF, 3, 10000, 0, 0, 0, 0, 0 },
      "rope: d_head is 3; expected an even number from 2" },
    { { SL_ROPE_HALF, 0, 10000, 0, 0, 0, 0, 0 },
      "rope: d_head is 0; expected an even number from 2" },
    { { SL_ROPE_HALF, 4, 0, 0, 0, 0, 0, 0 },
      "rope: base is 0; expected a finite number above 0" },
    { { SL_ROPE_HALF, 8, 10000, 0, 0, 0, 0, 0 },
      "rope: x is (2, 3, 4); expected (b, t, heads * 8)" },
    { { SL_ROPE_HALF, 4, 10000, 0, 6, 0, 0, 0 },
      "rope: rotated is 6; expected an even number from 2 to d_head, which is "
      "4" },
    { { SL_ROPE_HALF, 4, 10000, 0, 3, 0, 0, 0 },
      "rope: rotated is 3; expected an even number from 2 to d_head, which is "
      "4" },
    { { SL_ROPE_HALF, 4, 10000, 0, 0, -1, 0, 0 },
      "rope: magnitude is -1; expected a finite number above 0" },
  };
  const ptrdiff_t dim[3] = { 2, 3, 4 };
  double x[24] = { 0 };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    op_bench b;
    op_bench_start (&b, SL_F32, "rope", &cases[i].attr);
    op_bench_input (&b, 3, dim, x);
    ck_assert_str_eq (op_bench_refusal (&b), cases[i].sentence);
    op_bench_free (&b);
  }
}
END_TEST

START_TEST (sinusoidal) {
  double table[12 * 8];
  sl_sinusoidal (12, 8, table);
  golden_close_array (table, 96, SL_F64, "pos/sinusoidal/table.npy");
}
END_TEST

START_TEST (alibi_slopes) {
  static const int heads[] = { 1, 2, 4, 6, 8, 12 };
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    char file[64];
    double slopes[12];
    snprintf (file, sizeof file, "pos/alibi/slopes_h%d.npy", heads[i]);
    sl_alibi_slopes (heads[i], slopes);
    golden_close_array (slopes, (size_t)heads[i], SL_F64, file);
  }
}
END_TEST

SUITE_MAIN ("rope", reference_values, far_positions, partial, positions,
            refusals, sinusoidal, alibi_slopes)
