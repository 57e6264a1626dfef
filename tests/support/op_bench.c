/* op_bench.c - one operation run by itself: see op_bench.h. */
#include "support/op_bench.h"
#include "base/memory.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

/* n reals of NaN. */
static void *poisoned (const op_bench *b, size_t n) {
  void *p = sl_alloc (n ? n : 1, sl_dtype_size (b->dtype));
  ck_assert_ptr_nonnull (p);
  for (size_t i = 0; i < n; i++)
    if (b->dtype == SL_F64)
      ((double *)p)[i] = NAN;
    else
      ((float *)p)[i] = NAN;
  return p;
}

void op_bench_start (op_bench *b, sl_dtype dtype, const char *op,
                     const void *attr) {
  sl_error e = { "" };
  *b = (op_bench){ .dtype = dtype, .attr = attr };
  b->op = sl_op_find (dtype, op, &e);
  ck_assert_msg (b->op != NULL, "%s", e.text);
}

void op_bench_input (op_bench *b, int ndim, const ptrdiff_t *dim,
                     const double *x) {
  sl_view v = { .ndim = ndim };
  size_t n;
  memcpy (v.dim, dim, (size_t)ndim * sizeof *dim);
  sl_view_pack (&v);
  n = sl_view_count (&v);
  v.data = sl_alloc (n, sl_dtype_size (b->dtype));
  ck_assert_ptr_nonnull (v.data);
  for (size_t i = 0; i < n; i++) sl_view_set (&v, b->dtype, i, x[i]);
  b->in[b->n_in] = v;
  v.data = sl_alloc (n, sl_dtype_size (b->dtype));
  ck_assert_ptr_nonnull (v.data);
  b->din[b->n_in] = v;
  b->n_in++;
}

static int shapes (op_bench *b, sl_shape_query *q, sl_error *e) {
  static sl_view shapes[SL_MAX_IN];
  memcpy (shapes, b->in, sizeof shapes);
  for (int i = 0; i < b->n_in; i++) shapes[i].data = NULL;
  *q = (sl_shape_query){
    .attr = b->attr, .n_in = b->n_in, .in = shapes, .n_out = 1
  };
  return b->op->shapes (q, e);
}

static sl_run run_of (op_bench *b) {
  return (sl_run){ .attr = b->attr,
                   .n_in = b->n_in,
                   .n_out = 1,
                   .in = b->in,
                   .out = b->out,
                   .din = b->din,
                   .dout = b->dout,
                   .saved = b->saved,
                   .scratch = b->scratch,
                   .draw = &b->draw,
                   .observer = b->observer };
}

void op_bench_forward (op_bench *b) {
  sl_shape_query q;
  sl_error e = { "" };
  sl_run r;
  if (shapes (b, &q, &e)) ck_abort_msg ("%s: %s", b->op->name, e.text);
  b->out[0] = q.out[0];
  sl_view_pack (&b->out[0]);
  b->out[0].data = poisoned (b, sl_view_count (&b->out[0]));
  b->n_saved = q.saved;
  b->n_scratch = q.scratch;
  b->saved = poisoned (b, q.saved);
  b->scratch = poisoned (b, q.scratch);
  r = run_of (b);
  b->op->forward (&r);
}

/* Gradients that the op assigns to places of NaN are what it adds to zero. */
static void check_assigned (op_bench *b, sl_run r) {
  sl_view din[SL_MAX_IN];
  for (int k = 0; k < b->n_in; k++) {
    din[k] = b->din[k];
    din[k].data = poisoned (b, sl_view_count (&din[k]));
  }
  r.din = din;
  r.assigns = (1u << b->n_in) - 1;
  b->op->backward (&r);
  for (int k = 0; k < b->n_in; k++) {
    for (size_t i = 0; i < sl_view_count (&din[k]); i++) {
      const double got = sl_view_get (&din[k], b->dtype, i);
      const double want = sl_view_get (&b->din[k], b->dtype, i);
      /* ck_assert_msg writes to a pipe each time, which is slow in a loop */
      if (got != want && !(isnan (got) && isnan (want)))
        ck_abort_msg (
            "%s assigns %.17g to element %zu of gradient %d, and adds "
            "%.17g to 0",
            b->op->name, got, i, k + 1, want);
    }
    sl_free (din[k].data);
  }
}

void op_bench_backward (op_bench *b, const double *dout) {
  size_t n = sl_view_count (&b->out[0]);
  sl_run r;
  sl_free (b->scratch);
  b->scratch = poisoned (b, b->n_scratch);
  b->dout[0] = b->out[0];
  b->dout[0].data = sl_alloc (n, sl_dtype_size (b->dtype));
  ck_assert_ptr_nonnull (b->dout[0].data);
  for (size_t i = 0; i < n; i++)
    sl_view_set (&b->dout[0], b->dtype, i, dout[i]);
  r = run_of (b);
  b->op->backward (&r);
  if (b->op->flags & SL_OP_ASSIGNS && b->backwards++ == 0)
    check_assigned (b, r);
}

const char *op_bench_refusal (op_bench *b) {
  static sl_error e;
  sl_shape_query q;
  e.text[0] = '\0';
  if (shapes (b, &q, &e) == 0) ck_abort_msg ("%s took the inputs", b->op->name);
  return e.text;
}

void op_bench_free (op_bench *b) {
  for (int i = 0; i < b->n_in; i++) {
    sl_free (b->in[i].data);
    sl_free (b->din[i].data);
  }
  sl_free (b->out[0].data);
  sl_free (b->dout[0].data);
  sl_free (b->saved);
  sl_free (b->scratch);
}

double op_bench_at (const op_bench *b, const sl_view *v, size_t i) {
  return sl_view_get (v, b->dtype, i);
}

int op_bench_same (const op_bench *a, const sl_view *x, const sl_view *y) {
  return memcmp (x->data, y->data,
                 sl_view_count (x) * sl_dtype_size (a->dtype)) == 0;
}
