/* op.h - operations: shapes, forward, and backward below it.
**
** An op file is numeric: compiled per precision and instruction set, written in
** terms of 'real', its kernels static, its sl_op objects mangled by SL().
** Kernels own no memory, keep no state, cannot fail, and give the same bits for
** the same arguments; only ops with SL_OP_SERIAL, which the script defines, may
** differ. */
#ifndef SL_OP_H
#define SL_OP_H
#include "base/error.h"
#include "base/random.h"
#include "tensor/tensor.h"
#include <sinklab/plugin.h>

enum { SL_MAX_IN = 8, SL_MAX_OUT = 3 };

/* The arguments of a kernel. Inputs (and their gradients) may have any strides,
** also 0; outputs, their gradients, 'saved' and 'scratch' are contiguous and
** 64-byte aligned. The gradient of a storage has the layout of the storage, so
** views need no backward of their own. */
typedef struct sl_run {
  const void *attr; /* the op's own attributes */
  int n_in, n_out;
  const sl_view *in;
  const sl_view *out;
  /* backward: ADD to these (beta 1); data NULL: not wanted */
  const sl_view *din;
  /* backward of an op with SL_OP_ASSIGNS: bit i: din[i] is not initialised:
  ** assign all of its elements (beta 0). 0 for other ops. */
  unsigned assigns;
  const sl_view *dout; /* backward: data NULL: zero */
  void *saved;         /* forward -> backward, op.shapes says how many reals */
  void *scratch;       /* contents undefined */
  const sl_draw *draw; /* position in the random stream */
  void *observer;      /* attention: sl_observer or NULL */
  int op_index;        /* how many earlier nodes of the program have this op */
  int from, to;        /* forward of an op with units: only these; to 0: all */
  sl_error *error;     /* empty; an op with SL_OP_SERIAL that fails fills it,
                       ** which ends the run */
} sl_run;

/* What sl_op.shapes is asked, and its answer. */
typedef struct sl_shape_query {
  const void *attr;
  int n_in;
  const sl_view *in; /* shapes; data is NULL */
  /* The answer. */
  int n_out;
  sl_view out[SL_MAX_OUT]; /* ndim and dim; the caller fills strides */
  size_t saved, scratch;   /* in reals; zero on entry */
} sl_shape_query;

enum {
  SL_OP_NO_GRADIENT = 1, /* backward is NULL; gradients stop here */
  SL_OP_RANDOM = 2,      /* attr starts with sl_random_attr */
  SL_OP_SERIAL = 4,      /* calls back into the script: one thread only, and
                         ** its forward may fail (sl_run.error) */
  SL_OP_ASSIGNS = 8,     /* backward heeds sl_run.assigns, which saves setting
                         ** gradients to zero */
  /* the gradient of an input of the result's shape is that of the result,
  ** number by number */
  SL_OP_GRAD_IS_IDENTITY = 16,
  SL_OP_FUNCTION = 32, /* lab.op (...) only, no method of tensors */
  SL_OP_FLUSHES = 64,  /* a product: denormals are zero (base/denormals.h), */
  SL_OP_OBSERVED = 128 /* except while an observer is shown its weights */
};

/* How a script passes the arguments. 'axis' counts from 1, or backwards from
** -1; the attributes begin with the argument beside the inputs. */
typedef enum sl_arguments {
  SL_ARGS_NONE,   /* the op has no function of its own in Lua */
  SL_ARGS_INPUTS, /* (inputs ..., { options }) */
  SL_ARGS_AXIS,   /* (inputs ..., [axis = -1]): int */
  SL_ARGS_AXES,   /* (x, [axis or { axes }], { options }): unsigned, bits */
  SL_ARGS_ALONG,  /* (x, axis, other inputs ...): int */
  SL_ARGS_LIST,   /* ({ inputs }, axis): int */
  SL_ARGS_SIZE    /* (inputs ..., whole number): ptrdiff_t */
} sl_arguments;

typedef struct sl_op {
  const char *name; /* as users type it */
  int min_in, max_in;
  unsigned flags;
  size_t attr_size; /* attributes are copied bit by bit */
  sl_arguments arguments;
  const sl_option *options; /* fields of the attributes that a script passes by
                            ** name, ended by a NULL name; NULL: none */
  int (*shapes) (sl_shape_query *q, sl_error *e);
  void (*forward) (const sl_run *r);
  void (*backward) (const sl_run *r); /* sees in, out and saved of forward */
  /* NULL, or: into how many units, 0 or more, a forward of these inputs can be
  ** cut that different threads do at once, each with a scratch of its own and
  ** the common rest of sl_run. The bits do not depend on the cut. */
  int (*units) (const void *attr, const sl_view *in);
  /* NULL, or: a program that was recorded with these attributes is freed. */
  void (*release) (const void *attr);
} sl_op;

/* Run op.forward or op.backward, with the op's treatment of denormals. */
void sl_op_run (const sl_op *op, void (*kernel) (const sl_run *r),
                const sl_run *r);

/* SL_OP (name, .min_in = 1, ...); defines an op, in the first column of its
** file: from these lines the build makes the list of all ops
** (cmake/numeric.cmake). A macro of a file that defines several ops is called
** SL_OP_<something> and has the name as its first argument. */
#define SL_OP(op, ...)                \
  extern const sl_op SL (sl_op_##op); \
  const sl_op SL (sl_op_##op) = { .name = #op, __VA_ARGS__ }

/* A NULL-terminated list of ops; one symbol per variant. */
typedef struct sl_op_list {
  const sl_op *const *ops;
} sl_op_list;

/* The op called 'name' in the precision 'dtype' and the instruction set in use;
** NULL (with the nearest name in the sentence) if there is none. */
const sl_op *sl_op_find (sl_dtype dtype, const char *name, sl_error *e);

/* Which list the op is in: SL_F32, SL_F64 or -1 (none). This is how sl_apply
** knows the precision of an op without inputs. */
int sl_op_dtype (const sl_op *op);

/* Op number i (from 0) of all ops of core/ and of the lists added below, or
** NULL from their number on. Numbers are the same in all precisions and
** instruction sets. */
const sl_op *sl_op_at (sl_dtype dtype, int i);

/* Add ops at start-up, before other threads exist; the same list again is
** ignored. 'pick' returns the list in use for a precision. -1: too many. */
int sl_op_add_list (const sl_op_list *(*pick) (sl_dtype dtype));
#endif
