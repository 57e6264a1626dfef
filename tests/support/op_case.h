/* op_case.h - one line of a table proves the backward of one operation.
**
** Each case is run on its own views, without a program: in f64, with every
** instruction set that this machine has, with inputs that lie plain, with their
** axes stored the other way round, backwards in memory with gaps, and repeated
** by a stride of 0, and (where two inputs have one shape) with both inputs in
** one storage. Outputs, saved and scratch start as NaN between guard words; the
** cotangent is random; gradients start as a constant, to which backward must
** add. Every element of every differentiable storage is compared with a
** four-point difference. */
#ifndef OP_CASE_H
#define OP_CASE_H
#include "ops/op.h"

/* How an input's values are drawn, and whether it has a gradient. */
enum op_values {
  OP_REAL,  /* uniform on [low, high); differentiable */
  OP_FIXED, /* the same, but its gradient is not asked for */
  OP_WHOLE  /* whole numbers low..high; its gradient must stay as it was */
};

typedef struct op_input {
  enum op_values values;
  double low, high;
  int ndim;
  ptrdiff_t dim[SL_MAX_DIMS];
} op_input;

typedef struct op_case {
  const char *op, *note; /* note: what this case adds, for messages */
  const void *attr;
  /* 0: smooth. Else OP_REAL values are a random order of distinct numbers this
  ** far apart around 0, none nearer to 0 than half of it: for relu, abs,
  ** max. */
  double kink;
  double tolerance; /* of |difference| / max (1, largest gradient); 0: 1e-8 */
  int n_in;
  op_input in[SL_MAX_IN];
} op_case;

/* Each op file's owner keeps one table, ended by a case without op. */
const op_case *cases_array (void);
const op_case *cases_layers (void);
const op_case *cases_attention (void);
const op_case *cases_compose (void);

/* Fails the running test with op, note, layout, instruction set, element, both
** values, tolerance and seed. */
void op_case_run (const op_case *c, uint64_t seed);

/* Make every instruction set the one in use in turn: for (int i = 0; op_isa
** (i); i++) if it runs here ... */
int op_isa (int i, const char **name);
#endif
