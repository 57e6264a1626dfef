/* test_inputs.c - the shapes and numbers that checks call kernels with. */
#include "check/test_inputs.h"
#include "base/memory.h"
#include "base/random.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const sl_test_shape row_shapes[] = {
  { 1, 4, 0, 0, 1, 0 },         { 2, 3, 1, 0, 5, 0 },
  { 5, 1, 4, 0, 9, 0 },         { 7, 4, 11, 5, 16, 0 },
  { 16, 2, 3, 0, 16, 0 },       { 33, 5, 32, 0, 40, 0 },
  { 19, 8, 300, 282, 2048, 0 }, { 0 }
};
static const sl_test_shape gate_shapes[] = {
  { 1, 1, 0, 0, 1, 0 },  { 2, 2, 3, 0, 8, 0 },    { 4, 4, 0, 0, 5, 0 },
  { 7, 7, 9, 0, 10, 0 }, { 32, 32, 5, 0, 16, 0 }, { 0 }
};
static const sl_test_shape mixer_shapes[] = {
  { 1, 4, 0, 0, 1, SL_MASK_CAUSAL },   { 2, 2, 0, 0, 2, SL_MASK_CAUSAL },
  { 9, 4, 0, 0, 9, SL_MASK_CAUSAL },   { 6, 3, 0, 0, 6, SL_MASK_CAUSAL },
  { 7, 2, 0, 0, 7, SL_MASK_WINDOW },   { 6, 4, 0, 0, 6, SL_MASK_FULL },
  { 19, 8, 0, 0, 19, SL_MASK_CAUSAL }, { 0 }
};
static const sl_test_shape causal_shapes[] = {
  { 1, 4, 0, 0, 1, SL_MASK_CAUSAL },   { 2, 2, 0, 0, 2, SL_MASK_CAUSAL },
  { 9, 4, 0, 0, 9, SL_MASK_CAUSAL },   { 6, 3, 0, 0, 6, SL_MASK_CAUSAL },
  { 19, 8, 0, 0, 19, SL_MASK_CAUSAL }, { 0 }
};

const sl_test_shape *sl_test_shapes (const sl_plugin *p) {
  if (p->row) return row_shapes;
  if (p->gate) return gate_shapes;
  return p->properties & SL_CAUSAL_ONLY ? causal_shapes : mixer_shapes;
}

double sl_test_uniform (uint64_t seed, uint32_t stream, uint32_t i) {
  const uint32_t counter[4] = { i, 0, stream, 0x736c6368 };
  uint32_t word[4];
  sl_philox (seed, counter, word);
  return sl_uniform53 (word[0], word[1]);
}

/* Box-Muller, one of the pair. */
double sl_test_normal (uint64_t seed, uint32_t stream, uint32_t i) {
  const double u = 1 - sl_test_uniform (seed, stream, 2 * i);
  const double v = sl_test_uniform (seed, stream, 2 * i + 1);
  return sqrt (-2 * log (u)) * cos (2 * 3.14159265358979323846 * v);
}

static size_t width_of (sl_width w, int d_head) {
  return (size_t)w.per_dhead * (size_t)d_head + (size_t)w.fixed;
}

static int add (sl_test_inputs *in, const char *name, size_t size) {
  const int i = in->arrays++;
  in->name[i] = name;
  in->size[i] = size;
  in->value[i] = sl_alloc (size, sizeof *in->value[i]);
  return in->value[i] ? 0 : -1;
}

/* lo and hi of the queries of a mixer. */
static int make_mask (sl_test_inputs *in, int mask) {
  const size_t n = (size_t)in->n;
  in->lo = sl_alloc (n, sizeof *in->lo);
  in->hi = sl_alloc (n, sizeof *in->hi);
  if (!in->lo || !in->hi) return -1;
  for (int i = 0; i < in->n; i++) {
    in->lo[i] = mask == SL_MASK_WINDOW && i > 2 ? i - 2 : 0;
    in->hi[i] = mask == SL_MASK_FULL ? in->n : i + 1;
  }
  return 0;
}

/* One precision's plan for t tokens into 'want'. 1: it refuses. */
static int ask (const sl_test_inputs *in, int dtype, int t, sl_plan *want,
                sl_error *e) {
  const sl_mechanism *m = in->mechanism;
  const sl_shape shape = { t, in->d_head, 0, NULL, NULL };
  char why[512] = "";
  memset (want, 0, sizeof *want);
  want->d_out = in->d_head;
  if (m->loaded->plugin[dtype]->mixer->plan (m->config, &shape, want, why,
                                             sizeof why) == 0)
    return 0;
  why[sizeof why - 1] = '\0';
  if (!*why) return sl_fail (e, "plan refuses %d tokens without a sentence", t);
  sl_fail (e, "%s", why);
  return 1;
}

/* Both precisions must plan the same sizes, because they share the buffers
** here, and longer sequences at least as much, because the host plans for the
** longest one. */
static int plan (sl_test_inputs *in, sl_error *e) {
  sl_plan want[2], longer;
  for (int i = 0; i < 2; i++) {
    const int refused = ask (in, i, in->n, &want[i], e);
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
                    want[0].saved, want[0].scratch, in->n, 1 << 28);
  if (ask (in, SL_F64, 2 * in->n, &longer, NULL) == 0 &&
      (longer.d_out != want[1].d_out || longer.saved < want[1].saved ||
       longer.scratch < want[1].scratch))
    return sl_fail (e,
                    "plan gives d_out %d, saved %zu, scratch %zu for %d tokens "
                    "but %d, %zu, %zu for %d",
                    want[1].d_out, want[1].saved, want[1].scratch, in->n,
                    longer.d_out, longer.saved, longer.scratch, 2 * in->n);
  in->saved = want[0].saved;
  in->scratch = want[0].scratch;
  in->d_out = want[0].d_out;
  return 0;
}

