/* check_models.c - the paper's models against golden forwards, gradients and a
** hundred steps of Adam, in both precisions, however the batch is cut. */
#include "attention/attention.h"
#include "base/isa.h"
#include "base/memory.h"
#include "support/golden.h"
#include "support/optimizer.h"
#include "support/suite.h"
#include "train/train.h"
#include <stdio.h>

enum { B = 4, T = 16, D = 16, BATCHES = 5, STEPS = 100 };

/* models[0] has one layer of one head and no residual, models[1] two of two. */
static const struct {
  const char *name;
  int layers, heads, residual;
} models[] = { { "model_1l1h", 1, 1, 0 }, { "model_2l2h", 2, 2, 1 } };
static const char *const mechanisms[] = { "softmax", "relu" };
static const char *const matrices[] = { "W_Q", "W_K", "W_V", "W_O" };

/* Golden batches as an operation: the sequences of step t are those of batch
** (t - 1) mod 5, counted from the draw's first sample. */
typedef struct feed_attr {
  const double *x; /* [batch][sequence][token][coordinate] */
  int shard, f32;
} feed_attr;

static int feed_infer (sl_shape_query *q, sl_error *e) {
  const feed_attr *a = q->attr;
  (void)e;
  q->n_out = 1;
  q->out[0] = (sl_view){ .ndim = 3, .dim = { a->shard, T, D } };
  return 0;
}

static void feed_forward (const sl_run *r) {
  const feed_attr *a = r->attr;
  const long step = r->draw->step > 0 ? r->draw->step - 1 : 0;
  const double *x =
      a->x +
      ((size_t)(step % BATCHES) * B + (size_t)r->draw->first_sample) * T * D;
  for (size_t i = 0; i < (size_t)a->shard * T * D; i++)
    sl_view_set (&r->out[0], a->f32 ? SL_F32 : SL_F64, i, x[i]);
}

static const sl_op feed = { .name = "feed",
                            .min_in = 1,
                            .max_in = 1,
                            .flags = SL_OP_NO_GRADIENT,
                            .attr_size = sizeof (feed_attr),
                            .shapes = feed_infer,
                            .forward = feed_forward };

/* A model that is being made; tensors are released together at the end. */
typedef struct bench {
  int model, mechanism;
  sl_dtype dtype;
  sl_context context;
  sl_program *program;
  sl_tensor *flat; /* all parameters */
  sl_tensor *w[2][4];
  sl_tensor *x, *prediction, *loss;
  sl_tensor *made[64];
  int n_made;
  char dir[64]; /* "model_1l1h/softmax" */
} bench;

static sl_tensor *keep (bench *b, sl_tensor *t, const sl_error *e) {
  ck_assert_msg (t != NULL, "%s", e->text);
  ck_assert_int_lt (b->n_made, 64);
  return b->made[b->n_made++] = t;
}

static sl_tensor *call (bench *b, const char *op, const void *attr, int n_in,
                        sl_tensor *const *in) {
  sl_error e = { "" };
  return keep (b, sl_apply_named (&b->context, op, attr, n_in, in, &e), &e);
}

static sl_tensor *call2 (bench *b, const char *op, sl_tensor *a, sl_tensor *c) {
  sl_tensor *const in[2] = { a, c };
  return call (b, op, NULL, 2, in);
}

static void file_of (const bench *b, char *file, const char *prefix, int layer,
                     int matrix) {
  char number[16] = "";
  if (models[b->model].layers > 1)
    snprintf (number, sizeof number, "l%d_", layer + 1);
  snprintf (file, 128, "%s/%s%s%s.npy", b->dir, prefix, number,
            matrices[matrix]);
}

/* All matrices in one storage, with their golden starting values. */
static void load_parameters (bench *b) {
  const ptrdiff_t wide = models[b->model].heads * D, each = wide * D;
  const ptrdiff_t count = models[b->model].layers * 4 * each;
  sl_error e = { "" };
  b->flat = keep (b, sl_tensor_new (b->dtype, 1, &count, &e), &e);
  for (int l = 0; l < models[b->model].layers; l++)
    for (int m = 0; m < 4; m++) {
      const ptrdiff_t dim[2] = { m < 3 ? wide : D, m < 3 ? D : wide };
      char file[128];
      golden g;
      sl_tensor *part = keep (
          b, sl_tensor_narrow (b->flat, 0, (l * 4 + m) * each, each, &e), &e);
      b->w[l][m] = keep (b, sl_tensor_reshape (part, 2, dim, &e), &e);
      file_of (b, file, "", l, m);
      g = golden_load (file);
      ck_assert_int_eq (sl_tensor_from_doubles (part, g.count, g.x, &e), 0);
      golden_free (&g);
    }
}

