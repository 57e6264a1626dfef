/* problem.c - the problems that checks set: shapes and numbers. */
#include "check/problem.h"
#include "base/memory.h"
#include "base/random.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const sl_sizes row_sizes[] = {
  { 1, 4, 0, 0, 1, 0 },         { 2, 3, 1, 0, 5, 0 },
  { 5, 1, 4, 0, 9, 0 },         { 7, 4, 11, 5, 16, 0 },
  { 16, 2, 3, 0, 16, 0 },       { 33, 5, 32, 0, 40, 0 },
  { 19, 8, 300, 282, 2048, 0 }, { 0 }
};
static const sl_sizes gate_sizes[] = {
  { 1, 1, 0, 0, 1, 0 },  { 2, 2, 3, 0, 8, 0 },    { 4, 4, 0, 0, 5, 0 },
  { 7, 7, 9, 0, 10, 0 }, { 32, 32, 5, 0, 16, 0 }, { 0 }
};
static const sl_sizes mix_sizes[] = {
  { 1, 4, 0, 0, 1, SL_SEE_EARLIER },   { 2, 2, 0, 0, 2, SL_SEE_EARLIER },
  { 9, 4, 0, 0, 9, SL_SEE_EARLIER },   { 6, 3, 0, 0, 6, SL_SEE_EARLIER },
  { 7, 2, 0, 0, 7, SL_SEE_WINDOW },    { 6, 4, 0, 0, 6, SL_SEE_ALL },
  { 19, 8, 0, 0, 19, SL_SEE_EARLIER }, { 0 }
};
static const sl_sizes causal_sizes[] = {
  { 1, 4, 0, 0, 1, SL_SEE_EARLIER },   { 2, 2, 0, 0, 2, SL_SEE_EARLIER },
  { 9, 4, 0, 0, 9, SL_SEE_EARLIER },   { 6, 3, 0, 0, 6, SL_SEE_EARLIER },
  { 19, 8, 0, 0, 19, SL_SEE_EARLIER }, { 0 }
};

const sl_sizes *sl_sizes_of (const sl_plugin *p) {
  if (p->row) return row_sizes;
  if (p->gate) return gate_sizes;
  return p->flags & SL_CAUSAL_ONLY ? causal_sizes : mix_sizes;
}

double sl_problem_uniform (uint64_t seed, uint32_t stream, uint32_t i) {
  const uint32_t counter[4] = { i, 0, stream, 0x736c6368 };
  uint32_t word[4];
  sl_philox (seed, counter, word);
  return sl_uniform53 (word[0], word[1]);
}

/* Box-Muller, one of the pair. */
double sl_problem_normal (uint64_t seed, uint32_t stream, uint32_t i) {
  const double u = 1 - sl_problem_uniform (seed, stream, 2 * i);
  const double v = sl_problem_uniform (seed, stream, 2 * i + 1);
  return sqrt (-2 * log (u)) * cos (2 * 3.14159265358979323846 * v);
}

static size_t width_of (sl_width w, int d_head) {
  return (size_t)w.per_dhead * (size_t)d_head + (size_t)w.fixed;
}

static int add (sl_problem *p, const char *name, size_t size) {
  const int i = p->arrays++;
  p->name[i] = name;
  p->size[i] = size;
  p->in[i] = sl_alloc (size, sizeof *p->in[i]);
  return p->in[i] ? 0 : -1;
}

/* The keys that each query of a mixer sees. */
static int see (sl_problem *p, int sight) {
  const size_t n = (size_t)p->n;
  p->lo = sl_alloc (n, sizeof *p->lo);
  p->hi = sl_alloc (n, sizeof *p->hi);
  if (!p->lo || !p->hi) return -1;
  for (int i = 0; i < p->n; i++) {
    p->lo[i] = sight == SL_SEE_WINDOW && i > 2 ? i - 2 : 0;
    p->hi[i] = sight == SL_SEE_ALL ? p->n : i + 1;
  }
  return 0;
}

