/* worker_sums.c - adds rows of weights to the sums of their heads. */
#include "sinks/worker_sums.h"
#include "base/memory.h"
#include "base/number.h"
#include <math.h>
#include <string.h>

/* ---- state that heads share ---- */

int sl_worker_sums_misfit (sl_worker_sums *p, int rank, int wrong,
                           const char *what, long got, long allowed) {
  sl_misfit *m = &p->misfit;
  const int lower = m->call == p->call &&
                    (rank < m->rank || (rank == m->rank && got < m->got));
  if (wrong && (m->what == NULL || lower))
    *m = (sl_misfit){ what, got, allowed, p->call, rank };
  return wrong;
}

/* Layer and head of the batch that the rows are of. */
static void locate (sl_worker_sums *p, const sl_weight_rows *r, int *layer,
                    int *head) {
  *layer = r->layer;
  *head = r->head;
  if (!p->calls) return;
  if (r->layer != p->call) p->layer++;
  p->call = r->layer;
  *layer = p->layer;
  *head += p->head;
}

static int fits (sl_worker_sums *p, const sl_weight_rows *r, int layer,
                 int head, long sample) {
  const sl_measuring *m = p->m;
  const int tokens = r->t - m->registers;
  const int wrong =
      p->calls ? tokens < 1 || tokens > m->tokens : tokens != m->tokens;
  return !(sl_worker_sums_misfit (p, 0, layer >= m->layers, "attention layers",
                                  layer + 1, m->layers) ||
           sl_worker_sums_misfit (p, 1, wrong, "tokens", tokens, m->tokens) ||
           sl_worker_sums_misfit (p, 2, r->virtual_keys != m->virtual_keys,
                                  "keys before the tokens", r->virtual_keys,
                                  m->virtual_keys) ||
           sl_worker_sums_misfit (p, 3, head >= m->heads, "heads", head + 1,
                                  m->heads) ||
           sl_worker_sums_misfit (p, 4, sample < 0 || sample >= p->n, "samples",
                                  p->first + sample + 1, p->first + p->n));
}

/* Where threads meet. 0: the rows are not measured. */
static int enter (sl_worker_sums *p, const sl_weight_rows *r, long sample,
                  int *layer, int *head) {
  int good;
  pthread_mutex_lock (&p->shared);
  locate (p, r, layer, head);
  good = fits (p, r, *layer, *head, sample) && sl_output_room (p, r, *layer) &&
         p->misfit.what == NULL && !p->no_memory;
  pthread_mutex_unlock (&p->shared);
  return good;
}

/* ---- segments ---- */

static void close_segment (sl_worker_sums *p, sl_accumulator *t, size_t head,
                           size_t open) {
  const int begin = t->begin, n = t->end - begin;
  sl_segment_facts f = { .m = p->m,
                         .n = n,
                         .first = t->column / (double)t->used,
                         .over_rowsum = t->column_over_rowsum / (double)t->used,
                         .norm = t->norm };
  t->begin = t->end = 0;
  if (n == 0 || t->used == 0) return;
  t->segments++;
  sl_segment_measure_add (&f, SL_MEASURE_ROWS, &t->segment);
  if (p->m->measures & SL_MEASURE_COLUMNS) {
    const sl_columns c = sl_open_columns_at (&p->columns, open, begin);
    sl_columns_finish (&c, n);
    f.columns = &c;
    sl_segment_measure_add (&f, SL_MEASURE_COLUMNS, &t->segment);
    sl_key_sums_columns (&p->keys, head, &c, n, p->m->threshold);
  }
}

static void open_segment (const sl_row_place *a, int query) {
  sl_worker_sums *p = a->p;
  sl_accumulator *t = a->sums;
  const int tokens = a->r->t - p->m->registers;
  close_segment (p, t, a->head, a->open);
  sl_segment_of (p->m, a->sample, query, &t->begin, &t->end);
  if (t->end > tokens) t->end = tokens;
  t->column = t->column_over_rowsum = 0;
  t->used = 0;
  t->norm = sl_output_norm (a, (int)(a->head / (size_t)p->m->heads), t->begin);
  if (p->m->measures & SL_MEASURE_COLUMNS) {
    const sl_columns c = sl_open_columns_at (&p->columns, a->open, t->begin);
    sl_columns_clear (&c, t->end - t->begin);
  }
}

/* ---- rows ---- */

/* Score on position 1 less the mean of those on positions 2 to i - 1. */
static double sink_logit (const sl_row_place *a, const void *scores, int query,
                          int lo, int hi) {
  const int first = a->token + a->sums->begin, self = a->token + query;
  const int from = sl_max_int (lo, first + 1), to = sl_min_int (self, hi);
  if (scores == NULL || lo > first || first >= hi || from >= to) return NAN;
  return a->scan->sum (scores, first, first + 1) -
         a->scan->sum (scores, from, to) / (to - from);
}

