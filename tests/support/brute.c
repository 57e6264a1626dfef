/* brute.c - attention by its definition: see brute.h. */
#include "support/brute.h"
#include "base/memory.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>

static double *draw (size_t n, unsigned *state) {
  double *x = sl_alloc (n, sizeof *x);
  ck_assert_ptr_nonnull (x);
  for (size_t i = 0; i < n; i++) {
    *state = *state * 1664525u + 1013904223u;
    x[i] = (*state >> 8) / 8388608.0 - 1;
  }
  return x;
}

void brute_start (brute *b, unsigned seed) {
  size_t tokens = (size_t)(b->batch * b->t);
  size_t q = tokens * (size_t)(b->heads * b->d);
  size_t k = tokens * (size_t)(b->kv_heads * b->d);
  size_t v = tokens * (size_t)(b->kv_heads * b->dv);
  size_t o = tokens * (size_t)(b->heads * b->dv);
  b->q = draw (q, &seed);
  b->k = draw (k, &seed);
  b->v = draw (v, &seed);
  b->dout = draw (o, &seed);
  b->out = sl_alloc (o, sizeof (double));
  b->dq = sl_alloc (q, sizeof (double));
  b->dk = sl_alloc (k, sizeof (double));
  b->dvalue = sl_alloc (v, sizeof (double));
  b->weights = sl_alloc (tokens * (size_t)(b->heads * b->t), sizeof (double));
  ck_assert (b->out && b->dq && b->dk && b->dvalue && b->weights);
}

void brute_free (brute *b) {
  double *all[] = { b->q,  b->k,  b->v,      b->dout,   b->out,
                    b->dq, b->dk, b->dvalue, b->weights };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sl_free (all[i]);
}

/* The definition of visibility, not its ranges. */
static int sees (const brute *b, int i, int j, int n) {
  const int w = b->visibility.window;
  if (i >= n || j >= n) return 0;
  if (b->visibility.causal && j > i) return 0;
  return w == 0 || abs (i - j) < w;
}

static double slope (const brute *b, int h) {
  double all[64];
  if (!b->alibi) return 0;
  sl_alibi_slopes (b->heads, all);
  return all[h];
}

/* One query of one head: weights, output, and gradients added. */
static void query (brute *b, int s, int h, int i, int n) {
  const int g = h / (b->heads / b->kv_heads);
  const ptrdiff_t token = (ptrdiff_t)s * b->t;
  const double *q = b->q + ((token + i) * b->heads + h) * b->d;
  double *dq = b->dq + ((token + i) * b->heads + h) * b->d;
  const double *dout = b->dout + ((token + i) * b->heads + h) * b->dv;
  double *out = b->out + ((token + i) * b->heads + h) * b->dv;
  double *w = b->weights + (((ptrdiff_t)s * b->heads + h) * b->t + i) * b->t;
  double score[256], dw[256], sum = 0, dot = 0, max = -INFINITY;
  int earlier = 0;
#define KEY(j) (b->k + ((token + j) * b->kv_heads + g) * b->d)
#define VALUE(j) (b->v + ((token + j) * b->kv_heads + g) * b->dv)
  for (int j = 0; j < b->t; j++) {
    score[j] = 0;
    for (int c = 0; c < b->d; c++) score[j] += q[c] * KEY (j)[c];
    score[j] = b->scale * score[j] - slope (b, h) * abs (i - j);
    if (sees (b, i, j, n)) max = fmax (max, score[j]);
    earlier += sees (b, i, j, n) && j < i;
  }
  for (int j = 0; j < b->t; j++) {
    w[j] = 0;
    if (!sees (b, i, j, n)) continue;
    w[j] = b->relu ? fmax (score[j], 0) / (earlier > 1 ? earlier : 1)
                   : exp (score[j] - max);
    sum += w[j];
  }
  for (int j = 0; j < b->t && !b->relu; j++)
    if (sum > 0) w[j] /= sum;
  for (int j = 0; j < b->t; j++) {
    dw[j] = 0;
    for (int c = 0; c < b->dv; c++) {
      if (w[j] != 0) out[c] += w[j] * VALUE (j)[c];
      dw[j] += dout[c] * VALUE (j)[c];
      b->dvalue[VALUE (j) - b->v + c] += w[j] * dout[c];
    }
    if (sees (b, i, j, n)) dot += w[j] * dw[j];
  }
  for (int j = 0; j < b->t; j++) {
    double ds = b->relu ? (score[j] > 0) * dw[j] / (earlier > 1 ? earlier : 1)
                        : w[j] * (dw[j] - dot);
    if (!sees (b, i, j, n)) continue;
    for (int c = 0; c < b->d; c++) {
      dq[c] += b->scale * ds * KEY (j)[c];
      b->dk[KEY (j) - b->k + c] += b->scale * ds * q[c];
    }
  }
#undef KEY
#undef VALUE
}

void brute_run (brute *b) {
  for (int s = 0; s < b->batch; s++) {
    const double l = b->length ? b->length[s] : b->t;
    const int n = l > b->t ? b->t : l > 0 ? (int)l : 0;
    for (int h = 0; h < b->heads; h++)
      for (int i = 0; i < b->t; i++) query (b, s, h, i, n);
  }
}
