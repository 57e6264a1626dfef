/* harness.c - fenced buffers and checked calls in one precision. */
#include "check/harness.h"
#include "attention/host.h"
#include "base/memory.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Reals on either side of a buffer, more than the overrun of a vector loop. */
enum { FENCE = 64 };
enum { FENCE_MARK = 0xfe, BLANK_MARK = 0xb1 }; /* payloads of the NaNs */

/* A buffer of n reals, aligned to a real only, as the host's rows are. */
typedef struct fenced {
  const char *name;
  real *block, *data;
  size_t n;
} fenced;

typedef struct harness {
  sl_harness public; /* first: the public pointer is this one */
  const sl_plugin *plugin;
  fenced in[SL_MOST_ARRAYS], grad[SL_MOST_ARRAYS];
  fenced out, dout, saved, scratch, weights;
  int *lo, *hi;
  void *config;
  size_t config_size;
} harness;

static real marked (double value, int mark) {
  real x = (real)value;
#ifdef SL_SINGLE
  uint32_t bits = 0x7fc00000u | (uint32_t)mark;
#else
  uint64_t bits = 0x7ff8000000000000u | (uint64_t)mark;
#endif
  if (isnan (value)) memcpy (&x, &bits, sizeof x);
  return x;
}

static int same_bits (real a, real b) {
  return memcmp (&a, &b, sizeof a) == 0;
}

static int reserve (fenced *b, const char *name, size_t n) {
  b->name = name;
  b->n = n;
  b->block = sl_alloc (n + 2 * FENCE + 1, sizeof (real));
  b->data = b->block ? b->block + FENCE + 1 : NULL;
  return b->block ? 0 : -1;
}

static void fill (fenced *b, real value) {
  for (size_t i = 0; i < b->n; i++) b->data[i] = value;
}

static void fence (fenced *b, double value) {
  const real mark = marked (value, FENCE_MARK);
  for (ptrdiff_t i = 1; i <= FENCE; i++) {
    b->data[-i] = mark;
    b->data[(ptrdiff_t)b->n + i - 1] = mark;
  }
}

/* The first breach of each rule writes its sentence. */
#define NOTE(text, ...) \
  ((text)[0] ? 0 : snprintf (text, sizeof (text), __VA_ARGS__))

static void check_fence (harness *h, const fenced *b, const char *call) {
  const real mark = marked (h->public.fence, FENCE_MARK);
  for (ptrdiff_t i = 1; i <= FENCE; i++) {
    if (!same_bits (b->data[-i], mark))
      NOTE (h->public.faults.fence, "%s wrote to %s[-%d]", call, b->name,
            (int)i);
    if (!same_bits (b->data[(ptrdiff_t)b->n + i - 1], mark))
      NOTE (h->public.faults.fence,
            "%s wrote to %s[%zu], which has %zu elements", call, b->name,
            b->n + (size_t)i - 1, b->n);
  }
}

/* Every element of b is still from[i]. */
static void check_input (harness *h, const fenced *b, const double *from,
                         const char *call) {
  for (size_t i = 0; i < b->n; i++)
    if (!same_bits (b->data[i], (real)from[i]) &&
        !(isnan (b->data[i]) && isnan (from[i]))) {
      NOTE (h->public.faults.input, "%s changed its input %s[%zu]", call,
            b->name, i);
      return;
    }
}

/* to (n) = the results in b; an element that is still blank is a fault. */
static void collect (harness *h, const fenced *b, double *to,
                     const char *call) {
  const real mark = marked (h->public.blank, BLANK_MARK);
  for (size_t i = 0; i < b->n; i++) {
    to[i] = isnan (b->data[i]) ? (double)NAN : b->data[i]; /* one NaN for all */
    if (isnan (h->public.blank) && same_bits (b->data[i], mark))
      NOTE (h->public.faults.blank, "%s left %s[%zu] of %zu unwritten", call,
            b->name, i, b->n);
  }
}

static void put (fenced *b, const double *from) {
  for (size_t i = 0; i < b->n; i++) b->data[i] = (real)from[i];
}

