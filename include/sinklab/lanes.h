/* sinklab/lanes.h - vectors for block kernels: 16 queries, a lane each.
**
** A block is n keys x 16 queries, (n, SL_QUERIES): the score of lane i for key
** j is s[j * SL_QUERIES + i]. A kernel goes through the 16 lanes SL_LANES at a
** time (the width of the machine's vectors), and through the keys for each:
**
**     for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
**       const sl_lanes max = sl_keys_max (n, s + l);
**       for (int j = 0; j < n; j++)
**         sl_store (w + sl_at (j, l), sl_load (s + sl_at (j, l)) - max);
**     }
**
** sl_lanes has the operators + - * / between two vectors and with a real;
** comparing two vectors gives a mask for sl_select. The functions are those of
** sinklab/vmath.h, lane by lane: the same bits, the same largest errors (at
** most 1 ulp for exp and log, 2.6 ulp for tanh and sigmoid), the same special
** values.
**
** Functions called sl_keys_... reduce or map a column of n >= 1 keys, n vectors
** from x = block + l on, SL_QUERIES reals apart. */
#ifndef SINKLAB_LANES_H
#define SINKLAB_LANES_H
#include <sinklab/vmath.h>

#if defined __AVX512F__
#define SL_LANE_BYTES 64
#elif defined __AVX2__
#define SL_LANE_BYTES 32
#else
#define SL_LANE_BYTES 16
#endif
enum { SL_LANES = SL_LANE_BYTES / sizeof (real) };

/* Aligned to a real. */
typedef real sl_lanes __attribute__ ((vector_size (SL_LANE_BYTES),
                                      aligned (sizeof (real)), may_alias));
#ifdef SL_SINGLE
typedef int32_t sl_mask __attribute__ ((vector_size (SL_LANE_BYTES)));
#else
typedef int64_t sl_mask __attribute__ ((vector_size (SL_LANE_BYTES)));
#endif
typedef sl_bits sl_lane_bits __attribute__ ((vector_size (SL_LANE_BYTES)));

/* Index of key j, lane l in a block. */
SL_VMATH ptrdiff_t sl_at (int j, int l) {
  return (ptrdiff_t)j * SL_QUERIES + l;
}

SL_VMATH sl_lanes sl_load (const real *p) {
  return *(const sl_lanes *)p;
}

SL_VMATH void sl_store (real *p, sl_lanes x) {
  *(sl_lanes *)p = x;
}

/* x in every lane. */
SL_VMATH sl_lanes sl_splat (real x) {
  return x - (sl_lanes){ 0 };
}

/* Lane by lane: a where the mask is set, else b. */
SL_VMATH sl_lanes sl_select (sl_mask mask, sl_lanes a, sl_lanes b) {
  return (sl_lanes)(((sl_mask)a & mask) | ((sl_mask)b & ~mask));
}

/* The number of keys that any of the SL_LANES lanes from l on sees, at least 1.
** The host clears weights of later keys, so kernels can stop there. */
SL_VMATH int sl_lanes_keys (const sl_call *c, int l) {
  const real last = c->visible_keys[l + SL_LANES - 1];
  real most = 1;
  if (last >= 1) return (int)last;
  for (int i = 0; i < SL_LANES; i++)
    if (c->visible_keys[l + i] > most) most = c->visible_keys[l + i];
  return (int)most;
}

/* Lane by lane: y where x > 0, 0 where x <= 0, y where x is NaN. */
SL_VMATH sl_lanes sl_where_positive (sl_lanes x, sl_lanes y) {
  return sl_select ((sl_mask)(x <= sl_splat (0)), sl_splat (0), y);
}

/* Set in those lanes from l on to which key j of the block is visible. */
SL_VMATH sl_mask sl_key_mask (const sl_call *c, int j, int l) {
  return (sl_mask)(sl_load (c->visible_keys + l) > sl_splat ((real)j));
}

/* Lane by lane: max and min; b where a or b is NaN or both are zeros. x86 has
** an instruction for each that compilers do not find by themselves. */
#if defined __AVX512F__ || !defined __SSE2__
#define SL_EXTREME(compare, name) sl_select ((sl_mask)(a compare b), a, b)
#elif defined __AVX2__ && defined SL_SINGLE
#define SL_EXTREME(compare, name) (sl_lanes) __builtin_ia32_##name##ps256 (a, b)
#elif defined __AVX2__
#define SL_EXTREME(compare, name) (sl_lanes) __builtin_ia32_##name##pd256 (a, b)
#elif defined SL_SINGLE
#define SL_EXTREME(compare, name) (sl_lanes) __builtin_ia32_##name##ps (a, b)
#else
#define SL_EXTREME(compare, name) (sl_lanes) __builtin_ia32_##name##pd (a, b)
#endif
SL_VMATH sl_lanes sl_lanes_max (sl_lanes a, sl_lanes b) {
  return SL_EXTREME (>, max);
}

SL_VMATH sl_lanes sl_lanes_min (sl_lanes a, sl_lanes b) {
  return SL_EXTREME (<, min);
}
#undef SL_EXTREME

SL_VMATH sl_lanes sl_lanes_abs (sl_lanes x) {
  return (sl_lanes)((sl_lane_bits)x & ~SL_SIGN);
}

