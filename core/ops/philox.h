/* philox.h - Philox4x32-10 of many counters at once, for random ops.
** Numeric code: include it from files that are compiled per instruction set.
**
** Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
** 2011; the same bits as sl_philox of base/random.h. */
#ifndef SL_PHILOX_H
#define SL_PHILOX_H
#include "base/random.h"
#include "ops/shuffle.h"
#include <sinklab/lanes.h>
#include <string.h>

/* Counters are processed in batches of this many: a multiple of three vectors
** of every instruction set. */
enum { SL_PHILOX_BATCH = 24 };

#define SL_PHILOX_M0 0xD2511F53u
#define SL_PHILOX_M1 0xCD9E8D57u
#define SL_PHILOX_W0 0x9E3779B9u
#define SL_PHILOX_W1 0xBB67AE85u

#if defined(__SSE2__)
#define SL_WIDE_BYTES SL_LANE_BYTES
/* A 32-bit word in the low half of each lane; the high half is ignored. */
typedef uint64_t sl_wide __attribute__ ((vector_size (SL_WIDE_BYTES)));
enum { SL_PHILOX_LANES = SL_WIDE_BYTES / 8 };

/* The 64-bit products of the words. The instruction ignores the high halves;
** gcc 12 does not recognise (a & 0xffffffff) * m as this instruction and makes
** three multiplications of it. */
static inline sl_wide sl_wide_product (sl_wide a, sl_wide m) {
#if defined(__AVX2__)
  sl_wide p;
  __asm__("vpmuludq %2, %1, %0" : "=v"(p) : "v"(a), "vm"(m));
  return p;
#else
  __asm__("pmuludq %1, %0" : "+x"(a) : "x"(m));
  return a;
#endif
}

static inline sl_wide sl_wide_load (const uint32_t *from) {
  uint64_t wide[SL_PHILOX_LANES];
  sl_wide x;
  for (int i = 0; i < SL_PHILOX_LANES; i++) wide[i] = from[i];
  memcpy (&x, wide, sizeof x);
  return x;
}

enum { SL_ROUNDS = 10 };

/* The keys of all rounds. */
typedef struct sl_round_keys {
  sl_wide k[SL_ROUNDS][2];
} sl_round_keys;

static inline sl_round_keys sl_philox_keys (uint64_t key) {
  sl_round_keys keys;
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int i = 0; i < SL_ROUNDS; i++) {
    keys.k[i][0] = (sl_wide){ 0 } + k0;
    keys.k[i][1] = (sl_wide){ 0 } + k1;
    k0 += SL_PHILOX_W0;
    k1 += SL_PHILOX_W1;
  }
  return keys;
}

/* One round of n vectors of counters; independent vectors hide the latency of
** the multiplications. x[v][i]: word i of the counters. */
static inline void sl_philox_round (const sl_wide key[2], int n,
                                    sl_wide (*x)[4]) {
  const sl_wide m0 = (sl_wide){ 0 } + SL_PHILOX_M0;
  const sl_wide m1 = (sl_wide){ 0 } + SL_PHILOX_M1;
  for (int v = 0; v < n; v++) {
    const sl_wide p0 = sl_wide_product (x[v][0], m0);
    const sl_wide p1 = sl_wide_product (x[v][2], m1);
    x[v][0] = (p1 >> 32) ^ (x[v][1] ^ key[0]);
    x[v][2] = (p0 >> 32) ^ (x[v][3] ^ key[1]);
    x[v][1] = p1;
    x[v][3] = p0;
  }
}

/* The lanes of a and b interleaved: the first half, the second half. */
#if SL_WIDE_BYTES == 64
#define SL_INTERLEAVE_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define SL_INTERLEAVE_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif SL_WIDE_BYTES == 32
#define SL_INTERLEAVE_LOW 0, 4, 1, 5
#define SL_INTERLEAVE_HIGH 2, 6, 3, 7
#else
#define SL_INTERLEAVE_LOW 0, 2
#define SL_INTERLEAVE_HIGH 1, 3
#endif

