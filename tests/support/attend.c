/* attend.c - the attention op run on the numbers of a brute. */
#include "support/attend.h"
#include "base/isa.h"
#include "support/suite.h"
#include <stdio.h>

const sl_mechanism *attend_mechanism (const char *path) {
  char full[512];
  sl_error e = { "" };
  const sl_loaded *l;
  const sl_mechanism *m;
  snprintf (full, sizeof full, SINKLAB_TEST_BUILD "/%s", path);
  l = sl_plugin_load (full, &e);
  ck_assert_msg (l != NULL, "%s", e.text);
  m = sl_mechanism_new (l, 0, NULL, &e);
  ck_assert_msg (m != NULL, "%s", e.text);
  return m;
}

sl_attention_attr attend_attr (const brute *x) {
  return (sl_attention_attr){
    .mechanism =
        attend_mechanism (x->relu ? "plugins/relu.so" : "plugins/softmax.so"),
    .heads = x->heads,
    .kv_heads = x->kv_heads,
    .d_head = x->d,
    .scale = x->scale,
    .visibility = x->visibility,
    .alibi = x->alibi,
    .has_length = x->length != NULL
  };
}

void attend_run (op_bench *b, sl_dtype dtype, const sl_attention_attr *attr,
                 const brute *x, int backward) {
  const ptrdiff_t q[3] = { x->batch, x->t, (ptrdiff_t)x->heads * x->d };
  const ptrdiff_t k[3] = { x->batch, x->t, (ptrdiff_t)x->kv_heads * x->d };
  const ptrdiff_t v[3] = { x->batch, x->t, (ptrdiff_t)x->kv_heads * x->dv };
  const ptrdiff_t length[1] = { x->batch };
  op_bench_start (b, dtype, "attention", attr);
  op_bench_input (b, 3, q, x->q);
  op_bench_input (b, 3, k, x->k);
  op_bench_input (b, 3, v, x->v);
  if (x->length) op_bench_input (b, 1, length, x->length);
  op_bench_forward (b);
  if (backward) op_bench_backward (b, x->dout);
}

void attend_best_isa (void) {
  sl_isa isa;
  sl_error e = { "" };
  if (sl_isa_choose (&isa, &e)) ck_abort_msg ("%s", e.text);
}

void attend_same_bits (const op_bench *a, const op_bench *b, const char *what) {
  ck_assert_msg (op_bench_same (a, &a->out[0], &b->out[0]), "%s: out", what);
  for (int i = 0; i < 3; i++)
    ck_assert_msg (op_bench_same (a, &a->din[i], &b->din[i]),
                   "%s: gradient of input %d", what, i + 1);
}

double attend_number (const void *p, sl_dtype dtype, ptrdiff_t i) {
  return dtype == SL_F64 ? ((const double *)p)[i] : ((const float *)p)[i];
}