/* What one precision asks for t tokens. 1: it refuses. */
static int ask (const sl_problem *p, int dtype, int t, sl_plan *want,
                sl_error *e) {
  const sl_mechanism *m = p->mechanism;
  const sl_shape shape = { t, p->d_head, 0, NULL, NULL };
  char why[512] = "";
  memset (want, 0, sizeof *want);
  want->d_out = p->d_head;
  if (m->loaded->plugin[dtype]->mixer->plan (m->config, &shape, want, why,
                                             sizeof why) == 0)
    return 0;
  why[sizeof why - 1] = '\0';
  if (!*why) return sl_fail (e, "plan refuses %d tokens without a sentence", t);
  sl_fail (e, "%s", why);
  return 1;
}

/* Both precisions must want the same, for buffers are theirs in turn; and
** longer sequences no less, for kernels get shorter ones than were planned. */
static int plan (sl_problem *p, sl_error *e) {
  sl_plan want[2], longer;
  for (int i = 0; i < 2; i++) {
    const int refused = ask (p, i, p->n, &want[i], e);
    if (refused) return refused;
  }
  if (want[0].saved != want[1].saved || want[0].scratch != want[1].scratch ||
      want[0].d_out != want[1].d_out)
    return sl_fail (e, "plan asks for other sizes in f32 than in f64");
  if (want[0].d_out < 1 || want[0].d_out > 1 << 16)
    return sl_fail (e, "plan gives d_out %d; expected 1 to %d", want[0].d_out,
                    1 << 16);
  if (want[0].saved > (size_t)1 << 28 || want[0].scratch > (size_t)1 << 28)
    return sl_fail (e,
                    "plan asks for %zu saved and %zu scratch reals for %d "
                    "tokens; at most %d are tried",
                    want[0].saved, want[0].scratch, p->n, 1 << 28);
  if (ask (p, SL_F64, 2 * p->n, &longer, NULL) == 0 &&
      (longer.d_out != want[1].d_out || longer.saved < want[1].saved ||
       longer.scratch < want[1].scratch))
    return sl_fail (e,
                    "plan gives d_out %d, saved %zu, scratch %zu for %d tokens "
                    "but %d, %zu, %zu for %d",
                    want[1].d_out, want[1].saved, want[1].scratch, p->n,
                    longer.d_out, longer.saved, longer.scratch, 2 * p->n);
  p->saved = want[0].saved;
  p->scratch = want[0].scratch;
  p->d_out = want[0].d_out;
  return 0;
}

static int fill_arrays (sl_problem *p, const sl_sizes *z, sl_error *e) {
  const sl_mechanism *m = p->mechanism;
  const sl_plugin *d = m->loaded->plugin[SL_F64];
  const size_t n = (size_t)p->n;
  int failed = 0, refused = 0;
  p->outputs = n;
  if (d->row) {
    failed |= add (p, "scores", n);
    p->scratch = n;
  } else if (d->gate)
    failed |= add (p, "o", n);
  for (int i = 0; i < sl_plugin_inputs (d); i++)
    failed |=
        add (p, m->inputs[i].name,
             width_of (m->inputs[i].width, p->d_head) * (d->mixer ? n : 1));
  failed |= add (p, "parameters",
                 (size_t)sl_mechanism_params (p->mechanism, p->d_head));
  if (d->mixer) {
    refused = plan (p, e);
    if (refused) return refused;
    p->outputs = n * (size_t)p->d_out;
    p->weights = d->mixer->weights ? n * n : 0;
    failed |= see (p, z->sight);
  }
  p->cotangent = sl_alloc (p->outputs, sizeof *p->cotangent);
  if (failed || !p->cotangent) return sl_fail (e, "no memory for a problem");
  return 0;
}

