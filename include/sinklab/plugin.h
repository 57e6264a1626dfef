/* sinklab/plugin.h - all that sinklab and an attention plugin know of each
** other.
**
** A plugin is one C file written in terms of 'real' and compiled twice, once
** with -DSL_SINGLE, into one shared object. The host looks up the data symbols
** sinklab_plugin_f32 and sinklab_plugin_f64. A build may add variants for an
** instruction set (-DSL_ISA=_v3 or _v4: sinklab_plugin_f32_v3 ...); the host
** takes the best variant that the machine runs.
**
** Contract. The host owns every buffer and no two overlap; they are aligned to
** a real, not to a vector. Plugins keep no state: equal arguments give equal
** bits, in any order of calls, on any number of threads at once. Kernels cannot
** fail: only validate and plan can refuse, with -1 and one sentence in 'err'.
** Outputs and input gradients are overwritten; dparam is accumulated.
**
** Growth. New fields go last in their struct and raise SL_ABI_MINOR. List
** elements (option, param, input) never grow, because that would change their
** stride: that raises SL_ABI_MAJOR. */
#ifndef SINKLAB_PLUGIN_H
#define SINKLAB_PLUGIN_H
#include <stddef.h>
#include <stdint.h>

#define SL_ABI_MAJOR 1 /* must be equal in plugin and host */
#define SL_ABI_MINOR 0 /* the host takes its own and every older one */

#ifndef SL_ISA
#define SL_ISA
#endif
#define SL_PASTE_(a, b, c) a##b##c
#define SL_PASTE(a, b, c) SL_PASTE_ (a, b, c)
#ifdef SL_SINGLE
typedef float real;
#define SL(name) SL_PASTE (name, _f32, SL_ISA)
#else
typedef double real;
#define SL(name) SL_PASTE (name, _f64, SL_ISA)
#endif

/* Claims (sl_plugin.flags). 'sinklab plugin check' verifies every one. */
enum {
  SL_NONNEGATIVE = 1,     /* every weight is >= 0 */
  SL_SUMS_TO_ONE = 2,     /* every row of weights sums to 1 */
  SL_SHIFT_INVARIANT = 4, /* adding a constant to the scores changes nothing */
  SL_KINKED = 8,          /* the gradient jumps somewhere: check steps around */
  SL_CAUSAL_ONLY = 16,    /* mixer: cannot do full or windowed attention */
  SL_NULL_MASS = 32       /* weights are >= 0 and sum to at most 1: the rest is
                          ** mass on nothing */
};
enum { SL_INT, SL_REAL, SL_BOOL, SL_CHOICE }; /* sl_option.type */
/* How a parameter or the matrix of an input starts. SL_DEFAULT: a parameter at
** 0, a matrix as the model's other matrices; SL_CONST: every element is
** 'scale'; SL_NORMAL: from N(0, scale^2); SL_UNIFORM: from [-scale, scale). */
enum { SL_DEFAULT, SL_CONST, SL_NORMAL, SL_UNIFORM };
enum { SL_ZEROS = SL_DEFAULT }; /* of a parameter: the same, said plainly */

/* A width that may depend on the width of a head: per_dhead * d_head + fixed.
** Of a gate, d_head is the width of the head output that it gets. */
typedef struct sl_width {
  int per_dhead, fixed;
} sl_width;

/* One key of the Lua options table; {0} ends a list. The config field at
** 'offset' is an int (SL_INT; SL_BOOL: 0 or 1; SL_CHOICE: an index into
** 'choices') or a double (SL_REAL). The host refuses values outside
** min..max. */
typedef struct sl_option {
  const char *name, *doc;
  int type;
  size_t offset;              /* into the plugin's config struct */
  double def, min, max;       /* SL_CHOICE: only def, an index */
  const char *const *choices; /* SL_CHOICE: names, ended by NULL */
} sl_option;

/* A learnable vector, one per head. */
typedef struct sl_param {
  const char *name, *doc;
  sl_width width;
  int init;
  double scale;
} sl_param;

/* A linear map z = W x of the layer input x, made and differentiated by the
** host; W is the model's parameter layerN.<plugin>.<name>. There is no bias:
** where one is wanted, it is a parameter that the kernel adds. A mixer whose
** values are an input calls it 'v' (one row of d_out numbers a token):
** measurements then know what its weights weigh. A gate has at most one input,
** a mixer one to six. */
typedef struct sl_input {
  const char *name;
  sl_width width; /* per head */
  int shared;     /* 1: one slice for all heads */
  int init;       /* of W */
  double scale;
} sl_input;

/* Services of the host; may grow at the end. */
typedef struct sl_host {
  uint32_t size;
  void (*log) (int level, const char *msg); /* any thread */
  /* c (m x n) = alpha op(a) op(b) + beta c, row-major; ta, tb: 1 transposes.
  ** Any thread; allocates nothing. */
  void (*gemm) (int ta, int tb, int m, int n, int k, real alpha, const real *a,
                int lda, const real *b, int ldb, real beta, real *c, int ldc);
} sl_host;

