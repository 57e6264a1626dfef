/* peak.c - as many multiply-adds a second as the instruction set allows. */
#include "bench/machine.h"
#include <sinklab/plugin.h>

/* A register of the instruction set, and how many chains of them hide the
** latency of a multiply-add (at most 5 cycles, two a cycle) without
** spilling. */
#if defined(__AVX512F__)
enum { BYTES = 64, CHAINS = 20 };
#elif defined(__AVX__)
enum { BYTES = 32, CHAINS = 12 };
#else
enum { BYTES = 16, CHAINS = 12 };
#endif
typedef real vec __attribute__ ((vector_size (BYTES)));

static double multiply_add (long rounds, double *sink) {
  enum { LANES = BYTES / sizeof (real), TIMES = 64 };
  vec x[CHAINS], a = { 0 }, b = { 0 };
  a += (real)0.999;
  b += (real)(1e-3 + *sink * 0);
#pragma GCC unroll 20
  for (int k = 0; k < CHAINS; k++) x[k] = b * (real)k;
  for (long r = 0; r < rounds * TIMES; r++) {
#pragma GCC unroll 20
    for (int k = 0; k < CHAINS; k++) x[k] = x[k] * a + b;
    /* the loop stays a loop, its registers registers */
    __asm__ volatile("");
  }
#pragma GCC unroll 20
  for (int k = 1; k < CHAINS; k++) x[0] += x[k];
  for (int l = 0; l < (int)LANES; l++) *sink += (double)x[0][l];
  return 2.0 * LANES * CHAINS * TIMES * (double)rounds;
}

extern const bench_peak SL (bench_peak);
const bench_peak SL (bench_peak) = { multiply_add };
