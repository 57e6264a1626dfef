/* maps.c - mean and spread over samples of every weight of every head. */
#include "base/memory.h"
#include "sinks/accumulator.h"
#include <math.h>
#include <stdint.h>

size_t sl_maps_bytes (size_t heads, int tokens, int columns) {
  size_t rows, count, bytes;
  if (sl_size_mul (heads, (size_t)tokens, &rows) < 0 ||
      sl_size_mul (rows, (size_t)columns, &count) < 0 ||
      sl_size_mul (count, 2 * sizeof (double), &bytes) < 0)
    return SIZE_MAX;
  return bytes;
}

int sl_maps_init (sl_maps *m, size_t heads, int tokens, int columns) {
  const size_t t = (size_t)columns, rows = heads * (size_t)tokens;
  *m = (sl_maps){ .heads = heads, .tokens = tokens, .columns = columns };
  if (sl_maps_bytes (heads, tokens, columns) == SIZE_MAX) return -1;
  m->mean = sl_alloc (rows * t, sizeof *m->mean);
  m->m2 = sl_alloc (rows * t, sizeof *m->m2);
  m->count = sl_alloc (rows, sizeof *m->count);
  return m->mean && m->m2 && m->count ? 0 : -1;
}

void sl_maps_free (sl_maps *m) {
  sl_free (m->mean);
  sl_free (m->m2);
  sl_free (m->count);
}

/* One more sample's weights x of columns first..first+n-1. */
static void add_weights (sl_maps *m, size_t at, size_t n, double share,
                         const double *x) {
  double *restrict mean = m->mean + at;
  double *restrict m2 = m->m2 + at;
  for (size_t j = 0; j < n; j++) {
    const double d = x[j] - mean[j];
    mean[j] += d * share;
    m2[j] += d * (x[j] - mean[j]);
  }
}

void sl_maps_row (sl_maps *m, int head, int query, double null, const void *w,
                  sl_dtype dtype, int shown) {
  enum { CHUNK = 256 };
  static const double zeros[CHUNK];
  const sl_scan_kernels *scan = sl_scan_pick (dtype);
  const size_t row = (size_t)head * (size_t)m->tokens + (size_t)query;
  const size_t at = row * (size_t)m->columns;
  const double share = 1.0 / (double)++m->count[row];
  double x[CHUNK];
  add_weights (m, at, 1, share, &null);
  for (int j = 0; j < m->columns - 1; j += CHUNK) {
    const int most = m->columns - 1 - j < CHUNK ? m->columns - 1 - j : CHUNK;
    const int n = shown - j < most ? shown - j : most;
    const char *from = (const char *)w + (size_t)j * sl_dtype_size (dtype);
    if (n > 0) {
      scan->widen (from, n, x);
      add_weights (m, at + 1 + (size_t)j, (size_t)n, share, x);
    }
    if (n < most)
      add_weights (m, at + 1 + (size_t)(j + (n > 0 ? n : 0)),
                   (size_t)(most - (n > 0 ? n : 0)), share, zeros);
  }
}

/* A row's 'n' samples and nb others with their mean and m2. */
static void merge_row (size_t t, long n, double *mean, double *m2, long nb,
                       const double *mean_b, const double *m2_b) {
  double share;
  if (nb == 0) return;
  share = (double)nb / (double)(n + nb);
  for (size_t j = 0; j < t; j++) {
    const double d = mean_b[j] - mean[j];
    mean[j] += d * share;
    m2[j] += m2_b[j] + d * d * share * (double)n;
  }
}

void sl_maps_merge (sl_maps *into, const sl_maps *m) {
  const size_t t = (size_t)m->columns;
  for (size_t r = 0; r < m->heads * (size_t)m->tokens; r++) {
    merge_row (t, into->count[r], into->mean + r * t, into->m2 + r * t,
               m->count[r], m->mean + r * t, m->m2 + r * t);
    into->count[r] += m->count[r];
  }
}

void sl_maps_result (sl_maps *m) {
  const size_t t = (size_t)m->columns;
  for (size_t r = 0; r < m->heads * (size_t)m->tokens; r++) {
    const long n = m->count[r];
    double *m2 = m->m2 + r * t;
    for (size_t j = 0; j < t; j++)
      m2[j] = n > 1 ? sqrt (m2[j] / (double)(n - 1)) : NAN;
  }
}
