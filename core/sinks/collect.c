/* collect.c - the accumulators behind sl_sinks_measure: one row at a time. */
#include "sinks/collect.h"
#include "base/memory.h"
#include "sinks/tally.h"
#include <math.h>
#include <string.h>

/* The first thing that did not fit. */
typedef struct misfit {
  const char *what; /* NULL: none */
  long got, allowed;
} misfit;

typedef struct part {
  sl_collector *owner;
  sl_observer observer;
  misfit misfit;
  long first, n;   /* samples that are open */
  sl_tally *open;  /* [shard][layer][head] */
  sl_tally *total; /* [layer][head] */
  sl_maps maps;
  double *row; /* [columns]: the row at hand, in double */
} part;

struct sl_collector {
  sl_collect_spec spec;
  size_t per_sample;      /* layers * heads */
  double **output;        /* [layer]: W_O in double; NULL without */
  int *d_model, *d_value; /* [layer]: its sizes */
  part *part;
};

static int fail_memory (sl_error *e) {
  return sl_fail (e, "sinks: no memory for the measurements");
}

/* W_O (d_model, heads * d_value) of each layer, in double. */
static int read_output (sl_collector *c, sl_error *e) {
  const sl_collect_spec *s = &c->spec;
  c->output = sl_alloc ((size_t)s->layers, sizeof *c->output);
  c->d_model = sl_alloc ((size_t)s->layers, sizeof *c->d_model);
  c->d_value = sl_alloc ((size_t)s->layers, sizeof *c->d_value);
  if (!c->output || !c->d_model || !c->d_value) return fail_memory (e);
  for (int l = 0; l < s->layers; l++) {
    const sl_tensor *w = s->output[l];
    const sl_view v = sl_tensor_view (w);
    char text[128];
    if (w->ndim != 2 || w->dim[1] % s->heads != 0 || w->dim[1] > INT32_MAX ||
        w->dim[0] > INT32_MAX)
      return sl_fail (
          e,
          "sinks: W_O of layer %d has shape %s, allowed is (d_model, "
          "a multiple of %d heads)",
          l + 1, sl_shape_text (w->ndim, w->dim, text, sizeof text), s->heads);
    c->d_model[l] = (int)w->dim[0];
    c->d_value[l] = (int)w->dim[1] / s->heads;
    c->output[l] = sl_alloc (sl_view_count (&v), sizeof (double));
    if (c->output[l] == NULL) return fail_memory (e);
    sl_tensor_to_doubles (w, c->output[l]);
  }
  return 0;
}

static double element (const void *x, sl_dtype dtype, ptrdiff_t i) {
  return dtype == SL_F32 ? ((const float *)x)[i] : ((const double *)x)[i];
}

int sl_collect_columns (const sl_collect_spec *s) {
  return 1 + s->prefix + s->registers + s->tokens;
}

/* || W_O^h v_1 ||_2 */
static double value_norm (const sl_collector *c, const sl_rows *r) {
  const int l = r->layer;
  const ptrdiff_t first = c->spec.registers * r->value_stride;
  const size_t width = (size_t)(c->d_value[l] * c->spec.heads);
  const double *w = c->output[l] + (size_t)(r->head * c->d_value[l]);
  double squares = 0;
  for (int i = 0; i < c->d_model[l]; i++, w += width) {
    double y = 0;
    for (int j = 0; j < r->d_value; j++)
      y += w[j] * element (r->value, r->dtype, first + j * r->value_step);
    squares += y * y;
  }
  return sqrt (squares);
}

/* Keeps the first misfit; returns whether there is one. */
static int misfits (part *p, int wrong, const char *what, long got,
                    long allowed) {
  if (wrong && p->misfit.what == NULL)
    p->misfit = (misfit){ what, got, allowed };
  return p->misfit.what != NULL;
}

