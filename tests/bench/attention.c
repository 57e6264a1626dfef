/* attention.c - attention by itself, its heads spread over the pool. */
#include "bench/attention.h"
#include "attention/attention.h"
#include "base/memory.h"
#include "ops/ops.h"
#include <math.h>

struct bench_attention {
  sl_context *context;
  sl_program *program; /* of one head */
  sl_tensor *in[3], *out, *loss;
  sl_replica **replica; /* one a worker */
  int replicas, heads;
};

/* Record the forward of one head: the loss is the sum of its output. */
static int record (bench_attention *b, const sl_attention_attr *attr, int t,
                   sl_error *e) {
  const sl_reduce_attr all = { 0 };
  sl_random_attr normal = { .ndim = 3, .dim = { 1, t, attr->d_head }, .b = 1 };
  const sl_op *op = sl_op_find (SL_F32, "normal", e);
  if (op == NULL) return -1;
  for (int i = 0; i < 3; i++, normal.stream++)
    if (sl_apply (b->context, op, &normal, 0, NULL, &b->in[i], e) < 0)
      return -1;
  b->program = sl_program_begin (b->context, e);
  if (b->program == NULL) return -1;
  b->out = sl_apply_named (b->context, "attention", attr, 3, b->in, e);
  if (b->out != NULL)
    b->loss = sl_apply_named (b->context, "sum", &all, 1, &b->out, e);
  sl_program_end (b->context, b->program);
  if (b->loss == NULL) return -1;
  for (int i = 0; i < 3; i++)
    if (sl_program_want (b->program, b->in[i], e) < 0) return -1;
  return sl_program_loss (b->program, b->loss, e);
}

bench_attention *bench_attention_new (sl_context *c, const char *mechanism,
                                      int heads, int t, int d, sl_error *e) {
  const int workers = sl_pool_workers (c->pool);
  const sl_loaded *loaded = sl_plugin_load (mechanism, e);
  sl_attention_attr attr = { .heads = 1,
                             .kv_heads = 1,
                             .d_head = d,
                             .scale = 1 / sqrt (d),
                             .visibility = { .causal = 1 } };
  bench_attention *b;
  if (loaded == NULL) return NULL;
  attr.mechanism = sl_mechanism_new (loaded, 0, NULL, e);
  if (attr.mechanism == NULL) return NULL;
  b = sl_alloc (1, sizeof *b);
  if (b != NULL) b->replica = sl_alloc ((size_t)workers, sizeof *b->replica);
  if (b == NULL || b->replica == NULL) {
    sl_fail (e, "attention: no memory");
    goto failed;
  }
  b->context = c;
  b->heads = heads;
  if (record (b, &attr, t, e) < 0) goto failed;
  for (; b->replicas < workers; b->replicas++) {
    b->replica[b->replicas] = sl_replica_new (b->program, e);
    if (b->replica[b->replicas] == NULL) goto failed;
  }
  return b;
failed:
  bench_attention_free (b);
  return NULL;
}

void bench_attention_free (bench_attention *b) {
  if (b == NULL) return;
  for (int i = 0; i < b->replicas; i++) sl_replica_free (b->replica[i]);
  sl_program_free (b->program);
  for (int i = 0; i < 3; i++) sl_tensor_release (b->in[i]);
  sl_tensor_release (b->out);
  sl_tensor_release (b->loss);
  sl_free (b->replica);
  sl_free (b);
}

static void run_head (void *context, int index, int worker) {
  sl_replica *r = ((bench_attention *)context)->replica[worker];
  (void)index;
  sl_replica_forward (r, NULL, NULL);
  sl_replica_zero (r);
  sl_replica_backward (r, 1);
}

void bench_attention_run (bench_attention *b) {
  sl_pool_run (b->context->pool, b->heads, run_head, b);
}

size_t bench_attention_extra (const bench_attention *b) {
  /* of a head: the output and its gradient, the gradients of the inputs */
  const size_t array = b->out->storage->count * sizeof (float);
  return (size_t)b->replicas * (sl_replica_bytes (b->replica[0]) - 5 * array);
}
