/* plan.h - plans of the attention layer's ops: sizes and buffers, computed by
** shapes*.c and read by the numeric files. */
#ifndef SL_PLAN_H
#define SL_PLAN_H
#include "attention/attention.h"

enum {
  SL_MAX_BLOCK_ROWS = 32,        /* queries of a block */
  SL_RECOMPUTE_MIN_TOKENS = 256, /* default of recompute_from */
  SL_LANES_MIN_TOKENS = 8,       /* shorter sequences waste too many lanes */
  SL_LANES_MAX_TOKENS = (1 << 24) - (1 << 16), /* an f32 counts so many keys */
  SL_BLOCKS_PER_GROUP = 4,                     /* at most; lanes only */
  SL_GROUP_MIN_KEYS = 8192, /* fewer stay in the cache for one block */
  SL_GATHER_MIN_TOKENS = 65 /* keys and values are read often enough */
};

/* The scratch of a product: sl_gemm_scratch of the variant that will run. */
typedef size_t (*sl_gemm_strided_scratch) (ptrdiff_t m, ptrdiff_t n,
                                           ptrdiff_t k);

/* The part that the plans of the four ops calling a plugin have in common: sizes,
** and offsets of the buffers of its calls in the scratch (in reals, each aligned
** to 64 bytes). */
typedef struct sl_call_plan {
  int batch, t, heads, d_head;
  int params;           /* reals of a head */
  int inputs;           /* of the op, before param, length and first_key */
  size_t param, dparam; /* params each */
  size_t plugin, plugin_reals; /* for the plugin; 0 reals: it gets NULL */
} sl_call_plan;

/* The attention op. */
typedef struct sl_attention_plan {
  sl_call_plan call;
  int kv_heads, d_value;
  int keys;            /* t + virtual keys */
  int lanes;           /* layout of a block: 1 [key][query], 0 [query][key] */
  int block;           /* queries of a block; lanes: 16 */
  int group;           /* blocks that take a tile of keys together; rows: 1 */
  int gathered;        /* lanes: k and v are copied, dk and dv summed apart */
  int recompute;       /* 1: backward computes scores and weights again */
  size_t saved_scores; /* of one head: t, lanes: its multiple of 16, x keys */
  size_t saved;        /* (batch, heads, 2, saved_scores): with weights; or 0 */
  size_t scratch;
  ptrdiff_t ld; /* row stride of kt and vt */
  /* rows: transposed keys (d_head, keys) and values (d_value, keys), used if
  ** there are several blocks; lanes: transposed queries (d_head, 16) and output
  ** gradients (d_value, 16) of each block of a group */
  size_t kt, vt;
  size_t k, v;            /* (keys, d_head), (keys, d_value), if gathered */
  size_t dq, dk, dv;      /* (t, d_head), (keys, d_head), (keys, d_value) */
  size_t scores, weights; /* (group, block, keys) each */
  /* (group, block, keys), and (block, keys) behind it: the dscores of a block
  ** lie where the dweights of the block before it were, which have been read */
  size_t dscores, dweights;
  size_t product; /* for sl_gemm */
} sl_attention_plan;

/* Fill p, except p->scratch, from attributes and inputs that shapes has
** accepted: nothing is checked. */
void sl_attention_plan_again (const sl_attention_attr *a, const sl_view *in,
                              sl_attention_plan *p);

/* The row_weights op: one row at a time. */
typedef struct sl_row_weights_plan {
  sl_call_plan call;
  size_t scratch;
  size_t scores, weights, dscores, dweights; /* t each */
} sl_row_weights_plan;
int sl_row_weights_plan_of (const sl_attention_attr *a, int n_in,
                            const sl_view *in, sl_row_weights_plan *p,
                            sl_error *e);

/* The gate op: one token at a time. */
typedef struct sl_gate_plan {
  sl_call_plan call;
  int width, shared; /* of z; width 0: there is none */
  size_t scratch;
  size_t o, z, dy, d_o, dz; /* d_head, width, d_head, d_head, width */
} sl_gate_plan;
int sl_gate_plan_of (const sl_attention_attr *a, int n_in, const sl_view *in,
                     sl_gate_plan *p, sl_error *e);

/* The mixer op: one head of one sequence at a time. */
enum { SL_MIXER_INPUTS = SL_MAX_IN - 2 };
typedef struct sl_mixer_plan {
  sl_call_plan call;
  int d_out;
  int inputs; /* of the plugin */
  struct {
    int width, shared;
    int input;    /* of the op; -1: left out */
    size_t x, dx; /* (t, width) each */
  } in[SL_MIXER_INPUTS];
  int value;    /* input of the plugin that holds the values; -1: none */
  size_t saved; /* of one head of one sequence */
  size_t scratch;
  size_t lo, hi;    /* t ints each */
  size_t out, dout; /* (t, d_out) */
  size_t weights;   /* (t, t) if the plugin has weights */
} sl_mixer_plan;
int sl_mixer_plan_of (const sl_attention_attr *a, sl_dtype dtype, int n_in,
                      const sl_view *in, sl_mixer_plan *p, sl_error *e);

/* The checks of all four ops: a mechanism of this shape ("row", ...), inputs as
** the flags say, and param (heads, p->params), length (batch) and first_key
** (batch, t) of the right shapes behind the first p->inputs. batch, t, heads,
** d_head and inputs of p are given, params is filled in. */
int sl_check_call (const char *op, const char *shape,
                   const sl_attention_attr *a, int n_in, const sl_view *in,
                   sl_call_plan *p, sl_error *e);

/* Reserve the memory of the calls: param, dparam and 'plugin_reals' for the plugin;
** -1: more than a size_t holds. */
int sl_reserve_call (size_t *end, size_t plugin_reals, sl_call_plan *p);

/* A shape as an error names it, "(2, 16, 64)", in room for one; returns the
** text. */
typedef struct sl_shape_room {
  char text[SL_SHAPE_TEXT];
} sl_shape_room;
const char *sl_show_shape (const sl_view *v, sl_shape_room *room);

/* Reserve rows x columns reals, 64-byte aligned, at the end of a scratch; -1:
** more than a size_t holds. */
int sl_reserve (size_t *end, size_t rows, size_t columns, size_t *at);

/* sl_op.shapes of the ops. The precision and the product's scratch of the
** variant that will run are given. */
int sl_gate_shapes (sl_shape_query *q, sl_error *e);
int sl_mixer_shapes (sl_shape_query *q, sl_dtype dtype, sl_error *e);
int sl_attention_shapes (sl_shape_query *q, sl_gemm_strided_scratch product,
                         sl_error *e);
int sl_row_weights_shapes (sl_shape_query *q, sl_error *e);
int sl_rope_shapes (sl_shape_query *q, sl_error *e);

/* Slope of ALiBi of head i (from 0) of 'heads'. */
double sl_alibi_slope (int heads, int i);

/* A number of tokens as stored in a tensor, as an int from 0 to t: NaN counts as
** 0. */
int sl_valid_tokens (double length, int t);
#endif