/* |A| on the first keys, if this is one of the last rows of its segment. */
static void add_shares (const sl_row_place *a, const void *w,
                        const sl_scan *scan, int query, int lo, int hi) {
  sl_accumulator *t = a->sums;
  const int first = a->token + t->begin;
  const double all = scan->size + scan->virtual_size;
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

static void add_group (const sl_row_place *a, int query, const double *x) {
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
static double add_columns (const sl_row_place *a, const void *w, int query,
                           int lo, int hi, double size) {
  const sl_worker_sums *p = a->p;
  const int begin = a->sums->begin, segment = a->token + begin;
  const int self = a->token + query;
  int first = lo > segment ? lo : segment, last = hi < self + 1 ? hi : self + 1;
  sl_columns c;
  if (first >= last) first = last = lo;
  if (!(p->m->measures & SL_MEASURE_COLUMNS))
    return a->scan->entropy (w, lo, hi, size, first, last, NULL);
  sl_open_columns_at (&p->columns, a->open, query).rows[0] = 1;
  c = sl_open_columns_at (&p->columns, a->open,
                          first < last ? begin + (first - segment) : begin);
  return a->scan->entropy (w, lo, hi, size, first, last, &c);
}

/* A valid row that sees columns lo..hi-1 of w. */
static void add_row (const sl_row_place *a, int query, const void *w,
                     const void *scores, int lo, int hi) {
  sl_worker_sums *p = a->p;
  sl_accumulator *t = a->sums;
  const int first = a->token + t->begin;
  sl_row_facts f = { .norm = t->norm, .logit = NAN, .keys = hi - lo };
  double x[SL_MOST_ROW_MEASURES];
  sl_row_class class;
  a->scan->row (w, lo, hi, a->token, &f.scan);
  f.scan.entropy =
      add_columns (a, w, query, lo, hi, f.scan.size + f.scan.virtual_size);
  f.tokens = hi - (lo > a->token ? lo : a->token);
  if (lo <= first && first < hi) f.first = a->scan->sum (w, first, first + 1);
  if (p->m->measures & SL_MEASURE_LOGITS)
    f.logit = sink_logit (a, scores, query, lo, hi);
  sl_row_measure_all (&f, x);
  class = sl_class_of (p->m, a->sample, query, t->begin);
  sl_accumulator_row (t, class, x);
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

void sl_worker_sums_watch (void *part, const sl_weight_rows *r) {
  sl_worker_sums *p = part;
  const sl_measuring *m = p->m;
  sl_row_place a = { .p = p, .r = r, .scan = sl_scan_pick (r->dtype) };
  const long sample = p->calls ? r->sample : r->sample - p->first;
  const ptrdiff_t stride = r->stride * (ptrdiff_t)sl_dtype_size (r->dtype);
  int layer, head, begin, end;
  if (!enter (p, r, sample, &layer, &head)) return;
  a.head = (size_t)(layer * m->heads + head);
  a.open = (size_t)sample * p->per_sample + a.head;
  a.sums = &p->open[a.open];
  a.sample = p->first + sample;
  a.token = m->virtual_keys + m->registers;
  if (a.sums->blocks++ == 0 && (m->measures & SL_MEASURE_NORMS))
    sl_measure_norms (&a, layer);
  sl_valid_range (m, a.sample, &begin, &end);
  if (end > r->length - m->registers) end = r->length - m->registers;
  for (int i = 0; i < r->rows; i++) {
    const int query = r->row + i - m->registers;
    const ptrdiff_t at = (ptrdiff_t)i * stride;
    if (query < begin || query >= end) continue;
    if (r->lo[i] >= r->hi[i]) {
      a.sums->masked++;
      continue;
    }
    if (query >= a.sums->end || query < a.sums->begin) open_segment (&a, query);
    add_row (&a, query, (const char *)r->weights + at,
             r->scores ? (const char *)r->scores + at : NULL, r->lo[i],
             r->hi[i]);
  }
}

void sl_worker_sums_begin (sl_worker_sums *p, long first, long n) {
  p->first = first;
  p->n = n;
  for (size_t i = 0; i < (size_t)n * p->per_sample; i++)
    sl_accumulator_reset (&p->open[i]);
}

/* Keeps the first head of a sample that is shown a second time: it would count
** twice, and stand for another one that was left out. */
static void note_shown (sl_worker_sums *p, long sample, size_t head) {
  const size_t bit = (size_t)sample * p->per_sample + head;
  const unsigned char mask = (unsigned char)(1 << bit % 8);
  if (p->shown[bit / 8] & mask && p->again == 0) {
    p->again = sample + 1;
    p->again_head = head;
  }
  p->shown[bit / 8] |= mask;
}

int sl_worker_sums_end (sl_worker_sums *p) {
  if (p->misfit.what != NULL || p->no_memory) return -1;
  for (long i = 0; i < p->n; i++)
    for (size_t h = 0; h < p->per_sample; h++) {
      const size_t open = (size_t)i * p->per_sample + h;
      sl_accumulator *t = &p->open[open];
      if (t->blocks == 0) continue;
      close_segment (p, t, h, open);
      sl_accumulator_merge (&p->total[h], t);
      p->samples[h]++;
      if (p->calls) note_shown (p, p->first + i, h);
    }
  return p->again ? -1 : 0;
}

void sl_worker_sums_merge (sl_worker_sums *into, const sl_worker_sums *p) {
  const size_t groups = p->per_sample * (size_t)p->m->labels.groups;
  for (size_t h = 0; h < p->per_sample; h++) {
    sl_accumulator_merge (&into->total[h], &p->total[h]);
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

int sl_worker_sums_init (sl_worker_sums *p) {
  pthread_mutex_init (&p->shared, NULL);
  p->loaded = sl_alloc ((size_t)p->m->heads, 1);
  return p->loaded ? 0 : -1;
}

void sl_worker_sums_free (sl_worker_sums *p) {
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
