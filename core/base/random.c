/* random.c - Philox4x32-10 and its words as uniform numbers. */
#include "base/random.h"

/* Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
** SC 2011, table 2 and section 4.3: ten rounds, multipliers M0 and M1, the key
** bumped by the Weyl constants W0 and W1 between rounds. */
void sl_philox (uint64_t key, const uint32_t counter[4], uint32_t out[4]) {
  const uint64_t m0 = 0xD2511F53, m1 = 0xCD9E8D57;
  const uint32_t w0 = 0x9E3779B9, w1 = 0xBB67AE85;
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = m0 * c0, p1 = m1 * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += w0, k1 += w1;
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

double sl_uniform53 (uint32_t hi, uint32_t lo) {
  uint64_t bits = ((uint64_t)hi << 32 | lo) >> 11;
  return (double)bits * 0x1p-53;
}