/* sl_lanes_exp, _expm1, _log, _tanh, _sigmoid, _softplus */
#define SL_T sl_lanes
#define SL_B sl_lane_bits
#define SL_F(name) sl_lanes_##name
#define SL_BITS(x) ((sl_lane_bits)(x))
#define SL_REAL(b) ((sl_lanes)(b))
#define SL_ABS(x) sl_lanes_abs (x)
#define SL_K(c) sl_splat ((real)(c))
#define SL_CHOOSE(condition, a, b) sl_select ((sl_mask)(condition), (a), (b))
#include <sinklab/functions.h>
#undef SL_T
#undef SL_B
#undef SL_F
#undef SL_BITS
#undef SL_REAL
#undef SL_ABS
#undef SL_K
#undef SL_CHOOSE

/* The sum of the lanes, from lane 0 on. */
SL_VMATH real sl_lanes_sum (sl_lanes x) {
  real sum = x[0];
  for (int i = 1; i < SL_LANES; i++) sum += x[i];
  return sum;
}

/* Per lane, over the keys: the maximum (NaN may be ignored), the sum, the dot
** product. Key j is added to partial sum j % 4, and the four are added last:
** the order of operations, and with it the bits, depends on n alone. */
#define SL_OVER_KEYS(start, step, end)               \
  sl_lanes part[4] = { start, start, start, start }; \
  int j = 0;                                         \
  for (; j + 4 <= n; j += 4) {                       \
    step (0);                                        \
    step (1);                                        \
    step (2);                                        \
    step (3);                                        \
  }                                                  \
  for (; j < n; j++) step (0);                       \
  return end
#define SL_STEP(k) \
  part[k] = sl_lanes_max (part[k], sl_load (x + sl_at (j + k, 0)))
SL_VMATH sl_lanes sl_keys_max (int n, const real *x) {
  SL_OVER_KEYS (sl_load (x), SL_STEP,
                sl_lanes_max (sl_lanes_max (part[0], part[1]),
                              sl_lanes_max (part[2], part[3])));
}
#undef SL_STEP
#define SL_STEP(k) part[k] += sl_load (x + sl_at (j + k, 0))
SL_VMATH sl_lanes sl_keys_sum (int n, const real *x) {
  SL_OVER_KEYS ((sl_lanes){ 0 }, SL_STEP,
                (part[0] + part[1]) + (part[2] + part[3]));
}
#undef SL_STEP
#define SL_STEP(k) \
  part[k] += sl_load (x + sl_at (j + k, 0)) * sl_load (y + sl_at (j + k, 0))
SL_VMATH sl_lanes sl_keys_dot (int n, const real *x, const real *y) {
  SL_OVER_KEYS ((sl_lanes){ 0 }, SL_STEP,
                (part[0] + part[1]) + (part[2] + part[3]));
}
#undef SL_STEP

/* e^x for x <= 0: less work than sl_lanes_exp and the same bits. 2^64 e^x is a
** normal number for each result that is not 0, so only the last multiplication
** rounds to a denormal. NaN gives NaN. */
SL_VMATH sl_lanes sl_lanes_exp_nonpositive (sl_lanes x) {
  const sl_mask low = (sl_mask)(x < sl_splat (SL_EXP_LOW));
  const sl_lanes zero = sl_splat (0);
  sl_lane_bits k;
  const sl_lanes p = sl_lanes_exp_reduce (sl_select (low, zero, x), &k);
  const sl_lanes scale = sl_lanes_pow2 (k + 64);
  return sl_select (low, zero, (p * scale + scale) * (real)0x1p-64);
}

/* e = exp (x - shift), with shift >= max x per lane, by
** sl_lanes_exp_nonpositive; returns the sum of e over the keys, from key 0
** on. */
SL_VMATH sl_lanes sl_keys_exp (int n, const real *x, sl_lanes shift, real *e) {
  sl_lanes sum = { 0 };
  for (int j = 0; j < n; j++) {
    const sl_lanes y =
        sl_lanes_exp_nonpositive (sl_load (x + sl_at (j, 0)) - shift);
    sl_store (e + sl_at (j, 0), y);
    sum += y;
  }
  return sum;
}

/* x *= factor */
SL_VMATH void sl_keys_scale (int n, real *x, sl_lanes factor) {
  for (int j = 0; j < n; j++)
    sl_store (x + sl_at (j, 0), sl_load (x + sl_at (j, 0)) * factor);
}

/* w = exp (s) / sum exp (s), the sum over the keys of a lane; w may be s. */
SL_VMATH void sl_keys_softmax (int n, const real *s, real *w) {
  const sl_lanes sum = sl_keys_exp (n, s, sl_keys_max (n, s), w);
  sl_keys_scale (n, w, 1 / sum);
}

/* w = exp (s) / (sum exp (s) + anything that does not depend on s):
** ds = w (dw - mean), mean = sum w dw, which is returned. */
SL_VMATH sl_lanes sl_keys_softmax_backward (int n, const real *w,
                                            const real *dw, real *ds) {
  const sl_lanes mean = sl_keys_dot (n, w, dw);
  for (int j = 0; j < n; j++)
    sl_store (ds + sl_at (j, 0), sl_load (w + sl_at (j, 0)) *
                                     (sl_load (dw + sl_at (j, 0)) - mean));
  return mean;
}
#endif