/* words (counters, 4) */
static inline void sl_philox_store (const sl_wide x[4], uint32_t *words) {
  const sl_wide low = (sl_wide){ 0 } + 0xffffffffu;
  const sl_wide a = (x[0] & low) | x[1] << 32, b = (x[2] & low) | x[3] << 32;
  const sl_wide first = SL_SHUFFLE (sl_wide, a, b, SL_INTERLEAVE_LOW);
  const sl_wide second = SL_SHUFFLE (sl_wide, a, b, SL_INTERLEAVE_HIGH);
  memcpy (words, &first, sizeof first);
  memcpy (words + 2 * SL_PHILOX_LANES, &second, sizeof second);
}

static inline void sl_philox_batch (const sl_draw *at, uint32_t stream,
                                    const sl_round_keys *keys,
                                    const uint32_t *c0, const uint32_t *c1,
                                    uint32_t *words) {
  /* Three independent vectors hide the latency of a round's products and still
  ** fit sixteen registers. */
  enum { AT_ONCE = 3 };
  for (int i = 0; i < SL_PHILOX_BATCH; i += AT_ONCE * SL_PHILOX_LANES) {
    sl_wide x[AT_ONCE][4];
#pragma GCC unroll 3
    for (int v = 0; v < AT_ONCE; v++) {
      x[v][0] = sl_wide_load (c0 + i + v * SL_PHILOX_LANES);
      x[v][1] = sl_wide_load (c1 + i + v * SL_PHILOX_LANES);
      x[v][2] = (sl_wide){ 0 } + at->step;
      x[v][3] = (sl_wide){ 0 } + stream;
    }
#pragma GCC unroll 10
    for (int round = 0; round < SL_ROUNDS; round++)
      sl_philox_round (keys->k[round], AT_ONCE, x);
#pragma GCC unroll 3
    for (int v = 0; v < AT_ONCE; v++)
      sl_philox_store (x[v], words + 4 * (i + v * SL_PHILOX_LANES));
  }
}
#else
typedef uint64_t sl_round_keys; /* the rounds add to it */

static inline sl_round_keys sl_philox_keys (uint64_t key) {
  return key;
}

/* The halves of a product are two expressions: compilers vectorise them better
** than one 64-bit product that is split. */
static inline void sl_philox_batch (const sl_draw *at, uint32_t stream,
                                    const sl_round_keys *keys,
                                    const uint32_t *c0, const uint32_t *c1,
                                    uint32_t *restrict words) {
  uint32_t k0 = (uint32_t)*keys, k1 = (uint32_t)(*keys >> 32);
  uint32_t x[4][SL_PHILOX_BATCH];
  for (int i = 0; i < SL_PHILOX_BATCH; i++) {
    x[0][i] = c0[i];
    x[1][i] = c1[i];
    x[2][i] = at->step;
    x[3][i] = stream;
  }
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < SL_PHILOX_BATCH; i++) {
      const uint32_t a = x[0][i], b = x[2][i];
      x[0][i] = (uint32_t)((uint64_t)SL_PHILOX_M1 * b >> 32) ^ x[1][i] ^ k0;
      x[2][i] = (uint32_t)((uint64_t)SL_PHILOX_M0 * a >> 32) ^ x[3][i] ^ k1;
      x[1][i] = SL_PHILOX_M1 * b;
      x[3][i] = SL_PHILOX_M0 * a;
    }
    k0 += SL_PHILOX_W0;
    k1 += SL_PHILOX_W1;
  }
  for (int i = 0; i < SL_PHILOX_BATCH; i++)
    for (int k = 0; k < 4; k++) words[4 * i + k] = x[k][i];
}
#endif

/* Four words for each of n counters { c0[i], c1[i], step, stream } under the
** key 'seed'; n is a multiple of SL_PHILOX_BATCH. */
static inline void sl_philox_many (const sl_draw *at, uint32_t stream, int n,
                                   const uint32_t *c0, const uint32_t *c1,
                                   uint32_t *words) {
  const sl_round_keys keys = sl_philox_keys (at->seed);
  for (int i = 0; i < n; i += SL_PHILOX_BATCH)
    sl_philox_batch (at, stream, &keys, c0 + i, c1 + i, words + 4 * i);
}
#endif