/* What every kernel receives; valid until it returns. */
typedef struct sl_call {
  const sl_host *host;
  const void *config; /* filled from Lua and range-checked; NULL if size 0 */
  const real *param;  /* this head's, in declaration order */
  real *scratch;      /* this thread's; contents undefined. row: n reals; a
                      ** block of rows, a gate: none; mixer: as planned */
  int head, heads;    /* which head (from 0), of how many */
  int layer;          /* which layer of the model, from 0 */
  int d_head;         /* as in sl_width */
  int pos, first; /* row: absolute index (from 0) of the query (a block: of lane
                  ** 0's) and of s[0]; gate: pos is the token's */
  int length;     /* tokens of this sequence, padding left out */
  double scale; /* of q.k in this layer: in a row's scores already, in a mixer's
                  ** to be applied by it */
  const real *seen; /* block: lane i sees the first seen[i] keys, no fewer than
                  ** the lane before it (0: it is no query); else NULL */
} sl_call;

/* (a) row: the n >= 1 visible scores of one query -> its weights. */
typedef struct sl_row_kernel {
  void (*forward) (const sl_call *c, int n, const real *s, real *w);
  void (*backward) (const sl_call *c, int n, const real *s, const real *w,
                    const real *dw, real *ds, real *dparam);
} sl_row_kernel;

/* Optional beside a row, for speed: the same for the 16 queries from pos on, a
** lane each, over the same n keys, [key][lane] (sinklab/lanes.h). Where a lane
** does not see a key, its score is the lowest finite real, its w and dw are 0,
** and what the kernel writes there is cleared. The host calls rows where a
** block does not fit (windows, short sequences), so the two must agree. */
enum { SL_QUERIES = 16 };
typedef struct sl_block_kernel {
  void (*forward) (const sl_call *c, int n, const real *s, real *w);
  void (*backward) (const sl_call *c, int n, const real *s, const real *w,
                    const real *dw, real *ds, real *dparam);
} sl_block_kernel;

/* (b) gate: head output o (n numbers) and projected input z -> y (n numbers). z
** and dz are NULL for a gate without an input. */
typedef struct sl_gate_kernel {
  void (*forward) (const sl_call *c, int n, const real *o, const real *z,
                   real *y);
  void (*backward) (const sl_call *c, int n, const real *o, const real *z,
                    const real *dy, real *d_o, real *dz, real *dparam);
} sl_gate_kernel;

/* One head of one sequence: t >= 1 tokens, padding left out; query i sees keys
** lo[i] <= j < hi[i], of which there is one at least. Causal attention without
** a window: lo[i] = 0 and hi[i] = i + 1. */
typedef struct sl_shape {
  int t, d_head, d_out;
  const int *lo, *hi;
} sl_shape;

/* What a mixer asks of the host for one head of one sequence, in reals; d_out,
** the width of its output, is d_head unless plan says otherwise. */
typedef struct sl_plan {
  size_t saved, scratch;
  int d_out;
} sl_plan;

/* (c) mixer: the whole mechanism. in[i] is t x width(i), row-major, and NULL if
** the options leave that input out; out is t x d_out. */
typedef struct sl_mixer_kernel {
  /* Called on any thread, with the longest t that will follow (kernels get
  ** every t up to it), d_head, and neither d_out nor lo and hi; d_out must not
  ** depend on t. */
  int (*plan) (const void *config, const sl_shape *sh, sl_plan *p, char *err,
               size_t cap);
  void (*forward) (const sl_call *c, const sl_shape *sh, const real *const *in,
                   real *out, real *saved);
  void (*backward) (const sl_call *c, const sl_shape *sh, const real *const *in,
                    const real *out, const real *saved, const real *dout,
                    real *const *din, real *dparam);
  /* t x t weights for sink analysis (every element written: 0 where a key is
  ** not seen), or NULL: it has none. */
  void (*weights) (const sl_call *c, const sl_shape *sh, const real *const *in,
                   real *w);
} sl_mixer_kernel;

typedef struct sl_plugin {
  uint16_t abi_major, abi_minor;
  uint32_t size; /* sizeof (sl_plugin) in the plugin's build */
  const char *name, *version, *doc;
  uint32_t flags; /* claims */
  size_t config_size;
  const sl_option *options; /* these three lists and validate may be NULL */
  const sl_param *params;
  const sl_input *inputs;
  int (*validate) (const void *config, char *err, size_t cap);
  const sl_row_kernel *row; /* exactly one of row, gate and mixer */
  const sl_gate_kernel *gate;
  const sl_mixer_kernel *mixer;
  /* How options change the two lists, or NULL. It gets copies of them and may
  ** change width ({0, 0}: left out), init, scale and shared. Equal configs,
  ** equal lists. */
  void (*adapt) (const void *config, sl_param *params, sl_input *inputs);
  const sl_block_kernel *block; /* NULL, or beside row */
} sl_plugin;

#define SL_ABI SL_ABI_MAJOR, SL_ABI_MINOR, sizeof (sl_plugin)
#define SL_PLUGIN                                                      \
  __attribute__ ((visibility ("default"))) extern const sl_plugin SL ( \
      sinklab_plugin);                                                 \
  const sl_plugin SL (sinklab_plugin)
#endif
