/* op_case.c - gradient cases: see op_case.h. */
#include "support/op_case.h"
#include "base/isa.h"
#include "base/memory.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum layout { PLAIN, SWAPPED, BACKWARDS, REPEATED, MIXED, SHARED, LAYOUTS };
static const char *const layout_name[] = {
  "plain",    "axes swapped",  "backwards, with gaps",
  "repeated", "mixed layouts", "inputs 1 and 2 share one storage"
};

enum { GUARD = 8 };
static const double guard = 123456.75, before = 0.625;

/* An input as it lies in memory. 'at' maps nothing: the view does. */
typedef struct store {
  double *value, *gradient, *copy;
  size_t count;
  sl_view view; /* of value */
} store;

typedef struct bench {
  const op_case *c;
  const sl_op *op;
  const char *isa;
  enum layout layout;
  uint64_t seed;
  uint32_t drawn;
  store in[SL_MAX_IN];
  sl_shape_query q;
  sl_view in_view[SL_MAX_IN], din[SL_MAX_IN], out[SL_MAX_OUT], dout[SL_MAX_OUT];
  double *saved, *scratch;
} bench;

static double uniform (bench *b) {
  const uint32_t counter[4] = { b->drawn++, 0, 0, 0 };
  uint32_t word[4];
  sl_philox (b->seed, counter, word);
  return sl_uniform53 (word[0], word[1]);
}

/* n doubles, all NaN, between guard words. */
static double *poisoned (size_t n) {
  double *p = sl_alloc (n + 2 * GUARD, sizeof *p);
  ck_assert_ptr_nonnull (p);
  for (size_t i = 0; i < n + 2 * GUARD; i++) p[i] = guard;
  for (size_t i = 0; i < n; i++) p[GUARD + i] = NAN;
  return p + GUARD;
}

static void check_guards (const bench *b, const double *p, size_t n,
                          const char *what) {
  for (int i = 0; i < GUARD; i++)
    if (p[-1 - i] != guard || p[n + (size_t)i] != guard)
      ck_abort_msg ("%s (%s), %s, %s: wrote outside %s", b->c->op, b->c->note,
                    layout_name[b->layout], b->isa, what);
}

static void release (double *p) {
  if (p) sl_free (p - GUARD);
}

/* The layout of input k: how its axes lie in the storage. */
static void lay_out (bench *b, int k) {
  const op_input *in = &b->c->in[k];
  store *s = &b->in[k];
  const enum layout l =
      b->layout == MIXED ? (enum layout) ((k + 1) % MIXED) : b->layout;
  ptrdiff_t stride = l == BACKWARDS ? -2 : 1, start = 0, reach = 1;
  int repeated = -1;
  s->view = (sl_view){ .ndim = in->ndim };
  memcpy (s->view.dim, in->dim, sizeof in->dim);
  for (int i = in->ndim - 1; i >= 0 && l == REPEATED; i--)
    if (in->dim[i] > 1 && (repeated < 0 || in->values == OP_REAL)) repeated = i;
  for (int i = 0; i < in->ndim; i++) {
    const int axis = l == SWAPPED ? i : in->ndim - 1 - i;
    if (axis == repeated) continue;
    s->view.stride[axis] = stride;
    if (stride < 0) start -= stride * (in->dim[axis] - 1);
    reach += labs (stride) * (in->dim[axis] - 1);
    stride *= in->dim[axis];
  }
  s->count = (size_t)(reach < 0 ? 0 : reach);
  s->value = poisoned (s->count);
  s->gradient = poisoned (s->count);
  s->copy = poisoned (s->count);
  s->view.data = s->value + start;
}