static void close_harness (sl_harness *public) {
  harness *h = (harness *)public;
  if (!h) return;
  for (int i = 0; i < SL_MOST_ARRAYS; i++) {
    sl_free (h->in[i].block);
    sl_free (h->grad[i].block);
    sl_free (public->grad[i]);
  }
  sl_free (h->out.block);
  sl_free (h->dout.block);
  sl_free (h->saved.block);
  sl_free (h->scratch.block);
  sl_free (h->weights.block);
  sl_free (public->out);
  sl_free (public->weights);
  sl_free (h->lo);
  sl_free (h->hi);
  sl_free (h->config);
  sl_free (h);
}

static sl_harness *open_harness (sl_test_inputs *in) {
  const sl_mechanism *m = in->mechanism;
  harness *h = sl_alloc (1, sizeof *h);
  int failed = 0;
  if (!h) return NULL;
  h->plugin = m->loaded->plugin[SL_DTYPE];
  h->public.dtype = SL_DTYPE;
  h->public.inputs = in;
  h->public.fence = h->public.blank = NAN;
  h->config_size = m->config_size;
  for (int i = 0; i < in->arrays; i++) {
    failed |= reserve (&h->in[i], in->name[i], in->size[i]) ||
              reserve (&h->grad[i], in->name[i], in->size[i]) ||
              !(h->public.grad[i] = sl_alloc (in->size[i], sizeof (double)));
  }
  failed |= reserve (&h->out, "its output", in->outputs) ||
            reserve (&h->dout, "the output's gradient", in->outputs) ||
            reserve (&h->saved, "saved", in->saved) ||
            reserve (&h->scratch, "scratch", in->scratch) ||
            reserve (&h->weights, "weights", in->weights) ||
            !(h->public.out = sl_alloc (in->outputs, sizeof (double))) ||
            !(h->public.weights = sl_alloc (in->weights, sizeof (double))) ||
            !(h->lo = sl_alloc ((size_t)in->n, sizeof (int))) ||
            !(h->hi = sl_alloc ((size_t)in->n, sizeof (int))) ||
            !(h->config = sl_alloc (1, h->config_size));
  if (failed) {
    close_harness (&h->public);
    return NULL;
  }
  return &h->public;
}

/* The arguments of a kernel; pointers into the harness. */
typedef struct call {
  sl_call c;
  sl_shape shape;
  const real *in[SL_MOST_ARRAYS];
  real *din[SL_MOST_ARRAYS];
} call;

/* Write fences, inputs and undefined contents; c gets the arguments. */
static void prepare (harness *h, call *c, fenced *const *outputs) {
  const sl_test_inputs *in = h->public.inputs;
  fenced *all[] = { &h->out, &h->dout, &h->saved, &h->scratch, &h->weights };
  const int last = in->arrays - 1;
  memset (c, 0, sizeof *c);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    fence (all[i], h->public.fence);
  for (int i = 0; i < in->arrays; i++) {
    fence (&h->in[i], h->public.fence);
    fence (&h->grad[i], h->public.fence);
    put (&h->in[i], in->value[i]);
    c->in[i] = in->size[i] ? h->in[i].data : NULL;
    c->din[i] = in->size[i] ? h->grad[i].data : NULL;
  }
  fill (&h->scratch, marked (h->public.blank, BLANK_MARK));
  for (; *outputs; outputs++)
    fill (*outputs, marked (h->public.blank, BLANK_MARK));
  if (h->config_size) memcpy (h->config, in->mechanism->config, h->config_size);
  if (in->lo) {
    memcpy (h->lo, in->lo, (size_t)in->n * sizeof (int));
    memcpy (h->hi, in->hi, (size_t)in->n * sizeof (int));
  }
  c->c = SL (sl_new_call) (in->mechanism, in->layer, in->heads, in->d_head,
                           in->scale);
  c->c.config = h->config_size ? h->config : NULL;
  c->c.param = in->size[last] ? h->in[last].data : NULL;
  c->c.scratch = h->scratch.data;
  c->c.head = in->head;
  c->c.position = in->position;
  c->c.first_key = in->first_key;
  c->c.length = in->length;
  c->shape = (sl_shape){ in->n, in->d_head, in->d_out, h->lo, h->hi };
}

