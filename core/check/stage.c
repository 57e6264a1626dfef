/* stage.c - one precision's side of a problem: fenced buffers, watched
** calls. */
#include "check/stage.h"
#include "attention/host.h"
#include "base/memory.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Reals on either side of a buffer: more than a vector loop runs over by. */
enum { FENCE = 64 };
enum { FENCE_MARK = 0xfe, BLANK_MARK = 0xb1 }; /* payloads of the NaNs */

/* n reals of one buffer, aligned no better than a real, as the host's rows
** are. */
typedef struct fenced {
  const char *name;
  real *block, *data;
  size_t n;
} fenced;

typedef struct stage {
  sl_stage seen; /* first: the public pointer is this one */
  const sl_plugin *plugin;
  fenced in[SL_MOST_ARRAYS], grad[SL_MOST_ARRAYS];
  fenced out, dout, saved, scratch, weights;
  int *lo, *hi;
  void *config;
  size_t config_size;
} stage;

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

/* The sentence of a kind is written once, by its first breach. */
#define NOTE(text, ...) \
  ((text)[0] ? 0 : snprintf (text, sizeof (text), __VA_ARGS__))

static void check_fence (stage *s, const fenced *b, const char *call) {
  const real mark = marked (s->seen.fence, FENCE_MARK);
  for (ptrdiff_t i = 1; i <= FENCE; i++) {
    if (!same_bits (b->data[-i], mark))
      NOTE (s->seen.faults.fence, "%s wrote to %s[-%d]", call, b->name, (int)i);
    if (!same_bits (b->data[(ptrdiff_t)b->n + i - 1], mark))
      NOTE (s->seen.faults.fence, "%s wrote to %s[%zu], which has %zu elements",
            call, b->name, b->n + (size_t)i - 1, b->n);
  }
}

/* Every element of b is still from[i]. */
static void check_input (stage *s, const fenced *b, const double *from,
                         const char *call) {
  for (size_t i = 0; i < b->n; i++)
    if (!same_bits (b->data[i], (real)from[i]) &&
        !(isnan (b->data[i]) && isnan (from[i]))) {
      NOTE (s->seen.faults.input, "%s changed its input %s[%zu]", call, b->name,
            i);
      return;
    }
}

/* The numbers that a call has left in b. */
static void collect (stage *s, const fenced *b, double *to, const char *call) {
  const real mark = marked (s->seen.blank, BLANK_MARK);
  for (size_t i = 0; i < b->n; i++) {
    to[i] = isnan (b->data[i]) ? (double)NAN : b->data[i]; /* one NaN for all */
    if (isnan (s->seen.blank) && same_bits (b->data[i], mark))
      NOTE (s->seen.faults.blank, "%s left %s[%zu] of %zu unwritten", call,
            b->name, i, b->n);
  }
}

static void put (fenced *b, const double *from) {
  for (size_t i = 0; i < b->n; i++) b->data[i] = (real)from[i];
}

static void close_stage (sl_stage *seen) {
  stage *s = (stage *)seen;
  if (!s) return;
  for (int i = 0; i < SL_MOST_ARRAYS; i++) {
    sl_free (s->in[i].block);
    sl_free (s->grad[i].block);
    sl_free (seen->grad[i]);
  }
  sl_free (s->out.block);
  sl_free (s->dout.block);
  sl_free (s->saved.block);
  sl_free (s->scratch.block);
  sl_free (s->weights.block);
  sl_free (seen->out);
  sl_free (seen->weights);
  sl_free (s->lo);
  sl_free (s->hi);
  sl_free (s->config);
  sl_free (s);
}

static sl_stage *open_stage (const sl_problem *p) {
  const sl_dtype dtype = sizeof (real) == 4 ? SL_F32 : SL_F64;
  const sl_mechanism *m = p->mechanism;
  stage *s = sl_alloc (1, sizeof *s);
  int failed = 0;
  if (!s) return NULL;
  s->plugin = m->loaded->plugin[dtype];
  s->seen.problem = p;
  s->seen.fence = s->seen.blank = NAN;
  s->config_size = m->config_size;
  for (int i = 0; i < p->arrays; i++) {
    failed |= reserve (&s->in[i], p->name[i], p->size[i]) ||
              reserve (&s->grad[i], p->name[i], p->size[i]) ||
              !(s->seen.grad[i] = sl_alloc (p->size[i], sizeof (double)));
  }
  failed |= reserve (&s->out, "its output", p->outputs) ||
            reserve (&s->dout, "the output's gradient", p->outputs) ||
            reserve (&s->saved, "saved", p->saved) ||
            reserve (&s->scratch, "scratch", p->scratch) ||
            reserve (&s->weights, "weights", p->weights) ||
            !(s->seen.out = sl_alloc (p->outputs, sizeof (double))) ||
            !(s->seen.weights = sl_alloc (p->weights, sizeof (double))) ||
            !(s->lo = sl_alloc ((size_t)p->n, sizeof (int))) ||
            !(s->hi = sl_alloc ((size_t)p->n, sizeof (int))) ||
            !(s->config = sl_alloc (1, s->config_size));
  if (failed) {
    close_stage (&s->seen);
    return NULL;
  }
  return &s->seen;
}

/* What a kernel is called with; pointers into the stage. */
typedef struct call {
  sl_call c;
  sl_shape shape;
  const real *in[SL_MOST_ARRAYS];
  real *din[SL_MOST_ARRAYS];
} call;

