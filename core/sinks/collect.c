/* collect.c - the accumulators behind every measurement: one row at a time. */
#include "sinks/collect.h"
#include "base/memory.h"
#include "sinks/worker_sums.h"
#include <math.h>
#include <string.h>

struct sl_collector {
  sl_collect_spec spec;
  size_t per_sample;        /* layers * heads */
  const sl_tensor **output; /* [layer]: W_O */
  int *slot;                /* [layer * heads + head]: which map; -1: none */
  int kept;
  sl_worker_sums *part;
};

static int fail_memory (sl_error *e) {
  return sl_fail (e, "sinks: no memory for the measurements");
}

/* Of a row: mass on nothing, keys that are no tokens, tokens. */
static int columns_of (const sl_measuring *m) {
  return 1 + m->virtual_keys + m->registers + m->tokens;
}

static size_t kept_heads (const sl_measuring *m) {
  return m->maps ? (size_t)m->layers * (size_t)m->heads : (size_t)m->keeps;
}

size_t sl_collect_bytes (const sl_measuring *m, long shard) {
  const size_t maps = sl_maps_bytes (kept_heads (m), m->tokens, columns_of (m));
  size_t keys;
  if (sl_size_mul ((size_t)m->layers * (size_t)m->heads, (size_t)m->tokens,
                   &keys) < 0 ||
      sl_size_mul (keys, (size_t)shard * sl_key_sums_bytes (m->measures),
                   &keys) < 0 ||
      maps > SIZE_MAX / 2 || keys > SIZE_MAX / 2)
    return SIZE_MAX;
  return maps + keys;
}

int sl_collect_output (sl_collector *c, int layer, const sl_tensor *w,
                       sl_error *e) {
  char text[128];
  const int heads = c->spec.measuring.heads;
  if (w != NULL && (w->ndim != 2 || w->dim[1] % heads != 0 ||
                    w->dim[1] > INT32_MAX || w->dim[0] > INT32_MAX))
    return sl_fail (e,
                    "sinks: W_O of layer %d has shape %s, allowed is (d_model, "
                    "a multiple of %d heads)",
                    layer + 1,
                    sl_shape_text (w->ndim, w->dim, text, sizeof text), heads);
  c->output[layer] = w;
  for (int i = 0; i < c->spec.parts; i++)
    if (c->part[i].output_layer == layer) c->part[i].output_layer = -1;
  return 0;
}

/* Which map belongs to which head. */
static int make_slots (sl_collector *c, sl_error *e) {
  const sl_measuring *m = &c->spec.measuring;
  c->slot = sl_alloc (c->per_sample, sizeof *c->slot);
  if (c->slot == NULL) return fail_memory (e);
  for (size_t i = 0; i < c->per_sample; i++) c->slot[i] = m->maps ? (int)i : -1;
  c->kept = (int)kept_heads (m);
  for (int i = 0; !m->maps && i < m->keeps; i++) {
    int *slot = &c->slot[m->keep[i].layer * m->heads + m->keep[i].head];
    if (*slot >= 0)
      return sl_fail (e, "sinks: layer %d, head %d is to be kept twice",
                      m->keep[i].layer + 1, m->keep[i].head + 1);
    *slot = i;
  }
  return 0;
}

static int make_part (sl_collector *c, sl_worker_sums *p, sl_error *e) {
  const sl_measuring *m = &c->spec.measuring;
  size_t open, groups, shown;
  p->m = m;
  p->output = c->output;
  p->slot = c->slot;
  p->calls = c->spec.calls;
  p->per_sample = c->per_sample;
  p->output_layer = -1;
  p->observer = (sl_observer){ sl_worker_sums_watch, p };
  if (sl_worker_sums_init (p) < 0) return fail_memory (e);
  if (sl_size_mul ((size_t)c->spec.shard, c->per_sample, &open) < 0 ||
      sl_size_mul (c->per_sample, (size_t)m->labels.groups, &groups) < 0)
    return fail_memory (e);
  p->open = sl_alloc (open, sizeof *p->open);
  p->total = sl_alloc (c->per_sample, sizeof *p->total);
  p->samples = sl_alloc (c->per_sample, sizeof *p->samples);
  p->group = sl_alloc (groups, sizeof *p->group);
  if (!p->open || !p->total || !p->samples || !p->group) return fail_memory (e);
  if (p->calls) {
    if (sl_size_mul ((size_t)c->spec.samples, c->per_sample, &shown) < 0)
      return fail_memory (e);
    p->shown = sl_alloc (shown / 8 + 1, 1);
    if (!p->shown) return fail_memory (e);
  }
  for (size_t i = 0; i < c->per_sample; i++)
    sl_accumulator_reset (&p->total[i]);
  if (((m->measures & SL_MEASURE_COLUMNS) &&
       sl_open_columns_init (&p->columns, open, m->tokens) < 0) ||
      sl_key_sums_init (&p->keys, c->per_sample, m->tokens, m->measures) < 0 ||
      (c->kept > 0 &&
       sl_maps_init (&p->maps, (size_t)c->kept, m->tokens, columns_of (m)) < 0))
    return fail_memory (e);
  return 0;
}