static sl_tensor *attention (bench *b, int l, sl_tensor *x) {
  char path[4096];
  sl_error e = { "" };
  sl_tensor *in[3];
  const sl_loaded *loaded;
  sl_attention_attr a = { .heads = models[b->model].heads,
                          .kv_heads = models[b->model].heads,
                          .d_head = D,
                          .scale = 1,
                          .visibility = { .causal = 1 } };
  snprintf (path, sizeof path, "%s/plugins/%s.so", SINKLAB_TEST_BUILD,
            mechanisms[b->mechanism]);
  loaded = sl_plugin_load (path, &e);
  ck_assert_msg (loaded != NULL, "%s", e.text);
  a.mechanism = sl_mechanism_new (loaded, 0, NULL, &e);
  ck_assert_msg (a.mechanism != NULL, "%s", e.text);
  for (int m = 0; m < 3; m++) in[m] = call2 (b, "linear", x, b->w[l][m]);
  return call2 (b, "linear", call (b, "attention", &a, 3, in), b->w[l][3]);
}

/* x and y are the first golden batch, or 'fed' by step (training). */
static bench bench_new (int model, int mechanism, sl_dtype dtype, int shard,
                        int fed, const golden *data) {
  bench b = { .model = model, .mechanism = mechanism, .dtype = dtype };
  const ptrdiff_t dim[3] = { shard, T, D };
  sl_error e = { "" };
  sl_tensor *y, *h;
  sl_isa isa;
  ck_assert_msg (sl_isa_choose (&isa, &e) == 0, "%s", e.text);
  ck_assert_msg (sl_context_init (&b.context, 2, &e) == 0, "%s", e.text);
  snprintf (b.dir, sizeof b.dir, "%s/%s", models[model].name,
            mechanisms[mechanism]);
  load_parameters (&b);
  b.x = keep (&b, sl_tensor_new (dtype, 3, dim, &e), &e);
  y = keep (&b, sl_tensor_new (dtype, 3, dim, &e), &e);
  sl_tensor_from_doubles (b.x, (size_t)shard * T * D, data[0].x, &e);
  sl_tensor_from_doubles (y, (size_t)shard * T * D, data[1].x, &e);
  b.program = sl_program_begin (&b.context, &e);
  ck_assert_msg (b.program != NULL, "%s", e.text);
  if (fed) {
    const feed_attr fx = { data[0].x, shard, dtype == SL_F32 };
    const feed_attr fy = { data[1].x, shard, dtype == SL_F32 };
    sl_tensor *out[SL_MAX_OUT];
    ck_assert_int_eq (sl_apply (&b.context, &feed, &fx, 1, &b.flat, out, &e),
                      0);
    b.x = keep (&b, out[0], &e);
    ck_assert_int_eq (sl_apply (&b.context, &feed, &fy, 1, &b.flat, out, &e),
                      0);
    y = keep (&b, out[0], &e);
  }
  h = b.x;
  for (int l = 0; l < models[model].layers; l++) {
    sl_tensor *o = attention (&b, l, h);
    h = models[model].residual ? call2 (&b, "add", h, o) : o;
  }
  b.prediction = h;
  b.loss = call2 (&b, "mse", h, y);
  sl_program_end (&b.context, b.program);
  ck_assert_int_eq (sl_program_want (b.program, b.flat, &e), 0);
  ck_assert_int_eq (sl_program_loss (b.program, b.loss, &e), 0);
  return b;
}

static void bench_free (bench *b) {
  sl_program_free (b->program);
  while (b->n_made > 0) sl_tensor_release (b->made[--b->n_made]);
  sl_context_free (&b->context);
}

/* The view of matrix m of layer l in a buffer laid out like b->flat. */
static sl_view matrix_in (const bench *b, int l, int m, const sl_view *flat) {
  sl_view v = sl_tensor_view (b->w[l][m]);
  v.data = (char *)flat->data +
           b->w[l][m]->offset * (ptrdiff_t)sl_dtype_size (b->dtype);
  return v;
}

static void close_matrices (const bench *b, const char *prefix,
                            const sl_view *flat) {
  for (int l = 0; l < models[b->model].layers; l++)
    for (int m = 0; m < 4; m++) {
      char file[128];
      const sl_view v = matrix_in (b, l, m, flat);
      file_of (b, file, prefix, l, m);
      golden_close (&v, b->dtype, file);
    }
}

/* Weights gathered as [layer][sequence][head][query][key]. */
typedef struct watched {
  const bench *b;
  double w[2 * B * 2 * T * T];
} watched;

static void watch (void *context, const sl_weight_rows *r) {
  watched *a = context;
  const int heads = models[a->b->model].heads;
  const sl_view v = { .data = (void *)r->weights,
                      .ndim = 2,
                      .dim = { r->rows, T },
                      .stride = { r->stride, 1 } };
  double *to =
      a->w +
      (size_t)(((r->layer * B + r->sample) * heads + r->head) * T + r->row) * T;
  for (size_t i = 0; i < (size_t)r->rows * T; i++)
    to[i] = sl_view_get (&v, r->dtype, i);
}