/* Distinct numbers c->kink apart in random order over all the storages. */
static void fill_distinct (bench *b) {
  size_t n = 0, i = 0;
  for (int k = 0; k < b->c->n_in; k++)
    if (b->c->in[k].values == OP_REAL) n += b->in[k].count;
  double *x = sl_alloc (n, sizeof *x);
  for (size_t j = 0; j < n; j++)
    x[j] = ((double)j + 0.5 - 0.5 * (double)(n - n % 2)) * b->c->kink;
  for (size_t j = n; j > 1; j--) {
    const size_t other = (size_t)(uniform (b) * (double)j);
    const double keep = x[j - 1];
    x[j - 1] = x[other], x[other] = keep;
  }
  for (int k = 0; k < b->c->n_in; k++)
    for (size_t j = 0; j < b->in[k].count; j++)
      if (b->c->in[k].values == OP_REAL) b->in[k].value[j] = x[i++];
  sl_free (x);
}

static void fill (bench *b) {
  for (int k = 0; k < b->c->n_in; k++) {
    const op_input *in = &b->c->in[k];
    for (size_t j = 0; j < b->in[k].count; j++) {
      const double u = uniform (b);
      b->in[k].value[j] = in->values == OP_WHOLE
                              ? floor (in->low + u * (in->high + 1 - in->low))
                              : in->low + u * (in->high - in->low);
    }
  }
  if (b->c->kink > 0) fill_distinct (b);
  for (int k = 0; k < b->c->n_in; k++)
    memcpy (b->in[k].copy, b->in[k].value, b->in[k].count * sizeof (double));
}

static void set_up (bench *b) {
  const op_case *c = b->c;
  sl_error e = { "" };
  for (int k = 0; k < c->n_in; k++) lay_out (b, k);
  fill (b);
  for (int k = 0; k < c->n_in; k++) b->in_view[k] = b->in[k].view;
  if (b->layout == SHARED) b->in_view[1] = b->in_view[0];
  sl_view shapes[SL_MAX_IN];
  for (int k = 0; k < c->n_in; k++) {
    shapes[k] = b->in_view[k];
    shapes[k].data = NULL;
  }
  b->q = (sl_shape_query){ .attr = c->attr, .n_in = c->n_in, .in = shapes };
  if (b->op->shapes (&b->q, &e))
    ck_abort_msg ("%s (%s): %s", c->op, c->note, e.text);
  ck_assert_int_ge (b->q.n_out, 1);
  ck_assert_int_le (b->q.n_out, SL_MAX_OUT);
  for (int k = 0; k < b->q.n_out; k++) {
    sl_view *y = &b->out[k];
    *y = b->q.out[k];
    sl_view_pack (y);
    b->dout[k] = *y;
    y->data = poisoned (sl_view_count (y));
    b->dout[k].data = poisoned (sl_view_count (y));
    for (size_t i = 0; i < sl_view_count (y); i++)
      ((double *)b->dout[k].data)[i] = 2 * uniform (b) - 1;
  }
  b->saved = poisoned (b->q.saved);
  b->scratch = poisoned (b->q.scratch);
}

static void tear_down (bench *b) {
  for (int k = 0; k < b->c->n_in; k++) {
    release (b->in[k].value);
    release (b->in[k].gradient);
    release (b->in[k].copy);
  }
  for (int k = 0; k < b->q.n_out; k++) {
    release (b->out[k].data);
    release (b->dout[k].data);
  }
  release (b->saved);
  release (b->scratch);
}

static sl_run run_of (const bench *b) {
  static const sl_draw draw = { 0 };
  return (sl_run){ .attr = b->c->attr,
                   .n_in = b->c->n_in,
                   .n_out = b->q.n_out,
                   .in = b->in_view,
                   .out = b->out,
                   .din = b->din,
                   .dout = b->dout,
                   .saved = b->saved,
                   .scratch = b->scratch,
                   .draw = &draw };
}

static void poison (double *p, size_t n) {
  for (size_t i = 0; i < n; i++) p[i] = NAN;
}