sl_collector *sl_collect_new (const sl_collect_spec *spec, sl_error *e) {
  const sl_measuring *m = &spec->measuring;
  sl_collector *c = sl_alloc (1, sizeof *c);
  if (c == NULL) {
    fail_memory (e);
    return NULL;
  }
  c->spec = *spec;
  c->part = sl_alloc ((size_t)spec->parts, sizeof *c->part);
  c->output = sl_alloc ((size_t)m->layers, sizeof *c->output);
  c->per_sample = (size_t)m->layers * (size_t)m->heads;
  if (c->part == NULL || c->output == NULL) {
    fail_memory (e);
    goto failed;
  }
  for (int l = 0; m->output && l < m->layers; l++)
    if (sl_collect_output (c, l, m->output[l], e) < 0) goto failed;
  if (make_slots (c, e) < 0) goto failed;
  for (int i = 0; i < spec->parts; i++)
    if (make_part (c, &c->part[i], e) < 0) goto failed;
  return c;
failed:
  sl_collect_free (c);
  return NULL;
}

void sl_collect_free (sl_collector *c) {
  if (c == NULL) return;
  for (int i = 0; c->part && i < c->spec.parts; i++)
    sl_worker_sums_free (&c->part[i]);
  sl_free (c->part);
  sl_free (c->output);
  sl_free (c->slot);
  sl_free (c);
}

void sl_collect_begin (sl_collector *c, int part, long first, long n) {
  sl_worker_sums_begin (&c->part[part], first, n);
}

void sl_collect_calls (sl_collector *c, int part, int layer, int head) {
  sl_worker_sums *p = &c->part[part];
  p->call = -1;
  p->layer = layer - 1;
  p->head = head;
}

const sl_observer *sl_collect_observer (sl_collector *c, int part) {
  return &c->part[part].observer;
}

int sl_collect_end (sl_collector *c, int part) {
  return sl_worker_sums_end (&c->part[part]);
}

/* Samples that have a valid token. */
static long valid_samples (const sl_collector *c) {
  long n = 0;
  for (long i = 0; i < c->spec.samples; i++) {
    int begin, end;
    sl_valid_range (&c->spec.measuring, i, &begin, &end);
    n += begin < end;
  }
  return n;
}

static int check_seen (const sl_collector *c, sl_error *e) {
  const sl_measuring *m = &c->spec.measuring;
  const sl_worker_sums *all = &c->part[0];
  const long valid = c->spec.calls ? valid_samples (c) : 0;
  for (size_t i = 0; i < c->per_sample; i++) {
    const size_t layer = i / (size_t)m->heads + 1;
    const size_t head = i % (size_t)m->heads + 1;
    if (all->total[i].blocks == 0)
      return sl_fail (
          e,
          "sinks: layer %zu, head %zu shows no weights: the program "
          "has fewer attention layers or heads than %d and %d, or "
          "its mechanism has no weights to show",
          layer, head, m->layers, m->heads);
    if (c->spec.calls && all->samples[i] != valid)
      return sl_fail (e,
                      "sinks: layer %zu, head %zu has been watched for %ld "
                      "samples, of %ld that have a token",
                      layer, head, all->samples[i], valid);
  }
  return 0;
}