/* Fences, inputs, options, lo and hi are unchanged after a call. */
static void inspect (harness *h, const char *name) {
  const sl_test_inputs *in = h->public.inputs;
  const fenced *all[] = { &h->out, &h->dout, &h->saved, &h->scratch,
                          &h->weights };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    check_fence (h, all[i], name);
  for (int i = 0; i < in->arrays; i++) {
    check_fence (h, &h->in[i], name);
    check_fence (h, &h->grad[i], name);
    check_input (h, &h->in[i], in->value[i], name);
  }
  if (h->config_size &&
      memcmp (h->config, in->mechanism->config, h->config_size) != 0)
    NOTE (h->public.faults.input, "%s changed its options", name);
  if (in->lo && (memcmp (h->lo, in->lo, (size_t)in->n * sizeof (int)) != 0 ||
                 memcmp (h->hi, in->hi, (size_t)in->n * sizeof (int)) != 0))
    NOTE (h->public.faults.input, "%s changed lo or hi", name);
}

static void forward (sl_harness *public) {
  harness *h = (harness *)public;
  const sl_test_inputs *in = public->inputs;
  fenced *const outputs[] = { &h->out, &h->saved, NULL };
  call c;
  prepare (h, &c, outputs);
  if (h->plugin->row)
    h->plugin->row->forward (&c.c, in->n, c.in[0], h->out.data);
  else if (h->plugin->gate)
    h->plugin->gate->forward (&c.c, in->n, c.in[0],
                              in->arrays > 2 ? c.in[1] : NULL, h->out.data);
  else
    h->plugin->mixer->forward (&c.c, &c.shape, c.in, h->out.data,
                               h->saved.data);
  inspect (h, "forward");
  collect (h, &h->out, public->out, "forward");
}

static void backward (sl_harness *public) {
  harness *h = (harness *)public;
  const sl_test_inputs *in = public->inputs;
  const int last = in->arrays - 1;
  fenced *outputs[SL_MOST_ARRAYS] = { NULL };
  fenced *dparam = &h->grad[last];
  call c;
  for (int i = 0; i < last; i++) outputs[i] = &h->grad[i];
  prepare (h, &c, outputs);
  put (&h->dout, in->cotangent);
  fill (dparam, (real) public->dparam);
  if (h->plugin->row)
    h->plugin->row->backward (&c.c, in->n, c.in[0], h->out.data, h->dout.data,
                              c.din[0], dparam->data);
  else if (h->plugin->gate)
    h->plugin->gate->backward (
        &c.c, in->n, c.in[0], in->arrays > 2 ? c.in[1] : NULL, h->dout.data,
        c.din[0], in->arrays > 2 ? c.din[1] : NULL, dparam->data);
  else
    h->plugin->mixer->backward (&c.c, &c.shape, c.in, h->out.data,
                                h->saved.data, h->dout.data, c.din,
                                dparam->data);
  inspect (h, "backward");
  check_input (h, &h->out, public->out, "backward");
  check_input (h, &h->dout, in->cotangent, "backward");
  for (int i = 0; i < last; i++)
    collect (h, &h->grad[i], public->grad[i], "backward");
  for (size_t i = 0; i < dparam->n; i++)
  public->grad[last][i] = dparam->data[i];
}

static void weights (sl_harness *public) {
  harness *h = (harness *)public;
  fenced *const outputs[] = { &h->weights, NULL };
  call c;
  prepare (h, &c, outputs);
  h->plugin->mixer->weights (&c.c, &c.shape, c.in, h->weights.data);
  inspect (h, "weights");
  collect (h, &h->weights, public->weights, "weights");
}

extern const sl_harness_calls SL (sl_harness_calls);
const sl_harness_calls SL (sl_harness_calls) = { open_harness, close_harness,
                                                 forward, backward, weights };