int sl_problem_new (const sl_mechanism *m, const sl_sizes *z, uint64_t seed,
                    sl_problem **problem, sl_error *e) {
  sl_problem *p = sl_alloc (1, sizeof *p);
  int refused;
  *problem = p;
  if (!p) return sl_fail (e, "no memory for a problem");
  p->mechanism = m;
  p->seed = seed;
  p->n = z->n;
  p->d_head = p->d_out = z->d_head;
  p->head = 1;
  p->heads = 3;
  p->layer = 1;
  p->scale = 0.75;
  p->pos = z->pos;
  p->first = z->first;
  p->length = z->length;
  if (sl_plugin_inputs (m->loaded->plugin[SL_F64]) > SL_MOST_INPUTS)
    return sl_fail (e, "it has more than %d inputs", SL_MOST_INPUTS);
  refused = fill_arrays (p, z, e);
  if (refused == 0) sl_problem_draw (p, 0, 1);
  return refused;
}

/* Parameter values: where each starts, and N(0, 1/4) on top so that no two are
** alike. */
static void draw_parameters (sl_problem *p, uint32_t stream) {
  double *to = p->in[p->arrays - 1];
  uint32_t i = 0;
  for (const sl_param *q = p->mechanism->params; q && q->name; q++) {
    const size_t width = width_of (q->width, p->d_head);
    for (size_t j = 0; j < width; j++, i++)
      *to++ = (q->init == SL_CONST ? q->scale : 0) +
              0.5 * sl_problem_normal (p->seed, stream, i);
  }
}

void sl_problem_draw (sl_problem *p, uint32_t stream, double spread) {
  const int last = p->arrays - 1;
  for (int a = 0; a < last; a++)
    for (size_t i = 0; i < p->size[a]; i++)
      p->in[a][i] =
          spread *
          sl_problem_normal (p->seed, 16 * stream + (uint32_t)a, (uint32_t)i);
  draw_parameters (p, 16 * stream + 14);
  for (size_t i = 0; i < p->outputs; i++)
    p->cotangent[i] =
        sl_problem_normal (p->seed, 16 * stream + 15, (uint32_t)i);
}

double *sl_problem_copy (const double *from, size_t n) {
  double *to = sl_alloc (n, sizeof *to);
  if (to && from) memcpy (to, from, n * sizeof *to);
  return to;
}

void sl_problem_forget (double *copy) {
  sl_free (copy);
}

void sl_problem_text (const sl_problem *p, char *text, size_t size) {
  const sl_plugin *d = p->mechanism->loaded->plugin[SL_F64];
  sl_setting v;
  int used;
  if (d->row)
    used = snprintf (text, size,
                     "n = %d, pos = %d, first = %d, length = %d, d_head = %d",
                     p->n, p->pos, p->first, p->length, p->d_head);
  else if (d->gate)
    used = snprintf (text, size, "n = d_head = %d", p->n);
  else
    used = snprintf (text, size, "t = %d, d_head = %d, %s", p->n, p->d_head,
                     p->lo[p->n - 1] > 0            ? "window of 3"
                     : p->n > 1 && p->hi[0] == p->n ? "full"
                                                    : "causal");
  for (int i = 0; used > 0 && (size_t)used < size &&
                  sl_mechanism_option (p->mechanism, i, &v) == 0;
       i++) {
    if (v.text)
      used += snprintf (text + used, size - (size_t)used, ", %s=%s", v.name,
                        v.text);
    else
      used += snprintf (text + used, size - (size_t)used, ", %s=%g", v.name,
                        v.number);
  }
}

void sl_problem_place (const sl_problem *p, int array, size_t i, char *text,
                       size_t size) {
  const sl_param *q = p->mechanism->params;
  if (array < p->arrays - 1) {
    snprintf (text, size, "%s[%zu]", p->name[array], i);
    return;
  }
  for (; q && q->name; q++) {
    const size_t width = width_of (q->width, p->d_head);
    if (i < width) {
      snprintf (text, size, "parameter %s[%zu]", q->name, i);
      return;
    }
    i -= width;
  }
  snprintf (text, size, "parameter %zu", i);
}
