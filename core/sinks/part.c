/* part.c - rows go by, and are added to the sums of their heads. */
#include "sinks/part.h"
#include "base/memory.h"
#include "base/number.h"
#include <math.h>
#include <string.h>

/* Where the rows at hand belong. */
typedef struct place {
  sl_part *p;
  const sl_weight_rows *r;
  const sl_scan_kernels *scan;
  sl_tally *tally;
  size_t head, open; /* of all layers; of all that are open */
  long sample;
  int token; /* column of token 0 of the batch */
} place;

/* ---- what heads share ---- */

/* Notes what is wrong, if something is; returns whether there is anything. */
static int misfits (sl_part *p, int rank, int wrong, const char *what, long got,
                    long allowed) {
  sl_misfit *m = &p->misfit;
  const int lower = m->call == p->call &&
                    (rank < m->rank || (rank == m->rank && got < m->got));
  if (wrong && (m->what == NULL || lower))
    *m = (sl_misfit){ what, got, allowed, p->call, rank };
  return wrong;
}

/* Layer and head of the batch that the rows are of. */
static void locate (sl_part *p, const sl_weight_rows *r, int *layer,
                    int *head) {
  *layer = r->layer;
  *head = r->head;
  if (!p->calls) return;
  if (r->layer != p->call) p->layer++;
  p->call = r->layer;
  *layer = p->layer;
  *head += p->head;
}

static int fits (sl_part *p, const sl_weight_rows *r, int layer, int head,
                 long sample) {
  const sl_measuring *m = p->m;
  const int tokens = r->t - m->registers;
  const int wrong =
      p->calls ? tokens < 1 || tokens > m->tokens : tokens != m->tokens;
  return !(misfits (p, 0, layer >= m->layers, "attention layers", layer + 1,
                    m->layers) ||
           misfits (p, 1, wrong, "tokens", tokens, m->tokens) ||
           misfits (p, 2, r->virtual_keys != m->virtual_keys,
                    "keys before the tokens", r->virtual_keys,
                    m->virtual_keys) ||
           misfits (p, 3, head >= m->heads, "heads", head + 1, m->heads) ||
           misfits (p, 4, sample < 0 || sample >= p->n, "samples",
                    p->first + sample + 1, p->first + p->n));
}

/* Room for the W_O of this layer, of which no head's part is there yet. */
static int make_room (sl_part *p, const sl_weight_rows *r, int layer) {
  const sl_tensor *w = p->output[layer];
  const size_t heads = (size_t)p->m->heads;
  size_t count;
  int d_value;
  if (w == NULL || r->value == NULL) return 1;
  d_value = (int)((size_t)w->dim[1] / heads);
  if (misfits (p, 5, r->d_value != d_value, "numbers in a head's value",
               r->d_value, d_value))
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

/* Where threads meet. 0: the rows are not measured. */
static int enter (sl_part *p, const sl_weight_rows *r, long sample, int *layer,
                  int *head) {
  int good;
  pthread_mutex_lock (&p->shared);
  locate (p, r, layer, head);
  good = fits (p, r, *layer, *head, sample) && make_room (p, r, *layer) &&
         p->misfit.what == NULL && !p->no_memory;
  pthread_mutex_unlock (&p->shared);
  return good;
}

static void note_no_memory (sl_part *p) {
  pthread_mutex_lock (&p->shared);
  p->no_memory = 1;
  pthread_mutex_unlock (&p->shared);
}

/* ---- norms ---- */

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
static const double *load_output (const place *a, int head) {
  sl_part *p = a->p;
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

static const void *token_at (const place *a, const void *x, ptrdiff_t stride,
                             int token) {
  const ptrdiff_t row = (ptrdiff_t)(a->p->m->registers + token) * stride;
  return (const char *)x + row * (ptrdiff_t)sl_dtype_size (a->r->dtype);
}

/* || W_O^h v || of a token; NaN without W_O or values. */
static double output_norm (const place *a, int layer, int token) {
  const sl_part *p = a->p;
  const sl_weight_rows *r = a->r;
  const double *w = NULL;
  if (r->value != NULL && p->output[layer] != NULL)
    w = load_output (a, (int)(a->head % (size_t)p->m->heads));
  if (w == NULL) return NAN;
  return a->scan->norm (token_at (a, r->value, r->value_stride, token),
                        r->value_step, r->d_value, w, p->width,
                        p->width < p->d_model);
}

static double plain_norm (const place *a, const void *x, ptrdiff_t stride,
                          ptrdiff_t step, int d, int token) {
  if (x == NULL) return NAN;
  return a->scan->norm (token_at (a, x, stride, token), step, d, NULL, 0, 0);
}

/* Norms of all tokens of all segments, before the first row. */
static void measure_norms (const place *a, int layer) {
  sl_part *p = a->p;
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
      output[j - begin] = output_norm (a, layer, j);
    }
    sl_key_sums_norms (&p->keys, a->head, to - begin, key, value, output,
                       &a->tally->of);
  }
  sl_free (key);
}

