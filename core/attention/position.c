/* position.c - visible keys, the scale of scores, ALiBi slopes, sinusoidal
** tables. */
#include "attention/plan.h"
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

double sl_default_scale (int d_head) {
  return d_head > 0 ? 1 / sqrt (d_head) : 1;
}

/* For H a power of two 2^(-8 i / H), i = 1..H; otherwise those of the power of
** two below H, then every second one of those of the power above, from its
** first (Press et al. 2022, arXiv 2108.12409; the rule for other numbers is
** that of their released code). */
double sl_alibi_slope (int heads, int i) {
  int power = 1;
  while (power <= heads / 2) power *= 2;
  if (i < power) return exp2 (-8.0 * (i + 1) / power);
  return exp2 (-4.0 * (2.0 * (i - power) + 1) / power);
}

void sl_alibi_slopes (int heads, double *slopes) {
  for (int i = 0; i < heads; i++) slopes[i] = sl_alibi_slope (heads, i);
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
