/* check_serial.c - operations that the script defines: they may fail, and are
** told when nobody needs them any more. */
#include "base/memory_test.h"
#include "program/program.h"
#include "support/suite.h"
#include "train/train.h"

/* What an operation of a script has to remember. */
typedef struct script {
  uint32_t fails_at; /* step */
  int calls, released;
} script;

typedef struct script_attr {
  script *script;
} script_attr;

static script *script_of (const void *attr) {
  return ((const script_attr *)attr)->script;
}

static int shapes (sl_shape_query *q, sl_error *e) {
  (void)e;
  q->n_out = 1;
  q->out[0].ndim = 1;
  q->out[0].dim[0] = 1;
  return 0;
}

/* The step as a number; from the step 'fails_at' on, none. */
static void forward (const sl_run *r) {
  script *s = script_of (r->attr);
  s->calls++;
  if (r->draw->step >= s->fails_at)
    sl_fail (r->error, "no number for step %u", r->draw->step);
  else
    *(double *)r->out[0].data = r->draw->step;
}

static void release (const void *attr) {
  script_of (attr)->released++;
}

static const sl_op number = { .name = "number",
                              .flags = SL_OP_NO_GRADIENT | SL_OP_SERIAL,
                              .attr_size = sizeof (script_attr),
                              .shapes = shapes,
                              .forward = forward,
                              .release = release };
static const sl_op *const ops[] = { &number, NULL };
static const sl_op *const none[] = { NULL };
static const sl_op_list in_f32 = { none }, in_f64 = { ops };

static const sl_op_list *pick (sl_dtype dtype) {
  return dtype == SL_F32 ? &in_f32 : &in_f64;
}

/* loss = mse (w, number) */
typedef struct bench {
  sl_context context;
  sl_program *program;
  sl_tensor *w, *x, *loss;
  script script;
} bench;

static void bench_open (bench *b, uint32_t fails_at) {
  const ptrdiff_t one = 1;
  script_attr attr = { &b->script };
  sl_tensor *in[2];
  sl_error e;
  *b = (bench){ .script.fails_at = fails_at };
  ck_assert_int_eq (sl_op_add_list (pick), 0);
  ck_assert_int_eq (sl_context_init (&b->context, 2, &e), 0);
  b->w = sl_tensor_new (SL_F64, 1, &one, &e);
  b->program = sl_program_begin (&b->context, &e);
  ck_assert_msg (sl_apply (&b->context, &number, &attr, 0, NULL, &b->x, &e) ==
                     0,
                 "%s", e.text);
  in[0] = b->w;
  in[1] = b->x;
  b->loss = sl_apply_named (&b->context, "mse", NULL, 2, in, &e);
  ck_assert_ptr_nonnull (b->loss);
  sl_program_end (&b->context, b->program);
  ck_assert_int_eq (sl_program_want (b->program, b->w, &e), 0);
  ck_assert_int_eq (sl_program_loss (b->program, b->loss, &e), 0);
}

static void bench_close (bench *b) {
  sl_tensor_release (b->w);
  sl_tensor_release (b->x);
  sl_tensor_release (b->loss);
  sl_program_free (b->program);
  sl_context_free (&b->context);
}

START_TEST (a_failure_at_once_makes_nothing) {
  script s = { .fails_at = 0 };
  const script_attr attr = { &s };
  sl_tensor *out[SL_MAX_OUT] = { NULL };
  sl_context c;
  sl_program *p;
  sl_error e = { "" };
  size_t live;
  ck_assert_int_eq (sl_op_add_list (pick), 0);
  ck_assert_int_eq (sl_context_init (&c, 1, &e), 0);
  live = sl_alloc_live ();
  for (int recording = 0; recording < 2; recording++) {
    p = recording ? sl_program_begin (&c, &e) : NULL;
    ck_assert_int_eq (sl_apply (&c, &number, &attr, 0, NULL, out, &e), -1);
    ck_assert_str_eq (e.text, "number: no number for step 0");
    ck_assert_ptr_null (out[0]);
    if (p) {
      sl_program_end (&c, p);
      ck_assert_uint_eq (sl_program_nodes (p), 0);
      sl_program_free (p);
    }
  }
  ck_assert_uint_eq (sl_alloc_live (), live);
  ck_assert_int_eq (s.released, 0);
  sl_context_free (&c);
}
END_TEST

