/* position.c - who sees whom, ALiBi slopes, sinusoidal tables. */
#include "attention/kernels.h"
#include <math.h>

void sl_visible (const sl_visibility *v, int i, int n, int *lo, int *hi) {
  int w = v->window;
  *lo = *hi = 0;
  if (i < 0 || i >= n) return;
  *hi = v->causal ? i + 1 : n;
  if (w == 0) return;
  if (w <= i) *lo = i - w + 1;
  if (w < *hi - i) *hi = i + w;
}

int sl_valid_tokens (double length, int t) {
  if (!(length > 0)) return 0;
  return length < t ? (int)length : t;
}

/* 2^(-8 i / H), i = 1..H, for H a power of two. */
static void slopes_of_power (int heads, int count, int step, double *slopes) {
  for (int i = 0; i < count; i++)
    slopes[i] = exp2 (-8.0 * (1 + (double)step * i) / heads);
}

/* Otherwise those of the power of two below, then every second one of those of
** the power above, from its first (Press et al. 2022, arXiv 2108.12409; the rule
** for other numbers is that of their released code). */
void sl_alibi_slopes (int heads, double *slopes) {
  int power = 1;
  if (heads < 1) return;
  while (power <= heads / 2) power *= 2;
  slopes_of_power (power, power, 1, slopes);
  slopes_of_power (2 * power, heads - power, 2, slopes + power);
}

/* Angles are formed in double whatever the precision of the table. */
void sl_sinusoidal (ptrdiff_t positions, ptrdiff_t d, double *table) {
  for (ptrdiff_t p = 0; p < positions; p++)
    for (ptrdiff_t i = 0; i < d; i++) {
      double angle =
          (double)p * pow (10000.0, -(double)(i / 2 * 2) / (double)d);
      table[p * d + i] = i % 2 ? cos (angle) : sin (angle);
    }
}