/* Outputs contracted with the cotangents. */
static double loss (bench *b) {
  const sl_run r = run_of (b);
  double sum = 0;
  for (int k = 0; k < b->q.n_out; k++)
    poison (b->out[k].data, sl_view_count (&b->out[k]));
  poison (b->saved, b->q.saved);
  poison (b->scratch, b->q.scratch);
  b->op->forward (&r);
  for (int k = 0; k < b->q.n_out; k++)
    for (size_t i = 0; i < sl_view_count (&b->out[k]); i++)
      if (b->dout[k].data)
        sum += ((double *)b->out[k].data)[i] * ((double *)b->dout[k].data)[i];
  return sum;
}

/* After loss: gradients on top of 'before', of the inputs in the bit set
** 'wanted'. */
static void backward (bench *b, unsigned wanted) {
  const sl_run r = run_of (b);
  for (int k = 0; k < b->c->n_in; k++) {
    store *s = &b->in[b->layout == SHARED && k == 1 ? 0 : k];
    for (size_t i = 0; i < b->in[k].count; i++) b->in[k].gradient[i] = before;
    b->din[k] = b->in_view[k];
    if (b->c->in[k].values == OP_FIXED) wanted &= ~(1u << k);
    b->din[k].data = wanted >> k & 1
                         ? s->gradient + ((double *)s->view.data - s->value)
                         : NULL;
  }
  poison (b->scratch, b->q.scratch);
  b->op->backward (&r);
}

static void check_untouched (const bench *b) {
  for (int k = 0; k < b->c->n_in; k++) {
    const store *s = &b->in[k];
    check_guards (b, s->value, s->count, "an input");
    check_guards (b, s->gradient, s->count, "an input gradient");
    if (memcmp (s->copy, s->value, s->count * sizeof *s->value) != 0)
      ck_abort_msg ("%s (%s), %s, %s: changed input %d", b->c->op, b->c->note,
                    layout_name[b->layout], b->isa, k + 1);
  }
  for (int k = 0; k < b->q.n_out; k++)
    check_guards (b, b->out[k].data, sl_view_count (&b->out[k]), "an output");
  check_guards (b, b->saved, b->q.saved, "saved");
  check_guards (b, b->scratch, b->q.scratch, "scratch");
}

static double four_point (bench *b, double *x, double h) {
  const double at = *x;
  double f[4];
  static const double step[4] = { -2, -1, 1, 2 };
  for (int i = 0; i < 4; i++) {
    *x = at + step[i] * h;
    f[i] = loss (b);
  }
  *x = at;
  return (8 * (f[2] - f[1]) - (f[3] - f[0])) / (12 * h);
}

static int differentiable (const bench *b, int k) {
  return b->c->in[k].values == OP_REAL;
}

static void compare (bench *b, const double *const *gradient) {
  const double tolerance = b->c->tolerance > 0 ? b->c->tolerance : 1e-8;
  const double h = b->c->kink > 0 ? fmin (1e-3, b->c->kink / 8) : 1e-3;
  double largest = 1;
  for (int k = 0; k < b->c->n_in; k++)
    for (size_t i = 0; i < b->in[k].count; i++)
      if (isfinite (gradient[k][i]))
        largest = fmax (largest, fabs (gradient[k][i] - before));
  for (int k = 0; k < b->c->n_in; k++) {
    store *s = &b->in[k];
    for (size_t i = 0; i < s->count; i++) {
      const double got = gradient[k][i] - before;
      const int apart = b->layout == SHARED && k == 1;
      const double want =
          differentiable (b, k) && !apart ? four_point (b, &s->value[i], h) : 0;
      if (fabs (got - want) <= tolerance * largest) continue;
      ck_abort_msg ("%s (%s), %s, %s: d loss / d input %d[%zu] is %.17g, the "
                    "four-point difference %.17g, allowed are %.3g of %.3g; "
                    "seed %llu",
                    b->c->op, b->c->note, layout_name[b->layout], b->isa, k + 1,
                    i, got, want, tolerance, largest,
                    (unsigned long long)b->seed);
    }
  }
}