/* Fences, inputs and undefined contents anew, and the arguments from them. */
static void prepare (stage *s, call *c, fenced *const *outputs) {
  const sl_problem *p = s->seen.problem;
  fenced *all[] = { &s->out, &s->dout, &s->saved, &s->scratch, &s->weights };
  const int last = p->arrays - 1;
  memset (c, 0, sizeof *c);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    fence (all[i], s->seen.fence);
  for (int i = 0; i < p->arrays; i++) {
    fence (&s->in[i], s->seen.fence);
    fence (&s->grad[i], s->seen.fence);
    put (&s->in[i], p->in[i]);
    c->in[i] = p->size[i] ? s->in[i].data : NULL;
    c->din[i] = p->size[i] ? s->grad[i].data : NULL;
  }
  fill (&s->scratch, marked (s->seen.blank, BLANK_MARK));
  for (; *outputs; outputs++)
    fill (*outputs, marked (s->seen.blank, BLANK_MARK));
  if (s->config_size) memcpy (s->config, p->mechanism->config, s->config_size);
  if (p->lo) {
    memcpy (s->lo, p->lo, (size_t)p->n * sizeof (int));
    memcpy (s->hi, p->hi, (size_t)p->n * sizeof (int));
  }
  c->c.host = &SL (sl_host_services);
  c->c.config = s->config_size ? s->config : NULL;
  c->c.param = p->size[last] ? s->in[last].data : NULL;
  c->c.scratch = s->scratch.data;
  c->c.head = p->head;
  c->c.heads = p->heads;
  c->c.layer = p->layer;
  c->c.scale = p->scale;
  c->c.d_head = p->d_head;
  c->c.pos = p->pos;
  c->c.first = p->first;
  c->c.length = p->length;
  c->shape = (sl_shape){ p->n, p->d_head, p->d_out, s->lo, s->hi };
}

/* What every call must have left alone. */
static void inspect (stage *s, const char *name) {
  const sl_problem *p = s->seen.problem;
  const fenced *all[] = { &s->out, &s->dout, &s->saved, &s->scratch,
                          &s->weights };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    check_fence (s, all[i], name);
  for (int i = 0; i < p->arrays; i++) {
    check_fence (s, &s->in[i], name);
    check_fence (s, &s->grad[i], name);
    check_input (s, &s->in[i], p->in[i], name);
  }
  if (s->config_size &&
      memcmp (s->config, p->mechanism->config, s->config_size) != 0)
    NOTE (s->seen.faults.input, "%s changed its options", name);
  if (p->lo && (memcmp (s->lo, p->lo, (size_t)p->n * sizeof (int)) != 0 ||
                memcmp (s->hi, p->hi, (size_t)p->n * sizeof (int)) != 0))
    NOTE (s->seen.faults.input, "%s changed lo or hi", name);
}

static void forward (sl_stage *seen) {
  stage *s = (stage *)seen;
  const sl_problem *p = seen->problem;
  fenced *const outputs[] = { &s->out, &s->saved, NULL };
  call c;
  prepare (s, &c, outputs);
  if (s->plugin->row)
    s->plugin->row->forward (&c.c, p->n, c.in[0], s->out.data);
  else if (s->plugin->gate)
    s->plugin->gate->forward (&c.c, p->n, c.in[0],
                              p->arrays > 2 ? c.in[1] : NULL, s->out.data);
  else
    s->plugin->mixer->forward (&c.c, &c.shape, c.in, s->out.data,
                               s->saved.data);
  inspect (s, "forward");
  collect (s, &s->out, seen->out, "forward");
}

static void backward (sl_stage *seen) {
  stage *s = (stage *)seen;
  const sl_problem *p = seen->problem;
  const int last = p->arrays - 1;
  fenced *outputs[SL_MOST_ARRAYS] = { NULL };
  fenced *dparam = &s->grad[last];
  call c;
  for (int i = 0; i < last; i++) outputs[i] = &s->grad[i];
  prepare (s, &c, outputs);
  put (&s->dout, p->cotangent);
  fill (dparam, (real)seen->dparam);
  if (s->plugin->row)
    s->plugin->row->backward (&c.c, p->n, c.in[0], s->out.data, s->dout.data,
                              c.din[0], dparam->data);
  else if (s->plugin->gate)
    s->plugin->gate->backward (
        &c.c, p->n, c.in[0], p->arrays > 2 ? c.in[1] : NULL, s->dout.data,
        c.din[0], p->arrays > 2 ? c.din[1] : NULL, dparam->data);
  else
    s->plugin->mixer->backward (&c.c, &c.shape, c.in, s->out.data,
                                s->saved.data, s->dout.data, c.din,
                                dparam->data);
  inspect (s, "backward");
  check_input (s, &s->out, seen->out, "backward");
  check_input (s, &s->dout, p->cotangent, "backward");
  for (int i = 0; i < last; i++)
    collect (s, &s->grad[i], seen->grad[i], "backward");
  for (size_t i = 0; i < dparam->n; i++) seen->grad[last][i] = dparam->data[i];
}

static void weights (sl_stage *seen) {
  stage *s = (stage *)seen;
  fenced *const outputs[] = { &s->weights, NULL };
  call c;
  prepare (s, &c, outputs);
  s->plugin->mixer->weights (&c.c, &c.shape, c.in, s->weights.data);
  inspect (s, "weights");
  collect (s, &s->weights, seen->weights, "weights");
}

extern const sl_stager SL (sl_stager);
const sl_stager SL (sl_stager) = { open_stage, close_stage, forward, backward,
                                   weights };