START_TEST (a_failure_ends_the_replay) {
  bench b;
  sl_replica *r;
  sl_error e;
  sl_draw draw = { .step = 2 };
  sl_view loss;
  bench_open (&b, 3);
  r = sl_replica_new (b.program, &e);
  ck_assert_int_eq (sl_replica_forward (r, &draw, NULL), 0);
  ck_assert_str_eq (sl_replica_error (r)->text, "");
  loss = sl_replica_value (r, b.loss);
  CLOSE (*(double *)loss.data, 4, 0, 1e-15, "loss");
  draw.step = 3;
  ck_assert_int_eq (sl_replica_forward (r, &draw, NULL), -1);
  ck_assert_str_eq (sl_replica_error (r)->text, "no number for step 3");
  CLOSE (*(double *)loss.data, 4, 0, 1e-15, "loss of the replay before");
  draw.step = 1;
  ck_assert_int_eq (sl_replica_forward (r, &draw, NULL), 0);
  CLOSE (*(double *)loss.data, 1, 0, 1e-15, "loss of the next replay");
  sl_replica_free (r);
  bench_close (&b);
}
END_TEST

START_TEST (release_comes_with_the_last_owner) {
  bench b;
  sl_replica *r;
  sl_error e;
  bench_open (&b, 3);
  r = sl_replica_new (b.program, &e);
  sl_program_free (b.program);
  b.program = NULL;
  ck_assert_int_eq (b.script.released, 0);
  sl_replica_free (r);
  ck_assert_int_eq (b.script.released, 1);
  bench_close (&b);
}
END_TEST

START_TEST (gradient_check) {
  bench b;
  sl_error e;
  double worst = -1;
  size_t live;
  bench_open (&b, 2); /* the check replays as step 1 */
  ck_assert_int_eq (sl_program_check (b.program, 0, 1, &worst, &e), 0);
  ck_assert_msg (worst < 1e-9, "worst is %g, allowed 1e-9", worst);
  live = sl_alloc_live ();
  for (b.script.fails_at = 0; b.script.fails_at < 2; b.script.fails_at++) {
    ck_assert_int_eq (sl_program_check (b.program, 0, 1, &worst, &e), -1);
    ck_assert_str_eq (e.text, "check: no number for step 1");
  }
  ck_assert_uint_eq (sl_alloc_live (), live);
  bench_close (&b);
}
END_TEST

START_TEST (a_trainer_keeps_what_it_had) {
  static const sl_point rate = { 0, 0.5, SL_CURVE_HOLD };
  bench b;
  sl_trainer *t;
  sl_trainer_spec spec;
  sl_progress p;
  sl_error e;
  double loss = -1, max_abs_error = -1;
  const double *w;
  bench_open (&b, 4);
  w = sl_tensor_view (b.w).data;
  spec = (sl_trainer_spec){ .program = b.program,
                            .parameters = b.w,
                            .loss = b.loss,
                            .batch = 4,
                            .shard = 1,
                            .groups = 2,
                            .schedule = &rate,
                            .n_points = 1 };
  ck_assert_int_eq (sl_optimizer_parse ("sgd", &spec.optimizer, &e), 0);
  t = sl_trainer_new (&b.context, &spec, &e);
  ck_assert_msg (t != NULL, "%s", e.text);
  sl_trainer_run (t, 10, 0, &p);
  ck_assert_int_eq (p.stopped, SL_STOP_FAILED);
  ck_assert_str_eq (sl_stopped_name (p.stopped), "failed");
  ck_assert_str_eq (sl_trainer_error (t)->text, "no number for step 4");
  ck_assert_int_eq (p.step, 3);
  CLOSE (*w, 3, 0, 1e-15, "parameter after three steps to its target");
  CLOSE (p.loss, 1, 0, 1e-15, "loss of the last whole batch: (2 - 3)^2");
  b.script.fails_at = 100;
  sl_trainer_run (t, 10, 0, &p);
  ck_assert_int_eq (p.stopped, SL_RUNNING);
  CLOSE (*w, 10, 0, 1e-15, "parameter after ten steps");
  b.script.fails_at = 0;
  ck_assert_int_eq (sl_trainer_evaluate (t, 4, &loss, &max_abs_error, &e), -1);
  ck_assert_str_eq (e.text, "evaluate: no number for step 0");
  CLOSE (loss, -1, 0, 0, "loss, which was left alone");
  sl_trainer_free (t);
  bench_close (&b);
}
END_TEST

SUITE_MAIN ("serial", a_failure_at_once_makes_nothing,
            a_failure_ends_the_replay, release_comes_with_the_last_owner,
            gradient_check, a_trainer_keeps_what_it_had)
