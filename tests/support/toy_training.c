/* toy_training.c - see toy_training.h. */
#include "support/toy_training.h"
#include "support/optimizer.h"
#include "support/suite.h"
#include <math.h>

double toy_target (const sl_draw *d, long s, size_t j, size_t n, double noise) {
  uint32_t counter[4] = { (uint32_t)j, d->first_sample + (uint32_t)s, d->step,
                          1 },
           word[4];
  sl_philox (d->seed, counter, word);
  return (double)j / (double)n +
         noise * (sl_uniform53 (word[0], word[1]) - 0.5);
}

int toy_counts (const sl_draw *d, long s, const toy_problem *p) {
  uint32_t counter[4] = { 0, d->first_sample + (uint32_t)s, d->step, 2 };
  uint32_t word[4];
  if (p->none_every && d->step % (uint32_t)p->none_every == 0) return 0;
  if (!p->some) return 1;
  sl_philox (d->seed, counter, word);
  return word[0] % 3 != 0;
}

static int shapes (sl_shape_query *q, sl_error *e) {
  (void)e;
  q->n_out = 3; /* loss, weight, max_abs_error */
  return 0;
}

static sl_dtype dtype_of (const toy_problem *p) {
  return p->f32 ? SL_F32 : SL_F64;
}

static void forward (const sl_run *r) {
  const toy_problem *p = r->attr;
  const size_t n = (size_t)r->in[0].dim[0];
  double loss = 0, max_abs_error = 0;
  long count = 0;
  for (long s = 0; s < p->shard; s++) {
    if (!toy_counts (r->draw, s, p)) continue;
    count++;
    for (size_t j = 0; j < n; j++) {
      double d = sl_view_get (&r->in[0], dtype_of (p), j) -
                 toy_target (r->draw, s, j, n, p->noise);
      loss += d * d / 2;
      max_abs_error = fmax (max_abs_error, fabs (d));
    }
  }
  if (p->blows == 1) loss = NAN;
  sl_view_set (&r->out[0], dtype_of (p), 0, count ? loss / (double)count : 0);
  sl_view_set (&r->out[1], dtype_of (p), 0, (double)count);
  sl_view_set (&r->out[2], dtype_of (p), 0, max_abs_error);
}

static void backward (const sl_run *r) {
  const toy_problem *p = r->attr;
  const size_t n = (size_t)r->in[0].dim[0];
  const double seed = sl_view_get (&r->dout[0], dtype_of (p), 0);
  long count = 0;
  for (long s = 0; s < p->shard; s++) count += toy_counts (r->draw, s, p);
  for (size_t j = 0; j < n; j++) {
    double g = sl_view_get (&r->din[0], dtype_of (p), j);
    for (long s = 0; s < p->shard; s++)
      if (toy_counts (r->draw, s, p))
        g += seed / (double)count *
             (sl_view_get (&r->in[0], dtype_of (p), j) -
              toy_target (r->draw, s, j, n, p->noise));
    if (p->blows == 2) g = HUGE_VAL;
    sl_view_set (&r->din[0], dtype_of (p), j, g);
  }
}

static void forward_here (const sl_run *r) {
  const toy_problem *p = r->attr;
  ck_assert_msg (pthread_equal (p->thread, pthread_self ()),
                 "a serial program ran on another thread");
  forward (r);
}

const sl_op toy_op = { .name = "toy",
                       .min_in = 1,
                       .max_in = 1,
                       .attr_size = sizeof (toy_problem),
                       .shapes = shapes,
                       .forward = forward,
                       .backward = backward };
const sl_op toy_serial_op = { .name = "serial_toy",
                              .min_in = 1,
                              .max_in = 1,
                              .flags = SL_OP_SERIAL,
                              .attr_size = sizeof (toy_problem),
                              .shapes = shapes,
                              .forward = forward_here,
                              .backward = backward };

static const sl_point half = { 0, 0.5, SL_CURVE_HOLD };

toy_bench toy_bench_new (const sl_op *op, toy_problem p, ptrdiff_t n,
                         int threads, long batch, int groups) {
  toy_bench b = { 0 };
  sl_error e;
  const sl_dtype dtype = dtype_of (&p);
  p.thread = pthread_self ();
  ck_assert_msg (sl_context_init (&b.context, threads, &e) == 0, "%s", e.text);
  b.w = sl_tensor_new (dtype, 1, &n, &e);
  ck_assert_msg (b.w != NULL, "%s", e.text);
  b.program = sl_program_begin (&b.context, &e);
  ck_assert_msg (b.program != NULL, "%s", e.text);
  ck_assert_msg (sl_apply (&b.context, op, &p, 1, &b.w, b.out, &e) == 0, "%s",
                 e.text);
  sl_program_end (&b.context, b.program);
  ck_assert_int_eq (sl_program_want (b.program, b.w, &e), 0);
  ck_assert_int_eq (sl_program_loss (b.program, b.out[0], &e), 0);
  b.spec = (sl_trainer_spec){ .program = b.program,
                              .parameters = b.w,
                              .loss = b.out[0],
                              .weight = b.out[1],
                              .max_abs_error = b.out[2],
                              .batch = batch,
                              .shard = p.shard,
                              .groups = groups,
                              .optimizer =
                                  optimizer_of ("sgd", "momentum", 0.5, NULL),
                              .schedule = &half,
                              .n_points = 1,
                              .seed = 7 };
  return b;
}

void toy_bench_free (toy_bench *b) {
  sl_program_free (b->program);
  for (int i = 0; i < 3; i++) sl_tensor_release (b->out[i]);
  sl_tensor_release (b->w);
  sl_context_free (&b->context);
}

sl_trainer *toy_trainer_new (toy_bench *b) {
  sl_error e = { "" };
  sl_trainer *t = sl_trainer_new (&b->context, &b->spec, &e);
  ck_assert_msg (t != NULL, "%s", e.text);
  return t;
}

double toy_weight_at (const toy_bench *b, size_t j) {
  const sl_view v = sl_tensor_view (b->w);
  return sl_view_get (&v, b->w->storage->dtype, j);
}

/* The same training in plain loops over the whole batch. */
void toy_reference (const toy_problem *p, size_t n, long batch, long steps,
                    double *w, double *loss) {
  double velocity[16] = { 0 };
  for (long step = 1; step <= steps; step++) {
    const sl_draw d = { 7, (uint32_t)step, 0 };
    double g[16] = { 0 };
    long count = 0;
    *loss = 0;
    for (long s = 0; s < batch; s++) {
      if (!toy_counts (&d, s, p)) continue;
      count++;
      for (size_t j = 0; j < n; j++) {
        double x = w[j] - toy_target (&d, s, j, n, p->noise);
        g[j] += x;
        *loss += x * x / 2;
      }
    }
    *loss /= (double)count;
    for (size_t j = 0; j < n; j++) {
      velocity[j] = 0.5 * velocity[j] + (count ? g[j] / (double)count : 0);
      w[j] -= 0.5 * velocity[j];
    }
  }
}