/* The maps become the maps of the result: columns of tokens move together in
** place, the means of the others move out. */
static int take_maps (sl_maps *m, sl_sinks *s) {
  const size_t t = (size_t)m->tokens, columns = (size_t)m->columns;
  const size_t rows = m->heads * t, extra = columns - t;
  s->extra = (int)extra;
  s->null_mass_map = sl_alloc (rows * extra, sizeof *s->null_mass_map);
  if (!s->null_mass_map) return -1;
  for (size_t r = 0; r < rows; r++) {
    memcpy (s->null_mass_map + r * extra, m->mean + r * columns,
            extra * sizeof *m->mean);
    memmove (m->mean + r * t, m->mean + r * columns + extra,
             t * sizeof *m->mean);
    memmove (m->m2 + r * t, m->m2 + r * columns + extra, t * sizeof *m->m2);
  }
  s->kept = (int)m->heads;
  s->mean = m->mean;
  s->std = m->m2;
  m->mean = m->m2 = NULL;
  return 0;
}

static int take_groups (const sl_collector *c, sl_sinks *s) {
  const sl_group *from = c->part[0].group;
  const size_t n = c->per_sample * (size_t)c->spec.measuring.labels.groups;
  s->groups = c->spec.measuring.labels.groups;
  if (s->groups == 0) return 0;
  s->group = sl_alloc (n, sizeof *s->group);
  if (s->group == NULL) return -1;
  for (size_t i = 0; i < n; i++) {
    const double rows = (double)from[i].rows;
    s->group[i] = (sl_group_sinks){ from[i].rows, from[i].first / rows,
                                    isnan (from[i].first)
                                        ? NAN
                                        : (double)from[i].dormant / rows,
                                    from[i].logit / (double)from[i].logits };
  }
  return 0;
}

static sl_sinks *result (sl_collector *c, sl_error *e) {
  const sl_measuring *m = &c->spec.measuring;
  sl_worker_sums *all = &c->part[0];
  sl_sinks *s = sl_alloc (1, sizeof *s);
  if (s == NULL) {
    fail_memory (e);
    return NULL;
  }
  *s = (sl_sinks){ .layers = m->layers,
                   .heads = m->heads,
                   .tokens = m->tokens,
                   .samples = c->spec.samples,
                   .threshold = m->threshold,
                   .thresholds = m->thresholds };
  s->head = sl_alloc (c->per_sample, sizeof *s->head);
  if (s->head == NULL) goto no_memory;
  for (size_t h = 0; h < c->per_sample; h++)
    sl_accumulator_result (&all->total[h], m, c->spec.samples * m->tokens,
                           &s->head[h]);
  if (sl_key_sums_result (&all->keys, s) < 0 || take_groups (c, s) < 0)
    goto no_memory;
  if (c->kept > 0) {
    sl_maps_result (&all->maps);
    if (take_maps (&all->maps, s) < 0) goto no_memory;
  }
  return s;
no_memory:
  sl_sinks_free (s);
  fail_memory (e);
  return NULL;
}

sl_sinks *sl_collect_finish (sl_collector *c, sl_error *e) {
  for (int i = 0; i < c->spec.parts; i++) {
    const sl_misfit *wrong = &c->part[i].misfit;
    if (c->part[i].no_memory) {
      fail_memory (e);
      return NULL;
    }
    if (c->part[i].again > 0) {
      const size_t heads = (size_t)c->spec.measuring.heads;
      const size_t head = c->part[i].again_head;
      sl_fail (e,
               "sinks: layer %zu, head %zu of sample %ld has been watched "
               "more than once",
               head / heads + 1, head % heads + 1, c->part[i].again);
      return NULL;
    }
    if (wrong->what != NULL) {
      sl_fail (e, "sinks: the program has %ld %s, the measurement has %ld",
               wrong->got, wrong->what, wrong->allowed);
      return NULL;
    }
  }
  for (int i = 1; i < c->spec.parts; i++)
    sl_worker_sums_merge (&c->part[0], &c->part[i]);
  return check_seen (c, e) < 0 ? NULL : result (c, e);
}

void sl_sinks_free (sl_sinks *s) {
  if (s == NULL) return;
  for (int i = 0; i < SL_POSITION_MEASURES; i++) sl_free (s->at[i]);
  sl_free (s->mean);
  sl_free (s->std);
  sl_free (s->null_mass_map);
  sl_free (s->head);
  sl_free (s->group);
  sl_free (s);
}
