/* eager.c - operations run at once on values given in double. */
#include "support/eager.h"
#include <check.h>
#include <math.h>

sl_context context;
sl_error error;

void eager_start (void) {
  OK (sl_context_init (&context, 1, &error) == 0);
}

void eager_end (void) {
  sl_context_free (&context);
}

sl_tensor *tensor (sl_dtype dtype, int ndim, const ptrdiff_t *dim,
                   const double *x) {
  sl_tensor *t = sl_tensor_new (dtype, ndim, dim, &error);
  OK (t != NULL);
  OK (sl_tensor_from_doubles (t, t->storage->count, x, &error) == 0);
  return t;
}

sl_tensor *call (const char *op, const void *attr, int n,
                 sl_tensor *const *in) {
  sl_tensor *out = sl_apply_named (&context, op, attr, n, in, &error);
  OK (out != NULL);
  return out;
}

void values (sl_dtype d, const char *name, const void *attr, int n,
             const given *in, int output, double *out) {
  sl_tensor *t[SL_MAX_IN], *made[SL_MAX_OUT] = { NULL };
  const sl_op *op = sl_op_find (d, name, &error);
  OK (op != NULL);
  for (int j = 0; j < n; j++) t[j] = tensor (d, in[j].ndim, in[j].dim, in[j].x);
  OK (sl_apply (&context, op, attr, n, t, made, &error) == 0);
  sl_tensor_to_doubles (made[output], out);
  for (int j = 0; j < n; j++) sl_tensor_release (t[j]);
  for (int j = 0; j < SL_MAX_OUT; j++) sl_tensor_release (made[j]);
}

void gradient (sl_program *p, sl_tensor *loss, sl_tensor *t, double *out) {
  const sl_draw draw = { 0 };
  sl_replica *r;
  OK (sl_program_want (p, t, &error) == 0);
  OK (sl_program_loss (p, loss, &error) == 0);
  r = sl_replica_new (p, &error);
  OK (r != NULL);
  sl_replica_forward (r, &draw, NULL);
  sl_replica_backward (r, 1);
  const sl_view g = sl_replica_gradient (r, t);
  for (size_t i = 0; i < sl_view_count (&g); i++)
    out[i] = sl_view_get (&g, t->storage->dtype, i);
  sl_replica_free (r);
}

double least (sl_dtype d) {
  return d == SL_F32 ? 0x1p-126 : 0x1p-1022;
}

double unit (sl_dtype d) {
  return d == SL_F32 ? 0x1p-23 : 0x1p-52;
}

/* The same value, or both NaN, or within tol of want's size. */
void near_value (double got, double want, double tol, const char *what,
                 int index) {
  if (isnan (want) ? isnan (got)
                   : got == want || fabs (got - want) <= tol * fabs (want))
    return;
  ck_abort_msg ("%s, element %d: got %.17g, want %.17g, relative tolerance %g",
                what, index, got, want, tol);
}
