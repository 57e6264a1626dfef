/* random.h - a counter-based generator: a value depends on its position in
** the stream, not on earlier draws. Philox4x32-10 (Salmon et al., SC 2011). */
#ifndef SL_RANDOM_H
#define SL_RANDOM_H
#include <stdint.h>

/* The position of a run in the random stream. A draw of a tensor whose first
** axis counts samples takes value i of sample s from the counter
** { i / 4, first_sample + s, step, stream } under the key 'seed', so the
** numbers do not depend on how a batch is cut or on which thread draws them. */
typedef struct sl_draw {
  uint64_t seed;
  uint32_t step;
  uint32_t first_sample;
} sl_draw;

/* Four words from a counter and a key. */
void sl_philox (uint64_t key, const uint32_t counter[4], uint32_t out[4]);

/* Uniform on [0, 1) with 53 bits from two words. */
double sl_uniform53 (uint32_t hi, uint32_t lo);
#endif
