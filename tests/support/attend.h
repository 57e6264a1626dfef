/* attend.h - the attention op run on the numbers of a brute. */
#ifndef ATTEND_H
#define ATTEND_H
#include "support/brute.h"
#include "support/op_bench.h"

/* The plugin at 'path' of the build tree, with its default options. */
const sl_mechanism *attend_mechanism (const char *path);

/* The sizes and options of x, with the softmax or relu of the build tree. */
sl_attention_attr attend_attr (const brute *x);

/* Take the best instruction set of this machine. */
void attend_best_isa (void);

/* The op on the numbers of x, forwards, and backwards if 'backward'. */
void attend_run (op_bench *b, sl_dtype dtype, const sl_attention_attr *attr,
                 const brute *x, int backward);

/* Equal bits in the output and the three gradients; 'what' is in the
** message. */
void attend_same_bits (const op_bench *a, const op_bench *b, const char *what);

/* Number i of a buffer of this precision. */
double attend_number (const void *p, sl_dtype dtype, ptrdiff_t i);
#endif
