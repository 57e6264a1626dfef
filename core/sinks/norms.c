/* norms.c - norms of keys, of values, and of values through W_O. */
#include "base/memory.h"
#include "sinks/worker_sums.h"
#include <math.h>
#include <string.h>

int sl_output_room (sl_worker_sums *p, const sl_weight_rows *r, int layer) {
  const sl_tensor *w = p->output[layer];
  const size_t heads = (size_t)p->m->heads;
  size_t count;
  int d_value;
  if (w == NULL || r->value == NULL) return 1;
  d_value = (int)((size_t)w->dim[1] / heads);
  if (sl_worker_sums_misfit (p, 5, r->d_value != d_value,
                             "numbers in a head's value", r->d_value, d_value))
    return 0;
  if (p->output_layer == layer) return 1;
  p->output_layer = -1;
  p->d_model = (int)w->dim[0];
  p->d_value = d_value;
  p->width = p->d_model;
  if (p->m->measures & SL_MEASURE_NORMS && p->d_model > p->d_value &&
      p->m->tokens > 2 * p->d_value)
    p->width = p->d_value;
  sl_free (p->w);
  p->w = NULL;
  if (sl_size_mul ((size_t)w->dim[1], (size_t)p->d_model, &count) == 0)
    p->w = sl_alloc (count, sizeof *p->w);
  memset (p->loaded, 0, heads);
  p->no_memory |= p->w == NULL;
  if (p->w == NULL) return 0;
  p->output_layer = layer;
  return 1;
}

static void note_no_memory (sl_worker_sums *p) {
  pthread_mutex_lock (&p->shared);
  p->no_memory = 1;
  pthread_mutex_unlock (&p->shared);
}

/* Columns head * d .. of w, in double. */
static void read_output (const sl_tensor *w, int head, size_t d, double *x) {
  const sl_dtype dtype = w->storage->dtype;
  const sl_scan_kernels *scan = sl_scan_pick (dtype);
  sl_tensor own = *w;
  sl_view v;
  own.dim[1] = (ptrdiff_t)d;
  own.offset += (ptrdiff_t)head * own.dim[1] * own.stride[1];
  v = sl_tensor_view (&own);
  if (own.stride[1] != 1) {
    sl_tensor_to_doubles (&own, x);
    return;
  }
  for (ptrdiff_t i = 0; i < own.dim[0]; i++)
    scan->widen ((const char *)v.data +
                     i * own.stride[0] * (ptrdiff_t)sl_dtype_size (dtype),
                 (int)d, x + (size_t)i * d);
}

/* A head's part of W_O becomes double, transposed. Where the norms of many
** values are wanted, its vectors become shorter ones that give the same norms.
** NULL: no memory. */
static const double *load_output (const sl_row_place *a, int head) {
  sl_worker_sums *p = a->p;
  const size_t d = (size_t)p->d_value, n = (size_t)p->d_model;
  double *w = p->w + (size_t)head * d * n, *x;
  if (p->loaded[head]) return w;
  x = sl_alloc (d * n, sizeof *x);
  if (x == NULL) {
    note_no_memory (p);
    return NULL;
  }
  read_output (p->output[p->output_layer], head, d, x);
  for (size_t i = 0; i < n; i += 8) /* a cache line of w */
    for (size_t j = 0; j < d; j++)
      for (size_t k = i; k < n && k < i + 8; k++) w[j * n + k] = x[k * d + j];
  if (p->width < p->d_model) {
    a->scan->shorten (w, p->d_value, p->d_model, x);
    memcpy (w, x, d * d * sizeof *w);
  }
  sl_free (x);
  p->loaded[head] = 1;
  return w;
}

static const void *token_at (const sl_row_place *a, const void *x,
                             ptrdiff_t stride, int token) {
  const ptrdiff_t row = (ptrdiff_t)(a->p->m->registers + token) * stride;
  return (const char *)x + row * (ptrdiff_t)sl_dtype_size (a->r->dtype);
}

double sl_output_norm (const sl_row_place *a, int layer, int token) {
  const sl_worker_sums *p = a->p;
  const sl_weight_rows *r = a->r;
  const double *w = NULL;
  if (r->value != NULL && p->output[layer] != NULL)
    w = load_output (a, (int)(a->head % (size_t)p->m->heads));
  if (w == NULL) return NAN;
  return a->scan->norm (token_at (a, r->value, r->value_stride, token),
                        r->value_step, r->d_value, w, p->width,
                        p->width < p->d_model);
}

static double plain_norm (const sl_row_place *a, const void *x,
                          ptrdiff_t stride, ptrdiff_t step, int d, int token) {
  if (x == NULL) return NAN;
  return a->scan->norm (token_at (a, x, stride, token), step, d, NULL, 0, 0);
}

void sl_measure_norms (const sl_row_place *a, int layer) {
  sl_worker_sums *p = a->p;
  const sl_weight_rows *r = a->r;
  const size_t tokens = (size_t)p->m->tokens;
  double *const key = sl_alloc (3 * tokens, sizeof *key);
  int begin, end, from, to;
  if (key == NULL) {
    note_no_memory (p);
    return;
  }
  double *const value = key + tokens, *const output = value + tokens;
  sl_valid_range (p->m, a->sample, &begin, &end);
  if (end > r->t - p->m->registers) end = r->t - p->m->registers;
  for (; begin < end; begin = to) {
    sl_segment_of (p->m, a->sample, begin, &from, &to);
    if (to > end) to = end;
    for (int j = begin; j < to; j++) {
      key[j - begin] =
          plain_norm (a, r->key, r->key_stride, r->key_step, r->d_key, j);
      value[j - begin] = plain_norm (a, r->value, r->value_stride,
                                     r->value_step, r->d_value, j);
      output[j - begin] = sl_output_norm (a, layer, j);
    }
    sl_key_sums_norms (&p->keys, a->head, to - begin, key, value, output);
    sl_segment_measure_add (&(sl_segment_facts){ .m = p->m,
                                                 .n = to - begin,
                                                 .key = key,
                                                 .value = value,
                                                 .output = output },
                            SL_MEASURE_NORMS, &a->sums->segment);
  }
  sl_free (key);
}
