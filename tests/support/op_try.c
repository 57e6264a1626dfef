/* op_try.c - run operations on tensors of doubles: see op_try.h. */
#include "support/op_try.h"
#include "base/memory.h"
#include "support/op_case.h"
#include "support/suite.h"
#include <float.h>
#include <string.h>

void op_each (void (*test) (op_try *t)) {
  op_try t;
  sl_error e = { "" };
  for (int i = 0; op_isa (i, &t.isa); i++) {
    for (int d = SL_F32; d <= SL_F64; d++) {
      t.dtype = (sl_dtype)d;
      t.seed = 7;
      if (sl_context_init (&t.context, 1, &e)) ck_abort_msg ("%s", e.text);
      test (&t);
      sl_context_free (&t.context);
    }
  }
}

sl_tensor *op_zeros (op_try *t, int ndim, const ptrdiff_t *dim) {
  sl_error e = { "" };
  sl_tensor *x = sl_tensor_new (t->dtype, ndim, dim, &e);
  if (!x) ck_abort_msg ("%s", e.text);
  return x;
}

sl_tensor *op_values (op_try *t, const double *x, int ndim,
                      const ptrdiff_t *dim) {
  sl_tensor *y = op_zeros (t, ndim, dim);
  const sl_view v = sl_tensor_view (y);
  for (size_t i = 0; i < sl_view_count (&v); i++)
    sl_view_set (&v, t->dtype, i, x[i]);
  return y;
}

sl_tensor *op_random (op_try *t, double low, double high, int ndim,
                      const ptrdiff_t *dim) {
  sl_tensor *y = op_zeros (t, ndim, dim);
  const sl_view v = sl_tensor_view (y);
  t->seed++;
  for (size_t i = 0; i < sl_view_count (&v); i++) {
    const uint32_t counter[4] = { (uint32_t)i, 0, 0, 0 };
    uint32_t word[4];
    sl_philox (t->seed, counter, word);
    sl_view_set (&v, t->dtype, i,
                 low + (high - low) * sl_uniform53 (word[0], word[1]));
  }
  return y;
}

double op_at (const sl_tensor *x, size_t i) {
  const sl_view v = sl_tensor_view (x);
  return sl_view_get (&v, x->storage->dtype, i);
}

size_t op_count (const sl_tensor *x) {
  const sl_view v = sl_tensor_view (x);
  return sl_view_count (&v);
}

static const sl_op *find (op_try *t, const char *name) {
  sl_error e = { "" };
  const sl_op *op = sl_op_find (t->dtype, name, &e);
  if (!op) ck_abort_msg ("%s", e.text);
  return op;
}

sl_tensor *op_call (op_try *t, const char *op, const void *attr, int n_in,
                    sl_tensor *const *in) {
  sl_tensor *out[SL_MAX_OUT] = { NULL };
  sl_error e = { "" };
  if (sl_apply (&t->context, find (t, op), attr, n_in, in, out, &e))
    ck_abort_msg ("%s", e.text);
  return out[0];
}

void op_refuses (op_try *t, const char *op, const void *attr, int n_in,
                 sl_tensor *const *in, const char *words) {
  sl_tensor *out[SL_MAX_OUT] = { NULL };
  sl_error e = { "" };
  if (!sl_apply (&t->context, find (t, op), attr, n_in, in, out, &e))
    ck_abort_msg ("%s: was allowed, but should say '%s'", op, words);
  if (!strstr (e.text, words))
    ck_abort_msg ("%s: said '%s', should say '%s'", op, e.text, words);
}

sl_tensor *op_gradient (op_try *t, const char *name, const void *attr, int n_in,
                        sl_tensor *const *in, int k, sl_tensor *cotangent) {
  const sl_op *op = find (t, name);
  sl_view x[SL_MAX_IN], din[SL_MAX_IN], y, dy = sl_tensor_view (cotangent);
  sl_shape_query q = { .attr = attr, .n_in = n_in, .in = x };
  sl_error e = { "" };
  sl_tensor *gradient = op_zeros (t, in[k]->ndim, in[k]->dim);
  for (int i = 0; i < n_in; i++) {
    din[i] = x[i] = sl_tensor_view (in[i]);
    din[i].data = i == k ? sl_tensor_view (gradient).data : NULL;
  }
  if (op->shapes (&q, &e)) ck_abort_msg ("%s: %s", name, e.text);
  y = q.out[0];
  sl_view_pack (&y);
  y.data = sl_alloc (sl_view_count (&y), sl_dtype_size (t->dtype));
  void *saved = sl_alloc (q.saved, sl_dtype_size (t->dtype));
  void *scratch = sl_alloc (q.scratch, sl_dtype_size (t->dtype));
  const sl_run r = { .attr = attr,
                     .n_in = n_in,
                     .n_out = 1,
                     .in = x,
                     .out = &y,
                     .din = din,
                     .dout = &dy,
                     .saved = saved,
                     .scratch = scratch,
                     .draw = &t->context.draw };
  op->forward (&r);
  op->backward (&r);
  sl_free (y.data);
  sl_free (saved);
  sl_free (scratch);
  return gradient;
}

double op_ulps (const op_try *t, double f32, double f64) {
  return t->dtype == SL_F32 ? f32 * (double)FLT_EPSILON : f64 * DBL_EPSILON;
}
