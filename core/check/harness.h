/* harness.h - calls a plugin's kernels with test inputs and checks their use of
** memory: every buffer lies between fences.
**
** Test inputs are in double; a harness rounds them to one precision and calls
** the kernels as the host does. */
#ifndef SL_HARNESS_H
#define SL_HARNESS_H
#include "check/test_inputs.h"

/* The first breach of each buffer rule, as a sentence; "" if there was none. */
typedef struct sl_faults {
  char fence[160]; /* wrote outside a buffer */
  char blank[160]; /* left an element of an output unwritten */
  char input[160]; /* changed an input */
} sl_faults;

/* Before a call, 'fence' is written around every buffer, 'blank' into outputs and
** scratch (NaN: a NaN with a payload that a kernel does not produce), 'dparam'
** into the gradients of parameters. After it, the results are here. Backward
** needs a forward of the same inputs before it. Harnesses are independent: one
** per thread. */
typedef struct sl_harness {
  const struct sl_harness_calls *calls;
  sl_dtype dtype;
  sl_test_inputs *inputs;
  double fence, blank, dparam;
  double *out, *grad[SL_MOST_ARRAYS], *weights;
  sl_faults faults;
} sl_harness;

/* The functions of one precision. */
typedef struct sl_harness_calls {
  sl_harness *(*open) (sl_test_inputs *in);
  void (*close) (sl_harness *h); /* NULL is allowed */
  void (*forward) (sl_harness *h);
  void (*backward) (sl_harness *h);
  void (*weights) (sl_harness *h); /* of a mixer that has them */
} sl_harness_calls;

/* In the instruction set in use. NULL: no memory. */
sl_harness *sl_harness_open (sl_dtype dtype, sl_test_inputs *in);
#endif