static int fill_arrays (sl_test_inputs *in, const sl_test_shape *z,
                        sl_error *e) {
  const sl_mechanism *m = in->mechanism;
  const sl_plugin *d = m->loaded->plugin[SL_F64];
  const size_t n = (size_t)in->n;
  int failed = 0, refused = 0;
  in->outputs = n;
  if (d->row) {
    failed |= add (in, "scores", n);
    in->scratch = n;
  } else if (d->gate)
    failed |= add (in, "o", n);
  for (int i = 0; i < sl_plugin_inputs (d); i++)
    failed |=
        add (in, m->inputs[i].name,
             width_of (m->inputs[i].width, in->d_head) * (d->mixer ? n : 1));
  failed |= add (in, "parameters",
                 (size_t)sl_mechanism_params (in->mechanism, in->d_head));
  if (d->mixer) {
    refused = plan (in, e);
    if (refused) return refused;
    in->outputs = n * (size_t)in->d_out;
    in->weights = d->mixer->weights ? n * n : 0;
    failed |= make_mask (in, z->mask);
  }
  in->cotangent = sl_alloc (in->outputs, sizeof *in->cotangent);
  if (failed || !in->cotangent) return sl_fail (e, "no memory for test inputs");
  return 0;
}

int sl_test_inputs_new (const sl_mechanism *m, const sl_test_shape *z,
                        uint64_t seed, sl_test_inputs **made, sl_error *e) {
  sl_test_inputs *in = sl_alloc (1, sizeof *in);
  int refused;
  *made = in;
  if (!in) return sl_fail (e, "no memory for test inputs");
  in->mechanism = m;
  in->seed = seed;
  in->n = z->n;
  in->d_head = in->d_out = z->d_head;
  in->head = 1;
  in->heads = 3;
  in->layer = 1;
  in->scale = 0.75;
  in->position = z->position;
  in->first_key = z->first_key;
  in->length = z->length;
  if (sl_plugin_inputs (m->loaded->plugin[SL_F64]) > SL_MOST_INPUTS)
    return sl_fail (e, "it has more than %d inputs", SL_MOST_INPUTS);
  refused = fill_arrays (in, z, e);
  if (refused == 0) sl_test_inputs_draw (in, 0, 1);
  return refused;
}

/* Parameters: initial value + N(0, 1/4), so that no two are equal. */
static void draw_parameters (sl_test_inputs *in, uint32_t stream) {
  double *to = in->value[in->arrays - 1];
  uint32_t i = 0;
  for (const sl_param *q = in->mechanism->params; q && q->name; q++) {
    const size_t width = width_of (q->width, in->d_head);
    for (size_t j = 0; j < width; j++, i++)
      *to++ = (q->init == SL_CONST ? q->scale : 0) +
              0.5 * sl_test_normal (in->seed, stream, i);
  }
}

void sl_test_inputs_draw (sl_test_inputs *in, uint32_t stream, double spread) {
  const int last = in->arrays - 1;
  for (int a = 0; a < last; a++)
    for (size_t i = 0; i < in->size[a]; i++)
      in->value[a][i] =
          spread *
          sl_test_normal (in->seed, 16 * stream + (uint32_t)a, (uint32_t)i);
  draw_parameters (in, 16 * stream + 14);
  for (size_t i = 0; i < in->outputs; i++)
    in->cotangent[i] = sl_test_normal (in->seed, 16 * stream + 15, (uint32_t)i);
}

void sl_test_options_text (const sl_mechanism *m, char *text, size_t size,
                           int used) {
  sl_setting v;
  for (int i = 0;
       used > 0 && (size_t)used < size && sl_mechanism_option (m, i, &v) == 0;
       i++) {
    char number[32];
    snprintf (number, sizeof number, "%g", v.number);
    used += snprintf (text + used, size - (size_t)used, ", %s=%s", v.name,
                      v.text ? v.text : number);
  }
}

void sl_test_inputs_text (const sl_test_inputs *in, char *text, size_t size) {
  const sl_plugin *d = in->mechanism->loaded->plugin[SL_F64];
  int used;
  if (d->row)
    used = snprintf (
        text, size,
        "n = %d, position = %d, first_key = %d, length = %d, d_head = %d",
        in->n, in->position, in->first_key, in->length, in->d_head);
  else if (d->gate)
    used = snprintf (text, size, "n = d_head = %d", in->n);
  else
    used = snprintf (text, size, "t = %d, d_head = %d, %s", in->n, in->d_head,
                     in->lo[in->n - 1] > 0             ? "window of 3"
                     : in->n > 1 && in->hi[0] == in->n ? "full"
                                                       : "causal");
  sl_test_options_text (in->mechanism, text, size, used);
}

void sl_test_inputs_element (const sl_test_inputs *in, int array, size_t i,
                             char *text, size_t size) {
  const sl_param *q = in->mechanism->params;
  if (array < in->arrays - 1) {
    snprintf (text, size, "%s[%zu]", in->name[array], i);
    return;
  }
  for (; q && q->name; q++) {
    const size_t width = width_of (q->width, in->d_head);
    if (i < width) {
      snprintf (text, size, "parameter %s[%zu]", q->name, i);
      return;
    }
    i -= width;
  }
  snprintf (text, size, "parameter %zu", i);
}
