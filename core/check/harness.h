/* harness.h - a problem set before a plugin's kernels, every buffer fenced.
**
** A problem holds its numbers in double; a stage is one precision's rounding of
** it and calls the kernels as the host does, but watches their manners. */
#ifndef SL_HARNESS_H
#define SL_HARNESS_H
#include "attention/mechanism.h"

enum {
  SL_MOST_INPUTS = 8,
  SL_MOST_ARRAYS = SL_MOST_INPUTS + 2 /* a gate's head output, parameters */
};

/* One call. Its arrays are the scores (row), the head output and the input if
** it has one (gate), or the inputs (mixer; size 0: left out); the last one holds
** the parameters of the head, size 0 if there are none. */
typedef struct sl_test_inputs {
  const sl_mechanism *mechanism;
  uint64_t seed;
  int n; /* row: keys; gate: numbers; mixer: tokens */
  int d_head, d_out, head, heads, layer, pos, first, length;
  double scale;
  int *lo, *hi; /* mixer: n each */
  int arrays;
  const char *name[SL_MOST_ARRAYS];
  size_t size[SL_MOST_ARRAYS];
  double *value[SL_MOST_ARRAYS];
  size_t outputs; /* row, gate: n; mixer: n * d_out */
  double *cotangent;
  size_t saved, scratch, weights; /* weights: n * n if a mixer can give them */
} sl_test_inputs;

/* The first breach of each kind, as a sentence; "" if there was none. */
typedef struct sl_faults {
  char fence[160]; /* wrote outside a buffer */
  char blank[160]; /* left an element of an output as it was */
  char input[160]; /* changed what it may only read */
} sl_faults;

/* What calls read and leave. Kernels find 'fence' around every buffer and
** 'blank' in outputs and scratch: NaN stands for a NaN that is told from
** others. */
typedef struct sl_harness {
  const sl_test_inputs *inputs;
  double fence, blank, dparam; /* dparam: parameter gradients start from it */
  double *out, *grad[SL_MOST_ARRAYS], *weights;
  sl_faults faults;
} sl_harness;

/* The stage of one precision. Every call rounds the problem's numbers anew;
** backward follows a forward of the same numbers. Stages are independent: a
** thread each. */
typedef struct sl_harness_calls {
  sl_harness *(*open) (const sl_test_inputs *in); /* NULL: no memory */
  void (*close) (sl_harness *h);                  /* NULL is allowed */
  void (*forward) (sl_harness *h);
  void (*backward) (sl_harness *h);
  void (*weights) (sl_harness *h); /* of a mixer that gives them */
} sl_harness_calls;

/* In the instruction set in use. */
const sl_harness_calls *sl_harness_calls_of (sl_dtype dtype);
#endif