/* Observer: called by the attention operation, on the thread of this part. */
static void watch (void *context, const sl_rows *r) {
  part *p = context;
  const sl_collector *c = p->owner;
  const sl_collect_spec *s = &c->spec;
  const long sample = r->sample - p->first;
  sl_tally *tally;
  const int columns = r->prefix + r->t;
  int length = r->length - s->registers;
  if (misfits (p, r->layer >= s->layers, "attention layers", r->layer + 1,
               s->layers) ||
      misfits (p, r->head >= s->heads, "heads", r->head + 1, s->heads) ||
      misfits (p, r->t - s->registers != s->tokens, "tokens",
               r->t - s->registers, s->tokens) ||
      misfits (p, r->prefix != s->prefix, "keys before the tokens", r->prefix,
               s->prefix) ||
      misfits (p, sample < 0 || sample >= p->n, "samples", r->sample + 1,
               p->first + p->n) ||
      misfits (p, s->output && r->d_value != c->d_value[r->layer],
               "numbers in a head's value", r->d_value,
               s->output ? c->d_value[r->layer] : 0))
    return;
  tally = &p->open[(size_t)sample * c->per_sample +
                   (size_t)(r->layer * s->heads + r->head)];
  if (s->length && s->length[r->sample] < length)
    length = (int)s->length[r->sample];
  if (tally->blocks++ == 0) {
    tally->norm = s->output && r->value && length > 0 ? value_norm (c, r) : NAN;
    tally->samples = length > 0;
  }
  for (int i = 0; i < r->rows; i++) {
    const int query = r->row + i - s->registers;
    const char *w =
        (const char *)r->weights +
        (ptrdiff_t)i * r->stride * (ptrdiff_t)sl_dtype_size (r->dtype);
    double sum = 0;
    if (query < 0 || query >= length || r->lo[i] >= r->hi[i]) continue;
    for (int j = 0; j < columns; j++) {
      p->row[1 + j] = element (w, r->dtype, j);
      sum += p->row[1 + j];
    }
    p->row[0] = 1 - sum;
    sl_tally_row (tally,
                  s->trigger && s->trigger[r->sample] == query ? SL_ROW_TRIGGER
                  : query == 0                                 ? SL_ROW_FIRST
                                                               : SL_ROW_PLAIN,
                  p->row + 1, s->prefix + s->registers, r->lo[i], r->hi[i]);
    if (s->maps)
      sl_maps_row (&p->maps, r->layer * s->heads + r->head, query, p->row);
  }
  tally->length = length;
}

static int make_part (sl_collector *c, part *p, sl_error *e) {
  const sl_collect_spec *s = &c->spec;
  size_t open;
  p->owner = c;
  p->observer = (sl_observer){ watch, p };
  if (sl_size_mul ((size_t)s->shard, c->per_sample, &open) < 0)
    return fail_memory (e);
  p->open = sl_alloc (open, sizeof *p->open);
  p->total = sl_alloc (c->per_sample, sizeof *p->total);
  p->row = sl_alloc ((size_t)sl_collect_columns (s), sizeof *p->row);
  if (!p->open || !p->total || !p->row) return fail_memory (e);
  if (s->maps && sl_maps_init (&p->maps, c->per_sample, s->tokens,
                               sl_collect_columns (s)) < 0)
    return fail_memory (e);
  for (size_t i = 0; i < c->per_sample; i++) sl_tally_reset (&p->total[i]);
  return 0;
}

sl_collector *sl_collect_new (const sl_collect_spec *spec, sl_error *e) {
  sl_collector *c = sl_alloc (1, sizeof *c);
  if (c == NULL) {
    fail_memory (e);
    return NULL;
  }
  c->spec = *spec;
  c->part = sl_alloc ((size_t)spec->parts, sizeof *c->part);
  if (sl_size_mul ((size_t)spec->layers, (size_t)spec->heads, &c->per_sample) <
          0 ||
      c->part == NULL) {
    fail_memory (e);
    goto failed;
  }
  if (spec->output && read_output (c, e) < 0) goto failed;
  for (int i = 0; i < spec->parts; i++)
    if (make_part (c, &c->part[i], e) < 0) goto failed;
  return c;
failed:
  sl_collect_free (c);
  return NULL;
}

void sl_collect_free (sl_collector *c) {
  if (c == NULL) return;
  for (int i = 0; c->part && i < c->spec.parts; i++) {
    sl_free (c->part[i].open);
    sl_free (c->part[i].total);
    sl_free (c->part[i].row);
    sl_maps_free (&c->part[i].maps);
  }
  for (int l = 0; c->output && l < c->spec.layers; l++) sl_free (c->output[l]);
  sl_free (c->part);
  sl_free (c->output);
  sl_free (c->d_model);
  sl_free (c->d_value);
  sl_free (c);
}

void sl_collect_begin (sl_collector *c, int part_index, long first, long n) {
  part *p = &c->part[part_index];
  p->first = first;
  p->n = n;
  for (size_t i = 0; i < (size_t)n * c->per_sample; i++)
    sl_tally_reset (&p->open[i]);
}

