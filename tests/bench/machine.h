/* machine.h - what the machine attains: the yardsticks of the benchmark. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H
#include "base/error.h"
#include "base/pool.h"

/* Numeric code, one per precision and instruction set: a loop of multiply-adds
** on as many independent vectors as hide its latency. Runs 'rounds' rounds and
** returns the operations that are (two a multiply-add); *sink keeps the
** compiler from dropping them. */
typedef struct bench_peak {
  double (*multiply_add) (long rounds, double *sink);
} bench_peak;

/* Worker i of the pool to processor number i of those that this process had at
** its start. -1 where the system cannot. */
int bench_pin (sl_pool *pool);

/* Multiply-adds of f32 on all workers at once for about 'seconds': operations a
** second, in all. */
double bench_peak_rate (sl_pool *pool, double seconds);

/* OpenBLAS, if it can be loaded: operations a second of n x n x n products on
** 'threads' threads, and the name of the kernel it chose. */
int bench_sgemm (int n, int threads, double seconds, double *rate,
                 char kernel[64], sl_error *e);
#endif