/* ---- segments ---- */

static void close_segment (sl_part *p, sl_tally *t, size_t head, size_t open) {
  const int n = t->end - t->begin;
  if (n == 0) return;
  sl_tally_close (t, p->m);
  if (p->keys.column) {
    const sl_columns c = sl_open_columns_at (&p->columns, open, t->begin);
    sl_key_sums_columns (&p->keys, head, &c, n, p->m, &t->of);
  }
  t->begin = t->end = 0;
}

static void open_segment (const place *a, int query) {
  sl_part *p = a->p;
  sl_tally *t = a->tally;
  const int tokens = a->r->t - p->m->registers;
  close_segment (p, t, a->head, a->open);
  sl_segment_of (p->m, a->sample, query, &t->begin, &t->end);
  if (t->end > tokens) t->end = tokens;
  t->column = t->column_over_rowsum = 0;
  t->used = 0;
  t->norm = output_norm (a, (int)(a->head / (size_t)p->m->heads), t->begin);
  if (p->keys.column) {
    const sl_columns c = sl_open_columns_at (&p->columns, a->open, t->begin);
    sl_columns_clear (&c, t->end - t->begin);
  }
}

/* ---- rows ---- */

/* Score on position 1 less the mean of those on positions 2 to i - 1. */
static double sink_logit (const place *a, const void *scores, int query, int lo,
                          int hi) {
  const int first = a->token + a->tally->begin, self = a->token + query;
  const int from = sl_max_int (lo, first + 1), to = sl_min_int (self, hi);
  if (scores == NULL || lo > first || first >= hi || from >= to) return NAN;
  return a->scan->sum (scores, first, first + 1) -
         a->scan->sum (scores, from, to) / (to - from);
}

/* |A| on the first keys, if this is one of the last rows of its segment. */
static void add_shares (const place *a, const void *w, const sl_scan *scan,
                        int query, int lo, int hi) {
  sl_tally *t = a->tally;
  const int first = a->token + t->begin;
  const double all = scan->size + scan->outside_size;
  const int tokens = hi - (lo > a->token ? lo : a->token);
  if (query < t->end - a->p->m->share_rows) return;
  t->share_rows++;
  for (int i = 0; i < SL_SHARES; i++) {
    const int from = sl_max_int (lo, first);
    const int to =
        first + sl_share_keys[i] < hi ? first + sl_share_keys[i] : hi;
    sl_scan some = { 0 };
    if (from >= to) continue;
    a->scan->row (w, from, to, a->token, &some);
    t->share[i] += all == 0 ? 0 : some.size / all;
    t->even[i] += (double)(to - from) / tokens;
    t->largest[i] += some.largest > 0 && some.largest >= scan->largest;
  }
}

static void add_group (const place *a, int query, const double *x) {
  const int group = sl_group_of (a->p->m, a->sample, query);
  sl_group *g;
  if (group < 0) return;
  g = &a->p->group[a->head * (size_t)a->p->m->labels.groups + (size_t)group];
  g->rows++;
  g->first += x[SL_OF_FIRST];
  g->dormant += x[SL_OF_FIRST] >= a->p->m->dormant;
  if (isnan (x[SL_OF_SINK_LOGIT])) return;
  g->logits++;
  g->logit += x[SL_OF_SINK_LOGIT];
}

/* The row's entropy; its weights on the segment up to itself are added to the
** columns. */
static double add_columns (const place *a, const void *w, int query, int lo,
                           int hi, double size) {
  const sl_part *p = a->p;
  const int begin = a->tally->begin, segment = a->token + begin;
  const int self = a->token + query;
  int first = lo > segment ? lo : segment, last = hi < self + 1 ? hi : self + 1;
  sl_columns c;
  if (first >= last) first = last = lo;
  if (!p->keys.column)
    return a->scan->entropy (w, lo, hi, size, first, last, NULL);
  sl_open_columns_at (&p->columns, a->open, query).rows[0] = 1;
  c = sl_open_columns_at (&p->columns, a->open,
                          first < last ? begin + (first - segment) : begin);
  return a->scan->entropy (w, lo, hi, size, first, last, &c);
}

/* A valid row that sees columns lo..hi-1 of w. */
static void add_row (const place *a, int query, const void *w,
                     const void *scores, int lo, int hi) {
  sl_part *p = a->p;
  sl_tally *t = a->tally;
  const int first = a->token + t->begin;
  sl_row_facts f = { .norm = t->norm, .logit = NAN, .keys = hi - lo };
  double x[SL_ROW_MEASURES];
  sl_row_class class;
  a->scan->row (w, lo, hi, a->token, &f.scan);
  f.scan.entropy =
      add_columns (a, w, query, lo, hi, f.scan.size + f.scan.outside_size);
  f.tokens = hi - (lo > a->token ? lo : a->token);
  if (lo <= first && first < hi) f.first = a->scan->sum (w, first, first + 1);
  if (p->m->measures & SL_MEASURE_LOGITS)
    f.logit = sink_logit (a, scores, query, lo, hi);
  sl_row_measure_all (&f, x);
  class = sl_class_of (p->m, a->sample, query, t->begin);
  sl_tally_row (t, class, x);
  if (class == SL_ROW_PLAIN) {
    add_group (a, query, x);
    if (p->m->measures & SL_MEASURE_SHARE)
      add_shares (a, w, &f.scan, query, lo, hi);
  }
  if (p->slot[a->head] >= 0)
    sl_maps_row (&p->maps, p->slot[a->head], query, x[SL_OF_NULL_MASS], w,
                 a->r->dtype, a->r->virtual_keys + a->r->t);
}

