/* toy_training.h - a training with a known solution.
**
** One operation makes the whole problem: parameters w, and for sample s of a
** step targets y(s, j) = j / n + noise from the counter-based generator; the
** loss is the mean of (w - y)^2 / 2 over the samples that count. */
#ifndef TOY_TRAINING_H
#define TOY_TRAINING_H
#include "train/train.h"
#include <pthread.h>

typedef struct toy_problem {
  int f32;
  long shard;
  double noise;
  int some;         /* 1: about a third of the samples do not count */
  int blows;        /* 1: loss NaN, 2: gradient infinite */
  int none_every;   /* in each step that this divides no sample counts */
  pthread_t thread; /* of the test, for the serial twin */
} toy_problem;

/* The problem as an operation, and its twin that runs on the thread of the
** test. */
extern const sl_op toy_op, toy_serial_op;

/* A recorded problem and a trainer spec for it. */
typedef struct toy_bench {
  sl_context context;
  sl_program *program;
  sl_tensor *w, *out[3];
  sl_trainer_spec spec;
} toy_bench;

/* n parameters from 0, SGD with momentum 1/2, learning rate 1/2, seed 7. */
toy_bench toy_bench_new (const sl_op *op, toy_problem p, ptrdiff_t n,
                         int threads, long batch, int groups);
void toy_bench_free (toy_bench *b);

/* The trainer of its spec, which must be valid; parameter j. */
sl_trainer *toy_trainer_new (toy_bench *b);
double toy_weight_at (const toy_bench *b, size_t j);

/* Of a draw: whether sample s counts; its target j of n. */
int toy_counts (const sl_draw *d, long s, const toy_problem *p);
double toy_target (const sl_draw *d, long s, size_t j, size_t n, double noise);

/* The same training in plain loops over the whole batch: n <= 16 parameters w,
** changed, and the loss of the last step. */
void toy_reference (const toy_problem *p, size_t n, long batch, long steps,
                    double *w, double *loss);
#endif
