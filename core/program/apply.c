/* apply.c - an operation runs at once and is recorded if a program records. */
#include "base/memory.h"
#include "base/number.h"
#include "program/record.h"
#include <stdint.h>
#include <string.h>

/* The precision that all inputs and the op have, or -1 and a sentence. */
static int precision (const sl_op *op, int n_in, sl_tensor *const *in,
                      sl_error *e) {
  int dtype = sl_op_dtype (op);
  if (n_in == 0 && dtype < 0)
    return sl_fail (e, "%s: in no list of operations, so of no known precision",
                    op->name);
  for (int i = 0; i < n_in; i++) {
    sl_dtype d = in[i]->storage->dtype;
    if (d != in[0]->storage->dtype)
      return sl_fail (e,
                      "%s: input 1 is %s but input %d is %s; convert one of "
                      "them with to",
                      op->name, sl_dtype_name (in[0]->storage->dtype), i + 1,
                      sl_dtype_name (d));
    if (dtype >= 0 && (int)d != dtype)
      return sl_fail (e, "%s: the %s operation got a %s input", op->name,
                      sl_dtype_name ((sl_dtype)dtype), sl_dtype_name (d));
    dtype = (int)d;
  }
  return dtype;
}

/* Put the op's name in front of the sentence unless it begins with it. */
static int name_op (const sl_op *op, sl_error *e) {
  size_t n = strlen (op->name);
  if (e == NULL || (strncmp (e->text, op->name, n) == 0 && e->text[n] == ':'))
    return -1;
  return sl_fail_within (e, "%s", op->name);
}

/* *bytes = reals of this precision, rounded up to whole cache lines. */
static int aligned_bytes (size_t reals, sl_dtype dtype, size_t *bytes) {
  if (sl_size_mul (reals, sl_dtype_size (dtype), bytes) < 0 ||
      *bytes > SIZE_MAX / 4)
    return -1;
  *bytes = sl_round_up (*bytes, 64);
  return 0;
}

/* A forward in pieces, one for each worker. */
typedef struct cut {
  const sl_op *op;
  const sl_run *run; /* scratch of the first piece */
  size_t scratch;    /* bytes of each */
  int units, pieces;
} cut;

static void run_piece (void *context, int index, int worker) {
  const cut *all = context;
  sl_run run = *all->run;
  (void)worker;
  run.scratch = (char *)run.scratch + (size_t)index * all->scratch;
  run.from = (int)((long)all->units * index / all->pieces);
  run.to = (int)((long)all->units * (index + 1) / all->pieces);
  sl_op_run (all->op, all->op->forward, &run);
}

static void cut_up (sl_context *c, const sl_op *op, const void *attr,
                    const sl_view *in, cut *all) {
  const int workers = sl_pool_workers (c->pool);
  all->op = op;
  all->units = op->units ? op->units (attr, in) : 1;
  all->pieces = sl_min_int (all->units, workers);
  if (all->pieces < 1) all->pieces = 1;
}

int sl_apply (sl_context *c, const sl_op *op, const void *attr, int n_in,
              sl_tensor *const *in, sl_tensor **out, sl_error *e) {
  sl_view views[SL_MAX_IN], outs[SL_MAX_OUT];
  sl_shape_query q = { .attr = attr, .n_in = n_in, .in = views, .n_out = 1 };
  sl_node node = { 0 };
  char *memory = NULL;
  int made = 0, dtype;
  sl_error failure = { "" };
  cut all = { 0 };
  size_t scratch;
  sl_run run;

  if (n_in < op->min_in || n_in > op->max_in)
    return sl_fail (e, "%s: got %d inputs, takes %d to %d", op->name, n_in,
                    op->min_in, op->max_in);
  if (op->attr_size > 0 && attr == NULL)
    return sl_fail (e, "%s: needs attributes", op->name);
  dtype = precision (op, n_in, in, e);
  if (dtype < 0) return -1;

  for (int i = 0; i < n_in; i++) {
    views[i] = sl_tensor_view (in[i]);
    views[i].data = NULL;
  }
  if (op->shapes (&q, e) < 0) return name_op (op, e);
  if (q.n_out < 1 || q.n_out > SL_MAX_OUT)
    return sl_fail (e, "%s: makes %d outputs, allowed are 1 to %d", op->name,
                    q.n_out, SL_MAX_OUT);
  cut_up (c, op, attr, views, &all);
  if (aligned_bytes (q.saved, (sl_dtype)dtype, &node.saved) < 0 ||
      aligned_bytes (q.scratch, (sl_dtype)dtype, &node.scratch) < 0 ||
      sl_size_mul (node.scratch, (size_t)all.pieces, &scratch) < 0 ||
      scratch > SIZE_MAX / 2)
    return sl_fail (e, "%s: these shapes need too much memory", op->name);

  for (; made < q.n_out; made++) {
    out[made] =
        sl_tensor_new ((sl_dtype)dtype, q.out[made].ndim, q.out[made].dim, e);
    if (out[made] == NULL) goto failed;
  }
  memory = sl_alloc (node.saved + scratch, 1);
  if (memory == NULL) {
    sl_fail (e, "out of memory for %zu bytes of workspace",
             node.saved + scratch);
    goto failed;
  }
  node.dtype = (sl_dtype)dtype;
  if (c->recording != NULL &&
      sl_node_prepare (c->recording, op, attr, n_in, q.n_out, &node, e) < 0)
    goto failed;

  for (int i = 0; i < n_in; i++) views[i] = sl_tensor_view (in[i]);
  for (int i = 0; i < q.n_out; i++) outs[i] = sl_tensor_view (out[i]);
  run = (sl_run){ .attr = attr,
                  .n_in = n_in,
                  .n_out = q.n_out,
                  .in = views,
                  .out = outs,
                  .saved = memory,
                  .scratch = memory + node.saved,
                  .draw = &c->draw,
                  .observer = c->observer,
                  .op_index = c->observer ? c->applied++ : node.op_index,
                  .error = &failure };
  all.run = &run;
  all.scratch = node.scratch;
  if (all.pieces > 1)
    sl_pool_run (c->pool, all.pieces, run_piece, &all);
  else
    sl_op_run (op, op->forward, &run);
  if (failure.text[0] != '\0') {
    sl_free (node.operand);
    sl_fail (e, "%s", failure.text);
    goto failed;
  }
  if (c->recording != NULL) sl_node_commit (c->recording, &node, in, out);
  sl_free (memory);
  return 0;

failed:
  while (made > 0) {
    sl_tensor_release (out[--made]);
    out[made] = NULL;
  }
  sl_free (memory);
  return name_op (op, e);
}

sl_tensor *sl_apply_named (sl_context *c, const char *name, const void *attr,
                           int n_in, sl_tensor *const *in, sl_error *e) {
  sl_tensor *out[SL_MAX_OUT] = { NULL };
  const sl_op *op;
  if (n_in < 1) {
    sl_fail (e, "%s: without an input the precision is not known", name);
    return NULL;
  }
  op = sl_op_find (in[0]->storage->dtype, name, e);
  if (op == NULL || sl_apply (c, op, attr, n_in, in, out, e) < 0) return NULL;
  if (out[1] != NULL) {
    for (int i = 0; i < SL_MAX_OUT; i++) sl_tensor_release (out[i]);
    sl_fail (e, "%s: makes more than one output", name);
    return NULL;
  }
  return out[0];
}
