/* sinklab/lanes.h - the 16 queries of a block, as many at once as a vector holds.
**
** A block of a row plugin is n keys x 16 queries, [key][lane]: the score of lane i
** for key j is s[j * SL_QUERIES + i]. A kernel goes through the 16 lanes SL_LANES
** at a time (the width of the machine's vectors), and down the keys for each:
**
**     for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
**       const sl_lanes max = sl_keys_max (n, s + l);
**       for (int j = 0; j < n; j++)
**         sl_store (w + sl_at (j, l), sl_load (s + sl_at (j, l)) - max);
**     }
**
** sl_lanes has the operators + - * / between its kind and with a real; comparing
** two gives an sl_mask for sl_select. The functions are those of sinklab/vmath.h,
** lane by lane: the same bits, the same errors (at most 1 ulp for exp and log,
** 2.6 for tanh and sigmoid), the same special values. */
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

/* A vector may stand at any element. */
typedef real sl_lanes __attribute__ ((vector_size (SL_LANE_BYTES),
                                      aligned (sizeof (real)), may_alias));
#ifdef SL_SINGLE
typedef int32_t sl_mask __attribute__ ((vector_size (SL_LANE_BYTES)));
#else
typedef int64_t sl_mask __attribute__ ((vector_size (SL_LANE_BYTES)));
#endif
typedef sl_bits sl_lane_bits __attribute__ ((vector_size (SL_LANE_BYTES)));

/* Where key j of lane l lies in a block. */
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
SL_VMATH sl_lanes sl_every (real x) {
  return x - (sl_lanes){ 0 };
}

/* Lane by lane: a where the mask is set, else b. */
SL_VMATH sl_lanes sl_select (sl_mask mask, sl_lanes a, sl_lanes b) {
  return (sl_lanes)(((sl_mask)a & mask) | ((sl_mask)b & ~mask));
}

/* How many of the n keys any of the lanes from l on sees; 1 or more, and where they
** see none 1. What a kernel writes beyond is cleared, so it need not go there. */
SL_VMATH int sl_keys (const sl_call *c, int l) {
  const real last = c->seen[l + SL_LANES - 1];
  real most = 1;
  if (last >= 1) return (int)last;
  for (int i = 0; i < SL_LANES; i++)
    if (c->seen[l + i] > most) most = c->seen[l + i];
  return (int)most;
}

/* Which of the lanes from l on see key j of this block. */
SL_VMATH sl_mask sl_seen (const sl_call *c, int j, int l) {
  return (sl_mask)(sl_load (c->seen + l) > sl_every ((real)j));
}

/* Lane by lane: the larger, the smaller; b where a or b is NaN or both are zeros.
** x86 has one instruction for each, which compilers do not find by themselves. */
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
#define SL_K(c) sl_every ((real)(c))
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

/* The sum of the lanes, in order. */
SL_VMATH real sl_lanes_sum (sl_lanes x) {
  real sum = x[0];
  for (int i = 1; i < SL_LANES; i++) sum += x[i];
  return sum;
}

/* Over the n >= 1 keys of each lane, x = block + l: the largest (NaN may be passed
** over), the sum, the dot product. Key j goes to part j % 4, the parts are added
** last: bits depend on the numbers and nothing else. */
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

/* e^x of x <= 0: half the work of sl_lanes_exp for the same bits, but for results
** near the smallest normal number, which may be an ulp away, and below it, which
** are 0. NaN gives NaN. */
SL_VMATH sl_lanes sl_lanes_exp_down (sl_lanes x) {
  sl_lane_bits k;
  const sl_lanes p = sl_lanes_exp_reduce (x, &k), scale = sl_lanes_pow2 (k);
  const sl_mask low = (sl_mask)(x < sl_every (SL_EXP_NORMAL));
  return sl_select (low, sl_every (0), p * scale + scale);
}

/* e = exp (x - shift) down the n keys of the lanes, with a shift that is at least
** the largest x; returns the sum of e. What is below the smallest normal number is
** 0. */
SL_VMATH sl_lanes sl_keys_exp (int n, const real *x, sl_lanes shift, real *e) {
  sl_lanes sum = { 0 };
  for (int j = 0; j < n; j++) {
    const sl_lanes y = sl_lanes_exp_down (sl_load (x + sl_at (j, 0)) - shift);
    sl_store (e + sl_at (j, 0), y);
    sum += y;
  }
  return sum;
}

/* x times 'factor' down the n keys. */
SL_VMATH void sl_keys_scale (int n, real *x, sl_lanes factor) {
  for (int j = 0; j < n; j++)
    sl_store (x + sl_at (j, 0), sl_load (x + sl_at (j, 0)) * factor);
}

/* ds = w (dw - mean) down the n keys: with mean = sum of w dw, the gradient of a
** softmax. */
SL_VMATH void sl_keys_spread (int n, const real *w, const real *dw,
                              sl_lanes mean, real *ds) {
  for (int j = 0; j < n; j++)
    sl_store (ds + sl_at (j, 0), sl_load (w + sl_at (j, 0)) *
                                     (sl_load (dw + sl_at (j, 0)) - mean));
}
#endif