/* ---- blocks ---- */

void sl_part_watch (void *part, const sl_weight_rows *r) {
  sl_part *p = part;
  const sl_measuring *m = p->m;
  place a = { .p = p, .r = r, .scan = sl_scan_pick (r->dtype) };
  const long sample = p->calls ? r->sample : r->sample - p->first;
  const ptrdiff_t stride = r->stride * (ptrdiff_t)sl_dtype_size (r->dtype);
  int layer, head, begin, end;
  if (!enter (p, r, sample, &layer, &head)) return;
  a.head = (size_t)(layer * m->heads + head);
  a.open = (size_t)sample * p->per_sample + a.head;
  a.tally = &p->open[a.open];
  a.sample = p->first + sample;
  a.token = m->virtual_keys + m->registers;
  if (a.tally->blocks++ == 0 && (m->measures & SL_MEASURE_NORMS))
    measure_norms (&a, layer);
  sl_valid_range (m, a.sample, &begin, &end);
  if (end > r->length - m->registers) end = r->length - m->registers;
  for (int i = 0; i < r->rows; i++) {
    const int query = r->row + i - m->registers;
    const ptrdiff_t at = (ptrdiff_t)i * stride;
    if (query < begin || query >= end) continue;
    if (r->lo[i] >= r->hi[i]) {
      a.tally->masked++;
      continue;
    }
    if (query >= a.tally->end || query < a.tally->begin)
      open_segment (&a, query);
    add_row (&a, query, (const char *)r->weights + at,
             r->scores ? (const char *)r->scores + at : NULL, r->lo[i],
             r->hi[i]);
  }
}

void sl_part_begin (sl_part *p, long first, long n) {
  p->first = first;
  p->n = n;
  for (size_t i = 0; i < (size_t)n * p->per_sample; i++)
    sl_tally_reset (&p->open[i]);
}

/* Keeps the first head of a sample that is shown a second time: it would count
** twice, and stand for another one that was left out. */
static void note_shown (sl_part *p, long sample, size_t head) {
  const size_t bit = (size_t)sample * p->per_sample + head;
  const unsigned char mask = (unsigned char)(1 << bit % 8);
  if (p->shown[bit / 8] & mask && p->again == 0) {
    p->again = sample + 1;
    p->again_head = head;
  }
  p->shown[bit / 8] |= mask;
}

int sl_part_end (sl_part *p) {
  if (p->misfit.what != NULL || p->no_memory) return -1;
  for (long i = 0; i < p->n; i++)
    for (size_t h = 0; h < p->per_sample; h++) {
      const size_t open = (size_t)i * p->per_sample + h;
      sl_tally *t = &p->open[open];
      if (t->blocks == 0) continue;
      close_segment (p, t, h, open);
      sl_tally_merge (&p->total[h], t);
      p->samples[h]++;
      if (p->calls) note_shown (p, p->first + i, h);
    }
  return p->again ? -1 : 0;
}

void sl_part_merge (sl_part *into, const sl_part *p) {
  const size_t groups = p->per_sample * (size_t)p->m->labels.groups;
  for (size_t h = 0; h < p->per_sample; h++) {
    sl_tally_merge (&into->total[h], &p->total[h]);
    into->samples[h] += p->samples[h];
  }
  for (size_t i = 0; i < groups; i++) {
    into->group[i].rows += p->group[i].rows;
    into->group[i].dormant += p->group[i].dormant;
    into->group[i].logits += p->group[i].logits;
    into->group[i].first += p->group[i].first;
    into->group[i].logit += p->group[i].logit;
  }
  sl_key_sums_merge (&into->keys, &p->keys);
  if (p->maps.heads) sl_maps_merge (&into->maps, &p->maps);
}

int sl_part_init (sl_part *p) {
  pthread_mutex_init (&p->shared, NULL);
  p->loaded = sl_alloc ((size_t)p->m->heads, 1);
  return p->loaded ? 0 : -1;
}

void sl_part_free (sl_part *p) {
  if (p->m == NULL) return;
  pthread_mutex_destroy (&p->shared);
  sl_free (p->loaded);
  sl_free (p->open);
  sl_free (p->total);
  sl_free (p->samples);
  sl_free (p->shown);
  sl_free (p->group);
  sl_free (p->w);
  sl_open_columns_free (&p->columns);
  sl_key_sums_free (&p->keys);
  sl_maps_free (&p->maps);
}