static void close_doubles (const bench *b, const double *x, size_t n,
                           const char *name) {
  char file[128];
  void *y = sl_alloc (n, sl_dtype_size (b->dtype));
  sl_view v = {
    .data = y, .ndim = 1, .dim = { (ptrdiff_t)n }, .stride = { 1 }
  };
  ck_assert_ptr_nonnull (y);
  for (size_t i = 0; i < n; i++) sl_view_set (&v, b->dtype, i, x[i]);
  snprintf (file, sizeof file, "%s/%s.npy", b->dir, name);
  golden_close_array (y, n, b->dtype, file);
  sl_free (y);
}

static void close_tensor (const bench *b, const sl_view *v, const char *name) {
  char file[128];
  snprintf (file, sizeof file, "%s/%s.npy", b->dir, name);
  golden_close (v, b->dtype, file);
}

static void load_data (int model, golden data[2]) {
  char file[64];
  for (int i = 0; i < 2; i++) {
    snprintf (file, sizeof file, "%s/data/%c.npy", models[model].name, "xy"[i]);
    data[i] = golden_load (file);
  }
}

static void forward_and_gradients (int model, int mechanism, sl_dtype dtype) {
  static watched seen;
  const sl_observer observer = { watch, &seen };
  golden data[2];
  sl_error e = { "" };
  sl_replica *r;
  sl_view v;
  bench b;
  load_data (model, data);
  b = bench_new (model, mechanism, dtype, B, 0, data);
  seen.b = &b;
  ck_assert_int_eq (sl_program_want (b.program, b.x, &e), 0);
  r = sl_replica_new (b.program, &e);
  ck_assert_msg (r != NULL, "%s", e.text);
  sl_replica_zero (r);
  sl_replica_forward (r, NULL, (void *)&observer);
  sl_replica_backward (r, 1);
  v = sl_replica_value (r, b.prediction);
  close_tensor (&b, &v, "pred");
  v = sl_replica_value (r, b.loss);
  close_tensor (&b, &v, "loss");
  close_doubles (
      &b, seen.w,
      (size_t)(models[model].layers * B * models[model].heads) * T * T, "attn");
  v = sl_replica_gradient (r, b.x);
  close_tensor (&b, &v, "grad_x");
  v = sl_replica_gradient (r, b.flat);
  close_matrices (&b, "grad_", &v);
  sl_replica_free (r);
  bench_free (&b);
  for (int i = 0; i < 2; i++) golden_free (&data[i]);
}

START_TEST (forwards_and_gradients) {
  for (int i = 0; i < 8; i++)
    forward_and_gradients (i & 1, i >> 1 & 1, i & 4 ? SL_F64 : SL_F32);
}
END_TEST

static void hundred_steps (int model, int mechanism, sl_dtype dtype, int shard,
                           int groups) {
  static const sl_point lr = { 0, 1e-3, SL_CURVE_HOLD };
  double losses[STEPS];
  golden data[2];
  sl_error e = { "" };
  sl_trainer *t;
  bench b;
  load_data (model, data);
  b = bench_new (model, mechanism, dtype, shard, 1, data);
  t = sl_trainer_new (&b.context,
                      &(sl_trainer_spec){ .program = b.program,
                                          .parameters = b.flat,
                                          .loss = b.loss,
                                          .batch = B,
                                          .shard = shard,
                                          .groups = groups,
                                          .optimizer = optimizer_of (
                                              "adam", "beta2", 0.95, NULL),
                                          .schedule = &lr,
                                          .n_points = 1 },
                      &e);
  ck_assert_msg (t != NULL, "%s", e.text);
  for (long s = 1; s <= STEPS; s++) {
    const sl_view flat = sl_tensor_view (b.flat);
    char prefix[32];
    sl_progress p;
    sl_trainer_run (t, s, 0, &p);
    ck_assert_int_eq (p.stopped, SL_RUNNING);
    losses[s - 1] = p.loss;
    snprintf (prefix, sizeof prefix, "step%ld_", s);
    if (s == 1 || s == 10 || s == 100) close_matrices (&b, prefix, &flat);
  }
  close_doubles (&b, losses, STEPS, "losses");
  sl_trainer_free (t);
  bench_free (&b);
  for (int i = 0; i < 2; i++) golden_free (&data[i]);
}

START_TEST (training) {
  for (int i = 0; i < 8; i++) {
    const sl_dtype dtype = i & 4 ? SL_F64 : SL_F32;
    hundred_steps (i & 1, i >> 1 & 1, dtype, 4, 1);
    hundred_steps (i & 1, i >> 1 & 1, dtype, 1, 2);
    hundred_steps (i & 1, i >> 1 & 1, dtype, 1, 4);
  }
}
END_TEST

SUITE_MAIN ("models", forwards_and_gradients, training)
