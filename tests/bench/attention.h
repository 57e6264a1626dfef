/* attention.h - attention by itself, its heads spread over the pool. */
#ifndef BENCH_ATTENTION_H
#define BENCH_ATTENTION_H
#include "program/program.h"

typedef struct bench_attention bench_attention;

/* Causal attention of 'heads' heads over t tokens, f32, width d a head, by a
** row mechanism: each worker has buffers for one head at a time. The queries,
** keys and values of every head are normal numbers. */
bench_attention *bench_attention_new (sl_context *c, const char *mechanism,
                                      int heads, int t, int d, sl_error *e);
void bench_attention_free (bench_attention *b);
/* Forward and backward of all heads. */
void bench_attention_run (bench_attention *b);
/* Bytes beyond inputs, outputs and their gradients, all workers together. */
size_t bench_attention_extra (const bench_attention *b);
#endif