const sl_observer *sl_collect_observer (sl_collector *c, int part_index) {
  return &c->part[part_index].observer;
}

int sl_collect_end (sl_collector *c, int part_index) {
  part *p = &c->part[part_index];
  if (p->misfit.what != NULL) return -1;
  for (long i = 0; i < p->n; i++)
    for (size_t h = 0; h < c->per_sample; h++) {
      sl_tally *t = &p->open[(size_t)i * c->per_sample + h];
      sl_tally_close (t, c->spec.threshold);
      sl_tally_merge (&p->total[h], t);
    }
  return 0;
}

static int check_seen (const sl_collector *c, const sl_tally *total,
                       sl_error *e) {
  for (size_t i = 0; i < c->per_sample; i++)
    if (total[i].blocks == 0)
      return sl_fail (
          e,
          "sinks: layer %zu, head %zu shows no weights: the program "
          "has fewer attention layers or heads than %d and %d, or "
          "its mechanism has no weights to show",
          i / (size_t)c->spec.heads + 1, i % (size_t)c->spec.heads + 1,
          c->spec.layers, c->spec.heads);
  return 0;
}

/* The maps become those of the result: columns of tokens move together in
** place, the means of the others move out. */
static int take_maps (sl_maps *m, sl_sinks *s) {
  const size_t t = (size_t)m->tokens, columns = (size_t)m->columns;
  const size_t rows = m->heads * t, extra = columns - t;
  s->extra = (int)extra;
  s->outside = sl_alloc (rows * extra, sizeof *s->outside);
  if (!s->outside) return -1;
  for (size_t r = 0; r < rows; r++) {
    memcpy (s->outside + r * extra, m->mean + r * columns,
            extra * sizeof *m->mean);
    memmove (m->mean + r * t, m->mean + r * columns + extra,
             t * sizeof *m->mean);
    memmove (m->m2 + r * t, m->m2 + r * columns + extra, t * sizeof *m->m2);
  }
  s->mean = m->mean;
  s->std = m->m2;
  m->mean = m->m2 = NULL;
  return 0;
}

/* Measures that this spec does not have are NaN. */
static void leave_out (const sl_collect_spec *s, sl_head_sinks *h) {
  if (!s->null_mass) h->null_mass = NAN;
  if (s->prefix + s->registers == 0) h->virtual_mass = NAN;
}

sl_sinks *sl_collect_finish (sl_collector *c, sl_error *e) {
  const sl_collect_spec *s = &c->spec;
  sl_tally *total = c->part[0].total;
  sl_sinks *sinks;
  for (int i = 0; i < s->parts; i++) {
    const part *p = &c->part[i];
    if (p->misfit.what != NULL) {
      sl_fail (e, "sinks: the program has %ld %s, the measurement has %ld",
               p->misfit.got, p->misfit.what, p->misfit.allowed);
      return NULL;
    }
    for (size_t h = 0; i > 0 && h < c->per_sample; h++)
      sl_tally_merge (&total[h], &p->total[h]);
    if (i > 0 && s->maps) sl_maps_merge (&c->part[0].maps, &p->maps);
  }
  if (check_seen (c, total, e) < 0) return NULL;
  sinks = sl_alloc (1, sizeof *sinks);
  if (sinks == NULL) {
    fail_memory (e);
    return NULL;
  }
  *sinks = (sl_sinks){ .layers = s->layers,
                       .heads = s->heads,
                       .tokens = s->tokens,
                       .samples = s->samples,
                       .threshold = s->threshold };
  sinks->head = sl_alloc (c->per_sample, sizeof *sinks->head);
  if (sinks->head == NULL) goto no_memory;
  for (size_t h = 0; h < c->per_sample; h++) {
    sl_tally_result (&total[h], s->samples * s->tokens, &sinks->head[h]);
    leave_out (s, &sinks->head[h]);
  }
  if (s->maps) {
    sl_maps_result (&c->part[0].maps, s->samples);
    if (take_maps (&c->part[0].maps, sinks) < 0) goto no_memory;
  }
  return sinks;
no_memory:
  sl_sinks_free (sinks);
  fail_memory (e);
  return NULL;
}

void sl_sinks_free (sl_sinks *s) {
  if (s == NULL) return;
  sl_free (s->head);
  sl_free (s->mean);
  sl_free (s->std);
  sl_free (s->outside);
  sl_free (s);
}
