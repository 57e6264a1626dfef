/* sinklab/plugin.h - the interface between sinklab and an attention plugin.
**
** A plugin is one C file written in terms of 'real' and compiled twice, once
** with -DSL_SINGLE, into one shared object. The host looks up the data symbols
** sinklab_plugin_f32 and sinklab_plugin_f64. A build may add variants for an
** instruction set (-DSL_ISA=_v3 or _v4: sinklab_plugin_f32_v3 ...); the host
** takes the best variant that the machine runs.
**
** Contract, for every function of a plugin:
**
**   memory    The host owns every buffer until the call returns. No two buffers
**             overlap. They are aligned to a real, not to a vector. Nothing
**             outside of a buffer is read or written.
**   outputs   Outputs and gradients of inputs are overwritten, every element;
**             their contents before the call, and those of scratch, are
**             undefined. dparam is added to.
**   state     None: equal arguments give equal bits, in any order of calls.
**   threads   Any thread, and several at once.
**   failure   Kernels cannot fail and do not allocate. Only validate and plan
**             can refuse: they return -1 and write one sentence of at most
**             'cap' bytes, NUL included, into 'err'; else they return 0.
**
** Shapes are written (rows, columns), row-major; d(x) is the gradient of x and
** has the shape of x. The host gives a plugin only tokens of the sequence, no
** padding, and only queries that have a visible key.
**
** Growth. New fields go last in their struct and raise SL_ABI_MINOR. Elements
** of lists (option, parameter, input) never grow, because that would change
** their stride: that raises SL_ABI_MAJOR. */
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

/* Declared properties (sl_plugin.properties): true for every input and every
** option. 'sinklab plugin check' tests each one. */
enum {
  SL_NONNEGATIVE = 1, /* every weight is >= 0 */
  SL_SUMS_TO_ONE = 2, /* every row of weights sums to 1 */
  /* A constant added to a row of scores changes nothing (mixer: a vector added
  ** to all rows of the input k). */
  SL_SHIFT_INVARIANT = 4,
  SL_KINKED = 8,       /* the gradient is discontinuous somewhere */
  SL_CAUSAL_ONLY = 16, /* mixer: only causal attention without a window */
  /* Weights are >= 0 and a row sums to at most 1; the rest is null mass. */
  SL_NULL_MASS = 32
};
enum { SL_INT, SL_REAL, SL_BOOL, SL_CHOICE }; /* sl_option.type */
/* Initial values of a parameter or of the matrix of an input. SL_DEFAULT: 0 for
** a parameter, as the model's other matrices for a matrix; SL_CONST: every
** element is 'scale'; SL_NORMAL: from N(0, scale^2); SL_UNIFORM: from
** [-scale, scale). */
enum { SL_DEFAULT, SL_CONST, SL_NORMAL, SL_UNIFORM };

/* A width in reals: per_dhead * d_head + fixed. {0, 0}: left out. */
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

