/* check_layers.c - layer operations against the golden values of piece/, in
** every variant and both precisions. */
#include "ops/ops.h"
#include "support/eager.h"
#include "support/golden.h"
#include "support/suite.h"
#include <stdio.h>

static sl_tensor *load (const char *folder, const char *name, sl_dtype dtype) {
  char file[256];
  snprintf (file, sizeof file, "%s/%s.npy", folder, name);
  golden g = golden_load (file);
  sl_tensor *t = tensor (dtype, g.ndim, g.dim, g.x);
  golden_free (&g);
  return t;
}

/* loss = sum (out * up): its gradients are those of the case. */
static sl_tensor *weigh (sl_tensor *out, sl_tensor *up) {
  static const sl_reduce_attr all = { 0 };
  sl_tensor *product = call ("mul", NULL, 2, (sl_tensor *[]){ out, up });
  sl_tensor *loss = call ("sum", &all, 1, &product);
  sl_tensor_release (product);
  return loss;
}

/* Gradients of the loss for the n tensors against grad_<name>. */
static void close_gradients (sl_program *p, sl_tensor *loss, const char *folder,
                             int n, const char *const *names,
                             sl_tensor *const *in, sl_dtype dtype) {
  const sl_draw draw = { 0 };
  sl_replica *replica;
  for (int i = 0; i < n; i++) OK (sl_program_want (p, in[i], &error) == 0);
  OK (sl_program_loss (p, loss, &error) == 0);
  replica = sl_replica_new (p, &error);
  OK (replica != NULL);
  sl_replica_forward (replica, &draw, NULL);
  sl_replica_backward (replica, 1);
  for (int i = 0; i < n; i++) {
    char file[256];
    const sl_view g = sl_replica_gradient (replica, in[i]);
    snprintf (file, sizeof file, "%s/grad_%s.npy", folder, names[i]);
    golden_close (&g, dtype, file);
  }
  sl_replica_free (replica);
}

static void close_value (sl_tensor *t, const char *folder, const char *name,
                         sl_dtype dtype) {
  char file[256];
  const sl_view v = sl_tensor_view (t);
  snprintf (file, sizeof file, "%s/%s.npy", folder, name);
  golden_close (&v, dtype, file);
}

/* Cases of one operation: out = op (inputs). */
static const sl_norm_attr layer_eps = { 1e-5 }, rms_eps = { 1e-6 };
static const sl_gelu_attr exact = { 0 }, approximate = { 1 };
static const struct {
  const char *folder, *op;
  const void *attr;
  int n;
  const char *in[3];
} pieces[] = {
  { "piece/layernorm", "layer_norm", &layer_eps, 3, { "x", "gamma", "beta" } },
  { "piece/rmsnorm", "rms_norm", &rms_eps, 2, { "x", "gamma" } },
  { "piece/gelu_erf", "gelu", &exact, 1, { "x" } },
  { "piece/gelu_tanh", "gelu", &approximate, 1, { "x" } },
  { "piece/silu", "silu", NULL, 1, { "x" } },
};

START_TEST (golden_pieces) {
  eager_start ();
  ALL_VARIANTS for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
    const char *folder = pieces[k].folder;
    sl_tensor *in[3], *up = load (folder, "up_out", d);
    const int n = pieces[k].n;
    for (int j = 0; j < n; j++) in[j] = load (folder, pieces[k].in[j], d);
    sl_program *p = sl_program_begin (&context, &error);
    sl_tensor *out = call (pieces[k].op, pieces[k].attr, n, in);
    sl_tensor *loss = weigh (out, up);
    sl_program_end (&context, p);
    close_value (out, folder, "out", d);
    close_gradients (p, loss, folder, n, pieces[k].in, in, d);
    sl_program_free (p);
    sl_tensor_release (out);
    sl_tensor_release (loss);
    sl_tensor_release (up);
    for (int j = 0; j < n; j++) sl_tensor_release (in[j]);
  }
  eager_end ();
}
END_TEST

/* W_down (silu (W_gate x) * (W_up x)): linear in both directions. */
START_TEST (golden_swiglu) {
  static const char *const names[] = { "x", "W_gate", "W_up", "W_down" };
  eager_start ();
  ALL_VARIANTS {
    sl_tensor *in[4], *up = load ("piece/swiglu", "up_out", d);
    for (int j = 0; j < 4; j++) in[j] = load ("piece/swiglu", names[j], d);
    sl_program *p = sl_program_begin (&context, &error);
    sl_tensor *gate = call ("linear", NULL, 2, in);
    sl_tensor *open = call ("silu", NULL, 1, &gate);
    sl_tensor *value =
        call ("linear", NULL, 2, (sl_tensor *[]){ in[0], in[2] });
    sl_tensor *hidden = call ("mul", NULL, 2, (sl_tensor *[]){ open, value });
    sl_tensor *out = call ("linear", NULL, 2, (sl_tensor *[]){ hidden, in[3] });
    sl_tensor *loss = weigh (out, up);
    sl_program_end (&context, p);
    close_value (out, "piece/swiglu", "out", d);
    close_gradients (p, loss, "piece/swiglu", 4, names, in, d);
    sl_program_free (p);
    sl_tensor *all[] = { gate, open, value, hidden, out, loss, up };
    for (int j = 0; j < 7; j++) sl_tensor_release (all[j]);
    for (int j = 0; j < 4; j++) sl_tensor_release (in[j]);
  }
  eager_end ();
}
END_TEST

START_TEST (golden_cross_entropy) {
  static const char *const names[] = { "logits" };
  static const sl_cross_entropy_attr attr = { -100 };
  eager_start ();
  ALL_VARIANTS {
    sl_tensor *in[] = { load ("piece/cross_entropy", "logits", d),
                        load ("piece/cross_entropy", "targets", d) };
    sl_tensor *out[SL_MAX_OUT];
    const sl_op *op = sl_op_find (d, "cross_entropy", &error);
    sl_program *p = sl_program_begin (&context, &error);
    double count;
    OK (sl_apply (&context, op, &attr, 2, in, out, &error) == 0);
    sl_program_end (&context, p);
    close_value (out[0], "piece/cross_entropy", "loss", d);
    close_value (out[1], "piece/cross_entropy", "token_loss", d);
    sl_tensor_to_doubles (out[2], &count);
    golden targets = golden_load ("piece/cross_entropy/targets.npy");
    for (size_t j = 0; j < targets.count; j++) count -= targets.x[j] != -100;
    ck_assert_msg (count == 0, "the count is off by %g", count);
    golden_free (&targets);
    close_gradients (p, out[0], "piece/cross_entropy", 1, names, in, d);
    sl_program_free (p);
    for (int j = 0; j < 3; j++) sl_tensor_release (out[j]);
    sl_tensor_release (in[0]);
    sl_tensor_release (in[1]);
  }
  eager_end ();
}
END_TEST

SUITE_MAIN ("layers", golden_pieces, golden_swiglu, golden_cross_entropy)