/* One input wanted at a time gives the bits that all at once gave. */
static void check_alone (bench *b, const double *const *all) {
  if (b->layout == SHARED) return;
  for (int k = 0; k < b->c->n_in; k++) {
    backward (b, 1u << k);
    if (memcmp (b->in[k].gradient, all[k], b->in[k].count * sizeof (double)) !=
        0)
      ck_abort_msg ("%s (%s), %s, %s: gradient %d depends on whether others "
                    "are wanted",
                    b->c->op, b->c->note, layout_name[b->layout], b->isa,
                    k + 1);
  }
}

/* Without a cotangent for an output (or for any) nothing comes from it. */
static void check_no_cotangent (bench *b) {
  void *kept[SL_MAX_OUT];
  for (int k = 0; k < b->q.n_out; k++) {
    kept[k] = b->dout[k].data;
    b->dout[k].data = NULL;
  }
  backward (b, (1u << b->c->n_in) - 1);
  for (int k = 0; k < b->c->n_in; k++)
    for (size_t i = 0; i < b->in[k].count; i++)
      if (b->in[k].gradient[i] != before)
        ck_abort_msg ("%s (%s), %s: input %d has a gradient although no "
                      "output has one",
                      b->c->op, b->c->note, b->isa, k + 1);
  for (int k = 0; k < b->q.n_out; k++) b->dout[k].data = kept[k];
}

static void run_layout (bench *b) {
  const double *gradient[SL_MAX_IN];
  double *kept[SL_MAX_IN];
  set_up (b);
  loss (b);
  backward (b, (1u << b->c->n_in) - 1);
  check_untouched (b);
  for (int k = 0; k < b->c->n_in; k++) {
    kept[k] = poisoned (b->in[k].count);
    memcpy (kept[k], b->in[k].gradient, b->in[k].count * sizeof (double));
    gradient[k] = kept[k];
  }
  check_alone (b, gradient);
  check_no_cotangent (b);
  check_untouched (b);
  compare (b, gradient);
  for (int k = 0; k < b->q.n_out && b->q.n_out > 1; k++) {
    /* the same with this output's cotangent left out */
    void *full = b->dout[k].data;
    b->dout[k].data = NULL;
    loss (b);
    backward (b, (1u << b->c->n_in) - 1);
    for (int i = 0; i < b->c->n_in; i++)
      memcpy (kept[i], b->in[i].gradient, b->in[i].count * sizeof (double));
    compare (b, gradient);
    b->dout[k].data = full;
  }
  for (int k = 0; k < b->c->n_in; k++) release (kept[k]);
  tear_down (b);
}

static int can_share (const op_case *c) {
  return c->n_in >= 2 && c->in[0].values == OP_REAL &&
         c->in[1].values == OP_REAL && c->in[0].low == c->in[1].low &&
         c->in[0].high == c->in[1].high && c->in[0].ndim == c->in[1].ndim &&
         memcmp (c->in[0].dim, c->in[1].dim, sizeof c->in[0].dim) == 0;
}

int op_isa (int i, const char **name) {
  sl_error e;
  sl_isa chosen;
  for (int k = 0, n = 0; k < SL_ISA_COUNT; k++) {
    setenv ("SINKLAB_ISA", sl_isa_name ((sl_isa)k), 1);
    if (sl_isa_choose (&chosen, &e) || chosen != (sl_isa)k || n++ < i) continue;
    *name = sl_isa_name (chosen);
    return 1;
  }
  unsetenv ("SINKLAB_ISA");
  return 0;
}

void op_case_run (const op_case *c, uint64_t seed) {
  bench b;
  sl_error e = { "" };
  const char *isa;
  for (int i = 0; op_isa (i, &isa); i++) {
    for (int l = 0; l < LAYOUTS; l++) {
      if (l == SHARED && !can_share (c)) continue;
      memset (&b, 0, sizeof b);
      b.c = c;
      b.isa = isa;
      b.layout = (enum layout)l;
      b.seed = seed;
      b.op = sl_op_find (SL_F64, c->op, &e);
      if (!b.op) ck_abort_msg ("%s", e.text);
      run_layout (&b);
    }
  }
}