/* An option that is called like its field of 'config', a struct type. */
#define SL_OPTION(type, config, field, def, min, max, choices, doc) \
  { #field, doc, type, offsetof(config, field), def, min, max, choices }
#define SL_OPTION_INT(config, field, def, min, max, doc) \
  SL_OPTION (SL_INT, config, field, def, min, max, NULL, doc)
#define SL_OPTION_REAL(config, field, def, min, max, doc) \
  SL_OPTION (SL_REAL, config, field, def, min, max, NULL, doc)
#define SL_OPTION_BOOL(config, field, def, doc) \
  SL_OPTION (SL_BOOL, config, field, def, 0, 0, NULL, doc)
#define SL_OPTION_CHOICE(config, field, def, choices, doc) \
  SL_OPTION (SL_CHOICE, config, field, def, 0, 0, choices, doc)

/* A learned vector, one per head; {0} ends a list. */
typedef struct sl_param {
  const char *name, *doc;
  sl_width width;
  int init;
  double scale; /* of 'init' */
} sl_param;

/* A projection z = W x of the layer input x, computed and differentiated by the
** host; {0} ends a list. W is the model's parameter layerN.<plugin>.<name>.
** There is no bias: a kernel that wants one adds a parameter. A gate has at
** most one input, a mixer 1 to 6. A mixer that has values as an input calls it
** 'v', of width d_out: measurements use it for contributions. */
typedef struct sl_input {
  const char *name;
  sl_width width; /* of z, per head */
  int shared;     /* 1: all heads get the same z */
  int init;       /* of W */
  double scale;   /* of 'init' */
} sl_input;

/* An input per head with the default initial values. */
#define SL_INPUT(name, per_dhead, fixed) \
  { name, { per_dhead, fixed }, 0, SL_DEFAULT, 0 }

/* Services of the host. */
typedef struct sl_host {
  uint32_t size; /* in bytes */
  /* Any thread. */
  void (*log) (int level, const char *msg);
  /* c = alpha op(a) op(b) + beta c; op transposes where ta or tb is 1. op(a) is
  ** (m, k), op(b) (k, n), c (m, n), with lda, ldb, ldc reals from row to row.
  ** Allocates nothing. Any thread. */
  void (*gemm) (int ta, int tb, int m, int n, int k, real alpha, const real *a,
                int lda, const real *b, int ldb, real beta, real *c, int ldc);
} sl_host;

/* Arguments that every kernel gets. Positions and indices count from 0. */
typedef struct sl_call {
  const sl_host *host;
  const void *config; /* the options, in range; NULL if config_size is 0 */
  const real *param;  /* this head's parameters, in the order of the list */
  real *scratch;      /* row: n reals; block, gate: none; mixer: as planned */
  int head, heads;    /* index of the head; heads of the layer */
  int layer;          /* index of the layer */
  int d_head;         /* width of queries and keys; gate: of the head output */
  int position;       /* row, gate: of the query; block: of lane 0's query */
  int first_key;      /* row, block: position of the key of s[0] */
  int length;         /* tokens of the sequence */
  double
      scale; /* of q.k: in a row's scores already, to be applied by a mixer */
  /* Block: (SL_QUERIES), integers: lane i sees the first visible_keys[i] keys,
  ** no fewer than lane i - 1; 0 where lane i is no query. Else NULL. */
  const real *visible_keys;
} sl_call;

/* Row kernel: from the n >= 1 scores of the visible keys of one query to their
** weights. s, w, dw, ds are (n). */
typedef struct sl_row_kernel {
  /* (n) s -> (n) w. Any thread. */
  void (*forward) (const sl_call *c, int n, const real *s, real *w);
  /* s and w of forward, (n) dw -> (n) ds; adds to dparam. Any thread. */
  void (*backward) (const sl_call *c, int n, const real *s, const real *w,
                    const real *dw, real *ds, real *dparam);
} sl_row_kernel;

/* Block kernel, optional beside a row kernel, for speed: 16 queries at once,
** position .. position + 15, a lane each (sinklab/lanes.h). s, w, dw, ds are
** (n, SL_QUERIES): key by lane. Where a key is not visible to a lane, s is the
** lowest finite real, w and dw are 0, and the host clears whatever the kernel
** writes. The host calls the row kernel where a block does not fit (windows,
** short sequences), so the two must agree. */
enum { SL_QUERIES = 16 };
typedef struct sl_block_kernel {
  /* (n, 16) s -> (n, 16) w. Any thread. */
  void (*forward) (const sl_call *c, int n, const real *s, real *w);
  /* s and w of forward, (n, 16) dw -> (n, 16) ds; adds to dparam. Any
  ** thread. */
  void (*backward) (const sl_call *c, int n, const real *s, const real *w,
                    const real *dw, real *ds, real *dparam);
} sl_block_kernel;

/* Gate kernel: from the output o of one head at one token and the projected
** input z to the gated output y. o, y, dy, d_o are (n), n = d_head; z and dz
** are (width of the input), or NULL for a gate without an input. */
typedef struct sl_gate_kernel {
  /* (n) o, z -> (n) y. Any thread. */
  void (*forward) (const sl_call *c, int n, const real *o, const real *z,
                   real *y);
  /* o and z of forward, (n) dy -> (n) d_o, dz; adds to dparam. Any thread. */
  void (*backward) (const sl_call *c, int n, const real *o, const real *z,
                    const real *dy, real *d_o, real *dz, real *dparam);
} sl_gate_kernel;

/* One head of one sequence: t >= 1 tokens. lo and hi are (t): query i sees the
** keys lo[i] <= j < hi[i], at least one. Causal attention without a window is
** lo[i] = 0, hi[i] = i + 1. */
typedef struct sl_shape {
  int t, d_head, d_out; /* d_out: width of the output */
  const int *lo, *hi;
} sl_shape;

/* Buffers that a mixer wants for one head of one sequence. The host calls plan
** with both sizes 0 and d_out = d_head. */
typedef struct sl_plan {
  size_t saved, scratch; /* in reals */
  int d_out;             /* must not depend on t */
} sl_plan;

/* Mixer kernel: the whole attention mechanism of one head of one sequence.
** in[i] and din[i] are (t, width of input i), NULL where the options leave
** input i out; out and dout are (t, d_out); saved holds what backward needs of
** forward. */
typedef struct sl_mixer_kernel {
  /* -> p, for sequences of 1 to sh->t tokens; sh->d_out, lo and hi are not set.
  ** 0, or -1 and a sentence. Any thread. */
  int (*plan) (const void *config, const sl_shape *sh, sl_plan *p, char *err,
               size_t cap);
  /* in -> (t, d_out) out, saved. Any thread. */
  void (*forward) (const sl_call *c, const sl_shape *sh, const real *const *in,
                   real *out, real *saved);
  /* in, out and saved of forward, (t, d_out) dout -> din; adds to dparam. Any
  ** thread. */
  void (*backward) (const sl_call *c, const sl_shape *sh, const real *const *in,
                    const real *out, const real *saved, const real *dout,
                    real *const *din, real *dparam);
  /* in -> (t, t) w, query by key, for measurements: 0 where a key is not
  ** visible. Any thread. NULL: the mechanism has no weights. */
  void (*weights) (const sl_call *c, const sl_shape *sh, const real *const *in,
                   real *w);
} sl_mixer_kernel;

/* Constant, for as long as the plugin is loaded. */
typedef struct sl_plugin {
  uint16_t abi_major, abi_minor;
  uint32_t size; /* sizeof (sl_plugin) in the plugin's build, in bytes */
  const char *name, *version, *doc;
  uint32_t properties;      /* declared: SL_NONNEGATIVE | ... */
  size_t config_size;       /* of the struct that options fill, in bytes */
  const sl_option *options; /* these three lists and validate may be NULL */
  const sl_param *params;
  const sl_input *inputs;
  /* Refuses a combination of options, each of them in range: 0, or -1 and a
  ** sentence. Any thread. */
  int (*validate) (const void *config, char *err, size_t cap);
  const sl_row_kernel *row; /* exactly one of row, gate and mixer */
  const sl_gate_kernel *gate;
  const sl_mixer_kernel *mixer;
  /* Options -> parameters and inputs: gets copies of the two lists and may
  ** change width ({0, 0} leaves the element out), init, scale and shared. Any
  ** thread. NULL: options change neither list. */
  void (*adapt) (const void *config, sl_param *params, sl_input *inputs);
  const sl_block_kernel *block; /* NULL, or beside row */
} sl_plugin;

#define SL_ABI SL_ABI_MAJOR, SL_ABI_MINOR, sizeof (sl_plugin)
#define SL_PLUGIN                                                      \
  __attribute__ ((visibility ("default"))) extern const sl_plugin SL ( \
      sinklab_plugin);                                                 \
  const sl_plugin SL (sinklab_plugin)
#endif
